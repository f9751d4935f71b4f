//! A cluster as its users have it: nodes are processes, clients come from outside, and somebody
//! pulls a plug.

mod bench;
mod clients;
mod congestion;
mod deaths;
mod gone_back;
mod kept;
mod nodes;
mod oracle;
mod refusals;
mod scene;
mod sql;
mod tables;
#[path = "../waiting/mod.rs"]
mod waiting;
