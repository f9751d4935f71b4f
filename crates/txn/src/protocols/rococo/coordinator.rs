//! The coordinator: the start phase, stage by stage, and the commit phase.

use std::collections::BTreeMap;

use plimsoll_runtime::{Env, Unknown};
use plimsoll_store::written_bytes;
use plimsoll_types::wire::Wire;
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use super::graph::{Pred, StartResult};
use super::participant::{NotStarted, Orphan};
use super::{Decided, Reply, Request, Rococo, Started};
use crate::attempt::{Attempt, Recorded, Stop};
use crate::executable::Executable;
use crate::local::Local;
use crate::procedure::Piece;
use crate::protocol::{ask, tell};
use crate::shipped::{Cargo, Items, Shipped};
use crate::timestamp::Scheme;
use crate::trace::What;
use crate::work::Footprint;

/// The first pause before an unanswered request is sent again, in nanoseconds; it doubles each
/// time.
pub(super) const RETRY_NS: u64 = 5_000_000;
/// The longest such pause, in nanoseconds.
pub(super) const RETRY_MAX_NS: u64 = 500_000_000;

const NOT_SHIPPED: &str =
    "a procedure that rococo runs is one-shot: others are refused when they are registered";

/// Runs a read-write procedure on its servers. It commits, or aborts because one of its own pieces
/// refuses.
pub(super) async fn run<S: Scheme, E: Env<Rococo<S>>>(
    env: &E,
    attempt: Attempt,
    procedure: &mut dyn Executable<S>,
    work: &mut Footprint<S>,
) -> Result<(), Abort> {
    // Once it has started on a server it can no longer be refused there.
    env.local(|node| {
        let admitted = node.base.admit(written_bytes(0));
        admitted.map_err(|full| node.base.refused(full))
    })?;
    let mut transaction = env.local(|node| node.begin(attempt, work));
    work.committed.id = transaction.txn;
    let shipped = procedure.shipped().expect(NOT_SHIPPED);
    match transaction.go(env, shipped).await {
        Ok(decided) => transaction.commit(env, shipped, decided, work),
        Err(StopReason::Over) => {
            env.local(|node| node.base.settled(transaction.txn));
            Err(Abort::Unknown)
        }
        Err(StopReason::Lost) => Err(Abort::Unknown),
    }
}

/// Continues transactions of other processes' coordinators that have become silent, for as long as
/// the shard lives.
pub(super) async fn look_after<S: Scheme, E: Env<Rococo<S>>>(env: E) {
    loop {
        let pause_ns = env.local(|node| match node.base.serves_transactions() {
            true => node.base.votes.patience_ns(),
            // As soon as its log has been read the server looks after what that has told of.
            false => RETRY_NS,
        });
        env.sleep(pause_ns).await;
        for orphan in env.local(Rococo::orphans) {
            env.spawn(take_over(env.clone(), orphan));
        }
    }
}

/// Does what the coordinator would have done, and may still be doing. Servers repeat their first
/// answers, so both get the same result. Only the coordinator ends the transaction, or a server
/// that knows that the coordinator never will.
async fn take_over<S: Scheme, E: Env<Rococo<S>>>(env: E, mut orphan: Orphan) {
    let txn = orphan.txn;
    let mut transaction = Running::new(txn, orphan.least);
    let left = transaction.go(&env, &mut *orphan.procedure).await.err();
    let ends = left.is_none() && env.local(|node| node.base.votes.fenced(txn));
    if ends {
        transaction.end(&env);
    }
    env.local(|node| {
        if let Some(StopReason::Over) = left {
            // All servers have decided it, including this one.
            node.ended(txn);
        }
        node.driven(txn);
    });
}

/// Why this driver stopped working on a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) enum StopReason {
    /// The transaction is decided everywhere.
    Over,
    /// A server has lost its memory, or has said something impossible.
    Lost,
}

/// A transaction that this shard drives.
struct Running {
    txn: TxnId,
    least: Timestamp,
    /// The result of the start phase so far: tentative stamp, predecessors with the servers where
    /// they met, whether a piece has refused.
    tentative: Timestamp,
    preds: BTreeMap<(TxnId, ShardId), bool>,
    noop: bool,
    /// Servers where pieces have started.
    servers: Vec<ShardId>,
}

impl<S: Scheme> Rococo<S> {
    fn begin(&mut self, attempt: Attempt, work: &mut Footprint<S>) -> Running {
        self.base.start(work, attempt);
        self.base.counters.coordinated += 1;
        let txn = self.base.begin();
        Running::new(txn, self.base.scheme.stamp(&work.observed))
    }

