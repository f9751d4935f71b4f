//! The task that keeps a shard's log: it reads the log when the shard starts, and then writes what
//! the shard's passes append (`shard/durable.rs`).
//!
//! One write and sync is under way at a time; entries that are appended meanwhile are the next
//! write. So the more transactions there are, the more of them share a sync.

use std::time::Duration;

use plimsoll_replication::Log;
use plimsoll_runtime::Env;

use crate::protocol::Protocol;

/// How long the task waits before it writes again what could not be written, in nanoseconds.
const RETRY_NS: u64 = 100_000_000;
/// How far a clock is behind a shard's ceiling after a restart at most, in nanoseconds, unless it was
/// set back.
const BEHIND_NS: u64 = 2_000_000_000;

/// Starts the task, if the shard logs.
pub(crate) fn begins<P: Protocol, E: Env<P>>(env: &E) {
    let opened = env.local(|node| node.base().journal.as_ref().map(|journal| journal.log()));
    let Some((identity, settings)) = opened else { return };
    let disk = env.disk().expect("a shard that logs has a disk");
    let env = env.clone();
    env.clone().spawn(async move {
        let replay = |_, entry: &[u8]| env.local(|node| node.base().replay(entry));
        let mut log = match Log::open(disk, identity, settings, 0, replay).await {
            Ok((log, _)) => log,
            Err(why) => return env.local(|node| node.base().log_failed(why.to_string())),
        };
        let recovered = env.local(|node| {
            let (locked, least) = node.base().recover()?;
            locked.into_iter().for_each(|(txn, locks)| node.relock(txn, locks));
            Ok(least)
        });
        let least = match recovered {
            Ok(least) => least,
            Err(why) => return env.local(|node| node.base().log_failed(why)),
        };
        // No snapshot of this life may begin below what was read or answered before.
        while env.clock() < least {
            let behind_ns = least.0 - env.clock().0;
            if behind_ns > BEHIND_NS {
                let behind = Duration::from_nanos(behind_ns);
                let why = format!("the clock is {behind:.1?} behind what the log has promised: set it right");
                env.local(|node| node.base().log_failed(why));
            }
            env.sleep(behind_ns.min(BEHIND_NS)).await;
        }
        env.local(|node| node.base().open());
        loop {
            env.appended().await;
            let (entries, head) = env.local(|node| node.base().take_entries());
            while let Err(why) = log.append(&entries).await {
                env.local(|node| node.base().log_failed(why.to_string()));
                env.sleep(RETRY_NS).await;
            }
            env.local(|node| node.base().now_stable(head));
        }
    });
}
