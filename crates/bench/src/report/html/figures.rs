//! The page's charted sections.

use plimsoll_page::html::{escape, section, table};
use plimsoll_page::svg::{self, Bar};
use plimsoll_page::units::{self, plural};

use super::super::charts::{self, Group, Series, Stack};
use super::super::model::{Aborts, Document, Latency, Run, Spread, per};
use super::super::table::reason_title;
use super::{PairRuns, count};

/// Committed transactions per second by pair; a single run has its figure in the summary.
pub fn throughput(document: &Document, pairs: &[PairRuns<'_>]) -> String {
    if document.runs.len() < 2 {
        return String::new();
    }
    let bar = |pair: &PairRuns<'_>| {
        let spread = pair.spread(|run| run.throughput_tps);
        let ratio = document.ratio_of(&pair.name).map(|ratio| {
            let range = units::span(format!("{:.3}", ratio.min), format!("{:.3}", ratio.max));
            (units::ratio(ratio.median), format!("\n{range} × {}", ratio.to))
        });
        let (ratio, ratio_tip) = ratio.unwrap_or_default();
        Bar {
            name: pair.name.clone(),
            figure: format!("{}/s", units::rate(spread.median)),
            ratio,
            value: spread.median,
            repetitions: pair.runs.iter().map(|run| run.throughput_tps).collect(),
            series: pair.colour,
            yardstick: if pair.yardstick() { "not serializable" } else { "" },
            tip: format!(
                "{}: {}/s\n{}/s in {}{ratio_tip}",
                pair.name,
                units::rate(spread.median),
                units::span(units::rate(spread.min), units::rate(spread.max)),
                plural(pair.runs.len() as u64, "run", "runs")
            ),
        }
    };
    let mut note = "Transactions committed per second, all types.".to_owned();
    if let Some(ratio) = document.ratios.first() {
        note.push_str(&format!(
            " Bars are medians, dots the repetitions; ratios are to {}, taken within each repetition.",
            ratio.to
        ));
    }
    let chart = svg::bars("Throughput by pair", &pairs.iter().map(bar).collect::<Vec<_>>());
    section("Throughput", &note, &chart)
}

/// Processor time by pair; nothing to compare with a single one.
pub fn processor_time(document: &Document, pairs: &[PairRuns<'_>]) -> String {
    if pairs.len() < 2 {
        return String::new();
    }
    let bar = |pair: &PairRuns<'_>| {
        let spread = pair.spread(Run::cpu_us_per_transaction);
        let ratio = document.ratio_of(&pair.name).map(|ratio| units::ratio(ratio.cpu.median));
        Bar {
            name: pair.name.clone(),
            figure: units::duration_us(spread.median),
            ratio: ratio.unwrap_or_default(),
            value: spread.median,
            repetitions: pair.runs.iter().map(|run| run.cpu_us_per_transaction()).collect(),
            series: pair.colour,
            yardstick: if pair.yardstick() { "not serializable" } else { "" },
            tip: format!(
                "{}: {} per transaction\n{}",
                pair.name,
                units::duration_us(spread.median),
                units::span(units::duration_us(spread.min), units::duration_us(spread.max))
            ),
        }
    };
    let note = "Of the whole process, timestamp oracle included, per committed transaction. It varies less from \
                run to run than throughput does.";
    let chart = svg::bars("Processor time per transaction", &pairs.iter().map(bar).collect::<Vec<_>>());
    section("Processor time per transaction", note, &chart)
}

/// Percentiles by transaction type.
pub fn latency(document: &Document, pairs: &[PairRuns<'_>]) -> String {
    let groups: Vec<Group> = match pairs {
        [only] => {
            let types = only.middle.transactions.iter();
            let rows = types.map(|(name, of)| (name.to_owned(), only.colour, of.latency_us)).collect();
            vec![Group { name: String::new(), rows }]
        }
        _ => document
            .type_names()
            .into_iter()
            .map(|name| {
                let row = |pair: &PairRuns<'_>| {
                    let of = pair.middle.transactions.get(name)?;
                    Some((pair.name.clone(), pair.colour, of.latency_us))
                };
                Group { name: name.to_owned(), rows: pairs.iter().filter_map(row).collect() }
            })
            .collect(),
    };
    let note = "From the first attempt's start to the answer, retries included; logarithmic. From the left: p50, \
                p90, p99, p99.9 and the maximum.";
    let chart = charts::percentiles("Latency percentiles by transaction type", &groups);
    section("Latency", note, &(chart + &medians(document, pairs)))
}

