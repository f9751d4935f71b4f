//! `COPY ... FROM STDIN` and `COPY ... TO STDOUT`.
//!
//! Rows that come are parsed one by one ([`lines`](super::lines), [`tuples`](super::tuples)) and
//! written some hundred at a time, in the transaction that the statement is in: if one is refused,
//! none is there. What follows the statement in a simple query waits until the client has sent the
//! last row.

use std::rc::Rc;

use pg_query::NodeEnum;
use pg_query::protobuf::{CopyStmt, Node};

use super::conversation::Session;
use super::lines::{Form, Lines};
use super::portal::Work;
use super::references::Changes;
use super::statement::Rest;
use super::tuples::Tuples;
use super::writing::Writing;
use super::{Line, Stop, Stream, World};
use crate::analyze::conflict::OnConflict;
use crate::analyze::names::strings;
use crate::analyze::plan::{Expr, Plan};
use crate::analyze::write::{Kind, Write};
use crate::analyze::{self, Query, stored};
use crate::catalog::Table;
use crate::execute::Run;
use crate::functions::{Body, confused};
use crate::parse;
use crate::types::{self, Datum, Format, Oid};
use crate::wire::backend;
use crate::{SqlError, SqlState};

/// Rows that are written together.
const CHUNK: usize = 256;

/// Bytes that wait for more before rows are made of them.
const BATCH_BYTES: usize = 64 << 10;

/// Rows that are coming.
pub(super) struct Copying {
    query: Query,
    run: Run,
    coming: Coming,
    /// Names and types of the columns that come.
    columns: Vec<(String, Oid)>,
    /// What each column of a row is, over what has come.
    exprs: Vec<Expr>,
    /// Whether these can be evaluated twice.
    is_simple: bool,
    count: u64,
    /// What they have done with keys of constraints.
    changes: Changes,
    /// What of the message is to be run afterwards; none in the extended protocol.
    pub rest: Option<Rest>,
}

/// Rows in one form or the other.
enum Coming {
    Lines(Lines),
    Tuples(Tuples),
}

/// The fields of a row as they come.
enum Fields {
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Coming {
    fn take(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        match self {
            Coming::Lines(lines) => lines.take(bytes),
            Coming::Tuples(tuples) => tuples.take(bytes),
        }
    }

    fn waiting(&self) -> usize {
        match self {
            Coming::Lines(lines) => lines.waiting(),
            Coming::Tuples(tuples) => tuples.waiting(),
        }
    }

    fn number(&self) -> usize {
        match self {
            Coming::Lines(lines) => lines.number(),
            Coming::Tuples(tuples) => tuples.number(),
        }
    }

    fn next(&mut self, is_end: bool) -> Result<Option<Fields>, SqlError> {
        Ok(match self {
            Coming::Lines(lines) => lines.next(is_end)?.map(Fields::Texts),
            Coming::Tuples(tuples) => tuples.next(is_end)?.map(Fields::Bytes),
        })
    }

    /// Which row came last, for errors.
    fn place(&self) -> String {
        match self {
            Coming::Lines(lines) => lines.place(),
            Coming::Tuples(tuples) => tuples.place(),
        }
    }

    /// The same with its text, if it has one.
    fn place_with_text(&self) -> String {
        match self {
            Coming::Lines(lines) => lines.place_with_text(),
            Coming::Tuples(tuples) => tuples.place(),
        }
    }
}

impl Copying {
    /// The same with what is to be run afterwards.
    pub(super) fn before(self, rest: Rest) -> Copying {
        Copying { rest: Some(rest), ..self }
    }
}

impl<W: World> Session<'_, W> {
    /// Begins to take rows.
    pub(super) async fn copy_in(&mut self, copy: &CopyStmt, out: &mut Vec<u8>) -> Result<Copying, Stop> {
        refuse_files(copy)?;
        if copy.where_clause.is_some() {
            return Err(analyze::unsupported("COPY with WHERE").into());
        }
        let form = Form::of(&copy.options)?;
        self.open_to_write("COPY FROM").await?;
        let table = self.copied_table(copy).await?;
        let places = columns_of(&table, &copy.attlist)?;
        let exprs = self.analyzed(|names| stored::copied(&table, &places, !form.binary, names)).await?;
        let conditions = self.analyzed(|names| stored::conditions(&table, names)).await?;
        let asks = |expr: &Expr| matches!(expr, Expr::Call { function, .. } if matches!(function.body, Body::Session(_)));
        let is_simple = !exprs.iter().any(|expr| expr.any(&asks));
        let all: Vec<(String, Oid)> =
            table.live().map(|(_, column)| (column.name.clone(), column.oid)).collect();
        let columns: Vec<(String, Oid)> =
            places.iter().filter_map(|place| all.get(*place).cloned()).collect();
        backend::copy_begins(out, b'G', form.binary, columns.len());
        let name = table.name.clone();
        let coming = match form.binary {
            true => {
                let names = columns.iter().map(|(name, _)| name.clone());
                Coming::Tuples(Tuples::new(name, names.collect()))
            }
            false => Coming::Lines(Lines::new(form, name, columns.len())),
        };
        let write = Write { conditions, table, kind: Kind::Insert(OnConflict::refuse()), returning: None };
        let query = Query {
            parameters: Vec::new(),
            columns: Vec::new(),
            plan: Plan::Values(Vec::new()),
            write: Some(write),
            tables: Vec::new(),
            objects: None,
            sequences: Vec::new(),
            subqueries: 0,
            locks: None,
            failure: None,
            work: 0,
        };
        let run = query.start(Vec::new());
        Ok(Copying {
            query,
            run,
            coming,
            columns,
            exprs,
            is_simple,
            count: 0,
            changes: Changes::default(),
            rest: None,
        })
    }

