//! `plimsoll sim`: worlds by the thousand, or one in detail.

use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::Sender;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_args::JsonOutput;
use plimsoll_page::file;
use plimsoll_page::progress::Progress;
use plimsoll_page::terminal::say;
use plimsoll_page::units;
use plimsoll_runtime::sim::{EPOCH_NS, Occurrence};
use plimsoll_sim::export::lines;
use plimsoll_sim::plan::{Plan, Selection};
use plimsoll_sim::recorder::{Recorder, Recording};
use plimsoll_sim::run::{Outcome, run};
use plimsoll_sim::shrink::shrink;
use plimsoll_timeline::{self as timeline, in_words, page};
use serde_json::{Value, json};

use crate::cli::sim::{SimPlan, Worlds};

/// Worlds that fail are described up to this number; all are counted.
const TOLD: usize = 10;
/// The history of a world that was shrunk is shown if it has no more lines.
const HISTORY_LINES: usize = 40;
/// Maximum number of failures in a sweep, which then ends.
const FAILURES_MAX: usize = 1000;
/// Time between two lines of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// What came of many worlds.
#[derive(Default)]
struct Sum {
    worlds: u64,
    transactions: u64,
    aborts: u64,
    faults: u64,
    moves: u64,
    virtual_ns: u64,
    failed: Vec<(Plan, Outcome)>,
    /// Whether Ctrl-C ended it before all worlds that were asked for had run.
    interrupted: bool,
}

/// What a simulation comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// Nothing was violated.
    Passed,
    /// Something was violated.
    Failed,
    /// Nothing was violated before Ctrl-C ended it, and not all worlds have run.
    Interrupted,
}

/// Runs a simulation.
pub fn sim(plan: &SimPlan, interrupted: &Arc<AtomicBool>) -> Result<Done, Box<dyn std::error::Error>> {
    stop_worlds_that_panic();
    match plan.worlds {
        Worlds::Seed(seed) => one(plan, seed),
        Worlds::Seeds(ref seeds) => many(plan, seeds.start, Some(seeds.end), None, interrupted),
        Worlds::Soak(first, time) => many(plan, first, None, Some(time), interrupted),
    }
}

fn one(plan: &SimPlan, seed: u64) -> Result<Done, Box<dyn std::error::Error>> {
    let clock = quanta::Clock::new();
    let begin = clock.now();
    let world = Plan::drawn(seed, &plan.selection)?;
    let (mut outcome, mut recording) = guarded(&world, plan.trace || plan.timeline.is_some());
    if let Some(path) = &plan.export {
        file::write_whole(path, &lines(&outcome))?;
    }
    let mut shown = world.clone();
    if !outcome.violations.is_empty() && plan.shrink && !plan.trace {
        (shown, outcome) = smaller(&world, outcome, plan.quiet);
        if plan.timeline.is_some() && shown != world {
            recording = guarded(&shown, true).1;
        }
    }
    if let Some(path) = &plan.timeline {
        let verdict = describe(&shown, &outcome);
        file::write_whole(
            path,
            &page(&shown, &outcome, &recording, again(&shown, &plan.selection), verdict),
        )?;
    }
    let done = if outcome.violations.is_empty() { Done::Passed } else { Done::Failed };
    let mut sum = Sum::default();
    sum.add(shown.clone(), outcome.clone());
    write_json(plan, &sum, &[(shown.clone(), outcome.clone())], begin.elapsed())?;
    if plan.json == JsonOutput::Stdout {
        return Ok(done);
    }
    if plan.trace {
        say(&timeline::trace(&shown, &outcome, &recording))?;
    }
    say(&describe(&shown, &outcome))?;
    if shown != world {
        let again = again(&shown, &plan.selection);
        say(&history(&shown, &outcome, &again))?;
        say(&format!(
            "\nThis is the smallest world found that fails like that of seed {seed}. Again: {again}\n"
        ))?;
    }
    Ok(done)
}

