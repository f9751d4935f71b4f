//! The functional tests have the verdicts that PostgreSQL's isolation levels deserve.

mod common;

use std::time::Duration;

use common::{Server, block_on, connector, loaded, never};
use plimsoll_dike::check;
use plimsoll_dike::config::Config;
use plimsoll_dike::function::attempts::{Attempt, lines};
use plimsoll_dike::function::judge::Level;
use plimsoll_dike::function::{self, Tested, Verdict, isolation};
use plimsoll_dike::target::Isolation;

/// How often SERIALIZABLE is tried: PostgreSQL 15.18 on a machine whose processors are all busy
/// lets about one transaction in 25,000 see what another has committed before that one counts as
/// committed for the detection of dangerous structures (docs/dike.md). Most histories of half a
/// second have none.
const SERIALIZABLE_TRIES: u32 = 6;

/// What another judge, who has no line of code in common with ours, finds that this model forbids.
fn second_opinion(attempts: &[Attempt], model: &str) -> Vec<String> {
    let history = adya::History::from_json(&lines(attempts)).expect("a well-formed history");
    let models = vec![model.to_owned()];
    let options = adya::Opts { models, timeout: Duration::from_secs(600), ..adya::Opts::default() };
    let report = adya::check(&history, adya::Workload::ListAppend, &options);
    match report.valid {
        adya::Valid::False => report.anomaly_types,
        adya::Valid::True | adya::Valid::Unknown => Vec::new(),
    }
}

async fn tested(config: &Config) -> (Tested, Vec<Attempt>) {
    let tested = isolation::test(config, &connector(config), &never()).await.expect("tested");
    println!("{:?}:\n{}", config.target.isolation, function::render(std::slice::from_ref(&tested.0)));
    tested
}

#[test]
fn anomalies_appear_where_the_level_allows_them_and_only_there() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(2);
        loaded(&config).await;
        let has = |tested: &Tested, name: &str| tested.details.iter().any(|detail| detail.contains(name));

        config.target.isolation = Isolation::ReadCommitted;
        let (found, attempts) = tested(&config).await;
        assert_eq!(found.verdict, Verdict::Passed, "{found:?}");
        assert!(has(&found, "(G-single)"), "{found:?}");
        assert_eq!(second_opinion(&attempts, "read-committed"), Vec::<String>::new());
        assert_ne!(second_opinion(&attempts, "snapshot-isolation"), Vec::<String>::new());
        // Whoever had been promised more would be told.
        assert!(found.says.ends_with(Level::ReadCommitted.name()), "{found:?}");

        config.target.isolation = Isolation::RepeatableRead;
        let (found, attempts) = tested(&config).await;
        assert_eq!(found.verdict, Verdict::Passed, "{found:?}");
        assert!(has(&found, "(G2-item)") && !has(&found, "(G-single)"), "{found:?}");
        assert_eq!(second_opinion(&attempts, "snapshot-isolation"), Vec::<String>::new());
        assert_ne!(second_opinion(&attempts, "serializable"), Vec::<String>::new());

        config.target.isolation = Isolation::Serializable;
        config.test.duration_s = 0.5;
        let mut passed = false;
        for _ in 0..SERIALIZABLE_TRIES {
            let (found, attempts) = tested(&config).await;
            if found.verdict == Verdict::Passed {
                assert!(found.details.is_empty(), "{found:?}");
                assert_eq!(second_opinion(&attempts, "serializable"), Vec::<String>::new());
                passed = true;
                break;
            }
            // A lonely cycle, which the other judge has to see as well.
            assert!(has(&found, "(G2-item): ") && !has(&found, "(G-single)"), "{found:?}");
            assert_eq!(second_opinion(&attempts, "snapshot-isolation"), Vec::<String>::new());
            assert_ne!(second_opinion(&attempts, "serializable"), Vec::<String>::new());
        }
        assert!(passed, "{SERIALIZABLE_TRIES} histories at SERIALIZABLE, and none without an anomaly");
    });
}

#[test]
fn snapshots_hold_from_repeatable_read_on_and_deadlocks_end() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(4);
        loaded(&config).await;
        for (isolation, expected) in [
            (Isolation::ReadCommitted, Verdict::Failed),
            (Isolation::RepeatableRead, Verdict::Passed),
            (Isolation::Serializable, Verdict::Passed),
        ] {
            config.target.isolation = isolation;
            let tested =
                function::snapshot::test(&config, &connector(&config), &never()).await.expect("tested");
            println!("{isolation:?}: {}", function::render(std::slice::from_ref(&tested)));
            assert_eq!(tested.verdict, expected, "{isolation:?}: {tested:?}");
            let tested =
                function::deadlock::test(&config, &connector(&config), &never()).await.expect("tested");
            println!("{isolation:?}: {}", function::render(std::slice::from_ref(&tested)));
            assert_eq!(tested.verdict, Verdict::Passed, "{isolation:?}: {tested:?}");
            assert_eq!(tested.figures["rings"], tested.figures["rings_broken_up"]);
        }
        // What they have changed is as it was.
        let checked = check::check(&connector(&config), &config.data).await.expect("checked");
        assert!(check::all_hold(&checked), "{}", check::render(&checked));
    });
}

#[test]
fn a_time_limit_of_the_server_breaks_rings_up_and_is_no_outage() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(3);
        loaded(&config).await;
        let mut session = connector(&config).connect(0).await.expect("connected");
        for limit in ["deadlock_timeout = '1h'", "statement_timeout = '300ms'"] {
            session.text(&format!("ALTER ROLE dike SET {limit}")).await.expect("set");
        }
        config.test.bound_s = 20.0;
        let tested = function::deadlock::test(&config, &connector(&config), &never()).await.expect("tested");
        println!("{}", function::render(std::slice::from_ref(&tested)));
        assert_eq!(tested.verdict, Verdict::Passed, "{tested:?}");
        assert!(tested.figures["time_limits"] > 0.0, "{tested:?}");
        assert_eq!(tested.figures["outages"], 0.0, "{tested:?}");
        assert_eq!(tested.figures["rings"], tested.figures["rings_broken_up"], "{tested:?}");
    });
}

#[test]
fn a_deadlock_that_nobody_breaks_up_fails_the_test() {
    let server = Server::postgres();
    block_on(async {
        let mut config = server.config(3);
        loaded(&config).await;
        let mut session = connector(&config).connect(0).await.expect("connected");
        session.text("ALTER ROLE dike SET deadlock_timeout = '1h'").await.expect("set");
        config.test.bound_s = 1.0;
        let tested = function::deadlock::test(&config, &connector(&config), &never()).await.expect("tested");
        assert_eq!(tested.verdict, Verdict::Failed, "{tested:?}");
        assert!(tested.says.contains("still waiting"), "{tested:?}");
    });
}
