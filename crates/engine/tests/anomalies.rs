//! One script per anomaly, played by hand against every protocol × timestamp scheme, on one shard
//! and on two.
//!
//! A script in `tests/anomalies` names the steps of a few interactive transactions in the order in
//! which they are issued. After a line `--` stands what came of it, once for each group of setups
//! with the same outcome. Its lines:
//!
//! ```text
//! # Prose.
//! load: x@0=1, list/10@1=a       rows that are there from the start
//! never: t1 t2                   these never commit all, whatever the setup
//! rc: long fork (G2-item)        the anomaly that RC must show here, and the checker must see; else none
//! t1: begin                      a read-write transaction, coordinated on shard 0
//! t2: begin readonly on 1        a read-only one, on shard 1
//! t1: get x@0, put y@1=2         steps of one session
//! t1: insert list/20@0=b         Abort::User if the row exists
//! t1: delete x@0
//! t1: scan list                  all rows of an ordered table, on all shards
//! t1: scan list@1 10..30 limit 2 some rows of one partition
//! t1: scan list down limit 1     from the last row to the first
//! t1: commit                     or `rollback`
//! ```
//!
//! A row is `table/name@partition`; partition p lies on shard p modulo the number of shards, so on
//! two shards @0 is on the first and @1 on the second. Rows without a table are in the hash table
//! `point`. `list` and `index` are ordered.
//!
//! *Waiting.* A step is issued as a task of the session's shard. Then all shards are made to take
//! passes until nothing moves any more: no step was answered and no message sent for several
//! rounds. A step that has no answer by then `waits`; what its session is to do next waits behind
//! it. Nothing here depends on a time-out, so the outcome is the same on a slow machine. A session
//! that was aborted says nothing more.
//!
//! *Freshness.* A snapshot from an oracle may miss what has just been committed. Sessions share one
//! token: whoever begins sees all that was answered before. DST gets no token, for it needs none
//! within one process.
//!
//! *Verdict.* At the end a last transaction reads all rows, which must be possible at once: no lock
//! was left behind. The whole history goes to the checker. What is serializable must pass, and what
//! RC shows is declared. The outcomes say nothing of timestamps, only what clients see.
//!
//! With `UPDATE_SCRIPTS=1` in the environment the outcomes are rewritten instead; read the
//! difference. The verdict must hold all the same.
//!
//! Left out: what only interleavings within a step can show; `random.rs` looks for those.

mod common;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};

use common::{PROTOCOLS, SCHEMES, Setup};
use plimsoll_engine::Engine;
use plimsoll_txn::any_shard::{AnyShard, InteractiveShard, TransactionHandle};
use plimsoll_txn::attempt::{Attempt, Committed};
use plimsoll_txn::procedure::Scan;
use plimsoll_txn::timestamp::Freshness;
use plimsoll_types::history::Transaction as Recorded;
use plimsoll_types::{Abort, IndexKind, Key, Partitioning, ShardId, TableId, TableSpec, Timestamp};

