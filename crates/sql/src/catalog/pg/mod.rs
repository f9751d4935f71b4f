//! `pg_catalog` and `information_schema`: relations that are not kept anywhere.
//!
//! A relation has the columns of PostgreSQL 15's, a test compares them, and rows that are made when
//! a query reads it: from the registry of functions, operators, casts and types, and from the
//! descriptors that the query's transaction sees ([`Objects`]). What PostgreSQL keeps in its
//! catalogs and this database has not is a relation without rows, which is enough for clients that
//! look whether there are policies or publications.
//!
//! | file | has |
//! |---|---|
//! | `objects` | what the rows are made from, and rows that are made |
//! | `numbers` | identifiers of what is not numbered by itself |
//! | `naming` | names of identifiers, and identifiers of names |
//! | `builtin` | what PostgreSQL says of its own types |
//! | `classes` | tables, their columns and defaults |
//! | `keys` | indexes and constraints |
//! | `sequences` | sequences |
//! | `types`, `functions`, `cluster`, `activity`, `others` | the rest, by what it is about |
//! | `plimsoll` | the schema of that name: what the node knows of itself |
//! | `information`, `standard_keys` | `information_schema` |
//! | `definitions` | text forms of indexes and constraints |

mod activity;
pub mod builtin;
mod classes;
mod cluster;
pub mod definitions;
mod functions;
mod information;
mod keys;
mod naming;
pub mod numbers;
mod objects;
mod others;
mod plimsoll;
mod sequences;
mod standard_keys;
mod types;

use std::sync::OnceLock;

use crate::analyze::Catalog;
use crate::types::{Array, Datum, Oid};

pub use naming::{Naming, path_of};
pub use objects::{Class, Kept, Objects};
pub use plimsoll::{NodeSight, SessionState, ShownLock, ShownNode, ShownSession, ShownStatement};

/// A row of a relation.
pub type Row = Vec<Datum>;

/// What the rows of a relation are made from: what the transaction sees, and the session.
pub struct Sight<'a> {
    /// What the transaction sees.
    pub objects: &'a Objects,
    /// The session's settings and identity.
    pub session: &'a dyn Catalog,
}

/// A column of a relation.
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type; of a domain the type below it.
    pub oid: Oid,
    /// Whether it is never NULL.
    pub not_null: bool,
}

/// A relation whose rows are made.
pub struct CatalogRelation {
    /// PostgreSQL's identifier.
    pub oid: u32,
    /// The identifier of its rows' type.
    pub row_type: u32,
    /// `r` of a table, `v` of a view.
    pub kind: u8,
    /// Its schema: [`numbers::PG_CATALOG`], [`numbers::INFORMATION_SCHEMA`] or
    /// [`numbers::PLIMSOLL`].
    pub schema: u32,
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub fields: &'static [Field],
    /// Makes its rows.
    pub rows: fn(&Sight<'_>) -> Vec<Row>,
    /// What its rows depend on.
    pub depends: Depends,
}

/// What the rows of a relation depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depends {
    /// On nothing: they are made once.
    Nothing,
    /// On what the transaction sees: they are made once for it.
    Objects,
    /// On the session as well, and are made whenever they are read.
    Session,
    /// On what the sessions of the node do: they are others each time.
    Node,
}

impl PartialEq for CatalogRelation {
    fn eq(&self, other: &CatalogRelation) -> bool {
        self.oid == other.oid
    }
}

impl std::fmt::Debug for CatalogRelation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.name, self.oid)
    }
}

/// Relations: identifier, that of the row's type, kind, name, what makes the rows, and what these
/// depend on if not on tables; columns, each with `!` if it is never NULL.
macro_rules! relations {
    ($schema:ident: $($oid:literal $row_type:literal $kind:literal $name:literal
        $rows:ident $(($depends:ident))?:
        $($field:ident $(! $($not_null:literal)?)? $type:ident),*;)*) => {
        pub(super) static RELATIONS: &[crate::catalog::pg::CatalogRelation] = &[$(crate::catalog::pg::CatalogRelation {
            oid: $oid,
            row_type: $row_type,
            kind: $kind,
            schema: crate::catalog::pg::numbers::$schema,
            name: $name,
            fields: &[$(crate::catalog::pg::Field {
                name: stringify!($field),
                oid: crate::types::Oid::$type,
                not_null: relations!(@is $(! $($not_null)?)?),
            }),*],
            rows: $rows,
            depends: relations!(@depends $($depends)?),
        }),*];
    };
    (@is) => { false };
    (@is !) => { true };
    (@depends) => { crate::catalog::pg::Depends::Objects };
    (@depends $depends:ident) => { crate::catalog::pg::Depends::$depends };
}
pub(super) use relations;

/// All relations, by identifier.
pub fn relations_of_all() -> impl Iterator<Item = &'static CatalogRelation> {
    static SORTED: OnceLock<Vec<&'static CatalogRelation>> = OnceLock::new();
    let sorted = SORTED.get_or_init(|| {
        let mut all: Vec<&'static CatalogRelation> = [
            classes::RELATIONS,
            keys::RELATIONS,
            sequences::RELATIONS,
            types::RELATIONS,
            functions::RELATIONS,
            cluster::RELATIONS,
            others::RELATIONS,
            activity::RELATIONS,
            plimsoll::RELATIONS,
            information::RELATIONS,
            standard_keys::RELATIONS,
        ]
        .into_iter()
        .flatten()
        .collect();
        all.sort_by_key(|relation| relation.oid);
        all
    });
    sorted.iter().copied()
}

/// The relation of a name, in the schema that is named, or in `pg_catalog`, which is looked through
/// first.
pub fn find(schema: &str, name: &str) -> Option<&'static CatalogRelation> {
    let schema = match schema {
        "" => numbers::PG_CATALOG,
        named => numbers::schema_of(named)?,
    };
    relations_of_all().find(|relation| relation.schema == schema && relation.name == name)
}

/// No rows.
fn none(_: &Sight<'_>) -> Vec<Row> {
    Vec::new()
}

const NULL: Datum = Datum::Null;

fn oid(value: u32) -> Datum {
    Datum::Oid(value)
}

fn text(value: impl Into<std::sync::Arc<str>>) -> Datum {
    Datum::text(value)
}

fn yes(value: bool) -> Datum {
    Datum::Bool(value)
}

fn char(value: u8) -> Datum {
    Datum::Char(value)
}

fn int2(value: impl TryInto<i16>) -> Datum {
    Datum::Int2(value.try_into().unwrap_or(i16::MAX))
}

fn int4(value: impl TryInto<i32>) -> Datum {
    Datum::Int4(value.try_into().unwrap_or(i32::MAX))
}

fn oid_vector(values: impl IntoIterator<Item = u32>) -> Datum {
    Array::vector(Oid::OID, values.into_iter().map(Datum::Oid).collect())
}

fn int2_vector(values: impl IntoIterator<Item = i16>) -> Datum {
    Array::vector(Oid::INT2, values.into_iter().map(Datum::Int2).collect())
}

fn int2_array(values: impl IntoIterator<Item = i16>) -> Datum {
    Array::flat(Oid::INT2, values.into_iter().map(Datum::Int2).collect())
}

fn oid_array(values: impl IntoIterator<Item = u32>) -> Datum {
    Array::flat(Oid::OID, values.into_iter().map(Datum::Oid).collect())
}
