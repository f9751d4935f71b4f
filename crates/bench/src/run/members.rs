//! The processes of a cluster on this machine, and the pipes between them and the leader of the
//! run.
//!
//! The leader runs its own program again, once per process, with the same arguments and `--member`.
//! What is different from member to member travels over the member's standard input and output, in
//! frames of eight bytes of length and an encoding ([`Wire`]): histories have millions of
//! transactions, which as text would be several times as long.
//!
//! 1. The member listens at a free port of the loopback address, and says where.
//! 2. The leader, once it has heard of all, tells each what it needs to [`Join`], the secret of the
//!    cluster included: what is on a command line can be read by everybody on the machine.
//! 3. The member starts its shards, answers, and goes on to obey orders (`site.rs`).
//!
//! A member ends when its standard input does, so none outlives the leader, however that ends. The
//! leader ends its members when it is done with the run; they keep nothing. They are in process
//! groups of their own: Ctrl-C in a terminal is for the leader, which decides what becomes of the
//! run. Standard error is shared.

use std::fmt;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use plimsoll_runtime::real::{Address, Clock, Network, Role};
use plimsoll_txn::pairs::Pair;

use plimsoll_types::wire::{Malformed, Sink, Wire, whole};
use plimsoll_workloads::AnyWorkload;

use super::site::{Answer, Order, Site};
use crate::cli::plan::BenchPlan;

/// After how long without a sign of life a process takes another for dead. One that loads, or that
/// gets no processor, is not; and the operating system closes the sockets of one that is.
const SILENCE: Duration = Duration::from_secs(30);

/// What a member has to know of the others, and of the run.
#[derive(Clone, Debug)]
pub struct Join {
    /// Its number.
    node: u16,
    /// All members in the order of their numbers: where they listen, and how many shards they have.
    nodes: Vec<(String, usize)>,
    cluster: u64,
    secret: Vec<u8>,
    /// The leader's clock.
    clock_offset: u64,
    /// Which of the plan's pairs.
    pair: usize,
}

plimsoll_types::wire!(struct Join { node, nodes, cluster, secret, clock_offset, pair });

/// Why a run did not come to its end.
#[derive(Debug)]
pub enum Failure {
    /// Threads, processes or files.
    Io(io::Error),
    /// A process ended by itself.
    Ended {
        /// Its number.
        node: usize,
        /// Its identifier.
        id: u32,
        /// How it ended.
        status: ExitStatus,
    },
    /// This process could not do what it was to do: why.
    Here(String),
    /// A process could not do what it was told.
    Failed {
        /// Its number.
        node: usize,
        /// Why.
        why: String,
    },
    /// Transactions do not end.
    Stuck {
        /// Shards whose clients have some of them, and online audits.
        running: u64,
    },
    /// A process said what makes no sense.
    Confused {
        /// Its number.
        node: usize,
        /// What is wrong.
        what: Malformed,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Io(error) => write!(f, "the database cannot be started: {error}"),
            Failure::Ended { node, id, status } => write!(
                f,
                "process {node} (pid {id}) ended before the run did, with {status}: what it said last is above; if it \
                 said nothing, look who killed it and whether the machine ran out of memory"
            ),
            Failure::Here(why) => f.write_str(why),
            Failure::Failed { node, why } => write!(f, "process {node} gave up: {why}"),
            Failure::Stuck { running } => write!(
                f,
                "transactions of {running} shards have not ended a minute after the run: this is a bug, and the command \
                 line with its seed will help to find it"
            ),
            Failure::Confused { node, what } => write!(
                f,
                "process {node} gave an answer that makes no sense ({what}): was {} replaced during the run?",
                std::env::current_exe().unwrap_or_default().display()
            ),
        }
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

/// What one process of the cluster said last: a frame, or nothing any more.
type Frame = (usize, Option<Vec<u8>>);

/// The other processes, from the leader's side.
pub struct Members {
    processes: Vec<(Child, Option<ChildStdin>)>,
    said: Receiver<Frame>,
}

impl Members {
    /// Starts a process of a cluster for each number of shards, and lets them join each other.
    pub fn start(shards: &[usize], pair: usize) -> Result<Members, Failure> {
        let (say, said) = mpsc::channel();
        // Dropped on the way, it ends those that have started.
        let mut members = Members { processes: Vec::new(), said };
        for node in 0..shards.len() {
            members.spawn(node, say.clone())?;
        }
        drop(say);
        let addresses: Vec<String> = members.collect()?;
        let mut random = [0; 40];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let (cluster, secret) = random.split_at(8);
        let join = Join {
            node: 0,
            nodes: addresses.into_iter().zip(shards.iter().copied()).collect(),
            cluster: u64::from_le_bytes(cluster.try_into().expect("eight bytes are split off")),
            secret: secret.to_vec(),
            clock_offset: Clock::new().offset(),
            pair,
        };
        for node in 0..shards.len() {
            members.tell(node, &Join { node: node as u16, ..join.clone() })?;
        }
        members.answers()?;
        Ok(members)
    }

