//! The result on a terminal.
//!
//! One series is shown in full: figures, kinds of transactions with latencies, controls, faults,
//! causes. Several are compared, one row each, medians over their repetitions. Tables are laid out
//! for 100 columns; on a narrower terminal columns disappear, the least important first, rather
//! than wrap: a wrapped figure is misread.
//!
//! What casts doubt on the figures comes last, where the eye is: failed checks, a client without
//! processor time, a run that was ended early.

use plimsoll_page::table::Columns;

use super::units::{self, plural};
use crate::metrics::Document;
use crate::metrics::availability::Availability;
use crate::metrics::document::Run;
use crate::metrics::environment;
use crate::metrics::figures::Percentiles;
use crate::metrics::series::{Group, scalabilities};
use crate::metrics::summary::Spread;

/// The document for a terminal of so many columns.
pub fn render(document: &Document, width: usize) -> String {
    let groups = document.groups();
    let mut text = match groups.as_slice() {
        [] => return "Nothing was measured.\n".to_owned(),
        [only] => one(only, width),
        several => compared(several, width),
    };
    text.push_str(&doubts(document, &groups));
    text
}

fn one(group: &Group<'_>, width: usize) -> String {
    let run = group.middle();
    let summary = run.summary();
    let about = &run.about;
    let mut text = format!(
        "{}: {} {}, {}, {}\n\n",
        group.name,
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
    if let Some((share, own)) = summary.client_cpu_share.zip(summary.client_own_cpu_share) {
        let (share, own) = (units::percent(share), units::percent(own));
        facts.push(("client", format!("used {own} of its processors, which were {share} busy")));
    }
    facts.extend(environment::line(&about.server).map(|line| ("server", line)));
    facts.extend(about.client_machines.iter().map(|machine| ("client on", machine.to_string())));
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
        text.push_str(&folded(name, &fact, width));
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
    for one in &summary.availability {
        let remark = remark(one).map(|remark| format!("{} {}: {remark}\n", one.fault, one.target));
        text.push_str(&remark.unwrap_or_default());
    }
    text.push_str(&said(run));
    text
}

/// A fact after its name. A list that is wider than the terminal goes on below its first word.
fn folded(name: &str, fact: &str, width: usize) -> String {
    const INDENT: usize = 12;
    let mut text = format!("{name:<INDENT$}");
    let mut used = INDENT;
    for (at, part) in fact.split_inclusive(", ").enumerate() {
        let wide = part.trim_end().chars().count();
        if at > 0 && used + wide > width {
            text.truncate(text.trim_end().len());
            text.push_str(&format!("\n{:INDENT$}", ""));
            used = INDENT;
        }
        text.push_str(part);
        used += part.chars().count();
    }
    text + "\n"
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
    let headers = [
        ("transaction", 0),
        ("committed", 2),
        ("per second", 0),
        ("aborted", 0),
        ("p50", 0),
        ("p95", 1),
        ("p99", 0),
        ("max", 3),
    ];
    columns(&headers, rows)
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
    let headers = [("control", 0), ("intended", 0), ("achieved", 0), ("deviation", 0), ("unit", 1)];
    columns(&headers, rows)
}

fn availability(run: &Run) -> Option<Columns> {
    let judged = run.summary().availability;
    let row = |one: &Availability| {
        let unknown = || "-".to_owned();
        vec![
            format!("{} {}", one.fault, one.target),
            units::moment(one.lasted_seconds),
            one.normal_tps.map_or_else(unknown, units::rate),
            one.fault_tps.map_or_else(unknown, units::rate),
            one.r_e.map_or_else(unknown, |r_e| format!("{r_e:.3}")),
            settled(one),
            one.t_e.map_or_else(unknown, |t_e| format!("{t_e:.3}")),
            one.normal_again_seconds.map_or_else(unknown, units::seconds),
        ]
    };
    let rows: Vec<Vec<String>> = judged.iter().map(row).collect();
    let headers = [
        ("fault", 0),
        ("lasted", 1),
        ("TPS before", 3),
        ("TPS under it", 0),
        ("R_e", 0),
        ("settled in", 0),
        ("T_e", 0),
        ("normal again", 2),
    ];
    columns(&headers, rows)
}

/// What else held with a fault, and why it has no figures; nothing if neither.
pub(super) fn remark(one: &Availability) -> Option<String> {
    let with = (!one.together_with.is_empty())
        .then(|| format!("measured together with {}", one.together_with.join(" and ")));
    let remarks: Vec<String> = one.not_measured.clone().into_iter().chain(with).collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// In how many seconds throughput was stable.
pub(super) fn settled(one: &Availability) -> String {
    match (one.recovery_seconds, one.t_e) {
        (Some(seconds), _) => units::moment(seconds),
        (None, Some(_)) => "never".to_owned(),
        (None, None) => "-".to_owned(),
    }
}

fn causes(run: &Run) -> Option<Columns> {
    let of = |what: &'static str, causes: &[crate::metrics::document::Series]| {
        let counts = causes.iter().map(|cause| (cause, run.sum(&cause.counts)));
        counts
            .filter(|(_, count)| *count > 0)
            .map(|(cause, count)| vec![cause.name.clone(), what.to_owned(), units::thousands(count)])
            .collect::<Vec<_>>()
    };
    let rows = [of("rolled back", &run.aborts), of("failed", &run.errors)].concat();
    columns(&[("cause", 0), ("attempts", 0), ("count", 0)], rows)
}

/// What was said first with each cause: too long for a column.
fn said(run: &Run) -> String {
    let counted = |cause: &&crate::metrics::document::Series| run.sum(&cause.counts) > 0;
    let causes = run.aborts.iter().chain(&run.errors).filter(counted);
    let said = causes.filter_map(|cause| Some((&cause.name, cause.first.as_ref()?)));
    let line = |(name, said): (&String, &crate::metrics::document::Said)| {
        format!("first {name}, at {}: {said}\n", units::moment(said.at_seconds))
    };
    said.map(line).collect()
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
            group.name.clone(),
            run.about.nodes.to_string(),
            units::rate(throughput.median),
            units::range(throughput.min, throughput.max),
            if first > 0.0 { units::ratio(throughput.median / first) } else { "-".to_owned() },
            units::percent(of(|summary| summary.abort_share).median),
            units::duration_us(of(|summary| summary.latency.p50_us as f64).median),
            units::duration_us(of(|summary| summary.latency.p99_us as f64).median),
        ]
    };
    let headers = [
        ("run", 0),
        ("nodes", 1),
        ("tx/s", 0),
        ("range", 3),
        ("ratio", 0),
        ("aborted", 0),
        ("p50", 2),
        ("p99", 0),
    ];
    let compared = columns(&headers, groups.iter().map(row).collect());
    let grown: Vec<Vec<String>> = scalabilities(groups)
        .into_iter()
        .map(|(small, large, of)| vec![small.to_owned(), large.to_owned(), format!("{of:.3}")])
        .collect();
    let grown = columns(&[("from", 0), ("to", 0), ("scalability", 0)], grown);
    let tables: Vec<String> = [compared, grown].iter().flatten().map(|table| table.render(width)).collect();
    tables.join("\n")
}

