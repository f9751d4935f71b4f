//! Processes that are killed, stopped and left without room, again and again, and what may not
//! come of it.
//!
//! A *world* is a cluster of one node or three that keep what they commit, with clients that are
//! processes, too. A seed chooses the protocol, what the clients do, and what happens: `kill -9` of
//! nodes, of all of them, of one that has just begun to read its log, and of clients; SIGSTOP of
//! either; slots that move; disks that are full for a while. Nobody repairs anything by hand.
//! Afterwards all that was acknowledged is there, what the clients saw is serializable, the
//! workload's invariants hold, no transaction is in doubt, and every directory is found good.
//!
//! ```text
//! cargo test -p plimsoll-cli --test chaos                 # a few worlds
//! PLIMSOLL_CHAOS_KILLS=300 cargo test --release -p plimsoll-cli --test chaos -- --nocapture
//! PLIMSOLL_CHAOS_SEED=17 cargo test -p plimsoll-cli --test chaos -- --nocapture   # one world again
//! ```
//!
//! What was not as it should be leaves its directories behind, and says where.

mod clients;
#[path = "../lists/mod.rs"]
mod lists;
#[expect(dead_code, reason = "the tests of clusters need more of it")]
#[path = "../cluster/scene.rs"]
mod scene;
mod story;
#[path = "../waiting/mod.rs"]
mod waiting;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;

use story::World;

/// Worlds are run until this number of processes has been killed.
const KILLS: &str = "PLIMSOLL_CHAOS_KILLS";
/// The seed of the first world; without [`KILLS`] it is the only one.
const SEED: &str = "PLIMSOLL_CHAOS_SEED";
/// The number of processes to be killed if neither is set.
const SHORT: u64 = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn what_was_acknowledged_outlives_processes_that_are_killed_at_any_moment() {
    // Small disks of their own need a namespace in which they can be mounted.
    let new = ["--user", "--map-root-user", "--mount", "--"];
    let possible = Command::new("unshare").args(new).args(["mount", "-t", "tmpfs", "disk", "/mnt"]).output();
    if !possible.as_ref().is_ok_and(|output| output.status.success()) {
        println!("NOT RUN: full disks need `unshare` and `mount` in a namespace of their own: {possible:?}");
        return worlds(false);
    }
    let inside = std::env::current_exe().expect("this test has a file");
    let status = Command::new("unshare")
        .args(new)
        .arg(inside)
        .args(["--exact", "with_small_disks", "--ignored", "--nocapture"])
        .status()
        .expect("it was there just now");
    assert!(status.success(), "see above");
}

#[test]
#[ignore = "a child process of the test above, which gives it a namespace of its own"]
fn with_small_disks() {
    worlds(true);
}

#[test]
#[ignore = "a client of a world, which starts it"]
fn client() {
    clients::append();
}

fn worlds(small_disks: bool) {
    let (first, wanted) = (number(SEED).unwrap_or(0), number(KILLS));
    let wanted = wanted.unwrap_or(if number(SEED).is_some() { 1 } else { SHORT });
    let (mut killed, mut seed) = (0, first);
    while killed < wanted {
        let mut world = World::new(seed, small_disks);
        println!("world {seed}: {}", world.described());
        let story = catch_unwind(AssertUnwindSafe(|| {
            world.happens();
            world.audit();
        }));
        killed += world.killed;
        if let Err(panic) = story {
            let kept = world.keep();
            println!("world {seed} failed; its directories are in {}", kept.display());
            println!("once more: {SEED}={seed} cargo test -p plimsoll-cli --test chaos -- --nocapture");
            resume_unwind(panic);
        }
        println!("world {seed} is as it should be; {killed} processes of {wanted} were killed");
        seed += 1;
    }
}
