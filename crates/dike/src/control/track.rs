//! Intended against achieved: the report of every control.
//!
//! A [`Tracker`] gathers observations, each an intended and an achieved value of the same quantity
//! at some time, and keeps sums per second of the run. Trackers of terminals add up. At the end a
//! tracker becomes a [`Control`], which is what the run's document stores and the report draws.
//!
//! Example: 30 % of all transactions shall be distributed. In second 7 a terminal runs ten, two of
//! them distributed: ten observations of 0.3 against 1 or 0, so second 7 says 0.3 intended, 0.2
//! achieved, weight 10.
//!
//! The controls of several clients of one run merge in one of two ways. A share is a mean over
//! everybody's transactions ([`Merge::Mean`]); the number of transactions that contend is a sum
//! over the clients ([`Merge::Sum`]).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::SECOND_NS;

/// How the values of several clients make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// The mean, weighted by observations.
    Mean,
    /// The sum.
    Sum,
}

/// Sums per second.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    seconds: Vec<Sums>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    intended: f64,
    achieved: f64,
    weight: f64,
}

/// One quantity of one run: means per second, with the number of observations behind each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// What is controlled, for a heading: `distribution degree`.
    pub name: String,
    /// What a value counts: `nodes`, `share`, `transactions`, `transactions/s`.
    pub unit: String,
    /// How clients merge.
    pub merge: Merge,
    /// By second of the run: what was asked for, 0 where nothing was observed.
    pub intended: Vec<f64>,
    /// By second of the run: what happened, 0 where nothing was observed.
    pub achieved: Vec<f64>,
    /// By second of the run: observations.
    pub weight: Vec<f64>,
}

/// One quantity over a whole interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overall {
    /// What was asked for.
    pub intended: f64,
    /// What happened.
    pub achieved: f64,
}

impl Overall {
    /// How far off, as a share of what was intended; the absolute difference where nothing was
    /// intended.
    pub fn deviation(self) -> f64 {
        let difference = self.achieved - self.intended;
        if self.intended == 0.0 { difference } else { difference / self.intended }
    }
}

impl Tracker {
    /// One observation.
    pub fn add(&mut self, now_ns: u64, intended: f64, achieved: f64) {
        self.add_weighted(now_ns, intended, achieved, 1.0);
    }

    /// An observation that counts as `weight` of them.
    pub fn add_weighted(&mut self, now_ns: u64, intended: f64, achieved: f64, weight: f64) {
        let second = (now_ns / SECOND_NS) as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Sums::default());
        }
        let sums = &mut self.seconds[second];
        sums.intended += weight * intended;
        sums.achieved += weight * achieved;
        sums.weight += weight;
    }

    /// Adds what another terminal of the same client has seen.
    pub fn merge(&mut self, other: &Tracker) {
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), Sums::default());
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            mine.intended += theirs.intended;
            mine.achieved += theirs.achieved;
            mine.weight += theirs.weight;
        }
    }

    /// Whether nothing was observed.
    pub fn is_empty(&self) -> bool {
        self.seconds.is_empty()
    }

    /// The report.
    pub fn finish(&self, name: impl Into<String>, unit: impl Into<String>, merge: Merge) -> Control {
        let mean = |sum: f64, weight: f64| if weight > 0.0 { sum / weight } else { 0.0 };
        Control {
            name: name.into(),
            unit: unit.into(),
            merge,
            intended: self.seconds.iter().map(|s| mean(s.intended, s.weight)).collect(),
            achieved: self.seconds.iter().map(|s| mean(s.achieved, s.weight)).collect(),
            weight: self.seconds.iter().map(|s| s.weight).collect(),
        }
    }
}

impl Control {
    /// Both values over an interval of seconds; nothing if nothing was observed in it.
    pub fn overall(&self, seconds: Range<usize>) -> Option<Overall> {
        let range = seconds.start.min(self.weight.len())..seconds.end.min(self.weight.len());
        let weight: f64 = self.weight[range.clone()].iter().sum();
        if weight <= 0.0 {
            return None;
        }
        // A sum changes with the seconds, not with how often it was looked at.
        let weight_of = |second: usize| match self.merge {
            Merge::Mean => self.weight[second],
            Merge::Sum => f64::from(u8::from(self.weight[second] > 0.0)),
        };
        let weight: f64 = range.clone().map(weight_of).sum();
        let mean = |values: &[f64]| range.clone().map(|s| values[s] * weight_of(s)).sum::<f64>() / weight;
        Some(Overall { intended: mean(&self.intended), achieved: mean(&self.achieved) })
    }

