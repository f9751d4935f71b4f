//! Constraints that are tested when the transaction ends, and `SET CONSTRAINTS`.
//!
//! What is put off is a key that some row names, or named, and that is not there, or was not. At
//! the end there has to be no such row, or such a key. So it does not matter what was undone
//! meanwhile.

use std::collections::BTreeMap;

use pg_query::NodeEnum;
use pg_query::protobuf::ConstraintsSetStmt;

use super::super::conversation::Session;
use super::super::names::schema_of;
use super::super::{Stop, World};
use crate::catalog::{Reference, Relation, Table};
use crate::execute::rows::{Key, Row};
use crate::functions::confused;
use crate::{SqlError, SqlState};

/// A key that has to be looked at: the schema and the name of the table whose rows name it, the
/// name of the constraint, and the key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pending {
    table: (String, String),
    reference: String,
    key: Key,
    /// Whether the key was taken away; otherwise a row has named it.
    is_gone: bool,
    /// The schema and the name of the table that was written.
    written: (String, String),
}

impl Pending {
    pub(super) fn of(table: &Table, reference: &Reference, key: Row, is_gone: bool) -> Pending {
        let table = (table.schema.clone(), table.name.clone());
        let written = match is_gone {
            true => (reference.to_schema.clone(), reference.to_table.clone()),
            false => table.clone(),
        };
        Pending { table, reference: reference.name.clone(), key: Key(key), is_gone, written }
    }
}

/// What a transaction has put off, and which constraints it puts off.
#[derive(Default)]
pub struct Deferrals {
    /// Each with the number that it got when it was put off first.
    pending: BTreeMap<Pending, usize>,
    /// How many numbers were given.
    numbered: usize,
    /// Whether all that may be are deferred; none: as they were made.
    all: Option<bool>,
    /// The same for constraints of a name.
    by_name: BTreeMap<String, bool>,
}

impl Deferrals {
    pub(super) fn put_off(&mut self, pending: Pending) {
        self.numbered += 1;
        self.pending.entry(pending).or_insert(self.numbered);
    }

    /// Whether nothing is put off, nor is to be otherwise than it was made.
    pub(in crate::session) fn are_none(&self) -> bool {
        self.pending.is_empty() && self.all.is_none() && self.by_name.is_empty()
    }

    /// Whether something is put off since a table was written.
    pub(in crate::session) fn concern(&self, table: &Table) -> bool {
        let is_it = |(schema, name): &(String, String)| *schema == table.schema && *name == table.name;
        self.pending.keys().any(|pending| is_it(&pending.written))
    }
}

impl<W: World> Session<'_, W> {
    /// Whether the transaction puts a constraint off.
    pub(super) fn is_deferred(&self, reference: &Reference) -> bool {
        let said = self.data.deferrals.by_name.get(&reference.name).copied().or(self.data.deferrals.all);
        reference.is_deferrable && said.unwrap_or(reference.is_deferred)
    }

    /// Tests what was put off, in the order in which it was.
    pub(in crate::session) async fn test_deferred(&mut self) -> Result<(), Stop> {
        let pending = std::mem::take(&mut self.data.deferrals.pending);
        let mut pending: Vec<(usize, Pending)> =
            pending.into_iter().map(|(it, number)| (number, it)).collect();
        pending.sort();
        for (_, pending) in pending {
            let (schema, name) = pending.table.clone();
            let Some(child) = self.look_up_table(schema, name).await? else { continue };
            let Some(reference) = child.references.iter().find(|it| it.name == pending.reference) else {
                continue;
            };
            let Key(key) = pending.key;
            let (to_schema, to_table) = (reference.to_schema.clone(), reference.to_table.clone());
            let parent = self.look_up_table(to_schema, to_table).await?.ok_or_else(confused)?;
            if pending.is_gone {
                let absent = self.absent(&parent, reference, vec![key.clone()]).await?;
                if !absent.is_empty()
                    && self.is_named(&child, reference, &key, (&parent, &reference.to_columns)).await?
                {
                    return Err(self.still_referenced(&parent, &child, reference, &key)?.into());
                }
            } else {
                let missing = self.missing(&child, reference, vec![key.clone()]).await?;
                let is_mixed = key.iter().any(crate::types::Datum::is_null);
                if !missing.is_empty()
                    && (is_mixed
                        || self.is_named(&child, reference, &key, (&child, &reference.columns)).await?)
                {
                    return Err(self.not_present(&child, reference, &key)?.into());
                }
            }
        }
        Ok(())
    }

    /// `SET CONSTRAINTS`
    pub(in crate::session) async fn set_constraints(&mut self, set: &ConstraintsSetStmt) -> Result<(), Stop> {
        if set.constraints.is_empty() {
            self.data.deferrals.all = Some(set.deferred);
            self.data.deferrals.by_name.clear();
        }
        for node in &set.constraints {
            let Some(NodeEnum::RangeVar(name)) = &node.node else { return Err(confused().into()) };
            let (schema, name) = (schema_of(&name.schemaname).to_owned(), name.relname.clone());
            let mut found = None;
            for relation in self.all_relations().await? {
                let Relation::Table(table) = relation else { continue };
                if table.schema == schema {
                    let its = table.references.iter().filter(|reference| reference.name == name);
                    its.for_each(|reference| {
                        found = found.or(Some(false)).map(|it| it || reference.is_deferrable)
                    });
                    let others = table.checks.iter().map(|check| &check.name).chain([&table.primary_name]);
                    found = found.or(others.into_iter().any(|other| *other == name).then_some(false));
                }
            }
            match found {
                None => {
                    let error = format!("constraint \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, error).into());
                }
                Some(false) => {
                    let error = format!("constraint \"{name}\" is not deferrable");
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, error).into());
                }
                Some(true) => drop(self.data.deferrals.by_name.insert(name, set.deferred)),
            }
        }
        if set.deferred { Ok(()) } else { self.test_immediate().await }
    }

    /// Tests what was put off and is put off no more.
    async fn test_immediate(&mut self) -> Result<(), Stop> {
        let all = std::mem::take(&mut self.data.deferrals.pending);
        let mut kept = BTreeMap::new();
        for (pending, number) in all {
            let (schema, name) = pending.table.clone();
            let child = self.look_up_table(schema, name).await?;
            let reference = child
                .as_ref()
                .and_then(|child| child.references.iter().find(|it| it.name == pending.reference));
            if reference.is_some_and(|reference| self.is_deferred(reference)) {
                kept.insert(pending, number);
            } else {
                self.data.deferrals.pending.insert(pending, number);
            }
        }
        self.test_deferred().await?;
        self.data.deferrals.pending = kept;
        Ok(())
    }
}
