//! ROCOCO (Mu et al., "Extracting More Concurrency from Distributed Transactions", OSDI 2014):
//! reorder instead of abort.
//!
//! A transaction is a procedure cut into pieces ([`crate::chopping`]). Each piece executes where
//! its data is, on a copy of the procedure ([`crate::shipped`]).
//!
//! **Start.** The coordinator sends START for the pieces of a stage to their servers. A server
//! notes which undecided transactions have started on the same items before: those are predecessors
//! ([`items`]). An immediate piece executes at once, and its writes are pending ([`execution`]); a
//! deferrable piece is kept. START never waits, so every transaction reaches the end of its start
//! phase. The reply has the outputs, the predecessors, and the bound that the stamp must exceed.
//!
//! **Commit.** The coordinator unites the predecessors and sends COMMIT to all servers. A server
//! determines the transaction's place in the dependency graph ([`graph`]): the start phases of all
//! transactions before it must be over. The server will hear of those that have started here; for
//! others it ASKs a server where they met. Then order and stamps of the transaction's strongly
//! connected component are the same on every server. Once all its predecessors here outside of the
//! component are decided, the server executes the deferred pieces of the component in that order
//! and installs its members' writes: they are *decided* here. When all servers have answered, the
//! transaction is over, and the coordinator tells them so by END.
//!
//! No transaction is ever aborted for a conflict, and none waits for a lock. The paper's START
//! replies carry the graph; here they carry the direct predecessors only, and a server that lacks a
//! transaction in between asks for it: one more message in long chains across servers, in exchange
//! for messages that do not grow with contention.
//!
//! **Memory.** A server remembers a decided transaction until it has ended, and all transactions
//! that have met it here have ended: no server asks for it any more. If one does, all transactions
//! that had met it here are decided everywhere, and the asker learns of those instead.
//!
//! **Timestamps.** A version carries the stamp of its transaction, which grows along every edge of
//! the graph. Under DST the tentative stamp is not below the coordinator's clock and above the
//! marks of everything that was touched. Reads are pinned when the transaction is decided, and a
//! snapshot waits for a pending write whose stamp may be within it. So snapshots work as under
//! every other protocol: one round, no aborts ([`crate::read_only`]). Without timestamps a
//! read-only transaction reads in rounds, each of which waits for the undecided writers of its
//! records, until two rounds see the same ([`rounds`]).
//!
//! A transaction runs in one step, as under every other protocol, if its data is all on this shard
//! and no undecided transaction has started on it.
//!
//! **Between processes** messages may be lost and coordinators may die. START and COMMIT are sent
//! until they are answered, and a server repeats its first answer ([`participant`]). So a server
//! can act as the coordinator, even at the same time, with the same result: a server that has not
//! heard of a transaction for a while continues it ([`coordinator::look_after`]). A transaction
//! that is over never starts again ([`over`]). Impossible statements of another process are refused
//! or ignored, and counted.
//!
//! **On disk** a server keeps its answers to START and what is decided, so that one that comes back
//! has promised nothing in vain ([`logged`]).
//!
//! Left out: interactive transactions and aborts after effects, which ROCOCO cannot express; writes
//! to tables with copies; slots that move; a server that loses its memory and has no log.

pub mod chopping;
mod coordinator;
mod execution;
mod graph;
mod items;
mod logged;
mod over;
mod participant;
mod rounds;
#[cfg(test)]
mod tests;

use plimsoll_runtime::{Env, Handled, Messages};
use plimsoll_types::Ticket;
use plimsoll_types::wire::Malformed;
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use crate::attempt::{Attempt, ProtocolOptions, Stop};
use crate::ballot;
use crate::base::Base;
use crate::envelope::{Answer, Envelope};
use crate::executable::Executable;
use crate::fetched::Fetched;
use crate::messages::{Common, CommonReply, MoveOutcome};
use crate::procedure::{Piece, Reads};
use crate::protocol::Protocol;
use crate::shipped::Cargo;
use crate::timestamp::Scheme;
use crate::trace::About;
use crate::work::Footprint;
use execution::RecordedReads;
use graph::{StartResult, TxnReport};
pub use participant::Rococo;

