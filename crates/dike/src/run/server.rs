//! What each node of the database says of its settings, before a run.
//!
//! Only settings that bear on speed, durability or isolation are asked for; a database that does
//! not know one of them, or no such question at all, is no reason not to run.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use crate::metrics::environment::Settings;
use crate::target::ddl::TABLES;
use crate::target::{Connector, Failure, Family};

/// Settings of PostgreSQL and what speaks like it.
const OF_POSTGRES: [&str; 35] = [
    "autovacuum",
    "checkpoint_timeout",
    "citus.shard_count",
    "citus.shard_replication_factor",
    "commit_delay",
    "data_checksums",
    "deadlock_timeout",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "effective_cache_size",
    "fsync",
    "full_page_writes",
    "huge_pages",
    "idle_in_transaction_session_timeout",
    "jit",
    "lock_timeout",
    "max_connections",
    "max_parallel_workers_per_gather",
    "max_wal_size",
    "random_page_cost",
    "server_version",
    "shared_buffers",
    "statement_timeout",
    "synchronous_commit",
    "synchronous_standby_names",
    "track_io_timing",
    "transaction_isolation",
    "transaction_timeout",
    "wal_buffers",
    "wal_compression",
    "wal_level",
    "wal_sync_method",
    "work_mem",
    "yb_enable_read_committed_isolation",
    "zero_damaged_pages",
];

/// Settings of MySQL and what speaks like it.
const OF_MYSQL: [&str; 38] = [
    "autocommit",
    "innodb_autoinc_lock_mode",
    "innodb_buffer_pool_size",
    "innodb_deadlock_detect",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_io_capacity",
    "innodb_lock_wait_timeout",
    "innodb_log_buffer_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "innodb_rollback_on_timeout",
    "innodb_snapshot_isolation",
    "log_bin",
    "max_connections",
    "max_execution_time",
    "max_statement_time",
    "ob_query_timeout",
    "ob_trx_timeout",
    "performance_schema",
    "query_cache_type",
    "read_only",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_source_enabled",
    "super_read_only",
    "sync_binlog",
    "thread_handling",
    "tidb_enable_1pc",
    "tidb_enable_async_commit",
    "tidb_guarantee_linearizability",
    "tidb_txn_mode",
    "transaction_isolation",
    "tx_isolation",
    "tx_read_only",
    "version",
    "version_comment",
    "wsrep_on",
];

/// Settings by node, as its endpoints are named. A node that does not tell is left out.
pub async fn settings(connector: &Connector) -> BTreeMap<String, Settings> {
    let asked = connector.alone().into_iter().map(|(node, connector)| async move {
        let settings = ask(&connector).await.unwrap_or_default();
        (node, settings)
    });
    join_all(asked).await.into_iter().filter(|(_, settings)| !settings.is_empty()).collect()
}

async fn ask(connector: &Connector) -> Result<Settings, Failure> {
    let quoted = |names: &mut dyn Iterator<Item = &str>| {
        names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
    };
    let tables = quoted(&mut TABLES.iter().map(|table| table.name));
    let (question, about_tables) = match connector.family() {
        Family::Postgres => (
            format!(
                "SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({})",
                quoted(&mut OF_POSTGRES.into_iter())
            ),
            format!(
                "SELECT 'unlogged_tables', relname FROM pg_class WHERE relpersistence = 'u' AND relkind IN \
                 ('r', 'p') AND pg_table_is_visible(oid) AND relname IN ({tables}) ORDER BY relname"
            ),
        ),
        Family::Mysql => (
            format!("SHOW VARIABLES WHERE Variable_name IN ({})", quoted(&mut OF_MYSQL.into_iter())),
            format!(
                "SELECT DISTINCT 'engine', engine FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name IN ({tables}) AND engine IS NOT NULL"
            ),
        ),
    };
    let mut session = connector.connect(0).await?;
    let mut settings = Settings::new();
    let mut rows = session.text(&question).await?;
    // Not every database knows what its tables are kept in.
    rows.extend(session.text(&about_tables).await.unwrap_or_default());
    for row in rows {
        if let [Some(name), Some(value)] = &row[..] {
            let known = settings.entry(name.to_lowercase()).or_default();
            *known = if known.is_empty() { value.clone() } else { format!("{known}, {value}") };
        }
    }
    Ok(settings)
}
