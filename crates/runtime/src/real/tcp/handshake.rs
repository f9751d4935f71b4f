//! The thread that makes connections: it listens, dials, and hands over what has passed the
//! handshake.
//!
//! No conversation waits for another: the thread serves all of them as bytes arrive. A stranger
//! that says nothing costs a socket for [`PATIENCE_NS`] at most, and less if others knock: the
//! number of strangers is bounded, and `admission` says which of them goes. A process that is
//! refused is told why, and has as long to read it.
//!
//! The thread dials a node once for each pair of shards, in at most [`DIALS`] conversations at a
//! time, so that many shards do not keep each other waiting there. After a failure it pauses, from
//! [`PAUSE_MIN_NS`] on and twice as long after each further failure, up to [`PAUSE_MAX_NS`]; once a
//! connection has lasted, pauses are short again. The log gets the first failure of a node, every
//! new reason why one side refuses the other, and the recovery; what goes on for long it gets again
//! rarely (`log`). Normal events are not warnings: that another node starts a little later, that a
//! place is taken.
//!
//! A node that has not been connected to one with a lower number, which is the side that dials, for
//! [`LONELY_NS`] *asks* it why: it dials one of its shards, and is refused in any case. If the two
//! have different files or secrets, or if another process has its number, the refusal says so, and
//! both sides log it. Why a peer and this node do not come together is kept until they do
//! ([`super::Traffic::refusal`]).
//!
//! A client does not listen. It does not dial again after a refusal, because the reason (usually
//! that its place is taken) does not go away by itself, and meanwhile the other nodes take it for
//! connected. The thread notes the refusal, wakes the shards, and ends.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use plimsoll_types::{ShardId, Slab};
use rustix::rand::{GetRandomFlags, getrandom};

use super::super::Clock;
use super::admission::Room;
use super::counters::PeerRefusal;
use super::hello::{Agreed, Greeting, MESSAGE_MAX, Next, Refusal};
use super::log::{Log, Rarely};
use super::names::Name;
use super::{Accepted, Shared, wake};

/// Time limit of a conversation, in nanoseconds.
const PATIENCE_NS: u64 = 2_000_000_000;
/// Connections that are accepted before those that are there are served.
const ACCEPTED: usize = 64;
/// Conversations at a time with one node that this process dials.
const DIALS: usize = 16;
/// The shortest and the longest pause between attempts, in nanoseconds.
const PAUSE_MIN_NS: u64 = 50_000_000;
const PAUSE_MAX_NS: u64 = 1_000_000_000;
/// After a connection that lasted this long, the next pause is short.
const GOOD_NS: u64 = 1_000_000_000;
/// How long a node is not connected to another, which should dial, before it asks it why.
const LONELY_NS: u64 = 3_000_000_000;
/// How often a node looks whether it is connected to others that should dial.
const LOOK_NS: u64 = 500_000_000;
/// How much later than this node others may start before it warns about them.
const LATE_NS: u64 = 3_000_000_000;

const LISTENER: Token = Token(usize::MAX);
const WAKE: Token = Token(usize::MAX - 1);

/// Why a conversation has failed.
#[derive(Debug)]
pub(super) enum Trouble {
    Failed(io::Error),
    Ended,
    Late,
    /// It had to go because others knocked.
    Crowded,
    /// This side refused the other.
    Refuse(Refusal),
    /// The other refused this side.
    Refused(Refusal),
}

impl Trouble {
    /// The reason, if one side has refused the other.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match self {
            Trouble::Refuse(refusal) | Trouble::Refused(refusal) => Some(*refusal),
            Trouble::Failed(_) | Trouble::Ended | Trouble::Late | Trouble::Crowded => None,
        }
    }
}

/// Whether a client may be refused for this reason in normal operation: it then tries another
/// place, or later.
pub(super) fn is_normal(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::PlaceTaken | Refusal::NotOpen)
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Failed(error) => error.fmt(f),
            Trouble::Ended => f.write_str("it closed the connection"),
            Trouble::Late => f.write_str("it took too long"),
            Trouble::Crowded => f.write_str("too many others have knocked meanwhile"),
            Trouble::Refuse(refusal) => write!(f, "refused: {refusal}"),
            Trouble::Refused(refusal) => write!(f, "it refuses this side: {refusal}"),
        }
    }
}

