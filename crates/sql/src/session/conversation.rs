//! The messages of a session: what each does, and what an error in one does to the others.
//!
//! A simple query runs its statements one after the other in one transaction, and the first error
//! ends them all. In the extended protocol a client sends messages without waiting for replies; an
//! error makes the session skip everything up to the next Sync, where the transaction that began
//! by itself ends too. So both halves share [`Session::failed`], which decides what an error ends.
//!
//! A statement without a name lives until the next such one or a simple query; a portal at most as
//! long as its transaction.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use super::cancel::Place;
use super::portal::{Body, Portal, Prepared, Progress, Work, ends_transaction};
use super::settings::Settings;
use super::transaction::{Portals, Transaction};
use super::{Closed, KEPT_BYTES_MAX, Line, Stop, Stream, World};
use crate::analyze::analyze;
use crate::parse::{self, Statement};
use crate::types::{self, Datum, Format, Oid, Style};
use crate::wire::backend;
use crate::wire::frame::{self, Frame};
use crate::wire::frontend::{Bind, Message, Target, format_of};
use crate::{Severity, SqlError, SqlState};
use pg_query::NodeEnum;

/// Microseconds in a millisecond, which timeouts are in.
const US_PER_MS: i64 = 1_000;

/// A session: what a connection has between its messages.
pub(super) struct Session<'a, W> {
    pub(super) world: &'a W,
    pub(super) place: Place,
    pub(super) settings: Settings,
    pub(super) transaction: Transaction,
    pub(super) statements: BTreeMap<String, Rc<Prepared>>,
    pub(super) portals: BTreeMap<String, Portal>,
    /// What text forms depend on.
    pub(super) style: Style,
    /// How long a statement may take; none is for ever.
    pub(super) timeout_us: Option<i64>,
    /// The generation of settings that both were made from.
    generation: u64,
    /// When the message arrived that is being carried out, in microseconds since 2000.
    pub(super) statement_us: i64,
    /// Whether messages are skipped up to the next Sync.
    skipping: bool,
}

/// Carries out messages until there are no more.
pub(super) async fn converse<S: Stream, W: World>(
    mut session: Session<'_, W>,
    line: &mut Line<'_, S>,
    arrived: &mut Vec<u8>,
) -> Result<(), Closed> {
    loop {
        let mut at = 0;
        loop {
            match frame::next(arrived.get(at..).unwrap_or_default()) {
                Ok(Some(frame)) => {
                    at += frame.bytes;
                    if !session.handle(frame, line).await? {
                        return line.flush().await;
                    }
                    line.give_way().await?;
                }
                Ok(None) => break,
                Err(error) => {
                    backend::error(&mut line.out, &error);
                    return line.flush().await;
                }
            }
        }
        arrived.drain(..at);
        if arrived.is_empty() {
            arrived.shrink_to(KEPT_BYTES_MAX);
        }
        if line.due {
            line.flush().await?;
        }
        line.read(arrived).await?;
        session.place.begin();
    }
}

impl<'a, W: World> Session<'a, W> {
    pub(super) fn new(world: &'a W, place: Place, settings: Settings) -> Session<'a, W> {
        Session {
            world,
            place,
            style: Style::default(),
            timeout_us: None,
            generation: 0,
            settings,
            transaction: Transaction::new(),
            statements: BTreeMap::new(),
            portals: BTreeMap::new(),
            statement_us: 0,
            skipping: false,
        }
    }

    /// Carries out a message. Says whether there may be another.
    async fn handle<S: Stream>(&mut self, frame: Frame<'_>, line: &mut Line<'_, S>) -> Result<bool, Closed> {
        if self.skipping && !matches!(frame.kind, b'S' | b'X') {
            return Ok(true);
        }
        let carried_out = match Message::decode(frame) {
            Ok(Message::Terminate) => return Ok(false),
            Ok(message) => self.carry_out(message, line).await,
            Err(error) => Err(Stop::Error(error)),
        };
        match carried_out {
            Ok(()) => Ok(true),
            Err(Stop::Closed) => Err(Closed),
            Err(Stop::Error(error)) => {
                self.failed(&error, line);
                if error.severity == Severity::Fatal {
                    return Ok(false);
                }
                if matches!(frame.kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H') {
                    self.skipping = true;
                } else {
                    self.ready(line);
                }
                Ok(true)
            }
        }
    }

    async fn carry_out<S: Stream>(
        &mut self,
        message: Message<'_>,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        match message {
            // In a box, because the future of every message would have its size.
            Message::Query(text) => Box::pin(self.query(text, line)).await,
            Message::Execute { portal, limit } => self.execute(portal, limit, line).await,
            message => Ok(self.answer(message, line)?),
        }
    }

