//! Plimsoll: a serializable in-memory transactional database, embedded, or in a cluster that
//! [`Database::connect`] reaches.
//!
//! Tables are declared in a [`Schema`], or made later by [`Database::create_table`];
//! [`Database::open`] spreads their rows over *shards*, threads that own their data outright. Keys
//! and values are bytes, keys ordered as such: [`Key::build`] makes them of numbers and texts, in
//! ascending or descending order, and [`Key::read`] takes them apart.
//!
//! ```
//! use plimsoll::{Database, Error, Freshness, IndexKind, Key, Options, Schema};
//!
//! let mut schema = Schema::new();
//! let stock = schema.table("stock", IndexKind::Ordered)?;
//! let db = Database::open(schema, Options { shards: 2, ..Options::default() })?;
//!
//! // All or nothing, as if nobody else were there.
//! let (nuts, bolts) = (Key::build().text("nuts").finish(), Key::build().text("bolts").finish());
//! db.transact(|txn| -> Result<(), Error> {
//!     txn.insert(stock, &nuts, b"20")?;
//!     txn.insert(stock, &bolts, b"30")
//! })?;
//! let before = db.snapshot(Freshness::Newest)?;
//! db.transact(|txn| -> Result<(), Error> {
//!     let some = txn.get(stock, &nuts)?;
//!     assert_eq!(some.as_deref(), Some(b"20".as_slice()));
//!     txn.delete(stock, &nuts)
//! })?;
//!
//! // A snapshot does not change, and never fails because of others.
//! assert_eq!(before.get(stock, &nuts)?, Some(b"20".to_vec()));
//! let rows: Vec<_> = before.scan(stock, ..)?.collect::<Result<_, Error>>()?;
//! assert_eq!(rows, [(bolts, b"30".to_vec()), (nuts, b"20".to_vec())]);
//! db.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * **[`Database::transact`]** runs a closure until it commits. Transactions are strictly
//!   serializable: OCC under decentralized scalar timestamps (`docs/protocols/occ.md`,
//!   `docs/protocols/dst.md`). One that lost against another is repeated after a random pause; an
//!   error of the closure's own rolls it back, and so does an error of an operation that the
//!   closure drops.
//! * **Ranges.** [`Txn::scan`] and [`Snapshot::scan`] read ranges of ordered tables (`low..high`,
//!   `low..=high`, a prefix) from either end, with or without a limit: [`KeyRange`].
//!   [`Txn::cursor`] fetches the rows of a range of any length some hundred at a time, as a
//!   snapshot's scan does. [`Txn::get_many`] and [`Snapshot::get_many`] read many keys at the same
//!   time.
//! * **[`Database::snapshot`]** reads a consistent state that does not change, as fresh or as stale
//!   as asked for. It never aborts, whatever is written meanwhile, and its scans need little
//!   memory.
//! * **[`Options::pair`]** chooses another protocol or timestamp scheme, to compare with. Not all
//!   have snapshots, and `rc` is not serializable.
//! * **Sessions.** All clones of a handle see what was written through any of them; so do fresh
//!   snapshots through other handles. Only for stale snapshots it matters who asks: see
//!   [`Database::session`]. Another process goes on with what a session has seen: see
//!   [`Database::token`].
//! * **Memory** has a limit ([`Options::memory`]). When it is reached, transactions that write fail
//!   with [`Error::Full`]; reads and deletions go on.
//! * **Errors** are values: [`SchemaError`], [`OpenError`], [`Error`]. A closure that begins
//!   another transaction of its database is told so ([`Error::Nested`]), and so is a client of a
//!   cluster whose clock is too far ahead of those of the nodes ([`Error::ClockAhead`]). A panic in
//!   a shard is a bug and ends the process: half a database is of no use to anyone.
//!
//! A secondary index is an ordinary table whose key holds the indexed columns and the primary key,
//! written by the same transactions: `examples/index.rs`. `examples/web.rs` hands sessions on in
//! cookies, `examples/queue.rs` is a queue with priorities, `examples/bank.rs` a bank with clerks
//! and an auditor.
//!
//! What this face leaves out: an operation is a hop between two threads, which takes from 2 to 20
//! µs. Procedures that run on the shards themselves (`plimsoll_txn::procedure`, as the benchmark
//! uses them) are one to two orders of magnitude faster. Tables are not dropped or changed.

mod database;
mod error;
mod find;
mod schema;

pub use database::{
    Column, ColumnGroup, Cursor, Database, Freshness, KeyRange, OldestSnapshot, Options, Outcomes, Row, Rows,
    Snapshot, Stats, TableId, TableMemory, Token, TokenError, Txn, VALUE_MAX, WRITTEN_MAX,
    WRITTEN_MAX_CLUSTER,
};
pub use error::Error;
pub use find::{addresses, difference_from, find};
pub use plimsoll_engine::{
    CLIENTS_MAX, Cluster, ClusterError, Durability, MAX_STALENESS, NodeConfig, ORACLE_ID, OpenError,
    OracleConfig, SHARDS_MAX, STALENESS_MAX, SchemaError, TABLES_MAX,
};
pub use plimsoll_runtime::real::{BadEndpoint, Endpoint};
pub use plimsoll_txn::pairs::{LEGAL_PAIRS, Pair, PairError, Protocol, Scheme};
pub use plimsoll_types::{
    Abort, Descending, DescendingReader, IndexKind, KEY_MAX, Key, KeyBuilder, KeyError, KeyReader,
    Partitioning, SLOTS, ShardId, Slot, TableSpec, Timestamp,
};
pub use schema::Schema;
