//! The differences that there may be, each with its reason.

use plimsoll_sql::types::compare::compare;
use plimsoll_sql::types::{Oid, Style, parse};

use crate::beside::Outcome;
use crate::sides::Answer;

/// A value as text; NULL is none.
type Value = Option<String>;

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
    (
        "which row that breaks a constraint is told: rows are read in the order of keys",
        |text, ours, theirs| {
            let rest = |answer: &Answer| -> Vec<(char, String)> {
                answer.error.iter().filter(|(letter, _)| *letter != 'D').cloned().collect()
            };
            let writes = ["insert", "update", "delete"].iter().any(|verb| text.starts_with(verb));
            let starts = |detail| [ours, theirs].iter().all(|answer| answer.field('D').starts_with(detail));
            let is_taken = text.starts_with("update") && starts("Key (") && ours.state() == "23505";
            writes && (starts("Failing row contains") || is_taken) && rest(ours) == rest(theirs)
        },
    ),
    ("which row fails first: tables are read in the order of keys", |text, ours, theirs| {
        let of_row = |answer: &&Answer| answer.state().starts_with("22") || answer.state() == "21000";
        (text.contains(" from ") || text.starts_with("update"))
            && [ours, theirs].iter().all(of_row)
            && ours.columns == theirs.columns
            && ours.field('P') == theirs.field('P')
    }),
    (
        "whether columns come before a failing constant, which may be found as it is planned",
        |_, ours, theirs| {
            ours.state().starts_with("22")
                && ours.error == theirs.error
                && [ours, theirs].iter().all(|answer| answer.rows.is_empty())
                && (ours.columns.is_none() || theirs.columns.is_none())
        },
    ),
    ("which of values that sort as equal comes first, or stands for all", |_, ours, theirs| {
        let types: Vec<Oid> = ours.columns.iter().flatten().map(|column| Oid(column.2)).collect();
        let is_tie = |(ours, theirs): (&Vec<Value>, &Vec<Value>)| {
            let mut values = types.iter().zip(ours.iter().zip(theirs));
            values.all(|(oid, (ours, theirs))| ours == theirs || sort_as_equal(*oid, ours, theirs))
        };
        ours.state().is_empty()
            && Answer { rows: Vec::new(), ..ours.clone() } == Answer { rows: Vec::new(), ..theirs.clone() }
            && ours.rows.len() == theirs.rows.len()
            && ours.rows.iter().zip(&theirs.rows).all(is_tie)
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
    (
        "whether a row is still there that names a key: all rows' consequences are drawn first",
        |text, ours, theirs| {
            let of_parents = text.starts_with("update") || text.starts_with("delete");
            let is_named = theirs.state() == "23503" && theirs.field('D').contains("is still referenced");
            of_parents && is_named && ours.state().is_empty()
        },
    ),
    ("operators of types that are not there make a call ambiguous", |_, ours, theirs| {
        ours.state() == "42883" && theirs.state() == "42725" && ours.field('P') == theirs.field('P')
    }),
    ("an operator of `jsonb`, which is not there, fits a call", |_, ours, theirs| {
        let has_json = theirs.columns.iter().flatten().any(|column| Oid(column.2).display() == "jsonb");
        ours.state() == "42883" && theirs.state().is_empty() && has_json
    }),
    ("a deferred constraint that holds so far is no pending event", |_, ours, theirs| {
        ours.state().is_empty() && theirs.state() == "55006"
    }),
    ("of which of its two tables a deferred foreign key is told", |text, ours, theirs| {
        (text.starts_with("commit") || text.starts_with("set constraints"))
            && [ours, theirs].iter().all(|answer| answer.state() == "23503")
            && ours.field('n') == theirs.field('n')
    }),
    ("which of several duplicates is met first", |text, ours, theirs| {
        let makes_index = text.starts_with("create unique index") || text.starts_with("alter table");
        makes_index && [ours, theirs].iter().all(|answer| answer.state() == "23505")
    }),
];

/// Whether two values of a type that are written differently sort as equal.
fn sort_as_equal(oid: Oid, one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let style = Style::default();
    match (parse(oid, one, &style), parse(oid, other, &style)) {
        (Ok(one), Ok(other)) => compare(&one, &other).is_eq(),
        _ => false,
    }
}

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
