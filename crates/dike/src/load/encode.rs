//! Rows as a database wants to be given them.
//!
//! The population hands over one column after the other; an [`Encoder`] writes it in one of three
//! forms: PostgreSQL's binary COPY (a length before each value, numbers in network order),
//! comma-separated text (COPY, LOAD DATA, files; NULL is `\N`; our texts hold letters, digits, `-`
//! and `.`, so nothing needs quotes), or INSERT statements.

use bytes::Bytes;

use crate::target::{EPOCH_OF_POSTGRES_S, civil, format_decimal, write_numeric};

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// PostgreSQL's binary COPY.
    Binary,
    /// Comma-separated text.
    Csv,
    /// INSERT with so many rows each.
    Insert(usize),
}

/// What came out.
#[derive(Debug)]
pub enum Encoded {
    /// For COPY in binary form.
    Binary(Bytes),
    /// For COPY as text, LOAD DATA, or a file.
    Csv(Bytes),
    /// One after the other.
    Inserts(Vec<String>),
}

/// The first bytes of a binary COPY: the signature, no flags, no extension.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Writes rows of one table.
#[derive(Debug)]
pub struct Encoder {
    form: Form,
    table: &'static str,
    bytes: Vec<u8>,
    statements: Vec<String>,
    /// Rows in the statement that is being written.
    pending: usize,
    rows: u64,
    first_column: bool,
}

impl Encoder {
    /// For rows of this table.
    pub fn new(form: Form, table: &'static str) -> Encoder {
        let bytes = if form == Form::Binary { SIGNATURE.to_vec() } else { Vec::new() };
        Encoder { form, table, bytes, statements: Vec::new(), pending: 0, rows: 0, first_column: true }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Begins a row of so many columns.
    pub fn row(&mut self, columns: u16) {
        match self.form {
            Form::Binary => self.bytes.extend_from_slice(&columns.to_be_bytes()),
            Form::Csv => {}
            Form::Insert(_) if self.pending == 0 => {
                self.bytes.extend_from_slice(format!("INSERT INTO {} VALUES (", self.table).as_bytes());
            }
            Form::Insert(_) => self.bytes.extend_from_slice(b", ("),
        }
        self.first_column = true;
        self.rows += 1;
    }

    /// Ends it.
    pub fn end(&mut self) {
        match self.form {
            Form::Binary => {}
            Form::Csv => self.bytes.push(b'\n'),
            Form::Insert(rows) => {
                self.bytes.push(b')');
                self.pending += 1;
                if self.pending == rows {
                    self.end_statement();
                }
            }
        }
    }

    fn end_statement(&mut self) {
        let text = String::from_utf8(std::mem::take(&mut self.bytes)).expect("we write ASCII");
        self.statements.push(text);
        self.pending = 0;
    }

    /// A whole number of 32 bits.
    pub fn int(&mut self, number: u32) -> &mut Encoder {
        match self.form {
            Form::Binary => self.binary(&number.to_be_bytes()),
            _ => self.plain(number.to_string().as_bytes()),
        }
    }

    /// `units` of 10^-`scale`.
    pub fn decimal(&mut self, units: i64, scale: u32) -> &mut Encoder {
        match self.form {
            Form::Binary => {
                let bytes = &mut self.bytes;
                write_numeric(&mut |part| bytes.extend_from_slice(part), units, scale);
                self
            }
            _ => self.plain(format_decimal(units, scale).as_bytes()),
        }
    }

    /// A text of letters, digits, `-` and `.`.
    pub fn text(&mut self, text: &[u8]) -> &mut Encoder {
        debug_assert!(
            text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte)),
            "our texts need no quotes"
        );
        match self.form {
            Form::Binary => self.binary(text),
            Form::Csv => self.plain(text),
            Form::Insert(_) => self.quoted(text),
        }
    }

    /// Seconds since 1970, UTC.
    pub fn date(&mut self, seconds: i64) -> &mut Encoder {
        if self.form == Form::Binary {
            return self.binary(&((seconds - EPOCH_OF_POSTGRES_S) * 1_000_000).to_be_bytes());
        }
        let (year, month, day, hour, minute, second) = civil(seconds);
        let text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
        match self.form {
            Form::Insert(_) => self.quoted(text.as_bytes()),
            _ => self.plain(text.as_bytes()),
        }
    }

    /// Nothing.
    pub fn null(&mut self) -> &mut Encoder {
        match self.form {
            Form::Binary => {
                self.bytes.extend_from_slice(&(-1i32).to_be_bytes());
                self
            }
            Form::Csv => self.plain(b"\\N"),
            Form::Insert(_) => self.plain(b"NULL"),
        }
    }

    fn binary(&mut self, value: &[u8]) -> &mut Encoder {
        self.bytes.extend_from_slice(&(value.len() as i32).to_be_bytes());
        self.bytes.extend_from_slice(value);
        self
    }

    fn plain(&mut self, value: &[u8]) -> &mut Encoder {
        if !std::mem::take(&mut self.first_column) {
            self.bytes.push(b',');
        }
        self.bytes.extend_from_slice(value);
        self
    }

    fn quoted(&mut self, value: &[u8]) -> &mut Encoder {
        self.plain(b"'");
        self.bytes.extend_from_slice(value);
        self.bytes.push(b'\'');
        self
    }

    /// What was written.
    pub fn finish(mut self) -> Encoded {
        match self.form {
            Form::Binary => {
                self.bytes.extend_from_slice(&(-1i16).to_be_bytes());
                Encoded::Binary(self.bytes.into())
            }
            Form::Csv => Encoded::Csv(self.bytes.into()),
            Form::Insert(_) => {
                if self.pending > 0 {
                    self.end_statement();
                }
                Encoded::Inserts(self.statements)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(form: Form) -> Encoded {
        let mut encoder = Encoder::new(form, "t");
        for number in 1..=3 {
            encoder.row(5);
            encoder.int(number).text(b"Ab-1").decimal(-1000, 2).null().date(0);
            encoder.end();
        }
        assert_eq!(encoder.rows(), 3);
        encoder.finish()
    }

    #[test]
    fn rows_are_written_in_every_form() {
        let Encoded::Inserts(inserts) = encoded(Form::Insert(2)) else { panic!("statements") };
        let row = |number| format!("({number},'Ab-1',-10.00,NULL,'1970-01-01 00:00:00')");
        assert_eq!(inserts[0], format!("INSERT INTO t VALUES {}, {}", row(1), row(2)));
        assert_eq!(inserts[1], format!("INSERT INTO t VALUES {}", row(3)));
        let Encoded::Csv(csv) = encoded(Form::Csv) else { panic!("text") };
        assert!(csv.starts_with(b"1,Ab-1,-10.00,\\N,1970-01-01 00:00:00\n2,"));
        let Encoded::Binary(binary) = encoded(Form::Binary) else { panic!("bytes") };
        assert!(
            binary.starts_with(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\x04\0\0\0\x01\0\0\0\x04Ab-1")
        );
        assert!(binary.ends_with(b"\xff\xff"));
    }
}
