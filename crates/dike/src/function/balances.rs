//! w_ytd of some warehouses, before and after a test that adds to it.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_types::random::Rng;

use super::insist;
use crate::config::Config;
use crate::load::LoadError;
use crate::target::{Cause, Connector, Failure, format_decimal};
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
    pub async fn read(config: &Config, connector: &Connector) -> Result<Balances, LoadError> {
        if config.data.warehouses < 2 {
            let why = "this test needs at least two warehouses: load more";
            return Err(Failure::new(Cause::Other, why).into());
        }
        let mut rng = Rng::new(config.run.seed, u64::MAX);
        let mut warehouses = rng.permutation(config.data.warehouses);
        warehouses.truncate(config.test.group as usize);
        warehouses.sort_unstable();
        let bound = Duration::from_secs_f64(config.test.bound_s);
        let cents =
            insist(connector, bound, async |session| select_balance(session, &warehouses).await).await?;
        let before_cents = warehouses.iter().copied().zip(cents).collect();
        Ok(Balances { warehouses, before_cents })
    }

    /// How much was added to each of these since, in cents, given what they have now.
    pub fn changes(&self, warehouses: &[u32], cents: &[i64]) -> Vec<i64> {
        warehouses.iter().zip(cents).map(|(w, cents)| cents - self.before_cents[w]).collect()
    }

    /// Holds what the database has against what sessions have added, and puts it back as it was.
    pub async fn settle(
        &self,
        connector: &Connector,
        added: &Added,
        bound: Duration,
    ) -> Result<Settled, LoadError> {
        let mut differences = None;
        // What an attempt that failed has put back is no change any more when the next one looks.
        let put_back = insist(connector, bound, async |session| {
            let now = select_balance(session, &self.warehouses).await?;
            differences.get_or_insert_with(|| self.differences(added, &now));
            for (w, change) in self.warehouses.iter().zip(self.changes(&self.warehouses, &now)) {
                if change != 0 {
                    let back = format_decimal(change, 2);
                    let update = format!("UPDATE warehouse SET w_ytd = w_ytd - {back} WHERE w_id = {w}");
                    session.text(&update).await?;
                }
            }
            Ok(())
        });
        let left = match put_back.await {
            Ok(()) => None,
            Err(failure) if !failure.cause.is_permanent() => {
                Some(format!("w_ytd could not be read and put back: {failure}"))
            }
            Err(failure) => return Err(failure.into()),
        };
        Ok(Settled { differences: differences.unwrap_or_default(), left })
    }

    /// Every warehouse that has not got what was added to it, as a sentence.
    fn differences(&self, added: &Added, now_cents: &[i64]) -> Vec<String> {
        let mut differences = Vec::new();
        for (w, change) in self.warehouses.iter().zip(self.changes(&self.warehouses, now_cents)) {
            let of = |steps: &BTreeMap<u32, i64>| steps.get(w).copied().unwrap_or(0) * BALANCE_STEP_CENTS;
            let (least, most) = (of(&added.steps), of(&added.steps) + of(&added.in_doubt));
            if change < least || change > most {
                let doubt = match most > least {
                    true => format!(", and others in doubt perhaps {}", format_decimal(most - least, 2)),
                    false => String::new(),
                };
                differences.push(format!(
                    "warehouse {w} has got {}, and transactions that were acknowledged have added {}{doubt}",
                    format_decimal(change, 2),
                    format_decimal(least, 2)
                ));
            }
        }
        differences
    }
}

/// What has become of the balances of a test.
pub struct Settled {
    /// Warehouses that have not got what was acknowledged, as sentences.
    pub differences: Vec<String>,
    /// Why they are not as they were, if an outage or a lock prevented that.
    pub left: Option<String>,
}
