//! What must hold when a world has come to rest.
//!
//! * Everybody is done, no lock, no vote and no dependency graph is left, nobody was told what cannot be, and under DST all
//!   garbage goes.
//! * What clients saw for themselves was right: sums, rings, values, numbers drawn once; read-only transactions at
//!   snapshots never aborted.
//! * Everything can still be read and written; what was appended is there once, what was not is not.
//! * The recorded history is serializable, with timestamps in the order of every dependency if the scheme has
//!   scalar ones (I1, I2, I4), in sessions (at snapshots under DST, unless clocks are further apart than tokens are believed),
//!   and *read-write transactions are strict*: who begins after another was
//!   answered comes after it, whatever the clocks say. So are read-only ones that are validated. The one-round commit of OCC
//!   promises that only of who begins 2ε later, as all promise it of timestamps.
//! * And what was seen of that while the world ran (`online.rs`).
//! * Copies of a table have got the same versions in the same order, and hold the same rows.
//! * Under DST, *freshness*: a snapshot contains everything that was answered before it began, less its staleness, less
//!   twice the largest clock error ε of the run. For it is at least what the reader's clock shows, a writer is answered
//!   once its own shows the timestamp, and both are at most ε wrong. Checked by recording all beginnings 2ε earlier.

use plimsoll_runtime::Tasks;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use plimsoll_checker::Options;
use plimsoll_runtime::ShardEnv;
use plimsoll_runtime::sim::Fault;
use plimsoll_store::Visited;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::base::GraphSize;
use plimsoll_txn::pairs::{InteractivePair, LegalPair};
use plimsoll_txn::timestamp::{MAX_OFFSET_NS, ReadOnly, Scheme};
use plimsoll_types::history::{History, Install, Transaction, of_one_copy};
use plimsoll_types::{
    ColumnGroup, IndexKind, Key, Partitioning, ShardId, TableId, TableSpec, Timestamp, TxnId,
};

use crate::client::Left;
use crate::plan::{Plan, WorkloadName};
use crate::run::{Outcome, Setting, Violation};
use crate::workload::{append, random};

/// Violations of one kind that are spelled out.
const TOLD: usize = 3;
/// Virtual time in which shards tell each other their watermarks, and collect what is garbage.
const DRAIN_NS: u64 = 500_000_000;

/// Judges a world. `more` adds what the workload itself finds wrong.
pub(crate) fn judge<P: LegalPair>(
    plan: &Plan,
    mut setting: Setting<P>,
    mut left: Left,
    stuck: Option<String>,
    more: &mut dyn FnMut(&mut Setting<P>, &mut Left, &mut Found),
) -> Outcome {
    let mut found = Found::default();
    found.add("stuck", stuck);
    found.add("offence", offences(&mut setting));
    found.add("broken", left.broken.iter().cloned());
    found.add("torn snapshot", left.torn.iter().cloned());
    // While a machine is away nobody keeps versions for it, and its clock may be behind when it comes back.
    let crashed =
        setting.world.occurrences().iter().any(|occurrence| matches!(occurrence.fault, Fault::Crash(_)));
    let may_be_behind = crashed && setting.world.clock_error_ns() > 0;
    if P::Scheme::READ_ONLY == ReadOnly::Snapshot && left.read_only_aborts > 0 && !may_be_behind {
        found.add("read-only abort", [format!("{} attempts at snapshots aborted", left.read_only_aborts)]);
    }
    if found.violations.is_empty() {
        found.add("lock left behind", locks(&mut setting));
        found.add("vote left behind", votes(&mut setting));
        found.add("transaction left behind", remembered(&mut setting));
        found.add("graph left behind", graphs(&mut setting));
        more(&mut setting, &mut left, &mut found);
        if P::Scheme::WAITS {
            found.add("garbage", drain(&mut setting));
        }
    }
    let mut installs: Vec<Vec<Install>> = setting
        .shards()
        .map(|shard| {
            let taken = setting.world.node(shard, |node| node.base().installs.take());
            taken.flatten().unwrap_or_default()
        })
        .collect();
    found.add("copies differ", copies(&mut setting, &mut installs));
    let in_doubt = in_doubt::<P>(plan, &left, &installs);
    if matches!(plan.workload, WorkloadName::Random | WorkloadName::Pieces) {
        let written: BTreeSet<TxnId> = in_doubt.iter().map(|transaction| transaction.id).collect();
        found.add("wrong value", random::wrong_values(&left, &installs, &written));
    }
    let mut outcome = setting.outcome();
    outcome.transactions = left.transactions.len() as u64;
    outcome.aborts = left.aborts + left.read_only_aborts;
    let complete = found.violations.is_empty();
    let mut transactions = std::mem::take(&mut left.transactions);
    transactions.extend(in_doubt);
    outcome.history = History { transactions, installs };
    let (history, error_ns) = (&mut outcome.history, outcome.clock_error_ns);
    judge_history::<P>(&setting, history, error_ns, plan.one_round, complete, &mut found);
    if let Some(online) = &setting.online {
        found.add("seen while it ran", online.borrow().violations().iter().cloned());
    }
    outcome.violations = found.violations;
    outcome.tables = setting.tables;
    outcome.appended = left.appended;
    outcome
}

