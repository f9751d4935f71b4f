//! A run on a real PostgreSQL with a schedule of faults: the document says what was done to it, the
//! curve shows it, and nothing is left afterwards.

mod common;

use common::{Server, all_hold, block_on, connector, loaded, ran, show};
use plimsoll_dike::chaos::journal::Phase;
use plimsoll_dike::chaos::schedule::Schedule;
use plimsoll_dike::collect::sample::Reading;
use plimsoll_dike::config::Config;
use plimsoll_dike::metrics::Document;
use plimsoll_dike::report::{html, table};
use plimsoll_dike::run::TOLD;

fn with_faults(server: &Server, faults: &str) -> Config {
    let mut config = server.config(2);
    config.retry.reconnect_max_ms = 200.0;
    config.machines.processes = vec![server.as_machine("db")];
    let endpoint = &config.target.endpoints[0];
    let text = faults.replace("ENDPOINT", endpoint);
    config.chaos =
        Schedule { faults: toml::from_str::<Faults>(&text).expect("faults").faults, ..config.chaos };
    config
}

#[derive(serde::Deserialize)]
struct Faults {
    faults: Vec<plimsoll_dike::chaos::schedule::ScheduledFault>,
}

#[test]
fn a_schedule_is_carried_out_and_its_faults_are_seen() {
    let server = Server::postgres();
    let mut config = with_faults(
        &server,
        r#"faults = [
            { at_s = 4, for_s = 2, fault = "network_delay", delay_ms = 40, where = ["ENDPOINT"] },
            { at_s = 8, for_s = 2, fault = "network_partition", where = ["ENDPOINT"] },
            { at_s = 12, for_s = 2, fault = "pause", where = ["db"] },
            { at_s = 16, for_s = 2, fault = "kill", where = ["db"] },
        ]"#,
    );
    config.run.warmup_s = 1;
    config.run.duration_s = 22;
    config.validate().expect("a valid configuration");
    let before = server.pid().expect("it runs");
    let run = block_on(async {
        loaded(&config).await;
        let run = ran(&config).await;
        all_hold(&config).await;
        run
    });
    show(&run);
    assert_ne!(server.pid().expect("it runs again"), before, "it was started anew");
    assert!(run.checks.iter().all(|check| check.ok), "{:?}", run.checks);
    let names: Vec<&str> = run.faults.iter().map(|fault| fault.name.as_str()).collect();
    assert_eq!(names, ["network_delay", "network_partition", "pause", "kill"]);
    assert_eq!(run.journal.entries.len(), 16, "{:?}", run.journal);
    for fault in &run.faults {
        let to = fault.to_seconds.expect("undone");
        assert!(to - fault.from_seconds >= 2.0, "{fault:?}");
        let undoing = run
            .journal
            .entries
            .iter()
            .find(|entry| entry.fault == fault.name && entry.phase == Phase::Undoing);
        let undoing = undoing.expect("noted").at_ns as f64 / 1e9;
        // What had left the server before takes a moment to be counted.
        let within = ((fault.from_seconds + 0.5) * 10.0).ceil() as usize..(undoing * 10.0) as usize;
        let commits: u64 = run.tenths[within].iter().sum();
        assert_eq!(commits > 0, fault.name == "network_delay", "{fault:?}: {commits}");
    }
    let after = run.faults[3].to_seconds.expect("undone") as usize;
    assert!(run.committed_by_second()[after..].iter().any(|&commits| commits > 0), "it has recovered");

    let summary = run.summary();
    assert!(summary.outages.len() >= 3, "{:?}", summary.outages);
    let here = |reading: &&Reading| reading.host() == "localhost";
    let samples = run.readings.iter().filter(here).filter_map(|reading| match reading {
        Reading::Sample(sample) => Some(sample),
        Reading::Gap(_) => None,
    });
    let cores: f64 = samples.flat_map(|sample| &sample.processes).map(|process| process.cores).sum();
    assert!(cores > 0.0, "the server's processor time is sampled");

    let document = Document { runs: vec![run] };
    assert_eq!(Document::from_json(&document.to_json()).expect("readable"), document);
    let page = html::render(&document);
    for expected in ["class=\"fault\"", "<b>D</b>kill db", "seconds without a commit", "R_e", "Machines"] {
        assert!(page.contains(expected), "{expected} is not in the page");
    }
    // Under what stands still nothing commits, whatever was before and after.
    let judged = &document.runs[0].summary().availability;
    for (one, still) in judged.iter().zip([false, true, true, true]) {
        assert!(!still || one.r_e < Some(0.2), "{one:?}");
        assert!(one.lasted_seconds >= 2.0 && one.fault_tps.is_some() && one.r_e < Some(0.9), "{one:?}");
    }
    let text = table::render(&document, 100);
    assert!(text.contains("network_partition") && text.contains("outage"), "{text}");
}

