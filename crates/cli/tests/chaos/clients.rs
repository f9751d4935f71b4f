//! The clients of a world: processes that may be killed at any moment.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll::{Cluster, Database, Error, Freshness, Key, Options};
use plimsoll_sim::workload::append::{Attempted, End, Operation};
use serde_json::{Value, json};

use crate::lists::Planned;
use crate::scene::{account, balance, path, pay, plimsoll};

/// How many accounts there are, with 1,000 each.
pub const ACCOUNTS: u64 = 40;
/// How many lists are appended to at a time. They are others every few seconds, so that no list is
/// long.
const LISTS: u64 = 12;
const SECONDS_PER_LIST: u64 = 3;
/// Tells a client its number, the file of its cluster, and its notes.
const CLIENT: &str = "PLIMSOLL_CHAOS_CLIENT";

/// What the clients of a world do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// They append to lists, and move money.
    Lists,
    /// They run this benchmark.
    Bench(&'static str),
}

/// A client that runs.
pub struct Client {
    pub process: Child,
    /// The file with the output of the client, which a failure quotes.
    log: PathBuf,
}

impl Load {
    /// How many clients there are at a time. A benchmark is judged by the data that it found and
    /// what it did itself.
    pub fn clients(self) -> usize {
        match self {
            Load::Lists => 3,
            Load::Bench(_) => 1,
        }
    }

    /// Starts a client of this number in the directory of a world.
    pub fn start(self, number: u32, directory: &Path) -> Client {
        let file = directory.join("cluster.toml");
        let log = directory.join(format!("client-{number}.log"));
        let said = File::create(&log).expect("there is room");
        let mut command = match self {
            Load::Lists => {
                let mut command = Command::new(std::env::current_exe().expect("this test has a file"));
                command.args(["--exact", "client", "--ignored", "--nocapture"]);
                command.env(CLIENT, format!("{number} {}", path(directory)));
                command
            }
            Load::Bench(workload) => {
                let mut command = plimsoll(&["bench"]);
                command.args(workload.split(' ')).args(["--cluster", path(&file), "--concurrency", "4"]);
                command.args(["--warmup", "100ms", "--duration", "2s", "--quiet", "--json"]);
                command
            }
        };
        let output = said.try_clone().expect("there is room");
        let process = command.stdout(Stdio::from(output)).stderr(said).spawn().expect("it starts");
        Client { process, log }
    }
}

impl Client {
    /// Whether the client still runs. It may have ended because a node that it needs was not there,
    /// which a benchmark says with 2; what is wrong with the data it says with 1.
    pub fn runs(&mut self) -> bool {
        let Some(status) = self.process.try_wait().expect("it is ours") else { return true };
        let said = std::fs::read_to_string(&self.log).expect("it is there");
        assert!(matches!(status.code(), Some(0 | 2)), "{}: {status}: {said}", self.log.display());
        false
    }
}

/// The time of the machine, in nanoseconds: the same for all processes.
#[expect(clippy::disallowed_methods, reason = "clients are processes, whose notes are compared")]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    u64::try_from(since.as_nanos()).expect("it is earlier than 2500")
}

/// The key of the note that a client makes of a move in a round.
pub fn note(session: u32, round: u64) -> Key {
    Key::of_u64(u64::from(session) << 32 | round)
}

fn notes(directory: &Path, session: u32) -> PathBuf {
    directory.join(format!("client-{session}.notes"))
}

/// What a file in the directory tells clients: that the world is over.
pub fn over(directory: &Path) -> PathBuf {
    directory.join("over")
}

