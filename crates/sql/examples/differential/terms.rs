//! Random expressions over the columns that are in sight.
//!
//! Values that are equal look the same, so that it does not matter which of them `DISTINCT`, a
//! group or a union keeps: a `numeric` has two digits, an interval whole days. And few fail, since
//! which of two rows is computed first is nowhere said.

use crate::generate::Generator;
use crate::part::{Part, word};
use crate::parts;
use crate::queries::Queries;

/// A relation in sight: its name, and the names and kinds of its columns.
#[derive(Clone)]
pub struct Relation {
    /// The name.
    pub name: String,
    /// Names and kinds of its columns.
    pub columns: Vec<(String, char)>,
}

/// Literals by kind.
const LITERALS: &[(char, &[&str])] = &[
    ('i', &["0", "1", "2", "3", "5", "7", "10", "13", "21", "-1", "29", "null", "'4'", "6::bigint"]),
    ('n', &["0.50", "1.25", "10.00", "-2.75", "99.99", "0.00", "null", "'3.50'", "7.25::numeric(8,2)"]),
    ('t', &["'a'", "'b'", "'abc'", "'B'", "''", "'x y'", "'bad'", "'none'", "null", "'zz'::text", "'é'"]),
    ('b', &["true", "false", "null", "true"]),
    ('d', &["date '2024-02-29'", "'2024-01-01'", "date '1999-12-31'", "'2023-07-15'", "null"]),
    ('s', &["timestamp '2024-02-29 12:30'", "'2024-01-01'", "timestamp '2001-09-09 01:46:40'", "null"]),
    ('z', &["timestamptz '2024-02-29 12:30+00'", "'2024-01-01 00:00+02'", "null"]),
    ('f', &["0.5", "1.5", "-2", "100", "0.25", "null", "3::float8", "0.5::real"]),
    ('v', &["interval '1 day'", "'2 days'", "interval '-3 days'", "null", "interval '10 days'"]),
    ('a', &["array[1,2,3]", "'{}'", "'{4,null}'", "null", "array[7]", "'{1,2}'::int[]"]),
    (
        'u',
        &[
            "'00000000-0000-0000-0000-000000000001'",
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
            "null",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        ],
    ),
    ('y', &["'\\x6162'", "''::bytea", "'\\x00ff'::bytea", "null"]),
];

