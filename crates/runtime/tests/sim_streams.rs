//! Streams in simulated worlds: what arrives is what was sent, or the connection is reset.

mod common;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use common::{MS, Nothing, world};
use plimsoll_runtime::sim::{Dialer, Event, Fault, Faults, Hardware, World};
use plimsoll_runtime::{Broken, Env, ShardEnv, Stream, Tasks};
use plimsoll_types::ShardId;

const CLIENT: ShardId = ShardId(0);
const SERVER: ShardId = ShardId(1);

/// Sends back what arrives until the end, in pieces that the shard draws.
async fn echo(env: ShardEnv<Nothing>, stream: Stream) {
    let mut buffer = Vec::new();
    while let Ok(1..) = stream.read(&mut buffer, 1 + (env.random() % 5000) as usize).await {
        if stream.write(&buffer).await.is_err() {
            return;
        }
        buffer.clear();
    }
    stream.close().await;
}

/// From now on every shard, in all of its lives, serves each stream in a task.
fn serve<F>(world: &mut World<Nothing>, session: impl Fn(ShardEnv<Nothing>, Stream) -> F + Clone + 'static)
where
    F: Future<Output = ()> + 'static,
{
    world.on_start(move |env| {
        let (env, session) = (env.clone(), session.clone());
        env.clone().spawn(async move {
            loop {
                let stream = env.accept().await;
                env.spawn(session(env.clone(), stream));
            }
        });
    });
}

/// Asks a few questions of an echo, over one connection.
async fn converse(env: &ShardEnv<Nothing>, dialer: &Dialer, to: ShardId) -> Result<(), Broken> {
    let stream = dialer.connect(env, to);
    for _ in 0..4 {
        let length = 1 + env.random() % (1 << (env.random() % 15));
        let question: Vec<u8> = (0..length).map(|_| env.random() as u8).collect();
        stream.write(&question).await?;
        let mut answer = Vec::new();
        while answer.len() < question.len() {
            assert!(stream.read(&mut answer, usize::MAX).await? > 0, "an echo does not end first");
        }
        assert!(answer == question, "bytes arrive once and in order");
    }
    stream.close().await;
    Ok(())
}

/// What became of the connections of one world, and its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Outcome {
    whole: u64,
    broken: u64,
    hash: u64,
}

/// A client that talks to one server after the other, while things go wrong.
fn run(seed: u64, faults: &Faults, begin: impl Fn(&mut World<Nothing>)) -> Outcome {
    let hardware = Hardware { shards_per_machine: 1 + seed % 2, ..Hardware::drawn(seed) };
    let mut world = world(4, &hardware, faults, seed);
    let machines = world.machines();
    world.only_crash(1..machines);
    serve(&mut world, echo);
    let dialer = world.dialer();
    begin(&mut world);
    let outcome: Rc<Cell<Outcome>> = Rc::default();
    let done = Rc::new(Cell::new(false));
    let (noted, is_done) = (outcome.clone(), done.clone());
    assert!(world.spawn_on(CLIENT, move |env| async move {
        for round in 0..40 {
            let result = converse(&env, &dialer, ShardId(1 + round % 3)).await;
            let Outcome { mut whole, mut broken, hash } = noted.get();
            *(if result.is_ok() { &mut whole } else { &mut broken }) += 1;
            noted.set(Outcome { whole, broken, hash });
            env.sleep(2 * MS).await;
        }
        is_done.set(true);
    }));
    world.run_until(500 * MS);
    world.heal_all();
    assert!(world.run_while(|_| !done.get()), "seed {seed}: the client is stuck");
    // The other ends notice.
    world.run_until(world.now() + 3000 * MS);
    assert_eq!(world.connections(), 0, "seed {seed}: nothing is left");
    Outcome { hash: world.hash(), ..outcome.get() }
}

#[test]
fn without_faults_every_connection_is_whole() {
    for seed in 0..20 {
        let outcome = run(seed, &Faults::none(), |_| ());
        assert_eq!((outcome.whole, outcome.broken), (40, 0), "seed {seed}");
    }
}

