//! The checker against a model that tries every order.
//!
//! Small random histories come from a serial run, with some reads bent afterwards to other
//! versions. For a handful of transactions all orders can be tried; a history is serializable if
//! one of them explains every read and installs each record's versions in their order.

use std::collections::BTreeMap;

use plimsoll_checker::{Options, check};
use plimsoll_types::history::{History, Install, Read, ScanRead, Transaction, Version};
use plimsoll_types::{ColumnGroup, Key, ShardId, TableId, Timestamp, TxnId};
use proptest::prelude::*;
use proptest::sample::Index;

const KEYS: u8 = 4;
const COLUMN: ColumnGroup = TableId(0).row();

#[derive(Clone, Debug)]
enum Op {
    Read(u8),
    Scan(u8, u8),
    Write(u8),
    Delete(u8),
}

/// What a test starts from.
#[derive(Clone, Debug)]
struct Plan {
    /// Which keys the initial load contains.
    loaded: [bool; KEYS as usize],
    /// The operations of each transaction, in the order of the serial run.
    txns: Vec<Vec<Op>>,
    /// How long each transaction lasts beyond its own moment, before and after.
    slack: Vec<(u64, u64)>,
}

fn plans(txns: usize) -> impl Strategy<Value = Plan> {
    let key = 0..KEYS;
    let op = prop_oneof![
        4 => key.clone().prop_map(Op::Read),
        1 => (key.clone(), key.clone()).prop_map(|(a, b)| Op::Scan(a.min(b), a.max(b) + 1)),
        3 => key.clone().prop_map(Op::Write),
        1 => key.prop_map(Op::Delete),
    ];
    let slack = (0u64..35, 0u64..35);
    let txns = prop::collection::vec((prop::collection::vec(op, 1..5), slack), 2..=txns);
    (any::<[bool; KEYS as usize]>(), txns).prop_map(|(loaded, txns)| {
        let (txns, slack) = txns.into_iter().unzip();
        Plan { loaded, txns, slack }
    })
}

/// A point of a history at which a version was read: transaction, scan or none, key, position.
#[derive(Clone, Debug)]
struct Sight {
    txn: usize,
    scan: Option<usize>,
    key: u8,
    position: usize,
}

/// A history before it is written down.
struct Run {
    plan: Plan,
    /// Per key: (writer, delete) of each install.
    chains: Vec<Vec<(usize, bool)>>,
    sights: Vec<Sight>,
}

impl Run {
    /// Runs the transactions one after the other. All reads of a transaction come before its
    /// writes.
    fn serial(plan: Plan) -> Run {
        let mut run = Run { chains: vec![vec![]; KEYS as usize], sights: vec![], plan };
        for (txn, ops) in run.plan.txns.iter().enumerate() {
            let mut writes = BTreeMap::new();
            let mut scans = 0;
            for op in ops {
                let mut see = |scan, key: u8| {
                    let position = run.chains[usize::from(key)].len();
                    run.sights.push(Sight { txn, scan, key, position });
                };
                match *op {
                    Op::Read(key) => see(None, key),
                    Op::Scan(low, high) => {
                        (low..high).for_each(|key| see(Some(scans), key));
                        scans += 1;
                    }
                    Op::Write(key) => drop(writes.insert(key, false)),
                    Op::Delete(key) => drop(writes.insert(key, true)),
                }
            }
            for (key, delete) in writes {
                run.chains[usize::from(key)].push((txn, delete));
            }
        }
        run
    }

    fn absent(&self, key: u8, position: usize) -> bool {
        match position {
            0 => !self.plan.loaded[usize::from(key)],
            _ => self.chains[usize::from(key)][position - 1].1,
        }
    }

    /// What is seen of a record at a position: `None`, or the stamp of the live row.
    fn view(&self, key: u8, position: usize) -> Option<Timestamp> {
        let stamp = match position {
            0 => Timestamp::ZERO,
            _ => timestamp(self.chains[usize::from(key)][position - 1].0),
        };
        (!self.absent(key, position)).then_some(stamp)
    }