macro_rules! scripts {
    ($($test:ident: $file:literal,)*) => {
        $(#[test] fn $test() { play($file); })*
        const FILES: &[&str] = &[$($file),*];
    };
}

scripts! {
    nobody_reads_what_is_not_committed: "dirty_read",
    nobody_reads_what_was_rolled_back: "aborted_read",
    two_writers_of_two_records_agree_on_their_order: "dirty_write",
    an_update_of_what_was_read_is_not_lost: "lost_update",
    a_blind_write_is_not_an_update: "blind_write",
    a_reader_reads_the_same_twice: "non_repeatable_read",
    a_writer_reads_the_same_twice_or_does_not_commit: "repeatable_read",
    two_that_write_what_the_other_read_do_not_both_commit: "write_skew",
    a_transfer_is_seen_whole_or_not_at_all: "transfer",
    what_depends_on_a_transaction_is_not_seen_without_it: "read_skew",
    no_row_appears_in_a_scanned_range: "phantom_insert",
    no_row_disappears_from_a_scanned_range: "phantom_delete",
    a_read_only_scan_is_a_snapshot: "phantom_snapshot",
    two_that_insert_what_the_other_looked_for_do_not_both_commit: "phantom_write_skew",
    a_row_beyond_the_limit_of_a_scan_is_not_a_phantom: "phantom_limit",
    a_scan_from_the_end_sees_the_transactions_own_writes: "reverse_own_writes",
    no_row_appears_in_a_range_scanned_from_its_end: "reverse_phantom",
    a_read_only_scan_from_the_end_is_a_snapshot: "reverse_snapshot",
    two_that_append_behind_the_same_last_row_do_not_both_commit: "reverse_write_skew",
    a_row_before_those_that_a_scan_from_the_end_has_read_is_not_a_phantom: "reverse_limit",
    readers_agree_on_the_order_of_independent_writers: "long_fork",
    a_reader_does_not_break_what_is_serializable_without_it: "read_only_anomaly",
    a_row_that_two_found_absent_is_inserted_once: "absent_insert",
    a_row_found_absent_stays_absent: "absent_write_skew",
    a_deleted_row_can_be_inserted_again: "delete_insert",
    a_row_inserted_again_is_not_the_one_that_was_read: "delete_insert_read",
    a_transaction_reads_its_own_writes: "own_writes",
    a_read_only_transaction_commits_while_writers_do: "read_only",
    a_row_is_inserted_once: "existing_key",
    an_index_and_its_rows_agree: "index",
    a_rolled_back_transaction_leaves_nothing_behind: "rollback",
}

#[test]
fn every_script_is_played() {
    for entry in std::fs::read_dir(folder()).expect("the scripts are there") {
        let path = entry.expect("the folder can be read").path();
        let name =
            path.file_stem().and_then(|name| name.to_str()).expect("scripts have plain names").to_owned();
        assert!(FILES.contains(&name.as_str()), "no test plays {name}");
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/anomalies")
}

/// Plays a script in every setup and compares the outcomes with those in its file.
fn play(name: &str) {
    let path = folder().join(name).with_extension("txt");
    let text = std::fs::read_to_string(&path).expect("the script is there");
    let (script, expected) = text.split_once("--\n").expect("a line `--` ends the script");
    let mut outcomes = Outcomes { script: Script::parse(name, script), seen: Vec::new() };
    for shards in [1, 2] {
        for setup in common::everywhere(shards) {
            outcomes.seen.push((setup, Stage::new(&outcomes.script, setup).run()));
        }
    }
    let outcomes = outcomes.tell();
    if std::env::var_os("UPDATE_SCRIPTS").is_some() {
        std::fs::write(&path, format!("{script}--\n{outcomes}")).expect("the script can be written");
    } else {
        assert_eq!(outcomes, expected, "{name}: left is what happened, right is what {name}.txt says");
    }
}

// The script.

const TABLES: [&str; 3] = ["point", "list", "index"];

fn tables() -> Vec<TableSpec> {
    let kind = |name| if name == "point" { IndexKind::Hash } else { IndexKind::Ordered };
    TABLES.iter().map(|name| TableSpec::new(name, kind(*name), Partitioning::Modulo { bytes: 1 })).collect()
}

fn table(name: &str) -> TableId {
    let at = TABLES.iter().position(|table| *table == name);
    TableId(at.unwrap_or_else(|| panic!("no table is called {name}")) as u16)
}

/// A row's table and key.
type Row = (TableId, Key);

fn partition(text: &str) -> u8 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no partition"))
}

fn row(text: &str) -> Row {
    let (of, rest) = text.split_once('/').unwrap_or(("point", text));
    let (name, at) = rest.split_once('@').unwrap_or_else(|| panic!("{text} names no partition"));
    (table(of), Key::build().u8(partition(at)).bytes(name.as_bytes()).finish())
}

fn row_name((table, key): &Row) -> String {
    let bytes = key.to_bytes();
    let name = String::from_utf8_lossy(&bytes[1..]);
    match TABLES[table.index()] {
        "point" => format!("{name}@{}", bytes[0]),
        table => format!("{table}/{name}@{}", bytes[0]),
    }
}

fn row_and_value(text: &str) -> (Row, String) {
    let (name, value) = text.split_once('=').unwrap_or_else(|| panic!("{text} has no value"));
    (row(name), value.to_owned())
}

fn scan(words: &[&str]) -> Scan {
    let (of, at) = words[0].split_once('@').map_or((words[0], None), |(of, at)| (of, Some(partition(at))));
    let column = table(of).row();
    let within = |at: u8, name: &str| Key::build().u8(at).bytes(name.as_bytes()).finish();
    let (scan, rest) = match (at, words[1..].split_first()) {
        (Some(at), Some((range, rest))) if range.contains("..") => {
            let (low, high) = range.split_once("..").expect("a range has two ends");
            (Scan::range(column, within(at, low), within(at, high)), rest)
        }
        (Some(at), _) => (Scan::prefix(column, Key::new(&[at])), &words[1..]),
        (None, _) => (Scan::prefix(column, Key::MIN), &words[1..]),
    };
    let (scan, rest) = match rest {
        ["down", rest @ ..] => (scan.descending(), rest),
        _ => (scan, rest),
    };
    match rest {
        [] => scan,
        ["limit", limit] => scan.limit(limit.parse().expect("a limit is a number")),
        _ => panic!("{words:?} is no scan"),
    }
}

#[derive(Clone, Debug)]
enum Action {
    Begin { read_only: bool, shard: usize },
    Get(Row),
    Put(Row, String),
    Insert(Row, String),
    Delete(Row),
    Scan(Scan),
    Commit,
    Rollback,
}

impl Action {
    fn parse(text: &str) -> Action {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["begin", rest @ ..] => {
                let shard = match rest {
                    [.., "on", shard] => shard.parse().expect("a shard is a number"),
                    _ => 0,
                };
                Action::Begin { read_only: rest.first() == Some(&"readonly"), shard }
            }
            ["get", name] => Action::Get(row(name)),
            ["put", text] => {
                let (row, value) = row_and_value(text);
                Action::Put(row, value)
            }
            ["insert", text] => {
                let (row, value) = row_and_value(text);
                Action::Insert(row, value)
            }
            ["delete", name] => Action::Delete(row(name)),
            ["scan", rest @ ..] => Action::Scan(scan(rest)),
            ["commit"] => Action::Commit,
            ["rollback"] => Action::Rollback,
            _ => panic!("no step is called {text}"),
        }
    }
}

