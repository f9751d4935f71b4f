//! Values of settings: what is accepted, how it is kept, and how it is shown.
//!
//! A value is kept as a text in the setting's own unit (`4096` for `work_mem`) and shown in the
//! largest unit that tells it exactly (`4MB`).

use super::table::{Kind, Scope, Setting, Unit};
use crate::analyze::ShownSetting;
use crate::types::Zone;
use crate::{SqlError, SqlState};

const BYTES: [(&str, i64); 5] =
    [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];

const MICROS: [(&str, i64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// What a value is kept as, or why it is refused.
pub(super) fn accept(setting: &Setting, value: &str) -> Result<String, SqlError> {
    match setting.kind {
        Kind::Bool => match boolean(value) {
            Some(on) => Ok(on_off(on)),
            None => {
                let error = format!("parameter \"{}\" requires a Boolean value", setting.name);
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error))
            }
        },
        Kind::AlwaysOn => match boolean(value) {
            Some(true) => Ok(on_off(true)),
            Some(false) => {
                let error = format!("setting \"{}\" to off is not supported", setting.name);
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error))
            }
            None => Err(invalid(setting, value)),
        },
        Kind::Int(unit, min, max) => integer(setting, value, unit, min, max),
        Kind::Real(min, max) => {
            let number: f64 = value.trim().parse().map_err(|_| invalid(setting, value))?;
            let number = if number.is_nan() { return Err(invalid(setting, value)) } else { number };
            if !(min..=max).contains(&number) {
                let (min, max) = (general(min), general(max));
                return Err(outside(setting, &general(number), &min, &max));
            }
            Ok(number.to_string())
        }
        Kind::Choice(choices) => {
            // `on` and `off` have more names where they are among the choices.
            let synonym = boolean(value).map(on_off);
            let is =
                |choice: &&&str| choice.eq_ignore_ascii_case(value) || synonym.as_deref() == Some(**choice);
            let found = choices.iter().find(is).map(|choice| (*choice).to_owned());
            found.ok_or_else(|| {
                invalid(setting, value).hint(format!("Available values: {}.", choices.join(", ")))
            })
        }
        Kind::Text | Kind::Role => Ok(value.to_owned()),
        Kind::Ascii => Ok(value
            .chars()
            .flat_map(|it| if matches!(it, ' '..='~') { vec![it] } else { vec!['?'; it.len_utf8()] })
            .collect()),
        Kind::Names => names(value)
            .map(|_| value.to_owned())
            .ok_or_else(|| invalid(setting, value).detail("List syntax is invalid.")),
        Kind::Encoding => {
            let letters = value.bytes().filter(u8::is_ascii_alphanumeric);
            let letters: Vec<u8> = letters.map(|byte| byte.to_ascii_lowercase()).collect();
            match letters.as_slice() {
                b"utf8" | b"unicode" => Ok("UTF8".to_owned()),
                b"sqlascii" => Ok("SQL_ASCII".to_owned()),
                _ => Err(invalid(setting, value)),
            }
        }
        Kind::DateStyle => date_style(setting, value),
        Kind::Zone => {
            let zone = Zone::named(value).ok_or_else(|| invalid(setting, value))?;
            Ok(zone.name().to_owned())
        }
    }
}

