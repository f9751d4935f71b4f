//! Why a call failed, in the few kinds that a client treats differently.
//!
//! *Conflicts* end an attempt and invite another one with the same inputs. *Outages* end the
//! connection. A *time limit* of the server ends a statement, and most leave the connection.
//! Everything else is *permanent*: the client or the schema is at fault, and nothing is tried
//! again. One kind stands apart: if the answer to `COMMIT` is no proof, the client cannot know
//! whether the transaction is committed; trying again could do its work twice.
//!
//! | cause | PostgreSQL's SQLSTATE | MySQL's number |
//! |---|---|---|
//! | serialization | 40001, other 40 but 40003 | 1020 (MariaDB: changed since last read), 3101 (group replication), 8002, 8005, 8022, 9007 (TiDB: write conflict), 6002 (OceanBase) |
//! | deadlock | 40P01 | 1213 |
//! | lock timeout | 55P03 | 1205, 3572 |
//! | constraint | 23 | 1048, 1062, 1451, 1452, 3819 |
//! | timeout | 57014, 25P03, 25P04, 57P05 | 3024 (MariaDB: 1969), 1317, 4012 (OceanBase) |
//! | unavailable | 40003, other 08, 53, 57, 58 | 1040, 1053, 1927, 9001, 9002, 9003, 9005 (TiDB: its parts time out), 4009, 4038 (OceanBase: not the master) |
//!
//! # The end of a COMMIT
//!
//! A COMMIT that failed is in doubt unless its code *proves* that the transaction has aborted
//! (`proves_abort`). A code that is not known, a server that goes away, an answer that the driver
//! does not understand, and no answer at all prove nothing. The proofs, code by code:
//!
//! | code | why it is a proof |
//! |---|---|
//! | 40000, 40001, 40002, 40004, 40P01 | "transaction rollback", says the SQL standard of class 40; CockroachDB and YugabyteDB answer 40001 where a COMMIT lost a conflict |
//! | 23000, 23001, 23502, 23503, 23505, 23514, 23P01 | a deferred constraint is checked before anything is committed |
//! | 55P03 | a lock that a deferred trigger wanted; the same |
//! | 25P02 | the transaction had failed before, and COMMIT cannot save it |
//! | 1213, 3101 | Galera and group replication refuse a transaction when they certify it |
//! | 1205, 3572 | the COMMIT waited for a lock, and the server rolled back |
//! | 1048, 1062, 1451, 1452, 3819 | TiDB and NDB check some constraints at COMMIT, before it |
//! | 1020, 6002, 8002, 8005, 8022, 9007 | conflicts that the database has resolved by a roll-back |
//!
//! Codes that look like proofs and are none:
//!
//! | code | what may have happened |
//! |---|---|
//! | 40003 | "statement completion unknown": of class 40, and the opposite of a proof. CockroachDB says so of a commit whose result is ambiguous |
//! | 08007 | "transaction resolution unknown" |
//! | 57014, 57P01 to 57P05, 1053, 1317, 1927, 3024 | the server was told to stop what it did, perhaps after the commit |
//! | 25P01 | the server knows of no transaction: it has ended, one way or the other |
//! | XX000, 53, 58, 1180 | an error inside the server, at some moment of the COMMIT |
//! | 9001 to 9005, 8501, 4012, 4038, 6226 | TiDB's and OceanBase's parts did not hear from each other |

use std::fmt;

use serde::Serialize;

