//! What the relations of `pg_catalog` are made from: the tables that a transaction sees. Rows that
//! were made stay with it, and so do indexes of them by a column.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::numbers;
use super::{CatalogRelation, Depends, Row, Sight, relations_of_all};
use crate::catalog::{Column, Index, Relation, Sequence, Table};
use crate::execute::rows::Key;
use crate::types::Datum;

/// Which rows have which value.
type ByValue = BTreeMap<Key, Vec<usize>>;

/// The rows of a relation.
pub struct Kept {
    rows: Vec<Row>,
    /// By a column: which rows have which value.
    indexes: Vec<OnceLock<ByValue>>,
}

impl Kept {
    /// Of these rows.
    pub fn new(rows: Vec<Row>) -> Kept {
        let width = rows.first().map_or(0, Vec::len);
        Kept { rows, indexes: (0..width).map(|_| OnceLock::new()).collect() }
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// A row.
    pub fn row(&self, place: usize) -> Option<&Row> {
        self.rows.get(place)
    }

    /// Which rows have a value in a column.
    pub fn with(&self, column: usize, value: &Datum) -> Vec<usize> {
        if value.is_null() {
            return Vec::new();
        }
        let Some(index) = self.indexes.get(column) else { return Vec::new() };
        let index = index.get_or_init(|| {
            let mut index = ByValue::new();
            for (place, row) in self.rows.iter().enumerate() {
                let value = row.get(column).cloned().unwrap_or(Datum::Null);
                index.entry(Key(vec![value])).or_default().push(place);
            }
            index
        });
        index.get(&Key(vec![value.clone()])).cloned().unwrap_or_default()
    }
}

/// What has a row in `pg_class`.
#[derive(Clone, Copy)]
pub enum Class<'a> {
    /// A relation of the catalog.
    Catalog(&'static CatalogRelation),
    /// A table.
    Table(&'a Table),
    /// The index of a table's primary key.
    PrimaryIndex(&'a Table),
    /// Another index of a table.
    Index(&'a Table, &'a Index),
    /// A sequence.
    Sequence(&'a Sequence),
}

impl Class<'_> {
    /// Its identifier.
    pub fn oid(&self) -> u32 {
        match self {
            Class::Catalog(relation) => relation.oid,
            Class::Table(table) => table.id,
            Class::PrimaryIndex(table) => table.primary_id,
            Class::Index(_, index) => index.id,
            Class::Sequence(sequence) => sequence.id,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Class::Catalog(relation) => relation.name,
            Class::Table(table) => &table.name,
            Class::PrimaryIndex(table) => &table.primary_name,
            Class::Index(_, index) => &index.name,
            Class::Sequence(sequence) => &sequence.name,
        }
    }

    /// The identifier of its schema.
    pub fn schema(&self) -> u32 {
        let name = match self {
            Class::Catalog(relation) => return relation.schema,
            Class::Table(table) | Class::PrimaryIndex(table) | Class::Index(table, _) => &table.schema,
            Class::Sequence(sequence) => &sequence.schema,
        };
        numbers::schema_of(name).unwrap_or(numbers::PUBLIC)
    }
}

/// The tables and sequences that a transaction sees.
pub struct Objects {
    tables: Vec<Arc<Table>>,
    sequences: Vec<Arc<Sequence>>,
    /// Rows that were made, by the relation's identifier.
    kept: Option<AllKept>,
}

type AllKept = BTreeMap<u32, OnceLock<Arc<Kept>>>;

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Objects({}, {})", self.tables.len(), self.sequences.len())
    }
}

impl PartialEq for Objects {
    fn eq(&self, other: &Objects) -> bool {
        self.tables == other.tables && self.sequences == other.sequences
    }
}

impl Objects {
    /// Of these relations.
    pub fn new(relations: Vec<Relation>) -> Objects {
        let (mut tables, mut sequences) = (Vec::new(), Vec::new());
        for relation in relations {
            match relation {
                Relation::Table(table) => tables.push(table),
                Relation::Sequence(sequence) => sequences.push(sequence),
                // The table has it.
                Relation::Index(_) => {}
            }
        }
        tables.sort_by_key(|table| table.id);
        sequences.sort_by_key(|sequence| sequence.id);
        Objects { tables, sequences, kept: Some(empty()) }
    }

    /// The same without rows that were made: to tell later whether anything has changed.
    pub fn bare(&self) -> Objects {
        Objects { tables: self.tables.clone(), sequences: self.sequences.clone(), kept: None }
    }

    /// The tables, by identifier.
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// The sequences, by identifier.
    pub fn sequences(&self) -> &[Arc<Sequence>] {
        &self.sequences
    }

    /// The table of an identifier.
    pub fn table(&self, id: u32) -> Option<&Arc<Table>> {
        let place = self.tables.binary_search_by_key(&id, |table| table.id).ok();
        place.and_then(|place| self.tables.get(place))
    }

    /// The table of a name.
    pub fn table_named(&self, schema: &str, name: &str) -> Option<&Arc<Table>> {
        self.tables.iter().find(|table| table.schema == schema && table.name == name)
    }

    /// The table, the place and the column that a sequence goes with.
    pub fn column_of(&self, sequence: &Sequence) -> Option<(&Arc<Table>, usize, &Column)> {
        let (name, place) = sequence.owner.as_ref()?;
        let (table, place) = (self.table_named(&sequence.schema, name)?, usize::from(*place));
        Some((table, place, table.columns.get(place)?))
    }

    /// The sequence that goes with a column.
    pub fn sequence_of(&self, table: &Table, place: usize) -> Option<&Arc<Sequence>> {
        self.sequences.iter().find(|sequence| {
            let owner = self.column_of(sequence);
            owner.is_some_and(|(owner, column, _)| owner.id == table.id && column == place)
        })
    }

    /// All that has a row in `pg_class`.
    pub fn classes(&self) -> impl Iterator<Item = Class<'_>> {
        let of_tables = self.tables.iter().flat_map(|table| {
            let primary = (!table.primary.is_empty()).then_some(Class::PrimaryIndex(table));
            let indexes = table.indexes.iter().map(|index| Class::Index(table, index));
            std::iter::once(Class::Table(table)).chain(primary).chain(indexes)
        });
        let sequences = self.sequences.iter().map(|sequence| Class::Sequence(sequence));
        relations_of_all().map(Class::Catalog).chain(of_tables).chain(sequences)
    }

    /// What has an identifier in `pg_class`.
    pub fn class(&self, oid: u32) -> Option<Class<'_>> {
        self.classes().find(|class| class.oid() == oid)
    }

    /// What has a name in a schema.
    pub fn class_named(&self, schema: u32, name: &str) -> Option<Class<'_>> {
        self.classes().find(|class| class.schema() == schema && class.name() == name)
    }

    /// The rows of a relation.
    pub fn rows(&self, relation: &'static CatalogRelation, sight: &Sight<'_>) -> Arc<Kept> {
        static FIXED: OnceLock<AllKept> = OnceLock::new();
        let make = || Arc::new(Kept::new((relation.rows)(sight)));
        let kept = match relation.depends {
            Depends::Nothing => Some(FIXED.get_or_init(empty)),
            Depends::Objects => self.kept.as_ref(),
            Depends::Session | Depends::Node => None,
        };
        match kept.and_then(|kept| kept.get(&relation.oid)) {
            Some(kept) => Arc::clone(kept.get_or_init(make)),
            None => make(),
        }
    }
}

fn empty() -> AllKept {
    relations_of_all().map(|relation| (relation.oid, OnceLock::new())).collect()
}
