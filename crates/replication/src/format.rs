//! The bytes of a log: headers of segments, and batches. `docs/format.md` has them as tables.
//!
//! The checksum of a batch begins with the log's identity and the segment's sequence. So a batch
//! that is found in another log's file, or was left by an earlier use of the same file, is not
//! whole.

use plimsoll_runtime::{FileName, SECTOR};

use crate::Identity;
use crate::entries::first;
use crate::error::Difference;
use crate::mistakes::{Mistake, planted};

/// Version of the format of logs.
const VERSION: u32 = 1;

/// What a segment begins with.
const MAGIC: [u8; 8] = *b"plimslog";

/// Bytes at the beginning of a segment that hold its header: a sector, which is written in whole or
/// not at all.
pub(crate) const SEGMENT_HEADER: usize = SECTOR;

/// Bytes of the header of a batch.
pub(crate) const BATCH_HEADER: usize = 56;

/// Maximum length of the body of a batch, in bytes.
pub(crate) const BODY_MAX: usize = 4 << 20;

/// Batches begin at multiples of this many bytes.
pub(crate) const ALIGN: usize = 8;

/// Where something is in a log: at an entry, or, within a long one, at a part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Position {
    pub index: u64,
    pub part: u32,
}

impl Position {
    /// Behind everything.
    pub const END: Position = Position { index: u64::MAX, part: u32::MAX };

    pub const fn entry(index: u64) -> Position {
        Position { index, part: 0 }
    }
}

/// A place in the chain of batches: what comes next, and the checksum of what came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub at: Position,
    pub before: u32,
}

/// Numbers of fixed width, least byte first, one after the other.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk::<N>().expect("the caller has looked at the length");
        self.0 = rest;
        *field
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// The name of the segment with a sequence.
pub(crate) fn log_name(sequence: u64) -> FileName {
    FileName::new(&format!("log-{sequence:020}")).expect("24 bytes")
}

/// The name of a spare.
pub(crate) fn spare_name(number: u64) -> FileName {
    FileName::new(&format!("spare-{number:020}")).expect("26 bytes")
}

/// The number in a name that begins so and has 20 digits behind it.
pub(crate) fn number(file: FileName, prefix: &str) -> Option<u64> {
    let digits = file.as_str().strip_prefix(prefix)?;
    let is_number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    // There is always a next one.
    is_number.then(|| digits.parse().ok())?.filter(|&number| number < u64::MAX)
}

/// The header of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub identity: Identity,
    pub sequence: u64,
    pub first: Link,
}

/// What the first sector of a segment says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beginning {
    /// A header, of this or an earlier use of the file.
    Header(SegmentHeader),
    /// Zeros: the file was not used yet.
    Blank,
    /// Something else.
    Broken,
}

/// Refuses what belongs to something else.
pub(crate) fn compare(identity: &Identity, other: &Identity) -> Result<(), Difference> {
    if other.database != identity.database {
        return Err(Difference::Database(other.database));
    }
    if other.shard != identity.shard {
        return Err(Difference::Shard(other.shard));
    }
    if other.lineage != identity.lineage {
        return Err(Difference::Lineage(other.lineage));
    }
    Ok(())
}

impl SegmentHeader {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.identity.shard.to_le_bytes());
        out.extend([0; 2]);
        out.extend(self.identity.database.to_le_bytes());
        out.extend(self.identity.lineage.to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        out.extend(self.first.at.index.to_le_bytes());
        // The term of the first batch.
        out.extend(0u64.to_le_bytes());
        out.extend(self.first.at.part.to_le_bytes());
        out.extend(self.first.before.to_le_bytes());
        let checksum = crc32c::crc32c(&out[begin..]);
        out.extend(checksum.to_le_bytes());
        out.resize(begin + SEGMENT_HEADER, 0);
    }
}

/// Reads the first sector of a segment. The error is a version of the format that is not this one.
pub(crate) fn beginning(bytes: &[u8]) -> Result<Beginning, Difference> {
    const FIELDS: usize = 64;
    let Some(sector) = bytes.get(..SEGMENT_HEADER) else { return Ok(Beginning::Broken) };
    if sector.iter().all(|&byte| byte == 0) {
        return Ok(Beginning::Blank);
    }
    let mut fields = Fields(sector);
    if fields.take() != MAGIC {
        return Ok(Beginning::Broken);
    }
    // A write that failed half way may have left the magic and not the version. Whatever the
    // version, the checksum is there.
    if crc32c::crc32c(&sector[..FIELDS]) != Fields(&sector[FIELDS..]).u32() {
        return Ok(Beginning::Broken);
    }
    let version = fields.u32();
    if version != VERSION {
        return Err(Difference::Format(version));
    }
    let shard = fields.u16();
    let _zeros = fields.u16();
    let (database, lineage, sequence, index, _term) =
        (fields.u64(), fields.u64(), fields.u64(), fields.u64(), fields.u64());
    let at = Position { index, part: fields.u32() };
    let first = Link { at, before: fields.u32() };
    Ok(Beginning::Header(SegmentHeader { identity: Identity { database, shard, lineage }, sequence, first }))
}

