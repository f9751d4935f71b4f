//! A database with a data directory outlives its process.

#[allow(dead_code)]
#[path = "../examples/ledger.rs"]
mod ledger;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use plimsoll::{
    Database, Durability, Freshness, IndexKind, Key, OpenError, Options, Pair, Partitioning, SLOTS, Schema,
    Slot, TableSpec, TokenError,
};
use plimsoll_engine::{Engine, EngineOptions, LogSettings};
use plimsoll_types::{ShardId, TableId};

/// Where the ledger is, in the process that is killed.
const DIRECTORY: &str = "PLIMSOLL_TEST_LEDGER";

/// Set in that process if it does not wait for the disk.
const DURABILITY: &str = "PLIMSOLL_TEST_DURABILITY";

/// Where the rows are, in the process that loads them until it is killed.
const ROWS: &str = "PLIMSOLL_TEST_ROWS";

fn directory(name: &str) -> PathBuf {
    let path = env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

/// The process that is killed. As a test of its own it does nothing.
#[test]
fn a_ledger_that_is_killed() {
    let Some(path) = env::var_os(DIRECTORY) else { return };
    let waits = env::var_os(DURABILITY).is_none();
    let durability = if waits { Durability::Sync } else { Durability::Async };
    let db = ledger::open(path.as_ref(), 3, durability).expect("the directory has a ledger");
    ledger::transfer(&db, |count| writeln!(std::io::stdout(), "told {count}").is_ok()).expect("it goes on");
}

/// Starts a ledger in a process of its own, which waits for the disk or not. Shows the numbers of
/// transfers that it tells of to `goes_on`, and kills it when that returns false.
fn kill_a_ledger(path: &Path, waits: bool, mut goes_on: impl FnMut(i64) -> bool) {
    let mut ledger = Command::new(env::current_exe().expect("this program has a file"));
    ledger.args(["--exact", "a_ledger_that_is_killed", "--nocapture"]).env(DIRECTORY, path);
    if !waits {
        ledger.env(DURABILITY, "async");
    }
    let mut child = ledger.stdout(Stdio::piped()).spawn().expect("it can be started");
    let out = BufReader::new(child.stdout.take().expect("it has an output"));
    let told_of = |line: String| line.split("told ").nth(1)?.trim().parse().ok();
    let mut counts = out.lines().map_while(Result::ok).filter_map(told_of);
    while counts.next().is_some_and(&mut goes_on) {}
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
}

#[test]
fn what_was_committed_is_there_after_kill_9() {
    let path = directory("kept");
    let (mut told, mut token) = (0, None);
    for round in 0..8 {
        let mut left = 20 + 37 * round;
        kill_a_ledger(&path, true, |count| {
            (told, left) = (count, left - 1);
            left > 0
        });
        let db = ledger::open(&path, 3, Durability::Sync).expect("it opens again");
        let (money, transfers) = ledger::look(&db).expect("it can be read");
        assert_eq!(money, ledger::ACCOUNTS as i64 * ledger::OPENING_BALANCE, "round {round}");
        assert!(transfers >= told, "round {round}: {told} transfers were told, and {transfers} are there");
        if let Some(token) = token.replace(db.token().expect("dst has tokens")) {
            db.session_with(token).expect("what a session has seen is there");
        }
        db.close();
    }
    assert!(told > 0, "the ledger has told of transfers");
    fs::remove_dir_all(&path).expect("it is here");
}

/// What was told a second ago is there, whatever the disk and the machine do besides.
#[test]
fn without_waiting_for_the_disk_a_killed_database_goes_back_to_one_timestamp() {
    let path = directory("async");
    let (mut lost, mut token) = (false, None);
    for round in 0..5 {
        let mut told: Vec<(Instant, i64)> = Vec::new();
        kill_a_ledger(&path, false, |count| {
            told.push((Instant::now(), count));
            told[0].0.elapsed() < Duration::from_millis(1_200 + 13 * round)
        });
        let killed = told.last().expect("it has told of transfers").0;
        let mut early = told.iter().filter(|(at, _)| killed.duration_since(*at) >= Duration::from_secs(1));
        let sure = early.next_back().map_or(0, |&(_, count)| count);
        let db = ledger::open(&path, 3, Durability::Async).expect("it opens again");
        let (money, transfers) = ledger::look(&db).expect("it can be read");
        assert_eq!(money, ledger::ACCOUNTS as i64 * ledger::OPENING_BALANCE, "round {round}");
        assert!(transfers >= sure, "round {round}: {sure} transfers were old, and {transfers} are there");
        lost |= transfers < told.last().expect("it has told of transfers").1;
        if let Some(token) = token.replace(db.token().expect("dst has tokens")) {
            assert_eq!(db.session_with(token).err(), Some(TokenError::Lost));
        }
        let token = token.expect("it was just replaced").to_string();
        db.session_with(token.parse().expect("it is one")).expect("it is of this history");
        db.close();
    }
    assert!(lost, "answers do not wait, so that the last of them are lost once in a while");
    let options = Options { shards: 3, data_dir: Some(path.clone()), ..Options::default() };
    let as_other = Database::open(Schema::default(), options).err();
    assert!(matches!(as_other, Some(OpenError::OtherDatabase { .. })), "its log has no votes");
    fs::remove_dir_all(&path).expect("it is here");
}

#[test]
fn a_database_that_does_not_wait_refuses_a_log_that_has_lost_what_was_on_disk() {
    let path = directory("behind");
    let shard = path.join("shard-00001");
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to).expect("there is room");
        for file in fs::read_dir(from).expect("it is a directory") {
            let file = file.expect("it can be read");
            fs::copy(file.path(), to.join(file.file_name())).expect("there is room");
        }
    };
    let transfers = |count: i64| {
        let db = ledger::open(&path, 2, Durability::Async).expect("it opens");
        ledger::transfer(&db, |so_far| so_far < count).expect("it goes on");
        db.close();
    };
    transfers(500);
    copy(&shard, &path.join("before"));
    transfers(1_000);
    copy(&shard, &path.join("after"));
    copy(&path.join("before"), &shard);
    let refused = ledger::open(&path, 2, Durability::Async).err().expect("it is behind").to_string();
    assert!(refused.contains("the log of another shard does not reach"), "{refused}");
    copy(&path.join("after"), &shard);
    let db = ledger::open(&path, 2, Durability::Async).expect("it is whole again");
    let (money, found) = ledger::look(&db).expect("it can be read");
    assert_eq!((money, found), (ledger::ACCOUNTS as i64 * ledger::OPENING_BALANCE, 1_000));
    db.close();
    fs::remove_dir_all(&path).expect("it is here");
}

