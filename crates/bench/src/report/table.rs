//! The result on a terminal.
//!
//! [`render`] shows one run in full (transaction types with latencies, aborts by reason, totals,
//! checks), several runs as one row per pair, and an axis of loads as one row per pair and load.
//! Tables are laid out for 100 columns. On a narrower terminal columns disappear, the least
//! important first, rather than wrap: a wrapped figure is misread. Text wraps.
//!
//! Colour marks only what went wrong or must not be overlooked, and only on a terminal without
//! `NO_COLOR`. Without a terminal the width is 100, so that a captured result is the same
//! everywhere.
//!
//! Left out: themes, and the latency histogram itself. The HTML page and the JSON have more.

use plimsoll_page::table::Columns;
use plimsoll_page::terminal::{Terminal, wrap};
use plimsoll_page::units;
use plimsoll_workloads::registry::Registration;

use super::model::{Aborts, Check, DiskFigures, Document, Latency, Link, Run, Spread, per};

/// Checks that hold whose names are shown.
const NAMES_MAX: usize = 24;

/// What the figure marked with a star is not.
const TPMC_NOTE: &str = "* New-Orders per minute without keying and think times: not an audited tpmC.";
const TPSE_NOTE: &str = "* Trade-Results per second without think times: not an audited tpsE.";

/// Failed checks that are shown in full.
const FAILURES_MAX: usize = 20;

/// The whole document: a run alone in full, several as a comparison.
pub fn render(document: &Document, terminal: Terminal) -> String {
    let text = match document.runs.as_slice() {
        _ if document.has_loads() => loads(document, terminal),
        [] => "Nothing was measured.\n".to_owned(),
        [only] => run(only, terminal),
        _ => comparison(document, terminal),
    };
    text + &doubts(&document.doubts, terminal)
}

/// What casts doubt on figures, where the eye is last.
pub fn doubts(doubts: &[String], terminal: Terminal) -> String {
    let mut text = String::new();
    for (i, doubt) in doubts.iter().take(FAILURES_MAX).enumerate() {
        let label = if i == 0 { "doubt" } else { "" };
        let sentence = wrap(&format!("! {doubt}"), terminal.width, LABEL);
        text.push_str(&format!("{label:<LABEL$}{}\n", terminal.red(sentence.trim_end())));
    }
    text
}

/// One run.
pub fn run(run: &Run, terminal: Terminal) -> String {
    let note = match (run.new_orders_per_minute, run.trade_results_per_second) {
        (Some(_), _) => format!("\n{}", wrap(TPMC_NOTE, terminal.width, 0)),
        (_, Some(_)) => format!("\n{}", wrap(TPSE_NOTE, terminal.width, 0)),
        (None, None) => String::new(),
    };
    figures(run, terminal) + &checks(&[run], terminal) + &note
}

/// All of a run but its checks.
fn figures(run: &Run, terminal: Terminal) -> String {
    let mut text = heading(run, &run.pair(), &units::seconds(run.seconds), terminal);
    if !run.serializable {
        text.push_str(&terminal.red("NOT SERIALIZABLE: only a yardstick"));
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&transactions(run).render(terminal.width));
    text.push('\n');
    if run.aborts.total() > 0 {
        text.push_str(&abort_reasons(run).render(terminal.width));
        text.push('\n');
    }
    text.push_str(&disks(&[run], terminal));
    for (label, value) in totals(run) {
        text.push_str(&labelled(label, &value, terminal.width));
    }
    text
}