/// What makes a value of a kind out of others, each `?` being one of the kinds that are listed.
const RULES: &[(char, &[(&str, &str)])] = &[
    (
        'i',
        &[
            ("ii", "? + ?"),
            ("ii", "? - ?"),
            ("ii", "(? * ?)"),
            ("i", "? / 2"),
            ("i", "? % 5"),
            ("ii", "? / nullif(?, 0)"),
            ("i", "abs(?)"),
            ("i", "(- ?)"),
            ("t", "length(?)"),
            ("ii", "coalesce(?, ?)"),
            ("ii", "nullif(?, ?)"),
            ("ii", "greatest(?, ?)"),
            ("bii", "case when ? then ? else ? end"),
            ("bi", "case when ? then ? end"),
            ("iiii", "case ? when ? then ? else ? end"),
            ("n", "?::integer"),
            ("n", "floor(?)::bigint"),
            ("dd", "(?::date - ?::date)"),
            ("d", "extract(year from ?::date)::integer"),
            ("s", "extract(dow from ?::timestamp)::integer"),
            ("a", "cardinality(?)"),
            ("ai", "(?::int[])[?]"),
            ("b", "?::integer"),
            ("i", "?::smallint"),
            ("i", "?::bigint"),
            ("tt", "position(? in ?)"),
            ("tt", "strpos(?, ?)"),
            ("i", "sign(?)::int"),
            ("ii", "mod(?, nullif(?, 0))"),
            ("t", "octet_length(?)"),
            ("ii", "(? & ?)"),
        ],
    ),
    (
        'n',
        &[
            ("nn", "? + ?"),
            ("nn", "? - ?"),
            ("nn", "round(? * ?, 2)"),
            ("nn", "round(? / nullif(?, 0), 2)"),
            ("n", "abs(?)"),
            ("n", "(- ?)"),
            ("n", "round(?, 1)::numeric(12,2)"),
            ("i", "?::numeric(12,2)"),
            ("nn", "coalesce(?, ?)"),
            ("nn", "least(?, ?)"),
            ("ni", "(? + ?)"),
            ("bnn", "case when ? then ? else ? end"),
            ("f", "?::numeric(12,2)"),
            ("n", "?::numeric"),
        ],
    ),
    (
        't',
        &[
            ("tt", "? || ?"),
            ("t", "upper(?)"),
            ("t", "lower(?)"),
            ("t", "substr(?, 2)"),
            ("ti", "left(?, ?)"),
            ("ti", "right(?, ?)"),
            ("t", "trim(?)"),
            ("ttt", "replace(?, ?, ?)"),
            ("tt", "coalesce(?, ?)"),
            ("tt", "concat(?, ?)"),
            ("i", "?::text"),
            ("n", "?::text"),
            ("b", "?::text"),
            ("d", "?::text"),
            ("btt", "case when ? then ? else ? end"),
            ("t", "lpad(?, 5, '.')"),
            ("t", "reverse(?)"),
            ("ti", "? || ?"),
            ("d", "to_char(?::date, 'DD Mon YYYY')"),
            ("s", "to_char(?::timestamp, 'HH24:MI')"),
            ("i", "to_char(?, '0999')"),
            ("tt", "concat_ws('-', ?, ?)"),
            ("tt", "greatest(?, ?)"),
            ("t", "initcap(?)"),
            ("t", "substring(? from 1 for 2)"),
            ("t", "split_part(?, ' ', 1)"),
            ("t", "md5(?)"),
            ("t", "?::char(7)"),
            ("t", "?::text"),
            ("t", "?::varchar"),
            ("tt", "greatest(?::char(3), ?::bpchar)"),
            ("a", "array_to_string(?, ',')"),
        ],
    ),
    (
        'b',
        &[
            ("ii", "? = ?"),
            ("ii", "? < ?"),
            ("ii", "? >= ?"),
            ("ii", "? <> ?"),
            ("nn", "? > ?"),
            ("in", "? <= ?"),
            ("tt", "? = ?"),
            ("tt", "? < ?"),
            ("t", "? like 'a%'"),
            ("t", "? ilike '%B%'"),
            ("t", "? ~ '^[a-c]'"),
            ("bb", "(? and ?)"),
            ("bb", "(? or ?)"),
            ("bb", "(? and ?)"),
            ("bb", "(? or ?)"),
            ("b", "(not ?)"),
            ("i", "? is null"),
            ("t", "? is not null"),
            ("n", "? is null"),
            ("b", "? is true"),
            ("b", "? is not false"),
            ("iii", "? between ? and ?"),
            ("iiii", "? in (?, ?, ?)"),
            ("ttt", "? not in (?, ?)"),
            ("ia", "? = any(?)"),
            ("ii", "? is distinct from ?"),
            ("tt", "? is not distinct from ?"),
            ("dd", "? < ?"),
            ("dd", "? = ?"),
            ("ss", "? >= ?"),
            ("ds", "?::date < ?::timestamp"),
            ("zz", "? < ?"),
            ("sz", "?::timestamp <= ?::timestamptz"),
            ("ff", "? < ?"),
            ("fi", "? >= ?"),
            ("vv", "? > ?"),
            ("aa", "? = ?"),
            ("aa", "? @> ?"),
            ("uu", "? = ?"),
            ("yy", "? < ?"),
            ("itit", "(?, ?) = (?, ?)"),
            ("inin", "(?, ?) < (?, ?)"),
            ("indin", "(?, ?, ?) in ((?, ?, '2024-02-29'), (1, 2, null))"),
            ("ttit", "(?, ?::char(4)) not in ((?, ?), ('a', 'b '))"),
            ("dndn", "(?, ?) between (?, ?) and ('2025-01-01', 3)"),
            ("itit", "(?, ?) is distinct from (?, ?)"),
            ("itnitn", "(?, ?, ?) >= (?, ?, ?)"),
            ("it", "(?, ?) is distinct from null"),
            ("itit", "(?, ?) < any (values (?, ?), (1, 'b'))"),
            ("bt", "?::bpchar <> ?::char(5)"),
            ("tt", "?::varchar(3) in (?::char(4), 'b  ')"),
            ("tt", "?::bpchar = ?::char(6)"),
            ("tt", "(?::char(3), 1) <= (?::bpchar, 1)"),
            ("tt", "array[?]::bpchar[] = array[?]::char(9)[]"),
            ("bb", "? = ?"),
            ("tt", "starts_with(?, ?)"),
        ],
    ),
    (
        'd',
        &[
            ("di", "(?::date + ?::integer)"),
            ("s", "?::date"),
            ("dd", "coalesce(?, ?)"),
            ("dd", "greatest(?, ?)"),
        ],
    ),
    (
        's',
        &[
            ("sv", "(?::timestamp + ?)"),
            ("d", "?::timestamp"),
            ("s", "date_trunc('month', ?::timestamp)"),
            ("dv", "(?::date - ?::interval)"),
            ("z", "(?::timestamptz at time zone 'UTC')"),
            ("ss", "coalesce(?, ?)"),
        ],
    ),
    ('z', &[("zv", "(?::timestamptz + ?)"), ("s", "?::timestamptz"), ("zz", "least(?, ?)")]),
    (
        'f',
        &[("ff", "? + ?"), ("ff", "(? - ?)"), ("i", "?::float8"), ("f", "abs(?)"), ("ff", "coalesce(?, ?)")],
    ),
    ('v', &[("dd", "age(?::date, ?::date) - age(?::date, ?::date)"), ("vi", "(? * ?)"), ("vv", "(? + ?)")]),
    (
        'a',
        &[("ai", "(? || ?)"), ("ii", "array[?, ?]"), ("aa", "coalesce(?, ?)"), ("ai", "array_remove(?, ?)")],
    ),
    ('u', &[("uu", "coalesce(?, ?)")]),
    ('y', &[("yy", "(? || ?)")]),
];

