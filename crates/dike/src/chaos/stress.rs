//! The worker that loads this machine: processor, memory, disk, with nothing installed.
//!
//! Dike starts its own program again with a hidden subcommand that calls [`run`]. The worker is a
//! guard of its own load: it reads one line of orders, loads, says `started`, and ends when its
//! standard input ends or its time is over. Whatever it holds ends with its process, however that
//! ends: threads, memory, and files that have no name from the moment they were opened.
//!
//! * *Processor*: one thread per core is busy for its share of every 20 ms.
//! * *Memory*: pages are written once, and one byte of each again every second, so that they are
//!   not swapped out first.
//! * *Disk*: a thread writes the file in blocks of 1 MiB and synchronizes after each, or reads it
//!   in such blocks and drops them from the page cache before it reads them again.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use super::fault::{DiskLoad, Fault};
use super::guard::PREFIX;

/// How to start this program as a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The program.
    pub program: String,
    /// The arguments that make it call [`run`].
    pub arguments: Vec<String>,
}

impl Worker {
    /// This very program, with these arguments.
    pub fn of_this_program(arguments: &[&str]) -> io::Result<Worker> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let program = std::env::current_exe()?.into_os_string().into_string();
        let program = program.map_err(|path| io::Error::other(format!("{path:?} is not a text")))?;
        Ok(Worker { program, arguments })
    }
}

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    /// After this time it ends by itself.
    pub limit_s: u64,
    /// One of the loads.
    pub fault: Fault,
}

/// Does what is read from the standard input, until that ends. For the hidden subcommand; not to be
/// called in a process that does anything else. Returns whether there was a load to do.
pub fn run() -> bool {
    let mut line = String::new();
    let work = io::stdin().lock().read_line(&mut line).map_err(|error| error.to_string());
    let work = work.and_then(|_| serde_json::from_str::<Work>(&line).map_err(|error| error.to_string()));
    let started = work.and_then(|work| {
        let limit = Duration::from_secs(work.limit_s);
        Load::start(work.fault).map(|load| (load, limit)).map_err(|error| error.to_string())
    });
    let (load, limit) = match started {
        Ok(started) => started,
        Err(problem) => {
            tell(&problem);
            tell(&format!("{PREFIX}failed"));
            tell(&format!("{PREFIX}undone"));
            return false;
        }
    };
    tell(&format!("{PREFIX}started"));
    wait_for_end_of_input(limit);
    load.end();
    tell(&format!("{PREFIX}undone"));
    true
}

/// Says it on a line of its own. Nobody may be left to read it, and that is no reason to stop.
fn tell(line: &str) {
    let mut out = io::stdout();
    let _ = write!(out, "\n{line}\n").and_then(|()| out.flush());
}

fn wait_for_end_of_input(limit: Duration) {
    let (sender, receiver) = mpsc::channel::<()>();
    let reader = thread::Builder::new().name("life-line".to_owned()).spawn(move || {
        let mut line = String::new();
        while io::stdin().lock().read_line(&mut line).is_ok_and(|length| length > 0) {
            line.clear();
        }
        drop(sender);
    });
    if reader.is_ok() {
        // Either way, end of time or of input, there is nothing to receive.
        let _ = receiver.recv_timeout(limit);
    }
}

/// Threads that load this machine.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(fault: Fault) -> io::Result<Load> {
        let mut load = Load { stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        match fault {
            Fault::Cpu { load_percent, cores } => {
                let all = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
                for _ in 0..cores.unwrap_or(all) {
                    load.thread(move |stop| burn(load_percent, stop))?;
                }
            }
            Fault::Memory { mib, percent_of_available } => {
                let bytes = match (mib, percent_of_available) {
                    (Some(mib), _) => mib << 20,
                    (None, percent) => available_bytes()? / 100 * u64::from(percent.unwrap_or(1)),
                };
                let held = hold(bytes)?;
                load.thread(move |stop| keep_hot(held, stop))?;
            }
            Fault::DiskRead(disk) => load.disk(&disk, true, read_over_and_over)?,
            Fault::DiskWrite(disk) => load.disk(&disk, false, write_over_and_over)?,
            other => return Err(io::Error::other(format!("a worker does not do {}", other.name()))),
        }
        Ok(load)
    }

    fn thread(&mut self, work: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<()> {
        let stop = self.stop.clone();
        self.threads.push(thread::Builder::new().name("load".to_owned()).spawn(move || work(&stop))?);
        Ok(())
    }

    fn disk(
        &mut self,
        disk: &DiskLoad,
        fill: bool,
        work: fn(&File, u64, &AtomicBool) -> io::Result<()>,
    ) -> io::Result<()> {
        let file = Arc::new(nameless_file(Path::new(&disk.directory))?);
        let blocks = disk.file_mib;
        let block = vec![0xa5; BLOCK];
        for number in 0..if fill { blocks } else { 0 } {
            file.write_all_at(&block, number * BLOCK as u64)?;
        }
        file.sync_data()?;
        for _ in 0..disk.workers {
            let file = file.clone();
            self.thread(move |stop| {
                if let Err(error) = work(&file, blocks, stop) {
                    tell(&error.to_string());
                }
            })?;
        }
        Ok(())
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            if thread.join().is_err() {
                tell("a thread of the worker panicked");
            }
        }
    }
}

fn burn(load_percent: u32, stop: &AtomicBool) {
    const PERIOD: Duration = Duration::from_millis(20);
    let busy = PERIOD * load_percent / 100;
    while !stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        while start.elapsed() < busy {
            for _ in 0..1000 {
                std::hint::spin_loop();
            }
        }
        if let Some(rest) = PERIOD.checked_sub(start.elapsed()).filter(|_| load_percent < 100) {
            thread::sleep(rest);
        }
    }
}

fn available_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other("the available memory is not known"))
}

const PAGE: usize = 4096;

fn hold(bytes: u64) -> io::Result<Vec<u8>> {
    let mut held = Vec::new();
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    held.try_reserve_exact(bytes).map_err(io::Error::other)?;
    held.resize(bytes, 0xa5);
    Ok(held)
}

fn keep_hot(mut held: Vec<u8>, stop: &AtomicBool) {
    let mut beat = 0_u8;
    while !stop.load(Ordering::Relaxed) {
        beat = beat.wrapping_add(1);
        for page in held.chunks_mut(PAGE) {
            page[0] = beat;
        }
        std::hint::black_box(&held);
        for _ in 0..20 {
            if !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

const BLOCK: usize = 1 << 20;

/// A file that is gone when this process is.
fn nameless_file(directory: &Path) -> io::Result<File> {
    let path = directory.join(format!("dike-disk.{}", std::process::id()));
    let named = |error| io::Error::other(format!("{}: {error}", path.display()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(named)?;
    std::fs::remove_file(&path).map_err(named)?;
    Ok(file)
}

fn write_over_and_over(file: &File, blocks: u64, stop: &AtomicBool) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    for beat in 0_u64.. {
        block[..8].copy_from_slice(&beat.to_le_bytes());
        file.write_all_at(&block, beat % blocks * BLOCK as u64)?;
        file.sync_data()?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

fn read_over_and_over(file: &File, blocks: u64, stop: &AtomicBool) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    for beat in 0_u64.. {
        let offset = beat % blocks * BLOCK as u64;
        fadvise(file, offset, std::num::NonZeroU64::new(BLOCK as u64), Advice::DontNeed)?;
        file.read_exact_at(&mut block, offset)?;
        std::hint::black_box(&block);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}
