//! Which messages a transaction takes whose data is in two processes, by name.
//!
//! The coordinator is shard 0 of one machine, the other data is on shard 1 of another. What is told
//! whenever there is nothing better to do, watermarks and what is settled, belongs to no
//! transaction. What DST costs in messages is nothing: each list is that of the plain protocol, but
//! for read-only transactions, which save a round. What an oracle costs comes on top.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_runtime::sim::{Carried, Costs, Hardware, Maker, World};
use plimsoll_runtime::{LowWater, Tasks};
use plimsoll_txn::attempt::{Attempt, ProtocolOptions};
use plimsoll_txn::base::{Base, Layout};
use plimsoll_txn::executable::AnyProcedure;
use plimsoll_txn::execute::execute;
use plimsoll_txn::pairs::LegalPair;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_txn::protocol;
use plimsoll_txn::protocols::{Client2pc, Occ, TwoPl};
use plimsoll_txn::timestamp::{Scheme, SchemeConfig};
use plimsoll_txn::timestamps::{Dst, Gts, NoTimestamps, Rc as ReadCommitted, Vts};
use plimsoll_txn::work::Footprint;
use plimsoll_types::{
    Abort, IndexKind, Key, Partitioning, Placement, SLOTS, ShardId, Slot, TableId, TableSpec,
};

const T: TableId = TableId(0);
/// What no transaction causes.
const LAZY: [&str; 3] = ["LOW WATER", "SETTLED", "REMIND"];

/// Touches a record on each of some shards, and says whether it writes it. The record of shard s is
/// s.
#[derive(Clone, Copy)]
struct Touch([Option<bool>; 3]);

impl Touch {
    /// The others first: what is here can wait.
    fn records(&self) -> impl Iterator<Item = (u64, bool)> + use<> {
        let Touch([here, there, beyond]) = *self;
        [(1, there), (2, beyond), (0, here)].into_iter().filter_map(|(key, write)| Some((key, write?)))
    }

    fn record(&self, piece: Piece) -> (u64, bool) {
        self.records().nth(piece.number).expect("it is asked about pieces it has")
    }
}

impl Procedure for Touch {
    fn read_only(&self) -> bool {
        self.records().all(|(_, write)| !write)
    }

    fn stage(&self, stage: usize) -> usize {
        if stage == 0 { self.records().count() } else { 0 }
    }

    fn home(&self, piece: Piece) -> Slot {
        Partitioning::modulo(self.record(piece).0)
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        match self.record(piece) {
            (key, true) => reads.update(T.row(), Key::of_u64(key)),
            (key, false) => reads.get(T.row(), Key::of_u64(key)),
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (key, write) = self.record(piece);
        access.get(T.row(), &Key::of_u64(key))?;
        if write { access.put(T.row(), &Key::of_u64(key), b"new") } else { Ok(()) }
    }
}

plimsoll_txn::executable!(Touch);

/// Finds no record on shard 1 and inserts it. Then it gives up at home, or goes on there and on
/// shard 2.
#[derive(Clone, Copy)]
struct Inserts {
    gives_up: bool,
}

impl Inserts {
    fn new_key() -> Key {
        Key::of_u64(1 + SLOTS as u64)
    }
}

impl Procedure for Inserts {
    fn read_only(&self) -> bool {
        false
    }

    fn stage(&self, stage: usize) -> usize {
        [2, usize::from(!self.gives_up), 0][stage]
    }

