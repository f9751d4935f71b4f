//! The task that keeps a shard's log: it reads the log when the shard starts, and then writes what
//! the shard's passes append (`shard/durable.rs`).
//!
//! One write and sync is under way at a time; entries that are appended meanwhile are the next
//! write. So the more transactions there are, the more of them share a sync. If nothing waits for
//! the disk (`shard/cut.rs`), entries are written when there are many or the oldest is 5 ms old.

use std::time::Duration;

use plimsoll_replication::{Identity, ImageError, Log, LogError, Settings, images};
use plimsoll_runtime::{Disk, DiskFault, Env};

use crate::cut::Next;
use crate::imaging;
use crate::protocol::{self, Protocol};
use crate::rounds;

/// How long the task waits before it reads again what could not be read, or writes again what could
/// not be written, in nanoseconds.
const RETRY_NS: u64 = 100_000_000;
/// How often the task looks whether it may still wait for more to write, in nanoseconds.
const GATHERING_NS: u64 = 1_000_000;
/// How long a shard that comes back waits before it asks the others again, in nanoseconds.
const AGAIN_NS: u64 = 2_000_000;
/// How far a clock is behind a shard's ceiling after a restart at most, in nanoseconds, unless it
/// was set back.
const BEHIND_NS: u64 = 2_000_000_000;

/// Starts the task, if the shard logs.
pub(crate) fn begins<P: Protocol, E: Env<P>>(env: &E) {
    let opened = env.local(|node| node.base().journal.as_ref().map(|journal| journal.log()));
    let Some((identity, settings)) = opened else { return };
    let disk = env.disk().expect("a shard that logs has a disk");
    let env = env.clone();
    env.clone().spawn(async move {
        let Some(mut log) = open(&env, &disk, identity, settings).await else { return };
        loop {
            // Without a reserve nothing is written but what was admitted before.
            let reserve = log.reserve().await;
            env.local(|node| node.base().note_reserve(reserve.as_ref().err().map(LogError::to_string)));
            match reserve {
                Ok(()) => {
                    env.appended().await;
                    while env.local(|node| node.base().may_gather()) {
                        env.sleep(GATHERING_NS).await;
                    }
                }
                Err(_) => env.sleep(RETRY_NS).await,
            }
            if !write(&env, &mut log).await {
                continue;
            }
            if let Some(below) = env.local(|node| node.base().needless()) {
                // What cannot be recycled now is when the next image is there.
                let _ = log.recycle(below).await;
            }
            imaging::begins(&env, &disk, identity, settings.image_bytes);
            rounds::begins(&env);
        }
    });
}

/// Writes what passes have appended, if anything. Returns whether there was something.
async fn write<P: Protocol, E: Env<P>>(env: &E, log: &mut Log) -> bool {
    let (entries, head) = env.local(|node| node.base().take_entries());
    if entries.is_empty() {
        return false;
    }
    let begun = env.clock();
    while let Err(why) = log.append(&entries).await {
        env.local(|node| {
            node.base().log_failed(why.to_string());
            if let LogError::Disk(error) | LogError::Doubtful(error) = &why
                && error.fault == DiskFault::Full
            {
                node.base().note_reserve(Some(why.to_string()));
            }
        });
        env.sleep(RETRY_NS).await;
    }
    let now = env.clock();
    let took_ns = now.0.saturating_sub(begun.0);
    env.local(|node| node.base().now_stable(head, took_ns, now, log.writes()));
    true
}

/// Why a shard cannot come back.
struct Failure {
    why: String,
    /// Whether only the disk has failed, which may be over soon.
    is_of_disk: bool,
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Failure {
        Failure { why: error.to_string(), is_of_disk: matches!(error, LogError::Disk(_)) }
    }
}

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Failure {
        Failure { why: error.to_string(), is_of_disk: matches!(error, ImageError::Disk(_)) }
    }
}

/// Reads what the shard has on disk. Returns its log once the shard serves; `None` if it never
/// will.
async fn open<P: Protocol, E: Env<P>>(
    env: &E,
    disk: &Disk,
    identity: Identity,
    settings: Settings,
) -> Option<Log> {
    let mut log = loop {
        match read(env, disk, identity, settings).await {
            Ok(log) => break log,
            Err(Failure { why, is_of_disk: true }) => env.local(|node| node.base().log_failed(why)),
            Err(Failure { why, is_of_disk: false }) => {
                env.local(|node| node.base().log_lost(why));
                return None;
            }
        }
        env.sleep(RETRY_NS).await;
        env.local(P::forget_read);
    };
    let recovered = env.local(|node| {
        let (locked, least) = node.base().recover(log.next())?;
        locked.into_iter().for_each(|(txn, locks)| node.relock(txn, locks));
        node.recovered();
        Ok(least)
    });
    let least = match recovered {
        Ok(least) => least,
        Err(why) => {
            env.local(|node| node.base().log_lost(why));
            return None;
        }
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
    env.local(|node| node.base().has_read());
    loop {
        // Nobody hears of an era before it is on disk, and what was loaded meanwhile holds back
        // all.
        if env.local(|node| node.base().has_appended()) {
            env.appended().await;
            write(env, &mut log).await;
        }
        match rounds::comes_back(env).await {
            Ok(Next::Serves) => return Some(log),
            Ok(Next::Waits) => env.sleep(AGAIN_NS).await,
            Ok(Next::Begins(_)) => {}
            Err(why) => {
                env.local(|node| node.base().log_lost(format!("the log is damaged: {}", why.0)));
                return None;
            }
        }
    }
}

/// Reads the newest image that can be read, and the log behind it; without any image, the log from
/// its beginning.
async fn read<P: Protocol, E: Env<P>>(
    env: &E,
    disk: &Disk,
    identity: Identity,
    settings: Settings,
) -> Result<Log, Failure> {
    let mut kept = images(disk).await.map_err(ImageError::Disk)?;
    let (mut unread, mut bytes): (Option<Failure>, u64) = (None, 0);
    while let Some(&number) = kept.last() {
        match imaging::read(env, disk, identity, number).await {
            Ok(of_image) => {
                bytes = of_image;
                break;
            }
            Err(why @ (ImageError::Disk(_) | ImageError::Damaged { .. })) => {
                unread.get_or_insert(why.into());
                kept.pop();
                env.local(P::forget_read);
            }
            Err(why) => return Err(why.into()),
        }
    }
    let start = kept.last().copied().unwrap_or(0);
    env.local(|node| node.base().replays_from(start, bytes, &kept));
    let replay = |index, entry: &[u8]| {
        env.local(|node| protocol::replay(node, |base| base.replay_entry(index, entry)))
    };
    match Log::open(disk.clone(), identity, settings, start, replay).await {
        Ok((log, _)) => Ok(log),
        Err(why) => Err(match (unread, Failure::from(why)) {
            (None, failure) => failure,
            (Some(image), log) => Failure {
                why: format!("{}; and without it: {}", image.why, log.why),
                is_of_disk: image.is_of_disk || log.is_of_disk,
            },
        }),
    }
}
