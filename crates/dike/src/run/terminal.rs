//! A terminal: draws a transaction, attempts it until it is done or given up, draws the next.
//!
//! *Closed loop*: the next transaction is due when the last has ended. *Open loop*: transaction number k of
//! all terminals is due at k / rate, whichever terminal is free takes it, and if none is, it waits; its
//! latency counts from when it was due. A database that stalls for a second is then charged with all that
//! should have happened in it, and not with one slow transaction per terminal (coordinated omission).
//!
//! *Retries.* A conflict is tried again, after a pause that doubles, with the same inputs, up to a number of
//! attempts. A broken connection ends the transaction, and so does an unanswered COMMIT, which must not be
//! repeated.
//!
//! *Outages.* A terminal without a connection tries to make one until the run ends, with pauses that double
//! up to a limit. Its transaction waits. Each try counts as an attempt that failed, so that an outage can be
//! seen in every second of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::{Mutex, Semaphore};

use super::outcome::{Ended, Observer, Outcome};
use crate::config::Retry;
use crate::target::{Cause, Connector, Failure, Session};
use crate::transactions::{self, Control, Done, Input, Inputs, Transaction};

/// How many connections are made side by side before a run.
const AT_A_TIME: usize = 16;

/// What the terminals of a run share.
pub struct Shared {
    pub begun: Instant,
    /// Time of day when the run began, in seconds since 1970.
    pub date_s: i64,
    pub length: Duration,
    pub stop: Arc<AtomicBool>,
    pub retry: Retry,
    pub transaction_timeout: Duration,
    /// Transactions per second to start, in an open loop.
    pub rate_per_s: Option<f64>,
    /// How many transactions have become somebody's.
    pub arrivals: AtomicU64,
    pub connections: Connections,
    pub observers: Vec<Arc<dyn Observer>>,
}

impl Shared {
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How many transactions were due by then, in an open loop, and are nobody's.
    pub fn backlog(&self, elapsed: Duration) -> u64 {
        let due = self.rate_per_s.map_or(0.0, |rate| rate * elapsed.as_secs_f64()) as u64;
        due.saturating_sub(self.arrivals.load(Relaxed))
    }

    fn over(&self) -> bool {
        self.stop.load(Relaxed) || self.elapsed() >= self.length
    }

    /// Sleeps, but not beyond the end of the run.
    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time.min(self.length.saturating_sub(self.elapsed()))).await;
    }
}

/// The connections of a run. A terminal takes one for an attempt and gives it back.
pub struct Connections {
    connector: Connector,
    permits: Semaphore,
    free: Mutex<Vec<Connection>>,
}

/// One connection, or the place of one that broke.
struct Connection {
    /// Which endpoint it prefers.
    number: usize,
    session: Option<Session>,
}

impl Connections {
    /// So many, none of them made yet.
    pub fn new(connector: Connector, count: usize) -> Connections {
        let free = (0..count).rev().map(|number| Connection { number, session: None }).collect();
        Connections { connector, permits: Semaphore::new(count), free: Mutex::new(free) }
    }

    /// Makes all of them. Fails at the first that cannot be made.
    pub async fn open(&self) -> Result<(), Failure> {
        for connections in self.free.lock().await.chunks_mut(AT_A_TIME) {
            let sessions = connections.iter().map(|connection| self.connector.connect(connection.number));
            let sessions = join_all(sessions).await;
            for (connection, session) in connections.iter_mut().zip(sessions) {
                connection.session = Some(session?);
            }
        }
        Ok(())
    }
}

/// Runs a terminal until the run is over.
pub async fn terminal(shared: Arc<Shared>, number: u32, mut inputs: Inputs, mut control: Box<dyn Control>) {
    while !shared.over() {
        let due = match shared.rate_per_s {
            Some(rate) => {
                let due = Duration::from_secs_f64(shared.arrivals.fetch_add(1, Relaxed) as f64 / rate);
                shared.sleep(due.saturating_sub(shared.elapsed())).await;
                due
            }
            None => {
                let pause = inputs.pause(&mut *control, shared.elapsed());
                if !pause.is_zero() {
                    shared.sleep(pause).await;
                }
                shared.elapsed()
            }
        };
        if shared.over() {
            break;
        }
        let date_s = shared.date_s + shared.elapsed().as_secs() as i64;
        let (transaction, input) = inputs.next(&mut *control, due, date_s);
        see_through(&shared, number, transaction, &input, due, &mut inputs).await;
    }
}

