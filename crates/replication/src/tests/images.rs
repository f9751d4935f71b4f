//! Images: written, read, damaged, crashed over.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_runtime::sim::Faults;
use plimsoll_runtime::{Disk, Env, FileName, ShardEnv, Tasks};
use plimsoll_types::ShardId;

use super::{Content, IDENTITY, MS, Nothing, Rng, alone, content, entry, restore, world};
use crate::{ImageError, ImageWriter, images, read_image, remove_image, verify};

/// The blocks of the image with a number.
fn blocks(number: u64) -> Vec<Vec<u8>> {
    let mut rng = Rng(number);
    (0..1 + rng.below(8)).map(|block| entry(100 * number + block, rng.below(3000) as usize)).collect()
}

async fn write(disk: &Disk, number: u64) -> Result<(), ImageError> {
    let mut writer = ImageWriter::begin(disk.clone(), IDENTITY, number, &number.to_le_bytes()).await?;
    for block in blocks(number) {
        writer.block(&block).await?;
    }
    writer.finish().await
}

async fn read(disk: &Disk, number: u64) -> Result<(Vec<u8>, Vec<Vec<u8>>), ImageError> {
    let (mut header, mut blocks) = (Vec::new(), Vec::new());
    let show = |content: &[u8]| {
        blocks.push(content.to_vec());
        Ok(())
    };
    let note = |content: &[u8]| {
        header.extend_from_slice(content);
        Ok(())
    };
    read_image(disk, IDENTITY, number, note, show).await?;
    Ok((header, blocks))
}

fn right(number: u64) -> (Vec<u8>, Vec<Vec<u8>>) {
    (number.to_le_bytes().to_vec(), blocks(number))
}

#[test]
fn what_was_written_is_read_and_can_be_removed() {
    alone(|disk| async move {
        for number in [3, 7] {
            write(&disk, number).await.expect("a good disk");
        }
        assert_eq!(images(&disk).await, Ok(vec![3, 7]));
        assert_eq!(read(&disk, 3).await, Ok(right(3)));
        assert_eq!(read(&disk, 7).await, Ok(right(7)));
        let report = verify(&disk, Some(IDENTITY)).await.expect("a good disk");
        assert!(report.is_good(), "{report}");
        remove_image(&disk, 3).await.expect("a good disk");
        assert_eq!(images(&disk).await, Ok(vec![7]));
        assert!(matches!(read(&disk, 3).await, Err(ImageError::Disk(_))));
    });
}

#[test]
fn large_images_are_compressed_and_written_in_pieces() {
    alone(|disk| async move {
        let block = |number: u64| [entry(number, 40_000), vec![number as u8; 25_536]].concat();
        let mut writer = ImageWriter::begin(disk.clone(), IDENTITY, 1, b"").await.expect("a good disk");
        for number in 0..200 {
            writer.block(&block(number)).await.expect("a good disk");
        }
        let bytes = writer.bytes();
        assert!((200 * 40_000..200 * 41_000).contains(&bytes), "{bytes}");
        writer.finish().await.expect("a good disk");
        let mut next = 0;
        let show = |content: &[u8]| {
            assert!(content == block(next), "block {next}");
            next += 1;
            Ok(())
        };
        assert_eq!(read_image(&disk, IDENTITY, 1, |_| Ok(()), show).await, Ok(()));
        assert_eq!(next, 200);
    });
}

#[test]
fn a_changed_byte_anywhere_is_found() {
    alone(|disk| async move {
        write(&disk, 5).await.expect("a good disk");
        let files = content(&disk).await;
        let padding = 44..48;
        for offset in 0..files[0].1.len() {
            let mut files = files.clone();
            files[0].1[offset] ^= 1 << (offset % 8);
            restore(&disk, &files).await;
            let is_good = verify(&disk, Some(IDENTITY)).await.expect("a good disk").is_good();
            match read(&disk, 5).await {
                Ok(image) => {
                    assert!(padding.contains(&offset) && is_good && image == right(5), "byte {offset}")
                }
                Err(why) => {
                    let found = matches!(why, ImageError::Damaged { .. } | ImageError::Foreign(_));
                    assert!(found && !is_good, "byte {offset}: {why}");
                }
            }
        }
        for length in 0..files[0].1.len() {
            let mut files = files.clone();
            files[0].1.truncate(length);
            restore(&disk, &files).await;
            assert!(read(&disk, 5).await.is_err(), "{length} bytes");
        }
    });
}

