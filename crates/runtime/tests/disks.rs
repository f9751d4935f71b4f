//! The real disk, the simulated one and a map of byte strings answer alike, and errors are errors.

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;

use common::{MS, Nothing, Rng, Scratch, run_on, start, with_disks, world};
use plimsoll_runtime::real::{self, Directory, OpenError, Runtime};
use plimsoll_runtime::sim::{Fault, Faults, Hardware};
use plimsoll_runtime::{Disk, DiskError, DiskFault, Env, FileName, MAX_FILE, MAX_LENGTH, Tasks, Verb};
use plimsoll_types::ShardId;

const A: ShardId = ShardId(0);
const LOG: FileName = FileName::new("log").unwrap();

fn name(number: u64) -> FileName {
    FileName::new(["a", "log-1", "checkpoint.new"][number as usize]).expect("a name")
}

#[derive(Clone, Debug)]
enum Step {
    Read(FileName, u64, usize),
    Write(FileName, u64, Vec<u8>),
    Truncate(FileName, u64),
    Sync(FileName),
    Rename(FileName, FileName),
    Remove(FileName),
    SyncDirectory,
    List,
}

/// Groups of steps; those of a group are asked for at once. Sizes are about those of the files so
/// far, so that writes begin within, at and beyond the end.
fn steps(seed: u64) -> Vec<Vec<Step>> {
    let mut rng = Rng(seed);
    let mut step = || {
        let (file, near) = (name(rng.below(3)), rng.below(1500));
        let near = [0, near, 512, 1024][rng.below(4) as usize];
        match rng.below(16) {
            0..4 => Step::Read(file, near, rng.below(2000) as usize),
            4..10 => {
                let length = [0, 1, 511, 512, 513, 700][rng.below(6) as usize];
                Step::Write(file, near, (0..length).map(|_| rng.next() as u8).collect())
            }
            10 => Step::Truncate(file, near),
            11 => Step::Sync(file),
            12 => Step::Rename(file, name(rng.below(3))),
            13 => Step::Remove(file),
            14 => Step::SyncDirectory,
            _ => Step::List,
        }
    };
    let steps: Vec<Step> = (0..60).map(|_| step()).collect();
    let mut rest = &steps[..];
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let (group, more) = rest.split_at((1 + rng.below(4) as usize).min(rest.len()));
        groups.push(group.to_vec());
        rest = more;
    }
    groups
}

type Answer = Pin<Box<dyn Future<Output = String>>>;

fn told(future: impl Future<Output = Result<impl std::fmt::Debug, DiskError>> + 'static) -> Answer {
    Box::pin(async {
        match future.await {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("{:?}", error.fault),
        }
    })
}

fn ask(disk: &Disk, step: Step) -> Answer {
    match step {
        Step::Read(file, offset, length) => told(disk.read(file, offset, length)),
        Step::Write(file, offset, bytes) => told(disk.write(file, offset, bytes)),
        Step::Truncate(file, size) => told(disk.truncate(file, size)),
        Step::Sync(file) => told(disk.sync(file)),
        Step::Rename(from, to) => told(disk.rename(from, to)),
        Step::Remove(file) => told(disk.remove(file)),
        Step::SyncDirectory => told(disk.sync_directory()),
        Step::List => told(disk.list()),
    }
}

async fn play(disk: Disk, groups: Vec<Vec<Step>>) -> Vec<String> {
    let mut answers = Vec::new();
    for group in groups {
        let under_way: Vec<Answer> = group.into_iter().map(|step| ask(&disk, step)).collect();
        for answer in under_way {
            answers.push(answer.await);
        }
    }
    answers
}

#[derive(Default)]
struct Model(BTreeMap<FileName, Vec<u8>>);

impl Model {
    fn play(&mut self, groups: Vec<Vec<Step>>) -> Vec<String> {
        groups
            .into_iter()
            .flatten()
            .map(|step| self.step(step).unwrap_or_else(|f| format!("{f:?}")))
            .collect()
    }

