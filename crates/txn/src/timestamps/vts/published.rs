//! The vector that an oracle publishes, and what waits to get into it.
//!
//! Of a stamp that is *reported* it is known what it depends on. Of the stamps of a claim that is
//! over ([`super::claims`]) only an upper bound of what all of them together depend on is known:
//! they are *settled*. A vector may be published if it contains, with every stamp, what that
//! depends on. Reports alone have no cycles, since whoever depends on another was stamped later;
//! each is looked at when its predecessor is in, and again when what it waits for is
//! ([`Published::report`]). Upper bounds can make cycles:
//!
//! > X and Y are gone. X has read what Y wrote, so ⟨X, 1⟩ depends on ⟨Y, 1⟩. All that is known is
//! > that X has used stamps up to ⟨X, 9⟩ and Y up to ⟨Y, 9⟩, and that on the shards where they were
//! > there are versions of both. Each waits for the other. Both at once are a vector that may be
//! > published.
//!
//! So as long as something settled waits, the largest vector that may be published is looked for
//! ([`Published::close`]): from all that has been reported or settled, that is taken away whose
//! dependencies are not in it, until nothing changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Vector, join};

/// A stamp that is installed everywhere, with what it depends on; or one that stands for nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub(super) counter: u64,
    pub(super) slot: u16,
    /// The slots that it depends on, in order, and the largest counter of each.
    pub(super) dependencies: Vec<(u16, u64)>,
}

plimsoll_types::wire!(struct Report { counter, slot, dependencies });

/// All stamps of a slot up to one, of which none is left undecided.
#[derive(Debug)]
struct Settled {
    through: u64,
    /// An upper bound of what they depend on.
    dependencies: Vector,
    /// How many of them nobody has reported.
    unreported: u64,
}

/// The oracle's vector.
#[derive(Debug)]
pub struct Published {
    pub(super) vector: Vector,
    /// Per slot, reports that wait for a predecessor or a dependency.
    waiting: Vec<BTreeMap<u64, Arc<Report>>>,
    /// Per slot, the slot that its first report waits for.
    waits_for: Vec<Option<usize>>,
    /// The same the other way round: per slot, those to look at when it has advanced.
    awaited_by: Vec<Vec<usize>>,
    /// By slot, what is settled and not published.
    settled: BTreeMap<usize, Settled>,
    /// Whether anything has come since [`Published::close`] looked.
    news: bool,
    /// How many stamps in the vector nobody has reported.
    unreported: u64,
}

impl Published {
    pub(super) fn new(slots: usize) -> Published {
        Published {
            vector: vec![0; slots],
            waiting: vec![BTreeMap::new(); slots],
            waits_for: vec![None; slots],
            awaited_by: vec![Vec::new(); slots],
            settled: BTreeMap::new(),
            news: false,
            unreported: 0,
        }
    }

    /// How many reports are in the vector.
    pub(super) fn published(&self) -> u64 {
        self.vector.iter().sum::<u64>() - self.unreported
    }

    /// How many reports are not, and slots of which something is settled that is not.
    pub(super) fn unpublished(&self) -> u64 {
        let waiting: usize = self.waiting.iter().map(BTreeMap::len).sum();
        (waiting + self.settled.len()) as u64
    }

    /// A report, which may have come before.
    pub(super) fn report(&mut self, report: Arc<Report>) {
        let slot = usize::from(report.slot);
        let settled = self.settled.get(&slot).map_or(0, |settled| settled.through);
        if report.counter <= settled.max(self.vector[slot]) {
            return;
        }
        self.news = true;
        self.waiting[slot].insert(report.counter, report);
        self.look(vec![slot]);
    }

    /// All stamps of a slot up to this one are installed or stand for nothing, and depend on no
    /// more than this.
    pub(super) fn settle(&mut self, slot: usize, through: u64, dependencies: Vector) {
        if through <= self.vector[slot] {
            return;
        }
        self.news = true;
        let later = self.waiting[slot].split_off(&(through + 1));
        let reported = std::mem::replace(&mut self.waiting[slot], later).len() as u64;
        let from = self.vector[slot];
        let settled = self.settled.entry(slot).or_insert(Settled {
            through: from,
            dependencies: Vector::new(),
            unreported: 0,
        });
        settled.unreported += through - settled.through - reported;
        settled.through = through;
        dependencies.into_iter().enumerate().for_each(|(other, counter)| {
            join(&mut settled.dependencies, other, counter);
        });
    }

