//! A litmus test: a few transactions, and the order in which their messages arrive.
//!
//! ```text
//! A: x, B: y                     records and the shards that hold them
//! T at 4: r(x) w(y)              a transaction, and what the clock of its coordinator shows
//! W at 1: w(x)
//! R at 6: readonly r(y) r(x)
//!
//! T reads x                      the next message of T to the shard of x arrives, and all that comes of it happens
//! R reads y
//! T locks y
//! T validates x; W locks x       two messages arrive one after the other, and are handled in one pass
//! W installs x
//! commit: T W R                  the others abort
//! ```
//!
//! Every transaction has a coordinator to itself, on a machine of its own that holds no records; so
//! has every shard that holds some. All links from coordinators to records are clogged, and a step
//! opens one for a moment: what travels back is never held up. So a message is named by its sender
//! and its receiver, and the verb says what it is, to the reader of the script. A transaction
//! begins at its first step. When the steps are over everything is let through.
//!
//! Transactions are procedures: `r(x)` is a stage that reads x, `r(x,z)` reads both in one message
//! if one shard has both, `w(x)` writes x blindly if it was not read, `i(x)` inserts, `d(x)`
//! deletes, `scan(A)` reads all rows of a shard. Where pieces travel, each record is a piece, which
//! waits until its transaction commits; that of `r!(x)` executes when it starts. Records begin with
//! a version @0; `x?` is absent. `Q beside P at 1: ...` shares P's coordinator. A step with a `?`
//! at its end is left out if no such message is on its way; any other step fails then. `R is
//! answered` fails if R is not. `T is cut off`: nothing that its coordinator says reaches an
//! oracle, until it ends. `T ends`: its coordinator's machine does, and begins again at once; then
//! every machine is a process, and coordinators are clients. What others make of T then counts if
//! they install any of it.
//!
//! Clocks tick in units that are longer than the whole script, so `at 4` stays 4. Under 2PL an
//! earlier clock is an older transaction. Nothing is tried again.
//!
//! Left out: records at the coordinator. What happens there in one step cannot be interleaved.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_checker::Options;
use plimsoll_runtime::LowWater;
use plimsoll_runtime::sim::{Event, Fault, Faults, Hardware, Link, Maker, World};
use plimsoll_txn::attempt::{Attempt, ProtocolOptions};
use plimsoll_txn::base::{Base, Layout};
use plimsoll_txn::execute::execute;
use plimsoll_txn::pairs::{LEGAL_PAIRS, LegalPair, Pair};
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_txn::protocols::Occ;
use plimsoll_txn::shipped::{Items, OneShot, Shipped, unpack};
use plimsoll_txn::timestamp::{Freshness, OracleOptions, ReadOnly, Scheme, SchemeConfig};
use plimsoll_txn::timestamps::Dst;
use plimsoll_txn::with_pair;
use plimsoll_txn::work::Footprint;
use plimsoll_types::history::{History, Transaction};
use plimsoll_types::{Abort, IndexKind, Key, Partitioning, ShardId, Slot, TableId, TableSpec};

/// What one step of a clock is, longer than a script.
const TICK_NS: u64 = 2_000_000;
/// All that comes of a message has happened after so long.
const STEP_NS: u64 = 30_000;
/// Who is not answered so long after the last step waits for ever.
const PATIENCE_NS: u64 = 100 * TICK_NS;
/// Others go on with what a coordinator that is silent for so long has begun.
const SILENCE_NS: u64 = 10 * TICK_NS;

const TABLE: TableId = TableId(0);

/// The setup in which reads are validated along with the locks.
pub const IN_ONE_ROUND: &str = "occ/dst in one round";

/// What became of a script.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Who committed.
    pub committed: BTreeSet<String>,
    /// What must not have happened: kind and words.
    pub violations: Vec<(String, String)>,
}

impl Outcome {
    fn add(&mut self, kind: &str, detail: String) {
        self.violations.push((kind.to_owned(), detail));
    }
}

