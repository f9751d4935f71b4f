//! Transactions that are run again.
//!
//! A client that has seen an answer cannot be told to forget it. But if the database ends a
//! transaction because another was in the way, its statements can be run again, in a new
//! transaction, and if the client would get the same answers, byte by byte, then to the client it
//! is as if nothing had happened: what it saw is true in the new transaction as well. So a session
//! keeps what the statements of its transaction were and what it has answered, as long as there is
//! not much of it. Where it can, it [does again](super::trace) only what they have done in the
//! database.
//!
//! Only if an answer is another one now does the client get a serialization failure. No statement
//! is run again that has called a function which gives something else each time, such as
//! `random()` or `statement_timestamp()`, or has done more than read and write rows; `now()` is the
//! time of the first attempt. Nor is one run again under other settings than it was run under: what
//! it writes may depend on them, which no answer tells.

use std::rc::Rc;

use pg_query::NodeEnum;
use plimsoll_types::mutants::{Mutant, planted};

use super::cache::Known;
use super::conflicts::Conflict;
use super::conversation::Session;
use super::portal::{Body, Portal, Prepared, Progress, Work};
use super::statement::{Tries, is_query};
use super::trace::Trace;
use super::{Closed, Line, Stop, Stream, World};
use crate::functions::confused;
use crate::parse::Statement;
use crate::types::{Datum, Format};
use crate::wire::backend;
use crate::{SqlError, SqlState};

/// Bytes of statements and answers that are kept at most.
const BYTES_MAX: usize = 256 << 10;

/// For how long a transaction that meets conflicts is run again, in microseconds.
const RETRIED_FOR_US: i64 = 10_000_000;

/// Bound of the pause before it is run again for the second time. It doubles each time.
const FIRST_PAUSE_US: u64 = 50;

/// How often it doubles: up to 50 ms.
const DOUBLINGS: u32 = 10;

/// Bytes that a statement takes beside its text and its values.
const SAID_BYTES: usize = 128;

/// Statements before one among which its text is looked for, so that it is counted once.
const LOOKED_BACK: usize = 16;

/// A statement that has been run.
#[derive(Clone)]
pub(super) enum Said {
    /// One of a simple query, and the text that it stands in.
    Simple(Statement, Rc<str>),
    /// One of a simple query that was known.
    Known(Known),
    /// A portal that was run to its end.
    Executed(Rc<Prepared>, Vec<Datum>, Vec<Format>),
    /// `SAVEPOINT`.
    Savepoint,
    /// `RELEASE`: so many savepoints are left.
    Release(usize),
    /// `ROLLBACK TO` this savepoint.
    RollbackTo(usize),
}

/// What the statements of a transaction were.
pub(super) struct Journal {
    /// The transaction that it is of: how many had ended before.
    of: u64,
    /// The statements, and what was answered.
    said: Vec<(Said, Vec<u8>)>,
    /// Bytes of all that.
    bytes: usize,
    /// Whether that is all that was said.
    is_whole: bool,
    /// The generation of the settings that all of it was said under.
    generation: Option<u64>,
    /// When it met the first conflict, by [`Session::worked_us`].
    since_us: Option<i64>,
    /// How often it was run again.
    count: u32,
    /// What the run has read that the database has ended last.
    ended: Option<Trace>,
}

impl Journal {
    pub(super) fn new() -> Journal {
        Journal {
            of: 0,
            said: Vec::new(),
            bytes: 0,
            is_whole: true,
            generation: None,
            since_us: None,
            count: 0,
            ended: None,
        }
    }

    /// What the run has read that the database has ended last.
    pub(super) fn ended(&self) -> Option<&Trace> {
        self.ended.as_ref()
    }

    /// Nobody will ask for that any more.
    pub(super) fn forget_ended(&mut self) {
        self.ended = None;
    }

    /// It is of this transaction from now on.
    fn turn_to(&mut self, transaction: u64) {
        if self.of != transaction {
            *self = Journal { of: transaction, ..Journal::new() };
        }
    }

    /// Something was said that is not there.
    fn give_up(&mut self) {
        self.is_whole = false;
        self.said.clear();
    }

    /// Bytes that a statement adds. A text that one before it stands in as well is there already.
    fn bytes_of(&self, said: &Said) -> usize {
        let mut before = self.said.iter().rev().take(LOOKED_BACK).filter_map(|(before, _)| before.text());
        let text = said.text().filter(|text| !before.any(|it| Rc::ptr_eq(it, text)));
        let values: usize = match said {
            Said::Known(Known { parameters, .. }) | Said::Executed(_, parameters, _) => {
                parameters.iter().map(crate::execute::rows::weight).sum()
            }
            _ => 0,
        };
        SAID_BYTES + text.map_or(0, |text| text.len()) + values
    }
}

