//! The nodes of the index: leaves, inner nodes, and what parts them.
//!
//! Both are a [`Page`] of sorted heads with a row or a child to each; a leaf adds what it answers
//! for, an inner node the tails of its separators. See the parent for the layout and why it is
//! searched as it is.

use plimsoll_types::Key;

use super::CAP;
use crate::{RowId, Tails};

/// The sorted arrays every node consists of.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Page {
    /// Ascending; `u128::MAX`, which is the head of no key, beyond `count`.
    pub(super) heads: [u128; CAP],
    /// Row or child of each head.
    pub(super) values: [u32; CAP],
    /// Last, so that it shares a cache line with what a leaf adds.
    pub(super) count: u16,
}

impl Page {
    pub(super) const EMPTY: Page = Page { heads: [u128::MAX; CAP], values: [0; CAP], count: 0 };

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// How many heads are below `head`.
    #[inline]
    pub(super) fn rank(&self, head: u128) -> usize {
        let below = |at: usize| usize::from(self.heads[at % CAP] < head);
        let sixteens = 16 * (below(15) + below(31) + below(47));
        let fours = sixteens + 4 * (below(sixteens + 3) + below(sixteens + 7) + below(sixteens + 11));
        fours + (below(fours) + below(fours + 1)) + (below(fours + 2) + below(fours + 3))
    }

    pub(super) fn insert(&mut self, at: usize, head: u128, value: u32) {
        let count = self.len();
        self.heads.copy_within(at..count, at + 1);
        self.values.copy_within(at..count, at + 1);
        self.heads[at] = head;
        self.values[at] = value;
        self.count += 1;
    }

    pub(super) fn remove(&mut self, at: usize) -> u32 {
        let count = self.len();
        let value = self.values[..count][at];
        self.heads.copy_within(at + 1..count, at);
        self.values.copy_within(at + 1..count, at);
        self.heads[count - 1] = u128::MAX;
        self.count -= 1;
        value
    }

    pub(super) fn split_off(&mut self, at: usize) -> Page {
        let mut right = Page::EMPTY;
        let moved = self.len() - at;
        right.heads[..moved].copy_from_slice(&self.heads[at..at + moved]);
        right.values[..moved].copy_from_slice(&self.values[at..at + moved]);
        right.count = moved as u16;
        self.heads[at..].fill(u128::MAX);
        self.count = at as u16;
        right
    }

    pub(super) fn append(&mut self, right: &Page) {
        let (at, moved) = (self.len(), right.len());
        self.heads[at..at + moved].copy_from_slice(&right.heads[..moved]);
        self.values[at..at + moved].copy_from_slice(&right.values[..moved]);
        self.count += right.count;
    }
}

#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Leaf<M> {
    pub(super) page: Page,
    /// Head of the separator at which the next leaf begins; `u128::MAX` in the last one.
    pub(super) high: u128,
    /// Changed by every linked key, split and merge; not by removal.
    pub(super) version: u64,
    pub(super) mark: M,
    /// The leaf that owns the keys above; [`NONE`] in the last one.
    pub(super) next: u32,
    /// Where the last insert went, to recognize runs.
    pub(super) last: u8,
    /// How many inserts in a row went next to the one before them; stops at [`RUN_MIN`].
    pub(super) run: u8,
}

impl<M> Leaf<M> {
    /// The position of the first entry not below the key, and whether it is the key.
    #[inline]
    pub(super) fn search(&self, key: &Key, tails: &Tails) -> (usize, bool) {
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
    pub(super) fn search_tails(&self, first: usize, head: u128, tail: &[u8], tails: &Tails) -> (usize, bool) {
        let rows = &self.page.values[first..self.page.rank(head + 1)];
        let below = rows.partition_point(|&row| tail_of(row, tails) < tail);
        let found = rows.get(below).is_some_and(|&row| tail_of(row, tails) == tail);
        (first + below, found)
    }
}

pub(super) fn tail_of(row: RowId, tails: &Tails) -> &[u8] {
    tails.get(row).expect("the tail of every linked long key is known")
}

/// The smallest key of an interval, or less than a key: just enough bytes to lie above the interval
/// before.
#[derive(Clone)]
pub(super) struct Separator {
    pub(super) head: u128,
    /// Empty for most: all keys with the head are above.
    pub(super) tail: Box<[u8]>,
}

impl Separator {
    /// Something above `left` and not above `right`.
    pub(super) fn between(left: (u128, &[u8]), right: (u128, &[u8])) -> Separator {
        debug_assert!(left < right, "a separator parts different keys");
        if left.0 < right.0 {
            return Separator { head: right.0, tail: Box::default() };
        }
        let common = left.1.iter().zip(right.1).take_while(|(a, b)| a == b).count();
        Separator { head: right.0, tail: right.1[..common + 1].into() }
    }
}

pub(super) struct Inner {
    /// The separators' heads, and for each the child that begins there.
    pub(super) page: Page,
    /// The separators' tails; an empty vector if all of them are empty.
    pub(super) tails: Vec<Box<[u8]>>,
}

impl Inner {
    /// Position of the child that owns the key.
    #[inline]
    pub(super) fn child(&self, key: &Key) -> usize {
        if let Some(tail) = key.tail()
            && !self.tails.is_empty()
        {
            let (first, end) = (self.page.rank(key.head()), self.page.rank(key.head() + 1));
            return first + self.tails[first..end].partition_point(|separator| **separator <= *tail) - 1;
        }
        self.page.rank(key.head() + 1) - 1
    }

    pub(super) fn tail(&self, at: usize) -> &[u8] {
        self.tails.get(at).map_or(&[], |tail| tail)
    }

    pub(super) fn separator(&self, at: usize) -> Separator {
        Separator { head: self.page.heads[at], tail: self.tail(at).into() }
    }

    pub(super) fn insert(&mut self, at: usize, separator: Separator, child: u32) {
        if !self.tails.is_empty() || !separator.tail.is_empty() {
            self.tails.resize_with(self.page.len(), Box::default);
            self.tails.insert(at, separator.tail);
        }
        self.page.insert(at, separator.head, child);
    }

    /// Removes a child; its left neighbour's interval extends over its own.
    pub(super) fn remove(&mut self, at: usize) {
        self.page.remove(at);
        if !self.tails.is_empty() {
            self.tails.remove(at);
        }
    }

    pub(super) fn split_off(&mut self, at: usize) -> Inner {
        let tails = if self.tails.is_empty() { Vec::new() } else { self.tails.split_off(at) };
        Inner { page: self.page.split_off(at), tails }
    }

    pub(super) fn append(&mut self, mut right: Inner) {
        if !self.tails.is_empty() || !right.tails.is_empty() {
            self.tails.resize_with(self.page.len(), Box::default);
            right.tails.resize_with(right.page.len(), Box::default);
            self.tails.append(&mut right.tails);
        }
        self.page.append(&right.page);
    }

    pub(super) fn take(&mut self) -> Inner {
        std::mem::replace(self, Inner { page: Page::EMPTY, tails: Vec::new() })
    }
}
