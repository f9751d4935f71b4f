//! A server: "on receiving START", "on receiving COMMIT" (Figures 4 and 5 of the paper), and the
//! questions between servers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use plimsoll_runtime::Handled;
use plimsoll_store::{At, Visited};
use plimsoll_types::Ticket;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::Wire;
use plimsoll_types::{ShardId, Timestamp, TxnId};

use super::coordinator::absorb;
use super::execution::{Effects, Execution, Pending, RecordedReads};
use super::graph::{Component, Graph, Pred, StartResult, TxnReport};
use super::items::Conflicts;
use super::logged::LoggedStage;
use super::over::Over;
use super::{Decided, Reply, Request, Started};
use crate::attempt::ProtocolOptions;
use crate::base::Base;
use crate::procedure::{Piece, Reads};
use crate::shipped::{Cargo, Item, Items, Shipped, Unpack};
use crate::timestamp::Scheme;
use crate::trace::What;

/// Growth of the graph after which it is swept, in vertices beyond those of transactions that have
/// started here.
const SWEPT_AT: usize = 256;

/// How many times as long as the first server of an orphaned transaction the other servers wait
/// before they continue it.
const PATIENT: u64 = 3;

/// ASKs for one transaction between two sweeps, at most. Three would be enough; the limit protects
/// this server from endless work for servers that contradict themselves or each other.
pub(super) const ASKS_MAX: u32 = 8;

/// All attempt numbers are below this: between processes they begin with the clock.
const NUMBERS_END: u64 = 1 << 63;

/// ROCOCO on one shard.
pub struct Rococo<S: Scheme> {
    pub(super) base: Base<S>,
    /// The types of pieces that execute when they start, one bit each.
    immediate: u64,
    pub(super) unpack: Option<Unpack>,
    pub(super) conflicts: Conflicts,
    pub(super) pending: Pending,
    pub(super) graph: Graph,
    /// Transactions that have started here, until they and all transactions that have met them here
    /// have ended.
    pub(super) running: BTreeMap<TxnId, Running<S>>,
    /// By transaction: those that cannot continue before something happens to it.
    waiting: BTreeMap<TxnId, Vec<TxnId>>,
    /// Transactions that this server has asked another about, and which server. The answer has not
    /// come yet.
    asked: BTreeMap<TxnId, ShardId>,
    /// By transaction: ASKs since the last sweep.
    asks: BTreeMap<TxnId, u32>,
    /// Transactions that wait for one with too many ASKs.
    stalled: BTreeSet<TxnId>,
    pub(super) over: Over,
    /// How many stages have started here, if the server logs.
    pub(super) stages: u64,
    /// To be sent at the end of the pass.
    pub(super) out: Vec<(ShardId, Request)>,
}

/// A transaction that has started here.
pub(super) struct Running<S: Scheme> {
    /// The items that it has started on.
    pub(super) items: Vec<Item>,
    /// Its predecessors here, and whether it has executed after each already.
    pub(super) preds: BTreeMap<TxnId, bool>,
    /// What it must be ordered after.
    observed: S::Observed,
    pub(super) least: Timestamp,
    /// The result of its start phase here: its stamp will not be below this.
    pub(super) tentative: Timestamp,
    /// Between processes: kept for a driver that sends START again, or for this server to continue
    /// it.
    pub(super) kept: Option<Kept>,
    pub(super) doings: Effects,
    pub(super) deferred: Vec<(Box<dyn Shipped>, Vec<Piece>)>,
    /// The stage in which one of its pieces has refused.
    pub(super) refused: Option<usize>,
    /// The COMMITs that wait for it.
    commits: Vec<Ticket>,
    /// Once it is decided here: the answer to COMMIT.
    pub(super) decided: Option<Decided>,
    pub(super) stamp: Option<Timestamp>,
    ended: bool,
    /// How many transactions that have met it here have not ended.
    pub(super) successors: usize,
    /// What the log has of its stages, if the server logs.
    pub(super) logged: Vec<LoggedStage>,
    /// Servers to tell once its start phase is over.
    askers: Vec<ShardId>,
    /// Time of the sweep that first found its coordinator silent; `None` if it was heard since the
    /// last sweep. Not the time of the last message: messages are handled before the clock is
    /// sampled, so the last sample may be old.
    silent_since: Option<Timestamp>,
    /// Whether this server continues it now.
    driven: bool,
}

