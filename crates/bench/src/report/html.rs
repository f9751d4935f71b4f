//! The result as one page.
//!
//! [`render`] needs nothing but the document and the page needs nothing but a browser: style,
//! script, charts and the figures themselves are inside, and a content security policy forbids
//! fetching anything. It follows the reader's light or dark setting, a narrow screen and paper.
//!
//! The order is that of a reader's questions: did it hold (checks), how fast (summary, throughput),
//! at what cost (processor time), how slow at worst (latency), was it steady (over time), what was
//! wasted (aborts), and then everything else in tables. With loads it is how slow at which rate,
//! and the tables. With several repetitions a chart shows medians and the details of a pair are
//! those of its run of median throughput.
//!
//! Everything that enters the page goes through [`escape`], checks and command lines included: a
//! failed check quotes data.

use plimsoll_page::html::{self, Page, Tone, all_hold, banner, escape};
use plimsoll_page::units::{self, plural};

use super::model::{Aborts, Check, Document, Run, Spread, per};
use super::table::workload_title;

mod figures;
mod load;
mod pieces;
mod tables;

/// What only these pages show.
pub const STYLE: &str = include_str!("page.css");

/// One pair with its runs and the run that stands for them.
struct PairRuns<'a> {
    name: String,
    colour: usize,
    runs: Vec<&'a Run>,
    /// The run of median throughput.
    middle: &'a Run,
}

impl PairRuns<'_> {
    fn spread(&self, figure: impl Fn(&Run) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(|run| figure(run)))
    }

    fn yardstick(&self) -> bool {
        self.runs.iter().any(|run| !run.serializable)
    }

    /// The name for tables, labelled if it must be.
    fn cell(&self) -> String {
        let tag = if self.yardstick() { "<span class=\"tag\">not serializable</span>" } else { "" };
        format!("{}{tag}", escape(&self.name))
    }
}

/// The whole page.
pub fn render(document: &Document) -> String {
    let pairs = pairs(document);
    let title = title(document, &pairs);
    let mut main = verdict(document);
    if let Some(first) = pairs.first() {
        if document.has_loads() {
            main.push_str(&load::section_of(document, &pairs));
            main.push_str(&tables::checks(&pairs));
        } else {
            main.push_str(&summary(document, first));
            main.push_str(&figures::throughput(document, &pairs));
            main.push_str(&figures::processor_time(document, &pairs));
            main.push_str(&figures::latency(document, &pairs));
            main.push_str(&figures::over_time(&pairs));
            main.push_str(&figures::aborts(&pairs));
            main.push_str(&tables::transactions(&pairs));
            main.push_str(&tables::checks(&pairs));
            main.push_str(&tables::memory(&pairs));
        }
        main.push_str(&tables::all_runs(document));
        main.push_str(&tables::configuration(document, &pairs));
    }
    if let Some(graph) = &document.pieces {
        main.push_str(&pieces::pieces(graph));
    }
    let command: Vec<String> = document.command.iter().map(|word| quoted(word)).collect();
    let page = Page {
        title: &title,
        facts: &facts(document),
        command: &command.join(" "),
        main: &main,
        notes: &notes(document),
        style: STYLE,
        figures: &document.to_json(),
        file: "plimsoll.json",
    };
    page.render()
}

fn pairs(document: &Document) -> Vec<PairRuns<'_>> {
    let pair = |(colour, name): (usize, String)| {
        let runs = document.runs_of(&name);
        let mut sorted = runs.clone();
        sorted.sort_by(|a, b| a.throughput_tps.total_cmp(&b.throughput_tps));
        let middle = *sorted.get(sorted.len() / 2)?;
        Some(PairRuns { name, colour, runs, middle })
    };
    let names = document.pairs();
    plimsoll_args::pairs::series(names.iter().map(String::as_str))
        .into_iter()
        .zip(names)
        .filter_map(pair)
        .collect()
}

