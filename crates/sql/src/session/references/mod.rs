//! Foreign keys, when rows are written.
//!
//! | module | has |
//! |---|---|
//! | here | what a statement has done with keys, and what follows from it |
//! | `parent` | whether a key is there |
//! | `deferred` | what is tested when the transaction ends |
//!
//! A statement notes the keys that its rows name and those that are gone, and when it has written
//! all rows, looks: every key that is named has to be there, which is a read by key; and rows that
//! name a key which is gone are treated as the constraint says, by statements of this transaction,
//! which are the ones that PostgreSQL runs (they stand in the context of errors). What such a
//! statement has done is looked at in turn.
//!
//! Nothing is locked. What was looked at belongs to what the transaction has read, so one that
//! takes a key away and one that names it cannot both commit.

mod deferred;
mod parent;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub(super) use deferred::Deferrals;
pub(super) use parent::{is_comparable, is_same};

use super::conversation::Session;
use super::writing::whole;
use super::{Stop, World};
use crate::analyze::Query;
use crate::catalog::{Action, Reference, Table};
use crate::execute::rows::{Key, Row};
use crate::functions::confused;
use crate::parse;
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};
use deferred::Pending;

/// Keys that are noted before they are looked up, so that they do not take too much memory.
const NAMED_MAX: usize = 4096;

/// What a statement has done with keys.
#[derive(Default)]
pub(super) struct Changes {
    /// Keys that rows name now, with the place of the constraint among the table's: each with the
    /// number of the change that named it first.
    named: BTreeMap<(usize, Key), usize>,
    /// How many changes were noted.
    noted: usize,
    /// How many of them were not there when they were looked up.
    missing: usize,
    /// All columns of rows that are gone, and of what is in their place.
    gone: Vec<(Row, Option<Row>)>,
}

impl Changes {
    /// Notes a row that is changed, new if there was none before, or gone if there is none after.
    /// Both have the columns that are there.
    pub(super) fn note(&mut self, table: &Table, before: Option<&[Datum]>, after: Option<&[Datum]>) {
        if table.references.is_empty() && table.referrers.is_empty() {
            return;
        }
        let before = before.map(|row| whole(table, row).into_owned());
        let after = after.map(|row| whole(table, row).into_owned());
        self.noted += 1;
        for (place, reference) in table.references.iter().enumerate() {
            let key = |row: &Row| Key(values_of(row, &reference.columns));
            let Some(now) = after.as_ref().map(key) else { continue };
            if before.as_ref().map(key).as_ref() != Some(&now) {
                self.named.entry((place, now)).or_insert(self.noted);
            }
        }
        if let Some(before) = before.filter(|_| !table.referrers.is_empty()) {
            self.gone.push((before, after));
        }
    }
}

/// The values of a row's columns at some positions.
fn values_of(row: &[Datum], positions: &[u16]) -> Row {
    positions.iter().map(|at| row.get(usize::from(*at)).cloned().unwrap_or(Datum::Null)).collect()
}

