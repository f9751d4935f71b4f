//! Whether a transaction agrees with the types of its pieces.
//!
//! The checker believes the types. A type that declares less than its pieces do hides an edge from
//! the checker, and the result is not an error but a history that is not serializable. So when a
//! workload is registered, a sample of its transactions is drawn and compared with the types before
//! any piece has run. What depends on outputs is compared as it is without them.
//!
//! Pieces of one type at one home that share a stage, or fill consecutive stages, execute as one.
//! The types are about such a *run*.

use plimsoll_types::{ColumnGroup, Partitioning, SLOTS, Slot, TableSpec};

use super::{Chopping, PieceType, Unrepairable, named};
use crate::procedure::{Piece, Procedure, Reads};
use crate::shipped::{Item, Items};

/// Stages of a transaction, at most. One with more may have no end.
const STAGES_MAX: usize = 1024;

/// Pieces that execute as one.
struct Run {
    piece_type: usize,
    home: Slot,
    /// Its first stage and its last.
    stages: (usize, usize),
}

impl Chopping {
    /// Compares a transaction that was drawn, and has not run, with the types of its pieces.
    /// `transaction` is its type.
    ///
    /// The error names the piece and says what to do.
    pub fn check<T: Procedure>(
        &self,
        transaction: &str,
        procedure: &mut T,
        tables: &[TableSpec],
    ) -> Result<(), Unrepairable> {
        if procedure.read_only() {
            return Ok(());
        }
        let mut runs: Vec<Run> = Vec::new();
        // Whether one run fills the stage before.
        let mut filled = false;
        for stage in 0.. {
            let count = procedure.stage(stage);
            if count == 0 {
                break;
            }
            if stage == STAGES_MAX {
                let why =
                    format!("{transaction} has more than {STAGES_MAX} stages: let one of them be empty.");
                return Err(Unrepairable(why));
            }
            let mut pieces = Vec::with_capacity(count);
            for number in 0..count {
                let piece = Piece { stage, number };
                pieces
                    .push((self.check_piece(transaction, procedure, piece, tables)?, procedure.home(piece)));
            }
            let fills = pieces.iter().all(|piece| *piece == pieces[0]);
            for (piece_type, home) in pieces {
                let since = if fills && filled { stage - 1 } else { stage };
                let same = |run: &&mut Run| {
                    (run.piece_type, run.home) == (piece_type, home) && run.stages.1 >= since
                };
                match runs.iter_mut().find(same) {
                    Some(run) => run.stages.1 = stage,
                    None => runs.push(Run { piece_type, home, stages: (stage, stage) }),
                }
            }
            filled = fills;
        }
        self.check_runs(&runs)
    }

    /// Compares one piece with its type, and returns the type.
    fn check_piece<T: Procedure>(
        &self,
        transaction: &str,
        procedure: &mut T,
        piece: Piece,
        tables: &[TableSpec],
    ) -> Result<usize, Unrepairable> {
        let refuse = |why: String| Err(Unrepairable(why));
        let Piece { stage, number } = piece;
        let at = format!("piece {number} in stage {stage} of a {transaction}");
        let Slot(home) = procedure.home(piece);
        if usize::from(home) >= SLOTS {
            return refuse(format!(
                "{at} is at home in slot {home}, which no shard owns: choose one of the {SLOTS} slots, as the \
                 partitioning of its tables does."
            ));
        }
        let mut reads = Reads::default();
        procedure.reads(piece, &mut reads);
        let Some(shipped) = procedure.shipped() else {
            return refuse(format!("a {transaction} cannot be sent to where its data is: it is no OneShot."));
        };
        let piece_type = shipped.piece_type(piece);
        let Some(declared) = self.types.get(piece_type).filter(|own| own.transaction == transaction) else {
            let own = self.types.iter().enumerate().filter(|(_, own)| own.transaction == transaction);
            let own: Vec<String> = own.map(|(of, own)| format!("{of} ({})", own.name)).collect();
            return refuse(format!(
                "{at} says that its type is number {piece_type}. The types of a {transaction} are: {}.",
                if own.is_empty() { "none".to_owned() } else { own.join(", ") }
            ));
        };
        let mut items = Items::default();
        shipped.items(piece, &mut items);
        for item in &items.0 {
            self.check_item(declared, item, tables)?;
        }
        let gets = reads.gets.iter().map(|(column, key, _)| (*column, key));
        for (column, key) in gets.chain(reads.scans.iter().map(|(scan, _)| (scan.column, &scan.low))) {
            // What never changes is no item.
            let written = |by: &&PieceType| by.touches.contains(&(column, true));
            if let Some(by) = self.types.iter().find(written)
                && !items.0.iter().any(|item| item.covers(column, key))
            {
                return refuse(format!(
                    "{} reads {} at {key:?}, which {} may write: name it among the piece's items, and declare it with \
                     `.reads` in its type.",
                    declared.full_name(),
                    named(tables, column),
                    by.full_name()
                ));
            }
        }
        Ok(piece_type)
    }

