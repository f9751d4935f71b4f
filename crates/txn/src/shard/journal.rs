//! The state of a shard's journal and of its images, and the records that are in both.
//! `durable.rs`, `image.rs` and `cut.rs` say what they are for, and make and replay them.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_replication::{Entries, Identity, Settings};
use plimsoll_store::{MovedRow, RowId};
use plimsoll_types::wire::{Wire, blob};
use plimsoll_types::{ColumnGroup, Key, Moved, ShardId, TableId, TableSpec, Ticket, Timestamp, TxnId};

use crate::fetched::Range;
use crate::messages::{Comeback, Standing};
use crate::service::Kept;
use crate::timestamp::Scheme;
use crate::work::Packed;

/// How far the ceiling is ahead of every timestamp that the shard believes, in nanoseconds, when it
/// is written. It is written again when half of that is left. A shard that comes back waits until
/// its clock has passed the ceiling, so a longer distance makes restarts longer.
pub(super) const CEILING_NS: u64 = 200_000_000;

/// How old, in nanoseconds, an entry may be that is not on disk, before answers wait for the disk
/// although the log goes to a cut: that bounds what this shard can lose, and the memory it takes.
const BEHIND_NS: u64 = 60_000_000;

/// How old, in nanoseconds, and how many bytes the entries of such a log are, before they are
/// written, so that many share a sync.
pub(super) const GATHER_NS: u64 = 5_000_000;
pub(super) const GATHER_BYTES: usize = 512 << 10;

/// How many numbers of attempts are reserved at a time. A process that begins within as many
/// nanoseconds of the one before it is refused, because numbers begin with the clock.
pub(super) const RESERVED: u64 = 1_000_000;

/// The journal of a shard.
#[derive(Debug)]
pub struct Journal {
    /// Records of the present pass, and those before that may go with the next entry.
    pub(super) records: Vec<u8>,
    /// Bytes of them that nothing has to wait for.
    pub(super) lazy: usize,
    /// While the log is read: records of the protocol's own, until it has taken them.
    pub(super) own: Vec<Vec<u8>>,
    /// Entries that the log has not been given yet.
    pub(super) entries: Entries,
    /// The index of the entry that the present pass makes; while the log is read, of the one that
    /// is being read.
    pub(super) sealed: u64,
    /// Whether something waits for the entry of the present pass, so that there must be one.
    pub(super) claimed: bool,
    /// The index behind the last entry that is on disk, whether or not answers wait for that.
    pub(super) stable: u64,
    /// No mark is above this that an answer has told of.
    pub(super) ceiling: Timestamp,
    /// This shard begins no attempt with this number or a larger one before the log has a larger
    /// one.
    pub(super) reserved: u64,
    /// The largest stamp that the log has had.
    pub(super) largest: Timestamp,
    /// Whether the log is being read: requests wait.
    pub(super) recovering: bool,
    /// Whether something was found there.
    pub(super) has_read: bool,
    /// The requests, with the shards that they come from.
    pub(super) waiting: Vec<(ShardId, Ticket)>,
    /// If the log goes to a cut: those of them that a former life of their shard has sent.
    pub(super) obsolete: BTreeSet<Ticket>,
    /// While the log is read: the locks of transactions that were in doubt at some time.
    pub(super) locked: BTreeMap<TxnId, LockedKeys>,
    /// While the log is read: slots that have left, with their rows, until they have arrived.
    pub(super) left: Option<(Vec<Moved>, Vec<MovedRow>)>,
    /// What the log of this shard has to say of itself.
    pub(super) identity: Identity,
    pub(super) settings: Settings,
    pub(super) images: Images,
    /// If answers do not wait for the disk.
    pub(super) cut: Option<Cut>,
    /// Why the log could not be read, or written last.
    pub(super) failed: Option<String>,
    /// Whether the shard will never serve for that reason.
    pub(super) is_lost: bool,
    /// Why there is no room in reserve, so that no more writes are admitted.
    pub(super) full: Option<String>,
    /// Bytes of the entries of this life, writes of the log, and the time that they took.
    pub(super) bytes: u64,
    pub(super) flushes: u64,
    pub(super) flush_ns: u64,
    /// The log's writes, while they are recorded.
    pub(super) record: Option<WriteRecord>,
}

