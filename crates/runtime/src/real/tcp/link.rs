//! One end of a connection, as its shard sees it: a socket, bytes that were read and are not a
//! frame yet, and bytes that were sent and the operating system has not taken.
//!
//! The socket reports only changes (edge-triggered), so an end remembers whether it may read or
//! write until a system call says otherwise. A read that gets less than it asked for has emptied
//! the socket, and the next arrival is a change again. The one exception is the end of the stream:
//! it may have been reported together with the last bytes, so the end reads once more to find it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;

use super::beat::Beats;
use super::frame::{self, Closed, Fault};
use super::places::PlaceLease;

/// Initial size of a buffer in bytes, and what it shrinks to at rest: a node may have very many
/// clients.
const ROOM: usize = 16 << 10;
/// Bytes read from one connection per pass, about; the rest waits for the next pass.
pub(super) const TURN: usize = 1 << 20;
/// Back-pressure: while more than this many bytes are queued for a client, the node stops reading
/// its requests.
pub(super) const HELD_BACK: usize = 16 << 20;

/// Bytes that are appended at the end and taken from the front.
#[derive(Default)]
struct ReadBuffer {
    bytes: Vec<u8>,
    /// The bytes from `start` to `end` were read and not taken yet.
    start: usize,
    end: usize,
}

impl ReadBuffer {
    fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Where to read to. Room grows as it is filled, so a frame that is only announced takes none.
    fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.bytes.len() && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            let room = (2 * self.bytes.len()).clamp(ROOM, frame::HEAD + frame::FRAME_MAX);
            self.bytes.resize(room, 0);
        }
        &mut self.bytes[self.end..]
    }

    fn rest(&mut self) {
        if self.start == self.end && self.bytes.len() > ROOM {
            *self = ReadBuffer::default();
        }
    }
}

/// Bytes on their way to the operating system.
#[derive(Default)]
struct WriteBuffer {
    bytes: Vec<u8>,
    written: usize,
}

impl WriteBuffer {
    fn waiting(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.bytes.len() {
            self.written = 0;
            self.bytes.clear();
        } else if self.written > self.bytes.len() / 2 {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }

    fn rest(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > ROOM {
            *self = WriteBuffer::default();
        }
    }
}

/// One end of a connection.
pub(super) struct Link {
    pub(super) stream: TcpStream,
    /// The address of the other end, for the log.
    pub(super) address: SocketAddr,
    /// The index of the peer's process, and its life.
    pub(super) with: usize,
    pub(super) life: u64,
    /// A client's hold on its place.
    claim: Option<PlaceLease>,
    inlet: ReadBuffer,
    outlet: WriteBuffer,
    /// Numbers of the next frames.
    next_received: u64,
    next_sent: u64,
    /// Frames sent and bytes waiting, as of the last tally.
    tallied: (u64, usize),
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The other side has sent its last byte, or there is an error to read.
    pub(super) ending: bool,
    /// When bytes last arrived, or a client whose requests are not read last took some.
    pub(super) heard_ns: u64,
    pub(super) beats: Beats,
    /// It is in the list of connections with something to read or write.
    pub(super) listed: bool,
    /// Why it is to be closed; `None` if it is not.
    pub(super) fault: Option<Fault>,
}

impl Link {
    pub(super) fn new(
        stream: TcpStream,
        address: SocketAddr,
        with: usize,
        life: u64,
        claim: Option<PlaceLease>,
        now_ns: u64,
    ) -> Link {
        Link {
            stream,
            address,
            with,
            life,
            claim,
            inlet: ReadBuffer::default(),
            outlet: WriteBuffer::default(),
            next_received: 0,
            next_sent: 0,
            tallied: (0, 0),
            readable: false,
            writable: true,
            ending: false,
            heard_ns: now_ns,
            beats: Beats::default(),
            listed: false,
            fault: None,
        }
    }

