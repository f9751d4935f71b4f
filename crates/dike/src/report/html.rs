//! The result as one page.
//!
//! [`render`] needs nothing but the document and the page needs nothing but a browser: style,
//! script, charts and the figures themselves are inside, and a content security policy forbids
//! fetching anything. It follows the reader's light or dark setting, a narrow screen and paper.
//!
//! The order is that of a reader's questions: can the figures be trusted, how fast, was it steady
//! and what did faults do, how available, how slow at worst, was the load what it was meant to be,
//! what was wasted, how even are the nodes, and then everything in tables. With several repetitions
//! of a series a chart shows medians, and details are those of the run of median throughput.
//!
//! Several documents are compared by joining their runs in one: `Document { runs }`.
//!
//! Everything that enters the page goes through [`escape`]: names of faults and details of checks
//! quote others.

use plimsoll_page::html::{self, Page, Tone, all_hold, banner, escape};

use super::units::{self, plural};
use crate::metrics::Document;
use crate::metrics::document::Run;
use crate::metrics::environment;
use crate::metrics::figures::Summary;
use crate::metrics::series::Group;
use crate::metrics::summary::Spread;

mod controls;
mod figures;
mod machines;
mod tables;

/// What only these pages show.
const STYLE: &str = include_str!("page.css");

/// One series with its runs, its colour and the run that stands for them.
struct Shown<'a> {
    group: Group<'a>,
    series: usize,
    middle: &'a Run,
    summary: Summary,
}

impl Shown<'_> {
    fn label(&self) -> &str {
        &self.group.name
    }

    fn spread(&self, figure: impl Fn(&Summary) -> f64) -> Spread {
        Spread::of(self.group.runs.iter().map(|run| figure(&run.summary())))
    }
}

/// The whole page.
pub fn render(document: &Document) -> String {
    let shown: Vec<Shown<'_>> = document
        .groups()
        .into_iter()
        .enumerate()
        .map(|(series, group)| {
            let middle = group.middle();
            Shown { series, middle, summary: middle.summary(), group }
        })
        .collect();
    let title = title(&shown);
    let groups: Vec<Group<'_>> = shown.iter().map(|one| one.group.clone()).collect();
    let mut main = verdict(document, &groups);
    if let Some(first) = shown.first() {
        main.push_str(&strip(first));
        main.push_str(&figures::throughput(&shown));
        main.push_str(&figures::over_time(&shown));
        main.push_str(&figures::availability(&shown));
        main.push_str(&figures::heat(&shown));
        main.push_str(&figures::latency(&shown));
        main.push_str(&controls::intended_and_achieved(&shown));
        main.push_str(&figures::nodes(&shown));
        main.push_str(&machines::machines(&shown));
        main.push_str(&tables::scalability(&shown, &groups));
        main.push_str(&tables::transactions(&shown));
        main.push_str(&tables::causes(&shown));
        main.push_str(&tables::checks(&groups));
        main.push_str(&tables::runs(&groups));
        main.push_str(&tables::server(&shown));
        main.push_str(&tables::configuration(&shown));
    }
    let page = Page {
        title: &title,
        facts: &facts(&shown),
        command: "",
        main: &main,
        notes: &[
            "Figures leave the warm-up and a last second that was not whole out. New-Orders per minute are without \
             keying and think times: not an audited TPC-C result.",
        ],
        style: STYLE,
        figures: &document.to_json(),
        file: "dike.json",
    };
    page.render()
}

fn title(shown: &[Shown<'_>]) -> String {
    match shown {
        [] => "Nothing was measured".to_owned(),
        [only] => format!("Dike: {}", only.label()),
        [one, other] => format!("Dike: {} and {}", one.label(), other.label()),
        several => format!("Dike: {} runs compared", several.len()),
    }
}

/// The databases, who asked them, and when.
fn facts(shown: &[Shown<'_>]) -> String {
    let mut facts: Vec<String> = Vec::new();
    for one in shown {
        let about = &one.middle.about;
        let database = format!("{} {}", about.database, about.database_version);
        let fact = format!(
            "{} on {}, {} of {}",
            database.trim(),
            plural(u64::from(about.nodes), "node", "nodes"),
            plural(u64::from(about.terminals), "terminal", "terminals"),
            plural(u64::from(about.clients), "client", "clients"),
        );
        let clients = about.client_machines.iter().map(|machine| format!("client on {machine}"));
        for fact in [fact].into_iter().chain(environment::line(&about.server)).chain(clients) {
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
    }
    if let Some(first) = shown.first()
        && !first.middle.about.started.is_empty()
    {
        facts.push(first.middle.about.started.clone());
    }
    facts.join(" · ")
}

/// The first thing to know: whether the figures are worth anything.
fn verdict(document: &Document, groups: &[Group<'_>]) -> String {
    let doubts = super::table::doubts_of_all(groups);
    let checks: usize = document.runs.iter().map(|run| run.checks.len()).sum();
    let failed = document.runs.iter().flat_map(|run| &run.checks).any(|check| !check.ok);
    if !doubts.is_empty() {
        let (tone, words) = match failed {
            true => (Tone::Bad, "✗ Not everything holds."),
            false => (Tone::Warn, "Read these figures with care."),
        };
        let doubts: Vec<String> = doubts.iter().map(|doubt| escape(doubt)).collect();
        return banner(tone, words, &doubts);
    }
    if document.runs.is_empty() { String::new() } else { all_hold(checks) }
}

/// The figures of the first series.
fn strip(first: &Shown<'_>) -> String {
    let summary = &first.summary;
    let tps = first.spread(|summary| summary.throughput_tps);
    let mut tiles = vec![("throughput", format!("{}/s", units::rate(tps.median)), first.label().to_owned())];
    if let Some(tpmc) = summary.new_orders_per_minute {
        tiles.push(("New-Orders/min", units::short(tpmc.round()), "no think time".to_owned()));
    }
    let us = |us: u64| units::duration_us(us as f64);
    tiles.push(("p99 latency", us(summary.latency.p99_us), format!("median {}", us(summary.latency.p50_us))));
    let errors = plural(summary.errors, "error", "errors");
    tiles.push(("aborted attempts", units::percent(summary.abort_share), format!("and {errors}")));
    let longest = summary.outages.iter().map(|outage| outage.to_seconds - outage.from_seconds);
    // A sum of no numbers is -0.
    let down = longest.clone().fold(0.0, |sum: f64, lasted| sum + lasted);
    let outages = plural(summary.outages.len() as u64, "outage", "outages");
    let note = format!("longest {}", units::moment(longest.fold(0.0, f64::max)));
    tiles.push((
        "without a commit",
        units::moment(down),
        if down > 0.0 { format!("{outages}, {note}") } else { outages },
    ));
    if let Some(share) = summary.client_cpu_share {
        let own = summary.client_own_cpu_share.map(|own| format!("busy, {} by itself", units::percent(own)));
        tiles.push((
            "client's processors",
            units::percent(share),
            own.unwrap_or("busy on average".to_owned()),
        ));
    }
    html::tiles(&tiles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::document::Check;

    #[test]
    fn a_document_without_runs_is_a_page_that_says_so() {
        let page = render(&Document::default());
        assert!(page.contains("Nothing was measured") && page.ends_with("</html>\n"));
    }

    #[test]
    fn an_empty_run_is_a_page_without_nonsense() {
        let mut run = Run::default();
        run.checks.push(Check { name: "x".into(), ok: false, detail: "y".into() });
        let page = render(&Document { runs: vec![run] });
        assert!(!page.contains("NaN") && page.contains("Not everything holds"));
    }
}
