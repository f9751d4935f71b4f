//! Ballots: what a shard knows of transactions that are voted on, and of its own transactions for
//! which other shards may hold locks or votes.
//!
//! [`crate::votes`] has the rules of voting and says why they suffice. This module keeps the state
//! that the rules work on, and knows no protocol:
//!
//! * *Ballots* (`State`), one for each transaction of another process that holds locks here or was
//!   voted on here, with the time when the shard last heard of it.
//! * *Own attempts*: which of them are not settled, and which peers must be told.
//! * *Peers*: the life that each is in, and whether there is a channel to it.
//!
//! The messages about votes are in `messages`.

mod messages;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{ShardId, Timestamp, TxnId};

use crate::service::Inquiry;
use crate::timestamp::SchemeConfig;
use crate::work::Packed;
pub use messages::{Outcome, Reply, Request, Vote};

/// Limit on the transactions that settle before a peer is told, or the number of open ones if that
/// is larger: the peer may hold votes or locks of the settled transactions.
const SETTLED_MAX: usize = 16;

/// What a shard knows of a transaction of another process.
#[derive(Debug)]
pub(crate) enum State {
    /// It holds locks here, and this shard has not voted on it.
    Open,
    /// The vote is RECORD, the outcome is not known. The stamp is the largest of all votes that
    /// this shard has heard of. The shard may repeat it as its own vote, because that does not
    /// change the largest stamp of all votes.
    Recorded {
        stamp: Timestamp,
        writes: Packed,
        voters: Vec<(ShardId, u64)>,
        told: Vec<ShardId>,
        doubt: Doubt,
    },
    /// The vote is REFUSE.
    Refused,
    /// The vote was RECORD and the outcome is known; if it is committed, this is its stamp.
    Known { stamp: Timestamp, committed: bool, voters: Vec<(ShardId, u64)>, told: Vec<ShardId> },
}

/// Whether a shard that voted RECORD may commit because all other voters have told it that they
/// voted RECORD too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    /// It may.
    No,
    /// It has promised not to: another shard's vote is lost.
    Promised,
    /// It has promised not to, and counts only voters that have promised the same: it asks them
    /// itself.
    Asks,
}

#[derive(Debug)]
struct Entry {
    state: State,
    /// When the shard last heard of the transaction, by the shard's clock.
    heard: Timestamp,
    /// Whether the entry stands in `Votes::watch`.
    watched: bool,
}

/// What a coordinator has said: the first number of its present life, and the number below which
/// all its attempts are settled.
#[derive(Clone, Copy, Debug, Default)]
struct Settled {
    first: u64,
    below: u64,
}

/// The votes of a shard, and the attempts that it coordinates itself.
#[derive(Debug)]
pub struct Votes {
    shard: ShardId,
    /// By shard: its process.
    processes: Arc<[u16]>,
    /// By shard of another process: its life, as far as this shard knows.
    lives: Vec<u64>,
    patience_ns: u64,
    clock: Timestamp,
    /// By coordinator and attempt number.
    entries: BTreeMap<(ShardId, u64), Entry>,
    /// Transactions that the shard has heard of since the last pass. Their time is set at the next
    /// pass: messages are handled before the clock is sampled.
    heard: Vec<TxnId>,
    /// Entries to check for silence, in the order of the times when they were last heard of.
    watch: VecDeque<(Timestamp, TxnId)>,
    settled: BTreeMap<ShardId, Settled>,
    /// The first number of this shard's own attempts.
    first: u64,
    /// Own attempts that are not settled.
    open: BTreeSet<u64>,
    /// Shards that may hold locks or votes of own attempts: the largest such attempt, and how many
    /// attempts were settled since the shard was told.
    owed: BTreeMap<ShardId, (u64, usize)>,
    /// Own attempts whose outcome depends on a vote that was asked for in vain.
    pub(crate) doubtful: BTreeSet<u64>,
    /// Shards of other processes with a channel to this one.
    up: BTreeSet<ShardId>,
    /// Shards whose channels were reset since the last pass.
    pub(crate) lost: BTreeSet<ShardId>,
    /// How many votes were given: RECORD, and REFUSE.
    given: [u64; 2],
    outgoing: Vec<(ShardId, Request)>,
    /// Whether the shards that hold data log their votes, so that these outlive them.
    logs: bool,
    /// Whether transactions are decided by what is in logs, and not by who is alive.
    outlives: bool,
    /// If this shard logs: what of the above has changed since the last pass.
    changed: Option<Changed>,
}

