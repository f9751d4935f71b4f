//! Which transaction comes next: a mix that changes over time (paper, section 5, "Dynamics"; Fig.
//! 18b).
//!
//! A mix is a weight per transaction kind. A schedule has one mix from the start and others from
//! given times on; the last one stays until the end. Weights are proportions: (45, 43, 4, 4, 4) and
//! (0.45, 0.43, ...) are the same.
//!
//! The report is the share of each kind, per second, against what the mix of that second says.

use std::fmt;

use plimsoll_types::random::Rng;

use super::track::{Control, Merge, Tracker};
use super::unit;

/// Mixes over time.
#[derive(Clone, Debug)]
pub struct Mixes {
    phases: Vec<Phase>,
}

#[derive(Clone, Debug)]
struct Phase {
    at_ns: u64,
    /// By kind: its share, and its share and those before it.
    shares: Vec<f64>,
    sums: Vec<f64>,
}

/// Why a schedule of mixes makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixError {
    /// No mix at all, or one without kinds.
    Empty,
    /// The first mix is not from the start, or a later one not after the one before it; counted
    /// from 1.
    Order(usize),
    /// A mix with another number of kinds than the first; counted from 1.
    Kinds(usize),
    /// A weight that is negative or no number, or no weight above 0; counted from 1.
    Weights(usize),
}

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MixError::Empty => write!(f, "there is no mix of transactions"),
            MixError::Order(mix) => {
                write!(
                    f,
                    "mix {mix} begins at the wrong time: the first at 0, each later one after the one before it"
                )
            }
            MixError::Kinds(mix) => write!(f, "mix {mix} has another number of weights than the first"),
            MixError::Weights(mix) => {
                write!(
                    f,
                    "the weights of mix {mix} have to be numbers of at least 0, and one of them above 0"
                )
            }
        }
    }
}

impl std::error::Error for MixError {}

impl Mixes {
    /// Mixes by the time from which they hold, in nanoseconds since the start.
    pub fn new(mixes: &[(u64, Vec<f64>)]) -> Result<Mixes, MixError> {
        let kinds = mixes.first().map_or(0, |(_, weights)| weights.len());
        if kinds == 0 {
            return Err(MixError::Empty);
        }
        let mut phases: Vec<Phase> = Vec::new();
        for (i, (at_ns, weights)) in mixes.iter().enumerate() {
            if phases.last().map_or(*at_ns != 0, |before| before.at_ns >= *at_ns) {
                return Err(MixError::Order(i + 1));
            }
            if weights.len() != kinds {
                return Err(MixError::Kinds(i + 1));
            }
            let sum: f64 = weights.iter().sum();
            if weights.iter().any(|weight| weight.is_nan() || *weight < 0.0)
                || !(sum > 0.0 && sum.is_finite())
            {
                return Err(MixError::Weights(i + 1));
            }
            let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            let mut sums = shares.clone();
            (1..kinds).for_each(|kind| sums[kind] += sums[kind - 1]);
            phases.push(Phase { at_ns: *at_ns, shares, sums });
        }
        Ok(Mixes { phases })
    }

    /// Kinds of transactions.
    pub fn kinds(&self) -> usize {
        self.phases[0].shares.len()
    }

    /// The share of each kind now.
    pub fn shares(&self, now_ns: u64) -> &[f64] {
        &self.phase(now_ns).shares
    }

    /// The kind of the next transaction.
    pub fn draw(&self, now_ns: u64, rng: &mut Rng) -> usize {
        let phase = self.phase(now_ns);
        let at = unit(rng);
        let kind = phase.sums.partition_point(|&sum| sum <= at);
        // Rounding may leave the last sum a hair below 1.
        kind.min(phase.shares.iter().rposition(|&share| share > 0.0).expect("one has a share"))
    }

    fn phase(&self, now_ns: u64) -> &Phase {
        &self.phases[self.phases.partition_point(|phase| phase.at_ns <= now_ns) - 1]
    }
}

/// What one terminal ran.
#[derive(Clone, Debug, Default)]
pub struct MixTally {
    kinds: Vec<Tracker>,
}

