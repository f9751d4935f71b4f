//! Arrays: any number of dimensions, each with a lower bound, and their text form
//! (`{1,2}`, `[0:1]={a,NULL}`, `{{1,2},{3,4}}`).

use std::sync::Arc;

use super::{Datum, Oid, Style, scalar};
use crate::{SqlError, SqlState};

/// Dimensions at most.
pub const DIMENSIONS_MAX: usize = 6;
/// Elements at most, so that no function works for long on a single array. PostgreSQL takes
/// 134,217,727.
pub const ELEMENTS_MAX: usize = 1 << 20;

/// An array. Its elements are in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The type of its elements.
    pub element: Oid,
    /// Of each dimension its length and its lower bound; none if the array is empty.
    pub dimensions: Vec<(i32, i32)>,
    /// As many as the product of the lengths.
    pub elements: Vec<Datum>,
}

impl Array {
    /// An array of one dimension that begins at 1; empty without elements.
    pub fn flat(element: Oid, elements: Vec<Datum>) -> Datum {
        let length = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        let dimensions = if elements.is_empty() { Vec::new() } else { vec![(length, 1)] };
        Datum::Array(Arc::new(Array { element, dimensions, elements }))
    }

    /// An `int2vector` or `oidvector`: of one dimension, whose first element is number 0.
    pub fn vector(element: Oid, elements: Vec<Datum>) -> Datum {
        let length = i32::try_from(elements.len()).unwrap_or(i32::MAX);
        Datum::Array(Arc::new(Array { element, dimensions: vec![(length, 0)], elements }))
    }

    /// The element at these subscripts; none outside of the array.
    pub fn at(&self, subscripts: &[i32]) -> Option<&Datum> {
        if subscripts.len() != self.dimensions.len() || subscripts.is_empty() {
            return None;
        }
        let mut place = 0usize;
        for (subscript, (length, lower)) in subscripts.iter().zip(&self.dimensions) {
            let offset = i64::from(*subscript) - i64::from(*lower);
            if offset < 0 || offset >= i64::from(*length) {
                return None;
            }
            place = place * usize::try_from(*length).ok()? + usize::try_from(offset).ok()?;
        }
        self.elements.get(place)
    }
}

fn malformed(text: &str, detail: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{text}\""))
        .detail(detail)
}

/// Reads an array with these elements.
pub fn parse(element: Oid, modifier: i32, text: &str, style: &Style) -> Result<Datum, SqlError> {
    let mut rest = text.trim_start();
    let bounds = if rest.starts_with('[') { Some(parse_bounds(&mut rest, text)?) } else { None };
    if !rest.starts_with('{') {
        return Err(if bounds.is_some() {
            malformed(text, "Array contents must start with \"{\".")
        } else {
            malformed(text, "Array value must start with \"{\" or dimension information.")
        });
    }
    let mut reader =
        Reader { text, rest, element, modifier, style, lengths: Vec::new(), elements: Vec::new() };
    reader.list(0)?;
    if !reader.rest.trim().is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let lengths: Vec<i32> = reader.lengths.iter().map(|length| length.unwrap_or(0)).collect();
    if lengths.contains(&0) || reader.elements.is_empty() {
        return Ok(Array::flat(element, Vec::new()));
    }
    let dimensions = match bounds {
        None => lengths.iter().map(|length| (*length, 1)).collect(),
        Some(bounds) => {
            if bounds.iter().map(|(length, _)| *length).ne(lengths.iter().copied()) {
                return Err(malformed(text, "Specified array dimensions do not match array contents."));
            }
            bounds
        }
    };
    Ok(Datum::Array(Arc::new(Array { element, dimensions, elements: reader.elements })))
}

/// Reads `1 2 3`, a vector whose first element is number 0.
pub fn parse_vector(oid: Oid, text: &str, style: &Style) -> Result<Datum, SqlError> {
    let element = oid.element().unwrap_or(Oid::OID);
    let words = text.split_ascii_whitespace();
    let elements: Vec<Datum> =
        words.map(|word| scalar::parse(element, word, style)).collect::<Result<_, _>>()?;
    if elements.len() > ELEMENTS_MAX {
        return Err(too_large());
    }
    Ok(Array::vector(element, elements))
}

/// Appends a vector.
pub fn print_vector(array: &Array, style: &Style, out: &mut String) -> Result<(), SqlError> {
    for (place, element) in array.elements.iter().enumerate() {
        if place > 0 {
            out.push(' ');
        }
        scalar::print(element, array.element, style, out)?;
    }
    Ok(())
}

/// `[1:2][0:3]=`
fn parse_bounds(rest: &mut &str, text: &str) -> Result<Vec<(i32, i32)>, SqlError> {
    let mut bounds = Vec::new();
    while let Some(inside) = rest.strip_prefix('[') {
        let (range, after) =
            inside.split_once(']').ok_or_else(|| malformed(text, "Missing \"]\" after array dimensions."))?;
        let (low, high) = range.split_once(':').unwrap_or(("1", range));
        let number = |bound: &str| {
            bound
                .trim()
                .parse::<i32>()
                .map_err(|_| malformed(text, "\"[\" must introduce explicitly-specified array dimensions."))
        };
        let (low, high) = (number(low)?, number(high)?);
        if high < low {
            return Err(SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "upper bound cannot be less than lower bound",
            ));
        }
        if bounds.len() >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(bounds.len() + 1));
        }
        let length = i64::from(high) - i64::from(low) + 1;
        bounds.push((i32::try_from(length).map_err(|_| too_large())?, low));
        *rest = after.trim_start();
    }
    *rest = rest
        .strip_prefix('=')
        .ok_or_else(|| malformed(text, "Missing \"=\" after array dimensions."))?
        .trim_start();
    Ok(bounds)
}

