//! Reads what the consistency conditions speak about.
//!
//! A whole audit reads one home, or the market place of one company, in one snapshot, and streams:
//! each stage is one piece of bounded size, and where it starts depends on what the stages before
//! have seen. Of a home ([`home`]) an audit keeps a few sums for each account and each broker; of a
//! market place ([`market`]) a sum for each home.
//!
//! **Sets.** Where rows of one table must be those of another, which is read in another order or in
//! another place, an audit does not keep them. A [`Set`] has their number and the sum of their
//! fingerprints, to which one table adds and from which the other takes away; it must come out
//! empty. Lots are followed so: what a trade has made of a lot is two rows of a set, "before" taken
//! away and "after" added, and HOLDING takes away what is left of it. Nothing remains if and only
//! if each trade has found what the one before left, and the last one left what is there.
//!
//! A *glance* ([`glance`]) is the cheap audit for a running system.
//!
//! What a stage has seen counts once the stage is complete: until then rows are in vectors of their
//! own, so that an interrupted stage can run again. A first stage forgets everything.
//! [`super::conditions`] judges what was seen.

pub(super) mod glance;
pub(super) mod home;
mod lots;
pub(super) mod market;
#[cfg(test)]
mod tests;
mod trade;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_types::{Abort, Key, Slot};

use super::Parameters;
use glance::Glance;
use home::HomeAudit;
use market::MarketAudit;

/// An audit of a home or of a market place, or a glance.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // There are few, and they are run in place.
pub enum Audit {
    /// A home.
    Home(HomeAudit),
    /// The market place of a company.
    Market(MarketAudit),
    /// One broker, one account or one security.
    Glance(Glance),
}

impl Audit {
    /// Audits that together read all that the conditions need: one for each home, one for each
    /// company.
    pub(super) fn all(parameters: &Parameters) -> Vec<Audit> {
        let scale = parameters.scale;
        let homes = (0..scale.homes()).map(|home| Audit::Home(HomeAudit::new(parameters, home)));
        let companies = (0..scale.companies())
            .map(|position| Audit::Market(MarketAudit::new(parameters, scale.company(position))));
        homes.chain(companies).collect()
    }

    /// A glance for the online check.
    pub(super) fn online(parameters: &Parameters, number: usize) -> Audit {
        Audit::Glance(Glance::new(parameters, number))
    }

    /// Lets a glance go on from the one before it.
    pub(super) fn follow(&mut self, last: &Audit) {
        if let (Audit::Glance(glance), Audit::Glance(last)) = (self, last) {
            glance.follow(last);
        }
    }
}

/// Calls a method of whichever audit it is.
macro_rules! each {
    ($audit:expr, $inner:ident => $call:expr) => {
        match $audit {
            Audit::Home($inner) => $call,
            Audit::Market($inner) => $call,
            Audit::Glance($inner) => $call,
        }
    };
}

impl Procedure for Audit {
    fn read_only(&self) -> bool {
        true
    }

    fn stage(&self, stage: usize) -> usize {
        each!(self, inner => inner.stage(stage))
    }

    fn home(&self, piece: Piece) -> Slot {
        each!(self, inner => inner.home(piece))
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        each!(self, inner => inner.reads(piece, reads));
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        each!(self, inner => inner.execute(piece, access))
    }
}

plimsoll_txn::executable!(Audit);

/// Declares structures of one row, which are one record if groups are not split.
macro_rules! declare {
    ($layout:expr, $reads:expr, $key:expr, $first:ty $(, $more:ty)*) => {{
        $reads.get($layout.column::<$first>(), $key);
        if $layout.split {
            $($reads.get($layout.column::<$more>(), $key);)*
        }
    }};
}
use declare;

/// A mark of some numbers that hardly any others have.
pub(super) fn fingerprint<const N: usize>(numbers: [u64; N]) -> u64 {
    numbers.into_iter().fold(0x9e37_79b9_7f4a_7c15, |hash, number| {
        let hash = (hash ^ number).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 29)
    })
}

/// Rows, as their number and the sum of their fingerprints, whatever their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set {
    pub(super) count: i64,
    sum: u64,
}

impl Set {
    /// Adds a row.
    pub(super) fn add(&mut self, fingerprint: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(fingerprint);
    }

    /// Takes a row away, whether or not it was added.
    pub(super) fn take(&mut self, fingerprint: u64) {
        self.count -= 1;
        self.sum = self.sum.wrapping_sub(fingerprint);
    }

    /// Adds the rows of another.
    pub(super) fn join(&mut self, other: Set) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// Takes away the rows of another.
    pub(super) fn part(&mut self, other: Set) {
        self.count -= other.count;
        self.sum = self.sum.wrapping_sub(other.sum);
    }
}

/// Where a range is continued behind what a stage has read of it: `None` if that was all, because
/// it was less than the limit.
fn behind(rows: usize, limit: usize, last: Option<&Key>) -> Option<Key> {
    last.filter(|_| rows == limit).map(Key::just_after)
}
