//! What connections cost a core, and how long a round trip takes: over the loopback interface, as
//! far as one machine can tell. A real network adds its own latency and its cards' limits, which
//! nobody can measure without it.
#![allow(clippy::disallowed_types)] // It measures sockets, it does not serve anybody.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use quanta::Clock;

/// What a loopback connection costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loopback {
    /// Half a round trip, in nanoseconds.
    pub latency_ns: f64,
    /// Sending or receiving a batch, in nanoseconds of a core.
    pub batch_ns: f64,
    /// What one connection carries, in Gbit/s.
    pub gigabits_per_s: f64,
}

impl Loopback {
    /// The better figure of each.
    fn better(self, other: Loopback) -> Loopback {
        Loopback {
            latency_ns: self.latency_ns.min(other.latency_ns),
            batch_ns: self.batch_ns.min(other.batch_ns),
            gigabits_per_s: self.gigabits_per_s.max(other.gigabits_per_s),
        }
    }
}

/// A batch's bytes.
const SMALL: usize = 128;
/// A large write's bytes.
const LARGE: usize = 1 << 16;

/// Measures for about `time`, in `rounds` rounds, of which the best counts.
pub fn loopback(time: Duration, rounds: u32) -> std::io::Result<Loopback> {
    let mut best = once(time / rounds)?;
    for _ in 1..rounds {
        best = best.better(once(time / rounds)?);
    }
    Ok(best)
}

fn once(time: Duration) -> std::io::Result<Loopback> {
    let (mut here, mut there) = connection()?;
    let clock = Clock::new();
    let echo = thread(move || -> std::io::Result<TcpStream> {
        let mut buffer = [0; SMALL];
        // A byte 1 ends it.
        while buffer[0] == 0 {
            there.read_exact(&mut buffer)?;
            there.write_all(&buffer)?;
        }
        Ok(there)
    })?;
    let (mut rounds, begin) = (0u64, clock.raw());
    let mut buffer = [0; SMALL];
    while clock.delta(begin, clock.raw()) < time / 3 {
        here.write_all(&buffer)?;
        here.read_exact(&mut buffer)?;
        rounds += 1;
    }
    let round_trip_ns = clock.delta_as_nanos(begin, clock.raw()) as f64 / rounds.max(1) as f64;
    buffer[0] = 1;
    here.write_all(&buffer)?;
    here.read_exact(&mut buffer)?;
    let there = echo.join().map_err(|_| std::io::Error::other("the echo thread ended"))??;

    let (small_ns, _) = stream(&clock, SMALL, time / 3, connection()?)?;
    let (large_ns, bytes) = stream(&clock, LARGE, time / 3, (here, there))?;
    Ok(Loopback {
        latency_ns: round_trip_ns / 2.0,
        batch_ns: small_ns,
        gigabits_per_s: 8.0 * bytes as f64 / large_ns,
    })
}

/// A thread with a name.
fn thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> std::io::Result<JoinHandle<T>> {
    Builder::new().name("loopback".to_owned()).spawn(work)
}

fn connection() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    let (there, _) = listener.accept()?;
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    Ok((here, there))
}

/// Nanoseconds of a core per write of so many bytes, all of which are read as they come; and the
/// bytes.
fn stream(
    clock: &Clock,
    bytes: usize,
    time: Duration,
    (mut here, mut there): (TcpStream, TcpStream),
) -> std::io::Result<(f64, usize)> {
    let reader = thread(move || -> std::io::Result<()> {
        let mut buffer = vec![0; LARGE];
        while there.read(&mut buffer)? > 0 {}
        Ok(())
    })?;
    let data = vec![7; bytes];
    let (mut writes, begin) = (0u64, clock.raw());
    while clock.delta(begin, clock.raw()) < time {
        here.write_all(&data)?;
        writes += 1;
    }
    let elapsed_ns = clock.delta_as_nanos(begin, clock.raw()) as f64;
    drop(here);
    reader.join().map_err(|_| std::io::Error::other("the reading thread ended"))??;
    Ok((elapsed_ns / writes.max(1) as f64, bytes))
}
