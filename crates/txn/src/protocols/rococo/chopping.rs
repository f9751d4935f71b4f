//! ROCOCO's offline checker: which pieces may be deferred, and whether reordering these repairs
//! every cycle.
//!
//! ROCOCO (Mu et al., OSDI 2014, §3) executes an *immediate* piece when it starts, because a
//! sibling needs its output, and a *deferrable* one when its transaction commits, in an order that
//! all servers have agreed upon. The checker looks at two instances of every transaction type.
//! Siblings are joined by an **S-edge**; pieces of different instances that touch the same columns
//! of the same table, one of them writing, by a **C-edge**. Then:
//!
//! 1. A deferrable piece with a C-edge to an immediate one is *promoted*: all pieces on one item
//!    must execute in the same way. Repeated until nothing changes.
//! 2. A cycle with S- and C-edges whose C-edges are all between immediate pieces cannot be
//!    repaired: both pieces of an edge have executed before any server knows of the cycle. With at
//!    least one deferrable C-edge it can be.
//!
//! Step 2 is simple. Immediate pieces fall into classes, connected by C-edges. Suppose that a
//! transaction type has two immediate pieces with C-edges, in classes K and L (perhaps the same).
//! Its other instance has two as well, and there is a cycle: from the first piece through K to the
//! other instance's first, by an S-edge to its second, through L back to the second, by an S-edge
//! to the first. If no type has two, no S-edge can be part of such a cycle. So: **at most one
//! immediate piece of a transaction may have a C-edge to another immediate piece.**
//!
//! Example. Amalgamate takes all money out of one account (immediate: the sum is the input of the
//! next piece) and adds it to another. Both touch `checking`, so the second piece is promoted, and
//! two amalgamations in opposite directions are a cycle. The remedy is to merge the two pieces,
//! which requires both accounts to be on one server.
//!
//! Read-only transactions are left out, because they are never started. Immutable records are no
//! items. A piece that may abort its transaction is immediate, because the others must know; and it
//! must come before all other immediate pieces that write, because their writes cannot be taken
//! back.
//!
//! All of this is about types. A sample of transactions is checked against their types
//! ([`Chopping::check`]).

mod drawn;

use std::collections::VecDeque;
use std::fmt::{self, Write as _};

use plimsoll_types::{ColumnGroup, TableSpec};

/// Types of pieces of a workload, at most.
pub const TYPES_MAX: usize = 64;

/// A type of pieces, which do the same in all transactions of one type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PieceType {
    /// The transaction type.
    pub transaction: &'static str,
    /// The piece's name.
    pub name: &'static str,
    /// Of two pieces of one transaction that execute when they start, the one with the larger
    /// number starts in a later stage. Equal numbers promise nothing.
    pub stage: usize,
    /// The column groups that it touches, and whether it may write there. Immutable ones are not
    /// listed.
    pub touches: Vec<(ColumnGroup, bool)>,
    /// Names of the pieces of the same transaction whose inputs are outputs of this one.
    pub feeds: Vec<&'static str>,
    /// Whether it reads ranges: its records are known only when it executes.
    pub scans: bool,
    /// Whether it may abort the transaction.
    pub aborts: bool,
    /// Whether a transaction may have several of them: at different homes, or in stages that do not
    /// execute as one.
    pub many: bool,
}

impl PieceType {
    /// A piece that touches only immutable records, feeds no sibling, and does not abort.
    pub fn new(transaction: &'static str, name: &'static str, stage: usize) -> PieceType {
        let (touches, feeds) = (Vec::new(), Vec::new());
        PieceType { transaction, name, stage, touches, feeds, scans: false, aborts: false, many: false }
    }

    /// The same, which reads these column groups.
    pub fn reads(mut self, columns: impl IntoIterator<Item = ColumnGroup>) -> PieceType {
        self.touches.extend(columns.into_iter().map(|column| (column, false)));
        self
    }

    /// The same, which reads these column groups and may write them.
    pub fn writes(mut self, columns: impl IntoIterator<Item = ColumnGroup>) -> PieceType {
        self.touches.extend(columns.into_iter().map(|column| (column, true)));
        self
    }

    /// The same, whose outputs are inputs of that sibling.
    pub fn feeds(mut self, sibling: &'static str) -> PieceType {
        self.feeds.push(sibling);
        self
    }

    /// The same, which reads ranges.
    pub fn scans(mut self) -> PieceType {
        self.scans = true;
        self
    }

    /// The same, which may abort the transaction.
    pub fn aborts(mut self) -> PieceType {
        self.aborts = true;
        self
    }

    /// The same, of which there may be several in a transaction.
    pub fn many(mut self) -> PieceType {
        self.many = true;
        self
    }

