//! The concurrency-control protocols.

mod occ;
mod two_pl;

pub use occ::Occ;
pub use two_pl::TwoPl;
