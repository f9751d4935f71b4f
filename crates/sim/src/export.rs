//! Histories of list-append for checkers that know nothing of this database.
//!
//! Two lines per attempt, JSON objects in the form that Elle and its kin read: when it began
//! (`invoke`) and how it ended, `ok` (committed), `fail` (aborted) or `info` (nobody knows).
//! `process` is the session, `value` the list of operations, `["append", list, number]` or `["r",
//! list, [numbers]]`, with `null` for what was not known at that moment. Lines are in the order in
//! which things happened, `time` is that moment in virtual nanoseconds ([`Attempted::begin`]). The
//! last attempt is the judge's, who reads all lists.
//!
//! *Real time.* All clients are timed by one clock that is right. Read-write transactions are
//! strictly serializable by it, read-only ones at a snapshot need not be: under an oracle's scheme
//! a snapshot is somewhat stale, under dst it is as wrong as the reader's clock. Whoever wants to
//! check strict serializability leaves those out.
//!
//! Left out: attempts that never ended.

use std::fmt::Write;

use plimsoll_runtime::sim::EPOCH_NS;
use plimsoll_types::history::{Span, events};

use crate::run::Outcome;
use crate::workload::append::{Attempted, End, Operation};

/// The history of a world whose workload is list-append; empty for others.
pub fn lines(outcome: &Outcome) -> String {
    lines_of(&outcome.appended)
}

/// The history of these attempts; those of a session are in its order.
pub fn lines_of<'a>(attempts: impl IntoIterator<Item = &'a Attempted>) -> String {
    let attempts: Vec<&Attempted> = attempts.into_iter().collect();
    let spans = attempts.iter().map(|attempted| Span {
        session: attempted.session,
        begin_ns: attempted.begin,
        end_ns: attempted.end,
        committed: attempted.how == End::Committed,
    });
    let mut text = String::new();
    for (index, (at, ended)) in events(spans).into_iter().enumerate() {
        let attempted = attempts[at];
        let &Attempted { session, begin, end, .. } = attempted;
        let (kind, known) = match (ended, attempted.how) {
            (false, _) => ("invoke", false),
            (true, End::Committed) => ("ok", true),
            (true, End::Aborted) => ("fail", false),
            (true, End::Unknown) => ("info", false),
        };
        let value: Vec<String> = attempted.operations.iter().map(|it| operation(it, known)).collect();
        let time_ns = if ended { end } else { begin }.saturating_sub(EPOCH_NS);
        let value = value.join(",");
        let _ = writeln!(
            text,
            r#"{{"index":{index},"type":"{kind}","f":"txn","process":{session},"time":{time_ns},"value":[{value}]}}"#
        );
    }
    text
}

fn operation(operation: &Operation, known: bool) -> String {
    match operation {
        Operation::Append(list, number) => format!(r#"["append",{list},{number}]"#),
        Operation::Read(list, _) if !known => format!(r#"["r",{list},null]"#),
        Operation::Read(list, numbers) => {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!(r#"["r",{list},[{}]]"#, numbers.join(","))
        }
    }
}
