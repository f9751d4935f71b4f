//! Where warehouses live, and how many nodes a transaction meets (paper, section 4.2.1).
//!
//! A [`Placement`] says how many of the warehouses live on each node, and if that is known, on
//! which node each one lives. From this follows how many distinct nodes a transaction touches that
//! uses *c* distinct warehouses, one of them its home and the others drawn evenly without
//! repetition. With W warehouses, w_i of them on node i and q_i the probability that a home is on
//! node i:
//!
//! ```text
//! E(c) = 1 + sum_i (1 - q_i) (1 - miss_i(c)),   miss_i(c) = prod_{k < c-1} (W - 1 - w_i - k) / (W - 1 - k)
//! ```
//!
//! The home's node is met for certain. Node i is another one with probability 1 - q_i, and then
//! missed if none of the c - 1 other warehouses is among its w_i. If homes are spread like the
//! warehouses (q_i = w_i / W) this is the mean of the hypergeometric model, N - sum_i C(W - w_i, c)
//! / C(W, c).
//!
//! The paper's Equation 2 draws the warehouses independently instead, N - sum_i (1 - p_i)^c, and so
//! expects fewer nodes than there are: with 4 warehouses on 4 nodes, two warehouses are on 2 nodes,
//! the equation says 1.75. [`independent_nodes`] and [`independent_warehouses`] are that model, for
//! comparison.
//!
//! Worked example: 2 nodes, 4 warehouses, 3 of them on the first. Two warehouses: the home is on
//! the first node with 3/4, then the other one is not with 1/3; or on the second, then the other
//! one is not for certain. E(2) = 1 + 3/4 * 1/3 + 1/4 * 1 = 1.5.

use std::fmt;

/// Where warehouses live. Nodes are numbered from 0, warehouses as TPC-C does from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Warehouses by node.
    counts: Vec<u32>,
    /// The node of each warehouse, if known.
    node_of: Option<Vec<u32>>,
    /// The number of the first warehouse.
    first: u32,
}

/// Why a placement makes no sense.
#[derive(Clone, Debug, PartialEq)]
pub enum PlacementError {
    /// No node, or no warehouse.
    Empty,
    /// A share that is negative or no number, or shares that add up to nothing.
    Shares,
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementError::Empty => write!(f, "a placement needs at least one node and one warehouse"),
            PlacementError::Shares => {
                write!(f, "the shares of nodes have to be numbers of at least 0, and one of them above 0")
            }
        }
    }
}

impl std::error::Error for PlacementError {}

impl Placement {
    /// Warehouses spread as evenly as possible.
    pub fn even(nodes: u32, warehouses: u32) -> Result<Placement, PlacementError> {
        Placement::shares(&vec![1.0; nodes as usize], warehouses)
    }

    /// Warehouses spread in proportion to shares, which need not add up to 1. Warehouses are whole:
    /// node i gets its share rounded down, and those that are left go to the largest fractions.
    pub fn shares(shares: &[f64], warehouses: u32) -> Result<Placement, PlacementError> {
        if shares.is_empty() || warehouses == 0 {
            return Err(PlacementError::Empty);
        }
        let sum: f64 = shares.iter().sum();
        if shares.iter().any(|share| share.is_nan() || *share < 0.0) || !(sum > 0.0 && sum.is_finite()) {
            return Err(PlacementError::Shares);
        }
        let exact = |share: &f64| f64::from(warehouses) * share / sum;
        let mut counts: Vec<u32> = shares.iter().map(|share| exact(share).floor() as u32).collect();
        let mut order: Vec<usize> = (0..shares.len()).filter(|&node| shares[node] > 0.0).collect();
        let fraction = |node: usize| exact(&shares[node]).fract();
        order.sort_by(|&a, &b| fraction(b).total_cmp(&fraction(a)).then(a.cmp(&b)));
        let left = warehouses - counts.iter().sum::<u32>().min(warehouses);
        order.iter().cycle().take(left as usize).for_each(|&node| counts[node] += 1);
        Ok(Placement { counts, node_of: None, first: 1 })
    }

    /// So many warehouses on each node.
    pub fn counts(counts: &[u32]) -> Result<Placement, PlacementError> {
        if counts.iter().all(|&count| count == 0) {
            return Err(PlacementError::Empty);
        }
        Ok(Placement { counts: counts.to_vec(), node_of: None, first: 1 })
    }

