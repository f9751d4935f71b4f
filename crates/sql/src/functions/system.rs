//! What a session knows of itself, and functions of any type.

use super::{Call, Outcome, refuse};
use crate::types::{Array, Datum, Oid};
use crate::{SqlError, SqlState};

/// What `version()` begins with: clients read the number.
pub const VERSION: &str = concat!("PostgreSQL 15.0 (Plimsoll ", env!("CARGO_PKG_VERSION"), ")");

/// `version()`
pub fn version(_call: &Call<'_>) -> Outcome {
    Ok(Datum::text(VERSION))
}

/// `current_user`, `session_user`
pub fn user(call: &Call<'_>) -> Outcome {
    Ok(Datum::text(call.context.catalog.user()))
}

/// `current_database()`
pub fn database(call: &Call<'_>) -> Outcome {
    Ok(Datum::text(call.context.catalog.database()))
}

/// Schemas of the search path that there are.
fn schemas(call: &Call<'_>) -> Vec<String> {
    let path = call.context.catalog.setting("search_path").unwrap_or_default();
    let names = path.split(',').map(|name| name.trim().trim_matches('"').to_owned());
    names.filter(|name| matches!(name.as_str(), "public" | "pg_catalog" | "information_schema")).collect()
}

/// `current_schema()`
pub fn schema(call: &Call<'_>) -> Outcome {
    Ok(schemas(call).into_iter().next().map_or(Datum::Null, Datum::text))
}

/// `current_schemas()`
pub fn schema_list(call: &Call<'_>) -> Outcome {
    let mut names = schemas(call);
    if call.boolean(0)? && !names.iter().any(|name| name == "pg_catalog") {
        names.insert(0, "pg_catalog".to_owned());
    }
    Ok(Array::flat(Oid::NAME, names.into_iter().map(Datum::text).collect()))
}

/// `current_setting()`
pub fn setting(call: &Call<'_>) -> Outcome {
    let name = call.text(0)?;
    match call.context.catalog.setting(name) {
        Some(value) => Ok(Datum::text(value)),
        None if call.count() > 1 && call.boolean(1)? => Ok(Datum::Null),
        None => {
            refuse(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
        }
    }
}

/// `set_config()`
pub fn set_setting(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() {
        return refuse(SqlState::NULL_VALUE_NOT_ALLOWED, "SET requires parameter name");
    }
    let value = if call.at(1).is_null() { "" } else { call.text(1)? };
    let local = !call.at(2).is_null() && call.boolean(2)?;
    call.context.catalog.set(call.text(0)?, value, local).map(Datum::text)
}

/// `pg_typeof()`
pub fn type_of(call: &Call<'_>) -> Outcome {
    Ok(Datum::Oid(call.type_of(0).0))
}

/// `pg_backend_pid()`
pub fn backend(call: &Call<'_>) -> Outcome {
    Ok(Datum::Int4(call.context.backend))
}

/// `gen_random_uuid()`: version 4.
pub fn random_uuid(call: &Call<'_>) -> Outcome {
    let bits = u128::from((call.context.random)()) << 64 | u128::from((call.context.random)());
    let version = bits & !(0xf << 76) | 4 << 76;
    Ok(Datum::Uuid((version & !(0b11 << 62) | 0b10 << 62).to_be_bytes()))
}

/// A type's name with its modifier: `numeric(10,2)`.
pub fn with_modifier(oid: Oid, modifier: i32) -> String {
    if let Some(element) = oid.element() {
        return format!("{}[]", with_modifier(element, modifier));
    }
    let name = oid.display();
    if modifier < 0 {
        // What "character" says has a length of 1.
        return if oid == Oid::BPCHAR { "bpchar".to_owned() } else { name };
    }
    match oid {
        Oid::VARCHAR | Oid::BPCHAR => format!("{name}({})", modifier - 4),
        Oid::NUMERIC => match crate::types::numeric::precision_and_scale(modifier) {
            Some((precision, scale)) => format!("{name}({precision},{scale})"),
            None => name,
        },
        Oid::TIME | Oid::TIMETZ | Oid::TIMESTAMP | Oid::TIMESTAMPTZ => match name.split_once(' ') {
            Some((first, rest)) => format!("{first}({modifier}) {rest}"),
            None => name,
        },
        _ => name,
    }
}

/// `num_nulls()`
pub fn nulls(call: &Call<'_>) -> Outcome {
    count(call.arguments.iter().filter(|value| value.is_null()).count())
}

/// `num_nonnulls()`
pub fn non_nulls(call: &Call<'_>) -> Outcome {
    count(call.arguments.iter().filter(|value| !value.is_null()).count())
}

fn count(value: usize) -> Outcome {
    i32::try_from(value).map(Datum::Int4).map_err(|_| super::out_of_range("integer"))
}

/// What is always so: this server does not recover as a standby.
pub fn no(_call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(false))
}

/// `getdatabaseencoding()`, `pg_client_encoding()`
pub fn encoding(_call: &Call<'_>) -> Outcome {
    Ok(Datum::text("UTF8"))
}

/// `pg_encoding_to_char()`
pub fn encoding_name(call: &Call<'_>) -> Outcome {
    Ok(Datum::text(match call.integer(0)? {
        0 => "SQL_ASCII",
        6 => "UTF8",
        _ => "",
    }))
}

/// `to_regtype()`
pub fn to_regtype(call: &Call<'_>) -> Outcome {
    Ok(crate::types::parse(Oid::REGTYPE, call.text(0)?, call.context.style).unwrap_or(Datum::Null))
}

/// `now()`
pub fn now(call: &Call<'_>) -> Outcome {
    Ok(Datum::TimestampTz(call.context.transaction_us))
}

/// `statement_timestamp()`, which is another time if a statement is run again as a part of its
/// transaction.
pub fn statement_time(call: &Call<'_>) -> Outcome {
    call.context.volatile.set(true);
    Ok(Datum::TimestampTz(call.context.statement_us))
}

/// `clock_timestamp()`
pub fn clock(call: &Call<'_>) -> Outcome {
    Ok(Datum::TimestampTz((call.context.clock)()))
}

/// `pg_size_pretty()` of an integer.
pub fn size_pretty(call: &Call<'_>) -> Outcome {
    let size = call.integer(0)?;
    let units = [
        ("bytes", 10 * 1024),
        ("kB", 20 * 1024 - 1),
        ("MB", 20 * 1024 - 1),
        ("GB", 20 * 1024 - 1),
        ("TB", 20 * 1024 - 1),
        ("PB", i64::MAX),
    ];
    // From kilobytes on sizes are kept doubled, so that halves round.
    let mut shown = size;
    for (place, (unit, limit)) in units.iter().enumerate() {
        if shown.saturating_abs() < *limit || *unit == "PB" {
            let rounded = if place == 0 { shown } else { (shown + shown.signum()) / 2 };
            return Ok(Datum::text(format!("{rounded} {unit}")));
        }
        shown /= if place == 0 { 512 } else { 1024 };
    }
    Err::<Datum, SqlError>(super::confused())
}
