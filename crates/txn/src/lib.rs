//! Transaction protocols and timestamp schemes.
//!
//! A *protocol* ([`protocol::Protocol`]: [`protocols`]) decides which transactions may commit; a
//! *timestamp scheme* ([`timestamp::Scheme`]: [`timestamps`]) writes the order down, so that
//! read-only transactions can read a consistent snapshot. They combine as type parameters,
//! `Occ<Dst>`. Workloads are written once, as [`procedure::Procedure`]s. [`execute::execute`] runs
//! one.

pub mod attempt;
pub mod ballot;
pub mod base;
pub mod chopping;
mod common;
pub mod envelope;
pub mod executable;
pub mod execute;
pub mod fetched;
pub mod interactive;
pub mod load;
mod local;
mod locks;
pub mod messages;
pub mod moves;
mod optimistic;
pub mod pairs;
mod parts;
mod prepare;
pub mod procedure;
pub mod protocol;
pub mod protocols;
pub mod read_only;
mod reads;
pub mod records;
mod remote;
pub mod shipped;
mod slots;
mod stamps;
pub mod steps;
#[cfg(test)]
mod testing;
pub mod timestamp;
pub mod timestamps;
pub mod trace;
pub mod votes;
pub mod work;
