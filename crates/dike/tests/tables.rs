//! Whose tables are whose, and one command at a time: on a real PostgreSQL and a real MariaDB.

mod common;

use std::time::Duration;

use common::{Server, all_hold, block_on, connector, load_it, loaded, never, ran};
use plimsoll_dike::config::{Config, LoadMethod};
use plimsoll_dike::load::LoadError;
use plimsoll_dike::load::lease::Lease;
use plimsoll_dike::target::{Isolation, Kind, ddl};
use plimsoll_dike::{Progress, check, load, run};

async fn destroy(config: &Config) -> Result<usize, LoadError> {
    load::destroy(&connector(config)).await
}

async fn say(config: &Config, statements: &[&str]) {
    let mut session = connector(config).connect(0).await.expect("connected");
    for statement in statements {
        session.text(statement).await.unwrap_or_else(|failure| panic!("{statement}: {failure}"));
    }
}

async fn count(config: &Config, table: &str) -> u64 {
    let mut session = connector(config).connect(0).await.expect("connected");
    let count = session.text_value(&format!("SELECT COUNT(*) FROM {table}")).await.expect("a count");
    count.parse().expect("a number")
}

/// The names of everything that is there.
async fn names(config: &Config) -> Vec<String> {
    let mut session = connector(config).connect(0).await.expect("connected");
    let rows = session.text(ddl::existing(config.target.kind)).await.expect("names");
    let mut names: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next()?).collect();
    names.sort();
    names
}

#[track_caller]
fn not_ours<T: std::fmt::Debug>(result: Result<T, LoadError>, names: &[&str]) {
    let refused = result.expect_err("refused");
    assert_eq!(refused, LoadError::NotOurs(names.iter().map(|&name| name.to_owned()).collect()));
    let says = refused.to_string();
    assert!(names.iter().all(|name| says.contains(&format!("`{name}`"))), "{says}");
}

/// Tables that Dike has not made are neither filled nor dropped, whatever they look like.
async fn others_keep_their_tables(config: &Config) {
    assert_eq!(destroy(config).await, Ok(0), "there is nothing");
    let mine = [
        "CREATE TABLE customer (id INT, name VARCHAR(10))",
        "CREATE TABLE stock (sku VARCHAR(10), n INT)",
        "INSERT INTO stock VALUES ('a', 1)",
    ];
    say(config, &mine).await;
    let before = names(config).await;
    not_ours(destroy(config).await, &["customer", "stock"]);
    not_ours(load_it(config).await.map(|loaded| loaded.rows), &["customer", "stock"]);
    assert_eq!((names(config).await, count(config, "stock").await), (before, 1), "nothing has changed");
    say(config, &["DROP TABLE customer", "DROP TABLE stock"]).await;

    // The same columns make no difference, with rows or without.
    loaded(config).await;
    say(config, &["CREATE TABLE kept AS SELECT * FROM history"]).await;
    destroy(config).await.expect("dropped");
    assert_eq!(names(config).await, ["kept"]);
    say(config, &["ALTER TABLE kept RENAME TO history"]).await;
    let rows = count(config, "history").await;
    assert!(rows > 0);
    not_ours(load_it(config).await.map(|loaded| loaded.rows), &["history"]);
    not_ours(destroy(config).await, &["history"]);
    say(config, &["DELETE FROM history"]).await;
    not_ours(load_it(config).await.map(|loaded| loaded.rows), &["history"]);
    assert_eq!(names(config).await, ["history"]);
    say(config, &["DROP TABLE history"]).await;

    // One of Dike's that was dropped and made anew is not Dike's any more.
    loaded(config).await;
    say(config, &["CREATE TABLE copied AS SELECT * FROM stock", "DROP TABLE stock"]).await;
    say(config, &["ALTER TABLE copied RENAME TO stock"]).await;
    not_ours(destroy(config).await, &["stock"]);
    not_ours(load::verify(&connector(config), &config.data).await, &["stock"]);
    not_ours(load_it(config).await.map(|loaded| loaded.rows), &["stock"]);
    say(config, &["DROP TABLE stock"]).await;
    // One that is missing is no reason to keep the others; one that was changed is still Dike's.
    say(config, &["ALTER TABLE item ADD COLUMN more INT"]).await;
    assert_eq!(destroy(config).await, Ok(11));
    assert_eq!(names(config).await, Vec::<String>::new());

    // What Dike's own tables are called, too: an older Dike's record has no mark.
    say(config, &["CREATE TABLE dike_data (p_name VARCHAR(64) PRIMARY KEY, p_value VARCHAR(64))"]).await;
    not_ours(load_it(config).await.map(|loaded| loaded.rows), &["dike_data"]);
    not_ours(destroy(config).await, &["dike_data"]);
    not_ours(check::check(&connector(config), &config.data).await.map(|_| ()), &["dike_data"]);
    say(config, &["DROP TABLE dike_data"]).await;
    let empty = run::run(config, &connector(config), 1, &never(), Progress::Silent).await.err();
    assert_eq!(empty, Some(LoadError::Empty));
}

