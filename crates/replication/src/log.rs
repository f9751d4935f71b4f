//! The log of a shard: entries in batches, batches in segments.
//!
//! A *segment* is a file of fixed length. It begins with a header that says which batch is its
//! first. Before it was begun it was filled with zeros or was an older segment, so that writing a
//! batch changes bytes of a file and not its length, which makes a sync fast. A *batch* has a
//! checksum of itself, and has the checksum of the batch before it. An entry that is too long for a
//! batch is written as *parts*, one batch each, and counts when all are there.
//!
//! ## The rules
//!
//! 1. *A batch is written when all before it is on disk.* There is one write and one sync for each
//!    batch. So a batch that is whole proves that those before it were on disk, and of a log that
//!    is found after a crash only the last batch can be torn: if something behind it is whole, it
//!    was damaged, and is not cut off.
//! 2. *What is read may not be on disk* (the contract of [`Disk`]). [`Log::open`] writes the last
//!    batch again in its place and syncs that before it returns.
//! 3. *A segment has its name before its first batch*: its file is renamed and the directory is
//!    synced, then the header and the first batch are written at once.
//! 4. *A failed write or sync is never repeated as it is.* The batch is written as the first one of
//!    a new segment, with the same index, and that is synced.
//! 5. *A later segment voids what earlier ones have of the same indexes and above.* After an append
//!    that failed, its entries may be on disk in part, or all. The next append begins a new segment
//!    at their first index, so that they no longer count.
//! 6. *Only what was begun counts.* A crash can leave a file with a segment's name and without its
//!    header, though with its first batch. It is removed, and not used again: the batch was not
//!    acknowledged, and must not come back when another header of the same sequence is before it.
//!
//! Example. Segment 4 has the entries 0 to 8; the sync of a batch with the entries 9 and 10 fails.
//! Segment 5 begins with that batch; its sync fails too. Segment 6 begins with it and is synced.
//! When the log is read, segment 4 counts up to index 9, segment 5 is void, and segment 6 goes on.
//!
//! ## Disk space
//!
//! Room is looked for before anything is written: the segments that the entries of an append need
//! are there as spares before its first batch. So a full disk leaves nothing of an append behind.
//!
//! Left out: groups of batches under one sync, and a sync that overlaps with the next write. Both
//! weaken the first rule; a batch of up to 4 MiB makes a sync cheap enough.

use plimsoll_runtime::{Disk, DiskError, DiskFault, FileName, SECTOR};
use plimsoll_types::wire::Malformed;

use crate::disk::{TRIES, patiently};
use crate::entries::{Entries, PREFIX, first};
use crate::format::{
    BATCH_HEADER, BODY_MAX, Batch, Link, Position, SEGMENT_HEADER, SegmentHeader, log_name, seed, spare_name,
    taken,
};
use crate::mistakes::{Mistake, planted};
use crate::read::{Files, Segment, Tail, Walk, files, limits};
use crate::{Identity, LogError};

/// Length of a piece of a long entry below which it is not worth a batch, in bytes.
const PART_MIN: usize = 512;

/// Zeros that are written to a spare between two syncs at most, in bytes.
const ZEROS: usize = 1 << 20;

/// Settings of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Length of a segment in bytes: at least 4 KiB, and at most what a file can have. It is
    /// rounded up to whole sectors. A log may be opened with another length than before.
    pub segment_bytes: u64,
    /// Least length in bytes of the entries between two images. The crate itself takes none.
    pub image_bytes: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { segment_bytes: 64 << 20, image_bytes: 256 << 20 }
    }
}

/// What came of reading a log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Recovered {
    /// The index behind the last entry.
    pub entries: u64,
    /// Bytes of the entries that were shown.
    pub bytes: u64,
    /// Bytes of a torn tail that were cut off: parts of an entry that is not whole, and a batch
    /// whose header is there.
    pub torn: u64,
}

