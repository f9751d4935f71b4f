//! What a snapshot read costs beside a plain lookup of the same record.
//!
//! ```text
//! cargo run --release --example snapshot_read
//! ```
//!
//! One shard, 100,000 records of 100 bytes in a hash table and as many in an ordered one, read in
//! random order, everything inside one task of the shard, so that no message and no other thread is
//! in the picture. Compared are
//!
//! * **plain**: a loop that finds each record and takes its newest value, as a store without
//!   transactions would;
//! * **snapshot**: a read-only transaction, run the way all procedures are, that gets the same
//!   records: each read raises the record's mark, looks at its lock and chooses the version;
//! * **marked**: the same reads once more at a snapshot that is not newer, so that all marks are
//!   high enough.
//!
//! A transaction makes so many reads that its beginning and its end do not count; `1 read` shows
//! them. The variants alternate from one thousand of keys to the next, and swap them in the next
//! round, so that a noisy neighbour meets both; every round has another order of keys. Printed is
//! the median over all thousands.

use std::hint::black_box;
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;

use plimsoll_runtime::real::{RealEnv, Runtime};
use plimsoll_runtime::{Env, LowWater, Tasks};
use plimsoll_store::At;
use plimsoll_txn::attempt::{Attempt, ProtocolOptions};
use plimsoll_txn::base::{Base, Layout};
use plimsoll_txn::execute::execute;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_txn::protocol::Protocol as _;
use plimsoll_txn::protocols::Occ;
use plimsoll_txn::timestamp::SchemeConfig;
use plimsoll_txn::timestamps::Dst;
use plimsoll_txn::work::Footprint;
use plimsoll_types::{Abort, ColumnGroup, IndexKind, Key, Partitioning, ShardId, Slot, TableId, TableSpec};

type Node = Occ<Dst>;

/// A multiple of [`PART`].
const RECORDS: u64 = 100_000;
const VALUE_BYTES: usize = 100;
/// After so many keys the variants change places.
const PART: usize = 1_000;
const ROUNDS: usize = 30;

/// Gets records, `times` each, and adds their first bytes up.
struct Lookups {
    column: ColumnGroup,
    keys: Rc<[Key]>,
    range: Range<usize>,
    times: usize,
    sum: u64,
}

impl Procedure for Lookups {
    fn read_only(&self) -> bool {
        true
    }

    fn stage(&self, stage: usize) -> usize {
        usize::from(stage == 0)
    }

    fn home(&self, _: Piece) -> Slot {
        Slot(0)
    }

    fn reads(&self, _: Piece, reads: &mut Reads) {
        self.keys[self.range.clone()].iter().for_each(|key| reads.get(self.column, key.clone()));
    }

    fn execute<A: Access>(&mut self, _: Piece, access: &mut A) -> Result<(), Abort> {
        for _ in 0..self.times {
            for key in &self.keys[self.range.clone()] {
                self.sum += first(access.get(self.column, key)?);
            }
        }
        Ok(())
    }
}

plimsoll_txn::executable!(Lookups);

#[inline]
fn first(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| u64::from(value[0]))
}

/// One variant's keys and repetitions.
#[derive(Clone, Copy)]
struct Case {
    column: ColumnGroup,
    /// Keys per transaction, and per turn of the plain loop.
    reads: usize,
    /// How often each key is read in a row of all.
    times: usize,
}

/// Reads some keys as a store without transactions would. Returns nanoseconds.
fn plain(env: &RealEnv<Node>, case: Case, keys: &[Key]) -> u128 {
    let Case { column, reads, times } = case;
    let mut sum = 0;
    let began = Instant::now();
    for keys in keys.chunks(reads) {
        env.local(|node| {
            let store = &mut node.base().store;
            for _ in 0..times {
                for key in keys {
                    let place = store.find(column, key);
                    let value = place.row().and_then(|row| store.newest(At { row, column }));
                    sum += first(value);
                }
            }
        });
    }
    let elapsed = began.elapsed().as_nanos();
    black_box(sum);
    elapsed
}

/// Reads them in read-only transactions. Returns nanoseconds.
async fn snapshot(env: &RealEnv<Node>, case: Case, keys: &Rc<[Key]>, part: Range<usize>) -> u128 {
    let mut work = Footprint::default();
    let keys = keys.clone();
    let mut lookups = Lookups { column: case.column, keys, range: 0..0, times: case.times, sum: 0 };
    let began = Instant::now();
    for start in part.clone().step_by(case.reads) {
        lookups.range = start..(start + case.reads).min(part.end);
        let done = execute(env, Attempt::default(), &mut lookups, &mut work).await;
        done.expect("a snapshot read never aborts");
    }
    let elapsed = began.elapsed().as_nanos();
    black_box(lookups.sum);
    elapsed
}

fn shuffle(keys: &mut [Key], random: impl Fn() -> u64) {
    for i in (1..keys.len()).rev() {
        keys.swap(i, (random() % (i as u64 + 1)) as usize);
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

async fn measure(env: RealEnv<Node>, tables: [(&'static str, TableId); 2]) {
    println!("{:<34} {:>9} {:>12} {:>8}", "ns per read", "plain", "snapshot", "ratio");
    for (name, table) in tables {
        let mut keys: Vec<Key> = (0..RECORDS).map(Key::of_u64).collect();
        env.local(|node| {
            for (number, key) in keys.iter().enumerate() {
                node.base().store.load(table, key, &[&[number as u8; VALUE_BYTES]]);
            }
        });
        for (what, reads, times) in
            [("1,000 reads each", PART, 1), ("1,000 reads, marks high enough", PART, 10), ("1 read", 1, 1)]
        {
            let case = Case { column: table.row(), reads, times };
            let (mut plains, mut snapshots) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                shuffle(&mut keys, || env.random());
                round(&env, case, &keys.clone().into(), &mut plains, &mut snapshots).await;
            }
            let [plain, snapshot] = [plains, snapshots].map(|ns| median(ns) / (PART * times) as f64);
            let ratio = snapshot / plain;
            println!("{:<34} {plain:>9.1} {snapshot:>12.1} {ratio:>8.2}", format!("{name}, {what}"));
        }
    }
}

/// Reads every key twice, once either way. Appends the nanoseconds of every part.
async fn round(
    env: &RealEnv<Node>,
    case: Case,
    keys: &Rc<[Key]>,
    plains: &mut Vec<f64>,
    snapshots: &mut Vec<f64>,
) {
    for turn in 0..2 {
        for (number, start) in (0..keys.len()).step_by(PART).enumerate() {
            // The clock moves on: the next snapshot is newer than all marks.
            env.pause().await;
            let part = start..start + PART;
            match (number + turn) % 2 {
                0 => plains.push(plain(env, case, &keys[part]) as f64),
                _ => snapshots.push(snapshot(env, case, keys, part).await as f64),
            }
        }
    }
}

fn main() -> std::io::Result<()> {
    let spec = |name, index| TableSpec::new(name, index, Partitioning::Hash { bytes: 0 });
    let tables = vec![spec("hash", IndexKind::Hash), spec("ordered", IndexKind::Ordered)];
    let layout = Layout::in_one_process(tables, 1);
    let make = move || {
        Node::new(
            Base::new(&layout, &SchemeConfig::in_one_process(ShardId(0), 1), LowWater::new(1, 1)),
            ProtocolOptions::default(),
        )
    };
    let runtime = Runtime::start(vec![Box::new(make)], 1, Some(0))?;
    let tables = [("hash", TableId(0)), ("ordered", TableId(1))];
    runtime.run_on(ShardId(0), move |env| measure(env, tables));
    Ok(())
}