fn many(
    plan: &SimPlan,
    first: u64,
    end: Option<u64>,
    time: Option<Duration>,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, Box<dyn std::error::Error>> {
    let clock = quanta::Clock::new();
    let begin = clock.now();
    let progress = Progress::stderr(plan.quiet);
    let (next, stop) = (AtomicU64::new(first), AtomicBool::new(false));
    let mut sum = Sum::default();
    thread::scope(|scope| -> Result<(), String> {
        let (done, results) = mpsc::channel();
        for number in 0..plan.threads {
            let (done, next, stop, selection) = (done.clone(), &next, &stop, &plan.selection);
            let spawned =
                thread::Builder::new().name(format!("world-{number}")).spawn_scoped(scope, move || {
                    while !stop.load(SeqCst) {
                        let seed = next.fetch_add(1, SeqCst);
                        if end.is_some_and(|end| seed >= end) || done.send(run_seed(seed, selection)).is_err()
                        {
                            return;
                        }
                    }
                });
            spawned.map_err(|error| format!("a thread cannot be started: {error}"))?;
        }
        drop(done);
        let mut told = Duration::ZERO;
        loop {
            match results.recv_timeout(Duration::from_millis(100)) {
                Ok((world, outcome)) => sum.add(world, outcome),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let elapsed = begin.elapsed();
            sum.interrupted |= interrupted.load(SeqCst);
            if sum.interrupted || sum.failed.len() >= FAILURES_MAX || time.is_some_and(|time| elapsed >= time)
            {
                stop.store(true, SeqCst);
            }
            if elapsed >= told + PROGRESS_EVERY {
                told = elapsed;
                progress.note(&sum.line(end.map(|end| end - first), elapsed));
            }
        }
    })?;
    sum.interrupted &= end.is_none_or(|end| sum.worlds < end - first);
    sum.failed.sort_by_key(|(world, _)| world.seed);
    let done = match (sum.failed.is_empty(), sum.interrupted) {
        (false, _) => Done::Failed,
        (true, true) => Done::Interrupted,
        (true, false) => Done::Passed,
    };
    write_json(plan, &sum, &sum.failed, begin.elapsed())?;
    if plan.json == JsonOutput::Stdout {
        return Ok(done);
    }
    for (position, (world, outcome)) in sum.failed.iter().take(TOLD).enumerate() {
        // Only the first is made smaller: the others are often the same.
        if position == 0 && plan.shrink {
            let (small, smaller) = smaller(world, outcome.clone(), plan.quiet);
            let again = again(&small, &plan.selection);
            say(&describe(&small, &smaller))?;
            say(&history(&small, &smaller, &again))?;
            say(&format!("\nShrunk from seed {}. Again: {again}\n\n", world.seed))?;
        } else {
            say(&(describe(world, outcome) + "\n"))?;
        }
    }
    if sum.failed.len() > TOLD {
        say(&format!("... and {} more.\n\n", units::thousands((sum.failed.len() - TOLD) as u64)))?;
    }
    let all = end.map(|end| end - first).filter(|_| sum.interrupted);
    say(&(sum.line(all, begin.elapsed()) + "\n"))?;
    Ok(done)
}

/// The smallest world found that fails in the same way.
fn smaller(world: &Plan, outcome: Outcome, quiet: bool) -> (Plan, Outcome) {
    let progress = Progress::stderr(quiet);
    let begin = Instant::now();
    let (tried, told) = (Cell::new(0), Cell::new(Duration::ZERO));
    shrink(world, outcome, |world| {
        tried.set(tried.get() + 1);
        if begin.elapsed() >= told.get() + PROGRESS_EVERY {
            told.set(begin.elapsed());
            progress.note(&format!(
                "looking for a smaller world than that of seed {}: {} tried",
                world.seed,
                tried.get()
            ));
        }
        guarded(world, false).0
    })
}

fn run_seed(seed: u64, selection: &Selection) -> (Plan, Outcome) {
    let world = Plan::drawn(seed, selection).expect("a selection was tried before");
    let outcome = guarded(&world, false).0;
    (world, outcome)
}

type Verdict = (Outcome, Recording);

thread_local! {
    /// Who waits for the verdict on the world that runs on this thread.
    static WAITING: OnceCell<(Sender<Verdict>, Option<Recorder>)> = const { OnceCell::new() };
}

/// Runs a world on a thread of its own. A violated assertion there is a verdict, not a crash.
fn guarded(world: &Plan, watch: bool) -> Verdict {
    let (done, verdict) = mpsc::channel();
    let plan = world.clone();
    let started = thread::Builder::new().name(format!("world {}", world.seed)).spawn(move || {
        let recorder = watch.then(Recorder::default);
        let set = WAITING.with(|waiting| waiting.set((done.clone(), recorder.clone())).is_ok());
        assert!(set, "a thread runs one world");
        let outcome = run(&plan, recorder.clone());
        let _ = done.send((outcome, recorder.map(|recorder| recorder.take()).unwrap_or_default()));
    });
    if let Err(error) = started {
        eprintln!("plimsoll: a world needs a thread, and none can be started: {error}; use fewer --threads");
        std::process::exit(2);
    }
    verdict.recv().expect("a world ends with a verdict")
}

/// A panic aborts the process, for half a database is of no use. A world is of no use to others:
/// its thread tells what happened and stops for ever.
fn stop_worlds_that_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        WAITING.with(|waiting| match waiting.get() {
            None => usual(panic),
            Some((waiting, recorder)) => {
                let recording = recorder.as_ref().map(Recorder::take).unwrap_or_default();
                let _ = waiting.send((Outcome::panicked(panic.payload()), recording));
                loop {
                    thread::park();
                }
            }
        });
    }));
}

