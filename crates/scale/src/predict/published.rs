//! What the DST paper has measured, to hold predictions against.
//!
//! The paper gives most results as ratios; so do we, and say where each comes from. What it does
//! not give as a number is left out. Its Figures 1(a), 10(a), 11(a) and 12(a) are about TPC-E; what
//! oracles can do by themselves, Figure 6(a), is a price of the cost models.
//!
//! Its authors have also published a table of peak throughput, in transactions per second, on VAL
//! ("TCP") and VLR ("RDMA"):
//!
//! | | TPC-C, TCP | TPC-C, RDMA | SmallBank, TCP | SmallBank, RDMA |
//! |---|--:|--:|--:|--:|
//! | OCC | 1,604,823 | 10,319,640 | 42,915,700 | 101,536,000 |
//! | with DST | 1,614,940 | 10,882,500 | 42,924,320 | 102,307,000 |
//! | with GTS | 728,463 | 2,587,344 | 1,392,530 | 2,595,130 |
//! | with VTS | 961,231 | 9,146,606 | 2,951,770 | 43,499,300 |
//!
//! The first column is in Figure 1(b), the second in 12(b) at one district; SmallBank has no
//! figure, and a name here. How many of its transfers are distributed is not said: 1 % is assumed,
//! as in DrTM. The prices of attempts are fitted to the first row, so that row is no prediction;
//! the ratios to it are.
//!
//! One machine of each cluster is the oracle's, also under schemes that have none (§5). Read-write
//! transactions under gts and vts take a round trip to it longer than here, that of their report
//! ([`Cluster::awaits_report`]).

use Quantity::{Committed, NewOrders, StockLevelCommitted, StockLevelMedian};
use plimsoll_txn::timestamp::OracleOptions;

use super::study::{Configuration, Load};
use super::{Cluster, Prediction};

/// What can be shown of a prediction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Committed transactions per second.
    Committed,
    /// Committed New-Orders per second.
    NewOrders,
    /// The median latency of Stock-Level, in microseconds.
    StockLevelMedian,
    /// The share of Stock-Level's attempts that has committed, in per cent.
    StockLevelCommitted,
    /// The median latency of read-write transactions, in microseconds.
    ReadWriteMedian,
    /// Their 99th percentile.
    ReadWriteP99,
    /// The median latency of read-only transactions, in microseconds.
    ReadOnlyMedian,
    /// Their 99th percentile.
    ReadOnlyP99,
    /// The share of attempts that aborted, in per cent.
    Aborted,
}

impl Quantity {
    /// Its name, with its unit.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Committed => "committed/s",
            Quantity::NewOrders => "new-orders/s",
            Quantity::StockLevelMedian => "stock-level p50, us",
            Quantity::StockLevelCommitted => "stock-levels committed, %",
            Quantity::ReadWriteMedian => "read-write p50, us",
            Quantity::ReadWriteP99 => "read-write p99, us",
            Quantity::ReadOnlyMedian => "read-only p50, us",
            Quantity::ReadOnlyP99 => "read-only p99, us",
            Quantity::Aborted => "aborted, %",
        }
    }

    /// How much of it a prediction has; nothing if it is a latency of what has not committed at
    /// all.
    pub fn of(self, prediction: &Prediction) -> Option<f64> {
        let latency_us = |read_only, quantile| {
            prediction.latency_of_class_ns(read_only, quantile).map(|ns| f64::from(ns) / 1e3)
        };
        match self {
            Quantity::Committed => Some(prediction.throughput()),
            Quantity::NewOrders => Some(prediction.throughput_of("new_order")),
            Quantity::StockLevelMedian => {
                let ns = prediction.latency_of_ns("stock_level", 0.5);
                (ns > 0).then(|| f64::from(ns) / 1e3)
            }
            Quantity::StockLevelCommitted => Some(100.0 * prediction.committed_share_of("stock_level")),
            Quantity::ReadWriteMedian => latency_us(false, 0.5),
            Quantity::ReadWriteP99 => latency_us(false, 0.99),
            Quantity::ReadOnlyMedian => latency_us(true, 0.5),
            Quantity::ReadOnlyP99 => latency_us(true, 0.99),
            Quantity::Aborted => Some(100.0 * prediction.abort_rate()),
        }
    }
}

