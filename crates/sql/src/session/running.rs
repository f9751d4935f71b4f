//! How work runs: row by row, giving way to others.
//!
//! A row is encoded as it comes, so a result of any length takes the memory of its replies that
//! wait to be written. After 64 KiB of them the session waits for its client. Work runs on fuel
//! ([`crate::execute::fuel`]): when that is spent, be it between two rows, before the first one or
//! after many short statements, the session lets the other tasks of the shard run, looks for a
//! request to cancel and at the clock, and goes on.

use std::rc::Rc;

use super::conversation::Session;
use super::lines::Form;
use super::names::Known;
use super::portal::Work;
use super::tuples;
use super::{Closed, Line, Stop, Stream, World};
use crate::analyze::{Column, Query, unsupported};
use crate::execute::rows::{MEMORY_MAX, Row, weight};
use crate::execute::{Context, Run, Step};
use crate::functions::confused;
use crate::types::{self, Datum, Format};
use crate::wire::backend;
use crate::wire::frontend::format_of;
use crate::{SqlError, SqlState};

/// Units of work between two pauses: some 30 µs, so that others who have little to do seldom wait long.
pub(super) const UNITS_PER_TURN: u32 = 32;

/// Turns after which a statement is a long one: some half a millisecond.
const SHORT_TURNS: u32 = 16;

/// Bytes of a statement whose analysis takes about as long as a unit of work.
const BYTES_PER_UNIT: usize = 16;

/// Rows that a statement keeps, and their bytes.
#[derive(Default)]
struct Gathered {
    rows: Vec<Row>,
    bytes: usize,
}

impl Gathered {
    fn push(&mut self, row: Row) -> Result<(), SqlError> {
        self.bytes += row.iter().map(weight).sum::<usize>();
        if self.bytes > MEMORY_MAX {
            let error = SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory");
            let detail = "The rows that the statement is to write, or to keep, take too much.";
            return Err(error.detail(detail).hint("Write or read them in several statements."));
        }
        self.rows.push(row);
        Ok(())
    }
}

