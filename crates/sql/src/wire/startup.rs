//! What a client sends before it is known: wishes for encryption, a request to cancel what another
//! session runs, or the start of a session.
//!
//! These messages have no type. A client may ask for encryption once each way before it starts;
//! who asks for more is held to be up to something. The start names a version: major 3 is spoken,
//! minors 0 and 2 of it. A client with a newer minor, or with an option of the protocol that is not
//! known (`_pq_.` and a name), is told so and goes on with what there is.

use super::frame::Reader;
use crate::{SqlError, SqlState};

/// Bytes that a client may send before it is known.
pub const BYTES_MAX: usize = 64 << 10;

/// The newest minor version of protocol 3 that is spoken.
pub const MINOR: u16 = 2;

const MAJOR: u16 = 3;

/// Codes that stand where a version does. Their upper half is no version that there will be.
const CANCEL: u32 = (1234 << 16) | 5678;
const TLS: u32 = (1234 << 16) | 5679;
const GSS: u32 = (1234 << 16) | 5680;

/// The first message of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Startup<'a> {
    /// SSLRequest: is there encryption by TLS?
    Tls,
    /// GSSENCRequest: is there encryption by GSSAPI?
    Gss,
    /// CancelRequest: end what a session runs.
    Cancel {
        /// Which session.
        pid: u32,
        /// What that session was told, and only it.
        secret: &'a [u8],
    },
    /// StartupMessage.
    Start(Start<'a>),
}

/// How a session starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start<'a> {
    /// The minor version that is spoken from here on.
    pub minor: u16,
    /// Whether the client asked for a newer one.
    pub newer: bool,
    /// Options of the protocol that are not known here.
    pub unknown: Vec<&'a str>,
    /// `user`, `database`, `options` and settings.
    pub parameters: Vec<(&'a str, &'a str)>,
}

/// The first message of what has arrived, and how many bytes it takes; none if there is more to
/// come.
pub fn next(arrived: &[u8]) -> Result<Option<(Startup<'_>, usize)>, SqlError> {
    let Some((length, rest)) = arrived.split_first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if !(8..=BYTES_MAX).contains(&length) {
        return Err(violation("invalid length of startup packet"));
    }
    let Some(body) = rest.get(..length - 4) else { return Ok(None) };
    let mut reader = Reader::new(body);
    let version = reader.u32()?;
    let startup = match version {
        TLS if reader.left() == 0 => Startup::Tls,
        GSS if reader.left() == 0 => Startup::Gss,
        CANCEL if reader.left() >= 8 => {
            let pid = reader.u32()?;
            Startup::Cancel { pid, secret: reader.bytes(reader.left())? }
        }
        TLS | GSS | CANCEL => return Err(violation("invalid length of startup packet")),
        _ => Startup::Start(start(version, &mut reader)?),
    };
    Ok(Some((startup, length)))
}

fn start<'a>(version: u32, reader: &mut Reader<'a>) -> Result<Start<'a>, SqlError> {
    let [a, b, c, d] = version.to_be_bytes();
    let (major, minor) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    if major != MAJOR {
        let error = format!(
            "unsupported frontend protocol {major}.{minor}: server supports {MAJOR}.0 to {MAJOR}.{MINOR}"
        );
        return Err(SqlError::fatal(SqlState::FEATURE_NOT_SUPPORTED, error));
    }
    let newer = minor > MINOR;
    let mut start = Start { minor: minor.min(MINOR), newer, unknown: Vec::new(), parameters: Vec::new() };
    loop {
        let name = reader.text().map_err(|_| layout())?;
        if name.is_empty() {
            break;
        }
        let value = reader.text().map_err(|_| layout())?;
        if name.starts_with("_pq_.") {
            start.unknown.push(name);
        } else {
            start.parameters.push((name, value));
        }
    }
    if reader.left() > 0 {
        return Err(layout());
    }
    Ok(start)
}

fn layout() -> SqlError {
    violation("invalid startup packet layout: expected terminator as last byte")
}

fn violation(message: &str) -> SqlError {
    SqlError::fatal(SqlState::PROTOCOL_VIOLATION, message)
}

