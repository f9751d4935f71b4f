//! The figures of a benchmark as one document, and what is derived from them.
//!
//! A [`Document`] is what `plimsoll bench --json` writes: the machine, every run, and the ratios of
//! a comparison. The terminal tables and the HTML page are two other renderings of the same value,
//! so no figure can be in one and differ in another. Scripts rely on the field names; adding a
//! field is fine, renaming or moving one breaks somebody.
//!
//! Units are in the names: `_us` microseconds, `_bytes`, `_seconds`, `_tps` transactions per
//! second. A `share` is a fraction from 0 to 1. *Committed* counts transactions, *aborted* counts
//! attempts: one transaction may abort several times before it commits. `user` aborts are the
//! workload's own roll-backs, part of its definition and no sign of contention, which is why
//! [`Aborts::by_system`] leaves them out.
//!
//! **How a comparison is judged.** The pairs of one repetition run one after the other, so a
//! machine that slows down hurts them all. Hence a ratio is taken inside each repetition, and the
//! median of those ratios is reported with its smallest and largest: for throughputs of (100, 50)
//! k/s and (80, 40) k/s the ratio is 0.5 twice, though either system alone varies by a fifth.
//! Ratios of medians are not used.
//!
//! Left out: confidence intervals. With three to ten repetitions the range says as much.

use hdrhistogram::Histogram;
use plimsoll_engine::machine::{Machine, disturbance};
use plimsoll_types::Abort;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::pieces::PieceGraph;
use super::points::Point;

/// All that one invocation measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Document {
    /// The program's version.
    pub plimsoll: String,
    /// The commit it was built from, with `-dirty` if the checkout had changes.
    pub commit: String,
    /// Where it ran.
    pub machine: Machine,
    /// When it ended, UTC, ISO 8601; empty if unknown.
    pub date: String,
    /// The command line, program name first.
    pub command: Vec<String>,
    /// Whether the user ended it early; the figures are those so far.
    pub interrupted: bool,
    /// Every run, in the order in which they ran, but for `peaks`.
    pub runs: Vec<Run>,
    /// The runs of a closed loop that came before these and found the peaks of the pairs; absent
    /// unless loads are shares of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peaks: Vec<Run>,
    /// What each pair reached at each load; absent without an axis of loads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point>,
    /// What casts doubt on the figures, in sentences.
    pub doubts: Vec<String>,
    /// The throughput of every other pair relative to the first; see [`ratios`].
    pub ratios: Vec<Ratio>,
    /// How the transactions are cut into pieces; absent unless `rococo` ran them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<PieceGraph>,
}

/// One run of one workload under one pair of protocol and scheme.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// `tpcc`, `smallbank`, `micro`.
    pub workload: String,
    /// `occ`, `two_pl`, `client_2pc`, `rococo`.
    pub protocol: String,
    /// `dst`, `gts`, `vts`, `rc`, `none`.
    pub scheme: String,
    /// What outlives the database, `none` or `sync`; absent unless durabilities are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<String>,
    /// Whether the pair promises serializability. `rc` does not.
    pub serializable: bool,
    /// Everything that was set, by the names of the flags, snake case.
    pub config: Named<Value>,
    /// The load of an axis, as on the command line: `8`, `50%`; absent without one. In numbers it
    /// is in `config`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_load: Option<String>,
    /// Which repetition of a comparison this is, from 1.
    pub repetition: u32,
    /// Whether the user ended this run early.
    pub interrupted: bool,
    /// Whether it ended early because its data had used all memory that it may have.
    pub memory_full: bool,
    /// Length of the measured interval, warm-up excluded.
    pub seconds: f64,
    /// Transactions committed in it.
    pub committed: u64,
    /// `committed / seconds`.
    pub throughput_tps: f64,
    /// Throughput divided by the cores that were busy with it.
    pub throughput_per_core_tps: f64,
    /// TPC-C's tpmC, committed New-Orders per minute, without think time; absent for other
    /// workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_orders_per_minute: Option<f64>,
    /// TPC-E's tpsE, committed Trade-Results per second; absent for other workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trade_results_per_second: Option<f64>,
    /// What the workload itself counts, of all processes since the load.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub workload_figures: Named<u64>,
    /// Aborted attempts by reason.
    pub aborts: Aborts,
    /// Aborted attempts of transactions declared read-only; 0 under DST.
    pub read_only_aborts: u64,
    /// Read-only transactions that started over at another snapshot.
    pub read_only_restarts: u64,
    /// Reads of read-only transactions that waited for a writer.
    pub read_only_waits: u64,
    /// Share of committed transactions that touched more than one shard.
    pub distributed_share: f64,
    /// Messages between shards per committed transaction.
    pub messages_per_transaction: f64,
    /// Messages to and from the timestamp oracle.
    pub oracle_messages: u64,
    /// The dependency graph of ROCOCO; absent under other protocols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
    /// What logs wrote in the measured interval, and bare files after it; absent without
    /// `--replay-raw`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskFigures>,
    /// What processes sent each other; absent if there is one. The one after all that hold data is
    /// the oracle's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Memory held by the database at the end of the run.
    pub memory_bytes: u64,
    /// Processor time that all processes of the database used in the measured interval, user and
    /// system.
    pub cpu_seconds: f64,
    /// Processor time in the measured interval of the cores that this process may run on, used by
    /// any program; 0 if unknown.
    pub machine_cpu_seconds: f64,
    /// From the first attempt's start to the answer, of all that `committed` counts.
    pub latency_us: Latency,
    /// By transaction type, the workload's principal type first.
    pub transactions: Named<TransactionType>,
    /// The loading that preceded the run.
    pub load: Load,
    /// Rows and memory by table at the end of the run.
    pub tables: Named<TableSize>,
    /// Throughput over the measured interval.
    pub timeline: Timeline,
    /// What the history checker looked at; absent without `--check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checker: Option<CheckerFigures>,
    /// Invariants, online audits and the history checker's verdicts.
    pub checks: Vec<Check>,
}

