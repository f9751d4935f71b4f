//! What Dike depends on in a session, set by itself: the defaults of sessions belong to the server,
//! the database and the user's role, and any of them may be something else than what comes with the
//! database. With `autocommit` off nothing that is loaded is stored; `completion_type` may end the
//! connection with each COMMIT; a small `sql_select_limit` cuts answers short.
//!
//! Sessions of *upkeep* load, check and drop tables. They are not measured, and no time
//! limit may cut them short. Sessions of *runs and tests* keep what belongs to what is measured:
//! isolation, if the configuration leaves it to the database, time limits, read-only roles,
//! whatever a planner or a log is told.
//!
//! Databases of one family differ in what they know, so what one does not know is not set.

use std::fmt::Write;

use super::{Family, Kind};

/// Names and values for every session.
fn for_all(family: Family) -> &'static [(&'static str, &'static str)] {
    match family {
        Family::Postgres => &[
            ("TimeZone", "UTC"),
            ("DateStyle", "ISO, YMD"),
            ("standard_conforming_strings", "on"),
            ("default_transaction_deferrable", "off"),
            ("idle_session_timeout", "0"),
        ],
        Family::Mysql => &[
            ("autocommit", "ON"),
            ("completion_type", "NO_CHAIN"),
            ("sql_mode", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"),
            ("time_zone", "+00:00"),
            ("character_set_client", "utf8mb4"),
            ("character_set_connection", "utf8mb4"),
            ("character_set_results", "utf8mb4"),
            ("foreign_key_checks", "ON"),
            ("unique_checks", "ON"),
            ("sql_auto_is_null", "OFF"),
            ("sql_big_selects", "ON"),
            ("sql_safe_updates", "OFF"),
            ("sql_select_limit", "18446744073709551615"),
            ("wait_timeout", "28800"),
        ],
    }
}

/// Names and values for sessions of upkeep besides.
fn for_upkeep(family: Family) -> &'static [(&'static str, &'static str)] {
    match family {
        Family::Postgres => &[
            ("default_transaction_read_only", "off"),
            ("idle_in_transaction_session_timeout", "0"),
            ("lock_timeout", "0"),
            ("transaction_timeout", "0"),
        ],
        Family::Mysql => &[
            ("tx_read_only", "OFF"),
            ("transaction_read_only", "OFF"),
            ("idle_transaction_timeout", "0"),
            ("idle_readonly_transaction_timeout", "0"),
            ("idle_write_transaction_timeout", "0"),
            ("innodb_lock_wait_timeout", "50"),
            ("lock_wait_timeout", "86400"),
            ("max_execution_time", "0"),
            ("max_statement_time", "0.000000"),
            // HISTORY has no key.
            ("sql_require_primary_key", "OFF"),
        ],
    }
}

fn all(family: Family, upkeep: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    for_all(family).iter().chain(for_upkeep(family).iter().filter(move |_| upkeep)).copied()
}

/// For PostgreSQL's protocol: the statements that set all that the server knows, while no time
/// limit holds.
pub fn postgres(upkeep: bool) -> String {
    let rows: Vec<String> =
        all(Family::Postgres, upkeep).map(|(name, value)| format!("('{name}', '{value}')")).collect();
    let set = format!(
        "SET statement_timeout = 0; SELECT set_config(name, setting, false) FROM (VALUES {}) \
         AS wanted(name, setting) WHERE current_setting(name, true) IS NOT NULL",
        rows.join(", ")
    );
    if upkeep { set } else { set + "; RESET statement_timeout" }
}

/// For MySQL's protocol: the statement before the query for what a session has, which limits of its
/// own would cut short.
pub fn first_mysql(kind: Kind, upkeep: bool) -> Option<String> {
    let mut limits = vec!["sql_big_selects = 1", "sql_select_limit = 18446744073709551615"];
    match kind {
        Kind::Mariadb if upkeep => limits.push("max_statement_time = 0"),
        Kind::Mysql | Kind::Mariadb => {}
        _ => return None,
    }
    Some(format!("SET SESSION {}", limits.join(", SESSION ")))
}

/// For MySQL's protocol: the query for what a session has, by name.
pub fn ask_mysql(upkeep: bool) -> String {
    let names: Vec<String> = all(Family::Mysql, upkeep).map(|(name, _)| format!("'{name}'")).collect();
    format!("SHOW SESSION VARIABLES WHERE Variable_name IN ({})", names.join(", "))
}

/// The statement that makes of what a session has what Dike needs; none if it has all of it. What
/// is as it should be is not touched: some of it takes privileges to set.
pub fn set_mysql(upkeep: bool, has: &[(String, String)]) -> Option<String> {
    let mut statement = String::new();
    for (name, wanted) in all(Family::Mysql, upkeep) {
        if has.iter().any(|(known, value)| known == name && value != wanted) {
            let number = wanted.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
            let quote = if number { "" } else { "'" };
            let begin = if statement.is_empty() { "SET " } else { ", " };
            let _ = write!(statement, "{begin}SESSION {name} = {quote}{wanted}{quote}");
        }
    }
    (!statement.is_empty()).then_some(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_set() {
        let has = [("autocommit", "OFF"), ("completion_type", "NO_CHAIN"), ("wait_timeout", "5")];
        let has = has.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let set = set_mysql(false, &has);
        assert_eq!(set.as_deref(), Some("SET SESSION autocommit = 'ON', SESSION wait_timeout = 28800"));
        assert_eq!(set_mysql(true, &has[1..2]), None);
        let first = first_mysql(Kind::Mariadb, true).expect("limits");
        assert!(first.starts_with("SET SESSION sql_big_selects = 1, SESSION "), "{first}");
        assert_eq!(first_mysql(Kind::Tidb, true), None);
        assert!(postgres(false).ends_with("; RESET statement_timeout") && !postgres(true).contains("RESET"));
        assert!(postgres(true).contains("'lock_timeout'") && !postgres(false).contains("'lock_timeout'"));
    }
}