/// The settings in the parameter `options`: `-c name=value` and `--name=value`, apart by blanks
/// that a backslash keeps. A dash in a name is an underscore.
pub fn options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words = words(text).into_iter();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let refused = || {
            let error = format!("invalid command-line argument for server process: {word}");
            SqlError::fatal(SqlState::SYNTAX_ERROR, error)
        };
        let assignment = match word.strip_prefix("--") {
            Some(assignment) => assignment.to_owned(),
            None => match word.strip_prefix("-c").ok_or_else(refused)? {
                "" => words.next().ok_or_else(refused)?,
                assignment => assignment.to_owned(),
            },
        };
        let Some((name, value)) = assignment.split_once('=') else {
            let error = match word.strip_prefix("--") {
                Some(name) => format!("--{name} requires a value"),
                None => format!("-c {assignment} requires a value"),
            };
            return Err(SqlError::fatal(SqlState::SYNTAX_ERROR, error));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    fn refused(bytes: &[u8]) -> (String, String) {
        let error = next(bytes).expect_err("refused");
        (error.state.as_str().to_owned(), error.message)
    }

    #[test]
    fn requests_before_the_start_are_told_apart() {
        let request = |code: u32, rest: &[u8]| {
            let mut bytes = (8 + u32::try_from(rest.len()).expect("short")).to_be_bytes().to_vec();
            bytes.extend(code.to_be_bytes());
            bytes.extend(rest);
            bytes
        };
        assert_eq!(next(&request(80_877_103, &[])).expect("valid"), Some((Startup::Tls, 8)));
        assert_eq!(next(&request(80_877_104, &[])).expect("valid"), Some((Startup::Gss, 8)));
        let cancel = request(80_877_102, &[0, 0, 0, 7, 1, 2, 3, 4]);
        let expected = Startup::Cancel { pid: 7, secret: &[1, 2, 3, 4] };
        assert_eq!(next(&cancel).expect("valid"), Some((expected, 16)));
        for code in [80_877_102, 80_877_103, 80_877_104] {
            assert_eq!(refused(&request(code, &[1])).0, "08P01", "{code}");
        }
        assert_eq!(next(&cancel[..15]).expect("valid"), None);
    }

    #[test]
    fn versions_are_negotiated() {
        let parameters = [("user", "u"), ("_pq_.fast", "1"), ("database", "d"), ("_pq_.x", "")];
        let start = |minor| {
            let bytes = testing::start(minor, &parameters);
            let Ok(Some((Startup::Start(start), length))) = next(&bytes) else { panic!("a start") };
            assert_eq!(length, bytes.len());
            assert_eq!(start.parameters, [("user", "u"), ("database", "d")]);
            assert_eq!(start.unknown, ["_pq_.fast", "_pq_.x"]);
            (start.minor, start.newer)
        };
        assert_eq!([0, 2, 3, 9999].map(start), [(0, false), (2, false), (2, true), (2, true)]);
        assert_eq!(
            refused(b"\0\0\0\x09\0\x02\0\0\0"),
            ("0A000".to_owned(), "unsupported frontend protocol 2.0: server supports 3.0 to 3.2".to_owned())
        );
    }

    #[test]
    fn what_is_no_start_is_refused() {
        assert_eq!(refused(b"GET / HTTP/1.1").1, "invalid length of startup packet");
        assert_eq!(refused(&[0, 0, 0, 7]).1, "invalid length of startup packet");
        assert_eq!(refused(&[0xff; 4]).1, "invalid length of startup packet");
        let layout = "invalid startup packet layout: expected terminator as last byte";
        assert_eq!(refused(b"\0\0\0\x0d\0\x03\0\0user\0").1, layout);
        assert_eq!(refused(b"\0\0\0\x0a\0\x03\0\0\0x").1, layout);
    }

    #[test]
    fn options_are_settings() {
        let set = |text: &str| options(text).expect("valid");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            set(r"-c geqo=off  -cwork_mem=1MB --statement-timeout=5s -c search_path=a\ b"),
            [
                pair("geqo", "off"),
                pair("work_mem", "1MB"),
                pair("statement_timeout", "5s"),
                pair("search_path", "a b"),
            ]
        );
        assert_eq!(set(" "), []);
        for text in ["-c", "-c geqo", "--geqo", "-x", "geqo=off"] {
            assert!(options(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, text: String) {
            let _ = next(&bytes);
            let _ = options(&text);
        }
    }
}