/// A protocol's dependency graph: what it costs in messages and in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Graph {
    /// Bytes of predecessors, questions for them and answers, sent between shards per committed
    /// transaction; as they would be encoded, within a process as well.
    pub bytes_per_transaction: f64,
    /// Transactions that shards remember at the end of the run, each counted on each shard.
    pub vertices: u64,
    /// At most so far, since the start: the sum of what each shard had at most.
    pub vertices_max: u64,
    /// Memory of the graph at the end of the run.
    pub memory_bytes: u64,
    /// And at most, like `vertices_max`.
    pub memory_bytes_max: u64,
}

/// What the logs of all shards wrote, and how long bare files took for the same: as many bytes in
/// the same pieces, with a sync after each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DiskFigures {
    /// Bytes that the logs wrote.
    pub bytes: u64,
    /// Writes of the logs; a sync follows each.
    pub syncs: u64,
    /// The logs.
    pub log: DiskSpeed,
    /// The bare files.
    pub bare: DiskSpeed,
    /// Bytes per second of the logs relative to those of the bare files; that of syncs per second
    /// is the same.
    pub ratio: f64,
    /// The same for the time in which there was something to write.
    pub busy_ratio: f64,
}

/// How fast something was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DiskSpeed {
    /// From the beginning to the end.
    pub seconds: f64,
    /// All files together.
    pub bytes_per_second: f64,
    /// All files together.
    pub syncs_per_second: f64,
    /// How long a write and its sync took, in microseconds: the mean.
    pub sync_us: f64,
}

impl DiskSpeed {
    /// The speed at which `bytes` were written with `syncs` syncs in `seconds`. `busy_seconds` is
    /// the time that writes and syncs took, the sum over all files.
    pub fn new(bytes: u64, syncs: u64, seconds: f64, busy_seconds: f64) -> DiskSpeed {
        DiskSpeed {
            seconds,
            bytes_per_second: per(bytes as f64, seconds),
            syncs_per_second: per(syncs as f64, seconds),
            sync_us: per(1e6 * busy_seconds, syncs as f64),
        }
    }
}

impl DiskFigures {
    /// Derives the ratios.
    pub fn new(bytes: u64, syncs: u64, log: DiskSpeed, bare: DiskSpeed) -> DiskFigures {
        let ratio = per(log.bytes_per_second, bare.bytes_per_second);
        DiskFigures { bytes, syncs, log, bare, ratio, busy_ratio: per(bare.sync_us, log.sync_us) }
    }
}

