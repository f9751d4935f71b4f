//! Tables that clients make while a cluster runs.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use plimsoll::{
    Database, Error, IndexKind, Key, Partitioning, SchemaError, ShardId, Slot, TableId, TableSpec,
};

use crate::scene::{Scene, fill, total};
use crate::waiting::until;

fn spec(name: &str) -> TableSpec {
    TableSpec::new(name, IndexKind::Ordered, Partitioning::Hash { bytes: 0 })
}

/// Writes rows `0..count` whose values are a text.
fn write(db: &Database, table: TableId, count: u64, text: &str) {
    let put = |txn: &mut plimsoll::Txn<'_>| -> Result<(), Error> {
        (0..count).try_for_each(|key| txn.put(table, &Key::of_u64(key), text.as_bytes()))
    };
    db.transact(put).unwrap();
}

/// The different values that a table has, and how many rows.
fn read(db: &Database, table: TableId) -> (usize, BTreeSet<String>) {
    let rows = db.transact(|txn| txn.scan(table, ..)).unwrap();
    let text = |value: &Vec<u8>| String::from_utf8(value.clone()).unwrap();
    (rows.len(), rows.iter().map(|(_, value)| text(value)).collect())
}

fn only(count: usize, text: &str) -> (usize, BTreeSet<String>) {
    (count, [text.to_owned()].into())
}

fn is_duplicate(made: &Result<TableId, Error>) -> bool {
    matches!(made, Err(Error::Schema(SchemaError::DuplicateTable(_))))
}

#[test]
fn a_table_that_one_client_makes_is_found_and_used_by_others() {
    for keys in [
        "",
        "protocol = \"two_pl\"\n",
        "protocol = \"client_2pc\"\n",
        "scheme = \"gts\"\n",
        "scheme = \"vts\"\n",
        "scheme = \"none\"\n",
    ] {
        let mut scene = Scene::under(keys, &[2, 1]);
        (1..=scene.nodes.len()).take(2 + usize::from(keys.contains("ts\""))).for_each(|id| scene.start(id));
        let (one, other) = (scene.connect(), scene.connect());
        fill(&one, 10);
        assert_eq!(other.table("jobs"), None, "{keys}");
        let jobs = one.create_table(spec("jobs")).unwrap();
        write(&one, jobs, 20, "by one");
        assert_eq!(other.table("jobs"), Some(jobs), "{keys}");
        assert_eq!(read(&other, jobs), only(20, "by one"), "{keys}");
        // With two column groups and a copy on every shard; the other client makes it.
        let rates = TableSpec::new("rates", IndexKind::Hash, Partitioning::Everywhere);
        let rates = other.create_table(rates.with_groups(&["price", "unit"])).unwrap();
        assert_ne!(rates, jobs);
        let (key, unit) = (Key::of_u64(1), rates.group(1));
        other.transact(|txn| txn.insert_row(rates, &key, &[b"2", b"kg"])).unwrap();
        write(&other, jobs, 20, "by the other");
        assert_eq!(one.table("rates"), Some(rates), "{keys}");
        assert_eq!(one.transact(|txn| txn.get(unit, &key)).unwrap(), Some(b"kg".to_vec()), "{keys}");
        drop((one, other));
        let later = scene.connect();
        assert_eq!(later.table("jobs").zip(later.table("rates")), Some((jobs, rates)), "{keys}");
        assert_eq!(read(&later, jobs), only(20, "by the other"), "{keys}");
        assert_eq!(total(&later, 10), 10_000, "{keys}");
        let memory: Vec<_> = later.memory().unwrap().iter().map(|table| table.name.to_string()).collect();
        assert_eq!(memory, ["account", "entry", "jobs", "rates"], "{keys}");
        let tables = scene.get(1, "/metrics").1;
        assert!(tables.contains("table=\"jobs\""), "{keys}: {tables}");
    }
}

