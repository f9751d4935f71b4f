//! What a node answers over HTTP, to any process that can reach the address. Nothing here changes
//! anything.
//!
//! | path | answer |
//! |---|---|
//! | `/` | this list |
//! | `/health` | 200 as long as the shards make passes and the node may belong to its cluster; otherwise, and in any case in words, what is wrong |
//! | `/ready` | 200 if connected to all other nodes, otherwise 503 and to which it is not, and why |
//! | `/metrics` | in the text format of Prometheus |
//! | `/status` | all of it as JSON |
//! | `/cluster` | what the cluster is, without its secret, as JSON: all that a client needs to find it |
//!
//! Callers are strangers, and admitted as such ([`Room`]): their number is bounded, one that sends
//! no request gives way to others, and a connection ends after [`LIFE`] whatever happens on it. A
//! connection is for one request, so an unused one is not kept.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request, State as Extract};
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::{IncomingStream, Listener};
use plimsoll_runtime::real::Room;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Sleep, sleep};

use crate::state::{State, metrics};

/// How long the shards may take to answer before the node is not well.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the header of a request may take, and how long a connection lasts.
const HEADER: Duration = Duration::from_secs(2);
const LIFE: Duration = Duration::from_secs(10);
/// Bytes of a request.
const REQUEST_MAX: usize = 16 << 10;
/// Bytes that are read, and ignored, before a connection is closed, so that its answer arrives.
const IGNORED_MAX: usize = 64 << 10;
/// How many looks at the node may go on at a time.
const LOOKS: usize = 8;
/// Pause while there is no room; twenty times as long after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

const INDEX: &str = "\
A node of a Plimsoll cluster.

/health   200 as long as the shards make passes and the node may belong to its cluster
/ready    200 if connected to all other nodes, otherwise 503
/metrics  in the text format of Prometheus
/status   all of it as JSON; see also `plimsoll status`
/cluster  what the cluster is, without its secret, as JSON
";

/// Looks at the node. Blocks until every shard has said how it is.
pub type Look = Arc<dyn Fn() -> State + Send + Sync>;

/// What requests share.
#[derive(Clone)]
struct Node {
    look: Look,
    /// One permit for each look that goes on.
    looks: Arc<Semaphore>,
}

/// Serves until the process ends, on a thread of its own, with room for `room` callers.
pub fn serve(listener: std::net::TcpListener, room: usize, look: Look, cluster: String) -> Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let served = match TcpListener::from_std(listener) {
                Ok(listener) => {
                    let room = Arc::new(RwLock::new(Room::new(room)));
                    let door = Door { listener, room, begun: Instant::now() };
                    let service = router(look, cluster).into_make_service_with_connect_info::<Caller>();
                    axum::serve(door, service).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                tracing::error!("health, metrics and status are no longer served: {error}");
            }
        });
    })?;
    Ok(())
}

/// The listener, and the room behind it.
struct Door {
    listener: TcpListener,
    room: Strangers,
    /// When the time begins by which the room tells which stranger is the oldest.
    begun: Instant,
}

/// Callers, known by what ends their connections when it is dropped. Never locked for long.
type Strangers = Arc<RwLock<Room<oneshot::Sender<()>>>>;

impl Door {
    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Whether a newcomer may come in.
    fn is_open(&self) -> bool {
        let now_ns = self.now_ns();
        self.room.read().unwrap_or_else(PoisonError::into_inner).opens_ns(now_ns) <= now_ns
    }
}

impl Listener for Door {
    type Io = Visit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visit, SocketAddr) {
        let (stream, address) = loop {
            match self.listener.accept().await {
                Ok(accepted) => break accepted,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!("no connection can be accepted over HTTP at present: {error}");
                    sleep(20 * PAUSE).await;
                }
            }
        };
        // Strangers may introduce themselves until the newcomer comes in, so the room is asked
        // afterwards. Meanwhile further newcomers wait in the queue of the operating system.
        let (stay, goes) = oneshot::channel();
        while !self.is_open() {
            sleep(PAUSE).await;
        }
        let now_ns = self.now_ns();
        let mut room = self.room.write().unwrap_or_else(PoisonError::into_inner);
        // Dropping what the room returns ends the connection of the stranger that has to go.
        let (ticket, _) = room.enter(address.ip(), false, stay, now_ns);
        drop(room);
        let caller = Caller { room: self.room.clone(), ticket };
        (Visit::new(stream, goes, caller), address)
    }

    fn local_addr(&self) -> Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A caller, as the room knows it.
#[derive(Clone)]
struct Caller {
    room: Strangers,
    ticket: u64,
}

impl Caller {
    fn set_introduced(&self, introduced: bool) {
        let mut room = self.room.write().unwrap_or_else(PoisonError::into_inner);
        room.set_introduced(self.ticket, introduced);
    }

