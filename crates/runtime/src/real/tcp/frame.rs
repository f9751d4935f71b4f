//! What travels over a connection after the handshake.
//!
//! A *frame* carries the messages that one pass of a shard sends to one other shard. Numbers are
//! little-endian:
//!
//! | bytes | |
//! |---|---|
//! | 4 | the length of what follows the checksum, at most [`FRAME_MAX`] |
//! | 4 | CRC-32C of what follows |
//! | 8 | the frame's number: 0, 1, 2 and so on, per connection and direction |
//! | | messages, and beats: each begins with a byte for its kind |
//!
//! A pass that sends much makes several frames, so that the other side can begin before all has
//! arrived. A message is never divided, and a frame is decoded whole before anything in it is
//! handled. TCP's own checksum is weak, so a frame has its own; and a number that is not the next
//! one shows that an end has lost count. Either fault closes the connection, because nothing after
//! it could be trusted.
//!
//! The content of a frame is not trusted: decoding ends with messages or with a [`Fault`], and
//! takes no more memory than a small multiple of what has arrived. A process that sends frames has
//! passed the handshake, so this guards against bugs and broken memory as much as against malice.

use std::fmt;

use plimsoll_types::wire::{Input, Malformed, Sink, Wire};

use super::beat::Beat;
use crate::Participant;
use crate::shard::Message;

/// Maximum length of a frame in bytes, without length and checksum. A longer message cannot travel.
pub const FRAME_MAX: usize = 64 << 20;

/// Bytes of a frame's length and checksum.
pub(super) const HEAD: usize = 8;
/// Bytes of a frame's number.
const NUMBER: usize = 8;
/// Another frame is begun once one has this many bytes, or this many messages.
const LONG: usize = 1 << 20;
const MESSAGES_MAX: usize = 1 << 16;

/// The first byte of a beat; no message begins with it (`Message`).
const BEAT: u8 = 4;

/// Why a connection was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Closed {
    /// The other side closed it.
    Ended = 1,
    /// Nothing has arrived for too long.
    Failed,
    /// Nothing arrived for too long.
    Silent,
    /// A newer connection took its place.
    Replaced,
    /// A frame was longer than [`FRAME_MAX`], or too short to be one.
    Length,
    /// A frame and its checksum did not match.
    Checksum,
    /// A frame did not have the next number.
    Number,
    /// A frame's content was not a sequence of messages.
    Malformed,
    /// A message broke a rule of calls.
    Rule,
    /// This side had to send a message longer than a frame.
    Oversized,
    /// This side is a client, and some node has refused it.
    Refused,
}

impl Closed {
    const ALL: [Closed; 11] = [
        Closed::Ended,
        Closed::Failed,
        Closed::Silent,
        Closed::Replaced,
        Closed::Length,
        Closed::Checksum,
        Closed::Number,
        Closed::Malformed,
        Closed::Rule,
        Closed::Oversized,
        Closed::Refused,
    ];

    /// The reason with this number.
    pub(super) fn numbered(number: u8) -> Option<Closed> {
        Closed::ALL.into_iter().find(|&closed| closed as u8 == number)
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Closed::Ended => "the other side closed it",
            Closed::Failed => "an error of the operating system",
            Closed::Silent => "nothing arrived for too long",
            Closed::Replaced => "a newer connection took its place",
            Closed::Length => "a frame of an impossible length",
            Closed::Checksum => "a frame whose checksum is wrong",
            Closed::Number => "a frame out of turn",
            Closed::Malformed => "a frame that is malformed",
            Closed::Rule => "a message against the rules",
            Closed::Oversized => "a message too long for a frame",
            Closed::Refused => "a node has refused this client",
        })
    }
}

/// Why a connection is closed, with details for the log.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) closed: Closed,
    pub(super) detail: String,
}

impl Fault {
    pub(super) fn new(closed: Closed, detail: impl Into<String>) -> Fault {
        Fault { closed, detail: detail.into() }
    }
}

impl From<Closed> for Fault {
    fn from(closed: Closed) -> Fault {
        Fault::new(closed, "")
    }
}

