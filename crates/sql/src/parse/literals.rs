//! The literals of a statement, found without its grammar.
//!
//! Programs that put values into the texts of their statements send the same few statements again
//! and again, each time with other values. What a text is without them tells whether it has been
//! understood before. This looks for whole numbers and for strings in single quotes; wherever more
//! than that would have to be known (comments, dollar quotes, escapes, parameters), it gives up.

/// What stands for a literal in the key of a text.
const HOLE: char = '\u{1}';

/// Bytes of a text at most.
const TEXT_MAX: usize = 8 << 10;

/// Literals of a text at most.
const LITERALS_MAX: usize = 256;

/// A literal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A whole number that is an `integer`.
    Integer(i32),
    /// A string.
    Text(String),
}

/// A literal and where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Literal {
    /// What it says.
    pub value: Value,
    /// Its first byte.
    pub at: usize,
    /// The minus before it, which the grammar may take for a part of it.
    pub minus: Option<usize>,
}

/// A text without its literals, as people read it: with `$1`, `$2` in their places.
pub fn numbered(text: &str) -> String {
    let mut parts = text.split(HOLE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.zip(1u32..).fold(first, |text, (part, place)| {
        // What is behind a hole says of which kind the literal was.
        let part = part.strip_prefix(['i', 's']).unwrap_or(part);
        format!("{text}${place}{part}")
    })
}

/// A text without its literals, and these; none if they cannot be told.
pub fn taken_out(text: &str) -> Option<(String, Vec<Literal>)> {
    if text.len() > TEXT_MAX || text.contains(HOLE) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut key = String::with_capacity(text.len());
    let mut literals = Vec::new();
    let mut minus = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let end = match byte {
            b'0'..=b'9' => number_end(bytes, at),
            b'\'' => string_end(bytes, at)?,
            b'"' => at + 2 + bytes.get(at + 1..)?.iter().position(|byte| *byte == b'"')?,
            b'$' | b'\\' => return None,
            b'-' if bytes.get(at + 1) == Some(&b'-') => return None,
            b'/' if bytes.get(at + 1) == Some(&b'*') => return None,
            _ if is_of_name(byte) => {
                let end = name_end(bytes, at);
                // A prefix of a string: it is no plain one.
                if matches!(bytes.get(end), Some(b'\'' | b'&')) {
                    return None;
                }
                end
            }
            _ => at + 1,
        };
        let token = text.get(at..end)?;
        let value = match byte {
            b'0'..=b'9' if at == 0 || bytes.get(at - 1) != Some(&b'.') => {
                token.parse().ok().map(Value::Integer)
            }
            b'\'' => {
                let inner = token.get(1..token.len() - 1)?;
                Some(Value::Text(inner.replace("''", "'")))
            }
            _ => None,
        };
        match value {
            Some(value) => {
                key.push(HOLE);
                key.push(if matches!(value, Value::Integer(_)) { 'i' } else { 's' });
                literals.push(Literal { value, at, minus });
                if literals.len() > LITERALS_MAX {
                    return None;
                }
            }
            None => key.push_str(token),
        }
        minus = match byte {
            b'-' => Some(at),
            b' ' | b'\t' | b'\n' | b'\r' => minus,
            _ => None,
        };
        at = end;
    }
    Some((key, literals))
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn name_end(bytes: &[u8], begin: usize) -> usize {
    let rest = bytes.get(begin..).unwrap_or_default();
    let length = rest.iter().position(|byte| !is_of_name(*byte) && !byte.is_ascii_digit());
    begin + length.unwrap_or(rest.len())
}

/// The end of what begins with a digit: of all that could be part of a number.
fn number_end(bytes: &[u8], begin: usize) -> usize {
    let rest = bytes.get(begin..).unwrap_or_default();
    let mut last = 0;
    let mut is_of_number = |byte: &u8| {
        let is_sign = matches!(byte, b'+' | b'-') && matches!(last, b'e' | b'E');
        last = *byte;
        byte.is_ascii_digit() || is_of_name(*byte) || *byte == b'.' || is_sign
    };
    begin + rest.iter().take_while(|byte| is_of_number(byte)).count()
}

/// The end of a string; none if it has no end, or goes on behind blanks.
fn string_end(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == b'\'')? + 1;
        if bytes.get(at) != Some(&b'\'') {
            break;
        }
        at += 1;
    }
    let next = bytes.get(at..)?.iter().find(|byte| !byte.is_ascii_whitespace());
    (next != Some(&b'\'')).then_some(at)
}

