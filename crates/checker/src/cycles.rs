//! Cycles of a graph: strongly connected components, and the telling cycles of each.
//!
//! Components are found with Tarjan's algorithm, without recursion. Inside a component, a
//! shortest-path search from every node finds the cycle that is the strongest evidence: first of
//! all one that needs no observation from outside the database, then one with few anti-dependencies
//! (none at all is worse than one, one is worse than two), then a short one.
//!
//! # The weakest level that is broken
//!
//! The number of anti-dependencies is not all that decides which isolation level a cycle breaks.
//! Snapshot isolation allows a cycle only if two of its anti-dependencies follow one another
//! (Fekete et al., *Making Snapshot Isolation Serializable*, TODS 2005; Cerone and Gotsman,
//! *Analysing Snapshot Isolation*, JACM 2018). A write skew of two steps is shorter than a long
//! fork of four that shares its transactions, and only the long fork breaks snapshot isolation. So
//! a component is searched twice more: for a cycle with at most one such edge in a row, and for one
//! without any ([`IN_A_ROW`]), unless a cycle that is told already is of that kind.
//!
//! Such cycles are those of a graph of *layers*. A node of it is a node of the component and the
//! number of anti-dependencies in a row by which it was reached; an edge that would make too many
//! is left out. A closed way there may pass a node twice, in two layers. Cut there, it falls into
//! two closed ways, and one of them is allowed as well: the cheapest one passes each node once.
//!
//! # Large components
//!
//! In a component of a million transactions not every node can be searched from. Cycles of two
//! steps are looked for first, then those of a few more, each within a budget; once it is exceeded
//! the best cycle so far has to do. Whether there is a cycle of each kind at all is never left
//! open: that is a matter of components.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{Graph, Kind, pack};
use crate::index::NONE;

/// The most anti-dependencies in a row of a cycle that a component is searched for, search by
/// search.
const IN_A_ROW: [u32; 2] = [1, 0];
/// The lengths up to which cycles are looked for, one after the other.
const LENGTHS: [u32; 4] = [2, 3, 5, u32::MAX];
/// How many edges are followed in one component for each of [`LENGTHS`], but for the last search
/// begun.
const STEPS_MAX: u64 = 10_000_000;
/// How many edges are followed in all components together. Once they are exceeded, a component is
/// searched from one transaction only.
const STEPS_OF_ALL_MAX: u64 = 1_000_000_000;

/// One step of a cycle, from transaction to transaction; helper nodes are passed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub from: u32,
    pub to: u32,
    pub kind: Kind,
}

/// The strongly connected components of more than one node, each sorted, in the order of their
/// smallest nodes.
pub(crate) fn components(graph: &Graph) -> Vec<Vec<u32>> {
    const DONE: u32 = NONE;
    let nodes = graph.nodes();
    // 0: not met; DONE: in a finished component; otherwise the lowest number reachable so far.
    let mut low = vec![0u32; nodes as usize];
    let mut met = 0;
    let mut open: Vec<u32> = Vec::new();
    // Node, the number it was met as, its next edge.
    let mut path: Vec<(u32, u32, u32)> = Vec::new();
    let mut found = Vec::new();
    for root in 0..nodes {
        if low[root as usize] != 0 {
            continue;
        }
        met += 1;
        low[root as usize] = met;
        open.push(root);
        path.push((root, met, graph.span(root).0));
        while let Some((node, number, next)) = path.last_mut() {
            let node = *node;
            if *next < graph.span(node).1 {
                let (to, _) = graph.edge(*next);
                *next += 1;
                match low[to as usize] {
                    0 => {
                        met += 1;
                        low[to as usize] = met;
                        open.push(to);
                        path.push((to, met, graph.span(to).0));
                    }
                    DONE => {}
                    reachable => low[node as usize] = low[node as usize].min(reachable),
                }
                continue;
            }
            let (number, reachable) = (*number, low[node as usize]);
            path.pop();
            if let Some((parent, _, _)) = path.last() {
                low[*parent as usize] = low[*parent as usize].min(reachable);
            }
            if reachable == number {
                let start = open.iter().rposition(|&other| other == node).expect("a root is still open");
                if open.len() - start > 1 {
                    let mut component = open[start..].to_vec();
                    component.sort_unstable();
                    found.push(component);
                }
                for &member in &open[start..] {
                    low[member as usize] = DONE;
                }
                open.truncate(start);
            }
        }
    }
    found.sort_unstable();
    found
}

