//! Workloads without their types.
//!
//! Benchmarks, the performance model and simulated worlds run any workload, under any pair. What
//! they hold is an [`AnyWorkload`], so they are compiled once and not once per workload. A
//! transaction costs them four calls through a table: to draw it, to run it, to count it, and to
//! tell the client what became of it.

use std::any::Any;

use plimsoll_txn::attempt::ProtocolOptions;
use plimsoll_txn::chopping::{Chopping, Unrepairable};
use plimsoll_txn::executable::AnyProcedure;
use plimsoll_types::{ShardId, Slot, TableSpec};

use crate::{Check, Kind, Sink, Tally, Workload};

/// A [`Workload`] without its type.
pub trait AnyWorkload: Send + Sync {
    /// See [`Workload::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Workload::KINDS`].
    fn kinds(&self) -> &'static [Kind];
    /// See [`Workload::READS_COPIES_AT_HAND`].
    fn reads_copies_at_hand(&self) -> bool;
    /// A tally of nothing.
    fn no_tally(&self) -> Tally;
    /// See [`Workload::tables`].
    fn tables(&self) -> Vec<TableSpec>;
    /// See [`Workload::chopping`].
    fn chopping(&self) -> Result<Chopping, Unrepairable>;
    /// See [`Workload::protocol_options`].
    fn protocol_options(&self) -> ProtocolOptions;
    /// See [`Workload::units`].
    fn units(&self) -> usize;
    /// See [`Workload::unit_slot`].
    fn unit_slot(&self, unit: usize) -> Option<Slot>;
    /// See [`Workload::load`].
    fn load(&self, unit: usize, sink: Sink<'_>);
    /// See [`Workload::client`].
    fn client(&self, client: usize, shard: ShardId, owner: &dyn Fn(Slot) -> ShardId) -> Box<dyn AnyClient>;
    /// See [`Workload::figures`].
    fn figures(&self) -> Vec<(&'static str, u64)>;
    /// See [`Workload::audits`].
    fn audits(&self) -> Vec<Box<dyn AnyAudit>>;
    /// See [`Workload::online_audit`] and [`Workload::follow`]. The last audit is this workload's.
    fn online_audit(&self, number: usize, last: Option<&dyn AnyAudit>) -> Box<dyn AnyAudit>;
    /// See [`Workload::judge_snapshot`]. The audit is one of this workload's.
    fn judge_snapshot(&self, audit: &dyn AnyAudit) -> Vec<Check>;
    /// See [`Workload::found`]. The audits are this workload's.
    fn found(&self, audits: &[Box<dyn AnyAudit>]) -> Tally;
    /// See [`Workload::clean_ups`]. The audits are this workload's.
    fn clean_ups(&self, audits: &[Box<dyn AnyAudit>]) -> Vec<Box<dyn AnyTransaction>>;
    /// See [`Workload::exhausted`].
    fn exhausted(&self) -> Option<&'static str>;
    /// See [`Workload::judge`]. The audits are this workload's.
    fn judge(&self, audits: Vec<Box<dyn AnyAudit>>, tally: &Tally) -> Vec<Check>;
}

/// A client of a workload, with its present transaction.
pub trait AnyClient {
    /// Draws the next transaction. Returns its type: a position in [`AnyWorkload::kinds`]. See
    /// [`Workload::next`].
    fn draw(&mut self, now_ns: u64) -> usize;
    /// The transaction that was drawn last.
    fn procedure(&mut self) -> &mut dyn AnyProcedure;
    /// Adds what it did to the sums, if it has committed: see [`Workload::tally`].
    fn tally(&self, sums: &mut [i64]);
    /// Rows that it has read, if it has committed: see [`Workload::rows_read`].
    fn rows_read(&self) -> Option<u32>;
    /// Tells what became of it: see [`Workload::done`].
    fn done(&mut self, committed: bool);
}

/// A transaction that no client has drawn.
pub trait AnyTransaction: Send {
    /// What to run.
    fn procedure(&mut self) -> &mut dyn AnyProcedure;
    /// Counts it, if it has committed.
    fn tally(&self, tally: &mut Tally);
}

/// A read-only transaction that reads what invariants speak about.
pub trait AnyAudit: Any + Send {
    /// It as a transaction.
    fn procedure(&mut self) -> &mut dyn AnyProcedure;
}

impl<W: Workload> AnyWorkload for W {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn kinds(&self) -> &'static [Kind] {
        W::KINDS
    }

    fn reads_copies_at_hand(&self) -> bool {
        W::READS_COPIES_AT_HAND
    }

    fn no_tally(&self) -> Tally {
        Tally { committed: vec![0; W::KINDS.len()], sums: vec![0; W::SUMS.len()] }
    }

    fn tables(&self) -> Vec<TableSpec> {
        Workload::tables(self)
    }

    fn chopping(&self) -> Result<Chopping, Unrepairable> {
        Workload::chopping(self)
    }

    fn protocol_options(&self) -> ProtocolOptions {
        Workload::protocol_options(self)
    }

    fn units(&self) -> usize {
        Workload::units(self)
    }

    fn unit_slot(&self, unit: usize) -> Option<Slot> {
        Workload::unit_slot(self, unit)
    }

    fn load(&self, unit: usize, sink: Sink<'_>) {
        Workload::load(self, unit, sink);
    }

    fn client(&self, client: usize, shard: ShardId, owner: &dyn Fn(Slot) -> ShardId) -> Box<dyn AnyClient> {
        let client = Workload::client(self, client, shard, owner);
        Box::new(ClientOf { workload: self.clone(), client, drawn: None })
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        Workload::figures(self)
    }

    fn audits(&self) -> Vec<Box<dyn AnyAudit>> {
        let audits = Workload::audits(self).into_iter();
        audits.map(|audit| Box::new(audit) as Box<dyn AnyAudit>).collect()
    }

    fn online_audit(&self, number: usize, last: Option<&dyn AnyAudit>) -> Box<dyn AnyAudit> {
        let mut audit = Workload::online_audit(self, number);
        if let Some(last) = last {
            Workload::follow(self, &mut audit, own::<W>(last));
        }
        Box::new(audit)
    }

    fn judge_snapshot(&self, audit: &dyn AnyAudit) -> Vec<Check> {
        Workload::judge_snapshot(self, own::<W>(audit))
    }

    fn found(&self, audits: &[Box<dyn AnyAudit>]) -> Tally {
        Workload::found(self, &all_own::<W>(audits))
    }

    fn clean_ups(&self, audits: &[Box<dyn AnyAudit>]) -> Vec<Box<dyn AnyTransaction>> {
        let transactions = Workload::clean_ups(self, &all_own::<W>(audits)).into_iter();
        let boxed = |procedure| Box::new(TransactionOf::<W>(procedure)) as Box<dyn AnyTransaction>;
        transactions.map(boxed).collect()
    }

    fn exhausted(&self) -> Option<&'static str> {
        Workload::exhausted(self)
    }

