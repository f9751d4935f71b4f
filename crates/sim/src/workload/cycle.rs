//! Cycle: a ring of keys, each naming the next.
//!
//! A transaction takes three neighbours a → b → c → d and turns them into a → c → b → d. However many do so at once,
//! the ring stays one ring with all its keys, if they are serializable; any lost update, write skew or torn read
//! breaks it sooner or later, and the smallest breach is seen by the next who walks it. (The workload is that of
//! FoundationDB's simulator.) Walkers go round in a snapshot and must come back after exactly as many steps
//! as there are keys.

use plimsoll_txn::attempt::{Attempt, Committed};
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::pairs::InteractivePair;
use plimsoll_txn::timestamp::{ReadOnly, Scheme};
use plimsoll_types::{Abort, IndexKind, Key, Partitioning, TableId, TableSpec};

use super::operation::number;
use crate::client::{Client, Ended, Observer, Seen};

/// Keys of the ring at most. Each has the slot of its number, so neighbours are on different shards, but perhaps for the
/// last and the first.
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

impl<P: InteractivePair, O: Observer> Client<P, O> {
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
                    match walk && P::Scheme::READ_ONLY == ReadOnly::Snapshot {
                        true => self.unread(abort),
                        false => self.left.aborts += 1,
                    }
                }
            }
            self.back_off(tries, begin).await;
        }
    }

    async fn next(&self, txn: &mut Transaction<P::Scheme>, key: u64) -> Result<u64, Abort> {
        let next = txn.get(&self.env, RING.row(), &Key::of_u64(key)).await?;
        Ok(number(&next.expect("no key of the ring is ever deleted")))
    }

    async fn turn(&mut self, attempt: Attempt, a: u64) -> Result<Committed, Abort> {
        let env = self.env.clone();
        let mut txn = Transaction::begin(&env, attempt, false).await?;
        self.attempts("turn", txn.id());
        let b = self.next(&mut txn, a).await?;
        let c = self.next(&mut txn, b).await?;
        self.dawdle().await;
        let d = self.next(&mut txn, c).await?;
        for (key, next) in [(a, c), (c, b), (b, d)] {
            txn.put(&env, RING.row(), &Key::of_u64(key), &next.to_be_bytes()).await?;
        }
        txn.commit(&env).await
    }

    async fn walk(&mut self, attempt: Attempt, start: u64, keys: u64) -> Result<Committed, Abort> {
        let env = self.env.clone();
        let mut txn = Transaction::begin(&env, attempt, true).await?;
        self.attempts("walk", txn.id());
        let (mut at, mut way) = (start, Vec::new());
        loop {
            way.push(at);
            at = self.next(&mut txn, at).await?;
            if at == start || way.len() as u64 > keys {
                break;
            }
        }
        let committed = txn.commit(&env).await?;
        if way.len() as u64 != keys {
            self.left.torn.push(format!("{:?} walked {way:?} and back to {at}", committed.id));
        }
        Ok(committed)
    }
}
