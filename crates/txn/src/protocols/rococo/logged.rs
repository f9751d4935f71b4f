//! What a server of ROCOCO writes to its log, and how it comes back from there.
//!
//! A server has promised two things when it answers: START gets the same answer whoever asks again,
//! and what is decided stays so. So there are two records that a message waits for:
//!
//! * *Start*, for each stage: the procedure as it arrived, the answer with the tentative stamp and
//!   the predecessors, and what the pieces have done. The tentative stamp cannot be found again: it
//!   comes of marks, which are not logged.
//! * *Decided*: the component, and the answer to COMMIT. It is in the same entry as the versions,
//!   which are logged as under every protocol.
//!
//! COMMIT is not logged. It is the union of all servers' answers to START, so who drives the
//! transaction makes it again: its coordinator, which goes on until it is answered, or if that has
//! ended as well, any server of the transaction.
//!
//! *End* and *Settled* say what is over. They are lazy: nothing waits for them, and they are in the
//! next entry that is made. If they are lost, the transaction is decided and not over when the
//! server is back. The server asks the coordinator, or goes on with the transaction and is told
//! that it is over. Only images forget transactions, and what is over is in them: it must not start
//! again.
//!
//! *Coming back.* Records are taken one by one, as what they tell of happened, but for what
//! concerns the store. An image of the store is made while transactions go on, and its rows may be
//! ahead of the record that is read. So pieces are not executed again; what they have done is
//! restored when the log has been read to its end, for the transactions that are not decided then,
//! stage by stage in the order in which they have started. What was pending has its place again
//! behind what was pending before it. The graph begins with the components of those that are
//! decided; of all others COMMIT comes again.
//!
//! Example. T has started on `x` with tentative stamp 10, W behind it with 12, T is decided at 14,
//! and the server ends. It comes back with T's version of `x` and T's component, and with W, which
//! has T before it and may write `x` at 12 or later. W's coordinator sends COMMIT again. T's
//! predecessors elsewhere need not be asked for, because T is fixed.
//!
//! An *image* has the records of all transactions that are not forgotten, and what is over.

use std::mem::take;
use std::ops::Range;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::{Malformed, encoded, whole};
use plimsoll_types::{ShardId, Timestamp, TxnId};

use super::execution::LoggedEffects;
use super::graph::Member;
use super::participant::{Running, Stage};
use super::{Decided, Rococo};
use crate::procedure::Piece;
use crate::shipped::{Cargo, Item, Shipped};
use crate::timestamp::Scheme;

/// What the log has of a stage that has started.
pub(super) struct LoggedStage {
    /// Its place among all stages that have started here.
    place: u64,
    /// The record.
    record: Vec<u8>,
    /// While the log is read: what is to be restored.
    restored: Option<Restored>,
}

/// What is to be restored of a stage.
struct Restored {
    items: Vec<Item>,
    effects: LoggedEffects,
    has_refused: bool,
}

enum Record {
    /// A stage has started.
    Start(Box<Start>),
    /// A transaction is decided.
    Decided { txn: TxnId, component: Vec<Member>, decided: Decided },
    /// A transaction is over.
    End(TxnId),
    /// A coordinator has settled these attempts but for those that are open.
    Settled { coordinator: ShardId, first: u64, end: u64, open: Vec<u64> },
}

plimsoll_types::wire!(
    enum Record {
        Start(start) = 0,
        Decided { txn, component, decided } = 1,
        End(txn) = 2,
        Settled { coordinator, first, end, open } = 3,
    }
);

struct Start {
    txn: TxnId,
    least: Timestamp,
    tentative: Timestamp,
    stage: usize,
    pieces: Vec<usize>,
    /// The stage to continue with.
    next: usize,
    /// The procedure before the stage.
    procedure: Cargo,
    /// A copy with the outputs of the pieces that were executed.
    executed: Option<Cargo>,
    /// The pieces that wait for COMMIT.
    deferred: Vec<usize>,
    /// The stage in which a piece has refused.
    refused: Option<usize>,
    /// The items on which the stage has started.
    items: Vec<Item>,
    /// All predecessors here so far, and whether the transaction has executed after each.
    preds: Vec<(TxnId, bool)>,
    /// All that the transaction has done here so far.
    effects: LoggedEffects,
}

plimsoll_types::wire!(
    struct Start {
        txn, least, tentative, stage, pieces, next, procedure, executed, deferred, refused, items, preds, effects
    }
);

