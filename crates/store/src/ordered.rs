//! The ordered index: a B+tree of our own, from keys to row numbers.
//!
//! A serializable database needs more of an index than order. A scan must leave its mark on the *gaps* it
//! has seen, and a transaction must be able to ask later whether a gap still is one (`docs/protocols/dst.md`).
//! Here the leaves answer for their gaps: every leaf owns an interval of the key space and carries a
//! *mark* (an upper bound of the timestamps of its scanners) and a *version* (which every newly linked key
//! changes). The leaves' intervals follow each other without a gap from [`Key::MIN`] to infinity, so a
//! range without a single key still has an owner.
//!
//! # A worked example
//! Let leaves hold four entries. Leaf A = `10 20 30 40` owns everything; mark 7, version 4.
//! * *Insert 25.* A is full. It splits in the middle: A = `10 20 25` owns keys below 30 and the new leaf
//!   B = `30 40` owns the rest. Whoever scanned A has scanned a part of B: B inherits mark 7, and both get
//!   new versions, 5 and 6, so a transaction that remembers (A, 4) knows that A is no longer what it saw.
//! * *Insert 50, 60, 70.* The fifth key, 70, arrives at the end of a full leaf `30 40 50 60` where 50 and
//!   60 arrived before. This is an ascending run, a split in the middle would leave half-empty leaves
//!   behind for ever, so B stays as it is and a new leaf C = `70` takes over at 70.
//! * *Remove 10, 20, 25.* Removal is the garbage collector's work and changes neither mark nor version: the
//!   records' deletion was a matter between transactions long ago. Only when A has run empty it merges with
//!   B, its neighbour under one parent: the left one survives, with the larger mark and a new version; the
//!   right one's number goes to the free list, with a new version, too.
//!
//! # Layout
//! A node, leaf or inner, is a [`Page`]: up to 64 sorted heads, as many 32-bit values (rows or children),
//! and unused heads set to the largest integer so that a search needs no length. An inner node stores with
//! each child the *separator* at which the child's interval begins. Keys of up to 15 bytes are their heads.
//! Of longer keys a leaf has the heads only, and asks [`Tails`] about the rest when heads agree; inner nodes
//! keep as much of the tail as tells the two sides of a split apart, mostly nothing.
//!
//! A search is three rounds of three or four independent comparisons, not six dependent ones: the processor
//! fetches the cache lines of one round at the same time, and has nothing to guess.
//!
//! The last leaves are remembered with the range of heads that surely belongs to them, so that ten adjacent
//! order lines need one descent, and a queue's two ends none.
//!
//! # Invariants
//! * Every key is owned by exactly one leaf. No leaf is empty unless it is the only one, and no inner node
//!   has a single child (so there always is a neighbour to merge with).
//! * Versions are drawn from one counter: no number is ever seen twice, neither by a leaf nor by a leaf
//!   that reuses its number.
//! * What two leaves know about the past is never lost: split copies marks, merge takes the larger.
//! * A hint never covers a head that its leaf does not own completely.
//!
//! # Left out
//! Leaves are not compressed: a head takes 16 bytes even where 14 are the same in all of them (a key takes 22
//! bytes when loaded in order, 31 at random). Leaves under different parents do not merge, nor does a sparse
//! leaf between two that are fairly full. There are no links to the left, as nothing scans downwards.

use std::fmt;
use std::ops::{ControlFlow, Index, IndexMut};

use plimsoll_types::Key;
use plimsoll_types::mutants::{Mutant, planted};

use crate::{Mark, RowId, Tails};

/// Entries of a node. Measured with 300,000 keys: 32 does not insert faster and takes more memory; 128 finds
/// a tenth faster and inserts a tenth slower, but then a mark and a version stand for twice as many keys.
const CAP: usize = 64;
/// Two neighbours merge if together they have at most so many entries, so that a merged node has room.
const MERGE_MAX: usize = CAP * 3 / 4;
/// After so many inserts in a row, each next to the one before, a leaf splits as runs do.
const RUN_MIN: u8 = 3;
/// How many leaves are remembered. A search that profits from none of them pays about 1 ns for each.
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

