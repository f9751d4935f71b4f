//! The messages of the extended protocol: statements are prepared, bound to parameters, described
//! and executed.

use std::rc::Rc;

use pg_query::NodeEnum;

use super::conversation::Session;
use super::copy::takes_rows;
use super::portal::{Body, Portal, Prepared, Progress, Work, ends_transaction};
use super::{Line, Stop, Stream, World};
use crate::functions::confused;
use crate::parse;
use crate::types::{self, Datum, Format, Oid};
use crate::wire::backend;
use crate::wire::frame;
use crate::wire::frontend::{Bind, Target, format_of};
use crate::{SqlError, SqlState};

impl<W: World> Session<'_, W> {
    /// Prepares a statement.
    pub(super) async fn parse<S: Stream>(
        &mut self,
        name: &str,
        text: &str,
        types: Vec<u32>,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        self.begin();
        if name.is_empty() {
            self.statements.remove("");
        }
        let mut statements = parse::parse(text)?;
        let given: Vec<Oid> = types.into_iter().map(Oid).collect();
        let statement = statements.pop();
        if !statements.is_empty() {
            let error = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, error).into());
        }
        if !statement.as_ref().and_then(|it| it.node.node.as_ref()).is_none_or(ends_transaction) {
            self.transaction.check()?;
        }
        let body = match &statement {
            None => Body::Empty,
            Some(statement) => self.understand(statement, text, &given).await?,
        };
        let (parameters, node) = match &body {
            Body::Query(query) if !query.depends() => (query.parameters.clone(), None),
            Body::Query(query) => (query.parameters.clone(), statement.map(|statement| statement.node)),
            Body::Empty | Body::Utility(_) => (given, None),
        };
        self.keep(name, Prepared { text: Rc::from(text), node, body, parameters })?;
        backend::parse_complete(&mut line.out);
        Ok(())
    }

    /// Keeps a statement under a name that no other has.
    pub(super) fn keep(&mut self, name: &str, prepared: Prepared) -> Result<(), SqlError> {
        if !name.is_empty() && self.statements.contains_key(name) {
            let error = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_PREPARED_STATEMENT, error));
        }
        self.statements.insert(name.to_owned(), Rc::new(prepared));
        Ok(())
    }

    /// A prepared statement by its name.
    pub(super) fn prepared(&self, name: &str) -> Result<Rc<Prepared>, SqlError> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let error = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                _ => format!("prepared statement \"{name}\" does not exist"),
            };
            SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, error)
        })
    }

    fn portal(&self, name: &str) -> Result<&Portal, SqlError> {
        self.portals.get(name).ok_or_else(|| no_portal(name))
    }

    /// Opens a portal.
    pub(super) fn bind<S: Stream>(
        &mut self,
        bind: &Bind<'_>,
        line: &mut Line<'_, S>,
    ) -> Result<(), SqlError> {
        let prepared = self.prepared(bind.statement)?;
        self.begin();
        let (there, wanted) = (bind.parameters.len(), prepared.parameters.len());
        if there != wanted {
            let error = format!(
                "bind message supplies {there} parameters, but prepared statement \"{}\" requires {wanted}",
                bind.statement
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, error));
        }
        if !prepared.body.ends_transaction() || wanted > 0 {
            self.transaction.check()?;
        }
        if bind.portal.is_empty() {
            self.portals.remove("");
        } else if self.portals.contains_key(bind.portal) {
            let error = format!("cursor \"{}\" already exists", bind.portal);
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, error));
        }
        let parameters = self.parameters(bind, &prepared)?;
        let columns = self.columns_of(&prepared).map_or(0, |columns| columns.len());
        let formats = bind.results.len();
        if formats > 1 && formats != columns {
            let error = format!("bind message has {formats} result formats but query has {columns} columns");
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, error));
        }
        let progress = match &prepared.body {
            Body::Query(query) => {
                Progress::Running(Box::new(Work::Query(Rc::clone(query), query.start(parameters))))
            }
            Body::Empty | Body::Utility(_) => Progress::Fresh,
        };
        let (formats, level) = (bind.results.clone(), self.transaction.level());
        self.portals
            .insert(bind.portal.to_owned(), Portal { prepared, formats, level, progress, is_begun: false });
        backend::bind_complete(&mut line.out);
        Ok(())
    }

    /// Whether a parameter is of a type whose values are read by names in the catalog.
    pub(super) fn binds_names(&self, bind: &Bind<'_>) -> bool {
        let prepared = self.statements.get(bind.statement);
        let is_name = |oid: &Oid| oid.element().unwrap_or(*oid).is_reference();
        prepared.is_some_and(|prepared| prepared.parameters.iter().any(is_name))
    }

    fn parameters(&self, bind: &Bind<'_>, prepared: &Prepared) -> Result<Vec<Datum>, SqlError> {
        let values = bind.parameters.iter().zip(&prepared.parameters).enumerate();
        let decoded = values.map(|(place, (bytes, oid))| {
            let Some(bytes) = bytes else { return Ok(Datum::Null) };
            let format = format_of(&bind.formats, place);
            let refused = |error: SqlError, value: &str| {
                let portal = match bind.portal {
                    "" => "unnamed portal".to_owned(),
                    name => format!("portal \"{name}\""),
                };
                let context = format!("{portal} parameter ${}{value}", place + 1);
                SqlError { context: error.context.clone().or(Some(context)), ..error }
            };
            // The value itself is not shown: it may be a secret.
            let shown = match format {
                Format::Text => {
                    frame::utf8(bytes).map_err(|error| refused(error, ""))?;
                    " = '...'"
                }
                Format::Binary => "",
            };
            types::decode(*oid, format, bytes, &self.style).map_err(|error| refused(error, shown))
        });
        decoded.collect()
    }

    /// Says what a statement takes and what its rows have.
    pub(super) fn describe<S: Stream>(
        &mut self,
        target: Target<'_>,
        line: &mut Line<'_, S>,
    ) -> Result<(), SqlError> {
        self.begin();
        let (prepared, formats) = match target {
            Target::Statement(name) => (self.prepared(name)?, Vec::new()),
            Target::Portal(name) => {
                let portal = self.portal(name)?;
                (Rc::clone(&portal.prepared), portal.formats.clone())
            }
        };
        let columns = self.columns_of(&prepared);
        if columns.is_some() {
            self.transaction.check()?;
        }
        if matches!(target, Target::Statement(_)) {
            backend::parameters(&mut line.out, &prepared.parameters);
        }
        match columns {
            Some(columns) => {
                backend::columns(&mut line.out, &columns, |place| format_of(&formats, place));
            }
            None => backend::no_data(&mut line.out),
        }
        Ok(())
    }

    /// Runs a portal, to its end or to a limit of rows.
    pub(super) async fn execute<S: Stream>(
        &mut self,
        name: &str,
        limit: Option<u32>,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        let prepared = Rc::clone(&self.portal(name)?.prepared);
        self.begin();
        if matches!(prepared.body, Body::Empty) {
            backend::empty_query(&mut line.out);
            return Ok(());
        }
        if !prepared.body.ends_transaction() {
            self.transaction.check()?;
        }
        // Taken out while it runs: an error ends it.
        let Some(mut portal) = self.portals.remove(name) else { return Err(no_portal(name).into()) };
        if matches!(portal.progress, Progress::Fresh)
            && let Some(copy) = prepared.body.utility().and_then(takes_rows)
        {
            self.data.use_for(false);
            self.note_other();
            self.copying = Some(self.copy_in(copy, &mut line.out).await?);
            line.due = true;
            return Ok(());
        }
        // Nothing has been done before it in its transaction, and nothing comes behind it.
        let is_all = self.is_alone && !portal.is_begun && !self.data.is_used();
        self.data.use_for(is_all);
        let (ended, has_begun) = (self.transaction.ended(), portal.is_begun);
        let mut tries = self.tries(line);
        let tag = loop {
            let stopped = match self.go_on(name, &mut portal, limit, line).await {
                Ok(tag) => break tag,
                Err(stopped) => stopped,
            };
            if has_begun {
                return Err(stopped);
            }
            self.again(stopped, is_all, &mut tries, line).await?;
            portal.begin_again();
        };
        match &tag {
            Some(tag) => backend::command_complete(&mut line.out, tag),
            None => backend::portal_suspended(&mut line.out),
        }
        if self.transaction.ended() == ended {
            let whole = line.writes == tries.writes && tag.is_some() && !has_begun;
            let answer = line.out.get(tries.replies..).filter(|_| whole);
            self.note_executed(&portal, answer);
        }
        if self.transaction.ended() == ended && portal.level <= self.transaction.level() {
            self.portals.insert(name.to_owned(), portal);
        }
        Ok(())
    }

    /// Runs a portal to its end or to a limit, and ends its transaction if that ends with it.
    /// Returns what CommandComplete says at the end.
    async fn go_on<S: Stream>(
        &mut self,
        name: &str,
        portal: &mut Portal,
        limit: Option<u32>,
        line: &mut Line<'_, S>,
    ) -> Result<Option<String>, Stop> {
        let prepared = Rc::clone(&portal.prepared);
        let mut controls = false;
        if let (Progress::Fresh, Body::Utility(node)) = (&portal.progress, &prepared.body) {
            controls = matches!(node.node, Some(NodeEnum::TransactionStmt(_)));
            // Finished, if it fails.
            portal.progress = Progress::Finished;
            let work = self.utility(node, &prepared.text, &mut line.out).await?;
            portal.progress = Progress::Running(Box::new(work));
        }
        let Progress::Running(work) = &mut portal.progress else {
            let error = format!("portal \"{name}\" cannot be run");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error).into());
        };
        // One that has sent rows goes on with what it was planned for.
        if !portal.is_begun {
            self.renew(&prepared, work).await?;
        }
        portal.is_begun = true;
        // COPY sends all its lines, whatever the limit.
        let limit = limit.filter(|_| !matches!(**work, Work::Copy(..)));
        let tag = self.run(work, &portal.formats, limit, line).await?;
        if tag.is_some() && matches!(**work, Work::Done(_)) {
            portal.progress = Progress::Finished;
        }
        if controls || self.is_alone && tag.is_some() {
            self.finish().await?;
        }
        Ok(tag)
    }

    /// Plans a query anew if a table has changed since.
    pub(super) async fn renew(&mut self, prepared: &Prepared, work: &mut Work) -> Result<(), Stop> {
        let Work::Query(query, run) = work else { return Ok(()) };
        let Some(tree) = &prepared.node else { return Ok(()) };
        let node = match &tree.node {
            Some(NodeEnum::PrepareStmt(prepare)) => prepare.query.as_deref().ok_or_else(confused)?,
            _ => tree,
        };
        if self.is_current(query).await? {
            return Ok(());
        }
        let planned = self.plan(node, &prepared.text, &prepared.parameters).await?;
        if planned.columns != query.columns {
            let error = "cached plan must not change result type";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error).into());
        }
        run.restart(&planned);
        *query = Rc::new(planned);
        Ok(())
    }
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}
