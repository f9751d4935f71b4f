//! A terminal: draws a transaction, attempts it until it is done or given up, draws the next.
//!
//! *Closed loop*: the next transaction starts when the last has ended, or when its [`Pacer`] says
//! so. *Open loop*: transactions are due by a clock of all terminals ([`Stream`]), whichever
//! terminal is free takes the next, and if none is, it waits; its latency counts from when it was
//! due. A database that stalls for a second is then charged with all that should have happened in
//! it, and not with one slow transaction per terminal (coordinated omission).
//!
//! *Retries.* A conflict is tried again with the same inputs, up to a number of attempts: after a
//! pause that doubles, or, if it lost a hot district and the client queues for it, when its turn
//! comes. A broken connection ends the transaction, and so does a COMMIT that is in doubt, which
//! must not be repeated.
//!
//! *Outages.* A terminal without a connection tries to make one until the run ends, with pauses
//! that double up to a limit. Its transaction waits. Each try counts as an attempt that failed, so
//! that an outage can be seen in every second of it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_types::random::Rng;
use tokio::sync::watch;

use super::connections::Connections;
use super::counts::{INTENDED_NUMBER, Running, number_of};
use super::ledger::Ledger;
use super::steered::Steered;
use super::turnstile::{Turnstile, Waiting};
use crate::config::Retry;
use crate::control::SECOND_NS;
use crate::control::contention::Contender;
use crate::control::load::{Load, LoadTally, Pacer};
use crate::metrics::Recorder;
use crate::metrics::document::Said;
use crate::metrics::recorder::Committed;
use crate::target::{Cause, Failure};
use crate::transactions::{Done, Input, Inputs, Transaction};

/// What the terminals of a run share.
pub struct Shared {
    pub begun: Instant,
    /// Time of day when the run began, in seconds since 1970.
    pub date_s: i64,
    pub length_ns: u64,
    pub stop: Arc<AtomicBool>,
    pub retry: Retry,
    pub transaction_timeout: Duration,
    /// When transactions are due, in an open loop.
    pub stream: Option<Mutex<Stream>>,
    pub connections: Connections,
    /// By hot district, if the client queues for it.
    pub turnstiles: Vec<Turnstile>,
    pub running: Running,
    /// What clients were told.
    pub ledger: Ledger,
    /// By place in [`Transaction::ALL`]: which number recorders have for it.
    pub kinds: [usize; 9],
}

impl Shared {
    pub fn elapsed_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    pub fn over(&self) -> bool {
        self.stop.load(Relaxed) || self.elapsed_ns() >= self.length_ns
    }

    /// Sleeps until then, but not beyond the end of the run.
    async fn sleep_until(&self, at_ns: u64) {
        let left_ns = at_ns.min(self.length_ns).saturating_sub(self.elapsed_ns());
        if left_ns > 0 {
            tokio::time::sleep(Duration::from_nanos(left_ns)).await;
        }
    }
}

/// When the transactions of an open loop are due, for whoever is free.
pub struct Stream {
    load: Load,
    pacer: Pacer,
    rng: Rng,
}

impl Stream {
    /// Arrivals of one of so many clients.
    pub fn new(load: Load, clients: u32, mut rng: Rng) -> Stream {
        let pacer = Pacer::new(load, crate::control::load::Arrivals::Open, clients, &mut rng);
        Stream { load, pacer, rng }
    }

    /// Takes the next one.
    fn take(&mut self) -> Option<u64> {
        let due_ns = self.pacer.next_ns(0)?;
        self.pacer.ran(due_ns, due_ns, &mut self.rng);
        Some(due_ns)
    }

    /// How many are due by then and nobody's, as the load has it.
    pub fn backlog(&mut self, clients: u32, now_ns: u64) -> u64 {
        let due_ns = self.pacer.next_ns(0).unwrap_or(u64::MAX);
        let peak_tps = self.load.peak_tps().unwrap_or(0.0) / f64::from(clients);
        match due_ns < now_ns {
            true => 1 + (peak_tps * (self.load.area(now_ns) - self.load.area(due_ns))) as u64,
            false => 0,
        }
    }
}

/// One terminal, and what it has recorded.
pub struct Terminal {
    pub shared: Arc<Shared>,
    pub inputs: Inputs,
    pub control: Steered,
    pub pacer: Pacer,
    pub rng: Rng,
    pub recorder: Recorder,
    pub load: LoadTally,
    /// The kind of the transaction that is under way.
    pub under_way: Option<usize>,
}

impl Terminal {
    /// Runs until the run is over and the last transaction has ended, or nobody waits for it any
    /// more.
    pub async fn run(mut self, mut given_up: watch::Receiver<bool>) -> Terminal {
        while !self.shared.over() {
            let now_ns = self.shared.elapsed_ns();
            let (intended_ns, due_ns) = match &self.shared.stream {
                Some(stream) => {
                    let taken = stream.lock().expect("nobody panics with it").take();
                    (taken, taken)
                }
                None => (None, self.pacer.next_ns(now_ns)),
            };
            // Nothing more is due in this run.
            let Some(due_ns) = due_ns else { break };
            self.shared.sleep_until(due_ns).await;
            if self.shared.over() {
                break;
            }
            tokio::select! {
                () = self.transaction(intended_ns) => self.under_way = None,
                _ = given_up.wait_for(|given_up| *given_up) => {
                    self.under_way.into_iter().for_each(|kind| self.recorder.unended(kind));
                    break;
                }
            }
        }
        self
    }

