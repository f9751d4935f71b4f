//! The result on a terminal.
//!
//! One label is shown in full: figures, kinds of transactions with latencies, controls, faults, causes.
//! Several are compared, one row each, medians over their repetitions. Tables are laid out for 100 columns;
//! on a narrower terminal columns disappear, the least important first, rather than wrap: a wrapped figure is
//! misread.
//!
//! What casts doubt on the figures comes last, where the eye is: failed checks, a client without processor
//! time, a run that was ended early.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

use super::units;
use crate::metrics::Document;
use crate::metrics::document::{Group, Run};
use crate::metrics::figures::Percentiles;
use crate::metrics::summary::{ClusterThroughput, Spread, scalability};

/// A rule below the titles and nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table whose later columns may go.
struct Columns {
    titles: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// Columns by importance, the least first.
    dispensable: &'static [usize],
}

impl Columns {
    fn render(&self, width: usize) -> String {
        let mut hidden: Vec<usize> = Vec::new();
        let mut rest = self.dispensable.iter();
        loop {
            let text = self.with_hidden(&hidden);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            match rest.next() {
                Some(next) if widest > width => hidden.push(*next),
                _ => return text,
            }
        }
    }

    fn with_hidden(&self, hidden: &[usize]) -> String {
        let shown = || (0..self.titles.len()).filter(|column| !hidden.contains(column));
        let mut table = Table::new();
        table.load_style(STYLE);
        table.set_header(shown().map(|column| Cell::new(self.titles[column])));
        for row in &self.rows {
            table.add_row(shown().map(|column| Cell::new(&row[column])));
        }
        for (i, column) in table.column_iter_mut().enumerate() {
            column.set_padding(if i == 0 { (0, 0) } else { (2, 0) });
            column.set_cell_alignment(if i == 0 { CellAlignment::Left } else { CellAlignment::Right });
        }
        table.trim_fmt() + "\n"
    }
}

/// The document for a terminal of so many columns.
pub fn render(document: &Document, width: usize) -> String {
    let groups = document.groups();
    let mut text = match groups.as_slice() {
        [] => return "Nothing was measured.\n".to_owned(),
        [only] => one(only, width),
        several => compared(several, width),
    };
    text.push_str(&doubts(document));
    text
}

fn one(group: &Group<'_>, width: usize) -> String {
    let run = group.middle();
    let summary = run.summary();
    let about = &run.about;
    let mut text = format!(
        "{}: {} {}, {}, {}\n\n",
        about.label,
        about.database,
        about.database_version,
        plural(u64::from(about.nodes), "node", "nodes"),
        plural(u64::from(about.terminals), "terminal", "terminals"),
    );
    let throughput = Spread::of(group.runs.iter().map(|run| run.throughput_tps()));
    let mut facts = vec![("throughput", spread(throughput, group.runs.len(), "transactions/s"))];
    if let Some(tpmc) = summary.new_orders_per_minute {
        facts.push(("New-Orders", format!("{}/min, without think time", units::rate(tpmc))));
    }
    facts.push(("measured", format!("{} s after {} s of warm-up", summary.seconds, run.warm_up_seconds)));
    facts.push(("aborted", format!("{} of the attempts", units::percent(summary.abort_share))));
    if summary.errors > 0 {
        facts.push(("errors", units::thousands(summary.errors)));
    }
    for outage in &summary.outages {
        let lasted = outage.to_seconds - outage.from_seconds;
        facts.push((
            "outage",
            format!("{} from {} on", units::seconds(lasted), units::moment(outage.from_seconds)),
        ));
    }
    for (name, fact) in facts {
        text.push_str(&format!("{name:<12}{fact}\n"));
    }
    if group.runs.len() > 1 {
        let runs = group.runs.len();
        text.push_str(&format!(
            "\nMedian and range of {runs} repetitions; below is the run of median throughput.\n"
        ));
    }
    for section in [kinds(run), controls(run), availability(run), causes(run)].into_iter().flatten() {
        text.push('\n');
        text.push_str(&section.render(width));
    }
    text
}

