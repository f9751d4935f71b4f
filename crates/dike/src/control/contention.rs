//! Contention intensity: how many transactions compete for the hot items (paper, section 4.2.2).
//!
//! **Definition** (the paper's 1): the contention intensity CI(t) of an item is the number of
//! transactions that compete for it at time t, one of them writing. A transaction competes from the
//! moment it asks for the item, just before the statement that locks or writes it, until it has
//! committed or given up, whether it waits in the database or in the client's queue
//! ([`super::queue`]).
//!
//! The paper sends each of M terminals to the hot item with probability TPS_c / (TPS_c + TPS_nc
//! (M - CI)), from throughputs measured beforehand: [`open_probability`]. That is right on average
//! and wanders: nothing pulls a queue of 45 back to 30 but the small decrease of all other work. In
//! the simulation of the tests a CI of 30 is off by more than itself in its worst second. It also
//! has to be measured anew when the database slows down.
//!
//! **Ours counts.** [`HotSpots`] knows how many transactions are on their way to an item or compete
//! for it, and a terminal that starts a transaction takes a place at the item that lacks most, if
//! one is free ([`HotSpots::start`]); else it works elsewhere. Nobody waits, no probability is
//! needed, and it holds for any throughput. A place is a [`Contender`], which returns it when it is
//! dropped, so no failure can make the count drift.
//!
//! **The feedback.** A transaction that has started is not competing yet: it has statements to run
//! before. With CI places the intensity would be CI minus those on their way. The [`Controller`]
//! looks at the counts every few milliseconds and offers CI + (mean number on the way) places. If
//! 1.3 are on their way on average and 30 shall compete, it offers 31.3: 31 places and, in three of
//! ten looks, 32. This is integral control with a gain of one, without its wind-up: while a queue
//! of 150 drains to 80, the number on the way is simply 0.
//!
//! Extremes: CI = 0 offers none, CI = M sends everybody. A schedule changes at any times; several
//! items have intensities of their own that add up to M at most. Of several clients each controls
//! its share of CI.
//!
//! Left out: how fast a queue drains. When CI falls, transactions in the queue still end one by
//! one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::SECOND_NS;
use super::track::{Control, Merge, Tracker};

/// Time over which the number on the way is averaged.
const SMOOTHING_NS: f64 = 0.5 * SECOND_NS as f64;

/// From a time on, an intensity for each hot item.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// When it begins.
    pub at_ns: u64,
    /// Transactions that shall compete, by item.
    pub intensities: Vec<f64>,
}

/// Intended intensities over time.
#[derive(Clone, Debug)]
pub struct Schedule {
    phases: Vec<Phase>,
}

/// Why a schedule is impossible.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentionError {
    /// No phase, or no item.
    Empty,
    /// A phase that begins before the one before it ends, or the first one after the start.
    Order {
        /// Which phase, from 1.
        phase: usize,
    },
    /// A phase that names another number of items than the first.
    Items {
        /// Which phase, from 1.
        phase: usize,
    },
    /// More transactions than terminals, or fewer than none.
    Intensity {
        /// What was asked for, of all items together.
        intensity: f64,
        /// What there is.
        terminals: u32,
    },
}

impl fmt::Display for ContentionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentionError::Empty => {
                write!(f, "a contention schedule needs at least one phase and one hot item")
            }
            ContentionError::Order { phase } => {
                let rule = "the first phase begins at 0 and each later one after the one before it";
                write!(f, "phase {phase} of the contention schedule begins at the wrong time: {rule}")
            }
            ContentionError::Items { phase } => {
                let rule = "names another number of hot items than the first";
                write!(f, "phase {phase} of the contention schedule {rule}")
            }
            ContentionError::Intensity { intensity, terminals } => {
                write!(f, "{intensity} transactions cannot compete: there are {terminals} terminals")
            }
        }
    }
}

impl std::error::Error for ContentionError {}

impl Schedule {
    /// These phases, for so many terminals of all clients together.
    pub fn new(phases: Vec<Phase>, terminals: u32) -> Result<Schedule, ContentionError> {
        let items = phases.first().map_or(0, |phase| phase.intensities.len());
        if items == 0 {
            return Err(ContentionError::Empty);
        }
        for (i, phase) in phases.iter().enumerate() {
            let in_order = if i == 0 { phase.at_ns == 0 } else { phases[i - 1].at_ns < phase.at_ns };
            if !in_order {
                return Err(ContentionError::Order { phase: i + 1 });
            }
            if phase.intensities.len() != items {
                return Err(ContentionError::Items { phase: i + 1 });
            }
            let intensity: f64 = phase.intensities.iter().sum();
            if phase.intensities.iter().any(|ci| ci.is_nan() || *ci < 0.0) || intensity > f64::from(terminals)
            {
                return Err(ContentionError::Intensity { intensity, terminals });
            }
        }
        Ok(Schedule { phases })
    }

    /// Hot items.
    pub fn items(&self) -> usize {
        self.phases[0].intensities.len()
    }

    /// Transactions that shall compete for an item now.
    pub fn intended(&self, now_ns: u64, item: usize) -> f64 {
        let after = self.phases.partition_point(|phase| phase.at_ns <= now_ns);
        self.phases[after - 1].intensities[item]
    }
}

/// The hot items of one client; shared by its terminals.
#[derive(Debug)]
pub struct HotSpots {
    items: Vec<HotItem>,
}