    fn is_introduced(&self) -> bool {
        self.room.read().unwrap_or_else(PoisonError::into_inner).is_introduced(self.ticket)
    }
}

impl Connected<IncomingStream<'_, Door>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Caller {
        stream.io().caller.clone()
    }
}

/// A connection, which ends when its time is over or its place is needed.
struct Visit {
    stream: TcpStream,
    goes: oneshot::Receiver<()>,
    caller: Caller,
    /// When the header of a request has to be there, and, once it is, the connection ends.
    limit: Pin<Box<Sleep>>,
    extended: bool,
    /// Whether it has to end; the other side was told why, if it could be.
    ended: bool,
    /// Whether something was answered.
    answered: bool,
    read: usize,
    ignored: usize,
}

impl Visit {
    fn new(stream: TcpStream, goes: oneshot::Receiver<()>, caller: Caller) -> Visit {
        let limit = Box::pin(sleep(HEADER));
        Visit {
            stream,
            goes,
            caller,
            limit,
            extended: false,
            ended: false,
            answered: false,
            read: 0,
            ignored: 0,
        }
    }

    /// Fails once the connection has to end.
    fn poll_stay(&mut self, context: &mut Context<'_>) -> Result<()> {
        if self.ended {
            return Err(ErrorKind::TimedOut.into());
        }
        if Pin::new(&mut self.goes).poll(context).is_ready() {
            return Err(self.turn_away("503 Service Unavailable"));
        }
        while self.limit.as_mut().poll(context).is_ready() {
            if self.extended || !self.caller.is_introduced() {
                return Err(self.turn_away("408 Request Timeout"));
            }
            self.extended = true;
            let end = self.limit.deadline() + (LIFE - HEADER);
            self.limit.as_mut().reset(end);
        }
        Ok(())
    }

    /// Says why the connection ends, if nothing was answered and the other side takes it.
    fn turn_away(&mut self, why: &str) -> Error {
        if self.read > 0 && !self.answered {
            let answer = format!("HTTP/1.1 {why}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            let _ = self.stream.try_write(answer.as_bytes());
        }
        self.ended = true;
        ErrorKind::TimedOut.into()
    }
}

impl AsyncRead for Visit {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.poll_stay(context)?;
        if self.read >= REQUEST_MAX {
            // Of a caller that has sent a request nothing more is wanted.
            return match self.caller.is_introduced() {
                true => Poll::Pending,
                false => Poll::Ready(Err(self.turn_away("431 Request Header Fields Too Large"))),
            };
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.read += buffer.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Visit {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.poll_stay(context)?;
        self.answered = true;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_stay(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Waits until the other side has closed. Closing a socket with unread bytes would discard the
    /// answer that was just sent.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.caller.set_introduced(false);
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        let mut bytes = [0; 4096];
        while self.ignored <= IGNORED_MAX {
            self.poll_stay(context)?;
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            match buffer.filled().len() {
                0 => break,
                more => self.ignored += more,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.caller.room.write().unwrap_or_else(PoisonError::into_inner).leave(self.caller.ticket);
    }
}

fn router(look: Look, cluster: String) -> Router {
    let described = ([(CONTENT_TYPE, "application/json")], cluster);
    Router::new()
        .route("/", get(async || INDEX))
        .route("/health", get(async |node| answer("/health", node, health).await))
        .route("/ready", get(async |node| answer("/ready", node, readiness).await))
        .route("/metrics", get(async |node| answer("/metrics", node, exposed).await))
        .route("/cluster", get(async move || described.clone()))
        .route("/status", get(async |node| answer("/status", node, axum::Json).await))
        .fallback(async || (StatusCode::NOT_FOUND, INDEX))
        .layer(from_fn(one_request))
        .with_state(Node { look, looks: Arc::new(Semaphore::new(LOOKS)) })
}

/// Answers the only request of a connection.
async fn one_request(ConnectInfo(caller): ConnectInfo<Caller>, request: Request, next: Next) -> Response {
    caller.set_introduced(true);
    let mut response = next.run(request).await;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn health(state: State) -> (StatusCode, String) {
    let (code, first) = match state.shut_out {
        false => (StatusCode::OK, "the shards make passes"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "this node cannot join its cluster"),
    };
    (code, lines(first, &state))
}

fn readiness(state: State) -> (StatusCode, String) {
    match state.ready {
        true => (StatusCode::OK, "connected to all other nodes\n".to_owned()),
        false => {
            let first = "not connected to all other nodes: see /status";
            (StatusCode::SERVICE_UNAVAILABLE, lines(first, &state))
        }
    }
}

/// A line, and one for each thing that is wrong.
fn lines(first: &str, state: &State) -> String {
    let troubles = state.troubles.iter().map(|trouble| format!("{trouble}\n"));
    format!("{first}\n{}", troubles.collect::<String>())
}

fn exposed(state: State) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], metrics(&state))
}

async fn answer<R: IntoResponse>(
    path: &str,
    Extract(Node { look, looks }): Extract<Node>,
    of: impl FnOnce(State) -> R,
) -> Response {
    let begun = Instant::now();
    let looked = tokio::time::timeout(PATIENCE, async {
        // Held until the look is over, however long the caller waits for it.
        let permit = looks.acquire_owned().await.ok()?;
        let looked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            look()
        });
        looked.await.ok()
    });
    let looked = looked.await;
    tracing::debug!(path, looked_for = ?begun.elapsed(), "asked over HTTP");
    match looked {
        Ok(Some(state)) => of(state).into_response(),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "a shard does not answer\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    // A socket of the standard library, for callers that speak no HTTP.
    #![allow(clippy::disallowed_types)]

    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::thread;

    use super::*;

    #[test]
    fn a_node_whose_shards_do_not_answer_is_not_well_until_they_do() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let stuck = Arc::new(AtomicBool::new(false));
        let look = {
            let stuck = stuck.clone();
            move || {
                while stuck.load(SeqCst) {
                    thread::sleep(Duration::from_millis(10));
                }
                State::default()
            }
        };
        serve(listener, 8, Arc::new(look), "{}".to_owned()).expect("it can be served");
        let get = |path: &str| {
            let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
            let answer = agent.get(format!("http://{address}{path}")).call();
            let mut answer = answer.expect("it answers");
            let text = answer.body_mut().read_to_string().expect("with a text");
            (answer.status().as_u16(), text)
        };
        let well = (200, "the shards make passes\n".to_owned());
        assert_eq!(get("/health"), well);
        assert_eq!(get("/ready").0, 503, "it is connected to nobody");
        stuck.store(true, SeqCst);
        assert_eq!(get("/health"), (500, "a shard does not answer\n".to_owned()));
        assert_eq!(get("/cluster"), (200, "{}".to_owned()), "what needs no shard is answered");
        stuck.store(false, SeqCst);
        assert_eq!(get("/health"), well);
    }

