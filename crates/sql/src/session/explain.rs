//! `EXPLAIN`: how a statement would be carried out, and with `ANALYZE` what it takes.

use std::rc::Rc;

use pg_query::NodeEnum;
use pg_query::protobuf::{ExplainStmt, Node};

use super::conversation::Session;
use super::portal::Work;
use super::statement::is_query;
use super::{Stop, World};
use crate::analyze::{self, Column, explain};
use crate::execute::Step;
use crate::functions::confused;
use crate::store::{Asked, Store};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

/// What `EXPLAIN` is to do.
#[derive(Default)]
struct Options {
    analyze: bool,
}

impl<W: World> Session<'_, W> {
    /// `EXPLAIN`
    pub(super) async fn explain(&mut self, explain: &ExplainStmt, text: &Rc<str>) -> Result<Work, Stop> {
        let options = options(&explain.options)?;
        let node = explain.query.as_deref().ok_or_else(confused)?;
        if !node.node.as_ref().is_some_and(is_query) {
            return Err(analyze::unsupported("EXPLAIN of a statement that is no query").into());
        }
        let planning_us = self.world.now_us();
        let query = self.plan(node, text, &[]).await?;
        let planned_us = self.world.now_us();
        let mut lines = explain::lines(&query, &self.style);
        if options.analyze {
            if query.write.is_some() {
                return Err(analyze::unsupported("EXPLAIN ANALYZE of a statement that writes").into());
            }
            self.open_to_lock(&query).await?;
            let deadline_us = self.deadline_us();
            if let Some(open) = &mut self.data.open {
                self.world.store().count(&mut open.transaction);
            }
            let mut run = query.start(Vec::new());
            let (mut rows, mut fetches) = (0u64, 0u64);
            loop {
                match self.with_context(|context| run.next(&query, context))? {
                    Step::Row(_) => rows += 1,
                    Step::Pause => self.pause_inside().await?,
                    Step::Fetch(wanted) => {
                        fetches += 1;
                        let (pairs, left) = self.fetch(wanted).await?;
                        run.fetched(pairs, left);
                    }
                    Step::Reserve(reserve) => {
                        run.reserved(self.reserve_for(reserve, deadline_us).await?);
                    }
                    Step::Ask(question) => run.answered(self.answer_to(question).await?),
                    Step::End => break,
                }
            }
            let ended_us = self.world.now_us();
            lines.push(format!("Rows: {rows}"));
            lines.push(format!("Reads of the store: {fetches}"));
            lines.extend(self.measured());
            lines.push(format!("Planning Time: {}", milliseconds(planned_us - planning_us)));
            lines.push(format!("Execution Time: {}", milliseconds(ended_us - planned_us)));
        }
        let rows: Vec<Vec<Datum>> = lines.iter().map(|line| vec![Datum::text(line.as_str())]).collect();
        Ok(Work::Rows(vec![column()], rows.into_iter(), "EXPLAIN".to_owned()))
    }

    /// What a statement has taken of the database, as lines: the snapshot that it reads, the shards
    /// that it has asked, and how long it has waited for rows.
    fn measured(&mut self) -> Vec<String> {
        let store = self.world.store();
        let open = self.data.open.as_mut();
        let snapshot = open.as_ref().map(|open| store.snapshot(&open.transaction));
        let asked = open.and_then(|open| store.counted(&mut open.transaction));
        let mut lines = vec![match snapshot {
            Some(Some(stamp)) => format!("Snapshot: {stamp}"),
            Some(None) => "Snapshot: none, the newest rows are read".to_owned(),
            None => "Snapshot: none yet".to_owned(),
        }];
        if let Some(Asked { shards, requests }) = asked {
            lines.push(format!("Shards Asked: {shards}"));
            lines.push(format!("Requests to Other Shards: {requests}"));
        }
        let waited_us = self.waited_us.saturating_sub(self.waited_before_us);
        lines.push(format!("Waited for Reserved Rows: {}", milliseconds(waited_us)));
        lines
    }
}

/// The column of its rows.
pub(super) fn column() -> Column {
    Column { name: "QUERY PLAN".to_owned(), oid: Oid::TEXT, modifier: -1, origin: None }
}

fn milliseconds(us: i64) -> String {
    format!("{}.{:03} ms", us / 1000, us % 1000)
}

/// Options: those that ask for less or for nothing that there is mean nothing.
fn options(nodes: &[Node]) -> Result<Options, SqlError> {
    let mut options = Options::default();
    for node in nodes {
        let Some(NodeEnum::DefElem(option)) = &node.node else { return Err(confused()) };
        let value = option.arg.as_ref().and_then(|arg| arg.node.as_ref());
        let is_on = match value {
            None => true,
            Some(NodeEnum::String(text)) => !matches!(text.sval.as_str(), "off" | "false"),
            Some(NodeEnum::Boolean(flag)) => flag.boolval,
            Some(NodeEnum::Integer(number)) => number.ival != 0,
            Some(_) => true,
        };
        match option.defname.as_str() {
            "analyze" => options.analyze = is_on,
            "costs" | "timing" | "summary" | "verbose" | "buffers" | "settings" | "wal" => {}
            "format" if matches!(value, Some(NodeEnum::String(text)) if text.sval == "text") => {}
            "format" => return Err(analyze::unsupported("EXPLAIN in another format than text")),
            name => {
                let error = format!("unrecognized EXPLAIN option \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, error));
            }
        }
    }
    Ok(options)
}
