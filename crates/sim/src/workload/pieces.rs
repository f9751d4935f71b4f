//! Random one-shot transactions, for protocols that ship pieces, and for all others.
//!
//! Every piece of a transaction names what it touches before it executes, and hardly any of them
//! feeds another: what ROCOCO can express ([`plimsoll_txn::chopping`]). There is little data, so
//! that transactions meet on several servers in different orders.
//!
//! | transaction | pieces |
//! |---|---|
//! | mix | one that executes when it starts: reads, writes, scans, may say no; several that wait |
//! | move | two that wait: money goes from one account to another |
//! | draw | draws a number from a counter, at once; inserts a row under it, which waits |
//! | audit | read-only: the sum of all accounts |
//! | look | read-only: anything, in one or two stages |
//!
//! All but the money is written with the transaction's own number, so what was read tells who wrote
//! it.

use plimsoll_txn::attempt::ProtocolOptions;
use plimsoll_txn::chopping::{Chopping, PieceType};
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_txn::shipped::{Items, OneShot, Shipped, unpack};
use plimsoll_types::{Abort, ColumnGroup, IndexKind, Key, Partitioning, Slot, TableId, TableSpec};

use super::operation::{Operation, all, key, number};
use crate::client::{Client, Ended, Observer, Seen};

/// Partition keys; each has a slot of its own.
const PARTITIONS: u64 = 4;
/// Rows that a partition has of each table, present or absent, at most.
pub const ROWS: u64 = 4;
const BALANCE: u64 = 1000;

/// Touched by pieces that execute when they start; ranges are read.
const HEAD: TableId = TableId(0);
/// Touched by pieces that wait.
const TAIL: TableId = TableId(1);
const ACCOUNT: TableId = TableId(2);
const COUNTER: TableId = TableId(3);
const NUMBERED: TableId = TableId(4);

const MOVE: usize = 0;
const NUMBER: usize = 1;
const ROW: usize = 2;
const FIRST: usize = 3;
const LATER: usize = 4;

/// The tables.
pub fn tables() -> Vec<TableSpec> {
    let placed = Partitioning::Modulo { bytes: 1 };
    vec![
        TableSpec::new("head", IndexKind::Ordered, placed),
        TableSpec::new("tail", IndexKind::Hash, placed),
        TableSpec::new("account", IndexKind::Ordered, placed),
        TableSpec::new("counter", IndexKind::Hash, placed),
        TableSpec::new("numbered", IndexKind::Ordered, placed),
    ]
}

/// What a protocol that ships pieces has to know.
pub fn protocol_options() -> ProtocolOptions {
    ProtocolOptions {
        immediate_pieces: chopping().bits(),
        unpack: Some(unpack::<Pieces>),
        ..ProtocolOptions::default()
    }
}

/// The pieces, checked.
fn chopping() -> Chopping {
    let types = vec![
        PieceType::new("move", "part", 0).writes([ACCOUNT.row()]).many(),
        PieceType::new("draw", "number", 0).writes([COUNTER.row()]).feeds("row"),
        PieceType::new("draw", "row", 1).writes([NUMBERED.row()]),
        PieceType::new("mix", "first", 0).writes([HEAD.row()]).scans().aborts(),
        PieceType::new("mix", "later", 0).writes([TAIL.row()]).many(),
    ];
    Chopping::new(types).expect("only one piece of each transaction executes when it starts")
}

/// The rows that are there at the beginning: partition, table, key, number.
pub fn rows() -> Vec<(u64, TableId, Key, u64)> {
    rows_of(ROWS)
}

/// The same where partitions have so many rows, [`ROWS`] at most.
pub fn rows_of(rows: u64) -> Vec<(u64, TableId, Key, u64)> {
    let mut loaded = Vec::new();
    for partition in 0..PARTITIONS {
        for row in 0..rows {
            if row % 2 == 0 {
                loaded.push((partition, HEAD, key(partition, row), 0));
                loaded.push((partition, TAIL, key(partition, row), 0));
            }
            loaded.push((partition, ACCOUNT, key(partition, row), BALANCE));
        }
        loaded.push((partition, COUNTER, key(partition, 0), 0));
    }
    loaded
}

