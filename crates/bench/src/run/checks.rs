//! What must hold after a run, and while it runs.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use plimsoll_checker::Options;
use plimsoll_engine::Engine;
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::executable::AnyProcedure;
use plimsoll_txn::pairs::Pair;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_types::history::{History, Install, of_one_copy};
use plimsoll_types::{Abort, ColumnGroup, Key, Partitioning, Slot, TableId};
use plimsoll_workloads::{AnyAudit, AnyTransaction, AnyWorkload, Tally};

use super::client::Recorded;
use super::site::{Control, Phase};
use crate::report::model::Check;

/// An online audit that is aborted so often is given up; only the plain protocol's can be.
const AUDIT_ATTEMPTS: u32 = 100;
/// How many failures of the online check are told in full.
const TOLD: usize = 3;

fn convert(check: plimsoll_workloads::Check) -> Check {
    Check { name: check.name, ok: check.ok, allowed: false, detail: check.detail }
}

/// A row to look up: where, and what its first column group must be, if it never changes.
type Wanted = (Slot, TableId, Key, Option<Vec<u8>>);

/// Reads some rows, to see whether they are there.
struct LookUp {
    rows: Vec<Wanted>,
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
        let (_, table, key, _) = &self.rows[piece.number];
        reads.get(table.row(), key.clone());
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (_, table, key, value) = &self.rows[piece.number];
        let there = access.get(table.row(), key)?;
        self.found[piece.number] = there.is_some_and(|row| value.as_ref().is_none_or(|value| row == value));
        Ok(())
    }
}

plimsoll_txn::executable!(LookUp);

/// A database that cannot be read for this long is not read at all, in nanoseconds.
const READ_MAX_NS: u64 = 10_000_000_000;

/// Whether the first rows of the first and of the last unit are there; and, if clients are to have
/// copies of their own, which they draw from the same seed, that the copies are the same.
pub fn is_loaded(engine: &Engine, workload: &dyn AnyWorkload) -> Result<bool, String> {
    let mut rows = Vec::new();
    for unit in [0, workload.units() - 1] {
        let slot = workload.unit_slot(unit);
        let compared = slot.is_none() && workload.reads_copies_at_hand();
        let mut first = None;
        workload.load(unit, &mut |table, key, values| {
            if first.is_none() {
                let value = compared.then(|| values[0].to_vec());
                first = Some((slot.unwrap_or_default(), table, key, value));
            }
        });
        rows.extend(first);
    }
    let mut look_up = LookUp { found: vec![false; rows.len()], rows };
    let coordinator = engine.coordinators().next().expect("transactions are coordinated here");
    engine.run_on(coordinator, move |shard| async move {
        run_to_the_end(&*shard, &mut look_up).await?;
        Ok(look_up.found.into_iter().all(|found| found))
    })
}

/// What is there of earlier runs, on the quiesced database, and whether it fits together. If it
/// does, what they have left open is given up, which is counted as well.
pub fn found(engine: &Engine, workload: &dyn AnyWorkload) -> Result<(Tally, Vec<Check>), String> {
    let audits = audits(engine, workload)?;
    let (mut found, clean_ups) = (workload.found(&audits), workload.clean_ups(&audits));
    let checks: Vec<Check> = workload.judge(audits, &found).into_iter().map(convert).collect();
    if checks.iter().all(|check| check.ok) {
        found.add(&clean_up(engine, workload.no_tally(), clean_ups)?);
    }
    Ok((found, checks))
}

/// Runs transactions that give up what earlier runs have left open.
fn clean_up(
    engine: &Engine,
    mut tally: Tally,
    transactions: Vec<Box<dyn AnyTransaction>>,
) -> Result<Tally, String> {
    let coordinator = engine.coordinators().next().expect("transactions are coordinated here");
    engine.run_on(coordinator, move |shard| async move {
        for mut transaction in transactions {
            run_to_the_end(&*shard, transaction.procedure()).await?;
            transaction.tally(&mut tally);
        }
        Ok(tally)
    })
}

/// The workload's invariants on the quiesced database.
pub fn invariants(engine: &Engine, workload: &dyn AnyWorkload, tally: &Tally) -> Result<Vec<Check>, String> {
    Ok(workload.judge(audits(engine, workload)?, tally).into_iter().map(convert).collect())
}

/// Reads what invariants speak about.
fn audits(engine: &Engine, workload: &dyn AnyWorkload) -> Result<Vec<Box<dyn AnyAudit>>, String> {
    let mut audits = Vec::new();
    for (mut audit, shard) in workload.audits().into_iter().zip(engine.coordinators().cycle()) {
        audits.push(engine.run_on(shard, move |shard| async move {
            run_to_the_end(&*shard, audit.procedure()).await.map(|()| audit)
        })?);
    }
    Ok(audits)
}

/// Attempts a procedure until it commits. One that fails for too long is given up, with a sentence.
async fn run_to_the_end(shard: &dyn AnyShard, procedure: &mut dyn AnyProcedure) -> Result<(), String> {
    let (mut coordinator, begun) = (shard.coordinator(), shard.clock().0);
    while let Err(abort) = coordinator.execute(Attempt::default(), procedure).await {
        if shard.clock().0 - begun > READ_MAX_NS {
            return Err(format!(
                "the data cannot be read ({}): is a node gone, or a row that was loaded?",
                abort.name()
            ));
        }
        shard.pause().await;
    }
    Ok(())
}