/// Transactions that have committed although nobody was told, for their client's machine has crashed. What they have
/// read, and how much they wrote, is not known; that all of it is there is seen in lists ([`lists`]), and where sums would be wrong.
fn in_doubt<P: LegalPair>(plan: &Plan, left: &Left, installs: &[Vec<Install>]) -> Vec<Transaction> {
    let known: BTreeSet<TxnId> = left.attempts.iter().filter_map(|tried| tried.id).collect();
    let told: BTreeSet<TxnId> = left.transactions.iter().map(|transaction| transaction.id).collect();
    let crashing = plan.crashing();
    let crashes =
        |shard: ShardId| crashing.contains(&(shard.index() / plan.hardware.shards_per_machine as usize));
    // A procedure is noted when it is over.
    let unanswered =
        |id: TxnId| crashes(id.coordinator) && !known.contains(&id) || left.in_doubt.contains(&id);
    let installed: BTreeMap<TxnId, Timestamp> = (installs.iter().flatten())
        .filter(|install| !told.contains(&install.txn) && unanswered(install.txn))
        .map(|install| (install.txn, install.stamp))
        .collect();
    let transaction = |(session, (id, stamp))| Transaction {
        id,
        label: "in doubt",
        read_only: false,
        timestamp: P::Scheme::SCALAR.then_some(stamp),
        session,
        begin: 0,
        end: u64::MAX,
        writes: None,
        reads: Vec::new(),
        scans: Vec::new(),
    };
    (u32::MAX / 2..).zip(installed).map(transaction).collect()
}

fn has_snapshots<P: LegalPair>() -> bool {
    P::Scheme::READ_ONLY == ReadOnly::Snapshot && P::Scheme::SERIALIZABLE
}

/// Whether timestamps increase along every dependency.
pub(crate) fn has_order<P: LegalPair>() -> bool {
    P::Scheme::SCALAR && has_snapshots::<P>()
}

#[derive(Default)]
pub(crate) struct Found {
    pub(crate) violations: Vec<Violation>,
}

