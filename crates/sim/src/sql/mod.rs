//! Sessions of SQL, with clients that send them statements.
//!
//! Every client has a session on its shard ([`plimsoll_sessions`]), as a node's clients do; those
//! of one machine share what sessions of a node share, which ends with the machine. A client sends
//! text and reads answers (`connection`), so all of SQL runs: the journal that runs transactions
//! again, the queues for rows, indexes, foreign keys, sequences, definitions.
//!
//! A *deed* is a transaction as its client sees it: what it asked for, what it was told, how it
//! ended (`deed`, `client`). When all is over, the tables must be what the deeds say, and the
//! indexes what the tables say (`judge`). Of what was not answered all is there or nothing.
//!
//! The tables are few and small, so that clients meet:
//!
//! | table | what is done with it | what must hold |
//! |---|---|---|
//! | `list` | numbers are appended to texts, by `UPDATE` and `INSERT .. ON CONFLICT`; texts are read | strict serializability (`lists`) |
//! | `account` | transfers, audits; indexes come and go, and so does a column | the sum, in every audit |
//! | `transfer` | a row for each transfer, with foreign keys to `account` | the balances are what these rows say |
//! | `ticket` | seats are taken, each by one, and left | a seat has one ticket |
//! | `parent`, `child` | parents are removed while children come | no child without parent |
//! | `number` | a sequence | no number twice |
//!
//! Left out: `COPY`, cursors, cancelling, and bytes that are cut and delayed on their way.

pub(crate) mod client;
mod connection;
pub(crate) mod deed;
pub(crate) mod judge;
mod lists;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_runtime::real::Reach;
use plimsoll_runtime::sim::{Faults, Hardware};
use plimsoll_sessions::{Here, NodeStore, ShardStore, receive};
use plimsoll_sql::session::{Places, serve};
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::pairs::sql_tables;
use plimsoll_types::random::Rng;
use plimsoll_types::{TableId, TableSpec};

use connection::{Connection, Reply, Sent};

use crate::plan::Plan;

/// Lists that there may be, and accounts, seats and parents.
pub(crate) const KEYS: u64 = 6;
/// What is on each account at the beginning.
pub(crate) const BALANCE: i64 = 1000;
/// The tables of the database that the tables of SQL are in.
const TABLES: [TableId; 2] = [TableId(0), TableId(1)];
/// The stream of random numbers that nodes are drawn from.
const NODES_STREAM: u64 = 12 << 32;
/// How long an operation waits for other machines, besides what it waits for clocks and logs.
const PATIENCES_NS: [u64; 3] = [20_000_000, 200_000_000, 2_000_000_000];
/// How many steps clocks are apart, as far as patience goes.
const CLOCK_STEPS: u64 = 8;
/// How many syncs of logs an operation waits for, likewise.
const LOGGED: u64 = 4;
/// Sessions that a machine has room for; clients that go away leave some behind for a while.
const SESSIONS: usize = 10_000;
/// How often each of the first statements is tried at most, a moment later each time.
const SETUP_TRIES: usize = 2000;
const SETUP_PAUSE_NS: u64 = 1_000_000;

/// The tables of the database.
pub(crate) fn tables() -> Vec<TableSpec> {
    sql_tables().into()
}

/// What sessions of a machine have in common, for one life of it.
pub(crate) struct Node {
    store: Arc<NodeStore>,
    places: Arc<Places>,
}

impl Node {
    /// How long an operation waits for other machines is drawn for each life, and is longer than
    /// what it waits for clocks and logs.
    fn new(all: &Nodes, machine: usize, life: usize) -> Node {
        let mut rng = Rng::new(all.seed, NODES_STREAM + ((life as u64) << 16) + machine as u64);
        Node::with_patience(all, machine, PATIENCES_NS[rng.below(3) as usize])
    }

    fn with_patience(all: &Nodes, machine: usize, patience_ns: u64) -> Node {
        let Nodes { waits_ns, has_locks, is_alone, .. } = *all;
        // Machines come back, so none is gone.
        let store = NodeStore::new(TABLES, has_locks, is_alone, Reach::alone());
        let store = store.with_patience(patience_ns + waits_ns);
        Node { store, places: Places::new(machine as u16, SESSIONS) }
    }

    /// A shard of the machine begins a life.
    pub(crate) fn begin(&self, shard: &dyn AnyShard) {
        receive(shard, &self.places);
    }

    /// A new session on a shard of the machine.
    fn connect(&self, shard: &Rc<dyn AnyShard>) -> Connection {
        let store = ShardStore::new(shard.clone(), self.store.clone());
        // A world's random numbers are the same every time.
        let here = Here::new(shard.clone(), store, |number| number);
        let places = self.places.clone();
        Connection::new(|mut end| async move { serve(&mut end, &here, &places).await })
    }
}

/// A life of a machine, by its number, and what sessions share in it.
type Life = (usize, Rc<Node>);