/// Median and 99th percentile of each transaction type, pairs beside each other: medians over the
/// repetitions. A single pair has its own table.
fn medians(document: &Document, pairs: &[PairRuns<'_>]) -> String {
    if pairs.len() < 2 {
        return String::new();
    }
    let titles = pairs.iter().flat_map(|pair| ["p50", "p99"].map(|title| format!("{} {title}", pair.name)));
    let titles: Vec<String> = titles.collect();
    let headers: Vec<&str> = std::iter::once("").chain(titles.iter().map(String::as_str)).collect();
    let row = |name: &str| {
        let cells = pairs.iter().flat_map(|pair| {
            let of = |figure: fn(&Latency) -> f64| {
                let types = pair.runs.iter().filter_map(|run| run.transactions.get(name));
                units::duration_us(Spread::of(types.map(|one| figure(&one.latency_us))).median)
            };
            [of(|latency| latency.p50), of(|latency| latency.p99)]
        });
        std::iter::once(escape(name)).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = document.type_names().into_iter().map(row).collect();
    table("", &headers, &rows)
}

/// Throughput in the course of each run.
pub fn over_time(pairs: &[PairRuns<'_>]) -> String {
    let series: Vec<Series> = pairs
        .iter()
        .flat_map(|pair| pair.runs.iter().map(move |run| (pair, run)))
        .map(|(pair, run)| Series {
            name: match pair.runs.len() {
                1 => pair.name.clone(),
                _ => format!("{}, repetition {}", pair.name, run.repetition),
            },
            colour: pair.colour,
            figures: run.timeline.throughput_tps.clone(),
            interval_seconds: run.timeline.interval_seconds,
            faint: !std::ptr::eq(*run, pair.middle),
            yardstick: pair.yardstick(),
        })
        .collect();
    let chart = charts::lines("Throughput over time", &series);
    if chart.is_empty() {
        return String::new();
    }
    let legend = if pairs.len() > 1 { pair_legend(pairs) } else { String::new() };
    section("Over time", "Transactions committed per second.", &(chart + &legend))
}

/// What was wasted, and what became of read-only transactions.
pub fn aborts(pairs: &[PairRuns<'_>]) -> String {
    let occurred: Vec<(usize, &str)> = Aborts::default()
        .iter()
        .map(|(reason, _)| reason)
        .enumerate()
        .filter(|(_, reason)| pairs.iter().any(|pair| count(&pair.middle.aborts, reason) > 0))
        .collect();
    if occurred.is_empty() {
        return section("Aborts", "Not one attempt aborted.", "");
    }
    let stack = |pair: &PairRuns<'_>| {
        let run = pair.middle;
        let attempts = run.attempts() as f64;
        let parts: Vec<(usize, f64, String)> = occurred
            .iter()
            .map(|(colour, reason)| {
                let aborted = count(&run.aborts, reason);
                let share = per(aborted as f64, attempts);
                let tip = format!(
                    "{}: {}\n{} of attempts, {} in all",
                    pair.name,
                    reason_title(reason),
                    units::percent(share),
                    units::thousands(aborted)
                );
                (*colour, share, tip)
            })
            .collect();
        let sum = per(run.aborts.total() as f64, attempts);
        Stack { name: pair.name.clone(), figure: units::percent(sum), parts }
    };
    let note = "Aborted attempts by reason, in percent of all attempts. Roll-backs are part of the workload and \
                happen under every pair.";
    let chart = charts::stacks("Aborted attempts by reason", &pairs.iter().map(stack).collect::<Vec<_>>());
    let titles: Vec<(String, usize)> =
        occurred.iter().map(|(colour, reason)| (reason_title(reason), *colour)).collect();
    let legend = svg::legend(titles.iter().map(|(reason, colour)| (reason.as_str(), Some(*colour))));
    let mut headers = vec![""];
    headers.extend(titles.iter().map(|(reason, _)| reason.as_str()));
    headers.extend(["read-only: aborts", "restarts", "waits"]);
    let row = |pair: &PairRuns<'_>| {
        let run = pair.middle;
        let attempts = run.attempts() as f64;
        let share =
            |(_, reason): &(usize, &str)| units::percent(per(count(&run.aborts, reason) as f64, attempts));
        let counts = [run.read_only_aborts, run.read_only_restarts, run.read_only_waits];
        std::iter::once(pair.cell())
            .chain(occurred.iter().map(share))
            .chain(counts.map(units::thousands))
            .collect()
    };
    let rows: Vec<Vec<String>> = pairs.iter().map(row).collect();
    section("Aborts", note, &(chart + &legend + &table("", &headers, &rows)))
}

/// The colours of the pairs.
pub fn pair_legend(pairs: &[PairRuns<'_>]) -> String {
    svg::legend(pairs.iter().map(|pair| (pair.name.as_str(), Some(pair.colour))))
}