    async fn transaction(&mut self, intended_ns: Option<u64>) {
        let drawn_ns = self.shared.elapsed_ns();
        let date_s = self.shared.date_s + (drawn_ns / SECOND_NS) as i64;
        let (transaction, input) = self.inputs.next(&mut self.control, drawn_ns, date_s);
        let contender = self.control.take_contender();
        let shared = Arc::clone(&self.shared);
        let Some(started_ns) = self.see_through(&shared, transaction, &input, contender, intended_ns).await
        else {
            return;
        };
        let ended_ns = self.shared.elapsed_ns();
        self.pacer.ran(started_ns, ended_ns, &mut self.rng);
        self.load.record(started_ns, ended_ns);
    }

    /// Attempts a transaction until it is done or given up, or the run is over. Returns when the
    /// first attempt began; nothing if the run was over before it could.
    async fn see_through(
        &mut self,
        shared: &Shared,
        transaction: Transaction,
        input: &Input,
        mut contender: Option<Contender>,
        intended_ns: Option<u64>,
    ) -> Option<u64> {
        let kind = shared.kinds[transaction as usize];
        self.under_way = Some(kind);
        let mut first_ns = None;
        let (mut conflicts, mut refusals) = (0, 0);
        let mut waiting: Option<Waiting<'_>> = None;
        let mut offline: Option<Offline<'_>> = None;
        loop {
            let turn = shared.connections.turn().await;
            if shared.over() {
                return first_ns;
            }
            let begun_ns = shared.elapsed_ns();
            let started_ns = *first_ns.get_or_insert(begun_ns);
            let under_way = shared.ledger.begin(input);
            let result = turn.attempt(input, &mut contender, shared.transaction_timeout).await;
            under_way.ended(&result);
            let now_ns = shared.elapsed_ns();
            let unreachable = matches!(&result, Err(failure) if failure.cause == Cause::Unreachable);
            if !unreachable && let Some(offline) = offline.take() {
                self.recorder.offline(offline.since_ns, now_ns);
            }
            let failure = match result {
                Ok(Done::Committed { .. }) => {
                    self.recorder.committed(Committed { kind, intended_ns, started_ns, ended_ns: now_ns });
                    shared.running.commit(now_ns - intended_ns.unwrap_or(started_ns));
                    return first_ns;
                }
                Ok(Done::RolledBack) => {
                    self.recorder.aborted(now_ns, kind, INTENDED_NUMBER);
                    return first_ns;
                }
                Err(failure) => failure,
            };
            self.count(shared, now_ns, kind, &failure);
            let retry = &shared.retry;
            let (first_ms, most_ms, doublings) = if unreachable {
                offline.get_or_insert_with(|| Offline::new(&shared.running, begun_ns));
                refusals += 1;
                (retry.reconnect_ms, retry.reconnect_max_ms, refusals - 1)
            } else if failure.cause.is_conflict() && conflicts + 1 < retry.attempts_max {
                conflicts += 1;
                (retry.backoff_ms, retry.backoff_max_ms, conflicts - 1)
            } else {
                self.recorder.given_up(now_ns, kind);
                return first_ns;
            };
            let turnstile = contender.as_ref().and_then(|contender| shared.turnstiles.get(contender.item()));
            match turnstile.filter(|_| !unreachable) {
                Some(turnstile) => {
                    let waiting = waiting.get_or_insert_with(|| turnstile.enter());
                    tokio::select! {
                        () = waiting.turn() => {}
                        () = shared.sleep_until(shared.length_ns) => {}
                    }
                }
                None => {
                    let pause_ms = (first_ms * 2f64.powi(doublings.min(30) as i32)).min(most_ms);
                    let share = 0.5 + self.rng.below(1 << 20) as f64 / f64::from(1 << 21);
                    shared.sleep_until(now_ns + (pause_ms * share * 1e6) as u64).await;
                }
            }
            if shared.over() {
                if let Some(offline) = offline {
                    self.recorder.offline(offline.since_ns, shared.elapsed_ns());
                }
                return first_ns;
            }
            self.recorder.retried(shared.elapsed_ns());
        }
    }

    fn count(&mut self, shared: &Shared, now_ns: u64, kind: usize, failure: &Failure) {
        let number = number_of(failure.cause);
        let said = || Said::new(now_ns, &failure.code, &failure.message);
        if failure.cause.is_conflict() {
            self.recorder.aborted(now_ns, kind, number);
            self.recorder.abort_said(number, said);
            shared.running.aborted.fetch_add(1, Relaxed);
        } else {
            self.recorder.failed(now_ns, kind, number);
            self.recorder.error_said(number, said);
            shared.running.failed.fetch_add(1, Relaxed);
        }
    }
}

/// A terminal has no connection while this lives.
struct Offline<'a> {
    running: &'a Running,
    since_ns: u64,
}

impl<'a> Offline<'a> {
    fn new(running: &'a Running, since_ns: u64) -> Offline<'a> {
        running.offline.fetch_add(1, Relaxed);
        Offline { running, since_ns }
    }
}

impl Drop for Offline<'_> {
    fn drop(&mut self) {
        self.running.offline.fetch_sub(1, Relaxed);
    }
}