#[test]
fn slots_that_have_moved_are_where_they_were() {
    let path = directory("moved");
    let open = || {
        let mut schema = Schema::new();
        let rows = schema.add(rows()).expect("it is a table");
        let options = Options { shards: 3, data_dir: Some(path.clone()), ..Options::default() };
        (Database::open(schema, options).expect("it opens"), rows)
    };
    let keys = 0..200u64;
    let slots = |first: u16| (first..SLOTS as u16).step_by(3).map(Slot).collect::<Vec<_>>();
    let sum = |db: &Database, rows| {
        let snapshot = db.snapshot(Freshness::Newest).expect("dst has snapshots");
        let all = snapshot.scan(rows, ..).expect("the table is ordered");
        let value = |row: plimsoll::Row| u64::from(row.1[0]);
        all.map(|row| value(row.expect("it can be read"))).sum::<u64>()
    };
    let (mut at, mut expected) = (0, 0);
    for round in 0..6u8 {
        let (db, rows) = open();
        assert_eq!(sum(&db, rows), expected, "round {round}");
        // There and back, so that a map that has forgotten is found out.
        let to = ShardId(u16::from(round) % 3);
        db.move_slots(&slots(at), to).expect("they can move");
        for key in keys.clone() {
            let changed = db.transact(|txn| {
                txn.put(rows, &Key::of_u64(key), &[round + 1])?;
                Ok::<_, plimsoll::Error>(())
            });
            changed.expect("it commits");
        }
        expected = u64::from(round + 1) * 200;
        db.move_slots(&slots(at), ShardId((to.0 + 1) % 3)).expect("they can move on");
        assert_eq!(sum(&db, rows), expected, "round {round}");
        at = (at + 1) % 2;
        drop(db);
    }
    fs::remove_dir_all(&path).expect("it is here");
}