/// Appends to lists, moves money and looks at both until the world is over or this process is
/// killed; what was begun and what came of it is written down.
pub fn append() {
    let told = std::env::var(CLIENT).expect("the world names its client");
    let (session, directory) = told.split_once(' ').expect("a number and a directory");
    let (session, directory): (u32, _) = (session.parse().expect("a number"), Path::new(directory));
    let mut notes = File::create(notes(directory, session)).expect("there is room");
    let cluster = Cluster::read(&directory.join("cluster.toml")).expect("it is there");
    let patience = Duration::from_secs(2);
    let connect = || Database::connect(&cluster, Options { patience, ..Options::default() });
    let is_over = || over(directory).exists();
    let db = loop {
        match connect() {
            Ok(db) => break db,
            Err(_) if is_over() => return,
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let table = db.table("list").expect("it is in the file");
    for round in 0.. {
        if is_over() {
            break;
        }
        if round % 4 == 3 {
            let moved = transfer(&db, session, round);
            if moved {
                writeln!(notes, "{}", json!(["moved", round])).expect("there is room");
            }
            continue;
        }
        let first = now() / 1_000_000_000 / SECONDS_PER_LIST * LISTS;
        writeln!(notes, "{}", json!(["begun", round, first, now()])).expect("there is room");
        let attempted = Planned::new(session, round, first..first + LISTS).attempt(&db, table, now);
        writeln!(notes, "{}", line(&attempted)).expect("there is room");
        std::thread::sleep(Duration::from_millis(2));
    }
    db.close();
}

/// Moves money, with a note of it in the same transaction, and then looks at all of it. Returns
/// whether it is known to have moved.
fn transfer(db: &Database, session: u32, round: u64) -> bool {
    let (accounts, entries) =
        (db.table("account").expect("it is there"), db.table("entry").expect("it is there"));
    let from = (u64::from(session) * 7 + round * 3) % ACCOUNTS;
    let to = (from + 1 + round % (ACCOUNTS - 1)) % ACCOUNTS;
    let moved = db.transact(|txn| -> Result<(), Error> {
        pay(txn, accounts, from, to)?;
        txn.insert(entries, &note(session, round), b"moved")
    });
    let keys: Vec<Key> = (0..ACCOUNTS).map(account).collect();
    let seen = db.snapshot(Freshness::Newest).and_then(|snapshot| snapshot.get_many(accounts, &keys));
    if let Ok(balances) = seen {
        let total: u64 = balances.into_iter().map(balance).sum();
        assert_eq!(total, ACCOUNTS * 1000, "in every snapshot");
    }
    moved.is_ok()
}

fn line(attempted: &Attempted) -> Value {
    let how = match attempted.how {
        End::Committed => "committed",
        End::Aborted => "aborted",
        End::Unknown => "unknown",
    };
    let operations: Vec<Value> = attempted
        .operations
        .iter()
        .map(|operation| match operation {
            Operation::Append(list, number) => json!([list, number]),
            Operation::Read(list, numbers) => json!([list, numbers]),
        })
        .collect();
    json!([how, attempted.begin, attempted.end, attempted.snapshot, operations])
}

fn attempted(session: u32, line: &Value) -> Option<Attempted> {
    let how = match line[0].as_str()? {
        "committed" => End::Committed,
        "aborted" => End::Aborted,
        "unknown" => End::Unknown,
        _ => return None,
    };
    let operation = |operation: &Value| {
        let list = operation[0].as_u64()?;
        Some(match operation[1].as_u64() {
            Some(number) => Operation::Append(list, number),
            None => {
                Operation::Read(list, operation[1].as_array()?.iter().filter_map(Value::as_u64).collect())
            }
        })
    };
    Some(Attempted {
        session,
        begin: line[1].as_u64()?,
        end: line[2].as_u64()?,
        how,
        snapshot: line[3].as_bool()?,
        timestamp: None,
        operations: line[4].as_array()?.iter().filter_map(operation).collect(),
    })
}

/// What a client has written down: what it attempted, and the rounds in which it is known to have
/// moved money. What was under way when it was killed may have happened or not.
pub fn history(directory: &Path, session: u32) -> (Vec<Attempted>, Vec<u64>) {
    let text = std::fs::read_to_string(notes(directory, session)).unwrap_or_default();
    let (mut attempts, mut moved, mut begun) = (Vec::new(), Vec::new(), None);
    // The last line may be torn.
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        match line[0].as_str() {
            Some("begun") => begun = Some(line),
            Some("moved") => moved.extend(line[1].as_u64()),
            _ => {
                attempts.extend(attempted(session, &line));
                begun = None;
            }
        }
    }
    let open = begun.and_then(|line| {
        let (round, first, begin) = (line[1].as_u64()?, line[2].as_u64()?, line[3].as_u64()?);
        let Planned { snapshot, lists, .. } = Planned::new(session, round, first..first + LISTS);
        let operations = lists.into_iter().map(|(list, number)| Operation::Append(list, number)).collect();
        let open = Attempted {
            session,
            begin,
            end: now(),
            how: End::Unknown,
            snapshot,
            timestamp: None,
            operations,
        };
        (!snapshot).then_some(open)
    });
    attempts.extend(open);
    (attempts, moved)
}
