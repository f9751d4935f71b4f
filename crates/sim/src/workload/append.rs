//! List-append: every value is a list, every write appends the transaction's own number to one.
//!
//! A list that is read tells the whole history of its key, in order, so a checker that knows
//! nothing of versions or timestamps can find the dependencies (Kingsbury and Alvaro, *Elle*, VLDB
//! 2020). This is the workload whose histories are exported for such checkers ([`crate::export`]).

use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::attempt::{Attempt, Committed};
use plimsoll_types::{Abort, IndexKind, Key, Partitioning, TableId, TableSpec, Timestamp};

use crate::client::{Client, Ended, Observer, Seen, interactive};

/// How many lists there are at most.
pub const KEYS: u64 = 6;

const LISTS: TableId = TableId(0);

/// The tables.
pub fn tables() -> Vec<TableSpec> {
    vec![TableSpec::new("list", IndexKind::Hash, Partitioning::Modulo { bytes: 8 })]
}

/// How an attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It committed.
    Committed,
    /// It aborted, and left nothing behind.
    Aborted,
    /// Its client crashed before it was answered.
    Unknown,
}

/// One attempt of a transaction, as its client saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempted {
    /// Whose it was.
    pub session: u32,
    /// When it began, in nanoseconds of an outside observer. In a world no two beginnings or ends
    /// are at one time: what happens in one nanosecond is spread over the next ones, in its order.
    pub begin: u64,
    /// When it was answered, or its client crashed, likewise.
    pub end: u64,
    /// What became of it.
    pub how: End,
    /// Whether it read at a snapshot, which may be older than its beginning.
    pub snapshot: bool,
    /// Its timestamp, if it committed and has one.
    pub timestamp: Option<Timestamp>,
    /// What it did, as far as it came.
    pub operations: Vec<Operation>,
}

/// One operation of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// This number was appended to the list of this key.
    Append(u64, u64),
    /// The list of this key was read and held these numbers.
    Read(u64, Vec<u64>),
}

fn label(look: bool) -> &'static str {
    if look { "read" } else { "append" }
}

fn numbers(value: Option<Vec<u8>>) -> Vec<u64> {
    let value = value.unwrap_or_default();
    value.chunks_exact(8).map(|bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes"))).collect()
}

impl<O: Observer> Client<O> {
    /// One transaction of a few reads and appends to so many lists, [`KEYS`] at most.
    pub async fn append(&mut self, lists: u64) {
        let look = self.one_in(3);
        let label = label(look);
        let attempt = self.attempt(0);
        for tries in 0..20 {
            let (begin, moment) = (self.begin(), self.observer.moment());
            self.left.appended.push(Attempted {
                session: self.session,
                begin: moment,
                end: moment,
                how: End::Unknown,
                snapshot: look,
                timestamp: None,
                operations: Vec::new(),
            });
            let result = self.read_and_append(attempt, look, lists).await;
            let end = self.observer.moment();
            let attempted = self.left.appended.last_mut().expect("it was just pushed");
            attempted.end = end;
            match result {
                Ok(committed) => {
                    // Under OCC with snapshots a transaction that wrote nothing has only looked at
                    // its own.
                    let snapshot = self.pair.has_snapshots() && !self.pair.has_locks();
                    let read_only = look || snapshot && committed.writes == 0;
                    (attempted.snapshot, attempted.how) = (read_only, End::Committed);
                    attempted.timestamp = committed.stamp;
                    self.record(Ended { label, read_only, begin, number: 0, seen: Seen::new(), committed });
                    return;
                }
                Err(abort) => {
                    attempted.how = End::Aborted;
                    self.failed(label, abort);
                    match look && self.pair.reads_at_snapshots() {
                        true => self.unread(abort),
                        false => self.left.aborts += 1,
                    }
                }
            }
            self.back_off(tries, begin).await;
        }
    }

    /// The present attempt does something.
    fn appended(&mut self, operation: Operation) {
        let attempted = self.left.appended.last_mut().expect("an attempt has begun");
        attempted.operations.push(operation);
    }

    async fn read_and_append(
        &mut self,
        attempt: Attempt,
        look: bool,
        lists: u64,
    ) -> Result<Committed, Abort> {
        let shard = self.shard.clone();
        let shard = interactive(&*shard);
        let mut txn = shard.begin(attempt, look).await?;
        self.attempts(label(look), shard.id(&txn));
        for _ in 0..1 + self.rng.below(4) {
            let list = self.rng.below(lists);
            let key = Key::of_u64(list);
            let mut value = shard.get(&mut txn, LISTS.row(), &key).await?;
            if look || self.one_in(2) {
                self.appended(Operation::Read(list, numbers(value)));
            } else {
                let number = self.next_number();
                value.get_or_insert_default().extend(number.to_be_bytes());
                self.appended(Operation::Append(list, number));
                shard.put(&mut txn, LISTS.row(), &key, &value.unwrap_or_default()).await?;
            }
            self.dawdle().await;
        }
        shard.commit(txn).await
    }
}

/// All lists that there may be, in one transaction that only reads.
pub async fn read_all(shard: &dyn AnyShard, attempt: Attempt) -> Result<Vec<(u64, Vec<u64>)>, Abort> {
    let shard = interactive(shard);
    let mut txn = shard.begin(attempt, true).await?;
    let mut lists = Vec::new();
    for list in 0..KEYS {
        lists.push((list, numbers(shard.get(&mut txn, LISTS.row(), &Key::of_u64(list)).await?)));
    }
    shard.commit(txn).await?;
    Ok(lists)
}
