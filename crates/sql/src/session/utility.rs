//! Statements that are no queries.

use std::borrow::Cow;
use std::rc::Rc;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    self, DefElem, DiscardMode, ExecuteStmt, LimitOption, Node, PrepareStmt, ResTarget, SelectStmt,
    SetOperation, TransactionStmt, TransactionStmtKind, TypeCast, TypeName, VariableSetKind, VariableSetStmt,
    a_const,
};

use super::conversation::Session;
use super::cursors::no_cursor;
use super::explain;
use super::journal::Said;
use super::portal::{Body, Prepared, Work};
use super::sequences::Sequences;
use super::settings;
use super::statement::is_query;
use super::transaction::{Done, Portals, warning};
use super::{Stop, World};
use crate::analyze::{Catalog, Column, Query, analyze, type_of};
use crate::functions::confused;
use crate::types::{self, Datum, Oid, Zone};
use crate::wire::backend;
use crate::{Severity, SqlError, SqlState};

impl<W: World> Session<'_, W> {
    /// Carries out a statement that is no query. What it has to say beside its result is appended.
    pub(super) async fn utility(
        &mut self,
        tree: &Rc<Node>,
        text: &Rc<str>,
        out: &mut Vec<u8>,
    ) -> Result<Work, Stop> {
        let node = tree.node.as_ref().ok_or_else(confused)?;
        match node {
            NodeEnum::CreateStmt(_)
            | NodeEnum::DropStmt(_)
            | NodeEnum::TruncateStmt(_)
            | NodeEnum::AlterTableStmt(_)
            | NodeEnum::RenameStmt(_)
            | NodeEnum::CreateSeqStmt(_)
            | NodeEnum::AlterSeqStmt(_)
            | NodeEnum::IndexStmt(_)
            | NodeEnum::CreateTableAsStmt(_)
            | NodeEnum::SelectStmt(_) => {
                return self.define(node, text, out).await;
            }
            NodeEnum::CopyStmt(copy) if !copy.is_from => return self.copy_out(copy, out).await,
            NodeEnum::TransactionStmt(statement) => {
                let done = self.control(statement).await?;
                if let Some(warning) = done.warning {
                    self.notice(&warning, out);
                }
                self.end_portals(done.portals);
                Ok(Work::Done(done.tag.to_owned()))
            }
            NodeEnum::ConstraintsSetStmt(statement) => {
                if !self.transaction.is_block() {
                    let text = "SET CONSTRAINTS can only be used in transaction blocks";
                    self.notice(&warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, text), out);
                }
                self.set_constraints(statement).await?;
                done("SET CONSTRAINTS")
            }
            NodeEnum::VariableSetStmt(statement) => self.set(statement, out),
            NodeEnum::VariableShowStmt(statement) => self.show(&statement.name),
            NodeEnum::ExplainStmt(statement) => return self.explain(statement, text).await,
            NodeEnum::PrepareStmt(statement) => return self.prepare(tree, statement, text).await,
            NodeEnum::ExecuteStmt(statement) => return self.execute_prepared(statement, text).await,
            NodeEnum::DeallocateStmt(statement) if statement.name.is_empty() => {
                self.statements.clear();
                done("DEALLOCATE ALL")
            }
            NodeEnum::DeallocateStmt(statement) => {
                self.prepared(&statement.name)?;
                self.statements.remove(&statement.name);
                done("DEALLOCATE")
            }
            NodeEnum::DeclareCursorStmt(declare) => return self.declare(declare, text).await,
            NodeEnum::FetchStmt(fetch) => return self.fetch_rows(fetch).await,
            NodeEnum::ClosePortalStmt(statement) if statement.portalname.is_empty() => {
                self.portals.clear();
                self.cursors.clear();
                done("CLOSE CURSOR ALL")
            }
            NodeEnum::ClosePortalStmt(statement) => {
                let name = &statement.portalname;
                if self.cursors.remove(name).is_none() && self.portals.remove(name).is_none() {
                    return Err(no_cursor(name).into());
                }
                done("CLOSE CURSOR")
            }
            NodeEnum::DiscardStmt(statement) => self.discard(statement.target()),
            // There are no notifications that could be missed.
            NodeEnum::ListenStmt(_) => done("LISTEN"),
            NodeEnum::UnlistenStmt(_) => done("UNLISTEN"),
            // Nothing shows them.
            NodeEnum::CommentStmt(_) => done("COMMENT"),
            NodeEnum::CheckPointStmt(_) => done("CHECKPOINT"),
            // There is nothing that a table would have to be rid of, and no statistics.
            NodeEnum::VacuumStmt(vacuum) => {
                let tag = if vacuum.is_vacuumcmd { "VACUUM" } else { "ANALYZE" };
                if vacuum.is_vacuumcmd {
                    self.transaction.prevent("VACUUM")?;
                }
                done(tag)
            }
            other => {
                let error = format!("{} is not supported", construct(other));
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error))
            }
        }
        .map_err(Stop::from)
    }

    /// What the rows of a prepared statement have, if it has rows.
    pub(super) fn columns_of<'p>(&self, prepared: &'p Prepared) -> Option<Cow<'p, [Column]>> {
        if let Body::Query(query) = &prepared.body {
            return query.returns_rows().then_some(Cow::Borrowed(&query.columns));
        }
        match prepared.body.utility()? {
            NodeEnum::VariableShowStmt(show) => self.shown_columns(&show.name).ok().map(Cow::Owned),
            NodeEnum::FetchStmt(fetch) => self.fetched_columns(fetch).map(Cow::Owned),
            NodeEnum::ExplainStmt(_) => Some(Cow::Owned(vec![explain::column()])),
            NodeEnum::ExecuteStmt(execute) => match &self.prepared(&execute.name).ok()?.body {
                Body::Query(query) => query.returns_rows().then(|| Cow::Owned(query.columns.clone())),
                Body::Empty | Body::Utility(_) => None,
            },
            _ => None,
        }
    }

    /// Tells the client what it wants to be told.
    pub(super) fn notice(&self, notice: &SqlError, out: &mut Vec<u8>) {
        let least = self.settings.setting("client_min_messages").unwrap_or_default();
        let wanted = match notice.severity {
            Severity::Notice => !["warning", "error"].contains(&least.as_str()),
            _ => least != "error",
        };
        if wanted {
            backend::error(out, notice);
        }
    }

    /// Begins, ends or divides the transaction, and the database's with it.
    async fn control(&mut self, statement: &TransactionStmt) -> Result<Done, Stop> {
        use TransactionStmtKind as Kind;
        let (kind, ended) = (statement.kind(), self.transaction.ended());
        if kind == Kind::TransStmtCommit
            && self.transaction.can_commit()
            && let Err(stop) = self.commit_or_replay().await
        {
            self.transaction.rollback(&self.settings, false, self.statement_us)?;
            self.end_portals(Portals::End);
            return Err(stop);
        }
        if matches!(kind, Kind::TransStmtRollback) {
            self.forget_held();
        }
        let done = self.control_session(statement)?;
        let level = self.transaction.level();
        match kind {
            Kind::TransStmtSavepoint => {
                self.data.mark();
                self.note(Said::Savepoint, Some(&[]));
            }
            Kind::TransStmtRelease => {
                self.data.keep_marks(level);
                self.note(Said::Release(level), Some(&[]));
            }
            Kind::TransStmtRollbackTo => {
                let savepoint = level.saturating_sub(1);
                self.undo_to(savepoint).await?;
                self.note(Said::RollbackTo(savepoint), Some(&[]));
            }
            _ if self.transaction.ended() != ended => self.roll_back().await,
            _ => {}
        }
        Ok(done)
    }

    fn control_session(&mut self, statement: &TransactionStmt) -> Result<Done, SqlError> {
        use TransactionStmtKind as Kind;
        let (settings, chain, now_us) = (&self.settings, statement.chain, self.statement_us);
        let (transaction, name) = (&mut self.transaction, statement.savepoint_name.as_str());
        match statement.kind() {
            kind @ (Kind::TransStmtBegin | Kind::TransStmtStart) => {
                let tag = if kind == Kind::TransStmtBegin { "BEGIN" } else { "START TRANSACTION" };
                let done = transaction.begin(tag);
                self.characteristics(&statement.options, "")?;
                Ok(done)
            }
            Kind::TransStmtCommit => transaction.commit(settings, chain, now_us),
            Kind::TransStmtRollback => transaction.rollback(settings, chain, now_us),
            Kind::TransStmtSavepoint => transaction.savepoint(settings, name),
            Kind::TransStmtRelease => transaction.release(name),
            Kind::TransStmtRollbackTo => transaction.rollback_to(settings, name),
            Kind::TransStmtPrepare => transaction.prepare(settings, now_us),
            Kind::TransStmtCommitPrepared | Kind::TransStmtRollbackPrepared | Kind::Undefined => {
                let error =
                    format!("prepared transaction with identifier \"{}\" does not exist", statement.gid);
                Err(SqlError::new(SqlState::UNDEFINED_OBJECT, error))
            }
        }
    }

    /// Isolation level and the like, of this transaction or, with `default_`, of those that come.
    fn characteristics(&self, options: &[Node], prefix: &str) -> Result<(), SqlError> {
        for option in options {
            let Some(NodeEnum::DefElem(option)) = &option.node else { continue };
            let DefElem { defname, arg, .. } = option.as_ref();
            let value = arg.as_ref().and_then(|arg| constant(arg)).unwrap_or_default();
            self.settings.set(&format!("{prefix}{defname}"), &value, false)?;
        }
        Ok(())
    }

    fn set(&mut self, statement: &VariableSetStmt, out: &mut Vec<u8>) -> Result<Work, SqlError> {
        let name = statement.name.as_str();
        let outside = |session: &Self, what: &str, out: &mut Vec<u8>| {
            if !session.transaction.is_block() {
                let text = format!("{what} can only be used in transaction blocks");
                session.notice(&warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, text), out);
            }
        };
        match statement.kind() {
            VariableSetKind::VarSetMulti => match name {
                "TRANSACTION" => {
                    outside(self, "SET TRANSACTION", out);
                    self.characteristics(&statement.args, "")?;
                }
                "SESSION CHARACTERISTICS" => self.characteristics(&statement.args, "default_")?,
                _ => {
                    let error = format!("SET {name} is not supported");
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error));
                }
            },
            VariableSetKind::VarSetValue => {
                if statement.is_local {
                    outside(self, "SET LOCAL", out);
                }
                let value = value(name, &statement.args)?;
                self.settings.set(name, &value, statement.is_local)?;
            }
            VariableSetKind::VarSetDefault => {
                if statement.is_local {
                    outside(self, "SET LOCAL", out);
                }
                self.settings.reset(name, statement.is_local)?;
            }
            VariableSetKind::VarReset => {
                self.settings.reset(name, false)?;
                return done("RESET");
            }
            VariableSetKind::VarResetAll => {
                self.settings.reset_all();
                return done("RESET");
            }
            VariableSetKind::VarSetCurrent | VariableSetKind::Undefined => {
                let error = "SET FROM CURRENT is not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error));
            }
        }
        done("SET")
    }

    fn show(&self, name: &str) -> Result<Work, SqlError> {
        let columns = self.shown_columns(name)?;
        let rows = if name.eq_ignore_ascii_case("all") {
            let all = self.settings.show_all().into_iter();
            all.map(|row| row.map(Datum::text).to_vec()).collect()
        } else {
            vec![vec![Datum::text(self.settings.show(name)?)]]
        };
        Ok(Work::Rows(columns, rows.into_iter(), "SHOW".to_owned()))
    }

    fn shown_columns(&self, name: &str) -> Result<Vec<Column>, SqlError> {
        let column =
            |name: &str| Column { name: name.to_owned(), oid: Oid::TEXT, modifier: -1, origin: None };
        if name.eq_ignore_ascii_case("all") {
            return Ok(["name", "setting", "description"].iter().map(|name| column(name)).collect());
        }
        Ok(vec![column(&self.settings.name_of(name)?)])
    }

    async fn prepare(
        &mut self,
        tree: &Rc<Node>,
        statement: &PrepareStmt,
        text: &Rc<str>,
    ) -> Result<Work, Stop> {
        if statement.name.is_empty() {
            let error = "invalid statement name: must not be empty";
            return Err(SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, error).into());
        }
        let query = match statement.query.as_deref() {
            Some(query) if query.node.as_ref().is_some_and(is_query) => query,
            other => {
                let what = other.and_then(|it| it.node.as_ref()).map_or("this statement", construct);
                let error = format!("{what} is not supported");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error).into());
            }
        };
        let mut given = Vec::new();
        for name in &statement.argtypes {
            let Some(NodeEnum::TypeName(name)) = &name.node else { return Err(confused().into()) };
            given.push(type_of(name, text, &self.settings)?.0);
        }
        let planned = self.plan(query, text, &given).await?;
        let parameters = planned.parameters.clone();
        let node = planned.depends().then(|| Rc::clone(tree));
        let body = Body::Query(Rc::new(planned));
        self.keep(&statement.name, Prepared { text: Rc::clone(text), node, body, parameters })?;
        Ok(done("PREPARE")?)
    }

    async fn execute_prepared(&mut self, statement: &ExecuteStmt, text: &str) -> Result<Work, Stop> {
        let prepared = self.prepared(&statement.name)?;
        let (wanted, there) = (prepared.parameters.len(), statement.params.len());
        // PostgreSQL does not look at arguments of a statement that takes none.
        if wanted > 0 && wanted != there {
            let error = format!("wrong number of parameters for prepared statement \"{}\"", statement.name);
            let detail = format!("Expected {wanted} parameters but got {there}.");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, error).detail(detail).into());
        }
        let query = match &prepared.body {
            Body::Query(query) => Rc::clone(query),
            // Prepared in the extended protocol.
            Body::Empty | Body::Utility(_) => {
                let error = "EXECUTE of a statement that is no query is not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error).into());
            }
        };
        if prepared.parameters.iter().any(|oid| oid.element().unwrap_or(*oid).is_reference()) {
            self.look_up_all().await?;
        }
        let arguments = statement.params.iter().zip(&prepared.parameters);
        let casts = arguments.map(|(argument, oid)| cast(argument.clone(), type_name(*oid)));
        let values = match self.select(casts.collect(), text)? {
            // PostgreSQL's refusal: a query here could not pause.
            Some(query) if query.subqueries > 0 => {
                let error = "cannot use subquery in EXECUTE parameter";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error).into());
            }
            Some(query) => self.only_row(&query)?,
            None => Vec::new(),
        };
        let mut work = Work::Query(Rc::clone(&query), query.start(values));
        self.renew(&prepared, &mut work).await?;
        Ok(work)
    }

    /// The query that evaluates expressions; none for none.
    fn select(&self, expressions: Vec<Node>, text: &str) -> Result<Option<Query>, SqlError> {
        if expressions.is_empty() {
            return Ok(None);
        }
        let target = |value| {
            let target = ResTarget { val: Some(Box::new(value)), location: -1, ..ResTarget::default() };
            Node { node: Some(NodeEnum::ResTarget(Box::new(target))) }
        };
        let mut select = SelectStmt {
            target_list: expressions.into_iter().map(target).collect(),
            ..SelectStmt::default()
        };
        select.set_op(SetOperation::SetopNone);
        select.set_limit_option(LimitOption::Default);
        let node = Node { node: Some(NodeEnum::SelectStmt(Box::new(select))) };
        analyze(&node, text, &[], &self.known()).map(Some)
    }

    fn discard(&mut self, what: DiscardMode) -> Result<Work, SqlError> {
        match what {
            DiscardMode::DiscardAll | DiscardMode::Undefined => {
                self.transaction.prevent("DISCARD ALL")?;
                self.portals.clear();
                self.cursors.clear();
                self.settings.reset("session_authorization", false)?;
                self.settings.reset("role", false)?;
                self.settings.reset_all();
                self.statements.clear();
                self.sequences = Sequences::default();
                done("DISCARD ALL")
            }
            DiscardMode::DiscardPlans => done("DISCARD PLANS"),
            DiscardMode::DiscardSequences => {
                self.sequences = Sequences::default();
                done("DISCARD SEQUENCES")
            }
            DiscardMode::DiscardTemp => done("DISCARD TEMP"),
        }
    }
}