    fn full_name(&self) -> String {
        format!("{}.{}", self.transaction, self.name)
    }

    /// The column groups that both touch, and at least one of them writes.
    fn shared<'a>(&'a self, other: &'a PieceType) -> impl Iterator<Item = ColumnGroup> + 'a {
        self.touches.iter().filter_map(|&(column, write)| {
            let theirs =
                other.touches.iter().find(|(theirs, writes)| *theirs == column && (write || *writes));
            theirs.map(|_| column)
        })
    }

    fn conflicts(&self, other: &PieceType) -> bool {
        self.shared(other).next().is_some()
    }

    fn writes_anything(&self) -> bool {
        self.touches.iter().any(|(_, write)| *write)
    }
}

/// Why a piece executes when it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A sibling needs its output.
    Feeds,
    /// Its records are not known before it executes.
    Scans,
    /// It may abort the transaction.
    Aborts,
    /// It shares an item with this piece, which is immediate.
    Promoted(usize),
}

/// A checked workload.
#[derive(Clone, Debug)]
pub struct Chopping {
    /// All types of pieces.
    pub types: Vec<PieceType>,
    reasons: Vec<Option<Reason>>,
}

/// Why a workload cannot run, in sentences that name the pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unrepairable(pub String);

impl fmt::Display for Unrepairable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rococo cannot run this workload: {}", self.0)
    }
}

impl Chopping {
    /// Checks the pieces of a workload.
    pub fn new(types: Vec<PieceType>) -> Result<Chopping, Unrepairable> {
        if types.is_empty() {
            return Err(Unrepairable(
                "None of its transactions is cut into pieces whose records are known before they execute."
                    .to_owned(),
            ));
        }
        assert!(types.len() <= TYPES_MAX, "a workload has at most {TYPES_MAX} types of pieces");
        for piece in &types {
            for fed in &piece.feeds {
                let sibling =
                    |other: &PieceType| other.transaction == piece.transaction && other.name == *fed;
                if !types.iter().any(sibling) {
                    let name = piece.full_name();
                    return Err(Unrepairable(format!("{name} feeds `{fed}`, which is no piece of it.")));
                }
            }
        }
        let reasons = classify(&types);
        let chopping = Chopping { types, reasons };
        chopping.check_cycles()?;
        chopping.check_aborts()?;
        Ok(chopping)
    }

    /// Whether pieces of this type execute when they start.
    pub fn immediate(&self, piece_type: usize) -> bool {
        self.reasons[piece_type].is_some()
    }

    /// [`Chopping::immediate`] of all types, one bit each.
    pub fn bits(&self) -> u64 {
        (0..self.types.len()).filter(|&piece| self.immediate(piece)).map(|piece| 1 << piece).sum()
    }

    /// Pairs of pieces with a C-edge, the smaller number first.
    pub fn conflicts(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let count = self.types.len();
        let pairs = (0..count).flat_map(move |a| (a..count).map(move |b| (a, b)));
        pairs.filter(|&(a, b)| self.types[a].conflicts(&self.types[b]))
    }

    /// Names of the column groups that two pieces with a C-edge share.
    pub fn shared(&self, a: usize, b: usize, tables: &[TableSpec]) -> Vec<String> {
        self.types[a].shared(&self.types[b]).map(|column| named(tables, column)).collect()
    }

