//! The six transactions; `smallbank.rs` says what they do.

use plimsoll_txn::chopping::PieceType;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_txn::shipped::{Items, OneShot, Shipped};
use plimsoll_types::{Abort, Key, Slot, TableId};

use super::{CHECKING, SAVINGS};
use crate::NOT_LOADED;

/// What send_payment moves and write_check pays, in cents.
const PAYMENT: i64 = 500;
/// What deposit_checking adds, in cents.
const CHECKING_DEPOSIT: i64 = 130;
/// What transact_savings adds, in cents.
const SAVINGS_DEPOSIT: i64 = 2020;
/// What write_check pays on top if the account is overdrawn, in cents.
const PENALTY: i64 = 100;

/// The transaction types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    SendPayment,
    DepositChecking,
    Balance,
    TransactSavings,
    WriteCheck,
    Amalgamate,
}

/// A SmallBank transaction.
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    pub(super) kind: Type,
    /// The slot where the client is at home.
    pub(super) home: Slot,
    /// The slot of account `a`.
    pub(super) slot_a: Slot,
    /// The slot of account `b`; that of `a` if there is no `b`.
    pub(super) slot_b: Slot,
    /// The first or only account.
    pub(super) a: u64,
    /// The second account of a transfer.
    pub(super) b: u64,
    /// Output: the balance read, the amount moved, or the amount paid, in cents.
    pub(super) amount: i64,
}

impl Transaction {
    /// Output of a committed transaction, in cents: the balance that was read, the amount that was
    /// moved, deposited or paid.
    pub fn amount(&self) -> i64 {
        self.amount
    }

    /// Whether a piece works on account a and whether it works on account b.
    #[inline]
    fn sides(&self, piece: Piece) -> (bool, bool) {
        if self.slot_a == self.slot_b {
            return (true, true);
        }
        // Two remote sides are two pieces of one stage; otherwise the side at home comes last if it
        // can.
        let a = if self.independent_sides() {
            piece.number == 0
        } else {
            let a_is_last = self.kind == Type::SendPayment && self.home == self.slot_a;
            (piece.stage == 0) != a_is_last
        };
        (a, !a)
    }

    /// Whether neither side of a distributed transfer has to wait for the other.
    #[inline]
    fn independent_sides(&self) -> bool {
        self.kind == Type::SendPayment && self.home != self.slot_a && self.home != self.slot_b
    }
}

const NOT_CUT: &str = "what is read-only is not started piece by piece";

/// Reads a balance that was loaded and is never deleted.
#[inline]
fn balance<A: Access>(access: &mut A, table: TableId, key: &Key) -> Result<i64, Abort> {
    access.get(table.row(), key)?.map(cents).ok_or(NOT_LOADED)
}

/// Decodes a balance.
#[inline]
pub(super) fn cents(value: &[u8]) -> i64 {
    i64::from_le_bytes(value.try_into().expect("a balance has eight bytes"))
}

