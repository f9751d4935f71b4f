//! What a client sends once it is known.
//!
//! A message borrows from the bytes that arrived: values of parameters are copied for the first
//! time when they are decoded.

use super::frame::{Frame, Reader};
use crate::{SqlError, SqlState};

/// What a Describe or a Close is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// A prepared statement, without a name the unnamed one.
    Statement(&'a str),
    /// A portal, likewise.
    Portal(&'a str),
}

/// How values are written.
pub use crate::types::Format;

/// A Bind: a statement, its parameters, and how it is to answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bind<'a> {
    /// The portal to make.
    pub portal: &'a str,
    /// Of which statement.
    pub statement: &'a str,
    /// Formats of the parameters: none (all are text), one for all, or one each.
    pub formats: Vec<Format>,
    /// The parameters; none is NULL.
    pub parameters: Vec<Option<&'a [u8]>>,
    /// Formats of the columns: as those of the parameters.
    pub results: Vec<Format>,
}

/// A message of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// `Q`: statements to run now.
    Query(&'a str),
    /// `P`: a statement to prepare.
    Parse {
        /// Its name, empty for the unnamed one.
        name: &'a str,
        /// Its text.
        text: &'a str,
        /// Types of its first parameters; 0 is left open.
        types: Vec<u32>,
    },
    /// `B`: a portal to make.
    Bind(Bind<'a>),
    /// `D`: what has it?
    Describe(Target<'a>),
    /// `E`: run a portal.
    Execute {
        /// Its name.
        portal: &'a str,
        /// Rows at most, if there is a limit.
        limit: Option<u32>,
    },
    /// `C`: forget it.
    Close(Target<'a>),
    /// `H`: send what there is.
    Flush,
    /// `S`: the end of a unit; errors are forgotten.
    Sync,
    /// `X`: farewell.
    Terminate,
    /// `F`: call a function by its identifier. What it has is not read.
    FunctionCall,
    /// `d`: rows of a COPY.
    CopyData(&'a [u8]),
    /// `c`: the end of a COPY.
    CopyDone,
    /// `f`: a COPY that the client gives up, and why.
    CopyFail(&'a str),
    /// `p`: a part of an authentication.
    Password(&'a [u8]),
}

impl<'a> Message<'a> {
    /// What a frame says.
    pub fn decode(frame: Frame<'a>) -> Result<Message<'a>, SqlError> {
        let mut reader = Reader::new(frame.body);
        let message = match frame.kind {
            b'Q' => Message::Query(reader.text()?),
            b'P' => {
                let (name, text) = (reader.text()?, reader.text()?);
                let count = reader.u16()?;
                Message::Parse { name, text, types: reader.items(count, 4, Reader::u32)? }
            }
            b'B' => Message::Bind(bind(&mut reader)?),
            b'D' => Message::Describe(target(&mut reader, "DESCRIBE")?),
            b'E' => {
                let portal = reader.text()?;
                let limit = u32::try_from(reader.i32()?).ok().filter(|limit| *limit > 0);
                Message::Execute { portal, limit }
            }
            b'C' => Message::Close(target(&mut reader, "CLOSE")?),
            b'H' => Message::Flush,
            b'S' => Message::Sync,
            b'X' => Message::Terminate,
            b'F' => return Ok(Message::FunctionCall),
            b'd' => return Ok(Message::CopyData(frame.body)),
            b'c' => Message::CopyDone,
            b'f' => Message::CopyFail(reader.text()?),
            b'p' => return Ok(Message::Password(frame.body)),
            kind => {
                let error = format!("invalid frontend message type {kind}");
                return Err(SqlError::fatal(SqlState::PROTOCOL_VIOLATION, error));
            }
        };
        reader.end()?;
        Ok(message)
    }
}

fn bind<'a>(reader: &mut Reader<'a>) -> Result<Bind<'a>, SqlError> {
    let (portal, statement) = (reader.text()?, reader.text()?);
    let count = reader.u16()?;
    let formats = reader.items(count, 2, format)?;
    let count = reader.u16()?;
    if formats.len() > 1 && formats.len() != usize::from(count) {
        let error = format!("bind message has {} parameter formats but {count} parameters", formats.len());
        return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, error));
    }
    let parameters = reader.items(count, 4, |reader| match reader.i32()? {
        -1 => Ok(None),
        length => {
            let length = usize::try_from(length).map_err(|_| {
                SqlError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
            })?;
            reader.bytes(length).map(Some)
        }
    })?;
    let count = reader.u16()?;
    Ok(Bind { portal, statement, formats, parameters, results: reader.items(count, 2, format)? })
}

fn format(reader: &mut Reader<'_>) -> Result<Format, SqlError> {
    match reader.u16()? {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        code => {
            // The code is signed for PostgreSQL.
            let error = format!("unsupported format code: {}", i16::from_be_bytes(code.to_be_bytes()));
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error))
        }
    }
}

fn target<'a>(reader: &mut Reader<'a>, of: &str) -> Result<Target<'a>, SqlError> {
    match reader.u8()? {
        b'S' => Ok(Target::Statement(reader.text()?)),
        b'P' => Ok(Target::Portal(reader.text()?)),
        kind => {
            let error = format!("invalid {of} message subtype {kind}");
            Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, error))
        }
    }
}