    /// Writes the history down. Every transaction lasts for its moment and its slack, or for ever.
    fn history(&self, scalar: bool, timed: bool) -> History {
        let id = |txn: usize| TxnId { number: txn as u64 + 1, coordinator: ShardId(0) };
        let writes = |txn: usize| self.chains.iter().flatten().filter(|(writer, _)| *writer == txn).count();
        let transactions = self.plan.txns.iter().enumerate().map(|(txn, ops)| {
            let (before, after) = self.plan.slack[txn];
            let moment = timestamp(txn).0 + 100;
            let seen = |scan| self.sights.iter().filter(move |s| s.txn == txn && s.scan == scan);
            let ranges = ops.iter().filter_map(|op| match *op {
                Op::Scan(low, high) => Some((low, high)),
                _ => None,
            });
            Transaction {
                id: id(txn),
                label: "random",
                read_only: writes(txn) == 0,
                timestamp: scalar.then_some(timestamp(txn)),
                session: 0,
                begin: if timed { moment - before } else { 0 },
                end: if timed { moment + after } else { u64::MAX },
                writes: Some(writes(txn) as u32),
                reads: seen(None)
                    .map(|sight| Read {
                        column: COLUMN,
                        key: Key::new(&[sight.key]),
                        version: self.view(sight.key, sight.position).map_or(Version::Absent, Version::At),
                    })
                    .collect(),
                scans: ranges
                    .enumerate()
                    .map(|(scan, (low, high))| ScanRead {
                        column: COLUMN,
                        low: Key::new(&[low]),
                        high: (high < KEYS).then(|| Key::new(&[high])),
                        rows: seen(Some(scan))
                            .filter_map(|s| Some((Key::new(&[s.key]), self.view(s.key, s.position)?)))
                            .collect(),
                    })
                    .collect(),
            }
        });
        let mut installs = vec![vec![]; 2];
        for (key, chain) in self.chains.iter().enumerate() {
            installs[key % 2].extend(chain.iter().map(|&(txn, delete)| Install {
                txn: id(txn),
                column: COLUMN,
                key: Key::new(&[key as u8]),
                stamp: timestamp(txn),
                delete,
            }));
        }
        History { transactions: transactions.collect(), installs }
    }

    /// Whether the initial version of a record was seen live by somebody: only then is it known.
    fn known_loaded(&self, key: u8) -> bool {
        self.sights.iter().any(|s| s.key == key && s.position == 0 && !self.absent(key, 0))
    }

    /// Whether each absence seen can only be one.
    fn unambiguous(&self) -> bool {
        self.sights.iter().filter(|s| self.absent(s.key, s.position)).all(|s| {
            let deletes = self.chains[usize::from(s.key)].iter().filter(|(_, delete)| *delete).count();
            deletes + usize::from(!self.known_loaded(s.key)) <= 1
        })
    }

    /// Whether some order of the transactions explains what was seen.
    fn serializable(&self, timed: bool) -> bool {
        let mut state = vec![0usize; KEYS as usize];
        self.extend(&mut state, &mut vec![false; self.plan.txns.len()], timed)
    }

    fn extend(&self, state: &mut [usize], done: &mut [bool], timed: bool) -> bool {
        if done.iter().all(|&done| done) {
            return true;
        }
        for txn in 0..done.len() {
            if done[txn] || !self.fits(txn, state) || (timed && self.waits(txn, done)) {
                continue;
            }
            let before = state.to_vec();
            let mut in_order = true;
            for (key, chain) in self.chains.iter().enumerate() {
                if chain.iter().any(|(writer, _)| *writer == txn) {
                    in_order &= chain.get(state[key]).is_some_and(|(writer, _)| *writer == txn);
                    state[key] += 1;
                }
            }
            done[txn] = true;
            if in_order && self.extend(state, done, timed) {
                return true;
            }
            done[txn] = false;
            state.copy_from_slice(&before);
        }
        false
    }