#[test]
fn a_block_of_another_image_or_another_place_is_found() {
    // All blocks have the same length, compressed too.
    async fn alike(disk: &Disk, number: u64) {
        let mut writer = ImageWriter::begin(disk.clone(), IDENTITY, number, b"").await.expect("a good disk");
        for block in 0..4 {
            writer.block(&entry(10 * number + block, 500)).await.expect("a good disk");
        }
        writer.finish().await.expect("a good disk");
    }
    alone(|disk| async move {
        alike(&disk, 1).await;
        alike(&disk, 2).await;
        let files: Content = content(&disk).await;
        assert_eq!(files[0].1.len(), files[1].1.len());
        let end = files[0].1.len();
        let taken = (end - 48 - 2 * 33) / 4;
        let first = 48 + 33;
        for block in 0..4 {
            let range = first + block * taken..first + (block + 1) * taken;
            let mut swapped = files.clone();
            swapped[1].1[range.clone()].copy_from_slice(&files[0].1[range.clone()]);
            restore(&disk, &swapped).await;
            let found = read(&disk, 2).await;
            assert_eq!(found, Err(ImageError::Damaged { file: files[1].0, offset: range.start as u64 }));
            if block > 0 {
                let mut moved = files.clone();
                moved[1].1.copy_within(first..first + taken, range.start);
                restore(&disk, &moved).await;
                assert!(read(&disk, 2).await.is_err());
            }
        }
        // An image under the name of another one.
        let renamed = vec![(files[1].0, files[0].1.clone())];
        restore(&disk, &renamed).await;
        assert!(matches!(read(&disk, 2).await, Err(ImageError::Damaged { .. })));
    });
}

#[test]
fn an_image_of_something_else_is_refused() {
    alone(|disk| async move {
        write(&disk, 5).await.expect("a good disk");
        let mut others = [IDENTITY; 3];
        (others[0].database, others[1].shard, others[2].lineage) = (8, 4, 2);
        for other in others {
            let result = read_image(&disk, other, 5, |_| Ok(()), |_| Ok(())).await;
            assert!(matches!(result, Err(ImageError::Foreign(_))), "{result:?}");
        }
    });
}

/// On every shard, in every life: an image after the other, of which the last two are kept.
async fn live(env: ShardEnv<Nothing>, finished: Rc<RefCell<Vec<u64>>>, starts: Rc<Cell<u32>>) {
    let disk = env.disk().expect("a disk");
    starts.set(starts.get() + 1);
    let there = loop {
        match images(&disk).await {
            Ok(there) => break there,
            Err(_) => env.sleep(MS).await,
        }
    };
    for number in finished.borrow().iter().rev().take(2) {
        assert!(there.contains(number), "image {number} was finished; there are {there:?}");
    }
    for &number in &there {
        loop {
            match read(&disk, number).await {
                Ok(image) => break assert_eq!(image, right(number)),
                Err(ImageError::Disk(_)) => env.sleep(MS).await,
                Err(why) => panic!("an image with its name is whole: {why}"),
            }
        }
    }
    let mut number = there.last().map_or(0, |last| last + 1);
    loop {
        if write(&disk, number).await.is_ok() {
            finished.borrow_mut().push(number);
            let kept = finished.borrow().iter().rev().nth(1).copied().unwrap_or(0);
            for old in kept.saturating_sub(5)..kept {
                let _ = remove_image(&disk, old).await;
            }
        }
        number += 1;
        env.sleep(MS).await;
    }
}

#[test]
fn an_image_with_its_name_is_whole_whatever_happens() {
    let (finished, starts): (Rc<RefCell<u64>>, Rc<Cell<u32>>) = Default::default();
    for seed in 0..300 {
        let mut faults = Faults::drawn(seed);
        (faults.crashes_per_s, faults.down_ns, faults.power_failures) = (60.0, MS, 0.6);
        let mut world = world(1, 1 << 30, &faults, seed);
        let (done, starts) = (Rc::new(RefCell::new(Vec::new())), starts.clone());
        let here = done.clone();
        world.on_start(move |env| {
            env.spawn(live(env.clone(), here.clone(), starts.clone()));
        });
        world.run_until(200 * MS);
        assert!(world.lives(ShardId(0)) > 0);
        *finished.borrow_mut() += done.borrow().len() as u64;
    }
    assert!(*finished.borrow() > 1000 && starts.get() > 1500, "{finished:?} {starts:?}");
}

#[test]
fn what_is_left_of_an_unfinished_image_is_removed() {
    alone(|disk| async move {
        let left = FileName::new("image-00000000000000000004.new").expect("a name");
        disk.write(left, 0, vec![1; 100_000]).await.expect("a good disk");
        write(&disk, 4).await.expect("a good disk");
        assert_eq!(images(&disk).await, Ok(vec![4]));
        assert_eq!(disk.list().await.expect("a good disk").len(), 1);
        assert_eq!(read(&disk, 4).await, Ok(right(4)));
    });
}
