//! All functions: identifier, name, argument types, result, and what stands behind them.
//!
//! The lines are `pg_proc` as PostgreSQL 15 has it. A line says `strict` if a NULL among the
//! arguments makes the result NULL, `variadic` if the last argument may come as many, and ends with
//! the values of arguments that may be left out.

use super::Body::{Aggregate, Plain, Set};
use super::aggregates::Kind;
use super::{
    Function, Volatility, arrays, bytes, composing, convert, dates, floats, formats, integers, moments,
    numerics, order, parts, patterns, regexes, sets, strings, system,
};
use crate::types::{Datum, Oid};

macro_rules! functions {
    ($group:ident: $($oid:literal $name:literal ($($argument:ident)*) $result:ident,
        $strict:ident $volatility:ident $($variadic:ident)?, $body:expr $(, $optional:expr)?;)*) => {
        static $group: &[Function] = &[$(Function {
            oid: $oid,
            name: $name,
            arguments: &[$(Oid::$argument),*],
            result: Oid::$result,
            strict: functions!(@is $strict),
            volatility: functions!(@is $volatility),
            variadic: false $(|| functions!(@is $variadic))?,
            optional: functions!(@optional $($optional)?),
            body: $body,
        }),*];
    };
    (@optional) => { &[] };
    (@optional $values:expr) => { &$values };
    (@is strict) => { true };
    (@is nullable) => { false };
    (@is variadic) => { true };
    (@is immutable) => { Volatility::Immutable };
    (@is stable) => { Volatility::Stable };
    (@is volatile) => { Volatility::Volatile };
}

/// All functions, in no order.
pub fn all() -> impl Iterator<Item = &'static Function> {
    [
        ORDER, INTEGERS, FLOATS, NUMERICS, CONVERT, STRINGS, BYTES, PATTERNS, DATES, FORMATS, ARRAYS, SETS,
        SYSTEM, AGGREGATES,
    ]
    .into_iter()
    .flatten()
}

