//! The parts of a configuration that make a load hard in a known measure. What each parameter means
//! is said in the template `tpcc.toml`, beside its default. Whether they make sense together is for
//! [`crate::run::Plan`] to say, which turns them into controls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Refusal, refuse, within};
use crate::control::load::Arrivals as Process;
use crate::transactions::Transaction;

/// Where warehouses live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Placement {
    /// Nodes of the database.
    pub nodes: u32,
    /// Share of the warehouses by node; empty if all are alike.
    pub shares: Vec<f64>,
    /// The node of each warehouse, from 1, repeated; empty if unknown.
    pub node_of: Vec<u32>,
}

impl Default for Placement {
    fn default() -> Placement {
        Placement { nodes: 1, shares: Vec::new(), node_of: Vec::new() }
    }
}

impl Placement {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("placement.nodes", self.nodes, 1, 10_000)?;
        let nodes = self.nodes;
        if !self.shares.is_empty() && self.shares.len() != nodes as usize {
            let named = self.shares.len();
            refuse!(
                "placement.shares names {named} shares, and placement.nodes is {nodes}: give each node one"
            );
        }
        if !self.shares.is_empty() && !self.node_of.is_empty() {
            refuse!("placement.node_of says where warehouses are, so leave placement.shares out");
        }
        self.node_of.iter().try_for_each(|&node| within("a node in placement.node_of", node, 1, nodes))
    }
}

/// How New-Orders and Stock-Levels spread over warehouses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Distribution {
    /// Who says so.
    pub choice: Choice,
    /// Per cent of New-Orders that use several warehouses.
    pub new_order_ratio_pct: f64,
    /// Nodes that such a one touches on average.
    pub new_order_degree: f64,
    /// Per cent of Stock-Levels that use several warehouses.
    pub stock_level_ratio_pct: f64,
    /// Nodes that such a one touches on average.
    pub stock_level_degree: f64,
}

/// How warehouses of one transaction are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// As `workload` says.
    Tpcc,
    /// So many distinct ones that they are on so many nodes on average.
    Drawn,
    /// One on each of so many nodes.
    Aimed,
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution {
            choice: Choice::Tpcc,
            new_order_ratio_pct: 0.0,
            new_order_degree: 1.0,
            stock_level_ratio_pct: 0.0,
            stock_level_degree: 1.0,
        }
    }
}

impl Distribution {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("distribution.new_order_ratio_pct", self.new_order_ratio_pct, 0.0, 100.0)?;
        within("distribution.stock_level_ratio_pct", self.stock_level_ratio_pct, 0.0, 100.0)?;
        if self.choice == Choice::Tpcc && *self != Distribution::default() {
            refuse!(
                "ratios and degrees in distribution mean nothing with distribution.choice = \"tpcc\": say \
                 \"drawn\" or \"aimed\""
            );
        }
        Ok(())
    }
}

/// How many New-Orders compete for hot districts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Contention {
    /// Intended intensities, from a time on; none for no control.
    pub phases: Vec<Phase>,
    /// Whether those that were rolled back queue in the client.
    pub queue: bool,
}

/// Intensities from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Seconds since the beginning of the run.
    pub at_s: f64,
    /// Transactions that compete, by hot district.
    pub intensity: Vec<f64>,
}

impl Contention {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        if self.queue && self.phases.is_empty() {
            refuse!("contention.queue means nothing without contention.phases");
        }
        self.phases.iter().try_for_each(|phase| within("at_s in contention.phases", phase.at_s, 0.0, 1e7))
    }
}

/// How often each warehouse is the home.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Access {
    /// How unevenly.
    pub skew: Skew,
    /// Zipf's exponent.
    pub zipf_s: f64,
    /// How often the frequency falls by a factor of e over all warehouses.
    pub exponential_rate: f64,
    /// Per cent of the transactions that go to the hot set.
    pub hot_accesses_pct: f64,
    /// Per cent of the warehouses that are in it.
    pub hot_warehouses_pct: f64,
    /// Seconds that the hot spot stays at one place; 0 for ever.
    pub move_every_s: f64,
    /// Warehouses from one place to the next.
    pub move_by: u32,
}

