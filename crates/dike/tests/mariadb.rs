//! The same over MySQL's protocol, on a real MariaDB.

mod common;

use common::{
    Server, all_hold, block_on, committed, connector, errors, every_transaction, loaded, never,
    one_node_was_asked, ran, ran_through_a_proxy, show,
};
use plimsoll_dike::config::{Config, LoadMethod, Tls};
use plimsoll_dike::function::{self, Tested, Verdict, isolation};
use plimsoll_dike::load;
use plimsoll_dike::target::Isolation;

#[test]
fn a_mariadb_is_loaded_used_checked_and_dropped() {
    let server = Server::mariadb();
    block_on(async {
        let mut config = server.config(3);
        let by_insert = {
            let mut config = config.clone();
            config.load.method = LoadMethod::Insert;
            config
        };
        loaded(&by_insert).await;
        all_hold(&config).await;
        let rows = async |config: &Config| {
            let mut session = connector(config).connect(0).await.expect("connected");
            session.text("SELECT * FROM customer ORDER BY c_w_id, c_d_id, c_id").await.expect("rows")
        };
        let inserted = rows(&config).await;
        load::destroy(&connector(&config)).await.expect("dropped");
        config.schema.partitions = 3;
        loaded(&config).await;
        assert!(rows(&config).await == inserted, "LOAD DATA and INSERT load different rows");
        assert_eq!(inserted.len(), 900);

        for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
            config.target.isolation = isolation;
            let run = ran(&config).await;
            show(&run);
            assert_eq!(errors(&run), [], "{isolation:?}");
            one_node_was_asked(&run, &config);
            assert!(committed(&run).iter().all(|(_, count)| *count > 0), "{isolation:?}");
            all_hold(&config).await;
        }
        config.mix = every_transaction();
        config.workload.stock_level_warehouses = 2;
        let run = ran(&config).await;
        show(&run);
        assert_eq!(errors(&run), []);
        assert!(run.about.database_version.contains("MariaDB"), "{}", run.about.database_version);
        all_hold(&config).await;
        load::destroy(&connector(&config)).await.expect("dropped");
    });
}

#[test]
fn mariadb_keeps_snapshots_breaks_up_deadlocks_and_loses_updates_below_serializable() {
    let server = Server::mariadb();
    block_on(async {
        let mut config = server.config(4);
        loaded(&config).await;
        let show = |tested: &Tested| println!("{}", function::render(std::slice::from_ref(tested)));
        for (isolation, expected) in [
            (Isolation::ReadCommitted, Verdict::Failed),
            (Isolation::RepeatableRead, Verdict::Passed),
            (Isolation::Serializable, Verdict::Passed),
        ] {
            config.target.isolation = isolation;
            let snapshot =
                function::snapshot::test(&config, &connector(&config), &never()).await.expect("tested");
            show(&snapshot);
            assert_eq!(snapshot.verdict, expected, "{isolation:?}: {snapshot:?}");
            let deadlock =
                function::deadlock::test(&config, &connector(&config), &never()).await.expect("tested");
            show(&deadlock);
            assert_eq!(deadlock.verdict, Verdict::Passed, "{isolation:?}: {deadlock:?}");
            assert_eq!(deadlock.figures["rings"], deadlock.figures["rings_broken_up"]);
        }

        config.target.isolation = Isolation::ReadCommitted;
        let (committed, _) = isolation::test(&config, &connector(&config), &never()).await.expect("tested");
        show(&committed);
        assert_eq!(committed.verdict, Verdict::Passed, "{committed:?}");
        assert!(committed.details.iter().any(|detail| detail.contains("(G-single)")), "{committed:?}");
        config.target.isolation = Isolation::RepeatableRead;
        // Its updates see what its reads do not.
        let (repeatable, _) = isolation::test(&config, &connector(&config), &never()).await.expect("tested");
        show(&repeatable);
        assert_eq!(repeatable.verdict, Verdict::Failed, "{repeatable:?}");
        assert!(repeatable.details.iter().any(|detail| detail.contains("(G-single)")), "{repeatable:?}");
        config.target.isolation = Isolation::Serializable;
        let (serializable, _) =
            isolation::test(&config, &connector(&config), &never()).await.expect("tested");
        show(&serializable);
        assert_eq!(serializable.verdict, Verdict::Passed, "{serializable:?}");
        assert!(serializable.details.is_empty(), "{serializable:?}");
        all_hold(&config).await;
    });
}

#[test]
fn encrypted_connections_are_made_to_a_server_that_can_prove_who_it_is() {
    let (server, authority) = Server::mariadb().with_tls();
    block_on(async {
        let mut config = server.config(1);
        config.target.tls = Tls::Verify;
        config.target.tls_ca = authority.display().to_string();
        let mut session = connector(&config).connect(0).await.expect("connected");
        let cipher = session.text("SHOW STATUS LIKE 'Ssl_cipher'").await.expect("a status");
        assert!(cipher[0][1].as_ref().is_some_and(|cipher| !cipher.is_empty()), "{cipher:?}");
        // The certificate is the server's, whoever is in between.
        loaded(&config).await;
        ran_through_a_proxy(&config).await;
        all_hold(&config).await;
        config.target.tls_ca = String::new();
        let refused = connector(&config).connect(0).await.err().expect("refused");
        assert!(refused.message.contains("certificate"), "{refused}");
    });
}