#[test]
fn what_is_committed_under_an_oracle_is_there_again_and_can_be_overwritten() {
    for pair in ["occ/gts", "two_pl/gts", "occ/vts", "two_pl/vts"] {
        let path = directory(&pair.replace('/', "-"));
        let pair = Pair::parse(pair).expect("it is a pair");
        for life in 0..4u64 {
            let mut schema = Schema::new();
            let counts = TableSpec::new("count", IndexKind::Hash, Partitioning::Hash { bytes: 8 });
            let counts = schema.add(counts).expect("it is the first");
            let options =
                Options { pair, shards: 3, pin: false, data_dir: Some(path.clone()), ..Options::default() };
            let db = Database::open(schema, options).expect("it opens");
            for round in 0..20 {
                let expected = (life + round > 0).then(|| (20 * life + round).to_be_bytes().to_vec());
                // A snapshot has what the oracle has published.
                let begun = Instant::now();
                loop {
                    let snapshot = db.snapshot(Freshness::Newest).expect("it serves");
                    let read = |key| snapshot.get(counts, &Key::of_u64(key)).expect("it serves");
                    let first = read(0);
                    assert!((1..8).all(|key| read(key) == first), "{pair}: all of it or nothing");
                    if first == expected {
                        break;
                    }
                    assert!(begun.elapsed() < Duration::from_secs(10), "{pair} {life} {round}: {first:?}");
                }
                let written = (20 * life + round + 1).to_be_bytes();
                db.transact(|txn| (0..8).try_for_each(|key| txn.put(counts, &Key::of_u64(key), &written)))
                    .expect("nobody is in the way");
            }
            db.close();
        }
        fs::remove_dir_all(&path).expect("it is here");
    }
}

#[test]
fn a_directory_is_opened_as_what_it_is() {
    let path = directory("owner");
    let options = |shards| Options { shards, data_dir: Some(path.clone()), ..Options::default() };
    let open = |options| Database::open(Schema::default(), options).err();
    drop(ledger::open(&path, 2, Durability::Sync).expect("it is new"));
    assert!(matches!(open(options(3)), Some(OpenError::OtherDatabase { .. })));
    let under_gts = Options { pair: Pair::parse("occ/gts").expect("it is a pair"), ..options(2) };
    assert!(matches!(open(under_gts), Some(OpenError::OtherDatabase { .. })));
    let nothing = Options { durability: Some(Durability::None), ..options(2) };
    assert!(matches!(open(nothing), Some(OpenError::DirectoryForNothing(_))));
    let nowhere = Options { durability: Some(Durability::Async), data_dir: None, ..options(2) };
    assert!(matches!(open(nowhere), Some(OpenError::NoDirectory(_))));
    let untimed = Options { pair: Pair::parse("occ/none").expect("it is a pair"), ..options(2) };
    let untimed = Options { durability: Some(Durability::Async), ..untimed };
    assert!(matches!(open(untimed), Some(OpenError::NoCut(_))));
    let db = ledger::open(&path, 2, Durability::Sync).expect("no other process has the directory");
    assert!(matches!(open(options(2)), Some(OpenError::Directory(_))), "it is in use");
    db.close();
    assert!(open(options(2)).is_none(), "a schema may name fewer tables");
    let log = path.join("shard-00001");
    fs::rename(&log, path.join("elsewhere")).expect("it can be moved");
    assert!(matches!(open(options(2)), Some(OpenError::Log { shard: 1, .. })));
    fs::remove_dir_all(&log).expect("it was made");
    fs::rename(path.join("elsewhere"), &log).expect("it can be moved");
    assert!(open(options(2)).is_none(), "all is where it was");
    fs::write(path.join("owner"), "{").expect("it can be written");
    assert!(matches!(open(options(2)), Some(OpenError::DataDir(..))));
    fs::remove_dir_all(&path).expect("it is here");
}

fn rows() -> TableSpec {
    TableSpec::new("rows", IndexKind::Ordered, Partitioning::Hash { bytes: 8 })
}

