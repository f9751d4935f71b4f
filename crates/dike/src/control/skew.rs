//! Skewed choosers: which of n items a transaction uses (paper, section 4.3).
//!
//! Items have *ranks*, 0 for the hottest. A [`Skew`] says how often each rank is used, a
//! [`Chooser`] draws:
//!
//! | skew | use of rank r, from 0 | one draw |
//! |---|---|---|
//! | [`Skew::Uniform`] | the same for all | O(1) |
//! | [`Skew::Zipf`] | in proportion to 1 / (r + 1)^s, any s > 0 | O(1), whatever n |
//! | [`Skew::Exponential`] | in proportion to e^(-rate r / n) | O(1) |
//! | [`Skew::HotSet`] | a share of the accesses goes to a share of the items, evenly | O(1) |
//!
//! Zipf draws invert the integral of x^-s and reject what the integral has too much of (Hörmann and
//! Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
//! 1996): no table, so n may be billions, and fewer than 1.2 tries on average for any s.
//!
//! **A hot spot that moves.** Rank r stands for item (r + shift) mod n, and the shift grows by
//! [`Moving::by`] every [`Moving::every_ns`]: what was hot cools down, the next items become hot,
//! the skew stays the same.
//!
//! **Imbalanced data** is the same skew applied to amounts: [`apportion`] deals whole districts to
//! warehouses in proportion to Zipf shares, so that they add up and everyone has one. Example: 40
//! districts, 4 warehouses, s = 1.5: 24, 8, 5, 3.
//!
//! The report is the share of accesses that went to the hottest hundredth of the items, at least
//! one, against the share that the distribution gives it.
//!
//! Left out: which items are neighbours. Ranks are adjacent item numbers, so with range partitions
//! the hot ones share a node; that is the paper's skewed partition access.

use std::fmt;

use plimsoll_types::random::Rng;
use serde::{Deserialize, Serialize};

use super::track::{Control, Merge, Tracker};
use super::unit;

/// How unevenly items are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skew {
    /// All alike.
    #[default]
    Uniform,
    /// Rank r as 1 / (r + 1)^s.
    Zipf {
        /// The exponent, above 0.
        s: f64,
    },
    /// Falling by a factor of e from each `1 / rate` of the items to the next.
    Exponential {
        /// How often it falls over all items, above 0.
        rate: f64,
    },
    /// Some items get a share of their own.
    HotSet {
        /// Share of the accesses, 0 to 1.
        accesses: f64,
        /// Share of the items that get them, 0 to 1; at least one item.
        items: f64,
    },
}

/// A hot spot on its way through the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moving {
    /// Time at one place; above 0.
    pub every_ns: u64,
    /// Items to the next place.
    pub by: u64,
}

/// Why a skew makes no sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SkewError {
    /// Nothing to choose from.
    NoItems,
    /// A parameter that has to be a number above 0.
    NotPositive {
        /// Which one.
        what: &'static str,
        /// What it was.
        value: f64,
    },
    /// A parameter that has to be a share.
    NotAShare {
        /// Which one.
        what: &'static str,
        /// What it was.
        value: f64,
    },
}

impl fmt::Display for SkewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkewError::NoItems => write!(f, "there is nothing to choose from"),
            SkewError::NotPositive { what, value } => write!(f, "{what} has to be above 0, not {value}"),
            SkewError::NotAShare { what, value } => {
                write!(f, "{what} is a share from 0 to 1, not {value}")
            }
        }
    }
}

impl std::error::Error for SkewError {}

/// Draws items of `0..n`.
#[derive(Clone, Debug)]
pub struct Chooser {
    skew: Skew,
    items: u64,
    zipf: Zipf,
    hot: u64,
    moving: Option<Moving>,
}

