//! The concurrency-control protocols.

mod client_2pc;
mod occ;
pub(crate) mod rococo;
mod two_pl;

pub use client_2pc::Client2pc;
pub use occ::Occ;
pub use rococo::Rococo;
pub use two_pl::TwoPl;
