//! What clients of all workloads have in common: an environment, random numbers, a session, and a record of what
//! came of their transactions.

use plimsoll_runtime::{Env, ShardEnv, Tasks};
use plimsoll_txn::attempt::{Attempt, Committed};
use plimsoll_txn::executable::AnyProcedure;
use plimsoll_txn::execute::execute;
use plimsoll_txn::pairs::LegalPair;
use plimsoll_txn::timestamp::{Freshness, Scheme};
use plimsoll_txn::work::Work;
use plimsoll_types::history::Transaction as Recorded;
use plimsoll_types::random::Rng;
use plimsoll_types::{Abort, ColumnGroup, Key, Timestamp, TxnId};
use plimsoll_workloads::Tally;

use crate::workload::append::{Attempted, End};

/// A procedure is attempted so often before its client turns to something else.
const ATTEMPTS: usize = 200;
/// The pause after a first attempt is drawn, up to as long as that took, or the client's last commit, or so many nanoseconds,
/// whichever is most; up to twice as long after each further one. What is in the way is there for about as long as one who
/// gets through takes, or as a partition lasts. All of it [`Client::pauses`] times.
const BACK_OFF_NS: u64 = 100_000;
const BACK_OFF_DOUBLINGS: usize = 8;
/// However long attempts take.
const BACK_OFF_MAX_NS: u64 = BACK_OFF_NS << BACK_OFF_DOUBLINGS;

/// Everything that one transaction saw, as its client saw it: row and number.
pub type Seen = Vec<(ColumnGroup, Key, u64)>;

/// The time at which an outside observer sees transactions begin and end, in nanoseconds.
pub trait Observer: Clone + 'static {
    /// Now, for a client whose shard sampled its clock as `sample` at the beginning of the present pass.
    fn began(&self, sample: Timestamp) -> u64;
    /// Now, for a client that has just been answered.
    fn ended(&self) -> u64;
    /// A transaction that has committed, before anything else happens.
    fn recorded(&self, _: &Recorded) {}
}

/// An attempt that a client has made.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
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
pub struct Left {
    /// All attempts, each client's in its order.
    pub attempts: Vec<Tried>,
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
    /// Attempts whose client crashed before it was answered.
    pub in_doubt: Vec<TxnId>,
}

impl Left {
    /// Takes what another client has left.
    pub fn join(&mut self, mut other: Left) {
        self.attempts.append(&mut other.attempts);
        self.transactions.append(&mut other.transactions);
        self.values.append(&mut other.values);
        self.read_only_aborts += other.read_only_aborts;
        self.aborts += other.aborts;
        self.torn.append(&mut other.torn);
        self.broken.append(&mut other.broken);
        self.appended.append(&mut other.appended);
        self.in_doubt.append(&mut other.in_doubt);
        add(&mut self.tally.committed, &other.tally.committed);
        add(&mut self.tally.sums, &other.tally.sums);
    }
}

fn add<T: Copy + Default + std::ops::AddAssign>(sum: &mut Vec<T>, more: &[T]) {
    sum.resize(sum.len().max(more.len()), T::default());
    sum.iter_mut().zip(more).for_each(|(sum, &more)| *sum += more);
}

/// One client.
pub struct Client<P: LegalPair, O> {
    /// Where it runs.
    pub env: ShardEnv<P>,
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
    /// What it leaves behind.
    pub left: Left,
    numbers: u64,
    /// The attempt that has begun and is not over.
    present: Option<TxnId>,
    /// How long its last commit has taken, in nanoseconds.
    lasted_ns: u64,
    work: Work<P::Scheme>,
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

impl<P: LegalPair, O: Observer> Client<P, O> {
    /// A client whose random numbers are the stream `session` of `seed`.
    pub fn new(env: ShardEnv<P>, observer: O, seed: u64, session: u32) -> Self {
        Client {
            env,
            observer,
            rng: Rng::new(seed, session.into()),
            session,
            token: Timestamp::ZERO,
            pauses: 1,
            left: Left::default(),
            numbers: 0,
            present: None,
            lasted_ns: 0,
            work: Work::default(),
        }
    }

