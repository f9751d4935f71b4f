//! What the tests of a cluster share: a directory with its file, the processes that run, and money
//! to move.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Duration;

use plimsoll::{Cluster, Database, Error, Freshness, Key, OpenError, Options, TableId, Txn};
use serde_json::Value;

use crate::waiting::{PATIENCE, until};

/// A directory with the file of a cluster, and the nodes that run.
pub struct Scene {
    pub directory: PathBuf,
    pub http: Vec<u16>,
    pub nodes: Vec<Option<Child>>,
    /// Whether nodes keep what is committed, each in a directory of its own.
    kept: bool,
    /// The ports for SQL, if nodes have some.
    pub sql: Vec<u16>,
}

/// Whether the scheme that these keys name has an oracle.
pub fn has_oracle(keys: &str) -> bool {
    ["gts", "vts"].iter().any(|scheme| keys.contains(scheme))
}

/// Ports on which nothing listens at this moment. The operating system gives them to no outgoing
/// connection, which could take a node's port while the node is killed and started again.
pub fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let port = || {
        let number = std::process::id().wrapping_mul(101).wrapping_add(NEXT.fetch_add(1, Relaxed));
        (10_000 + number % 20_000) as u16
    };
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(port).filter(is_free).take(count).collect()
}

impl Scene {
    /// Nodes 1, 2, ... of so many shards; none runs yet.
    pub fn new(shards: &[usize]) -> Scene {
        Scene::under("", shards)
    }