/// The nodes of a world: by machine, its present life and what sessions share in it.
pub(crate) struct Nodes {
    seed: u64,
    shards_per_machine: usize,
    /// How long an operation may have to wait for clocks that are apart, and for logs.
    waits_ns: u64,
    has_locks: bool,
    is_alone: bool,
    present: Vec<RefCell<Option<Life>>>,
}

impl Nodes {
    /// The nodes of a plan's world, which has this number of shards on all its machines.
    pub(crate) fn new(plan: &Plan, shards: usize) -> Nodes {
        let shards_per_machine = plan.hardware.shards_per_machine as usize;
        let machines = shards.div_ceil(shards_per_machine);
        let Faults { offset_ns, steps_per_s, step_ns, .. } = plan.faults;
        let steps_ns = if steps_per_s > 0.0 { CLOCK_STEPS * step_ns } else { 0 };
        let Hardware { disk_sync_ns, disk_tail_ns, .. } = plan.hardware;
        let logs_ns = if plan.logs { LOGGED * (disk_sync_ns + disk_tail_ns) } else { 0 };
        Nodes {
            seed: plan.seed,
            shards_per_machine,
            waits_ns: 2 * (offset_ns + steps_ns) + logs_ns,
            has_locks: plan.legal_pair().has_locks(),
            is_alone: machines == 1,
            present: (0..machines).map(|_| RefCell::default()).collect(),
        }
    }

    /// A node on the first machine for the first statements: with little patience the longest of them
    /// would seldom come to their end.
    pub(crate) fn patient(&self) -> Node {
        Node::with_patience(self, 0, PATIENCES_NS[2])
    }

    /// The node of a shard in this life, which is the present one of its machine or the next.
    pub(crate) fn of(&self, shard: usize, life: usize) -> Rc<Node> {
        let machine = shard / self.shards_per_machine;
        let mut present = self.present[machine].borrow_mut();
        match &*present {
            Some((known, node)) if *known == life => node.clone(),
            _ => {
                let node = Rc::new(Node::new(self, machine, life));
                *present = Some((life, node.clone()));
                node
            }
        }
    }

    /// The node of a machine that has one.
    fn present(&self, machine: usize) -> Option<Rc<Node>> {
        self.present.get(machine)?.borrow().as_ref().map(|(_, node)| node.clone())
    }

    /// Rows that sessions have reserved or wait for, on machines that are up.
    fn reserved(&self) -> usize {
        let present = (0..self.present.len()).filter_map(|machine| self.present(machine));
        present.map(|node| node.places.reserved()).sum()
    }
}

/// The statements that make the tables, with accounts and parents below `keys`, and of the lists
/// below it those with even numbers. Each changes nothing if it was carried out before. Who sees the
/// lists, which come last, sees all.
pub(crate) fn first_statements(keys: u64) -> [String; 11] {
    let last = keys - 1;
    [
        "create table if not exists account (id int primary key, balance int not null, zone int not null)"
            .to_owned(),
        format!(
            "insert into account select g, {BALANCE}, g % 2 from generate_series(0, {last}) g on conflict do \
             nothing"
        ),
        "create table if not exists transfer (id bigint primary key, source int not null references account, \
         target int not null references account, amount int not null)"
            .to_owned(),
        "create index if not exists transfer_source on transfer (source, amount desc)".to_owned(),
        "create table if not exists ticket (id bigint primary key, seat int not null unique)".to_owned(),
        "create table if not exists parent (id int primary key)".to_owned(),
        format!("insert into parent select generate_series(0, {last}) on conflict do nothing"),
        "create table if not exists child (id bigint primary key, parent int not null references parent)"
            .to_owned(),
        "create index if not exists child_parent on child (parent)".to_owned(),
        "create sequence if not exists number".to_owned(),
        format!(
            "create table if not exists list (id int primary key, v text not null); insert into list select \
             g, '' from generate_series(0, {last}, 2) g on conflict do nothing"
        ),
    ]
}

/// Carries out one of [`first_statements`]; the error if that cannot be.
pub(crate) async fn set_up(shard: Rc<dyn AnyShard>, node: Rc<Node>, text: String) -> Result<(), String> {
    let mut tries = 0;
    while let Err(why) = carry_out(&shard, &node, &text).await {
        tries += 1;
        if tries == SETUP_TRIES {
            return Err(why);
        }
        shard.sleep(SETUP_PAUSE_NS).await;
    }
    Ok(())
}

/// Has a session carry out a statement; the error if it cannot.
async fn carry_out(shard: &Rc<dyn AnyShard>, node: &Node, text: &str) -> Result<(), String> {
    let mut connection = node.connect(shard);
    connection.answer(None).await;
    match connection.ask(text, Sent::Simple, None).await {
        Some(Reply { error: None, .. }) => Ok(()),
        Some(Reply { error: Some((state, text)), .. }) => Err(format!("{state}: {text}")),
        None => Err("the session ends".to_owned()),
    }
}
