//! What must hold when a world has come to rest.
//!
//! * All clients are done, no lock, no vote and no dependency graph is left, no shard was told what
//!   cannot be, and under DST all garbage goes.
//! * What clients saw for themselves was right: sums, rings, values, numbers drawn once; read-only
//!   transactions at snapshots never aborted.
//! * Everything can still be read and written; what was appended is there once, what was not is
//!   not.
//! * The recorded history is serializable, with timestamps in the order of every dependency if the
//!   scheme has scalar ones (I1, I2, I4), in sessions (at snapshots under DST, unless clocks are
//!   further apart than tokens are believed), and *read-write transactions are strict*: a
//!   transaction that begins after another was answered comes after it, whatever the clocks say. So
//!   are read-only ones that are validated. The one-round commit of OCC promises that only of a
//!   transaction that begins 2ε later, as all promise it of timestamps.
//! * And what was seen of that while the world ran (`online.rs`).
//! * Under DST no version is stamped further ahead of the fastest clock than a shard believes of
//!   another process: a timestamp from the far future that a machine has sent slows down no other.
//! * Copies of a table have got the same versions in the same order, and hold the same rows.
//! * Under DST, *freshness*: a snapshot contains everything that was answered before it began, less
//!   its staleness, less twice the largest clock error ε of the run. For it is at least what the
//!   reader's clock shows, a writer is answered once its own shows the timestamp, and both are at
//!   most ε wrong. Checked by recording all beginnings 2ε earlier.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_checker::Options;
use plimsoll_runtime::sim::Fault;
use plimsoll_txn::any_shard::ShardStatus;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::base::GraphSize;
use plimsoll_txn::pairs::Pair;
use plimsoll_txn::timestamp::MAX_OFFSET_NS;
use plimsoll_types::history::{History, Install, Transaction, of_one_copy};
use plimsoll_types::{ColumnGroup, IndexKind, Partitioning, ShardId, TableId, TableSpec, Timestamp, TxnId};

use crate::client::ClientResults;
use crate::plan::{Plan, WorkloadName};
use crate::run::{Outcome, Setting, Violation};
use crate::workload::{append, random};

/// Violations of one kind that are spelled out.
const TOLD: usize = 3;
/// Virtual time in which shards tell each other their watermarks, and collect what is garbage.
const DRAIN_NS: u64 = 500_000_000;

