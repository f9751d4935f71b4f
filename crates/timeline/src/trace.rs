//! A world as text: what happened, line by line, in the order of virtual time.
//!
//! A line says when it happened, where, whose it is, and what. Messages have the other end between:
//! `→` they leave for it, `←` they arrive from it, `↛` the network loses them. So the lines that
//! begin with a shard are all that it did, and those that name an attempt are its story (`grep -wF
//! T1.1`):
//!
//! ```text
//!        0.005 ms  shard 1  → 0  T1.1  READ AT ring 6
//!        0.005 ms  shard 0  ← 1  T1.1  READ AT ring 6, under way for 0.000 ms
//!        0.008 ms  shard 0       T1.1  raises the mark of ring 6 from 0 (initial) to 0.003978 ms
//!        0.008 ms  shard 0       T1.1  reads ring 6: the version of 0 (initial)
//! ```
//!
//! It is made of the timeline of the world, whole. [`history`] needs nothing that was recorded: it
//! says in a line or two what each transaction came to.
//!
//! Left out: passes, and what only acknowledges.

use std::collections::BTreeMap;
use std::fmt::Write;

use plimsoll_runtime::sim::{EPOCH_NS, Event};
use plimsoll_sim::plan::Plan;
use plimsoll_sim::recorder::Recording;
use plimsoll_sim::run::{Outcome, answered_ns};
use plimsoll_types::history::{Transaction, Version};
use plimsoll_types::{ColumnGroup, Key, ShardId, Timestamp};

use super::build::timeline;
use super::model::{Attempt, Message, Sent, Stamp, StepLine, Timeline};
use super::names::{are_times, in_words, short, stamp, table};
use super::words::gives_up;

/// Records that a message names at most.
const NAMED_MAX: usize = 4;

/// What happens at one moment: it arrives, it is dealt with, it leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Comes,
    Acts,
    Ends,
    Leaves,
}

struct Line {
    at: (u64, Turn),
    place: String,
    other: String,
    whose: String,
    what: String,
}

/// Everything that was recorded of a world.
pub fn trace(plan: &Plan, outcome: &Outcome, recording: &Recording) -> String {
    let world = timeline(plan, outcome, recording);
    let mut trace = Trace { world: &world, outcome, lines: Vec::new() };
    trace.lives(recording);
    trace.steps();
    trace.ends();
    world.batches.iter().for_each(|batch| trace.batch(batch));
    for fault in &world.faults {
        let ends = (fault.from < fault.to).then_some(fault.to);
        trace.lines.extend(fault_lines(fault.index, &fault.words, fault.from, ends.is_some(), ends));
    }
    written(trace.lines)
}

/// What the transactions of a world did, one line when each begins and one when it ends, and its
/// faults.
pub fn history(plan: &Plan, outcome: &Outcome) -> String {
    let mut lines = Vec::new();
    for transaction in &outcome.history.transactions {
        let (id, label) = (format!("{:?}", transaction.id), transaction.label);
        let place = format!("shard {}", transaction.id.coordinator.0);
        let mut line = |time_ns, turn, what| {
            let (place, whose) = (place.clone(), id.clone());
            lines.push(Line { at: (time_ns, turn), place, other: String::new(), whose, what });
        };
        let answered = answered_ns(transaction);
        if answered.is_some() {
            let begin = transaction.begin.saturating_sub(EPOCH_NS);
            line(begin, Turn::Acts, format!("begins {label}"));
        }
        // Of who was never answered nobody knows when it began. It stands at the end.
        let end = answered.unwrap_or(outcome.virtual_ns);
        line(end, Turn::Ends, format!("ends {label}{}", what_it_did(transaction, plan, outcome)));
    }
    if !lines.is_empty() {
        let left = outcome.faults.iter().filter(|fault| !plan.skip.contains(&fault.index));
        for fault in left {
            let (_, words, _, lasts) = in_words(&fault.fault);
            let ends = Some(fault.end_ns).filter(|&end_ns| lasts && end_ns < outcome.virtual_ns);
            lines.extend(fault_lines(fault.index, &words, fault.begin_ns, lasts, ends));
        }
    }
    written(lines)
}

fn what_it_did(transaction: &Transaction, plan: &Plan, outcome: &Outcome) -> String {
    let stamp = |at: Timestamp| stamp(Some(Stamp::new(at, are_times(plan.scheme))), plan.scheme);
    let record =
        |column: ColumnGroup, key: &Key| format!("{} {}", table(&outcome.tables, column), short(key));
    let mut text = String::new();
    if let Some(timestamp) = transaction.timestamp {
        let _ = write!(text, " at {}", stamp(timestamp));
    }
    for read in &transaction.reads {
        let _ = match read.version {
            Version::At(at) => write!(text, ", read {} of {}", record(read.column, &read.key), stamp(at)),
            Version::Absent => write!(text, ", found no {}", record(read.column, &read.key)),
        };
    }
    for scan in &transaction.scans {
        let rows = scan.rows.len();
        let _ = write!(text, ", scanned {rows} rows of {}", table(&outcome.tables, scan.column));
    }
    let installs = outcome.history.installs.iter().flatten().filter(|install| install.txn == transaction.id);
    for install in installs {
        let verb = if install.delete { "deleted" } else { "wrote" };
        let _ = write!(text, ", {verb} {} of {}", record(install.column, &install.key), stamp(install.stamp));
    }
    text
}

