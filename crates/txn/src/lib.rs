//! Transaction protocols and timestamp schemes.
//!
//! A *protocol* ([`protocol::Protocol`]: [`protocols`]) decides which transactions may commit; a
//! *timestamp scheme* ([`timestamp::Scheme`]: [`timestamps`]) writes the order down, so that
//! read-only transactions can read a consistent snapshot. They combine as type parameters,
//! `Occ<Dst>`. Workloads are written once, as [`procedure::Procedure`]s. [`execute::execute`] runs
//! one.
//!
//! Modules stand in folders, each of which uses only those before it in this list. A module is
//! imported by its own name, without its folder's.
//!
//! * `words`: what all others speak about, such as [`attempt`], [`messages`] and [`timestamp`];
//! * [`timestamps`]: the schemes;
//! * `shard`: one shard's data and the steps of transactions on it, such as [`base`], [`records`]
//!   and [`moves`];
//! * `commit`: how transactions execute and commit under every protocol, such as [`protocol`],
//!   [`execute`] and [`votes`];
//! * [`protocols`].
//!
//! [`pairs`] stands above all of them.

mod commit;
pub mod pairs;
pub mod protocols;
mod shard;
#[cfg(test)]
mod testing;
pub mod timestamps;
mod words;

pub use commit::{any_shard, envelope, executable, execute, interactive, protocol, read_only, votes};
use commit::{imaging, local, logging, optimistic, prepare, remote, rounds, stamps};
pub use protocols::rococo::chopping;
pub use shard::{ballot, base, load, moves, records, room, steps, tables};
use shard::{cut, journal, locks, slots};
use words::parts;
pub use words::{attempt, fetched, messages, procedure, service, shipped, timestamp, trace, work};
