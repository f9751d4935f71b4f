//! Which transactions of other coordinators are over: decided on all their servers. They must never
//! start again.
//!
//! Between processes a START may come late: whoever goes on with a transaction may be overtaken by
//! its coordinator. So a server remembers the numbers of what has ended, as ranges. Now and then a
//! coordinator says which of its attempts are not settled; all others up to the present one are
//! over, and their ranges become one. What it has said in a life stays true in the next; of the
//! attempts that were under way when that life ended, some may have to be started here to be
//! finished.
//!
//! So there are as many ranges as attempts under way at once, of all lives, and a few more that
//! have ended since it was said. What hangs costs one gap, however long it does.

use std::collections::BTreeMap;
use std::ops::Range;

use plimsoll_types::{ShardId, TxnId};

/// What a server knows to be over.
#[derive(Debug, Default)]
pub struct Over {
    coordinators: BTreeMap<ShardId, Numbers>,
}

/// Numbers, as ranges that do not touch: by first, the end.
#[derive(Debug, Default)]
struct Numbers(BTreeMap<u64, u64>);

impl Over {
    /// A transaction has ended.
    pub fn ended(&mut self, txn: TxnId) {
        let numbers = self.coordinators.entry(txn.coordinator).or_default();
        numbers.add(txn.number..txn.number.saturating_add(1));
    }

    /// All attempts of a coordinator with these numbers are settled, but for those in `open`, which
    /// is sorted. Returns the first that was not known to be.
    pub fn settled(&mut self, coordinator: ShardId, numbers: Range<u64>, open: &[u64]) -> u64 {
        let over = self.coordinators.entry(coordinator).or_default();
        let news = over.end_of(numbers.start).unwrap_or(numbers.start);
        let mut from = numbers.start;
        for &number in open.iter().filter(|number| numbers.contains(number)) {
            over.add(from..number);
            from = from.max(number.saturating_add(1));
        }
        over.add(from..numbers.end);
        news
    }

    /// Whether a transaction is over.
    pub fn contains(&self, txn: TxnId) -> bool {
        let numbers = self.coordinators.get(&txn.coordinator);
        numbers.is_some_and(|numbers| numbers.end_of(txn.number).is_some())
    }

    /// How many ranges are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.coordinators.values().map(|numbers| numbers.0.len()).sum()
    }
}

impl Numbers {
    /// Where the range ends that a number is in.
    fn end_of(&self, number: u64) -> Option<u64> {
        let (_, &end) = self.0.range(..=number).next_back()?;
        (number < end).then_some(end)
    }

    fn add(&mut self, Range { mut start, mut end }: Range<u64>) {
        if start >= end {
            return;
        }
        // One after the other those that it touches become part of it.
        while let Some((&first, &last)) = self.0.range(..=end).next_back().filter(|(_, last)| **last >= start)
        {
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
    }
}
