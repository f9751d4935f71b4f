//! Outages, and availability as the paper measures it (section 4.4, Equation 4).
//!
//! ```text
//! R_e = 1 - |TPS_e - TPS_n| / TPS_n        how much of the throughput is left under an exception
//! T_e = 1 / (t + 1)                        how soon it is stable, t in seconds
//! ```
//!
//! TPS_n is throughput without the exception, TPS_e with it, and t the time until the *stable*
//! throughput TPS_e is reached. The paper does not say how stability is recognized. **Our rule**,
//! on a curve of commits per tenth of a second:
//!
//! 1. *Normal*: TPS_n is the mean from the end of the warm-up to the first fault of the run.
//! 2. *Interval*: what begins at several places within a second is one fault. From its begin to its
//!    end if it lasts ten seconds or more; a shorter one, and one that is never undone, counts
//!    until the next fault or the end of the run. Less than four seconds are not judged.
//! 3. *Settled*: TPS_e is the median over all windows of one second in the second half of the
//!    interval.
//! 4. *Low*: a window is low if it is below TPS_e by more than a tenth and by more than three
//!    standard deviations of the settled windows, so that the noise of a slow database is not an
//!    outage.
//! 5. *Time to recovery*: t ends where the last low window of the interval begins to be over: after
//!    the first tenth of a second that no low window starts with. Without a low window t is 0.
//! 6. A database that is still low in the last fifth of the interval, commits nothing, or whose
//!    settled windows vary by more than half of TPS_e has not settled: t is infinite and T_e is 0.
//!
//! The same rule with TPS_n in place of TPS_e, from the fault's end on, gives the time *until
//! normal again*.
//!
//! Example: 1000/s, a node dies at 120 s and stays dead, nothing commits until 130 s, then 800/s
//! until the end. TPS_e = 800, R_e = 0.8. The window that begins at 129.8 has 640/s of 720 and is
//! the last low one: t = 9.9, T_e = 0.09.
//!
//! An *outage* is a second or more without any commit.

use serde::{Deserialize, Serialize};

use super::document::Fault;

/// Tenths of a second in the windows that are compared.
const WINDOW: usize = 10;
/// Shortest interval that is judged, and shortest fault that is an interval of its own, in tenths.
const INTERVAL_MIN: usize = 40;
const FAULT_MIN: usize = 100;
/// A tenth below is still as good.
const LOW: f64 = 0.1;
/// Standard deviations of noise.
const NOISE: f64 = 3.0;
/// Settled windows do not vary more, as a share of their median.
const VARIATION_MAX: f64 = 0.5;

/// A time without any commit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outage {
    /// When it began, in seconds of the run.
    pub from_seconds: f64,
    /// When it was over.
    pub to_seconds: f64,
}

/// What a fault did to throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Availability {
    /// The fault.
    pub fault: String,
    /// Where it was, all places.
    pub target: String,
    /// When it began, in seconds of the run.
    pub from_seconds: f64,
    /// TPS_n.
    pub normal_tps: f64,
    /// TPS_e.
    pub fault_tps: f64,
    /// R_e: 1 is no loss. Below 0 if throughput more than doubled.
    pub r_e: f64,
    /// T_e: 1 is at once, 0 is never.
    pub t_e: f64,
    /// t; nothing if throughput never settled.
    pub recovery_seconds: Option<f64>,
    /// From the fault's end until throughput was normal; nothing if it was not, or there was too
    /// little time to see.
    pub normal_again_seconds: Option<f64>,
}

/// Equation 4, first part.
pub fn r_e(normal_tps: f64, fault_tps: f64) -> f64 {
    1.0 - (fault_tps - normal_tps).abs() / normal_tps
}

/// Equation 4, second part. Never is 0.
pub fn t_e(recovery_seconds: Option<f64>) -> f64 {
    recovery_seconds.map_or(0.0, |t| 1.0 / (t + 1.0))
}

/// All outages after the warm-up, on a curve of commits per tenth of a second.
pub fn outages(tenths: &[u64], warm_up_seconds: u64) -> Vec<Outage> {
    let mut outages = Vec::new();
    let mut quiet = 0;
    let from = (10 * warm_up_seconds as usize).min(tenths.len());
    for (i, &commits) in tenths[from..].iter().chain([&1]).enumerate() {
        if commits == 0 {
            quiet += 1;
            continue;
        }
        if quiet >= WINDOW {
            let at = |tenth: usize| (from + tenth) as f64 / 10.0;
            outages.push(Outage { from_seconds: at(i - quiet), to_seconds: at(i) });
        }
        quiet = 0;
    }
    outages
}

