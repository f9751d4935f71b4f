//! The seam between a shard and the disk that outlives it.
//!
//! A shard has one directory with files in it, named by short [`FileName`]s; there are no paths.
//! Its tasks reach it through a [`Disk`], which [`Env::disk`](crate::Env::disk) hands out. An
//! operation is on its way when its method returns, and the future only collects the answer:
//! dropping the future does not stop the operation. Operations of a shard are carried out one at a
//! time in the order in which they were asked for, so a writer may ask for a write and a sync and
//! wait for both at once. No operation blocks the shard. The caller has to bound how many
//! operations are under way; [`MAX_LENGTH`] bounds each of them.
//!
//! ## The contract
//!
//! *Without errors and crashes*: files are arrays of bytes. A write begins at most at the end of
//! its file (there are no holes), a write at offset 0 makes the file if there is none, reads end at
//! the end of the file, and a rename replaces a file that has the new name.
//!
//! *After a crash* what was synced is there, and nothing else is certain:
//!
//! * Of a file, what was there at its last [`Disk::sync`] and was not changed since. Each *sector*
//!   of [`SECTOR`] bytes that was changed is, by itself, as it was at any moment since that sync,
//!   and so is the length. A sector below the length that never reached the disk reads as zeros. So
//!   a record can be torn, a later one can be there without an earlier one, and bytes that were cut
//!   off can be back.
//! * Of the directory, the names as they were at the last [`Disk::sync_directory`]. Of later
//!   changes (a file made, renamed, removed) each is there or not, by itself: a rename is atomic,
//!   but may be lost when a removal that came after it is not (Pillai et al., *All File Systems Are
//!   Not Created Equal*, OSDI 2014). Syncing a file keeps its content; keeping its *name* takes a
//!   sync of the directory.
//! * Operations that were not answered have been carried out in whole, in part, or not at all.
//! * If only the process died, and not the machine, everything is there that was carried out,
//!   *synced or not*. So a process that reads a file after a restart does not know that the content
//!   is on disk, and must not promise it before it is synced.
//!
//! *After an error*:
//!
//! * A failed write has written any part of its range. Later operations are carried out
//!   nevertheless, but a write that would leave a hole fails as well. The failed write may be
//!   repeated.
//! * A failed truncate, rename or remove has happened or not.
//! * After a failed sync of a file, what was not synced before is on disk or not, sector by sector,
//!   and *stays so*: the operating system takes it for written, reads show it, and a second sync
//!   succeeds without having done anything. Only what is written again is synced again. This holds
//!   across a restart of the process, which cannot know of the failure: it has to write again what
//!   it recovers, if only in place, before it promises it. (Rebello et al., *Can Applications
//!   Recover from fsync Failures?*, ATC 2020.)
//! * A failed sync of the directory has promised nothing and may be repeated: file systems journal
//!   names, and stop altogether if that fails.
//! * On a full disk, operations that need more room fail. Removals never do. Some file systems look
//!   for room late: then the sync fails, with all consequences of a failed sync.
//!
//! *Wrong bytes*: a read may return bytes that were never written. Checksums are the reader's task.
//!
//! Example, a checkpoint: write `checkpoint.new`, sync it, rename it to `checkpoint`, sync the
//! directory, and only then remove the log that it replaces. Without the first sync, the name may
//! lead to torn content; without the second, the log may be gone and the old checkpoint back.
//!
//! Left out: reads and writes at the same time (a long sync delays the operations after it, so
//! files that grow long should be synced in pieces), preallocation, direct I/O, directories within
//! directories, permissions.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Size of a sector in bytes: these persist together or not at all.
pub const SECTOR: usize = 512;

/// Maximum length of one read or write, in bytes.
pub const MAX_LENGTH: usize = 16 << 20;

/// Maximum length of a file, in bytes.
pub const MAX_FILE: u64 = 1 << 40;

/// The name of a file in its directory: lowercase letters, digits, `-`, `_` and `.`, beginning with
/// a letter or a digit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// Padded with zeros, so that names compare as strings do.
    bytes: [u8; FileName::MAX],
    length: u8,
}

impl FileName {
    /// Maximum length of a name, in bytes.
    pub const MAX: usize = 31;

    /// The name, if it is valid.
    pub const fn new(name: &str) -> Option<FileName> {
        let name = name.as_bytes();
        if name.is_empty() || name.len() > FileName::MAX {
            return None;
        }
        let mut bytes = [0; FileName::MAX];
        let mut i = 0;
        while i < name.len() {
            match name[i] {
                b'a'..=b'z' | b'0'..=b'9' => {}
                b'-' | b'_' | b'.' if i > 0 => {}
                _ => return None,
            }
            bytes[i] = name[i];
            i += 1;
        }
        Some(FileName { bytes, length: name.len() as u8 })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).expect("a name is ASCII")
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The operations of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// [`Disk::read`]
    Read,
    /// [`Disk::write`]
    Write,
    /// [`Disk::truncate`]
    Truncate,
    /// [`Disk::sync`]
    Sync,
    /// [`Disk::rename`]
    Rename,
    /// [`Disk::remove`]
    Remove,
    /// [`Disk::sync_directory`]
    SyncDirectory,
    /// [`Disk::list`]
    List,
}

