//! How work runs: row by row, giving way to others.
//!
//! A row is encoded as it comes, so a result of any length takes the memory of its replies that
//! wait to be written. Between rows the session looks around: at a slow reader after 64 KiB, at
//! the other tasks of the shard, at requests to cancel and at the clock after so many rows. What a
//! query does before its first row, or between two of them, is not interrupted.

use super::conversation::Session;
use super::portal::Work;
use super::{Line, Stop, Stream, World};
use crate::analyze::Query;
use crate::execute::Context;
use crate::types::{self, Datum, Format};
use crate::wire::backend;
use crate::wire::frontend::format_of;
use crate::{SqlError, SqlState};

/// Rows after which a query gives way.
const ROWS_PER_TURN: u64 = 256;

impl<W: World> Session<'_, W> {
    /// Runs work to its end or to a limit of rows, sends the rows, and says how it ended.
    pub(super) async fn run<S: Stream>(
        &mut self,
        work: &mut Work,
        formats: &[Format],
        limit: Option<u32>,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        if let Work::Done(tag) = work {
            backend::command_complete(&mut line.out, tag);
            return Ok(());
        }
        if matches!(work, Work::Query(..)) {
            self.transaction.queried(&self.settings);
        }
        let deadline_us = self.timeout_us.map(|timeout_us| self.statement_us.saturating_add(timeout_us));
        let mut rows: u64 = 0;
        while limit.is_none_or(|limit| rows < u64::from(limit)) {
            let Some(row) = self.row(work)? else {
                let tag = match work {
                    Work::Rows(_, _, tag) => (*tag).to_owned(),
                    _ => format!("SELECT {rows}"),
                };
                backend::command_complete(&mut line.out, &tag);
                return Ok(());
            };
            self.encode(&row, work, formats, &mut line.out)?;
            rows += 1;
            line.give_way().await?;
            if rows.is_multiple_of(ROWS_PER_TURN) {
                self.pause(deadline_us, line).await?;
            }
        }
        backend::portal_suspended(&mut line.out);
        Ok(())
    }

    /// The next row.
    fn row(&self, work: &mut Work) -> Result<Option<Vec<Datum>>, SqlError> {
        match work {
            Work::Done(_) => Ok(None),
            Work::Rows(_, rows, _) => Ok(rows.next()),
            Work::Query(query, run) => self.with_context(|context| run.next(query, context)),
        }
    }

    /// Calls with what a query may ask of the session.
    fn with_context<T>(&self, call: impl FnOnce(&Context<'_>) -> T) -> T {
        let context = Context {
            catalog: &self.settings,
            style: &self.style,
            transaction_us: self.transaction.begun_us(),
            statement_us: self.statement_us,
            clock: &|| self.world.now_us(),
            random: &|| self.world.random(),
            backend: i32::try_from(self.place.pid()).unwrap_or(i32::MAX),
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
        let style = &self.style;
        backend::message(out, b'D', |out| {
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
        })
    }

    /// Lets others run, and looks whether this is to go on.
    async fn pause<S: Stream>(
        &mut self,
        deadline_us: Option<i64>,
        line: &mut Line<'_, S>,
    ) -> Result<(), Stop> {
        // Replies to what came before this statement are not to wait for it.
        if line.due {
            line.flush().await?;
        }
        self.world.pause().await;
        let cancelled = |error: &str| Err(SqlError::new(SqlState::QUERY_CANCELED, error).into());
        if self.place.is_cancelled() {
            self.place.begin();
            return cancelled("canceling statement due to user request");
        }
        if deadline_us.is_some_and(|deadline_us| self.world.now_us() >= deadline_us) {
            return cancelled("canceling statement due to statement timeout");
        }
        Ok(())
    }

    /// The first row of a query without parameters, for statements that have expressions in them.
    pub(super) fn first_row(&self, query: &Query) -> Result<Option<Vec<Datum>>, SqlError> {
        self.with_context(|context| query.start(Vec::new()).next(query, context))
    }
}