fn done(tag: &str) -> Result<Work, SqlError> {
    Ok(Work::Done(tag.to_owned()))
}

/// The text of a constant, as `SET` takes it.
fn constant(node: &Node) -> Option<String> {
    let Some(NodeEnum::AConst(constant)) = &node.node else { return None };
    Some(match constant.val.as_ref()? {
        a_const::Val::Ival(value) => value.ival.to_string(),
        a_const::Val::Fval(value) => value.fval.clone(),
        a_const::Val::Boolval(value) => if value.boolval { "on" } else { "off" }.to_owned(),
        a_const::Val::Sval(value) => value.sval.clone(),
        a_const::Val::Bsval(value) => value.bsval.clone(),
    })
}

/// What a `SET` sets a setting to.
fn value(name: &str, arguments: &[Node]) -> Result<String, SqlError> {
    let list = settings::list_of(name);
    if arguments.len() > 1 && list.is_none() {
        let error = format!("SET {name} takes only one argument");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error));
    }
    let values = arguments.iter().map(|argument| match &argument.node {
        Some(NodeEnum::TypeCast(cast)) => zone(cast),
        _ => {
            let text = constant(argument).unwrap_or_default();
            Ok(if list == Some(true) { quoted(&text) } else { text })
        }
    });
    Ok(values.collect::<Result<Vec<String>, SqlError>>()?.join(", "))
}

