//! A database's shards, and the clusters that they form.
//!
//! [`Engine`] starts shards with a protocol and tables: all of a database, those of one node of a
//! cluster, or the one of a client. [`Cluster`] is what the file of a cluster says, checked;
//! [`Schema`] declares tables. The library `plimsoll`, nodes and benchmarks are built on
//! it.
//!
//! Left out: everything that is said over HTTP, and what a client does ([`OpenError`] is here
//! because an engine is what connects).

mod cluster;
mod data_dir;
mod difference;
mod engine;
mod error;
pub mod machine;
mod runtime;
mod schema;

pub use cluster::{
    CLIENTS_MAX, Cluster, ClusterError, Durability, MAX_STALENESS, NodeConfig, ORACLE_ID, OracleConfig,
    describe_tables,
};
pub use data_dir::{Verified, VerifiedShard, has_cut, verify};
pub use difference::difference;
pub use engine::{Engine, EngineOptions, Missing};
pub use error::OpenError;
pub use plimsoll_replication::Settings as LogSettings;
pub use plimsoll_types::{SchemaError, TABLES_MAX, check_table};
pub use runtime::{AnyRuntime, Start};
pub use schema::{SHARDS_MAX, STALENESS_MAX, Schema};
