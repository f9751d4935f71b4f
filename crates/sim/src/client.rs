//! What clients of all workloads have in common: a shard, random numbers, a session, and a record
//! of what came of their transactions.

use std::rc::Rc;

use plimsoll_txn::any_shard::{AnyShard, Coordinator, InteractiveShard};
use plimsoll_txn::attempt::{Attempt, Committed};
use plimsoll_txn::executable::AnyProcedure;
use plimsoll_txn::pairs::Pair;
use plimsoll_txn::timestamp::Freshness;
use plimsoll_types::history::Transaction as Recorded;
use plimsoll_types::random::Rng;
use plimsoll_types::{Abort, ColumnGroup, Key, Timestamp, TxnId};
use plimsoll_workloads::{AnyAudit, Tally};

use crate::workload::append::{Attempted, End};

/// Attempts of a procedure before its client turns to something else, at most.
const ATTEMPTS: usize = 200;
/// The longest pause after a first attempt, in nanoseconds, unless the attempt took longer, or the
/// client's last commit did. The pause is drawn, and the longest possible one is twice as long
/// after each further attempt: what is in the way stays for about as long as a transaction takes
/// that gets through, or as a partition lasts. All of it [`Client::pauses`] times.
const BACK_OFF_NS: u64 = 100_000;
const BACK_OFF_DOUBLINGS: usize = 8;
/// The longest pause, in nanoseconds, however long attempts take.
const BACK_OFF_MAX_NS: u64 = BACK_OFF_NS << BACK_OFF_DOUBLINGS;

/// Everything that one transaction saw, as its client saw it: row and number.
pub type Seen = Vec<(ColumnGroup, Key, u64)>;

/// The time at which an outside observer sees transactions begin and end, in nanoseconds.
pub trait Observer: Clone + 'static {
    /// Now, for a client whose shard sampled its clock as `sample` at the beginning of the present
    /// pass.
    fn began(&self, sample: Timestamp) -> u64;
    /// Now, for a client that has just been answered.
    fn ended(&self) -> u64;
    /// Now, for the order of all that clients do: later than at every call before, by whichever
    /// client, if the observer can tell.
    fn moment(&self) -> u64 {
        self.ended()
    }
    /// A transaction that has committed, before anything else happens.
    fn recorded(&self, _: &Recorded) {}
}

/// An attempt that a client has made.
#[derive(Clone, Copy, Debug)]
pub struct AttemptRecord {
    /// Its number, if it did not fail before it had one.
    pub id: Option<TxnId>,
    /// Whose it was.
    pub session: u32,
    /// The type of the transaction.
    pub label: &'static str,
    /// Why it has failed, if its client was told.
    pub why: Option<Abort>,
}

/// What clients leave behind.
#[derive(Clone, Debug, Default)]
pub struct ClientResults {
    /// All attempts, each client's in its order.
    pub attempts: Vec<AttemptRecord>,
    /// Committed transactions, each client's in its order.
    pub transactions: Vec<Recorded>,
    /// By committed transaction: the number it wrote, and what it saw that was not its own.
    pub values: Vec<(TxnId, u64, Seen)>,
    /// Attempts of read-only transactions that aborted.
    pub read_only_aborts: u64,
    /// Attempts of read-write transactions that aborted.
    pub aborts: u64,
    /// What must not happen: in a snapshot, which `rc` does not have.
    pub torn: Vec<String>,
    /// What must not happen under any scheme.
    pub broken: Vec<String>,
    /// What committed transactions of a benchmark's workload add up to.
    pub tally: Tally,
    /// What attempts of list-append did.
    pub appended: Vec<Attempted>,
    /// What transactions of sessions of SQL did.
    #[cfg(feature = "sql")]
    pub deeds: crate::sql::deed::Deeds,
    /// Attempts whose client crashed before it was answered.
    pub in_doubt: Vec<TxnId>,
    /// Transactions that were answered and lost, as the durability allows.
    pub lost: u64,
}

