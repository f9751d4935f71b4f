//! Statements that are prepared, portals that run, and what runs in them.

use std::rc::Rc;

use pg_query::NodeEnum;
use pg_query::protobuf::{Node, TransactionStmtKind};

use super::lines::Form;
use crate::analyze::{Column, Query};
use crate::execute::Run;
use crate::types::{Datum, Format, Oid};

/// What a statement is, once it has been understood.
pub(super) enum Body {
    /// Nothing: a text of blanks and comments.
    Empty,
    /// A query or a statement that writes.
    Query(Rc<Query>),
    /// Any other statement.
    Utility(Rc<Node>),
}

impl Body {
    /// The tree of a statement that is no query.
    pub(super) fn utility(&self) -> Option<&NodeEnum> {
        match self {
            Body::Utility(node) => node.node.as_ref(),
            Body::Empty | Body::Query(_) => None,
        }
    }

    /// Whether it is one of those that a failed transaction still takes, because they end it.
    pub(super) fn ends_transaction(&self) -> bool {
        self.utility().is_some_and(ends_transaction)
    }
}

/// Whether a failed transaction still takes a statement.
pub(super) fn ends_transaction(node: &NodeEnum) -> bool {
    use TransactionStmtKind::{TransStmtCommit, TransStmtPrepare, TransStmtRollback, TransStmtRollbackTo};
    let NodeEnum::TransactionStmt(statement) = node else { return false };
    [TransStmtCommit, TransStmtPrepare, TransStmtRollback, TransStmtRollbackTo].contains(&statement.kind())
}

/// A prepared statement.
pub(super) struct Prepared {
    /// The text that it stands in: positions count in it.
    pub text: Rc<str>,
    /// The tree of a query, which is planned again if a table of it has changed.
    pub node: Option<Rc<Node>>,
    /// What it is.
    pub body: Body,
    /// Types of its parameters.
    pub parameters: Vec<Oid>,
}

/// What runs.
pub(super) enum Work {
    /// It is done; this is what CommandComplete says.
    Done(String),
    /// Rows that are there, and what CommandComplete says after them.
    Rows(Vec<Column>, std::vec::IntoIter<Vec<Datum>>, String),
    /// A query or a statement that writes.
    Query(Rc<Query>, Run),
    /// A query whose rows are sent as lines of `COPY`.
    Copy(Rc<Query>, Run, Form),
    /// A statement that has written, the rows that it returns, and what CommandComplete says.
    Written(Rc<Query>, Run, std::vec::IntoIter<Vec<Datum>>, String),
}

impl Work {
    /// What its rows have, if it has rows.
    pub(super) fn columns(&self) -> Option<&[Column]> {
        match self {
            Work::Done(_) | Work::Copy(..) => None,
            Work::Rows(columns, ..) => Some(columns),
            Work::Query(query, _) | Work::Written(query, ..) => {
                query.returns_rows().then_some(query.columns.as_slice())
            }
        }
    }
}

/// How far a portal is.
pub(super) enum Progress {
    /// It has not been run; a utility statement, that is: a query begins at once.
    Fresh,
    /// It has rows left, perhaps.
    Running(Box<Work>),
    /// It was run and cannot be run again.
    Finished,
}

/// A portal.
pub(super) struct Portal {
    /// What it runs.
    pub prepared: Rc<Prepared>,
    /// Formats of its columns.
    pub formats: Vec<Format>,
    /// How many savepoints the transaction was in when it was opened.
    pub level: usize,
    /// How far it is.
    pub progress: Progress,
    /// Whether it has been run.
    pub is_begun: bool,
}

impl Portal {
    /// Goes back to its beginning.
    pub(super) fn begin_again(&mut self) {
        self.is_begun = false;
        self.progress = match std::mem::replace(&mut self.progress, Progress::Finished) {
            Progress::Running(work) => match *work {
                Work::Query(query, mut run) | Work::Written(query, mut run, ..) => {
                    run.restart(&query);
                    Progress::Running(Box::new(Work::Query(query, run)))
                }
                _ => Progress::Fresh,
            },
            _ => Progress::Fresh,
        };
    }
}
