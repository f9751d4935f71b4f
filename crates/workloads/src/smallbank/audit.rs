//! Sums balances in one snapshot, and judges the sums.

use std::ops::Range;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_types::{Abort, Key, Slot};

use super::transaction::cents;
use super::{CHECKING, SAVINGS};
use crate::Check;

/// An audit's piece reads so many accounts.
pub(super) const AUDIT_PIECE: u64 = 500;

/// Sums balances in one snapshot: stage by stage the next accounts of every block it looks at, a
/// block being a piece.
#[derive(Clone, Debug)]
pub struct Audit {
    first_block: u64,
    /// By block, from the first.
    seen: Vec<Seen>,
    /// Accounts in a block.
    span: u64,
    /// Offset in each block of the first account to read.
    from: u64,
    /// Offset in each block of the first account not to read.
    end: u64,
}

/// What an audit has seen of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    total: i64,
    missing: u64,
    negative_savings: u64,
}

impl Audit {
    /// An audit of a range of accounts (offsets in a block of `span` accounts) of each of some
    /// blocks.
    pub(super) fn new(span: u64, blocks: Range<u64>, accounts: Range<u64>) -> Audit {
        Audit {
            first_block: blocks.start,
            seen: blocks.map(|_| Seen::default()).collect(),
            span,
            from: accounts.start,
            end: accounts.end,
        }
    }

    /// How many blocks it looks at.
    pub(super) fn blocks(&self) -> u64 {
        self.seen.len() as u64
    }

    /// The sum of all balances it has read, in cents.
    pub fn total(&self) -> i64 {
        self.seen.iter().map(|seen| seen.total).sum()
    }

    fn block(&self, piece: Piece) -> u64 {
        self.first_block + piece.number as u64
    }

    fn accounts(&self, piece: Piece) -> impl Iterator<Item = Key> + use<> {
        let first = self.block(piece) * self.span;
        let from = self.from + piece.stage as u64 * AUDIT_PIECE;
        (first + from..first + (from + AUDIT_PIECE).min(self.end)).map(Key::of_u64)
    }
}

impl Procedure for Audit {
    fn read_only(&self) -> bool {
        true
    }

    fn stage(&self, stage: usize) -> usize {
        let unfinished = self.from + (stage as u64) * AUDIT_PIECE < self.end;
        if unfinished { self.seen.len() } else { 0 }
    }

    fn home(&self, piece: Piece) -> Slot {
        Slot(self.block(piece) as u16)
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        for account in self.accounts(piece) {
            reads.get(SAVINGS.row(), account.clone());
            reads.get(CHECKING.row(), account);
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let mut seen = if piece.stage == 0 { Seen::default() } else { self.seen[piece.number] };
        for account in self.accounts(piece) {
            for table in [SAVINGS, CHECKING] {
                match access.get(table.row(), &account)?.map(cents) {
                    None => seen.missing += 1,
                    Some(money) => {
                        seen.total += money;
                        seen.negative_savings += u64::from(table == SAVINGS && money < 0);
                    }
                }
            }
        }
        self.seen[piece.number] = seen;
        Ok(())
    }
}

plimsoll_txn::executable!(Audit);

/// Judges that every balance is there and that no savings are negative.
pub(super) fn audit_of_rows<'a>(audits: impl IntoIterator<Item = &'a Audit>) -> Check {
    let (mut accounts, mut missing, mut negative) = (0, 0, 0);
    for audit in audits {
        for seen in &audit.seen {
            accounts += audit.end - audit.from;
            missing += seen.missing;
            negative += seen.negative_savings;
        }
    }
    Check {
        name: "smallbank savings are never negative".to_owned(),
        ok: missing == 0 && negative == 0,
        detail: format!("{accounts} accounts, {missing} balances missing, {negative} negative savings"),
    }
}

/// Judges that all balances add up.
pub(super) fn same_total(total: i64, expected: i64, expected_by: &str) -> Check {
    Check {
        name: "smallbank money is conserved".to_owned(),
        ok: total == expected,
        detail: format!("the balances add up to {total} cents; {expected_by} must show {expected}"),
    }
}
