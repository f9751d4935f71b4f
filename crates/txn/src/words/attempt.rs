//! One attempt to run a transaction: what the caller decides, which options the protocol has, and
//! how an attempt ends.
//!
//! An attempt commits ([`Committed`]) or aborts ([`Abort`]). Most attempts do so in their first
//! step ([`First`]). Pieces that execute directly on the store may have to stop before the end
//! ([`Stop`]); the attempt then continues another way.

use plimsoll_types::history::{Read, ScanRead};
use plimsoll_types::{Abort, Timestamp, TxnId};

use crate::shipped::Unpack;
use crate::timestamp::{Freshness, Scheme};

/// What a transaction's caller decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attempt {
    /// When the transaction was first attempted, in nanoseconds: kept over retries, so that a
    /// transaction grows older and finally wins (wait-die, wound-wait).
    pub age: u64,
    /// How fresh a read-only transaction's snapshot has to be, and what a read-write one comes
    /// after.
    pub freshness: Freshness,
}

/// What 2PL does with a request for a lock that somebody else holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LockPolicy {
    /// An older transaction waits for a younger one; a younger one aborts ("dies").
    #[default]
    WaitDie,
    /// An older transaction takes the lock away ("wounds"); a younger one waits.
    WoundWait,
    /// Whoever finds a lock taken aborts.
    NoWait,
}

/// Choices that a protocol leaves open.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProtocolOptions {
    /// 2PL only.
    pub lock_policy: LockPolicy,
    /// OCC under DST only: what is only read on other shards is validated along with the locks, at
    /// a stamp that is proposed, and again only if it turns out too low. A round trip less; in
    /// exchange read-write transactions of coordinators whose clocks differ are strict only to
    /// within twice the clock error.
    pub one_round: bool,
    /// ROCOCO only: which types of pieces execute when they start, one bit each
    /// ([`crate::chopping::Chopping::bits`]).
    pub immediate_pieces: u64,
    /// ROCOCO only: how procedures from other processes are decoded.
    pub unpack: Option<Unpack>,
}

/// A transaction that has committed. It stays in the transaction's
/// [`Footprint`](crate::work::Footprint): moved from one future's result to the next, these few
/// words cost a small transaction a fifth of its time.
#[derive(Debug, Default)]
pub struct Committed {
    /// The attempt; also if it has aborted.
    pub id: TxnId,
    /// The stamp of the versions it installed, or of its snapshot: what its session must see from
    /// now on. `None` if the scheme has no such thing.
    pub stamp: Option<Timestamp>,
    /// How many shards took part.
    pub shards: usize,
    /// How many records it wrote.
    pub writes: usize,
    /// What it read, if the run is recorded.
    pub recorded: Option<Box<Recorded>>,
}

/// What a committed transaction read, if the run is recorded.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Point reads.
    pub reads: Vec<Read>,
    /// Range scans.
    pub scans: Vec<ScanRead>,
}

/// Why pieces could not run to the end directly on the store.
pub enum Stop {
    /// A piece, or a write, belongs to another shard.
    Elsewhere,
    /// Somebody else holds a lock.
    Conflict,
    /// The procedure gave up.
    Abort(Abort),
}

/// What the first step of an attempt has come to.
pub enum First<S: Scheme> {
    /// The attempt is over.
    Over(Result<(), Abort>),
    /// The attempt is over, and the answer waits: for the clock, or for the log.
    Answered(Result<(), Abort>),
    /// It reads at a snapshot, this one if it was ready, and could not do that in one step.
    Reads(Option<S::Snapshot>),
    /// It reads and writes, and could not do that in one step.
    Writes,
}
