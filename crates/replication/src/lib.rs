//! What a shard keeps on its disk: a log of entries, and images that replace the log's beginning.
//!
//! An entry is bytes; this crate knows no protocol. Everything works over
//! [`Disk`](plimsoll_runtime::Disk), whose contract says what a crash, a failed sync and a full
//! disk leave. The rules by which a log keeps what it has acknowledged stand at the head of
//! `log.rs`; every byte of the files is in `docs/format.md`.
//!
//! Left out: replication itself. The format has room for terms, and for what is known to be stable
//! at all members; both are zero as long as a log has one member.

mod disk;
mod entries;
mod error;
mod format;
mod image;
mod log;
mod mistakes;
mod read;
#[cfg(test)]
mod tests;
mod verify;

pub use entries::{ENTRY_MAX, Entries};
pub use error::{Difference, Foreign, LogError};
pub use image::{BLOCK_MAX, ImageError, ImageWriter, images, read_image, remove_image, remove_unfinished};
pub use log::{Log, Recovered, Settings};
pub use verify::{Line, Report, What, Wrong, verify};

/// What a log or an image belongs to; a file of another one is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The database's number.
    pub database: u64,
    /// The shard's number in it.
    pub shard: u16,
    /// Which of the logs that the shard has had: one ends when a log is lost, and the next begins.
    pub lineage: u64,
}
