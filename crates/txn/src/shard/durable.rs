//! What a shard writes to its log, and how it comes back from there.
//!
//! A shard that logs appends a *record* for everything that must survive its process: versions,
//! votes and their outcomes, tables, loaded rows, and a ceiling of its marks. The records of one
//! pass are one *entry* of the log, so that nothing that happened in one step is ever found in
//! part. Nothing waits in the shard: requests are handled at once, and what the pass sends leaves
//! when its entry is on disk ([`Participant::logged`](plimsoll_runtime::Participant::logged)). So
//! no other shard and no client knows of anything that a crash could take back, and there are no
//! rules about what each message depends on.
//!
//! *Marks* are not logged. Every mark is at most as far ahead of the clock as this shard believes
//! timestamps to be ([`Base::believe`]), or is the stamp of a transaction that the log has. A
//! *ceiling* that is always ahead of that is in the log before a message leaves that could depend
//! on such a mark. A shard that comes back bounds everything by the ceiling, so no writer commits
//! below a snapshot or a validation of before.
//!
//! *Votes* survive with the locks that their transactions hold. A ballot is written in the state
//! that it has at the end of the pass. When a shard comes back, it has the locks of all
//! transactions whose outcome it does not know before it answers anything, and then asks the other
//! voters.
//!
//! The log begins with an *image* once it has become long (`image.rs`). A shard reads its newest
//! image and then the log from where the image starts; if that image is damaged, the one before it.
//!
//! *Timestamp schemes* have records of their own in the log ([`Kept`](crate::service::Kept)), with
//! the same rule: they are on disk before a message leaves that could depend on them. The log of an
//! oracle's shard has hardly anything else. Messages of the scheme wait while a log is read, in
//! order, since they are answered in order ([`Base::receive_scheme`]).
//!
//! *Moves* of slots are two records: that slots have left, and the rows of slots that have arrived.
//! When the log is read, the rows of slots that have left are taken out again in the same place. A
//! log says only what its own shard has given away or got. Where other slots are the shard is told
//! when it asks where they were.

use std::mem::{replace, take};

use plimsoll_replication::{Entries, Identity, Settings};
use plimsoll_runtime::Logged;
use plimsoll_store::{At, Holder, RangeLock};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::{Input, Malformed, Wire};
use plimsoll_types::{ColumnGroup, Key, Moved, ShardId, TableId, TableSpec, Timestamp, TxnId};

use crate::ballot::{Changed, Doubt, State};
use crate::base::Base;
use crate::journal::{
    Arrival, Ballot, CEILING_NS, Cut, GATHER_BYTES, GATHER_NS, Journal, LockedKeys, LogStatus, LoggedInstall,
    RESERVED, Record, WriteRecord,
};
use crate::locks::Locks;
use crate::timestamp::Scheme;

impl<S: Scheme> Base<S> {
    /// From now on the shard logs. Its log is still to be read. With `to_cut` its answers do not
    /// wait for the disk, and after a crash it goes back to a cut (`cut.rs`).
    pub fn log(&mut self, identity: Identity, settings: Settings, to_cut: bool) {
        let mut journal = Journal::new(identity, settings);
        journal.images.unlogged_tables = self.store.tables();
        match to_cut {
            true => {
                journal.cut = Some(Cut::default());
                self.votes.go_back();
            }
            false => self.votes.log(true),
        }
        self.journal = Some(Box::new(journal));
    }

    /// The shards that hold data log. This one holds none and does not, as that of a client.
    pub fn others_log(&mut self) {
        self.votes.log(false);
    }

    /// Why the shard's log could not be read, or written last, if so.
    pub fn log_failure(&self) -> Option<String> {
        let journal = self.journal.as_ref()?;
        journal.failed.clone().or_else(|| journal.full.clone())
    }

    /// How the shard's log is, if it has one.
    pub(crate) fn log_status(&self) -> Option<LogStatus> {
        let journal = self.journal.as_ref()?;
        Some(LogStatus {
            entries: journal.sealed,
            bytes: journal.bytes,
            flushes: journal.flushes,
            flush_ns: journal.flush_ns,
            image_bytes: journal.images.bytes,
            since_image_bytes: journal.images.since,
            cut: self.known_cut(),
            cut_ns: self.known_cut_ns(),
            era: self.era(),
            dropped: journal.cut.as_ref().map_or(0, |cut| cut.dropped),
            largest: journal.largest,
            is_recovering: journal.recovering,
            is_lost: journal.is_lost,
            failure: self.log_failure(),
        })
    }

