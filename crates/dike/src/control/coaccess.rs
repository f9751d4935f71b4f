//! Warehouses that are updated together, in one transaction (paper, section 4.3.2, "Skew
//! Co-access").
//!
//! A *co-access group* is a fixed set of warehouses on different nodes. A transaction of
//! dUpdateStock updates all warehouses of one group with a given probability, else as many distinct
//! warehouses at random: the paper's example has two items on two nodes that meet in 80 % of the
//! transactions. A database that notices may move a group onto one node and save the distributed
//! commit. The whole choice is one transaction; the caller commits once.
//!
//! Which group: any [`Chooser`], so that one group can be hot or the heat can move from group to
//! group. Groups of one warehouse are the paper's skewed partition access.
//!
//! With a known placement, [`groups`] takes one warehouse from each of `size` different nodes in
//! turn. With shares only, group g is every W/size-th warehouse from g on, which range partitions
//! keep apart. Example: 6 warehouses, two per group: {1, 4}, {2, 5}, {3, 6}.

use std::fmt;

use plimsoll_types::random::Rng;

use super::placement::Placement;
use super::skew::{Chooser, Moving, Skew, SkewError, SkewTally};
use super::track::{Control, Merge, Tracker};
use super::unit;

/// Groups, and how often they are used.
#[derive(Clone, Debug)]
pub struct CoAccess {
    groups: Vec<Vec<u32>>,
    together: f64,
    which: Chooser,
    all: Placement,
}

/// Why groups cannot be.
#[derive(Clone, Debug, PartialEq)]
pub enum CoAccessError {
    /// The probability is no share.
    Together(f64),
    /// No group of that size exists.
    TooLarge {
        /// Warehouses asked for in one group.
        size: u32,
        /// What there is: nodes of a known placement, else warehouses.
        most: u32,
    },
    /// What says which group is used makes no sense.
    Skew(SkewError),
}

impl From<SkewError> for CoAccessError {
    fn from(error: SkewError) -> CoAccessError {
        CoAccessError::Skew(error)
    }
}

