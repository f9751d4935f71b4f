//! Loading, running, checking and dropping on a real PostgreSQL.

mod common;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use common::{
    Server, all_hold, block_on, committed, connector, errors, every_transaction, load_it, loaded, never,
    one_node_was_asked, ran, ran_through_a_proxy, show,
};
use plimsoll_dike::config::{Config, LoadMethod, Tls};
use plimsoll_dike::load::LoadError;
use plimsoll_dike::metrics::Document;
use plimsoll_dike::report::{html, table};
use plimsoll_dike::target::{Cause, Isolation, Kind};
use plimsoll_dike::{Progress, check, load, run};

#[test]
fn a_database_is_loaded_used_checked_and_dropped() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(3);
        let loaded = loaded(&config).await;
        assert_eq!((loaded.warehouses, loaded.there_before, loaded.interrupted), (3, 0, false));
        all_hold(&config).await;

        for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable] {
            config.target.isolation = isolation;
            let run = ran(&config).await;
            show(&run);
            // On a database this small, some find no gap among the others in ten attempts.
            let given_up: u64 = run.kinds.iter().map(|kind| run.sum(&kind.given_up)).sum();
            assert_eq!(errors(&run), [], "{isolation:?}");
            one_node_was_asked(&run, &config);
            assert!(given_up * 50 < run.summary().committed, "{given_up} of {}", run.summary().committed);
            assert!(committed(&run).iter().all(|(_, count)| *count > 0), "{isolation:?}");
            all_hold(&config).await;
        }
        // More than the five, more terminals than connections, an open loop.
        config.mix = every_transaction();
        config.workload.stock_level_warehouses = 2;
        config.workload.update_stock_warehouses = 3;
        config.workload.update_item_items = 10;
        config.run.connections = 2;
        config.arrivals.rate_per_s = 100.0;
        // Of two endpoints one is not there.
        config.target.endpoints.insert(0, "127.0.0.1:1".to_owned());
        let run = ran(&config).await;
        show(&run);
        assert_eq!(errors(&run), []);
        assert_eq!(committed(&run).len(), 9);
        assert!(run.checks.iter().all(|check| check.ok), "{:?}", run.checks);
        let checked = check::check(&connector(&config), &config.data).await.expect("checked");
        assert!(check::all_hold(&checked), "{}", check::render(&checked));
        let left_out = checked.iter().filter(|it| matches!(it.verdict, check::Verdict::LeftOut(_)));
        assert_eq!(left_out.map(|it| it.number).collect::<Vec<_>>(), [1, 8]);

        // More than anybody can do: latencies count from when transactions were due.
        config.arrivals.rate_per_s = 1e6;
        let run = ran(&config).await;
        show(&run);
        let [told, late] = &run.checks[..] else { panic!("{:?}", run.checks) };
        assert!(told.ok && !late.ok && late.detail.contains("no terminal was free"), "{told:?} {late:?}");
        assert!(run.latency().max_us > 300_000, "{:?}", run.summary().latency);

        load::destroy(&connector(&config)).await.expect("dropped");
        let empty = load::verify(&connector(&config), &config.data).await;
        assert_eq!(empty, Err(LoadError::Empty));
    });
}

/// All rows of a table in order, as text.
async fn rows(config: &Config, table: &str) -> String {
    let mut session = connector(config).connect(0).await.expect("connected");
    let rows =
        session.text(&format!("SELECT CAST(t AS TEXT) FROM {table} AS t ORDER BY 1")).await.expect("rows");
    rows.into_iter().flatten().flatten().collect::<Vec<_>>().join("\n")
}

