//! Read-only transactions: snapshots of the database at one timestamp.
//!
//! Under DST a snapshot is a number s. It is registered with the shard it was taken on, which keeps
//! the watermark of all processes below s. Its reads go straight to the shards that own the data.
//! They wait there for a writer whose timestamp may still come out at or below s, and never abort
//! (`docs/protocols/dst.md`).
//!
//! s may be a few nanoseconds ahead of the clock, and then a commit on another shard could get a
//! timestamp that is not above s. So a snapshot is handed out only when the clock has passed s:
//! every transaction that begins afterwards commits above it.
//!
//! A scan fetches [`CHUNK_ROWS`] rows at a time from every shard, all at s, and merges them by key,
//! so its memory does not grow with the table. Left out: fetching ahead while the caller works on a
//! chunk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use std::{slice, thread};

use plimsoll_txn::any_shard::{HeldSnapshot, SnapshotHandle};
use plimsoll_txn::interactive::{CHUNK_BYTES, CHUNK_ROWS};
use plimsoll_txn::procedure::{Reads, Scan};
use plimsoll_txn::timestamp;
use plimsoll_types::{ColumnGroup as StoredColumn, Key, ShardId, Timestamp};

use super::driver::Answer;
use super::stats::End;
use super::{Column, Database, Inner, KeyRange, MAP_AFTER, READ_MIN, Row, Running, check_key};
use crate::error::Error;

/// How old a new snapshot may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Freshness {
    /// Now: it contains everything that any client has committed before it was asked for. Under gts
    /// and vts it contains what the oracle has published, and what this client was told of.
    #[default]
    Newest,
    /// As old as this duration, but not older than what the session has seen. Rarely has to wait
    /// for a writer. At most [`Options::max_staleness`](crate::Options::max_staleness).
    Stale(Duration),
}

/// A consistent view of the database that does not change. It never aborts and delays no other
/// transaction, but the versions it can see are kept until it is dropped. May be used by many
/// threads at once.
pub struct Snapshot {
    inner: Arc<Inner>,
    at: SnapshotHandle,
    place: Timestamp,
    staleness: Duration,
    /// The shard it is registered on, and the number of the registration.
    shard: ShardId,
    held: u32,
    /// The life of the engine that holds it.
    life: u64,
}

impl Database {
    /// Takes a snapshot. [`Error::NoSnapshots`] if the scheme has none, [`Error::TooStale`] if
    /// versions are not kept that long, [`Error::Unreachable`] if an oracle has to be asked and
    /// does not answer.
    pub fn snapshot(&self, freshness: Freshness) -> Result<Snapshot, Error> {
        let options = &self.inner.options;
        let (pair, max) = (options.pair, options.max_staleness);
        if !pair.has_snapshots() {
            return Err(Error::NoSnapshots { scheme: pair.scheme });
        }
        let asked = match freshness {
            Freshness::Newest => {
                timestamp::Freshness { staleness_ns: 0, at_least: Timestamp(self.inner.told.load(SeqCst)) }
            }
            Freshness::Stale(_) if !pair.has_staleness() => {
                return Err(Error::NoStaleness { scheme: pair.scheme });
            }
            Freshness::Stale(asked) if asked > max => return Err(Error::TooStale { asked, max }),
            Freshness::Stale(asked) => timestamp::Freshness {
                staleness_ns: asked.as_nanos() as u64,
                at_least: Timestamp(self.seen.load(SeqCst)),
            },
        };
        let any = self.inner.any_shard();
        let begun = Instant::now();
        let (taken, shard, life) = loop {
            let waited = begun.elapsed();
            let running = self.inner.running()?;
            let shard = running.coordinator(any);
            let taken = running.snapshot(shard, asked);
            let life = running.life();
            drop(running);
            match taken {
                Ok(taken) => break (taken, shard, life),
                Err(_) if waited >= options.patience => {
                    self.inner.tally.ended(false, End::Aborted);
                    return Err(Error::Unreachable { waited });
                }
                Err(_) => thread::sleep(RETRY),
            }
        };
        self.inner.tally.ended(false, End::Committed);
        let place = taken.place.unwrap_or_default();
        self.saw(place);
        let staleness = match pair.has_staleness() {
            true => Duration::from_nanos(taken.clock.0.saturating_sub(place.0)),
            false => Duration::ZERO,
        };
        let HeldSnapshot { at, held, .. } = taken;
        Ok(Snapshot { inner: self.inner.clone(), at, place, staleness, shard, held, life })
    }
}