/// Several runs: one row per pair, then the checks of all.
fn comparison(document: &Document, terminal: Terminal) -> String {
    let pairs = document.pairs();
    let first = &document.runs[0];
    let runs = document.runs_of(&pairs[0]).len();
    let what = compared(document, &pairs);
    let times = format!("{runs} × {} each", units::seconds(first.seconds));
    let mut text = heading(first, &what, &times, terminal);
    text.push('\n');
    text.push_str(&pairs_table(document, &pairs).render(terminal.width));
    text.push('\n');
    // A single pair is shown in full below.
    if pairs.len() > 1 {
        text.push_str(&latency_table(document, &pairs).render(terminal.width));
        text.push('\n');
    }
    text.push_str(&disks(&document.runs.iter().collect::<Vec<_>>(), terminal));
    if document.runs.iter().any(|run| !run.serializable) {
        let note = "NO: not serializable, only a yardstick.";
        text.push_str(&terminal.red(&wrap(note, terminal.width, 0)));
    }
    if let Some(ratio) = document.ratios.first() {
        let note = format!(
            "Ratios are to {}, taken within each repetition: median and range. CPU is processor time per \
             committed transaction.",
            ratio.to
        );
        text.push_str(&wrap(&note, terminal.width, 0));
    }
    text.push('\n');
    if let [pair] = pairs.as_slice() {
        let mut runs = document.runs_of(pair);
        runs.sort_by(|a, b| a.throughput_tps.total_cmp(&b.throughput_tps));
        text.push_str(&format!("The run of median throughput:\n{}", figures(runs[runs.len() / 2], terminal)));
    }
    text.push_str(&checks(&document.runs.iter().collect::<Vec<_>>(), terminal));
    text
}

/// An axis of loads: one row per pair and load, then the checks of all runs.
fn loads(document: &Document, terminal: Terminal) -> String {
    let pairs = document.pairs();
    let runs: Vec<&Run> = document.all_runs().collect();
    let what = compared(document, &pairs);
    let repetitions = document.points.iter().map(|point| point.runs).max().unwrap_or(0);
    let times = match repetitions {
        0 | 1 => format!("{} each", units::seconds(runs[0].seconds)),
        _ => format!("{repetitions} × {} each", units::seconds(runs[0].seconds)),
    };
    let mut text = heading(runs[0], &what, &times, terminal);
    text.push('\n');
    if document.points.is_empty() {
        text.push_str("Not one load was measured to its end.\n");
    } else {
        text.push_str(&loads_table(document, &pairs).render(terminal.width));
    }
    text.push('\n');
    text.push_str(&disks(&runs, terminal));
    let yardsticks =
        pairs.iter().filter(|pair| runs.iter().any(|run| run.pair() == **pair && !run.serializable));
    for pair in yardsticks {
        let note = format!("{pair} is NOT SERIALIZABLE, only a yardstick.");
        text.push_str(&terminal.red(&wrap(&note, terminal.width, 0)));
    }
    if let Some(peaks) = peaks(document) {
        text.push_str(&wrap(&peaks, terminal.width, 0));
    }
    if runs.iter().any(|run| run.memory_full) {
        text.push_str(&wrap("Runs ended early: memory was full, see --memory.", terminal.width, 0));
    }
    if document.interrupted {
        text.push_str(&wrap("Interrupted: these are the loads so far.", terminal.width, 0));
    }
    text + &checks(&runs, terminal)
}

/// What a comparison is between.
fn compared(document: &Document, pairs: &[String]) -> String {
    let durabilities = || document.runs.iter().filter_map(|run| run.durability.as_ref());
    match pairs {
        [only] => only.clone(),
        [first, ..] if durabilities().next().is_some() => {
            let pair = first.split(' ').next().unwrap_or_default();
            match pairs.iter().all(|other| other.split(' ').next() == Some(pair)) {
                true => format!("{pair}, {} durabilities", pairs.len()),
                false => format!("{} pairs with durabilities", pairs.len()),
            }
        }
        _ => format!("{} pairs", pairs.len()),
    }
}

/// What shares are shares of, in sentences; none if loads are not shares.
pub fn peaks(document: &Document) -> Option<String> {
    let peak = |pair: &String| {
        let peak = document.peak_of(pair)?;
        let concurrency = peak.at_load.as_deref().unwrap_or_default();
        Some(format!("{pair} {}/s ({concurrency} in flight per shard)", units::rate(peak.throughput_tps)))
    };
    let peaks: Vec<String> = document.pairs().iter().filter_map(peak).collect();
    (!peaks.is_empty())
        .then(|| format!("Shares are of each pair's own peak in a closed loop: {}.", peaks.join(", ")))
}