/// A position: just before the entry `index` of [`OrderedIndex::entries`] of a leaf, or at the leaf's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The leaf that owns the key that was sought.
    pub leaf: LeafId,
    /// Position in the leaf; the number of its entries if all of them are smaller.
    pub index: usize,
}

/// The sorted arrays every node consists of.
#[derive(Clone)]
#[repr(C)]
struct Page {
    /// Ascending; `u128::MAX`, which is the head of no key, beyond `count`.
    heads: [u128; CAP],
    /// Row or child of each head.
    values: [u32; CAP],
    /// Last, so that it shares a cache line with what a leaf adds.
    count: u16,
}

impl Page {
    const EMPTY: Page = Page { heads: [u128::MAX; CAP], values: [0; CAP], count: 0 };

    #[inline]
    fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// How many heads are below `head`.
    #[inline]
    fn rank(&self, head: u128) -> usize {
        let below = |at: usize| usize::from(self.heads[at % CAP] < head);
        let sixteens = 16 * (below(15) + below(31) + below(47));
        let fours = sixteens + 4 * (below(sixteens + 3) + below(sixteens + 7) + below(sixteens + 11));
        fours + (below(fours) + below(fours + 1)) + (below(fours + 2) + below(fours + 3))
    }

    fn insert(&mut self, at: usize, head: u128, value: u32) {
        let count = self.len();
        self.heads.copy_within(at..count, at + 1);
        self.values.copy_within(at..count, at + 1);
        self.heads[at] = head;
        self.values[at] = value;
        self.count += 1;
    }

    fn remove(&mut self, at: usize) -> u32 {
        let count = self.len();
        let value = self.values[..count][at];
        self.heads.copy_within(at + 1..count, at);
        self.values.copy_within(at + 1..count, at);
        self.heads[count - 1] = u128::MAX;
        self.count -= 1;
        value
    }

    fn split_off(&mut self, at: usize) -> Page {
        let mut right = Page::EMPTY;
        let moved = self.len() - at;
        right.heads[..moved].copy_from_slice(&self.heads[at..at + moved]);
        right.values[..moved].copy_from_slice(&self.values[at..at + moved]);
        right.count = moved as u16;
        self.heads[at..].fill(u128::MAX);
        self.count = at as u16;
        right
    }

    fn append(&mut self, right: &Page) {
        let (at, moved) = (self.len(), right.len());
        self.heads[at..at + moved].copy_from_slice(&right.heads[..moved]);
        self.values[at..at + moved].copy_from_slice(&right.values[..moved]);
        self.count += right.count;
    }
}

#[derive(Clone)]
#[repr(C, align(64))]
struct Leaf<M> {
    page: Page,
    /// Head of the separator at which the next leaf begins; `u128::MAX` in the last one.
    high: u128,
    /// Changed by every linked key, split and merge; not by removal.
    version: u64,
    mark: M,
    /// The leaf that owns the keys above; [`NONE`] in the last one.
    next: u32,
    /// Where the last insert went, to recognize runs.
    last: u8,
    /// How many inserts in a row went next to the one before them; stops at [`RUN_MIN`].
    run: u8,
}

impl<M> Leaf<M> {
    /// The position of the first entry not below the key, and whether it is the key.
    #[inline]
    fn search(&self, key: &Key, tails: &Tails) -> (usize, bool) {
        let at = self.page.rank(key.head());
        if at == CAP || self.page.heads[at] != key.head() {
            return (at, false);
        }
        match key.tail() {
            None => (at, true),
            Some(tail) => self.search_tails(at, key.head(), tail, tails),
        }
    }

    /// The same among entries of one long head, the first of them at `first`.
    #[inline(never)]
    fn search_tails(&self, first: usize, head: u128, tail: &[u8], tails: &Tails) -> (usize, bool) {
        let rows = &self.page.values[first..self.page.rank(head + 1)];
        let below = rows.partition_point(|&row| tail_of(row, tails) < tail);
        let found = rows.get(below).is_some_and(|&row| tail_of(row, tails) == tail);
        (first + below, found)
    }
}

