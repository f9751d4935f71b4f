//! A log that keeps what it has acknowledged, with checkpoints: everything that the disk's contract
//! demands, and little else.
//!
//! Records are framed by length, checksum and number. A group is written at the end of the log and
//! synced; then it is acknowledged. If either fails, both are done again, the write too: a second
//! sync alone would promise nothing. The first group of a file also needs its name.
//!
//! A checkpoint is all records so far, written under another name, synced, renamed, its name
//! synced; then the next log begins, `log-<records before it>`, and the old one is removed.
//!
//! A start makes names durable before it removes anything, reads the log behind the checkpoint up
//! to the first record that is not whole, cuts off the rest, and *writes again* what it has read:
//! it may have been read from memory only, and after a sync that failed in an earlier life would
//! never reach the disk. Files are read until they are twice the same, since a read may be wrong.
//!
//! Each [`Mistake`] breaks one of these rules.

use plimsoll_runtime::{Disk, DiskError, Env, FileName, ShardEnv, Tasks, Verb};

use super::{MS, Nothing};

/// What can be done wrongly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A group is acknowledged when it is written.
    AcknowledgesUnsynced,
    /// A sync that failed is done again, and the write is not.
    OnlySyncsAgain,
    /// A group is acknowledged when it is synced, whether or not it was written.
    IgnoresFailedWrites,
    /// The name of a new log is not synced.
    ForgetsNewNames,
    /// Records count as whole whatever their checksum.
    NoChecksum,
    /// What follows the last whole record is not cut off.
    KeepsTail,
    /// What a start has read is not synced.
    TrustsMemory,
    /// What a start has read is synced, but not written again.
    TrustsEarlierSyncs,
    /// A start removes the old log before the checkpoint's name is synced.
    RemovesFirst,
    /// A checkpoint is renamed before it is synced.
    RenamesUnsynced,
    /// The old log is removed before the checkpoint's name is synced.
    ForgetsRename,
    /// A checkpoint is written where the last one was.
    NoRename,
    /// What is read once is believed.
    BelievesOneRead,
}

impl Mistake {
    pub const ALL: [Mistake; 13] = {
        use Mistake::*;
        [
            AcknowledgesUnsynced,
            OnlySyncsAgain,
            IgnoresFailedWrites,
            ForgetsNewNames,
            NoChecksum,
            KeepsTail,
            TrustsMemory,
            TrustsEarlierSyncs,
            RemovesFirst,
            RenamesUnsynced,
            ForgetsRename,
            NoRename,
            BelievesOneRead,
        ]
    };
}

const CHECKPOINT: FileName = FileName::new("checkpoint").unwrap();
const CHECKPOINT_NEW: FileName = FileName::new("checkpoint.new").unwrap();

/// Bytes before each record: its length, its checksum, its number.
const HEADER: usize = 4 + 8 + 8;

/// How long to wait after an error.
const RETRY_NS: u64 = MS / 5;

fn log_name(base: usize) -> FileName {
    FileName::new(&format!("log-{base}")).expect("a short name")
}