impl Procedure for Transaction {
    #[inline]
    fn read_only(&self) -> bool {
        self.kind == Type::Balance
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        let pieces: &[usize] = match (self.slot_a != self.slot_b, self.independent_sides()) {
            (false, _) => &[1],
            (true, false) => &[1, 1],
            (true, true) => &[2],
        };
        pieces.get(stage).copied().unwrap_or(0)
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        if self.sides(piece).0 { self.slot_a } else { self.slot_b }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let (a, b) = self.sides(piece);
        match self.kind {
            Type::SendPayment => {
                if a {
                    reads.update(CHECKING.row(), Key::of_u64(self.a));
                }
                if b {
                    reads.update(CHECKING.row(), Key::of_u64(self.b));
                }
            }
            Type::DepositChecking => reads.update(CHECKING.row(), Key::of_u64(self.a)),
            Type::Balance => {
                reads.get(SAVINGS.row(), Key::of_u64(self.a));
                reads.get(CHECKING.row(), Key::of_u64(self.a));
            }
            Type::TransactSavings => reads.update(SAVINGS.row(), Key::of_u64(self.a)),
            Type::WriteCheck => {
                reads.get(SAVINGS.row(), Key::of_u64(self.a));
                reads.update(CHECKING.row(), Key::of_u64(self.a));
            }
            Type::Amalgamate => {
                if a {
                    reads.update(SAVINGS.row(), Key::of_u64(self.a));
                    reads.update(CHECKING.row(), Key::of_u64(self.a));
                }
                if b {
                    reads.update(CHECKING.row(), Key::of_u64(self.b));
                }
            }
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (a, b) = self.sides(piece);
        let key_a = Key::of_u64(self.a);
        match self.kind {
            Type::SendPayment => {
                self.amount = PAYMENT;
                if a {
                    let money = balance(access, CHECKING, &key_a)?;
                    if money < PAYMENT {
                        return Err(Abort::User);
                    }
                    access.put(CHECKING.row(), &key_a, &(money - PAYMENT).to_le_bytes())?;
                }
                if b {
                    let key_b = Key::of_u64(self.b);
                    let money = balance(access, CHECKING, &key_b)?;
                    access.put(CHECKING.row(), &key_b, &(money + PAYMENT).to_le_bytes())?;
                }
            }
            Type::DepositChecking => {
                self.amount = CHECKING_DEPOSIT;
                let money = balance(access, CHECKING, &key_a)?;
                access.put(CHECKING.row(), &key_a, &(money + CHECKING_DEPOSIT).to_le_bytes())?;
            }
            Type::Balance => {
                self.amount = balance(access, SAVINGS, &key_a)? + balance(access, CHECKING, &key_a)?;
            }
            Type::TransactSavings => {
                self.amount = SAVINGS_DEPOSIT;
                let money = balance(access, SAVINGS, &key_a)?;
                access.put(SAVINGS.row(), &key_a, &(money + SAVINGS_DEPOSIT).to_le_bytes())?;
            }
            Type::WriteCheck => {
                let savings = balance(access, SAVINGS, &key_a)?;
                let checking = balance(access, CHECKING, &key_a)?;
                self.amount = if savings + checking < PAYMENT { PAYMENT + PENALTY } else { PAYMENT };
                access.put(CHECKING.row(), &key_a, &(checking - self.amount).to_le_bytes())?;
            }
            Type::Amalgamate => {
                if a {
                    self.amount = balance(access, SAVINGS, &key_a)? + balance(access, CHECKING, &key_a)?;
                    access.put(SAVINGS.row(), &key_a, &0i64.to_le_bytes())?;
                    access.put(CHECKING.row(), &key_a, &0i64.to_le_bytes())?;
                }
                if b {
                    let key_b = Key::of_u64(self.b);
                    let money = balance(access, CHECKING, &key_b)?;
                    access.put(CHECKING.row(), &key_b, &(money + self.amount).to_le_bytes())?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn shipped(&mut self) -> Option<&mut dyn Shipped> {
        Some(self)
    }
}

plimsoll_txn::executable!(Transaction);

/// How those that write are cut, in the order of the types: not at all, unless the two accounts of
/// a transfer are on different shards.
pub(super) fn pieces(distributed: bool) -> Vec<PieceType> {
    let (savings, checking) = (SAVINGS.row(), CHECKING.row());
    let one = |name| PieceType::new(name, "account", 0);
    let mut types = vec![
        PieceType::new("send_payment", if distributed { "from" } else { "both" }, 0)
            .writes([checking])
            .aborts(),
        one("deposit_checking").writes([checking]),
        one("transact_savings").writes([savings]),
        one("write_check").reads([savings]).writes([checking]),
    ];
    let amalgamate = PieceType::new("amalgamate", if distributed { "from" } else { "both" }, 0);
    types.push(amalgamate.writes([savings, checking]));
    if distributed {
        let from = types.pop().expect("it was pushed");
        types.push(from.feeds("to"));
        types.push(PieceType::new("amalgamate", "to", 1).writes([checking]));
        types.push(PieceType::new("send_payment", "to", 0).writes([checking]));
    }
    types
}

impl OneShot for Transaction {
    /// Of transactions whose accounts are on one shard: others are refused.
    fn piece_type(&self, _: Piece) -> usize {
        match self.kind {
            Type::SendPayment => 0,
            Type::DepositChecking => 1,
            Type::TransactSavings => 2,
            Type::WriteCheck => 3,
            Type::Amalgamate => 4,
            Type::Balance => unreachable!("{NOT_CUT}"),
        }
    }

    fn items(&self, _: Piece, items: &mut Items) {
        let (a, b) = (Key::of_u64(self.a), Key::of_u64(self.b));
        match self.kind {
            Type::SendPayment => {
                items.write(CHECKING.row(), a);
                items.write(CHECKING.row(), b);
            }
            Type::DepositChecking => items.write(CHECKING.row(), a),
            Type::Balance => unreachable!("{NOT_CUT}"),
            Type::TransactSavings => items.write(SAVINGS.row(), a),
            Type::WriteCheck => {
                items.read(SAVINGS.row(), a.clone());
                items.write(CHECKING.row(), a);
            }
            Type::Amalgamate => {
                items.write(SAVINGS.row(), a.clone());
                items.write(CHECKING.row(), a);
                items.write(CHECKING.row(), b);
            }
        }
    }

    fn absorb(&mut self, _: Piece, executed: &Transaction) {
        self.amount = executed.amount;
    }
}

plimsoll_types::wire!(
    enum Type {
        SendPayment = 0,
        DepositChecking = 1,
        Balance = 2,
        TransactSavings = 3,
        WriteCheck = 4,
        Amalgamate = 5,
    }
);
plimsoll_types::wire!(struct Transaction { kind, home, slot_a, slot_b, a, b, amount });