    /// Runs the whole transaction in one step, if its data is all on this shard and no undecided
    /// transaction has started on it: then all transactions before it are decided, and it finds
    /// their marks.
    pub(super) fn in_one_step(
        &mut self,
        attempt: Attempt,
        procedure: &mut dyn Executable<S>,
        work: &mut Footprint<S>,
    ) -> Result<(), Stop> {
        self.base.start(work, attempt);
        for stage in 0.. {
            let pieces = procedure.stage(stage);
            if pieces == 0 {
                break;
            }
            for number in 0..pieces {
                let piece = Piece { stage, number };
                if self.base.owner(procedure.home(piece)) != self.base.shard {
                    return Err(Stop::Elsewhere);
                }
                if self.conflicts.len() > 0 {
                    let mut items = Items::default();
                    procedure.shipped().expect(NOT_SHIPPED).items(piece, &mut items);
                    if items.0.iter().any(|item| self.conflicts.any(item)) {
                        return Err(Stop::Conflict);
                    }
                }
                let mut local = Local { base: &mut self.base, work, txn: None, track: false, stop: None };
                if let Err(abort) = procedure.execute_here(piece, &mut local) {
                    return Err(local.stop.unwrap_or(Stop::Abort(abort)));
                }
            }
        }
        let id = self.base.next_id();
        let stamp = self.base.commit_in_one_step(id, work);
        work.commit(id, Some(stamp), 1);
        Ok(())
    }
}

impl Running {
    fn new(txn: TxnId, least: Timestamp) -> Running {
        // No server answers with less than `least`, unless it is too far ahead of the server's clock.
        let tentative = Timestamp::ZERO;
        Running { txn, least, tentative, preds: BTreeMap::new(), noop: false, servers: Vec::new() }
    }

    /// Runs both phases. Returns the servers' answers to COMMIT.
    async fn go<S: Scheme, E: Env<Rococo<S>>>(
        &mut self,
        env: &E,
        procedure: &mut dyn Shipped,
    ) -> Result<Vec<Decided>, StopReason> {
        self.start(env, procedure).await?;
        let pred = |(&(txn, via), &immediate): (&(TxnId, ShardId), &bool)| Pred { txn, via, immediate };
        let preds = self.preds.iter().map(pred).collect();
        let known = StartResult { tentative: self.tentative, preds, noop: self.noop };
        let me = env.shard();
        let others = self.servers.iter().filter(|server| **server != me).count() as u64;
        env.local(|node| node.base.counters.graph_sent_bytes += others * known.preds.bytes());
        let commit = || Request::Commit { txn: self.txn, known: known.clone() };
        let calls: Vec<_> =
            self.servers.iter().map(|&server| (server, ask::<Rococo<S>, E>(env, server, commit()))).collect();
        let mut all: Vec<Decided> = Vec::with_capacity(calls.len());
        for (server, call) in calls {
            let Reply::Decided(decided) = insist(env, server, call, commit).await? else {
                return Err(StopReason::Lost);
            };
            if all.first().is_some_and(|first| first.stamp != decided.stamp) {
                // Every server must give a transaction the same stamp.
                env.local(|node| node.offended());
                return Err(StopReason::Lost);
            }
            all.push(decided);
        }
        Ok(all)
    }

    /// Stage by stage: START to all servers at once.
    async fn start<S: Scheme, E: Env<Rococo<S>>>(
        &mut self,
        env: &E,
        procedure: &mut dyn Shipped,
    ) -> Result<(), StopReason> {
        let (me, unpack) = (env.shard(), env.local(|node| node.unpack));
        let mut stage = 0;
        while procedure.stage(stage) > 0 && !self.noop {
            let batches = env.local(|node| self.batches(node, procedure, stage));
            let calls: Vec<_> = (batches.iter().filter(|(shard, _)| *shard != me))
                .map(|(shard, pieces)| {
                    let request = self.request(procedure, stage, pieces);
                    (*shard, pieces, ask::<Rococo<S>, E>(env, *shard, request))
                })
                .collect();
            let mut next = stage + 1;
            if let Some((_, pieces)) = batches.iter().find(|(shard, _)| *shard == me) {
                let started = env.local(|node| {
                    let started = node.start(self.txn, self.least, procedure, stage, pieces);
                    started.map(|(next, _)| (next, node.known(self.txn, stage)))
                });
                let (after, known) = started.map_err(|why| match why {
                    NotStarted::Over => StopReason::Over,
                    NotStarted::TooLate => StopReason::Lost,
                })?;
                next = after;
                self.learn(me, known).expect("this server knows itself and others");
            }
            for (shard, pieces, call) in calls {
                let again = || self.request(procedure, stage, pieces);
                let reply = insist(env, shard, call, again).await?;
                let Reply::Started(Started { executed, next: after, known }) = reply else {
                    return Err(StopReason::Lost);
                };
                self.learn(shard, known).inspect_err(|_| env.local(|node| node.offended()))?;
                if let Some(executed) = executed.and_then(|cargo| cargo.open(unpack).ok()) {
                    absorb(procedure, &*executed, stage, pieces, after);
                }
                next = next.max(after);
            }
            stage = next;
        }
        Ok(())
    }

