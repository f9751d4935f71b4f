//! The ordered index: a B+tree of our own, from keys to row numbers.
//!
//! A serializable database needs more of an index than order. A scan must leave its mark on the
//! *gaps* it has seen, and a transaction must be able to ask later whether a gap still is one
//! (`docs/protocols/dst.md`). Here the leaves answer for their gaps: every leaf owns an interval of
//! the key space and carries a *mark* (an upper bound of the timestamps of its scanners) and a
//! *version* (which every newly linked key changes). The leaves' intervals follow each other
//! without a gap from [`Key::MIN`] to infinity, so a range without a single key still has an owner.
//!
//! # A worked example
//! Let leaves hold four entries. Leaf A = `10 20 30 40` owns everything; mark 7, version 4.
//! * *Insert 25.* A is full. It splits in the middle: A = `10 20 25` owns keys below 30 and the new
//!   leaf B = `30 40` owns the rest. Whoever scanned A has scanned a part of B: B inherits mark 7,
//!   and both get new versions, 5 and 6, so a transaction that remembers (A, 4) knows that A is no
//!   longer what it saw.
//! * *Insert 50, 60, 70.* The fifth key, 70, arrives at the end of a full leaf `30 40 50 60` where
//!   50 and 60 arrived before. This is an ascending run, a split in the middle would leave
//!   half-empty leaves behind for ever, so B stays as it is and a new leaf C = `70` takes over
//!   at 70.
//! * *Remove 10, 20, 25.* Removal is the garbage collector's work and changes neither mark nor
//!   version: the records' deletion was a matter between transactions long ago. Only when A has run
//!   empty it merges with B, its neighbour under one parent: the left one survives, with the larger
//!   mark and a new version; the right one's number goes to the free list, with a new version, too.
//!
//! # Layout
//! A node, leaf or inner, is a [`Page`]: up to 64 sorted heads, as many 32-bit values (rows or
//! children), and unused heads set to the largest integer so that a search needs no length. An
//! inner node stores with each child the *separator* at which the child's interval begins. Keys of
//! up to 15 bytes are their heads. Of longer keys a leaf has the heads only, and asks [`Tails`]
//! about the rest when heads agree; inner nodes keep as much of the tail as tells the two sides of
//! a split apart, mostly nothing.
//!
//! A search is three rounds of three or four independent comparisons, not six dependent ones: the
//! processor fetches the cache lines of one round at the same time, and has nothing to guess.
//!
//! The last leaves are remembered with the range of heads that surely belongs to them, so that ten
//! adjacent order lines need one descent, and a queue's two ends none.
//!
//! # Invariants
//! * Every key is owned by exactly one leaf. No leaf is empty unless it is the only one, and no
//!   inner node has a single child (so there always is a neighbour to merge with).
//! * Versions are drawn from one counter: no number is ever seen twice, neither by a leaf nor by a
//!   leaf that reuses its number.
//! * What two leaves know about the past is never lost: split copies marks, merge takes the larger.
//! * A hint never covers a head that its leaf does not own completely.
//!
//! # Left out
//! Leaves are not compressed: a head takes 16 bytes even where 14 are the same in all of them (a
//! key takes 22 bytes when loaded in order, 31 at random). Leaves under different parents do not
//! merge, nor does a sparse leaf between two that are fairly full. There are no links to the left: a
//! descending scan goes from leaf to leaf over the inner nodes.

mod node;

use std::fmt;
use std::ops::ControlFlow;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Key, Order, Timestamp};

use crate::slab::Slab;
use crate::{Mark, RowId, Tails};
use node::{Inner, Leaf, Page, Separator, tail_of};

/// Entries of a node. Measured with 300,000 keys: 32 does not insert faster and takes more memory;
/// 128 finds a tenth faster and inserts a tenth slower, but then a mark and a version stand for
/// twice as many keys.
const CAP: usize = 64;
/// Two neighbours merge if together they have at most so many entries, so that a merged node has
/// room.
const MERGE_MAX: usize = CAP * 3 / 4;
/// After so many inserts in a row, each next to the one before, a leaf splits as runs do.
const RUN_MIN: u8 = 3;
/// How many leaves are remembered. A search that profits from none of them pays about 1 ns for
/// each.
const HINTS: usize = 2;
/// Nodes have at least two children: even the worst tree with 2^32 leaves has fewer levels.
const HEIGHT_MAX: usize = 32;
/// No node.
const NONE: u32 = u32::MAX;

