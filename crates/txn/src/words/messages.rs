//! The catalogue of messages that are the same under every protocol.
//!
//! [`Common`] lists the requests to a shard, [`CommonReply`] the answers. Requests that concern
//! votes are in [`crate::ballot`], and those of a protocol's paper stand beside the protocol. All
//! of them travel in an [`Envelope`](crate::envelope::Envelope).

use std::sync::Arc;

use std::collections::BTreeMap;

use plimsoll_store::MovedRow;
use plimsoll_types::history::Install;
use plimsoll_types::{ColumnGroup, Held, Key, Moved, ShardId, Slot, TableId, TableSpec, Timestamp, TxnId};

use crate::fetched::{Fetched, ReadRef};
use crate::procedure::Reads;
use crate::timestamp::{Freshness, Scheme};
use crate::trace::About;

/// Requests that are the same under every protocol.
pub enum Common<S: Scheme> {
    /// Reads at a snapshot: raises all marks, waits for writers that may still commit within it,
    /// then reads.
    ReadAt {
        /// Who reads.
        txn: TxnId,
        /// The snapshot.
        snapshot: S::Snapshot,
        /// What to read.
        reads: Reads,
        /// Records whose owners it has waited for so far, and these owners. By key: a row that was
        /// unlinked may be another's.
        waited: BTreeMap<(ColumnGroup, Key), TxnId>,
    },
    /// Newest committed versions, without locks.
    Read {
        /// Who reads.
        txn: TxnId,
        /// What to read.
        reads: Reads,
    },
    /// Pins what was read without locks to the stamp, and looks whether it is still current.
    Validate {
        /// Whose locks do not count.
        txn: TxnId,
        /// The commit stamp, final.
        stamp: Timestamp,
        /// What was read.
        reads: Vec<ReadRef>,
    },
    /// Own shard only: a snapshot from the oracle.
    Snapshot(Freshness),
    /// Own shard only: a commit stamp from the oracle; every write lock is held.
    Stamp {
        /// Whether the request has already been passed on to the scheme.
        asked: bool,
    },
    /// To or from the oracle.
    Scheme(S::Message),
    /// From the first shard of a process to that of another: its watermark.
    LowWater {
        /// One value for each slot.
        low: Vec<u64>,
        /// The snapshots below it that the process holds.
        held: Vec<Held>,
        /// Whether the sender has something to drop, and wants to know the other's.
        asks: bool,
    },
    /// Gives slots of this shard to another.
    Move {
        /// The slots.
        slots: Vec<Slot>,
        /// Where to.
        to: ShardId,
        /// The furthest stamp that the shard that asks for the move believes. Slots with marks
        /// above it do not move: they would take their marks along.
        most: Timestamp,
        /// Whether the move has begun.
        asked: bool,
    },
    /// From shard to shard: slots that move, with what is in them.
    Parcel(Arc<Parcel<S>>),
    /// From shard to shard: these slots have arrived.
    TakenOver(Vec<Moved>),
    /// To a coordinator whose map is out of date: where the slots are that have moved since it was
    /// told last.
    Map(Vec<Moved>),
    /// Loads rows before anything else uses their table.
    Load {
        /// The table.
        table: TableId,
        /// The rows, all of which this shard owns or copies.
        rows: Arc<Rows>,
    },
    /// To a shard with data: makes those of these tables that it lacks, and asks which it has then.
    Tables {
        /// The position of the first of them. The tables before it are not asked for.
        from: u16,
        /// The tables, in the order of their ids; none if the sender only asks.
        made: Arc<Vec<TableSpec>>,
    },
    /// From shard to shard, when all come back: how far does the log go? With what the asker has
    /// to say of its own.
    Standing(Comeback),
    /// From a shard that holds no data: which era does this shard serve?
    Era,
    /// From the first shard: install no more at or below `to`, and say when that is on disk.
    Close {
        /// Where to close.
        to: Timestamp,
        /// All shards have closed here on disk.
        known: Timestamp,
    },
    /// To the first shard: a stamp was logged above the cut.
    Unclosed,
    /// From a session on a shard of one process to the sessions of another. The database does not
    /// know what it means ([`Inbox`](crate::base::Inbox)).
    Session(Vec<u8>),
}

