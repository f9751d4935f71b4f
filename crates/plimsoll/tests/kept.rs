//! A database with a data directory outlives its process.

#[allow(dead_code)]
#[path = "../examples/ledger.rs"]
mod ledger;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::{env, fs};

use plimsoll::{Database, OpenError, Options, Pair, Schema};

/// Where the ledger is, in the process that is killed.
const DIRECTORY: &str = "PLIMSOLL_TEST_LEDGER";

fn directory(name: &str) -> std::path::PathBuf {
    let path = env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

/// The process that is killed. As a test of its own it does nothing.
#[test]
fn a_ledger_that_is_killed() {
    let Some(path) = env::var_os(DIRECTORY) else { return };
    let db = ledger::open(path.as_ref(), 3).expect("the directory has a ledger");
    ledger::transfer(&db, |count| writeln!(std::io::stdout(), "told {count}").is_ok()).expect("it goes on");
}

#[test]
fn what_was_committed_is_there_after_kill_9() {
    let path = directory("kept");
    let mut told = 0;
    for round in 0..8 {
        let mut child = Command::new(env::current_exe().expect("this program has a file"))
            .args(["--exact", "a_ledger_that_is_killed", "--nocapture"])
            .env(DIRECTORY, &path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let out = BufReader::new(child.stdout.take().expect("it has an output"));
        let told_of = |line: String| line.split("told ").nth(1)?.trim().parse().ok();
        let counts = out.lines().map_while(Result::ok).filter_map(told_of);
        for count in counts.take(20 + 37 * round) {
            told = count;
        }
        child.kill().expect("it runs");
        child.wait().expect("it was killed");
        let db = ledger::open(&path, 3).expect("it opens again");
        let (money, transfers) = ledger::look(&db).expect("it can be read");
        assert_eq!(money, ledger::ACCOUNTS as i64 * ledger::OPENING_BALANCE, "round {round}");
        assert!(transfers >= told, "round {round}: {told} transfers were told, and {transfers} are there");
        db.close();
    }
    assert!(told > 0, "the ledger has told of transfers");
    fs::remove_dir_all(&path).expect("it is here");
}

#[test]
fn a_directory_is_opened_as_what_it_is() {
    let path = directory("owner");
    let options = |shards| Options { shards, data_dir: Some(path.clone()), ..Options::default() };
    let open = |options| Database::open(Schema::default(), options).err();
    drop(ledger::open(&path, 2).expect("it is new"));
    assert!(matches!(open(options(3)), Some(OpenError::OtherDatabase { .. })));
    let under_gts = Options { pair: Pair::parse("occ/gts").expect("it is a pair"), ..options(2) };
    assert!(matches!(open(under_gts), Some(OpenError::NotLogged(_))));
    let db = ledger::open(&path, 2).expect("nobody has it");
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
