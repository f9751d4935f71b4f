//! How fast the client is by itself: TPC-C's mix against a server that does nothing.
//! `cargo run --release -p plimsoll-dike --example client_speed [TERMINALS [SECONDS]]`
//!
//! The server is a process of its own, so that the processor time of this one is the client's
//! alone.

mod stub;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use plimsoll_dike::config::Config;
use plimsoll_dike::target::Connector;
use plimsoll_dike::{Progress, run};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let runtime = tokio::runtime::Runtime::new()?;
    if arguments.peek().is_some_and(|first| first == "stub") {
        return runtime.block_on(be_the_server());
    }
    let terminals = arguments.next().map_or(Ok(32), |number| number.parse())?;
    let seconds = arguments.next().map_or(Ok(10), |number| number.parse())?;

    let mut server = Command::new(std::env::current_exe()?);
    let mut server = server.arg("stub").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (ask, said) = (server.stdin.take(), server.stdout.take());
    let (mut ask, mut said) = (ask.ok_or("no input")?, BufReader::new(said.ok_or("no output")?).lines());
    let mut hear = || said.next().ok_or("the server has ended")?.map_err(Box::<dyn Error>::from);
    let port = hear()?;

    let mut config = Config::default();
    config.target.endpoints = vec![format!("127.0.0.1:{port}")];
    config.run.terminals = terminals;
    config.run.warmup_s = 0;
    config.run.duration_s = seconds;
    config.validate()?;
    let connector = Connector::new(&config.target, true)?;
    let never = Arc::new(AtomicBool::new(false));
    let before = processor_seconds()?;
    let run = runtime.block_on(run::run(&config, &connector, 1, &never, Progress::Silent))?;
    let used = processor_seconds()? - before;
    writeln!(ask)?;
    let statements: f64 = hear()?.parse()?;
    drop(ask);
    server.wait()?;

    let summary = run.summary();
    if summary.errors > 0 {
        return Err(
            format!("{} attempts failed: the server does not answer as it should", summary.errors).into()
        );
    }
    println!("{terminals} terminals, {seconds} s");
    println!("{:.0} transactions/s, p99 {} us", summary.throughput_tps, summary.latency.p99_us);
    println!("{:.0} statements/s on {:.2} cores", statements / seconds as f64, used / seconds as f64);
    println!("{:.0} statements/s per core of the client", statements / used);
    Ok(())
}

/// Serves until standard input ends, and says how many statements there were for each line of it.
async fn be_the_server() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    let statements = Arc::new(AtomicU64::new(0));
    tokio::spawn(stub::serve(listener, Arc::clone(&statements)));
    let asked = tokio::task::spawn_blocking(move || {
        for _ in std::io::stdin().lines() {
            println!("{}", statements.load(Relaxed));
        }
    });
    Ok(asked.await?)
}

/// Processor time of this process so far, user and system.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in brackets, may have blanks.
    let (_, fields) = stat.rsplit_once(") ").ok_or("/proc/self/stat has no name")?;
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}
