//! Atomic commit between processes: votes.
//!
//! The shards of one process share its fate, and what one sends to another arrives: a transaction
//! that holds all its locks, and whose reads are valid, is committed, and tells the others to
//! install. Between processes a channel can be reset and a process can end, so the shards that a
//! transaction writes *vote*. A vote is the first of two entries that a shard makes for a
//! transaction:
//!
//! * RECORD, if the transaction owns its locks there: a stamp, the writes, and who else votes;
//! * REFUSE, in every other state.
//!
//! The transaction is committed if all votes are RECORD, and aborted if one is REFUSE. Its stamp is
//! the largest of those in the votes: under 2PL they are all the one that the coordinator has
//! chosen, under client-driven two-phase commit each is what that shard needs
//! ([`crate::protocols::Client2pc`]), and so under OCC if the coordinator's shard votes last, with
//! the largest. There is no other record of it, and so the rules are few:
//!
//! 1. A coordinator may give up alone until it has sent its first RECORD, or as long as its own
//!    shard has not voted. From
//!    then on it *asks*: silence says nothing.
//! 2. Whoever is asked and has not voted refuses, and drops the transaction's locks.
//! 3. A shard whose locks are held by a transaction that has not voted refuses after a while by
//!    itself
//!    ([`PATIENCE_NS`]), so that a dead coordinator leaves no lock behind. After RECORD it may not:
//!    it asks the others.
//! 4. A vote is kept until everybody who votes knows the outcome and the coordinator will not ask
//!    again.
//!
//! Example. T writes on A and B and has locked both. RECORD reaches A; the channel to B is reset.
//! After a while B refuses, by itself or because A or T's coordinator asks. A had voted RECORD and
//! hears of B's refusal: it aborts. Had B voted and only its answer been lost, everybody who asks
//! would hear RECORD and commit.
//!
//! A shard that is written alone decides alone, and installs when it votes.
//!
//! *Forgetting.* A coordinator knows the least number of an attempt of its own that is not settled,
//! and tells those who may hold votes now and then ([`Request::Settled`]): all below is forgotten.
//! Numbers grow with the clock from process to process, so a coordinator that has begun a new life
//! says the same of its former ones, with one difference: not everybody need have heard of their
//! outcomes. Those who know one tell the others, and forget when all know.
//!
//! *Lives.* A process that ends takes its data and its votes with it, and a process that is started
//! again is another: it must not be asked how its former life has voted, and rows have other places
//! there. A channel connects two lives, so whoever sends knows whom it reaches
//! ([`plimsoll_runtime::Participant::connected`]); a transaction notes the life in which it met a
//! shard, and those who vote are named with theirs. A vote that was lost with its life is replaced
//! by what the others know. If nobody knows the outcome the transaction is aborted, under two
//! conditions: its coordinator has lost the vote itself, or its life is over as well; and all
//! others have promised not to commit any more because of what they were told before.
//!
//! What is said is in `messages`, what a coordinator does in `coordinator`; here is what a shard
//! does that votes. Votes are entries of a log in memory, and the shard is all its replicas. Left
//! out, therefore: terms, and what a promoted backup does.

mod coordinator;
mod messages;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use plimsoll_runtime::Handled;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{ShardId, Timestamp, TxnId};

use crate::fetched::ReadRef;
use crate::protocol::Interactive;
use crate::timestamp::{Inquiry, Scheme, SchemeConfig};
use crate::work::Packed;
pub(crate) use coordinator::{ask, conclude, decide, needed, voters};
pub use messages::{Outcome, Reply, Request, Vote};

/// How long a shard waits for word of a transaction that holds locks there before it does something
/// about it, in nanoseconds.
pub const PATIENCE_NS: u64 = 1_000_000_000;
/// A peer is told what is settled after so many transactions at the latest, or as many as are open
/// if they are more: what it is told may name them.
const SETTLED_MAX: usize = 16;

/// A protocol whose transactions vote, as its participants are seen from here.
pub(crate) trait Voter: Interactive {
    /// Whether the transaction owns the locks here that it was granted, and what it has read
    /// without locking it is still current; pins that.
    fn ready(&mut self, txn: TxnId, stamp: Timestamp, reads: &[ReadRef]) -> bool;

    /// Installs the writes and drops the locks.
    fn install(&mut self, txn: TxnId, stamp: Timestamp, writes: &Packed);

    /// Drops the locks.
    fn release(&mut self, txn: TxnId);
}

