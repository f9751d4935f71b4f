//! Tests of function, each with a verdict (paper §5, "Function Testing"): what a database gets
//! wrong here makes its throughput worthless.
//!
//! | test | asks |
//! |---|---|
//! | [`deadlock`] | do transactions that wait for each other in a ring end in time, and is every change that was acknowledged there? |
//! | [`snapshot`] | does a transaction that only reads see w_ytd of several warehouses as one transaction has left them? |
//! | [`isolation`] | is there an order of all transactions that explains what each has read, as far as the isolation level promises? |
//!
//! The first two work on w_ytd of the loaded warehouses and put back what they have changed, so
//! that they can be repeated and the consistency conditions still hold. They compare changes, not
//! values, and so need no fresh load. Nothing else may write w_ytd meanwhile.
//!
//! A test that had nothing to judge (no deadlock came about, nobody read while somebody wrote) is
//! *inconclusive*, which is neither passed nor failed.
//!
//! *Outages.* A connection that breaks and a server that is away say nothing of what a test asks.
//! They are counted and connections are made anew; a transaction whose COMMIT is in doubt may have
//! happened or not. A test fails only for what was seen to be wrong.
//!
//! *Time limits.* A server may end a statement that takes longer than its own limit, such as
//! PostgreSQL's `statement_timeout`. That is no outage: the database is there, the transaction has
//! aborted, and the session goes on. What a test reads before and after its sessions work, and what
//! it puts back, is not subject to such limits.

pub mod attempts;
mod balances;
pub mod deadlock;
pub mod isolation;
pub mod judge;
pub mod snapshot;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cli::TestName;
use crate::config::Config;
use crate::load::lease::Lease;
use crate::load::{self, LoadError};
use crate::progress::Progress;
use crate::target::{Connector, Failure, Session};
use attempts::Attempt;

/// Pause between two attempts to reach a database that is away.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What a test has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// What has to hold holds.
    Passed,
    /// It does not.
    Failed,
    /// There was nothing to judge.
    Inconclusive,
}

/// A test and what it has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tested {
    /// Which test.
    pub test: &'static str,
    /// What it has found.
    pub verdict: Verdict,
    /// The same as a sentence.
    pub says: String,
    /// What else there is to say: examples of what is wrong.
    pub details: Vec<String>,
    /// Counts and times, with their units in their names.
    pub figures: BTreeMap<&'static str, f64>,
}

/// Runs a test, or all. Returns the history of the isolation test as well.
pub async fn test(
    name: TestName,
    config: &Config,
    connector: &Connector,
    stop: &Arc<AtomicBool>,
    progress: Progress,
) -> Result<(Vec<Tested>, Vec<Attempt>), LoadError> {
    let lease = Lease::alone(connector, "plimsoll dike test").await?;
    let tested = test_alone(name, config, connector, stop, progress).await;
    lease.release().await;
    tested
}

async fn test_alone(
    name: TestName,
    config: &Config,
    connector: &Connector,
    stop: &Arc<AtomicBool>,
    progress: Progress,
) -> Result<(Vec<Tested>, Vec<Attempt>), LoadError> {
    load::verify(connector, &config.data).await?;
    let asked = |one| name == one || name == TestName::All;
    let (mut tested, mut history) = (Vec::new(), Vec::new());
    if asked(TestName::Deadlock) {
        progress.note("testing deadlocks");
        tested.push(deadlock::test(config, connector, stop).await?);
    }
    if asked(TestName::Snapshot) {
        progress.note("testing snapshots");
        tested.push(snapshot::test(config, connector, stop).await?);
    }
    if asked(TestName::Isolation) {
        progress.note("testing isolation");
        let (isolation, attempts) = isolation::test(config, connector, stop).await?;
        tested.push(isolation);
        history = attempts;
    }
    Ok((tested, history))
}

/// Connects, again and again while the database is away; none if it is still away at `until`.
async fn reach(
    connector: &Connector,
    number: usize,
    until: Instant,
    stop: &AtomicBool,
) -> Result<Option<Session>, Failure> {
    loop {
        match connector.connect(number).await {
            Err(failure) if !failure.cause.is_permanent() => {
                if Instant::now() >= until || stop.load(Relaxed) {
                    return Ok(None);
                }
                tokio::time::sleep(RETRY_AFTER).await;
            }
            connected => return connected.map(Some),
        }
    }
}

/// Makes a session ready for the next transaction after one has failed: rolls back, or connects
/// anew; none if the database is still away at `until`.
async fn recover(
    connector: &Connector,
    number: usize,
    mut session: Session,
    failure: &Failure,
    bound: Duration,
    until: Instant,
    stop: &AtomicBool,
) -> Result<Option<Session>, Failure> {
    let rolled_back = !failure.ends_connection()
        && matches!(tokio::time::timeout(bound, session.rollback()).await, Ok(Ok(())));
    if rolled_back {
        return Ok(Some(session));
    }
    connector.abandon(session);
    reach(connector, number, until, stop).await
}

/// Does a task on a connection of its own, again after an outage or a conflict, for as long as
/// `patience`. Doing the task twice must be harmless.
async fn insist<T>(
    connector: &Connector,
    patience: Duration,
    mut task: impl AsyncFnMut(&mut Session) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let connector = &connector.upkeep();
    let until = Instant::now() + patience;
    loop {
        let done = match connector.connect(0).await {
            Ok(mut session) => match tokio::time::timeout(patience, task(&mut session)).await {
                Ok(done) => done,
                Err(_) => {
                    let late = session.timed_out(patience);
                    connector.abandon(session);
                    Err(late)
                }
            },
            Err(failure) => Err(failure),
        };
        match done {
            Err(failure) if !failure.cause.is_permanent() && Instant::now() < until => {
                tokio::time::sleep(RETRY_AFTER).await;
            }
            done => return done,
        }
    }
}

/// The verdicts as people read them.
pub fn render(tested: &[Tested]) -> String {
    let mut text = String::new();
    for tested in tested {
        let word = match tested.verdict {
            Verdict::Passed => "passed",
            Verdict::Failed => "FAILED",
            Verdict::Inconclusive => "inconclusive",
        };
        text += &format!("{}: {word}. {}\n", tested.test, tested.says);
        for detail in &tested.details {
            text += &format!("    {detail}\n");
        }
        let figures = tested.figures.iter().map(|(name, value)| match value.fract() == 0.0 {
            true => format!("{name} {value}"),
            false => format!("{name} {value:.3}"),
        });
        text += &format!("    {}\n", figures.collect::<Vec<_>>().join(", "));
    }
    text
}
