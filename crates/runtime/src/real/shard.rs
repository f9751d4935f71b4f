//! A thread of shards: it makes passes until all its shards are idle, then sleeps.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use plimsoll_types::{ShardId, Timestamp};

use super::poller::{Changed, Poller};
use super::tcp::Links;
use super::{CONVERSATION_NS, Maker, Peer, Peers, SPIN_NS};
use crate::disk::Submitted;
use crate::shard::{Batch, Outside, Readiness, ShardClock, ShardEnv};
use crate::{Participant, Tasks};

/// What one shard sees of its surroundings: the other shards of this process, connections to other
/// processes, its disk, and the clock.
struct Process<N: Participant> {
    /// The shard's place in the process.
    place: usize,
    peers: Arc<Peers<N>>,
    disk: Option<Sender<Vec<Submitted>>>,
    links: Option<Links<N>>,
}

impl<N: Participant> Process<N> {
    fn inbox(&self) -> &Peer<N> {
        &self.peers.peers[self.place]
    }
}

impl<N: Participant> Outside<N> for Process<N> {
    #[inline]
    fn arrived(&mut self) -> Option<Batch<N>> {
        self.inbox().inbox.pop().or_else(|| self.links.as_mut().and_then(Links::arrived))
    }

    #[inline]
    fn clock(&mut self) -> Timestamp {
        self.peers.clock.now()
    }

    #[inline]
    fn send(&mut self, to: ShardId, batch: Batch<N>) {
        match self.peers.get(to) {
            Some(peer) => peer.send(batch),
            None => self.links.as_mut().expect("without a network all shards are here").send(to, batch),
        }
    }

    fn submit(&mut self, operations: Vec<Submitted>) {
        let disk = self.disk.as_ref().expect("who has no disk asks nothing of it");
        // The disk's thread ends after this one, or ends the process.
        let _ = disk.send(operations);
    }
}

/// A shard that is about to run on a thread.
pub(super) struct Resident<N: Participant> {
    pub(super) me: ShardId,
    /// Its place in the process.
    pub(super) place: usize,
    pub(super) make: Maker<N>,
    pub(super) disk: Option<Sender<Vec<Submitted>>>,
    pub(super) links: Option<Links<N>>,
}

/// A running shard.
struct Shard<N: Participant> {
    env: ShardEnv<N>,
    process: Process<N>,
}

impl<N: Participant> Shard<N> {
    fn new(resident: Resident<N>, peers: &Arc<Peers<N>>, seed: u64) -> Shard<N> {
        let Resident { me, place, make, disk, links } = resident;
        let random = seed ^ (u64::from(me.0) + 1).wrapping_mul(0x9e3779b97f4a7c15);
        let own = peers.first..peers.first + peers.peers.len();
        let clock = ShardClock::Running(peers.clock);
        let env = ShardEnv::new(me, peers.total, own, make(), clock, random, disk.is_some());
        Shard { env, process: Process { place, peers: peers.clone(), disk, links } }
    }

    /// Makes a pass.
    fn pass(&mut self, now_ns: u64) -> Did {
        if let Some(links) = &mut self.process.links {
            links.turn(&self.env, now_ns);
        }
        let worked = self.env.pass(&mut self.process);
        if let Some(links) = &mut self.process.links {
            links.write(&self.env);
        }
        // The end of a pass may have woken a task.
        match (worked.idle(), worked.has_time()) {
            (true, _) if !self.env.is_ready() => Did::Nothing,
            (false, true) => Did::Patience,
            _ => Did::Work,
        }
    }
}

/// What a thread had to do in a pass, in the order of how soon the next is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Did {
    /// Nothing, and nothing is left.
    Nothing,
    /// Only what gives way to everything else.
    Patience,
    Work,
}

/// The shards of a thread.
struct Residents<N: Participant> {
    shards: Vec<Shard<N>>,
    /// `None` if they never have a socket.
    poller: Option<Poller>,
    peers: Arc<Peers<N>>,
}

impl<N: Participant> Residents<N> {
    /// Makes a pass of each shard.
    #[inline]
    fn pass(&mut self) -> Did {
        let now_ns = self.ask();
        let mut did = Did::Nothing;
        for shard in &mut self.shards {
            did = did.max(shard.pass(now_ns));
        }
        did
    }

