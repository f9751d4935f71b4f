//! Random transactions on very little data, and what must hold of the values they saw.
//!
//! Some are *interactive* and read, write, insert, delete and scan at random and dawdle in between;
//! some are *procedures* with pieces on several shards; some only read, at several stalenesses. All
//! but the transfers write their own number everywhere, so what was read tells who wrote it: the
//! checker is blind to values, this is not. Transfers move money about, so its sum is the same in
//! every scan of the accounts; a number that is drawn from a counter is drawn once.
//!
//! A stale read-only transaction is recorded as having begun so much earlier: then its promise is
//! the usual one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::attempt::{Attempt, Committed};
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_txn::timestamp::Freshness;
use plimsoll_types::history::{Install, Version};
use plimsoll_types::{
    Abort, ColumnGroup, IndexKind, Key, Partitioning, Slot, TableId, TableSpec, Timestamp, TxnId,
};

use super::operation::{Operation, all, key, number};
use crate::client::{Client, ClientResults, Ended, Observer, Seen, interactive};

/// Partition keys; each has a slot of its own.
pub const PARTITIONS: u64 = 3;
/// Rows that a partition has of each table, present or absent, at most.
pub const ROWS: u64 = 5;
const BALANCE: u64 = 1000;
/// The largest staleness of a snapshot, in nanoseconds.
pub const MAX_STALENESS_NS: u64 = 2_000_000;

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
/// Every shard has a copy of it.
const COPIED: TableId = TableId(5);

/// The tables.
pub fn tables() -> Vec<TableSpec> {
    let placed = Partitioning::Modulo { bytes: 1 };
    vec![
        TableSpec::new("point", IndexKind::Hash, placed),
        TableSpec::new("list", IndexKind::Ordered, placed),
        TableSpec::new("account", IndexKind::Ordered, placed),
        TableSpec::new("counter", IndexKind::Hash, placed),
        TableSpec::new("numbered", IndexKind::Ordered, placed),
        TableSpec::new("copied", IndexKind::Ordered, Partitioning::Everywhere),
    ]
}

/// A partition's slot.
pub fn slot(partition: u64) -> Slot {
    Partitioning::modulo(partition)
}

/// The rows that are there at the beginning: partition, table, key, number.
pub fn rows() -> Vec<(u64, TableId, Key, u64)> {
    rows_of(ROWS)
}

/// The same where partitions have so many rows, [`ROWS`] at most.
pub fn rows_of(rows: u64) -> Vec<(u64, TableId, Key, u64)> {
    let mut loaded = Vec::new();
    for partition in 0..PARTITIONS {
        for row in 0..rows {
            let key = key(partition, row);
            if row % 2 == 0 {
                loaded.push((partition, POINT, key.clone(), 0));
                loaded.push((partition, LIST, key.clone(), 0));
                loaded.push((partition, COPIED, key.clone(), 0));
            }
            loaded.push((partition, ACCOUNT, key, BALANCE));
        }
        loaded.push((partition, COUNTER, key(partition, 0), 0));
    }
    loaded
}

impl<O: Observer> Client<O> {
    /// One transaction of any kind.
    pub async fn random(&mut self) {
        self.random_of(ROWS).await;
    }

    /// The same where partitions have so many rows: see [`rows_of`].
    pub async fn random_of(&mut self, rows: u64) {
        match self.rng.below(10) {
            0..=3 => self.interactive(rows).await,
            4 => self.look(rows).await,
            5 | 6 => self.transfer(rows).await,
            7 => self.audit(rows).await,
            8 => self.draw().await,
            _ => self.mix(rows).await,
        }
    }

    fn random_key(&mut self, rows: u64) -> Key {
        key(self.rng.below(PARTITIONS), self.rng.below(rows))
    }

    fn random_table(&mut self) -> TableId {
        [POINT, POINT, LIST, LIST, COPIED][self.rng.below(5) as usize]
    }

