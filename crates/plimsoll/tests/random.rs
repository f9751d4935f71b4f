//! Random transactions, all at once, on very little data, and then everything that must hold.
//!
//! Under every protocol and scheme, on one to three shards, a few clients per shard run for a fraction of a
//! second. Some run *interactive* transactions that read, write, insert, delete and scan at random and dawdle
//! in between; some run *procedures* with pieces on several shards; some only read, at several stalenesses. All
//! draw from one fixed seed, though threads see to it that no two runs are the same.
//!
//! Afterwards:
//! * the recorded history goes to the checker: serializable, under DST strictly so, in sessions where there are
//!   snapshots;
//! * *values* are checked, to which the checker is blind: a transaction writes its own number everywhere, so what
//!   was read must be what the recorded writer wrote;
//! * transfers moved money about, so its sum is the same in every scan of the accounts;
//! * read-only transactions at snapshots never aborted;
//! * a transaction that reads and writes every row commits at once: no lock was left behind;
//! * under DST the garbage is collected once all is quiet.
//!
//! A stale read-only transaction is recorded as having begun so much earlier: then its promise is the usual one.
//!
//! Left out: faults. Shards share one process and its fate.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use common::{Experiment, Setup};
use plimsoll::engine::Engine;
use plimsoll_checker::{Install, Transaction as Recorded, Version};
use plimsoll_runtime::Env;
use plimsoll_runtime::real::Clock;
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_txn::protocol::{Attempt, Committed, Protocol, execute};
use plimsoll_txn::timestamp::{Freshness, ReadOnly, Scheme};
use plimsoll_txn::work::Work;
use plimsoll_types::{
    Abort, ColumnGroup, IndexKind, Key, Partitioning, ShardId, Slot, TableId, TableSpec, Timestamp, TxnId,
};
use plimsoll_workloads::random::Rng;

const SEED: u64 = 20_170_301;
/// How long the clients of one setup run, at least.
const RUN_NS: u64 = 120_000_000;
/// How much each of them commits, at least, however slow the machine.
const COMMITTED: usize = 20;
/// A client that is still running so much later is stuck.
const STUCK: Duration = Duration::from_secs(60);
const CLIENTS_PER_SHARD: u64 = 5;
const PARTITIONS: u64 = 3;
/// Rows that a partition has of each table, present or absent.
const ROWS: u64 = 5;
const BALANCE: u64 = 1000;
const MAX_STALENESS_NS: u64 = 2_000_000;

/// Point reads and writes.
const POINT: TableId = TableId(0);
/// Scans as well.
const LIST: TableId = TableId(1);
/// Never inserted into: money that transfers move about.
const ACCOUNT: TableId = TableId(2);
/// One row per partition: the next number to be drawn.
const COUNTER: TableId = TableId(3);
/// Rows inserted under the numbers drawn.
const NUMBERED: TableId = TableId(4);

fn tables() -> Vec<TableSpec> {
    let placed = Partitioning::Modulo { bytes: 1 };
    vec![
        TableSpec::new("point", IndexKind::Hash, placed),
        TableSpec::new("list", IndexKind::Ordered, placed),
        TableSpec::new("account", IndexKind::Ordered, placed),
        TableSpec::new("counter", IndexKind::Hash, placed),
        TableSpec::new("numbered", IndexKind::Ordered, placed),
    ]
}

fn key(partition: u64, row: u64) -> Key {
    Key::build().u8(partition as u8).u64(row).finish()
}

fn slot(partition: u64) -> Slot {
    Partitioning::modulo(partition)
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().expect("all values are numbers"))
}

/// Everything that one transaction saw: row and number.
type Seen = Vec<(ColumnGroup, Key, u64)>;

/// What the clients leave behind.
#[derive(Default)]
struct Left {
    transactions: Vec<Recorded>,
    /// By committed transaction: the number it wrote, and what it saw that was not its own.
    values: Vec<(TxnId, u64, Seen)>,
    read_only_aborts: u64,
    /// Sums of all accounts that were not what they should be.
    torn: u64,
    /// Numbers drawn from a counter that were taken.
    taken: u64,
}

struct Client<P: Protocol, E> {
    env: E,
    /// What shards sample at the beginning of a pass. A client on a shard arrives with the pass, so its
    /// transactions begin at the sample; they are answered when this says so.
    clock: Clock,
    rng: Rng,
    session: u32,
    token: Timestamp,
    attempts: u64,
    left: Left,
    work: Work<P::Scheme>,
}

