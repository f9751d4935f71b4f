//! Versions that no snapshot sees any more, and rows that nobody finds any more.
//!
//! Whatever an install hides, and every tombstone, enters a queue with the stamp that hides it; the
//! queue's front is worked off as far as every snapshot that may still begin has come. Worked
//! example: `x` has versions @5 and @9, an entry waits with stamp @9. Once no snapshot below @9 can
//! begin, @5 is freed unless a snapshot that is held sees it. If @9 is a tombstone the row is
//! unlinked as well: floor ⊔= 9, so that whoever later reads "absent" is ordered after the deletion.
//! A record has at most one entry in the queue, however often it is written meanwhile.
//!
//! **Snapshots that are held** ([`Held`]) keep what they see, and nothing between two of them or
//! above the last. Worked example: @6 is held while `x` is written at @9, @10, ..., @99. The chain
//! of `x` is then @99, *gone* @9, @5. The node @9 stands for all that was dropped. A snapshot at @50,
//! which cannot exist unless some clock is wrong, sees that node and is told that it is too old. A
//! version that is kept has an entry in the list of the oldest group that sees it. When the group is
//! over, the entries are looked at again: another group may see the version, too.
//!
//! Cost: a version is visited once or twice before it is dropped or kept, since whatever is below a
//! kept version was looked at before; and once for each group that ends while it is kept.

use std::collections::VecDeque;
use std::hint::black_box;
use std::mem;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Held, Timestamp};

use crate::store::EXPECTED;
use crate::{At, Mark, Store};

/// Garbage entries worked off at a time at most, so that a pass stays short.
const COLLECT_MAX: usize = 2048;

#[derive(Clone, Copy, Debug)]
struct Hidden {
    /// Everything older than this stamp is hidden by it.
    stamp: Timestamp,
    at: At,
}

/// A version of a record.
type Entry = (At, Timestamp);

/// What a group of held snapshots keeps.
#[derive(Debug)]
pub(crate) struct Kept {
    held: Held,
    versions: Vec<Entry>,
    bytes: usize,
}

/// What snapshots keep on a shard, by the oldest group of snapshots that sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptMemory {
    /// How many versions.
    pub versions: usize,
    /// Bytes of these versions.
    pub bytes: usize,
}

/// What waits to be dropped.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    hidden: VecDeque<Hidden>,
    /// Whether more of it might have been dropped than was, the last time.
    has_more: bool,
    /// The groups of snapshots that are held, the oldest first.
    kept: Vec<Kept>,
    /// Of groups that are over: versions to be looked at again.
    again: Vec<Vec<Entry>>,
}

impl Garbage {
    pub fn push(&mut self, stamp: Timestamp, at: At) {
        self.hidden.push_back(Hidden { stamp, at });
    }
}

impl<M: Mark> Store<M> {
    /// From now on these snapshots are held, the oldest first, and those of the last call only if
    /// they are among them. A snapshot may appear here only if it could still begin, as far as
    /// [`Store::collect`] was told, until now.
    pub fn hold(&mut self, held: &[Held]) {
        let held = if planted(Mutant::NewerHeldForgotten) { &held[..held.len().min(1)] } else { held };
        let kept = |held: &Held| Kept { held: held.clone(), versions: Vec::new(), bytes: 0 };
        let former = mem::replace(&mut self.garbage.kept, held.iter().map(kept).collect());
        for mut former in former {
            match self.garbage.kept.iter_mut().find(|kept| kept.held.contains(&former.held)) {
                Some(kept) => {
                    if kept.versions.len() < former.versions.len() {
                        mem::swap(&mut kept.versions, &mut former.versions);
                    }
                    kept.versions.append(&mut former.versions);
                    kept.bytes += former.bytes;
                }
                None if former.versions.is_empty() => {}
                None => self.garbage.again.push(former.versions),
            }
        }
    }

