//! Actions of `ALTER TABLE` that concern columns.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{AlterTableCmd, ColumnDef, Constraint, Node};

use super::alter::Scene;
use super::check_width;
use super::constraints::Cut;
use super::elements::{self, Elements, Numbered, Reader};
use super::rewrite::Change;
use crate::analyze::{self, stored};
use crate::catalog::{Column, Index, Reference};
use crate::encoding::{order, value};
use crate::functions::confused;
use crate::functions::system::with_modifier;
use crate::session::conversation::Session;
use crate::session::sequences::{is_owner, quoted};
use crate::session::{Stop, World};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

impl<W: World> Session<'_, W> {
    pub(super) async fn add_column<'s>(
        &mut self,
        change: &mut Change,
        definition: &'s ColumnDef,
        if_missing: bool,
        scene: &mut Scene<'s>,
    ) -> Result<(), Stop> {
        let name = &definition.colname;
        if change.table.live().any(|(_, column)| column.name == *name) {
            let error = format!("column \"{name}\" of relation \"{}\" already exists", change.table.name);
            let error = SqlError::new(SqlState::DUPLICATE_COLUMN, error);
            if !if_missing {
                return Err(error.into());
            }
            self.skip(error, scene.out);
            return Ok(());
        }
        let (mut column, elements) = self
            .analyzed(|names| {
                let mut elements = Elements::default();
                let reader = Reader { text: scene.text, default_text: "", catalog: names };
                let column = elements::column(&change.table, definition, &mut elements, &reader)?;
                Ok((column, elements))
            })
            .await?;
        let position = change.table.columns.len();
        column.missing = None;
        let is_not_null = column.not_null;
        change.table.columns.push(column);
        change.sources.push(None);
        check_width(&change.table)?;
        for numbered in &elements.sequences {
            self.number_column(&mut change.table, numbered).await?;
        }
        self.fill_column(change, position).await?;
        let is_filled = change.table.columns.get(position).is_some_and(|column| column.missing.is_some());
        change.tests_null |= is_not_null && !is_filled;
        let Elements { keys, checks, references, .. } = elements;
        scene.late.keys.extend(keys);
        scene.late.checks.extend(checks);
        scene.late.references.extend(references);
        Ok(())
    }

    /// What a new column is in the rows that are there: the same in all, which the descriptor says,
    /// or another value in each, which writes them anew.
    pub(super) async fn fill_column(&mut self, change: &mut Change, position: usize) -> Result<(), Stop> {
        let column = change.table.columns.get(position).ok_or_else(confused)?;
        let Some(default) = column.default.clone() else { return Ok(()) };
        let (oid, modifier) = (column.oid, column.modifier);
        let expr = self.analyzed(|names| stored::default(&default, oid, modifier, names)).await?;
        if stored::is_volatile(&expr) {
            change.rewrites = true;
        } else {
            let value = self.evaluate(std::slice::from_ref(&expr), &[]).await?.pop().ok_or_else(confused)?;
            if value != Datum::Null {
                let mut missing = Vec::new();
                value::put(oid, &value, &mut missing)?;
                change.table.columns.get_mut(position).ok_or_else(confused)?.missing = Some(missing);
            }
        }
        *change.sources.get_mut(position).ok_or_else(confused)? = Some(expr);
        Ok(())
    }

    pub(super) async fn drop_column(
        &mut self,
        change: &mut Change,
        name: &str,
        if_there: bool,
        cascades: bool,
        scene: &mut Scene<'_>,
    ) -> Result<(), Stop> {
        let position = match change.position(name) {
            Ok(position) => position,
            Err(error) if if_there => {
                self.skip(SqlError { message: error.message, ..error }, scene.out);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let place = u16::try_from(position).map_err(|_| confused())?;
        let what = format!("column {name} of table {}", change.table.name);
        let mut owned = self.sequences_of(&change.old).await?;
        owned.retain(|sequence| is_owner(sequence, position));
        let mut defaults = Vec::new();
        for sequence in &owned {
            defaults.extend(self.defaults_of(sequence, &[Arc::clone(&change.old)]).await?);
        }
        // A foreign key of the column itself goes with it.
        let own = change.table.references.iter().filter(|it| it.columns.contains(&place));
        let own: Vec<u32> = own.map(|reference| reference.id).collect();
        let concerns = |it: &Reference| it.to_columns.contains(&place) && !own.contains(&it.id);
        let cut = Cut { dropped: &what, on: &what, cascades };
        self.cut_references(change, concerns, defaults, cut, scene).await?;
        for sequence in &owned {
            self.remove_sequence(sequence).await?;
        }
        if change.table.primary.contains(&place) {
            self.drop_primary_key(change).await?;
        }
        let mut kept = Vec::new();
        for check in std::mem::take(&mut change.table.checks) {
            let expression = stored::expression_of(&check.condition)?;
            if !stored::columns_in(&expression, &change.table).contains(&position) {
                kept.push(check);
            }
        }
        change.table.checks = kept;
        let (gone, kept) =
            (change.table.references.drain(..)).partition(|reference| reference.columns.contains(&place));
        change.table.references = kept;
        let gone: Vec<Reference> = gone;
        for reference in gone {
            self.forget_referrer(&change.table, (&reference.to_schema, &reference.to_table)).await?;
        }
        let has_it = |index: &Index| index.parts.iter().any(|part| part.column == place);
        let gone: Vec<_> = change.table.indexes.iter().filter(|index| has_it(index)).cloned().collect();
        for index in &gone {
            self.take_index(&mut change.table, index.id).await?;
        }
        let column = change.table.columns.get_mut(position).ok_or_else(confused)?;
        // A name that no statement gives, so that another column may have the old one.
        column.name = format!("........pg.dropped.{}........", position + 1);
        (column.dropped, column.not_null) = (true, false);
        (column.default, column.missing, column.identity) = (None, None, None);
        Ok(())
    }

    pub(super) async fn change_type(
        &mut self,
        change: &mut Change,
        name: &str,
        definition: &ColumnDef,
        scene: &Scene<'_>,
    ) -> Result<(), Stop> {
        let position = change.position(name)?;
        let place = u16::try_from(position).map_err(|_| confused())?;
        let is_naming = change.table.references.iter().any(|it| it.columns.contains(&place));
        if is_naming
            || !self.references_to(&change.table, |it| it.to_columns.contains(&place)).await?.is_empty()
        {
            return Err(analyze::unsupported("changing the type of a column of a foreign key").into());
        }
        let type_name = definition.type_name.as_ref().ok_or_else(confused)?;
        let (oid, modifier) = analyze::type_of(type_name, scene.text, &self.settings)?;
        let plain = elements::column_reference(name);
        let (node, is_given) = match definition.raw_default.as_deref() {
            Some(node) => (node, true),
            None => (&plain, false),
        };
        let text = if is_given { scene.text } else { "" };
        let old = Arc::clone(&change.old);
        let expr =
            self.analyzed(|names| stored::transform_of(node, text, &old, (oid, modifier), names)).await?;
        let Some(expr) = expr else {
            return Err(no_cast(name, is_given, oid, modifier).into());
        };
        let column = change.table.columns.get_mut(position).ok_or_else(confused)?;
        let is_as_before = |before: &Column| (before.oid, before.modifier) == (column.oid, column.modifier);
        if !change.old.columns.get(position).is_some_and(is_as_before) {
            let error = format!("cannot alter type of column \"{name}\" twice");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error).into());
        }
        let is_text = |oid: Oid| matches!(oid, Oid::TEXT | Oid::VARCHAR);
        let stays = matches!(expr, analyze::plan::Expr::Column { .. })
            && (column.oid == oid || is_text(column.oid) && is_text(oid))
            // Rows do not have the blanks that a length stands for.
            && (oid != Oid::BPCHAR || column.modifier == modifier);
        let from =
            (std::mem::replace(&mut column.oid, oid), std::mem::replace(&mut column.modifier, modifier));
        if let Some(default) = column.default.take() {
            let own = self.analyzed(|names| stored::type_of_default(&default, names)).await?;
            column.default = Some(cast_default(name, &default, own, from, oid)?);
        }
        let parts = change.table.indexes.iter().flat_map(|index| &index.parts).map(|part| part.column);
        if change.table.primary.iter().copied().chain(parts).any(|place| usize::from(place) == position)
            && !order::is_ordered(oid)
        {
            return Err(order::not_ordered(oid).into());
        }
        if !stays {
            change.rewrites = true;
            *change.sources.get_mut(position).ok_or_else(confused)? = Some(expr);
        }
        change.tested = change.table.checks.iter().map(|check| check.name.clone()).collect();
        Ok(())
    }

    pub(super) async fn set_default(
        &mut self,
        change: &mut Change,
        name: &str,
        default: Option<&Node>,
    ) -> Result<(), Stop> {
        let position = change.position(name)?;
        let table = change.table.name.clone();
        let column = change.table.columns.get_mut(position).ok_or_else(confused)?;
        if column.identity.is_some() {
            let error = format!("column \"{name}\" of relation \"{table}\" is an identity column");
            let error = SqlError::new(SqlState::SYNTAX_ERROR, error);
            let hint = "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.";
            return Err(if default.is_none() { error.hint(hint) } else { error }.into());
        }
        let Some(node) = default else {
            column.default = None;
            return Ok(());
        };
        let (oid, modifier) = (column.oid, column.modifier);
        self.analyzed(|names| stored::default_of(node, "", oid, modifier, names)).await?;
        change.table.columns.get_mut(position).ok_or_else(confused)?.default = Some(analyze::printed(node)?);
        Ok(())
    }

    pub(super) async fn add_identity(
        &mut self,
        change: &mut Change,
        name: &str,
        constraint: &Constraint,
    ) -> Result<(), Stop> {
        let position = change.position(name)?;
        let table = change.table.name.clone();
        let column = change.table.columns.get_mut(position).ok_or_else(confused)?;
        let refused = if !column.not_null {
            Some("must be declared NOT NULL before identity can be added")
        } else if column.identity.is_some() {
            Some("is already an identity column")
        } else if column.default.is_some() {
            Some("already has a default value")
        } else {
            None
        };
        if let Some(why) = refused {
            let error = format!("column \"{name}\" of relation \"{table}\" {why}");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error).into());
        }
        column.identity = Some(elements::identity(constraint));
        let numbered = Numbered { column: name.to_owned(), oid: column.oid, options: &constraint.options };
        self.number_column(&mut change.table, &numbered).await
    }

    pub(super) async fn set_identity(
        &mut self,
        change: &mut Change,
        name: &str,
        options: &[Node],
        scene: &Scene<'_>,
    ) -> Result<(), Stop> {
        let position = change.position(name)?;
        let table = change.table.name.clone();
        let column = change.table.columns.get_mut(position).ok_or_else(confused)?;
        if column.identity.is_none() {
            let error = format!("column \"{name}\" of relation \"{table}\" is not an identity column");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error).into());
        }
        let mut rest = Vec::new();
        for option in options {
            match &option.node {
                Some(NodeEnum::DefElem(element)) if element.defname == "generated" => {
                    column.identity = Some(elements::generated(element));
                }
                _ => rest.push(option.clone()),
            }
        }
        for sequence in self.sequences_of(&change.old).await? {
            if !rest.is_empty() && is_owner(&sequence, position) {
                self.change_sequence(&sequence, &rest, scene.text).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn drop_identity(
        &mut self,
        change: &mut Change,
        command: &AlterTableCmd,
        scene: &mut Scene<'_>,
    ) -> Result<(), Stop> {
        let name = &command.name;
        let position = change.position(name)?;
        let table = change.table.name.clone();
        let column = change.table.columns.get_mut(position).ok_or_else(confused)?;
        if column.identity.take().is_none() {
            let error = format!("column \"{name}\" of relation \"{table}\" is not an identity column");
            let error = SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error);
            if !command.missing_ok {
                return Err(error.into());
            }
            self.skip(error, scene.out);
            return Ok(());
        }
        column.default = None;
        for sequence in self.sequences_of(&change.old).await? {
            if is_owner(&sequence, position) {
                self.remove_sequence(&sequence).await?;
            }
        }
        Ok(())
    }
}

