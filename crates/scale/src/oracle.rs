//! What an oracle costs: its scheme, and the messages to it.

use std::time::Duration;

use plimsoll_bench::outcome::outcome;
use plimsoll_txn::timestamp::Scheme;

use crate::executor::Executor;
use crate::predict::model::OracleCosts;

/// Measures for about so long.
pub fn measure<S: Scheme>(time: Duration, executor: &Executor) -> OracleCosts {
    // The oracle's share of a message is what carrying it costs, besides the pass: received,
    // answered, with a batch each.
    let message_ns = 2.0 * executor.message_ns + 2.0 * executor.batch_ns;
    let (report_ns, outcome_ns) = outcome::<S>(time);
    OracleCosts { report_ns, access_ns: 0.0, message_ns, outcome_ns }
}