#[test]
fn an_interrupted_load_goes_on_and_every_way_of_loading_loads_the_same() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(4);
        config.data.district_skew = 1.5;
        config.load.workers = 2;
        let whole = loaded(&config).await;
        assert_eq!((whole.warehouses, whole.cleaned), (4, 0));
        let tables = [
            "item",
            "warehouse",
            "district",
            "customer",
            "history",
            "orders",
            "new_order",
            "order_line",
            "stock",
        ];
        let mut before = Vec::new();
        for table in tables {
            before.push(rows(&config, table).await);
        }
        assert_eq!(before[2].lines().count(), 40);
        all_hold(&config).await;

        // A load that was killed in the middle of warehouse 3 has left some of it, and nothing of
        // warehouse 4.
        let mut session = connector(&config).connect(0).await.expect("connected");
        for statement in [
            "UPDATE dike_unit SET u_complete = 0 WHERE u_id = 3",
            "DELETE FROM stock WHERE s_w_id = 3 AND s_i_id > 50",
            "DELETE FROM dike_unit WHERE u_id = 4",
        ] {
            session.text(statement).await.expect("done");
        }
        for table in plimsoll_dike::target::ddl::TABLES {
            if let Some(warehouse) = table.warehouse {
                session
                    .text(&format!("DELETE FROM {} WHERE {warehouse} = 4", table.name))
                    .await
                    .expect("done");
            }
        }
        let incomplete = load::verify(&connector(&config), &config.data).await;
        assert_eq!(incomplete, Err(LoadError::Incomplete(2)));
        let rest = loaded(&config).await;
        assert_eq!((rest.warehouses, rest.there_before, rest.cleaned), (2, 2, 1));
        for (table, before) in tables.iter().zip(&before) {
            assert!(rows(&config, table).await == *before, "{table} differs");
        }
        let nothing = loaded(&config).await;
        assert_eq!((nothing.warehouses, nothing.there_before), (0, 4));
        let other =
            Config { data: plimsoll_dike::config::Data { seed: 2, ..config.data.clone() }, ..config.clone() };
        let refused = load_it(&other).await;
        assert!(matches!(refused, Err(LoadError::Different { .. })), "{refused:?}");

        load::destroy(&connector(&config)).await.expect("dropped");
        config.load.method = LoadMethod::Insert;
        config.schema.partitions = 3;
        loaded(&config).await;
        for (table, before) in tables.iter().zip(&before) {
            assert!(rows(&config, table).await == *before, "{table} differs by INSERT");
        }
        load::destroy(&connector(&config)).await.expect("dropped");
        // A database that takes COPY as text only.
        config.load.method = LoadMethod::Copy;
        config.schema.partitions = 0;
        config.target.kind = Kind::Cockroachdb;
        loaded(&config).await;
        config.target.kind = Kind::Postgresql;
        for (table, before) in tables.iter().zip(&before) {
            assert!(rows(&config, table).await == *before, "{table} differs by COPY of text");
        }
        // Files hold the same rows.
        let directory = tempfile::tempdir().expect("a directory");
        let written =
            load::write_csv(&config.data, directory.path(), &never(), Progress::Silent).expect("written");
        assert_eq!(written, before.iter().map(|rows| rows.lines().count() as u64).sum::<u64>());
        let csv = std::fs::read_to_string(directory.path().join("new_order.csv")).expect("a file");
        assert_eq!(csv.lines().count(), before[6].lines().count());
        // Skewed districts are used as they are.
        assert_eq!(errors(&ran(&config).await), []);
        all_hold(&config).await;
    });
}

