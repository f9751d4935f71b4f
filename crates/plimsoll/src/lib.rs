//! Plimsoll: a serializable in-memory transactional database.

pub mod engine;
