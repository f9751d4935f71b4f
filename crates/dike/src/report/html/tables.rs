//! Sections of the page that are tables.

use std::collections::BTreeMap;

use plimsoll_page::html::{escape, section, table};

use super::Shown;
use crate::metrics::document::Series;
use crate::metrics::figures::Percentiles;
use crate::metrics::series::{Group, scalabilities};
use crate::report::units;

/// The paper's Equation 3 between cluster sizes of one database.
pub fn scalability(shown: &[Shown<'_>], groups: &[Group<'_>]) -> String {
    let grown = scalabilities(groups);
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
                    let first = cause.first.as_ref().map(|said| escape(&said.to_string()));
                    rows.push(vec![
                        escape(&name),
                        what.to_owned(),
                        units::thousands(count),
                        first.unwrap_or_default(),
                    ]);
                }
            }
        };
        of("rolled back", &run.aborts);
        of("failed", &run.errors);
    }
    if rows.is_empty() {
        return String::new();
    }
    let headers = ["cause", "attempts", "count", "what was said first"];
    section("Causes", "Attempts that did not commit.", &table("words", &headers, &rows))
}

/// What was verified.
pub fn checks(groups: &[Group<'_>]) -> String {
    let runs = groups.iter().flat_map(|group| group.runs.iter().map(move |run| (&group.name, *run)));
    let rows: Vec<Vec<String>> = runs
        .flat_map(|(name, run)| run.checks.iter().map(move |check| (name, run, check)))
        .map(|(name, run, check)| {
            let mark =
                if check.ok { "<span class=\"ok\">✓</span>" } else { "<span class=\"fail\">✗</span>" };
            vec![
                format!("{mark} {}", escape(&check.name)),
                escape(&format!("{name}, repetition {}", run.about.repetition)),
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

/// Every run of every series.
pub fn runs(groups: &[Group<'_>]) -> String {
    let runs = groups.iter().flat_map(|group| group.runs.iter().map(move |run| (&group.name, *run)));
    let runs: Vec<(&String, &crate::metrics::Run)> = runs.collect();
    if runs.len() < 2 {
        return String::new();
    }
    let row = |&(name, run): &(&String, &crate::metrics::Run)| {
        let summary = run.summary();
        let us = |us: u64| units::duration_us(us as f64);
        vec![
            escape(name),
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
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let headers = ["run", "repetition", "seconds", "tx/s", "aborted", "errors", "p50", "p99", "slowest"];
    section("Runs", "", &table("", &headers, &rows))
}

/// Settings of the servers, one column per series and node.
pub fn server(shown: &[Shown<'_>]) -> String {
    let nodes = shown.iter().flat_map(|one| one.middle.about.server.iter().map(move |node| (one, node)));
    let columns: Vec<(String, BTreeMap<String, String>)> = nodes
        .map(|(one, (node, settings))| {
            let name = if shown.len() == 1 { node.clone() } else { format!("{}: {node}", one.label()) };
            (name, settings.clone())
        })
        .collect();
    settings("Server", "Settings that the server has told before the run", &columns)
}

/// What was set, one column per series.
pub fn configuration(shown: &[Shown<'_>]) -> String {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let columns: Vec<(String, BTreeMap<String, String>)> = shown
        .iter()
        .map(|one| {
            let config = one.middle.about.config.iter();
            (one.label().to_owned(), config.map(|(name, value)| (name.clone(), text(value))).collect())
        })
        .collect();
    settings("Configuration", "Everything that was set", &columns)
}

/// Settings by name, in columns; those that differ come first.
fn settings(title: &str, summary: &str, columns: &[(String, BTreeMap<String, String>)]) -> String {
    let mut names: Vec<&str> =
        columns.iter().flat_map(|(_, column)| column.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return String::new();
    }
    let row = |name: &str| -> (bool, Vec<String>) {
        let value = |(_, column): &(String, BTreeMap<String, String>)| column.get(name).cloned();
        let values: Vec<String> =
            columns.iter().map(|column| value(column).unwrap_or("–".to_owned())).collect();
        let same = values.windows(2).all(|pair| pair[0] == pair[1]);
        (same, std::iter::once(escape(name)).chain(values.iter().map(|value| escape(value))).collect())
    };
    let mut rows: Vec<(bool, Vec<String>)> = names.iter().map(|name| row(name)).collect();
    rows.sort_by_key(|(same, _)| *same);
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
    let headers: Vec<&str> =
        std::iter::once("setting").chain(columns.iter().map(|(name, _)| name.as_str())).collect();
    let table = table("words", &headers, &rows);
    section(title, "", &format!("<details><summary>{summary}</summary>{table}</details>\n"))
}