/// The error of an array with too many dimensions.
pub fn too_many_dimensions(count: usize) -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})"),
    )
}

/// The error of an array with too many elements.
pub fn too_large() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"),
    )
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    element: Oid,
    modifier: i32,
    style: &'a Style,
    /// Of each dimension the length that its first list has shown.
    lengths: Vec<Option<i32>>,
    elements: Vec<Datum>,
}

impl Reader<'_> {
    fn list(&mut self, depth: usize) -> Result<(), SqlError> {
        if depth >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(depth + 1));
        }
        if self.lengths.len() <= depth {
            self.lengths.push(None);
        }
        self.rest = self.rest.get(1..).unwrap_or_default().trim_start();
        let mut count = 0i32;
        if let Some(after) = self.rest.strip_prefix('}') {
            self.rest = after;
            return self.close(depth, 0);
        }
        loop {
            if self.rest.starts_with('{') {
                if self.lengths.len() == depth + 1 && count > 0 {
                    return Err(malformed(self.text, "Unexpected \"{\" character."));
                }
                self.list(depth + 1)?;
            } else {
                if self.lengths.len() > depth + 1 {
                    return Err(malformed(self.text, "Unexpected array element."));
                }
                self.item()?;
            }
            count = count.saturating_add(1);
            self.rest = self.rest.trim_start();
            match self.rest.chars().next() {
                Some(',') => self.rest = self.rest.get(1..).unwrap_or_default().trim_start(),
                Some('}') => {
                    self.rest = self.rest.get(1..).unwrap_or_default();
                    return self.close(depth, count);
                }
                Some(_) => return Err(malformed(self.text, "Unexpected array element.")),
                None => return Err(malformed(self.text, "Unexpected end of input.")),
            }
        }
    }

    fn close(&mut self, depth: usize, count: i32) -> Result<(), SqlError> {
        match self.lengths.get_mut(depth) {
            Some(Some(length)) if *length != count => Err(malformed(
                self.text,
                "Multidimensional arrays must have sub-arrays with matching dimensions.",
            )),
            Some(length) => {
                *length = Some(count);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn item(&mut self) -> Result<(), SqlError> {
        let (mut item, mut quoted, mut open) = (String::new(), false, false);
        // Blanks at the end count only if they were quoted or escaped.
        let mut kept = 0;
        let mut characters = self.rest.char_indices();
        let mut end = None;
        while let Some((place, c)) = characters.next() {
            match c {
                '\\' => {
                    let (_, escaped) =
                        characters.next().ok_or_else(|| malformed(self.text, "Unexpected end of input."))?;
                    item.push(escaped);
                    quoted = true;
                    kept = item.len();
                }
                '"' => {
                    if !open && !item.trim_end().is_empty() {
                        return Err(malformed(self.text, "Unexpected array element."));
                    }
                    quoted = true;
                    open = !open;
                    kept = item.len();
                }
                ',' | '}' if !open => {
                    end = Some(place);
                    break;
                }
                '{' if !open => return Err(malformed(self.text, "Unexpected \"{\" character.")),
                _ => {
                    item.push(c);
                    if open || !c.is_ascii_whitespace() {
                        kept = item.len();
                    }
                }
            }
        }
        let end = end.ok_or_else(|| malformed(self.text, "Unexpected end of input."))?;
        item.truncate(kept);
        if !quoted && item.is_empty() {
            let found = self.rest.get(end..).and_then(|rest| rest.chars().next()).unwrap_or('}');
            return Err(malformed(self.text, format!("Unexpected \"{found}\" character.")));
        }
        self.rest = self.rest.get(end..).unwrap_or_default();
        if self.elements.len() >= ELEMENTS_MAX {
            return Err(too_large());
        }
        let value = if !quoted && item.eq_ignore_ascii_case("null") {
            Datum::Null
        } else {
            scalar::parse_modified(self.element, self.modifier, &item, self.style)?
        };
        self.elements.push(value);
        Ok(())
    }
}

/// Appends an array.
pub fn print(array: &Array, style: &Style, out: &mut String) -> Result<(), SqlError> {
    if array.elements.is_empty() {
        out.push_str("{}");
        return Ok(());
    }
    if array.dimensions.iter().any(|(_, lower)| *lower != 1) {
        for (length, lower) in &array.dimensions {
            out.push_str(&format!("[{lower}:{}]", i64::from(*lower) + i64::from(*length) - 1));
        }
        out.push('=');
    }
    let mut elements = array.elements.iter();
    print_list(array, &array.dimensions, &mut elements, style, out)
}

fn print_list(
    array: &Array,
    dimensions: &[(i32, i32)],
    elements: &mut std::slice::Iter<'_, Datum>,
    style: &Style,
    out: &mut String,
) -> Result<(), SqlError> {
    let Some(((length, _), inner)) = dimensions.split_first() else { return Ok(()) };
    out.push('{');
    for place in 0..*length {
        if place > 0 {
            out.push(',');
        }
        if !inner.is_empty() {
            print_list(array, inner, elements, style, out)?;
            continue;
        }
        match elements.next() {
            None | Some(Datum::Null) => out.push_str("NULL"),
            Some(value) => {
                let mut item = String::new();
                scalar::print(value, array.element, style, &mut item)?;
                quote(&item, out);
            }
        }
    }
    out.push('}');
    Ok(())
}

fn quote(item: &str, out: &mut String) {
    let special =
        |c: char| matches!(c, '"' | '\\' | '{' | '}' | ',') || c.is_ascii_whitespace() || c == '\x0b';
    if !item.is_empty() && !item.eq_ignore_ascii_case("null") && !item.contains(special) {
        out.push_str(item);
        return;
    }
    out.push('"');
    for c in item.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}
