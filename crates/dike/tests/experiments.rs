//! Every experiment that has a template, shortened, on a real PostgreSQL: it runs, its controls do
//! what they were asked for, its fault is put in place, measured and undone, and the database is
//! consistent afterwards.

mod common;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{Server, all_hold, block_on, committed, connector, control, errors, loaded, ran, show};
use plimsoll_dike::chaos::journal::Phase;
use plimsoll_dike::collect::sample::Reading;
use plimsoll_dike::config::{Config, TEMPLATES};
use plimsoll_dike::load;
use plimsoll_dike::metrics::{Document, Run};
use plimsoll_dike::report::html;
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
    let used = RefCell::new(BTreeSet::new());
    let template = |name: &'static str, more: &[&str]| {
        used.borrow_mut().insert(name);
        experiment(&server, name, more)
    };
    block_on(async {
        let known = "placement.node_of=[1,2,3,4,5,6,7,8,9]";
        loaded(&template("tpcc", &[])).await;
        let mut document = Document::default();

        let set = [known, "distribution.new_order_ratio_pct=40.0"];
        let run = done(&template("distributed-transactions", &set)).await;
        near(&run, "new_order: distribution ratio", 0.25);
        near(&run, "new_order: distribution degree", 0.1);
        document.runs.push(run);

        let run = done(&template("distributed-queries", &[known])).await;
        near(&run, "stock_level: distribution degree", 0.1);
        assert_eq!(control(&run, "stock_level: distribution ratio").achieved, 1.0);
        document.runs.push(run);

        let phases = "contention.phases=[{at_s=0,intensity=[3]},{at_s=1.5,intensity=[6]}]";
        let run = done(&template("contention", &[phases])).await;
        near(&run, "contention intensity", 0.3);
        document.runs.push(run);

        // The same where the later of two writers is rolled back and queues in the client.
        let set =
            [phases, "contention.queue=true", "target.isolation=serializable", "retry.attempts_max=1000"];
        let run = done(&template("contention", &set)).await;
        near(&run, "contention intensity", 0.3);
        assert!(run.aborts.iter().any(|cause| cause.name == "serialization" && run.sum(&cause.counts) > 0));

        let run = done(&template("dynamic-load", &["arrivals.rate_per_s=300.0"])).await;
        near(&run, "load", 0.3);
        let starts =
            &run.controls.iter().find(|control| control.name == "load").expect("controlled").achieved;
        assert!(starts[1] > 2.0 * starts[0] && starts[1] > 2.0 * starts[2], "{starts:?}");
        let run = done(&template("dynamic-load", &[])).await;
        assert!(run.controls.iter().any(|control| control.unit == "share of terminals busy"));
        document.runs.push(run);

        let changes = "mix.changes=[{at_s=1,weights={payment=100}},{at_s=2,weights={new_order=100}}]";
        let run = done(&template("dynamic-mix", &[changes])).await;
        near(&run, "mix: payment", 0.1);
        let payments = run.kinds.iter().find(|kind| kind.name == "payment").expect("in the mix");
        assert!(payments.committed[1] > payments.committed[2], "{:?}", payments.committed);
        document.runs.push(run);

        for name in ["paper", "optimizations", "broadcast", "scalability"] {
            document.runs.push(done(&template(name, &["schema.partitions=0"])).await);
        }
        let set = ["access.skew=exponential", "access.move_every_s=1.0"];
        let run = done(&template("tpcc", &set)).await;
        near(&run, "new_order: distribution ratio", 0.5);
        near(&run, "homes: hottest 1 of 9", 0.15);

        let elsewhere = "SELECT SUM(s_quantity * s_i_id) FROM stock WHERE s_w_id <> 1";
        let mut session = connector(&template("tpcc", &[])).connect(0).await.expect("connected");
        let before = session.text_value(elsewhere).await;
        let run = done(&template("hot-spot", &[])).await;
        assert_eq!(control(&run, "co-access").achieved, 1.0);
        assert_eq!(control(&run, "co-access groups: hottest 1 of 9").achieved, 1.0);
        assert_eq!(session.text_value(elsewhere).await, before, "all changes are in warehouse 1");
        document.runs.push(run);

        let run = done(&template("co-access", &[known])).await;
        near(&run, "co-access", 0.15);
        document.runs.push(run);
        all_hold(&template("tpcc", &[])).await;

        let config = template("data-balance", &[]);
        load::destroy(&connector(&config)).await.expect("dropped");
        loaded(&config).await;
        document.runs.push(done(&config).await);
        all_hold(&config).await;

        let page = html::render(&document);
        for run in &document.runs {
            assert!(page.contains(&escape(&run.about.label)), "{}", run.about.label);
        }
    });
    let without_faults = TEMPLATES.iter().map(|(name, _)| *name).filter(|name| !name.starts_with(FAULT));
    assert_eq!(used.into_inner(), without_faults.collect());
}

/// How names of templates begin that put a fault in place.
const FAULT: &str = "fault-";

