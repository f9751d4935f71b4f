//! The simplest database that can run a procedure, for this crate's tests: one ordered map, one
//! transaction at a time, an overlay that an abort throws away.
//!
//! It is strict where the real protocols rely on procedures being honest: a piece may read only
//! what it has declared, may write only what it names among its items if it is one-shot, must stay
//! within its slot, and must not write if it is declared read-only.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_txn::shipped::Items;
use plimsoll_types::{Abort, ColumnGroup, Key, Order, Slot, TableId, TableSpec};

use crate::{Sink, Workload};

type Records = BTreeMap<(ColumnGroup, Key), Option<Vec<u8>>>;

/// All records of a workload.
#[derive(Clone)]
pub struct Database {
    tables: Vec<TableSpec>,
    records: Records,
    /// Breaks off each piece of a read-only transaction once, after so many reads, and runs it
    /// again.
    pub interrupt_after: Option<usize>,
    /// Which slots are at the coordinator: pieces there are executed ahead, and again from the
    /// first such stage once a later stage has one elsewhere.
    pub here: Option<fn(Slot) -> bool>,
    /// What the last transaction did to rows: a row counts once whatever its column groups.
    pub counts: Counts,
}

/// Rows by what was done to them.
#[derive(Clone, Default, Debug)]
pub struct Counts {
    /// Rows read.
    pub read: BTreeSet<(TableId, Key)>,
    /// Rows put.
    pub updated: BTreeSet<(TableId, Key)>,
    /// Rows inserted.
    pub inserted: BTreeSet<(TableId, Key)>,
    /// Rows deleted.
    pub deleted: BTreeSet<(TableId, Key)>,
}

impl Database {
    /// An empty database with these tables.
    pub fn empty(tables: Vec<TableSpec>) -> Database {
        let counts = Counts::default();
        Database { tables, records: Records::new(), interrupt_after: None, here: None, counts }
    }

    /// A database with the workload's initial rows.
    pub fn load<W: Workload>(workload: &W) -> Database {
        let (tables, units) = (workload.tables(), 0..workload.units());
        let units = units.map(|unit| (unit, workload.unit_slot(unit)));
        Database::fill(tables, units, |unit, sink| workload.load(unit, sink))
    }

