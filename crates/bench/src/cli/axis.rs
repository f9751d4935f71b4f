//! The loads of `--load`, at each of which a benchmark is run.
//!
//! `1,2,4,8` are transactions in flight per shard: a closed loop, in which a slow database is asked
//! for less. `10%,50%,90%` are rates, as shares of the rate that the closed loop reaches at its
//! peak: an open loop, as with `--rate`. `10%..110%` are the shares from the first to the last in
//! steps of ten points.
//!
//! Beyond the peak an open loop has no latency of its own: transactions are due faster than they
//! end, so the queue grows for as long as the run lasts, and latency says how long that was. One
//! step beyond the peak shows where it is; a larger share shows nothing else.

use std::fmt;

use plimsoll_args::{Refusal, number, refuse, within};

/// Loads of an axis at most: more are no smoother curve, and each takes as long as a run.
const LOADS_MAX: usize = 32;
/// Largest share of the peak, in percent.
const SHARE_MAX: u64 = 110;
/// From one share of a range to the next, in percentage points.
const STEP: usize = 10;

/// How much is asked of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// That many transactions in flight per shard.
    InFlight(u64),
    /// That many transactions per second, in percent of the peak of the pair that is run.
    Share(u64),
}

/// As on the command line: `8`, `50%`.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::InFlight(number) => write!(f, "{number}"),
            Load::Share(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Reads the value of `--load`. The loads are ascending and of one kind, at least one; at most
/// `concurrency_max` transactions are in flight.
pub fn loads(text: &str, concurrency_max: u64) -> Result<Vec<Load>, Refusal> {
    let read = |entry: &str| load(text, entry.trim(), concurrency_max);
    let loads: Vec<Load> = match text.split_once("..") {
        Some((first, last)) => range(text, read(first)?, read(last)?)?,
        None => text.split(',').map(read).collect::<Result<_, _>>()?,
    };
    if loads.len() > LOADS_MAX {
        refuse!("--load names {} loads: give {LOADS_MAX} or fewer", loads.len());
    }
    for neighbours in loads.windows(2) {
        match neighbours {
            [Load::InFlight(a), Load::InFlight(b)] | [Load::Share(a), Load::Share(b)] if a < b => {}
            [a, b] if a == b => refuse!("--load names {a} twice: leave one out"),
            [Load::InFlight(_), Load::InFlight(_)] | [Load::Share(_), Load::Share(_)] => {
                refuse!("--load {text} descends: give smaller loads first")
            }
            _ => refuse!(
                "--load {text} mixes transactions in flight with shares of the peak: give numbers, such as 1,2,4,8, or \
                 percentages, such as 10%,50%,90%"
            ),
        }
    }
    Ok(loads)
}

/// One load of the axis `text`.
fn load(text: &str, entry: &str, concurrency_max: u64) -> Result<Load, Refusal> {
    let read = match entry.strip_suffix('%') {
        Some(percent) => number(percent).map(Load::Share),
        None => number(entry).map(Load::InFlight),
    };
    match read {
        Ok(Load::Share(percent)) if percent > SHARE_MAX => refuse!(
            "--load {entry} is too large, since beyond the peak latency grows for as long as the run lasts: give \
             {SHARE_MAX}% or less"
        ),
        Ok(Load::Share(0)) => refuse!("--load 0% asks for nothing: give 1% or more"),
        Ok(Load::Share(percent)) => Ok(Load::Share(percent)),
        Ok(Load::InFlight(number)) => within(number, "load", 1, concurrency_max).map(Load::InFlight),
        Err(_) => refuse!(
            "--load {text} has `{entry}` for a load: give whole numbers of transactions in flight, such as 1,2,4,8, or of \
             percent, such as 10%..110%"
        ),
    }
}

/// Shares from the first to the last, both included.
fn range(text: &str, first: Load, last: Load) -> Result<Vec<Load>, Refusal> {
    match (first, last) {
        (Load::Share(first), Load::Share(last)) if first < last => {
            Ok((first..last).step_by(STEP).chain([last]).map(Load::Share).collect())
        }
        (Load::Share(_), Load::Share(_)) => {
            refuse!("--load {text} does not ascend: give the smaller share first")
        }
        _ => refuse!(
            "--load {text} is a range, which only shares of the peak have: give 10%..110%, or a list such as 1,2,4,8"
        ),
    }
}

/// Loads as on the command line.
pub fn listed(loads: &[Load]) -> String {
    loads.iter().map(Load::to_string).collect::<Vec<_>>().join(",")
}