    fn random_scan(&mut self, rows: u64) -> Scan {
        let column = [LIST, LIST, LIST, COPIED][self.rng.below(4) as usize].row();
        let partition = self.rng.below(PARTITIONS);
        let scan = match self.rng.below(4) {
            0 => Scan::prefix(column, Key::MIN),
            1 => Scan::prefix(column, all(partition)),
            _ => {
                let low = self.rng.below(rows);
                Scan::range(column, key(partition, low), key(partition, low + 1 + self.rng.below(3)))
            }
        };
        let limited = self.rng.below(4) == 0;
        let scan = if limited { scan.limit(1 + self.rng.below(3) as usize) } else { scan };
        self.in_some_order(scan)
    }

    fn in_some_order(&mut self, scan: Scan) -> Scan {
        if self.either_order && self.rng.below(2) == 0 { scan.descending() } else { scan }
    }

    fn staleness(&mut self) -> u64 {
        [0, 0, 200_000, MAX_STALENESS_NS][self.rng.below(4) as usize]
    }

    /// Interactive, read-write, until it commits or has had enough.
    async fn interactive(&mut self, rows: u64) {
        let attempt = self.attempt(0);
        for tries in 0..20 {
            let begin = self.begin();
            let (number, mut seen) = (self.next_number(), Seen::new());
            match self.interact(attempt, rows, number, &mut seen).await {
                Ok(Some(committed)) => {
                    let snapshot = self.pair.has_snapshots() && !self.pair.has_locks();
                    let read_only = snapshot && committed.writes == 0;
                    self.record(Ended { label: "interactive", read_only, begin, number, seen, committed });
                    return;
                }
                Ok(None) | Err(Abort::User) => {
                    self.failed("interactive", Abort::User);
                    return;
                }
                Err(abort) => {
                    self.failed("interactive", abort);
                    self.left.aborts += 1;
                    self.back_off(tries, begin).await;
                }
            }
        }
    }

    async fn interact(
        &mut self,
        attempt: Attempt,
        rows: u64,
        own: u64,
        seen: &mut Seen,
    ) -> Result<Option<Committed>, Abort> {
        let (shard, value) = (self.shard.clone(), own.to_be_bytes());
        let shard = interactive(&*shard);
        let mut transaction = shard.begin(attempt, false).await?;
        self.attempts("interactive", shard.id(&transaction));
        let mut see = |column, key: Key, value: &[u8]| {
            if number(value) != own {
                seen.push((column, key, number(value)));
            }
        };
        for _ in 0..1 + self.rng.below(5) {
            let (table, key) = (self.random_table(), self.random_key(rows));
            match self.rng.below(10) {
                0..=3 => {
                    if let Some(value) = shard.get(&mut transaction, table.row(), &key).await? {
                        see(table.row(), key, &value);
                    }
                }
                4 | 5 => shard.put(&mut transaction, table.row(), &key, &value).await?,
                6 => {
                    if shard.get(&mut transaction, table.row(), &key).await?.is_none() {
                        shard.insert(&mut transaction, table, &key, &[&value]).await?;
                    }
                }
                7 => shard.delete(&mut transaction, table, &key).await?,
                _ => {
                    let scan = self.random_scan(rows);
                    let found = shard.scan(&mut transaction, &scan).await?;
                    let sorted = found.is_sorted_by(|(a, _), (b, _)| scan.order.compare(a, b).is_lt());
                    assert!(sorted, "a scan is in its order");
                    assert!(found.len() <= scan.limit, "a scan keeps its limit");
                    found.into_iter().for_each(|(key, value)| see(scan.column, key, &value));
                }
            }
            self.dawdle().await;
        }
        if self.rng.below(10) == 0 {
            shard.rollback(transaction).await;
            return Ok(None);
        }
        shard.commit(transaction).await.map(Some)
    }

    /// Interactive and read-only.
    async fn look(&mut self, rows: u64) {
        let staleness_ns = self.staleness();
        let (begin, mut seen) = (self.begin() - staleness_ns, Seen::new());
        match self.looked(staleness_ns, rows, &mut seen).await {
            Ok(committed) => {
                self.record(Ended { label: "look", read_only: true, begin, number: 0, seen, committed });
            }
            Err(abort) => {
                self.failed("look", abort);
                self.unread(abort);
            }
        }
    }

