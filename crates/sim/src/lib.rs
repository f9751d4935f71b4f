//! Simulated worlds.

pub mod client;
pub mod workload;
