//! Running transactions from many terminals, for a time, whatever happens to the database.
//!
//! Terminals are tasks (`terminal.rs`); what comes of their attempts goes to [`Observer`]s as
//! [`Outcome`]s. One of those is ours and makes the [`Summary`]. The run measures what ends between the
//! warm-up and the deadline. Transactions that are under way at the deadline are given a moment to end and
//! count nowhere.
//!
//! Before the first transaction all connections are made, so that a wrong address or password ends the run at
//! once and with a sentence. After that nothing about the database ends it but its time, or Ctrl-C.

mod outcome;
mod summary;
mod terminal;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub use outcome::{Ended, Observer, Outcome};
pub use summary::{Counts, Latency, Of, Recorder, Summary, Sums, recorder, table};

use crate::config::Config;
use crate::load::scale::Scale;
use crate::load::{self, LoadError};
use crate::progress::Progress;
use crate::target::Connector;
use crate::transactions::{Control, Inputs, Plain};
use terminal::{Connections, Shared, terminal};

/// How long transactions that are under way at the deadline may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// Makes the control of a terminal, by its number from 0.
pub type Controls<'a> = &'a (dyn Fn(u32) -> Box<dyn Control> + Sync);

/// TPC-C's own choices for every terminal.
pub fn plain(config: &Config) -> impl Fn(u32) -> Box<dyn Control> + '_ {
    let plain = Plain::new(config);
    move |number| Box::new(plain.of_terminal(config, number))
}

/// Runs the mix, and tells `observers` of every attempt.
pub async fn run(
    config: &Config,
    connector: &Connector,
    controls: Controls<'_>,
    mut observers: Vec<Arc<dyn Observer>>,
    stop: &Arc<AtomicBool>,
    progress: Progress,
) -> Result<Summary, LoadError> {
    load::verify(connector, &config.data).await?;
    if config.mix.update_balance > 0 {
        load::remember_balances_updated(connector).await?;
    }
    let terminals = config.run.terminals;
    let count = if config.run.connections == 0 { terminals } else { config.run.connections };
    let connections = Connections::new(connector.clone(), count as usize);
    progress.note(&format!("connecting {count} times"));
    connections.open().await?;

    let warmup = Duration::from_secs_f64(config.run.warmup_s);
    let length = warmup + Duration::from_secs_f64(config.run.duration_s);
    let (recorder, mut outcomes) = recorder();
    observers.push(Arc::new(recorder));
    let shared = Arc::new(Shared {
        begun: Instant::now(),
        date_s: unix_seconds(),
        length,
        stop: stop.clone(),
        retry: config.retry.clone(),
        transaction_timeout: Duration::from_millis(config.target.transaction_timeout_ms),
        rate_per_s: (config.run.rate_per_s > 0.0).then_some(config.run.rate_per_s),
        arrivals: AtomicU64::new(0),
        connections,
        observers,
    });
    let scale = Scale::new(&config.data);
    let tasks: Vec<_> = (0..terminals)
        .map(|number| {
            let inputs = Inputs::new(&scale, &config.workload, config.run.seed, number);
            tokio::spawn(terminal(shared.clone(), number, inputs, controls(number)))
        })
        .collect();

    let mut sums = Sums::new(warmup, length);
    let mut line = progress.line("running", length.as_millis() as u64);
    let mut over_since: Option<Instant> = None;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        while let Ok(outcome) = outcomes.try_recv() {
            sums.add(&outcome);
        }
        let elapsed = shared.elapsed();
        line.show(elapsed.min(length).as_millis() as u64, || describe(&sums, elapsed, warmup, length));
        if elapsed >= length || stop.load(Relaxed) {
            let since = *over_since.get_or_insert_with(|| {
                sums.stop(elapsed, shared.backlog(elapsed.min(length)));
                Instant::now()
            });
            if tasks.iter().all(|task| task.is_finished()) || since.elapsed() > GRACE {
                break;
            }
        }
    }
    drop(line);
    for task in tasks {
        match task.is_finished() {
            true => task.await.expect("a terminal does not panic"),
            false => task.abort(),
        }
    }
    while let Ok(outcome) = outcomes.try_recv() {
        sums.add(&outcome);
    }
    Ok(sums.summary())
}

/// The line that moves.
fn describe(sums: &Sums, elapsed: Duration, warmup: Duration, length: Duration) -> String {
    let last = sums.last_second(elapsed).cloned().unwrap_or_default();
    let failing = last.failed();
    let outage = if failing > 0 || last.retried() > last.committed {
        let causes: BTreeSet<_> = last.failed.keys().chain(last.retried.keys()).collect();
        let names: Vec<_> = causes.into_iter().map(|cause| cause.name()).collect();
        format!(" · {}", names.join(", "))
    } else {
        String::new()
    };
    format!(
        "{:.0}/{:.0} s · {}/s · {} retried/s · {failing} failed/s{outage}{}",
        elapsed.min(length).as_secs_f64(),
        length.as_secs_f64(),
        last.committed,
        last.retried(),
        if elapsed < warmup { " · warming up" } else { "" }
    )
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> i64 {
    // Orders and payments carry dates; nothing here is timed by them.
    #[allow(clippy::disallowed_methods)]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