fn tail_of(row: RowId, tails: &Tails) -> &[u8] {
    tails.get(row).expect("the tail of every linked long key is known")
}

/// The smallest key of an interval, or less than a key: just enough bytes to lie above the interval before.
#[derive(Clone)]
struct Separator {
    head: u128,
    /// Empty for most: all keys with the head are above.
    tail: Box<[u8]>,
}

impl Separator {
    /// Something above `left` and not above `right`.
    fn between(left: (u128, &[u8]), right: (u128, &[u8])) -> Separator {
        debug_assert!(left < right, "a separator parts different keys");
        if left.0 < right.0 {
            return Separator { head: right.0, tail: Box::default() };
        }
        let common = left.1.iter().zip(right.1).take_while(|(a, b)| a == b).count();
        Separator { head: right.0, tail: right.1[..common + 1].into() }
    }
}

struct Inner {
    /// The separators' heads, and for each the child that begins there.
    page: Page,
    /// The separators' tails; an empty vector if all of them are empty.
    tails: Vec<Box<[u8]>>,
}

impl Inner {
    /// Position of the child that owns the key.
    #[inline]
    fn child(&self, key: &Key) -> usize {
        if let Some(tail) = key.tail()
            && !self.tails.is_empty()
        {
            let (first, end) = (self.page.rank(key.head()), self.page.rank(key.head() + 1));
            return first + self.tails[first..end].partition_point(|separator| **separator <= *tail) - 1;
        }
        self.page.rank(key.head() + 1) - 1
    }

    fn tail(&self, at: usize) -> &[u8] {
        self.tails.get(at).map_or(&[], |tail| tail)
    }

    fn separator(&self, at: usize) -> Separator {
        Separator { head: self.page.heads[at], tail: self.tail(at).into() }
    }

    fn insert(&mut self, at: usize, separator: Separator, child: u32) {
        if !self.tails.is_empty() || !separator.tail.is_empty() {
            self.tails.resize_with(self.page.len(), Box::default);
            self.tails.insert(at, separator.tail);
        }
        self.page.insert(at, separator.head, child);
    }

    /// Removes a child; its left neighbour's interval extends over its own.
    fn remove(&mut self, at: usize) {
        self.page.remove(at);
        if !self.tails.is_empty() {
            self.tails.remove(at);
        }
    }

    fn split_off(&mut self, at: usize) -> Inner {
        let tails = if self.tails.is_empty() { Vec::new() } else { self.tails.split_off(at) };
        Inner { page: self.page.split_off(at), tails }
    }

    fn append(&mut self, mut right: Inner) {
        if !self.tails.is_empty() || !right.tails.is_empty() {
            self.tails.resize_with(self.page.len(), Box::default);
            right.tails.resize_with(right.page.len(), Box::default);
            self.tails.append(&mut right.tails);
        }
        self.page.append(&right.page);
    }

    fn take(&mut self) -> Inner {
        std::mem::replace(self, Inner { page: Page::EMPTY, tails: Vec::new() })
    }
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

/// An ordered map from keys to rows whose leaves carry marks and versions; see the module's description.
///
/// Methods that compare keys take the table's [`Tails`], which must hold the tail of every linked row with a
/// long key: put it there before [`insert`](Self::insert), take it away after [`remove`](Self::remove).
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
    /// Bytes of the separators' tails. A node's first separator repeats one above, and is not counted.
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

    /// The position of the first key not below this one. It is at the end of a leaf if that key is the
    /// first one of the next.
    #[inline]
    pub fn seek(&mut self, key: &Key, tails: &Tails) -> Cursor {
        let id = self.locate(key);
        Cursor { leaf: LeafId(id), index: self.leaves[id].search(key, tails).0 }
    }

    /// Links a key, which must not be linked, to its row. Changes the version of the leaf that owned the
    /// key before (and of the one that does now, see [`last_split`](Self::last_split)). Returns the leaf
    /// that owns the key now.
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