/// Names a leaf. Reused after the leaf has been merged away, but never with a version it has had.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeafId(pub u32);

/// Where a key is or would be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The leaf that owns the key, present or not.
    pub leaf: LeafId,
    /// The key's row, if it is linked.
    pub row: Option<RowId>,
}

/// A position: just before the entry `index` of [`OrderedIndex::entries`] of a leaf, or at the
/// leaf's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The leaf that owns the key that was sought.
    pub leaf: LeafId,
    /// Position in the leaf; the number of its entries if all of them are smaller.
    pub index: usize,
}

/// All keys with `low <= head < high` are owned by the leaf.
#[derive(Clone, Copy)]
struct Hint {
    low: u128,
    high: u128,
    leaf: u32,
}

const NO_HINT: Hint = Hint { low: u128::MAX, high: 0, leaf: NONE };

/// The inner nodes from the root down to a leaf, and in each the position of the child taken.
struct Path {
    steps: [(u32, usize); HEIGHT_MAX],
    len: usize,
}

/// An ordered map from keys to rows whose leaves carry marks and versions; see the module's
/// description.
///
/// Methods that compare keys take the table's [`Tails`], which must hold the tail of every linked
/// row with a long key: put it there before [`insert`](Self::insert), take it away after
/// [`remove`](Self::remove).
pub struct OrderedIndex<M> {
    leaves: Slab<Leaf<M>, 6>,
    inners: Slab<Inner, 4>,
    /// A leaf if `height` is 0.
    root: u32,
    /// Levels of inner nodes.
    height: usize,
    len: usize,
    /// The last version given out.
    versions: u64,
    hints: [Hint; HINTS],
    /// The hint to be replaced next.
    oldest: usize,
    /// The halves, if the last insert was a split.
    split: Option<(LeafId, LeafId)>,
    /// Bytes of the separators' tails. A node's first separator repeats one above, and is not
    /// counted.
    tail_bytes: usize,
}

impl<M: Mark> Default for OrderedIndex<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> fmt::Debug for OrderedIndex<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderedIndex of {} keys, {} levels of inner nodes", self.len, self.height)
    }
}

impl<M: Mark> OrderedIndex<M> {
    /// An empty index: one empty leaf that owns all keys.
    pub fn new() -> Self {
        let mut leaves = Slab::new();
        let root = leaves.allocate(Leaf {
            page: Page::EMPTY,
            high: u128::MAX,
            version: 0,
            mark: M::default(),
            next: NONE,
            last: 0,
            run: 0,
        });
        OrderedIndex {
            leaves,
            inners: Slab::new(),
            root,
            height: 0,
            len: 0,
            versions: 0,
            hints: [NO_HINT; HINTS],
            oldest: 0,
            split: None,
            tail_bytes: 0,
        }
    }

    /// How many keys are linked.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no key is linked.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of all nodes, free ones included.
    pub fn bytes(&self) -> usize {
        self.leaves.bytes() + self.inners.bytes() + self.tail_bytes
    }

    /// Looks a key up.
    #[inline]
    pub fn find(&mut self, key: &Key, tails: &Tails) -> Place {
        let id = self.locate(key);
        let leaf = &self.leaves[id];
        let (at, found) = leaf.search(key, tails);
        Place { leaf: LeafId(id), row: found.then(|| leaf.page.values[at]) }
    }

    /// The position of the first key not below this one. It is at the end of a leaf if that key is
    /// the first one of the next.
    #[inline]
    pub fn seek(&mut self, key: &Key, tails: &Tails) -> Cursor {
        let id = self.locate(key);
        Cursor { leaf: LeafId(id), index: self.leaves[id].search(key, tails).0 }
    }

