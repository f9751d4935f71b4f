//! What every protocol's participant is built on: a shard's store, its timestamp scheme, and active
//! snapshots.

use std::ops::{AddAssign, Range};
use std::sync::Arc;

use plimsoll_runtime::{LowWater, Watermark};
use plimsoll_store::Store;
use plimsoll_types::history::Install;
use plimsoll_types::{Abort, Key, Placement, ShardId, Slot, TableId, TableSpec, Timestamp, TxnId};
use plimsoll_types::{Slab, Ticket};

use plimsoll_types::mutants::{Mutant, planted};

use crate::attempt::Attempt;
use crate::ballot::Votes;
use crate::fetched::ReadRef;
use crate::messages::Common;
use crate::slots::Moves;
use crate::timestamp::{Scheme, SchemeConfig};
use crate::trace::{Step, What};
use crate::work::Work;

/// How a database is laid out; the same on every shard.
#[derive(Clone, Debug)]
pub struct Layout {
    /// All tables, in the order of their ids.
    pub tables: Arc<[TableSpec]>,
    /// Which shard owns which slot.
    pub placement: Arc<Placement>,
    /// By shard: the process that it is in.
    pub processes: Arc<[u16]>,
}

impl Layout {
    /// The first shard of a process; the last shard of all if there is no such process.
    fn first_shard(&self, process: usize) -> ShardId {
        let at = self.processes.iter().position(|&other| usize::from(other) == process);
        ShardId(at.unwrap_or(self.processes.len()) as u16)
    }

    /// Where a shard finds tables that are everywhere: here, or if it holds no data, on one that
    /// does.
    fn copies(&self, shard: ShardId) -> ShardId {
        match self.placement.is_holder(shard) {
            true => shard,
            false => ShardId((shard.index() % self.placement.holders().len()) as u16),
        }
    }

    /// A database whose shards are all in one process.
    pub fn in_one_process(tables: impl Into<Arc<[TableSpec]>>, shards: usize) -> Layout {
        Layout {
            tables: tables.into(),
            placement: Arc::new(Placement::even(shards)),
            processes: vec![0; shards].into(),
        }
    }
}

/// A process that has something to drop, or is asked by one that has, tells the others its
/// watermark every so many nanoseconds for each of them. So long garbage stays at least, and what
/// has left the cache by then is expensive to drop; with many others it stays longer, and telling
/// costs no more.
const TELL_NS: u64 = 1_000_000;
/// And every so many in any case.
const TELL_IDLE_NS: u64 = 100_000_000;

/// How often a shard publishes its low-water mark, in nanoseconds. Where shards are in conversation
/// most passes find so little to do that publishing in each would take longer than the rest.
const SWEEP_NS: u64 = 5_000;

/// How often a process tells so many others its watermark.
fn tell_every_ns(others: usize, wanted: bool) -> u64 {
    let every_ns = TELL_NS * others as u64;
    if wanted { every_ns } else { every_ns.max(TELL_IDLE_NS) }
}

/// What a shard counts. Copied out by whoever reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages from and to the oracle.
    pub oracle_messages: u64,
    /// Times a read-only transaction had to wait for a writer.
    pub read_only_waits: u64,
    /// Read-only transactions that began again with a newer snapshot.
    pub read_only_restarts: u64,
    /// Answers to read-write transactions that did not wait until the clock had reached their
    /// timestamp, because it was further ahead than clocks may be apart.
    pub early_answers: u64,
    /// Messages with reads at a snapshot that were answered.
    pub snapshot_reads: u64,
    /// Transactions whose writes were installed here after they had been locked: all but those that
    /// run in one step.
    pub installs: u64,
    /// What coordinators were refused that asked for locks, reads or validation here, by reason: in
    /// the order of [`Abort::ALL`].
    pub refusals: [u64; Abort::ALL.len()],
    /// Outcomes that became known here of transactions with a vote RECORD: aborted, and committed.
    pub outcomes: [u64; 2],
    /// Those of them that were learned from others who vote, because the coordinator said nothing.
    pub outcomes_asked: u64,
    /// Marks raised by snapshot reads.
    pub mark_raises: u64,
    /// What read-write transactions have read and pinned when they committed.
    pub pins: u64,
    /// Locks taken on records, shared and exclusive, but for those that nobody could see; and under
    /// 2PL those asked for in vain.
    pub locks: u64,
    /// Reads that were looked at again before a commit.
    pub validated: u64,
    /// Attempts that were more than one step on this shard: they coordinated others, waited, or
    /// asked an oracle.
    pub coordinated: u64,
    /// Executions on the store that were in vain: a lock was in the way, or what came next was
    /// elsewhere.
    pub vain: u64,
    /// Stamps whose outcome was reported to the oracle.
    pub reports: u64,
    /// ROCOCO: bytes of dependency graph in what was sent to other shards, encoded or not.
    pub graph_sent_bytes: u64,
    /// ROCOCO: the dependency graph in memory at the end of the last pass.
    pub graph: GraphSize,
    /// ROCOCO: the same at its largest.
    pub graph_max: GraphSize,
    /// ROCOCO: what other shards have said that cannot be, and was not believed.
    pub offences: u64,
}

