//! What a configuration asks of the controls, checked: a run that begins can be steered as it says.
//!
//! [`Plan::new`] is also the last part of [`Config::validate`], so what is impossible (a degree
//! that no node can give, more transactions that compete than terminals) is refused before anything
//! is connected, with the sentence of the control that cannot do it.

use std::fmt;

use crate::config::{self, Choice, Config, Home, Refusal, refuse};
use crate::control::SECOND_NS;
use crate::control::coaccess::CoAccess;
use crate::control::contention::{Phase, Schedule};
use crate::control::distribution::{Distribution, Target, remote_orders};
use crate::control::load::{Load, Shape};
use crate::control::mix::Mixes;
use crate::control::placement::Placement;
use crate::control::skew::{Chooser, Moving, Skew};
use crate::transactions::Transaction;

/// The most lines of an order that a statement is written for.
const LINES_MAX: f64 = 250.0;

/// The controls of a run. What is nothing is TPC-C's.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where warehouses live.
    pub placement: Placement,
    /// How New-Orders spread.
    pub new_order: Option<Distribution>,
    /// The share of New-Orders that use several warehouses if it is nothing.
    pub remote_orders: f64,
    /// How Stock-Levels spread.
    pub stock_level: Option<Distribution>,
    /// How homes are drawn.
    pub homes: Option<Chooser>,
    /// What Update-Stock changes together.
    pub co_access: Option<CoAccess>,
    /// Which transactions are run.
    pub mixes: Option<Mixes>,
    /// How many New-Orders compete.
    pub contention: Option<Schedule>,
    /// When transactions start.
    pub load: Load,
}

impl Plan {
    /// What this configuration asks for, or why that cannot be.
    pub fn new(config: &Config) -> Result<Plan, Refusal> {
        let placement = placement(config)?;
        let homes = homes(config)?;
        let stock_level_warehouses = config.workload.stock_level_warehouses;
        let (mut new_order, mut stock_level) = (None, None);
        let asked = &config.distribution;
        if asked.choice != Choice::Tpcc {
            if stock_level_warehouses != 1 {
                refuse!(
                    "workload.stock_level_warehouses is {stock_level_warehouses}, but distribution.choice says \
                     how many warehouses a Stock-Level has: use one of them"
                );
            }
            let by_node = homes_by_node(config, &placement, homes.as_ref());
            let distribution = |ratio_pct: f64, degree| {
                let target = Target { ratio: ratio_pct / 100.0, degree };
                let made = match asked.choice {
                    Choice::Aimed => Distribution::aimed(&placement, target),
                    _ => Distribution::drawn(&placement, by_node.as_deref(), target),
                };
                made.map_err(in_section("distribution"))
            };
            let orders = distribution(asked.new_order_ratio_pct, asked.new_order_degree)?;
            if orders.mean_warehouses() > LINES_MAX {
                let warehouses = orders.mean_warehouses().ceil();
                refuse!(
                    "distribution.new_order_degree = {} takes orders with {warehouses} warehouses, and they have \
                     {LINES_MAX} at most: use a smaller degree",
                    asked.new_order_degree
                );
            }
            new_order = Some(orders);
            stock_level = Some(distribution(asked.stock_level_ratio_pct, asked.stock_level_degree)?);
        }
        let one_warehouse = config.data.warehouses == 1;
        let remote_line_pct = if one_warehouse { 0.0 } else { config.workload.remote_line_pct };
        Ok(Plan {
            remote_orders: remote_orders(remote_line_pct / 100.0),
            co_access: co_access(config, &placement)?,
            mixes: mixes(config)?,
            contention: contention(config)?,
            load: load(config)?,
            placement,
            new_order,
            stock_level,
            homes,
        })
    }
}

/// The sentence of a control, after the section that asks for it.
fn in_section<E: fmt::Display>(section: &'static str) -> impl Fn(E) -> Refusal {
    move |error| Refusal(format!("{section}: {error}"))
}

fn ns(seconds: f64) -> u64 {
    (seconds * SECOND_NS as f64).round() as u64
}

fn placement(config: &Config) -> Result<Placement, Refusal> {
    let (asked, warehouses) = (&config.placement, config.data.warehouses);
    let made = if !asked.node_of.is_empty() {
        let node_of: Vec<u32> = asked.node_of.iter().map(|&node| node.saturating_sub(1)).collect();
        let node_of: Vec<u32> = node_of.into_iter().cycle().take(warehouses as usize).collect();
        let last = node_of.iter().max().map_or(0, |&node| node + 1);
        if last != asked.nodes {
            refuse!(
                "placement.nodes is {}, and the last node with a warehouse in placement.node_of is {last}: they \
                 have to agree",
                asked.nodes
            );
        }
        Placement::exact(node_of)
    } else if !asked.shares.is_empty() {
        Placement::shares(&asked.shares, warehouses)
    } else {
        Placement::even(asked.nodes, warehouses)
    };
    made.map_err(in_section("placement"))
}

