//! The ranges of a table that transactions have locked: exact predicates, no next keys.
//!
//! A transaction has one lock per table, and under it the union of its ranges there, kept as ranges
//! that do not overlap. So a lookup of a key takes time logarithmic in the number of a
//! transaction's ranges, however many it has locked, and linear in the number of transactions that
//! hold ranges of the table.
//!
//! Example: `[a, d)` and `[c, f)` become `[a, f)`. `[a, c)` and `[c, f)` stay as they are: the keys
//! of a hash table are ranges of one key each, and are told apart.

use std::collections::BTreeMap;

use plimsoll_types::{Key, TxnId};

use crate::lock::LockId;

/// The ranges of a table that one transaction has locked: inserts into them conflict with it.
#[derive(Debug)]
pub struct RangeLock {
    /// The transaction.
    pub txn: TxnId,
    /// Its lock.
    pub lock: LockId,
    /// From the first key of a range to the first key beyond it; `None` for the end of the table.
    ranges: BTreeMap<Key, Option<Key>>,
}

impl RangeLock {
    pub(crate) fn new(txn: TxnId, lock: LockId) -> RangeLock {
        RangeLock { txn, lock, ranges: BTreeMap::new() }
    }

    /// Adds a range, and joins it with those that it overlaps.
    pub(crate) fn add(&mut self, mut low: Key, mut high: Option<Key>) {
        if high.as_ref().is_some_and(|high| *high <= low) {
            return;
        }
        if let Some((first, end)) = self.ranges.range(..=&low).next_back()
            && end.as_ref().is_none_or(|end| *end > low)
        {
            low = first.clone();
        }
        while let Some((first, end)) = self.ranges.range(&low..).next()
            && high.as_ref().is_none_or(|high| first < high)
        {
            high = high.zip(end.clone()).map(|(high, end)| high.max(end));
            let first = first.clone();
            self.ranges.remove(&first);
        }
        self.ranges.insert(low, high);
    }

    /// Whether a key lies in one of the ranges.
    pub fn contains(&self, key: &Key) -> bool {
        let below = self.ranges.range(..=key).next_back();
        below.is_some_and(|(_, high)| high.as_ref().is_none_or(|high| key < high))
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, Option<&Key>)> {
        self.ranges.iter().map(|(low, high)| (low, high.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_types::ShardId;

    use super::*;

    fn lock() -> RangeLock {
        RangeLock::new(TxnId { coordinator: ShardId(0), number: 1 }, 0)
    }

    fn key(number: u64) -> Key {
        Key::of_u64(number)
    }

    #[test]
    fn a_key_is_locked_if_it_is_in_one_of_the_ranges_whatever_they_have_become() {
        let mut random = 1u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let (mut lock, mut model) = (lock(), Vec::new());
            for _ in 0..draw(12) {
                let (low, high) = (draw(20), (draw(8) > 0).then_some(draw(20)));
                lock.add(key(low), high.map(key));
                model.push((low, high));
                for at in 0..22 {
                    let locked =
                        model.iter().any(|&(low, high)| low <= at && high.is_none_or(|high| at < high));
                    assert_eq!(lock.contains(&key(at)), locked, "{at} in {model:?}");
                }
                let ranges: Vec<_> = lock.iter().collect();
                assert!(ranges.is_sorted_by(|one, next| one.1.is_some_and(|high| high <= next.0)));
            }
        }
    }

    #[test]
    fn a_range_that_is_locked_again_and_again_is_one_and_ranges_that_touch_are_two() {
        let mut lock = lock();
        for number in 0..1000 {
            lock.add(key(5), Some(key(10)));
            lock.add(key(20 + number % 7), None);
        }
        lock.add(key(10), Some(key(11)));
        let touching = [(&key(5), Some(&key(10))), (&key(10), Some(&key(11))), (&key(20), None)];
        assert!(lock.iter().eq(touching));
    }
}