    /// A server with room for so many callers.
    fn served(room: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        serve(listener, room, Arc::new(State::default), "{}".to_owned()).expect("it can be served");
        address
    }

    fn call(address: SocketAddr, says: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
        let _ = stream.write_all(says);
        stream
    }

    /// All that it answers until it closes the connection.
    fn answered(mut stream: TcpStream) -> String {
        let mut bytes = Vec::new();
        let mut some = [0; 4096];
        // A reset is an end, too.
        while let Ok(more @ 1..) = stream.read(&mut some) {
            bytes.extend_from_slice(&some[..more]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";

    #[test]
    fn callers_that_send_no_request_keep_nobody_out_and_are_not_kept() {
        let address = served(8);
        let silent: Vec<TcpStream> = (0..40).map(|number| call(address, &HEALTH[..number % 20])).collect();
        let text = answered(call(address, HEALTH));
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("the shards make passes"), "{text}");
        for stream in silent {
            let text = answered(stream);
            assert!(["", "HTTP/1.1 408", "HTTP/1.1 503"].iter().any(|said| text.starts_with(said)), "{text}");
        }
    }

    #[test]
    fn a_caller_that_drips_is_not_kept_longer_than_one_that_is_silent() {
        let address = served(8);
        let mut stream = call(address, HEALTH.split_at(10).0);
        let begun = Instant::now();
        while stream.write_all(b"x").is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is still there");
            thread::sleep(Duration::from_millis(100));
        }
    }

    #[test]
    fn a_connection_is_for_one_request_of_bounded_length() {
        let address = served(8);
        let twice = answered(call(address, &HEALTH.repeat(500)));
        assert_eq!(twice.matches("HTTP/1.1 200").count(), 1, "{twice}");
        assert!(twice.contains("connection: close"), "{twice}");
        let large = [b"GET / HTTP/1.1\r\nHost: x\r\nX: ", &[b'x'; 1 << 20][..]].concat();
        let text = answered(call(address, &large));
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 431"), "{text}");
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: x\r\n".repeat(500));
        let text = answered(call(address, many.as_bytes()));
        assert!(text.starts_with("HTTP/1.1 431"), "{text}");
    }

    #[test]
    fn what_there_is_to_ask_for_is_listed_where_nothing_is_asked_for() {
        let address = served(8);
        for (path, code) in [("/", "200"), ("/favicon.ico", "404")] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
            let text = answered(call(address, request.as_bytes()));
            assert!(text.starts_with(&format!("HTTP/1.1 {code}")), "{text}");
            for path in ["/health", "/ready", "/metrics", "/status", "/cluster"] {
                assert!(text.contains(path), "{text}");
            }
        }
    }
}
