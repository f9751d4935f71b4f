//! A shard's directory on a real file system, and the thread that reads and writes there.
//!
//! One thread carries out the operations of a shard, one after the other, so the shard never waits
//! for a disk. Each result arrives in the shard's inbox like a message and wakes it. If a shard
//! stops, its queue of operations is still carried out before [`super::Runtime`] is gone, and the
//! results are dropped.
//!
//! Files stay open while something in them is not synced: a failure to write back is reported by
//! the next sync of a file that was open when it happened, and could be missed if the file were
//! closed and opened again. `fdatasync` is enough for a file, since it includes the length; a
//! directory gets an `fsync`.
//!
//! Two processes in one directory would destroy each other's files. So a directory is locked while
//! it is open, by a file `.lock`, which no [`FileName`] can name. Making it also shows that the
//! directory can be written.
//!
//! Left out: several operations at a time, and asking the kernel for that (io_uring). A log that
//! commits in groups has one write and one sync under way, and those are in order anyway.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use crate::disk::{Completed, DiskError, DiskFault, FileName, Operation, Outcome, Submitted};

/// Files that are kept open, unless more of them are not synced.
const OPEN_MAX: usize = 32;

/// How long a directory may be in use when it is opened: a process that was killed has it until its
/// last write has ended.
const RELEASED_WITHIN: Duration = Duration::from_secs(2);
/// Pause between two looks whether it is released.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Why a directory cannot be used by a shard.
#[derive(Debug)]
pub enum OpenError {
    /// Another process uses it, or another shard of this one.
    InUse(PathBuf),
    /// It does not exist and cannot be made.
    Create(PathBuf, io::Error),
    /// It cannot be read or written.
    Access(PathBuf, io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse(path) => write!(f, "the data directory {} is in use", path.display()),
            OpenError::Create(path, error) => {
                write!(f, "cannot make the data directory {}: {error}", path.display())
            }
            OpenError::Access(path, error) => {
                write!(f, "cannot use {} as a data directory: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// The directory of a shard, locked until this is dropped.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    handle: File,
    _lock: File,
}

impl Directory {
    /// Opens a directory. If it does not exist, makes it; its parent has to exist. Waits for two
    /// seconds if another process has it.
    pub fn open(path: &Path) -> Result<Directory, OpenError> {
        match make(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(OpenError::Create(path.to_owned(), error)),
        }
        let access = |error| OpenError::Access(path.to_owned(), error);
        let handle = File::open(path).map_err(access)?;
        let mut options = OpenOptions::new();
        let lock =
            options.create(true).truncate(false).write(true).open(path.join(".lock")).map_err(access)?;
        let since = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Directory { path: path.to_owned(), handle, _lock: lock }),
                Err(TryLockError::WouldBlock) if since.elapsed() < RELEASED_WITHIN => {
                    thread::sleep(LOOK_AGAIN);
                }
                Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(path.to_owned())),
                Err(TryLockError::Error(error)) => return Err(access(error)),
            }
        }
    }

    fn of(&self, file: FileName) -> PathBuf {
        self.path.join(file.as_str())
    }
}

/// Makes a directory that survives a power failure.
fn make(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// An open file.
struct Open {
    file: File,
    /// Something may not have been synced.
    dirty: bool,
}

/// An open directory with its open files.
struct Disk {
    directory: Directory,
    open: BTreeMap<FileName, Open>,
}

/// Carries out operations until all senders are gone.
pub(super) fn run(directory: Directory, operations: Receiver<Vec<Submitted>>, answer: impl Fn(Completed)) {
    let mut disk = Disk { directory, open: BTreeMap::new() };
    for Submitted { number, operation } in operations.into_iter().flatten() {
        let (verb, file) = (operation.verb(), operation.file());
        let result = disk.carry_out(operation);
        let result = result.map_err(|fault| DiskError { verb, file, fault });
        answer(Completed { number, result });
    }
}

impl From<io::Error> for DiskFault {
    fn from(error: io::Error) -> DiskFault {
        use io::ErrorKind::*;
        match error.kind() {
            NotFound => DiskFault::NotFound,
            StorageFull | QuotaExceeded | FileTooLarge => DiskFault::Full,
            _ => error.raw_os_error().map_or(DiskFault::IO, DiskFault::Failed),
        }
    }
}

impl Disk {
    fn carry_out(&mut self, operation: Operation) -> Result<Outcome, DiskFault> {
        match operation {
            Operation::Read { file, offset, length } => {
                return Ok(Outcome::Bytes(read(&self.file(file, false)?.file, offset, length)?));
            }
            Operation::List => return Ok(Outcome::Files(self.list()?)),
            Operation::Write { file, offset, bytes } => {
                let open = self.file(file, offset == 0)?;
                if offset > open.file.metadata()?.len() {
                    return Err(DiskFault::Hole);
                }
                open.dirty = true;
                open.file.write_all_at(&bytes, offset)?;
            }
            Operation::Truncate { file, size } => {
                let open = self.file(file, false)?;
                if size < open.file.metadata()?.len() {
                    open.dirty = true;
                    open.file.set_len(size)?;
                }
            }
            Operation::Sync { file } => {
                let open = self.file(file, false)?;
                open.file.sync_data()?;
                open.dirty = false;
            }
            Operation::Rename { from, to } => {
                fs::rename(self.directory.of(from), self.directory.of(to))?;
                if from != to {
                    self.open.remove(&to);
                    if let Some(open) = self.open.remove(&from) {
                        self.open.insert(to, open);
                    }
                }
            }
            Operation::Remove { file } => {
                fs::remove_file(self.directory.of(file))?;
                self.open.remove(&file);
            }
            Operation::SyncDirectory => self.directory.handle.sync_all()?,
        }
        Ok(Outcome::Done)
    }

    /// The file, open for reading and writing. `make`: makes it if it does not exist.
    fn file(&mut self, name: FileName, make: bool) -> io::Result<&mut Open> {
        if !self.open.contains_key(&name) {
            if self.open.len() >= OPEN_MAX {
                self.open.retain(|_, open| open.dirty);
            }
            let mut options = OpenOptions::new();
            let file =
                options.read(true).write(true).create(make).truncate(false).open(self.directory.of(name))?;
            self.open.insert(name, Open { file, dirty: false });
        }
        Ok(self.open.get_mut(&name).expect("the file was just opened"))
    }

    /// Files whose names are not valid are not the shard's, and are left out.
    fn list(&self) -> io::Result<Vec<(FileName, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory.path)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if let Some(name) = entry.file_name().to_str().and_then(FileName::new)
                && metadata.is_file()
            {
                files.push((name, metadata.len()));
            }
        }
        files.sort_unstable();
        Ok(files)
    }
}

fn read(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let left = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; length.min(usize::try_from(left).unwrap_or(length))];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}
