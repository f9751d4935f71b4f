//! `to_char()` and `to_number()`: a picture of a number, a character a place.

use super::ordinal;
use crate::analyze::unsupported;
use crate::functions::{Call, Outcome, confused, refuse};
use crate::types::{Datum, Numeric, compare};
use crate::{SqlError, SqlState};

/// The picture of a number.
#[derive(Default)]
struct Picture {
    /// Places before and after the point.
    whole: usize,
    fraction: usize,
    /// The first place that shows a 0, of those before the point.
    zero_from: Option<usize>,
    /// The last place after the point that shows a 0.
    zero_to: usize,
    compact: bool,
    point: bool,
    signs: bool,
}

impl Picture {
    fn of(template: &str) -> Result<Picture, SqlError> {
        let upper = template.to_ascii_uppercase();
        if upper.contains("EEEE") || upper.contains("RN") || upper.contains('V') {
            return Err(unsupported("EEEE, RN or V in to_char"));
        }
        let mut picture = Picture {
            compact: upper.contains("FM"),
            signs: ["S", "MI", "PL", "PR"].iter().any(|sign| upper.contains(sign)),
            ..Picture::default()
        };
        for c in upper.chars() {
            match c {
                '9' | '0' if picture.point => {
                    picture.fraction += 1;
                    if c == '0' {
                        picture.zero_to = picture.fraction;
                    }
                }
                '9' | '0' => {
                    if c == '0' && picture.zero_from.is_none() {
                        picture.zero_from = Some(picture.whole);
                    }
                    picture.whole += 1;
                }
                '.' | 'D' if picture.point => {
                    return refuse(SqlState::SYNTAX_ERROR, "multiple decimal points");
                }
                '.' | 'D' => picture.point = true,
                _ => {}
            }
        }
        Ok(picture)
    }
}

/// `to_char()` of a number.
pub fn number(call: &Call<'_>) -> Outcome {
    let template = super::template(call)?;
    let value = match call.at(0) {
        Datum::Numeric(value) => value.clone(),
        Datum::Float8(value) => Numeric::from_float(*value, 15)?,
        Datum::Float4(value) => Numeric::from_float(f64::from(*value), 6)?,
        other => Numeric::from(compare::integer(other).ok_or_else(confused)?),
    };
    if template.is_empty() {
        return Ok(Datum::text(""));
    }
    picture(&value, template).map(Datum::text)
}

fn picture(value: &Numeric, template: &str) -> Result<String, SqlError> {
    let form = Picture::of(template)?;
    let rounded = if value.is_finite() {
        value.round(i32::try_from(form.fraction).unwrap_or(0))?
    } else {
        value.clone()
    };
    let negative = rounded.is_negative();
    let text = rounded.clone().abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    // What does not fit is not shown.
    let fits = value.is_finite() && whole.trim_start_matches('0').len() <= form.whole;
    // A 0 alone before the point is blank, unless there is nothing else.
    let digits: Vec<char> = if fits {
        let bare = whole == "0" && form.fraction > 0;
        if bare { Vec::new() } else { whole.chars().collect() }
    } else {
        vec!['#'; form.whole]
    };
    let fraction: Vec<char> = if fits { fraction.chars().collect() } else { vec!['#'; form.fraction] };
    let first = (form.whole - digits.len().min(form.whole)).min(form.zero_from.unwrap_or(usize::MAX));
    let significant =
        fraction.iter().rposition(|digit| *digit != '0').map_or(0, |place| place + 1).max(form.zero_to);
    let upper = template.to_ascii_uppercase();
    let mut out = String::new();
    let mut rest = upper.as_str();
    let (mut place, mut after, mut point, mut signed) = (0usize, 0usize, false, false);
    let leading = !form.signs || upper.trim_start_matches("FM").starts_with('S') || upper.contains("PR");
    let bracket = upper.contains("PR");
    let sign = |out: &mut String, signed: &mut bool| {
        if leading && !std::mem::replace(signed, true) {
            let explicit = form.signs && !bracket;
            match (negative, bracket, explicit) {
                (true, true, _) => out.push('<'),
                (true, false, _) => out.push('-'),
                (false, _, true) => out.push('+'),
                (false, ..) if form.compact => {}
                (false, ..) => out.push(' '),
            }
        }
    };
    let mut source = template;
    while let Some(c) = rest.chars().next() {
        let token = ["FM", "MI", "PL", "SG", "PR", "TH"].iter().find(|token| rest.starts_with(**token));
        let length = token.map_or(c.len_utf8(), |token| token.len());
        let original = source.get(..length).unwrap_or_default();
        match (token.copied(), c) {
            (Some("MI"), _) if negative => out.push('-'),
            (Some("MI"), _) if form.compact => {}
            (Some("MI"), _) => out.push(' '),
            (Some("PL"), _) => out.push(if negative { ' ' } else { '+' }),
            (Some("SG"), _) => out.push(if negative { '-' } else { '+' }),
            (Some("PR"), _) if negative => out.push('>'),
            (Some("PR"), _) if form.compact => {}
            (Some("PR"), _) => out.push(' '),
            (Some("TH"), _) => {
                if !negative {
                    out.push_str(ordinal(whole, original.starts_with('T')));
                }
            }
            (Some(_), _) => {}
            (None, '9' | '0') if point => {
                after += 1;
                let digit = fraction.get(after - 1).copied().unwrap_or('0');
                if !form.compact || after <= significant {
                    out.push(digit);
                }
            }
            (None, '9' | '0') => {
                if place >= first {
                    sign(&mut out, &mut signed);
                    let from_end = form.whole - place;
                    let digit = digits.len().checked_sub(from_end).and_then(|place| digits.get(place));
                    out.push(digit.copied().unwrap_or('0'));
                } else if !form.compact {
                    out.push(' ');
                }
                place += 1;
            }
            (None, '.' | 'D') => {
                point = true;
                sign(&mut out, &mut signed);
                out.push('.');
            }
            (None, ',' | 'G') => {
                if place > first {
                    out.push(',');
                } else if !form.compact {
                    out.push(' ');
                }
            }
            (None, 'S') if leading => {}
            (None, 'S') => out.push(if negative { '-' } else { '+' }),
            (None, 'L') => {
                if !form.compact {
                    out.push(' ');
                }
            }
            (None, '"') => {}
            (None, _) => out.push_str(original),
        }
        rest = rest.get(length..).unwrap_or_default();
        source = source.get(length..).unwrap_or_default();
    }
    Ok(out)
}

/// `to_number()`: the digits, the point and the sign of a text.
pub fn to_number(call: &Call<'_>) -> Outcome {
    let (text, template) = (call.text(0)?, super::template(call)?);
    let form = Picture::of(template)?;
    let negative = text.contains('-') || text.contains('<');
    let digits: String = text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole: String = whole.chars().take(form.whole).collect();
    let fraction: String = fraction.chars().filter(char::is_ascii_digit).take(form.fraction).collect();
    let sign = if negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Numeric::parse(&format!("{sign}{whole}{point}{fraction}")).map(Datum::Numeric)
}
