//! The dependency graph of committed transactions: A → B means that A comes before B in every
//! serial order that explains what was recorded.
//!
//! | edge | reason |
//! |---|---|
//! | ww | B installed the version after A's |
//! | wr | B read A's version |
//! | rw | A read the version before B's |
//! | phantom | A scanned a range and saw no row where B inserted one: an rw edge of a predicate |
//! | session, time | A was answered before B began (only without scalar timestamps, see below) |
//!
//! Only neighbours in a chain of versions are connected; the rest follows by transitivity. A scan
//! gives, for every record of its range, the edges that a point read of that record would have
//! given. What an absence tells is worked out in `index.rs`.
//!
//! # Helper nodes
//!
//! Two kinds of edges would be too many, and go through nodes that are no transactions. No cycle is
//! made or lost by that: a path between two transactions through helpers exists where the edge
//! would.
//!
//! *Settled blocks* stand for the tombstones that a scan runs over; see `settled.rs`.
//!
//! *Time.* With [`Options::realtime`](crate::Options), who was answered comes before who began
//! afterwards. One node per answer, in the order of answers, makes a line; a transaction enters it
//! at its answer and leaves it at its beginning. With scalar timestamps `realtime.rs` compares
//! numbers instead.

use std::collections::BTreeMap;

use crate::anomaly;
use crate::cycles;
use crate::index::{Index, NONE};
use crate::realtime::Answers;
use crate::report::Report;
use crate::settled::{RADIX, Settled};
use crate::words::Words;
use plimsoll_types::history::{ScanRead, Version};

/// Why one transaction comes before another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Ww,
    Wr,
    Rw,
    Phantom,
    Session,
    Time,
}

impl Kind {
    const ALL: [Kind; 6] = [Kind::Ww, Kind::Wr, Kind::Rw, Kind::Phantom, Kind::Session, Kind::Time];

    /// Whether the edge is an anti-dependency, of a record or of a predicate.
    pub fn anti(self) -> bool {
        matches!(self, Kind::Rw | Kind::Phantom)
    }

    /// Whether the edge comes from what clients observed, not from data.
    pub fn outside(self) -> bool {
        matches!(self, Kind::Session | Kind::Time)
    }
}

/// A dependency between two transactions, with what it rests on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub from: u32,
    pub to: u32,
    pub kind: Kind,
    /// The record, or none if `kind` is [`Kind::outside`].
    pub record: u32,
    /// The position in the record's chain: the earlier of the two (ww), the one read (wr, rw).
    pub position: u32,
    /// Whether what was read was an absence.
    pub absent: bool,
}

/// The graph in compressed rows: node n's edges are `edges[starts[n]..starts[n + 1]]`, each a
/// target and a kind. Transactions come first, helpers after them.
pub(crate) struct Graph {
    starts: Vec<u32>,
    edges: Vec<u32>,
}

const KIND_BITS: u32 = 3;

/// An edge without its origin.
pub(crate) fn pack(to: u32, kind: Kind) -> u32 {
    to << KIND_BITS | kind as u32
}

impl Graph {
    /// Sorts edges by their origin.
    pub fn new(nodes: u32, pairs: Vec<(u32, u32)>) -> Graph {
        assert!(nodes < 1 << (32 - KIND_BITS), "a graph has fewer than 2^29 nodes");
        assert!(pairs.len() < NONE as usize, "a graph has fewer than 2^32 edges");
        let mut starts = vec![0u32; nodes as usize + 1];
        for (from, _) in &pairs {
            starts[*from as usize] += 1;
        }
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut edges = vec![0; pairs.len()];
        for (from, packed) in pairs.into_iter().rev() {
            let place = &mut starts[from as usize];
            *place -= 1;
            edges[*place as usize] = packed;
        }
        Graph { starts, edges }
    }

