//! Distributions of latencies.
//!
//! While a run goes on, a [`Histogram`] counts in buckets of one per cent (two significant digits
//! of `hdrhistogram`): ten kilobytes per terminal and transaction kind, whatever the run's length.
//! Its sum, minimum and maximum are exact. At the end it becomes a [`Latency`], the non-empty
//! buckets and these three, which serializes and merges without loss: buckets of the same width are
//! the same buckets on every client.
//!
//! **Two latencies.** The *service time* of a transaction is from its actual start to its end. Its
//! *response time* is from when it was meant to start. With a closed loop at full speed they are
//! the same. With arrivals that do not wait ([`crate::control::load`]) a database that stops for a
//! second delays all that should have started meanwhile; service times show one slow transaction
//! per terminal, response times what a user would have felt. Leaving that out is known as
//! coordinated omission.
//!
//! A [`Heat`] map counts by second and by class of latency, six classes to a power of ten from 10
//! µs to 100 s.

use serde::{Deserialize, Serialize};

/// Latencies that are being recorded, in microseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u32>,
    sum_us: u64,
    min_us: u64,
    max_us: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let mut buckets = hdrhistogram::Histogram::new(2).expect("two digits are possible");
        buckets.auto(true);
        Histogram { buckets, sum_us: 0, min_us: u64::MAX, max_us: 0 }
    }
}

impl Histogram {
    /// One latency.
    pub fn record(&mut self, us: u64) {
        /// An hour: no run waits longer for one transaction.
        const MOST_US: u64 = 3_600_000_000;
        let us = us.clamp(1, MOST_US);
        self.buckets.record(us).expect("a resizing histogram takes every value");
        self.sum_us += us;
        self.min_us = self.min_us.min(us);
        self.max_us = self.max_us.max(us);
    }

    /// Adds another terminal's.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets.add(&other.buckets).expect("a resizing histogram takes every value");
        self.sum_us += other.sum_us;
        self.min_us = self.min_us.min(other.min_us);
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Latencies recorded.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// What is kept of it.
    pub fn finish(&self) -> Latency {
        if self.buckets.is_empty() {
            return Latency::default();
        }
        let bucket = |value: hdrhistogram::iterators::IterationValue<u32>| {
            (value.value_iterated_to(), value.count_since_last_iteration())
        };
        Latency {
            sum_us: self.sum_us,
            min_us: self.min_us,
            max_us: self.max_us,
            buckets: self.buckets.iter_recorded().map(bucket).collect(),
        }
    }
}

/// A distribution of latencies in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The sum of all.
    pub sum_us: u64,
    /// The smallest; 0 if there is none.
    pub min_us: u64,
    /// The largest.
    pub max_us: u64,
    /// Non-empty buckets in ascending order: the largest latency of each, and how many are in it.
    pub buckets: Vec<(u64, u64)>,
}

impl Latency {
    /// How many.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The mean; 0 of nothing.
    pub fn mean_us(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum_us as f64 / count as f64,
        }
    }

    /// The smallest latency that at least this share of all do not exceed, up to the width of a
    /// bucket; 0 of nothing. A share of 0.99 is the 99th percentile.
    pub fn percentile_us(&self, share: f64) -> u64 {
        let rank = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (us, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return (*us).clamp(self.min_us, self.max_us);
            }
        }
        self.max_us
    }

    /// Adds another distribution.
    pub fn merge(&mut self, other: &Latency) {
        if other.buckets.is_empty() {
            return;
        }
        self.min_us = if self.buckets.is_empty() { other.min_us } else { self.min_us.min(other.min_us) };
        self.max_us = self.max_us.max(other.max_us);
        self.sum_us += other.sum_us;
        self.buckets.extend_from_slice(&other.buckets);
        self.buckets.sort_unstable_by_key(|(us, _)| *us);
        self.buckets.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
    }
}

/// Classes of latency in a heat map.
pub const HEAT_CLASSES: usize = 42;
/// Classes to a power of ten.
const HEAT_PER_DECADE: f64 = 6.0;
/// The lower edge of the lowest class that is not open below.
const HEAT_FROM_US: f64 = 10.0;