/// The telling cycles of each component: the best one, and behind it those that break a weaker
/// level. Nodes below `transactions` are transactions.
pub(crate) fn telling_cycles(graph: &Graph, components: &[Vec<u32>], transactions: u32) -> Vec<Vec<Step>> {
    if components.is_empty() {
        return Vec::new();
    }
    let mut search = Search::new(graph, components);
    let mut left = STEPS_OF_ALL_MAX;
    let mut told: Vec<Vec<Step>> = Vec::new();
    for component in components {
        let first = told.len();
        told.push(search.best_cycle(std::slice::from_ref(component), transactions, &mut left));
        for in_a_row in IN_A_ROW {
            if told[first..].iter().all(|cycle| antis_in_a_row(cycle) > in_a_row) {
                told.extend(cycle_in_layers(graph, component, transactions, in_a_row, &mut left));
            }
        }
    }
    told
}

/// How many anti-dependencies of a cycle follow one another at most.
pub(crate) fn antis_in_a_row(cycle: &[Step]) -> u32 {
    // Once around to know what the beginning follows on.
    let twice = cycle.iter().chain(cycle);
    let runs = twice.scan(0, |run, step| {
        *run = if step.kind.anti() { *run + 1 } else { 0 };
        Some(*run)
    });
    runs.max().unwrap_or(0)
}

/// The best cycle of a component among those with at most `in_a_row` anti-dependencies in a row;
/// none if it has no such cycle.
fn cycle_in_layers(
    graph: &Graph,
    component: &[u32],
    transactions: u32,
    in_a_row: u32,
    left: &mut u64,
) -> Option<Vec<Step>> {
    let layers = in_a_row + 1;
    let mut pairs = Vec::new();
    for (at, &node) in (0..).zip(component) {
        for (to, kind) in graph.edges(node) {
            let Ok(place) = component.binary_search(&to) else { continue };
            for run in 0..layers {
                let next = if kind.anti() { run + 1 } else { 0 };
                if next < layers {
                    pairs.push((at * layers + run, pack(place as u32 * layers + next, kind)));
                }
            }
        }
    }
    let layered = Graph::new(component.len() as u32 * layers, pairs);
    let found = components(&layered);
    if found.is_empty() {
        return None;
    }
    let inside = component.partition_point(|&node| node < transactions) as u32 * layers;
    let mut cycle = Search::new(&layered, &found).best_cycle(&found, inside, left);
    let node = |number: u32| component[(number / layers) as usize];
    cycle.iter_mut().for_each(|step| (step.from, step.to) = (node(step.from), node(step.to)));
    Some(cycle)
}

struct Search<'g> {
    graph: &'g Graph,
    /// Each node's component.
    component: Vec<u32>,
    /// The cheapest way found from the start of the present search.
    cost: Vec<u64>,
    /// The node and the kind of edge by which that way arrives.
    came: Vec<(u32, Kind)>,
    /// Nodes with a cost.
    touched: Vec<u32>,
    /// Edges followed.
    steps: u64,
}

impl Search<'_> {
    fn new<'g>(graph: &'g Graph, components: &[Vec<u32>]) -> Search<'g> {
        let nodes = graph.nodes() as usize;
        let mut component = vec![NONE; nodes];
        for (number, nodes) in (0..).zip(components) {
            nodes.iter().for_each(|&node| component[node as usize] = number);
        }
        Search {
            graph,
            component,
            cost: vec![u64::MAX; nodes],
            came: vec![(NONE, Kind::Ww); nodes],
            touched: Vec::new(),
            steps: 0,
        }
    }

    /// The best cycle of some components.
    fn best_cycle(&mut self, components: &[Vec<u32>], transactions: u32, left: &mut u64) -> Vec<Step> {
        let mut best = (u64::MAX, Vec::new());
        let starts = components.iter().flatten().filter(|&&node| node < transactions);
        for length_max in LENGTHS {
            self.steps = 0;
            let budget = STEPS_MAX.min(*left);
            let complete = starts.clone().all(|&start| {
                let searchable = self.steps < budget || (length_max == u32::MAX && best.1.is_empty());
                if searchable {
                    self.search(start, length_max, &mut best);
                }
                searchable
            });
            *left = left.saturating_sub(self.steps);
            if !complete && !best.1.is_empty() {
                break;
            }
        }
        let mut nodes: Vec<(u32, Kind)> = best.1;
        // Begin with the smallest transaction; what arrives at a helper node arrives at who follows
        // it.
        let begin = nodes.iter().enumerate().filter(|(_, (node, _))| *node < transactions);
        let begin = begin.min_by_key(|(_, (node, _))| *node).map_or(0, |(at, _)| at);
        nodes.rotate_left(begin);
        let stops: Vec<(u32, Kind)> = nodes.into_iter().filter(|(node, _)| *node < transactions).collect();
        (0..stops.len())
            .map(|at| {
                let (to, kind) = stops[(at + 1) % stops.len()];
                Step { from: stops[at].0, to, kind }
            })
            .collect()
    }

    /// Finds the cheapest way of at most so many steps from `start` back to itself, if it is
    /// cheaper than the best so far: its nodes in order, each with the kind of the edge that
    /// arrives there.
    fn search(&mut self, start: u32, length_max: u32, best: &mut (u64, Vec<(u32, Kind)>)) {
        for node in self.touched.drain(..) {
            self.cost[node as usize] = u64::MAX;
        }
        let mut heap = BinaryHeap::from([Reverse((0, start, 0))]);
        while let Some(Reverse((cost, node, length))) = heap.pop() {
            if cost >= best.0 {
                return;
            }
            if node == start && cost > 0 {
                let mut way = vec![(start, self.came[start as usize].1)];
                let mut at = self.came[start as usize].0;
                while at != start {
                    way.push((at, self.came[at as usize].1));
                    at = self.came[at as usize].0;
                }
                way.reverse();
                *best = (cost, way);
                return;
            }
            if length == length_max || (node != start && cost > self.cost[node as usize]) {
                continue;
            }
            for (to, kind) in self.graph.edges(node) {
                self.steps += 1;
                if self.component[to as usize] != self.component[start as usize] {
                    continue;
                }
                let total = cost + weight(kind);
                if total < self.cost[to as usize] {
                    if self.cost[to as usize] == u64::MAX {
                        self.touched.push(to);
                    }
                    self.cost[to as usize] = total;
                    self.came[to as usize] = (node, kind);
                    heap.push(Reverse((total, to, length + 1)));
                }
            }
        }
    }
}

