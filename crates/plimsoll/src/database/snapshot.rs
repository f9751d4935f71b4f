//! Read-only transactions: everything as it was at one timestamp.
//!
//! A snapshot is a number s, registered with the shard it was taken on, which keeps the watermark of all
//! processes below it; its reads go straight to the shards that own the data, wait there for a writer whose
//! timestamp may still come out at or below s, and never abort (`docs/protocols/dst.md`).
//!
//! s may be a few nanoseconds ahead of the clock, which a commit on another shard would then not exceed. So a
//! snapshot is handed out only when the clock has passed s: whatever begins afterwards commits above it.
//!
//! A scan fetches [`CHUNK_ROWS`] rows at a time from every shard, all at s, and merges them by key: its memory
//! does not grow with the table. Left out: fetching ahead while the caller works on a chunk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use plimsoll_runtime::Env;
use plimsoll_txn::base::{Common, CommonReply};
use plimsoll_txn::fetched::Fetched;
use plimsoll_txn::interactive::CHUNK_ROWS;
use plimsoll_txn::procedure::{Intent, Reads, Scan};
use plimsoll_txn::protocol::Protocol;
use plimsoll_txn::timestamp::{self, Scheme};
use plimsoll_txn::timestamps::Dst;
use plimsoll_types::{ColumnGroup, Key, ShardId, Timestamp};

use super::keys::just_after;
use super::{Column, Database, Inner, KeyRange, Node, Row, Running, check_key};
use crate::error::Error;

/// When a snapshot is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Freshness {
    /// Now: it contains everything that was committed, by anybody, before it was asked for.
    #[default]
    Newest,
    /// So long ago, but never before what the session has seen. Rarely has to wait for a writer. At most
    /// [`Options::max_staleness`](crate::Options::max_staleness).
    Stale(Duration),
}

/// A consistent view of the database that does not change. It never aborts and holds nobody up, but the
/// versions it can see are kept until it is dropped. May be used by many threads at once.
pub struct Snapshot {
    inner: Arc<Inner>,
    at: Timestamp,
    staleness: Duration,
    /// Where it is registered, and as what.
    shard: ShardId,
    held: u32,
}

impl Database {
    /// Takes a snapshot. [`Error::TooStale`] if versions are not kept for so long.
    pub fn snapshot(&self, freshness: Freshness) -> Result<Snapshot, Error> {
        let max = self.inner.options.max_staleness;
        let asked = match freshness {
            Freshness::Newest => {
                timestamp::Freshness { staleness_ns: 0, at_least: Timestamp(self.inner.told.load(SeqCst)) }
            }
            Freshness::Stale(asked) if asked > max => return Err(Error::TooStale { asked, max }),
            Freshness::Stale(asked) => timestamp::Freshness {
                staleness_ns: asked.as_nanos() as u64,
                at_least: Timestamp(self.seen.load(SeqCst)),
            },
        };
        let shard = self.inner.coordinator(self.inner.any_shard());
        let running = self.inner.running()?;
        let (at, held, clock) = running.runtime().run_on(shard, move |env| async move {
            let (at, held) = env.local(|node| {
                let base = node.base();
                let at = base.scheme.snapshot(asked).expect("under DST a shard has every snapshot at once");
                (at, base.hold(at))
            });
            let clock = env.clock();
            while env.clock() <= at {
                env.pause().await;
            }
            (at, held, clock)
        });
        self.saw(at);
        let staleness = Duration::from_nanos(clock.0.saturating_sub(at.0));
        Ok(Snapshot { inner: self.inner.clone(), at, staleness, shard, held })
    }
}

impl Snapshot {
    /// Its place in the order of all transactions: it contains those with this timestamp or a smaller one.
    pub fn timestamp(&self) -> Timestamp {
        self.at
    }

    /// How old it was when it was taken.
    pub fn staleness(&self) -> Duration {
        self.staleness
    }

    /// Reads a record.
    pub fn get(&self, column: impl Column, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        let column = self.inner.column(column)?;
        check_key(key)?;
        let shard = self.inner.home(column.table, key);
        let reads = Reads { gets: vec![(column, key.clone(), Intent::Read)], scans: Vec::new() };
        let running = self.inner.running()?;
        let fetched = collect(&self.ask(&running, shard, reads))?;
        Ok(fetched.value(&fetched.gets[0]).map(<[u8]>::to_vec))
    }

    /// Reads many records, all shards at the same time, a few hundred per round. The values are in the order of
    /// the keys.
    pub fn get_many(&self, column: impl Column, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let column = self.inner.column(column)?;
        keys.iter().try_for_each(check_key)?;
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(CHUNK_ROWS) {
            self.get_chunk(column, keys, &mut values)?;
        }
        Ok(values)
    }

    fn get_chunk(
        &self,
        column: ColumnGroup,
        keys: &[Key],
        values: &mut Vec<Option<Vec<u8>>>,
    ) -> Result<(), Error> {
        let mut batches: BTreeMap<ShardId, (Vec<usize>, Reads)> = BTreeMap::new();
        for (position, key) in (values.len()..).zip(keys) {
            let (positions, reads) = batches.entry(self.inner.home(column.table, key)).or_default();
            positions.push(position);
            reads.get(column, key.clone());
        }
        values.resize(values.len() + keys.len(), None);
        let running = self.inner.running()?;
        let asked = batches
            .into_iter()
            .map(|(shard, (positions, reads))| (positions, self.ask(&running, shard, reads)));
        for (positions, answers) in asked.collect::<Vec<_>>() {
            let fetched = collect(&answers)?;
            for (position, got) in positions.into_iter().zip(&fetched.gets) {
                values[position] = fetched.value(got).map(<[u8]>::to_vec);
            }
        }
        Ok(())
    }

