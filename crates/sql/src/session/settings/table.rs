//! The settings there are: names, values that they may have, defaults, and what PostgreSQL says of
//! them.
//!
//! It is PostgreSQL 15's list without what concerns its files, its log and its write-ahead log.
//! Most of what steers its planner has no effect here, yet clients set it, so it is kept and shown.

/// What a value has to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// `on` or `off`.
    Bool,
    /// A whole number between two others, perhaps in a unit.
    Int(Unit, i64, i64),
    /// A number between two others.
    Real(f64, f64),
    /// One of these.
    Choice(&'static [&'static str]),
    /// Anything.
    Text,
    /// Anything, where what is not ASCII is replaced.
    Ascii,
    /// A list of names.
    Names,
    /// `on`: the other value is not supported.
    AlwaysOn,
    /// The encoding of texts: that of the server.
    Encoding,
    /// A form and an order of dates.
    DateStyle,
    /// A time zone.
    Zone,
    /// A role, or `none`.
    Role,
}

/// What a whole number counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Nothing in particular.
    None,
    /// So many bytes.
    Bytes(i64),
    /// So many microseconds.
    Micros(i64),
}

/// Who may change a setting, and who sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    /// A session.
    Session,
    /// A session, but `SHOW ALL` leaves it out.
    Hidden,
    /// Who starts the server.
    Start,
    /// Nobody.
    Fixed,
}

/// A setting.
#[derive(Debug)]
pub(super) struct Setting {
    /// Its name, as it is shown.
    pub name: &'static str,
    /// Who may change it.
    pub scope: Scope,
    /// What its values are.
    pub kind: Kind,
    /// What it is if nobody has changed it, in its own unit.
    pub default: &'static str,
    /// What `SHOW ALL` says of it.
    pub about: &'static str,
}

/// The version that the catalog looks like, and ours.
const SERVER_VERSION: &str = concat!("15.0 (Plimsoll ", env!("CARGO_PKG_VERSION"), ")");

macro_rules! settings {
    ($($name:literal $scope:ident [$($kind:tt)*] $default:tt $about:literal;)*) => {
        /// All settings, by their names in lower case.
        pub(super) static SETTINGS: &[Setting] = &[
            $(Setting {
                name: $name,
                scope: Scope::$scope,
                kind: Kind::$($kind)*,
                default: $default,
                about: $about,
            },)*
        ];
    };
}

/// The setting of a name; case does not matter.
pub(super) fn find(name: &str) -> Option<&'static Setting> {
    let lower = name.to_ascii_lowercase();
    let place = SETTINGS.binary_search_by(|setting| {
        setting.name.bytes().map(|byte| byte.to_ascii_lowercase()).cmp(lower.bytes())
    });
    place.ok().and_then(|place| SETTINGS.get(place))
}