/// When a fault begins, and when it ends, if it `lasts` and its end is to be told.
fn fault_lines(
    index: u32,
    words: &str,
    begin_ns: u64,
    lasts: bool,
    end_ns: Option<u64>,
) -> impl Iterator<Item = Line> {
    let line = move |time_ns, what| {
        let (place, other, whose) = (format!("fault {index}"), String::new(), String::new());
        Line { at: (time_ns, Turn::Comes), place, other, whose, what }
    };
    let begins = if lasts { format!("begins: {words}") } else { words.to_owned() };
    let ends = end_ns.map(|end_ns| line(end_ns, format!("ends: {words}")));
    [line(begin_ns, begins)].into_iter().chain(ends)
}

/// The lines in the order of time, each part below its like.
fn written(mut lines: Vec<Line>) -> String {
    lines.sort_by_key(|line| line.at);
    let width = |part: fn(&Line) -> &str| {
        let widths = lines.iter().map(|line| part(line).chars().count());
        widths.max().map_or(0, |most| if most > 0 { most + 2 } else { 0 })
    };
    let [place, other, whose] =
        [width(|line| &line.place), width(|line| &line.other), width(|line| &line.whose)];
    let mut text = String::new();
    for line in &lines {
        let _ = writeln!(
            text,
            "{:>12.3} ms  {:place$}{:other$}{:whose$}{}",
            line.at.0 as f64 / 1e6,
            line.place,
            line.other,
            line.whose,
            line.what
        );
    }
    text
}

struct Trace<'a> {
    world: &'a Timeline,
    outcome: &'a Outcome,
    lines: Vec<Line>,
}

