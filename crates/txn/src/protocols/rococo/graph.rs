//! The dependency graph: the order in which transactions must execute, and their stamps.
//!
//! A vertex is a transaction that has started somewhere. Its *predecessors* are the transactions
//! that had started on one of its items before it and were undecided then; each server notes those
//! that met there, and the coordinator of T unites them. Once all pieces of T have started, no
//! predecessor can be added: T is *known*.
//!
//! Two transactions may have met in one order on one server and in the other on another. Then they
//! are in a cycle, and every server must break it in the same way. [`Graph::fix`] looks at all
//! transactions that can be reached from T along predecessors. If all of them are known, every
//! server finds the same transactions and the same strongly connected components. Predecessors
//! first, each component is **fixed**:
//!
//! * its *order* is topological by immediate edges (pieces that have already been executed in that
//!   order), ties go to the smaller id. [`crate::chopping`] ensures that immediate edges alone
//!   never make a cycle;
//! * its *stamps* are `base, base + 1, ...` in that order, with `base = max(tentative stamps of all
//!   members, 1 + last stamps of the components of all predecessors outside)`.
//!
//! So stamps increase along every edge, and within a component in the order of execution: a
//! snapshot between two of them sees a prefix of that order. The DST paper (§4.2) takes stamps from
//! the start phase alone. That is not enough: two transactions that start one after the other on
//! one item both find the same bound, and the order is decided later.
//!
//! Worked example. On A, T1 starts before T2; on B, T2 before T1. T1's tentative stamp is 10, T2's
//! is 7, and a predecessor T0 of T2 is fixed at 14. The component {T1, T2} gets base 15: T1 at 15,
//! T2 at 16, on A and on B.
//!
//! A search ends at a fixed vertex, because its stamp is above those of all its predecessors. A
//! server that asks about a fixed vertex is sent its whole component, because the transaction for
//! which it asks may be a member.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{ShardId, Timestamp, TxnId};

use crate::base::GraphSize;

/// A transaction that had started before another on an item of both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pred {
    /// The earlier one.
    pub txn: TxnId,
    /// The server where they met.
    pub via: ShardId,
    /// Whether the later one's piece has already executed there.
    pub immediate: bool,
}

plimsoll_types::wire!(struct Pred { txn, via, immediate });

/// The result of a transaction's start phase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartResult {
    /// Its stamp will not be below this.
    pub tentative: Timestamp,
    /// Its direct predecessors, in order.
    pub preds: Vec<Pred>,
    /// It does nothing: one of its pieces has refused before anything was written.
    pub noop: bool,
}

plimsoll_types::wire!(struct StartResult { tentative, preds, noop });

/// A transaction in its component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The transaction.
    pub txn: TxnId,
    /// Its stamp.
    pub stamp: Timestamp,
    /// Whether it does nothing.
    pub noop: bool,
}

plimsoll_types::wire!(struct Member { txn, stamp, noop });

/// A strongly connected component: its members in the order of execution.
pub type Component = Arc<[Member]>;

/// A server's answer about a transaction. A fixed transaction is told with all members of its
/// component, and whether each of them does nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TxnReport {
    /// It is known.
    Known(TxnId, StartResult),
    /// It is fixed, with the members of its component.
    Fixed(Vec<Member>),
    /// It, and every transaction that had met it here, is decided everywhere and forgotten.
    Gone(TxnId),
}

plimsoll_types::wire!(
    enum TxnReport {
        Known(txn, known) = 0,
        Fixed(component) = 1,
        Gone(txn) = 2,
    }
);

#[derive(Debug)]
enum Vertex {
    Known(StartResult),
    Fixed(Component),
}

impl Vertex {
    /// Its memory, in bytes.
    fn bytes(&self) -> usize {
        let more = match self {
            Vertex::Known(known) => size_of_val(&known.preds[..]),
            // The members share the component.
            Vertex::Fixed(_) => size_of::<Member>(),
        };
        size_of::<(TxnId, Vertex)>() + more
    }
}