    /// Publishes what it can of these slots, and of those that wait for them.
    fn look(&mut self, mut slots: Vec<usize>) {
        while let Some(slot) = slots.pop() {
            while self.advance(slot) {
                for other in self.awaited_by[slot].drain(..) {
                    self.waits_for[other] = None;
                    slots.push(other);
                }
            }
        }
    }

    /// Publishes the next commit of a slot, if it may be.
    fn advance(&mut self, slot: usize) -> bool {
        if self.waits_for[slot].is_some() || self.settled.contains_key(&slot) {
            return false;
        }
        let Some(report) = self.waiting[slot].first_entry() else { return false };
        if *report.key() != self.vector[slot] + 1 {
            return false;
        }
        let missing = missing(slot, &report.get().dependencies, &self.vector);
        if let Some(other) = missing {
            self.waits_for[slot] = Some(other);
            self.awaited_by[other].push(slot);
            return false;
        }
        report.remove();
        self.vector[slot] += 1;
        true
    }

    /// Publishes what is settled, and all that hangs together with it, if it may be.
    pub(super) fn close(&mut self) {
        if self.settled.is_empty() || !std::mem::take(&mut self.news) {
            return;
        }
        let mut goal: Vector = (0..self.vector.len()).map(|slot| self.reach(slot, None)).collect();
        loop {
            let before = goal.clone();
            for slot in 0..goal.len() {
                if goal[slot] > self.vector[slot] {
                    goal[slot] = self.reach(slot, Some(&goal)).min(goal[slot]);
                }
            }
            if goal == before {
                break;
            }
        }
        let Published { vector, settled, unreported, .. } = self;
        settled.retain(|&slot, settled| {
            let waits = goal[slot] == vector[slot];
            *unreported += if waits { 0 } else { settled.unreported };
            waits
        });
        for (waiting, goal) in self.waiting.iter_mut().zip(&goal) {
            *waiting = waiting.split_off(&(goal + 1));
        }
        self.vector = goal;
        self.waits_for.fill(None);
        self.awaited_by.iter_mut().for_each(Vec::clear);
        self.look((0..self.vector.len()).collect());
    }

    /// How far a slot could be published without a gap if all others were published as far as this;
    /// if nothing is said of the others, without a look at what it depends on.
    fn reach(&self, slot: usize, others: Option<&Vector>) -> u64 {
        let mut reach = self.vector[slot];
        if let Some(Settled { through, dependencies, .. }) = self.settled.get(&slot) {
            let missing = |others: &Vector| {
                let mut dependencies = dependencies.iter().zip(others).enumerate();
                dependencies.any(|(other, (counter, known))| other != slot && counter > known)
            };
            if others.is_some_and(missing) {
                return reach;
            }
            reach = *through;
        }
        for (&counter, report) in &self.waiting[slot] {
            let missing = |others| missing(slot, &report.dependencies, others).is_some();
            if counter != reach + 1 || others.is_some_and(missing) {
                break;
            }
            reach = counter;
        }
        reach
    }
}

