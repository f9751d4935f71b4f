//! Outages, and availability as the paper measures it (section 4.4, Equation 4).
//!
//! ```text
//! R_e = 1 - |TPS_e - TPS_n| / TPS_n        how much of the throughput is left under an exception
//! T_e = 1 / (t + 1)                        how soon it is stable, t in seconds
//! ```
//!
//! TPS_n is throughput without the exception, TPS_e with it, and t the time until throughput is
//! *stable* again. The paper does not say how stability is recognized. **Our rule**, on a curve of
//! commits per tenth of a second:
//!
//! 1. *Normal*: TPS_n is the mean from the end of the warm-up to the first fault of the run.
//! 2. *Under it*: TPS_e is the mean over the fault's own duration, from its begin to its end or to
//!    the end of the run. Only tenths of a second that lie within it as a whole count, so that
//!    nothing from before or after enters. What begins at several places within a second is one
//!    fault.
//! 3. *Overlap*: tenths in which another fault held as well are left out. A fault that was never
//!    alone is measured together with the others, which are named.
//! 4. *Too short*: a fault with less than half a second of such tenths, or in which fewer than ten
//!    commits would have been normal, has no figures and says so.
//! 5. *Settled*: after four seconds or more under the fault, the median over all windows of one
//!    second in the second half of that time is the level that throughput has settled at. If it is
//!    0, or the windows vary by more than half of it, throughput has not settled.
//! 6. *Low*: a window is low if it is below that level by more than a tenth and by more than three
//!    standard deviations of the settled windows, so that the noise of a slow database is not an
//!    outage.
//! 7. *Time to recovery*: t ends where the last low window under the fault begins to be over: after
//!    the first tenth of a second that no low window starts with. Without a low window t is 0. A
//!    window in the last fifth that is low still means that throughput has not settled.
//! 8. A fault under which throughput did not settle, or that was too short to see, ends t with the
//!    first moment from which throughput is *normal again*: the same rule with TPS_n for the level,
//!    from the fault's end to the next fault or the end of the run. If that moment does not come, t
//!    is infinite and T_e is 0; if there is too little time to see, there is no T_e.
//!
//! Example: 1000/s, a node dies at 120 s and stays dead, nothing commits until 130 s, then 800/s
//! until the end at 300 s. TPS_e = 800 * 170 / 180 = 756, R_e = 0.756. The window that begins at
//! 129.8 has 640/s of 720 and is the last low one: t = 9.9, T_e = 0.09.
//!
//! An *outage* is a second or more without any commit.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::document::Fault;

/// Tenths of a second in the windows that are compared.
const WINDOW: usize = 10;
/// Fewest tenths of a second of a fault whose throughput is measured.
const FAULT_MIN: usize = 5;
/// Fewest commits that would have been normal meanwhile.
const COMMITS_MIN: f64 = 10.0;
/// Shortest time in which throughput can be seen to settle, in tenths.
const INTERVAL_MIN: usize = 40;
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

/// What a fault did to throughput. A figure that cannot be measured is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Availability {
    /// The fault.
    pub fault: String,
    /// Where it was, all places.
    pub target: String,
    /// When it began, in seconds of the run.
    pub from_seconds: f64,
    /// How long it held, within the run.
    pub lasted_seconds: f64,
    /// Other faults that held all the time: the figures are of all of them together.
    pub together_with: Vec<String>,
    /// TPS_n.
    pub normal_tps: Option<f64>,
    /// TPS_e.
    pub fault_tps: Option<f64>,
    /// R_e: 1 is no loss. Below 0 if throughput more than doubled.
    pub r_e: Option<f64>,
    /// Where throughput settled while the fault held.
    pub settled_tps: Option<f64>,
    /// T_e: 1 is at once, 0 is never.
    pub t_e: Option<f64>,
    /// t; nothing if T_e is 0 or not known.
    pub recovery_seconds: Option<f64>,
    /// From the fault's end until throughput was normal; nothing if it was not, or there was too
    /// little time to see.
    pub normal_again_seconds: Option<f64>,
    /// Why there is no R_e.
    pub not_measured: Option<String>,
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

/// R_e and T_e of every fault.
pub fn availability(tenths: &[u64], warm_up_seconds: u64, faults: &[Fault]) -> Vec<Availability> {
    let spans: Vec<Span> = at_once(faults).into_iter().map(|fault| Span::new(fault, tenths.len())).collect();
    let begin = (10 * warm_up_seconds as usize).min(tenths.len());
    let first = spans.first().map_or(begin, |span| span.touched.start).max(begin);
    let normal = Some(&tenths[begin..first]).filter(|normal| normal.len() >= WINDOW);
    let normal = normal.map(|normal| (per_second(normal.iter()), deviation(&windows(normal))));
    let normal = normal.filter(|(tps, _)| *tps > 0.0);
    (0..spans.len()).map(|at| judge(tenths, &spans, at, normal)).collect()
}

