//! The oracle's counter: it gives numbers out, and knows who has which and which are reported.
//!
//! The counter keeps `stable`, up to which everything that this life has given out is reported, and
//! an owner for each number above. One number survives the oracle, because it bounds all others
//! (`reserved`). After a restart counting begins there (`first`). Numbers below `first` that somebody
//! still has are a set of their own (`old`): as long as one of them may be open the oracle publishes
//! nothing, although `stable` is above.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{ShardId, Timestamp};

/// A coordinator, in one of its lives.
pub(super) type Owner = (ShardId, u64);

/// How many numbers are reserved at a time; the log is written again when half of them are used.
const AHEAD: u64 = 1 << 16;

/// The oracle's own state.
#[derive(Debug, Default)]
pub(super) struct Counter {
    /// All numbers up to here that this life has given out are reported.
    pub(super) stable: u64,
    /// The owner of each number above stable that was given out; `None` if it was reported.
    issued: VecDeque<Option<Owner>>,
    /// The log has it that numbers up to this one may be given out.
    reserved: u64,
    /// The last number that former lives of the oracle may have given out.
    first: u64,
    /// Those of them that coordinators have said they have, and who has them.
    old: BTreeMap<u64, Owner>,
}

impl Counter {
    /// Gives out so many numbers. Returns the first.
    pub(super) fn fetch(&mut self, count: u64, owner: Owner) -> u64 {
        let first = self.last() + 1;
        self.issued.extend((0..count).map(|_| Some(owner)));
        first
    }

    /// The last number that was given out.
    fn last(&self) -> u64 {
        self.stable + self.issued.len() as u64
    }

    /// A number is installed everywhere, or stands for nothing.
    pub(super) fn report(&mut self, number: u64) {
        assert!(number <= self.last(), "only numbers that were issued are reported");
        self.old.remove(&number);
        // What was lost on its way and made good may come again.
        let Some(place) = number.checked_sub(self.stable + 1) else { return };
        self.issued[place as usize] = None;
        if planted(Mutant::GapIgnored) {
            self.issued.drain(..=place as usize);
            self.stable = number;
        }
        self.advance();
    }

    fn advance(&mut self) {
        while let Some(None) = self.issued.front() {
            self.issued.pop_front();
            self.stable += 1;
        }
    }

    /// All numbers of an owner but these stand for nothing, or are installed.
    pub(super) fn close(&mut self, owner: Owner, open: &BTreeSet<Timestamp>) {
        for (number, issued) in (self.stable + 1..).zip(&mut self.issued) {
            if *issued == Some(owner) && !open.contains(&Timestamp(number)) {
                *issued = None;
            }
        }
        self.old.retain(|&number, of| *of != owner || open.contains(&Timestamp(number)));
        self.advance();
    }

    /// The same, of a coordinator that has said so itself. It may have numbers that a former life of
    /// the oracle has given out.
    pub(super) fn resume(&mut self, owner: Owner, open: &BTreeSet<Timestamp>) {
        self.close(owner, open);
        let old = open.iter().map(|number| number.0).take_while(|&number| number <= self.first);
        self.old.extend(old.map(|number| (number, owner)));
    }

    /// Whether an owner has numbers.
    pub(super) fn has(&self, owner: Owner) -> bool {
        self.issued.contains(&Some(owner)) || self.has_old() && self.old.values().any(|of| *of == owner)
    }

    /// How many numbers are given out and not stable.
    pub(super) fn open(&self) -> u64 {
        (self.issued.len() + self.old.len()) as u64
    }

    /// Whether a coordinator has a number that a former life has given out.
    pub(super) fn has_old(&self) -> bool {
        !self.old.is_empty()
    }

    /// Whether the oracle had other lives.
    pub(super) fn has_former_lives(&self) -> bool {
        self.first > 0
    }

    /// Whether more numbers have to be reserved.
    pub(super) fn is_low(&self) -> bool {
        self.last() + AHEAD / 2 > self.reserved
    }

    /// Reserves more numbers. Returns the last of them, which the log must have before any number
    /// leaves.
    pub(super) fn reserve(&mut self) -> u64 {
        self.reserved = self.last() + AHEAD;
        self.reserved
    }

    /// The last number that is reserved.
    pub(super) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// A former life has reserved numbers up to this one.
    pub(super) fn restore(&mut self, reserved: u64) {
        self.reserved = self.reserved.max(reserved);
        self.first = self.reserved;
        self.stable = if planted(Mutant::NumbersReused) { 0 } else { self.first };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ShardId = ShardId(0);

    #[test]
    fn stable_waits_for_the_gap_to_close() {
        let mut counter = Counter::default();
        counter.fetch(9, (A, 1));
        (1..=6).for_each(|n| counter.report(n));
        counter.report(8);
        assert_eq!(counter.stable, 6);
        counter.report(7);
        assert_eq!(counter.stable, 8);
    }

    #[test]
    fn numbers_are_reserved_before_they_are_given_out_and_never_given_out_again() {
        let mut counter = Counter::default();
        assert!(counter.is_low(), "none is reserved");
        let reserved = counter.reserve();
        counter.fetch(AHEAD / 2, (A, 1));
        assert!(!counter.is_low());
        counter.fetch(1, (A, 1));
        assert!(counter.is_low(), "half of them are used");
        assert!(counter.reserve() > reserved);

        let mut next = Counter::default();
        [reserved, counter.reserved()].into_iter().for_each(|to| next.restore(to));
        assert!(next.has_former_lives() && next.is_low());
        assert_eq!(next.fetch(1, (A, 2)), counter.reserved() + 1);
    }

    #[test]
    fn numbers_of_a_former_life_are_open_until_they_are_reported() {
        let (mut counter, owner) = (Counter::default(), (A, 1));
        counter.restore(100);
        counter.resume(owner, &[7, 9].map(Timestamp).into());
        assert!(counter.has(owner) && counter.open() == 2);
        counter.report(7);
        // Over another channel it says that it has 9, and the next.
        let next = counter.fetch(2, owner);
        counter.resume(owner, &[9, next].map(Timestamp).into());
        assert_eq!((next, counter.open(), counter.has_old()), (101, 3, true));
        counter.report(9);
        assert!(!counter.has_old());
        counter.report(next);
        assert_eq!((counter.stable, counter.open()), (102, 0));
    }
}