/// What a shard must write to its log about votes.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// Ballots: votes that were given, outcomes, and votes that were forgotten one by one.
    pub(crate) ballots: BTreeSet<(ShardId, u64)>,
    /// Coordinators whose settled attempts were forgotten.
    pub(crate) settled: BTreeSet<ShardId>,
}

impl State {
    /// The outcome, if it is known.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self {
            State::Recorded { .. } | State::Open => None,
            State::Known { stamp, committed: true, .. } => Some(Outcome::Committed(*stamp)),
            State::Known { .. } | State::Refused => Some(Outcome::Aborted),
        }
    }
}

impl Votes {
    pub(crate) fn new(config: &SchemeConfig, processes: Arc<[u16]>) -> Votes {
        Votes {
            shard: config.shard,
            lives: vec![0; processes.len()],
            processes,
            patience_ns: config.patience_ns,
            clock: Timestamp::ZERO,
            entries: BTreeMap::new(),
            heard: Vec::new(),
            watch: VecDeque::new(),
            settled: BTreeMap::new(),
            first: config.first_attempt,
            open: BTreeSet::new(),
            owed: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            up: BTreeSet::new(),
            lost: BTreeSet::new(),
            given: [0; 2],
            outgoing: Vec::new(),
            logs: false,
            outlives: false,
            changed: None,
        }
    }

    /// Whether a shard that comes back may have what its former life has committed.
    pub(crate) fn outlives(&self) -> bool {
        self.outlives && !planted(Mutant::VotesEndWithLives)
    }

    /// From now on each shard of the database is a fate of its own, and votes outlive a process;
    /// those of this shard too, if it has data.
    pub(super) fn log(&mut self, here: bool) {
        self.logs = true;
        self.outlives = true;
        self.changed = here.then(Changed::default);
    }

    /// From now on nobody decides a transaction because a voter has come back without its vote: the
    /// versions of the voter may be below the cut, to which all go back before they serve again.
    pub(super) fn go_back(&mut self) {
        self.outlives = true;
    }

    /// Whether there is something that the log must hear of.
    pub(super) fn has_changed(&self) -> bool {
        let changed = self.changed.as_ref();
        changed.is_some_and(|changed| !changed.ballots.is_empty() || !changed.settled.is_empty())
    }