#[cfg(test)]
mod tests {
    use pg_query::protobuf::Token;

    use super::*;

    fn told(text: &str) -> Option<(String, Vec<Value>)> {
        let (key, literals) = taken_out(text)?;
        Some((key.replace(HOLE, "?"), literals.into_iter().map(|literal| literal.value).collect()))
    }

    #[test]
    fn literals_are_taken_out() {
        use Value::{Integer, Text};
        let text = |text: &str| Text(text.to_owned());
        let some = |key: &str, values: Vec<Value>| Some((key.to_owned(), values));
        for (given, key, values) in [
            ("select a1 from t where a = 5", "select a1 from t where a = ?i", vec![Integer(5)]),
            (
                "x = 'it''s' and y='' or\"a 1\"=2",
                "x = ?s and y=?s or\"a 1\"=?i",
                vec![text("it's"), text(""), Integer(2)],
            ),
            ("a + -12, b-3", "a + -?i, b-?i", vec![Integer(12), Integer(3)]),
            ("1.5 + .5 + 1e5 + 1e-5 + 99999999999", "1.5 + .5 + 1e5 + 1e-5 + 99999999999", vec![]),
            ("a[1]::int", "a[?i]::int", vec![Integer(1)]),
            ("é1 = 'é'", "é1 = ?s", vec![text("é")]),
            ("date '2024-01-01'", "date ?s", vec![text("2024-01-01")]),
        ] {
            assert_eq!(told(given), some(key, values), "{given}");
        }
        for given in [
            "e'a'", "u&'a'", "a--1", "/* */", "$1", "$$a$$", "'a", "\"a", "'a'\n'b'", "'a' 'b'", "x'00'",
            "\\",
        ] {
            assert_eq!(told(given), None, "{given}");
        }
        let (_, literals) = taken_out("- 7 -8").expect("they can be told");
        let minus: Vec<_> = literals.iter().map(|literal| literal.minus).collect();
        assert_eq!(minus, [Some(0), Some(4)]);
    }

    /// What is taken for a literal is one to PostgreSQL's lexer, and every one of its kind is
    /// found.
    #[test]
    fn the_lexer_of_postgresql_sees_the_same() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
        let mut seen = 0;
        for script in std::fs::read_dir(folder).expect("a folder").flatten() {
            let text = std::fs::read_to_string(script.path()).expect("a script");
            for line in text.lines() {
                let (Some((_, literals)), Ok(scanned)) = (taken_out(line), pg_query::scan(line)) else {
                    continue;
                };
                let of_kind = |token: &pg_query::protobuf::ScanToken| {
                    let word =
                        &line[usize::try_from(token.start).unwrap()..usize::try_from(token.end).unwrap()];
                    match token.token() {
                        Token::Iconst => word.parse::<i32>().is_ok(),
                        Token::Sconst => true,
                        _ => false,
                    }
                };
                let theirs: Vec<usize> = scanned
                    .tokens
                    .iter()
                    .filter(|token| of_kind(token))
                    .map(|token| usize::try_from(token.start).unwrap())
                    .collect();
                let ours: Vec<usize> = literals.iter().map(|literal| literal.at).collect();
                seen += ours.len();
                assert_eq!(ours, theirs, "{line}");
            }
        }
        assert!(seen > 500, "{seen}");
    }
}
