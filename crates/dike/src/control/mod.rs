//! The controlled quantities: distribution, contention, skew, dynamics.
//!
//! Dike (Qu et al., "How Good is the Distributed Databases in Supporting Transaction Processing",
//! section 4) argues that two databases can only be compared if what makes a load hard is a number
//! that both get. Each module here turns such a number into decisions, transaction by transaction,
//! and counts what came of them:
//!
//! | quantity | module | paper |
//! |---|---|---|
//! | share of distributed transactions, nodes in one | [`placement`], [`distribution`] | 4.2.1, Algorithm 1 |
//! | transactions that compete for one item | [`contention`], [`queue`] | 4.2.2, Definition 1 |
//! | skewed access, hot spots that move, imbalanced data | [`skew`] | 4.3 |
//! | warehouses that are updated together | [`coaccess`] | 4.3.2 |
//! | load that swells and falls, a mix that changes | [`load`], [`mix`] | 5, "Dynamics" |
//!
//! [`track`] is what they have in common: *intended against achieved*, second by second.
//!
//! Everything is a function of what it is given. Nothing here reads a clock (time is nanoseconds
//! since the run's start), waits, or knows a database; chance comes from a generator that the
//! caller seeds. So a run can be repeated, and the tests check the promises over simulated
//! placements and servers.
//!
//! `docs/dike-controls.md` has the definitions side by side with the paper's and the published
//! tool's.

pub mod coaccess;
pub mod contention;
pub mod distribution;
pub mod load;
pub mod mix;
pub mod placement;
pub mod queue;
pub mod skew;
pub mod track;

use plimsoll_types::random::Rng;

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// A uniform number in [0, 1).
fn unit(rng: &mut Rng) -> f64 {
    (rng.bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// A uniform number in (0, 1]: its logarithm is finite.
fn unit_above_zero(rng: &mut Rng) -> f64 {
    1.0 - unit(rng)
}
