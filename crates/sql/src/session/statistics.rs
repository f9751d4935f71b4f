//! What the statements of a node have taken, by their texts without literals.
//!
//! A session adds to the entries of its [stripe](super::stripes), and the view
//! `plimsoll.statements` adds up those of all stripes. A text that is new takes the place of the
//! one with the fewest calls, so the memory of a stripe is bounded: [`ENTRIES_MAX`] texts of at
//! most [`TEXT_MAX`] bytes.

use std::collections::BTreeMap;

use super::stripes::Stripes;
use crate::catalog::pg::ShownStatement;
use crate::parse::literals;

/// Maximum number of entries of a stripe.
const ENTRIES_MAX: usize = 256;

/// Maximum length of a text, in bytes: what is behind is cut off.
pub(super) const TEXT_MAX: usize = 1024;

type Entries = BTreeMap<String, Entry>;

#[derive(Clone, Copy, Default)]
struct Entry {
    calls: u64,
    rows: u64,
    total_us: u64,
    max_us: u64,
    aborts: u64,
    repeats: u64,
}

/// What a run of a statement has taken.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Taken {
    /// 1; 0 if it is added to a run that was counted before.
    pub(super) calls: u64,
    /// Rows that it has returned or written.
    pub(super) rows: u64,
    /// How long it took, in microseconds.
    pub(super) us: u64,
    /// Whether its client got a serialization failure.
    pub(super) is_aborted: bool,
    /// How often it, or its transaction, was run again.
    pub(super) repeats: u64,
}

impl Entry {
    fn add(&mut self, other: &Entry) {
        self.calls = self.calls.saturating_add(other.calls);
        self.rows = self.rows.saturating_add(other.rows);
        self.total_us = self.total_us.saturating_add(other.total_us);
        self.max_us = self.max_us.max(other.max_us);
        self.aborts = self.aborts.saturating_add(other.aborts);
        self.repeats = self.repeats.saturating_add(other.repeats);
    }
}

/// What the statements of a node have taken.
#[derive(Default)]
pub(super) struct Statistics(Stripes<Entries>);

impl Statistics {
    /// A session has run a statement.
    pub(super) fn add(&self, session: u32, text: &str, taken: Taken) {
        let Taken { calls, rows, us, is_aborted, repeats } = taken;
        let run = Entry { calls, rows, total_us: us, max_us: us, aborts: u64::from(is_aborted), repeats };
        self.0.with(session, |entries| {
            if let Some(entry) = entries.get_mut(text) {
                return entry.add(&run);
            }
            if entries.len() >= ENTRIES_MAX
                && let Some((least, _)) = entries.iter().min_by_key(|(_, entry)| entry.calls)
            {
                let least = least.clone();
                entries.remove(&least);
            }
            entries.insert(text.to_owned(), run);
        });
    }

    /// What all of them have taken, by text.
    pub(super) fn all(&self) -> Vec<ShownStatement> {
        let mut all = Entries::new();
        self.0.each(|entries| {
            for (text, entry) in entries {
                // Texts that differ by the kinds of their literals only are one.
                all.entry(literals::numbered(text)).or_default().add(entry);
            }
        });
        let shown = |(text, entry): (String, Entry)| {
            let Entry { calls, rows, total_us, max_us, aborts, repeats } = entry;
            ShownStatement { text, calls, rows, total_us, max_us, aborts, repeats }
        };
        all.into_iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_often_stays_and_memory_is_bounded() {
        let statistics = Statistics::default();
        for (session, us, is_aborted) in [(1, 5, false), (2, 9, true), (1, 1, false)] {
            let taken = Taken { calls: 1, rows: 2, us, is_aborted, repeats: 1 };
            statistics.add(session, "often", taken);
            statistics.add(session, "often", Taken { calls: 1, ..Taken::default() });
        }
        let once = Taken { calls: 1, ..Taken::default() };
        (0..10_000).for_each(|number| statistics.add(number % 2 + 1, &format!("select {number}"), once));
        let all = statistics.all();
        assert!(all.len() < 2 * ENTRIES_MAX, "{}", all.len());
        let often = all.iter().find(|statement| statement.text == "often").expect("it stays");
        let sums = (often.calls, often.rows, often.total_us, often.max_us, often.aborts, often.repeats);
        assert_eq!(sums, (6, 6, 15, 9, 1, 3));
    }
}
