//! Actions of `ALTER TABLE` that concern constraints.

use std::sync::Arc;

use pg_query::protobuf::{ConstrType, Constraint};

use super::alter::Scene;
use super::drop::Dependent;
use super::elements::{self, Elements, constraint_names};
use super::index::{NewIndex, constraint_parts};
use super::rewrite::Change;
use super::{Key, place_by_key, set_primary_key};
use crate::analyze;
use crate::catalog::{Check, Reference, Table};
use crate::functions::confused;
use crate::session::conversation::Session;
use crate::session::references::is_same;
use crate::session::{Stop, World};
use crate::{SqlError, SqlState};

/// How something is dropped on which others may depend.
pub(super) struct Cut<'a> {
    /// What is dropped.
    pub dropped: &'a str,
    /// What the others depend on.
    pub on: &'a str,
    /// Whether they go as well.
    pub cascades: bool,
}

impl<W: World> Session<'_, W> {
    pub(super) async fn add_constraint(
        &mut self,
        change: &mut Change,
        constraint: &Constraint,
        scene: &mut Scene<'_>,
    ) -> Result<(), Stop> {
        if constraint.contype() == ConstrType::ConstrCheck {
            return self.add_check(change, constraint, scene).await;
        }
        if !constraint.indexname.is_empty() {
            return Err(analyze::unsupported("a constraint of an index").into());
        }
        let mut elements = Elements::default();
        elements::table_constraint(constraint, &mut elements)?;
        if let Some(foreign) = elements.references.pop() {
            let name = self.add_reference(&mut change.table, &foreign).await?;
            if !constraint.skip_validation {
                change.named.push(name);
            }
            return Ok(());
        }
        let key = elements.keys.pop().ok_or_else(confused)?;
        self.add_key(change, key).await
    }

    pub(super) async fn add_check(
        &mut self,
        change: &mut Change,
        constraint: &Constraint,
        scene: &Scene<'_>,
    ) -> Result<(), Stop> {
        let name = &constraint.conname;
        if constraint_names(&change.table).contains(name) {
            let error =
                format!("constraint \"{name}\" for relation \"{}\" already exists", change.table.name);
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, error).into());
        }
        self.analyzed(|names| elements::look_at_checks(&change.table, &[constraint], scene.text, names))
            .await?;
        let check = elements::check(&change.table, constraint)?;
        let id = self.new_id().await?;
        if !constraint.skip_validation {
            change.tested.push(check.name.clone());
        }
        change.table.checks.push(Check { id, ..check });
        Ok(())
    }

    pub(super) async fn add_key(&mut self, change: &mut Change, key: Key) -> Result<(), Stop> {
        if key.is_primary {
            return self.add_primary_key(change, &key.columns, &key.name).await;
        }
        let parts = constraint_parts(&change.table, &key.columns)?;
        let new = NewIndex { name: key.name, parts, unique: true, is_constraint: true };
        let id = self.add_index(&mut change.table, new).await?;
        change.unfilled.push(id);
        Ok(())
    }

    pub(super) async fn add_primary_key(
        &mut self,
        change: &mut Change,
        columns: &[String],
        name: &str,
    ) -> Result<(), Stop> {
        if !change.table.primary.is_empty() {
            let error = format!("multiple primary keys for table \"{}\" are not allowed", change.table.name);
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, error).into());
        }
        set_primary_key(&mut change.table, columns)?;
        self.name_primary_key(&mut change.table, name).await?;
        place_by_key(&mut change.table);
        change.tests_null = true;
        change.rewrites = true;
        Ok(())
    }

    /// The foreign keys that name columns of a table.
    pub(super) async fn references_to(
        &mut self,
        table: &Table,
        concerns: impl Fn(&Reference) -> bool,
    ) -> Result<Vec<Dependent>, Stop> {
        let mut dependents = Vec::new();
        for referrer in self.referrers_of(table).await? {
            let to_it = referrer.references.iter().filter(|it| it.names(table) && concerns(it));
            dependents.extend(to_it.map(|it| Dependent::Reference(Arc::clone(&referrer), it.name.clone())));
        }
        Ok(dependents)
    }

    /// Cuts the foreign keys that name what is dropped, and what else depends on it, or refuses to.
    pub(super) async fn cut_references(
        &mut self,
        change: &mut Change,
        concerns: impl Fn(&Reference) -> bool,
        others: Vec<Dependent>,
        cut: Cut<'_>,
        scene: &mut Scene<'_>,
    ) -> Result<(), Stop> {
        let mut dependents = self.references_to(&change.table, &concerns).await?;
        dependents.extend(others);
        let dependents = dependents.into_iter().map(|dependent| (dependent, cut.on.to_owned())).collect();
        self.cut(dependents, Some(cut.dropped), cut.cascades, scene.out).await?;
        self.learn_referrers(change).await?;
        let old = Arc::clone(&change.old);
        change.table.references.retain(|it| !it.names(&old) || !concerns(it));
        learn_own_referrers(change);
        Ok(())
    }

    /// Takes over what has become of the list of referrers meanwhile.
    pub(super) async fn learn_referrers(&mut self, change: &mut Change) -> Result<(), Stop> {
        let (schema, name) = (change.old.schema.clone(), change.old.name.clone());
        if let Some(table) = self.look_up_table(schema, name).await? {
            change.table.referrers.clone_from(&table.referrers);
        }
        Ok(())
    }

    pub(super) async fn drop_primary_key(&mut self, change: &mut Change) -> Result<(), Stop> {
        self.write_down(&change.table.schema, &change.table.primary_name, None).await?;
        let table = &mut change.table;
        table.primary.clear();
        table.primary_name = format!("{}_pkey", table.name);
        table.primary_id = 0;
        place_by_key(table);
        change.rewrites = true;
        Ok(())
    }

    pub(super) async fn drop_constraint(
        &mut self,
        change: &mut Change,
        name: &str,
        if_there: bool,
        cascades: bool,
        scene: &mut Scene<'_>,
    ) -> Result<(), Stop> {
        let table = &mut change.table;
        if let Some(place) = table.checks.iter().position(|check| check.name == name) {
            table.checks.remove(place);
            return Ok(());
        }
        if let Some(place) = table.references.iter().position(|reference| reference.name == name) {
            let reference = table.references.remove(place);
            self.forget_referrer(&change.table, (&reference.to_schema, &reference.to_table)).await?;
            learn_own_referrers(change);
            return Ok(());
        }
        if !table.primary.is_empty() && table.primary_name == name {
            let primary = table.primary.clone();
            let is_key = |it: &Reference| is_same(&primary, &it.to_columns);
            let what = format!("constraint {name} on table {}", change.table.name);
            let on = format!("index {name}");
            let cut = Cut { dropped: &what, on: &on, cascades };
            self.cut_references(change, is_key, Vec::new(), cut, scene).await?;
            return self.drop_primary_key(change).await;
        }
        if table.indexes.iter().any(|index| index.is_constraint && index.name == name) {
            return self.drop_unique(change, name, cascades, scene).await;
        }
        let error = no_constraint(table, name);
        if !if_there {
            return Err(error.into());
        }
        self.skip(error, scene.out);
        Ok(())
    }

    pub(super) async fn drop_unique(
        &mut self,
        change: &mut Change,
        name: &str,
        cascades: bool,
        scene: &mut Scene<'_>,
    ) -> Result<(), Stop> {
        let found = change.table.indexes.iter().find(|index| index.is_constraint && index.name == name);
        let index = found.cloned().ok_or_else(confused)?;
        let parts: Vec<u16> = index.parts.iter().map(|part| part.column).collect();
        let is_key = |it: &Reference| is_same(&parts, &it.to_columns);
        let what = format!("constraint {name} on table {}", change.table.name);
        let on = format!("index {name}");
        let cut = Cut { dropped: &what, on: &on, cascades };
        self.cut_references(change, is_key, Vec::new(), cut, scene).await?;
        self.take_index(&mut change.table, index.id).await
    }
}

/// Takes a table out of its own referrers if it refers to itself no more.
fn learn_own_referrers(change: &mut Change) {
    let table = &mut change.table;
    let own = (table.schema.clone(), table.name.clone());
    let refers = table.references.iter().any(|it| it.to_schema == own.0 && it.to_table == own.1);
    table.referrers.retain(|referrer| refers || *referrer != own);
}

pub(super) fn no_constraint(table: &Table, name: &str) -> SqlError {
    let error = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
    SqlError::new(SqlState::UNDEFINED_OBJECT, error)
}