impl MixTally {
    /// Counts a transaction of a kind that was drawn now.
    pub fn record(&mut self, now_ns: u64, mixes: &Mixes, kind: usize) {
        self.kinds.resize_with(mixes.kinds(), Tracker::default);
        for (other, (tracker, &share)) in self.kinds.iter_mut().zip(mixes.shares(now_ns)).enumerate() {
            tracker.add(now_ns, share, f64::from(u8::from(other == kind)));
        }
    }

    /// Adds another terminal's.
    pub fn merge(&mut self, other: &MixTally) {
        self.kinds.resize_with(self.kinds.len().max(other.kinds.len()), Tracker::default);
        self.kinds.iter_mut().zip(&other.kinds).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// The reports, one per kind that was ever wanted or run.
    pub fn finish(&self, names: &[&str]) -> Vec<Control> {
        let report = |(tracker, name): (&Tracker, &&str)| {
            tracker.finish(format!("mix: {name}"), "share of transactions", Merge::Mean)
        };
        let of_use =
            |control: &Control| control.intended.iter().chain(&control.achieved).any(|&share| share > 0.0);
        self.kinds.iter().zip(names).map(report).filter(of_use).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECOND_NS;
    use super::*;

    fn of_the_paper() -> Mixes {
        let mix = |at: u64, weights: [f64; 6]| (at * 30 * SECOND_NS, weights.to_vec());
        Mixes::new(&[
            mix(0, [45.0, 43.0, 4.0, 4.0, 4.0, 0.0]),
            mix(1, [50.0, 40.0, 6.0, 2.0, 2.0, 0.0]),
            mix(2, [40.0, 25.0, 5.0, 15.0, 15.0, 0.0]),
        ])
        .expect("sensible")
    }

    #[test]
    fn each_stage_has_its_mix_and_the_last_one_stays() {
        let (mixes, mut rng, mut tally) = (of_the_paper(), Rng::new(1, 1), MixTally::default());
        for i in 0..120_000 {
            let now_ns = i * 1_000_000;
            tally.record(now_ns, &mixes, mixes.draw(now_ns, &mut rng));
        }
        let names = ["new_order", "payment", "order_status", "stock_level", "delivery", "update_stock"];
        let controls = tally.finish(&names);
        assert_eq!(controls.len(), 5, "what is neither wanted nor run is not reported");
        for (control, stages) in controls.iter().zip([
            [0.45, 0.50, 0.40],
            [0.43, 0.40, 0.25],
            [0.04, 0.06, 0.05],
            [0.04, 0.02, 0.15],
            [0.04, 0.02, 0.15],
        ]) {
            for (seconds, share) in [(0..30, stages[0]), (30..60, stages[1]), (60..120, stages[2])] {
                let overall = control.overall(seconds).expect("observed");
                assert!((overall.intended - share).abs() < 1e-9, "{}: {overall:?}", control.name);
                assert!((overall.achieved - share).abs() < 0.01, "{}: {overall:?}", control.name);
            }
        }
    }

    #[test]
    fn a_kind_without_weight_never_comes() {
        let mixes = Mixes::new(&[(0, vec![0.0, 1.0, 0.0])]).expect("sensible");
        let mut rng = Rng::new(1, 1);
        assert!((0..10_000).all(|_| mixes.draw(0, &mut rng) == 1));
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let refused = |mixes: &[(u64, Vec<f64>)]| Mixes::new(mixes).expect_err("nonsense");
        assert_eq!(refused(&[]), MixError::Empty);
        assert_eq!(refused(&[(5, vec![1.0])]), MixError::Order(1));
        assert_eq!(refused(&[(0, vec![1.0]), (0, vec![1.0])]), MixError::Order(2));
        assert_eq!(refused(&[(0, vec![1.0]), (1, vec![1.0, 2.0])]), MixError::Kinds(2));
        assert_eq!(refused(&[(0, vec![0.0])]), MixError::Weights(1));
        assert_eq!(refused(&[(0, vec![-1.0, 2.0])]), MixError::Weights(1));
        assert_eq!(refused(&[(0, vec![f64::NAN])]), MixError::Weights(1));
        assert!(MixError::Weights(1).to_string().contains("mix 1"));
    }
}