/// R_e and T_e of every fault that can be judged.
pub fn availability(tenths: &[u64], warm_up_seconds: u64, faults: &[Fault]) -> Vec<Availability> {
    let faults = at_once(faults);
    let tenth = |seconds: f64| ((seconds * 10.0).round().max(0.0) as usize).min(tenths.len());
    let begin = 10 * warm_up_seconds as usize;
    let Some(first) = faults.first().map(|fault| tenth(fault.from_seconds)) else { return Vec::new() };
    if first < begin + WINDOW {
        return Vec::new();
    }
    let normal = &tenths[begin..first];
    let normal_tps = normal.iter().sum::<u64>() as f64 / (normal.len() as f64 / 10.0);
    if normal_tps <= 0.0 {
        return Vec::new();
    }
    let normal_deviation = deviation(&windows(normal));
    let judge = |(i, fault): (usize, &Fault)| {
        let from = tenth(fault.from_seconds);
        let next = faults.get(i + 1).map_or(tenths.len(), |next| tenth(next.from_seconds));
        let to = fault.to_seconds.map(tenth);
        let until = to.filter(|to| *to >= from + FAULT_MIN).unwrap_or(next).min(next);
        let interval = tenths.get(from..until).filter(|interval| interval.len() >= INTERVAL_MIN)?;
        let settled = windows(&interval[interval.len() / 2..]);
        let (fault_tps, spread) = (median(&settled), deviation(&settled));
        let stable = fault_tps > 0.0 && spread <= VARIATION_MAX * fault_tps;
        let recovery_seconds = stable.then(|| recovery(interval, fault_tps, spread)).flatten();
        let after = to.and_then(|to| tenths.get(to..next)).filter(|after| after.len() >= INTERVAL_MIN);
        Some(Availability {
            fault: fault.name.clone(),
            target: fault.target.clone(),
            from_seconds: fault.from_seconds,
            normal_tps,
            fault_tps,
            r_e: r_e(normal_tps, fault_tps),
            t_e: t_e(recovery_seconds),
            recovery_seconds,
            normal_again_seconds: after.and_then(|after| recovery(after, normal_tps, normal_deviation)),
        })
    };
    faults.iter().enumerate().filter_map(judge).collect()
}

/// Faults by their begin; what begins at several places within a second is one fault.
fn at_once(faults: &[Fault]) -> Vec<Fault> {
    let mut sorted = faults.to_vec();
    sorted.sort_by(|a, b| a.from_seconds.total_cmp(&b.from_seconds));
    let mut joined: Vec<Fault> = Vec::new();
    for fault in sorted {
        let with = |known: &&mut Fault| {
            known.name == fault.name
                && known.target != fault.target
                && fault.from_seconds - known.from_seconds < 1.0
        };
        match joined.last_mut().filter(with) {
            Some(known) => {
                known.target += &format!(", {}", fault.target);
                known.to_seconds = known.to_seconds.zip(fault.to_seconds).map(|(a, b)| a.max(b));
            }
            None => joined.push(fault),
        }
    }
    joined
}

/// Seconds from the interval's begin until throughput is not low any more; nothing if it is in the
/// last fifth.
fn recovery(interval: &[u64], tps: f64, deviation: f64) -> Option<f64> {
    let low = tps - (LOW * tps).max(NOISE * deviation);
    let windows = windows(interval);
    match windows.iter().rposition(|window| *window < low) {
        None => Some(0.0),
        Some(last) if last + 1 >= windows.len() - windows.len() / 5 => None,
        Some(last) => Some((last + 1) as f64 / 10.0),
    }
}

/// Transactions per second in every window of one second.
fn windows(tenths: &[u64]) -> Vec<f64> {
    tenths.windows(WINDOW).map(|window| window.iter().sum::<u64>() as f64).collect()
}

