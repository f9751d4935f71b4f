//! The transaction: one piece for each block that it touches, all in one stage, that at home last.

use std::hint::black_box;

use plimsoll_txn::chopping::PieceType;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_txn::shipped::{Items, OneShot, Shipped};
use plimsoll_types::{Abort, Key, Slot};

use super::TUPLES;
use crate::NOT_LOADED;

/// A microbenchmark's transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Grouped by block; those at home last.
    pub(super) tuples: Vec<Tuple>,
    /// The blocks that are not at home, in the order of `tuples`.
    pub(super) away: Vec<Part>,
    /// The slot where the client is at home.
    pub(super) home: Slot,
    pub(super) read_only: bool,
    /// How many of the tuples it updates.
    pub(super) updates: u64,
    /// How many rounds it spins.
    pub(super) spin_rounds: u64,
}

/// A tuple and what is done with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuple {
    pub(super) key: u64,
    /// Where it is.
    pub(super) slot: Slot,
    /// Whether it is updated, or only read.
    pub(super) update: bool,
}

/// The tuples of one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) slot: Slot,
    /// The position behind its last tuple.
    pub(super) end: usize,
}

impl Transaction {
    /// The numbers of its tuples, and whether each is updated.
    pub fn tuples(&self) -> impl Iterator<Item = (u64, bool)> {
        self.tuples.iter().map(|tuple| (tuple.key, tuple.update))
    }

    /// The tuples of a piece.
    #[inline]
    fn part(&self, piece: Piece) -> &[Tuple] {
        let start = if piece.number == 0 { 0 } else { self.away[piece.number - 1].end };
        match self.away.get(piece.number) {
            Some(part) => &self.tuples[start..part.end],
            None => &self.tuples[start..],
        }
    }
}

/// Keeps the processor busy: each round waits for the one before, and takes a few cycles.
#[inline(never)]
pub fn spin(rounds: u64) {
    let mut x = rounds;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(0x9e3779b97f4a7c15));
    }
}

/// Decodes a tuple that was loaded and is never deleted.
#[inline]
pub(super) fn count(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("a tuple has eight bytes"))
}

impl Procedure for Transaction {
    #[inline]
    fn read_only(&self) -> bool {
        self.read_only
    }

    /// There is no piece at home if no tuple is and the transaction does not spin.
    #[inline]
    fn stage(&self, stage: usize) -> usize {
        let away = self.away.last().map_or(0, |part| part.end);
        let at_home = away < self.tuples.len() || self.spin_rounds > 0;
        if stage == 0 { self.away.len() + usize::from(at_home) } else { 0 }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        self.away.get(piece.number).map_or(self.home, |part| part.slot)
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        for tuple in self.part(piece) {
            let key = Key::of_u64(tuple.key);
            if tuple.update {
                reads.update(TUPLES.row(), key);
            } else {
                reads.get(TUPLES.row(), key);
            }
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        access.expect(TUPLES.row(), self.part(piece).iter().map(|tuple| Key::of_u64(tuple.key)));
        for tuple in self.part(piece) {
            let key = Key::of_u64(tuple.key);
            let value = access.get(TUPLES.row(), &key)?.ok_or(NOT_LOADED)?;
            if tuple.update {
                let next = count(value) + 1;
                access.put(TUPLES.row(), &key, &next.to_le_bytes())?;
            }
        }
        if piece.number == self.away.len() && self.spin_rounds > 0 {
            spin(self.spin_rounds);
        }
        Ok(())
    }

    #[inline]
    fn shipped(&mut self) -> Option<&mut dyn Shipped> {
        Some(self)
    }
}

plimsoll_txn::executable!(Transaction);

/// How it is cut: all pieces are of one type, and none needs another's output.
pub(super) fn pieces() -> Vec<PieceType> {
    vec![PieceType::new("read_write", "part", 0).writes([TUPLES.row()]).many()]
}

impl OneShot for Transaction {
    fn piece_type(&self, _: Piece) -> usize {
        0
    }

    fn items(&self, piece: Piece, items: &mut Items) {
        for tuple in self.part(piece) {
            let key = Key::of_u64(tuple.key);
            match tuple.update {
                true => items.write(TUPLES.row(), key),
                false => items.read(TUPLES.row(), key),
            }
        }
    }

    fn absorb(&mut self, _: Piece, _: &Transaction) {}

    fn is_sound(&self) -> bool {
        let ends: Vec<usize> = self.away.iter().map(|part| part.end).collect();
        ends.is_sorted() && ends.last().is_none_or(|end| *end <= self.tuples.len())
    }
}

plimsoll_types::wire!(struct Tuple { key, slot, update });
plimsoll_types::wire!(struct Part { slot, end });
plimsoll_types::wire!(struct Transaction { tuples, away, home, read_only, updates, spin_rounds });
