//! A cost model: what a machine and a network need for what transactions do.
//!
//! A shard's work is counted, not timed: keys looked up, rows scanned, versions installed, marks raised, messages, polls.
//! Each has a price in nanoseconds of a core, and the price of a piece of work is the sum. What a transaction's own
//! code costs, its strings and its arithmetic, is in the price of an attempt, which is the workload's own. Prices of
//! access to records are the workload's own as well: a row of TPC-C is not a balance.
//!
//! Example. A SmallBank deposit is one attempt, one lookup, one install: 60 + 40 + 50 ns; when it commits with a
//! mark to raise, 10 ns more.
//!
//! Left out: caches (a price is an average), memory bandwidth, and what cores do to each other.

use std::collections::BTreeMap;

use plimsoll_runtime::sim::Hardware;
use serde::{Deserialize, Serialize};

/// The version of this form of a cost model.
pub const VERSION: u32 = 1;

/// What a shard has done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    /// Attempts of transactions begun.
    pub attempts: f64,
    /// Passes.
    pub passes: f64,
    /// Tasks polled.
    pub polls: f64,
    /// Messages received and sent.
    pub messages: f64,
    /// Batches received and sent.
    pub batches: f64,
    /// Keys looked up.
    pub lookups: f64,
    /// Rows scanned.
    pub scanned: f64,
    /// Keys linked.
    pub links: f64,
    /// Versions installed.
    pub installs: f64,
    /// Marks raised by snapshots, reads pinned or validated.
    pub marks: f64,
}

/// What accesses to a workload's records cost, in nanoseconds of a core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessCosts {
    /// An attempt: the code of the transaction itself.
    pub attempt_ns: f64,
    /// A key looked up.
    pub lookup_ns: f64,
    /// A row scanned.
    pub scanned_ns: f64,
    /// A key linked into an index.
    pub link_ns: f64,
    /// A version installed.
    pub install_ns: f64,
    /// A mark raised, a read pinned or validated.
    pub mark_ns: f64,
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
    /// A batch of messages sent or received.
    pub batch_ns: f64,
    /// A message that the oracle receives, with what it answers.
    pub oracle_message_ns: f64,
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
    /// Reads a model; the error says what is wrong with it, without its place.
    pub fn check(self) -> Result<CostModel, String> {
        if self.version != VERSION {
            return Err(format!(
                "it is of version {}, and this program reads version {VERSION}: measure again with `plimsoll calibrate`",
                self.version
            ));
        }
        let shared = [
            ("pass_ns", self.pass_ns),
            ("poll_ns", self.poll_ns),
            ("message_ns", self.message_ns),
            ("batch_ns", self.batch_ns),
            ("oracle_message_ns", self.oracle_message_ns),
            ("frame_ns", self.frame_ns),
        ];
        let own = self.access.values().flat_map(|access| {
            let AccessCosts { attempt_ns, lookup_ns, scanned_ns, link_ns, install_ns, mark_ns } = *access;
            [attempt_ns, lookup_ns, scanned_ns, link_ns, install_ns, mark_ns].map(|ns| ("access", ns))
        });
        if let Some((name, ns)) = shared.into_iter().chain(own).find(|(_, ns)| !(0.0..1e9).contains(ns)) {
            return Err(format!("{name}: {ns} is not a number of nanoseconds between 0 and a second"));
        }
        if !(1e-3..1e6).contains(&self.gigabits_per_s) {
            return Err(format!("gigabits_per_s: {} is not a bandwidth", self.gigabits_per_s));
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

    /// What work costs, in nanoseconds of a core.
    pub fn price(&self, access: &AccessCosts, done: &Done) -> f64 {
        done.passes * self.pass_ns
            + done.polls * self.poll_ns
            + done.messages * self.message_ns
            + done.batches * self.batch_ns
            + done.attempts * access.attempt_ns
            + done.lookups * access.lookup_ns
            + done.scanned * access.scanned_ns
            + done.links * access.link_ns
            + done.installs * access.install_ns
            + done.marks * access.mark_ns
    }
}
