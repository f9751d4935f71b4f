//! What a run was, in numbers: a recorder of outcomes, a table for people, a document for programs.
//!
//! A transaction counts in the second in which it ended. Throughput and latencies are of those that ended
//! after the warm-up and before the deadline; the timeline has every second.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::outcome::{Ended, Observer, Outcome};
use crate::target::Cause;
use crate::transactions::Transaction;

/// Latencies above this are recorded as this: an hour.
const LATENCY_MAX_US: u64 = 3_600_000_000;

/// What came of the attempts of a second, or of a kind of transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Transactions committed.
    pub committed: u64,
    /// Transactions rolled back, as their inputs wanted.
    pub rolled_back: u64,
    /// Attempts that were followed by another, by cause.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub retried: BTreeMap<Cause, u64>,
    /// Transactions given up, by cause.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<Cause, u64>,
}

impl Counts {
    fn add(&mut self, ended: Ended) {
        match ended {
            Ended::Committed => self.committed += 1,
            Ended::RolledBack => self.rolled_back += 1,
            Ended::Retried(cause) => *self.retried.entry(cause).or_default() += 1,
            Ended::Failed(cause) => *self.failed.entry(cause).or_default() += 1,
        }
    }

    /// All attempts that were followed by another.
    pub fn retried(&self) -> u64 {
        self.retried.values().sum()
    }

    /// All transactions given up.
    pub fn failed(&self) -> u64 {
        self.failed.values().sum()
    }
}

/// Of committed transactions, from when they were due to the end, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Half of all were faster.
    pub p50: f64,
    /// 90 % were.
    pub p90: f64,
    /// 99 % were.
    pub p99: f64,
    /// 99.9 % were.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
}

/// One kind of transaction within the measured time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Of {
    /// Which.
    pub transaction: Transaction,
    /// What came of its attempts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Committed per second.
    pub per_second: f64,
    /// How long they took, in milliseconds.
    pub latency_ms: Latency,
    /// Per cent of the committed ones that touched more than one warehouse.
    pub distributed_pct: f64,
    /// How many warehouses those touched, on average.
    pub warehouses_of_distributed: f64,
}

/// A run in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Seconds that were measured: the configured ones, or fewer if it was interrupted.
    pub measured_s: f64,
    /// Whether it was stopped early.
    pub interrupted: bool,
    /// In an open loop, transactions that were due before the end and that no terminal was free to begin. If
    /// there are any, the load was more than the database or the terminals could carry, and no latency says
    /// how much more.
    pub backlog: u64,
    /// All transactions within the measured time.
    pub total: Counts,
    /// Committed per second.
    pub per_second: f64,
    /// Committed New-Orders per minute, without keying and thinking times; no tpmC in the TPC's sense.
    pub new_orders_per_minute: f64,
    /// By kind, those of the mix.
    pub transactions: Vec<Of>,
    /// By second since the beginning, warm-up included.
    pub timeline: Vec<Counts>,
}

/// Sends outcomes to whoever sums them up.
pub struct Recorder(UnboundedSender<Outcome>);

impl Observer for Recorder {
    fn record(&self, outcome: &Outcome) {
        // Nobody listens any more when a run was given up.
        let _ = self.0.send(*outcome);
    }
}

/// A recorder and where its outcomes arrive.
pub fn recorder() -> (Recorder, UnboundedReceiver<Outcome>) {
    let (sender, receiver) = unbounded_channel();
    (Recorder(sender), receiver)
}

struct Kind {
    counts: Counts,
    latency_us: Histogram<u64>,
    distributed: u64,
    warehouses: u64,
}

/// Sums up outcomes.
pub struct Sums {
    warmup: Duration,
    end: Duration,
    interrupted: bool,
    backlog: u64,
    kinds: BTreeMap<Transaction, Kind>,
    timeline: Vec<Counts>,
}

impl Sums {
    /// For a run that measures from `warmup` to `end`, since it began.
    pub fn new(warmup: Duration, end: Duration) -> Sums {
        Sums { warmup, end, interrupted: false, backlog: 0, kinds: BTreeMap::new(), timeline: Vec::new() }
    }

