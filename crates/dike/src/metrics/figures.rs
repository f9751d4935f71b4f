//! The figures of a run, derived from its document.
//!
//! Everything here leaves the warm-up out. *Latency* is what a user would have felt: response times
//! if arrivals did not wait for the database, else service times. The share of aborts is of
//! attempts: one transaction may be rolled back several times before it commits.

use serde::Serialize;

use super::availability::{Availability, Outage, availability, outages};
use super::document::{Kind, Run};
use super::latency::Latency;
use super::summary::{BoxPlot, quantile};
use crate::control::load::NAME as LOAD;

/// Of its peak, the load at which a second without a commit is none without a database.
const IDLE: f64 = 0.05;

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Seconds that were measured, warm-up excluded.
    pub seconds: u64,
    /// Transactions committed in them.
    pub committed: u64,
    /// The same per second.
    pub throughput_tps: f64,
    /// Committed New-Orders per minute, without think time; nothing for other mixes.
    pub new_orders_per_minute: Option<f64>,
    /// Attempts that were rolled back, of all that were rolled back or committed.
    pub abort_share: f64,
    /// Attempts that failed otherwise.
    pub errors: u64,
    /// Further attempts.
    pub retries: u64,
    /// Kinds of transactions that were tried and never committed in the measured seconds.
    pub never_committed: Vec<String>,
    /// Latency of all kinds: response times if arrivals did not wait, else service times.
    pub latency: Percentiles,
    /// Throughput of the slowest and of the median second.
    pub slowest_second_tps: f64,
    /// The median second.
    pub median_second_tps: f64,
    /// Times without any commit.
    pub outages: Vec<Outage>,
    /// What faults did.
    pub availability: Vec<Availability>,
    /// Data over nodes.
    pub data_bytes: Option<BoxPlot>,
    /// Operations over nodes.
    pub operations_per_second: Option<BoxPlot>,
    /// Share of the clients' processor time that was busy.
    pub client_cpu_share: Option<f64>,
    /// Share of it that the clients used themselves.
    pub client_own_cpu_share: Option<f64>,
    /// Whether that is too much to trust the figures.
    pub client_is_bottleneck: bool,
}

/// The usual percentiles of a latency, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// The mean.
    pub mean_us: f64,
    /// Half are faster.
    pub p50_us: u64,
    /// Nine in ten are faster.
    pub p90_us: u64,
    /// 95 in a hundred.
    pub p95_us: u64,
    /// 99 in a hundred.
    pub p99_us: u64,
    /// 999 in a thousand.
    pub p999_us: u64,
    /// The slowest.
    pub max_us: u64,
}

impl Percentiles {
    /// Of a distribution.
    pub fn of(latency: &Latency) -> Percentiles {
        let at = |share| latency.percentile_us(share);
        Percentiles {
            mean_us: latency.mean_us(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: latency.max_us,
        }
    }
}

impl Run {
    /// The latency of all kinds that a user would have felt: response times if they are known.
    pub fn latency(&self) -> Latency {
        let mut all = Latency::default();
        self.kinds.iter().for_each(|kind| all.merge(kind.felt()));
        all
    }

    /// Transactions committed per measured second.
    pub fn throughput_tps(&self) -> f64 {
        let committed: u64 = self.kinds.iter().map(|kind| self.sum(&kind.committed)).sum();
        committed as f64 / self.measured().len().max(1) as f64
    }

    /// Kinds of transactions that were tried and never committed in the measured seconds. If
    /// nothing at all committed, every kind of the mix is one.
    pub fn never_committed(&self) -> Vec<&str> {
        if self.measured().is_empty() {
            return Vec::new();
        }
        let committed = |kind: &Kind| self.sum(&kind.committed) > 0;
        let tried = |kind: &Kind| {
            let ended = [&kind.aborted, &kind.failed, &kind.given_up].into_iter().flatten().any(|&n| n > 0);
            ended || kind.unended > 0
        };
        let nothing = !self.kinds.iter().any(committed);
        let never = self.kinds.iter().filter(|kind| !committed(kind) && (nothing || tried(kind)));
        never.map(|kind| kind.name.as_str()).collect()
    }

    /// Times without any commit, but for those in which hardly anything was meant to start.
    fn outages(&self) -> Vec<Outage> {
        let load = self.controls.iter().find(|control| control.name == LOAD);
        let intended = load.map_or(&[][..], |control| &control.intended);
        let peak = intended.iter().copied().fold(0.0, f64::max);
        let meant = |outage: &Outage| {
            let (from, to) = (outage.from_seconds as usize, outage.to_seconds.ceil() as usize);
            let of_load = intended.get(from..to.min(intended.len())).unwrap_or(&[]);
            of_load.is_empty() || of_load.iter().any(|load| *load > IDLE * peak)
        };
        outages(&self.tenths, self.warm_up_seconds).into_iter().filter(meant).collect()
    }

    /// All figures.
    pub fn summary(&self) -> Summary {
        let seconds = self.measured().len() as u64;
        let per_second = |count: u64| if seconds > 0 { count as f64 / seconds as f64 } else { 0.0 };
        let by_second: Vec<f64> =
            self.committed_by_second()[self.measured()].iter().map(|&count| count as f64).collect();
        let committed: u64 = self.kinds.iter().map(|kind| self.sum(&kind.committed)).sum();
        let aborted: u64 = self.aborts.iter().map(|cause| self.sum(&cause.counts)).sum();
        let new_orders = self.kinds.iter().find(|kind| kind.name == "new_order");
        let attempts = committed + aborted;
        Summary {
            seconds,
            committed,
            throughput_tps: self.throughput_tps(),
            new_orders_per_minute: new_orders.map(|kind| 60.0 * per_second(self.sum(&kind.committed))),
            abort_share: if attempts > 0 { aborted as f64 / attempts as f64 } else { 0.0 },
            errors: self.errors.iter().map(|cause| self.sum(&cause.counts)).sum(),
            retries: self.sum(&self.retries),
            never_committed: self.never_committed().into_iter().map(str::to_owned).collect(),
            latency: Percentiles::of(&self.latency()),
            slowest_second_tps: quantile(&by_second, 0.0),
            median_second_tps: quantile(&by_second, 0.5),
            outages: self.outages(),
            availability: availability(&self.tenths, self.warm_up_seconds, &self.faults),
            data_bytes: BoxPlot::of_data(&self.nodes),
            operations_per_second: BoxPlot::of_operations(&self.nodes),
            client_cpu_share: self.client_cpu.mean(self.warm_up_seconds),
            client_own_cpu_share: self.client_cpu.own_mean(self.warm_up_seconds),
            client_is_bottleneck: self.client_cpu.is_bottleneck(self.warm_up_seconds),
        }
    }
}

impl Kind {
    /// The latency that a user would have felt.
    pub fn felt(&self) -> &Latency {
        if self.response.buckets.is_empty() { &self.service } else { &self.response }
    }
}
