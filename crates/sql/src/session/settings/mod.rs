//! The settings of a session, with what transactions do to them.
//!
//! A setting that nobody has changed has the value that it had when the session began (`RESET`).
//! What was changed is in two maps. `current` is what holds now. `lasting` is what will hold after
//! the transaction: `SET LOCAL` leaves it alone. A commit makes `lasting` current; a rollback puts
//! both back to what they were, and so does a rollback to a savepoint. The maps are shared and
//! copied when they change, so to remember them costs nothing.
//!
//! Worked example: `BEGIN; SET work_mem = 100; SET LOCAL work_mem = 200; SHOW work_mem; COMMIT`
//! shows 200 and leaves 100.
//!
//! The settings of a transaction (`transaction_isolation`, ...) are always local, and what they are
//! if nobody has set them is the default of the session (`default_transaction_isolation`).

mod table;
#[cfg(test)]
mod tests;
mod value;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use table::{Kind, SETTINGS, Scope, Setting};

use crate::analyze::{Catalog, ShownSetting, unsupported};
use crate::catalog::Relation;
use crate::catalog::pg::Objects;
use crate::types::Style;
use crate::{SqlError, SqlState};

/// Settings that a client is told whenever they change, in PostgreSQL's order.
const REPORTED: [&str; 13] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// The setting that says how old a snapshot may be.
const STALENESS: &str = "plimsoll.staleness";
/// The setting that shows the session's last timestamp.
const LAST_TIMESTAMP: &str = "plimsoll.last_timestamp";

/// Custom settings that a session may make.
const CUSTOM_MAX: usize = 1_000;

type Map = Rc<BTreeMap<String, String>>;

/// What has been changed, and what of it lasts.
#[derive(Clone, Default)]
pub(super) struct Changes {
    current: Map,
    lasting: Map,
}

/// How far a transaction is, for settings that may only be changed at its begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// It has run no query.
    Fresh,
    /// It has.
    Queried,
    /// It is in a savepoint.
    Nested,
}

/// The settings of a session.
pub(super) struct Settings {
    user: String,
    database: String,
    changes: RefCell<Changes>,
    /// What `RESET` goes back to, where that is not the default.
    initial: BTreeMap<String, String>,
    /// How often anything has changed.
    generation: Cell<u64>,
    progress: Cell<Progress>,
    /// Whether the transaction only reads, and at which generation that was so: every statement
    /// asks.
    reads_only: Cell<(u64, bool)>,
    /// How old its snapshot may be, in milliseconds, and at which generation that was so.
    staleness_ms: Cell<(u64, u64)>,
    /// The largest timestamp that the session has read at or written; 0 if there was none.
    last_timestamp: Cell<u64>,
    /// What the client has been told, and at which generation.
    reported: RefCell<(u64, BTreeMap<&'static str, String>)>,
}

impl Settings {
    /// The settings of a session that begins.
    pub(super) fn new(user: &str, database: &str) -> Settings {
        Settings {
            user: user.to_owned(),
            database: database.to_owned(),
            changes: RefCell::default(),
            initial: BTreeMap::from([("session_authorization".to_owned(), user.to_owned())]),
            generation: Cell::new(1),
            progress: Cell::new(Progress::Fresh),
            reads_only: Cell::default(),
            staleness_ms: Cell::default(),
            last_timestamp: Cell::new(0),
            reported: RefCell::default(),
        }
    }

    /// What a client asks for as it connects: what `RESET` goes back to as well.
    pub(super) fn begin_with(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let (name, kept) = self.checked(name, value)?;
        self.initial.insert(name, kept);
        Ok(())
    }

    /// How often anything has changed.
    pub(super) fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// How far the transaction is.
    pub(super) fn proceed(&self, progress: Progress) {
        self.progress.set(progress);
    }

    /// What the changes are, to come back to.
    pub(super) fn remember(&self) -> Changes {
        self.changes.borrow().clone()
    }