    /// If the last [`insert`](Self::insert) split a leaf: that leaf, and the new one to its right. A
    /// transaction that remembers the former's version from before and has just made the insert itself
    /// goes on with the versions of both.
    pub fn last_split(&self) -> Option<(LeafId, LeafId)> {
        self.split
    }

    /// Unlinks a key, if it is linked. Returns its row and the leaf that owns the key *now*, after any merge:
    /// the one to take over what the removed record's mark says.
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

    /// Visits every leaf that overlaps `low <= key < high` in key order, with its mark, its version, and the
    /// heads and rows of exactly its entries in the range (there may be none). The leaf after the range may
    /// be visited, too, without entries. Ends early if `visit` breaks.
    pub fn scan_leaves(
        &mut self,
        low: &Key,
        high: Option<&Key>,
        tails: &Tails,
        mut visit: impl FnMut(LeafId, &mut M, u64, &[u128], &[RowId]) -> ControlFlow<()>,
    ) {
        if high.is_some_and(|high| high <= low) {
            return;
        }
        let mut id = self.locate(low);
        let mut start = self.leaves[id].search(low, tails).0;
        while id != NONE {
            let leaf = &mut self.leaves[id];
            let count = leaf.page.len();
            let (end, last) = match high {
                Some(high) if leaf.high >= high.head() => {
                    let end = leaf.search(high, tails).0;
                    // If the separator has the head of a long `high`, only its tail could tell whether the
                    // next leaf overlaps. An entry beyond the range tells that it does not.
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

    /// A number that changes whenever the leaf receives a key, splits, merges or ceases to exist; never one
    /// that it has had before. Defined for every leaf that ever was.
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
        let mut path = Path { steps: [(NONE, 0); HEIGHT_MAX], len: self.height };
        let mut node = self.root;
        for step in &mut path.steps[..self.height] {
            let inner = &self.inners[node];
            *step = (node, inner.child(key));
            node = inner.page.values[step.1];
        }
        path
    }

    /// Splits a full leaf that is to receive `key` at position `at`. Returns the leaf to receive it, and where.
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

    /// Merges a sparse leaf, which owns `key`, with a neighbour under the same parent if they fit into one.
    /// Returns the leaf that owns the key now.
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

    /// Takes a child, whose interval its left neighbour has taken over, out of the lowest node of the path, and
    /// merges inner nodes that have become sparse.
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
        assert_eq!(
            inners,
            self.inners.slots() - self.inners.free.len(),
            "inner nodes are in the tree or free"
        );
        assert_eq!(
            leaves.len(),
            self.leaves.slots() - self.leaves.free.len(),
            "leaves are in the tree or free"
        );
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

    /// Verifies the node that owns everything from `low` to below `high`, and what hangs below it. Returns the
    /// number of inner nodes and the bytes of their separators' tails; appends the leaves.
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

/// Whether an insert at `at` continues a run, ascending or descending, whose last key went to `last`.
fn adjacent(at: usize, last: u8) -> bool {
    at == usize::from(last) + 1 || at == usize::from(last)
}

/// Numbered slots in chunks of `1 << SHIFT`: growing never moves more than one small chunk.
pub(crate) struct Slab<T, const SHIFT: u32> {
    /// All but the last are full.
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T, const SHIFT: u32> Slab<T, SHIFT> {
    const CHUNK: usize = 1 << SHIFT;

    pub fn new() -> Self {
        Slab { chunks: Vec::new(), free: Vec::new() }
    }

    /// Stores a value in a free slot, the last one freed, or in a new one.
    pub fn allocate(&mut self, value: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self[id] = value;
            return id;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == Self::CHUNK) {
            // A small table takes little; only its first chunk grows in place.
            let capacity = if self.chunks.is_empty() { 1 } else { Self::CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        let id = self.slots();
        assert!(id < NONE as usize, "a slab has fewer than 2^32 slots");
        self.chunks.last_mut().expect("a chunk with room was just pushed").push(value);
        id as u32
    }

    /// Makes a slot available; its value stays readable until the slot is allocated again.
    pub fn free(&mut self, id: u32) {
        self.free.push(id);
    }

    /// How many slots there are, free ones included.
    pub fn slots(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * Self::CHUNK + last.len())
    }

    /// Bytes of all slots.
    pub fn bytes(&self) -> usize {
        let slots =
            self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * Self::CHUNK + last.capacity());
        slots * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>() + self.free.capacity() * 4
    }
}

impl<T, const SHIFT: u32> Index<u32> for Slab<T, SHIFT> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.chunks[id as usize >> SHIFT][id as usize % Self::CHUNK]
    }
}

impl<T, const SHIFT: u32> IndexMut<u32> for Slab<T, SHIFT> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.chunks[id as usize >> SHIFT][id as usize % Self::CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_types::Timestamp;
    use proptest::prelude::*;

    use super::*;

    /// The index, a model of it, and what the marks must not forget.
    #[derive(Default)]
    struct World {
        index: OrderedIndex<Timestamp>,
        tails: Tails,
        model: BTreeMap<Key, RowId>,
        next_row: RowId,
        /// Scanned ranges and their timestamps.
        scanned: Vec<(Key, Option<Key>, Timestamp)>,
        /// The last version seen of every leaf number.
        versions: Vec<u64>,
    }

    type Visited = Vec<(LeafId, u64)>;

    impl World {
        fn insert(&mut self, key: &Key) {
            let place = self.index.find(key, &self.tails);
            assert_eq!(place.row, self.model.get(key).copied());
            if place.row.is_some() {
                return;
            }
            let (version, mark) = (self.index.version(place.leaf), self.index.mark(place.leaf));
            let row = self.next_row;
            self.next_row += 1;
            self.tails.insert(row, key);
            let leaf = self.index.insert(key, row, &self.tails);
            self.model.insert(key.clone(), row);
            assert_eq!(self.index.find(key, &self.tails), Place { leaf, row: Some(row) });
            assert!(
                self.index.version(place.leaf) > version,
                "an insert changes the leaf that owned the key"
            );
            match self.index.last_split() {
                None => assert_eq!(leaf, place.leaf),
                Some((left, right)) => {
                    assert_eq!((left, Some(right)), (place.leaf, self.index.next_leaf(left)));
                    assert!(leaf == left || leaf == right);
                    assert_eq!(mark, self.index.mark(left), "a split keeps the mark");
                    assert_eq!(mark, self.index.mark(right), "a split copies the mark");
                    let before = self.versions.get(right.0 as usize).copied();
                    assert!(before.is_none_or(|before| self.index.version(right) > before));
                }
            }
            self.watch_versions();
        }

        fn remove(&mut self, key: &Key) {
            let before = self.index.find(key, &self.tails);
            let (version, leaves) = (self.index.version(before.leaf), self.leaf_count());
            let (row, leaf) = self.index.remove(key, &self.tails);
            assert_eq!(row, self.model.remove(key));
            assert_eq!(row, before.row);
            if let Some(row) = row {
                self.tails.remove(row);
            }
            assert_eq!(self.index.find(key, &self.tails), Place { leaf, row: None });
            if self.leaf_count() == leaves {
                assert_eq!((before.leaf, version), (leaf, self.index.version(leaf)));
            } else {
                assert!(self.index.version(before.leaf) > version, "a merge changes both leaves");
                assert!(self.index.version(leaf) > version, "a merge changes both leaves");
            }
            self.watch_versions();
        }

        /// Scans, compares with the model, and raises marks.
        fn scan(&mut self, low: &Key, high: Option<&Key>, ts: Timestamp) -> Visited {
            let mut visited = Vec::new();
            let mut found = Vec::new();
            self.index.scan_leaves(low, high, &self.tails, |leaf, mark, version, heads, rows| {
                mark.raise(ts);
                visited.push((leaf, version));
                found.extend(heads.iter().copied().zip(rows.iter().copied()));
                ControlFlow::Continue(())
            });
            if high.is_some_and(|high| high <= low) {
                assert!(visited.is_empty());
                return visited;
            }
            let in_range = |key: &Key| low <= key && high.is_none_or(|high| key < high);
            let expected = self.model.range(low..).take_while(|(key, _)| in_range(key));
            assert_eq!(found, expected.map(|(key, &row)| (key.head(), row)).collect::<Vec<_>>());
            self.scanned.push((low.clone(), high.cloned(), ts));
            visited
        }

        fn leaf_count(&self) -> usize {
            self.index.leaves.slots() - self.index.leaves.free.len()
        }

        fn watch_versions(&mut self) {
            let slots = self.index.leaves.slots();
            // Looking at all leaves after every step would be slow in large trees.
            if slots > 200 && !self.next_row.is_multiple_of(64) {
                return;
            }
            self.versions.resize(slots, 0);
            for (leaf, seen) in self.versions.iter_mut().enumerate() {
                let version = self.index.version(LeafId(leaf as u32));
                assert!(*seen <= version, "versions only grow");
                *seen = version;
            }
        }

        fn check(&mut self) {
            self.index.check(&self.tails);
            assert_eq!(self.index.len(), self.model.len());
            for (low, high, ts) in self.scanned.clone() {
                let last = self.model.range(..high.clone().unwrap_or(Key::new(&[0xff; 30]))).next_back();
                let inside = last.map(|(key, _)| key.clone()).filter(|key| *key >= low);
                for key in [Some(low), inside].into_iter().flatten() {
                    let leaf = self.index.find(&key, &self.tails).leaf;
                    assert!(self.index.mark(leaf) >= ts, "what a scan has marked stays marked");
                }
            }
        }
    }

    /// Four shapes of keys: dense integers, scattered integers, long keys with one head (the first of them is
    /// their short prefix), and long keys with few heads.
    fn key(shape: u8, n: u32) -> Key {
        let significant = n.to_be_bytes()[n.leading_zeros() as usize / 8..].to_vec();
        match shape {
            0 => Key::of_u64(u64::from(n)),
            1 => Key::of_u64(u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            2 => Key::build().bytes(&[7; 15]).bytes(&significant).finish(),
            _ => Key::build().bytes(&[6; 13]).u8((n % 5) as u8).bytes(&n.to_be_bytes()).bytes(&[1]).finish(),
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u32, u32, u32),
        Remove(u8, u32, u32, u32),
        Scan((u8, u32), Option<(u8, u32)>, (u8, u32)),
    }

    fn step() -> impl Strategy<Value = Step> {
        let shape = || prop_oneof![3 => 0..4u8, 1 => Just(2u8)];
        let key = move || (shape(), 0..1500u32);
        let run = move || (shape(), 0..1500u32, prop_oneof![Just(1u32), 1..400u32], 1..5u32);
        prop_oneof![
            4 => run().prop_map(|(shape, first, count, stride)| Step::Insert(shape, first, count, stride)),
            3 => run().prop_map(|(shape, first, count, stride)| Step::Remove(shape, first, count, stride)),
            3 => (key(), prop::option::weighted(0.9, key()), key()).prop_map(|(a, b, c)| Step::Scan(a, b, c)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_index_behaves_like_a_btree_map_and_never_forgets_a_mark(
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let mut world = World::default();
            for (time, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(shape, first, count, stride) => {
                        (0..count).for_each(|i| world.insert(&key(shape, first + i * stride)));
                    }
                    Step::Remove(shape, first, count, stride) => {
                        (0..count).for_each(|i| world.remove(&key(shape, first + i * stride)));
                    }
                    Step::Scan(low, high, phantom) => {
                        let (low, high) = (key(low.0, low.1), high.map(|high| key(high.0, high.1)));
                        let visited = world.scan(&low, high.as_ref(), Timestamp(time as u64));
                        // No phantom: a key that comes into the range later changes a leaf that was visited.
                        let phantom = key(phantom.0, phantom.1);
                        let inside = low <= phantom && high.is_none_or(|high| phantom < high);
                        if inside && !world.model.contains_key(&phantom) {
                            world.insert(&phantom);
                            prop_assert!(visited.iter().any(|&(leaf, seen)| world.index.version(leaf) != seen));
                        }
                    }
                }
                world.check();
            }
        }
    }

    /// A small generator of pseudo-random numbers (xorshift).
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: u32) -> u32 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 32) as u32 % sides
        }
    }