impl<S: Scheme> Rococo<S> {
    /// Logs that a stage has started. `arrived` is the procedure before it, and `items` how many
    /// items the transaction had started on.
    pub(super) fn log_start(&mut self, txn: TxnId, stage: usize, arrived: Box<dyn Shipped>, items: usize) {
        let running = self.running.get_mut(&txn).expect("it has started");
        let answer = running.kept.as_ref().and_then(|kept| kept.stages.get(&stage));
        let Stage { pieces, next, executed } = answer.expect("a server that logs keeps its answers");
        let deferred = running.deferred.iter().flat_map(|(_, pieces)| pieces);
        let deferred = deferred.filter(|piece| piece.stage == stage).map(|piece| piece.number);
        let record = encoded(&Record::Start(Box::new(Start {
            txn,
            least: running.least,
            tentative: running.tentative,
            stage,
            pieces: pieces.clone(),
            next: *next,
            procedure: Cargo::Whole(arrived),
            executed: executed.as_deref().map(Cargo::of),
            deferred: deferred.collect(),
            refused: running.refused,
            items: running.items[items..].to_vec(),
            preds: running.preds.iter().map(|(&pred, &immediate)| (pred, immediate)).collect(),
            effects: running.doings.logged(&self.base, &self.pending, txn),
        })));
        running.logged.push(LoggedStage { place: self.stages, record: record.clone(), restored: None });
        self.stages += 1;
        self.base.log_own(record, Timestamp::ZERO);
        if planted(Mutant::StartUngated) {
            self.base.log_lazily();
        }
    }

    /// Logs that a transaction is decided, and how COMMIT is answered.
    pub(super) fn log_decided(&mut self, txn: TxnId) {
        if let Some(stamp) = self.running[&txn].stamp.filter(|_| self.base.logs()) {
            self.base.log_own(encoded(&self.decided_record(txn)), stamp);
            if planted(Mutant::DecidedUngated) {
                self.base.log_lazily();
            }
        }
    }

    fn decided_record(&self, txn: TxnId) -> Record {
        let decided = self.running[&txn].decided.as_ref().expect("a server that logs keeps its answers");
        let component = self.graph.component(txn).expect("what is decided is fixed");
        Record::Decided { txn, component: component.to_vec(), decided: decided.copy() }
    }

    /// Logs that a transaction is over.
    pub(super) fn log_end(&mut self, txn: TxnId) {
        self.log_over(Record::End(txn));
    }

    /// Logs that a coordinator has settled attempts.
    pub(super) fn log_settled(&mut self, coordinator: ShardId, numbers: Range<u64>, open: &[u64]) {
        let Range { start: first, end } = numbers;
        self.log_over(Record::Settled { coordinator, first, end, open: open.to_vec() });
    }

    /// Logs which of its own attempts the server has settled, so that their ranges become one.
    pub(super) fn log_own_settled(&mut self) {
        let (numbers, open) = self.base.own_attempts();
        self.log_settled(self.base.shard, numbers, &open);
    }

    fn log_over(&mut self, record: Record) {
        if self.base.logs() {
            self.base.log_own_lazily(encoded(&record));
        }
    }

    /// Adds to the image that begins what the records of the log before it have told.
    pub(super) fn add_to_image(&mut self) {
        let mut records: Vec<Record> = Vec::new();
        let is_decided = |(txn, running): (&TxnId, &Running<S>)| running.stamp.map(|_| *txn);
        records.extend(self.running.iter().filter_map(is_decided).map(|txn| self.decided_record(txn)));
        let (numbers, open) = self.base.own_attempts();
        let own = (self.base.shard, numbers, open);
        let over = self.over.ranges().map(|(coordinator, numbers)| (coordinator, numbers, Vec::new()));
        let over = over.chain([own]).filter(|_| !planted(Mutant::OverNotInImage));
        records.extend(over.map(|(coordinator, numbers, open)| {
            let Range { start: first, end } = numbers;
            Record::Settled { coordinator, first, end, open }
        }));
        let stages = self.running.values().flat_map(|running| {
            running.logged.iter().map(|logged| (logged.place, &logged.record, running.stamp.is_some()))
        });
        let mut started: Vec<(u64, Vec<u8>)> = stages
            .filter(|_| !planted(Mutant::StartsNotInImage))
            .map(|(place, record, is_decided)| (place, self.for_image(record, is_decided)))
            .collect();
        started.sort_unstable_by_key(|(place, _)| *place);
        started.into_iter().for_each(|(_, record)| self.base.add_to_image(record));
        records.iter().for_each(|record| self.base.add_to_image(encoded(record)));
    }