/// Writes that one record has at most. It takes 16 MiB then, and ends.
const WRITES_MAX: usize = 4 << 20;

/// What a log wrote and synced in some time: enough to write as much in the same pieces again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WriteRecord {
    begun: Timestamp,
    ended: Option<Timestamp>,
    /// How long it took to write and sync, in nanoseconds, with all that the log did besides.
    pub busy_ns: u64,
    /// Lengths of the writes, in bytes; each was followed by a sync.
    pub writes: Vec<u32>,
}

impl WriteRecord {
    pub(super) fn begin(now: Timestamp) -> WriteRecord {
        WriteRecord { begun: now, ..WriteRecord::default() }
    }

    pub(super) fn add(&mut self, took_ns: u64, now: Timestamp, writes: &[u32]) {
        if self.ended.is_some() {
            return;
        }
        self.writes.extend_from_slice(writes);
        self.busy_ns += took_ns;
        if self.writes.len() >= WRITES_MAX {
            self.ended = Some(now);
        }
    }

    pub(super) fn end(self, now: Timestamp) -> WriteRecord {
        WriteRecord { ended: self.ended.or(Some(now)), ..self }
    }

    /// How much time that was, in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.ended.map_or(0, |ended| ended.0.saturating_sub(self.begun.0))
    }
}

/// What a shard knows of its images.
#[derive(Debug, Default)]
pub(super) struct Images {
    /// Tables that the shard had before its log; the log does not name them.
    pub(super) unlogged_tables: usize,
    /// Bytes of the entries since the start of the last image.
    pub(super) since: u64,
    /// Bytes of the records in the last image.
    pub(super) bytes: u64,
    /// Whether one is being made.
    pub(super) under_way: bool,
    /// Whether slots have moved since it was begun.
    pub(super) spoilt: bool,
    /// None is begun before; and how long that was after the last one that failed.
    pub(super) again: Timestamp,
    pub(super) pause_ns: u64,
    /// Whether the next pass that ends makes the beginning of one.
    pub(super) wanted: bool,
    pub(super) beginning: Option<Beginning>,
    /// The starts of the last two that are on disk.
    pub(super) kept: Vec<u64>,
    /// The log is no longer needed below this index.
    pub(super) needless: Option<u64>,
    /// Of the image that was read: the index below which installs replace versions.
    pub(super) end: u64,
}

impl Images {
    /// Those of a shard that has read none.
    pub(super) fn anew(&self) -> Images {
        Images { unlogged_tables: self.unlogged_tables, ..Images::default() }
    }
}

/// An install in the log.
#[derive(Debug)]
pub(super) struct LoggedInstall {
    /// The index of its entry.
    pub(super) index: u64,
    pub(super) txn: TxnId,
    pub(super) column: ColumnGroup,
    pub(super) key: Key,
    pub(super) stamp: Timestamp,
    pub(super) value: Option<Vec<u8>>,
}

/// What a shard that logs to a cut knows of it.
#[derive(Debug, Default)]
pub(super) struct Cut {
    pub(super) standing: Standing,
    /// Whether the log has been read.
    pub(super) has_read: bool,
    /// Shards that have asked before how far it goes.
    pub(super) asking: Vec<Ticket>,
    /// Whether this life has begun an era.
    pub(super) begun: bool,
    /// Whether a shard that has not begun the same era has been told how far this log goes, since
    /// this one has last begun to ask.
    pub(super) doubted: bool,
    /// Whether a shard has come back that had served the same era: this life is over.
    pub(super) over: bool,
    /// Installs that were dropped when this life began an era.
    pub(super) dropped: u64,
    /// All shards are known to have closed here on disk.
    pub(super) known: Timestamp,
    /// Where the shard was asked to close last, and when, by its clock, in nanoseconds.
    pub(super) asked_to: (Timestamp, u64),
    /// The same of `known`.
    pub(super) known_ns: u64,
    /// Where the shard is to close, once no owner of a lock may commit below.
    pub(super) closing: Option<Timestamp>,
    /// The entry that has said so last, until it is on disk.
    pub(super) written: Option<(u64, Timestamp)>,
    pub(super) on_disk: Timestamp,
    /// Requests to close that wait for it.
    pub(super) waiting: Vec<Ticket>,
    /// While the log is read: installs that no cut has passed yet.
    pub(super) later: Vec<LoggedInstall>,
    /// Nothing leaves before the log is on disk below this index.
    pub(super) firm: u64,
    /// No entry that is not on disk is older.
    pub(super) behind: Option<Timestamp>,
    /// Whether the first shard knows that there is a stamp above the cut.
    pub(super) has_told: bool,
    /// On the first shard: whether one of the others has told so, and whether rounds are under way.
    pub(super) asked: bool,
    pub(super) rounds: bool,
}