/// What a shard knows of a transaction of another process.
#[derive(Debug)]
enum State {
    /// It holds locks here.
    Open,
    /// The vote is RECORD, the outcome not known. The stamp is the largest of those in the votes it
    /// has heard of: who repeats it as its own vote does not change the largest of all.
    Recorded {
        stamp: Timestamp,
        writes: Packed,
        voters: Vec<(ShardId, u64)>,
        told: Vec<ShardId>,
        doubt: Doubt,
    },
    /// The vote is REFUSE.
    Refused,
    /// The vote was RECORD and the outcome is known; if it is committed, with this stamp.
    Known { stamp: Timestamp, committed: bool, voters: Vec<(ShardId, u64)>, told: Vec<ShardId> },
}

/// Whether a shard that has voted may commit because all others have told it that they have, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doubt {
    /// It may.
    No,
    /// It has promised not to: a vote is lost.
    Promised,
    /// Nor may anybody who has answered since: it asks for their promises itself.
    Asks,
}

#[derive(Debug)]
struct Entry {
    state: State,
    /// When something was last heard of it, by the shard's clock.
    heard: Timestamp,
    /// Whether it stands among those to be looked at.
    watched: bool,
}

/// What is known of a coordinator.
#[derive(Clone, Copy, Debug, Default)]
struct Settled {
    first: u64,
    below: u64,
}

/// The votes of a shard, and what it coordinates itself.
#[derive(Debug)]
pub struct Votes {
    shard: ShardId,
    /// By shard: its process.
    processes: Arc<[u16]>,
    /// By shard of another process: its life, as far as is known.
    lives: Vec<u64>,
    patience_ns: u64,
    clock: Timestamp,
    /// By coordinator and number.
    entries: BTreeMap<(ShardId, u64), Entry>,
    /// What something was heard of since the last pass: messages are handled before the clock is
    /// sampled.
    heard: Vec<TxnId>,
    /// Which entries to look at, in the order of when they were last heard of.
    watch: VecDeque<(Timestamp, TxnId)>,
    settled: BTreeMap<ShardId, Settled>,
    /// The first number of this shard's own attempts.
    first: u64,
    /// Own attempts that are not settled.
    open: BTreeSet<u64>,
    /// Who may hold something for own attempts: the largest number, and how many were settled since
    /// they were told.
    owed: BTreeMap<ShardId, (u64, usize)>,
    /// Shards of other processes that there is a channel to.
    up: BTreeSet<ShardId>,
    /// How many votes were given: RECORD, and REFUSE.
    given: [u64; 2],
    outgoing: Vec<(ShardId, Request)>,
}

