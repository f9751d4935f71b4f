//! What each node of the database holds and does, for schedulability: its endpoints are asked
//! before and after the run.
//!
//! An operation is a row that was read or changed, as the node itself counts. Where an endpoint is
//! only a way into a cluster, it would answer for all of it, so such databases are not asked. A
//! node that does not answer, or that was started anew meanwhile and counts from zero, has no
//! figure, never a wrong one.

use std::time::Instant;

use futures_util::future::join_all;

use crate::metrics::summary::NodeFigures;
use crate::target::{Connector, Failure, Kind};

/// What one node has said.
pub struct Look {
    node: String,
    data_bytes: Option<u64>,
    /// Since whenever.
    operations: Option<u64>,
    at: Instant,
}

/// Bytes, then operations.
fn queries(kind: Kind) -> Option<[&'static str; 2]> {
    match kind {
        Kind::Postgresql | Kind::Citus => Some([
            "SELECT pg_database_size(current_database())",
            "SELECT tup_fetched + tup_inserted + tup_updated + tup_deleted FROM pg_stat_database \
             WHERE datname = current_database()",
        ]),
        Kind::Mysql | Kind::Mariadb => Some([
            "SELECT SUM(data_length + index_length) FROM information_schema.tables \
             WHERE table_schema = DATABASE()",
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Handler_read_key', 'Handler_read_next', \
             'Handler_read_prev', 'Handler_read_rnd', 'Handler_write', 'Handler_update', 'Handler_delete')",
        ]),
        Kind::Cockroachdb | Kind::Yugabytedb | Kind::Plimsoll | Kind::Tidb | Kind::Oceanbase => None,
    }
}

/// Asks every node.
pub async fn look(connector: &Connector) -> Vec<Look> {
    let Some(queries) = queries(connector.kind()) else { return Vec::new() };
    join_all(connector.alone().into_iter().map(|(node, connector)| async move {
        let [data_bytes, operations] = ask(&connector, queries).await.unwrap_or_default();
        Look { node, data_bytes, operations, at: Instant::now() }
    }))
    .await
}

async fn ask(connector: &Connector, queries: [&str; 2]) -> Result<[Option<u64>; 2], Failure> {
    let mut session = connector.connect(0).await?;
    let mut sums = [None; 2];
    for (sum, query) in sums.iter_mut().zip(queries) {
        let rows = session.text(query).await?;
        let last = rows.iter().map(|row| row.last()?.as_ref()?.parse::<u64>().ok());
        *sum = last.collect::<Option<Vec<u64>>>().filter(|of| !of.is_empty()).map(|of| of.iter().sum());
    }
    Ok(sums)
}

/// What they held at the end, and did in between. Nothing runs after `ended`, so the time until a
/// node was asked again is no time in which it served.
pub fn figures(before: &[Look], after: Vec<Look>, ended: Instant) -> Vec<NodeFigures> {
    let figures = |(before, after): (&Look, Look)| {
        let operations = after.operations.zip(before.operations);
        let seconds = after.at.min(ended).saturating_duration_since(before.at).as_secs_f64();
        let per_second = |of: u64| of as f64 / seconds;
        let done = operations.and_then(|(after, before)| after.checked_sub(before));
        NodeFigures {
            node: after.node,
            data_bytes: after.data_bytes,
            operations_per_second: done.filter(|_| seconds > 0.0).map(per_second),
        }
    };
    let known = |node: &NodeFigures| node.data_bytes.is_some() || node.operations_per_second.is_some();
    before.iter().zip(after).map(figures).filter(known).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_node_that_counts_from_zero_again_has_no_rate() {
        let begun = Instant::now();
        let look = |node: &str, operations, after_s| Look {
            node: node.to_owned(),
            data_bytes: Some(7),
            operations,
            at: begun + Duration::from_secs(after_s),
        };
        let before = [look("a", Some(100), 0), look("b", Some(100), 0), look("c", None, 0)];
        let after = vec![look("a", Some(300), 4), look("b", Some(30), 4), look("c", Some(30), 4)];
        let figures = figures(&before, after, begun + Duration::from_secs(2));
        let rates: Vec<Option<f64>> = figures.iter().map(|node| node.operations_per_second).collect();
        assert_eq!(rates, [Some(100.0), None, None]);
    }
}
