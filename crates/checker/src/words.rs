//! Transactions, records and dependencies in words.

use std::cell::RefCell;
use std::collections::BTreeSet;

use plimsoll_types::{ColumnGroup, Key};

use crate::graph::{Edge, Kind};
use crate::index::Index;
use plimsoll_types::history::ScanRead;

/// Puts things into words.
pub(crate) struct Words<'a, 'h> {
    index: &'a Index<'h>,
    names: &'a dyn Fn(ColumnGroup) -> String,
    /// Transactions that the present sentence has introduced already; later mentions are short.
    introduced: RefCell<BTreeSet<u32>>,
}

impl<'a, 'h> Words<'a, 'h> {
    pub fn new(index: &'a Index<'h>, names: &'a dyn Fn(ColumnGroup) -> String) -> Words<'a, 'h> {
        Words { index, names, introduced: RefCell::default() }
    }

    /// Starts a new text: transactions are introduced again.
    pub fn begin(&self) {
        self.introduced.borrow_mut().clear();
    }

    /// `T1.7 (payment, @9)`, and `T1.7` from the second mention on.
    pub fn txn(&self, txn: u32) -> String {
        let id = self.index.id(txn);
        if !self.introduced.borrow_mut().insert(txn) {
            return format!("{id:?}");
        }
        match self.index.transaction(txn) {
            None => format!("{id:?} (not among the committed)"),
            Some(found) => match found.timestamp {
                Some(timestamp) => format!("{id:?} ({}, {timestamp:?})", found.label),
                None => format!("{id:?} ({})", found.label),
            },
        }
    }

    /// `warehouse 00000001`.
    pub fn record(&self, record: u32) -> String {
        let (column, key) = self.index.record(record);
        self.name(column, key)
    }

    /// `warehouse 00000001`.
    pub fn name(&self, column: ColumnGroup, key: &Key) -> String {
        format!("{} {key:?}", (self.names)(column))
    }

    /// `warehouse [00000001, 00000009)`.
    pub fn range(&self, scan: &ScanRead) -> String {
        let high = scan.high.as_ref().map_or("end".to_owned(), |high| format!("{high:?}"));
        format!("{} [{:?}, {high})", (self.names)(scan.column), scan.low)
    }

    /// `@9`, the stamp of a position of a record.
    pub fn stamp(&self, record: u32, position: u32) -> String {
        match position {
            0 => "@0".to_owned(),
            _ => format!("{:?}", self.index.chain(record)[position as usize - 1].stamp),
        }
    }

    /// `inserted it at @9`: what the install at this position did to the one before it.
    pub fn did(&self, record: u32, position: u32, before_was_absent: bool) -> String {
        let verb = match self.index.chain(record)[position as usize - 1].delete {
            true => "deleted",
            false if before_was_absent => "inserted",
            false => "overwrote",
        };
        format!("{verb} at {}", self.stamp(record, position))
    }

    /// `T1.7 (payment) read warehouse 00000001 at @5, which T2.9 (new_order) overwrote at @9: T1.7
    /// comes before T2.9`.
    pub fn edge(&self, edge: &Edge) -> String {
        let (from, to) = (self.txn(edge.from), self.txn(edge.to));
        let because = match edge.kind {
            Kind::Session => format!("{from} was answered before {to} began in the same session"),
            Kind::Time => format!("{from} was answered before {to} began"),
            Kind::Ww | Kind::Wr | Kind::Rw | Kind::Phantom => {
                let record = self.record(edge.record);
                let at = self.stamp(edge.record, edge.position);
                let was_deleted = |position: u32| {
                    position > 0 && self.index.chain(edge.record)[position as usize - 1].delete
                };
                let did = || {
                    let absent = edge.absent || was_deleted(edge.position);
                    self.did(edge.record, edge.position + 1, absent)
                };
                match (edge.kind, edge.absent) {
                    (Kind::Ww, _) => {
                        let wrote = if was_deleted(edge.position) { "deleted" } else { "wrote" };
                        format!("{from} {wrote} {record} at {at}, which {to} {}", did())
                    }
                    (Kind::Wr, false) => format!("{from} wrote {record} at {at}, which {to} read"),
                    (Kind::Wr, true) => format!("{from} deleted {record} at {at}, and {to} found it gone"),
                    (Kind::Phantom, _) => {
                        format!("{from} scanned over {record} and found no row, which {to} {}", did())
                    }
                    (_, true) => format!("{from} found no {record}, which {to} {}", did()),
                    (_, false) => format!("{from} read {record} at {at}, which {to} {}", did()),
                }
            }
        };
        format!("{because}: {} comes before {}", self.txn(edge.from), self.txn(edge.to))
    }
}
