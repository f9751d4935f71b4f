//! How a participant reads a batch: at a snapshot, or the newest committed versions.

use std::ops::ControlFlow;

use plimsoll_store::{At, Cover, Mark, Place, SnapshotTooOld, Visited};
use plimsoll_types::{ColumnGroup, TableId, Timestamp, TxnId};

use plimsoll_types::mutants::{Mutant, planted};

use crate::base::Base;
use crate::fetched::{BatchFailure, Fetched, Got, ReadRef, ScanResult};
use crate::procedure::{Reads, Scan};
use crate::timestamp::Scheme;

impl<S: Scheme> Base<S> {
    /// Whether the store has dropped rows that a snapshot of this transaction may see. Then a missing
    /// row is not proved absent, nor is a row that was linked again later, and a scanned range may
    /// lack rows. Rows that were dropped while the coordinator's process was connected were dropped with
    /// regard to what it holds.
    #[inline]
    pub(crate) fn may_have_forgotten(&self, txn: TxnId, snapshot: &S::Snapshot) -> bool {
        S::place(snapshot).is_some_and(|at| {
            at < self.store.floor() && {
                let process = self.layout.processes.get(txn.coordinator.index());
                let absence = process.and_then(|&process| self.absences.get(usize::from(process)));
                absence.is_none_or(|absence| at < absence.forgotten)
            }
        })
    }

    /// Raises the mark of a record that is about to be read at `mark`. Done before the reader looks
    /// at the lock, and whether or not the reader will wait: the owner may abort, and the next
    /// writer must find the mark (`docs/protocols/dst.md`, C4 and C5).
    #[inline]
    pub(crate) fn raise_for_read(&mut self, at: At, cover: Cover, mark: Timestamp) {
        let locked = || self.store.lock(at).is_some_and(|lock| lock.owner.is_some());
        if planted(Mutant::NoRaise) || planted(Mutant::SkipWithoutRaise) && locked() {
            return;
        }
        if planted(Mutant::LateRaise) {
            return self.unpinned.push((ReadRef::Row { at, head: None }, mark));
        }
        if size_of::<S::Mark>() > 0
            && self.store.bound(Some(self.store.record(at)), at.column.table, cover) < mark
        {
            self.store.record_mut(at).mark.raise(mark);
            self.counters.mark_raises += 1;
        }
    }

    /// The same for an absent key.
    #[inline]
    pub(crate) fn raise_cover_for_read(&mut self, table: TableId, cover: Cover, mark: Timestamp) {
        if size_of::<S::Mark>() > 0 && self.store.bound(None, table, cover) < mark {
            self.store.cover_mark_mut(table, cover).raise(mark);
            self.counters.mark_raises += 1;
        }
    }

    /// Whether a snapshot at `mark` must wait for the owner of a record, which may commit at or
    /// below `mark`. The only reason not to wait is that the owner's lower bound is above `mark`.
    #[inline]
    pub(crate) fn must_wait(&self, at: At, mark: Timestamp) -> bool {
        S::WAITS
            && !planted(Mutant::NoWait)
            && !(planted(Mutant::GatedWait) && self.store.record(at).mark.get() > mark)
            && self.store.record(at).is_locked()
            && self.store.lock(at).is_some_and(|lock| lock.owner.is_some() && lock.lb <= mark)
    }

    /// Reads a batch at a snapshot, or (`None`) the newest committed versions. At a snapshot it
    /// raises the marks of all records, even if it must wait for an owner: a transaction that locks
    /// later can then not make it wait again. All of it is one step, so that each record is looked
    /// up once, and read as soon as its mark is raised.
    pub(crate) fn fetch(
        &mut self,
        txn: TxnId,
        at: Option<&S::Snapshot>,
        reads: &Reads,
    ) -> Result<Fetched<S>, BatchFailure> {
        let mark = at.filter(|_| S::WAITS).map(S::read_mark);
        let before = mark.map_or_else(Vec::new, |_| self.watched_reads(reads));
        let mut fetched = Fetched::default();
        let mut wait_for = None;
        for same in reads.gets.chunk_by(|(one, ..), (other, ..)| one == other) {
            self.store.expect(same[0].0, same.iter().map(|(_, key, _)| key));
        }
        for (column, key, _) in &reads.gets {
            if !fetched.gets.is_empty() && has_enough(reads, &fetched) {
                break;
            }
            let place = self.store.find(*column, key);
            if let Some(mark) = mark.filter(|_| !self.immutable(column.table)) {
                wait_for = self.raise_place(*column, place, mark).or(wait_for);
            }
            if wait_for.is_none() {
                let got = self.fetch_place(txn, at, *column, place, &mut fetched)?;
                fetched.gets.push(got);
            }
        }
        for (scan, _) in &reads.scans {
            match self.fetch_range(txn, at, mark, (reads, scan), &mut fetched) {
                Ok(scanned) => fetched.scans.push(scanned),
                Err(BatchFailure::Wait(at)) => wait_for = Some(at),
                Err(BatchFailure::TooOld) => return Err(BatchFailure::TooOld),
            }
        }
        self.step_raised(txn, before);
        if let Some(at) = wait_for {
            return Err(BatchFailure::Wait(at));
        }
        self.step_fetched(txn, reads, &fetched);
        Ok(fetched)
    }

