//! Samples of this machine, and of one elsewhere that is played by a program that is told to be
//! `ssh`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_dike::chaos::machines::Machines;
use plimsoll_dike::collect::sample::Reading;
use plimsoll_dike::collect::{Collector, Settings};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, timeout};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("collect-test-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn script(&self, text: &str) -> String {
        let path = self.0.join("ssh");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn far(ssh: &str) -> Machines {
    let text = format!(
        r#"
        ssh = {{ program = "{ssh}", options = [] }}
        hosts = [{{ name = "far", ssh = "root@far" }}]
        processes = [{{ name = "me", pid = {} }}]
        "#,
        std::process::id()
    );
    toml::from_str(&text).unwrap()
}

async fn next(readings: &mut UnboundedReceiver<Reading>) -> Reading {
    timeout(Duration::from_secs(60), readings.recv()).await.expect("something is read").unwrap()
}

#[tokio::test]
async fn this_machine_and_others_are_sampled_with_their_names() {
    let folder = Folder::new("both");
    let ssh = folder.script(r#"echo 'Welcome!'; [ "$1" = root@far ] && exec sh -c "$2""#);
    let (sender, mut readings) = mpsc::unbounded_channel();
    let collector = Collector::start(&Settings::default(), &far(&ssh), Instant::now(), &sender).unwrap();
    let mut here = Vec::new();
    let mut there = Vec::new();
    while here.len() < 2 || there.len() < 2 {
        match next(&mut readings).await {
            Reading::Sample(sample) if sample.host == "far" => there.push(sample),
            Reading::Sample(sample) => here.push(sample),
            Reading::Gap(gap) => assert!(gap.why.contains("late"), "{gap:?}"),
        }
    }
    collector.stop().await;
    for sample in here.iter().chain(&there) {
        let cpu = sample.cpu.expect("there are processors");
        let total = cpu.user + cpu.system + cpu.iowait + cpu.steal + cpu.idle;
        assert!(cpu.cores > 0 && total > 0.0 && total < 1.001, "{cpu:?}");
        let memory = sample.memory.expect("there is memory");
        assert!(memory.used_bytes > 0 && memory.used_bytes < memory.total_bytes);
        assert!(sample.interfaces.iter().any(|interface| interface.name == "lo"));
        assert!(sample.interval_ns > 0);
    }
    assert_eq!(here[0].memory.unwrap().total_bytes, there[0].memory.unwrap().total_bytes);
    assert!(here.iter().all(|sample| sample.host == "localhost" && sample.processes[0].name == "me"));
    assert!(there.iter().all(|sample| sample.processes.is_empty()));
    assert!(here.is_sorted_by_key(|sample| sample.at_ns));
}

#[tokio::test]
async fn a_lost_connection_is_made_again_and_leaves_a_gap() {
    let folder = Folder::new("lost");
    let log = folder.0.join("pids");
    let ssh = folder.script(&format!("echo $$ >> {}\nexec sh -c \"$2\"", log.display()));
    let settings = Settings { hosts: Some(vec!["far".to_owned()]), ..Settings::default() };
    let (sender, mut readings) = mpsc::unbounded_channel();
    let collector = Collector::start(&settings, &far(&ssh), Instant::now(), &sender).unwrap();
    while !matches!(next(&mut readings).await, Reading::Sample(_)) {}
    let loops = || std::fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let first = loops().pop().unwrap();
    std::process::Command::new("kill").args(["-KILL", &first]).status().unwrap();
    let mut gaps = 0;
    loop {
        match next(&mut readings).await {
            Reading::Gap(gap) => {
                gaps += 1;
                assert!(gap.to_ns > gap.from_ns && gap.host == "far");
            }
            Reading::Sample(_) if gaps > 0 && loops().len() > 1 => break,
            Reading::Sample(_) => {}
        }
    }
    // Dropped, not stopped: nothing is left either.
    drop(collector);
    let last = loops().pop().unwrap();
    let start = std::time::Instant::now();
    let alive = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    while alive(&first) || alive(&last) {
        assert!(start.elapsed() < Duration::from_secs(30), "the loops are left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_host_that_talks_nonsense_or_nothing_is_a_gap_to_the_end() {
    for script in ["head -c 100000 /dev/urandom; echo; echo 'last words' >&2; exit 1", "exit 255"] {
        let folder = Folder::new(&script.len().to_string());
        let ssh = folder.script(script);
        let settings = Settings { hosts: Some(vec!["far".to_owned()]), ..Settings::default() };
        let (sender, mut readings) = mpsc::unbounded_channel();
        let collector = Collector::start(&settings, &far(&ssh), Instant::now(), &sender).unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        collector.stop().await;
        drop(sender);
        let Some(Reading::Gap(gap)) = readings.recv().await else { panic!("there is a gap") };
        assert!(gap.from_ns == 0 && gap.to_ns >= 2_000_000_000, "{gap:?}");
        assert!(gap.why == "last words" || gap.why == "the connection ended", "{gap:?}");
        assert_eq!(readings.recv().await, None);
    }
}
