//! One simulated world as a picture: a space-time diagram that explains itself.
//!
//! [`page`] turns what was recorded of a world into one HTML file that needs nothing but a browser:
//! style, script and data are inside, and a content security policy forbids fetching anything. A
//! line per shard, time from left to right, messages between the lines, transactions as bars, and
//! at every record what happened to its mark. `docs/simulator.md` says how to read it.
//!
//! `build.rs` puts the world together from events, steps and history, `because.rs` finds out why
//! each timestamp is what it is, `names.rs` and `words.rs` what things are called, `model.rs` is
//! what the page gets, as JSON: a step is a few numbers and a phrase, so the file stays small.
//! `trace.rs` tells the same as text.
//!
//! The script is in parts, by what they know: `model.js` the data and how they hang together,
//! `words.js` plain sentences, `scale.js` where a time is on the screen, `draw.js` the diagram,
//! `record.js` the history of one record, `side.js` the stories, `main.js` what the mouse and the
//! keyboard do.
//!
//! Left out: what the executor does (passes, tasks); worlds of more than 50,000 steps are shown in
//! part, and say so.

mod because;
mod build;
mod model;
mod names;
#[cfg(test)]
mod tests;
mod trace;
mod words;

use plimsoll_page::html::{escape, inside_script};
use plimsoll_sim::plan::Plan;
use plimsoll_sim::recorder::Recording;
use plimsoll_sim::run::Outcome;

pub use names::in_words;
pub use trace::{history, trace};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// In the order in which they depend on each other.
const SCRIPTS: [&str; 7] = [
    include_str!("model.js"),
    include_str!("words.js"),
    include_str!("scale.js"),
    include_str!("draw.js"),
    include_str!("record.js"),
    include_str!("side.js"),
    include_str!("main.js"),
];

/// The page of a world. `again` is the command line that runs it again, `verdict` what came of it
/// in words.
pub fn page(plan: &Plan, outcome: &Outcome, recording: &Recording, again: String, verdict: String) -> String {
    let mut timeline = build::timeline(plan, outcome, recording);
    build::cut(&mut timeline);
    timeline.title = format!("World {}: {}, {}", plan.seed, plan.pair(), plan.workload.name());
    (timeline.again, timeline.outcome) = (again, verdict);
    let data = inside_script(&serde_json::to_string(&timeline).expect("a timeline is plain values"));
    // The data last: nothing is replaced in what they say.
    TEMPLATE
        .replace("{{title}}", &escape(&timeline.title))
        .replace("{{style}}", STYLE)
        .replace("{{script}}", &SCRIPTS.join("\n"))
        .replacen("{{data}}", &data, 1)
}