    /// Why the log has no room in reserve, if so: then writes are refused until it has.
    pub(crate) fn note_reserve(&mut self, full: Option<String>) {
        if let Some(journal) = &mut self.journal
            && journal.full != full
        {
            self.room.note_disk(full.is_some());
            journal.full = full;
        }
    }

    /// The log cannot be read, and nothing will ever be served.
    pub(crate) fn log_lost(&mut self, why: String) {
        if let Some(journal) = &mut self.journal {
            (journal.failed, journal.is_lost) = (Some(why), true);
        }
    }

    /// The log could not be read, or not be written; what waits for it goes on to wait.
    pub(crate) fn log_failed(&mut self, why: String) {
        if let Some(journal) = &mut self.journal {
            journal.failed = Some(why);
        }
    }

    /// Takes the entries that the log has not been given, and the index behind them.
    pub(crate) fn take_entries(&mut self) -> (Entries, u64) {
        self.journal.as_mut().map(|journal| (take(&mut journal.entries), journal.sealed)).unwrap_or_default()
    }

    /// Whether entries may wait for others before they are written: nothing waits for them, they
    /// are young, and they are few.
    pub(crate) fn may_gather(&mut self) -> bool {
        let now = self.votes.clock();
        self.journal.as_ref().is_some_and(|journal| {
            let young = |cut: &Cut| cut.behind.is_some_and(|since| now.0 < since.0 + GATHER_NS);
            let bytes = journal.entries.bytes();
            bytes < GATHER_BYTES
                && journal.cut.as_ref().is_some_and(|cut| young(cut) && !cut.waits(journal.stable, now))
        })
    }

    /// The state of the log.
    #[inline]
    pub(crate) fn logged(&mut self) -> Logged {
        if self.journal.is_some() { self.logged_now() } else { Logged::default() }
    }

    fn logged_now(&mut self) -> Logged {
        let (furthest, next, changed) = (self.furthest(), self.next_attempt(), self.votes.has_changed());
        let (now, news) = (self.votes.clock(), self.scheme.has_news());
        let journal = self.journal.as_mut().expect("the caller has looked");
        let (sealed, written) = (journal.sealed, journal.stable);
        if planted(Mutant::AnswersUnstable) {
            return Logged { head: written, sealed, written, stable: written };
        }
        let due = changed || news || journal.is_low::<S>(furthest, next);
        journal.claimed |= due && !journal.recovering || journal.is_due() && journal.writes();
        let head = sealed + u64::from(journal.claimed);
        let waits = journal.cut.as_ref().is_none_or(|cut| cut.waits(written, now));
        Logged { head, sealed, written, stable: if waits { written } else { head } }
    }

    /// Whether there is something in the log, or about to be, that is not on disk.
    pub(crate) fn has_appended(&mut self) -> bool {
        let Logged { head, written, .. } = self.logged();
        head > written
    }

    /// All entries below an index are on disk; the last of them were written by now, in so much
    /// time and in writes of these lengths.
    pub(crate) fn now_stable(&mut self, entries: u64, took_ns: u64, now: Timestamp, writes: &[u32]) {
        if let Some(journal) = &mut self.journal {
            if let Some(record) = &mut journal.record {
                record.add(took_ns, now, writes);
            }
            journal.stable = entries;
            journal.flushes += 1;
            journal.flush_ns += took_ns;
            journal.failed = None;
            if let Some(cut) = &mut journal.cut {
                // What is left was appended after the write had begun.
                let begun = Timestamp(now.0.saturating_sub(took_ns));
                cut.behind = (journal.sealed > entries).then_some(begun);
            }
        }
        self.closed_on_disk(entries);
    }

    /// Begins to record the writes of the shard's log now. Returns what was recorded before.
    pub(crate) fn record_writes(&mut self, now: Timestamp) -> Option<WriteRecord> {
        let record = self.journal.as_mut()?.record.replace(WriteRecord::begin(now))?;
        Some(record.end(now))
    }

    /// Whether transactions may begin on the shard: its log has been read, if it has one, and under
    /// `async` all shards with data serve the same era.
    pub fn serves_transactions(&self) -> bool {
        self.journal.as_ref().is_none_or(|journal| !journal.recovering) && self.follows.has_met()
    }