    /// Puts back what was remembered.
    pub(super) fn restore(&self, changes: Changes) {
        let mut now = self.changes.borrow_mut();
        if !Rc::ptr_eq(&now.current, &changes.current) || !Rc::ptr_eq(&now.lasting, &changes.lasting) {
            *now = changes;
            self.generation.set(self.generation.get() + 1);
        }
    }

    /// The transaction commits: what was local is over.
    pub(super) fn commit(&self) {
        let mut changes = self.changes.borrow_mut();
        if !Rc::ptr_eq(&changes.current, &changes.lasting) {
            if changes.current != changes.lasting {
                self.generation.set(self.generation.get() + 1);
            }
            changes.current = changes.lasting.clone();
        }
    }

    /// The name of a setting as it is shown, or 42704.
    pub(super) fn name_of(&self, name: &str) -> Result<String, SqlError> {
        match table::find(name) {
            Some(setting) => Ok(setting.name.to_owned()),
            None if self.changes.borrow().current.contains_key(&name.to_ascii_lowercase()) => {
                Ok(name.to_ascii_lowercase())
            }
            None if self.initial.contains_key(&name.to_ascii_lowercase()) => Ok(name.to_ascii_lowercase()),
            None => Err(unknown(name)),
        }
    }

    /// What `SHOW` says of a setting, or 42704.
    pub(super) fn show(&self, name: &str) -> Result<String, SqlError> {
        self.setting(name).ok_or_else(|| unknown(name))
    }

    /// What `SHOW ALL` says: names, values, descriptions.
    pub(super) fn show_all(&self) -> Vec<[String; 3]> {
        let shown = SETTINGS.iter().filter(|setting| setting.scope != Scope::Hidden);
        shown
            .map(|setting| [setting.name.to_owned(), self.shown(setting), setting.about.to_owned()])
            .collect()
    }

    /// Puts a setting back to what the session began with, if `local` until the end of the
    /// transaction.
    pub(super) fn reset(&self, name: &str, local: bool) -> Result<(), SqlError> {
        let Some(setting) = table::find(name) else {
            check_custom(name)?;
            self.change(&name.to_ascii_lowercase(), None, local);
            return Ok(());
        };
        changeable(setting)?;
        let initial = self.initial.get(setting.name).map_or(setting.default, String::as_str);
        if is_of_transaction(setting) {
            self.check_progress(setting, initial)?;
        }
        self.change(setting.name, None, local || is_of_transaction(setting));
        Ok(())
    }

    /// Puts all settings back, but those of the transaction and who the user is.
    pub(super) fn reset_all(&self) {
        let kept = |name: &str| {
            name.starts_with("transaction_") || ["role", "session_authorization"].contains(&name)
        };
        let mut changes = self.changes.borrow_mut();
        Rc::make_mut(&mut changes.current).retain(|name, _| kept(name));
        Rc::make_mut(&mut changes.lasting).retain(|name, _| kept(name));
        self.generation.set(self.generation.get() + 1);
    }

    /// What is to be reported: all at first, then what has changed since.
    pub(super) fn report(&self, mut tell: impl FnMut(&str, &str)) {
        let mut reported = self.reported.borrow_mut();
        let (generation, told) = &mut *reported;
        if *generation == self.generation.get() {
            return;
        }
        *generation = self.generation.get();
        for name in REPORTED {
            let value = self.setting(name).unwrap_or_default();
            if told.get(name) != Some(&value) {
                tell(name, &value);
                told.insert(name, value);
            }
        }
    }

    /// What the text forms of values depend on.
    pub(super) fn style(&self) -> Style {
        Style::from_settings(|name| self.setting(name))
    }

    /// The value of a setting that counts something, in its own unit.
    pub(super) fn number(&self, name: &str) -> i64 {
        table::find(name).and_then(|setting| self.kept(setting).parse().ok()).unwrap_or(0)
    }

    /// Whether the transaction only reads.
    pub(super) fn reads_only(&self) -> bool {
        let (generation, reads_only) = self.reads_only.get();
        if generation == self.generation() {
            return reads_only;
        }
        let reads_only = self.setting("transaction_read_only").as_deref() == Some("on");
        self.reads_only.set((self.generation(), reads_only));
        reads_only
    }