#[test]
fn tables_that_dike_has_not_made_are_neither_filled_nor_dropped() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(1);
        others_keep_their_tables(&config).await;
        // Indexes, partitions and views share one space of names with tables.
        config.schema.partitions = 2;
        for (make, name, drop) in [
            ("CREATE TABLE stock_1 (n INT)", "stock_1", "DROP TABLE stock_1"),
            ("CREATE VIEW orders AS SELECT 1 AS one", "orders", "DROP VIEW orders"),
            ("CREATE SEQUENCE item", "item", "DROP SEQUENCE item"),
            (
                "CREATE TABLE mine (n INT); CREATE INDEX customer_by_name ON mine (n)",
                "customer_by_name",
                "DROP TABLE mine",
            ),
        ] {
            say(&config, &[make]).await;
            not_ours(load_it(&config).await.map(|loaded| loaded.rows), &[name]);
            say(&config, &[drop]).await;
        }
        loaded(&config).await;
        // A table of another name, or in another schema, is in no one's way.
        say(&config, &["CREATE TABLE \"Customer\" (n INT)", "CREATE SCHEMA other"]).await;
        say(
            &config,
            &["CREATE TABLE other.customer (n INT)", "ALTER ROLE dike SET search_path = other, public"],
        )
        .await;
        not_ours(load_it(&config).await.map(|loaded| loaded.rows), &["customer"]);
        not_ours(destroy(&config).await, &["customer"]);
        say(&config, &["ALTER ROLE dike SET search_path = public, other"]).await;
        assert_eq!(destroy(&config).await, Ok(12));
        assert_eq!(names(&config).await, ["Customer"]);
        assert_eq!(count(&config, "other.customer").await, 0);
    });
}

#[test]
fn a_mariadb_keeps_the_tables_of_others_as_well() {
    let server = Server::mariadb();
    block_on(others_keep_their_tables(&server.config(1)));
}

/// Of loads that begin at the same time, one loads and the others wait for it or are refused.
async fn loads_do_not_mix(config: &Config) {
    let rows: u64 = {
        loaded(config).await;
        let rows = count(config, "history").await;
        destroy(config).await.expect("dropped");
        rows
    };
    for after_ms in [0, 0, 10, 100, 300] {
        let loads: Vec<_> = (0..3)
            .map(|number| {
                let config = config.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(number * after_ms)).await;
                    load_it(&config).await
                })
            })
            .collect();
        let mut loaded = 0;
        for load in loads {
            match load.await.expect("no panic") {
                Ok(done) => loaded += done.warehouses,
                Err(LoadError::Busy(who)) => assert!(who.contains("`plimsoll dike load` of "), "{who}"),
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!((loaded, count(config, "history").await), (config.data.warehouses, rows));
        all_hold(config).await;
        destroy(config).await.expect("dropped");
    }
}

