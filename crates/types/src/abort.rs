//! Why a transaction did not commit.

use std::fmt;

/// An expected end of a transaction's attempt, counted by reason. Not an error: all but
/// [`Abort::User`] are retried with the same inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Abort {
    /// A record, a gap or a cell it wants is held by another transaction, or was overwritten before
    /// it could be locked.
    WriteConflict,
    /// Something it read is no longer the newest version, or a range it scanned has changed.
    Validation,
    /// An older transaction took its lock away (wound-wait).
    Wounded,
    /// A participant voted REFUSE.
    Refused,
    /// A participant does not own the slot, or not yet: the coordinator's map is out of date, or
    /// has become so meanwhile.
    StaleTerm,
    /// The channel to a participant was reset before the first RECORD was sent, or a participant
    /// has lost its vote and all others have agreed to abort.
    Unknown,
    /// The transaction's own logic said no (a missing item, too little money). Never retried.
    User,
    /// A timestamp that the transaction needs is further ahead of a shard's clock than clocks may
    /// be apart: some clock is wrong.
    ClockAhead,
    /// A participant's process has no memory left for what the transaction writes. Reads, and writes
    /// that only delete, do not end so.
    Full,
    /// A participant's log has no room on its disk for what the transaction writes or deletes. Reads
    /// do not end so.
    DiskFull,
}

crate::wire!(
    enum Abort {
        WriteConflict = 0,
        Validation = 1,
        Wounded = 2,
        Refused = 3,
        StaleTerm = 4,
        Unknown = 5,
        User = 6,
        ClockAhead = 7,
        Full = 8,
        DiskFull = 9,
    }
);

impl Abort {
    /// Every reason, in the order of the counters that report them.
    pub const ALL: [Abort; 10] = [
        Abort::WriteConflict,
        Abort::Validation,
        Abort::Wounded,
        Abort::Refused,
        Abort::StaleTerm,
        Abort::Unknown,
        Abort::User,
        Abort::ClockAhead,
        Abort::Full,
        Abort::DiskFull,
    ];

    /// Position in [`Abort::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The reason's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Abort::WriteConflict => "write_conflict",
            Abort::Validation => "validation",
            Abort::Wounded => "wounded",
            Abort::Refused => "refused",
            Abort::StaleTerm => "stale_term",
            Abort::Unknown => "unknown",
            Abort::User => "user",
            Abort::ClockAhead => "clock_ahead",
            Abort::Full => "full",
            Abort::DiskFull => "disk_full",
        }
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for Abort {}
