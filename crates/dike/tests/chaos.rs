//! Faults of hosts and processes, done and undone in every way a run can end.
//!
//! Machines elsewhere are played by a program that is told to be `ssh` and runs the command here;
//! clocks by a `date` that remembers an offset in a file.

#[path = "chaos/stage.rs"]
mod stage;

use std::time::Duration;

use plimsoll_dike::chaos::Chaos;
use plimsoll_dike::chaos::journal::{Journal, Phase};
use plimsoll_dike::chaos::proxy::Proxy;
use plimsoll_dike::chaos::stress;
use stage::{Stage, Victim, alive, descendants, eventually, state};
use tokio::time::Instant;

/// Not a test: what this program does as a worker.
#[test]
#[ignore = "a child process: faults of this machine in `loads_are_put_on_and_taken_off_...` and others start it"]
fn worker() {
    stress::run();
}

/// Not a test: a Dike that is killed by a test.
#[test]
#[ignore = "a child process: `nothing_is_left_when_dike_is_killed` and the test after it start it"]
fn controller() {
    let Ok(folder) = std::env::var("DIKE_TEST_FOLDER") else { return };
    let stage = Stage::at(folder.into());
    let faults = std::fs::read_to_string(stage.path("faults")).unwrap();
    let machines = std::fs::read_to_string(stage.path("machines")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let chaos = stage.chaos(&machines, &faults, Vec::new()).unwrap();
        let mut started = 0;
        let seen = |entry: &plimsoll_dike::chaos::journal::Entry| {
            started += usize::from(entry.phase == Phase::Started);
            std::fs::write(stage.path("started"), started.to_string()).unwrap();
        };
        chaos.run(Instant::now(), std::future::pending(), seen).await;
    });
}

fn phases(journal: &Journal) -> Vec<Phase> {
    journal.entries.iter().map(|entry| entry.phase.clone()).collect()
}

const NORMAL: [Phase; 4] = [Phase::Starting, Phase::Started, Phase::Undoing, Phase::Undone];

async fn run(chaos: &Chaos) -> Journal {
    chaos.run(Instant::now(), std::future::pending(), |_| {}).await
}

/// A process here and the same one as if it were elsewhere.
fn machines(stage: &Stage, victim: &Victim) -> String {
    format!(
        r#"
        ssh = {{ program = "{ssh}", options = ["-o", "BatchMode=yes"] }}
        hosts = [{{ name = "far", ssh = "root@far" }}]
        processes = [
            {{ name = "here", pid = {pid}, restart = "echo $0 >> {folder}/restarted" }},
            {{ name = "there", host = "far", pids_from = "echo {pid}",
               restart = "echo far >> {folder}/restarted" }},
        ]
        "#,
        ssh = stage.ssh(),
        pid = victim.pid(),
        folder = stage.path("").display(),
    )
}