    /// Carries out a message that nothing has to be awaited for.
    fn answer<S: Stream>(&mut self, message: Message<'_>, line: &mut Line<'_, S>) -> Result<(), SqlError> {
        match message {
            Message::Parse { name, text, types } => self.parse(name, text, types, line)?,
            Message::Bind(bind) => self.bind(&bind, line)?,
            Message::Describe(target) => self.describe(target, line)?,
            Message::Close(target) => {
                match target {
                    Target::Statement(name) => drop(self.statements.remove(name)),
                    Target::Portal(name) => drop(self.portals.remove(name)),
                }
                backend::close_complete(&mut line.out);
            }
            Message::Flush => line.due = true,
            Message::Sync => {
                self.skipping = false;
                self.finish();
                self.ready(line);
            }
            Message::FunctionCall => {
                let error = "function calls by identifier are not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error));
            }
            Message::Password(_) => {
                let error = "a password was not asked for";
                return Err(SqlError::fatal(SqlState::PROTOCOL_VIOLATION, error));
            }
            // Without a COPY its messages mean nothing, and PostgreSQL ignores them too: a client
            // may have sent them before it knew that its COPY has failed.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => {}
            // The callers' own.
            Message::Query(_) | Message::Execute { .. } | Message::Terminate => {}
        }
        Ok(())
    }

    /// A simple query.
    async fn query<S: Stream>(&mut self, text: &str, line: &mut Line<'_, S>) -> Result<(), Stop> {
        self.statements.remove("");
        self.portals.remove("");
        self.begin();
        let statements = parse::parse(text)?;
        if statements.is_empty() {
            backend::empty_query(&mut line.out);
        }
        let (text, several) = (Rc::from(text), statements.len() > 1);
        let last = statements.len();
        for (number, statement) in (1..).zip(statements) {
            self.start();
            if several {
                self.transaction.several();
            }
            let Some(node) = &statement.node.node else { continue };
            let controls = matches!(node, NodeEnum::TransactionStmt(_));
            if !ends_transaction(node) {
                self.transaction.check()?;
            }
            let place = statement.text.clone();
            let work = match self.understand(statement, &text, &[]) {
                Ok(Body::Empty) => continue,
                Ok(Body::Query(query)) if query.parameters.is_empty() => {
                    let run = query.start(Vec::new());
                    Work::Query(query, run)
                }
                Ok(Body::Query(_)) => return Err(no_parameter(&text, place).into()),
                Ok(Body::Utility(node)) => self.utility(&node, &text, &mut line.out)?,
                Err(error) if error.state == SqlState::INDETERMINATE_DATATYPE => {
                    return Err(no_parameter(&text, place).into());
                }
                Err(error) => return Err(error.into()),
            };
            if let Some(columns) = work.columns() {
                backend::columns(&mut line.out, columns, |_| Format::Text);
            }
            let mut work = work;
            // The last statement's transaction ends before its CommandComplete says so, that of
            // others only if they are told to.
            self.run(&mut work, &[], None, line).await?;
            if controls || number == last {
                self.finish();
            }
        }
        self.finish();
        self.ready(line);
        Ok(())
    }

    /// Understands a statement: names, types, parameters.
    pub(super) fn understand(
        &self,
        statement: Statement,
        text: &str,
        given: &[Oid],
    ) -> Result<Body, SqlError> {
        match &statement.node.node {
            None => Ok(Body::Empty),
            Some(NodeEnum::SelectStmt(_)) => {
                let query = analyze(&statement.node, text, given, &self.settings)?;
                Ok(Body::Query(Rc::new(query)))
            }
            Some(_) => Ok(statement.node.node.map_or(Body::Empty, |node| Body::Utility(Box::new(node)))),
        }
    }