fn loads_table(document: &Document, pairs: &[String]) -> Columns {
    let open_loop = document.asks_for_rates();
    let mut headers = vec![("pair", 0), ("load", 0)];
    headers.extend(open_loop.then_some(("asked for/s", 4)));
    headers.extend([("committed/s", 0), ("p50", 1), ("p99", 0), ("aborted", 2), ("CPU µs", 3)]);
    let mut columns = Columns::new(&headers, false);
    for pair in pairs {
        for (number, point) in document.points_of(pair).enumerate() {
            let mut row = vec![if number == 0 { pair.clone() } else { String::new() }, point.at_load.clone()];
            row.extend(point.cells(open_loop));
            columns.push(row);
        }
    }
    columns
}

fn heading(run: &Run, what: &str, times: &str, terminal: Terminal) -> String {
    let setting = |name: &str| run.config.get(name).map(ToString::to_string);
    let mut parts = vec![workload_title(&run.workload), what.to_owned()];
    if let (Some(shards), Some(concurrency)) = (setting("shards"), setting("concurrency")) {
        let noun = if shards == "1" { "shard" } else { "shards" };
        let processes = match setting("processes") {
            Some(one) if one == "1" => "1 process of ".to_owned(),
            Some(several) => format!("{several} processes of "),
            None => String::new(),
        };
        // Of several loads this run has one.
        let in_flight = match run.at_load {
            None => format!(" × {concurrency} in flight"),
            Some(_) => String::new(),
        };
        parts.push(format!("{processes}{shards} {noun}{in_flight}"));
    }
    if let Some(rate) = run.config.get("rate").and_then(serde_json::Value::as_u64)
        && run.at_load.is_none()
    {
        parts.push(format!("{}/s asked for", units::thousands(rate)));
    }
    for (name, one, many) in [
        ("warehouses", "warehouse", "warehouses"),
        ("accounts", "account per shard", "accounts per shard"),
        ("tuples", "tuple per shard", "tuples per shard"),
        ("tuples_per_transaction", "per transaction", "per transaction"),
    ] {
        if let Some(number) = run.config.get(name).and_then(serde_json::Value::as_u64) {
            parts.push(format!("{} {}", units::thousands(number), if number == 1 { one } else { many }));
        }
    }
    if run.config.get("spread").and_then(serde_json::Value::as_bool) == Some(true) {
        parts.push("spread over all shards".to_owned());
    }
    parts.push(times.to_owned());
    if run.interrupted {
        parts.push("interrupted".to_owned());
    }
    if run.memory_full {
        parts.push("ended early: memory was full, see --memory".to_owned());
    }
    terminal.bold(wrap(&parts.join(" · "), terminal.width, 0).trim_end()) + "\n"
}

/// The workload's own spelling.
pub fn workload_title(name: &str) -> String {
    Registration::named(name).map_or(name, |workload| workload.title).to_owned()
}