/// Plays a script under a protocol and a scheme, `occ/dst`. With `exactly`, every step has to find
/// its message.
pub fn play(setup: &str, script: &str, exactly: bool) -> Outcome {
    let script = Script::parse(script);
    let played = catch_unwind(AssertUnwindSafe(|| match setup {
        IN_ONE_ROUND => Stage::<Occ<Dst>>::in_one_round(&script).play(&script, exactly),
        _ => {
            let pair = Pair::parse(setup).and_then(|pair| pair.legal(LEGAL_PAIRS));
            let pair = pair.unwrap_or_else(|why| unreachable!("no setup is called {setup}: {why}"));
            with_pair!(pair, P => Stage::<P>::new(&script).play(&script, exactly))
        }
    }));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let mut outcome = Outcome::default();
        outcome.add("assertion", text.unwrap_or_default());
        outcome
    })
}

// The script.

#[derive(Clone, Debug)]
enum Operation {
    Read(String),
    Write(String),
    Insert(String),
    Delete(String),
    /// All rows of a shard.
    Scan(usize),
}

plimsoll_types::wire!(
    enum Operation {
        Read(name) = 0,
        Write(name) = 1,
        Insert(name) = 2,
        Delete(name) = 3,
        Scan(shard) = 4,
    }
);

#[derive(Clone, Debug)]
struct Actor {
    name: String,
    /// Whose coordinator it shares.
    beside: Option<String>,
    clock: u64,
    read_only: bool,
    /// What it does, stage by stage, and whether it does it at once.
    stages: Vec<Vec<(Operation, bool)>>,
}

#[derive(Clone, Debug)]
enum Step {
    /// Messages that arrive at once: sender, receiver, whether it may be missing.
    Deliver(Vec<(String, usize, bool)>),
    Answered(String),
    CutOff(String),
    Ends(String),
}

/// A script, parsed.
pub struct Script {
    /// Records: shard, and whether it is there from the start.
    records: BTreeMap<String, (usize, bool)>,
    shards: usize,
    actors: Vec<Actor>,
    steps: Vec<(String, Step)>,
    /// Who must commit.
    pub commits: BTreeSet<String>,
}

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Script {
        let mut script = Script {
            records: BTreeMap::new(),
            shards: 0,
            actors: Vec::new(),
            steps: Vec::new(),
            commits: BTreeSet::new(),
        };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_once(": ") {
                _ if line == "commit:" => {}
                Some(("commit", names)) => {
                    script.commits = names.split_whitespace().map(str::to_owned).collect();
                }
                Some(_) if script.shards == 0 => script.place(line),
                Some((who, what)) => script.actors.push(Actor::parse(who, what)),
                None => {
                    let step = script.step(line);
                    script.steps.push((line.to_owned(), step));
                }
            }
        }
        script
    }

    /// `A: x z, B: y`
    fn place(&mut self, line: &str) {
        for (shard, part) in line.split(", ").enumerate() {
            let (_, names) = part.split_once(':').expect("a shard has a colon");
            for name in names.split_whitespace() {
                self.records.insert(name.trim_end_matches('?').to_owned(), (shard, !name.ends_with('?')));
            }
            self.shards += 1;
        }
    }

    fn step(&self, line: &str) -> Step {
        if let Some(name) = line.strip_suffix(" is answered") {
            return Step::Answered(name.to_owned());
        }
        if let Some(name) = line.strip_suffix(" is cut off") {
            return Step::CutOff(name.to_owned());
        }
        if let Some(name) = line.strip_suffix(" ends") {
            return Step::Ends(name.to_owned());
        }
        let message = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let [who, _, what] = words[..] else { panic!("{text} is no step") };
            let (what, optional) = (what.trim_end_matches('?'), what.ends_with('?'));
            (who.to_owned(), self.shard(what), optional)
        };
        Step::Deliver(line.split("; ").map(message).collect())
    }

    /// The shard of a record, or of this name.
    fn shard(&self, what: &str) -> usize {
        match self.records.get(what) {
            Some((shard, _)) => *shard,
            None => shard_named(what),
        }
    }

    fn key(&self, name: &str) -> Key {
        Key::build().u8(self.shard(name) as u8).bytes(name.as_bytes()).finish()
    }

    fn scans(&self) -> bool {
        let operations = self.actors.iter().flat_map(|actor| actor.stages.iter().flatten());
        operations.into_iter().any(|operation| matches!(operation, (Operation::Scan(_), _)))
    }

    /// Whether a coordinator's machine ends.
    fn ends(&self) -> bool {
        self.steps.iter().any(|(_, step)| matches!(step, Step::Ends(_)))
    }

    /// The shard of an actor's coordinator.
    fn coordinator(&self, name: &str) -> ShardId {
        let at = self.actors.iter().position(|actor| actor.name == name);
        let at = at.unwrap_or_else(|| panic!("nobody is called {name}"));
        match &self.actors[at].beside {
            Some(other) => self.coordinator(other),
            None => ShardId((self.shards + at) as u16),
        }
    }
}

