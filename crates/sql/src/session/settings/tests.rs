//! What changes of settings come to.

use super::*;

fn settings() -> Settings {
    Settings::new("u", "d")
}

#[test]
fn a_local_change_ends_with_its_transaction() {
    let settings = settings();
    let before = settings.remember();
    settings.set("work_mem", "100", false).expect("valid");
    settings.set("work_mem", "200", true).expect("valid");
    assert_eq!(settings.show("work_mem").as_deref(), Ok("200kB"));
    settings.commit();
    assert_eq!(settings.show("work_mem").as_deref(), Ok("100kB"));
    settings.restore(before);
    assert_eq!(settings.show("work_mem").as_deref(), Ok("64MB"));
}

#[test]
fn the_last_timestamp_only_grows_and_only_the_session_sets_it() {
    let settings = settings();
    assert_eq!(settings.show("plimsoll.last_timestamp").as_deref(), Ok("0"));
    for seen in [Some(7), None, Some(5)] {
        settings.saw(seen);
    }
    assert_eq!(settings.show("plimsoll.last_timestamp").as_deref(), Ok("7"));
    let refused = settings.set("plimsoll.last_timestamp", "8", false).map_err(|error| error.state);
    assert_eq!(refused, Err(SqlState::CANT_CHANGE_RUNTIME_PARAM));
}

#[test]
fn how_old_a_snapshot_may_be_has_a_unit_and_names_with_the_prefix_are_known_or_refused() {
    let settings = settings();
    assert_eq!(settings.staleness_ms(), 0);
    settings.set("plimsoll.staleness", "2s", true).expect("valid");
    assert_eq!((settings.staleness_ms(), settings.show("plimsoll.staleness").as_deref()), (2_000, Ok("2s")));
    settings.commit();
    assert_eq!(settings.staleness_ms(), 0);
    for name in ["plimsoll.stale", "Plimsoll.stale"] {
        let refused = settings.set(name, "1", false).map_err(|error| error.state);
        assert_eq!(refused, Err(SqlState::INVALID_NAME), "{name}");
    }
}

#[test]
fn a_savepoint_brings_both_back() {
    let settings = settings();
    settings.set("geqo", "off", true).expect("valid");
    let savepoint = settings.remember();
    settings.set("geqo", "on", false).expect("valid");
    settings.set("foo.bar", "x", false).expect("valid");
    settings.restore(savepoint);
    assert_eq!(settings.setting("geqo").as_deref(), Some("off"));
    assert_eq!(settings.setting("foo.bar"), None);
    settings.commit();
    assert_eq!(settings.setting("geqo").as_deref(), Some("on"));
}

#[test]
fn reported_settings_are_told_once_per_change() {
    let settings = settings();
    let told = || {
        let mut told = Vec::new();
        settings.report(|name, value| told.push(format!("{name}={value}")));
        told
    };
    assert_eq!(told().len(), REPORTED.len());
    assert_eq!(told(), Vec::<String>::new());
    settings.set("work_mem", "100", false).expect("valid");
    assert_eq!(told(), Vec::<String>::new());
    settings.set("datestyle", "german", true).expect("valid");
    assert_eq!(told(), ["DateStyle=German, DMY"]);
    settings.commit();
    assert_eq!(told(), ["DateStyle=ISO, MDY"]);
}

#[test]
fn what_a_session_begins_with_is_what_it_resets_to() {
    let mut settings = settings();
    settings.begin_with("TIMEZONE", "Europe/Berlin").expect("valid");
    settings.begin_with("my.own", "1").expect("valid");
    settings.set("timezone", "UTC", false).expect("valid");
    settings.set("my.own", "2", false).expect("valid");
    settings.reset("timezone", false).expect("valid");
    settings.reset_all();
    assert_eq!(settings.show("TimeZone").as_deref(), Ok("Europe/Berlin"));
    assert_eq!(settings.show("my.own").as_deref(), Ok("1"));
    assert_eq!(settings.show("session_authorization").as_deref(), Ok("u"));
}

#[test]
fn what_may_not_be_changed_says_why() {
    let settings = settings();
    let refused = |name: &str, value: &str| {
        let error = settings.set(name, value, false).expect_err("refused");
        format!("{} {}", error.state.as_str(), error.message)
    };
    assert_eq!(refused("foo", "1"), "42704 unrecognized configuration parameter \"foo\"");
    assert_eq!(refused("foo.b-r", "1"), "42602 invalid configuration parameter name \"foo.b-r\"");
    assert_eq!(refused("server_version", "1"), "55P02 parameter \"server_version\" cannot be changed");
    assert_eq!(refused("is_superuser", "off"), "55P02 parameter \"is_superuser\" cannot be changed");
    assert_eq!(
        refused("max_connections", "1"),
        "55P02 parameter \"max_connections\" cannot be changed without restarting the server"
    );
    assert_eq!(refused("role", "x"), "22023 role \"x\" does not exist");
}

#[test]
fn a_transaction_has_its_defaults_and_may_only_be_changed_early() {
    let settings = settings();
    settings.set("default_transaction_read_only", "on", false).expect("valid");
    assert_eq!(settings.show("transaction_read_only").as_deref(), Ok("on"));
    settings.set("transaction_read_only", "off", false).expect("valid");
    assert_eq!(settings.show("transaction_read_only").as_deref(), Ok("off"));
    settings.set("transaction_isolation", "read committed", false).expect("valid");
    assert_eq!(settings.show("transaction_isolation").as_deref(), Ok("serializable"));
    settings.proceed(Progress::Queried);
    settings.set("transaction_read_only", "on", false).expect("stricter");
    let late = settings.set("transaction_read_only", "off", false).expect_err("late");
    assert_eq!(
        (late.state, late.message.as_str()),
        (SqlState::ACTIVE_SQL_TRANSACTION, "transaction read-write mode must be set before any query")
    );
    settings.commit();
    assert_eq!(settings.show("transaction_read_only").as_deref(), Ok("on"));
}