impl Found {
    fn add(&mut self, kind: &str, details: impl IntoIterator<Item = String>) {
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

fn judge_history<P: LegalPair>(
    setting: &Setting<P>,
    history: &mut History,
    clock_error_ns: u64,
    one_round: bool,
    complete: bool,
    found: &mut Found,
) {
    let names = |column: ColumnGroup| name(&setting.tables, column);
    let snapshots = has_snapshots::<P>();
    let mut check = |history: &History, options| {
        let report = plimsoll_checker::check(history, options, &names);
        let told = report.violations.into_iter();
        found
            .violations
            .extend(told.map(|told| Violation { kind: told.kind.to_owned(), detail: told.detail }));
    };
    if P::Scheme::WAITS {
        for transaction in &mut history.transactions {
            transaction.begin = transaction.begin.saturating_sub(2 * clock_error_ns);
        }
    }
    // What a session has seen may be ahead of the next clock it meets by as much as two clocks are apart; by more than half a
    // second it is cut down.
    let tokens_hold = 2 * clock_error_ns <= MAX_OFFSET_NS;
    let options = Options {
        scalar: has_order::<P>(),
        realtime: P::Scheme::WAITS,
        // Under 2PL an oracle's number tells nothing of what was only read.
        sessions: snapshots && if P::Scheme::WAITS { tokens_hold } else { !P::LOCKS },
        complete,
    };
    check(history, options);
    if P::Scheme::WAITS {
        for transaction in &mut history.transactions {
            transaction.begin = transaction.begin.saturating_add(2 * clock_error_ns);
        }
    }
    // What reads at a snapshot need not be strict; what is validated is.
    let at_snapshot =
        |transaction: &mut Transaction| P::Scheme::READ_ONLY == ReadOnly::Snapshot && transaction.read_only;
    let lax: Vec<Transaction> = history.transactions.extract_if(.., at_snapshot).collect();
    // Within a session an answer comes before what begins in the same nanosecond.
    check(history, Options { realtime: !one_round, sessions: true, ..Options::default() });
    history.transactions.extend(lax);
}

fn locks<P: LegalPair>(setting: &mut Setting<P>) -> Vec<String> {
    let mut left = Vec::new();
    for shard in setting.shards() {
        let locks = setting.world.node(shard, |node| node.base().store.locks()).unwrap_or_default();
        if locks > 0 {
            left.push(format!("{locks} locks on shard {} although nobody runs", shard.0));
        }
    }
    left
}

fn votes<P: LegalPair>(setting: &mut Setting<P>) -> Vec<String> {
    let mut left = Vec::new();
    for shard in setting.shards() {
        let votes = setting.world.node(shard, |node| node.base().votes()).unwrap_or_default();
        if votes > 0 {
            left.push(format!("shard {} remembers {votes} transactions that are settled", shard.0));
        }
    }
    left
}

fn remembered<P: LegalPair>(setting: &mut Setting<P>) -> Vec<String> {
    let mut left = Vec::new();
    for shard in setting.shards() {
        let remembered = setting.world.node(shard, |node| node.remembered()).unwrap_or_default();
        if remembered > 0 {
            left.push(format!(
                "shard {} remembers {remembered} things of transactions that are over",
                shard.0
            ));
        }
    }
    left
}

/// Dependency graphs that are not empty although nobody runs.
fn graphs<P: LegalPair>(setting: &mut Setting<P>) -> Vec<String> {
    let mut left = Vec::new();
    for shard in setting.shards() {
        let counters = setting.world.node(shard, |node| node.base().counters);
        let graph = counters.map_or_else(GraphSize::default, |counters| counters.graph);
        if graph != GraphSize::default() {
            left.push(format!("shard {} has {graph:?}", shard.0));
        }
    }
    left
}

/// Shards that were told what cannot be, as if anybody lied.
fn offences<P: LegalPair>(setting: &mut Setting<P>) -> Vec<String> {
    let mut told = Vec::new();
    for shard in setting.shards() {
        let counters = setting.world.node(shard, |node| node.base().counters);
        let offences = counters.map_or(0, |counters| counters.offences);
        if offences > 0 {
            told.push(format!("shard {} was told {offences} times what cannot be", shard.0));
        }
    }
    told
}

/// Copies of a table on different shards that have not got the same versions in the same order, or do not end with the same
/// rows. What was installed counts once, from the first copy.
fn copies<P: LegalPair>(setting: &mut Setting<P>, installs: &mut [Vec<Install>]) -> Vec<String> {
    let tables = setting.tables.clone();
    let copied = |table: TableId| tables[table.index()].partitioning == Partitioning::Everywhere;
    let holders: Vec<ShardId> = setting.placement.holders().collect();
    let differ = of_one_copy(&mut installs[..holders.len()], |column| copied(column.table));
    let mut differ: Vec<ShardId> = differ.into_iter().map(|position| ShardId(position as u16)).collect();
    let ids = (0..).map(TableId).take(tables.len());
    let ordered = |id: &TableId| copied(*id) && tables[id.index()].index == IndexKind::Ordered;
    for column in ids.filter(ordered).map(TableId::row) {
        let rows = |shard| {
            setting.world.node(shard, |node| {
                let mut rows = Vec::new();
                node.base().store.scan(column.table, &Key::MIN, None, |found, visited| {
                    if let Visited::Row(row) = visited
                        && let Some(value) = found.newest(row, column.group).map(<[u8]>::to_vec)
                    {
                        rows.push((found.key(row), found.record(row, column.group).stamp(), value));
                    }
                    ControlFlow::Continue(())
                });
                rows
            })
        };
        let first = rows(ShardId(0));
        differ.extend(holders.iter().copied().filter(|&shard| rows(shard) != first));
    }
    differ.iter().map(|shard| format!("shards 0 and {} have different copies of a table", shard.0)).collect()
}

/// What clients find at the very end, when nobody else is about.
pub(crate) fn last_look<P: InteractivePair>(
    plan: &Plan,
    setting: &mut Setting<P>,
    left: &mut Left,
    found: &mut Found,
) {
    match plan.workload {
        WorkloadName::Random => match rewrite_all(setting) {
            Ok(transaction) => left.transactions.push(transaction),
            Err(why) => found.add("stuck", [why]),
        },
        WorkloadName::Append => found.add("lost or resurrected write", lists(setting, left)),
        _ => {}
    }
}

/// Reads and writes everything in one transaction, which nobody is in the way of.
fn rewrite_all<P: InteractivePair>(setting: &mut Setting<P>) -> Result<Transaction, String> {
    let began = setting.world.true_time().0;
    let done = setting.run_on(ShardId(0), |env: ShardEnv<P>| async move {
        let mut result = random::rewrite_all(&env).await;
        // An insert that was undone may be in the way under OCC, until it is collected. A lock would stay.
        for _ in 0..20 {
            if result.is_ok() {
                break;
            }
            env.sleep(1_000_000).await;
            result = random::rewrite_all(&env).await;
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
        timestamp: committed.stamp.filter(|_| P::Scheme::SCALAR),
        session: u32::MAX,
        begin: began,
        end,
        writes: Some(committed.writes as u32),
        reads: recorded.reads,
        scans: recorded.scans,
    })
}

/// Every list holds what committed transactions appended, each number once, and nothing else; of what an attempt appended that was
/// not answered all or nothing is there. This last look at them is an attempt like the others.
fn lists<P: InteractivePair>(setting: &mut Setting<P>, left: &mut Left) -> Vec<String> {
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
    let read = setting.run_on(ShardId(0), move |env: ShardEnv<P>| async move {
        env.sleep(settled_ns).await;
        loop {
            let attempt = Attempt { age: env.clock().0, ..Attempt::default() };
            if let Ok(lists) = append::read_all(&env, attempt).await {
                return lists;
            }
            env.sleep(1_000_000).await;
        }
    });
    let Some(lists) = read else { return vec!["the lists cannot be read although nobody runs".to_owned()] };
    left.appended.push(append::Attempted {
        session: left.appended.iter().map(|attempted| attempted.session + 1).max().unwrap_or_default(),
        begin,
        end: setting.world.true_time().0,
        how: append::End::Committed,
        snapshot: true,
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

/// Garbage that is left although nothing runs any more, and every clock has passed what the fastest has stamped.
fn drain<P: LegalPair>(setting: &mut Setting<P>) -> Vec<String> {
    let mut left = Vec::new();
    let until_ns = setting.world.now() + setting.settled_ns() + DRAIN_NS;
    while setting.world.now() < until_ns {
        for shard in setting.shards() {
            setting.run_on(shard, |env: ShardEnv<P>| async move { env.sleep(1_000_000).await });
        }
        left.clear();
        for shard in setting.shards() {
            let garbage = setting.world.node(shard, |node| node.base().store.garbage()).unwrap_or_default();
            if garbage > 0 {
                left.push(format!("{garbage} entries on shard {} are not collected", shard.0));
            }
        }
        if left.is_empty() {
            break;
        }
    }
    left
}
