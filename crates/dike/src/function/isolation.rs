//! Isolation: a history of transactions over lists, and a judge that names what is wrong with it.
//!
//! Sessions run transactions of a few reads and appends over a few lists ([Kingsbury and Alvaro,
//! *Elle*, VLDB 2020](https://vldb.org/pvldb/vol14/p268-alvaro.pdf)). Every number is appended
//! once, so that a list that is read tells whose appends had happened before, and in which order.
//! From that [`judge`](super::judge) finds who depends on whom, and cycles.
//!
//! A transaction appends by `UPDATE ... SET l_numbers = l_numbers || ',7'`, in the order of its
//! lists, so that appends alone make no deadlocks. It appends to a list at most once, and does not
//! read one that it has appended to. A third only read. The last thing a transaction does may be to
//! read its first list again.
//!
//! A hundred transactions share a generation of lists and then go on to the next, because a list
//! that is read as a whole must stay short. No transaction has lists of two generations, so each
//! generation is a history of its own: however wrong one is, the judge looks at every knot in it.
//!
//! Left out: predicates and thus phantoms, deletes, real time (a snapshot from the past passes).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use plimsoll_types::random::Rng;

use super::attempts::{Attempt, End, Operation};
use super::{RETRY_AFTER, Tested, Verdict, insist, judge, reach, recover};
use crate::config::Config;
use crate::load::LoadError;
use crate::target::{Cause, Connector, Failure, Session, Statement, Value};

/// Transactions of a generation of lists.
const OF_GENERATION: u64 = 100;
/// Generations: when the last one is over, so is the test.
const GENERATIONS: u64 = 2000;
/// Lists that are made by one statement, before the test begins.
const LISTS_OF_INSERT: u64 = 1000;

/// What sessions share.
struct Shared {
    connector: Connector,
    lists: u64,
    begun: Instant,
    until: Instant,
    bound: Duration,
    stop: Arc<AtomicBool>,
    /// Transactions begun.
    transactions: AtomicU64,
    /// Numbers appended.
    numbers: AtomicU64,
}

/// Runs transactions over lists and judges them. Returns the history as well, for other judges.
pub async fn test(
    config: &Config,
    connector: &Connector,
    stop: &Arc<AtomicBool>,
) -> Result<(Tested, Vec<Attempt>), LoadError> {
    let mut session = connector.upkeep().connect(0).await?;
    let lists = u64::from(config.test.lists);
    session.text("DELETE FROM dike_list").await?;
    for first in (0..GENERATIONS * lists).step_by(LISTS_OF_INSERT as usize) {
        let rows = first..(first + LISTS_OF_INSERT).min(GENERATIONS * lists);
        let rows = rows.map(|list| format!("({list}, '')")).collect::<Vec<_>>().join(", ");
        session.text(&format!("INSERT INTO dike_list (l_id, l_numbers) VALUES {rows}")).await?;
    }
    let now = Instant::now();
    let shared = Arc::new(Shared {
        connector: connector.clone(),
        lists,
        begun: now,
        until: now + Duration::from_secs_f64(config.test.duration_s),
        bound: Duration::from_secs_f64(config.test.bound_s),
        stop: stop.clone(),
        transactions: AtomicU64::new(0),
        numbers: AtomicU64::new(1),
    });
    let tasks: Vec<_> = (0..config.test.sessions)
        .map(|number| {
            let rng = Rng::new(config.run.seed, u64::MAX - 2 - u64::from(number));
            tokio::spawn(work(shared.clone(), number, rng))
        })
        .collect();
    let mut attempts = Vec::new();
    let mut outages = 0;
    for task in tasks {
        let (of_session, broken) = task.await.map_err(|error| Failure::unexpected(error.to_string()))??;
        attempts.extend(of_session);
        outages += broken;
    }
    let of = |end| attempts.iter().filter(|attempt| attempt.end == end).count() as f64;
    let mut figures = BTreeMap::from([
        ("committed", of(End::Committed)),
        ("aborted", of(End::Aborted)),
        ("in_doubt", of(End::Unknown)),
        ("outages", outages as f64),
    ]);

    let mut last: BTreeMap<u64, BTreeMap<u64, Vec<u64>>> = BTreeMap::new();
    match insist(connector, shared.bound, async |session| settled(session).await).await {
        Ok(all) => {
            all.into_iter().for_each(|(list, numbers)| {
                last.entry(list / lists).or_default().insert(list, numbers);
            });
        }
        Err(failure) if !failure.cause.is_permanent() => {
            let says = "the database was not there in the end".to_owned();
            let details = vec![format!("what the lists hold could not be read: {failure}")];
            let verdict = Verdict::Inconclusive;
            return Ok((Tested { test: "isolation", verdict, says, details, figures }, attempts));
        }
        Err(failure) => return Err(failure.into()),
    }
    let mut generations: BTreeMap<u64, Vec<Attempt>> = BTreeMap::new();
    for attempt in &attempts {
        if let Some(Operation::Append(list, _) | Operation::Read(list, _)) = attempt.operations.first() {
            generations.entry(list / lists).or_default().push(attempt.clone());
        }
    }
    let mut judgement = judge::Judgement::default();
    for (generation, attempts) in &generations {
        judgement.merge(judge::judge(attempts, last.get(generation).unwrap_or(&BTreeMap::new())));
    }
    let promised = judge::promised(config.target.isolation);
    let seen = judgement.level();
    let (verdict, says) = match promised {
        Some(promised) if seen < promised => (
            Verdict::Failed,
            format!("{} was promised, and what was seen is {}", promised.name(), seen.name()),
        ),
        _ if judgement.dependencies == 0 && judgement.totals.is_empty() => {
            (Verdict::Inconclusive, "no transaction depends on another".to_owned())
        }
        Some(promised) => {
            (Verdict::Passed, format!("{} was promised; what was seen is {}", promised.name(), seen.name()))
        }
        None => (Verdict::Passed, format!("nothing was promised; what was seen is {}", seen.name())),
    };
    let counts = judgement.totals.iter().map(|(kind, count)| format!("{kind}: {count}"));
    let details = counts.chain(judgement.examples.iter().cloned()).collect();
    figures.insert("dependencies", judgement.dependencies as f64);
    Ok((Tested { test: "isolation", verdict, says, details, figures }, attempts))
}