/// One step of one session.
#[derive(Clone, Debug)]
struct Step {
    session: usize,
    text: String,
    action: Action,
}

#[derive(Default)]
struct Script {
    name: String,
    load: Vec<(Row, String)>,
    steps: Vec<Step>,
    sessions: Vec<&'static str>,
    /// Sessions that must not commit all.
    never: Vec<Vec<usize>>,
    /// What the checker must call what RC does.
    rc: Option<String>,
}

impl Script {
    fn parse(name: &str, text: &str) -> Script {
        let mut script = Script { name: name.to_owned(), ..Script::default() };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (who, what) = line.split_once(": ").unwrap_or_else(|| panic!("{name}: what is {line}?"));
            match who {
                "load" => script.load = what.split(", ").map(row_and_value).collect(),
                "never" => {
                    let sessions = what.split_whitespace().map(|session| script.session(session)).collect();
                    script.never.push(sessions);
                }
                "rc" => script.rc = Some(what.to_owned()),
                session => {
                    let session = script.session(session);
                    let steps = what.split(", ").map(|text| Step {
                        session,
                        text: text.to_owned(),
                        action: Action::parse(text),
                    });
                    script.steps.extend(steps);
                }
            }
        }
        script
    }

    /// The number of a session; new names get the next number.
    fn session(&mut self, name: &str) -> usize {
        self.sessions.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.sessions.push(name.to_owned().leak());
            self.sessions.len() - 1
        })
    }

    /// All rows in hash tables that are mentioned.
    fn points(&self) -> BTreeSet<Row> {
        let steps = self.steps.iter().filter_map(|step| match &step.action {
            Action::Get(row) | Action::Put(row, _) | Action::Insert(row, _) | Action::Delete(row) => {
                Some(row)
            }
            _ => None,
        });
        let rows = steps.chain(self.load.iter().map(|(row, _)| row));
        rows.filter(|(of, _)| *of == table("point")).cloned().collect()
    }
}