    /// Links a key, which must not be linked, to its row. Changes the version of the leaf that
    /// owned the key before (and of the one that does now, see [`last_split`](Self::last_split)).
    /// Returns the leaf that owns the key now.
    pub fn insert(&mut self, key: &Key, row: RowId, tails: &Tails) -> LeafId {
        let mut id = self.locate(key);
        let (mut at, found) = self.leaves[id].search(key, tails);
        assert!(!found, "a key is linked into an index at most once: {key:?}");
        self.split = None;
        if self.leaves[id].page.len() == CAP {
            (id, at) = self.split_leaf(id, at, key, tails);
        }
        let version = self.next_version();
        let leaf = &mut self.leaves[id];
        leaf.page.insert(at, key.head(), row);
        if !planted(Mutant::LinkUnnoticed) {
            leaf.version = version;
        }
        leaf.run = if adjacent(at, leaf.last) { (leaf.run + 1).min(RUN_MIN) } else { 0 };
        leaf.last = at as u8;
        self.len += 1;
        LeafId(id)
    }

    /// If the last [`insert`](Self::insert) split a leaf: that leaf, and the new one to its right.
    /// A transaction that remembers the former's version from before and has just made the insert
    /// itself goes on with the versions of both.
    pub fn last_split(&self) -> Option<(LeafId, LeafId)> {
        self.split
    }

    /// Unlinks a key, if it is linked. Returns its row and the leaf that owns the key *now*, after
    /// any merge: the one to take over what the removed record's mark says.
    pub fn remove(&mut self, key: &Key, tails: &Tails) -> (Option<RowId>, LeafId) {
        let id = self.locate(key);
        let leaf = &mut self.leaves[id];
        let (at, found) = leaf.search(key, tails);
        if !found {
            return (None, LeafId(id));
        }
        let row = leaf.page.remove(at);
        if at <= usize::from(leaf.last) {
            leaf.last = leaf.last.saturating_sub(1);
        }
        self.len -= 1;
        // Looking at the neighbours is dear: a draining leaf does it three times.
        let left = leaf.page.len();
        let sparse = left <= CAP / 4 && left.is_multiple_of(CAP / 8);
        let id = if sparse { self.merge_leaf(id, key) } else { id };
        (Some(row), LeafId(id))
    }

    /// Visits every leaf that overlaps `low <= key < high` in this order, with its mark, its
    /// version, and the heads and rows of exactly its entries in the range, always from the smallest
    /// to the largest (there may be none). The leaf after the range may be visited, too, without
    /// entries. Ends early if `visit` breaks.
    pub fn scan_leaves(
        &mut self,
        low: &Key,
        high: Option<&Key>,
        order: Order,
        tails: &Tails,
        visit: impl FnMut(LeafId, &mut M, u64, &[u128], &[RowId]) -> ControlFlow<()>,
    ) {
        if high.is_some_and(|high| high <= low) {
            return;
        }
        match order {
            Order::Ascending => self.scan_upwards(low, high, tails, visit),
            Order::Descending => self.scan_downwards(low, high, tails, visit),
        }
    }

    #[inline]
    fn scan_upwards(
        &mut self,
        low: &Key,
        high: Option<&Key>,
        tails: &Tails,
        mut visit: impl FnMut(LeafId, &mut M, u64, &[u128], &[RowId]) -> ControlFlow<()>,
    ) {
        let mut id = self.locate(low);
        let mut start = self.leaves[id].search(low, tails).0;
        while id != NONE {
            let leaf = &mut self.leaves[id];
            let count = leaf.page.len();
            let (end, last) = match high {
                Some(high) if leaf.high >= high.head() => {
                    let end = leaf.search(high, tails).0;
                    // If the separator has the head of a long `high`, only its tail could tell
                    // whether the next leaf overlaps. An entry beyond the range tells that it does
                    // not.
                    (end, end < count || leaf.high > high.head() || high.tail().is_none())
                }
                _ => (count, false),
            };
            let (heads, rows) = (&leaf.page.heads[start..end], &leaf.page.values[start..end]);
            if visit(LeafId(id), &mut leaf.mark, leaf.version, heads, rows).is_break() || last {
                return;
            }
            id = leaf.next;
            start = 0;
        }
    }