impl State {
    /// The outcome, if it is known.
    fn outcome(&self) -> Option<Outcome> {
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
            up: BTreeSet::new(),
            given: [0; 2],
            outgoing: Vec::new(),
        }
    }

    /// Whether a shard is in another process than this one.
    #[inline]
    pub(crate) fn elsewhere(&self, shard: ShardId) -> bool {
        // The oracle and whoever is not named holds no data.
        let process = |shard: ShardId| self.processes.get(shard.index());
        process(shard) != process(self.shard)
    }

    /// Whether there are other processes.
    #[inline]
    pub(crate) fn distributed(&self) -> bool {
        self.processes.first() != self.processes.last()
    }

    /// Whether somebody who votes on a transaction, or coordinates it, is in another process than
    /// this shard. All of them come to the same answer.
    pub(crate) fn between_processes(&self, txn: TxnId, voters: impl IntoIterator<Item = ShardId>) -> bool {
        let mut others = voters.into_iter().chain([txn.coordinator]);
        self.distributed() && others.any(|shard| self.elsewhere(shard))
    }

    /// The present life of a shard. Nothing that is sent to it reaches another.
    #[inline]
    pub(crate) fn life(&self, shard: ShardId) -> u64 {
        match self.elsewhere(shard) {
            true => self.lives.get(shard.index()).copied().unwrap_or_default(),
            false => self.first,
        }
    }

    /// A shard of another process is connected, in this life, or is not any more. Returns whether
    /// that is news.
    pub(crate) fn connected(&mut self, peer: ShardId, life: Option<u64>) -> bool {
        if let (Some(known), Some(life)) = (self.lives.get_mut(peer.index()), life) {
            *known = life;
        }
        match life {
            Some(_) => self.up.insert(peer),
            None => self.up.remove(&peer),
        }
    }

    /// Whether there is a channel to a shard.
    pub(crate) fn reaches(&self, shard: ShardId) -> bool {
        !self.elsewhere(shard) || self.up.contains(&shard)
    }

    /// Whether a transaction's coordinator has begun a new life since. Then nothing comes from it
    /// any more.
    pub(crate) fn fenced(&self, txn: TxnId) -> bool {
        txn.number < self.first_of(txn.coordinator)
    }

    /// The first number of a coordinator's present life, as far as is known.
    fn first_of(&self, coordinator: ShardId) -> u64 {
        let told = self.settled.get(&coordinator).map_or(0, |settled| settled.first);
        self.life(coordinator).max(told)
    }

    /// How many transactions the shard has voted for whose outcome it does not know.
    pub fn in_doubt(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.state, State::Recorded { .. })).count()
    }

    /// How many votes were given: RECORD, and REFUSE.
    pub(crate) fn given(&self) -> [u64; 2] {
        self.given
    }

    /// Whether an attempt that an oracle asks about has been voted on here with an outcome that is
    /// not known, or holds locks.
    pub(crate) fn undecided(&self, Inquiry { of, below, locks }: Inquiry) -> bool {
        let mut entries = self.entries.range((of, 0)..(of, below));
        entries.any(|(_, entry)| match entry.state {
            State::Open => locks,
            State::Recorded { .. } => true,
            State::Refused | State::Known { .. } => false,
        })
    }

    /// How many votes and locks of other processes' transactions are remembered.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Begins an own attempt that takes more than one step.
    pub(crate) fn begin(&mut self, number: u64) {
        if self.distributed() {
            self.open.insert(number);
        }
    }

    /// A shard may hold something for an own attempt from now on.
    pub(crate) fn owe(&mut self, number: u64, shard: ShardId) {
        if shard == self.shard || !self.distributed() {
            return;
        }
        let (largest, _) = self.owed.entry(shard).or_default();
        *largest = number.max(*largest);
    }

    /// An own attempt is settled: it is nobody's in doubt, and nothing will be sent for it any
    /// more.
    pub(crate) fn settle(&mut self, number: u64, next: u64) {
        if !self.open.remove(&number) {
            return;
        }
        self.entries.remove(&(self.shard, number));
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

    /// All own attempts below this number are settled.
    fn below(&self, next: u64) -> u64 {
        self.open.first().copied().unwrap_or(next)
    }

    /// A transaction wants locks here. Returns false if it was refused already.
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

    /// The coordinator has given the transaction up before anybody voted, or its locks here were
    /// all it had here.
    pub(crate) fn close(&mut self, txn: TxnId) {
        self.entries.remove(&key(txn));
    }

    /// A transaction has committed that writes nowhere else.
    pub(crate) fn committed_alone(&mut self, txn: TxnId, stamp: Timestamp) {
        if self.elsewhere(txn.coordinator) {
            self.committed(txn, stamp, vec![(self.shard, self.first)]);
        }
    }

    /// A transaction has committed here because all others who vote had done so before.
    pub(crate) fn committed(&mut self, txn: TxnId, stamp: Timestamp, voters: Vec<(ShardId, u64)>) {
        self.enter(txn, State::Known { stamp, committed: true, voters, told: Vec::new() });
    }

    /// The own attempts of this life, and those of them that are not settled, in order. `next` is
    /// the number of the next one.
    pub(crate) fn attempts(&self, next: u64) -> (Range<u64>, Vec<u64>) {
        (self.first..next, self.open.iter().copied().collect())
    }

    /// Whether an own attempt of this life is settled.
    pub(crate) fn is_settled(&self, number: u64, next: u64) -> bool {
        (self.first..next).contains(&number) && !self.open.contains(&number)
    }

    /// How long a shard waits for word of a transaction before it does something about it, in
    /// nanoseconds.
    pub(crate) fn patience_ns(&self) -> u64 {
        self.patience_ns
    }

    /// The shard's clock.
    pub(crate) fn clock(&self) -> Timestamp {
        self.clock
    }

    /// When something has to be done that nobody will ask for.
    pub(crate) fn due(&self) -> Option<u64> {
        self.watch.front().map(|(heard, _)| heard.0 + self.patience_ns)
    }

    /// What is to be sent.
    pub(crate) fn outgoing(&mut self) -> impl Iterator<Item = (ShardId, Request)> + '_ {
        self.outgoing.drain(..)
    }

    /// Of what the coordinator has settled, nothing is remembered that somebody could still need.
    fn forget(&mut self, coordinator: ShardId) -> Vec<TxnId> {
        let Settled { first, below } = self.settled[&coordinator];
        let mut orphans = Vec::new();
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
            }
        }
        orphans
    }
}

