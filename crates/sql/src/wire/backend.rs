//! What a client is answered, appended to a buffer that leaves in as few writes as possible.

use super::startup::MINOR;
use crate::analyze::Column;
use crate::types::{Format, Oid, type_size};
use crate::{Severity, SqlError, SqlState, Subject};

/// Whether a transaction is open, as ReadyForQuery says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// None.
    Idle,
    /// One.
    Open,
    /// One that has failed, so that it can only be ended.
    Failed,
}

/// Appends a message: its type, a length, and what `body` appends. One that is longer than a
/// message may be is taken back (54000).
pub fn message(
    out: &mut Vec<u8>,
    kind: u8,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let begin = out.len();
    out.push(kind);
    out.extend([0; 4]);
    let length = body(out).and_then(|()| {
        let length = i32::try_from(out.len() - begin - 1).ok();
        length.ok_or_else(|| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a message is too long"))
    });
    match (length, out.get_mut(begin + 1..begin + 5)) {
        (Ok(length), Some(place)) => {
            place.copy_from_slice(&length.to_be_bytes());
            Ok(())
        }
        (length, _) => {
            out.truncate(begin);
            length.map(|_| ())
        }
    }
}

/// A message whose body is of bounded length, so that it cannot fail.
fn short(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let done = message(out, kind, |out| {
        body(out);
        Ok(())
    });
    debug_assert!(done.is_ok(), "a message of bounded length has a length");
}

fn text(out: &mut Vec<u8>, text: &str) {
    // A zero byte would end it early.
    match text.contains('\0') {
        false => out.extend_from_slice(text.as_bytes()),
        true => out.extend(text.bytes().filter(|byte| *byte != 0)),
    }
    out.push(0);
}

/// A count of things that are limited to fewer than 65,536.
fn count(out: &mut Vec<u8>, count: usize) {
    out.extend(u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}

/// AuthenticationOk.
pub fn authentication_ok(out: &mut Vec<u8>) {
    short(out, b'R', |out| out.extend([0; 4]));
}

/// NegotiateProtocolVersion: the newest version, and options that are not known.
pub fn negotiate(out: &mut Vec<u8>, unknown: &[&str]) {
    short(out, b'v', |out| {
        out.extend(((3 << 16) | u32::from(MINOR)).to_be_bytes());
        out.extend(u32::try_from(unknown.len()).unwrap_or(u32::MAX).to_be_bytes());
        unknown.iter().for_each(|name| text(out, name));
    });
}

/// ParameterStatus: the value of a setting.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    short(out, b'S', |out| {
        text(out, name);
        text(out, value);
    });
}

/// BackendKeyData: what a CancelRequest has to say.
pub fn key(out: &mut Vec<u8>, pid: u32, secret: &[u8]) {
    short(out, b'K', |out| {
        out.extend(pid.to_be_bytes());
        out.extend(secret);
    });
}

/// ReadyForQuery.
pub fn ready(out: &mut Vec<u8>, status: Status) {
    short(out, b'Z', |out| {
        out.push(match status {
            Status::Idle => b'I',
            Status::Open => b'T',
            Status::Failed => b'E',
        });
    });
}

/// ParseComplete.
pub fn parse_complete(out: &mut Vec<u8>) {
    short(out, b'1', |_| ());
}

/// BindComplete.
pub fn bind_complete(out: &mut Vec<u8>) {
    short(out, b'2', |_| ());
}

/// CloseComplete.
pub fn close_complete(out: &mut Vec<u8>) {
    short(out, b'3', |_| ());
}

/// NoData.
pub fn no_data(out: &mut Vec<u8>) {
    short(out, b'n', |_| ());
}

/// PortalSuspended.
pub fn portal_suspended(out: &mut Vec<u8>) {
    short(out, b's', |_| ());
}

/// EmptyQueryResponse.
pub fn empty_query(out: &mut Vec<u8>) {
    short(out, b'I', |_| ());
}

/// CommandComplete.
pub fn command_complete(out: &mut Vec<u8>, tag: &str) {
    short(out, b'C', |out| text(out, tag));
}

/// CopyInResponse (`G`) or CopyOutResponse (`H`), of rows as text or in binary form.
pub fn copy_begins(out: &mut Vec<u8>, kind: u8, binary: bool, columns: usize) {
    short(out, kind, |out| {
        let format = u8::from(binary);
        out.push(format);
        let columns = u16::try_from(columns).unwrap_or(u16::MAX);
        out.extend(columns.to_be_bytes());
        (0..columns).for_each(|_| out.extend([0, format]));
    });
}

/// CopyData.
pub fn copy_data(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), SqlError> {
    message(out, b'd', |out| {
        out.extend(bytes);
        Ok(())
    })
}