    /// How old the snapshot of a transaction that only reads may be, in milliseconds.
    pub(super) fn staleness_ms(&self) -> u64 {
        let (generation, staleness_ms) = self.staleness_ms.get();
        if generation == self.generation() {
            return staleness_ms;
        }
        let staleness_ms = u64::try_from(self.number(STALENESS)).unwrap_or(0);
        self.staleness_ms.set((self.generation(), staleness_ms));
        staleness_ms
    }

    /// The session has read at a timestamp, or has committed with one.
    pub(super) fn saw(&self, timestamp: Option<u64>) {
        self.last_timestamp.set(self.last_timestamp.get().max(timestamp.unwrap_or(0)));
    }

    /// The largest timestamp of those; 0 if there was none.
    pub(super) fn last_timestamp(&self) -> u64 {
        self.last_timestamp.get()
    }

    /// The value as it is kept.
    fn kept(&self, setting: &Setting) -> String {
        if setting.name == LAST_TIMESTAMP {
            return self.last_timestamp.get().to_string();
        }
        if let Some(value) = self.changes.borrow().current.get(setting.name) {
            return value.clone();
        }
        match (setting.name.strip_prefix("transaction_"), self.initial.get(setting.name)) {
            (Some(of), _) => match table::find(&format!("default_transaction_{of}")) {
                Some(default) => self.kept(default),
                None => setting.default.to_owned(),
            },
            (None, Some(initial)) => initial.clone(),
            (None, None) => setting.default.to_owned(),
        }
    }

    fn shown(&self, setting: &Setting) -> String {
        // Whatever was asked for, this is what there is.
        if setting.name == "transaction_isolation" {
            return "serializable".to_owned();
        }
        value::show(setting, &self.kept(setting))
    }

    /// A setting's name, and what a value of it is kept as.
    fn checked(&self, name: &str, value: &str) -> Result<(String, String), SqlError> {
        let Some(setting) = table::find(name) else {
            check_custom(name)?;
            let name = name.to_ascii_lowercase();
            let changes = self.changes.borrow();
            let there = changes.current.len() + changes.lasting.len() + self.initial.len();
            if there > 2 * CUSTOM_MAX && !changes.current.contains_key(&name) {
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many custom parameters"));
            }
            return Ok((name, value.to_owned()));
        };
        changeable(setting)?;
        let kept = value::accept(setting, value)?;
        let kept = match setting.kind {
            Kind::DateStyle => value::complete(&kept, &self.kept(setting)),
            Kind::Role if kept != self.user && !(kept == "none" && setting.name == "role") => {
                let error = format!("role \"{kept}\" does not exist");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error));
            }
            _ => kept,
        };
        if is_of_transaction(setting) {
            self.check_progress(setting, &kept)?;
        }
        Ok((setting.name.to_owned(), kept))
    }

    /// Settings of the transaction change before its first query only.
    fn check_progress(&self, setting: &Setting, value: &str) -> Result<(), SqlError> {
        let progress = self.progress.get();
        if progress == Progress::Fresh || self.kept(setting) == value {
            return Ok(());
        }
        let nested = progress == Progress::Nested;
        let error = match setting.name {
            "transaction_isolation" if nested => {
                "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
            }
            "transaction_isolation" => "SET TRANSACTION ISOLATION LEVEL must be called before any query",
            "transaction_deferrable" if nested => {
                "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
            }
            "transaction_deferrable" => "SET TRANSACTION [NOT] DEFERRABLE must be called before any query",
            // To be stricter is possible at any time.
            _ if value == "on" => return Ok(()),
            _ if nested => "cannot set transaction read-write mode inside a read-only transaction",
            _ => "transaction read-write mode must be set before any query",
        };
        Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, error))
    }

    fn change(&self, name: &str, value: Option<String>, local: bool) {
        let mut changes = self.changes.borrow_mut();
        let put = |map: &mut Map, value: Option<String>| match value {
            Some(value) => Rc::make_mut(map).insert(name.to_owned(), value),
            None => Rc::make_mut(map).remove(name),
        };
        if !local {
            put(&mut changes.lasting, value.clone());
        }
        put(&mut changes.current, value);
        self.generation.set(self.generation.get() + 1);
    }
}

