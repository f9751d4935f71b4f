//! Whether a transaction is open: PostgreSQL's states, its warnings, and what becomes of settings.
//!
//! | state | it is in when | `ReadyForQuery` says |
//! |---|---|---|
//! | `Idle` | nothing runs | I |
//! | `Single` | a statement runs, or several up to a Sync | I |
//! | `Several` | a simple query of several statements runs | I |
//! | `Block` | after `BEGIN` | T |
//! | `Failed` | after an error in a block | E |
//!
//! `Single` and `Several` begin by themselves and end with the message; an error undoes all of it.
//! They differ in one thing: `SET LOCAL` warns in the first only, as it does in PostgreSQL. A
//! `BEGIN` in either makes a block of what was there, the statements before it included.
//!
//! What a transaction changes in the database is in `data`. Settings are remembered as a whole at
//! its begin and at each savepoint.

use super::settings::{Changes, Progress, Settings};
use crate::analyze::Catalog;
use crate::wire::backend::Status;
use crate::{Severity, SqlError, SqlState};

/// Savepoints of a transaction at most.
const SAVEPOINTS_MAX: usize = 10_000;

/// Settings that `AND CHAIN` hands on.
const CHARACTERISTICS: [&str; 3] =
    ["transaction_isolation", "transaction_read_only", "transaction_deferrable"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    Single,
    Several,
    Block,
    Failed,
}

struct Savepoint {
    name: String,
    changes: Changes,
}

/// What becomes of portals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Portals {
    /// They go on.
    Stay,
    /// Those that were opened in more savepoints than this are over.
    Above(usize),
    /// Those that were opened in more savepoints than this belong to it from now on.
    Join(usize),
    /// All are over: the transaction is.
    End,
}

/// What a statement of transaction control did.
#[derive(Debug)]
pub(super) struct Done {
    /// What CommandComplete says.
    pub tag: &'static str,
    /// What the client is to be told.
    pub warning: Option<SqlError>,
    /// What becomes of portals.
    pub portals: Portals,
}

impl Done {
    fn new(tag: &'static str, portals: Portals) -> Done {
        Done { tag, warning: None, portals }
    }
}

/// The transaction of a session.
pub(super) struct Transaction {
    state: State,
    begin: Changes,
    savepoints: Vec<Savepoint>,
    begun_us: i64,
    /// How many transactions have ended.
    ended: u64,
}

impl Transaction {
    /// None is open.
    pub(super) fn new() -> Transaction {
        Transaction {
            state: State::Idle,
            begin: Changes::default(),
            savepoints: Vec::new(),
            begun_us: 0,
            ended: 0,
        }
    }

    /// What ReadyForQuery says.
    pub(super) fn status(&self) -> Status {
        match self.state {
            State::Idle | State::Single | State::Several => Status::Idle,
            State::Block => Status::Open,
            State::Failed => Status::Failed,
        }
    }

    /// When it began, in microseconds since 2000.
    pub(super) fn begun_us(&self) -> i64 {
        self.begun_us
    }

    /// How many transactions have ended: another number is another transaction.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// How many savepoints it is in.
    pub(super) fn level(&self) -> usize {
        self.savepoints.len()
    }

    /// Whether it is that of a single statement, which can be run again.
    pub(super) fn is_single(&self) -> bool {
        self.state == State::Single
    }

    /// Whether it is over with the message that it began with.
    pub(super) fn ends_by_itself(&self) -> bool {
        matches!(self.state, State::Single | State::Several)
    }

    /// Whether a `COMMIT` would commit.
    pub(super) fn can_commit(&self) -> bool {
        matches!(self.state, State::Several | State::Block)
    }

    /// Whether nothing can be done in it but to end it.
    pub(super) fn is_beyond_repair(&self) -> bool {
        self.state == State::Idle || self.state == State::Failed && self.savepoints.is_empty()
    }

    /// Its statement is run again.
    pub(super) fn again(&self, settings: &Settings) {
        settings.restore(self.begin.clone());
    }

    /// Whether `SET LOCAL` has a transaction to be local to.
    pub(super) fn is_block(&self) -> bool {
        self.state != State::Single && self.state != State::Idle
    }