#[tokio::test]
async fn a_paused_process_stops_with_its_children_and_goes_on() {
    for place in ["here", "there"] {
        let stage = Stage::new().await;
        let victim = Victim::with_a_child();
        let faults = format!(r#"{{ at_s = 0, for_s = 0.5, fault = "pause", where = ["{place}"] }}"#);
        let chaos = stage.chaos(&machines(&stage, &victim), &faults, Vec::new()).unwrap();
        let family = descendants(victim.pid());
        assert!(family.len() >= 2, "the victim and its child");
        let mut stopped = Vec::new();
        let journal = chaos
            .run(Instant::now(), std::future::pending(), |entry| {
                if entry.phase == Phase::Started {
                    stopped = family.iter().map(|pid| state(*pid)).collect();
                }
            })
            .await;
        assert_eq!(phases(&journal), NORMAL, "{journal:?}");
        assert!(stopped.iter().all(|state| *state == Some('T')), "{stopped:?}");
        assert!(family.iter().all(|pid| state(*pid).is_some_and(|state| state != 'T')));
        assert!(journal.bands()[0].to_ns.unwrap() - journal.bands()[0].from_ns >= 500_000_000);
    }
}

#[tokio::test]
async fn a_killed_process_is_started_again_at_the_end() {
    for place in ["here", "there"] {
        let stage = Stage::new().await;
        let mut victim = Victim::with_a_child();
        let family = descendants(victim.pid());
        let faults = format!(r#"{{ at_s = 0, for_s = 0.3, fault = "kill", where = ["{place}"] }}"#);
        let chaos = stage.chaos(&machines(&stage, &victim), &faults, Vec::new()).unwrap();
        let mut restarted_early = true;
        let journal = chaos
            .run(Instant::now(), std::future::pending(), |entry| {
                if entry.phase == Phase::Started {
                    restarted_early = stage.path("restarted").exists();
                }
            })
            .await;
        assert_eq!(phases(&journal), NORMAL, "{journal:?}");
        assert!(victim.was_killed());
        assert!(family.iter().all(|pid| matches!(state(*pid), None | Some('Z'))));
        assert!(!restarted_early && stage.path("restarted").exists());
    }
}

#[tokio::test]
async fn a_server_that_a_restart_leaves_running_holds_nobody_up_and_survives() {
    let stage = Stage::new().await;
    let victim = Victim::alone();
    let machines = format!(
        r#"processes = [{{ name = "db", pid = {}, restart = "echo starting; sleep 100 & echo $! > {}" }}]"#,
        victim.pid(),
        stage.path("pid").display()
    );
    let faults = r#"{ at_s = 0, for_s = 0.1, fault = "kill", where = ["db"] }"#;
    let chaos = stage.chaos(&machines, faults, Vec::new()).unwrap();
    let start = std::time::Instant::now();
    let journal = run(&chaos).await;
    assert_eq!(phases(&journal), NORMAL, "{journal:?}");
    assert_eq!(journal.entries[3].detail, "starting");
    let pid: u32 = std::fs::read_to_string(stage.path("pid")).unwrap().trim().parse().unwrap();
    assert!(alive(pid));
    stage::kill(pid, "KILL");
    assert!(start.elapsed() < Duration::from_secs(90), "nobody waited for the server to end");
}

#[tokio::test]
async fn what_stays_down_is_left_down() {
    let stage = Stage::new().await;
    let mut victim = Victim::alone();
    let faults = r#"{ at_s = 0, fault = "kill", stays_down = true, where = ["here"] }"#;
    let chaos = stage.chaos(&machines(&stage, &victim), faults, Vec::new()).unwrap();
    let stop = tokio::time::sleep(Duration::from_secs(1));
    let journal = chaos.run(Instant::now(), stop, |_| {}).await;
    assert_eq!(phases(&journal), [Phase::Starting, Phase::Started, Phase::Undoing, Phase::LeftDown]);
    assert!(victim.was_killed() && !stage.path("restarted").exists());
}

#[tokio::test]
async fn loads_are_put_on_and_taken_off_here_and_elsewhere() {
    let stage = Stage::new().await;
    let victim = Victim::alone();
    let folder = stage.path("").display().to_string();
    let loads = [
        r#"fault = "cpu", load_percent = 5, cores = 2"#.to_owned(),
        r#"fault = "memory", mib = 8"#.to_owned(),
        r#"fault = "memory", percent_of_available = 1"#.to_owned(),
        format!(r#"fault = "disk_read", file_mib = 2, directory = "{folder}""#),
        format!(r#"fault = "disk_write", file_mib = 2, workers = 2, directory = "{folder}""#),
    ];
    for load in loads {
        let before = descendants(std::process::id());
        let faults = format!(r#"{{ at_s = 0, for_s = 0.5, {load}, where = ["localhost", "far"] }}"#);
        let chaos = stage.chaos(&machines(&stage, &victim), &faults, Vec::new()).unwrap();
        let mut working = 0;
        let journal = chaos
            .run(Instant::now(), std::future::pending(), |entry| {
                working += usize::from(entry.phase == Phase::Started);
            })
            .await;
        assert_eq!(working, 2, "{load}: {journal:?}");
        assert_eq!(
            phases(&journal).iter().filter(|phase| **phase == Phase::Undone).count(),
            2,
            "{load}: {journal:?}"
        );
        let left = || descendants(std::process::id()).into_iter().filter(|pid| !before.contains(pid)).count();
        eventually("no worker is left", || left() == 0);
        assert_eq!(stage.files("dike-"), 0, "no file is left");
    }
}

#[tokio::test]
async fn guards_work_in_every_shell_that_is_here() {
    for shell in ["/bin/dash", "/bin/bash", "/bin/busybox"] {
        if !std::path::Path::new(shell).exists() {
            continue;
        }
        let stage = Stage::new().await;
        std::os::unix::fs::symlink(shell, stage.path("bin/sh")).unwrap();
        let victim = Victim::with_a_child();
        let before = descendants(std::process::id());
        let faults = r#"
            { at_s = 0, for_s = 0.5, fault = "pause", where = ["there"] },
            { at_s = 0, for_s = 0.5, fault = "cpu", load_percent = 1, where = ["far"] },
            { at_s = 0, for_s = 0.5, fault = "memory", mib = 4, where = ["far"] },
            { at_s = 0, for_s = 0.5, fault = "disk_read", file_mib = 2, directory = "/tmp", where = ["far"] },
            { at_s = 3, for_s = 0.5, fault = "kill", where = ["there"] }
        "#;
        let chaos = stage.chaos(&machines(&stage, &victim), faults, Vec::new()).unwrap();
        let journal = run(&chaos).await;
        let undone = phases(&journal).iter().filter(|phase| **phase == Phase::Undone).count();
        assert_eq!((undone, journal.entries.len()), (5, 20), "{shell}: {journal:?}");
        assert!(stage.path("restarted").exists());
        let left = || {
            let all = descendants(std::process::id());
            all.into_iter().filter(|pid| !before.contains(pid)).count()
        };
        eventually("no guard is left", || left() == 0);
    }
}

#[tokio::test]
async fn a_load_takes_what_it_says() {
    let stage = Stage::new().await;
    let faults = r#"{ at_s = 0, for_s = 1, fault = "memory", mib = 200, where = ["localhost"] }"#;
    let chaos = stage.chaos("", faults, Vec::new()).unwrap();
    let mut held_mib = 0;
    let journal = chaos
        .run(Instant::now(), std::future::pending(), |entry| {
            if entry.phase == Phase::Started {
                let workers = descendants(std::process::id());
                held_mib = workers.into_iter().skip(1).map(stage::resident_mib).max().unwrap_or(0);
            }
        })
        .await;
    assert_eq!(phases(&journal), NORMAL, "{journal:?}");
    assert!(held_mib >= 200, "{held_mib} MiB");
}

#[tokio::test]
async fn an_end_of_the_run_undoes_what_holds_and_starts_nothing_more() {
    let stage = Stage::new().await;
    let victim = Victim::alone();
    let faults = r#"
        { at_s = 0, for_s = 1000, fault = "pause", where = ["here"] },
        { at_s = 0, for_s = 1000, fault = "cpu", load_percent = 1, where = ["localhost", "far"] },
        { at_s = 0, for_s = 1000, fault = "network_delay", delay_ms = 1, where = ["e1"] },
        { at_s = 500, for_s = 1, fault = "clock_skew", offset_ms = 5, where = ["far"] }
    "#;
    let proxy = Proxy::place("e1", "127.0.0.1:1", 1).await.unwrap();
    let chaos = stage.chaos(&machines(&stage, &victim), faults, vec![proxy.switch()]).unwrap();
    let stop = tokio::time::sleep(Duration::from_millis(1500));
    let journal = chaos.run(Instant::now(), stop, |_| {}).await;
    let count = |phase| journal.entries.iter().filter(|entry| entry.phase == phase).count();
    assert_eq!(
        (count(Phase::Started), count(Phase::Undone), journal.entries.len()),
        (4, 4, 16),
        "{journal:?}"
    );
    assert_ne!(state(victim.pid()), Some('T'));
}

#[tokio::test]
async fn an_end_while_a_fault_starts_undoes_it_too() {
    let stage = Stage::new().await;
    let hook = stage.script("hook", "sleep 1; echo $DIKE_PHASE >> \"$1\"");
    let machines =
        format!(r#"hosts = [{{ name = "n", hook = "{hook} {}" }}]"#, stage.path("phases").display());
    let faults = r#"{ at_s = 0, for_s = 9, fault = "custom", name = "x", where = ["n"] }"#;
    let chaos = stage.chaos(&machines, faults, Vec::new()).unwrap();
    let stop = tokio::time::sleep(Duration::from_millis(300));
    let journal = chaos.run(Instant::now(), stop, |_| {}).await;
    assert_eq!(phases(&journal), [Phase::Starting, Phase::Undoing, Phase::Undone]);
    assert_eq!(std::fs::read_to_string(stage.path("phases")).unwrap(), "start\nstop\n");
}

#[tokio::test]
async fn a_fault_that_fails_at_one_place_is_undone_at_the_others() {
    let stage = Stage::new().await;
    let victim = Victim::alone();
    let machines = format!("{}\nhosts = []", machines(&stage, &victim))
        .replace("processes = [", r#"processes = [{ name = "gone", pid = 4194303 },"#);
    let machines = machines.replace("\nhosts = []", "");
    let faults = r#"{ at_s = 0, for_s = 1000, fault = "pause", where = ["here", "gone"] }"#;
    let chaos = stage.chaos(&machines, faults, Vec::new()).unwrap();
    let journal = run(&chaos).await;
    let failed = journal.entries.iter().find(|entry| entry.phase == Phase::StartFailed).expect("one fails");
    assert!(failed.place == "gone" && failed.detail.contains("there is no process 4194303"), "{failed:?}");
    assert!(journal.entries.iter().any(|entry| entry.place == "here" && entry.phase == Phase::Undone));
    assert_ne!(state(victim.pid()), Some('T'));
}

#[tokio::test]
async fn hooks_get_the_fault_and_report_what_they_say() {
    let stage = Stage::new().await;
    let hook = stage.script(
        "hook",
        r#"echo "$DIKE_PHASE $DIKE_FAULT $DIKE_PLACE $DIKE_DELAY_MS $DIKE_JITTER_MS $DIKE_DIRECTION" >> "$1"
           echo "said at $DIKE_PHASE"
           [ ! -e "$1.broken-$DIKE_PHASE" ]"#,
    );
    let notes = stage.path("notes");
    let machines = format!(r#"hosts = [{{ name = "net", hook = "{hook} {}" }}]"#, notes.display());
    let faults = r#"{ at_s = 0, for_s = 0.1, fault = "network_delay", delay_ms = 50, jitter_ms = 2,
                      where = ["net"] }"#;
    let chaos = stage.chaos(&machines, faults, Vec::new()).unwrap();

    let journal = run(&chaos).await;
    assert_eq!(phases(&journal), NORMAL, "{journal:?}");
    assert_eq!((&*journal.entries[1].detail, &*journal.entries[3].detail), ("said at start", "said at stop"));
    let said = std::fs::read_to_string(&notes).unwrap();
    assert_eq!(said, "start network_delay net 50 2 both\nstop network_delay net 50 2 both\n");

    std::fs::write(format!("{}.broken-start", notes.display()), "").unwrap();
    let journal = run(&chaos).await;
    assert_eq!(phases(&journal), [Phase::Starting, Phase::StartFailed]);
    assert!(journal.entries[1].detail.contains("exit status 1 of"), "{journal:?}");
    assert!(std::fs::read_to_string(&notes).unwrap().ends_with("stop network_delay net 50 2 both\n"));

    std::fs::remove_file(format!("{}.broken-start", notes.display())).unwrap();
    std::fs::write(format!("{}.broken-stop", notes.display()), "").unwrap();
    let journal = run(&chaos).await;
    let left = journal.left_behind().next().expect("it could not be undone");
    let Phase::UndoFailed { command } = &left.phase else { unreachable!() };
    std::fs::remove_file(format!("{}.broken-stop", notes.display())).unwrap();
    std::fs::remove_file(&notes).unwrap();
    let status = std::process::Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(status.success(), "the user runs {command}");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "stop network_delay net 50 2 both\n");
}

#[tokio::test]
async fn a_clock_is_set_back_by_the_time_that_has_really_passed() {
    let stage = Stage::new().await;
    let victim = Victim::alone();
    for offset_ms in [-3_600_000_i64, 250] {
        let faults = format!(
            r#"{{ at_s = 0, for_s = 1, fault = "clock_skew", offset_ms = {offset_ms}, where = ["far"] }}"#
        );
        let chaos = stage.chaos(&machines(&stage, &victim), &faults, Vec::new()).unwrap();
        let mut skew_ns = 0;
        let journal = chaos
            .run(Instant::now(), std::future::pending(), |entry| {
                if entry.phase == Phase::Started {
                    skew_ns = stage.clock_offset_ns();
                    // Somebody else sets it meanwhile.
                    stage.set_clock_offset_ns(77_000_000_000);
                }
            })
            .await;
        assert_eq!(phases(&journal), NORMAL, "{journal:?}");
        let (skew_ms, left_ms) = (skew_ns / 1_000_000, stage.clock_offset_ns() / 1_000_000);
        // Processes have to be started to read and to set it, on a machine that may be busy.
        assert!((skew_ms - offset_ms).abs() < 2_000, "skewed by {skew_ms} ms instead of {offset_ms}");
        assert!(left_ms.abs() < 2_000, "{left_ms} ms are left");
    }
}

#[tokio::test]
async fn a_machine_is_shut_down_and_powered_on() {
    let stage = Stage::new().await;
    let machines = format!(
        r#"
        ssh = {{ program = "{}" }}
        hosts = [{{ name = "far", ssh = "root@far", shutdown = "echo 'it is' down > {down}; exit 255",
                    power_on = "rm {down}" }}]
        "#,
        stage.ssh(),
        down = stage.path("down").display()
    );
    let faults = r#"{ at_s = 0, for_s = 0.1, fault = "shutdown", where = ["far"] }"#;
    let chaos = stage.chaos(&machines, faults, Vec::new()).unwrap();
    let mut down = false;
    let seen = |entry: &plimsoll_dike::chaos::journal::Entry| {
        if entry.phase == Phase::Started {
            down = stage.path("down").exists();
        }
    };
    let journal = chaos.run(Instant::now(), std::future::pending(), seen).await;
    assert_eq!(phases(&journal), NORMAL, "{journal:?}");
    assert!(down && !stage.path("down").exists());
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_said_to_be() {
    let stage = Stage::new().await;
    let machines = r#"
        ssh = { program = "/nonexistent/ssh" }
        hosts = [{ name = "far", ssh = "root@far" }]
    "#;
    let faults = r#"{ at_s = 0, for_s = 1, fault = "cpu", where = ["far"] }"#;
    let journal = run(&stage.chaos(machines, faults, Vec::new()).unwrap()).await;
    assert_eq!(phases(&journal), [Phase::Starting, Phase::StartFailed]);
    assert!(journal.entries[1].detail.contains("/nonexistent/ssh"));

    let ssh = stage.script("refusing-ssh", "echo 'Permission denied (publickey).' >&2; exit 255");
    let machines = machines.replace("/nonexistent/ssh", &ssh);
    let journal = run(&stage.chaos(&machines, faults, Vec::new()).unwrap()).await;
    assert_eq!(phases(&journal), [Phase::Starting, Phase::StartFailed]);
    assert!(journal.entries[1].detail.contains("Permission denied"), "{journal:?}");
}

#[tokio::test]
async fn a_fault_whose_guard_is_killed_ends_early_and_is_undone_by_dike() {
    let stage = Stage::new().await;
    let victim = Victim::alone();
    let faults = r#"{ at_s = 0, for_s = 1000, fault = "pause", where = ["here"] }"#;
    let chaos = stage.chaos(&machines(&stage, &victim), faults, Vec::new()).unwrap();
    let journal = chaos
        .run(Instant::now(), std::future::pending(), |entry| {
            if entry.phase == Phase::Started {
                assert_eq!(state(victim.pid()), Some('T'));
                stage::kill(stage.guard_of(victim.pid()), "KILL");
            }
        })
        .await;
    let expected = [Phase::Starting, Phase::Started, Phase::EndedEarly, Phase::Undoing, Phase::Undone];
    assert_eq!(phases(&journal), expected, "{journal:?}");
    assert!(journal.entries[4].detail.contains("kill -CONT"), "{journal:?}");
    assert_ne!(state(victim.pid()), Some('T'));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_run_and_a_panicking_one_undo_everything() {
    for panics in [false, true] {
        let stage = Stage::new().await;
        let victim = Victim::alone();
        let faults = r#"{ at_s = 0, for_s = 1000, fault = "pause", where = ["there"] },
                        { at_s = 0, for_s = 1000, fault = "cpu", load_percent = 1, where = ["localhost"] }"#;
        let chaos = stage.chaos(&machines(&stage, &victim), faults, Vec::new()).unwrap();
        let before = descendants(std::process::id());
        let pid = victim.pid();
        let running = tokio::spawn(async move {
            let mut started = 0;
            let seen = |entry: &plimsoll_dike::chaos::journal::Entry| {
                started += usize::from(entry.phase == Phase::Started);
                assert!(!panics || started < 2, "this is the panic of the test");
            };
            chaos.run(Instant::now(), std::future::pending(), seen).await
        });
        if panics {
            assert!(running.await.unwrap_err().is_panic());
        } else {
            while state(pid) != Some('T') {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            running.abort();
            assert!(running.await.unwrap_err().is_cancelled());
        }
        eventually("the process goes on", || state(pid).is_some_and(|state| state != 'T'));
        let left = || descendants(std::process::id()).into_iter().filter(|pid| !before.contains(pid)).count();
        eventually("no guard is left", || left() == 0);
    }
}

#[tokio::test]
async fn nothing_is_left_when_dike_is_killed() {
    let stage = Stage::new().await;
    let victim = Victim::with_a_child();
    let other = Victim::alone();
    let family = descendants(victim.pid());
    let machines = machines(&stage, &victim).replace(
        "processes = [",
        &format!(
            "processes = [{{ name = \"killed\", pid = {}, restart = \"touch {}\" }},",
            other.pid(),
            stage.path("up").display()
        ),
    );
    let folder = stage.path("").display().to_string();
    let faults = format!(
        r#"
        {{ at_s = 0, for_s = 1000, fault = "pause", where = ["there"] }},
        {{ at_s = 0, for_s = 1000, fault = "kill", where = ["killed"] }},
        {{ at_s = 0, for_s = 1000, fault = "cpu", load_percent = 1, where = ["localhost", "far"] }},
        {{ at_s = 0, for_s = 1000, fault = "memory", mib = 4, where = ["localhost", "far"] }},
        {{ at_s = 0, for_s = 1000, fault = "disk_write", file_mib = 2, directory = "{folder}",
           where = ["localhost", "far"] }},
        {{ at_s = 0, for_s = 1000, fault = "clock_skew", offset_ms = -60000, where = ["far"] }}
        "#
    );
    std::fs::write(stage.path("faults"), faults).unwrap();
    std::fs::write(stage.path("machines"), machines).unwrap();
    let mut dike = stage.again("controller").spawn().unwrap();
    let started = || std::fs::read_to_string(stage.path("started")).is_ok_and(|count| count == "9");
    eventually("all faults hold", started);
    let workers: Vec<u32> = descendants(dike.id()).into_iter().skip(1).collect();
    assert!(workers.len() >= 9, "{workers:?}");
    assert_eq!(state(victim.pid()), Some('T'));
    assert!(stage.clock_offset_ns() < -50_000_000_000);

    dike.kill().unwrap();
    dike.wait().unwrap();
    for worker in workers {
        eventually("no worker is left", || !alive(worker));
    }
    assert!(family.iter().all(|pid| state(*pid).is_some_and(|state| state != 'T')));
    assert!(stage.clock_offset_ns().abs() < 2_000_000_000);
    assert!(stage.path("up").exists(), "what was killed is started again");
    assert_eq!(stage.files("dike-"), 0);
}

#[tokio::test]
async fn a_guard_that_hears_nothing_any_more_undoes_its_fault_when_its_time_is_over() {
    // The life line is held open by somebody who never says anything, as by a connection that
    // nobody knows is dead.
    let stage = Stage::new().await;
    let victim = Victim::alone();
    let faults = r#"{ at_s = 0, for_s = 4, fault = "pause", where = ["there"] }"#;
    std::fs::write(stage.path("faults"), faults).unwrap();
    std::fs::write(stage.path("machines"), machines(&stage, &victim)).unwrap();
    let mut dike = stage.again("controller").spawn().unwrap();
    eventually("the fault holds", || state(victim.pid()) == Some('T'));
    stage::kill(dike.id(), "STOP");
    eventually("its guard has undone it", || state(victim.pid()).is_some_and(|state| state != 'T'));
    dike.kill().unwrap();
    dike.wait().unwrap();
}