/// How ranks are used, if not evenly.
fn skew(config: &Config) -> (Skew, Option<Moving>) {
    let asked = &config.access;
    let skew = match asked.skew {
        config::Skew::Uniform => Skew::Uniform,
        config::Skew::Zipf => Skew::Zipf { s: asked.zipf_s },
        config::Skew::Exponential => Skew::Exponential { rate: asked.exponential_rate },
        config::Skew::HotSet => {
            Skew::HotSet { accesses: asked.hot_accesses_pct / 100.0, items: asked.hot_warehouses_pct / 100.0 }
        }
    };
    let moving = Moving { every_ns: ns(asked.move_every_s), by: asked.move_by.into() };
    (skew, (moving.every_ns > 0).then_some(moving))
}

fn homes(config: &Config) -> Result<Option<Chooser>, Refusal> {
    let (skew, moving) = skew(config);
    if skew == Skew::Uniform {
        return Ok(None);
    }
    let mut chooser = Chooser::new(skew, config.data.warehouses.into()).map_err(in_section("access"))?;
    if let Some(moving) = moving {
        chooser = chooser.moving(moving).map_err(in_section("access"))?;
    }
    Ok(Some(chooser))
}

/// The probability of a home on each node; nothing if it is that of a warehouse, or nobody knows. A
/// hot spot that moves is everywhere in the end.
fn homes_by_node(config: &Config, placement: &Placement, homes: Option<&Chooser>) -> Option<Vec<f64>> {
    let share: Box<dyn Fn(u32) -> f64> = match (homes, config.run.home) {
        (Some(chooser), _) if config.access.move_every_s == 0.0 => Box::new(|warehouse: u32| {
            let to = |items: u32| chooser.share_of_hottest(items.into());
            to(warehouse) - to(warehouse - 1)
        }),
        (None, Home::Fixed) => {
            let terminals = config.run.all_terminals();
            Box::new(move |warehouse| f64::from(u8::from(warehouse <= terminals)) / f64::from(terminals))
        }
        _ => return None,
    };
    let mut by_node = vec![0.0; placement.nodes()];
    for warehouse in 1..=placement.warehouses() {
        by_node[placement.node(warehouse)? as usize] += share(warehouse);
    }
    Some(by_node)
}

fn co_access(config: &Config, placement: &Placement) -> Result<Option<CoAccess>, Refusal> {
    let asked = &config.co_access;
    if asked.group == 0 {
        return Ok(None);
    }
    if config.workload.update_stock_warehouses != 1 {
        refuse!(
            "workload.update_stock_warehouses is {}, but co_access.group says how many warehouses an \
             Update-Stock has: use one of them",
            config.workload.update_stock_warehouses
        );
    }
    if !config.mix.ever(Transaction::UpdateStock) {
        refuse!("co_access.group means nothing without Update-Stocks: give mix.update_stock a weight");
    }
    let (skew, moving) = skew(config);
    let made = CoAccess::new(placement, asked.group, asked.together_pct / 100.0, skew, moving);
    made.map(Some).map_err(in_section("co_access"))
}

fn mixes(config: &Config) -> Result<Option<Mixes>, Refusal> {
    if config.mix.changes.is_empty() {
        return Ok(None);
    }
    let mut mixes = vec![(0, config.mix.weights().map(f64::from).to_vec())];
    mixes.extend(config.mix.changes.iter().map(|change| {
        let weight = |transaction| f64::from(change.weights.get(transaction).copied().unwrap_or(0));
        (ns(change.at_s), Transaction::ALL.iter().map(weight).collect())
    }));
    Mixes::new(&mixes).map(Some).map_err(in_section("mix.changes, counted with the first mix"))
}

fn contention(config: &Config) -> Result<Option<Schedule>, Refusal> {
    if config.contention.phases.is_empty() {
        return Ok(None);
    }
    if !config.mix.ever(Transaction::NewOrder) {
        refuse!(
            "contention.phases says how many New-Orders compete, and there are none: give mix.new_order a weight"
        );
    }
    if config.data.district_skew > 0.0 {
        refuse!("contention needs warehouses with several districts each: data.district_skew has to be 0");
    }
    let phases = config.contention.phases.iter();
    let phases = phases.map(|phase| Phase { at_ns: ns(phase.at_s), intensities: phase.intensity.clone() });
    let terminals = config.run.all_terminals();
    let schedule = Schedule::new(phases.collect(), terminals).map_err(in_section("contention"))?;
    if schedule.items() > config.data.warehouses as usize {
        refuse!(
            "contention.phases names {} hot districts, each of another warehouse, and there are {} warehouses",
            schedule.items(),
            config.data.warehouses
        );
    }
    Ok(Some(schedule))
}