/// What the checksums of a segment's batches begin with.
pub(crate) fn seed(identity: &Identity, sequence: u64) -> u32 {
    let sequence = if planted(Mistake::ChainUnchecked) { 0 } else { sequence };
    let mut bytes = [0; 26];
    bytes[..8].copy_from_slice(&identity.database.to_le_bytes());
    bytes[8..10].copy_from_slice(&identity.shard.to_le_bytes());
    bytes[10..18].copy_from_slice(&identity.lineage.to_le_bytes());
    bytes[18..].copy_from_slice(&sequence.to_le_bytes());
    crc32c::crc32c(&bytes)
}

/// A batch: whole entries, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    pub first: Link,
    /// How many entries end in it.
    pub count: u32,
    /// More parts of the entry follow.
    pub more: bool,
    /// All entries below this index were on disk when it was written.
    pub durable: u64,
    pub body: &'a [u8],
}

impl Batch<'_> {
    /// Whether the body is a part of an entry, and not whole entries.
    pub fn is_part(&self) -> bool {
        self.more || self.first.at.part > 0
    }

    /// The position behind it.
    pub fn end(&self) -> Position {
        match self.more {
            true => Position { part: self.first.at.part.saturating_add(1), ..self.first.at },
            false => Position::entry(self.first.at.index.saturating_add(u64::from(self.count))),
        }
    }

    /// Bytes that it takes in its file.
    pub fn bytes(&self) -> usize {
        taken(self.body.len())
    }

    /// Appends it, and tells its checksum.
    pub fn encode(&self, seed: u32, out: &mut Vec<u8>) -> u32 {
        let begin = out.len();
        out.extend([0; 4]);
        out.extend((self.body.len() as u32).to_le_bytes());
        out.extend(self.first.before.to_le_bytes());
        out.extend(self.count.to_le_bytes());
        out.extend(self.first.at.part.to_le_bytes());
        out.extend(u32::from(self.more).to_le_bytes());
        // The term.
        out.extend(0u64.to_le_bytes());
        out.extend(self.first.at.index.to_le_bytes());
        // What is known to be stable.
        out.extend(0u64.to_le_bytes());
        out.extend(self.durable.to_le_bytes());
        out.extend(self.body);
        let checksum = crc32c::crc32c_append(seed, &out[begin + 4..]);
        out[begin..begin + 4].copy_from_slice(&checksum.to_le_bytes());
        out.resize(begin + self.bytes(), 0);
        checksum
    }
}

/// Bytes that a batch with such a body takes in its file.
pub(crate) fn taken(body: usize) -> usize {
    (BATCH_HEADER + body).next_multiple_of(ALIGN)
}

/// The batch at an offset, and its checksum, if a whole one is there.
pub(crate) fn batch_at(bytes: &[u8], offset: usize, seed: u32) -> Option<(Batch<'_>, u32)> {
    let (header, rest) = bytes.get(offset..)?.split_at_checked(BATCH_HEADER)?;
    let mut fields = Fields(header);
    let (checksum, length, before, count) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    let (part, more) = (fields.u32(), fields.u32());
    let (_term, index, _stable, durable) = (fields.u64(), fields.u64(), fields.u64(), fields.u64());
    let body = rest.get(..length as usize).filter(|body| body.len() <= BODY_MAX)?;
    let summed = &bytes[offset + 4..offset + BATCH_HEADER + body.len()];
    if crc32c::crc32c_append(seed, summed) != checksum {
        return None;
    }
    let first = Link { at: Position { index, part }, before };
    let batch = Batch { first, count, more: more == 1, durable, body };
    let well_formed = match batch.is_part() {
        true => count == u32::from(!batch.more),
        false => {
            let mut rest = body;
            let whole = (0..count).all(|_| first_of(&mut rest));
            whole && rest.is_empty() && count > 0
        }
    };
    well_formed.then_some((batch, checksum))
}

fn first_of(rest: &mut &[u8]) -> bool {
    first(rest).map(|(_, behind)| *rest = behind).is_some()
}

/// Bytes that a batch takes which should be at an offset, if its header is there.
pub(crate) fn torn(bytes: &[u8], offset: usize, link: Link) -> Option<usize> {
    let mut fields = Fields(bytes.get(offset..)?.get(..BATCH_HEADER)?);
    let (_checksum, length, before, _count) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    let (part, _more, _term) = (fields.u32(), fields.u32(), fields.u64());
    let at = Position { index: fields.u64(), part };
    (Link { at, before } == link && length > 0).then(|| taken(length as usize))
}

/// The offset of a whole batch from an offset on that is behind a position.
pub(crate) fn batch_behind(bytes: &[u8], offset: usize, seed: u32, at: Position) -> Option<usize> {
    const PART: usize = 16;
    const INDEX: usize = 32;
    const DURABLE: usize = 48;
    let end = bytes.len().saturating_sub(BATCH_HEADER);
    (offset..end).step_by(ALIGN).find(|&offset| {
        // Looks at the numbers first: a checksum of megabytes at every offset would take hours.
        let index = Fields(&bytes[offset + INDEX..]).u64();
        let part = Fields(&bytes[offset + PART..]).u32();
        let durable = Fields(&bytes[offset + DURABLE..]).u64();
        durable == index && Position { index, part } > at && batch_at(bytes, offset, seed).is_some()
    })
}
