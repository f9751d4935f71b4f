//! Messages as bytes, for every protocol under every scheme: those of a world are decoded to what
//! was encoded, and whatever else is decoded ends with a message or is refused, in memory that is a
//! small multiple of its length.
//!
//! One test, for it counts all memory of the process.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use peak_alloc::PeakAlloc;
use plimsoll_runtime::sim::{Carried, Faults, Hardware, Maker, World};
use plimsoll_runtime::{Env, LowWater};
use plimsoll_sim::client::Client;
use plimsoll_sim::run::Outsider;
use plimsoll_sim::workload::{pieces, random};
use plimsoll_txn::attempt::{LockPolicy, ProtocolOptions};
use plimsoll_txn::base::{Base, Layout};
use plimsoll_txn::envelope::Envelope;
use plimsoll_txn::messages::Common;
use plimsoll_txn::pairs::{InteractivePair, LegalPair, Pair};
use plimsoll_txn::protocol;
use plimsoll_txn::protocols::{Client2pc, Occ, Rococo, TwoPl};
use plimsoll_txn::timestamp::{OracleOptions, Scheme, SchemeConfig};
use plimsoll_txn::timestamps::{Dst, Gts, NoTimestamps, Rc as ReadCommitted, Vts};
use plimsoll_types::random::Rng;
use plimsoll_types::wire::{Wire, encoded, whole};
use plimsoll_types::{Key, Placement, ShardId, TableId, TableSpec};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const SHARDS: usize = 3;
const CLIENTS: usize = 4;
/// Transactions per client.
const TRANSACTIONS: usize = 60;
/// Virtual time after which everybody is done, in nanoseconds.
const LONG_NS: u64 = 5_000_000_000;
/// Bytes of memory at most for a byte of input: that many has a list of the smallest things to
/// validate while it grows.
const MEMORY_PER_BYTE: usize = 100;
/// And bytes of memory at most for no input.
const MEMORY_MIN: usize = 256;

/// Encodings of different messages.
#[derive(Default)]
struct Messages {
    requests: BTreeSet<Vec<u8>>,
    replies: BTreeSet<Vec<u8>>,
}

/// All messages of a world of random transactions whose operations come one by one.
fn of_operations<P: InteractivePair>() -> Messages {
    let options = ProtocolOptions { lock_policy: LockPolicy::WoundWait, ..ProtocolOptions::default() };
    messages::<P>(random::tables(), random::rows(), options, async |client| client.random().await)
}

/// All messages of a world of random transactions in pieces.
fn of_pieces<P: LegalPair>() -> Messages {
    let options = pieces::protocol_options();
    messages::<P>(pieces::tables(), pieces::rows(), options, async |client| client.pieces().await)
}

