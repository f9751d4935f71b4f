//! Shards on threads: a pinned thread per shard, each with an inbox. If there are more shards than
//! cores, a thread has several shards, and makes a pass of each in turn: otherwise the operating
//! system could give the core to a shard that waits for another, which needs the core. (With a
//! network every shard has a thread of its own, because each sleeps in a system call of its own.)
//!
//! A shard's thread loops over passes. In a pass it handles what other shards sent, samples the
//! clock, runs the tasks that are ready, and sends what was produced, one batch per peer. Nothing
//! on this path is atomic but the inbox, a lock-free queue of batches, and the flag that says that
//! a shard sleeps.
//!
//! A thread whose shards are idle spins for [`SPIN_NS`], or longer after a short sleep. Then it
//! sleeps until a message comes or a timer is due. Sleeping and sending race as usual: the sleeper
//! raises its flag and looks into the inbox once more; a sender fills the inbox and looks at the
//! flag. Both sides are sequentially consistent, so one of them sees the other.
//!
//! A shard that was given a directory has a second thread that reads and writes there (`disk`).
//!
//! A runtime has all shards of a database, or those of one process of a cluster
//! ([`Runtime::networked`]), a node or a client. In a cluster shards are numbered over all
//! processes, and talk to those of other processes over TCP (`tcp`). A runtime may also listen for
//! connections of bytes, and deals them to its shards (`listener`). In both cases a thread of
//! shards sleeps in the system call that waits for sockets (`poller`). It is woken by a write to an
//! eventfd, which is remembered like an unpark, so the race of sleeping and sending is the same.
//!
//! A panic on a shard ends the process: half a database is of no use.

mod disk;
mod listener;
mod poller;
mod shard;
mod tcp;

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst, fence};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, JoinHandle, Thread};

use crossbeam_queue::SegQueue;
use plimsoll_types::wire::Wire;
use plimsoll_types::{ShardId, Timestamp};
use rustix::time::ClockId;

use crate::Participant;
pub use crate::ShardEnv as RealEnv;
use crate::disk::Submitted;
use crate::shard::{Batch, Message, Start};
use crate::stream::Detached;
pub use disk::{Directory, OpenError};
pub use listener::Listening;
use listener::{Berths, Listener};
use poller::Poller;
use shard::Resident;
pub use tcp::{
    Address, BadEndpoint, Closed, Endpoint, FRAME_MAX, Network, ORACLE, PeerRefusal, Reach, Refusal, Role,
    Room, SILENCE, Traffic, Who, resolve,
};
use tcp::{Connections, Prepared};

/// How long an idle shard spins before it sleeps, in nanoseconds. On small machines spinning
/// starves all other threads.
pub const SPIN_NS: u64 = 20_000;
/// How long it spins after a sleep that was shorter than this, in nanoseconds, if every thread has
/// a core. After a sleep this short shards are in conversation: an answer comes sooner than a
/// sleeping thread wakes, and two shards that spin for less keep sending each other to sleep.
pub const CONVERSATION_NS: u64 = 200_000;

/// The part of a shard that other threads use.
struct Peer<N: Participant> {
    inbox: SegQueue<Batch<N>>,
    asleep: AtomicBool,
    alarm: OnceLock<Alarm>,
}

/// What ends a shard's sleep.
#[derive(Debug)]
enum Alarm {
    /// For a shard that parks.
    Thread(Thread),
    /// For a shard whose thread waits for sockets.
    Poll(Arc<mio::Waker>),
}

impl<N: Participant> Peer<N> {
    fn send(&self, batch: Batch<N>) {
        self.inbox.push(batch);
        self.wake();
    }

    fn wake(&self) {
        fence(SeqCst);
        if self.asleep.load(SeqCst)
            && self.asleep.swap(false, SeqCst)
            && let Some(alarm) = self.alarm.get()
        {
            match alarm {
                Alarm::Thread(thread) => thread.unpark(),
                Alarm::Poll(waker) => waker.wake().expect("an eventfd can be written"),
            }
        }
    }
}

struct Peers<N: Participant> {
    peers: Vec<Peer<N>>,
    /// The number of the first of them, and how many shards all nodes and clients have.
    first: usize,
    total: usize,
    /// Whether there is a core for every thread of this process.
    cores: bool,
    stop: AtomicBool,
    clock: Clock,
}

impl<N: Participant> Peers<N> {
    /// A shard of this process.
    #[inline]
    fn get(&self, shard: ShardId) -> Option<&Peer<N>> {
        self.peers.get(shard.index().wrapping_sub(self.first))
    }
}