    /// The same with more at the beginning of the file.
    pub fn under(keys: &str, shards: &[usize]) -> Scene {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("plimsoll-cluster-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let ports = free_ports(2 * shards.len() + 2);
        let mut text = format!("{keys}cluster = \"bank\"\nclients = 4\nsecret_file = \"secret\"\n");
        for (place, shards) in shards.iter().enumerate() {
            let (port, http) = (ports[2 * place], ports[2 * place + 1]);
            text += &format!(
                "[[node]]\nid = {}\naddress = \"127.0.0.1:{port}\"\nhttp = \"127.0.0.1:{http}\"\nshards = {shards}\n",
                place + 1
            );
        }
        if has_oracle(keys) {
            let (port, http) = (ports[2 * shards.len()], ports[2 * shards.len() + 1]);
            text += &format!("[oracle]\naddress = \"127.0.0.1:{port}\"\nhttp = \"127.0.0.1:{http}\"\n");
        }
        text += "[[table]]\nname = \"account\"\nindex = \"hash\"\n[[table]]\nname = \"entry\"\n";
        std::fs::write(directory.join("cluster.toml"), text).unwrap();
        write_secret(&directory.join("secret"), "correct horse battery\n");
        let http = ports.chunks(2).map(|pair| pair[1]).collect();
        let nodes = (0..=shards.len()).map(|_| None).collect();
        Scene { directory, http, nodes, kept: keys.contains("durability"), sql: Vec::new() }
    }

    /// The same with a port for SQL at every node.
    pub fn with_sql(mut self) -> Scene {
        self.sql = free_ports(self.nodes.len() - 1);
        self
    }

    /// Two nodes and an oracle that is node 3 here, all of them running.
    pub fn with_oracle(scheme: &str, keys: &str) -> Scene {
        let mut scene = Scene::under(&format!("scheme = \"{scheme}\"\n{keys}"), &[1, 1]);
        (1..=3).for_each(|id| scene.start(id));
        scene
    }

    pub fn file(&self) -> PathBuf {
        self.directory.join("cluster.toml")
    }

    pub fn start(&mut self, id: usize) {
        let number = id.to_string();
        let who = if id == self.nodes.len() { ["--role", "oracle"] } else { ["--node", &number] };
        let mut command = plimsoll(&["start", path(&self.file()), who[0], who[1]]);
        if self.kept {
            command.arg("--data-dir").arg(self.data_dir(id));
        }
        if let Some(port) = self.sql.get(id - 1) {
            command.arg("--sql").arg(format!("127.0.0.1:{port}"));
        }
        let log = self.directory.join(format!("node-{id}.log"));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.nodes[id - 1] = Some(child);
    }

    /// Where a node keeps what is committed.
    pub fn data_dir(&self, id: usize) -> PathBuf {
        self.directory.join(format!("data-{id}"))
    }

    /// Ends a node, which has no time to prepare for it.
    pub fn kill(&mut self, id: usize) {
        let mut node = self.nodes[id - 1].take().expect("the node runs");
        node.kill().unwrap();
        node.wait().unwrap();
    }

    /// Waits for the end of a node that was told to stop.
    pub fn wait(&mut self, id: usize) {
        let ended = self.nodes[id - 1].take().expect("the node runs").wait().unwrap();
        assert!(ended.success());
    }

    /// Starts a node, and keeps what it says.
    pub fn start_logged(&mut self, id: usize) -> std::process::ChildStderr {
        let mut command = plimsoll(&["start", path(&self.file()), "--node", &id.to_string()]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = child.stderr.take().unwrap();
        self.nodes[id - 1] = Some(child);
        log
    }

    /// Starts a node that logs JSON, into a file.
    pub fn start_with_json_log(&mut self, id: usize) -> PathBuf {
        let log = self.directory.join(format!("{id}.log"));
        let number = id.to_string();
        let mut command = plimsoll(&["start", path(&self.file()), "--node", &number, "--log", "json"]);
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        self.nodes[id - 1] = Some(command.spawn().unwrap());
        log
    }

    pub fn connect(&self) -> Database {
        let cluster = Cluster::read(&self.file()).unwrap();
        Database::connect(&cluster, Options { patience: PATIENCE, ..Options::default() }).unwrap()
    }

    pub fn connect_within(&self, patience: Duration) -> Result<Database, OpenError> {
        let cluster = Cluster::read(&self.file()).unwrap();
        Database::connect(&cluster, Options { patience, ..Options::default() })
    }

    /// What `plimsoll status --json` says, and whether all is well.
    pub fn status(&self) -> (Value, bool) {
        let output = plimsoll(&["status", path(&self.file()), "--json"]).output().unwrap();
        (serde_json::from_slice(&output.stdout).expect("JSON and nothing else"), output.status.success())
    }

    /// What a node answers to a GET.
    pub fn get(&self, id: usize, path: &str) -> (u16, String) {
        self.try_get(id, path).unwrap()
    }

    /// Whether a node listens and serves.
    pub fn is_ready(&self, id: usize) -> bool {
        self.try_get(id, "/ready").is_ok_and(|(status, _)| status == 200)
    }

    fn try_get(&self, id: usize, path: &str) -> Result<(u16, String), ureq::Error> {
        let url = format!("http://127.0.0.1:{}{path}", self.http[id - 1]);
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .build()
            .into();
        let mut answer = agent.get(&url).call()?;
        Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
    }

    pub fn signal(&mut self, id: usize, signal: &str) {
        let pid = self.nodes[id - 1].as_mut().expect("the node runs").id();
        let killed = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
        assert!(killed.success());
        if signal == "-STOP" {
            // A thread that runs when the signal is sent may answer one request more.
            until("all threads of the node stand still", || stands_still(pid).then_some(()));
        }
    }
}

/// Whether all threads of a process are stopped.
fn stands_still(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap()).all(|stat| {
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.starts_with('T')
    })
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Writes a secret that nobody else can read.
pub fn write_secret(path: &Path, secret: &str) {
    std::fs::write(path, secret).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

pub fn path(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

pub fn plimsoll(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(arguments);
    command
}

pub fn account(number: u64) -> Key {
    Key::of_u64(number)
}

pub fn balance(value: Option<Vec<u8>>) -> u64 {
    u64::from_be_bytes(value.expect("accounts stay").try_into().expect("a number"))
}

/// Moves one from an account to another.
pub fn pay(txn: &mut Txn<'_>, accounts: TableId, from: u64, to: u64) -> Result<(), Error> {
    let had = balance(txn.get(accounts, &account(from))?);
    let other = balance(txn.get(accounts, &account(to))?);
    txn.put(accounts, &account(from), &(had - 1).to_be_bytes())?;
    txn.put(accounts, &account(to), &(other + 1).to_be_bytes())
}

/// The key of the note of a client's move.
pub fn number(client: u64, round: u64) -> Key {
    Key::of_u64(client << 32 | round)
}

/// Moves one between two of the accounts, and makes a note of that in the same transaction.
pub fn noted_move(
    db: &Database,
    [accounts, entries]: [TableId; 2],
    count: u64,
    client: u64,
    round: u64,
) -> Result<(), Error> {
    let from = (client + 7 * round) % count;
    let to = (from + 1 + (2 * client + 4 * round) % (count - 1)) % count;
    db.transact(|txn| -> Result<(), Error> {
        pay(txn, accounts, from, to)?;
        txn.insert(entries, &number(client, round), b"moved")
    })
}

/// Lets clients end when it goes out of scope, also if a test fails.
pub struct Ends<'a>(pub &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Moves money between accounts that are on different shards, again and again, and looks at all of
/// them.
pub fn transfers(db: &Database, client: u64, accounts: u64, rounds: u64) {
    let table = db.table("account").unwrap();
    for round in 0..rounds {
        let (from, to) = ((client + round) % accounts, (client + 3 * round + 1) % accounts);
        if from == to {
            continue;
        }
        db.transact(|txn| pay(txn, table, from, to)).unwrap();
        assert_eq!(total(db, accounts), accounts * 1000, "in every snapshot");
    }
}

pub fn total(db: &Database, accounts: u64) -> u64 {
    let table = db.table("account").unwrap();
    let keys: Vec<Key> = (0..accounts).map(account).collect();
    match db.snapshot(Freshness::Newest) {
        Ok(snapshot) => snapshot.get_many(table, &keys).unwrap().into_iter().map(balance).sum(),
        Err(Error::NoSnapshots { .. }) => {
            let read = |txn: &mut Txn<'_>| -> Result<u64, Error> {
                keys.iter().try_fold(0, |sum, key| Ok(sum + balance(txn.get(table, key)?)))
            };
            db.transact(read).unwrap()
        }
        Err(error) => panic!("{error}"),
    }
}

/// Opens accounts with 1,000 each.
pub fn fill(db: &Database, accounts: u64) {
    let table = db.table("account").unwrap();
    db.transact(|txn| -> Result<(), Error> {
        (0..accounts).try_for_each(|number| txn.insert(table, &account(number), &1000u64.to_be_bytes()))
    })
    .unwrap();
}

/// The sum of a metric over a node's shards, of those samples that have these labels.
pub fn metric(text: &str, name: &str, labels: &str) -> u64 {
    let of = |line: &str| {
        let (sample, value) = line.rsplit_once(' ')?;
        let rest = sample.strip_prefix(name)?.strip_prefix('{')?;
        rest.contains(labels).then(|| value.parse::<u64>().expect("a whole number"))
    };
    text.lines().filter_map(of).sum()
}

pub fn refused(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = plimsoll(arguments).output().unwrap();
    assert_eq!(status.code(), Some(2), "{arguments:?}");
    String::from_utf8(stderr).unwrap()
}