    /// Works off garbage. `passed(stamp)` says that every snapshot that may still begin sees the
    /// version of that stamp, `sees` whether a snapshot that is held does.
    pub fn collect(&mut self, passed: impl Fn(Timestamp) -> bool, sees: impl Fn(&[u64], Timestamp) -> bool) {
        self.look_again(&passed, &sees);
        self.garbage.has_more = false;
        for _ in 0..COLLECT_MAX / EXPECTED {
            let hidden = self.garbage.hidden.iter().take(EXPECTED);
            let ready = hidden.take_while(|hidden| passed(hidden.stamp)).count();
            if ready == 0 {
                return;
            }
            // As in `expect`: what is worked off late has left the caches.
            let older = self.garbage.hidden.iter().take(ready).map(|hidden| self.record(hidden.at).older);
            let nodes =
                older.filter(|&older| older != 0).map(|older| &self.versions.nodes[older as usize - 1]);
            black_box(nodes.fold(0, |touched, node| touched ^ node.meta));
            for _ in 0..ready {
                let hidden = self.garbage.hidden.pop_front().expect("so many were counted");
                if self.record(hidden.at).is_unlinked() {
                    continue; // When another group of the row was worked off.
                }
                self.record_mut(hidden.at).set_queued(false);
                self.trim(hidden.at, &passed, &sees, None);
            }
        }
        self.garbage.has_more = true;
    }

    fn look_again(&mut self, passed: &impl Fn(Timestamp) -> bool, sees: &impl Fn(&[u64], Timestamp) -> bool) {
        for _ in 0..COLLECT_MAX {
            let Some(versions) = self.garbage.again.last_mut() else { return };
            match versions.pop() {
                Some((at, stamp)) => self.trim(at, passed, sees, Some(stamp)),
                None => drop(self.garbage.again.pop()),
            }
        }
    }

    /// How many garbage entries wait.
    pub fn garbage(&self) -> usize {
        self.garbage.hidden.len()
    }

    /// Whether versions can be dropped at once: because a snapshot is over, or because there were
    /// more than were to be dropped in one step.
    pub fn can_collect(&self) -> bool {
        self.garbage.has_more || !self.garbage.again.is_empty()
    }

    /// The groups of snapshots that are held, the oldest first, with what each of them keeps.
    pub fn kept(&self) -> impl Iterator<Item = (&Held, KeptMemory)> {
        let kept = |kept: &Kept| KeptMemory { versions: kept.versions.len(), bytes: kept.bytes };
        self.garbage.kept.iter().map(move |group| (&group.held, kept(group)))
    }

    /// Drops the versions of a record that no snapshot sees, and unlinks its row if nothing is left.
    /// The entry for the version `again` is used up.
    fn trim(
        &mut self,
        at: At,
        passed: &impl Fn(Timestamp) -> bool,
        sees: &impl Fn(&[u64], Timestamp) -> bool,
        again: Option<Timestamp>,
    ) {
        if self.record(at).is_unlinked() {
            return;
        }
        self.drop_unseen(at, passed, sees, again);
        let record = *self.record(at);
        if !passed(record.stamp) && (record.older != 0 || record.is_tombstone()) {
            if !record.is_queued() {
                self.record_mut(at).set_queued(true);
                self.garbage.push(record.stamp, at);
            }
            return;
        }
        // Unlink the row once all its groups are gone for good.
        let table = &mut self.tables[at.column.table.index()];
        let groups = (0..table.groups).map(|group| at.row as usize * table.groups + group);
        let row = groups.map(|group| table.records[group]);
        let bare = |older: u32| match older {
            0 => true,
            older => Some(&self.versions.nodes[older as usize - 1])
                .is_some_and(|node| node.is_gone() && node.older == 0),
        };
        let dead = |record: &crate::Record<M>| {
            let deleted = record.is_tombstone() && passed(record.stamp) && bare(record.older);
            !record.is_locked() && (record.is_empty() || deleted)
        };
        if row.clone().all(|record| dead(&record)) {
            let deleted = row.clone().filter(|record| record.is_tombstone()).map(|record| record.stamp).max();
            for record in row.filter(|record| record.older != 0) {
                table.value_bytes -= self.versions.take(record.older - 1).footprint();
            }
            // From now on absent reads take the tombstone's stamp from the floor.
            table.unlink(at.row);
            self.raise_floor(deleted.unwrap_or_default());
        }
    }