    /// The rows of a range in key order. They are fetched little by little while the iterator is used, all as
    /// of this snapshot. [`Error::NotOrdered`] for a hash table.
    pub fn scan(&self, column: impl Column, range: impl Into<KeyRange>) -> Result<Rows<'_>, Error> {
        let range = range.into();
        let column = self.inner.scanned(column, &range)?;
        let shards = match range.is_empty() {
            true => Vec::new(),
            false => self.inner.shards_of(column.table, &range),
        };
        let cursor = |shard| Cursor { shard, next: Some(range.low.clone()), rows: VecDeque::new() };
        let cursors = shards.into_iter().map(cursor).collect();
        Ok(Rows { snapshot: self, column, high: range.high, left: range.limit, cursors })
    }

    /// Sends reads to a shard, again and again while it cannot be reached: whatever was answered or not, the same is read.
    fn ask(&self, running: &Running<'_>, shard: ShardId, reads: Reads) -> Receiver<Answer> {
        let (answer, answers) = mpsc::sync_channel(1);
        let (snapshot, patience) = (self.at, self.inner.options.patience);
        running.runtime().spawn_on(self.inner.coordinator(shard), move |env| async move {
            let txn = env.local(|node| node.base().next_id());
            let begun = env.clock();
            let fetched = loop {
                let request = Node::common(Common::read_at(txn, snapshot, reads.clone()));
                match env.call(shard, request).await.map(Node::common_reply) {
                    Ok(CommonReply::Fetched(fetched)) => break fetched.ok_or(Error::SnapshotGone),
                    Ok(_) => unreachable!("a shard answers reads with what was read"),
                    Err(_) => {}
                }
                let waited = Duration::from_nanos(env.clock().0 - begun.0);
                if waited >= patience {
                    break Err(Error::Unreachable { waited });
                }
                env.sleep(RETRY_NS).await;
            };
            // Nobody listens any more if the client has met an error elsewhere.
            let _ = answer.send(fetched);
        });
        answers
    }
}

/// What became of reads.
type Answer = Result<Fetched<Dst>, Error>;

/// How long a shard that cannot be reached is left alone, in nanoseconds.
const RETRY_NS: u64 = 5_000_000;

/// Waits for the answer of a shard.
fn collect(answers: &Receiver<Answer>) -> Answer {
    answers.recv().expect("a task started on a shard runs to its end")
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Ok(running) = self.inner.running() {
            let held = self.held;
            running.runtime().spawn_on(self.shard, move |env| async move {
                env.local(|node| node.base().release(held));
            });
        }
    }
}

/// How far a scan has come on one shard.
struct Cursor {
    shard: ShardId,
    /// Where it goes on; `None`: nothing is left there.
    next: Option<Key>,
    /// Fetched, but not yet returned.
    rows: VecDeque<Row>,
}

/// The rows of a scan at a snapshot, in key order. An error, which in one process can only be [`Error::Closed`], is the
/// last item.
pub struct Rows<'a> {
    snapshot: &'a Snapshot,
    column: ColumnGroup,
    high: Option<Key>,
    left: usize,
    cursors: Vec<Cursor>,
}

impl Rows<'_> {
    /// Fetches the next chunk from every shard whose last one is used up; all at the same time.
    fn refill(&mut self) -> Result<(), Error> {
        if !self.cursors.iter().any(|cursor| cursor.rows.is_empty() && cursor.next.is_some()) {
            return Ok(());
        }
        let snapshot = self.snapshot;
        let running = snapshot.inner.running()?;
        let limit = self.left.min(CHUNK_ROWS);
        let mut asked = Vec::new();
        for cursor in self.cursors.iter_mut().filter(|cursor| cursor.rows.is_empty()) {
            if let Some(low) = cursor.next.take() {
                let scan = Scan { column: self.column, low, high: self.high.clone(), limit };
                let reads = Reads { gets: Vec::new(), scans: vec![(scan, Intent::Read)] };
                asked.push((snapshot.ask(&running, cursor.shard, reads), cursor));
            }
        }
        for (answers, cursor) in asked {
            let mut fetched = collect(&answers)?;
            let scanned = std::mem::take(&mut fetched.scans[0]);
            if scanned.rows.len() == limit {
                cursor.next = scanned.rows.last().map(|(key, _)| just_after(key));
            }
            let rows =
                scanned.rows.into_iter().filter_map(|(key, got)| Some((key, fetched.value(&got)?.to_vec())));
            cursor.rows.extend(rows);
        }
        Ok(())
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Result<Row, Error>> {
        if self.left == 0 {
            return None;
        }
        if let Err(error) = self.refill() {
            self.left = 0;
            return Some(Err(error));
        }
        let first = |a: &&mut Cursor, b: &&mut Cursor| a.rows[0].0.cmp(&b.rows[0].0);
        let cursor = self.cursors.iter_mut().filter(|cursor| !cursor.rows.is_empty()).min_by(first)?;
        self.left -= 1;
        cursor.rows.pop_front().map(Ok)
    }
}
