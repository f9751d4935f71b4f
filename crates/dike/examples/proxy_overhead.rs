//! What the proxy costs while no fault holds: microseconds per round trip, beside a direct
//! connection.
//!
//! `cargo run --release -p plimsoll-dike --example proxy_overhead [round trips]`
//!
//! The server has a thread of its own, as it would have a process of its own; client and proxy
//! share a runtime, as they do in Dike. The two ways are measured in turns, a thousand round trips
//! of 64 bytes each, so that whatever else the machine does hits both.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use plimsoll_dike::chaos::proxy::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server that sends everything back, on a thread of its own. Returns its address.
fn echo() -> std::io::Result<SocketAddr> {
    let (sender, receiver) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("echo".to_owned()).spawn(move || runtime.block_on(serve(sender)))?;
    receiver.recv().map_err(std::io::Error::other)
}

async fn serve(address: mpsc::Sender<SocketAddr>) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    address.send(listener.local_addr()?).map_err(std::io::Error::other)?;
    loop {
        let (mut socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(async move {
            let (mut from, mut to) = socket.split();
            tokio::io::copy(&mut from, &mut to).await
        });
    }
}

async fn round_trips(socket: &mut TcpStream, times_ns: &mut Vec<u64>) -> std::io::Result<()> {
    let mut word = [7; 64];
    for _ in 0..1000 {
        let start = Instant::now();
        socket.write_all(&word).await?;
        socket.read_exact(&mut word).await?;
        times_ns.push(start.elapsed().as_nanos() as u64);
    }
    Ok(())
}

fn report(name: &str, times_ns: &mut [u64]) -> f64 {
    times_ns.sort_unstable();
    let at = |share: f64| times_ns[(times_ns.len() as f64 * share) as usize] as f64 / 1e3;
    println!("{name:>8}: median {:7.1} us, 90 % {:7.1} us, 99 % {:7.1} us", at(0.5), at(0.9), at(0.99));
    at(0.5)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let total = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50_000_usize).max(1000);
    let address = echo()?;
    let proxy = Proxy::place("echo", &address.to_string(), 1).await?;
    let mut direct = TcpStream::connect(address).await?;
    let mut through = TcpStream::connect(proxy.address()).await?;
    direct.set_nodelay(true)?;
    through.set_nodelay(true)?;
    let (mut direct_ns, mut through_ns) = (Vec::new(), Vec::new());
    for _ in 0..total / 1000 {
        round_trips(&mut direct, &mut direct_ns).await?;
        round_trips(&mut through, &mut through_ns).await?;
    }
    let direct = report("direct", &mut direct_ns);
    let through = report("through", &mut through_ns);
    println!("the proxy adds {:.1} us to the median round trip", through - direct);
    Ok(())
}