    /// Whether a transaction, run in this state, sees what it saw.
    fn fits(&self, txn: usize, state: &[usize]) -> bool {
        self.sights.iter().filter(|s| s.txn == txn).all(|s| {
            let now = state[usize::from(s.key)];
            let absent_now = match now {
                0 => !self.known_loaded(s.key),
                _ => self.absent(s.key, now),
            };
            match self.absent(s.key, s.position) {
                true => absent_now,
                false => now == s.position,
            }
        })
    }

    /// Whether somebody that has not run yet was answered before this one began.
    fn waits(&self, txn: usize, done: &[bool]) -> bool {
        let span = |txn: usize| {
            let (before, after) = self.plan.slack[txn];
            (timestamp(txn).0 + 100 - before, timestamp(txn).0 + 100 + after)
        };
        (0..done.len()).any(|other| !done[other] && other != txn && span(other).1 < span(txn).0)
    }

    /// Bends one sight to another version of its record; false if it has but one.
    fn bend(&mut self, which: Index, to: Index) -> bool {
        if self.sights.is_empty() {
            return false;
        }
        let at = which.index(self.sights.len());
        let Sight { txn, key, position, .. } = self.sights[at];
        let chain = &self.chains[usize::from(key)];
        if chain.is_empty() {
            return false;
        }
        let new = (position + 1 + to.index(chain.len())) % (chain.len() + 1);
        if new > 0 && chain[new - 1].0 == txn {
            return false;
        }
        self.sights[at].position = new;
        true
    }
}

/// The serial run gives the transactions these timestamps.
fn timestamp(txn: usize) -> Timestamp {
    Timestamp(10 * (txn as u64 + 1))
}

fn passes(history: &History, options: Options) -> Result<(), String> {
    let report = check(history, options, &|_| "t".to_owned());
    if report.passed() { Ok(()) } else { Err(report.to_string()) }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 2000,
        max_global_rejects: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_serial_run_keeps_every_promise(plan in plans(12)) {
        let run = Run::serial(plan);
        let all = Options { scalar: true, realtime: true, sessions: true, complete: true };
        for scalar in [true, false] {
            let options = Options { scalar, sessions: false, ..all };
            prop_assert_eq!(passes(&run.history(scalar, true), options), Ok(()));
            let untimed = Options { scalar, realtime: false, ..all };
            prop_assert_eq!(passes(&run.history(scalar, false), untimed), Ok(()));
        }
    }

    #[test]
    fn a_replay_finds_every_bent_read(plan in plans(12), which: Index, to: Index) {
        let mut run = Run::serial(plan);
        let before = run.sights.clone();
        prop_assume!(run.bend(which, to));
        let (old, new) = before.iter().zip(&run.sights).find(|(a, b)| a.position != b.position).unwrap();
        prop_assume!(run.view(old.key, old.position) != run.view(new.key, new.position));
        // A loaded row that is now seen as absent by the only one who knew of it: nothing is wrong.
        let forgotten = old.position == 0 && run.absent(new.key, new.position) && !run.known_loaded(new.key);
        prop_assume!(!forgotten);
        let options = Options { scalar: true, ..Options::default() };
        prop_assert!(passes(&run.history(true, false), options).is_err());
    }

    #[test]
    fn a_graph_has_a_cycle_if_no_order_explains_the_history(
        plan in plans(6),
        bends in prop::collection::vec((any::<Index>(), any::<Index>()), 0..4),
        timed: bool,
    ) {
        let mut run = Run::serial(plan);
        for (which, to) in bends {
            run.bend(which, to);
        }
        let verdict = passes(&run.history(false, timed), Options { realtime: timed, ..Options::default() });
        let serializable = run.serializable(timed);
        if serializable {
            prop_assert_eq!(verdict, Ok(()));
        } else if run.unambiguous() {
            prop_assert!(verdict.is_err(), "no order explains this, but it passed");
        }
    }
}