/// What all lists hold that are not empty, when two looks in a row agree: a transaction in doubt
/// may still be on its way.
async fn settled(session: &mut Session) -> Result<BTreeMap<u64, Vec<u64>>, Failure> {
    let mut before = None;
    loop {
        let mut lists = BTreeMap::new();
        for row in session.text("SELECT l_id, l_numbers FROM dike_list WHERE l_numbers <> ''").await? {
            if let [Some(list), Some(text)] = &row[..] {
                let number = list.parse();
                let list = number.map_err(|_| Failure::unexpected(format!("a list is called {list:?}")))?;
                lists.insert(list, numbers(text)?);
            }
        }
        if before.as_ref() == Some(&lists) {
            return Ok(lists);
        }
        before = Some(lists);
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

/// The numbers of a list: `,3,7` holds 3 and 7.
fn numbers(text: &str) -> Result<Vec<u64>, Failure> {
    let number = |part: &str| part.parse().map_err(|_| Failure::unexpected(format!("a list holds {part:?}")));
    text.split(',').skip(1).map(number).collect()
}

/// A session: its attempts, and how many of them ended in an outage.
async fn work(shared: Arc<Shared>, number: u32, mut rng: Rng) -> Result<(Vec<Attempt>, u64), LoadError> {
    let (mut attempts, mut outages) = (Vec::new(), 0);
    let Shared { connector, stop, .. } = &*shared;
    let (bound, until, endpoint) = (shared.bound, shared.until, number as usize);
    let Some(mut session) = reach(connector, endpoint, until, stop).await? else {
        return Ok((attempts, outages));
    };
    while Instant::now() < until && !stop.load(Relaxed) {
        let generation = shared.transactions.fetch_add(1, Relaxed) / OF_GENERATION;
        if generation >= GENERATIONS {
            break;
        }
        let read_only = rng.below(3) == 0;
        let plan = plan(&shared, generation, read_only, &mut rng);
        let begin_ns = shared.begun.elapsed().as_nanos() as u64;
        let mut operations = Vec::new();
        let attempted = tokio::time::timeout(bound, attempt(&mut session, read_only, &plan, &mut operations));
        let result = attempted.await.unwrap_or_else(|_| Err(session.timed_out(bound)));
        let end = match &result {
            Ok(()) => End::Committed,
            // Before COMMIT was sent nothing can have committed, whatever has failed.
            Err(failure) if failure.cause == Cause::InDoubt => End::Unknown,
            Err(_) => End::Aborted,
        };
        let end_ns = shared.begun.elapsed().as_nanos() as u64;
        attempts.push(Attempt { session: number, begin_ns, end_ns, end, read_only, operations });
        if let Err(failure) = result {
            if failure.cause.is_permanent() {
                return Err(failure.into());
            }
            outages += u64::from(failure.ends_connection());
            match recover(connector, endpoint, session, &failure, bound, until, stop).await? {
                Some(ready) => session = ready,
                None => break,
            }
        }
    }
    Ok((attempts, outages))
}

/// One step of a transaction: a list, and the number to append to it; none to read it.
type Step = (u64, Option<u64>);

fn plan(shared: &Shared, generation: u64, read_only: bool, rng: &mut Rng) -> Vec<Step> {
    let count = 2 + rng.below(3.min(shared.lists - 1)) as usize;
    let mut lists: Vec<u32> = rng.permutation(shared.lists as u32);
    lists.truncate(count);
    lists.sort_unstable();
    let mut steps: Vec<Step> = Vec::with_capacity(count + 1);
    for list in lists {
        let append = !read_only && rng.below(2) == 0;
        let number = append.then(|| shared.numbers.fetch_add(1, Relaxed));
        steps.push((generation * shared.lists + u64::from(list) - 1, number));
    }
    match steps[0] {
        (list, None) if rng.below(3) == 0 => steps.push((list, None)),
        _ => {}
    }
    steps
}

async fn attempt(
    session: &mut Session,
    read_only: bool,
    plan: &[Step],
    operations: &mut Vec<Operation>,
) -> Result<(), Failure> {
    session.begin(read_only);
    for &(list, number) in plan {
        let key = Value::Int(list as i64);
        match number {
            None => {
                let answer = session.run_one(Statement::ReadList, &[key]).await?;
                operations.push(Operation::Read(list, numbers(answer.one()?.text(0)?)?));
            }
            Some(number) => {
                // What is on its way may have happened.
                operations.push(Operation::Append(list, number));
                let text = format!(",{number}");
                session.run_one(Statement::AppendList, &[Value::Text(&text), key]).await?.changed(1)?;
            }
        }
    }
    session.commit().await
}
