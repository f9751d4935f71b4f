//! Every experiment that has a template, shortened, on a real PostgreSQL: it runs, its controls do what they
//! were asked for, and the database is consistent afterwards.

mod common;

use common::{Server, all_hold, block_on, committed, connector, control, errors, never, ran, show};
use plimsoll_dike::config::{Config, TEMPLATES};
use plimsoll_dike::metrics::{Document, Run};
use plimsoll_dike::report::html;
use plimsoll_dike::{Progress, load};
use plimsoll_page::html::escape;

/// What makes any experiment small and short.
fn small(server: &Server) -> Vec<String> {
    let endpoint = format!("target.endpoints=[\"127.0.0.1:{}\"]", server.port);
    let more = [
        "target.database=postgres",
        "data.warehouses=9",
        "data.items=1000",
        "data.customers_per_district=30",
        "run.terminals=9",
        "run.warmup_s=0",
        "run.duration_s=3",
        "run.repeats=1",
    ];
    [endpoint].into_iter().chain(more.map(str::to_owned)).collect()
}

/// The template with this name, with `more` set as well.
fn experiment(server: &Server, name: &str, more: &[&str]) -> Config {
    let (_, text) = TEMPLATES.iter().find(|(known, _)| *known == name).expect("a template");
    let set: Vec<String> = small(server).into_iter().chain(more.iter().map(|set| set.to_string())).collect();
    Config::parse(text, &set).unwrap_or_else(|refusal| panic!("{name}: {refusal}"))
}

async fn loaded(config: &Config) {
    let connector = connector(config);
    load::load(config, &connector, &never(), Progress::Silent).await.expect("loaded");
}

/// Runs it and looks at what every run has to have.
async fn done(config: &Config) -> Run {
    let run = ran(config).await;
    show(&run);
    assert_eq!(errors(&run), [], "{}", run.about.label);
    assert!(committed(&run).iter().any(|(_, count)| *count > 0), "{}", run.about.label);
    assert_eq!(run.client_cpu.share.len(), run.seconds as usize, "{}", run.about.label);
    run
}

#[track_caller]
fn near(run: &Run, name: &str, tolerance: f64) {
    let overall = control(run, name);
    assert!(overall.intended > 0.0 && overall.deviation().abs() < tolerance, "{name}: {overall:?}");
}

#[test]
fn every_experiment_runs_and_its_controls_hold() {
    let server = Server::postgres();
    block_on(async {
        let known = "placement.node_of=[1,2,3,4,5,6,7,8,9]";
        loaded(&experiment(&server, "tpcc", &[])).await;
        let mut document = Document::default();

        let set = [known, "distribution.new_order_ratio_pct=40.0"];
        let run = done(&experiment(&server, "distributed-transactions", &set)).await;
        near(&run, "new_order: distribution ratio", 0.25);
        near(&run, "new_order: distribution degree", 0.1);
        document.runs.push(run);

        let run = done(&experiment(&server, "distributed-queries", &[known])).await;
        near(&run, "stock_level: distribution degree", 0.1);
        assert_eq!(control(&run, "stock_level: distribution ratio").achieved, 1.0);
        document.runs.push(run);

        let phases = "contention.phases=[{at_s=0,intensity=[3]},{at_s=1.5,intensity=[6]}]";
        let run = done(&experiment(&server, "contention", &[phases])).await;
        near(&run, "contention intensity", 0.3);
        document.runs.push(run);

        // The same where the later of two writers is rolled back and queues in the client.
        let set =
            [phases, "contention.queue=true", "target.isolation=serializable", "retry.attempts_max=1000"];
        let run = done(&experiment(&server, "contention", &set)).await;
        near(&run, "contention intensity", 0.3);
        assert!(run.aborts.iter().any(|cause| cause.name == "serialization" && run.sum(&cause.counts) > 0));

        let run = done(&experiment(&server, "dynamic-load", &["arrivals.rate_per_s=300.0"])).await;
        near(&run, "load", 0.3);
        let starts =
            &run.controls.iter().find(|control| control.name == "load").expect("controlled").achieved;
        assert!(starts[1] > 2.0 * starts[0] && starts[1] > 2.0 * starts[2], "{starts:?}");
        let run = done(&experiment(&server, "dynamic-load", &[])).await;
        assert!(run.controls.iter().any(|control| control.unit == "share of terminals busy"));
        document.runs.push(run);

        let changes = "mix.changes=[{at_s=1,weights={payment=100}},{at_s=2,weights={new_order=100}}]";
        let run = done(&experiment(&server, "dynamic-mix", &[changes])).await;
        near(&run, "mix: payment", 0.1);
        let payments = run.kinds.iter().find(|kind| kind.name == "payment").expect("in the mix");
        assert!(payments.committed[1] > payments.committed[2], "{:?}", payments.committed);
        document.runs.push(run);

        for name in ["optimizations", "broadcast", "scalability"] {
            document.runs.push(done(&experiment(&server, name, &[])).await);
        }
        let set = ["access.skew=exponential", "access.move_every_s=1.0"];
        let run = done(&experiment(&server, "tpcc", &set)).await;
        near(&run, "new_order: distribution ratio", 0.5);
        near(&run, "homes: hottest 1 of 9", 0.15);

        let elsewhere = "SELECT SUM(s_quantity * s_i_id) FROM stock WHERE s_w_id <> 1";
        let mut session = connector(&experiment(&server, "tpcc", &[])).connect(0).await.expect("connected");
        let before = session.text_value(elsewhere).await;
        let run = done(&experiment(&server, "hot-spot", &[])).await;
        assert_eq!(control(&run, "co-access").achieved, 1.0);
        assert_eq!(control(&run, "co-access groups: hottest 1 of 9").achieved, 1.0);
        assert_eq!(session.text_value(elsewhere).await, before, "all changes are in warehouse 1");
        document.runs.push(run);

        let run = done(&experiment(&server, "co-access", &[known])).await;
        near(&run, "co-access", 0.15);
        document.runs.push(run);
        all_hold(&experiment(&server, "tpcc", &[])).await;

        let config = experiment(&server, "data-balance", &[]);
        load::destroy(&connector(&config)).await.expect("dropped");
        loaded(&config).await;
        document.runs.push(done(&config).await);
        all_hold(&config).await;

        let page = html::render(&document);
        for run in &document.runs {
            assert!(page.contains(&escape(&run.about.label)), "{}", run.about.label);
        }
    });
}