/// Aggregates: the kind of what comes out, of what goes in, and the call.
pub const AGGREGATES: &[(char, char, &str)] = &[
    ('i', 'i', "count(?)"),
    ('i', 'i', "count(*)"),
    ('i', 'i', "sum(?)::bigint"),
    ('i', 'i', "min(?)"),
    ('i', 'i', "max(?)"),
    ('i', 't', "count(distinct ?)"),
    ('i', 'b', "count(*) filter (where ?)"),
    ('n', 'n', "sum(?)"),
    ('n', 'n', "round(avg(?), 2)"),
    ('n', 'i', "round(avg(?), 2)"),
    ('n', 'n', "max(?)"),
    ('t', 't', "min(?)"),
    ('t', 't', "max(?)"),
    ('t', 't', "string_agg(?, ',' order by ?)"),
    ('b', 'b', "bool_and(?)"),
    ('b', 'b', "bool_or(?)"),
    ('d', 'd', "max(?)"),
    ('s', 's', "min(?)"),
    ('z', 'z', "max(?)"),
    ('f', 'f', "sum(?)"),
    ('v', 'v', "max(?)"),
    ('a', 'i', "array_agg(?::int order by ?)"),
];

/// An element of what is listed for a kind.
fn of<T>(lists: &'static [(char, &'static [T])], kind: char) -> &'static [T] {
    lists.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, list)| list)
}

/// A literal of a kind.
pub fn literal(random: &mut Generator, kind: char) -> Part {
    let list = of(LITERALS, kind);
    Part::Of(kind, Box::new(word(list[random.below(list.len())])))
}

impl Queries<'_> {
    /// A column in sight of a kind; rarely of any.
    pub fn column(&mut self, scope: &[Vec<Relation>], kind: char) -> Option<Part> {
        let wrong = self.random.below(400) == 0;
        let mut all = Vec::new();
        for (depth, level) in scope.iter().rev().enumerate() {
            for relation in level {
                for (name, found) in &relation.columns {
                    if *found == kind || wrong {
                        all.push((depth, level.len(), relation, name));
                    }
                }
            }
            // Rather one that is near.
            if !all.is_empty() && self.random.below(4) > 0 {
                break;
            }
        }
        if all.is_empty() {
            return None;
        }
        let (depth, relations, relation, name) = all[self.random.below(all.len())];
        let bare = depth == 0 && relations == 1 && self.random.below(3) > 0;
        let text = if bare || self.random.below(300) == 0 {
            name.clone()
        } else {
            format!("{}.{name}", relation.name)
        };
        Some(Part::Of(kind, Box::new(word(text))))
    }

    /// An expression of a kind.
    pub fn term(&mut self, scope: &[Vec<Relation>], kind: char, depth: usize) -> Part {
        let pick = self.random.below(10);
        if depth == 0 || pick < 3 {
            let column = if pick < 8 { self.column(scope, kind) } else { None };
            return column.unwrap_or_else(|| literal(self.random, kind));
        }
        if pick == 9
            && let Some(part) = self.sublink(scope, kind, depth - 1)
        {
            return Part::Of(kind, Box::new(part));
        }
        let rules = of(RULES, kind);
        let (holes, template) = rules[self.random.below(rules.len())];
        self.filled(scope, kind, holes, template, depth - 1)
    }

    /// A template with expressions in its holes.
    pub fn filled(
        &mut self,
        scope: &[Vec<Relation>],
        kind: char,
        holes: &str,
        template: &str,
        depth: usize,
    ) -> Part {
        let mut holes = holes.chars();
        let mut last = None;
        let mut parts = Vec::new();
        for (place, text) in template.split('?').enumerate() {
            if place > 0 {
                // An aggregate's order is that of what it takes.
                let part = match (holes.next(), last.take()) {
                    (Some(hole), _) => self.term(scope, hole, depth),
                    (None, Some(part)) => part,
                    (None, None) => word("null"),
                };
                last = Some(part.clone());
                parts.push(part);
            }
            parts.push(word(text));
        }
        let first = template.chars().next().is_some_and(|first| first == '?');
        let inner = Part::All(parts);
        Part::Of(kind, Box::new(if first { parts!["(", inner, ")"] } else { inner }))
    }
}