fn shard_named(name: &str) -> usize {
    match name.as_bytes() {
        [letter @ b'A'..=b'Z'] => usize::from(letter - b'A'),
        _ => panic!("there is no {name}"),
    }
}

impl Actor {
    /// `T at 4`, `r(x) w(y)`
    fn parse(who: &str, what: &str) -> Actor {
        let words: Vec<&str> = who.split_whitespace().collect();
        let (name, beside, clock) = match words[..] {
            [name, "at", clock] => (name, None, clock),
            [name, "beside", other, "at", clock] => (name, Some(other.to_owned()), clock),
            _ => panic!("{who} is nobody"),
        };
        let read_only = what.starts_with("readonly ");
        let stages = what.split_whitespace().filter(|word| *word != "readonly").map(|word| {
            let (verb, rest) = word.split_once('(').unwrap_or_else(|| panic!("{word} is no operation"));
            let operation = |name: &str| match verb.trim_end_matches('!') {
                "r" => Operation::Read(name.to_owned()),
                "w" => Operation::Write(name.to_owned()),
                "i" => Operation::Insert(name.to_owned()),
                "d" => Operation::Delete(name.to_owned()),
                "scan" => Operation::Scan(shard_named(name)),
                _ => panic!("{word} is no operation"),
            };
            let names = rest.trim_end_matches(')').split(',');
            names.map(|name| (operation(name), verb.ends_with('!'))).collect()
        });
        let (name, stages) = (name.to_owned(), stages.collect());
        Actor { name, beside, clock: clock.parse().expect("a clock is a number"), read_only, stages }
    }
}

/// An actor's transaction: one stage per word, one piece per record.
#[derive(Clone)]
struct Play {
    read_only: bool,
    stages: Vec<Vec<Part>>,
}

plimsoll_types::wire!(struct Play { read_only, stages });

#[derive(Clone)]
struct Part {
    operation: Operation,
    key: Key,
    at_once: bool,
}

plimsoll_types::wire!(struct Part { operation, key, at_once });

/// The types of pieces that execute when they start, one bit each.
const AT_ONCE: u64 = 0b10;

impl Procedure for Play {
    fn read_only(&self) -> bool {
        self.read_only
    }

    fn stage(&self, stage: usize) -> usize {
        self.stages.get(stage).map_or(0, Vec::len)
    }

    fn home(&self, Piece { stage, number }: Piece) -> Slot {
        Partitioning::modulo(self.stages[stage][number].key.leading_int(1))
    }

    fn reads(&self, Piece { stage, number }: Piece, reads: &mut Reads) {
        let Part { operation, key, .. } = &self.stages[stage][number];
        match operation {
            Operation::Read(_) => reads.get(TABLE.row(), key.clone()),
            Operation::Scan(_) => reads.scan(Scan::prefix(TABLE.row(), key.clone())),
            _ => {}
        }
    }

    fn execute<A: Access>(&mut self, Piece { stage, number }: Piece, access: &mut A) -> Result<(), Abort> {
        let (column, Part { operation, key, .. }) = (TABLE.row(), &self.stages[stage][number]);
        match operation {
            Operation::Read(_) => access.get(column, key).map(|_| ()),
            Operation::Write(_) => access.put(column, key, b"written"),
            Operation::Insert(_) => access.insert(TABLE, key, &[b"inserted"]),
            Operation::Delete(_) => access.delete(TABLE, key),
            Operation::Scan(_) => {
                access.scan(&Scan::prefix(column, key.clone()), |_, _| ControlFlow::Continue(()))
            }
        }
    }

    fn shipped(&mut self) -> Option<&mut dyn Shipped> {
        Some(self)
    }
}

plimsoll_txn::executable!(Play);

impl OneShot for Play {
    fn piece_type(&self, Piece { stage, number }: Piece) -> usize {
        usize::from(self.stages[stage][number].at_once)
    }