/// While one command works, others are refused, but for runs beside runs. One that was killed is
/// not waited for for ever.
async fn one_at_a_time(config: &Config) {
    loaded(config).await;
    let connector = connector(config);
    let busy = |result: Result<(), LoadError>| {
        let Err(LoadError::Busy(who)) = result else { panic!("{result:?}") };
        who
    };
    let alone = Lease::alone(&connector, "plimsoll dike load").await.expect("nobody else");
    let stop = never();
    let (load, destroy_it, check_it, test, run) = tokio::join!(
        load_it(config),
        destroy(config),
        check::check(&connector, &config.data),
        plimsoll_dike::function::test(
            plimsoll_dike::cli::TestName::All,
            config,
            &connector,
            &stop,
            Progress::Silent
        ),
        run::run(config, &connector, 1, &stop, Progress::Silent),
    );
    busy(load.map(|_| ()));
    busy(destroy_it.map(|_| ()));
    busy(check_it.map(|_| ()));
    busy(test.map(|_| ()));
    let who = busy(run.map(|_| ()));
    assert!(who.contains("`plimsoll dike load` of "), "{who}");
    assert!(who.contains(&format!("process {}", std::process::id())), "{who}");
    alone.release().await;

    let one = Lease::beside_runs(&connector, "plimsoll dike run").await.expect("nobody else");
    let two = Lease::beside_runs(&connector, "plimsoll dike run").await.expect("beside the other");
    busy(destroy(config).await.map(|_| ()));
    ran(config).await;
    one.release().await;
    // Killed, it leaves its row.
    drop(two);
    all_hold(config).await;
    drop(Lease::alone(&connector, "plimsoll dike load").await.expect("nobody else"));
    assert_eq!(destroy(config).await, Ok(12));

    // A load that waits for a destroy begins anew.
    for _ in 0..3 {
        loaded(config).await;
        let (dropped, loaded) = tokio::join!(destroy(config), load_it(config));
        assert!(matches!(dropped, Ok(12) | Err(LoadError::Busy(_))), "{dropped:?}");
        assert!(matches!(loaded, Ok(_) | Err(LoadError::Busy(_))), "{loaded:?}");
        destroy(config).await.expect("dropped");
    }
}

#[test]
fn one_command_works_on_the_tables_at_a_time() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(2);
        config.load.workers = 2;
        one_at_a_time(&config).await;
        loads_do_not_mix(&config).await;
        // A conflict is told in another way at this level.
        config.target.isolation = Isolation::Serializable;
        config.target.kind = Kind::Cockroachdb;
        config.load.method = LoadMethod::Insert;
        loads_do_not_mix(&config).await;
    });
}

#[test]
fn one_command_works_on_the_tables_of_a_mariadb_at_a_time() {
    let server = Server::mariadb();
    block_on(async {
        let mut config = server.config(2);
        config.load.workers = 2;
        one_at_a_time(&config).await;
        loads_do_not_mix(&config).await;
    });
}