fn checksum(number: u64, payload: &[u8]) -> u64 {
    let bytes = number.to_le_bytes();
    bytes.iter().chain(payload).fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn frame(bytes: &mut Vec<u8>, number: u64, payload: &[u8]) {
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(checksum(number, payload).to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend(payload);
}

/// The record of this number at the beginning of some bytes, if there is one.
fn unframe(bytes: &[u8], number: u64, check: bool) -> Option<&[u8]> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let length = u32::from_le_bytes(header[..4].try_into().expect("four bytes")) as usize;
    let payload = rest.get(..length)?;
    (word(12) == number && (!check || word(4) == checksum(number, payload))).then_some(payload)
}

/// A checkpoint with a name is not whole.
#[derive(Debug)]
pub struct Torn;

pub struct Log {
    env: ShardEnv<Nothing>,
    disk: Disk,
    mistake: Option<Mistake>,
    /// Every record that was promised to anyone.
    pub records: Vec<Vec<u8>>,
    /// How many of them the checkpoint has.
    base: usize,
    file: FileName,
    /// Bytes of the log file that are durable.
    end: u64,
}

impl Log {
    /// Reads what is there, as often as it takes.
    pub async fn open(env: ShardEnv<Nothing>, mistake: Option<Mistake>) -> Result<Log, Torn> {
        let disk = env.disk().expect("a log has a disk");
        let (file, records) = (log_name(0), Vec::new());
        let mut log = Log { env, disk, mistake, records, base: 0, file, end: 0 };
        loop {
            match log.recover().await {
                Ok(true) => return Ok(log),
                Ok(false) => return Err(Torn),
                Err(_) => log.env.sleep(RETRY_NS).await,
            }
        }
    }

    fn does(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    async fn recover(&mut self) -> Result<bool, DiskError> {
        let disk = self.disk.clone();
        let files = disk.list().await?;
        let size = |name: FileName| files.iter().find(|(file, _)| *file == name).map(|&(_, size)| size);
        if !self.does(Mistake::RemovesFirst) {
            disk.sync_directory().await?;
        }
        self.records.clear();
        if let Some(size) = size(CHECKPOINT) {
            let bytes = self.read(CHECKPOINT, size as usize).await?;
            let Some(mut rest) = unframe(&bytes, 0, true) else { return Ok(false) };
            while let Some(record) = unframe(rest, self.records.len() as u64, true) {
                self.records.push(record.to_vec());
                rest = &rest[HEADER + record.len()..];
            }
        }
        self.base = self.records.len();
        (self.file, self.end) = (log_name(self.base), 0);
        if let Some(size) = size(self.file) {
            let mut bytes = self.read(self.file, size as usize).await?;
            let check = !self.does(Mistake::NoChecksum);
            while let Some(record) = unframe(&bytes[self.end as usize..], self.records.len() as u64, check) {
                self.records.push(record.to_vec());
                self.end += (HEADER + record.len()) as u64;
            }
            if !self.does(Mistake::KeepsTail) {
                disk.truncate(self.file, self.end).await?;
            }
            if !self.does(Mistake::TrustsEarlierSyncs) && !self.does(Mistake::TrustsMemory) {
                bytes.truncate(self.end as usize);
                disk.write(self.file, 0, bytes).await?;
            }
            if !self.does(Mistake::TrustsMemory) {
                disk.sync(self.file).await?;
            }
        }
        for (name, _) in files {
            if name != self.file && name != CHECKPOINT {
                disk.remove(name).await?;
            }
        }
        Ok(true)
    }

    async fn read(&self, file: FileName, size: usize) -> Result<Vec<u8>, DiskError> {
        let mut bytes = self.disk.read(file, 0, size).await?;
        while !self.does(Mistake::BelievesOneRead) {
            let again = self.disk.read(file, 0, size).await?;
            if again == bytes {
                break;
            }
            bytes = again;
        }
        Ok(bytes)
    }

    /// Adds records; when it returns, they are durable.
    pub async fn commit(&mut self, group: &[Vec<u8>]) {
        let mut bytes = Vec::new();
        for (record, number) in group.iter().zip(self.records.len() as u64..) {
            frame(&mut bytes, number, record);
        }
        let mut written = false;
        while let Err(error) = self.try_commit(&bytes, written).await {
            written = error.verb == Verb::Sync && self.does(Mistake::OnlySyncsAgain);
            self.env.sleep(RETRY_NS).await;
        }
        self.end += bytes.len() as u64;
        self.records.extend_from_slice(group);
    }

    async fn try_commit(&self, bytes: &[u8], written: bool) -> Result<(), DiskError> {
        // Both are on their way at once; they are carried out in order.
        let write = (!written).then(|| self.disk.write(self.file, self.end, bytes.to_vec()));
        let sync = self.disk.sync(self.file);
        if let Some(write) = write {
            let write = write.await;
            if !self.does(Mistake::IgnoresFailedWrites) {
                write?;
            }
        }
        if self.does(Mistake::AcknowledgesUnsynced) {
            return Ok(());
        }
        sync.await?;
        if self.end == 0 && !self.does(Mistake::ForgetsNewNames) {
            self.disk.sync_directory().await?;
        }
        Ok(())
    }

    /// Begins a new log behind everything so far.
    pub async fn checkpoint(&mut self) {
        if self.records.len() == self.base {
            return;
        }
        let (mut all, mut bytes) = (Vec::new(), Vec::new());
        for (record, number) in self.records.iter().zip(0..) {
            frame(&mut all, number, record);
        }
        frame(&mut bytes, 0, &all);
        while self.try_checkpoint(&bytes).await.is_err() {
            self.env.sleep(RETRY_NS).await;
        }
        // One that is left over is removed at the next start.
        drop(self.disk.remove(self.file));
        self.base = self.records.len();
        (self.file, self.end) = (log_name(self.base), 0);
    }

    async fn try_checkpoint(&self, bytes: &[u8]) -> Result<(), DiskError> {
        let name = if self.does(Mistake::NoRename) { CHECKPOINT } else { CHECKPOINT_NEW };
        self.disk.write(name, 0, bytes.to_vec()).await?;
        if !self.does(Mistake::RenamesUnsynced) {
            self.disk.sync(name).await?;
        }
        if !self.does(Mistake::NoRename) {
            self.disk.rename(name, CHECKPOINT).await?;
        }
        if !self.does(Mistake::ForgetsRename) {
            self.disk.sync_directory().await?;
        }
        Ok(())
    }
}
