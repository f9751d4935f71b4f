//! `json_build_object()`. JSON is made here and not looked into.

use super::{Call, Outcome, refuse};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

/// A string as JSON writes it.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Appends an argument as JSON.
fn value(call: &Call<'_>, place: usize, out: &mut String) -> Result<(), SqlError> {
    match (call.at(place), call.type_of(place)) {
        (Datum::Null, _) => out.push_str("null"),
        (Datum::Bool(value), _) => out.push_str(if *value { "true" } else { "false" }),
        (Datum::Text(text), Oid::JSON | Oid::JSONB) => out.push_str(text),
        (Datum::Array(_) | Datum::Record(_), _) => {
            return Err(crate::analyze::unsupported("an array or a row in JSON"));
        }
        (datum, oid) => {
            let shown = call.printed(place)?;
            let is_number = oid.category() == b'N' && !matches!(datum, Datum::Oid(_));
            if is_number && shown.ends_with(|c: char| c.is_ascii_digit()) {
                out.push_str(&shown);
            } else {
                quoted(&shown, out);
            }
        }
    }
    Ok(())
}

/// `json_build_object()`
pub fn build_object(call: &Call<'_>) -> Outcome {
    if !call.count().is_multiple_of(2) {
        let error = SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "argument list must have even number of elements",
        );
        return Err(
            error.hint("The arguments of json_build_object() must consist of alternating keys and values.")
        );
    }
    let mut out = String::from("{");
    for place in (0..call.count()).step_by(2) {
        if call.at(place).is_null() {
            let error = "null value not allowed for object key";
            return refuse(SqlState::NULL_VALUE_NOT_ALLOWED, error);
        }
        if place > 0 {
            out.push_str(", ");
        }
        match call.at(place) {
            Datum::Text(_) | Datum::Bpchar(_) | Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => {
                quoted(&call.printed(place)?, &mut out);
            }
            _ => return Err(crate::analyze::unsupported("a key of JSON that is neither text nor a number")),
        }
        out.push_str(" : ");
        value(call, place + 1, &mut out)?;
    }
    out.push('}');
    Ok(Datum::text(out))
}
