//! Random expressions: typed often enough to have a value, untyped often enough to be refused.

use std::fmt;

/// An expression as text with holes for its parts.
#[derive(Clone)]
pub struct Tree {
    template: &'static str,
    parts: Vec<Tree>,
}

impl Tree {
    /// What it is made of.
    pub fn parts(&self) -> &[Tree] {
        &self.parts
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.parts.iter();
        for (place, text) in self.template.split('?').enumerate() {
            if place > 0
                && let Some(part) = parts.next()
            {
                write!(f, "{part}")?;
            }
            f.write_str(text)?;
        }
        Ok(())
    }
}

/// Numbers from a seed (splitmix64).
pub struct Generator(u64);

/// Literals by kind.
const LITERALS: &[(&str, &[&str])] = &[
    (
        "i",
        &[
            "0",
            "1",
            "-1",
            "2",
            "7",
            "100",
            "2147483647",
            "-2147483648",
            "32767::smallint",
            "5::smallint",
            "9223372036854775807",
            "3::bigint",
            "null::int",
            "'12'::int",
        ],
    ),
    (
        "n",
        &[
            "0.0",
            "1.5",
            "-2.50",
            "0.001",
            "123456789.987654321",
            "1e20",
            "99999999999999999999999999.5",
            "'NaN'::numeric",
            "'Infinity'::numeric",
            "1e-10",
            "3::numeric(10,3)",
            "null::numeric",
            "1000000",
        ],
    ),
    (
        "f",
        &[
            "0::float8",
            "1.5::float8",
            "-0.1::float8",
            "1e300::float8",
            "1e-300::float8",
            "'NaN'::float8",
            "'-Infinity'::float8",
            "0.1::float4",
            "16777217::float4",
            "null::float8",
            "3::float8",
        ],
    ),
    (
        "t",
        &[
            "''::text",
            "'abc'::text",
            "'Hello World'",
            "'a,b,c'",
            "'日本語'::text",
            "'  x '::text",
            "'12'",
            "'abc'::varchar(5)",
            "'ab'::char(4)",
            "null::text",
            "'it''s'",
            "'foo'::name",
            "'%a_c%'",
        ],
    ),
    ("b", &["true", "false", "null::bool", "'t'::bool"]),
    (
        "d",
        &[
            "date '2024-02-29'",
            "date '2000-01-01'",
            "date '1999-12-31'",
            "'infinity'::date",
            "date '0044-03-15 BC'",
            "null::date",
        ],
    ),
    (
        "s",
        &[
            "timestamp '2024-02-29 12:34:56.789'",
            "timestamp '2000-01-01'",
            "timestamp '1969-07-20 20:17:40'",
            "timestamptz '2024-07-01 12:00:00+02'",
            "'-infinity'::timestamp",
            "null::timestamp",
        ],
    ),
    (
        "v",
        &[
            "interval '1 day'",
            "interval '1 month 2 days 03:04:05.678'",
            "interval '-1 year 3 hours'",
            "interval '0'",
            "interval '100 days'",
            "null::interval",
            "interval '1.5 weeks'",
        ],
    ),
    ("c", &["time '12:34:56.7'", "time '00:00'", "time '24:00'"]),
    (
        "a",
        &[
            "array[1,2,3]",
            "'{}'::int[]",
            "array[1,null,3]",
            "array[[1,2],[3,4]]",
            "null::int[]",
            "'[0:1]={5,6}'::int[]",
        ],
    ),
    ("y", &["'\\x616263'::bytea", "''::bytea", "'\\x00ff'::bytea"]),
    ("u", &["'a'", "'1'", "'2024-01-01'", "null", "'1.5'", "'true'", "''"]),
];