/// Where the log goes on.
#[derive(Clone, Copy, Debug)]
struct Head {
    link: Link,
    /// The offset of the next batch in the last segment; `None` if it has to begin a new one.
    offset: Option<usize>,
}

/// The log of a shard, open for writing.
#[derive(Debug)]
pub struct Log {
    disk: Disk,
    identity: Identity,
    /// Length of a segment that is begun, in bytes.
    segment_bytes: usize,
    /// By sequence. The last one is written to.
    segments: Vec<Segment>,
    /// Numbers of the spares, which are on disk with their names.
    spares: Vec<u64>,
    /// The number of a spare that has zeros up to an offset.
    unfinished: Option<(u64, usize)>,
    /// The number of the next spare.
    next_spare: u64,
    /// No segment has had a larger sequence.
    last: u64,
    head: Head,
    /// Lengths in bytes of the writes of the last append.
    writes: Vec<u32>,
}

impl Log {
    /// Opens the log of a directory, or begins one at the index `from` if it has none. Calls
    /// `entry(index, bytes)` for each entry with an index of `from` or above, in order. When it
    /// returns, everything that it has read is on disk.
    ///
    /// The directory must be used by nothing else that has files named `log-*` or `spare-*`. After
    /// an error it may be called again, with an `entry` that begins anew.
    pub async fn open(
        disk: Disk,
        identity: Identity,
        settings: Settings,
        from: u64,
        entry: impl FnMut(u64, &[u8]) -> Result<(), Malformed>,
    ) -> Result<(Log, Recovered), LogError> {
        // Names that are there may be lost by a crash, as long as they are not on disk.
        patiently(|| disk.sync_directory()).await?;
        let found = files(&disk, &identity).await?;
        let limits = limits(&found.segments);
        // Void segments are not read, nor those that have only entries below `from`.
        let is_read = |&(segment, limit): &(&Segment, &Position)| {
            segment.first.at < *limit && *limit > Position::entry(from)
        };
        let start: Vec<_> = found.segments.iter().zip(&limits).filter(is_read).collect();
        let beginning = start.first().map_or(Link { at: Position::entry(from), before: 0 }, |s| s.0.first);
        if beginning.at > Position::entry(from) {
            return Err(LogError::Damaged { file: start[0].0.file, offset: 0, index: from });
        }
        let mut walk = Walk::new(beginning, from, entry);
        let mut tail = None;
        for (segment, limit) in start {
            if segment.first != walk.link && !planted(Mistake::OverlapKept) {
                return Err(LogError::Damaged { file: segment.file, offset: 0, index: walk.link.at.index });
            }
            tail = Some((segment, walk.segment(&disk, &identity, segment, *limit).await?));
        }
        if walk.whole.at.index < from {
            let file = found.segments.last().map_or(log_name(0), |segment| segment.file);
            let offset = tail.map_or(0, |(_, tail)| tail.end as u64);
            return Err(LogError::Damaged { file, offset, index: walk.whole.at.index });
        }
        if let Some((segment, tail)) = &tail {
            write_again(&disk, segment, tail).await?;
        }

        let sectors = settings.segment_bytes.max(4096).next_multiple_of(SECTOR as u64);
        let segment_bytes = usize::try_from(sectors).unwrap_or(usize::MAX);
        // Parts that were whole batches are not overwritten: a new segment voids them.
        let goes_on = tail
            .as_ref()
            .filter(|(segment, _)| segment.size == segment_bytes as u64 && walk.link == walk.whole);
        let head = Head { link: walk.whole, offset: goes_on.map(|(_, tail)| tail.end) };
        let recovered = Recovered {
            entries: walk.whole.at.index,
            bytes: walk.bytes,
            torn: tail.as_ref().map_or(0, |(_, tail)| tail.torn(walk.link)) + walk.pending(),
        };
        let Files { segments, unbegun, spares, last } = found;
        let next_spare = spares.iter().map(|&(number, _)| number + 1).max().unwrap_or(0);
        let mut log = Log {
            disk,
            identity,
            segment_bytes,
            segments,
            spares: Vec::new(),
            unfinished: None,
            next_spare,
            last,
            head,
            writes: Vec::new(),
        };
        log.tidy(unbegun, spares).await;
        Ok((log, recovered))
    }