/// Judges a world. `more` adds what the workload itself finds wrong.
pub(crate) fn judge(
    plan: &Plan,
    mut setting: Setting,
    mut left: ClientResults,
    stuck: Option<String>,
    more: &mut dyn FnMut(&mut Setting, &mut ClientResults, &mut Findings),
) -> Outcome {
    let (pair, mut found) = (setting.pair, Findings::default());
    found.add("stuck", stuck);
    found.add("offence", offences(&setting));
    found.add("broken", left.broken.iter().cloned());
    found.add("torn snapshot", left.torn.iter().cloned());
    // While a machine is away no shard keeps versions for it, and its clock may be behind when it
    // comes back.
    let far_apart = clocks_are_far_apart(setting.world.clock_error_ns());
    let crashed =
        setting.world.occurrences().iter().any(|occurrence| matches!(occurrence.fault, Fault::Crash(_)));
    let may_be_behind = crashed && setting.world.clock_error_ns() > 0;
    if pair.reads_at_snapshots() && left.read_only_aborts > 0 && !may_be_behind && !far_apart && !plan.logs {
        found.add("read-only abort", [format!("{} attempts at snapshots aborted", left.read_only_aborts)]);
    }
    if found.violations.is_empty() {
        found.add("lock left behind", locks(&setting));
        found.add("vote left behind", votes(&setting));
        found.add("transaction left behind", remembered(&setting));
        found.add("not kept", unkept(&setting));
        found.add("graph left behind", graphs(&setting));
        more(&mut setting, &mut left, &mut found);
        if pair.has_times() {
            found.add("garbage", drain(&mut setting));
        }
    }
    let mut installs = setting.take_installs();
    if pair.has_times() {
        found.add("stamp from the future", from_the_future(&setting, &installs));
    }
    found.add("copies differ", copies(&setting, &mut installs));
    let in_doubt = in_doubt(plan, &left, &installs);
    #[cfg(feature = "sql")]
    let committed = left.deeds.all.iter().filter(|deed| deed.how == append::End::Committed).count() as u64;
    #[cfg(not(feature = "sql"))]
    let committed = 0;
    if plan.workload.is_random() || plan.workload == WorkloadName::Pieces {
        let written: BTreeSet<TxnId> = in_doubt.iter().map(|transaction| transaction.id).collect();
        found.add("wrong value", random::wrong_values(&left, &installs, &written));
    }
    let mut outcome = setting.outcome();
    (outcome.transactions, outcome.lost) = (committed + left.transactions.len() as u64, left.lost);
    outcome.aborts = left.aborts + left.read_only_aborts;
    let complete = found.violations.is_empty();
    let mut transactions = std::mem::take(&mut left.transactions);
    transactions.extend(in_doubt);
    outcome.history = History { transactions, installs };
    let (history, error_ns) = (&mut outcome.history, outcome.clock_error_ns);
    judge_history(&setting, history, error_ns, plan.one_round, complete, &mut found);
    if let Some(online) = &setting.online {
        found.add("seen while it ran", online.borrow().violations().iter().cloned());
    }
    outcome.violations = found.violations;
    outcome.tables = setting.tables;
    outcome.appended = left.appended;
    #[cfg(feature = "sql")]
    {
        outcome.deeds = left.deeds;
    }
    outcome
}

/// Whether two clocks may have been so far apart, if the largest error of any was this, that one
/// machine does not believe the other's timestamps.
pub(crate) fn clocks_are_far_apart(clock_error_ns: u64) -> bool {
    2 * clock_error_ns > MAX_OFFSET_NS
}

/// Versions whose stamps are further ahead of the fastest clock than a shard believes of another
/// process. A transaction that overwrites one has to wait until the clocks are there.
fn from_the_future(setting: &Setting, installs: &[Vec<Install>]) -> Vec<String> {
    let world = &setting.world;
    let furthest = Timestamp(world.true_time().0 + world.clock_error_ns() + MAX_OFFSET_NS);
    let ahead = installs.iter().flatten().filter(|install| install.stamp > furthest);
    ahead.map(|install| format!("{:?} was installed at {:?}", install.txn, install.stamp)).collect()
}

/// Transactions that have committed although no client was told, for their client's machine has
/// crashed; under SQL all of them, for sessions tell answers and not transactions. What they have
/// read, and how much they wrote, is not known; that all of it is there is seen in lists
/// ([`lists`]), and where sums would be wrong.
fn in_doubt(plan: &Plan, left: &ClientResults, installs: &[Vec<Install>]) -> Vec<Transaction> {
    let has_scalars = plan.legal_pair().has_scalars();
    let known: BTreeSet<TxnId> = left.attempts.iter().filter_map(|tried| tried.id).collect();
    let told: BTreeSet<TxnId> = left.transactions.iter().map(|transaction| transaction.id).collect();
    let crashing = plan.mortal();
    let crashes = |shard: ShardId| crashing.contains(&plan.machine(shard.index()));
    // A procedure is noted when it is over.
    let unanswered = |id: TxnId| {
        crashes(id.coordinator) && !known.contains(&id)
            || left.in_doubt.contains(&id)
            || plan.workload.is_sql()
    };
    let installed: BTreeMap<TxnId, Timestamp> = (installs.iter().flatten())
        .filter(|install| !told.contains(&install.txn) && unanswered(install.txn))
        .map(|install| (install.txn, install.stamp))
        .collect();
    let transaction = |(session, (id, stamp))| Transaction {
        id,
        label: "in doubt",
        read_only: false,
        timestamp: has_scalars.then_some(stamp),
        session,
        begin: 0,
        end: u64::MAX,
        writes: None,
        reads: Vec::new(),
        scans: Vec::new(),
    };
    (u32::MAX / 2..).zip(installed).map(transaction).collect()
}