    #[test]
    fn a_tree_of_three_levels_grows_and_shrinks_in_any_order() {
        let (mut world, mut dice) = (World::default(), Dice(1));
        let mut keys: Vec<Key> = (0..100_000).map(|n| key((n % 4) as u8, n)).collect();
        for round in 0..2 {
            (1..keys.len()).for_each(|i| keys.swap(i, dice.roll(i as u32 + 1) as usize));
            keys.iter().for_each(|key| world.insert(key));
            assert_eq!(world.index.height, 2, "the test reaches inner nodes below the root");
            world.check();
            if round == 1 {
                keys.sort();
            }
            for (i, key) in keys.iter().enumerate() {
                world.remove(key);
                if i % 10_000 == 0 {
                    world.check();
                }
            }
            world.check();
            assert_eq!((world.index.height, world.leaf_count()), (0, 1));
        }
    }

    fn short(n: u32) -> Key {
        Key::of_u64(u64::from(n))
    }

    fn loaded(keys: impl Iterator<Item = u32>) -> World {
        let mut world = World::default();
        keys.for_each(|n| {
            world.index.insert(&short(n), n, &world.tails);
            world.model.insert(short(n), n);
        });
        world.next_row = u32::MAX / 2;
        world
    }

    #[test]
    fn ascending_keys_fill_their_leaves_also_in_the_middle_and_also_downwards() {
        let fill = |world: &World| world.index.len() as f64 / (world.leaf_count() * CAP) as f64;
        let ascending = loaded(0..20_000);
        assert!(fill(&ascending) > 0.99, "{}", fill(&ascending));
        let descending = loaded((0..20_000).rev());
        assert!(fill(&descending) > 0.99, "{}", fill(&descending));
        // Ten districts were loaded one after the other; then each appends orders of ten lines in turn.
        let line = |district: u32, line: u32| district * 1_000_000 + line;
        let load = (0..10).flat_map(|district| (0..1005).map(move |n| line(district, n)));
        let orders = (0..200).flat_map(|order| {
            (0..10).flat_map(move |district| (0..10).map(move |n| line(district, 1005 + order * 10 + n)))
        });
        let districts = loaded(load.chain(orders));
        assert!(fill(&districts) > 0.95, "{}", fill(&districts));
        districts.index.check(&districts.tails);
    }

