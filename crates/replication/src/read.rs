//! Reading a log: which segments there are, and the entries in them.

use std::mem::take;

use plimsoll_runtime::{Disk, FileName};
use plimsoll_types::wire::Malformed;

use crate::disk::{confirm, patiently, read, read_surely};
use crate::entries::{ENTRY_MAX, first};
use crate::format::{
    BATCH_HEADER, BODY_MAX, Batch, Beginning, Link, Position, SEGMENT_HEADER, SegmentHeader, batch_at,
    batch_behind, beginning, compare, number, seed, torn,
};
use crate::mistakes::{Mistake, planted};
use crate::{Identity, LogError};

/// A segment that was begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub file: FileName,
    /// Its length in bytes.
    pub size: u64,
    pub sequence: u64,
    pub first: Link,
}

/// The files of a log.
#[derive(Default, Debug)]
pub(crate) struct Files {
    /// By sequence.
    pub segments: Vec<Segment>,
    /// Files with a segment's name whose first batch was never on disk.
    pub unbegun: Vec<FileName>,
    /// The number and length in bytes of each spare.
    pub spares: Vec<(u64, u64)>,
    /// No segment has a larger sequence.
    pub last: u64,
}

/// Finds the files of a log. Their names are listed in order, and so are the sequences in them.
pub(crate) async fn files(disk: &Disk, identity: &Identity) -> Result<Files, LogError> {
    let mut files = Files::default();
    for (file, size) in patiently(|| disk.list()).await? {
        if let Some(number) = number(file, "spare-") {
            files.spares.push((number, size));
        }
        let Some(sequence) = number(file, "log-") else { continue };
        files.last = files.last.max(sequence);
        match begun(disk, file, size, sequence, identity).await? {
            Some(first) => files.segments.push(Segment { file, size, sequence, first }),
            None => files.unbegun.push(file),
        }
    }
    Ok(files)
}

/// Where the segment begins that a file is; `None` if it was never begun.
///
/// The header is written together with the first batch, and a crash may leave of the two what it
/// likes. Then the sector of the header is as it was before: blank, or of an earlier use of the
/// file. It is *wrong* only if a write failed half way, in which case no batch is behind it.
pub(crate) async fn begun(
    disk: &Disk,
    file: FileName,
    size: u64,
    sequence: u64,
    identity: &Identity,
) -> Result<Option<Link>, LogError> {
    let sector = read_surely(disk, file, 0, SEGMENT_HEADER).await?;
    match beginning(&sector).map_err(|difference| difference.in_file(file))? {
        Beginning::Blank => Ok(None),
        Beginning::Header(SegmentHeader { sequence: own, .. }) if own < sequence => Ok(None),
        Beginning::Header(SegmentHeader { identity: other, sequence: own, first }) => {
            compare(identity, &other).map_err(|difference| difference.in_file(file))?;
            match own == sequence {
                true => Ok(Some(first)),
                false => Err(LogError::Damaged { file, offset: 0, index: first.at.index }),
            }
        }
        Beginning::Broken => {
            let length = size.min((SEGMENT_HEADER + BATCH_HEADER + BODY_MAX) as u64) as usize;
            let bytes = read_surely(disk, file, 0, length).await?;
            match batch_at(&bytes, SEGMENT_HEADER, seed(identity, sequence)) {
                Some((batch, _)) => Err(LogError::Damaged { file, offset: 0, index: batch.first.at.index }),
                None => Ok(None),
            }
        }
    }
}

/// Where the content of each segment ends: where the first of the later ones begins. A segment
/// that ends where it begins, or before, is void.
pub(crate) fn limits(segments: &[Segment]) -> Vec<Position> {
    let mut limit = Position::END;
    let mut limits: Vec<Position> = segments
        .iter()
        .rev()
        .map(|segment| {
            let end = limit;
            limit = limit.min(segment.first.at);
            end
        })
        .collect();
    limits.reverse();
    if planted(Mistake::OverlapKept) {
        limits.fill(Position::END);
    }
    limits
}

/// The way through a log, batch by batch.
pub(crate) struct Walk<F> {
    /// The next batch.
    pub link: Link,
    /// Behind the last entry that is there in whole.
    pub whole: Link,
    /// Entries below are not shown.
    from: u64,
    entry: F,
    /// The parts of an entry that is not there in whole yet.
    parts: Vec<u8>,
    /// Bytes of the entries that were shown.
    pub bytes: u64,
}