/// What comes after everything is sent.
enum After {
    Listen,
    Talk(Agreed),
    Leave(Refusal),
}

/// A connection during its handshake.
struct Conversation {
    stream: TcpStream,
    greeting: Greeting,
    with: SocketAddr,
    /// The index of its dial; `None` if the other side has dialed.
    dial: Option<usize>,
    /// Of a stranger, its ticket to the room.
    ticket: Option<u64>,
    connecting: bool,
    /// Bytes received of the next message, and bytes to send.
    heard: Vec<u8>,
    say: Vec<u8>,
    after: After,
    until_ns: u64,
}

impl Conversation {
    /// Goes on as far as possible now. Returns the result if it is over.
    fn go_on(&mut self) -> Result<Option<Agreed>, Trouble> {
        if self.connecting && !self.is_connected()? {
            return Ok(None);
        }
        loop {
            if !self.speak()? {
                return Ok(None);
            }
            match self.after {
                After::Talk(agreed) => return Ok(Some(agreed)),
                After::Leave(refusal) => return self.leave(refusal),
                After::Listen => {}
            }
            let Some(next) = self.listen()? else { return Ok(None) };
            match next {
                Next::Say(bytes) => self.say = bytes,
                Next::Agreed(bytes, agreed) => (self.say, self.after) = (bytes, After::Talk(agreed)),
                Next::Refuse(bytes, refusal) => (self.say, self.after) = (bytes, After::Leave(refusal)),
                Next::Refused(refusal) => return Err(Trouble::Refused(refusal)),
            }
        }
    }

    fn is_connected(&mut self) -> Result<bool, Trouble> {
        if let Some(error) = self.stream.take_error().map_err(Trouble::Failed)? {
            return Err(Trouble::Failed(error));
        }
        match self.stream.peer_addr() {
            Ok(_) => self.connecting = false,
            Err(error) if error.kind() == ErrorKind::NotConnected => {}
            Err(error) => return Err(Trouble::Failed(error)),
        }
        Ok(!self.connecting)
    }

    /// Sends. Returns whether everything is sent.
    fn speak(&mut self) -> Result<bool, Trouble> {
        while !self.say.is_empty() {
            match self.stream.write(&self.say) {
                Ok(bytes) => drop(self.say.drain(..bytes)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(Trouble::Failed(error)),
            }
        }
        Ok(true)
    }

    /// Reads a message and not a byte more: the bytes after it are for the shard.
    fn listen(&mut self) -> Result<Option<Next>, Trouble> {
        loop {
            let length = match self.heard.first_chunk::<4>() {
                None => 4,
                Some(length) => match u32::from_le_bytes(*length) as usize {
                    0 => return Ok(Some(self.greeting.nonsense())),
                    length if length > MESSAGE_MAX => return Ok(Some(self.greeting.nonsense())),
                    length => 4 + length,
                },
            };
            if self.heard.len() == length && length > 4 {
                let next = self.greeting.received(&self.heard[4..]);
                self.heard.clear();
                return Ok(Some(next));
            }
            let have = self.heard.len();
            let mut more = [0; 4 + MESSAGE_MAX];
            match self.stream.read(&mut more[..length - have]) {
                Ok(0) => return Err(Trouble::Ended),
                Ok(bytes) => self.heard.extend_from_slice(&more[..bytes]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(Trouble::Failed(error)),
            }
        }
    }

    /// Waits until the other side has closed. Closing a socket with unread bytes would discard the
    /// refusal that was just sent.
    fn leave(&mut self, refusal: Refusal) -> Result<Option<Agreed>, Trouble> {
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut unread = [0; 4096];
        for _ in 0..16 {
            match self.stream.read(&mut unread) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Ok(0) | Err(_) => break,
            }
        }
        // The other side has closed, or sends too much to be waited for.
        Err(Trouble::Refuse(refusal))
    }
}

/// The state of a dial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    Pausing {
        until_ns: u64,
    },
    Trying,
    /// The connection was handed over.
    Connected {
        since_ns: u64,
    },
}

/// A pair of a shard here and a shard of a node that this process dials.
struct Dial {
    shard: ShardId,
    peer: ShardId,
    /// The index of the peer's node.
    node: usize,
    progress: Progress,
    pause_ns: u64,
    attempts: usize,
    /// The last attempt failed.
    failing: bool,
    /// The other side is the one that dials; this one only asks why it does not.
    asks: bool,
}

