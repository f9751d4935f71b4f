//! Distribution ratio and degree: how many transactions spread, and over how many nodes (paper,
//! section 4.2.1).
//!
//! A share *ratio* of the transactions uses several distinct warehouses, its home and others; the
//! rest uses its home alone. How many warehouses make a transaction meet *degree* nodes on average
//! depends on where warehouses live ([`Placement`]), and there are two ways to choose them:
//!
//! * **Drawn** ([`Distribution::drawn`]): the paper's Algorithm 1. Only the shares of nodes are
//!   known, not which warehouse is where. The number of distinct warehouses c is the one whose
//!   exact expectation is the degree: E(k) <= n <= E(k + 1) for whole k, and a transaction draws
//!   k + 1 warehouses with probability (n - E(k)) / (E(k + 1) - E(k)), else k. That mixture hits n
//!   exactly, because expectations mix linearly.
//! * **Aimed** ([`Distribution::aimed`]): the node of every warehouse is known. A transaction picks
//!   n - 1 other nodes, in proportion to their warehouses, and one warehouse on each. It meets n
//!   nodes for certain.
//!
//! Worked example: 3 nodes of 20 warehouses, degree 2. E(2) = 1 + 40/59 = 1.678 and E(3) = 2.134
//! (see [`super::placement`]), so 71 % of the spread transactions draw three warehouses and 29 %
//! two. Some of them have all theirs on one node by chance: [`Distribution::expected_distributed`]
//! says how many are left, here 83 % of those that spread. Who must have exactly a share `ratio` on
//! two nodes or more aims.
//!
//! **The last node.** To meet all N nodes for certain one has to draw nearly all warehouses: 161 of
//! 180 on 9 nodes. Unless the exact solution fits an ordinary order, a degree above 0.99 N is
//! solved for 0.99 N, which takes 36. [`Distribution::expected_degree`] says what can be expected.
//!
//! **Order lines.** Their number is TPC-C's, 5 to 15 evenly, whatever the ratio is, so that runs of
//! different ratios do the same work. Only an order that needs more warehouses than it has lines
//! gets one line per warehouse. The home supplies what the others do not, one line at least.
//!
//! No choice of distinct warehouses is repeated until it fits: Floyd's method takes exactly one
//! draw per warehouse (Bentley and Floyd, "A Sample of Brilliance", 1987).
//!
//! Left out: others drawn with a skew (the expectation would have no closed form). Homes may be
//! skewed as they like.

use std::fmt;

use plimsoll_types::random::Rng;

use super::placement::Placement;
use super::track::{Control, Merge, Tracker};
use super::{unit, unit_above_zero};

/// The most lines of a TPC-C order (clause 2.4.1.3).
const LINES_MAX: u32 = 15;
/// The fewest.
const LINES_MIN: u32 = 5;
/// Degrees above this share of the nodes are solved for it if the exact solution is not an ordinary
/// order.
const NODES_MOST: f64 = 0.99;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Share of transactions that use several warehouses, 0 to 1.
    pub ratio: f64,
    /// Nodes that such a transaction shall touch on average, its home's included; 1 or at least 2.
    pub degree: f64,
}

/// Why a target cannot be met.
#[derive(Clone, Debug, PartialEq)]
pub enum DistributionError {
    /// The ratio is not a share.
    Ratio(f64),
    /// The degree is neither 1 nor at least 2.
    Degree(f64),
    /// More nodes than have a warehouse.
    TooManyNodes {
        /// What was asked for.
        degree: f64,
        /// Nodes with a warehouse.
        occupied: usize,
        /// All nodes.
        nodes: usize,
        /// Warehouses.
        warehouses: u32,
    },
    /// Aiming needs the node of each warehouse.
    PlacementUnknown,
}

impl fmt::Display for DistributionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DistributionError::Ratio(ratio) => {
                write!(f, "a distribution ratio is a share from 0 to 1, not {ratio}")
            }
            DistributionError::Degree(degree) => write!(
                f,
                "a distribution degree is 1 (all local) or at least 2, for a distributed transaction touches two \
                 nodes; {degree} is neither"
            ),
            DistributionError::TooManyNodes { degree, occupied, nodes, warehouses } => write!(
                f,
                "no transaction can touch {degree} nodes: the {warehouses} warehouses are on {occupied} of {nodes} \
                 nodes; use more warehouses or a smaller degree"
            ),
            DistributionError::PlacementUnknown => {
                write!(f, "aiming at nodes needs to know the node of each warehouse, not only shares")
            }
        }
    }
}

impl std::error::Error for DistributionError {}

/// How a transaction's warehouses are chosen.
#[derive(Clone, Debug)]
pub struct Distribution {
    target: Target,
    first: u32,
    warehouses: u32,
    choice: Choice,
    expected_degree: f64,
    expected_distributed: f64,
}

