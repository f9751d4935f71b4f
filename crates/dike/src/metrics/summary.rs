//! Figures about runs: scalability, nodes side by side, repetitions, the client.
//!
//! * **Scalability** (the paper's Equation 3): how much of the throughput per node is left on a
//!   larger cluster.
//! * **Schedulability**: box plots of data size and of operations per second over the nodes.
//!   Quartiles are interpolated between ranks: of n sorted values, the quantile q is at position q
//!   (n - 1).
//! * **Repetitions**: the median and the range, as everywhere in this project; the paper reports
//!   means of five.
//! * **The client**: a load generator that has no processor time left measures itself, whoever took
//!   the time. From four fifths of its machine on, the report warns, and says how much the client
//!   used itself.

use serde::{Deserialize, Serialize};

/// Throughput of one cluster size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterThroughput {
    /// Nodes.
    pub nodes: u32,
    /// Transactions per second of the whole cluster.
    pub tps: f64,
}

/// Equation 3: 1 is a throughput per node that does not change. Nothing if the cluster does not
/// grow or did nothing.
pub fn scalability(small: ClusterThroughput, large: ClusterThroughput) -> Option<f64> {
    if small.nodes == 0 || small.nodes >= large.nodes || small.tps <= 0.0 {
        return None;
    }
    let per_node = |of: ClusterThroughput| of.tps / f64::from(of.nodes);
    Some(1.0 - (per_node(large) - per_node(small)).abs() / per_node(small))
}

/// What one node of the database held and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// The node.
    pub node: String,
    /// Bytes of data on it, if known.
    pub data_bytes: Option<u64>,
    /// Operations per second that it served, if known.
    pub operations_per_second: Option<f64>,
}

/// Five numbers of a distribution over nodes, and how uneven it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoxPlot {
    /// The smallest.
    pub min: f64,
    /// A quarter is below.
    pub lower: f64,
    /// Half is below.
    pub median: f64,
    /// Three quarters are below.
    pub upper: f64,
    /// The largest.
    pub max: f64,
    /// The largest, as a multiple of the mean: 1 is perfectly even.
    pub imbalance: f64,
}

impl BoxPlot {
    /// Of some values; nothing of none.
    pub fn of(values: &[f64]) -> Option<BoxPlot> {
        if values.is_empty() {
            return None;
        }
        let quantile = |q| quantile(values, q);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let max = quantile(1.0);
        Some(BoxPlot {
            min: quantile(0.0),
            lower: quantile(0.25),
            median: quantile(0.5),
            upper: quantile(0.75),
            max,
            imbalance: if mean > 0.0 { max / mean } else { 1.0 },
        })
    }

    /// Data sizes of nodes, in bytes.
    pub fn of_data(nodes: &[NodeFigures]) -> Option<BoxPlot> {
        let bytes: Vec<f64> = nodes.iter().filter_map(|node| node.data_bytes).map(|b| b as f64).collect();
        BoxPlot::of(&bytes)
    }

    /// Operations per second of nodes.
    pub fn of_operations(nodes: &[NodeFigures]) -> Option<BoxPlot> {
        let operations: Vec<f64> = nodes.iter().filter_map(|node| node.operations_per_second).collect();
        BoxPlot::of(&operations)
    }
}

/// The value at a quantile, interpolated between ranks; 0 of nothing.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = q * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// One figure over several repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Half of the repetitions are below.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of the figure of each repetition.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let values: Vec<f64> = values.into_iter().collect();
        let [median, min, max] = [0.5, 0.0, 1.0].map(|q| quantile(&values, q));
        Spread { median, min, max }
    }
}

/// The processor time of the machines that ran the clients, by second of the run, as a share of all
/// cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientCpu {
    /// What was busy, whoever used it, 0 to 1; of several clients the busiest machine's.
    pub share: Vec<f64>,
    /// What the client itself used; of several clients the most.
    #[serde(default)]
    pub own: Vec<f64>,
}

impl ClientCpu {
    /// From this share on, the client may be what is measured.
    pub const BOTTLENECK: f64 = 0.8;

    /// The mean busy share from a second on; nothing if nothing was recorded.
    pub fn mean(&self, from_second: u64) -> Option<f64> {
        mean(&self.share, from_second)
    }

