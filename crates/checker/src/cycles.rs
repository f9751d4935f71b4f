//! Cycles of a graph: strongly connected components, and a telling cycle in each.
//!
//! Components are found with Tarjan's algorithm, without recursion. Inside a component, a
//! shortest-path search from every node finds the cycle that is the strongest evidence: first of
//! all one that needs no observation from outside the database, then one with few anti-dependencies
//! (none at all is worse than one, one is worse than two), then a short one.
//!
//! In a component of a million transactions not every node can be searched from. Cycles of two
//! steps are looked for first, then those of a few more, each within a budget; once it is exceeded
//! the best cycle so far has to do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{Graph, Kind};
use crate::index::NONE;

/// How many components are looked into.
const COMPONENTS_MAX: usize = 64;
/// The lengths up to which cycles are looked for, one after the other.
const LENGTHS: [u32; 4] = [2, 3, 5, u32::MAX];
/// How many edges are followed in one component for each of [`LENGTHS`], but for the last search
/// begun.
const STEPS_MAX: u64 = 10_000_000;

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

/// The best cycle of each component, of the first [`COMPONENTS_MAX`] ones. Nodes below
/// `transactions` are transactions.
pub(crate) fn shortest_cycles(graph: &Graph, components: &[Vec<u32>], transactions: u32) -> Vec<Vec<Step>> {
    if components.is_empty() {
        return Vec::new();
    }
    let mut search = Search {
        graph,
        component: vec![NONE; graph.nodes() as usize],
        cost: vec![u64::MAX; graph.nodes() as usize],
        came: vec![(NONE, Kind::Ww); graph.nodes() as usize],
        touched: Vec::new(),
        steps: 0,
    };
    let looked_into = &components[..components.len().min(COMPONENTS_MAX)];
    for (number, component) in looked_into.iter().enumerate() {
        for &node in component {
            search.component[node as usize] = number as u32;
        }
    }
    looked_into.iter().map(|component| search.best_cycle(component, transactions)).collect()
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
    fn best_cycle(&mut self, component: &[u32], transactions: u32) -> Vec<Step> {
        let mut best = (u64::MAX, Vec::new());
        for length_max in LENGTHS {
            self.steps = 0;
            let complete = component.iter().filter(|&&node| node < transactions).all(|&start| {
                let searchable = self.steps <= STEPS_MAX || (length_max == u32::MAX && best.1.is_empty());
                if searchable {
                    self.search(start, length_max, &mut best);
                }
                searchable
            });
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