impl Sum {
    fn add(&mut self, world: Plan, outcome: Outcome) {
        self.worlds += 1;
        self.transactions += outcome.transactions;
        self.aborts += outcome.aborts;
        self.faults += faults(&world, &outcome).count() as u64;
        self.moves += outcome.moves;
        self.virtual_ns += outcome.virtual_ns;
        if !outcome.violations.is_empty() {
            self.failed.push((world, outcome));
        }
    }

    fn line(&self, of: Option<u64>, elapsed: Duration) -> String {
        let worlds = match of {
            Some(of) => format!("{}/{}", units::thousands(self.worlds), units::plural(of, "world", "worlds")),
            None => units::plural(self.worlds, "world", "worlds"),
        };
        let verdict = match self.failed.len() {
            0 => "no violation".to_owned(),
            n => units::plural(n as u64, "world with violations", "worlds with violations"),
        };
        let verdict = if self.interrupted { format!("{verdict} so far: interrupted") } else { verdict };
        format!(
            "{worlds} · {} · {} · {} · {} · {:.0} virtual s in {:.1} s · {verdict}",
            units::plural(self.transactions, "transaction", "transactions"),
            units::plural(self.aborts, "abort", "aborts"),
            units::plural(self.faults, "fault", "faults"),
            units::plural(self.moves, "move", "moves"),
            self.virtual_ns as f64 / 1e9,
            elapsed.as_secs_f64(),
        )
    }
}

/// The faults that were not left out of a world.
fn faults<'a>(world: &'a Plan, outcome: &'a Outcome) -> impl Iterator<Item = &'a Occurrence> + Clone {
    outcome.faults.iter().filter(|fault| !world.skip.contains(&fault.index))
}

/// A world and what came of it, for people.
fn describe(world: &Plan, outcome: &Outcome) -> String {
    let mut text = format!(
        "seed {}: {}, {}{}{}, {} on machines of {}{}, {} each, {} each\n",
        world.seed,
        world.pair(),
        world.workload.name(),
        if world.spread { " spread over all shards" } else { "" },
        if world.keys < *world.workload.keys().end() {
            format!(" of {} keys", world.keys)
        } else {
            String::new()
        },
        units::plural(world.shards as u64, "shard", "shards"),
        world.hardware.shards_per_machine,
        match world.fronts {
            0 => String::new(),
            1 => " and a machine without data".to_owned(),
            n => format!(" and {n} machines without data"),
        },
        units::plural(world.clients as u64, "client", "clients"),
        units::plural(world.transactions as u64, "transaction", "transactions"),
    );
    if let Some(mutant) = world.mutant {
        text.push_str(&format!("  planted   {}: {}\n", mutant.name(), mutant.description()));
    }
    text.push_str(&format!(
        "  outcome   {} committed, {}, slots moved {}, in {:.3} virtual s; clocks up to {:.3} ms wrong; hash {:016x}\n",
        outcome.transactions,
        units::plural(outcome.aborts, "abort", "aborts"),
        units::plural(outcome.moves, "time", "times"),
        outcome.virtual_ns as f64 / 1e9,
        outcome.clock_error_ns as f64 / 1e6,
        outcome.hash,
    ));
    let faults = faults(world, outcome);
    for fault in faults.clone().take(TOLD) {
        let (_, words, _, lasts) = in_words(&fault.fault);
        let time = match lasts {
            true => format!(", for {:.3} ms", (fault.end_ns - fault.begin_ns) as f64 / 1e6),
            false => String::new(),
        };
        text.push_str(&format!(
            "  fault {:<4}{:>10.3} ms{time}: {words}\n",
            fault.index,
            fault.begin_ns as f64 / 1e6
        ));
    }
    if faults.clone().count() > TOLD {
        text.push_str(&format!("  ... and {} more faults\n", faults.count() - TOLD));
    }
    for violation in &outcome.violations {
        // Stamps are times: the world's beginning says nothing.
        let detail = violation.detail.replace(&format!("@{}", EPOCH_NS / 1_000_000_000), "@…");
        text.push_str(&format!("  ✗ {}: {detail}\n", violation.kind));
    }
    if outcome.violations.is_empty() {
        text.push_str("  ✓ nothing is violated\n");
    }
    text
}