    /// Reads once. Returns how many bytes came; 0 if there are none at present.
    pub(super) fn read(&mut self) -> Result<usize, Fault> {
        let room = self.inlet.room();
        let asked = room.len();
        loop {
            match self.stream.read(&mut self.inlet.bytes[self.inlet.end..]) {
                Ok(0) => return Err(Closed::Ended.into()),
                Ok(bytes) => {
                    self.inlet.end += bytes;
                    self.readable = bytes == asked || self.ending;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Ok(0);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The content of the next whole frame, once.
    pub(super) fn next_frame(&mut self) -> Result<Option<&[u8]>, Fault> {
        let filled = self.inlet.filled();
        let Some(length) = frame::extent(filled)?.filter(|&length| length <= filled.len()) else {
            return Ok(None);
        };
        let begin = self.inlet.start;
        let content = frame::open(&self.inlet.bytes[begin..begin + length], self.next_received)?;
        self.next_received += 1;
        self.inlet.start += length;
        Ok(Some(content))
    }

    /// Lets `append` encode frames at the end of the buffer.
    pub(super) fn append<R>(&mut self, append: impl FnOnce(&mut u64, &mut Vec<u8>) -> R) -> R {
        append(&mut self.next_sent, &mut self.outlet.bytes)
    }

    /// How many frames were appended since the last tally, and how many bytes were waiting then.
    pub(super) fn tally(&mut self) -> (u64, usize) {
        let now = (self.next_sent, self.waiting());
        let last = std::mem::replace(&mut self.tallied, now);
        (self.next_sent - last.0, last.1)
    }

    /// Bytes that the operating system has not taken.
    pub(super) fn waiting(&self) -> usize {
        self.outlet.waiting().len()
    }

    /// Whether too much is queued for a client, so that its requests are not read. What it sent
    /// before it closed its end is read nevertheless.
    pub(super) fn is_held_back(&self) -> bool {
        self.waiting() > HELD_BACK && !self.ending && self.claim.is_some()
    }

    /// Releases the memory of empty buffers that have grown. A busy connection soon needs it again,
    /// so this is called only now and then.
    pub(super) fn rest(&mut self) {
        self.inlet.rest();
        self.outlet.rest();
    }

    /// Writes what the operating system takes. Returns how many bytes that was.
    pub(super) fn flush(&mut self) -> Result<usize, Fault> {
        let mut written = 0;
        while self.writable && self.waiting() > 0 {
            match self.stream.write(self.outlet.waiting()) {
                Ok(0) => return Err(io::Error::from(ErrorKind::WriteZero).into()),
                Ok(bytes) => {
                    self.outlet.wrote(bytes);
                    written += bytes;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inlet_grows_with_what_arrives_and_shrinks_when_it_rests_empty() {
        let mut inlet = ReadBuffer::default();
        let mut largest = 0;
        let mut next = 0u8;
        let mut taken = 0u8;
        // A frame of 3 MiB in pieces, then small ones.
        for piece in (0..3 * 1024).map(|_| 1024).chain([10, 10, 10]) {
            inlet.rest();
            let room = inlet.room();
            let piece = piece.min(room.len());
            for byte in &mut room[..piece] {
                *byte = next;
                next = next.wrapping_add(1);
            }
            inlet.end += piece;
            largest = largest.max(inlet.bytes.len());
            if inlet.filled().len() >= 3 << 20 || piece == 10 {
                assert!(inlet.filled().iter().all(|&byte| {
                    taken = taken.wrapping_add(1);
                    byte == taken.wrapping_sub(1)
                }));
                inlet.start = inlet.end;
            }
        }
        assert_eq!(largest, 4 << 20);
        assert_eq!(inlet.bytes.len(), ROOM);
    }

    #[test]
    fn an_inlet_makes_room_by_moving_what_is_left() {
        let mut inlet = ReadBuffer::default();
        let room = inlet.room().len();
        inlet.end = room;
        inlet.start = room - 3;
        inlet.bytes[room - 3..].copy_from_slice(&[1, 2, 3]);
        assert_eq!(inlet.room().len(), room - 3);
        assert_eq!(inlet.filled(), [1, 2, 3]);
    }

    #[test]
    fn an_outlet_keeps_what_was_not_written() {
        let mut outlet = WriteBuffer::default();
        outlet.bytes.extend(0..10);
        outlet.wrote(4);
        assert_eq!(outlet.waiting(), [4, 5, 6, 7, 8, 9]);
        outlet.wrote(2);
        outlet.bytes.push(10);
        assert_eq!(outlet.waiting(), [6, 7, 8, 9, 10]);
        outlet.wrote(5);
        assert!(outlet.waiting().is_empty() && outlet.bytes.is_empty());
    }

    #[test]
    fn an_outlet_shrinks_when_it_rests_empty() {
        let mut outlet = WriteBuffer::default();
        outlet.bytes.resize(3 * ROOM, 0);
        outlet.wrote(ROOM);
        outlet.rest();
        assert_eq!(outlet.waiting().len(), 2 * ROOM);
        outlet.wrote(2 * ROOM);
        outlet.rest();
        assert!(outlet.bytes.capacity() <= ROOM);
    }
}