/// Why an operation has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskFault {
    /// There is no such file.
    NotFound,
    /// There is no room.
    Full,
    /// The write would begin beyond the end of the file.
    Hole,
    /// Longer than [`MAX_LENGTH`], or beyond [`MAX_FILE`].
    TooLong,
    /// An error of the disk or the operating system, by its number.
    Failed(i32),
}

impl DiskFault {
    /// The operating system's error number for a disk that cannot read or write.
    pub const IO: DiskFault = DiskFault::Failed(5);
}

/// An operation that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskError {
    /// The operation.
    pub verb: Verb,
    /// Its file; `None` if it concerned the directory.
    pub file: Option<FileName>,
    /// What went wrong.
    pub fault: DiskFault,
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Read => "read",
            Verb::Write => "write",
            Verb::Truncate => "truncate",
            Verb::Sync | Verb::SyncDirectory => "sync",
            Verb::Rename => "rename",
            Verb::Remove => "remove",
            Verb::List => "list",
        };
        match self.file {
            Some(file) => write!(f, "cannot {verb} the file {file}: ")?,
            None => write!(f, "cannot {verb} the directory: ")?,
        }
        match self.fault {
            DiskFault::NotFound => f.write_str("there is no such file"),
            DiskFault::Full => f.write_str("the disk is full"),
            DiskFault::Hole => f.write_str("it would begin beyond the end"),
            DiskFault::TooLong => f.write_str("it is too long"),
            DiskFault::Failed(number) => write!(f, "{}", std::io::Error::from_raw_os_error(number)),
        }
    }
}

impl std::error::Error for DiskError {}

/// An operation that a task asks for.
#[derive(Debug)]
pub(crate) enum Operation {
    Read { file: FileName, offset: u64, length: usize },
    Write { file: FileName, offset: u64, bytes: Vec<u8> },
    Truncate { file: FileName, size: u64 },
    Sync { file: FileName },
    Rename { from: FileName, to: FileName },
    Remove { file: FileName },
    SyncDirectory,
    List,
}

impl Operation {
    pub(crate) fn verb(&self) -> Verb {
        match self {
            Operation::Read { .. } => Verb::Read,
            Operation::Write { .. } => Verb::Write,
            Operation::Truncate { .. } => Verb::Truncate,
            Operation::Sync { .. } => Verb::Sync,
            Operation::Rename { .. } => Verb::Rename,
            Operation::Remove { .. } => Verb::Remove,
            Operation::SyncDirectory => Verb::SyncDirectory,
            Operation::List => Verb::List,
        }
    }

    /// The file it concerns.
    pub(crate) fn file(&self) -> Option<FileName> {
        match *self {
            Operation::Read { file, .. }
            | Operation::Write { file, .. }
            | Operation::Truncate { file, .. }
            | Operation::Sync { file }
            | Operation::Rename { from: file, .. }
            | Operation::Remove { file } => Some(file),
            Operation::SyncDirectory | Operation::List => None,
        }
    }

    /// Maximum number of bytes that are read or written.
    pub(crate) fn length(&self) -> usize {
        match self {
            Operation::Read { length, .. } => *length,
            Operation::Write { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }

    /// The error of this operation, with this cause.
    pub(crate) fn failed(&self, fault: DiskFault) -> DiskError {
        DiskError { verb: self.verb(), file: self.file(), fault }
    }

    fn is_too_long(&self) -> bool {
        let end = match self {
            Operation::Write { offset, bytes, .. } => offset.saturating_add(bytes.len() as u64),
            _ => 0,
        };
        self.length() > MAX_LENGTH || end > MAX_FILE
    }
}

/// The result of an operation.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    Bytes(Vec<u8>),
    Files(Vec<(FileName, u64)>),
}

/// An operation of a shard and its number there.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) number: u32,
    pub(crate) operation: Operation,
}

/// The answer to an operation.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) number: u32,
    pub(crate) result: Result<Outcome, DiskError>,
}

/// A shard as its disk's users see it, without the type of its participant.
pub(crate) trait Desk {
    /// Submits an operation. The answer belongs to the task that runs now.
    fn submit(&self, operation: Operation) -> u32;

    /// The answer, if it has come; it is returned once.
    fn collect(&self, number: u32) -> Option<Result<Outcome, DiskError>>;

    /// No task waits for the answer any more.
    fn give_up(&self, number: u32);
}

/// The directory of a shard, for its tasks.
#[derive(Clone)]
pub struct Disk {
    desk: Rc<dyn Desk>,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

/// The result of a method of [`Disk`].
type Answer<T> = Result<T, DiskError>;

impl Disk {
    pub(crate) fn new(desk: Rc<dyn Desk>) -> Disk {
        Disk { desk }
    }

