//! The log lines of nodes, for tests that look at them.
//!
//! The threads of all nodes of all tests log into one list, so a test looks for lines with an
//! address of its own.
// A shard holds this lock only for the moment that it takes to append a line.
#![allow(clippy::disallowed_types)]

use std::fmt::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, subscriber};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps every event as a line: its level, then each field as `name=value`; the text is the field
/// `message`.
struct Keep;

/// A line under construction.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Keep {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Begins to keep what is logged.
pub(super) fn keep() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| subscriber::set_global_default(Keep).expect("nobody else wants to know"));
}

/// Whether there is a line with all of these words.
pub(super) fn has(words: &[&str]) -> bool {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().any(|line| words.iter().all(|word| line.contains(word)))
}

/// Waits for such a line.
pub(super) fn wait_for(words: &[&str]) {
    super::until(&format!("{words:?} is logged"), || has(words).then_some(()));
}