/// The clock that the shards of a runtime sample, in Unix nanoseconds: the monotonic clock plus an
/// offset that is fixed at the start. So it neither stands still nor jumps when the operating
/// system's clock is set.
///
/// The monotonic clock is the same in all processes of a machine, so processes with the same offset
/// agree exactly.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    unix_offset: u64,
}

impl Clock {
    /// A clock that is set once, by the operating system's.
    #[allow(clippy::new_without_default, reason = "two clocks are not the same")]
    pub fn new() -> Clock {
        let unix = nanoseconds(ClockId::Realtime);
        Clock { unix_offset: unix.saturating_sub(nanoseconds(ClockId::Monotonic)) }
    }

    /// The clock of another process of this machine.
    pub fn with_offset(unix_offset: u64) -> Clock {
        Clock { unix_offset }
    }

    /// The offset with which another process of this machine has the same clock.
    pub fn offset(self) -> u64 {
        self.unix_offset
    }

    /// The time now.
    pub fn now(self) -> Timestamp {
        Timestamp(self.unix_offset + nanoseconds(ClockId::Monotonic))
    }
}

/// Running shards. Dropping it stops them.
pub struct Runtime<N: Participant> {
    peers: Arc<Peers<N>>,
    threads: Vec<JoinHandle<()>>,
    /// The disk threads, which end after the shards.
    disks: Vec<JoinHandle<()>>,
    connections: Option<Connections>,
    listener: Option<Listener>,
}

/// How the shards of a process are connected to what is outside of it.
struct Outward<N: Participant> {
    network: Option<Prepared<N>>,
    /// By thread; none if the threads have no sockets.
    pollers: Vec<Poller>,
    listening: Option<Listening>,
    clock: Clock,
}

impl<N: Participant> Default for Outward<N> {
    fn default() -> Self {
        Outward { network: None, pollers: Vec::new(), listening: None, clock: Clock::new() }
    }
}

impl<N: Participant> Outward<N>
where
    N::Request: Wire,
    N::Reply: Wire,
{
    fn networked(network: Network, shards: usize) -> io::Result<Self> {
        let clock = network.clock;
        let pollers = (0..shards).map(|_| Poller::new()).collect::<io::Result<Vec<_>>>()?;
        let network = Some(Prepared::new(network, &pollers, clock)?);
        Ok(Outward { network, pollers, listening: None, clock })
    }
}

/// Makes a shard's participant, on the shard's thread.
pub type Maker<N> = Box<dyn FnOnce() -> N + Send>;

impl<N: Participant> Runtime<N> {
    /// Starts a shard per maker; each maker runs on its shard's thread. There are as many threads
    /// as shards, or as cores if there are fewer cores: then shards are dealt to the threads in
    /// turn. With `pin`, the first thread runs on that core and the next ones on the next cores;
    /// threads beyond the last core are not pinned.
    pub fn start(makers: Vec<Maker<N>>, seed: u64, pin: Option<usize>) -> io::Result<Self> {
        Runtime::with_disks(makers, seed, pin, Vec::new())
    }

    /// Like [`Runtime::start`], with a directory for each of the first shards.
    pub fn with_disks(
        makers: Vec<Maker<N>>,
        seed: u64,
        pin: Option<usize>,
        directories: Vec<Directory>,
    ) -> io::Result<Self> {
        Runtime::build(makers, seed, pin, directories, Outward::default())
    }

    /// Like [`Runtime::with_disks`], as one node or client of a cluster: the runtime has the shards
    /// that the cluster gives to this process, and [`crate::Env::call`] reaches those of all
    /// others. Calls to a node that is not connected fail at once; [`Participant::connected`] tells
    /// when it is, and [`Runtime::refused`] that a client will not be connected. Fails if the
    /// configuration is invalid, or if other machines could reach the cluster and it has no secret.
    pub fn networked(
        makers: Vec<Maker<N>>,
        seed: u64,
        pin: Option<usize>,
        directories: Vec<Directory>,
        network: Network,
    ) -> io::Result<Self>
    where
        N::Request: Wire,
        N::Reply: Wire,
    {
        let outward = Outward::networked(network, makers.len())?;
        Runtime::build(makers, seed, pin, directories, outward)
    }

    /// Like [`Runtime::with_disks`], or [`Runtime::networked`] if there is a network, and listens
    /// for connections of bytes, which tasks get by [`crate::Tasks::accept`]. Fails if a socket
    /// cannot be used.
    pub fn listening(
        makers: Vec<Maker<N>>,
        seed: u64,
        pin: Option<usize>,
        directories: Vec<Directory>,
        network: Option<Network>,
        listening: Listening,
    ) -> io::Result<Self>
    where
        N::Request: Wire,
        N::Reply: Wire,
    {
        let outward = match network {
            Some(network) => Outward::networked(network, makers.len())?,
            None => Outward::default(),
        };
        Runtime::build(makers, seed, pin, directories, Outward { listening: Some(listening), ..outward })
    }