fn key(txn: TxnId) -> (ShardId, u64) {
    (txn.coordinator, txn.number)
}

/// Handles a request.
pub(crate) fn handle<P: Voter>(node: &mut P, from: ShardId, request: &mut Request) -> Handled<Reply> {
    match request {
        Request::Record { txn, stamp, writes, reads, voters } => {
            let (writes, voters) = (std::mem::take(writes), std::mem::take(voters));
            Handled::Reply(Reply::Vote(record(node, *txn, *stamp, writes, reads, voters)))
        }
        Request::Outcome { txn, outcome } => {
            let votes = &node.base().votes;
            let recorded = matches!(votes.state(*txn), Some(State::Recorded { .. }));
            // Somebody was promised that the word of a coordinator whose life is over comes too
            // late.
            Handled::Reply(Reply::Outcome(
                match *outcome != Outcome::Aborted && recorded && votes.fenced(*txn) {
                    true => None,
                    false => Some(learn(node, *txn, *outcome).unwrap_or(*outcome)),
                },
            ))
        }
        Request::Doubt(txn) => {
            vote(node, *txn);
            Handled::Reply(Reply::Outcome(promise(node, *txn)))
        }
        Request::Ask(txn) => Handled::Reply(Reply::Vote(vote(node, *txn))),
        Request::Inquire { txn, outcome: known, doubt } => {
            if let Some(first) = *doubt {
                let settled = node.base().votes.settled.entry(txn.coordinator).or_default();
                settled.first = settled.first.max(first);
                promise(node, *txn);
            }
            if let Some(outcome) = *known {
                learn_from_voter(node, *txn, outcome);
            }
            let vote = match known {
                // Whoever has forgotten knew.
                Some(_) if !node.base().votes.entries.contains_key(&key(*txn)) => Vote::Refuse,
                _ => vote(node, *txn),
            };
            let votes = &mut node.base().votes;
            let outcome = match votes.state(*txn) {
                Some(state) => state.outcome(),
                None => *known,
            };
            let promised = doubt.is_some();
            votes.outgoing.push((from, Request::Told { txn: *txn, vote, outcome, promised }));
            Handled::Done
        }
        Request::Told { txn, vote, outcome, promised } => {
            told(node, from, *txn, *vote, *outcome, *promised);
            Handled::Done
        }
        Request::Remind => {
            let next = node.base().next_attempt();
            let votes = &mut node.base().votes;
            let settled = Request::Settled { first: votes.first, below: votes.below(next) };
            votes.outgoing.push((from, settled));
            Handled::Done
        }
        Request::Settled { first, below } => {
            let votes = &mut node.base().votes;
            let settled = votes.settled.entry(from).or_default();
            *settled = Settled { first: settled.first.max(*first), below: settled.below.max(*below) };
            for orphan in votes.forget(from) {
                node.release(orphan);
            }
            Handled::Done
        }
    }
}

/// The vote on a transaction whose locks are all held.
fn record<P: Voter>(
    node: &mut P,
    txn: TxnId,
    stamp: Timestamp,
    writes: Packed,
    reads: &[ReadRef],
    voters: Vec<(ShardId, u64)>,
) -> Vote {
    let base = node.base();
    let ready = base.votes.unvoted(txn) && !base.scheme.over(stamp) && node.ready(txn, stamp, reads);
    if !ready && !planted(Mutant::LateRecord) {
        return vote(node, txn);
    }
    enter_record(node, txn, stamp, writes, voters);
    Vote::Record(stamp)
}

/// Enters RECORD: the locks are held until the outcome is known. Who votes alone knows it.
pub(crate) fn enter_record<P: Voter>(
    node: &mut P,
    txn: TxnId,
    stamp: Timestamp,
    writes: Packed,
    voters: Vec<(ShardId, u64)>,
) {
    let told = Vec::new();
    let state = match voters.len() {
        1 => {
            node.install(txn, stamp, &writes);
            State::Known { stamp, committed: true, voters, told }
        }
        _ => State::Recorded { stamp, writes, voters, told, doubt: Doubt::No },
    };
    node.base().votes.enter(txn, state);
}