    fn step(&mut self, step: Step) -> Result<String, DiskFault> {
        let files = &mut self.0;
        match step {
            Step::Read(file, offset, length) => {
                let bytes = files.get(&file).ok_or(DiskFault::NotFound)?;
                let left = &bytes[bytes.len().min(offset as usize)..];
                return Ok(format!("{:?}", &left[..left.len().min(length)]));
            }
            Step::Write(file, offset, new) => {
                if offset == 0 {
                    files.entry(file).or_default();
                }
                let bytes = files.get_mut(&file).ok_or(DiskFault::NotFound)?;
                let (begin, end) = (offset as usize, offset as usize + new.len());
                if begin > bytes.len() {
                    return Err(DiskFault::Hole);
                }
                bytes.resize(bytes.len().max(end), 0);
                bytes[begin..end].copy_from_slice(&new);
            }
            Step::Truncate(file, size) => {
                files.get_mut(&file).ok_or(DiskFault::NotFound)?.truncate(size as usize)
            }
            Step::Sync(file) => drop(files.get(&file).ok_or(DiskFault::NotFound)?),
            Step::Rename(from, to) => {
                let bytes = files.remove(&from).ok_or(DiskFault::NotFound)?;
                files.insert(to, bytes);
            }
            Step::Remove(file) => drop(files.remove(&file).ok_or(DiskFault::NotFound)?),
            Step::SyncDirectory => {}
            Step::List => {
                let sizes: Vec<_> = files.iter().map(|(&name, bytes)| (name, bytes.len() as u64)).collect();
                return Ok(format!("{sizes:?}"));
            }
        }
        Ok("()".to_owned())
    }
}

#[test]
fn the_real_disk_the_simulated_one_and_a_map_answer_alike() {
    let mut faults_seen = BTreeMap::new();
    for seed in 0..60 {
        let scratch = Scratch::new();
        let mut simulated = world(1, &with_disks(1 << 20), &Faults::none(), seed);
        let mut model = Model::default();
        // Twice, with a new life in between that finds everything: neither power failed.
        for life in 0..2 {
            let groups = steps(2 * seed + life);
            let expected = model.play(groups.clone());
            let copy = groups.clone();
            let in_world =
                run_on(&mut simulated, A, move |env| play(env.disk().expect("there are disks"), copy));
            let runtime = start(1, scratch.path());
            let copy = groups.clone();
            let on_disk = runtime.run_on(A, move |env| play(env.disk().expect("there is a disk"), copy));
            for ((step, expected), (in_world, on_disk)) in
                groups.iter().flatten().zip(&expected).zip(in_world.iter().zip(&on_disk))
            {
                assert_eq!(expected, in_world, "seed {seed}, simulated: {step:?}");
                assert_eq!(expected, on_disk, "seed {seed}, real: {step:?}");
                *faults_seen.entry(expected.clone()).or_insert(0) += 1;
            }
            let crash = simulated.inflict(Fault::Crash(0));
            simulated.end(crash);
        }
    }
    for fault in ["NotFound", "Hole"] {
        assert!(faults_seen[fault] > 10, "{fault}");
    }
}

#[test]
fn what_has_no_disk_says_so() {
    let mut without = world(1, &Hardware::default(), &Faults::all(), 1);
    assert!(run_on(&mut without, A, |env| async move { env.disk().is_none() }));
    without.run_until(1000 * MS);
    let strange =
        |fault: &Fault| matches!(fault, Fault::SlowDisk(..) | Fault::StallDisk(..) | Fault::FullDisk(..));
    assert!(!without.occurrences().iter().any(|occurrence| strange(&occurrence.fault)));
    let makers = vec![Box::new(Nothing::default) as real::Maker<Nothing>];
    let runtime = Runtime::start(makers, 1, None).unwrap();
    assert!(runtime.run_on(A, |env| async move { env.disk().is_none() }));
}

#[test]
fn what_is_too_long_is_refused_before_it_leaves() {
    let mut world = world(1, &with_disks(1 << 20), &Faults::none(), 1);
    let refused = run_on(&mut world, A, |env| async move {
        let disk = env.disk().unwrap();
        [
            disk.read(LOG, 0, MAX_LENGTH + 1).await.err(),
            disk.write(LOG, MAX_FILE, vec![1]).await.err(),
            disk.write(LOG, u64::MAX, vec![1]).await.err(),
            disk.write(LOG, 0, vec![0; MAX_LENGTH + 1]).await.err(),
        ]
    });
    for error in refused {
        assert_eq!(error.expect("an error").fault, DiskFault::TooLong);
    }
}

#[test]
fn a_directory_that_cannot_be_used_is_named_with_the_reason() {
    let scratch = Scratch::new();
    let said = |path: &Path| Directory::open(path).expect_err("a directory that cannot be used").to_string();
    let deep = said(&scratch.path().join("there/is/no/such"));
    assert!(deep.starts_with("cannot make the data directory ") && deep.contains("No such file"), "{deep}");
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(said(&file).contains("as a data directory: Not a directory"), "{}", said(&file));
    let here = scratch.path().join("here");
    let first = Directory::open(&here).unwrap();
    assert!(matches!(Directory::open(&here), Err(OpenError::InUse(path)) if path == here));
    drop(first);
    Directory::open(&here).expect("nobody uses it any more");
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    // Even for those who may do everything.
    let error = Directory::open(Path::new("/proc")).expect_err("nobody makes files there");
    assert!(error.to_string().starts_with("cannot use /proc as a data directory: "), "{error}");
}