/// The procedure from START and the answers, so that any server can send START again.
pub(super) struct Kept {
    procedure: Box<dyn Shipped>,
    pub(super) stages: BTreeMap<usize, Stage>,
}

/// The answer to START for a stage.
pub(super) struct Stage {
    pub(super) pieces: Vec<usize>,
    /// The stage to continue with.
    pub(super) next: usize,
    /// A copy with the outputs of the pieces that were executed.
    pub(super) executed: Option<Box<dyn Shipped>>,
}

impl<S: Scheme> Running<S> {
    /// One that starts now. `kept` is its procedure, if it has to be kept.
    pub(super) fn new(least: Timestamp, kept: Option<Box<dyn Shipped>>) -> Running<S> {
        Running {
            items: Vec::new(),
            preds: BTreeMap::new(),
            observed: S::Observed::default(),
            least,
            tentative: least,
            kept: kept.map(|procedure| Kept { procedure, stages: BTreeMap::new() }),
            doings: Effects::default(),
            deferred: Vec::new(),
            refused: None,
            commits: Vec::new(),
            decided: None,
            stamp: None,
            ended: false,
            successors: 0,
            logged: Vec::new(),
            askers: Vec::new(),
            silent_since: None,
            driven: false,
        }
    }
}

/// Why pieces do not start.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotStarted {
    /// The transaction is over.
    Over,
    /// Its start phase is over, and these pieces were no part of it; or other pieces of the stage
    /// have started here.
    TooLate,
}

/// A transaction whose coordinator is silent.
pub(super) struct Orphan {
    pub(super) txn: TxnId,
    pub(super) least: Timestamp,
    pub(super) procedure: Box<dyn Shipped>,
}

impl<S: Scheme> Rococo<S> {
    pub(super) fn on(mut base: Base<S>, options: ProtocolOptions) -> Rococo<S> {
        base.queues = true;
        Rococo {
            base,
            immediate: options.immediate_pieces,
            unpack: options.unpack,
            conflicts: Conflicts::default(),
            pending: Pending::default(),
            graph: Graph::default(),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            asked: BTreeMap::new(),
            asks: BTreeMap::new(),
            stalled: BTreeSet::new(),
            over: Over::default(),
            stages: 0,
            out: Vec::new(),
        }
    }

    pub(super) fn remembers(&self) -> usize {
        self.running.len()
            + self.conflicts.len()
            + self.pending.len()
            + self.graph.len()
            + self.waiting.len()
            + self.asked.len()
    }

    /// Whether a transaction is decided on all its servers.
    fn is_over(&self, txn: TxnId) -> bool {
        let settled = txn.coordinator == self.base.shard && self.base.is_settled(txn);
        self.base.votes.distributed() && (settled || self.over.contains(txn))
    }

    /// Counts an impossible statement of another process. Shards of the same process make none.
    pub(super) fn offended(&mut self) {
        assert!(self.base.votes.distributed(), "shards of one process do not contradict each other");
        self.base.counters.offences += 1;
    }

    /// Whether a transaction with this id can exist, as far as this server can tell.
    fn may_be(&self, txn: TxnId) -> bool {
        txn.coordinator.index() < self.base.layout.processes.len() && txn.number < NUMBERS_END
    }

    /// Whether this can be the result of a start phase: predecessors are other transactions, met at
    /// shards that exist, and those met here are the ones that START has found here.
    fn is_sound(&self, txn: TxnId, known: &StartResult) -> bool {
        let there = self.base.layout.processes.len();
        let may_be = |pred: &Pred| pred.txn != txn && self.may_be(pred.txn) && pred.via.index() < there;
        if !known.preds.iter().all(may_be) {
            return false;
        }
        let Some(running) = self.running.get(&txn).filter(|running| running.stamp.is_none()) else {
            return true;
        };
        let here = known.preds.iter().filter(|pred| pred.via == self.base.shard);
        let here: BTreeMap<TxnId, bool> = here.map(|pred| (pred.txn, pred.immediate)).collect();
        here == running.preds && running.tentative <= known.tentative
    }