    /// The node of each warehouse, in the order of warehouses. A node without one is known only if
    /// a later one has.
    pub fn exact(node_of: Vec<u32>) -> Result<Placement, PlacementError> {
        let nodes = node_of.iter().max().ok_or(PlacementError::Empty)? + 1;
        let mut counts = vec![0; nodes as usize];
        node_of.iter().for_each(|&node| counts[node as usize] += 1);
        Ok(Placement { counts, node_of: Some(node_of), first: 1 })
    }

    /// The same for warehouses that are numbered from `first`: those of one client of several.
    pub fn starting_at(mut self, first: u32) -> Placement {
        self.first = first;
        self
    }

    /// Nodes, those without a warehouse included.
    pub fn nodes(&self) -> usize {
        self.counts.len()
    }

    /// Nodes that have a warehouse.
    pub fn occupied(&self) -> usize {
        self.counts.iter().filter(|&&count| count > 0).count()
    }

    /// Warehouses.
    pub fn warehouses(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// The number of the first warehouse.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Warehouses by node.
    pub fn warehouses_by_node(&self) -> &[u32] {
        &self.counts
    }

    /// The node of a warehouse, if that is known.
    pub fn node(&self, warehouse: u32) -> Option<u32> {
        self.node_of.as_ref()?.get(warehouse.checked_sub(self.first)? as usize).copied()
    }

    /// Distinct nodes that these warehouses live on, if that is known.
    pub fn nodes_of(&self, warehouses: &[u32]) -> Option<usize> {
        let mut nodes: Vec<u32> = warehouses.iter().map(|&w| self.node(w)).collect::<Option<_>>()?;
        nodes.sort_unstable();
        nodes.dedup();
        Some(nodes.len())
    }

    /// The probability that a home is on each node if homes are drawn evenly.
    pub fn even_homes(&self) -> Vec<f64> {
        let all = f64::from(self.warehouses());
        self.counts.iter().map(|&count| f64::from(count) / all).collect()
    }

    /// Goes through what a transaction with 1, 2, 3, ... distinct warehouses meets, homes being on
    /// the nodes with these probabilities.
    pub fn meetings<'a>(&'a self, homes: &'a [f64]) -> Meetings<'a> {
        assert_eq!(homes.len(), self.nodes(), "there is one probability of a home for each node");
        Meetings {
            placement: self,
            homes,
            warehouses: 0,
            missed: vec![1.0; self.nodes()],
            alone: vec![1.0; self.nodes()],
        }
    }

    /// Expected distinct nodes with so many distinct warehouses, from 1, homes drawn evenly.
    pub fn expected_nodes(&self, warehouses: u32) -> f64 {
        let homes = self.even_homes();
        let at = warehouses.clamp(1, self.warehouses()) as usize - 1;
        self.meetings(&homes).nth(at).expect("no more than there are").nodes
    }
}

/// What a transaction with so many distinct warehouses meets.
#[derive(Clone, Copy, Debug)]
pub struct Meeting {
    /// Distinct warehouses, the home included.
    pub warehouses: u32,
    /// Expected distinct nodes.
    pub nodes: f64,
    /// Probability that they are all on one node after all.
    pub one_node: f64,
}

/// See [`Placement::meetings`].
pub struct Meetings<'a> {
    placement: &'a Placement,
    homes: &'a [f64],
    warehouses: u32,
    /// By node: the probability that no other warehouse is on it, given that the home is elsewhere.
    missed: Vec<f64>,
    /// By node: the probability that all other warehouses are on it too, given that the home is.
    alone: Vec<f64>,
}

impl Iterator for Meetings<'_> {
    type Item = Meeting;

    fn next(&mut self) -> Option<Meeting> {
        let all = self.placement.warehouses();
        if self.warehouses == all {
            return None;
        }
        self.warehouses += 1;
        if self.warehouses > 1 {
            // One more is drawn from what is left after the home and the others before it.
            let drawn = f64::from(self.warehouses - 2);
            let left = f64::from(all - 1) - drawn;
            for (node, &count) in self.placement.counts.iter().enumerate() {
                let count = f64::from(count);
                self.missed[node] *= ((left - count) / left).max(0.0);
                self.alone[node] *= ((count - 1.0 - drawn) / left).max(0.0);
            }
        }
        let met = self.homes.iter().zip(&self.missed).map(|(home, missed)| (1.0 - home) * (1.0 - missed));
        let alone = self.homes.iter().zip(&self.alone).map(|(home, alone)| home * alone);
        Some(Meeting { warehouses: self.warehouses, nodes: 1.0 + met.sum::<f64>(), one_node: alone.sum() })
    }
}

