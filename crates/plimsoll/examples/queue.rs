//! A queue with priorities: every job is taken once, by one worker.
//!
//! The key is the priority, the highest first, then a number that grows. To push is to look for the
//! last job of a priority, from the end, and to write one behind it; to take is to delete the first
//! job of all. Two workers may look at the same job: one of them commits, and the closure of the
//! other runs again. So workers of one queue abort each other; many workers need several queues.
//!
//! `cargo run --example queue`

use std::thread;

use plimsoll::{Database, Error, IndexKind, Key, KeyRange, Options, Schema, TableId};

fn of_priority(priority: u8) -> Key {
    Key::build().desc().u8(priority).finish()
}

fn push(db: &Database, queue: TableId, priority: u8, job: &str) -> Result<(), Error> {
    db.transact(|txn| {
        let last = KeyRange::prefix(&of_priority(priority)).reverse().limit(1);
        let number = match txn.scan(queue, last)?.pop() {
            Some((key, _)) => {
                let mut parts = key.read();
                parts.desc().u8()?;
                parts.u64()? + 1
            }
            None => 0,
        };
        let key = Key::build().desc().u8(priority).u64(number).finish();
        txn.put(queue, &key, job.as_bytes())
    })
}

/// The next job, which no other worker gets.
fn take(db: &Database, queue: TableId) -> Result<Option<String>, Error> {
    db.transact(|txn| {
        let Some((key, job)) = txn.scan(queue, KeyRange::from(..).limit(1))?.pop() else { return Ok(None) };
        txn.delete(queue, &key)?;
        Ok(Some(String::from_utf8_lossy(&job).into_owned()))
    })
}

/// The lines that the example prints.
pub fn run() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut schema = Schema::new();
    let queue = schema.table("queue", IndexKind::Ordered)?;
    let db = Database::open(schema, Options { shards: 2, ..Options::default() })?;

    push(&db, queue, 1, "sweep")?;
    push(&db, queue, 1, "mop")?;
    push(&db, queue, 9, "put the fire out")?;
    let mut lines = Vec::new();
    while let Some(job) = take(&db, queue)? {
        lines.push(job);
    }

    (0..60).try_for_each(|job| push(&db, queue, job % 3, &format!("{job:02}")))?;
    let worker = || -> Result<Vec<String>, Error> {
        let mut done = Vec::new();
        while let Some(job) = take(&db, queue)? {
            done.push(job);
        }
        Ok(done)
    };
    let done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let mut done: Vec<String> = done.into_iter().collect::<Result<Vec<_>, Error>>()?.concat();
    done.sort();
    assert!(done.iter().eq(&(0..60).map(|job| format!("{job:02}")).collect::<Vec<_>>()), "each once");
    lines.push(format!("three workers did {} jobs, each once", done.len()));
    Ok(lines)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