    /// What has changed since the last call.
    pub(super) fn take_changed(&mut self) -> Changed {
        self.changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes that the log must hear of a ballot.
    fn note(&mut self, ballot: (ShardId, u64)) {
        if let Some(changed) = &mut self.changed {
            changed.ballots.insert(ballot);
        }
    }

    /// Puts back a ballot that the log has, or takes it out.
    pub(super) fn restore(&mut self, txn: TxnId, state: Option<State>) {
        match state {
            Some(state) => {
                self.heard.push(txn);
                let entry = Entry { state, heard: self.clock, watched: false };
                self.entries.insert(key(txn), entry);
            }
            None => drop(self.entries.remove(&key(txn))),
        }
    }

    /// All ballots are back. Voters on transactions that were in doubt are asked at once.
    pub(super) fn restored(&mut self) {
        let recorded = self.entries.iter().filter(|(_, entry)| matches!(entry.state, State::Recorded { .. }));
        self.lost.extend(recorded.map(|(&(coordinator, _), _)| coordinator));
    }

    /// Transactions with the vote RECORD and no outcome.
    pub(super) fn recorded(&self) -> impl Iterator<Item = TxnId> {
        let recorded = self.entries.iter().filter(|(_, entry)| matches!(entry.state, State::Recorded { .. }));
        recorded.map(|(&(coordinator, number), _)| TxnId { coordinator, number })
    }

    /// All transactions of which there is a ballot.
    pub(super) fn all(&self) -> impl Iterator<Item = TxnId> {
        self.entries.keys().map(|&(coordinator, number)| TxnId { coordinator, number })
    }

    /// Coordinators that have said what of their attempts is settled.
    pub(super) fn settled_coordinators(&self) -> impl Iterator<Item = ShardId> {
        self.settled.keys().copied()
    }

    /// Forgets all ballots, and what coordinators have said.
    pub(super) fn forget_all(&mut self) {
        self.entries.clear();
        self.settled.clear();
        self.heard.clear();
        self.changed = self.changed.as_ref().map(|_| Changed::default());
    }

    /// What a coordinator has said of its attempts: the first of its present life, and the number
    /// below which all are settled.
    pub(super) fn told_settled(&self, coordinator: ShardId) -> (u64, u64) {
        self.settled.get(&coordinator).map_or((0, 0), |settled| (settled.first, settled.below))
    }

    /// Whether a shard can lose what it knows while this one does not: it is in another process or,
    /// if shards log, has another log. Such shards commit by votes.
    #[inline]
    pub(crate) fn elsewhere(&self, shard: ShardId) -> bool {
        match self.logs && !planted(Mutant::OneFate) {
            true => shard != self.shard,
            false => self.in_another_process(shard),
        }
    }

    /// Whether a shard is in another process than this one.
    #[inline]
    pub(crate) fn in_another_process(&self, shard: ShardId) -> bool {
        // The oracle, and a shard that is not listed, hold no data.
        let process = |shard: ShardId| self.processes.get(shard.index());
        process(shard) != process(self.shard)
    }

    /// Whether any shard is [`Votes::elsewhere`].
    #[inline]
    pub(crate) fn distributed(&self) -> bool {
        match self.logs {
            true => self.processes.len() > 1,
            false => self.processes.first() != self.processes.last(),
        }
    }

    /// Whether a voter of a transaction, or its coordinator, is [`Votes::elsewhere`]. All of these
    /// shards come to the same answer.
    pub(crate) fn between_processes(&self, txn: TxnId, voters: impl IntoIterator<Item = ShardId>) -> bool {
        let mut others = voters.into_iter().chain([txn.coordinator]);
        self.distributed() && others.any(|shard| self.elsewhere(shard))
    }

    /// The present life of a shard. A message to it reaches only this life.
    #[inline]
    pub(crate) fn life(&self, shard: ShardId) -> u64 {
        match self.in_another_process(shard) {
            true => self.lives.get(shard.index()).copied().unwrap_or_default(),
            false => self.first,
        }
    }

    /// What a shard's votes last for: its life or, if shards log, its log, which outlives it.
    #[inline]
    pub(crate) fn lineage(&self, shard: ShardId) -> u64 {
        if self.outlives() { 0 } else { self.life(shard) }
    }

    /// The channel to a shard of another process was connected, in this life, or was reset
    /// (`None`). Returns whether this is a change.
    pub(crate) fn connected(&mut self, peer: ShardId, life: Option<u64>) -> bool {
        if let (Some(known), Some(life)) = (self.lives.get_mut(peer.index()), life) {
            *known = life;
        }
        match life {
            Some(_) => self.up.insert(peer),
            None => {
                self.lost.insert(peer);
                self.up.remove(&peer)
            }
        }
    }

    /// Whether there is a channel to a shard.
    pub(crate) fn reaches(&self, shard: ShardId) -> bool {
        !self.in_another_process(shard) || self.up.contains(&shard)
    }

    /// Whether a transaction holds locks here until an outcome is known that depends on the vote of
    /// a shard without a channel to this one.
    pub(crate) fn is_stuck(&self, txn: TxnId) -> bool {
        match self.state(txn) {
            Some(State::Recorded { voters, .. }) => voters.iter().any(|(voter, _)| !self.reaches(*voter)),
            _ => false,
        }
    }

    /// A coordinator's transactions whose locks are held here and whose outcome is not known.
    pub(crate) fn undecided_of(&self, coordinator: ShardId) -> Vec<TxnId> {
        let entries = self.entries.range((coordinator, 0)..=(coordinator, u64::MAX));
        let undecided = entries.filter(|(_, entry)| entry.state.outcome().is_none());
        undecided.map(|(&(coordinator, number), _)| TxnId { coordinator, number }).collect()
    }

    /// Whether a transaction's coordinator has begun a new life since. Then no message comes from
    /// its old life any more.
    pub(crate) fn fenced(&self, txn: TxnId) -> bool {
        txn.number < self.first_of(txn.coordinator)
    }

    /// The first attempt number of a coordinator's present life, as far as this shard knows.
    fn first_of(&self, coordinator: ShardId) -> u64 {
        let told = self.settled.get(&coordinator).map_or(0, |settled| settled.first);
        self.life(coordinator).max(told)
    }

    /// How many transactions the shard has voted RECORD on without knowing their outcome.
    pub fn in_doubt(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.state, State::Recorded { .. })).count()
    }

    /// How many votes were given: RECORD, and REFUSE.
    pub(crate) fn given(&self) -> [u64; 2] {
        self.given
    }

    /// Whether an attempt that an oracle asks about is undecided here: this shard has voted RECORD
    /// and does not know the outcome or, if the inquiry counts locks, the attempt holds locks.
    pub(crate) fn undecided(&self, Inquiry { of, below, locks }: Inquiry) -> bool {
        let mut entries = self.entries.range((of, 0)..(of, below));
        entries.any(|(_, entry)| match entry.state {
            State::Open => locks,
            State::Recorded { .. } => true,
            State::Refused | State::Known { .. } => false,
        })
    }

    /// How many transactions of other processes have a vote or locks here.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Begins an own attempt that takes more than one step.
    pub(crate) fn begin(&mut self, number: u64) {
        if self.distributed() {
            self.open.insert(number);
        }
    }

    /// Notes that a shard may hold locks or votes of an own attempt from now on.
    pub(crate) fn owe(&mut self, number: u64, shard: ShardId) {
        if shard == self.shard || !self.distributed() {
            return;
        }
        let (largest, _) = self.owed.entry(shard).or_default();
        *largest = number.max(*largest);
    }

    /// An own attempt is settled: no shard is in doubt about it, and nothing will be sent for it
    /// any more.
    pub(crate) fn settle(&mut self, number: u64, next: u64) {
        if !self.open.remove(&number) {
            return;
        }
        if self.entries.remove(&(self.shard, number)).is_some() {
            self.note((self.shard, number));
        }
        let (first, below) = (self.first, self.below(next));
        let often = SETTLED_MAX.max(self.open.len());
        self.owed.retain(|&shard, (largest, settled)| {
            *settled += 1;
            if below > *largest || *settled >= often {
                *settled = 0;
                self.outgoing.push((shard, Request::Settled { first, below }));
            }
            below <= *largest
        });
    }

    /// Tells a peer which own attempts are settled.
    pub(crate) fn tell_settled(&mut self, to: ShardId, next: u64) {
        self.send(to, Request::Settled { first: self.first, below: self.below(next) });
    }

    /// A coordinator's present life begins with the number `first`, and all its attempts below
    /// `below` are settled.
    pub(crate) fn hear_settled(&mut self, coordinator: ShardId, first: u64, below: u64) {
        let settled = self.settled.entry(coordinator).or_default();
        *settled = Settled { first: settled.first.max(first), below: settled.below.max(below) };
    }

    /// Queues a request, to be sent at the end of the pass.
    pub(crate) fn send(&mut self, to: ShardId, request: Request) {
        self.outgoing.push((to, request));
    }

    /// The number below which all own attempts are settled.
    fn below(&self, next: u64) -> u64 {
        self.open.first().copied().unwrap_or(next)
    }

    /// Called when a transaction asks for locks here. Returns false if this shard has voted on it
    /// already, or its coordinator has settled it.
    pub(crate) fn admit(&mut self, txn: TxnId) -> bool {
        if !self.elsewhere(txn.coordinator) {
            return true;
        }
        let below = self.settled.get(&txn.coordinator).map_or(0, |settled| settled.below);
        if txn.number < below {
            return false;
        }
        self.heard.push(txn);
        let new = || Entry { state: State::Open, heard: self.clock, watched: false };
        matches!(self.entries.entry(key(txn)).or_insert_with(new).state, State::Open)
    }

    /// Forgets a transaction: its coordinator has aborted it before any shard voted, or it had
    /// nothing here but locks, or all voters know the outcome.
    pub(crate) fn close(&mut self, txn: TxnId) {
        let closed = self.entries.remove(&key(txn));
        if closed.is_some_and(|entry| !matches!(entry.state, State::Open)) {
            self.note(key(txn));
        }
    }

    /// Enters that a transaction has committed that writes on this shard only.
    pub(crate) fn committed_alone(&mut self, txn: TxnId, stamp: Timestamp) {
        if self.elsewhere(txn.coordinator) {
            self.committed(txn, stamp, vec![(self.shard, self.lineage(self.shard))]);
        }
    }

    /// Enters that a transaction has committed here because all other voters had voted RECORD
    /// before.
    pub(crate) fn committed(&mut self, txn: TxnId, stamp: Timestamp, voters: Vec<(ShardId, u64)>) {
        self.enter(txn, State::Known { stamp, committed: true, voters, told: Vec::new() });
    }

    /// The numbers of own attempts in this life, and those of them that are not settled, in order.
    /// `next` is the number of the next attempt.
    pub(crate) fn attempts(&self, next: u64) -> (Range<u64>, Vec<u64>) {
        (self.first..next, self.open.iter().copied().collect())
    }

    /// Whether an own attempt of this life is settled.
    pub(crate) fn is_settled(&self, number: u64, next: u64) -> bool {
        (self.first..next).contains(&number) && !self.open.contains(&number)
    }

    /// How long a shard waits for news of a transaction before it acts on its own, in nanoseconds.
    pub(crate) fn patience_ns(&self) -> u64 {
        self.patience_ns
    }

    /// The shard's clock.
    pub(crate) fn clock(&self) -> Timestamp {
        self.clock
    }

    /// When the shard must run a pass even if no message arrives.
    pub(crate) fn due(&self) -> Option<u64> {
        self.watch.front().map(|(heard, _)| heard.0 + self.patience_ns)
    }

    /// Takes the queued requests, to be sent.
    pub(crate) fn outgoing(&mut self) -> impl Iterator<Item = (ShardId, Request)> + '_ {
        self.outgoing.drain(..)
    }

    /// Forgets a coordinator's settled transactions, except where another voter may still need the
    /// outcome. Returns those that still held locks here.
    pub(crate) fn forget(&mut self, coordinator: ShardId) -> Vec<TxnId> {
        let Settled { first, below } = self.settled[&coordinator];
        let (mut orphans, mut voted) = (Vec::new(), false);
        let settled = self.entries.extract_if(
            (coordinator, 0)..(coordinator, below),
            |&(_, number), entry| match entry.state {
                State::Open => true,
                State::Refused | State::Known { .. } if planted(Mutant::VotesKept) => false,
                State::Refused => true,
                State::Known { .. } => number >= first,
                State::Recorded { .. } => false,
            },
        );
        for ((coordinator, number), entry) in settled {
            if let State::Open = entry.state {
                orphans.push(TxnId { number, coordinator });
            } else {
                voted = true;
            }
        }
        if let (true, Some(changed)) = (voted, &mut self.changed) {
            changed.settled.insert(coordinator);
        }
        orphans
    }

    /// Enters the vote of this shard.
    pub(crate) fn enter(&mut self, txn: TxnId, state: State) {
        self.given[usize::from(matches!(state, State::Refused))] += 1;
        self.note(key(txn));
        self.heard.push(txn);
        let watched = self.entries.get(&key(txn)).is_some_and(|entry| entry.watched);
        self.entries.insert(key(txn), Entry { state, heard: self.clock, watched });
    }

    /// A pass has begun with this sample of the clock.
    pub(crate) fn pass(&mut self, clock: Timestamp) {
        self.clock = clock;
        for txn in self.heard.drain(..) {
            if let Some(entry) = self.entries.get_mut(&key(txn)) {
                entry.heard = clock;
                if !std::mem::replace(&mut entry.watched, true) {
                    self.watch.push_back((clock, txn));
                }
            }
        }
    }

    /// Whether the shard has no vote on a transaction yet.
    pub(crate) fn unvoted(&self, txn: TxnId) -> bool {
        matches!(self.state(txn), None | Some(State::Open))
    }

    /// What the shard knows of a transaction.
    pub(crate) fn state(&self, txn: TxnId) -> Option<&State> {
        self.entries.get(&key(txn)).map(|entry| &entry.state)
    }

    /// The state of a transaction, to note what other voters have told. The log need not have that: after
    /// a restart the shard asks them again.
    pub(crate) fn hearsay_mut(&mut self, txn: TxnId) -> Option<&mut State> {
        self.entries.get_mut(&key(txn)).map(|entry| &mut entry.state)
    }

    /// The same, to be changed by news of it.
    pub(crate) fn state_mut(&mut self, txn: TxnId) -> Option<&mut State> {
        let entry = self.entries.get_mut(&key(txn))?;
        if let Some(changed) = &mut self.changed {
            changed.ballots.insert(key(txn));
        }
        Some(&mut entry.state)
    }

    /// The other voters on a transaction that have not told this shard anything.
    pub(crate) fn others(&self, voters: &[(ShardId, u64)], told: &[ShardId]) -> Others {
        let mut others = Others::default();
        for &(voter, life) in voters.iter().filter(|(voter, _)| *voter != self.shard && !told.contains(voter))
        {
            match self.lineage(voter).cmp(&life) {
                Ordering::Equal => others.asked.push(voter),
                Ordering::Less => others.unknown = true,
                Ordering::Greater => others.gone = true,
            }
        }
        others
    }

    /// Asks other voters on a transaction what they know.
    pub(crate) fn inquire(
        &mut self,
        voters: Vec<ShardId>,
        txn: TxnId,
        outcome: Option<Outcome>,
        doubt: Option<u64>,
    ) {
        let asked = voters.into_iter();
        self.outgoing.extend(asked.map(|voter| (voter, Request::Inquire { txn, outcome, doubt })));
    }

    /// The next entry that the shard has not heard of for `patience_ns`.
    pub(crate) fn overdue(&mut self) -> Option<TxnId> {
        while let Some(&(heard, txn)) = self.watch.front() {
            if heard.0 + self.patience_ns > self.clock.0 {
                return None;
            }
            self.watch.pop_front();
            let Some(entry) = self.entries.get(&key(txn)) else { continue };
            // Check it again `patience_ns` after now, or after the time when it was last heard of.
            let (again, late) = match entry.heard > heard {
                true => (entry.heard, false),
                false => (self.clock, true),
            };
            let place = self.watch.partition_point(|(other, _)| *other <= again);
            self.watch.insert(place, (again, txn));
            if late {
                self.entries.get_mut(&key(txn)).expect("it was there").heard = again;
                return Some(txn);
            }
        }
        None
    }

    /// Asks the other voters for the outcome of a transaction that this shard has recorded. Returns
    /// true if no voter knows the outcome and none can learn it any more.
    pub(crate) fn doubts(&mut self, txn: TxnId) -> bool {
        let fenced = self.fenced(txn).then(|| self.first_of(txn.coordinator));
        let Some(State::Recorded { voters, told, .. }) = self.state(txn) else { return false };
        let gone = voters.iter().any(|&(voter, life)| self.lineage(voter) > life && !told.contains(&voter));
        let Some(first) = fenced.filter(|_| gone) else {
            let others = self.others(voters, told);
            self.inquire(others.asked, txn, None, None);
            return false;
        };
        // Earlier answers may be out of date: from now on only promises count.
        if let Some(Entry { state: State::Recorded { told, doubt, .. }, .. }) =
            self.entries.get_mut(&key(txn))
            && std::mem::replace(doubt, Doubt::Asks) != Doubt::Asks
        {
            told.clear();
        }
        let Some(State::Recorded { voters, told, .. }) = self.state(txn) else { return false };
        let others = self.others(voters, told);
        let nobody = others.asked.is_empty() && !others.unknown;
        self.inquire(others.asked, txn, None, Some(first));
        nobody
    }
}

/// The voters that have not told anything yet.
#[derive(Default)]
pub(crate) struct Others {
    /// Those to ask: they are still in the life in which they vote.
    pub(crate) asked: Vec<ShardId>,
    /// Whether this shard has not yet heard of the life in which one of them votes.
    pub(crate) unknown: bool,
    /// Whether one of these lives is over, and the vote lost.
    gone: bool,
}

fn key(txn: TxnId) -> (ShardId, u64) {
    (txn.coordinator, txn.number)
}
