//! The text forms of values, and what type modifiers keep of them.

use std::sync::Arc;

use super::time::{self, Interval, read, write};
use super::{Datum, Numeric, Oid, Style, array, bytes, float};
use crate::{SqlError, SqlState};

/// Reads a value as a literal or a client writes it.
pub fn parse(oid: Oid, text: &str, style: &Style) -> Result<Datum, SqlError> {
    parse_modified(oid, -1, text, style)
}

/// The error of a text that is not of a type.
pub fn invalid(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {type_name}: \"{text}\""),
    )
}

/// Reads a value for a column or a cast with a modifier (`numeric(10,2)`).
pub fn parse_modified(oid: Oid, modifier: i32, text: &str, style: &Style) -> Result<Datum, SqlError> {
    if text.contains('\0') {
        return Err(SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    let value = match oid {
        Oid::BOOL => Datum::Bool(parse_bool(text).ok_or_else(|| invalid("boolean", text))?),
        Oid::INT2 => Datum::Int2(parse_integer(text, "smallint")?),
        Oid::INT4 => Datum::Int4(parse_integer(text, "integer")?),
        Oid::INT8 => Datum::Int8(parse_integer(text, "bigint")?),
        Oid::OID => Datum::Oid(parse_oid(text)?),
        Oid::XID | Oid::CID => Datum::Oid(parse_oid(text).map_err(|_| invalid(&oid.display(), text))?),
        _ if oid.is_reference() => Datum::Oid(parse_reference(oid, text, style)?),
        Oid::INT2VECTOR | Oid::OIDVECTOR => return array::parse_vector(oid, text, style),
        Oid::FLOAT4 => Datum::Float4(float::parse4(text)?),
        Oid::FLOAT8 => Datum::Float8(float::parse8(text)?),
        Oid::NUMERIC => Datum::Numeric(Numeric::parse(text)?),
        Oid::TEXT | Oid::VARCHAR | Oid::BPCHAR | Oid::UNKNOWN | Oid::CSTRING => Datum::string(oid, text),
        Oid::NAME => Datum::text(cut_name(text)),
        Oid::CHAR => Datum::Char(text.bytes().next().unwrap_or(0)),
        Oid::BYTEA => Datum::Bytes(bytes::parse(text)?.into()),
        Oid::DATE => Datum::Date(read::date(text, style)?),
        Oid::TIME => Datum::Time(read::time(text, style, false)?.0),
        Oid::TIMETZ => {
            let (us, west_s) = read::time(text, style, true)?;
            Datum::TimeTz(us, west_s)
        }
        Oid::TIMESTAMP => Datum::Timestamp(read::timestamp(text, style, false)?),
        Oid::TIMESTAMPTZ => Datum::TimestampTz(read::timestamp(text, style, true)?),
        Oid::INTERVAL => return Ok(Datum::Interval(Interval::parse(text, modifier, style)?)),
        Oid::UUID => Datum::Uuid(parse_uuid(text).ok_or_else(|| invalid("uuid", text))?),
        Oid::VOID => Datum::text(""),
        Oid::RECORD => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "input of anonymous composite types is not implemented",
            ));
        }
        _ => match oid.element() {
            Some(element) => return array::parse(element, modifier, text, style),
            None => return Err(no_form(oid)),
        },
    };
    if modifier < 0 { Ok(value) } else { fit(value, oid, modifier, false) }
}

fn no_form(oid: Oid) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("values of type {} are not supported yet", oid.display()),
    )
}

/// What a modifier keeps of a value. `explicit`: a cast, which cuts strings in silence.
pub fn fit(value: Datum, oid: Oid, modifier: i32, explicit: bool) -> Result<Datum, SqlError> {
    if modifier < 0 {
        return Ok(match value {
            Datum::Text(text) if oid == Oid::BPCHAR => Datum::Bpchar(text),
            other => other,
        });
    }
    Ok(match value {
        Datum::Text(text) | Datum::Bpchar(text) if oid == Oid::VARCHAR || oid == Oid::BPCHAR => {
            let length = usize::try_from(modifier - 4).unwrap_or(0);
            Datum::string(oid, fit_text(text, oid, length, explicit)?)
        }
        Datum::Numeric(number) => Datum::Numeric(number.fit(modifier)?),
        Datum::Time(us) => Datum::Time(time::round_us(us, modifier)),
        Datum::TimeTz(us, zone) => Datum::TimeTz(time::round_us(us, modifier), zone),
        Datum::Timestamp(us) => Datum::Timestamp(time::round_us(us, modifier)),
        Datum::TimestampTz(us) => Datum::TimestampTz(time::round_us(us, modifier)),
        Datum::Interval(interval) => Datum::Interval(interval.fit(modifier)),
        Datum::Array(array) => {
            // An array of `text` stands for one of `varchar` as it is.
            let of = oid.element().unwrap_or(array.element);
            let mut array = (*array).clone();
            for element in &mut array.elements {
                *element = fit(std::mem::replace(element, Datum::Null), of, modifier, explicit)?;
            }
            Datum::Array(Arc::new(array))
        }
        other => other,
    })
}

