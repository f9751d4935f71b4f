//! Why a timestamp came out as it did.
//!
//! Under DST a commit stamp is the largest of: the shard's clock, what the shard has given out or
//! been told before, and one more than the versions the transaction read, the bounds of what it
//! overwrites and what its session has seen. Which of these it was can be read off the numbers;
//! that it was the session, from nothing else having that number. The same for a snapshot, which is
//! the largest of the clock, less the staleness asked for, what the shard has given out before, and
//! what the session has seen.
//!
//! A transaction that runs in one step installs right after it takes its stamp, so the bounds it
//! had to exceed are only told afterwards: commit stamps are explained when everything is known.

use std::collections::BTreeMap;

use plimsoll_sim::recorder::TimedStep;
use plimsoll_txn::trace::What;
use plimsoll_types::Timestamp;

use super::model::{Because, Stamp, StepLine};

/// Gathers what is needed to explain.
pub(super) struct Reasons {
    scheme: &'static str,
    /// Who had this stamp or snapshot first.
    owners: BTreeMap<Timestamp, usize>,
    /// Commit stamps to explain: the attempt, the stamp, what it had to be at least, the clock.
    stamps: Vec<(usize, Timestamp, Timestamp, Timestamp)>,
    explained: Vec<(usize, Because)>,
}

impl Reasons {
    pub(super) fn new(scheme: &'static str) -> Reasons {
        Reasons { scheme, owners: BTreeMap::new(), stamps: Vec::new(), explained: Vec::new() }
    }

    /// Notes a step of an attempt.
    pub(super) fn step(&mut self, attempt: usize, taken: &TimedStep) {
        let clock = taken.clock;
        match taken.step.what {
            What::Stamps { stamp, least } => {
                self.owners.entry(stamp).or_insert(attempt);
                self.stamps.push((attempt, stamp, least, clock));
            }
            What::Snapshot(Some(at), freshness) => {
                let kind = match self.scheme {
                    "dst" if at == freshness.at_least => "session",
                    "dst" if at == clock => "clock",
                    "dst" if freshness.staleness_ns > 0 => "stale",
                    "dst" => "ahead",
                    "gts" => "oracle",
                    _ => "counter",
                };
                let by = self.owners.get(&at).copied().filter(|&by| by != attempt);
                let by = by.filter(|_| ["session", "ahead"].contains(&kind));
                self.owners.entry(at).or_insert(attempt);
                let clock = Stamp::new(clock, matches!(self.scheme, "dst" | "rc"));
                self.explained.push((attempt, Because { kind, item: None, by, clock }));
            }
            _ => {}
        }
    }

    /// The reasons of all stamps and snapshots, by attempt.
    pub(super) fn finish(mut self, told: &[StepLine], times: bool) -> Vec<(usize, Because)> {
        let mut of: BTreeMap<usize, Vec<&StepLine>> = BTreeMap::new();
        for step in told {
            of.entry(step.x).or_default().push(step);
        }
        for (attempt, stamp, least, clock) in std::mem::take(&mut self.stamps) {
            let clock_told = Stamp::new(clock, times);
            let plain = |kind| Because { kind, item: None, by: None, clock: clock_told };
            let before = Timestamp(stamp.0.saturating_sub(1));
            let steps = of.get(&attempt).map(Vec::as_slice).unwrap_or_default();
            let because = match self.scheme {
                "dst" if stamp == clock => plain("clock"),
                "dst" if least == stamp => {
                    let by = self.owners.get(&before).copied().filter(|&by| by != attempt);
                    observed(steps, Stamp::new(before, times), by, clock_told)
                }
                "dst" => {
                    let by = self.owners.get(&stamp).copied().filter(|&by| by != attempt);
                    Because { by, ..plain("ahead") }
                }
                "gts" => plain("oracle"),
                _ => plain("counter"),
            };
            self.explained.push((attempt, because));
        }
        self.explained
    }
}

/// Which of the things an attempt has observed was this.
fn observed(steps: &[&StepLine], limit: Stamp, by: Option<usize>, clock: Stamp) -> Because {
    let read = steps.iter().find(|step| step.k == "reads" && step.v == Some(limit));
    let locked = steps.iter().find(|step| ["locks", "bounds"].contains(&step.k) && step.v == Some(limit));
    let written = steps.iter().find(|step| {
        let overwrites = |other: &&StepLine| other.k == "installs" && other.i == step.i;
        ["installs", "pins"].contains(&step.k)
            && step.m.is_some_and(|(before, _)| before == limit)
            && steps.iter().any(overwrites)
    });
    let (kind, item) = match (read, locked.or(written)) {
        (Some(read), _) => ("version", read.i),
        (None, Some(bound)) => ("bound", bound.i),
        // Nothing it has met, but somebody has that number: whoever its session has seen last.
        (None, None) if by.is_some() => ("session", None),
        // A vote of client-driven two-phase commit that nothing but the coordinator's clock has
        // raised: what it showed when PREPARE left.
        (None, None) => ("asked", None),
    };
    Because { kind, item, by, clock }
}