/// One transaction that has committed, and what it is to be recorded with.
struct Ended {
    label: &'static str,
    read_only: bool,
    begin: u64,
    number: u64,
    seen: Seen,
    committed: Committed,
}

impl<P: Protocol, E: Env<P>> Client<P, E> {
    async fn run(&mut self) {
        let end = self.env.clock().0 + RUN_NS;
        while self.env.clock().0 < end || self.left.transactions.len() < COMMITTED {
            let age = self.env.clock().0;
            match self.rng.below(10) {
                0..=3 => self.interactive(age).await,
                4 => self.look().await,
                5 | 6 => self.transfer(age).await,
                7 => self.audit().await,
                8 => self.draw(age).await,
                _ => self.mix(age).await,
            }
            self.env.pause().await;
        }
    }

    fn attempt(&mut self, age: u64, staleness_ns: u64) -> Attempt {
        Attempt { age, freshness: Freshness { staleness_ns, at_least: self.token } }
    }

    /// A number that no other attempt writes.
    fn next_number(&mut self) -> u64 {
        self.attempts += 1;
        u64::from(self.session + 1) << 32 | self.attempts
    }

    fn random_key(&mut self) -> Key {
        key(self.rng.below(PARTITIONS), self.rng.below(ROWS))
    }

    fn random_scan(&mut self) -> Scan {
        let partition = self.rng.below(PARTITIONS);
        let scan = match self.rng.below(4) {
            0 => Scan::prefix(LIST.row(), Key::MIN),
            1 => Scan::prefix(LIST.row(), Key::new(&[partition as u8])),
            _ => {
                let low = self.rng.below(ROWS);
                Scan::range(LIST.row(), key(partition, low), key(partition, low + 1 + self.rng.below(3)))
            }
        };
        if self.rng.below(4) == 0 { scan.limit(1 + self.rng.below(3) as usize) } else { scan }
    }

    fn staleness(&mut self) -> u64 {
        [0, 0, 200_000, MAX_STALENESS_NS][self.rng.below(4) as usize]
    }

    async fn dawdle(&mut self) {
        match self.rng.below(4) {
            0 => self.env.pause().await,
            1 => self.env.sleep(self.rng.below(100_000)).await,
            _ => {}
        }
    }

    fn record(&mut self, ended: Ended) {
        let Ended { label, read_only, begin, number, seen, committed } = ended;
        self.token.raise(committed.stamp.unwrap_or_default());
        let recorded = committed.recorded.map(|recorded| *recorded).unwrap_or_default();
        self.left.values.push((committed.id, number, seen));
        self.left.transactions.push(Recorded {
            id: committed.id,
            label,
            read_only,
            timestamp: committed.stamp.filter(|_| P::Scheme::SCALAR),
            session: self.session,
            begin,
            end: self.clock.now().0,
            writes: Some(committed.writes as u32),
            reads: recorded.reads,
            scans: recorded.scans,
        });
    }

    /// Interactive, read-write, until it commits or has had enough.
    async fn interactive(&mut self, age: u64) {
        for _ in 0..20 {
            let begin = self.env.clock().0;
            let (number, mut seen) = (self.next_number(), Seen::new());
            match self.interact(age, number, &mut seen).await {
                Ok(Some(committed)) => {
                    let snapshot =
                        P::Scheme::READ_ONLY == ReadOnly::Snapshot && P::Scheme::SERIALIZABLE && !P::LOCKS;
                    let read_only = snapshot && committed.writes == 0;
                    self.record(Ended { label: "interactive", read_only, begin, number, seen, committed });
                    return;
                }
                Ok(None) | Err(Abort::User) => return,
                Err(_) => self.env.sleep(self.rng.below(50_000)).await,
            }
        }
    }

