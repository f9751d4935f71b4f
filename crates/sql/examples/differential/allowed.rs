//! The differences that there may be, each with its reason.

use crate::beside::Outcome;
use crate::sides::Answer;

/// Whether a difference may be, by the statement and what came of it here and there.
type Test = fn(&str, &Answer, &Answer) -> bool;

/// What may differ. After such a difference a sequence of statements is not gone on with, since the
/// tables may differ.
pub const ALLOWED: &[(&str, Test)] = &[
    ("what is not there is refused by name", |_, ours, _| ours.state() == "0A000"),
];

/// The reason for which answers may differ.
pub fn reason(statement: &str, ours: &Answer, theirs: &Answer) -> Option<&'static str> {
    ALLOWED.iter().find(|(_, test)| test(statement, ours, theirs)).map(|(reason, _)| *reason)
}

/// Whether outcomes of expressions are alike: what is refused here by name is not counted, and hints
/// are not compared.
pub fn outcomes(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Outcome::Error(state, ..), _) if state == "0A000" => true,
        (Outcome::Error(a, b, ..), Outcome::Error(c, d, ..)) => (a, b) == (c, d),
        _ => ours == theirs,
    }
}
