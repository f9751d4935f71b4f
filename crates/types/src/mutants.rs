//! Planted bugs, to show that the checkers bite.
//!
//! Each [`Mutant`] undoes one rule that makes a protocol correct. The rule's place in the code asks
//! [`planted`] whether it is to be broken in this thread; without the feature `mutants` the answer
//! is a constant `false` and the question compiles to nothing. The simulator sweeps seeds with one
//! mutant planted until a checker notices; `docs/simulator.md` has the table.

macro_rules! mutants {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// A planted bug, named after the rule it breaks.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Mutant {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &'static [Mutant] = &[$(Mutant::$name,)+];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Mutant::$name => $text,)+ }
            }

            /// What it breaks, in words.
            pub fn description(self) -> String {
                let lines: &[&str] = match self { $(Mutant::$name => &[$($doc),+],)+ };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
            }
        }
    };
}

mutants! {
    /// OCC and 2PL: the stamp ignores the bounds of what is overwritten on other shards.
    BoundIgnored = "bound-ignored",
    /// OCC: the bound of what is overwritten on other shards is taken when it is read, and not
    /// again when it is locked.
    EarlyBound = "early-bound",
    /// OCC: validation looks whether a read is current, and pins it only in a later pass.
    ValidateThenPin = "validate-then-pin",
    /// What a transaction has read does not get its timestamp as mark.
    NoPin = "no-pin",
    /// A commit sets the marks of what it has read and written to its timestamp, even if they were
    /// higher.
    StoredMark = "stored-mark",
    /// OCC: validation does not mind that somebody else has locked what was read.
    ForeignLockIgnored = "foreign-lock-ignored",
    /// OCC: validation does not look whether there is a newer version.
    NewVersionIgnored = "new-version-ignored",
    /// A version is installed, and the mark of its record stays where it was.
    UnmarkedInstall = "unmarked-install",
    /// Installing a version sets the mark of its record to that stamp, even if it was higher.
    LoweredMark = "lowered-mark",
    /// Who finds nothing does not come after the deletion if the row was unlinked since.
    FloorIgnored = "floor-ignored",
    /// What is written on other shards than the coordinator's has the next timestamp.
    TwoStamps = "two-stamps",
    /// Snapshot reads do not raise marks.
    NoRaise = "no-raise",
    /// Snapshot reads on other shards raise marks, but only in a later pass than they look for
    /// owners.
    LateRaise = "late-raise",
    /// A snapshot read that need not wait for the owner of a lock does not raise the mark either.
    SkipWithoutRaise = "skip-without-raise",
    /// Snapshot reads do not wait for writers.
    NoWait = "no-wait",
    /// Snapshot reads do not wait where the mark is above the snapshot: the condition as it was
    /// published.
    GatedWait = "gated-wait",
    /// A lock promises no lower bound of its owner's timestamp.
    NoLowerBound = "no-lower-bound",
    /// A lock promises a lower bound that its owner's timestamp may come out below.
    HighLowerBound = "high-lower-bound",
    /// 2PL: a lock taken for a read that will be written keeps the bound it had at the read.
    UpgradeKeepsBound = "upgrade-keeps-bound",
    /// 2PL, client_2pc: shared locks are released without pinning what they protected.
    ReleaseWithoutPin = "release-without-pin",
    /// OCC: reads on other shards are pinned to a stamp that was taken before the last lock.
    EarlyStamp = "early-stamp",
    /// OCC: reads are validated together with the locks, at a stamp that is guessed, and not again
    /// at the final one.
    FastPath = "fast-path",
    /// OCC: reads are validated along with the locks, although one round was not asked for.
    OneRoundUnasked = "one-round-unasked",
    /// OCC: what was only read on a shard that is written as well is validated there with the
    /// locks, and not locked.
    ValidatedAtLock = "validated-at-lock",
    /// A read-write transaction that wrote nothing does not pin what it has read.
    ReadersWithoutPin = "readers-without-pin",
    /// A scan does not raise, or pin, the marks of the leaves it went over.
    LeafNotMarked = "leaf-not-marked",
    /// Linking a key does not change the version of what covered it.
    LinkUnnoticed = "link-unnoticed",
    /// Every snapshot is as old as one may be.
    StaleSnapshot = "stale-snapshot",
    /// Every snapshot is as old as one may be, and older than what its session has seen.
    TokenIgnored = "token-ignored",
    /// A read-write transaction is not ordered after what its session has seen.
    SessionForgotten = "session-forgotten",
    /// A snapshot that sees an older version is given the newest value.
    NewestValue = "newest-value",
    /// An answer leaves before the clock has reached the transaction's timestamp.
    EarlyAnswer = "early-answer",
    /// Old versions are collected although a snapshot that is held may want them.
    HeldSnapshotForgotten = "held-snapshot-forgotten",
    /// Of the snapshots that are held only the oldest keeps what it sees.
    NewerHeldForgotten = "newer-held-forgotten",
    /// Old versions are kept for a snapshot that is over.
    HeldForEver = "held-for-ever",
    /// Who waits for a lock is not woken when it is dropped.
    LostWakeUp = "lost-wake-up",
    /// GTS: a number counts as stable although a smaller one has not been reported.
    GapIgnored = "gap-ignored",
    /// GTS: a shard fetches more numbers than it needs, and uses those that are left for later
    /// transactions.
    PrefetchedNumbers = "prefetched-numbers",
    /// VTS: stamps of a client that is gone are published without what their transactions may have
    /// read.
    SettledAlone = "settled-alone",
    /// A coordinator that is not answered aborts without asking, although its first RECORD was
    /// sent.
    AbortsAlone = "aborts-alone",
    /// Who has not voted and is asked says REFUSE, and may vote RECORD later.
    RefusalNotPlanted = "refusal-not-planted",
    /// A shard that has voted RECORD and hears nothing aborts by itself.
    GivesUpInDoubt = "gives-up-in-doubt",
    /// A shard votes RECORD although it has refused and the transaction's locks there are lost.
    LateRecord = "late-record",
    /// A coordinator's shard that votes last votes RECORD although it has refused before.
    OwnRefusalForgotten = "own-refusal-forgotten",
    /// A shard does not forget how it has voted.
    VotesKept = "votes-kept",
    /// A shard keeps the locks of a transaction whose coordinator is silent.
    WaitsForEver = "waits-for-ever",
    /// 2PL: nobody looks whether the locks in other processes are still held.
    PinIgnored = "pin-ignored",
    /// ROCOCO: a transaction's stamp is what its start phase found, whoever is before it in the
    /// end.
    StartStampsOnly = "start-stamps-only",
    /// ROCOCO: who is before a transaction counts, but not those whom that one is in a cycle with.
    SiblingsIgnored = "siblings-ignored",
    /// ROCOCO: a writer is not ordered after those who have started to read what it writes.
    ReadersForgotten = "readers-forgotten",
    /// ROCOCO: what was heard of others is kept although nobody is left whom it concerns.
    GraphKept = "graph-kept",
    /// ROCOCO: the answer to START leaves before its record is on disk.
    StartUngated = "start-ungated",
    /// ROCOCO: a shard that comes back finds out anew how late what has started there may be, and
    /// has forgotten its marks.
    TentRecomputed = "tent-recomputed",
    /// ROCOCO: a shard says that a transaction is decided before that is on disk.
    DecidedUngated = "decided-ungated",
    /// ROCOCO: what has started and is not over is not in images.
    StartsNotInImage = "starts-not-in-image",
    /// ROCOCO: what is over and forgotten is not in images.
    OverNotInImage = "over-not-in-image",
    /// client_2pc: whoever adds votes up goes by the stamp of the first, and not by the largest.
    VotesNotJoined = "votes-not-joined",
    /// OCC, client_2pc: records that were only read are checked when a shard votes, and not held
    /// until the decision.
    ReadsNotHeld = "reads-not-held",
    /// OCC, client_2pc: absent keys and ranges are checked when a shard votes, and not held until
    /// the decision.
    RangesNotHeld = "ranges-not-held",
    /// A slot moves without the marks of what was read there.
    MarksLeftBehind = "marks-left-behind",
    /// After a move absent keys and ranges that were read before it still count as unchanged.
    MoveUnnoticed = "move-unnoticed",
    /// A slot moves although somebody holds locks on it.
    MoveUnderLocks = "move-under-locks",
    /// A shard serves whatever it is asked for, whether or not it owns the slot.
    MapUnchecked = "map-unchecked",
    /// A shard scans for a coordinator whose map says other things of its slots.
    ScanUnchecked = "scan-unchecked",
    /// A write of a table with copies everywhere misses one of them.
    CopyForgotten = "copy-forgotten",
    /// Nobody goes on with what a coordinator has left behind.
    OrphansLeft = "orphans-left",
    /// A shard believes any timestamp that another process names, however far ahead of its clock.
    BelievesAnyStamp = "believes-any-stamp",
    /// A piece whose START is repeated executes again.
    StartsTwice = "starts-twice",
    /// A transaction starts again where it is over.
    StartsWhatIsOver = "starts-what-is-over",
    /// Nothing waits for a shard's log: answers leave before what they tell of is on disk.
    AnswersUnstable = "answers-unstable",
    /// Versions are not logged.
    InstallsNotLogged = "installs-not-logged",
    /// Votes are not logged.
    VotesNotLogged = "votes-not-logged",
    /// The outcomes of votes are not logged.
    OutcomesNotLogged = "outcomes-not-logged",
    /// A shard that comes back does not hold the locks of transactions that are in doubt.
    LocksNotRestored = "locks-not-restored",
    /// A shard that comes back has forgotten how far its marks went.
    CeilingForgotten = "ceiling-forgotten",
    /// Shards of one process commit without votes although each has a log of its own.
    OneFate = "one-fate",
    /// The log is recycled when an image is begun, and not when it is on disk.
    LogRecycledEarly = "log-recycled-early",
    /// An image is finished although the log of what is in it may not be on disk.
    ImageOfUnstable = "image-of-unstable",
    /// Votes are not in images.
    VotesNotInImage = "votes-not-in-image",
    /// Rows that somebody has locked are not in images.
    LockedNotInImage = "locked-not-in-image",
    /// The log is read from where the image was finished, and not from where it was begun.
    ImageReadFromEnd = "image-read-from-end",
    /// The log of a shard does not say that slots have left it.
    LeavingNotLogged = "leaving-not-logged",
    /// The log of a shard does not say that slots have arrived.
    ArrivalNotLogged = "arrival-not-logged",
    /// A shard that comes back does not send slots that have left and not arrived.
    ParcelForgotten = "parcel-forgotten",
    /// An image counts although slots have moved while it was made.
    ImageDuringMove = "image-during-move",
    /// Which slots have moved is not in images.
    MapNotInImage = "map-not-in-image",
    /// A shard closes although the owner of a lock may still commit below.
    ClosesOverOwner = "closes-over-owner",
    /// A shard says that it has closed before that is on disk.
    CutNotOnDisk = "cut-not-on-disk",
    /// A shard goes back to where it has closed itself, and not to the cut of all.
    OwnCut = "own-cut",
    /// What is above the cut is kept.
    CutIgnored = "cut-ignored",
    /// A shard that serves does not go back when another one that has served the same era comes
    /// back, and says that it has begun the next.
    OldEraAnswers = "old-era-answers",
    /// A voter that comes back counts as one that knows nothing, although all go back to what its
    /// log has.
    VotesEndWithLives = "votes-end-with-lives",
    /// The log does not say that an era has begun.
    EraNotLogged = "era-not-logged",
    /// An image counts although the cut has not passed what is in it.
    ImageAboveCut = "image-above-cut",
    /// A shard says only once in its life that it has a stamp above the cut.
    UnclosedToldOnce = "unclosed-told-once",
    /// GTS: an oracle that comes back gives out numbers that it has given out before.
    NumbersReused = "numbers-reused",
    /// GTS: an oracle that comes back publishes numbers of its former lives that are not decided.
    PublishedTooHigh = "published-too-high",
    /// GTS: a coordinator goes on with numbers of an oracle that is gone, and does not tell the next
    /// life of the oracle that it has them.
    OldNumberTaken = "old-number-taken",
    /// VTS: a shard that comes back has forgotten which transactions have validated reads on it.
    PinsLost = "pins-lost",
    /// VTS: a shard that comes back goes on in its slot where its former life was.
    SlotKept = "slot-kept",
    /// SQL: a transaction that is run again commits although its client would get other answers.
    JournalUnseen = "journal-unseen",
    /// SQL: a transaction that is done again in the database does not look whether it reads what it
    /// has read before.
    ReadsUnseen = "reads-unseen",
    /// SQL: a transaction that is run again keeps what it has written before.
    WritesKept = "writes-kept",
    /// SQL: `ROLLBACK TO` undoes nothing.
    SavepointForgotten = "savepoint-forgotten",
    /// SQL: what a name stands for is not read in the statement's transaction.
    DescriptorUnvalidated = "descriptor-unvalidated",
    /// SQL: an index is filled from rows as they were at a snapshot.
    IndexFromOldRows = "index-from-old-rows",
    /// SQL: a transaction that is run again does not look again for the rows that foreign keys
    /// name.
    ParentsOnce = "parents-once",
    /// SQL: a session that is over keeps the rows that it has reserved.
    ReservationKept = "reservation-kept",
    /// SQL: nobody sees that sessions wait for each other.
    EdgeLost = "edge-lost",
}

#[cfg(feature = "mutants")]
mod switch {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static PLANTED: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Plants a bug in this thread, or removes it.
    pub fn plant(mutant: Option<Mutant>) {
        PLANTED.set(mutant);
    }

    /// Whether this bug is planted in this thread.
    pub fn planted(mutant: Mutant) -> bool {
        PLANTED.get() == Some(mutant)
    }
}

#[cfg(feature = "mutants")]
pub use switch::{plant, planted};

/// Whether this bug is planted: never, without the feature `mutants`.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn planted(_: Mutant) -> bool {
    false
}