    async fn interact(&mut self, age: u64, own: u64, seen: &mut Seen) -> Result<Option<Committed>, Abort> {
        let (env, attempt, value) = (self.env.clone(), self.attempt(age, 0), own.to_be_bytes());
        let mut transaction = Transaction::begin::<P, E>(&env, attempt, false).await?;
        let mut see = |column, key: Key, value: &[u8]| {
            if number(value) != own {
                seen.push((column, key, number(value)));
            }
        };
        for _ in 0..1 + self.rng.below(5) {
            let table = if self.rng.below(2) == 0 { POINT } else { LIST };
            let key = self.random_key();
            match self.rng.below(10) {
                0..=3 => {
                    if let Some(value) = transaction.get(&env, table.row(), &key).await? {
                        see(table.row(), key, &value);
                    }
                }
                4 | 5 => transaction.put(&env, table.row(), &key, &value).await?,
                6 => {
                    if transaction.get(&env, table.row(), &key).await?.is_none() {
                        transaction.insert(&env, table, &key, &[&value]).await?;
                    }
                }
                7 => transaction.delete(&env, table, &key).await?,
                _ => {
                    let scan = self.random_scan();
                    let rows = transaction.scan(&env, &scan).await?;
                    assert!(rows.is_sorted(), "a scan is in key order");
                    assert!(rows.len() <= scan.limit, "a scan keeps its limit");
                    rows.into_iter().for_each(|(key, value)| see(scan.column, key, &value));
                }
            }
            self.dawdle().await;
        }
        if self.rng.below(10) == 0 {
            transaction.rollback(&env).await;
            return Ok(None);
        }
        transaction.commit(&env).await.map(Some)
    }

    /// Interactive and read-only.
    async fn look(&mut self) {
        let staleness_ns = self.staleness();
        let (begin, mut seen) = (self.env.clock().0 - staleness_ns, Seen::new());
        match self.looked(staleness_ns, &mut seen).await {
            Ok(committed) => {
                self.record(Ended { label: "look", read_only: true, begin, number: 0, seen, committed });
            }
            Err(_) => self.left.read_only_aborts += 1,
        }
    }

    async fn looked(&mut self, staleness_ns: u64, seen: &mut Seen) -> Result<Committed, Abort> {
        let (env, attempt) = (self.env.clone(), self.attempt(self.env.clock().0, staleness_ns));
        let mut transaction = Transaction::begin::<P, E>(&env, attempt, true).await?;
        for _ in 0..1 + self.rng.below(6) {
            if self.rng.below(3) == 0 {
                let scan = self.random_scan();
                for (key, value) in transaction.scan(&env, &scan).await? {
                    seen.push((scan.column, key, number(&value)));
                }
            } else {
                let (table, key) = (if self.rng.below(2) == 0 { POINT } else { LIST }, self.random_key());
                if let Some(value) = transaction.get(&env, table.row(), &key).await? {
                    seen.push((table.row(), key, number(&value)));
                }
            }
            self.dawdle().await;
        }
        transaction.commit(&env).await
    }

    /// Runs a procedure until it commits, says no, or has had enough; read-only ones count their aborts.
    async fn procedure<T: Procedure>(
        &mut self,
        attempt: Attempt,
        procedure: &mut T,
    ) -> Result<Option<Committed>, Abort> {
        for _ in 0..200 {
            let env = self.env.clone();
            match execute::<P, E, T>(&env, attempt, procedure, &mut self.work).await {
                Ok(()) => return Ok(Some(std::mem::take(&mut self.work.committed))),
                Err(Abort::User) => return Err(Abort::User),
                Err(_) => self.left.read_only_aborts += u64::from(procedure.read_only()),
            }
            self.env.sleep(self.rng.below(20_000)).await;
        }
        Ok(None)
    }

    async fn transfer(&mut self, age: u64) {
        let mut procedure = Transfer {
            from: (self.rng.below(PARTITIONS), self.rng.below(ROWS)),
            to: (self.rng.below(PARTITIONS), self.rng.below(ROWS)),
            amount: 1 + self.rng.below(10),
            balance: 0,
        };
        if procedure.from == procedure.to {
            return;
        }
        let (begin, attempt) = (self.env.clock().0, self.attempt(age, 0));
        if let Ok(Some(committed)) = self.procedure(attempt, &mut procedure).await {
            let seen = Seen::new();
            self.record(Ended { label: "transfer", read_only: false, begin, number: 0, seen, committed });
        }
    }