fn kinds(run: &Run) -> Option<Columns> {
    let seconds = run.measured().len().max(1) as f64;
    let row = |kind: &crate::metrics::document::Kind| {
        let (committed, aborted) = (run.sum(&kind.committed), run.sum(&kind.aborted));
        let latency = Percentiles::of(kind.felt());
        let us = |us: u64| units::duration_us(us as f64);
        vec![
            kind.name.clone(),
            units::thousands(committed),
            units::rate(committed as f64 / seconds),
            units::percent(aborted as f64 / (committed + aborted).max(1) as f64),
            us(latency.p50_us),
            us(latency.p95_us),
            us(latency.p99_us),
            us(latency.max_us),
        ]
    };
    let ran = run.kinds.iter().filter(|kind| run.sum(&kind.committed) + run.sum(&kind.aborted) > 0);
    let rows: Vec<Vec<String>> = ran.map(row).collect();
    let titles = vec!["transaction", "committed", "per second", "aborted", "p50", "p95", "p99", "max"];
    (!rows.is_empty()).then_some(Columns { titles, rows, dispensable: &[7, 1, 5] })
}

fn controls(run: &Run) -> Option<Columns> {
    let row = |control: &crate::control::track::Control| {
        let overall = control.overall(run.measured())?;
        Some(vec![
            control.name.clone(),
            units::value(overall.intended),
            units::value(overall.achieved),
            units::deviation(overall.deviation()),
            control.unit.clone(),
        ])
    };
    let rows: Vec<Vec<String>> = run.controls.iter().filter_map(row).collect();
    let titles = vec!["control", "intended", "achieved", "deviation", "unit"];
    (!rows.is_empty()).then_some(Columns { titles, rows, dispensable: &[4] })
}

fn availability(run: &Run) -> Option<Columns> {
    let seconds = |seconds: Option<f64>| seconds.map_or("never".to_owned(), units::seconds);
    let judged = run.summary().availability;
    let rows: Vec<Vec<String>> = judged
        .iter()
        .map(|one| {
            vec![
                one.fault.clone(),
                units::rate(one.normal_tps),
                units::rate(one.fault_tps),
                format!("{:.3}", one.r_e),
                seconds(one.recovery_seconds),
                format!("{:.3}", one.t_e),
                one.normal_again_seconds.map_or("-".to_owned(), units::seconds),
            ]
        })
        .collect();
    let titles = vec!["fault", "TPS before", "TPS under it", "R_e", "settled in", "T_e", "normal again"];
    (!rows.is_empty()).then_some(Columns { titles, rows, dispensable: &[6, 1] })
}

fn causes(run: &Run) -> Option<Columns> {
    let of = |what: &'static str, causes: &[crate::metrics::document::Series]| {
        let counts = causes.iter().map(|cause| (cause.name.clone(), run.sum(&cause.counts)));
        counts
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| vec![name, what.to_owned(), units::thousands(count)])
            .collect::<Vec<_>>()
    };
    let rows = [of("rolled back", &run.aborts), of("failed", &run.errors)].concat();
    (!rows.is_empty()).then_some(Columns {
        titles: vec!["cause", "attempts", "count"],
        rows,
        dispensable: &[],
    })
}

