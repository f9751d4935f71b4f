//! A log in worlds whose machines crash and whose disks do everything that they may do: what was
//! acknowledged is there, in order; nothing that was torn is taken for a record; nothing that was
//! dropped comes back. And logs with planted mistakes, each of which must be caught.

mod common;
#[path = "common/log.rs"]
mod log;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use common::{MS, Nothing, Rng, Scratch, start, trouble, with_disks, world};
use log::{Log, Mistake};
use plimsoll_runtime::sim::{Event, Fault, Hardware, World};
use plimsoll_runtime::{Env, ShardEnv, Tasks};
use plimsoll_types::ShardId;

const SHARDS: usize = 2;

/// What has become of the records of one shard.
#[derive(Default)]
struct History {
    /// Begun, in order; those that the last start did not find are no longer among them.
    begun: Vec<Vec<u8>>,
    /// How many of them were acknowledged, or found by a start.
    promised: usize,
    /// Everything that ever was, acknowledged or not.
    made: u64,
    starts: u32,
    wrong: Option<String>,
}

impl History {
    fn found(&mut self, records: &[Vec<u8>]) {
        let same = self.begun.iter().zip(records).take_while(|(begun, found)| begun == found).count();
        if records.len() < self.promised {
            let (found, promised) = (records.len(), self.promised);
            self.wrong.get_or_insert(format!("lost: {found} records are there, {promised} were promised"));
        } else if same < records.len() {
            let begun = self.begun.len();
            self.wrong
                .get_or_insert(format!("false: record {same} of {begun} is not the one that was added"));
        }
        self.starts += 1;
        self.begun.truncate(records.len());
        self.promised = records.len();
    }

    /// Records that differ from all others; in length too, unless they shall be alike.
    fn group(&mut self, rng: &mut Rng, most: u64, alike: bool) -> Vec<Vec<u8>> {
        let group: Vec<Vec<u8>> = (0..1 + rng.below(most))
            .map(|_| {
                self.made += 1;
                let longest = [1, 100, 492, 1500][rng.below(4) as usize];
                let length = if alike { 700 } else { rng.below(longest) };
                let mut filler = Rng(self.made);
                let bytes = (0..length).map(|_| filler.next() as u8);
                self.made.to_le_bytes().into_iter().chain(bytes).collect()
            })
            .collect();
        self.begun.extend_from_slice(&group);
        group
    }
}

/// How many times as often disks fail as in worlds of their own.
const ERRORS: f64 = 5.0;

struct Scene {
    world: World<Nothing>,
    histories: Vec<Rc<RefCell<History>>>,
    stop: Rc<Cell<bool>>,
    /// Shards that have stopped.
    stopped: Rc<Cell<usize>>,
}

/// How a log is used.
#[derive(Clone, Copy)]
struct Style {
    /// All records have the same length: what was torn ends where something older begins.
    alike: bool,
    /// After how many groups of a hundred there is a checkpoint.
    checkpoint_pct: u64,
}

impl Style {
    fn of(seed: u64) -> Style {
        Style { alike: seed.is_multiple_of(2), checkpoint_pct: [0, 15, 60][seed as usize % 3] }
    }
}

/// On every shard, in every life: a start, and then groups of records and now and then a
/// checkpoint.
async fn live(
    env: ShardEnv<Nothing>,
    history: Rc<RefCell<History>>,
    (style, mistake): (Style, Option<Mistake>),
    (stop, stopped): (Rc<Cell<bool>>, Rc<Cell<usize>>),
) {
    let mut rng = Rng(env.random());
    let mut log = match Log::open(env.clone(), mistake).await {
        Ok(log) => log,
        Err(torn) => {
            history.borrow_mut().wrong.get_or_insert(format!("a checkpoint is {torn:?}"));
            return;
        }
    };
    history.borrow_mut().found(&log.records);
    // Some lives end before they have done much; some have much to do at once.
    let most = [1, 4, 10][rng.below(3) as usize];
    let pace_ns = [MS, 20 * MS][rng.below(2) as usize];
    loop {
        let last = stop.get();
        let group = history.borrow_mut().group(&mut rng, most, style.alike);
        log.commit(&group).await;
        history.borrow_mut().promised += group.len();
        if last {
            break;
        }
        if style.checkpoint_pct > rng.below(100) {
            log.checkpoint().await;
        }
        env.sleep(rng.below(pace_ns)).await;
    }
    stopped.set(stopped.get() + 1);
}

fn scene(seed: u64, mistake: Option<Mistake>) -> Scene {
    let hardware = Hardware { shards_per_machine: 1 + seed / 2 % 2, ..with_disks(1 << 30) };
    let world = world(SHARDS, &hardware, &trouble(seed, ERRORS), seed);
    let mut scene = Scene { world, histories: Vec::new(), stop: Rc::default(), stopped: Rc::default() };
    scene.histories.resize_with(SHARDS, Rc::default);
    let histories = scene.histories.clone();
    let (stop, stopped) = (scene.stop.clone(), scene.stopped.clone());
    scene.world.on_start(move |env| {
        let history = histories[env.shard().index()].clone();
        let flags = (stop.clone(), stopped.clone());
        env.spawn(live(env.clone(), history, (Style::of(seed), mistake), flags));
    });
    scene
}

impl Scene {
    fn wrong(&self) -> Option<String> {
        self.histories.iter().find_map(|history| history.borrow().wrong.clone())
    }

