//! Arrays, sets, and what the session knows.

use crate::functions::Body::{Plain, Session, Set};
use crate::functions::{Asks, Function, Volatility, arrays, json, sets, system};
use crate::types::Oid;

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

#[rustfmt::skip]
functions! { SEQUENCES:
    1 "pg_sequence_state" (TEXT INT4) INT8, strict volatile, Session(Asks::SequenceState);
    1575 "currval" (REGCLASS) INT8, strict volatile, Session(Asks::CurrentNumber);
    2559 "lastval" () INT8, strict volatile, Session(Asks::LastNumber);
    1574 "nextval" (REGCLASS) INT8, strict volatile, Session(Asks::NextNumber);
    1665 "pg_get_serial_sequence" (TEXT TEXT) TEXT, strict stable, Session(Asks::SequenceOf);
    1576 "setval" (REGCLASS INT8) INT8, strict volatile, Session(Asks::SetNumber);
    1765 "setval" (REGCLASS INT8 BOOL) INT8, strict volatile, Session(Asks::SetNumber);
}

#[rustfmt::skip]
functions! { SYSTEM:
    2649 "clock_timestamp" () TIMESTAMPTZ, strict volatile, Plain(system::clock);
    861 "current_database" () NAME, strict stable, Plain(system::database);
    1402 "current_schema" () NAME, strict stable, Plain(system::schema);
    1403 "current_schemas" (BOOL) NAME_ARRAY, strict stable, Plain(system::schema_list);
    2077 "current_setting" (TEXT) TEXT, strict stable, Plain(system::setting);
    3294 "current_setting" (TEXT BOOL) TEXT, strict stable, Plain(system::setting);
    745 "current_user" () NAME, strict stable, Plain(system::user);
    3432 "gen_random_uuid" () UUID, strict volatile, Plain(system::random_uuid);
    1039 "getdatabaseencoding" () NAME, strict stable, Plain(system::encoding);
    710 "getpgusername" () NAME, strict stable, Plain(system::user);
    1299 "now" () TIMESTAMPTZ, strict stable, Plain(system::now);
    440 "num_nonnulls" (ANY) INT4, nullable immutable variadic, Plain(system::non_nulls);
    438 "num_nulls" (ANY) INT4, nullable immutable variadic, Plain(system::nulls);
    3200 "json_build_object" (ANY) JSON, nullable stable variadic, Plain(json::build_object);
    3201 "json_build_object" () JSON, nullable stable, Plain(json::build_object);
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