impl Catalog for Settings {
    fn setting(&self, name: &str) -> Option<String> {
        match table::find(name) {
            Some(setting) => Some(self.shown(setting)),
            None => {
                let name = name.to_ascii_lowercase();
                let changes = self.changes.borrow();
                changes.current.get(&name).or_else(|| self.initial.get(&name)).cloned()
            }
        }
    }

    fn set(&self, name: &str, value: &str, local: bool) -> Result<String, SqlError> {
        let (name, kept) = self.checked(name, value)?;
        let local = local || table::find(&name).is_some_and(is_of_transaction);
        self.change(&name, Some(kept), local);
        Ok(self.setting(&name).unwrap_or_default())
    }

    fn user(&self) -> &str {
        &self.user
    }

    fn database(&self) -> &str {
        &self.database
    }

    /// Refused: where only settings are known there are no tables to name.
    fn objects(&self) -> Result<Arc<Objects>, SqlError> {
        Err(unsupported("a name of the catalog in this place"))
    }

    fn settings(&self) -> Vec<ShownSetting> {
        let shown = SETTINGS.iter().filter(|setting| setting.scope != Scope::Hidden);
        shown
            .map(|setting| {
                let reset = self.initial.get(setting.name).map_or(setting.default, String::as_str);
                ShownSetting {
                    value: self.kept(setting),
                    reset: reset.to_owned(),
                    ..value::described(setting)
                }
            })
            .collect()
    }

    /// None: where only settings are known there are no tables.
    fn relation(&self, _schema: &str, _name: &str) -> Result<Option<Relation>, SqlError> {
        Ok(None)
    }
}

fn is_of_transaction(setting: &Setting) -> bool {
    setting.name.starts_with("transaction_")
}

fn changeable(setting: &Setting) -> Result<(), SqlError> {
    let name = setting.name;
    let error = match setting.scope {
        Scope::Session => return Ok(()),
        Scope::Hidden if name != "is_superuser" => return Ok(()),
        Scope::Start => format!("parameter \"{name}\" cannot be changed without restarting the server"),
        Scope::Fixed | Scope::Hidden => format!("parameter \"{name}\" cannot be changed"),
    };
    Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, error))
}

/// A custom setting has a prefix, and both are identifiers.
fn check_custom(name: &str) -> Result<(), SqlError> {
    let Some((prefix, _)) = name.split_once('.') else { return Err(unknown(name)) };
    if prefix.eq_ignore_ascii_case("plimsoll") {
        let error = format!("invalid configuration parameter name \"{name}\"");
        let detail = format!("\"{}\" is a reserved prefix.", prefix.to_ascii_lowercase());
        return Err(SqlError::new(SqlState::INVALID_NAME, error).detail(detail));
    }
    let is_identifier = |part: &str| {
        let mut characters = part.chars();
        let first =
            characters.next().is_some_and(|it| it.is_ascii_alphabetic() || it == '_' || !it.is_ascii());
        first && characters.all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '$' || !it.is_ascii())
    };
    if name.split('.').all(is_identifier) {
        return Ok(());
    }
    let error = format!("invalid configuration parameter name \"{name}\"");
    let detail = "Custom parameter names must be two or more simple identifiers separated by dots.";
    Err(SqlError::new(SqlState::INVALID_NAME, error).detail(detail))
}

fn unknown(name: &str) -> SqlError {
    let error = format!("unrecognized configuration parameter \"{name}\"");
    SqlError::new(SqlState::UNDEFINED_OBJECT, error)
}

/// Whether several values may stand in a `SET`, and whether they are names.
pub(super) fn list_of(name: &str) -> Option<bool> {
    match table::find(name)?.kind {
        Kind::DateStyle => Some(false),
        Kind::Names => Some(true),
        _ => None,
    }
}
