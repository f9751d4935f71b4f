//! One shard's share of a database, under every protocol: its store, its part of the timestamp
//! scheme, and its active snapshots. Each protocol's participant is built on it.

use std::ops::{AddAssign, Range};
use std::sync::Arc;

use plimsoll_runtime::{LowWater, Suspect, Watermark};
use plimsoll_store::{KeptMemory, Store};
use plimsoll_types::history::Install;
use plimsoll_types::{Abort, Held, Key, Placement, ShardId, Slot, TableId, TableSpec, Timestamp, TxnId};
use plimsoll_types::{Slab, Ticket};

use plimsoll_types::mutants::{Mutant, planted};

use crate::attempt::Attempt;
use crate::ballot::Votes;
use crate::fetched::ReadRef;
use crate::journal::{Follows, Journal};
use crate::messages::Common;
use crate::room::{Memory, Room, grown_bytes};
use crate::slots::Moves;
use crate::timestamp::{MAX_OFFSET_NS, Scheme, SchemeConfig};
use crate::trace::{Step, What};
use crate::work::{Footprint, Packed, Write};

/// How a database is laid out; the same on every shard.
#[derive(Clone, Debug)]
pub struct Layout {
    /// All tables, in the order of their ids.
    pub tables: Arc<[TableSpec]>,
    /// Which shard owns which slot.
    pub placement: Arc<Placement>,
    /// By shard: the number of its process.
    pub processes: Arc<[u16]>,
}

impl Layout {
    /// The first shard of a process. If no shard is listed for the process, the number behind the
    /// last listed shard.
    pub(super) fn first_shard(&self, process: usize) -> ShardId {
        let at = self.processes.iter().position(|&other| usize::from(other) == process);
        ShardId(at.unwrap_or(self.processes.len()) as u16)
    }

    /// The shard where `shard` reads tables that are on every shard: itself, or if it holds no
    /// data, a shard that does.
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

/// Interval between watermark messages in nanoseconds, per peer process, while this process has
/// garbage to drop or a peer has asked. Garbage stays at least as long as this; with a longer
/// interval versions would leave the cache first and be expensive to drop. The interval is
/// multiplied by the number of connected peers, so the message rate stays the same and garbage
/// stays longer.
const TELL_NS: u64 = 1_000_000;
/// Least interval between watermark messages in nanoseconds in all other cases.
const TELL_IDLE_NS: u64 = 100_000_000;

/// Interval between publications of a shard's low-water mark, in nanoseconds. Shards that exchange
/// messages have many passes with little work; publishing in each would take longer than the work.
const SWEEP_NS: u64 = 5_000;
/// The same of a shard that sleeps and has something to drop: snapshots may be as old as
/// `max_staleness` allows.
const IDLE_SWEEP_NS: u64 = 1_000_000_000;

/// A snapshot that is active for longer, in nanoseconds, is published as held, so that it keeps what
/// it sees and nothing else. Shorter ones hold the low-water mark back, which costs less than to
/// publish them one by one.
const HELD_NS: u64 = 1_000_000;

/// The interval between watermark messages of a process with `others` connected peers, in
/// nanoseconds.
fn tell_every_ns(others: usize, wanted: bool) -> u64 {
    let every_ns = TELL_NS * others as u64;
    if wanted { every_ns } else { every_ns.max(TELL_IDLE_NS) }
}

/// What a shard counts. Reports take copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages from this shard to the oracle, or from the oracle to shards.
    pub oracle_messages: u64,
    /// Times a read-only transaction had to wait for a writer.
    pub read_only_waits: u64,
    /// Read-only transactions that restarted with a newer snapshot.
    pub read_only_restarts: u64,
    /// Answers to read-write transactions that were sent before the clock had reached the
    /// transaction's timestamp, because the timestamp was further ahead of the clock than clocks
    /// may be apart.
    pub early_answers: u64,
    /// Timestamps of other processes that this shard did not believe, because they were further
    /// ahead of its clock than clocks may be apart.
    pub future_stamps: u64,
    /// Messages with snapshot reads that were answered.
    pub snapshot_reads: u64,
    /// Transactions whose locked writes were installed here. Transactions that run in one step take
    /// no locks and are not counted.
    pub installs: u64,
    /// Requests for locks, reads or validation that this shard refused to coordinators, by reason
    /// in the order of [`Abort::ALL`].
    pub refusals: [u64; Abort::ALL.len()],
    /// Outcomes that this shard learned of transactions for which it had voted RECORD: aborted, and
    /// committed.
    pub outcomes: [u64; 2],
    /// Those of them that it learned from other voters, because the coordinator was silent.
    pub outcomes_asked: u64,
    /// Marks raised by snapshot reads.
    pub mark_raises: u64,
    /// Records, leaves and absent cells that read-write transactions had read and pinned when they
    /// committed.
    pub pins: u64,
    /// Locks taken on records, shared and exclusive. A transaction that runs in one step takes
    /// none. Under 2PL refused and waiting requests count as well.
    pub locks: u64,
    /// Reads that were checked again before a commit.
    pub validated: u64,
    /// Attempts that took more than one step on this shard: they coordinated other shards, waited,
    /// or asked an oracle.
    pub coordinated: u64,
    /// Executions on the store that were thrown away, because a record was locked or the next piece
    /// belonged to another shard.
    pub vain: u64,
    /// Stamps whose outcome this shard reported to the oracle.
    pub reports: u64,
    /// ROCOCO: bytes of dependency graph in messages to other shards, encoded or not.
    pub graph_sent_bytes: u64,
    /// ROCOCO: the size of the dependency graph in memory at the end of the last pass.
    pub graph: GraphSize,
    /// ROCOCO: the largest size so far.
    pub graph_max: GraphSize,
    /// ROCOCO: impossible statements in other shards' messages, which were ignored.
    pub offences: u64,
}

