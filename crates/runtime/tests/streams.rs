//! Streams of shards on threads, from clients that use sockets of the standard library.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_runtime::real::{Address, Clock, Listening, Maker, Network, RealEnv, Role, Runtime, SILENCE};
use plimsoll_runtime::{Broken, Echo, Env, Stream, Tasks, UNSENT_MAX};
use plimsoll_types::ShardId;

const A: ShardId = ShardId(0);

fn bound() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    (listener, address)
}

fn makers(shards: usize) -> Vec<Maker<Echo>> {
    (0..shards).map(|_| Box::new(Echo::default) as Maker<Echo>).collect()
}

fn start(shards: usize, streams_max: usize) -> (Runtime<Echo>, SocketAddr) {
    let (listener, address) = bound();
    let listening = Listening { listeners: vec![listener], streams_max };
    let runtime = Runtime::listening(makers(shards), 1, None, Vec::new(), None, listening).expect("threads");
    (runtime, address)
}

/// Has every shard start a task for each of its streams.
fn serve<F>(runtime: &Runtime<Echo>, session: impl Fn(RealEnv<Echo>, Stream) -> F + Clone + Send + 'static)
where
    F: Future<Output = ()> + 'static,
{
    for shard in 0..runtime.shards() {
        let session = session.clone();
        runtime.spawn_on(ShardId(runtime.first().0 + shard as u16), |env| async move {
            loop {
                let stream = env.accept().await;
                env.spawn(session(env.clone(), stream));
            }
        });
    }
}

/// Sends back what arrives until the end.
async fn echo(_: RealEnv<Echo>, stream: Stream) {
    let mut buffer = Vec::new();
    while let Ok(1..) = stream.read(&mut buffer, usize::MAX).await {
        if stream.write(&buffer).await.is_err() {
            return;
        }
        // A session that waits for long keeps no buffer.
        buffer = Vec::new();
    }
    stream.close().await;
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("something listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream
}

/// Bytes that are different at every place of a few kilobytes.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8 ^ (i / 251 % 256) as u8).collect()
}

fn ask(stream: &mut TcpStream, question: &[u8]) {
    stream.write_all(question).expect("it is sent");
    let mut answer = vec![0; question.len()];
    stream.read_exact(&mut answer).expect("it is answered");
    assert!(answer == question);
}

#[test]
fn two_hundred_streams_are_dealt_evenly_to_three_shards_and_echo() {
    let (runtime, address) = start(3, 1000);
    let dealt: Arc<[AtomicUsize; 3]> = Arc::default();
    let counters = dealt.clone();
    serve(&runtime, move |env, stream| {
        counters[env.shard().index()].fetch_add(1, SeqCst);
        echo(env, stream)
    });
    let mut streams: Vec<TcpStream> = (0..200).map(|_| connect(address)).collect();
    for round in 0..5 {
        for (number, stream) in streams.iter_mut().enumerate() {
            ask(stream, &bytes(1 + 97 * round + number));
        }
    }
    let dealt: Vec<usize> = dealt.iter().map(|count| count.load(SeqCst)).collect();
    assert!(dealt.iter().all(|count| (66..=67).contains(count)), "{dealt:?}");
}

#[test]
fn a_stream_sleeps_until_bytes_arrive_and_wakes_a_shard_that_shares_its_thread() {
    let (runtime, address) = start(5, 1000);
    serve(&runtime, echo);
    let mut streams: Vec<TcpStream> = (0..5).map(|_| connect(address)).collect();
    for stream in &mut streams {
        // Long enough for all threads to fall asleep.
        thread::sleep(Duration::from_millis(20));
        ask(stream, b"is there anyone?");
    }
}

#[test]
fn a_client_that_does_not_read_delays_one_task_and_gets_everything_in_the_end() {
    let (runtime, address) = start(1, 10);
    let written = Arc::new(AtomicU64::new(0));
    let counter = written.clone();
    const PIECE: usize = 100_000;
    const PIECES: usize = 300;
    serve(&runtime, move |_, stream| {
        let counter = counter.clone();
        async move {
            let mut request = Vec::new();
            stream.read(&mut request, 1).await.expect("a request");
            if request == b"e" {
                return stream.write(b"e").await.expect("an answer");
            }
            for _ in 0..PIECES {
                stream.write(&bytes(PIECE)).await.expect("the client is there");
                counter.fetch_add(PIECE as u64, SeqCst);
            }
            stream.close().await;
        }
    });
    let mut slow = connect(address);
    slow.write_all(b"all").expect("it is sent");
    let mut stopped_at = u64::MAX;
    while written.load(SeqCst) != stopped_at {
        stopped_at = written.load(SeqCst);
        thread::sleep(Duration::from_millis(100));
    }
    assert!(stopped_at < (PIECE * PIECES) as u64, "the writer waits");
    for _ in 0..3 {
        ask(&mut connect(address), b"e");
    }
    let mut all = Vec::new();
    slow.read_to_end(&mut all).expect("all of it, though the last bytes of the request were not read");
    assert!(all == bytes(PIECE).repeat(PIECES));
}

#[test]
fn a_write_goes_on_without_its_task_and_flush_waits_for_it() {
    let (runtime, address) = start(1, 10);
    let (tell, told) = mpsc::channel();
    serve(&runtime, move |env, stream| {
        let tell = tell.clone();
        async move {
            // Fill what the operating system takes, until a write is not over at once.
            let begun = env.clock();
            let mut sent = 0;
            while env.clock().0 - begun.0 < 300_000_000 {
                let mut write = std::pin::pin!(stream.write(&[7; 1000]));
                let mut is_over = false;
                for _ in 0..3 {
                    is_over =
                        std::future::poll_fn(|cx| std::task::Poll::Ready(write.as_mut().poll(cx).is_ready()))
                            .await;
                    if is_over {
                        break;
                    }
                    env.pause().await;
                }
                if !is_over {
                    break;
                }
                sent += 1000;
            }
            let _ = tell.send(sent);
            let flushed = stream.flush().await;
            let _ = tell.send(usize::from(flushed.is_ok()));
        }
    });
    let mut client = connect(address);
    let sent = told.recv().expect("a number of bytes");
    assert!(sent > UNSENT_MAX);
    assert_eq!(told.recv_timeout(Duration::from_millis(100)), Err(mpsc::RecvTimeoutError::Timeout));
    let mut all = Vec::new();
    client.read_to_end(&mut all).expect("all of it");
    assert!(all.len() >= sent && all.len() - sent < 1000 + UNSENT_MAX);
    assert_eq!(told.recv(), Ok(1));
}

#[test]
fn a_client_that_has_sent_its_last_byte_still_gets_the_answer() {
    let (runtime, address) = start(2, 10);
    serve(&runtime, |_, stream| async move {
        let mut all = Vec::new();
        while stream.read(&mut all, 1000).await.expect("no reset") > 0 {}
        stream.write(&all).await.expect("it is there");
        stream.close().await;
    });
    let mut client = connect(address);
    let question = bytes(300_000);
    client.write_all(&question).expect("it is sent");
    client.shutdown(Shutdown::Write).expect("it can be shut down");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("an answer and an end");
    assert!(answer == question);
}

/// Closes a socket so that the other side sees a reset.
fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("a socket can linger");
}