/// A string filled up with blanks to as many characters, if it has fewer.
pub fn padded(text: Arc<str>, length: usize) -> Arc<str> {
    let missing = length.saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    let mut filled = String::with_capacity(text.len() + missing);
    filled.push_str(&text);
    filled.extend(std::iter::repeat_n(' ', missing));
    filled.into()
}

fn fit_text(text: Arc<str>, oid: Oid, length: usize, explicit: bool) -> Result<Arc<str>, SqlError> {
    if text.chars().count() <= length {
        return Ok(if oid == Oid::BPCHAR { padded(text, length) } else { text });
    }
    let end = text.char_indices().nth(length).map_or(text.len(), |(place, _)| place);
    let (kept, lost) = text.split_at(end);
    if !explicit && lost.contains(|c| c != ' ') {
        return Err(SqlError::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("value too long for type {}({length})", oid.display()),
        ));
    }
    Ok(kept.into())
}

/// The first 63 bytes of a name, whole characters of them.
pub fn cut_name(text: &str) -> &str {
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
}

fn parse_bool(text: &str) -> Option<bool> {
    let word = trimmed(text).to_ascii_lowercase();
    let begins = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || word == "on" || word == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        Some(false)
    } else {
        None
    }
}

fn parse_integer<T: TryFrom<i64>>(text: &str, type_name: &str) -> Result<T, SqlError> {
    let body = trimmed(text);
    let digits = body.strip_prefix(['+', '-']).unwrap_or(body);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(type_name, text));
    }
    body.parse::<i64>().ok().and_then(|value| T::try_from(value).ok()).ok_or_else(|| {
        SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type {type_name}"),
        )
    })
}

fn parse_oid(text: &str) -> Result<u32, SqlError> {
    let body = trimmed(text);
    let digits = body.strip_prefix(['+', '-']).unwrap_or(body);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid("oid", text));
    }
    let value = body.parse::<i64>().ok().filter(|value| *value >= i64::from(i32::MIN));
    let value =
        value.map(|value| value.rem_euclid(1 << 32).max(value)).and_then(|value| u32::try_from(value).ok());
    value.ok_or_else(|| {
        SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type oid"),
        )
    })
}

/// What a name or a number identifies, for `regclass` and its kin.
fn parse_reference(oid: Oid, text: &str, style: &Style) -> Result<u32, SqlError> {
    let body = trimmed(text);
    if body == "-" {
        return Ok(0);
    }
    if !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_digit()) {
        return parse_oid(body);
    }
    match (oid, &style.names) {
        (Oid::REGTYPE, names) => parse_type_name(text).or_else(|error| match names {
            Some(names) => names.oid_of(oid, body),
            None => Err(error),
        }),
        (_, Some(names)) => names.oid_of(oid, body),
        (_, None) => Err(no_form(oid)),
    }
}

/// The type of a name in SQL or in the catalog, for `regtype`.
fn parse_type_name(text: &str) -> Result<u32, SqlError> {
    let name = trimmed(text).to_ascii_lowercase();
    if let Ok(oid) = name.parse() {
        return Ok(oid);
    }
    let (base, is_array) = match name.strip_suffix("[]") {
        Some(base) => (base.to_owned(), true),
        None => (name, false),
    };
    let base = base.strip_prefix("pg_catalog.").unwrap_or(&base);
    let by_display = match base {
        "int" => Some(Oid::INT4),
        "float" => Some(Oid::FLOAT8),
        "decimal" | "dec" => Some(Oid::NUMERIC),
        "char" => Some(Oid::BPCHAR),
        "timestamp" => Some(Oid::TIMESTAMP),
        _ => Oid::displayed(base).or_else(|| Oid::named(base)),
    };
    let found = by_display.and_then(|oid| if is_array { oid.array() } else { Some(oid) });
    found.map(|oid| oid.0).ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{}\" does not exist", trimmed(text)))
    })
}