// Comparisons.
#[rustfmt::skip]
functions! { ORDER:
    744 "array_eq" (ANY_ARRAY ANY_ARRAY) BOOL, strict immutable, Plain(order::eq);
    396 "array_ge" (ANY_ARRAY ANY_ARRAY) BOOL, strict immutable, Plain(order::ge);
    392 "array_gt" (ANY_ARRAY ANY_ARRAY) BOOL, strict immutable, Plain(order::gt);
    515 "array_larger" (ANY_ARRAY ANY_ARRAY) ANY_ARRAY, strict immutable, Plain(order::larger);
    393 "array_le" (ANY_ARRAY ANY_ARRAY) BOOL, strict immutable, Plain(order::le);
    391 "array_lt" (ANY_ARRAY ANY_ARRAY) BOOL, strict immutable, Plain(order::lt);
    390 "array_ne" (ANY_ARRAY ANY_ARRAY) BOOL, strict immutable, Plain(order::ne);
    516 "array_smaller" (ANY_ARRAY ANY_ARRAY) ANY_ARRAY, strict immutable, Plain(order::smaller);
    60 "booleq" (BOOL BOOL) BOOL, strict immutable, Plain(order::eq);
    1692 "boolge" (BOOL BOOL) BOOL, strict immutable, Plain(order::ge);
    57 "boolgt" (BOOL BOOL) BOOL, strict immutable, Plain(order::gt);
    1691 "boolle" (BOOL BOOL) BOOL, strict immutable, Plain(order::le);
    56 "boollt" (BOOL BOOL) BOOL, strict immutable, Plain(order::lt);
    84 "boolne" (BOOL BOOL) BOOL, strict immutable, Plain(order::ne);
    1063 "bpchar_larger" (BPCHAR BPCHAR) BPCHAR, strict immutable, Plain(order::larger);
    2177 "bpchar_pattern_ge" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::ge);
    2178 "bpchar_pattern_gt" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::gt);
    2175 "bpchar_pattern_le" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::le);
    2174 "bpchar_pattern_lt" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::lt);
    1064 "bpchar_smaller" (BPCHAR BPCHAR) BPCHAR, strict immutable, Plain(order::smaller);
    1048 "bpchareq" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::eq);
    1052 "bpcharge" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::ge);
    1051 "bpchargt" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::gt);
    1050 "bpcharle" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::le);
    1049 "bpcharlt" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::lt);
    1053 "bpcharne" (BPCHAR BPCHAR) BOOL, strict immutable, Plain(order::ne);
    1948 "byteaeq" (BYTEA BYTEA) BOOL, strict immutable, Plain(order::eq);
    1952 "byteage" (BYTEA BYTEA) BOOL, strict immutable, Plain(order::ge);
    1951 "byteagt" (BYTEA BYTEA) BOOL, strict immutable, Plain(order::gt);
    1950 "byteale" (BYTEA BYTEA) BOOL, strict immutable, Plain(order::le);
    1949 "bytealt" (BYTEA BYTEA) BOOL, strict immutable, Plain(order::lt);
    1953 "byteane" (BYTEA BYTEA) BOOL, strict immutable, Plain(order::ne);
    61 "chareq" (CHAR CHAR) BOOL, strict immutable, Plain(order::eq);
    74 "charge" (CHAR CHAR) BOOL, strict immutable, Plain(order::ge);
    73 "chargt" (CHAR CHAR) BOOL, strict immutable, Plain(order::gt);
    72 "charle" (CHAR CHAR) BOOL, strict immutable, Plain(order::le);
    1246 "charlt" (CHAR CHAR) BOOL, strict immutable, Plain(order::lt);
    70 "charne" (CHAR CHAR) BOOL, strict immutable, Plain(order::ne);
    1086 "date_eq" (DATE DATE) BOOL, strict immutable, Plain(order::eq);
    2340 "date_eq_timestamp" (DATE TIMESTAMP) BOOL, strict immutable, Plain(order::eq);
    2353 "date_eq_timestamptz" (DATE TIMESTAMPTZ) BOOL, strict stable, Plain(order::eq);
    1090 "date_ge" (DATE DATE) BOOL, strict immutable, Plain(order::ge);
    2342 "date_ge_timestamp" (DATE TIMESTAMP) BOOL, strict immutable, Plain(order::ge);
    2355 "date_ge_timestamptz" (DATE TIMESTAMPTZ) BOOL, strict stable, Plain(order::ge);
    1089 "date_gt" (DATE DATE) BOOL, strict immutable, Plain(order::gt);
    2341 "date_gt_timestamp" (DATE TIMESTAMP) BOOL, strict immutable, Plain(order::gt);
    2354 "date_gt_timestamptz" (DATE TIMESTAMPTZ) BOOL, strict stable, Plain(order::gt);
    1138 "date_larger" (DATE DATE) DATE, strict immutable, Plain(order::larger);
    1088 "date_le" (DATE DATE) BOOL, strict immutable, Plain(order::le);
    2339 "date_le_timestamp" (DATE TIMESTAMP) BOOL, strict immutable, Plain(order::le);
    2352 "date_le_timestamptz" (DATE TIMESTAMPTZ) BOOL, strict stable, Plain(order::le);
    1087 "date_lt" (DATE DATE) BOOL, strict immutable, Plain(order::lt);
    2338 "date_lt_timestamp" (DATE TIMESTAMP) BOOL, strict immutable, Plain(order::lt);
    2351 "date_lt_timestamptz" (DATE TIMESTAMPTZ) BOOL, strict stable, Plain(order::lt);
    1091 "date_ne" (DATE DATE) BOOL, strict immutable, Plain(order::ne);
    2343 "date_ne_timestamp" (DATE TIMESTAMP) BOOL, strict immutable, Plain(order::ne);
    2356 "date_ne_timestamptz" (DATE TIMESTAMPTZ) BOOL, strict stable, Plain(order::ne);
    1139 "date_smaller" (DATE DATE) DATE, strict immutable, Plain(order::smaller);
    299 "float48eq" (FLOAT4 FLOAT8) BOOL, strict immutable, Plain(order::eq);
    304 "float48ge" (FLOAT4 FLOAT8) BOOL, strict immutable, Plain(order::ge);
    303 "float48gt" (FLOAT4 FLOAT8) BOOL, strict immutable, Plain(order::gt);
    302 "float48le" (FLOAT4 FLOAT8) BOOL, strict immutable, Plain(order::le);
    301 "float48lt" (FLOAT4 FLOAT8) BOOL, strict immutable, Plain(order::lt);
    300 "float48ne" (FLOAT4 FLOAT8) BOOL, strict immutable, Plain(order::ne);
    287 "float4eq" (FLOAT4 FLOAT4) BOOL, strict immutable, Plain(order::eq);
    292 "float4ge" (FLOAT4 FLOAT4) BOOL, strict immutable, Plain(order::ge);
    291 "float4gt" (FLOAT4 FLOAT4) BOOL, strict immutable, Plain(order::gt);
    209 "float4larger" (FLOAT4 FLOAT4) FLOAT4, strict immutable, Plain(order::larger);
    290 "float4le" (FLOAT4 FLOAT4) BOOL, strict immutable, Plain(order::le);
    289 "float4lt" (FLOAT4 FLOAT4) BOOL, strict immutable, Plain(order::lt);
    288 "float4ne" (FLOAT4 FLOAT4) BOOL, strict immutable, Plain(order::ne);
    211 "float4smaller" (FLOAT4 FLOAT4) FLOAT4, strict immutable, Plain(order::smaller);
    305 "float84eq" (FLOAT8 FLOAT4) BOOL, strict immutable, Plain(order::eq);
    310 "float84ge" (FLOAT8 FLOAT4) BOOL, strict immutable, Plain(order::ge);
    309 "float84gt" (FLOAT8 FLOAT4) BOOL, strict immutable, Plain(order::gt);
    308 "float84le" (FLOAT8 FLOAT4) BOOL, strict immutable, Plain(order::le);
    307 "float84lt" (FLOAT8 FLOAT4) BOOL, strict immutable, Plain(order::lt);
    306 "float84ne" (FLOAT8 FLOAT4) BOOL, strict immutable, Plain(order::ne);
    293 "float8eq" (FLOAT8 FLOAT8) BOOL, strict immutable, Plain(order::eq);
    298 "float8ge" (FLOAT8 FLOAT8) BOOL, strict immutable, Plain(order::ge);
    297 "float8gt" (FLOAT8 FLOAT8) BOOL, strict immutable, Plain(order::gt);
    223 "float8larger" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(order::larger);
    296 "float8le" (FLOAT8 FLOAT8) BOOL, strict immutable, Plain(order::le);
    295 "float8lt" (FLOAT8 FLOAT8) BOOL, strict immutable, Plain(order::lt);
    294 "float8ne" (FLOAT8 FLOAT8) BOOL, strict immutable, Plain(order::ne);
    224 "float8smaller" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(order::smaller);
    158 "int24eq" (INT2 INT4) BOOL, strict immutable, Plain(order::eq);
    168 "int24ge" (INT2 INT4) BOOL, strict immutable, Plain(order::ge);
    162 "int24gt" (INT2 INT4) BOOL, strict immutable, Plain(order::gt);
    166 "int24le" (INT2 INT4) BOOL, strict immutable, Plain(order::le);
    160 "int24lt" (INT2 INT4) BOOL, strict immutable, Plain(order::lt);
    164 "int24ne" (INT2 INT4) BOOL, strict immutable, Plain(order::ne);
    1850 "int28eq" (INT2 INT8) BOOL, strict immutable, Plain(order::eq);
    1855 "int28ge" (INT2 INT8) BOOL, strict immutable, Plain(order::ge);
    1853 "int28gt" (INT2 INT8) BOOL, strict immutable, Plain(order::gt);
    1854 "int28le" (INT2 INT8) BOOL, strict immutable, Plain(order::le);
    1852 "int28lt" (INT2 INT8) BOOL, strict immutable, Plain(order::lt);
    1851 "int28ne" (INT2 INT8) BOOL, strict immutable, Plain(order::ne);
    63 "int2eq" (INT2 INT2) BOOL, strict immutable, Plain(order::eq);
    151 "int2ge" (INT2 INT2) BOOL, strict immutable, Plain(order::ge);
    146 "int2gt" (INT2 INT2) BOOL, strict immutable, Plain(order::gt);
    770 "int2larger" (INT2 INT2) INT2, strict immutable, Plain(order::larger);
    148 "int2le" (INT2 INT2) BOOL, strict immutable, Plain(order::le);
    64 "int2lt" (INT2 INT2) BOOL, strict immutable, Plain(order::lt);
    145 "int2ne" (INT2 INT2) BOOL, strict immutable, Plain(order::ne);
    771 "int2smaller" (INT2 INT2) INT2, strict immutable, Plain(order::smaller);
    159 "int42eq" (INT4 INT2) BOOL, strict immutable, Plain(order::eq);
    169 "int42ge" (INT4 INT2) BOOL, strict immutable, Plain(order::ge);
    163 "int42gt" (INT4 INT2) BOOL, strict immutable, Plain(order::gt);
    167 "int42le" (INT4 INT2) BOOL, strict immutable, Plain(order::le);
    161 "int42lt" (INT4 INT2) BOOL, strict immutable, Plain(order::lt);
    165 "int42ne" (INT4 INT2) BOOL, strict immutable, Plain(order::ne);
    852 "int48eq" (INT4 INT8) BOOL, strict immutable, Plain(order::eq);
    857 "int48ge" (INT4 INT8) BOOL, strict immutable, Plain(order::ge);
    855 "int48gt" (INT4 INT8) BOOL, strict immutable, Plain(order::gt);
    856 "int48le" (INT4 INT8) BOOL, strict immutable, Plain(order::le);
    854 "int48lt" (INT4 INT8) BOOL, strict immutable, Plain(order::lt);
    853 "int48ne" (INT4 INT8) BOOL, strict immutable, Plain(order::ne);
    65 "int4eq" (INT4 INT4) BOOL, strict immutable, Plain(order::eq);
    150 "int4ge" (INT4 INT4) BOOL, strict immutable, Plain(order::ge);
    147 "int4gt" (INT4 INT4) BOOL, strict immutable, Plain(order::gt);
    768 "int4larger" (INT4 INT4) INT4, strict immutable, Plain(order::larger);
    149 "int4le" (INT4 INT4) BOOL, strict immutable, Plain(order::le);
    66 "int4lt" (INT4 INT4) BOOL, strict immutable, Plain(order::lt);
    144 "int4ne" (INT4 INT4) BOOL, strict immutable, Plain(order::ne);
    769 "int4smaller" (INT4 INT4) INT4, strict immutable, Plain(order::smaller);
    1856 "int82eq" (INT8 INT2) BOOL, strict immutable, Plain(order::eq);
    1861 "int82ge" (INT8 INT2) BOOL, strict immutable, Plain(order::ge);
    1859 "int82gt" (INT8 INT2) BOOL, strict immutable, Plain(order::gt);
    1860 "int82le" (INT8 INT2) BOOL, strict immutable, Plain(order::le);
    1858 "int82lt" (INT8 INT2) BOOL, strict immutable, Plain(order::lt);
    1857 "int82ne" (INT8 INT2) BOOL, strict immutable, Plain(order::ne);
    474 "int84eq" (INT8 INT4) BOOL, strict immutable, Plain(order::eq);
    479 "int84ge" (INT8 INT4) BOOL, strict immutable, Plain(order::ge);
    477 "int84gt" (INT8 INT4) BOOL, strict immutable, Plain(order::gt);
    478 "int84le" (INT8 INT4) BOOL, strict immutable, Plain(order::le);
    476 "int84lt" (INT8 INT4) BOOL, strict immutable, Plain(order::lt);
    475 "int84ne" (INT8 INT4) BOOL, strict immutable, Plain(order::ne);
    467 "int8eq" (INT8 INT8) BOOL, strict immutable, Plain(order::eq);
    472 "int8ge" (INT8 INT8) BOOL, strict immutable, Plain(order::ge);
    470 "int8gt" (INT8 INT8) BOOL, strict immutable, Plain(order::gt);
    1236 "int8larger" (INT8 INT8) INT8, strict immutable, Plain(order::larger);
    471 "int8le" (INT8 INT8) BOOL, strict immutable, Plain(order::le);
    469 "int8lt" (INT8 INT8) BOOL, strict immutable, Plain(order::lt);
    468 "int8ne" (INT8 INT8) BOOL, strict immutable, Plain(order::ne);
    1237 "int8smaller" (INT8 INT8) INT8, strict immutable, Plain(order::smaller);
    1162 "interval_eq" (INTERVAL INTERVAL) BOOL, strict immutable, Plain(order::eq);
    1166 "interval_ge" (INTERVAL INTERVAL) BOOL, strict immutable, Plain(order::ge);
    1167 "interval_gt" (INTERVAL INTERVAL) BOOL, strict immutable, Plain(order::gt);
    1198 "interval_larger" (INTERVAL INTERVAL) INTERVAL, strict immutable, Plain(order::larger);
    1165 "interval_le" (INTERVAL INTERVAL) BOOL, strict immutable, Plain(order::le);
    1164 "interval_lt" (INTERVAL INTERVAL) BOOL, strict immutable, Plain(order::lt);
    1163 "interval_ne" (INTERVAL INTERVAL) BOOL, strict immutable, Plain(order::ne);
    1197 "interval_smaller" (INTERVAL INTERVAL) INTERVAL, strict immutable, Plain(order::smaller);
    62 "nameeq" (NAME NAME) BOOL, strict immutable, Plain(order::eq);
    240 "nameeqtext" (NAME TEXT) BOOL, strict immutable, Plain(order::eq);
    658 "namege" (NAME NAME) BOOL, strict immutable, Plain(order::ge);
    243 "namegetext" (NAME TEXT) BOOL, strict immutable, Plain(order::ge);
    657 "namegt" (NAME NAME) BOOL, strict immutable, Plain(order::gt);
    244 "namegttext" (NAME TEXT) BOOL, strict immutable, Plain(order::gt);
    656 "namele" (NAME NAME) BOOL, strict immutable, Plain(order::le);
    242 "nameletext" (NAME TEXT) BOOL, strict immutable, Plain(order::le);
    655 "namelt" (NAME NAME) BOOL, strict immutable, Plain(order::lt);
    241 "namelttext" (NAME TEXT) BOOL, strict immutable, Plain(order::lt);
    659 "namene" (NAME NAME) BOOL, strict immutable, Plain(order::ne);
    245 "namenetext" (NAME TEXT) BOOL, strict immutable, Plain(order::ne);
    1718 "numeric_eq" (NUMERIC NUMERIC) BOOL, strict immutable, Plain(order::eq);
    1721 "numeric_ge" (NUMERIC NUMERIC) BOOL, strict immutable, Plain(order::ge);
    1720 "numeric_gt" (NUMERIC NUMERIC) BOOL, strict immutable, Plain(order::gt);
    1767 "numeric_larger" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(order::larger);
    1723 "numeric_le" (NUMERIC NUMERIC) BOOL, strict immutable, Plain(order::le);
    1722 "numeric_lt" (NUMERIC NUMERIC) BOOL, strict immutable, Plain(order::lt);
    1719 "numeric_ne" (NUMERIC NUMERIC) BOOL, strict immutable, Plain(order::ne);
    1766 "numeric_smaller" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(order::smaller);
    184 "oideq" (OID OID) BOOL, strict immutable, Plain(order::eq);
    1639 "oidge" (OID OID) BOOL, strict immutable, Plain(order::ge);
    1638 "oidgt" (OID OID) BOOL, strict immutable, Plain(order::gt);
    1965 "oidlarger" (OID OID) OID, strict immutable, Plain(order::larger);
    717 "oidle" (OID OID) BOOL, strict immutable, Plain(order::le);
    716 "oidlt" (OID OID) BOOL, strict immutable, Plain(order::lt);
    185 "oidne" (OID OID) BOOL, strict immutable, Plain(order::ne);
    1966 "oidsmaller" (OID OID) OID, strict immutable, Plain(order::smaller);
    2981 "record_eq" (RECORD RECORD) BOOL, strict immutable, Plain(order::eq);
    2986 "record_ge" (RECORD RECORD) BOOL, strict immutable, Plain(order::ge);
    2984 "record_gt" (RECORD RECORD) BOOL, strict immutable, Plain(order::gt);
    2985 "record_le" (RECORD RECORD) BOOL, strict immutable, Plain(order::le);
    2983 "record_lt" (RECORD RECORD) BOOL, strict immutable, Plain(order::lt);
    2982 "record_ne" (RECORD RECORD) BOOL, strict immutable, Plain(order::ne);
    743 "text_ge" (TEXT TEXT) BOOL, strict immutable, Plain(order::ge);
    742 "text_gt" (TEXT TEXT) BOOL, strict immutable, Plain(order::gt);
    458 "text_larger" (TEXT TEXT) TEXT, strict immutable, Plain(order::larger);
    741 "text_le" (TEXT TEXT) BOOL, strict immutable, Plain(order::le);
    740 "text_lt" (TEXT TEXT) BOOL, strict immutable, Plain(order::lt);
    2163 "text_pattern_ge" (TEXT TEXT) BOOL, strict immutable, Plain(order::ge);
    2164 "text_pattern_gt" (TEXT TEXT) BOOL, strict immutable, Plain(order::gt);
    2161 "text_pattern_le" (TEXT TEXT) BOOL, strict immutable, Plain(order::le);
    2160 "text_pattern_lt" (TEXT TEXT) BOOL, strict immutable, Plain(order::lt);
    459 "text_smaller" (TEXT TEXT) TEXT, strict immutable, Plain(order::smaller);
    67 "texteq" (TEXT TEXT) BOOL, strict immutable, Plain(order::eq);
    247 "texteqname" (TEXT NAME) BOOL, strict immutable, Plain(order::eq);
    250 "textgename" (TEXT NAME) BOOL, strict immutable, Plain(order::ge);
    251 "textgtname" (TEXT NAME) BOOL, strict immutable, Plain(order::gt);
    249 "textlename" (TEXT NAME) BOOL, strict immutable, Plain(order::le);
    248 "textltname" (TEXT NAME) BOOL, strict immutable, Plain(order::lt);
    157 "textne" (TEXT TEXT) BOOL, strict immutable, Plain(order::ne);
    252 "textnename" (TEXT NAME) BOOL, strict immutable, Plain(order::ne);
    1145 "time_eq" (TIME TIME) BOOL, strict immutable, Plain(order::eq);
    1105 "time_ge" (TIME TIME) BOOL, strict immutable, Plain(order::ge);
    1104 "time_gt" (TIME TIME) BOOL, strict immutable, Plain(order::gt);
    1377 "time_larger" (TIME TIME) TIME, strict immutable, Plain(order::larger);
    1103 "time_le" (TIME TIME) BOOL, strict immutable, Plain(order::le);
    1102 "time_lt" (TIME TIME) BOOL, strict immutable, Plain(order::lt);
    1106 "time_ne" (TIME TIME) BOOL, strict immutable, Plain(order::ne);
    1378 "time_smaller" (TIME TIME) TIME, strict immutable, Plain(order::smaller);
    2052 "timestamp_eq" (TIMESTAMP TIMESTAMP) BOOL, strict immutable, Plain(order::eq);
    2366 "timestamp_eq_date" (TIMESTAMP DATE) BOOL, strict immutable, Plain(order::eq);
    2522 "timestamp_eq_timestamptz" (TIMESTAMP TIMESTAMPTZ) BOOL, strict stable, Plain(order::eq);
    2056 "timestamp_ge" (TIMESTAMP TIMESTAMP) BOOL, strict immutable, Plain(order::ge);
    2368 "timestamp_ge_date" (TIMESTAMP DATE) BOOL, strict immutable, Plain(order::ge);
    2524 "timestamp_ge_timestamptz" (TIMESTAMP TIMESTAMPTZ) BOOL, strict stable, Plain(order::ge);
    2057 "timestamp_gt" (TIMESTAMP TIMESTAMP) BOOL, strict immutable, Plain(order::gt);
    2367 "timestamp_gt_date" (TIMESTAMP DATE) BOOL, strict immutable, Plain(order::gt);
    2523 "timestamp_gt_timestamptz" (TIMESTAMP TIMESTAMPTZ) BOOL, strict stable, Plain(order::gt);
    2036 "timestamp_larger" (TIMESTAMP TIMESTAMP) TIMESTAMP, strict immutable, Plain(order::larger);
    2055 "timestamp_le" (TIMESTAMP TIMESTAMP) BOOL, strict immutable, Plain(order::le);
    2365 "timestamp_le_date" (TIMESTAMP DATE) BOOL, strict immutable, Plain(order::le);
    2521 "timestamp_le_timestamptz" (TIMESTAMP TIMESTAMPTZ) BOOL, strict stable, Plain(order::le);
    2054 "timestamp_lt" (TIMESTAMP TIMESTAMP) BOOL, strict immutable, Plain(order::lt);
    2364 "timestamp_lt_date" (TIMESTAMP DATE) BOOL, strict immutable, Plain(order::lt);
    2520 "timestamp_lt_timestamptz" (TIMESTAMP TIMESTAMPTZ) BOOL, strict stable, Plain(order::lt);
    2053 "timestamp_ne" (TIMESTAMP TIMESTAMP) BOOL, strict immutable, Plain(order::ne);
    2369 "timestamp_ne_date" (TIMESTAMP DATE) BOOL, strict immutable, Plain(order::ne);
    2525 "timestamp_ne_timestamptz" (TIMESTAMP TIMESTAMPTZ) BOOL, strict stable, Plain(order::ne);
    2035 "timestamp_smaller" (TIMESTAMP TIMESTAMP) TIMESTAMP, strict immutable, Plain(order::smaller);
    1152 "timestamptz_eq" (TIMESTAMPTZ TIMESTAMPTZ) BOOL, strict immutable, Plain(order::eq);
    2379 "timestamptz_eq_date" (TIMESTAMPTZ DATE) BOOL, strict stable, Plain(order::eq);
    2529 "timestamptz_eq_timestamp" (TIMESTAMPTZ TIMESTAMP) BOOL, strict stable, Plain(order::eq);
    1156 "timestamptz_ge" (TIMESTAMPTZ TIMESTAMPTZ) BOOL, strict immutable, Plain(order::ge);
    2381 "timestamptz_ge_date" (TIMESTAMPTZ DATE) BOOL, strict stable, Plain(order::ge);
    2531 "timestamptz_ge_timestamp" (TIMESTAMPTZ TIMESTAMP) BOOL, strict stable, Plain(order::ge);
    1157 "timestamptz_gt" (TIMESTAMPTZ TIMESTAMPTZ) BOOL, strict immutable, Plain(order::gt);
    2380 "timestamptz_gt_date" (TIMESTAMPTZ DATE) BOOL, strict stable, Plain(order::gt);
    2530 "timestamptz_gt_timestamp" (TIMESTAMPTZ TIMESTAMP) BOOL, strict stable, Plain(order::gt);
    1196 "timestamptz_larger" (TIMESTAMPTZ TIMESTAMPTZ) TIMESTAMPTZ, strict immutable, Plain(order::larger);
    1155 "timestamptz_le" (TIMESTAMPTZ TIMESTAMPTZ) BOOL, strict immutable, Plain(order::le);
    2378 "timestamptz_le_date" (TIMESTAMPTZ DATE) BOOL, strict stable, Plain(order::le);
    2528 "timestamptz_le_timestamp" (TIMESTAMPTZ TIMESTAMP) BOOL, strict stable, Plain(order::le);
    1154 "timestamptz_lt" (TIMESTAMPTZ TIMESTAMPTZ) BOOL, strict immutable, Plain(order::lt);
    2377 "timestamptz_lt_date" (TIMESTAMPTZ DATE) BOOL, strict stable, Plain(order::lt);
    2527 "timestamptz_lt_timestamp" (TIMESTAMPTZ TIMESTAMP) BOOL, strict stable, Plain(order::lt);
    1153 "timestamptz_ne" (TIMESTAMPTZ TIMESTAMPTZ) BOOL, strict immutable, Plain(order::ne);
    2382 "timestamptz_ne_date" (TIMESTAMPTZ DATE) BOOL, strict stable, Plain(order::ne);
    2532 "timestamptz_ne_timestamp" (TIMESTAMPTZ TIMESTAMP) BOOL, strict stable, Plain(order::ne);
    1195 "timestamptz_smaller" (TIMESTAMPTZ TIMESTAMPTZ) TIMESTAMPTZ, strict immutable, Plain(order::smaller);
    1352 "timetz_eq" (TIMETZ TIMETZ) BOOL, strict immutable, Plain(order::eq);
    1356 "timetz_ge" (TIMETZ TIMETZ) BOOL, strict immutable, Plain(order::ge);
    1357 "timetz_gt" (TIMETZ TIMETZ) BOOL, strict immutable, Plain(order::gt);
    1379 "timetz_larger" (TIMETZ TIMETZ) TIMETZ, strict immutable, Plain(order::larger);
    1355 "timetz_le" (TIMETZ TIMETZ) BOOL, strict immutable, Plain(order::le);
    1354 "timetz_lt" (TIMETZ TIMETZ) BOOL, strict immutable, Plain(order::lt);
    1353 "timetz_ne" (TIMETZ TIMETZ) BOOL, strict immutable, Plain(order::ne);
    1380 "timetz_smaller" (TIMETZ TIMETZ) TIMETZ, strict immutable, Plain(order::smaller);
    2956 "uuid_eq" (UUID UUID) BOOL, strict immutable, Plain(order::eq);
    2957 "uuid_ge" (UUID UUID) BOOL, strict immutable, Plain(order::ge);
    2958 "uuid_gt" (UUID UUID) BOOL, strict immutable, Plain(order::gt);
    2955 "uuid_le" (UUID UUID) BOOL, strict immutable, Plain(order::le);
    2954 "uuid_lt" (UUID UUID) BOOL, strict immutable, Plain(order::lt);
    2959 "uuid_ne" (UUID UUID) BOOL, strict immutable, Plain(order::ne);
}

