//! Cycle: a ring of keys, each naming the next.
//!
//! A transaction takes three neighbours a → b → c → d and turns them into a → c → b → d. However
//! many do so at once, the ring stays one ring with all its keys, if they are serializable; any
//! lost update, write skew or torn read breaks it sooner or later, and the next transaction that
//! walks it sees the smallest breach. (The workload is that of FoundationDB's simulator.) Walkers
//! go round in a snapshot and must come back after exactly as many steps as there are keys.

use plimsoll_txn::any_shard::{InteractiveShard, TransactionHandle};
use plimsoll_txn::attempt::{Attempt, Committed};
use plimsoll_types::{Abort, IndexKind, Key, Partitioning, TableId, TableSpec};

use super::operation::number;
use crate::client::{Client, Ended, Observer, Seen, interactive};

/// Keys of the ring at most. Each has the slot of its number, so neighbours are on different
/// shards, but perhaps for the last and the first.
pub const KEYS: u64 = 8;
/// And at least: a, b and c must differ, d may be a.
pub const KEYS_MIN: u64 = 3;

const RING: TableId = TableId(0);

/// The tables.
pub fn tables() -> Vec<TableSpec> {
    vec![TableSpec::new("ring", IndexKind::Hash, Partitioning::Modulo { bytes: 8 })]
}

/// The rows of a ring of so many keys at the beginning: key and next.
pub fn rows(keys: u64) -> Vec<(u64, TableId, Key, u64)> {
    (0..keys).map(|key| (key, RING, Key::of_u64(key), (key + 1) % keys)).collect()
}

impl<O: Observer> Client<O> {
    /// One turn or one walk in a ring of so many keys.
    pub async fn cycle(&mut self, keys: u64) {
        let walk = self.one_in(4);
        let label = if walk { "walk" } else { "turn" };
        let attempt = self.attempt(0);
        for tries in 0..20 {
            let (begin, start) = (self.begin(), self.rng.below(keys));
            let ended = match walk {
                true => self.walk(attempt, start, keys).await,
                false => self.turn(attempt, start).await,
            };
            match ended {
                Ok(committed) => {
                    self.record(Ended {
                        label,
                        read_only: walk,
                        begin,
                        number: 0,
                        seen: Seen::new(),
                        committed,
                    });
                    return;
                }
                Err(abort) => {
                    self.failed(label, abort);
                    match walk && self.pair.reads_at_snapshots() {
                        true => self.unread(abort),
                        false => self.left.aborts += 1,
                    }
                }
            }
            self.back_off(tries, begin).await;
        }
    }

    async fn turn(&mut self, attempt: Attempt, a: u64) -> Result<Committed, Abort> {
        let shard = self.shard.clone();
        let shard = interactive(&*shard);
        let mut txn = shard.begin(attempt, false).await?;
        self.attempts("turn", shard.id(&txn));
        let b = next(shard, &mut txn, a).await?;
        let c = next(shard, &mut txn, b).await?;
        self.dawdle().await;
        let d = next(shard, &mut txn, c).await?;
        for (key, next) in [(a, c), (c, b), (b, d)] {
            shard.put(&mut txn, RING.row(), &Key::of_u64(key), &next.to_be_bytes()).await?;
        }
        shard.commit(txn).await
    }

    async fn walk(&mut self, attempt: Attempt, start: u64, keys: u64) -> Result<Committed, Abort> {
        let shard = self.shard.clone();
        let shard = interactive(&*shard);
        let mut txn = shard.begin(attempt, true).await?;
        self.attempts("walk", shard.id(&txn));
        let (mut at, mut way) = (start, Vec::new());
        loop {
            way.push(at);
            at = next(shard, &mut txn, at).await?;
            if at == start || way.len() as u64 > keys {
                break;
            }
        }
        let committed = shard.commit(txn).await?;
        if way.len() as u64 != keys {
            self.left.torn.push(format!("{:?} walked {way:?} and back to {at}", committed.id));
        }
        Ok(committed)
    }
}

/// The key that a key of the ring names.
async fn next(shard: &dyn InteractiveShard, txn: &mut TransactionHandle, key: u64) -> Result<u64, Abort> {
    let next = shard.get(txn, RING.row(), &Key::of_u64(key)).await?;
    Ok(number(&next.expect("no key of the ring is ever deleted")))
}