impl<W: World> Session<'_, W> {
    /// Notes a statement that was run, with the answer if all of it is there.
    pub(super) fn note(&mut self, said: Said, answer: Option<&[u8]>) {
        self.data.end_statement();
        let is_again = !self.has_called_volatile.replace(false);
        let generation = self.settings.generation();
        let can_go_on = self.can_start_over() && is_again;
        self.journal.generation = Some(generation);
        let Some(answer) = answer.filter(|_| can_go_on) else { return self.journal.give_up() };
        let bytes = answer.len() + self.journal.bytes_of(&said);
        self.journal.bytes = self.journal.bytes.saturating_add(bytes);
        if self.journal.bytes >= BYTES_MAX {
            self.journal.give_up();
        } else {
            self.journal.said.push((said, answer.to_vec()));
        }
    }

    /// Something was done that cannot be done again.
    pub(super) fn note_other(&mut self) {
        self.journal.turn_to(self.transaction.ended());
        self.journal.give_up();
    }

    /// Notes a statement of a simple query that was run, or of the extended protocol that is no
    /// query, if its transaction goes on.
    pub(super) fn note_statement(
        &mut self,
        statement: &Statement,
        text: &Rc<str>,
        tries: &Tries,
        out: (&[u8], u64),
    ) {
        let Some(node) = &statement.node.node else { return };
        match node {
            node if is_query(node) => {
                let (out, writes) = out;
                let answer = out.get(tries.replies..).filter(|_| writes == tries.writes);
                self.note(Said::Simple(statement.clone(), Rc::clone(text)), answer);
            }
            node if !is_harmless(node) => self.note_other(),
            _ => {}
        }
    }

    /// Notes a portal that was run, if its transaction goes on.
    pub(super) fn note_executed(&mut self, portal: &Portal, answer: Option<&[u8]>) {
        if let Some(node) = portal.prepared.body.utility() {
            if !is_harmless(node) {
                self.note_other();
            }
            return;
        }
        let Progress::Running(work) = &portal.progress else { return };
        let (Work::Query(_, run) | Work::Written(_, run, ..)) = &**work else { return };
        let parameters = run.parameters().to_vec();
        self.note(Said::Executed(Rc::clone(&portal.prepared), parameters, portal.formats.clone()), answer);
    }

    /// Commits, and runs all of the transaction again until that goes.
    pub(super) async fn commit_or_replay(&mut self) -> Result<(), Stop> {
        loop {
            match self.commit().await {
                Ok(()) => return Ok(()),
                Err(stop) => Box::pin(self.replay(stop)).await?,
            }
        }
    }

    /// If the transaction meets a conflict now, its statements are run again, and nothing else will do.
    pub(super) fn say_all_again(&mut self) {
        let open = self.data.open.as_mut().map(|open| &mut open.trace);
        for trace in open.into_iter().chain(&mut self.journal.ended) {
            trace.end_statement(false);
        }
    }

    /// The database has ended the transaction, which had read this.
    pub(super) fn keep_trace(&mut self, trace: Trace) {
        self.journal.turn_to(self.transaction.ended());
        self.journal.ended = Some(trace);
    }

    /// Whether a conflict can be met by starting again.
    pub(super) fn can_start_over(&mut self) -> bool {
        self.journal.turn_to(self.transaction.ended());
        let generation = self.settings.generation();
        self.journal.is_whole && self.journal.generation.is_none_or(|said| said == generation)
    }

    /// Whether the transaction was run before and has met a conflict.
    pub(super) fn is_run_again(&self) -> bool {
        self.journal.of == self.transaction.ended() && self.journal.count > 0
    }

    /// Runs all statements of the transaction again, after it has met a conflict. Afterwards what
    /// has met it can be run again. If that cannot be, the conflict is the client's: an error, and
    /// none that could be met once more.
    pub(super) async fn replay(&mut self, stopped: Stop) -> Result<(), Stop> {
        let why = match stopped {
            Stop::Conflict(why) if self.can_start_over() => why,
            Stop::Conflict(why) => return Err(why.error().into()),
            stopped => return Err(stopped),
        };
        let replayed = self.try_replay(why).await;
        if replayed.is_err() {
            // Of what the client was told nothing may be there, or half of it: no savepoint leads back.
            self.lose().await;
        }
        replayed
    }

    /// The same, without what becomes of the transaction if it cannot be run again.
    async fn try_replay(&mut self, mut why: Conflict) -> Result<(), Stop> {
        let now_us = self.worked_us();
        let since_us = *self.journal.since_us.get_or_insert(now_us);
        // What the client has been told rests on what this run has read.
        let open = self.data.open.as_mut().map(|open| std::mem::replace(&mut open.trace, Trace::none()));
        let mut before = open.or(self.journal.ended.take());
        loop {
            if self.worked_us().saturating_sub(since_us) >= RETRIED_FOR_US {
                return Err(why.error().into());
            }
            self.start_over().await;
            let bound_us = FIRST_PAUSE_US << self.journal.count.min(DOUBLINGS);
            if self.journal.count > 0 {
                self.world.sleep(self.world.random() % bound_us).await;
            }
            self.journal.count += 1;
            self.repeats += 1;
            self.check_time(self.deadline_us())?;
            let said = std::mem::take(&mut self.journal.said);
            let result = match self.do_again(&mut before).await {
                Ok(false) => self.say_again(&said).await,
                result => result,
            };
            self.journal.said = said;
            match result {
                Ok(true) => return Ok(()),
                Err(Stop::Error(error)) if is_of_server(&error) => return Err(error.into()),
                // An error is another answer, too.
                Ok(false) | Err(Stop::Error(_)) => {
                    return Err(self.conflict_between(before.as_ref()).error().into());
                }
                Err(Stop::Conflict(next)) => why = next,
                Err(Stop::Closed) => return Err(Stop::Closed),
            }
        }
    }

    /// Runs statements. Says whether the answers are what they were.
    async fn say_again(&mut self, said: &[(Said, Vec<u8>)]) -> Result<bool, Stop> {
        let mut nobody = Nobody;
        let mut line = Line::new(&mut nobody);
        let rows_done = self.rows_done;
        for (said, answer) in said {
            let done = self.say(said, &mut line).await;
            self.rows_done = rows_done;
            done?;
            let is_same = line.out == *answer && line.writes == 0;
            if !is_same && !planted(Mutant::JournalUnseen) {
                return Ok(false);
            }
            line.out.clear();
            self.data.end_statement();
        }
        self.has_called_volatile.set(false);
        Ok(true)
    }

    async fn say<S: Stream>(&mut self, said: &Said, line: &mut Line<'_, S>) -> Result<(), Stop> {
        let (mut work, formats) = match said {
            Said::Savepoint => {
                self.data.mark();
                return Ok(());
            }
            Said::Release(level) => {
                self.data.keep_marks(*level);
                return Ok(());
            }
            Said::RollbackTo(savepoint) => return self.undo_to(*savepoint).await,
            Said::Simple(statement, text) => {
                let Body::Query(query) = self.understand(statement, text, &[]).await? else {
                    return Err(confused().into());
                };
                let run = query.start(Vec::new());
                let work = Work::Query(query, run);
                if let Some(columns) = work.columns() {
                    backend::columns(&mut line.out, columns, |_| Format::Text);
                }
                (work, &[][..])
            }
            Said::Known(Known { prepared, parameters }) => {
                let Body::Query(query) = &prepared.body else { return Err(confused().into()) };
                let mut work = Work::Query(Rc::clone(query), query.start(parameters.clone()));
                self.renew(prepared, &mut work).await?;
                if let Some(columns) = work.columns() {
                    backend::columns(&mut line.out, columns, |_| Format::Text);
                }
                (work, &[][..])
            }
            Said::Executed(prepared, parameters, formats) => {
                let Body::Query(query) = &prepared.body else { return Err(confused().into()) };
                let mut work = Work::Query(Rc::clone(query), query.start(parameters.clone()));
                self.renew(prepared, &mut work).await?;
                (work, &formats[..])
            }
        };
        if let Some(tag) = self.run(&mut work, formats, None, line).await? {
            backend::command_complete(&mut line.out, &tag);
        }
        Ok(())
    }
}