/// The size of a dependency graph in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphSize {
    /// Transactions whose start phase is known to be over, including decided ones that are still
    /// kept.
    pub vertices: u64,
    /// Memory for these transactions and their lists of predecessors.
    pub bytes: u64,
}

plimsoll_types::wire!(struct GraphSize { vertices, bytes });

impl GraphSize {
    /// Sets each number to the larger of the two.
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

/// A snapshot that is active.
struct Active<S> {
    snapshot: S,
    /// When it began, by the shard's clock.
    since: Timestamp,
    /// Whether it is published as held.
    held: bool,
}

impl<T> Active<T> {
    /// What is published of it.
    fn published<S: Scheme<Snapshot = T>>(&self, slots: usize, holder: ShardId) -> Held {
        let mut at = vec![u64::MAX; slots];
        S::lower(&self.snapshot, &mut at);
        Held::one(at, self.since, holder)
    }
}

/// What a shard has forgotten while another process had no channel to this one: rows that it has
/// dropped without regard to that process's snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Absence {
    /// Nothing above this stamp was.
    pub(super) forgotten: Timestamp,
    /// The floor when the shard last lost a channel to it.
    left: Timestamp,
    /// The absences that are taken into account.
    known: u64,
    /// The last life of the process that was met.
    life: Option<u64>,
}

impl Absence {
    /// A channel to a shard of the process was connected, in this life, or was reset. The clock of
    /// a new life may be behind what the former one no longer wanted.
    fn connected(&mut self, life: Option<u64>, floor: Timestamp, absences: u64) {
        if life.is_none() {
            self.left = floor;
            return;
        }
        self.forgotten = self.so_far(floor, absences, life);
        (self.known, self.life) = (absences, life);
    }

    /// What was forgotten until now, should the process be absent, or be back without a channel to
    /// this shard so far. `life` is the last that a shard of this process has met.
    fn so_far(&self, floor: Timestamp, absences: u64, life: Option<u64>) -> Timestamp {
        let begins_again = life.is_some() && self.life != life;
        match begins_again || self.known != absences && floor > self.left {
            true => self.forgotten.max(floor),
            false => self.forgotten,
        }
    }
}

/// The snapshot that has been held longest, of those that a shard has heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldestSnapshot {
    /// When it was begun, by the clock of its process.
    pub since: Timestamp,
    /// The first shard of that process.
    pub holder: ShardId,
    /// The versions on this shard that are kept for it, or for others that began close to it, and
    /// for no older one.
    pub kept: KeptMemory,
}