    fn spawn(&mut self, node: usize, say: Sender<Frame>) -> io::Result<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(std::env::args_os().skip(1))
            .arg("--member")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        self.processes.push((child, stdin));
        let mut stdout = BufReader::new(stdout.ok_or(ErrorKind::BrokenPipe)?);
        thread::Builder::new().name(format!("member-{node}")).spawn(move || {
            loop {
                // Whatever is wrong with the pipe, the member is of no use without.
                let frame = read(&mut stdout).unwrap_or_default();
                let over = frame.is_none();
                if say.send((node, frame)).is_err() || over {
                    return;
                }
            }
        })?;
        Ok(())
    }

    /// Gives all the same order, and waits for the answer of each.
    pub fn ask(&mut self, order: &Order) -> Result<Vec<Answer>, Failure> {
        for node in 0..self.processes.len() {
            self.tell(node, order)?;
        }
        self.answers()
    }

    /// Gives one an order, and waits for its answer.
    pub fn ask_one(&mut self, node: usize, order: &Order) -> Result<Answer, Failure> {
        self.tell(node, order)?;
        let (node, answer) = self.hear()?;
        checked(node, answer)
    }

    fn tell(&mut self, node: usize, what: &impl Wire) -> Result<(), Failure> {
        let (_, stdin) = &mut self.processes[node];
        let told = match stdin {
            Some(stdin) => write(stdin, what),
            None => Err(ErrorKind::BrokenPipe.into()),
        };
        told.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => self.ended(node),
            _ => error.into(),
        })
    }

    fn answers(&mut self) -> Result<Vec<Answer>, Failure> {
        let answers = self.collect()?.into_iter().enumerate();
        answers.map(|(node, answer)| checked(node, answer)).collect()
    }

    /// What each says next. If one ends, the others are not waited for.
    fn collect<T: Wire>(&mut self) -> Result<Vec<T>, Failure> {
        let mut all: Vec<Option<T>> = self.processes.iter().map(|_| None).collect();
        while all.iter().any(Option::is_none) {
            let (node, said) = self.hear()?;
            all[node] = Some(said);
        }
        Ok(all.into_iter().flatten().collect())
    }

    fn hear<T: Wire>(&mut self) -> Result<(usize, T), Failure> {
        let (node, frame) = self.said.recv().expect("a member that ends says so");
        let frame = frame.ok_or_else(|| self.ended(node))?;
        let said = whole(&frame).map_err(|what| Failure::Confused { node, what })?;
        Ok((node, said))
    }

    /// How a process ended that has closed its end of a pipe.
    fn ended(&mut self, node: usize) -> Failure {
        let (child, stdin) = &mut self.processes[node];
        drop(stdin.take());
        match child.wait() {
            Ok(status) => Failure::Ended { node, id: child.id(), status },
            Err(error) => error.into(),
        }
    }
}

