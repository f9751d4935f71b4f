//! The undecided transactions that have started on each item: the last one that may write it, and
//! those that have started to read it since.
//!
//! A later transaction gets an edge from these; earlier ones are their predecessors. An item is
//! kept only while an undecided transaction has started on it: the marks of its records tell about
//! decided ones.

use std::collections::BTreeMap;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{ColumnGroup, Key, TxnId};

use crate::shipped::Item;

#[derive(Debug, Default)]
struct Started {
    writer: Option<TxnId>,
    readers: Vec<TxnId>,
}

/// The items of a server.
#[derive(Debug, Default)]
pub struct Conflicts {
    items: BTreeMap<(ColumnGroup, Key), Started>,
}

impl Conflicts {
    /// Whether a transaction that starts on this item now has an undecided predecessor.
    pub fn any(&self, item: &Item) -> bool {
        if self.items.is_empty() {
            return false;
        }
        let started = self.items.get(&(item.column, item.key.clone()));
        started.is_some_and(|started| started.writer.is_some() || item.write && !started.readers.is_empty())
    }

    /// A transaction starts on an item: `pred` is called for each predecessor.
    pub fn start(&mut self, txn: TxnId, item: &Item, mut pred: impl FnMut(TxnId)) {
        let started = self.items.entry((item.column, item.key.clone())).or_default();
        started.writer.into_iter().filter(|writer| *writer != txn).for_each(&mut pred);
        if item.write {
            if !planted(Mutant::ReadersForgotten) {
                started.readers.iter().copied().filter(|reader| *reader != txn).for_each(&mut pred);
            }
            started.readers.clear();
            started.writer = Some(txn);
        } else if started.writer != Some(txn) && !started.readers.contains(&txn) {
            started.readers.push(txn);
        }
    }

    /// A transaction that had started on an item is decided.
    pub fn decided(&mut self, txn: TxnId, item: &Item) {
        let item = (item.column, item.key.clone());
        let Some(started) = self.items.get_mut(&item) else { return };
        started.readers.retain(|reader| *reader != txn);
        if started.writer == Some(txn) {
            started.writer = None;
        }
        if started.writer.is_none() && started.readers.is_empty() {
            self.items.remove(&item);
        }
    }

    /// How many items undecided transactions have started on.
    pub fn len(&self) -> usize {
        self.items.len()
    }
}
