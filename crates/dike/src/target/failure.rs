//! Why a call failed, in the few kinds that a client treats differently.
//!
//! *Conflicts* end an attempt and invite another one with the same inputs. *Outages* end the
//! connection. Everything else is the client's or the schema's fault and is not tried again. One
//! kind stands apart: when a connection breaks while `COMMIT` is on its way, nobody knows whether
//! the transaction is committed; trying again could do its work twice.
//!
//! | cause | PostgreSQL's SQLSTATE | MySQL's number |
//! |---|---|---|
//! | serialization | 40001, other 40 | 1020 (MariaDB: changed since last read), 9007, 8002, 8022 (TiDB: write conflict), 6002 (OceanBase) |
//! | deadlock | 40P01 | 1213 |
//! | lock timeout | 55P03 | 1205, 3572 |
//! | constraint | 23 | 1048, 1062, 1451, 1452, 3819 |
//! | timeout | 57014, 25P03, 25P04, 57P05 | 3024 (MariaDB: 1969), 1317, 4012 (OceanBase) |
//! | unavailable | other 08, 53, 57, 58 | 1040, 1053, 1927, 9001, 9002, 9003, 9005 (TiDB: its parts time out), 4009, 4038 (OceanBase: not the master) |

use std::fmt;

use serde::Serialize;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The transaction does not fit into any serial order, or into a snapshot.
    Serialization,
    /// It was chosen to break a deadlock.
    Deadlock,
    /// It waited too long for a lock.
    LockTimeout,
    /// A constraint of the schema does not hold.
    Constraint,
    /// The server is there and cannot serve: it starts, stops, or has no room.
    Unavailable,
    /// No connection could be made.
    Unreachable,
    /// The connection broke.
    Disconnected,
    /// The server ended a statement that took too long, or no answer came in time and the connection
    /// was given up.
    Timeout,
    /// The connection broke, or no answer came, after COMMIT was sent.
    InDoubt,
    /// The answer is not what the schema promises: a row is missing.
    Unexpected,
    /// Any other error.
    Other,
}

impl Cause {
    /// Whether the same transaction can be tried again at once.
    pub fn is_conflict(self) -> bool {
        matches!(self, Cause::Serialization | Cause::Deadlock | Cause::LockTimeout)
    }

    /// Whether its connection is of no more use.
    pub fn ends_connection(self) -> bool {
        matches!(
            self,
            Cause::Unavailable | Cause::Unreachable | Cause::Disconnected | Cause::Timeout | Cause::InDoubt
        )
    }

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Serialization => "serialization",
            Cause::Deadlock => "deadlock",
            Cause::LockTimeout => "lock_timeout",
            Cause::Constraint => "constraint",
            Cause::Unavailable => "unavailable",
            Cause::Unreachable => "unreachable",
            Cause::Disconnected => "disconnected",
            Cause::Timeout => "timeout",
            Cause::InDoubt => "in_doubt",
            Cause::Unexpected => "unexpected",
            Cause::Other => "other",
        }
    }
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind it is.
    pub cause: Cause,
    /// SQLSTATE or MySQL's number; empty if the server said nothing.
    pub code: String,
    /// What the server, the driver or we say.
    pub message: String,
}

impl Failure {
    /// A failure that no server has reported.
    pub fn new(cause: Cause, message: impl Into<String>) -> Failure {
        Failure { cause, code: String::new(), message: message.into() }
    }

    /// A row that the schema promises is missing, or has a different shape.
    pub fn unexpected(message: impl Into<String>) -> Failure {
        Failure::new(Cause::Unexpected, message)
    }

    /// Whether its connection is of no more use. A time limit of the server's, which has a code,
    /// ends a statement or a transaction and leaves the session as good as before.
    pub fn ends_connection(&self) -> bool {
        self.cause.ends_connection() && !(self.cause == Cause::Timeout && !self.code.is_empty())
    }