    fn items(&self, Piece { stage, number }: Piece, items: &mut Items) {
        let Part { operation, key, .. } = &self.stages[stage][number];
        match operation {
            Operation::Read(_) => items.read(TABLE.row(), key.clone()),
            Operation::Scan(_) => unreachable!("where pieces travel only readers scan"),
            _ => items.write(TABLE.row(), key.clone()),
        }
    }

    fn absorb(&mut self, _: Piece, _: &Play) {}
}

// The world.

/// How a transaction ended.
type Ending = Option<Transaction>;

/// Where a script is played.
struct Stage<P: LegalPair> {
    world: World<P>,
    /// The clogs, by coordinator and shard.
    clogs: BTreeMap<(ShardId, usize), u32>,
    /// Batches that were sent and have not been delivered.
    underway: Rc<RefCell<BTreeMap<(ShardId, ShardId), u32>>>,
    begun: BTreeSet<String>,
    ended: Rc<RefCell<BTreeMap<String, Ending>>>,
    /// Partitions, until a machine has ended.
    cut: Vec<u32>,
    /// Whose coordinator has ended.
    over: BTreeSet<String>,
    /// Then nobody promises strictness between clocks that differ.
    one_round: bool,
}

impl<P: LegalPair> Stage<P> {
    fn new(script: &Script) -> Stage<P> {
        Stage::with(script, ProtocolOptions::default())
    }

    fn in_one_round(script: &Script) -> Stage<P> {
        Stage::with(script, ProtocolOptions { one_round: true, ..ProtocolOptions::default() })
    }

    fn with(script: &Script, options: ProtocolOptions) -> Stage<P> {
        let options = ProtocolOptions { immediate_pieces: AT_ONCE, unpack: Some(unpack::<Play>), ..options };
        let data_shards = script.shards + script.actors.len();
        let kind = if script.scans() { IndexKind::Ordered } else { IndexKind::Hash };
        let tables = vec![TableSpec::new("row", kind, Partitioning::Modulo { bytes: 1 })];
        let apart = script.ends();
        let processes = (0..data_shards as u16).map(|shard| if apart { shard } else { 0 }).collect();
        let layout = Layout { processes, ..Layout::in_one_process(tables, script.shards) };
        let counter = Arc::new(AtomicU64::new(0));
        let config = |shard: usize| SchemeConfig {
            shard: ShardId(shard as u16),
            data_shards,
            max_staleness_ns: PATIENCE_NS,
            oracle: OracleOptions { batch: true, compress: false, prefetch: false },
            single_version: false,
            process: if apart { shard } else { 0 },
            processes: if apart { script.shards } else { 1 },
            clients: if apart { script.shards } else { data_shards }..data_shards,
            process_counter: counter.clone(),
            first_attempt: 1,
            patience_ns: SILENCE_NS,
            logs: false,
        };
        let makers = (0..data_shards + usize::from(P::Scheme::ORACLE)).map(|shard| {
            let (layout, config) = (layout.clone(), config(shard));
            // Shards that share a watermark pull each other's clocks along when they wake up.
            // Nothing is collected within a script, so each may have one of its own.
            let low_water = LowWater::new(data_shards, P::Scheme::slots(&config));
            let make = move |life| {
                let config = SchemeConfig { first_attempt: life, ..config.clone() };
                let mut base = Base::new(&layout, &config, low_water.clone());
                base.installs = Some(Vec::new());
                P::new(base, options)
            };
            Box::new(make) as Maker<P>
        });
        // Quick and even, and nothing is sent twice because a clog held it up.
        let hardware = Hardware {
            cpu_jitter: 0.0,
            wake_ns: 0,
            latency_ns: 1_000,
            jitter_ns: 0,
            tail: 0.0,
            resend_ns: 1 << 50,
            resend_max_ns: 1 << 50,
            acknowledge_ns: 1 << 50,
            ..Hardware::default()
        };
        let mut world = World::new(&hardware, &Faults::none(), 1, makers.collect());
        world.encode();
        let underway = Rc::default();
        let mut stage = Stage {
            world,
            clogs: BTreeMap::new(),
            underway,
            begun: BTreeSet::new(),
            ended: Rc::default(),
            cut: Vec::new(),
            over: BTreeSet::new(),
            one_round: options.one_round,
        };
        stage.set(script);
        stage
    }