    fn judge(&self, audits: Vec<Box<dyn AnyAudit>>, tally: &Tally) -> Vec<Check> {
        let own = |audit: Box<dyn AnyAudit>| {
            *(audit as Box<dyn Any>).downcast().expect("an audit goes back to its workload")
        };
        Workload::judge(self, &audits.into_iter().map(own).collect::<Vec<W::Audit>>(), tally)
    }
}

/// An audit of a workload with its type.
fn own<W: Workload>(audit: &dyn AnyAudit) -> &W::Audit {
    (audit as &dyn Any).downcast_ref().expect("an audit goes back to its workload")
}

/// Several of them.
fn all_own<W: Workload>(audits: &[Box<dyn AnyAudit>]) -> Vec<&W::Audit> {
    audits.iter().map(|audit| own::<W>(&**audit)).collect()
}

struct TransactionOf<W: Workload>(W::Procedure);

impl<W: Workload> AnyTransaction for TransactionOf<W> {
    fn procedure(&mut self) -> &mut dyn AnyProcedure {
        &mut self.0
    }

    fn tally(&self, tally: &mut Tally) {
        tally.committed[W::kind(&self.0)] += 1;
        W::tally(&self.0, &mut tally.sums);
    }
}

struct ClientOf<W: Workload> {
    workload: W,
    client: W::Client,
    drawn: Option<W::Procedure>,
}

impl<W: Workload> ClientOf<W> {
    fn drawn(&self) -> &W::Procedure {
        self.drawn.as_ref().expect("a transaction is drawn before it is used")
    }
}

impl<W: Workload> AnyClient for ClientOf<W> {
    fn draw(&mut self, now_ns: u64) -> usize {
        self.drawn = Some(self.workload.next(&mut self.client, now_ns));
        W::kind(self.drawn())
    }

    fn procedure(&mut self) -> &mut dyn AnyProcedure {
        self.drawn.as_mut().expect("a transaction is drawn before it is run")
    }

    fn tally(&self, sums: &mut [i64]) {
        W::tally(self.drawn(), sums);
    }

    fn rows_read(&self) -> Option<u32> {
        W::rows_read(self.drawn())
    }

    fn done(&mut self, committed: bool) {
        let drawn = self.drawn.as_ref().expect("a transaction is drawn before it is done");
        self.workload.done(&mut self.client, drawn, committed);
    }
}

impl<A: AnyProcedure + Any + Send> AnyAudit for A {
    fn procedure(&mut self) -> &mut dyn AnyProcedure {
        self
    }
}
