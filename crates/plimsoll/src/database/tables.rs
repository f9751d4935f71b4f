//! How tables are found and made.
//!
//! In one process a table is made on all shards, one after the other, and then becomes known here:
//! until then no transaction can name it.
//!
//! On a cluster the first shard of all orders the tables (`plimsoll_txn::tables`). A client that
//! makes one
//!
//! 1. *learns* which tables there are: it asks the first shard, copies to all other shards with
//!    data what it has not known, and then adds that to its own shard and to the list here;
//! 2. *names* its own table at the next position to the first shard. If another client was faster,
//!    it begins again;
//! 3. learns once more, which copies its table to all other shards.
//!
//! So every table that a client knows is on all shards, and has the same id for all clients. A
//! client that does not know a name learns, and finds what others have made. If a node is gone, the
//! table may be *half-made*: it is in the list of the first shard, and known to no client. The next
//! client that learns while all nodes are there completes it.
//!
//! Example. A names "jobs" to the first shard, and then node 2 is gone: A is told
//! [`Error::Unreachable`]. Node 2 comes back. If A tries again it learns, finds the table that it
//! had begun, and is told that it has made it. If B is there first, B learns, and the table is
//! complete; B's own attempt to make it fails with [`SchemaError::DuplicateTable`].
//!
//! Exactly one client is told that it has made a table, unless the connection to the first shard
//! broke while a client named its table there, and another named one that is declared the same.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use plimsoll_engine::{SchemaError, TABLES_MAX, check_table};
use plimsoll_store::written_bytes;
use plimsoll_types::TableId as StoredTable;
use plimsoll_types::{Key, Partitioning, ShardId, TableSpec};

use super::{Database, Inner, TableId, check_key, check_value, new_identity};
use crate::error::Error;

/// The shard that orders the tables of a cluster. It holds data, and slots that move do not change
/// that.
const FIRST: ShardId = ShardId(0);

/// A table, for checks and errors.
pub(super) struct Table {
    pub(super) spec: TableSpec,
    pub(super) name: Arc<str>,
    /// See [`TableId`].
    pub(super) identity: u64,
}

impl Table {
    pub(super) fn new(spec: TableSpec, identity: u64) -> Arc<Table> {
        Arc::new(Table { name: Arc::from(&*spec.name), spec, identity })
    }
}

/// All tables that this process knows.
pub(super) struct Tables {
    /// By id; `None` for those of SQL, which clients do not use. Never locked for long.
    by_id: RwLock<Vec<Option<Arc<Table>>>>,
    /// How many there were at the beginning; on a cluster, all that were not made by clients.
    first: usize,
}

impl Tables {
    pub(super) fn new(tables: Vec<Option<Arc<Table>>>) -> Tables {
        Tables { first: tables.len(), by_id: RwLock::new(tables) }
    }

    pub(super) fn all(&self) -> RwLockReadGuard<'_, Vec<Option<Arc<Table>>>> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, table: StoredTable) -> Option<Arc<Table>> {
        self.all().get(table.index())?.clone()
    }

    /// How the rows of a table are placed that a caller has found here.
    pub(super) fn partitioning(&self, table: StoredTable) -> Partitioning {
        let tables = self.all();
        tables[table.index()].as_ref().expect("a table that was found is known").spec.partitioning
    }

    fn count(&self) -> usize {
        self.all().len()
    }

    fn push(&self, table: Arc<Table>) {
        self.by_id.write().unwrap_or_else(PoisonError::into_inner).push(Some(table));
    }

    fn find(&self, name: &str) -> Option<TableId> {
        let tables = self.all();
        let mut known = (0..).zip(tables.iter()).filter_map(|(id, table)| Some((id, table.as_ref()?)));
        let (id, table) = known.find(|(_, table)| *table.name == *name)?;
        Some(TableId::new(StoredTable(id), table.identity))
    }

    /// Those that clients of a cluster have made, as far as this one knows them.
    fn made(&self) -> Vec<TableSpec> {
        self.all()[self.first..].iter().flatten().map(|table| table.spec.clone()).collect()
    }
}

impl Database {
    /// The id of a table. A client of a cluster that does not know the name asks the nodes, and so
    /// finds tables that other clients have made. `None` if there is no such table, or if a node
    /// that has to be asked cannot be reached.
    pub fn table(&self, name: &str) -> Option<TableId> {
        let inner = &*self.inner;
        let known = inner.tables.find(name);
        if known.is_some() || !inner.is_client() {
            return known;
        }
        let _one_at_a_time = inner.making();
        inner.learn_tables().ok()?;
        inner.tables.find(name)
    }

    /// Makes an empty table, which any handle may use at once. An immutable table is made by
    /// [`Database::create_loaded`].
    ///
    /// On a cluster every client finds the table by its name ([`Database::table`]). All nodes have
    /// to be there; [`Error::Unreachable`] if one is not. Then the table may be made in part, and a
    /// second call completes it. [`SchemaError::DuplicateTable`] if another client has made it,
    /// which may be a moment ago: then it can be used, too.
    pub fn create_table(&self, spec: TableSpec) -> Result<TableId, Error> {
        if spec.immutable && !self.inner.is_client() {
            return Err(SchemaError::Immutable(Arc::from(&*spec.name)).into());
        }
        self.create_loaded(spec, [])
    }

