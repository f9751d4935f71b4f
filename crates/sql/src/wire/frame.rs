//! Where messages end, and the reader of what is in them.
//!
//! A message is a type, a length that counts itself, and a body. [`next`] finds the first one in
//! what has arrived; it copies nothing.

use crate::{SqlError, SqlState};

/// Bytes of a message at most, for types that carry texts or values: as PostgreSQL, which allocates
/// no more at once.
pub const LARGE_BYTES_MAX: usize = 0x3fff_ffff;

/// Bytes of a message at most, for all other types.
pub const SMALL_BYTES_MAX: usize = 10_000;

/// A message that has arrived in full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: u8,
    /// What follows its length.
    pub body: &'a [u8],
    /// Bytes that it takes, with type and length.
    pub bytes: usize,
}

/// The first message of what has arrived; none if there is more to come.
pub fn next(arrived: &[u8]) -> Result<Option<Frame<'_>>, SqlError> {
    let Some((&kind, rest)) = arrived.split_first() else { return Ok(None) };
    // Refused before its length is known: what follows is no message.
    let limit = match kind {
        b'Q' | b'P' | b'B' | b'F' | b'd' => LARGE_BYTES_MAX,
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => SMALL_BYTES_MAX,
        _ => {
            let error = format!("invalid frontend message type {kind}");
            return Err(SqlError::fatal(SqlState::PROTOCOL_VIOLATION, error));
        }
    };
    let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    // A length counts its own four bytes. A negative one is above every limit.
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if !(4..=limit).contains(&length) {
        return Err(SqlError::fatal(SqlState::PROTOCOL_VIOLATION, "invalid message length"));
    }
    let frame = rest.get(..length - 4).map(|body| Frame { kind, body, bytes: length + 1 });
    Ok(frame)
}

/// Reads the fields of a message one after the other.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of a message's body.
    pub fn new(body: &'a [u8]) -> Reader<'a> {
        Reader { rest: body }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], SqlError> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(missing)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(missing)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// A byte.
    pub fn u8(&mut self) -> Result<u8, SqlError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    /// A count or a format.
    pub fn u16(&mut self) -> Result<u16, SqlError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// A type, a version.
    pub fn u32(&mut self) -> Result<u32, SqlError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A length or a limit.
    pub fn i32(&mut self) -> Result<i32, SqlError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// Text up to its zero byte.
    pub fn text(&mut self) -> Result<&'a str, SqlError> {
        let end = self.rest.iter().position(|byte| *byte == 0);
        let end =
            end.ok_or_else(|| SqlError::new(SqlState::PROTOCOL_VIOLATION, "invalid string in message"))?;
        let bytes = self.bytes(end)?;
        self.u8()?;
        utf8(bytes)
    }

    /// This many items, each of at least `bytes`. Room is made for what can be there, not for what
    /// the count promises.
    pub fn items<T>(
        &mut self,
        count: u16,
        bytes: usize,
        mut item: impl FnMut(&mut Reader<'a>) -> Result<T, SqlError>,
    ) -> Result<Vec<T>, SqlError> {
        let count = usize::from(count);
        let mut items = Vec::with_capacity(count.min(self.left() / bytes.max(1)));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// The message has to be over.
    pub fn end(&self) -> Result<(), SqlError> {
        match self.rest {
            [] => Ok(()),
            _ => Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, "invalid message format")),
        }
    }
}

fn missing() -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
}

/// Bytes as text, or 22021 with the character that is none, as PostgreSQL shows it.
pub fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let rest = bytes.get(error.valid_up_to()..).unwrap_or_default();
        let length = match rest.first() {
            Some(0xc0..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(0xf0..=0xf7) => 4,
            _ => 1,
        };
        let shown: Vec<String> = rest.iter().take(length).map(|byte| format!("0x{byte:02x}")).collect();
        let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
        SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_ends_where_its_length_says() {
        let two = b"S\0\0\0\x04H\0\0\0\x04";
        let frame = next(two).expect("valid").expect("complete");
        assert_eq!(frame, Frame { kind: b'S', body: &[], bytes: 5 });
        for part in 0..5 {
            assert_eq!(next(&two[..part]).expect("valid"), None, "{part} bytes");
        }
    }

    #[test]
    fn lengths_and_types_are_refused_before_the_message_arrives() {
        let refused = |kind: u8, length: i32| {
            let mut bytes = vec![kind];
            bytes.extend(length.to_be_bytes());
            next(&bytes).err().map(|error| (error.severity, error.message))
        };
        let fatal = |message: &str| Some((crate::Severity::Fatal, message.to_owned()));
        for length in [i32::MIN, -1, 0, 3, i32::MAX, 0x4000_0000] {
            assert_eq!(refused(b'Q', length), fatal("invalid message length"), "{length}");
        }
        assert_eq!(refused(b'S', 10_001), fatal("invalid message length"));
        assert_eq!(refused(b'Q', 0x3fff_ffff), None);
        assert_eq!(refused(b'Q', 4), None);
        assert_eq!(refused(b'!', 4), fatal("invalid frontend message type 33"));
        assert_eq!(
            next(b"\xff").err().map(|error| error.message),
            fatal("invalid frontend message type 255").map(|it| it.1)
        );
    }

    #[test]
    fn text_that_is_not_utf8_is_shown_in_hexadecimal() {
        let shown = |bytes: &[u8]| utf8(bytes).expect_err("invalid").message;
        let begin = "invalid byte sequence for encoding \"UTF8\": ";
        assert_eq!(shown(b"ab\xffcd"), format!("{begin}0xff"));
        assert_eq!(shown(b"\xc3("), format!("{begin}0xc3 0x28"));
        assert_eq!(shown(b"\xe2\x82"), format!("{begin}0xe2 0x82"));
        assert_eq!(utf8("é€𝄞".as_bytes()).expect("valid"), "é€𝄞");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            if let Ok(Some(frame)) = next(&bytes) {
                prop_assert!(frame.bytes <= bytes.len());
                prop_assert_eq!(frame.body.len() + 5, frame.bytes);
            }
            let _ = Reader::new(&bytes).text();
        }
    }
}