/// Requests to a participant.
pub enum Request {
    /// Starts pieces of a stage.
    Start {
        /// The transaction.
        txn: TxnId,
        /// Its stamp will not be below this.
        least: Timestamp,
        /// The procedure, with the outputs of all earlier stages; taken out when the request is
        /// handled.
        cargo: Option<Cargo>,
        /// The stage.
        stage: usize,
        /// The numbers of the pieces of this stage to start.
        pieces: Vec<usize>,
    },
    /// The start phase is over: executes the transaction, after those before it.
    Commit {
        /// The transaction.
        txn: TxnId,
        /// The result of its start phase.
        known: StartResult,
    },
    /// From server to server: asks about a transaction that has started at the receiver.
    Ask(TxnId),
    /// The answer.
    Answer(Vec<TxnReport>),
    /// The transaction is decided on all servers.
    End(TxnId),
    /// From a coordinator: the attempts that it has settled, even if their END was lost.
    Settled {
        /// The first number of its present life.
        first: u64,
        /// The number of its next attempt.
        next: u64,
        /// The attempts between that are not settled, in order.
        open: Vec<u64>,
    },
    /// To a silent coordinator: asks which attempts are settled.
    Remind,
    /// Reads the newest committed versions, once no undecided transaction may write these records.
    ReadDecided {
        /// The transaction that reads.
        txn: TxnId,
        /// What to read.
        reads: Reads,
    },
}

plimsoll_types::wire!(enum Request {
    Start { txn, least, cargo, stage, pieces } = 2, Commit { txn, known } = 3, Ask(txn) = 4, Answer(told) = 5,
    End(txn) = 6, ReadDecided { txn, reads } = 7, Settled { first, next, open } = 8, Remind = 9
});

/// Answers of a participant.
pub enum Reply<S: Scheme> {
    /// The pieces have started.
    Started(Started),
    /// The transaction is decided here.
    Decided(Decided),
    /// The request is impossible here.
    Refused,
    /// The transaction is decided on all servers.
    Over,
    /// The values read.
    Read(Fetched<S>),
    /// Some of the rows are on another shard.
    Elsewhere,
}

plimsoll_types::wire!(<S: Scheme> enum Reply<S> {
    Started(started) = 2, Decided(decided) = 3, Refused = 4, Over = 5, Read(fetched) = 6, Elsewhere = 7
});

/// The result of START.
pub struct Started {
    /// The procedure with the outputs of the pieces that have executed; `None` if none has.
    executed: Option<Cargo>,
    /// The stage to continue with: consecutive stages with pieces of one type have executed as one.
    next: usize,
    /// Its predecessors here and its tentative stamp; whether a piece has refused.
    known: StartResult,
}

plimsoll_types::wire!(struct Started { executed, next, known });

/// The result of COMMIT.
pub struct Decided {
    /// Its stamp.
    stamp: Timestamp,
    /// How many records it has written here.
    writes: u64,
    /// Copies of the procedure with the outputs of deferred pieces, and the pieces that each has
    /// executed.
    executed: Vec<(Cargo, Vec<Piece>)>,
    /// Its reads here, if the run is recorded.
    seen: Option<Box<RecordedReads>>,
}

plimsoll_types::wire!(struct Decided { stamp, writes, executed, seen });

impl Decided {
    fn copy(&self) -> Decided {
        let executed = self.executed.iter().map(|(cargo, pieces)| (cargo.copy(), pieces.clone()));
        Decided {
            stamp: self.stamp,
            writes: self.writes,
            executed: executed.collect(),
            seen: self.seen.clone(),
        }
    }
}

impl<S: Scheme> Messages for Rococo<S> {
    type Request = Envelope<S, Request>;
    type Reply = Answer<S, Reply<S>>;
}

impl<S: Scheme> Protocol for Rococo<S> {
    type Scheme = S;
    type Own = Request;
    type OwnReply = Reply<S>;
    const NAME: &'static str = "rococo";
    const LOCKS: bool = false;
    const GRAPH: bool = true;

    fn new(base: Base<S>, options: ProtocolOptions) -> Rococo<S> {
        Rococo::on(base, options)
    }

    fn base(&mut self) -> &mut Base<S> {
        &mut self.base
    }

    fn remembered(&self) -> usize {
        self.remembers()
    }

    fn make_entry(&mut self) {
        if self.base.make_entry(|_| None) {
            self.add_to_image();
        }
    }

    fn replay_own(&mut self, record: &[u8]) -> Result<(), Malformed> {
        self.replay_record(record)
    }

    fn forget_read(&mut self) {
        self.base.forget_read();
        self.forget_replayed();
    }