#[test]
fn a_network_that_loses_and_delays_breaks_no_connection() {
    for seed in 0..20 {
        let outcome = run(seed, &Faults::network(), |_| ());
        assert_eq!((outcome.whole, outcome.broken), (40, 0), "seed {seed}");
    }
}

#[test]
fn whatever_goes_wrong_bytes_arrive_in_order_or_the_connection_is_reset() {
    let (mut whole, mut broken) = (0, 0);
    for seed in 0..150 {
        let faults = Faults { resets_per_s: 20.0, crashes_per_s: 5.0, ..Faults::drawn(seed) };
        let outcome = run(seed, &faults, |_| ());
        whole += outcome.whole;
        broken += outcome.broken;
    }
    assert!(whole > 1000 && broken > 100, "{whole} whole, {broken} broken");
}

#[test]
fn the_same_seed_is_the_same_world_and_another_is_not() {
    let faults = Faults { resets_per_s: 20.0, crashes_per_s: 5.0, ..Faults::all() };
    let outcome = run(7, &faults, |_| ());
    assert_eq!(run(7, &faults, |_| ()), outcome);
    assert_ne!(run(8, &faults, |_| ()).hash, outcome.hash);
}

#[test]
fn a_dialer_that_is_not_used_changes_nothing() {
    let hash = |dials: bool| {
        let mut world = world(4, &Hardware::default(), &Faults::all(), 3);
        if dials {
            let _ = world.dialer();
        }
        serve(&mut world, echo);
        world.run_until(300 * MS);
        world.hash()
    };
    assert_eq!(hash(true), hash(false));
}

#[test]
fn bytes_arrive_in_pieces_that_have_nothing_to_do_with_writes() {
    let lengths: Rc<RefCell<Vec<usize>>> = Rc::default();
    run(1, &Faults::none(), |world| {
        let lengths = lengths.clone();
        world.trace(move |_, event| {
            if let Event::Segment { kind: 1, length, .. } = event {
                lengths.borrow_mut().push(*length);
            }
        });
    });
    let lengths = lengths.borrow();
    assert!(lengths.contains(&1) && lengths.iter().any(|&length| length > 1000), "{lengths:?}");
}

/// Two machines of one shard each, of which the second runs this for its streams.
fn pair<F>(session: impl Fn(ShardEnv<Nothing>, Stream) -> F + Clone + 'static) -> World<Nothing>
where
    F: Future<Output = ()> + 'static,
{
    let mut world = world(2, &Hardware::default(), &Faults::none(), 5);
    serve(&mut world, session);
    world
}

#[test]
fn a_writer_waits_for_a_reader_that_is_slow_and_a_partition_is_a_delay() {
    const ALL: usize = 1_000_000;
    let written = Rc::new(Cell::new(0));
    let counter = written.clone();
    let mut world = pair(move |_, stream| {
        let counter = counter.clone();
        async move {
            for _ in 0..ALL / 1000 {
                stream.write(&[9; 1000]).await.expect("the client is there");
                counter.set(counter.get() + 1000);
            }
            stream.close().await;
        }
    });
    let dialer = world.dialer();
    let read = Rc::new(Cell::new(0));
    let counter = read.clone();
    world.spawn_on(CLIENT, move |env| async move {
        let stream = dialer.connect(&env, SERVER);
        env.sleep(100 * MS).await;
        let mut all = Vec::new();
        while stream.read(&mut all, usize::MAX).await.expect("no reset") > 0 {
            counter.set(all.len());
        }
    });
    world.run_until(90 * MS);
    assert!((1000..400_000).contains(&written.get()), "{}", written.get());
    let links = [(0, 1), (1, 0)].map(|(from, to)| plimsoll_runtime::sim::Link { from, to });
    let cut = world.inflict(Fault::Partition(links.to_vec()));
    world.run_until(200 * MS);
    assert!(read.get() < 400_000);
    world.end(cut);
    world.run_until(2000 * MS);
    assert_eq!((written.get(), read.get()), (ALL, ALL));
}

/// What one task of the client learns.
fn learn<F, R>(
    world: &mut World<Nothing>,
    task: impl FnOnce(ShardEnv<Nothing>, Dialer) -> F + 'static,
) -> Rc<RefCell<Vec<R>>>
where
    F: Future<Output = R> + 'static,
    R: 'static,
{
    let (dialer, learnt) = (world.dialer(), Rc::new(RefCell::new(Vec::new())));
    let place = learnt.clone();
    world.spawn_on(CLIENT, move |env| async move {
        let result = task(env, dialer).await;
        place.borrow_mut().push(result);
    });
    learnt
}

async fn read_once(env: ShardEnv<Nothing>, dialer: Dialer) -> Result<usize, Broken> {
    dialer.connect(&env, SERVER).read(&mut Vec::new(), 10).await
}

#[test]
fn a_crash_of_the_server_resets_its_streams_and_nothing_is_dialed_while_it_is_down() {
    let mut world = pair(echo);
    let learnt = learn(&mut world, read_once);
    world.run_until(10 * MS);
    assert!(learnt.borrow().is_empty(), "it waits");
    let crash = world.inflict(Fault::Crash(1));
    world.run_until(20 * MS);
    assert_eq!(*learnt.borrow(), [Err(Broken)]);
    let learnt = learn(&mut world, read_once);
    world.run_until(30 * MS);
    assert_eq!(*learnt.borrow(), [Err(Broken)]);
    world.end(crash);
    let learnt = learn(&mut world, |env, dialer| async move { converse(&env, &dialer, SERVER).await });
    world.run_until(5000 * MS);
    assert_eq!((&learnt.borrow()[..], world.connections()), (&[Ok(())][..], 0));
}

#[test]
fn the_channel_of_two_shards_is_reset_with_their_streams() {
    for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
        let mut world = pair(echo);
        let learnt = learn(&mut world, read_once);
        world.run_until(10 * MS);
        world.inflict(Fault::Reset(from, to));
        world.run_until(20 * MS);
        assert_eq!(*learnt.borrow(), [Err(Broken)]);
    }
}