#[test]
fn errors_of_the_operating_system_come_back_with_their_number() {
    let scratch = Scratch::new();
    let runtime = start(1, scratch.path());
    fs::create_dir(scratch.path().join("shard-0/log")).unwrap();
    fs::write(scratch.path().join("shard-0/Not Ours"), "x").unwrap();
    let (error, files) = runtime.run_on(A, |env| async move {
        let disk = env.disk().unwrap();
        (disk.write(LOG, 0, vec![1]).await.unwrap_err(), disk.list().await)
    });
    assert_eq!((error.verb, error.file), (Verb::Write, Some(LOG)));
    assert_eq!(error.to_string(), "cannot write the file log: Is a directory (os error 21)");
    assert_eq!(files, Ok(Vec::new()), "what cannot be a file of the shard is not listed");
}

#[test]
fn a_runtime_that_stops_carries_out_what_was_asked() {
    let scratch = Scratch::new();
    let runtime = start(2, scratch.path());
    for shard in 0..2 {
        runtime.run_on(ShardId(shard), |env| async move {
            let disk = env.disk().unwrap();
            for n in 0..200 {
                drop(disk.write(LOG, 1000 * n, vec![n as u8; 1000]));
            }
            drop(disk.sync(LOG));
        });
    }
    drop(runtime);
    for shard in 0..2 {
        let bytes = fs::read(scratch.path().join(format!("shard-{shard}/log"))).unwrap();
        assert_eq!(bytes.len(), 200_000);
        assert!(bytes.chunks(1000).enumerate().all(|(n, chunk)| chunk == [n as u8; 1000]));
    }
}

#[test]
fn more_files_than_stay_open_can_be_written() {
    let scratch = Scratch::new();
    let runtime = start(1, scratch.path());
    let sizes = runtime.run_on(A, |env| async move {
        let disk = env.disk().unwrap();
        let name = |n: u64| FileName::new(&format!("log-{n:03}")).unwrap();
        for round in 0..2 {
            for n in 0..100 {
                disk.write(name(n), round, vec![1]).await.unwrap();
                if n % 3 == 0 {
                    disk.sync(name(n)).await.unwrap();
                }
            }
        }
        disk.list().await.unwrap()
    });
    assert_eq!(sizes.len(), 100);
    assert!(sizes.iter().all(|&(_, size)| size == 2));
}

#[test]
fn a_sleeping_shard_wakes_when_its_disk_answers() {
    let scratch = Scratch::new();
    let runtime = start(2, scratch.path());
    for n in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        runtime.run_on(A, move |env| async move {
            let disk = env.disk().unwrap();
            disk.write(LOG, n, vec![1]).await.unwrap();
            disk.sync(LOG).await.unwrap();
        });
    }
}

#[test]
fn a_small_disk_is_full_and_has_room_again() {
    let mut world = world(1, &with_disks(10_000), &Faults::none(), 1);
    run_on(&mut world, A, |env| async move {
        let disk = env.disk().unwrap();
        let other = FileName::new("other").unwrap();
        disk.write(LOG, 0, vec![1; 6000]).await.unwrap();
        let error = disk.write(other, 0, vec![2; 6000]).await.unwrap_err();
        assert_eq!(error, DiskError { verb: Verb::Write, file: Some(other), fault: DiskFault::Full });
        disk.write(LOG, 0, vec![3; 6000]).await.expect("nothing grows");
        disk.sync(LOG).await.unwrap();
        disk.remove(LOG).await.unwrap();
        disk.write(other, 0, vec![2; 6000]).await.expect("there is room again");
    });
}

#[test]
fn a_full_disk_is_full_while_it_lasts() {
    let mut world = world(1, &with_disks(1 << 20), &Faults::none(), 1);
    let write = |offset: u64| {
        move |env: plimsoll_runtime::ShardEnv<Nothing>| async move {
            env.disk().unwrap().write(LOG, offset, vec![1; 100]).await.map_err(|error| error.fault)
        }
    };
    assert_eq!(run_on(&mut world, A, write(0)), Ok(()));
    let full = world.inflict(Fault::FullDisk(0));
    assert_eq!(run_on(&mut world, A, write(50)), Err(DiskFault::Full));
    assert_eq!(run_on(&mut world, A, write(0)), Ok(()), "nothing grows");
    world.end(full);
    assert_eq!(run_on(&mut world, A, write(100)), Ok(()));
}