/// 32 hexadecimal digits, with a hyphen after any group of four, perhaps in braces.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let body = match text.strip_prefix('{') {
        Some(inside) => inside.strip_suffix('}')?,
        None => text,
    };
    let mut out = [0u8; 16];
    let mut rest = body.as_bytes();
    for (place, byte) in out.iter_mut().enumerate() {
        let [high, low, after @ ..] = rest else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = digit(*high)? << 4 | digit(*low)?;
        rest = match after {
            [b'-', after @ ..] if place % 2 == 1 && place < 15 => after,
            after => after,
        };
    }
    rest.is_empty().then_some(out)
}

/// Appends a value. NULL has no form and appends nothing.
pub fn print(datum: &Datum, oid: Oid, style: &Style, out: &mut String) -> Result<(), SqlError> {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(if *value { 't' } else { 'f' }),
        Datum::Int2(value) => out.push_str(&value.to_string()),
        Datum::Int4(value) => out.push_str(&value.to_string()),
        Datum::Int8(value) => out.push_str(&value.to_string()),
        Datum::Oid(0) if oid.is_reference() => out.push('-'),
        Datum::Oid(value)
            if oid == Oid::REGTYPE && (Oid(*value).definition().is_some() || Oid(*value).is_array()) =>
        {
            out.push_str(&Oid(*value).display());
        }
        Datum::Oid(value) if oid.is_reference() => {
            let name = style.names.as_ref().and_then(|names| names.name_of(oid, *value));
            out.push_str(&name.unwrap_or_else(|| value.to_string()));
        }
        Datum::Oid(value) => out.push_str(&value.to_string()),
        Datum::Float4(value) => float::write4(*value, style.extra_float_digits, out),
        Datum::Float8(value) => float::write8(*value, style.extra_float_digits, out),
        Datum::Numeric(number) => out.push_str(&number.to_string()),
        Datum::Text(text) | Datum::Bpchar(text) => out.push_str(text),
        Datum::Char(0) => {}
        Datum::Char(byte) => {
            if byte.is_ascii() {
                out.push(char::from(*byte));
            } else {
                out.push_str(&format!("\\{byte:03o}"));
            }
        }
        Datum::Bytes(value) if style.hex_bytes => {
            out.push_str("\\x");
            bytes::to_hex(value, out);
        }
        Datum::Bytes(value) => bytes::escape(value, out),
        Datum::Date(days) => write::date(*days, style, out),
        Datum::Time(us) => write::clock(*us, out),
        Datum::TimeTz(us, west_s) => write::time_with_zone(*us, *west_s, out),
        Datum::Timestamp(us) => write::timestamp(*us, false, style, out),
        Datum::TimestampTz(us) => write::timestamp(*us, true, style, out),
        Datum::Interval(interval) => interval.write(style, out),
        Datum::Uuid(value) => {
            for (place, byte) in value.iter().enumerate() {
                if matches!(place, 4 | 6 | 8 | 10) {
                    out.push('-');
                }
                out.push_str(&format!("{byte:02x}"));
            }
        }
        Datum::Array(value) if oid.is_vector() => array::print_vector(value, style, out)?,
        Datum::Array(value) => array::print(value, style, out)?,
        Datum::Record(fields) => print_record(fields, style, out)?,
    }
    Ok(())
}

fn print_record(fields: &[(Oid, Datum)], style: &Style, out: &mut String) -> Result<(), SqlError> {
    out.push('(');
    for (place, (oid, value)) in fields.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        if value.is_null() {
            continue;
        }
        let mut item = String::new();
        print(value, *oid, style, &mut item)?;
        let special =
            |c: char| matches!(c, '"' | '\\' | '(' | ')' | ',') || c.is_ascii_whitespace() || c == '\x0b';
        if !item.is_empty() && !item.contains(special) {
            out.push_str(&item);
            continue;
        }
        out.push('"');
        for c in item.chars() {
            if matches!(c, '"' | '\\') {
                out.push(c);
            }
            out.push(c);
        }
        out.push('"');
    }
    out.push(')');
    Ok(())
}
