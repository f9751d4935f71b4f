//! How many messages a transaction takes, and how large its future is.
//!
//! The coordinator is on shard 0, the other data on shard 1. What DST costs in messages is nothing:
//! every count under `dst` equals that of the plain protocol, but for read-only transactions, which
//! save a round.

use plimsoll_engine::{Engine, EngineOptions};
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::pairs::Pair;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_types::{Abort, IndexKind, Key, Partitioning, ShardId, Slot, TableId, TableSpec};

const T: TableId = TableId(0);

/// Touches one record per shard: key 0 lives on shard 0, key 1 on shard 1.
#[derive(Clone, Copy)]
struct Touch {
    here: Option<bool>,
    there: Option<bool>,
}

impl Touch {
    /// The records that are touched, and whether they are written.
    fn records(&self) -> impl Iterator<Item = (u64, bool)> + use<> {
        [(1, self.there), (0, self.here)].into_iter().filter_map(|(key, write)| Some((key, write?)))
    }
}

impl Procedure for Touch {
    fn read_only(&self) -> bool {
        self.records().all(|(_, write)| !write)
    }

    fn stage(&self, stage: usize) -> usize {
        if stage == 0 { self.records().count() } else { 0 }
    }

    fn home(&self, piece: Piece) -> Slot {
        let (key, _) = self.records().nth(piece.number).expect("a piece is a record");
        Slot(key as u16)
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let (key, write) = self.records().nth(piece.number).expect("a piece is a record");
        match write {
            true => reads.update(T.row(), Key::of_u64(key)),
            false => reads.get(T.row(), Key::of_u64(key)),
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (key, write) = self.records().nth(piece.number).expect("a piece is a record");
        let old = access.get(T.row(), &Key::of_u64(key))?.expect("both records are loaded")[0];
        if write {
            access.put(T.row(), &Key::of_u64(key), &[old.wrapping_add(1)])?;
        }
        Ok(())
    }
}

plimsoll_txn::executable!(Touch);

/// Messages per transaction between the two shards, without those of an oracle.
fn messages(pair: &str, here: Option<bool>, there: Option<bool>) -> f64 {
    const RUNS: u64 = 50;
    let table = TableSpec::new("t", IndexKind::Hash, Partitioning::Modulo { bytes: 8 });
    let options = EngineOptions { shards: 2, pin: None, ..EngineOptions::default() };
    let pair = Pair::parse(pair).expect("there is such a pair");
    let engine = Engine::start(pair, vec![table], options).expect("threads can be started");
    for shard in engine.shards() {
        engine.on_shard(shard, |own| own.load_row(T, &Key::of_u64(u64::from(own.shard().0)), &[&[0]]));
    }
    let count = || -> u64 {
        let of = |shard| engine.on_shard(shard, |own| own.messages() - own.status().counters.oracle_messages);
        engine.shards().map(of).sum()
    };
    let before = count();
    engine.run_on(ShardId(0), move |own| async move {
        let mut coordinator = own.coordinator();
        for _ in 0..RUNS {
            let mut touch = Touch { here, there };
            let result = coordinator.execute(Attempt::default(), &mut touch).await;
            result.expect("there is nobody to conflict with");
            // One-way messages of this transaction are behind it before the next one asks again.
            own.sleep(100_000).await;
        }
    });
    (count() - before) as f64 / RUNS as f64
}

const READ: Option<bool> = Some(false);
const WRITE: Option<bool> = Some(true);

#[test]
fn a_transaction_at_home_sends_nothing() {
    assert_eq!(messages("occ/dst", WRITE, None), 0.0);
    assert_eq!(messages("two_pl/dst", WRITE, None), 0.0);
    assert_eq!(messages("client_2pc/dst", WRITE, None), 0.0);
    assert_eq!(messages("occ/dst", READ, None), 0.0);
}

#[test]
fn occ_reads_locks_and_installs_elsewhere_and_dst_adds_nothing() {
    // READ and its reply, LOCK and its reply, INSTALL.
    assert_eq!(messages("occ/none", WRITE, WRITE), 5.0);
    assert_eq!(messages("occ/dst", WRITE, WRITE), 5.0);
    assert_eq!(messages("occ/rc", WRITE, WRITE), 5.0);
    // READ and VALIDATE with their replies.
    assert_eq!(messages("occ/none", WRITE, READ), 4.0);
    assert_eq!(messages("occ/dst", WRITE, READ), 4.0);
    // VTS reports when the install is acknowledged.
    assert_eq!(messages("occ/vts", WRITE, WRITE), 6.0);
}

#[test]
fn two_pl_locks_and_finishes_elsewhere_and_dst_adds_nothing() {
    // ACQUIRE and its reply, FINISH.
    assert_eq!(messages("two_pl/none", WRITE, WRITE), 3.0);
    assert_eq!(messages("two_pl/dst", WRITE, WRITE), 3.0);
    assert_eq!(messages("two_pl/none", WRITE, READ), 3.0);
    assert_eq!(messages("two_pl/dst", WRITE, READ), 3.0);
}

#[test]
fn client_2pc_prepares_and_decides_elsewhere_and_dst_adds_nothing() {
    // READ and its reply, PREPARE and the vote; the client knows. DECISION.
    assert_eq!(messages("client_2pc/none", WRITE, WRITE), 5.0);
    assert_eq!(messages("client_2pc/dst", WRITE, WRITE), 5.0);
    // What is only read is prepared like what is written.
    assert_eq!(messages("client_2pc/none", WRITE, READ), 5.0);
    assert_eq!(messages("client_2pc/dst", WRITE, READ), 5.0);
    // Who is the only one decides.
    assert_eq!(messages("client_2pc/none", None, WRITE), 4.0);
    assert_eq!(messages("client_2pc/dst", None, WRITE), 4.0);
}

#[test]
fn a_read_only_transaction_takes_one_round_where_the_plain_protocol_takes_two() {
    assert_eq!(messages("occ/dst", READ, READ), 2.0);
    assert_eq!(messages("two_pl/dst", READ, READ), 2.0);
    assert_eq!(messages("occ/rc", READ, READ), 2.0);
    assert_eq!(messages("client_2pc/dst", READ, READ), 2.0);
    assert_eq!(messages("occ/none", READ, READ), 4.0);
    // Nothing is locked, so there is nothing to decide.
    assert_eq!(messages("client_2pc/none", READ, READ), 4.0);
    // Plain 2PL releases its shared locks one-way.
    assert_eq!(messages("two_pl/none", READ, READ), 3.0);
}

#[test]
fn the_future_of_a_transaction_stays_below_two_kilobytes() {
    let table = TableSpec::new("t", IndexKind::Hash, Partitioning::Modulo { bytes: 8 });
    let options = EngineOptions { shards: 2, pin: None, ..EngineOptions::default() };
    let engine = Engine::start(Pair::default(), vec![table], options).expect("threads can be started");
    let bytes = engine.run_on(ShardId(0), |own| async move {
        let mut coordinator = own.coordinator();
        let mut touch = Touch { here: None, there: READ };
        assert!(coordinator.first_step(Attempt::default(), &mut touch).is_none(), "it reads elsewhere");
        size_of_val(&*coordinator.other_steps(Attempt::default(), &mut touch))
    });
    assert!(bytes < 2048, "{bytes} bytes");
}