    #[test]
    fn random_keys_leave_leaves_more_than_half_full() {
        let mut dice = Dice(7);
        let mut keys: Vec<u32> = (0..50_000).collect();
        (1..keys.len()).for_each(|i| keys.swap(i, dice.roll(i as u32 + 1) as usize));
        let world = loaded(keys.into_iter());
        assert!(world.index.len() * 10 > world.leaf_count() * CAP * 6);
    }

    #[test]
    fn a_queue_gives_back_the_leaves_it_has_left() {
        let mut world = World::default();
        let entry = |district: u32, n: u32| Key::build().u32(7).u8(district as u8).u32(n).finish();
        (0..10).for_each(|district| (0..900).for_each(|n| world.insert(&entry(district, n))));
        let bytes = world.index.bytes();
        for n in 0..10_000 {
            for district in 0..10 {
                world.insert(&entry(district, 900 + n));
                world.remove(&entry(district, n));
            }
            if n % 1000 == 0 {
                world.check();
            }
        }
        assert!(world.index.bytes() <= bytes * 3 / 2, "{bytes} bytes became {}", world.index.bytes());
    }

    #[test]
    fn a_full_inner_node_shares_with_a_neighbour_that_has_one_child_left() {
        // Ascending keys fill inner nodes with 63 leaves. One more split below one of them fills it up.
        let leaf = |n: u32| n * 64 * 2;
        for full in [0, 1] {
            let mut world = loaded((0..64 * 63 * 3).map(|n| n * 2));
            assert_eq!(world.index.height, 2);
            world.insert(&short(leaf(63 * full + 30) + 1));
            let child = |world: &World, at| world.index.inners[world.index.root].page.values[at];
            let size = |world: &World, at| world.index.inners[child(world, at)].page.len();
            assert_eq!(size(&world, full as usize), CAP);
            let drained = leaf(63 * (1 - full))..leaf(63 * (2 - full)) - 20;
            for n in drained.step_by(2) {
                world.remove(&short(n));
            }
            world.check();
            assert_eq!(size(&world, 0) + size(&world, 1), CAP + 1);
            assert!(size(&world, 0) >= CAP / 2 && size(&world, 1) >= CAP / 2);
        }
    }

