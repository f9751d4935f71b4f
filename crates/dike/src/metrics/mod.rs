//! What a run measures.
//!
//! Each terminal has a [`Recorder`]; at the end they are merged and become a [`Run`], which a
//! [`Document`] keeps as JSON. Everything that is said about a run later is a function of its
//! document:
//!
//! * [`latency`]: distributions of latencies, mergeable, and their heat map over time;
//! * [`recorder`]: counting while the run goes on;
//! * [`document`]: what is kept, and what its versions are;
//! * [`figures`]: throughput, latency and all the rest of one run;
//! * [`availability`]: outages, and the paper's R_e and T_e (Equation 4) with the rule by which
//!   time to recovery is read off the throughput curve;
//! * [`summary`]: scalability (Equation 3), box plots of nodes, medians and spread of repetitions,
//!   and whether the client itself was the bottleneck.
//!
//! **What counts.** A transaction counts in the second of the run in which it ended. The warm-up is
//! recorded and shown but enters no figure; the second in which the run ended counts only if it is
//! whole. A transaction that was started in the warm-up and ended after it counts: in a steady
//! state as many straddle the one border as the other.
//!
//! No clock is read here: times are nanoseconds since the run's start.

pub mod availability;
pub mod document;
pub mod environment;
pub mod figures;
pub mod latency;
pub mod recorder;
pub mod series;
pub mod summary;

pub use document::{Document, Fault, Run};
pub use recorder::Recorder;
