//! The sockets of a shard: what its streams ([`crate::Stream`]) stand for.
//!
//! A socket reports changes only: that it can be read again, written again, or that the other side
//! is gone. So the shard remembers what may be tried until the socket says otherwise. A read that
//! gets less than it asked for has emptied its socket, which saves a system call per request. The
//! exception is the end, which may have been reported together with the last bytes.
//!
//! Both a real and a simulated socket are a [`Socket`]; all that a stream promises is here, and is
//! the same in both worlds.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::io::ErrorKind;

use plimsoll_types::{ShardId, Slab};

use super::TaskId;
use crate::stream::{Broken, Detached, READ_MAX, Socket, UNSENT_MAX};

/// Maximum number of bytes that one write gives to the operating system before other tasks run.
const WRITE_MAX: usize = 256 << 10;

/// What has changed about a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Readiness {
    /// There may be something to read.
    pub(crate) readable: bool,
    /// There may be room to write.
    pub(crate) writable: bool,
    /// The other side has sent its last byte, or the connection was reset.
    pub(crate) gone: bool,
}

/// What has come of something that a task has tried.
pub(crate) enum Attempt<T> {
    Done(T),
    /// The task is woken when it may be tried again.
    Waits,
    /// Other tasks have to run first.
    Later,
}

/// A socket and who waits for it.
struct Open {
    socket: Box<dyn Socket>,
    peer: SocketAddr,
    /// Whether it may be read and written, as far as is known.
    readable: bool,
    writable: bool,
    gone: bool,
    broken: bool,
    /// A piece was just read or written: other tasks run before the next one.
    has_read: bool,
    has_written: bool,
    /// Written and not taken by the operating system, [`UNSENT_MAX`] bytes at most.
    unsent: Vec<u8>,
    /// The tasks that wait to read, to write, and for the other side to be gone.
    reader: Option<TaskId>,
    writer: Option<TaskId>,
    watcher: Option<TaskId>,
}

impl Open {
    /// Gives the operating system bytes, and returns how many it has taken.
    fn send(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while let Some(left) = bytes.get(taken..).filter(|left| !left.is_empty())
            && self.writable
            && !self.broken
        {
            match self.socket.write(left) {
                Ok(0) => self.broken = true,
                Ok(more) => taken += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(_) => self.broken = true,
            }
        }
        taken.min(bytes.len())
    }

    /// Gives the operating system what it has not taken before.
    fn send_unsent(&mut self) {
        let mut unsent = std::mem::take(&mut self.unsent);
        unsent.drain(..self.send(&unsent));
        // An empty buffer is not kept.
        if !unsent.is_empty() && !self.broken {
            self.unsent = unsent;
        }
    }
}

/// The sockets of a shard.
#[derive(Default)]
pub(crate) struct Sockets {
    open: Slab<Open>,
    /// Connections that no task has accepted yet.
    fresh: VecDeque<u32>,
    /// The task that waits for one.
    acceptor: Option<TaskId>,
    /// Where all sockets are read to, [`READ_MAX`] bytes from the first read on.
    scratch: Vec<u8>,
}

impl Sockets {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Takes a connection that no task has asked for. Returns the task to wake.
    pub(super) fn arrived(&mut self, shard: ShardId, detached: Detached) -> Option<TaskId> {
        let number = self.attach(shard, detached);
        self.fresh.push_back(number);
        self.acceptor.take()
    }

    /// Takes a connection. Returns its number.
    pub(super) fn attach(&mut self, shard: ShardId, detached: Detached) -> u32 {
        let Detached { socket, peer, unsent } = detached;
        let number = self.open.insert(Open {
            socket,
            peer,
            readable: false,
            writable: true,
            gone: false,
            broken: false,
            has_read: false,
            has_written: false,
            unsent,
            reader: None,
            writer: None,
            watcher: None,
        });
        let open = self.get(number);
        open.broken = open.socket.attach(shard, number).is_err();
        number
    }

    /// A socket has changed. Returns the tasks to wake.
    pub(super) fn ready(&mut self, number: u32, readiness: Readiness) -> [Option<TaskId>; 3] {
        let Some(open) = self.open.get_mut(number) else { return [None; 3] };
        let Readiness { readable, writable, gone } = readiness;
        open.gone |= gone;
        open.readable |= readable || gone;
        if writable {
            open.writable = true;
            open.send_unsent();
        }
        [
            open.reader.take_if(|_| open.readable || open.broken),
            open.writer.take_if(|_| open.writable || open.broken),
            open.watcher.take_if(|_| open.gone || open.broken),
        ]
    }

    fn get(&mut self, number: u32) -> &mut Open {
        self.open.get_mut(number).expect("a stream has a socket")
    }
}

/// For streams.
impl Sockets {
    pub(crate) fn accept(&mut self, task: TaskId) -> Option<(u32, SocketAddr)> {
        let Some(number) = self.fresh.pop_front() else {
            self.acceptor = Some(task);
            return None;
        };
        Some((number, self.get(number).peer))
    }