    /// Goes down the chain of a record. Keeps the newest version that every new snapshot sees, all
    /// above it, and below it what a held snapshot sees. Of each run of versions that are dropped
    /// one node stays, unless there is nothing below it.
    fn drop_unseen(
        &mut self,
        at: At,
        passed: &impl Fn(Timestamp) -> bool,
        sees: &impl Fn(&[u64], Timestamp) -> bool,
        again: Option<Timestamp>,
    ) {
        let Store { tables, values, versions, garbage, .. } = self;
        let table = &mut tables[at.column.table.index()];
        let record = *table.record(at);
        let (mut hidden_by, mut all_pass) = (record.stamp, passed(record.stamp));
        // The last node that stays, and the one below it that stands for what was dropped.
        let (mut above, mut gap) = (None, None);
        let mut next = record.older;
        while next != 0 {
            let here = next as usize - 1;
            if again == Some(versions.nodes[here].stamp) {
                versions.nodes[here].set_kept(false);
            }
            let node = versions.nodes[here];
            next = node.older;
            let newer = mem::replace(&mut hidden_by, node.stamp);
            if !all_pass {
                all_pass = passed(node.stamp);
                above = Some(here);
                continue;
            }
            let seen = |kept: &Kept| sees(&kept.held.last, node.stamp) && !sees(&kept.held.first, newer);
            let keeper = if node.is_gone() { None } else { garbage.kept.iter_mut().find(|kept| seen(kept)) };
            if let Some(keeper) = keeper {
                (above, gap) = (Some(here), None);
                if !node.is_kept() {
                    versions.nodes[here].set_kept(true);
                    keeper.versions.push((at, node.stamp));
                    keeper.bytes += node.footprint();
                } else if again.is_none() {
                    return; // What is below was looked at when this was kept.
                }
                continue;
            }
            node.free(values);
            table.value_bytes -= node.footprint();
            match gap {
                // The end of a chain, which says how far it goes back.
                _ if node.is_gone() && node.is_kept() => {
                    table.value_bytes += node.footprint();
                    if let Some(gap) = gap {
                        table.value_bytes -= versions.take(gap as u32).footprint();
                        link(versions, table.record_mut(at), above, here as u32 + 1);
                    }
                    return;
                }
                None => {
                    versions.nodes[here].set_gone();
                    table.value_bytes += versions.nodes[here].footprint();
                    gap = Some(here);
                }
                Some(gap) => {
                    (versions.nodes[gap].stamp, versions.nodes[gap].older) = (node.stamp, node.older);
                    versions.take(here as u32);
                }
            }
        }
        let Some(gap) = gap else { return };
        // Nothing is below. A snapshot from before all versions must still find that there was none.
        let first = versions.nodes[gap];
        let before = |kept: &&mut Kept| !sees(&kept.held.first, first.stamp);
        match garbage.kept.iter_mut().find(before).filter(|_| !record.is_trimmed()) {
            // The row is about to be unlinked.
            Some(_) if above.is_none() && record.is_tombstone() => {}
            Some(kept) => {
                versions.nodes[gap].set_kept(true);
                kept.versions.push((at, first.stamp));
                kept.bytes += first.footprint();
            }
            None => {
                table.value_bytes -= versions.take(gap as u32).footprint();
                link(versions, table.record_mut(at), above, 0);
                table.record_mut(at).set_trimmed();
            }
        }
    }
}