/// The part of the dependency graph that a server knows.
#[derive(Debug, Default)]
pub struct Graph {
    vertices: BTreeMap<TxnId, Vertex>,
    /// Memory of the vertices.
    bytes: usize,
    /// How many vertices the last sweep has left.
    swept: usize,
    /// Whether immediate edges made a cycle, which is impossible if all servers tell the truth.
    pub contradicted: bool,
}

impl Graph {
    /// The start phase of a transaction is over. This may be out of date: the transaction may have
    /// been fixed here and forgotten, while other members of its component are still there. One of
    /// them is its predecessor, and has the component.
    pub fn learn(&mut self, txn: TxnId, known: StartResult) {
        let with = |pred: &Pred| {
            let component = self.component(pred.txn)?;
            component.iter().any(|member| member.txn == txn).then(|| component.clone())
        };
        match known.preds.iter().find_map(with) {
            Some(component) => self.learn_fixed(&component),
            None if !self.knows(txn) => self.put(txn, Vertex::Known(known)),
            None => {}
        }
    }

    /// A component is fixed, here or on another server.
    pub fn learn_fixed(&mut self, component: &Component) {
        component.iter().for_each(|member| self.put(member.txn, Vertex::Fixed(component.clone())));
    }

    /// Whether a component that another server has fixed agrees with the ones fixed here.
    pub fn agrees(&self, members: &[Member]) -> bool {
        let same = |member: &Member| self.component(member.txn).is_none_or(|mine| mine.contains(member));
        members.iter().all(same)
    }

    fn put(&mut self, txn: TxnId, vertex: Vertex) {
        self.bytes += vertex.bytes();
        if let Some(before) = self.vertices.insert(txn, vertex) {
            self.bytes -= before.bytes();
        }
    }

    /// The component of a transaction that is fixed.
    pub fn component(&self, txn: TxnId) -> Option<&Component> {
        match self.vertices.get(&txn) {
            Some(Vertex::Fixed(component)) => Some(component),
            _ => None,
        }
    }

    /// The stamp of a transaction that is fixed.
    pub fn stamp(&self, txn: TxnId) -> Option<Timestamp> {
        self.component(txn)?.iter().find(|member| member.txn == txn).map(|member| member.stamp)
    }

    /// Whether the start phase of a transaction is over, as far as is known here.
    pub fn knows(&self, txn: TxnId) -> bool {
        self.vertices.contains_key(&txn)
    }

    /// Forgets a transaction.
    pub fn forget(&mut self, txn: TxnId) {
        if let Some(vertex) = self.vertices.remove(&txn) {
            self.bytes -= vertex.bytes();
        }
    }

    fn retain(&mut self, keep: impl Fn(&TxnId, &Vertex) -> bool) {
        let bytes = &mut self.bytes;
        self.vertices.retain(|txn, vertex| {
            let keeps = keep(txn, vertex);
            *bytes -= if keeps { 0 } else { vertex.bytes() };
            keeps
        });
    }

    /// `gone`, and every transaction that had met it, is decided everywhere. If such a transaction
    /// is not fixed here, the information about it is out of date and is dropped. `keep` returns
    /// true for the server's own transactions.
    pub fn forget_successors(&mut self, gone: TxnId, keep: impl Fn(&TxnId) -> bool) {
        self.retain(|txn, vertex| match vertex {
            Vertex::Known(known) => keep(txn) || !known.preds.iter().any(|pred| pred.txn == gone),
            Vertex::Fixed(_) => true,
        });
    }

    /// Keeps only the vertices that can be reached from `roots`, and those that `keep` names.
    pub fn sweep(&mut self, roots: impl Iterator<Item = TxnId>, keep: impl Fn(&TxnId) -> bool) {
        let mut reached = BTreeSet::new();
        for root in roots {
            self.reach(root, &mut reached);
        }
        self.retain(|txn, _| keep(txn) || reached.contains(txn));
        self.swept = self.vertices.len();
    }

