//! What is said to a session when the database cannot do what it asks.

use std::time::Duration;

use plimsoll_sql::store::Failure;
use plimsoll_sql::{SqlError, SqlState};
use plimsoll_types::Abort;

const DISK_FULL: SqlState = SqlState(*b"53100");
const READ_ONLY_TRANSACTION: SqlState = SqlState(*b"25006");
const SNAPSHOT_TOO_OLD: SqlState = SqlState(*b"72000");
const STATEMENT_COMPLETION_UNKNOWN: SqlState = SqlState(*b"40003");

/// What an abort of a transaction that writes means.
pub(crate) fn of(abort: Abort) -> Failure {
    Failure::Conflict(match abort {
        Abort::Full => return Failure::Error(full()),
        Abort::DiskFull => return Failure::Error(disk_full()),
        Abort::WriteConflict => "Another transaction has written, or is writing, what this one writes",
        Abort::Validation => "Another transaction has changed what this one has read",
        Abort::Wounded => "An older transaction needed a lock of this one",
        Abort::Refused | Abort::User => "A shard has refused to take part",
        Abort::StaleTerm => "A row was on its way to another shard",
        Abort::Unknown => "A node was out of reach for a moment",
        Abort::ClockAhead => "A clock is too far ahead of the others, as `plimsoll status` shows",
    })
}

/// What an abort of a transaction that only reads means. It meets no other transaction.
pub(crate) fn of_reading(abort: Abort) -> Failure {
    match abort {
        Abort::Validation => Failure::Error(SqlError::new(
            SNAPSHOT_TOO_OLD,
            "the snapshot is older than what the database keeps, because a clock was set",
        )),
        Abort::ClockAhead => Failure::Error(
            SqlError::new(SqlState::CANNOT_CONNECT_NOW, "a clock is too far ahead of the others")
                .hint("Compare the clocks by `plimsoll status`, and set the wrong one right."),
        ),
        _ => unreachable(0),
    }
}

/// A snapshot is to be older than what the database keeps.
pub(crate) fn is_too_stale(asked: Duration, most: Duration) -> Failure {
    let error = format!("a snapshot that is {asked:?} old is older than what the database keeps");
    let hint = match most.is_zero() {
        true => "Start all nodes with --max-staleness, or set plimsoll.staleness to 0.".to_owned(),
        false => {
            format!("Set plimsoll.staleness to {most:?} at most, or give all nodes a longer --max-staleness.")
        }
    };
    Failure::Error(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error).hint(hint))
}

/// A node that is needed cannot be reached.
pub(crate) fn unreachable(waited_ns: u64) -> Failure {
    let error = "a node that is needed cannot be reached";
    let mut error = SqlError::new(SqlState::CANNOT_CONNECT_NOW, error);
    if waited_ns > 0 {
        error =
            error.detail(format!("The statement has waited for {:.1?}.", Duration::from_nanos(waited_ns)));
    }
    Failure::Error(error.hint("See `plimsoll status`, and try again."))
}

/// A commit may have happened.
pub(crate) fn in_doubt(waited_ns: u64) -> Failure {
    let waited = Duration::from_nanos(waited_ns);
    let error = format!("whether the transaction is committed was not known after {waited:.1?}");
    let error = SqlError::new(STATEMENT_COMPLETION_UNKNOWN, error);
    let hint =
        "Look at what the transaction would have written before trying again, and see `plimsoll status`.";
    Failure::Error(error.detail("A node that has a vote in it cannot be reached.").hint(hint))
}

/// The node has just been started.
pub(crate) fn is_reading_log() -> Failure {
    let error = "the node is reading its log";
    Failure::Error(SqlError::new(SqlState::CANNOT_CONNECT_NOW, error).hint("Try again in a moment."))
}

/// An operation of a transaction that has failed before.
pub(crate) fn is_over() -> Failure {
    let error = "the transaction was ended by the database before";
    Failure::Error(SqlError::new(SqlState::IN_FAILED_SQL_TRANSACTION, error))
}

/// A write of a transaction that only reads.
pub(crate) fn is_read_only() -> Failure {
    Failure::Error(SqlError::new(READ_ONLY_TRANSACTION, "cannot write in a read-only transaction"))
}

/// A key or a row that is too long.
pub(crate) fn too_long(what: &str, bytes: usize, max: usize) -> SqlError {
    let error = format!("a {what} has {bytes} bytes; at most {max} are possible");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error)
}

/// A transaction has written too much.
pub(crate) fn too_much_written(max: usize) -> SqlError {
    let error = format!("the transaction writes more than {max} bytes");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error).hint("Write less in each of several transactions.")
}

/// All transactions together have written too much.
pub(crate) fn too_much_open(max: usize) -> SqlError {
    let error = format!("transactions of this node that are not over have written more than {max} bytes");
    SqlError::new(SqlState::OUT_OF_MEMORY, error).hint("Run fewer at a time that write much.")
}

fn full() -> SqlError {
    let error = "the memory for data is full";
    let hint = "Delete rows, which always works, or start the nodes with more --memory.";
    SqlError::new(SqlState::OUT_OF_MEMORY, error).hint(hint)
}

fn disk_full() -> SqlError {
    let hint = "Make room on it, and writes go on by themselves.";
    SqlError::new(DISK_FULL, "the disk of a node's data directory is full").hint(hint)
}