fn median(values: &[f64]) -> f64 {
    super::summary::quantile(values, 0.5)
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_types::random::Rng;

    fn fault(from: f64, to: Option<f64>) -> Fault {
        Fault { name: "kill".into(), target: "n1".into(), from_seconds: from, to_seconds: to }
    }

    /// A curve of pieces: seconds, rate.
    fn curve(pieces: &[(f64, u64)]) -> Vec<u64> {
        pieces.iter().flat_map(|(seconds, tps)| vec![tps / 10; (seconds * 10.0) as usize]).collect()
    }

    /// The same with the noise of independent commits.
    fn noisy(pieces: &[(f64, u64)]) -> Vec<u64> {
        let mut rng = Rng::new(1, 1);
        let poisson = |mean: u64| (0..20 * mean).filter(|_| rng.below(20) == 0).count() as u64;
        curve(pieces).into_iter().map(poisson).collect()
    }

    fn near(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance
    }

    #[test]
    fn the_equations_are_the_papers() {
        assert!(near(r_e(1000.0, 800.0), 0.8, 1e-12) && near(r_e(1000.0, 1200.0), 0.8, 1e-12));
        assert_eq!((t_e(Some(0.0)), t_e(Some(1.0)), t_e(Some(9.0)), t_e(None)), (1.0, 0.5, 0.1, 0.0));
    }

    #[test]
    fn a_dead_node_costs_a_fifth_and_ten_seconds() {
        let tenths = curve(&[(60.0, 0), (60.0, 1000), (10.0, 0), (170.0, 800)]);
        let judged = availability(&tenths, 60, &[fault(120.0, None)]);
        let [only] = judged.as_slice() else { panic!("{judged:?}") };
        assert_eq!((only.normal_tps, only.fault_tps, only.recovery_seconds), (1000.0, 800.0, Some(9.9)));
        assert!(near(only.r_e, 0.8, 1e-9) && near(only.t_e, 1.0 / 10.9, 1e-9));
        assert_eq!(only.normal_again_seconds, None);
        assert_eq!(outages(&tenths, 60), [Outage { from_seconds: 120.0, to_seconds: 130.0 }]);
    }

    #[test]
    fn a_fault_that_is_undone_is_judged_while_it_lasts_and_after() {
        let tenths = curve(&[(20.0, 1000), (2.0, 300), (28.0, 600), (3.0, 500), (47.0, 1000), (20.0, 900)]);
        let judged = availability(&tenths, 5, &[fault(20.0, Some(50.0))]);
        assert!(near(judged[0].fault_tps, 600.0, 1e-9) && near(judged[0].r_e, 0.6, 1e-9));
        assert!(near(judged[0].recovery_seconds.expect("settled"), 1.9, 0.11));
        assert_eq!(judged[0].normal_again_seconds, Some(2.8), "the window from 2.8 on has 900 of 1000");
    }

    #[test]
    fn noise_is_no_outage_however_slow_the_database() {
        for tps in [100, 300, 5_000] {
            let tenths = noisy(&[(60.0, tps), (8.0, 0), (112.0, tps * 7 / 10)]);
            let judged = availability(&tenths, 10, &[fault(60.0, None)]);
            assert!(near(judged[0].r_e, 0.7, 0.08), "{tps}: {judged:?}");
            let t = judged[0].recovery_seconds.expect("settled");
            assert!(near(t, 8.0, 1.0), "{tps}: {t}");
            let unharmed = noisy(&[(180.0, tps)]);
            let judged = availability(&unharmed, 10, &[fault(60.0, None)]);
            assert!(judged[0].recovery_seconds.expect("settled") < 60.0 && judged[0].r_e > 0.9, "{judged:?}");
        }
    }

    #[test]
    fn who_never_comes_back_or_never_settles_has_no_recovery() {
        let dead = curve(&[(60.0, 1000), (60.0, 0)]);
        let judged = availability(&dead, 10, &[fault(60.0, None)]);
        assert_eq!((judged[0].r_e, judged[0].t_e, judged[0].recovery_seconds), (0.0, 0.0, None));
        assert_eq!(outages(&dead, 10), [Outage { from_seconds: 60.0, to_seconds: 120.0 }]);
        let mut pieces = vec![(60.0, 1000)];
        (0..20).for_each(|i| pieces.push((3.0, if i % 2 == 0 { 0 } else { 1000 })));
        let flapping = curve(&pieces);
        let judged = availability(&flapping, 10, &[fault(60.0, None)]);
        assert_eq!((judged[0].t_e, judged[0].recovery_seconds), (0.0, None));
    }

    #[test]
    fn a_short_fault_counts_until_the_next_one() {
        let tenths = curve(&[(30.0, 1000), (6.0, 0), (34.0, 1000), (4.0, 0), (36.0, 1000)]);
        let judged = availability(&tenths, 10, &[fault(70.0, Some(71.0)), fault(30.0, Some(32.0))]);
        let recovery: Vec<_> = judged.iter().map(|one| one.recovery_seconds).collect();
        assert_eq!(recovery, [Some(5.9), Some(3.9)]);
        assert!(judged.iter().all(|one| one.r_e == 1.0));
        assert_eq!(judged[0].normal_again_seconds, Some(3.9));
    }

    #[test]
    fn a_fault_at_several_places_at_once_is_one() {
        let tenths = curve(&[(30.0, 1000), (10.0, 500), (30.0, 1000)]);
        let mut faults = [fault(30.0, Some(40.0)), fault(30.2, Some(40.1)), fault(60.0, Some(62.0))];
        faults[0].target = "n1".to_owned();
        faults[1].target = "n2".to_owned();
        let judged = availability(&tenths, 10, &faults);
        assert_eq!((judged.len(), judged[0].target.as_str(), judged[0].fault_tps), (2, "n1, n2", 500.0));
    }

    #[test]
    fn what_cannot_be_judged_is_not() {
        let tenths = curve(&[(60.0, 1000)]);
        assert_eq!(availability(&tenths, 10, &[]), []);
        assert_eq!(availability(&tenths, 10, &[fault(10.5, None)]), [], "no second before it");
        assert_eq!(availability(&tenths, 10, &[fault(58.0, None)]), [], "no time after it");
        assert_eq!(availability(&tenths, 10, &[fault(1e9, None)]), [], "after the run");
        assert_eq!(availability(&[], 10, &[fault(5.0, None)]), []);
        assert_eq!(outages(&[], 10), []);
        assert_eq!(outages(&curve(&[(5.0, 100), (0.9, 0), (5.0, 100)]), 0), [], "shorter than a second");
    }
}
