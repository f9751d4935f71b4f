//! Worlds in which a small node is used hard.
//!
//! The node keeps what it was told, echoes what it is asked, and lets some requests wait. It
//! asserts that the clock of its shard never falls.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::*;
use crate::{Handled, Messages, Unknown};
use plimsoll_types::Ticket;

const MS: u64 = 1_000_000;

#[derive(Default)]
struct Echo {
    clock: Timestamp,
    /// What each shard has told this one, in order.
    told: BTreeMap<ShardId, Vec<u64>>,
    /// What became of its channels, in order.
    channels: Vec<(ShardId, bool)>,
    waiting: Vec<Ticket>,
    released: Vec<Ticket>,
    open: bool,
}

enum Request {
    Tell(u64),
    Ask(u64),
    /// Like [`Request::Ask`], but waits until the node is open.
    AskWhenOpen(u64),
    Open,
}

impl Messages for Echo {
    type Request = Request;
    type Reply = u64;
}

impl Participant for Echo {
    fn handle(&mut self, from: ShardId, request: &mut Request, ticket: Ticket) -> Handled<u64> {
        match *request {
            Request::Tell(n) => {
                self.told.entry(from).or_default().push(n);
                Handled::Done
            }
            Request::Ask(n) => Handled::Reply(n),
            Request::AskWhenOpen(n) if self.open => Handled::Reply(n),
            Request::AskWhenOpen(_) => {
                self.waiting.push(ticket);
                Handled::Wait
            }
            Request::Open => {
                self.open = true;
                self.released.append(&mut self.waiting);
                Handled::Done
            }
        }
    }

    fn released(&mut self) -> &mut Vec<Ticket> {
        &mut self.released
    }

    fn pass(&mut self, clock: Timestamp) {
        assert!(clock >= self.clock, "the clock of a shard never falls");
        self.clock = clock;
    }

    fn connected(&mut self, peer: ShardId, life: Option<u64>) {
        self.channels.push((peer, life.is_some()));
    }

    fn outgoing(&mut self, _: &mut Vec<(ShardId, Request)>) {}
    fn park(&mut self) {}
}

const A: ShardId = ShardId(0);
const B: ShardId = ShardId(1);

fn world(shards: usize, per_machine: u64, faults: &Faults, seed: u64) -> World<Echo> {
    world_of(shards, &Hardware { shards_per_machine: per_machine, ..Hardware::default() }, faults, seed)
}

fn world_of(shards: usize, hardware: &Hardware, faults: &Faults, seed: u64) -> World<Echo> {
    let makers = (0..shards).map(|_| Box::new(|_| Echo::default()) as Maker<Echo>);
    World::new(hardware, faults, seed, makers.collect())
}

/// Two shards on two machines, and nothing goes wrong by itself.
fn pair() -> World<Echo> {
    world(2, 1, &Faults::none(), 1)
}

/// Everything, ten times as often and a tenth as long.
fn storm() -> Faults {
    let mut faults = Faults::all();
    for (name, value) in faults.values() {
        let value: f64 = value.parse().expect("a number");
        let value = match name {
            _ if name.ends_with("_per_s") => value * 10.0,
            _ if name.ends_with("_ns") => value / 10.0,
            _ => value,
        };
        faults.set(name, &value.to_string()).expect("a value of the field's type");
    }
    faults
}

/// Tasks on every shard that ask and tell others at random until they are stopped. An answer is for
/// the question that was asked.
fn keep_busy(world: &mut World<Echo>) -> Rc<Cell<bool>> {
    let stop = Rc::new(Cell::new(false));
    let flag = stop.clone();
    world.on_start(move |env| {
        for _ in 0..3 {
            let (env, flag) = (env.clone(), flag.clone());
            let inner = env.clone();
            env.spawn(async move {
                while !flag.get() {
                    let to = ShardId((inner.random() % inner.shards() as u64) as u16);
                    let question = inner.random();
                    inner.send(to, Request::Tell(question));
                    let answer = inner.call(to, Request::Ask(question)).await;
                    assert!(answer.is_err() || answer == Ok(question));
                    inner.sleep(inner.random() % 200_000).await;
                    inner.pause().await;
                }
            });
        }
    });
    stop
}

