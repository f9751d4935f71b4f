//! The result as one page.
//!
//! [`render`] needs nothing but the document and the page needs nothing but a browser: style, script, charts
//! and the figures themselves are inside, and a content security policy forbids fetching anything. It follows
//! the reader's light or dark setting, a narrow screen and paper.
//!
//! The order is that of a reader's questions: can the figures be trusted, how fast, was it steady and what
//! did faults do, how available, how slow at worst, was the load what it was meant to be, what was wasted,
//! how even are the nodes, and then everything in tables. With several repetitions of a label a chart shows
//! medians, and details are those of its run of median throughput.
//!
//! Several documents are compared by joining their runs in one: `Document { runs }`.
//!
//! Everything that enters the page goes through [`escape`]: names of faults and details of checks quote
//! others.

use super::table::plural;
use super::units;
use crate::metrics::Document;
use crate::metrics::document::{Group, Run};
use crate::metrics::figures::Summary;
use crate::metrics::summary::Spread;

mod controls;
mod figures;
mod tables;

/// The page's style.
const STYLE: &str = include_str!("page.css");
/// The page's script: tooltips, printing, saving the figures.
const SCRIPT: &str = include_str!("page.js");
/// Doubts that are shown in full.
const DOUBTS_MAX: usize = 50;

/// One label with its runs, its colour and the run that stands for them.
struct Shown<'a> {
    group: Group<'a>,
    series: usize,
    middle: &'a Run,
    summary: Summary,
}

impl Shown<'_> {
    fn label(&self) -> &str {
        self.group.label
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
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        title = escape(&title)
    );
    page.push_str(&header(&shown, &title));
    page.push_str("<main>\n");
    page.push_str(&verdict(document));
    if let Some(first) = shown.first() {
        page.push_str(&strip(first));
        page.push_str(&figures::throughput(&shown));
        page.push_str(&figures::over_time(&shown));
        page.push_str(&figures::availability(&shown));
        page.push_str(&figures::heat(&shown));
        page.push_str(&figures::latency(&shown));
        page.push_str(&controls::intended_and_achieved(&shown));
        page.push_str(&figures::nodes(&shown));
        page.push_str(&tables::scalability(&shown));
        page.push_str(&tables::transactions(&shown));
        page.push_str(&tables::causes(&shown));
        page.push_str(&tables::checks(document));
        page.push_str(&tables::runs(document));
        page.push_str(&tables::configuration(&shown));
    }
    // Inside a script element `<` could end it.
    let figures = document.to_json().replace('<', "\\u003c");
    page.push_str(&format!(
        "</main>\n<footer>\n<p>Figures leave the warm-up and a last second that was not whole out. \
         New-Orders per minute are without keying and think times: not an audited TPC-C result.</p>\n\
         <button id=\"save\" type=\"button\">Save the figures as JSON</button>\n</footer>\n\
         <div id=\"tip\" aria-hidden=\"true\"></div>\n\
         <script type=\"application/json\" id=\"figures\">\n{figures}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    ));
    page
}

/// Text that is safe between tags and inside quoted attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // The only control characters that HTML allows are white space.
            c if c.is_control() && !c.is_ascii_whitespace() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

fn title(shown: &[Shown<'_>]) -> String {
    match shown {
        [] => "Nothing was measured".to_owned(),
        [only] => format!("Dike: {}", only.label()),
        [one, other] => format!("Dike: {} and {}", one.label(), other.label()),
        several => format!("Dike: {} runs compared", several.len()),
    }
}

fn header(shown: &[Shown<'_>], title: &str) -> String {
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
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    if let Some(first) = shown.first()
        && !first.middle.about.started.is_empty()
    {
        facts.push(first.middle.about.started.clone());
    }
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"soft\">{}</p>\n</header>\n",
        escape(title),
        escape(&facts.join(" · "))
    )
}

/// The first thing to know: whether the figures are worth anything.
fn verdict(document: &Document) -> String {
    let doubts: Vec<String> = document.runs.iter().flat_map(super::table::doubts_of).collect();
    let checks: usize = document.runs.iter().map(|run| run.checks.len()).sum();
    let failed = document.runs.iter().flat_map(|run| &run.checks).any(|check| !check.ok);
    if !doubts.is_empty() {
        let shown: String =
            doubts.iter().take(DOUBTS_MAX).map(|doubt| format!("<li>{}</li>", escape(doubt))).collect();
        let more = match doubts.len().saturating_sub(DOUBTS_MAX) {
            0 => String::new(),
            more => format!("<li>and {more} more</li>"),
        };
        let (class, role, words) = match failed {
            true => ("bad", " role=\"alert\"", "✗ Not everything holds."),
            false => ("warn", "", "Read these figures with care."),
        };
        return format!("<div class=\"banner {class}\"{role}>{words}<ul>{shown}{more}</ul></div>\n");
    }
    match checks {
        _ if document.runs.is_empty() => String::new(),
        0 => "<div class=\"banner warn\">Nothing was checked.</div>\n".to_owned(),
        1 => "<div class=\"banner good\"><span class=\"ok\">✓</span> The check holds.</div>\n".to_owned(),
        n => format!("<div class=\"banner good\"><span class=\"ok\">✓</span> All {n} checks hold.</div>\n"),
    }
}

/// The figures of the first label.
fn strip(first: &Shown<'_>) -> String {
    let summary = &first.summary;
    let tps = first.spread(|summary| summary.throughput_tps);
    let mut tiles = vec![("throughput", format!("{}/s", units::rate(tps.median)), first.label().to_owned())];
    if let Some(tpmc) = summary.new_orders_per_minute {
        tiles.push(("New-Orders", format!("{}/min", units::short(tpmc.round())), "no think time".to_owned()));
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
        tiles.push(("client's processors", units::percent(share), "busy on average".to_owned()));
    }
    let tiles: String = tiles
        .iter()
        .map(|(name, figure, note)| {
            format!(
                "<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n",
                escape(name),
                escape(figure),
                escape(note)
            )
        })
        .collect();
    format!("<dl class=\"strip\">\n{tiles}</dl>\n")
}

fn section(title: &str, note: &str, content: &str) -> String {
    let note =
        if note.is_empty() { String::new() } else { format!("<p class=\"soft\">{}</p>\n", escape(note)) };
    format!("<section>\n<h2>{}</h2>\n{note}{content}</section>\n", escape(title))
}

/// A table of cells that are HTML already; headers are text.
fn table(class: &str, headers: &[&str], rows: &[Vec<String>]) -> String {
    let mut html = format!("<div class=\"scroll\"><table class=\"{class}\">\n<thead><tr>");
    for header in headers {
        html.push_str(&format!("<th scope=\"col\">{}</th>", escape(header)));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            html.push_str(&match column {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td>{cell}</td>"),
            });
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody>\n</table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::document::Check;

    #[test]
    fn everything_foreign_is_escaped() {
        assert_eq!(escape("<a href='x'>\"&\u{1}\n"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{fffd}\n");
    }

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