/// What `pg_settings` says of a setting that nobody has changed.
pub(super) fn described(setting: &Setting) -> ShownSetting {
    let in_unit = |units: &[(&'static str, i64)], own: i64| {
        units.iter().find(|(_, size)| *size == own).map(|(name, _)| *name)
    };
    let (kind, unit, choices) = match setting.kind {
        Kind::Bool | Kind::AlwaysOn => ("bool", None, None),
        Kind::Int(Unit::Bytes(own), ..) if own == 8 << 10 => ("integer", Some("8kB"), None),
        Kind::Int(Unit::Bytes(own), ..) => ("integer", in_unit(&BYTES, own), None),
        Kind::Int(Unit::Micros(own), ..) => ("integer", in_unit(&MICROS, own), None),
        Kind::Int(Unit::None, ..) => ("integer", None, None),
        Kind::Real(..) => ("real", None, None),
        Kind::Choice(choices) => ("enum", None, Some(choices)),
        _ => ("string", None, None),
    };
    let (least, greatest) = match setting.kind {
        Kind::Int(_, least, greatest) => (Some(least.to_string()), Some(greatest.to_string())),
        Kind::Real(least, greatest) => (Some(general(least)), Some(general(greatest))),
        _ => (None, None),
    };
    let context = match setting.scope {
        Scope::Session | Scope::Hidden => "user",
        Scope::Start => "postmaster",
        Scope::Fixed => "internal",
    };
    ShownSetting {
        name: setting.name,
        value: setting.default.to_owned(),
        unit,
        about: setting.about,
        context,
        kind,
        least,
        greatest,
        choices,
        default: setting.default.to_owned(),
        reset: setting.default.to_owned(),
    }
}

/// How a value that is kept is shown.
pub(super) fn show(setting: &Setting, value: &str) -> String {
    match setting.kind {
        Kind::Int(Unit::Bytes(unit), ..) => in_units(value, unit, &BYTES),
        Kind::Int(Unit::Micros(unit), ..) => in_units(value, unit, &MICROS),
        Kind::Real(..) => value.parse().map(general).unwrap_or_default(),
        _ => value.to_owned(),
    }
}

fn in_units(value: &str, unit: i64, units: &[(&str, i64)]) -> String {
    let Ok(count) = value.parse::<i64>() else { return value.to_owned() };
    if count <= 0 {
        return value.to_owned();
    }
    let total = i128::from(count) * i128::from(unit);
    let exact = units.iter().find(|(_, size)| total % i128::from(*size) == 0);
    exact.map_or_else(|| value.to_owned(), |(name, size)| format!("{}{name}", total / i128::from(*size)))
}

fn integer(setting: &Setting, value: &str, unit: Unit, min: i64, max: i64) -> Result<String, SqlError> {
    let (units, own): (&[(&str, i64)], i64) = match unit {
        Unit::None => (&[], 1),
        Unit::Bytes(own) => (&BYTES, own),
        Unit::Micros(own) => (&MICROS, own),
    };
    let trimmed = value.trim();
    let hexadecimal = trimmed.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok());
    let (number, rest) = match hexadecimal {
        Some(number) => (decimal(number), ""),
        None => number(trimmed).ok_or_else(|| invalid(setting, value))?,
    };
    let size = match rest.trim() {
        "" => own,
        name => match units.iter().find(|(unit, _)| *unit == name) {
            Some((_, size)) => *size,
            None => return Err(unit_unknown(setting, value, unit)),
        },
    };
    let count = (number * decimal(size) / decimal(own)).round_ties_even();
    let suffix = units.iter().find(|(_, size)| *size == own).map(|(name, _)| format!(" {name}"));
    let suffix = suffix.unwrap_or_default();
    if !(decimal(min)..=decimal(max)).contains(&count) {
        if !(decimal(i64::from(i32::MIN))..=decimal(i64::from(i32::MAX))).contains(&count) {
            return Err(invalid(setting, value).hint("Value exceeds integer range."));
        }
        return Err(outside(setting, &format!("{count}{suffix}"), &min.to_string(), &max.to_string()));
    }
    // Minus zero is zero.
    Ok(format!("{}", count + 0.0))
}

/// Limits and units are far below 2^53 where they matter.
#[allow(clippy::as_conversions)]
fn decimal(number: i64) -> f64 {
    number as f64
}

/// The number that a text begins with, and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let is_number = |it: char| it.is_ascii_digit() || matches!(it, '.' | '+' | '-');
    let mut end = text.find(|it| !is_number(it)).unwrap_or(text.len());
    // An exponent: `e`, perhaps a sign, digits.
    let rest = text.get(end..)?;
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let digits = exponent.trim_start_matches(['+', '-']);
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        if count > 0 {
            end += rest.len() - digits.len() + count;
        }
    }
    let (number, rest) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, rest))
}

