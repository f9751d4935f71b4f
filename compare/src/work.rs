//! What clients do, and what must be there afterwards.
//!
//! A value begins with a number, and the rest follows from it, so that a value of which a part is
//! wrong or old is found. Each client puts under keys of its own, and notes the number that it has
//! put last; of the counters the sum is known.

use std::fmt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use plimsoll_engine::machine;
use serde::Serialize;

use crate::Failure;
use crate::stores::{Client, Durability, Store, Table};

/// Rows of each table.
const ROWS: u64 = 16_384;
/// Length of a value in bytes.
const VALUE: usize = 100;
/// Longer latencies count as this long, in nanoseconds.
const LATENCY_MAX_NS: u64 = 100_000_000_000;

/// A kind of transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Writes one value.
    Put,
    /// Reads two and writes both.
    Add,
    /// Reads one.
    Get,
}

impl Kind {
    /// Those that are measured: reading does not depend on when writing is on disk.
    pub fn of(durability: Durability) -> Vec<Kind> {
        match durability {
            Durability::Sync => vec![Kind::Put, Kind::Add],
            Durability::None => vec![Kind::Put, Kind::Add, Kind::Get],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Put => "put",
            Kind::Add => "add",
            Kind::Get => "get",
        })
    }
}

/// The value with a number.
fn value(number: u64) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    let mut state = number;
    while value.len() < VALUE {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        value.extend((state >> 32).to_le_bytes());
    }
    value.truncate(VALUE);
    value
}

/// The number of a value, if it is whole.
fn number(of: &[u8]) -> Option<u64> {
    let number = of.first_chunk().map(|&first| u64::from_le_bytes(first))?;
    (of == value(number)).then_some(number)
}

/// The value with the next number. A value that is not whole becomes one that is not, either.
fn raised(of: &[u8]) -> Vec<u8> {
    number(of).map_or(Vec::new(), |number| value(number + 1))
}

/// What must be in the tables.
pub struct Rows {
    /// The number in each row of [`Table::Puts`].
    puts: Vec<u64>,
    /// The sum of the numbers in [`Table::Counters`].
    sum: u64,
}

impl Rows {
    /// Fills the tables of a store that is empty.
    pub fn load(store: &dyn Store) -> Result<Rows, Failure> {
        let values: Vec<Vec<u8>> = (0..ROWS).map(|_| value(0)).collect();
        let mut client = store.client()?;
        Table::ALL.into_iter().try_for_each(|table| client.load(table, &values))?;
        Ok(Rows { puts: values.iter().map(|_| 0).collect(), sum: 0 })
    }

    /// Looks for everything that was acknowledged.
    pub fn check(&self, store: &dyn Store) -> Result<(), Failure> {
        let (mut client, mut sum) = (store.client()?, 0);
        for (key, &put) in (0..).zip(&self.puts) {
            let found = number(&client.get(Table::Puts, key)?);
            if found != Some(put) {
                return Err(format!("row {key} has to have number {put}, and has {found:?}").into());
            }
            sum += number(&client.get(Table::Counters, key)?).ok_or("a counter is not whole")?;
        }
        match sum == self.sum {
            true => Ok(()),
            false => Err(format!("the counters have to have {} together, and have {sum}", self.sum).into()),
        }
    }
}

/// What some clients have done in the measured time.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Length of that time.
    pub seconds: f64,
    /// Transactions that ended in it.
    pub committed: u64,
    /// The same per second.
    pub per_second: f64,
    /// Median of their latencies, in microseconds.
    pub p50_us: f64,
    /// And the 99th percentile.
    pub p99_us: f64,
    /// Processor time of the process per transaction, in microseconds: clients and store together.
    pub cpu_us: f64,
}

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// What a client leaves behind.
struct Done {
    latencies: Histogram<u64>,
    /// Transactions, those of the warm-up included.
    all: u64,
}

/// Lets clients work for so long, after a third of that time.
pub fn measure(
    store: &dyn Store,
    kind: Kind,
    clients: usize,
    time: Duration,
    rows: &mut Rows,
) -> Result<Figures, Failure> {
    let (phase, begin) = (AtomicU8::new(WARM_UP), Barrier::new(clients + 1));
    let (mut seconds, mut cpu) = (0.0, 0.0);
    let done = thread::scope(|scope| {
        let parts = rows.puts.chunks_mut(ROWS as usize / clients).take(clients).enumerate();
        let (phase, begin) = (&phase, &begin);
        let work = |(place, mine): (usize, &mut [u64])| {
            let client = store.client();
            begin.wait();
            let first = place as u64 * (ROWS / clients as u64);
            work(&mut *client?, kind, first, mine, phase)
        };
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        begin.wait();
        thread::sleep(time / 3);
        let (from, cpu_before) = (Instant::now(), machine::process_cpu_seconds());
        phase.store(MEASURE, Relaxed);
        thread::sleep(time);
        phase.store(STOP, Relaxed);
        (seconds, cpu) = (from.elapsed().as_secs_f64(), machine::process_cpu_seconds() - cpu_before);
        threads.into_iter().map(|thread| thread.join().expect("a panic ends the process")).collect::<Vec<_>>()
    });
    let mut latencies = Histogram::new_with_max(LATENCY_MAX_NS, 3)?;
    for client in done {
        let client: Done = client?;
        latencies.add(&client.latencies)?;
        if kind == Kind::Add {
            rows.sum += 2 * client.all;
        }
    }
    let committed = latencies.len();
    let at = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
    Ok(Figures {
        seconds,
        committed,
        per_second: committed as f64 / seconds,
        p50_us: at(0.5),
        p99_us: at(0.99),
        cpu_us: 1e6 * cpu / committed.max(1) as f64,
    })
}

/// A client's loop. `mine` are the numbers of the rows from `first` on.
fn work(
    client: &mut dyn Client,
    kind: Kind,
    first: u64,
    mine: &mut [u64],
    phase: &AtomicU8,
) -> Result<Done, Failure> {
    let mut done = Done { latencies: Histogram::new_with_max(LATENCY_MAX_NS, 3)?, all: 0 };
    let mut random = first.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % below
    };
    while phase.load(Relaxed) != STOP {
        let begun = Instant::now();
        match kind {
            Kind::Put => {
                let row = draw(mine.len() as u64);
                let number = &mut mine[row as usize];
                client.put(first + row, &value(*number + 1))?;
                *number += 1;
            }
            Kind::Add => {
                let one = draw(ROWS);
                client.update([one, (one + 1 + draw(ROWS - 1)) % ROWS], raised)?;
            }
            Kind::Get => {
                let row = client.get(Table::Puts, draw(ROWS))?;
                number(&row).ok_or("a value is not whole")?;
            }
        }
        done.all += 1;
        if phase.load(Relaxed) == MEASURE {
            done.latencies.saturating_record(begun.elapsed().as_nanos() as u64);
        }
    }
    Ok(done)
}
