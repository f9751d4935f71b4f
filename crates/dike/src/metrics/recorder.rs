//! Counting while a run goes on.
//!
//! Each terminal owns a [`Recorder`]; nothing is shared and a transaction costs a few array
//! increments. Kinds of transactions and causes of aborts and errors are numbers here, named once
//! in the [`Layout`].
//!
//! One *transaction* may take several *attempts*. An attempt that the database rolled back counts
//! as an abort by its cause, one that failed otherwise as an error by its cause, and every further
//! attempt as a retry. A transaction counts once, as committed with the latency from its first
//! attempt on, or as given up.
//!
//! Of each cause the first failure is kept in its own words: a count alone does not say what to
//! mend.
//!
//! Latencies of a second wait until it is over, so that a run which is ended early counts whole
//! seconds there too.

use std::sync::Arc;

use super::document::Said;
use super::latency::{Heat, Histogram};
use crate::control::SECOND_NS;

/// A tenth of a second, the resolution of the throughput curve.
const TENTH_NS: u64 = SECOND_NS / 10;

/// What the numbers of a recorder stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Kinds of transactions.
    pub kinds: Vec<String>,
    /// Causes for which the database rolls an attempt back, and the transaction's own roll-back.
    pub aborts: Vec<String>,
    /// Causes for which an attempt fails otherwise.
    pub errors: Vec<String>,
    /// Seconds at the beginning that enter no figure.
    pub warm_up_seconds: u64,
}

/// A transaction that has committed.
#[derive(Clone, Copy, Debug)]
pub struct Committed {
    /// Its kind.
    pub kind: usize,
    /// When it was meant to start, if arrivals do not wait for the database.
    pub intended_ns: Option<u64>,
    /// When its first attempt started.
    pub started_ns: u64,
    /// When it was known to be committed.
    pub ended_ns: u64,
}

/// What one terminal has done.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub(super) layout: Arc<Layout>,
    pub(super) kinds: Vec<Kind>,
    /// By cause, by second.
    pub(super) aborts: Vec<Vec<u64>>,
    pub(super) errors: Vec<Vec<u64>>,
    /// By cause, the first failure.
    pub(super) aborts_said: Vec<Option<Said>>,
    pub(super) errors_said: Vec<Option<Said>>,
    pub(super) retries: Vec<u64>,
    /// Nanoseconds without a connection, by second.
    pub(super) offline_ns: Vec<u64>,
    /// Transactions committed, by tenth of a second.
    pub(super) tenths: Vec<u64>,
    pub(super) heat: Heat,
    /// Latencies of the newest second: kind, service time, response time.
    pending: Vec<(usize, u64, Option<u64>)>,
    pending_second: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Kind {
    /// By second.
    pub committed: Vec<u64>,
    pub aborted: Vec<u64>,
    pub failed: Vec<u64>,
    pub given_up: Vec<u64>,
    pub unended: u64,
    pub service: Histogram,
    pub response: Histogram,
}

impl Recorder {
    /// For one terminal.
    pub fn new(layout: Arc<Layout>) -> Recorder {
        Recorder {
            kinds: layout.kinds.iter().map(|_| Kind::default()).collect(),
            aborts: vec![Vec::new(); layout.aborts.len()],
            errors: vec![Vec::new(); layout.errors.len()],
            aborts_said: vec![None; layout.aborts.len()],
            errors_said: vec![None; layout.errors.len()],
            retries: Vec::new(),
            offline_ns: Vec::new(),
            tenths: Vec::new(),
            heat: Heat::default(),
            pending: Vec::new(),
            pending_second: 0,
            layout,
        }
    }

    /// A transaction has committed.
    pub fn committed(&mut self, done: Committed) {
        let second = done.ended_ns / SECOND_NS;
        let us = |from_ns: u64| done.ended_ns.saturating_sub(from_ns).div_ceil(1_000);
        let (service, response) = (us(done.started_ns), done.intended_ns.map(us));
        if second != self.pending_second {
            self.settle();
            self.pending_second = second;
        }
        self.pending.push((done.kind, service, response));
        self.heat.record(second as usize, response.unwrap_or(service));
        count(&mut self.kinds[done.kind].committed, done.ended_ns / SECOND_NS, 1);
        count(&mut self.tenths, done.ended_ns / TENTH_NS, 1);
    }

    /// The database has rolled an attempt back.
    pub fn aborted(&mut self, now_ns: u64, kind: usize, cause: usize) {
        count(&mut self.aborts[cause], now_ns / SECOND_NS, 1);
        count(&mut self.kinds[kind].aborted, now_ns / SECOND_NS, 1);
    }