    /// Logs a version.
    #[cold]
    pub(crate) fn log_install(&mut self, txn: TxnId, at: At, stamp: Timestamp, value: Option<&[u8]>) {
        let key = self.store.key(at.column.table, at.row);
        let Some(journal) = self.journal.as_mut().filter(|journal| !journal.recovering) else { return };
        if planted(Mutant::InstallsNotLogged) {
            return;
        }
        journal.largest.raise(stamp);
        Record::encode_install(txn, at.column, &key, stamp, value, &mut journal.records);
    }

    /// Loads a row, and logs it.
    pub(crate) fn load_row(&mut self, table: TableId, key: &Key, values: &[&[u8]]) {
        self.store.load(table, key, values);
        if let Some(journal) = &mut self.journal {
            let values = values.iter().map(|value| value.to_vec()).collect();
            journal.push(&Record::Load { table, key: key.clone(), values });
            journal.make_firm();
        }
    }

    /// Logs that slots have left.
    pub(super) fn log_left(&mut self, slots: &[Moved]) {
        if let Some(journal) = &mut self.journal
            && !planted(Mutant::LeavingNotLogged)
        {
            journal.images.spoilt = true;
            journal.push(&Record::Left { slots: slots.to_vec() });
        }
    }

    /// Logs that slots have arrived.
    pub(super) fn log_arrived(&mut self, arrival: Arrival) {
        if let Some(journal) = &mut self.journal
            && !planted(Mutant::ArrivalNotLogged)
        {
            journal.images.spoilt = true;
            journal.largest.raise(arrival.largest());
            journal.push(&Record::Arrived(arrival));
        }
    }