/// What a segment holds behind its last batch.
pub(crate) struct Tail {
    /// The segment as it was read.
    pub content: Vec<u8>,
    /// Where its last batch begins, if it has any.
    pub last: Option<usize>,
    /// Where that ends.
    pub end: usize,
}

impl Tail {
    /// Bytes of a batch that should follow and is not whole, as far as its header is there.
    pub fn torn(&self, link: Link) -> u64 {
        let rest = self.content.len().saturating_sub(self.end);
        torn(&self.content, self.end, link).map_or(0, |bytes| bytes.min(rest)) as u64
    }
}

impl<F: FnMut(u64, &[u8]) -> Result<(), Malformed>> Walk<F> {
    pub fn new(link: Link, from: u64, entry: F) -> Walk<F> {
        Walk { link, whole: link, from, entry, parts: Vec::new(), bytes: 0 }
    }

    /// Goes through a segment up to a limit. If the batches do not reach that far, the segment is
    /// read again until it was read twice as the same: a whole batch cannot come from a wrong read,
    /// but one that is not whole can.
    pub async fn segment(
        &mut self,
        disk: &Disk,
        identity: &Identity,
        segment: &Segment,
        limit: Position,
    ) -> Result<Tail, LogError> {
        let seed = seed(identity, segment.sequence);
        let (file, size) = (segment.file, usize::try_from(segment.size).unwrap_or(usize::MAX));
        let content = read(disk, file, 0, size).await?;
        let mut tail = Tail { content, last: None, end: SEGMENT_HEADER };
        let mut is_sure = false;
        loop {
            while self.link.at < limit
                && let Some((batch, checksum)) = batch_at(&tail.content, tail.end, seed)
                && self.is_next(&batch, limit)
            {
                self.take(&batch, checksum).map_err(|(index, why)| LogError::Malformed {
                    file,
                    offset: tail.end as u64,
                    index,
                    why,
                })?;
                (tail.last, tail.end) = (Some(tail.end), tail.end + batch.bytes());
            }
            if self.link.at >= limit {
                return Ok(tail);
            }
            if is_sure {
                break;
            }
            tail.content = confirm(disk, file, 0, size, tail.content).await?;
            is_sure = true;
        }
        // A batch is written when all before it is on disk: a later one proves that this one was.
        let behind = batch_behind(&tail.content, tail.end, seed, self.link.at);
        let is_torn = limit == Position::END && behind.is_none();
        if is_torn || planted(Mistake::MiddleCut) || planted(Mistake::OverlapKept) {
            return Ok(tail);
        }
        let index = self.link.at.index;
        Err(LogError::Damaged { file, offset: tail.end as u64, index })
    }

    /// Bytes of the parts of an entry that is not there in whole.
    pub fn pending(&self) -> u64 {
        self.parts.len() as u64
    }

    fn is_next(&self, batch: &Batch<'_>, limit: Position) -> bool {
        planted(Mistake::ChainUnchecked) || (batch.first == self.link && batch.end() <= limit)
    }

    /// Shows the entries that end in a batch. The error names the entry that was refused.
    fn take(&mut self, batch: &Batch<'_>, checksum: u32) -> Result<(), (u64, Malformed)> {
        let index = batch.first.at.index;
        if batch.is_part() {
            if self.parts.len() + batch.body.len() > ENTRY_MAX {
                return Err((index, Malformed("an entry longer than any is")));
            }
            self.parts.extend_from_slice(batch.body);
            if !batch.more || planted(Mistake::PartsCount) {
                let parts = take(&mut self.parts);
                self.show(index, &parts)?;
            }
        } else {
            self.parts.clear();
            let mut rest = batch.body;
            let mut next = index;
            while let Some((entry, behind)) = first(rest) {
                self.show(next, entry)?;
                (next, rest) = (next.saturating_add(1), behind);
            }
        }
        self.link = Link { at: batch.end(), before: checksum };
        if !batch.more {
            self.whole = self.link;
        }
        Ok(())
    }

    fn show(&mut self, index: u64, entry: &[u8]) -> Result<(), (u64, Malformed)> {
        if index < self.from {
            return Ok(());
        }
        self.bytes += entry.len() as u64;
        (self.entry)(index, entry).map_err(|why| (index, why))
    }
}
