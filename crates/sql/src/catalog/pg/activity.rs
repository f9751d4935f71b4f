//! What runs: the sessions of the node.

use super::{NULL, NodeSight, Row, ShownSession, Sight, int4, none, numbers, oid, relations, text};
use crate::types::Datum;

#[rustfmt::skip]
relations! { PG_CATALOG:
    12077 12079 b'v' "pg_cursors" none:
        name TEXT, statement TEXT, is_holdable BOOL, is_binary BOOL, is_scrollable BOOL,
        creation_time TIMESTAMPTZ;
    12073 12075 b'v' "pg_locks" none:
        locktype TEXT, database OID, relation OID, page INT4, tuple INT2, virtualxid TEXT,
        transactionid XID, classid OID, objid OID, objsubid INT2, virtualtransaction TEXT,
        pid INT4, mode TEXT, granted BOOL, fastpath BOOL, waitstart TIMESTAMPTZ;
    12095 12097 b'v' "pg_prepared_statements" none:
        name TEXT, statement TEXT, prepare_time TIMESTAMPTZ, parameter_types REGTYPE_ARRAY,
        from_sql BOOL, generic_plans INT8, custom_plans INT8;
    12090 12092 b'v' "pg_prepared_xacts" none:
        transaction XID, gid TEXT, prepared TIMESTAMPTZ, owner NAME, database NAME;
    12222 12224 b'v' "pg_stat_activity" sessions (Node):
        datid OID, datname NAME, pid INT4, leader_pid INT4, usesysid OID, usename NAME,
        application_name TEXT, client_addr INET, client_hostname TEXT, client_port INT4,
        backend_start TIMESTAMPTZ, xact_start TIMESTAMPTZ, query_start TIMESTAMPTZ,
        state_change TIMESTAMPTZ, wait_event_type TEXT, wait_event TEXT, state TEXT,
        backend_xid XID, backend_xmin XID, query_id INT8, query TEXT, backend_type TEXT;
    12183 12185 b'v' "pg_stat_all_indexes" none:
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME,
        idx_scan INT8, idx_tup_read INT8, idx_tup_fetch INT8;
    12142 12144 b'v' "pg_stat_all_tables" none:
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8, idx_scan INT8,
        idx_tup_fetch INT8, n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8, n_tup_hot_upd INT8,
        n_live_tup INT8, n_dead_tup INT8, n_mod_since_analyze INT8, n_ins_since_vacuum INT8,
        last_vacuum TIMESTAMPTZ, last_autovacuum TIMESTAMPTZ, last_analyze TIMESTAMPTZ,
        last_autoanalyze TIMESTAMPTZ, vacuum_count INT8, autovacuum_count INT8,
        analyze_count INT8, autoanalyze_count INT8;
    12266 12268 b'v' "pg_stat_database" none:
        datid OID, datname NAME, numbackends INT4, xact_commit INT8, xact_rollback INT8,
        blks_read INT8, blks_hit INT8, tup_returned INT8, tup_fetched INT8, tup_inserted INT8,
        tup_updated INT8, tup_deleted INT8, conflicts INT8, temp_files INT8, temp_bytes INT8,
        deadlocks INT8, checksum_failures INT8, checksum_last_failure TIMESTAMPTZ,
        blk_read_time FLOAT8, blk_write_time FLOAT8, session_time FLOAT8, active_time FLOAT8,
        idle_in_transaction_time FLOAT8, sessions INT8, sessions_abandoned INT8,
        sessions_fatal INT8, sessions_killed INT8, stats_reset TIMESTAMPTZ;
    12192 12194 b'v' "pg_stat_user_indexes" none:
        relid OID, indexrelid OID, schemaname NAME, relname NAME, indexrelname NAME,
        idx_scan INT8, idx_tup_read INT8, idx_tup_fetch INT8;
    12161 12163 b'v' "pg_stat_user_tables" none:
        relid OID, schemaname NAME, relname NAME, seq_scan INT8, seq_tup_read INT8, idx_scan INT8,
        idx_tup_fetch INT8, n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8, n_tup_hot_upd INT8,
        n_live_tup INT8, n_dead_tup INT8, n_mod_since_analyze INT8, n_ins_since_vacuum INT8,
        last_vacuum TIMESTAMPTZ, last_autovacuum TIMESTAMPTZ, last_analyze TIMESTAMPTZ,
        last_autoanalyze TIMESTAMPTZ, vacuum_count INT8, autovacuum_count INT8,
        analyze_count INT8, autoanalyze_count INT8;
    12126 12128 b'v' "pg_timezone_names" none:
        name TEXT, abbrev TEXT, utc_offset INTERVAL, is_dst BOOL;
}

/// `pg_stat_activity`
fn sessions(sight: &Sight<'_>) -> Vec<Row> {
    let time = |us: Option<i64>| us.map_or(NULL, Datum::TimestampTz);
    let row = |it: ShownSession| {
        let (kind, event) = if it.is_waiting { (text("Lock"), text("tuple")) } else { (NULL, NULL) };
        vec![
            oid(numbers::DATABASE),
            text(it.database),
            int4(it.pid),
            NULL,
            oid(numbers::OWNER),
            text(it.user),
            text(it.application),
            NULL,
            NULL,
            it.client.map_or(NULL, |client| int4(client.port())),
            time(Some(it.begun_us)),
            time(it.transaction_us),
            time(it.statement_us),
            time(Some(it.changed_us)),
            kind,
            event,
            text(it.state.name()),
            NULL,
            NULL,
            NULL,
            text(it.statement),
            text("client backend"),
        ]
    };
    let sessions = sight.session.node().map_or_else(Vec::new, NodeSight::sessions);
    sessions.into_iter().map(row).collect()
}