fn load(config: &Config) -> Result<Load, Refusal> {
    let asked = &config.arrivals;
    let shape = match asked.shape {
        config::Shape::Constant => Shape::Constant,
        config::Shape::Gaussian => {
            Shape::Gaussian { mean: asked.peak_at_pct / 100.0, deviation: asked.deviation_pct / 100.0 }
        }
    };
    let run_ns = (config.run.warmup_s + config.run.duration_s) * SECOND_NS;
    let peak_tps = (asked.rate_per_s > 0.0).then_some(asked.rate_per_s);
    Load::new(shape, run_ns, peak_tps).map_err(in_section("arrivals"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, why: &str) {
        let refusal = Config::parse(text, &[]).expect_err("refused").to_string();
        assert!(refusal.contains(why), "{refusal}");
    }

    fn planned(text: &str) -> Plan {
        Plan::new(&Config::parse(text, &[]).expect("valid")).expect("possible")
    }

    #[test]
    fn what_is_not_asked_for_is_tpcc_s() {
        let plan = planned("");
        assert!(plan.new_order.is_none() && plan.stock_level.is_none() && plan.homes.is_none());
        assert!(plan.co_access.is_none() && plan.mixes.is_none() && plan.contention.is_none());
        assert_eq!((plan.load.peak_tps(), plan.load.level(0)), (None, 1.0));
        assert!((plan.remote_orders - 0.0952).abs() < 1e-4, "{}", plan.remote_orders);
    }

    #[test]
    fn what_is_impossible_is_refused_before_anything_is_connected() {
        refused("[distribution]\nnew_order_degree = 3.0", "mean nothing with distribution.choice");
        let drawn =
            "[placement]\nnodes = 3\n[distribution]\nchoice = \"drawn\"\nnew_order_ratio_pct = 20.0\n";
        refused(&format!("{drawn}new_order_degree = 5.0"), "no transaction can touch 5 nodes");
        refused(&format!("{drawn}new_order_degree = 1.5"), "1.5 is neither");
        refused("[distribution]\nchoice = \"aimed\"", "the node of each warehouse");
        refused(
            "[distribution]\nchoice = \"drawn\"\n[workload]\nstock_level_warehouses = 2",
            "use one of them",
        );
        refused("[placement]\nnodes = 3\nshares = [1.0, 2.0]", "give each node one");
        refused("[placement]\nnodes = 3\nnode_of = [1, 4]", "has to be 1 to 3");
        refused("[placement]\nnodes = 3\nnode_of = [1, 2]", "have to agree");
        refused("[contention]\nphases = [{ at_s = 0, intensity = [11] }]", "there are 10 terminals");
        refused("[contention]\nphases = [{ at_s = 5, intensity = [1] }]", "phase 1");
        refused("[contention]\nqueue = true", "contention.phases");
        refused(
            "[contention]\nphases = [{ at_s = 0, intensity = [1, 1] }]\n[data]\nwarehouses = 1",
            "2 hot districts",
        );
        refused("[access]\nskew = \"zipf\"\nzipf_s = 0.0", "access.zipf_s is 0");
        refused("[access]\nmove_every_s = 5.0", "has none");
        refused("[access]\nskew = \"zipf\"\n[run]\nhome = \"fixed\"", "use one of them");
        refused("[co_access]\ngroup = 2", "mix.update_stock");
        refused("[mix]\nchanges = [{ at_s = 30, weights = { payment = 99 } }]", "sum to 99");
        refused(
            "[mix]\nchanges = [{ at_s = 0, weights = { payment = 100 } }]",
            "mix 2 begins at the wrong time",
        );
        refused("[mix]\nchanges = [{ at_s = 3, weights = { paymnt = 100 } }]", "paymnt");
    }

    #[test]
    fn placements_are_even_or_in_shares_or_known() {
        let counts = |text: &str| planned(text).placement.warehouses_by_node().to_vec();
        assert_eq!(counts("[placement]\nnodes = 4"), [3, 3, 2, 2]);
        assert_eq!(counts("[placement]\nnodes = 2\nshares = [4, 1]"), [8, 2]);
        let known = planned("[placement]\nnodes = 3\nnode_of = [1, 2, 3]").placement;
        assert_eq!((known.node(1), known.node(5)), (Some(0), Some(1)));
    }

    #[test]
    fn homes_that_are_not_everywhere_change_how_many_warehouses_a_degree_takes() {
        let mean = |more: &str| {
            let text = format!(
                "[placement]\nnodes = 3\nnode_of = [1, 1, 1, 2, 3]\n[data]\nwarehouses = 10\n[distribution]\n\
                 choice = \"drawn\"\nnew_order_ratio_pct = 50.0\nnew_order_degree = 2.0\n{more}"
            );
            planned(&text).new_order.expect("controlled").mean_warehouses()
        };
        let (everywhere, fixed) = (mean(""), mean("[run]\nterminals = 4\nhome = \"fixed\""));
        assert!((everywhere - fixed).abs() > 1e-6, "{everywhere} and {fixed}");
    }
}
