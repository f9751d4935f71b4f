//! Multi-version records owned by one shard: tables, indexes, versions, locks, garbage collection.

mod chunks;
mod garbage;
mod hash;
mod lock;
mod mark;
mod moved;
mod ordered;
mod ranges;
mod record;
mod slab;
mod store;
mod table;
mod tails;
mod vacancies;
mod values;

pub use garbage::KeptMemory;
pub use hash::HashIndex;
pub use lock::{Holder, Lock, LockId, Waiter};
pub use mark::Mark;
pub use moved::{MovedRecord, MovedRow};
pub use ordered::{LeafId, OrderedIndex};
pub use ranges::RangeLock;
pub use record::{Record, VALUE_MAX};
pub use store::{At, Operations, Rows, SnapshotTooOld, Store, StoreMemory, Visited, written_bytes};
pub use table::{Cover, Place, TableMemory};
pub use tails::Tails;

/// A row's number in its table on its shard; reused after the row was unlinked.
pub type RowId = u32;