/// A dependency graph in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphSize {
    /// Transactions whose start phase is known to be over, decided ones that are remembered among
    /// them.
    pub vertices: u64,
    /// What they and their predecessors take.
    pub bytes: u64,
}

plimsoll_types::wire!(struct GraphSize { vertices, bytes });

impl GraphSize {
    /// The larger of each.
    pub fn raise(&mut self, other: GraphSize) {
        self.vertices = self.vertices.max(other.vertices);
        self.bytes = self.bytes.max(other.bytes);
    }
}

impl AddAssign for GraphSize {
    fn add_assign(&mut self, other: GraphSize) {
        self.vertices += other.vertices;
        self.bytes += other.bytes;
    }
}

/// Whoever wants to know of every version when it is installed.
pub type OnInstall = Box<dyn FnMut(&Install)>;

/// One shard's share of a database.
pub struct Base<S: Scheme> {
    /// This shard.
    pub shard: ShardId,
    /// Its data.
    pub store: Store<S::Mark>,
    /// Its part of the timestamp scheme.
    pub scheme: S,
    /// What it counts.
    pub counters: Counters,
    /// The versions it installed, in order, if the run is recorded.
    pub installs: Option<Vec<Install>>,
    /// Told of them as well, while the run is recorded.
    pub on_install: Option<OnInstall>,
    /// What transactions did here, in order, if somebody watches; then the run is recorded as well.
    pub steps: Option<Vec<Step>>,
    /// Whether several writers of a record are undecided at once; otherwise one has locked it.
    pub(crate) queues: bool,
    pub(crate) released: Vec<Ticket>,
    pub(crate) votes: Votes,
    pub(crate) moves: Moves<S>,
    pub(crate) layout: Layout,
    /// Where this shard finds tables that are everywhere.
    copies: ShardId,
    attempts: u64,
    active: Slab<S::Snapshot>,
    /// None on an oracle's shard, which has no versions and begins no snapshots.
    pub(super) watermark: Option<Watermark>,
    low: Vec<u64>,
    /// The first shards of the other processes, if this is the first of its own: whom it tells the
    /// watermark while they are connected.
    listeners: Vec<(ShardId, bool)>,
    /// How many of them are connected.
    listening: usize,
    /// When it told them last, and whether it was asked since.
    told: Timestamp,
    pub(super) asked: bool,
    /// When it last published its low-water mark.
    swept: Timestamp,
    /// Whether it is to tell them at the end of the present pass.
    telling: bool,
    scheme_messages: Vec<(ShardId, S::Message)>,
    /// What a mutant has not pinned yet.
    pub(crate) unpinned: Vec<(ReadRef, Timestamp)>,
}

impl<S: Scheme> Base<S> {
    /// An empty shard.
    pub fn new(layout: &Layout, config: &SchemeConfig, low_water: Arc<LowWater>) -> Base<S> {
        let first = |process| (layout.first_shard(process), false);
        let mut listeners: Vec<(ShardId, bool)> = low_water.others().map(first).collect();
        let oracle = S::ORACLE && config.shard == config.oracle_shard();
        let speaks = !oracle && layout.first_shard(config.process) == config.shard;
        if !speaks {
            listeners.clear();
        }
        let mut store = Store::new(S::keeps_history(config));
        for spec in layout.tables.iter() {
            store.create_table(spec.clone());
        }
        Base {
            shard: config.shard,
            store,
            scheme: S::new(config),
            counters: Counters::default(),
            installs: None,
            on_install: None,
            steps: None,
            queues: false,
            released: Vec::new(),
            votes: Votes::new(config, layout.processes.clone()),
            moves: Moves::new(config.patience_ns),
            copies: layout.copies(config.shard),
            layout: layout.clone(),
            attempts: config.first_attempt - 1,
            active: Slab::default(),
            watermark: (!oracle).then(|| Watermark::new(low_water, config.shard)),
            low: vec![0; S::slots(config)],
            listeners,
            listening: 0,
            told: Timestamp::ZERO,
            asked: false,
            swept: Timestamp::ZERO,
            telling: false,
            scheme_messages: Vec::new(),
            unpinned: Vec::new(),
        }
    }

