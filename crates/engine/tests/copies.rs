//! Procedures that write tables with a copy on every shard.

use plimsoll_engine::{Engine, EngineOptions};
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::pairs::{LEGAL_PAIRS, Pair};
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
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

fn commits_at_once(pair: Pair) {
    let table = TableSpec::new("copied", IndexKind::Ordered, Partitioning::Everywhere);
    let options = EngineOptions { shards: SHARDS, pin: None, ..EngineOptions::default() };
    let engine = Engine::start(pair, vec![table], options).expect("threads can be started");
    let (result, seen) = engine.run_on(ShardId(0), |shard| async move {
        let mut procedure = Everywhere { seen: Vec::new() };
        let result = shard.coordinator().execute(Attempt::default(), &mut procedure).await;
        // What is told without an answer has arrived, too.
        shard.sleep(10_000_000).await;
        (result, procedure.seen)
    });
    assert_eq!((result, seen), (Ok(()), vec![7, 8]), "{pair}");
    for shard in engine.shards() {
        let newest = |key| move |shard: &dyn AnyShard| shard.newest(COPIED.row(), &Key::of_u64(key));
        let rows = [7, 8].map(|key| engine.on_shard(shard, newest(key)));
        assert_eq!(rows, [Some(vec![7]), Some(vec![8])], "{pair}, shard {}", shard.0);
    }
}

#[test]
fn a_transaction_that_meets_its_own_insert_on_another_copy_commits_at_the_first_attempt() {
    let serializable = LEGAL_PAIRS.iter().filter(|pair| pair.serializable() && pair.interactive().is_ok());
    serializable.for_each(|&pair| commits_at_once(pair));
}
