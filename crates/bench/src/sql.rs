//! `plimsoll bench sql`: what SQL costs, beside PostgreSQL.
//!
//! pgbench measures a node, which is this program again, and a PostgreSQL of its own, in turns,
//! because machines have moods; what is compared are medians. Neither keeps anything over a crash:
//! the node has no data directory, and PostgreSQL waits for no disk. Processor time is that of the
//! server alone, from the kernel.
//!
//! Without PostgreSQL's server only the node is measured; without pgbench nothing is.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_args::publish;
use plimsoll_engine::machine::{self, Machine};
use plimsoll_page::progress::Progress;
use plimsoll_page::table::Columns;
use plimsoll_page::terminal::{Terminal, wrap};
use plimsoll_page::units;
use serde::Serialize;

use crate::cli::sql::SqlPlan;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is measured: a name, and what pgbench is told.
const CASES: &[(&str, &[&str])] = &[
    ("look up, simple", &["-S", "-M", "simple"]),
    ("look up, prepared", &["-S", "-M", "prepared"]),
    ("TPC-B, simple", &["-M", "simple"]),
    ("TPC-B, prepared", &["-M", "prepared"]),
];

/// What a server has done in a measurement.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figure {
    transactions_per_second: f64,
    /// Of the server, in microseconds per transaction.
    cpu_us: f64,
    failed: u64,
}

/// A case, by server.
#[derive(Debug, Serialize)]
struct Case {
    name: &'static str,
    plimsoll: Vec<Figure>,
    postgresql: Vec<Figure>,
}

#[derive(Debug, Serialize)]
struct Document {
    plimsoll: &'static str,
    commit: &'static str,
    machine: Machine,
    date: String,
    scale: u64,
    clients: u64,
    /// The server beside, if there was one.
    postgresql: Option<String>,
    /// Seconds of `pgbench -i`.
    load_s: Vec<f64>,
    cases: Vec<Case>,
    interrupted: bool,
}

/// Measures, and reports. Returns whether no transaction has failed on the node.
pub fn sql(plan: &SqlPlan, interrupted: &AtomicBool) -> Result<bool, Box<dyn Error>> {
    let programs = programs(plan.postgres.as_deref());
    let pgbench = find(&programs, "pgbench").ok_or(
        "pgbench is not installed: apt-get install postgresql-contrib, or name its directory with --postgres",
    )?;
    let progress = Progress::stderr(plan.quiet);
    let beside = find(&programs, "postgres").zip(find(&programs, "initdb"));
    if beside.is_none() {
        progress.note("PostgreSQL's server is not installed: only Plimsoll is measured.");
    }
    let directory = Directory::new()?;
    let mut servers = vec![node()?];
    let mut version = None;
    if let Some((postgres, initdb)) = beside {
        version = Some(said(Command::new(&postgres).arg("--version"))?.trim().to_owned());
        servers.push(postgresql(&postgres, &initdb, &directory.0)?);
    }
    let steps = servers.len() * (1 + CASES.len() * plan.runs);
    let mut line = progress.line("sql", steps as u64);
    let mut done = 0;
    let mut step = |what: String| {
        line.show(done, || format!("{done}/{steps} · {what}"));
        done += 1;
    };
    let bench = |server: &Server, arguments: &[String]| -> Result<String, Box<dyn Error>> {
        let mut command = Command::new(&pgbench);
        command.args(["-h", "127.0.0.1", "-p", &server.port.to_string(), "-U", "postgres"]);
        said(command.args(arguments).arg("postgres"))
    };
    let mut load_s = Vec::new();
    for server in &servers {
        step(format!("loading {}", server.name));
        let begun = Instant::now();
        bench(server, &["-i".into(), "-q".into(), "-s".into(), plan.scale.to_string()])?;
        load_s.push(begun.elapsed().as_secs_f64());
    }
    let mut cases: Vec<Case> =
        (CASES.iter()).map(|(name, _)| Case { name, plimsoll: Vec::new(), postgresql: Vec::new() }).collect();
    'runs: for _ in 0..plan.runs {
        for ((_, arguments), case) in CASES.iter().zip(&mut cases) {
            for (place, server) in servers.iter().enumerate() {
                if interrupted.load(Relaxed) {
                    break 'runs;
                }
                step(format!("{}, {}", case.name, server.name));
                let (clients, seconds) = (plan.clients.to_string(), plan.duration.as_secs().to_string());
                let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
                all.extend(["-n", "-c", &clients, "-T", &seconds].map(str::to_owned));
                let before_us = server.cpu_us();
                let text = bench(server, &all)?;
                // PostgreSQL's processes end, and are waited for, after their clients.
                thread::sleep(Duration::from_millis(200));
                let figure = figure(&text, server.cpu_us().saturating_sub(before_us))?;
                if place == 0 { case.plimsoll.push(figure) } else { case.postgresql.push(figure) }
            }
        }
    }
    drop(line);
    let failed: u64 = cases.iter().flat_map(|case| &case.plimsoll).map(|figure| figure.failed).sum();
    let document = Document {
        plimsoll: env!("CARGO_PKG_VERSION"),
        commit: machine::COMMIT,
        machine: machine::describe(),
        date: machine::utc_now(),
        scale: plan.scale,
        clients: plan.clients,
        postgresql: version,
        load_s,
        cases,
        interrupted: interrupted.load(Relaxed),
    };
    publish(&plan.json, &document, || show(&document, Terminal::stdout()))?;
    Ok(failed == 0)
}

