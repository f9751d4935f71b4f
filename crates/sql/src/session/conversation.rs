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
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::cache::{Cache, Found, Known, Unknown};
use super::cancel::Place;
use super::copy::{Copying, takes_rows};
use super::cursors::Cursor;
use super::data::{Data, Name};
use super::journal::{Journal, Said};
use super::portal::{Body, Portal, Prepared, Work, ends_transaction};
use super::reservations::Reserved;
use super::running::UNITS_PER_TURN;
use super::sequences::Sequences;
use super::settings::Settings;
use super::transaction::{Portals, Transaction};
use super::{Closed, KEPT_BYTES_MAX, Line, Stop, Stream, World, conflict};
use crate::catalog::Relation;
use crate::catalog::pg::Objects;
use crate::execute::fuel::Fuel;
use crate::functions::confused;
use crate::parse::{self, Statement};
use crate::store::Store;
use crate::types::{Format, Oid, Style};
use crate::wire::backend;
use crate::wire::frame::{self, Frame};
use crate::wire::frontend::{Message, Target};
use crate::{Severity, SqlError, SqlState};
use pg_query::NodeEnum;

/// Microseconds in a millisecond, which timeouts are in.
const US_PER_MS: i64 = 1_000;

/// For how long a statement that meets conflicts is run again.
const RETRIED_FOR_US: i64 = 10_000_000;

/// Bound of the pause before a statement is run again for the first time. It doubles each time.
const FIRST_PAUSE_US: u64 = 50;

/// How often it doubles: up to 50 ms.
const DOUBLINGS: u32 = 10;

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
    /// The generation of settings that both were made from.
    generation: u64,
    /// When the message arrived that is being carried out, in microseconds since 2000.
    pub(super) statement_us: i64,
    /// How long it has waited for rows that others had reserved, in microseconds.
    pub(super) waited_us: i64,
    /// What it knows of texts.
    pub(super) cache: Cache,
    /// Descriptors that it has met, with their bytes.
    pub(super) decoded: BTreeMap<Name, (Vec<u8>, Relation)>,
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
        line.read(arrived).await?;
        session.place.begin();
    }
}

