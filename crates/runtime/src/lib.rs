//! Where transactions run: one explicit environment that holds everything nondeterministic.
//!
//! A *participant* ([`Participant`]) is what one shard owns: a protocol with its store. It answers
//! requests synchronously. Coordinators are futures. They reach the participant of their own shard
//! by a function call and all others by messages, and get time, random numbers, files and streams
//! from the same place ([`Env`]). [`ShardEnv`] is what a shard does in between. [`real`] runs
//! shards as pinned threads, of one process or of the nodes of a cluster; [`sim`] runs them in a
//! simulated world.

mod disk;
mod echo;
mod env;
pub mod real;
mod shard;
pub mod sim;
mod stream;
mod watermark;

pub use disk::{Disk, DiskError, DiskFault, FileName, MAX_FILE, MAX_LENGTH, SECTOR, Verb};
pub use echo::Echo;
pub use env::{Env, Handled, Logged, Messages, Participant, Suspect, Task, Tasks, Unknown};
pub use shard::{Appended, Pause, Pending, ShardEnv, Sleep, Stable, TASKS_PER_PASS};
pub use stream::{Accept, Broken, Detached, READ_MAX, Stream, UNSENT_MAX};
pub use watermark::{LowWater, Watermark};