    /// Raises the mark of one record, or of what covers an absent key. Returns the record if the
    /// reader must wait for its owner.
    fn raise_place(&mut self, column: ColumnGroup, place: Place, mark: Timestamp) -> Option<At> {
        let Some(row) = place.row() else {
            self.raise_cover_for_read(column.table, place.cover(), mark);
            return None;
        };
        let at = At { row, column };
        self.raise_for_read(at, place.cover(), mark);
        self.must_wait(at, mark).then_some(at)
    }

    fn fetch_place(
        &self,
        txn: TxnId,
        snapshot: Option<&S::Snapshot>,
        column: ColumnGroup,
        place: Place,
        fetched: &mut Fetched<S>,
    ) -> Result<Got, SnapshotTooOld> {
        let immutable = self.immutable(column.table);
        let Some(row) = place.row() else {
            if snapshot.is_some_and(|snapshot| self.may_have_forgotten(txn, snapshot)) {
                return Err(SnapshotTooOld);
            }
            S::observe(&mut fetched.observed, self.absence());
            let version = self.store.cover_version(column.table, place.cover());
            let read = match immutable {
                true => ReadRef::Immutable,
                false => ReadRef::Cover { table: column.table, cover: place.cover(), version },
            };
            return Ok(Got { value: None, version: None, read });
        };
        let at = At { row, column };
        let found = match snapshot {
            Some(snapshot) => match self.store.visible(at, |stamp| S::sees(snapshot, stamp))? {
                None if self.may_have_forgotten(txn, snapshot) => return Err(SnapshotTooOld),
                found => found,
            },
            None => self.store.newest(at).map(|value| (self.store.record(at).stamp(), value)),
        };
        let head = self.head(at);
        let read = match (immutable, head) {
            (true, _) => ReadRef::Immutable,
            (false, None) if !self.store.record(at).is_locked() => {
                // The row was left by an insert that aborted. It may be collected, and its key
                // linked again.
                let version = self.store.cover_version(column.table, place.cover());
                fetched.also.push(ReadRef::Cover { table: column.table, cover: place.cover(), version });
                ReadRef::Row { at, head }
            }
            // The reader's own insert is in progress: its lock keeps other writers out.
            (false, None) if self.store.lock(at).is_some_and(|lock| lock.owned_by(txn)) => {
                ReadRef::Row { at, head }
            }
            (false, _) => read_ref::<S>(snapshot, at, head),
        };
        match head {
            Some(head) => S::observe(&mut fetched.observed, head),
            None => S::observe(&mut fetched.observed, self.absence()),
        }
        let version = found.map(|(stamp, _)| stamp);
        let value = found.map(|(_, value)| fetched.store(value));
        Ok(Got { value, version, read })
    }

