//! Transactions of other coordinators that are over: decided on all their servers. They must never
//! start again.
//!
//! Between processes a START may come late: a server that continues a transaction may be overtaken
//! by its coordinator. So each server remembers the numbers of ended transactions, as ranges. From
//! time to time a coordinator says which of its attempts are not settled; all others up to the
//! present one are over, and their ranges become one. Its statements in one life stay true in the
//! next. Of the attempts that were running when that life ended, some may still have to start here
//! in order to be finished.
//!
//! So the number of ranges is at most the number of attempts that run at once, of all lives, plus a
//! few that have ended since the coordinator's last message. An attempt that hangs costs one gap,
//! however long it hangs.

use std::collections::BTreeMap;
use std::ops::Range;

use plimsoll_types::{ShardId, TxnId};

/// The transactions that a server knows to be over.
#[derive(Debug, Default)]
pub struct Over {
    coordinators: BTreeMap<ShardId, Numbers>,
}

/// A set of numbers, as ranges that do not touch: from the first number to the end.
#[derive(Debug, Default)]
struct Numbers(BTreeMap<u64, u64>);

impl Over {
    /// A transaction has ended.
    pub fn ended(&mut self, txn: TxnId) {
        let numbers = self.coordinators.entry(txn.coordinator).or_default();
        numbers.add(txn.number..txn.number.saturating_add(1));
    }

    /// All attempts of a coordinator with these numbers are settled, except for those in `open`,
    /// which is sorted. Returns the first number that this server did not know to be settled.
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

    /// What is over: by coordinator, ranges of numbers.
    pub fn ranges(&self) -> impl Iterator<Item = (ShardId, Range<u64>)> + '_ {
        self.coordinators.iter().flat_map(|(&coordinator, numbers)| {
            numbers.0.iter().map(move |(&first, &end)| (coordinator, first..end))
        })
    }

    /// How many ranges are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.coordinators.values().map(|numbers| numbers.0.len()).sum()
    }
}

impl Numbers {
    /// The end of the range that contains a number.
    fn end_of(&self, number: u64) -> Option<u64> {
        let (_, &end) = self.0.range(..=number).next_back()?;
        (number < end).then_some(end)
    }

    fn add(&mut self, Range { mut start, mut end }: Range<u64>) {
        if start >= end {
            return;
        }
        // Merge the ranges that it touches into it, one after the other.
        while let Some((&first, &last)) = self.0.range(..=end).next_back().filter(|(_, last)| **last >= start)
        {
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
    }
}
