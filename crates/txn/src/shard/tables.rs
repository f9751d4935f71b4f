//! Tables that are made while a cluster runs.
//!
//! A table's id is its position among the tables of the cluster, so every shard must have the same
//! tables in the same order. There is no vote on that. One shard, the *first* with data, orders the
//! tables: a client appends a table to that shard's list, and then copies the list to all other
//! shards with data. Both are the same request
//! ([`Common::Tables`](crate::messages::Common::Tables)), which says that there are these tables
//! from a position on:
//!
//! * A shard that has a part of them appends the rest.
//! * A shard that has another table at one of the positions changes nothing, nor does a shard whose
//!   own list ends before the first position, nor one to which a table is named that cannot be.
//! * In all cases the answer is what the shard has then, and how much of that is new. So a client
//!   that asks the first shard learns which of two clients that wanted the same position was
//!   faster, and looks again.
//!
//! No client uses a table before all shards with data have it. If a client ends before that, the
//! table is *half-made*; the next client that sees it in the list of the first shard copies that
//! list as well. A list only grows, and all others are prefixes of the first shard's, so repeating
//! a request does no harm.
//!
//! Example. The first shard and another have tables 0 and 1. Clients A and B both name a table 2 at
//! the first shard. A's request arrives first, so B is shown A's table, copies it to the other
//! shard, though A may do so too, and names its own as table 3.
//!
//! A shard that logs has a table in its log before it answers, also where answers do not wait for
//! the disk otherwise, so neither a crash nor a return to a cut takes a table back. Bounds that a
//! shard has for all its records, such as the ceiling of a log and a cut, hold in a new table as
//! well.
//!
//! Left out: tables that are dropped, or made together with rows; and a majority, so while one node
//! is gone no table is made.

use plimsoll_types::{TABLES_MAX, TableSpec, check_table};

use crate::base::Base;
use crate::messages::TableList;
use crate::timestamp::Scheme;

impl<S: Scheme> Base<S> {
    /// Makes those of these tables that the shard lacks, or none, and says which it has then.
    pub(crate) fn make_tables(&mut self, from: u16, named: &[TableSpec]) -> TableList {
        let from = usize::from(from);
        let mut made = 0;
        if self.may_make(from, named) {
            let had = self.layout.tables.len();
            for spec in named.iter().skip(had - from) {
                self.create_table(spec.clone());
            }
            made = (self.layout.tables.len() - had) as u16;
        }
        let tables = self.layout.tables.get(from..).unwrap_or_default().to_vec();
        TableList { tables, made }
    }

    /// Whether the shard has the first of these tables from a position on, and can make the others.
    fn may_make(&self, from: usize, named: &[TableSpec]) -> bool {
        let Some(known) = self.layout.tables.get(from..) else { return false };
        let agree = known.iter().zip(named).all(|(known, named)| known == named);
        let tables = &self.layout.tables;
        let new = named.get(known.len()..).unwrap_or_default();
        let is_new = |(place, spec): (usize, &TableSpec)| {
            let mut others = tables.iter().chain(&new[..place]);
            others.all(|other| other.name != spec.name)
        };
        self.layout.placement.is_holder(self.shard)
            && agree
            && tables.len() + new.len() <= TABLES_MAX
            && new.iter().all(may_be_made)
            && new.iter().enumerate().all(is_new)
    }
}

/// Whether a table may be made while a cluster runs.
fn may_be_made(spec: &TableSpec) -> bool {
    check_table(spec).is_ok() && !spec.immutable
}