    #[test]
    fn a_merge_takes_the_larger_mark_and_gives_both_leaves_new_versions() {
        for (left_mark, right_mark) in [(5, 9), (9, 5)] {
            let mut world = loaded(0..128);
            let left = world.index.find(&short(0), &world.tails).leaf;
            let right = world.index.find(&short(127), &world.tails).leaf;
            assert_ne!(left, right);
            world.index.mark_mut(left).raise(Timestamp(left_mark));
            world.index.mark_mut(right).raise(Timestamp(right_mark));
            let before = world.index.version(left).max(world.index.version(right));
            (0..64).for_each(|n| world.remove(&short(n)));
            let merged = world.index.find(&short(0), &world.tails).leaf;
            assert_eq!(merged, world.index.find(&short(127), &world.tails).leaf);
            assert_eq!(world.index.mark(merged), Timestamp(9));
            assert!(world.index.version(left) > before && world.index.version(right) > before);
            // The freed leaf comes back with the mark of the one it is split from, and a new version.
            let freed = world.index.version(right);
            (1000..1100).for_each(|n| world.insert(&short(n)));
            assert_eq!(world.leaf_count(), 3);
            assert!(world.index.version(right) > freed);
            assert_eq!(world.index.mark(right), Timestamp(9));
        }
    }