impl ClientResults {
    /// Takes what another client has left.
    pub fn join(&mut self, mut other: ClientResults) {
        self.attempts.append(&mut other.attempts);
        self.transactions.append(&mut other.transactions);
        self.values.append(&mut other.values);
        self.read_only_aborts += other.read_only_aborts;
        self.aborts += other.aborts;
        self.torn.append(&mut other.torn);
        self.broken.append(&mut other.broken);
        self.appended.append(&mut other.appended);
        #[cfg(feature = "sql")]
        self.deeds.join(other.deeds);
        self.in_doubt.append(&mut other.in_doubt);
        self.lost += other.lost;
        self.tally.add(&other.tally);
    }
}

/// A shard whose protocol runs transactions whose operations come one by one.
pub(crate) fn interactive(shard: &dyn AnyShard) -> &dyn InteractiveShard {
    shard.interactive().expect("a workload runs under the protocols that its transactions need")
}

/// One client.
pub struct Client<O> {
    /// The shard that it runs on.
    pub shard: Rc<dyn AnyShard>,
    /// The pair of that shard.
    pub(crate) pair: Pair,
    /// What the record of its transactions is timed by.
    pub observer: O,
    /// Its random numbers.
    pub rng: Rng,
    /// Its session's number.
    pub session: u32,
    /// The largest timestamp its session was told of.
    pub token: Timestamp,
    /// How many times as long as usual it pauses before another attempt.
    pub pauses: u64,
    /// Whether half of its scans are in descending order.
    pub either_order: bool,
    /// The last of its audits of a benchmark's workload that has committed.
    pub(crate) last_audit: Option<Box<dyn AnyAudit>>,
    /// What it leaves behind.
    pub left: ClientResults,
    numbers: u64,
    /// The attempt that has begun and is not over.
    present: Option<TxnId>,
    /// How long its last commit has taken, in nanoseconds.
    lasted_ns: u64,
    /// What runs its procedures.
    coordinator: Box<dyn Coordinator>,
}

/// One transaction that has committed, and what it is to be recorded with.
pub struct Ended {
    /// Its type.
    pub label: &'static str,
    /// Whether it was declared read-only, or turned out to have been a snapshot.
    pub read_only: bool,
    /// When it began.
    pub begin: u64,
    /// The number it wrote everywhere, 0 if it writes others.
    pub number: u64,
    /// What it saw.
    pub seen: Seen,
    /// What its coordinator says.
    pub committed: Committed,
}

impl<O: Observer> Client<O> {
    /// A client on a shard of this pair, whose random numbers are the stream `session` of `seed`.
    pub fn new(shard: Rc<dyn AnyShard>, pair: Pair, observer: O, seed: u64, session: u32) -> Self {
        Client {
            pair,
            coordinator: shard.coordinator(),
            shard,
            observer,
            rng: Rng::new(seed, session.into()),
            session,
            token: Timestamp::ZERO,
            pauses: 1,
            either_order: false,
            last_audit: None,
            left: ClientResults::default(),
            numbers: 0,
            present: None,
            lasted_ns: 0,
        }
    }

    /// Now, for a transaction that begins.
    pub fn begin(&self) -> u64 {
        self.observer.began(self.shard.clock())
    }

    /// A first attempt that begins now.
    pub fn attempt(&self, staleness_ns: u64) -> Attempt {
        Attempt { age: self.shard.clock().0, freshness: Freshness { staleness_ns, at_least: self.token } }
    }

    /// Notes an attempt that goes on until the next is noted, or this one is recorded.
    pub fn attempts(&mut self, label: &'static str, id: TxnId) {
        self.left.attempts.push(AttemptRecord { id: Some(id), session: self.session, label, why: None });
        self.present = Some(id);
    }

    /// Notes why the present attempt has failed, or that another has before it had a number.
    pub fn failed(&mut self, label: &'static str, why: Abort) {
        let session = self.session;
        match self.left.attempts.last_mut() {
            Some(last) if last.why.is_none() && last.id.is_some() && last.id == self.present => {
                last.why = Some(why);
            }
            _ => self.left.attempts.push(AttemptRecord { id: None, session, label, why: Some(why) }),
        }
    }

