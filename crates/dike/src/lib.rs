//! Dike: a benchmark for distributed transactional databases, on whatever speaks PostgreSQL's or
//! MySQL's protocol.
//!
//! TPC-C made measurable where databases are distributed (Qu et al., *How Good is the Distributed
//! Databases in Supporting Transaction Processing*, 2022): how many transactions are distributed
//! and over how many nodes is set, not hoped for; so are contention, imbalance, change over time
//! and faults; and before anything is measured, functional tests say whether the database keeps
//! what its isolation level promises.
//!
//! | module | what it is |
//! |---|---|
//! | [`config`] | one TOML file with every parameter, and flags over it |
//! | [`target`] | the databases: drivers, dialects, layouts of tables, what errors mean |
//! | [`load`] | the tables and their rows, the same for the same seed |
//! | [`transactions`] | TPC-C's five and Dike's four, and where their inputs come from |
//! | [`run`] | terminals that run them, retries, outages, and what came of every attempt |
//! | [`check`] | TPC-C's consistency conditions |
//! | [`function`] | tests with a verdict: deadlocks, snapshots, isolation |
//! | [`cli`] | `plimsoll dike ...` |
//! | [`control`] | the controlled quantities: distribution, contention, skew, change over time |
//! | [`metrics`] | what a run measures, and availability, scalability and schedulability |
//! | [`report`] | a page and a table of one or several runs |
//! | [`chaos`] | faults injected on purpose, on a schedule, and undone |
//! | [`collect`] | what the machines of a target did |

pub mod chaos;
pub mod check;
pub mod cli;
pub mod collect;
pub mod config;
pub mod control;
pub mod function;
pub mod load;
pub mod metrics;
pub mod report;
pub mod run;
pub mod target;
pub mod transactions;

use plimsoll_page::progress;
pub use plimsoll_page::progress::Progress;