    /// The largest deviation of a single second of an interval. Seconds with less than a quarter of
    /// the usual observations do not count: there it would be chance.
    pub fn worst_deviation(&self, seconds: Range<usize>) -> f64 {
        let range = seconds.start.min(self.weight.len())..seconds.end.min(self.weight.len());
        let usual = self.weight[range.clone()].iter().sum::<f64>() / range.len().max(1) as f64;
        range
            .filter(|&second| self.weight[second] >= usual / 4.0)
            .filter_map(|second| self.overall(second..second + 1))
            .map(|overall| overall.deviation().abs())
            .fold(0.0, f64::max)
    }

    /// Adds another client's figures of the same quantity.
    pub fn merge(&mut self, other: &Control) {
        let seconds = self.weight.len().max(other.weight.len());
        for values in [&mut self.intended, &mut self.achieved, &mut self.weight] {
            values.resize(seconds, 0.0);
        }
        for second in 0..other.weight.len() {
            let (mine, theirs) = (self.weight[second], other.weight[second]);
            if theirs <= 0.0 {
                continue;
            }
            let join = |a: f64, b: f64| match self.merge {
                Merge::Mean => (a * mine + b * theirs) / (mine + theirs),
                Merge::Sum => a + b,
            };
            self.intended[second] = join(self.intended[second], other.intended[second]);
            self.achieved[second] = join(self.achieved[second], other.achieved[second]);
            self.weight[second] += theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(merge: Merge, observations: &[(u64, f64, f64)]) -> Control {
        let mut tracker = Tracker::default();
        for (second, intended, achieved) in observations {
            tracker.add(second * SECOND_NS + 5, *intended, *achieved);
        }
        tracker.finish("x", "share", merge)
    }

    #[test]
    fn a_second_is_the_mean_of_its_observations() {
        let control = control(Merge::Mean, &[(0, 0.3, 1.0), (0, 0.3, 0.0), (2, 0.5, 1.0)]);
        assert_eq!(control.intended, [0.3, 0.0, 0.5]);
        assert_eq!(control.achieved, [0.5, 0.0, 1.0]);
        assert_eq!(control.weight, [2.0, 0.0, 1.0]);
    }

    #[test]
    fn a_whole_interval_weighs_shares_by_transactions_and_sums_by_time() {
        let observations = [(0, 10.0, 8.0), (0, 10.0, 8.0), (0, 10.0, 8.0), (1, 20.0, 20.0), (9, 1.0, 1.0)];
        let mean = control(Merge::Mean, &observations).overall(0..2).expect("observed");
        assert_eq!(mean, Overall { intended: 12.5, achieved: 11.0 });
        let sum = control(Merge::Sum, &observations).overall(0..2).expect("observed");
        assert_eq!(sum, Overall { intended: 15.0, achieved: 14.0 });
        assert!((sum.deviation() + 1.0 / 15.0).abs() < 1e-12);
        assert_eq!(control(Merge::Sum, &observations).overall(2..5), None);
        assert_eq!(control(Merge::Sum, &observations).overall(40..50), None);
    }

    #[test]
    fn clients_merge_by_mean_or_by_sum() {
        let one = [(0, 10.0, 8.0), (0, 10.0, 8.0), (0, 10.0, 8.0)];
        let other = [(0, 20.0, 20.0), (1, 5.0, 5.0)];
        let merged = |merge| {
            let mut control_a = control(merge, &one);
            control_a.merge(&control(merge, &other));
            (control_a.intended, control_a.achieved)
        };
        assert_eq!(merged(Merge::Mean), (vec![12.5, 5.0], vec![11.0, 5.0]));
        assert_eq!(merged(Merge::Sum), (vec![30.0, 5.0], vec![28.0, 5.0]));
    }

    #[test]
    fn the_worst_second_counts_and_empty_ones_do_not() {
        let eight = |second, achieved| [(second, 10.0, achieved); 8];
        let mut observations = [eight(0, 9.0), eight(1, 12.0), eight(3, 10.0)].concat();
        observations.push((2, 10.0, 99.0));
        let control = control(Merge::Mean, &observations);
        assert!((control.worst_deviation(0..4) - 0.2).abs() < 1e-12, "one observation is chance");
        assert_eq!(Overall { intended: 0.0, achieved: 0.5 }.deviation(), 0.5);
    }
}
