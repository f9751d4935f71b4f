//! Runs of a real PostgreSQL while something is done to it: what was done is in the document, and afterwards nothing
//! is left of it.

mod common;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use common::{Server, all_hold, block_on, connector, never};
use plimsoll_dike::config::Config;
use plimsoll_dike::metrics::Run;
use plimsoll_dike::{Progress, load, run};

/// A run of twelve seconds with these faults; `db` is the server, `ENDPOINT` where it listens.
fn config(server: &Server, faults: &str) -> Config {
    let mut config = server.config(1);
    let endpoint = &config.target.endpoints[0];
    let text = format!(
        "[target]\nendpoints = [\"{endpoint}\"]\n[[machines.processes]]\nname = \"db\"\npid = {}\n{}",
        server.pid(),
        faults.replace("ENDPOINT", endpoint)
    );
    let with = Config::parse(&text, &[]).unwrap_or_else(|refusal| panic!("{refusal}"));
    (config.machines, config.chaos) = (with.machines, with.chaos);
    (config.run.warmup_s, config.run.duration_s, config.run.terminals) = (1, 11, 4);
    // Long enough for whoever waits for a server that stands still.
    config.target.transaction_timeout_ms = 5000;
    config
}

/// Commits between two moments, in seconds.
fn committed(run: &Run, from: f64, to: f64) -> u64 {
    run.tenths[(from * 10.0).ceil() as usize..(to * 10.0) as usize].iter().sum()
}

/// Whether the server stands still.
fn stopped(server: &Server) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("the server runs");
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['T', 't']))
}

#[test]
fn what_was_done_is_in_the_document_and_over_afterwards() {
    let server = Server::postgres();
    block_on(async {
        let config = config(
            &server,
            "[[chaos.faults]]\nat_s = 3\nfor_s = 5\nfault = \"network_delay\"\ndelay_ms = 100\nwhere = [\"ENDPOINT\"]\n\
             [[chaos.faults]]\nat_s = 9\nfor_s = 2\nfault = \"pause\"\nwhere = [\"db\"]\n",
        );
        load::load(&config, &connector(&config), &never(), Progress::Silent).await.expect("loaded");
        let run = run::run(&config, &connector(&config), 1, &never(), Progress::Silent).await.expect("run");
        let [delay, pause] = &run.faults[..] else { panic!("{:?}", run.faults) };
        assert_eq!((delay.name.as_str(), pause.name.as_str()), ("network_delay", "pause"));
        let band = |from: f64, to: Option<f64>| (from, to.expect("it was undone"));
        let (from, to) = band(pause.from_seconds, pause.to_seconds);
        // A commit that was on its way counts where its answer comes.
        assert_eq!(committed(&run, from + 0.3, to - 0.1), 0, "{:?}", run.tenths);
        let (slow, fast) = (committed(&run, 4.0, 5.0), committed(&run, 2.0, 2.9));
        assert!(slow * 3 < fast, "{slow} in a second of delay, {fast} in less without");
        let check = run.checks.iter().find(|check| check.name.starts_with("faults")).expect("checked");
        assert!(check.ok, "{check:?}");
        let [judged] = &run.summary().availability[..] else { panic!("the pause is too short to be judged") };
        assert!(judged.fault == "network_delay" && judged.r_e < 0.5, "{judged:?}");
        assert!(!run.resources.is_empty(), "the machine of the client is looked at");
        assert!(!stopped(&server));
        all_hold(&config).await;
    });
}

#[test]
fn a_run_that_is_interrupted_undoes_its_faults() {
    let server = Server::postgres();
    block_on(async {
        let config =
            config(&server, "[[chaos.faults]]\nat_s = 1\nfor_s = 6\nfault = \"pause\"\nwhere = [\"db\"]\n");
        load::load(&config, &connector(&config), &never(), Progress::Silent).await.expect("loaded");
        let stop = Arc::new(AtomicBool::new(false));
        let interrupts = stop.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            interrupts.store(true, Relaxed);
        });
        let run = run::run(&config, &connector(&config), 1, &stop, Progress::Silent).await.expect("run");
        assert!(run.about.interrupted);
        let [pause] = &run.faults[..] else { panic!("{:?}", run.faults) };
        assert!(pause.to_seconds.is_some_and(|to| to < 6.0), "{pause:?}");
        assert!(!stopped(&server));
        all_hold(&config).await;
    });
}