// Integers.
#[rustfmt::skip]
functions! { INTEGERS:
    1396 "abs" (INT8) INT8, strict immutable, Plain(integers::abs::<i64>);
    1397 "abs" (INT4) INT4, strict immutable, Plain(integers::abs::<i32>);
    1398 "abs" (INT2) INT2, strict immutable, Plain(integers::abs::<i16>);
    408 "bpchar" (NAME) BPCHAR, strict immutable, Plain(integers::same);
    1376 "factorial" (INT8) NUMERIC, strict immutable, Plain(integers::factorial);
    1913 "float4up" (FLOAT4) FLOAT4, strict immutable, Plain(integers::same);
    1914 "float8up" (FLOAT8) FLOAT8, strict immutable, Plain(integers::same);
    5044 "gcd" (INT4 INT4) INT4, strict immutable, Plain(integers::gcd::<i32>);
    5045 "gcd" (INT8 INT8) INT8, strict immutable, Plain(integers::gcd::<i64>);
    172 "int24div" (INT2 INT4) INT4, strict immutable, Plain(integers::div::<i32>);
    182 "int24mi" (INT2 INT4) INT4, strict immutable, Plain(integers::sub::<i32>);
    170 "int24mul" (INT2 INT4) INT4, strict immutable, Plain(integers::mul::<i32>);
    178 "int24pl" (INT2 INT4) INT4, strict immutable, Plain(integers::add::<i32>);
    948 "int28div" (INT2 INT8) INT8, strict immutable, Plain(integers::div::<i64>);
    942 "int28mi" (INT2 INT8) INT8, strict immutable, Plain(integers::sub::<i64>);
    943 "int28mul" (INT2 INT8) INT8, strict immutable, Plain(integers::mul::<i64>);
    841 "int28pl" (INT2 INT8) INT8, strict immutable, Plain(integers::add::<i64>);
    1253 "int2abs" (INT2) INT2, strict immutable, Plain(integers::abs::<i16>);
    1892 "int2and" (INT2 INT2) INT2, strict immutable, Plain(integers::and::<i16>);
    153 "int2div" (INT2 INT2) INT2, strict immutable, Plain(integers::div::<i16>);
    180 "int2mi" (INT2 INT2) INT2, strict immutable, Plain(integers::sub::<i16>);
    155 "int2mod" (INT2 INT2) INT2, strict immutable, Plain(integers::rem::<i16>);
    152 "int2mul" (INT2 INT2) INT2, strict immutable, Plain(integers::mul::<i16>);
    1895 "int2not" (INT2) INT2, strict immutable, Plain(integers::not::<i16>);
    1893 "int2or" (INT2 INT2) INT2, strict immutable, Plain(integers::or::<i16>);
    176 "int2pl" (INT2 INT2) INT2, strict immutable, Plain(integers::add::<i16>);
    1896 "int2shl" (INT2 INT4) INT2, strict immutable, Plain(integers::shl::<i16>);
    1897 "int2shr" (INT2 INT4) INT2, strict immutable, Plain(integers::shr::<i16>);
    213 "int2um" (INT2) INT2, strict immutable, Plain(integers::neg::<i16>);
    1911 "int2up" (INT2) INT2, strict immutable, Plain(integers::same);
    1894 "int2xor" (INT2 INT2) INT2, strict immutable, Plain(integers::xor::<i16>);
    173 "int42div" (INT4 INT2) INT4, strict immutable, Plain(integers::div::<i32>);
    183 "int42mi" (INT4 INT2) INT4, strict immutable, Plain(integers::sub::<i32>);
    171 "int42mul" (INT4 INT2) INT4, strict immutable, Plain(integers::mul::<i32>);
    179 "int42pl" (INT4 INT2) INT4, strict immutable, Plain(integers::add::<i32>);
    1281 "int48div" (INT4 INT8) INT8, strict immutable, Plain(integers::div::<i64>);
    1279 "int48mi" (INT4 INT8) INT8, strict immutable, Plain(integers::sub::<i64>);
    1280 "int48mul" (INT4 INT8) INT8, strict immutable, Plain(integers::mul::<i64>);
    1278 "int48pl" (INT4 INT8) INT8, strict immutable, Plain(integers::add::<i64>);
    1251 "int4abs" (INT4) INT4, strict immutable, Plain(integers::abs::<i32>);
    1898 "int4and" (INT4 INT4) INT4, strict immutable, Plain(integers::and::<i32>);
    154 "int4div" (INT4 INT4) INT4, strict immutable, Plain(integers::div::<i32>);
    181 "int4mi" (INT4 INT4) INT4, strict immutable, Plain(integers::sub::<i32>);
    156 "int4mod" (INT4 INT4) INT4, strict immutable, Plain(integers::rem::<i32>);
    141 "int4mul" (INT4 INT4) INT4, strict immutable, Plain(integers::mul::<i32>);
    1901 "int4not" (INT4) INT4, strict immutable, Plain(integers::not::<i32>);
    1899 "int4or" (INT4 INT4) INT4, strict immutable, Plain(integers::or::<i32>);
    177 "int4pl" (INT4 INT4) INT4, strict immutable, Plain(integers::add::<i32>);
    1902 "int4shl" (INT4 INT4) INT4, strict immutable, Plain(integers::shl::<i32>);
    1903 "int4shr" (INT4 INT4) INT4, strict immutable, Plain(integers::shr::<i32>);
    212 "int4um" (INT4) INT4, strict immutable, Plain(integers::neg::<i32>);
    1912 "int4up" (INT4) INT4, strict immutable, Plain(integers::same);
    1900 "int4xor" (INT4 INT4) INT4, strict immutable, Plain(integers::xor::<i32>);
    840 "int82div" (INT8 INT2) INT8, strict immutable, Plain(integers::div::<i64>);
    838 "int82mi" (INT8 INT2) INT8, strict immutable, Plain(integers::sub::<i64>);
    839 "int82mul" (INT8 INT2) INT8, strict immutable, Plain(integers::mul::<i64>);
    837 "int82pl" (INT8 INT2) INT8, strict immutable, Plain(integers::add::<i64>);
    1277 "int84div" (INT8 INT4) INT8, strict immutable, Plain(integers::div::<i64>);
    1275 "int84mi" (INT8 INT4) INT8, strict immutable, Plain(integers::sub::<i64>);
    1276 "int84mul" (INT8 INT4) INT8, strict immutable, Plain(integers::mul::<i64>);
    1274 "int84pl" (INT8 INT4) INT8, strict immutable, Plain(integers::add::<i64>);
    1230 "int8abs" (INT8) INT8, strict immutable, Plain(integers::abs::<i64>);
    1904 "int8and" (INT8 INT8) INT8, strict immutable, Plain(integers::and::<i64>);
    466 "int8div" (INT8 INT8) INT8, strict immutable, Plain(integers::div::<i64>);
    464 "int8mi" (INT8 INT8) INT8, strict immutable, Plain(integers::sub::<i64>);
    945 "int8mod" (INT8 INT8) INT8, strict immutable, Plain(integers::rem::<i64>);
    465 "int8mul" (INT8 INT8) INT8, strict immutable, Plain(integers::mul::<i64>);
    1907 "int8not" (INT8) INT8, strict immutable, Plain(integers::not::<i64>);
    1905 "int8or" (INT8 INT8) INT8, strict immutable, Plain(integers::or::<i64>);
    463 "int8pl" (INT8 INT8) INT8, strict immutable, Plain(integers::add::<i64>);
    1908 "int8shl" (INT8 INT4) INT8, strict immutable, Plain(integers::shl::<i64>);
    1909 "int8shr" (INT8 INT4) INT8, strict immutable, Plain(integers::shr::<i64>);
    462 "int8um" (INT8) INT8, strict immutable, Plain(integers::neg::<i64>);
    1910 "int8up" (INT8) INT8, strict immutable, Plain(integers::same);
    1906 "int8xor" (INT8 INT8) INT8, strict immutable, Plain(integers::xor::<i64>);
    5046 "lcm" (INT4 INT4) INT4, strict immutable, Plain(integers::lcm::<i32>);
    5047 "lcm" (INT8 INT8) INT8, strict immutable, Plain(integers::lcm::<i64>);
    940 "mod" (INT2 INT2) INT2, strict immutable, Plain(integers::rem::<i16>);
    941 "mod" (INT4 INT4) INT4, strict immutable, Plain(integers::rem::<i32>);
    947 "mod" (INT8 INT8) INT8, strict immutable, Plain(integers::rem::<i64>);
    1915 "numeric_uplus" (NUMERIC) NUMERIC, strict immutable, Plain(integers::same);
    406 "text" (NAME) TEXT, strict immutable, Plain(integers::same);
    2089 "to_hex" (INT4) TEXT, strict immutable, Plain(integers::to_hex);
    2090 "to_hex" (INT8) TEXT, strict immutable, Plain(integers::to_hex);
    1401 "varchar" (NAME) VARCHAR, strict immutable, Plain(integers::same);
}

