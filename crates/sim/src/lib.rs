//! Simulated worlds: every protocol under every scheme, under faults, judged; one seed, one world.
//!
//! [`plan::Plan::drawn`] makes a world of a seed, [`run::run`] lets it run and judges it.

pub mod client;
mod judge;
pub mod plan;
pub mod run;
pub mod shrink;
pub mod trace;
pub mod workload;
