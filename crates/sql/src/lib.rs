//! SQL as PostgreSQL speaks it: its wire protocol, its grammar, its types, and what runs them.
//!
//! PostgreSQL 15 is the specification. The grammar is PostgreSQL's own (libpg_query); the rest is
//! written here, because a statement is to run on the shard that has its rows, as a task of that
//! shard, and no engine that could be had as a library answers as PostgreSQL does.
//!
//! | module | has | does not know |
//! |---|---|---|
//! | [`wire`] | messages, limits, encodings of bytes | SQL |
//! | [`parse`] | the grammar, positions of errors | tables |
//! | [`types`] | values with their text and binary forms | expressions |
//! | [`functions`] | the registry of functions, operators and casts | storage |
//! | [`analyze`] | names and type resolution: from parse tree to query | costs |
//! | [`catalog`] | descriptors of tables | where they are kept |
//! | [`encoding`] | keys, rows and descriptors as bytes | statements |
//! | [`execute`] | what evaluates a query | the parser |
//! | [`store`] | what is asked of the database below | SQL |
//! | [`session`] | the loop of a connection, its settings and statements | sockets |

pub mod analyze;
pub mod catalog;
pub mod encoding;
pub mod error;
pub mod execute;
pub mod functions;
pub mod parse;
pub mod session;
mod stack;
pub mod store;
pub mod types;
pub mod wire;

#[cfg(test)]
mod testing;

pub use error::{Severity, SqlError, SqlState, Subject};
