//! The words of a trace: the steps that transactions take on a shard, and what a message is about.
//!
//! [`crate::steps`] says where steps are noted, what that costs, and shows an example.

use plimsoll_store::Cover;
use plimsoll_types::{Abort, ColumnGroup, Key, TableId, Timestamp, TxnId};

use crate::procedure::Reads;
use crate::timestamp::Freshness;

/// What carries a mark.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Item {
    /// A record.
    Record(ColumnGroup, Key),
    /// What covers keys that are not there: a leaf of an ordered table, a cell of another.
    Cover(TableId, Cover),
}

/// One step of a transaction on one shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The attempt.
    pub txn: TxnId,
    /// What it did.
    pub what: What,
}

/// What a transaction may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// Begins an attempt that takes more than one step.
    Begins,
    /// Goes on with what an attempt has read and written that was given up for it.
    Continues(TxnId),
    /// Has a snapshot: its place in the order of timestamps, if it has one, and how fresh it had to
    /// be.
    Snapshot(Option<Timestamp>, Freshness),
    /// Raises what later writers of an item must exceed, because it reads it at a snapshot.
    Raises {
        /// The item.
        item: Item,
        /// Its bound before and after.
        bounds: (Timestamp, Timestamp),
    },
    /// Reads a record in this version; `None` if it is absent.
    Reads(Item, Option<Timestamp>),
    /// Waits for another, who holds a lock.
    Waits(Item, Option<TxnId>),
    /// Takes a lock.
    Locks {
        /// The record.
        item: Item,
        /// Whether nobody else may have it.
        exclusive: bool,
        /// What a writer must exceed.
        bound: Timestamp,
        /// The lower bound of its own stamp that it publishes.
        lb: Timestamp,
    },
    /// Looks at the bound of a record again that it has locked.
    Bounds(Item, Timestamp),
    /// Is refused, because of somebody else or because something has changed.
    Refused(Item, Abort, Option<TxnId>),
    /// Has its commit stamp, which had to be at least `least`.
    Stamps {
        /// The stamp.
        stamp: Timestamp,
        /// One more than everything it observed; zero if the scheme has no such thing.
        least: Timestamp,
    },
    /// Raises the mark of what it has read to its stamp.
    Pins {
        /// The item.
        item: Item,
        /// Its bound before and after.
        bounds: (Timestamp, Timestamp),
        /// Whether it still is what was read.
        current: bool,
    },
    /// Installs a version.
    Installs {
        /// The record.
        item: Item,
        /// The version's stamp.
        stamp: Timestamp,
        /// Whether it is a tombstone.
        delete: bool,
        /// The bound before and after.
        bounds: (Timestamp, Timestamp),
    },
    /// Drops a lock.
    Unlocks(Item),
    /// Gives up.
    Aborts(Abort),
}

/// What a message is about, for whoever watches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Its kind, in one word as in the paper.
    pub kind: String,
    /// The transaction, if it is about one.
    pub txn: Option<TxnId>,
    /// The records it names; of a range, its low end.
    pub records: Vec<(ColumnGroup, Key)>,
}

impl About {
    pub(crate) fn new(kind: impl ToString, txn: Option<TxnId>) -> About {
        About { kind: kind.to_string(), txn, records: Vec::new() }
    }

    pub(crate) fn writes<'a>(mut self, records: impl Iterator<Item = (ColumnGroup, &'a Key)>) -> About {
        self.records.extend(records.map(|(column, key)| (column, key.clone())));
        self
    }

    pub(crate) fn reads(self, reads: &Reads) -> About {
        let gets = reads.gets.iter().map(|(column, key, _)| (*column, key));
        self.writes(gets.chain(reads.scans.iter().map(|(scan, _)| (scan.column, &scan.low))))
    }

    /// A message from or to an oracle is known by its first word.
    pub(crate) fn oracle(message: &impl std::fmt::Debug) -> About {
        let text = format!("{message:?}");
        let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        About::new(word.to_uppercase(), None)
    }
}

/// Notes a step, if somebody watches.
#[inline]
pub(crate) fn note(steps: &mut Option<Vec<Step>>, txn: TxnId, what: impl FnOnce() -> What) {
    #[cold]
    #[inline(never)]
    fn watched(steps: &mut Vec<Step>, txn: TxnId, what: impl FnOnce() -> What) {
        steps.push(Step { txn, what: what() });
    }
    if let Some(steps) = steps {
        watched(steps, txn, what);
    }
}
