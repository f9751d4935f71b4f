//! Statements whose outcome has to be PostgreSQL's, to the letter: values, types, names, errors and
//! their places. They stand in `tests/statements`, one a line; `--` begins a comment.

mod beside;

use beside::{Postgres, connect, ours, prepared_ours, prepared_theirs, statements, theirs};

/// What differs, and why it may.
const DIFFERENCES: &[(&str, &str)] = &[
    ("select cbrt(27), ||/ 27", "3, of which the C library of PostgreSQL makes 3.0000000000000004"),
    ("select * from (select 1)", "the grammar is that of PostgreSQL 18, which has lost this error's place"),
    ("select 1 as a union select 2 as b order by b", "no hint that another query has such a column"),
    ("select unistr('\\0064at\\+0000E5')", "not there yet"),
];

/// Statements with parameters, whose types are inferred.
const PREPARED: &[&str] = &[
    "select $1",
    "select $1::int",
    "select $1 + 1",
    "select 1 + $1",
    "select $1 + 1.5",
    "select $1 || 'a'",
    "select $1 + $2",
    "select $1::text || $2",
    "select upper($1)",
    "select abs($1)",
    "select length($1)",
    "select $1 = 1, $1 = 2",
    "select $1 = 1, $1 = 'a'",
    "select $1::int = $1",
    "select $1 = $2",
    "select $2::int",
    "select $1 is null",
    "select $1::text is null",
    "select case when $1 then 1 else $2 end",
    "select coalesce($1, 1)",
    "select coalesce($1, $2)",
    "select $1 in (1, 2)",
    "select 1 in ($1, $2)",
    "select 1 = any($1)",
    "select $1 = any(array[1,2])",
    "select $1 between 1 and 10",
    "select $1 like 'a%'",
    "select array[$1, 1]",
    "select array[$1, $2]",
    "select x from generate_series(1, $1) x",
    "select x from generate_series(1, 3) x where x = $1",
    "select x from generate_series(1, 3) x limit $1 offset $2",
    "values ($1, 1), (2, $2)",
    "values ($1)",
    "select $1 union select 1",
    "select 1 union select $1",
    "select $1::date + 1",
    "select date '2024-01-01' + $1",
    "select now() - $1",
    "select now() > $1",
    "select interval '1 day' * $1",
    "select $1::numeric(10,2)",
    "select $1::varchar(5)",
    "select round($1, 2)",
    "select concat($1, 'a')",
    "select concat($1::text, 'a')",
    "select set_config('TimeZone', $1, false)",
    "select current_setting($1)",
    "select not $1",
    "select $1 and true",
    "select greatest($1, 2.5)",
    "select nullif($1, 1)",
    "select $1 is distinct from 1",
    "select - $1",
    "select (array[1,2])[$1]",
    "select exists(select 1 where $1)",
    "select (select $1)",
    "select (select $1::int)",
    "select * from (select $1 as a) s",
    "select * from (values ($1::int)) v(x) where x = $2",
    "select sum($1)",
    "select sum($1::int), max($2::text)",
    "select count(*) from generate_series(1, 3) x group by $1::int",
    "select $0",
    "select pg_typeof($1)",
    "select to_regtype($1)",
    "select extract(year from $1)",
    "select extract(year from $1::date)",
    "select $1 at time zone 'UTC'",
    "select make_date($1, $2, $3)",
    "select format('%s', $1)",
    "select string_to_array($1, ',')",
    "select array_position($1, 1)",
    "select array_append($1, 1)",
    "select array_append($1::int[], $2)",
    "select cardinality($1)",
    "select cardinality($1::int[])",
    "select unnest($1::int[])",
    "select $1 order by 1",
    "select 1 where $1",
    "select 1 where $1 > 5",
    "select substring($1 from $2)",
    "select substring($1 from $2 for $3)",
    "select position($1 in $2)",
    "select trim($1)",
    "select quote_literal($1)",
    "select ($1, 2) = (1, $2)",
    "select $1 ~ 'a'",
    "select $1 similar to 'a'",
    "select 'a' ilike $1",
    "select decode($1, 'hex')",
    "select $1::bytea",
    "select row($1, 1)",
    "select $1 || $2::int[]",
    "select $1 % 5",
    "select 5 / $1",
    "select power($1, 2)",
    "select 2 ^ $1",
    "select $1 collate \"C\"",
];

#[test]
fn statements_come_to_what_postgresql_makes_of_them() {
    let Some(server) = Postgres::start() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&server).await;
        let mut failures = Vec::new();
        let all = statements();
        for (file, statement) in &all {
            let theirs = theirs(&client, statement).await;
            let ours = ours(statement);
            let expected = DIFFERENCES.iter().any(|(known, _)| known == statement);
            if (ours == theirs) == expected {
                failures.push(format!("{file}: {statement}\n  PostgreSQL: {theirs}\n  here:       {ours}"));
            }
        }
        let count = all.len();
        assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
        assert!(count > 300, "{count} statements");
    });
}

#[test]
fn parameters_get_the_types_that_postgresql_gives_them() {
    let Some(server) = Postgres::start() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&server).await;
        let mut failures = Vec::new();
        for statement in PREPARED {
            let (theirs, ours) = (prepared_theirs(&client, statement).await, prepared_ours(statement));
            if ours != theirs {
                failures.push(format!("{statement}\n  PostgreSQL: {theirs:?}\n  here:       {ours:?}"));
            }
        }
        assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    });
}