    /// A database with the rows of these units, which are in these slots.
    pub fn fill(
        tables: Vec<TableSpec>,
        units: impl Iterator<Item = (usize, Option<Slot>)>,
        load: impl Fn(usize, Sink<'_>),
    ) -> Database {
        let mut records = BTreeMap::new();
        for (unit, slot) in units {
            load(unit, &mut |table, key, values| {
                let spec = &tables[table.index()];
                assert_eq!(values.len(), spec.groups.len(), "a row of {} has all its groups", spec.name);
                assert_eq!(spec.partitioning.slot(&key), slot, "{} {key:?}", spec.name);
                for (group, value) in values.iter().enumerate() {
                    let old = records.insert((table.group(group as u8), key.clone()), Some(value.to_vec()));
                    assert!(old.is_none(), "{} {key:?} is loaded once", spec.name);
                }
            });
        }
        Database { tables, records, interrupt_after: None, here: None, counts: Counts::default() }
    }

    /// Runs all stages of a transaction and commits what it wrote, or nothing.
    pub fn run<P: Procedure>(&mut self, procedure: &mut P) -> Result<(), Abort> {
        let mut overlay = Records::new();
        self.counts = Counts::default();
        let mut ahead = self.here;
        let mut stage = 0;
        while procedure.stage(stage) > 0 {
            let (here, elsewhere) = self.pieces(procedure, stage);
            elsewhere.iter().try_for_each(|&piece| self.execute(procedure, piece, &mut overlay))?;
            if !here.is_empty() && ahead.take().is_some() {
                let mut tried = overlay.clone();
                here.iter().try_for_each(|&piece| self.execute(procedure, piece, &mut tried))?;
                for stage in stage + 1.. {
                    let (here, elsewhere) = self.pieces(procedure, stage);
                    if here.is_empty() || !elsewhere.is_empty() {
                        break;
                    }
                    here.iter().try_for_each(|&piece| self.execute(procedure, piece, &mut tried))?;
                }
            }
            here.iter().try_for_each(|&piece| self.execute(procedure, piece, &mut overlay))?;
            stage += 1;
        }
        for (name, value) in overlay {
            match value {
                Some(_) => self.records.insert(name, value),
                None => self.records.remove(&name),
            };
        }
        Ok(())
    }

    /// The pieces of a stage at the coordinator, and the others.
    fn pieces<P: Procedure>(&self, procedure: &P, stage: usize) -> (Vec<Piece>, Vec<Piece>) {
        let pieces = (0..procedure.stage(stage)).map(|number| Piece { stage, number });
        pieces.partition(|&piece| self.here.is_some_and(|here| here(procedure.home(piece))))
    }

    fn execute<P: Procedure>(
        &mut self,
        procedure: &mut P,
        piece: Piece,
        overlay: &mut Records,
    ) -> Result<(), Abort> {
        let mut reads = Reads::default();
        procedure.reads(piece, &mut reads);
        let read_only = procedure.read_only();
        let items = procedure.shipped().filter(|_| !read_only).map(|shipped| {
            let mut items = Items::default();
            shipped.items(piece, &mut items);
            items
        });
        let mut access = Serial {
            tables: &self.tables,
            records: &self.records,
            overlay,
            counts: &mut self.counts,
            declared: &reads,
            items,
            home: procedure.home(piece),
            read_only,
            budget: self.interrupt_after.filter(|_| read_only),
        };
        for (column, key, _) in &reads.gets {
            access.check_home(column.table, key);
        }
        for (scan, _) in &reads.scans {
            access.check_home(scan.column.table, &scan.low);
        }
        if access.budget.is_some() && procedure.execute(piece, &mut access).is_ok() {
            return Ok(());
        }
        access.budget = None;
        procedure.execute(piece, &mut access)
    }

    /// Overwrites a record behind all transactions' backs.
    pub fn write(&mut self, column: ColumnGroup, key: Key, value: &[u8]) {
        self.records.insert((column, key), Some(value.to_vec()));
    }

    /// Drops a record behind all transactions' backs.
    pub fn remove(&mut self, column: ColumnGroup, key: &Key) {
        let old = self.records.remove(&(column, key.clone()));
        assert!(old.is_some(), "{column:?} {key:?} was there");
    }

    /// A record's value.
    pub fn read(&self, column: ColumnGroup, key: &Key) -> Option<&[u8]> {
        self.records.get(&(column, key.clone()))?.as_deref()
    }

    /// How many records a column group has.
    pub fn count(&self, column: ColumnGroup) -> usize {
        self.rows(column).count()
    }

    /// All records of a column group, in key order.
    pub fn rows(&self, column: ColumnGroup) -> impl Iterator<Item = (&Key, &[u8])> {
        self.records
            .range((column, Key::MIN)..)
            .take_while(move |((c, _), _)| *c == column)
            .filter_map(|((_, key), value)| Some((key, value.as_deref()?)))
    }
}

/// Runs an audit, which cannot abort.
pub fn run_audit<A: Procedure + Clone>(database: &mut Database, audit: &mut A) -> A {
    assert!(audit.read_only());
    assert_eq!(database.run(audit), Ok(()));
    audit.clone()
}

/// Runs a transaction on the database itself.
struct Serial<'a> {
    tables: &'a [TableSpec],
    records: &'a Records,
    overlay: &'a mut Records,
    counts: &'a mut Counts,
    declared: &'a Reads,
    /// What the piece says it touches, if it is one-shot and may write.
    items: Option<Items>,
    home: Slot,
    read_only: bool,
    /// How many reads are left until the piece is broken off.
    budget: Option<usize>,
}