/// A ratio of what two schemes come to.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Of what.
    pub what: Quantity,
    /// Where on the figure's axis; `None`: over all of it, from the smallest to the largest.
    pub at: Option<u64>,
    /// Of this scheme.
    pub of: &'static str,
    /// To this one.
    pub to: &'static str,
    /// The ratio, or the least.
    pub low: f64,
    /// The ratio, or the largest.
    pub high: f64,
}

/// A figure of the paper, or a column of the table that goes with it.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its number; the name of a column.
    pub number: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The cluster: the name of a cost model.
    pub machine: &'static str,
    /// Its machines, the oracle's included.
    pub machines: usize,
    /// What its axis is.
    pub axis: &'static str,
    /// Where on it, ascending.
    pub at: &'static [u64],
    /// Its schemes under OCC, or `protocol/scheme`.
    pub schemes: &'static [&'static str],
    /// What it shows.
    pub shows: &'static [Quantity],
    /// What was published.
    pub published: &'static [Published],
}

const fn ratio(at: u64, of: &'static str, to: &'static str, value: f64) -> Published {
    Published { what: Committed, at: Some(at), of, to, low: value, high: value }
}

const fn range(of: &'static str, to: &'static str, low: f64, high: f64) -> Published {
    Published { what: Committed, at: None, of, to, low, high }
}

const fn of(what: Quantity, at: u64, of: &'static str, to: &'static str, low: f64, high: f64) -> Published {
    Published { what, at: Some(at), of, to, low, high }
}

const ALL: &[&str] = &["none", "rc", "dst", "gts", "vts"];
const STAMPED: &[&str] = &["rc", "dst", "gts", "vts"];
const THROUGHPUT: &[Quantity] = &[Committed];
const DISTRICTS: &[u64] = &[1, 2, 5, 10, 15, 20];

/// The figures that can be predicted.
pub const FIGURES: &[Figure] = &[
    Figure {
        number: "1(b)",
        title: "TPC-C over TCP, 16 machines",
        machine: "val",
        machines: 16,
        axis: "districts",
        at: &[1],
        schemes: ALL,
        shows: THROUGHPUT,
        published: &[
            ratio(1, "dst", "none", 1.006),
            ratio(1, "dst", "gts", 2.217),
            ratio(1, "dst", "vts", 1.680),
        ],
    },
    Figure {
        number: "6(b)",
        title: "read-write transactions that spin and touch hardly anything, one at a time, nothing batched",
        machine: "val",
        machines: 16,
        axis: "spin, us",
        at: &[10, 20, 50, 100, 200, 470, 1400],
        schemes: STAMPED,
        shows: THROUGHPUT,
        published: &[
            ratio(1400, "vts", "rc", 0.9),
            ratio(470, "vts", "rc", 0.7),
            Published { what: Committed, at: Some(50), of: "vts", to: "rc", low: 0.0, high: 0.2 },
            ratio(50, "gts", "vts", 0.5),
        ],
    },
    Figure {
        number: "6(c)",
        title: "read-only transactions over ten 8-byte tuples, 90 % local, nothing batched",
        machine: "val",
        machines: 16,
        axis: "machines",
        at: &[2, 4, 8, 12, 16],
        schemes: STAMPED,
        shows: THROUGHPUT,
        published: &[ratio(16, "dst", "rc", 1.0), ratio(16, "gts", "rc", 0.1)],
    },
    Figure {
        number: "10(b)",
        title: "TPC-C on AWS, districts per Stock-Level",
        machine: "aws",
        machines: 32,
        axis: "districts",
        at: DISTRICTS,
        schemes: ALL,
        shows: THROUGHPUT,
        published: &[
            Published { what: Committed, at: None, of: "dst", to: "rc", low: 0.95, high: 1.0 },
            ratio(1, "rc", "gts", 6.29),
            ratio(1, "rc", "vts", 2.93),
            ratio(20, "dst", "none", 4.94),
            ratio(20, "dst", "gts", 3.56),
            ratio(20, "dst", "vts", 2.29),
        ],
    },
    Figure {
        number: "11(b)",
        title: "TPC-C on 10 GbE, districts per Stock-Level",
        machine: "val",
        machines: 16,
        axis: "districts",
        at: DISTRICTS,
        schemes: ALL,
        shows: THROUGHPUT,
        published: &[
            Published { what: Committed, at: None, of: "dst", to: "rc", low: 0.95, high: 1.0 },
            range("dst", "gts", 1.95, 2.57),
            range("dst", "vts", 1.47, 1.73),
        ],
    },
    Figure {
        number: "12(b)",
        title: "TPC-C on 100 Gb RDMA, districts per Stock-Level",
        machine: "vlr",
        machines: 16,
        axis: "districts",
        at: DISTRICTS,
        schemes: ALL,
        shows: THROUGHPUT,
        published: &[
            Published { what: Committed, at: None, of: "dst", to: "rc", low: 0.95, high: 1.0 },
            range("dst", "gts", 1.19, 4.49),
            range("dst", "vts", 1.15, 1.76),
            ratio(1, "dst", "none", 1.055),
            ratio(1, "dst", "gts", 4.206),
            ratio(1, "dst", "vts", 1.190),
        ],
    },
    Figure {
        number: "smallbank-tcp",
        title: "SmallBank over TCP, 16 machines",
        machine: "val",
        machines: 16,
        axis: "distributed, %",
        at: &[1],
        schemes: ALL,
        shows: THROUGHPUT,
        published: &[
            ratio(1, "dst", "none", 1.000),
            ratio(1, "dst", "gts", 30.82),
            ratio(1, "dst", "vts", 14.54),
        ],
    },
    Figure {
        number: "smallbank-rdma",
        title: "SmallBank over RDMA, 16 machines",
        machine: "vlr",
        machines: 16,
        axis: "distributed, %",
        at: &[1],
        schemes: ALL,
        shows: THROUGHPUT,
        published: &[
            ratio(1, "dst", "none", 1.008),
            ratio(1, "dst", "gts", 39.42),
            ratio(1, "dst", "vts", 2.352),
        ],
    },
    Figure {
        number: "14",
        title: "one warehouse of TPC-C on 8 servers, its districts and stocks spread over them, requests in flight per server",
        machine: "val",
        machines: 9,
        axis: "requests",
        at: &[1, 10, 25, 50, 100],
        schemes: &["rococo/none", "rococo/dst", "occ/none", "occ/dst", "two_pl/none", "two_pl/dst"],
        shows: &[NewOrders, StockLevelMedian, StockLevelCommitted],
        published: &[
            of(NewOrders, 100, "rococo/dst", "rococo/none", 2.09, 2.09),
            of(StockLevelMedian, 100, "rococo/dst", "rococo/none", 0.092, 0.092),
            of(StockLevelCommitted, 100, "rococo/none", "rococo/dst", 0.0, 0.04),
        ],
    },
];

