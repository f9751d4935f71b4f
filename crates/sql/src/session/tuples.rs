//! Rows of `COPY` in binary form.
//!
//! | bytes | |
//! |---|---|
//! | 11 | `PGCOPY`, a line's end, `ff`, a return and a line's end, `00` |
//! | 4 | flags, of which none is known |
//! | 4 | how many bytes of a header follow, which are passed over |
//! | | rows: two bytes that say how many fields, and each field with four bytes before it that say how long it is, -1 for NULL |
//! | 2 | -1: the end |

use crate::{SqlError, SqlState};

/// What everything begins with.
const SIGNATURE: [u8; 11] = *b"PGCOPY\n\xff\r\n\0";

/// Bytes of a row at most.
const ROW_MAX: usize = 64 << 20;

/// What comes behind the last row.
pub(super) const END: [u8; 2] = (-1i16).to_be_bytes();

/// What is sent with a row: before the first one, or the end if there is none, comes the header.
/// There are clients that look for it in the first message.
pub(super) fn begun(is_first: bool, row: &[u8]) -> Vec<u8> {
    match is_first {
        true => [&SIGNATURE[..], &[0; 8], row].concat(),
        false => row.to_vec(),
    }
}

/// Rows that come in pieces.
pub(super) struct Tuples {
    table: String,
    bytes: Vec<u8>,
    /// How many bytes of these are behind.
    at: usize,
    /// Names of the fields.
    columns: Vec<String>,
    number: usize,
    has_begun: bool,
    is_over: bool,
}

/// What is left of bytes; none is behind their end.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }
}

impl Tuples {
    /// None has come.
    pub(super) fn new(table: String, columns: Vec<String>) -> Tuples {
        Tuples { table, bytes: Vec::new(), at: 0, columns, number: 0, has_begun: false, is_over: false }
    }

    /// More bytes have come.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend(bytes);
        Ok(())
    }

    /// Bytes that have not been taken.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The number of the row that came last, from 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Which row came last, for errors.
    pub(super) fn place(&self) -> String {
        format!("COPY {}, line {}", self.table, self.number)
    }

    /// The fields of the next row that is whole; at the end there may be no other.
    pub(super) fn next(&mut self, is_end: bool) -> Result<Option<Vec<Option<Vec<u8>>>>, SqlError> {
        if !self.has_begun && !self.begin(is_end)? {
            return Ok(None);
        }
        let bytes = self.bytes.get(self.at..).unwrap_or_default();
        if self.is_over && !bytes.is_empty() {
            return Err(self.broken("received copy data after EOF marker", None));
        }
        if self.is_over || bytes.len() < 2 && is_end {
            return Ok(None);
        }
        match self.row(bytes, is_end)? {
            Some((fields, taken)) => {
                self.at += taken;
                self.is_over = fields.is_none();
                self.number += usize::from(fields.is_some());
                if fields.is_none() { self.next(is_end) } else { Ok(fields) }
            }
            None if bytes.len() > ROW_MAX => {
                let error = format!("a row of COPY is longer than {ROW_MAX} bytes");
                Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error))
            }
            None => Ok(None),
        }
    }

    /// The row that bytes begin with, if they have all of it, and how many bytes it has; no fields
    /// are the end.
    #[expect(clippy::type_complexity, reason = "fields may be NULL, and there may be none")]
    fn row(
        &self,
        bytes: &[u8],
        is_end: bool,
    ) -> Result<Option<(Option<Vec<Option<Vec<u8>>>>, usize)>, SqlError> {
        let mut rest = Rest(bytes);
        let Some(count) = rest.take().map(i16::from_be_bytes) else { return Ok(None) };
        if count == -1 {
            return Ok(Some((None, 2)));
        }
        if usize::try_from(count) != Ok(self.columns.len()) {
            let error = format!("row field count is {count}, expected {}", self.columns.len());
            return Err(self.broken(&error, None));
        }
        let mut fields = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let lacks = || match is_end {
                true => Err(self.broken("unexpected EOF in COPY data", Some(column))),
                false => Ok(None),
            };
            let Some(length) = rest.take().map(i32::from_be_bytes) else { return lacks() };
            fields.push(match usize::try_from(length) {
                Err(_) if length == -1 => None,
                Err(_) => return Err(self.broken("invalid field size", Some(column))),
                Ok(length) => {
                    let Some(field) = rest.slice(length) else { return lacks() };
                    Some(field.to_vec())
                }
            });
        }
        Ok(Some((Some(fields), bytes.len() - rest.0.len())))
    }

    /// Passes over the header. Returns whether it was there.
    fn begin(&mut self, is_end: bool) -> Result<bool, SqlError> {
        let mut rest = Rest(self.bytes.get(self.at..).unwrap_or_default());
        let all = rest.0.len();
        let lacks = |what: &str| match is_end {
            true => Err(unreadable(what)),
            false => Ok(false),
        };
        let unknown = "COPY file signature not recognized";
        let Some(signature) = rest.take() else { return lacks(unknown) };
        if signature != SIGNATURE {
            return Err(unreadable(unknown));
        }
        let Some(flags) = rest.take().map(u32::from_be_bytes) else {
            return lacks("invalid COPY file header (missing flags)");
        };
        if flags & 1 << 16 != 0 {
            return Err(unreadable("invalid COPY file header (WITH OIDS)"));
        }
        if flags >> 16 != 0 {
            return Err(unreadable("unrecognized critical flags in COPY file header"));
        }
        let no_length = "invalid COPY file header (missing length)";
        let Some(length) = rest.take().map(i32::from_be_bytes) else { return lacks(no_length) };
        let length = usize::try_from(length).map_err(|_| unreadable(no_length))?;
        let wrong = "invalid COPY file header (wrong length)";
        if length > ROW_MAX {
            return Err(unreadable(wrong));
        }
        if rest.slice(length).is_none() {
            return lacks(wrong);
        }
        self.at += all - rest.0.len();
        self.has_begun = true;
        Ok(true)
    }

    /// The error of the row that is next, in a field of it.
    fn broken(&self, error: &str, column: Option<&String>) -> SqlError {
        let mut place = format!("COPY {}, line {}", self.table, self.number + 1);
        if let Some(column) = column {
            place = format!("{place}, column {column}");
        }
        SqlError { context: Some(place), ..unreadable(error) }
    }
}

fn unreadable(error: &str) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, error)
}