/// The vote, which is REFUSE if there was none.
pub(crate) fn vote<P: Voter>(node: &mut P, txn: TxnId) -> Vote {
    match node.base().votes.entries.get(&key(txn)).map(|entry| &entry.state) {
        Some(State::Recorded { stamp, .. } | State::Known { stamp, .. }) => Vote::Record(*stamp),
        Some(State::Refused) => Vote::Refuse,
        None | Some(State::Open) if planted(Mutant::RefusalNotPlanted) => Vote::Refuse,
        None | Some(State::Open) => {
            node.release(txn);
            node.base().votes.enter(txn, State::Refused);
            Vote::Refuse
        }
    }
}

/// From now on the shard does not commit because of what others have voted. Returns the outcome if
/// it is known.
fn promise<P: Voter>(node: &mut P, txn: TxnId) -> Option<Outcome> {
    let entry = node.base().votes.entries.get_mut(&key(txn))?;
    if let State::Recorded { doubt: doubt @ Doubt::No, .. } = &mut entry.state {
        *doubt = Doubt::Promised;
    }
    entry.state.outcome()
}

/// The outcome of a transaction is known. Returns what it has been here all along, or is from now
/// on; `None` if it was forgotten.
fn learn<P: Voter>(node: &mut P, txn: TxnId, outcome: Outcome) -> Option<Outcome> {
    let entry = node.base().votes.entries.get_mut(&key(txn))?;
    match std::mem::replace(&mut entry.state, State::Refused) {
        State::Recorded { stamp: voted, writes, voters, .. } => {
            let (stamp, committed) = match outcome {
                Outcome::Committed(stamp) => (stamp, true),
                Outcome::Aborted => (voted, false),
            };
            entry.state = State::Known { stamp, committed, voters, told: Vec::new() };
            node.base().counters.outcomes[usize::from(committed)] += 1;
            match committed {
                true => node.install(txn, stamp, &writes),
                false => node.release(txn),
            }
            Some(outcome)
        }
        known @ State::Known { .. } => {
            entry.state = known;
            entry.state.outcome()
        }
        // It says no, whatever the other says.
        State::Open | State::Refused => {
            node.release(txn);
            Some(Outcome::Aborted)
        }
    }
}

/// The same, and it was others who vote that knew it.
fn learn_from_voter<P: Voter>(node: &mut P, txn: TxnId, outcome: Outcome) {
    let base = node.base();
    let news = matches!(base.votes.state(txn), Some(State::Recorded { .. }));
    base.counters.outcomes_asked += u64::from(news);
    learn(node, txn, outcome);
}

/// Takes another vote into account: the stamp is the largest.
pub(crate) fn join(stamp: &mut Timestamp, vote: Timestamp) {
    if !planted(Mutant::VotesNotJoined) {
        stamp.raise(vote);
    }
}

/// Another who votes has told its vote.
fn told<P: Voter>(
    node: &mut P,
    from: ShardId,
    txn: TxnId,
    vote: Vote,
    outcome: Option<Outcome>,
    promised: bool,
) {
    let votes = &mut node.base().votes;
    let fenced = votes.fenced(txn);
    let Some(entry) = votes.entries.get_mut(&key(txn)) else { return };
    match &mut entry.state {
        State::Recorded { stamp, voters, told, doubt, .. } => {
            let mut outcome = outcome;
            match vote {
                Vote::Record(vote) => join(stamp, vote),
                Vote::Refuse => outcome = outcome.or(Some(Outcome::Aborted)),
            }
            if !told.contains(&from) && (promised || *doubt != Doubt::Asks) {
                told.push(from);
            }
            let all = *doubt == Doubt::No && told.len() + 1 == voters.len();
            if let Some(outcome) = outcome.or(all.then_some(Outcome::Committed(*stamp))) {
                learn_from_voter(node, txn, outcome);
            }
        }
        // A coordinator that lives may still ask. Who is the last to be told is seen when it is
        // looked at again.
        State::Known { told, .. }
            if (outcome.is_some() || vote == Vote::Refuse) && fenced && !told.contains(&from) =>
        {
            told.push(from);
        }
        _ => {}
    }
}

impl Votes {
    fn enter(&mut self, txn: TxnId, state: State) {
        self.given[usize::from(matches!(state, State::Refused))] += 1;
        self.heard.push(txn);
        let watched = self.entries.get(&key(txn)).is_some_and(|entry| entry.watched);
        self.entries.insert(key(txn), Entry { state, heard: self.clock, watched });
    }

    /// The clock was sampled.
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

    fn state(&self, txn: TxnId) -> Option<&State> {
        self.entries.get(&key(txn)).map(|entry| &entry.state)
    }

