//! One shard of a database: its data, its locks, its ballots, and the steps that transactions take
//! on it. Nothing here waits, and nothing knows a protocol.

pub mod ballot;
pub mod base;
mod common;
pub(crate) mod cut;
pub(crate) mod durable;
pub(crate) mod image;
pub(crate) mod journal;
pub mod load;
pub(crate) mod locks;
pub mod moves;
mod reads;
pub mod records;
pub mod room;
pub(crate) mod slots;
pub mod steps;
pub mod tables;