/// The paper's Equation 2: distinct nodes expected of `warehouses` independent draws from nodes
/// with these shares, which add up to 1.
pub fn independent_nodes(shares: &[f64], warehouses: f64) -> f64 {
    shares.len() as f64 - shares.iter().map(|share| (1.0 - share).powf(warehouses)).sum::<f64>()
}

/// The paper's Algorithm 1, line 2: how many independent draws Equation 2 wants for so many nodes,
/// by bisection. Nothing if it never gets there, which is so for as many nodes as there are.
pub fn independent_warehouses(shares: &[f64], nodes: f64) -> Option<f64> {
    let most = shares.iter().filter(|share| **share > 0.0).count() as f64;
    if !(nodes >= 1.0 && (nodes < most || nodes == 1.0)) {
        return None;
    }
    let mut low = 1.0;
    let mut high = 2.0;
    while independent_nodes(shares, high) < nodes {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if independent_nodes(shares, middle) < nodes { low = middle } else { high = middle }
    }
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop, prop_assert, prop_assert_eq, prop_assume, proptest};

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    /// The same expectation by looking at every home and every set of others.
    fn by_enumeration(counts: &[u32], homes: &[f64], chosen: u32) -> (f64, f64) {
        let node_of: Vec<usize> =
            counts.iter().enumerate().flat_map(|(node, &count)| vec![node; count as usize]).collect();
        let (mut nodes, mut one_node) = (0.0, 0.0);
        for (home, &home_node) in node_of.iter().enumerate() {
            let probability = homes[home_node] / f64::from(counts[home_node]);
            let (mut sum, mut alone, mut sets) = (0.0, 0.0, 0.0);
            for set in 0u32..1 << node_of.len() {
                if set.count_ones() != chosen || set & 1 << home == 0 {
                    continue;
                }
                let mut met = vec![false; counts.len()];
                (0..node_of.len()).filter(|w| set & 1 << w != 0).for_each(|w| met[node_of[w]] = true);
                let met = met.iter().filter(|&&met| met).count();
                sum += met as f64;
                alone += f64::from(u8::from(met == 1));
                sets += 1.0;
            }
            nodes += probability * sum / sets;
            one_node += probability * alone / sets;
        }
        (nodes, one_node)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn the_expectation_is_that_of_counting_all_choices(
            counts in prop::collection::vec(1u32..4, 1..5), weights in prop::collection::vec(0.05f64..1.0, 5)
        ) {
            let placement = Placement::counts(&counts).expect("warehouses");
            let sum: f64 = weights[..counts.len()].iter().sum();
            let homes: Vec<f64> = weights[..counts.len()].iter().map(|weight| weight / sum).collect();
            for meeting in placement.meetings(&homes) {
                let (nodes, one_node) = by_enumeration(&counts, &homes, meeting.warehouses);
                prop_assert!(near(meeting.nodes, nodes), "{meeting:?} is not {nodes}");
                prop_assert!(near(meeting.one_node, one_node), "{meeting:?} is not {one_node}");
            }
        }

        #[test]
        fn shares_become_whole_warehouses_that_add_up(
            shares in prop::collection::vec(0.0f64..1.0, 1..20), warehouses in 1u32..400
        ) {
            prop_assume!(shares.iter().sum::<f64>() > 0.0);
            let placement = Placement::shares(&shares, warehouses).expect("a placement");
            prop_assert_eq!(placement.warehouses(), warehouses);
            let sum: f64 = shares.iter().sum();
            for (share, &count) in shares.iter().zip(placement.warehouses_by_node()) {
                prop_assert!((f64::from(count) - f64::from(warehouses) * share / sum).abs() < 1.0 + 1e-9);
                prop_assert!(*share > 0.0 || count == 0);
            }
        }
    }

    #[test]
    fn the_example_of_the_essay_holds() {
        let placement = Placement::counts(&[3, 1]).expect("warehouses");
        assert!(near(placement.expected_nodes(2), 1.5));
        assert!(near(placement.expected_nodes(1), 1.0) && near(placement.expected_nodes(4), 2.0));
    }

    #[test]
    fn distinct_warehouses_meet_more_nodes_than_independent_draws() {
        for (nodes, warehouses, chosen, exact, independent) in
            [(4, 4, 2, 2.0, 1.75), (4, 8, 4, 3.1429, 2.7344), (9, 180, 5, 4.0408, 4.0056)]
        {
            let placement = Placement::even(nodes, warehouses).expect("a placement");
            let shares = placement.even_homes();
            let expected = placement.expected_nodes(chosen);
            assert!((expected - exact).abs() < 1e-4, "{expected}");
            let drawn = independent_nodes(&shares, f64::from(chosen));
            assert!((drawn - independent).abs() < 1e-4, "{drawn}");
        }
    }

    #[test]
    fn bisection_finds_what_the_closed_form_gives_for_even_shares() {
        for nodes in [3.0f64, 4.0, 6.0, 9.0, 15.0] {
            let shares = vec![1.0 / nodes; nodes as usize];
            for degree in 2..nodes as u32 {
                let closed = (1.0 - f64::from(degree) / nodes).ln() / (1.0 - 1.0 / nodes).ln();
                let found = independent_warehouses(&shares, f64::from(degree)).expect("possible");
                assert!(near(found / closed, 1.0), "{degree} of {nodes}: {found}, not {closed}");
            }
            assert_eq!(independent_warehouses(&shares, nodes), None);
        }
        assert_eq!(independent_warehouses(&[0.5, 0.5, 0.0], 2.0), None);
    }

    /// Theorem 4.1 and Corollary 4.2, under the paper's model: using as many warehouses as nodes
    /// are wanted misses the degree, by less the larger the cluster is, and by more if shares
    /// differ.
    #[test]
    fn naive_choice_misses_the_degree_more_on_small_and_on_uneven_clusters() {
        for degree in 2..=6u32 {
            let miss = |nodes: u32| {
                f64::from(degree)
                    - independent_nodes(&vec![1.0 / f64::from(nodes); nodes as usize], f64::from(degree))
            };
            for nodes in degree.max(2)..30 {
                assert!(miss(nodes) > miss(nodes + 1) && miss(nodes + 1) > 0.0, "{degree} of {nodes}");
            }
            let uneven: Vec<f64> = [4.0, 2.0, 1.0, 1.0, 1.0, 1.0].map(|share| share / 10.0).to_vec();
            assert!(f64::from(degree) - independent_nodes(&uneven, f64::from(degree)) > miss(6));
        }
    }

    /// The same bias for distinct warehouses: it is smaller, and gone where every node has one
    /// warehouse.
    #[test]
    fn the_bias_of_naive_choice_is_smaller_for_distinct_warehouses() {
        for nodes in [3u32, 9, 15] {
            let placement = Placement::even(nodes, 20 * nodes).expect("a placement");
            for degree in 2..=nodes {
                let exact = f64::from(degree) - placement.expected_nodes(degree);
                let paper = f64::from(degree) - independent_nodes(&placement.even_homes(), f64::from(degree));
                assert!(0.0 < exact && exact < paper, "{degree} of {nodes}: {exact} and {paper}");
            }
            let single = Placement::even(nodes, nodes).expect("a placement");
            assert!((1..=nodes).all(|c| near(single.expected_nodes(c), f64::from(c))));
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        assert_eq!(Placement::shares(&[], 3), Err(PlacementError::Empty));
        assert_eq!(Placement::counts(&[0, 0]), Err(PlacementError::Empty));
        assert_eq!(Placement::exact(vec![]), Err(PlacementError::Empty));
        for shares in [vec![0.0, 0.0], vec![-1.0, 2.0], vec![f64::NAN, 1.0], vec![f64::INFINITY, 1.0]] {
            assert_eq!(Placement::shares(&shares, 3), Err(PlacementError::Shares), "{shares:?}");
        }
        assert!(PlacementError::Shares.to_string().contains("shares of nodes"));
    }

    #[test]
    fn a_known_map_tells_the_nodes_of_warehouses() {
        let placement = Placement::exact(vec![0, 0, 2]).expect("a placement").starting_at(11);
        assert_eq!(placement.warehouses_by_node(), [2, 0, 1]);
        assert_eq!((placement.nodes(), placement.occupied()), (3, 2));
        assert_eq!(placement.nodes_of(&[11, 12]), Some(1));
        assert_eq!(placement.nodes_of(&[11, 13]), Some(2));
        assert_eq!(placement.nodes_of(&[1]), None);
        assert_eq!(Placement::even(2, 4).expect("a placement").nodes_of(&[1]), None);
    }
}