impl Trace<'_> {
    fn push(&mut self, time_ns: u64, turn: Turn, shard: u16, whose: &str, what: String) {
        let (place, whose) = (self.place(shard), whose.to_owned());
        self.lines.push(Line { at: (time_ns, turn), place, other: String::new(), whose, what });
    }

    fn place(&self, shard: u16) -> String {
        match self.world.shards.get(usize::from(shard)) {
            Some(line) if line.oracle => "oracle".to_owned(),
            _ => format!("shard {shard}"),
        }
    }

    fn stamp(&self, at: Option<Stamp>) -> String {
        stamp(at, self.world.scheme)
    }

    /// Shards that begin a life, and channels that begin anew.
    fn lives(&mut self, recording: &Recording) {
        for &(time_ns, event) in &recording.events {
            match event {
                Event::Start { shard, life } => {
                    self.push(time_ns, Turn::Comes, shard.0, "", format!("begins life {life}"));
                }
                Event::Reset { shard, peer: ShardId(peer), .. } => {
                    let what = format!(
                        "its channel to {} is reset: what it has called over it has failed",
                        self.place(peer)
                    );
                    self.push(time_ns, Turn::Comes, shard.0, "", what);
                }
                _ => {}
            }
        }
    }

    /// How attempts begin, and what they do.
    fn steps(&mut self) {
        let world = self.world;
        let former: BTreeMap<usize, &str> = (world.attempts.iter())
            .filter_map(|attempt| Some((attempt.next?, attempt.id.as_str())))
            .collect();
        let mut begun = vec![false; world.attempts.len()];
        let mut begins = |trace: &mut Trace<'_>, x: usize| {
            let attempt: &Attempt = &world.attempts[x];
            if !std::mem::replace(&mut begun[x], true) {
                let what = beginning(attempt, former.get(&x).copied());
                trace.push(attempt.begin, Turn::Acts, attempt.shard, &attempt.id, what);
            }
        };
        for step in &world.steps {
            begins(self, step.x);
            if step.k != "begins" {
                let what = self.phrase(step);
                self.push(step.t, Turn::Acts, step.s, &world.attempts[step.x].id, what);
            }
        }
        (0..world.attempts.len()).for_each(|x| begins(self, x));
    }

    /// The words of a step with what differs filled in.
    fn phrase(&self, step: &StepLine) -> String {
        let mut text = String::new();
        for part in self.world.phrases[step.p].split_inclusive('}') {
            let (plain, place) = part.split_once('{').unwrap_or((part, ""));
            text.push_str(plain);
            match place {
                "i}" => text.push_str(step.i.map_or("", |i| &self.world.items[i].name)),
                "o}" => text.push_str(step.o.map_or("", |x| &self.world.attempts[x].id)),
                "v}" => text.push_str(&self.stamp(step.v)),
                "before}" => text.push_str(&self.stamp(step.m.map(|(before, _)| before))),
                "after}" => text.push_str(&self.stamp(step.m.map(|(_, after)| after))),
                _ => {}
            }
        }
        if let (Some(next), "aborts") = (self.world.attempts[step.x].next, step.k) {
            let _ = write!(text, ", and goes on as {}", self.world.attempts[next].id);
        }
        text
    }

    /// What attempts came to, where no step says it.
    fn ends(&mut self) {
        let (world, outcome) = (self.world, self.outcome);
        let committed: BTreeMap<String, &Transaction> = (outcome.history.transactions.iter())
            .map(|transaction| (format!("{:?}", transaction.id), transaction))
            .collect();
        let mut told: BTreeMap<usize, &str> = BTreeMap::new();
        for step in world.steps.iter().filter(|step| step.k == "aborts") {
            told.insert(step.x, step.w.unwrap_or_default());
        }
        for (x, attempt) in world.attempts.iter().enumerate() {
            let answered = committed.get(&attempt.id).map(|transaction| answered_ns(transaction).is_some());
            let (time_ns, what) = match (answered, attempt.why) {
                (Some(true), _) => {
                    let kind = if attempt.snapshot { " read-only at a snapshot" } else { "" };
                    (attempt.end, format!("has committed{kind}, and its client is answered"))
                }
                (Some(false), _) => {
                    (outcome.virtual_ns, "has committed, and its client was never answered".to_owned())
                }
                (None, Some(why)) if told.get(&x) == Some(&why) => continue,
                (None, Some(why)) => (attempt.end, gives_up(why).to_owned()),
                (None, None) if attempt.outcome == "open" => {
                    (outcome.virtual_ns, "was never over, or its client crashed before it was".to_owned())
                }
                (None, None) => continue,
            };
            self.push(time_ns.max(attempt.end), Turn::Ends, attempt.shard, &attempt.id, what);
        }
    }

    /// The messages of a batch: when they leave, are lost, arrive.
    fn batch(&mut self, batch: &Sent) {
        let (from, to) = (batch.from, batch.to);
        for message in &batch.has {
            let what = self.message(message);
            let whose = message.x.map_or("", |x| &self.world.attempts[x].id);
            let mut line = |time_ns, turn, (place, way, other): (u16, char, u16), what| {
                let other = match self.world.shards[usize::from(other)].oracle {
                    true => format!("{way} oracle"),
                    false => format!("{way} {other}"),
                };
                let (place, whose) = (self.place(place), whose.to_owned());
                self.lines.push(Line { at: (time_ns, turn), place, other, whose, what });
            };
            let never = if batch.got.is_none() { ", which never arrives" } else { "" };
            line(batch.sent, Turn::Leaves, (from, '→', to), format!("{what}{never}"));
            for (number, (time_ns, copies)) in batch.tries.iter().enumerate() {
                let again = if number > 0 { "is sent again" } else { "" };
                let fate = match (copies.len(), number) {
                    (0, 0) => "is lost",
                    (0, _) => " and lost",
                    (2, 0) => "is doubled",
                    (2, _) => " and doubled",
                    _ => "",
                };
                if !again.is_empty() || !fate.is_empty() {
                    let way = if copies.is_empty() { '↛' } else { '→' };
                    line(*time_ns, Turn::Leaves, (from, way, to), format!("{what} {again}{fate}"));
                }
            }
            if let Some(got) = batch.got {
                let late = if batch.late { ", late" } else { "" };
                let way_ms = (got - batch.sent) as f64 / 1e6;
                line(
                    got,
                    Turn::Comes,
                    (to, '←', from),
                    format!("{what}, under way for {way_ms:.3} ms{late}"),
                );
            }
        }
    }

    fn message(&self, message: &Message) -> String {
        let mut text = match message.a {
            Some(answer) => format!("answer to {}: {answer}", message.k),
            None => message.k.clone(),
        };
        let names = message.i.iter().take(NAMED_MAX).map(|&i| self.world.items[i].name.as_str());
        if message.a.is_none() && !message.i.is_empty() {
            let _ = write!(text, " {}", names.collect::<Vec<_>>().join(", "));
        }
        if message.a.is_none() && message.i.len() > NAMED_MAX {
            let _ = write!(text, " and {} more", message.i.len() - NAMED_MAX);
        }
        text
    }
}

fn beginning(attempt: &Attempt, former: Option<&str>) -> String {
    let mut text = match former {
        Some(former) => format!("goes on with what {former} has read"),
        None if attempt.label.is_empty() => "begins".to_owned(),
        None => format!("begins {}", attempt.label),
    };
    if let Some(client) = attempt.client {
        let _ = write!(text, ", client {client}");
    }
    if attempt.nth > 1 {
        let _ = write!(text, ", attempt {}", attempt.nth);
    }
    text
}