    /// Removes what an earlier life has left that is of no use, and takes over its spares.
    async fn tidy(&mut self, unbegun: Vec<FileName>, spares: Vec<(u64, u64)>) {
        for file in unbegun {
            if planted(Mistake::UnbegunReused) {
                let number = self.new_spare();
                if self.disk.rename(file, spare_name(number)).await.is_ok() {
                    self.spares.push(number);
                    self.last = self.segments.last().map_or(0, |segment| segment.sequence);
                }
                continue;
            }
            // A file that cannot be removed does no harm.
            let _ = self.disk.remove(file).await;
        }
        for (number, size) in spares {
            match size == self.segment_bytes as u64 {
                true => self.spares.push(number),
                false => drop(self.disk.remove(spare_name(number)).await),
            }
        }
    }

    /// The index of the next entry.
    pub fn next(&self) -> u64 {
        self.head.link.at.index
    }

    /// The writes of the last append, by their lengths in bytes; each was followed by a sync.
    pub fn writes(&self) -> &[u32] {
        &self.writes
    }

    /// Writes entries behind the last one, and syncs. When it returns without an error, they are on
    /// disk; after an error the next append may have the same entries or others. Dropping the
    /// future leaves the log as an error does.
    pub async fn append(&mut self, entries: &Entries) -> Result<(), LogError> {
        self.writes.clear();
        let room = self.head.offset.map_or(0, |offset| self.segment_bytes - offset);
        let pieces = split(entries.buffer(), room, self.segment_bytes - SEGMENT_HEADER);
        let begun = pieces.iter().filter(|piece| piece.begins).count();
        while self.spares.len() < begun {
            self.go_on_with_spare(self.segment_bytes).await?;
        }
        let (mut head, mut written) = (self.head, false);
        for piece in &pieces {
            if let Err(error) = self.write(&mut head, piece, &mut written).await {
                return Err(match written {
                    true => LogError::Doubtful(error),
                    false => LogError::Disk(error),
                });
            }
        }
        self.head = head;
        Ok(())
    }

    /// Writes one batch and syncs it. If that fails, it is the first one of a new segment.
    async fn write(
        &mut self,
        head: &mut Head,
        piece: &Piece<'_>,
        written: &mut bool,
    ) -> Result<(), DiskError> {
        if piece.begins {
            head.offset = None;
        }
        let mut failed = None;
        for _ in 0..TRIES {
            let Err(error) = self.try_to_write(head, piece, written).await else { return Ok(()) };
            head.offset = None;
            // Later errors may come of it: there may be no room for another segment.
            failed.get_or_insert(error);
        }
        Err(failed.expect("every try has failed"))
    }

    async fn try_to_write(
        &mut self,
        head: &mut Head,
        piece: &Piece<'_>,
        written: &mut bool,
    ) -> Result<(), DiskError> {
        let mut bytes = Vec::with_capacity(SEGMENT_HEADER + taken(piece.body.len()));
        let offset = match head.offset {
            Some(offset) => offset,
            None => {
                self.begin(head.link, &mut bytes).await?;
                0
            }
        };
        let &Segment { file, sequence, .. } = self.segments.last().expect("a segment was begun");
        let &Piece { part, count, more, body, .. } = piece;
        assert_eq!(part, head.link.at.part, "parts follow each other");
        let batch = Batch { first: head.link, count, more, durable: head.link.at.index, body };
        let checksum = batch.encode(seed(&self.identity, sequence), &mut bytes);
        let (behind, length) = (offset + bytes.len(), bytes.len() as u32);
        *written = true;
        if !planted(Mistake::DoubtKept) {
            self.head.offset = None;
        }
        // Both are on their way at once; they are carried out in order.
        let (write, sync) = (self.disk.write(file, offset as u64, bytes), self.disk.sync(file));
        write.await?;
        match sync.await {
            Err(_) if planted(Mistake::SyncRepeated) => self.disk.sync(file).await?,
            synced => synced?,
        }
        self.writes.push(length);
        *head = Head { link: Link { at: batch.end(), before: checksum }, offset: Some(behind) };
        Ok(())
    }