impl Figure {
    /// What it is called.
    pub fn heading(&self) -> String {
        match self.number.starts_with(|first: char| first.is_ascii_digit()) {
            true => format!("Figure {}: {}", self.number, self.title),
            false => self.title.to_owned(),
        }
    }

    /// One point of it, in a cluster of such nodes.
    pub fn configuration(
        &self,
        at: u64,
        scheme: &'static str,
        (shards_per_node, concurrency): (usize, usize),
        transactions: u64,
        seed: u64,
    ) -> Configuration {
        let (protocol, scheme) = scheme.split_once('/').unwrap_or(("occ", scheme));
        let requests = (self.axis == "requests").then_some(at as usize);
        let (load, machines) = match self.axis {
            "requests" => (Load::Tpcc { districts: 1, spread: Some(1) }, self.machines),
            "districts" => (Load::Tpcc { districts: at as u32, spread: None }, self.machines),
            "distributed, %" => (Load::SmallBank { distributed_pct: at as f64 }, self.machines),
            "machines" => (Load::ReadTen, at as usize),
            _ => (Load::Spin { spin_ns: at * 1000 }, self.machines),
        };
        // The paper has batching and compression off in Figure 6 and on everywhere else (§2.3, §5).
        let plain = self.number.starts_with('6');
        let oracle = OracleOptions { batch: !plain, compress: !plain, prefetch: false };
        let cluster = Cluster {
            nodes: machines - 1,
            // A server of that figure is one thread.
            shards_per_node: if requests.is_some() { 1 } else { shards_per_node },
            oracle_inside: false,
            threads: None,
            concurrency: if self.number == "6(b)" { 1 } else { requests.unwrap_or(concurrency) },
            protocol,
            scheme,
            oracle,
            awaits_report: true,
            transactions,
            seed,
        };
        Configuration { cluster, load }
    }
}
