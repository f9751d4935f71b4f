//! A world, what happens in it, and what is looked at afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, remove_file};
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use plimsoll::{Database, Error, Freshness, Key};
use plimsoll_sim::workload::append::{Attempted, End, Operation};

use crate::clients::{ACCOUNTS, Client, Load, history, note, now, over};
use crate::lists::{judge, scrambled};
use crate::scene::{Scene, fill, path, plimsoll, total};
use crate::waiting::until;

/// How much happens in a world.
const EVENTS: u64 = 14;
/// How large the small disk of a node is.
const DISK: &str = "size=1g";

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 += 1;
        scrambled(self.0) % bound
    }

    fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }
}

/// A cluster and its clients.
pub struct World {
    scene: Scene,
    protocol: &'static str,
    scheme: &'static str,
    load: Load,
    clients: Vec<Client>,
    /// How many clients there have been.
    sessions: u32,
    chance: Chance,
    small_disks: bool,
    moves: Vec<Child>,
    /// How many processes were killed.
    pub killed: u64,
}

impl World {
    /// The world of a seed, with everything started and loaded.
    pub fn new(seed: u64, small_disks: bool) -> World {
        let mut chance = Chance(scrambled(scrambled(seed << 20 | 1)));
        let protocol = ["occ", "two_pl", "client_2pc"][(seed / 4 % 3) as usize];
        let load = match seed % 4 {
            0 => Load::Lists,
            1 => Load::Bench("smallbank --accounts 500 --distributed 30"),
            2 => Load::Bench("tpcc --items 200 --customers 30 --warehouses 4"),
            _ => Load::Bench("tpce --customers 2000 --home 500 --paper --daily-market 30"),
        };
        let shards = [&[1, 1, 1][..], &[1, 2, 1], &[2]][chance.below(3) as usize];
        // Under gts and vts a snapshot may be older than what was acknowledged: lists do not allow
        // that.
        let scheme = match (protocol, load) {
            ("occ" | "two_pl", Load::Bench(_)) => ["dst", "gts", "vts"][chance.below(3) as usize],
            _ => "dst",
        };
        let keys = format!("durability = \"sync\"\nprotocol = \"{protocol}\"\nscheme = \"{scheme}\"\n");
        let scene = Scene::under(&keys, shards);
        let file = std::fs::read_to_string(scene.file()).expect("it was written just now");
        let tables = match load {
            Load::Lists => "[[table]]\nname = \"list\"\nindex = \"hash\"\n".to_owned(),
            Load::Bench(workload) => done(&["bench", workload, "--tables", "--cluster", path(&scene.file())]),
        };
        let head = match load {
            Load::Lists => &file[..],
            Load::Bench(_) => file.split_once("[[table]]").expect("a scene has tables").0,
        };
        std::fs::write(scene.file(), format!("{head}{tables}")).expect("there is room");
        let (clients, moves) = (Vec::new(), Vec::new());
        let mut world = World {
            scene,
            protocol,
            scheme,
            load,
            clients,
            sessions: 0,
            chance,
            small_disks,
            moves,
            killed: 0,
        };
        for id in world.all() {
            if small_disks {
                let directory = world.scene.data_dir(id);
                std::fs::create_dir_all(&directory).expect("there is room");
                let mounted = ["-t", "tmpfs", "-o", DISK, "disk", path(&directory)];
                assert!(Command::new("mount").args(mounted).status().expect("it was possible").success());
            }
            world.scene.start(id);
        }
        world.is_well();
        match load {
            Load::Lists => fill(&world.scene.connect(), ACCOUNTS),
            Load::Bench(workload) => {
                let file = world.scene.file();
                done(&["bench", workload, "--cluster", path(&file), "--load", "--quiet"]);
            }
        }
        world
    }

    pub fn described(&self) -> String {
        let load = match self.load {
            Load::Lists => "clients that append and move money",
            Load::Bench(workload) => workload,
        };
        let nodes = match self.nodes() {
            1 => "one node".to_owned(),
            nodes => format!("{nodes} nodes"),
        };
        format!("{nodes} under {}/{}, {load}", self.protocol, self.scheme)
    }

    /// How many nodes hold data.
    fn nodes(&self) -> usize {
        self.scene.http.len() - 1
    }

    /// All nodes, and the oracle, which comes last.
    fn all(&self) -> RangeInclusive<usize> {
        1..=self.nodes() + usize::from(self.scheme != "dst")
    }

    /// A node, or the oracle.
    fn some_node(&mut self) -> usize {
        1 + self.chance.below(*self.all().end() as u64) as usize
    }

    fn kill(&mut self, id: usize) {
        self.scene.kill(id);
        self.killed += 1;
    }