    #[inline]
    fn scan_downwards(
        &mut self,
        low: &Key,
        high: Option<&Key>,
        tails: &Tails,
        mut visit: impl FnMut(LeafId, &mut M, u64, &[u128], &[RowId]) -> ControlFlow<()>,
    ) {
        let mut path = self.path_by(|inner| high.map_or(inner.page.len() - 1, |high| inner.child(high)));
        // A leaf that begins at `high` has nothing of the range.
        if high.is_some_and(|high| self.beginning(&path) == (high.head(), tail(high))) {
            self.step_left(&mut path);
        }
        loop {
            let id = self.leaf_of(&path);
            let last = self.beginning(&path) <= (low.head(), tail(low));
            let leaf = &mut self.leaves[id];
            let start = if last { leaf.search(low, tails).0 } else { 0 };
            let end = match high {
                Some(high) if leaf.high >= high.head() => leaf.search(high, tails).0,
                _ => leaf.page.len(),
            };
            let (heads, rows) = (&leaf.page.heads[start..end], &leaf.page.values[start..end]);
            if visit(LeafId(id), &mut leaf.mark, leaf.version, heads, rows).is_break() || last {
                return;
            }
            self.step_left(&mut path);
        }
    }

    /// The heads and rows of a leaf, in key order.
    #[inline]
    pub fn entries(&self, leaf: LeafId) -> (&[u128], &[RowId]) {
        let page = &self.leaves[leaf.0].page;
        (&page.heads[..page.len()], &page.values[..page.len()])
    }

    /// The leaf that owns the keys above those of this leaf; `None` for the last one.
    #[inline]
    pub fn next_leaf(&self, leaf: LeafId) -> Option<LeafId> {
        let next = self.leaves[leaf.0].next;
        (next != NONE).then_some(LeafId(next))
    }

    /// A number that changes whenever the leaf receives a key, splits, merges or ceases to exist;
    /// never one that it has had before. Defined for every leaf that ever was.
    #[inline]
    pub fn version(&self, leaf: LeafId) -> u64 {
        self.leaves[leaf.0].version
    }

    /// The leaf's mark.
    #[inline]
    pub fn mark(&self, leaf: LeafId) -> M {
        self.leaves[leaf.0].mark
    }

    /// The leaf's mark, to be raised.
    #[inline]
    pub fn mark_mut(&mut self, leaf: LeafId) -> &mut M {
        &mut self.leaves[leaf.0].mark
    }

    /// An upper bound of the marks of all leaves.
    pub fn marks(&self) -> Timestamp {
        let leaves = 0..self.leaves.slots() as u32;
        leaves.map(|leaf| self.leaves[leaf].mark.get()).max().unwrap_or_default()
    }

    fn next_version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    /// The leaf that owns a key, from a hint or from the root.
    #[inline]
    fn locate(&mut self, key: &Key) -> u32 {
        let head = key.head();
        for hint in &self.hints {
            if hint.low <= head && head < hint.high {
                return hint.leaf;
            }
        }
        self.descend(key)
    }

    fn descend(&mut self, key: &Key) -> u32 {
        let mut hint = Hint { low: 0, high: u128::MAX, leaf: self.root };
        for _ in 0..self.height {
            let inner = &self.inners[hint.leaf];
            let at = inner.child(key);
            // Below a separator with a tail there are keys with its head that belong to the left.
            hint.low = inner.page.heads[at] + u128::from(!inner.tail(at).is_empty());
            if at + 1 < inner.page.len() {
                hint.high = inner.page.heads[at + 1];
            }
            hint.leaf = inner.page.values[at];
        }
        self.hints[self.oldest] = hint;
        self.oldest = (self.oldest + 1) % HINTS;
        hint.leaf
    }

    fn forget(&mut self, leaf: u32) {
        for hint in self.hints.iter_mut().filter(|hint| hint.leaf == leaf) {
            *hint = NO_HINT;
        }
    }

    fn path(&self, key: &Key) -> Path {
        self.path_by(|inner| inner.child(key))
    }

