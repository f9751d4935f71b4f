//! What logs wrote, written again to bare files: how much of the disk's speed a log reaches.
//!
//! While it counts, each shard's log notes the length of each write; a sync follows each. After the
//! run, when the database is closed, one thread per shard writes as many bytes in the same pieces
//! to a file, one write and sync after the other, all threads at once. The file is as long as a
//! segment of a log, was filled before, and is overwritten from its beginning when its end is
//! reached, so its length never changes. That is the best a log of this design can do: what a log
//! does besides (making segments, images) and all time in which it had nothing to write count
//! against the log.
//!
//! Left out: when writes were made. A bare file is written as fast as the disk takes it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_engine::LogSettings;
use plimsoll_txn::any_shard::WriteRecord;

use crate::report::model::{DiskFigures, DiskSpeed};

/// Bytes that are written at a time while a file is filled.
const PIECE: usize = 4 << 20;

/// Writes to bare files in a directory what the logs of shards wrote. `None` if they wrote nothing,
/// or if the user ended it.
pub fn replay(
    directory: &Path,
    records: &[WriteRecord],
    interrupted: &AtomicBool,
) -> io::Result<Option<DiskFigures>> {
    let all = || records.iter().flat_map(|record| &record.writes);
    let (bytes, syncs) = (all().map(|&length| u64::from(length)).sum(), all().count() as u64);
    if syncs == 0 || interrupted.load(Relaxed) {
        return Ok(None);
    }
    let longest = all().max().copied().unwrap_or_default() as usize;
    let content = noise(longest.max(PIECE));
    let mut files = Vec::new();
    for shard in 0..records.len() {
        files.push(fill(&directory.join(format!("bare-{shard}")), &content)?);
    }
    let (together, content) = (Barrier::new(records.len()), &content);
    let begun = Instant::now();
    let took: Vec<io::Result<Duration>> = thread::scope(|scope| {
        let together = &together;
        let start = |(record, file)| {
            scope.spawn(move || {
                together.wait();
                write(file, record, content, interrupted)
            })
        };
        let threads: Vec<_> = records.iter().zip(&files).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a panic ends the process")).collect()
    });
    let seconds = begun.elapsed().as_secs_f64();
    let busy_seconds = took.into_iter().sum::<io::Result<Duration>>()?.as_secs_f64();
    let longest_ns = records.iter().map(WriteRecord::length_ns).max().unwrap_or(0);
    let log_busy_ns: u64 = records.iter().map(|record| record.busy_ns).sum();
    let log = DiskSpeed::new(bytes, syncs, longest_ns as f64 / 1e9, log_busy_ns as f64 / 1e9);
    let bare = DiskSpeed::new(bytes, syncs, seconds, busy_seconds);
    Ok((!interrupted.load(Relaxed)).then(|| DiskFigures::new(bytes, syncs, log, bare)))
}

/// Bytes that no disk makes fewer.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..length).map(|_| draw()).collect()
}

/// Makes a file as long as a segment, which is on disk when this returns.
fn fill(path: &Path, content: &[u8]) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let (length, piece) = (LogSettings::default().segment_bytes, &content[..PIECE]);
    for at in (0..length).step_by(PIECE) {
        file.write_all_at(piece, at)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// Writes and syncs one piece after the other. Returns how long that took.
fn write(
    file: &File,
    record: &WriteRecord,
    content: &[u8],
    interrupted: &AtomicBool,
) -> io::Result<Duration> {
    let (begun, mut at) = (Instant::now(), 0);
    for &length in &record.writes {
        if interrupted.load(Relaxed) {
            break;
        }
        if at + u64::from(length) > LogSettings::default().segment_bytes {
            at = 0;
        }
        file.write_all_at(&content[..length as usize], at)?;
        file.sync_data()?;
        at += u64::from(length);
    }
    Ok(begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(writes: &[u32]) -> WriteRecord {
        let mut record = WriteRecord::default();
        record.writes = writes.to_vec();
        record
    }

    #[test]
    fn as_many_bytes_are_written_in_the_same_pieces() {
        let scratch = tempfile::tempdir().expect("a directory");
        // The second file is written beyond its end.
        let long = vec![32 << 20; 3];
        let records = [record(&[512, 1024, 5]), record(&long)];
        let go_on = AtomicBool::new(false);
        let figures = replay(scratch.path(), &records, &go_on).expect("room").expect("it was written");
        assert_eq!((figures.bytes, figures.syncs), (1541 + (96 << 20), 6));
        assert!(figures.bare.seconds > 0.0 && figures.bare.sync_us > 0.0, "{figures:?}");
        let content = |shard: usize| {
            let content = std::fs::read(scratch.path().join(format!("bare-{shard}"))).expect("it is there");
            assert_eq!(content.len() as u64, LogSettings::default().segment_bytes);
            content
        };
        let noise = noise(32 << 20);
        assert_eq!(content(0)[512..1536], noise[..1024]);
        let rewritten = content(1);
        assert!(rewritten[..32 << 20] == noise && rewritten[32 << 20..] == noise, "both halves");
    }

    #[test]
    fn nothing_is_written_for_logs_that_wrote_nothing_or_when_the_user_ends_it() {
        let scratch = tempfile::tempdir().expect("a directory");
        let idle = [WriteRecord::default(), WriteRecord::default()];
        assert_eq!(replay(scratch.path(), &idle, &AtomicBool::new(false)).expect("room"), None);
        let busy = [record(&[512])];
        assert_eq!(replay(scratch.path(), &busy, &AtomicBool::new(true)).expect("room"), None);
        assert_eq!(std::fs::read_dir(scratch.path()).expect("it is there").count(), 0);
    }
}