    /// Waits until all nodes are there and connected.
    fn is_well(&self) {
        until("all nodes are well", || self.scene.status().1.then_some(()));
    }

    /// Waits until all is known of what clients have left behind.
    fn is_settled(&self) {
        let settled = || {
            let (status, well) = self.scene.status();
            let nodes = status["nodes"].as_array()?;
            let mut shards = nodes.iter().filter_map(|node| node["state"]["shards"].as_array()).flatten();
            (well && shards.all(|shard| shard["in_doubt"] == 0)).then_some(())
        };
        until("no transaction is in doubt", settled);
    }

    /// Starts clients in the places of those that have ended.
    fn clients(&mut self) {
        self.clients.retain_mut(Client::runs);
        while self.clients.len() < self.load.clients() {
            self.sessions += 1;
            self.clients.push(self.load.start(self.sessions, &self.scene.directory));
        }
    }

    /// All that happens.
    pub fn happens(&mut self) {
        for event in 0..EVENTS {
            self.clients();
            sleep(self.chance.millis(600));
            match self.chance.below(10) {
                0..3 => {
                    let id = self.some_node();
                    self.kill(id);
                    sleep(self.chance.millis(800));
                    self.scene.start(id);
                }
                3 => {
                    self.all().for_each(|id| self.kill(id));
                    self.all().for_each(|id| self.scene.start(id));
                }
                4 => {
                    // One that has just begun to read its log, or to serve.
                    let id = self.some_node();
                    for _ in 0..3 {
                        self.kill(id);
                        self.scene.start(id);
                        sleep(self.chance.millis(1200));
                    }
                }
                5..7 => self.client_dies(),
                7 => self.something_stands_still(),
                8 => self.slots_move(),
                _ => self.disk_is_full(),
            }
            if event % 4 == 3 {
                self.is_well();
                self.works();
            }
        }
    }

    fn clients_end(&mut self) {
        until("the clients have ended", || {
            self.clients.retain_mut(Client::runs);
            self.clients.is_empty().then_some(())
        });
    }

    fn client_dies(&mut self) {
        let dying = self.chance.below(self.load.clients() as u64) as usize;
        let mut client = self.clients.swap_remove(dying);
        if client.runs() {
            client.process.kill().expect("it is ours");
            client.process.wait().expect("it is ours");
            self.killed += 1;
        }
    }

    fn something_stands_still(&mut self) {
        let id = self.some_node();
        if self.chance.below(2) == 0 {
            self.scene.signal(id, "-STOP");
            sleep(self.chance.millis(3000));
            self.scene.signal(id, "-CONT");
        } else if self.clients[0].runs() {
            let pid = self.clients[0].process.id().to_string();
            let signal = |signal: &str| {
                Command::new("kill").args([signal, pid.as_str()]).status().expect("there is `kill`")
            };
            signal("-STOP");
            sleep(self.chance.millis(3000));
            signal("-CONT");
        }
    }

    /// Moves slots while all goes on; whether they arrive is no matter, if a node dies meanwhile.
    fn slots_move(&mut self) {
        let first = self.chance.below(4000);
        let (slots, to) = (format!("{first}..{}", first + 96), self.chance.below(self.nodes() as u64));
        let file = self.scene.file();
        let mut moves = plimsoll(&["move", path(&file), "--slots", &slots, "--to", &to.to_string()]);
        let moves = moves.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        self.moves.push(moves);
    }

    fn disk_is_full(&mut self) {
        if !self.small_disks {
            return;
        }
        let id = self.some_node();
        let filler = self.scene.data_dir(id).join("filler");
        let mut file = File::create(&filler).expect("there is a file more");
        let zeros = vec![0; 1 << 20];
        while file.write_all(&zeros).is_ok() {}
        sleep(self.chance.millis(2000));
        remove_file(&filler).expect("it is there");
    }