    fn parse<S: Stream>(
        &mut self,
        name: &str,
        text: &str,
        types: Vec<u32>,
        line: &mut Line<'_, S>,
    ) -> Result<(), SqlError> {
        self.begin();
        if name.is_empty() {
            self.statements.remove("");
        }
        let mut statements = parse::parse(text)?;
        let given: Vec<Oid> = types.into_iter().map(Oid).collect();
        let statement = statements.pop();
        if !statements.is_empty() {
            let error = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, error));
        }
        if !statement.as_ref().and_then(|it| it.node.node.as_ref()).is_none_or(ends_transaction) {
            self.transaction.check()?;
        }
        let body = match statement {
            None => Body::Empty,
            Some(statement) => self.understand(statement, text, &given)?,
        };
        let parameters = match &body {
            Body::Query(query) => query.parameters.clone(),
            Body::Empty | Body::Utility(_) => given,
        };
        self.keep(name, Prepared { text: Rc::from(text), body, parameters })?;
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

    fn bind<S: Stream>(&mut self, bind: &Bind<'_>, line: &mut Line<'_, S>) -> Result<(), SqlError> {
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
            Body::Query(query) => Progress::Running(Work::Query(Rc::clone(query), query.start(parameters))),
            Body::Empty | Body::Utility(_) => Progress::Fresh,
        };
        let (formats, level) = (bind.results.clone(), self.transaction.level());
        self.portals.insert(bind.portal.to_owned(), Portal { prepared, formats, level, progress });
        backend::bind_complete(&mut line.out);
        Ok(())
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

    fn describe<S: Stream>(&mut self, target: Target<'_>, line: &mut Line<'_, S>) -> Result<(), SqlError> {
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

    async fn execute<S: Stream>(
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
        let progress = std::mem::replace(&mut portal.progress, Progress::Finished);
        let ended = self.transaction.ended();
        let (mut work, controls) = match (progress, &prepared.body) {
            (Progress::Running(work), _) => (work, false),
            (Progress::Fresh, Body::Utility(node)) => {
                let controls = matches!(**node, NodeEnum::TransactionStmt(_));
                (self.utility(node, &prepared.text, &mut line.out)?, controls)
            }
            (Progress::Fresh | Progress::Finished, _) => {
                let error = format!("portal \"{name}\" cannot be run");
                return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error).into());
            }
        };
        self.run(&mut work, &portal.formats, limit, line).await?;
        if controls {
            self.finish();
        }
        if !matches!(work, Work::Done(_)) {
            portal.progress = Progress::Running(work);
        }
        if self.transaction.ended() == ended && portal.level <= self.transaction.level() {
            self.portals.insert(name.to_owned(), portal);
        }
        Ok(())
    }

    /// A message begins that needs a transaction.
    fn begin(&mut self) {
        self.statement_us = self.world.now_us();
        self.start();
    }

    /// A statement begins: there is a transaction, and what is made from settings is up to date.
    fn start(&mut self) {
        self.transaction.start(&self.settings, self.statement_us);
        let generation = self.settings.generation();
        if self.generation != generation {
            self.generation = generation;
            self.style = self.settings.style();
            let timeout_ms = self.settings.number("statement_timeout");
            self.timeout_us = (timeout_ms > 0).then(|| timeout_ms.saturating_mul(US_PER_MS));
        }
        self.style.now_us = self.transaction.begun_us();
    }

    /// What began by itself ends.
    fn finish(&mut self) {
        if self.transaction.finish(&self.settings) {
            self.end_portals(Portals::End);
        }
    }

    /// Portals end with what they were opened in.
    pub(super) fn end_portals(&mut self, what: Portals) {
        match what {
            Portals::Stay => {}
            Portals::End => self.portals.clear(),
            Portals::Above(level) => self.portals.retain(|_, portal| portal.level <= level),
            Portals::Join(level) => {
                self.portals.values_mut().for_each(|portal| portal.level = portal.level.min(level));
            }
        }
    }

    /// A message has failed.
    fn failed<S: Stream>(&mut self, error: &SqlError, line: &mut Line<'_, S>) {
        backend::error(&mut line.out, error);
        let portals = self.transaction.fail(&self.settings);
        self.end_portals(portals);
    }

    /// Tells what has changed, and that the session is ready.
    fn ready<S: Stream>(&mut self, line: &mut Line<'_, S>) {
        self.settings.report(|name, value| backend::parameter_status(&mut line.out, name, value));
        backend::ready(&mut line.out, self.transaction.status());
        line.due = true;
    }
}

/// The error of a parameter where there are none: which, and where.
fn no_parameter(text: &str, place: Range<usize>) -> SqlError {
    let parameter = parse::parameter(text, place);
    let number = parameter.map_or(1, |(number, _)| number);
    let error = format!("there is no parameter ${number}");
    let error = SqlError::new(SqlState::UNDEFINED_PARAMETER, error);
    match parameter {
        Some((_, position)) => error.at(position),
        None => error,
    }
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}