    pub fn nodes(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    pub fn len(&self) -> u64 {
        self.edges.len() as u64
    }

    /// Where a node's edges begin, and where they end, for [`Graph::edge`].
    #[inline]
    pub fn span(&self, node: u32) -> (u32, u32) {
        (self.starts[node as usize], self.starts[node as usize + 1])
    }

    /// An edge's target and kind.
    #[inline]
    pub fn edge(&self, at: u32) -> (u32, Kind) {
        let packed = self.edges[at as usize];
        (packed >> KIND_BITS, Kind::ALL[(packed & ((1 << KIND_BITS) - 1)) as usize])
    }

    pub fn edges(&self, node: u32) -> impl Iterator<Item = (u32, Kind)> {
        let (start, end) = self.span(node);
        (start..end).map(|at| self.edge(at))
    }
}

/// Builds the graph and reports its cycles; returns how many edges it has.
pub(crate) fn check(index: &Index, words: &Words, report: &mut Report) -> u64 {
    let settled = Settled::build(index, RADIX);
    let (graph, impossible) = build(index, &settled);
    for &(txn, found) in &impossible {
        match found {
            Impossible::Row(record) => report.add("row not found", || {
                words.begin();
                let (txn, record) = (words.txn(txn), words.record(record));
                format!("{txn} found no {record}, which was loaded and which nobody has deleted")
            }),
            Impossible::Own { record, position } => report.add("read of its own later version", || {
                words.begin();
                let (name, at) = (words.record(record), words.stamp(record, position));
                let (txn, again) = (words.txn(txn), words.txn(txn));
                match index.chain(record)[position as usize - 1].delete {
                    true => {
                        format!("{txn} found no {name}, which {again} itself deleted only later, at {at}")
                    }
                    false => format!("{txn} read {name} at {at}, which {again} itself wrote only later"),
                }
            }),
        }
    }
    let components = cycles::components(&graph);
    let cycles = cycles::telling_cycles(&graph, &components, index.transactions());
    let reasons = reasons(index, &cycles);
    for cycle in &cycles {
        let (kind, edges) = anomaly::name(index, cycle, &reasons);
        report.add(kind, || anomaly::tell(words, &edges));
    }
    graph.len()
}

fn build(index: &Index, settled: &Settled) -> (Graph, Vec<(u32, Impossible)>) {
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    let mut impossible = Vec::new();
    let first_block = index.transactions();
    let mut used = vec![false; settled.blocks() as usize];
    let mut walker = Walker { index, settled, rows: Vec::new() };
    for txn in 0..index.history.transactions.len() as u32 {
        walker.visit(txn, &mut |found| match found {
            WalkResult::Edge(edge) => pairs.push((edge.from, pack(edge.to, edge.kind))),
            WalkResult::Block(block) => {
                // Without a scalar order a settled absence says nothing new.
                if index.options.scalar {
                    used[block as usize] = true;
                    pairs.push((first_block + block, pack(txn, Kind::Wr)));
                }
            }
            WalkResult::Impossible(found) => impossible.push((txn, found)),
        });
    }
    settled.connect(index, used, first_block, &mut pairs);
    let mut nodes = first_block + settled.blocks();
    write_edges(index, &mut |edge| pairs.push((edge.from, pack(edge.to, edge.kind))));
    if !index.options.scalar {
        if index.options.realtime {
            nodes = time_line(&Answers::of_all(index), Kind::Time, nodes, &mut pairs);
        }
        if index.options.sessions {
            for answers in Answers::by_session(index) {
                nodes = time_line(&answers, Kind::Session, nodes, &mut pairs);
            }
        }
    }
    (Graph::new(nodes, pairs), impossible)
}

/// One node per answer, in their order; returns the next free node.
fn time_line(answers: &Answers, kind: Kind, first: u32, pairs: &mut Vec<(u32, u32)>) -> u32 {
    for (at, &txn) in answers.order().iter().enumerate() {
        let node = first + at as u32;
        pairs.push((txn, pack(node, kind)));
        if at > 0 {
            pairs.push((node - 1, pack(node, kind)));
        }
        if let Some(before) = answers.before(at) {
            pairs.push((first + before as u32, pack(txn, kind)));
        }
    }
    first + answers.order().len() as u32
}

fn write_edges(index: &Index, sink: &mut dyn FnMut(Edge)) {
    for record in 0..index.records() {
        for (at, pair) in index.chain(record).windows(2).enumerate() {
            if pair[0].writer != pair[1].writer {
                let (from, to) = (pair[0].writer, pair[1].writer);
                sink(Edge { from, to, kind: Kind::Ww, record, position: at as u32 + 1, absent: false });
            }
        }
    }
}

/// What a walk over a transaction's reads finds.
enum WalkResult {
    Edge(Edge),
    /// A scan covers this block of settled records.
    Block(u32),
    /// The transaction saw what it cannot have seen, wherever it stands in the order.
    Impossible(Impossible),
}

/// What no place in the order explains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Impossible {
    /// No row of this record was seen, and there always was one.
    Row(u32),
    /// The reader saw the version that it installed itself when it committed. A read of what it has
    /// buffered is not recorded (see [`plimsoll_types::history`]). An edge from a transaction to
    /// itself would say so, too, but the graph has none.
    Own { record: u32, position: u32 },
}