/// Links a node (its position plus one, or 0) below another, or below the record itself.
fn link<M: Mark>(
    versions: &mut crate::store::Versions,
    record: &mut crate::Record<M>,
    above: Option<usize>,
    node: u32,
) {
    match above {
        Some(above) => versions.nodes[above].older = node,
        None => record.older = node,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::ControlFlow;

    use plimsoll_types::{HELD_MAX, IndexKind, Key, Partitioning, ShardId, TableId, TableSpec, grouped};
    use proptest::prelude::*;

    use super::*;
    use crate::store::Visited;

    const T: TableId = TableId(0);
    const KEYS: u64 = 6;

    fn store(index: IndexKind, groups: &[&str]) -> Store<Timestamp> {
        let mut store = Store::new(true);
        store.create_table(TableSpec::new("t", index, Partitioning::Hash { bytes: 0 }).with_groups(groups));
        store
    }

    fn install(store: &mut Store<Timestamp>, key: u64, stamp: u64, value: Option<&[u8]>) {
        let key = Key::of_u64(key);
        let found = store.find(T.row(), &key).row();
        let row = found.or_else(|| store.link(T, &key).row()).expect("a linked row exists");
        for group in 0..store.spec(T).groups.len() as u8 {
            store.install(At { row, column: T.group(group) }, Timestamp(stamp), value);
        }
    }

    fn collect(store: &mut Store<Timestamp>, begins: u64) {
        store.collect(|stamp| stamp.0 <= begins, |held, stamp| stamp.0 <= held[0]);
    }

    fn hold(store: &mut Store<Timestamp>, held: impl IntoIterator<Item = u64>) {
        store.hold(&grouped(
            held.into_iter().map(|at| Held::one(vec![at], Timestamp(at), ShardId(0))).collect(),
        ));
    }

    fn read(
        store: &mut Store<Timestamp>,
        key: u64,
        s: u64,
    ) -> Result<Option<Vec<u8>>, crate::SnapshotTooOld> {
        let Some(row) = store.find(T.row(), &Key::of_u64(key)).row() else { return Ok(None) };
        let found = store.visible(At { row, column: T.row() }, |stamp| stamp.0 <= s)?;
        Ok(found.map(|(_, value)| value.to_vec()))
    }

    fn versions(store: &Store<Timestamp>, key: u64) -> usize {
        let rows = 0..store.tables[0].rows() as crate::RowId;
        let row = rows
            .into_iter()
            .find(|&row| store.tables[0].is_linked(row) && store.key(T, row) == Key::of_u64(key));
        let mut next = row.map_or(0, |row| store.record(At { row, column: T.row() }).older);
        let mut count = 0;
        while next != 0 {
            count += 1;
            next = store.versions.nodes[next as usize - 1].older;
        }
        count
    }

    #[test]
    fn what_is_overwritten_again_and_again_takes_two_versions_under_a_held_snapshot() {
        for index in [IndexKind::Hash, IndexKind::Ordered] {
            let mut store = store(index, &["row"]);
            install(&mut store, 1, 5, Some(&[5; 100]));
            hold(&mut store, [6]);
            let before = store.memory(T).bytes;
            for stamp in 10..100_010 {
                install(&mut store, 1, stamp, Some(&[stamp as u8; 100]));
                collect(&mut store, stamp - 3);
            }
            assert!(versions(&store, 1) < 10);
            collect(&mut store, u64::MAX);
            assert_eq!(versions(&store, 1), 2, "what is seen, and that something was dropped");
            assert!(store.memory(T).bytes - before < 200);
            assert_eq!(read(&mut store, 1, 6), Ok(Some(vec![5; 100])));
            assert_eq!(read(&mut store, 1, 500), Err(crate::SnapshotTooOld));
            hold(&mut store, []);
            collect(&mut store, u64::MAX);
            assert_eq!(store.memory(T).bytes, before);
            assert_eq!(store.kept().count(), 0);
        }
    }

    #[test]
    fn rows_that_came_and_went_under_a_held_snapshot_are_unlinked() {
        for index in [IndexKind::Hash, IndexKind::Ordered] {
            let mut store = store(index, &["a", "b"]);
            install(&mut store, 0, 5, Some(b"old"));
            hold(&mut store, [6]);
            let before = store.memory(T);
            for key in 1..1000 {
                install(&mut store, key, 10 * key, Some(b"new"));
                collect(&mut store, 10 * key);
                install(&mut store, key, 10 * key + 5, None);
                collect(&mut store, 10 * key + 5);
            }
            assert_eq!(store.memory(T).rows, 1);
            install(&mut store, 0, 20_000, None);
            collect(&mut store, u64::MAX);
            assert_eq!((store.memory(T).rows, before.rows), (1, 1), "the snapshot sees it");
            assert_eq!(read(&mut store, 0, 6), Ok(Some(b"old".to_vec())));
            if index == IndexKind::Ordered {
                store.scan(T, &Key::MIN, None, |_, visited| {
                    assert!(matches!(visited, Visited::Leaf(..) | Visited::Row(0)));
                    ControlFlow::Continue(())
                });
            }
            hold(&mut store, []);
            collect(&mut store, u64::MAX);
            assert_eq!(store.memory(T).rows, 0);
            assert!(store.memory(T).bytes <= before.bytes);
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Put(u64, usize),
        Delete(u64),
        Hold,
        /// Releases one of the snapshots.
        Release(usize),
        /// Looks at what is held, and collects up to as many stamps ago.
        Collect(u64),
        /// All rows go to another store and come back.
        Move,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => (0..KEYS, 0..40usize).prop_map(|(key, len)| Op::Put(key, len)),
            2 => (0..KEYS).prop_map(Op::Delete),
            2 => Just(Op::Hold),
            1 => (0..HELD_MAX).prop_map(Op::Release),
            4 => (0..6u64).prop_map(Op::Collect),
            1 => Just(Op::Move),
        ]
    }

    /// What a snapshot finds under a key with such versions.
    fn truth(history: &[(u64, Option<Vec<u8>>)], s: u64) -> Option<Vec<u8>> {
        history.iter().rev().find(|(stamp, _)| *stamp <= s).and_then(|(_, value)| value.clone())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        /// Against a model that forgets nothing.
        #[test]
        fn held_snapshots_find_what_they_saw_and_nothing_else_is_kept(
            ops in prop::collection::vec(op(), 1..200),
            ordered: bool,
        ) {
            let index = if ordered { IndexKind::Ordered } else { IndexKind::Hash };
            let mut store = store(index, &["row"]);
            let mut history: Vec<Vec<(u64, Option<Vec<u8>>)>> = vec![Vec::new(); KEYS as usize];
            let (mut now, mut begins) = (10, 0);
            let mut held: Vec<u64> = Vec::new();
            for op in ops {
                now += 1;
                match op {
                    Op::Put(key, len) => {
                        let value = vec![now as u8; len];
                        install(&mut store, key, now, Some(&value));
                        history[key as usize].push((now, Some(value)));
                    }
                    Op::Delete(key) => {
                        install(&mut store, key, now, None);
                        history[key as usize].push((now, None));
                    }
                    Op::Hold => held.push(now),
                    Op::Release(which) if which < held.len() => drop(held.remove(which)),
                    Op::Release(_) => {}
                    Op::Collect(ago) => {
                        begins = begins.max(now - ago);
                        hold(&mut store, held.iter().copied());
                        collect(&mut store, begins);
                    }
                    Op::Move => {
                        let rows = store.take_out(|_, _| true);
                        let pieces: Vec<_> = rows.iter().flat_map(|row| row.clone().pieces(1)).collect();
                        let (floor, marked) = (store.floor(), store.marked());
                        store.put_in(&pieces, floor, marked);
                    }
                }
                for (key, history) in (0..).zip(&history) {
                    for &s in held.iter().chain([&begins, &now]).filter(|&&s| s >= begins || held.contains(&s)) {
                        prop_assert_eq!(read(&mut store, key, s), Ok(truth(history, s)), "{} at {}", key, s);
                    }
                    // A snapshot that cannot exist is told so, unless a whole row was forgotten.
                    let linked = store.find(T.row(), &Key::of_u64(key)).row().is_some();
                    let floor = store.floor().0;
                    for s in (floor..now).filter(|_| linked) {
                        let found = read(&mut store, key, s);
                        prop_assert!(found.is_err() || found == Ok(truth(history, s)), "{} at {}", key, s);
                    }
                }
            }
            hold(&mut store, held.iter().copied());
            collect(&mut store, now);
            collect(&mut store, now);
            for (key, history) in (0..).zip(&history) {
                let newest = history.last().map(|(stamp, _)| *stamp);
                let seen: BTreeSet<u64> = held
                    .iter()
                    .filter_map(|&s| history.iter().rev().find(|(stamp, _)| *stamp <= s))
                    .map(|(stamp, _)| *stamp)
                    .filter(|&stamp| Some(stamp) != newest)
                    .collect();
                let most = 2 * seen.len() + 1;
                prop_assert!(held.len() > HELD_MAX || versions(&store, key) <= most, "{} of {}", key, most);
            }
            hold(&mut store, []);
            collect(&mut store, now);
            prop_assert_eq!((0..KEYS).map(|key| versions(&store, key)).sum::<usize>(), 0);
            let live = history.iter().filter(|history| truth(history, now).is_some()).count();
            prop_assert_eq!(store.memory(T).rows, live);
        }
    }
}
