//! How transactions execute and commit, as far as protocols have it in common: the seam to
//! protocols, pieces at work, read-only transactions, and votes.

pub mod any_shard;
pub mod envelope;
pub mod executable;
pub mod execute;
pub(crate) mod imaging;
pub mod interactive;
pub(crate) mod local;
pub(crate) mod logging;
pub(crate) mod optimistic;
pub(crate) mod prepare;
pub mod protocol;
pub mod read_only;
pub(crate) mod remote;
pub(crate) mod rounds;
pub(crate) mod stamps;
pub mod votes;