/// What the transactions of a world did and what went wrong meanwhile, in the order of time. Of a
/// world with many, or that ended in the middle of them, how all that happened is shown.
fn history(world: &Plan, outcome: &Outcome, again: &str) -> String {
    let told = timeline::history(world, outcome);
    match told.lines().count() {
        1..=HISTORY_LINES => format!("\nWhat its transactions did:\n{told}"),
        _ => format!("\nWhat happened in it, event by event: {again} --trace\n"),
    }
}

/// The command line that runs a world again, which a selection has given or which was made smaller.
pub fn again(world: &Plan, selection: &Selection) -> String {
    let mut line = format!(
        "plimsoll sim --seed {} --protocol {} --scheme {} --workload {} --keys {} --shards {} --fronts {} --moves {} \
         --one-round {} --clients {} --transactions {}",
        world.seed,
        world.pair().split('/').next().unwrap_or_default(),
        world.scheme,
        world.workload.name(),
        world.keys,
        world.shards,
        world.fronts,
        world.moves,
        world.one_round,
        world.clients,
        world.transactions,
    );
    let faults = match selection.faults {
        plimsoll_sim::plan::FaultsName::None => " --faults none",
        plimsoll_sim::plan::FaultsName::Network => " --faults network",
        plimsoll_sim::plan::FaultsName::All => " --faults all",
        plimsoll_sim::plan::FaultsName::Drawn => "",
    };
    line.push_str(faults);
    if world.logs {
        line.push_str(if world.to_cut { " --durability async" } else { " --durability sync" });
    }
    for (name, value) in selection.knobs_of(world) {
        line.push_str(&format!(" --fault {name}={value}"));
    }
    if !world.only.is_empty() {
        let only: Vec<String> =
            world.only.iter().map(|nth| format!("{}.{}", nth.client, nth.place)).collect();
        line.push_str(&format!(" --only {}", only.join(",")));
    }
    if !world.skip.is_empty() {
        let skip: Vec<String> = world.skip.iter().map(u32::to_string).collect();
        line.push_str(&format!(" --skip {}", skip.join(",")));
    }
    if let Some(mutant) = world.mutant {
        line.push_str(&format!(" --mutant {}", mutant.name()));
    }
    line + " --no-shrink"
}

fn write_json(
    plan: &SimPlan,
    sum: &Sum,
    worlds: &[(Plan, Outcome)],
    elapsed: Duration,
) -> Result<(), Box<dyn std::error::Error>> {
    let text = match plan.json {
        JsonOutput::None => return Ok(()),
        _ => serde_json::to_string_pretty(&document(plan, sum, worlds, elapsed)),
    };
    let text = text.expect("a document of plain values") + "\n";
    match &plan.json {
        JsonOutput::File(path) => file::write_whole(path, &text)?,
        _ => say(&text)?,
    }
    Ok(())
}

