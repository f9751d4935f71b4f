//! What all sessions of a node write to is kept in parts, so that sessions of different shards
//! seldom wait for each other.
//!
//! A session writes to the part that its number decides, behind a lock of its own. A reader takes
//! one lock after the other, so what the reader sees need not have been so at one moment.

use std::sync::PoisonError;

/// Parts. Numbers of sessions are given from below, so this many of them have parts of their own.
const PARTS: usize = 16;

#[expect(clippy::disallowed_types, reason = "sessions of all shards of a node meet here")]
type Lock<T> = std::sync::Mutex<T>;

/// A part, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Part<T>(Lock<T>);

/// Something in parts.
pub(super) struct Stripes<T>(Box<[Part<T>]>);

impl<T: Default> Default for Stripes<T> {
    fn default() -> Stripes<T> {
        Stripes((0..PARTS).map(|_| Part::default()).collect())
    }
}

impl<T> Stripes<T> {
    /// Calls with the part of a session.
    pub(super) fn with(&self, session: u32, call: impl FnOnce(&mut T)) {
        let place = usize::try_from(session).unwrap_or(0) % PARTS;
        if let Some(part) = self.0.get(place) {
            call(&mut part.0.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Calls with all parts.
    pub(super) fn each(&self, mut call: impl FnMut(&T)) {
        self.0.iter().for_each(|part| call(&part.0.lock().unwrap_or_else(PoisonError::into_inner)));
    }
}