    /// Clients that nobody kills get something done.
    fn works(&mut self) {
        match self.load {
            Load::Lists => {
                let db = self.scene.connect();
                let accounts = db.table("account").expect("it is there");
                let written = || {
                    let touch = |txn: &mut plimsoll::Txn<'_>| -> Result<(), Error> {
                        (0..ACCOUNTS).map(Key::of_u64).try_for_each(|key| {
                            let value = txn.get(accounts, &key)?.expect("accounts stay");
                            txn.put(accounts, &key, &value)
                        })
                    };
                    db.transact(touch).ok()
                };
                until("all accounts can be written", written);
            }
            Load::Bench(workload) => {
                self.clients_end();
                let file = self.scene.file();
                let run = ["--duration", "300ms", "--warmup", "0s", "--quiet"];
                done(&[&["bench", workload, "--cluster", path(&file)][..], &run].concat());
            }
        }
    }

    /// What has to be so when all is over.
    pub fn audit(&mut self) {
        File::create(over(&self.scene.directory)).expect("there is room");
        self.is_well();
        self.clients_end();
        until("slots have arrived", || {
            self.moves.retain_mut(|moves| moves.try_wait().expect("it is ours").is_none());
            self.moves.is_empty().then_some(())
        });
        self.works();
        self.is_settled();
        if self.load == Load::Lists {
            self.lists();
        }
        for id in self.all() {
            self.scene.signal(id, "-TERM");
            let mut node = self.scene.nodes[id - 1].take().expect("it runs");
            let ended = until("a node that is asked to ends", || node.try_wait().expect("it is ours"));
            assert!(ended.success(), "node {id}: {ended}");
            done(&["verify", path(&self.scene.data_dir(id))]);
        }
    }

    /// Nothing that was acknowledged is missing, and what was seen is serializable.
    fn lists(&self) {
        let db = self.scene.connect();
        assert_eq!(total(&db, ACCOUNTS), ACCOUNTS * 1000);
        let snapshot = db.snapshot(Freshness::Newest).expect("all nodes are well");
        let keys = |table: &str| -> BTreeSet<Key> {
            let rows = snapshot.scan(db.table(table).expect("it is there"), ..).expect("all nodes are well");
            rows.map(|row| row.expect("all nodes are well").0).collect()
        };
        let entries = keys("entry");
        let (mut attempts, mut moved) = (Vec::new(), 0);
        for session in 1..=self.sessions {
            let (attempted, rounds) = history(&self.scene.directory, session);
            let missing: Vec<_> =
                rounds.iter().filter(|&&round| !entries.contains(&note(session, round))).collect();
            assert!(missing.is_empty(), "of the moves of client {session}: {missing:?}");
            moved += rounds.len();
            attempts.extend(attempted);
        }
        assert!(moved > 0 && attempts.iter().any(|attempted| attempted.how == End::Committed));
        attempts.push(self.last_look(&db, &attempts));
        judge(&attempts);
    }

    /// Reads all lists. Every number that was acknowledged is there, and none twice.
    fn last_look(&self, db: &Database, attempts: &[Attempted]) -> Attempted {
        let begin = now();
        let mut acknowledged = BTreeMap::<u64, Vec<u64>>::new();
        for attempted in attempts {
            for operation in &attempted.operations {
                if let &Operation::Append(list, number) = operation {
                    let numbers = acknowledged.entry(list).or_default();
                    numbers.extend((attempted.how == End::Committed).then_some(number));
                }
            }
        }
        let snapshot = db.snapshot(Freshness::Newest).expect("all nodes are well");
        let table = db.table("list").expect("it is there");
        let mut operations = Vec::new();
        for (list, expected) in acknowledged {
            let value = snapshot.get(table, &Key::of_u64(list)).expect("all nodes are well");
            let there = crate::lists::numbers(value);
            let distinct: BTreeSet<u64> = there.iter().copied().collect();
            assert_eq!(distinct.len(), there.len(), "list {list} has a number twice: {there:?}");
            let missing: Vec<_> = expected.iter().filter(|number| !distinct.contains(number)).collect();
            assert!(missing.is_empty(), "of list {list}: {missing:?}");
            operations.push(Operation::Read(list, there));
        }
        Attempted {
            session: 0,
            begin,
            end: now(),
            how: End::Committed,
            snapshot: false,
            timestamp: None,
            operations,
        }
    }

    /// Saves the directories from being removed, and returns where they are.
    pub fn keep(&mut self) -> PathBuf {
        let kept = self.scene.directory.with_extension("kept");
        let copied = ["-a", "--sparse=always", path(&self.scene.directory), path(&kept)];
        let copied = Command::new("cp").args(copied).status();
        assert!(copied.is_ok_and(|status| status.success()), "the directories cannot be copied");
        kept
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for process in self.clients.iter_mut().map(|client| &mut client.process).chain(&mut self.moves) {
            let _ = process.kill();
            let _ = process.wait();
        }
        for id in 1..=self.nodes() {
            if let Some(node) = &mut self.scene.nodes[id - 1] {
                let _ = node.kill();
                let _ = node.wait();
            }
            if self.small_disks {
                let _ = Command::new("umount").arg(self.scene.data_dir(id)).status();
            }
        }
    }
}

/// Runs a command that has to succeed, of which one word may hold several.
fn done(words: &[&str]) -> String {
    let words: Vec<&str> = words.iter().flat_map(|word| word.split(' ')).collect();
    let output = plimsoll(&words).output().expect("it starts");
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{words:?}: {}: {said}", output.status);
    said
}
