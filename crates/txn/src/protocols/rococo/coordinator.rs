//! The coordinator: the start phase, stage by stage, and the commit phase.

use plimsoll_runtime::Env;
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use super::graph::Known;
use super::{Decided, Reply, Request, Rococo, Started};
use crate::local::Local;
use crate::procedure::{Piece, Procedure};
use crate::protocol::Stop;
use crate::shipped::{Cargo, Items, Shipped};
use crate::steps::What;
use crate::timestamp::Scheme;
use crate::work::{Recorded, Work};

const NOT_SHIPPED: &str =
    "a procedure that rococo runs is one-shot: others are refused when they are registered";

/// Runs a read-write procedure. It commits, or its own pieces say no.
pub(super) async fn run<S: Scheme, E: Env<Rococo<S>>, T: Procedure>(
    env: &E,
    procedure: &mut T,
    work: &mut Work<S>,
) -> Result<(), Abort> {
    match env.local(|node| node.at_once(procedure, work)) {
        Ok(()) => return Ok(()),
        Err(Stop::Abort(abort)) => {
            work.committed.id = env.local(|node| node.base.gave_up(abort));
            return Err(abort);
        }
        Err(Stop::Elsewhere | Stop::Conflict) => {}
    }
    let mut transaction = env.local(|node| node.begin(work));
    work.committed.id = transaction.txn;
    let shipped = procedure.shipped().expect(NOT_SHIPPED);
    transaction.start(env, shipped).await?;
    transaction.commit(env, shipped, work).await
}

/// A transaction that is being coordinated.
struct Running {
    txn: TxnId,
    least: Timestamp,
    /// What the start phase has come to so far.
    known: Known,
    /// Where pieces have started.
    servers: Vec<ShardId>,
}

impl<S: Scheme> Rococo<S> {
    fn begin(&mut self, work: &mut Work<S>) -> Running {
        work.reset(self.base.installs.is_some());
        self.base.counters.coordinated += 1;
        let txn = self.base.next_id();
        self.base.step(txn, |_| What::Begins);
        let least = self.base.scheme.stamp(&S::Observed::default());
        let known = Known { tentative: least, preds: Vec::new(), noop: false };
        Running { txn, least, known, servers: Vec::new() }
    }

    /// The whole transaction in one step, if its data is all here and nobody undecided has started on it: then nobody is
    /// before it but those whose marks it meets.
    fn at_once<T: Procedure>(&mut self, procedure: &mut T, work: &mut Work<S>) -> Result<(), Stop> {
        work.reset(self.base.installs.is_some());
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
                if let Err(abort) = procedure.execute(piece, &mut local) {
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
    /// Stage by stage: START to all servers at once.
    async fn start<S: Scheme, E: Env<Rococo<S>>>(
        &mut self,
        env: &E,
        procedure: &mut dyn Shipped,
    ) -> Result<(), Abort> {
        let (me, unpack) = (env.shard(), env.local(|node| node.unpack));
        let mut stage = 0;
        while procedure.stage(stage) > 0 && !self.known.noop {
            let batches = env.local(|node| batches(node, procedure, stage));
            let calls: Vec<_> = (batches.iter().filter(|(shard, _)| *shard != me))
                .map(|(shard, pieces)| (pieces, env.call(*shard, self.request(procedure, stage, pieces))))
                .collect();
            let mut next = stage + 1;
            for (shard, pieces) in &batches {
                self.take_part(*shard);
                if *shard == me {
                    let (Running { txn, least, .. }, pieces) = (&*self, &pieces[..]);
                    let (started, known) = env.local(|node| {
                        let (started, _) = node.start(*txn, *least, procedure, stage, pieces);
                        (started, node.known(*txn))
                    });
                    next = started;
                    self.learn(known);
                }
            }
            for (pieces, call) in calls {
                let Ok(Reply::Started(Started { executed, next: after, known })) = call.await else {
                    return Err(Abort::Unknown);
                };
                self.learn(known);
                if let Some(executed) = executed.and_then(|cargo| cargo.open(unpack).ok()) {
                    for number in pieces {
                        procedure.absorb(Piece { stage, number: *number }, &*executed);
                    }
                    for stage in stage + 1..after {
                        let pieces = (0..executed.stage(stage)).map(|number| Piece { stage, number });
                        pieces.for_each(|piece| procedure.absorb(piece, &*executed));
                    }
                }
                next = next.max(after);
            }
            stage = next;
        }
        Ok(())
    }

    fn request<S: Scheme>(&self, procedure: &dyn Shipped, stage: usize, pieces: &[usize]) -> Request<S> {
        let cargo = Some(Cargo::of(procedure));
        Request::Start { txn: self.txn, least: self.least, cargo, stage, pieces: pieces.to_vec() }
    }

    fn take_part(&mut self, shard: ShardId) {
        if !self.servers.contains(&shard) {
            self.servers.push(shard);
        }
    }

    /// Unites what the servers say.
    fn learn(&mut self, known: Known) {
        self.known.tentative.raise(known.tentative);
        self.known.noop |= known.noop;
        for pred in known.preds {
            match self.known.preds.iter_mut().find(|mine| mine.txn == pred.txn && mine.via == pred.via) {
                Some(mine) => mine.immediate |= pred.immediate,
                None => self.known.preds.push(pred),
            }
        }
    }

    /// COMMIT to all servers, and END once all have answered.
    async fn commit<S: Scheme, E: Env<Rococo<S>>>(
        mut self,
        env: &E,
        procedure: &mut dyn Shipped,
        work: &mut Work<S>,
    ) -> Result<(), Abort> {
        self.known.preds.sort_unstable();
        let unpack = env.local(|node| node.unpack);
        let commit = || Request::Commit { txn: self.txn, known: self.known.clone() };
        let calls: Vec<_> = self.servers.iter().map(|&server| env.call(server, commit())).collect();
        let (mut stamp, mut written) = (None, 0);
        let mut recorded = work.recorded.take();
        for call in calls {
            let Ok(Reply::Decided(decided)) = call.await else { return Err(Abort::Unknown) };
            let Decided { stamp: here, writes, executed, seen } = decided;
            assert!(
                stamp.is_none_or(|stamp| stamp == here),
                "every server has the same stamp for a transaction"
            );
            stamp = Some(here);
            written += writes as usize;
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
        for &server in &self.servers {
            env.send(server, Request::End(self.txn));
        }
        if self.known.noop {
            env.local(|node| node.base.step(self.txn, |_| What::Aborts(Abort::User)));
            return Err(Abort::User);
        }
        work.recorded = recorded;
        work.commit(self.txn, stamp, self.servers.len());
        work.committed.writes = written;
        Ok(())
    }
}

/// The pieces of a stage by server.
fn batches<S: Scheme>(node: &Rococo<S>, procedure: &dyn Shipped, stage: usize) -> Vec<(ShardId, Vec<usize>)> {
    let mut batches: Vec<(ShardId, Vec<usize>)> = Vec::new();
    for number in 0..procedure.stage(stage) {
        let shard = node.base.owner(procedure.home(Piece { stage, number }));
        match batches.iter_mut().find(|(other, _)| *other == shard) {
            Some((_, pieces)) => pieces.push(number),
            None => batches.push((shard, vec![number])),
        }
    }
    batches
}
