//! What a session shows of itself to the others of its node, and what they may look at.
//!
//! Each place of a node has what its session is doing, behind a lock that only the session takes,
//! but while somebody looks. A session writes there when a statement begins, when a transaction of
//! the database begins, and when it waits for its client.

use std::sync::{Arc, PoisonError};

use super::cancel::{Place, Places};
use super::conversation::Session;
use super::statistics::{TEXT_MAX, Taken};
use super::{Stop, World};
use crate::SqlState;
use crate::analyze::Catalog;
use crate::catalog::pg::{NodeSight, SessionState, ShownLock, ShownNode, ShownSession, ShownStatement};
use crate::wire::backend::Status;

/// Maximum length of what a client calls itself, in bytes.
const APPLICATION_MAX: usize = 63;

#[expect(clippy::disallowed_types, reason = "sessions of all shards of a node look at it")]
type Lock<T> = std::sync::Mutex<T>;

/// What a session shows of itself; nothing if there is no session.
#[derive(Default)]
pub(super) struct Shown(Lock<Option<Box<ShownSession>>>);

impl Shown {
    /// Replaces all of it.
    pub(super) fn set(&self, shown: Option<Box<ShownSession>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    fn change(&self, change: impl FnOnce(&mut ShownSession)) {
        if let Some(shown) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            change(shown);
        }
    }

    #[cfg(test)]
    pub(super) fn is_some(&self) -> bool {
        self.copy().is_some()
    }

    fn copy(&self) -> Option<ShownSession> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_deref().cloned()
    }
}

impl NodeSight for Places {
    fn nodes(&self) -> Vec<ShownNode> {
        self.known_nodes()
    }

    fn sessions(&self) -> Vec<ShownSession> {
        let (reserved, waiting) = self.reservations().counts();
        let mut sessions: Vec<ShownSession> = self.shown().filter_map(Shown::copy).collect();
        for session in &mut sessions {
            session.reserved = reserved.get(&session.pid).copied().unwrap_or(0);
            session.is_waiting = waiting.contains(&session.pid);
        }
        sessions
    }

    fn locks(&self) -> Vec<ShownLock> {
        self.reservations().all()
    }

    fn statements(&self) -> Vec<ShownStatement> {
        self.statistics().all()
    }
}

/// A statement that runs, before it is known what it takes.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    us: i64,
    calls: u64,
    repeats: u64,
}

impl Place {
    /// Changes what the session shows.
    fn show(&self, change: impl FnOnce(&mut ShownSession)) {
        if let Some(shown) = self.shown() {
            shown.change(change);
        }
    }
}

impl<W: World> Session<'_, W> {
    /// The session begins: others see it.
    pub(super) fn show_begin(&mut self) {
        self.show_application();
        let now_us = self.world.now_us();
        if let Some(shown) = self.place.shown() {
            shown.set(Some(Box::new(ShownSession {
                pid: self.place.pid(),
                user: self.settings.user().to_owned(),
                database: self.settings.database().to_owned(),
                application: self.author.application.to_string(),
                client: self.world.client(),
                begun_us: now_us,
                state: SessionState::Idle,
                changed_us: now_us,
                statement: String::new(),
                statement_us: None,
                transaction_us: None,
                snapshot: None,
                reserved: 0,
                is_waiting: false,
            })));
        }
    }

    /// A text begins to be understood, or to be run.
    pub(super) fn show_text(&self, text: &str) -> i64 {
        let now_us = self.world.now_us();
        self.place.show(|shown| {
            shown.state = SessionState::Active;
            (shown.changed_us, shown.statement_us) = (now_us, Some(now_us));
            shown.statement.clear();
            shown.statement.push_str(cut(text, TEXT_MAX));
        });
        now_us
    }

    /// A statement begins, or is gone on with.
    pub(super) fn show_statement(&mut self, text: &str, is_new: bool) {
        let us = self.show_text(text);
        self.show_normal(text);
        self.rows_done = 0;
        self.begun = Some(Begun { us, calls: u64::from(is_new), repeats: self.repeats });
    }

    /// What the statement is without its literals.
    pub(super) fn show_normal(&mut self, text: &str) {
        self.normal.clear();
        self.normal.push_str(cut(text, TEXT_MAX));
    }

    /// A statement is over, if it does not wait for rows.
    pub(super) fn show_end(&mut self, result: &Result<(), Stop>) {
        if self.copying.is_some() {
            return;
        }
        let Some(begun) = self.begun.take() else { return };
        let us = u64::try_from(self.world.now_us().saturating_sub(begun.us)).unwrap_or(0);
        let repeats = self.repeats.saturating_sub(begun.repeats);
        let is_aborted = is_serialization_failure(result);
        self.add_taken(Taken { calls: begun.calls, rows: self.rows_done, us, is_aborted, repeats });
    }

    /// The transaction of the last statement has ended, or not, after the statement was counted.
    pub(super) fn show_ended(&self, repeats_before: u64, result: &Result<(), Stop>) {
        let repeats = self.repeats.saturating_sub(repeats_before);
        let is_aborted = is_serialization_failure(result);
        if repeats > 0 || is_aborted {
            self.add_taken(Taken { is_aborted, repeats, ..Taken::default() });
        }
    }

    fn add_taken(&self, taken: Taken) {
        // There is no text if there was no statement.
        if !self.normal.trim_ascii().is_empty() {
            self.place.statistics().add(self.place.pid(), &self.normal, taken);
        }
    }

    /// The client may call itself something else.
    pub(super) fn show_application(&mut self) {
        let application = self.settings.setting("application_name").unwrap_or_default();
        let application = cut(&application, APPLICATION_MAX);
        if *application != *self.author.application {
            self.author.application = Arc::from(application);
            self.place.show(|shown| application.clone_into(&mut shown.application));
        }
    }

    /// A transaction of the database has begun.
    pub(super) fn show_transaction(&self, snapshot: Option<u64>) {
        let begun_us = self.transaction.begun_us();
        self.place.show(|shown| {
            shown.transaction_us = Some(begun_us);
            shown.snapshot = snapshot;
        });
    }

    /// The session waits for its client.
    pub(super) fn show_waiting(&self, status: Status) {
        let now_us = self.world.now_us();
        let is_open = self.data.open.is_some();
        self.place.show(|shown| {
            shown.state = match status {
                Status::Idle => SessionState::Idle,
                Status::Open => SessionState::InBlock,
                Status::Failed => SessionState::Failed,
            };
            shown.changed_us = now_us;
            if !is_open {
                (shown.transaction_us, shown.snapshot) = (None, None);
            }
        });
    }

    /// How many rows a statement has returned or written, of what CommandComplete says.
    pub(super) fn count_rows(&mut self, tag: &str) {
        let rows = tag.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok());
        self.rows_done = self.rows_done.saturating_add(rows.unwrap_or(0));
    }
}

fn is_serialization_failure(result: &Result<(), Stop>) -> bool {
    match result {
        Err(Stop::Error(error)) => error.state == SqlState::SERIALIZATION_FAILURE,
        Err(Stop::Conflict(_)) => true,
        Err(Stop::Closed) | Ok(()) => false,
    }
}

/// The first bytes of a text.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
