//! Lots and their sums, of the accounts that an audit or a glance looks at.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Scan};
use plimsoll_types::Abort;

use super::fingerprint;
use crate::tpce::numbers::Trade;
use crate::tpce::schema::*;
use crate::verdict::Verdict;

/// The lots of some accounts, and their sums.
#[derive(Default)]
pub(super) struct Lots {
    by_security: BTreeMap<(u32, u32), LotsOfSecurity>,
    /// Account and fingerprint of each lot.
    pub(super) left: Vec<(u32, u64)>,
    /// Each lot, as the trade that began it, with its price.
    pub(super) prices: Vec<(Trade, i32)>,
}

#[derive(Default)]
struct LotsOfSecurity {
    sum: i64,
    /// HS_QTY.
    summary: Option<i64>,
    positive: bool,
    negative: bool,
    zero: bool,
}

impl Lots {
    /// Reads ranges of HOLDING and of HOLDING_SUMMARY.
    pub(super) fn read<A: Access>(
        &mut self,
        layout: Layout,
        [holdings, summaries]: &[Scan; 2],
        access: &mut A,
    ) -> Result<(), Abort> {
        let Lots { by_security, left, prices } = self;
        access.scan(holdings, |key, record| {
            let (row, _) = layout.view::<Holding>(record);
            let (account, security) = (key.leading_int(4) as u32, keys::security_of(key));
            let (quantity, lots) = (row.quantity.get(), by_security.entry((account, security)).or_default());
            lots.sum += i64::from(quantity);
            lots.positive |= quantity > 0;
            lots.negative |= quantity < 0;
            lots.zero |= quantity == 0;
            prices.push((Trade(row.trade.get()), row.price.get()));
            left.push((account, left_of(Trade(row.trade.get()), security, quantity)));
            ControlFlow::Continue(())
        })?;
        access.scan(summaries, |key, record| {
            let (row, _) = layout.view::<HoldingSummary>(record);
            let at = (key.leading_int(4) as u32, keys::security_of(key));
            by_security.entry(at).or_default().summary = Some(row.quantity.get().into());
            ControlFlow::Continue(())
        })
    }

    /// Judges conditions 3 and 4.
    pub(super) fn judge(&self, summaries: &mut Verdict, signs: &mut Verdict) {
        for (&(account, security), lots) in &self.by_security {
            let &LotsOfSecurity { sum, summary, positive, negative, zero } = lots;
            let any = positive || negative || zero;
            summaries.expect(any && summary == Some(sum) && sum != 0, || {
                format!("account {account} has {sum} of security {security}, and says {summary:?}")
            });
            signs.expect(!zero && positive != negative || !any, || {
                format!("account {account} has lots of both signs or of 0 of security {security}")
            });
        }
    }
}

/// The fingerprint of what is left of a lot.
pub(super) fn left_of(lot: Trade, security: u32, quantity: i32) -> u64 {
    fingerprint([lot.0, security.into(), quantity as u64])
}
