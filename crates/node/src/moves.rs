//! `plimsoll move`: has a running cluster move slots.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use plimsoll::{Cluster, Database, Error, OpenError, Options, ShardId, Slot};
use plimsoll_args::publish;
use plimsoll_page::progress::Progress;
use plimsoll_page::units;
use serde::Serialize;

use crate::cli::{MovePlan, in_flags};

/// Slots that move at a time, so that little is under way and others get their turn.
const AT_A_TIME: usize = 64;
/// How often it looks whether it is to end while it connects, and after how long it says that it
/// does.
const LOOK: Duration = Duration::from_millis(50);
const COMPLAIN_AFTER: Duration = Duration::from_secs(2);
/// Time between two lines of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Document {
    cluster: String,
    first: u16,
    end: u16,
    to: u16,
    /// How many of them are there now.
    moved: u64,
    seconds: f64,
    error: Option<String>,
}

/// Moves them. Returns whether all are there.
pub fn move_slots(plan: &MovePlan, interrupted: &AtomicBool) -> Result<bool, Box<dyn std::error::Error>> {
    let progress = Progress::stderr(false);
    let db = connect(&plan.cluster, progress, interrupted).map_err(in_flags)?;
    let slots: Vec<Slot> = plan.slots.clone().map(Slot).collect();
    let begun = Instant::now();
    let mut told = Duration::ZERO;
    let (mut moved, mut error) = (0, None);
    for some in slots.chunks(AT_A_TIME) {
        let Some(db) = db.as_ref().filter(|_| !interrupted.load(SeqCst)) else {
            error = Some("interrupted".to_owned());
            break;
        };
        match db.move_slots(some, ShardId(plan.to)) {
            Ok(()) => moved += some.len() as u64,
            Err(in_use @ Error::SlotsInUse { .. }) => {
                error = Some(in_use.to_string());
                break;
            }
            Err(error) => return Err(error.into()),
        }
        if begun.elapsed() >= told + PROGRESS_EVERY {
            told = begun.elapsed();
            let all = units::thousands(slots.len() as u64);
            progress.note(&format!("{} of {all} slots", units::thousands(moved)));
        }
    }
    let document = Document {
        cluster: plan.cluster.name.clone(),
        first: plan.slots.start,
        end: plan.slots.end,
        to: plan.to,
        moved,
        seconds: begun.elapsed().as_secs_f64(),
        error,
    };
    publish(&plan.json, &document, || show(&document, slots.len() as u64))?;
    Ok(document.error.is_none())
}

/// Connects as a client, or gives up when it is interrupted.
fn connect(
    cluster: &Cluster,
    progress: Progress,
    interrupted: &AtomicBool,
) -> Result<Option<Database>, OpenError> {
    let options = Options::default();
    let (patience, begun, mut complained) = (options.patience, Instant::now(), false);
    let (done, connected) = mpsc::channel();
    let of = cluster.clone();
    // Connecting cannot be interrupted, but nobody has to wait for it.
    let connecting = std::thread::Builder::new().name("connect".to_owned());
    connecting.spawn(move || done.send(Database::connect(&of, options))).map_err(OpenError::Threads)?;
    while !interrupted.load(SeqCst) {
        match connected.recv_timeout(LOOK) {
            Ok(connected) => return connected.map(Some),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("whoever connects says what came of it"),
        }
        if !complained && begun.elapsed() > COMPLAIN_AFTER {
            complained = true;
            progress.note(&format!(
                "not connected to all nodes of cluster {:?} yet, which takes {patience:?} at most: see `plimsoll status`",
                cluster.name
            ));
        }
    }
    Ok(None)
}

fn show(document: &Document, slots: u64) -> String {
    let Document { moved, to, seconds, error, .. } = document;
    let (moved, all) = (units::thousands(*moved), units::thousands(slots));
    let seconds = units::seconds(*seconds);
    match error {
        None => format!("{all} slots are on shard {to} after {seconds}\n"),
        Some(error) => format!("{moved} of {all} slots are on shard {to} after {seconds}: {error}\n"),
    }
}