    fn recovered(&mut self) {
        self.restore();
    }

    fn start_tasks<E: Env<Self>>(env: &E) {
        if env.local(|node| node.base.votes.distributed()) {
            env.spawn(coordinator::look_after(env.clone()));
        }
    }

    fn handle_own(&mut self, from: ShardId, own: &mut Request, ticket: Ticket) -> Handled<Reply<S>> {
        Handled::Reply(match own {
            Request::Start { txn, least, cargo, stage, pieces } => {
                // Nothing is refused: of a wish a part may be fulfilled.
                let least = self.base.believed(from, *least);
                self.start_shipped(*txn, least, cargo.take(), *stage, pieces)
            }
            Request::Commit { txn, known } => return self.commit(*txn, known, ticket),
            Request::Ask(txn) => {
                self.asked(from, *txn);
                return Handled::Done;
            }
            Request::Answer(told) => {
                self.answered(from, std::mem::take(told));
                return Handled::Done;
            }
            Request::End(txn) => {
                self.ended(*txn);
                return Handled::Done;
            }
            Request::Settled { first, next, open } => {
                self.settled(from, *first..*next, open);
                return Handled::Done;
            }
            Request::Remind => {
                self.out.push((from, self.settled_so_far()));
                return Handled::Done;
            }
            Request::ReadDecided { txn, reads } => return self.read_decided(*txn, reads, ticket),
        })
    }

    /// Slots do not move: a server remembers the order in which transactions met on its items.
    fn handle_common(
        &mut self,
        from: ShardId,
        request: &mut Common<S>,
        ticket: Ticket,
    ) -> Handled<CommonReply<S>> {
        match request {
            Common::Move { .. } => Handled::Reply(CommonReply::MoveOver(MoveOutcome::Locked)),
            common => self.base.handle(from, common, ticket),
        }
    }

    fn tick(&mut self, clock: Timestamp) {
        self.base.votes.pass(clock);
        self.base.pass(clock);
    }

    fn reconnected(&mut self, peer: ShardId, up: bool) {
        Rococo::reconnected(self, peer, up);
    }

    fn outgoing_own(&mut self, tell: &mut dyn FnMut(ShardId, Request)) {
        self.measure();
        self.out.drain(..).for_each(|(to, own)| tell(to, own));
        let told: Vec<ShardId> = (self.base.votes.outgoing())
            .map(|(to, request)| match request {
                ballot::Request::Settled { .. } => to,
                _ => unreachable!("nobody votes"),
            })
            .collect();
        if !told.is_empty() {
            self.log_own_settled();
        }
        told.into_iter().for_each(|to| tell(to, self.settled_so_far()));
    }

    fn about(request: &Request) -> About {
        match request {
            Request::Start { txn, .. } => About::new("START", Some(*txn)),
            Request::Commit { txn, .. } => About::new("COMMIT", Some(*txn)),
            Request::Ask(txn) => About::new("ASK", Some(*txn)),
            Request::Answer(_) => About::new("ANSWER", None),
            Request::End(txn) => About::new("END", Some(*txn)),
            Request::Settled { .. } => About::new("SETTLED", None),
            Request::Remind => About::new("REMIND", None),
            Request::ReadDecided { txn, reads } => About::new("READ", Some(*txn)).reads(reads),
        }
    }

    fn answer(reply: &Reply<S>) -> &'static str {
        match reply {
            Reply::Started(_) => "started",
            Reply::Decided(_) => "decided",
            Reply::Refused => "refused",
            Reply::Over => "over",
            Reply::Read(_) => "read",
            Reply::Elsewhere => "elsewhere",
        }
    }

    fn at_once(
        &mut self,
        attempt: Attempt,
        procedure: &mut dyn Executable<S>,
        work: &mut Footprint<S>,
    ) -> Result<(), Stop> {
        match procedure.read_only() {
            true => Err(Stop::Elsewhere),
            false => self.in_one_step(attempt, procedure, work),
        }
    }

    async fn run<E: Env<Self>>(
        env: &E,
        attempt: Attempt,
        procedure: &mut dyn Executable<S>,
        work: &mut Footprint<S>,
    ) -> Result<(), Abort> {
        match procedure.read_only() {
            true => rounds::read(env, procedure, work).await,
            false => coordinator::run(env, attempt, procedure, work).await,
        }
    }
}