    /// Takes bytes of rows.
    pub(super) async fn copied<S: Stream>(
        &mut self,
        copying: &mut Copying,
        bytes: &[u8],
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        copying.coming.take(bytes)?;
        self.fuel.burn_bytes(bytes.len());
        // Clients send lines one by one; rows are written many at a time.
        match copying.coming.waiting() < BATCH_BYTES {
            true => Ok(()),
            false => self.write_lines(copying, false, line).await,
        }
    }

    /// The client has sent all rows. Returns what CommandComplete says.
    pub(super) async fn copy_done<S: Stream>(
        &mut self,
        copying: &mut Copying,
        line: &mut Line<'_, S>,
    ) -> Result<String, Stop> {
        self.write_lines(copying, true, line).await?;
        let Some(write) = &copying.query.write else { return Err(confused().into()) };
        self.enforce(&write.table, std::mem::take(&mut copying.changes)).await?;
        Ok(format!("COPY {}", copying.count))
    }

    async fn write_lines<S: Stream>(
        &mut self,
        copying: &mut Copying,
        is_end: bool,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        loop {
            let mut rows = Vec::new();
            let first = copying.coming.number() + 1;
            while rows.len() < CHUNK
                && let Some(fields) = copying.coming.next(is_end)?
            {
                let row = self.row_of(copying, fields).await?;
                self.check_copied(copying, &row).await?;
                rows.push(row);
            }
            if rows.is_empty() {
                return Ok(());
            }
            let Some(write) = &copying.query.write else { return Err(confused().into()) };
            let mut writing = Writing::new(&copying.query, write, &copying.run);
            writing.is_checked = true;
            writing.changes = std::mem::take(&mut copying.changes);
            let written = self.insert(&mut writing, &OnConflict::refuse(), rows).await;
            copying.count += writing.count();
            self.look_up_keys(&write.table, &mut writing.changes).await?;
            copying.changes = std::mem::take(&mut writing.changes);
            written.map_err(|stop| match stop {
                Stop::Error(error) => {
                    let line = first.saturating_add(writing.at());
                    let context = Some(format!("COPY {}, line {line}", write.table.name));
                    Stop::Error(SqlError { context, ..error })
                }
                other => other,
            })?;
            self.fuel.burn(CHUNK);
            let deadline_us = self.deadline_us();
            self.pause_if_spent(deadline_us, line).await?;
        }
    }

    /// Tests a row when its line is at hand, which an error shows.
    async fn check_copied(&mut self, copying: &Copying, row: &[Datum]) -> Result<(), Stop> {
        let Some(Write { table, conditions, .. }) = &copying.query.write else {
            return Err(confused().into());
        };
        let tested = match self.check_not_null(table, row) {
            Ok(()) => self.check_conditions(table, conditions, row).await,
            Err(error) => Err(error.into()),
        };
        tested.map_err(|stop| match stop {
            Stop::Error(error) => {
                Stop::Error(SqlError { context: Some(copying.coming.place_with_text()), ..error })
            }
            other => other,
        })
    }

    /// A row of its fields.
    async fn row_of(&mut self, copying: &Copying, fields: Fields) -> Result<Vec<Datum>, Stop> {
        let texts = match fields {
            Fields::Texts(texts) => texts_of(copying, texts)?,
            Fields::Bytes(fields) => self.values_of(copying, fields)?,
        };
        if copying.is_simple
            && let Ok(row) = self.evaluate_in(&copying.run, &copying.exprs, &texts).await
        {
            return Ok(row);
        }
        // One by one, to tell which it is that fails.
        let mut row = Vec::new();
        for expr in &copying.exprs {
            let value = self.evaluate_in(&copying.run, std::slice::from_ref(expr), &texts).await;
            row.extend(value.map_err(|stop| match stop {
                Stop::Error(error) => {
                    let mut place = copying.coming.place();
                    if let Some(Datum::Text(text)) = stored::column_read(expr).and_then(|at| texts.get(at))
                        && let Some((name, _)) =
                            stored::column_read(expr).and_then(|at| copying.columns.get(at))
                    {
                        place = format!("{place}, column {name}: \"{text}\"");
                    }
                    Stop::Error(SqlError { context: Some(place), ..error })
                }
                other => other,
            })?);
        }
        Ok(row)
    }