impl Chooser {
    /// Of so many items.
    pub fn new(skew: Skew, items: u64) -> Result<Chooser, SkewError> {
        if items == 0 {
            return Err(SkewError::NoItems);
        }
        let positive = |what, value: f64| {
            if value > 0.0 && value.is_finite() {
                Ok(())
            } else {
                Err(SkewError::NotPositive { what, value })
            }
        };
        let share = |what, value: f64| {
            if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(SkewError::NotAShare { what, value }) }
        };
        let mut zipf = Zipf::default();
        let mut hot = items;
        match skew {
            Skew::Uniform => {}
            Skew::Zipf { s } => {
                positive("the exponent of a Zipf distribution", s)?;
                zipf = Zipf::new(items, s);
            }
            Skew::Exponential { rate } => positive("the rate of an exponential distribution", rate)?,
            Skew::HotSet { accesses, items: of_items } => {
                share("the accesses to a hot set", accesses)?;
                share("the items of a hot set", of_items)?;
                hot = ((items as f64 * of_items).round() as u64).clamp(1, items);
            }
        }
        Ok(Chooser { skew, items, zipf, hot, moving: None })
    }

    /// The same with a hot spot that moves.
    pub fn moving(mut self, moving: Moving) -> Result<Chooser, SkewError> {
        if moving.every_ns == 0 {
            return Err(SkewError::NotPositive { what: "the time of a hot spot at one place", value: 0.0 });
        }
        self.moving = Some(moving);
        Ok(self)
    }

    /// Items.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Draws an item.
    pub fn draw(&self, now_ns: u64, rng: &mut Rng) -> u64 {
        let rank = match self.skew {
            Skew::Uniform => rng.below(self.items),
            Skew::Zipf { .. } => self.zipf.draw(rng) - 1,
            Skew::Exponential { rate } => {
                let at = -(unit(rng) * (-rate).exp_m1()).ln_1p() / rate;
                ((at * self.items as f64) as u64).min(self.items - 1)
            }
            Skew::HotSet { accesses, .. } => {
                if self.hot == self.items || unit(rng) < accesses {
                    rng.below(self.hot)
                } else {
                    self.hot + rng.below(self.items - self.hot)
                }
            }
        };
        (rank + self.shift(now_ns)) % self.items
    }

    /// The rank that an item has now.
    pub fn rank(&self, item: u64, now_ns: u64) -> u64 {
        (item + self.items - self.shift(now_ns)) % self.items
    }

    /// How far the hot spot has come, below the number of items.
    fn shift(&self, now_ns: u64) -> u64 {
        self.moving.map_or(0, |moving| {
            let steps = u128::from(now_ns / moving.every_ns) * u128::from(moving.by);
            (steps % u128::from(self.items)) as u64
        })
    }

    /// Share of all accesses that goes to the so many hottest items.
    pub fn share_of_hottest(&self, items: u64) -> f64 {
        let items = items.min(self.items);
        let part = items as f64 / self.items as f64;
        match self.skew {
            Skew::Uniform => part,
            Skew::Zipf { s } => harmonic(items, s) / harmonic(self.items, s),
            Skew::Exponential { rate } => (-rate * part).exp_m1() / (-rate).exp_m1(),
            Skew::HotSet { .. } if self.hot == self.items => part,
            Skew::HotSet { accesses, .. } if items <= self.hot => accesses * items as f64 / self.hot as f64,
            Skew::HotSet { accesses, .. } => {
                let cold = (items - self.hot) as f64 / (self.items - self.hot) as f64;
                accesses + (1.0 - accesses) * cold
            }
        }
    }

    /// The items that the report calls hot: a hundredth, at least one.
    pub fn head(&self) -> u64 {
        (self.items / 100).max(1)
    }
}

/// Rejection-inversion for ranks from 1.
#[derive(Clone, Copy, Debug, Default)]
struct Zipf {
    items: f64,
    s: f64,
    /// The integral at the left edge of rank 1, shortened to what rank 1 needs, and at the right
    /// edge of the last.
    from: f64,
    to: f64,
    /// Closer than this to its rank, an inverted point needs no test.
    sure: f64,
}

impl Zipf {
    fn new(items: u64, s: f64) -> Zipf {
        let mut zipf = Zipf { items: items as f64, s, ..Zipf::default() };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(zipf.items + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - 2f64.powf(-s));
        zipf
    }