impl<W: World> Session<'_, W> {
    /// Looks up keys that were noted, if there are many.
    pub(super) async fn look_up_keys(
        &mut self,
        table: &Arc<Table>,
        changes: &mut Changes,
    ) -> Result<(), Stop> {
        // Those that were missing are not looked up again and again.
        if changes.named.len() < NAMED_MAX + 2 * changes.missing {
            return Ok(());
        }
        let named = std::mem::take(&mut changes.named);
        for (place, keys) in by_place(&named) {
            let reference = table.references.get(place).ok_or_else(confused)?;
            let missing = self.missing(table, reference, keys).await?;
            // They may come with later rows.
            changes.named.extend(missing.into_iter().map(|key| {
                let wanted = (place, Key(key));
                let number = named.get(&wanted).copied().unwrap_or_default();
                (wanted, number)
            }));
        }
        changes.missing = changes.named.len();
        Ok(())
    }

    /// Draws the consequences of what a statement has done.
    pub(super) async fn enforce(&mut self, table: &Arc<Table>, changes: Changes) -> Result<(), Stop> {
        // What consequences have done comes behind what was there before, as in PostgreSQL.
        let mut queue = Queue::from([(Arc::clone(table), changes)]);
        while let Some((table, Changes { named, gone, .. })) = queue.pop_front() {
            if !gone.is_empty() {
                for referrer in self.referrers_of(&table).await? {
                    for reference in referrer.references.iter().filter(|it| it.names(&table)) {
                        let between = Between { parent: &table, child: &referrer, reference };
                        self.treat(&between, &gone, &mut queue).await?;
                    }
                }
            }
            // The error tells the key that was named first.
            let mut all = Vec::new();
            for (place, keys) in by_place(&named) {
                let reference = table.references.get(place).ok_or_else(confused)?;
                for key in self.missing(&table, reference, keys).await? {
                    let wanted = (place, Key(key));
                    all.push((named.get(&wanted).copied().unwrap_or_default(), wanted));
                }
            }
            all.sort();
            for (_, (place, Key(key))) in all {
                let reference = table.references.get(place).ok_or_else(confused)?;
                if !self.is_deferred(reference) {
                    return Err(self.not_present(&table, reference, &key)?.into());
                }
                self.data.deferrals.put_off(Pending::of(&table, reference, key, false));
            }
        }
        Ok(())
    }

    /// Treats the rows of a table that name keys of another which are gone.
    async fn treat(
        &mut self,
        between: &Between<'_>,
        gone: &[(Row, Option<Row>)],
        queue: &mut Queue,
    ) -> Result<(), Stop> {
        let reference = between.reference;
        let (mut deleted, mut updated) = (BTreeSet::new(), BTreeMap::new());
        for (before, after) in gone {
            let key = Key(values_of(before, &reference.to_columns));
            if key.0.iter().any(Datum::is_null) {
                continue;
            }
            match after.as_ref().map(|after| Key(values_of(after, &reference.to_columns))) {
                None => drop(deleted.insert(key)),
                Some(now) if now == key => {}
                Some(now) => drop(updated.insert(key, now)),
            }
        }
        let deleted = deleted.into_iter().map(|Key(key)| (key, None)).collect();
        self.act_on(between, reference.on_delete, deleted, queue).await?;
        let updated = updated.into_iter().map(|(Key(key), Key(now))| (key, Some(now))).collect();
        self.act_on(between, reference.on_update, updated, queue).await
    }

    /// Does what a constraint says about keys that are gone, with what is in their place.
    async fn act_on(
        &mut self,
        between: &Between<'_>,
        action: Action,
        keys: Vec<(Row, Option<Row>)>,
        queue: &mut Queue,
    ) -> Result<(), Stop> {
        let Between { parent, child, reference } = *between;
        if keys.is_empty() {
            return Ok(());
        }
        if matches!(action, Action::NoAction | Action::Restrict) {
            let waits = action == Action::NoAction;
            return self.refuse_referenced(between, keys, waits).await;
        }
        let is_deletion = keys.iter().all(|(_, now)| now.is_none());
        let text = consequence(child, reference, action, is_deletion);
        let types = || reference.to_columns.iter().map(|at| type_at(parent, *at));
        let is_cascade = action == Action::Cascade && !is_deletion;
        let given: Vec<Oid> = types().chain(types().filter(|_| is_cascade)).collect();
        let query = self.plan_text(&text, &given).await?;
        let mut left = Vec::new();
        for (key, now) in keys {
            let values = match now {
                Some(now) if is_cascade => now.into_iter().chain(key.iter().cloned()).collect(),
                _ => key.clone(),
            };
            let done = self.run_inside(&query, values).await;
            let done = done.map_err(|stop| in_context(stop, &text))?;
            queue.push_back((Arc::clone(child), done.changes));
            left.push((key, None));
        }
        match action {
            // A row whose key is that of its defaults is as it was.
            Action::SetDefault => self.refuse_referenced(between, left, true).await,
            _ => Ok(()),
        }
    }

    /// Refuses that keys are gone which rows name; `waits` if another row may have got the key, and
    /// the constraint may be deferred.
    async fn refuse_referenced(
        &mut self,
        between: &Between<'_>,
        keys: Vec<(Row, Option<Row>)>,
        waits: bool,
    ) -> Result<(), Stop> {
        let Between { parent, child, reference } = *between;
        let mut keys: Vec<Row> = keys.into_iter().map(|(key, _)| key).collect();
        if waits && self.is_deferred(reference) {
            let pending = keys.into_iter().map(|key| Pending::of(child, reference, key, true));
            pending.for_each(|pending| self.data.deferrals.put_off(pending));
            return Ok(());
        }
        if waits {
            keys = self.absent(parent, reference, keys).await?;
        }
        if keys.is_empty() {
            return Ok(());
        }
        let given: Vec<Oid> = reference.to_columns.iter().map(|at| type_at(parent, *at)).collect();
        let query = self.naming_query(child, reference, &given).await?;
        for key in keys {
            if !self.run_inside(&query, key.clone()).await?.rows.is_empty() {
                return Err(self.still_referenced(parent, child, reference, &key)?.into());
            }
        }
        Ok(())
    }

    /// The query of a row that names a key, whose values have these types.
    async fn naming_query(
        &mut self,
        child: &Table,
        reference: &Reference,
        given: &[Oid],
    ) -> Result<Query, Stop> {
        let table = named(&child.schema, &child.name);
        let condition = condition(child, reference, 1);
        self.plan_text(&format!("SELECT 1 FROM ONLY {table} WHERE {condition} LIMIT 1"), given).await
    }

    /// Whether a row names a key, whose values have the types of the columns of `table`, at these
    /// positions.
    async fn is_named(
        &mut self,
        child: &Table,
        reference: &Reference,
        key: &[Datum],
        (table, positions): (&Table, &[u16]),
    ) -> Result<bool, Stop> {
        let given: Vec<Oid> = positions.iter().map(|at| type_at(table, *at)).collect();
        let query = self.naming_query(child, reference, &given).await?;
        Ok(!self.run_inside(&query, key.to_vec()).await?.rows.is_empty())
    }

    /// Plans a statement of the session's own.
    async fn plan_text(&mut self, text: &str, given: &[Oid]) -> Result<Query, Stop> {
        let statement = parse::parse(text)?.pop().ok_or_else(confused)?;
        self.plan(&statement.node, text, given).await
    }

    /// Runs a statement of the session's own that writes, with what follows. Returns how many rows.
    pub(super) async fn write_of(&mut self, query: &Query) -> Result<u64, Stop> {
        let Some(write) = &query.write else { return Err(confused().into()) };
        let done = self.run_inside(query, Vec::new()).await?;
        self.enforce(&write.table, done.changes).await?;
        Ok(done.count)
    }

    /// Runs a statement of the session's own.
    async fn run_inside(&mut self, query: &Query, parameters: Vec<Datum>) -> Result<Done, Stop> {
        let mut run = query.start(parameters);
        let rows = self.next_rows(query, &mut run, usize::MAX).await?;
        if query.write.is_none() {
            return Ok(Done { rows, ..Done::default() });
        }
        let (count, changes) = self.write_inside(query, &run, rows).await?;
        Ok(Done { rows: Vec::new(), count, changes })
    }

    /// The error of a row that names a key which is not there.
    fn not_present(&self, table: &Table, reference: &Reference, key: &[Datum]) -> Result<SqlError, SqlError> {
        let Reference { name, to_table, columns, .. } = reference;
        let error = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
            table.name
        );
        let error = SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, error).about(table.constraint(name));
        if key.iter().any(Datum::is_null) {
            return Ok(error.detail("MATCH FULL does not allow mixing of null and nonnull key values."));
        }
        let (names, shown) = self.shown_key(table, columns, key)?;
        Ok(error.detail(format!("Key ({names})=({shown}) is not present in table \"{to_table}\".")))
    }

    /// The error of a key that is gone and named.
    fn still_referenced(
        &self,
        parent: &Table,
        child: &Table,
        reference: &Reference,
        key: &[Datum],
    ) -> Result<SqlError, SqlError> {
        let name = &reference.name;
        let error = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{name}\" on table \"{}\"",
            parent.name, child.name
        );
        let (names, shown) = self.shown_key(parent, &reference.to_columns, key)?;
        let error = SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, error).about(child.constraint(name));
        Ok(error
            .detail(format!("Key ({names})=({shown}) is still referenced from table \"{}\".", child.name)))
    }

    /// The names and the values of columns at some positions.
    fn shown_key(
        &self,
        table: &Table,
        positions: &[u16],
        key: &[Datum],
    ) -> Result<(String, String), SqlError> {
        let columns = || positions.iter().filter_map(|at| table.columns.get(usize::from(*at)));
        let names: Vec<&str> = columns().map(|column| column.name.as_str()).collect();
        Ok((names.join(", "), self.shown(columns().zip(key), "null")?))
    }
}