impl From<Malformed> for Fault {
    fn from(Malformed(what): Malformed) -> Fault {
        Fault::new(Closed::Malformed, what)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        Fault::new(Closed::Failed, error.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.as_str() {
            "" => self.closed.fmt(f),
            detail => write!(f, "{}: {detail}", self.closed),
        }
    }
}

/// The decoded content of a frame.
pub(super) struct Content<N: Participant> {
    pub(super) messages: Vec<Message<N>>,
    pub(super) beat: Option<Beat>,
}

/// Appends frames that carry these messages, numbered from `number` on.
type Encode<N> = fn(&[Message<N>], &mut u64, &mut Vec<u8>) -> Result<(), Fault>;
/// Decodes what follows a frame's number.
type Decode<N> = fn(&[u8]) -> Result<Content<N>, Malformed>;

/// How the messages of a participant are encoded and decoded. These are function pointers because
/// only a participant that is used with a network has messages with an encoding.
pub(super) struct Codec<N: Participant> {
    pub(super) encode: Encode<N>,
    pub(super) decode: Decode<N>,
}

impl<N: Participant> Clone for Codec<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N: Participant> Copy for Codec<N> {}

impl<N: Participant> Codec<N>
where
    N::Request: Wire,
    N::Reply: Wire,
{
    pub(super) fn new() -> Codec<N> {
        Codec { encode: encode::<N>, decode: decode::<N> }
    }
}

fn encode<N: Participant>(messages: &[Message<N>], number: &mut u64, out: &mut Vec<u8>) -> Result<(), Fault>
where
    N::Request: Wire,
    N::Reply: Wire,
{
    let (mut begin, mut first) = (begin_frame(number, out), 0);
    for (index, message) in messages.iter().enumerate() {
        if out.len() - begin >= LONG || index - first == MESSAGES_MAX {
            end_frame(begin, out)?;
            (begin, first) = (begin_frame(number, out), index);
        }
        message.encode(out);
    }
    end_frame(begin, out)
}

fn decode<N: Participant>(bytes: &[u8]) -> Result<Content<N>, Malformed>
where
    N::Request: Wire,
    N::Reply: Wire,
{
    let mut input = Input::new(bytes);
    let mut content = Content { messages: Vec::new(), beat: None };
    while input.left() > 0 {
        if content.messages.len() == MESSAGES_MAX {
            return Err(Malformed("more messages than a frame may have"));
        }
        if input.peek() == Some(BEAT) {
            input.take(1)?;
            content.beat = Some(Beat::decode(&mut input)?);
        } else {
            content.messages.push(Message::decode(&mut input)?);
        }
    }
    Ok(content)
}

/// Appends a frame with a beat.
pub(super) fn encode_beat(beat: Beat, number: &mut u64, out: &mut Vec<u8>) {
    let begin = begin_frame(number, out);
    BEAT.encode(out);
    beat.encode(out);
    end_frame(begin, out).expect("a beat is short");
}

/// Begins a frame, with room for its length and checksum.
fn begin_frame(number: &mut u64, out: &mut Vec<u8>) -> usize {
    let begin = out.len();
    out.put(&[0; HEAD]);
    number.encode(out);
    *number += 1;
    begin
}

fn end_frame(begin: usize, out: &mut [u8]) -> Result<(), Fault> {
    let frame = &mut out[begin..];
    let length = frame.len() - HEAD;
    if length > FRAME_MAX {
        let detail = format!("{length} bytes, and a frame has at most {FRAME_MAX}");
        return Err(Fault::new(Closed::Oversized, detail));
    }
    let checksum = crc32c::crc32c(&frame[HEAD..]);
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    frame[4..HEAD].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// The length of the frame that begins with these bytes, its head included; `None` if there are too
/// few bytes to tell.
pub(super) fn extent(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let Some((length, _)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    match (NUMBER..=FRAME_MAX).contains(&length) {
        true => Ok(Some(HEAD + length)),
        false => Err(Fault::new(Closed::Length, format!("{length} bytes"))),
    }
}

/// The content of a whole frame, after its number, which has to be `number`.
pub(super) fn open(frame: &[u8], number: u64) -> Result<&[u8], Fault> {
    let checksum = u32::from_le_bytes(frame[4..HEAD].try_into().expect("four bytes"));
    let rest = &frame[HEAD..];
    if crc32c::crc32c(rest) != checksum {
        return Err(Closed::Checksum.into());
    }
    let (said, messages) = rest.split_first_chunk::<NUMBER>().expect("a frame has a number");
    let said = u64::from_le_bytes(*said);
    match said == number {
        true => Ok(messages),
        false => Err(Fault::new(Closed::Number, format!("number {said} instead of {number}"))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::tests::{Request, Till};
    use super::*;

    /// What a message is made from: its kind, number and bytes.
    type Drawn = (u8, u32, Vec<u8>);

    fn drawn() -> impl Strategy<Value = Drawn> {
        (0..3u8, any::<u32>(), vec(any::<u8>(), 0..40))
    }

    fn messages(drawn: Vec<Drawn>) -> Vec<Message<Till>> {
        let message = |(kind, call, bytes)| match kind {
            0 => Message::Call { call, request: Request::Take(call.into()) },
            1 => Message::Tell { request: Request::Echo(bytes) },
            _ => Message::Reply { call, reply: bytes },
        };
        drawn.into_iter().map(message).collect()
    }

    fn frames(messages: &[Message<Till>], mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        (Codec::new().encode)(messages, &mut number, &mut bytes).unwrap();
        bytes
    }

    /// The content of the first frame of these bytes, if it is complete.
    fn read(bytes: &[u8], number: u64) -> Result<Option<Content<Till>>, Fault> {
        match extent(bytes)? {
            Some(length) if length <= bytes.len() => {
                Ok(Some((Codec::new().decode)(open(&bytes[..length], number)?)?))
            }
            _ => Ok(None),
        }
    }

    fn bodies(messages: &[Message<Till>]) -> Vec<u8> {
        frames(messages, 0)[HEAD + NUMBER..].to_vec()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(drawn in vec(drawn(), 0..50), number in any::<u32>()) {
            let messages = messages(drawn);
            let bytes = frames(&messages, number.into());
            let content = read(&bytes, number.into()).unwrap().expect("a whole frame");
            prop_assert_eq!(bodies(&content.messages), bodies(&messages));
            prop_assert_eq!(read(&bytes, u64::from(number) + 1).err().unwrap().closed, Closed::Number);
        }

        #[test]
        fn a_frame_with_wrong_bytes_is_never_accepted(
            drawn in vec(drawn(), 0..20),
            changes in vec((any::<prop::sample::Index>(), 1..=u8::MAX), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let valid = frames(&messages(drawn), 3);
            let mut bytes = valid.clone();
            for (place, change) in changes {
                let place = place.index(bytes.len());
                bytes[place] ^= change;
            }
            prop_assume!(bytes != valid);
            prop_assert!(!matches!(read(&bytes, 3), Ok(Some(_))));
            prop_assert!(!matches!(read(&valid[..cut.index(valid.len())], 3), Ok(Some(_))));
        }

        #[test]
        fn whatever_has_the_right_checksum_is_decoded_or_refused(body in vec(any::<u8>(), 0..200)) {
            let mut bytes = Vec::new();
            let begin = begin_frame(&mut 7, &mut bytes);
            bytes.extend_from_slice(&body);
            end_frame(begin, &mut bytes).unwrap();
            if let Ok(content) = read(&bytes, 7) {
                let content = content.expect("a whole frame");
                prop_assert!(content.beat.is_some() || bodies(&content.messages).len() == body.len());
            }
        }

        #[test]
        fn anything_at_all_can_come(bytes in vec(any::<u8>(), 0..200), number in any::<u64>()) {
            let _ = read(&bytes, number);
        }
    }

    #[test]
    fn a_frame_is_as_long_as_it_says_and_not_too_long() {
        assert_eq!(extent(&[0, 0, 0]).unwrap(), None);
        assert_eq!(extent(&8u32.to_le_bytes()).unwrap(), Some(16));
        assert_eq!(extent(&7u32.to_le_bytes()).unwrap_err().closed, Closed::Length);
        let max = FRAME_MAX as u32;
        assert_eq!(extent(&max.to_le_bytes()).unwrap(), Some(HEAD + FRAME_MAX));
        assert_eq!(extent(&(max + 1).to_le_bytes()).unwrap_err().closed, Closed::Length);
    }

    #[test]
    fn much_takes_several_frames_and_a_message_that_is_too_long_none() {
        let large = || Message::Tell { request: Request::Echo(vec![1; LONG]) };
        let bytes = frames(&[large(), large(), large()], 0);
        let first = extent(&bytes).unwrap().expect("a frame");
        let second = extent(&bytes[first..]).unwrap().expect("a frame");
        assert_eq!(read(&bytes[first..], 1).unwrap().expect("a whole frame").messages.len(), 1);
        assert_eq!(read(&bytes[first + second..], 2).unwrap().expect("a whole frame").messages.len(), 1);

        let small: Vec<_> = (0..=MESSAGES_MAX).map(|_| Message::Tell { request: Request::Put(1) }).collect();
        let bytes = frames(&small, 0);
        assert_eq!(read(&bytes, 0).unwrap().expect("a whole frame").messages.len(), MESSAGES_MAX);
        let first = extent(&bytes).unwrap().expect("a frame");
        assert_eq!(read(&bytes[first..], 1).unwrap().expect("a whole frame").messages.len(), 1);

        let huge = Message::Tell { request: Request::Echo(vec![1; FRAME_MAX]) };
        let fault = (Codec::<Till>::new().encode)(&[huge], &mut 0, &mut Vec::new()).unwrap_err();
        assert_eq!(fault.closed, Closed::Oversized);
    }

    #[test]
    fn every_reason_has_its_number() {
        for (index, closed) in Closed::ALL.into_iter().enumerate() {
            assert_eq!(closed as usize, index + 1);
            assert_eq!(Closed::numbered(closed as u8), Some(closed));
        }
        assert_eq!(Closed::numbered(0), None);
    }
}
