//! The order of all runs of a benchmark: pairs, durabilities, repetitions, loads.
//!
//! A comparison runs its sides, pairs or durabilities, one after the other, A B C, C B A, A B C,
//! each on a freshly loaded database, and takes ratios within a repetition.
//!
//! With `--load` it does so at every load in turn: what is compared at a load ran as near to each
//! other as without an axis, and of an axis that is interrupted the first loads are complete.
//!
//! Shares are those of each side's own peak, which is found first: a closed loop with the default
//! number of transactions in flight, and twice as many until throughput grows no more. With the
//! peak of one side for all, one that is half as fast would have its whole curve beyond what it can
//! do. Curves are drawn over transactions per second, so they can be compared all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

use plimsoll_engine::machine;
use plimsoll_page::progress::Progress;
use plimsoll_page::units;
use plimsoll_txn::pairs::Protocol;
use plimsoll_workloads::AnyWorkload;

use super::cli::axis::Load;
use super::cli::plan::{BenchPlan, CLIENTS_MAX, Side};
use super::empty_document;
use super::report::model::{self, Document, Run};
use super::report::points;
use super::run::{self, Failure};
use super::workload;

/// Throughput grows if twice as many transactions in flight make it that many times as large: less
/// is within the noise of two runs.
const GROWS: f64 = 1.05;

/// Runs the sides of a plan in turn, as often and at as many loads as it says, and derives their
/// ratios.
pub fn compare(
    workload: &Arc<dyn AnyWorkload>,
    plan: &BenchPlan,
    progress: Progress,
    interrupted: &AtomicBool,
) -> Result<Document, Failure> {
    let mut document = empty_document();
    if plan.pairs.iter().any(|pair| pair.protocol == Protocol::Rococo) {
        document.pieces = workload.chopping().ok().map(|chopping| workload::graph(&**workload, &chopping));
    }
    let mut course = Course { workload, plan, progress, interrupted, document, peaks: Vec::new() };
    match plan.loads.is_empty() {
        true => course.repeat(None)?,
        false => course.follow_axis()?,
    }
    let mut document = course.document;
    document.interrupted = interrupted.load(SeqCst);
    document.date = machine::utc_now();
    document.ratios = model::ratios(&document.runs);
    document.points = points::points(&document.runs);
    document.doubts = document.all_runs().filter_map(Run::doubt).collect();
    Ok(document)
}

/// The runs of a plan, as far as they have come.
struct Course<'a> {
    workload: &'a Arc<dyn AnyWorkload>,
    plan: &'a BenchPlan,
    progress: Progress,
    interrupted: &'a AtomicBool,
    document: Document,
    /// Of each side, if shares of it are asked for.
    peaks: Vec<(Side, Peak)>,
}

/// The largest throughput that a closed loop reached.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    /// Transactions in flight per shard.
    concurrency: usize,
    throughput_tps: f64,
}