    /// Logs that the other shard has what has left.
    pub(super) fn log_gone(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.push(&Record::Gone);
        }
    }

    /// Logs a table.
    pub(crate) fn log_table(&mut self, spec: &TableSpec) {
        if let Some(journal) = self.journal.as_mut().filter(|journal| !journal.recovering) {
            journal.push(&Record::Table(spec.clone()));
            journal.make_firm();
        }
    }

    /// Whether what happens here now is logged.
    pub(crate) fn logs(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| !journal.recovering)
    }

    /// Logs a record of the protocol's own, of a transaction with this stamp.
    pub(crate) fn log_own(&mut self, record: Vec<u8>, stamp: Timestamp) {
        if let Some(journal) = self.journal.as_mut().filter(|journal| !journal.recovering) {
            journal.push(&Record::Own(record));
            journal.largest.raise(stamp);
        }
    }

    /// Logs one that nothing waits for: it is in the next entry that is made for another reason.
    pub(crate) fn log_own_lazily(&mut self, record: Vec<u8>) {
        if let Some(journal) = self.journal.as_mut().filter(|journal| !journal.recovering) {
            let before = journal.records.len();
            journal.push(&Record::Own(record));
            journal.lazy += journal.records.len() - before;
        }
    }

    /// What the pass has logged so far is in the next entry that is made for another reason.
    pub(crate) fn log_lazily(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.lazy = journal.records.len();
        }
    }

    /// While the log is read: what the protocol has logged itself, in order, since the last call.
    pub(crate) fn take_own(&mut self) -> Vec<Vec<u8>> {
        self.journal.as_mut().map(|journal| take(&mut journal.own)).unwrap_or_default()
    }

    /// The pass ends: makes an entry of what has changed. `locks` are those that a transaction
    /// holds here. Returns whether an image begins: the protocol adds what it has logged itself.
    pub(crate) fn make_entry<'a>(&mut self, locks: impl Fn(TxnId) -> Option<&'a Locks>) -> bool {
        let Some(mut journal) = self.journal.take() else { return false };
        let mut begins = false;
        if journal.writes() {
            let Changed { ballots, settled } = self.votes.take_changed();
            for (coordinator, number) in ballots {
                let txn = TxnId { coordinator, number };
                if let Some(ballot) = self.ballot(txn, &locks) {
                    journal.largest.raise(ballot.stamp());
                    journal.push(&Record::Ballot { txn, ballot });
                }
            }
            for coordinator in settled {
                let (first, below) = self.votes.told_settled(coordinator);
                journal.push(&Record::Settled { coordinator, first, below });
            }
            let furthest = self.furthest();
            if !journal.recovering && journal.is_low::<S>(furthest, self.next_attempt()) {
                if S::CLOCKED {
                    journal.ceiling.raise(Timestamp(furthest.0 + CEILING_NS));
                }
                journal.reserved = self.next_attempt() + RESERVED;
                let (to, reserved) = (journal.ceiling, journal.reserved);
                journal.push(&Record::Ceiling { to, reserved });
            }
            self.scheme.news().into_iter().for_each(|kept| journal.push(&Record::Scheme(kept)));
            self.close_now(&mut journal);
            if take(&mut journal.claimed) || journal.is_due() {
                journal.lazy = 0;
                let records = &mut journal.records;
                journal.images.since += records.len() as u64;
                journal.bytes += records.len() as u64;
                journal.entries.push(|out| out.append(records));
                journal.sealed += 1;
                if let Some(cut) = &mut journal.cut {
                    cut.behind.get_or_insert(self.votes.clock());
                }
            }
            begins = self.begin_image(&mut journal, &locks);
        }
        self.journal = Some(journal);
        begins
    }

    /// The state of a ballot for the log; `None` if the log need not hear of it.
    pub(super) fn ballot<'a>(
        &self,
        txn: TxnId,
        locks: &impl Fn(TxnId) -> Option<&'a Locks>,
    ) -> Option<Ballot> {
        Some(match self.votes.state(txn) {
            None | Some(State::Open) => Ballot::Gone,
            Some(_) if planted(Mutant::VotesNotLogged) => return None,
            Some(State::Known { .. }) if planted(Mutant::OutcomesNotLogged) => return None,
            Some(State::Refused) => Ballot::Refused,
            Some(State::Recorded { stamp, writes, voters, doubt, .. }) => Ballot::Recorded {
                stamp: *stamp,
                writes: writes.clone(),
                voters: voters.clone(),
                promised: *doubt != Doubt::No,
                locks: locks(txn).map(|locks| self.locked_keys(txn, locks)).unwrap_or_default(),
            },
            Some(State::Known { stamp, committed, voters, told }) => Ballot::Known {
                stamp: *stamp,
                committed: *committed,
                voters: voters.clone(),
                told: told.clone(),
            },
        })
    }

    fn locked_keys(&self, txn: TxnId, locks: &Locks) -> LockedKeys {
        let key = |at: &At| self.store.key(at.column.table, at.row);
        let mut keys = LockedKeys::default();
        for at in &locks.exclusive {
            let Some(lock) = self.store.lock(*at) else { continue };
            keys.age = lock.owner.map_or(keys.age, |owner| owner.age);
            keys.exclusive.push((at.column, key(at), Some(lock.lb).filter(|&lb| lb < Timestamp::MAX)));
        }
        keys.shared = locks.shared.iter().map(|at| (at.column, key(at))).collect();
        for &table in &locks.ranges {
            let of_txn = |range: &&RangeLock| range.txn == txn;
            for range in self.store.ranges(table).iter().filter(of_txn) {
                keys.ranges.extend(range.iter().map(|(low, high)| (table, low.clone(), high.cloned())));
            }
        }
        keys
    }

    /// Takes an entry from the log.
    pub(crate) fn replay_entry(&mut self, index: u64, entry: &[u8]) -> Result<(), Malformed> {
        if let Some(journal) = &mut self.journal {
            (journal.sealed, journal.stable) = (index, index);
            journal.images.since += entry.len() as u64;
            if planted(Mutant::ImageReadFromEnd) && index < journal.images.end {
                return Ok(());
            }
        }
        self.replay(entry)
    }

    /// Takes records from the log or from an image.
    pub(crate) fn replay(&mut self, records: &[u8]) -> Result<(), Malformed> {
        if let Some(journal) = &mut self.journal {
            journal.has_read = true;
        }
        let mut input = Input::new(records);
        while input.left() > 0 {
            self.replay_record(Record::decode(&mut input)?)?;
        }
        Ok(())
    }

    fn replay_record(&mut self, record: Record) -> Result<(), Malformed> {
        match record {
            Record::Install { txn, column, key, stamp, value } => {
                self.recovered(stamp);
                let journal = self.journal.as_mut().expect("a shard that reads its log has a journal");
                let install = LoggedInstall { index: journal.sealed, txn, column, key, stamp, value };
                match &mut journal.cut {
                    Some(cut) => cut.later.push(install),
                    None => self.install_from_log(install)?,
                }
            }
            Record::Load { table, key, values } => {
                self.refuse_unknown(table.row())?;
                let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
                let is_above = !self.is_below_image();
                if values.len() != usize::from(self.groups(table))
                    || is_above && !self.store.is_vacant(table, &key)
                {
                    return Err(Malformed("a row that was loaded twice, or has other column groups"));
                }
                for (column, value) in (0..).map(|group| table.group(group)).zip(values) {
                    let at = self.place_of(column, &key);
                    self.store.replace(at, Timestamp::ZERO, Some(value));
                }
            }
            Record::Table(spec) => {
                self.create_table(spec);
            }
            Record::Ballot { txn, ballot } => self.restore(txn, ballot),
            Record::Settled { coordinator, first, below } => {
                self.votes.hear_settled(coordinator, first, below);
                self.votes.forget(coordinator);
            }
            Record::Ceiling { to, reserved } => {
                if let Some(journal) = &mut self.journal {
                    journal.ceiling.raise(to);
                    journal.reserved = journal.reserved.max(reserved);
                }
            }
            Record::Row(row) => {
                self.refuse_unknown(row.table.row())?;
                if row.records.len() != usize::from(self.groups(row.table)) {
                    return Err(Malformed("a row with other column groups than its table"));
                }
                self.store.replace_row(&row);
                let versions = row.records.iter().flat_map(|record| &record.versions);
                versions.for_each(|(stamp, _)| self.recovered(*stamp));
            }
            Record::End { below, floor, largest } => {
                self.recovered(largest);
                self.replay_end(below, floor, largest);
            }
            Record::Left { slots } => {
                let rows = self.take_slots(&slots);
                if let Some(journal) = &mut self.journal {
                    journal.left = Some((slots, rows)).filter(|_| !planted(Mutant::ParcelForgotten));
                }
            }
            Record::Arrived(arrival) => {
                for row in &arrival.rows {
                    self.refuse_unknown(row.table.row())?;
                    if row.records.len() != usize::from(self.groups(row.table)) {
                        return Err(Malformed("a row with other column groups than its table"));
                    }
                }
                self.recovered(arrival.largest());
                let Arrival { slots, rows, floor, marked, forgotten } = &arrival;
                self.arrive(slots, rows, *floor, *marked, forgotten);
            }
            Record::Gone => {
                if let Some(journal) = &mut self.journal {
                    journal.left = None;
                }
            }
            Record::Map { slots } => self.change_map(&slots),
            Record::Closed { to, cut } => self.replay_closed(to, cut)?,
            Record::Era { era, base } => self.replay_era(era, base)?,
            Record::Standing { standing, known } => self.replay_standing(standing, known)?,
            Record::Scheme(kept) => self.scheme.restore(kept)?,
            Record::Own(record) => {
                if let Some(journal) = &mut self.journal {
                    journal.own.push(record);
                }
            }
        }
        Ok(())
    }

    /// Installs what an entry of the log says. What the callback of installs is told is the index
    /// of that entry, which may have been read some time ago.
    pub(super) fn install_from_log(&mut self, install: LoggedInstall) -> Result<(), Malformed> {
        let LoggedInstall { index, txn, column, key, stamp, value } = install;
        self.refuse_unknown(column)?;
        let at = self.place_of(column, &key);
        let journal = self.journal.as_mut().expect("a shard that reads its log has a journal");
        let present = replace(&mut journal.sealed, index);
        match self.is_below_image() {
            true => self.install_over(txn, at, stamp, value.as_deref()),
            false => self.install(txn, at, stamp, value.as_deref()),
        }
        if let Some(journal) = &mut self.journal {
            journal.sealed = present;
        }
        Ok(())
    }

    /// Whether rows of the image that was read may have what the present entry says.
    fn is_below_image(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.sealed < journal.images.end)
    }

    /// A column group that no table has is in the log of another database.
    fn refuse_unknown(&self, column: ColumnGroup) -> Result<(), Malformed> {
        let known = self.layout.tables.get(column.table.index());
        match known.is_some_and(|spec| usize::from(column.group) < spec.groups.len()) {
            true => Ok(()),
            false => Err(Malformed("a row of a table that there is not")),
        }
    }

    /// The place of a record, which is linked if it is not there.
    pub(crate) fn place_of(&mut self, column: ColumnGroup, key: &Key) -> At {
        let found = self.store.find(column, key).row();
        let link = || self.store.link(column.table, key).row().expect("a linked row exists");
        At { row: found.unwrap_or_else(link), column }
    }

    fn restore(&mut self, txn: TxnId, ballot: Ballot) {
        let state = match ballot {
            Ballot::Gone => None,
            Ballot::Refused => Some(State::Refused),
            Ballot::Recorded { stamp, writes, voters, promised, locks } => {
                self.recovered(stamp);
                let journal = self.journal.as_mut().expect("a shard that reads its log has a journal");
                journal.locked.insert(txn, locks);
                let doubt = if promised { Doubt::Promised } else { Doubt::No };
                Some(State::Recorded { stamp, writes, voters, told: Vec::new(), doubt })
            }
            Ballot::Known { stamp, committed, voters, told } => {
                self.recovered(stamp);
                Some(State::Known { stamp, committed, voters, told })
            }
        };
        self.votes.restore(txn, state);
    }

    /// The log was read to its end, which is at `next`. Returns the locks of the transactions that
    /// are in doubt, which their protocol keeps, and the timestamp below which nothing may be
    /// stamped any more. Fails if the log ends before its image does, or if a number of an attempt
    /// of this life may have been used before.
    pub(crate) fn recover(&mut self, next: u64) -> Result<(Vec<(TxnId, Locks)>, Timestamp), String> {
        let attempt = self.next_attempt();
        let journal = self.journal.as_mut().expect("a shard that reads its log has a journal");
        let end = journal.images.end;
        if next < end {
            return Err(format!(
                "the log ends at entry {next}, and entries up to {end} were on disk when an image was made: \
                 bring the files back from a backup"
            ));
        }
        (journal.sealed, journal.stable) = (next, next);
        if attempt < journal.reserved {
            return Err(
                "the clock was set back, so that numbers of transactions would be used again: see that \
                        it is right, and start again"
                    .to_owned(),
            );
        }
        let (mut locked, left, largest) = (take(&mut journal.locked), journal.left.take(), journal.largest);
        let ceiling = if planted(Mutant::CeilingForgotten) { Timestamp::ZERO } else { journal.ceiling };
        // Stamps that are only counted are no times, and no marks.
        let least = if S::CLOCKED { ceiling.join(largest) } else { Timestamp::ZERO };
        self.store.bound_all(least);
        if let Some((slots, rows)) = left {
            self.leave_again(slots, rows, least);
        }
        let in_doubt: Vec<TxnId> = self.votes.recorded().collect();
        let relocked = in_doubt.into_iter().map(|txn| {
            let keys = locked.remove(&txn).unwrap_or_default();
            (txn, self.relock(txn, keys))
        });
        let relocked = relocked.collect();
        self.votes.restored();
        Ok((relocked, least))
    }

    fn relock(&mut self, txn: TxnId, LockedKeys { age, exclusive, shared, ranges }: LockedKeys) -> Locks {
        let (holder, mut locks) = (Holder { age, txn }, Locks::default());
        if planted(Mutant::LocksNotRestored) {
            return locks;
        }
        for (column, key, lb) in exclusive {
            let at = self.place_of(column, &key);
            let lock = self.store.lock_mut(at);
            lock.owner = Some(holder);
            lock.lb = lb.unwrap_or(Timestamp::MAX);
            locks.exclusive.push(at);
        }
        for (column, key) in shared {
            let at = self.place_of(column, &key);
            let lock = self.store.lock_mut(at);
            if !lock.owned_by(txn) {
                lock.sharers.push(holder);
            }
            locks.shared.push(at);
        }
        for range in ranges {
            self.share_range(holder, range, &mut locks);
        }
        locks
    }

    /// From now on requests are served.
    pub(crate) fn open(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        journal.recovering = false;
        journal.failed = None;
        if let Some(on_replay) = &mut self.on_replay {
            on_replay(None);
        }
        self.released.extend(journal.waiting.drain(..).map(|(_, ticket)| ticket));
        self.scheme.restored();
        self.receive_early();
        self.send_parcels();
    }

    /// What has come of the timestamp scheme before the shard served.
    pub(super) fn receive_early(&mut self) {
        for (from, mut message) in take(&mut self.early) {
            self.receive_scheme(from, &mut message);
        }
    }

    /// A message of the timestamp scheme has come. It waits until the shard serves.
    pub(super) fn receive_scheme(&mut self, from: ShardId, message: &mut S::Message) {
        if !self.serves_transactions() {
            return self.early.push((from, message.clone()));
        }
        match S::inquiry(message) {
            Some(inquiry) => {
                let left = self.votes.undecided(inquiry);
                self.scheme.answer(from, message, left);
            }
            None => self.scheme.receive(from, message, &mut self.released),
        }
    }

    /// The log has a transaction with this stamp.
    pub(crate) fn recovered(&mut self, stamp: Timestamp) {
        if let Some(journal) = &mut self.journal {
            journal.largest.raise(stamp);
        }
    }
}