/// A name as a list of names has it: in quotes, unless it would be read as itself.
fn quoted(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    let begins = name.starts_with(|it: char| it.is_ascii_lowercase() || it == '_');
    if begins && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The zone of `SET TIME ZONE INTERVAL '3 hours'`.
fn zone(cast: &TypeCast) -> Result<String, SqlError> {
    let text = cast.arg.as_ref().and_then(|argument| constant(argument)).unwrap_or_default();
    let invalid = |what: &str| {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid interval value for time zone: {what}"),
        )
    };
    let style = types::Style::default();
    let Datum::Interval(interval) = types::parse(Oid::INTERVAL, &text, &style)? else {
        return Err(invalid("no interval"));
    };
    if interval.months != 0 {
        return Err(invalid("month not allowed"));
    }
    if interval.days != 0 {
        return Err(invalid("day not allowed"));
    }
    let seconds = i32::try_from(interval.us / 1_000_000).map_err(|_| invalid("out of range"))?;
    Ok(Zone::fixed(seconds).name().to_owned())
}

fn cast(value: Node, to: TypeName) -> Node {
    let cast = TypeCast { arg: Some(Box::new(value)), type_name: Some(to), location: -1 };
    Node { node: Some(NodeEnum::TypeCast(Box::new(cast))) }
}

