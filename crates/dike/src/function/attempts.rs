//! The history of a test over lists: what each attempt of a transaction appended and read, and how
//! it ended.
//!
//! [`judge`](super::judge) judges it. [`lines`] writes it for other checkers.

use std::fmt::Write;

use plimsoll_types::history::{Span, events};

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// This number was appended to this list.
    Append(u64, u64),
    /// This list held these numbers.
    Read(u64, Vec<u64>),
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It committed.
    Committed,
    /// It aborted.
    Aborted,
    /// It is in doubt.
    Unknown,
}

/// One attempt, as its session saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The session that made it.
    pub session: u32,
    /// When it began, in nanoseconds of one clock.
    pub begin_ns: u64,
    /// When it ended, likewise.
    pub end_ns: u64,
    /// How.
    pub end: End,
    /// Whether it was begun as read-only.
    pub read_only: bool,
    /// What it did, as far as it came.
    pub operations: Vec<Operation>,
}

/// The history as other checkers of lists read it, such as Elle: two lines of JSON for each
/// attempt, when it began and how it ended. Attempts of one session have to be in its order.
pub fn lines(attempts: &[Attempt]) -> String {
    let spans = attempts.iter().map(|attempt| Span {
        session: attempt.session,
        begin_ns: attempt.begin_ns,
        end_ns: attempt.end_ns,
        committed: attempt.end == End::Committed,
    });
    let mut text = String::new();
    for (index, (at, ended)) in events(spans).into_iter().enumerate() {
        let attempt = &attempts[at];
        let time_ns = if ended { attempt.end_ns } else { attempt.begin_ns };
        let (kind, known) = match (ended, attempt.end) {
            (false, _) => ("invoke", false),
            (true, End::Committed) => ("ok", true),
            (true, End::Aborted) => ("fail", false),
            (true, End::Unknown) => ("info", false),
        };
        let value = attempt.operations.iter().map(|operation| match operation {
            Operation::Append(list, number) => format!(r#"["append",{list},{number}]"#),
            Operation::Read(list, numbers) if known => format!(r#"["r",{list},{numbers:?}]"#),
            Operation::Read(list, _) => format!(r#"["r",{list},null]"#),
        });
        let value = value.collect::<Vec<_>>().join(",");
        let _ = writeln!(
            text,
            r#"{{"index":{index},"type":"{kind}","f":"txn","process":{},"time":{time_ns},"value":[{value}]}}"#,
            attempt.session
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_in_lines_begins_before_it_ends() {
        let attempt = |session, begin_ns, end_ns, operation| Attempt {
            session,
            begin_ns,
            end_ns,
            end: End::Committed,
            read_only: false,
            operations: vec![operation],
        };
        // The first takes no time, and the second begins when it has ended.
        let text =
            lines(&[attempt(0, 5, 5, Operation::Append(0, 1)), attempt(0, 5, 7, Operation::Append(0, 2))]);
        let kinds: Vec<_> =
            text.lines().map(|line| (line.contains("invoke"), line.contains(",1]"))).collect();
        assert_eq!(kinds, [(true, true), (false, true), (true, false), (false, false)], "{text}");
    }
}