    fn is_immediate(&self, piece_type: usize) -> bool {
        piece_type < u64::BITS as usize && self.immediate >> piece_type & 1 == 1
    }

    /// On receiving START.
    pub(super) fn start_shipped(
        &mut self,
        txn: TxnId,
        least: Timestamp,
        cargo: Option<Cargo>,
        stage: usize,
        pieces: &[usize],
    ) -> Reply<S> {
        let Some(Ok(mut procedure)) = cargo.map(|cargo| cargo.open(self.unpack)) else {
            return Reply::Refused;
        };
        let there = |number: &usize| *number < procedure.stage(stage);
        let here = |number: &usize| self.is_here(&*procedure, Piece { stage, number: *number });
        let sound = self.may_be(txn) && !procedure.read_only() && procedure.stage(0) > 0;
        if !sound
            || pieces.is_empty()
            || !pieces.is_sorted_by(|a, b| a < b)
            || !pieces.iter().all(there)
            || !pieces.iter().all(here)
        {
            self.offended();
            return Reply::Refused;
        }
        let (next, executed) = match self.start(txn, least, &mut *procedure, stage, pieces) {
            Ok(started) => started,
            Err(NotStarted::Over) => return Reply::Over,
            Err(NotStarted::TooLate) => return Reply::Refused,
        };
        let known = self.known(txn, stage);
        self.base.counters.graph_sent_bytes += known.preds.bytes();
        Reply::Started(Started { executed: executed.then_some(Cargo::Whole(procedure)), next, known })
    }

    fn is_here(&self, procedure: &dyn Shipped, piece: Piece) -> bool {
        self.base.owner(procedure.home(piece)) == self.base.shard
    }

    /// Starts pieces, and executes the immediate ones on this copy. Returns the stage to continue
    /// with, and whether any piece was executed. A repeated START gets the same answer.
    pub(super) fn start(
        &mut self,
        txn: TxnId,
        least: Timestamp,
        procedure: &mut dyn Shipped,
        stage: usize,
        pieces: &[usize],
    ) -> Result<(usize, bool), NotStarted> {
        if self.is_over(txn) && !planted(Mutant::StartsWhatIsOver) {
            return Err(NotStarted::Over);
        }
        if !self.running.contains_key(&txn) && self.graph.knows(txn) {
            return Err(NotStarted::TooLate);
        }
        let between = self.base.votes.distributed();
        let running = self.running.entry(txn);
        let running = running.or_insert_with(|| Running::new(least, between.then(|| procedure.copy())));
        running.silent_since = None;
        if let Some(started) = running.kept.as_ref().and_then(|kept| kept.stages.get(&stage))
            && !planted(Mutant::StartsTwice)
        {
            if started.pieces != pieces {
                self.offended();
                return Err(NotStarted::TooLate);
            }
            if let Some(executed) = &started.executed {
                absorb(procedure, &**executed, stage, pieces, started.next);
            }
            return Ok((started.next, started.executed.is_some()));
        }
        if running.stamp.is_some() || self.graph.knows(txn) {
            return Err(NotStarted::TooLate);
        }
        let arrived = self.base.logs().then(|| (procedure.copy(), running.items.len()));
        let (next, executed) = self.start_new(txn, procedure, stage, pieces);
        let running = self.running.get_mut(&txn).expect("it has started");
        // Pieces of later stages may have executed in the same START.
        running.refused = running.refused.map(|refused| refused.min(stage));
        running.tentative.raise(S::lower_bound(&running.observed));
        if let Some(kept) = &mut running.kept {
            let executed = executed.then(|| procedure.copy());
            kept.stages.insert(stage, Stage { pieces: pieces.to_vec(), next, executed });
        }
        if let Some((procedure, items)) = arrived {
            self.log_start(txn, stage, procedure, items);
        }
        Ok((next, executed))
    }