/// A type's name as the parser gives it.
fn type_name(oid: Oid) -> TypeName {
    let string = |text: String| Node { node: Some(NodeEnum::String(protobuf::String { sval: text })) };
    let (named, bounds) = match oid.element() {
        Some(element) => {
            let unbounded = NodeEnum::Integer(protobuf::Integer { ival: -1 });
            (element, vec![Node { node: Some(unbounded) }])
        }
        None => (oid, Vec::new()),
    };
    TypeName {
        names: vec![string("pg_catalog".to_owned()), string(named.catalog_name())],
        typemod: -1,
        array_bounds: bounds,
        location: -1,
        ..TypeName::default()
    }
}

/// What a statement is called that is not there.
fn construct(node: &NodeEnum) -> &'static str {
    match node {
        NodeEnum::InsertStmt(_) => "INSERT",
        NodeEnum::UpdateStmt(_) => "UPDATE",
        NodeEnum::DeleteStmt(_) => "DELETE",
        NodeEnum::MergeStmt(_) => "MERGE",
        NodeEnum::CopyStmt(_) => "COPY",
        NodeEnum::ExplainStmt(_) => "EXPLAIN",
        NodeEnum::CreateStmt(_) => "CREATE TABLE",
        NodeEnum::CreateTableAsStmt(_) => "CREATE TABLE AS",
        NodeEnum::IndexStmt(_) => "CREATE INDEX",
        NodeEnum::ViewStmt(_) => "CREATE VIEW",
        NodeEnum::CreateSchemaStmt(_) => "CREATE SCHEMA",
        NodeEnum::CreateSeqStmt(_) => "CREATE SEQUENCE",
        NodeEnum::CreateFunctionStmt(_) => "CREATE FUNCTION",
        NodeEnum::CreateTrigStmt(_) => "CREATE TRIGGER",
        NodeEnum::CreateExtensionStmt(_) => "CREATE EXTENSION",
        NodeEnum::CreateRoleStmt(_) => "CREATE ROLE",
        NodeEnum::CreatedbStmt(_) => "CREATE DATABASE",
        NodeEnum::CreateDomainStmt(_) => "CREATE DOMAIN",
        NodeEnum::CreateEnumStmt(_) | NodeEnum::CompositeTypeStmt(_) => "CREATE TYPE",
        NodeEnum::AlterTableStmt(_) => "ALTER TABLE",
        NodeEnum::AlterSeqStmt(_) => "ALTER SEQUENCE",
        NodeEnum::AlterRoleStmt(_) | NodeEnum::AlterRoleSetStmt(_) => "ALTER ROLE",
        NodeEnum::RenameStmt(_) => "RENAME",
        NodeEnum::DropStmt(_) => "DROP",
        NodeEnum::DropRoleStmt(_) => "DROP ROLE",
        NodeEnum::DropdbStmt(_) => "DROP DATABASE",
        NodeEnum::TruncateStmt(_) => "TRUNCATE",
        NodeEnum::CommentStmt(_) => "COMMENT",
        NodeEnum::GrantStmt(_) | NodeEnum::GrantRoleStmt(_) => "GRANT",
        NodeEnum::VacuumStmt(_) => "VACUUM",
        NodeEnum::ReindexStmt(_) => "REINDEX",
        NodeEnum::ClusterStmt(_) => "CLUSTER",
        NodeEnum::LockStmt(_) => "LOCK TABLE",
        NodeEnum::DoStmt(_) => "DO",
        NodeEnum::CallStmt(_) => "CALL",
        NodeEnum::NotifyStmt(_) => "NOTIFY",
        NodeEnum::DeclareCursorStmt(_) => "DECLARE CURSOR",
        NodeEnum::FetchStmt(_) => "FETCH",
        NodeEnum::ConstraintsSetStmt(_) => "SET CONSTRAINTS",
        NodeEnum::AlterSystemStmt(_) => "ALTER SYSTEM",
        NodeEnum::RefreshMatViewStmt(_) => "REFRESH MATERIALIZED VIEW",
        _ => "this statement",
    }
}