    /// A statement begins: there is a transaction from here on.
    pub(super) fn start(&mut self, settings: &Settings, now_us: i64) {
        if self.state == State::Idle {
            self.state = State::Single;
            self.begin = settings.remember();
            self.begun_us = now_us;
        }
    }

    /// The statement that begins is one of several of a simple query.
    pub(super) fn several(&mut self) {
        if self.state == State::Single {
            self.state = State::Several;
        }
    }

    /// A query was run: it is late for some settings.
    pub(super) fn queried(&self, settings: &Settings) {
        settings.proceed(if self.savepoints.is_empty() { Progress::Queried } else { Progress::Nested });
    }

    /// The message is over: what began by itself ends. Says whether it did.
    pub(super) fn finish(&mut self, settings: &Settings) -> bool {
        if !matches!(self.state, State::Single | State::Several) {
            return false;
        }
        settings.commit();
        self.end(settings);
        true
    }

    /// A statement has failed: the transaction has, as far as the last savepoint.
    pub(super) fn fail(&mut self, settings: &Settings) -> Portals {
        match self.state {
            State::Idle => Portals::Stay,
            State::Single | State::Several => {
                settings.restore(self.begin.clone());
                self.end(settings);
                Portals::End
            }
            State::Failed => Portals::Stay,
            State::Block => {
                let innermost = self.savepoints.last().map_or(&self.begin, |savepoint| &savepoint.changes);
                settings.restore(innermost.clone());
                self.state = State::Failed;
                match self.level().checked_sub(1) {
                    Some(below) => Portals::Above(below),
                    None => Portals::End,
                }
            }
        }
    }

    /// The error of any statement in a failed block but those that end it.
    pub(super) fn check(&self) -> Result<(), SqlError> {
        if self.state != State::Failed {
            return Ok(());
        }
        let error = "current transaction is aborted, commands ignored until end of transaction block";
        Err(SqlError::new(SqlState::IN_FAILED_SQL_TRANSACTION, error))
    }