/// Aborted attempts by reason; the fields are the reasons' names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Aborts {
    /// A record was locked or overwritten by somebody else.
    pub write_conflict: u64,
    /// Something read had changed by the time of the commit.
    pub validation: u64,
    /// An older transaction took a lock away.
    pub wounded: u64,
    /// A participant voted to refuse.
    pub refused: u64,
    /// A participant's term had ended.
    pub stale_term: u64,
    /// A channel was reset before the outcome was certain.
    pub unknown: u64,
    /// The transaction's own logic rolled it back.
    pub user: u64,
    /// A timestamp was too far ahead of a shard's clock.
    pub clock_ahead: u64,
    /// There was no memory for what it writes.
    pub full: u64,
    /// A log had no room on its disk.
    pub disk_full: u64,
}

/// The figures of one transaction type.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TransactionType {
    /// Transactions committed.
    pub committed: u64,
    /// Attempts aborted, for whatever reason.
    pub aborted: u64,
    /// The same by reason.
    pub aborts: Aborts,
    /// Whether the type is declared read-only.
    pub read_only: bool,
    /// How many transactions make one of this type; 0: they do not count as part of the mix. What
    /// aborted, and what was written, is of all of them.
    pub per: u32,
    /// Its share of the mix by the workload's specification; absent if that prescribes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nominal_share: Option<f64>,
    /// Share of the committed ones that touched more than one shard.
    pub distributed_share: f64,
    /// Records that a committed one read, on average; absent if not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_keys_read: Option<f64>,
    /// Records that a committed one wrote, on average; absent if not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_keys_written: Option<f64>,
    /// From the first attempt's start to the answer, committed transactions only.
    pub latency_us: Latency,
}

/// Percentiles of a latency, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

/// How long loading took and what it loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// Wall-clock time.
    pub seconds: f64,
    /// Rows loaded, copies not counted.
    pub rows: u64,
    /// Memory held by the database when loading was done.
    pub memory_bytes: u64,
}

/// The size of one table over all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableSize {
    /// Rows present.
    pub rows: u64,
    /// Memory with versions and index.
    pub bytes: u64,
}

/// What one process sent another in the measured interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Who sent.
    pub from: u16,
    /// To whom.
    pub to: u16,
    /// Messages of shards.
    pub messages: u64,
    /// Frames that carried them, signs of life included.
    pub frames: u64,
    /// Bytes of the frames.
    pub bytes: u64,
    /// Connections that came to an end.
    pub resets: u64,
}

/// Throughput in equal intervals of the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// Length of one interval.
    pub interval_seconds: f64,
    /// Transactions committed per second in each interval.
    pub throughput_tps: Vec<f64>,
}

/// What the history checker looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CheckerFigures {
    /// Transactions of the history.
    pub transactions: u64,
    /// Dependencies between them: ww, wr and rw.
    pub dependencies: u64,
    /// How long checking took.
    pub seconds: f64,
}

/// One condition and whether it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The condition.
    pub name: String,
    /// Whether it holds.
    pub ok: bool,
    /// Whether the scheme promises less: a check that does not hold is then no failure.
    pub allowed: bool,
    /// How it is violated, or what was compared.
    pub detail: String,
}

/// A pair's throughput relative to that of the reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ratio {
    /// The pair, `occ/rc`.
    pub of: String,
    /// The reference, the first pair of the comparison.
    pub to: String,
    /// The load at which both ran; absent without an axis of loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_load: Option<String>,
    /// Median over the repetitions of the ratio of throughputs.
    pub median: f64,
    /// The smallest of them.
    pub min: f64,
    /// The largest of them.
    pub max: f64,
    /// The same for processor time per committed transaction: below 1 is cheaper than the
    /// reference.
    pub cpu: Spread,
    /// The same for latencies, by transaction type.
    pub latency: Named<LatencyRatio>,
}

/// A pair's latencies relative to those of the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyRatio {
    /// Of the medians.
    pub p50: Spread,
    /// Of the 99th percentiles.
    pub p99: Spread,
}

/// Median, smallest and largest of a figure over the repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Median; the mean of the middle two if their number is even.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// A JSON object whose members keep their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Vec::new())
    }
}

impl<T> Named<T> {
    /// Appends a member. Names must not repeat.
    pub fn push(&mut self, name: impl Into<String>, value: T) {
        let name = name.into();
        debug_assert!(self.get(&name).is_none(), "the name {name} is given twice");
        self.0.push((name, value));
    }

