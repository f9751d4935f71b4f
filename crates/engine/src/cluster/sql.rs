//! The tables of a cluster that hold all tables of SQL.
//!
//! Tables of SQL come, change and go while a cluster runs, and no transaction waits for all nodes
//! to know of that. Tables of a cluster only come. So all rows of SQL are in two of these: one
//! whose rows are each on one shard, which a part of the key names, and one with a copy on every
//! shard. They are there from the beginning, behind the tables of the file, so those keep their
//! numbers; and the checksum of the cluster leaves them out, so a data directory in which they are
//! missing goes on without anything to be done.
//!
//! Tables that clients make are numbered behind these two (`plimsoll_txn::tables`). A third table
//! of SQL would take the number of the first of them, so it must not be added in front of them.
//!
//! The names of SQL's tables have a dot in them, and no other table's name may have one.

use plimsoll_txn::pairs::{Pair, sql_tables};
use plimsoll_types::{TableId, TableSpec};

use super::{Cluster, ClusterError, content};

/// Whether a table of a file is one of SQL's, which is there in any case. A name that only they may
/// have is refused.
pub(super) fn is_of_sql(spec: &TableSpec, pair: Pair) -> Result<bool, ClusterError> {
    if !spec.name.contains('.') {
        return Ok(false);
    }
    match pair.has_sql() && sql_tables().contains(spec) {
        true => Ok(true),
        false => content(format!(
            "table {:?}: names with a dot in them are kept for the database's own tables; choose another name",
            spec.name
        )),
    }
}

impl Cluster {
    /// All tables, in the order of their ids: those of the file, and behind them those of SQL, if
    /// the pair has SQL.
    pub fn all_tables(&self) -> Vec<TableSpec> {
        let of_sql = sql_tables().into_iter().filter(|_| self.pair.has_sql());
        self.tables.iter().cloned().chain(of_sql).collect()
    }

    /// The ids of the tables of SQL: of the one whose rows are each on one shard, and of the one
    /// with copies; `None` if the pair has no SQL.
    pub fn sql_tables(&self) -> Option<[TableId; 2]> {
        let first = self.tables.len() as u16;
        self.pair.has_sql().then_some([TableId(first), TableId(first + 1)])
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_types::IndexKind;

    use super::super::{describe_tables, tests::NODE};
    use super::*;

    const TABLE: &str = "[[table]]\nname = \"t\"\n";

    fn names(cluster: &Cluster) -> Vec<String> {
        cluster.all_tables().into_iter().map(|table| table.name).collect()
    }

    #[test]
    fn tables_of_sql_are_behind_those_of_the_file() {
        for (protocol, scheme, has_sql) in [
            ("occ", "dst", true),
            ("two_pl", "dst", true),
            ("client_2pc", "dst", false),
            ("occ", "none", false),
            ("two_pl", "rc", false),
        ] {
            let text = format!("protocol = \"{protocol}\"\nscheme = \"{scheme}\"\n{NODE}{TABLE}");
            let cluster = Cluster::parse(&text).unwrap();
            assert_eq!(cluster.tables.len(), 1, "the file's");
            let of_sql: &[&str] = if has_sql { &["plimsoll.sql", "plimsoll.sql.copies"] } else { &[] };
            assert_eq!(names(&cluster), [&["t"][..], of_sql].concat(), "{protocol}/{scheme}");
            assert_eq!(cluster.sql_tables(), has_sql.then_some([TableId(1), TableId(2)]));
            let told = Cluster::from_description(&cluster.description).unwrap();
            assert_eq!(told.all_tables(), cluster.all_tables(), "and clients know them");
        }
    }

    /// A data directory has the checksum of the cluster that it was made for.
    #[test]
    fn clusters_of_before_they_were_there_have_the_same_checksum() {
        assert_eq!(Cluster::parse(NODE).unwrap().id, 0x4eaa_a81b_e33a_208f);
    }

    #[test]
    fn a_file_may_name_them_only_as_they_are() {
        let plain = Cluster::parse(&format!("{NODE}{TABLE}")).unwrap();
        let [own, copies] = sql_tables();
        let described =
            |tables: &[TableSpec]| Cluster::parse(&format!("{NODE}{}{TABLE}", describe_tables(tables)));
        let named = described(&sql_tables()).unwrap();
        assert_eq!((named.id, names(&named)), (plain.id, names(&plain)), "wherever they stand");
        assert_eq!(described(std::slice::from_ref(&copies)).unwrap().all_tables(), plain.all_tables());
        let other = |name: &str| TableSpec { name: name.to_owned(), ..own.clone() };
        for refused in [
            other("plimsoll.sql.copies"),
            other("plimsoll.other"),
            other("a.b"),
            TableSpec { index: IndexKind::Hash, ..own.clone() },
            own.clone().with_groups(&["a", "b"]),
            copies.immutable(),
        ] {
            let why = described(std::slice::from_ref(&refused)).expect_err("it is another").to_string();
            assert!(why.contains("names with a dot") && why.contains(&refused.name), "{why}");
        }
        let without = format!("scheme = \"none\"\n{NODE}{}", describe_tables(&[own]));
        assert!(Cluster::parse(&without).is_err(), "there is no SQL");
    }
}
