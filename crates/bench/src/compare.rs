//! The order of all runs of a benchmark: pairs, repetitions, loads.
//!
//! A comparison runs its pairs one after the other, A B C, C B A, A B C, each on a freshly loaded
//! database, and takes ratios within a repetition.
//!
//! With `--load` it does so at every load in turn: what is compared at a load ran as near to each
//! other as without an axis, and of an axis that is interrupted the first loads are complete.
//!
//! Shares are those of each pair's own peak, which is found first: a closed loop with the default
//! number of transactions in flight, and twice as many until throughput grows no more. With the
//! peak of one pair for all, a pair that is half as fast would have its whole curve beyond what it
//! can do. Curves are drawn over transactions per second, so they can be compared all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

use plimsoll_engine::machine;
use plimsoll_page::progress::Progress;
use plimsoll_page::units;
use plimsoll_txn::pairs::{Pair, Protocol};
use plimsoll_workloads::AnyWorkload;

use super::cli::axis::Load;
use super::cli::plan::{BenchPlan, CLIENTS_MAX};
use super::empty_document;
use super::report::model::{self, Document, Run};
use super::report::points;
use super::run::{self, Failure};
use super::workload;

/// Throughput grows if twice as many transactions in flight make it that many times as large: less
/// is within the noise of two runs.
const GROWS: f64 = 1.05;

/// Runs the pairs of a plan in turn, as often and at as many loads as it says, and derives their
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
    /// Of each pair, if shares of it are asked for.
    peaks: Vec<(Pair, Peak)>,
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
        let runs_per_load = plan.pairs.len() * plan.runs as usize;
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
            for &pair in &plan.pairs {
                let peak = self.find_peak(pair)?;
                self.peaks.push((pair, peak));
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

    /// Runs each pair as often as the plan says.
    fn repeat(&mut self, load: Option<Load>) -> Result<(), Failure> {
        let mut pairs = self.plan.pairs.clone();
        for repetition in 1..=self.plan.runs {
            for &pair in &pairs {
                if self.ends() {
                    return Ok(());
                }
                let plan = load.map_or_else(|| self.plan.clone(), |load| self.at(load, pair));
                let run = self.run(&plan, pair, load, repetition)?;
                self.document.runs.push(run);
            }
            // What comes after what has an effect, which cancels out if both orders take turns.
            pairs.reverse();
        }
        Ok(())
    }

    fn run(&self, plan: &BenchPlan, pair: Pair, load: Option<Load>, repetition: u32) -> Result<Run, Failure> {
        let run = run::run(self.workload, plan, pair, repetition, self.progress, self.interrupted)?;
        Ok(Run { at_load: load.map(|load| load.to_string()), ..run })
    }

    /// The plan of a run of a pair at a load.
    fn at(&self, load: Load, pair: Pair) -> BenchPlan {
        let plan = self.plan.clone();
        match load {
            Load::InFlight(concurrency) => BenchPlan { concurrency: concurrency as usize, ..plan },
            Load::Share(percent) => {
                let peak = self.peaks.iter().find(|(of, _)| *of == pair).map(|(_, peak)| *peak);
                let Peak { concurrency, throughput_tps } = peak.unwrap_or_default();
                let rate = (throughput_tps * percent as f64 / 100.0).round().max(1.0);
                BenchPlan { concurrency, rate: Some(rate as u64), ..plan }
            }
        }
    }

    /// Finds the peak of a pair, in a run for each number of transactions in flight.
    fn find_peak(&mut self, pair: Pair) -> Result<Peak, Failure> {
        let mut best = Peak { concurrency: self.plan.concurrency, throughput_tps: 0.0 };
        let mut concurrency = best.concurrency;
        while concurrency * self.plan.coordinators <= CLIENTS_MAX && !self.ends() {
            let load = Load::InFlight(concurrency as u64);
            let run = self.run(&self.at(load, pair), pair, Some(load), 1)?;
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
