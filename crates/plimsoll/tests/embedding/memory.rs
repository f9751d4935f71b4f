//! A database whose memory has a limit.

use plimsoll::{Pair, Protocol};

use super::*;

const LIMIT: u64 = 4 << 20;

fn limited(protocol: Protocol) -> (Database, TableId) {
    let pair = Pair { protocol, ..Pair::default() };
    open_with(IndexKind::Ordered, Options { shards: 2, memory: Some(LIMIT), pair, ..Options::default() })
}

fn write(db: &Database, table: TableId, keys: std::ops::Range<u64>) -> Result<(), Error> {
    db.transact(|txn| keys.clone().try_for_each(|key| txn.put(table, &Key::of_u64(key), &[7; 10_000])))
}

#[test]
fn a_full_database_refuses_writes_reads_and_deletes_and_takes_writes_again() {
    for protocol in [Protocol::Occ, Protocol::TwoPl, Protocol::Client2pc] {
        let (db, table) = limited(protocol);
        // Some transactions write on one shard, some on both.
        let mut rows = 0;
        let refused = loop {
            match write(&db, table, rows..rows + 1 + rows % 3) {
                Ok(()) => rows += 1 + rows % 3,
                Err(error) => break error,
            }
        };
        assert_eq!(refused, Error::Full, "{protocol}");
        assert!((LIMIT / 20_000..LIMIT / 10_000).contains(&rows), "{protocol}: {rows} rows");
        assert!(db.stats().aborts(plimsoll::Abort::Full) > 0);

        let snapshot = db.snapshot(Freshness::Newest).unwrap();
        let there = snapshot.scan(table, ..).unwrap().count() as u64;
        drop(snapshot);
        assert_eq!(there, rows, "{protocol}: what was committed is there, and nothing else");
        let half: Result<(), Error> =
            db.transact(|txn| (0..rows / 2).try_for_each(|key| txn.delete(table, &Key::of_u64(key))));
        assert_eq!(half, Ok(()), "{protocol}");
        for key in 0..rows / 4 {
            assert_eq!(write(&db, table, key..key + 1), Ok(()), "{protocol}: row {key} of {rows}");
        }
    }
}

#[test]
fn a_transaction_that_is_larger_than_the_limit_is_told_so() {
    let (db, table) = limited(Protocol::Occ);
    let larger = write(&db, table, 0..500);
    assert!(matches!(larger, Err(Error::LargerThanMemory { limit: LIMIT, .. })), "{larger:?}");
    assert!(larger.unwrap_err().to_string().contains("write less, or raise `memory`"));
    assert_eq!(write(&db, table, 0..1), Ok(()));
}

#[test]
fn a_table_that_does_not_fit_is_not_made() {
    let (db, _) = limited(Protocol::Occ);
    let spec =
        || plimsoll::TableSpec::new("large", IndexKind::Hash, plimsoll::Partitioning::Hash { bytes: 8 });
    let rows = |count: u64| (0..count).map(|key| (Key::of_u64(key), vec![vec![7; 10_000]]));
    assert_eq!(db.create_loaded(spec(), rows(500)), Err(Error::Full));
    assert!(db.table("large").is_none());
    assert!(db.create_loaded(spec(), rows(100)).is_ok());
}
