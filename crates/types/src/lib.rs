//! The vocabulary that every other crate shares: timestamps, keys, identifiers, placement, aborts,
//! recorded histories; and the random numbers that loads, clients and simulated worlds draw.
//!
//! A leaf: it depends on nothing and does nothing. What a value means is decided further up.

mod abort;
mod components;
mod held;
pub mod history;
mod ids;
mod key;
mod limits;
pub mod mutants;
mod placement;
pub mod random;
mod schema;
mod slab;
mod table;
mod timestamp;
pub mod wire;

pub use abort::Abort;
pub use components::{Descending, DescendingReader, KeyError, KeyReader};
pub use held::{HELD_MAX, Held, grouped};
pub use ids::{ShardId, TableId, TxnId};
pub use key::{KEY_MAX, Key, KeyBuilder, Order};
pub use limits::{VALUE_MAX, WRITTEN_MAX, WRITTEN_MAX_CLUSTER};
pub use placement::{Moved, Partitioning, Placement, RangePlace, SLOTS, Slot};
pub use schema::{DECLARATION_MAX, SchemaError, TABLES_MAX, check_table};
pub use slab::{Slab, Ticket};
pub use table::{ColumnGroup, IndexKind, TableSpec};
pub use timestamp::Timestamp;
