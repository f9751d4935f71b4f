//! A cost model: what a machine and a network need for what transactions do.
//!
//! A shard's work is counted, not timed: keys looked up, rows scanned, versions installed, marks
//! raised, messages, polls. Each has a price in nanoseconds of a core, and the price of a piece of
//! work is the sum. What a transaction's own code costs, its strings and its arithmetic, is in the
//! price of an attempt, which is the workload's own. Prices of access to records are the workload's
//! own as well: a row of TPC-C is not a balance.
//!
//! Example. A SmallBank deposit is one attempt, one lookup, one install: 60 + 40 + 50 ns; when it
//! commits with a mark to raise, 10 ns more.
//!
//! What cores do to each other is one factor per workload. Left out: caches, for a price is an
//! average.

use std::collections::BTreeMap;

use plimsoll_runtime::sim::Hardware;
use serde::{Deserialize, Deserializer, Serialize};

/// The version of this form of a cost model.
pub const VERSION: u32 = 6;

/// No workload has more types of transactions.
pub const KINDS_MAX: usize = 12;

/// What a shard has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Done {
    /// Attempts of transactions begun, by type.
    pub attempts: [f64; KINDS_MAX],
    /// Passes.
    pub passes: f64,
    /// Tasks polled.
    pub polls: f64,
    /// Messages received and sent.
    pub messages: f64,
    /// Requests of the shard's own transactions handled, and requests handled again after they had
    /// waited.
    pub handled: f64,
    /// Batches received from and sent to shards of the same node.
    pub batches: f64,
    /// Batches received from and sent to other nodes.
    pub remote_batches: f64,
    /// Keys looked up.
    pub lookups: f64,
    /// Rows scanned.
    pub scanned: f64,
    /// Keys linked.
    pub links: f64,
    /// Versions installed.
    pub installs: f64,
    /// Older versions kept, to be dropped later.
    pub kept: f64,
    /// Marks raised by snapshots.
    pub marks: f64,
    /// Reads pinned when their transaction commits.
    pub pins: f64,
    /// Locks taken on records, but for those that nobody could see; under 2PL also those asked for
    /// in vain.
    pub locks: f64,
    /// Reads looked at again by validation.
    pub validated: f64,
    /// Attempts that were more than one step of their shard.
    pub coordinated: f64,
    /// Executions on the store that were in vain: a lock was in the way, or what came next was
    /// elsewhere.
    pub vain: f64,
    /// Outcomes reported to an oracle.
    pub reports: f64,
}

impl Done {
    /// What was done since.
    pub fn since(&self, before: &Done) -> Done {
        self.with(before, |now, before| now - before)
    }

    /// Both together.
    pub fn and(&self, other: &Done) -> Done {
        self.with(other, |one, other| one + other)
    }

    /// A share of it.
    pub fn share(&self, divisor: f64) -> Done {
        self.with(self, |all, _| all / divisor)
    }

    fn with(&self, other: &Done, of: impl Fn(f64, f64) -> f64) -> Done {
        Done {
            attempts: std::array::from_fn(|kind| of(self.attempts[kind], other.attempts[kind])),
            passes: of(self.passes, other.passes),
            polls: of(self.polls, other.polls),
            messages: of(self.messages, other.messages),
            handled: of(self.handled, other.handled),
            batches: of(self.batches, other.batches),
            remote_batches: of(self.remote_batches, other.remote_batches),
            lookups: of(self.lookups, other.lookups),
            scanned: of(self.scanned, other.scanned),
            links: of(self.links, other.links),
            installs: of(self.installs, other.installs),
            kept: of(self.kept, other.kept),
            marks: of(self.marks, other.marks),
            pins: of(self.pins, other.pins),
            locks: of(self.locks, other.locks),
            validated: of(self.validated, other.validated),
            coordinated: of(self.coordinated, other.coordinated),
            vain: of(self.vain, other.vain),
            reports: of(self.reports, other.reports),
        }
    }
}