#[derive(Clone, Debug)]
enum Step {
    Do(Operation),
    /// Gives up if the row's number can be divided by this.
    Refuse(Key, u64),
    /// Adds to an account, modulo 2^64.
    Add(Key, u64),
    Draw(Key),
    /// Inserts a row under the number that was drawn.
    Insert(u8),
}

plimsoll_types::wire!(
    enum Step {
        Do(operation) = 0,
        Refuse(key, by) = 1,
        Add(key, amount) = 2,
        Draw(key) = 3,
        Insert(rows) = 4,
    }
);

#[derive(Clone, Debug)]
struct Part {
    piece_type: usize,
    partition: u64,
    steps: Vec<Step>,
    /// Output: what it saw that the transaction had not written.
    seen: Seen,
}

plimsoll_types::wire!(struct Part { piece_type, partition, steps, seen });

impl Part {
    fn new(piece_type: usize, partition: u64, steps: Vec<Step>) -> Part {
        Part { piece_type, partition, steps, seen: Seen::new() }
    }
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Pieces {
    read_only: bool,
    stages: Vec<Vec<Part>>,
    own: u64,
    /// Output: the number that was drawn.
    drawn: u64,
}

plimsoll_types::wire!(struct Pieces { read_only, stages, own, drawn });

impl Pieces {
    fn part(&self, piece: Piece) -> &Part {
        &self.stages[piece.stage][piece.number]
    }

    fn row_of(&self, rows: u8, counter: u64) -> Key {
        Key::build().u8(rows).u8(counter as u8).u64(self.drawn).finish()
    }

    /// The counter that it draws from.
    fn counter(&self) -> u64 {
        self.stages[0][0].partition
    }
}

impl Procedure for Pieces {
    fn read_only(&self) -> bool {
        self.read_only
    }

    fn stage(&self, stage: usize) -> usize {
        self.stages.get(stage).map_or(0, Vec::len)
    }

    fn home(&self, piece: Piece) -> Slot {
        Partitioning::modulo(self.part(piece).partition)
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        for step in &self.part(piece).steps {
            match step {
                Step::Do(operation) => operation.reads(reads),
                Step::Refuse(key, _) => reads.get(HEAD.row(), key.clone()),
                Step::Add(key, _) => reads.update(ACCOUNT.row(), key.clone()),
                Step::Draw(key) => reads.update(COUNTER.row(), key.clone()),
                Step::Insert(_) => {}
            }
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let counter = self.counter();
        let mut part =
            std::mem::replace(&mut self.stages[piece.stage][piece.number], Part::new(0, 0, Vec::new()));
        part.seen.clear();
        let mut result = Ok(());
        for step in &part.steps {
            result = self.step(step, counter, &mut part.seen, access);
            if result.is_err() {
                break;
            }
        }
        part.seen.retain(|(.., number)| *number != self.own);
        self.stages[piece.stage][piece.number] = part;
        result
    }

    fn shipped(&mut self) -> Option<&mut dyn Shipped> {
        Some(self)
    }
}

plimsoll_txn::executable!(Pieces);

impl Pieces {
    fn step<A: Access>(
        &mut self,
        step: &Step,
        counter: u64,
        seen: &mut Seen,
        access: &mut A,
    ) -> Result<(), Abort> {
        match step {
            Step::Do(operation) => operation.execute(self.own, seen, access)?,
            Step::Refuse(key, by) => {
                let found = access.get(HEAD.row(), key)?.map(number);
                if found.is_some_and(|found| found > 0 && found % by == 0) {
                    return Err(Abort::User);
                }
            }
            Step::Add(key, amount) => {
                let balance = number(access.get(ACCOUNT.row(), key)?.expect("accounts stay"));
                access.put(ACCOUNT.row(), key, &balance.wrapping_add(*amount).to_be_bytes())?;
            }
            Step::Draw(key) => {
                self.drawn = number(access.get(COUNTER.row(), key)?.expect("counters stay"));
                access.put(COUNTER.row(), key, &(self.drawn + 1).to_be_bytes())?;
            }
            Step::Insert(rows) => {
                let drawn = self.drawn.to_be_bytes();
                access.insert(NUMBERED, &self.row_of(*rows, counter), &[&drawn])?;
            }
        }
        Ok(())
    }
}

impl OneShot for Pieces {
    fn piece_type(&self, piece: Piece) -> usize {
        self.part(piece).piece_type
    }