    /// Loads the records, sets the clocks, clogs the links.
    fn set(&mut self, script: &Script) {
        for (name, &(shard, present)) in &script.records {
            let key = script.key(name);
            if present {
                let load = |node: &mut P| node.base().store.load(TABLE, &key, &[b"loaded"]);
                self.world.node(ShardId(shard as u16), load).expect("all shards are up");
            }
        }
        for actor in &script.actors {
            let coordinator = script.coordinator(&actor.name);
            if actor.beside.is_none() {
                self.world.inflict(Fault::Step(coordinator.index(), (actor.clock * TICK_NS) as i64));
                for shard in 0..script.shards {
                    let clog = self.world.inflict(Fault::Clog(Link { from: coordinator.index(), to: shard }));
                    self.clogs.insert((coordinator, shard), clog);
                }
            }
        }
        let underway = self.underway.clone();
        self.world.trace(move |_, event| match *event {
            Event::Sent { from, to, .. } => *underway.borrow_mut().entry((from, to)).or_default() += 1,
            Event::Delivered { from, to, .. } => *underway.borrow_mut().entry((from, to)).or_default() -= 1,
            _ => {}
        });
        self.settle();
    }

    fn settle(&mut self) {
        self.world.run_until(self.world.now() + STEP_NS);
    }

    fn play(mut self, script: &Script, exactly: bool) -> Outcome {
        let mut outcome = Outcome::default();
        for (line, step) in &script.steps {
            match step {
                Step::Answered(name) => {
                    if !self.ended.borrow().contains_key(name) {
                        outcome.add("not answered", format!("{name} waits although it must not"));
                    }
                }
                Step::CutOff(name) => {
                    let (from, to) = (script.coordinator(name).index(), script.shards + script.actors.len());
                    self.cut.push(self.world.inflict(Fault::Partition(vec![Link { from, to }])));
                }
                Step::Ends(name) => {
                    let crash = self.world.inflict(Fault::Crash(script.coordinator(name).index()));
                    self.cut.drain(..).for_each(|cut| self.world.end(cut));
                    self.world.end(crash);
                    self.over.insert(name.clone());
                    self.settle();
                }
                Step::Deliver(messages) => {
                    let before = self.begun.len();
                    messages.iter().for_each(|(who, ..)| self.begin(script, who));
                    if self.begun.len() > before {
                        self.settle();
                    }
                    for (who, shard, optional) in messages {
                        let arrived = self.deliver(script.coordinator(who), *shard, exactly);
                        assert!(arrived || *optional || !exactly, "\"{line}\": {who} has sent nothing there");
                    }
                    self.settle();
                }
            }
        }
        assert!(self.world.now() < TICK_NS, "a script is shorter than a tick of a clock");
        script.actors.iter().for_each(|actor| self.begin(script, &actor.name));
        self.world.heal_all();
        let (ended, until_ns) = (self.ended.clone(), self.world.now() + PATIENCE_NS);
        let left: Vec<_> = script.actors.iter().filter(|actor| !self.over.contains(&actor.name)).collect();
        let all = || left.iter().all(|actor| ended.borrow().contains_key(&actor.name));
        let shards = script.shards as u16;
        let holds = |node: &mut P| node.remembered() > 0 || node.base().store.locks() > 0;
        let busy =
            |world: &World<P>| (0..shards).any(|shard| world.node(ShardId(shard), holds) == Some(true));
        self.world.run_while(|world| (!all() || busy(world)) && world.now() < until_ns);
        self.settle();
        self.judge(script, &mut outcome);
        outcome
    }

    /// Lets one message through, if there is one.
    fn deliver(&mut self, from: ShardId, shard: usize, exactly: bool) -> bool {
        let to = ShardId(shard as u16);
        let waiting = self.underway.borrow().get(&(from, to)).copied().unwrap_or_default();
        assert!(waiting <= 1 || !exactly, "a coordinator waits for an answer before it sends more");
        let clog = self.clogs.get_mut(&(from, shard)).expect("every link is clogged");
        self.world.end(*clog);
        *clog = self.world.inflict(Fault::Clog(Link { from: from.index(), to: shard }));
        waiting > 0
    }

