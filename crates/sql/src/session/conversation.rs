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
use super::portal::{Body, Portal, Prepared, Work, ends_transaction};
use super::running::UNITS_PER_TURN;
use super::settings::Settings;
use super::transaction::{Portals, Transaction};
use super::{Closed, KEPT_BYTES_MAX, Line, Stop, Stream, World};
use crate::analyze::analyze;
use crate::execute::fuel::Fuel;
use crate::parse::{self, Statement};
use crate::types::{Format, Oid, Style};
use crate::wire::backend;
use crate::wire::frame::{self, Frame};
use crate::wire::frontend::{Message, Target};
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
    /// What is left to work with until the session lets others run.
    pub(super) fuel: Fuel,
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
                    // A client may send any number of messages at a time.
                    if session.fuel.is_spent() {
                        session.pause(line).await?;
                    }
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
            fuel: Fuel::new(UNITS_PER_TURN),
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
                self.burn_for(text.get(statement.text.clone()).unwrap_or_default());
                let query = analyze(&statement.node, text, given, &self.settings)?;
                self.fuel.burn(query.work);
                Ok(Body::Query(Rc::new(query)))
            }
            Some(_) => Ok(statement.node.node.map_or(Body::Empty, |node| Body::Utility(Box::new(node)))),
        }
    }

    /// A message begins that needs a transaction.
    pub(super) fn begin(&mut self) {
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
    pub(super) fn finish(&mut self) {
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
