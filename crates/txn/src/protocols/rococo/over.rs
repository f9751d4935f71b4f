//! Which transactions are over: decided on all their servers. They must never start again.
//!
//! Between processes a START may come late: whoever goes on with a transaction may be overtaken by its coordinator. So a server
//! remembers the numbers of what has ended, until the coordinator says below which one all of its attempts are settled.
//! What it has said in a life stays true in the next; of the numbers between, some may have to be started here to be
//! finished, and those that have ended stay remembered one by one: not more than were under way when that life ended.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_types::{ShardId, TxnId};

/// What a server knows to be over.
#[derive(Debug, Default)]
pub struct Over {
    coordinators: BTreeMap<ShardId, Coordinator>,
}

#[derive(Debug, Default)]
struct Coordinator {
    /// By first number of a life: all below this are settled.
    lives: BTreeMap<u64, u64>,
    /// Others that have ended.
    ended: BTreeSet<u64>,
}

impl Over {
    /// A transaction has ended.
    pub fn ended(&mut self, txn: TxnId) {
        if !self.contains(txn) {
            self.coordinators.entry(txn.coordinator).or_default().ended.insert(txn.number);
        }
    }

    /// A coordinator has settled all its attempts of a life, which begins at `first`, up to `below`.
    pub fn settled(&mut self, coordinator: ShardId, first: u64, below: u64) {
        let Coordinator { lives, ended } = self.coordinators.entry(coordinator).or_default();
        let settled = lives.entry(first).or_insert(first);
        *settled = below.max(*settled);
        let settled = *settled;
        ended.extract_if(first..settled, |_| true).for_each(drop);
    }

    /// Whether a transaction is over.
    pub fn contains(&self, txn: TxnId) -> bool {
        let Some(Coordinator { lives, ended }) = self.coordinators.get(&txn.coordinator) else {
            return false;
        };
        let life = lives.range(..=txn.number).next_back();
        life.is_some_and(|(_, below)| txn.number < *below) || ended.contains(&txn.number)
    }
}