    fn request(&self, procedure: &dyn Shipped, stage: usize, pieces: &[usize]) -> Request {
        let cargo = Some(Cargo::of(procedure));
        Request::Start { txn: self.txn, least: self.least, cargo, stage, pieces: pieces.to_vec() }
    }

    /// The pieces of a stage by server. These servers take part from now on.
    fn batches<S: Scheme>(
        &mut self,
        node: &mut Rococo<S>,
        procedure: &dyn Shipped,
        stage: usize,
    ) -> Vec<(ShardId, Vec<usize>)> {
        let mut batches: Vec<(ShardId, Vec<usize>)> = Vec::new();
        for number in 0..procedure.stage(stage) {
            let shard = node.base.owner(procedure.home(Piece { stage, number }));
            match batches.iter_mut().find(|(other, _)| *other == shard) {
                Some((_, pieces)) => pieces.push(number),
                None => batches.push((shard, vec![number])),
            }
        }
        for (shard, _) in &batches {
            if !self.servers.contains(shard) {
                self.servers.push(*shard);
                if self.txn.coordinator == node.base.shard {
                    node.base.votes.owe(self.txn.number, *shard);
                }
            }
        }
        batches
    }

    /// Adds a server's answer to START; each predecessor in it must have been met on that server.
    fn learn(&mut self, server: ShardId, known: StartResult) -> Result<(), StopReason> {
        self.tentative.raise(known.tentative);
        self.noop |= known.noop;
        for Pred { txn, via, immediate } in known.preds {
            if txn == self.txn || via != server {
                return Err(StopReason::Lost);
            }
            *self.preds.entry((txn, via)).or_default() |= immediate;
        }
        Ok(())
    }

    /// All servers have decided the transaction: ends it, and takes over their outputs.
    fn commit<S: Scheme, E: Env<Rococo<S>>>(
        &self,
        env: &E,
        procedure: &mut dyn Shipped,
        decided: Vec<Decided>,
        work: &mut Footprint<S>,
    ) -> Result<(), Abort> {
        self.end(env);
        let unpack = env.local(|node| {
            node.base.settled(self.txn);
            node.unpack
        });
        if self.noop {
            env.local(|node| node.base.step(self.txn, |_| What::Aborts(Abort::User)));
            return Err(Abort::User);
        }
        let stamp = decided.first().map(|decided| decided.stamp);
        let mut written = 0u64;
        let mut recorded = work.recorded.take();
        for Decided { writes, executed, seen, .. } in decided {
            written = writes.saturating_add(written);
            for (cargo, pieces) in executed {
                if let Ok(executed) = cargo.open(unpack) {
                    pieces.into_iter().for_each(|piece| procedure.absorb(piece, &*executed));
                }
            }
            if let (Some(recorded), Some(seen)) = (&mut recorded, seen) {
                let Recorded { reads, scans } = &mut **recorded;
                reads.extend(seen.reads);
                scans.extend(seen.scans);
            }
        }
        work.recorded = recorded;
        work.commit(self.txn, stamp, self.servers.len());
        work.committed.writes = written as usize;
        Ok(())
    }

    fn end<S: Scheme, E: Env<Rococo<S>>>(&self, env: &E) {
        self.servers.iter().for_each(|&server| tell::<Rococo<S>, E>(env, server, Request::End(self.txn)));
    }
}

/// Waits for an answer, and repeats the request until there is one.
pub(super) async fn insist<S: Scheme, E: Env<Rococo<S>>>(
    env: &E,
    server: ShardId,
    call: impl Future<Output = Result<Reply<S>, Unknown>>,
    again: impl Fn() -> Request,
) -> Result<Reply<S>, StopReason> {
    let lineage = || env.local(|node| node.base.votes.lineage(server));
    let met = lineage();
    let mut answer = call.await;
    let mut pause_ns = RETRY_NS;
    loop {
        match answer {
            Ok(Reply::Over) => return Err(StopReason::Over),
            Ok(reply) => return Ok(reply),
            Err(Unknown) => env.sleep(pause_ns).await,
        }
        // The server may have begun another life meanwhile, without what it knew.
        if met > 0 && lineage() != met {
            return Err(StopReason::Lost);
        }
        pause_ns = RETRY_MAX_NS.min(2 * pause_ns);
        answer = ask::<Rococo<S>, E>(env, server, again()).await;
    }
}

/// Takes over the outputs of the pieces of a stage, and of those of later stages, up to `next`,
/// that were executed with them.
pub(super) fn absorb(
    procedure: &mut dyn Shipped,
    executed: &dyn Shipped,
    stage: usize,
    pieces: &[usize],
    next: usize,
) {
    for &number in pieces {
        procedure.absorb(Piece { stage, number }, executed);
    }
    for stage in (stage + 1..next).take_while(|&stage| executed.stage(stage) > 0) {
        for number in 0..executed.stage(stage) {
            procedure.absorb(Piece { stage, number }, executed);
        }
    }
}