/// A server that runs, and ends when this is dropped.
struct Server {
    name: &'static str,
    process: Child,
    port: u16,
}

impl Server {
    /// Its processor time and that of its children, also of those that have ended, in microseconds.
    fn cpu_us(&self) -> u64 {
        let me = self.process.id();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ticks = processes.filter_map(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name of the program, which may have blanks in it, ends with the last bracket.
            let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
            let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
            let is_me = entry.file_name().to_str()?.parse() == Ok(me);
            let own = number(11)? + number(12)?;
            let ended = if is_me { number(13)? + number(14)? } else { 0 };
            (is_me || number(1)? == u64::from(me)).then_some(own + ended)
        });
        ticks.sum::<u64>() * 10_000
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A directory that is gone when this is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Directory, Box<dyn Error>> {
        let path = std::env::temp_dir().join(format!("plimsoll-bench-sql-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Starts a node.
fn node() -> Result<Server, Box<dyn Error>> {
    let ports = [free_port()?, free_port()?, free_port()?];
    let [listen, http, sql] = ports.map(|port| format!("127.0.0.1:{port}"));
    let mut process = Command::new(std::env::current_exe()?)
        .args(["start", "--listen", &listen, "--http", &http, "--sql", &sql])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let stderr = process.stderr.take();
    let server = Server { name: "Plimsoll", process, port: ports[2] };
    // It says so when it listens; what it says later nobody reads, so that somebody has to.
    let mut lines = BufReader::new(stderr.ok_or("the node has no standard error")?).lines();
    let mut last = String::new();
    for line in lines.by_ref() {
        last = line?;
        if last.contains("up ") {
            thread::Builder::new().name("log".to_owned()).spawn(move || lines.for_each(drop))?;
            return Ok(server);
        }
    }
    Err(format!("the node does not start: {last}").into())
}

/// Starts a PostgreSQL that waits for no disk.
fn postgresql(postgres: &Path, initdb: &Path, directory: &Path) -> Result<Server, Box<dyn Error>> {
    let data = directory.join("data");
    // PostgreSQL refuses to be root.
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if is_root {
        said(Command::new("chown").arg("nobody").arg(directory))?;
    }
    let as_nobody = |program: &Path| {
        let mut arguments: Vec<OsString> = vec!["--pdeathsig".into(), "KILL".into()];
        if is_root {
            arguments.extend(["--reuid=nobody", "--regid=nogroup", "--clear-groups"].map(OsString::from));
        }
        let mut command = Command::new("setpriv");
        command.args(arguments).arg(program).arg("-D").arg(&data).current_dir(directory);
        command
    };
    said(as_nobody(initdb).args(["--auth=trust", "--username=postgres", "--locale=C", "--no-sync"]))?;
    let port = free_port()?;
    let process = as_nobody(postgres)
        .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-F", "-k"])
        .arg(directory)
        .args(["-c", "synchronous_commit=off", "-c", "full_page_writes=off"])
        .args(["-c", "shared_buffers=512MB", "-c", "max_wal_size=8GB", "-c", "max_connections=1000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let mut server = Server { name: "PostgreSQL", process, port };
    let begun = Instant::now();
    let socket = directory.join(format!(".s.PGSQL.{port}"));
    while !socket.exists() {
        if begun.elapsed() > PATIENCE || server.process.try_wait()?.is_some() {
            return Err("PostgreSQL does not start".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    // It listens a moment before it lets anybody in.
    thread::sleep(Duration::from_secs(1));
    Ok(server)
}

fn free_port() -> Result<u16, Box<dyn Error>> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Directories in which PostgreSQL's programs may be; the newest version is first.
fn programs(named: Option<&Path>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named.to_owned()];
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    all.sort();
    all.reverse();
    all.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    all
}

fn find(directories: &[PathBuf], program: &str) -> Option<PathBuf> {
    directories.iter().map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// What a program says that ends well.
fn said(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let name = command.get_program().to_string_lossy().into_owned();
    // Of a group of its own, so that Ctrl-C ends what follows it and not itself.
    let output =
        command.process_group(0).stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let last = error.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it has failed");
        return Err(format!("{name}: {last}").into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The figures of what pgbench says.
fn figure(text: &str, cpu_us: u64) -> Result<Figure, Box<dyn Error>> {
    let number = |label: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(label))?;
        line.trim_start_matches([':', '=', ' ']).split([' ', '/']).next()?.parse::<f64>().ok()
    };
    let missing = |label: &str| format!("pgbench does not say the {label}");
    let done = number("number of transactions actually processed").ok_or_else(|| missing("number"))?;
    let rate = number("tps").ok_or_else(|| missing("throughput"))?;
    let failed = number("number of failed transactions").unwrap_or(0.0);
    Ok(Figure { transactions_per_second: rate, cpu_us: cpu_us as f64 / done.max(1.0), failed: failed as u64 })
}

fn middle(figures: &[Figure], of: fn(&Figure) -> f64) -> Option<f64> {
    let mut all: Vec<f64> = figures.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

fn show(document: &Document, terminal: Terminal) -> String {
    let clients = units::plural(document.clients, "client", "clients");
    let title = format!("pgbench at scale {}, {clients}", document.scale);
    let mut text = terminal.bold(&title) + "\n\n";
    let headers = [
        ("", 0),
        ("Plimsoll/s", 0),
        ("CPU", 0),
        ("PostgreSQL/s", 0),
        ("CPU", 0),
        ("ratio", 0),
        ("failed", 0),
    ];
    let mut columns = Columns::new(&headers, false);
    for case in &document.cases {
        let rate = |figures: &[Figure]| middle(figures, |figure| figure.transactions_per_second);
        let cpu = |figures: &[Figure]| middle(figures, |figure| figure.cpu_us);
        let shown = |figure: Option<f64>, as_text: fn(f64) -> String| figure.map_or("–".to_owned(), as_text);
        let ratio = rate(&case.plimsoll).zip(rate(&case.postgresql)).map(|(ours, theirs)| ours / theirs);
        let failed: u64 = case.plimsoll.iter().map(|figure| figure.failed).sum();
        columns.push(vec![
            case.name.to_owned(),
            shown(rate(&case.plimsoll), units::rate),
            shown(cpu(&case.plimsoll), units::duration_us),
            shown(rate(&case.postgresql), units::rate),
            shown(cpu(&case.postgresql), units::duration_us),
            shown(ratio, units::ratio),
            units::thousands(failed),
        ]);
    }
    text.push_str(&columns.render(terminal.width));
    let load: Vec<String> = document.load_s.iter().map(|seconds| units::seconds(*seconds)).collect();
    text.push_str(&format!("\nLoading took {}.\n", load.join(" and ")));
    let note = match &document.postgresql {
        Some(version) => format!(
            "Medians of runs in turns, beside {version}; neither keeps anything on disk. CPU is the server's, per transaction."
        ),
        None => "Medians of runs; nothing is kept on disk. CPU is the server's, per transaction.".to_owned(),
    };
    text + &wrap(&note, terminal.width, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_says_is_read() {
        let text = "transaction type: <builtin: select only>\nnumber of transactions actually processed: 1200\n\
                    number of failed transactions: 3 (0.250%)\nlatency average = 1 ms\n\
                    tps = 601.250000 (without initial connection time)\n";
        let figure = figure(text, 24_000).expect("it is all there");
        assert_eq!((figure.transactions_per_second, figure.cpu_us, figure.failed), (601.25, 20.0, 3));
        assert!(super::figure("tps = 1", 0).is_err());
    }

    #[test]
    fn a_table_has_what_was_measured() {
        let figure = |rate| Figure { transactions_per_second: rate, cpu_us: 20.0, failed: 0 };
        let mut document = Document {
            plimsoll: "0.1.0",
            commit: "abc1234",
            machine: Machine::default(),
            date: String::new(),
            scale: 1,
            clients: 8,
            postgresql: Some("postgres (PostgreSQL) 15.1".to_owned()),
            load_s: vec![1.0, 2.0],
            cases: vec![Case {
                name: "look up",
                plimsoll: vec![figure(300.0)],
                postgresql: vec![figure(100.0)],
            }],
            interrupted: false,
        };
        let terminal = || Terminal { width: 100, colour: false };
        let said = show(&document, terminal());
        assert!(said.contains("3.000×") && said.contains("15.1"), "{said}");
        (document.postgresql, document.cases[0].postgresql) = (None, Vec::new());
        let said = show(&document, terminal());
        assert!(said.contains('–') && !said.contains("beside"), "{said}");
    }
}