    async fn looked(&mut self, staleness_ns: u64, rows: u64, seen: &mut Seen) -> Result<Committed, Abort> {
        let (shard, attempt) = (self.shard.clone(), self.attempt(staleness_ns));
        let shard = interactive(&*shard);
        let mut transaction = shard.begin(attempt, true).await?;
        self.attempts("look", shard.id(&transaction));
        for _ in 0..1 + self.rng.below(6) {
            if self.rng.below(3) == 0 {
                let scan = self.random_scan(rows);
                for (key, value) in shard.scan(&mut transaction, &scan).await? {
                    seen.push((scan.column, key, number(&value)));
                }
            } else {
                let (table, key) = (self.random_table(), self.random_key(rows));
                if let Some(value) = shard.get(&mut transaction, table.row(), &key).await? {
                    seen.push((table.row(), key, number(&value)));
                }
            }
            self.dawdle().await;
        }
        shard.commit(transaction).await
    }

    async fn transfer(&mut self, rows: u64) {
        let mut procedure = Transfer {
            from: (self.rng.below(PARTITIONS), self.rng.below(rows)),
            to: (self.rng.below(PARTITIONS), self.rng.below(rows)),
            amount: 1 + self.rng.below(10),
            balance: 0,
        };
        if procedure.from == procedure.to {
            return;
        }
        let (begin, attempt) = (self.begin(), self.attempt(0));
        if let Ok(Some(committed)) = self.procedure("transfer", attempt, &mut procedure).await {
            let seen = Seen::new();
            self.record(Ended { label: "transfer", read_only: false, begin, number: 0, seen, committed });
        }
    }

    async fn audit(&mut self, rows: u64) {
        let staleness_ns = self.staleness();
        let (begin, attempt) = (self.begin() - staleness_ns, self.attempt(staleness_ns));
        let mut procedure = Audit { sums: [0; PARTITIONS as usize] };
        if let Ok(Some(committed)) = self.procedure("audit", attempt, &mut procedure).await {
            let (sum, expected) = (procedure.sums.iter().sum::<u64>(), PARTITIONS * rows * BALANCE);
            if sum != expected {
                self.left.torn.push(format!("{:?} saw {sum} in all accounts, not {expected}", committed.id));
            }
            let seen = Seen::new();
            self.record(Ended { label: "audit", read_only: true, begin, number: 0, seen, committed });
        }
    }

    async fn draw(&mut self) {
        let counter = self.rng.below(PARTITIONS);
        let mut procedure = Draw { counter, rows: self.rng.below(PARTITIONS), drawn: 0 };
        let (begin, attempt) = (self.begin(), self.attempt(0));
        match self.procedure("draw", attempt, &mut procedure).await {
            Ok(Some(committed)) => {
                let seen = Seen::new();
                self.record(Ended { label: "draw", read_only: false, begin, number: 0, seen, committed });
            }
            Ok(None) => {}
            Err(_) => {
                self.left.broken.push(format!("number {} of counter {counter} was taken", procedure.drawn))
            }
        }
    }

