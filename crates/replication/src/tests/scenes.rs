//! Small scenes, one rule each, and the planted bugs.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_runtime::sim::{Fault, Faults};
use plimsoll_runtime::{Disk, DiskFault, FileName};
use plimsoll_types::wire::Malformed;

use super::worlds::caught;
use super::{IDENTITY, Rng, SMALL, alone, content, entries, entry, open, restore, run, world};
use crate::entries::PREFIX;
use crate::error::Difference;
use crate::format::{SEGMENT_HEADER, taken};
use crate::mistakes::Mistake;
use crate::{Identity, Log, LogError, Settings, What, verify};

#[test]
fn planted_mistakes_show_in_worlds() {
    let mut missed = Vec::new();
    for mistake in Mistake::ALL {
        match caught(mistake, 2000) {
            Some((worlds, wrong)) => println!("{mistake:?}: after {worlds} worlds: {wrong}"),
            // No bytes of a simulated disk change by themselves: the tests of damage find it.
            None if mistake == Mistake::MiddleCut => {}
            None => missed.push(mistake),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn a_log_begins_at_an_index_and_goes_on_over_segments_and_lives() {
    alone(|disk| async move {
        let mut all = Vec::new();
        for life in 0..5u64 {
            let (mut log, _, found) = open(&disk, SMALL, 100).await.expect("a good log");
            assert_eq!(found, all);
            for number in 0..20 {
                let group: Vec<_> =
                    (0..number % 4).map(|n| entry(n, (life * 100 + number) as usize)).collect();
                log.append(&entries(&group)).await.expect("a good disk");
                all.extend(group);
                assert_eq!(log.next(), 100 + all.len() as u64);
            }
        }
        let (.., found) = open(&disk, SMALL, 130).await.expect("a good log");
        assert_eq!(found, all[30..]);
        assert!(matches!(open(&disk, SMALL, 99).await, Err(LogError::Damaged { index: 99, .. })));
        let behind = 101 + all.len() as u64;
        assert!(matches!(open(&disk, SMALL, behind).await, Err(LogError::Damaged { .. })));
    });
}

#[test]
fn long_entries_are_written_in_parts() {
    alone(|disk| async move {
        let lengths = [0, 1, (4 << 20) - 60, (4 << 20) - 4, 4 << 20, (4 << 20) + 1, 13 << 20, 5];
        let all: Vec<Vec<u8>> = lengths.iter().map(|&length| entry(length as u64, length)).collect();
        for settings in
            [16 << 20, 6 << 20].map(|segment_bytes| Settings { segment_bytes, ..Settings::default() })
        {
            restore(&disk, &Vec::new()).await;
            let (mut log, ..) = open(&disk, settings, 0).await.expect("a log begins");
            log.append(&entries(&all)).await.expect("a good disk");
            let (.., found) = open(&disk, settings, 0).await.expect("a good log");
            assert!(found == all);
        }
    });
}

#[test]
fn a_log_tells_the_lengths_of_what_it_has_just_written() {
    alone(async |disk| {
        let (mut log, ..) = open(&disk, SMALL, 0).await.expect("a new log");
        assert!(log.writes().is_empty());
        let lengths = |writes: &[u32]| writes.iter().map(|&length| length as usize).collect::<Vec<_>>();
        log.append(&entries(&[entry(1, 100)])).await.expect("a good disk");
        assert_eq!(lengths(log.writes()), [SEGMENT_HEADER + taken(PREFIX + 100)]);
        log.append(&entries(&[entry(2, 8), entry(3, 9)])).await.expect("a good disk");
        assert_eq!(lengths(log.writes()), [taken(2 * PREFIX + 8 + 9)]);
        // Three segments, whose files end with zeros.
        log.append(&entries(&[entry(4, 8000)])).await.expect("a good disk");
        let written = lengths(log.writes());
        assert!(written.len() >= 2 && written.iter().all(|&length| length <= 4096), "{written:?}");
        let bytes: usize = written.iter().sum();
        assert!((8000..8000 + 3 * 512).contains(&bytes), "{written:?}");
    });
}

#[test]
fn entries_that_find_no_room_leave_nothing_and_may_be_appended_later() {
    let mut world = world(1, 40_000, &Faults::none(), 1);
    let all: Vec<Vec<u8>> = (0..30).map(|number| entry(number, 1000)).collect();
    let (group, first) = (all.clone(), all[..10].to_vec());
    run(&mut world, |disk| async move {
        let (mut log, ..) = open(&disk, SMALL, 0).await.expect("a log begins");
        log.append(&entries(&first)).await.expect("there is room");
        // They need more segments than there is room for; none of them is written.
        let error = log.append(&entries(&group)).await.expect_err("there is no room");
        assert!(matches!(error, LogError::Disk(error) if error.fault == DiskFault::Full), "{error}");
        assert_eq!(log.next(), 10);
        let (mut log, _, found) = open(&disk, SMALL, 0).await.expect("a good log");
        assert_eq!(found, first);
        // The room comes back when older entries are no longer needed.
        log.recycle(10).await.expect("a good disk");
        for one in &group[10..15] {
            log.append(&entries(std::slice::from_ref(one))).await.expect("there is room");
        }
        let (.., found) = open(&disk, SMALL, 10).await.expect("a good log");
        assert_eq!(found, group[10..15]);
    });
    let full = world.inflict(Fault::FullDisk(0));
    run(&mut world, |disk| async move {
        let (mut log, ..) = open(&disk, SMALL, 10).await.expect("nothing grows");
        log.append(&entries(&[entry(99, 1)])).await.expect("a segment has its length already");
    });
    world.end(full);
}

#[test]
fn segments_are_used_again() {
    alone(|disk| async move {
        let (mut log, ..) = open(&disk, SMALL, 0).await.expect("a log begins");
        for number in 0..500 {
            log.append(&entries(&[entry(number, 300)])).await.expect("a good disk");
            log.recycle(log.next().saturating_sub(30)).await.expect("a good disk");
            log.prepare_spare().await.expect("a good disk");
        }
        let files = disk.list().await.expect("a good disk");
        assert!(files.len() < 8, "{files:?}");
        let (_, recovered, found) = open(&disk, SMALL, 470).await.expect("a good log");
        assert_eq!((recovered.entries, found.len()), (500, 30));
        let report = verify(&disk, None).await.expect("a good disk");
        assert!(report.is_good() && report.identity == Some(IDENTITY), "{report}");
        let last = report.lines.iter().rev().find_map(|line| match line.what {
            What::Segment { next, .. } => Some(next),
            _ => None,
        });
        assert_eq!(last, Some(500));
    });
}

#[test]
fn a_log_of_something_else_is_refused() {
    async fn refused(disk: &Disk, other: Identity) -> Option<Difference> {
        match Log::open(disk.clone(), other, SMALL, 0, |_, _| Ok(())).await {
            Err(LogError::Foreign(foreign)) => Some(foreign.difference),
            _ => None,
        }
    }
    alone(|disk| async move {
        let (mut log, ..) = open(&disk, SMALL, 0).await.expect("a log begins");
        log.append(&entries(&[entry(1, 10)])).await.expect("a good disk");
        let other = Identity { database: 8, ..IDENTITY };
        assert_eq!(refused(&disk, other).await, Some(Difference::Database(7)));
        assert_eq!(refused(&disk, Identity { shard: 4, ..IDENTITY }).await, Some(Difference::Shard(3)));
        assert_eq!(refused(&disk, Identity { lineage: 2, ..IDENTITY }).await, Some(Difference::Lineage(1)));
        assert!(!verify(&disk, Some(other)).await.expect("a good disk").is_good());
        // Another version of the format, with the checksum that it would have.
        let mut files = content(&disk).await;
        files[0].1[8] = 9;
        let checksum = crc32c::crc32c(&files[0].1[..64]);
        files[0].1[64..68].copy_from_slice(&checksum.to_le_bytes());
        restore(&disk, &files).await;
        assert_eq!(refused(&disk, IDENTITY).await, Some(Difference::Format(9)));
    });
}

#[test]
fn batches_of_another_history_do_not_count() {
    alone(|disk| async move {
        // Two histories of the same log whose batches have the same indexes and lengths.
        let mut histories = Vec::new();
        for history in 0..2 {
            restore(&disk, &Vec::new()).await;
            let (mut log, ..) = open(&disk, SMALL, 0).await.expect("a log begins");
            for number in 0..5 {
                log.append(&entries(&[entry(100 * history + number, 200)])).await.expect("a good disk");
            }
            histories.push(content(&disk).await);
        }
        let batch = (56 + 4 + 200usize).next_multiple_of(8);
        let mut mixed = histories[0].clone();
        let second = 512 + batch;
        mixed[0].1[second..].copy_from_slice(&histories[1][0].1[second..]);
        restore(&disk, &mixed).await;
        let error = open(&disk, SMALL, 0).await.expect_err("the second batch does not follow the first");
        let file = mixed[0].0;
        assert_eq!(error, LogError::Damaged { file, offset: second as u64, index: 1 });
    });
}

#[test]
fn an_entry_that_its_reader_refuses_is_named() {
    alone(|disk| async move {
        let (mut log, ..) = open(&disk, SMALL, 0).await.expect("a log begins");
        log.append(&entries(&[entry(1, 10), entry(2, 10)])).await.expect("a good disk");
        let refuse = |index, _: &[u8]| if index == 1 { Err(Malformed("it is odd")) } else { Ok(()) };
        let error = Log::open(disk.clone(), IDENTITY, SMALL, 0, refuse).await.expect_err("a refusal");
        let text = error.to_string();
        assert!(matches!(error, LogError::Malformed { index: 1, offset: 512, .. }), "{error:?}");
        assert!(text.contains("entry 1 ") && text.contains("it is odd") && !text.contains('\n'), "{text}");
    });
}

#[test]
fn an_append_that_is_dropped_leaves_a_log_that_goes_on() {
    alone(|disk| async move {
        let (mut log, ..) = open(&disk, SMALL, 0).await.expect("a log begins");
        log.append(&entries(&[entry(1, 10)])).await.expect("a good disk");
        let many: Vec<_> = (10..40).map(|number| entry(number, 500)).collect();
        for polls in 1..60 {
            let next = log.next();
            let group = entries(&many);
            // Dropped after some of its steps.
            let mut append = Box::pin(log.append(&group));
            let mut left = polls;
            let dropped = std::future::poll_fn(|context| match append.as_mut().poll(context) {
                std::task::Poll::Ready(result) => std::task::Poll::Ready(Some(result)),
                std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(None),
                std::task::Poll::Pending => {
                    left -= 1;
                    std::task::Poll::Pending
                }
            })
            .await
            .is_none();
            drop(append);
            if !dropped {
                break;
            }
            assert_eq!(log.next(), next);
            let one = entry(1000 + polls, 20);
            log.append(&entries(std::slice::from_ref(&one))).await.expect("a good disk");
            let (.., found) = open(&disk, SMALL, 0).await.expect("a good log");
            assert_eq!((found.len() as u64, found.last()), (next + 1, Some(&one)), "{polls}");
        }
        assert!(log.next() > 5, "{}", log.next());
    });
}

#[test]
fn verify_tells_what_each_file_is_and_changes_nothing() {
    alone(|disk| async move {
        let (mut log, ..) = open(&disk, SMALL, 0).await.expect("a log begins");
        for number in 0..20 {
            log.append(&entries(&[entry(number, 500)])).await.expect("a good disk");
        }
        log.prepare_spare().await.expect("a good disk");
        let other = FileName::new("owner").expect("a name");
        disk.write(other, 0, vec![1, 2, 3]).await.expect("a good disk");
        let mut files = content(&disk).await;
        let report = verify(&disk, None).await.expect("a good disk");
        assert!(report.is_good() && content(&disk).await == files, "{report}");
        let text = report.to_string();
        assert_eq!(text.lines().count(), files.len());
        assert!(text.contains("log-00000000000000000001: 4096 bytes, entries 0 to 6, "), "{text}");
        assert!(text.contains("owner: 3 bytes, a file of something else"), "{text}");

        files[0].1[700] ^= 4;
        restore(&disk, &files).await;
        let report = verify(&disk, None).await.expect("a good disk");
        let wrong: Vec<_> = report.lines.iter().filter(|line| line.wrong.is_some()).collect();
        assert!(wrong.len() == 1 && wrong[0].file == files[0].0, "{report}");
        assert!(wrong[0].to_string().contains("is damaged at byte 512, where entry 0 "), "{report}");
        assert!(content(&disk).await == files);
    });
}

#[test]
fn what_stands_in_a_buffer_of_entries_is_counted() {
    let mut all = entries(&[entry(1, 10), Vec::new(), entry(2, 300)]);
    assert_eq!((all.len(), all.bytes(), all.is_empty()), (3, 10 + 300 + 3 * 4, false));
    all.clear();
    assert_eq!((all.len(), all.bytes(), all.is_empty()), (0, 0, true));
    let mut rng = Rng(1);
    let lengths: Vec<usize> = (0..100).map(|_| rng.below(5000) as usize).collect();
    let shown: Rc<RefCell<usize>> = Rc::default();
    let count = shown.clone();
    alone(move |disk| async move {
        let (mut log, ..) = open(&disk, SMALL, 0).await.expect("a log begins");
        for &length in &lengths {
            all.push(|out| out.resize(out.len() + length, 7));
        }
        log.append(&all).await.expect("a good disk");
        let (.., found) = open(&disk, SMALL, 0).await.expect("a good log");
        assert!(found.iter().zip(&lengths).all(|(entry, length)| entry.len() == *length));
        *count.borrow_mut() = found.len();
    });
    assert_eq!(*shown.borrow(), 100);
}