fn messages<P: LegalPair>(
    tables: Vec<TableSpec>,
    rows: Vec<(u64, TableId, Key, u64)>,
    options: ProtocolOptions,
    transaction: impl AsyncFn(&mut Client<Outsider>) + Copy + 'static,
) -> Messages {
    let placement = Arc::new(Placement::even(SHARDS));
    // The last is a process of its own: those who write there and elsewhere vote.
    let processes = (0..SHARDS).map(|shard| u16::from(shard + 1 == SHARDS)).collect();
    let layout = Layout { tables: tables.into(), placement: placement.clone(), processes };
    let counter = Arc::new(AtomicU64::new(0));
    let config = |shard: usize| SchemeConfig {
        shard: ShardId(shard as u16),
        data_shards: SHARDS,
        max_staleness_ns: random::MAX_STALENESS_NS,
        oracle: OracleOptions { batch: true, compress: false, prefetch: false },
        single_version: false,
        process: 0,
        processes: 1,
        clients: SHARDS..SHARDS,
        process_counter: counter.clone(),
        first_attempt: 1,
        patience_ns: plimsoll_txn::timestamp::PATIENCE_NS,
        logs: false,
    };
    let low_water = LowWater::new(SHARDS, P::Scheme::slots(&config(0)));
    let makers = (0..SHARDS + usize::from(P::Scheme::ORACLE)).map(|shard| {
        let (layout, config, low_water) = (layout.clone(), config(shard), low_water.clone());
        Box::new(move |_| P::new(Base::new(&layout, &config, low_water.clone()), options)) as Maker<P>
    });
    let mut world = World::new(&Hardware::default(), &Faults::none(), 1, makers.collect());
    let mut loaded = None;
    for (partition, table, key, number) in rows {
        let shard = placement.shard(random::slot(partition));
        world.node(shard, |node| node.base().store.load(table, &key, &[&number.to_be_bytes()]));
        loaded = Some((shard, table, key));
    }
    let messages = Rc::new(RefCell::new(Messages::default()));
    let seen = messages.clone();
    world.watch_messages(move |_, _, carried| {
        let Messages { requests, replies } = &mut *seen.borrow_mut();
        match carried {
            Carried::Request(request, _) => requests.insert(encoded(request)),
            Carried::Reply(reply, _) => replies.insert(encoded(reply)),
        };
    });
    // A client loads what is there already, and nothing: neither changes the world.
    let (home, table, key) = loaded.expect("there are rows");
    world.spawn_on(ShardId((home.0 + 1) % SHARDS as u16), move |env| {
        let row = (key.clone(), vec![vec![7; 8]]);
        async move {
            for rows in [vec![row], Vec::new()] {
                let load = Common::Load { table, rows: Arc::new(rows) };
                let _ = env.call(home, Envelope::Common(load)).await;
            }
        }
    });
    let pair = Pair::parse(&name::<P>()).expect("there is such a pair");
    for number in 0..SHARDS * CLIENTS {
        let observer = Outsider::new(world.observer());
        world.spawn_on(ShardId((number % SHARDS) as u16), move |env| async move {
            let mut client = Client::new(P::any(env), pair, observer, 1, number as u32);
            for _ in 0..TRANSACTIONS {
                transaction(&mut client).await;
            }
        });
    }
    world.run_until(LONG_NS);
    drop(world);
    messages.take()
}

/// More kinds of requests than any protocol has, or as many; there are fewer kinds of replies.
const KINDS: u8 = 10;

/// Whatever these bytes are: a message that has this encoding and no other, or nothing.
fn decode<M: Wire>(bytes: &[u8], look: impl Fn(&M)) -> bool {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let decoded = whole::<M>(bytes);
    let taken = MEMORY.peak_usage().saturating_sub(before);
    assert!(
        taken <= MEMORY_PER_BYTE * bytes.len() + MEMORY_MIN,
        "{} bytes of input took {taken} of memory",
        bytes.len()
    );
    let Ok(message) = decoded else { return false };
    look(&message);
    assert_eq!(message.bytes(), bytes.len() as u64);
    assert!(encoded(&message) == bytes, "a message has one encoding");
    true
}