/// Attempts a transaction until it is done or given up, or the run is over.
async fn see_through(
    shared: &Shared,
    terminal: u32,
    transaction: Transaction,
    input: &Input,
    due: Duration,
    inputs: &mut Inputs,
) {
    let warehouses = input.warehouses();
    let (mut conflicts, mut refusals) = (0, 0);
    for attempt in 1.. {
        let Some((start, result)) = attempt_once(shared, input).await else { return };
        let ended = match &result {
            Ok(Done::Committed) => Ended::Committed,
            Ok(Done::RolledBack) => Ended::RolledBack,
            Err(failure) if failure.cause == Cause::Unreachable => Ended::Retried(failure.cause),
            Err(failure) if failure.cause.is_conflict() && conflicts + 1 < shared.retry.attempts_max => {
                Ended::Retried(failure.cause)
            }
            Err(failure) => Ended::Failed(failure.cause),
        };
        let outcome = Outcome {
            terminal,
            transaction,
            warehouse: warehouses.first().copied().unwrap_or(0),
            warehouses: warehouses.len() as u32,
            attempt,
            due,
            start,
            latency_ns: (shared.elapsed() - start).as_nanos() as u64,
            ended,
        };
        for observer in &shared.observers {
            observer.record(&outcome);
        }
        let Ended::Retried(cause) = ended else { return };
        let retry = &shared.retry;
        let (first_ms, most_ms, doublings) = match cause {
            Cause::Unreachable => {
                refusals += 1;
                (retry.reconnect_ms, retry.reconnect_max_ms, refusals - 1)
            }
            _ => {
                conflicts += 1;
                (retry.backoff_ms, retry.backoff_max_ms, conflicts - 1)
            }
        };
        let pause_ms = (first_ms * 2f64.powi(doublings.min(30) as i32)).min(most_ms) * inputs.jitter();
        shared.sleep(Duration::from_secs_f64(pause_ms / 1e3)).await;
        if shared.over() {
            return;
        }
    }
}

/// Takes a connection, makes it if need be, and attempts the transaction. Returns when that began, and what
/// came of it; none if the run was over before there was a connection.
async fn attempt_once(shared: &Shared, input: &Input) -> Option<(Duration, Result<Done, Failure>)> {
    let connections = &shared.connections;
    let permit = connections.permits.acquire().await.ok()?;
    if shared.over() {
        return None;
    }
    let mut connection = connections.free.lock().await.pop()?;
    let start = shared.elapsed();
    let result = on_connection(shared, &mut connection, input).await;
    connections.free.lock().await.push(connection);
    drop(permit);
    Some((start, result))
}

async fn on_connection(shared: &Shared, connection: &mut Connection, input: &Input) -> Result<Done, Failure> {
    let session = match &mut connection.session {
        Some(session) => session,
        none => {
            let connected = shared.connections.connector.connect(connection.number).await;
            none.insert(connected.map_err(|failure| Failure { cause: Cause::Unreachable, ..failure })?)
        }
    };
    let patience = shared.transaction_timeout;
    let attempted = tokio::time::timeout(patience, transactions::run(session, input)).await;
    let Ok(result) = attempted else {
        let failure = session.timed_out(patience);
        if let Some(session) = connection.session.take() {
            shared.connections.connector.abandon(session);
        }
        return Err(failure);
    };
    if let Err(failure) = &result {
        // What is left of the transaction goes; a connection that cannot even do that goes as well.
        let usable = !failure.cause.ends_connection()
            && matches!(tokio::time::timeout(patience, session.rollback()).await, Ok(Ok(())));
        if !usable {
            connection.session = None;
        }
    }
    result
}