#[derive(Clone, Debug)]
enum Choice {
    /// `few` distinct warehouses, and one more with this probability.
    Drawn { few: u32, one_more: f64 },
    /// Warehouses by node, `few` nodes, and one more with this probability.
    Aimed { by_node: Vec<Vec<u32>>, node_of: Vec<u32>, few: u32, one_more: f64 },
}

impl Distribution {
    /// Distinct warehouses without knowing where each one is. Homes are on the nodes with
    /// probabilities `homes`, in proportion to the warehouses if that is nothing.
    pub fn drawn(
        placement: &Placement,
        homes: Option<&[f64]>,
        target: Target,
    ) -> Result<Distribution, DistributionError> {
        check(placement, target)?;
        let homes = homes.map_or_else(|| placement.even_homes(), <[f64]>::to_vec);
        let (few, one_more) = match solve(placement, &homes, target.degree) {
            Some((few, _)) if few >= LINES_MAX => {
                let most = NODES_MOST * placement.occupied() as f64;
                solve(placement, &homes, target.degree.min(most)).expect("fewer nodes than are there")
            }
            Some(solution) => solution,
            None => unreachable!("all warehouses together meet every node that has one"),
        };
        let meetings: Vec<_> = placement.meetings(&homes).skip(few as usize - 1).take(2).collect();
        let mixed = |of: fn(&super::placement::Meeting) -> f64| {
            (1.0 - one_more) * of(&meetings[0]) + one_more * meetings.get(1).map_or(0.0, of)
        };
        Ok(Distribution {
            target,
            first: placement.first(),
            warehouses: placement.warehouses(),
            choice: Choice::Drawn { few, one_more },
            expected_degree: mixed(|meeting| meeting.nodes),
            expected_distributed: target.ratio * (1.0 - mixed(|meeting| meeting.one_node)),
        })
    }

    /// One warehouse on each of so many nodes.
    pub fn aimed(placement: &Placement, target: Target) -> Result<Distribution, DistributionError> {
        check(placement, target)?;
        let (first, count) = (placement.first(), placement.warehouses());
        let node_of: Option<Vec<u32>> = (first..first + count).map(|w| placement.node(w)).collect();
        let node_of = node_of.ok_or(DistributionError::PlacementUnknown)?;
        let mut by_node = vec![Vec::new(); placement.nodes()];
        for (warehouse, &node) in (first..).zip(&node_of) {
            by_node[node as usize].push(warehouse);
        }
        let few = target.degree.floor();
        Ok(Distribution {
            target,
            first,
            warehouses: count,
            choice: Choice::Aimed { by_node, node_of, few: few as u32, one_more: target.degree - few },
            expected_degree: target.degree,
            expected_distributed: if target.degree > 1.0 { target.ratio } else { 0.0 },
        })
    }

    /// What was asked for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Mean distinct warehouses of a transaction that spreads.
    pub fn mean_warehouses(&self) -> f64 {
        match self.choice {
            Choice::Drawn { few, one_more } | Choice::Aimed { few, one_more, .. } => {
                f64::from(few) + one_more
            }
        }
    }

    /// Mean distinct nodes of a transaction that spreads: the degree that was asked for, or the
    /// nearest possible.
    pub fn expected_degree(&self) -> f64 {
        self.expected_degree
    }

    /// Share of all transactions that touches two nodes or more.
    pub fn expected_distributed(&self) -> f64 {
        self.expected_distributed
    }

    /// Chooses the distinct warehouses of one transaction into `chosen`, the home first. `home` is
    /// one of the placement's.
    pub fn choose(&self, home: u32, rng: &mut Rng, chosen: &mut Vec<u32>) {
        chosen.clear();
        chosen.push(home);
        if unit(rng) >= self.target.ratio {
            return;
        }
        match &self.choice {
            Choice::Drawn { few, one_more } => {
                let others = few - 1 + u32::from(unit(rng) < *one_more);
                others_than(home, self.first, self.warehouses, others, rng, chosen);
            }
            Choice::Aimed { by_node, node_of, few, one_more } => {
                let others = few - 1 + u32::from(unit(rng) < *one_more);
                let at = node_of[(home - self.first) as usize] as usize;
                // The smallest of exponential times with rates by weight: a weighted draw without
                // repetition (Efraimidis and Spirakis, "Weighted random sampling with a reservoir",
                // 2006).
                let mut order: Vec<(f64, usize)> = (0..by_node.len())
                    .filter(|&node| node != at && !by_node[node].is_empty())
                    .map(|node| (-unit_above_zero(rng).ln() / by_node[node].len() as f64, node))
                    .collect();
                order.sort_by(|a, b| a.0.total_cmp(&b.0));
                for &(_, node) in order.iter().take(others as usize) {
                    chosen.push(by_node[node][rng.below(by_node[node].len() as u64) as usize]);
                }
            }
        }
    }
}