use super::Family;

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
    /// The server ended a statement that took too long, or no answer came in time and the
    /// connection was given up.
    Timeout,
    /// COMMIT was sent, and nothing came back that tells whether the transaction is committed.
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

    /// Whether trying again would not mend it: the transaction, the schema or the database is
    /// wrong. Conflicts and outages pass.
    pub fn is_permanent(self) -> bool {
        matches!(self, Cause::Constraint | Cause::Unexpected | Cause::Other)
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

    /// Whether its connection is of no more use. Most time limits of a server, which have a code,
    /// end a statement and leave the session as good as before; some end the session.
    pub fn ends_connection(&self) -> bool {
        const END_SESSIONS: [&str; 4] = ["", "25P03", "25P04", "57P05"];
        match self.cause {
            Cause::Unavailable | Cause::Unreachable | Cause::Disconnected | Cause::InDoubt => true,
            Cause::Timeout => END_SESSIONS.contains(&self.code.as_str()),
            _ => false,
        }
    }

    /// The same as the end of a COMMIT: without a proof that the transaction has aborted it is in
    /// doubt.
    pub(super) fn of_commit(self, family: Family) -> Failure {
        match proves_abort(family, &self.code) {
            true => self,
            false => Failure { cause: Cause::InDoubt, ..self },
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

/// Whether this answer to a COMMIT means for certain that nothing is committed.
fn proves_abort(family: Family, code: &str) -> bool {
    match family {
        Family::Postgres => matches!(
            code,
            "40000"
                | "40001"
                | "40002"
                | "40004"
                | "40P01"
                | "23000"
                | "23001"
                | "23502"
                | "23503"
                | "23505"
                | "23514"
                | "23P01"
                | "55P03"
                | "25P02"
        ),
        Family::Mysql => matches!(
            code,
            "1020"
                | "1048"
                | "1062"
                | "1205"
                | "1213"
                | "1451"
                | "1452"
                | "3101"
                | "3572"
                | "3819"
                | "6002"
                | "8002"
                | "8005"
                | "8022"
                | "9007"
        ),
    }
}

/// The kind of a SQLSTATE.
fn of_sqlstate(code: &str) -> Cause {
    match code {
        "40P01" => Cause::Deadlock,
        "55P03" => Cause::LockTimeout,
        "40003" => Cause::Unavailable,
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

/// The kind of a number of MySQL.
fn of_number(code: u16) -> Cause {
    match code {
        1213 => Cause::Deadlock,
        1205 | 3572 => Cause::LockTimeout,
        1020 | 3101 | 6002 | 8002 | 8005 | 8022 | 9007 => Cause::Serialization,
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
        for code in ["40001", "40P01", "55P03", "40002"] {
            assert!(of_sqlstate(code).is_conflict(), "{code}");
        }
        for code in ["57P01", "08006", "53300", "40003"] {
            assert!(Failure::new(of_sqlstate(code), "").ends_connection(), "{code}");
        }
        for code in ["23505", "42P01", "", "4"] {
            let cause = of_sqlstate(code);
            assert!(cause.is_permanent() && !Failure::new(cause, "").ends_connection(), "{code}");
        }
        for code in [1213, 1205, 1020, 9007] {
            assert!(of_number(code).is_conflict(), "{code}");
        }
        assert_eq!(of_number(1062), Cause::Constraint);
        assert_eq!(of_number(1146), Cause::Other);
    }

    /// How a COMMIT has ended that was answered with this code, whatever the code means elsewhere.
    fn commit(family: Family, code: &str) -> Cause {
        let cause = match family {
            Family::Postgres => of_sqlstate(code),
            Family::Mysql => code.parse().map_or(Cause::Other, of_number),
        };
        Failure { cause, code: code.to_owned(), message: String::new() }.of_commit(family).cause
    }

    #[test]
    fn a_time_limit_of_the_server_leaves_the_session_as_good_as_before() {
        for code in ["57014", "25P03", "25P04", "57P05"] {
            assert_eq!(of_sqlstate(code), Cause::Timeout, "{code}");
        }
        for code in [1317, 1969, 3024, 4012] {
            assert_eq!(of_number(code), Cause::Timeout, "{code}");
        }
        let ends = |code: &str| {
            Failure { code: code.to_owned(), ..Failure::new(Cause::Timeout, "") }.ends_connection()
        };
        assert!(!ends("57014") && !ends("1969"));
        assert!(ends("") && ends("25P03"), "no answer at all, and limits of the session");
    }

    #[test]
    fn a_commit_has_aborted_if_its_answer_proves_it() {
        for (family, code, cause) in [
            (Family::Postgres, "40001", Cause::Serialization),
            (Family::Postgres, "40002", Cause::Serialization),
            (Family::Postgres, "40P01", Cause::Deadlock),
            (Family::Postgres, "55P03", Cause::LockTimeout),
            (Family::Postgres, "23505", Cause::Constraint),
            (Family::Postgres, "23P01", Cause::Constraint),
            (Family::Postgres, "25P02", Cause::Other),
            (Family::Mysql, "1213", Cause::Deadlock),
            (Family::Mysql, "1205", Cause::LockTimeout),
            (Family::Mysql, "3101", Cause::Serialization),
            (Family::Mysql, "6002", Cause::Serialization),
            (Family::Mysql, "8005", Cause::Serialization),
            (Family::Mysql, "9007", Cause::Serialization),
            (Family::Mysql, "1062", Cause::Constraint),
        ] {
            assert_eq!(commit(family, code), cause, "{code}");
        }
    }

    #[test]
    fn a_commit_is_in_doubt_if_its_answer_proves_nothing() {
        let of_postgres = [
            "40003", "08000", "08003", "08006", "08007", "57014", "57P01", "57P02", "57P03", "57P04",
            "57P05", "53100", "53200", "53300", "58000", "58030", "25P01", "25P03", "XX000", "XX001",
            "0A000", "2D000", "72000", "P0001", "40XYZ", "23XYZ", "",
        ];
        for code in of_postgres {
            assert_eq!(commit(Family::Postgres, code), Cause::InDoubt, "{code}");
        }
        let of_mysql = [
            "1040", "1053", "1105", "1158", "1180", "1290", "1317", "1927", "3024", "4009", "4012", "4038",
            "6226", "8501", "9001", "9002", "9003", "9004", "9005", "40001", "",
        ];
        for code in of_mysql {
            assert_eq!(commit(Family::Mysql, code), Cause::InDoubt, "{code}");
        }
        for cause in [Cause::Disconnected, Cause::Timeout, Cause::Other] {
            assert_eq!(Failure::new(cause, "").of_commit(Family::Postgres).cause, Cause::InDoubt);
        }
    }
}
