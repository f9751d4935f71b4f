//! What a pair reaches at a load: latency over throughput, of which a curve is made.

use plimsoll_page::units;
use serde::Serialize;

use super::model::{Run, Spread};

/// A pair at one load of an axis: medians over the repetitions, with their ranges.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    /// The pair, `occ/dst`.
    pub of: String,
    /// The load, as on the command line: `8`, `50%`.
    pub at_load: String,
    /// Transactions in flight per shard; under an open loop, at most.
    pub concurrency: u64,
    /// Transactions per second over all shards that were asked for; absent under a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Repetitions that came to their end.
    pub runs: u64,
    /// Transactions committed per second.
    pub throughput_tps: Spread,
    /// Median latency of all transactions that are counted, in microseconds.
    pub p50_us: Spread,
    /// And its 99th percentile.
    pub p99_us: Spread,
    /// Share of attempts that concurrency control aborted.
    pub aborted_share: Spread,
    /// Processor time per committed transaction, in microseconds.
    pub cpu_us: Spread,
}

impl Point {
    /// Its figures as cells of a table: in an open loop what was asked for, then throughput, median
    /// latency and its 99th percentile, share of aborts, processor time.
    pub fn cells(&self, open_loop: bool) -> Vec<String> {
        let mut cells = Vec::new();
        cells.extend(open_loop.then(|| units::thousands(self.rate.unwrap_or_default())));
        cells.extend([
            units::rate(self.throughput_tps.median),
            units::duration_us(self.p50_us.median),
            units::duration_us(self.p99_us.median),
            units::percent(self.aborted_share.median),
            units::three_digits(self.cpu_us.median),
        ]);
        cells
    }
}

/// The points of all runs at a load: by pair in the order of the first runs, then by load in the
/// order in which they ran. A run that the user ended early is not counted.
pub fn points(runs: &[Run]) -> Vec<Point> {
    let mut pairs: Vec<String> = Vec::new();
    let mut keys: Vec<(usize, &str)> = Vec::new();
    let whole: Vec<&Run> = runs.iter().filter(|run| !run.interrupted).collect();
    for run in &whole {
        let Some(at_load) = run.at_load.as_deref() else { continue };
        let pair = run.pair();
        let number = pairs.iter().position(|other| *other == pair).unwrap_or_else(|| {
            pairs.push(pair);
            pairs.len() - 1
        });
        if !keys.contains(&(number, at_load)) {
            keys.push((number, at_load));
        }
    }
    // Loads stay in their order.
    keys.sort_by_key(|(pair, _)| *pair);
    let point = |(number, at_load): (usize, &str)| {
        let pair = &pairs[number];
        let runs: Vec<&&Run> = whole
            .iter()
            .filter(|run| run.at_load.as_deref() == Some(at_load) && run.pair() == *pair)
            .collect();
        let spread = |figure: fn(&Run) -> f64| Spread::of(runs.iter().map(|run| figure(run)));
        let set = |name: &str| runs.first()?.config.get(name)?.as_u64();
        Point {
            of: pair.clone(),
            at_load: at_load.to_owned(),
            concurrency: set("concurrency").unwrap_or_default(),
            rate: set("rate"),
            runs: runs.len() as u64,
            throughput_tps: spread(|run| run.throughput_tps),
            p50_us: spread(|run| run.latency_us.p50),
            p99_us: spread(|run| run.latency_us.p99),
            aborted_share: spread(Run::abort_share),
            cpu_us: spread(Run::cpu_us_per_transaction),
        }
    };
    keys.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_point_is_the_median_of_the_repetitions_that_came_to_their_end() {
        let mut runs = sample::loads().runs;
        let all = points(&runs);
        let named = |points: &[Point]| -> Vec<String> {
            points.iter().map(|point| format!("{} {} {}", point.of, point.at_load, point.runs)).collect()
        };
        assert_eq!(
            named(&all),
            ["occ/dst 1 2", "occ/dst 8 2", "occ/dst 64 2", "occ/rc 1 2", "occ/rc 8 2", "occ/rc 64 2"]
        );
        let Spread { median, min, max } = all[0].throughput_tps;
        assert!(min < median && median < max && (median - (min + max) / 2.0).abs() < 1e-6);
        assert_eq!((all[1].concurrency, all[1].rate, all[1].p99_us.median), (8, None, 240.0));
        // The last repetition of both pairs at the last load, and the second load of one pair.
        for run in runs.iter_mut().filter(|run| run.at_load.as_deref() == Some("64") && run.repetition == 2) {
            run.interrupted = true;
        }
        runs.retain(|run| run.at_load.as_deref() != Some("8") || run.pair() == "occ/rc");
        assert_eq!(
            named(&points(&runs)),
            ["occ/dst 1 2", "occ/dst 64 1", "occ/rc 1 2", "occ/rc 8 2", "occ/rc 64 1"]
        );
        runs.iter_mut().for_each(|run| run.at_load = None);
        assert!(points(&runs).is_empty(), "without an axis there are none");
    }
}
