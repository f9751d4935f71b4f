//! What must hold after a run, and while it runs.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use plimsoll_checker::Options;
use plimsoll_engine::Engine;
use plimsoll_runtime::Env;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::execute::execute;
use plimsoll_txn::pairs::LegalPair;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_txn::timestamp::{ReadOnly, Scheme};
use plimsoll_txn::work::Work;
use plimsoll_types::history::{History, Install};
use plimsoll_types::{Abort, ColumnGroup, Key, Slot, TableId};
use plimsoll_workloads::{Tally, Workload};

use super::client::Recorded;
use super::site::{Control, Phase};
use crate::report::model::Check;

/// An online audit that is aborted so often is given up; only the plain protocol's can be.
const AUDIT_ATTEMPTS: u32 = 100;
/// How many failures of the online check are told in full.
const TOLD: usize = 3;

fn convert(check: plimsoll_workloads::Check) -> Check {
    Check { name: check.name, ok: check.ok, detail: check.detail }
}

/// Reads some rows, to see whether they are there.
struct LookUp {
    rows: Vec<(Slot, TableId, Key)>,
    found: Vec<bool>,
}

impl Procedure for LookUp {
    fn read_only(&self) -> bool {
        true
    }

    fn stage(&self, stage: usize) -> usize {
        if stage == 0 { self.rows.len() } else { 0 }
    }

    fn home(&self, piece: Piece) -> Slot {
        self.rows[piece.number].0
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let (_, table, key) = &self.rows[piece.number];
        reads.get(table.row(), key.clone());
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (_, table, key) = &self.rows[piece.number];
        self.found[piece.number] = access.get(table.row(), key)?.is_some();
        Ok(())
    }
}

plimsoll_txn::executable!(LookUp);

/// Whether the first rows of the first and of the last unit are there.
pub fn is_loaded<P: LegalPair, W: Workload>(engine: &Engine<P>, workload: &W) -> bool {
    let mut rows = Vec::new();
    for unit in [0, workload.units() - 1] {
        let slot = workload.unit_slot(unit).unwrap_or_default();
        let mut first = None;
        workload.load(unit, &mut |table, key, _| {
            first.get_or_insert((slot, table, key));
        });
        rows.extend(first);
    }
    let mut look_up = LookUp { found: vec![false; rows.len()], rows };
    let coordinator = engine.coordinators().next().expect("transactions are coordinated here");
    engine.runtime().run_on(coordinator, move |env| async move {
        let mut work = Work::default();
        while execute(&env, Attempt::default(), &mut look_up, &mut work).await.is_err() {
            env.pause().await;
        }
        look_up.found.into_iter().all(|found| found)
    })
}

/// The workload's invariants on the quiesced database.
pub fn invariants<P: LegalPair, W: Workload>(engine: &Engine<P>, workload: &W, tally: &Tally) -> Vec<Check> {
    let mut audits = Vec::new();
    for (mut audit, shard) in workload.audits().into_iter().zip(engine.coordinators().cycle()) {
        audits.push(engine.runtime().run_on(shard, move |env| async move {
            let mut work = Work::default();
            while execute(&env, Attempt::default(), &mut audit, &mut work).await.is_err() {
                env.pause().await;
            }
            audit
        }));
    }
    workload.judge(&audits, tally).into_iter().map(convert).collect()
}

/// Starts the online check: snapshots of what must hold at every moment, while writers run.
pub fn start_online<P: LegalPair, W: Workload>(
    engine: &Engine<P>,
    workload: &W,
    control: &Arc<Control>,
    per_second: u32,
) -> Receiver<Vec<Check>> {
    let (done, result) = mpsc::channel();
    let (workload, control) = (workload.clone(), control.clone());
    let first = engine.runtime().first();
    engine.runtime().spawn_on(first, move |env| async move {
        let (mut audits, mut given_up) = (0, 0);
        let (mut violated, mut told) = (0, Vec::new());
        let mut work = Work::default();
        'run: for number in 0.. {
            // Woken often enough to end with the run.
            let next = env.clock().0 + 1_000_000_000 / u64::from(per_second);
            while env.clock().0 < next {
                if control.phase() == Phase::Stop {
                    break 'run;
                }
                env.sleep((next - env.clock().0).min(10_000_000)).await;
            }
            let mut audit = workload.online_audit(number);
            let mut attempts = 0;
            while execute(&env, Attempt::default(), &mut audit, &mut work).await.is_err() {
                attempts += 1;
                if attempts == AUDIT_ATTEMPTS || control.phase() == Phase::Stop {
                    given_up += 1;
                    continue 'run;
                }
                env.pause().await;
            }
            audits += 1;
            let failures: Vec<_> =
                workload.judge_snapshot(&audit).into_iter().filter(|check| !check.ok).collect();
            violated += u32::from(!failures.is_empty());
            for failure in failures {
                if told.len() < TOLD {
                    told.push(format!("{}: {}", failure.name, failure.detail));
                }
            }
        }
        let serializable = P::Scheme::SERIALIZABLE;
        let mut detail = format!("{audits} audits in snapshots while writers ran, {violated} violated");
        if given_up > 0 {
            detail += &format!(", {given_up} aborted and given up");
        }
        if !serializable {
            detail += " (torn snapshots are what this scheme allows)";
        } else if !told.is_empty() {
            detail = format!("{detail}: {}", told.join("; "));
        }
        let name = "invariants online".to_owned();
        let _ = done.send(vec![Check { name, ok: violated == 0 || !serializable, detail }]);
    });
    result
}

/// Hands the recorded history to the checker. Returns its verdict, transactions and dependencies.
pub fn history<P: LegalPair, W: Workload>(
    workload: &W,
    recorded: Vec<Recorded>,
    installs: Vec<Vec<Install>>,
) -> (Check, u64, u64) {
    let transactions = recorded.into_iter().map(Recorded::transaction::<W>).collect();
    let history = History { transactions, installs };
    let tables = workload.tables();
    let names = |column: ColumnGroup| {
        let spec = &tables[column.table.index()];
        match spec.groups.len() {
            1 => spec.name.clone(),
            _ => format!("{}.{}", spec.name, spec.groups[usize::from(column.group)]),
        }
    };
    // All processes of a machine have one clock without error, so DST is strict; the other schemes promise less.
    let strict = P::Scheme::WAITS;
    let snapshots = P::Scheme::READ_ONLY == ReadOnly::Snapshot && P::Scheme::SERIALIZABLE;
    let options = Options {
        scalar: P::Scheme::SCALAR && snapshots,
        realtime: strict,
        sessions: strict,
        complete: true,
    };
    let report = plimsoll_checker::check(&history, options, &names);
    let serializable = P::Scheme::SERIALIZABLE;
    let mut detail = format!("{} transactions, {} dependencies", report.transactions, report.edges);
    for violation in &report.violations {
        detail += &format!("; {violation}");
    }
    if !report.passed() && !serializable {
        detail = format!("{} violations, as this scheme allows: {detail}", report.total());
    }
    let name = "history is serializable".to_owned();
    let check = Check { name, ok: report.passed() || !serializable, detail };
    (check, report.transactions, report.edges)
}