    fn start_new(
        &mut self,
        txn: TxnId,
        procedure: &mut dyn Shipped,
        stage: usize,
        pieces: &[usize],
    ) -> (usize, bool) {
        let pieces: Vec<Piece> = pieces.iter().map(|&number| Piece { stage, number }).collect();
        let (now, later): (Vec<Piece>, Vec<Piece>) =
            pieces.iter().partition(|&&piece| self.is_immediate(procedure.piece_type(piece)));
        for &piece in &later {
            let items = self.enter(txn, procedure, piece, false);
            self.announce(txn, &items);
        }
        if !later.is_empty() {
            let running = self.running.get_mut(&txn).expect("it has started");
            running.deferred.push((procedure.copy(), later));
        }
        let mut executed = false;
        for &piece in &now {
            executed = true;
            if !self.enter_and_execute(txn, procedure, piece) {
                return (stage + 1, true);
            }
        }
        // Later stages that consist of pieces of the same type as this one are part of it.
        let mut next = stage + 1;
        let Some(&first) = now.first() else { return (next, executed) };
        let piece_type = procedure.piece_type(first);
        let of_this_type = now.iter().filter(|&&piece| procedure.piece_type(piece) == piece_type).count();
        if of_this_type < procedure.stage(stage) {
            return (next, executed);
        }
        loop {
            let count = procedure.stage(next);
            let follows = |number| {
                let piece = Piece { stage: next, number };
                procedure.piece_type(piece) == piece_type && self.is_here(procedure, piece)
            };
            if count == 0 || !(0..count).all(follows) {
                return (next, executed);
            }
            for number in 0..count {
                if !self.enter_and_execute(txn, procedure, Piece { stage: next, number }) {
                    return (next + 1, true);
                }
            }
            next += 1;
        }
    }

    /// Adds an edge from the last transactions that have started on each item. Returns the items.
    fn enter(&mut self, txn: TxnId, procedure: &dyn Shipped, piece: Piece, immediate: bool) -> Vec<Item> {
        let mut items = Items::default();
        procedure.items(piece, &mut items);
        let mut preds = Vec::new();
        for item in &items.0 {
            self.conflicts.start(txn, item, |pred| preds.push(pred));
        }
        let running = self.running.get_mut(&txn).expect("it has started");
        running.items.extend(items.0.iter().cloned());
        let mut new = Vec::new();
        for pred in preds {
            let known = running.preds.entry(pred).or_insert_with(|| {
                new.push(pred);
                false
            });
            *known |= immediate;
        }
        for pred in new {
            self.running.get_mut(&pred).expect("who is undecided is remembered").successors += 1;
        }
        items.0
    }

    /// Returns false if the piece has refused: then nothing that the transaction did here remains.
    fn enter_and_execute(&mut self, txn: TxnId, procedure: &mut dyn Shipped, piece: Piece) -> bool {
        let items = self.enter(txn, procedure, piece, true);
        let running = self.running.get_mut(&txn).expect("it has started");
        let least = running.least;
        let Running { observed, doings, .. } = running;
        let mut execution = Execution::new(&mut self.base, &mut self.pending, txn, observed, doings, least);
        execution.declared = Some(&items);
        if procedure.execute(piece, &mut execution).is_ok() {
            return true;
        }
        running.refused = Some(piece.stage);
        std::mem::take(&mut running.doings).undo(&mut self.base, &mut self.pending, txn);
        false
    }

    /// For a deferred piece: a snapshot must see that the transaction will write, and its stamp
    /// must be above the present versions.
    fn announce(&mut self, txn: TxnId, items: &[Item]) {
        let running = self.running.get_mut(&txn).expect("it has started");
        let least = running.least;
        let Running { observed, doings, .. } = running;
        let mut execution = Execution::new(&mut self.base, &mut self.pending, txn, observed, doings, least);
        for item in items {
            execution.observe(item.column, &item.key);
            if item.write {
                execution.announce(item.column, &item.key);
            }
        }
    }

    /// The result of its start phase here, as the answer to START for a stage. A refusal in a later
    /// stage is told only when START for that stage comes: each driver of the transaction must get
    /// to that stage, and to all servers up to it.
    pub(super) fn known(&self, txn: TxnId, stage: usize) -> StartResult {
        let running = &self.running[&txn];
        let via = self.base.shard;
        let preds = running.preds.iter().map(|(&txn, &immediate)| Pred { txn, via, immediate });
        let noop = running.refused.is_some_and(|refused| refused <= stage);
        StartResult { tentative: running.tentative, preds: preds.collect(), noop }
    }