plimsoll_types::wire!(<S: Scheme> enum Common<S> {
    ReadAt { txn, snapshot, reads; waited } = 0, Scheme(message) = 1, LowWater { low, held, asks } = 2,
    Read { txn, reads } = 3, Validate { txn, stamp, reads } = 4,
    Move { slots, to, most; asked } = 5, Parcel(parcel) = 6, TakenOver(slots) = 7, Map(moved) = 8, Load { table, rows } = 9,
    Standing(comeback) = 10, Close { to, known } = 11, Unclosed = 12, Era = 13, Tables { from, made } = 14,
    Session(message) = 15;
    Self::Snapshot(_) | Self::Stamp { .. }
});

impl<S: Scheme> Common<S> {
    /// Reads at a snapshot.
    pub fn read_at(txn: TxnId, snapshot: S::Snapshot, reads: Reads) -> Common<S> {
        Common::ReadAt { txn, snapshot, reads, waited: BTreeMap::new() }
    }
}

/// Answers to [`Common`] requests.
pub enum CommonReply<S: Scheme> {
    /// What was read, or `None` if the snapshot is older than the watermark.
    Fetched(Option<Fetched<S>>),
    /// Nothing was read: some of it is on another shard.
    Elsewhere,
    /// Nothing was read or validated: the snapshot or the stamp is too far ahead of the clock.
    ClockAhead,
    /// What came of a move.
    MoveOver(MoveOutcome),
    /// What came of rows to be loaded.
    LoadOver(LoadOutcome),
    /// The tables that the shard has.
    Tables(TableList),
    /// Whether all that was read is still current.
    Validated(bool),
    /// The snapshot asked for. It is already held, under this number: see
    /// [`Base::hold`](crate::base::Base::hold).
    Snapshot(S::Snapshot, u32),
    /// The stamp asked for.
    Stamp(Timestamp),
    /// How far the log goes.
    Standing(Comeback),
    /// The shard has closed on disk. No stamp that it has logged is larger than this.
    Closed(Timestamp),
    /// Nothing: the oracle cannot be reached, or what was to be read is locked by a transaction
    /// whose outcome depends on a shard that cannot.
    OutOfReach,
}

plimsoll_types::wire!(<S: Scheme> enum CommonReply<S> {
    Fetched(fetched) = 0, Validated(valid) = 1, Elsewhere = 2, MoveOver(outcome) = 3, LoadOver(outcome) = 4,
    ClockAhead = 5, OutOfReach = 6, Standing(comeback) = 7, Closed(largest) = 8, Tables(list) = 9;
    Self::Snapshot(..) | Self::Stamp(_)
});

impl<S: Scheme> Common<S> {
    /// What it is about, for whoever watches.
    pub(crate) fn about(&self) -> About {
        match self {
            Common::ReadAt { txn, reads, .. } => About::new("READ AT", Some(*txn)).reads(reads),
            Common::Read { txn, reads } => About::new("READ", Some(*txn)).reads(reads),
            Common::Validate { txn, .. } => About::new("VALIDATE", Some(*txn)),
            Common::Snapshot(_) => About::new("SNAPSHOT", None),
            Common::Stamp { .. } => About::new("STAMP", None),
            Common::Scheme(message) => About::oracle(message),
            Common::LowWater { .. } => About::new("LOW WATER", None),
            Common::Move { .. } => About::new("MOVE", None),
            Common::Parcel(_) => About::new("PARCEL", None),
            Common::TakenOver(_) => About::new("TAKEN OVER", None),
            Common::Map(_) => About::new("MAP", None),
            Common::Load { .. } => About::new("LOAD", None),
            Common::Tables { .. } => About::new("TABLES", None),
            Common::Standing(_) => About::new("STANDING", None),
            Common::Era => About::new("ERA", None),
            Common::Close { .. } => About::new("CLOSE", None),
            Common::Unclosed => About::new("UNCLOSED", None),
            Common::Session(_) => About::new("SESSION", None),
        }
    }
}

