//! What the DST paper has measured, to hold predictions against.
//!
//! The paper gives most results as ratios; so do we, and say where each comes from. What it does
//! not give as a number is left out. What oracles can do by themselves, Figure 6(a), is a price of
//! the cost models.
//!
//! Its authors have also published a table of peak throughput, in transactions per second, on VAL
//! ("TCP") and VLR ("RDMA"):
//!
//! | | TPC-E, TCP | TPC-E, RDMA | TPC-C, TCP | TPC-C, RDMA | SmallBank, TCP | SmallBank, RDMA |
//! |---|--:|--:|--:|--:|--:|--:|
//! | OCC | 130,224 | 1,036,073 | 1,604,823 | 10,319,640 | 42,915,700 | 101,536,000 |
//! | with DST | 269,167 | 2,066,246 | 1,614,940 | 10,882,500 | 42,924,320 | 102,307,000 |
//! | with GTS | 237,666 | 1,929,320 | 728,463 | 2,587,344 | 1,392,530 | 2,595,130 |
//! | with VTS | 209,498 | 1,584,770 | 961,231 | 9,146,606 | 2,951,770 | 43,499,300 |
//!
//! The table has TPC-E's GTS and DST over TCP the other way round; so the ratios would be 0.88 and
//! 1.13 (DST to GTS and to VTS), and the paper's text says 1.13 and 1.29, which is what they are as
//! they stand here. TPC-C over TCP is in Figure 1(b), over RDMA in 12(b) at one district; SmallBank
//! has no figure, and a name here. How many of its transfers are distributed is not said: 1 % is
//! assumed, as in DrTM. The prices of attempts are fitted to the first row, so that row is no
//! prediction; the ratios to it are.
//!
//! Figures 1(a), 10(a), 11(a) and 12(a) are median latency over throughput, as the load grows, of
//! which 12(a) is published as a plot, and was read off it to about 2 %. Nodes have a twelfth or an
//! eighth of their cores here, and of the network card and the oracle as much: a world of all would
//! take hours. So throughput is shown per core.
//!
//! One machine of each cluster is the oracle's, also under schemes that have none (§5). Read-write
//! transactions under gts and vts take a round trip to it longer than here, that of their report
//! ([`Cluster::awaits_report`]).

use Quantity::{Committed, NewOrders, StockLevelCommitted, StockLevelMedian};
use plimsoll_txn::timestamp::OracleOptions;

use super::model::CostModel;
use super::study::{Configuration, Load};
use super::{Cluster, DOUBLINGS, Prediction};

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

/// Where on a figure's axis a ratio is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// There.
    Place(u64),
    /// All over it, from the smallest to the largest.
    All,
    /// Where each of the two schemes has most.
    Peak,
}

/// A ratio of what two schemes come to.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Of what.
    pub what: Quantity,
    /// Where on the figure's axis.
    pub at: At,
    /// Of this scheme.
    pub of: &'static str,
    /// To this one.
    pub to: &'static str,
    /// The ratio, or the least.
    pub low: f64,
    /// The ratio, or the largest.
    pub high: f64,
}

/// A scheme's curve of a figure that shows latency over throughput.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    /// The scheme.
    pub scheme: &'static str,
    /// Its peak, in transactions per second, of all cores.
    pub peak: f64,
    /// Points that were published: transactions per second, and the median latency in microseconds.
    pub points: &'static [(f64, f64)],
}

/// A figure of the paper, or a column of the table that goes with it.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its number, or its numbers; the name of a column.
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
    /// Cores of the paper's machines that a shard stands for.
    pub cores_per_shard: usize,
    /// If it shows latency over throughput: what was published.
    pub curves: &'static [Curve],
    /// What was published.
    pub published: &'static [Published],
}

const fn ratio(at: u64, of: &'static str, to: &'static str, value: f64) -> Published {
    Published { what: Committed, at: At::Place(at), of, to, low: value, high: value }
}

const fn range(of: &'static str, to: &'static str, low: f64, high: f64) -> Published {
    Published { what: Committed, at: At::All, of, to, low, high }
}

const fn peak(of: &'static str, to: &'static str, value: f64) -> Published {
    Published { what: Committed, at: At::Peak, of, to, low: value, high: value }
}

/// DST is at least at 95 % of RC.
const LIKE_RC: Published =
    Published { what: Committed, at: At::Peak, of: "dst", to: "rc", low: 0.95, high: 1.0 };