#[test]
fn a_loader_that_was_taken_for_dead_loads_nothing_on_top() {
    let server = Server::postgres();
    block_on(async {
        let config = server.config(3);
        loaded(&config).await;
        let rows = count(&config, "history").await;
        // One begins, with the rows of warehouse 1 under way, and another takes the unit over.
        say(&config, &["UPDATE dike_unit SET u_complete = 0, u_loader = 'sleeper' WHERE u_id = 1"]).await;
        let mut sleeper = connector(&config).connect(0).await.expect("connected");
        sleeper.text("BEGIN").await.expect("begun");
        let guard = "UPDATE dike_unit SET u_complete = 0 WHERE u_id = 1 AND u_loader = 'sleeper'";
        assert_eq!(sleeper.change(guard).await, Ok(1));
        sleeper.text("INSERT INTO history SELECT * FROM history WHERE h_w_id = 1").await.expect("inserted");
        let other = tokio::spawn({
            let config = config.clone();
            async move { load_it(&config).await }
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!other.is_finished(), "it waits for the piece that is under way");
        sleeper.text("COMMIT").await.expect("committed");
        let loaded = other.await.expect("no panic").expect("loaded");
        assert_eq!((loaded.warehouses, loaded.cleaned, count(&config, "history").await), (1, 1, rows));
        assert_eq!(sleeper.change(guard).await, Ok(0), "the sleeper has nothing to load any more");
        all_hold(&config).await;
    });
}

#[test]
fn a_load_ends_with_everything_there_or_says_what_is_missing() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(2);
        // A rule may keep the database from doing what it is told: rows are counted.
        loaded(&config).await;
        say(
            &config,
            &[
                "UPDATE dike_unit SET u_complete = 0 WHERE u_id = 2",
                "CREATE RULE gone AS ON DELETE TO new_order DO INSTEAD NOTHING",
                "ALTER TABLE new_order DROP CONSTRAINT new_order_pkey",
            ],
        )
        .await;
        let missing = load_it(&config).await;
        let Err(LoadError::Miscounted { table: "new_order", there, loaded: rows }) = missing else {
            panic!("{missing:?}")
        };
        assert_eq!(there, rows * 3 / 2);
        let incomplete = load::verify(&connector(&config), &config.data).await;
        assert_eq!(incomplete, Err(LoadError::Incomplete(0)));
        destroy(&config).await.expect("dropped");

        // The limits of a role are for what is measured.
        say(
            &config,
            &[
                "ALTER ROLE dike SET default_transaction_read_only = on",
                "ALTER ROLE dike SET statement_timeout = '50ms'",
                "ALTER ROLE dike SET lock_timeout = '1ms'",
                "ALTER ROLE dike SET idle_session_timeout = '500ms'",
                "ALTER ROLE dike SET standard_conforming_strings = off",
                "ALTER ROLE dike SET TimeZone = 'Asia/Tokyo'",
                "ALTER ROLE dike SET DateStyle = 'German'",
            ],
        )
        .await;
        for kind in [Kind::Postgresql, Kind::Cockroachdb] {
            config.target.kind = kind;
            loaded(&config).await;
            all_hold(&config).await;
            assert_eq!(destroy(&config).await, Ok(12));
        }
    });
}

#[test]
fn a_mariadb_with_strange_defaults_is_loaded_all_the_same() {
    let server = Server::mariadb();
    server.as_root(
        "SET GLOBAL autocommit = 0; SET GLOBAL completion_type = 2; SET GLOBAL sql_select_limit = 1; \
         SET GLOBAL sql_mode = 'ORACLE,ANSI_QUOTES,NO_BACKSLASH_ESCAPES,EMPTY_STRING_IS_NULL'; \
         SET GLOBAL sql_safe_updates = 1; SET GLOBAL tx_read_only = 1; SET GLOBAL wait_timeout = 1; \
         SET GLOBAL max_statement_time = 0.02; SET GLOBAL lock_wait_timeout = 0; \
         SET GLOBAL time_zone = '+09:00'; SET GLOBAL default_storage_engine = MyISAM; \
         SET GLOBAL unique_checks = 0; SET GLOBAL foreign_key_checks = 0; SET GLOBAL max_join_size = 1;",
    );
    block_on(async {
        let mut config = server.config(2);
        for method in [LoadMethod::Copy, LoadMethod::Insert] {
            config.load.method = method;
            loaded(&config).await;
            all_hold(&config).await;
            let engines =
                "SELECT DISTINCT engine FROM information_schema.tables WHERE table_schema = DATABASE()";
            let mut session = connector(&config).connect(0).await.expect("connected");
            assert_eq!(session.text_value(engines).await.as_deref(), Ok("InnoDB"));
            destroy(&config).await.expect("dropped");
        }
        server.as_root("SET GLOBAL tx_read_only = 0; SET GLOBAL max_statement_time = 0;");
        loaded(&config).await;
        let run = ran(&config).await;
        assert_eq!(common::errors(&run), []);
        all_hold(&config).await;
    });
}