    async fn mix(&mut self, rows: u64) {
        let own = self.next_number();
        let stages = (0..1 + self.rng.below(2))
            .map(|_| {
                (0..1 + self.rng.below(3))
                    .map(|_| {
                        let partition = self.rng.below(PARTITIONS);
                        let operations = (0..1 + self.rng.below(3)).map(|_| {
                            let table = self.random_table();
                            let row = key(partition, self.rng.below(rows));
                            match self.rng.below(6) {
                                0 => Operation::Get(table, row),
                                1 => Operation::Update(table, row),
                                2 => Operation::Put(table, row),
                                3 => Operation::Insert(table, row),
                                4 => Operation::Delete(table, row),
                                _ => {
                                    let low = self.rng.below(rows);
                                    let high = key(partition, low + 1 + self.rng.below(3));
                                    let list = if table == COPIED { COPIED } else { LIST };
                                    let scan = Scan::range(list.row(), key(partition, low), high);
                                    Operation::Scan(self.in_some_order(scan))
                                }
                            }
                        });
                        (partition, operations.collect::<Vec<_>>())
                    })
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>();
        let mut procedure = Mix { stages, own, seen: BTreeMap::new() };
        let (begin, attempt) = (self.begin(), self.attempt(0));
        if let Ok(Some(committed)) = self.procedure("mix", attempt, &mut procedure).await {
            let seen = procedure.seen.into_values().flatten().collect();
            self.record(Ended { label: "mix", read_only: false, begin, number: own, seen, committed });
        }
    }
}

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

plimsoll_txn::executable!(Transfer);

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
        reads.scan(Scan::prefix(ACCOUNT.row(), all(piece.number as u64)));
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let sum = &mut self.sums[piece.number];
        *sum = 0;
        access.scan(&Scan::prefix(ACCOUNT.row(), all(piece.number as u64)), |_, value| {
            *sum += number(value);
            ControlFlow::Continue(())
        })
    }
}

plimsoll_txn::executable!(Audit);

/// Draws a number from a counter and inserts a row under it, perhaps on another shard. The number
/// is never taken.
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

plimsoll_txn::executable!(Draw);

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
        self.stages[piece.stage][piece.number].1.iter().for_each(|operation| operation.reads(reads));
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (own, mut seen) = (self.own, Seen::new());
        for operation in &self.stages[piece.stage][piece.number].1 {
            operation.execute(own, &mut seen, access)?;
        }
        seen.retain(|(_, _, number)| *number != own);
        self.seen.insert((piece.stage, piece.number), seen);
        Ok(())
    }
}

plimsoll_txn::executable!(Mix);

/// Reads and writes all rows there may be, and all accounts and counters, while nothing else runs.
pub async fn rewrite_all(shard: &dyn AnyShard) -> Result<Committed, Abort> {
    // Fresh enough for an oracle to have heard of everything, if it has been asked by now.
    shard.sleep(5_000_000).await;
    let attempt = Attempt { age: shard.clock().0, freshness: Freshness::default() };
    let shard = interactive(shard);
    let mut transaction = shard.begin(attempt, false).await?;
    for partition in 0..PARTITIONS {
        for table in [LIST, ACCOUNT, NUMBERED, COPIED] {
            let scan = Scan::prefix(table.row(), all(partition));
            for (key, value) in shard.scan(&mut transaction, &scan).await? {
                shard.put(&mut transaction, table.row(), &key, &value).await?;
            }
        }
        for (table, rows) in [(POINT, ROWS), (COUNTER, 1)] {
            for row in 0..rows {
                let key = key(partition, row);
                let value = shard.get(&mut transaction, table.row(), &key).await?;
                let value = value.unwrap_or_else(|| 0u64.to_be_bytes().to_vec());
                shard.put(&mut transaction, table.row(), &key, &value).await?;
            }
        }
    }
    shard.commit(transaction).await
}

/// Values that are not what the recorded writer of the version wrote. What the writers in `unknown`
/// wrote is not known.
pub fn wrong_values(
    left: &ClientResults,
    installs: &[Vec<Install>],
    unknown: &BTreeSet<TxnId>,
) -> Vec<String> {
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
        let mut told: BTreeMap<(ColumnGroup, &Key), Vec<Option<u64>>> = BTreeMap::new();
        for (column, key, stamp) in reads.chain(scanned) {
            let writer = writers.get(&(column, key, stamp));
            let number = writer.and_then(|writer| numbers.get(writer)).copied().unwrap_or_default();
            let number = (!writer.is_some_and(|writer| unknown.contains(writer))).then_some(number);
            told.entry((column, key)).or_default().push(number);
        }
        for (column, key, number) in seen {
            let told = told.get(&(*column, key)).into_iter().flatten();
            if !told.into_iter().any(|told| told.is_none_or(|told| told == *number)) {
                wrong.push(format!(
                    "{} {txn:?} saw {number:x} in table {} {key:?}",
                    recorded.label, column.table.0
                ));
            }
        }
    }
    wrong
}
