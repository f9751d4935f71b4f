//! Sections of the page that are tables.

use plimsoll_page::html::{escape, section, table};

use super::Shown;
use crate::metrics::Document;
use crate::metrics::document::{Group, Series};
use crate::metrics::figures::Percentiles;
use crate::report::table::scalabilities;
use crate::report::units;

/// The paper's Equation 3 between cluster sizes of one database.
pub fn scalability(shown: &[Shown<'_>]) -> String {
    let groups: Vec<Group<'_>> = shown.iter().map(|one| one.group.clone()).collect();
    let grown = scalabilities(&groups);
    if grown.is_empty() {
        return String::new();
    }
    let per_node = |label: &str| {
        let one = shown.iter().find(|one| one.label() == label).expect("a label that is shown");
        let tps = one.spread(|summary| summary.throughput_tps).median;
        units::rate(tps / f64::from(one.middle.about.nodes.max(1)))
    };
    let rows: Vec<Vec<String>> = grown
        .iter()
        .map(|(small, large, of)| {
            vec![escape(small), escape(large), per_node(small), per_node(large), format!("{of:.3}")]
        })
        .collect();
    let headers = ["from", "to", "TPS per node", "then", "scalability"];
    let note = "1 − |TPS₂/N₂ − TPS₁/N₁| / (TPS₁/N₁): 1 is a throughput per node that does not change with the cluster.";
    section("Scalability", note, &table("", &headers, &rows))
}

/// Kinds of transactions.
pub fn transactions(shown: &[Shown<'_>]) -> String {
    let mut rows = Vec::new();
    for one in shown {
        let run = one.middle;
        let seconds = run.measured().len().max(1) as f64;
        for kind in &run.kinds {
            let (committed, aborted) = (run.sum(&kind.committed), run.sum(&kind.aborted));
            let failed = run.sum(&kind.failed);
            if committed + aborted + failed == 0 {
                continue;
            }
            let name =
                if shown.len() == 1 { kind.name.clone() } else { format!("{}: {}", one.label(), kind.name) };
            let of = Percentiles::of(kind.felt());
            let us = |us: u64| units::duration_us(us as f64);
            rows.push(vec![
                escape(&name),
                units::thousands(committed),
                units::rate(committed as f64 / seconds),
                units::thousands(aborted),
                units::thousands(failed),
                units::thousands(run.sum(&kind.given_up)),
                units::duration_us(of.mean_us),
                us(of.p50_us),
                us(of.p90_us),
                us(of.p95_us),
                us(of.p99_us),
                us(of.p999_us),
                us(of.max_us),
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let headers = [
        "kind",
        "committed",
        "per second",
        "aborted",
        "failed",
        "given up",
        "mean",
        "p50",
        "p90",
        "p95",
        "p99",
        "p99.9",
        "slowest",
    ];
    section("Transactions", "", &table("", &headers, &rows))
}

/// Why attempts were rolled back or failed.
pub fn causes(shown: &[Shown<'_>]) -> String {
    let mut rows = Vec::new();
    for one in shown {
        let run = one.middle;
        let mut of = |what: &str, causes: &[Series]| {
            for cause in causes {
                let count = run.sum(&cause.counts);
                if count > 0 {
                    let name = match shown.len() {
                        1 => cause.name.clone(),
                        _ => format!("{}: {}", one.label(), cause.name),
                    };
                    rows.push(vec![escape(&name), what.to_owned(), units::thousands(count)]);
                }
            }
        };
        of("rolled back", &run.aborts);
        of("failed", &run.errors);
    }
    if rows.is_empty() {
        return String::new();
    }
    section("Causes", "Attempts that did not commit.", &table("", &["cause", "attempts", "count"], &rows))
}

/// What was verified.
pub fn checks(document: &Document) -> String {
    let rows: Vec<Vec<String>> = document
        .runs
        .iter()
        .flat_map(|run| run.checks.iter().map(move |check| (run, check)))
        .map(|(run, check)| {
            let mark =
                if check.ok { "<span class=\"ok\">✓</span>" } else { "<span class=\"fail\">✗</span>" };
            vec![
                format!("{mark} {}", escape(&check.name)),
                escape(&format!("{}, repetition {}", run.about.label, run.about.repetition)),
                escape(&check.detail),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let table = table("words", &["check", "run", "detail"], &rows);
    let count = units::plural(rows.len() as u64, "check", "checks");
    section("Checks", "", &format!("<details><summary>{count}</summary>{table}</details>\n"))
}

/// Every run of every label.
pub fn runs(document: &Document) -> String {
    if document.runs.len() < 2 {
        return String::new();
    }
    let row = |run: &crate::metrics::Run| {
        let summary = run.summary();
        let us = |us: u64| units::duration_us(us as f64);
        vec![
            escape(&run.about.label),
            run.about.repetition.to_string(),
            summary.seconds.to_string(),
            units::rate(summary.throughput_tps),
            units::percent(summary.abort_share),
            units::thousands(summary.errors),
            us(summary.latency.p50_us),
            us(summary.latency.p99_us),
            us(summary.latency.max_us),
        ]
    };
    let rows: Vec<Vec<String>> = document.runs.iter().map(row).collect();
    let headers = ["run", "repetition", "seconds", "tx/s", "aborted", "errors", "p50", "p99", "slowest"];
    section("Runs", "", &table("", &headers, &rows))
}

/// What was set, one column per label; settings that differ come first.
pub fn configuration(shown: &[Shown<'_>]) -> String {
    let mut names: Vec<&str> =
        shown.iter().flat_map(|one| one.middle.about.config.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return String::new();
    }
    let value = |one: &Shown<'_>, name: &str| match one.middle.about.config.get(name) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "–".to_owned(),
    };
    let row = |name: &str| -> (bool, Vec<String>) {
        let values: Vec<String> = shown.iter().map(|one| value(one, name)).collect();
        let same = values.windows(2).all(|pair| pair[0] == pair[1]);
        (same, std::iter::once(escape(name)).chain(values.iter().map(|value| escape(value))).collect())
    };
    let mut rows: Vec<(bool, Vec<String>)> = names.iter().map(|name| row(name)).collect();
    rows.sort_by_key(|(same, _)| *same);
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
    let headers: Vec<&str> = std::iter::once("setting").chain(shown.iter().map(|one| one.label())).collect();
    let table = table("words", &headers, &rows);
    section(
        "Configuration",
        "",
        &format!("<details><summary>Everything that was set</summary>{table}</details>\n"),
    )
}