/// What makes a value of a kind out of others: the kind of each hole stands before a colon.
const RULES: &[(&str, &[(&str, &str)])] = &[
    (
        "i",
        &[
            ("ii", "(? + ?)"),
            ("ii", "(? - ?)"),
            ("ii", "(? * ?)"),
            ("ii", "(? / ?)"),
            ("ii", "(? % ?)"),
            ("i", "(- ?)"),
            ("i", "abs(?)"),
            ("t", "length(?)"),
            ("tt", "position(? in ?)"),
            ("ii", "(? & ?)"),
            ("ii", "(? | ?)"),
            ("n", "(?)::int"),
            ("f", "(?)::bigint"),
            ("dd", "(? - ?)"),
            ("a", "cardinality(?)"),
            ("a", "array_length(?, 1)"),
            ("ai", "(?)[?]"),
            ("t", "ascii(?)"),
            ("y", "length(?)"),
            ("ii", "gcd(?, ?)"),
            ("t", "octet_length(?)"),
            ("bii", "case when ? then ? else ? end"),
            ("ii", "coalesce(?, ?)"),
            ("ii", "nullif(?, ?)"),
            ("b", "(?)::int"),
            ("ii", "greatest(?, ?)"),
            ("i", "(?)::smallint"),
            ("i", "(~ ?)"),
            ("ai", "array_position(?, ?)"),
            ("ui", "(? + ?)"),
        ],
    ),
    (
        "n",
        &[
            ("nn", "(? + ?)"),
            ("nn", "(? - ?)"),
            ("nn", "(? * ?)"),
            ("nn", "(? / ?)"),
            ("nn", "(? % ?)"),
            ("n", "round(?)"),
            ("ni", "round(?, ? % 20)"),
            ("ni", "trunc(?, ? % 20)"),
            ("n", "ceil(?)"),
            ("n", "floor(?)"),
            ("n", "abs(?)"),
            ("n", "sign(?)"),
            ("i", "(?)::numeric"),
            ("f", "(?)::numeric"),
            ("in", "(? + ?)"),
            ("n", "sqrt(abs(?))"),
            ("s", "extract(epoch from ?)"),
            ("v", "extract(second from ?)"),
            ("n", "trim_scale(?)"),
            ("nn", "div(?, ?)"),
            ("n", "(?)::numeric(20,4)"),
            ("nn", "least(?, ?)"),
            ("d", "extract(week from ?)"),
            ("n", "(- ?)"),
        ],
    ),
    (
        "f",
        &[
            ("ff", "(? + ?)"),
            ("ff", "(? - ?)"),
            ("ff", "(? * ?)"),
            ("ff", "(? / ?)"),
            ("f", "round(?)"),
            ("f", "floor(?)"),
            ("n", "(?)::float8"),
            ("i", "(?)::float4"),
            ("f", "sqrt(?)"),
            ("f", "abs(?)"),
            ("f", "sign(?)"),
            ("f", "trunc(?)"),
            ("s", "date_part('hour', ?)"),
            ("fn", "(? * ?)"),
            ("f", "(?)::float4"),
        ],
    ),
    (
        "t",
        &[
            ("tt", "(? || ?)"),
            ("t", "upper(?)"),
            ("t", "lower(?)"),
            ("ti", "substring(? from ? % 10)"),
            ("tii", "substring(? from ? % 10 for ? % 10)"),
            ("t", "trim(?)"),
            ("t", "reverse(?)"),
            ("ttt", "replace(?, ?, ?)"),
            ("ti", "left(?, ? % 10)"),
            ("ti", "right(?, ? % 10)"),
            ("tit", "lpad(?, ? % 20, ?)"),
            ("tti", "split_part(?, ?, ? % 5)"),
            ("i", "(?)::text"),
            ("n", "(?)::text"),
            ("f", "(?)::text"),
            ("b", "(?)::text"),
            ("d", "(?)::text"),
            ("s", "(?)::text"),
            ("v", "(?)::text"),
            ("t", "initcap(?)"),
            ("t", "md5(?)"),
            ("t", "quote_literal(?)"),
            ("t", "quote_ident(?)"),
            ("ttt", "translate(?, ?, ?)"),
            ("ti", "(? || ?)"),
            ("at", "array_to_string(?, ?)"),
            ("tt", "concat(?, ?)"),
            ("t", "(?)::varchar(3)"),
            ("t", "(?)::char(5)"),
            ("y", "encode(?, 'hex')"),
            ("ti", "repeat(?, ? % 5)"),
            ("btt", "case when ? then ? else ? end"),
            ("tin", "concat_ws(?, ?, ?)"),
            ("st", "to_char(?, 'YYYY-MM-DD HH24:MI:SS')"),
            ("tt", "coalesce(?, ?)"),
            ("tut", "greatest(?, ?, ?)"),
            ("tt", "btrim(?, ?)"),
            ("a", "(?)::text"),
        ],
    ),
    (
        "b",
        &[
            ("ii", "(? = ?)"),
            ("in", "(? < ?)"),
            ("nf", "(? >= ?)"),
            ("tt", "(? < ?)"),
            ("bb", "(? and ?)"),
            ("bb", "(? or ?)"),
            ("b", "(not ?)"),
            ("i", "(? is null)"),
            ("tt", "(? like ?)"),
            ("ds", "(? < ?)"),
            ("vv", "(? > ?)"),
            ("iii", "(? between ? and ?)"),
            ("iin", "(? in (?, ?))"),
            ("ia", "(? = any(?))"),
            ("aa", "(? @> ?)"),
            ("aa", "(? = ?)"),
            ("ii", "(? is distinct from ?)"),
            ("b", "(? is true)"),
            ("ff", "(? <> ?)"),
            ("iu", "(? = ?)"),
            ("du", "(? < ?)"),
            ("yy", "(? < ?)"),
            ("cc", "(? < ?)"),
            ("tt", "starts_with(?, ?)"),
            ("ia", "(? < all(?))"),
            ("s", "isfinite(?)"),
            ("uu", "(? = ?)"),
            ("aa", "(? < ?)"),
        ],
    ),
    (
        "d",
        &[
            ("di", "(? + ? % 100000)"),
            ("di", "(? - ? % 100000)"),
            ("s", "(?)::date"),
            ("iii", "make_date(? % 3000, ? % 13, ? % 32)"),
        ],
    ),
    (
        "s",
        &[
            ("sv", "(? + ?)"),
            ("sv", "(? - ?)"),
            ("dv", "(? + ?)"),
            ("dc", "(? + ?)"),
            ("s", "date_trunc('month', ?)"),
            ("s", "date_trunc('week', ?)"),
            ("s", "date_trunc('hour', ?)"),
            ("d", "(?)::timestamp"),
            ("s", "(?)::timestamptz"),
            ("s", "(? at time zone 'America/New_York')"),
            ("s", "(?)::timestamp(2)"),
            ("f", "to_timestamp(?)"),
            ("s", "date_trunc('century', ?)"),
        ],
    ),
    (
        "v",
        &[
            ("vv", "(? + ?)"),
            ("vv", "(? - ?)"),
            ("vf", "(? * ?)"),
            ("vf", "(? / ?)"),
            ("ss", "(? - ?)"),
            ("cc", "(? - ?)"),
            ("ss", "age(?, ?)"),
            ("v", "justify_interval(?)"),
            ("v", "justify_days(?)"),
            ("v", "(- ?)"),
            ("v", "date_trunc('day', ?)"),
            ("iiii", "make_interval(? % 1000, ? % 1000, 0, ? % 1000, ? % 1000)"),
            ("vi", "(? * ?)"),
        ],
    ),
    ("c", &[("cv", "(? + ?)"), ("s", "(?)::time"), ("cv", "(? - ?)"), ("v", "(?)::time")]),
    (
        "a",
        &[
            ("ai", "(? || ?)"),
            ("aa", "(? || ?)"),
            ("ii", "array[?, ?]"),
            ("ai", "array_remove(?, ?)"),
            ("ai", "array_append(?, ?)"),
            ("aii", "(?)[? % 5:? % 5]"),
            ("aii", "array_replace(?, ?, ?)"),
            ("t", "string_to_array(?, ',')"),
            ("a", "(?)::bigint[]"),
        ],
    ),
    ("y", &[("yy", "(? || ?)"), ("yi", "substring(? from ? % 5)"), ("t", "convert_to(?, 'UTF8')")]),
    (
        "u",
        &[
            ("tt", "(? || ?)"),
            ("uu", "coalesce(?, ?)"),
            ("uiu", "(array[?, ?])[1] + ?"),
            ("ui", "greatest(?, ?)"),
            ("uu", "nullif(?, ?)"),
            ("ud", "(? - ?)"),
            ("uu", "concat(?, ?)"),
            ("un", "(? * ?)"),
            ("us", "(? + ?)"),
            ("iv", "(? + ?)"),
            ("tn", "(? || ?)"),
            ("bi", "(? + ?)"),
            ("ti", "(? + ?)"),
        ],
    ),
];

impl Generator {
    /// A generator that always makes the same.
    pub fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// An expression.
    pub fn tree(&mut self) -> Tree {
        let kind = RULES[self.below(RULES.len())].0;
        let depth = 1 + self.below(4);
        self.of(kind, depth)
    }

    fn of(&mut self, kind: &str, depth: usize) -> Tree {
        let pick = |lists: &[(&'static str, usize)]| lists.iter().position(|(known, _)| *known == kind);
        if depth == 0 || self.below(6) == 0 {
            let lists: Vec<(&str, usize)> = LITERALS.iter().map(|(kind, list)| (*kind, list.len())).collect();
            let list = LITERALS[pick(&lists).expect("a kind")].1;
            return Tree { template: list[self.below(list.len())], parts: Vec::new() };
        }
        let lists: Vec<(&str, usize)> = RULES.iter().map(|(kind, list)| (*kind, list.len())).collect();
        let rules = RULES[pick(&lists).expect("a kind")].1;
        let (holes, template) = rules[self.below(rules.len())];
        let holes = &holes[..template.matches('?').count()];
        let parts = holes.chars().map(|hole| self.of(hole.encode_utf8(&mut [0; 4]), depth - 1)).collect();
        Tree { template, parts }
    }
}