    /// Those who vote on a transaction with this shard and have not told it anything.
    fn others(&self, voters: &[(ShardId, u64)], told: &[ShardId]) -> Others {
        let mut others = Others::default();
        for &(voter, life) in voters.iter().filter(|(voter, _)| *voter != self.shard && !told.contains(voter))
        {
            match self.life(voter).cmp(&life) {
                Ordering::Equal => others.asked.push(voter),
                Ordering::Less => others.unknown = true,
                Ordering::Greater => others.gone = true,
            }
        }
        others
    }

    fn inquire(&mut self, voters: Vec<ShardId>, txn: TxnId, outcome: Option<Outcome>, doubt: Option<u64>) {
        let asked = voters.into_iter();
        self.outgoing.extend(asked.map(|voter| (voter, Request::Inquire { txn, outcome, doubt })));
    }

    /// The next entry of which nothing was heard for too long.
    fn overdue(&mut self) -> Option<TxnId> {
        while let Some(&(heard, txn)) = self.watch.front() {
            if heard.0 + self.patience_ns > self.clock.0 {
                return None;
            }
            self.watch.pop_front();
            let Some(entry) = self.entries.get(&key(txn)) else { continue };
            // It is looked at again after as long a time, or when what was heard since is as old.
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
}

/// Who is still to tell something.
#[derive(Default)]
struct Others {
    /// To be asked: they live the life that they vote in.
    asked: Vec<ShardId>,
    /// Whether the life of one has not been met yet.
    unknown: bool,
    /// Whether that of one is over, and its vote lost.
    gone: bool,
}

/// Asks the others for the outcome of a transaction that the shard has recorded. Returns true if
/// nobody knows it and nobody can come to know it any more.
fn doubts(votes: &mut Votes, txn: TxnId) -> bool {
    let fenced = votes.fenced(txn).then(|| votes.first_of(txn.coordinator));
    let Some(State::Recorded { voters, told, .. }) = votes.state(txn) else { return false };
    let gone = voters.iter().any(|&(voter, life)| votes.life(voter) > life && !told.contains(&voter));
    let Some(first) = fenced.filter(|_| gone) else {
        let others = votes.others(voters, told);
        votes.inquire(others.asked, txn, None, None);
        return false;
    };
    // What was told before could be out of date by now: only promises count.
    if let Some(Entry { state: State::Recorded { told, doubt, .. }, .. }) = votes.entries.get_mut(&key(txn))
        && std::mem::replace(doubt, Doubt::Asks) != Doubt::Asks
    {
        told.clear();
    }
    let Some(State::Recorded { voters, told, .. }) = votes.state(txn) else { return false };
    let others = votes.others(voters, told);
    let nobody = others.asked.is_empty() && !others.unknown;
    votes.inquire(others.asked, txn, None, Some(first));
    nobody
}

/// A new pass has begun: does something about transactions of which nothing is heard.
pub(crate) fn tick<P: Voter>(node: &mut P, clock: Timestamp) {
    node.base().votes.pass(clock);
    let mut reminded = Vec::new();
    while let Some(txn) = node.base().votes.overdue() {
        let votes = &mut node.base().votes;
        let me = votes.shard;
        let fenced = votes.fenced(txn);
        let entry = votes.entries.get(&key(txn)).expect("an overdue entry is there");
        match &entry.state {
            State::Open if planted(Mutant::WaitsForEver) => {}
            State::Open => {
                vote(node, txn);
            }
            State::Recorded { .. } if planted(Mutant::GivesUpInDoubt) => {
                learn(node, txn, Outcome::Aborted);
            }
            State::Recorded { .. } => {
                if doubts(votes, txn) {
                    learn_from_voter(node, txn, Outcome::Aborted);
                }
            }
            known @ State::Known { voters, told, .. } if fenced => {
                let (others, outcome) = (votes.others(voters, told), known.outcome());
                match others.asked.is_empty() && !others.unknown {
                    true => drop(votes.entries.remove(&key(txn))),
                    false => votes.inquire(others.asked, txn, outcome, None),
                }
            }
            State::Refused if fenced => {
                votes.entries.remove(&key(txn));
            }
            State::Known { .. } | State::Refused if txn.coordinator == me => {}
            State::Known { .. } | State::Refused => {
                if !reminded.contains(&txn.coordinator) {
                    reminded.push(txn.coordinator);
                    votes.outgoing.push((txn.coordinator, Request::Remind));
                }
            }
        }
    }
}