fn transactions(run: &Run) -> Columns {
    let types = || run.transactions.iter().map(|(_, of)| of);
    // Columns that some workloads have.
    let nominal = types().any(|of| of.nominal_share.is_some());
    let rows = nominal && types().any(|of| of.mean_keys_read.is_some());
    let mut headers = vec![("transaction", 0), ("committed/s", 0), ("mix", 8)];
    headers.extend(nominal.then_some(("nominal", 9)));
    headers.extend(rows.then_some(("rows", 10)));
    headers.extend([
        ("aborted", 2),
        ("p50", 1),
        ("p90", 7),
        ("p99", 0),
        ("p99.9", 4),
        ("max", 6),
        ("distributed", 5),
    ]);
    let mut columns = Columns::new(&headers, true);
    for (name, of) in run.transactions.iter() {
        let latency = of.latency_us;
        let mut row = vec![name.to_owned(), units::rate(per(of.committed as f64, run.seconds))];
        row.push(match of.per {
            0 => String::new(),
            _ => units::percent(per(of.committed as f64, run.committed as f64)),
        });
        row.extend(nominal.then(|| of.nominal_share.map_or_else(String::new, units::percent)));
        row.extend(rows.then(|| of.mean_keys_read.map_or_else(String::new, units::brief)));
        row.extend([
            units::percent(per(of.aborts.by_system() as f64, of.attempts() as f64)),
            units::duration_us(latency.p50),
            units::duration_us(latency.p90),
            units::duration_us(latency.p99),
            units::duration_us(latency.p999),
            units::duration_us(latency.max),
            units::percent(of.distributed_share),
        ]);
        columns.push(row);
    }
    let mut all = vec!["all".to_owned(), units::rate(run.throughput_tps), "100%".to_owned()];
    all.resize(3 + usize::from(nominal) + usize::from(rows), String::new());
    all.push(units::percent(run.abort_share()));
    all.extend(run.latency_us.percentiles().map(|(_, us)| units::duration_us(us)));
    all.push(units::percent(run.distributed_share));
    columns.push(all);
    columns
}

/// Attempts aborted by reason, only reasons that occurred. Roll-backs come last.
fn abort_reasons(run: &Run) -> Columns {
    let occurred: Vec<&str> =
        run.aborts.iter().filter(|(_, count)| *count > 0).map(|(reason, _)| reason).collect();
    let titles: Vec<String> = occurred.iter().map(|reason| reason_title(reason)).collect();
    let mut headers = vec![("aborts, % of attempts", 0)];
    headers.extend(titles.iter().enumerate().map(|(i, title)| (title.as_str(), i + 1)));
    let mut columns = Columns::new(&headers, true);
    let mut row = |name: &str, aborts: &Aborts, attempts: u64| {
        let share = |reason: &&str| {
            let count = aborts.iter().find(|(name, _)| name == reason).map_or(0, |(_, count)| count);
            units::percent(per(count as f64, attempts as f64))
        };
        columns.push(std::iter::once(name.to_owned()).chain(occurred.iter().map(share)).collect());
    };
    for (name, of) in run.transactions.iter() {
        row(name, &of.aborts, of.attempts());
    }
    row("all", &run.aborts, run.attempts());
    columns
}

/// A reason in words.
pub fn reason_title(reason: &str) -> String {
    match reason {
        "user" => "rolled back".to_owned(),
        other => other.replace('_', " "),
    }
}

