//! What was done and when: the record of a run's faults, for charts and for whoever doubts them.
//!
//! Times are nanoseconds since the start of the run. A fault holds at a place from the entry
//! [`Started`](Phase::Started) to [`Undone`](Phase::Undone); both are written when the far end has
//! confirmed them, so a band of a chart never begins before the fault was there.

use serde::{Deserialize, Serialize};

/// Everything that was done, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Journal {
    /// The entries, by time.
    pub entries: Vec<Entry>,
}

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in nanoseconds since the start of the run.
    pub at_ns: u64,
    /// The entry of the schedule, counted from 1.
    pub number: usize,
    /// The name of the fault.
    pub fault: String,
    /// The host, process or endpoint.
    pub place: String,
    /// What was done.
    pub phase: Phase,
    /// What was said on the way: output of commands, reasons. Often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// A step in the life of a fault at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is being put in place.
    Starting,
    /// It holds.
    Started,
    /// It could not be put in place, and what was done of it is undone.
    StartFailed,
    /// It ended before its time, by itself or because the way to it was lost.
    EndedEarly,
    /// It is being undone.
    Undoing,
    /// It is undone.
    Undone,
    /// It stays, as the schedule asks for: the machine or process is down.
    LeftDown,
    /// It could not be undone.
    UndoFailed {
        /// What a user can run to undo it.
        command: String,
    },
}

/// The time during which a fault held at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Band {
    /// The name of the fault.
    pub fault: String,
    /// Where.
    pub place: String,
    /// From when, in nanoseconds since the start of the run.
    pub from_ns: u64,
    /// Until when; nothing if it was not undone.
    pub to_ns: Option<u64>,
}

impl Entry {
    /// One line for a log: the time in seconds, what, where.
    pub fn line(&self) -> String {
        let what = self.phase.say();
        let detail = if self.detail.is_empty() { String::new() } else { format!(" ({})", self.detail) };
        format!("{:.3} s: {} at {}: {what}{detail}", self.at_ns as f64 / 1e9, self.fault, self.place)
    }
}

impl Phase {
    /// It in words.
    pub fn say(&self) -> String {
        match self {
            Phase::Starting => "starting".to_owned(),
            Phase::Started => "started".to_owned(),
            Phase::StartFailed => "COULD NOT START".to_owned(),
            Phase::EndedEarly => "ENDED EARLY".to_owned(),
            Phase::Undoing => "undoing".to_owned(),
            Phase::Undone => "undone".to_owned(),
            Phase::LeftDown => "left down, as asked for".to_owned(),
            Phase::UndoFailed { command } => format!("NOT UNDONE; run this yourself:\n  {command}\n "),
        }
    }
}

impl Journal {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bands of a chart, by their start.
    pub fn bands(&self) -> Vec<Band> {
        let mut bands: Vec<(usize, Band)> = Vec::new();
        for entry in &self.entries {
            match &entry.phase {
                Phase::Started => {
                    let (fault, place) = (entry.fault.clone(), entry.place.clone());
                    bands.push((entry.number, Band { fault, place, from_ns: entry.at_ns, to_ns: None }));
                }
                Phase::Undone | Phase::EndedEarly => {
                    let of = |(number, band): &&mut (usize, Band)| {
                        *number == entry.number && band.place == entry.place && band.to_ns.is_none()
                    };
                    if let Some((_, band)) = bands.iter_mut().rev().find(of) {
                        band.to_ns = Some(entry.at_ns);
                    }
                }
                _ => {}
            }
        }
        bands.into_iter().map(|(_, band)| band).collect()
    }

    /// Whether all that was put in place is undone and nothing stays down: then the database comes
    /// back.
    pub fn brings_back(&self) -> bool {
        let undone = |phase: &Phase| matches!(phase, Phase::Undone);
        self.entries.iter().any(|entry| undone(&entry.phase)) && !self.leaves_down()
    }

    /// Whether a part of the database stays as a fault has left it.
    pub fn leaves_down(&self) -> bool {
        let stays = |phase: &Phase| matches!(phase, Phase::LeftDown | Phase::UndoFailed { .. });
        self.entries.iter().any(|entry| stays(&entry.phase))
    }

    /// What did not go as the schedule has it.
    pub fn problems(&self) -> impl Iterator<Item = &Entry> {
        let is_problem = |phase: &Phase| {
            matches!(phase, Phase::StartFailed | Phase::EndedEarly | Phase::UndoFailed { .. })
        };
        self.entries.iter().filter(move |entry| is_problem(&entry.phase))
    }

    /// The entries that somebody has to act upon.
    pub fn left_behind(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| matches!(entry.phase, Phase::UndoFailed { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at_ns: u64, place: &str, phase: Phase) -> Entry {
        let (fault, place, detail) = ("pause".to_owned(), place.to_owned(), String::new());
        Entry { at_ns, number: 1, fault, place, phase, detail }
    }

    #[test]
    fn a_band_lasts_from_the_confirmed_start_to_the_confirmed_undo() {
        let failed = Phase::UndoFailed { command: "kill -CONT 7".to_owned() };
        let entries = vec![
            entry(1, "a", Phase::Starting),
            entry(2, "a", Phase::Started),
            entry(3, "b", Phase::Started),
            entry(4, "a", Phase::Undoing),
            entry(5, "a", Phase::Undone),
            entry(6, "a", Phase::Started),
            entry(7, "b", failed),
        ];
        let journal = Journal { entries };
        let band = |place: &str, from_ns, to_ns| Band {
            fault: "pause".to_owned(),
            place: place.to_owned(),
            from_ns,
            to_ns,
        };
        assert_eq!(journal.bands(), [band("a", 2, Some(5)), band("b", 3, None), band("a", 6, None)]);
        assert_eq!((journal.left_behind().count(), journal.problems().count()), (1, 1));
        let text = serde_json::to_string(&journal).unwrap();
        assert_eq!(serde_json::from_str::<Journal>(&text).unwrap(), journal);
        assert!(journal.entries[6].line().contains("kill -CONT 7"));
    }
}