    /// Makes a table with rows in it, one value per column group: the fastest way to load data, and
    /// the only way to fill an immutable table. Others see the table with all its rows, or not at
    /// all; snapshots that were taken before see the rows, too. Nothing is made if a key comes
    /// twice ([`Error::Exists`]), a row does not fit the table, or all rows do not fit into memory
    /// ([`Error::Full`]). On a cluster a table with rows, or an immutable one, cannot be made
    /// ([`Error::OnlyEmptyTables`]).
    pub fn create_loaded(
        &self,
        spec: TableSpec,
        rows: impl IntoIterator<Item = (Key, Vec<Vec<u8>>)>,
    ) -> Result<TableId, Error> {
        check_table(&spec)?;
        let name = || Arc::from(&*spec.name);
        if self.inner.is_client() {
            return match spec.immutable || rows.into_iter().next().is_some() {
                true => Err(Error::OnlyEmptyTables { table: name() }),
                false => self.inner.make_table(spec),
            };
        }
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let groups = spec.groups.len();
        if rows.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::Exists { table: name() });
        }
        for (key, values) in &rows {
            check_key(key)?;
            values.iter().try_for_each(|value| check_value(value))?;
            if values.len() != groups {
                return Err(Error::ValueCount { table: name(), values: values.len(), groups });
            }
        }
        let _one_at_a_time = self.inner.making();
        self.inner.check_new(&spec.name)?;
        let running = self.inner.running()?;
        let values = rows.iter().flat_map(|(_, values)| values);
        let bytes = values.map(|value| written_bytes(value.len())).sum();
        if running.limit().is_some_and(|memory| memory.lacks(bytes)) {
            return Err(Error::Full);
        }
        let id = running.create_table(spec.clone());
        running.load(id, rows);
        let identity = new_identity();
        self.inner.tables.push(Table::new(spec, identity));
        Ok(TableId::new(id, identity))
    }
}

impl Inner {
    fn making(&self) -> RwLockWriteGuard<'_, Vec<TableSpec>> {
        self.making.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a table if its name is known, or there is no room for another.
    fn check_new(&self, name: &str) -> Result<(), SchemaError> {
        match self.tables.find(name) {
            Some(_) => Err(SchemaError::DuplicateTable(Arc::from(name))),
            None if self.tables.count() >= TABLES_MAX => Err(SchemaError::TooManyTables),
            None => Ok(()),
        }
    }

    /// Makes an empty table on the cluster.
    fn make_table(&self, spec: TableSpec) -> Result<TableId, Error> {
        if spec.name.contains('.') {
            return Err(SchemaError::KeptName(Arc::from(&*spec.name)).into());
        }
        let mut begun = self.making();
        let (since, patience) = (Instant::now(), self.options.patience);
        loop {
            self.learn_tables()?;
            let own = begun.iter().position(|other| other.name == spec.name);
            if let (Some(id), Some(own)) = (self.tables.find(&spec.name), own) {
                let own = begun.swap_remove(own);
                if own == spec && self.table(id)?.spec == spec {
                    return Ok(id);
                }
            }
            self.check_new(&spec.name)?;
            if since.elapsed() >= patience {
                return Err(Error::Unreachable { waited: since.elapsed() });
            }
            begun.retain(|other| other.name != spec.name);
            begun.push(spec.clone());
            let mut named = self.tables.made();
            let place = named.len();
            named.push(spec.clone());
            let told = self.running()?.make_tables(
                &[FIRST],
                self.tables.first as u16,
                &Arc::new(named),
                patience,
            )?;
            let is_own = told.first().is_some_and(|told| {
                let may_be = told.repeated && told.list.tables.get(place) == Some(&spec);
                told.list.made > 0 || may_be
            });
            if !is_own {
                // Another client was faster.
                begun.retain(|other| other.name != spec.name);
            }
        }
    }

    /// Learns the tables that clients have made so far. Other shards get those first that this
    /// client does not know: the client that has made them may have ended meanwhile.
    fn learn_tables(&self) -> Result<(), Error> {
        let running = self.running()?;
        let (first, patience) = (self.tables.first as u16, self.options.patience);
        let known = self.tables.made();
        let told = running.make_tables(&[FIRST], first, &Arc::default(), patience)?;
        let list = told.into_iter().next().map(|told| told.list.tables).unwrap_or_default();
        has_all(FIRST, &list, &known)?;
        if list.len() == known.len() {
            return Ok(());
        }
        let others: Vec<ShardId> = (1..self.holders as u16).map(ShardId).collect();
        let list = Arc::new(list);
        let told = running.make_tables(&others, first, &list, patience)?;
        for (&shard, told) in others.iter().zip(told) {
            has_all(shard, &told.list.tables, &list)?;
        }
        for spec in &list[known.len()..] {
            let id = running.create_table(spec.clone());
            assert!(id.index() == self.tables.count(), "a client's shard has the tables that it knows");
            self.tables.push(Table::new(spec.clone(), self.identity));
        }
        Ok(())
    }
}

/// Checks that a shard has these tables, and perhaps others behind them.
fn has_all(shard: ShardId, tables: &[TableSpec], known: &[TableSpec]) -> Result<(), Error> {
    let mut places = (0..).zip(known);
    match places.find(|&(place, spec): &(usize, _)| tables.get(place) != Some(spec)) {
        None => Ok(()),
        Some((_, spec)) => Err(Error::TablesDiffer { shard: shard.0, table: Arc::from(&*spec.name) }),
    }
}
