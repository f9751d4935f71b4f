//! Images: files that hold what a shard had at some position of its log, so that the log below need
//! not be kept.
//!
//! An image is written under a name that ends in `.new`, block by block, and synced in pieces. When
//! all is on disk it is read back and checked, and only then gets its name. So an image with its
//! name is whole, unless its bytes were changed later.
//!
//! A *block* is compressed. It says which image it belongs to and at which offset it stands, and
//! its checksum begins with the identity and the number of the image. So a block that a disk wrote
//! to the wrong place, or did not write where an older image's block was, is found. The last block
//! is empty and says that the image is whole.
//!
//! Left out: what is in an image, and when one is written. The caller keeps two of them, so that
//! the log goes back to the older one.

use std::fmt;

use plimsoll_runtime::{Disk, DiskError, DiskFault, FileName};
use plimsoll_types::wire::Malformed;

use crate::Identity;
use crate::disk::{PIECE, patiently, read, read_surely};
use crate::error::{Difference, Foreign};
use crate::format::{Fields, compare, number};

/// Version of the format of images.
const VERSION: u32 = 1;

/// What an image begins with.
const MAGIC: [u8; 8] = *b"plimsimg";

/// Bytes of the beginning of an image.
const BEGINNING: usize = 48;

/// Bytes of the header of a block.
const BLOCK_HEADER: usize = 32;

/// Bytes that are read at once, unless a block is longer.
const STEP: usize = 256 << 10;

/// Maximum length of a block or of a header before it is compressed, in bytes.
pub const BLOCK_MAX: usize = 1 << 20;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The header of the image; the first block.
    Header = 1,
    /// Anything else.
    Block = 2,
    /// Nothing; the last block.
    End = 3,
}

/// Why an image cannot be read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageError {
    /// The disk failed.
    Disk(DiskError),
    /// Bytes are wrong or missing.
    Damaged {
        /// The file.
        file: FileName,
        /// Where the block begins that is not whole, in bytes.
        offset: u64,
    },
    /// The file belongs to something else.
    Foreign(Foreign),
    /// The reader of the blocks refused one.
    Malformed {
        /// The file.
        file: FileName,
        /// Where the block begins, in bytes.
        offset: u64,
        /// What the reader said.
        why: Malformed,
    },
}

impl From<DiskError> for ImageError {
    fn from(error: DiskError) -> ImageError {
        ImageError::Disk(error)
    }
}

impl From<Foreign> for ImageError {
    fn from(foreign: Foreign) -> ImageError {
        ImageError::Foreign(foreign)
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::Disk(error) => error.fmt(f),
            ImageError::Damaged { file, offset } => write!(
                f,
                "the image {file} is damaged in the block at byte {offset}: start from the image before it"
            ),
            ImageError::Foreign(foreign) => foreign.fmt(f),
            ImageError::Malformed { file, offset, why } => write!(
                f,
                "the block of the image {file} at byte {offset} cannot be understood ({why}): \
                 start the version of the program that wrote it"
            ),
        }
    }
}

impl std::error::Error for ImageError {}

fn name(number: u64) -> FileName {
    FileName::new(&format!("image-{number:020}")).expect("26 bytes")
}

fn new_name(number: u64) -> FileName {
    FileName::new(&format!("image-{number:020}.new")).expect("30 bytes")
}

/// The number of an image that is not finished.
pub(crate) fn unfinished(file: FileName) -> Option<u64> {
    number(FileName::new(file.as_str().strip_suffix(".new")?)?, "image-")
}

/// The number of an image by its name.
pub(crate) fn finished(file: FileName) -> Option<u64> {
    number(file, "image-")
}

fn beginning(identity: &Identity, number: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(BEGINNING);
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend(identity.shard.to_le_bytes());
    out.extend([0; 2]);
    out.extend(identity.database.to_le_bytes());
    out.extend(identity.lineage.to_le_bytes());
    out.extend(number.to_le_bytes());
    let checksum = crc32c::crc32c(&out);
    out.extend(checksum.to_le_bytes());
    out.resize(BEGINNING, 0);
    out
}

/// Whose image it is and which, if the beginning is whole. The error is another version.
pub(crate) fn whose(bytes: &[u8]) -> Result<Option<(Identity, u64)>, Difference> {
    const SUMMED: usize = 40;
    let Some(bytes) = bytes.get(..BEGINNING) else { return Ok(None) };
    let mut fields = Fields(bytes);
    if fields.take() != MAGIC || crc32c::crc32c(&bytes[..SUMMED]) != Fields(&bytes[SUMMED..]).u32() {
        return Ok(None);
    }
    let version = fields.u32();
    if version != VERSION {
        return Err(Difference::Format(version));
    }
    let (shard, _zeros) = (fields.u16(), fields.u16());
    let (database, lineage, number) = (fields.u64(), fields.u64(), fields.u64());
    Ok(Some((Identity { database, shard, lineage }, number)))
}