/// What accesses to a workload's records cost, in nanoseconds of a core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessCosts {
    /// An attempt, by type: the code of the transaction itself. Types that are not named are free.
    #[serde(deserialize_with = "by_kind")]
    pub attempt_ns: [f64; KINDS_MAX],
    /// A key looked up.
    pub lookup_ns: f64,
    /// A row scanned.
    pub scanned_ns: f64,
    /// A key linked into an index.
    pub link_ns: f64,
    /// A version installed.
    pub install_ns: f64,
    /// An older version kept, and dropped when nobody can ask for it any more.
    pub kept_ns: f64,
    /// A mark raised by a snapshot.
    pub mark_ns: f64,
    /// A read pinned.
    pub pin_ns: f64,
    /// A record locked, or asked for in vain.
    pub lock_ns: f64,
    /// An attempt that is more than one step of its shard, in addition to everything else: what is
    /// read and written elsewhere is copied into messages and out of them.
    pub coordinated_ns: f64,
    /// An execution on the store that was in vain, in addition to its lookups.
    pub vain_ns: f64,
    /// How many times as long everything takes where other cores of the node are at work, too.
    pub crowded: f64,
}

/// Reads numbers by type of transaction; those at the end may be missing.
fn by_kind<'de, D: Deserializer<'de>>(input: D) -> Result<[f64; KINDS_MAX], D::Error> {
    let named = Vec::<f64>::deserialize(input)?;
    if named.len() > KINDS_MAX {
        return Err(serde::de::Error::invalid_length(named.len(), &"the prices of at most 12 types"));
    }
    let mut all = [0.0; KINDS_MAX];
    all[..named.len()].copy_from_slice(&named);
    Ok(all)
}

impl Default for AccessCosts {
    /// Nothing costs anything.
    fn default() -> AccessCosts {
        AccessCosts {
            attempt_ns: [0.0; KINDS_MAX],
            lookup_ns: 0.0,
            scanned_ns: 0.0,
            link_ns: 0.0,
            install_ns: 0.0,
            kept_ns: 0.0,
            mark_ns: 0.0,
            pin_ns: 0.0,
            lock_ns: 0.0,
            coordinated_ns: 0.0,
            vain_ns: 0.0,
            crowded: 1.0,
        }
    }
}

/// What a scheme with an oracle costs, in nanoseconds of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OracleCosts {
    /// A shard, for an outcome that it reports.
    pub report_ns: f64,
    /// A shard, for a record that a transaction reads or writes: what it is ordered after is a
    /// vector under VTS.
    pub access_ns: f64,
    /// The oracle, for a message that it receives, with what it answers.
    pub message_ns: f64,
    /// The oracle, for an outcome that was reported.
    pub outcome_ns: f64,
}

/// What everything costs on some machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostModel {
    /// The version of the form: [`VERSION`].
    pub version: u32,
    /// The machine, for people.
    pub machine: String,
    /// Where the numbers come from.
    pub source: String,
    /// Cores of a node, one shard each.
    pub shards_per_node: u32,
    /// Transactions in flight per shard.
    pub concurrency: u32,
    /// A pass of a shard, in nanoseconds of a core; and so on.
    pub pass_ns: f64,
    /// A task polled.
    pub poll_ns: f64,
    /// A message sent or received.
    pub message_ns: f64,
    /// A request of the shard's own transactions handled, or one handled again after it has waited.
    pub handled_ns: f64,
    /// A batch of messages sent to or received from a shard of the same node.
    pub batch_ns: f64,
    /// A batch of messages sent to or received from another node.
    pub remote_batch_ns: f64,
    /// A read that is validated.
    pub validated_ns: f64,
    /// What GTS costs.
    pub gts: OracleCosts,
    /// What VTS costs.
    pub vts: OracleCosts,
    /// From a shard to another of its node, in nanoseconds.
    pub local_ns: u64,
    /// Until a shard that sleeps is awake, in nanoseconds, at most.
    pub wake_ns: u64,
    /// From node to node, one way, in nanoseconds.
    pub latency_ns: u64,
    /// How much longer it may take, in nanoseconds.
    pub jitter_ns: u64,
    /// What a network card needs for a batch, in nanoseconds.
    pub frame_ns: f64,
    /// Bandwidth of a network card, in Gbit/s.
    pub gigabits_per_s: f64,
    /// By workload: what accesses cost.
    pub access: BTreeMap<String, AccessCosts>,
}