/// Loads rows into a directory whose logs are short, and calls `told` with the number of rows that
/// are on disk.
fn load(path: &Path, mut told: impl FnMut(u64) -> bool) {
    let log = LogSettings { segment_bytes: 64 << 10, image_bytes: 100_000 };
    let options = EngineOptions { shards: 1, pin: None, log, ..EngineOptions::default() };
    let engine = Engine::open_in(path, Pair::default(), &[rows()], options).expect("it opens");
    let known = engine.on_shard(ShardId(0), |shard| shard.memory()[0].rows as u64);
    for first in (known..).step_by(10) {
        engine.run_on(ShardId(0), move |shard| async move {
            for row in first..first + 10 {
                let value = row.to_be_bytes().repeat(100);
                shard.load_row(TableId(0), &Key::of_u64(row), &[&value]);
            }
            shard.stable().await;
        });
        if !told(first + 10) {
            return;
        }
    }
}

/// The process that is killed. As a test of its own it does nothing.
#[test]
fn rows_are_loaded_until_it_is_killed() {
    let Some(path) = env::var_os(ROWS) else { return };
    load(path.as_ref(), |row| writeln!(std::io::stdout(), "told {row}").is_ok());
}

/// Names of the files of the first shard that begin so.
fn files(path: &Path, beginning: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(path.join("shard-00000")).expect("there is a shard");
    let files = all.map(|file| file.expect("it can be read").path());
    let name = |file: &Path| file.file_name().expect("it has a name").to_string_lossy().into_owned();
    let mut files: Vec<_> = files.filter(|file| name(file).starts_with(beginning)).collect();
    files.retain(|file| !name(file).ends_with(".new"));
    files.sort();
    files
}

fn changed(file: &Path) {
    let mut bytes = fs::read(file).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).expect("it can be written");
}

#[test]
fn a_database_with_images_comes_back_without_the_beginning_of_its_log() {
    let path = directory("images");
    let open = || {
        let mut schema = Schema::new();
        schema.add(rows()).expect("it is the only one");
        let options = Options { shards: 1, data_dir: Some(path.clone()), ..Options::default() };
        Database::open(schema, options)
    };
    let check = |least: u64| {
        let db = open().expect("it opens");
        let table = db.table("rows").expect("it was made");
        let snapshot = db.snapshot(Freshness::Newest).expect("it serves");
        let mut next = 0;
        for row in snapshot.scan(table, ..).expect("it can be read") {
            let (key, value) = row.expect("it can be read");
            assert_eq!((key, &value[..]), (Key::of_u64(next), &next.to_be_bytes().repeat(100)[..]));
            next += 1;
        }
        assert!(next >= least, "{least} rows were told, and {next} are there");
        drop(snapshot);
        db.close();
    };
    let mut told: u64 = 0;
    for round in 0..5 {
        let mut child = Command::new(env::current_exe().expect("this program has a file"))
            .args(["--exact", "rows_are_loaded_until_it_is_killed", "--nocapture"])
            .env(ROWS, &path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let out = BufReader::new(child.stdout.take().expect("it has an output"));
        let told_of = |line: String| line.split("told ").nth(1)?.trim().parse().ok();
        for row in out.lines().map_while(Result::ok).filter_map(told_of).take(60 + 37 * round) {
            told = row;
        }
        child.kill().expect("it runs");
        child.wait().expect("it was killed");
        check(told);
    }
    assert_eq!(files(&path, "image-").len(), 2, "two images are kept");
    let first = files(&path, "log-").remove(0);
    assert!(!first.ends_with("log-00000000000000000001"), "the log was shortened: it begins with {first:?}");
    // The image before the newest will do as well; the log alone will not.
    let images = files(&path, "image-");
    changed(&images[1]);
    check(told);
    changed(&images[0]);
    match open().err() {
        Some(OpenError::Log { shard: 0, why }) => {
            assert!(why.contains("is damaged") && why.contains("and without it"), "{why}");
        }
        other => panic!("without its images the log is not enough, and it says {other:?}"),
    }
    fs::remove_dir_all(&path).expect("it is here");
}
