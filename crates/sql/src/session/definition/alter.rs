//! `ALTER TABLE`: what its actions make of the descriptor.
//!
//! Actions are carried out in PostgreSQL's order: what is dropped goes first, then types change,
//! columns and constraints are added, and what is left comes last. They change a copy of the
//! descriptor and note what has to be done with rows ([`Change`]); then all rows are read once, and
//! are tested or written anew ([`rewrite`](super::rewrite)).

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType, ConstrType, DropBehavior, ObjectType,
};

use super::columns::drop_not_null;
use super::constraints::no_constraint;
use super::elements::{Elements, constraint_names};
use super::rewrite::Change;
use super::{done, storage_option};
use crate::analyze;
use crate::catalog::Relation;
use crate::functions::confused;
use crate::session::conversation::Session;
use crate::session::names::schema_of;
use crate::session::portal::Work;
use crate::session::{Stop, World};
use crate::{SqlError, SqlState};

/// What an action is carried out with.
pub(super) struct Scene<'a> {
    pub text: &'a str,
    pub out: &'a mut Vec<u8>,
    /// What definitions of columns say of the table, which is added later.
    pub late: Elements<'a>,
}

impl<W: World> Session<'_, W> {
    /// `ALTER TABLE`
    pub(super) async fn alter(
        &mut self,
        alter: &AlterTableStmt,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<Work, Stop> {
        let range = alter.relation.as_ref().ok_or_else(confused)?;
        let tag = match alter.objtype() {
            ObjectType::ObjectSequence => "ALTER SEQUENCE",
            ObjectType::ObjectIndex => "ALTER INDEX",
            _ => "ALTER TABLE",
        };
        let mut commands = Vec::new();
        for command in &alter.cmds {
            let Some(NodeEnum::AlterTableCmd(command)) = &command.node else { return Err(confused().into()) };
            commands.push(command.as_ref());
        }
        self.open_to_write(tag).await?;
        let schema = schema_of(&range.schemaname).to_owned();
        let found = self.look_up(schema, range.relname.clone()).await?;
        let old = match found {
            Some(Relation::Table(table)) => table,
            // What is there for tables only is refused before, by the grammar or below.
            Some(_) if commands.iter().all(|command| is_of_no_effect(command)) => return done(tag),
            Some(_) => {
                let error = format!("\"{}\" is not a table", range.relname);
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, error).into());
            }
            None => {
                let error = format!("relation \"{}\" does not exist", range.relname);
                let error = SqlError::new(SqlState::UNDEFINED_TABLE, error);
                if !alter.missing_ok {
                    return Err(error.into());
                }
                self.skip(error, out);
                return done(tag);
            }
        };
        self.refuse_pending("ALTER TABLE", &old)?;
        let mut change = Change::of(old);
        let mut scene = Scene { text, out, late: Elements::default() };
        for now in 0..=LAST_PASS {
            for command in commands.iter().filter(|command| pass(command) == now) {
                self.act(&mut change, command, &mut scene).await?;
            }
            self.add_late(&mut change, &mut scene, now).await?;
        }
        self.finish_change(change).await?;
        done(tag)
    }

    async fn act<'s>(
        &mut self,
        change: &mut Change,
        command: &'s AlterTableCmd,
        scene: &mut Scene<'s>,
    ) -> Result<(), Stop> {
        use AlterTableType as Type;
        let definition = command.def.as_ref().and_then(|definition| definition.node.as_ref());
        let cascades = command.behavior() == DropBehavior::DropCascade;
        match (command.subtype(), definition) {
            (Type::AtAddColumn, Some(NodeEnum::ColumnDef(column))) => {
                self.add_column(change, column, command.missing_ok, scene).await
            }
            (Type::AtAddConstraint, Some(NodeEnum::Constraint(constraint))) => {
                self.add_constraint(change, constraint, scene).await
            }
            (Type::AtDropColumn, _) => {
                self.drop_column(change, &command.name, command.missing_ok, cascades, scene).await
            }
            (Type::AtDropConstraint, _) => {
                self.drop_constraint(change, &command.name, command.missing_ok, cascades, scene).await
            }
            (Type::AtAlterColumnType, Some(NodeEnum::ColumnDef(column))) => {
                self.change_type(change, &command.name, column, scene).await
            }
            (Type::AtColumnDefault, default) => {
                self.set_default(change, &command.name, default.and(command.def.as_deref())).await
            }
            (Type::AtSetNotNull, _) => {
                let position = change.position(&command.name)?;
                let column = change.table.columns.get_mut(position).ok_or_else(confused)?;
                if !std::mem::replace(&mut column.not_null, true) {
                    change.tests_null = true;
                }
                Ok(())
            }
            (Type::AtDropNotNull, _) => Ok(drop_not_null(change, &command.name)?),
            (Type::AtValidateConstraint, _) => {
                let is_check = change.table.checks.iter().any(|check| check.name == command.name);
                let is_reference = change.table.references.iter().any(|it| it.name == command.name);
                if is_check {
                    change.tested.push(command.name.clone());
                } else if is_reference {
                    change.named.push(command.name.clone());
                } else if !constraint_names(&change.table).contains(&command.name) {
                    return Err(no_constraint(&change.table, &command.name).into());
                }
                Ok(())
            }
            (Type::AtAddIdentity, Some(NodeEnum::Constraint(constraint))) => {
                self.add_identity(change, &command.name, constraint).await
            }
            (Type::AtSetIdentity, Some(NodeEnum::List(options))) => {
                self.set_identity(change, &command.name, &options.items, scene).await
            }
            (Type::AtDropIdentity, _) => self.drop_identity(change, command, scene).await,
            (Type::AtSetRelOptions | Type::AtResetRelOptions, Some(NodeEnum::List(options))) => {
                for option in &options.items {
                    if let Some(NodeEnum::DefElem(option)) = &option.node {
                        storage_option(&option.defname)?;
                    }
                }
                Ok(())
            }
            _ if is_of_no_effect(command) => Ok(()),
            _ => Err(analyze::unsupported("this action of ALTER TABLE").into()),
        }
    }

    /// Adds what definitions of columns have said, when it is time.
    async fn add_late(&mut self, change: &mut Change, scene: &mut Scene<'_>, now: u8) -> Result<(), Stop> {
        if now == KEYS_PASS {
            for key in std::mem::take(&mut scene.late.keys) {
                self.add_key(change, key).await?;
            }
        }
        if now == CONSTRAINTS_PASS {
            for constraint in std::mem::take(&mut scene.late.checks) {
                self.add_check(change, constraint, scene).await?;
            }
            for foreign in std::mem::take(&mut scene.late.references) {
                let name = self.add_reference(&mut change.table, &foreign).await?;
                change.named.push(name);
            }
        }
        Ok(())
    }
}