/// What a shard that holds no data knows of the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Follows {
    /// The shard has data, or the database never goes back to a cut.
    Nobody,
    /// Not all shards with data have said that they serve the same era.
    Nothing,
    /// All serve one, and so does this shard.
    Era,
    /// One of them has come back: this life is over.
    Gone,
}

impl Follows {
    /// Whether transactions may begin.
    pub(super) fn has_met(self) -> bool {
        matches!(self, Follows::Nobody | Follows::Era)
    }
}

impl Cut {
    /// What the shard tells others when they come back.
    pub(super) fn comeback(&self) -> Comeback {
        Comeback { standing: self.standing, begun: self.begun }
    }

    /// Whether answers have to wait for the disk all the same.
    pub(super) fn waits(&self, on_disk: u64, now: Timestamp) -> bool {
        on_disk < self.firm || self.behind.is_some_and(|since| now.0 > since.0 + BEHIND_NS)
    }
}

/// The first part of an image.
#[derive(Debug)]
pub(crate) struct Beginning {
    /// The log is read from this index.
    pub(crate) start: u64,
    /// The records of the image.
    pub(crate) records: Vec<u8>,
    /// The way through the tables that are in it.
    pub(crate) walk: Walk,
    /// How much of the log the image replaces that the one before did not.
    pub(super) since: u64,
}

/// A way through the rows of tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(super) table: u16,
    pub(super) row: RowId,
    /// Tables that were added later are in the log.
    pub(super) tables: u16,
}

/// How a shard's log is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogStatus {
    /// The index behind the last entry.
    pub entries: u64,
    /// Bytes of the entries of this life, without what the format adds.
    pub bytes: u64,
    /// How often the log was written and synced, and how long that took in all, in nanoseconds.
    pub flushes: u64,
    /// See [`LogStatus::flushes`].
    pub flush_ns: u64,
    /// Bytes of the records in the last image; 0 if there is none.
    pub image_bytes: u64,
    /// Bytes of the entries since it was begun.
    pub since_image_bytes: u64,
    /// If answers do not wait for the disk: all transactions with stamps up to here are on the
    /// disks of all shards.
    pub cut: Option<Timestamp>,
    /// When that was, by the shard's clock, in nanoseconds; `None` if it is not known.
    pub cut_ns: Option<u64>,
    /// How often the database has gone back to such a timestamp.
    pub era: u64,
    /// Versions that were gone on this shard when it last did.
    pub dropped: u64,
    /// The largest stamp that it has had.
    pub largest: Timestamp,
    /// Whether the log is being read, so that the shard does not serve yet.
    pub is_recovering: bool,
    /// Whether the shard will never serve, because its log cannot be read.
    pub is_lost: bool,
    /// What is wrong with it, if anything: it cannot be read, it could not be written last, or
    /// there is no room for more.
    pub failure: Option<String>,
}

/// A record of the log or of an image.
pub(super) enum Record {
    /// A version was installed.
    Install { txn: TxnId, column: ColumnGroup, key: Key, stamp: Timestamp, value: Option<Vec<u8>> },
    /// A row was loaded.
    Load { table: TableId, key: Key, values: Vec<Vec<u8>> },
    /// A table was added.
    Table(TableSpec),
    /// A ballot has this state now.
    Ballot { txn: TxnId, ballot: Ballot },
    /// A coordinator has settled attempts, and their votes were forgotten.
    Settled { coordinator: ShardId, first: u64, below: u64 },
    /// See [`Journal::ceiling`] and [`Journal::reserved`].
    Ceiling { to: Timestamp, reserved: u64 },
    /// Images only: the newest versions of a row.
    Row(MovedRow),
    /// Images only, the last record: versions in it are of entries below an index; rows that were
    /// deleted at the floor or below may have been forgotten; no stamp in the log was larger.
    End { below: u64, floor: Timestamp, largest: Timestamp },
    /// No install at or below `to` follows. All shards had closed at `cut` on disk.
    Closed { to: Timestamp, cut: Timestamp },
    /// An era begins: installs above its base that come before this have never been.
    Era { era: u64, base: Timestamp },
    /// Slots have left for another shard, and wait until it has them.
    Left { slots: Vec<Moved> },
    /// Slots have arrived with these rows.
    Arrived(Arrival),
    /// The other shard has what has left.
    Gone,
    /// Images only: the slots that have ever moved.
    Map { slots: Vec<Moved> },
    /// Images only: what the log would have said of the cut.
    Standing { standing: Standing, known: Timestamp },
    /// What the timestamp scheme keeps.
    Scheme(Kept),
    /// A record of the protocol's own.
    Own(Vec<u8>),
}