#[test]
fn what_cannot_be_made_on_a_cluster_is_refused_and_changes_nothing() {
    let mut scene = Scene::new(&[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    let db = scene.connect();
    let schema = |made: Result<TableId, Error>| match made {
        Err(Error::Schema(error)) => error,
        other => panic!("{other:?}"),
    };
    let full = Err(Error::OnlyEmptyTables { table: "jobs".into() });
    let row = || [(Key::of_u64(1), vec![b"1".to_vec()])];
    assert_eq!(db.create_loaded(spec("jobs"), row()), full);
    assert_eq!(db.create_table(spec("jobs").immutable()), full);
    assert_eq!(db.create_loaded(spec("jobs").immutable(), []), full);
    assert_eq!(schema(db.create_table(spec(""))), SchemaError::NoName);
    assert_eq!(schema(db.create_table(spec("my.jobs"))), SchemaError::KeptName("my.jobs".into()));
    assert_eq!(
        schema(db.create_table(spec("account"))),
        SchemaError::DuplicateTable("account".into()),
        "one of the file's"
    );
    let long = "a".repeat(1 << 20);
    assert!(matches!(schema(db.create_table(spec(&long))), SchemaError::TooLong { .. }));
    assert_eq!([db.table("jobs"), db.table("plimsoll.sql"), db.table("my.jobs")], [None; 3]);
    let jobs = db.create_loaded(spec("jobs"), []).unwrap();
    write(&db, jobs, 5, "here");
    assert!(is_duplicate(&db.create_table(spec("jobs"))));
    assert_eq!(read(&db, jobs), only(5, "here"));
    db.close();
    assert_eq!(db.create_table(spec("late")), Err(Error::Closed));
}

#[test]
fn of_clients_that_make_tables_at_the_same_time_one_makes_each() {
    const ROUNDS: usize = 12;
    let mut scene = Scene::new(&[1, 2]);
    (1..=2).for_each(|id| scene.start(id));
    let clients: Vec<Database> = (0..3).map(|_| scene.connect()).collect();
    let made: Vec<Vec<(bool, TableId)>> = thread::scope(|scope| {
        let run = |(number, db): (usize, &Database)| {
            let db = db.clone();
            scope.spawn(move || {
                let round = |round| {
                    let both = db.create_table(spec(&format!("both {round}")));
                    assert!(both.is_ok() || is_duplicate(&both), "{both:?}");
                    let own = db.create_table(spec(&format!("of {number} {round}"))).unwrap();
                    write(&db, own, 3, &format!("of {number} {round}"));
                    (both.is_ok(), own)
                };
                (0..ROUNDS).map(round).collect()
            })
        };
        let running: Vec<_> = clients.iter().enumerate().map(run).collect();
        running.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let mut ids = Vec::new();
    for round in 0..ROUNDS {
        let makers = made.iter().filter(|rounds| rounds[round].0).count();
        assert_eq!(makers, 1, "round {round}");
        let both: Vec<_> = clients.iter().map(|db| db.table(&format!("both {round}")).unwrap()).collect();
        assert!(both.iter().all(|&id| id == both[0]), "round {round}: {both:?}");
        ids.push(both[0]);
        for (number, rounds) in made.iter().enumerate() {
            let (name, id) = (format!("of {number} {round}"), rounds[round].1);
            assert!(clients.iter().all(|db| db.table(&name) == Some(id)), "{name}");
            assert_eq!(read(&clients[(number + 1) % 3], id), only(3, &name));
            ids.push(id);
        }
    }
    assert!((1..ids.len()).all(|at| !ids[..at].contains(&ids[at])), "all are different: {ids:?}");
}

#[test]
fn a_table_is_completed_when_a_node_is_back_that_was_gone_while_it_was_made() {
    let mut scene = Scene::under("durability = \"sync\"\n", &[1, 1, 1]);
    (1..=3).for_each(|id| scene.start(id));
    let db = scene.connect();
    let first = db.create_table(spec("first")).unwrap();
    let mut back = |id: usize, while_gone: &dyn Fn()| {
        scene.kill(id);
        while_gone();
        scene.start(id);
        until("it has its place again", || scene.is_ready(id).then_some(()));
    };
    let unreachable = |made: Result<TableId, Error>| assert!(matches!(made, Err(Error::Unreachable { .. })));
    // The third has it in no part; of the other two only the first may have it.
    back(3, &|| unreachable(db.create_table(spec("second"))));
    let second = db.create_table(spec("second")).unwrap();
    assert!(is_duplicate(&db.create_table(spec("second"))), "it is made once");
    // The shard that orders the tables.
    back(1, &|| unreachable(db.create_table(spec("third"))));
    let third = db.create_table(spec("third")).unwrap();
    // The client that has begun is gone, too.
    back(2, &|| {
        unreachable(db.create_table(spec("fourth")));
        assert_eq!(db.table("fourth"), None, "nobody uses a table in part");
    });
    drop(db);
    let db = scene.connect();
    assert!(is_duplicate(&db.create_table(spec("fourth"))), "another client had begun");
    let fourth = db.table("fourth").expect("it is complete");
    for (table, name) in [(first, "first"), (second, "second"), (third, "third"), (fourth, "fourth")] {
        assert_eq!(db.table(name), Some(table));
        write(&db, table, 30, name);
        assert_eq!(read(&db, table), only(30, name));
    }
}

#[test]
fn tables_outlive_nodes_that_are_killed_and_so_do_their_rows() {
    let mut scene = Scene::under("durability = \"sync\"\n", &[1, 2]);
    (1..=2).for_each(|id| scene.start(id));
    let db = scene.connect();
    let jobs = db.create_table(spec("jobs")).unwrap();
    write(&db, jobs, 50, "kept");
    // Rows of a table that the file does not name move like others.
    let there: Vec<Slot> = (0..4096).map(Slot).collect();
    db.move_slots(&there, ShardId(2)).unwrap();
    for _ in 0..2 {
        (1..=2).for_each(|id| scene.kill(id));
        (1..=2).for_each(|id| scene.start(id));
        until("all are there", || (scene.status().1).then_some(()));
        let rows = || db.transact(|txn| txn.scan(jobs, ..)).ok();
        until("the client is connected again", rows);
        assert_eq!(read(&db, jobs), only(50, "kept"), "the client lives on");
        let later = scene.connect();
        assert_eq!(later.table("jobs"), Some(jobs));
        assert_eq!(read(&later, jobs), only(50, "kept"));
        let more = format!("more of {}", later.memory().unwrap().len());
        let more = (later.create_table(spec(&more)).unwrap(), more);
        write(&later, more.0, 3, &more.1);
        assert_eq!(db.table(&more.1), Some(more.0));
    }
}

#[test]
fn a_database_that_goes_back_to_a_timestamp_keeps_its_tables() {
    let mut scene = Scene::under("durability = \"async\"\n", &[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    let db = scene.connect();
    let jobs = db.create_table(spec("jobs")).unwrap();
    write(&db, jobs, 50, "old");
    thread::sleep(Duration::from_secs(1));
    let late = db.create_table(spec("late")).unwrap();
    write(&db, late, 10, "perhaps lost");
    scene.kill(1);
    scene.start(1);
    drop(db);
    let again = || {
        let db = scene.connect_within(Duration::from_secs(1)).ok()?;
        let late = db.table("late")?;
        db.transact(|txn| txn.scan(late, ..)).ok().map(|rows| (db, rows.len()))
    };
    let (db, rows) = until("a new client is served", again);
    assert!(rows == 0 || rows == 10, "all of a transaction or nothing: {rows}");
    assert_eq!((db.table("jobs"), db.table("late")), (Some(jobs), Some(late)));
    assert_eq!(read(&db, jobs), only(50, "old"));
    write(&db, late, 4, "new");
}
