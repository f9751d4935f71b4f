//! From what was recorded of a world to its timeline.
//!
//! Steps and messages name attempts by id; whose attempt it was and what came of it is pieced
//! together from what the sessions noted, the history of what committed, and the steps themselves.
//! Batches are put together from the events of the network: a batch is sent, goes onto the network
//! once or more often, and is delivered.
//!
//! Left out: passes, and what only acknowledges.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plimsoll_page::units::thousands;
use plimsoll_runtime::sim::{EPOCH_NS, Event};
use plimsoll_sim::plan::Plan;
use plimsoll_sim::recorder::{Recording, TimedStep};
use plimsoll_sim::run::{Outcome, answered_ns};
use plimsoll_txn::trace::{Item, What};
use plimsoll_types::{Abort, ColumnGroup, IndexKind, Partitioning, ShardId, Timestamp, TxnId};

use super::because::Reasons;
use super::model::*;
use super::names::{are_times, in_words, short, table};
use super::words::phrase;

/// Steps and batches that a page shows at most: browsers stay quick with so many.
const SHOWN_MAX: usize = 50_000;
/// A batch is late if it is under way for so many times as long as is usual.
const LATE: u64 = 5;

/// The timeline of a world.
pub fn timeline(plan: &Plan, outcome: &Outcome, recording: &Recording) -> Timeline {
    let mut build = Build::new(plan, outcome);
    build.out.shards = lines(plan, recording);
    let mut reasons = Reasons::new(plan.scheme);
    for taken in &recording.steps {
        build.step(taken, &mut reasons);
    }
    build.batches(plan, recording);
    build.outcomes(recording);
    for (attempt, because) in reasons.finish(&build.out.steps, build.times) {
        build.out.attempts[attempt].because = Some(because);
    }
    build.faults(recording);
    build.violations();
    let mut out = build.out;
    out.phrases = vec![""; build.phrases.len()];
    build.phrases.into_iter().for_each(|(phrase, position)| out.phrases[position] = phrase);
    (out.pair, out.scheme, out.workload) = (plan.pair(), plan.scheme, plan.workload.name());
    out.planted = plan.mutant.map(|mutant| format!("{}: {}", mutant.name(), mutant.description()));
    out.epoch = EPOCH_NS.to_string();
    out
}

/// One line per shard that was ever heard of, the oracle's last.
fn lines(plan: &Plan, recording: &Recording) -> Vec<Line> {
    let starts = recording.events.iter().filter_map(|(_, event)| match event {
        Event::Start { shard, .. } | Event::Pass { shard, .. } => Some(shard.index() + 1),
        _ => None,
    });
    let count = starts.max().unwrap_or(0).max(plan.shards_in_all());
    let per_machine = plan.hardware.shards_per_machine.max(1) as usize;
    (0..count)
        .map(|shard| Line { machine: shard / per_machine, oracle: shard >= plan.shards_in_all() })
        .collect()
}

struct Build<'a> {
    out: Timeline,
    outcome: &'a Outcome,
    times: bool,
    marks: bool,
    /// Whether reads are locked instead of validated.
    locks: bool,
    items: BTreeMap<(ShardId, Item), usize>,
    attempts: BTreeMap<TxnId, usize>,
    /// Which attempt has read which version of what.
    read: BTreeSet<(usize, Option<usize>, Option<Stamp>)>,
    /// Where each phrase is.
    phrases: BTreeMap<&'static str, usize>,
}