    /// The values of fields in binary form.
    fn values_of(&self, copying: &Copying, fields: Vec<Option<Vec<u8>>>) -> Result<Vec<Datum>, SqlError> {
        let fields = fields.into_iter().zip(&copying.columns);
        let value = |(field, (name, oid)): (Option<Vec<u8>>, &(String, Oid))| match field {
            None => Ok(Datum::Null),
            Some(bytes) => types::decode(*oid, Format::Binary, &bytes, &self.style).map_err(|error| {
                let place = copying.coming.place();
                SqlError { context: Some(format!("{place}, column {name}")), ..error }
            }),
        };
        fields.map(value).collect()
    }

    async fn copied_table(&mut self, copy: &CopyStmt) -> Result<std::sync::Arc<Table>, Stop> {
        let range = copy.relation.as_ref().ok_or_else(confused)?;
        let schema = super::names::schema_of(&range.schemaname).to_owned();
        let table = self.look_up_table(schema, range.relname.clone()).await?;
        table.ok_or_else(|| {
            let error = format!("relation \"{}\" does not exist", range.relname);
            SqlError::new(SqlState::UNDEFINED_TABLE, error).into()
        })
    }

    /// What makes the rows that are sent.
    pub(super) async fn copy_out(&mut self, copy: &CopyStmt, out: &mut Vec<u8>) -> Result<Work, Stop> {
        refuse_files(copy)?;
        let form = Form::of(&copy.options)?;
        let query = match &copy.query {
            Some(query) => self.plan(query, "", &[]).await?,
            None => {
                let table = self.copied_table(copy).await?;
                let places = columns_of(&table, &copy.attlist)?;
                let names: Vec<String> = (places.iter())
                    .filter_map(|place| table.live().nth(*place))
                    .map(|(_, column)| quoted(&column.name))
                    .collect();
                let text = format!(
                    "SELECT {} FROM {}.{}",
                    names.join(", "),
                    quoted(&table.schema),
                    quoted(&table.name)
                );
                let node: Option<Rc<Node>> = parse::parse(&text)?.pop().map(|statement| statement.node);
                let node = node.ok_or_else(confused)?;
                self.plan(&node, &text, &[]).await?
            }
        };
        if query.write.is_some() {
            return Err(analyze::unsupported("COPY of a statement that writes").into());
        }
        backend::copy_begins(out, b'H', form.binary, query.columns.len());
        if let Some(header) = form.header(query.columns.iter().map(|column| column.name.as_str())) {
            backend::copy_data(out, &header)?;
        }
        let run = query.start(Vec::new());
        Ok(Work::Copy(Rc::new(query), run, form))
    }
}

/// The fields of a line, as many as there are columns.
fn texts_of(copying: &Copying, fields: Vec<Option<String>>) -> Result<Vec<Datum>, SqlError> {
    let broken = |error: &str| {
        let error = SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, error);
        SqlError { context: Some(copying.coming.place_with_text()), ..error }
    };
    if fields.len() > copying.columns.len() {
        return Err(broken("extra data after last expected column"));
    }
    if let Some((missing, _)) = copying.columns.get(fields.len()) {
        return Err(broken(&format!("missing data for column \"{missing}\"")));
    }
    Ok(fields.into_iter().map(|field| field.map_or(Datum::Null, Datum::text)).collect())
}

/// Whether a statement takes rows from the client.
pub(super) fn takes_rows(node: &NodeEnum) -> Option<&CopyStmt> {
    match node {
        NodeEnum::CopyStmt(copy) if copy.is_from => Some(copy),
        _ => None,
    }
}

fn refuse_files(copy: &CopyStmt) -> Result<(), SqlError> {
    if copy.is_program || !copy.filename.is_empty() {
        let error = "COPY to or from a file of the server is not permitted";
        let hint = "psql's \\copy command reads and writes files of the client.";
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, error).hint(hint));
    }
    Ok(())
}

/// Places, among the columns that are there, of those that are named; without any, of all.
fn columns_of(table: &Table, names: &[Node]) -> Result<Vec<usize>, SqlError> {
    if names.is_empty() {
        return Ok((0..table.live().count()).collect());
    }
    let mut places = Vec::new();
    for name in strings(names) {
        let place = table.live().position(|(_, column)| column.name == name);
        let place = place.ok_or_else(|| {
            let error = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            SqlError::new(SqlState::UNDEFINED_COLUMN, error)
        })?;
        if places.contains(&place) {
            let error = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, error));
        }
        places.push(place);
    }
    Ok(places)
}

/// A name as statements may have it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
