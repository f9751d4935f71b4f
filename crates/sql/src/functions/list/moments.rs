//! Dates, times and intervals.

use crate::functions::Body::Plain;
use crate::functions::{Function, Volatility, dates, formats, moments, parts};
use crate::types::{Datum, Oid};

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
