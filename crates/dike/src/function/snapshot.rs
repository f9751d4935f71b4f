//! Global snapshots: what one transaction changes is seen together or not at all (paper figure 13).
//!
//! Writers add the same amount to w_ytd of all warehouses of a group, in one transaction
//! (dUpdateBalance). Readers read them in one transaction that only reads, one statement after the
//! other and in any order (dSelectBalance). Whatever has been added so far has to be the same for
//! all. A database without a snapshot over all its nodes shows a transaction that was committed
//! between two of the statements, or on one of two nodes.
//!
//! READ COMMITTED promises a new snapshot with each statement and fails this test; the paper asks
//! for REPEATABLE READ at least.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use plimsoll_types::random::Rng;

use super::balances::{Added, Balances};
use super::{Tested, Verdict, reach, recover};
use crate::config::Config;
use crate::load::LoadError;
use crate::target::{Cause, Connector, Failure, format_decimal};
use crate::transactions::{select_balance, update_balance};

/// How many broken snapshots are shown.
const SHOWN: usize = 3;

#[derive(Default)]
struct Seen {
    added: Added,
    written: u64,
    read: u64,
    broken: u64,
    examples: Vec<String>,
    conflicts: u64,
    outages: u64,
    time_limits: u64,
    others: Vec<String>,
}

/// Reads beside writers and says whether it fitted.
pub async fn test(
    config: &Config,
    connector: &Connector,
    stop: &Arc<AtomicBool>,
) -> Result<Tested, LoadError> {
    let balances = Arc::new(Balances::read(config, connector).await?);
    let bound = Duration::from_secs_f64(config.test.bound_s);
    let until = Instant::now() + Duration::from_secs_f64(config.test.duration_s);
    let tasks: Vec<_> = (0..config.test.sessions)
        .map(|number| {
            let rng = Rng::new(config.run.seed, u64::MAX - 2 - u64::from(number));
            let session = Session { connector: connector.clone(), number: number as usize, rng };
            tokio::spawn(session.work(balances.clone(), until, stop.clone(), bound))
        })
        .collect();
    let mut seen = Seen::default();
    for task in tasks {
        let one = task.await.map_err(|error| Failure::unexpected(error.to_string()))??;
        seen.added.merge(one.added);
        seen.written += one.written;
        seen.read += one.read;
        seen.broken += one.broken;
        seen.examples.extend(one.examples);
        seen.conflicts += one.conflicts;
        seen.outages += one.outages;
        seen.time_limits += one.time_limits;
        seen.others.extend(one.others);
    }
    let settled = balances.settle(connector, &seen.added, bound).await?;
    let figures = BTreeMap::from([
        ("written", seen.written as f64),
        ("read", seen.read as f64),
        ("broken", seen.broken as f64),
        ("conflicts", seen.conflicts as f64),
        ("outages", seen.outages as f64),
        ("time_limits", seen.time_limits as f64),
        ("warehouses", balances.warehouses.len() as f64),
    ]);
    let (verdict, says) = if seen.broken > 0 {
        let says = format!("{} of {} transactions saw others by halves", seen.broken, seen.read);
        (Verdict::Failed, says)
    } else if !settled.differences.is_empty() {
        (Verdict::Failed, "w_ytd is not what was acknowledged".to_owned())
    } else if !seen.others.is_empty() {
        (Verdict::Failed, "transactions ended in errors that are no conflicts".to_owned())
    } else if settled.left.is_some() {
        (Verdict::Inconclusive, "the database was not there in the end".to_owned())
    } else if seen.read == 0 || seen.written == 0 {
        (Verdict::Inconclusive, "nobody has read while somebody wrote".to_owned())
    } else {
        let says =
            format!("{} transactions saw all of {} others, or nothing of them", seen.read, seen.written);
        (Verdict::Passed, says)
    };
    seen.examples.truncate(SHOWN);
    let details = seen.examples.into_iter().chain(settled.differences).chain(settled.left);
    let details = details.chain(seen.others.into_iter().take(SHOWN));
    Ok(Tested { test: "global snapshot", verdict, says, details: details.collect(), figures })
}

struct Session {
    connector: Connector,
    number: usize,
    rng: Rng,
}

impl Session {
    /// Writes, if its number is even, or reads.
    async fn work(
        mut self,
        balances: Arc<Balances>,
        until: Instant,
        stop: Arc<AtomicBool>,
        bound: Duration,
    ) -> Result<Seen, LoadError> {
        let mut seen = Seen::default();
        let Some(mut session) = reach(&self.connector, self.number, until, &stop).await? else {
            return Ok(seen);
        };
        let mut order = balances.warehouses.clone();
        while Instant::now() < until && !stop.load(Relaxed) {
            let result = if self.number.is_multiple_of(2) {
                let update = tokio::time::timeout(bound, update_balance(&mut session, &balances.warehouses));
                let result = update.await.unwrap_or_else(|_| Err(session.timed_out(bound)));
                match &result {
                    Ok(()) => {
                        seen.written += 1;
                        seen.added.committed(&balances.warehouses);
                    }
                    Err(failure) if failure.cause == Cause::InDoubt => {
                        seen.added.unknown(&balances.warehouses)
                    }
                    Err(_) => {}
                }
                result
            } else {
                for at in (1..order.len()).rev() {
                    order.swap(at, self.rng.below(at as u64 + 1) as usize);
                }
                let read = tokio::time::timeout(bound, select_balance(&mut session, &order)).await;
                let result = read.unwrap_or_else(|_| Err(session.timed_out(bound)));
                result.map(|cents| {
                    seen.read += 1;
                    let changes = balances.changes(&order, &cents);
                    if changes.iter().any(|change| *change != changes[0]) {
                        seen.broken += 1;
                        seen.examples.push(describe(&order, &changes));
                    }
                })
            };
            if let Err(failure) = result {
                match failure.cause {
                    cause if cause.is_conflict() => seen.conflicts += 1,
                    _ if failure.ends_connection() => seen.outages += 1,
                    Cause::Timeout => seen.time_limits += 1,
                    _ => seen.others.push(failure.to_string()),
                }
                match recover(&self.connector, self.number, session, &failure, bound, until, &stop).await? {
                    Some(ready) => session = ready,
                    None => break,
                }
            }
        }
        seen.examples.truncate(SHOWN);
        Ok(seen)
    }
}

fn describe(warehouses: &[u32], changes: &[i64]) -> String {
    let pairs = warehouses.iter().zip(changes);
    let pairs = pairs.map(|(w, change)| format!("{} at warehouse {w}", format_decimal(*change, 2)));
    format!("one transaction read that there was added {}", pairs.collect::<Vec<_>>().join(", "))
}