    /// Adds an empty table; its id is its position, the same on all shards if all add the same
    /// tables in the same order.
    pub fn create_table(&mut self, spec: TableSpec) -> TableId {
        self.layout.tables = self.layout.tables.iter().cloned().chain([spec.clone()]).collect();
        self.store.create_table(spec)
    }

    /// A transaction id that was never used before.
    pub fn next_id(&mut self) -> TxnId {
        self.attempts += 1;
        TxnId { coordinator: self.shard, number: self.attempts }
    }

    /// Forgets what a former attempt has done; this one is ordered after what its session has seen.
    #[inline]
    pub(crate) fn start(&self, work: &mut Work<S>, attempt: Attempt) {
        work.reset(self.installs.is_some());
        self.scheme.follow(&mut work.observed, attempt.freshness.at_least);
    }

    /// The id of an attempt that begins and takes more than one step.
    pub(crate) fn begin(&mut self) -> TxnId {
        let txn = self.next_id();
        self.votes.begin(txn.number);
        self.step(txn, |_| What::Begins);
        txn
    }

    /// The number of the next attempt.
    pub(crate) fn next_attempt(&self) -> u64 {
        self.attempts + 1
    }

    /// An attempt that was begun is over, and nothing will be sent for it any more.
    pub(crate) fn settled(&mut self, txn: TxnId) {
        self.votes.settle(txn.number, self.next_attempt());
    }

    /// The attempts of this life, and those of them that are not settled, in order.
    pub(crate) fn own_attempts(&self) -> (Range<u64>, Vec<u64>) {
        self.votes.attempts(self.next_attempt())
    }

    /// Whether an own attempt is settled.
    pub(crate) fn is_settled(&self, txn: TxnId) -> bool {
        self.votes.is_settled(txn.number, self.next_attempt())
    }

    /// How many votes on transactions this shard remembers, and locks of those that have not voted.
    pub fn votes(&self) -> usize {
        self.votes.entries()
    }

    /// How many votes this shard has given: RECORD, and REFUSE.
    pub fn votes_given(&self) -> [u64; 2] {
        self.votes.given()
    }

    /// Counts that a coordinator was refused something, and why.
    pub(crate) fn refused(&mut self, why: Abort) -> Abort {
        self.counters.refusals[why.index()] += 1;
        why
    }

    /// How many transactions this shard has voted for whose outcome it does not know: their locks
    /// stay until it does.
    pub fn in_doubt(&self) -> usize {
        self.votes.in_doubt()
    }

    /// A transaction that ran in one step has given up. It has had a number as well.
    #[cold]
    pub(crate) fn gave_up(&mut self, why: Abort) -> TxnId {
        let txn = self.next_id();
        self.step(txn, |_| What::Aborts(why));
        txn
    }

    /// The id that [`Base::next_id`] will give next.
    #[inline]
    pub(crate) fn coming(&self) -> TxnId {
        TxnId { coordinator: self.shard, number: self.attempts + 1 }
    }

    /// The shard that owns a slot.
    #[inline]
    pub fn owner(&self, slot: Slot) -> ShardId {
        self.layout.placement.shard(slot)
    }

    /// The shard that holds a key of a table. Of a table that is everywhere, this one; if it holds
    /// no data, one that does.
    #[inline]
    pub fn home(&self, table: TableId, key: &Key) -> ShardId {
        match self.layout.tables[table.index()].partitioning.slot(key) {
            Some(slot) => self.owner(slot),
            None => self.copies,
        }
    }

    /// Whether a table's rows are here, all of them, and stay as they are.
    #[inline]
    pub fn at_hand(&self, table: TableId) -> bool {
        self.immutable(table) && self.everywhere(table) && self.copies == self.shard
    }

    /// The shards besides `home` that a write of a record is done on, if they have copies of its
    /// table.
    pub fn other_copies(&self, table: TableId, home: ShardId) -> impl Iterator<Item = ShardId> + use<S> {
        let holders = self.everywhere(table).then(|| self.layout.placement.holders());
        let skipped = usize::from(planted(Mutant::CopyForgotten));
        let others = holders.into_iter().flatten().filter(move |&shard| shard != home);
        others.skip(skipped)
    }

    /// Whether a write of a record of this table is a write on several shards.
    #[inline]
    pub fn copied(&self, table: TableId) -> bool {
        self.everywhere(table) && self.layout.placement.holders().len() > 1
    }

    /// Whether every shard has a copy of a table.
    #[inline]
    pub fn everywhere(&self, table: TableId) -> bool {
        self.layout.tables[table.index()].partitioning == plimsoll_types::Partitioning::Everywhere
    }