// The outcomes.

/// A script, and what came of it in each setup.
struct Outcomes {
    script: Script,
    seen: Vec<(Setup, String)>,
}

impl Outcomes {
    /// Outcomes with the setups they belong to, in the order of the setups.
    fn tell(&self) -> String {
        let mut groups: Vec<(&str, Vec<Setup>)> = Vec::new();
        for (setup, outcome) in &self.seen {
            match groups.iter_mut().find(|(known, _)| known == outcome) {
                Some((_, setups)) => setups.push(*setup),
                None => groups.push((outcome, vec![*setup])),
            }
        }
        let groups = groups.iter().map(|(outcome, setups)| format!("{}{outcome}", heading(setups)));
        groups.collect::<Vec<_>>().join("\n")
    }
}

/// `[occ] dst gts`: one line for each set of protocols that have the same schemes.
fn heading(setups: &[Setup]) -> String {
    let mut lines: Vec<(Vec<&str>, String)> = Vec::new();
    for protocol in PROTOCOLS {
        let mut schemes = Vec::new();
        for scheme in SCHEMES {
            let shards: Vec<usize> = setups
                .iter()
                .filter(|setup| setup.protocol == protocol && setup.pair.scheme.name() == scheme)
                .map(|setup| setup.shards)
                .collect();
            match shards.as_slice() {
                [] => {}
                [one] => schemes.push(format!("{scheme}/{one}")),
                _ => schemes.push(scheme.to_owned()),
            }
        }
        if schemes.is_empty() {
            continue;
        }
        let schemes = schemes.join(" ");
        match lines.iter_mut().find(|(_, known)| *known == schemes) {
            Some((protocols, _)) => protocols.push(protocol),
            None => lines.push((vec![protocol], schemes)),
        }
    }
    lines.iter().map(|(protocols, schemes)| format!("[{}] {schemes}\n", protocols.join(" "))).collect()
}

// The stage.

/// After so many rounds in which nothing moved, nothing will.
const QUIET_ROUNDS: usize = 6;
/// An oracle's shards refresh their copies from time to time; that is no progress.
const ROUNDS_MAX: usize = 100;

/// What a step comes to.
enum Answer {
    Done,
    Value(Option<String>),
    Rows(Vec<(Row, String)>),
    Committed { committed: Committed, snapshot: bool },
}

/// What comes back from a shard: the transaction, unless it is over, and the answer.
type Back = (Option<TransactionHandle>, Result<Answer, Abort>);

/// A step and what came back.
type Answered = (Step, Back);

struct Session {
    transaction: Option<TransactionHandle>,
    /// The step that is under way.
    busy: Option<(Step, Receiver<Back>)>,
    waiting: VecDeque<Step>,
    /// Whether the step under way is known to wait.
    told: bool,
    read_only: bool,
    shard: ShardId,
    begin: u64,
    age: u64,
    over: bool,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            transaction: None,
            busy: None,
            waiting: VecDeque::new(),
            told: false,
            read_only: false,
            shard: ShardId(0),
            begin: 0,
            age: 0,
            over: false,
        }
    }
}

/// A running database and the sessions of a script.
struct Stage<'a> {
    script: &'a Script,
    setup: Setup,
    engine: Engine,
    sessions: Vec<Session>,
    committed: Vec<usize>,
    history: Vec<Recorded>,
    /// Numbers begins and ends: the clock of the history.
    clock: u64,
    /// The token that all sessions share.
    seen: Timestamp,
    outcome: String,
}