/// The block that some bytes begin with and which stands at an offset of an image: what it holds
/// and how long it is, with its header.
fn block_at(bytes: &[u8], seed: u32, number: u64, offset: u64) -> Option<(Kind, Vec<u8>, usize)> {
    let (header, rest) = bytes.split_at_checked(BLOCK_HEADER)?;
    let mut fields = Fields(header);
    let (checksum, length, raw) = (fields.u32(), fields.u32() as usize, fields.u32() as usize);
    let (kind, own_number, own_offset) = (fields.u32(), fields.u64(), fields.u64());
    let kind = [Kind::Header, Kind::Block, Kind::End].into_iter().find(|known| *known as u32 == kind)?;
    let packed = rest.get(..length)?;
    let whole = crc32c::crc32c_append(seed, &bytes[4..BLOCK_HEADER + length]) == checksum;
    if !whole || own_number != number || own_offset != offset || raw > BLOCK_MAX {
        return None;
    }
    let content = lz4_flex::block::decompress(packed, raw).ok().filter(|content| content.len() == raw)?;
    Some((kind, content, BLOCK_HEADER + length))
}

/// Writes an image.
#[derive(Debug)]
pub struct ImageWriter {
    disk: Disk,
    identity: Identity,
    number: u64,
    /// What the checksums of the blocks begin with.
    seed: u32,
    /// Bytes that are on disk.
    written: u64,
    /// Bytes behind them that are not.
    buffer: Vec<u8>,
}

impl ImageWriter {
    /// Begins the image with a number. What is left of images that were not finished is removed.
    /// The header has at most [`BLOCK_MAX`] bytes.
    pub async fn begin(
        disk: Disk,
        identity: Identity,
        number: u64,
        header: &[u8],
    ) -> Result<ImageWriter, ImageError> {
        for (file, _) in patiently(|| disk.list()).await? {
            if unfinished(file).is_some() {
                remove_file(&disk, file).await?;
            }
        }
        let buffer = beginning(&identity, number);
        let seed = crc32c::crc32c(&buffer);
        let mut writer = ImageWriter { disk, identity, number, seed, written: 0, buffer };
        writer.add(Kind::Header, header);
        Ok(writer)
    }

    /// Adds a block of at most [`BLOCK_MAX`] bytes; 64 KiB are a good length. After an error the
    /// image is begun anew.
    pub async fn block(&mut self, content: &[u8]) -> Result<(), ImageError> {
        self.add(Kind::Block, content);
        if self.buffer.len() >= PIECE {
            self.flush().await?;
        }
        Ok(())
    }

    /// Bytes of the image so far.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Ends the image. When this returns without an error, it is on disk with its name, and was
    /// read back. An image that had the name before is replaced. After an error the image may have
    /// its name or not.
    pub async fn finish(mut self) -> Result<(), ImageError> {
        self.add(Kind::End, &[]);
        self.flush().await?;
        let ImageWriter { disk, identity, number, written, .. } = self;
        let (new, file) = (new_name(number), name(number));
        walk(&disk, &identity, number, (new, written), |_, _| Ok(())).await?;
        match patiently(|| disk.rename(new, file)).await {
            // Of a rename that failed the second try finds that it has happened.
            Err(error) if error.fault != DiskFault::NotFound => return Err(error.into()),
            _ => patiently(|| disk.sync_directory()).await?,
        }
        Ok(())
    }