/// Walks over what transactions read.
struct Walker<'a, 'h> {
    index: &'a Index<'h>,
    settled: &'a Settled,
    /// Ranks of the rows that the present scan saw, sorted.
    rows: Vec<u32>,
}

impl Walker<'_, '_> {
    /// Everything that a transaction's reads say about its place in the order.
    fn visit(&mut self, txn: u32, sink: &mut dyn FnMut(WalkResult)) {
        let index = self.index;
        for (read, record) in index.reads(txn) {
            match read.version {
                Version::At(stamp) => {
                    if let Some(position) = index.position(record, stamp) {
                        self.live(txn, record, position, sink);
                    }
                }
                Version::Absent => self.absent(txn, record, Kind::Rw, sink),
            }
        }
        for (scan, rows) in index.scans(txn) {
            for ((_, stamp), &record) in scan.rows.iter().zip(rows) {
                if let Some(position) = index.position(record, *stamp) {
                    self.live(txn, record, position, sink);
                }
            }
            self.rows.clear();
            self.rows.extend(rows.iter().filter_map(|&record| index.rank(record)));
            self.rows.sort_unstable();
            self.missing(txn, scan, sink);
        }
    }

    /// The records of a scan's range that it did not see.
    fn missing(&self, txn: u32, scan: &ScanRead, sink: &mut dyn FnMut(WalkResult)) {
        let range = self.index.range(scan);
        let horizon = self.index.settled_horizon(txn);
        let (mut at, mut seen) = (range.start, 0);
        while at < range.end {
            while self.rows.get(seen).is_some_and(|&row| row < at) {
                seen += 1;
            }
            let next_row = self.rows.get(seen).copied().unwrap_or(range.end).min(range.end);
            if at == next_row {
                at += 1;
                continue;
            }
            match self.settled.block(at, next_row, horizon) {
                Some((block, end)) => {
                    sink(WalkResult::Block(block));
                    at = end;
                }
                None => {
                    self.absent(txn, self.index.at_rank(at), Kind::Phantom, sink);
                    at += 1;
                }
            }
        }
    }

    fn live(&self, txn: u32, record: u32, position: u32, sink: &mut dyn FnMut(WalkResult)) {
        self.reads_from(txn, record, position, false, sink);
        self.overwritten(txn, record, position, false, Kind::Rw, sink);
    }

    fn absent(&self, txn: u32, record: u32, anti: Kind, sink: &mut dyn FnMut(WalkResult)) {
        match self.index.absence(record, txn) {
            Some(span) => {
                self.reads_from(txn, record, span.first, true, sink);
                self.overwritten(txn, record, span.last, true, anti, sink);
            }
            None => sink(WalkResult::Impossible(Impossible::Row(record))),
        }
    }

    fn reads_from(
        &self,
        to: u32,
        record: u32,
        position: u32,
        absent: bool,
        sink: &mut dyn FnMut(WalkResult),
    ) {
        if position > 0 {
            let from = self.index.chain(record)[position as usize - 1].writer;
            sink(match from == to {
                true => WalkResult::Impossible(Impossible::Own { record, position }),
                false => WalkResult::Edge(Edge { from, to, kind: Kind::Wr, record, position, absent }),
            });
        }
    }

    fn overwritten(
        &self,
        from: u32,
        record: u32,
        position: u32,
        absent: bool,
        kind: Kind,
        sink: &mut dyn FnMut(WalkResult),
    ) {
        if let Some(next) = self.index.chain(record).get(position as usize)
            && next.writer != from
        {
            sink(WalkResult::Edge(Edge { from, to: next.writer, kind, record, position, absent }));
        }
    }
}

/// What the steps of some cycles rest on, by (from, to, kind): each reason there is.
pub(crate) type Reasons = BTreeMap<(u32, u32, Kind), Vec<Edge>>;