    /// Reads `length` bytes from an offset on; fewer, or none, at the end of the file.
    pub fn read(
        &self,
        file: FileName,
        offset: u64,
        length: usize,
    ) -> impl Future<Output = Answer<Vec<u8>>> + 'static {
        let answer = self.ask(Operation::Read { file, offset, length });
        async move {
            match answer.await? {
                Outcome::Bytes(bytes) => Ok(bytes),
                other => unreachable!("a read is answered by bytes, not {other:?}"),
            }
        }
    }

    /// Writes bytes over those at an offset, or appends them; at offset 0 makes the file if there
    /// is none.
    pub fn write(
        &self,
        file: FileName,
        offset: u64,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Answer<()>> + 'static {
        self.done(Operation::Write { file, offset, bytes })
    }

    /// Cuts a file to a size; a shorter file stays as it is.
    pub fn truncate(&self, file: FileName, size: u64) -> impl Future<Output = Answer<()>> + 'static {
        self.done(Operation::Truncate { file, size })
    }

    /// Makes the content and the length of a file durable, though not its name.
    pub fn sync(&self, file: FileName) -> impl Future<Output = Answer<()>> + 'static {
        self.done(Operation::Sync { file })
    }

    /// Renames a file, and replaces a file that has the new name.
    pub fn rename(&self, from: FileName, to: FileName) -> impl Future<Output = Answer<()>> + 'static {
        self.done(Operation::Rename { from, to })
    }

    /// Removes a file.
    pub fn remove(&self, file: FileName) -> impl Future<Output = Answer<()>> + 'static {
        self.done(Operation::Remove { file })
    }

    /// Makes durable which files there are, and their names.
    pub fn sync_directory(&self) -> impl Future<Output = Answer<()>> + 'static {
        self.done(Operation::SyncDirectory)
    }

    /// All files with their sizes, in the order of their names.
    pub fn list(&self) -> impl Future<Output = Answer<Vec<(FileName, u64)>>> + 'static {
        let answer = self.ask(Operation::List);
        async move {
            match answer.await? {
                Outcome::Files(files) => Ok(files),
                other => unreachable!("a list is answered by files, not {other:?}"),
            }
        }
    }

    fn done(&self, operation: Operation) -> impl Future<Output = Answer<()>> + 'static {
        let answer = self.ask(operation);
        async move {
            match answer.await? {
                Outcome::Done => Ok(()),
                other => unreachable!("what is merely done has no answer {other:?}"),
            }
        }
    }

    fn ask(&self, operation: Operation) -> impl Future<Output = Answer<Outcome>> + 'static {
        let state = match operation.is_too_long() {
            true => State::Refused(operation.failed(DiskFault::TooLong)),
            false => State::UnderWay(self.desk.submit(operation)),
        };
        Collect { desk: self.desk.clone(), state }
    }
}

enum State {
    /// It was never submitted.
    Refused(DiskError),
    UnderWay(u32),
    Collected,
}

/// Waits for the answer to an operation; gives it up when dropped.
struct Collect {
    desk: Rc<dyn Desk>,
    state: State,
}

impl Future for Collect {
    type Output = Answer<Outcome>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let result = match self.state {
            State::Refused(error) => Some(Err(error)),
            State::UnderWay(number) => self.desk.collect(number),
            State::Collected => panic!("an operation is collected once"),
        };
        let Some(result) = result else { return Poll::Pending };
        self.state = State::Collected;
        Poll::Ready(result)
    }
}

impl Drop for Collect {
    fn drop(&mut self) {
        if let State::UnderWay(number) = self.state {
            self.desk.give_up(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_lead_nowhere_else() {
        for name in ["log", "log-00000000000000000017", "checkpoint.new", "a..b", "0"] {
            assert_eq!(FileName::new(name).expect(name).as_str(), name);
        }
        let long = "a".repeat(FileName::MAX + 1);
        for name in ["", ".", "..", ".lock", "-r", "_", "a/b", "/", "Log", "lög", "a b", "a\0", &long] {
            assert!(FileName::new(name).is_none(), "{name}");
        }
    }

    #[test]
    fn names_compare_as_text_does() {
        let mut names = ["log-2", "log", "log-10", "a", "log.x"].map(|name| FileName::new(name).unwrap());
        names.sort_unstable();
        assert!(names.is_sorted_by_key(|name| name.as_str().to_owned()));
    }

    #[test]
    fn errors_say_what_of_which_file_and_why() {
        let file = FileName::new("log-1");
        let full = DiskError { verb: Verb::Write, file, fault: DiskFault::Full };
        assert_eq!(full.to_string(), "cannot write the file log-1: the disk is full");
        let failed = DiskError { verb: Verb::SyncDirectory, file: None, fault: DiskFault::IO };
        assert!(failed.to_string().starts_with("cannot sync the directory: Input/output error"), "{failed}");
    }
}
