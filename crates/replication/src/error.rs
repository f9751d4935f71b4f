//! Why a log cannot be read or written.

use std::fmt;

use plimsoll_runtime::{DiskError, FileName};
use plimsoll_types::wire::Malformed;

/// Why a log cannot be read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogError {
    /// The disk failed. If this is the answer to an append, nothing of the entries is in the log.
    Disk(DiskError),
    /// The disk failed three times in a row while entries were written. They are not acknowledged,
    /// but may be there after a restart, unless a later append succeeds.
    Doubtful(DiskError),
    /// Bytes that were on disk are wrong or missing: what stands behind them proves it.
    Damaged {
        /// The file.
        file: FileName,
        /// Where the first wrong byte can be, in bytes.
        offset: u64,
        /// The index of the first entry that cannot be read.
        index: u64,
    },
    /// A file belongs to something else.
    Foreign(Foreign),
    /// The reader of the entries refused one.
    Malformed {
        /// The file that the entry ends in.
        file: FileName,
        /// Where the entry's last batch begins, in bytes.
        offset: u64,
        /// The entry's index.
        index: u64,
        /// What the reader said.
        why: Malformed,
    },
}

/// A file that belongs to something else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Foreign {
    /// The file.
    pub file: FileName,
    /// In what it differs.
    pub difference: Difference,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Foreign { file, difference } = self;
        write!(
            f,
            "the file {file} is of {difference}: start with the directory that belongs here, or move the file away"
        )
    }
}

/// In what a file differs from what was expected, by what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Difference {
    /// The version of the format.
    Format(u32),
    /// The database's number.
    Database(u64),
    /// The shard's number.
    Shard(u16),
    /// The lineage.
    Lineage(u64),
}

impl Difference {
    pub(crate) fn in_file(self, file: FileName) -> Foreign {
        Foreign { file, difference: self }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Format(version) => write!(f, "version {version} of the format"),
            Difference::Database(database) => write!(f, "database {database:016x}"),
            Difference::Shard(shard) => write!(f, "shard {shard}"),
            Difference::Lineage(lineage) => write!(f, "lineage {lineage}"),
        }
    }
}

impl From<DiskError> for LogError {
    fn from(error: DiskError) -> LogError {
        LogError::Disk(error)
    }
}

impl From<Foreign> for LogError {
    fn from(foreign: Foreign) -> LogError {
        LogError::Foreign(foreign)
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Disk(error) => error.fmt(f),
            LogError::Doubtful(error) => {
                write!(f, "{error}, so that whether the last entries are in the log shows at the next start")
            }
            LogError::Damaged { file, offset, index } => write!(
                f,
                "the file {file} is damaged at byte {offset}, where entry {index} of the log should be, \
                 although that was on disk: bring the files back from a backup"
            ),
            LogError::Foreign(foreign) => foreign.fmt(f),
            LogError::Malformed { file, offset, index, why } => write!(
                f,
                "entry {index} of the log, in the file {file} at byte {offset}, cannot be understood \
                 ({why}): start the version of the program that wrote it"
            ),
        }
    }
}

impl std::error::Error for LogError {}
