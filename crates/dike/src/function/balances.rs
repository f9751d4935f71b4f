//! w_ytd of some warehouses, before and after a test that adds to it.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_types::random::Rng;

use crate::config::Config;
use crate::load::LoadError;
use crate::target::{Cause, Connector, Failure, Session, format_decimal};
use crate::transactions::{BALANCE_STEP_CENTS, select_balance};

/// The warehouses of a test and what they had at its beginning.
pub struct Balances {
    /// In ascending order.
    pub warehouses: Vec<u32>,
    before_cents: BTreeMap<u32, i64>,
}

/// What a session knows to have added, in steps, by warehouse.
#[derive(Clone, Debug, Default)]
pub struct Added {
    /// Acknowledged.
    pub steps: BTreeMap<u32, i64>,
    /// Perhaps.
    pub in_doubt: BTreeMap<u32, i64>,
}

impl Added {
    /// A transaction has added one step to each of these.
    pub fn committed(&mut self, warehouses: &[u32]) {
        warehouses.iter().for_each(|w| *self.steps.entry(*w).or_default() += 1);
    }

    /// A transaction may have.
    pub fn unknown(&mut self, warehouses: &[u32]) {
        warehouses.iter().for_each(|w| *self.in_doubt.entry(*w).or_default() += 1);
    }

    /// Both together.
    pub fn merge(&mut self, other: Added) {
        other.steps.into_iter().for_each(|(w, steps)| *self.steps.entry(w).or_default() += steps);
        other.in_doubt.into_iter().for_each(|(w, steps)| *self.in_doubt.entry(w).or_default() += steps);
    }
}

impl Balances {
    /// Chooses `test.group` warehouses, or all if there are not as many, and reads what they have.
    pub async fn read(config: &Config, session: &mut Session) -> Result<Balances, LoadError> {
        if config.data.warehouses < 2 {
            let why = "this test needs at least two warehouses: load more";
            return Err(Failure::new(Cause::Other, why).into());
        }
        let mut rng = Rng::new(config.run.seed, u64::MAX);
        let mut warehouses = rng.permutation(config.data.warehouses);
        warehouses.truncate(config.test.group as usize);
        warehouses.sort_unstable();
        let cents = select_balance(session, &warehouses).await?;
        let before_cents = warehouses.iter().copied().zip(cents).collect();
        Ok(Balances { warehouses, before_cents })
    }

    /// How much was added to each of these since, in cents, given what they have now.
    pub fn changes(&self, warehouses: &[u32], cents: &[i64]) -> Vec<i64> {
        warehouses.iter().zip(cents).map(|(w, cents)| cents - self.before_cents[w]).collect()
    }

    /// Holds what the database has against what sessions have added, puts it back as it was, and
    /// returns every difference as a sentence.
    pub async fn settle(
        &self,
        connector: &Connector,
        added: &Added,
        bound: Duration,
    ) -> Result<Vec<String>, LoadError> {
        let mut session = connector.connect(0).await?;
        let now = select_balance(&mut session, &self.warehouses).await?;
        let mut differences = Vec::new();
        for (w, change) in self.warehouses.iter().zip(self.changes(&self.warehouses, &now)) {
            let of = |steps: &BTreeMap<u32, i64>| steps.get(w).copied().unwrap_or(0) * BALANCE_STEP_CENTS;
            let (least, most) = (of(&added.steps), of(&added.steps) + of(&added.in_doubt));
            if change < least || change > most {
                differences.push(format!(
                    "warehouse {w} has got {}, and transactions that were acknowledged have added {}",
                    format_decimal(change, 2),
                    format_decimal(least, 2)
                ));
            }
            let back = format_decimal(change, 2);
            let update = format!("UPDATE warehouse SET w_ytd = w_ytd - {back} WHERE w_id = {w}");
            let Ok(updated) = tokio::time::timeout(bound, session.text(&update)).await else {
                connector.abandon(session);
                differences
                    .push(format!("w_ytd of warehouse {w} and more could not be put back: it is locked"));
                break;
            };
            updated?;
        }
        Ok(differences)
    }
}