impl<'a, W: World> Session<'a, W> {
    pub(super) fn new(world: &'a W, place: Place, settings: Settings) -> Session<'a, W> {
        Session {
            world,
            cache: Cache::default(),
            decoded: BTreeMap::new(),
            reserved: place.reserved(),
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
            sequences: Sequences::default(),
            statements: BTreeMap::new(),
            portals: BTreeMap::new(),
            cursors: BTreeMap::new(),
            statement_us: 0,
            waited_us: 0,
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
            Err(Stop::Conflict(why)) => Some(conflict(why)),
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
            return Box::pin(self.copy(copying, message, line)).await;
        }
        match message {
            // In a box, because the future of every message would have its size.
            Message::Query(text) => Box::pin(self.query(text, line)).await,
            Message::Parse { name, text, types } => Box::pin(self.parse(name, text, types, line)).await,
            Message::Execute { portal, limit } => Box::pin(self.execute(portal, limit, line)).await,
            Message::Sync => {
                self.skipping = false;
                self.finish_or_replay().await?;
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

    /// A simple query.
    async fn query<S: Stream>(&mut self, text: &str, line: &mut Line<'_, S>) -> Result<(), Stop> {
        self.statements.remove("");
        self.portals.remove("");
        self.begin();
        let unknown = match self.find_known(text) {
            Found::Known(known) if self.is_as_planned(&known).await? => {
                return self.run_known(known, line).await;
            }
            Found::Known(_) => {
                self.cache = Cache::default();
                None
            }
            Found::Unknown(unknown) => Some(unknown),
            Found::Nothing => None,
        };
        let statements = parse::parse(text)?;
        if statements.is_empty() {
            backend::empty_query(&mut line.out);
        }
        let several = statements.len() > 1;
        let unknown = unknown.filter(|_| statements.len() == 1);
        let rest = Rest { text: Rc::from(text), several, statements: statements.into_iter(), unknown };
        self.go_on_with(rest, line).await
    }

    async fn is_as_planned(&mut self, known: &Known) -> Result<bool, Stop> {
        match &known.prepared.body {
            Body::Query(query) => self.is_current(query).await,
            Body::Empty | Body::Utility(_) => Ok(false),
        }
    }

    /// Runs a statement that is all of a simple query, and was understood before.
    async fn run_known<S: Stream>(&mut self, known: Known, line: &mut Line<'_, S>) -> Result<(), Stop> {
        self.transaction.check()?;
        let is_all = !self.data.is_used();
        self.data.use_for(is_all);
        let ended = self.transaction.ended();
        let mut tries = self.tries(line);
        loop {
            let stopped = match self.try_known(&known, line).await {
                Ok(()) => break,
                Err(stopped) => stopped,
            };
            self.again(stopped, is_all, &mut tries, line).await?;
        }
        if self.transaction.ended() == ended {
            let whole = line.writes == tries.writes;
            let answer = line.out.get(tries.replies..).filter(|_| whole);
            self.note(Said::Known(known), answer);
        }
        self.ready(line);
        Ok(())
    }

    async fn try_known<S: Stream>(&mut self, known: &Known, line: &mut Line<'_, S>) -> Result<(), Stop> {
        let Known { prepared, parameters } = known;
        let Body::Query(query) = &prepared.body else { return Err(confused().into()) };
        let mut work = Work::Query(Rc::clone(query), query.start(parameters.clone()));
        self.renew(prepared, &mut work).await?;
        if let Some(columns) = work.columns() {
            backend::columns(&mut line.out, columns, |_| Format::Text);
        }
        let tag = self.run(&mut work, &[], None, line).await?;
        self.finish().await?;
        if let Some(tag) = tag {
            backend::command_complete(&mut line.out, &tag);
        }
        Ok(())
    }

    /// Runs the statements of a simple query that have not been run.
    pub(super) async fn go_on_with<S: Stream>(
        &mut self,
        mut rest: Rest,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        while let Some(statement) = rest.statements.next() {
            self.start();
            if rest.several {
                self.transaction.several();
            }
            if let Some(copy) = statement.node.node.as_ref().and_then(takes_rows) {
                self.transaction.check()?;
                self.note_other();
                let copying = self.copy_in(copy, &mut line.out).await?;
                self.copying = Some(copying.before(rest));
                line.due = true;
                return Ok(());
            }
            let is_last = rest.statements.len() == 0;
            let is_all = !rest.several && !self.data.is_used();
            self.data.use_for(is_all);
            let ended = self.transaction.ended();
            let mut tries = self.tries(line);
            loop {
                let unknown = rest.unknown.take();
                let stopped = match self.statement(&statement, &rest.text, is_last, unknown, line).await {
                    Ok(()) => break,
                    Err(stopped) => stopped,
                };
                self.again(stopped, is_all, &mut tries, line).await?;
            }
            if self.transaction.ended() == ended {
                self.note_statement(&statement, &rest.text, &tries, (&line.out, line.writes));
            }
        }
        self.finish().await?;
        self.ready(line);
        Ok(())
    }

    /// A statement of a simple query.
    async fn statement<S: Stream>(
        &mut self,
        statement: &Statement,
        text: &Rc<str>,
        is_last: bool,
        unknown: Option<Unknown>,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        let Some(node) = &statement.node.node else { return Ok(()) };
        let controls = matches!(node, NodeEnum::TransactionStmt(_));
        if !ends_transaction(node) {
            self.transaction.check()?;
        }
        let place = || statement.text.clone();
        let mut work = match self.understand(statement, text, &[]).await {
            Ok(Body::Empty) => return Ok(()),
            Ok(Body::Query(query)) if query.parameters.is_empty() => {
                let run = query.start(Vec::new());
                Work::Query(query, run)
            }
            Ok(Body::Query(_)) => return Err(no_parameter(text, place()).into()),
            Ok(Body::Utility(node)) => self.utility(&node, text, &mut line.out).await?,
            Err(Stop::Error(error)) if error.state == SqlState::INDETERMINATE_DATATYPE => {
                return Err(no_parameter(text, place()).into());
            }
            Err(stop) => return Err(stop),
        };
        if let Some(unknown) = unknown {
            self.learn(unknown, statement, work.columns()).await?;
        }
        if let Some(columns) = work.columns() {
            backend::columns(&mut line.out, columns, |_| Format::Text);
        }
        let tag = self.run(&mut work, &[], None, line).await?;
        // The last statement's transaction ends before its CommandComplete says so, that of others
        // only if they are told to.
        if controls || is_last {
            self.finish().await?;
        }
        if let Some(tag) = tag {
            backend::command_complete(&mut line.out, &tag);
        }
        Ok(())
    }

    /// What is known before a statement is run for the first time.
    pub(super) fn tries<S: Stream>(&self, line: &Line<'_, S>) -> Tries {
        let since_us = self.worked_us();
        Tries { since_us, count: 0, replies: line.out.len(), writes: line.writes }
    }

    /// Undoes what a statement has done that is to be run again, or says why it is not: the client
    /// has seen some of it, or it has been tried for long. If it is not alone in its transaction,
    /// what was before it is run again first.
    pub(super) async fn again<S: Stream>(
        &mut self,
        stopped: Stop,
        is_all: bool,
        tries: &mut Tries,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        let tried_us = self.worked_us().saturating_sub(tries.since_us);
        let can = line.writes == tries.writes && tried_us < RETRIED_FOR_US;
        if !can || !matches!(stopped, Stop::Conflict(_)) {
            return Err(stopped);
        }
        if !is_all || !self.transaction.is_single() {
            Box::pin(self.replay(stopped)).await?;
            line.out.truncate(tries.replies);
            return Ok(());
        }
        line.out.truncate(tries.replies);
        self.abandon().await;
        self.data.use_for(true);
        self.transaction.again(&self.settings);
        let bound_us = FIRST_PAUSE_US << tries.count.min(DOUBLINGS);
        tries.count += 1;
        self.world.sleep(self.world.random() % bound_us).await;
        Ok(self.check_time(self.deadline_us())?)
    }

    /// The time, in microseconds, without that in which it has waited for rows: what is tried again
    /// for some time only is tried again after a long wait as well.
    pub(super) fn worked_us(&self) -> i64 {
        self.world.now_us().saturating_sub(self.waited_us)
    }

    /// Understands a statement: names, types, parameters.
    pub(super) async fn understand(
        &mut self,
        statement: &Statement,
        text: &str,
        given: &[Oid],
    ) -> Result<Body, Stop> {
        match &statement.node.node {
            None => Ok(Body::Empty),
            Some(node) if is_query(node) => {
                self.burn_for(text.get(statement.text.clone()).unwrap_or_default());
                let query = self.plan(&statement.node, text, given).await?;
                self.fuel.burn(query.work);
                Ok(Body::Query(Rc::new(query)))
            }
            Some(_) => Ok(Body::Utility(Rc::clone(&statement.node))),
        }
    }

    /// A message begins that needs a transaction.
    pub(super) fn begin(&mut self) {
        self.statement_us = self.world.now_us();
        self.start();
    }

    /// A statement begins: there is a transaction, and what is made from settings is up to date.
    fn start(&mut self) {
        self.has_called_volatile.set(false);
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
        self.note_other();
        self.forget_held();
        let portals = self.transaction.fail(&self.settings);
        self.end_portals(portals);
        if self.transaction.is_beyond_repair() {
            self.roll_back().await;
        }
    }

    /// Tells what has changed, and that the session is ready.
    fn ready<S: Stream>(&mut self, line: &mut Line<'_, S>) {
        self.settings.report(|name, value| backend::parameter_status(&mut line.out, name, value));
        backend::ready(&mut line.out, self.transaction.status());
        line.due = true;
    }
}

/// What is left of a simple query.
pub(super) struct Rest {
    text: Rc<str>,
    /// Whether it has several statements.
    several: bool,
    statements: std::vec::IntoIter<Statement>,
    /// What may be learnt of the only one.
    unknown: Option<Unknown>,
}

/// A statement that may be run again.
pub(super) struct Tries {
    /// When it was run first, by [`Session::worked_us`].
    since_us: i64,
    /// How often it was run again.
    count: u32,
    /// Bytes of replies to what was before it.
    pub(super) replies: usize,
    /// How often replies were written before.
    pub(super) writes: u64,
}

/// Whether a statement is planned.
pub(super) fn is_query(node: &NodeEnum) -> bool {
    match node {
        NodeEnum::SelectStmt(select) => select.into_clause.is_none(),
        NodeEnum::InsertStmt(_) | NodeEnum::UpdateStmt(_) | NodeEnum::DeleteStmt(_) => true,
        _ => false,
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