    /// The record of a stage as an image has it: see [`LoggedEffects::name_versions`].
    fn for_image(&self, record: &[u8], is_decided: bool) -> Vec<u8> {
        if is_decided || self.base.installs.is_none() {
            return record.to_vec();
        }
        match whole(record) {
            Ok(Record::Start(mut start)) => {
                start.effects.name_versions(&self.base);
                encoded(&Record::Start(start))
            }
            _ => unreachable!("the record of a stage is one that the server has made or read"),
        }
    }

    /// Takes a record from the log or an image.
    pub(super) fn replay_record(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        match whole(bytes)? {
            Record::Start(start) => self.replay_start(*start, bytes),
            Record::Decided { txn, component, decided } => self.replay_decided(txn, component, decided),
            Record::End(txn) => {
                self.ended(txn);
                Ok(())
            }
            Record::Settled { coordinator, first, end, open } => {
                self.settled(coordinator, first..end, &open);
                Ok(())
            }
        }
    }

    fn replay_start(&mut self, start: Start, record: &[u8]) -> Result<(), Malformed> {
        let Start { txn, least, tentative, stage, pieces, next, .. } = start;
        let procedure = start.procedure.open(self.unpack)?;
        let executed = start.executed.map(|executed| executed.open(self.unpack)).transpose()?;
        let running = self.running.entry(txn);
        let running = running.or_insert_with(|| Running::new(least, Some(procedure.copy())));
        let mut new = Vec::new();
        for (pred, immediate) in start.preds {
            let known = running.preds.entry(pred).or_insert_with(|| {
                new.push(pred);
                immediate
            });
            *known |= immediate;
        }
        // Of a transaction that is over the image does not have those that were over before it.
        new.retain(|pred| match self.running.get_mut(pred) {
            Some(pred) => {
                pred.successors += 1;
                false
            }
            None => true,
        });
        let running = self.running.get_mut(&txn).expect("it has started");
        running.preds.retain(|pred, _| !new.contains(pred));
        running.tentative = if planted(Mutant::TentRecomputed) { least } else { tentative };
        running.refused = start.refused;
        let answer = Stage { pieces, next, executed };
        running.kept.as_mut().expect("it is kept").stages.insert(stage, answer);
        let deferred: Vec<Piece> = start.deferred.iter().map(|&number| Piece { stage, number }).collect();
        if !deferred.is_empty() {
            running.deferred.push((procedure, deferred));
        }
        let has_refused = start.refused.is_some();
        let restored = Some(Restored { items: start.items, effects: start.effects, has_refused });
        running.logged.push(LoggedStage { place: self.stages, record: record.to_vec(), restored });
        self.stages += 1;
        Ok(())
    }

    fn replay_decided(
        &mut self,
        txn: TxnId,
        component: Vec<Member>,
        decided: Decided,
    ) -> Result<(), Malformed> {
        let Some(running) = self.running.get_mut(&txn) else {
            return Err(Malformed("a transaction that is decided and has not started"));
        };
        self.base.recovered(decided.stamp);
        running.stamp = Some(decided.stamp);
        running.decided = Some(decided);
        running.deferred.clear();
        running.logged.iter_mut().for_each(|logged| logged.restored = None);
        self.graph.learn_fixed(&component.into());
        Ok(())
    }

    /// Forgets what was read.
    pub(super) fn forget_replayed(&mut self) {
        (self.running, self.graph, self.over) = Default::default();
    }

    /// The log was read to its end: restores what was pending.
    pub(super) fn restore(&mut self) {
        let mut stages = Vec::new();
        for (&txn, running) in &mut self.running {
            for logged in &mut running.logged {
                stages.extend(logged.restored.take().map(|restored| (logged.place, txn, restored)));
            }
        }
        stages.sort_unstable_by_key(|(place, ..)| *place);
        for (_, txn, Restored { items, effects, has_refused }) in stages {
            let running = self.running.get_mut(&txn).expect("it has started");
            items.iter().for_each(|item| self.conflicts.start(txn, item, |_| ()));
            running.items.extend(items);
            let (base, pending) = (&mut self.base, &mut self.pending);
            let before = take(&mut running.doings);
            match has_refused {
                true => before.undo(base, pending, txn),
                false => running.doings = effects.restore(base, pending, txn, running.tentative),
            }
        }
    }
}