fn totals(run: &Run) -> Vec<(&'static str, String)> {
    let mut throughput = format!(
        "{}/s, {}/s per core",
        units::rate(run.throughput_tps),
        units::rate(run.throughput_per_core_tps)
    );
    if let Some(tpmc) = run.new_orders_per_minute {
        throughput.push_str(&format!("; {} tpmC*", units::rate(tpmc)));
    }
    if let Some(tpse) = run.trade_results_per_second {
        throughput.push_str(&format!("; {} tpsE*", units::rate(tpse)));
    }
    let mut messages = format!("{:.2} between shards per transaction", run.messages_per_transaction);
    if run.oracle_messages > 0 {
        let per_transaction = per(run.oracle_messages as f64, run.committed as f64);
        messages.push_str(&format!("; {per_transaction:.2} to and from the oracle"));
    }
    let mut memory = format!(
        "{} ({} after loading {} in {})",
        units::bytes(run.memory_bytes),
        units::bytes(run.load.memory_bytes),
        units::plural(run.load.rows, "row", "rows"),
        units::seconds(run.load.seconds)
    );
    let mut tables: Vec<_> = run.tables.iter().collect();
    tables.sort_by_key(|(_, size)| std::cmp::Reverse(size.bytes));
    for (i, (name, size)) in tables.into_iter().enumerate() {
        memory.push_str(if i == 0 { ": " } else { ", " });
        memory.push_str(&format!("{name} {}", units::bytes(size.bytes)));
    }
    let counted: Vec<String> = run
        .workload_figures
        .iter()
        .map(|(name, &figure)| format!("{} {name}", units::thousands(figure)))
        .collect();
    let mut totals = vec![
        ("throughput", throughput),
        (
            "processor",
            format!(
                "{} per committed transaction ({:.1} s in all)",
                units::duration_us(run.cpu_us_per_transaction()),
                run.cpu_seconds
            ),
        ),
        (
            "read-only",
            format!(
                "{}, {}, {}",
                units::plural(run.read_only_aborts, "abort", "aborts"),
                units::plural(run.read_only_restarts, "restart", "restarts"),
                units::plural(run.read_only_waits, "wait", "waits")
            ),
        ),
        ("messages", messages),
        ("memory", memory),
    ];
    if !counted.is_empty() {
        totals.insert(1, ("market", counted.join(", ")));
    }
    if let Some(graph) = &run.graph {
        let graph = format!(
            "{:.1} bytes per transaction between shards; {} transactions in {} at the end, {} in {} at most",
            graph.bytes_per_transaction,
            units::thousands(graph.vertices),
            units::bytes(graph.memory_bytes),
            units::thousands(graph.vertices_max),
            units::bytes(graph.memory_bytes_max)
        );
        totals.insert(4, ("graph", graph));
    }
    if !run.links.is_empty() {
        let sum = |of: fn(&Link) -> u64| run.links.iter().map(of).sum::<u64>() as f64;
        let network = format!(
            "{}/s between processes in {} frames/s of {:.1} messages; {} resets",
            units::bytes(per(sum(|link| link.bytes), run.seconds) as u64),
            units::rate(per(sum(|link| link.frames), run.seconds)),
            per(sum(|link| link.messages), sum(|link| link.frames)),
            // Both ends count each.
            sum(|link| link.resets) / 2.0
        );
        totals.insert(4, ("network", network));
    }
    if let Some(checker) = &run.checker {
        totals.push((
            "history",
            format!(
                "{} and {} checked in {}",
                units::plural(checker.transactions, "transaction", "transactions"),
                units::plural(checker.dependencies, "dependency", "dependencies"),
                units::seconds(checker.seconds)
            ),
        ));
    }
    totals
}