    /// The integral of x^-s from 1, also for s = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.s) * log;
        log * if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 }
    }

    /// Where the integral is `area`.
    fn inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.s)).max(-1.0);
        (area * if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 }).exp()
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            if let Some(rank) = self.attempt(rng) {
                return rank;
            }
        }
    }

    /// A rank, or nothing if the point is in what the integral has too much of.
    fn attempt(&self, rng: &mut Rng) -> Option<u64> {
        let area = self.to + unit(rng) * (self.from - self.to);
        let x = self.inverse(area);
        let rank = x.round().clamp(1.0, self.items);
        let accepted = rank - x <= self.sure || area >= self.integral(rank + 0.5) - rank.powf(-self.s);
        accepted.then_some(rank as u64)
    }
}

/// The sum of 1 / r^s for r = 1..=n: the first terms one by one, the rest by Euler and Maclaurin.
fn harmonic(n: u64, s: f64) -> f64 {
    const EXACT: u64 = 1000;
    let head: f64 = (1..=n.min(EXACT)).map(|r| (r as f64).powf(-s)).sum();
    if n <= EXACT {
        return head;
    }
    let (a, b) = (EXACT as f64, n as f64);
    let zipf = Zipf { s, ..Zipf::default() };
    let ends = (b.powf(-s) - a.powf(-s)) / 2.0;
    let slopes = s * (a.powf(-s - 1.0) - b.powf(-s - 1.0)) / 12.0;
    head + zipf.integral(b) - zipf.integral(a) + ends + slopes
}

/// Deals `total` whole things to `holders` in proportion to Zipf shares, the first one most, at
/// least one each. Nothing if there are fewer things than holders. `s` = 0 deals evenly.
pub fn apportion(total: u64, holders: u32, s: f64) -> Option<Vec<u64>> {
    if holders == 0 || total < u64::from(holders) {
        return None;
    }
    let sum: f64 = harmonic(u64::from(holders), s);
    let exact: Vec<f64> = (1..=holders).map(|r| total as f64 * f64::from(r).powf(-s) / sum).collect();
    let mut dealt: Vec<u64> = exact.iter().map(|share| (share.floor() as u64).max(1)).collect();
    let lacking = |dealt: &[u64], i: usize| exact[i] - dealt[i] as f64;
    let holders = 0..holders as usize;
    let mut given: u64 = dealt.iter().sum();
    // One at a time to whom most is lacking, or from whom least is.
    while given < total {
        let most = |a: &usize, b: &usize| lacking(&dealt, *a).total_cmp(&lacking(&dealt, *b)).then(b.cmp(a));
        let to = holders.clone().max_by(most).expect("a holder");
        dealt[to] += 1;
        given += 1;
    }
    while given > total {
        let least = |a: &usize, b: &usize| lacking(&dealt, *a).total_cmp(&lacking(&dealt, *b));
        let from = holders.clone().filter(|&i| dealt[i] > 1).min_by(least).expect("someone has two");
        dealt[from] -= 1;
        given -= 1;
    }
    Some(dealt)
}

/// How skewed one terminal's accesses were.
#[derive(Clone, Debug, Default)]
pub struct SkewTally {
    hottest: Tracker,
}

impl SkewTally {
    /// Counts an access.
    pub fn record(&mut self, now_ns: u64, chooser: &Chooser, item: u64) {
        let head = chooser.head();
        let hot = f64::from(u8::from(chooser.rank(item, now_ns) < head));
        self.hottest.add(now_ns, chooser.share_of_hottest(head), hot);
    }

    /// Adds another terminal's.
    pub fn merge(&mut self, other: &SkewTally) {
        self.hottest.merge(&other.hottest);
    }