    fn check_item(
        &self,
        declared: &PieceType,
        item: &Item,
        tables: &[TableSpec],
    ) -> Result<(), Unrepairable> {
        let Item { column, write, .. } = *item;
        let (does, how) = if write { ("writes", "`.writes`") } else { ("reads", "`.reads`") };
        let touches = || format!("{} {does} {}", declared.full_name(), named(tables, column));
        let covers = |&(own, writes): &(ColumnGroup, bool)| own == column && (writes || !write);
        if !declared.touches.iter().any(covers) {
            let why = format!("{}: declare it with {how} in its type.", touches());
            return Err(Unrepairable(why));
        }
        let table = tables.get(column.table.index());
        if write
            && table.is_some_and(|table| table.immutable || table.partitioning == Partitioning::Everywhere)
        {
            let why = format!(
                "{}, which does not change or has a copy on every shard: a piece writes on one.",
                touches()
            );
            return Err(Unrepairable(why));
        }
        Ok(())
    }

    fn check_runs(&self, runs: &[Run]) -> Result<(), Unrepairable> {
        for (at, run) in runs.iter().enumerate() {
            let declared = &self.types[run.piece_type];
            let another = runs[at + 1..].iter().find(|other| other.piece_type == run.piece_type);
            if let Some(another) = another.filter(|_| !declared.many) {
                let place = |run: &Run| format!("stage {} in slot {}", run.stages.0, run.home.0);
                return Err(Unrepairable(format!(
                    "A {} may have several pieces {}, in {} and in {}, which do not execute as one: give them types of \
                     their own, put them into stages that follow each other with nothing else in them, or declare the \
                     type with `.many`.",
                    declared.transaction,
                    declared.name,
                    place(run),
                    place(another)
                )));
            }
            for later in runs {
                let last = &self.types[later.piece_type];
                let both = self.immediate(run.piece_type) && self.immediate(later.piece_type);
                let why = match () {
                    () if declared.feeds.contains(&last.name) => "feeds it",
                    () if both && declared.stage < last.stage => "has the smaller number of stage",
                    () => continue,
                };
                if later.stages.0 <= run.stages.0 {
                    return Err(Unrepairable(format!(
                        "{0} may start in stage {1}, no later than {2}, which {why}: let it start in a later stage, or \
                         declare both as they are.",
                        last.full_name(),
                        later.stages.0,
                        declared.full_name(),
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_types::{Abort, IndexKind, Key, TableId};

    use super::*;
    use crate::procedure::Access;
    use crate::shipped::{OneShot, Shipped};

    const FROM: usize = 0;
    const TO: usize = 1;
    const LOOK: usize = 2;
    const A: TableId = TableId(0);
    const B: TableId = TableId(1);
    const FIXED: TableId = TableId(2);

    /// Pieces that say this of themselves, by stage.
    #[derive(Clone)]
    struct Transfer {
        stages: Vec<Vec<Part>>,
    }

    #[derive(Clone)]
    struct Part {
        piece_type: usize,
        home: u16,
        reads: Vec<TableId>,
        writes: Vec<TableId>,
    }

    plimsoll_types::wire!(struct Part { piece_type, home, reads, writes });
    plimsoll_types::wire!(struct Transfer { stages });

    fn part(piece_type: usize, home: u16) -> Part {
        Part { piece_type, home, reads: Vec::new(), writes: Vec::new() }
    }

    impl Part {
        fn reads(mut self, table: TableId) -> Part {
            self.reads.push(table);
            self
        }

        fn writes(mut self, table: TableId) -> Part {
            self.writes.push(table);
            self
        }
    }

    impl Transfer {
        fn part(&self, piece: Piece) -> &Part {
            &self.stages[piece.stage][piece.number]
        }
    }

    impl Procedure for Transfer {
        fn read_only(&self) -> bool {
            false
        }

        fn stage(&self, stage: usize) -> usize {
            self.stages.get(stage).map_or(0, Vec::len)
        }

        fn home(&self, piece: Piece) -> Slot {
            Slot(self.part(piece).home)
        }

        fn reads(&self, piece: Piece, reads: &mut Reads) {
            self.part(piece).reads.iter().for_each(|table| reads.get(table.row(), Key::MIN));
        }

        fn execute<A: Access>(&mut self, _: Piece, _: &mut A) -> Result<(), Abort> {
            unreachable!("it is looked at before it runs")
        }

        fn shipped(&mut self) -> Option<&mut dyn Shipped> {
            Some(self)
        }
    }

    impl OneShot for Transfer {
        fn piece_type(&self, piece: Piece) -> usize {
            self.part(piece).piece_type
        }

        fn items(&self, piece: Piece, items: &mut Items) {
            self.part(piece).writes.iter().for_each(|table| items.write(table.row(), Key::MIN));
        }

        fn absorb(&mut self, _: Piece, _: &Transfer) {}
    }

    /// `from` executes when it starts, for `to` needs its output; `look` may abort, which is why it
    /// comes first.
    fn types() -> Vec<PieceType> {
        vec![
            PieceType::new("transfer", "from", 1).writes([A.row()]).feeds("to"),
            PieceType::new("transfer", "to", 2).writes([B.row()]),
            PieceType::new("transfer", "look", 0).aborts(),
        ]
    }

    fn check(types: Vec<PieceType>, stages: Vec<Vec<Part>>) -> Result<(), String> {
        let placed = Partitioning::Modulo { bytes: 1 };
        let tables = ["a", "b", "fixed"].map(|name| TableSpec::new(name, IndexKind::Hash, placed));
        let chopping = Chopping::new(types).expect("the types are repairable");
        chopping.check("transfer", &mut Transfer { stages }, &tables).map_err(|why| why.0)
    }

    fn refused(stages: Vec<Vec<Part>>) -> String {
        check(types(), stages).expect_err("it is not what its types say")
    }

    #[test]
    fn a_transaction_that_is_what_its_types_say_is_let_through() {
        let from = || part(FROM, 0).reads(A).reads(FIXED).writes(A);
        let whole = vec![vec![part(LOOK, 1)], vec![from()], vec![from()], vec![part(TO, 2).writes(B)]];
        assert_eq!(check(types(), whole), Ok(()));
        assert_eq!(check(types(), vec![vec![from(), from()], vec![part(TO, 0)]]), Ok(()));
    }

    #[test]
    fn what_is_touched_without_being_declared_is_refused_by_name() {
        assert_eq!(
            refused(vec![vec![part(FROM, 0).writes(B)]]),
            "transfer.from writes b: declare it with `.writes` in its type."
        );
        assert_eq!(
            refused(vec![vec![part(FROM, 0).reads(B)]]),
            "transfer.from reads b at , which transfer.to may write: name it among the piece's items, and declare it \
             with `.reads` in its type."
        );
        let text = refused(vec![vec![part(FROM, 0).writes(TableId(9))]]);
        assert!(text.contains("which does not exist"), "{text}");
    }

    #[test]
    fn a_type_or_a_home_that_does_not_exist_is_refused() {
        assert_eq!(
            refused(vec![vec![part(FROM, 0), part(64, 0)]]),
            "piece 1 in stage 0 of a transfer says that its type is number 64. The types of a transfer are: 0 (from), \
             1 (to), 2 (look)."
        );
        let mut others = types();
        others.push(PieceType::new("audit", "all", 0));
        let text = check(others, vec![vec![part(3, 0)]]).expect_err("it is another transaction's");
        assert!(text.contains("its type is number 3"), "{text}");
        let text = refused(vec![vec![part(FROM, 4096)]]);
        assert!(text.starts_with("piece 0 in stage 0 of a transfer is at home in slot 4096"), "{text}");
    }

    #[test]
    fn stages_that_do_not_execute_as_one_are_two_pieces() {
        let text = refused(vec![vec![part(FROM, 0)], vec![part(FROM, 0), part(TO, 0)]]);
        assert!(
            text.contains("several pieces from, in stage 0 in slot 0 and in stage 1 in slot 0, which do not"),
            "{text}"
        );
        refused(vec![vec![part(FROM, 0)], vec![part(LOOK, 0)], vec![part(FROM, 0)]]);
        refused(vec![vec![part(FROM, 0)], vec![part(FROM, 1)]]);
        refused(vec![vec![part(FROM, 0), part(FROM, 1)]]);
        let mut many = types();
        many[LOOK].many = true;
        assert_eq!(check(many, vec![vec![part(LOOK, 0), part(LOOK, 1)], vec![part(LOOK, 0)]]), Ok(()));
    }

    /// The types alone promise that nothing is written before the piece that may abort has its say.
    #[test]
    fn pieces_that_do_not_start_in_the_order_of_their_numbers_are_refused() {
        let together = refused(vec![vec![part(LOOK, 0), part(FROM, 1)]]);
        assert_eq!(
            together,
            "transfer.from may start in stage 0, no later than transfer.look, which has the smaller number of stage: \
             let it start in a later stage, or declare both as they are."
        );
        assert_eq!(refused(vec![vec![part(FROM, 1)], vec![part(LOOK, 0)]]), together);
        let text = refused(vec![vec![part(FROM, 1), part(TO, 0)]]);
        assert!(
            text.contains("transfer.to may start in stage 0, no later than transfer.from, which feeds it"),
            "{text}"
        );
    }
}
