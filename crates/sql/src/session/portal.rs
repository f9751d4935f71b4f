//! Statements that are prepared, portals that run, and what runs in them.

use std::rc::Rc;

use pg_query::NodeEnum;
use pg_query::protobuf::TransactionStmtKind;

use crate::analyze::{Column, Query};
use crate::execute::Run;
use crate::types::{Datum, Format, Oid};

/// What a statement is, once it has been understood.
pub(super) enum Body {
    /// Nothing: a text of blanks and comments.
    Empty,
    /// A `SELECT` or `VALUES`.
    Query(Rc<Query>),
    /// Any other statement.
    Utility(Box<NodeEnum>),
}

impl Body {
    /// Whether it is one of those that a failed transaction still takes, because they end it.
    pub(super) fn ends_transaction(&self) -> bool {
        matches!(self, Body::Utility(node) if ends_transaction(node))
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
    Rows(Vec<Column>, std::vec::IntoIter<Vec<Datum>>, &'static str),
    /// A query.
    Query(Rc<Query>, Run),
}

impl Work {
    /// What its rows have, if it has rows.
    pub(super) fn columns(&self) -> Option<&[Column]> {
        match self {
            Work::Done(_) => None,
            Work::Rows(columns, ..) => Some(columns),
            Work::Query(query, _) => Some(&query.columns),
        }
    }
}

/// How far a portal is.
pub(super) enum Progress {
    /// It has not been run; a utility statement, that is: a query begins at once.
    Fresh,
    /// It has rows left, perhaps.
    Running(Work),
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
}