impl CostModel {
    /// The model, if its numbers are possible; the error says which is not.
    pub fn check(self) -> Result<CostModel, String> {
        let shared = [
            ("pass_ns", self.pass_ns),
            ("poll_ns", self.poll_ns),
            ("message_ns", self.message_ns),
            ("handled_ns", self.handled_ns),
            ("batch_ns", self.batch_ns),
            ("remote_batch_ns", self.remote_batch_ns),
            ("validated_ns", self.validated_ns),
            ("gts.report_ns", self.gts.report_ns),
            ("gts.access_ns", self.gts.access_ns),
            ("gts.message_ns", self.gts.message_ns),
            ("gts.outcome_ns", self.gts.outcome_ns),
            ("vts.report_ns", self.vts.report_ns),
            ("vts.access_ns", self.vts.access_ns),
            ("vts.message_ns", self.vts.message_ns),
            ("vts.outcome_ns", self.vts.outcome_ns),
            ("frame_ns", self.frame_ns),
        ];
        let own = self.access.values().flat_map(|access| {
            let AccessCosts {
                attempt_ns,
                lookup_ns,
                scanned_ns,
                link_ns,
                install_ns,
                kept_ns,
                mark_ns,
                pin_ns,
                lock_ns,
                coordinated_ns,
                vain_ns,
                crowded: _,
            } = *access;
            let reads = [lookup_ns, scanned_ns, mark_ns, pin_ns];
            let writes = [link_ns, install_ns, kept_ns];
            let prices = reads.into_iter().chain(writes).chain([lock_ns, coordinated_ns, vain_ns]);
            prices.chain(attempt_ns).map(|ns| ("access", ns))
        });
        if let Some((name, ns)) = shared.into_iter().chain(own).find(|(_, ns)| !(0.0..1e9).contains(ns)) {
            return Err(format!("{name}: {ns} is not a number of nanoseconds between 0 and a second"));
        }
        if !(1e-3..1e6).contains(&self.gigabits_per_s) {
            return Err(format!("gigabits_per_s: {} is not a bandwidth", self.gigabits_per_s));
        }
        if let Some(access) = self.access.values().find(|access| !(1.0..10.0).contains(&access.crowded)) {
            return Err(format!("crowded: {} is not a factor between 1 and 10", access.crowded));
        }
        if self.shards_per_node == 0 || self.concurrency == 0 {
            return Err("a node has at least one shard, and a shard one transaction in flight".to_owned());
        }
        if [self.local_ns, self.wake_ns, self.latency_ns, self.jitter_ns].iter().any(|&ns| ns > 1_000_000_000)
        {
            return Err("delays are at most a second".to_owned());
        }
        Ok(self)
    }

    /// What accesses to a workload's records cost. Prices that are missing are an error that names
    /// them, and the command that measures them.
    pub fn access_to(&self, workload: &str) -> Result<AccessCosts, String> {
        self.access.get(workload).copied().ok_or_else(|| {
            format!("the cost model knows no prices of {workload}: measure them with `plimsoll calibrate`")
        })
    }

    /// What it says of machines and network.
    pub fn hardware(&self, shards_per_machine: usize) -> Hardware {
        Hardware {
            shards_per_machine: shards_per_machine as u64,
            cpu_jitter: 0.1,
            wake_ns: self.wake_ns,
            local_ns: self.local_ns,
            local_jitter_ns: self.local_ns / 2,
            latency_ns: self.latency_ns,
            jitter_ns: self.jitter_ns,
            ..Hardware::default()
        }
    }

    /// What a scheme's oracle costs.
    pub fn oracle(&self, scheme: &str) -> OracleCosts {
        match scheme {
            "gts" => self.gts,
            "vts" => self.vts,
            _ => OracleCosts::default(),
        }
    }

    /// What an oracle's work costs, in nanoseconds of a core.
    pub fn oracle_price(&self, oracle: &OracleCosts, done: &Done) -> f64 {
        done.passes * self.pass_ns + done.messages * oracle.message_ns + done.reports * oracle.outcome_ns
    }

    /// What work under a scheme costs, in nanoseconds of a core.
    pub fn price(&self, access: &AccessCosts, oracle: &OracleCosts, done: &Done) -> f64 {
        done.passes * self.pass_ns
            + done.polls * self.poll_ns
            + done.messages * self.message_ns
            + done.handled * self.handled_ns
            + done.batches * self.batch_ns
            + done.remote_batches * self.remote_batch_ns
            + done.attempts.iter().zip(access.attempt_ns).map(|(attempts, ns)| attempts * ns).sum::<f64>()
            + done.lookups * access.lookup_ns
            + done.scanned * access.scanned_ns
            + done.links * access.link_ns
            + done.installs * access.install_ns
            + done.kept * access.kept_ns
            + done.marks * access.mark_ns
            + done.pins * access.pin_ns
            + done.locks * access.lock_ns
            + done.validated * self.validated_ns
            + done.coordinated * access.coordinated_ns
            + done.vain * access.vain_ns
            + done.reports * oracle.report_ns
            + (done.lookups + done.scanned + done.installs) * oracle.access_ns
    }
}