/// What an edge costs: more than all cheaper ones together.
fn weight(kind: Kind) -> u64 {
    match kind {
        Kind::Ww => 1 << 10,
        Kind::Wr => 1 << 10 | 1,
        Kind::Rw => 1 << 34,
        Kind::Phantom => 1 << 34 | 1,
        Kind::Session | Kind::Time => 1 << 46,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_types::random::Rng;

    use super::*;

    /// A graph of a few transactions with edges of all data's kinds, not all in one component.
    fn drawn(seed: u64) -> (u32, Vec<(u32, u32, Kind)>) {
        let mut rng = Rng::new(seed, 0);
        let nodes = 2 + rng.below(6) as u32;
        let edges = (0..rng.below(2 * u64::from(nodes) + 4)).filter_map(|_| {
            let from = rng.below(nodes.into()) as u32;
            let to = rng.below(nodes.into()) as u32;
            let kind =
                [Kind::Ww, Kind::Wr, Kind::Rw, Kind::Rw, Kind::Rw, Kind::Phantom][rng.below(6) as usize];
            (from != to).then_some((from, to, kind))
        });
        (nodes, edges.collect())
    }

    /// Every cycle that passes no node twice, by trying all ways.
    fn every_cycle(edges: &[(u32, u32, Kind)], way: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
        let (first, last) = (way[0].from, way[way.len() - 1].to);
        if first == last {
            found.push(way.clone());
            return;
        }
        for &(from, to, kind) in edges {
            let fresh = to == first || (to > first && way.iter().all(|step| step.to != to));
            if from == last && fresh {
                way.push(Step { from, to, kind });
                every_cycle(edges, way, found);
                way.pop();
            }
        }
    }

    #[test]
    fn no_cycle_hides_one_that_breaks_a_weaker_level() {
        let mut hidden = 0;
        for seed in 0..20_000 {
            let (nodes, edges) = drawn(seed);
            let pairs = edges.iter().map(|&(from, to, kind)| (from, pack(to, kind))).collect();
            let graph = Graph::new(nodes, pairs);
            let components = components(&graph);
            let told = telling_cycles(&graph, &components, nodes);
            let mut every = Vec::new();
            for &(from, to, kind) in edges.iter().filter(|(from, to, _)| from < to) {
                every_cycle(&edges, &mut vec![Step { from, to, kind }], &mut every);
            }
            for component in &components {
                let of = |cycles: &[Vec<Step>]| {
                    let inside = cycles.iter().filter(|cycle| component.contains(&cycle[0].from));
                    inside.map(|cycle| antis_in_a_row(cycle).min(2)).min()
                };
                assert_eq!(of(&told), of(&every), "seed {seed}: {told:?}\n{edges:?}");
                hidden +=
                    u32::from(told.iter().filter(|cycle| component.contains(&cycle[0].from)).count() > 1);
            }
            for cycle in &told {
                assert!(cycle.iter().all(|step| edges.contains(&(step.from, step.to, step.kind))));
                let mut once: Vec<u32> = cycle.iter().map(|step| step.from).collect();
                once.sort_unstable();
                once.dedup();
                assert_eq!(once.len(), cycle.len(), "seed {seed}: {cycle:?}");
            }
        }
        assert!(hidden > 20, "{hidden} components whose best cycle does not speak for all");
    }
}
