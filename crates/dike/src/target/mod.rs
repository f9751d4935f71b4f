//! The database under test: which one it is, how it is spoken to, and what its errors mean.
//!
//! Two protocols cover nine databases, PostgreSQL's and MySQL's. What differs *within* a family is
//! data: the layout of tables ([`ddl`]), a lock clause, some error numbers ([`failure`]). What
//! differs *between* them is a [`Session`]:
//!
//! * A [`Statement`] is a name, not a text. Its text is in one place for both families
//!   (`statement.rs`), a session prepares it when it is first used, and its results are read by
//!   type ([`Row`]).
//! * A session takes several calls at a time. Over PostgreSQL's protocol they travel together and
//!   are answered together (pipelining), so a New-Order of ten lines takes four round trips;
//!   MySQL's protocol has no such thing, and there they go one after the other. A transaction is
//!   written once and says what does not depend on what.
//! * `BEGIN` travels with the first calls of a transaction. `COMMIT` travels alone, when all before
//!   it was answered without an error, so that exactly one thing can be in doubt: the answer to it
//!   ([`Cause::InDoubt`]).
//!
//! * A session is set up by Dike and not by the server's defaults (`settings.rs`). Its password may
//!   come from the environment (`password.rs`), and it may be encrypted (`tls.rs`).
//!
//! *What has been run.* PostgreSQL and MariaDB are what the tests here start. The layouts and error
//! numbers of the others come from their documentation.
//!
//! Left out: prepared transactions of an outside coordinator (XA), cursors, and pools that other
//! programs share (PgBouncer in transaction mode loses prepared statements).

pub mod ddl;
pub mod failure;
mod mysql;
mod numeric;
mod password;
mod plugin;
mod postgres;
mod session;
mod settings;
mod statement;
mod tls;
mod value;

use serde::{Deserialize, Serialize};

pub use failure::{Cause, Failure};
pub use numeric::{format_decimal, write_numeric};
pub use session::{Answer, Call, Connector, Session, call};
pub use statement::Statement;
pub use value::{EPOCH_OF_POSTGRES_S, Row, Value, civil};

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// PostgreSQL.
    Postgresql,
    /// PostgreSQL with Citus.
    Citus,
    /// CockroachDB.
    Cockroachdb,
    /// YugabyteDB, its SQL interface.
    Yugabytedb,
    /// Plimsoll.
    Plimsoll,
    /// MySQL.
    Mysql,
    /// MariaDB.
    Mariadb,
    /// TiDB.
    Tidb,
    /// OceanBase, in MySQL mode.
    Oceanbase,
}

/// Whose protocol a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// PostgreSQL's.
    Postgres,
    /// MySQL's.
    Mysql,
}

impl Kind {
    /// Whose protocol it speaks.
    pub fn family(self) -> Family {
        match self {
            Kind::Postgresql | Kind::Citus | Kind::Cockroachdb | Kind::Yugabytedb | Kind::Plimsoll => {
                Family::Postgres
            }
            Kind::Mysql | Kind::Mariadb | Kind::Tidb | Kind::Oceanbase => Family::Mysql,
        }
    }

    /// Whether it takes COPY in its binary form.
    pub fn binary_copy(self) -> bool {
        matches!(self, Kind::Postgresql | Kind::Citus | Kind::Yugabytedb)
    }
}

/// An isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Whatever the database has without being asked.
    Database,
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

impl Isolation {
    /// As SQL spells it; none for the database's own.
    pub fn sql(self) -> Option<&'static str> {
        match self {
            Isolation::Database => None,
            Isolation::ReadCommitted => Some("READ COMMITTED"),
            Isolation::RepeatableRead => Some("REPEATABLE READ"),
            Isolation::Serializable => Some("SERIALIZABLE"),
        }
    }
}