#[test]
fn a_slow_disk_is_slow_and_a_stalled_one_stands_still() {
    let mut world = world(1, &with_disks(1 << 20), &Faults::none(), 1);
    let write = |env: plimsoll_runtime::ShardEnv<Nothing>| async move {
        env.disk().unwrap().write(LOG, 0, vec![1; 100]).await.unwrap();
    };
    let mut takes_ns = |slow: bool| {
        let fault = slow.then(|| world.inflict(Fault::SlowDisk(0, 1000)));
        let begin_ns = world.now();
        run_on(&mut world, A, write);
        fault.into_iter().for_each(|fault| world.end(fault));
        world.now() - begin_ns
    };
    assert!(takes_ns(false) < MS);
    assert!(takes_ns(true) > 5 * MS);
    assert!(takes_ns(false) < MS);

    let slow = world.inflict(Fault::SlowDisk(0, 1_000_000));
    world.spawn_on(A, write);
    world.run_until(world.now() + MS);
    world.end(slow);
    world.run_until(world.now() + MS);
    assert_eq!(world.pending(A).map(|pending| pending.tasks), Some(0), "it is slow only while it lasts");

    let written = Rc::new(Cell::new(false));
    let flag = written.clone();
    let stall = world.inflict(Fault::StallDisk(0));
    world.spawn_on(A, move |env| async move {
        write(env).await;
        flag.set(true);
    });
    world.run_until(world.now() + 1000 * MS);
    assert!(!written.get());
    world.end(stall);
    world.run_until(world.now() + MS);
    assert!(written.get());
}

#[test]
fn dropped_futures_lose_answers_and_nothing_else() {
    let mut world = world(1, &with_disks(1 << 20), &Faults::none(), 1);
    run_on(&mut world, A, |env| async move {
        let disk = env.disk().unwrap();
        drop(disk.write(LOG, 0, b"abc".to_vec()));
        let kept = disk.write(LOG, 3, b"def".to_vec());
        drop(disk.sync(LOG));
        // Its number is used again.
        env.sleep(MS).await;
        drop(disk.read(LOG, 0, 1));
        kept.await.unwrap();
        let answered = disk.read(LOG, 0, 2);
        env.sleep(MS).await;
        drop(answered);
        assert_eq!(disk.read(LOG, 0, 100).await.unwrap(), b"abcdef");
    });
}

#[test]
fn a_new_life_hears_nothing_of_the_operations_of_the_old_one() {
    let faults = Faults { power_failures: 1.0, torn_writes: 0.5, ..Faults::none() };
    let (mut carried_out, mut lost) = (0, 0);
    for seed in 0..100 {
        let mut world = world(1, &with_disks(1 << 20), &faults, seed);
        let answered = Rc::new(Cell::new(false));
        let flag = answered.clone();
        world.spawn_on(A, move |env| async move {
            let disk = env.disk().unwrap();
            disk.write(LOG, 0, vec![7; 100]).await.unwrap();
            disk.sync(LOG).await.unwrap();
            disk.sync_directory().await.unwrap();
            for n in 1..50 {
                drop(disk.write(LOG, 100 * n, vec![7; 100]));
            }
            flag.set(true);
        });
        world.run_while(|_| !answered.get());
        world.run_until(world.now() + 100_000);
        let crash = world.inflict(Fault::Crash(0));
        world.end(crash);
        let bytes = run_on(&mut world, A, |env| async move {
            let disk = env.disk().unwrap();
            assert_eq!(disk.list().await.unwrap().len(), 1);
            disk.read(LOG, 0, 10_000).await.unwrap()
        });
        assert!(bytes.len() >= 100 && bytes[..100] == [7; 100], "what was synced is there");
        carried_out += u32::from(bytes.len() > 100);
        lost += u32::from(bytes.len() < 5000);
    }
    assert!(carried_out > 0 && lost > 0, "{carried_out} and {lost} of 100");
}

#[test]
fn every_operation_can_fail_and_none_panics() {
    let faults = Faults {
        read_errors: 0.5,
        write_errors: 0.5,
        sync_errors: 0.5,
        corrupt_reads: 0.5,
        ..Faults::none()
    };
    for seed in 0..100 {
        let mut world = world(1, &with_disks(2000), &faults, seed);
        let answers = run_on(&mut world, A, move |env| play(env.disk().unwrap(), steps(seed)));
        let failed = answers.iter().filter(|answer| *answer == "Failed(5)").count();
        assert!((15..=45).contains(&failed), "{failed} of {}", answers.len());
    }
}