/// Looks up the reasons of the steps of cycles, which the graph does not keep.
fn reasons(index: &Index, cycles: &[Vec<cycles::Step>]) -> Reasons {
    let mut reasons = Reasons::new();
    let mut readers = Vec::new();
    for step in cycles.iter().flatten() {
        reasons.insert((step.from, step.to, step.kind), Vec::new());
        readers.extend([step.from, step.to]);
    }
    if reasons.is_empty() {
        return reasons;
    }
    readers.sort_unstable();
    readers.dedup();
    let mut add = |edge: Edge| {
        if let Some(found) = reasons.get_mut(&(edge.from, edge.to, edge.kind)) {
            found.push(edge);
        }
    };
    let settled = Settled::none();
    let mut walker = Walker { index, settled: &settled, rows: Vec::new() };
    for &txn in readers.iter().filter(|&&txn| index.transaction(txn).is_some()) {
        walker.visit(txn, &mut |found| {
            if let WalkResult::Edge(edge) = found {
                add(edge);
            }
        });
    }
    write_edges(index, &mut add);
    for (&(from, to, kind), found) in &mut reasons {
        if kind.outside() {
            found.push(Edge { from, to, kind, record: NONE, position: 0, absent: false });
        }
        assert!(!found.is_empty(), "every step of a cycle rests on a dependency");
    }
    reasons
}

#[cfg(test)]
mod tests {
    use plimsoll_types::{Key, ShardId, TableId, Timestamp, TxnId};

    use super::*;
    use crate::Options;
    use plimsoll_types::history::{History, Install, Transaction};

    /// A queue of `rows` rows, inserted at @1, @2, ... one after the other and then deleted in the
    /// same order, and as many scans, each at another moment of all that.
    fn queue(rows: u64, stride: u64) -> History {
        let column = TableId(0).row();
        let mut history = History { installs: vec![vec![]], ..History::default() };
        for number in 0..4 * rows {
            let id = TxnId { number, coordinator: ShardId(0) };
            let read_only = number >= 2 * rows;
            let stamp = if read_only { number * stride % (2 * rows) + 1 } else { number + 1 };
            let live = (0..rows).filter(|row| (row + 1..row + 1 + rows).contains(&stamp));
            let seen = live.map(|row| (Key::new(&[row as u8]), Timestamp(row + 1))).collect();
            let scan = ScanRead { column, low: Key::MIN, high: None, rows: seen };
            history.transactions.push(Transaction {
                id,
                label: "queue",
                read_only,
                timestamp: Some(Timestamp(stamp)),
                session: 0,
                begin: 0,
                end: 0,
                writes: None,
                reads: vec![],
                scans: if read_only { vec![scan] } else { vec![] },
            });
            if !read_only {
                let key = Key::new(&[(number % rows) as u8]);
                let delete = number >= rows;
                history.installs[0].push(Install { txn: id, column, key, stamp: Timestamp(stamp), delete });
            }
        }
        history
    }

    /// Which transactions each transaction reaches.
    fn reach(index: &Index, settled: &Settled) -> Vec<Vec<u32>> {
        let (graph, impossible) = build(index, settled);
        assert_eq!(impossible, []);
        let from = |start: u32| {
            let mut reached = vec![false; graph.nodes() as usize];
            let mut open = vec![start];
            while let Some(node) = open.pop() {
                let new = graph.edges(node).filter(|(to, _)| !reached[*to as usize]).map(|(to, _)| to);
                let new: Vec<u32> = new.collect();
                new.iter().for_each(|&to| reached[to as usize] = true);
                open.extend(new);
            }
            (0..index.transactions()).filter(|&txn| reached[txn as usize]).collect()
        };
        (0..index.transactions()).map(from).collect()
    }

    #[test]
    fn settled_blocks_neither_add_nor_lose_a_dependency() {
        for (rows, stride) in [(1, 1), (2, 1), (7, 3), (32, 5), (33, 7), (100, 9)] {
            let history = queue(rows, stride);
            let index = Index::build(&history, Options { scalar: true, ..Options::default() });
            let plain = reach(&index, &Settled::none());
            for radix in [2, 3, 64] {
                let settled = Settled::build(&index, radix);
                assert_eq!(reach(&index, &settled), plain, "{rows} rows in blocks of {radix}");
            }
        }
    }
}