impl TableList {
    /// Whether a shard can have these tables from a position on: another process may name any.
    pub(crate) fn is_possible(&self, from: u16) -> bool {
        let most = TABLES_MAX.saturating_sub(from.into());
        self.tables.len() <= most && self.tables.iter().all(may_be_made)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_runtime::LowWater;
    use plimsoll_types::{DECLARATION_MAX, IndexKind, Key, Partitioning, ShardId, TableId, Timestamp, TxnId};

    use super::*;
    use crate::base::Layout;
    use crate::procedure::Reads;
    use crate::testing::scheme_config;
    use crate::timestamps::Dst;

    fn spec(name: &str) -> TableSpec {
        TableSpec::new(name, IndexKind::Ordered, Partitioning::Hash { bytes: 0 })
    }

    /// One of two shards with data, or the shard of a client, with the table of a cluster's file.
    fn base(shard: u16) -> Base<Dst> {
        let layout = Layout { processes: [0, 0, 1].into(), ..Layout::in_one_process([spec("file")], 2) };
        Base::new(&layout, &scheme_config(shard, 2), LowWater::new(2, 1))
    }

    /// Names tables from position 1 on. Returns the names that the shard has then, and how many of
    /// them are new.
    fn make(base: &mut Base<Dst>, named: &[TableSpec]) -> (Vec<String>, u16) {
        let list = base.make_tables(1, named);
        assert_eq!(base.store.tables(), base.layout.tables.len(), "layout and store agree");
        (list.tables.into_iter().map(|spec| spec.name).collect(), list.made)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_shard_appends_the_tables_that_it_lacks_and_a_repetition_changes_nothing() {
        let mut base = base(0);
        let [a, b, c] = ["a", "b", "c"].map(spec);
        assert_eq!(make(&mut base, &[]), (names(&[]), 0), "it is only asked");
        assert_eq!(make(&mut base, std::slice::from_ref(&a)), (names(&["a"]), 1));
        assert_eq!(make(&mut base, &[a.clone(), b.clone(), c.clone()]), (names(&["a", "b", "c"]), 2));
        assert_eq!(make(&mut base, &[a.clone(), b.clone(), c]), (names(&["a", "b", "c"]), 0));
        assert_eq!(make(&mut base, std::slice::from_ref(&a)), (names(&["a", "b", "c"]), 0), "it has more");
        let list = base.make_tables(2, &[]);
        assert_eq!((list.tables.len(), list.made), (2, 0));
        assert!(list.is_possible(2));
    }

    #[test]
    fn the_second_of_two_who_name_one_position_is_shown_the_first() {
        let mut base = base(0);
        let [a, b] = ["a", "b"].map(spec);
        let other = TableSpec { index: IndexKind::Hash, ..a.clone() };
        assert_eq!(make(&mut base, std::slice::from_ref(&a)), (names(&["a"]), 1));
        assert_eq!(make(&mut base, std::slice::from_ref(&b)), (names(&["a"]), 0));
        assert_eq!(make(&mut base, &[other, b]).1, 0, "the same name, and another index");
        assert_eq!(base.make_tables(1, &[]).tables, [a]);
    }

    #[test]
    fn a_gap_changes_nothing_and_shows() {
        let mut base = base(0);
        for from in [2, 700, u16::MAX] {
            let list = base.make_tables(from, &[spec("a")]);
            assert_eq!(list, TableList { tables: Vec::new(), made: 0 });
        }
        assert_eq!(base.layout.tables.len(), 1);
    }

    #[test]
    fn tables_that_cannot_be_are_refused_together_with_all_others() {
        let mut base = base(0);
        let groups = |groups: Vec<String>| TableSpec { groups, ..spec("bad") };
        let modulo = TableSpec::new("bad", IndexKind::Hash, Partitioning::Modulo { bytes: 9 });
        let empty = TableSpec::new("bad", IndexKind::Hash, Partitioning::Range { bytes: 8, span: 0 });
        for bad in [
            spec(""),
            spec("file"),
            spec("good"),
            spec(&"a".repeat(DECLARATION_MAX)),
            spec("bad").immutable(),
            groups(Vec::new()),
            groups((0..256).map(|group| group.to_string()).collect()),
            groups(names(&["one", "one"])),
            modulo,
            empty,
        ] {
            assert_eq!(make(&mut base, &[spec("good"), bad.clone()]), (names(&[]), 0), "{bad:?}");
            let told = TableList { tables: vec![bad.clone()], made: 0 };
            assert_eq!(told.is_possible(1), ["file", "good"].contains(&&*bad.name), "{bad:?}");
        }
        let many: Vec<TableSpec> = (1..=TABLES_MAX).map(|number| spec(&format!("t{number}"))).collect();
        assert_eq!(make(&mut base, &many).1, 0, "too many");
        assert!(!TableList { tables: many.clone(), made: 0 }.is_possible(1));
        assert_eq!(make(&mut base, &many[1..]).1, TABLES_MAX as u16 - 1);
    }

    #[test]
    fn a_shard_without_data_takes_no_tables_from_others() {
        let mut base = base(2);
        assert_eq!(make(&mut base, &[spec("a")]), (names(&[]), 0));
    }

    /// Only a shard whose data directory is older than others' meets such a request.
    #[test]
    fn a_table_is_served_from_the_moment_that_it_is_made() {
        let mut base = base(0);
        let (column, txn) = (TableId(1).row(), TxnId { coordinator: ShardId(1), number: 1 });
        let here = |base: &Base<Dst>, key: &Key| base.home(TableId(0), key) == base.shard;
        let key = (0..).map(Key::of_u64).find(|key| here(&base, key)).expect("some keys belong here");
        let mut reads = Reads::default();
        reads.get(column, key.clone());
        let both =
            |base: &mut Base<Dst>| (base.serves(txn, &reads), base.may_write(txn, column, &key).is_ok());
        assert_eq!(both(&mut base), (false, false));
        make(&mut base, &[spec("a")]);
        assert_eq!(both(&mut base), (true, true));
        assert!(base.fetch(txn, Some(&Timestamp(1)), &reads).is_ok(), "a snapshot of before finds no row");
    }
}