/// When primary keys and `UNIQUE` are added.
const KEYS_PASS: u8 = 4;
/// When other constraints are.
const CONSTRAINTS_PASS: u8 = 5;
/// When everything else is done.
const LAST_PASS: u8 = 6;

/// When an action is carried out.
fn pass(command: &AlterTableCmd) -> u8 {
    use AlterTableType as Type;
    match command.subtype() {
        Type::AtDropColumn | Type::AtDropConstraint | Type::AtDropNotNull | Type::AtDropIdentity => 0,
        Type::AtColumnDefault if command.def.is_none() => 0,
        Type::AtAlterColumnType => 1,
        Type::AtAddColumn => 2,
        Type::AtAddIdentity | Type::AtColumnDefault | Type::AtSetNotNull => 3,
        Type::AtAddConstraint => {
            let constraint = command.def.as_ref().and_then(|definition| definition.node.as_ref());
            let is_key = matches!(constraint, Some(NodeEnum::Constraint(constraint))
                if !matches!(constraint.contype(), ConstrType::ConstrCheck | ConstrType::ConstrForeign));
            if is_key { KEYS_PASS } else { CONSTRAINTS_PASS }
        }
        _ => LAST_PASS,
    }
}

/// Whether an action concerns owners or PostgreSQL's storage.
fn is_of_no_effect(command: &AlterTableCmd) -> bool {
    use AlterTableType as Type;
    matches!(
        command.subtype(),
        Type::AtChangeOwner
            | Type::AtSetStatistics
            | Type::AtSetOptions
            | Type::AtResetOptions
            | Type::AtSetStorage
            | Type::AtSetCompression
            | Type::AtClusterOn
            | Type::AtDropCluster
            | Type::AtSetLogged
            | Type::AtSetUnLogged
            | Type::AtSetTableSpace
            | Type::AtReplicaIdentity
    )
}