    /// On receiving COMMIT.
    pub(super) fn commit(
        &mut self,
        txn: TxnId,
        known: &mut StartResult,
        ticket: Ticket,
    ) -> Handled<Reply<S>> {
        let between = self.base.votes.distributed();
        if !self.running.contains_key(&txn) {
            let over = self.is_over(txn);
            return Handled::Reply(if over { Reply::Over } else { Reply::Refused });
        }
        let running = self.running.get_mut(&txn).expect("it has not ended");
        running.silent_since = None;
        if running.decided.is_none() && running.commits.is_empty() {
            if between && !self.is_sound(txn, known) {
                self.offended();
                return Handled::Reply(Reply::Refused);
            }
            let running = self.running.get_mut(&txn).expect("it has not ended");
            running.commits.push(ticket);
            let known = StartResult {
                tentative: known.tentative,
                preds: std::mem::take(&mut known.preds),
                noop: known.noop,
            };
            self.graph.learn(txn, known);
            let mut next = self.woken(txn);
            next.push(txn);
            self.tell_askers(txn);
            self.advance(next);
        }
        let running = self.running.get_mut(&txn).expect("it has not ended");
        let decided = match between {
            // Within one process COMMIT is sent once.
            false => running.decided.take(),
            true => running.decided.as_ref().map(Decided::copy),
        };
        if decided.is_none() && !running.commits.contains(&ticket) {
            running.commits.push(ticket);
        }
        decided.map_or(Handled::Wait, |decided| Handled::Reply(Reply::Decided(decided)))
    }

    fn woken(&mut self, txn: TxnId) -> Vec<TxnId> {
        self.waiting.remove(&txn).unwrap_or_default()
    }

    fn wait(&mut self, txn: TxnId, before: TxnId) {
        let waiting = self.waiting.entry(txn).or_default();
        if !waiting.contains(&before) {
            waiting.push(before);
        }
    }

    /// Continues these transactions, because something has happened to them or to a predecessor,
    /// and then those that waited for them.
    fn advance(&mut self, mut next: Vec<TxnId>) {
        while let Some(txn) = next.pop() {
            let undecided = self.running.get(&txn).is_some_and(|running| running.stamp.is_none());
            if !undecided || !self.graph.knows(txn) {
                continue;
            }
            let fixed = self.graph.fix(txn);
            if std::mem::take(&mut self.graph.contradicted) {
                self.offended();
            }
            match fixed {
                Err(unknown) => unknown.into_iter().for_each(|pred| self.find_out(txn, pred)),
                Ok(components) => {
                    for component in components {
                        self.execute(&component, &mut next);
                    }
                    if let Some(component) = self.graph.component(txn).cloned() {
                        self.execute(&component, &mut next);
                    }
                }
            }
        }
    }

    /// The start phase of `pred`, a direct or indirect predecessor of `txn`, is not known to be
    /// over: waits for it, and asks about it.
    fn find_out(&mut self, txn: TxnId, pred: Pred) {
        self.wait(pred.txn, txn);
        if self.running.contains_key(&pred.txn) || self.asked.contains_key(&pred.txn) {
            return;
        }
        if self.base.votes.distributed() {
            let asks = self.asks.entry(pred.txn).or_default();
            *asks += 1;
            if *asks > ASKS_MAX {
                self.stalled.insert(txn);
                return;
            }
        }
        self.asked.insert(pred.txn, pred.via);
        self.out.push((pred.via, Request::Ask(pred.txn)));
    }

    /// Executes the members of a component that have started here, if all their other predecessors
    /// here are decided.
    fn execute(&mut self, component: &Component, next: &mut Vec<TxnId>) {
        let mut here = Vec::new();
        for member in component.iter() {
            let Some(running) = self.running.get(&member.txn) else { continue };
            if running.stamp.is_some() {
                continue;
            }
            let undecided = |pred: &&TxnId| {
                let inside = component.iter().any(|member| member.txn == **pred);
                !inside && self.running.get(*pred).is_some_and(|pred| pred.stamp.is_none())
            };
            if let Some(&pred) = running.preds.keys().find(undecided) {
                self.wait(pred, member.txn);
                return;
            }
            let outside = running.preds.keys().filter(|pred| !component.iter().any(|m| m.txn == **pred));
            let last = outside.filter_map(|pred| self.running.get(pred)?.stamp).max();
            let early = member.stamp < running.tentative || last.is_some_and(|last| last >= member.stamp);
            if early && self.base.votes.distributed() {
                // Another process has given wrong information about the component.
                self.offended();
                return;
            }
            here.push(*member);
        }
        for member in here {
            self.decide(member.txn, member.stamp, member.noop);
            next.append(&mut self.woken(member.txn));
        }
    }

