//! Snapshots that are held: what garbage collection knows of them.
//!
//! A snapshot is a vector of numbers, of a single one under schemes with scalar timestamps. A group
//! `first..=last` stands for all snapshots in between, so a set of any size has a short description
//! that covers all of it: neighbours become one group. Grouping costs only memory, for versions
//! that lie between two snapshots of a group are kept as well.
//!
//! Worked example: @5, @9 and @50 in two groups are @5..=@9 and @50..=@50. Of a record with
//! versions @1, @7, @20, @30 and @60 the two groups see @1, @7 and @30.

use crate::{ShardId, Timestamp};

/// The number of groups that a set of held snapshots is described by, at most.
pub const HELD_MAX: usize = 32;

/// A group of snapshots that are held, one value per slot of the scheme's vectors.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Held {
    /// No snapshot of the group is below.
    pub first: Vec<u64>,
    /// No snapshot of the group is above.
    pub last: Vec<u64>,
    /// When the one that has been held longest was begun, by the clock of its process.
    pub since: Timestamp,
    /// The first shard of that process.
    pub holder: ShardId,
}

crate::wire!(struct Held { first, last, since, holder });

impl Held {
    /// A single snapshot.
    pub fn one(at: Vec<u64>, since: Timestamp, holder: ShardId) -> Held {
        Held { first: at.clone(), last: at, since, holder }
    }

    /// The same with `slots` values; a missing value may be any.
    pub fn padded(mut self, slots: usize) -> Held {
        self.first.resize(slots, 0);
        self.last.resize(slots, u64::MAX);
        self
    }

    /// Whether every snapshot of the other group belongs to this one.
    pub fn contains(&self, other: &Held) -> bool {
        let below = |a: &[u64], b: &[u64]| a.iter().zip(b).all(|(a, b)| a <= b);
        below(&self.first, &other.first) && below(&other.last, &self.last)
    }

    /// Covers the other group as well.
    fn join(&mut self, other: &Held) {
        self.first.iter_mut().zip(&other.first).for_each(|(mine, other)| *mine = (*mine).min(*other));
        self.last.iter_mut().zip(&other.last).for_each(|(mine, other)| *mine = (*mine).max(*other));
        (self.since, self.holder) = (self.since, self.holder).min((other.since, other.holder));
    }

    /// How far the other group begins above this one: about as much is kept if they become one.
    fn distance(&self, other: &Held) -> u64 {
        let slots = self.last.iter().zip(&other.first);
        slots.fold(0, |sum, (last, first)| u64::saturating_add(sum, first.saturating_sub(*last)))
    }
}

/// The same snapshots in at most [`HELD_MAX`] groups, the oldest first. Those become one group that
/// are closest to each other.
pub fn grouped(mut held: Vec<Held>) -> Vec<Held> {
    held.sort_unstable();
    held.dedup_by(|next, one| {
        let same = (&next.first, &next.last) == (&one.first, &one.last);
        if same {
            one.join(next);
        }
        same
    });
    let surplus = held.len().saturating_sub(HELD_MAX);
    if surplus == 0 {
        return held;
    }
    let mut gaps: Vec<(u64, usize)> = held.windows(2).map(|two| two[0].distance(&two[1])).zip(1..).collect();
    gaps.sort_unstable();
    let mut closed: Vec<usize> = gaps[..surplus].iter().map(|(_, place)| *place).collect();
    closed.sort_unstable();
    let mut groups: Vec<Held> = Vec::with_capacity(HELD_MAX);
    for (place, one) in held.into_iter().enumerate() {
        match groups.last_mut().filter(|_| closed.binary_search(&place).is_ok()) {
            Some(group) => group.join(&one),
            None => groups.push(one),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(at: &[u64]) -> Held {
        Held::one(at.to_vec(), Timestamp(at[0]), ShardId(3))
    }

    #[test]
    fn many_snapshots_are_described_by_few_groups_that_cover_them_all() {
        // A hundred snapshots of two slots, close together but for some.
        let at = |number: u64| number * 10 + (number / 4) * 1000;
        let all: Vec<Held> = (0..100).map(|number| one(&[at(number), number])).collect();
        let groups = grouped(all.iter().rev().cloned().collect());
        assert_eq!(groups.len(), HELD_MAX);
        assert!(all.iter().all(|one| groups.iter().any(|group| group.contains(one))));
        let longest = groups.iter().map(|group| group.last[0] - group.first[0]).max();
        assert!(longest < Some(1100), "what is far apart stays apart, as long as there is room");
        assert_eq!(grouped(all[..3].to_vec()), all[..3], "few stay as they are");
        let mut later = all[0].clone();
        (later.since, later.holder) = (Timestamp(9), ShardId(1));
        assert_eq!(grouped(vec![later, all[0].clone()]), all[..1], "the same counts once, as the older");
    }

    #[test]
    fn what_is_not_said_may_be_anything() {
        let padded = one(&[7]).padded(2);
        assert_eq!((padded.first, padded.last), (vec![7, 0], vec![7, u64::MAX]));
    }
}