    fn home(&self, piece: Piece) -> Slot {
        Partitioning::modulo([[1, 0], [2, 2]][piece.stage][piece.number])
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        match (piece.stage, piece.number) {
            (0, 0) => reads.update(T.row(), Inserts::new_key()),
            (0, _) => reads.update(T.row(), Key::of_u64(0)),
            _ => reads.update(T.row(), Key::of_u64(2)),
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match (piece.stage, piece.number) {
            (0, 0) => {
                assert!(access.get(T.row(), &Inserts::new_key())?.is_none());
                access.insert(T, &Inserts::new_key(), &[b"new"])
            }
            (0, _) if self.gives_up => Err(Abort::User),
            (0, _) => access.put(T.row(), &Key::of_u64(0), b"new"),
            _ => access.put(T.row(), &Key::of_u64(2), b"new"),
        }
    }
}

plimsoll_txn::executable!(Inserts);

/// What is said until all is over, and how many one-way latencies it takes until the client is
/// answered.
fn said<P: LegalPair>(touch: [Option<bool>; 3], options: ProtocolOptions) -> (Vec<String>, u64) {
    let (result, said, took) = attempted::<P, _>(Touch(touch), options);
    result.expect("there is nobody to conflict with");
    (said, took)
}

/// One attempt, and the same.
fn attempted<P: LegalPair, T: AnyProcedure + 'static>(
    mut procedure: T,
    options: ProtocolOptions,
) -> (Result<(), Abort>, Vec<String>, u64) {
    const SHARDS: usize = 3;
    const LATENCY_NS: u64 = 100_000;
    let table = TableSpec::new("t", IndexKind::Hash, Partitioning::Modulo { bytes: 8 });
    let layout = Layout {
        tables: [table].into(),
        placement: Arc::new(Placement::even(SHARDS)),
        processes: (0..SHARDS as u16).collect(),
    };
    let config = |shard: usize| SchemeConfig {
        process: shard,
        processes: SHARDS,
        ..SchemeConfig::in_one_process(ShardId(shard as u16), SHARDS)
    };
    let makers = (0..SHARDS + usize::from(P::Scheme::ORACLE)).map(|shard| {
        let (layout, config) = (layout.clone(), config(shard));
        let low_water = LowWater::new(SHARDS, P::Scheme::slots(&config));
        let make = move |_| P::new(Base::new(&layout, &config, low_water.clone()), options);
        Box::new(make) as Maker<P>
    });
    let said = Rc::new(RefCell::new(Vec::new()));
    let costs = Costs {
        pass: Box::new(|_, _: &mut P, _| 1),
        weight: {
            let said = said.clone();
            Box::new(move |carried| {
                let words = match carried {
                    Carried::Request(request, _) => protocol::about::<P>(request).kind,
                    Carried::Reply(reply, _) => protocol::answer::<P>(reply).to_owned(),
                };
                if !LAZY.contains(&words.as_str()) {
                    said.borrow_mut().push(words);
                }
                0
            })
        },
        threads: None,
        frame_ns: 0.0,
        byte_ns: 0.0,
    };
    let hardware = Hardware {
        shards_per_machine: 1,
        cpu_jitter: 0.0,
        wake_ns: 0,
        latency_ns: LATENCY_NS,
        jitter_ns: 0,
        tail: 0.0,
        ..Hardware::default()
    };
    let mut world = World::with_costs(&hardware, costs, 1, makers.collect());
    for shard in 0..SHARDS as u16 {
        let load = |node: &mut P| node.base().store.load(T, &Key::of_u64(shard.into()), &[b"old"]);
        world.node(ShardId(shard), load).expect("all shards are up");
    }
    // All have met before it begins.
    world.run_until(LATENCY_NS * 10);
    let answered = Rc::new(RefCell::new(None));
    let (tell, watch) = (answered.clone(), world.observer());
    said.borrow_mut().clear();
    world.spawn_on(ShardId(0), move |env| async move {
        let begun = watch.true_time().0;
        let mut work = Footprint::default();
        let result = execute::<P>(&env, Attempt::default(), &mut procedure, &mut work).await;
        *tell.borrow_mut() = Some((result, watch.true_time().0 - begun));
        env.sleep(1).await;
    });
    world.run_until(LATENCY_NS * 100);
    let (result, took_ns) = answered.take().expect("it is over");
    (result, said.take(), (took_ns + LATENCY_NS / 2) / LATENCY_NS)
}

const NONE: Option<bool> = None;
const READ: Option<bool> = Some(false);
const WRITE: Option<bool> = Some(true);

/// What is said, in the order in which it leaves, and how many latencies it takes.
#[track_caller]
fn expect<P: LegalPair>(touch: [Option<bool>; 3], messages: &str, latencies: u64) {
    let (said, took) = said::<P>(touch, ProtocolOptions::default());
    let pair = format!("{}/{}", P::NAME, P::Scheme::NAME);
    assert_eq!((said.join(", ").as_str(), took), (messages, latencies), "{pair}");
}

#[test]
fn occ_reads_locks_and_votes() {
    // The coordinator's own shard votes last.
    let last = "READ, values, PREPARE, locked, COMMIT, known";
    let both = "READ, READ, values, values, LOCK, LOCK, locked, locked, RECORD, RECORD, record, record, \
                COMMIT, COMMIT, known, known";
    let skewed = "READ, READ, values, values, LOCK, locked, VALIDATE, valid, RECORD, record";
    let validated = "READ, READ, values, values, PREPARE, locked, VALIDATE, valid, COMMIT, known";
    for expected in [expect::<Occ<NoTimestamps>>, expect::<Occ<Dst>>, expect::<Occ<ReadCommitted>>] {
        expected([WRITE, WRITE, NONE], last, 4);
        expected([READ, WRITE, NONE], last, 4);
        expected([WRITE, WRITE, READ], validated, 6);
        expected([NONE, WRITE, WRITE], both, 6);
        // The only one that writes knows the outcome when it votes.
        expected([NONE, WRITE, READ], skewed, 8);
        expected([WRITE, READ, NONE], "READ, values, VALIDATE, valid", 4);
        // All of it is there: locks, stamp, validation and install in one message.
        expected([NONE, WRITE, NONE], "READ, values, COMMIT, committed", 4);
    }
    let in_one_round = ProtocolOptions { one_round: true, ..ProtocolOptions::default() };
    let said_in_one_round = |touch| said::<Occ<Dst>>(touch, in_one_round);
    let (said, took) = said_in_one_round([NONE, WRITE, READ]);
    let messages = "READ, READ, values, values, LOCK, VALIDATE, locked, valid, RECORD, record";
    assert_eq!((said.join(", ").as_str(), took), (messages, 6), "a round trip less");
    let (said, took) = said_in_one_round([WRITE, WRITE, READ]);
    let messages = "READ, READ, values, values, PREPARE, VALIDATE, locked, valid, COMMIT, known";
    assert_eq!((said.join(", ").as_str(), took), (messages, 4), "a round trip less");
}

#[test]
fn a_row_that_it_has_linked_itself_does_not_make_its_reads_stale() {
    fn all<P: LegalPair>() {
        let outcome = |gives_up| attempted::<P, _>(Inserts { gives_up }, ProtocolOptions::default());
        let (result, said, _) = outcome(true);
        assert_eq!(result, Err(Abort::User), "{}", P::Scheme::NAME);
        assert_eq!(said[..4].join(", "), "READ, values, PREPARE, locked");
        // The others are asked to vote before it turns out that there is one more. It goes on as
        // another attempt.
        let (result, said, _) = outcome(false);
        assert_eq!(result, Ok(()), "{}", P::Scheme::NAME);
        assert_eq!(said.iter().filter(|said| *said == "PREPARE").count(), 3, "{said:?}");
    }
    all::<Occ<NoTimestamps>>();
    all::<Occ<Dst>>();
    all::<Occ<ReadCommitted>>();
}

#[test]
fn two_pl_locks_pins_and_votes() {
    let both =
        "ACQUIRE, ACQUIRE, acquired, acquired, RECORD, RECORD, record, record, COMMIT, COMMIT, known, known";
    for expected in [expect::<TwoPl<NoTimestamps>>, expect::<TwoPl<Dst>>, expect::<TwoPl<ReadCommitted>>] {
        expected([WRITE, WRITE, NONE], "ACQUIRE, acquired, RECORD, record, COMMIT, known", 4);
        expected([NONE, WRITE, WRITE], both, 4);
        let skewed = "ACQUIRE, ACQUIRE, acquired, acquired, PIN, pinned, RECORD, record";
        expected([NONE, WRITE, READ], skewed, 6);
        expected([READ, WRITE, NONE], "ACQUIRE, acquired, RECORD, record", 4);
        expected([WRITE, READ, NONE], "ACQUIRE, acquired, PIN, pinned", 4);
        expected([NONE, WRITE, NONE], "ACQUIRE, acquired, RECORD, record", 4);
    }
}

#[test]
fn client_2pc_prepares_and_tells() {
    let both =
        "READ, READ, values, values, PREPARE, PREPARE, prepared, prepared, COMMIT, COMMIT, known, known";
    for expected in [expect::<Client2pc<NoTimestamps>>, expect::<Client2pc<Dst>>] {
        for touch in [[WRITE, WRITE, NONE], [READ, WRITE, NONE], [WRITE, READ, NONE]] {
            expected(touch, "READ, values, PREPARE, prepared, COMMIT, known", 4);
        }
        for touch in [[NONE, WRITE, WRITE], [NONE, WRITE, READ]] {
            expected(touch, both, 4);
        }
        expected([NONE, WRITE, NONE], "READ, values, PREPARE, committed", 4);
    }
}

#[test]
fn a_snapshot_takes_one_round_where_plain_protocols_take_two() {
    let here_and_there = [READ, READ, NONE];
    for expected in
        [expect::<Occ<Dst>>, expect::<TwoPl<Dst>>, expect::<Client2pc<Dst>>, expect::<Occ<ReadCommitted>>]
    {
        expected(here_and_there, "READ AT, values", 2);
    }
    expect::<Occ<NoTimestamps>>(here_and_there, "READ, values, VALIDATE, valid", 4);
    expect::<TwoPl<NoTimestamps>>(here_and_there, "ACQUIRE, acquired, PIN, pinned", 4);
    expect::<Client2pc<NoTimestamps>>(here_and_there, "READ, values, VALIDATE, valid", 4);
}

/// The same with an oracle on a machine of its own. What it is asked for the watermark's sake,
/// whenever a shard has something to drop, is left out; a snapshot is asked for in the same words,
/// before anything else is said.
#[track_caller]
fn asks<P: LegalPair>(touch: [Option<bool>; 3], messages: &str, latencies: u64) {
    let (said, took) = said::<P>(touch, ProtocolOptions::default());
    let lazy = |word: &str| ["ASKSTABLE", "STABLE", "ASKVECTOR", "PUBLISHED"].contains(&word);
    let asked = said.iter().take_while(|word| lazy(word)).count();
    let words: Vec<&str> = said
        .iter()
        .enumerate()
        .filter(|(place, word)| *place < asked || !lazy(word))
        .map(|(_, word)| word.as_str())
        .collect();
    let pair = format!("{}/{}", P::NAME, P::Scheme::NAME);
    assert_eq!((words.join(", ").as_str(), took), (messages, latencies), "{pair}");
}

#[test]
fn an_oracle_is_asked_for_snapshots_and_stamps_and_told_of_commits() {
    // One round for a snapshot, before the round that reads.
    asks::<Occ<Gts>>([READ, READ, NONE], "ASKSTABLE, STABLE, READ AT, values", 4);
    asks::<Occ<Vts>>([READ, READ, NONE], "ASKVECTOR, PUBLISHED, READ AT, values", 4);
    asks::<TwoPl<Gts>>([READ, READ, NONE], "ASKSTABLE, STABLE, READ AT, values", 4);
    asks::<TwoPl<Vts>>([READ, READ, NONE], "ASKVECTOR, PUBLISHED, READ AT, values", 4);
    // Under GTS a round for the stamp, while locks are held; under both a report that nobody waits
    // for.
    let gts = "READ, values, PREPARE, locked, FETCH, FETCHED, COMMIT, known, REPORT";
    asks::<Occ<Gts>>([WRITE, WRITE, NONE], gts, 6);
    asks::<Occ<Vts>>([WRITE, WRITE, NONE], "READ, values, PREPARE, locked, COMMIT, known, REPORT", 4);
    let gts = "ACQUIRE, acquired, FETCH, FETCHED, RECORD, record, COMMIT, known, REPORT";
    asks::<TwoPl<Gts>>([WRITE, WRITE, NONE], gts, 6);
    let vts = "ACQUIRE, acquired, RECORD, record, COMMIT, known, REPORT";
    asks::<TwoPl<Vts>>([WRITE, WRITE, NONE], vts, 4);
    // Where all data is here nothing else is said at all.
    asks::<Occ<Gts>>([WRITE, NONE, NONE], "FETCH, FETCHED, REPORT", 2);
    asks::<Occ<Vts>>([WRITE, NONE, NONE], "REPORT", 0);
}
