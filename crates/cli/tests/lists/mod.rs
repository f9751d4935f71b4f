//! Clients that append to lists and read them, and a judge of what they saw that knows nothing of
//! this database.

use std::ops::Range;
use std::time::Duration;

use adya::{History, Opts, Valid, Workload};
use plimsoll::{Database, Error, Freshness, Key, TableId};
use plimsoll_sim::export::lines_of;
use plimsoll_sim::workload::append::{Attempted, End, Operation};

/// What a list holds.
pub fn numbers(value: Option<Vec<u8>>) -> Vec<u64> {
    let value = value.unwrap_or_default();
    value.chunks_exact(8).map(|bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes"))).collect()
}

/// A number that looks random, and is another for each input.
pub fn scrambled(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ x >> 29).wrapping_mul(0x94d0_49bb_1331_11eb) >> 8
}

/// What a client is going to do: it reads some lists and appends to one or two, or looks at some at
/// a snapshot.
pub struct Planned {
    session: u32,
    /// Whether it only looks.
    pub snapshot: bool,
    /// The lists, with what is appended to them if it is not a snapshot.
    pub lists: Vec<(u64, u64)>,
}

impl Planned {
    /// A transaction of a session, of which each round is to be another, over some of these lists.
    pub fn new(session: u32, round: u64, lists: Range<u64>) -> Planned {
        let snapshot = round.is_multiple_of(3);
        let count = if snapshot { 3 } else { 1 + round % 2 };
        let lists = (0..count).map(|n| {
            let number = u64::from(session) << 40 | round << 4 | n;
            (lists.start + scrambled(number) % (lists.end - lists.start), number)
        });
        Planned { session, snapshot, lists: lists.collect() }
    }

    /// Does it.
    pub fn attempt(&self, db: &Database, table: TableId, now: impl Fn() -> u64) -> Attempted {
        let begin = now();
        let mut operations = Vec::new();
        let result = match self.snapshot {
            true => db.snapshot(Freshness::Newest).and_then(|snapshot| {
                let keys: Vec<Key> = self.lists.iter().map(|&(list, _)| Key::of_u64(list)).collect();
                let values = snapshot.get_many(table, &keys)?;
                let read = self.lists.iter().zip(values);
                operations = read.map(|(&(list, _), value)| Operation::Read(list, numbers(value))).collect();
                Ok(())
            }),
            false => db.transact(|txn| -> Result<(), Error> {
                operations.clear();
                for &(list, number) in &self.lists {
                    let mut value = txn.get(table, &Key::of_u64(list))?;
                    operations.push(Operation::Read(list, numbers(value.clone())));
                    value.get_or_insert_default().extend(number.to_be_bytes());
                    txn.put(table, &Key::of_u64(list), &value.unwrap_or_default())?;
                    operations.push(Operation::Append(list, number));
                }
                Ok(())
            }),
        };
        let how = match result {
            Ok(()) => End::Committed,
            Err(Error::InDoubt { .. }) => End::Unknown,
            Err(_) => End::Aborted,
        };
        let &Planned { session, snapshot, .. } = self;
        Attempted { session, begin, end: now(), how, snapshot, timestamp: None, operations }
    }
}

/// The anomalies that a model forbids.
pub fn anomalies<'a>(attempts: impl IntoIterator<Item = &'a Attempted>, model: &str) -> Vec<String> {
    let history = History::from_json(&lines_of(attempts)).expect("an exported history is well-formed");
    let options =
        Opts { models: vec![model.to_owned()], timeout: Duration::from_secs(600), ..Opts::default() };
    let report = adya::check(&history, Workload::ListAppend, &options);
    assert!(report.valid != Valid::Unknown, "there is something to judge");
    report.anomaly_types
}

/// Nothing that serializable transactions cannot see was seen, and by transactions that write
/// nothing but what was there when they began.
pub fn judge(attempts: &[Attempted]) {
    let count = |how| attempts.iter().filter(|attempted| attempted.how == how).count();
    let counts = [End::Committed, End::Aborted, End::Unknown].map(count);
    println!("{counts:?} transactions committed, gave up, are in doubt");
    assert_eq!(anomalies(attempts, "strong-session-serializable"), [""; 0]);
    let read_write = attempts.iter().filter(|attempted| !attempted.snapshot);
    assert_eq!(anomalies(read_write, "strict-serializable"), [""; 0]);
}
