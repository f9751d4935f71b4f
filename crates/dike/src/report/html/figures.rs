//! Sections of the page that are charts.

use plimsoll_page::html::{escape, section, table};
use plimsoll_page::svg::{self, Bar};

use super::{Shown, machines};
use crate::control::load::NAME as LOAD;
use crate::metrics::availability::Availability;
use crate::metrics::document::{Fault, Run};
use crate::metrics::figures::Percentiles;
use crate::metrics::summary::{BoxPlot, Spread};
use crate::report::charts::over_time::{self, Band, Line};
use crate::report::charts::{self, Point, Row};
use crate::report::table::{remark, settled};
use crate::report::units;

/// Throughput of all series, if there are several, or of the repetitions of one.
pub fn throughput(shown: &[Shown<'_>]) -> String {
    if shown.len() == 1 && shown[0].group.runs.len() == 1 {
        return String::new();
    }
    let bar = |one: &Shown<'_>| {
        let spread = one.spread(|summary| summary.throughput_tps);
        let repetitions: Vec<f64> = one.group.runs.iter().map(|run| run.throughput_tps()).collect();
        Bar {
            name: one.label().to_owned(),
            figure: format!("{}/s", units::rate(spread.median)),
            value: spread.median,
            tip: format!(
                "{}\nmedian {}/s\n{} to {}/s",
                one.label(),
                units::rate(spread.median),
                units::rate(spread.min),
                units::rate(spread.max)
            ),
            repetitions,
            series: one.series,
            ..Bar::default()
        }
    };
    let bars: Vec<Bar> = shown.iter().map(bar).collect();
    let note = "Committed transactions per second: the median of the repetitions, which are the dots.";
    section("Throughput", note, &svg::bars("Throughput", &bars))
}

/// Faults of all series, by letter: equal faults of several runs are one.
fn faults<'a>(shown: &[Shown<'a>]) -> Vec<(String, &'a Fault)> {
    let mut faults: Vec<&Fault> = Vec::new();
    for fault in shown.iter().flat_map(|one| &one.middle.faults) {
        if !faults.iter().any(|known| known.is_same(fault)) {
            faults.push(fault);
        }
    }
    faults.sort_by(|a, b| a.from_seconds.total_cmp(&b.from_seconds));
    let letter = |i: usize| match u8::try_from(i).ok().filter(|i| *i < 26) {
        Some(i) => char::from(b'A' + i).to_string(),
        None => format!("{}", i + 1),
    };
    faults.into_iter().enumerate().map(|(i, fault)| (letter(i), fault)).collect()
}