/// The template of a fault at this server: from the third second on, for six, which is to the end;
/// four are judged, so it may take two to be put in place on a busy machine. The host `n1` is
/// played by a program that is told to be `ssh`, and its clock by a `date` that keeps an offset in
/// a file.
fn with_fault(server: &Server, folder: &Path, name: &str, text: &str) -> Config {
    let machine = server.as_machine("db");
    let (pid_file, restart) = (machine.pid_file.expect("it has one"), machine.restart.expect("it has one"));
    let endpoint = format!("\"127.0.0.1:{}\"", server.port);
    let quoted = |text: &str| format!("{text:?}");
    let values = [
        ("endpoints", format!("[{endpoint}]")),
        ("at_s", "2".to_owned()),
        ("for_s", "6".to_owned()),
        ("cores", "1".to_owned()),
        ("file_mib", "4".to_owned()),
        ("directory", quoted(&folder.display().to_string())),
        ("shutdown", quoted(&format!("kill -QUIT $(head -n 1 {pid_file})"))),
        ("power_on", quoted(&restart)),
        ("pid_file", quoted(&pid_file)),
        ("restart", quoted(&restart)),
    ];
    let here = |line: &str| match line.split_once(" = ").map(|(key, _)| key) {
        // A hundredth of what there is takes seconds.
        Some("percent_of_available") => "mib = 16\n".to_owned(),
        Some(key) => match values.iter().find(|(known, _)| *known == key) {
            Some((key, value)) => format!("{key} = {value}\n"),
            None => format!("{}\n", line.replace("\"10.0.0.1:5432\"", &endpoint)),
        },
        None => format!("{line}\n"),
    };
    let text: String = text.lines().map(here).collect();
    let ssh = format!("machines.ssh={{program={:?},options=[]}}", folder.join("ssh").display().to_string());
    let more = ["run.duration_s=8".to_owned(), "retry.reconnect_max_ms=200.0".to_owned(), ssh];
    let set: Vec<String> = small(server).into_iter().skip(1).chain(more).collect();
    Config::parse(&text, &set).unwrap_or_else(|refusal| panic!("{name}: {refusal}"))
}

/// Lays out what plays the hosts.
fn stage(folder: &Path) {
    let script = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("made executable");
    };
    script("ssh", r#"PATH="$(dirname "$0"):$PATH" TMPDIR="$(dirname "$0")" exec sh -c "$2""#);
    script(
        "date",
        r#"offset=$(cat "$0.offset" 2>/dev/null) || offset=0
           now=$(/bin/date +%s%N)
           case $1 in
               -s) wanted=${2#@}; echo $((${wanted%.*}${wanted#*.} - now)) >>"$0.offsets"; tail -n 1 "$0.offsets" >"$0.offset" ;;
               +%s%N) echo $((now + offset)) ;;
               *) exit 1 ;;
           esac"#,
    );
}

#[test]
fn every_fault_that_has_a_template_is_put_in_place_measured_and_undone() {
    let server = Server::postgres();
    let folder = tempfile::tempdir().expect("a directory");
    stage(folder.path());
    block_on(async {
        loaded(&experiment(&server, "tpcc", &[])).await;
        let mut document = Document::default();
        for (name, text) in TEMPLATES.iter().filter(|(name, _)| name.starts_with(FAULT)) {
            let config = with_fault(&server, folder.path(), name, text);
            let run = ran(&config).await;
            show(&run);
            let phases: Vec<&Phase> = run.journal.entries.iter().map(|entry| &entry.phase).collect();
            let all = [&Phase::Starting, &Phase::Started, &Phase::Undoing, &Phase::Undone];
            assert_eq!(phases, all, "{name}: {:?}", run.journal);
            assert!(run.checks.iter().all(|check| check.ok), "{name}: {:?}", run.checks);
            let [fault] = &run.faults[..] else { panic!("{name}: {:?}", run.faults) };
            assert!(fault.from_seconds >= 2.0 && fault.to_seconds > Some(fault.from_seconds), "{fault:?}");

            let summary = run.summary();
            let [judged] = &summary.availability[..] else { panic!("{name}: {:?}", summary.availability) };
            let stands_still =
                ["partition", "pause", "kill", "shutdown"].iter().any(|still| judged.fault.contains(still));
            if stands_still {
                // What had left the server before takes a moment to be counted.
                assert!(judged.r_e < Some(0.1), "{judged:?}");
                assert_eq!((judged.t_e, judged.recovery_seconds), (Some(0.0), None), "{judged:?}");
            } else {
                let t_e = judged.t_e.expect("seen");
                assert!(judged.fault_tps > Some(0.0) && (0.0..=1.0).contains(&t_e), "{judged:?}");
            }
            if name.contains("delay") {
                // A transaction that took a few milliseconds waits at least 50 ms four times.
                assert!(judged.r_e < Some(0.5), "{judged:?}");
            }
            if config.machines.host("n1").is_some() {
                let there =
                    |reading: &Reading| reading.host() == "n1" && matches!(reading, Reading::Sample(_));
                assert!(run.readings.iter().any(there), "{name}: n1 is looked at");
            }
            document.runs.push(run);
            all_hold(&config).await;
        }
        let offsets = std::fs::read_to_string(folder.path().join("date.offsets")).expect("the clock was set");
        let offsets: Vec<i64> = offsets.lines().map(|line| line.parse().expect("nanoseconds")).collect();
        let [skewed, right] = offsets[..] else { panic!("{offsets:?}") };
        assert!((skewed - 500_000_000).abs() < 200_000_000 && right.abs() < 200_000_000, "{offsets:?}");

        let page = html::render(&document);
        for expected in ["class=\"fault\"", "R_e, throughput kept", "Machines", "Every step of every fault"] {
            assert!(page.contains(expected), "{expected} is not in the page");
        }
    });
}