fn compared(groups: &[Group<'_>], width: usize) -> String {
    let first = Spread::of(groups[0].runs.iter().map(|run| run.throughput_tps())).median;
    let row = |group: &Group<'_>| {
        let of = |figure: fn(&crate::metrics::figures::Summary) -> f64| {
            Spread::of(group.runs.iter().map(|run| figure(&run.summary())))
        };
        let throughput = of(|summary| summary.throughput_tps);
        let run = group.middle();
        vec![
            group.label.to_owned(),
            run.about.nodes.to_string(),
            units::rate(throughput.median),
            format!("{} to {}", units::short(throughput.min), units::short(throughput.max)),
            if first > 0.0 { format!("{:.2}×", throughput.median / first) } else { "-".to_owned() },
            units::percent(of(|summary| summary.abort_share).median),
            units::duration_us(of(|summary| summary.latency.p50_us as f64).median),
            units::duration_us(of(|summary| summary.latency.p99_us as f64).median),
        ]
    };
    let rows = groups.iter().map(row).collect();
    let titles = vec!["run", "nodes", "tx/s", "range", "ratio", "aborted", "p50", "p99"];
    let mut text = Columns { titles, rows, dispensable: &[3, 6, 1] }.render(width);
    let grown: Vec<Vec<String>> = scalabilities(groups)
        .into_iter()
        .map(|(small, large, of)| vec![small.to_owned(), large.to_owned(), format!("{of:.3}")])
        .collect();
    if !grown.is_empty() {
        text.push('\n');
        let titles = vec!["from", "to", "scalability"];
        text.push_str(&Columns { titles, rows: grown, dispensable: &[] }.render(width));
    }
    text
}

/// Equation 3 for each label and the next larger cluster of the same database.
pub(super) fn scalabilities<'a>(groups: &[Group<'a>]) -> Vec<(&'a str, &'a str, f64)> {
    let throughput = |group: &Group<'_>| ClusterThroughput {
        nodes: group.runs[0].about.nodes,
        tps: Spread::of(group.runs.iter().map(|run| run.throughput_tps())).median,
    };
    let mut sorted: Vec<&Group<'a>> = groups.iter().collect();
    sorted.sort_by_key(|group| (group.runs[0].about.database.as_str(), group.runs[0].about.nodes));
    let pairs = sorted.windows(2).filter(|pair| {
        let [small, large] = [&pair[0].runs[0].about, &pair[1].runs[0].about];
        small.database == large.database
    });
    pairs
        .filter_map(|pair| {
            let of = scalability(throughput(pair[0]), throughput(pair[1]))?;
            Some((pair[0].label, pair[1].label, of))
        })
        .collect()
}

/// Why the figures may be worth nothing.
pub(super) fn doubts_of(run: &Run) -> Vec<String> {
    let summary = run.summary();
    let mut doubts = Vec::new();
    let place = format!("{}, repetition {}", run.about.label, run.about.repetition);
    for check in run.checks.iter().filter(|check| !check.ok) {
        doubts.push(format!("{place}: {} does not hold: {}", check.name, check.detail));
    }
    if summary.client_is_bottleneck {
        let share = units::percent(summary.client_cpu_share.unwrap_or(0.0));
        doubts.push(format!(
            "{place}: the client used {share} of its own processors: it may be what was measured"
        ));
    }
    if run.about.interrupted {
        doubts.push(format!("{place} was ended early: these are the results so far"));
    }
    if summary.seconds == 0 {
        doubts.push(format!("{place} ended within its warm-up: there is nothing to report"));
    }
    doubts
}

fn doubts(document: &Document) -> String {
    let doubts: Vec<String> = document.runs.iter().flat_map(doubts_of).collect();
    let checks: usize = document.runs.iter().map(|run| run.checks.len()).sum();
    if doubts.is_empty() {
        return match checks {
            0 => String::new(),
            1 => "\nThe check holds.\n".to_owned(),
            n => format!("\nAll {n} checks hold.\n"),
        };
    }
    doubts.iter().fold("\n".to_owned(), |text, doubt| text + "! " + doubt + "\n")
}

fn spread(of: Spread, runs: usize, unit: &str) -> String {
    match runs {
        1 => format!("{} {unit}", units::rate(of.median)),
        _ => {
            format!("{} {unit} ({} to {})", units::rate(of.median), units::rate(of.min), units::rate(of.max))
        }
    }
}

pub(super) fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", units::thousands(number), if number == 1 { one } else { many })
}
