//! How long a statement holds its shard: the longest stretch between two pauses, of statements that
//! stay just below the bounds of their functions. Analysis counts as a part of the first stretch.
//!
//! `cargo run --release -p plimsoll-sql --example longest`

#[path = "../tests/beside/mod.rs"]
mod beside;

use std::time::{Duration, Instant};

use beside::watched;

/// Units between two pauses, as sessions have them.
const UNITS: u32 = 256;

const STATEMENTS: &[&str] = &[
    "select length(factorial(32177)::text)",
    "select length((repeat('9', 65000)::numeric * repeat('8', 65000)::numeric)::text)",
    "select length((repeat('9', 131000)::numeric * repeat('8', 131000)::numeric)::text)",
    "select length(div(repeat('9', 131000)::numeric, repeat('7', 26000)::numeric)::text)",
    "select length((repeat('9', 131000)::numeric % repeat('7', 26000)::numeric)::text)",
    "select length((repeat('9', 131000)::numeric / 3)::text)",
    "select gcd(repeat('9', 4990)::numeric, repeat('7', 4989)::numeric)",
    "select lcm(repeat('9', 4990)::numeric, repeat('7', 4989)::numeric)",
    "select sqrt(repeat('7', 14900)::numeric)",
    "select exp(2000::numeric)",
    "select exp(4400::numeric)",
    "select exp(('1.' || repeat('3', 1000))::numeric)",
    "select ln(('1.' || repeat('3', 1000))::numeric)",
    "select ln((repeat('3', 100000))::numeric)",
    "select log(('7.' || repeat('3', 900))::numeric, ('1234.' || repeat('3', 900))::numeric)",
    "select power(('7.' || repeat('3', 900))::numeric, 5000)",
    "select power(1.5, 330000)",
    "select power(2.5, 800.5)",
    "select power(('7.' || repeat('3', 500))::numeric, ('3.' || repeat('7', 500))::numeric)",
    "select trim_scale(('1.' || repeat('3', 3) || repeat('0', 16000))::numeric)",
    "select length(repeat('x', 8388608))",
    "select length(lpad('x', 8388608, 'ab'))",
    "select length(rpad('x', 2796200, '€'))",
    "select length(upper(repeat('x', 8388608)))",
    "select length(initcap(repeat('x', 8388608)))",
    "select length(reverse(repeat('x', 8388608)))",
    "select length(translate(repeat('xy', 4000000), 'xyz', 'abc'))",
    "select length(translate(repeat('xy', 4000000), repeat('ab', 2000000), 'abc'))",
    "select length(btrim(repeat('xy', 4000000), repeat('xy', 4000000)))",
    "select length(replace(repeat('xy', 4000000), 'x', 'ab'))",
    "select left(split_part(repeat('x,', 4000000), ',', 7000000), 5)",
    "select position(repeat('x', 4000000) || 'y' in repeat('x', 7000000))",
    "select left(overlay(repeat('x', 8000000) placing 'a' from 4000000), 5)",
    "select length(format('%s%L%I', repeat('x', 5000000), repeat('x', 5000000), repeat('x', 5000000)))",
    "select length(concat(repeat('x', 4000000), repeat('y', 4000000)))",
    "select md5(repeat('x', 8388608))",
    "select sha512(repeat('x', 8388608)::bytea)",
    "select length(encode(repeat('x', 4190000)::bytea, 'hex'))",
    "select length(encode(repeat('x', 4190000)::bytea, 'base64'))",
    "select length(encode(repeat('x', 4190000)::bytea, 'escape'))",
    "select length(decode(repeat('ab', 4190000), 'hex'))",
    "select length(decode(repeat('abcd', 2000000), 'base64'))",
    "select position(repeat('x', 4000000)::bytea || 'y' in repeat('x', 7000000)::bytea)",
    "select repeat('a', 5400) like '%' || repeat('a', 5400) || 'b'",
    "select repeat('a', 8000000) like '%b%c%'",
    "select repeat('ab', 4000000) ilike '%ba_b%c'",
    "select repeat('a', 8000000) ~ 'b'",
    "select repeat('ab', 1000000) ~ '(a|b)*c'",
    "select repeat('abcd', 5000) ~ '(a|b|c|d){500}e'",
    "select repeat('01', 10000) || '2' ~ '(0|1)*1(0|1){500}2$'",
    "select repeat('éx', 8000) ~ '\\w{50}\\d'",
    "select repeat('a', 30) ~ '(a*)*\\1b'",
    "select repeat('ab ', 3000) ~ '\\mab\\M.*\\mxy\\M'",
    "select length(regexp_replace(repeat('ab ', 300000), 'a', 'xy', 'g'))",
    "select length(regexp_replace(repeat('ab ', 10000), '\\mab\\M', 'xy', 'g'))",
    "select regexp_count(repeat('aaaaaaaaaac', 40), '(a*)*\\1b|c')",
    "select cardinality(regexp_split_to_array(repeat('a,', 300000), ','))",
    "select count(*) from regexp_matches(repeat('a,', 300000), '[a-z]', 'g')",
    "select cardinality(string_to_array(repeat('a,', 1000000), ','))",
    "select count(*) from string_to_table(repeat('a,', 1000000), ',')",
    "select cardinality(('{' || repeat('1,', 1000000) || '1}')::int[])",
    "select cardinality(('{' || repeat('ab,', 1000000) || '1}')::text[])",
    "select cardinality(array_fill(1, array[524288]))",
    "select length(array_fill(1, array[524288])::text)",
    "select length(array_to_string(array_fill(1, array[524288]), ','))",
    "select cardinality(array_fill(1, array[260000]) || array_fill(2, array[260000]))",
    "select cardinality(array_append(array_fill(1, array[524280]), 1))",
    "select array_fill(1, array[260000]) @> array_fill(2, array[260000])",
    "select array_fill('x'::text, array[225000]) && array_fill('y'::text, array[225000])",
    "select array_fill(1, array[260000]) = array_fill(1, array[260000])",
    "select cardinality(array_positions(array_fill(1, array[500000]), 1))",
    "select cardinality(array_replace(array_fill(1, array[500000]), 1, 2))",
    "select cardinality(array_fill('1'::text, array[450000])::int[])",
    "select cardinality((array_fill(1, array[1000, 1000]))[2:999][2:999])",
    "select 3 = any (array_fill(1, array[500000]))",
    "select length(to_char(12345.678, repeat('9', 8000)))",
    "select length(to_char(now(), repeat('FM', 4000)))",
    "select length(to_char(now(), repeat('YYYY', 2000)))",
    "select count(*) from (select x from generate_series(1, 300000) x order by x % 1000, x) s",
    "select length(string_agg(repeat('x', 100000), ',')) from generate_series(1, 600)",
    "select length(string_agg(repeat('x', 100000)::bytea, ',')) from generate_series(1, 300)",
    "select cardinality(array_agg(x)) from generate_series(1, 1000000) x",
    "select cardinality(array_agg(x order by x desc)) from generate_series(1, 300000) x",
    "select cardinality(array(select x from generate_series(1, 300000) x))",
    "select count(*) from generate_series(1, 300000) x where x in (select y from generate_series(300000, 300003) y)",
    "select sum(length(repeat('x', x))) from generate_series(1000000, 1001000) x",
    "select sum(length(power(1.5, x)::text)) from generate_series(20000, 20100) x",
    "select sum(length(factorial(x)::text)) from generate_series(20000, 20010) x",
    "select count(*) from generate_series(1, 2000) x where repeat('ab ', x) ~ 'b (a|b)+c'",
];

