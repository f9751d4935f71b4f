//! The differences that there may be, each with its reason.

use crate::beside::Outcome;
use crate::sides::Answer;

/// Whether a difference may be, by the statement and what came of it here and there.
type Test = fn(&str, &Answer, &Answer) -> bool;

/// What may differ. After such a difference a sequence of statements ends, since the tables may
/// differ, unless it was a query.
pub const ALLOWED: &[(&str, Test)] = &[
    ("what is not there is refused by name", |_, ours, _| ours.state() == "0A000"),
    ("which of a statement's several mistakes is told", |_, ours, theirs| {
        let places = [ours, theirs].map(|answer| answer.field('P'));
        let are_errors = [ours, theirs].iter().all(|answer| answer.state().starts_with(['2', '4']));
        are_errors && places[0] != places[1]
    }),
    ("which row fails first: all are computed before any is written", |text, ours, theirs| {
        let writes = text.starts_with("insert") || text.starts_with("update");
        writes
            && [ours, theirs].iter().all(|answer| answer.state().starts_with('2'))
            && ours.state() != theirs.state()
    }),
    ("whether a part fails that the result does not need", |_, ours, theirs| {
        let states = [ours.state(), theirs.state()];
        states.contains(&"") && states.iter().any(|it| it.starts_with("22") || *it == "21000")
    }),
    (
        "a column's modifier is told of what PostgreSQL's plan has made of the expression",
        |_, ours, theirs| {
            let mut plain = [ours.clone(), theirs.clone()];
            let columns = plain.iter_mut().flat_map(|answer| answer.columns.iter_mut().flatten());
            columns.for_each(|column| column.3 = -1);
            let all = || ours.columns.iter().flatten().zip(theirs.columns.iter().flatten());
            plain[0] == plain[1] && all().all(|(ours, theirs)| ours.3 == -1 || ours.3 == theirs.3)
        },
    ),
    ("which row of several that a key still names is looked at first", |text, ours, theirs| {
        let of_parents = text.starts_with("update") || text.starts_with("delete");
        of_parents && [ours, theirs].iter().all(|answer| answer.state() == "23503")
    }),
    ("operators of types that are not there make a call ambiguous", |_, ours, theirs| {
        ours.state() == "42883" && theirs.state() == "42725" && ours.field('P') == theirs.field('P')
    }),
    ("which of several duplicates is met first", |text, ours, theirs| {
        let makes_index = text.starts_with("create unique index") || text.starts_with("alter table");
        makes_index && [ours, theirs].iter().all(|answer| answer.state() == "23505")
    }),
];

/// The reason for which answers may differ.
pub fn reason(statement: &str, ours: &Answer, theirs: &Answer) -> Option<&'static str> {
    ALLOWED.iter().find(|(_, test)| test(statement, ours, theirs)).map(|(reason, _)| *reason)
}

/// Whether outcomes of expressions are alike: what is refused here by name is not counted, and
/// hints are not compared.
pub fn outcomes(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Outcome::Error(state, ..), _) if state == "0A000" => true,
        (Outcome::Error(a, b, ..), Outcome::Error(c, d, ..)) => (a, b) == (c, d),
        _ => ours == theirs,
    }
}