/// What was logged about a node that cannot be reached.
#[derive(Clone, Copy, Default)]
struct LoggedRefusals {
    /// The last refusal.
    refusal: Option<Refusal>,
    /// One of the lines was a warning.
    warned: bool,
    rarely: Rarely,
}

/// The state of the handshake thread.
pub(super) struct Handshakes {
    shared: Arc<Shared>,
    clock: Clock,
    /// `None` for a client.
    listener: Option<mio::net::TcpListener>,
    poll: Poll,
    conversations: Slab<Conversation>,
    dials: Vec<Dial>,
    /// By node: what was logged since it last recovered.
    told: Vec<LoggedRefusals>,
    begun_ns: u64,
    /// By node: what its address is known to be.
    names: Vec<Name>,
    /// By node: when this one was last seen to be connected to it.
    connected_ns: Vec<u64>,
    /// Conversations with processes that have dialed, by their numbers.
    room: Room<u32>,
    /// A connection may be waiting to be accepted. If accepting has failed, not before this time.
    knocked: bool,
    not_before_ns: u64,
    log: Log,
}

impl Handshakes {
    pub(super) fn new(
        shared: Arc<Shared>,
        listener: Option<TcpListener>,
        clock: Clock,
        poll: Poll,
    ) -> io::Result<Handshakes> {
        let knocked = listener.is_some();
        let listen = |listener: TcpListener| {
            listener.set_nonblocking(true)?;
            let mut listener = mio::net::TcpListener::from_std(listener);
            poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
            Ok::<_, io::Error>(listener)
        };
        let listener = listener.map(listen).transpose()?;
        let cluster = &shared.cluster;
        let begun_ns = clock.now().0;
        let mut dials = Vec::new();
        for (node, member) in cluster.nodes.iter().enumerate().filter(|&(node, _)| node != cluster.here) {
            let asks = !cluster.dials(cluster.here, node);
            let begin_ns = if asks { begun_ns + LONELY_NS } else { 0 };
            let pairs = cluster.own().flat_map(|shard| member.shards.clone().map(move |peer| (shard, peer)));
            dials.extend(pairs.take(if asks { 1 } else { usize::MAX }).map(|(shard, peer)| Dial {
                shard: ShardId(shard as u16),
                peer: ShardId(peer as u16),
                node,
                progress: Progress::Pausing { until_ns: begin_ns },
                pause_ns: PAUSE_MIN_NS,
                attempts: 0,
                failing: false,
                asks,
            }));
        }
        Ok(Handshakes {
            told: vec![LoggedRefusals::default(); shared.cluster.nodes.len()],
            begun_ns,
            names: shared.cluster.nodes.iter().map(|_| Name::default()).collect(),
            connected_ns: vec![begun_ns; shared.cluster.nodes.len()],
            room: Room::new(shared.cluster.room),
            shared,
            clock,
            listener,
            poll,
            conversations: Slab::default(),
            dials,
            knocked,
            not_before_ns: 0,
            log: Log::default(),
        })
    }

    /// The waker of the thread.
    pub(super) fn waker(poll: &Poll) -> io::Result<Waker> {
        Waker::new(poll.registry(), WAKE)
    }