fn check(placement: &Placement, target: Target) -> Result<(), DistributionError> {
    let Target { ratio, degree } = target;
    if !(0.0..=1.0).contains(&ratio) {
        return Err(DistributionError::Ratio(ratio));
    }
    if degree != 1.0 && (degree.is_nan() || degree < 2.0) {
        return Err(DistributionError::Degree(degree));
    }
    if degree > placement.occupied() as f64 {
        return Err(DistributionError::TooManyNodes {
            degree,
            occupied: placement.occupied(),
            nodes: placement.nodes(),
            warehouses: placement.warehouses(),
        });
    }
    Ok(())
}

/// Whole warehouses and the probability of one more that meet so many nodes on average.
fn solve(placement: &Placement, homes: &[f64], degree: f64) -> Option<(u32, f64)> {
    /// What rounding may take from an expectation that is whole.
    const ROUNDING: f64 = 1e-9;
    let mut before = None;
    for meeting in placement.meetings(homes) {
        if meeting.nodes >= degree - ROUNDING {
            return Some(match before {
                Some((few, nodes)) if meeting.nodes > degree + ROUNDING => {
                    (few, (degree - nodes) / (meeting.nodes - nodes))
                }
                _ => (meeting.warehouses, 0.0),
            });
        }
        before = Some((meeting.warehouses, meeting.nodes));
    }
    None
}

/// Adds `others` distinct numbers of `first..first + count` that are not `home`, every set equally
/// likely.
fn others_than(home: u32, first: u32, count: u32, others: u32, rng: &mut Rng, chosen: &mut Vec<u32>) {
    let eligible = count - 1;
    let others = others.min(eligible);
    let number = |index: u32| first + index + u32::from(first + index >= home);
    // Floyd: the j-th draw is below j + 1; what was drawn before stands for j itself.
    for j in eligible - others..eligible {
        let drawn = number(rng.below(u64::from(j) + 1) as u32);
        let new = if chosen[1..].contains(&drawn) { number(j) } else { drawn };
        chosen.push(new);
    }
}

/// How many lines an order has that uses so many distinct warehouses.
pub fn order_lines(rng: &mut Rng, warehouses: usize) -> usize {
    (rng.uniform(u64::from(LINES_MIN)..=u64::from(LINES_MAX)) as usize).max(warehouses)
}

/// The share of orders with a line of another warehouse, if each line is one with this probability:
/// 9.5 % for TPC-C's 1 %.
pub fn remote_orders(of_lines: f64) -> f64 {
    let lines = LINES_MIN..=LINES_MAX;
    let local: f64 = lines.clone().map(|lines| (1.0 - of_lines).powi(lines as i32)).sum();
    1.0 - local / lines.count() as f64
}

/// The warehouse that supplies an order's line number `line`, from 0: each other one once, then the
/// home.
pub fn supply_warehouse(line: usize, chosen: &[u32]) -> u32 {
    chosen.get(line + 1).copied().unwrap_or(chosen[0])
}

/// What one terminal's transactions came to.
#[derive(Clone, Debug, Default)]
pub struct DistributionTally {
    ratio: Tracker,
    distributed: Tracker,
    degree: Tracker,
}

impl DistributionTally {
    /// Counts a transaction that used `chosen` and touched so many distinct nodes, if that is
    /// known.
    pub fn record(&mut self, now_ns: u64, distribution: &Distribution, chosen: &[u32], nodes: Option<usize>) {
        let spread = chosen.len() > 1;
        let Target { ratio, degree } = distribution.target;
        self.record_ratio(now_ns, if degree > 1.0 { ratio } else { 0.0 }, spread);
        if let Some(nodes) = nodes {
            self.distributed.add(now_ns, distribution.expected_distributed, share(nodes > 1));
            if spread {
                self.degree.add(now_ns, degree, nodes as f64);
            }
        }
    }

    /// Counts a transaction that nobody distributes on purpose, of which a share uses several
    /// warehouses.
    pub fn record_ratio(&mut self, now_ns: u64, ratio: f64, spread: bool) {
        self.ratio.add(now_ns, ratio, share(spread));
    }

    /// Adds another terminal's.
    pub fn merge(&mut self, other: &DistributionTally) {
        self.ratio.merge(&other.ratio);
        self.distributed.merge(&other.distributed);
        self.degree.merge(&other.degree);
    }

    /// The reports: ratio, share on several nodes, degree; the latter two only if nodes were known.
    pub fn finish(&self, what: &str) -> Vec<Control> {
        [
            (&self.ratio, "distribution ratio", "share of transactions"),
            (&self.distributed, "on several nodes", "share of transactions"),
            (&self.degree, "distribution degree", "nodes"),
        ]
        .into_iter()
        .filter(|(tracker, _, _)| !tracker.is_empty())
        .map(|(tracker, name, unit)| tracker.finish(format!("{what}: {name}"), unit, Merge::Mean))
        .collect()
    }
}

fn share(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

#[cfg(test)]
#[path = "distribution_tests.rs"]
mod tests;
