//! Load that swells and falls: when each terminal starts its transactions (paper, section 5,
//! "Dynamics").
//!
//! The *level* of a load is a share of its peak over the run, 1 for a constant load or a Gaussian
//! curve e^(-(x - mean)^2 / (2 deviation^2)) with x from 0 to 1 over the run. Two meanings of the
//! peak:
//!
//! * **A rate** ([`Load::peak_tps`]): all terminals together start peak x level transactions per
//!   second.
//! * **Full speed** (none given): each terminal is busy for a share `level` of the time. It works
//!   without knowing what the database can do.
//!
//! Both follow from the *area* under the level, A(t), in seconds of full load. A terminal's k-th
//! start of a rate is where A(t) x peak / terminals has grown by k, so that every start is where
//! the curve says and not where the second before it was. Under full speed a transaction of latency
//! l uses up an area of l: at level 1 the next starts at once, at level 0.25 after three further
//! latencies. Example: peak 100/s, 10 terminals, level 0.5: each terminal starts every 200 ms.
//!
//! A rate is *open* or *closed*. Open: starts are drawn as a Poisson process and never move; a
//! terminal that is late starts at once, and its latency counts from when it should have started.
//! Closed: starts are evenly spaced, and one that was missed is dropped.
//!
//! Left out: a load that a trace prescribes.

use std::fmt;

use plimsoll_types::random::Rng;
use serde::{Deserialize, Serialize};

use super::track::{Control, Merge};
use super::{SECOND_NS, unit, unit_above_zero};

/// What the report calls a load.
pub const NAME: &str = "load";

/// The level over the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Always the peak.
    #[default]
    Constant,
    /// A Gaussian curve.
    Gaussian {
        /// When the peak is, as a share of the run's time.
        mean: f64,
        /// Its standard deviation, as a share of the run's time; above 0.
        deviation: f64,
    },
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    shape: Shape,
    run_ns: u64,
    peak_tps: Option<f64>,
}

/// Why a load makes no sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadError {
    /// Nothing lasts that long.
    NoTime,
    /// The mean is no number, or the deviation is not above 0.
    Shape {
        /// The mean.
        mean: f64,
        /// The deviation.
        deviation: f64,
    },
    /// The peak is not above 0.
    Peak(f64),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NoTime => write!(f, "a run takes some time"),
            LoadError::Shape { mean, deviation } => write!(
                f,
                "a Gaussian load has a mean and a deviation above 0, shares of the run's time; not {mean} and \
                 {deviation}"
            ),
            LoadError::Peak(peak) => write!(f, "a peak load is above 0 transactions/s, not {peak}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl Load {
    /// A load over a run of this length. `peak_tps` is of all terminals of all clients; nothing for
    /// full speed.
    pub fn new(shape: Shape, run_ns: u64, peak_tps: Option<f64>) -> Result<Load, LoadError> {
        if run_ns == 0 {
            return Err(LoadError::NoTime);
        }
        if let Shape::Gaussian { mean, deviation } = shape
            && !(mean.is_finite() && deviation.is_finite() && deviation > 0.0)
        {
            return Err(LoadError::Shape { mean, deviation });
        }
        if let Some(peak) = peak_tps
            && !(peak.is_finite() && peak > 0.0)
        {
            return Err(LoadError::Peak(peak));
        }
        Ok(Load { shape, run_ns, peak_tps })
    }

    /// The peak in transactions per second of all terminals, if it is a rate.
    pub fn peak_tps(&self) -> Option<f64> {
        self.peak_tps
    }

    /// The share of the peak at a time, 0 to 1.
    pub fn level(&self, now_ns: u64) -> f64 {
        match self.shape {
            Shape::Constant => 1.0,
            Shape::Gaussian { mean, deviation } => {
                let x = now_ns as f64 / self.run_ns as f64;
                (-((x - mean) / deviation).powi(2) / 2.0).exp()
            }
        }
    }

    /// The area under the level from the start, in seconds of full load.
    pub fn area(&self, now_ns: u64) -> f64 {
        let second = SECOND_NS as f64;
        match self.shape {
            Shape::Constant => now_ns as f64 / second,
            Shape::Gaussian { mean, deviation } => {
                let run = self.run_ns as f64 / second;
                let x = now_ns as f64 / self.run_ns as f64;
                let normal = |x: f64| libm::erf((x - mean) / (deviation * std::f64::consts::SQRT_2));
                let scale = run * deviation * (std::f64::consts::PI / 2.0).sqrt();
                scale * (normal(x) - normal(0.0))
            }
        }
    }

    /// When the area is reached; nothing if the run ends before.
    fn reached_ns(&self, area: f64) -> Option<u64> {
        if area >= self.area(self.run_ns) {
            return None;
        }
        let (mut low, mut high) = (0, self.run_ns);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.area(middle) < area { low = middle } else { high = middle }
        }
        Some(high)
    }
}