    /// The member of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(member, _)| *member == name).map(|(_, value)| value)
    }

    /// The member of this name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.0.iter_mut().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Aborts {
    /// From counters in the order of the fields, which is that of `plimsoll_types::Abort::ALL`.
    pub fn from_counts(counts: [u64; Abort::ALL.len()]) -> Aborts {
        let [
            write_conflict,
            validation,
            wounded,
            refused,
            stale_term,
            unknown,
            user,
            clock_ahead,
            full,
            disk_full,
        ] = counts;
        Aborts {
            write_conflict,
            validation,
            wounded,
            refused,
            stale_term,
            unknown,
            user,
            clock_ahead,
            full,
            disk_full,
        }
    }

    /// Reasons and counts, in the order of the fields.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("write_conflict", self.write_conflict),
            ("validation", self.validation),
            ("wounded", self.wounded),
            ("refused", self.refused),
            ("stale_term", self.stale_term),
            ("unknown", self.unknown),
            ("user", self.user),
            ("clock_ahead", self.clock_ahead),
            ("full", self.full),
            ("disk_full", self.disk_full),
        ]
        .into_iter()
    }

    /// The workload's own roll-backs included.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    /// Without the workload's own roll-backs: what concurrency control cost.
    pub fn by_system(&self) -> u64 {
        self.total() - self.user
    }
}

impl Latency {
    /// From a histogram of nanoseconds.
    pub fn from_nanoseconds(histogram: &Histogram<u64>) -> Latency {
        if histogram.is_empty() {
            return Latency::default();
        }
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Latency {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1e3,
            mean: histogram.mean() / 1e3,
        }
    }

    /// The percentiles with their names, ascending; the mean is not among them.
    pub fn percentiles(&self) -> [(&'static str, f64); 5] {
        [("p50", self.p50), ("p90", self.p90), ("p99", self.p99), ("p99.9", self.p999), ("max", self.max)]
    }
}

impl TransactionType {
    /// Attempts of this type: every commit and every abort, of each transaction that makes one.
    pub fn attempts(&self) -> u64 {
        self.committed * u64::from(self.per.max(1)) + self.aborted
    }
}

impl Run {
    /// Fills in what follows from `committed`, `seconds`, `transactions` and the number of busy
    /// cores.
    pub fn fill_rates(&mut self, busy_cores: usize) {
        self.throughput_tps = per(self.committed as f64, self.seconds);
        self.throughput_per_core_tps = per(self.throughput_tps, busy_cores as f64);
        self.new_orders_per_minute = match self.transactions.get("new_order") {
            Some(new_order) if self.workload == "tpcc" => {
                Some(per(60.0 * new_order.committed as f64, self.seconds))
            }
            _ => None,
        };
        let results = self.transactions.get("trade_result").filter(|_| self.workload == "tpce");
        self.trade_results_per_second = results.map(|results| per(results.committed as f64, self.seconds));
    }

    /// What casts doubt on its figures. The processor time of a cluster's nodes that run on other
    /// machines is taken for time of this one, so less is told of other programs than is true, and
    /// never more.
    pub fn doubt(&self) -> Option<String> {
        let said = disturbance(self.machine_cpu_seconds, self.cpu_seconds, self.seconds)?;
        Some(format!("{}: {said}", self.place()))
    }

    /// Which of a document's runs it is, for a reader: `occ/dst at 50%, repetition 1`.
    pub fn place(&self) -> String {
        let at_load = self.at_load.as_ref().map_or_else(String::new, |load| format!(" at {load}"));
        format!("{}{at_load}, repetition {}", self.pair(), self.repetition)
    }

    /// Protocol and scheme as the command line writes them, `occ/dst`, and the durability if that
    /// is compared, `occ/dst sync`.
    pub fn pair(&self) -> String {
        let pair = format!("{}/{}", self.protocol, self.scheme);
        self.durability.iter().fold(pair, |pair, durability| format!("{pair} {durability}"))
    }

    /// Processor time per committed transaction, in microseconds.
    pub fn cpu_us_per_transaction(&self) -> f64 {
        per(1e6 * self.cpu_seconds, self.committed as f64)
    }

    /// Share of attempts that concurrency control aborted.
    pub fn abort_share(&self) -> f64 {
        per(self.aborts.by_system() as f64, self.attempts() as f64)
    }

    /// Attempts of all types.
    pub fn attempts(&self) -> u64 {
        self.transactions.iter().map(|(_, of)| of.attempts()).sum()
    }

    /// The workload's principal transaction type: the first.
    pub fn principal(&self) -> Option<(&str, &TransactionType)> {
        self.transactions.iter().next()
    }