// Floating point.
#[rustfmt::skip]
functions! { FLOATS:
    1394 "abs" (FLOAT4) FLOAT4, strict immutable, Plain(floats::abs);
    1395 "abs" (FLOAT8) FLOAT8, strict immutable, Plain(floats::abs);
    1601 "acos" (FLOAT8) FLOAT8, strict immutable, Plain(floats::acos);
    2466 "acosh" (FLOAT8) FLOAT8, strict immutable, Plain(floats::acosh);
    1600 "asin" (FLOAT8) FLOAT8, strict immutable, Plain(floats::asin);
    2465 "asinh" (FLOAT8) FLOAT8, strict immutable, Plain(floats::asinh);
    1602 "atan" (FLOAT8) FLOAT8, strict immutable, Plain(floats::atan);
    1603 "atan2" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(floats::atan2);
    2467 "atanh" (FLOAT8) FLOAT8, strict immutable, Plain(floats::atanh);
    1345 "cbrt" (FLOAT8) FLOAT8, strict immutable, Plain(floats::cbrt);
    2308 "ceil" (FLOAT8) FLOAT8, strict immutable, Plain(floats::ceil);
    2320 "ceiling" (FLOAT8) FLOAT8, strict immutable, Plain(floats::ceil);
    1605 "cos" (FLOAT8) FLOAT8, strict immutable, Plain(floats::cos);
    2736 "cosd" (FLOAT8) FLOAT8, strict immutable, Plain(floats::cosd);
    2463 "cosh" (FLOAT8) FLOAT8, strict immutable, Plain(floats::cosh);
    1607 "cot" (FLOAT8) FLOAT8, strict immutable, Plain(floats::cot);
    231 "dcbrt" (FLOAT8) FLOAT8, strict immutable, Plain(floats::cbrt);
    1608 "degrees" (FLOAT8) FLOAT8, strict immutable, Plain(floats::degrees);
    233 "dexp" (FLOAT8) FLOAT8, strict immutable, Plain(floats::exp);
    234 "dlog1" (FLOAT8) FLOAT8, strict immutable, Plain(floats::ln);
    1339 "dlog10" (FLOAT8) FLOAT8, strict immutable, Plain(floats::log10);
    232 "dpow" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(floats::power);
    228 "dround" (FLOAT8) FLOAT8, strict immutable, Plain(floats::round);
    230 "dsqrt" (FLOAT8) FLOAT8, strict immutable, Plain(floats::sqrt);
    229 "dtrunc" (FLOAT8) FLOAT8, strict immutable, Plain(floats::trunc);
    1347 "exp" (FLOAT8) FLOAT8, strict immutable, Plain(floats::exp);
    280 "float48div" (FLOAT4 FLOAT8) FLOAT8, strict immutable, Plain(floats::div);
    282 "float48mi" (FLOAT4 FLOAT8) FLOAT8, strict immutable, Plain(floats::sub);
    279 "float48mul" (FLOAT4 FLOAT8) FLOAT8, strict immutable, Plain(floats::mul);
    281 "float48pl" (FLOAT4 FLOAT8) FLOAT8, strict immutable, Plain(floats::add);
    207 "float4abs" (FLOAT4) FLOAT4, strict immutable, Plain(floats::abs);
    203 "float4div" (FLOAT4 FLOAT4) FLOAT4, strict immutable, Plain(floats::div);
    205 "float4mi" (FLOAT4 FLOAT4) FLOAT4, strict immutable, Plain(floats::sub);
    202 "float4mul" (FLOAT4 FLOAT4) FLOAT4, strict immutable, Plain(floats::mul);
    204 "float4pl" (FLOAT4 FLOAT4) FLOAT4, strict immutable, Plain(floats::add);
    206 "float4um" (FLOAT4) FLOAT4, strict immutable, Plain(floats::neg);
    284 "float84div" (FLOAT8 FLOAT4) FLOAT8, strict immutable, Plain(floats::div);
    286 "float84mi" (FLOAT8 FLOAT4) FLOAT8, strict immutable, Plain(floats::sub);
    283 "float84mul" (FLOAT8 FLOAT4) FLOAT8, strict immutable, Plain(floats::mul);
    285 "float84pl" (FLOAT8 FLOAT4) FLOAT8, strict immutable, Plain(floats::add);
    221 "float8abs" (FLOAT8) FLOAT8, strict immutable, Plain(floats::abs);
    217 "float8div" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(floats::div);
    219 "float8mi" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(floats::sub);
    216 "float8mul" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(floats::mul);
    218 "float8pl" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(floats::add);
    220 "float8um" (FLOAT8) FLOAT8, strict immutable, Plain(floats::neg);
    2309 "floor" (FLOAT8) FLOAT8, strict immutable, Plain(floats::floor);
    1341 "ln" (FLOAT8) FLOAT8, strict immutable, Plain(floats::ln);
    1340 "log" (FLOAT8) FLOAT8, strict immutable, Plain(floats::log10);
    1194 "log10" (FLOAT8) FLOAT8, strict immutable, Plain(floats::log10);
    1610 "pi" () FLOAT8, strict immutable, Plain(floats::pi);
    1346 "pow" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(floats::power);
    1368 "power" (FLOAT8 FLOAT8) FLOAT8, strict immutable, Plain(floats::power);
    1609 "radians" (FLOAT8) FLOAT8, strict immutable, Plain(floats::radians);
    1598 "random" () FLOAT8, strict volatile, Plain(floats::random);
    1342 "round" (FLOAT8) FLOAT8, strict immutable, Plain(floats::round);
    2310 "sign" (FLOAT8) FLOAT8, strict immutable, Plain(floats::sign);
    1604 "sin" (FLOAT8) FLOAT8, strict immutable, Plain(floats::sin);
    2735 "sind" (FLOAT8) FLOAT8, strict immutable, Plain(floats::sind);
    2462 "sinh" (FLOAT8) FLOAT8, strict immutable, Plain(floats::sinh);
    1344 "sqrt" (FLOAT8) FLOAT8, strict immutable, Plain(floats::sqrt);
    1606 "tan" (FLOAT8) FLOAT8, strict immutable, Plain(floats::tan);
    2737 "tand" (FLOAT8) FLOAT8, strict immutable, Plain(floats::tand);
    2464 "tanh" (FLOAT8) FLOAT8, strict immutable, Plain(floats::tanh);
    1343 "trunc" (FLOAT8) FLOAT8, strict immutable, Plain(floats::trunc);
}

// Numerics.
#[rustfmt::skip]
functions! { NUMERICS:
    1705 "abs" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::abs);
    1711 "ceil" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::ceil);
    2167 "ceiling" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::ceil);
    1973 "div" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::div_whole);
    1732 "exp" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::exp);
    1712 "floor" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::floor);
    5048 "gcd" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::gcd);
    5049 "lcm" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::lcm);
    1734 "ln" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::ln);
    1736 "log" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::log);
    1741 "log" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::log10);
    1481 "log10" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::log10);
    5042 "min_scale" (NUMERIC) INT4, strict immutable, Plain(numerics::min_scale);
    1728 "mod" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::rem);
    1704 "numeric_abs" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::abs);
    1724 "numeric_add" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::add);
    1727 "numeric_div" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::div);
    1980 "numeric_div_trunc" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::div_whole);
    1733 "numeric_exp" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::exp);
    1735 "numeric_ln" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::ln);
    1737 "numeric_log" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::log);
    1729 "numeric_mod" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::rem);
    1726 "numeric_mul" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::mul);
    1739 "numeric_power" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::power);
    1731 "numeric_sqrt" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::sqrt);
    1725 "numeric_sub" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::sub);
    1771 "numeric_uminus" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::neg);
    1738 "pow" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::power);
    2169 "power" (NUMERIC NUMERIC) NUMERIC, strict immutable, Plain(numerics::power);
    1707 "round" (NUMERIC INT4) NUMERIC, strict immutable, Plain(numerics::round);
    1708 "round" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::round);
    3281 "scale" (NUMERIC) INT4, strict immutable, Plain(numerics::scale);
    1706 "sign" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::sign);
    1730 "sqrt" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::sqrt);
    5043 "trim_scale" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::trim_scale);
    1709 "trunc" (NUMERIC INT4) NUMERIC, strict immutable, Plain(numerics::trunc);
    1710 "trunc" (NUMERIC) NUMERIC, strict immutable, Plain(numerics::trunc);
    320 "width_bucket" (FLOAT8 FLOAT8 FLOAT8 INT4) INT4, strict immutable, Plain(numerics::width_bucket);
    2170 "width_bucket" (NUMERIC NUMERIC NUMERIC INT4) INT4, strict immutable, Plain(numerics::width_bucket);
}

