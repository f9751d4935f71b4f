//! The task that makes an image of a shard, and the way back from one (`shard/image.rs`).
//!
//! The task that writes the log starts it when the log has become long enough. It works for a
//! moment and then sleeps three times as long, so that it takes a quarter of the shard's time at
//! most, and of its disk's. If the disk fails, the image is given up, and another one is begun
//! later; transactions do not notice.
//!
//! An image's number is its start: the index from which the log is read. Its header is empty. Its
//! blocks are pieces of one sequence of records; the first byte of a block is 1 if its last record
//! goes on in the next block, else 0. The last two images are kept.

use plimsoll_replication::{
    BLOCK_MAX, Identity, ImageError, ImageWriter, images, read_image, remove_image, remove_unfinished,
};
use plimsoll_runtime::{Disk, Env};
use plimsoll_types::mutants::{Mutant, planted};

use crate::cut;
use crate::journal::Beginning;
use crate::protocol::{self, Protocol};

/// Bytes of records in a block, unless a record is longer.
const BLOCK_BYTES: usize = 64 << 10;
/// A step of the walk takes this part of the least distance between two images at most, so that a
/// walk has many steps where logs are short.
const STEP_PART: u64 = 64;
/// Least time in nanoseconds between two steps.
const STEP_NS: u64 = 10_000;
/// How many times as long as a step takes the task sleeps after it.
const REST: u64 = 3;

/// Starts the task, if an image is due.
pub(crate) fn begins<P: Protocol, E: Env<P>>(env: &E, disk: &Disk, identity: Identity, image_bytes: u64) {
    if !env.local(|node| node.base().begins_image()) {
        return;
    }
    let step_bytes = (image_bytes / STEP_PART).min(BLOCK_BYTES as u64) as usize;
    let (env, disk) = (env.clone(), disk.clone());
    env.clone().spawn(async move {
        let failed = match make(&env, &disk, identity, step_bytes).await {
            Ok(Some(kept)) => tidy(&disk, &kept).await.is_err(),
            not_made => {
                // What it took of the disk is needed by the log.
                let _ = remove_unfinished(&disk).await;
                not_made.is_err()
            }
        };
        env.local(|node| node.base().image_over(failed));
    });
}

/// Makes an image. Returns the numbers of those that are kept; `None` if it was spoilt.
async fn make<P: Protocol, E: Env<P>>(
    env: &E,
    disk: &Disk,
    identity: Identity,
    step_bytes: usize,
) -> Result<Option<Vec<u64>>, ImageError> {
    let beginning = loop {
        env.pause().await;
        if let Some(beginning) = env.local(|node| node.base().image_beginning()) {
            break beginning;
        }
    };
    let Beginning { start, ref records, mut walk, .. } = beginning;
    let mut out = Blocks {
        writer: ImageWriter::begin(disk.clone(), identity, start, &[]).await?,
        records: Vec::new(),
        bytes: 0,
    };
    out.add(records).await?;
    loop {
        let begun = env.now();
        let Some(rows) = env.local(|node| node.base().image_rows(&mut walk, step_bytes)) else { break };
        out.add(&rows).await?;
        let took_ns = env.now().0.saturating_sub(begun.0);
        env.sleep(STEP_NS.max(REST * took_ns)).await;
    }
    let (end, below, largest) = env.local(|node| node.base().image_end());
    let stable = env.stable();
    out.add(&end).await?;
    out.flush().await?;
    if !planted(Mutant::ImageOfUnstable) {
        stable.await;
        while !env.local(|node| node.base().image_counts(below, largest)) {
            env.sleep(cut::PERIOD_NS).await;
        }
    }
    if env.local(|node| node.base().image_is_spoilt()) {
        return Ok(None);
    }
    let bytes = out.bytes;
    out.writer.finish().await?;
    Ok(Some(env.local(|node| node.base().image_made(&beginning, bytes))))
}

/// Removes images that are not kept.
async fn tidy(disk: &Disk, kept: &[u64]) -> Result<(), ImageError> {
    for number in images(disk).await? {
        if !kept.contains(&number) {
            remove_image(disk, number).await?;
        }
    }
    Ok(())
}

/// The blocks of an image that is written.
struct Blocks {
    writer: ImageWriter,
    /// Records that are in no block yet.
    records: Vec<u8>,
    /// Bytes of all records.
    bytes: u64,
}

impl Blocks {
    async fn add(&mut self, records: &[u8]) -> Result<(), ImageError> {
        self.records.extend_from_slice(records);
        self.bytes += records.len() as u64;
        match self.records.len() >= BLOCK_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<(), ImageError> {
        let mut pieces = self.records.chunks(BLOCK_MAX - 1).peekable();
        while let Some(piece) = pieces.next() {
            let more = u8::from(pieces.peek().is_some());
            self.writer.block(&[&[more], piece].concat()).await?;
        }
        self.records.clear();
        Ok(())
    }
}

/// Reads the image with a number into the shard. Returns how many bytes of records it has.
pub(crate) async fn read<P: Protocol, E: Env<P>>(
    env: &E,
    disk: &Disk,
    identity: Identity,
    number: u64,
) -> Result<u64, ImageError> {
    let (mut records, mut bytes) = (Vec::new(), 0);
    let block = |block: &[u8]| {
        bytes += block.len() as u64;
        let Some((&more, piece)) = block.split_first() else { return Ok(()) };
        if more == 0 && records.is_empty() {
            return env.local(|node| protocol::replay(node, |base| base.replay(piece)));
        }
        records.extend_from_slice(piece);
        match more {
            0 => {
                let records = std::mem::take(&mut records);
                env.local(|node| protocol::replay(node, |base| base.replay(&records)))
            }
            _ => Ok(()),
        }
    };
    read_image(disk, identity, number, |_| Ok(()), block).await?;
    Ok(bytes)
}