/// A message with something wrong.
fn mutated(rng: &mut Rng, messages: &[&Vec<u8>]) -> Vec<u8> {
    let any = |rng: &mut Rng, below: usize| rng.below(below.max(1) as u64) as usize;
    let mut bytes = messages[any(rng, messages.len())].clone();
    for _ in 0..=rng.below(3) {
        let at = any(rng, bytes.len());
        let end = bytes.len();
        match rng.below(7) {
            0 => bytes[at..].iter_mut().take(1).for_each(|byte| *byte ^= 1 << rng.below(8)),
            1 => bytes[at..].iter_mut().take(1).for_each(|byte| *byte = rng.below(4) as u8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at.min(end), rng.below(256) as u8),
            // A length, larger than all that follows.
            4 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
            // A length of which so much follows.
            5 => {
                let left = (end - at) as u32 / [1, 4, 30][any(rng, 3)];
                bytes[at..].iter_mut().zip(left.to_le_bytes()).for_each(|(byte, new)| *byte = new);
            }
            _ => {
                let other = messages[any(rng, messages.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[any(rng, other.len())..]);
            }
        }
    }
    bytes
}

fn refuses<M: Wire>(messages: &BTreeSet<Vec<u8>>, look: impl Fn(&M) + Copy) {
    let mut rng = Rng::new(1, 0);
    let messages: Vec<&Vec<u8>> = messages.iter().collect();
    for bytes in &messages {
        assert!(decode(bytes, look), "what was encoded is decoded");
        assert!(!decode(&bytes[..bytes.len() - 1], look), "a message is complete or none");
    }
    let (mut good, mut bad) = (0, 0);
    for _ in 0..30_000 {
        match decode(&mutated(&mut rng, &messages), look) {
            true => good += 1,
            false => bad += 1,
        }
    }
    assert!(good > 0 && bad > 0, "{good} mutated messages are messages, {bad} are not");
    for _ in 0..10_000 {
        let length = rng.below(100);
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
        bytes.iter_mut().take(1).for_each(|kind| *kind %= KINDS);
        decode(&bytes, look);
    }
    // A kind, and then nothing but the smallest of everything, or the largest.
    for kind in 0..KINDS {
        for filler in [0, 1, 2, 3, 0xff] {
            for length in [1, 10, 100, 1000, 10_000] {
                let mut bytes = vec![filler; length];
                bytes[0] = kind;
                decode(&bytes, look);
                // The first list has as many items as there are bytes.
                for at in (1..40.min(length.saturating_sub(4))).filter(|_| length > 100) {
                    let mut bytes = bytes.clone();
                    let items = (length - at - 4) as u32;
                    bytes[1..at].fill(0);
                    bytes[at..at + 4].copy_from_slice(&items.to_le_bytes());
                    decode(&bytes, look);
                }
            }
        }
    }
}

/// `kinds` are the requests of the protocol.
fn check<P: InteractivePair>(kinds: u8) {
    // The first kind are the common requests, the second those that concern votes. A coordinator
    // that asks an oracle cannot commit in one step elsewhere, which is the last kind under OCC.
    let last = kinds - u8::from(P::Scheme::ORACLE && !P::LOCKS);
    check_those::<P>(&of_operations::<P>(), &(0..last).collect::<Vec<u8>>());
}

/// As in `occ/dst`.
fn name<P: LegalPair>() -> String {
    format!("{}/{}", P::NAME, P::Scheme::NAME)
}

/// `kinds` are the requests of the protocol that such a world has.
fn check_those<P: LegalPair>(messages: &Messages, kinds: &[u8]) {
    let pair = name::<P>();
    let seen: BTreeSet<u8> = messages.requests.iter().map(|bytes| bytes[0]).collect();
    assert!(seen.iter().eq(kinds), "{pair}: {seen:?}");
    refuses::<P::Request>(&messages.requests, |request| drop(protocol::about::<P>(request)));
    refuses::<P::Reply>(&messages.replies, |reply| _ = protocol::answer::<P>(reply));
}

#[test]
fn a_message_is_decoded_to_what_was_encoded_and_anything_else_is_refused_in_little_memory() {
    check::<Occ<Dst>>(7);
    check::<Occ<Gts>>(7);
    check::<Occ<Vts>>(7);
    check::<Occ<NoTimestamps>>(7);
    check::<Occ<ReadCommitted>>(7);
    check::<TwoPl<Dst>>(8);
    check::<TwoPl<Gts>>(8);
    check::<TwoPl<Vts>>(8);
    check::<TwoPl<NoTimestamps>>(8);
    check::<TwoPl<ReadCommitted>>(8);
    check::<Client2pc<Dst>>(4);
    check::<Client2pc<NoTimestamps>>(4);
    // Snapshots read by common requests, rounds by one of its own; nobody votes, or has to be
    // reminded.
    check_those::<Rococo<Dst>>(&of_pieces::<Rococo<Dst>>(), &[0, 2, 3, 4, 5, 6, 8]);
    check_those::<Rococo<NoTimestamps>>(&of_pieces::<Rococo<NoTimestamps>>(), &[0, 2, 3, 4, 5, 6, 7, 8]);
}