/// The format of the value at a place, where none means text and one means all.
pub fn format_of(formats: &[Format], place: usize) -> Format {
    match formats {
        [] => Format::Text,
        [all] => *all,
        each => each.get(place).copied().unwrap_or(Format::Text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame;
    use super::*;
    use crate::testing;

    fn decoded(bytes: &[u8]) -> Message<'_> {
        Message::decode(frame::next(bytes).expect("a frame").expect("complete")).expect("a message")
    }

    fn refused(kind: u8, body: &[u8]) -> (String, String) {
        let error = Message::decode(Frame { kind, body, bytes: body.len() + 5 }).expect_err("refused");
        (error.state.as_str().to_owned(), error.message)
    }

    #[test]
    fn what_a_client_sends_is_understood() {
        assert_eq!(decoded(&testing::query("select 'é'")), Message::Query("select 'é'"));
        let parse = testing::parse("s", "select $1", &[23, 0]);
        assert_eq!(decoded(&parse), Message::Parse { name: "s", text: "select $1", types: vec![23, 0] });
        let bind = testing::bind("p", "s", &[1], &[Some(&[0, 0, 0, 7]), None, Some(b"")], &[0, 1]);
        let expected = Bind {
            portal: "p",
            statement: "s",
            formats: vec![Format::Binary],
            parameters: vec![Some(&[0, 0, 0, 7]), None, Some(b"")],
            results: vec![Format::Text, Format::Binary],
        };
        assert_eq!(decoded(&bind), Message::Bind(expected));
        let describe = testing::message(b'D', b"Ss\0");
        assert_eq!(decoded(&describe), Message::Describe(Target::Statement("s")));
        assert_eq!(decoded(&testing::message(b'C', b"P\0")), Message::Close(Target::Portal("")));
        for (limit, expected) in [(0, None), (-1, None), (i32::MIN, None), (7, Some(7))] {
            let execute = testing::execute("p", limit);
            assert_eq!(decoded(&execute), Message::Execute { portal: "p", limit: expected });
        }
        for (kind, expected) in [
            (b'H', Message::Flush),
            (b'S', Message::Sync),
            (b'X', Message::Terminate),
            (b'c', Message::CopyDone),
        ] {
            assert_eq!(decoded(&testing::message(kind, &[])), expected);
        }
    }

    #[test]
    fn a_statement_may_have_65_535_parameters() {
        let parameters = vec![Some(b"1".as_slice()); 65_535];
        let bytes = testing::bind("", "", &[], &parameters, &[]);
        let Message::Bind(bind) = decoded(&bytes) else { panic!("a Bind") };
        assert_eq!(bind.parameters.len(), 65_535);
    }

    #[test]
    fn lies_about_lengths_are_refused() {
        let violation = |message: &str| ("08P01".to_owned(), message.to_owned());
        let missing = violation("insufficient data left in message");
        let invalid = violation("invalid message format");
        assert_eq!(refused(b'Q', b"select 1"), violation("invalid string in message"));
        assert_eq!(refused(b'Q', b"select 1\0x"), invalid);
        assert_eq!(refused(b'S', b"x"), invalid);
        assert_eq!(refused(b'P', b"\0\0\xff\xff"), missing);
        assert_eq!(refused(b'E', b"\0\0\0"), missing);
        // A parameter that has 2^31 - 1 bytes, or -2.
        assert_eq!(refused(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"), missing);
        assert_eq!(refused(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"), missing);
        assert_eq!(
            refused(b'B', b"\0\0\0\x02\0\0\0\0\0\x01\xff\xff\xff\xff\0\0"),
            violation("bind message has 2 parameter formats but 1 parameters")
        );
        assert_eq!(
            refused(b'B', b"\0\0\0\x01\0\x02\0\0\0\0"),
            ("22023".to_owned(), "unsupported format code: 2".to_owned())
        );
        assert_eq!(refused(b'D', b"X\0"), violation("invalid DESCRIBE message subtype 88"));
        assert_eq!(refused(b'Q', b"\xff\0").0, "22021");
    }

    proptest! {
        #[test]
        fn no_body_panics(kind: u8, body: Vec<u8>) {
            let _ = Message::decode(Frame { kind, body: &body, bytes: body.len() + 5 });
        }

        #[test]
        fn a_bind_comes_back(portal in "[a-z]{0,9}", values: Vec<Option<Vec<u8>>>, binary: bool) {
            let parameters: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
            let bytes = testing::bind(&portal, "s", &[u16::from(binary)], &parameters, &[]);
            let Message::Bind(bind) = decoded(&bytes) else { panic!("a Bind") };
            prop_assert_eq!((bind.portal, bind.parameters), (portal.as_str(), parameters));
        }
    }
}