fn title(document: &Document, pairs: &[PairRuns<'_>]) -> String {
    let workload = document.all_runs().next().map_or_else(String::new, |run| workload_title(&run.workload));
    match pairs {
        [] => match &document.pieces {
            Some(graph) => format!("Pieces of {}", workload_title(&graph.workload)),
            None => "Nothing was measured".to_owned(),
        },
        [only] => format!("{workload} under {}", only.name),
        [first, others @ ..] if others.len() == 1 => {
            format!("{workload}: {} and {}", first.name, others[0].name)
        }
        pairs => format!("{workload}: {} pairs compared", pairs.len()),
    }
}

/// The machine, the program and the day.
fn facts(document: &Document) -> String {
    let machine = &document.machine;
    let mut facts = vec![
        machine.cpu.clone(),
        plural(machine.cores as u64, "core", "cores"),
        format!("{} of memory", units::bytes(machine.memory_bytes)),
        machine.kernel.clone(),
        format!("plimsoll {} ({})", document.plimsoll, document.commit),
    ];
    if !document.date.is_empty() {
        facts.push(document.date.clone());
    }
    facts.join(" · ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The first thing to know: whether the figures are worth anything.
fn verdict(document: &Document) -> String {
    let count: usize = document.all_runs().map(|run| run.checks.len()).sum();
    let told = |of: fn(&Check) -> bool| -> Vec<String> {
        let checks = document.all_runs().flat_map(|run| run.checks.iter().map(move |check| (run, check)));
        let item = |(run, check): (&Run, &Check)| {
            let place = format!("{}: {}", run.place(), check.name);
            format!("<strong>{}</strong>: {}", escape(&place), escape(&check.detail))
        };
        checks.filter(|(_, check)| of(check)).map(item).collect()
    };
    let (failures, allowed) = (told(Check::fails), told(Check::is_excused));
    let mut banners = String::new();
    if !allowed.is_empty() {
        let checks = plural(allowed.len() as u64, "check does", "checks do");
        let sentence = format!("{checks} not hold, as their scheme allows.");
        banners.push_str(&banner(Tone::Warn, &sentence, &allowed));
    }
    if let [only] = document.pairs().as_slice()
        && document.all_runs().any(|run| !run.serializable)
    {
        let sentence = format!("{} is not serializable: a yardstick, not a result.", escape(only));
        banners.push_str(&banner(Tone::Warn, &sentence, &[]));
    }
    if !document.doubts.is_empty() {
        let doubts: Vec<String> = document.doubts.iter().map(|doubt| escape(doubt)).collect();
        banners.push_str(&banner(Tone::Warn, "Figures are in doubt.", &doubts));
    }
    if document.all_runs().any(|run| run.memory_full) {
        let sentence =
            "Ended early, because memory was full: these are the results until then. See --memory.";
        banners.push_str(&banner(Tone::Warn, sentence, &[]));
    }
    if document.interrupted {
        banners.push_str(&banner(Tone::Warn, "Interrupted: these are the results so far.", &[]));
    }
    if !failures.is_empty() {
        let (failed, checks) =
            (units::thousands(failures.len() as u64), plural(count as u64, "check", "checks"));
        banners.push_str(&banner(Tone::Bad, &format!("✗ {failed} of {checks} failed."), &failures));
    } else if document.all_runs().next().is_some() {
        banners.push_str(&all_hold(count - allowed.len()));
    }
    banners
}

fn summary(document: &Document, first: &PairRuns<'_>) -> String {
    let median = |figure: fn(&Run) -> f64| first.spread(figure).median;
    let run = first.middle;
    let mut tiles = vec![
        ("throughput", format!("{}/s", units::rate(median(|run| run.throughput_tps))), first.name.clone()),
        (
            "per core",
            format!("{}/s", units::rate(median(|run| run.throughput_per_core_tps))),
            format!("{} per transaction", units::duration_us(median(Run::cpu_us_per_transaction))),
        ),
    ];
    if run.new_orders_per_minute.is_some() {
        let tpmc = median(|run| run.new_orders_per_minute.unwrap_or(0.0));
        tiles.push(("tpmC", units::short(tpmc), "no think time: not audited".to_owned()));
    }
    if run.trade_results_per_second.is_some() {
        let tpse = median(|run| run.trade_results_per_second.unwrap_or(0.0));
        tiles.push(("tpsE", units::short(tpse), "no think time: not audited".to_owned()));
    }
    if let Some((name, _)) = run.principal() {
        let p50 = median(|run| run.principal().map_or(0.0, |(_, of)| of.latency_us.p50));
        let p99 = median(|run| run.principal().map_or(0.0, |(_, of)| of.latency_us.p99));
        let p99 = format!("{name}; p99 {}", units::duration_us(p99));
        tiles.push(("p50 latency", units::duration_us(p50), p99));
    }
    let rolled_back = per(run.aborts.user as f64, run.attempts() as f64);
    tiles.push((
        "aborted attempts",
        units::percent(median(Run::abort_share)),
        format!("and {} rolled back by design", units::percent(rolled_back)),
    ));
    // What the reader of a comparison asks first: how far from doing nothing at all.
    let yardstick = format!("{}/rc", run.protocol);
    match document.ratio_of(&yardstick) {
        Some(ratio) if ratio.median > 0.0 => tiles.push((
            "of rc's throughput",
            units::percent(1.0 / ratio.median),
            format!("{} to {}", units::percent(per(1.0, ratio.max)), units::percent(per(1.0, ratio.min))),
        )),
        _ => tiles.push((
            "memory",
            units::bytes(run.memory_bytes),
            format!("{} after loading", units::bytes(run.load.memory_bytes)),
        )),
    }
    html::tiles(&tiles)
}

/// What figures on the page must not be taken for.
fn notes(document: &Document) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if document.all_runs().any(|run| !run.serializable) {
        notes.push(
            "rc is not serializable: its read-only transactions read whatever is newest. It is the yardstick of \
             what a correct scheme can reach at best.",
        );
    }
    if document.runs.iter().any(|run| run.new_orders_per_minute.is_some()) {
        notes.push("tpmC counts New-Orders per minute without keying and think times: it is not an audited TPC-C result.");
    }
    if document.runs.iter().any(|run| run.trade_results_per_second.is_some()) {
        notes.push(
            "tpsE counts Trade-Results per second without think times: it is not an audited TPC-E result.",
        );
    }
    notes
}

fn count(aborts: &Aborts, reason: &str) -> u64 {
    aborts.iter().find(|(name, _)| *name == reason).map_or(0, |(_, count)| count)
}

#[cfg(test)]
mod tests {
    use super::super::model::ratios;
    use super::super::sample;
    use super::*;

    #[test]
    fn everything_foreign_is_escaped() {
        let evil = "</script><script>alert('1')</script>";
        let mut document = sample::comparison();
        document.command.push(evil.into());
        document.machine.cpu = evil.into();
        document.commit = evil.into();
        for run in &mut document.runs {
            run.scheme.push_str(evil);
            run.config.push(evil, evil.into());
            run.transactions.0[0].0 = evil.into();
            run.tables.0[0].0 = evil.into();
            run.checks.push(Check { name: evil.into(), ok: false, allowed: false, detail: evil.into() });
        }
        document.ratios = ratios(&document.runs);
        let page = render(&document);
        assert!(!page.contains("<script>alert"), "a script got through");
        assert_eq!(page.matches("</script>").count(), 2, "only the page's own scripts end");
    }

    #[test]
    fn a_page_fetches_nothing() {
        let page = render(&sample::comparison());
        for forbidden in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(forbidden), "{forbidden} is in the page");
        }
    }

    #[test]
    fn tags_are_balanced() {
        let mut cut = sample::shares();
        cut.runs.clear();
        cut.points.clear();
        for page in [
            sample::comparison(),
            sample::single(),
            sample::failing(),
            sample::shares(),
            cut,
            Document::default(),
        ]
        .map(|d| render(&d))
        {
            for tag in
                ["div", "section", "table", "svg", "g", "details", "ul", "li", "dl", "text", "main", "header"]
            {
                let opened =
                    page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
                assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
            }
            assert!(!page.contains("NaN"));
        }
    }

    #[test]
    fn a_comparison_shows_ratios_and_labels_the_yardstick() {
        let page = render(&sample::comparison());
        for part in [
            "0.593×",
            "not serializable",
            "All 180 checks hold",
            "of rc&#39;s throughput",
            "tpcc consistency 1–12",
            "occ/gts p50",
            "occ/gts p99",
            "new_order; p99 254 µs",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
    }

    #[test]
    fn an_axis_of_loads_is_two_charts_and_a_table_of_points() {
        let page = render(&sample::shares());
        for part in [
            "aria-label=\"Median latency over throughput\"",
            "aria-label=\"99th percentile of latency over throughput\"",
            "occ/dst at 8%\n166,057/s\np99 240 µs",
            "Shares are of each pair&#39;s own peak in a closed loop: occ/dst",
            "<td>8%</td><td>164,444</td><td>166,057</td><td>31.0 µs</td><td>240 µs</td>",
            "occ/dst at most",
            "All 216 checks hold",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert_eq!(page.matches("<circle").count(), 12, "two percentiles of two pairs at three loads");
        assert_eq!(page.matches("<polyline class=\"dashed\"").count(), 2, "the yardstick");
        // Medians over loads would mean nothing, nor would the load of one run as a setting.
        for part in ["<h2>Throughput</h2>", "<h2>Aborts</h2>", "<th scope=\"row\">concurrency</th>"] {
            assert!(!page.contains(part), "{part}");
        }
        let counts = render(&sample::loads());
        assert!(!counts.contains("asked for") && counts.contains("<td>64</td>"));
    }

    #[test]
    fn a_failed_check_comes_first_and_in_full() {
        let page = render(&sample::failing());
        let banner = page.find("1 of 13 checks failed").expect("a banner");
        assert!(banner < page.find("class=\"strip\"").expect("a summary"));
        assert!(page.contains("T1.17 read account &lt;4&gt; before"));
    }

    #[test]
    fn a_command_line_can_be_pasted() {
        assert_eq!(quoted("occ/dst,occ/rc"), "occ/dst,occ/rc");
        assert_eq!(quoted("my report.html"), "'my report.html'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
