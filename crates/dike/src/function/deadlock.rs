//! Global deadlocks: a database has to notice them, wherever their parts are, and break them up in
//! time.
//!
//! *Rings* make deadlocks on purpose. Session i of k adds to warehouse i; when all have done that,
//! it adds to warehouse i + 1, which session i + 1 holds. Nobody can go on unless somebody gives
//! up. Rings have 2 to `test.group` sessions, each with a connection of its own, on endpoints in
//! turn. Then the paper's dUpdateBalance runs from all sessions at once, warehouses in any order,
//! which makes them by chance.
//!
//! It passes if no transaction takes longer than `test.bound_s`, and if w_ytd has got exactly what
//! was acknowledged: a victim that was told to have failed must have left nothing. A server may
//! also break a ring up by a time limit of its own. A transaction that takes longer while the
//! database does not answer a new connection either is an outage and no deadlock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use plimsoll_types::random::Rng;
use tokio::sync::Barrier;

use super::balances::{Added, Balances};
use super::{Tested, Verdict, reach, recover};
use crate::config::Config;
use crate::load::LoadError;
use crate::target::{Cause, Connector, Failure, Session, Statement, Value};
use crate::transactions::{BALANCE_STEP_CENTS, update_balance};

/// What sessions have seen.
#[derive(Default)]
struct Seen {
    added: Added,
    committed: u64,
    conflicts: u64,
    hung: u64,
    outages: u64,
    time_limits: u64,
    others: Vec<String>,
    slowest: Duration,
}

impl Seen {
    fn merge(&mut self, other: Seen) {
        self.added.merge(other.added);
        self.committed += other.committed;
        self.conflicts += other.conflicts;
        self.hung += other.hung;
        self.outages += other.outages;
        self.time_limits += other.time_limits;
        self.others.extend(other.others);
        self.slowest = self.slowest.max(other.slowest);
    }

    /// Transactions that the database has ended because they met others.
    fn broken_up(&self) -> u64 {
        self.conflicts + self.time_limits
    }

    /// Counts what came of a transaction that adds to these; `hung` says whether it took too long
    /// although the database was there.
    fn count(&mut self, warehouses: &[u32], took: Duration, result: &Result<(), Failure>, hung: bool) {
        match result {
            Ok(()) => {
                self.committed += 1;
                self.added.committed(warehouses);
            }
            Err(failure) => {
                match failure.cause {
                    cause if cause.is_conflict() => self.conflicts += 1,
                    _ if hung => self.hung += 1,
                    _ if failure.ends_connection() => self.outages += 1,
                    Cause::Timeout => self.time_limits += 1,
                    _ => self.others.push(failure.to_string()),
                }
                if failure.cause == Cause::InDoubt {
                    self.added.unknown(warehouses);
                }
                // How long an outage lasts says nothing of deadlocks.
                if failure.ends_connection() && !hung {
                    return;
                }
            }
        }
        self.slowest = self.slowest.max(took);
    }
}

/// Whether the database answers: if not, that a transaction takes long is no deadlock.
async fn answers(connector: &Connector, number: usize, bound: Duration) -> bool {
    let asked = async { connector.connect(number).await?.text("SELECT 1").await };
    matches!(tokio::time::timeout(bound, asked).await, Ok(Ok(_)))
}

/// Makes deadlocks and says what became of them.
pub async fn test(
    config: &Config,
    connector: &Connector,
    stop: &Arc<AtomicBool>,
) -> Result<Tested, LoadError> {
    let balances = Balances::read(config, connector).await?;
    let bound = Duration::from_secs_f64(config.test.bound_s);
    let half = Duration::from_secs_f64(config.test.duration_s / 2.0);
    let most = balances.warehouses.len();

    let mut rings = Seen::default();
    let (mut broken_up, mut made) = (0u64, 0u64);
    let begun = Instant::now();
    let mut rng = Rng::new(config.run.seed, u64::MAX - 1);
    // At least one of each length, however long that takes.
    for length in (2..=most).cycle() {
        if stop.load(Relaxed) || (made >= most as u64 - 1 && begun.elapsed() >= half) || rings.hung > 0 {
            break;
        }
        let order = rng.permutation(most as u32);
        let warehouses = order.iter().take(length).map(|&at| balances.warehouses[at as usize - 1]);
        let Some(sessions) = connect(connector, length, begun + half + bound, stop).await? else {
            rings.outages += 1;
            break;
        };
        let seen = ring(connector, sessions, warehouses.collect(), bound).await?;
        made += 1;
        broken_up += u64::from(seen.hung == 0 && seen.broken_up() > 0);
        rings.merge(seen);
    }

    let mut seen = Seen::default();
    if rings.hung == 0 {
        let until = Instant::now() + half;
        let tasks: Vec<_> = (0..config.test.sessions)
            .map(|number| {
                let stop = stop.clone();
                let rng = Rng::new(config.run.seed, u64::MAX - 2 - u64::from(number));
                let warehouses = balances.warehouses.clone();
                tokio::spawn(at_random(
                    connector.clone(),
                    number as usize,
                    warehouses,
                    rng,
                    until,
                    bound,
                    stop,
                ))
            })
            .collect();
        for task in tasks {
            seen.merge(task.await.map_err(|error| Failure::unexpected(error.to_string()))??);
        }
    }
    let figures = BTreeMap::from([
        ("rings", made as f64),
        ("rings_broken_up", broken_up as f64),
        ("slowest_of_a_ring_s", rings.slowest.as_secs_f64()),
        ("committed_at_random", seen.committed as f64),
        ("conflicts_at_random", seen.conflicts as f64),
        ("slowest_at_random_s", seen.slowest.as_secs_f64()),
        ("outages", (rings.outages + seen.outages) as f64),
        ("time_limits", (rings.time_limits + seen.time_limits) as f64),
    ]);
    seen.merge(rings);
    let settled = balances.settle(connector, &seen.added, bound).await?;
    let (verdict, says) = if seen.hung > 0 {
        (Verdict::Failed, format!("{} transactions were still waiting after {bound:.1?}", seen.hung))
    } else if !settled.differences.is_empty() {
        (Verdict::Failed, "w_ytd is not what was acknowledged".to_owned())
    } else if !seen.others.is_empty() {
        (Verdict::Failed, "transactions ended in errors that are no conflicts".to_owned())
    } else if settled.left.is_some() {
        (Verdict::Inconclusive, "the database was not there in the end".to_owned())
    } else if seen.broken_up() == 0 {
        (Verdict::Inconclusive, "no transaction met another".to_owned())
    } else {
        (Verdict::Passed, format!("every transaction ended within {:.3} s", seen.slowest.as_secs_f64()))
    };
    let details = settled.differences.into_iter().chain(settled.left);
    let details = details.chain(seen.others.into_iter().take(3)).collect();
    Ok(Tested { test: "global deadlock", verdict, says, details, figures })
}