/// A fault as tenths of a second.
struct Span {
    fault: Fault,
    /// Those that lie within it as a whole.
    within: Range<usize>,
    /// Those of which a part lies within it.
    touched: Range<usize>,
    /// Whether it was undone before the end of the run.
    undone: bool,
}

impl Span {
    fn new(fault: Fault, end: usize) -> Span {
        // Tenths are not exact in binary.
        const ALMOST: f64 = 1e-6;
        let to = fault.to_seconds.map_or(f64::INFINITY, |to| 10.0 * to);
        let from = 10.0 * fault.from_seconds;
        // A cast brings what is out of range to its bounds.
        let down = |tenth: f64| ((tenth + ALMOST).floor() as usize).min(end);
        let up = |tenth: f64| ((tenth - ALMOST).ceil() as usize).min(end);
        let within = up(from)..down(to).max(up(from));
        Span { within, touched: down(from)..up(to), undone: to <= end as f64, fault }
    }

    fn name(&self) -> String {
        format!("{} {}", self.fault.name, self.fault.target)
    }
}

/// The figures of one of the faults; `normal` is TPS_n and the deviation of its windows.
fn judge(tenths: &[u64], spans: &[Span], at: usize, normal: Option<(f64, f64)>) -> Availability {
    let span = &spans[at];
    let others = || spans.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
    let lasted_seconds = match span.fault.to_seconds.filter(|_| span.undone) {
        Some(to) => to - span.fault.from_seconds,
        None => (tenths.len() as f64 / 10.0 - span.fault.from_seconds).max(0.0),
    };
    let mut found = Availability {
        fault: span.fault.name.clone(),
        target: span.fault.target.clone(),
        from_seconds: span.fault.from_seconds,
        lasted_seconds,
        ..Availability::default()
    };
    let Some((normal_tps, normal_deviation)) = normal else {
        found.not_measured =
            Some("there was no second of normal throughput before the first fault".to_owned());
        return found;
    };
    found.normal_tps = Some(normal_tps);
    if span.touched.is_empty() {
        found.not_measured = Some("it began when the run was over".to_owned());
        return found;
    }

    // TPS_e and R_e.
    let alone = |tenth: &usize| !others().any(|other| other.touched.contains(tenth));
    let mut own: Vec<usize> = span.within.clone().filter(alone).collect();
    if own.len() < FAULT_MIN {
        own = span.within.clone().collect();
        let overlaps =
            |other: &&Span| other.touched.start < span.touched.end && span.touched.start < other.touched.end;
        found.together_with = others().filter(overlaps).map(Span::name).collect();
    }
    if own.len() < FAULT_MIN || normal_tps * (own.len() as f64 / 10.0) < COMMITS_MIN {
        found.not_measured = Some("too short to measure".to_owned());
    } else {
        let fault_tps = per_second(own.iter().map(|&tenth| &tenths[tenth]));
        (found.fault_tps, found.r_e) = (Some(fault_tps), Some(r_e(normal_tps, fault_tps)));
    }

    // t and T_e. Another fault that begins ends what can be seen of this one.
    let next = |from: usize| {
        let begins = others().map(|other| other.touched.start).filter(|begin| *begin > from);
        begins.min().unwrap_or(tenths.len())
    };
    let interval =
        &tenths[span.within.start..span.within.end.min(next(span.touched.start)).max(span.within.start)];
    let seen = interval.len() >= INTERVAL_MIN;
    let mut recovered = None;
    if seen {
        let settled = windows(&interval[interval.len() / 2..]);
        let (level, spread) = (median(&settled), deviation(&settled));
        if level > 0.0 && spread <= VARIATION_MAX * level {
            recovered = recovery(interval, level, spread);
            found.settled_tps = recovered.map(|_| level);
        }
    }
    let mut never = seen && !span.undone;
    if span.undone {
        let end = span.touched.end;
        let still = others().any(|other| other.touched.start <= end && end < other.touched.end);
        let after = Some(&tenths[end..next(end).max(end)]);
        if let Some(after) = after.filter(|after| !still && after.len() >= INTERVAL_MIN) {
            found.normal_again_seconds = recovery(after, normal_tps, normal_deviation);
            recovered = recovered.or(found.normal_again_seconds.map(|again| lasted_seconds + again));
            never = true;
        }
    }
    found.recovery_seconds = recovered;
    found.t_e = (recovered.is_some() || never).then(|| t_e(recovered));
    found
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

/// Transactions per second, of commits by tenth.
fn per_second<'a>(tenths: impl ExactSizeIterator<Item = &'a u64>) -> f64 {
    let seconds = tenths.len() as f64 / 10.0;
    tenths.sum::<u64>() as f64 / seconds
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
    fn a_dead_node_costs_a_quarter_and_ten_seconds() {
        let tenths = curve(&[(60.0, 0), (60.0, 1000), (10.0, 0), (170.0, 800)]);
        let judged = availability(&tenths, 60, &[fault(120.0, None)]);
        let [only] = judged.as_slice() else { panic!("{judged:?}") };
        assert_eq!((only.normal_tps, only.settled_tps), (Some(1000.0), Some(800.0)));
        assert!(near(only.fault_tps.expect("measured"), 800.0 * 170.0 / 180.0, 1e-9));
        assert!(near(only.r_e.expect("measured"), 0.7555, 1e-3));
        assert_eq!(only.recovery_seconds, Some(9.9));
        assert!(near(only.t_e.expect("seen"), 1.0 / 10.9, 1e-9));
        assert_eq!((only.normal_again_seconds, only.lasted_seconds), (None, 180.0));
        assert_eq!(outages(&tenths, 60), [Outage { from_seconds: 120.0, to_seconds: 130.0 }]);
    }

    #[test]
    fn a_fault_that_is_undone_is_judged_while_it_lasts_and_after() {
        let tenths = curve(&[(20.0, 1000), (2.0, 300), (28.0, 600), (3.0, 500), (47.0, 1000), (20.0, 900)]);
        let judged = availability(&tenths, 5, &[fault(20.0, Some(50.0))]);
        assert!(near(judged[0].fault_tps.expect("measured"), 580.0, 1e-9));
        assert!(near(judged[0].r_e.expect("measured"), 0.58, 1e-9));
        assert_eq!(judged[0].settled_tps, Some(600.0));
        assert!(near(judged[0].recovery_seconds.expect("settled"), 1.9, 0.11));
        assert_eq!(judged[0].normal_again_seconds, Some(2.8), "the window from 2.8 on has 900 of 1000");
    }

    #[test]
    fn the_figures_of_a_short_fault_are_of_its_own_duration() {
        let tenths = curve(&[(6.0, 500), (4.0, 0), (4.0, 500), (3.0, 10), (5.0, 500)]);
        // Tenths that it shares with what was before or after do not count.
        let judged = availability(&tenths, 1, &[fault(5.97, Some(10.04)), fault(14.0, Some(17.0))]);
        assert_eq!((judged[0].fault_tps, judged[0].r_e), (Some(0.0), Some(0.0)));
        assert_eq!((judged[1].fault_tps, judged[1].r_e), (Some(10.0), Some(r_e(500.0, 10.0))));
        assert!(near(judged[0].lasted_seconds, 4.07, 1e-9));
        // Nothing settles at zero, and three seconds do not show it: both end with what is normal.
        assert_eq!(judged[0].settled_tps, None);
        assert_eq!(judged.iter().map(|one| one.normal_again_seconds).collect::<Vec<_>>(), [None, Some(0.0)]);
        assert_eq!(
            (judged[0].t_e, judged[1].recovery_seconds),
            (None, Some(3.0)),
            "3.9 s until the next fault"
        );
        let whole = availability(&tenths[..140], 1, &[fault(6.0, Some(10.0))]);
        assert_eq!((whole[0].recovery_seconds, whole[0].t_e), (Some(4.0), Some(0.2)));
    }

    #[test]
    fn a_fault_that_is_too_short_says_so() {
        let tenths = curve(&[(10.0, 1000), (0.3, 0), (9.7, 1000)]);
        let judged = availability(&tenths, 1, &[fault(10.0, Some(10.3))]);
        assert_eq!((judged[0].fault_tps, judged[0].r_e), (None, None));
        assert_eq!(judged[0].not_measured.as_deref(), Some("too short to measure"));
        // Five commits in a second may be three or eight.
        let slow: Vec<u64> = (0..200).map(|tenth| tenth % 2).collect();
        assert!(availability(&slow, 1, &[fault(10.0, Some(11.0))])[0].not_measured.is_some());
        assert!(availability(&slow, 1, &[fault(10.0, Some(13.0))])[0].fault_tps.is_some());
    }

    #[test]
    fn faults_that_overlap_are_told_apart_where_they_can_be() {
        let named = |name: &str, from, to| Fault { name: name.into(), ..fault(from, Some(to)) };
        let tenths = curve(&[(10.0, 1000), (10.0, 600), (10.0, 100), (10.0, 800), (10.0, 1000)]);
        let judged = availability(&tenths, 1, &[named("delay", 10.0, 30.0), named("load", 20.0, 40.0)]);
        let tps: Vec<_> = judged.iter().map(|one| (one.fault_tps, one.together_with.len())).collect();
        assert_eq!(tps, [(Some(600.0), 0), (Some(800.0), 0)]);
        assert_eq!(judged[0].normal_again_seconds, None, "the other still held");
        // One within another.
        let judged = availability(&tenths, 1, &[named("delay", 10.0, 40.0), named("pause", 20.0, 30.0)]);
        assert_eq!((judged[0].fault_tps, judged[1].fault_tps), (Some(700.0), Some(100.0)));
        assert_eq!(judged[1].together_with, ["delay n1"]);
    }

    #[test]
    fn noise_is_no_outage_however_slow_the_database() {
        for tps in [100, 300, 5_000] {
            let tenths = noisy(&[(60.0, tps), (8.0, 0), (112.0, tps * 7 / 10)]);
            let judged = availability(&tenths, 10, &[fault(60.0, None)]);
            assert!(
                near(judged[0].settled_tps.expect("settled"), 0.7 * tps as f64, 0.08 * tps as f64),
                "{judged:?}"
            );
            let t = judged[0].recovery_seconds.expect("settled");
            assert!(near(t, 8.0, 1.0), "{tps}: {t}");
            let unharmed = noisy(&[(180.0, tps)]);
            let judged = availability(&unharmed, 10, &[fault(60.0, None)]);
            assert!(judged[0].recovery_seconds.expect("settled") < 60.0, "{judged:?}");
            assert!(judged[0].r_e.expect("measured") > 0.9, "{judged:?}");
        }
    }

    #[test]
    fn who_never_comes_back_or_never_settles_has_no_recovery() {
        let dead = curve(&[(60.0, 1000), (60.0, 0)]);
        let judged = availability(&dead, 10, &[fault(60.0, None)]);
        assert_eq!((judged[0].r_e, judged[0].t_e, judged[0].recovery_seconds), (Some(0.0), Some(0.0), None));
        assert_eq!(outages(&dead, 10), [Outage { from_seconds: 60.0, to_seconds: 120.0 }]);
        let mut pieces = vec![(60.0, 1000)];
        (0..20).for_each(|i| pieces.push((3.0, if i % 2 == 0 { 0 } else { 1000 })));
        let flapping = curve(&pieces);
        let judged = availability(&flapping, 10, &[fault(60.0, None)]);
        assert_eq!((judged[0].t_e, judged[0].recovery_seconds), (Some(0.0), None));
    }

    #[test]
    fn t_goes_on_after_a_short_fault_until_throughput_is_normal() {
        let tenths = curve(&[(30.0, 1000), (6.0, 0), (34.0, 1000), (4.0, 0), (36.0, 1000)]);
        let judged = availability(&tenths, 10, &[fault(70.0, Some(71.0)), fault(30.0, Some(32.0))]);
        let recovery: Vec<_> = judged.iter().map(|one| one.recovery_seconds).collect();
        assert_eq!(recovery, [Some(5.9), Some(3.9)]);
        assert!(judged.iter().all(|one| one.r_e == Some(0.0)));
        assert_eq!(judged[0].normal_again_seconds, Some(3.9));
    }

    #[test]
    fn a_fault_at_several_places_at_once_is_one() {
        let tenths = curve(&[(30.0, 1000), (10.0, 500), (30.0, 1000)]);
        let mut faults = [fault(30.0, Some(40.0)), fault(30.2, Some(39.9)), fault(60.0, Some(62.0))];
        faults[0].target = "n1".to_owned();
        faults[1].target = "n2".to_owned();
        let judged = availability(&tenths, 10, &faults);
        assert_eq!(
            (judged.len(), judged[0].target.as_str(), judged[0].fault_tps),
            (2, "n1, n2", Some(500.0))
        );
    }

    #[test]
    fn what_cannot_be_measured_says_why() {
        let tenths = curve(&[(60.0, 1000)]);
        let why = |from, to| {
            let judged = availability(&tenths, 10, &[fault(from, to)]);
            assert_eq!((judged[0].r_e, judged[0].t_e), (None, None), "{judged:?}");
            judged[0].not_measured.clone().expect("a reason")
        };
        assert!(why(10.5, None).contains("no second of normal throughput"));
        assert!(why(5.0, Some(6.0)).contains("no second of normal throughput"));
        assert!(why(59.8, None).contains("too short"));
        assert!(why(1e9, None).contains("when the run was over"));
        let late = &availability(&tenths, 10, &[fault(58.0, None)])[0];
        assert_eq!((late.fault_tps, late.t_e), (Some(1000.0), None), "two seconds do not settle");
        assert_eq!(availability(&tenths, 10, &[]), []);
        assert_eq!(availability(&[], 10, &[fault(5.0, None)]).len(), 1);
        assert_eq!(outages(&[], 10), []);
        assert_eq!(outages(&curve(&[(5.0, 100), (0.9, 0), (5.0, 100)]), 0), [], "shorter than a second");
    }
}