const fn of(what: Quantity, at: u64, of: &'static str, to: &'static str, low: f64, high: f64) -> Published {
    Published { what, at: At::Place(at), of, to, low, high }
}

const ALL: &[&str] = &["none", "rc", "dst", "gts", "vts"];
const STAMPED: &[&str] = &["rc", "dst", "gts", "vts"];
const THROUGHPUT: &[Quantity] = &[Committed];
/// The axis of figures that show latency over throughput: transactions in flight per shard.
pub const IN_FLIGHT: &str = "in flight";
const LOADS: &[u64] = &[1, 2, 4, 8];
/// The table's peaks of TPC-E over TCP, for want of a plot that was published.
const TPCE_TCP: &[Curve] = &[
    Curve { scheme: "none", peak: 130_224.0, points: &[] },
    Curve { scheme: "dst", peak: 269_167.0, points: &[] },
    Curve { scheme: "gts", peak: 237_666.0, points: &[] },
    Curve { scheme: "vts", peak: 209_498.0, points: &[] },
];
/// Figure 12(a), and the table's peaks.
const TPCE_RDMA: &[Curve] = &[
    Curve {
        scheme: "none",
        peak: 1_036_073.0,
        points: &[
            (0.27e6, 310.0),
            (0.81e6, 450.0),
            (1.09e6, 660.0),
            (1.10e6, 930.0),
            (1.07e6, 1440.0),
            (1.08e6, 2300.0),
            (1.04e6, 3150.0),
        ],
    },
    Curve {
        scheme: "rc",
        peak: 2.10e6,
        points: &[
            (1.13e6, 450.0),
            (1.55e6, 530.0),
            (1.75e6, 700.0),
            (2.0e6, 950.0),
            (2.07e6, 1130.0),
            (2.10e6, 1800.0),
        ],
    },
    Curve {
        scheme: "dst",
        peak: 2_066_246.0,
        points: &[
            (0.38e6, 210.0),
            (0.75e6, 280.0),
            (1.13e6, 360.0),
            (1.55e6, 530.0),
            (1.83e6, 750.0),
            (1.95e6, 870.0),
            (2.07e6, 1170.0),
            (2.08e6, 1920.0),
            (2.10e6, 2620.0),
        ],
    },
    Curve {
        scheme: "gts",
        peak: 1_929_320.0,
        points: &[
            (0.75e6, 340.0),
            (1.13e6, 450.0),
            (1.55e6, 660.0),
            (1.76e6, 800.0),
            (1.92e6, 1040.0),
            (1.93e6, 1170.0),
            (1.95e6, 2000.0),
            (1.94e6, 2750.0),
        ],
    },
    Curve {
        scheme: "vts",
        peak: 1_584_770.0,
        points: &[
            (0.38e6, 250.0),
            (0.75e6, 310.0),
            (1.13e6, 440.0),
            (1.55e6, 620.0),
            (1.58e6, 1100.0),
            (1.55e6, 1950.0),
        ],
    },
];
const DISTRICTS: &[u64] = &[1, 2, 5, 10, 15, 20];