/// Every figure, and these worlds one by one.
fn document(plan: &SimPlan, sum: &Sum, worlds: &[(Plan, Outcome)], elapsed: Duration) -> Value {
    let violations: Vec<_> = (sum.failed.iter())
        .flat_map(|(world, outcome)| outcome.violations.iter().map(move |violation| (world, violation)))
        .map(|(world, violation)| {
            json!({
                "seed": world.seed,
                "protocol": world.pair().split('/').next().unwrap_or_default(),
                "scheme": world.scheme,
                "workload": world.workload.name(),
                "kind": violation.kind,
                "detail": violation.detail,
            })
        })
        .collect();
    let worlds: Vec<_> = (worlds.iter())
        .map(|(world, outcome)| {
            json!({
                "seed": world.seed,
                "protocol": world.pair().split('/').next().unwrap_or_default(),
                "scheme": world.scheme,
                "workload": world.workload.name(),
                "hash": format!("{:016x}", outcome.hash),
                "transactions": outcome.transactions,
                "aborts": outcome.aborts,
                "faults": faults(world, outcome).count(),
                "moves": outcome.moves,
                "virtual_seconds": outcome.virtual_ns as f64 / 1e9,
                "clock_error_seconds": outcome.clock_error_ns as f64 / 1e9,
                "violations": outcome.violations.len(),
                "again": again(world, &plan.selection),
            })
        })
        .collect();
    json!({
        "seeds": sum.worlds,
        "interrupted": sum.interrupted,
        "transactions": sum.transactions,
        "aborts": sum.aborts,
        "faults": sum.faults,
        "moves": sum.moves,
        "virtual_seconds": sum.virtual_ns as f64 / 1e9,
        "violations": violations,
        "worlds": worlds,
        "threads": if matches!(plan.worlds, Worlds::Seed(_)) { 1 } else { plan.threads },
        "seconds": elapsed.as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_runtime::sim::Fault;
    use plimsoll_sim::plan::{FaultsName, WorkloadName};

    use super::*;
    use crate::cli::sim::SimArgs;

    fn world(transactions: usize, faults: FaultsName) -> (Plan, Outcome) {
        let selection = Selection {
            workload: Some(WorkloadName::Cycle),
            protocol: Some("occ"),
            scheme: Some("dst"),
            faults,
            fronts: Some(0),
            shards: Some(1),
            clients: Some(1),
            transactions: Some(transactions),
            ..Selection::default()
        };
        let plan = Plan::drawn(1, &selection).unwrap();
        let outcome = run(&plan, None);
        (plan, outcome)
    }

    #[test]
    fn a_short_history_is_shown_and_of_a_long_one_the_command_that_shows_it() {
        let (plan, short) = world(3, FaultsName::None);
        assert!(!short.history.transactions.is_empty());
        let told = history(&plan, &short, "plimsoll sim --seed 1");
        for transaction in &short.history.transactions {
            let name = format!("  {:?}  ", transaction.id);
            assert_eq!(told.matches(&name).count(), 2, "it begins and it ends: {told}");
        }
        assert!(told.contains("read ring") && !told.contains("--trace"), "{told}");
        for long in [world(100, FaultsName::None).1, Outcome::default()] {
            let told = history(&plan, &long, "plimsoll sim --seed 1");
            assert!(told.ends_with("plimsoll sim --seed 1 --trace\n") && told.lines().count() == 2, "{told}");
        }
    }

    #[test]
    fn a_verdict_tells_of_faults_in_words_and_not_of_those_that_are_left_out() {
        let (mut plan, mut outcome) = world(40, FaultsName::None);
        let (first, other) = (3, 4);
        let pause =
            |index| Occurrence { index, begin_ns: 1_500_000, end_ns: 2_000_000, fault: Fault::Pause(0) };
        outcome.faults = vec![pause(first), pause(other)];
        plan.skip = vec![first];
        let told = describe(&plan, &outcome);
        assert!(
            told.contains(&format!("  fault {other:<4}")) && !told.contains(&format!("  fault {first:<4}"))
        );
        let line = told.lines().find(|line| line.starts_with("  fault")).expect("something goes wrong");
        assert!(line.contains("machine 0 ") && line.contains(" ms"), "{line}");
        assert!(!told.contains(['(', '{']), "as the program calls them: {told}");
    }

    #[test]
    fn a_document_has_every_figure_and_the_worlds_that_it_names_one_by_one() {
        let args = SimArgs { seed: Some(1), ..SimArgs::default() };
        let plan = args.validate(2, 0).unwrap();
        let (world, mut outcome) = world(3, FaultsName::All);
        let violation =
            plimsoll_sim::run::Violation { kind: "stuck".to_owned(), detail: "a client".to_owned() };
        outcome.violations.push(violation);
        let mut sum = Sum::default();
        sum.add(world.clone(), outcome.clone());
        sum.add(world.clone(), outcome.clone());
        let document = document(&plan, &sum, &sum.failed[..1], Duration::from_millis(1500));
        for (name, twice) in [
            ("seeds", 1),
            ("transactions", outcome.transactions),
            ("aborts", outcome.aborts),
            ("faults", outcome.faults.len() as u64),
            ("moves", outcome.moves),
        ] {
            assert_eq!(document[name], 2 * twice, "{name}");
        }
        assert_eq!(document["virtual_seconds"], 2.0 * outcome.virtual_ns as f64 / 1e9);
        assert_eq!(document["seconds"], 1.5);
        assert_eq!(document["violations"][1]["kind"], "stuck");
        let [told] = &document["worlds"].as_array().unwrap()[..] else { panic!("{document}") };
        assert_eq!(told["hash"], format!("{:016x}", outcome.hash));
        assert_eq!(told["again"], again(&world, &plan.selection));
        assert_eq!([&told["protocol"], &told["scheme"], &told["workload"]], ["occ", "dst", "cycle"]);
        assert_eq!(told["violations"], 1);
    }
}
