//! Where a thread of shards learns of its sockets, and where it sleeps if it has any.
//!
//! All sockets of a thread are registered with one [`Poll`]: those of the connections to other
//! nodes (`tcp::Links`), whose thread has one shard, and those of the streams of all its shards
//! (`listener`). They report only changes. A busy thread asks for them only every [`BUSY_NS`],
//! because a system call costs as much as a few transactions; a thread without open sockets does
//! not ask at all.
//!
//! The thread sleeps in `epoll_wait`, so another one that wakes it writes to an eventfd instead of
//! unparking it. Timeouts of `epoll_wait` have a resolution of a millisecond, so a timer (timerfd)
//! wakes a thread whose tasks sleep for microseconds.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// The longest delay of polling and writing while a thread has tasks to run, in nanoseconds.
pub(super) const BUSY_NS: u64 = 20_000;

const WAKE: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
/// Set in the tokens of streams. Those of connections to other nodes are numbers of shards.
const STREAM: usize = 1 << 62;

/// What the sockets of a thread are registered with.
pub(super) struct Poller {
    poll: Poll,
    events: Events,
    waker: Arc<Waker>,
    timer: OwnedFd,
    /// When the timer goes off; 0 if it is not set.
    timer_ns: u64,
    /// When the operating system was last asked, and whether the last sleep has done so.
    asked_ns: u64,
    has_slept: bool,
}

/// Whose socket has changed.
pub(super) enum Changed {
    /// That of a connection to this shard of another node.
    Link(usize),
    /// That of a stream: the place of its shard on the thread, and its number there.
    Stream(usize, u32),
}

impl Poller {
    pub(super) fn new() -> io::Result<Poller> {
        let poll = Poll::new()?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        Ok(Poller {
            waker: Arc::new(Waker::new(poll.registry(), WAKE)?),
            poll,
            events: Events::with_capacity(256),
            timer,
            timer_ns: 0,
            asked_ns: 0,
            has_slept: false,
        })
    }

    /// Ends the sleep of the thread.
    pub(super) fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    pub(super) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// The token of a stream: the place of its shard on the thread, and its number there.
    pub(super) fn stream(place: usize, number: u32) -> Token {
        Token(STREAM | place << 32 | number as usize)
    }

    /// Asks for changes, unless that may wait and was done just now, or the thread has just slept:
    /// then they are known. Returns whether it has asked.
    #[inline]
    pub(super) fn turn(&mut self, may_wait: bool, now_ns: u64) -> bool {
        let may_wait = may_wait && now_ns.saturating_sub(self.asked_ns) < BUSY_NS;
        if std::mem::take(&mut self.has_slept) || may_wait {
            return false;
        }
        self.asked_ns = now_ns;
        self.ask(Some(Duration::ZERO));
        true
    }

    /// Asks for changes; with a timeout, waits for one.
    pub(super) fn ask(&mut self, timeout: Option<Duration>) {
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => self.events.clear(),
            Err(error) => panic!("the operating system can be asked about sockets: {error}"),
        }
    }

    /// Sleeps until something changes, another thread wakes this one, or a time: `due_ns` to the
    /// microsecond, `beat_ns` to the millisecond.
    pub(super) fn sleep(&mut self, now_ns: u64, due_ns: Option<u64>, beat_ns: Option<u64>) {
        if let Some(due_ns) = due_ns.filter(|&due_ns| beat_ns.is_none_or(|beat_ns| due_ns < beat_ns)) {
            self.set_timer(now_ns, due_ns);
        }
        self.ask(beat_ns.map(|beat_ns| Duration::from_nanos(beat_ns.saturating_sub(now_ns))));
        self.has_slept = true;
    }

    /// What had changed when the operating system was last asked.
    pub(super) fn changes(&self) -> impl Iterator<Item = (Changed, &Event)> {
        self.events.iter().filter_map(|event| match event.token() {
            WAKE | TIMER => None,
            Token(token) if token & STREAM != 0 => {
                let (place, number) = ((token & !STREAM) >> 32, token as u32);
                Some((Changed::Stream(place, number), event))
            }
            Token(peer) => Some((Changed::Link(peer), event)),
        })
    }

    /// Wakes the thread at a time that is too near for the timeout of a poll.
    fn set_timer(&mut self, now_ns: u64, due_ns: u64) {
        if self.timer_ns == due_ns && due_ns > now_ns {
            return;
        }
        self.timer_ns = due_ns;
        let wait = Duration::from_nanos(due_ns.saturating_sub(now_ns).max(1));
        let it_value = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })
            .expect("a timer can be set");
    }
}