// Casts.
#[rustfmt::skip]
functions! { CONVERT:
    2557 "bool" (INT4) BOOL, strict immutable, Plain(convert::boolean);
    860 "bpchar" (CHAR) BPCHAR, strict immutable, Plain(convert::char_text);
    78 "char" (INT4) CHAR, strict immutable, Plain(convert::char);
    944 "char" (TEXT) CHAR, strict immutable, Plain(convert::char);
    1178 "date" (TIMESTAMPTZ) DATE, strict stable, Plain(convert::date);
    2029 "date" (TIMESTAMP) DATE, strict immutable, Plain(convert::date);
    1272 "datetime_pl" (DATE TIME) TIMESTAMP, strict immutable, Plain(convert::date_and_time);
    1297 "datetimetz_pl" (DATE TIMETZ) TIMESTAMPTZ, strict immutable, Plain(convert::date_and_time);
    236 "float4" (INT2) FLOAT4, strict immutable, Plain(convert::float4);
    312 "float4" (FLOAT8) FLOAT4, strict immutable, Plain(convert::float4);
    318 "float4" (INT4) FLOAT4, strict immutable, Plain(convert::float4);
    652 "float4" (INT8) FLOAT4, strict immutable, Plain(convert::float4);
    1745 "float4" (NUMERIC) FLOAT4, strict immutable, Plain(convert::float4);
    235 "float8" (INT2) FLOAT8, strict immutable, Plain(convert::float8);
    311 "float8" (FLOAT4) FLOAT8, strict immutable, Plain(convert::float8);
    316 "float8" (INT4) FLOAT8, strict immutable, Plain(convert::float8);
    482 "float8" (INT8) FLOAT8, strict immutable, Plain(convert::float8);
    1746 "float8" (NUMERIC) FLOAT8, strict immutable, Plain(convert::float8);
    237 "int2" (FLOAT8) INT2, strict immutable, Plain(convert::integer::<i16>);
    238 "int2" (FLOAT4) INT2, strict immutable, Plain(convert::integer::<i16>);
    314 "int2" (INT4) INT2, strict immutable, Plain(convert::integer::<i16>);
    714 "int2" (INT8) INT2, strict immutable, Plain(convert::integer::<i16>);
    1783 "int2" (NUMERIC) INT2, strict immutable, Plain(convert::integer::<i16>);
    77 "int4" (CHAR) INT4, strict immutable, Plain(convert::integer::<i32>);
    313 "int4" (INT2) INT4, strict immutable, Plain(convert::integer::<i32>);
    317 "int4" (FLOAT8) INT4, strict immutable, Plain(convert::integer::<i32>);
    319 "int4" (FLOAT4) INT4, strict immutable, Plain(convert::integer::<i32>);
    480 "int4" (INT8) INT4, strict immutable, Plain(convert::integer::<i32>);
    1744 "int4" (NUMERIC) INT4, strict immutable, Plain(convert::integer::<i32>);
    2558 "int4" (BOOL) INT4, strict immutable, Plain(convert::integer::<i32>);
    481 "int8" (INT4) INT8, strict immutable, Plain(convert::integer::<i64>);
    483 "int8" (FLOAT8) INT8, strict immutable, Plain(convert::integer::<i64>);
    653 "int8" (FLOAT4) INT8, strict immutable, Plain(convert::integer::<i64>);
    754 "int8" (INT2) INT8, strict immutable, Plain(convert::integer::<i64>);
    1288 "int8" (OID) INT8, strict immutable, Plain(convert::integer::<i64>);
    1779 "int8" (NUMERIC) INT8, strict immutable, Plain(convert::integer::<i64>);
    1370 "interval" (TIME) INTERVAL, strict immutable, Plain(convert::interval);
    407 "name" (TEXT) NAME, strict immutable, Plain(convert::name);
    409 "name" (BPCHAR) NAME, strict immutable, Plain(convert::name);
    1400 "name" (VARCHAR) NAME, strict immutable, Plain(convert::name);
    1740 "numeric" (INT4) NUMERIC, strict immutable, Plain(convert::numeric);
    1742 "numeric" (FLOAT4) NUMERIC, strict immutable, Plain(convert::numeric);
    1743 "numeric" (FLOAT8) NUMERIC, strict immutable, Plain(convert::numeric);
    1781 "numeric" (INT8) NUMERIC, strict immutable, Plain(convert::numeric);
    1782 "numeric" (INT2) NUMERIC, strict immutable, Plain(convert::numeric);
    1287 "oid" (INT8) OID, strict immutable, Plain(convert::oid);
    946 "text" (CHAR) TEXT, strict immutable, Plain(convert::char_text);
    2971 "text" (BOOL) TEXT, strict immutable, Plain(convert::bool_text);
    1316 "time" (TIMESTAMP) TIME, strict immutable, Plain(convert::time);
    1419 "time" (INTERVAL) TIME, strict immutable, Plain(convert::time);
    2019 "time" (TIMESTAMPTZ) TIME, strict stable, Plain(convert::time);
    2046 "time" (TIMETZ) TIME, strict immutable, Plain(convert::time);
    1296 "timedate_pl" (TIME DATE) TIMESTAMP, strict immutable, Plain(convert::date_and_time);
    2024 "timestamp" (DATE) TIMESTAMP, strict immutable, Plain(convert::timestamp);
    2025 "timestamp" (DATE TIME) TIMESTAMP, strict immutable, Plain(convert::date_and_time);
    2027 "timestamp" (TIMESTAMPTZ) TIMESTAMP, strict stable, Plain(convert::timestamp);
    1174 "timestamptz" (DATE) TIMESTAMPTZ, strict stable, Plain(convert::timestamptz);
    1359 "timestamptz" (DATE TIMETZ) TIMESTAMPTZ, strict immutable, Plain(convert::date_and_time);
    2028 "timestamptz" (TIMESTAMP) TIMESTAMPTZ, strict stable, Plain(convert::timestamptz);
    1388 "timetz" (TIMESTAMPTZ) TIMETZ, strict stable, Plain(convert::timetz);
    2047 "timetz" (TIME) TIMETZ, strict stable, Plain(convert::timetz);
    1298 "timetzdate_pl" (TIMETZ DATE) TIMESTAMPTZ, strict immutable, Plain(convert::date_and_time);
}

// Strings.
#[rustfmt::skip]
functions! { STRINGS:
    2004 "anytextcat" (ANY_NONARRAY TEXT) TEXT, strict stable, Plain(composing::concat2);
    384 "array_to_string" (ANY_ARRAY TEXT TEXT) TEXT, nullable stable, Plain(composing::from_array);
    395 "array_to_string" (ANY_ARRAY TEXT) TEXT, strict stable, Plain(composing::from_array);
    1620 "ascii" (TEXT) INT4, strict immutable, Plain(strings::ascii);
    1810 "bit_length" (BYTEA) INT4, strict immutable, Plain(strings::bit_length);
    1811 "bit_length" (TEXT) INT4, strict immutable, Plain(strings::bit_length);
    884 "btrim" (TEXT TEXT) TEXT, strict immutable, Plain(strings::btrim);
    885 "btrim" (TEXT) TEXT, strict immutable, Plain(strings::btrim);
    1372 "char_length" (BPCHAR) INT4, strict immutable, Plain(strings::length);
    1381 "char_length" (TEXT) INT4, strict immutable, Plain(strings::length);
    1367 "character_length" (BPCHAR) INT4, strict immutable, Plain(strings::length);
    1369 "character_length" (TEXT) INT4, strict immutable, Plain(strings::length);
    1621 "chr" (INT4) TEXT, strict immutable, Plain(strings::chr);
    3058 "concat" (ANY) TEXT, nullable stable variadic, Plain(composing::concat);
    3059 "concat_ws" (TEXT ANY) TEXT, nullable stable variadic, Plain(composing::concat_ws);
    3539 "format" (TEXT ANY) TEXT, nullable stable variadic, Plain(composing::format);
    3540 "format" (TEXT) TEXT, nullable stable, Plain(composing::format);
    872 "initcap" (TEXT) TEXT, strict immutable, Plain(strings::initcap);
    3060 "left" (TEXT INT4) TEXT, strict immutable, Plain(strings::left);
    1317 "length" (TEXT) INT4, strict immutable, Plain(strings::length);
    1318 "length" (BPCHAR) INT4, strict immutable, Plain(strings::length);
    2010 "length" (BYTEA) INT4, strict immutable, Plain(strings::octet_length);
    870 "lower" (TEXT) TEXT, strict immutable, Plain(strings::lower);
    873 "lpad" (TEXT INT4 TEXT) TEXT, strict immutable, Plain(strings::lpad);
    879 "lpad" (TEXT INT4) TEXT, strict immutable, Plain(strings::lpad);
    875 "ltrim" (TEXT TEXT) TEXT, strict immutable, Plain(strings::ltrim);
    881 "ltrim" (TEXT) TEXT, strict immutable, Plain(strings::ltrim);
    2311 "md5" (TEXT) TEXT, strict immutable, Plain(strings::md5);
    2321 "md5" (BYTEA) TEXT, strict immutable, Plain(strings::md5);
    720 "octet_length" (BYTEA) INT4, strict immutable, Plain(strings::octet_length);
    1374 "octet_length" (TEXT) INT4, strict immutable, Plain(strings::octet_length);
    1375 "octet_length" (BPCHAR) INT4, strict immutable, Plain(strings::octet_length);
    1404 "overlay" (TEXT TEXT INT4 INT4) TEXT, strict immutable, Plain(strings::overlay);
    1405 "overlay" (TEXT TEXT INT4) TEXT, strict immutable, Plain(strings::overlay);
    849 "position" (TEXT TEXT) INT4, strict immutable, Plain(strings::position);
    1282 "quote_ident" (TEXT) TEXT, strict immutable, Plain(composing::quote_ident);
    1283 "quote_literal" (TEXT) TEXT, strict immutable, Plain(composing::quote_literal);
    1285 "quote_literal" (ANY_ELEMENT) TEXT, strict stable, Plain(composing::quote_literal);
    1289 "quote_nullable" (TEXT) TEXT, nullable immutable, Plain(composing::quote_nullable);
    1290 "quote_nullable" (ANY_ELEMENT) TEXT, nullable stable, Plain(composing::quote_nullable);
    1622 "repeat" (TEXT INT4) TEXT, strict immutable, Plain(strings::repeat);
    2087 "replace" (TEXT TEXT TEXT) TEXT, strict immutable, Plain(strings::replace);
    3062 "reverse" (TEXT) TEXT, strict immutable, Plain(strings::reverse);
    3061 "right" (TEXT INT4) TEXT, strict immutable, Plain(strings::right);
    874 "rpad" (TEXT INT4 TEXT) TEXT, strict immutable, Plain(strings::rpad);
    880 "rpad" (TEXT INT4) TEXT, strict immutable, Plain(strings::rpad);
    876 "rtrim" (TEXT TEXT) TEXT, strict immutable, Plain(strings::rtrim);
    882 "rtrim" (TEXT) TEXT, strict immutable, Plain(strings::rtrim);
    2088 "split_part" (TEXT TEXT INT4) TEXT, strict immutable, Plain(strings::split_part);
    3696 "starts_with" (TEXT TEXT) BOOL, strict immutable, Plain(strings::starts_with);
    376 "string_to_array" (TEXT TEXT TEXT) TEXT_ARRAY, nullable immutable, Plain(composing::to_array);
    394 "string_to_array" (TEXT TEXT) TEXT_ARRAY, nullable immutable, Plain(composing::to_array);
    868 "strpos" (TEXT TEXT) INT4, strict immutable, Plain(strings::position);
    877 "substr" (TEXT INT4 INT4) TEXT, strict immutable, Plain(strings::substring);
    883 "substr" (TEXT INT4) TEXT, strict immutable, Plain(strings::substring);
    936 "substring" (TEXT INT4 INT4) TEXT, strict immutable, Plain(strings::substring);
    937 "substring" (TEXT INT4) TEXT, strict immutable, Plain(strings::substring);
    401 "text" (BPCHAR) TEXT, strict immutable, Plain(strings::rtrim);
    2003 "textanycat" (TEXT ANY_NONARRAY) TEXT, strict stable, Plain(composing::concat2);
    1258 "textcat" (TEXT TEXT) TEXT, strict immutable, Plain(composing::concat2);
    1257 "textlen" (TEXT) INT4, strict immutable, Plain(strings::length);
    878 "translate" (TEXT TEXT TEXT) TEXT, strict immutable, Plain(strings::translate);
    871 "upper" (TEXT) TEXT, strict immutable, Plain(strings::upper);
}