    /// Now, for a transaction that begins.
    pub fn begin(&self) -> u64 {
        self.observer.began(self.env.clock())
    }

    /// A first attempt that begins now.
    pub fn attempt(&self, staleness_ns: u64) -> Attempt {
        Attempt { age: self.env.clock().0, freshness: Freshness { staleness_ns, at_least: self.token } }
    }

    /// Notes an attempt that goes on until the next is noted, or this one is recorded.
    pub fn attempts(&mut self, label: &'static str, id: TxnId) {
        self.left.attempts.push(Tried { id: Some(id), session: self.session, label, why: None });
        self.present = Some(id);
    }

    /// Notes why the present attempt has failed, or that another has before it had a number.
    pub fn failed(&mut self, label: &'static str, why: Abort) {
        let session = self.session;
        match self.left.attempts.last_mut() {
            Some(last) if last.why.is_none() && last.id.is_some() && last.id == self.present => {
                last.why = Some(why);
            }
            _ => self.left.attempts.push(Tried { id: None, session, label, why: Some(why) }),
        }
    }

    /// A read-only attempt has failed, which none at a snapshot must; but there is none if the oracle cannot be reached.
    pub fn unread(&mut self, why: Abort) {
        match P::Scheme::ORACLE && why == Abort::Unknown {
            true => self.left.aborts += 1,
            false => self.left.read_only_aborts += 1,
        }
    }

    /// It will never be answered.
    pub fn crash(&mut self) {
        self.left.in_doubt.extend(self.present);
        if let Some(attempted) = self.left.appended.last_mut().filter(|last| last.how == End::Unknown) {
            attempted.end = self.observer.ended();
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
            0 => self.env.pause().await,
            1 => self.env.sleep(self.rng.below(100_000)).await,
            _ => {}
        }
    }

    /// Waits before another attempt after so many, the last of which began at `begin`.
    pub async fn back_off(&mut self, tries: usize, begin: u64) {
        let taken_ns = self.observer.ended().saturating_sub(begin).max(self.lasted_ns);
        let taken_ns = taken_ns.clamp(BACK_OFF_NS, BACK_OFF_MAX_NS);
        let most_ns = (taken_ns << tries.min(BACK_OFF_DOUBLINGS)).min(BACK_OFF_MAX_NS);
        self.env.sleep(self.rng.below(self.pauses * most_ns)).await;
    }

    /// Records a transaction.
    pub fn record(&mut self, ended: Ended) {
        let Ended { label, read_only, begin, number, seen, committed } = ended;
        let stamp = committed.stamp.unwrap_or_default();
        let early = P::Scheme::WAITS && !read_only && stamp > self.env.clock();
        // No answer waits for long for clocks that are far apart, and then that is counted.
        if early && self.env.local(|node| node.base().counters.early_answers) == 0 {
            let clock = self.env.clock();
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
            timestamp: committed.stamp.filter(|_| P::Scheme::SCALAR),
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
            let env = self.env.clone();
            self.work.committed.id = TxnId::default();
            let executed = execute(&env, attempt, procedure, &mut self.work).await;
            let id = Some(self.work.committed.id).filter(|id| id.number > 0);
            let why = executed.err();
            self.left.attempts.push(Tried { id, session: self.session, label, why });
            self.present = None;
            match executed {
                Ok(()) => return Ok(Some(std::mem::take(&mut self.work.committed))),
                Err(Abort::User) => return Err(Abort::User),
                Err(abort) if procedure.is_read_only() => self.unread(abort),
                Err(_) => self.left.aborts += 1,
            }
            self.back_off(tries, begin).await;
        }
        Ok(None)
    }
}