/// The warm-up and the faults.
pub(super) fn bands(shown: &[Shown<'_>]) -> Vec<Band> {
    let run = shown[0].middle;
    let mut bands = Vec::new();
    if run.warm_up_seconds > 0 {
        bands.push(Band {
            name: "warm-up".into(),
            from: 0.0,
            to: run.warm_up_seconds as f64,
            fault: false,
            tip: "warm-up: not in any figure".into(),
        });
    }
    let end = shown.iter().map(|one| one.middle.seconds).max().unwrap_or(0) as f64;
    bands.extend(faults(shown).into_iter().map(|(letter, fault)| Band {
        from: fault.from_seconds,
        to: fault.to_seconds.unwrap_or(end),
        fault: true,
        tip: format!("{letter}: {}", said(fault)),
        name: letter,
    }));
    bands
}

/// A fault in words.
fn said(fault: &Fault) -> String {
    let from = units::moment(fault.from_seconds);
    let until = match fault.to_seconds {
        Some(to) => format!("{from} to {}", units::moment(to)),
        None => format!("from {from} on"),
    };
    format!("{} {}, {until}", fault.name, fault.target)
}

/// The colours of series.
fn labels(shown: &[Shown<'_>]) -> String {
    svg::legend(shown.iter().map(|one| (one.label(), Some(one.series))))
}

/// The letters of faults.
fn fault_legend(faults: &[(String, &Fault)]) -> String {
    let entry =
        |(letter, fault): &(String, &Fault)| format!("<li><b>{letter}</b>{}</li>", escape(&said(fault)));
    match faults {
        [] => String::new(),
        faults => format!("<ul class=\"legend\">{}</ul>\n", faults.iter().map(entry).collect::<String>()),
    }
}

/// Throughput over time with what was done to the database, and what went wrong meanwhile.
pub fn over_time(shown: &[Shown<'_>]) -> String {
    let rates = |run: &Run| run.committed_by_second().iter().map(|&n| n as f64).collect::<Vec<_>>();
    let mut lines = Vec::new();
    for one in shown {
        for run in &one.group.runs {
            let faint = !std::ptr::eq(*run, one.middle);
            // Repetitions of several series would hide one another.
            if !faint || shown.len() == 1 {
                let name = format!("{}, repetition {}", one.label(), run.about.repetition);
                lines.push(Line { name, series: Some(one.series), values: rates(run), faint });
            }
        }
    }
    let bands = bands(shown);
    let mut content = over_time::lines("Throughput over time", &lines, &bands, 240);
    if shown.len() > 1 {
        content.push_str(&labels(shown));
    }
    content.push_str(&fault_legend(&faults(shown)));
    content.push_str(&machines::journal(shown));
    let troubles = troubles(shown);
    if !troubles.is_empty() {
        content.push_str(&format!(
            "<h3>Aborted and failed attempts, terminals without a connection</h3>\n<div class=\"grid\">{troubles}</div>\n"
        ));
    }
    section("Over time", "Committed transactions per second.", &content)
}

/// Small charts of what went wrong, per second, where anything did.
fn troubles(shown: &[Shown<'_>]) -> String {
    let add = |causes: &[crate::metrics::document::Series], seconds: u64| {
        let mut sums = vec![0.0; seconds as usize];
        for cause in causes {
            sums.iter_mut().zip(&cause.counts).for_each(|(sum, &count)| *sum += count as f64);
        }
        sums
    };
    type Of<'a> = Box<dyn Fn(&Run) -> Vec<f64> + 'a>;
    let kinds: [(&str, Of<'_>); 3] = [
        ("aborted attempts per second", Box::new(move |run| add(&run.aborts, run.seconds))),
        ("failed attempts per second", Box::new(move |run| add(&run.errors, run.seconds))),
        ("terminals without a connection", Box::new(|run| run.offline_terminals.clone())),
    ];
    let mut html = String::new();
    for (name, of) in kinds {
        let lines: Vec<Line> = shown
            .iter()
            .map(|one| Line {
                name: format!("{}: {name}", one.label()),
                series: Some(one.series),
                values: of(one.middle),
                faint: false,
            })
            .collect();
        if lines.iter().any(|line| line.values.iter().any(|value| *value > 0.0)) {
            let chart = over_time::lines(name, &lines, &bands(shown), 90);
            html.push_str(&format!("<figure><figcaption>{}</figcaption>{chart}</figure>\n", escape(name)));
        }
    }
    html
}

/// The paper's plane of R_e and T_e, and outages.
pub fn availability(shown: &[Shown<'_>]) -> String {
    let letters = faults(shown);
    let letter = |of: &Availability| {
        let same =
            |known: &Fault| known.name == of.fault && (known.from_seconds - of.from_seconds).abs() < 1.0;
        let known = letters.iter().find(|(_, known)| same(known));
        known.map_or("?".to_owned(), |(letter, _)| letter.clone())
    };
    let mut points = Vec::new();
    let mut rows = Vec::new();
    for one in shown {
        for of in &one.summary.availability {
            let settled = settled(of);
            let mut fault = format!("{} {}", of.fault, of.target);
            fault.extend(remark(of).map(|remark| format!(" ({remark})")));
            let name = if shown.len() == 1 { fault } else { format!("{}: {fault}", one.label()) };
            // A point needs both.
            if let (Some(r_e), Some(t_e)) = (of.r_e, of.t_e) {
                points.push(Point {
                    tip: format!("{name}\nR_e {r_e:.3}, T_e {t_e:.3}\nstable after {settled}"),
                    name: letter(of),
                    series: one.series,
                    x: t_e,
                    y: r_e,
                });
            }
            let unknown = || "–".to_owned();
            rows.push(vec![
                escape(&name),
                units::moment(of.lasted_seconds),
                of.normal_tps.map_or_else(unknown, units::rate),
                of.fault_tps.map_or_else(unknown, units::rate),
                of.r_e.map_or_else(unknown, |r_e| format!("{r_e:.3}")),
                of.settled_tps.map_or_else(unknown, units::rate),
                settled,
                of.t_e.map_or_else(unknown, |t_e| format!("{t_e:.3}")),
                of.normal_again_seconds.map_or_else(unknown, units::moment),
            ]);
        }
    }
    let outages: Vec<Vec<String>> = shown
        .iter()
        .flat_map(|one| one.summary.outages.iter().map(move |outage| (one, outage)))
        .map(|(one, outage)| {
            vec![
                escape(one.label()),
                units::moment(outage.from_seconds),
                units::moment(outage.to_seconds),
                units::moment(outage.to_seconds - outage.from_seconds),
            ]
        })
        .collect();
    if rows.is_empty() && outages.is_empty() {
        return String::new();
    }
    let mut content = String::new();
    if !rows.is_empty() {
        let plane = charts::plane("Availability", "T_e, recovery", "R_e, throughput kept", &points);
        let headers = [
            "fault",
            "lasted",
            "TPS before",
            "TPS under it",
            "R_e",
            "TPS settled",
            "stable after",
            "T_e",
            "normal again after",
        ];
        let legend = if shown.len() > 1 { labels(shown) } else { String::new() };
        let named = fault_legend(&letters);
        content.push_str(&format!(
            "<div class=\"plane\">{plane}</div>\n{legend}{named}{}",
            table("", &headers, &rows)
        ));
    }
    if !outages.is_empty() {
        let headers = ["seconds without a commit", "from", "to", "lasted"];
        content.push_str(&table("", &headers, &outages));
    }
    let note = "R_e = 1 − |TPS_e − TPS_n| / TPS_n is how much throughput a fault leaves; T_e = 1 / (t + 1) falls with \
                the seconds t until it is stable again. Good is at the upper right.";
    let changes = |one: &Shown<'_>| {
        let load = one.middle.controls.iter().find(|control| control.name == LOAD);
        let intended = load.and_then(|load| load.intended.get(one.middle.measured())).unwrap_or(&[]);
        let spread = Spread::of(intended.iter().copied());
        spread.max > 1.05 * spread.min
    };
    let warning = if !rows.is_empty() && shown.iter().any(changes) {
        "<div class=\"banner warn\">The load was meant to change during the run: R_e compares throughput under \
         different loads.</div>\n"
    } else {
        ""
    };
    section("Availability", note, &format!("{warning}{content}"))
}

/// Heat maps of latency, one per series.
pub fn heat(shown: &[Shown<'_>]) -> String {
    let Some(classes) = over_time::heat_classes(shown.iter().map(|one| &one.middle.heat)) else {
        return String::new();
    };
    let maps: Vec<String> = shown
        .iter()
        .map(|one| {
            let label = format!("Latency of {}", one.label());
            let map = over_time::heat(&label, &one.middle.heat, one.series, classes);
            let caption = if shown.len() == 1 {
                String::new()
            } else {
                format!("<figcaption>{}</figcaption>", escape(one.label()))
            };
            format!("<figure>{caption}{map}</figure>\n")
        })
        .collect();
    let content = match maps.len() {
        1 => maps.concat(),
        _ => format!("<div class=\"grid\">{}</div>\n", maps.concat()),
    };
    let note = "Each cell is the share of a moment's transactions that had such a latency; the stronger its \
                colour, the more. Pale cells at the top are the slow few.";
    section("Latency over time", note, &content)
}

/// Percentiles of each kind of transaction.
pub fn latency(shown: &[Shown<'_>]) -> String {
    let mut rows = Vec::new();
    let kinds = shown[0].middle.kinds.iter().map(|kind| kind.name.clone());
    for name in kinds {
        for one in shown {
            let run = one.middle;
            let Some(kind) = run.kinds.iter().find(|kind| kind.name == name) else { continue };
            let of = Percentiles::of(kind.felt());
            if kind.felt().count() == 0 {
                continue;
            }
            let percentiles = [
                ("median", of.p50_us),
                ("90%", of.p90_us),
                ("99%", of.p99_us),
                ("99.9%", of.p999_us),
                ("slowest", of.max_us),
            ];
            rows.push(Row {
                name: if shown.len() == 1 { name.clone() } else { format!("{name}: {}", one.label()) },
                series: one.series,
                percentiles: percentiles.map(|(name, us)| (name, us as f64)).to_vec(),
            });
        }
    }
    let chart = charts::percentiles("Latency percentiles", &rows);
    if chart.is_empty() {
        return String::new();
    }
    let open = shown.iter().any(|one| one.middle.kinds.iter().any(|kind| kind.response.count() > 0));
    let note = if open {
        "Dots: median, 90, 99, 99.9 per cent, slowest. Arrivals did not wait for the database, so latency counts from \
         when a transaction was meant to start."
    } else {
        "Dots: median, 90, 99, 99.9 per cent, slowest; from a transaction's start to its commit, retries included. A \
         terminal waits for its transaction before it starts the next one."
    };
    section("Latency", note, &chart)
}

/// Box plots of data and operations over the nodes.
pub fn nodes(shown: &[Shown<'_>]) -> String {
    let bytes = |bytes: f64| units::bytes(bytes.round() as u64);
    let rate = |rate: f64| format!("{}/s", units::short(rate));
    let mut content = String::new();
    let of = |figure: fn(&Shown<'_>) -> Option<BoxPlot>| {
        let row = |one: &Shown<'_>| figure(one).map(|plot| (one.label().to_owned(), one.series, plot));
        shown.iter().filter_map(row).collect::<Vec<_>>()
    };
    let data = of(|one| one.summary.data_bytes);
    let operations = of(|one| one.summary.operations_per_second);
    for (title, rows, say) in [
        ("Data per node", data, bytes as fn(f64) -> String),
        ("Operations per second and node", operations, rate as fn(f64) -> String),
    ] {
        if !rows.is_empty() {
            let chart = charts::boxes(title, &rows, say);
            content.push_str(&format!("<figure><figcaption>{title}</figcaption>{chart}</figure>\n"));
        }
    }
    if content.is_empty() {
        return String::new();
    }
    let mut rows = Vec::new();
    for one in shown {
        for node in &one.middle.nodes {
            let name =
                if shown.len() == 1 { node.node.clone() } else { format!("{}: {}", one.label(), node.node) };
            rows.push(vec![
                escape(&name),
                node.data_bytes.map_or("–".into(), units::bytes),
                node.operations_per_second.map_or("–".into(), |of| format!("{}/s", units::rate(of))),
            ]);
        }
    }
    let table = table("", &["node", "data", "operations"], &rows);
    let content = format!(
        "<div class=\"grid\">{content}</div>\n<details><summary>Every node</summary>{table}</details>\n"
    );
    let note = "How evenly nodes share data and work. The line is the range over the nodes, the box its middle half.";
    section("Schedulability", note, &content)
}