fn unit_unknown(setting: &Setting, value: &str, unit: Unit) -> SqlError {
    let error = invalid(setting, value);
    match unit {
        Unit::None => error,
        Unit::Bytes(_) => {
            error.hint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".")
        }
        Unit::Micros(_) => {
            error.hint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")
        }
    }
}

fn invalid(setting: &Setting, value: &str) -> SqlError {
    let error = format!("invalid value for parameter \"{}\": \"{value}\"", setting.name);
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error)
}

fn outside(setting: &Setting, value: &str, min: &str, max: &str) -> SqlError {
    let name = setting.name;
    let error = format!("{value} is outside the valid range for parameter \"{name}\" ({min} .. {max})");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error)
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

/// A truth value by any of its names, or by a beginning that no other has.
pub(super) fn boolean(value: &str) -> Option<bool> {
    let lower = value.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || lower == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || lower == "0" {
        Some(false)
    } else {
        None
    }
}

/// A number in six significant digits, as C's `%g`.
fn general(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{number:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        trim(&format!("{number:.places$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(digits), exponent.abs())
    }
}

/// The names of a list, where those in double quotes keep their case; none if it is no list.
pub(super) fn names(list: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = list.trim();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let name = if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut quoted = quoted;
            loop {
                let (part, after) = quoted.split_once('"')?;
                name.push_str(part);
                match after.strip_prefix('"') {
                    Some(more) => {
                        name.push('"');
                        quoted = more;
                    }
                    None => {
                        rest = after;
                        break;
                    }
                }
            }
            name
        } else {
            let end = rest.find(|it: char| it == ',' || it.is_whitespace()).unwrap_or(rest.len());
            let (name, after) = rest.split_at_checked(end)?;
            rest = after;
            if name.is_empty() {
                return None;
            }
            name.to_lowercase()
        };
        names.push(name);
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(names);
        }
        rest = rest.strip_prefix(',')?.trim_start();
    }
}

fn date_style(setting: &Setting, value: &str) -> Result<String, SqlError> {
    let (mut form, mut order) = (None, None);
    for word in names(value).ok_or_else(|| invalid(setting, value).detail("List syntax is invalid."))? {
        let lower = word.to_ascii_lowercase();
        let (slot, meaning) = match lower.as_str() {
            "iso" => (&mut form, "ISO"),
            "sql" => (&mut form, "SQL"),
            "postgres" => (&mut form, "Postgres"),
            "german" => (&mut form, "German"),
            "ymd" => (&mut order, "YMD"),
            "dmy" | "euro" | "european" => (&mut order, "DMY"),
            "mdy" | "us" | "noneuro" | "noneuropean" => (&mut order, "MDY"),
            "default" => (&mut form, "ISO"),
            _ => {
                let detail = format!("Unrecognized key word: \"{word}\".");
                return Err(invalid(setting, value).detail(detail));
            }
        };
        if slot.is_some_and(|there| there != meaning) {
            return Err(invalid(setting, value).detail("Conflicting \"datestyle\" specifications."));
        }
        *slot = Some(meaning);
    }
    // What the list leaves open is what the session has; `complete` puts it there.
    Ok([form.unwrap_or(""), order.unwrap_or("")].join(", "))
}

/// A date style with what it leaves open taken from the one before.
pub(super) fn complete(style: &str, before: &str) -> String {
    let (form, order) = style.split_once(", ").unwrap_or((style, ""));
    let (form_before, order_before) = before.split_once(", ").unwrap_or(("ISO", "MDY"));
    let or = |part: &str, before: &str| if part.is_empty() { before.to_owned() } else { part.to_owned() };
    // German dates have the day first unless the list says otherwise.
    let order_before = if form == "German" { "DMY" } else { order_before };
    format!("{}, {}", or(form, form_before), or(order, order_before))
}

#[cfg(test)]
mod tests {
    use super::super::table::find;
    use super::*;

    fn set(name: &str, value: &str) -> Result<String, String> {
        let setting = find(name).expect("there is one");
        accept(setting, value).map(|kept| show(setting, &kept)).map_err(|error| {
            let more = [error.detail, error.hint].into_iter().flatten();
            std::iter::once(error.message).chain(more).collect::<Vec<_>>().join(" | ")
        })
    }

