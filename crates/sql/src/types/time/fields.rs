//! A date's text taken apart: words, numbers, and what has signs and separators.
//!
//! The rules that say where a field ends are PostgreSQL's, because what they make of odd texts can
//! be seen: `2001-02-16` is one field, `16 Feb` two, `America/New_York` one.

/// What a field looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Digits, perhaps with a point.
    Number,
    /// Digits or words with separators.
    Date,
    /// Digits with colons.
    Time,
    /// A sign and digits.
    Zone,
    /// A word.
    Word,
    /// A sign and a word.
    Special,
}

/// A part of a date; words are in lower case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// What it looks like.
    pub kind: Kind,
    /// Its characters.
    pub text: String,
}

/// A text longer than this is no date.
const LENGTH_MAX: usize = 150;
/// More fields than this are no date.
const FIELDS_MAX: usize = 25;

/// Takes a text apart; none if it is no date. `is_word` says whether a word means something in
/// dates: one that does not, with a digit after it, is a zone such as `EST5EDT`.
pub fn split(text: &str, is_word: impl Fn(&str) -> bool) -> Option<Vec<Field>> {
    if text.len() > LENGTH_MAX {
        return None;
    }
    let mut cursor = Cursor { rest: text.as_bytes(), taken: String::new() };
    let mut fields = Vec::new();
    while let Some(byte) = cursor.peek() {
        if is_space(byte) {
            cursor.skip();
            continue;
        }
        let kind = match byte {
            b'0'..=b'9' => cursor.number_or_date(),
            b'.' => {
                cursor.take();
                cursor.take_while(|byte| byte.is_ascii_digit());
                Kind::Number
            }
            b'a'..=b'z' | b'A'..=b'Z' => cursor.word(&is_word),
            b'+' | b'-' => {
                cursor.take();
                while cursor.peek().is_some_and(is_space) {
                    cursor.skip();
                }
                match cursor.peek() {
                    Some(byte) if byte.is_ascii_digit() => {
                        cursor.take_while(|byte| byte.is_ascii_digit() || b":.-".contains(&byte));
                        Kind::Zone
                    }
                    Some(byte) if byte.is_ascii_alphabetic() => {
                        cursor.take_while(|byte| byte.is_ascii_alphabetic());
                        Kind::Special
                    }
                    _ => return None,
                }
            }
            byte if byte.is_ascii_punctuation() => {
                cursor.skip();
                continue;
            }
            _ => return None,
        };
        if fields.len() >= FIELDS_MAX {
            return None;
        }
        fields.push(Field { kind, text: std::mem::take(&mut cursor.taken) });
    }
    Some(fields)
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

struct Cursor<'a> {
    rest: &'a [u8],
    taken: String,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn skip(&mut self) {
        self.rest = self.rest.split_first().map_or(&[], |(_, rest)| rest);
    }

    fn take(&mut self) {
        if let Some(byte) = self.peek() {
            self.taken.push(char::from(byte.to_ascii_lowercase()));
        }
        self.skip();
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.take();
        }
    }

    fn number_or_date(&mut self) -> Kind {
        self.take_while(|byte| byte.is_ascii_digit());
        match self.peek() {
            Some(b':') => {
                self.take_while(|byte| byte.is_ascii_digit() || byte == b':' || byte == b'.');
                Kind::Time
            }
            Some(separator @ (b'-' | b'/' | b'.')) => {
                self.take();
                if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == separator);
                    return Kind::Date;
                }
                self.take_while(|byte| byte.is_ascii_digit());
                // A date has the same separator twice; one point is a fraction.
                if self.peek() == Some(separator) {
                    self.take_while(|byte| byte.is_ascii_digit() || byte == separator);
                    return Kind::Date;
                }
                if separator == b'.' { Kind::Number } else { Kind::Date }
            }
            _ => Kind::Number,
        }
    }

    fn word(&mut self, is_word: &impl Fn(&str) -> bool) -> Kind {
        self.take_while(|byte| byte.is_ascii_alphabetic());
        let is_date = match self.peek() {
            Some(b'-' | b'/' | b'.') => true,
            Some(byte) if byte == b'+' || byte.is_ascii_digit() => !is_word(&self.taken),
            _ => false,
        };
        if !is_date {
            return Kind::Word;
        }
        self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+-/_.:".contains(&byte));
        Kind::Date
    }
}