/// Starts the online check: snapshots of what must hold at every moment, while writers run.
pub fn start_online(
    engine: &Engine,
    workload: &Arc<dyn AnyWorkload>,
    control: &Arc<Control>,
    per_second: u32,
) -> Receiver<Vec<Check>> {
    let (done, result) = mpsc::channel();
    let (workload, control) = (workload.clone(), control.clone());
    let (serializable, scheme) = (engine.pair().serializable(), engine.pair().scheme);
    engine.spawn_on(engine.runtime().first(), move |env| async move {
        let (mut audits, mut given_up) = (0, 0);
        let (mut violated, mut told) = (0, Vec::new());
        let mut coordinator = env.coordinator();
        let mut last: Option<Box<dyn AnyAudit>> = None;
        'run: for number in 0.. {
            // Woken often enough to end with the run.
            let next = env.clock().0 + 1_000_000_000 / u64::from(per_second);
            while env.clock().0 < next {
                if control.phase() == Phase::Stop {
                    break 'run;
                }
                env.sleep((next - env.clock().0).min(10_000_000)).await;
            }
            let mut audit = workload.online_audit(number, last.as_deref());
            let mut attempts = 0;
            while coordinator.execute(Attempt::default(), audit.procedure()).await.is_err() {
                attempts += 1;
                if attempts == AUDIT_ATTEMPTS || control.phase() == Phase::Stop {
                    given_up += 1;
                    continue 'run;
                }
                env.pause().await;
            }
            audits += 1;
            let failures: Vec<_> =
                workload.judge_snapshot(&*audit).into_iter().filter(|check| !check.ok).collect();
            violated += u32::from(!failures.is_empty());
            for failure in failures {
                if told.len() < TOLD {
                    told.push(format!("{}: {}", failure.name, failure.detail));
                }
            }
            last = Some(audit);
        }
        let mut detail = format!("{audits} audits in snapshots while writers ran, {violated} violated");
        if given_up > 0 {
            detail += &format!(", {given_up} aborted and given up");
        }
        if !serializable && violated > 0 {
            detail += &format!(", as {} allows", scheme.name());
        } else if !told.is_empty() {
            detail = format!("{detail}: {}", told.join("; "));
        }
        let name = "invariants online".to_owned();
        let _ = done.send(vec![Check { name, ok: violated == 0, allowed: !serializable, detail }]);
    });
    result
}

/// Hands the recorded history to the checker. A read-only transaction counts as having begun
/// `staleness_ns` nanoseconds before it was started, because its snapshot may be that old. What the
/// first `shards` shards, which hold data, have installed in tables with copies counts once.
/// Returns the verdict, and the numbers of transactions and dependencies.
pub fn history(
    workload: &dyn AnyWorkload,
    pair: Pair,
    shards: usize,
    staleness_ns: u64,
    recorded: Vec<Recorded>,
    mut installs: Vec<Vec<Install>>,
) -> (Check, u64, u64) {
    let kinds = workload.kinds();
    let transactions = recorded.into_iter().map(|txn| txn.transaction(kinds, staleness_ns)).collect();
    let tables = workload.tables();
    let copied = |column: ColumnGroup| tables[column.table.index()].partitioning == Partitioning::Everywhere;
    let holders = shards.min(installs.len());
    let differ = of_one_copy(&mut installs[..holders], copied);
    let history = History { transactions, installs };
    let names = |column: ColumnGroup| {
        let spec = &tables[column.table.index()];
        match spec.groups.len() {
            1 => spec.name.clone(),
            _ => format!("{}.{}", spec.name, spec.groups[usize::from(column.group)]),
        }
    };
    // All processes of a machine have one clock without error, so DST is strict; the other schemes
    // promise less.
    let strict = pair.has_times();
    let options = Options {
        scalar: pair.has_scalars() && pair.has_snapshots(),
        realtime: strict,
        // A snapshot in the past may miss what its own session has written since.
        sessions: strict && staleness_ns == 0,
        complete: true,
    };
    let report = plimsoll_checker::check(&history, options, &names);
    let serializable = pair.serializable();
    let mut detail = format!("{} transactions, {} dependencies", report.transactions, report.edges);
    // What a scheme allows is no news: one example is enough.
    let told = if serializable { report.violations.len() } else { 1 };
    for violation in report.violations.iter().take(told) {
        detail += &format!("; {violation}");
    }
    if let Some(shard) = differ.first() {
        detail = format!("shards 0 and {shard} have different copies of a table; {detail}");
    }
    if !report.passed() && !serializable {
        detail = format!("{} violations, as {} allows: {detail}", report.total(), pair.scheme);
    }
    let name = "history is serializable".to_owned();
    let check = Check { name, ok: report.passed() && differ.is_empty(), allowed: !serializable, detail };
    (check, report.transactions, report.edges)
}