/// CopyDone.
pub fn copy_done(out: &mut Vec<u8>) {
    short(out, b'c', |_| ());
}

/// ParameterDescription.
pub fn parameters(out: &mut Vec<u8>, types: &[Oid]) {
    short(out, b't', |out| {
        count(out, types.len());
        types.iter().for_each(|oid| out.extend(oid.0.to_be_bytes()));
    });
}

/// RowDescription.
pub fn columns(out: &mut Vec<u8>, columns: &[Column], format: impl Fn(usize) -> Format) {
    short(out, b'T', |out| {
        count(out, columns.len());
        for (place, column) in columns.iter().enumerate() {
            text(out, &column.name);
            let (table, number) = column.origin.map_or((0, 0), |origin| (origin.table, origin.column));
            out.extend(table.to_be_bytes());
            out.extend(number.to_be_bytes());
            out.extend(column.oid.shown().0.to_be_bytes());
            out.extend(type_size(column.oid).to_be_bytes());
            out.extend(column.modifier.to_be_bytes());
            out.extend(match format(place) {
                Format::Text => [0, 0],
                Format::Binary => [0, 1],
            });
        }
    });
}

/// A value of a DataRow: its length and what `value` appends; none is NULL.
pub fn value(
    out: &mut Vec<u8>,
    value: Option<impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>>,
) -> Result<(), SqlError> {
    let Some(value) = value else {
        out.extend((-1i32).to_be_bytes());
        return Ok(());
    };
    let begin = out.len();
    out.extend([0; 4]);
    value(out)?;
    let length = i32::try_from(out.len() - begin - 4)
        .map_err(|_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a value is too long for a message"))?;
    if let Some(place) = out.get_mut(begin..begin + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// ErrorResponse or, of what ends nothing, NoticeResponse.
pub fn error(out: &mut Vec<u8>, error: &SqlError) {
    let (kind, severity) = match error.severity {
        Severity::Error => (b'E', "ERROR"),
        Severity::Fatal => (b'E', "FATAL"),
        Severity::Warning => (b'N', "WARNING"),
        Severity::Notice => (b'N', "NOTICE"),
    };
    let position = error.position.map(|position| position.to_string());
    let subject = |field: fn(&Subject) -> &String| {
        error.subject.as_deref().map(|subject| field(subject).as_str()).filter(|text| !text.is_empty())
    };
    let fields = [
        (b'S', Some(severity)),
        (b'V', Some(severity)),
        (b'C', Some(error.state.as_str())),
        (b'M', Some(error.message.as_str())),
        (b'D', error.detail.as_deref()),
        (b'H', error.hint.as_deref()),
        (b'P', position.as_deref()),
        (b'W', error.context.as_deref()),
        (b's', subject(|subject| &subject.schema)),
        (b't', subject(|subject| &subject.table)),
        (b'c', subject(|subject| &subject.column)),
        (b'n', subject(|subject| &subject.constraint)),
    ];
    short(out, kind, |out| {
        for (field, value) in fields {
            if let Some(value) = value {
                out.push(field);
                text(out, value);
            }
        }
        out.push(0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_their_lengths() {
        let mut out = Vec::new();
        ready(&mut out, Status::Failed);
        command_complete(&mut out, "SELECT 1");
        key(&mut out, 7, &[1, 2, 3, 4]);
        assert_eq!(out, b"Z\0\0\0\x05EC\0\0\0\x0dSELECT 1\0K\0\0\0\x0c\0\0\0\x07\x01\x02\x03\x04");
    }

    #[test]
    fn a_row_that_fails_leaves_nothing() {
        let mut out = b"before".to_vec();
        let failed = message(&mut out, b'D', |out| {
            out.extend([1, 2, 3]);
            Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"))
        });
        assert!(failed.is_err());
        assert_eq!(out, b"before");
    }

    #[test]
    fn an_error_has_the_fields_that_it_has() {
        let mut out = Vec::new();
        let division = SqlError::new(SqlState::DIVISION_BY_ZERO, "division\0by zero").hint("divide\nless");
        error(&mut out, &division.at(8));
        let body = b"SERROR\0VERROR\0C22012\0Mdivisionby zero\0Hdivide\nless\0P8\0\0";
        assert_eq!(out[5..], *body);
        out.clear();
        let notice =
            SqlError { severity: Severity::Warning, ..SqlError::new(SqlState::DIVISION_BY_ZERO, "x") };
        error(&mut out, &notice);
        assert_eq!(out[0], b'N');
    }

    #[test]
    fn versions_and_unknown_options_are_named() {
        let mut out = Vec::new();
        negotiate(&mut out, &["_pq_.a", "_pq_.b"]);
        assert_eq!(out, b"v\0\0\0\x1a\0\x03\0\x02\0\0\0\x02_pq_.a\0_pq_.b\0");
    }
}