    /// An attempt has failed otherwise.
    pub fn failed(&mut self, now_ns: u64, kind: usize, cause: usize) {
        count(&mut self.errors[cause], now_ns / SECOND_NS, 1);
        count(&mut self.kinds[kind].failed, now_ns / SECOND_NS, 1);
    }

    /// What was said with a roll-back of this cause; the first is kept.
    pub fn abort_said(&mut self, cause: usize, said: impl FnOnce() -> Said) {
        self.aborts_said[cause].get_or_insert_with(said);
    }

    /// What was said with an error of this cause; the first is kept.
    pub fn error_said(&mut self, cause: usize, said: impl FnOnce() -> Said) {
        self.errors_said[cause].get_or_insert_with(said);
    }

    /// A transaction had not ended when the run stopped waiting for it.
    pub fn unended(&mut self, kind: usize) {
        self.kinds[kind].unended += 1;
    }

    /// Another attempt of the same transaction begins.
    pub fn retried(&mut self, now_ns: u64) {
        count(&mut self.retries, now_ns / SECOND_NS, 1);
    }

    /// No further attempt of a transaction is made.
    pub fn given_up(&mut self, now_ns: u64, kind: usize) {
        count(&mut self.kinds[kind].given_up, now_ns / SECOND_NS, 1);
    }

    /// The terminal had no connection in this time.
    pub fn offline(&mut self, from_ns: u64, to_ns: u64) {
        let mut from_ns = from_ns;
        while from_ns < to_ns {
            let second = from_ns / SECOND_NS;
            let end_ns = to_ns.min((second + 1) * SECOND_NS);
            count(&mut self.offline_ns, second, end_ns - from_ns);
            from_ns = end_ns;
        }
    }

    /// Adds another terminal's figures. Both terminals have ended.
    pub fn merge(&mut self, other: &Recorder) {
        assert_eq!(self.layout, other.layout, "terminals of one run have one layout");
        // What is pending is of the last second of each, which may differ.
        if other.pending_second > self.pending_second {
            self.settle();
            self.pending_second = other.pending_second;
        }
        if other.pending_second == self.pending_second {
            self.pending.extend_from_slice(&other.pending);
        } else {
            self.record(other.pending_second, &other.pending);
        }
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            add(&mut mine.committed, &theirs.committed);
            add(&mut mine.aborted, &theirs.aborted);
            add(&mut mine.failed, &theirs.failed);
            add(&mut mine.given_up, &theirs.given_up);
            mine.unended += theirs.unended;
            mine.service.merge(&theirs.service);
            mine.response.merge(&theirs.response);
        }
        self.aborts.iter_mut().zip(&other.aborts).for_each(|(mine, theirs)| add(mine, theirs));
        self.errors.iter_mut().zip(&other.errors).for_each(|(mine, theirs)| add(mine, theirs));
        let said = [(&mut self.aborts_said, &other.aborts_said), (&mut self.errors_said, &other.errors_said)];
        said.into_iter()
            .flat_map(|(mine, theirs)| mine.iter_mut().zip(theirs))
            .for_each(|(mine, theirs)| Said::keep_first(mine, theirs));
        add(&mut self.retries, &other.retries);
        add(&mut self.offline_ns, &other.offline_ns);
        add(&mut self.tenths, &other.tenths);
        self.heat.merge(&other.heat);
    }

    /// Everything up to a whole second of the run and nothing later. All terminals are merged.
    pub(super) fn cut(&mut self, seconds: u64) {
        if self.pending_second < seconds {
            self.settle();
        }
        self.pending.clear();
        let end = seconds as usize;
        let series = self
            .kinds
            .iter_mut()
            .flat_map(|kind| [&mut kind.committed, &mut kind.aborted, &mut kind.failed, &mut kind.given_up])
            .chain(&mut self.aborts)
            .chain(&mut self.errors)
            .chain([&mut self.retries, &mut self.offline_ns]);
        series.for_each(|values| values.resize(end, 0));
        self.tenths.resize(10 * end, 0);
        self.heat.seconds.resize(end, Vec::new());
    }

    /// The newest second is over.
    fn settle(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.record(self.pending_second, &pending);
        self.pending = pending;
        self.pending.clear();
    }

    fn record(&mut self, second: u64, latencies: &[(usize, u64, Option<u64>)]) {
        if second < self.layout.warm_up_seconds {
            return;
        }
        for &(kind, service, response) in latencies {
            self.kinds[kind].service.record(service);
            if let Some(response) = response {
                self.kinds[kind].response.record(response);
            }
        }
    }
}

fn count(values: &mut Vec<u64>, at: u64, n: u64) {
    let at = at as usize;
    if values.len() <= at {
        values.resize(at + 1, 0);
    }
    values[at] += n;
}