    /// The error of a statement that may not run in a block.
    pub(super) fn prevent(&self, statement: &str) -> Result<(), SqlError> {
        if !self.is_block() {
            return Ok(());
        }
        let error = format!("{statement} cannot run inside a transaction block");
        Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, error))
    }

    /// `BEGIN`.
    pub(super) fn begin(&mut self, tag: &'static str) -> Done {
        let warning = match self.state {
            State::Block => {
                let text = "there is already a transaction in progress";
                Some(warning(SqlState::ACTIVE_SQL_TRANSACTION, text))
            }
            _ => {
                self.state = State::Block;
                None
            }
        };
        Done { warning, ..Done::new(tag, Portals::Stay) }
    }

    /// `COMMIT`, perhaps `AND CHAIN`: then another transaction begins at once.
    pub(super) fn commit(&mut self, settings: &Settings, chain: bool, now_us: i64) -> Result<Done, SqlError> {
        match self.state {
            State::Failed => self.rollback(settings, chain, now_us),
            State::Block => {
                let chained = chain.then(|| characteristics(settings));
                settings.commit();
                self.end(settings);
                self.chain(settings, chained, now_us);
                Ok(Done::new("COMMIT", Portals::End))
            }
            State::Idle | State::Single | State::Several => {
                let warning = Some(outside("COMMIT", chain)?);
                // One that is several statements ends here, one statement as any ends.
                let portals = if self.state == State::Several {
                    self.finish(settings);
                    Portals::End
                } else {
                    Portals::Stay
                };
                Ok(Done { warning, ..Done::new("COMMIT", portals) })
            }
        }
    }

    /// `ROLLBACK`, perhaps `AND CHAIN`.
    pub(super) fn rollback(
        &mut self,
        settings: &Settings,
        chain: bool,
        now_us: i64,
    ) -> Result<Done, SqlError> {
        let in_block = matches!(self.state, State::Block | State::Failed);
        let warning = if in_block { None } else { Some(outside("ROLLBACK", chain)?) };
        let chained = chain.then(|| characteristics(settings));
        settings.restore(self.begin.clone());
        self.end(settings);
        self.chain(settings, chained, now_us);
        Ok(Done { warning, ..Done::new("ROLLBACK", Portals::End) })
    }

    /// `PREPARE TRANSACTION`: there is none, but PostgreSQL notices only in a block that could be
    /// prepared.
    pub(super) fn prepare(&mut self, settings: &Settings, now_us: i64) -> Result<Done, SqlError> {
        match self.state {
            State::Failed => self.rollback(settings, false, now_us),
            State::Block | State::Several => {
                let error = "prepared transactions are disabled";
                let hint = "Set max_prepared_transactions to a nonzero value.";
                Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error).hint(hint))
            }
            State::Idle | State::Single => {
                let warning = Some(outside("PREPARE TRANSACTION", false)?);
                Ok(Done { warning, ..Done::new("ROLLBACK", Portals::Stay) })
            }
        }
    }

    /// `SAVEPOINT`.
    pub(super) fn savepoint(&mut self, settings: &Settings, name: &str) -> Result<Done, SqlError> {
        self.require_block("SAVEPOINT")?;
        if self.savepoints.len() >= SAVEPOINTS_MAX {
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many savepoints"));
        }
        self.savepoints.push(Savepoint { name: name.to_owned(), changes: settings.remember() });
        settings.proceed(Progress::Nested);
        Ok(Done::new("SAVEPOINT", Portals::Stay))
    }

    /// `RELEASE`.
    pub(super) fn release(&mut self, name: &str) -> Result<Done, SqlError> {
        self.require_block("RELEASE SAVEPOINT")?;
        let place = self.find(name)?;
        self.savepoints.truncate(place);
        Ok(Done::new("RELEASE", Portals::Join(place)))
    }

    /// `ROLLBACK TO`.
    pub(super) fn rollback_to(&mut self, settings: &Settings, name: &str) -> Result<Done, SqlError> {
        self.require_block("ROLLBACK TO SAVEPOINT")?;
        let place = self.find(name)?;
        // The savepoint itself stays.
        self.savepoints.truncate(place + 1);
        if let Some(savepoint) = self.savepoints.last() {
            settings.restore(savepoint.changes.clone());
        }
        self.state = State::Block;
        settings.proceed(Progress::Nested);
        Ok(Done::new("ROLLBACK", Portals::Above(place)))
    }

    fn require_block(&self, statement: &str) -> Result<(), SqlError> {
        if matches!(self.state, State::Block | State::Failed) {
            return Ok(());
        }
        let error = format!("{statement} can only be used in transaction blocks");
        Err(SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, error))
    }

    fn find(&self, name: &str) -> Result<usize, SqlError> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| {
            let error = format!("savepoint \"{name}\" does not exist");
            SqlError::new(SqlState::INVALID_SAVEPOINT_SPECIFICATION, error)
        })
    }

    fn end(&mut self, settings: &Settings) {
        self.state = State::Idle;
        self.ended += 1;
        self.savepoints.clear();
        settings.proceed(Progress::Fresh);
    }

    fn chain(&mut self, settings: &Settings, chained: Option<Vec<(&str, String)>>, now_us: i64) {
        let Some(chained) = chained else { return };
        self.start(settings, now_us);
        self.state = State::Block;
        for (name, value) in chained {
            // It was a value of this setting before.
            let again = settings.set(name, &value, true);
            debug_assert!(again.is_ok(), "a setting takes the value that it had");
        }
    }
}

/// The characteristics of a transaction, for the one that follows it.
fn characteristics(settings: &Settings) -> Vec<(&'static str, String)> {
    let shown = CHARACTERISTICS.iter().map(|name| (*name, settings.setting(name).unwrap_or_default()));
    shown.collect()
}

/// What a `COMMIT` or `ROLLBACK` outside of a block says: a warning, or with `AND CHAIN` an error.
fn outside(statement: &str, chain: bool) -> Result<SqlError, SqlError> {
    if chain {
        let error = format!("{statement} AND CHAIN can only be used in transaction blocks");
        return Err(SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, error));
    }
    Ok(warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"))
}

/// A warning.
pub(super) fn warning(state: SqlState, message: impl Into<String>) -> SqlError {
    SqlError { severity: Severity::Warning, ..SqlError::new(state, message) }
}