plimsoll_types::wire!(
    enum Record {
        Install { txn, column, key, stamp, value } = 1,
        Load { table, key, values } = 2,
        Table(spec) = 3,
        Ballot { txn, ballot } = 4,
        Settled { coordinator, first, below } = 5,
        Ceiling { to, reserved } = 6,
        Row(row) = 7,
        End { below, floor, largest } = 8,
        Closed { to, cut } = 9,
        Era { era, base } = 10,
        Standing { standing, known } = 11,
        Left { slots } = 12,
        Arrived(arrival) = 13,
        Gone = 14,
        Map { slots } = 15,
        Scheme(kept) = 20,
        Own(record) = 21,
    }
);

impl Record {
    /// Appends the encoding of [`Record::Install`], of which there are by far the most.
    pub(super) fn encode_install(
        txn: TxnId,
        column: ColumnGroup,
        key: &Key,
        stamp: Timestamp,
        value: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        1u8.encode(out);
        txn.encode(out);
        column.encode(out);
        key.encode(out);
        stamp.encode(out);
        value.is_some().encode(out);
        if let Some(value) = value {
            blob(value, out);
        }
    }
}

/// Slots that have arrived, as parcels have them.
pub(super) struct Arrival {
    pub(super) slots: Vec<Moved>,
    pub(super) rows: Vec<MovedRow>,
    pub(super) floor: Timestamp,
    pub(super) marked: Timestamp,
    pub(super) forgotten: Vec<Timestamp>,
}

plimsoll_types::wire!(struct Arrival { slots, rows, floor, marked, forgotten });

impl Arrival {
    /// The largest timestamp that is in it.
    pub(super) fn largest(&self) -> Timestamp {
        let versions = self.rows.iter().flat_map(|row| &row.records).flat_map(|record| &record.versions);
        versions.fold(self.marked, |largest, (stamp, _)| largest.join(*stamp))
    }
}

/// The state of a ballot, in the log.
pub(super) enum Ballot {
    /// It is forgotten.
    Gone,
    /// The vote is REFUSE.
    Refused,
    /// The vote is RECORD and the outcome is not known.
    Recorded {
        stamp: Timestamp,
        writes: Packed,
        voters: Vec<(ShardId, u64)>,
        promised: bool,
        locks: LockedKeys,
    },
    /// The vote was RECORD and the outcome is known.
    Known { stamp: Timestamp, committed: bool, voters: Vec<(ShardId, u64)>, told: Vec<ShardId> },
}

plimsoll_types::wire!(
    enum Ballot {
        Gone = 1,
        Refused = 2,
        Recorded { stamp, writes, voters, promised, locks } = 3,
        Known { stamp, committed, voters, told } = 4,
    }
);

impl Ballot {
    /// The stamp that is in it.
    pub(super) fn stamp(&self) -> Timestamp {
        match self {
            Ballot::Recorded { stamp, .. } | Ballot::Known { stamp, .. } => *stamp,
            Ballot::Gone | Ballot::Refused => Timestamp::ZERO,
        }
    }
}

/// The locks of a transaction by key: rows have other places after a restart.
#[derive(Clone, Debug, Default)]
pub(super) struct LockedKeys {
    pub(super) age: u64,
    /// With the lower bounds that are published with them; a lock without one is that of a read.
    pub(super) exclusive: Vec<(ColumnGroup, Key, Option<Timestamp>)>,
    pub(super) shared: Vec<(ColumnGroup, Key)>,
    pub(super) ranges: Vec<Range>,
}

plimsoll_types::wire!(struct LockedKeys { age, exclusive, shared, ranges });