#[test]
fn acknowledged_commits_that_are_gone_or_there_twice_are_named() {
    let server = Server::postgres();
    let mut config = server.config(2);
    config.run.duration_s = 3;
    config.run.label = "lossy".to_owned();
    let run = block_on(async {
        loaded(&config).await;
        let mut session = connector(&config).connect(0).await.expect("connected");
        for statement in ["ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()"] {
            session.text(statement).await.expect("set");
        }
        // What a crash loses depends on the moment; this does not.
        let tamper = async {
            // Once there is a payment, the tables have been read for the first time.
            let loaded = 2 * 10 * config.data.customers_per_district;
            let payments = format!("SELECT COUNT(*) > {loaded} FROM history");
            while session.text_value(&payments).await.as_deref() != Ok("t") {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            for statement in [
                "DELETE FROM history WHERE h_w_id = 1 AND h_c_id <= 5",
                "INSERT INTO history SELECT * FROM history WHERE h_w_id = 2 AND h_c_id <= 5",
            ] {
                session.text(statement).await.expect("done");
            }
        };
        tokio::join!(ran(&config), tamper).0
    });
    show(&run);
    let check = run.checks.iter().find(|check| check.name == TOLD).expect("it was compared");
    assert!(!check.ok && check.detail.contains("payments that clients were told of are gone"), "{check:?}");
    assert!(check.detail.contains("are there that no client asked for, or twice"), "{check:?}");
    for kept in &run.kept {
        let of_history = ["payments", "cents of payments"].contains(&kept.what.as_str());
        assert_eq!((kept.lost > 0, kept.unasked > 0), (of_history, of_history), "{kept:?}");
    }
    let document = Document { runs: vec![run] };
    assert_eq!(Document::from_json(&document.to_json()).expect("readable"), document);
    for text in [html::render(&document), table::render(&document, 100)] {
        for expected in [
            "that clients were told of are gone",
            "synchronous_commit is off: a commit is answered before it is on disk",
            "synchronous_commit off",
            "full_page_writes on",
            "shared_buffers",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(text.contains("core"), "the client's machine");
    }
}

#[test]
fn a_fault_that_cannot_be_put_in_place_is_a_failed_check_and_the_run_goes_on() {
    let server = Server::postgres();
    let mut config =
        with_faults(&server, r#"faults = [{ at_s = 0.5, for_s = 1, fault = "pause", where = ["db"] }]"#);
    config.machines.processes[0].pid_file = Some("/nowhere/postmaster.pid".to_owned());
    config.run.duration_s = 2;
    let run = block_on(async {
        loaded(&config).await;
        ran(&config).await
    });
    let failed = run.checks.iter().find(|check| !check.ok).expect("the fault failed");
    for part in ["pause at db: COULD NOT START", "no process id in /nowhere/postmaster.pid"] {
        assert!(failed.detail.contains(part), "{failed:?}");
    }
    assert!(run.faults.is_empty() && run.seconds == 2 && run.throughput_tps() > 0.0);
    let text = table::render(&Document { runs: vec![run] }, 100);
    assert!(text.contains("every fault is put in place and undone does not hold"), "{text}");
}
