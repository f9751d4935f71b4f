//! Procedures that write tables with a copy on every shard.

use plimsoll_engine::{Engine, EngineOptions};
use plimsoll_runtime::Env;
use plimsoll_store::At;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::execute::execute;
use plimsoll_txn::pairs::LEGAL_PAIRS;
use plimsoll_txn::pairs::LegalPair;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_txn::with_interactive_pair;
use plimsoll_txn::work::Work;
use plimsoll_types::{Abort, IndexKind, Key, Partitioning, ShardId, Slot, TableId, TableSpec};

const SHARDS: usize = 3;
const COPIED: TableId = TableId(0);

/// Inserts a row on another shard than its own, writes one on its own, and reads both on a third.
struct Everywhere {
    seen: Vec<u64>,
}

impl Procedure for Everywhere {
    fn read_only(&self) -> bool {
        false
    }

    fn stage(&self, stage: usize) -> usize {
        [2, 1, 0][stage.min(2)]
    }

    fn home(&self, piece: Piece) -> Slot {
        Partitioning::modulo(match (piece.stage, piece.number) {
            (0, 0) => 1,
            (0, _) => 0,
            _ => 2,
        })
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        if piece.stage == 1 {
            reads.get(COPIED.row(), Key::of_u64(7));
            reads.scan(Scan::prefix(COPIED.row(), Key::MIN));
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match (piece.stage, piece.number) {
            (0, 0) => access.insert(COPIED, &Key::of_u64(7), &[&[7]]),
            (0, _) => access.put(COPIED.row(), &Key::of_u64(8), &[8]),
            _ => {
                self.seen.clear();
                let own = access.get(COPIED.row(), &Key::of_u64(7))?.map(<[u8]>::to_vec);
                assert_eq!(own, Some(vec![7]));
                let seen = &mut self.seen;
                access.scan(&Scan::prefix(COPIED.row(), Key::MIN), |_, value| {
                    seen.push(value[0].into());
                    std::ops::ControlFlow::Continue(())
                })
            }
        }
    }
}

plimsoll_txn::executable!(Everywhere);

fn commits_at_once<P: LegalPair>() {
    let table = TableSpec::new("copied", IndexKind::Ordered, Partitioning::Everywhere);
    let options = EngineOptions { shards: SHARDS, pin: None, ..EngineOptions::default() };
    let engine = Engine::<P>::start(vec![table], options).expect("threads can be started");
    let (result, seen) = engine.runtime().run_on(ShardId(0), |env| async move {
        let (mut work, mut procedure) = (Work::default(), Everywhere { seen: Vec::new() });
        let result = execute(&env, Attempt::default(), &mut procedure, &mut work).await;
        // What is told without an answer has arrived, too.
        env.sleep(10_000_000).await;
        (result, procedure.seen)
    });
    assert_eq!((result, seen), (Ok(()), vec![7, 8]), "{}", P::NAME);
    for shard in engine.shards() {
        let rows = engine.on_shard(shard, |_, base| {
            [7, 8].map(|key| {
                let row = base.store.find(COPIED.row(), &Key::of_u64(key)).row();
                row.and_then(|row| base.store.newest(At { row, column: COPIED.row() })).map(<[u8]>::to_vec)
            })
        });
        assert_eq!(rows, [Some(vec![7]), Some(vec![8])], "{}, shard {}", P::NAME, shard.0);
    }
}

#[test]
fn a_transaction_that_meets_its_own_insert_on_another_copy_commits_at_the_first_attempt() {
    let serializable = LEGAL_PAIRS.iter().filter(|pair| pair.serializable() && pair.interactive().is_ok());
    for &pair in serializable {
        with_interactive_pair!(pair, P => commits_at_once::<P>());
    }
}