    /// Makes connections until the runtime stops, or this client is refused.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(256);
        while !self.shared.stop.load(SeqCst) && !self.shared.is_refused() {
            let now_ns = self.clock.now().0;
            self.take_back(now_ns);
            self.take_resolved(now_ns);
            self.end_late(now_ns);
            self.dial(now_ns);
            self.accept(now_ns);
            let timeout =
                self.next_ns(now_ns).map(|next_ns| Duration::from_nanos(next_ns.saturating_sub(now_ns)));
            match self.poll.poll(&mut events, timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => panic!("the operating system can be asked about sockets: {error}"),
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.knocked = true,
                    WAKE => {}
                    Token(number) => self.go_on(number as u32),
                }
            }
        }
    }

    /// Dials again for connections that shards have lost.
    fn take_back(&mut self, now_ns: u64) {
        while let Some((shard, peer)) = self.shared.lost.pop() {
            let dial = self.dials.iter_mut().find(|dial| (dial.shard, dial.peer) == (shard, peer));
            let dial = dial.expect("what is lost was dialed");
            if let Progress::Connected { since_ns } = dial.progress {
                if now_ns.saturating_sub(since_ns) >= GOOD_NS {
                    dial.pause_ns = PAUSE_MIN_NS;
                }
                dial.pause(now_ns);
            }
        }
    }

    /// Takes what names were found to stand for.
    fn take_resolved(&mut self, now_ns: u64) {
        while let Some((node, found)) = self.shared.resolved.pop() {
            match found {
                Ok(addresses) => self.names[node].found(addresses, now_ns),
                Err(error) => {
                    self.names[node].failed();
                    let is_due = |dial: &Dial| matches!(dial.progress, Progress::Pausing { until_ns } if until_ns <= now_ns);
                    for number in 0..self.dials.len() {
                        if self.dials[number].node == node && is_due(&self.dials[number]) {
                            let error = io::Error::new(error.kind(), error.to_string());
                            self.failed(number, &Trouble::Failed(error), now_ns);
                        }
                    }
                }
            }
        }
    }

    fn end_late(&mut self, now_ns: u64) {
        let late = |(number, conversation): (u32, &mut Conversation)| {
            (conversation.until_ns <= now_ns).then_some(number)
        };
        let late: Vec<u32> = self.conversations.iter_mut().filter_map(late).collect();
        for number in late {
            let trouble = match self.conversations.get(number).map(|late| &late.after) {
                Some(&After::Leave(refusal)) => Trouble::Refuse(refusal),
                _ => Trouble::Late,
            };
            self.give_up(number, trouble);
        }
    }

    fn dial(&mut self, now_ns: u64) {
        let mut trying = vec![0; self.shared.cluster.nodes.len()];
        for dial in &self.dials {
            trying[dial.node] += usize::from(dial.progress == Progress::Trying);
        }
        for number in 0..self.dials.len() {
            let Dial { shard, peer, node, progress, asks, .. } = self.dials[number];
            let is_due = matches!(progress, Progress::Pausing { until_ns } if until_ns <= now_ns);
            if !is_due || trying[node] == DIALS || (asks && self.need_not_ask(number, now_ns)) {
                continue;
            }
            let attempt = self.dials[number].attempts;
            let address = match self.names[node].address(&self.shared, node, attempt, now_ns) {
                Ok(None) => continue,
                Ok(Some(address)) => self.shared.cluster.may_dial(address).map(|()| address),
                Err(error) => Err(error),
            };
            match address.and_then(|address| Ok((TcpStream::connect(address)?, address))) {
                Ok((stream, address)) => {
                    trying[node] += 1;
                    self.dials[number].progress = Progress::Trying;
                    let (greeting, hello) = Greeting::dial(self.shared.cluster.clone(), nonce(), shard, peer);
                    let _ = self.begin(stream, greeting, address, Some(number), hello, now_ns);
                }
                Err(error) => self.failed(number, &Trouble::Failed(error), now_ns),
            }
        }
    }

    /// Whether a node that should dial this one does not have to be asked why it does not. Looks
    /// again soon if so.
    fn need_not_ask(&mut self, dial: usize, now_ns: u64) -> bool {
        let node = self.dials[dial].node;
        if self.shared.cluster.is_connected(node) {
            self.connected_ns[node] = now_ns;
            self.recovered(dial);
        }
        let lonely = now_ns.saturating_sub(self.connected_ns[node]) >= LONELY_NS;
        if !lonely {
            self.dials[dial].progress = Progress::Pausing { until_ns: now_ns + LOOK_NS };
        }
        !lonely
    }

    fn accept(&mut self, now_ns: u64) {
        for _ in 0..ACCEPTED {
            if self.may_accept_ns(now_ns).is_none_or(|from_ns| now_ns < from_ns) {
                return;
            }
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, with)) => {
                    let greeting = Greeting::listen(self.shared.cluster.clone(), nonce());
                    let Some(number) = self.begin(stream, greeting, with, None, Vec::new(), now_ns) else {
                        continue;
                    };
                    let known = self.shared.cluster.is_node_at(with.ip())
                        || self.names.iter().any(|name| name.was(with));
                    let (ticket, goes) = self.room.enter(with.ip(), known, number, now_ns);
                    if let Some(conversation) = self.conversations.get_mut(number) {
                        conversation.ticket = Some(ticket);
                    }
                    if let Some(goes) = goes {
                        self.give_up(goes, Trouble::Crowded);
                    }
                    // A peer has said hello already, and is not taken for one that says nothing.
                    self.go_on(number);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.knocked = false,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    tracing::warn!("no connection can be accepted at present: {error}");
                    self.not_before_ns = now_ns + PAUSE_MAX_NS;
                }
            }
        }
    }

    /// From when on a connection that may be waiting can be accepted.
    fn may_accept_ns(&self, now_ns: u64) -> Option<u64> {
        self.knocked.then(|| self.not_before_ns.max(self.room.opens_ns(now_ns)))
    }

    /// Begins a conversation, and returns its number unless it has failed at once.
    fn begin(
        &mut self,
        stream: TcpStream,
        greeting: Greeting,
        with: SocketAddr,
        dial: Option<usize>,
        say: Vec<u8>,
        now_ns: u64,
    ) -> Option<u32> {
        let number = self.conversations.insert(Conversation {
            stream,
            greeting,
            with,
            dial,
            ticket: None,
            connecting: dial.is_some(),
            heard: Vec::new(),
            say,
            after: After::Listen,
            until_ns: now_ns + PATIENCE_NS,
        });
        let conversation = self.conversations.get_mut(number).expect("it has just begun");
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(&mut conversation.stream, Token(number as usize), interest) {
            self.give_up(number, Trouble::Failed(error));
            return None;
        }
        Some(number)
    }

    /// A socket has changed. Its conversation may be over by now.
    fn go_on(&mut self, number: u32) {
        let Some(conversation) = self.conversations.get_mut(number) else { return };
        match conversation.go_on() {
            Ok(None) => {
                let leaves = matches!(conversation.after, After::Leave(_));
                if let Some(ticket) = conversation.ticket {
                    self.room.set_introduced(ticket, conversation.greeting.has_met() && !leaves);
                }
            }
            Ok(Some(agreed)) => self.hand_over(number, agreed),
            Err(trouble) => self.give_up(number, trouble),
        }
    }

    fn remove(&mut self, number: u32) -> Conversation {
        let conversation = self.conversations.remove(number).expect("a conversation ends once");
        if let Some(ticket) = conversation.ticket {
            self.room.leave(ticket);
        }
        conversation
    }

    fn hand_over(&mut self, number: u32, Agreed { shard, peer, life, .. }: Agreed) {
        let Conversation { mut stream, mut greeting, dial, with, .. } = self.remove(number);
        let now_ns = self.clock.now().0;
        // The shard will register the socket with its own poll.
        let ready = self.poll.registry().deregister(&mut stream).and_then(|()| stream.set_nodelay(true));
        match (ready, dial) {
            (Ok(()), dial) => {
                self.shared.set_refusal(self.shared.cluster.index_of(peer), None);
                if let Some(dial) = dial {
                    self.dials[dial].progress = Progress::Connected { since_ns: now_ns };
                    self.recovered(dial);
                }
                let handoff = self.shared.handoff(shard);
                let claim = greeting.take_claim();
                handoff.fresh.push(Accepted { stream, address: with, peer, life, claim });
                wake(&handoff.waker);
            }
            (Err(error), Some(dial)) => self.failed(dial, &Trouble::Failed(error), now_ns),
            (Err(error), None) => self.log.refused(with, &Trouble::Failed(error), now_ns),
        }
    }

    fn give_up(&mut self, number: u32, trouble: Trouble) {
        let Conversation { dial, with, .. } = self.remove(number);
        let now_ns = self.clock.now().0;
        match dial {
            Some(dial) => self.failed(dial, &trouble, now_ns),
            None => self.log.refused(with, &trouble, now_ns),
        }
    }

    /// Whether a dial to this node has failed and not succeeded since.
    fn is_failing(&self, node: usize) -> bool {
        self.dials.iter().any(|dial| dial.node == node && dial.failing)
    }

    fn failed(&mut self, dial: usize, trouble: &Trouble, now_ns: u64) {
        let Dial { node, asks, .. } = self.dials[dial];
        let with = self.shared.cluster.who(node);
        let address = self.shared.cluster.nodes[node].address.clone();
        self.dials[dial].attempts += 1;
        if self.shared.cluster.is_client() {
            match trouble {
                Trouble::Refused(refusal) => {
                    if is_normal(*refusal) {
                        tracing::info!(%with, %address, "refuses this client, which leaves the cluster: {refusal}");
                    } else {
                        tracing::warn!(%with, %address, "refuses this client, which leaves the cluster: {refusal}");
                    }
                    return self.shared.refuse(*refusal);
                }
                Trouble::Refuse(refusal @ Refusal::Clock) if self.shared.cluster.heard_clocks().is_some() => {
                    return self.shared.refuse(*refusal);
                }
                // What this client knows is not true any more.
                Trouble::Refuse(refusal @ Refusal::Forgotten) => {
                    tracing::warn!(%with, %address, "has not got the data that it had; this client leaves the cluster");
                    return self.shared.refuse(*refusal);
                }
                _ => {}
            }
        }
        let refusal = trouble.refusal();
        let by_peer = matches!(trouble, Trouble::Refused(_));
        let lasts = refusal.filter(|refusal| refusal.is_lasting());
        // A node that cannot be reached does not say whether it would still refuse this one.
        self.shared.set_refusal(node, lasts.map(|refusal| PeerRefusal { refusal, by_peer }));
        let LoggedRefusals { refusal: before, warned, mut rarely } = self.told[node];
        // A further failure is logged rarely, but a new reason at once.
        let news = !self.is_failing(node) || (refusal.is_some() && refusal != before);
        if news {
            rarely = Rarely::default();
        }
        let times = rarely.count(now_ns);
        let early = refusal.is_none() && now_ns < self.begun_ns + LATE_NS;
        match refusal {
            None if asks => {}
            Some(Refusal::Direction) if asks && news => {
                tracing::warn!(%with, %address, "is alive and has not dialed this node, as it should: see that it can reach it");
            }
            _ if news && early => {
                tracing::info!(%with, %address, "cannot be reached yet, trying again and again: {trouble}");
            }
            _ if news || !(early || warned) => {
                tracing::warn!(%with, %address, "cannot be reached, trying again and again: {trouble}");
            }
            _ => {
                if let Some(times) = times {
                    tracing::warn!(%with, %address, times, "still cannot be reached: {trouble}");
                }
            }
        }
        let refusal = if news { refusal } else { before };
        self.told[node] = LoggedRefusals { refusal, warned: warned || !early, rarely };
        self.dials[dial].failing = true;
        // A node that dials this one may be about to do so, whatever it answers to the question.
        self.shared.failing[node].store(!asks, SeqCst);
        self.dials[dial].pause(now_ns);
    }

    fn recovered(&mut self, dial: usize) {
        let node = self.dials[dial].node;
        if std::mem::take(&mut self.dials[dial].failing) && !self.is_failing(node) {
            self.told[node] = LoggedRefusals::default();
            self.shared.failing[node].store(false, SeqCst);
            tracing::info!(with = %self.shared.cluster.who(node), "can be reached now");
        }
    }

    /// When there is something to do even if no event comes.
    fn next_ns(&mut self, now_ns: u64) -> Option<u64> {
        let late = self.conversations.iter_mut().map(|(_, conversation)| conversation.until_ns).min();
        let dials = self.dials.iter().filter_map(|dial| match dial.progress {
            Progress::Pausing { until_ns } => Some(until_ns),
            Progress::Trying | Progress::Connected { .. } => None,
        });
        // A dial that is due but held up goes on when a conversation ends, which is an event or a
        // time-out.
        let dial = dials.filter(|&until_ns| until_ns > now_ns).min();
        [late, dial, self.may_accept_ns(now_ns)].into_iter().flatten().min()
    }
}

impl Dial {
    fn pause(&mut self, now_ns: u64) {
        self.progress = Progress::Pausing { until_ns: now_ns + self.pause_ns };
        self.pause_ns = (2 * self.pause_ns).min(PAUSE_MAX_NS);
    }
}

/// Random numbers that cannot be guessed.
fn nonce() -> (u64, u64) {
    let mut bytes = [0; 16];
    let mut drawn = 0;
    while drawn < bytes.len() {
        match getrandom(&mut bytes[drawn..], GetRandomFlags::empty()) {
            Ok(more) => drawn += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the operating system has random numbers: {error}"),
        }
    }
    let number = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
    (number(&bytes[..8]), number(&bytes[8..]))
}