/// Whether timestamps increase along every dependency.
pub(crate) fn has_order(pair: Pair) -> bool {
    pair.has_scalars() && pair.has_snapshots()
}

#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) violations: Vec<Violation>,
}

impl Findings {
    pub(crate) fn add(&mut self, kind: &str, details: impl IntoIterator<Item = String>) {
        let told = details.into_iter().take(TOLD);
        self.violations.extend(told.map(|detail| Violation { kind: kind.to_owned(), detail }));
    }
}

/// The name of a column group.
pub(crate) fn name(tables: &[TableSpec], column: ColumnGroup) -> String {
    let spec = &tables[column.table.index()];
    match spec.groups.len() {
        1 => spec.name.clone(),
        _ => format!("{}.{}", spec.name, spec.groups[usize::from(column.group)]),
    }
}

fn judge_history(
    setting: &Setting,
    history: &mut History,
    clock_error_ns: u64,
    one_round: bool,
    complete: bool,
    found: &mut Findings,
) {
    let pair = setting.pair;
    let names = |column: ColumnGroup| name(&setting.tables, column);
    let snapshots = pair.has_snapshots();
    let mut check = |history: &History, options| {
        let report = plimsoll_checker::check(history, options, &names);
        let told = report.violations.into_iter();
        found
            .violations
            .extend(told.map(|told| Violation { kind: told.kind.to_owned(), detail: told.detail }));
    };
    if pair.has_times() {
        for transaction in &mut history.transactions {
            transaction.begin = transaction.begin.saturating_sub(2 * clock_error_ns);
        }
    }
    // What a session has seen may be ahead of the next clock it meets by as much as two clocks are
    // apart; by more than half a second it is cut down.
    let tokens_hold = !clocks_are_far_apart(clock_error_ns);
    let options = Options {
        scalar: has_order(pair),
        realtime: pair.has_times(),
        // Under 2PL an oracle's number tells nothing of what was only read.
        sessions: snapshots && if pair.has_times() { tokens_hold } else { !pair.has_locks() },
        complete,
    };
    check(history, options);
    if pair.has_times() {
        for transaction in &mut history.transactions {
            transaction.begin = transaction.begin.saturating_add(2 * clock_error_ns);
        }
    }
    // What reads at a snapshot need not be strict; what is validated is.
    let at_snapshot = |transaction: &mut Transaction| pair.reads_at_snapshots() && transaction.read_only;
    let lax: Vec<Transaction> = history.transactions.extract_if(.., at_snapshot).collect();
    // Within a session an answer comes before what begins in the same nanosecond.
    check(history, Options { realtime: !one_round, sessions: true, ..Options::default() });
    history.transactions.extend(lax);
}

/// What there is to tell of the shards that are up.
fn told_of(setting: &Setting, tell: impl Fn(u16, ShardStatus) -> Option<String>) -> Vec<String> {
    let status = |shard| setting.world.shard(shard).map(|shard| shard.status());
    setting.shards().filter_map(|shard| tell(shard.0, status(shard)?)).collect()
}

fn locks(setting: &Setting) -> Vec<String> {
    told_of(setting, |shard, ShardStatus { locks, .. }| {
        (locks > 0).then(|| format!("{locks} locks on shard {shard} although nobody runs"))
    })
}

fn votes(setting: &Setting) -> Vec<String> {
    told_of(setting, |shard, ShardStatus { votes, .. }| {
        (votes > 0).then(|| format!("shard {shard} remembers {votes} transactions that are settled"))
    })
}