    /// Whether it has more than twice the vertices that the last sweep has left, plus `least`: then
    /// the next sweep costs no more than the vertices added since.
    pub fn has_grown(&self, least: usize) -> bool {
        self.vertices.len() > 2 * self.swept + least
    }

    /// How many transactions it has vertices for.
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Its size in vertices and in memory.
    pub fn size(&self) -> GraphSize {
        GraphSize { vertices: self.vertices.len() as u64, bytes: self.bytes as u64 }
    }

    fn reach(&self, root: TxnId, reached: &mut BTreeSet<TxnId>) {
        let mut next = vec![root];
        while let Some(txn) = next.pop() {
            if reached.insert(txn)
                && let Some(Vertex::Known(known)) = self.vertices.get(&txn)
            {
                next.extend(known.preds.iter().map(|pred| pred.txn));
            }
        }
    }

    /// Everything known of a transaction and of those before it: another server needs this to fix
    /// the transaction.
    pub fn tell(&self, txn: TxnId) -> Vec<TxnReport> {
        let mut reached = BTreeSet::new();
        self.reach(txn, &mut reached);
        let told = reached.into_iter().filter_map(|txn| match self.vertices.get(&txn)? {
            Vertex::Known(known) => Some(TxnReport::Known(txn, known.clone())),
            Vertex::Fixed(component) => Some(TxnReport::Fixed(component.to_vec())),
        });
        told.collect()
    }

    /// Fixes a transaction and all transactions before it. Returns the new components, predecessors
    /// first; or the transactions whose start phase is not known to be over, each with the server
    /// to ask.
    pub fn fix(&mut self, txn: TxnId) -> Result<Vec<Component>, Vec<Pred>> {
        let reachable = self.reachable(txn)?;
        let mut fixed = Vec::new();
        for members in components(&reachable) {
            let members: Vec<TxnId> = members.into_iter().map(|index| reachable.txns[index]).collect();
            let component: Component = self.stamped(&members).into();
            self.learn_fixed(&component);
            fixed.push(component);
        }
        Ok(fixed)
    }

    /// The transactions that can be reached from `root` without passing a fixed one.
    fn reachable(&self, root: TxnId) -> Result<Reachable, Vec<Pred>> {
        let mut found = Reachable::default();
        if self.component(root).is_some() {
            return Ok(found);
        }
        let mut unknown: BTreeMap<TxnId, Pred> = BTreeMap::new();
        let mut numbers = BTreeMap::from([(root, 0)]);
        found.txns.push(root);
        let mut next = 0;
        while next < found.txns.len() {
            let Some(Vertex::Known(known)) = self.vertices.get(&found.txns[next]) else {
                unreachable!("only who is known and not fixed is looked behind")
            };
            let mut edges = Vec::new();
            for pred in &known.preds {
                match self.vertices.get(&pred.txn) {
                    Some(Vertex::Fixed(_)) => {}
                    Some(Vertex::Known(_)) => {
                        let number = *numbers.entry(pred.txn).or_insert_with(|| {
                            found.txns.push(pred.txn);
                            found.txns.len() - 1
                        });
                        edges.push(number);
                    }
                    None => {
                        unknown.entry(pred.txn).or_insert(*pred);
                    }
                }
            }
            found.edges.push(edges);
            next += 1;
        }
        if unknown.is_empty() { Ok(found) } else { Err(unknown.into_values().collect()) }
    }