    fn build(
        makers: Vec<Maker<N>>,
        seed: u64,
        pin: Option<usize>,
        directories: Vec<Directory>,
        outward: Outward<N>,
    ) -> io::Result<Self> {
        assert!(directories.len() <= makers.len(), "a directory belongs to a shard");
        let cores = thread::available_parallelism().map_or(1, |n| n.get());
        let Outward { network, mut pollers, listening, clock } = outward;
        let threads = if network.is_some() { makers.len() } else { makers.len().min(cores) };
        if listening.is_some() && pollers.is_empty() {
            pollers = (0..threads).map(|_| Poller::new()).collect::<io::Result<_>>()?;
        }
        let peer = |index: usize| Peer {
            inbox: SegQueue::new(),
            asleep: AtomicBool::new(false),
            alarm: match pollers.get(index % threads) {
                Some(poller) => Alarm::Poll(poller.waker()).into(),
                None => OnceLock::new(),
            },
        };
        let peers = Arc::new(Peers {
            peers: (0..makers.len()).map(peer).collect(),
            first: network.as_ref().map_or(0, Prepared::first),
            total: network.as_ref().map_or(makers.len(), Prepared::total),
            cores: threads <= cores,
            stop: AtomicBool::new(false),
            clock,
        });
        let (connections, links) = network.map(Prepared::start).transpose()?.unzip();
        // If this function fails from here on, dropping the runtime stops the shards that have
        // started.
        let mut runtime = Runtime {
            peers: peers.clone(),
            threads: Vec::new(),
            disks: Vec::new(),
            connections,
            listener: None,
        };
        let listening = match listening {
            Some(listening) => Some((Berths::new(peers.first, peers.peers.len(), &pollers)?, listening)),
            None => None,
        };
        let mut directories = directories.into_iter();
        let mut links = links.into_iter().flatten();
        let mut dealt: Vec<Vec<Resident<N>>> = (0..threads).map(|_| Vec::new()).collect();
        for (index, make) in makers.into_iter().enumerate() {
            let number = u16::try_from(peers.first + index);
            let me = ShardId(number.expect("there are fewer than 65,536 shards"));
            let disk = directories.next().map(|directory| runtime.start_disk(me, directory)).transpose()?;
            dealt[index % threads].push(Resident { me, place: index, make, disk, links: links.next() });
        }
        let mut pollers = pollers.into_iter();
        for (index, residents) in dealt.into_iter().enumerate() {
            let (peers, poller) = (peers.clone(), pollers.next());
            let numbers: Vec<String> = residents.iter().map(|resident| resident.me.0.to_string()).collect();
            let numbers = numbers.join("+");
            let thread = thread::Builder::new().name(format!("shard-{numbers}")).spawn(move || {
                let _end_process = EndProcessOnPanic(format!("shard {numbers}"));
                // Before they can sleep: other shards may already be sending.
                for resident in &residents {
                    peers.peers[resident.place].alarm.get_or_init(|| Alarm::Thread(thread::current()));
                }
                if let Some(core) = pin.map(|first| first + index).filter(|&core| core < cores) {
                    pin_to(core);
                }
                shard::run(residents, poller, &peers, seed);
            })?;
            runtime.threads.push(thread);
        }
        if let Some((berths, listening)) = listening {
            let deal = move |at: usize, detached: Detached| {
                let from = ShardId((peers.first + at) as u16);
                let messages = vec![Message::connection(detached)];
                peers.peers[at].send(Batch { from, messages });
            };
            runtime.listener = Some(Listener::start(listening, berths, deal)?);
        }
        Ok(runtime)
    }

    /// Starts the thread of a shard's disk. It ends when all senders of operations are gone.
    fn start_disk(
        &mut self,
        shard: ShardId,
        directory: Directory,
    ) -> io::Result<mpsc::Sender<Vec<Submitted>>> {
        let (submit, operations) = mpsc::channel();
        let peers = self.peers.clone();
        let thread = thread::Builder::new().name(format!("disk-{}", shard.0)).spawn(move || {
            let _end_process = EndProcessOnPanic(format!("the disk of shard {}", shard.0));
            let inbox = peers.get(shard).expect("the shard runs in this process");
            disk::run(directory, operations, |completed| {
                inbox.send(Batch { from: shard, messages: vec![Message::Disk(Box::new(completed))] });
            });
        })?;
        self.disks.push(thread);
        Ok(submit)
    }