impl<S: Scheme> CommonReply<S> {
    /// It in a word or two, for whoever watches.
    pub(crate) fn answer(&self) -> &'static str {
        match self {
            CommonReply::Fetched(Some(_)) => "values",
            CommonReply::Fetched(None) => "too old",
            CommonReply::Validated(true) => "valid",
            CommonReply::Validated(false) => "not valid",
            CommonReply::Snapshot(..) => "snapshot",
            CommonReply::Stamp(_) => "stamp",
            CommonReply::OutOfReach => "out of reach",
            CommonReply::Elsewhere => "elsewhere",
            CommonReply::ClockAhead => "clock ahead",
            CommonReply::MoveOver(MoveOutcome::Moved) => "moved",
            CommonReply::MoveOver(_) => "not moved",
            CommonReply::LoadOver(LoadOutcome::Loaded) => "loaded",
            CommonReply::LoadOver(_) => "not loaded",
            CommonReply::Tables(_) => "tables",
            CommonReply::Standing(_) => "standing",
            CommonReply::Closed(_) => "closed",
        }
    }
}

/// How far a shard's log goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// How often the database has gone back to a cut, as far as this log knows.
    pub era: u64,
    /// The cut at which the era began.
    pub base: Timestamp,
    /// All installs at or below it are in the log.
    pub closed: Timestamp,
}

plimsoll_types::wire!(struct Standing { era, base, closed });

/// What a shard that comes back tells the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comeback {
    /// How far its log goes, on disk.
    pub standing: Standing,
    /// Whether its present life has begun the era of this standing; else an earlier life has, and
    /// the log may have entries behind.
    pub begun: bool,
}

plimsoll_types::wire!(struct Comeback { standing, begun });

/// What came of a request to move slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveOutcome {
    /// They have moved.
    Moved,
    /// The shard that was asked does not own all of them.
    NotHere,
    /// There are no such slots; or the shard that they were to move to holds no data.
    NoSuchPlace,
    /// That shard cannot be reached at the moment.
    Unreachable,
    /// Another move of this shard's is under way.
    Busy,
    /// Somebody held locks there all the time.
    Locked,
    /// The marks of the shard that has them are too far ahead of the asker's clock.
    ClockAhead,
}

plimsoll_types::wire!(
    enum MoveOutcome {
        Moved = 0,
        NotHere = 1,
        NoSuchPlace = 2,
        Unreachable = 3,
        Busy = 4,
        Locked = 5,
        ClockAhead = 6,
    }
);

/// Some of what moves.
#[derive(Debug)]
pub struct Parcel<S: Scheme> {
    /// The slots, their new owner and their terms.
    pub(crate) slots: Vec<Moved>,
    /// Which of how many.
    pub(crate) number: u32,
    pub(crate) of: u32,
    pub(crate) rows: Vec<MovedRow>,
    /// The sender's floor, and an upper bound of its marks.
    pub(crate) floor: Timestamp,
    pub(crate) marked: Timestamp,
    /// By process: what the sender has forgotten without regard to that process's snapshots, up to
    /// this stamp.
    pub(crate) forgotten: Vec<Timestamp>,
    /// The same for schemes that keep no marks beside records.
    pub(crate) pinned: S::Observed,
    /// What was ever installed there, if the run is recorded.
    pub(crate) installs: Vec<Install>,
}

plimsoll_types::wire!(<S: Scheme> struct Parcel<S> {
    slots, number, of, rows, floor, marked, forgotten, pinned, installs
});

/// The tables that a shard has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableList {
    /// Those from the position on that the request names, in the order of their ids.
    pub tables: Vec<TableSpec>,
    /// How many of them the request has made; they are the last.
    pub made: u16,
}

plimsoll_types::wire!(struct TableList { tables, made });

/// Rows with one value per column group.
pub type Rows = Vec<(Key, Vec<Vec<u8>>)>;

/// What came of a batch of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadOutcome {
    /// All of it is loaded.
    Loaded,
    /// Nothing is loaded: a row of it exists.
    Exists,
    /// Nothing is loaded: a row of it belongs to another shard. The coordinator will be told where
    /// its slot is.
    Elsewhere,
    /// Nothing is loaded: there is no such table, or a row does not fit it.
    Impossible,
    /// Nothing is loaded: the process has no memory for it.
    Full,
}

plimsoll_types::wire!(
    enum LoadOutcome {
        Loaded = 0,
        Exists = 1,
        Elsewhere = 2,
        Impossible = 3,
        Full = 4,
    }
);