impl<'a> Stage<'a> {
    fn new(script: &'a Script, setup: Setup) -> Stage<'a> {
        let engine = common::start(setup, tables(), 0);
        for ((table, key), value) in script.load.clone() {
            let slot = Partitioning::Modulo { bytes: 1 }.slot(&key).expect("rows are on one shard");
            let shard = engine.layout().placement.shard(slot);
            engine.on_shard(shard, move |shard| shard.load_row(table, &key, &[value.as_bytes()]));
        }
        Stage {
            script,
            setup,
            engine,
            sessions: (0..=script.sessions.len()).map(|_| Session::default()).collect(),
            committed: Vec::new(),
            history: Vec::new(),
            clock: 0,
            seen: Timestamp::ZERO,
            outcome: String::new(),
        }
    }

    fn run(mut self) -> String {
        for step in &self.script.steps {
            self.issue(step.clone());
            self.settle(Some(step.session));
        }
        for (session, name) in self.sessions.iter().zip(&self.script.sessions) {
            let what = "every session of a script ends";
            assert!(session.over && session.busy.is_none(), "{what}: {name} {}", self.told());
        }
        self.look_at_the_end();
        self.judge();
        self.outcome
    }

    /// What happened so far, for a failure.
    fn told(&self) -> String {
        format!("in {} under {:?}\n{}", self.script.name, self.setup, self.outcome)
    }

    /// Starts a step on its session's shard, or lets it wait behind the one that is under way.
    fn issue(&mut self, step: Step) {
        self.clock += 1;
        let shards = self.setup.shards;
        let session = &mut self.sessions[step.session];
        if session.busy.is_some() {
            session.waiting.push_back(step);
            return;
        }
        if let Action::Begin { read_only, shard } = step.action {
            let shard = ShardId((shard % shards) as u16);
            let (begin, age) = (self.clock, self.clock);
            *session = Session { read_only, shard, begin, age, ..Session::default() };
        } else if session.over {
            return;
        }
        let at_least = if self.setup.pair.has_times() { Timestamp::ZERO } else { self.seen };
        let attempt = Attempt { age: session.age, freshness: Freshness { staleness_ns: 0, at_least } };
        let (done, result) = mpsc::channel();
        let (transaction, action) = (session.transaction.take(), step.action.clone());
        let snapshots = self.setup.pair.has_snapshots() && !self.setup.pair.has_locks();
        self.engine.spawn_on(session.shard, move |shard| async move {
            let _ = done.send(perform(interactive(&*shard), attempt, transaction, action, snapshots).await);
        });
        session.told = false;
        session.busy = Some((step, result));
    }

    /// Lets the shards run until nothing moves, and tells what was answered meanwhile, the session
    /// that was spoken to first.
    fn settle(&mut self, spoken_to: Option<usize>) {
        loop {
            let mut answers: BTreeMap<(bool, usize), Answered> = BTreeMap::new();
            let (mut quiet, mut messages) = (0, 0);
            for _ in 0..ROUNDS_MAX {
                let now = common::round(&self.engine);
                quiet = if now == messages { quiet + 1 } else { 0 };
                messages = now;
                for (number, session) in self.sessions.iter_mut().enumerate() {
                    let answer = session.busy.as_ref().and_then(|(_, result)| result.try_recv().ok());
                    if let Some(answer) = answer {
                        let (step, _) = session.busy.take().expect("a busy session was answered");
                        answers.insert((Some(number) != spoken_to, number), (step, answer));
                        quiet = 0;
                    }
                }
                if quiet == QUIET_ROUNDS {
                    break;
                }
            }
            if answers.is_empty() {
                break;
            }
            for ((_, number), (step, answer)) in answers {
                self.answered(number, step, answer);
                while self.sessions[number].busy.is_none()
                    && let Some(next) = self.sessions[number].waiting.pop_front()
                {
                    self.issue(next);
                }
            }
        }
        for number in 0..self.sessions.len() {
            let session = &mut self.sessions[number];
            if let Some((step, _)) = &session.busy
                && !std::mem::replace(&mut session.told, true)
            {
                let text = step.text.clone();
                self.say(number, &text, "waits");
            }
        }
    }

    fn say(&mut self, session: usize, step: &str, what: &str) {
        if let Some(name) = self.script.sessions.get(session) {
            self.outcome += &format!("  {name}: {step}: {what}\n");
        }
    }

    fn answered(&mut self, number: usize, step: Step, (transaction, answer): Back) {
        self.clock += 1;
        let session = &mut self.sessions[number];
        session.transaction = transaction;
        session.over = session.transaction.is_none();
        let told = std::mem::take(&mut session.told);
        let rows = |rows: &[(Row, String)]| {
            let rows = rows.iter().map(|(row, value)| format!("{}={value}", row_name(row)));
            rows.collect::<Vec<_>>().join(" ")
        };
        match answer {
            Ok(Answer::Done) if told => self.say(number, &step.text, "done"),
            Ok(Answer::Done) => {}
            Ok(Answer::Value(value)) => {
                self.say(number, &step.text, value.as_deref().unwrap_or("absent"));
            }
            Ok(Answer::Rows(found)) if found.is_empty() => self.say(number, &step.text, "nothing"),
            Ok(Answer::Rows(found)) => self.say(number, &step.text, &rows(&found)),
            Ok(Answer::Committed { committed, snapshot }) => {
                self.say(number, &step.text, "committed");
                self.seen.raise(committed.stamp.unwrap_or_default());
                self.committed.push(number);
                self.record(number, committed, snapshot);
            }
            Err(abort) => self.say(number, &step.text, &format!("aborted, {abort}")),
        }
    }

    fn record(&mut self, number: usize, committed: Committed, snapshot: bool) {
        let session = &self.sessions[number];
        let recorded = committed.recorded.map(|recorded| *recorded).unwrap_or_default();
        self.history.push(Recorded {
            id: committed.id,
            label: self.script.sessions.get(number).copied().unwrap_or("end"),
            read_only: session.read_only || snapshot,
            timestamp: committed.stamp.filter(|_| self.setup.pair.has_scalars()),
            session: number as u32,
            begin: session.begin,
            end: self.clock,
            writes: Some(committed.writes as u32),
            reads: recorded.reads,
            scans: recorded.scans,
        });
    }

    /// A last transaction locks and rewrites every row there is. It must commit at once; but what
    /// was deleted may be collected between its read and its validation, when an oracle has heard
    /// of the deletion, and then it is tried once more.
    fn look_at_the_end(&mut self) {
        let number = self.script.sessions.len();
        let (points, seen) = (self.script.points(), self.seen);
        let (begin, at_least) =
            (self.clock + 1, if self.setup.pair.has_times() { Timestamp::ZERO } else { seen });
        let attempt = Attempt { age: begin, freshness: Freshness { staleness_ns: 0, at_least } };
        let (done, result) = mpsc::channel();
        let oracle = self.setup.pair.has_oracle();
        self.engine.spawn_on(ShardId(0), move |shard| async move {
            let shard = interactive(&*shard);
            let mut ended = rewrite_all(shard, attempt, &points).await;
            if oracle && matches!(ended, Err(Abort::Validation)) {
                ended = rewrite_all(shard, attempt, &points).await;
            }
            let _ = done.send(ended);
        });
        for _ in 0..ROUNDS_MAX {
            common::round(&self.engine);
        }
        let (rows, committed) = match result.try_recv() {
            Ok(Ok(end)) => end,
            Ok(Err(abort)) => {
                panic!("the last transaction has the database to itself: {abort} {}", self.told())
            }
            Err(_) => panic!("the last transaction meets a lock that was left behind {}", self.told()),
        };
        let rows: Vec<String> =
            rows.iter().map(|(row, value)| format!("{}={value}", row_name(row))).collect();
        self.outcome += &format!("  end: {}\n", rows.join(" "));
        self.clock += 2;
        self.sessions[number].begin = begin;
        self.record(number, committed, false);
    }

    fn judge(&mut self) {
        for never in &self.script.never {
            let all = never.iter().all(|session| self.committed.contains(session));
            assert!(!all, "not all of {never:?} commit {}", self.told());
        }
        let report = common::check(
            &self.engine,
            std::mem::take(&mut self.history),
            common::installs(&self.engine),
            false,
        );
        if self.setup.pair.serializable() || self.script.rc.is_none() {
            assert!(report.passed(), "{report}\n{}", self.told());
        } else {
            let kinds: Vec<&str> = report.totals.iter().map(|(kind, _)| *kind).collect();
            assert_eq!(kinds, self.script.rc.as_deref().into_iter().collect::<Vec<_>>(), "{}", self.told());
            self.outcome += &format!("  anomaly: {}\n", kinds.join(", "));
        }
    }
}

/// One step of a transaction, on its shard.
async fn perform(
    shard: &dyn InteractiveShard,
    attempt: Attempt,
    transaction: Option<TransactionHandle>,
    action: Action,
    snapshots: bool,
) -> Back {
    if let Action::Begin { read_only, .. } = action {
        return match shard.begin(attempt, read_only).await {
            Ok(transaction) => (Some(transaction), Ok(Answer::Done)),
            Err(abort) => (None, Err(abort)),
        };
    }
    let mut txn = transaction.expect("a transaction begins before it does anything");
    let answer = match action {
        Action::Begin { .. } => unreachable!("has begun"),
        Action::Get((table, key)) => {
            shard.get(&mut txn, table.row(), &key).await.map(|value| Answer::Value(value.map(text)))
        }
        Action::Put((table, key), value) => {
            shard.put(&mut txn, table.row(), &key, value.as_bytes()).await.map(|()| Answer::Done)
        }
        Action::Insert((table, key), value) => {
            shard.insert(&mut txn, table, &key, &[value.as_bytes()]).await.map(|()| Answer::Done)
        }
        Action::Delete((table, key)) => shard.delete(&mut txn, table, &key).await.map(|()| Answer::Done),
        Action::Scan(scan) => {
            let rows = shard.scan(&mut txn, &scan).await;
            let named = |(key, value)| ((scan.column.table, key), text(value));
            rows.map(|rows| Answer::Rows(rows.into_iter().map(named).collect()))
        }
        Action::Commit => {
            let committed = shard.commit(txn).await;
            let answer = committed.map(|committed| {
                let snapshot = snapshots && committed.writes == 0;
                Answer::Committed { committed, snapshot }
            });
            return (None, answer);
        }
        Action::Rollback => {
            shard.rollback(txn).await;
            return (None, Ok(Answer::Done));
        }
    };
    match answer {
        Ok(answer) => (Some(txn), Ok(answer)),
        Err(abort) => (None, Err(abort)),
    }
}

fn interactive(shard: &dyn AnyShard) -> &dyn InteractiveShard {
    shard.interactive().expect("the setups are interactive")
}

fn text(value: Vec<u8>) -> String {
    String::from_utf8(value).expect("scripts write text")
}

/// Reads everything there is and writes it again.
async fn rewrite_all(
    shard: &dyn InteractiveShard,
    attempt: Attempt,
    points: &BTreeSet<Row>,
) -> Result<(Vec<(Row, String)>, Committed), Abort> {
    let mut txn = shard.begin(attempt, false).await?;
    let mut rows = Vec::new();
    for (table, key) in points {
        if let Some(value) = shard.get(&mut txn, table.row(), key).await? {
            rows.push(((*table, key.clone()), text(value)));
        }
    }
    for (name, at) in TABLES[1..].iter().flat_map(|name| [(name, 0), (name, 1)]) {
        let found = shard.scan(&mut txn, &Scan::prefix(table(name).row(), Key::new(&[at]))).await?;
        rows.extend(found.into_iter().map(|(key, value)| ((table(name), key), text(value))));
    }
    for ((table, key), value) in &rows {
        shard.put(&mut txn, table.row(), key, value.as_bytes()).await?;
    }
    Ok((rows, shard.commit(txn).await?))
}
