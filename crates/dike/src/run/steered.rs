//! The choices of a terminal under the controls of a [`Plan`]: [`Control`] as the controls have it,
//! TPC-C's own where there is none.
//!
//! What was chosen is counted here against what was intended, each terminal by itself; [`Tallies`]
//! of all terminals add up to the controls of the run's document.
//!
//! **Hot districts.** Hot district k is district 1 of warehouse k. A New-Order takes a place there
//! if contention is controlled and a place is free. Nothing else uses a hot district: what competes
//! for it is then what the control counts.

use std::sync::Arc;

use plimsoll_types::random::Rng;

use super::plan::Plan;
use crate::control::coaccess::CoAccessTally;
use crate::control::contention::{Contender, HotSpots};
use crate::control::distribution::{Distribution, DistributionTally, order_lines, supply_warehouse};
use crate::control::mix::MixTally;
use crate::control::placement::Placement;
use crate::control::skew::SkewTally;
use crate::control::track::Control as Report;
use crate::load::scale::DISTRICTS;
use crate::transactions::inputs::Place;
use crate::transactions::{Control, Plain, Transaction};

/// The choices of one terminal.
pub struct Steered {
    plan: Arc<Plan>,
    plain: Plain,
    spots: Option<Arc<HotSpots>>,
    /// What the transaction that was chosen last competes for.
    contender: Option<Contender>,
    /// Room for the warehouses of a transaction.
    chosen: Vec<u32>,
    tallies: Tallies,
}

/// What terminals have chosen.
#[derive(Clone, Default)]
pub struct Tallies {
    mix: MixTally,
    homes: SkewTally,
    new_order: DistributionTally,
    stock_level: DistributionTally,
    together: CoAccessTally,
}

impl Steered {
    /// For one terminal. `spots` are the run's hot districts, if contention is controlled.
    pub fn new(plan: Arc<Plan>, plain: Plain, spots: Option<Arc<HotSpots>>) -> Steered {
        Steered { plan, plain, spots, contender: None, chosen: Vec::new(), tallies: Tallies::default() }
    }

    /// The place at a hot district that the transaction which was chosen last has, if it has one.
    pub fn take_contender(&mut self) -> Option<Contender> {
        self.contender.take()
    }

    /// What it has chosen.
    pub fn into_tallies(self) -> Tallies {
        self.tallies
    }
}

impl Tallies {
    /// Adds another terminal's.
    pub fn merge(&mut self, other: &Tallies) {
        self.mix.merge(&other.mix);
        self.homes.merge(&other.homes);
        self.new_order.merge(&other.new_order);
        self.stock_level.merge(&other.stock_level);
        self.together.merge(&other.together);
    }

    /// Intended against achieved, of every control of the plan that chooses.
    pub fn finish(&self, plan: &Plan) -> Vec<Report> {
        let mut reports = Vec::new();
        reports.extend(self.new_order.finish(Transaction::NewOrder.name()));
        reports.extend(self.stock_level.finish(Transaction::StockLevel.name()));
        if let Some(homes) = &plan.homes {
            reports.push(self.homes.finish(homes, "homes"));
        }
        if let Some(co_access) = &plan.co_access {
            reports.extend(self.together.finish(co_access));
        }
        if plan.mixes.is_some() {
            reports.extend(self.mix.finish(&Transaction::ALL.map(Transaction::name)));
        }
        // Nothing was observed of a transaction that is not in the mix.
        reports.retain(|report| !report.weight.is_empty());
        reports
    }
}

/// Chooses the warehouses of one transaction, home first, and counts them.
fn spread<'a>(
    distribution: &Distribution,
    placement: &Placement,
    tally: &mut DistributionTally,
    chosen: &'a mut Vec<u32>,
    (home, now_ns): (u32, u64),
    rng: &mut Rng,
) -> &'a [u32] {
    distribution.choose(home, rng, chosen);
    tally.record(now_ns, distribution, chosen, placement.nodes_of(chosen));
    chosen
}

impl Control for Steered {
    fn transaction(&mut self, now_ns: u64, rng: &mut Rng) -> Transaction {
        let Some(mixes) = &self.plan.mixes else { return self.plain.transaction(now_ns, rng) };
        let kind = mixes.draw(now_ns, rng);
        self.tallies.mix.record(now_ns, mixes, kind);
        Transaction::ALL[kind]
    }

    fn home(&mut self, transaction: Transaction, now_ns: u64, rng: &mut Rng) -> Place {
        if transaction == Transaction::NewOrder
            && let Some(contender) = self.spots.as_ref().and_then(HotSpots::start)
        {
            let warehouse = contender.item() as u32 + 1;
            self.contender = Some(contender);
            return Place { warehouse, district: Some(1) };
        }
        let mut place = self.plain.home(transaction, now_ns, rng);
        if let Some(homes) = &self.plan.homes {
            let drawn = homes.draw(now_ns, rng);
            place.warehouse = drawn as u32 + 1;
            // A group of co-access has no home, and a price no warehouse.
            let grouped = transaction == Transaction::UpdateStock && self.plan.co_access.is_some();
            if !grouped && transaction != Transaction::UpdateItem {
                self.tallies.homes.record(now_ns, homes, drawn);
            }
        }
        let hot = self.plan.contention.as_ref().map_or(0, |schedule| schedule.items());
        if place.warehouse as usize <= hot {
            place.district = Some(rng.uniform(2..=u64::from(DISTRICTS)) as u32);
        }
        place
    }

    fn suppliers(&mut self, home: u32, now_ns: u64, rng: &mut Rng) -> Vec<u32> {
        let Some(distribution) = &self.plan.new_order else {
            let suppliers = self.plain.suppliers(home, now_ns, rng);
            let spread = suppliers.iter().any(|&supplier| supplier != home);
            self.tallies.new_order.record_ratio(now_ns, self.plan.remote_orders, spread);
            return suppliers;
        };
        let (placement, tally) = (&self.plan.placement, &mut self.tallies.new_order);
        let chosen = spread(distribution, placement, tally, &mut self.chosen, (home, now_ns), rng);
        (0..order_lines(rng, chosen.len())).map(|line| supply_warehouse(line, chosen)).collect()
    }

    fn payer(&mut self, home: u32, rng: &mut Rng) -> u32 {
        self.plain.payer(home, rng)
    }

    fn warehouses(&mut self, transaction: Transaction, home: u32, now_ns: u64, rng: &mut Rng) -> Vec<u32> {
        match (transaction, &self.plan.stock_level, &self.plan.co_access) {
            (Transaction::StockLevel, Some(distribution), _) => {
                let (placement, tally) = (&self.plan.placement, &mut self.tallies.stock_level);
                spread(distribution, placement, tally, &mut self.chosen, (home, now_ns), rng).to_vec()
            }
            (Transaction::UpdateStock, _, Some(co_access)) => {
                let group = co_access.choose(now_ns, rng, &mut self.chosen);
                self.tallies.together.record(now_ns, co_access, group);
                self.chosen.clone()
            }
            _ => self.plain.warehouses(transaction, home, now_ns, rng),
        }
    }
}