    async fn audit(&mut self) {
        let staleness_ns = self.staleness();
        let age = self.env.clock().0;
        let (begin, attempt) = (age - staleness_ns, self.attempt(age, staleness_ns));
        let mut procedure = Audit { sums: [0; PARTITIONS as usize] };
        if let Ok(Some(committed)) = self.procedure(attempt, &mut procedure).await {
            self.left.torn += u64::from(procedure.sums.iter().sum::<u64>() != PARTITIONS * ROWS * BALANCE);
            let seen = Seen::new();
            self.record(Ended { label: "audit", read_only: true, begin, number: 0, seen, committed });
        }
    }

    async fn draw(&mut self, age: u64) {
        let counter = self.rng.below(PARTITIONS);
        let mut procedure = Draw { counter, rows: self.rng.below(PARTITIONS), drawn: 0 };
        let (begin, attempt) = (self.env.clock().0, self.attempt(age, 0));
        match self.procedure(attempt, &mut procedure).await {
            Ok(Some(committed)) => {
                let seen = Seen::new();
                self.record(Ended { label: "draw", read_only: false, begin, number: 0, seen, committed });
            }
            Ok(None) => {}
            Err(_) => self.left.taken += 1,
        }
    }

    async fn mix(&mut self, age: u64) {
        let own = self.next_number();
        let stages = (0..1 + self.rng.below(2))
            .map(|_| {
                (0..1 + self.rng.below(3))
                    .map(|_| {
                        let partition = self.rng.below(PARTITIONS);
                        let operations = (0..1 + self.rng.below(3)).map(|_| {
                            let table = if self.rng.below(2) == 0 { POINT } else { LIST };
                            let row = key(partition, self.rng.below(ROWS));
                            match self.rng.below(6) {
                                0 => Operation::Get(table, row),
                                1 => Operation::Update(table, row),
                                2 => Operation::Put(table, row),
                                3 => Operation::Insert(table, row),
                                4 => Operation::Delete(table, row),
                                _ => {
                                    let low = self.rng.below(ROWS);
                                    let high = key(partition, low + 1 + self.rng.below(3));
                                    Operation::Scan(Scan::range(LIST.row(), key(partition, low), high))
                                }
                            }
                        });
                        (partition, operations.collect::<Vec<_>>())
                    })
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>();
        let mut procedure = Mix { stages, own, seen: BTreeMap::new() };
        let (begin, attempt) = (self.env.clock().0, self.attempt(age, 0));
        if let Ok(Some(committed)) = self.procedure(attempt, &mut procedure).await {
            let seen = procedure.seen.into_values().flatten().collect();
            self.record(Ended { label: "mix", read_only: false, begin, number: own, seen, committed });
        }
    }
}

// Procedures.

/// Moves money from one account to another, in two pieces of one stage.
struct Transfer {
    from: (u64, u64),
    to: (u64, u64),
    amount: u64,
    balance: u64,
}

impl Procedure for Transfer {
    fn read_only(&self) -> bool {
        false
    }

    fn stage(&self, stage: usize) -> usize {
        if stage == 0 { 2 } else { 0 }
    }

    fn home(&self, piece: Piece) -> Slot {
        slot(if piece.number == 0 { self.from.0 } else { self.to.0 })
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let (partition, row) = if piece.number == 0 { self.from } else { self.to };
        reads.update(ACCOUNT.row(), key(partition, row));
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (partition, row) = if piece.number == 0 { self.from } else { self.to };
        let key = key(partition, row);
        let balance = number(access.get(ACCOUNT.row(), &key)?.expect("accounts stay"));
        let balance = match piece.number {
            0 => balance.checked_sub(self.amount).ok_or(Abort::User)?,
            _ => balance + self.amount,
        };
        self.balance = balance;
        access.put(ACCOUNT.row(), &key, &balance.to_be_bytes())
    }
}

/// Sums all accounts.
struct Audit {
    sums: [u64; PARTITIONS as usize],
}

impl Procedure for Audit {
    fn read_only(&self) -> bool {
        true
    }

    fn stage(&self, stage: usize) -> usize {
        if stage == 0 { PARTITIONS as usize } else { 0 }
    }

    fn home(&self, piece: Piece) -> Slot {
        slot(piece.number as u64)
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        reads.scan(Scan::prefix(ACCOUNT.row(), Key::new(&[piece.number as u8])));
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let sum = &mut self.sums[piece.number];
        *sum = 0;
        access.scan(&Scan::prefix(ACCOUNT.row(), Key::new(&[piece.number as u8])), |_, value| {
            *sum += number(value);
            ControlFlow::Continue(())
        })
    }
}

/// Draws a number from a counter and inserts a row under it, perhaps on another shard. The number is never taken.
struct Draw {
    counter: u64,
    rows: u64,
    drawn: u64,
}

impl Procedure for Draw {
    fn read_only(&self) -> bool {
        false
    }

    fn stage(&self, stage: usize) -> usize {
        if stage < 2 { 1 } else { 0 }
    }

    fn home(&self, piece: Piece) -> Slot {
        slot(if piece.stage == 0 { self.counter } else { self.rows })
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        if piece.stage == 0 {
            reads.update(COUNTER.row(), key(self.counter, 0));
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let counter = key(self.counter, 0);
        if piece.stage == 0 {
            self.drawn = number(access.get(COUNTER.row(), &counter)?.expect("counters stay"));
            return access.put(COUNTER.row(), &counter, &(self.drawn + 1).to_be_bytes());
        }
        // The same number of another counter is another row.
        let key = Key::build().u8(self.rows as u8).u8(self.counter as u8).u64(self.drawn).finish();
        access.insert(NUMBERED, &key, &[&self.drawn.to_be_bytes()])
    }
}

enum Operation {
    Get(TableId, Key),
    Update(TableId, Key),
    Put(TableId, Key),
    Insert(TableId, Key),
    Delete(TableId, Key),
    Scan(Scan),
}

/// Anything, in one or two stages of a few pieces.
struct Mix {
    stages: Vec<Vec<(u64, Vec<Operation>)>>,
    own: u64,
    /// What each piece saw when it last ran.
    seen: BTreeMap<(usize, usize), Seen>,
}

impl Procedure for Mix {
    fn read_only(&self) -> bool {
        false
    }

    fn stage(&self, stage: usize) -> usize {
        self.stages.get(stage).map_or(0, Vec::len)
    }

    fn home(&self, piece: Piece) -> Slot {
        slot(self.stages[piece.stage][piece.number].0)
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        for operation in &self.stages[piece.stage][piece.number].1 {
            match operation {
                Operation::Get(table, key) => reads.get(table.row(), key.clone()),
                Operation::Update(table, key) => reads.update(table.row(), key.clone()),
                Operation::Scan(scan) => reads.scan(scan.clone()),
                _ => {}
            }
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (own, mut seen) = (self.own, Seen::new());
        let value = own.to_be_bytes();
        for operation in &self.stages[piece.stage][piece.number].1 {
            match operation {
                Operation::Get(table, key) | Operation::Update(table, key) => {
                    if let Some(value) = access.get(table.row(), key)? {
                        seen.push((table.row(), key.clone(), number(value)));
                    }
                    if let Operation::Update(..) = operation {
                        access.put(table.row(), key, &value)?;
                    }
                }
                Operation::Put(table, key) => access.put(table.row(), key, &value)?,
                Operation::Insert(table, key) => access.insert(*table, key, &[&value])?,
                Operation::Delete(table, key) => access.delete(*table, key)?,
                Operation::Scan(scan) => access.scan(scan, |key, value| {
                    seen.push((scan.column, key.clone(), number(value)));
                    ControlFlow::Continue(())
                })?,
            }
        }
        seen.retain(|(_, _, number)| *number != own);
        self.seen.insert((piece.stage, piece.number), seen);
        Ok(())
    }
}

// The experiment.

#[test]
fn random_transactions_of_occ_are_serializable_under_every_scheme() {
    on_one_to_three_shards("occ");
}

#[test]
fn random_transactions_of_wait_die_are_serializable_under_every_scheme() {
    on_one_to_three_shards("wait_die");
}

#[test]
fn random_transactions_of_wound_wait_are_serializable_under_every_scheme() {
    on_one_to_three_shards("wound_wait");
}

#[test]
fn random_transactions_of_no_wait_are_serializable_under_every_scheme() {
    on_one_to_three_shards("no_wait");
}

fn on_one_to_three_shards(protocol: &'static str) {
    let mut found = Random { failures: Vec::new() };
    (1..=3).for_each(|shards| common::with_protocol(protocol, shards, &mut found));
    assert!(found.failures.is_empty(), "{}", found.failures.join("\n"));
}

/// Runs in one setup after the other and gathers what does not hold.
struct Random {
    failures: Vec<String>,
}

impl Experiment for Random {
    fn run<P: Protocol>(&mut self, setup: Setup) {
        let engine: Engine<P> = common::start(setup, tables(), MAX_STALENESS_NS);
        load(&engine);
        let (done, results) = mpsc::channel();
        for client in 0..CLIENTS_PER_SHARD * setup.shards as u64 {
            start_client(&engine, client, done.clone());
        }
        drop(done);
        let mut left = Left::default();
        for _ in 0..CLIENTS_PER_SHARD * setup.shards as u64 {
            let Ok(one) = results.recv_timeout(STUCK) else {
                self.failures.push(format!("{setup:?}: a client is stuck"));
                return;
            };
            left.transactions.extend(one.transactions);
            left.values.extend(one.values);
            left.read_only_aborts += one.read_only_aborts;
            left.torn += one.torn;
            left.taken += one.taken;
        }
        let failures = judge(&engine, left);
        self.failures.extend(failures.into_iter().map(|failure| format!("{setup:?}: {failure}")));
    }
}

fn load<P: Protocol>(engine: &Engine<P>) {
    for partition in 0..PARTITIONS {
        let shard = engine.layout().placement.shard(slot(partition));
        engine.on_shard(shard, move |_, base| {
            for row in 0..ROWS {
                if row % 2 == 0 {
                    base.store.load(POINT, &key(partition, row), &[&0u64.to_be_bytes()]);
                    base.store.load(LIST, &key(partition, row), &[&0u64.to_be_bytes()]);
                }
                base.store.load(ACCOUNT, &key(partition, row), &[&BALANCE.to_be_bytes()]);
            }
            base.store.load(COUNTER, &key(partition, 0), &[&0u64.to_be_bytes()]);
        });
    }
}

fn start_client<P: Protocol>(engine: &Engine<P>, client: u64, done: Sender<Left>) {
    let shard = ShardId((client / CLIENTS_PER_SHARD) as u16);
    let clock = engine.runtime().clock();
    engine.runtime().spawn_on(shard, move |env| async move {
        let mut client = Client::<P, _> {
            env,
            clock,
            rng: Rng::new(SEED, client),
            session: client as u32,
            token: Timestamp::ZERO,
            attempts: 0,
            left: Left::default(),
            work: Work::default(),
        };
        client.run().await;
        let _ = done.send(client.left);
    });
}

/// What does not hold after a run.
fn judge<P: Protocol>(engine: &Engine<P>, mut left: Left) -> Vec<String> {
    let mut failures = Vec::new();
    let serializable = P::Scheme::SERIALIZABLE;
    if left.transactions.len() < COMMITTED * CLIENTS_PER_SHARD as usize {
        failures.push(format!("only {} transactions committed", left.transactions.len()));
    }
    if P::Scheme::READ_ONLY != ReadOnly::Validated && left.read_only_aborts > 0 {
        failures.push(format!("{} read-only transactions aborted", left.read_only_aborts));
    }
    if serializable && left.torn > 0 {
        failures.push(format!("{} audits saw money made or lost", left.torn));
    }
    if left.taken > 0 {
        failures.push(format!("{} numbers drawn from a counter were taken", left.taken));
    }
    // What was sent last arrives.
    for _ in 0..20 {
        common::round(engine);
    }
    let clock = engine.runtime().clock();
    let begin = clock.now().0;
    let (done, result) = mpsc::channel();
    engine.runtime().spawn_on(ShardId(0), move |env| async move {
        let mut result = rewrite_all::<P, _>(&env).await;
        // An insert that was undone may be in the way under OCC, until it is collected. A lock would stay.
        for _ in 0..20 {
            if !matches!(result, Err(Abort::Validation)) {
                break;
            }
            result = rewrite_all::<P, _>(&env).await;
        }
        let _ = done.send(result);
    });
    match result.recv_timeout(STUCK) {
        Ok(Ok(committed)) => {
            let recorded = committed.recorded.map(|recorded| *recorded).unwrap_or_default();
            left.transactions.push(Recorded {
                id: committed.id,
                label: "rewrite all",
                read_only: false,
                timestamp: committed.stamp.filter(|_| P::Scheme::SCALAR),
                session: u32::MAX,
                begin,
                end: clock.now().0,
                writes: Some(committed.writes as u32),
                reads: recorded.reads,
                scans: recorded.scans,
            });
        }
        Ok(Err(abort)) => failures.push(format!("a lock was left behind: {abort}")),
        Err(_) => failures.push("a lock was left behind: the last transaction waits for it".to_owned()),
    }
    common::round(engine);
    let installs: Vec<Vec<Install>> = engine
        .shards()
        .map(|shard| engine.on_shard(shard, |_, base| base.installs.clone().unwrap_or_default()))
        .collect();
    failures.extend(wrong_values(&left, &installs).into_iter().take(3));
    // Under 2PL an oracle's number tells nothing of what was only read.
    let sessions = P::Scheme::WAITS || !P::LOCKS;
    let report = common::check(engine, left.transactions, sessions);
    if serializable && !report.passed() {
        failures.push(report.to_string());
    }
    if P::Scheme::WAITS {
        let garbage = drain(engine);
        if garbage > 0 {
            failures.push(format!("{garbage} pieces of garbage are left"));
        }
    }
    failures
}

/// Reads and writes all rows there may be, and all accounts and counters. Nobody else is about.
async fn rewrite_all<P: Protocol, E: Env<P>>(env: &E) -> Result<Committed, Abort> {
    // Fresh enough for an oracle to have heard of everything, if it has been asked by now.
    env.sleep(5_000_000).await;
    let attempt = Attempt { age: env.clock().0, freshness: Freshness::default() };
    let mut transaction = Transaction::begin::<P, E>(env, attempt, false).await?;
    for partition in 0..PARTITIONS {
        for table in [LIST, ACCOUNT, NUMBERED] {
            let scan = Scan::prefix(table.row(), Key::new(&[partition as u8]));
            for (key, value) in transaction.scan(env, &scan).await? {
                transaction.put(env, table.row(), &key, &value).await?;
            }
        }
        for (table, rows) in [(POINT, ROWS), (COUNTER, 1)] {
            for row in 0..rows {
                let key = key(partition, row);
                let value = transaction.get(env, table.row(), &key).await?;
                let value = value.unwrap_or_else(|| 0u64.to_be_bytes().to_vec());
                transaction.put(env, table.row(), &key, &value).await?;
            }
        }
    }
    transaction.commit(env).await
}

/// Values that are not what the recorded writer of the version wrote.
fn wrong_values(left: &Left, installs: &[Vec<Install>]) -> Vec<String> {
    let writers: BTreeMap<(ColumnGroup, &Key, Timestamp), TxnId> = (installs.iter().flatten())
        .map(|install| ((install.column, &install.key, install.stamp), install.txn))
        .collect();
    let numbers: BTreeMap<TxnId, u64> = left.values.iter().map(|(txn, number, _)| (*txn, *number)).collect();
    let mut wrong = Vec::new();
    for ((txn, _, seen), recorded) in left.values.iter().zip(&left.transactions) {
        assert_eq!(*txn, recorded.id, "values are noted along with transactions");
        if !["interactive", "look", "mix"].contains(&recorded.label) {
            continue;
        }
        let reads = recorded.reads.iter().filter_map(|read| match read.version {
            Version::At(stamp) => Some((read.column, &read.key, stamp)),
            Version::Absent => None,
        });
        let scans = recorded.scans.iter();
        let scanned = scans.flat_map(|scan| scan.rows.iter().map(|(key, stamp)| (scan.column, key, *stamp)));
        let told: BTreeSet<(ColumnGroup, &Key, u64)> = reads
            .chain(scanned)
            .map(|(column, key, stamp)| {
                let number = writers.get(&(column, key, stamp)).and_then(|writer| numbers.get(writer));
                (column, key, number.copied().unwrap_or_default())
            })
            .collect();
        for (column, key, number) in seen {
            if !told.contains(&(*column, key, *number)) {
                wrong.push(format!(
                    "{} {txn:?} saw {number:x} in table {} {key:?}",
                    recorded.label, column.table.0
                ));
            }
        }
    }
    wrong
}

/// How much garbage is left on all shards although nothing runs any more.
fn drain<P: Protocol>(engine: &Engine<P>) -> usize {
    let mut garbage = 0;
    for _ in 0..500 {
        garbage = engine.shards().map(|shard| engine.on_shard(shard, |_, base| base.store.garbage())).sum();
        if garbage == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    garbage
}