    /// Executes the deferred pieces and installs all writes.
    fn decide(&mut self, txn: TxnId, stamp: Timestamp, noop: bool) {
        let running = self.running.get_mut(&txn).expect("it has started");
        let (base, pending) = (&mut self.base, &mut self.pending);
        base.step(txn, |_| What::Stamps { stamp, least: running.least });
        let mut doings = std::mem::take(&mut running.doings);
        let (mut outputs, mut refused) = (Vec::new(), false);
        for (mut procedure, pieces) in std::mem::take(&mut running.deferred).into_iter().filter(|_| !noop) {
            for &piece in &pieces {
                let observed = &mut running.observed;
                let mut execution = Execution::new(base, pending, txn, observed, &mut doings, stamp);
                refused |= procedure.execute(piece, &mut execution).is_err();
            }
            outputs.push((Cargo::Whole(procedure), pieces));
        }
        let (mut seen, mut writes) = (RecordedReads::default(), 0);
        match noop {
            true => doings.undo(base, pending, txn),
            false => {
                (seen, writes) = doings.install(base, pending, txn, stamp);
                base.scheme.pinned(stamp);
            }
        }
        for item in std::mem::take(&mut running.items) {
            self.conflicts.decided(txn, &item);
        }
        running.stamp = Some(stamp);
        let seen = base.installs.is_some().then(|| Box::new(seen));
        running.decided = Some(Decided { stamp, writes, executed: outputs, seen });
        base.released.append(&mut running.commits);
        self.log_decided(txn);
        if refused {
            // A checked chopping has no deferred piece that aborts.
            self.offended();
        }
    }

    /// On receiving ASK.
    pub(super) fn asked(&mut self, from: ShardId, txn: TxnId) {
        let Some(running) = self.running.get_mut(&txn) else {
            // The graph's information about it may be out of date.
            return self.out.push((from, Request::Answer(vec![TxnReport::Gone(txn)])));
        };
        match self.graph.knows(txn) {
            true => self.out.push((from, Request::Answer(self.graph.tell(txn)))),
            false if running.askers.contains(&from) => {}
            false => running.askers.push(from),
        }
    }

    fn tell_askers(&mut self, txn: TxnId) {
        let running = self.running.get_mut(&txn).expect("it has started");
        for asker in std::mem::take(&mut running.askers) {
            let told = self.graph.tell(txn);
            self.out.push((asker, Request::Answer(told)));
        }
    }

    /// On receiving ANSWER.
    pub(super) fn answered(&mut self, from: ShardId, told: Vec<TxnReport>) {
        let about = |told: &TxnReport| match told {
            TxnReport::Known(txn, _) | TxnReport::Gone(txn) => self.asked.get(txn) == Some(&from),
            TxnReport::Fixed(members) => {
                members.iter().any(|member| self.asked.get(&member.txn) == Some(&from))
            }
        };
        if !told.iter().any(about) {
            // This server asked again over a new channel, and got two answers.
            return;
        }
        if !told.iter().all(|told| self.is_credible(told)) {
            return self.offended();
        }
        let mut next = Vec::new();
        for told in told {
            match told {
                TxnReport::Known(txn, known) => {
                    self.graph.learn(txn, known);
                    self.heard(txn, &mut next);
                }
                TxnReport::Fixed(members) => {
                    let component: Component = members.into();
                    self.graph.learn_fixed(&component);
                    component.iter().for_each(|member| self.heard(member.txn, &mut next));
                }
                // Ignored: a transaction that has started here cannot be forgotten where others
                // have met it.
                TxnReport::Gone(txn) if self.running.contains_key(&txn) => {}
                TxnReport::Gone(txn) => {
                    let running = &self.running;
                    self.graph.forget_successors(txn, |other| running.contains_key(other));
                    self.heard(txn, &mut next);
                }
            }
        }
        self.advance(next);
        // The answer may have come after all transactions that needed it.
        self.rest();
    }

