//! The messages of a session: what each does, and what an error in one does to the others.
//!
//! A simple query runs its statements one after the other in one transaction, and the first error
//! ends them all. In the extended protocol a client sends messages without waiting for replies; an
//! error makes the session skip everything up to the next Sync, where the transaction that began
//! by itself ends too. So both halves share [`Session::failed`], which decides what an error ends.
//!
//! A statement without a name lives until the next such one or a simple query; a portal at most as
//! long as its transaction.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::cache::Cache;
use super::cancel::Place;
use super::copy::Copying;
use super::cursors::Cursor;
use super::data::Data;
use super::definition::Sweep;
use super::journal::Journal;
use super::names::{Met, Name};
use super::portal::{Portal, Prepared};
use super::recent::Author;
use super::reservations::Reserved;
use super::running::UNITS_PER_TURN;
use super::sequences::Sequences;
use super::settings::Settings;
use super::showing::Begun;
use super::transaction::{Portals, Transaction};
use super::{Closed, KEPT_BYTES_MAX, Line, Stop, Stream, World};
use crate::catalog::Relation;
use crate::catalog::pg::Objects;
use crate::execute::fuel::Fuel;
use crate::store::Store;
use crate::types::Style;
use crate::wire::backend::{self, Status};
use crate::wire::frame::{self, Frame};
use crate::wire::frontend::{Message, Target};
use crate::{Severity, SqlError, SqlState};

/// Microseconds in a millisecond, which timeouts are in.
const US_PER_MS: i64 = 1_000;

/// A session: what a connection has between its messages.
pub(super) struct Session<'a, W: World> {
    pub(super) world: &'a W,
    /// Rows that its transaction is going to write. They are given back before the place is, which
    /// another session may then take.
    pub(super) reserved: Reserved,
    pub(super) place: Place,
    pub(super) settings: Settings,
    pub(super) transaction: Transaction,
    /// Rows that are coming.
    pub(super) copying: Option<Copying>,
    /// The database's transaction below it.
    pub(super) data: Data<<W::Store as Store>::Transaction>,
    /// All tables, when they were last looked up.
    pub(super) objects: Option<Arc<Objects>>,
    /// Rows that it removes when it has time.
    pub(super) sweep: Sweep,
    /// Numbers for tables that it has drawn and not used.
    pub(super) ids: std::ops::Range<u32>,
    /// Numbers of sequences.
    pub(super) sequences: Sequences,
    pub(super) statements: BTreeMap<String, Rc<Prepared>>,
    pub(super) portals: BTreeMap<String, Portal>,
    pub(super) cursors: BTreeMap<String, Cursor>,
    /// What text forms depend on.
    pub(super) style: Style,
    /// How long a statement may take; none is for ever.
    pub(super) timeout_us: Option<i64>,
    /// What is left to work with until the session lets others run.
    pub(super) fuel: Fuel,
    /// How often the statement at hand has let others run.
    pub(super) turns: u32,
    /// The generation of settings that both were made from.
    generation: u64,
    /// When the message arrived that is being carried out, in microseconds since 2000.
    pub(super) statement_us: i64,
    /// How long it has waited for rows that others had reserved, in microseconds.
    pub(super) waited_us: i64,
    /// How much of that was before the statement at hand.
    pub(super) waited_before_us: i64,
    /// The statement at hand.
    pub(super) begun: Option<Begun>,
    /// The same without its literals.
    pub(super) normal: String,
    /// Rows that it has returned or written.
    pub(super) rows_done: u64,
    /// How often statements, or their transactions, were run again.
    pub(super) repeats: u64,
    /// What it knows of texts.
    pub(super) cache: Cache,
    /// Descriptors that it has met, with their bytes.
    pub(super) decoded: BTreeMap<Name, (Vec<u8>, Relation)>,
    /// Tables that its plans are for, the same.
    pub(super) met: Vec<Met>,
    /// The session, to those whose rows it writes.
    pub(super) author: Author,
    /// What its transaction has said.
    pub(super) journal: Journal,
    /// Whether the statement at hand has called a function that may give something else each time.
    pub(super) has_called_volatile: Cell<bool>,
    /// Whether messages are skipped up to the next Sync.
    skipping: bool,
    /// Whether a Sync follows the message at hand, so that its transaction can end with it.
    pub(super) is_alone: bool,
}

/// Carries out messages until there are no more.
pub(super) async fn converse<S: Stream, W: World>(
    mut session: Session<'_, W>,
    line: &mut Line<'_, S>,
    arrived: &mut Vec<u8>,
) -> Result<(), Closed> {
    let ended = carry_out_all(&mut session, line, arrived).await;
    session.roll_back().await;
    if !session.sweep.is_over() {
        line.stream.close().await;
        session.sweep_all().await;
    }
    ended
}