impl Course<'_> {
    /// Runs at all loads of the plan.
    fn follow_axis(&mut self) -> Result<(), Failure> {
        let (begun, plan) = (Instant::now(), self.plan);
        let sides = plan.sides();
        let runs_per_load = sides.len() * plan.runs as usize;
        let runs = runs_per_load * plan.loads.len();
        let each = plan.warmup + plan.duration;
        self.progress.note(&format!(
            "{}, {} of {}: about {}, and the time to load and to check the data",
            units::plural(plan.loads.len() as u64, "load", "loads"),
            units::plural(runs as u64, "run", "runs"),
            units::seconds(each.as_secs_f64()),
            units::seconds((each * runs as u32).as_secs_f64()),
        ));
        if matches!(plan.loads[0], Load::Share(_)) {
            self.progress.note("before them, two runs or more of each pair find its peak");
            for side in sides {
                let peak = self.find_peak(side)?;
                self.peaks.push((side, peak));
            }
        }
        for (number, &load) in plan.loads.iter().enumerate() {
            if self.ends() {
                break;
            }
            // A run takes longer than it measures; how long, the runs so far have shown.
            let took = begun.elapsed().as_secs_f64() / self.document.all_runs().count().max(1) as f64;
            let left = (runs - runs_per_load * number) as f64 * took.max(each.as_secs_f64());
            self.progress.note(&format!(
                "load {load}, {} of {}: about {} to go",
                number + 1,
                plan.loads.len(),
                units::seconds(left)
            ));
            self.repeat(Some(load))?;
        }
        Ok(())
    }

    /// Whether the user has ended all and there is something to show.
    fn ends(&self) -> bool {
        self.interrupted.load(SeqCst) && self.document.all_runs().next().is_some()
    }

    /// Runs each side as often as the plan says.
    fn repeat(&mut self, load: Option<Load>) -> Result<(), Failure> {
        let mut sides = self.plan.sides();
        for repetition in 1..=self.plan.runs {
            for &side in &sides {
                if self.ends() {
                    return Ok(());
                }
                let plan = load.map_or_else(|| self.plan.of(side), |load| self.at(load, side));
                let run = self.run(&plan, side, load, repetition)?;
                self.document.runs.push(run);
            }
            // What comes after what has an effect, which cancels out if both orders take turns.
            sides.reverse();
        }
        Ok(())
    }

    fn run(&self, plan: &BenchPlan, side: Side, load: Option<Load>, repetition: u32) -> Result<Run, Failure> {
        let run = run::run(self.workload, plan, side, repetition, self.progress, self.interrupted)?;
        Ok(Run { at_load: load.map(|load| load.to_string()), ..run })
    }

    /// The plan of a run of a side at a load.
    fn at(&self, load: Load, side: Side) -> BenchPlan {
        let plan = self.plan.of(side);
        match load {
            Load::InFlight(concurrency) => BenchPlan { concurrency: concurrency as usize, ..plan },
            Load::Share(percent) => {
                let peak = self.peaks.iter().find(|(of, _)| *of == side).map(|(_, peak)| *peak);
                let Peak { concurrency, throughput_tps } = peak.unwrap_or_default();
                let rate = (throughput_tps * percent as f64 / 100.0).round().max(1.0);
                BenchPlan { concurrency, rate: Some(rate as u64), ..plan }
            }
        }
    }

    /// Finds the peak of a side, in a run for each number of transactions in flight.
    fn find_peak(&mut self, side: Side) -> Result<Peak, Failure> {
        let mut best = Peak { concurrency: self.plan.concurrency, throughput_tps: 0.0 };
        let mut concurrency = best.concurrency;
        while concurrency * self.plan.coordinators <= CLIENTS_MAX && !self.ends() {
            let load = Load::InFlight(concurrency as u64);
            let run = self.run(&self.at(load, side), side, Some(load), 1)?;
            let throughput_tps = run.throughput_tps;
            self.document.peaks.push(run);
            let grows = throughput_tps > GROWS * best.throughput_tps;
            if throughput_tps > best.throughput_tps {
                best = Peak { concurrency, throughput_tps };
            }
            if !grows {
                break;
            }
            concurrency *= 2;
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;
    use crate::cli::BenchArgs;

    /// What comes of a command line; `interrupted` tells whether the user ends it at once.
    fn compared(flags: &str, interrupted: bool) -> Document {
        let line = format!("bench smallbank --accounts 200 --shards 1 --warmup 0 --duration 100ms {flags}");
        let matches =
            BenchArgs::augment_args(Command::new("bench")).get_matches_from(line.split_whitespace());
        let args = BenchArgs::from_arg_matches(&matches).expect("such flags exist");
        let plan = args.validate(1, 0).expect("fine");
        let workload = workload::make(&plan).expect("it is possible");
        compare(&workload, &plan, Progress::Silent, &AtomicBool::new(interrupted)).expect("it runs")
    }

    fn order(runs: &[Run]) -> Vec<String> {
        runs.iter().map(Run::place).collect()
    }

    #[test]
    fn pairs_take_turns_at_every_load() {
        let document = compared("--load 1,4 --compare occ/dst,occ/none --runs 2", false);
        let turns = |load| {
            [("dst", 1), ("none", 1), ("none", 2), ("dst", 2)]
                .map(|(scheme, repetition)| format!("occ/{scheme} at {load}, repetition {repetition}"))
        };
        assert_eq!(order(&document.runs), [turns(1), turns(4)].concat());
        let set: Vec<_> = document.runs.iter().map(|run| run.config.get("concurrency").cloned()).collect();
        assert!(set[..4].iter().all(|set| *set == Some(1.into())), "{set:?}");
        assert!(set[4..].iter().all(|set| *set == Some(4.into())), "{set:?}");
        assert_eq!((document.points.len(), document.ratios.len(), document.peaks.len()), (4, 2, 0));
        assert!(document.points.iter().all(|point| point.runs == 2 && point.rate.is_none()));
        for run in &document.runs {
            let Latencies { least, most } = latencies(run);
            assert!(
                (least..=most).contains(&run.latency_us.p50),
                "{:?} of {least} to {most}",
                run.latency_us
            );
            assert!(run.checks.len() >= 3 && run.failures().next().is_none(), "{:?}", run.checks);
        }
    }

    /// The least and the largest median of the transaction types.
    struct Latencies {
        least: f64,
        most: f64,
    }

    fn latencies(run: &Run) -> Latencies {
        let medians = run.transactions.iter().map(|(_, of)| of.latency_us.p50).filter(|p50| *p50 > 0.0);
        let (least, most) =
            medians.fold((f64::INFINITY, 0.0), |(low, high), p50| (p50.min(low), p50.max(high)));
        Latencies { least, most }
    }

    #[test]
    fn durabilities_take_turns_and_only_what_is_kept_is_written_again() {
        let scratch = tempfile::tempdir().expect("a directory");
        let flags = format!(
            "--data-dir {} --compare-durability none,sync --replay-raw --runs 2",
            scratch.path().display()
        );
        let document = compared(&flags, false);
        assert_eq!(
            order(&document.runs),
            [
                "occ/dst none, repetition 1",
                "occ/dst sync, repetition 1",
                "occ/dst sync, repetition 2",
                "occ/dst none, repetition 2"
            ]
        );
        for run in &document.runs {
            let durability = run.config.get("durability").cloned();
            assert_eq!(durability, run.durability.clone().map(Into::into));
            let Some(disk) = run.disk else {
                assert_eq!(run.durability.as_deref(), Some("none"));
                continue;
            };
            assert_eq!(run.durability.as_deref(), Some("sync"));
            assert!(disk.syncs > 0 && disk.bytes >= 64 * disk.syncs, "{disk:?}");
            // The record begins before the measured interval and ends after it.
            assert!(disk.log.seconds > run.seconds - 0.01, "{disk:?} of {} s", run.seconds);
            assert!(disk.log.sync_us > 0.0 && disk.bare.sync_us > 0.0, "{disk:?}");
            let ratio = disk.bare.seconds / disk.log.seconds;
            assert!((disk.ratio / ratio - 1.0).abs() < 1e-9, "{disk:?}");
        }
        let ratio = document.ratios.first().expect("there is one");
        assert_eq!((ratio.of.as_str(), ratio.to.as_str()), ("occ/dst sync", "occ/dst none"));
        assert!(document.all_checks_hold());
        assert_eq!(std::fs::read_dir(scratch.path()).expect("it is there").count(), 0, "all is removed");
    }

    #[test]
    fn shares_are_rates_of_each_pairs_own_peak() {
        let document = compared("--load 20%,60% --compare occ/dst,occ/none --runs 1", false);
        for pair in ["occ/dst", "occ/none"] {
            let found: Vec<&str> = document
                .peaks
                .iter()
                .filter(|run| run.pair() == pair)
                .filter_map(|run| run.at_load.as_deref())
                .collect();
            assert_eq!(found[..2], ["8", "16"], "at least two runs say whether it grows");
            let peak = document.peak_of(pair).expect("it was found");
            for (point, percent) in document.points_of(pair).zip([20.0, 60.0]) {
                assert_eq!(point.rate, Some((peak.throughput_tps * percent / 100.0).round() as u64));
                assert_eq!(Some(point.concurrency), peak.config.get("concurrency").and_then(|n| n.as_u64()));
            }
            assert_eq!(document.points_of(pair).count(), 2);
        }
    }

    #[test]
    fn an_axis_that_is_interrupted_ends_with_the_run_that_it_was_in() {
        let document = compared("--load 1,2,4", true);
        assert_eq!((document.runs.len(), document.points.len()), (1, 0));
        assert!(document.interrupted && document.all_checks_hold());
        let document = compared("--load 50%..100%", true);
        assert_eq!((document.peaks.len(), document.runs.len()), (1, 0));
    }
}
