//! Where transactions run: one explicit environment that holds everything nondeterministic.
//!
//! A *node* of this crate is what one shard owns, a protocol's participant with its store: it answers
//! requests synchronously ([`Node`]). Coordinators are futures that reach the node of their own shard by a
//! function call and all others by message, and take time, chance and files from the same place ([`Env`]).
//! What a shard does in between is [`ShardEnv`]; [`real`] runs shards as pinned threads, of one process or of
//! the nodes of a cluster, [`sim`] runs them in a simulated world.

mod disk;
mod echo;
mod env;
pub mod real;
mod shard;
pub mod sim;
mod watermark;

pub use disk::{Disk, DiskError, DiskFault, FileName, MAX_FILE, MAX_LENGTH, SECTOR, Verb};
pub use echo::Echo;
pub use env::{Env, Handled, Node, Unknown};
pub use shard::{Pending, ShardEnv, TASKS_PER_PASS};
pub use watermark::{LowWater, Watermark};