    /// Adds an outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        let end = outcome.end();
        let second = end.as_secs() as usize;
        if self.timeline.len() <= second {
            self.timeline.resize(second + 1, Counts::default());
        }
        self.timeline[second].add(outcome.ended);
        if end < self.warmup || end >= self.end {
            return;
        }
        let kind = self.kinds.entry(outcome.transaction).or_insert_with(|| Kind {
            counts: Counts::default(),
            latency_us: Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).expect("the bounds are constants"),
            distributed: 0,
            warehouses: 0,
        });
        kind.counts.add(outcome.ended);
        if outcome.ended == Ended::Committed {
            kind.latency_us.saturating_record((outcome.waited().as_nanos() / 1000) as u64);
            if outcome.warehouses > 1 {
                kind.distributed += 1;
                kind.warehouses += u64::from(outcome.warehouses);
            }
        }
    }

    /// The last second that is complete.
    pub fn last_second(&self, elapsed: Duration) -> Option<&Counts> {
        self.timeline.get((elapsed.as_secs() as usize).checked_sub(1)?)
    }

    /// The run is over, or stopped, so long after the beginning: what ends later counts nowhere. `backlog`
    /// transactions were due and not begun.
    pub fn stop(&mut self, elapsed: Duration, backlog: u64) {
        self.backlog = backlog;
        self.interrupted |= elapsed < self.end;
        self.end = self.end.min(elapsed);
    }

    /// What it all was.
    pub fn summary(self) -> Summary {
        let interrupted = self.interrupted;
        let measured_s = self.end.saturating_sub(self.warmup).as_secs_f64();
        let per_second = |count: u64| if measured_s > 0.0 { count as f64 / measured_s } else { 0.0 };
        let share = |part: u64, of: u64| if of > 0 { part as f64 / of as f64 } else { 0.0 };
        let mut total = Counts::default();
        let mut transactions = Vec::new();
        let mut new_orders = 0;
        for (transaction, kind) in self.kinds {
            let counts = kind.counts;
            total.committed += counts.committed;
            total.rolled_back += counts.rolled_back;
            for (into, from) in [(&mut total.retried, &counts.retried), (&mut total.failed, &counts.failed)] {
                for (&cause, count) in from {
                    *into.entry(cause).or_default() += count;
                }
            }
            if transaction == Transaction::NewOrder {
                new_orders = counts.committed;
            }
            let ms = |us: u64| us as f64 / 1e3;
            let latencies = &kind.latency_us;
            transactions.push(Of {
                transaction,
                per_second: per_second(counts.committed),
                latency_ms: Latency {
                    mean: latencies.mean() / 1e3,
                    p50: ms(latencies.value_at_quantile(0.5)),
                    p90: ms(latencies.value_at_quantile(0.9)),
                    p99: ms(latencies.value_at_quantile(0.99)),
                    p999: ms(latencies.value_at_quantile(0.999)),
                    max: ms(latencies.max()),
                },
                distributed_pct: 100.0 * share(kind.distributed, counts.committed),
                warehouses_of_distributed: share(kind.warehouses, kind.distributed),
                counts,
            });
        }
        Summary {
            measured_s,
            interrupted,
            backlog: self.backlog,
            per_second: per_second(total.committed),
            new_orders_per_minute: 60.0 * per_second(new_orders),
            total,
            transactions,
            timeline: self.timeline,
        }
    }
}

/// The summary as people read it.
pub fn table(summary: &Summary) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header([
        "transaction",
        "committed",
        "/s",
        "rolled back",
        "retried",
        "failed",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "max ms",
        "distributed %",
    ]);
    for of in &summary.transactions {
        let ms = |ms: f64| format!("{ms:.2}");
        table.add_row([
            of.transaction.name().to_owned(),
            of.counts.committed.to_string(),
            format!("{:.1}", of.per_second),
            of.counts.rolled_back.to_string(),
            of.counts.retried().to_string(),
            of.counts.failed().to_string(),
            ms(of.latency_ms.p50),
            ms(of.latency_ms.p90),
            ms(of.latency_ms.p99),
            ms(of.latency_ms.max),
            format!("{:.1}", of.distributed_pct),
        ]);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding(if at == 0 { (0, 0) } else { (1, 0) });
        column.set_cell_alignment(if at == 0 { CellAlignment::Left } else { CellAlignment::Right });
    }
    let mut text = table.trim_fmt();
    text += &format!(
        "\n\n{:.1} transactions/s over {:.1} s, {:.0} new orders/min{}\n",
        summary.per_second,
        summary.measured_s,
        summary.new_orders_per_minute,
        if summary.interrupted { ", interrupted" } else { "" }
    );
    if summary.backlog > 0 {
        text += &format!("overloaded: {} transactions were due and never begun\n", summary.backlog);
    }
    for (what, causes) in [("retried", &summary.total.retried), ("failed", &summary.total.failed)] {
        if !causes.is_empty() {
            let causes = causes.iter().map(|(cause, count)| format!("{count} {}", cause.name()));
            text += &format!("{what}: {}\n", causes.collect::<Vec<_>>().join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(start_ms: u64, latency_ms: u64, ended: Ended) -> Outcome {
        Outcome {
            terminal: 0,
            transaction: Transaction::NewOrder,
            warehouse: 1,
            warehouses: 1,
            attempt: 1,
            due: Duration::from_millis(start_ms),
            start: Duration::from_millis(start_ms),
            latency_ns: latency_ms * 1_000_000,
            ended,
        }
    }

    #[test]
    fn only_what_ends_within_the_measured_time_counts() {
        let mut sums = Sums::new(Duration::from_secs(1), Duration::from_secs(3));
        for start_ms in [0, 500, 990, 1500, 2500, 2990] {
            sums.add(&outcome(start_ms, 20, Ended::Committed));
        }
        sums.add(&outcome(1600, 5, Ended::Retried(Cause::Deadlock)));
        let summary = sums.summary();
        assert_eq!(summary.total.committed, 3);
        assert_eq!(summary.per_second, 1.5);
        assert_eq!(summary.total.retried(), 1);
        assert_eq!(summary.timeline.iter().map(|second| second.committed).collect::<Vec<_>>(), [2, 2, 1, 1]);
        assert!(!summary.interrupted);
        assert!(table(&summary).contains("1 deadlock"));
    }

    #[test]
    fn what_ends_after_an_interruption_does_not_count() {
        let mut sums = Sums::new(Duration::from_secs(1), Duration::from_secs(9));
        sums.add(&outcome(1500, 20, Ended::Committed));
        sums.stop(Duration::from_secs(3), 7);
        sums.add(&outcome(2990, 20, Ended::Committed));
        let summary = sums.summary();
        assert!(summary.interrupted && summary.backlog == 7);
        assert_eq!((summary.total.committed, summary.measured_s), (1, 2.0));
    }

    #[test]
    fn a_transaction_that_waited_for_its_turn_took_longer() {
        let mut sums = Sums::new(Duration::ZERO, Duration::from_secs(3));
        let late = Outcome { due: Duration::from_millis(100), ..outcome(1000, 10, Ended::Committed) };
        sums.add(&late);
        let p50 = sums.summary().transactions[0].latency_ms.p50;
        assert!((905.0..915.0).contains(&p50), "{p50}");
    }
}