/// Whether a statement that is no query changes nothing which has to be done again.
pub(super) fn is_harmless(node: &NodeEnum) -> bool {
    matches!(
        node,
        NodeEnum::TransactionStmt(_)
            | NodeEnum::VariableSetStmt(_)
            | NodeEnum::VariableShowStmt(_)
            | NodeEnum::PrepareStmt(_)
            | NodeEnum::DeallocateStmt(_)
            | NodeEnum::ClosePortalStmt(_)
            | NodeEnum::ListenStmt(_)
            | NodeEnum::UnlistenStmt(_)
    )
}

impl Said {
    /// The text that it stands in.
    fn text(&self) -> Option<&Rc<str>> {
        match self {
            Said::Simple(_, text) => Some(text),
            Said::Known(Known { prepared, .. }) | Said::Executed(prepared, ..) => Some(&prepared.text),
            Said::Savepoint | Said::Release(_) | Said::RollbackTo(_) => None,
        }
    }
}

/// Whether an error tells nothing of rows: a client has asked for the end, time or memory is over,
/// or the database is out of reach.
fn is_of_server(error: &SqlError) -> bool {
    let SqlState([class, kind, ..]) = error.state;
    class == b'5' && (kind == b'3' || kind == b'7')
}

/// What answers go to that nobody gets.
struct Nobody;

impl Stream for Nobody {
    async fn read(&mut self, _buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        Err(Closed)
    }

    async fn write(&mut self, _bytes: &[u8]) -> Result<(), Closed> {
        Ok(())
    }
}