settings! {
    "application_name" Session [Ascii] "" "Sets the application name to be reported in statistics and logs.";
    "array_nulls" Session [Bool] "on" "Enable input of NULL elements in arrays.";
    "backslash_quote" Session [Choice(&["safe_encoding", "on", "off"])] "safe_encoding" "Sets whether \"\\'\" is allowed in string literals.";
    "block_size" Fixed [Int(Unit::None, 8192, 8192)] "8192" "Shows the size of a disk block.";
    "bytea_output" Session [Choice(&["escape", "hex"])] "hex" "Sets the output format for bytea.";
    "check_function_bodies" Session [Bool] "on" "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.";
    "client_encoding" Session [Encoding] "UTF8" "Sets the client's character set encoding.";
    "client_min_messages" Session [Choice(&["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"])] "notice" "Sets the message levels that are sent to the client.";
    "constraint_exclusion" Session [Choice(&["partition", "on", "off"])] "partition" "Enables the planner to use constraints to optimize queries.";
    "cpu_index_tuple_cost" Session [Real(0.0, f64::MAX)] "0.005" "Sets the planner's estimate of the cost of processing each index entry during an index scan.";
    "cpu_operator_cost" Session [Real(0.0, f64::MAX)] "0.0025" "Sets the planner's estimate of the cost of processing each operator or function call.";
    "cpu_tuple_cost" Session [Real(0.0, f64::MAX)] "0.01" "Sets the planner's estimate of the cost of processing each tuple (row).";
    "cursor_tuple_fraction" Session [Real(0.0, 1.0)] "0.1" "Sets the planner's estimate of the fraction of a cursor's rows that will be retrieved.";
    "DateStyle" Session [DateStyle] "ISO, MDY" "Sets the display format for date and time values.";
    "default_statistics_target" Session [Int(Unit::None, 1, 10000)] "100" "Sets the default statistics target.";
    "default_table_access_method" Session [Text] "heap" "Sets the default table access method for new tables.";
    "default_tablespace" Session [Text] "" "Sets the default tablespace to create tables and indexes in.";
    "default_text_search_config" Session [Text] "pg_catalog.english" "Sets default text search configuration.";
    "default_toast_compression" Session [Choice(&["pglz", "lz4"])] "pglz" "Sets the default compression method for compressible values.";
    "default_transaction_deferrable" Session [Bool] "off" "Sets the default deferrable status of new transactions.";
    "default_transaction_isolation" Session [Choice(&["serializable", "repeatable read", "read committed", "read uncommitted"])] "serializable" "Sets the transaction isolation level of each new transaction.";
    "default_transaction_read_only" Session [Bool] "off" "Sets the default read-only status of new transactions.";
    "effective_cache_size" Session [Int(Unit::Bytes(8 << 10), 1, 2147483647)] "524288" "Sets the planner's assumption about the total size of the data caches.";
    "effective_io_concurrency" Session [Int(Unit::None, 0, 1000)] "1" "Number of simultaneous requests that can be handled efficiently by the disk subsystem.";
    "enable_async_append" Session [Bool] "on" "Enables the planner's use of async append plans.";
    "enable_bitmapscan" Session [Bool] "on" "Enables the planner's use of bitmap-scan plans.";
    "enable_gathermerge" Session [Bool] "on" "Enables the planner's use of gather merge plans.";
    "enable_hashagg" Session [Bool] "on" "Enables the planner's use of hashed aggregation plans.";
    "enable_hashjoin" Session [Bool] "on" "Enables the planner's use of hash join plans.";
    "enable_incremental_sort" Session [Bool] "on" "Enables the planner's use of incremental sort steps.";
    "enable_indexonlyscan" Session [Bool] "on" "Enables the planner's use of index-only-scan plans.";
    "enable_indexscan" Session [Bool] "on" "Enables the planner's use of index-scan plans.";
    "enable_material" Session [Bool] "on" "Enables the planner's use of materialization.";
    "enable_memoize" Session [Bool] "on" "Enables the planner's use of memoization.";
    "enable_mergejoin" Session [Bool] "on" "Enables the planner's use of merge join plans.";
    "enable_nestloop" Session [Bool] "on" "Enables the planner's use of nested-loop join plans.";
    "enable_parallel_append" Session [Bool] "on" "Enables the planner's use of parallel append plans.";
    "enable_parallel_hash" Session [Bool] "on" "Enables the planner's use of parallel hash plans.";
    "enable_partition_pruning" Session [Bool] "on" "Enables plan-time and execution-time partition pruning.";
    "enable_partitionwise_aggregate" Session [Bool] "off" "Enables partitionwise aggregation and grouping.";
    "enable_partitionwise_join" Session [Bool] "off" "Enables partitionwise join.";
    "enable_seqscan" Session [Bool] "on" "Enables the planner's use of sequential-scan plans.";
    "enable_sort" Session [Bool] "on" "Enables the planner's use of explicit sort steps.";
    "enable_tidscan" Session [Bool] "on" "Enables the planner's use of TID scan plans.";
    "escape_string_warning" Session [Bool] "on" "Warn about backslash escapes in ordinary string literals.";
    "extra_float_digits" Session [Int(Unit::None, -15, 3)] "1" "Sets the number of digits displayed for floating-point values.";
    "force_parallel_mode" Session [Choice(&["off", "on", "regress"])] "off" "Forces use of parallel query facilities.";
    "from_collapse_limit" Session [Int(Unit::None, 1, 2147483647)] "8" "Sets the FROM-list size beyond which subqueries are not collapsed.";
    "geqo" Session [Bool] "on" "Enables genetic query optimization.";
    "geqo_effort" Session [Int(Unit::None, 1, 10)] "5" "GEQO: effort is used to set the default for other GEQO parameters.";
    "geqo_generations" Session [Int(Unit::None, 0, 2147483647)] "0" "GEQO: number of iterations of the algorithm.";
    "geqo_pool_size" Session [Int(Unit::None, 0, 2147483647)] "0" "GEQO: number of individuals in the population.";
    "geqo_seed" Session [Real(0.0, 1.0)] "0" "GEQO: seed for random path selection.";
    "geqo_selection_bias" Session [Real(1.5, 2.0)] "2" "GEQO: selective pressure within the population.";
    "geqo_threshold" Session [Int(Unit::None, 2, 2147483647)] "12" "Sets the threshold of FROM items beyond which GEQO is used.";
    "gin_fuzzy_search_limit" Session [Int(Unit::None, 0, 2147483647)] "0" "Sets the maximum allowed result for exact search by GIN.";
    "gin_pending_list_limit" Session [Int(Unit::Bytes(1 << 10), 64, 2147483647)] "4096" "Sets the maximum size of the pending list for GIN index.";
    "hash_mem_multiplier" Session [Real(1.0, 1000.0)] "2" "Multiple of work_mem to use for hash tables.";
    "idle_in_transaction_session_timeout" Session [Int(Unit::Micros(1_000), 0, 2147483647)] "0" "Sets the maximum allowed idle time between queries, when in a transaction.";
    "idle_session_timeout" Session [Int(Unit::Micros(1_000), 0, 2147483647)] "0" "Sets the maximum allowed idle time between queries, when not in a transaction.";
    "in_hot_standby" Fixed [Bool] "off" "Shows whether hot standby is currently active.";
    "integer_datetimes" Fixed [Bool] "on" "Shows whether datetimes are integer based.";
    "IntervalStyle" Session [Choice(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"])] "postgres" "Sets the display format for interval values.";
    "is_superuser" Hidden [Bool] "on" "Shows whether the current user is a superuser.";
    "jit" Session [Bool] "off" "Allow JIT compilation.";
    "jit_above_cost" Session [Real(-1.0, f64::MAX)] "100000" "Perform JIT compilation if query is more expensive.";
    "jit_expressions" Session [Bool] "on" "Allow JIT compilation of expressions.";
    "jit_inline_above_cost" Session [Real(-1.0, f64::MAX)] "500000" "Perform JIT inlining if query is more expensive.";
    "jit_optimize_above_cost" Session [Real(-1.0, f64::MAX)] "500000" "Optimize JIT-compiled functions if query is more expensive.";
    "jit_tuple_deforming" Session [Bool] "on" "Allow JIT compilation of tuple deforming.";
    "join_collapse_limit" Session [Int(Unit::None, 1, 2147483647)] "8" "Sets the FROM-list size beyond which JOIN constructs are not flattened.";
    "lc_collate" Fixed [Text] "C" "Shows the collation order locale.";
    "lc_ctype" Fixed [Text] "C" "Shows the character classification and case conversion locale.";
    "lc_messages" Session [Text] "C" "Sets the language in which messages are displayed.";
    "lc_monetary" Session [Text] "C" "Sets the locale for formatting monetary amounts.";
    "lc_numeric" Session [Text] "C" "Sets the locale for formatting numbers.";
    "lc_time" Session [Text] "C" "Sets the locale for formatting date and time values.";
    "lock_timeout" Session [Int(Unit::Micros(1_000), 0, 2147483647)] "0" "Sets the maximum allowed duration of any wait for a lock.";
    "maintenance_io_concurrency" Session [Int(Unit::None, 0, 1000)] "10" "A variant of effective_io_concurrency that is used for maintenance work.";
    "maintenance_work_mem" Session [Int(Unit::Bytes(1 << 10), 1024, 2147483647)] "65536" "Sets the maximum memory to be used for maintenance operations.";
    "max_connections" Start [Int(Unit::None, 1, 262143)] "1000" "Sets the maximum number of concurrent connections.";
    "max_function_args" Fixed [Int(Unit::None, 100, 100)] "100" "Shows the maximum number of function arguments.";
    "max_identifier_length" Fixed [Int(Unit::None, 63, 63)] "63" "Shows the maximum identifier length.";
    "max_index_keys" Fixed [Int(Unit::None, 32, 32)] "32" "Shows the maximum number of index keys.";
    "max_parallel_maintenance_workers" Session [Int(Unit::None, 0, 1024)] "2" "Sets the maximum number of parallel processes per maintenance operation.";
    "max_parallel_workers" Session [Int(Unit::None, 0, 1024)] "8" "Sets the maximum number of parallel workers that can be active at one time.";
    "max_parallel_workers_per_gather" Session [Int(Unit::None, 0, 1024)] "2" "Sets the maximum number of parallel processes per executor node.";
    "min_parallel_index_scan_size" Session [Int(Unit::Bytes(8 << 10), 0, 715827882)] "64" "Sets the minimum amount of index data for a parallel scan.";
    "min_parallel_table_scan_size" Session [Int(Unit::Bytes(8 << 10), 0, 715827882)] "1024" "Sets the minimum amount of table data for a parallel scan.";
    "parallel_leader_participation" Session [Bool] "on" "Controls whether Gather and Gather Merge also run subplans.";
    "parallel_setup_cost" Session [Real(0.0, f64::MAX)] "1000" "Sets the planner's estimate of the cost of starting up worker processes for parallel query.";
    "parallel_tuple_cost" Session [Real(0.0, f64::MAX)] "0.1" "Sets the planner's estimate of the cost of passing each tuple (row) from worker to leader backend.";
    "password_encryption" Session [Choice(&["md5", "scram-sha-256"])] "scram-sha-256" "Chooses the algorithm for encrypting passwords.";
    "plan_cache_mode" Session [Choice(&["auto", "force_generic_plan", "force_custom_plan"])] "auto" "Controls the planner's selection of custom or generic plan.";
    "plimsoll.last_timestamp" Fixed [Text] "0" "Shows the largest timestamp that the session has read at or written.";
    "plimsoll.staleness" Session [Int(Unit::Micros(1_000), 0, 2147483647)] "0" "Sets how old the snapshot of a read-only transaction may be.";
    "quote_all_identifiers" Session [Bool] "off" "When generating SQL fragments, quote all identifiers.";
    "random_page_cost" Session [Real(0.0, f64::MAX)] "4" "Sets the planner's estimate of the cost of a nonsequentially fetched disk page.";
    "role" Hidden [Role] "none" "Sets the current role.";
    "row_security" Session [Bool] "on" "Enable row security.";
    "search_path" Session [Names] "\"$user\", public" "Sets the schema search order for names that are not schema-qualified.";
    "seq_page_cost" Session [Real(0.0, f64::MAX)] "1" "Sets the planner's estimate of the cost of a sequentially fetched disk page.";
    "server_encoding" Fixed [Text] "UTF8" "Shows the server (database) character set encoding.";
    "server_version" Fixed [Text] SERVER_VERSION "Shows the server version.";
    "server_version_num" Fixed [Int(Unit::None, 150018, 150018)] "150000" "Shows the server version as an integer.";
    "session_authorization" Hidden [Role] "" "Sets the session user name.";
    "session_replication_role" Session [Choice(&["origin", "replica", "local"])] "origin" "Sets the session's behavior for triggers and rewrite rules.";
    "standard_conforming_strings" Session [AlwaysOn] "on" "Causes '...' strings to treat backslashes literally.";
    "statement_timeout" Session [Int(Unit::Micros(1_000), 0, 2147483647)] "0" "Sets the maximum allowed duration of any statement.";
    "synchronize_seqscans" Session [Bool] "on" "Enable synchronized sequential scans.";
    "synchronous_commit" Session [Choice(&["local", "remote_write", "remote_apply", "on", "off"])] "on" "Sets the current transaction's synchronization level.";
    "tcp_keepalives_count" Session [Int(Unit::None, 0, 2147483647)] "9" "Maximum number of TCP keepalive retransmits.";
    "tcp_keepalives_idle" Session [Int(Unit::Micros(1_000_000), 0, 2147483647)] "7200" "Time between issuing TCP keepalives.";
    "tcp_keepalives_interval" Session [Int(Unit::Micros(1_000_000), 0, 2147483647)] "75" "Time between TCP keepalive retransmits.";
    "temp_buffers" Session [Int(Unit::Bytes(8 << 10), 100, 1073741823)] "1024" "Sets the maximum number of temporary buffers used by each session.";
    "temp_tablespaces" Session [Names] "" "Sets the tablespace(s) to use for temporary tables and sort files.";
    "TimeZone" Session [Zone] "UTC" "Sets the time zone for displaying and interpreting time stamps.";
    "transaction_deferrable" Session [Bool] "off" "Whether to defer a read-only serializable transaction until it can be executed with no possible serialization failures.";
    "transaction_isolation" Session [Choice(&["serializable", "repeatable read", "read committed", "read uncommitted"])] "serializable" "Sets the current transaction's isolation level.";
    "transaction_read_only" Session [Bool] "off" "Sets the current transaction's read-only status.";
    "transform_null_equals" Session [Bool] "off" "Treats \"expr=NULL\" as \"expr IS NULL\".";
    "vacuum_cost_delay" Session [Real(0.0, 100.0)] "0" "Vacuum cost delay in milliseconds.";
    "vacuum_cost_limit" Session [Int(Unit::None, 1, 10000)] "200" "Vacuum cost amount available before napping.";
    "vacuum_cost_page_dirty" Session [Int(Unit::None, 0, 10000)] "20" "Vacuum cost for a page dirtied by vacuum.";
    "vacuum_cost_page_hit" Session [Int(Unit::None, 0, 10000)] "1" "Vacuum cost for a page found in the buffer cache.";
    "vacuum_cost_page_miss" Session [Int(Unit::None, 0, 10000)] "2" "Vacuum cost for a page not found in the buffer cache.";
    "vacuum_failsafe_age" Session [Int(Unit::None, 0, 2100000000)] "1600000000" "Age at which VACUUM should trigger failsafe to avoid a wraparound outage.";
    "vacuum_freeze_min_age" Session [Int(Unit::None, 0, 1000000000)] "50000000" "Minimum age at which VACUUM should freeze a table row.";
    "vacuum_freeze_table_age" Session [Int(Unit::None, 0, 2000000000)] "150000000" "Age at which VACUUM should scan whole table to freeze tuples.";
    "vacuum_multixact_failsafe_age" Session [Int(Unit::None, 0, 2100000000)] "1600000000" "Multixact age at which VACUUM should trigger failsafe to avoid a wraparound outage.";
    "vacuum_multixact_freeze_min_age" Session [Int(Unit::None, 0, 1000000000)] "5000000" "Minimum age at which VACUUM should freeze a MultiXactId in a table row.";
    "vacuum_multixact_freeze_table_age" Session [Int(Unit::None, 0, 2000000000)] "150000000" "Multixact age at which VACUUM should scan whole table to freeze tuples.";
    "work_mem" Session [Int(Unit::Bytes(1 << 10), 64, 2147483647)] "65536" "Sets the maximum memory to be used for query workspaces.";
    "xmlbinary" Session [Choice(&["base64", "hex"])] "base64" "Sets how binary values are to be encoded in XML.";
    "xmloption" Session [Choice(&["content", "document"])] "content" "Sets whether XML data in implicit parsing and serialization operations is to be considered as documents or content fragments.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_in_order_and_found_in_any_case() {
        let names: Vec<String> = SETTINGS.iter().map(|it| it.name.to_ascii_lowercase()).collect();
        assert!(names.is_sorted_by(|one, other| one < other), "{names:?}");
        for setting in SETTINGS {
            assert_eq!(find(&setting.name.to_ascii_uppercase()).map(|it| it.name), Some(setting.name));
        }
        assert!(find("foo").is_none());
    }
}
