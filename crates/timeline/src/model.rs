//! What a timeline says, as the page reads it.
//!
//! Times are virtual nanoseconds. Transactions, records and batches refer to each other by
//! position. A stamp is a JSON number: under a scheme whose stamps are times, nanoseconds since the
//! world began, negative if a clock was slow; under another, the bare number. `null` is a time
//! older than all of them: what was loaded at the beginning.

use plimsoll_runtime::sim::EPOCH_NS;
use plimsoll_types::Timestamp;
use serde::Serialize;

/// A stamp as the page reads it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(untagged)]
pub enum Stamp {
    /// A time, or a number.
    At(i64),
    /// Before everything.
    Beginning,
    /// After everything: the lower bound of a lock that no snapshot waits for.
    Never(&'static str),
}

impl Stamp {
    /// A stamp; `times` if the scheme's stamps are times.
    pub fn new(stamp: Timestamp, times: bool) -> Stamp {
        match stamp {
            Timestamp::ZERO if times => Stamp::Beginning,
            Timestamp::MAX => Stamp::Never("never"),
            // A lower bound of somebody who has observed nothing.
            Timestamp(time) if times && time < EPOCH_NS / 2 => Stamp::Beginning,
            Timestamp(time) if times => Stamp::At(time.wrapping_sub(EPOCH_NS) as i64),
            Timestamp(number) => Stamp::At(number as i64),
        }
    }

    /// Its place in the order of stamps.
    pub fn rank(self) -> i64 {
        match self {
            Stamp::Beginning => i64::MIN,
            Stamp::At(place) => place,
            Stamp::Never(_) => i64::MAX,
        }
    }
}

/// Everything.
#[derive(Debug, Default, Serialize)]
pub struct Timeline {
    /// What the page is called.
    pub title: String,
    /// The command line that makes it again.
    pub again: String,
    /// The pair of protocol and scheme.
    pub pair: String,
    /// The scheme.
    pub scheme: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// The planted bug, in words.
    pub planted: Option<String>,
    /// What came of it, in words.
    pub outcome: String,
    /// When the world began, in Unix nanoseconds: violations quote whole stamps.
    pub epoch: String,
    /// Whether stamps are times.
    pub times: bool,
    /// Whether records carry marks.
    pub marks: bool,
    /// When the clients were done.
    pub done: u64,
    /// What is not shown, in words.
    pub cut: Option<String>,
    /// Lines.
    pub shards: Vec<Line>,
    /// Records, leaves and cells.
    pub items: Vec<Named>,
    /// Attempts, in the order in which they were first heard of.
    pub attempts: Vec<Attempt>,
    /// How many others have failed before they had a number.
    pub unnumbered: usize,
    /// What steps are called: see `words.rs`.
    pub phrases: Vec<&'static str>,
    /// Steps, in the order of time.
    pub steps: Vec<StepLine>,
    /// Batches of messages.
    pub batches: Vec<Sent>,
    /// Faults.
    pub faults: Vec<Fault>,
    /// Violations.
    pub violations: Vec<Violated>,
}

/// A shard's line.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Its machine.
    pub machine: usize,
    /// Whether it is the oracle's.
    pub oracle: bool,
}

/// Something that carries a mark, or would.
#[derive(Debug, Serialize)]
pub struct Named {
    /// As the page calls it: `account 1/3`.
    pub name: String,
    /// As the checker calls it: `account 01000000'00000000'03`.
    pub quoted: String,
    /// Whether it is a leaf or cell.
    pub cover: bool,
}

/// One attempt of a transaction.
#[derive(Debug, Serialize)]
pub struct Attempt {
    /// `T0.7`.
    pub id: String,
    /// Its coordinator.
    pub shard: u16,
    /// Its type, if that is known.
    pub label: &'static str,
    /// Its client.
    pub client: Option<u32>,
    /// The how-manieth attempt of its transaction, counted from 1.
    pub nth: u32,
    /// Whether it only reads, at a snapshot.
    pub snapshot: bool,
    /// `committed`, `aborted`, or `open`: the world ended before it did.
    pub outcome: &'static str,
    /// The reason, if it aborted.
    pub why: Option<&'static str>,
    /// The attempt that has gone on with what this one had read, if it was given up for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// When it was first heard of.
    pub begin: u64,
    /// When it was over; if it committed, when its client was answered.
    pub end: u64,
    /// Its commit stamp, or the place of its snapshot.
    pub stamp: Option<Stamp>,
    /// Why it is that.
    pub because: Option<Because>,
}

/// Why a stamp or a snapshot is what it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Because {
    /// `clock`, `version`, `bound`, `ahead`, `asked`, `session`, `stale`, `oracle`, `counter`.
    pub kind: &'static str,
    /// Which record's version or bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<usize>,
    /// Which transaction had that stamp, or raised the bound to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<usize>,
    /// What the clock showed.
    pub clock: Stamp,
}

/// A step.
#[derive(Debug, Default, Serialize)]
pub struct StepLine {
    /// When.
    pub t: u64,
    /// Where.
    pub s: u16,
    /// Whose: an attempt.
    pub x: usize,
    /// What: the name of the step.
    pub k: &'static str,
    /// The same in words: one of the phrases.
    pub p: usize,
    /// On which item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub i: Option<usize>,
    /// The bound before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub m: Option<(Stamp, Stamp)>,
    /// The version read or installed, the bound found, the snapshot, the stamp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<Stamp>,
    /// What is special: `exclusive`, `shared`, `changed`, `deleted`, `absent`, or the reason of an
    /// abort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub w: Option<&'static str>,
    /// Another attempt: who is waited for, or stands in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub o: Option<usize>,
    /// A lock's lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lb: Option<Stamp>,
}

/// A batch of messages.
#[derive(Debug, Default, Serialize)]
pub struct Sent {
    /// Where from.
    pub from: u16,
    /// Where to.
    pub to: u16,
    /// When it left.
    pub sent: u64,
    /// When it was delivered, if it was.
    pub got: Option<u64>,
    /// Between machines: each time it went onto the network, and when the copies arrived.
    pub tries: Vec<(u64, Vec<u64>)>,
    /// Whether it was under way for much longer than others between machines.
    pub late: bool,
    /// What is in it.
    pub has: Vec<Message>,
}

/// A message.
#[derive(Debug, Serialize)]
pub struct Message {
    /// Its kind.
    pub k: String,
    /// The attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<usize>,
    /// The answer, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<&'static str>,
    /// The records it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub i: Vec<usize>,
}

/// A fault that happened.
#[derive(Debug, Serialize)]
pub struct Fault {
    /// Its number, for `--skip`.
    pub index: u32,
    /// `partition`, `slow`, `clog`, `pause`, `clock`, `reset`, `crash`.
    pub kind: &'static str,
    /// In words.
    pub words: String,
    /// When it began and ended.
    pub from: u64,
    /// The same as `from` if it has no duration.
    pub to: u64,
    /// The machines concerned.
    pub machines: Vec<usize>,
}

/// A violation.
#[derive(Debug, Serialize)]
pub struct Violated {
    /// What kind of thing.
    pub kind: String,
    /// What happened, in words.
    pub detail: String,
    /// The attempts that it names.
    pub attempts: Vec<usize>,
}
