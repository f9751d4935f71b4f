//! Judges recorded histories of multi-version transactions.
//!
//! A run of the database, under load, in the simulator or against a mutant of a protocol, leaves a
//! [`History`]: the committed transactions with the versions they read, and the versions each shard
//! installed, in order. Because versions carry names, nothing has to be guessed: serializability is
//! the absence of a cycle in the graph of dependencies (Adya, Liskov and O'Neil, *Generalized
//! Isolation Level Definitions*, ICDE 2000), and a scalar scheme can be replayed in the order of
//! its timestamps.
//!
//! Four judges look at a history, each blind to something that another sees:
//!
//! | file | asks | needs |
//! |---|---|---|
//! | `integrity.rs` | do coordinators and shards tell the same story? | nothing |
//! | `graph.rs`, `cycles.rs`, `anomaly.rs` | is there an order of the transactions at all? | nothing |
//! | `replay.rs` | is the order of timestamps such an order? (I1, I2, I4) | scalar timestamps |
//! | `realtime.rs` | does it agree with what clients could observe from outside? | a common clock |
//!
//! A worked example. T1 reads x in its version @0 and installs y@5; T2 reads y in its version @0
//! and installs x@5. T2 overwrote what T1 had read, so T1 comes before T2; likewise T2 before T1.
//! The graph has a cycle of two anti-dependencies, a write skew:
//!
//! ```
//! use plimsoll_checker::*;
//! use plimsoll_types::history::{History, Install, Read, Transaction, Version};
//! use plimsoll_types::{Key, ShardId, TableId, Timestamp, TxnId};
//!
//! let column = TableId(0).row();
//! let txn = |number, reads: &[u8]| Transaction {
//!     id: TxnId { number, coordinator: ShardId(0) },
//!     label: "withdraw",
//!     read_only: false,
//!     timestamp: None,
//!     session: number as u32,
//!     begin: 0,
//!     end: 9,
//!     writes: Some(1),
//!     reads: vec![Read { column, key: Key::new(reads), version: Version::At(Timestamp::ZERO) }],
//!     scans: vec![],
//! };
//! let install = |number, key: &[u8]| Install {
//!     txn: TxnId { number, coordinator: ShardId(0) },
//!     column,
//!     key: Key::new(key),
//!     stamp: Timestamp(5),
//!     delete: false,
//! };
//! let history = History {
//!     transactions: vec![txn(1, &[0x0a]), txn(2, &[0x0b])],
//!     installs: vec![vec![install(1, &[0x0b]), install(2, &[0x0a])]],
//! };
//! let report = check(&history, Options::default(), &|_| "account".to_owned());
//! assert_eq!(report.violations[0].kind, "write skew (G2-item)");
//! assert_eq!(
//!     report.violations[0].detail,
//!     "T0.1 (withdraw) read account 0a at @0, which T0.2 (withdraw) overwrote at @5: T0.1 comes before \
//!      T0.2; T0.2 read account 0b at @0, which T0.1 overwrote at @5: T0.2 comes before T0.1; \
//!      so T0.1 would have to come before itself"
//! );
//! ```
//!
//! What no judge here can see:
//!
//! * **Values.** A version with the right name and the wrong contents passes; invariants over the
//!   values are the workloads' affair.
//! * **Aborted transactions**, and so whether they saw something inconsistent before they aborted.
//! * **A lost install**, unless coordinators count their writes and [`Options::complete`] is set,
//!   or somebody reads the version.
//! * **Which absence was read.** "No row" fits the time before the insert and the time after the
//!   delete. With scalar timestamps the newest absence that the reader may see is taken; without,
//!   only what holds for every absence is concluded (`index.rs`), and a cycle that hangs on the
//!   choice goes unseen.

mod anomaly;
mod cycles;
mod graph;
mod index;
mod integrity;
mod interner;
mod realtime;
mod replay;
mod report;
mod settled;
mod words;

pub use report::{KEPT_PER_KIND, Options, Report, Violation};

use plimsoll_types::ColumnGroup;
use plimsoll_types::history::History;

/// Judges a history. `names` gives the name of a column group as people know it, e.g.
/// `"warehouse.ytd"`.
///
/// Time and memory are linear in the size of the history, but for scans: one step per row of the
/// range that the scan saw, should have seen, or that was inserted only later.
pub fn check(history: &History, options: Options, names: &dyn Fn(ColumnGroup) -> String) -> Report {
    let mut report = Report { transactions: history.transactions.len() as u64, ..Report::default() };
    let index = index::Index::build(history, options);
    let words = words::Words::new(&index, names);
    integrity::check(&index, &words, &mut report);
    report.edges = graph::check(&index, &words, &mut report);
    if options.scalar {
        replay::check(&index, &words, &mut report);
        if options.realtime {
            realtime::check_realtime(&index, &words, &mut report);
        }
        if options.sessions {
            realtime::check_sessions(&index, &words, &mut report);
        }
    }
    report
}