    /// A read-only attempt has failed. None at a snapshot may, unless an oracle has to be asked for
    /// the snapshot and cannot be reached.
    pub fn unread(&mut self, why: Abort) {
        match self.pair.has_oracle() && why == Abort::Unknown {
            true => self.left.aborts += 1,
            false => self.left.read_only_aborts += 1,
        }
    }

    /// It will never be answered.
    pub fn crash(&mut self) {
        self.left.in_doubt.extend(self.present);
        if let Some(attempted) = self.left.appended.last_mut().filter(|last| last.how == End::Unknown) {
            attempted.end = self.observer.moment();
        }
    }

    /// A number that no other attempt writes.
    pub fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        u64::from(self.session + 1) << 32 | self.numbers
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    /// Lets others run, for a while or not at all.
    pub async fn dawdle(&mut self) {
        match self.rng.below(4) {
            0 => self.shard.pause().await,
            1 => self.shard.sleep(self.rng.below(100_000)).await,
            _ => {}
        }
    }

    /// Waits before another attempt after so many, the last of which began at `begin`.
    pub async fn back_off(&mut self, tries: usize, begin: u64) {
        let taken_ns = self.observer.ended().saturating_sub(begin).max(self.lasted_ns);
        let taken_ns = taken_ns.clamp(BACK_OFF_NS, BACK_OFF_MAX_NS);
        let most_ns = (taken_ns << tries.min(BACK_OFF_DOUBLINGS)).min(BACK_OFF_MAX_NS);
        self.shard.sleep(self.rng.below(self.pauses * most_ns)).await;
    }

    /// Records a transaction.
    pub fn record(&mut self, ended: Ended) {
        let Ended { label, read_only, begin, number, seen, committed } = ended;
        let stamp = committed.stamp.unwrap_or_default();
        let early = self.pair.has_times() && !read_only && stamp > self.shard.clock();
        // No answer waits for long for clocks that are far apart, and then that is counted.
        if early && self.shard.status().counters.early_answers == 0 {
            let clock = self.shard.clock();
            self.left.broken.push(format!(
                "{:?} was answered at {clock:?}, before its timestamp {stamp:?}",
                committed.id
            ));
        }
        self.present = None;
        self.token.raise(committed.stamp.unwrap_or_default());
        let recorded = committed.recorded.map(|recorded| *recorded).unwrap_or_default();
        let end = self.observer.ended();
        self.lasted_ns = end.saturating_sub(begin);
        self.left.values.push((committed.id, number, seen));
        let recorded = Recorded {
            id: committed.id,
            label,
            read_only,
            timestamp: committed.stamp.filter(|_| self.pair.has_scalars()),
            session: self.session,
            begin,
            end,
            writes: Some(committed.writes as u32),
            reads: recorded.reads,
            scans: recorded.scans,
        };
        self.observer.recorded(&recorded);
        self.left.transactions.push(recorded);
    }

    /// Runs a procedure until it commits, says no, or has had enough.
    pub async fn procedure(
        &mut self,
        label: &'static str,
        attempt: Attempt,
        procedure: &mut dyn AnyProcedure,
    ) -> Result<Option<Committed>, Abort> {
        for tries in 0..ATTEMPTS {
            let begin = self.begin();
            self.coordinator.committed().id = TxnId::default();
            let executed = self.coordinator.execute(attempt, procedure).await;
            let id = Some(self.coordinator.committed().id).filter(|id| id.number > 0);
            let why = executed.err();
            self.left.attempts.push(AttemptRecord { id, session: self.session, label, why });
            self.present = None;
            match executed {
                Ok(()) => return Ok(Some(std::mem::take(self.coordinator.committed()))),
                Err(Abort::User) => return Err(Abort::User),
                Err(abort) if procedure.is_read_only() => self.unread(abort),
                Err(_) => self.left.aborts += 1,
            }
            self.back_off(tries, begin).await;
        }
        Ok(None)
    }
}