// Byte strings.
#[rustfmt::skip]
functions! { BYTES:
    2015 "btrim" (BYTEA BYTEA) BYTEA, strict immutable, Plain(bytes::btrim);
    2011 "byteacat" (BYTEA BYTEA) BYTEA, strict immutable, Plain(bytes::concat);
    1714 "convert_from" (BYTEA NAME) TEXT, strict stable, Plain(bytes::convert_from);
    1717 "convert_to" (TEXT NAME) BYTEA, strict stable, Plain(bytes::convert_to);
    1947 "decode" (TEXT TEXT) BYTEA, strict immutable, Plain(bytes::decode);
    1946 "encode" (BYTEA TEXT) TEXT, strict immutable, Plain(bytes::encode);
    723 "get_bit" (BYTEA INT8) INT4, strict immutable, Plain(bytes::get_bit);
    721 "get_byte" (BYTEA INT4) INT4, strict immutable, Plain(bytes::get_byte);
    6195 "ltrim" (BYTEA BYTEA) BYTEA, strict immutable, Plain(bytes::ltrim);
    2014 "position" (BYTEA BYTEA) INT4, strict immutable, Plain(bytes::position);
    6196 "rtrim" (BYTEA BYTEA) BYTEA, strict immutable, Plain(bytes::rtrim);
    722 "set_byte" (BYTEA INT4 INT4) BYTEA, strict immutable, Plain(bytes::set_byte);
    3419 "sha224" (BYTEA) BYTEA, strict immutable, Plain(bytes::sha224);
    3420 "sha256" (BYTEA) BYTEA, strict immutable, Plain(bytes::sha256);
    3421 "sha384" (BYTEA) BYTEA, strict immutable, Plain(bytes::sha384);
    3422 "sha512" (BYTEA) BYTEA, strict immutable, Plain(bytes::sha512);
    2085 "substr" (BYTEA INT4 INT4) BYTEA, strict immutable, Plain(bytes::substring);
    2086 "substr" (BYTEA INT4) BYTEA, strict immutable, Plain(bytes::substring);
    2012 "substring" (BYTEA INT4 INT4) BYTEA, strict immutable, Plain(bytes::substring);
    2013 "substring" (BYTEA INT4) BYTEA, strict immutable, Plain(bytes::substring);
}

// Patterns.
#[rustfmt::skip]
functions! { PATTERNS:
    1660 "bpchariclike" (BPCHAR TEXT) BOOL, strict immutable, Plain(patterns::ilike);
    1661 "bpcharicnlike" (BPCHAR TEXT) BOOL, strict immutable, Plain(patterns::not_ilike);
    1656 "bpcharicregexeq" (BPCHAR TEXT) BOOL, strict immutable, Plain(regexes::imatches);
    1657 "bpcharicregexne" (BPCHAR TEXT) BOOL, strict immutable, Plain(regexes::imatches_not);
    1631 "bpcharlike" (BPCHAR TEXT) BOOL, strict immutable, Plain(patterns::like);
    1632 "bpcharnlike" (BPCHAR TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    1658 "bpcharregexeq" (BPCHAR TEXT) BOOL, strict immutable, Plain(regexes::matches);
    1659 "bpcharregexne" (BPCHAR TEXT) BOOL, strict immutable, Plain(regexes::matches_not);
    1569 "like" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::like);
    1571 "like" (NAME TEXT) BOOL, strict immutable, Plain(patterns::like);
    1637 "like_escape" (TEXT TEXT) TEXT, strict immutable, Plain(patterns::like_escape);
    1635 "nameiclike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::ilike);
    1636 "nameicnlike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::not_ilike);
    1240 "nameicregexeq" (NAME TEXT) BOOL, strict immutable, Plain(regexes::imatches);
    1241 "nameicregexne" (NAME TEXT) BOOL, strict immutable, Plain(regexes::imatches_not);
    858 "namelike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::like);
    859 "namenlike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    79 "nameregexeq" (NAME TEXT) BOOL, strict immutable, Plain(regexes::matches);
    1252 "nameregexne" (NAME TEXT) BOOL, strict immutable, Plain(regexes::matches_not);
    1570 "notlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    1572 "notlike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    6254 "regexp_count" (TEXT TEXT) INT4, strict immutable, Plain(regexes::count);
    6255 "regexp_count" (TEXT TEXT INT4) INT4, strict immutable, Plain(regexes::count);
    6256 "regexp_count" (TEXT TEXT INT4 TEXT) INT4, strict immutable, Plain(regexes::count);
    6263 "regexp_like" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::like_regex);
    6264 "regexp_like" (TEXT TEXT TEXT) BOOL, strict immutable, Plain(regexes::like_regex);
    3396 "regexp_match" (TEXT TEXT) TEXT_ARRAY, strict immutable, Plain(regexes::first_match);
    3397 "regexp_match" (TEXT TEXT TEXT) TEXT_ARRAY, strict immutable, Plain(regexes::first_match);
    2763 "regexp_matches" (TEXT TEXT) TEXT_ARRAY, strict immutable, Set(regexes::all_matches);
    2764 "regexp_matches" (TEXT TEXT TEXT) TEXT_ARRAY, strict immutable, Set(regexes::all_matches);
    2284 "regexp_replace" (TEXT TEXT TEXT) TEXT, strict immutable, Plain(regexes::replace);
    2285 "regexp_replace" (TEXT TEXT TEXT TEXT) TEXT, strict immutable, Plain(regexes::replace);
    2767 "regexp_split_to_array" (TEXT TEXT) TEXT_ARRAY, strict immutable, Plain(regexes::split_to_array);
    2768 "regexp_split_to_array" (TEXT TEXT TEXT) TEXT_ARRAY, strict immutable, Plain(regexes::split_to_array);
    2765 "regexp_split_to_table" (TEXT TEXT) TEXT, strict immutable, Set(regexes::split_to_table);
    2766 "regexp_split_to_table" (TEXT TEXT TEXT) TEXT, strict immutable, Set(regexes::split_to_table);
    1986 "similar_to_escape" (TEXT TEXT) TEXT, strict immutable, Plain(patterns::similar_to_escape);
    1987 "similar_to_escape" (TEXT) TEXT, strict immutable, Plain(patterns::similar_to_escape);
    2073 "substring" (TEXT TEXT) TEXT, strict immutable, Plain(regexes::substring);
    2074 "substring" (TEXT TEXT TEXT) TEXT, strict immutable, Plain(regexes::substring_similar);
    1633 "texticlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::ilike);
    1634 "texticnlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::not_ilike);
    1238 "texticregexeq" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::imatches);
    1239 "texticregexne" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::imatches_not);
    850 "textlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::like);
    851 "textnlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    1254 "textregexeq" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::matches);
    1256 "textregexne" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::matches_not);
}