    fn items(&self, piece: Piece, items: &mut Items) {
        let part = self.part(piece);
        if part.piece_type == FIRST {
            // Ranges are read: all rows of the partition are one item.
            return items.write(HEAD.row(), all(part.partition));
        }
        for step in &part.steps {
            match step {
                Step::Do(operation) => operation.items(items),
                Step::Add(key, _) => items.write(ACCOUNT.row(), key.clone()),
                Step::Draw(key) => items.write(COUNTER.row(), key.clone()),
                Step::Insert(rows) => items.write(NUMBERED.row(), self.row_of(*rows, self.counter())),
                Step::Refuse(..) => unreachable!("only the first piece may say no"),
            }
        }
    }

    fn absorb(&mut self, piece: Piece, executed: &Pieces) {
        let seen = &executed.part(piece).seen;
        self.stages[piece.stage][piece.number].seen.clone_from(seen);
        if self.part(piece).piece_type == NUMBER {
            self.drawn = executed.drawn;
        }
    }
}

impl<O: Observer> Client<O> {
    /// One transaction of any kind.
    pub async fn pieces(&mut self) {
        self.pieces_of(ROWS).await;
    }

    /// The same where partitions have so many rows: see [`rows_of`].
    pub async fn pieces_of(&mut self, rows: u64) {
        let (label, procedure) = match self.rng.below(10) {
            0..=3 => ("mix", self.mixed(rows)),
            4 | 5 => ("move", self.moved(rows)),
            6 => ("draw", self.drawn()),
            7 => ("audit", self.audited()),
            _ => ("look", self.looked_at(rows)),
        };
        self.run_pieces(label, procedure, PARTITIONS * rows * BALANCE).await;
    }

    /// Runs a transaction. An audit must find so much money.
    async fn run_pieces(&mut self, label: &'static str, mut procedure: Pieces, expected: u64) {
        let checked = chopping().check(label, &mut procedure, &tables());
        checked.expect("every transaction is what the types of its pieces say");
        let (begin, attempt) = (self.begin(), self.attempt(0));
        let (read_only, own) = (procedure.read_only, procedure.own);
        let Ok(Some(committed)) = self.procedure(label, attempt, &mut procedure).await else { return };
        let seen: Seen = procedure.stages.into_iter().flatten().flat_map(|part| part.seen).collect();
        if label == "audit" {
            let sum = seen.iter().fold(0u64, |sum, (.., balance)| sum.wrapping_add(*balance));
            if sum != expected {
                self.left.torn.push(format!("{:?} saw {sum} in all accounts, not {expected}", committed.id));
            }
        }
        let seen = seen.into_iter().filter(|(column, ..)| tells(*column)).collect();
        self.record(Ended { label, read_only, begin, number: own, seen, committed });
    }