impl Journal {
    /// A journal whose log is still to be read.
    pub(super) fn new(identity: Identity, settings: Settings) -> Journal {
        Journal {
            records: Vec::new(),
            lazy: 0,
            own: Vec::new(),
            entries: Entries::default(),
            sealed: 0,
            claimed: false,
            stable: 0,
            ceiling: Timestamp::ZERO,
            reserved: 0,
            largest: Timestamp::ZERO,
            recovering: true,
            has_read: false,
            waiting: Vec::new(),
            obsolete: BTreeSet::new(),
            locked: BTreeMap::new(),
            left: None,
            identity,
            settings,
            images: Images::default(),
            cut: None,
            failed: None,
            is_lost: false,
            full: None,
            bytes: 0,
            flushes: 0,
            flush_ns: 0,
            record: None,
        }
    }

    /// Forgets what was read.
    pub(super) fn forget_read(&mut self) {
        self.images = self.images.anew();
        self.cut = self.cut.take().map(|cut| Cut { asking: cut.asking, ..Cut::default() });
        (self.sealed, self.stable, self.reserved) = (0, 0, 0);
        (self.ceiling, self.largest, self.has_read) = (Timestamp::ZERO, Timestamp::ZERO, false);
        (self.locked, self.left) = (BTreeMap::new(), None);
        self.own.clear();
    }

    /// What the log is opened with.
    pub(crate) fn log(&self) -> (Identity, Settings) {
        (self.identity, self.settings)
    }

    /// Whether a request has to wait because the log is being read.
    pub(crate) fn holds(&mut self, from: ShardId, ticket: Ticket) -> bool {
        if self.recovering {
            self.waiting.push((from, ticket));
        }
        self.recovering
    }

    /// Whether a request has waited here, and its sender's life is over.
    pub(crate) fn is_obsolete(&mut self, ticket: Ticket) -> bool {
        !self.obsolete.is_empty() && self.obsolete.remove(&ticket)
    }

    /// Whether passes make entries.
    pub(super) fn writes(&self) -> bool {
        !self.recovering || self.cut.as_ref().is_some_and(|cut| cut.has_read)
    }

    /// Whether the ceiling has to be raised, or numbers reserved.
    pub(super) fn is_low<S: Scheme>(&self, furthest: Timestamp, next_attempt: u64) -> bool {
        S::CLOCKED && furthest.0 + CEILING_NS / 2 > self.ceiling.0 || next_attempt >= self.reserved
    }

    /// Whether the present pass has something that an entry must have.
    pub(super) fn is_due(&self) -> bool {
        self.records.len() > self.lazy
    }

    /// The present pass does something that no cut takes back.
    pub(super) fn make_firm(&mut self) {
        if let Some(cut) = &mut self.cut {
            cut.firm = self.sealed + 1;
        }
    }

    pub(super) fn push(&mut self, record: &Record) {
        record.encode(&mut self.records);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_types::wire::encoded;

    use super::*;

    #[test]
    fn an_install_is_encoded_as_the_record_is() {
        let txn = TxnId { coordinator: ShardId(3), number: 7 };
        let column = ColumnGroup { table: TableId(5), group: 1 };
        for key in [Key::new(&[1]), Key::new(&[9; 300])] {
            for value in [None, Some(vec![]), Some(vec![8; 100])] {
                let mut out = Vec::new();
                Record::encode_install(txn, column, &key, Timestamp(11), value.as_deref(), &mut out);
                let (key, stamp) = (key.clone(), Timestamp(11));
                assert_eq!(out, encoded(&Record::Install { txn, column, key, stamp, value }));
            }
        }
    }

    #[test]
    fn a_record_of_writes_is_bounded_and_ends_when_it_is_full() {
        let mut record = WriteRecord::begin(Timestamp(100));
        let many = vec![512; WRITES_MAX / 2];
        for now in [200, 300, 400] {
            record.add(10, Timestamp(now), &many);
        }
        let record = record.end(Timestamp(500));
        assert_eq!((record.writes.len(), record.busy_ns, record.length_ns()), (WRITES_MAX, 20, 200));
        let few = WriteRecord::begin(Timestamp(100)).end(Timestamp(500));
        assert_eq!((few.writes.len(), few.busy_ns, few.length_ns()), (0, 0, 400));
    }
}
