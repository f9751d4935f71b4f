//! Who has started on which item and is undecided: the last who may write it, and those who have
//! started to read it since.
//!
//! Whoever comes later gets an edge from them. Earlier ones are predecessors of those. An item that
//! nobody undecided has started on is not kept: the marks of its records tell what is decided.

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
    /// Whether somebody undecided is to be ordered before whoever starts on this item now.
    pub fn any(&self, item: &Item) -> bool {
        if self.items.is_empty() {
            return false;
        }
        let started = self.items.get(&(item.column, item.key.clone()));
        started.is_some_and(|started| started.writer.is_some() || item.write && !started.readers.is_empty())
    }

    /// A transaction starts on an item: `pred` is called for each that is before it.
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
    pub fn decided(&mut self, txn: TxnId, (column, key): (ColumnGroup, Key)) {
        let item = (column, key);
        let Some(started) = self.items.get_mut(&item) else { return };
        started.readers.retain(|reader| *reader != txn);
        if started.writer == Some(txn) {
            started.writer = None;
        }
        if started.writer.is_none() && started.readers.is_empty() {
            self.items.remove(&item);
        }
    }

    /// How many items somebody undecided has started on.
    pub fn len(&self) -> usize {
        self.items.len()
    }
}