    /// Begins a segment: its file has its name when this returns, and its header is in `out`.
    async fn begin(&mut self, first: Link, out: &mut Vec<u8>) -> Result<(), DiskError> {
        let spare = loop {
            match self.spares.pop() {
                Some(spare) => break spare_name(spare),
                None => self.go_on_with_spare(self.segment_bytes).await?,
            }
        };
        self.last += 1;
        let (sequence, file) = (self.last, log_name(self.last));
        let disk = &self.disk;
        let named = async {
            disk.rename(spare, file).await?;
            match planted(Mistake::NameUnsynced) {
                true => Ok(()),
                false => disk.sync_directory().await,
            }
        };
        if let Err(error) = named.await {
            // It has one of the names, and the next start finds it if it cannot be removed.
            let _ = disk.remove(spare).await;
            let _ = disk.remove(file).await;
            return Err(error);
        }
        SegmentHeader { identity: self.identity, sequence, first }.encode(out);
        self.segments.push(Segment { file, size: self.segment_bytes as u64, sequence, first });
        Ok(())
    }

    /// Segments that lie wholly below this index become spares, which are overwritten later. The
    /// entries below the index must not be needed any more, after a crash either. The index is
    /// at most [`Log::next`].
    pub async fn recycle(&mut self, below: u64) -> Result<(), LogError> {
        assert!(below <= self.next(), "entry {below} is not in the log, which ends at {}", self.next());
        while self.segments.len() > 1 {
            let limit = limits(&self.segments)[0];
            if limit > Position::entry(below) {
                break;
            }
            // Before this one loses its name, the older ones have lost theirs, after a crash too.
            patiently(|| self.disk.sync_directory()).await?;
            // If it cannot be renamed now, the next start finds it.
            let oldest = self.segments.remove(0);
            // The header of a void segment may be there in part, after a write that failed. What is
            // used again has to have a whole one, since the next may be lost while its batch is
            // not.
            if oldest.size != self.segment_bytes as u64 || oldest.first.at >= limit {
                let _ = self.disk.remove(oldest.file).await;
                continue;
            }
            let number = self.new_spare();
            match patiently(|| self.disk.rename(oldest.file, spare_name(number))).await {
                // Of a rename that failed the second try finds that it has happened.
                Err(error) if error.fault != DiskFault::NotFound => return Err(error.into()),
                _ => self.spares.push(number),
            }
        }
        Ok(())
    }

    /// Makes sure that a spare segment is there, full of zeros or of what is no longer needed, and
    /// on disk, its name too. An append that needs a segment and finds no spare makes one itself,
    /// which takes as long as it takes to write a segment.
    pub async fn prepare_spare(&mut self) -> Result<(), LogError> {
        while self.spares.is_empty() {
            self.go_on_with_spare(self.segment_bytes).await?;
        }
        Ok(())
    }

    /// Sees to it that there is a spare when half of a segment is used. Once a quarter is, each call
    /// writes some of the spare, so that no append waits for all of it. If that fails, what is left
    /// of the segment is a reserve for what must be written even to a full disk.
    pub async fn reserve(&mut self) -> Result<(), LogError> {
        let quarter = self.segment_bytes / 4;
        let used = self.head.offset.unwrap_or(self.segment_bytes);
        if used > quarter && self.spares.is_empty() {
            self.go_on_with_spare((used - quarter).saturating_mul(4)).await?;
        }
        Ok(())
    }

