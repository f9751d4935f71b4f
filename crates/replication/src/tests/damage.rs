//! Directories whose bytes are changed: a log is refused, or shows nothing wrong and nothing less
//! than what cannot be told from a torn tail.

use plimsoll_runtime::Disk;

use super::{Content, SMALL, alone, content, entries, entry, open, restore};
use crate::mistakes::{Mistake, plant};
use crate::{LogError, Settings};

/// A log of some segments: recycled ones, one whose batches go over its end in parts, several
/// lives, a spare. Tells its files, its entries from the index on that the oldest segment begins
/// with, and how many were in the last append.
async fn directory(disk: &Disk) -> (Content, u64, Vec<Vec<u8>>, usize) {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut from = 0;
    let lengths: [&[usize]; 4] = [&[700; 12], &[30, 6000, 9, 8], &[500, 1500, 100, 800], &[8, 20, 300]];
    for group in lengths {
        let (mut log, ..) = open(disk, SMALL, from).await.expect("a good log");
        for length in group {
            let two = [entry(2 * all.len() as u64, *length), entry(2 * all.len() as u64 + 1, 8)];
            log.append(&entries(&two)).await.expect("a good disk");
            all.extend(two);
        }
        from = from.max(log.next().saturating_sub(20));
        log.recycle(from).await.expect("a good disk");
        log.prepare_spare().await.expect("a good disk");
    }
    (content(disk).await, from, all.split_off(from as usize), 2)
}

#[derive(Default, Debug)]
struct Outcomes {
    whole: u32,
    cut: u32,
    refused: u32,
    wrong: u32,
}

/// Opens the log of a directory after each of these changes of one byte.
fn changed(bytes: impl Fn(u8, usize) -> u8 + 'static) -> Outcomes {
    alone(|disk| async move {
        let (files, from, all, last) = directory(&disk).await;
        assert!(files.len() > 4, "{} files", files.len());
        let mut outcomes = Outcomes::default();
        for which in 0..files.len() {
            for offset in 0..files[which].1.len() {
                let mut files = files.clone();
                let old = files[which].1[offset];
                files[which].1[offset] = bytes(old, offset);
                restore(&disk, &files).await;
                match open(&disk, SMALL, from).await {
                    Ok((.., found)) if found == all => outcomes.whole += 1,
                    Ok((.., found)) if all.starts_with(&found) && found.len() >= all.len() - last => {
                        outcomes.cut += 1;
                    }
                    Ok(_) => outcomes.wrong += 1,
                    Err(LogError::Damaged { .. } | LogError::Foreign(_)) => outcomes.refused += 1,
                    Err(why) => panic!("byte {offset} of {}: {why}", files[which].0),
                }
            }
        }
        outcomes
    })
}

#[test]
fn a_wrong_bit_anywhere_is_found_or_does_no_harm() {
    let outcomes = changed(|byte, offset| byte ^ 1 << (offset % 8));
    println!("{outcomes:?}");
    assert_eq!(outcomes.wrong, 0);
    assert!(outcomes.refused > 5000 && outcomes.cut > 50 && outcomes.whole > 3000, "{outcomes:?}");
}

#[test]
fn a_byte_of_zeros_or_ones_anywhere_is_found_or_does_no_harm() {
    for wrong in [0, 0xff] {
        assert_eq!(changed(move |_, _| wrong).wrong, 0);
    }
}

#[test]
fn a_log_that_takes_damage_for_its_end_is_caught() {
    plant(Some(Mistake::MiddleCut));
    let outcomes = changed(|byte, offset| byte ^ 1 << (offset % 8));
    plant(None);
    assert!(outcomes.wrong > 0, "{outcomes:?}");
}

#[test]
fn a_segment_that_is_missing_or_short_is_found() {
    alone(|disk| async move {
        let (files, from, all, last) = directory(&disk).await;
        let segments: Vec<usize> =
            (0..files.len()).filter(|&file| files[file].0.as_str().starts_with("log-")).collect();
        let (newest, older) = segments.split_last().expect("segments");
        assert!(older.len() > 1, "{segments:?}");
        for &which in older {
            let mut files = files.clone();
            files.remove(which);
            restore(&disk, &files).await;
            assert!(matches!(open(&disk, SMALL, from).await, Err(LogError::Damaged { .. })));
        }
        for which in segments.iter().copied() {
            let mut files = files.clone();
            for length in (0..files[which].1.len()).rev().step_by(64) {
                files[which].1.truncate(length);
                restore(&disk, &files).await;
                match open(&disk, SMALL, from).await {
                    Ok((.., found)) => {
                        assert!(all.starts_with(&found));
                        assert!(which == *newest || found.len() >= all.len() - last);
                    }
                    Err(why) => assert!(matches!(why, LogError::Damaged { .. }), "{why}"),
                }
            }
        }
    });
}

#[test]
fn a_log_that_was_cut_goes_on_and_can_be_read_again() {
    alone(|disk| async move {
        let (files, from, all, _) = directory(&disk).await;
        let which = files.iter().rposition(|(file, _)| file.as_str().starts_with("log-")).expect("a segment");
        let used = files[which].1.iter().rposition(|&byte| byte != 0).expect("a batch");
        for (settings, number) in [(SMALL, 1), (Settings { segment_bytes: 8192, ..SMALL }, 2)] {
            let mut files = files.clone();
            files[which].1[used] ^= 1;
            restore(&disk, &files).await;
            let (mut log, recovered, found) = open(&disk, settings, from).await.expect("a torn tail");
            assert!(recovered.torn > 0 && found.len() == all.len() - 2, "{recovered:?}");
            let other = entry(1000 + number, 400);
            log.append(&entries(std::slice::from_ref(&other))).await.expect("a good disk");
            let (_, recovered, again) = open(&disk, settings, from).await.expect("a good log");
            assert_eq!(recovered.torn, 0);
            assert_eq!(again[..found.len()], found);
            assert_eq!(again[found.len()..], [other]);
        }
    });
}