    /// The checks that do not hold and should.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.fails())
    }

    /// The checks that do not hold and need not, as the scheme is.
    pub fn allowed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.is_excused())
    }
}

impl Check {
    /// Whether it does not hold and should.
    pub fn fails(&self) -> bool {
        !self.ok && !self.allowed
    }

    /// Whether it does not hold and need not, as the scheme is.
    pub fn is_excused(&self) -> bool {
        !self.ok && self.allowed
    }
}

impl Document {
    /// Every run, those that found peaks first.
    pub fn all_runs(&self) -> impl Iterator<Item = &Run> {
        self.peaks.iter().chain(&self.runs)
    }

    /// Whether it has an axis of loads.
    pub fn has_loads(&self) -> bool {
        self.all_runs().any(|run| run.at_load.is_some())
    }

    /// Whether its points are those of an open loop.
    pub fn asks_for_rates(&self) -> bool {
        self.points.iter().any(|point| point.rate.is_some())
    }

    /// The run that was the peak of a pair; none if no shares of it were asked for.
    pub fn peak_of(&self, pair: &str) -> Option<&Run> {
        let runs = self.peaks.iter().filter(|run| run.pair() == pair);
        runs.max_by(|a, b| a.throughput_tps.total_cmp(&b.throughput_tps))
    }

    /// The points of one pair, in the order of the loads.
    pub fn points_of(&self, pair: &str) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.of == pair)
    }

    /// The pairs in the order of their first runs.
    pub fn pairs(&self) -> Vec<String> {
        let mut pairs = Vec::new();
        for run in self.all_runs() {
            let pair = run.pair();
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        pairs
    }

    /// The runs of one pair.
    pub fn runs_of<'a>(&'a self, pair: &str) -> Vec<&'a Run> {
        self.all_runs().filter(|run| run.pair() == pair).collect()
    }

    /// The ratio of a pair to the reference; `None` for the reference itself.
    pub fn ratio_of(&self, pair: &str) -> Option<&Ratio> {
        self.ratios.iter().find(|ratio| ratio.of == pair)
    }

    /// The transaction types of all runs, in the order of the first.
    pub fn type_names(&self) -> Vec<&str> {
        type_names(&self.runs)
    }

    /// Whether every check of every run holds.
    pub fn all_checks_hold(&self) -> bool {
        self.all_runs().all(|run| run.failures().next().is_none())
    }

    /// The document as indented JSON with a newline at the end.
    pub fn to_json(&self) -> String {
        let mut json =
            serde_json::to_string_pretty(self).expect("a document has string keys only and so is JSON");
        json.push('\n');
        json
    }
}

impl Spread {
    /// Of these figures; all zero if there are none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else { return Spread::default() };
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        };
        Spread { median, min, max }
    }
}

/// Every other pair's throughput, processor time and latencies relative to the first pair's, taken
/// inside each repetition, at each load by itself. A pair without a repetition in common with the
/// reference, or one of which nothing was committed in the reference, has no ratio.
pub fn ratios(runs: &[Run]) -> Vec<Ratio> {
    let Some(reference) = runs.first().map(Run::pair) else { return Vec::new() };
    let mut others: Vec<(String, Option<String>)> = Vec::new();
    for (pair, at_load) in runs.iter().map(|run| (run.pair(), run.at_load.clone())) {
        if pair != reference && !others.contains(&(pair.clone(), at_load.clone())) {
            others.push((pair, at_load));
        }
    }
    let ratio = |(other, at_load): (String, Option<String>)| {
        let both: Vec<(&Run, &Run)> = runs
            .iter()
            .filter(|run| run.pair() == other && run.at_load == at_load)
            .filter_map(|run| {
                let base = runs.iter().find(|base| {
                    base.pair() == reference && base.at_load == at_load && base.repetition == run.repetition
                })?;
                (base.committed > 0).then_some((run, base))
            })
            .collect();
        if both.is_empty() {
            return None;
        }
        let throughput =
            Spread::of(both.iter().map(|(run, base)| per(run.throughput_tps, base.throughput_tps)));
        let cpu = Spread::of(
            both.iter().map(|(run, base)| per(run.cpu_us_per_transaction(), base.cpu_us_per_transaction())),
        );
        let mut latency = Named::default();
        for name in type_names(both.iter().map(|(_, base)| *base)) {
            let types = both.iter().filter_map(|(run, base)| {
                let (run, base) = (run.transactions.get(name)?, base.transactions.get(name)?);
                (run.committed > 0 && base.committed > 0).then_some((run.latency_us, base.latency_us))
            });
            let (p50, p99): (Vec<f64>, Vec<f64>) =
                types.map(|(run, base)| (per(run.p50, base.p50), per(run.p99, base.p99))).unzip();
            if !p50.is_empty() {
                latency.push(name, LatencyRatio { p50: Spread::of(p50), p99: Spread::of(p99) });
            }
        }
        let Spread { median, min, max } = throughput;
        Some(Ratio { of: other, to: reference.clone(), at_load, median, min, max, cpu, latency })
    };
    others.into_iter().filter_map(ratio).collect()
}

