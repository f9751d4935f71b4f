//! Statements: those of a simple query, one after the other in one transaction, and how any
//! statement is understood, and run again.

use std::ops::Range;
use std::rc::Rc;

use pg_query::NodeEnum;

use super::cache::{Cache, Found, Known, Unknown};
use super::conversation::Session;
use super::copy::takes_rows;
use super::journal::Said;
use super::portal::{Body, Work, ends_transaction};
use super::{Line, Stop, Stream, World};
use crate::functions::confused;
use crate::parse::{self, Statement};
use crate::types::{Format, Oid};
use crate::wire::backend;
use crate::{SqlError, SqlState};

/// For how long a statement that meets conflicts is run again.
const RETRIED_FOR_US: i64 = 10_000_000;

/// Bound of the pause before a statement is run again for the first time. It doubles each time.
const FIRST_PAUSE_US: u64 = 50;

/// How often it doubles: up to 50 ms.
const DOUBLINGS: u32 = 10;

impl<W: World> Session<'_, W> {
    /// A simple query.
    pub(super) async fn query<S: Stream>(&mut self, text: &str, line: &mut Line<'_, S>) -> Result<(), Stop> {
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
        if matches!(&work, Work::Query(query, _) if query.write.is_some()) {
            let deadline_us = self.deadline_us();
            self.write_first(&mut work, deadline_us, line).await?;
        }
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
        if matches!(&work, Work::Query(query, _) if query.write.is_some()) {
            let deadline_us = self.deadline_us();
            self.write_first(&mut work, deadline_us, line).await?;
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
        let rows_done = self.rows_done;
        Tries { since_us, count: 0, replies: line.out.len(), writes: line.writes, rows_done }
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
            self.rows_done = tries.rows_done;
            Box::pin(self.replay(stopped)).await?;
            line.out.truncate(tries.replies);
            return Ok(());
        }
        line.out.truncate(tries.replies);
        self.repeats += 1;
        self.rows_done = tries.rows_done;
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
}

/// What is left of a simple query.
pub(super) struct Rest {
    text: Rc<str>,
    /// Whether it has several statements.
    several: bool,
    pub(super) statements: std::vec::IntoIter<Statement>,
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
    /// Rows that what was before it has returned or written.
    rows_done: u64,
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