    /// The report: the share of accesses to the hottest hundredth of `what`.
    pub fn finish(&self, chooser: &Chooser, what: &str) -> Control {
        let name = format!("{what}: hottest {} of {}", chooser.head(), chooser.items());
        self.hottest.finish(name, "share of accesses", Merge::Mean)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECOND_NS;
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn chooser(skew: Skew, items: u64) -> Chooser {
        Chooser::new(skew, items).expect("sensible")
    }

    /// Draws and compares all ranks with what the distribution says: Pearson's statistic has a mean
    /// of the number of ranks and a variance of twice that.
    fn assert_follows(skew: Skew, items: u64) {
        let chooser = chooser(skew, items);
        let mut rng = Rng::new(items, 9);
        let draws = 400_000;
        let mut counts = vec![0u32; items as usize];
        (0..draws).for_each(|_| counts[chooser.draw(0, &mut rng) as usize] += 1);
        let mut before = 0.0;
        let mut statistic = 0.0;
        for (rank, &count) in counts.iter().enumerate() {
            let to_here = chooser.share_of_hottest(rank as u64 + 1);
            let expected = f64::from(draws) * (to_here - before);
            before = to_here;
            statistic += (f64::from(count) - expected).powi(2) / expected;
        }
        assert!((before - 1.0).abs() < 1e-9, "{skew:?}: all ranks have {before}");
        let ranks = items as f64;
        assert!(statistic < ranks + 5.0 * (2.0 * ranks).sqrt(), "{skew:?} of {items}: {statistic}");
    }

    #[test]
    fn draws_come_as_often_as_the_distribution_says() {
        for items in [2, 7, 180] {
            assert_follows(Skew::Uniform, items);
            for s in [0.2, 0.99, 1.0, 1.0 + 1e-10, 1.5] {
                assert_follows(Skew::Zipf { s }, items);
            }
            assert_follows(Skew::Exponential { rate: 0.5 }, items);
            assert_follows(Skew::Exponential { rate: 5.0 }, items);
            assert_follows(Skew::HotSet { accesses: 0.8, items: 0.2 }, items);
        }
        assert_follows(Skew::Zipf { s: 4.0 }, 7);
    }

    #[test]
    fn zipf_works_for_billions_of_items() {
        for s in [0.3, 0.99, 1.0, 1.5, 3.0] {
            let chooser = chooser(Skew::Zipf { s }, 4_000_000_000);
            let mut rng = Rng::new(3, 3);
            let draws = 200_000;
            let sample: Vec<u64> = (0..draws).map(|_| chooser.draw(0, &mut rng)).collect();
            assert!(sample.iter().all(|&item| item < 4_000_000_000));
            for head in [1, 10, 1_000, 1_000_000, 1_000_000_000] {
                let expected = chooser.share_of_hottest(head) * f64::from(draws);
                let count = sample.iter().filter(|&&item| item < head).count() as f64;
                let spread = 5.0 * expected.min(f64::from(draws) - expected).max(1.0).sqrt() + 3.0;
                assert!((count - expected).abs() < spread, "{s}, {head}: {count}, not {expected}");
            }
        }
    }

    #[test]
    fn few_points_are_rejected() {
        let mut rng = Rng::new(4, 4);
        for s in [0.01, 0.5, 0.99, 1.5, 2.0, 3.0, 5.0, 10.0] {
            for items in [2, 10, 1_000, 1_000_000_000] {
                let zipf = Zipf::new(items, s);
                let tries = 20_000;
                let hits = (0..tries).filter(|_| zipf.attempt(&mut rng).is_some()).count();
                assert!(hits as f64 > f64::from(tries) / 1.2, "{s} of {items}: {hits} of {tries}");
            }
        }
    }

    #[test]
    fn long_sums_are_as_good_as_adding_up() {
        for s in [0.1, 0.99, 1.0, 1.5, 3.0] {
            let sum: f64 = (1..=50_000).map(|r| f64::from(r).powf(-s)).sum();
            assert!((harmonic(50_000, s) / sum - 1.0).abs() < 1e-10, "{s}");
        }
    }

    #[test]
    fn one_item_and_extreme_hot_sets_work() {
        let mut rng = Rng::new(1, 1);
        for skew in [
            Skew::Uniform,
            Skew::Zipf { s: 1.2 },
            Skew::Exponential { rate: 3.0 },
            Skew::HotSet { accesses: 0.5, items: 0.0 },
        ] {
            assert!((0..100).all(|_| chooser(skew, 1).draw(0, &mut rng) == 0), "{skew:?}");
        }
        let all = chooser(Skew::HotSet { accesses: 0.1, items: 1.0 }, 10);
        assert_eq!(all.share_of_hottest(5), 0.5);
        let never = chooser(Skew::HotSet { accesses: 0.0, items: 0.1 }, 10);
        assert!((0..100).all(|_| never.draw(0, &mut rng) > 0));
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let refused = |skew, items| Chooser::new(skew, items).expect_err("nonsense").to_string();
        assert!(refused(Skew::Uniform, 0).contains("nothing to choose"));
        for s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refused(Skew::Zipf { s }, 5).contains("Zipf distribution has to be above 0"));
        }
        assert!(refused(Skew::Exponential { rate: 0.0 }, 5).contains("exponential"));
        assert!(refused(Skew::HotSet { accesses: 80.0, items: 0.2 }, 5).contains("not 80"));
        let still = chooser(Skew::Uniform, 5).moving(Moving { every_ns: 0, by: 1 });
        assert!(still.expect_err("nonsense").to_string().contains("at one place"));
    }

    #[test]
    fn a_hot_spot_moves_and_stays_as_hot() {
        let moving = Moving { every_ns: 10 * SECOND_NS, by: 30 };
        let chooser = chooser(Skew::Zipf { s: 1.5 }, 100).moving(moving).expect("sensible");
        let mut rng = Rng::new(2, 2);
        for (seconds, hottest) in [(0, 0), (9, 0), (10, 30), (25, 60), (45, 20), (1_000_000_005, 0)] {
            let now_ns = seconds * SECOND_NS;
            let mut counts = [0u32; 100];
            (0..2_000).for_each(|_| counts[chooser.draw(now_ns, &mut rng) as usize] += 1);
            let most = (0..100).max_by_key(|&item| counts[item]).expect("items") as u64;
            assert_eq!(most, hottest, "after {seconds} s");
            assert_eq!(chooser.rank(most, now_ns), 0);
            let share = f64::from(counts[most as usize]) / 2_000.0;
            assert!((share - chooser.share_of_hottest(1)).abs() < 0.05, "{share}");
        }
    }

    #[test]
    fn the_tally_reports_the_hottest_hundredth() {
        let chooser = chooser(Skew::Zipf { s: 0.99 }, 1_000);
        let mut rng = Rng::new(2, 2);
        let mut tally = SkewTally::default();
        for i in 0..50_000 {
            tally.record(i * 100_000, &chooser, chooser.draw(i * 100_000, &mut rng));
        }
        let control = tally.finish(&chooser, "items");
        assert_eq!(control.name, "items: hottest 10 of 1000");
        let overall = control.overall(0..5).expect("observed");
        assert!((overall.intended - chooser.share_of_hottest(10)).abs() < 1e-9);
        assert!(overall.deviation().abs() < 0.02, "{overall:?}");
    }

    #[test]
    fn imbalanced_data_adds_up_and_leaves_nobody_without() {
        assert_eq!(apportion(40, 4, 1.5), Some(vec![24, 8, 5, 3]));
        assert_eq!(apportion(40, 4, 0.0), Some(vec![10, 10, 10, 10]));
        assert_eq!(apportion(3, 4, 1.0), None);
        assert_eq!(apportion(5, 0, 1.0), None);
        let large = apportion(1_800, 180, 1.5).expect("enough");
        let share = large[0] as f64 / 1_800.0;
        assert!((share - 1.0 / harmonic(180, 1.5)).abs() < 0.02, "{share}");
    }

    proptest! {
        #[test]
        fn deals_are_whole_complete_and_ordered(
            holders in 1u32..200, more in 0u64..2_000, s in 0.0f64..3.0
        ) {
            let total = u64::from(holders) + more;
            let dealt = apportion(total, holders, s).expect("enough");
            prop_assert_eq!(dealt.iter().sum::<u64>(), total);
            prop_assert!(dealt.iter().all(|&n| n >= 1));
            prop_assert!(dealt.windows(2).all(|pair| pair[0] >= pair[1]), "{:?}", dealt);
        }
    }
}
