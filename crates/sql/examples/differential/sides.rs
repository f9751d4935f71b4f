//! What a server answers to a statement, message by message.

use std::fmt;

use crate::common::Raw;
use crate::testing::{query, start};

/// A field of an error or a notice: its letter and its text.
type Field = (char, String);

/// A column: its name, whether it is a table's, its type and the type's modifier.
type Column = (String, bool, u32, i32);

/// What a statement came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// The columns, if there are rows.
    pub columns: Option<Vec<Column>>,
    /// The rows.
    pub rows: Vec<Vec<Option<String>>>,
    /// The command that was done, with its count.
    pub tag: String,
    /// The error.
    pub error: Vec<Field>,
    /// Notices.
    pub notices: Vec<Vec<Field>>,
    /// Whether the session is in a block, and in a failed one.
    pub status: char,
}

impl Answer {
    /// A field of the error; empty if there is none.
    pub fn field(&self, letter: char) -> &str {
        self.error.iter().find(|(known, _)| *known == letter).map_or("", |(_, text)| text)
    }

    /// The error's state; empty if there is none.
    pub fn state(&self) -> &str {
        self.field('C')
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.status, self.tag)?;
        for (name, from_table, oid, modifier) in self.columns.iter().flatten() {
            let mark = if *from_table { "." } else { "" };
            write!(f, " {mark}{name}:{}", plimsoll_sql::types::Oid(*oid).display())?;
            if *modifier >= 0 {
                write!(f, "({modifier})")?;
            }
        }
        for row in self.rows.iter().take(12) {
            let shown: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
            write!(f, " | {}", shown.join(", "))?;
        }
        for (letter, text) in self.error.iter().chain(self.notices.iter().flatten()) {
            write!(f, " {letter}={text}")?;
        }
        Ok(())
    }
}

/// A session with a server.
pub struct Side {
    raw: Raw,
    port: u16,
    /// Statements that were sent and not answered.
    sent: usize,
}

impl Side {
    /// Begins one.
    pub fn new(port: u16) -> Side {
        let mut raw = Raw::connect(port, &start(0, &[("user", "postgres"), ("database", "postgres")]));
        raw.until_ready();
        Side { raw, port, sent: 0 }
    }

    /// Sends statements, all at once: the server need not wait for its client between them. What
    /// was sent before is forgotten.
    pub fn send(&mut self, texts: &[String]) {
        while self.sent > 0 {
            self.answer();
        }
        self.raw.send(&texts.iter().flat_map(|text| query(text)).collect::<Vec<u8>>());
        self.sent = texts.len();
    }

    /// The answer to the next statement. A session that has ended, or does not answer, is begun
    /// anew.
    pub fn answer(&mut self) -> Answer {
        self.sent = self.sent.saturating_sub(1);
        let mut answer = Answer::default();
        loop {
            let Some((kind, body)) = self.raw.message() else {
                *self = Side::new(self.port);
                answer.error = vec![('C', "lost".to_owned()), ('M', "the session has ended".to_owned())];
                answer.status = 'I';
                return answer;
            };
            match kind {
                b'T' => answer.columns = Some(columns(&body)),
                b'D' => answer.rows.push(row(&body)),
                b'C' => answer.tag = text_of(&body[..body.len() - 1]),
                b'E' => answer.error = fields(&body),
                b'N' => answer.notices.push(fields(&body)),
                b'Z' => {
                    answer.status = char::from(body[0]);
                    return answer;
                }
                _ => {}
            }
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a whole message")
}

fn columns(body: &[u8]) -> Vec<Column> {
    let count = u16::from_be_bytes(number(body, 0));
    let mut at = 2;
    let mut all = Vec::new();
    for _ in 0..count {
        let end = at + body[at..].iter().position(|byte| *byte == 0).expect("a name ends");
        let name = text_of(&body[at..end]);
        at = end + 1;
        let table = u32::from_be_bytes(number(body, at));
        let oid = u32::from_be_bytes(number(body, at + 6));
        let modifier = i32::from_be_bytes(number(body, at + 12));
        all.push((name, table != 0, oid, modifier));
        at += 18;
    }
    all
}

fn row(body: &[u8]) -> Vec<Option<String>> {
    let count = u16::from_be_bytes(number(body, 0));
    let mut at = 2;
    let mut all = Vec::new();
    for _ in 0..count {
        let length = i32::from_be_bytes(number(body, at));
        at += 4;
        let value = usize::try_from(length).ok().map(|length| text_of(&body[at..at + length]));
        at += value.as_ref().map_or(0, |_| usize::try_from(length).unwrap_or(0));
        all.push(value);
    }
    all
}

/// The fields of an error, but files and lines of PostgreSQL.
fn fields(body: &[u8]) -> Vec<Field> {
    let fields = body.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let fields = fields.map(|field| (char::from(field[0]), text_of(&field[1..])));
    fields.filter(|(letter, _)| !"FLRW".contains(*letter)).collect()
}