    #[test]
    fn a_scan_visits_the_owner_of_an_empty_range_and_ends_where_it_is_told() {
        let mut world = loaded((0..1000).map(|n| n * 10));
        let visited = world.scan(&short(5001), Some(&short(5002)), Timestamp(3));
        assert_eq!(visited.len(), 1);
        assert_eq!(visited[0].0, world.index.find(&short(5001), &world.tails).leaf);
        assert_eq!(world.scan(&short(20_000), None, Timestamp(3)).len(), 1);
        assert!(world.scan(&short(7), Some(&short(7)), Timestamp(3)).is_empty());
        assert_eq!(world.scan(&Key::MIN, None, Timestamp(3)).len(), world.leaf_count());
        let mut visits = 0;
        world.index.scan_leaves(&Key::MIN, None, &world.tails, |_, _, _, _, _| {
            visits += 1;
            ControlFlow::Break(())
        });
        assert_eq!(visits, 1);
    }

    #[test]
    fn a_cursor_walks_the_entries_leaf_by_leaf() {
        let mut world = loaded((0..1000).map(|n| n * 10));
        let Cursor { leaf, index } = world.index.seek(&short(1235), &world.tails);
        let (heads, rows) = world.index.entries(leaf);
        let mut rest: Vec<RowId> = rows[index..].to_vec();
        assert!(heads[..index].iter().all(|&head| head < short(1235).head()));
        let mut leaf = leaf;
        while let Some(next) = world.index.next_leaf(leaf) {
            rest.extend(world.index.entries(next).1);
            leaf = next;
        }
        assert_eq!(rest, (124..1000).map(|n| n * 10).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "a key is linked into an index at most once")]
    fn a_key_cannot_be_linked_twice() {
        let mut world = loaded(0..10);
        world.index.insert(&short(3), 77, &world.tails);
    }

    #[test]
    fn a_leaf_fits_the_cache_lines_it_was_laid_out_for() {
        assert_eq!(size_of::<Leaf<Timestamp>>(), 21 * 64);
    }
}