/// Pause before an oracle that has not answered is asked again.
const RETRY: Duration = Duration::from_millis(5);

impl Snapshot {
    /// Its place in the order of all transactions: it contains those with this timestamp or a
    /// smaller one. Zero under vts, whose snapshots are vectors.
    pub fn timestamp(&self) -> Timestamp {
        self.place
    }

    /// Its age when it was taken. Zero under gts and vts, where the age is unknown.
    pub fn staleness(&self) -> Duration {
        self.staleness
    }

    /// Reads a record.
    pub fn get(&self, column: impl Column, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        let column = self.inner.column(column)?;
        check_key(key)?;
        let mut value = Vec::with_capacity(1);
        self.get_chunk(column, slice::from_ref(key), &mut value)?;
        Ok(value.pop().flatten())
    }

    /// Reads many records from all shards at the same time, a few hundred per round. The values are
    /// in the order of the keys.
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
        column: StoredColumn,
        keys: &[Key],
        values: &mut Vec<Option<Vec<u8>>>,
    ) -> Result<(), Error> {
        let first = values.len();
        values.resize(first + keys.len(), None);
        let mut left: Vec<usize> = (0..keys.len()).collect();
        let mut search = Search::new(self);
        while !left.is_empty() {
            let mut batches: BTreeMap<ShardId, (Vec<usize>, Reads)> = BTreeMap::new();
            for position in std::mem::take(&mut left) {
                let key = &keys[position];
                let owner = self.inner.owner(column.table, key);
                let shard = owner.unwrap_or_else(|| self.inner.any_shard());
                let (positions, reads) = batches.entry(shard).or_default();
                positions.push(position);
                reads.get(column, key.clone());
            }
            let running = self.running()?;
            let asked = batches
                .into_iter()
                .map(|(shard, (positions, reads))| (shard, positions, self.ask(&running, shard, reads)));
            for (shard, positions, answer) in asked.collect::<Vec<_>>() {
                let Some(found) = answer()? else {
                    left.extend(positions);
                    search.missed(shard);
                    continue;
                };
                // Values that did not fit into the answer are asked for again.
                left.extend(positions.iter().skip(found.gets.len()));
                for (position, value) in positions.into_iter().zip(found.gets) {
                    values[first + position] = value;
                }
            }
            drop(running);
            search.on()?;
        }
        Ok(())
    }

    /// The rows of a range in key order, or from its end ([`KeyRange::reverse`]). They are fetched
    /// in chunks while the iterator is used, all at this snapshot. [`Error::NotOrdered`] for a hash
    /// table.
    pub fn scan(&self, column: impl Column, range: impl Into<KeyRange>) -> Result<Rows<'_>, Error> {
        let mut rows =
            Rows { snapshot: self, rest: self.inner.scan(column, range.into())?, cursors: Vec::new() };
        rows.begin();
        Ok(rows)
    }

    /// The engine, once there is room for reads. [`Error::SnapshotGone`] if it is not the engine
    /// that holds the snapshot.
    fn running(&self) -> Result<Running<'_>, Error> {
        self.inner.wait_for_room()?;
        let running = self.inner.running()?;
        if running.life() == self.life { Ok(running) } else { Err(Error::SnapshotGone) }
    }

    /// Sends reads to a shard.
    fn ask<'a>(&self, running: &'a Running<'_>, shard: ShardId, reads: Reads) -> Answer<'a> {
        let reads = Reads { most: Some(CHUNK_BYTES), ..reads };
        let coordinator = running.coordinator(shard);
        running.read_at(coordinator, shard, &self.at, reads, self.inner.patience(READ_MIN))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Ok(running) = self.inner.lives.as_it_is()
            && running.life() == self.life
        {
            running.release(self.shard, self.held);
        }
    }
}

/// A search for data that was not on the shard that the map says.
struct Search<'a> {
    snapshot: &'a Snapshot,
    begun: Instant,
    /// A shard that did not have what the map says it has.
    missed: Option<ShardId>,
}