    /// The path that goes on from each inner node to the child in this position.
    #[inline]
    fn path_by(&self, child: impl Fn(&Inner) -> usize) -> Path {
        let mut path = Path { steps: [(NONE, 0); HEIGHT_MAX], len: self.height };
        let mut node = self.root;
        for step in &mut path.steps[..self.height] {
            let inner = &self.inners[node];
            *step = (node, child(inner));
            node = inner.page.values[step.1];
        }
        path
    }

    /// The leaf at the end of a path.
    fn leaf_of(&self, path: &Path) -> u32 {
        path.steps[..path.len].last().map_or(self.root, |&(node, at)| self.inners[node].page.values[at])
    }

    /// Where the interval of the leaf at the end of a path begins, as a head and a tail.
    fn beginning(&self, path: &Path) -> (u128, &[u8]) {
        let parent = path.steps[..path.len].last();
        parent.map_or((0, &[]), |&(node, at)| (self.inners[node].page.heads[at], self.inners[node].tail(at)))
    }

    /// Leads a path to the left neighbour of its leaf, which must have one.
    fn step_left(&self, path: &mut Path) {
        let steps = &mut path.steps[..path.len];
        let turn = steps.iter().rposition(|&(_, at)| at > 0);
        let turn = turn.expect("the first leaf begins at or below every key");
        steps[turn].1 -= 1;
        for level in turn + 1..path.len {
            let (parent, at) = path.steps[level - 1];
            let node = self.inners[parent].page.values[at];
            path.steps[level] = (node, self.inners[node].page.len() - 1);
        }
    }

    /// Splits a full leaf that is to receive `key` at position `at`. Returns the leaf to receive
    /// it, and where.
    fn split_leaf(&mut self, id: u32, at: usize, key: &Key, tails: &Tails) -> (u32, usize) {
        let path = self.path(key);
        self.forget(id);
        let (version, new_version) = (self.next_version(), self.next_version());
        let leaf = &mut self.leaves[id];
        // A run that ends here keeps what lies before it together, and what lies after it, too.
        let run = leaf.run == RUN_MIN && adjacent(at, leaf.last);
        let cut = if run { at } else { CAP / 2 };
        let to_right = at > cut || at == CAP;
        let key_parts = (key.head(), key.tail().unwrap_or(&[]));
        let entry = |at: usize| {
            let (head, row) = (leaf.page.heads[at], leaf.page.values[at]);
            (head, if Key::head_is_long(head) { tail_of(row, tails) } else { &[] })
        };
        let left_last = if at == cut && !to_right { key_parts } else { entry(cut - 1) };
        let right_first = if at == cut && to_right { key_parts } else { entry(cut) };
        let separator = Separator::between(left_last, right_first);

        let right = Leaf {
            page: leaf.page.split_off(cut),
            high: leaf.high,
            version: new_version,
            mark: leaf.mark,
            next: leaf.next,
            last: 0,
            run: if run && to_right { RUN_MIN } else { 0 },
        };
        leaf.high = separator.head;
        leaf.version = version;
        let right = self.leaves.allocate(right);
        self.leaves[id].next = right;
        self.split = Some((LeafId(id), LeafId(right)));
        self.add_child(&path, separator, right);
        if to_right { (right, at - cut) } else { (id, at) }
    }

    /// Hangs a new node into the tree, to the right of the one the path leads to.
    fn add_child(&mut self, path: &Path, mut separator: Separator, mut child: u32) {
        self.tail_bytes += separator.tail.len();
        for &(node, at) in path.steps[..path.len].iter().rev() {
            let inner = &mut self.inners[node];
            if inner.page.len() < CAP {
                return inner.insert(at + 1, separator, child);
            }
            // Ascending keys fill the nodes they leave behind.
            let cut = if at + 1 == CAP { CAP - 1 } else { CAP / 2 };
            let mut right = inner.split_off(cut);
            if at + 1 > cut {
                right.insert(at + 1 - cut, separator, child);
            } else {
                inner.insert(at + 1, separator, child);
            }
            separator = right.separator(0);
            child = self.inners.allocate(right);
        }
        assert!(self.height < HEIGHT_MAX, "an index has no more levels than its fan-out allows");
        let mut root = Inner { page: Page::EMPTY, tails: Vec::new() };
        root.insert(0, Separator { head: 0, tail: Box::default() }, self.root);
        root.insert(1, separator, child);
        self.root = self.inners.allocate(root);
        self.height += 1;
    }