impl fmt::Display for CoAccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoAccessError::Together(share) => {
                write!(f, "the probability of co-access is a share from 0 to 1, not {share}")
            }
            CoAccessError::TooLarge { size, most } => {
                write!(f, "a co-access group has 1 to {most} warehouses here, not {size}")
            }
            CoAccessError::Skew(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CoAccessError {}

/// As many disjoint groups of `size` warehouses as there can be, on different nodes if these are
/// known.
pub fn groups(placement: &Placement, size: u32) -> Result<Vec<Vec<u32>>, CoAccessError> {
    let (first, all) = (placement.first(), placement.warehouses());
    let known: Option<Vec<u32>> = (first..first + all).map(|w| placement.node(w)).collect();
    let most = if known.is_some() { placement.occupied() as u32 } else { all };
    if size == 0 || size > most {
        return Err(CoAccessError::TooLarge { size, most });
    }
    let Some(node_of) = known else {
        let count = all / size;
        return Ok((0..count).map(|g| (0..size).map(|i| first + g + i * count).collect()).collect());
    };
    let mut left: Vec<(u32, Vec<u32>)> =
        (0..placement.nodes() as u32).map(|node| (node, Vec::new())).collect();
    for (warehouse, node) in (first..first + all).zip(node_of).rev() {
        left[node as usize].1.push(warehouse);
    }
    let mut groups = Vec::new();
    // Always from the nodes that have most left, so that as many groups as possible come out.
    loop {
        left.sort_by_key(|(node, warehouses)| (std::cmp::Reverse(warehouses.len()), *node));
        if left[size as usize - 1].1.is_empty() {
            return Ok(groups);
        }
        let take = |(_, warehouses): &mut (u32, Vec<u32>)| warehouses.pop().expect("not empty");
        groups.push(left[..size as usize].iter_mut().map(take).collect());
    }
}

impl CoAccess {
    /// Groups of `size` warehouses. A transaction uses one with probability `together`, which one
    /// as `skew` says.
    pub fn new(
        placement: &Placement,
        size: u32,
        together: f64,
        skew: Skew,
        moving: Option<Moving>,
    ) -> Result<CoAccess, CoAccessError> {
        if !(0.0..=1.0).contains(&together) {
            return Err(CoAccessError::Together(together));
        }
        let groups = groups(placement, size)?;
        let mut which = Chooser::new(skew, groups.len() as u64)?;
        if let Some(moving) = moving {
            which = which.moving(moving)?;
        }
        Ok(CoAccess { groups, together, which, all: placement.clone() })
    }

    /// The groups.
    pub fn groups(&self) -> &[Vec<u32>] {
        &self.groups
    }

    /// Chooses the warehouses of one transaction, and says which group they are, if they are one.
    pub fn choose(&self, now_ns: u64, rng: &mut Rng, chosen: &mut Vec<u32>) -> Option<u64> {
        chosen.clear();
        let group = (unit(rng) < self.together).then(|| self.which.draw(now_ns, rng));
        if let Some(group) = group {
            chosen.extend_from_slice(&self.groups[group as usize]);
        } else {
            let (first, count) = (self.all.first(), self.all.warehouses());
            // Floyd's method, as in `distribution`.
            for j in count - self.groups[0].len() as u32..count {
                let drawn = first + rng.below(u64::from(j) + 1) as u32;
                chosen.push(if chosen.contains(&drawn) { first + j } else { drawn });
            }
        }
        group
    }
}

/// How often warehouses were used together.
#[derive(Clone, Debug, Default)]
pub struct CoAccessTally {
    together: Tracker,
    groups: SkewTally,
}

impl CoAccessTally {
    /// Counts a transaction.
    pub fn record(&mut self, now_ns: u64, co_access: &CoAccess, group: Option<u64>) {
        self.together.add(now_ns, co_access.together, f64::from(u8::from(group.is_some())));
        if let Some(group) = group {
            self.groups.record(now_ns, &co_access.which, group);
        }
    }

    /// Adds another terminal's.
    pub fn merge(&mut self, other: &CoAccessTally) {
        self.together.merge(&other.together);
        self.groups.merge(&other.groups);
    }

    /// The reports: how often warehouses were used together, and how skewed the groups were.
    pub fn finish(&self, co_access: &CoAccess) -> [Control; 2] {
        let together = self.together.finish("co-access", "share of transactions", Merge::Mean);
        [together, self.groups.finish(&co_access.which, "co-access groups")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_unknown_places_are_strides() {
        let placement = Placement::even(2, 6).expect("a placement");
        assert_eq!(groups(&placement, 2), Ok(vec![vec![1, 4], vec![2, 5], vec![3, 6]]));
        assert_eq!(groups(&placement, 1).map(|groups| groups.len()), Ok(6));
        assert_eq!(groups(&placement, 7), Err(CoAccessError::TooLarge { size: 7, most: 6 }));
    }

    #[test]
    fn groups_of_known_places_are_on_different_nodes() {
        let placement = Placement::exact(vec![0, 0, 0, 0, 1, 1, 2, 2]).expect("a placement").starting_at(5);
        let found = groups(&placement, 2).expect("possible");
        assert_eq!(found.len(), 4, "all eight warehouses are used: {found:?}");
        let mut used: Vec<u32> = found.concat();
        used.sort_unstable();
        assert_eq!(used, (5..13).collect::<Vec<u32>>());
        assert!(found.iter().all(|group| placement.nodes_of(group) == Some(2)), "{found:?}");
        let sentence = groups(&placement, 4).expect_err("three nodes").to_string();
        assert_eq!(sentence, "a co-access group has 1 to 3 warehouses here, not 4");
    }

    #[test]
    fn groups_are_used_together_as_often_as_asked_for() {
        let placement = Placement::exact((0..60).map(|w| w % 3).collect()).expect("a placement");
        let skew = Skew::Zipf { s: 1.5 };
        let co_access = CoAccess::new(&placement, 3, 0.8, skew, None).expect("possible");
        let (mut rng, mut chosen) = (Rng::new(1, 1), Vec::new());
        let mut tally = CoAccessTally::default();
        let mut first_group = 0;
        for i in 0..40_000 {
            let group = co_access.choose(i, &mut rng, &mut chosen);
            assert!(group.is_none_or(|group| co_access.groups()[group as usize] == chosen));
            assert!(chosen.len() == 3 && chosen[0] != chosen[1] && chosen[1] != chosen[2]);
            assert!(chosen[0] != chosen[2] && chosen.iter().all(|w| (1..=60).contains(w)));
            first_group += u32::from(group == Some(0));
            tally.record(i, &co_access, group);
        }
        for control in tally.finish(&co_access) {
            let overall = control.overall(0..1).expect("observed");
            assert!(overall.deviation().abs() < 0.03, "{}: {overall:?}", control.name);
        }
        let hottest = f64::from(first_group) / 40_000.0;
        let expected = 0.8 * Chooser::new(skew, 20).expect("sensible").share_of_hottest(1);
        assert!((hottest / expected - 1.0).abs() < 0.03, "{hottest}, not {expected}");
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let placement = Placement::even(2, 6).expect("a placement");
        let refused = |together, size, skew| {
            CoAccess::new(&placement, size, together, skew, None).expect_err("nonsense").to_string()
        };
        assert!(refused(1.5, 2, Skew::Uniform).contains("not 1.5"));
        assert!(refused(0.5, 0, Skew::Uniform).contains("1 to 6"));
        assert!(refused(0.5, 2, Skew::Zipf { s: -1.0 }).contains("above 0"));
    }
}