impl<'a> Build<'a> {
    fn new(plan: &Plan, outcome: &'a Outcome) -> Build<'a> {
        let (times, marks) = (are_times(plan.scheme), plan.scheme == "dst");
        let (out, locks) = (Timeline { times, marks, ..Timeline::default() }, plan.protocol == "two_pl");
        Build {
            out,
            outcome,
            times,
            marks,
            locks,
            items: BTreeMap::new(),
            attempts: BTreeMap::new(),
            read: BTreeSet::new(),
            phrases: BTreeMap::new(),
        }
    }

    fn stamp(&self, stamp: Timestamp) -> Stamp {
        Stamp::new(stamp, self.times)
    }

    fn both(&self, (before, after): (Timestamp, Timestamp)) -> Option<(Stamp, Stamp)> {
        Some((self.stamp(before), self.stamp(after)))
    }

    fn attempt(&mut self, id: TxnId, time_ns: u64) -> usize {
        let attempts = &mut self.out.attempts;
        *self.attempts.entry(id).or_insert_with(|| {
            attempts.push(Attempt {
                id: format!("{id:?}"),
                shard: id.coordinator.0,
                label: "",
                client: None,
                nth: 1,
                snapshot: false,
                outcome: "open",
                why: None,
                next: None,
                begin: time_ns,
                end: time_ns,
                stamp: None,
                because: None,
            });
            attempts.len() - 1
        })
    }

    /// Records are the same wherever they are named; leaves and cells belong to a shard, and so do
    /// copies.
    fn item(&mut self, shard: ShardId, item: &Item) -> usize {
        let place = match item {
            Item::Record(column, _) if !self.copied(*column) => ShardId(0),
            _ => shard,
        };
        if let Some(&known) = self.items.get(&(place, item.clone())) {
            return known;
        }
        let named = self.named(shard, item);
        self.out.items.push(named);
        self.items.insert((place, item.clone()), self.out.items.len() - 1);
        self.out.items.len() - 1
    }

    /// Whether every shard has a copy of a table.
    fn copied(&self, column: ColumnGroup) -> bool {
        let spec = self.outcome.tables.get(column.table.index());
        spec.is_some_and(|spec| spec.partitioning == Partitioning::Everywhere)
    }

    fn named(&self, shard: ShardId, item: &Item) -> Named {
        let table = |column| table(&self.outcome.tables, column);
        match item {
            Item::Record(column, key) => {
                let copy =
                    if self.copied(*column) { format!(" on shard {}", shard.0) } else { String::new() };
                let table = table(*column);
                Named {
                    name: format!("{table} {}{copy}", short(key)),
                    quoted: format!("{table} {key:?}"),
                    cover: false,
                }
            }
            Item::Cover(id, cover) => {
                let spec = self.outcome.tables.get(id.index());
                let number: String = format!("{cover:?}").chars().filter(char::is_ascii_digit).collect();
                let name = match spec.map(|spec| spec.index) {
                    Some(IndexKind::Hash) => {
                        format!("absent keys of {}, cell {number}", spec.map_or("", |spec| &spec.name))
                    }
                    _ => format!("leaf {number} of {}", table(id.row())),
                };
                Named { quoted: format!("{name} on shard {}", shard.0), name, cover: true }
            }
        }
    }

    fn step(&mut self, taken: &TimedStep, reasons: &mut Reasons) {
        let (t, s, step) = (taken.time_ns, taken.shard.0, &taken.step);
        let x = self.attempt(step.txn, t);
        let end = &mut self.out.attempts[x].end;
        *end = t.max(*end);
        let mut told = StepLine { t, s, x, ..StepLine::default() };
        let on = |build: &mut Build, item: &Item| Some(build.item(taken.shard, item));
        match &step.what {
            What::Begins => {
                // It may have tried to do everything in one step before.
                if self.out.steps.iter().rev().take_while(|step| step.t == t).any(|step| step.x == x) {
                    return;
                }
                told.k = "begins";
            }
            What::Continues(former) => {
                let former = self.attempt(*former, t);
                self.out.attempts[former].next = Some(x);
                return;
            }
            What::Snapshot(at, _) => {
                told.k = "snapshot";
                told.v = at.map(|at| self.stamp(at));
                (self.out.attempts[x].snapshot, self.out.attempts[x].stamp) = (true, told.v);
            }
            What::Raises { .. } if !self.marks => return,
            What::Raises { item, bounds } => {
                (told.k, told.i, told.m) = ("raises", on(self, item), self.both(*bounds));
            }
            What::Reads(item, version) => {
                (told.k, told.i) = ("reads", on(self, item));
                (told.v, told.w) =
                    (version.map(|version| self.stamp(version)), version.is_none().then_some("absent"));
            }
            What::Waits(item, owner) => {
                (told.k, told.i) = ("waits", on(self, item));
                told.o = owner.map(|owner| self.attempt(owner, t));
            }
            What::Locks { item, exclusive, bound, lb } => {
                (told.k, told.i, told.v) = ("locks", on(self, item), Some(self.stamp(*bound)));
                told.w = Some(if *exclusive { "exclusive" } else { "shared" });
                told.lb = exclusive.then(|| self.stamp(*lb));
            }
            What::Bounds(item, bound) => {
                (told.k, told.i, told.v) = ("bounds", on(self, item), Some(self.stamp(*bound)));
                // Looked at with every request; only news is told.
                let same = |known: &&StepLine| {
                    known.x == x && known.i == told.i && ["locks", "bounds"].contains(&known.k)
                };
                if self.out.steps.iter().rev().take(200).find(same).is_some_and(|known| known.v == told.v) {
                    return;
                }
            }
            What::Refused(item, why, by) => {
                (told.k, told.i, told.w) = ("refused", on(self, item), Some(why.name()));
                told.o = by.map(|by| self.attempt(by, t));
            }
            What::Stamps { stamp, .. } => {
                (told.k, told.v) = ("stamps", Some(self.stamp(*stamp)));
                let attempt = &mut self.out.attempts[x];
                (attempt.stamp, attempt.snapshot) = (told.v, false);
            }
            What::Pins { item, bounds, current } => {
                (told.k, told.i, told.m) = ("pins", on(self, item), self.both(*bounds));
                told.w = (!current).then_some("changed");
            }
            What::Installs { item, stamp, delete, bounds } => {
                (told.k, told.i, told.m) = ("installs", on(self, item), self.both(*bounds));
                (told.v, told.w) = (Some(self.stamp(*stamp)), delete.then_some("deleted"));
                // The history of a client that is stuck is not known.
                if self.out.attempts[x].outcome == "open" {
                    self.out.attempts[x].outcome = "committed";
                }
            }
            What::Unlocks(item) => (told.k, told.i) = ("unlocks", on(self, item)),
            What::Aborts(why) => {
                (told.k, told.w) = ("aborts", Some(why.name()));
                let attempt = &mut self.out.attempts[x];
                (attempt.outcome, attempt.why, attempt.end) = ("aborted", Some(why.name()), t);
            }
        }
        reasons.step(x, taken);
        // A request that waits is looked at again and again.
        let again =
            |last: &StepLine| (last.k, last.x, last.i, last.o, last.s) == (told.k, x, told.i, told.o, s);
        if told.k == "waits" && self.out.steps.last().is_some_and(again) {
            return;
        }
        let installed = |last: &&StepLine| (last.k, last.x, last.i, last.t) == ("installs", x, told.i, t);
        if told.k == "pins" {
            // Under 2PL without marks a lock that is dropped pins nothing. What was just written
            // has its mark already.
            let same = told.m.is_some_and(|(before, after)| before == after);
            let written =
                self.out.steps.iter().rev().take_while(|last| last.t == t).any(|last| installed(&last));
            if self.locks && !self.marks || same && written {
                return;
            }
        }
        // What was fetched is recorded once more when it is used.
        let known = (x, told.i, told.v);
        if told.k == "reads" && told.w.is_none() && !self.read.insert(known) {
            return;
        }
        let next = self.phrases.len();
        told.p = *self.phrases.entry(phrase(&told, &self.out)).or_insert(next);
        self.out.steps.push(told);
    }

    fn batches(&mut self, plan: &Plan, recording: &Recording) {
        let per_machine = plan.hardware.shards_per_machine.max(1) as usize;
        let mut messages = recording.messages.iter().peekable();
        let mut channels: BTreeMap<(ShardId, ShardId, u64), usize> = BTreeMap::new();
        let mut handovers: BTreeMap<(ShardId, ShardId), VecDeque<usize>> = BTreeMap::new();
        for (number, &(time_ns, event)) in recording.events.iter().enumerate() {
            match event {
                Event::Sent { from, to, sequence, .. } => {
                    let mut has = Vec::new();
                    while let Some(message) = messages.next_if(|message| message.event == number) {
                        let i = message.about.records.iter();
                        let i = i.map(|(column, key)| self.item(to, &Item::Record(*column, key.clone())));
                        let (k, i) = (message.about.kind.clone(), i.collect());
                        let x = message.about.txn.map(|txn| self.attempt(txn, time_ns));
                        has.push(Message { k, x, a: message.answer, i });
                    }
                    let position = self.out.batches.len();
                    if from.index() / per_machine == to.index() / per_machine {
                        handovers.entry((from, to)).or_default().push_back(position);
                    } else {
                        channels.insert((from, to, sequence), position);
                    }
                    let (from, to) = (from.0, to.0);
                    self.out.batches.push(Sent { from, to, sent: time_ns, has, ..Sent::default() });
                }
                Event::Transmitted { from, to, sequence, arrives_ns } => {
                    if let Some(&position) = channels.get(&(from, to, sequence)) {
                        let copies = arrives_ns.into_iter().flatten().collect();
                        self.out.batches[position].tries.push((time_ns, copies));
                    }
                }
                Event::Delivered { from, to, sequence, .. } => {
                    let handed = handovers.get_mut(&(from, to)).and_then(VecDeque::pop_front);
                    let position = handed.or_else(|| channels.get(&(from, to, sequence)).copied());
                    if let Some(position) = position {
                        self.out.batches[position].got = Some(time_ns);
                    }
                }
                _ => {}
            }
        }
        let between_machines = |batch: &&Sent| !batch.tries.is_empty();
        let under_way = |batch: &Sent| Some(batch.got? - batch.sent);
        let mut times: Vec<u64> =
            self.out.batches.iter().filter(between_machines).filter_map(under_way).collect();
        times.sort_unstable();
        let usual = times.get(times.len() / 2).copied().unwrap_or_default();
        for batch in &mut self.out.batches {
            batch.late = !batch.tries.is_empty() && under_way(batch).is_some_and(|ns| ns > LATE * usual);
        }
    }

    /// Whose attempts these were, and what came of them.
    fn outcomes(&mut self, recording: &Recording) {
        for transaction in &self.outcome.history.transactions {
            let answered = answered_ns(transaction);
            let x = self.attempt(transaction.id, answered.unwrap_or(self.outcome.virtual_ns));
            let stamp = transaction.timestamp.map(|timestamp| Stamp::new(timestamp, self.times));
            let attempt = &mut self.out.attempts[x];
            (attempt.outcome, attempt.label) = ("committed", transaction.label);
            attempt.stamp = stamp.or(attempt.stamp);
            attempt.snapshot &= transaction.writes == Some(0);
            // It ends with its last step if nobody was answered.
            let Some(end) = answered else { continue };
            attempt.end = end;
            if !(transaction.label == "rewrite all" && transaction.session == u32::MAX) {
                attempt.client = Some(transaction.session);
                self.out.done = self.out.done.max(end);
            }
        }
        // The attempts of a session before the one that committed were for the same transaction, if
        // they are of its type.
        let mut before: BTreeMap<u32, (&str, u32)> = BTreeMap::new();
        for tried in &recording.attempts {
            let Some(id) = tried.id else {
                self.out.unnumbered += 1;
                continue;
            };
            let Some(&x) = self.attempts.get(&id) else { continue };
            let attempt = &mut self.out.attempts[x];
            attempt.client = Some(tried.session);
            if attempt.label.is_empty() {
                attempt.label = tried.label;
            }
            if attempt.outcome != "committed" {
                // What it was told counts: whoever has given up by itself may hear that it had read
                // what does not hold.
                attempt.why = tried.why.map(Abort::name);
                attempt.outcome = attempt.why.map_or("open", |_| "aborted");
            }
            let nth = before.remove(&tried.session).filter(|(label, _)| *label == tried.label);
            attempt.nth = nth.map_or(1, |(_, nth)| nth + 1);
            if tried.why.is_some_and(|why| why != Abort::User) {
                before.insert(tried.session, (tried.label, attempt.nth));
            }
        }
        // Whoever went on under another number was the same attempt to its client.
        for x in (0..self.out.attempts.len()).rev() {
            let Some(next) = self.out.attempts[x].next else { continue };
            let Attempt { client, label, nth, .. } = self.out.attempts[next];
            let attempt = &mut self.out.attempts[x];
            (attempt.client, attempt.label, attempt.nth) = (client, label, nth);
        }
    }

    fn faults(&mut self, recording: &Recording) {
        let end_of_all = recording.events.last().map_or(0, |&(time_ns, _)| time_ns);
        for &(from, event) in &recording.events {
            let Event::Begins { index } = event else { continue };
            let ends = recording.events.iter().find(|(_, event)| *event == Event::Ends { index });
            let Some(fault) = self.outcome.faults.iter().find(|fault| fault.index == index) else { continue };
            let (kind, words, machines, lasts) = in_words(&fault.fault);
            let to = if lasts { ends.map_or(end_of_all, |&(time_ns, _)| time_ns) } else { from };
            self.out.faults.push(Fault { index, kind, words, from, to, machines });
        }
    }

    fn violations(&mut self) {
        for violation in &self.outcome.violations {
            let names = violation.detail.split(|c: char| !c.is_alphanumeric() && c != '.');
            let named = |word: &str| {
                self.out.attempts.iter().position(|attempt| attempt.id == word.trim_matches('.'))
            };
            let mut attempts: Vec<usize> =
                names.filter(|word| word.starts_with('T')).filter_map(named).collect();
            let mut seen = BTreeSet::new();
            attempts.retain(|&x| seen.insert(x));
            let (kind, detail) = (violation.kind.clone(), violation.detail.clone());
            self.out.violations.push(Violated { kind, detail, attempts });
        }
    }
}

/// Keeps the page small enough for a browser: around what a violation names, or else from the
/// beginning.
pub fn cut(out: &mut Timeline) {
    let mut times: Vec<u64> = out.steps.iter().map(|step| step.t).collect();
    times.extend(out.batches.iter().map(|batch| batch.sent));
    if times.len() <= SHOWN_MAX {
        return;
    }
    times.sort_unstable();
    let named = out.violations.iter().flat_map(|violation| &violation.attempts);
    let last = named.map(|&x| out.attempts[x].end).max();
    let after = last.map_or(SHOWN_MAX, |last| times.partition_point(|&time| time <= last) + SHOWN_MAX / 10);
    let after = after.clamp(SHOWN_MAX, times.len() - 1);
    let (from, to) = (times[after - SHOWN_MAX], times[after]);
    out.cut = Some(format!(
        "This world has {} steps and batches of messages. The {} from {:.3} ms to {:.3} ms are shown.",
        thousands(times.len() as u64),
        thousands(SHOWN_MAX as u64),
        from as f64 / 1e6,
        to as f64 / 1e6
    ));
    out.steps.retain(|step| (from..to).contains(&step.t));
    out.batches.retain(|batch| (from..to).contains(&batch.sent));
    out.done = out.done.min(to);
}