fn remembered(setting: &Setting) -> Vec<String> {
    told_of(setting, |shard, ShardStatus { remembered, .. }| {
        let what = || format!("shard {shard} remembers {remembered} things of transactions that are over");
        (remembered > 0).then(what)
    })
}

/// Shards that have committed something above the cut, and the cut does not move.
fn unkept(setting: &Setting) -> Vec<String> {
    told_of(setting, |shard, status| {
        let (log, cut) = status.log.and_then(|log| Some((log.largest, log.cut?)))?;
        (log > cut).then(|| format!("shard {shard} has stamps up to {log:?}, and the cut is at {cut:?}"))
    })
}

/// Dependency graphs that are not empty although nobody runs.
fn graphs(setting: &Setting) -> Vec<String> {
    told_of(setting, |shard, status| {
        let graph = status.counters.graph;
        (graph != GraphSize::default()).then(|| format!("shard {shard} has {graph:?}"))
    })
}

/// Shards that were told what cannot be, as if another shard lied.
fn offences(setting: &Setting) -> Vec<String> {
    told_of(setting, |shard, status| {
        let offences = status.counters.offences;
        (offences > 0).then(|| format!("shard {shard} was told {offences} times what cannot be"))
    })
}

/// Copies of a table on different shards that have not got the same versions in the same order, or
/// do not end with the same rows. What was installed counts once, from the first copy.
fn copies(setting: &Setting, installs: &mut [Vec<Install>]) -> Vec<String> {
    let tables = setting.tables.clone();
    let copied = |table: TableId| tables[table.index()].partitioning == Partitioning::Everywhere;
    let holders: Vec<ShardId> = setting.placement.holders().collect();
    let differ = of_one_copy(&mut installs[..holders.len()], |column| copied(column.table));
    let mut differ: Vec<ShardId> = differ.into_iter().map(|position| ShardId(position as u16)).collect();
    let ids = (0..).map(TableId).take(tables.len());
    let ordered = |id: &TableId| copied(*id) && tables[id.index()].index == IndexKind::Ordered;
    for column in ids.filter(ordered).map(TableId::row) {
        let first = setting.world.newest_rows(ShardId(0), column);
        let differs = |&shard: &ShardId| setting.world.newest_rows(shard, column) != first;
        differ.extend(holders.iter().copied().filter(differs));
    }
    differ.iter().map(|shard| format!("shards 0 and {} have different copies of a table", shard.0)).collect()
}

/// What clients find at the very end, when nothing else runs.
pub(crate) fn last_look(plan: &Plan, setting: &mut Setting, left: &mut ClientResults, found: &mut Findings) {
    match plan.workload {
        WorkloadName::Random | WorkloadName::Reverse => match rewrite_all(setting) {
            Ok(transaction) => left.transactions.push(transaction),
            Err(why) => found.add("stuck", [why]),
        },
        WorkloadName::Append => found.add("lost or resurrected write", lists(setting, left)),
        _ => {}
    }
}

/// Reads and writes everything in one transaction, while nothing is in its way.
fn rewrite_all(setting: &mut Setting) -> Result<Transaction, String> {
    let began = setting.world.true_time().0;
    let done = setting.run_on(ShardId(0), |shard| async move {
        let mut result = random::rewrite_all(&*shard).await;
        // An insert that was undone may be in the way under OCC, until it is collected. A lock
        // would stay.
        for _ in 0..20 {
            if result.is_ok() {
                break;
            }
            shard.sleep(1_000_000).await;
            result = random::rewrite_all(&*shard).await;
        }
        result
    });
    let committed = match done {
        Some(Ok(committed)) => committed,
        Some(Err(abort)) => return Err(format!("rewriting everything aborts although nobody runs: {abort}")),
        None => return Err("rewriting everything waits although nobody runs".to_owned()),
    };
    let end = setting.world.true_time().0;
    setting.rest();
    let recorded = committed.recorded.map(|recorded| *recorded).unwrap_or_default();
    Ok(Transaction {
        id: committed.id,
        label: "rewrite all",
        read_only: false,
        timestamp: committed.stamp.filter(|_| setting.pair.has_scalars()),
        session: u32::MAX,
        begin: began,
        end,
        writes: Some(committed.writes as u32),
        reads: recorded.reads,
        scans: recorded.scans,
    })
}