fn busy_hash(faults: &Faults, seed: u64, time_ns: u64) -> u64 {
    let mut world = world(6, 2, faults, seed);
    keep_busy(&mut world);
    world.run_until(time_ns);
    world.hash()
}

/// Runs a task on a shard, and the world until the task is done or the time is over.
fn run_on<F, R>(
    world: &mut World<Echo>,
    shard: ShardId,
    until_ns: u64,
    task: impl FnOnce(ShardEnv<Echo>) -> F + 'static,
) -> Option<R>
where
    F: Future<Output = R> + 'static,
    R: 'static,
{
    let result = Rc::new(RefCell::new(None));
    let place = result.clone();
    assert!(world.spawn_on(shard, |env| async move {
        let value = task(env).await;
        *place.borrow_mut() = Some(value);
    }));
    world.run_while(|world| result.borrow().is_none() && world.now() < until_ns);
    result.take()
}

#[test]
fn one_seed_is_one_execution() {
    let mut hashes = BTreeSet::new();
    for seed in 0..50 {
        let faults = if seed % 2 == 0 { storm() } else { Faults::drawn(seed) };
        let hash = busy_hash(&faults, seed, 100 * MS);
        assert_eq!(hash, busy_hash(&faults, seed, 100 * MS), "seed {seed}");
        hashes.insert(hash);
    }
    assert_eq!(hashes.len(), 50, "different seeds are different executions");
}

#[test]
fn watching_changes_nothing() {
    let mut world = world(6, 2, &storm(), 3);
    let events = Rc::new(Cell::new(0));
    let counter = events.clone();
    world.trace(move |_, _| counter.set(counter.get() + 1));
    keep_busy(&mut world);
    world.run_until(50 * MS);
    assert!(events.get() > 1000);
    assert_eq!(world.hash(), busy_hash(&storm(), 3, 50 * MS));
}

#[test]
fn channels_deliver_once_and_in_order_over_a_network_that_does_not() {
    for seed in 0..20 {
        let faults = Faults {
            loss: 0.2,
            duplication: 0.2,
            reordering: 0.3,
            resets_per_s: 0.0,
            crashes_per_s: 0.0,
            ..storm()
        };
        let hardware =
            Hardware { shards_per_machine: 1 + seed % 2, local_jitter_ns: MS, ..Hardware::default() };
        let mut world = world_of(4, &hardware, &faults, seed);
        world.on_start(|env| {
            let inner = env.clone();
            env.spawn(async move {
                for n in 0..200 {
                    for to in 0..4 {
                        inner.send(ShardId(to), Request::Tell(n));
                    }
                    inner.sleep(inner.random() % 300_000).await;
                }
            });
        });
        world.run_until(200 * MS);
        world.heal_all();
        world.run_until(2000 * MS);
        for to in 0..4 {
            let told =
                world.node(ShardId(to), |node| std::mem::take(&mut node.told)).expect("the shard is up");
            assert_eq!(told.len(), 4);
            assert!(told.values().all(|told| told.iter().copied().eq(0..200)), "seed {seed}");
        }
    }
}

#[test]
fn after_resets_messages_are_missing_but_none_is_late_or_doubled() {
    let mut missing = 0;
    for seed in 0..20 {
        let faults = Faults { resets_per_s: 200.0, loss: 0.1, crashes_per_s: 0.0, ..storm() };
        let mut world = world(3, 1, &faults, seed);
        world.on_start(|env| {
            let inner = env.clone();
            env.spawn(async move {
                for n in 0..500 {
                    for to in 0..3 {
                        inner.send(ShardId(to), Request::Tell(n));
                    }
                    inner.sleep(100_000).await;
                }
            });
        });
        world.run_until(100 * MS);
        world.heal_all();
        world.run_until(1000 * MS);
        for to in 0..3 {
            let told =
                world.node(ShardId(to), |node| std::mem::take(&mut node.told)).expect("the shard is up");
            assert!(told.values().all(|told| told.is_sorted_by(|a, b| a < b)), "seed {seed}");
            assert_eq!(told[&ShardId(to)].len(), 500, "what a shard tells itself crosses no channel");
            missing += 1500 - told.values().map(Vec::len).sum::<usize>();
        }
    }
    assert!(missing > 0, "resets lose messages");
}