    fn new_spare(&mut self) -> u64 {
        self.next_spare += 1;
        self.next_spare - 1
    }

    /// Writes zeros to a new spare, from where the last call ended until it has this many bytes or
    /// is whole.
    async fn go_on_with_spare(&mut self, bytes: usize) -> Result<(), DiskError> {
        let (number, mut offset) = self.unfinished.take().unwrap_or_else(|| (self.new_spare(), 0));
        let (disk, file) = (&self.disk, spare_name(number));
        let written = async {
            while offset < bytes.min(self.segment_bytes) {
                let piece = vec![0; ZEROS.min(self.segment_bytes - offset)];
                let end = offset + piece.len();
                let (write, sync) = (disk.write(file, offset as u64, piece), disk.sync(file));
                write.await?;
                sync.await?;
                offset = end;
            }
            match offset < self.segment_bytes {
                true => Ok(()),
                false => disk.sync_directory().await,
            }
        };
        if let Err(error) = written.await {
            let _ = disk.remove(file).await;
            return Err(error);
        }
        match offset < self.segment_bytes {
            true => self.unfinished = Some((number, offset)),
            false => self.spares.push(number),
        }
        Ok(())
    }
}

/// Writes the last batch of a log again where it is, with the segment's header if it is the first.
async fn write_again(disk: &Disk, segment: &Segment, tail: &Tail) -> Result<(), DiskError> {
    let begin = tail.last.filter(|&last| last > SEGMENT_HEADER).unwrap_or(0);
    patiently(async || {
        if !planted(Mistake::TailNotRewritten) {
            let bytes = tail.content[begin..tail.end].to_vec();
            disk.write(segment.file, begin as u64, bytes).await?;
        }
        disk.sync(segment.file).await
    })
    .await
}

/// What becomes one batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece<'a> {
    /// It is the first one of a segment.
    begins: bool,
    part: u32,
    count: u32,
    more: bool,
    body: &'a [u8],
}

/// Splits a buffer of entries into pieces: the first is for the `room` in bytes that is left in a
/// segment, if it can be, and others for segments with `capacity` bytes for batches.
fn split(buffer: &[u8], mut room: usize, capacity: usize) -> Vec<Piece<'_>> {
    let fits = |room: usize| room.saturating_sub(BATCH_HEADER).min(BODY_MAX);
    let (mut pieces, mut begins, mut rest) = (Vec::new(), false, buffer);
    while let Some((entry, behind)) = first(rest) {
        if PREFIX + entry.len() <= fits(room) {
            // As many whole entries as find room.
            let (mut count, mut length, mut others) = (1, PREFIX + entry.len(), behind);
            while let Some((entry, behind)) = first(others)
                && length + PREFIX + entry.len() <= fits(room)
            {
                (count, length, others) = (count + 1, length + PREFIX + entry.len(), behind);
            }
            pieces.push(Piece { begins, part: 0, count, more: false, body: &rest[..length] });
            (room, rest, begins) = (room - taken(length), others, false);
        } else if PREFIX + entry.len() <= fits(capacity) || fits(room) < PART_MIN {
            (room, begins) = (capacity, true);
        } else {
            // Parts.
            let (mut part, mut left) = (0, entry);
            while !left.is_empty() {
                if fits(room) < PART_MIN.min(left.len()) {
                    (room, begins) = (capacity, true);
                }
                // A first part has another one behind it, by which it is known as a part.
                let most = left.len() - usize::from(part == 0);
                let (body, others) = left.split_at(most.min(fits(room)));
                let more = !others.is_empty();
                pieces.push(Piece { begins, part, count: u32::from(!more), more, body });
                (room, part, left, begins) = (room - taken(body.len()), part + 1, others, false);
            }
            rest = behind;
        }
    }
    pieces
}
