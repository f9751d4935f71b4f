//! A log on the disk of this machine.

use plimsoll_runtime::Env;
use plimsoll_types::ShardId;

use super::common::{Scratch, start};
use super::{IDENTITY, SMALL, entries, entry, open};
use crate::{ImageWriter, images, read_image, verify};

#[test]
fn a_log_and_an_image_outlive_a_runtime() {
    let scratch = Scratch::new();
    let (mut promised, mut from) = (Vec::new(), 0);
    for life in 0..4u64 {
        let known = promised.clone();
        (promised, from) = start(1, scratch.path()).run_on(ShardId(0), move |env| async move {
            let disk = env.disk().expect("a disk");
            let (mut log, _, found) = open(&disk, SMALL, from).await.expect("a good log");
            assert!(found.starts_with(&known[from as usize..]), "life {life}");
            let mut all = known[..from as usize].to_vec();
            all.extend(found);
            for number in 0..5 {
                let group = [entry(100 * life + number, 600), entry(1000 + number, 5)];
                log.append(&entries(&group)).await.expect("a good disk");
                all.extend(group);
            }
            let below = log.next() - 5;
            let mut image =
                ImageWriter::begin(disk.clone(), IDENTITY, life, b"header").await.expect("a good disk");
            for entry in &all[..below as usize] {
                image.block(entry).await.expect("a good disk");
            }
            image.finish().await.expect("a good disk");
            let mut blocks = 0;
            let count = |_: &[u8]| {
                blocks += 1;
                Ok(())
            };
            read_image(&disk, IDENTITY, life, |_| Ok(()), count).await.expect("a good image");
            assert_eq!(blocks, below);
            assert_eq!(images(&disk).await.expect("a good disk").last(), Some(&life));
            log.recycle(below).await.expect("a good disk");
            log.prepare_spare().await.expect("a good disk");
            let report = verify(&disk, Some(IDENTITY)).await.expect("a good disk");
            assert!(report.is_good(), "{report}");
            // The runtime stops somewhere in the middle of this.
            let promised = (all, below);
            env.spawn(async move {
                let _ = log.append(&entries(&[entry(1, 3000), entry(2, 3000)])).await;
            });
            promised
        });
    }
    assert_eq!((promised.len() >= 4 * 10, from), (true, promised.len() as u64 - 5));
}