#[test]
fn a_reset_breaks_reads_and_writes() {
    let (runtime, address) = start(1, 10);
    let (tell, told) = mpsc::channel();
    serve(&runtime, move |_, stream| {
        let tell = tell.clone();
        async move {
            let mut buffer = Vec::new();
            stream.write(b"hello").await.expect("the client is there");
            let read = stream.read(&mut buffer, 100).await;
            let _ = tell.send((read.map(|_| ()), stream.write(b"again").await, stream.flush().await));
        }
    });
    let mut client = connect(address);
    client.read_exact(&mut [0; 5]).expect("a greeting");
    reset(client);
    assert_eq!(told.recv(), Ok((Err(Broken), Err(Broken), Err(Broken))));
}

#[test]
fn a_task_that_does_something_else_learns_that_the_other_side_is_gone() {
    for ends in [drop, reset, |stream: TcpStream| {
        stream.shutdown(Shutdown::Write).expect("it can be shut down");
        thread::sleep(Duration::from_millis(200));
    }] {
        let (runtime, address) = start(1, 10);
        let (tell, told) = mpsc::channel();
        serve(&runtime, move |env, stream| {
            let tell = tell.clone();
            async move {
                stream.write(b"x").await.expect("the client is there");
                let mut gone = std::pin::pin!(stream.gone());
                let mut long = std::pin::pin!(env.sleep(60_000_000_000));
                let is_gone = std::future::poll_fn(|cx| {
                    use std::task::Poll;
                    match (gone.as_mut().poll(cx), long.as_mut().poll(cx)) {
                        (Poll::Ready(()), _) => Poll::Ready(true),
                        (_, Poll::Ready(())) => Poll::Ready(false),
                        _ => Poll::Pending,
                    }
                })
                .await;
                let _ = tell.send(is_gone);
            }
        });
        let mut client = connect(address);
        client.read_exact(&mut [0]).expect("a greeting");
        // It is not read.
        client.write_all(b"select sleep").expect("it is sent");
        assert_eq!(told.recv_timeout(Duration::from_millis(50)), Err(mpsc::RecvTimeoutError::Timeout));
        ends(client);
        assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(true));
    }
}