    /// Whether a table is loaded once and never written.
    #[inline]
    pub fn immutable(&self, table: TableId) -> bool {
        self.layout.tables[table.index()].immutable
    }

    /// How a table's rows are placed.
    pub fn partitioning(&self, table: TableId) -> plimsoll_types::Partitioning {
        self.layout.tables[table.index()].partitioning
    }

    /// All shards that own data.
    pub fn shards(&self) -> Vec<ShardId> {
        self.layout.placement.shards()
    }

    /// How many column groups a table has.
    #[inline]
    pub fn groups(&self, table: TableId) -> u8 {
        self.layout.tables[table.index()].groups.len() as u8
    }

    /// Begins a pass: the clock, and now and then the watermark and some garbage.
    pub(crate) fn pass(&mut self, clock: Timestamp) {
        self.scheme.tick(clock);
        self.tick_moves(clock);
        for (read, stamp) in std::mem::take(&mut self.unpinned) {
            self.pin(&read, stamp);
        }
        let Some(watermark) = &mut self.watermark else { return };
        if self.store.garbage() > 0 {
            watermark.want();
        }
        let wanted = self.asked || watermark.wanted();
        self.telling = self.listening > 0 && clock.0 >= self.told.0 + tell_every_ns(self.listening, wanted);
        if self.telling || watermark.is_asleep() || clock.0 >= self.swept.0 + SWEEP_NS {
            self.swept = clock;
            self.sweep();
        }
    }

    /// Publishes the low-water mark, and drops versions that nobody can ask for any more.
    fn sweep(&mut self) {
        let Some(watermark) = &mut self.watermark else { return };
        self.scheme.low(&mut self.low);
        for (_, snapshot) in self.active.iter_mut() {
            if !planted(Mutant::HeldSnapshotForgotten) {
                S::lower(snapshot, &mut self.low);
            }
        }
        watermark.update(&mut self.low);
        if self.active.is_empty() {
            self.scheme.raise(&self.low);
        }
        self.store.collect(|stamp| S::passed(watermark.current(), stamp));
    }

    /// The shard is about to sleep. It holds nobody's garbage back unless it has active snapshots.
    pub(crate) fn park(&mut self) {
        self.sweep();
        if self.active.is_empty()
            && !self.scheme.awaits_snapshot()
            && let Some(watermark) = &mut self.watermark
        {
            watermark.sleep();
        }
    }

    /// A shard of another process can be reached, or cannot any more.
    pub(crate) fn connected(&mut self, peer: ShardId, life: Option<u64>) {
        let news = self.votes.connected(peer, life);
        if let Some((_, up)) = self.listeners.iter_mut().find(|(listener, _)| *listener == peer) {
            *up = life.is_some();
            self.listening = self.listeners.iter().filter(|(_, up)| *up).count();
        }
        if let (true, Some(watermark), Some(&process)) =
            (news, &self.watermark, self.layout.processes.get(peer.index()))
        {
            watermark.connected(process.into(), life.is_some());
        }
        self.connected_moves(peer, life.is_some());
        self.scheme.connected(peer, life, &mut self.released);
    }

    /// When the shard has something to do that nobody asks for.
    pub(crate) fn due(&self) -> Option<u64> {
        let every_ns = tell_every_ns(self.listening, self.asked);
        let tell = (self.listening > 0).then(|| self.told.0 + every_ns);
        tell.into_iter().chain(self.votes.due()).chain(self.moves.due()).chain(self.scheme.due()).min()
    }

    /// What the shard itself has to tell others at the end of a pass.
    pub(crate) fn outgoing(&mut self, mut send: impl FnMut(ShardId, Common<S>)) {
        if std::mem::take(&mut self.telling)
            && let Some(watermark) = &self.watermark
        {
            self.told = self.votes.clock();
            self.asked = false;
            let asks = watermark.take_wanted();
            for &(listener, _) in self.listeners.iter().filter(|(_, up)| *up) {
                send(listener, Common::LowWater { low: watermark.here().to_vec(), asks });
            }
        }
        for (to, message) in self.outgoing_moves() {
            send(to, message);
        }
        self.scheme.outgoing(&mut self.scheme_messages);
        self.counters.oracle_messages += self.scheme_messages.len() as u64;
        for (to, message) in self.scheme_messages.drain(..) {
            send(to, Common::Scheme(message));
        }
    }

    /// Registers a snapshot that outlives this step; versions it may read are kept until it is
    /// released.
    pub fn hold(&mut self, snapshot: S::Snapshot) -> u32 {
        self.active.insert(snapshot)
    }

    /// Ends what [`Base::hold`] began.
    pub fn release(&mut self, held: u32) {
        if !planted(Mutant::HeldForEver) {
            self.active.remove(held);
        }
    }
}