impl<W: World> Session<'_, W> {
    /// Runs work to its end or to a limit of rows and sends the rows. Returns what CommandComplete
    /// says at its end, and nothing at the limit.
    pub(super) async fn run<S: Stream>(
        &mut self,
        work: &mut Work,
        formats: &[Format],
        limit: Option<u32>,
        line: &mut Line<'_, S>,
    ) -> Result<Option<String>, Stop> {
        if let Work::Done(tag) = work {
            return Ok(Some(tag.clone()));
        }
        let deadline_us = self.deadline_us();
        self.write_first(work, deadline_us, line).await?;
        let mut rows: u64 = 0;
        while limit.is_none_or(|limit| rows < u64::from(limit)) {
            match self.step(work)? {
                Step::Row(row) => {
                    match work {
                        Work::Copy(query, _, form) => {
                            self.encode_copied(&row, rows == 0, query, form, &mut line.out)?;
                        }
                        _ => self.encode(&row, work, formats, &mut line.out)?,
                    }
                    rows += 1;
                    line.give_way().await?;
                }
                Step::Pause => self.pause_if_spent(deadline_us, line).await?,
                Step::Fetch(wanted) => {
                    let (pairs, left) = self.fetch(wanted).await?;
                    if let Work::Query(_, run) | Work::Copy(_, run, _) = work {
                        run.fetched(pairs, left);
                    }
                }
                Step::Ask(question) => {
                    let answer = self.answer_to(question).await?;
                    if let Work::Query(_, run) | Work::Copy(_, run, _) = work {
                        run.answered(answer);
                    }
                }
                Step::Reserve(reserve) => {
                    let is_reserved = self.reserve_for(reserve, deadline_us).await?;
                    if let Work::Query(_, run) | Work::Copy(_, run, _) = work {
                        run.reserved(is_reserved);
                    }
                }
                Step::End => {
                    let tag = match work {
                        Work::Rows(_, _, tag) | Work::Written(_, _, _, tag) | Work::Done(tag) => tag.clone(),
                        Work::Query(..) => format!("SELECT {rows}"),
                        Work::Copy(_, _, form) => {
                            if form.binary {
                                let end = tuples::begun(rows == 0, &tuples::END);
                                backend::copy_data(&mut line.out, &end)?;
                            }
                            backend::copy_done(&mut line.out);
                            format!("COPY {rows}")
                        }
                    };
                    self.count_rows(&tag);
                    return Ok(Some(tag));
                }
            }
        }
        // What a statement that writes returns is counted at its end.
        if let Work::Query(..) = work {
            self.rows_done = self.rows_done.saturating_add(rows);
        }
        Ok(None)
    }

    /// What precedes the first row: a statement that writes does all of it. A client learns of the
    /// columns of such a statement when that has gone well.
    pub(super) async fn write_first<S: Stream>(
        &mut self,
        work: &mut Work,
        deadline_us: Option<i64>,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        if matches!(work, Work::Query(..) | Work::Copy(..)) {
            self.transaction.queried(&self.settings);
        }
        // Statements before this one may have spent the fuel.
        self.fuel.burn(1);
        self.pause_if_spent(deadline_us, line).await?;
        if let Work::Query(query, _) | Work::Copy(query, _, _) | Work::Written(query, ..) = work
            && query.objects.is_some()
        {
            self.look_up_all().await?;
        }
        if let Work::Query(query, run) = work
            && query.write.is_some()
        {
            let query = Rc::clone(query);
            let (rows, tag) = self.write(&query, run, deadline_us, line).await?;
            // Its run stays, because it has the parameters if the statement is run again.
            let run = std::mem::replace(run, query.start(Vec::new()));
            *work = Work::Written(query, run, rows.into_iter(), tag);
        }
        if let Work::Query(query, _) = work {
            let query = Rc::clone(query);
            self.open_to_lock(&query).await?;
        }
        Ok(())
    }

    /// The transaction of a query that reserves rows has to be one that writes, in which its tables
    /// are still what they were.
    pub(super) async fn open_to_lock(&mut self, query: &Query) -> Result<(), Stop> {
        let Some(clause) = query.locks else { return Ok(()) };
        let is_another = self.data.is_left_to_write();
        self.open_to_write(&format!("SELECT {clause}")).await?;
        if is_another && !self.is_current(query).await? {
            return Err(Stop::Conflict("a table was changed meanwhile".into()));
        }
        Ok(())
    }

    /// The rows of a query, all of them; 53200 if they take too much memory.
    pub(super) async fn all_rows<S: Stream>(
        &mut self,
        query: &Query,
        run: &mut Run,
        deadline_us: Option<i64>,
        line: &mut Line<'_, S>,
    ) -> Result<Vec<Row>, Stop> {
        let mut gathered = Gathered::default();
        loop {
            match self.advance(query, run, deadline_us).await? {
                Step::Row(row) => gathered.push(row)?,
                Step::End => return Ok(gathered.rows),
                _ => self.pause_if_spent(deadline_us, line).await?,
            }
        }
    }

    /// Runs a query until it has made `count` rows or is over, for a statement that sends its client
    /// nothing meanwhile. Returns the rows.
    pub(super) async fn next_rows(
        &mut self,
        query: &Query,
        run: &mut Run,
        count: usize,
    ) -> Result<Vec<Row>, Stop> {
        let deadline_us = self.deadline_us();
        let mut gathered = Gathered::default();
        while gathered.rows.len() < count {
            match self.advance(query, run, deadline_us).await? {
                Step::Row(row) => gathered.push(row)?,
                Step::End => break,
                _ => self.pause_inside().await?,
            }
        }
        Ok(gathered.rows)
    }

    /// Goes on to the next row, a pause, or the end, and gives a run on the way what it asks for.
    async fn advance(
        &mut self,
        query: &Query,
        run: &mut Run,
        deadline_us: Option<i64>,
    ) -> Result<Step, Stop> {
        loop {
            match self.with_context(|context| run.next(query, context))? {
                Step::Fetch(wanted) => {
                    let (pairs, left) = self.fetch(wanted).await?;
                    run.fetched(pairs, left);
                }
                Step::Ask(question) => run.answered(self.answer_to(question).await?),
                Step::Reserve(reserve) => run.reserved(self.reserve_for(reserve, deadline_us).await?),
                step => return Ok(step),
            }
        }
    }

    /// Lets others run, and looks whether the statement is to go on.
    pub(super) async fn pause_inside(&mut self) -> Result<(), Stop> {
        self.let_others_run().await;
        Ok(self.check_time(self.deadline_us())?)
    }

    /// Goes on to the next row, a pause, or the end.
    fn step(&self, work: &mut Work) -> Result<Step, SqlError> {
        match work {
            Work::Done(_) => Ok(Step::End),
            Work::Rows(_, rows, _) | Work::Written(_, _, rows, _) => {
                Ok(rows.next().map_or(Step::End, Step::Row))
            }
            Work::Query(query, run) | Work::Copy(query, run, _) => {
                self.with_context(|context| run.next(query, context))
            }
        }
    }

    /// What a query may ask about the session.
    pub(super) fn known(&self) -> Known<'_> {
        let backend = i32::try_from(self.place.pid()).unwrap_or(i32::MAX);
        Known {
            settings: &self.settings,
            objects: self.data.objects(),
            backend,
            node: self.place.node(),
            now_us: self.statement_us,
        }
    }

    /// Calls with what a query may ask of the session.
    pub(super) fn with_context<T>(&self, call: impl FnOnce(&Context<'_>) -> T) -> T {
        let known = self.known();
        let context = Context {
            catalog: &known,
            style: &self.style,
            transaction_us: self.transaction.begun_us(),
            statement_us: self.statement_us,
            clock: &|| self.world.now_us(),
            random: &|| self.world.random(),
            backend: known.backend,
            fuel: &self.fuel,
            volatile: &self.has_called_volatile,
        };
        call(&context)
    }

    fn encode(
        &self,
        row: &[Datum],
        work: &Work,
        formats: &[Format],
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let columns = work.columns().unwrap_or_default();
        backend::message(out, b'D', |out| self.put_row(row, columns, formats, out))
    }

    /// How many values there are, and each with its length before it.
    fn put_row(
        &self,
        row: &[Datum],
        columns: &[Column],
        formats: &[Format],
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let style = &self.style;
        let count = u16::try_from(row.len())
            .map_err(|_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a row has too many columns"))?;
        out.extend(count.to_be_bytes());
        for (place, (datum, column)) in row.iter().zip(columns).enumerate() {
            let format = format_of(formats, place);
            let value = (!datum.is_null())
                .then_some(|out: &mut Vec<u8>| types::encode(datum, column.oid, format, style, out));
            backend::value(out, value)?;
        }
        Ok(())
    }

    /// A row of `COPY`.
    fn encode_copied(
        &self,
        row: &[Datum],
        is_first: bool,
        query: &Query,
        form: &Form,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        if form.binary {
            let mut tuple = Vec::new();
            self.put_row(row, &query.columns, &[Format::Binary], &mut tuple)?;
            return backend::copy_data(out, &tuples::begun(is_first, &tuple));
        }
        let mut fields = Vec::with_capacity(row.len());
        for (datum, column) in row.iter().zip(&query.columns) {
            let mut text = String::new();
            if !datum.is_null() {
                types::print(datum, column.oid, &self.style, &mut text)?;
            }
            fields.push((!datum.is_null()).then_some(text));
        }
        backend::copy_data(out, &form.line(fields.iter().map(Option::as_deref)))
    }

    /// Pauses if the fuel is spent, and looks whether the statement is to go on.
    pub(super) async fn pause_if_spent<S: Stream>(
        &mut self,
        deadline_us: Option<i64>,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        if !self.fuel.is_spent() {
            return Ok(());
        }
        self.pause(line).await?;
        Ok(self.check_time(deadline_us)?)
    }

    /// When the statement at hand has to end, in microseconds since 2000.
    pub(super) fn deadline_us(&self) -> Option<i64> {
        self.timeout_us.map(|timeout_us| self.statement_us.saturating_add(timeout_us))
    }

    /// The error of a statement that somebody has asked to end, or that has taken too long.
    pub(super) fn check_time(&self, deadline_us: Option<i64>) -> Result<(), SqlError> {
        self.check_cancelled()?;
        if deadline_us.is_some_and(|deadline_us| self.world.now_us() >= deadline_us) {
            let error = "canceling statement due to statement timeout";
            return Err(SqlError::new(SqlState::QUERY_CANCELED, error));
        }
        Ok(())
    }

    /// The error of a statement that somebody has asked to end.
    pub(super) fn check_cancelled(&self) -> Result<(), SqlError> {
        if !self.place.is_cancelled() {
            return Ok(());
        }
        self.place.begin();
        Err(SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request"))
    }

    /// Lets the other tasks of the shard run.
    pub(super) async fn pause<S: Stream>(&mut self, line: &mut Line<'_, S>) -> Result<(), Closed> {
        // Replies to what came before this statement are not to wait for it.
        if line.due {
            line.flush().await?;
        }
        self.let_others_run().await;
        Ok(())
    }

    /// Lets others run. A long statement gives way to shorter ones, unless others may wait for
    /// what its transaction holds.
    async fn let_others_run(&mut self) {
        self.turns = self.turns.saturating_add(1);
        match self.turns > SHORT_TURNS && self.data.holds_nothing() {
            true => self.world.give_way().await,
            false => self.world.pause().await,
        }
        self.fuel.refill();
    }

    /// Burns what it takes to understand a statement.
    pub(super) fn burn_for(&self, text: &str) {
        self.fuel.burn(1 + text.len() / BYTES_PER_UNIT);
    }

    /// The only row of a query that has neither parameters nor other queries in it, for statements
    /// with expressions. Such a query gets there whatever its fuel.
    pub(super) fn only_row(&self, query: &Query) -> Result<Vec<Datum>, SqlError> {
        let mut run = query.start(Vec::new());
        self.with_context(|context| {
            loop {
                match run.next(query, context)? {
                    Step::Row(row) => return Ok(row),
                    Step::Pause => context.fuel.refill(),
                    // There is no table in it.
                    Step::Fetch(_) | Step::Reserve(_) => return Err(confused()),
                    Step::Ask(_) => return Err(unsupported("a function of sequences here")),
                    Step::End => return Ok(Vec::new()),
                }
            }
        })
    }
}