#[test]
fn a_stream_that_always_has_bytes_lets_other_tasks_run() {
    let (runtime, address) = start(1, 10);
    let read = Arc::new(AtomicU64::new(0));
    let counter = read.clone();
    serve(&runtime, move |_, stream| {
        let counter = counter.clone();
        async move {
            let mut buffer = Vec::new();
            while let Ok(bytes @ 1..) = stream.read(&mut buffer, usize::MAX).await {
                counter.fetch_add(bytes as u64, SeqCst);
                buffer.clear();
            }
        }
    });
    let stop = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..2)
        .map(|_| {
            let (mut client, stop) = (connect(address), stop.clone());
            thread::spawn(move || {
                while !stop.load(SeqCst) {
                    client.write_all(&[1; 200_000]).expect("it is sent");
                }
            })
        })
        .collect();
    while read.load(SeqCst) < 10_000_000 {
        thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..20 {
        runtime.run_on(A, |env| async move { env.sleep(100_000).await });
    }
    stop.store(true, SeqCst);
    for sender in senders {
        sender.join().expect("a sender ends");
    }
}

#[test]
fn a_stream_moves_to_another_shard_with_what_is_unread_and_unsent() {
    let (runtime, address) = start(3, 10);
    serve(&runtime, |env, stream| async move {
        let mut head = Vec::new();
        stream.read(&mut head, 10).await.expect("a request");
        stream.write(&head).await.expect("the client is there");
        let (to, from) = (ShardId((env.shard().0 + 1) % 3), env.shard());
        let detached = stream.detach();
        env.spawn_on(to, move |env: RealEnv<Echo>| async move {
            assert!(env.shard() != from);
            let stream = env.attach(detached);
            stream.write(&[env.shard().0 as u8]).await.expect("the client is there");
            echo(env.clone(), stream).await;
        });
    });
    for _ in 0..5 {
        let mut client = connect(address);
        client.write_all(b"0123456789abc").expect("it is sent");
        let mut answer = [0; 14];
        client.read_exact(&mut answer).expect("an answer");
        assert_eq!((&answer[..10], &answer[11..]), (&b"0123456789"[..], &b"abc"[..]));
        ask(&mut client, &bytes(100_000));
    }
}

