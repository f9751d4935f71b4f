//! Reading and writing with the patience that a disk needs.

use std::future::Future;

use plimsoll_runtime::{Disk, DiskError, DiskFault, FileName, Verb};

/// How often something is tried before its error counts.
pub(crate) const TRIES: u32 = 3;

/// How often a range is read again at most, until it is twice the same.
const READS_MAX: u32 = 20;

/// Bytes that are read or written at once.
pub(crate) const PIECE: usize = 4 << 20;

/// Does something until it succeeds, at most [`TRIES`] times; the error is the last one.
///
/// It has to be harmless to do it again. For a sync that means: together with its writes.
pub(crate) async fn patiently<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, DiskError>
where
    F: Future<Output = Result<T, DiskError>>,
{
    let mut tries = 1;
    loop {
        match attempt().await {
            Err(error) if tries < TRIES && error.fault != DiskFault::NotFound => tries += 1,
            result => return result,
        }
    }
}

/// Reads a range of a file once, as far as the file goes.
pub(crate) async fn read(
    disk: &Disk,
    file: FileName,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>, DiskError> {
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let (at, rest) = (offset + bytes.len() as u64, length - bytes.len());
        let piece = patiently(|| disk.read(file, at, rest.min(PIECE))).await?;
        if piece.is_empty() {
            break;
        }
        match bytes.is_empty() {
            true => bytes = piece,
            false => bytes.extend(piece),
        }
    }
    Ok(bytes)
}

/// Reads a range of a file until it is twice the same: a single read may be wrong.
pub(crate) async fn read_surely(
    disk: &Disk,
    file: FileName,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>, DiskError> {
    let bytes = read(disk, file, offset, length).await?;
    confirm(disk, file, offset, length, bytes).await
}

/// Reads a range of a file, which was read as these bytes, until it is twice the same.
pub(crate) async fn confirm(
    disk: &Disk,
    file: FileName,
    offset: u64,
    length: usize,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>, DiskError> {
    for _ in 0..READS_MAX {
        let again = read(disk, file, offset, length).await?;
        if again == bytes {
            return Ok(bytes);
        }
        bytes = again;
    }
    Err(DiskError { verb: Verb::Read, file: Some(file), fault: DiskFault::IO })
}
