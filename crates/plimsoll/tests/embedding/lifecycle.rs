//! What a database refuses and what just fits, from its opening to its closing.

use std::thread;
use std::time::Duration;

use plimsoll::{
    Database, Error, Freshness, IndexKind, KEY_MAX, Key, KeyRange, OpenError, Options, Partitioning, Row,
    Schema, SchemaError, TableSpec, Txn, VALUE_MAX,
};

use crate::{number, open, put};

#[test]
fn what_makes_no_sense_is_an_error_and_not_a_panic() {
    let (db, table) = open(IndexKind::Hash, 2);
    let key = Key::of_u64(1);
    let (foreign, group) = (open(IndexKind::Hash, 1).1, table.group(1));
    let no_group = Error::NoSuchGroup { table: "numbers".into(), group: 1 };
    let not_ordered = Error::NotOrdered { table: "numbers".into() };
    let (long_key, long_value) = (Key::new(&[7; KEY_MAX + 1]), vec![0; VALUE_MAX + 1]);
    let (key_too_long, value_too_long) =
        (Error::KeyTooLong { bytes: KEY_MAX + 1 }, Error::ValueTooLong { bytes: VALUE_MAX + 1 });
    type Operation<'a> = &'a dyn Fn(&mut Txn<'_>) -> Result<(), Error>;
    let refused: [(&Error, Operation<'_>); 18] = [
        (&Error::NoSuchTable, &|txn| txn.get(foreign, &key).map(drop)),
        (&Error::NoSuchTable, &|txn| txn.get_many(foreign, &[]).map(drop)),
        (&Error::NoSuchTable, &|txn| txn.put(foreign, &key, b"")),
        (&Error::NoSuchTable, &|txn| txn.insert(foreign.group(0), &key, b"")),
        (&Error::NoSuchTable, &|txn| txn.insert_row(foreign, &key, &[])),
        (&Error::NoSuchTable, &|txn| txn.delete(foreign, &key)),
        (&Error::NoSuchTable, &|txn| txn.scan(foreign, ..).map(drop)),
        (&no_group, &|txn| txn.get(group, &key).map(drop)),
        (&no_group, &|txn| txn.insert(group, &key, b"")),
        (&not_ordered, &|txn| txn.scan(table, ..).map(drop)),
        (&key_too_long, &|txn| txn.get(table, &long_key).map(drop)),
        (&key_too_long, &|txn| txn.get_many(table, &[key.clone(), long_key.clone()]).map(drop)),
        (&key_too_long, &|txn| txn.put(table, &long_key, b"")),
        (&key_too_long, &|txn| txn.insert(table, &long_key, b"")),
        (&key_too_long, &|txn| txn.insert_row(table, &long_key, &[b""])),
        (&key_too_long, &|txn| txn.delete(table, &long_key)),
        (&value_too_long, &|txn| txn.put(table, &key, &long_value)),
        (&value_too_long, &|txn| txn.insert(table, &key, &long_value)),
    ];
    for (error, operation) in refused {
        assert_eq!(db.transact(|txn| operation(txn)), Err(error.clone()));
        let dropped: Result<(), Error> = db.transact(|txn| {
            txn.put(table, &key, b"a part")?;
            let _ = operation(txn);
            assert_eq!(txn.get(table, &key), Err(error.clone()), "the transaction is over");
            Ok(())
        });
        assert_eq!(dropped, Err(error.clone()));
    }
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    assert_eq!(snapshot.get(table, &key), Ok(None), "nothing of it was committed");
    assert_eq!(snapshot.get(foreign, &key), Err(Error::NoSuchTable));
    assert_eq!(snapshot.get_many(foreign, &[]), Err(Error::NoSuchTable));
    assert_eq!(snapshot.scan(foreign, ..).err(), Some(Error::NoSuchTable));
    assert_eq!(snapshot.get_many(group, &[]), Err(no_group));
    assert_eq!(snapshot.get_many(table, &[key, long_key]), Err(key_too_long));
    assert_eq!(snapshot.scan(table, ..).err(), Some(not_ordered));
}

#[test]
fn a_table_is_known_to_its_own_database_only() {
    let mut schema = Schema::new();
    let declared = schema.table("declared", IndexKind::Hash).unwrap();
    let mut more = schema.clone();
    let further = more.table("further", IndexKind::Hash).unwrap();
    let open = |schema| Database::open(schema, Options { shards: 1, ..Options::default() }).unwrap();
    let (one, two) = (open(schema), open(more));
    let made =
        one.create_table(TableSpec::new("made", IndexKind::Hash, Partitioning::Hash { bytes: 0 })).unwrap();
    assert_eq!([one.table("declared"), one.table("made")], [Some(declared), Some(made)]);
    let known = |db: &Database, table| {
        let read: Result<_, Error> = db.transact(|txn| txn.get(table, &Key::of_u64(1)));
        read != Err(Error::NoSuchTable)
    };
    // Both were made from one schema, and have its table; the second tables are two tables.
    assert_eq!([declared, made, further].map(|table| known(&one, table)), [true, true, false]);
    assert_eq!([declared, made, further].map(|table| known(&two, table)), [true, false, true]);
}

#[test]
fn the_longest_key_and_the_longest_value_fit() {
    let (db, table) = open(IndexKind::Ordered, 2);
    let (key, value) = (Key::new(&[0xff; KEY_MAX]), vec![7; VALUE_MAX]);
    let done: Result<(), Error> = db.transact(|txn| txn.put(table, &key, &value));
    done.unwrap();
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    assert!(snapshot.get(table, &key).unwrap().as_ref() == Some(&value));
    let rows: Vec<Row> = snapshot.scan(table, KeyRange::prefix(&key)).unwrap().map(Result::unwrap).collect();
    assert!(rows == [(key, value)]);
}

#[test]
fn a_database_that_cannot_be_opened_says_why() {
    let mut schema = Schema::new();
    schema.table("a", IndexKind::Hash).unwrap();
    assert_eq!(schema.table("a", IndexKind::Ordered), Err(SchemaError::DuplicateTable("a".into())));
    assert_eq!(schema.table("", IndexKind::Hash), Err(SchemaError::NoName));
    let mut placed = |partitioning| schema.add(TableSpec::new("b", IndexKind::Hash, partitioning));
    let wrong = |bytes| Err(SchemaError::PartitionKey { table: "b".into(), bytes });
    assert_eq!(placed(Partitioning::Modulo { bytes: 0 }), wrong(0));
    assert_eq!(placed(Partitioning::Range { bytes: 9, span: 1 }), wrong(9));
    assert_eq!(placed(Partitioning::Range { bytes: 8, span: 0 }), Err(SchemaError::EmptySpan("b".into())));
    let spread = |within, parts| Partitioning::Spread { bytes: 4, within, parts };
    assert_eq!(placed(spread(5, 7)), wrong(9));
    assert_eq!(placed(Partitioning::Spread { bytes: 0, within: 4, parts: 7 }), wrong(0));
    assert_eq!(placed(spread(4, 0)), Err(SchemaError::EmptySpan("b".into())));
    let immutable = TableSpec::new("b", IndexKind::Hash, Partitioning::Everywhere).immutable();
    assert_eq!(schema.add(immutable), Err(SchemaError::Immutable("b".into())));
    let mut grouped = |groups: &[&str]| {
        let mut spec = TableSpec::new("b", IndexKind::Hash, Partitioning::Hash { bytes: 0 });
        spec.groups = groups.iter().map(|&group| group.to_owned()).collect();
        schema.add(spec)
    };
    assert_eq!(grouped(&[]), Err(SchemaError::GroupCount { table: "b".into(), groups: 0 }));
    assert_eq!(grouped(&["x"; 256]), Err(SchemaError::GroupCount { table: "b".into(), groups: 256 }));
    let twice = Err(SchemaError::GroupName { table: "b".into(), group: "x".into() });
    assert_eq!(grouped(&["x", "x"]), twice);
    let open = |options| Database::open(schema.clone(), options);
    let none = open(Options { shards: 0, ..Options::default() });
    assert!(matches!(none, Err(OpenError::NoShards)));
    let many = open(Options { shards: 1025, ..Options::default() });
    assert!(matches!(many, Err(OpenError::TooManyShards { shards: 1025 })));
    let asked = Duration::from_secs(100 * 365 * 24 * 3600);
    let forever = open(Options { max_staleness: asked, ..Options::default() });
    assert!(matches!(forever, Err(OpenError::MaxStaleness { .. })));
    let Err(error) = forever else { panic!("opened") };
    assert_eq!(error.to_string(), "old versions can be kept for 86400s, not for 3153600000s");
}

#[test]
fn everything_ends_with_a_clear_error_once_the_database_is_closed() {
    let (db, table) = open(IndexKind::Ordered, 2);
    (0..1000).for_each(|key| put(&db, table, key, key));
    let (other, key) = (db.clone(), Key::of_u64(1));
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let mut rows = snapshot.scan(table, ..).unwrap();
    assert!(rows.next().is_some());
    let interrupted: Result<(), Error> = db.transact(|txn| {
        txn.get(table, &key)?;
        txn.put(table, &key, b"")?;
        other.close();
        assert_eq!(txn.get(table, &key), Err(Error::Closed));
        Ok(())
    });
    assert_eq!(interrupted, Err(Error::Closed), "what was not committed is not reported as committed");
    assert_eq!(snapshot.get(table, &key), Err(Error::Closed));
    let last = rows.by_ref().find(Result::is_err);
    assert_eq!((last, rows.next()), (Some(Err(Error::Closed)), None));
    assert_eq!(db.snapshot(Freshness::Newest).err(), Some(Error::Closed));
    assert_eq!(db.memory(), Err(Error::Closed));
    assert_eq!(db.transact(|txn| txn.put(table, &key, b"")), Err(Error::Closed));
    db.close();
}

#[test]
fn closing_waits_for_operations_that_have_begun_and_refuses_the_others() {
    for _ in 0..20 {
        let (db, table) = open(IndexKind::Hash, 2);
        thread::scope(|scope| {
            for client in 0..4 {
                let db = &db;
                scope.spawn(move || {
                    loop {
                        let done: Result<(), Error> = db.transact(|txn| {
                            let sum = number(txn.get(table, &Key::of_u64(1))?) + 1;
                            txn.put(table, &Key::of_u64(client), &sum.to_be_bytes())
                        });
                        match done.and_then(|()| db.snapshot(Freshness::Newest)) {
                            Ok(snapshot) => drop(snapshot),
                            Err(error) => return assert_eq!(error, Error::Closed),
                        }
                    }
                });
            }
            thread::sleep(Duration::from_millis(2));
            db.close();
        });
    }
}