/// Adds counts by second.
pub(super) fn add(mine: &mut Vec<u64>, theirs: &[u64]) {
    if mine.len() < theirs.len() {
        mine.resize(theirs.len(), 0);
    }
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn layout() -> Arc<Layout> {
        Arc::new(Layout {
            kinds: vec!["new_order".into(), "payment".into()],
            aborts: vec!["serialization".into(), "deadlock".into()],
            errors: vec!["connection".into()],
            warm_up_seconds: 1,
        })
    }

    fn commit(recorder: &mut Recorder, kind: usize, started_ms: u64, ended_ms: u64) {
        let intended_ns = None;
        let (started_ns, ended_ns) = (started_ms * MS, ended_ms * MS);
        recorder.committed(Committed { kind, intended_ns, started_ns, ended_ns });
    }

    #[test]
    fn the_warm_up_and_a_broken_last_second_have_no_latencies() {
        let mut recorder = Recorder::new(layout());
        commit(&mut recorder, 0, 990, 999);
        commit(&mut recorder, 0, 999, 1_001);
        commit(&mut recorder, 0, 1_990, 1_993);
        commit(&mut recorder, 1, 2_100, 2_105);
        recorder.cut(2);
        assert_eq!(recorder.kinds[0].committed, [1, 2]);
        assert_eq!(recorder.kinds[1].committed, [0, 0]);
        assert_eq!((recorder.kinds[0].service.count(), recorder.kinds[1].service.count()), (2, 0));
        let latency = recorder.kinds[0].service.finish();
        assert_eq!((latency.min_us, latency.max_us), (2_000, 3_000));
        assert_eq!(recorder.tenths.len(), 20);
        assert_eq!((recorder.tenths[9], recorder.tenths[10], recorder.tenths[19]), (1, 1, 1));
        assert_eq!(recorder.heat.seconds.len(), 2);
    }

    #[test]
    fn response_times_count_from_when_a_transaction_was_meant_to_start() {
        let mut recorder = Recorder::new(layout());
        for (intended, started) in [(1_000, 1_900), (1_100, 1_910)] {
            recorder.committed(Committed {
                kind: 0,
                intended_ns: Some(intended * MS),
                started_ns: started * MS,
                ended_ns: (started + 10) * MS,
            });
        }
        recorder.cut(2);
        assert_eq!(recorder.kinds[0].service.finish().max_us, 10_000);
        assert_eq!(recorder.kinds[0].response.finish().max_us, 910_000);
        assert_eq!(recorder.kinds[0].response.finish().min_us, 820_000);
    }

    #[test]
    fn merging_terminals_is_recording_together() {
        let mut together = Recorder::new(layout());
        let mut apart = [Recorder::new(layout()), Recorder::new(layout()), Recorder::new(layout())];
        for i in 0..300 {
            for recorder in [&mut together, &mut apart[i as usize % 3]] {
                // The third terminal ends early.
                if i % 3 == 2 && i > 150 {
                    continue;
                }
                commit(recorder, i as usize % 2, 10 * i, 10 * i + 7 + i % 5);
                recorder.aborted(10 * i * MS, 0, 1);
                recorder.failed(10 * i * MS, 1, 0);
                recorder.error_said(0, || Said::new(10 * i * MS, "57014", "canceling statement"));
                recorder.retried(10 * i * MS);
                recorder.given_up(10 * i * MS, 1);
                recorder.offline(10 * i * MS, (10 * i + 3) * MS);
            }
        }
        let [mut merged, second, third] = apart;
        merged.merge(&third);
        merged.merge(&second);
        for recorder in [&mut together, &mut merged] {
            recorder.cut(3);
        }
        for kind in 0..2 {
            let (one, other) = (&together.kinds[kind], &merged.kinds[kind]);
            assert_eq!(one.committed, other.committed);
            assert_eq!(
                (&one.aborted, &one.failed, &one.given_up),
                (&other.aborted, &other.failed, &other.given_up)
            );
            assert_eq!(one.service.finish(), other.service.finish());
            assert!(one.service.count() > 50);
        }
        assert_eq!(together.aborts, merged.aborts);
        assert_eq!(together.errors, merged.errors);
        assert_eq!(together.errors_said, merged.errors_said);
        assert_eq!(merged.errors_said[0].as_ref().map(|said| said.at_seconds), Some(0.0));
        assert_eq!((&together.tenths, &together.heat), (&merged.tenths, &merged.heat));
        assert_eq!((&together.retries, &together.offline_ns), (&merged.retries, &merged.offline_ns));
    }

    #[test]
    fn time_without_a_connection_is_split_by_seconds() {
        let mut recorder = Recorder::new(layout());
        recorder.offline(900 * MS, 2_300 * MS);
        recorder.offline(2_900 * MS, 2_950 * MS);
        assert_eq!(recorder.offline_ns, [100 * MS, 1_000 * MS, 350 * MS]);
    }
}