/// Transactions by second and class of latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heat {
    /// By second: by class, up to the last class that is not empty.
    pub seconds: Vec<Vec<u32>>,
}

impl Heat {
    /// The class of a latency.
    pub fn class(us: u64) -> usize {
        let class = (us.max(1) as f64 / HEAT_FROM_US).log10() * HEAT_PER_DECADE;
        (class.max(0.0) as usize).min(HEAT_CLASSES - 1)
    }

    /// The upper edge of a class in microseconds.
    pub fn upper_us(class: usize) -> f64 {
        HEAT_FROM_US * 10f64.powf((class + 1) as f64 / HEAT_PER_DECADE)
    }

    /// One transaction.
    pub fn record(&mut self, second: usize, us: u64) {
        let class = Heat::class(us);
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Vec::new());
        }
        let classes = &mut self.seconds[second];
        if classes.len() <= class {
            classes.resize(class + 1, 0);
        }
        classes[class] += 1;
    }

    /// Adds another terminal's or client's.
    pub fn merge(&mut self, other: &Heat) {
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), Vec::new());
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            if mine.len() < theirs.len() {
                mine.resize(theirs.len(), 0);
            }
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    fn recorded(latencies: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        latencies.iter().for_each(|&us| histogram.record(us));
        histogram
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_latencies_to_one_per_cent(
            mut latencies in prop::collection::vec(1u64..100_000_000, 1..300)
        ) {
            let latency = recorded(&latencies).finish();
            latencies.sort_unstable();
            prop_assert_eq!(latency.count(), latencies.len() as u64);
            prop_assert_eq!((latency.min_us, latency.max_us), (latencies[0], *latencies.last().unwrap()));
            for share in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
                let rank = ((share * latencies.len() as f64).ceil() as usize).max(1);
                let (exact, said) = (latencies[rank - 1] as f64, latency.percentile_us(share) as f64);
                prop_assert!(said >= exact * 0.999 && said <= exact * 1.01 + 1.0, "{}: {} {}", share, said, exact);
            }
            let mean = latencies.iter().sum::<u64>() as f64 / latencies.len() as f64;
            prop_assert!((latency.mean_us() - mean).abs() < 1e-6 * mean);
        }

        #[test]
        fn merging_is_recording_together(
            a in prop::collection::vec(1u64..10_000_000, 0..100), b in prop::collection::vec(1u64..10_000_000, 0..100)
        ) {
            let together = recorded(&[a.clone(), b.clone()].concat()).finish();
            let mut recorders = recorded(&a);
            recorders.merge(&recorded(&b));
            prop_assert_eq!(&recorders.finish(), &together);
            let mut documents = recorded(&a).finish();
            documents.merge(&recorded(&b).finish());
            prop_assert_eq!(documents, together);
        }
    }

    #[test]
    fn nothing_has_no_latency() {
        let nothing = Histogram::default().finish();
        assert_eq!(nothing, Latency::default());
        assert_eq!((nothing.mean_us(), nothing.percentile_us(0.5), nothing.count()), (0.0, 0, 0));
    }

    #[test]
    fn classes_of_heat_cover_ten_microseconds_to_a_hundred_seconds() {
        assert_eq!([0, 9, 10, 14].map(Heat::class), [0; 4]);
        assert_eq!(Heat::class(15), 1);
        assert_eq!(Heat::class(u64::MAX), HEAT_CLASSES - 1);
        assert!((Heat::upper_us(HEAT_CLASSES - 1) / 100e6 - 1.0).abs() < 1e-9);
        for us in [12, 99, 1_000, 5_000_000] {
            let class = Heat::class(us);
            assert!((us as f64) <= Heat::upper_us(class) * 1.0001);
            assert!((us as f64) >= Heat::upper_us(class) / 10f64.powf(1.0 / HEAT_PER_DECADE) * 0.9999);
        }
        let mut heat = Heat::default();
        heat.record(2, 15);
        let mut other = Heat::default();
        other.record(2, 15);
        other.record(3, 10);
        heat.merge(&other);
        assert_eq!(heat.seconds, [vec![], vec![], vec![0, 2], vec![1]]);
    }
}
