//! Multi-version records owned by one shard: tables, indexes, versions, locks, garbage collection.

mod hash;
mod mark;
mod ordered;
mod tails;

pub use hash::HashIndex;
pub use mark::Mark;
pub use ordered::{LeafId, OrderedIndex};
pub use tails::Tails;

/// A row's number in its table on its shard; reused after the row was unlinked.
pub type RowId = u32;