/// A table of these rows, if there are any.
fn columns(headers: &[(&str, usize)], rows: Vec<Vec<String>>) -> Option<Columns> {
    let mut columns = Columns::new(headers, false);
    let any = !rows.is_empty();
    rows.into_iter().for_each(|row| columns.push(row));
    any.then_some(columns)
}

/// Why the figures of any run may be worth nothing.
pub(super) fn doubts_of_all(groups: &[Group<'_>]) -> Vec<String> {
    let mut doubts = Vec::new();
    for group in groups {
        let mut said: Vec<String> = Vec::new();
        for sentence in group.runs.iter().flat_map(|run| environment::not_durable(&run.about.server)) {
            if !said.contains(&sentence) {
                said.push(sentence);
            }
        }
        doubts.extend(said.into_iter().map(|sentence| format!("{}: {sentence}", group.name)));
        doubts.extend(group.runs.iter().flat_map(|run| doubts_of(&group.name, run)));
    }
    doubts
}

fn doubts_of(name: &str, run: &Run) -> Vec<String> {
    let summary = run.summary();
    let mut doubts = Vec::new();
    let place = format!("{name}, repetition {}", run.about.repetition);
    for check in run.checks.iter().filter(|check| !check.ok) {
        doubts.push(format!("{place}: {} does not hold: {}", check.name, check.detail));
    }
    if summary.client_is_bottleneck {
        let share = units::percent(summary.client_cpu_share.unwrap_or(0.0));
        let own = summary.client_own_cpu_share.map(|own| format!(", {} by itself", units::percent(own)));
        let own = own.unwrap_or_default();
        doubts.push(format!(
            "{place}: the client's processors were {share} busy{own}: it may be what was measured"
        ));
    }
    let never = run.never_committed();
    if !never.is_empty() {
        let causes = run.aborts.iter().chain(&run.errors);
        let most = causes.filter(|cause| cause.first.is_some()).max_by_key(|cause| run.sum(&cause.counts));
        let why = most.and_then(|cause| cause.first.as_ref());
        let why = why.map(|said| format!("; what was said most often began with {said}")).unwrap_or_default();
        doubts.push(format!("{place}: no {} has committed{why}", never.join(" and no ")));
    }
    if run.about.interrupted {
        doubts.push(format!("{place} was ended early: these are the results so far"));
    }
    let last = run.seconds.saturating_sub(1) as usize;
    let offline = run.offline_terminals.get(last).is_some_and(|offline| *offline > 0.0);
    let failing = run.errors.iter().any(|cause| cause.counts.get(last).is_some_and(|count| *count > 0));
    if let Some(outage) = summary.outages.last().filter(|outage| outage.to_seconds >= run.seconds as f64)
        && (offline || failing)
    {
        let from = units::moment(outage.from_seconds);
        doubts.push(format!("{place}: the database did not come back: nothing was committed from {from} on"));
    }
    if summary.seconds == 0 {
        doubts.push(format!("{place} ended within its warm-up: there is nothing to report"));
    }
    doubts
}

fn doubts(document: &Document, groups: &[Group<'_>]) -> String {
    let doubts = doubts_of_all(groups);
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