/// The transaction types of some runs, in the order of the first.
fn type_names<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (name, _) in runs.into_iter().flat_map(|run| run.transactions.iter()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A quotient that is 0 where it is undefined.
pub fn per(dividend: f64, divisor: f64) -> f64 {
    if divisor > 0.0 { dividend / divisor } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// The names below `path`, for comparison with the contract.
    fn names(value: &Value) -> Vec<&str> {
        value.as_object().expect("an object").keys().map(String::as_str).collect()
    }

    #[test]
    fn the_json_document_has_every_field_scripts_rely_on() {
        let document = sample::comparison();
        let json: Value = serde_json::from_str(&document.to_json()).expect("JSON");
        let has = |value: &Value, wanted: &[&str]| {
            let present = names(value);
            for name in wanted {
                assert!(present.contains(name), "{name} is missing from {present:?}");
            }
        };
        has(&json, &["plimsoll", "commit", "machine", "runs", "ratios"]);
        has(&json["machine"], &["cpu", "cores", "memory_bytes", "kernel"]);
        let run = &json["runs"][0];
        has(run, &["workload", "protocol", "scheme", "serializable", "config", "seconds", "committed"]);
        has(run, &["throughput_tps", "throughput_per_core_tps", "aborts", "read_only_aborts"]);
        has(run, &["read_only_restarts", "read_only_waits", "distributed_share"]);
        has(run, &["messages_per_transaction", "memory_bytes", "cpu_seconds", "transactions", "checks"]);
        let mut reasons = names(&run["aborts"]);
        reasons.sort_unstable();
        assert_eq!(
            reasons,
            [
                "clock_ahead",
                "disk_full",
                "full",
                "refused",
                "stale_term",
                "unknown",
                "user",
                "validation",
                "wounded",
                "write_conflict"
            ]
        );
        has(&run["transactions"]["new_order"], &["committed", "aborted", "latency_us"]);
        has(&run["transactions"]["new_order"]["latency_us"], &["p50", "p90", "p99", "p999", "max"]);
        has(&run["checks"][0], &["name", "ok", "allowed", "detail"]);
        has(&json["ratios"][0], &["of", "to", "median", "min", "max", "cpu", "latency"]);
        has(&run["latency_us"], &["p50", "p90", "p99", "p999", "max", "mean"]);
        let payment = &json["ratios"][0]["latency"]["payment"];
        has(payment, &["p50", "p99"]);
        // The made-up gts is six times as slow, whatever the repetition.
        assert!(
            payment["p50"]["median"].as_f64().is_some_and(|ratio| (ratio - 6.0).abs() < 1e-9),
            "{payment}"
        );
        assert_eq!(run["serializable"], true);
        assert_eq!(json["ratios"][0]["to"], "occ/dst");
    }

    #[test]
    fn the_json_document_of_an_axis_has_its_points_and_no_other_has_any() {
        let json =
            |document: &Document| -> Value { serde_json::from_str(&document.to_json()).expect("JSON") };
        let shares = json(&sample::shares());
        let mut fields = names(&shares["points"][0]);
        fields.sort_unstable();
        assert_eq!(
            fields,
            [
                "aborted_share",
                "at_load",
                "concurrency",
                "cpu_us",
                "of",
                "p50_us",
                "p99_us",
                "rate",
                "runs",
                "throughput_tps"
            ]
        );
        assert_eq!(
            (&shares["runs"][0]["at_load"], &shares["peaks"][0]["at_load"]),
            (&"1%".into(), &"1".into())
        );
        let ratios: Vec<&Value> = shares["ratios"].as_array().expect("a list").iter().collect();
        let loads: Vec<&str> = ratios.iter().filter_map(|ratio| ratio["at_load"].as_str()).collect();
        assert_eq!(loads, ["1%", "8%", "64%"]);
        let plain = json(&sample::comparison());
        let has = |name: &str| names(&plain).contains(&name) || names(&plain["runs"][0]).contains(&name);
        assert!(!["points", "peaks", "at_load"].into_iter().any(has));
    }

    #[test]
    fn a_json_object_keeps_the_order_of_its_members() {
        let mut named = Named::default();
        named.push("z", 1);
        named.push("a", 2);
        assert_eq!(serde_json::to_string(&named).expect("JSON"), r#"{"z":1,"a":2}"#);
    }

    fn run(pair: (&str, &str), repetition: u32, committed: u64, cpu_seconds: f64) -> Run {
        let mut run = Run {
            protocol: pair.0.into(),
            scheme: pair.1.into(),
            repetition,
            seconds: 10.0,
            committed,
            cpu_seconds,
            ..Run::default()
        };
        run.fill_rates(2);
        run
    }

    #[test]
    fn a_ratio_is_the_median_of_ratios_within_a_repetition() {
        let runs = [
            run(("occ", "dst"), 1, 1000, 10.0),
            run(("occ", "rc"), 1, 1100, 10.0),
            run(("occ", "dst"), 2, 500, 10.0),
            run(("occ", "rc"), 2, 510, 10.0),
            run(("occ", "dst"), 3, 800, 10.0),
            run(("occ", "rc"), 3, 800, 20.0),
            run(("occ", "rc"), 4, 9000, 10.0),
        ];
        let ratios = ratios(&runs);
        assert_eq!(ratios.len(), 1);
        assert_eq!((ratios[0].of.as_str(), ratios[0].to.as_str()), ("occ/rc", "occ/dst"));
        assert!((ratios[0].median - 1.02).abs() < 1e-9);
        assert!((ratios[0].min - 1.0).abs() < 1e-9);
        assert!((ratios[0].max - 1.1).abs() < 1e-9);
        assert!((ratios[0].cpu.max - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_is_taken_at_each_load_by_itself() {
        let at = |load: &str, run: Run| Run { at_load: Some(load.into()), ..run };
        let runs = [
            at("1", run(("occ", "dst"), 1, 1000, 10.0)),
            at("1", run(("occ", "rc"), 1, 1500, 10.0)),
            at("2", run(("occ", "dst"), 1, 1800, 10.0)),
            at("2", run(("occ", "rc"), 1, 1800, 10.0)),
            at("4", run(("occ", "rc"), 1, 9000, 10.0)),
        ];
        let ratios: Vec<_> = ratios(&runs).into_iter().map(|ratio| (ratio.at_load, ratio.median)).collect();
        assert_eq!(ratios, [(Some("1".to_owned()), 1.5), (Some("2".to_owned()), 1.0)]);
    }

    #[test]
    fn a_reference_that_committed_nothing_gives_no_ratio() {
        assert!(ratios(&[run(("occ", "dst"), 1, 0, 1.0), run(("occ", "rc"), 1, 10, 1.0)]).is_empty());
        assert!(ratios(&[]).is_empty());
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 8.0]), Spread { median: 3.0, min: 1.0, max: 8.0 });
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn roll_backs_of_the_workload_are_not_held_against_the_protocol() {
        let aborts = Aborts::from_counts([3, 2, 0, 0, 0, 0, 10, 0, 0, 0]);
        assert_eq!((aborts.total(), aborts.by_system()), (15, 5));
        let mut run = Run { committed: 85, aborts, ..Run::default() };
        let one = TransactionType { committed: 25, aborted: 15, per: 1, ..TransactionType::default() };
        // Of the other, three transactions make one.
        let other = TransactionType { committed: 20, aborted: 0, per: 3, ..TransactionType::default() };
        run.transactions.push("one", one);
        run.transactions.push("other", other);
        assert!((run.abort_share() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn percentiles_of_nanoseconds_are_reported_in_microseconds() {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        for value in 1..=1000 {
            histogram.record(value * 1000).expect("in range");
        }
        let latency = Latency::from_nanoseconds(&histogram);
        assert!((latency.p50 - 500.0).abs() < 1.0 && (latency.p99 - 990.0).abs() < 1.0, "{latency:?}");
        assert_eq!(Latency::from_nanoseconds(&Histogram::new(3).expect("three digits")), Latency::default());
    }
}