    #[test]
    fn values_are_shown_as_postgresql_shows_them() {
        for (name, value, shown) in [
            ("geqo", "TRU", "on"),
            ("geqo", "of", "off"),
            ("work_mem", "70000kB", "70000kB"),
            ("work_mem", "4096", "4MB"),
            ("work_mem", "1.5GB", "1536MB"),
            ("effective_cache_size", "524288", "4GB"),
            ("statement_timeout", "90s", "90s"),
            ("statement_timeout", "120000", "2min"),
            ("statement_timeout", "0", "0"),
            ("statement_timeout", "1e3", "1s"),
            ("extra_float_digits", "-15", "-15"),
            ("geqo_threshold", "0x10", "16"),
            ("cpu_tuple_cost", "1e3", "1000"),
            ("cpu_tuple_cost", "0.00001", "1e-05"),
            ("cpu_tuple_cost", "123456789", "1.23457e+08"),
            ("client_encoding", "utf-8", "UTF8"),
            ("application_name", "é\n", "???"),
            ("bytea_output", "HEX", "hex"),
            ("synchronous_commit", "true", "on"),
            ("TimeZone", "utc", "UTC"),
            ("TimeZone", "3", "<+03>-03"),
            ("TimeZone", "-3.5", "<-03:30>+03:30"),
        ] {
            assert_eq!(set(name, value).as_deref(), Ok(shown), "{name} = {value}");
        }
    }

    #[test]
    fn values_are_refused_in_postgresqls_words() {
        let units = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
        for (name, value, error) in [
            ("geqo", "maybe", "parameter \"geqo\" requires a Boolean value".to_owned()),
            ("geqo", "o", "parameter \"geqo\" requires a Boolean value".to_owned()),
            ("work_mem", "1xB", format!("invalid value for parameter \"work_mem\": \"1xB\" | {units}")),
            (
                "work_mem",
                "1",
                "1 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)".to_owned(),
            ),
            (
                "extra_float_digits",
                "10",
                "10 is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)".to_owned(),
            ),
            ("geqo_seed", "7", "7 is outside the valid range for parameter \"geqo_seed\" (0 .. 1)".to_owned()),
            ("geqo_threshold", "x", "invalid value for parameter \"geqo_threshold\": \"x\"".to_owned()),
            (
                "bytea_output",
                "x",
                "invalid value for parameter \"bytea_output\": \"x\" | Available values: escape, hex."
                    .to_owned(),
            ),
            ("client_encoding", "latin1", "invalid value for parameter \"client_encoding\": \"latin1\"".to_owned()),
            ("TimeZone", "Mars/x", "invalid value for parameter \"TimeZone\": \"Mars/x\"".to_owned()),
            (
                "DateStyle",
                "foo",
                "invalid value for parameter \"DateStyle\": \"foo\" | Unrecognized key word: \"foo\"."
                    .to_owned(),
            ),
            (
                "DateStyle",
                "iso,sql",
                "invalid value for parameter \"DateStyle\": \"iso,sql\" | Conflicting \"datestyle\" specifications."
                    .to_owned(),
            ),
        ] {
            assert_eq!(set(name, value), Err(error), "{name} = {value}");
        }
    }

    #[test]
    fn date_styles_keep_what_they_do_not_name() {
        let styles = [
            ("German, ", "ISO, MDY", "German, DMY"),
            (", YMD", "SQL, DMY", "SQL, YMD"),
            ("SQL, ", "ISO, YMD", "SQL, YMD"),
        ];
        for (style, before, expected) in styles {
            assert_eq!(complete(style, before), expected);
        }
    }

    #[test]
    fn lists_of_names_are_taken_apart() {
        let list = |text: &str| names(text);
        assert_eq!(list(r#""A ""b", C , public"#), Some(vec!["A \"b".into(), "c".into(), "public".into()]));
        assert_eq!(list(""), Some(vec![]));
        assert_eq!(list("a,,b"), None);
        assert_eq!(list("\"a"), None);
    }
}