#[test]
fn a_task_that_does_something_else_learns_that_the_other_side_is_gone() {
    let gone: Rc<Cell<bool>> = Rc::default();
    let is_gone = gone.clone();
    let mut world = pair(move |env, stream| {
        let gone = is_gone.clone();
        async move {
            {
                let (mut watch, mut work) = (pin!(stream.gone()), pin!(env.sleep(10_000 * MS)));
                poll_fn(|cx| match (watch.as_mut().poll(cx), work.as_mut().poll(cx)) {
                    (Poll::Pending, Poll::Pending) => Poll::Pending,
                    (watched, _) => {
                        gone.set(watched.is_ready());
                        Poll::Ready(())
                    }
                })
                .await;
            }
            echo(env.clone(), stream).await;
        }
    });
    let learnt = learn(&mut world, |env, dialer| async move {
        let stream = dialer.connect(&env, SERVER);
        stream.write(b"the last bytes").await?;
        env.sleep(10 * MS).await;
        stream.close().await;
        Ok::<_, Broken>(())
    });
    world.run_until(9 * MS);
    assert!(!gone.get());
    world.run_until(5000 * MS);
    assert!(gone.get());
    assert_eq!((&learnt.borrow()[..], world.connections()), (&[Ok(())][..], 0));
}

#[test]
fn a_stream_moves_to_the_other_shard_of_its_machine() {
    let mut world = world(4, &Hardware { shards_per_machine: 2, ..Hardware::default() }, &Faults::none(), 5);
    serve(&mut world, |env, stream| async move {
        let mut head = Vec::new();
        stream.read(&mut head, 1).await.expect("a request");
        stream.write(&head).await.expect("the client is there");
        let detached = stream.detach();
        env.spawn_on(ShardId(env.shard().0 ^ 1), |env: ShardEnv<Nothing>| async move {
            let stream = env.attach(detached);
            echo(env.clone(), stream).await;
        });
    });
    let dialer = world.dialer();
    let done = Rc::new(Cell::new(0));
    let is_done = done.clone();
    world.spawn_on(CLIENT, move |env| async move {
        for shard in 1..4 {
            converse(&env, &dialer, ShardId(shard)).await.expect("no reset");
            is_done.set(shard);
        }
    });
    world.run_until(10_000 * MS);
    assert_eq!((done.get(), world.connections()), (3, 0));
}
