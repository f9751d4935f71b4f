//! The lines of `COPY`: text and CSV, in and out.
//!
//! | | text | csv |
//! |---|---|---|
//! | between fields | a tab | a comma |
//! | NULL | `\N` | nothing, without quotes |
//! | a delimiter or a line's end in a field | behind a backslash, or `\t`, `\n` | in quotes, which are doubled inside |
//! | the end | `\.` in a line of its own | the same |

use pg_query::NodeEnum;
use pg_query::protobuf::Node;

use crate::analyze::{self, names};
use crate::functions::confused;
use crate::wire::frame::utf8;
use crate::{SqlError, SqlState};

/// Bytes of a line at most.
const LINE_MAX: usize = 64 << 20;

/// Characters of a line that errors show at most.
const SHOWN_MAX: usize = 100;

/// How fields and lines are written.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Whether rows are not lines at all, but [tuples](super::tuples).
    pub binary: bool,
    csv: bool,
    delimiter: u8,
    null: String,
    header: bool,
    quote: u8,
    escape: u8,
}

impl Form {
    /// What options say.
    pub(super) fn of(options: &[Node]) -> Result<Form, SqlError> {
        let mut said = Vec::new();
        for option in options {
            let Some(NodeEnum::DefElem(option)) = &option.node else { return Err(confused()) };
            let value = option.arg.as_ref().and_then(|arg| names::text_of(arg));
            said.push((option.defname.as_str(), value));
        }
        let find = |name: &str| said.iter().find(|(said, _)| *said == name).map(|(_, value)| value.clone());
        let (binary, csv) = match find("format").flatten().as_deref() {
            None | Some("text") => (false, false),
            Some("csv") => (false, true),
            Some("binary") => (true, false),
            Some(other) => return invalid(format!("COPY format \"{other}\" not recognized")),
        };
        let is_on = |name: &str| {
            let value = find(name);
            value.is_some_and(|value| {
                !value.is_some_and(|value| ["false", "off", "0"].contains(&value.as_str()))
            })
        };
        let byte = |name: &str, default: u8| match find(name).flatten() {
            None => Ok(default),
            Some(text) => match text.as_bytes() {
                [byte] if byte.is_ascii() => Ok(*byte),
                _ => {
                    let error = format!("COPY {name} must be a single one-byte character");
                    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error))
                }
            },
        };
        for (name, _) in &said {
            let known = ["format", "delimiter", "null", "header", "quote", "escape", "freeze", "encoding"];
            if !known.contains(name) {
                return Err(analyze::unsupported(&format!("COPY with {}", name.to_uppercase())));
            }
            if binary && ["delimiter", "null"].contains(name) {
                let error = format!("cannot specify {} in BINARY mode", name.to_uppercase());
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, error));
            }
            if !csv && ["quote", "escape"].contains(name) {
                let error = format!("COPY {name} available only in CSV mode");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error));
            }
        }
        if find("encoding")
            .flatten()
            .is_some_and(|name| !["utf8", "utf-8"].contains(&name.to_lowercase().as_str()))
        {
            return Err(analyze::unsupported("COPY in another encoding than UTF8"));
        }
        let quote = byte("quote", b'"')?;
        if binary && is_on("header") {
            let error = "cannot specify HEADER in BINARY mode";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error));
        }
        let form = Form {
            binary,
            csv,
            delimiter: byte("delimiter", if csv { b',' } else { b'\t' })?,
            null: find("null")
                .flatten()
                .unwrap_or_else(|| if csv { String::new() } else { "\\N".to_owned() }),
            header: is_on("header"),
            quote,
            escape: byte("escape", quote)?,
        };
        let is_bad = matches!(form.delimiter, b'\n' | b'\r' | 0)
            || csv && form.delimiter == form.quote
            || !csv
                && (form.delimiter == b'\\'
                    || form.delimiter == b'.'
                    || form.delimiter.is_ascii_alphanumeric());
        if is_bad {
            return invalid(format!("COPY delimiter cannot be \"{}\"", char::from(form.delimiter)));
        }
        if form.null.contains(['\n', '\r']) {
            return invalid("COPY null representation cannot use newline or carriage return".to_owned());
        }
        Ok(form)
    }

    /// The first line, if there is to be one.
    pub(super) fn header<'a>(&self, names: impl Iterator<Item = &'a str>) -> Option<Vec<u8>> {
        self.header.then(|| self.line(names.map(Some)))
    }

    /// A line of these fields.
    pub(super) fn line<'a>(&self, fields: impl Iterator<Item = Option<&'a str>>) -> Vec<u8> {
        let mut line = Vec::new();
        for (number, field) in fields.enumerate() {
            if number > 0 {
                line.push(self.delimiter);
            }
            match field {
                None => line.extend(self.null.as_bytes()),
                Some(field) if self.csv => self.put_quoted(field, &mut line),
                Some(field) => self.put_escaped(field, &mut line),
            }
        }
        line.push(b'\n');
        line
    }

    fn put_quoted(&self, field: &str, line: &mut Vec<u8>) {
        let special =
            |byte: u8| byte == self.delimiter || byte == self.quote || byte == b'\n' || byte == b'\r';
        if !(field.bytes().any(special) || field == self.null || field == "\\.") {
            line.extend(field.as_bytes());
            return;
        }
        line.push(self.quote);
        for byte in field.bytes() {
            if byte == self.quote || byte == self.escape {
                line.push(self.escape);
            }
            line.push(byte);
        }
        line.push(self.quote);
    }

    fn put_escaped(&self, field: &str, line: &mut Vec<u8>) {
        for byte in field.bytes() {
            let letter = match byte {
                0x08 => b'b',
                0x0c => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0x0b => b'v',
                b'\\' => b'\\',
                byte if byte == self.delimiter => byte,
                byte => {
                    line.push(byte);
                    continue;
                }
            };
            line.extend([b'\\', letter]);
        }
    }
}