/// A slot that has not been published as far as a stamp of `slot` depends on it. Its own is settled
/// by the order of the counters.
fn missing(slot: usize, dependencies: &[(u16, u64)], vector: &Vector) -> Option<usize> {
    let mut others = dependencies.iter().map(|&(other, counter)| (usize::from(other), counter));
    others.find(|&(other, counter)| other != slot && counter > vector[other]).map(|(other, _)| other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(slot: u16, counter: u64, dependencies: &[(u16, u64)]) -> Arc<Report> {
        Arc::new(Report { slot, counter, dependencies: dependencies.to_vec() })
    }

    #[test]
    fn a_commit_is_published_after_its_predecessor_and_its_dependencies() {
        let mut published = Published::new(2);
        published.report(report(1, 1, &[(0, 1)]));
        assert_eq!(published.vector, [0, 0], "it read what slot 0 has not published");
        published.report(report(0, 2, &[]));
        assert_eq!(published.vector, [0, 0], "its predecessor is missing");
        published.report(report(0, 1, &[]));
        assert_eq!(published.vector, [2, 1]);
        published.report(report(0, 1, &[]));
        assert_eq!((published.published(), published.unpublished()), (3, 0), "it has come twice");
    }

    #[test]
    fn what_is_settled_waits_for_what_it_may_depend_on() {
        let mut published = Published::new(3);
        published.report(report(1, 1, &[(2, 4)]));
        published.settle(2, 10, vec![3, 1, 7]);
        published.close();
        assert_eq!(published.vector, [0, 0, 0], "slot 0 is missing, and slot 1 waits for slot 2");
        (1..=3).for_each(|counter| published.report(report(0, counter, &[])));
        published.close();
        assert_eq!(published.vector, [3, 1, 10], "slots 1 and 2 at once");
        assert_eq!((published.published(), published.unpublished()), (4, 0));
        published.report(report(2, 9, &[(0, 5)]));
        assert_eq!(published.unpublished(), 0, "it comes too late, and is in already");
    }

    #[test]
    fn two_that_are_gone_may_wait_for_each_other_and_for_who_came_after_them() {
        let mut published = Published::new(3);
        published.report(report(0, 1, &[(1, 2)]));
        published.settle(1, 10, vec![0, 0, 11]);
        published.settle(2, 10, vec![1, 0, 0]);
        published.close();
        assert_eq!(published.vector, [0, 0, 0], "11 is missing");
        published.report(report(2, 11, &[(0, 1)]));
        published.close();
        assert_eq!(published.vector, [1, 10, 11]);
    }

    proptest! {
        /// Transactions of some slots, stamped one after the other, each depending on earlier ones.
        /// Some slots end, with an upper bound for all their transactions. Everything comes in any
        /// order: the vector never contains a transaction without what it depends on, and contains
        /// everything in the end.
        #[test]
        fn a_vector_contains_what_it_depends_on_and_in_the_end_everything(
            drawn in prop::collection::vec((0..4u16, prop::collection::vec((0..4u16, 0..4u64), 0..3)), 1..40),
            ends in prop::collection::vec(any::<bool>(), 4),
            keys in prop::collection::vec(any::<u32>(), 44),
        ) {
            let mut next = [0u64; 4];
            let mut reports = Vec::new();
            for (slot, dependencies) in drawn {
                let earlier = |(other, back): (u16, u64)| {
                    (other, next[usize::from(other)].saturating_sub(back))
                };
                let dependencies: Vec<_> = dependencies.into_iter().map(earlier).collect();
                next[usize::from(slot)] += 1;
                reports.push(report(slot, next[usize::from(slot)], &dependencies));
            }
            let mut events: Vec<(u32, Result<Arc<Report>, usize>)> = Vec::new();
            for (report, &key) in reports.iter().zip(&keys) {
                // Some of what a slot has reported may have been lost with it.
                if !ends[usize::from(report.slot)] || key % 2 == 0 {
                    events.push((key, Ok(report.clone())));
                }
            }
            for slot in (0..4).filter(|&slot| ends[slot]) {
                events.push((keys[40 + slot], Err(slot)));
            }
            events.sort_by_key(|(key, _)| *key);
            let mut published = Published::new(4);
            for (_, event) in events {
                match event {
                    Ok(report) => published.report(report),
                    // All that is known of it: it may depend on anything that there was.
                    Err(slot) => published.settle(slot, next[slot] + 5, next.to_vec()),
                }
                published.close();
                for report in &reports {
                    let vector = &published.vector;
                    if report.counter <= vector[usize::from(report.slot)] {
                        prop_assert_eq!(missing(usize::from(report.slot), &report.dependencies, vector), None);
                    }
                }
            }
            for slot in 0..4 {
                prop_assert_eq!(published.vector[slot], next[slot] + if ends[slot] { 5 } else { 0 });
            }
            prop_assert_eq!(published.unpublished(), 0);
        }
    }
}