// Dates and times.
#[rustfmt::skip]
functions! { DATES:
    1199 "age" (TIMESTAMPTZ TIMESTAMPTZ) INTERVAL, strict immutable, Plain(dates::age);
    1386 "age" (TIMESTAMPTZ) INTERVAL, strict stable, Plain(dates::age);
    2058 "age" (TIMESTAMP TIMESTAMP) INTERVAL, strict immutable, Plain(dates::age);
    2059 "age" (TIMESTAMP) INTERVAL, strict stable, Plain(dates::age);
    6177 "date_bin" (INTERVAL TIMESTAMP TIMESTAMP) TIMESTAMP, strict immutable, Plain(moments::date_bin);
    6178 "date_bin" (INTERVAL TIMESTAMPTZ TIMESTAMPTZ) TIMESTAMPTZ, strict immutable, Plain(moments::date_bin);
    1140 "date_mi" (DATE DATE) INT4, strict immutable, Plain(dates::days_between);
    2072 "date_mi_interval" (DATE INTERVAL) TIMESTAMP, strict immutable, Plain(dates::sub_interval);
    1142 "date_mii" (DATE INT4) DATE, strict immutable, Plain(dates::sub_days);
    1171 "date_part" (TEXT TIMESTAMPTZ) FLOAT8, strict stable, Plain(parts::date_part);
    1172 "date_part" (TEXT INTERVAL) FLOAT8, strict immutable, Plain(parts::date_part);
    1273 "date_part" (TEXT TIMETZ) FLOAT8, strict immutable, Plain(parts::date_part);
    1385 "date_part" (TEXT TIME) FLOAT8, strict immutable, Plain(parts::date_part);
    2021 "date_part" (TEXT TIMESTAMP) FLOAT8, strict immutable, Plain(parts::date_part);
    2071 "date_pl_interval" (DATE INTERVAL) TIMESTAMP, strict immutable, Plain(dates::add_interval);
    1141 "date_pli" (DATE INT4) DATE, strict immutable, Plain(dates::add_days);
    1217 "date_trunc" (TEXT TIMESTAMPTZ) TIMESTAMPTZ, strict stable, Plain(parts::date_trunc);
    1218 "date_trunc" (TEXT INTERVAL) INTERVAL, strict immutable, Plain(parts::date_trunc);
    1284 "date_trunc" (TEXT TIMESTAMPTZ TEXT) TIMESTAMPTZ, strict stable, Plain(parts::date_trunc);
    2020 "date_trunc" (TEXT TIMESTAMP) TIMESTAMP, strict immutable, Plain(parts::date_trunc);
    6199 "extract" (TEXT DATE) NUMERIC, strict immutable, Plain(parts::extract);
    6200 "extract" (TEXT TIME) NUMERIC, strict immutable, Plain(parts::extract);
    6201 "extract" (TEXT TIMETZ) NUMERIC, strict immutable, Plain(parts::extract);
    6202 "extract" (TEXT TIMESTAMP) NUMERIC, strict immutable, Plain(parts::extract);
    6203 "extract" (TEXT TIMESTAMPTZ) NUMERIC, strict stable, Plain(parts::extract);
    6204 "extract" (TEXT INTERVAL) NUMERIC, strict immutable, Plain(parts::extract);
    2550 "integer_pl_date" (INT4 DATE) DATE, strict immutable, Plain(dates::add_days);
    1326 "interval_div" (INTERVAL FLOAT8) INTERVAL, strict immutable, Plain(dates::div);
    1170 "interval_mi" (INTERVAL INTERVAL) INTERVAL, strict immutable, Plain(dates::sub);
    1618 "interval_mul" (INTERVAL FLOAT8) INTERVAL, strict immutable, Plain(dates::mul);
    1169 "interval_pl" (INTERVAL INTERVAL) INTERVAL, strict immutable, Plain(dates::add);
    2546 "interval_pl_date" (INTERVAL DATE) TIMESTAMP, strict immutable, Plain(dates::add_interval);
    1848 "interval_pl_time" (INTERVAL TIME) TIME, strict immutable, Plain(dates::add_interval);
    2548 "interval_pl_timestamp" (INTERVAL TIMESTAMP) TIMESTAMP, strict immutable, Plain(dates::add_interval);
    2549 "interval_pl_timestamptz" (INTERVAL TIMESTAMPTZ) TIMESTAMPTZ, strict stable, Plain(dates::add_interval);
    2547 "interval_pl_timetz" (INTERVAL TIMETZ) TIMETZ, strict immutable, Plain(dates::add_interval);
    1168 "interval_um" (INTERVAL) INTERVAL, strict immutable, Plain(dates::neg);
    1373 "isfinite" (DATE) BOOL, strict immutable, Plain(moments::is_finite);
    1389 "isfinite" (TIMESTAMPTZ) BOOL, strict immutable, Plain(moments::is_finite);
    1390 "isfinite" (INTERVAL) BOOL, strict immutable, Plain(moments::is_finite);
    2048 "isfinite" (TIMESTAMP) BOOL, strict immutable, Plain(moments::is_finite);
    1295 "justify_days" (INTERVAL) INTERVAL, strict immutable, Plain(dates::justify_days);
    1175 "justify_hours" (INTERVAL) INTERVAL, strict immutable, Plain(dates::justify_hours);
    2711 "justify_interval" (INTERVAL) INTERVAL, strict immutable, Plain(dates::justify_interval);
    3846 "make_date" (INT4 INT4 INT4) DATE, strict immutable, Plain(moments::make_date);
    3464 "make_interval" (INT4 INT4 INT4 INT4 INT4 INT4 FLOAT8) INTERVAL, strict immutable, Plain(moments::make_interval), [Datum::Int4(0), Datum::Int4(0), Datum::Int4(0), Datum::Int4(0), Datum::Int4(0), Datum::Int4(0), Datum::Float8(0.0)];
    3847 "make_time" (INT4 INT4 FLOAT8) TIME, strict immutable, Plain(moments::make_time);
    3461 "make_timestamp" (INT4 INT4 INT4 INT4 INT4 FLOAT8) TIMESTAMP, strict immutable, Plain(moments::make_timestamp);
    3462 "make_timestamptz" (INT4 INT4 INT4 INT4 INT4 FLOAT8) TIMESTAMPTZ, strict stable, Plain(moments::make_timestamptz);
    3463 "make_timestamptz" (INT4 INT4 INT4 INT4 INT4 FLOAT8 TEXT) TIMESTAMPTZ, strict stable, Plain(moments::make_timestamptz);
    1624 "mul_d_interval" (FLOAT8 INTERVAL) INTERVAL, strict immutable, Plain(dates::mul);
    1271 "overlaps" (TIMETZ TIMETZ TIMETZ TIMETZ) BOOL, nullable immutable, Plain(dates::overlaps);
    1304 "overlaps" (TIMESTAMPTZ TIMESTAMPTZ TIMESTAMPTZ TIMESTAMPTZ) BOOL, nullable immutable, Plain(dates::overlaps);
    1308 "overlaps" (TIME TIME TIME TIME) BOOL, nullable immutable, Plain(dates::overlaps);
    2041 "overlaps" (TIMESTAMP TIMESTAMP TIMESTAMP TIMESTAMP) BOOL, nullable immutable, Plain(dates::overlaps);
    1748 "time_mi_interval" (TIME INTERVAL) TIME, strict immutable, Plain(dates::sub_interval);
    1690 "time_mi_time" (TIME TIME) INTERVAL, strict immutable, Plain(dates::time_between);
    1747 "time_pl_interval" (TIME INTERVAL) TIME, strict immutable, Plain(dates::add_interval);
    2031 "timestamp_mi" (TIMESTAMP TIMESTAMP) INTERVAL, strict immutable, Plain(dates::between);
    2033 "timestamp_mi_interval" (TIMESTAMP INTERVAL) TIMESTAMP, strict immutable, Plain(dates::sub_interval);
    2032 "timestamp_pl_interval" (TIMESTAMP INTERVAL) TIMESTAMP, strict immutable, Plain(dates::add_interval);
    1188 "timestamptz_mi" (TIMESTAMPTZ TIMESTAMPTZ) INTERVAL, strict immutable, Plain(dates::between);
    1190 "timestamptz_mi_interval" (TIMESTAMPTZ INTERVAL) TIMESTAMPTZ, strict stable, Plain(dates::sub_interval);
    1189 "timestamptz_pl_interval" (TIMESTAMPTZ INTERVAL) TIMESTAMPTZ, strict stable, Plain(dates::add_interval);
    1750 "timetz_mi_interval" (TIMETZ INTERVAL) TIMETZ, strict immutable, Plain(dates::sub_interval);
    1749 "timetz_pl_interval" (TIMETZ INTERVAL) TIMETZ, strict immutable, Plain(dates::add_interval);
    1026 "timezone" (INTERVAL TIMESTAMPTZ) TIMESTAMP, strict immutable, Plain(moments::at_zone);
    1159 "timezone" (TEXT TIMESTAMPTZ) TIMESTAMP, strict immutable, Plain(moments::at_zone);
    2037 "timezone" (TEXT TIMETZ) TIMETZ, strict stable, Plain(moments::at_zone);
    2038 "timezone" (INTERVAL TIMETZ) TIMETZ, strict immutable, Plain(moments::at_zone);
    2069 "timezone" (TEXT TIMESTAMP) TIMESTAMPTZ, strict immutable, Plain(moments::at_zone);
    2070 "timezone" (INTERVAL TIMESTAMP) TIMESTAMPTZ, strict immutable, Plain(moments::at_zone);
    1158 "to_timestamp" (FLOAT8) TIMESTAMPTZ, strict immutable, Plain(moments::from_epoch);
}

// Formats.
#[rustfmt::skip]
functions! { FORMATS:
    1768 "to_char" (INTERVAL TEXT) TEXT, strict stable, Plain(formats::dates::interval);
    1770 "to_char" (TIMESTAMPTZ TEXT) TEXT, strict stable, Plain(formats::dates::timestamp);
    1772 "to_char" (NUMERIC TEXT) TEXT, strict stable, Plain(formats::numbers::number);
    1773 "to_char" (INT4 TEXT) TEXT, strict stable, Plain(formats::numbers::number);
    1774 "to_char" (INT8 TEXT) TEXT, strict stable, Plain(formats::numbers::number);
    1775 "to_char" (FLOAT4 TEXT) TEXT, strict stable, Plain(formats::numbers::number);
    1776 "to_char" (FLOAT8 TEXT) TEXT, strict stable, Plain(formats::numbers::number);
    2049 "to_char" (TIMESTAMP TEXT) TEXT, strict stable, Plain(formats::dates::timestamp);
    1780 "to_date" (TEXT TEXT) DATE, strict stable, Plain(formats::reading::to_date);
    1777 "to_number" (TEXT TEXT) NUMERIC, strict stable, Plain(formats::numbers::to_number);
    1778 "to_timestamp" (TEXT TEXT) TIMESTAMPTZ, strict stable, Plain(formats::reading::to_timestamp);
}

// Arrays.
#[rustfmt::skip]
functions! { ARRAYS:
    378 "array_append" (ANY_COMPATIBLE_ARRAY ANY_COMPATIBLE) ANY_COMPATIBLE_ARRAY, nullable immutable, Plain(arrays::append);
    383 "array_cat" (ANY_COMPATIBLE_ARRAY ANY_COMPATIBLE_ARRAY) ANY_COMPATIBLE_ARRAY, nullable immutable, Plain(arrays::concat);
    747 "array_dims" (ANY_ARRAY) TEXT, strict immutable, Plain(arrays::bounds);
    1193 "array_fill" (ANY_ELEMENT INT4_ARRAY) ANY_ARRAY, nullable immutable, Plain(arrays::fill);
    1286 "array_fill" (ANY_ELEMENT INT4_ARRAY INT4_ARRAY) ANY_ARRAY, nullable immutable, Plain(arrays::fill);
    2176 "array_length" (ANY_ARRAY INT4) INT4, strict immutable, Plain(arrays::length);
    2091 "array_lower" (ANY_ARRAY INT4) INT4, strict immutable, Plain(arrays::lower);
    748 "array_ndims" (ANY_ARRAY) INT4, strict immutable, Plain(arrays::dimensions);
    3277 "array_position" (ANY_COMPATIBLE_ARRAY ANY_COMPATIBLE) INT4, nullable immutable, Plain(arrays::position);
    3278 "array_position" (ANY_COMPATIBLE_ARRAY ANY_COMPATIBLE INT4) INT4, nullable immutable, Plain(arrays::position);
    3279 "array_positions" (ANY_COMPATIBLE_ARRAY ANY_COMPATIBLE) INT4_ARRAY, nullable immutable, Plain(arrays::positions);
    379 "array_prepend" (ANY_COMPATIBLE ANY_COMPATIBLE_ARRAY) ANY_COMPATIBLE_ARRAY, nullable immutable, Plain(arrays::prepend);
    3167 "array_remove" (ANY_COMPATIBLE_ARRAY ANY_COMPATIBLE) ANY_COMPATIBLE_ARRAY, nullable immutable, Plain(arrays::remove);
    3168 "array_replace" (ANY_COMPATIBLE_ARRAY ANY_COMPATIBLE ANY_COMPATIBLE) ANY_COMPATIBLE_ARRAY, nullable immutable, Plain(arrays::replace);
    2092 "array_upper" (ANY_ARRAY INT4) INT4, strict immutable, Plain(arrays::upper);
    2749 "arraycontained" (ANY_ARRAY ANY_ARRAY) BOOL, strict immutable, Plain(arrays::contained);
    2748 "arraycontains" (ANY_ARRAY ANY_ARRAY) BOOL, strict immutable, Plain(arrays::contains);
    2747 "arrayoverlap" (ANY_ARRAY ANY_ARRAY) BOOL, strict immutable, Plain(arrays::overlaps);
    3179 "cardinality" (ANY_ARRAY) INT4, strict immutable, Plain(arrays::cardinality);
    6172 "trim_array" (ANY_ARRAY INT4) ANY_ARRAY, strict immutable, Plain(arrays::trim);
}

// Sets.
#[rustfmt::skip]
functions! { SETS:
    938 "generate_series" (TIMESTAMP TIMESTAMP INTERVAL) TIMESTAMP, strict immutable, Set(sets::timestamps);
    939 "generate_series" (TIMESTAMPTZ TIMESTAMPTZ INTERVAL) TIMESTAMPTZ, strict stable, Set(sets::timestamps);
    1066 "generate_series" (INT4 INT4 INT4) INT4, strict immutable, Set(sets::integers);
    1067 "generate_series" (INT4 INT4) INT4, strict immutable, Set(sets::integers);
    1068 "generate_series" (INT8 INT8 INT8) INT8, strict immutable, Set(sets::integers);
    1069 "generate_series" (INT8 INT8) INT8, strict immutable, Set(sets::integers);
    3259 "generate_series" (NUMERIC NUMERIC NUMERIC) NUMERIC, strict immutable, Set(sets::numerics);
    3260 "generate_series" (NUMERIC NUMERIC) NUMERIC, strict immutable, Set(sets::numerics);
    1191 "generate_subscripts" (ANY_ARRAY INT4 BOOL) INT4, strict immutable, Set(sets::subscripts);
    1192 "generate_subscripts" (ANY_ARRAY INT4) INT4, strict immutable, Set(sets::subscripts);
    6160 "string_to_table" (TEXT TEXT) TEXT, nullable immutable, Set(sets::string_parts);
    6161 "string_to_table" (TEXT TEXT TEXT) TEXT, nullable immutable, Set(sets::string_parts);
    2331 "unnest" (ANY_ARRAY) ANY_ELEMENT, strict immutable, Set(sets::unnest);
}