#[test]
fn a_call_outlasts_a_partition() {
    for links in [vec![(0, 1)], vec![(1, 0)], vec![(0, 1), (1, 0)]] {
        let mut world = pair();
        let links = links.into_iter().map(|(from, to)| Link { from, to }).collect();
        let partition = world.inflict(Fault::Partition(links));
        let answer = Rc::new(Cell::new(None));
        let place = answer.clone();
        world.spawn_on(A, |env| async move { place.set(Some(env.call(B, Request::Ask(7)).await)) });
        world.run_until(100 * MS);
        assert_eq!(answer.get(), None);
        world.end(partition);
        world.run_until(200 * MS);
        assert_eq!(answer.get(), Some(Ok(7)));
    }
}

#[test]
fn a_clogged_link_delivers_everything_at_once() {
    let mut world = pair();
    let clog = world.inflict(Fault::Clog(Link { from: 0, to: 1 }));
    world.spawn_on(A, |env| async move {
        for n in 0..5 {
            env.send(B, Request::Tell(n));
            env.sleep(100_000).await;
        }
    });
    world.run_until(10 * MS);
    assert_eq!(world.node(B, |node| node.told.len()), Some(0));
    world.end(clog);
    // A shard that sleeps wakes within so much.
    world.run_until(10 * MS + Hardware::default().wake_ns);
    assert_eq!(world.node(B, |node| node.told[&A].clone()), Some(vec![0, 1, 2, 3, 4]));
}

#[test]
fn a_slow_link_is_slow_while_it_lasts() {
    let ask = |world: &mut World<Echo>| {
        let begin_ns = world.now();
        let answer = run_on(world, A, u64::MAX, |env| async move { env.call(B, Request::Ask(1)).await });
        assert_eq!(answer, Some(Ok(1)));
        world.now() - begin_ns
    };
    let mut world = pair();
    let slowdown = world.inflict(Fault::Slowdown(Link { from: 1, to: 0 }, 100));
    assert!(ask(&mut world) > 2 * MS);
    world.end(slowdown);
    assert!(ask(&mut world) < 2 * MS);
}

#[test]
fn a_reset_fails_calls_and_forgets_their_replies() {
    let mut world = pair();
    let answers: Rc<RefCell<Vec<Result<u64, Unknown>>>> = Rc::default();
    let place = answers.clone();
    world.spawn_on(A, |env| async move {
        for n in 0..2 {
            // The first is still waiting at B when the second is asked under the same number.
            let answer = env.call(B, Request::AskWhenOpen(n)).await;
            place.borrow_mut().push(answer);
        }
    });
    world.run_until(MS);
    assert!(answers.borrow().is_empty());
    world.inflict(Fault::Reset(A, B));
    world.run_until(2 * MS);
    assert_eq!(*answers.borrow(), [Err(Unknown)]);
    world.spawn_on(B, |env| async move { env.send(B, Request::Open) });
    world.run_until(3 * MS);
    assert_eq!(*answers.borrow(), [Err(Unknown), Ok(1)]);
}

#[test]
fn the_nodes_at_both_ends_learn_of_a_reset() {
    let mut world = pair();
    world.run_until(MS);
    world.inflict(Fault::Reset(A, B));
    world.run_until(2 * MS);
    let crash = world.inflict(Fault::Crash(0));
    world.end(crash);
    world.run_until(3 * MS);
    let channels = |shard| world.node(shard, |node| node.channels.clone()).expect("both are up");
    assert_eq!(channels(A), [(B, false), (B, true)], "in its second life");
    let reset = [(A, false), (A, true)];
    assert_eq!(channels(B), [&[(A, true)][..], &reset, &reset].concat());
}