impl<'a> Search<'a> {
    fn new(snapshot: &'a Snapshot) -> Search<'a> {
        Search { snapshot, begun: Instant::now(), missed: None }
    }

    fn missed(&mut self, shard: ShardId) {
        self.missed = Some(shard);
    }

    /// If a shard has missed, waits a moment for slots and map to arrive, and reads the map again.
    fn on(&mut self) -> Result<(), Error> {
        let Some(shard) = self.missed.take() else { return Ok(()) };
        let (waited, inner) = (self.begun.elapsed(), &self.snapshot.inner);
        if waited >= inner.options.patience {
            return Err(Error::Unreachable { waited });
        }
        thread::sleep(MAP_AFTER);
        inner.look_at_map(shard)
    }
}

/// The position of a scan on one shard.
struct Cursor {
    shard: ShardId,
    /// Fingerprint of the slots that the shard owns according to the map.
    owned: u64,
    /// What is left of the range there; `None`: no rows are.
    rest: Option<Scan>,
    /// Fetched, but not returned yet.
    rows: VecDeque<Row>,
}

/// The rows of a scan at a snapshot, in its order. An error is the last item; in one process it can
/// only be [`Error::Closed`].
pub struct Rows<'a> {
    snapshot: &'a Snapshot,
    /// The rest of the range.
    rest: Scan,
    cursors: Vec<Cursor>,
}

impl Rows<'_> {
    /// Begins a scan of the rest of the range, on the shards that have some of it. All cursors go
    /// by one map, so each slot is covered by exactly one.
    fn begin(&mut self) {
        let inner = &self.snapshot.inner;
        let placement = inner.placement();
        let cursor = |shard| Cursor {
            shard,
            owned: placement.fingerprint(shard),
            rest: Some(self.rest.clone()),
            rows: VecDeque::new(),
        };
        let mut shards = inner.shards_of(&placement, &self.rest);
        if shards.is_empty() {
            shards.push(inner.any_shard());
        }
        self.cursors = shards.into_iter().map(cursor).collect();
    }

    /// Fetches the next chunk from all shards whose last chunk is used up, at the same time. If
    /// slots have moved, the rest of the range begins anew.
    fn refill(&mut self) -> Result<(), Error> {
        let mut search = Search::new(self.snapshot);
        while self.cursors.iter().any(|cursor| cursor.rows.is_empty() && cursor.rest.is_some()) {
            let running = self.snapshot.running()?;
            let limit = self.rest.limit.min(CHUNK_ROWS);
            let mut asked = Vec::new();
            for cursor in self.cursors.iter_mut().filter(|cursor| cursor.rows.is_empty()) {
                if let Some(scan) = &cursor.rest {
                    let mut reads = Reads { owned: cursor.owned, ..Reads::default() };
                    reads.scan(scan.clone().limit(limit));
                    asked.push((self.snapshot.ask(&running, cursor.shard, reads), cursor));
                }
            }
            for (answer, cursor) in asked {
                let Some(found) = answer()? else {
                    search.missed(cursor.shard);
                    continue;
                };
                let scanned = found.scans.into_iter().next().expect("a scan is answered with rows");
                match (&scanned.last, &mut cursor.rest) {
                    (Some(last), Some(rest)) => rest.go_on_behind(last),
                    _ => cursor.rest = None,
                }
                cursor.rows.extend(scanned.rows);
            }
            drop(running);
            if search.missed.is_some() {
                search.on()?;
                self.begin();
            }
        }
        Ok(())
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Result<Row, Error>> {
        if self.rest.limit == 0 {
            return None;
        }
        if let Err(error) = self.refill() {
            self.rest.limit = 0;
            return Some(Err(error));
        }
        let order = self.rest.order;
        let first = |a: &&mut Cursor, b: &&mut Cursor| order.compare(&a.rows[0].0, &b.rows[0].0);
        let cursor = self.cursors.iter_mut().filter(|cursor| !cursor.rows.is_empty()).min_by(first)?;
        self.rest.limit -= 1;
        let row = cursor.rows.pop_front()?;
        self.rest.go_on_behind(&row.0);
        Some(Ok(row))
    }
}