    fn begin(&mut self, script: &Script, name: &str) {
        if !self.begun.insert(name.to_owned()) {
            return;
        }
        let session = script.actors.iter().position(|actor| actor.name == name).expect("somebody") as u32;
        let actor = &script.actors[session as usize];
        let part = |(operation, at_once): &(Operation, bool)| {
            let key = match operation {
                Operation::Scan(shard) => Key::new(&[*shard as u8]),
                Operation::Read(name)
                | Operation::Write(name)
                | Operation::Insert(name)
                | Operation::Delete(name) => script.key(name),
            };
            Part { operation: operation.clone(), key, at_once: *at_once }
        };
        let stages = actor.stages.iter().map(|stage| stage.iter().map(part).collect()).collect();
        let mut procedure = Play { read_only: actor.read_only, stages };
        let (watch, ended, name) = (self.world.observer(), self.ended.clone(), name.to_owned());
        let label: &'static str = name.clone().leak();
        let begun = Cell::new(0);
        self.world.spawn_on(script.coordinator(&name), move |env| async move {
            begun.set(watch.true_time().0);
            let age = plimsoll_runtime::Tasks::clock(&env).0;
            let attempt = Attempt { age, freshness: Freshness::default() };
            let mut work = Footprint::default();
            let result = execute(&env, attempt, &mut procedure, &mut work).await;
            let transaction = result.is_ok().then(|| {
                let recorded = work.committed.recorded.take().unwrap_or_default();
                Transaction {
                    id: work.committed.id,
                    label,
                    read_only: procedure.read_only,
                    timestamp: work.committed.stamp.filter(|_| P::Scheme::SCALAR),
                    session,
                    begin: begun.get(),
                    end: watch.true_time().0,
                    writes: Some(work.committed.writes as u32),
                    reads: recorded.reads,
                    scans: recorded.scans,
                }
            });
            ended.borrow_mut().insert(name, transaction);
        });
    }

    /// Everybody was answered, no lock is left, the history is serializable, timestamps agree with
    /// it, and read-write transactions are strict.
    fn judge(&mut self, script: &Script, outcome: &mut Outcome) {
        let mut history = History::default();
        for shard in 0..script.shards {
            let look = |node: &mut P| {
                let remembered = node.remembered();
                let base = node.base();
                (base.store.locks(), remembered, base.counters.offences, base.installs.take())
            };
            let found = self.world.node(ShardId(shard as u16), look);
            let (locks, remembered, offences, installs) = found.expect("all shards are up");
            history.installs.push(installs.unwrap_or_default());
            if locks > 0 {
                outcome.add("lock left behind", format!("{locks} on shard {shard}"));
            }
            if offences > 0 {
                outcome.add("offence", format!("{offences} on shard {shard}"));
            }
            if remembered > 0 {
                outcome.add("transaction left behind", format!("{remembered} things on shard {shard}"));
            }
        }
        for (session, actor) in (0..).zip(&script.actors) {
            match self.ended.borrow_mut().remove(&actor.name) {
                Some(Some(transaction)) => {
                    outcome.committed.insert(actor.name.clone());
                    history.transactions.push(transaction);
                }
                Some(None) => {}
                None if self.over.contains(&actor.name) => {
                    let of = script.coordinator(&actor.name);
                    let mut installs = history.installs.iter().flatten();
                    let left = installs.find(|install| install.txn.coordinator == of);
                    history.transactions.extend(left.map(|install| Transaction {
                        id: install.txn,
                        label: "left",
                        read_only: false,
                        timestamp: P::Scheme::SCALAR.then_some(install.stamp),
                        session,
                        begin: 0,
                        end: u64::MAX,
                        writes: None,
                        reads: Vec::new(),
                        scans: Vec::new(),
                    }));
                }
                None => outcome.add("stuck", format!("{} was never answered", actor.name)),
            }
        }
        let snapshots = P::Scheme::READ_ONLY == ReadOnly::Snapshot && P::Scheme::SERIALIZABLE;
        let complete = outcome.violations.is_empty();
        let options = Options { scalar: P::Scheme::SCALAR && snapshots, complete, ..Options::default() };
        let names = |_| "record".to_owned();
        let mut violations = plimsoll_checker::check(&history, options, &names).violations;
        if P::Scheme::READ_ONLY == ReadOnly::Snapshot {
            history.transactions.retain(|transaction| !transaction.read_only);
        }
        let strict = Options { realtime: !self.one_round, ..Options::default() };
        violations.extend(plimsoll_checker::check(&history, strict, &names).violations);
        violations.into_iter().for_each(|found| outcome.add(found.kind, found.detail));
    }
}
