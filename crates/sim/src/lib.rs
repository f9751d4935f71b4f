//! Simulated worlds: every protocol under every scheme, under faults, judged; one seed, one world.
//!
//! [`plan::Plan::drawn`] makes a plan of a seed: protocol, scheme, workload, machines, faults.
//! [`run::run`] lets the world of the plan run, in virtual time ([`plimsoll_runtime::sim`]), and
//! judges what came of it; `docs/simulator.md` lists what is judged. [`shrink::shrink`] makes a
//! world that fails smaller, [`recorder::Recorder`] keeps what happened in one.
//!
//! Clients are written over [`AnyShard`](plimsoll_txn::any_shard::AnyShard), so they are compiled
//! once for all pairs, and the same transactions run on real threads as well. All they need besides
//! is a [`client::Observer`], which tells the time at which transactions begin and end for the
//! record; it is no part of the world.
//!
//! Example: `run(&Plan::drawn(42, &Selection::default())?, None).violations` is empty, and is so
//! every time.
//!
//! Machines with data crash if their shards keep logs ([`plan::Plan::logs`]).
//!
//! Left out: worlds in which ROCOCO goes back to a cut, which it has not.

pub mod client;
pub mod export;
mod judge;
mod online;
pub mod plan;
pub mod recorder;
pub mod run;
pub mod shrink;
#[cfg(feature = "sql")]
pub mod sql;
pub mod workload;
mod world;