    /// Reads once, and shows what was read.
    pub(crate) fn read(
        &mut self,
        number: u32,
        task: TaskId,
        limit: usize,
        take: impl FnOnce(&[u8]),
    ) -> Attempt<Result<usize, Broken>> {
        let open = self.open.get_mut(number).expect("a stream has a socket");
        if open.readable && !open.broken && std::mem::take(&mut open.has_read) {
            return Attempt::Later;
        }
        if self.scratch.is_empty() {
            self.scratch = vec![0; READ_MAX];
        }
        let room = self.scratch.get_mut(..limit.min(READ_MAX)).expect("that much was made room for");
        while open.readable && !open.broken {
            match open.socket.read(room) {
                Ok(bytes) => {
                    open.readable = bytes == room.len() || open.gone || bytes == 0;
                    open.has_read = true;
                    take(room.get(..bytes).expect("a socket fills the room at most"));
                    return Attempt::Done(Ok(bytes));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => open.readable = false,
                Err(_) => open.broken = true,
            }
        }
        if open.broken {
            return Attempt::Done(Err(Broken));
        }
        open.has_read = false;
        open.reader = Some(task);
        Attempt::Waits
    }

    /// Sends bytes or keeps them. Returns how many of them.
    pub(crate) fn write(
        &mut self,
        number: u32,
        task: TaskId,
        bytes: &[u8],
    ) -> Attempt<Result<usize, Broken>> {
        let open = self.get(number);
        if open.broken {
            return Attempt::Done(Err(Broken));
        }
        if std::mem::take(&mut open.has_written) {
            return Attempt::Later;
        }
        let mut taken = 0;
        if open.unsent.is_empty() {
            let piece = bytes.get(..WRITE_MAX).unwrap_or(bytes);
            taken = open.send(piece);
            open.has_written = open.writable && taken < bytes.len();
        }
        if !open.writable || !open.unsent.is_empty() {
            let left = bytes.get(taken..).unwrap_or_default();
            let kept = left.len().min(UNSENT_MAX - open.unsent.len());
            open.unsent.extend_from_slice(left.get(..kept).unwrap_or_default());
            taken += kept;
        }
        if open.broken {
            return Attempt::Done(Err(Broken));
        }
        if taken == 0 {
            open.writer = Some(task);
            return Attempt::Waits;
        }
        Attempt::Done(Ok(taken))
    }

    pub(crate) fn flush(&mut self, number: u32, task: TaskId) -> Attempt<Result<(), Broken>> {
        let open = self.get(number);
        if open.broken {
            return Attempt::Done(Err(Broken));
        }
        if open.unsent.is_empty() {
            return Attempt::Done(Ok(()));
        }
        open.writer = Some(task);
        Attempt::Waits
    }

    pub(crate) fn gone(&mut self, number: u32, task: TaskId) -> Attempt<()> {
        let open = self.get(number);
        if open.gone || open.broken {
            return Attempt::Done(());
        }
        open.watcher = Some(task);
        Attempt::Waits
    }

    pub(crate) fn shut(&mut self, number: u32) {
        self.get(number).socket.shut();
    }

    pub(crate) fn detach(&mut self, number: u32) -> Detached {
        let Open { mut socket, peer, unsent, .. } = self.open.remove(number).expect("a stream has a socket");
        socket.detach();
        Detached { socket, peer, unsent }
    }

    /// A stream is dropped, or was just detached.
    pub(crate) fn remove(&mut self, number: u32) {
        self.open.remove(number);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    const ME: ShardId = ShardId(0);
    const TASK: TaskId = 7;
    const READABLE: Readiness = Readiness { readable: true, writable: false, gone: false };
    const WRITABLE: Readiness = Readiness { readable: false, writable: true, gone: false };

    /// What a socket has, takes and was asked.
    #[derive(Default)]
    struct Counts {
        arrived: AtomicUsize,
        room: AtomicUsize,
        written: AtomicUsize,
        reads: AtomicUsize,
        writes: AtomicUsize,
    }

    impl Counts {
        fn take(&self, counter: &AtomicUsize, most: usize) -> io::Result<usize> {
            match counter.load(Relaxed).min(most) {
                0 => Err(ErrorKind::WouldBlock.into()),
                bytes => {
                    counter.fetch_sub(bytes, Relaxed);
                    Ok(bytes)
                }
            }
        }
    }

    struct Fake(Arc<Counts>);

    impl Socket for Fake {
        fn attach(&mut self, _: ShardId, _: u32) -> io::Result<()> {
            Ok(())
        }

        fn detach(&mut self) {}

        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.reads.fetch_add(1, Relaxed);
            self.0.take(&self.0.arrived, into.len())
        }

        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.writes.fetch_add(1, Relaxed);
            let taken = self.0.take(&self.0.room, bytes.len())?;
            self.0.written.fetch_add(taken, Relaxed);
            Ok(taken)
        }

        fn shut(&mut self) {}
    }

    /// A socket that a task has accepted, with room for so many bytes.
    fn open(room: usize) -> (Sockets, u32, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        counts.room.store(room, Relaxed);
        let mut sockets = Sockets::default();
        assert!(sockets.accept(TASK).is_none());
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let fake = Box::new(Fake(counts.clone()));
        assert_eq!(sockets.arrived(ME, Detached::new(fake, peer)), Some(TASK));
        let (number, of) = sockets.accept(TASK).expect("it has arrived");
        assert_eq!(of, peer);
        (sockets, number, counts)
    }