    /// How many shards run here.
    pub fn shards(&self) -> usize {
        self.peers.peers.len()
    }

    /// The first of the shards that run here.
    pub fn first(&self) -> ShardId {
        ShardId(self.peers.first as u16)
    }

    /// The traffic with each other node of the cluster, and with its clients.
    pub fn traffic(&self) -> Vec<Traffic> {
        self.connections.as_ref().map_or_else(Vec::new, Connections::traffic)
    }

    /// Why a node has refused this client, if one has: usually [`Refusal::PlaceTaken`]. Then the
    /// runtime closes all its connections and dials no more. Drop it and start another, in a new
    /// life and with another place, or after the reason is removed. `None` for a node, which dials
    /// again and again.
    pub fn refused(&self) -> Option<Refusal> {
        self.connections.as_ref().and_then(Connections::refused)
    }

    /// Bytes for other processes that the operating system has not taken yet: the sum of
    /// [`Traffic::bytes_waiting`].
    pub fn bytes_waiting(&self) -> u64 {
        self.connections.as_ref().map_or(0, Connections::bytes_waiting)
    }

    /// The process of a shard, as it is called in logs, with the address that it was last connected
    /// from. `None` without a network.
    pub fn called(&self, shard: ShardId) -> Option<String> {
        self.connections.as_ref().map(|connections| connections.called(shard))
    }

    /// Strangers that a node has room for, at its port and at another one of its process, which has
    /// a [`Room`] of its own. 0 without a network.
    pub fn room(&self) -> usize {
        self.connections.as_ref().map_or(0, Connections::room)
    }

    /// Which nodes can be reached.
    pub fn reach(&self) -> Reach {
        self.connections.as_ref().map_or_else(Reach::alone, Connections::reach)
    }

    /// By node, in the order of their numbers: the first life that this runtime has met; 0 if none.
    /// Empty without a network.
    pub fn met(&self) -> Vec<u64> {
        self.connections.as_ref().map_or_else(Vec::new, Connections::met)
    }

    /// By node, in the order of their numbers: how far its clock is ahead of the one here, in
    /// nanoseconds, less the time its hello was on its way. Empty for a node, and for a client
    /// until all nodes have said hello.
    pub fn heard_clocks(&self) -> Vec<i64> {
        self.connections.as_ref().map_or_else(Vec::new, Connections::heard_clocks)
    }

    /// The clock that the shards sample.
    pub fn clock(&self) -> Clock {
        self.peers.clock
    }

    /// Starts a task on a shard of this process. The task is made there, so it need not be `Send`.
    pub fn spawn_on<F>(&self, shard: ShardId, task: impl FnOnce(RealEnv<N>) -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let start: Start<N> = Box::new(move |env| Box::pin(task(env.clone())));
        let batch = Batch { from: shard, messages: vec![Message::Start(start)] };
        self.peers.get(shard).expect("tasks are started on shards of this process").send(batch);
    }

    /// Runs a task on a shard of this process and blocks this thread until it is done.
    pub fn run_on<F, R>(&self, shard: ShardId, task: impl FnOnce(RealEnv<N>) -> F + Send + 'static) -> R
    where
        F: Future<Output = R> + 'static,
        R: Send + 'static,
    {
        let (done, result) = mpsc::sync_channel(1);
        self.spawn_on(shard, move |env| {
            let task = task(env);
            async move {
                let _ = done.send(task.await);
            }
        });
        result.recv().expect("a task started on a shard runs to its end")
    }
}

impl<N: Participant> Drop for Runtime<N> {
    /// Stops the shards. Tasks that are not done are dropped. Disk operations that they asked for
    /// are carried out. Messages to other nodes leave within a tenth of a second, or are lost.
    /// Streams are closed.
    fn drop(&mut self) {
        self.listener = None;
        self.peers.stop.store(true, SeqCst);
        for peer in &self.peers.peers {
            peer.wake();
        }
        for thread in self.threads.drain(..).chain(self.disks.drain(..)) {
            let _ = thread.join();
        }
    }
}

/// Ends the process if the thread panics, since it is useless without the thread.
struct EndProcessOnPanic(String);

impl Drop for EndProcessOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("plimsoll: {} panicked; the process ends", self.0);
            std::process::abort();
        }
    }
}

/// The time of a clock, in nanoseconds.
fn nanoseconds(clock: ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Best effort: on a machine that forbids it, the thread is not pinned.
fn pin_to(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}