    /// Merges a sparse leaf, which owns `key`, with a neighbour under the same parent if they fit
    /// into one. Returns the leaf that owns the key now.
    fn merge_leaf(&mut self, id: u32, key: &Key) -> u32 {
        let path = self.path(key);
        let Some(&(parent, at)) = path.steps[..path.len].last() else { return id };
        let siblings = &self.inners[parent].page;
        let size = |at: usize| self.leaves[siblings.values[at]].page.len();
        let fits = |other: usize| size(at) == 0 || size(at) + size(other) <= MERGE_MAX;
        let first = if at > 0 && fits(at - 1) {
            at - 1
        } else if at + 1 < siblings.len() && fits(at + 1) {
            at
        } else {
            return id;
        };
        let (left, right) = (siblings.values[first], siblings.values[first + 1]);
        // The left leaf owns more than before: its hint stays exact.
        self.forget(right);
        let (version, freed_version) = (self.next_version(), self.next_version());
        self.leaves[right].version = freed_version;
        let gone = self.leaves[right].clone();
        let leaf = &mut self.leaves[left];
        if gone.page.count > 0 {
            leaf.last = gone.last + leaf.page.count as u8;
            leaf.run = gone.run;
        }
        leaf.page.append(&gone.page);
        leaf.high = gone.high;
        leaf.next = gone.next;
        leaf.mark.raise(gone.mark.get());
        leaf.version = version;
        self.leaves.free(right);
        self.drop_child(&path, parent, first + 1);
        left
    }

    /// Takes a child, whose interval its left neighbour has taken over, out of the lowest node of
    /// the path, and merges inner nodes that have become sparse.
    fn drop_child(&mut self, path: &Path, parent: u32, at: usize) {
        self.tail_bytes -= self.inners[parent].tail(at).len();
        self.inners[parent].remove(at);
        for depth in (1..path.len).rev() {
            let (node, (parent, at)) = (path.steps[depth].0, path.steps[depth - 1]);
            let count = self.inners[node].page.len();
            if count >= CAP / 4 {
                return;
            }
            let first = at.saturating_sub(1);
            let pair = &self.inners[parent].page.values[first..first + 2];
            let (left, right) = (pair[0], pair[1]);
            let total = self.inners[left].page.len() + self.inners[right].page.len();
            if total > MERGE_MAX && count > 1 {
                return;
            }
            let mut upper = self.inners[right].take();
            self.inners[parent].remove(first + 1);
            if total <= CAP {
                self.inners[left].append(upper);
                self.inners.free(right);
                continue;
            }
            // A full node and a single child: share.
            let lower = &mut self.inners[left];
            if lower.page.len() == 1 {
                let rest = upper.split_off(CAP / 2);
                lower.append(std::mem::replace(&mut upper, rest));
            } else {
                let single = std::mem::replace(&mut upper, lower.split_off(CAP / 2));
                upper.append(single);
            }
            let separator = upper.separator(0);
            self.inners[right] = upper;
            return self.inners[parent].insert(first + 1, separator, right);
        }
        if self.inners[self.root].page.len() == 1 {
            let root = self.inners[self.root].take();
            self.inners.free(self.root);
            self.root = root.page.values[0];
            self.height -= 1;
        }
    }
}