/// A callback for every installed version. If the shard logs, the index of the entry that has it is
/// given as well, else 0.
pub type OnInstall = Box<dyn FnMut(u64, &Install)>;

/// A callback that is told from which index the log is read when a shard comes back, for what is in
/// entries below is not installed again; and `None` once the log has been read.
pub type OnReplay = Box<dyn FnMut(Option<u64>)>;

/// A callback that is told of a cut: versions above it that were installed before have never been.
/// And whether the shard goes back to it now, or the log says that it has.
pub type OnCut = Box<dyn FnMut(Timestamp, bool)>;

/// Receives the messages that sessions on shards of other processes send to this shard's
/// ([`Common::Session`]).
///
/// It returns messages that are to be sent, each with the shard that it is for. None of them is
/// answered by the runtime, and those that are on their way when a channel is reset are lost.
pub trait Inbox {
    /// A message has come from a shard.
    fn receive(&mut self, from: ShardId, message: &[u8]) -> Vec<(ShardId, Vec<u8>)>;

    /// The channel to a shard was reset: messages to it, and from it, may be lost.
    fn disconnected(&mut self, peer: ShardId) -> Vec<(ShardId, Vec<u8>)>;
}

/// One shard's share of a database.
pub struct Base<S: Scheme> {
    /// This shard.
    pub shard: ShardId,
    /// Its data.
    pub store: Store<S::Mark>,
    /// Its part of the timestamp scheme.
    pub scheme: S,
    /// What the shard counts.
    pub counters: Counters,
    /// The versions that the shard installed, in order, if the run is recorded.
    pub installs: Option<Vec<Install>>,
    /// Called for each of these versions as well, while the run is recorded.
    pub on_install: Option<OnInstall>,
    /// Called before the log is read, if the shard logs.
    pub on_replay: Option<OnReplay>,
    /// Called when versions above a cut turn out never to have been.
    pub on_cut: Option<OnCut>,
    /// Receives messages of sessions, if there are sessions.
    pub(crate) inbox: Option<Box<dyn Inbox>>,
    /// Messages of sessions that are to be sent.
    session_messages: Vec<(ShardId, Vec<u8>)>,
    /// The steps of transactions on this shard, in order, if they are watched; such a run is
    /// recorded as well.
    pub steps: Option<Vec<Step>>,
    /// Whether a record may have several undecided writers at once (ROCOCO). Otherwise its one
    /// writer has locked it.
    pub(crate) queues: bool,
    pub(crate) released: Vec<Ticket>,
    pub(crate) votes: Votes,
    pub(crate) room: Room,
    /// What the shard writes to its log, if it has one.
    pub(crate) journal: Option<Box<Journal>>,
    /// If the shard holds no data: what it knows of the eras of those that do.
    pub(super) follows: Follows,
    pub(crate) moves: Moves<S>,
    pub(crate) layout: Layout,
    /// The shard where this one reads tables that are on every shard.
    copies: ShardId,
    /// Whether those that never change are here, although this shard may hold no data.
    has_copies: bool,
    /// The furthest stamp that this shard believes of another process.
    furthest: Timestamp,
    /// Whose stamp it has not believed last.
    suspect: Option<Suspect>,
    attempts: u64,
    /// The clock of the present pass.
    clock: Timestamp,
    active: Slab<Active<S::Snapshot>>,
    /// The number of this shard's process.
    process: usize,
    /// Whether a snapshot that is published as held has ended, or has become one, since the last
    /// publication.
    held_changed: bool,
    /// By process: what was forgotten while it was absent.
    pub(super) absences: Vec<Absence>,
    /// `None` on an oracle's shard, which has no versions and begins no snapshots.
    pub(super) watermark: Option<Watermark>,
    low: Vec<u64>,
    /// On the first shard of a process: the first shards of the other processes, and whether each
    /// is connected. It sends the watermark to those that are.
    listeners: Vec<(ShardId, bool)>,
    /// How many of them are connected.
    listening: usize,
    /// When this shard last sent them the watermark, and whether one of them has asked for it
    /// since.
    told: Timestamp,
    pub(super) asked: bool,
    /// When it last published its low-water mark.
    swept: Timestamp,
    /// Whether it sends the watermark at the end of the present pass.
    telling: bool,
    scheme_messages: Vec<(ShardId, S::Message)>,
    /// Messages of the scheme that have come while the log is read.
    pub(super) early: Vec<(ShardId, S::Message)>,
    /// Reads that a mutant has not pinned yet.
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
        let processes = layout.processes.iter().max().map_or(1, |&last| usize::from(last) + 1);
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
            on_replay: None,
            on_cut: None,
            inbox: None,
            session_messages: Vec::new(),
            steps: None,
            queues: false,
            released: Vec::new(),
            votes: Votes::new(config, layout.processes.clone()),
            room: Room::default(),
            journal: None,
            follows: Follows::Nobody,
            moves: Moves::new(config.patience_ns),
            copies: layout.copies(config.shard),
            has_copies: layout.copies(config.shard) == config.shard,
            furthest: Timestamp(MAX_OFFSET_NS),
            suspect: None,
            layout: layout.clone(),
            attempts: config.first_attempt - 1,
            clock: Timestamp::ZERO,
            active: Slab::default(),
            process: config.process,
            held_changed: false,
            absences: vec![Absence::default(); processes],
            watermark: (!oracle).then(|| Watermark::new(low_water, config.shard)),
            low: vec![0; S::slots(config)],
            listeners,
            listening: 0,
            told: Timestamp::ZERO,
            asked: false,
            swept: Timestamp::ZERO,
            telling: false,
            scheme_messages: Vec::new(),
            early: Vec::new(),
            unpinned: Vec::new(),
        }
    }

    /// Adds an empty table. Its id is its position, and is the same on all shards if all shards add
    /// the same tables in the same order.
    pub fn create_table(&mut self, spec: TableSpec) -> TableId {
        self.log_table(&spec);
        self.layout.tables = self.layout.tables.iter().cloned().chain([spec.clone()]).collect();
        self.store.create_table(spec)
    }

    /// A transaction id that was never used before.
    pub fn next_id(&mut self) -> TxnId {
        self.attempts += 1;
        TxnId { coordinator: self.shard, number: self.attempts }
    }

    /// Forgets what the former attempt did. The new attempt is ordered after what its session has
    /// seen.
    #[inline]
    pub(crate) fn start(&self, work: &mut Footprint<S>, attempt: Attempt) {
        work.reset(self.installs.is_some());
        self.scheme.follow(&mut work.observed, attempt.freshness.at_least);
    }

    /// Begins an attempt that takes more than one step, and returns its id.
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

    /// Ends an attempt that was begun: nothing will be sent for it any more.
    pub(crate) fn settled(&mut self, txn: TxnId) {
        self.votes.settle(txn.number, self.next_attempt());
    }

    /// The numbers of this shard's attempts in its present life, and those of them that are not
    /// settled, in order.
    pub(crate) fn own_attempts(&self) -> (Range<u64>, Vec<u64>) {
        self.votes.attempts(self.next_attempt())
    }

    /// Whether one of this shard's own attempts is settled.
    pub(crate) fn is_settled(&self, txn: TxnId) -> bool {
        self.votes.is_settled(txn.number, self.next_attempt())
    }

    /// How many votes this shard remembers, plus the transactions without a vote that hold locks
    /// here.
    pub fn votes(&self) -> usize {
        self.votes.entries()
    }

    /// How many votes this shard has given: RECORD, and REFUSE.
    pub fn votes_given(&self) -> [u64; 2] {
        self.votes.given()
    }

    /// Sets a limit of memory, which the shard's process shares.
    pub fn limit_memory(&mut self, memory: Arc<Memory>) {
        self.room = Room::limited(memory);
    }

    /// Whether there is memory for that many bytes, in terms of
    /// [`written_bytes`](plimsoll_store::written_bytes).
    #[inline]
    pub(crate) fn admit(&mut self, bytes: u64) -> Result<(), Abort> {
        self.room.admit(&self.store, bytes)
    }

    /// The same for writes that will be locked next.
    pub(crate) fn admit_writes<'a>(
        &mut self,
        writes: impl Iterator<Item = &'a Write>,
        values: Option<&Packed>,
    ) -> Result<(), Abort> {
        let mut writes = writes.peekable();
        // Deletions need no memory, but the log has to have room for them.
        if self.room.disk_is_full() && writes.peek().is_some() {
            return Err(Abort::DiskFull);
        }
        self.admit(grown_bytes(writes, values))
    }

    /// The clock was read. Messages of other processes are handled before a pass samples it, and
    /// after a long sleep the last sample is late.
    pub(crate) fn read_clock(&mut self, clock: Timestamp) {
        self.furthest.raise(Timestamp(clock.0.saturating_add(MAX_OFFSET_NS)));
    }

    /// The furthest stamp that this shard believes of another process.
    pub(crate) fn furthest(&self) -> Timestamp {
        self.furthest
    }

    /// Whether to order anything by a stamp that another shard names. Of another process a shard
    /// believes none that is further ahead of its clock than clocks may be apart: a mark there would
    /// push every later writer of the record as far ahead, and with it all that this writer writes.
    /// Asked where a stamp enters, never after a vote: what others may have committed is applied.
    #[inline]
    pub(crate) fn believe(&mut self, from: ShardId, stamp: Timestamp) -> Result<(), Abort> {
        match !S::CLOCKED || stamp <= self.furthest || planted(Mutant::BelievesAnyStamp) {
            true => Ok(()),
            false => self.doubt(from, stamp),
        }
    }

    #[cold]
    fn doubt(&mut self, from: ShardId, stamp: Timestamp) -> Result<(), Abort> {
        if !self.votes.in_another_process(from) {
            return Ok(());
        }
        self.counters.future_stamps += 1;
        let ahead_ns = stamp.0.saturating_sub(self.furthest.0).saturating_add(MAX_OFFSET_NS);
        self.suspect = Some(Suspect { from, ahead_ns });
        Err(Abort::ClockAhead)
    }

    /// The same for a stamp of which any part may be believed.
    pub(crate) fn believed(&mut self, from: ShardId, stamp: Timestamp) -> Timestamp {
        match self.believe(from, stamp) {
            Ok(()) => stamp,
            Err(_) => self.furthest,
        }
    }

    /// Whose stamp this shard has not believed since the last call.
    pub(crate) fn suspect(&mut self) -> Option<Suspect> {
        self.suspect.take()
    }

    /// Counts a refusal to a coordinator by its reason, and returns the reason.
    pub(crate) fn refused(&mut self, why: Abort) -> Abort {
        self.counters.refusals[why.index()] += 1;
        why
    }

    /// How many transactions this shard has voted for without knowing their outcome. Their locks
    /// stay until it knows.
    pub fn in_doubt(&self) -> usize {
        self.votes.in_doubt()
    }

    /// Gives a number to a transaction that ran in one step and aborted.
    #[cold]
    pub(crate) fn gave_up(&mut self, why: Abort) -> TxnId {
        let txn = self.next_id();
        self.step(txn, |_| What::Aborts(why));
        txn
    }

    /// The id that [`Base::next_id`] will return next.
    #[inline]
    pub(crate) fn coming(&self) -> TxnId {
        TxnId { coordinator: self.shard, number: self.attempts + 1 }
    }

    /// The shard that owns a slot.
    #[inline]
    pub fn owner(&self, slot: Slot) -> ShardId {
        self.layout.placement.shard(slot)
    }

    /// The shard that holds a key of a table. If the table is on every shard, this shard; if this
    /// shard holds no data, one that does.
    #[inline]
    pub fn home(&self, table: TableId, key: &Key) -> ShardId {
        match self.layout.tables[table.index()].partitioning.slot(key) {
            Some(slot) => self.owner(slot),
            None => self.copies,
        }
    }

    /// Whether all rows of a table are on this shard and never change.
    #[inline]
    pub fn at_hand(&self, table: TableId) -> bool {
        self.immutable(table) && self.everywhere(table) && self.has_copies
    }

    /// From now on this shard, which holds no data, reads immutable tables that are everywhere in
    /// its own copies, whose rows were loaded here.
    pub(crate) fn keep_copies(&mut self) {
        self.has_copies = true;
    }

    /// The shards other than `home` that must do a write of this table as well, because they have
    /// copies of it.
    pub fn other_copies(&self, table: TableId, home: ShardId) -> impl Iterator<Item = ShardId> + use<S> {
        let holders = self.everywhere(table).then(|| self.layout.placement.holders());
        let skipped = usize::from(planted(Mutant::CopyForgotten));
        let others = holders.into_iter().flatten().filter(move |&shard| shard != home);
        others.skip(skipped)
    }

    /// Whether a write of a record of this table must be done on several shards.
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

    /// Begins a pass with a sample of the clock. At intervals it publishes the low-water mark and
    /// drops garbage.
    pub(crate) fn pass(&mut self, clock: Timestamp) {
        self.read_clock(clock);
        self.clock = clock;
        self.scheme.tick(clock);
        self.tick_moves(clock);
        self.room.sweep(&self.store, clock);
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
            self.sweep(HELD_NS);
        }
    }

    /// Publishes the low-water mark and the snapshots that are active for `held_ns` or longer, and
    /// drops versions that no snapshot can read any more.
    fn sweep(&mut self, held_ns: u64) {
        let Some(watermark) = &mut self.watermark else { return };
        let now = self.clock;
        self.scheme.low(&mut self.low);
        for (_, active) in self.active.iter_mut().filter(|_| !planted(Mutant::HeldSnapshotForgotten)) {
            if !active.held && now.0 >= active.since.0.saturating_add(held_ns) {
                active.held = true;
                self.held_changed = true;
            }
            if !active.held {
                S::lower(&active.snapshot, &mut self.low);
            }
        }
        if std::mem::take(&mut self.held_changed) {
            let held = self.active.iter_mut().filter(|(_, active)| active.held);
            let holder = self.layout.first_shard(self.process);
            let held = held.map(|(_, active)| active.published::<S>(self.low.len(), holder));
            watermark.hold(held.filter(|held| held.first.iter().any(|&slot| slot < u64::MAX)).collect());
        }
        let held_changed = watermark.update(&mut self.low);
        self.scheme.raise(&self.low);
        if held_changed {
            self.store.hold(watermark.held());
        }
        self.store.collect(|stamp| S::passed(watermark.current(), stamp), S::passed);
    }

    /// Called before the shard sleeps: drops garbage, and publishes that it sleeps, so that it
    /// holds back no other shard's garbage but what its active snapshots see.
    pub(crate) fn park(&mut self) {
        self.sweep(0);
        self.room.count(&self.store);
        if !self.scheme.awaits_snapshot()
            && let Some(watermark) = &mut self.watermark
        {
            watermark.sleep();
        }
    }

    /// The channel to a shard of another process was connected, in this life, or was reset
    /// (`None`).
    pub(crate) fn connected(&mut self, peer: ShardId, life: Option<u64>) {
        self.follow(peer, life);
        let news = self.votes.connected(peer, life);
        if let Some((_, up)) = self.listeners.iter_mut().find(|(listener, _)| *listener == peer) {
            *up = life.is_some();
            self.listening = self.listeners.iter().filter(|(_, up)| *up).count();
        }
        if let (true, Some(watermark), Some(&process)) =
            (news, &mut self.watermark, self.layout.processes.get(peer.index()))
        {
            watermark.connected(process.into(), life);
            let absences = watermark.absences(process.into());
            self.absences[usize::from(process)].connected(life, self.store.floor(), absences);
        }
        if life.is_none() {
            self.release_stuck();
            let answers = self.inbox.as_mut().map(|inbox| inbox.disconnected(peer));
            self.send_session_messages(answers);
        }
        if Some(peer) == self.layout.placement.holders().next() {
            self.tells_again();
        }
        self.connected_moves(peer, life.is_some());
        self.early.retain(|(from, _)| *from != peer);
        self.scheme.connected(peer, life, &mut self.released);
    }

    /// A message of a session has come from a shard.
    pub(super) fn receive_session(&mut self, from: ShardId, message: &[u8]) {
        let answers = self.inbox.as_mut().map(|inbox| inbox.receive(from, message));
        self.send_session_messages(answers);
    }

    /// Sends messages of sessions, but none to shards that do not exist: the process that sent the
    /// message may have named them.
    fn send_session_messages(&mut self, messages: Option<Vec<(ShardId, Vec<u8>)>>) {
        let shards = self.layout.processes.len();
        let messages = messages.into_iter().flatten().filter(|(to, _)| to.index() < shards);
        self.session_messages.extend(messages);
    }

    /// Whether a shard is in this process.
    pub(crate) fn is_near(&self, shard: ShardId) -> bool {
        self.layout.processes.get(shard.index()).is_some_and(|&process| usize::from(process) == self.process)
    }

    /// By process: what the shard has forgotten until now without regard to that process's
    /// snapshots.
    pub(super) fn forgotten(&self) -> Vec<Timestamp> {
        let (floor, watermark) = (self.store.floor(), self.watermark.as_ref());
        let so_far = |(process, absence): (usize, &Absence)| {
            let absences = watermark.map_or(0, |watermark| watermark.absences(process));
            absence.so_far(floor, absences, watermark.and_then(|watermark| watermark.life(process)))
        };
        self.absences.iter().enumerate().map(so_far).collect()
    }

    /// When the shard must run a pass even if no message arrives.
    pub(crate) fn due(&self) -> Option<u64> {
        let every_ns = tell_every_ns(self.listening, self.asked);
        let tell = (self.listening > 0).then(|| self.told.0 + every_ns);
        let drop = match self.store.can_collect() {
            true => Some(0),
            false if self.store.garbage() > 0 && self.watermark.is_some() => {
                Some(self.swept.0 + IDLE_SWEEP_NS)
            }
            false => None,
        };
        let due = tell.into_iter().chain(drop);
        let votes = if self.serves_transactions() { self.votes.due() } else { None };
        due.chain(votes).chain(self.moves.due()).chain(self.scheme.due()).min()
    }

    /// Sends the shard's own messages at the end of a pass: watermark, moves, messages of
    /// sessions, requests to the oracle.
    pub(crate) fn outgoing(&mut self, mut send: impl FnMut(ShardId, Common<S>)) {
        if std::mem::take(&mut self.telling)
            && let Some(watermark) = &self.watermark
        {
            self.told = self.votes.clock();
            self.asked = false;
            let asks = watermark.take_wanted();
            for &(listener, _) in self.listeners.iter().filter(|(_, up)| *up) {
                let (low, held) = (watermark.here().to_vec(), watermark.held_here().to_vec());
                send(listener, Common::LowWater { low, held, asks });
            }
        }
        for (to, message) in self.outgoing_moves() {
            send(to, message);
        }
        for (to, message) in self.session_messages.drain(..) {
            send(to, Common::Session(message));
        }
        self.scheme.outgoing(&mut self.scheme_messages);
        self.counters.oracle_messages += self.scheme_messages.len() as u64;
        for (to, message) in self.scheme_messages.drain(..) {
            send(to, Common::Scheme(message));
        }
    }

    /// Registers a snapshot that outlives this step. The versions that it may read are kept until
    /// [`Base::release`].
    pub fn hold(&mut self, snapshot: S::Snapshot) -> u32 {
        self.active.insert(Active { snapshot, since: self.clock, held: false })
    }

    /// The oldest snapshot that is held, in this process or elsewhere. One that began a moment ago
    /// may be missing.
    pub fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        let held = self.store.kept();
        let oldest = held.map(|(held, kept)| OldestSnapshot { since: held.since, holder: held.holder, kept });
        oldest.min_by_key(|oldest| oldest.since)
    }

    /// Ends what [`Base::hold`] began.
    pub fn release(&mut self, held: u32) {
        if !planted(Mutant::HeldForEver)
            && let Some(active) = self.active.remove(held)
        {
            self.held_changed |= active.held;
        }
    }
}