    /// The same of what the client itself used.
    pub fn own_mean(&self, from_second: u64) -> Option<f64> {
        mean(&self.own, from_second)
    }

    /// Whether figures of the run are in doubt: the client was busy on average, or in a tenth of
    /// the seconds.
    pub fn is_bottleneck(&self, from_second: u64) -> bool {
        let measured = self.share.get(from_second as usize..).unwrap_or(&[]);
        let busy = measured.iter().filter(|share| **share >= ClientCpu::BOTTLENECK).count();
        busy * 10 > measured.len() || self.mean(from_second).is_some_and(|mean| mean >= ClientCpu::BOTTLENECK)
    }

    /// Adds another client's machine: the busier one counts.
    pub fn merge(&mut self, other: &ClientCpu) {
        for (mine, theirs) in [(&mut self.share, &other.share), (&mut self.own, &other.own)] {
            mine.resize(mine.len().max(theirs.len()), 0.0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = mine.max(*theirs));
        }
    }
}

fn mean(shares: &[f64], from_second: u64) -> Option<f64> {
    let measured = shares.get(from_second as usize..).filter(|shares| !shares.is_empty())?;
    Some(measured.iter().sum::<f64>() / measured.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalability_is_throughput_per_node_that_is_left() {
        let of = |nodes, tps| ClusterThroughput { nodes, tps };
        assert_eq!(scalability(of(3, 300.0), of(9, 900.0)), Some(1.0));
        let lost = scalability(of(3, 300.0), of(9, 720.0)).expect("it grew");
        assert!((lost - 0.8).abs() < 1e-12);
        // More per node is a deviation as well, as the equation has it.
        let gained = scalability(of(3, 300.0), of(9, 1080.0)).expect("it grew");
        assert!((gained - 0.8).abs() < 1e-12);
        assert_eq!(scalability(of(9, 900.0), of(3, 300.0)), None);
        assert_eq!(scalability(of(3, 0.0), of(9, 300.0)), None);
        assert_eq!(scalability(of(0, 1.0), of(9, 300.0)), None);
    }

    #[test]
    fn boxes_have_interpolated_quartiles() {
        let plot = BoxPlot::of(&[4.0, 1.0, 2.0, 3.0]).expect("values");
        assert_eq!((plot.min, plot.lower, plot.median, plot.upper, plot.max), (1.0, 1.75, 2.5, 3.25, 4.0));
        assert_eq!(plot.imbalance, 1.6);
        let one = BoxPlot::of(&[7.0]).expect("a value");
        assert_eq!((one.min, one.median, one.max, one.imbalance), (7.0, 7.0, 7.0, 1.0));
        assert_eq!(BoxPlot::of(&[]), None);
        assert_eq!(BoxPlot::of(&[0.0, 0.0]).expect("values").imbalance, 1.0);
        let nodes = [
            NodeFigures { node: "a".into(), data_bytes: Some(10), operations_per_second: None },
            NodeFigures { node: "b".into(), data_bytes: Some(30), operations_per_second: Some(5.0) },
        ];
        assert_eq!(BoxPlot::of_data(&nodes).expect("sizes").median, 20.0);
        assert_eq!(BoxPlot::of_operations(&nodes).expect("one of them").max, 5.0);
    }

    #[test]
    fn repetitions_are_their_median_and_range() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn a_busy_client_is_told_from_an_idle_one() {
        let cpu = |share: &[f64]| ClientCpu { share: share.to_vec(), own: Vec::new() };
        assert!(cpu(&[0.1, 0.9, 0.9]).is_bottleneck(1));
        assert!(!cpu(&[0.95, 0.3, 0.3]).is_bottleneck(1), "the warm-up does not count");
        let mut mostly_idle = vec![0.2; 100];
        assert!(!cpu(&mostly_idle).is_bottleneck(0));
        mostly_idle[..11].fill(1.0);
        assert!(cpu(&mostly_idle).is_bottleneck(0), "a tenth of the seconds");
        assert!(!cpu(&[]).is_bottleneck(5));
        assert_eq!(cpu(&[]).mean(0), None);
        let mut two = cpu(&[0.1, 0.5]);
        two.merge(&cpu(&[0.3, 0.2, 0.9]));
        assert_eq!(two.share, [0.3, 0.5, 0.9]);
    }
}