    /// The immediate pieces that a piece has a C-edge to.
    fn immediate_neighbours(&self, piece: usize) -> impl Iterator<Item = usize> + '_ {
        let all = (0..self.types.len()).filter(|&other| self.immediate(other));
        all.filter(move |&other| self.types[piece].conflicts(&self.types[other]))
    }

    fn check_cycles(&self) -> Result<(), Unrepairable> {
        let bound =
            |&piece: &usize| self.immediate(piece) && self.immediate_neighbours(piece).next().is_some();
        let bound: Vec<usize> = (0..self.types.len()).filter(bound).collect();
        for (at, &first) in bound.iter().enumerate() {
            let sibling = |&&other: &&usize| self.types[other].transaction == self.types[first].transaction;
            let second = match self.types[first].many {
                true => Some(&first),
                false => bound[at + 1..].iter().find(sibling),
            };
            if let Some(&second) = second {
                return Err(Unrepairable(self.describe_cycle(first, second)));
            }
        }
        Ok(())
    }

    fn check_aborts(&self) -> Result<(), Unrepairable> {
        // Only a piece with a larger number is sure to start after it is known whether this one
        // aborts.
        for (number, piece) in self.types.iter().enumerate().filter(|(_, piece)| piece.aborts) {
            let before = self.types.iter().enumerate().find(|&(other, before)| {
                other != number
                    && before.transaction == piece.transaction
                    && before.stage <= piece.stage
                    && self.immediate(other)
                    && before.writes_anything()
            });
            if let Some((_, before)) = before {
                return Err(Unrepairable(format!(
                    "{0} may abort the transaction after {1} has executed, which cannot be taken back. Check in an \
                     earlier piece, before anything is written; if {0} always starts before {1}, give it a smaller \
                     number of stage.",
                    piece.full_name(),
                    before.full_name()
                )));
            }
        }
        Ok(())
    }

    /// The path from one instance's piece to the other's by C-edges between immediate pieces.
    fn way(&self, from: usize) -> Vec<usize> {
        let mut before = vec![None; self.types.len()];
        let mut next = VecDeque::from([from]);
        while let Some(piece) = next.pop_front() {
            for neighbour in self.immediate_neighbours(piece) {
                if neighbour == from {
                    let mut way = vec![piece];
                    while let Some(earlier) = before[way[way.len() - 1]] {
                        way.push(earlier);
                    }
                    way.reverse();
                    return way;
                }
                if before[neighbour].is_none() {
                    before[neighbour] = Some(piece);
                    next.push_back(neighbour);
                }
            }
        }
        unreachable!("a C-edge leads back")
    }

    fn describe_cycle(&self, first: usize, second: usize) -> String {
        let name = |piece: usize| self.types[piece].full_name();
        let through = |way: Vec<usize>| -> String {
            way[1..].iter().fold(String::new(), |text, &piece| text + &name(piece) + " -C- ")
        };
        let (there, back) = (through(self.way(first)), through(self.way(second)));
        let reasons: Vec<String> =
            [first, second].iter().map(|&piece| format!("{} {}", name(piece), self.reason(piece))).collect();
        format!(
            "Reordering cannot repair this cycle, whose conflicts are all between pieces that execute when they start: \
             {0} -C- {there}{0}' -S- {1}' -C- {back}{1} -S- {0}. {2}. Make one piece of them if they are on one server, \
             or run these transactions under occ or two_pl.",
            name(first),
            name(second),
            if first == second { reasons[0].clone() } else { reasons.join("; ") },
        )
    }

    /// Whether a piece executes when it starts, and why: the predicate of a sentence.
    pub fn reason(&self, piece: usize) -> String {
        match self.reasons[piece] {
            None => "waits until its transaction commits".to_owned(),
            Some(Reason::Feeds) => {
                format!("is immediate because it feeds {}", self.types[piece].feeds.join(", "))
            }
            Some(Reason::Scans) => "is immediate because it reads a range".to_owned(),
            Some(Reason::Aborts) => "is immediate because it may abort the transaction".to_owned(),
            Some(Reason::Promoted(by)) => {
                format!("is immediate because it shares an item with {}", self.types[by].full_name())
            }
        }
    }

    /// The graph as text.
    pub fn explain(&self, tables: &[TableSpec]) -> String {
        let mut text = String::new();
        let mut transaction = "";
        for (number, piece) in self.types.iter().enumerate() {
            if piece.transaction != transaction {
                transaction = piece.transaction;
                _ = writeln!(text, "{transaction}");
            }
            _ = writeln!(text, "  {}: {}", piece.name, self.reason(number));
            for other in 0..self.types.len() {
                let shared = self.shared(number, other, tables);
                if !shared.is_empty() {
                    let both = self.immediate(number);
                    let kind = if both { "immediate" } else { "deferred" };
                    let other = self.types[other].full_name();
                    _ = writeln!(text, "    -C- {other} ({kind}): {}", shared.join(", "));
                }
            }
        }
        _ = writeln!(
            text,
            "No transaction has two immediate pieces with immediate conflicts: every cycle has a deferred conflict, and \
             is repaired by ordering it."
        );
        text
    }
}

/// A column group's name.
fn named(tables: &[TableSpec], column: ColumnGroup) -> String {
    let table = tables.get(column.table.index());
    match table.and_then(|table| Some((table, table.groups.get(usize::from(column.group))?))) {
        Some((table, _)) if table.groups.len() == 1 => table.name.clone(),
        Some((table, group)) => format!("{}.{group}", table.name),
        None => format!("{column:?}, which does not exist"),
    }
}