    /// Reads a range. With `mark` it first raises the marks of the leaves that cover the range, in
    /// place of the marks of the records. If it must wait for the owner of a record, it reads the
    /// rest of the range after the wait.
    fn fetch_range(
        &mut self,
        txn: TxnId,
        snapshot: Option<&S::Snapshot>,
        mark: Option<Timestamp>,
        (reads, scan): (&Reads, &Scan),
        fetched: &mut Fetched<S>,
    ) -> Result<ScanResult, BatchFailure> {
        if snapshot.is_some_and(|snapshot| self.may_have_forgotten(txn, snapshot)) {
            return Err(BatchFailure::TooOld);
        }
        let ColumnGroup { table, group } = scan.column;
        let immutable = self.immutable(table);
        let mark = mark.filter(|_| !immutable);
        let mut scanned = ScanResult::default();
        let mut unread = None;
        let mut raised = 0;
        S::observe(&mut fetched.observed, self.absence());
        self.store.scan_in(scan.order, table, &scan.low, scan.high.as_ref(), |rows, visited| {
            scanned.more =
                scanned.rows.len() >= scan.limit || !scanned.rows.is_empty() && has_enough(reads, fetched);
            if scanned.more {
                return ControlFlow::Break(());
            }
            match visited {
                Visited::Leaf(..) if immutable => {}
                Visited::Leaf(leaf, leaf_mark, version) => {
                    if let Some(mark) = mark {
                        raised += u64::from(size_of::<S::Mark>() > 0 && leaf_mark.get() < mark);
                        if !planted(Mutant::LeafNotMarked) && !planted(Mutant::NoRaise) {
                            leaf_mark.raise(mark);
                        }
                    }
                    scanned.reads.push(ReadRef::Cover { table, cover: leaf, version });
                }
                Visited::Row(row) => {
                    let in_the_way = |mark| {
                        let lock = rows.lock(row, group);
                        lock.is_some_and(|lock| lock.owner.is_some() && lock.lb <= mark)
                    };
                    if mark.is_some_and(in_the_way) && !planted(Mutant::NoWait) {
                        unread = Some(BatchFailure::Wait(At { row, column: scan.column }));
                        return ControlFlow::Break(());
                    }
                    let record = rows.record(row, group);
                    let head = (!record.is_empty()).then(|| record.stamp());
                    let locked = record.is_locked();
                    let at = At { row, column: scan.column };
                    let read = match (immutable, head) {
                        (true, _) => ReadRef::Immutable,
                        // The leaf's version, which is validated as well, shows if the key is
                        // linked again.
                        (false, None) if !locked => ReadRef::Row { at, head },
                        (false, None) if rows.lock(row, group).is_some_and(|lock| lock.owned_by(txn)) => {
                            ReadRef::Row { at, head }
                        }
                        (false, _) => read_ref::<S>(snapshot, at, head),
                    };
                    let found = match snapshot {
                        Some(snapshot) => match rows.visible(row, group, |stamp| S::sees(snapshot, stamp)) {
                            Ok(found) => found,
                            Err(_) => {
                                unread = Some(BatchFailure::TooOld);
                                return ControlFlow::Break(());
                            }
                        },
                        None => rows.newest(row, group).zip(head).map(|(value, head)| (head, value)),
                    };
                    if let Some(head) = head {
                        S::observe(&mut fetched.observed, head);
                    }
                    match found {
                        Some((stamp, value)) => {
                            let value = Some(fetched.store(value));
                            scanned.rows.push((rows.key(row), Got { value, version: Some(stamp), read }));
                        }
                        None => scanned.reads.push(read),
                    }
                }
            }
            ControlFlow::Continue(())
        });
        // 2PL has locked the range up to the last row within the limit, even if no row follows.
        scanned.more |= scanned.rows.len() >= scan.limit;
        self.counters.mark_raises += raised;
        unread.map_or(Ok(scanned), Err)
    }
}

/// Whether the answer has reached the size that is wanted at once.
fn has_enough<S: Scheme>(reads: &Reads, fetched: &Fetched<S>) -> bool {
    reads.most.is_some_and(|most| fetched.bytes.len() >= most as usize)
}