/// What a statement of the session's own has come to.
#[derive(Default)]
struct Done {
    /// The rows of one that only reads.
    rows: Vec<Row>,
    /// How many rows are written.
    count: u64,
    /// What it has done with keys.
    changes: Changes,
}

/// A foreign key, the table whose rows name keys, and the one whose keys they are.
#[derive(Clone, Copy)]
struct Between<'a> {
    parent: &'a Arc<Table>,
    child: &'a Arc<Table>,
    reference: &'a Reference,
}

/// What statements have done whose consequences have not been drawn.
type Queue = VecDeque<(Arc<Table>, Changes)>;

/// An error with the statement of the session's own that it has come up in.
fn in_context(stop: Stop, text: &str) -> Stop {
    match stop {
        Stop::Error(error) => {
            let context = Some(format!("SQL statement \"{text}\""));
            Stop::Error(SqlError { context, ..error })
        }
        other => other,
    }
}

impl Reference {
    /// Whether it names keys of a table.
    pub(super) fn names(&self, table: &Table) -> bool {
        self.to_schema == table.schema && self.to_table == table.name
    }
}

fn by_place(named: &BTreeMap<(usize, Key), usize>) -> BTreeMap<usize, Vec<Row>> {
    let mut places: BTreeMap<usize, Vec<Row>> = BTreeMap::new();
    for (place, Key(key)) in named.keys() {
        places.entry(*place).or_default().push(key.clone());
    }
    places
}