/// Whether starts that were missed are made up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// A Poisson process that does not wait for the database.
    Open,
    /// Evenly spaced, and dropped if missed.
    Closed,
}

/// When one terminal starts its transactions.
#[derive(Clone, Debug)]
pub struct Pacer {
    load: Load,
    arrivals: Arrivals,
    /// Area between two starts of a rate.
    spacing: Option<f64>,
    /// The area at which the next one starts.
    next: f64,
}

impl Pacer {
    /// For one of `terminals` terminals of all clients.
    pub fn new(load: Load, arrivals: Arrivals, terminals: u32, rng: &mut Rng) -> Pacer {
        /// A latency to begin with, so that full speed does not begin with a burst.
        const FIRST_SECONDS: f64 = 0.01;
        let spacing = load.peak_tps.map(|peak| f64::from(terminals) / peak);
        let next = match (spacing, arrivals) {
            (Some(spacing), Arrivals::Open) => exponential(spacing, rng),
            (Some(spacing), Arrivals::Closed) => spacing * unit(rng),
            (None, _) => match load.shape {
                Shape::Constant => 0.0,
                Shape::Gaussian { .. } => FIRST_SECONDS * unit(rng),
            },
        };
        Pacer { load, arrivals, spacing, next }
    }

    /// When the next transaction shall start, which may be in the past; nothing if the run ends
    /// before. It starts at that time or, if that is past, at once.
    pub fn next_ns(&mut self, now_ns: u64) -> Option<u64> {
        if self.spacing.is_some() && self.arrivals == Arrivals::Closed {
            let here = self.load.area(now_ns);
            self.next = self.next.max(here);
        }
        self.load.reached_ns(self.next)
    }

    /// Told after each transaction: it ran from `started_ns` to `ended_ns`.
    pub fn ran(&mut self, started_ns: u64, ended_ns: u64, rng: &mut Rng) {
        match (self.spacing, self.arrivals) {
            (Some(spacing), Arrivals::Open) => self.next += exponential(spacing, rng),
            (Some(spacing), Arrivals::Closed) => self.next += spacing,
            (None, _) => {
                let latency = ended_ns.saturating_sub(started_ns) as f64 / SECOND_NS as f64;
                // Time that was not used is lost, not saved up.
                self.next = self.next.max(self.load.area(started_ns)) + latency;
            }
        }
    }
}

fn exponential(mean: f64, rng: &mut Rng) -> f64 {
    -mean * unit_above_zero(rng).ln()
}

/// What one terminal's transactions came to.
#[derive(Clone, Debug, Default)]
pub struct LoadTally {
    starts: Vec<u64>,
    busy_ns: Vec<u64>,
    terminals: u32,
}

impl LoadTally {
    /// Of one terminal.
    pub fn new() -> LoadTally {
        LoadTally { terminals: 1, ..LoadTally::default() }
    }