/// What a read of this record must be validated against. It is valid only if the version read was
/// the newest, and still is.
fn read_ref<S: Scheme>(snapshot: Option<&S::Snapshot>, at: At, head: Option<Timestamp>) -> ReadRef {
    match head {
        // An insert is in progress, or was aborted.
        None => ReadRef::Stale,
        Some(stamp) if snapshot.is_some_and(|snapshot| !S::sees(snapshot, stamp)) => ReadRef::Stale,
        Some(_) => ReadRef::Row { at, head },
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_runtime::LowWater;
    use plimsoll_types::{Abort, IndexKind, Key, Order, Partitioning, ShardId, TableSpec};

    use super::*;
    use crate::base::Layout;
    use crate::testing::scheme_config;
    use crate::timestamps::Dst;

    #[test]
    fn a_snapshot_of_what_was_forgotten_is_too_old_however_it_is_read() {
        let spec =
            TableSpec::new("t", IndexKind::Ordered, Partitioning::Hash { bytes: 0 }).with_groups(&["row"]);
        // The coordinator is another process, which is absent at first.
        let layout = Layout { processes: [0, 1].into(), ..Layout::in_one_process([spec], 1) };
        let low_water = LowWater::among(0..1, 1, &[1]);
        low_water.absent(1);
        let mut base = Base::<Dst>::new(&layout, &scheme_config(0, 1), low_water);
        let (column, key) = (TableId(0).group(0), Key::of_u64(7));
        let txn = TxnId { coordinator: ShardId(1), number: 1 };
        let put = |base: &mut Base<Dst>, stamp, value| {
            let row = base
                .store
                .find(TableId(0).row(), &key)
                .row()
                .or_else(|| base.store.link(TableId(0), &key).row());
            base.install(txn, At { row: row.expect("it is linked"), column }, Timestamp(stamp), value);
        };
        let (mut get, mut scan) = (Reads::default(), Reads::default());
        get.get(column, key.clone());
        scan.scan(Scan::prefix(column, Key::MIN).limit(9));
        let read = |base: &mut Base<Dst>, at| {
            [&get, &scan].map(|reads| match base.fetch(txn, Some(&Timestamp(at)), reads) {
                Ok(fetched) => Some(
                    fetched.gets.iter().filter(|got| got.value.is_some()).count()
                        + fetched.scans.iter().map(|scanned| scanned.rows.len()).sum::<usize>(),
                ),
                Err(_) => None,
            })
        };
        put(&mut base, 50, Some(b"x"));
        put(&mut base, 150, None);
        assert_eq!((read(&mut base, 100), read(&mut base, 150)), ([Some(1); 2], [Some(0); 2]));
        base.store.collect(|_| true, |_, _| true);
        let forgotten = base.forgotten();
        base.connected(txn.coordinator, Some(1));
        assert_eq!(base.forgotten(), forgotten, "slots that leave meanwhile take it along");
        assert_eq!(
            (read(&mut base, 100), read(&mut base, 150)),
            ([None; 2], [Some(0); 2]),
            "its row is gone"
        );
        put(&mut base, 200, Some(b"y"));
        assert_eq!(
            (read(&mut base, 100), read(&mut base, 150)),
            ([None; 2], [Some(0); 2]),
            "and there again"
        );
        assert_eq!(read(&mut base, 200), [Some(1); 2]);
    }

    #[test]
    fn rows_are_kept_for_a_process_that_is_back_before_all_shards_have_missed_it() {
        let spec =
            TableSpec::new("t", IndexKind::Ordered, Partitioning::Hash { bytes: 0 }).with_groups(&["row"]);
        let layout = Layout { processes: [0, 0, 1].into(), ..Layout::in_one_process([spec], 2) };
        let low_water = LowWater::among(0..2, 1, &[1]);
        let base = |shard| Base::<Dst>::new(&layout, &scheme_config(shard, 2), low_water.clone());
        let (mut first, mut second, client) = (base(0), base(1), ShardId(2));
        first.connected(client, Some(5));
        second.connected(client, Some(5));
        let says = |base: &mut Base<Dst>| {
            base.watermark.as_ref().expect("shards have one").heard(1, 5, &[1_000_000], &[]);
        };
        says(&mut first);
        let (column, key) = (TableId(0).group(0), Key::of_u64(7));
        let row = second.store.link(TableId(0), &key).row().expect("it is linked");
        let txn = TxnId { coordinator: client, number: 6 };
        for (stamp, value) in [(50, Some(&b"x"[..])), (150, None)] {
            second.install(txn, At { row, column }, Timestamp(stamp), value);
        }
        // It begins again, with a clock that is behind. One shard hears of it before the other.
        second.connected(client, None);
        second.connected(client, Some(6));
        says(&mut first);
        for later in 1..4 {
            second.pass(Timestamp(300 + later * 1_000_000));
        }
        let mut get = Reads::default();
        get.get(column, key);
        let fetched = second.fetch(txn, Some(&Timestamp(100)), &get).expect("it is not too old");
        assert!(fetched.gets[0].value.is_some(), "the row was there at 100");
    }

    #[test]
    fn a_held_snapshot_is_not_too_old_for_rows_that_came_and_went_after_it() {
        let spec =
            TableSpec::new("t", IndexKind::Ordered, Partitioning::Hash { bytes: 0 }).with_groups(&["row"]);
        let layout = Layout::in_one_process([spec], 1);
        let mut base = Base::<Dst>::new(&layout, &scheme_config(0, 1), LowWater::new(1, 1));
        let (column, key) = (TableId(0).group(0), Key::of_u64(7));
        let txn = TxnId { coordinator: ShardId(0), number: 1 };
        base.pass(Timestamp(100));
        let held = base.hold(Timestamp(100));
        for number in 0..20 {
            let row = base.store.find(TableId(0).row(), &key).row();
            let row = row.or_else(|| base.store.link(TableId(0), &key).row()).expect("it is linked");
            let value = (number % 2 == 0).then_some(&b"x"[..]);
            base.install(txn, At { row, column }, Timestamp(200 + number), value);
        }
        base.pass(Timestamp(300));
        assert_eq!(base.store.memory(TableId(0)).rows, 1, "a snapshot may be over soon");
        for later in 1..3 {
            base.pass(Timestamp(300 + later * 1_000_000));
        }
        assert_eq!(base.store.memory(TableId(0)).rows, 0);
        let (mut get, mut scan) = (Reads::default(), Reads::default());
        get.get(column, key.clone());
        scan.scan(Scan { column, low: Key::of_u64(0), high: None, limit: 9, order: Order::Ascending });
        assert!(base.store.floor() > Timestamp(100));
        for reads in [get, scan] {
            let fetched = base.fetch(txn, Some(&Timestamp(100)), &reads).expect("it is not too old");
            assert!(fetched.gets.iter().all(|got| got.value.is_none()));
            assert!(fetched.scans.iter().all(|scanned| scanned.rows.is_empty()));
        }
        base.release(held);
    }

    #[test]
    fn an_answer_ends_when_there_is_enough_of_it_and_says_that_there_may_be_more() {
        let spec =
            TableSpec::new("t", IndexKind::Ordered, Partitioning::Hash { bytes: 0 }).with_groups(&["row"]);
        let layout = Layout::in_one_process([spec], 1);
        let mut base = Base::<Dst>::new(&layout, &scheme_config(0, 1), LowWater::new(1, 1));
        let column = TableId(0).group(0);
        let txn = TxnId { coordinator: ShardId(0), number: 1 };
        for number in 0..4 {
            let row = base.store.link(TableId(0), &Key::of_u64(number)).row();
            base.install(txn, At { row: row.expect("it is linked"), column }, Timestamp(50), Some(&[7; 10]));
        }
        let mut scanned = |limit, most| {
            let mut reads = Reads { most, ..Reads::default() };
            reads.scan(Scan::prefix(column, Key::MIN).limit(limit));
            let fetched = base.fetch(txn, None, &reads).expect("nobody is in the way");
            (fetched.scans[0].rows.len(), fetched.scans[0].more)
        };
        assert_eq!(scanned(9, None), (4, false));
        assert_eq!(scanned(3, None), (3, true));
        assert_eq!(scanned(4, None), (4, true), "2PL locks no further than the last row within the limit");
        assert_eq!(
            [1, 10, 11, 20, 40, 41].map(|most| scanned(9, Some(most))),
            [(1, true), (1, true), (2, true), (2, true), (4, false), (4, false)]
        );
        let mut gets = Reads { most: Some(11), ..Reads::default() };
        (0..4).for_each(|number| gets.get(column, Key::of_u64(number)));
        assert_eq!(base.fetch(txn, None, &gets).expect("nobody is in the way").gets.len(), 2);
    }

    #[test]
    fn a_peer_that_names_a_column_that_is_not_there_reads_and_locks_nothing() {
        let spec =
            TableSpec::new("t", IndexKind::Hash, Partitioning::Hash { bytes: 0 }).with_groups(&["row"]);
        let layout = Layout::in_one_process([spec], 1);
        let mut base = Base::<Dst>::new(&layout, &scheme_config(0, 1), LowWater::new(1, 1));
        let txn = TxnId { coordinator: ShardId(0), number: 1 };
        let key = Key::of_u64(7);
        for (column, there) in
            [(TableId(0).group(0), true), (TableId(0).group(1), false), (TableId(1).group(0), false)]
        {
            let (mut get, mut scan) = (Reads::default(), Reads::default());
            get.get(column, key.clone());
            scan.scan(Scan::prefix(column, key.clone()).limit(9));
            scan.owned = layout.placement.fingerprint(ShardId(0));
            assert_eq!(base.serves(txn, &get), there);
            assert_eq!(base.serves(txn, &scan), there);
            assert_eq!(base.may_lock(txn, column, &key), if there { Ok(()) } else { Err(Abort::StaleTerm) });
        }
    }
}