#[derive(Debug, Default)]
struct HotItem {
    /// Places that are offered.
    offered: AtomicU32,
    /// Places that are taken: transactions on their way to the item or competing for it.
    taken: AtomicU32,
    /// Transactions that compete for it.
    competing: AtomicU32,
}

impl HotSpots {
    /// So many items, with no places yet: a [`Controller`] offers them.
    pub fn new(items: usize) -> Arc<HotSpots> {
        Arc::new(HotSpots { items: (0..items).map(|_| HotItem::default()).collect() })
    }

    /// Asked by a terminal before each transaction: a place at a hot item, or nothing if it shall
    /// work elsewhere.
    pub fn start(self: &Arc<HotSpots>) -> Option<Contender> {
        loop {
            let lacking =
                |item: &HotItem| i64::from(item.offered.load(Relaxed)) - i64::from(item.taken.load(Relaxed));
            let (item, lacks) = self
                .items
                .iter()
                .map(lacking)
                .enumerate()
                .max_by_key(|(item, lacks)| (*lacks, std::cmp::Reverse(*item)))?;
            if lacks <= 0 {
                return None;
            }
            let HotItem { offered, taken, .. } = &self.items[item];
            let free = |now: u32| (now < offered.load(Relaxed)).then_some(now + 1);
            // Who loses the race for the last place looks again: somebody else has got it.
            if taken.fetch_update(Relaxed, Relaxed, free).is_ok() {
                return Some(Contender { spots: Arc::clone(self), item, competing: false });
            }
        }
    }

    /// Transactions that compete for an item now.
    pub fn competing(&self, item: usize) -> u32 {
        self.items[item].competing.load(Relaxed)
    }
}

/// A transaction's place at a hot item, from its start until this is dropped.
#[derive(Debug)]
pub struct Contender {
    spots: Arc<HotSpots>,
    item: usize,
    competing: bool,
}

impl Contender {
    /// The hot item.
    pub fn item(&self) -> usize {
        self.item
    }

    /// Said just before the statement that locks or writes the item. Saying it again, in a retry,
    /// changes nothing: the transaction has not stopped to compete.
    pub fn reach(&mut self) {
        if !self.competing {
            self.competing = true;
            self.spots.items[self.item].competing.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        let item = &self.spots.items[self.item];
        if self.competing {
            item.competing.fetch_sub(1, Relaxed);
        }
        item.taken.fetch_sub(1, Relaxed);
    }
}

/// What offers the places of one client.
#[derive(Debug)]
pub struct Controller {
    spots: Arc<HotSpots>,
    schedule: Schedule,
    share: f64,
    looked_ns: Option<u64>,
    items: Vec<Item>,
}

#[derive(Debug, Default)]
struct Item {
    /// Mean transactions on their way.
    on_way: f64,
    /// Fractions of a place that were not offered yet.
    owed: f64,
    seen: Tracker,
}

impl Controller {
    /// Controls `spots` by the schedule. `share` is the share of all terminals that this client
    /// runs, 1 for the only client. Nobody competes before the first [`Controller::look`].
    pub fn new(spots: Arc<HotSpots>, schedule: Schedule, share: f64) -> Controller {
        assert_eq!(spots.items.len(), schedule.items(), "the schedule is for these items");
        assert!(share > 0.0 && share <= 1.0, "a client runs some of the terminals");
        let items = spots.items.iter().map(|_| Item::default()).collect();
        Controller { spots, schedule, share, looked_ns: None, items }
    }

    /// Looks at the counts and offers places. To be called every 5 to 50 milliseconds of the run.
    pub fn look(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.looked_ns.unwrap_or(now_ns));
        self.looked_ns = Some(now_ns);
        let newest = 1.0 - (-(passed_ns as f64) / SMOOTHING_NS).exp();
        for (number, item) in self.items.iter_mut().enumerate() {
            let intended = self.share * self.schedule.intended(now_ns, number);
            let counts = &self.spots.items[number];
            let competing = counts.competing.load(Relaxed);
            // The two counts change one after the other.
            let on_way = counts.taken.load(Relaxed).saturating_sub(competing);
            item.on_way += newest * (f64::from(on_way) - item.on_way);
            item.seen.add(now_ns, intended, f64::from(competing));
            let wanted = if intended > 0.0 { intended + item.on_way + item.owed } else { 0.0 };
            counts.offered.store(wanted.floor() as u32, Relaxed);
            item.owed = wanted.fract();
        }
    }

    /// The reports, one per item, this client's share of them.
    pub fn finish(&self) -> Vec<Control> {
        let name = |number: usize| match self.items.len() {
            1 => "contention intensity".to_owned(),
            _ => format!("contention intensity of item {}", number + 1),
        };
        let report =
            |(number, item): (usize, &Item)| item.seen.finish(name(number), "transactions", Merge::Sum);
        self.items.iter().enumerate().map(report).collect()
    }
}

/// The paper's probability of a terminal to go to the hot item: `tps_c` transactions per second on
/// it, `tps_nc` per terminal elsewhere. 0 if nobody shall compete, 1 if everybody shall.
pub fn open_probability(tps_c: f64, tps_nc: f64, terminals: u32, intensity: f64) -> f64 {
    let elsewhere = tps_nc * (f64::from(terminals) - intensity);
    if intensity <= 0.0 {
        0.0
    } else if elsewhere <= 0.0 {
        1.0
    } else {
        tps_c / (tps_c + elsewhere)
    }
}

#[cfg(test)]
#[path = "contention_tests.rs"]
mod tests;