#[test]
fn no_more_streams_are_accepted_than_there_may_be_until_one_ends() {
    let (runtime, address) = start(2, 2);
    serve(&runtime, echo);
    let (mut first, mut second) = (connect(address), connect(address));
    ask(&mut first, b"1");
    ask(&mut second, b"2");
    let mut third = connect(address);
    third.set_read_timeout(Some(Duration::from_millis(250))).expect("a timeout");
    third.write_all(b"3").expect("it is sent");
    let refused = third.read(&mut [0]).expect_err("it is not served");
    assert!(matches!(refused.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    drop(first);
    third.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    third.read_exact(&mut [0]).expect("now it is");
    ask(&mut second, b"still there");
}

#[test]
fn a_runtime_that_stops_closes_all_streams() {
    let (runtime, address) = start(3, 100);
    // Of each shard the first stream is accepted, the others are not.
    for shard in 0..3 {
        runtime.spawn_on(ShardId(shard), |env| async move {
            let stream = env.accept().await;
            let _ = stream.read(&mut Vec::new(), 1).await;
        });
    }
    let mut clients: Vec<TcpStream> = (0..12).map(|_| connect(address)).collect();
    thread::sleep(Duration::from_millis(50));
    drop(runtime);
    for client in &mut clients {
        match client.read(&mut [0]) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("{other:?}"),
        }
    }
    TcpStream::connect(address).expect_err("nothing listens");
}

#[test]
fn nodes_of_a_cluster_have_streams_beside_their_connections() {
    let (doors, addresses): (Vec<_>, Vec<_>) = (0..2).map(|_| bound()).unzip();
    let clock = Clock::new();
    let mut nodes: Vec<(Runtime<Echo>, SocketAddr)> = Vec::new();
    for (node, door) in doors.into_iter().enumerate() {
        let member =
            |(id, address): (u16, &SocketAddr)| Address { id, address: (*address).into(), shards: 2 };
        let network = Network {
            cluster: 1,
            role: Role::Member { node: node as u16, listener: door },
            nodes: (0..).zip(&addresses).map(member).collect(),
            clients: 0,
            life: clock.now().0,
            memory: 1 + node as u64,
            goes_back: false,
            met: Vec::new(),
            secret: None,
            silence: SILENCE,
            clock,
            clock_limit: None,
        };
        let (listener, address) = bound();
        let listening = Listening { listeners: vec![listener], streams_max: 100 };
        let runtime = Runtime::listening(makers(2), 1, None, Vec::new(), Some(network), listening);
        nodes.push((runtime.expect("threads"), address));
    }
    // Each byte is sent to every shard of the cluster and comes back from there.
    for (runtime, _) in &nodes {
        serve(runtime, |env, stream| async move {
            let mut buffer = Vec::new();
            while let Ok(1..) = stream.read(&mut buffer, usize::MAX).await {
                for byte in &mut buffer {
                    for shard in 0..4 {
                        let back = loop {
                            match env.call(ShardId(shard), u64::from(*byte)).await {
                                Ok(back) => break back,
                                Err(_) => env.sleep(1_000_000).await,
                            }
                        };
                        *byte = back as u8;
                    }
                }
                stream.write(&buffer).await.expect("the client is there");
                buffer.clear();
            }
        });
    }
    let mut clients: Vec<TcpStream> = nodes.iter().flat_map(|(_, at)| [connect(*at), connect(*at)]).collect();
    for round in 0..20 {
        for client in &mut clients {
            ask(client, &bytes(1 + round));
        }
        if round % 10 == 0 {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What this process has used of a clock's kind of time.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("this is Linux");
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}

/// Run as a process of its own, because it measures one.
#[test]
#[ignore = "a child process: `a_thousand_idle_streams_cost_no_processor_time_and_little_memory` starts it"]
fn idle_streams() {
    const STREAMS: usize = 1000;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("it may be raised");
    let (runtime, address) = start(2, STREAMS + 1);
    serve(&runtime, echo);
    ask(&mut connect(address), &bytes(50_000));
    let before = resident_bytes();
    let mut clients: Vec<TcpStream> = (0..STREAMS).map(|_| connect(address)).collect();
    for client in &mut clients {
        ask(client, &bytes(20_000));
    }
    thread::sleep(Duration::from_millis(100));
    let (bytes_each, begun) = ((resident_bytes().saturating_sub(before)) / STREAMS, Instant::now());
    let used = processor_time();
    thread::sleep(Duration::from_secs(1));
    let used = processor_time() - used;
    println!(
        "{STREAMS} idle streams: {used:?} of processor time in {:?}, {bytes_each} bytes each",
        begun.elapsed()
    );
    assert!(used < Duration::from_millis(5), "{used:?}");
    assert!(bytes_each < 4096, "{bytes_each}");
}

#[test]
fn a_thousand_idle_streams_cost_no_processor_time_and_little_memory() {
    let this = std::env::current_exe().expect("this test has a file");
    let child = std::process::Command::new(this)
        .args(["--ignored", "--exact", "idle_streams", "--nocapture"])
        .output()
        .expect("a child process");
    let said = String::from_utf8_lossy(&child.stdout);
    println!("{said}");
    assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
}
