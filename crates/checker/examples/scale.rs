//! How long the checker takes for a large history, and how much memory: `cargo run --release -p
//! plimsoll-checker --example scale [transactions] [scalar|graph] [stale]`.
//!
//! The history is that of a serial run with timestamps: three quarters are RWs with ten reads and
//! five writes, one of them to a hot record; one RW in twenty inserts a row into a queue and one in
//! twenty takes the oldest row out, found by a scan over all that was deleted before. The rest are
//! ROs with ten reads and a short scan. With `stale` as the last argument, one read in a thousand
//! returns the initial version.

use std::collections::BTreeMap;
use std::time::Instant;

use plimsoll_checker::{Options, check};
use plimsoll_types::history::{History, Install, Read, ScanRead, Transaction, Version};
use plimsoll_types::{ColumnGroup, Key, ShardId, TableId, Timestamp, TxnId};

const SHARDS: usize = 16;
const ROWS: u64 = 1_000_000;
const HOT: u64 = 64;

const ROW: ColumnGroup = TableId(0).row();
const QUEUE: ColumnGroup = TableId(1).row();

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u64 =
        arguments.next().map_or(1_000_000, |count| count.parse().expect("a number of transactions"));
    let scalar = arguments.next().is_none_or(|mode| mode == "scalar");
    let stale = arguments.next().is_some();
    let start = Instant::now();
    let history = serial_history(count, stale);
    let reads: usize = history.transactions.iter().map(|txn| txn.reads.len()).sum();
    let installs: usize = history.installs.iter().map(Vec::len).sum();
    println!("{count} transactions, {reads} reads, {installs} installs");
    println!("generated in {:.1} s, {}", start.elapsed().as_secs_f64(), memory());
    let start = Instant::now();
    let options = Options { scalar, realtime: true, sessions: true, complete: true };
    let report = check(&history, options, &|column| format!("table{}", column.table.0));
    println!("{report}");
    println!("checked in {:.1} s, {}", start.elapsed().as_secs_f64(), memory());
}

/// What the system says that the process has used at its peak, where it says so.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.map_or("memory unknown".to_owned(), |line| {
        let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0);
        format!("{} MiB at the peak", kib / 1024)
    })
}

struct Serial {
    history: History,
    newest: Vec<Timestamp>,
    queue: BTreeMap<u64, Timestamp>,
    next_in_queue: u64,
    stale: bool,
    state: u64,
}

fn serial_history(count: u64, stale: bool) -> History {
    let history = History { transactions: vec![], installs: vec![vec![]; SHARDS] };
    let newest = vec![Timestamp::ZERO; ROWS as usize];
    let mut serial = Serial { history, newest, queue: BTreeMap::new(), next_in_queue: 0, stale, state: 1 };
    (1..=count).for_each(|number| serial.run(number));
    serial.history
}

impl Serial {
    /// A random number below `limit`: SplitMix64.
    fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e3779b97f4a7c15);
        let mut x = self.state;
        x = (x ^ x >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d049bb133111eb);
        (x ^ x >> 31) % limit
    }

    fn run(&mut self, number: u64) {
        let id = TxnId { number, coordinator: ShardId((number % SHARDS as u64) as u16) };
        let timestamp = Timestamp(number * 1000);
        let read_only = self.below(4) == 0;
        let mut txn = Transaction {
            id,
            label: if read_only { "look" } else { "change" },
            read_only,
            timestamp: Some(timestamp),
            session: (number % 500) as u32,
            begin: timestamp.0 - 300,
            end: timestamp.0 + 300,
            writes: None,
            reads: Vec::with_capacity(10),
            scans: vec![],
        };
        let mut rows: Vec<u64> = (0..9).map(|_| self.below(ROWS)).collect();
        rows.push(self.below(HOT));
        rows.sort_unstable();
        rows.dedup();
        for &row in &rows {
            let bent = self.stale && self.below(1000) == 0;
            let version = Version::At(if bent { Timestamp::ZERO } else { self.newest[row as usize] });
            txn.reads.push(Read { column: ROW, key: Key::of_u64(row), version });
        }
        if read_only {
            self.look_at_queue(&mut txn);
        } else {
            for &row in rows.iter().take(5) {
                self.newest[row as usize] = timestamp;
                self.install(id, ROW, row, timestamp, false);
            }
            match self.below(20) {
                0 => {
                    self.queue.insert(self.next_in_queue, timestamp);
                    self.install(id, QUEUE, self.next_in_queue, timestamp, false);
                    self.next_in_queue += 1;
                }
                1 => self.take_oldest(&mut txn),
                _ => {}
            }
        }
        self.history.transactions.push(txn);
    }

    fn take_oldest(&mut self, txn: &mut Transaction) {
        let Some((oldest, stamp)) = self.queue.pop_first() else { return };
        let high = Some(Key::of_u64(oldest + 1));
        let rows = vec![(Key::of_u64(oldest), stamp)];
        txn.scans.push(ScanRead { column: QUEUE, low: Key::MIN, high, rows });
        self.install(txn.id, QUEUE, oldest, txn.timestamp.unwrap_or_default(), true);
    }

    fn look_at_queue(&mut self, txn: &mut Transaction) {
        let low = self.next_in_queue.saturating_sub(20);
        let rows = self.queue.range(low..).map(|(row, stamp)| (Key::of_u64(*row), *stamp)).collect();
        let high = Some(Key::of_u64(self.next_in_queue + 5));
        txn.scans.push(ScanRead { column: QUEUE, low: Key::of_u64(low), high, rows });
    }

    fn install(&mut self, txn: TxnId, column: ColumnGroup, row: u64, stamp: Timestamp, delete: bool) {
        let install = Install { txn, column, key: Key::of_u64(row), stamp, delete };
        self.history.installs[row as usize % SHARDS].push(install);
    }
}