fn invalid<T>(error: String) -> Result<T, SqlError> {
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error))
}

/// Lines that come in pieces.
pub(super) struct Lines {
    form: Form,
    table: String,
    bytes: Vec<u8>,
    /// How many bytes of these are behind.
    at: usize,
    /// How many bytes behind these have been looked at for a line's end, and what they leave open.
    seen: usize,
    open: Ending,
    /// How many fields a line has at most.
    width: usize,
    number: usize,
    /// The line that came last.
    last: Vec<u8>,
    is_over: bool,
}

impl Lines {
    /// None has come.
    pub(super) fn new(form: Form, table: String, width: usize) -> Lines {
        let open = Ending::default();
        Lines {
            form,
            table,
            bytes: Vec::new(),
            at: 0,
            seen: 0,
            open,
            width,
            number: 0,
            last: Vec::new(),
            is_over: false,
        }
    }

    /// More bytes have come.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        if !self.is_over {
            self.bytes.drain(..self.at);
            self.at = 0;
            self.bytes.extend(bytes);
            if self.seen > LINE_MAX {
                let error = format!("a line of COPY is longer than {LINE_MAX} bytes");
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error));
            }
        }
        Ok(())
    }

    /// Bytes that have not been taken.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The number of the line that came last, from 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Which line came last, for errors.
    pub(super) fn place(&self) -> String {
        format!("COPY {}, line {}", self.table, self.number)
    }

    /// The same with its text.
    pub(super) fn place_with_text(&self) -> String {
        let text = String::from_utf8_lossy(&self.last);
        match text.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => format!("{}: \"{}...\"", self.place(), text.get(..end).unwrap_or_default()),
            None => format!("{}: \"{text}\"", self.place()),
        }
    }

    /// The fields of the next line that is whole; at the end any rest is one.
    pub(super) fn next(&mut self, is_end: bool) -> Result<Option<Vec<Option<String>>>, SqlError> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            if self.is_over || rest.is_empty() {
                return Ok(None);
            }
            let unseen = rest.get(self.seen..).unwrap_or_default();
            let end = unseen.iter().position(|byte| self.open.ends(*byte, &self.form));
            let (line, taken) = match end {
                Some(end) => (rest.get(..self.seen + end).unwrap_or_default(), self.seen + end + 1),
                None if is_end => (rest, rest.len()),
                None => {
                    self.seen = rest.len();
                    return Ok(None);
                }
            };
            (self.seen, self.open) = (0, Ending::default());
            let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
            self.last.clone_from(&line);
            self.at += taken;
            self.number += 1;
            if line == b"\\." {
                self.is_over = true;
                return Ok(None);
            }
            if self.number == 1 && self.form.header {
                continue;
            }
            let split = if self.form.csv { csv_fields } else { text_fields };
            let fields = split(&line, &self.form, self.width);
            let placed = |error: SqlError| SqlError { context: Some(self.place_with_text()), ..error };
            return fields.map(Some).map_err(placed);
        }
    }
}