// The session and any type.
#[rustfmt::skip]
functions! { SYSTEM:
    2649 "clock_timestamp" () TIMESTAMPTZ, strict volatile, Plain(system::clock);
    861 "current_database" () NAME, strict stable, Plain(system::database);
    1402 "current_schema" () NAME, strict stable, Plain(system::schema);
    1403 "current_schemas" (BOOL) NAME_ARRAY, strict stable, Plain(system::schema_list);
    2077 "current_setting" (TEXT) TEXT, strict stable, Plain(system::setting);
    3294 "current_setting" (TEXT BOOL) TEXT, strict stable, Plain(system::setting);
    745 "current_user" () NAME, strict stable, Plain(system::user);
    1081 "format_type" (OID INT4) TEXT, nullable stable, Plain(system::format_type);
    3432 "gen_random_uuid" () UUID, strict volatile, Plain(system::random_uuid);
    1039 "getdatabaseencoding" () NAME, strict stable, Plain(system::encoding);
    710 "getpgusername" () NAME, strict stable, Plain(system::user);
    1299 "now" () TIMESTAMPTZ, strict stable, Plain(system::now);
    440 "num_nonnulls" (ANY) INT4, nullable immutable variadic, Plain(system::non_nulls);
    438 "num_nulls" (ANY) INT4, nullable immutable variadic, Plain(system::nulls);
    2026 "pg_backend_pid" () INT4, strict stable, Plain(system::backend);
    810 "pg_client_encoding" () NAME, strict stable, Plain(system::encoding);
    1597 "pg_encoding_to_char" (INT4) NAME, strict stable, Plain(system::encoding_name);
    3810 "pg_is_in_recovery" () BOOL, strict volatile, Plain(system::no);
    2288 "pg_size_pretty" (INT8) TEXT, strict immutable, Plain(system::size_pretty);
    1619 "pg_typeof" (ANY) REGTYPE, nullable stable, Plain(system::type_of);
    746 "session_user" () NAME, strict stable, Plain(system::user);
    2078 "set_config" (TEXT TEXT BOOL) TEXT, nullable volatile, Plain(system::set_setting);
    2648 "statement_timestamp" () TIMESTAMPTZ, strict stable, Plain(system::statement_time);
    3493 "to_regtype" (TEXT) REGTYPE, strict stable, Plain(system::to_regtype);
    2647 "transaction_timestamp" () TIMESTAMPTZ, strict stable, Plain(system::now);
    89 "version" () TEXT, strict stable, Plain(system::version);
}

// Aggregates.
#[rustfmt::skip]
functions! { AGGREGATES:
    2335 "array_agg" (ANY_NONARRAY) ANY_ARRAY, nullable immutable, Aggregate(Kind::Collect);
    4053 "array_agg" (ANY_ARRAY) ANY_ARRAY, nullable immutable, Aggregate(Kind::Collect);
    2100 "avg" (INT8) NUMERIC, nullable immutable, Aggregate(Kind::Average);
    2101 "avg" (INT4) NUMERIC, nullable immutable, Aggregate(Kind::Average);
    2102 "avg" (INT2) NUMERIC, nullable immutable, Aggregate(Kind::Average);
    2103 "avg" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::Average);
    2104 "avg" (FLOAT4) FLOAT8, nullable immutable, Aggregate(Kind::Average);
    2105 "avg" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::Average);
    2106 "avg" (INTERVAL) INTERVAL, nullable immutable, Aggregate(Kind::Average);
    2236 "bit_and" (INT2) INT2, nullable immutable, Aggregate(Kind::BitAnd);
    2238 "bit_and" (INT4) INT4, nullable immutable, Aggregate(Kind::BitAnd);
    2240 "bit_and" (INT8) INT8, nullable immutable, Aggregate(Kind::BitAnd);
    2237 "bit_or" (INT2) INT2, nullable immutable, Aggregate(Kind::BitOr);
    2239 "bit_or" (INT4) INT4, nullable immutable, Aggregate(Kind::BitOr);
    2241 "bit_or" (INT8) INT8, nullable immutable, Aggregate(Kind::BitOr);
    6164 "bit_xor" (INT2) INT2, nullable immutable, Aggregate(Kind::BitXor);
    6165 "bit_xor" (INT4) INT4, nullable immutable, Aggregate(Kind::BitXor);
    6166 "bit_xor" (INT8) INT8, nullable immutable, Aggregate(Kind::BitXor);
    2517 "bool_and" (BOOL) BOOL, nullable immutable, Aggregate(Kind::All);
    2518 "bool_or" (BOOL) BOOL, nullable immutable, Aggregate(Kind::Any);
    2147 "count" (ANY) INT8, nullable immutable, Aggregate(Kind::Count);
    2803 "count" () INT8, nullable immutable, Aggregate(Kind::Count);
    2519 "every" (BOOL) BOOL, nullable immutable, Aggregate(Kind::All);
    2050 "max" (ANY_ARRAY) ANY_ARRAY, nullable immutable, Aggregate(Kind::Greatest);
    2115 "max" (INT8) INT8, nullable immutable, Aggregate(Kind::Greatest);
    2116 "max" (INT4) INT4, nullable immutable, Aggregate(Kind::Greatest);
    2117 "max" (INT2) INT2, nullable immutable, Aggregate(Kind::Greatest);
    2118 "max" (OID) OID, nullable immutable, Aggregate(Kind::Greatest);
    2119 "max" (FLOAT4) FLOAT4, nullable immutable, Aggregate(Kind::Greatest);
    2120 "max" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::Greatest);
    2122 "max" (DATE) DATE, nullable immutable, Aggregate(Kind::Greatest);
    2123 "max" (TIME) TIME, nullable immutable, Aggregate(Kind::Greatest);
    2124 "max" (TIMETZ) TIMETZ, nullable immutable, Aggregate(Kind::Greatest);
    2126 "max" (TIMESTAMP) TIMESTAMP, nullable immutable, Aggregate(Kind::Greatest);
    2127 "max" (TIMESTAMPTZ) TIMESTAMPTZ, nullable immutable, Aggregate(Kind::Greatest);
    2128 "max" (INTERVAL) INTERVAL, nullable immutable, Aggregate(Kind::Greatest);
    2129 "max" (TEXT) TEXT, nullable immutable, Aggregate(Kind::Greatest);
    2130 "max" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::Greatest);
    2244 "max" (BPCHAR) BPCHAR, nullable immutable, Aggregate(Kind::Greatest);
    2051 "min" (ANY_ARRAY) ANY_ARRAY, nullable immutable, Aggregate(Kind::Least);
    2131 "min" (INT8) INT8, nullable immutable, Aggregate(Kind::Least);
    2132 "min" (INT4) INT4, nullable immutable, Aggregate(Kind::Least);
    2133 "min" (INT2) INT2, nullable immutable, Aggregate(Kind::Least);
    2134 "min" (OID) OID, nullable immutable, Aggregate(Kind::Least);
    2135 "min" (FLOAT4) FLOAT4, nullable immutable, Aggregate(Kind::Least);
    2136 "min" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::Least);
    2138 "min" (DATE) DATE, nullable immutable, Aggregate(Kind::Least);
    2139 "min" (TIME) TIME, nullable immutable, Aggregate(Kind::Least);
    2140 "min" (TIMETZ) TIMETZ, nullable immutable, Aggregate(Kind::Least);
    2142 "min" (TIMESTAMP) TIMESTAMP, nullable immutable, Aggregate(Kind::Least);
    2143 "min" (TIMESTAMPTZ) TIMESTAMPTZ, nullable immutable, Aggregate(Kind::Least);
    2144 "min" (INTERVAL) INTERVAL, nullable immutable, Aggregate(Kind::Least);
    2145 "min" (TEXT) TEXT, nullable immutable, Aggregate(Kind::Least);
    2146 "min" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::Least);
    2245 "min" (BPCHAR) BPCHAR, nullable immutable, Aggregate(Kind::Least);
    2154 "stddev" (INT8) NUMERIC, nullable immutable, Aggregate(Kind::Deviation);
    2155 "stddev" (INT4) NUMERIC, nullable immutable, Aggregate(Kind::Deviation);
    2156 "stddev" (INT2) NUMERIC, nullable immutable, Aggregate(Kind::Deviation);
    2157 "stddev" (FLOAT4) FLOAT8, nullable immutable, Aggregate(Kind::Deviation);
    2158 "stddev" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::Deviation);
    2159 "stddev" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::Deviation);
    2724 "stddev_pop" (INT8) NUMERIC, nullable immutable, Aggregate(Kind::DeviationPopulation);
    2725 "stddev_pop" (INT4) NUMERIC, nullable immutable, Aggregate(Kind::DeviationPopulation);
    2726 "stddev_pop" (INT2) NUMERIC, nullable immutable, Aggregate(Kind::DeviationPopulation);
    2727 "stddev_pop" (FLOAT4) FLOAT8, nullable immutable, Aggregate(Kind::DeviationPopulation);
    2728 "stddev_pop" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::DeviationPopulation);
    2729 "stddev_pop" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::DeviationPopulation);
    2712 "stddev_samp" (INT8) NUMERIC, nullable immutable, Aggregate(Kind::Deviation);
    2713 "stddev_samp" (INT4) NUMERIC, nullable immutable, Aggregate(Kind::Deviation);
    2714 "stddev_samp" (INT2) NUMERIC, nullable immutable, Aggregate(Kind::Deviation);
    2715 "stddev_samp" (FLOAT4) FLOAT8, nullable immutable, Aggregate(Kind::Deviation);
    2716 "stddev_samp" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::Deviation);
    2717 "stddev_samp" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::Deviation);
    3538 "string_agg" (TEXT TEXT) TEXT, nullable immutable, Aggregate(Kind::Join);
    3545 "string_agg" (BYTEA BYTEA) BYTEA, nullable immutable, Aggregate(Kind::Join);
    2107 "sum" (INT8) NUMERIC, nullable immutable, Aggregate(Kind::Sum);
    2108 "sum" (INT4) INT8, nullable immutable, Aggregate(Kind::Sum);
    2109 "sum" (INT2) INT8, nullable immutable, Aggregate(Kind::Sum);
    2110 "sum" (FLOAT4) FLOAT4, nullable immutable, Aggregate(Kind::Sum);
    2111 "sum" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::Sum);
    2113 "sum" (INTERVAL) INTERVAL, nullable immutable, Aggregate(Kind::Sum);
    2114 "sum" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::Sum);
    2718 "var_pop" (INT8) NUMERIC, nullable immutable, Aggregate(Kind::VariancePopulation);
    2719 "var_pop" (INT4) NUMERIC, nullable immutable, Aggregate(Kind::VariancePopulation);
    2720 "var_pop" (INT2) NUMERIC, nullable immutable, Aggregate(Kind::VariancePopulation);
    2721 "var_pop" (FLOAT4) FLOAT8, nullable immutable, Aggregate(Kind::VariancePopulation);
    2722 "var_pop" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::VariancePopulation);
    2723 "var_pop" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::VariancePopulation);
    2641 "var_samp" (INT8) NUMERIC, nullable immutable, Aggregate(Kind::Variance);
    2642 "var_samp" (INT4) NUMERIC, nullable immutable, Aggregate(Kind::Variance);
    2643 "var_samp" (INT2) NUMERIC, nullable immutable, Aggregate(Kind::Variance);
    2644 "var_samp" (FLOAT4) FLOAT8, nullable immutable, Aggregate(Kind::Variance);
    2645 "var_samp" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::Variance);
    2646 "var_samp" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::Variance);
    2148 "variance" (INT8) NUMERIC, nullable immutable, Aggregate(Kind::Variance);
    2149 "variance" (INT4) NUMERIC, nullable immutable, Aggregate(Kind::Variance);
    2150 "variance" (INT2) NUMERIC, nullable immutable, Aggregate(Kind::Variance);
    2151 "variance" (FLOAT4) FLOAT8, nullable immutable, Aggregate(Kind::Variance);
    2152 "variance" (FLOAT8) FLOAT8, nullable immutable, Aggregate(Kind::Variance);
    2153 "variance" (NUMERIC) NUMERIC, nullable immutable, Aggregate(Kind::Variance);
}