/// Statements of about this many bytes, which parsing and analysis go through at a stretch.
const TEXT_BYTES: usize = 1 << 20;

fn long_texts() -> Vec<String> {
    let list = |before: &str, item: &dyn Fn(usize) -> String, after: &str| {
        let mut text = before.to_owned();
        for number in 0.. {
            if text.len() >= TEXT_BYTES {
                break;
            }
            text.push_str(if number > 0 { "," } else { "" });
            text.push_str(&item(number));
        }
        text + after
    };
    vec![
        format!("select length('{}')", "x".repeat(TEXT_BYTES)),
        list("select 7 in (", &|number| number.to_string(), ")"),
        list("select x in (", &|number| number.to_string(), ") from generate_series(1, 2) x"),
        list("values ", &|number| format!("({number}, 'a')"), ""),
        list("select cardinality(array[", &|number| number.to_string(), "])"),
        list("select cardinality(array[", &|number| format!("{number}::text || 'a'"), "])"),
        list("select coalesce(", &|number| format!("nullif({number}, {number})"), ")"),
        list("select greatest(", &|number| format!("(select count({number}))"), ")"),
        format!("select 1 where {}true", "not false and ".repeat(TEXT_BYTES / 14)),
        format!("select case {} end", "when false then 1 ".repeat(TEXT_BYTES / 18)),
    ]
}

fn main() {
    for text in STATEMENTS.iter().map(|text| (*text).to_owned()).chain(long_texts()) {
        let text = text.as_str();
        let (begun, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
        let outcome = watched(text, UNITS, &mut || {
            longest = longest.max(last.elapsed());
            last = Instant::now();
        });
        longest = longest.max(last.elapsed());
        let shown: String = outcome.to_string().chars().take(100).collect();
        let (total, text) = (begun.elapsed(), text.chars().take(150).collect::<String>());
        let (longest, total) = (longest.as_millis(), total.as_millis());
        println!("{longest:>7} ms, {total:>7} ms in all: {text}\n      {shown}");
    }
}
