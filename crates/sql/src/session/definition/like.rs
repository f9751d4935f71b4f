//! `LIKE` in `CREATE TABLE`: columns of another table, and what the statement says comes with them.

use pg_query::protobuf::TableLikeClause;

use super::Key;
use super::elements::{Elements, Numbered};
use crate::analyze::{self, Catalog};
use crate::catalog::{Relation, Table};
use crate::session::names::schema_of;
use crate::{SqlError, SqlState};

/// Bits of what is included, as the grammar has them.
const CONSTRAINTS: u32 = 1 << 2;
const DEFAULTS: u32 = 1 << 3;
const IDENTITY: u32 = 1 << 5;
const INDEXES: u32 = 1 << 6;

/// Adds the columns of another table to one that is made.
pub(super) fn include(
    table: &mut Table,
    like: &TableLikeClause,
    elements: &mut Elements<'_>,
    text: &str,
    catalog: &dyn Catalog,
) -> Result<(), SqlError> {
    let range = like.relation.as_ref().ok_or_else(crate::functions::confused)?;
    let source = match catalog.relation(schema_of(&range.schemaname), &range.relname)? {
        Some(Relation::Table(source)) => source,
        Some(_) => return Err(analyze::unsupported("LIKE of anything but a table")),
        None => {
            let error = format!("relation \"{}\" does not exist", range.relname);
            let error = SqlError::new(SqlState::UNDEFINED_TABLE, error);
            return Err(analyze::placed(text, range.location, error));
        }
    };
    let includes = |what: u32| like.options & what != 0;
    for (_, column) in source.live() {
        if table.columns.iter().any(|other| other.name == column.name) {
            let error = format!("column \"{}\" specified more than once", column.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, error));
        }
        let mut copy = column.clone();
        copy.missing = None;
        if column.identity.is_some() {
            copy.default = None;
            copy.identity = column.identity.filter(|_| includes(IDENTITY));
            if copy.identity.is_some() {
                let numbered = Numbered { column: column.name.clone(), oid: column.oid, options: &[] };
                elements.sequences.push(numbered);
            }
        } else if !includes(DEFAULTS) {
            copy.default = None;
        }
        table.columns.push(copy);
    }
    if includes(CONSTRAINTS) {
        table.checks.extend(source.checks.iter().cloned());
    }
    if !includes(INDEXES) {
        return Ok(());
    }
    let name_at = |position: u16| source.columns.get(usize::from(position)).map(|column| column.name.clone());
    if !source.primary.is_empty() {
        let columns = source.primary.iter().filter_map(|position| name_at(*position)).collect();
        elements.keys.push(Key { columns, name: String::new(), location: -1, is_primary: true });
    }
    for index in &source.indexes {
        if !index.is_constraint {
            return Err(analyze::unsupported("LIKE of a table with indexes that are no constraints"));
        }
        let columns = index.parts.iter().filter_map(|part| name_at(part.column)).collect();
        elements.keys.push(Key { columns, name: String::new(), location: -1, is_primary: false });
    }
    Ok(())
}