fn checked(node: usize, answer: Answer) -> Result<Answer, Failure> {
    match answer {
        Answer::Failed(why) => Err(Failure::Failed { node, why }),
        answer => Ok(answer),
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for (child, _) in &mut self.processes {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A member that has said where it listens and was told whom to join.
pub struct Joining {
    listener: TcpListener,
    join: Join,
}

impl Joining {
    /// Listens, tells the leader, and waits for what the leader has to say.
    pub fn meet() -> io::Result<Joining> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        write(&mut io::stdout(), &listener.local_addr()?.to_string())?;
        let frame = read(&mut io::stdin())?.ok_or(ErrorKind::UnexpectedEof)?;
        Ok(Joining { listener, join: decoded(&frame)? })
    }

    /// The pair to run.
    fn pair(&self, plan: &BenchPlan) -> io::Result<Pair> {
        let pair = plan.pairs.get(self.join.pair).copied();
        pair.ok_or_else(|| invalid("there is no such pair"))
    }

    /// Starts the shards and obeys orders until there are no more.
    pub fn serve(self, workload: &Arc<dyn AnyWorkload>, plan: &BenchPlan) -> io::Result<()> {
        let pair = self.pair(plan)?;
        let Joining { listener, join } = self;
        let address = |(id, (address, shards)): (u16, (String, usize))| {
            let address: SocketAddr = address.parse().map_err(|_| invalid("that is no address"))?;
            Ok(Address { id, address: address.into(), shards })
        };
        let clock = Clock::with_offset(join.clock_offset);
        let life = clock.now().0;
        let network = Network {
            cluster: join.cluster,
            role: Role::Member { node: join.node, listener },
            clients: 0,
            nodes: (0..).zip(join.nodes).map(address).collect::<io::Result<_>>()?,
            secret: Some(join.secret),
            silence: SILENCE,
            life,
            memory: life,
            goes_back: false,
            met: Vec::new(),
            clock,
            clock_limit: None,
        };
        let mut site = Site::start(workload, plan, pair, Some(network))?;
        let mut stdout = io::stdout();
        write(&mut stdout, &Answer::Done)?;
        for order in orders()? {
            let answer = site.obey(&decoded(&order)?);
            write(&mut stdout, &answer)?;
        }
        Ok(())
    }
}

/// What comes from the leader. When nothing comes any more, the process ends, whatever it is doing.
fn orders() -> io::Result<Receiver<Vec<u8>>> {
    let (hear, orders) = mpsc::channel();
    thread::Builder::new().name("orders".to_owned()).spawn(move || {
        while let Ok(Some(order)) = read(&mut io::stdin()) {
            // Nobody listens any more: the member is about to end, with an error.
            if hear.send(order).is_err() {
                return;
            }
        }
        std::process::exit(0);
    })?;
    Ok(orders)
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

fn decoded<T: Wire>(frame: &[u8]) -> io::Result<T> {
    whole(frame).map_err(|what| io::Error::new(ErrorKind::InvalidData, what))
}

/// Takes an encoding to a pipe, and remembers what went wrong.
struct Pipe<'a, W> {
    to: &'a mut W,
    done: io::Result<()>,
}

impl<W: Write> Sink for Pipe<'_, W> {
    fn put(&mut self, bytes: &[u8]) {
        if self.done.is_ok() {
            self.done = self.to.write_all(bytes);
        }
    }
}

fn write(to: &mut impl Write, what: &impl Wire) -> io::Result<()> {
    let mut buffered = BufWriter::new(to);
    let mut pipe = Pipe { to: &mut buffered, done: Ok(()) };
    what.bytes().encode(&mut pipe);
    what.encode(&mut pipe);
    pipe.done?;
    buffered.flush()
}

/// The next frame; none if the other side has closed the pipe.
fn read(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u64::from_le_bytes(length);
    let mut frame = Vec::new();
    from.take(length).read_to_end(&mut frame)?;
    if (frame.len() as u64) < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(frame))
}
