//! The words of this crate: what protocols, schemes, shards and coordinators speak about, and send
//! to each other. No word knows a shard or a protocol.

pub mod attempt;
pub mod fetched;
pub mod messages;
pub(crate) mod parts;
pub mod procedure;
pub mod service;
pub mod shipped;
pub mod timestamp;
pub mod trace;
pub mod work;