    /// If no transaction is kept here, forgets what it has heard of others.
    fn rest(&mut self) {
        if self.running.is_empty() && !planted(Mutant::GraphKept) {
            self.graph = Graph::default();
            self.asked.clear();
            self.waiting.clear();
        }
    }

    /// Whether another server's answer agrees with itself, and with what this server knows.
    fn is_credible(&self, told: &TxnReport) -> bool {
        match told {
            TxnReport::Gone(_) => true,
            TxnReport::Known(txn, known) => self.may_be(*txn) && self.is_sound(*txn, known),
            TxnReport::Fixed(members) => {
                !members.is_empty()
                    && members.is_sorted_by(|a, b| a.stamp < b.stamp)
                    && members.iter().all(|member| self.may_be(member.txn))
                    && self.graph.agrees(members)
            }
        }
    }

    fn heard(&mut self, txn: TxnId, next: &mut Vec<TxnId>) {
        self.asked.remove(&txn);
        next.append(&mut self.woken(txn));
        if self.running.contains_key(&txn) {
            self.tell_askers(txn);
            next.push(txn);
        }
    }

    /// The channel to a peer was connected or reset. Questions over the former channel were lost:
    /// asks them again.
    pub(super) fn reconnected(&mut self, peer: ShardId, up: bool) {
        if up {
            let asked = self.asked.iter().filter(|(_, via)| **via == peer);
            self.out.extend(asked.map(|(txn, _)| (peer, Request::Ask(*txn))));
        } else {
            self.running.values_mut().for_each(|running| running.askers.retain(|asker| *asker != peer));
        }
    }

    /// Sweeps for silent coordinators of other processes. Returns transactions that this server
    /// must continue: all of a coordinator that has lost its memory, otherwise those whose start
    /// phase may never be over. Reminds coordinators of transactions that are decided and not
    /// ended.
    pub(super) fn orphans(&mut self) -> Vec<Orphan> {
        if !self.base.serves_transactions() {
            return Vec::new();
        }
        self.asks.clear();
        let stalled = std::mem::take(&mut self.stalled);
        self.advance(stalled.into_iter().collect());
        let votes = &self.base.votes;
        let clock = votes.clock();
        let mut orphans = Vec::new();
        let mut remind = BTreeSet::new();
        for (&txn, running) in &mut self.running {
            // What this server coordinates in its present life its own tasks continue.
            let may_be_silent = votes.elsewhere(txn.coordinator) || votes.fenced(txn);
            let Some(kept) = running.kept.as_ref().filter(|_| may_be_silent) else { continue };
            // One server is enough; but the first one may not have heard of the transaction.
            let first = self.base.owner(kept.procedure.home(Piece { stage: 0, number: 0 }));
            let patience_ns = match self.base.logs() && votes.fenced(txn) {
                // Its coordinator will not be heard of, and the server may have waited for its log.
                true => 0,
                false if first == self.base.shard => votes.patience_ns(),
                false => PATIENT * votes.patience_ns(),
            };
            let silent_since = *running.silent_since.get_or_insert(clock);
            if running.driven || running.ended || silent_since.0 + patience_ns > clock.0 {
                continue;
            }
            running.silent_since = Some(clock);
            if (votes.fenced(txn) || !self.graph.knows(txn)) && !planted(Mutant::OrphansLeft) {
                running.driven = true;
                orphans.push(Orphan { txn, least: running.least, procedure: kept.procedure.copy() });
            } else if running.stamp.is_some() {
                remind.insert(txn.coordinator);
            }
        }
        self.out.extend(remind.into_iter().map(|coordinator| (coordinator, Request::Remind)));
        orphans
    }

    /// This server has continued a transaction as far as it could.
    pub(super) fn driven(&mut self, txn: TxnId) {
        if let Some(running) = self.running.get_mut(&txn) {
            (running.driven, running.silent_since) = (false, None);
        }
    }

    /// What this shard tells others of its own attempts.
    pub(super) fn settled_so_far(&self) -> Request {
        let (Range { start: first, end: next }, open) = self.base.own_attempts();
        Request::Settled { first, next, open }
    }