    fn read(sockets: &mut Sockets, number: u32) -> Option<usize> {
        match sockets.read(number, TASK, usize::MAX, |_| ()) {
            Attempt::Done(bytes) => Some(bytes.expect("it is not broken")),
            Attempt::Waits | Attempt::Later => None,
        }
    }

    fn write(sockets: &mut Sockets, number: u32, bytes: usize) -> Option<usize> {
        match sockets.write(number, TASK, &vec![1; bytes]) {
            Attempt::Done(bytes) => Some(bytes.expect("it is not broken")),
            Attempt::Waits | Attempt::Later => None,
        }
    }

    #[test]
    fn a_request_and_its_answer_are_one_read_and_one_write() {
        let (mut sockets, number, counts) = open(1 << 20);
        for round in 1..=10 {
            assert_eq!(read(&mut sockets, number), None, "nothing is there");
            counts.arrived.store(300, Relaxed);
            assert_eq!(sockets.ready(number, READABLE), [Some(TASK), None, None]);
            assert_eq!(read(&mut sockets, number), Some(300));
            assert_eq!(write(&mut sockets, number, 500), Some(500));
            assert_eq!((counts.reads.load(Relaxed), counts.writes.load(Relaxed)), (round, round));
        }
    }

    #[test]
    fn a_full_socket_is_written_when_it_has_room_by_whoever_notices() {
        let (mut sockets, number, counts) = open(1000);
        assert_eq!(write(&mut sockets, number, UNSENT_MAX + 3000), Some(1000 + UNSENT_MAX));
        assert_eq!(write(&mut sockets, number, 2000), None, "too much is unsent");
        assert!(matches!(sockets.flush(number, TASK), Attempt::Waits));
        let writes = counts.writes.load(Relaxed);
        assert_eq!(write(&mut sockets, number, 2000), None);
        assert_eq!(counts.writes.load(Relaxed), writes, "a full socket is not asked");
        counts.room.store(UNSENT_MAX + 500, Relaxed);
        assert_eq!(sockets.ready(number, WRITABLE), [None, Some(TASK), None]);
        assert_eq!(counts.written.load(Relaxed), 1000 + UNSENT_MAX);
        assert!(matches!(sockets.flush(number, TASK), Attempt::Done(Ok(()))));
        assert_eq!(sockets.get(number).unsent.capacity(), 0, "an empty buffer is not kept");
        assert_eq!(write(&mut sockets, number, 2000), Some(2000), "500 are sent and the others kept");
        assert_eq!(counts.written.load(Relaxed), 1500 + UNSENT_MAX);
    }

    #[test]
    fn other_tasks_run_between_pieces() {
        let (mut sockets, number, counts) = open(usize::MAX);
        counts.arrived.store(3 * READ_MAX, Relaxed);
        sockets.ready(number, READABLE);
        assert_eq!(read(&mut sockets, number), Some(READ_MAX));
        assert!(matches!(sockets.read(number, TASK, 1, |_| ()), Attempt::Later));
        assert_eq!(read(&mut sockets, number), Some(READ_MAX));
        assert_eq!(write(&mut sockets, number, 2 * WRITE_MAX), Some(WRITE_MAX));
        assert!(matches!(sockets.write(number, TASK, &[1]), Attempt::Later));
        assert_eq!(write(&mut sockets, number, WRITE_MAX), Some(WRITE_MAX));
        assert_eq!(write(&mut sockets, number, 1), Some(1), "the last piece was all there was");
    }

    #[test]
    fn what_is_unsent_moves_with_the_socket() {
        let (mut sockets, number, counts) = open(100);
        assert_eq!(write(&mut sockets, number, 300), Some(300));
        let detached = sockets.detach(number);
        assert_eq!((sockets.len(), detached.unsent.len()), (0, 200));
        let mut others = Sockets::default();
        let number = others.attach(ShardId(1), detached);
        assert_eq!(write(&mut others, number, 50), Some(50), "after what was written before");
        counts.room.store(1000, Relaxed);
        others.ready(number, WRITABLE);
        assert_eq!(counts.written.load(Relaxed), 350);
    }

    #[test]
    fn the_end_is_told_to_all_who_wait() {
        let (mut sockets, number, _) = open(0);
        assert_eq!(read(&mut sockets, number), None);
        assert_eq!(write(&mut sockets, number, UNSENT_MAX), Some(UNSENT_MAX));
        assert_eq!(write(&mut sockets, number, 1), None);
        assert!(matches!(sockets.gone(number, TASK), Attempt::Waits));
        let all = Readiness { readable: true, writable: true, gone: true };
        assert_eq!(sockets.ready(number, all).map(|task| task.is_some()), [true, false, true]);
        assert!(matches!(sockets.gone(number, TASK), Attempt::Done(())));
        assert_eq!(sockets.ready(number + 1, all), [None; 3], "a change of a socket that is gone");
    }
}