#[test]
fn what_was_sent_before_a_reset_is_ignored_after_it() {
    let mut world = pair();
    let clog = world.inflict(Fault::Clog(Link { from: 0, to: 1 }));
    let answer = Rc::new(Cell::new(None));
    let place = answer.clone();
    world.spawn_on(A, |env| async move {
        env.send(B, Request::Tell(1));
        place.set(Some(env.call(B, Request::Ask(2)).await));
        env.send(B, Request::Tell(3));
    });
    world.run_until(MS / 2);
    world.inflict(Fault::Reset(B, A));
    world.run_until(MS);
    assert_eq!(answer.get(), Some(Err(Unknown)), "the other end has learnt of it");
    world.end(clog);
    world.run_until(100 * MS);
    assert_eq!(world.node(B, |node| node.told[&A].clone()), Some(vec![3]));
}

#[test]
fn a_reset_forgets_calls_that_were_given_up() {
    let mut world = pair();
    world.spawn_on(A, |env| async move { drop(env.call(B, Request::AskWhenOpen(1))) });
    world.run_until(MS);
    assert_eq!(world.pending(A), Some(Pending { tasks: 0, calls: 1, requests: 0 }));
    assert_eq!(world.pending(B), Some(Pending { tasks: 0, calls: 0, requests: 1 }));
    world.inflict(Fault::Reset(A, B));
    assert_eq!(world.pending(A), Some(Pending { tasks: 0, calls: 0, requests: 0 }));
}

#[test]
fn a_reset_in_the_middle_of_a_pass_takes_what_the_pass_would_have_sent() {
    for seed in 0..10 {
        let hardware = Hardware { pass_ns: 100_000, ..Hardware::default() };
        let mut world = world_of(3, &hardware, &Faults { resets_per_s: 2000.0, ..Faults::none() }, seed);
        keep_busy(&mut world);
        world.run_until(200 * MS);
    }
}

#[test]
fn a_crash_takes_what_is_on_its_way_within_the_machine() {
    let hardware = Hardware { shards_per_machine: 2, local_ns: MS, ..Hardware::default() };
    let mut world = world_of(2, &hardware, &Faults::none(), 1);
    world.spawn_on(A, |env| async move { env.send(B, Request::Tell(1)) });
    world.run_until(MS / 2);
    let crash = world.inflict(Fault::Crash(0));
    world.end(crash);
    world.run_until(10 * MS);
    assert_eq!(world.node(B, |node| node.told.len()), Some(0));
}

#[test]
fn a_machine_that_stands_still_handles_what_came_when_it_goes_on() {
    let mut world = pair();
    let pause = world.inflict(Fault::Pause(1));
    world.spawn_on(A, |env| async move { env.send(B, Request::Tell(1)) });
    world.run_until(10 * MS);
    assert_eq!(world.node(B, |node| node.told.len()), Some(0));
    world.end(pause);
    assert_eq!(world.node(B, |node| node.told[&A].clone()), Some(vec![1]));
}

#[test]
fn a_sleeper_wakes_when_its_own_clock_says_so_and_the_clock_never_falls() {
    for step_ns in [-5 * MS as i64, 0, 500_000] {
        let mut world = pair();
        let woken = Rc::new(Cell::new(0));
        let place = woken.clone();
        world.spawn_on(A, move |env| async move {
            let begun = env.clock();
            env.sleep(MS).await;
            assert!(env.clock().0 >= begun.0 + MS);
            place.set(1);
        });
        world.run_until(100_000);
        world.inflict(Fault::Step(0, step_ns));
        world.run_while(|world| woken.get() == 0 && world.now() < 20 * MS);
        let expected_ns = MS.saturating_add_signed(-step_ns);
        assert!(woken.get() == 1 && world.now().abs_diff(expected_ns) < 100_000, "{}", world.now());
    }
}