fn type_at(table: &Table, position: u16) -> Oid {
    table.columns.get(usize::from(position)).map_or(Oid::UNKNOWN, |column| column.oid)
}

fn in_quotes(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn named(schema: &str, table: &str) -> String {
    format!("{}.{}", in_quotes(schema), in_quotes(table))
}

/// The names of the columns that name a key.
fn naming(child: &Table, reference: &Reference) -> Vec<String> {
    let columns = reference.columns.iter().filter_map(|at| child.columns.get(usize::from(*at)));
    columns.map(|column| in_quotes(&column.name)).collect()
}

/// That the columns have the values of parameters, from this one on.
fn condition(child: &Table, reference: &Reference, first: usize) -> String {
    let equal = |(number, name): (usize, String)| format!("${number} OPERATOR(pg_catalog.=) {name}");
    let all: Vec<String> = (first..).zip(naming(child, reference)).map(equal).collect();
    all.join(" AND ")
}

/// The statement that treats rows which name a key, as PostgreSQL has it.
fn consequence(child: &Table, reference: &Reference, action: Action, is_deletion: bool) -> String {
    let table = named(&child.schema, &child.name);
    let columns = naming(child, reference);
    let set = |value: &str| {
        let all: Vec<String> = columns.iter().map(|name| format!("{name} = {value}")).collect();
        all.join(", ")
    };
    match action {
        Action::Cascade if is_deletion => {
            format!("DELETE FROM ONLY {table} WHERE {}", condition(child, reference, 1))
        }
        Action::Cascade => {
            let set: Vec<String> =
                (1..).zip(&columns).map(|(number, name): (usize, _)| format!("{name} = ${number}")).collect();
            let condition = condition(child, reference, columns.len() + 1);
            format!("UPDATE ONLY {table} SET {} WHERE {condition}", set.join(", "))
        }
        Action::SetDefault => {
            format!("UPDATE ONLY {table} SET {} WHERE {}", set("DEFAULT"), condition(child, reference, 1))
        }
        _ => format!("UPDATE ONLY {table} SET {} WHERE {}", set("NULL"), condition(child, reference, 1)),
    }
}