    fn add(&mut self, kind: Kind, content: &[u8]) {
        assert!(content.len() <= BLOCK_MAX, "a block has at most {BLOCK_MAX} bytes, not {}", content.len());
        let packed = lz4_flex::block::compress(content);
        let offset = self.bytes();
        let begin = self.buffer.len();
        self.buffer.extend([0; 4]);
        self.buffer.extend((packed.len() as u32).to_le_bytes());
        self.buffer.extend((content.len() as u32).to_le_bytes());
        self.buffer.extend((kind as u32).to_le_bytes());
        self.buffer.extend(self.number.to_le_bytes());
        self.buffer.extend(offset.to_le_bytes());
        self.buffer.extend(packed);
        let checksum = crc32c::crc32c_append(self.seed, &self.buffer[begin + 4..]);
        self.buffer[begin..begin + 4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Writes and syncs what is not on disk. After a failed sync it is written again as well.
    async fn flush(&mut self) -> Result<(), ImageError> {
        let (disk, file, offset) = (&self.disk, new_name(self.number), self.written);
        let buffer = &self.buffer;
        patiently(async || {
            disk.write(file, offset, buffer.clone()).await?;
            disk.sync(file).await
        })
        .await?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// The numbers of the images that are there, in order.
pub async fn images(disk: &Disk) -> Result<Vec<u64>, DiskError> {
    let files = patiently(|| disk.list()).await?;
    Ok(files.into_iter().filter_map(|(file, _)| finished(file)).collect())
}

/// Reads an image: calls `header` with its header, and then `block` with each block, in order. What
/// they are called with is right; only when this returns without an error was it all.
pub async fn read_image(
    disk: &Disk,
    identity: Identity,
    number: u64,
    header: impl FnOnce(&[u8]) -> Result<(), Malformed>,
    mut block: impl FnMut(&[u8]) -> Result<(), Malformed>,
) -> Result<(), ImageError> {
    let file = name(number);
    let files = patiently(|| disk.list()).await?;
    // A read of a file that is not there says so.
    let size = files.iter().find(|(other, _)| *other == file).map_or(0, |&(_, size)| size);
    let mut header = Some(header);
    walk(disk, &identity, number, (file, size), |kind, content| match kind {
        Kind::Header => header.take().map_or(Ok(()), |header| header(content)),
        Kind::Block => block(content),
        Kind::End => Ok(()),
    })
    .await
}

/// Removes an image. It may be back after a crash, until the directory is synced.
pub async fn remove_image(disk: &Disk, number: u64) -> Result<(), DiskError> {
    remove_file(disk, name(number)).await
}

/// Removes images that were not finished. None may be under way.
pub async fn remove_unfinished(disk: &Disk) -> Result<(), DiskError> {
    for (file, _) in patiently(|| disk.list()).await? {
        if unfinished(file).is_some() {
            remove_file(disk, file).await?;
        }
    }
    Ok(())
}

async fn remove_file(disk: &Disk, file: FileName) -> Result<(), DiskError> {
    match patiently(|| disk.remove(file)).await {
        Err(error) if error.fault != DiskFault::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// How many blocks an image has, and how many bytes they are before they are compressed, if it is
/// whole.
pub(crate) async fn check(
    disk: &Disk,
    identity: &Identity,
    number: u64,
    file: (FileName, u64),
) -> Result<(u64, u64), ImageError> {
    let (mut blocks, mut bytes) = (0, 0);
    walk(disk, identity, number, file, |kind, content| {
        blocks += u64::from(kind == Kind::Block);
        bytes += content.len() as u64;
        Ok(())
    })
    .await?;
    Ok((blocks, bytes))
}

/// Goes through the blocks of a file of some size.
async fn walk(
    disk: &Disk,
    identity: &Identity,
    number: u64,
    (file, size): (FileName, u64),
    mut show: impl FnMut(Kind, &[u8]) -> Result<(), Malformed>,
) -> Result<(), ImageError> {
    let bytes = read_surely(disk, file, 0, BEGINNING).await?;
    match whose(&bytes).map_err(|difference| difference.in_file(file))? {
        Some((other, own)) => {
            compare(identity, &other).map_err(|difference| difference.in_file(file))?;
            if own != number {
                return Err(ImageError::Damaged { file, offset: 0 });
            }
        }
        None => return Err(ImageError::Damaged { file, offset: 0 }),
    }
    let seed = crc32c::crc32c(&beginning(identity, number));
    let (mut offset, mut expected) = (BEGINNING as u64, Kind::Header);
    loop {
        let mut bytes = read(disk, file, offset, STEP).await?;
        if block_at(&bytes, seed, number, offset).is_none() {
            // It may be a longer block, and a single read may be wrong.
            bytes = read_surely(disk, file, offset, PIECE).await?;
        }
        let (begin, mut rest) = (offset, &bytes[..]);
        while let Some((kind, content, length)) = block_at(rest, seed, number, offset) {
            let is_expected = (kind == Kind::Header) == (expected == Kind::Header);
            let behind = offset + length as u64;
            if !is_expected || (kind == Kind::End && behind != size) {
                return Err(ImageError::Damaged { file, offset });
            }
            show(kind, &content).map_err(|why| ImageError::Malformed { file, offset, why })?;
            if kind == Kind::End {
                return Ok(());
            }
            (expected, offset, rest) = (Kind::Block, behind, &rest[length..]);
        }
        if offset == begin {
            return Err(ImageError::Damaged { file, offset });
        }
    }
}