#[test]
fn clocks_drift_and_jump_but_never_fall_on_a_shard() {
    let faults = Faults { steps_per_s: 500.0, step_ns: 3 * MS, pauses_per_s: 100.0, ..storm() };
    for seed in 0..10 {
        let mut world = world(4, 1, &faults, seed);
        keep_busy(&mut world);
        let mut fell = false;
        let mut last = world.clock(A);
        for time_ns in (0..200).map(|n| n * MS) {
            world.run_until(time_ns);
            fell |= world.clock(A) < last;
            last = world.clock(A);
        }
        assert!(fell, "the clock underneath was set back");
    }
}

#[test]
fn clocks_can_be_set_right_and_how_wrong_they_were_is_remembered() {
    let mut world = pair();
    world.inflict(Fault::Step(0, -700 * MS as i64));
    world.inflict(Fault::Step(1, 900 * MS as i64));
    world.run_until(MS);
    world.set_clocks();
    assert_eq!([A, B].map(|shard| world.clock(shard)), [world.true_time(); 2]);
    assert_eq!(world.clock_error_ns(), 900 * MS);
}

#[test]
fn a_stamp_from_the_future_is_sent_by_who_is_up_and_only_if_it_is_known_how() {
    let mut world = pair();
    world.inflict(Fault::FutureStamp(A, B));
    world.run_until(MS);
    assert_eq!(world.node(B, |node| node.told.len()), Some(0));
    world.lie_by(|env, to| env.send(to, Request::Tell(7)));
    world.inflict(Fault::FutureStamp(A, B));
    world.run_until(2 * MS);
    assert_eq!(world.node(B, |node| node.told.len()), Some(1));
    world.inflict(Fault::Crash(0));
    world.inflict(Fault::FutureStamp(A, B));
    world.run_until(3 * MS);
    assert_eq!(world.node(B, |node| node.told.len()), Some(1));
}

#[test]
fn a_crash_takes_everything_and_a_restart_begins_anew() {
    let mut world = pair();
    world.on_start(|env| env.send(env.shard(), Request::Tell(0)));
    world.spawn_on(A, |env| async move { env.send(B, Request::Tell(1)) });
    world.run_until(MS);
    assert_eq!(world.node(B, |node| node.told.len()), Some(2));
    let answers: Rc<RefCell<Vec<Result<u64, Unknown>>>> = Rc::default();
    let place = answers.clone();
    world.spawn_on(A, |env| async move {
        for request in [Request::AskWhenOpen(2), Request::Ask(3)] {
            let answer = env.call(B, request).await;
            place.borrow_mut().push(answer);
        }
    });
    let token = Rc::new(());
    let held = token.clone();
    world.spawn_on(B, |env| async move {
        let _held = held;
        env.sleep(u64::MAX / 4).await;
    });
    world.run_until(2 * MS);
    let crash = world.inflict(Fault::Crash(1));
    assert_eq!(Rc::strong_count(&token), 1, "tasks are dropped");
    assert_eq!(world.node(B, |_| ()), None);
    assert!(!world.spawn_on(B, |_| async {}));
    world.run_until(50 * MS);
    assert!(answers.borrow().is_empty(), "nobody has said what became of the call");
    world.end(crash);
    world.run_until(200 * MS);
    assert_eq!(world.lives(B), 2);
    assert_eq!(*answers.borrow(), [Err(Unknown), Ok(3)]);
    assert_eq!(world.node(B, |node| node.told.clone()), Some(BTreeMap::from([(B, vec![0])])));
}

