//! A client's connection to a session, in the memory of one task.
//!
//! The session is a future that the client drives while it waits for an answer, so one waker serves
//! both, and a client that goes away at any moment takes the session with it or leaves it alone, as
//! it likes. Bytes are neither cut nor delayed: what that does is tested where streams are.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use plimsoll_runtime::{Sleep, Task};
use plimsoll_sql::session::{Closed, Stream};

/// What is under way between the two ends.
#[derive(Default)]
struct Pipe {
    to_session: RefCell<Vec<u8>>,
    to_client: RefCell<Vec<u8>>,
    is_closed: Cell<bool>,
}

/// The session's end.
pub(super) struct SessionEnd(Rc<Pipe>);

impl Stream for SessionEnd {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        poll_fn(|_| {
            let mut arrived = self.0.to_session.borrow_mut();
            match arrived.len() {
                0 if self.0.is_closed.get() => Poll::Ready(Err(Closed)),
                0 => Poll::Pending,
                bytes => {
                    buffer.append(&mut arrived);
                    Poll::Ready(Ok(bytes))
                }
            }
        })
        .await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        if self.0.is_closed.get() {
            return Err(Closed);
        }
        self.0.to_client.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }
}

/// How a statement is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// As a simple query, which may have several statements.
    Simple,
    /// By the extended protocol.
    Extended,
}

/// What a session has answered.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Reply {
    /// The rows of all statements.
    pub rows: Vec<Vec<Option<String>>>,
    /// What each statement did.
    pub tags: Vec<String>,
    /// The state of the error, and its text.
    pub error: Option<(String, String)>,
}

impl Reply {
    /// The only value of the first row.
    pub fn value(&self) -> Option<&str> {
        self.rows.first()?.first()?.as_deref()
    }
}

/// The client's end, with the session.
pub(super) struct Connection {
    pipe: Rc<Pipe>,
    session: Task,
    has_ended: bool,
}

impl Connection {
    /// A connection to the session that `serve` makes of its other end.
    pub fn new<F: Future<Output = ()> + 'static>(serve: impl FnOnce(SessionEnd) -> F) -> Connection {
        let pipe = Rc::new(Pipe::default());
        let parameters = b"user\0client\0\0";
        let mut start = Vec::new();
        start.extend((8 + parameters.len() as u32).to_be_bytes());
        start.extend((3_u32 << 16).to_be_bytes());
        start.extend(parameters);
        pipe.to_session.replace(start);
        let session = Box::pin(serve(SessionEnd(pipe.clone())));
        Connection { pipe, session, has_ended: false }
    }

    /// Sends a statement and waits for the answer; `None` if `patience` ends before.
    pub async fn ask(&mut self, text: &str, sent: Sent, patience: Option<Sleep>) -> Option<Reply> {
        {
            let mut out = self.pipe.to_session.borrow_mut();
            match sent {
                Sent::Simple => message(&mut out, b'Q', &[text.as_bytes(), b"\0"]),
                Sent::Extended => {
                    message(&mut out, b'P', &[b"\0", text.as_bytes(), b"\0\0\0"]);
                    message(&mut out, b'B', &[&[0; 8]]);
                    message(&mut out, b'E', &[&[0; 5]]);
                    message(&mut out, b'S', &[]);
                }
            }
        }
        self.answer(patience).await
    }

    /// Waits until the session is ready; `None` if `patience` ends before, or the session does.
    pub async fn answer(&mut self, mut patience: Option<Sleep>) -> Option<Reply> {
        poll_fn(|context| {
            if !self.has_ended {
                self.has_ended = self.session.as_mut().poll(context).is_ready();
            }
            if let Some(reply) = ready(&mut self.pipe.to_client.borrow_mut()) {
                return Poll::Ready(Some(reply));
            }
            let is_over = patience.as_mut().is_some_and(|sleep| Pin::new(sleep).poll(context).is_ready());
            if self.has_ended || is_over { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// Closes the client's end. What is left of the session has to be run to its end.
    pub fn close(self) -> Task {
        self.pipe.is_closed.set(true);
        match self.has_ended {
            true => Box::pin(async {}),
            false => self.session,
        }
    }
}

fn message(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    out.push(kind);
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    out.extend((4 + bytes as u32).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// What has arrived, if the session is ready for more.
fn ready(arrived: &mut Vec<u8>) -> Option<Reply> {
    let (mut reply, mut at) = (Reply::default(), 0);
    loop {
        let (kind, rest) = arrived.get(at..)?.split_first()?;
        let bytes = u32::from_be_bytes(*rest.first_chunk::<4>()?) as usize;
        let body = rest.get(4..bytes)?;
        at += 1 + bytes;
        match kind {
            b'D' => reply.rows.push(row(body)),
            b'C' => reply.tags.extend(body.split(|byte| *byte == 0).next().map(text)),
            b'E' => {
                let field = |wanted: u8| {
                    let mut fields = body.split(|byte| *byte == 0).filter_map(|field| field.split_first());
                    fields.find(|(kind, _)| **kind == wanted).map(|(_, field)| text(field))
                };
                reply.error = Some((field(b'C').unwrap_or_default(), field(b'M').unwrap_or_default()));
            }
            b'Z' => {
                arrived.drain(..at);
                return Some(reply);
            }
            _ => {}
        }
    }
}

fn row(body: &[u8]) -> Vec<Option<String>> {
    let mut rest = body.get(2..).unwrap_or_default();
    let mut values = Vec::new();
    while let Some((length, more)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let (value, more) = more.split_at(length.unwrap_or(0));
        values.push(length.map(|_| text(value)));
        rest = more;
    }
    values
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