/// What the bytes of a line leave open.
#[derive(Clone, Copy, Default)]
struct Ending {
    /// A quote.
    quoted: bool,
    /// The byte after an escape.
    escaped: bool,
}

impl Ending {
    /// Whether a line ends with the next byte.
    fn ends(&mut self, byte: u8, form: &Form) -> bool {
        if !form.csv {
            let ends = byte == b'\n' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            return ends;
        }
        if self.quoted && byte == form.escape && form.escape != form.quote && !self.escaped {
            self.escaped = true;
            return false;
        }
        self.quoted ^= byte == form.quote && !self.escaped;
        self.escaped = false;
        byte == b'\n' && !self.quoted
    }
}

/// The fields of a line; of one that has more than so many, one more.
fn text_fields(line: &[u8], form: &Form, width: usize) -> Result<Vec<Option<String>>, SqlError> {
    let (mut fields, mut field, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    let mut bytes = line.iter().copied().peekable();
    loop {
        let next = bytes.next();
        match next {
            Some(b'\\') => {
                raw.push(b'\\');
                let Some(byte) = bytes.next() else { continue };
                raw.push(byte);
                match byte {
                    b'b' => field.push(0x08),
                    b'f' => field.push(0x0c),
                    b'n' => field.push(b'\n'),
                    b'r' => field.push(b'\r'),
                    b't' => field.push(b'\t'),
                    b'v' => field.push(0x0b),
                    b'x' if bytes.peek().is_some_and(u8::is_ascii_hexdigit) => {
                        field.push(digits(&mut bytes, &mut raw, 0, 16, 2));
                    }
                    b'0'..=b'7' => field.push(digits(&mut bytes, &mut raw, u32::from(byte - b'0'), 8, 2)),
                    byte => field.push(byte),
                }
            }
            Some(byte) if byte != form.delimiter => {
                raw.push(byte);
                field.push(byte);
            }
            ended => {
                let value = match raw == form.null.as_bytes() {
                    true => None,
                    false => Some(utf8(&field)?.to_owned()),
                };
                fields.push(value);
                field.clear();
                raw.clear();
                if ended.is_none() || fields.len() > width {
                    return Ok(fields);
                }
            }
        }
    }
}

/// A byte by its digits, of which there are a few more.
fn digits(
    bytes: &mut std::iter::Peekable<impl Iterator<Item = u8>>,
    raw: &mut Vec<u8>,
    first: u32,
    base: u32,
    more: usize,
) -> u8 {
    let mut value = first;
    for _ in 0..more {
        let Some(digit) = bytes.peek().and_then(|byte| char::from(*byte).to_digit(base)) else { break };
        raw.extend(bytes.next());
        value = value * base + digit;
    }
    u8::try_from(value & 0xff).unwrap_or_default()
}

/// The same of CSV.
fn csv_fields(line: &[u8], form: &Form, width: usize) -> Result<Vec<Option<String>>, SqlError> {
    let (mut fields, mut field) = (Vec::new(), Vec::new());
    let (mut quoted, mut was_quoted) = (false, false);
    let mut bytes = line.iter().copied().peekable();
    loop {
        let next = bytes.next();
        match next {
            None if quoted => {
                let error = "unterminated CSV quoted field";
                return Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, error));
            }
            Some(byte) if quoted => {
                let follows = bytes.peek().copied();
                if byte == form.escape
                    && follows.is_some_and(|next| next == form.quote || next == form.escape)
                {
                    field.extend(bytes.next());
                } else if byte == form.quote {
                    quoted = false;
                } else {
                    field.push(byte);
                }
            }
            Some(byte) if byte == form.quote => {
                quoted = true;
                was_quoted = true;
            }
            Some(byte) if byte != form.delimiter => field.push(byte),
            ended => {
                let value = match !was_quoted && field == form.null.as_bytes() {
                    true => None,
                    false => Some(utf8(&field)?.to_owned()),
                };
                fields.push(value);
                field.clear();
                was_quoted = false;
                if ended.is_none() || fields.len() > width {
                    return Ok(fields);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(csv: bool) -> Form {
        let null = if csv { "" } else { "\\N" }.to_owned();
        let delimiter = if csv { b',' } else { b'\t' };
        Form { binary: false, csv, delimiter, null, header: false, quote: b'"', escape: b'"' }
    }

    /// What comes of bytes that come so many at a time.
    fn lines(csv: bool, bytes: &[u8], piece: usize) -> Vec<Vec<Option<String>>> {
        let mut lines = Lines::new(form(csv), "t".to_owned(), 3);
        let mut all = Vec::new();
        for piece in bytes.chunks(piece) {
            lines.take(piece).expect("it is short");
            while let Some(fields) = lines.next(false).expect("it is right") {
                all.push(fields);
            }
        }
        while let Some(fields) = lines.next(true).expect("it is right") {
            all.push(fields);
        }
        all
    }

    #[test]
    fn what_is_written_is_read_however_it_comes() {
        let odd =
            ["", "a", "\\N", "\\.", "a\tb", "a\nb\r\n", "\"", "a,b", "é\\", "x\u{8}\u{b}\u{c}", "'\"\""];
        let rows: Vec<Vec<Option<&str>>> =
            odd.iter().flat_map(|a| odd.iter().map(move |b| vec![Some(*a), None, Some(*b)])).collect();
        for csv in [false, true] {
            let form = form(csv);
            let bytes: Vec<u8> = rows.iter().flat_map(|row| form.line(row.iter().copied())).collect();
            for piece in [1, 7, 1000, bytes.len()] {
                let read = lines(csv, &bytes, piece);
                let read: Vec<Vec<Option<&str>>> =
                    read.iter().map(|row| row.iter().map(Option::as_deref).collect()).collect();
                assert_eq!(read, rows, "csv {csv}, {piece} bytes at a time");
            }
        }
    }

    #[test]
    fn forms_of_postgresql_are_understood() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            lines(false, b"1\t\\x41\\102\t\\N\n2\t\\\t\tx\n\\.\nrest\n", 3),
            [vec![some("1"), some("AB"), None], vec![some("2"), some("\t"), some("x")]]
        );
        assert_eq!(
            lines(true, b"1,\"a\nb\",\n\"\",,x\r\n", 2),
            [vec![some("1"), some("a\nb"), None], vec![some(""), None, some("x")]]
        );
        let mut broken = Lines::new(form(true), "t".to_owned(), 3);
        broken.take(b"1,\"a\n").expect("it is short");
        assert_eq!(broken.next(true).map_err(|error| error.state), Err(SqlState::BAD_COPY_FILE_FORMAT));
    }
}