/// How unevenly warehouses are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skew {
    /// Not at all.
    Uniform,
    /// By Zipf's law.
    Zipf,
    /// Exponentially.
    Exponential,
    /// Some more than the others.
    HotSet,
}

impl Default for Access {
    fn default() -> Access {
        Access {
            skew: Skew::Uniform,
            zipf_s: 0.99,
            exponential_rate: 5.0,
            hot_accesses_pct: 80.0,
            hot_warehouses_pct: 20.0,
            move_every_s: 0.0,
            move_by: 1,
        }
    }
}

impl Access {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("access.hot_accesses_pct", self.hot_accesses_pct, 0.0, 100.0)?;
        within("access.hot_warehouses_pct", self.hot_warehouses_pct, 0.0, 100.0)?;
        within("access.zipf_s", self.zipf_s, 0.001, 100.0)?;
        within("access.exponential_rate", self.exponential_rate, 0.001, 700.0)?;
        within("access.move_every_s", self.move_every_s, 0.0, 1e7)?;
        if self.move_every_s > 0.0 && self.skew == Skew::Uniform {
            refuse!("access.move_every_s moves a hot spot, and access.skew = \"uniform\" has none");
        }
        Ok(())
    }
}

/// Warehouses that Update-Stock changes together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoAccess {
    /// Warehouses of a group; 0 for no groups.
    pub group: u32,
    /// Per cent of the transactions that use a group.
    pub together_pct: f64,
}

impl Default for CoAccess {
    fn default() -> CoAccess {
        CoAccess { group: 0, together_pct: 80.0 }
    }
}

impl CoAccess {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("co_access.together_pct", self.together_pct, 0.0, 100.0)
    }
}

/// When transactions start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Arrivals {
    /// Transactions per second of all terminals at the peak; 0 for full speed.
    pub rate_per_s: f64,
    /// Whether starts that were missed are made up for.
    pub process: Process,
    /// How the load changes.
    pub shape: Shape,
    /// When a Gaussian load is highest, in per cent of the run's time.
    pub peak_at_pct: f64,
    /// Its standard deviation, in per cent of the run's time.
    pub deviation_pct: f64,
}

/// How the load changes over the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// It does not.
    Constant,
    /// As a Gaussian curve.
    Gaussian,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals {
            rate_per_s: 0.0,
            process: Process::Open,
            shape: Shape::Constant,
            peak_at_pct: 50.0,
            deviation_pct: 15.0,
        }
    }
}

impl Arrivals {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("arrivals.rate_per_s", self.rate_per_s, 0.0, 1e7)?;
        within("arrivals.peak_at_pct", self.peak_at_pct, -1000.0, 1000.0)?;
        within("arrivals.deviation_pct", self.deviation_pct, 0.1, 1000.0)
    }

    /// Whether arrivals do not wait for the database.
    pub fn are_open(&self) -> bool {
        self.rate_per_s > 0.0 && self.process == Process::Open
    }
}

/// Another mix from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixChange {
    /// Seconds since the beginning of the run.
    pub at_s: f64,
    /// In per cent; what is left out is not run.
    pub weights: BTreeMap<Transaction, u32>,
}

impl MixChange {
    /// Refuses weights that are not per cent.
    pub fn validate(&self) -> Result<(), Refusal> {
        within("at_s in mix.changes", self.at_s, 0.0, 1e7)?;
        let sum: u64 = self.weights.values().map(|&weight| u64::from(weight)).sum();
        if sum != 100 {
            refuse!(
                "the weights in mix.changes at {} s sum to {sum}: they are per cent and have to sum to 100",
                self.at_s
            );
        }
        Ok(())
    }
}
