//! The page's sections that are tables.

use plimsoll_page::html::{escape, section, table};
use plimsoll_page::units::{self, plural};

use super::super::model::{Aborts, Check, Document, Run, per};
use super::super::table::{collapse, reason_title};
use super::{PairRuns, count};

/// The details of each pair's run of median throughput.
pub fn transactions(pairs: &[PairRuns<'_>]) -> String {
    let mut body = String::new();
    for pair in pairs {
        let content = transaction_table(pair.middle);
        if pairs.len() == 1 {
            body.push_str(&content);
        } else {
            body.push_str(&format!("<details><summary>{}</summary>\n{content}</details>\n", pair.cell()));
        }
    }
    let note = if pairs.iter().any(|pair| pair.runs.len() > 1) {
        "The run of median throughput. Aborts in percent of the type's attempts."
    } else {
        "Aborts in percent of the type's attempts."
    };
    section("Transaction types", note, &body)
}

fn transaction_table(run: &Run) -> String {
    let reasons: Vec<&str> =
        run.aborts.iter().filter(|(_, count)| *count > 0).map(|(reason, _)| reason).collect();
    let titles: Vec<String> = reasons.iter().map(|reason| reason_title(reason)).collect();
    // Columns that some workloads have.
    let nominal = run.transactions.iter().any(|(_, of)| of.nominal_share.is_some());
    let mut headers = vec!["type", "committed/s", "mix", "distributed"];
    headers.extend(nominal.then_some(["nominal", "rows read"]).into_iter().flatten());
    headers.extend(titles.iter().map(String::as_str));
    headers.extend(["p50", "p90", "p99", "p99.9", "max"]);
    let row = |name: &str, committed: u64, attempts: u64, aborts: &Aborts, distributed: f64| {
        let attempts = attempts as f64;
        let mut row = vec![
            escape(name),
            units::rate(per(committed as f64, run.seconds)),
            units::percent(per(committed as f64, run.committed as f64)),
            units::percent(distributed),
        ];
        row.extend(reasons.iter().map(|reason| units::percent(per(count(aborts, reason) as f64, attempts))));
        row
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (name, of) in run.transactions.iter() {
        let mut cells = row(name, of.committed, of.attempts(), &of.aborts, of.distributed_share);
        if of.per == 0 {
            cells[2] = String::new();
        }
        if nominal {
            let told = [
                of.nominal_share.map_or_else(String::new, units::percent),
                of.mean_keys_read.map_or_else(String::new, units::brief),
            ];
            cells.splice(4..4, told);
        }
        cells.extend(of.latency_us.percentiles().map(|(_, us)| units::duration_us(us)));
        rows.push(cells);
    }
    let mut all = row("all", run.committed, run.attempts(), &run.aborts, run.distributed_share);
    if nominal {
        all.splice(4..4, [String::new(), String::new()]);
    }
    all.extend(run.latency_us.percentiles().map(|(_, us)| units::duration_us(us)));
    rows.push(all);
    table("total", &headers, &rows)
}

/// By pair: how often a condition held, how often it did not and need not, and how often it was
/// checked.
type Verdicts = Vec<(usize, usize, usize)>;

/// Conditions by pair.
pub fn checks(pairs: &[PairRuns<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for check in pairs.iter().flat_map(|pair| &pair.runs).flat_map(|run| &run.checks) {
        if !names.contains(&check.name.as_str()) {
            names.push(&check.name);
        }
    }
    if names.is_empty() {
        return section("Checks", "None were made.", "");
    }
    let verdicts = |name: &str| -> Verdicts {
        let of = |pair: &PairRuns<'_>| {
            let checks: Vec<&Check> =
                pair.runs.iter().flat_map(|run| &run.checks).filter(|check| check.name == name).collect();
            let held = checks.iter().filter(|check| check.ok).count();
            (held, checks.iter().filter(|check| check.is_excused()).count(), checks.len())
        };
        pairs.iter().map(of).collect()
    };
    // Neighbours with the same verdicts and a common name share a row.
    let mut grouped: Vec<(Vec<&str>, Verdicts)> = Vec::new();
    for name in names {
        let verdict = verdicts(name);
        match grouped.last_mut() {
            Some((names, last))
                if *last == verdict && collapse(&[names.as_slice(), &[name]].concat()).len() == 1 =>
            {
                names.push(name);
            }
            _ => grouped.push((vec![name], verdict)),
        }
    }
    let cell = |(held, allowed, made): (usize, usize, usize)| match (held, made) {
        (_, 0) => "–".to_owned(),
        (1, 1) => "<span class=\"ok\">✓</span>".to_owned(),
        (held, made) if held == made => format!("<span class=\"ok\">✓</span> {made}"),
        (held, made) if held + allowed == made => format!("no in {allowed} of {made}, as the scheme allows"),
        (held, made) => format!("<span class=\"fail\">✗ {} of {made}</span>", made - held - allowed),
    };
    let mut headers = vec!["condition"];
    headers.extend(pairs.iter().map(|pair| pair.name.as_str()));
    let rows: Vec<Vec<String>> = grouped
        .into_iter()
        .map(|(names, verdicts)| {
            std::iter::once(escape(&collapse(&names).join(", ")))
                .chain(verdicts.into_iter().map(cell))
                .collect()
        })
        .collect();
    let mut note = "How often each condition was checked, and whether it held.".to_owned();
    let histories: Vec<_> =
        pairs.iter().flat_map(|pair| &pair.runs).filter_map(|run| run.checker.as_ref()).collect();
    if !histories.is_empty() {
        note.push_str(&format!(
            " The histories of {} with {} were checked.",
            plural(histories.iter().map(|checker| checker.transactions).sum(), "transaction", "transactions"),
            plural(histories.iter().map(|checker| checker.dependencies).sum(), "dependency", "dependencies"),
        ));
    }
    section("Checks", &note, &table("", &headers, &rows))
}

/// Rows and memory by table, under the first pair.
pub fn memory(pairs: &[PairRuns<'_>]) -> String {
    let run = pairs[0].middle;
    if run.memory_bytes == 0 {
        return String::new();
    }
    let mut tables: Vec<_> = run.tables.iter().collect();
    tables.sort_by_key(|(_, size)| std::cmp::Reverse(size.bytes));
    let largest = tables.first().map_or(0, |(_, size)| size.bytes);
    let rows: Vec<Vec<String>> = tables
        .into_iter()
        .map(|(name, size)| {
            let width = 100.0 * per(size.bytes as f64, largest as f64);
            vec![
                escape(name),
                units::thousands(size.rows),
                units::bytes(size.bytes),
                units::rate(per(size.bytes as f64, size.rows as f64)),
                format!("<span class=\"meter\" style=\"background-size:{width:.1}% 100%\"></span>"),
            ]
        })
        .collect();
    let note = format!(
        "{} at the end of the run under {}, {} after loading {} rows in {}. A row's bytes include its versions \
         and its share of the index.",
        units::bytes(run.memory_bytes),
        pairs[0].name,
        units::bytes(run.load.memory_bytes),
        units::thousands(run.load.rows),
        units::seconds(run.load.seconds)
    );
    let content = match rows.is_empty() {
        true => String::new(),
        false => table("", &["table", "rows", "memory", "bytes per row", ""], &rows),
    };
    section("Memory", &note, &content)
}

/// Every run on a line.
pub fn all_runs(document: &Document) -> String {
    let mut headers = vec![
        "pair",
        "repetition",
        "committed/s",
        "per core",
        "CPU µs",
        "aborted",
        "distributed",
        "messages",
        "to oracle",
        "memory",
        "checks",
    ];
    let has_loads = document.has_loads();
    if has_loads {
        headers.insert(1, "load");
    }
    let row = |run: &Run| {
        let failed = run.failures().count();
        let checks = match failed {
            0 => format!("<span class=\"ok\">✓</span> {}", run.checks.len() - run.allowed().count()),
            failed => format!("<span class=\"fail\">✗ {failed} of {}</span>", run.checks.len()),
        };
        let cut = if run.interrupted || run.memory_full { " (cut short)" } else { "" };
        let mut row = vec![
            escape(&run.pair()),
            format!("{}{cut}", run.repetition),
            units::rate(run.throughput_tps),
            units::rate(run.throughput_per_core_tps),
            units::three_digits(run.cpu_us_per_transaction()),
            units::percent(run.abort_share()),
            units::percent(run.distributed_share),
            format!("{:.2}", run.messages_per_transaction),
            format!("{:.2}", per(run.oracle_messages as f64, run.committed as f64)),
            units::bytes(run.memory_bytes),
            checks,
        ];
        if has_loads {
            row.insert(1, run.at_load.clone().unwrap_or_default());
        }
        row
    };
    let rows: Vec<Vec<String>> = document.all_runs().map(row).collect();
    section(
        "Runs",
        "In the order in which they ran. Messages are per committed transaction.",
        &table("", &headers, &rows),
    )
}

/// Settings: one column if all pairs agree, otherwise who has which.
pub fn configuration(document: &Document, pairs: &[PairRuns<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    // With several loads these two are of one run.
    let of_a_run = |name: &str| document.has_loads() && ["concurrency", "rate"].contains(&name);
    for (name, _) in pairs.iter().flat_map(|pair| pair.middle.config.iter()) {
        if !names.contains(&name) && !of_a_run(name) {
            names.push(name);
        }
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for name in names {
        let mut values: Vec<(String, Vec<&str>)> = Vec::new();
        for pair in pairs {
            let Some(value) = pair.middle.config.get(name) else { continue };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match values.iter_mut().find(|(other, _)| *other == text) {
                Some((_, who)) => who.push(&pair.name),
                None => values.push((text, vec![&pair.name])),
            }
        }
        let words: Vec<String> = values
            .iter()
            .map(|(value, who)| match who.len() == pairs.len() {
                true => value.clone(),
                false => format!("{value} ({})", who.join(", ")),
            })
            .collect();
        rows.push(vec![escape(&name.replace('_', " ")), escape(&words.join("; "))]);
    }
    let machine = &document.machine;
    rows.push(vec!["machine".to_owned(), escape(&machine.cpu)]);
    rows.push(vec!["cores".to_owned(), machine.cores.to_string()]);
    rows.push(vec!["memory".to_owned(), units::bytes(machine.memory_bytes)]);
    rows.push(vec!["kernel".to_owned(), escape(&machine.kernel)]);
    rows.push(vec![
        "program".to_owned(),
        escape(&format!("plimsoll {}, commit {}", document.plimsoll, document.commit)),
    ]);
    section("Configuration", "", &table("left", &["setting", "value"], &rows))
}