#[test]
fn a_world_that_was_healed_answers_every_call() {
    for seed in 0..20 {
        let mut world = world(6, 2, &storm(), seed);
        let stop = keep_busy(&mut world);
        world.run_until(200 * MS);
        stop.set(true);
        world.heal_all();
        for shard in (0..6).map(ShardId) {
            for to in (0..6).map(ShardId) {
                let until_ns = world.now() + 1000 * MS;
                // What was sent over a channel whose reset the other end had not heard of yet is
                // unknown.
                let answer = run_on(&mut world, shard, until_ns, move |env| async move {
                    env.call(to, Request::Ask(1)).await.or(env.call(to, Request::Ask(1)).await)
                });
                assert_eq!(answer, Some(Ok(1)), "seed {seed}");
            }
        }
        for shard in (0..6).map(ShardId) {
            let nothing = Pending { tasks: 0, calls: 0, requests: 0 };
            assert_eq!(world.pending(shard), Some(nothing), "seed {seed}");
        }
    }
}

#[test]
fn skipping_a_fault_changes_nothing_before_it_nor_which_others_there_are() {
    let run = |skip: Option<u32>| {
        let mut world = world(4, 1, &storm(), 9);
        world.skip(skip);
        keep_busy(&mut world);
        let events: Rc<RefCell<Vec<(u64, Event)>>> = Rc::default();
        let record = events.clone();
        world.trace(move |now_ns, event| record.borrow_mut().push((now_ns, *event)));
        world.run_until(100 * MS);
        (events.take(), world.occurrences().to_vec())
    };
    let (events, occurrences) = run(None);
    assert!(occurrences.len() > 10);
    for skipped in [0, 5, 10] {
        let (without, same) = run(Some(skipped));
        assert_eq!(same, occurrences);
        let begin_ns = occurrences[skipped as usize].begin_ns;
        let before = |events: &[(u64, Event)]| events.partition_point(|(now_ns, _)| *now_ns < begin_ns);
        assert_eq!(events[..before(&events)], without[..before(&without)]);
        assert_ne!(events, without);
        let begins = |(_, event): &&(u64, Event)| *event == Event::Begins { index: skipped };
        assert_eq!((events.iter().filter(begins).count(), without.iter().filter(begins).count()), (1, 0));
    }
}

#[test]
fn shards_on_one_thread_take_turns() {
    const PASS_NS: u64 = 1_000;
    // Two shards that are never idle, and a third that one of them asks, again and again. How many
    // passes each makes.
    let passes =
        |threads: Option<usize>| {
            let passes = Rc::new(RefCell::new([0u64; 3]));
            let counted = passes.clone();
            let costs = Costs {
                pass: Box::new(move |shard, _, _| {
                    counted.borrow_mut()[shard.index()] += 1;
                    PASS_NS
                }),
                weight: Box::new(|_| 0),
                threads,
                frame_ns: 0.0,
                byte_ns: 0.0,
            };
            let hardware = Hardware { shards_per_machine: 3, cpu_jitter: 0.0, ..Hardware::default() };
            let makers = (0..3).map(|_| Box::new(|_| Echo::default()) as Maker<Echo>);
            let mut world = World::with_costs(&hardware, costs, 1, makers.collect());
            for shard in [A, B] {
                assert!(world.spawn_on(shard, |env| async move {
                    loop {
                        env.pause().await;
                    }
                }));
            }
            assert!(world.spawn_on(A, |env| async move {
                while env.call(ShardId(2), Request::Ask(1)).await.is_ok() {}
            }));
            world.run_until(MS);
            *passes.borrow()
        };
    let all = MS / PASS_NS;
    let near = |count: u64, expected: u64| count.abs_diff(expected) <= expected / 20;
    let alone = passes(None);
    assert!(near(alone[0], all) && near(alone[1], all) && alone[2] > 10, "{alone:?}");
    // The third is dealt to the thread of the first.
    let two = passes(Some(2));
    assert!(near(two[1], all) && near(two[0] + two[2], all) && two[2] > 10, "{two:?}");
    let one = passes(Some(1));
    assert!(near(one[0], one[1]) && near(one[0] + one[1] + one[2], all) && one[2] > 10, "{one:?}");
}