/// The sessions of a ring; none if the database did not come back in time.
async fn connect(
    connector: &Connector,
    length: usize,
    until: Instant,
    stop: &AtomicBool,
) -> Result<Option<Vec<Session>>, LoadError> {
    let mut sessions = Vec::with_capacity(length);
    for number in 0..length {
        match reach(connector, number, until, stop).await? {
            Some(session) => sessions.push(session),
            None => return Ok(None),
        }
    }
    Ok(Some(sessions))
}

/// One ring: as many sessions as warehouses. The time it took counts from when everybody held one.
async fn ring(
    connector: &Connector,
    sessions: Vec<Session>,
    warehouses: Vec<u32>,
    bound: Duration,
) -> Result<Seen, LoadError> {
    let length = warehouses.len();
    let barrier = Arc::new(Barrier::new(length));
    let tasks: Vec<_> = sessions
        .into_iter()
        .enumerate()
        .map(|(number, session)| {
            let pair = [warehouses[number], warehouses[(number + 1) % length]];
            tokio::spawn(link(connector.clone(), session, pair, barrier.clone(), bound))
        })
        .collect();
    let mut seen = Seen::default();
    for task in tasks {
        seen.merge(task.await.map_err(|error| Failure::unexpected(error.to_string()))?);
    }
    Ok(seen)
}

/// One session of a ring.
async fn link(
    connector: Connector,
    mut session: Session,
    pair: [u32; 2],
    barrier: Arc<Barrier>,
    bound: Duration,
) -> Seen {
    let mut seen = Seen::default();
    session.begin(false);
    let first = tokio::time::timeout(bound, add(&mut session, pair[0])).await;
    // A session whose first update has failed comes here as well: the others wait for it.
    barrier.wait().await;
    let begun = Instant::now();
    let rest = async {
        first.unwrap_or_else(|_| Err(Failure::new(Cause::Timeout, "the first update hangs")))?;
        add(&mut session, pair[1]).await?;
        session.commit().await
    };
    let result = tokio::time::timeout(bound, rest).await;
    let took = begun.elapsed();
    // What the server itself has ended, with a code, does not hang.
    let late = match &result {
        Err(_) => true,
        Ok(Err(failure)) => failure.cause == Cause::Timeout && failure.code.is_empty(),
        Ok(Ok(())) => false,
    };
    let result = result.unwrap_or_else(|_| Err(session.timed_out(bound)));
    match &result {
        Err(_) if late => connector.abandon(session),
        // If that fails, the session goes, and the transaction with it.
        Err(_) => drop(tokio::time::timeout(bound, session.rollback()).await),
        Ok(()) => {}
    }
    seen.count(&pair, took, &result, late && answers(&connector, 0, bound).await);
    seen
}

async fn add(session: &mut Session, warehouse: u32) -> Result<(), Failure> {
    let values = [Value::Cents(BALANCE_STEP_CENTS), warehouse.into()];
    session.run_one(Statement::UpdateBalance, &values).await?.changed(1)
}

/// dUpdateBalance over and over, of all warehouses in any order.
async fn at_random(
    connector: Connector,
    number: usize,
    mut warehouses: Vec<u32>,
    mut rng: Rng,
    until: Instant,
    bound: Duration,
    stop: Arc<AtomicBool>,
) -> Result<Seen, LoadError> {
    let mut seen = Seen::default();
    let Some(mut session) = reach(&connector, number, until, &stop).await? else { return Ok(seen) };
    while Instant::now() < until && !stop.load(Relaxed) && seen.hung == 0 {
        for at in (1..warehouses.len()).rev() {
            warehouses.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let begun = Instant::now();
        let result = tokio::time::timeout(bound, update_balance(&mut session, &warehouses)).await;
        let (took, late) = (begun.elapsed(), result.is_err());
        let result = result.unwrap_or_else(|_| Err(session.timed_out(bound)));
        seen.count(&warehouses, took, &result, late && answers(&connector, number, bound).await);
        let Err(failure) = result else { continue };
        match recover(&connector, number, session, &failure, bound, until, &stop).await? {
            Some(ready) => session = ready,
            None => break,
        }
    }
    Ok(seen)
}