impl<M: Mark> OrderedIndex<M> {
    /// Verifies the whole structure, for tests. Panics with the invariant that does not hold.
    pub fn check(&self, tails: &Tails) {
        let mut leaves = Vec::new();
        let everything = Separator { head: 0, tail: Box::default() };
        let (inners, tail_bytes) = self.check_node(self.root, 0, &everything, None, tails, &mut leaves);
        assert_eq!(inners, self.inners.used(), "inner nodes are in the tree or free");
        assert_eq!(leaves.len(), self.leaves.used(), "leaves are in the tree or free");
        assert_eq!(tail_bytes, self.tail_bytes, "tails of separators are counted");
        let keys: usize = leaves.iter().map(|&leaf| self.leaves[leaf].page.len()).sum();
        assert_eq!(keys, self.len, "linked keys are counted");
        for (i, &leaf) in leaves.iter().enumerate() {
            let next = leaves.get(i + 1).copied().unwrap_or(NONE);
            assert_eq!(self.leaves[leaf].next, next, "leaves are linked in key order");
            assert!(self.leaves[leaf].version <= self.versions, "versions are drawn from the counter");
        }
        for hint in self.hints.iter().filter(|hint| hint.leaf != NONE) {
            assert!(leaves.contains(&hint.leaf), "a hint names a leaf of the tree");
        }
    }

    /// Verifies the node that owns everything from `low` to below `high`, and what hangs below it.
    /// Returns the number of inner nodes and the bytes of their separators' tails; appends the
    /// leaves.
    fn check_node(
        &self,
        node: u32,
        depth: usize,
        low: &Separator,
        high: Option<&Separator>,
        tails: &Tails,
        leaves: &mut Vec<u32>,
    ) -> (usize, usize) {
        let inside = |key: (u128, &[u8])| {
            (low.head, &*low.tail) <= key && high.is_none_or(|high| key < (high.head, &*high.tail))
        };
        let check_page = |page: &Page, tail: &dyn Fn(usize) -> Box<[u8]>| {
            assert!(
                page.heads[page.len()..].iter().all(|&head| head == u128::MAX),
                "unused heads are maximal"
            );
            let keys: Vec<_> = (0..page.len()).map(|at| (page.heads[at], tail(at))).collect();
            assert!(keys.is_sorted_by(|a, b| a < b), "a node's keys ascend");
            assert!(
                keys.iter().all(|(head, tail)| inside((*head, tail))),
                "a node's keys lie in its interval"
            );
        };
        if depth == self.height {
            let leaf = &self.leaves[node];
            check_page(&leaf.page, &|at| match Key::head_is_long(leaf.page.heads[at]) {
                true => tail_of(leaf.page.values[at], tails).into(),
                false => Box::default(),
            });
            assert!(leaf.page.count > 0 || self.height == 0, "no leaf is empty unless it is the only one");
            assert_eq!(leaf.high, high.map_or(u128::MAX, |high| high.head), "a leaf knows where it ends");
            for hint in self.hints.iter().filter(|hint| hint.leaf == node) {
                assert!(
                    (low.head, &*low.tail) <= (hint.low, &[]),
                    "a hint begins where its leaf does, or later"
                );
                assert!(hint.high <= leaf.high, "a hint ends where its leaf does, or earlier");
            }
            leaves.push(node);
            return (0, 0);
        }
        let inner = &self.inners[node];
        check_page(&inner.page, &|at| inner.tail(at).into());
        assert!(inner.page.count >= 2, "no inner node has a single child");
        assert!(inner.tails.is_empty() || inner.tails.len() == inner.page.len(), "tails match heads");
        let mut sum = (1, 0);
        let first = inner.separator(0);
        assert!(
            (first.head, &first.tail) == (low.head, &low.tail),
            "a node's first child begins where it does"
        );
        for at in 0..inner.page.len() {
            let (low, next) =
                (inner.separator(at), (at + 1 < inner.page.len()).then(|| inner.separator(at + 1)));
            let child = inner.page.values[at];
            let below = self.check_node(child, depth + 1, &low, next.as_ref().or(high), tails, leaves);
            sum.0 += below.0;
            sum.1 += below.1 + if at > 0 { low.tail.len() } else { 0 };
        }
        sum
    }
}

fn tail(key: &Key) -> &[u8] {
    key.tail().unwrap_or(&[])
}

/// Whether an insert at `at` continues a run, ascending or descending, whose last key went to
/// `last`.
fn adjacent(at: usize, last: u8) -> bool {
    at == usize::from(last) + 1 || at == usize::from(last)
}

#[cfg(test)]
mod tests;