impl Serial<'_> {
    fn check_home(&self, table: TableId, key: &Key) {
        let spec = &self.tables[table.index()];
        if let Some(slot) = spec.partitioning.slot(key) {
            assert_eq!(slot, self.home, "a piece stays within its slot: {} {key:?}", spec.name);
        }
    }

    fn find(&self, name: &(ColumnGroup, Key)) -> Option<&[u8]> {
        self.overlay.get(name).or_else(|| self.records.get(name))?.as_deref()
    }

    fn spend(&mut self) -> Result<(), Abort> {
        match &mut self.budget {
            None => Ok(()),
            Some(0) => Err(Abort::Validation),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn check_written_row(&self, table: TableId, key: &Key) {
        let groups = self.tables[table.index()].groups.len();
        (0..groups).for_each(|group| self.check_written(table.group(group as u8), key));
    }

    fn check_written(&self, column: ColumnGroup, key: &Key) {
        let table = column.table;
        if let Some(Items(items)) = &self.items {
            let named = items.iter().any(|item| item.write && item.covers(column, key));
            assert!(named, "{} {key:?} is written without being named", self.tables[table.index()].name);
        }
        assert!(!self.read_only, "a read-only transaction does not write");
        assert!(!self.tables[table.index()].immutable, "immutable tables are not written");
        self.check_home(table, key);
    }
}

impl Access for Serial<'_> {
    fn get(&mut self, column: ColumnGroup, key: &Key) -> Result<Option<&[u8]>, Abort> {
        self.spend()?;
        self.check_home(column.table, key);
        let spec = &self.tables[column.table.index()];
        let declared = self.declared.gets.iter().any(|(c, k, _)| *c == column && k == key);
        assert!(declared || spec.immutable, "{} {key:?} is read without being declared", spec.name);
        self.counts.read.insert((column.table, key.clone()));
        Ok(self.find(&(column, key.clone())))
    }

    fn put(&mut self, column: ColumnGroup, key: &Key, value: &[u8]) -> Result<(), Abort> {
        self.check_written(column, key);
        self.counts.updated.insert((column.table, key.clone()));
        self.overlay.insert((column, key.clone()), Some(value.to_vec()));
        Ok(())
    }

    fn insert(&mut self, table: TableId, key: &Key, values: &[&[u8]]) -> Result<(), Abort> {
        self.check_written_row(table, key);
        assert_eq!(values.len(), self.tables[table.index()].groups.len(), "a row has all its groups");
        if self.find(&(table.row(), key.clone())).is_some() {
            return Err(Abort::User);
        }
        self.counts.inserted.insert((table, key.clone()));
        for (group, value) in values.iter().enumerate() {
            self.overlay.insert((table.group(group as u8), key.clone()), Some(value.to_vec()));
        }
        Ok(())
    }

    fn delete(&mut self, table: TableId, key: &Key) -> Result<(), Abort> {
        self.check_written_row(table, key);
        self.counts.deleted.insert((table, key.clone()));
        for group in 0..self.tables[table.index()].groups.len() {
            self.overlay.insert((table.group(group as u8), key.clone()), None);
        }
        Ok(())
    }

    fn scan(
        &mut self,
        scan: &Scan,
        mut visit: impl FnMut(&Key, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let declared = self.declared.scans.iter().any(|(declared, _)| declared == scan);
        assert!(declared, "{scan:?} is read without being declared");
        self.spend()?;
        let low = (scan.column, scan.low.clone());
        let within = |name: &(ColumnGroup, Key)| {
            name.0 == scan.column && scan.high.as_ref().is_none_or(|high| name.1 < *high)
        };
        let mut names: BTreeSet<_> =
            self.records.range(low.clone()..).map(|(name, _)| name).take_while(|name| within(name)).collect();
        names.extend(self.overlay.range(low..).map(|(name, _)| name).take_while(|name| within(name)));
        let mut visited = 0;
        let names: Vec<_> = match scan.order {
            Order::Ascending => names.into_iter().collect(),
            Order::Descending => names.into_iter().rev().collect(),
        };
        for name in names {
            let value = self.overlay.get(name).or_else(|| self.records.get(name));
            let Some(value) = value.and_then(|value| value.as_deref()) else { continue };
            if visited == scan.limit {
                break;
            }
            visited += 1;
            match &mut self.budget {
                None => {}
                Some(0) => return Err(Abort::Validation),
                Some(left) => *left -= 1,
            }
            self.counts.read.insert((scan.column.table, name.1.clone()));
            if visit(&name.1, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}