    fn links(&self) -> Option<&Links<N>> {
        self.shards.first().and_then(|shard| shard.process.links.as_ref())
    }

    /// Whether a shard of this thread has a stream.
    fn has_streams(&self) -> bool {
        self.poller.is_some() && self.shards.iter().any(|shard| shard.env.streams() > 0)
    }

    /// Asks what has changed about sockets, if there are any and it is time to. Returns the time in
    /// Unix nanoseconds; 0 without sockets.
    #[inline]
    fn ask(&mut self) -> u64 {
        if self.poller.is_none() {
            return 0;
        }
        let has_streams = self.has_streams();
        if self.links().is_none() && !has_streams {
            return 0;
        }
        // A busy shard has just sampled the clock.
        let busy = self.shards.iter().find(|shard| shard.env.is_ready());
        let now_ns = busy.map_or_else(|| self.peers.clock.now(), |busy| busy.env.clock()).0;
        let beat_ns = self.links().and_then(Links::next_beat_ns);
        let may_wait = busy.is_some() && beat_ns.is_none_or(|beat_ns| now_ns < beat_ns);
        if (has_streams || beat_ns.is_some())
            && let Some(poller) = &mut self.poller
            && poller.turn(may_wait, now_ns)
        {
            self.tell_changes();
        }
        now_ns
    }

    /// Tells the shards what has changed about their sockets.
    fn tell_changes(&mut self) {
        let Some(poller) = &self.poller else { return };
        for (changed, event) in poller.changes() {
            match changed {
                Changed::Link(peer) => {
                    if let Some(links) = &mut self.shards[0].process.links {
                        links.changed(peer, event);
                    }
                }
                Changed::Stream(place, number) => {
                    let gone = event.is_read_closed() || event.is_error();
                    let (readable, writable) = (event.is_readable(), event.is_writable() || event.is_error());
                    self.shards[place].env.socket_ready(number, Readiness { readable, writable, gone });
                }
            }
        }
    }

    /// Waits for a moment. Yields the core unless the wait is short and there is no socket: what is
    /// awaited at a socket may be of another process, and an embedded database shares its cores
    /// with client threads; both would have to wait for the end of the spinning.
    #[expect(clippy::disallowed_methods, reason = "this is what tasks wait for when they pause")]
    fn spin(&self, short: bool) {
        match self.links() {
            None if short && !self.has_streams() => std::hint::spin_loop(),
            _ => thread::yield_now(),
        }
    }

    fn sleep_until_woken(&mut self) {
        for Shard { env, process } in &self.shards {
            env.park();
            process.inbox().asleep.store(true, SeqCst);
        }
        let empty = |shard: &Shard<N>| shard.process.inbox().inbox.is_empty();
        if self.shards.iter().all(empty) && !self.peers.stop.load(SeqCst) {
            self.sleep();
        }
        self.shards.iter().for_each(|shard| shard.process.inbox().asleep.store(false, SeqCst));
    }

    fn sleep(&mut self) {
        let due_ns = self.shards.iter().filter_map(|shard| shard.env.due()).min();
        let beat_ns = self.links().and_then(Links::next_beat_ns);
        let may_sleep = self.links().is_none_or(Links::may_sleep);
        match (&mut self.poller, due_ns) {
            (Some(poller), due_ns) => {
                if may_sleep {
                    poller.sleep(self.peers.clock.now().0, due_ns, beat_ns);
                    self.tell_changes();
                }
            }
            (None, Some(due_ns)) => {
                let now_ns = self.shards[0].env.clock().0;
                thread::park_timeout(Duration::from_nanos(due_ns.saturating_sub(now_ns)));
            }
            (None, None) => thread::park(),
        }
    }
}

