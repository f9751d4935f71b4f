//! Rows that a client loads into a running cluster, before anything else uses their tables.
//!
//! A benchmark's rows, or those of an immutable table, come in batches
//! ([`Common::Load`](crate::messages::Common::Load)). A shard takes a batch in one step, all of it
//! or nothing, and puts each row into its store with stamp
//! [`Timestamp::ZERO`](plimsoll_types::Timestamp::ZERO), as a database in one process loads its own
//! rows. So every snapshot sees the rows, also one that was taken before: a transaction that has
//! found a row absent is not told.
//!
//! Left out: order, and isolation from transactions. Of what two clients load at the same time each
//! row is loaded once, and no more is promised.

use plimsoll_store::{VALUE_MAX, written_bytes};
use plimsoll_types::{KEY_MAX, Key, ShardId, TableId};

use crate::base::Base;
use crate::messages::{LoadOutcome, Rows};
use crate::timestamp::Scheme;

impl<S: Scheme> Base<S> {
    /// Loads a batch of rows, or nothing.
    pub(crate) fn load_rows(&mut self, from: ShardId, table: TableId, rows: &Rows) -> LoadOutcome {
        let Some(spec) = self.layout.tables.get(table.index()) else { return LoadOutcome::Impossible };
        let groups = spec.groups.len();
        let fits = |(key, values): &(Key, Vec<Vec<u8>>)| {
            let short = values.iter().all(|value| value.len() <= VALUE_MAX);
            key.len() <= KEY_MAX && values.len() == groups && short
        };
        if !rows.iter().all(fits) {
            return LoadOutcome::Impossible;
        }
        if !rows.iter().all(|(key, _)| self.keeps(table, key)) {
            self.tell_map(from);
            return LoadOutcome::Elsewhere;
        }
        let mut keys: Vec<&Key> = rows.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        let twice = !keys.is_sorted_by(|one, next| one < next);
        // A key that was deleted and unlinked is vacant as well, and its log is not.
        let written = self.journal.is_some() && self.store.was_written(table);
        if twice || written || !keys.into_iter().all(|key| self.store.is_vacant(table, key)) {
            return LoadOutcome::Exists;
        }
        let values = rows.iter().flat_map(|(_, values)| values);
        if self.admit(values.map(|value| written_bytes(value.len())).sum()).is_err() {
            return LoadOutcome::Full;
        }
        for (key, values) in rows {
            let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            self.load_row(table, key, &values);
        }
        LoadOutcome::Loaded
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_runtime::LowWater;
    use plimsoll_types::{Abort, IndexKind, Partitioning, SLOTS, Slot, TableSpec, Timestamp, TxnId};

    use super::*;
    use crate::base::Layout;
    use crate::testing::scheme_config;
    use crate::timestamps::Dst;

    const GROUPED: TableId = TableId(0);
    const COPIED: TableId = TableId(1);

    /// The first of two shards.
    fn base() -> Base<Dst> {
        let grouped = TableSpec::new("grouped", IndexKind::Hash, Partitioning::Modulo { bytes: 8 });
        let copied = TableSpec::new("copied", IndexKind::Ordered, Partitioning::Everywhere).immutable();
        let layout = Layout::in_one_process([grouped.with_groups(&["a", "b"]), copied], 2);
        Base::new(&layout, &scheme_config(0, 2), LowWater::new(2, 1))
    }

    fn row(number: u64) -> (Key, Vec<Vec<u8>>) {
        (Key::of_u64(number), vec![vec![1], vec![2; 40]])
    }

    /// Loads rows, and tells how many rows the table has then.
    fn load(base: &mut Base<Dst>, table: TableId, rows: &Rows) -> (LoadOutcome, usize) {
        let outcome = base.load_rows(ShardId(1), table, rows);
        (outcome, base.store.memory(GROUPED).rows + base.store.memory(COPIED).rows)
    }

    #[test]
    fn a_batch_is_loaded_once_and_as_a_whole() {
        let mut base = base();
        assert_eq!(load(&mut base, GROUPED, &vec![row(0), row(2)]), (LoadOutcome::Loaded, 2));
        assert_eq!(load(&mut base, GROUPED, &vec![row(4), row(2)]), (LoadOutcome::Exists, 2));
        assert_eq!(
            load(&mut base, GROUPED, &vec![row(4), row(4)]),
            (LoadOutcome::Exists, 2),
            "twice in a batch"
        );
        assert_eq!(load(&mut base, GROUPED, &vec![row(4), row(3)]), (LoadOutcome::Elsewhere, 2));
        assert_eq!(load(&mut base, COPIED, &vec![(Key::of_u64(3), vec![vec![7]])]), (LoadOutcome::Loaded, 3));
        assert_eq!(load(&mut base, COPIED, &Rows::new()), (LoadOutcome::Loaded, 3));
    }

    #[test]
    fn rows_that_fit_no_table_are_refused() {
        let mut base = base();
        let long = (Key::new(&[0; KEY_MAX + 1]), vec![Vec::new(), Vec::new()]);
        for (table, bad) in [
            (TableId(2), row(0)),
            (TableId(u16::MAX), row(0)),
            (COPIED, row(0)),
            (GROUPED, (Key::of_u64(0), Vec::new())),
            (GROUPED, long),
        ] {
            assert_eq!(load(&mut base, table, &vec![bad]), (LoadOutcome::Impossible, 0), "{table:?}");
        }
    }

    #[test]
    fn rows_of_a_slot_that_has_left_are_refused() {
        let mut base = base();
        base.learn_map(&[(Slot(1), ShardId(0), 1)]);
        assert_eq!(
            load(&mut base, GROUPED, &vec![row(1)]).0,
            LoadOutcome::Elsewhere,
            "only its owner gives it away"
        );
        let key = (0..SLOTS as u64).find(|&number| base.keeps(GROUPED, &Key::of_u64(number)));
        assert_eq!(key, Some(0));
    }

    #[test]
    fn a_row_that_was_only_locked_is_loaded_and_one_that_is_locked_is_not() {
        let mut base = base();
        let linked = base.store.link(GROUPED, &Key::of_u64(0)).row().expect("it is linked");
        let at = plimsoll_store::At { row: linked, column: GROUPED.group(1) };
        let holder = plimsoll_store::Holder { age: 1, txn: TxnId { coordinator: ShardId(1), number: 1 } };
        base.store.lock_mut(at).owner = Some(holder);
        assert_eq!(load(&mut base, GROUPED, &vec![row(0)]).0, LoadOutcome::Exists);
        base.store.lock_mut(at).owner = None;
        base.store.tidy_lock(at);
        assert_eq!(load(&mut base, GROUPED, &vec![row(0)]).0, LoadOutcome::Loaded);
        base.store.collect(|_| true, |_, _| true);
        assert_eq!(base.store.newest(at), Some(&[2; 40][..]), "what was garbage is used again");
        assert_eq!(base.store.record(at).stamp(), Timestamp::ZERO);
    }

    #[test]
    fn a_coordinator_elsewhere_may_lock_a_row_of_an_immutable_table_but_not_write_it() {
        let mut base = base();
        let txn = TxnId { coordinator: ShardId(1), number: 1 };
        let key = Key::of_u64(0);
        assert_eq!(base.may_lock(txn, COPIED.row(), &key), Ok(()));
        assert_eq!(base.may_write(txn, COPIED.row(), &key), Err(Abort::Refused));
        assert_eq!(base.may_write(txn, GROUPED.row(), &key), Ok(()));
    }
}
