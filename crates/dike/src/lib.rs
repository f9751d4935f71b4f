//! Dike: a benchmark for distributed transactional databases, on whatever speaks PostgreSQL's or MySQL's
//! protocol.

pub mod chaos;
pub mod collect;
pub mod control;
pub mod metrics;
pub mod report;