    /// The same for a COMMIT: without an answer it is in doubt.
    pub(super) fn of_commit(self) -> Failure {
        match self.cause {
            Cause::Disconnected | Cause::Timeout | Cause::Unavailable => {
                Failure { cause: Cause::InDoubt, ..self }
            }
            _ => self,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { cause, code, message } = self;
        match (cause, code.as_str()) {
            (Cause::Other, "") => write!(f, "{message}"),
            (Cause::Other, code) => write!(f, "{message} ({code})"),
            (cause, "") => write!(f, "{message} ({})", cause.name()),
            (cause, code) => write!(f, "{message} ({}, {code})", cause.name()),
        }
    }
}

impl std::error::Error for Failure {}

/// The kind of a SQLSTATE.
fn of_sqlstate(code: &str) -> Cause {
    match code {
        "40P01" => Cause::Deadlock,
        "55P03" => Cause::LockTimeout,
        // A statement, a transaction or a session that took too long, or was cancelled for it.
        "57014" | "25P03" | "25P04" | "57P05" => Cause::Timeout,
        _ => match code.get(..2) {
            Some("40") => Cause::Serialization,
            Some("23") => Cause::Constraint,
            Some("08" | "53" | "57" | "58") => Cause::Unavailable,
            _ => Cause::Other,
        },
    }
}

/// The kind of a number of MySQL's.
fn of_number(code: u16) -> Cause {
    match code {
        1213 => Cause::Deadlock,
        1205 | 3572 => Cause::LockTimeout,
        1020 | 6002 | 8002 | 8022 | 9007 => Cause::Serialization,
        1048 | 1062 | 1451 | 1452 | 3819 => Cause::Constraint,
        1317 | 1969 | 3024 | 4012 => Cause::Timeout,
        1040 | 1053 | 1927 | 4009 | 4038 | 9001 | 9002 | 9003 | 9005 => Cause::Unavailable,
        _ => Cause::Other,
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
        match error.as_db_error() {
            Some(said) => Failure {
                cause: of_sqlstate(said.code().code()),
                code: said.code().code().to_owned(),
                message: said.message().to_owned(),
            },
            None => {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
                let message = format!("{error}{}", source.unwrap_or_default());
                // What the driver itself finds wrong with a value or a row is no outage.
                let io =
                    std::error::Error::source(&error).is_some_and(|source| source.is::<std::io::Error>());
                let broken = io || error.is_closed();
                Failure::new(if broken { Cause::Disconnected } else { Cause::Other }, message)
            }
        }
    }
}

impl From<mysql_async::Error> for Failure {
    fn from(error: mysql_async::Error) -> Failure {
        match &error {
            mysql_async::Error::Server(said) => Failure {
                cause: of_number(said.code),
                code: said.code.to_string(),
                message: said.message.clone(),
            },
            mysql_async::Error::Io(_)
            | mysql_async::Error::Driver(mysql_async::DriverError::ConnectionClosed) => {
                Failure::new(Cause::Disconnected, error.to_string())
            }
            _ => Failure::new(Cause::Other, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_whether_to_try_again() {
        for code in ["40001", "40P01", "55P03", "40003"] {
            assert!(of_sqlstate(code).is_conflict(), "{code}");
        }
        for code in ["57P01", "08006", "53300"] {
            assert!(of_sqlstate(code).ends_connection(), "{code}");
        }
        for code in ["23505", "42P01", "", "4"] {
            let cause = of_sqlstate(code);
            assert!(!cause.is_conflict() && !cause.ends_connection(), "{code}");
        }
        for code in [1213, 1205, 1020, 9007] {
            assert!(of_number(code).is_conflict(), "{code}");
        }
        assert_eq!(of_number(1062), Cause::Constraint);
        assert_eq!(of_number(1146), Cause::Other);
    }

    #[test]
    fn a_time_limit_of_the_server_s_leaves_the_session_as_good_as_before() {
        for code in ["57014", "25P03", "25P04", "57P05"] {
            assert_eq!(of_sqlstate(code), Cause::Timeout, "{code}");
        }
        for code in [1317, 1969, 3024, 4012] {
            assert_eq!(of_number(code), Cause::Timeout, "{code}");
        }
        let told = Failure { code: "57014".to_owned(), ..Failure::new(Cause::Timeout, "") };
        assert!(!told.ends_connection() && Failure::new(Cause::Timeout, "no answer").ends_connection());
    }

    #[test]
    fn only_an_unanswered_commit_is_in_doubt() {
        let failed = |cause| Failure::new(cause, "").of_commit().cause;
        assert_eq!(failed(Cause::Disconnected), Cause::InDoubt);
        assert_eq!(failed(Cause::Timeout), Cause::InDoubt);
        assert_eq!(failed(Cause::Serialization), Cause::Serialization);
    }
}