/// What most figures have in common: schemes are compared, and a shard is a core.
const NODES: Figure = Figure {
    number: "",
    title: "",
    machine: "val",
    machines: 16,
    axis: "",
    at: &[],
    schemes: ALL,
    shows: THROUGHPUT,
    cores_per_shard: 1,
    curves: &[],
    published: &[],
};
/// And those of TPC-E: latency over throughput, where a shard is several cores.
const TPCE: Figure = Figure { axis: IN_FLIGHT, at: LOADS, cores_per_shard: 12, ..NODES };

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
        ..NODES
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
            Published { what: Committed, at: At::Place(50), of: "vts", to: "rc", low: 0.0, high: 0.2 },
            ratio(50, "gts", "vts", 0.5),
        ],
        ..NODES
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
        ..NODES
    },
    Figure {
        number: "10(a)",
        title: "TPC-E on AWS",
        machine: "aws",
        machines: 32,
        cores_per_shard: 8,
        published: &[LIKE_RC, peak("rc", "none", 1.79), peak("dst", "gts", 1.16), peak("dst", "vts", 1.72)],
        ..TPCE
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
            Published { what: Committed, at: At::All, of: "dst", to: "rc", low: 0.95, high: 1.0 },
            ratio(1, "rc", "gts", 6.29),
            ratio(1, "rc", "vts", 2.93),
            ratio(20, "dst", "none", 4.94),
            ratio(20, "dst", "gts", 3.56),
            ratio(20, "dst", "vts", 2.29),
        ],
        ..NODES
    },
    Figure {
        number: "1(a), 11(a)",
        title: "TPC-E on 10 GbE",
        machine: "val",
        curves: TPCE_TCP,
        published: &[
            LIKE_RC,
            peak("dst", "none", 2.067),
            peak("dst", "gts", 1.133),
            peak("dst", "vts", 1.285),
        ],
        ..TPCE
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
            Published { what: Committed, at: At::All, of: "dst", to: "rc", low: 0.95, high: 1.0 },
            range("dst", "gts", 1.95, 2.57),
            range("dst", "vts", 1.47, 1.73),
        ],
        ..NODES
    },
    Figure {
        number: "12(a)",
        title: "TPC-E on 100 Gb RDMA",
        machine: "vlr",
        curves: TPCE_RDMA,
        published: &[
            LIKE_RC,
            peak("dst", "none", 1.994),
            peak("dst", "gts", 1.071),
            peak("dst", "vts", 1.304),
        ],
        ..TPCE
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
            Published { what: Committed, at: At::All, of: "dst", to: "rc", low: 0.95, high: 1.0 },
            range("dst", "gts", 1.19, 4.49),
            range("dst", "vts", 1.15, 1.76),
            ratio(1, "dst", "none", 1.055),
            ratio(1, "dst", "gts", 4.206),
            ratio(1, "dst", "vts", 1.190),
        ],
        ..NODES
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
        ..NODES
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
        ..NODES
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
        ..NODES
    },
];

/// The customers of a home of TPC-E, of which a core has one: a machine has up to 5,000.
fn home(cores: usize) -> u32 {
    [1000, 500, 200].into_iter().find(|&home| home as usize * cores <= 5000).unwrap_or(100)
}

impl Figure {
    /// Whether this is its number, or one of them.
    pub fn is(&self, number: &str) -> bool {
        self.number.split(", ").any(|own| own == number)
    }

    /// What it is called.
    pub fn heading(&self) -> String {
        match self.number.starts_with(|first: char| first.is_ascii_digit()) {
            true => format!("Figure {}: {}", self.number, self.title),
            false => self.title.to_owned(),
        }
    }

    /// What things cost on its machines, of which there is a part for each core that is there.
    pub fn model(&self, machine: CostModel) -> CostModel {
        let mut model = machine;
        let times = self.cores_per_shard as f64;
        for oracle in [&mut model.gts, &mut model.vts] {
            oracle.message_ns *= times;
            oracle.outcome_ns *= times;
        }
        model.frame_ns *= times;
        model.gigabits_per_s /= times;
        model
    }

    /// One point of it, in a cluster of nodes with this number of cores.
    pub fn configuration(
        &self,
        at: u64,
        scheme: &'static str,
        (cores, concurrency): (usize, usize),
        transactions: u64,
        seed: u64,
    ) -> Configuration {
        let (protocol, scheme) = scheme.split_once('/').unwrap_or(("occ", scheme));
        let requests = (self.axis == "requests").then_some(at as usize);
        let in_flight = requests.or((self.axis == IN_FLIGHT).then_some(at as usize));
        let (load, machines) = match self.axis {
            "requests" => (Load::Tpcc { districts: 1, spread: Some(1) }, self.machines),
            "districts" => (Load::Tpcc { districts: at as u32, spread: None }, self.machines),
            "distributed, %" => (Load::SmallBank { distributed_pct: at as f64 }, self.machines),
            IN_FLIGHT => (Load::Tpce { home: home(cores), customers: None, paper: true }, self.machines),
            "machines" => (Load::ReadTen, at as usize),
            _ => (Load::Spin { spin_ns: at * 1000 }, self.machines),
        };
        // The paper has batching and compression off in Figure 6 and on everywhere else (§2.3, §5).
        let plain = self.number.starts_with('6');
        let oracle = OracleOptions { batch: !plain, compress: !plain, prefetch: false };
        let cluster = Cluster {
            nodes: machines - 1,
            // A server of that figure is one thread.
            shards_per_node: if requests.is_some() { 1 } else { cores / self.cores_per_shard },
            oracle_inside: false,
            threads: None,
            concurrency: if self.number == "6(b)" { 1 } else { in_flight.unwrap_or(concurrency) },
            protocol,
            scheme,
            oracle,
            awaits_report: true,
            transactions,
            doublings: DOUBLINGS,
            seed,
        };
        Configuration { cluster, load }
    }
}