pub(super) fn drop_not_null(change: &mut Change, name: &str) -> Result<(), SqlError> {
    let position = change.position(name)?;
    let table = &mut change.table;
    let is_primary = table.primary.iter().any(|place| usize::from(*place) == position);
    let shown = table.name.clone();
    let column = table.columns.get_mut(position).ok_or_else(confused)?;
    if column.identity.is_some() {
        let error = format!("column \"{name}\" of relation \"{shown}\" is an identity column");
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, error));
    }
    if is_primary {
        let error = format!("column \"{name}\" is in a primary key");
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, error));
    }
    column.not_null = false;
    Ok(())
}

/// The default of a column whose type changes: what it was, cast.
fn cast_default(
    name: &str,
    default: &str,
    own: Option<Oid>,
    from: (Oid, i32),
    to: Oid,
) -> Result<String, SqlError> {
    let is_text = |oid: Oid| matches!(oid, Oid::TEXT | Oid::VARCHAR);
    if from.0 == to || is_text(from.0) && is_text(to) {
        return Ok(default.to_owned());
    }
    if !analyze::can_assign(own.unwrap_or(from.0), to) {
        let shown = to.display();
        let error = format!("default for column \"{name}\" cannot be cast automatically to type {shown}");
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, error));
    }
    Ok(match own {
        Some(_) => default.to_owned(),
        None => format!("({default})::{}", with_modifier(from.0, from.1)),
    })
}

fn no_cast(name: &str, is_given: bool, oid: Oid, modifier: i32) -> SqlError {
    let what = match is_given {
        true => format!("result of USING clause for column \"{name}\""),
        false => format!("column \"{name}\""),
    };
    let error = format!("{what} cannot be cast automatically to type {}", oid.display());
    let error = SqlError::new(SqlState::DATATYPE_MISMATCH, error);
    if is_given {
        return error.hint("You might need to add an explicit cast.");
    }
    let shown = with_modifier(oid, modifier);
    let name = quoted(name);
    error.hint(format!("You might need to specify \"USING {name}::{shown}\"."))
}