async fn carry_out_all<S: Stream, W: World>(
    session: &mut Session<'_, W>,
    line: &mut Line<'_, S>,
    arrived: &mut Vec<u8>,
) -> Result<(), Closed> {
    loop {
        let mut at = 0;
        loop {
            match frame::next(arrived.get(at..).unwrap_or_default()) {
                Ok(Some(frame)) => {
                    at += frame.bytes;
                    session.is_alone = arrived.get(at) == Some(&b'S');
                    if !session.handle(frame, line).await? {
                        return line.flush().await;
                    }
                    line.give_way().await?;
                    // A client may send any number of messages at a time.
                    if session.fuel.is_spent() {
                        session.turns = 0;
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
        session.forget_names();
        session.sweep_until(line.read(arrived)).await?;
        session.place.begin();
    }
}

impl<'a, W: World> Session<'a, W> {
    pub(super) fn new(world: &'a W, place: Place, settings: Settings) -> Session<'a, W> {
        Session {
            world,
            cache: Cache::default(),
            decoded: BTreeMap::new(),
            met: Vec::new(),
            reserved: place.reserved(world.sender()),
            author: Author { session: place.pid(), application: Arc::from("") },
            place,
            style: Style::default(),
            timeout_us: None,
            fuel: Fuel::new(UNITS_PER_TURN),
            generation: 0,
            settings,
            transaction: Transaction::new(),
            copying: None,
            data: Data::new(),
            objects: None,
            sweep: Sweep::default(),
            ids: 0..0,
            sequences: Sequences::default(),
            statements: BTreeMap::new(),
            portals: BTreeMap::new(),
            cursors: BTreeMap::new(),
            statement_us: 0,
            turns: 0,
            waited_us: 0,
            waited_before_us: 0,
            begun: None,
            normal: String::new(),
            rows_done: 0,
            repeats: 0,
            journal: Journal::new(),
            has_called_volatile: Cell::new(false),
            skipping: false,
            is_alone: false,
        }
    }

    /// Carries out a message. Says whether there may be another.
    async fn handle<S: Stream>(&mut self, frame: Frame<'_>, line: &mut Line<'_, S>) -> Result<bool, Closed> {
        if self.skipping && !matches!(frame.kind, b'S' | b'X') {
            return Ok(true);
        }
        // In the extended protocol an error is followed by a Sync, and so is one of its COPY.
        let mut is_extended = matches!(frame.kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H');
        if let Some(copying) = &self.copying {
            is_extended = copying.rest.is_none();
            if matches!(frame.kind, b'H' | b'S') {
                return Ok(true);
            }
        }
        let carried_out = match Message::decode(frame) {
            Ok(Message::Terminate) => return Ok(false),
            Ok(message) => self.carry_out(message, line).await,
            Err(error) => {
                self.copying = None;
                Err(Stop::Error(error))
            }
        };
        let stopped = match carried_out {
            Ok(()) => None,
            Err(Stop::Closed) => return Err(Closed),
            Err(Stop::Error(error)) => Some(error),
            Err(Stop::Conflict(conflict)) => Some(conflict.error()),
        };
        match stopped {
            None => Ok(true),
            Some(error) => {
                self.failed(&error, line).await;
                if error.severity == Severity::Fatal {
                    return Ok(false);
                }
                if is_extended {
                    self.skipping = true;
                    // A client may wait for it before it sends a Sync.
                    line.due = true;
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
        if let Some(copying) = self.copying.take() {
            let result = Box::pin(self.copy(copying, message, line)).await;
            self.show_end(&result);
            return result;
        }
        match message {
            // In a box, because the future of every message would have its size.
            Message::Query(text) => {
                self.show_statement(text, true);
                let result = Box::pin(self.query(text, line)).await;
                self.show_end(&result);
                result
            }
            Message::Parse { name, text, types } => {
                self.show_text(text);
                Box::pin(self.parse(name, text, types, line)).await
            }
            Message::Execute { portal, limit } => {
                let found = self.portals.get(portal);
                let is_new = found.is_none_or(|portal| !portal.is_begun);
                let text = found.map(|portal| Rc::clone(&portal.prepared.text));
                self.show_statement(text.as_deref().unwrap_or_default(), is_new);
                let result = Box::pin(self.execute(portal, limit, line)).await;
                self.show_end(&result);
                result
            }
            Message::Sync => {
                self.skipping = false;
                let repeats = self.repeats;
                let result = self.finish_or_replay().await;
                self.show_ended(repeats, &result);
                result?;
                self.ready(line);
                Ok(())
            }
            message => {
                if let Message::Bind(bind) = &message
                    && self.binds_names(bind)
                {
                    self.begin();
                    self.transaction.check()?;
                    Box::pin(self.look_up_all()).await?;
                }
                Ok(self.answer(message, line)?)
            }
        }
    }

    /// Carries out a message that nothing has to be awaited for.
    fn answer<S: Stream>(&mut self, message: Message<'_>, line: &mut Line<'_, S>) -> Result<(), SqlError> {
        match message {
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
            Message::Query(_)
            | Message::Parse { .. }
            | Message::Execute { .. }
            | Message::Sync
            | Message::Terminate => {}
        }
        Ok(())
    }

    /// Carries out a message while rows are coming. After an error no more are taken.
    async fn copy<S: Stream>(
        &mut self,
        mut copying: Copying,
        message: Message<'_>,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        match message {
            Message::CopyData(bytes) => {
                self.copied(&mut copying, bytes, line).await?;
                self.copying = Some(copying);
                Ok(())
            }
            Message::CopyDone => {
                let tag = self.copy_done(&mut copying, line).await?;
                self.count_rows(&tag);
                if copying.rest.as_ref().is_some_and(|rest| rest.statements.len() == 0) {
                    self.finish().await?;
                }
                backend::command_complete(&mut line.out, &tag);
                match copying.rest {
                    Some(rest) => self.go_on_with(rest, line).await,
                    None => Ok(()),
                }
            }
            Message::CopyFail(why) => {
                let error = format!("COPY from stdin failed: {why}");
                Err(SqlError::new(SqlState::QUERY_CANCELED, error).into())
            }
            _ => {
                let error = "unexpected message during COPY from stdin";
                Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, error).into())
            }
        }
    }

    /// A message begins that needs a transaction.
    pub(super) fn begin(&mut self) {
        self.statement_us = self.world.now_us();
        self.start();
    }

    /// A statement begins: there is a transaction, and what is made from settings is up to date.
    pub(super) fn start(&mut self) {
        self.has_called_volatile.set(false);
        self.turns = 0;
        self.waited_before_us = self.waited_us;
        self.transaction.start(&self.settings, self.statement_us);
        let generation = self.settings.generation();
        if self.generation != generation {
            self.generation = generation;
            self.style = self.settings.style();
            self.show_application();
            let timeout_ms = self.settings.number("statement_timeout");
            self.timeout_us = (timeout_ms > 0).then(|| timeout_ms.saturating_mul(US_PER_MS));
        }
        self.style.now_us = self.transaction.begun_us();
    }

    /// What began by itself ends.
    pub(super) async fn finish(&mut self) -> Result<(), Stop> {
        if self.transaction.ends_by_itself() {
            self.commit().await?;
            if self.transaction.finish(&self.settings) {
                self.end_portals(Portals::End);
            }
        }
        Ok(())
    }

    /// The same, after the answers to all of it. It is run again until that goes.
    async fn finish_or_replay(&mut self) -> Result<(), Stop> {
        loop {
            match self.finish().await {
                Ok(()) => return Ok(()),
                Err(stop) => Box::pin(self.replay(stop)).await?,
            }
        }
    }

    /// Portals end with what they were opened in.
    pub(super) fn end_portals(&mut self, what: Portals) {
        match what {
            Portals::Stay => {}
            Portals::End => {
                self.portals.clear();
                self.cursors.retain(|_, cursor| cursor.is_held());
            }
            Portals::Above(level) => {
                self.portals.retain(|_, portal| portal.level <= level);
                self.cursors.retain(|_, cursor| cursor.is_within(level));
            }
            Portals::Join(level) => {
                self.portals.values_mut().for_each(|portal| portal.level = portal.level.min(level));
            }
        }
    }

    /// Cursors are gone that a transaction has declared which does not commit.
    pub(super) fn forget_held(&mut self) {
        let transaction = self.transaction.ended();
        self.cursors.retain(|_, cursor| !cursor.is_held() || !cursor.is_of(transaction));
    }

    /// A message has failed.
    async fn failed<S: Stream>(&mut self, error: &SqlError, line: &mut Line<'_, S>) {
        backend::error(&mut line.out, error);
        // What has failed to commit is over, and nothing was said in the transaction that comes
        // next.
        if self.transaction.is_block() {
            self.note_other();
        }
        self.forget_held();
        let portals = self.transaction.fail(&self.settings);
        self.end_portals(portals);
        if self.transaction.is_beyond_repair() {
            self.roll_back().await;
        }
    }

    /// Tells what has changed, and that the session is ready.
    pub(super) fn ready<S: Stream>(&mut self, line: &mut Line<'_, S>) {
        self.settings.report(|name, value| backend::parameter_status(&mut line.out, name, value));
        if self.generation != self.settings.generation() {
            self.show_application();
        }
        let status = self.transaction.status();
        if status == Status::Idle {
            self.journal.forget_ended();
        }
        self.show_waiting(status);
        backend::ready(&mut line.out, status);
        line.due = true;
    }
}