    /// Orders the members of a component and gives them stamps. All their predecessors outside of
    /// it are fixed.
    fn stamped(&mut self, members: &[TxnId]) -> Vec<Member> {
        let known = |txn: &TxnId| match &self.vertices[txn] {
            Vertex::Known(known) => known,
            Vertex::Fixed(_) => unreachable!("a component is fixed once"),
        };
        let mut base = members.iter().map(|txn| known(txn).tentative).max().expect("it has members");
        for pred in members.iter().flat_map(|txn| &known(txn).preds) {
            let Some(component) = self.component(pred.txn) else { continue };
            // The component's last stamp, not that of `pred`: of two members on one item the one
            // with the later stamp may have started first, and then only the other one is a
            // predecessor.
            let last = match planted(Mutant::SiblingsIgnored) {
                true => self.stamp(pred.txn),
                false => component.last().map(|member| member.stamp),
            };
            if !planted(Mutant::StartStampsOnly) {
                base = base.max(last.expect("a component has members").next());
            }
        }
        // Kahn's algorithm; of the transactions without unordered predecessors the one with the
        // smallest id is next.
        let inside: BTreeSet<TxnId> = members.iter().copied().collect();
        let mut waits: BTreeMap<TxnId, usize> = BTreeMap::new();
        let mut releases: BTreeMap<TxnId, Vec<TxnId>> = BTreeMap::new();
        for txn in &inside {
            let preds = known(txn).preds.iter().filter(|pred| pred.immediate && inside.contains(&pred.txn));
            let before: BTreeSet<TxnId> = preds.map(|pred| pred.txn).collect();
            waits.insert(*txn, before.len());
            before.into_iter().for_each(|pred| releases.entry(pred).or_default().push(*txn));
        }
        let mut ready: BTreeSet<TxnId> =
            waits.iter().filter(|(_, waits)| **waits == 0).map(|(txn, _)| *txn).collect();
        let mut ordered = Vec::with_capacity(members.len());
        while ordered.len() < members.len() {
            let txn = match ready.pop_first() {
                Some(txn) => txn,
                // A checked chopping has no such cycle, so a server has told something wrong. Break
                // the cycle, so that no transaction waits for ever.
                None => {
                    self.contradicted = true;
                    *waits.iter().find(|(_, waits)| **waits > 0).expect("somebody is left").0
                }
            };
            waits.remove(&txn);
            let stamp = match planted(Mutant::StartStampsOnly) {
                true => known(&txn).tentative,
                false => Timestamp(base.0 + ordered.len() as u64),
            };
            ordered.push(Member { txn, stamp, noop: known(&txn).noop });
            for next in releases.remove(&txn).unwrap_or_default() {
                // It was already ordered, to break a cycle.
                let Some(waits) = waits.get_mut(&next) else { continue };
                *waits -= 1;
                if *waits == 0 {
                    ready.insert(next);
                }
            }
        }
        ordered
    }
}

/// A part of the graph whose vertices have numbers.
#[derive(Debug, Default)]
struct Reachable {
    txns: Vec<TxnId>,
    /// Edges to predecessors.
    edges: Vec<Vec<usize>>,
}

/// Strongly connected components, predecessors first (Tarjan 1972), without recursion: chains are
/// as long as a hot item has transactions in flight.
fn components(graph: &Reachable) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let count = graph.txns.len();
    let (mut index, mut low) = (vec![NEW; count], vec![0; count]);
    let (mut stack, mut on_stack) = (Vec::new(), vec![false; count]);
    let mut found = Vec::new();
    let mut next_index = 0;
    for root in 0..count {
        if index[root] != NEW {
            continue;
        }
        // Each frame: a vertex, and how many of its edges were followed.
        let mut frames = vec![(root, 0)];
        while let Some((vertex, followed)) = frames.last_mut() {
            let vertex = *vertex;
            if *followed == 0 {
                (index[vertex], low[vertex]) = (next_index, next_index);
                next_index += 1;
                stack.push(vertex);
                on_stack[vertex] = true;
            }
            if let Some(&next) = graph.edges[vertex].get(*followed) {
                *followed += 1;
                if index[next] == NEW {
                    frames.push((next, 0));
                } else if on_stack[next] {
                    low[vertex] = low[vertex].min(index[next]);
                }
                continue;
            }
            frames.pop();
            if let Some((parent, _)) = frames.last() {
                low[*parent] = low[*parent].min(low[vertex]);
            }
            if low[vertex] == index[vertex] {
                let from = stack.iter().rposition(|&v| v == vertex).expect("it is on the stack");
                let members = stack.split_off(from);
                members.iter().for_each(|&member| on_stack[member] = false);
                found.push(members);
            }
        }
    }
    found
}
