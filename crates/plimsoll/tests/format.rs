//! A data directory of every version of the format stays in the tree, and is opened for ever.
//!
//! `format-1` was written by [`a_directory_of_this_format_is_written`]: two shards with an image
//! each, and a log behind it. Segments are cut off behind what is in them.

use std::path::{Path, PathBuf};
use std::{env, fs};

use plimsoll::{Database, Error, Freshness, IndexKind, Key, Options, Partitioning, Schema, TableSpec};
use plimsoll_engine::{Engine, EngineOptions, LogSettings};
use plimsoll_types::TableId;

/// Rows that were loaded, of which the first [`CHANGED`] were changed.
const ROWS: u64 = 200;
const CHANGED: u64 = 40;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format-1")
}

fn loaded() -> TableSpec {
    TableSpec::new("loaded", IndexKind::Ordered, Partitioning::Hash { bytes: 8 })
}

/// A table that is made while the database runs.
fn made() -> TableSpec {
    TableSpec {
        groups: vec!["one".into(), "two".into()],
        ..TableSpec::new("made", IndexKind::Hash, Partitioning::Hash { bytes: 8 })
    }
}

fn open(path: &Path) -> Database {
    let mut schema = Schema::new();
    schema.add(loaded()).expect("it is the first");
    let options = Options { shards: 2, pin: false, data_dir: Some(path.to_owned()), ..Options::default() };
    Database::open(schema, options).expect("it opens")
}

fn value(row: u64) -> Vec<u8> {
    row.to_be_bytes().repeat(8)
}

fn check(db: &Database) {
    let (loaded, made) = (db.table("loaded").expect("it was loaded"), db.table("made").expect("it was made"));
    let snapshot = db.snapshot(Freshness::Newest).expect("it serves");
    let rows: Vec<_> =
        snapshot.scan(loaded, ..).expect("it serves").map(|row| row.expect("it is there")).collect();
    let expected = (0..ROWS).filter(|row| row % 10 != 9 || *row >= CHANGED).map(|row| {
        let now = if row < CHANGED { value(row + 1000) } else { value(row) };
        (Key::of_u64(row), now)
    });
    assert!(rows.into_iter().eq(expected));
    for row in 0..CHANGED {
        let two = snapshot.get(made.group(1), &Key::of_u64(row)).expect("it serves");
        assert_eq!(two.as_deref(), (row % 2 == 0).then_some(&b"two"[..]), "row {row}");
    }
}

#[test]
fn a_directory_of_the_first_format_is_opened_and_goes_on() {
    let path = env::temp_dir().join(format!("plimsoll-format-1-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    copy(&fixture(), &path);
    let db = open(&path);
    check(&db);
    let loaded = db.table("loaded").expect("it is there");
    db.transact(|txn| txn.put(loaded, &Key::of_u64(ROWS), b"new")).expect("it goes on");
    db.close();
    let db = open(&path);
    let loaded = db.table("loaded").expect("it is there");
    let snapshot = db.snapshot(Freshness::Newest).expect("it serves");
    assert_eq!(snapshot.get(loaded, &Key::of_u64(ROWS)).expect("it serves").as_deref(), Some(&b"new"[..]));
    drop(snapshot);
    db.close();
    fs::remove_dir_all(&path).expect("it is here");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("there is room");
    for entry in fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it can be read");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("it is known").is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("there is room")),
        }
    }
}

#[test]
#[ignore = "writes `tests/format-N` of the present format: run it when the format has changed"]
fn a_directory_of_this_format_is_written() {
    let path = fixture();
    fs::remove_dir_all(&path).unwrap_or_default();
    let log = LogSettings { segment_bytes: 16 << 10, image_bytes: 4 << 10 };
    let options = EngineOptions { shards: 2, pin: None, log, ..EngineOptions::default() };
    let engine = Engine::open_in(&path, Default::default(), &[loaded()], options).expect("it opens");
    for first in (0..ROWS).step_by(10) {
        let rows = (first..first + 10).map(|row| (Key::of_u64(row), vec![value(row)]));
        engine.load(TableId(0), rows.collect());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(engine);
    let db = open(&path);
    let made = db.create_table(made()).expect("it is new");
    let loaded = db.table("loaded").expect("it is there");
    for row in 0..CHANGED {
        let changed = db.transact(|txn| -> Result<(), Error> {
            let key = Key::of_u64(row);
            txn.insert_row(made, &key, &[b"one", b"two"])?;
            match row % 10 {
                9 => txn.delete(loaded, &key)?,
                _ => txn.put(loaded, &key, &value(row + 1000))?,
            }
            Ok(())
        });
        changed.expect("it commits");
        if row % 2 == 1 {
            db.transact(|txn| txn.delete(made, &Key::of_u64(row))).expect("it commits");
        }
    }
    check(&db);
    db.close();
    for shard in 0..2 {
        for file in fs::read_dir(path.join(format!("shard-{shard:05}"))).expect("it is there") {
            let file = file.expect("it can be read").path();
            let bytes = fs::read(&file).expect("it can be read");
            let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            match file.file_name().expect("it has one").to_string_lossy() {
                name if name.starts_with("log-") => {
                    fs::write(&file, &bytes[..used.next_multiple_of(512)]).expect("it can be written");
                }
                name if name.starts_with("image-") => {}
                _ => fs::remove_file(&file).expect("it is of no use"),
            }
        }
    }
}