/// Step 1.
fn classify(types: &[PieceType]) -> Vec<Option<Reason>> {
    let reason = |piece: &PieceType| match piece {
        PieceType { feeds, .. } if !feeds.is_empty() => Some(Reason::Feeds),
        PieceType { scans: true, .. } => Some(Reason::Scans),
        PieceType { aborts: true, .. } => Some(Reason::Aborts),
        _ => None,
    };
    let mut reasons: Vec<Option<Reason>> = types.iter().map(reason).collect();
    let promotable = |reasons: &[Option<Reason>]| {
        let deferred = (0..types.len()).filter(|&piece| reasons[piece].is_none());
        let mut pairs = deferred.flat_map(|piece| (0..types.len()).map(move |other| (piece, other)));
        pairs.find(|&(piece, other)| reasons[other].is_some() && types[piece].conflicts(&types[other]))
    };
    while let Some((piece, by)) = promotable(&reasons) {
        reasons[piece] = Some(Reason::Promoted(by));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use plimsoll_types::TableId;

    use super::*;

    fn column(table: u16) -> ColumnGroup {
        ColumnGroup { table: TableId(table), group: 0 }
    }

    fn refused(types: Vec<PieceType>) -> String {
        Chopping::new(types).expect_err("it cannot be repaired").0
    }

    #[test]
    fn a_piece_whose_output_is_needed_is_immediate_and_promotes_those_that_share_its_items() {
        let chopping = Chopping::new(vec![
            PieceType::new("order", "number", 0).writes([column(0)]).feeds("lines"),
            PieceType::new("order", "lines", 1).writes([column(1)]),
            PieceType::new("order", "stock", 0).writes([column(2)]).many(),
            PieceType::new("audit", "number", 0).reads([column(0)]),
        ]);
        let chopping = chopping.expect("the lines wait");
        let immediate: Vec<bool> = (0..4).map(|piece| chopping.immediate(piece)).collect();
        assert_eq!(immediate, [true, false, false, true]);
        assert_eq!(chopping.bits(), 0b1001);
        assert_eq!(chopping.conflicts().collect::<Vec<_>>(), [(0, 0), (0, 3), (1, 1), (2, 2)]);
    }

    #[test]
    fn a_cycle_of_immediate_pieces_is_refused_by_name() {
        let text = refused(vec![
            PieceType::new("amalgamate", "source", 0).writes([column(0)]).feeds("destination"),
            PieceType::new("amalgamate", "destination", 1).writes([column(0)]),
        ]);
        assert!(
            text.contains(
                "amalgamate.source -C- amalgamate.source' -S- amalgamate.destination' -C- amalgamate.destination -S- \
                 amalgamate.source."
            ),
            "{text}"
        );
        assert!(text.contains("amalgamate.source is immediate because it feeds destination"), "{text}");
        assert!(
            text.contains(
                "amalgamate.destination is immediate because it shares an item with amalgamate.source"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_cycle_through_another_transaction_is_refused_and_one_with_a_deferred_conflict_is_not() {
        let through = |kept: bool| {
            let mut types = vec![
                PieceType::new("a", "x", 0).reads([column(0)]).feeds("y"),
                PieceType::new("a", "y", 0).reads([column(1)]).feeds("z"),
                PieceType::new("a", "z", 1),
                PieceType::new("b", "x", 0).writes([column(0)]),
            ];
            if kept {
                types.push(PieceType::new("c", "y", 0).writes([column(1)]));
            }
            types
        };
        Chopping::new(through(false)).expect("y has no conflict");
        let text = refused(through(true));
        assert!(text.contains("a.x -C- b.x -C- a.x' -S- a.y' -C- c.y -C- a.y -S- a.x"), "{text}");
    }

    #[test]
    fn several_immediate_pieces_of_one_type_are_two() {
        let text = refused(vec![
            PieceType::new("t", "take", 0).writes([column(0)]).feeds("sum").many(),
            PieceType::new("t", "sum", 1),
        ]);
        assert!(text.contains("t.take -C- t.take' -S- t.take' -C- t.take -S- t.take"), "{text}");
    }

    #[test]
    fn an_abort_after_a_write_that_cannot_be_taken_back_is_refused() {
        let text = refused(vec![
            PieceType::new("t", "take", 0).writes([column(0)]).feeds("give"),
            PieceType::new("t", "look", 1).reads([column(1)]).feeds("give").aborts(),
            PieceType::new("t", "give", 2).writes([column(2)]),
        ]);
        assert!(text.contains("t.look may abort the transaction after t.take has executed"), "{text}");
        let alone = Chopping::new(vec![PieceType::new("t", "give", 0).writes([column(0)]).aborts()]);
        assert!(alone.expect("nobody else has written").immediate(0));
        let text = refused(vec![PieceType::new("t", "give", 0).feeds("nobody")]);
        assert!(text.contains("t.give feeds `nobody`"), "{text}");
        assert!(refused(Vec::new()).contains("None of its transactions"));
    }
}
