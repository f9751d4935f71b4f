//! What steps, aborts and messages are called, the same in a trace as on a page.
//!
//! A step is told by a phrase with places for what differs: `{i}` the record, `{v}` the version,
//! stamp or mark, `{before}` and `{after}` what a mark was and is, `{o}` another attempt. A trace
//! fills in names; a page gets the phrases along with the steps, fills in buttons, and adds what
//! follows from the step (`words.js`).

use super::model::{StepLine, Timeline};

/// The phrase of a step. Its attempt is known, and what snapshot it has.
pub(super) fn phrase(step: &StepLine, world: &Timeline) -> &'static str {
    let mark = step.m.map(|(before, after)| (before.rank(), after.rank()));
    let rises = world.marks && mark.is_some_and(|(before, after)| before < after);
    match step.k {
        "begins" => "begins",
        "snapshot" if step.v.is_none() => "will read what is committed",
        "snapshot" => "takes a snapshot at {v}",
        "raises" if below_snapshot(step, world) => {
            "does not raise the mark of {i}: it stays at {after}, below the snapshot"
        }
        "raises" if rises => "raises the mark of {i} from {before} to {after}",
        "raises" => "need not raise the mark of {i}: it is {after} already",
        "reads" if step.w.is_some() => "finds no {i}",
        "reads" => "reads {i}: the version of {v}",
        "locks" if step.w == Some("shared") => "takes a shared lock on {i}",
        "locks" if step.lb.is_some_and(|lb| lb.rank() == i64::MAX) => "locks {i}, which it has only read",
        "locks" if world.marks => "locks {i}: its mark is {v}",
        "locks" => "locks {i}",
        "bounds" => "looks at the mark of {i} again, its lock held: it is {v}",
        "waits" if step.o.is_none() => "waits for others to unlock {i}",
        "waits" => "waits for {o} to unlock {i}",
        "refused" if step.o.is_none() => "does not get {i}: it is no longer what was read",
        "refused" => "does not get {i}: {o} has locked it",
        "stamps" => "takes its timestamp {v}",
        "pins" => match (world.marks, rises, step.w.is_some()) {
            (false, _, false) => "looks whether {i} still is what it has read",
            (false, _, true) => "looks whether {i} still is what it has read: it is changed or locked",
            (true, true, false) => "pins {i}: the mark rises from {before} to {after}",
            (true, true, true) => "pins {i}, changed or locked: the mark rises from {before} to {after}",
            (true, false, false) => "pins {i}, whose mark is {after} already",
            (true, false, true) => "pins {i}, changed or locked, whose mark is {after} already",
        },
        "installs" => match (step.w.is_some(), rises) {
            (false, false) => "installs {i}, version {v}",
            (false, true) => "installs {i}, version {v}; the mark was {before} and follows",
            (true, false) => "deletes {i}, version {v}",
            (true, true) => "deletes {i}, version {v}; the mark was {before} and follows",
        },
        "unlocks" => "unlocks {i}",
        "aborts" => gives_up(step.w.unwrap_or_default()),
        _ => "does what has no name",
    }
}

/// A snapshot read that leaves the mark below the snapshot, which no correct protocol does.
fn below_snapshot(step: &StepLine, world: &Timeline) -> bool {
    let attempt = &world.attempts[step.x];
    let snapshot = attempt.stamp.filter(|_| attempt.snapshot && world.marks);
    snapshot.zip(step.m).is_some_and(|(snapshot, (_, after))| after.rank() < snapshot.rank())
}

/// Why an attempt is over, by the reason's name.
pub(super) fn gives_up(why: &str) -> &'static str {
    match why {
        "write_conflict" => {
            "gives up: something it wants is locked, or was overwritten before it could lock it"
        }
        "validation" => "gives up: something it has read is no longer the newest version",
        "wounded" => "gives up: an older transaction wants its locks",
        "refused" => "gives up: a shard has refused its vote",
        "stale_term" => "gives up: a shard that it counts on does not hold the data, which has moved",
        "unknown" => "gives up: an answer was lost",
        "clock_ahead" => "gives up: a timestamp is too far ahead of a shard's clock",
        "full" => "gives up: a shard has no memory for what it writes",
        "disk_full" => "gives up: a shard has no room on its disk for what it writes",
        _ => "gives up: it says no itself, for what it has read",
    }
}
