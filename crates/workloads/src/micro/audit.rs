//! Sums tuples in one snapshot, and judges the sums.

use std::ops::Range;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_types::{Abort, Key, Slot};

use super::TUPLES;
use super::transaction::count;
use crate::Check;

/// An audit's piece reads so many tuples.
const AUDIT_PIECE: u64 = 500;

/// Sums tuples in one snapshot: stage by stage the next ones of every block it looks at, a block
/// being a piece.
#[derive(Clone, Debug)]
pub struct Audit {
    first_block: u64,
    /// By block, from the first.
    seen: Vec<Seen>,
    /// Tuples in a block.
    span: u64,
    /// Offset in each block of the first tuple to read.
    first: u64,
    /// The distance to the next.
    step: u64,
}

/// What an audit has seen of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    total: u64,
    missing: u64,
}

impl Audit {
    /// An audit of every `step`-th tuple of some blocks of `span` tuples, from an offset in each
    /// block on.
    pub(super) fn new(span: u64, blocks: Range<u64>, first: u64, step: u64) -> Audit {
        let seen = blocks.clone().map(|_| Seen::default()).collect();
        Audit { first_block: blocks.start, seen, span, first, step }
    }

    /// How many blocks it looks at.
    pub(super) fn blocks(&self) -> u64 {
        self.seen.len() as u64
    }

    /// The sum of all tuples it has read.
    pub fn total(&self) -> u64 {
        self.seen.iter().map(|seen| seen.total).sum()
    }

    /// How many tuples of a block it reads.
    fn in_block(&self) -> u64 {
        (self.span - self.first).div_ceil(self.step)
    }

    fn block(&self, piece: Piece) -> u64 {
        self.first_block + piece.number as u64
    }

    fn tuples(&self, piece: Piece) -> impl Iterator<Item = Key> + use<> {
        let (first, step) = (self.block(piece) * self.span + self.first, self.step);
        let from = piece.stage as u64 * AUDIT_PIECE;
        (from..(from + AUDIT_PIECE).min(self.in_block())).map(move |n| Key::of_u64(first + n * step))
    }
}

impl Procedure for Audit {
    fn read_only(&self) -> bool {
        true
    }

    fn stage(&self, stage: usize) -> usize {
        if stage as u64 * AUDIT_PIECE < self.in_block() { self.seen.len() } else { 0 }
    }

    fn home(&self, piece: Piece) -> Slot {
        Slot(self.block(piece) as u16)
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        for tuple in self.tuples(piece) {
            reads.get(TUPLES.row(), tuple);
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let mut seen = if piece.stage == 0 { Seen::default() } else { self.seen[piece.number] };
        for tuple in self.tuples(piece) {
            match access.get(TUPLES.row(), &tuple)?.map(count) {
                None => seen.missing += 1,
                Some(count) => seen.total += count,
            }
        }
        self.seen[piece.number] = seen;
        Ok(())
    }
}

plimsoll_txn::executable!(Audit);

/// Judges that every tuple is there.
pub(super) fn all_there<'a>(audits: impl IntoIterator<Item = &'a Audit>) -> Check {
    let (mut tuples, mut missing) = (0, 0);
    for audit in audits {
        tuples += audit.in_block() * audit.blocks();
        missing += audit.seen.iter().map(|seen| seen.missing).sum::<u64>();
    }
    Check {
        name: "micro tuples are all there".to_owned(),
        ok: missing == 0,
        detail: format!("{tuples} tuples, {missing} missing"),
    }
}

/// Judges that a snapshot contains all of a transaction's updates or none.
pub(super) fn seen_whole(total: u64, updates: u64) -> Check {
    Check {
        name: "micro transactions are seen whole".to_owned(),
        ok: total == 0 || updates > 0 && total.is_multiple_of(updates),
        detail: format!("the tuples of a class add up to {total}; every transaction adds {updates}"),
    }
}

/// Judges that the tuples count what was committed.
pub(super) fn counts_updates(total: u64, updates: i64) -> Check {
    Check {
        name: "micro tuples count their updates".to_owned(),
        ok: i64::try_from(total) == Ok(updates),
        detail: format!("the tuples add up to {total}; {updates} updates were committed"),
    }
}