    fn any(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    fn mixed(&mut self, rows: u64) -> Pieces {
        let own = self.next_number();
        let mut stages = Vec::new();
        if self.any(3) > 0 {
            let partition = self.any(PARTITIONS);
            // Two stages of it execute as one.
            for _ in 0..1 + self.any(2) {
                let count = 1 + self.any(3);
                let steps = (0..count).map(|_| {
                    let row = key(partition, self.any(rows));
                    Step::Do(match self.any(8) {
                        0 => Operation::Get(HEAD, row),
                        1 | 2 => Operation::Update(HEAD, row),
                        3 => Operation::Put(HEAD, row),
                        4 => Operation::Delete(HEAD, row),
                        5 => return Step::Refuse(row, 3),
                        _ => Operation::Scan(Scan::prefix(HEAD.row(), all(partition))),
                    })
                });
                let steps = steps.collect();
                stages.push(vec![Part::new(FIRST, partition, steps)]);
            }
        }
        let mut later = Vec::new();
        for _ in 0..1 + self.any(3) {
            let partition = self.any(PARTITIONS);
            let count = 1 + self.any(3);
            let steps = (0..count).map(|_| {
                let row = key(partition, self.any(rows));
                Step::Do(match self.any(6) {
                    0 | 1 => Operation::Get(TAIL, row),
                    2 | 3 => Operation::Update(TAIL, row),
                    4 => Operation::Put(TAIL, row),
                    _ => Operation::Delete(TAIL, row),
                })
            });
            let steps = steps.collect();
            later.push(Part::new(LATER, partition, steps));
        }
        let stages_of_first = stages.len();
        match stages.first_mut() {
            Some(first) if stages_of_first == 1 && self.rng.below(2) == 0 => first.append(&mut later),
            _ => stages.push(later),
        }
        Pieces { read_only: false, stages, own, drawn: 0 }
    }

    fn moved(&mut self, rows: u64) -> Pieces {
        let amount = 1 + self.any(10);
        let mut part = |amount: u64| {
            let partition = self.any(PARTITIONS);
            let row = key(partition, self.any(rows));
            Part::new(MOVE, partition, vec![Step::Add(row, amount)])
        };
        let parts = vec![part(amount), part(amount.wrapping_neg())];
        Pieces { read_only: false, stages: vec![parts], own: 0, drawn: 0 }
    }

    fn drawn(&mut self) -> Pieces {
        let (counter, rows) = (self.any(PARTITIONS), self.any(PARTITIONS));
        let number = Part::new(NUMBER, counter, vec![Step::Draw(key(counter, 0))]);
        let row = Part::new(ROW, rows, vec![Step::Insert(rows as u8)]);
        Pieces { read_only: false, stages: vec![vec![number], vec![row]], own: 0, drawn: 0 }
    }

    fn audited(&mut self) -> Pieces {
        let part = |partition| {
            let scan = Scan::prefix(ACCOUNT.row(), all(partition));
            Part::new(0, partition, vec![Step::Do(Operation::Scan(scan))])
        };
        Pieces { read_only: true, stages: vec![(0..PARTITIONS).map(part).collect()], own: 0, drawn: 0 }
    }

    fn looked_at(&mut self, rows: u64) -> Pieces {
        let own = u64::MAX;
        let stages = (0..1 + self.any(2)).map(|_| {
            let parts = (0..1 + self.rng.below(3)).map(|_| {
                let partition = self.rng.below(PARTITIONS);
                let steps = (0..1 + self.rng.below(3)).map(|_| {
                    let row = key(partition, self.rng.below(rows));
                    Step::Do(match self.rng.below(6) {
                        0 | 1 => Operation::Get(HEAD, row),
                        2 | 3 => Operation::Get(TAIL, row),
                        4 => Operation::Scan(Scan::prefix(HEAD.row(), all(partition))),
                        _ => Operation::Scan(Scan::prefix(NUMBERED.row(), all(partition))),
                    })
                });
                let steps = steps.collect();
                Part::new(0, partition, steps)
            });
            parts.collect()
        });
        let stages = stages.collect();
        Pieces { read_only: true, stages, own, drawn: 0 }
    }
}

/// Whether values of this table tell who wrote them.
fn tells(column: ColumnGroup) -> bool {
    column.table == HEAD || column.table == TAIL
}