/// Every list holds what committed transactions appended, each number once, and nothing else; of
/// what an attempt appended that was not answered all or nothing is there. This last look at them
/// is an attempt like the others.
fn lists(setting: &mut Setting, left: &mut ClientResults) -> Vec<String> {
    let mut expected: BTreeMap<(u64, u64), i32> = BTreeMap::new();
    let mut in_doubt: Vec<Vec<(u64, u64)>> = Vec::new();
    for attempted in &left.appended {
        let appended = attempted.operations.iter().filter_map(|operation| match *operation {
            append::Operation::Append(list, number) => Some((list, number)),
            append::Operation::Read(..) => None,
        });
        match attempted.how {
            append::End::Committed => expected.extend(appended.map(|append| (append, 1))),
            append::End::Unknown => in_doubt.push(appended.collect()),
            append::End::Aborted => {}
        }
    }
    let settled_ns = setting.settled_ns();
    let begin = setting.world.true_time().0 + settled_ns;
    let read = setting.run_on(ShardId(0), move |shard| async move {
        shard.sleep(settled_ns).await;
        loop {
            let attempt = Attempt { age: shard.clock().0, ..Attempt::default() };
            if let Ok(lists) = append::read_all(&*shard, attempt).await {
                return lists;
            }
            shard.sleep(1_000_000).await;
        }
    });
    let Some(lists) = read else { return vec!["the lists cannot be read although nobody runs".to_owned()] };
    left.appended.push(append::Attempted {
        session: left.appended.iter().map(|attempted| attempted.session + 1).max().unwrap_or_default(),
        begin,
        end: setting.world.true_time().0,
        how: append::End::Committed,
        snapshot: true,
        timestamp: None,
        operations: lists
            .iter()
            .map(|(list, numbers)| append::Operation::Read(*list, numbers.clone()))
            .collect(),
    });
    for (list, numbers) in lists {
        for number in numbers {
            *expected.entry((list, number)).or_default() -= 1;
        }
    }
    let mut wrong = Vec::new();
    for doubtful in in_doubt {
        let (there, missing): (Vec<_>, Vec<_>) =
            doubtful.iter().partition(|append| expected.contains_key(append));
        if let (Some((list, number)), Some((other, lost))) = (there.first(), missing.first()) {
            wrong.push(format!(
                "one attempt, which was not answered, appended {number:x} to list {list}, which is there, and {lost:x} to \
                 list {other}, which is not"
            ));
        }
        there.iter().for_each(|append| *expected.entry(*append).or_default() += 1);
    }
    wrong.extend(expected.into_iter().filter(|(_, missing)| *missing != 0).map(
        |((list, number), missing)| match missing {
            1 => format!("{number:x} was appended to list {list} and acknowledged, and is not there"),
            _ => format!("{number:x} stands {} times too often in list {list}", -missing),
        },
    ));
    wrong
}

/// Garbage that is left although nothing runs any more, and every clock has passed what the fastest
/// has stamped.
fn drain(setting: &mut Setting) -> Vec<String> {
    let mut left = Vec::new();
    let until_ns = setting.world.now() + setting.settled_ns() + DRAIN_NS;
    while setting.world.now() < until_ns {
        for shard in setting.shards() {
            setting.run_on(shard, |shard| async move { shard.sleep(1_000_000).await });
        }
        left = told_of(setting, |shard, status| {
            let garbage = status.garbage + status.kept;
            (garbage > 0).then(|| format!("{garbage} entries on shard {shard} are not collected"))
        });
        if left.is_empty() {
            break;
        }
    }
    left
}