    /// Trouble, then none; then the power fails once more. Tells what was wrong.
    fn play(&mut self, trouble_ns: u64) -> Result<(), String> {
        self.world.run_until(trouble_ns);
        self.world.heal_all();
        self.stop.set(true);
        let until_ns = self.world.now() + 2000 * MS;
        let (stopped, wrong) = (self.stopped.clone(), self.wrong());
        self.world.run_while(|world| stopped.get() < SHARDS && wrong.is_none() && world.now() < until_ns);
        if let Some(wrong) = self.wrong() {
            return Err(wrong);
        }
        if self.stopped.get() < SHARDS {
            return Err("stuck: a log cannot go on though nothing is in its way any more".to_owned());
        }
        for machine in 0..self.world.machines() {
            let crash = self.world.inflict(Fault::Crash(machine));
            self.world.end(crash);
        }
        let starts = |scene: &Scene| -> u32 { scene.histories.iter().map(|h| h.borrow().starts).sum() };
        let before = starts(self);
        while starts(self) < before + SHARDS as u32 && self.wrong().is_none() {
            assert!(self.world.step(), "a log starts");
        }
        self.wrong().map_or(Ok(()), Err)
    }
}

#[test]
fn what_was_acknowledged_is_there_and_nothing_else() {
    let (mut promised, mut begun, mut starts) = (0, 0, 0);
    for seed in 0..2000 {
        let mut scene = scene(seed, None);
        scene.play(150 * MS).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        for history in &scene.histories {
            let history = history.borrow();
            (promised, begun) = (promised + history.promised as u64, begun + history.made);
            starts += history.starts;
        }
    }
    assert!(promised > 100_000 && begun > promised && starts > 20_000, "{promised} of {begun}, {starts}");
}

#[test]
fn every_planted_mistake_is_caught() {
    let mut missed = Vec::new();
    for mistake in Mistake::ALL {
        let caught = (0..2000).find_map(|seed| {
            let wrong = scene(seed, Some(mistake)).play(150 * MS).err()?;
            Some((seed + 1, wrong))
        });
        match caught {
            Some((worlds, wrong)) => println!("{mistake:?}: after {worlds} worlds: {wrong}"),
            None => missed.push(mistake),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn one_seed_is_one_execution_on_disk_as_well() {
    let hash = |seed| {
        let mut scene = scene(seed, None);
        let _ = scene.play(100 * MS);
        scene.world.hash()
    };
    let mut hashes: Vec<u64> = (0..40)
        .map(|seed| {
            let first = hash(seed);
            assert_eq!(first, hash(seed), "seed {seed}");
            first
        })
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 40, "different seeds are different executions");
}

#[test]
fn skipping_a_fault_of_a_disk_changes_nothing_before_it_nor_which_others_there_are() {
    let seed = (0..).find(|&seed| {
        let faults = trouble(seed, ERRORS);
        faults.disk_stalls_per_s > 5.0 && faults.disk_fulls_per_s > 5.0
    });
    let seed = seed.expect("a seed with faults of disks");
    let run = |skip: Option<u32>| {
        let mut scene = scene(seed, None);
        scene.world.skip(skip);
        let events: Rc<RefCell<Vec<(u64, Event)>>> = Rc::default();
        let record = events.clone();
        scene.world.trace(move |now_ns, event| record.borrow_mut().push((now_ns, *event)));
        scene.world.run_until(300 * MS);
        (events.take(), scene.world.occurrences().to_vec())
    };
    let (events, occurrences) = run(None);
    let mut seen = 0;
    for occurrence in &occurrences {
        if matches!(occurrence.fault, Fault::StallDisk(_) | Fault::FullDisk(_) | Fault::SlowDisk(..)) {
            seen += 1;
            let (without, same) = run(Some(occurrence.index));
            assert_eq!(same, occurrences);
            let before = |events: &[(u64, Event)]| {
                events.iter().take_while(|(now_ns, _)| *now_ns < occurrence.begin_ns).copied().collect()
            };
            let before: [Vec<_>; 2] = [before(&events), before(&without)];
            assert_eq!(before[0], before[1]);
            assert_ne!(events, without);
        }
    }
    assert!(seen > 3, "{seen} of {}", occurrences.len());
}

#[test]
fn the_same_log_outlives_a_runtime_on_a_real_disk() {
    let scratch = Scratch::new();
    let mut promised: Vec<Vec<u8>> = Vec::new();
    for life in 0..8u64 {
        let runtime = start(1, scratch.path());
        let found = runtime.run_on(ShardId(0), move |env| async move {
            let mut log = Log::open(env.clone(), None).await.expect("checkpoints are whole");
            let found = log.records.clone();
            let mut rng = Rng(life);
            let mut history = History { made: 1000 * life, ..History::default() };
            for _ in 0..5 {
                log.commit(&history.group(&mut rng, 4, false)).await;
                if life % 2 == 1 && rng.below(3) == 0 {
                    log.checkpoint().await;
                }
            }
            let promised = log.records.clone();
            // The runtime stops somewhere in the middle of this.
            let group = history.group(&mut rng, 4, false);
            env.spawn(async move { log.commit(&group).await });
            (found, promised)
        });
        assert!(found.0.starts_with(&promised), "life {life}: what was acknowledged is there");
        promised = found.1;
    }
    assert!(promised.len() > 8 * 5);
}