    /// Counts a transaction.
    pub fn record(&mut self, started_ns: u64, ended_ns: u64) {
        let (first, last) = (started_ns / SECOND_NS, ended_ns / SECOND_NS);
        grow(&mut self.starts, first as usize);
        grow(&mut self.busy_ns, last as usize);
        self.starts[first as usize] += 1;
        for second in first..=last {
            let from = started_ns.max(second * SECOND_NS);
            let to = ended_ns.min((second + 1) * SECOND_NS);
            self.busy_ns[second as usize] += to.saturating_sub(from);
        }
    }

    /// Adds another terminal's.
    pub fn merge(&mut self, other: &LoadTally) {
        for (mine, theirs) in [(&mut self.starts, &other.starts), (&mut self.busy_ns, &other.busy_ns)] {
            grow(mine, theirs.len().saturating_sub(1));
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.terminals += other.terminals;
    }

    /// The report over so many whole seconds: transactions that were started per second, or for
    /// full speed the share of the time that terminals were busy. `share` is this client's share of
    /// all terminals.
    pub fn finish(&self, load: &Load, share: f64, seconds: usize) -> Control {
        let level =
            |second: usize| load.area((second as u64 + 1) * SECOND_NS) - load.area(second as u64 * SECOND_NS);
        let of = |values: &[u64], second: usize| values.get(second).copied().unwrap_or(0) as f64;
        let terminals = f64::from(self.terminals);
        let (unit, merge, weight) = match load.peak_tps {
            Some(_) => ("transactions/s", Merge::Sum, 1.0),
            None => ("share of terminals busy", Merge::Mean, terminals),
        };
        let pair = |second: usize| match load.peak_tps {
            Some(peak) => (peak * share * level(second), of(&self.starts, second)),
            None => (level(second), of(&self.busy_ns, second) / (terminals * SECOND_NS as f64)),
        };
        Control {
            name: NAME.to_owned(),
            unit: unit.to_owned(),
            merge,
            intended: (0..seconds).map(|second| pair(second).0).collect(),
            achieved: (0..seconds).map(|second| pair(second).1).collect(),
            weight: vec![weight; seconds],
        }
    }
}

fn grow(values: &mut Vec<u64>, last: usize) {
    if values.len() <= last {
        values.resize(last + 1, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAUSSIAN: Shape = Shape::Gaussian { mean: 0.5, deviation: 0.15 };

    fn load(shape: Shape, seconds: u64, peak_tps: Option<f64>) -> Load {
        Load::new(shape, seconds * SECOND_NS, peak_tps).expect("sensible")
    }

    /// Terminals that serve each transaction in a time that varies around `latency_ms`.
    fn run(load: Load, arrivals: Arrivals, terminals: u32, latency_ms: f64, seconds: u64) -> Control {
        let mut tally: Option<LoadTally> = None;
        for terminal in 0..terminals {
            let mut rng = Rng::new(5, u64::from(terminal));
            let mut pacer = Pacer::new(load, arrivals, terminals, &mut rng);
            let mut own = LoadTally::new();
            let mut now_ns = 0;
            while let Some(at_ns) = pacer.next_ns(now_ns) {
                let started_ns = at_ns.max(now_ns);
                now_ns = started_ns + (latency_ms * 1e6 * (0.5 + unit(&mut rng))) as u64;
                pacer.ran(started_ns, now_ns, &mut rng);
                own.record(started_ns, now_ns);
                if now_ns >= seconds * SECOND_NS {
                    break;
                }
            }
            match &mut tally {
                Some(all) => all.merge(&own),
                None => tally = Some(own),
            }
        }
        tally.expect("terminals").finish(&load, 1.0, seconds as usize)
    }

    fn assert_follows(control: &Control, tolerance: f64) {
        let peak = control.intended.iter().copied().fold(0.0, f64::max);
        for (second, (intended, achieved)) in control.intended.iter().zip(&control.achieved).enumerate() {
            let off = (intended - achieved).abs() / peak;
            assert!(off < tolerance, "second {second}: {achieved}, not {intended} of {peak}");
        }
        let overall = control.overall(0..control.weight.len()).expect("observed");
        assert!(overall.deviation().abs() < 0.02, "{overall:?}");
    }

    #[test]
    fn a_gaussian_rate_is_followed_second_by_second() {
        let rate = load(GAUSSIAN, 90, Some(2_000.0));
        assert_follows(&run(rate, Arrivals::Closed, 50, 5.0, 90), 0.03);
        assert_follows(&run(rate, Arrivals::Open, 50, 5.0, 90), 0.10);
    }

    #[test]
    fn full_speed_keeps_terminals_busy_as_the_curve_says() {
        let full = load(GAUSSIAN, 90, None);
        assert_follows(&run(full, Arrivals::Closed, 50, 20.0, 90), 0.05);
        let always = run(load(Shape::Constant, 20, None), Arrivals::Closed, 5, 20.0, 20);
        assert!(always.achieved.iter().all(|&busy| busy > 0.999), "{always:?}");
    }

    #[test]
    fn mean_and_deviation_are_where_they_were_put() {
        let early = load(Shape::Gaussian { mean: 0.2, deviation: 0.1 }, 100, Some(100.0));
        assert_eq!(early.level(20 * SECOND_NS), 1.0);
        assert!((early.level(30 * SECOND_NS) - (-0.5f64).exp()).abs() < 1e-12);
        let control = run(early, Arrivals::Closed, 10, 1.0, 100);
        let most = (0..100).max_by(|&a, &b| control.achieved[a].total_cmp(&control.achieved[b]));
        assert!((17..23).contains(&most.expect("seconds")), "{most:?}");
        // Two thirds of a Gaussian are within one deviation of its mean.
        let within: f64 = control.achieved[10..30].iter().sum();
        let all: f64 = control.achieved.iter().sum();
        assert!((within / all - 0.6986).abs() < 0.02, "{}", within / all);
    }

    #[test]
    fn the_area_is_the_sum_of_levels() {
        let load = load(GAUSSIAN, 10, None);
        let steps = 10_000u64;
        let sum: f64 = (0..steps).map(|i| load.level(i * 1_000_000 + 500_000) * 0.001).sum();
        assert!((load.area(10 * SECOND_NS) - sum).abs() < 1e-6);
        assert!(load.reached_ns(sum + 0.01).is_none());
        let half = load.reached_ns(sum / 2.0).expect("within the run");
        assert!(half.abs_diff(5 * SECOND_NS) < 1_000);
    }

    #[test]
    fn an_open_schedule_does_not_wait_for_a_slow_database_and_a_closed_one_does() {
        let rate = load(Shape::Constant, 10, Some(100.0));
        // 10 terminals that need 200 ms each manage 50 per second.
        let lateness = |arrivals| {
            let mut rng = Rng::new(1, 1);
            let mut pacer = Pacer::new(rate, arrivals, 10, &mut rng);
            let (mut now_ns, mut late_ns) = (0, 0);
            while let Some(at_ns) = pacer.next_ns(now_ns) {
                let started_ns = at_ns.max(now_ns);
                late_ns = started_ns - at_ns;
                now_ns = started_ns + SECOND_NS / 5;
                pacer.ran(started_ns, now_ns, &mut rng);
            }
            late_ns
        };
        assert!(lateness(Arrivals::Open) > 2 * SECOND_NS);
        assert!(lateness(Arrivals::Closed) < SECOND_NS / 100);
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let refused = |shape, run_ns, peak| Load::new(shape, run_ns, peak).expect_err("nonsense").to_string();
        assert!(refused(Shape::Constant, 0, None).contains("some time"));
        assert!(refused(Shape::Gaussian { mean: 0.5, deviation: 0.0 }, 1, None).contains("above 0"));
        assert!(refused(Shape::Constant, 1, Some(0.0)).contains("not 0"));
    }
}