#[test]
fn a_server_that_refuses_is_quoted_and_its_time_limits_cost_no_connection() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(1);
        config.run.duration_s = 3;
        loaded(&config).await;
        let mut session = connector(&config).connect(0).await.expect("connected");
        session.text("ALTER ROLE dike SET statement_timeout = '300ms'").await.expect("set");
        // Payments wait for the warehouse until they may not wait any more.
        for statement in ["BEGIN", "SELECT w_id FROM warehouse FOR UPDATE"] {
            session.text(statement).await.expect("locked");
        }
        let run = ran(&config).await;
        show(&run);
        let causes: Vec<&str> = errors(&run).into_iter().map(|(cause, _)| cause).collect();
        assert_eq!(causes, [Cause::Timeout.name()]);
        let first = run.errors.iter().find_map(|cause| cause.first.as_ref()).expect("it was said");
        assert_eq!(
            (first.code.as_str(), first.message.as_str()),
            ("57014", "canceling statement due to statement timeout")
        );
        assert!(run.offline_terminals.iter().all(|offline| *offline == 0.0));
        assert_eq!(run.never_committed(), ["payment"]);
        assert!(run.checks.iter().all(|check| check.ok), "{:?}", run.checks);
        session.text("ROLLBACK").await.expect("done");

        for setting in ["statement_timeout = 0", "default_transaction_read_only = on"] {
            session.text(&format!("ALTER ROLE dike SET {setting}")).await.expect("set");
        }
        let run = ran(&config).await;
        show(&run);
        assert_eq!(run.never_committed(), ["new_order", "payment", "delivery"]);
        let document = Document { runs: vec![run] };
        for text in [table::render(&document, 100), html::render(&document), document.to_json()] {
            for expected in ["25006", "in a read-only transaction"] {
                assert!(text.contains(expected), "{expected}: {text}");
            }
        }
        let text = table::render(&document, 100);
        assert!(text.contains(
            "! postgresql, repetition 1: no new_order and no payment and no delivery has committed"
        ));
    });
}

#[test]
fn an_outage_does_not_end_a_run_and_an_interruption_does() {
    let mut server = Server::postgres();
    let mut config = server.config(2);
    config.run.duration_s = 60;
    config.retry.reconnect_max_ms = 200.0;
    let stop = never();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(loaded(&config));
    let running = runtime.spawn({
        let (config, stop) = (config.clone(), stop.clone());
        async move { run::run(&config, &connector(&config), 1, &stop, Progress::Silent).await }
    });
    std::thread::sleep(Duration::from_secs(2));
    server.kill();
    std::thread::sleep(Duration::from_millis(3200));
    server.start_again();
    std::thread::sleep(Duration::from_secs(3));
    stop.store(true, Relaxed);
    let run = runtime.block_on(running).expect("no panic").expect("a run");
    runtime.block_on(all_hold(&config));
    show(&run);
    assert!(run.about.interrupted && run.seconds < config.run.duration_s, "{}", run.seconds);
    let errors = errors(&run);
    assert!(errors.iter().any(|(cause, _)| *cause == Cause::Unreachable.name()), "{errors:?}");
    let lost = [Cause::Disconnected, Cause::Unavailable, Cause::InDoubt].map(Cause::name);
    assert!(errors.iter().any(|(cause, _)| lost.contains(cause)), "{errors:?}");
    // Before, within and after.
    let commits = run.committed_by_second();
    let [outage] = &run.summary().outages[..] else { panic!("{:?}", run.summary().outages) };
    let (from, to) = (outage.from_seconds as usize, outage.to_seconds.ceil() as usize);
    assert!(outage.to_seconds - outage.from_seconds > 2.0, "{outage:?}");
    assert!(commits[..from].iter().all(|&count| count > 0), "{commits:?}");
    assert!(commits[to..].iter().any(|&count| count > 0), "{commits:?}");
    assert!(run.offline_terminals[from + 1] > 0.0, "{:?}", run.offline_terminals);
}

#[test]
fn encrypted_connections_are_made_to_a_server_that_can_prove_who_it_is() {
    let (server, authority) = Server::postgres().with_tls();
    block_on(async {
        let mut config = server.config(1);
        config.target.tls = Tls::Verify;
        config.target.tls_ca = authority.display().to_string();
        let mut session = connector(&config).connect(0).await.expect("connected");
        let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        assert_eq!(session.text_value(encrypted).await.as_deref(), Ok("t"));
        // The certificate is the server's, whoever is in between.
        loaded(&config).await;
        ran_through_a_proxy(&config).await;
        all_hold(&config).await;
        // Nobody well known has signed it.
        config.target.tls_ca = String::new();
        let refused = connector(&config).connect(0).await.err().expect("refused");
        assert!(
            refused.message.contains("UnknownIssuer") || refused.message.contains("certificate"),
            "{refused}"
        );
        config.target.tls = Tls::Off;
        let mut session = connector(&config).connect(0).await.expect("connected");
        assert_eq!(session.text_value(encrypted).await.as_deref(), Ok("f"));
    });
}