fn pairs_table(document: &Document, pairs: &[String]) -> Columns {
    let mut columns = Columns::new(
        &[
            ("pair", 0),
            ("committed/s\nmedian", 0),
            ("\nrange", 4),
            ("ratio\nmedian", 0),
            ("\nrange", 2),
            ("CPU\nµs", 5),
            ("CPU\nratio", 3),
            ("\naborted", 6),
            ("serial-\nizable", 1),
        ],
        false,
    );
    for pair in pairs {
        let runs = document.runs_of(pair);
        let spread = |figure: fn(&Run) -> f64| Spread::of(runs.iter().map(|run| figure(run)));
        let throughput = spread(|run| run.throughput_tps);
        let (ratio, range, cpu) = match document.ratio_of(pair) {
            Some(ratio) => (
                units::ratio(ratio.median),
                if runs.len() > 1 { format!("{:.3}–{:.3}", ratio.min, ratio.max) } else { String::new() },
                units::ratio(ratio.cpu.median),
            ),
            None if *pair == pairs[0] => ("1".to_owned(), String::new(), "1".to_owned()),
            None => ("–".to_owned(), String::new(), "–".to_owned()),
        };
        let range_tps =
            if runs.len() > 1 { units::range(throughput.min, throughput.max) } else { String::new() };
        let serializable = runs.iter().all(|run| run.serializable);
        columns.push(vec![
            pair.clone(),
            units::rate(throughput.median),
            range_tps,
            ratio,
            range,
            units::three_digits(spread(Run::cpu_us_per_transaction).median),
            cpu,
            units::percent(spread(Run::abort_share).median),
            if serializable { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    columns
}

/// Median and 99th percentile of all transactions and of each type, by pair: medians over the
/// repetitions.
fn latency_table(document: &Document, pairs: &[String]) -> Columns {
    let names = document.type_names();
    let mut headers = vec![("latency", 0), ("", 0)];
    headers.push(("all", 0));
    headers.extend(names.iter().enumerate().map(|(i, name)| (*name, i)));
    let mut columns = Columns::new(&headers, false);
    for pair in pairs {
        let runs = document.runs_of(pair);
        let mut row = |first: &str, title: &str, of: fn(&Latency) -> f64| {
            let cell = |name: &&str| {
                let types = runs.iter().filter_map(|run| run.transactions.get(name));
                units::duration_us(Spread::of(types.map(|one| of(&one.latency_us))).median)
            };
            let all = Spread::of(runs.iter().map(|run| of(&run.latency_us))).median;
            let cells = [first.to_owned(), title.to_owned(), units::duration_us(all)].into_iter();
            columns.push(cells.chain(names.iter().map(cell)).collect());
        };
        row(pair, "p50", |latency| latency.p50);
        row("", "p99", |latency| latency.p99);
    }
    columns
}

/// What logs wrote against bare files, if that was measured: medians over the repetitions, and of
/// the ratio the range.
fn disks(runs: &[&Run], terminal: Terminal) -> String {
    let mut columns = Columns::new(
        &[
            ("disk", 0),
            ("log\nbytes/s", 3),
            ("\nsyncs/s", 0),
            ("\nper sync", 4),
            ("bare files\nbytes/s", 5),
            ("\nsyncs/s", 0),
            ("\nper sync", 6),
            ("ratio\nmedian", 0),
            ("\nrange", 2),
            ("ratio while\nit wrote", 1),
        ],
        false,
    );
    let side = |run: &Run| match &run.at_load {
        Some(load) => format!("{} at {load}", run.pair()),
        None => run.pair(),
    };
    let mut sides: Vec<String> = Vec::new();
    for run in runs.iter().filter(|run| run.disk.is_some()) {
        if !sides.contains(&side(run)) {
            sides.push(side(run));
        }
    }
    for name in &sides {
        let disks = || runs.iter().filter(|run| side(run) == *name).filter_map(|run| run.disk);
        let spread = |figure: fn(&DiskFigures) -> f64| Spread::of(disks().map(|disk| figure(&disk)));
        let ratio = spread(|disk| disk.ratio);
        columns.push(vec![
            name.clone(),
            units::bytes(spread(|disk| disk.log.bytes_per_second).median as u64),
            units::rate(spread(|disk| disk.log.syncs_per_second).median),
            units::duration_us(spread(|disk| disk.log.sync_us).median),
            units::bytes(spread(|disk| disk.bare.bytes_per_second).median as u64),
            units::rate(spread(|disk| disk.bare.syncs_per_second).median),
            units::duration_us(spread(|disk| disk.bare.sync_us).median),
            units::ratio(ratio.median),
            if disks().count() > 1 { format!("{:.3}–{:.3}", ratio.min, ratio.max) } else { String::new() },
            units::ratio(spread(|disk| disk.busy_ratio).median),
        ]);
    }
    if sides.is_empty() { String::new() } else { columns.render(terminal.width) + "\n" }
}

/// Which checks hold and, in full, which do not.
fn checks(runs: &[&Run], terminal: Terminal) -> String {
    let count = runs.iter().map(|run| run.checks.len()).sum::<usize>();
    if count == 0 {
        return labelled("checks", "none were made", terminal.width);
    }
    let mut failures: Vec<(String, &Check)> = Vec::new();
    for run in runs {
        let place = match runs.len() {
            1 => String::new(),
            _ => format!("{}: ", run.place()),
        };
        failures.extend(run.failures().map(|check| (place.clone(), check)));
    }
    let mut text = String::new();
    let allowed: Vec<&Check> = runs.iter().flat_map(|run| run.allowed()).collect();
    let held = count - failures.len() - allowed.len();
    if held > 0 {
        let mut names: Vec<&str> = Vec::new();
        for check in runs.iter().flat_map(|run| &run.checks).filter(|check| check.ok) {
            if !names.contains(&check.name.as_str()) {
                names.push(&check.name);
            }
        }
        let mut sentence = format!("✓ {} hold", units::thousands(held as u64));
        if names.len() <= NAMES_MAX {
            sentence.push_str(&format!(": {}", collapse(&names).join(", ")));
        }
        let sentence = wrap(&sentence, terminal.width, LABEL).replacen('✓', &terminal.green("✓"), 1);
        text.push_str(&format!("{:<LABEL$}{sentence}", "checks"));
    }
    for (i, check) in allowed.iter().take(FAILURES_MAX).enumerate() {
        let label = if i == 0 && held == 0 { "checks" } else { "" };
        let sentence = wrap(&format!("– not: {}: {}", check.name, check.detail), terminal.width, LABEL);
        text.push_str(&format!("{label:<LABEL$}{sentence}"));
    }
    for (i, (place, check)) in failures.iter().take(FAILURES_MAX).enumerate() {
        let label = if i == 0 && held == 0 && allowed.is_empty() { "checks" } else { "" };
        let sentence = wrap(&format!("✗ {place}{}: {}", check.name, check.detail), terminal.width, LABEL);
        let sentence = terminal.red(sentence.trim_end());
        text.push_str(&format!("{label:<LABEL$}{sentence}\n"));
    }
    if failures.len() > FAILURES_MAX {
        let more = failures.len() - FAILURES_MAX;
        text.push_str(&format!("{:<LABEL$}{}\n", "", terminal.red(&format!("✗ and {more} more"))));
    }
    text
}

/// Names that differ only in a number at the end, counting up, as one: `condition 1–12`.
pub fn collapse(names: &[&str]) -> Vec<String> {
    let mut collapsed: Vec<String> = Vec::new();
    // Stem, first and last number of the range that the last entry stands for.
    let mut range: Option<(&str, u64, u64)> = None;
    for name in names {
        let numbered = name.rsplit_once(' ').and_then(|(stem, end)| Some((stem, end.parse::<u64>().ok()?)));
        match (range, numbered) {
            (Some((stem, first, last)), Some((same, number)))
                if stem == same && last.checked_add(1) == Some(number) =>
            {
                collapsed.pop();
                collapsed.push(format!("{stem} {first}–{number}"));
                range = Some((stem, first, number));
            }
            _ => {
                collapsed.push((*name).to_owned());
                range = numbered.map(|(stem, number)| (stem, number, number));
            }
        }
    }
    collapsed
}

/// Width of the labels before values.
const LABEL: usize = 12;

fn labelled(label: &str, value: &str, width: usize) -> String {
    format!("{label:<LABEL$}{}", wrap(value, width, LABEL))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const PLAIN: Terminal = Terminal { width: 100, colour: false };

    #[test]
    fn a_run_fits_a_hundred_columns() {
        assert_eq!(render(&sample::single(), PLAIN), include_str!("snapshots/run.txt"));
    }

    #[test]
    fn a_comparison_fits_a_hundred_columns() {
        assert_eq!(render(&sample::comparison(), PLAIN), include_str!("snapshots/comparison.txt"));
    }

    #[test]
    fn durabilities_and_what_bare_files_reach_fit_a_hundred_columns() {
        let document = sample::durabilities();
        assert_eq!(render(&document, PLAIN), include_str!("snapshots/durabilities.txt"));
        let only = Document { runs: vec![document.runs[1].clone()], ..Document::default() };
        assert!(render(&only, PLAIN).contains("ratio while"), "a run alone has them as well");
        assert!(!render(&sample::comparison(), PLAIN).contains("bare files"));
    }

    #[test]
    fn an_axis_of_loads_fits_a_hundred_columns() {
        assert_eq!(render(&sample::shares(), PLAIN), include_str!("snapshots/loads.txt"));
        let counts = render(&sample::loads(), PLAIN);
        assert!(!counts.contains("asked for") && !counts.contains("Shares"), "{counts}");
    }

    #[test]
    fn an_axis_that_was_interrupted_shows_the_loads_so_far_and_every_check() {
        let mut document = sample::shares();
        document.interrupted = true;
        document.peaks[0].checks[0].ok = false;
        let text = render(&document, PLAIN);
        assert!(text.contains("Interrupted: these are the loads so far."), "{text}");
        assert!(text.contains("✗ occ/dst at 1, repetition 1: tpcc consistency 1"), "{text}");
        assert!(!document.all_checks_hold(), "a peak counts as any run does");
        document.runs.clear();
        document.points.clear();
        let text = render(&document, PLAIN);
        assert!(
            text.contains("Not one load was measured to its end.") && text.contains("✗ occ/dst"),
            "{text}"
        );
    }

    #[test]
    fn a_narrow_terminal_loses_columns_not_rows() {
        for width in 40..140 {
            let terminal = Terminal { width, colour: false };
            for document in [sample::single(), sample::comparison(), sample::failing(), sample::shares()] {
                let text = render(&document, terminal);
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(widest <= width, "{widest} columns on a terminal of {width}:\n{text}");
            }
        }
        let narrow = render(&sample::single(), Terminal { width: 40, colour: false });
        assert!(narrow.contains("new_order") && narrow.contains("254 µs"), "{narrow}");
    }

    #[test]
    fn what_other_programs_used_is_told() {
        let mut document = sample::single();
        let run = &mut document.runs[0];
        assert_eq!(run.doubt(), None);
        // Much, however many cores this process may run on.
        (run.cpu_seconds, run.machine_cpu_seconds) = (run.seconds, 1e6 * run.seconds);
        document.doubts = document.runs.iter().filter_map(Run::doubt).collect();
        let last = "doubt       ! occ/dst, repetition 1: programs that were not measured used ";
        let text = render(&document, PLAIN);
        assert!(text.lines().any(|line| line.starts_with(last)), "{text}");
        let page = super::super::html::render(&document);
        assert!(page.contains("Figures are in doubt.") && page.contains("quiet"), "{page}");
        assert_eq!(document.to_json().matches("programs that were not measured used").count(), 1);
    }

    #[test]
    fn a_failed_check_is_told_in_full_and_a_yardstick_is_labelled() {
        let text = render(&sample::failing(), PLAIN);
        assert!(text.contains("NOT SERIALIZABLE"), "{text}");
        assert!(
            text.contains("✓ 12 hold") && text.contains("✗ history is serializable: T1.17 read"),
            "{text}"
        );
    }

    #[test]
    fn repetitions_of_one_pair_show_the_median_run_in_full() {
        let mut document = sample::comparison();
        document.runs.retain(|run| run.pair() == "occ/dst");
        document.ratios.clear();
        let text = render(&document, PLAIN);
        assert!(text.contains("The run of median throughput:") && text.contains("new_order"), "{text}");
        assert!(text.contains("✓ 36 hold"), "{text}");
    }

    #[test]
    fn nothing_measured_is_said() {
        assert_eq!(render(&Document::default(), PLAIN), "Nothing was measured.\n");
        let empty = Run::default();
        assert!(run(&empty, PLAIN).contains("none were made"));
    }

    #[test]
    fn colour_is_used_only_when_wanted() {
        assert!(!render(&sample::failing(), PLAIN).contains('\x1b'));
        assert!(render(&sample::failing(), Terminal { width: 100, colour: true }).contains("\x1b[1;31m"));
    }

    #[test]
    fn numbered_names_collapse_to_a_range() {
        let names = ["c 1", "c 2", "c 3", "c 5", "d 6", "money is conserved", "money is conserved too"];
        let expected = ["c 1–3", "c 5", "d 6", "money is conserved", "money is conserved too"];
        assert_eq!(collapse(&names), expected);
    }
}
