//! `CREATE TABLE AS` and `SELECT INTO`: tables made of the rows of a query.

use std::rc::Rc;

use pg_query::NodeEnum;
use pg_query::protobuf::{InsertStmt, IntoClause, Node, OnCommitAction, OverridingKind, SelectStmt};

use super::{check_width, done, options};
use crate::analyze::names::strings;
use crate::analyze::{self, Query};
use crate::catalog::{Column, PUBLIC, Table};
use crate::functions::confused;
use crate::session::conversation::Session;
use crate::session::names::schema_of;
use crate::session::portal::Work;
use crate::session::{Stop, World};
use crate::types::Oid;
use crate::{SqlError, SqlState};

impl<W: World> Session<'_, W> {
    /// `SELECT INTO`
    pub(super) async fn select_into(
        &mut self,
        select: &SelectStmt,
        text: &Rc<str>,
        out: &mut Vec<u8>,
    ) -> Result<Work, Stop> {
        let mut select = select.clone();
        let into = select.into_clause.take().ok_or_else(confused)?;
        let query = Node { node: Some(NodeEnum::SelectStmt(Box::new(select))) };
        self.create_table_as(&query, &into, false, text, out).await
    }

    /// `CREATE TABLE AS`
    pub(super) async fn create_table_as(
        &mut self,
        query: &Node,
        into: &IntoClause,
        if_missing: bool,
        text: &Rc<str>,
        out: &mut Vec<u8>,
    ) -> Result<Work, Stop> {
        let range = into.rel.as_ref().ok_or_else(confused)?;
        if range.relpersistence == "t" || into.on_commit() != OnCommitAction::OncommitNoop {
            return Err(analyze::unsupported("a temporary table").into());
        }
        let schema = schema_of(&range.schemaname).to_owned();
        if schema != PUBLIC {
            let error = format!("schema \"{schema}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_SCHEMA, error).into());
        }
        self.open_to_write("CREATE TABLE AS").await?;
        if self.look_up(schema.clone(), range.relname.clone()).await?.is_some() {
            let error = format!("relation \"{}\" already exists", range.relname);
            let error = SqlError::new(SqlState::DUPLICATE_TABLE, error);
            if !if_missing {
                return Err(error.into());
            }
            self.skip(error, out);
            return done("CREATE TABLE AS");
        }
        let planned = self.plan(query, text, &[]).await?;
        if planned.write.is_some() || !planned.parameters.is_empty() {
            return Err(analyze::unsupported("CREATE TABLE AS of this statement").into());
        }
        let mut table = Table::new(schema, range.relname.clone());
        table.columns = columns(&planned, &strings(&into.col_names))?;
        check_width(&table)?;
        options(&mut table, &into.options)?;
        table.id = self.new_id().await?;
        table.rows = table.id;
        self.keep_table(table).await?;
        if into.skip_data {
            return done("CREATE TABLE AS");
        }
        let mut insert = InsertStmt {
            relation: Some(range.clone()),
            select_stmt: Some(Box::new(query.clone())),
            ..InsertStmt::default()
        };
        insert.set_override(OverridingKind::OverridingNotSet);
        let insert = Node { node: Some(NodeEnum::InsertStmt(Box::new(insert))) };
        let planned = self.plan(&insert, text, &[]).await?;
        let count = self.write_of(&planned).await?;
        done(&format!("SELECT {count}"))
    }
}

/// The columns that the rows of a query make, the first of which get these names.
fn columns(query: &Query, names: &[&str]) -> Result<Vec<Column>, SqlError> {
    if names.len() > query.columns.len() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "too many column names were specified"));
    }
    let mut columns: Vec<Column> = Vec::new();
    for (place, column) in query.columns.iter().enumerate() {
        let name = names.get(place).copied().unwrap_or(&column.name);
        if columns.iter().any(|other| other.name == name) {
            let error = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, error));
        }
        if matches!(column.oid, Oid::VOID | Oid::RECORD | Oid::UNKNOWN) {
            let error = format!("column \"{name}\" has pseudo-type {}", column.oid.display());
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, error));
        }
        columns.push(Column::new(name, column.oid, column.modifier));
    }
    Ok(columns)
}