    /// On receiving SETTLED, because END may have been lost. Looks only at attempts that were not
    /// known to be settled before.
    pub(super) fn settled(&mut self, coordinator: ShardId, numbers: Range<u64>, open: &[u64]) {
        let end = numbers.end.min(NUMBERS_END);
        self.log_settled(coordinator, numbers.start..end, open);
        let from = self.over.settled(coordinator, numbers.start..end, open);
        let first_of = |number| TxnId { number, coordinator: ShardId(0) };
        let since = self.running.range(first_of(from)..first_of(end.max(from))).map(|(txn, _)| *txn);
        let over = since.filter(|txn| txn.coordinator == coordinator && self.over.contains(*txn));
        for txn in over.collect::<Vec<_>>() {
            self.ended(txn);
        }
    }

    /// On receiving END.
    pub(super) fn ended(&mut self, txn: TxnId) {
        let Some(running) = self.running.get_mut(&txn).filter(|running| running.stamp.is_some()) else {
            return;
        };
        // Of its own attempts in its present life the server knows.
        let is_own = txn.coordinator == self.base.shard && !self.base.votes.fenced(txn);
        if self.base.votes.distributed() && !is_own {
            self.over.ended(txn);
        }
        if std::mem::replace(&mut running.ended, true) {
            return;
        }
        self.log_end(txn);
        let running = self.running.get_mut(&txn).expect("it was here");
        for pred in std::mem::take(&mut running.preds).into_keys() {
            let running = self.running.get_mut(&pred).expect("who has been met is remembered");
            running.successors -= 1;
            self.forget_if_over(pred);
        }
        self.forget_if_over(txn);
        if self.graph.has_grown(self.running.len() + SWEPT_AT) {
            let running = &self.running;
            let roots = running.iter().filter(|(_, running)| running.stamp.is_none()).map(|(txn, _)| *txn);
            self.graph.sweep(roots, |txn| running.contains_key(txn));
        }
        self.rest();
    }

    fn forget_if_over(&mut self, txn: TxnId) {
        if self.running.get(&txn).is_some_and(|running| running.ended && running.successors == 0) {
            self.running.remove(&txn);
            self.graph.forget(txn);
        }
    }

    /// Measures the graph and the messages about it, at the end of a pass.
    pub(super) fn measure(&mut self) {
        let size = self.graph.size();
        let counters = &mut self.base.counters;
        counters.graph = size;
        counters.graph_max.raise(size);
        let graph = self.out.iter().filter(|(_, out)| matches!(out, Request::Ask(_) | Request::Answer(_)));
        counters.graph_sent_bytes += graph.map(|(_, request)| request.bytes()).sum::<u64>();
    }

    /// Reads the newest committed versions, once no undecided transaction may write these records.
    pub(super) fn read_decided(&mut self, txn: TxnId, reads: &Reads, ticket: Ticket) -> Handled<Reply<S>> {
        if !self.base.serves(txn, reads) {
            return Handled::Reply(Reply::Elsewhere);
        }
        if let Some(at) = self.undecided(reads) {
            self.base.step_waits(txn, at);
            self.base.store.lock_mut(at).readers.push(ticket);
            self.base.counters.read_only_waits += 1;
            return Handled::Wait;
        }
        let fetched =
            self.base.fetch(txn, None, reads).unwrap_or_else(|_| unreachable!("the newest is never gone"));
        Handled::Reply(Reply::Read(fetched))
    }

    fn undecided(&mut self, reads: &Reads) -> Option<At> {
        let store = &mut self.base.store;
        for (column, key, _) in &reads.gets {
            let row = store.find(*column, key).row();
            let at = row.map(|row| At { row, column: *column });
            if let Some(at) = at.filter(|at| store.record(*at).is_locked()) {
                return Some(at);
            }
        }
        for (scan, _) in &reads.scans {
            let mut found = None;
            store.scan(scan.column.table, &scan.low, scan.high.as_ref(), |rows, visited| {
                if let Visited::Row(row) = visited
                    && rows.record(row, scan.column.group).is_locked()
                {
                    found = Some(At { row, column: scan.column });
                    return std::ops::ControlFlow::Break(());
                }
                std::ops::ControlFlow::Continue(())
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }
}