/// Runs shards until the runtime stops.
pub(super) fn run<N: Participant>(
    residents: Vec<Resident<N>>,
    poller: Option<Poller>,
    peers: &Arc<Peers<N>>,
    seed: u64,
) {
    let shards = residents.into_iter().map(|resident| Shard::new(resident, peers, seed)).collect();
    let mut residents = Residents { shards, poller, peers: peers.clone() };
    let conversation_ns = if peers.cores { CONVERSATION_NS } else { SPIN_NS };
    let mut idle_since: Option<u64> = None;
    let mut spin_ns = SPIN_NS;
    while !peers.stop.load(SeqCst) {
        let did = residents.pass();
        if did != Did::Nothing {
            idle_since = None;
            if did == Did::Patience {
                residents.spin(true);
            }
            continue;
        }
        let now = residents.shards[0].env.clock().0;
        let since = *idle_since.get_or_insert(now);
        let idle_ns = now.saturating_sub(since);
        if idle_ns < spin_ns {
            residents.spin(idle_ns < SPIN_NS);
        } else {
            residents.sleep_until_woken();
            let slept_ns = peers.clock.now().0.saturating_sub(now);
            spin_ns = if slept_ns < conversation_ns { conversation_ns } else { SPIN_NS };
            idle_since = None;
        }
    }
    for shard in residents.shards {
        shard.env.end();
        if let (Some(links), Some(poller)) = (shard.process.links, &mut residents.poller) {
            links.close(poller);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::task::Poll;

    use super::super::Runtime;
    use super::*;
    use crate::TASKS_PER_PASS;
    use crate::shard::PATIENCE;
    use crate::{Env, Handled, Messages};
    use plimsoll_types::Ticket;

    /// A sum that requests add to and take from. A request for more than there is waits.
    #[derive(Default)]
    struct Till {
        sum: u64,
        waiting: Vec<Ticket>,
        released: Vec<Ticket>,
    }

    enum Request {
        Put(u64),
        Take(u64),
    }

    impl Messages for Till {
        type Request = Request;
        type Reply = u64;
    }

    impl Participant for Till {
        fn handle(&mut self, _: ShardId, request: &mut Request, ticket: Ticket) -> Handled<u64> {
            match *request {
                Request::Put(n) => {
                    self.sum += n;
                    self.released.append(&mut self.waiting);
                    Handled::Done
                }
                Request::Take(n) if n <= self.sum => {
                    self.sum -= n;
                    Handled::Reply(self.sum)
                }
                Request::Take(_) => {
                    self.waiting.push(ticket);
                    Handled::Wait
                }
            }
        }

        fn released(&mut self) -> &mut Vec<Ticket> {
            &mut self.released
        }

        fn pass(&mut self, _: Timestamp) {}
        fn outgoing(&mut self, _: &mut Vec<(ShardId, Request)>) {}
        fn park(&mut self) {}
    }

    fn start(shards: usize) -> Runtime<Till> {
        let makers = (0..shards).map(|_| Box::new(Till::default) as Box<dyn FnOnce() -> Till + Send>);
        Runtime::start(makers.collect(), 1, None).unwrap()
    }

    #[test]
    fn calls_cross_shards_and_wait_until_they_can_be_answered() {
        let runtime = start(2);
        runtime.spawn_on(ShardId(1), |env| async move {
            for _ in 0..10 {
                env.sleep(1000).await;
                env.send(ShardId(0), Request::Put(1));
                env.send(ShardId(1), Request::Put(1));
            }
        });
        let left = runtime.run_on(ShardId(1), |env| async move {
            let far = env.call(ShardId(0), Request::Take(10)).await.unwrap();
            let near = env.call(ShardId(1), Request::Take(10)).await.unwrap();
            far + near
        });
        assert_eq!(left, 0);
    }

    #[test]
    fn a_task_that_pauses_lets_others_run_and_time_pass() {
        let runtime = start(1);
        let passed = runtime.run_on(ShardId(0), |env| async move {
            let before = env.clock();
            let other = Rc::new(Cell::new(0));
            let counter = other.clone();
            let inner = env.clone();
            env.spawn(async move {
                for _ in 0..5 {
                    counter.set(counter.get() + 1);
                    inner.pause().await;
                }
            });
            while other.get() < 5 {
                env.pause().await;
            }
            env.sleep(50_000).await;
            env.clock().0 - before.0
        });
        assert!(passed >= 50_000);
    }

    /// A task that pauses so often, or gives way, and how often it has.
    fn counted(env: &ShardEnv<Till>, times: usize, gives_way: bool) -> Rc<Cell<usize>> {
        let count = Rc::new(Cell::new(0));
        let (counter, inner) = (count.clone(), env.clone());
        env.spawn(async move {
            for _ in 0..times {
                match gives_way {
                    true => inner.give_way().await,
                    false => inner.pause().await,
                }
                counter.set(counter.get() + 1);
            }
        });
        count
    }

    /// Pauses of a task that is alone in as many passes as one that has given way waits.
    const PAUSES: usize = PATIENCE as usize * TASKS_PER_PASS;

    #[test]
    fn a_task_that_gives_way_goes_on_slowly_beside_others_and_at_once_when_they_are_done() {
        let runtime = start(1);
        let (beside, after) = runtime.run_on(ShardId(0), |env| async move {
            let given = counted(&env, 100, true);
            for _ in 0..10 * PAUSES {
                env.pause().await;
            }
            let beside = given.get();
            while given.get() < 100 {
                env.sleep(1_000).await;
            }
            (beside, given.get())
        });
        assert!((9..=10).contains(&beside), "{beside}");
        assert_eq!(after, 100);
    }

    #[test]
    fn what_a_task_waits_for_while_it_gives_way_wakes_it_as_soon_as_any_other() {
        let runtime = start(1);
        let pauses = runtime.run_on(ShardId(0), |env| async move {
            let pauses = counted(&env, 100 * PAUSES, false);
            // It has given way when the answer comes.
            let answered = env.call(ShardId(0), Request::Take(1));
            let mut answered = std::pin::pin!(answered);
            let mut way = std::pin::pin!(env.give_way());
            env.spawn({
                let env = env.clone();
                async move {
                    env.pause().await;
                    env.send(ShardId(0), Request::Put(1));
                }
            });
            std::future::poll_fn(|context| match answered.as_mut().poll(context) {
                Poll::Ready(_) => Poll::Ready(()),
                Poll::Pending => way.as_mut().poll(context).map(|()| panic!("the answer came first")),
            })
            .await;
            pauses.get()
        });
        assert!(pauses < PAUSES / 2, "{pauses}");
    }

    #[test]
    fn what_wakes_a_task_that_has_given_way_does_not_bring_its_turn() {
        let runtime = start(1);
        let pauses = runtime.run_on(ShardId(0), |env| async move {
            let pauses = counted(&env, 100 * PAUSES, false);
            env.pause().await;
            let before = pauses.get();
            let mut soon = std::pin::pin!(env.sleep(1));
            let mut way = std::pin::pin!(env.give_way());
            std::future::poll_fn(|context| {
                let _ = soon.as_mut().poll(context);
                way.as_mut().poll(context)
            })
            .await;
            pauses.get() - before
        });
        assert!(pauses >= PAUSES - 2 * TASKS_PER_PASS, "{pauses}");
    }

    #[test]
    fn shards_that_share_a_thread_take_turns_and_wake_each_other() {
        let cores = thread::available_parallelism().map_or(1, |n| n.get());
        let shards = cores + 2;
        let runtime = start(shards);
        let on = |shard: usize| runtime.run_on(ShardId(shard as u16), |_| async { thread::current().id() });
        let threads: Vec<_> = (0..shards).map(on).collect();
        assert!((1..cores).all(|i| !threads[..i].contains(&threads[i])), "{threads:?}");
        assert_eq!(threads[cores..], threads[..2.min(cores)][..].repeat(2)[..2]);
        let first = runtime.run_on(ShardId(0), move |env| async move {
            let last = ShardId(shards as u16 - 1);
            let waits = env.call(last, Request::Take(1));
            // Long enough for the thread to fall asleep.
            env.sleep(5_000_000).await;
            env.send(last, Request::Put(3));
            waits.await.unwrap()
        });
        assert_eq!(first, 2);
    }

    #[test]
    fn many_senders_lose_nothing() {
        let runtime = Arc::new(start(3));
        for shard in 0..3 {
            for _ in 0..100 {
                runtime.spawn_on(ShardId(shard), |env| async move {
                    for to in 0..3 {
                        env.send(ShardId(to), Request::Put(1));
                        env.pause().await;
                    }
                });
            }
        }
        for shard in 0..3 {
            let left = runtime.run_on(ShardId(shard), move |env| async move {
                env.call(ShardId(shard), Request::Take(300)).await.unwrap()
            });
            assert_eq!(left, 0);
        }
    }
}
