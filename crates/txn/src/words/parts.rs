//! What a transaction has read from the shards, findable by key.
//!
//! Reads come in batches, one [`FetchedBatch`] per shard and batch, in which a record is a get or a
//! row that a scan has met. A procedure has few parts and asks for its reads in the order in which
//! it has declared them, so a cursor finds most and a linear search the others. An interactive
//! transaction has a part per operation, as many as its client likes: beyond a few reads there is
//! an index, and a transaction of n operations takes O(n log n). The index is made when somebody
//! searches, so that a client who only scans does not pay for it.

use std::collections::BTreeSet;

use plimsoll_types::{ColumnGroup, Key, ShardId};

use crate::fetched::{Fetched, Got};
use crate::procedure::{Intent, Reads};
use crate::timestamp::Scheme;

/// Up to so many reads are searched one by one.
const FEW: usize = 64;

/// A batch of reads that was sent to a shard, and its answer.
#[derive(Debug)]
pub(crate) struct FetchedBatch<S: Scheme> {
    pub shard: ShardId,
    pub reads: Reads,
    pub fetched: Fetched<S>,
    /// Whether the records that were read have been locked since.
    pub locked: bool,
}

/// Where a record was read. All gets come before the rows of scans, whose values are the same, but
/// which are further away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Position {
    /// The scan of the part that has met it; `None` for a get.
    scan: Option<u32>,
    part: u32,
    /// The get, or the row of the scan.
    row: u32,
}

const FIRST: Position = Position { scan: None, part: 0, row: 0 };

/// All batches of a transaction, in the order in which they were answered.
#[derive(Debug)]
pub(crate) struct FetchedBatches<S: Scheme> {
    parts: Vec<FetchedBatch<S>>,
    /// How many gets and scans there are; a part without any counts as one.
    reads: usize,
    /// Where each record was read, in the first `indexed` parts; empty while there are few reads.
    index: BTreeSet<(ColumnGroup, Key, Position)>,
    indexed: usize,
    /// Behind the last get that was found: the next is usually here.
    cursor: Position,
}

impl<S: Scheme> Default for FetchedBatches<S> {
    fn default() -> Self {
        FetchedBatches { parts: Vec::new(), reads: 0, index: BTreeSet::new(), indexed: 0, cursor: FIRST }
    }
}

impl<S: Scheme> FromIterator<FetchedBatch<S>> for FetchedBatches<S> {
    fn from_iter<I: IntoIterator<Item = FetchedBatch<S>>>(iter: I) -> Self {
        let mut parts = FetchedBatches::default();
        iter.into_iter().for_each(|part| parts.push(part));
        parts
    }
}

impl<S: Scheme> FetchedBatches<S> {
    /// Appends an answer.
    pub fn push(&mut self, part: FetchedBatch<S>) {
        self.reads += (part.reads.gets.len() + part.reads.scans.len()).max(1);
        self.parts.push(part);
    }

    /// How many answers there are.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// All answers from a number on.
    pub fn since(&self, first: usize) -> &[FetchedBatch<S>] {
        &self.parts[first..]
    }

    /// Of the answers from a number on, forgets the gets that were left out because the answer was
    /// large enough ([`Reads::most`]).
    pub fn forget_unanswered(&mut self, first: usize) {
        for part in &mut self.parts[first..] {
            part.reads.gets.truncate(part.fetched.gets.len());
        }
    }

    /// Of the answers from a number on, keeps only what the commit needs of scans: what to validate,
    /// and which ranges were read. Their rows are not found any more.
    pub fn forget_rows(&mut self, first: usize) {
        for FetchedBatch { reads, fetched, .. } in &mut self.parts[first..] {
            assert!(reads.gets.is_empty(), "values of gets are kept");
            for ((scan, _), met) in reads.scans.iter_mut().zip(&mut fetched.scans) {
                let last = met.rows.last().filter(|_| met.more).map(|(key, _)| key);
                (scan.low, scan.high) = scan.read_up_to(last);
                met.more = false;
                let rows = std::mem::take(&mut met.rows);
                met.reads.extend(rows.into_iter().map(|(_, got)| got.read));
                met.reads.shrink_to_fit();
            }
            fetched.bytes = Vec::new();
        }
    }

    /// The answers of one shard.
    pub fn of(&self, shard: ShardId) -> impl Iterator<Item = &FetchedBatch<S>> {
        self.parts.iter().filter(move |part| part.shard == shard)
    }

    /// The answers of one shard, to note what has become of the reads since. Keys must not change.
    pub fn of_mut(&mut self, shard: ShardId) -> impl Iterator<Item = &mut FetchedBatch<S>> {
        self.parts.iter_mut().filter(move |part| part.shard == shard)
    }

    /// The shards that have answered, in order.
    pub fn shards(&self) -> Vec<ShardId> {
        let mut shards: Vec<ShardId> = self.parts.iter().map(|part| part.shard).collect();
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    /// A record that was read, and the part that has its value. What a scan has not met, because it
    /// is absent, is not found.
    pub fn find(&mut self, column: ColumnGroup, key: &Key) -> Option<(&FetchedBatch<S>, &Got)> {
        let Position { part, row, .. } = self.cursor;
        let next = self.parts.get(part as usize).and_then(|part| part.reads.gets.get(row as usize));
        let position = match next.is_some_and(|(c, k, _)| *c == column && k == key) {
            true => self.cursor,
            false => self.position(column, key, |_, _, _| true)?,
        };
        if position.scan.is_none() {
            self.cursor = Position { row: position.row + 1, ..position };
        }
        Some((&self.parts[position.part as usize], self.read(position).1))
    }

    /// Whether a record that is present was read on a shard to be written.
    pub fn read_for_update(&mut self, shard: ShardId, column: ColumnGroup, key: &Key) -> bool {
        let update = |part: &FetchedBatch<S>, intent, got: &Got| {
            part.shard == shard && intent == Intent::Update && got.value.is_some()
        };
        self.position(column, key, update).is_some()
    }

    fn read(&self, Position { scan, part, row }: Position) -> (Intent, &Got) {
        let FetchedBatch { reads, fetched, .. } = &self.parts[part as usize];
        match scan {
            None => (reads.gets[row as usize].2, &fetched.gets[row as usize]),
            Some(scan) => (reads.scans[scan as usize].1, &fetched.scans[scan as usize].rows[row as usize].1),
        }
    }

    /// The first read of a record that is as wanted.
    fn position(
        &mut self,
        column: ColumnGroup,
        key: &Key,
        wanted: impl Fn(&FetchedBatch<S>, Intent, &Got) -> bool,
    ) -> Option<Position> {
        let wanted = |parts: &Self, position: Position| {
            let (intent, got) = parts.read(position);
            wanted(&parts.parts[position.part as usize], intent, got)
        };
        if self.reads > FEW {
            self.index();
            let from = self.index.range((column, key.clone(), FIRST)..);
            let mut reads = from.take_while(|(c, k, _)| *c == column && k == key).map(|read| read.2);
            return reads.find(|&position| wanted(self, position));
        }
        let parts = || (0..).zip(&self.parts);
        let gets = parts().flat_map(|(part, found)| {
            let gets = (0..).zip(&found.reads.gets).filter(|(_, (c, k, _))| *c == column && k == key);
            gets.map(move |(row, _)| Position { scan: None, part, row })
        });
        let rows = parts().flat_map(|(part, found)| {
            let scans = (0..).zip(found.reads.scans.iter().zip(&found.fetched.scans));
            scans.filter(|(_, ((asked, _), _))| asked.column == column).filter_map(
                move |(scan, ((asked, _), met))| {
                    let row = met.rows.binary_search_by(|(k, _)| asked.order.compare(k, key)).ok()?;
                    Some(Position { scan: Some(scan), part, row: row as u32 })
                },
            )
        });
        gets.chain(rows).find(|&position| wanted(self, position))
    }

    /// Brings the index up to date.
    fn index(&mut self) {
        for (part, found) in (self.indexed as u32..).zip(&self.parts[self.indexed..]) {
            for (row, (column, key, _)) in (0..).zip(&found.reads.gets) {
                self.index.insert((*column, key.clone(), Position { scan: None, part, row }));
            }
            let scans = found.reads.scans.iter().zip(&found.fetched.scans);
            for (scan, ((asked, _), met)) in (0..).zip(scans) {
                for (row, (key, _)) in (0..).zip(&met.rows) {
                    let position = Position { scan: Some(scan), part, row };
                    self.index.insert((asked.column, key.clone(), position));
                }
            }
        }
        self.indexed = self.parts.len();
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_types::{Order, TableId, Timestamp};

    use super::*;
    use crate::fetched::{ReadRef, ScanResult};
    use crate::procedure::Scan;
    use crate::timestamps::Dst;

    const COLUMN: ColumnGroup = ColumnGroup { table: TableId(3), group: 0 };

    fn key(number: u64) -> Key {
        Key::of_u64(number)
    }

    /// The version tells the reads apart.
    fn got(version: u64) -> Got {
        Got { value: Some((0, 0)), version: Some(Timestamp(version)), read: ReadRef::Stale }
    }

    fn get(parts: &mut FetchedBatches<Dst>, number: u64, intent: Intent, got: Got) {
        let reads = Reads { gets: vec![(COLUMN, key(number), intent)], ..Reads::default() };
        let fetched = Fetched { gets: vec![got], ..Fetched::default() };
        parts.push(FetchedBatch { shard: ShardId(0), reads, fetched, locked: false });
    }

    fn scan(parts: &mut FetchedBatches<Dst>, numbers: std::ops::Range<u64>, intent: Intent, version: u64) {
        let scan = Scan::range(COLUMN, key(numbers.start), key(numbers.end));
        let rows = numbers.map(|number| (key(number), got(version))).collect();
        let reads = Reads { scans: vec![(scan, intent)], ..Reads::default() };
        let fetched =
            Fetched { scans: vec![ScanResult { rows, ..ScanResult::default() }], ..Fetched::default() };
        parts.push(FetchedBatch { shard: ShardId(0), reads, fetched, locked: false });
    }

    fn found(parts: &mut FetchedBatches<Dst>, number: u64) -> Option<u64> {
        parts.find(COLUMN, &key(number)).map(|(_, got)| got.version.unwrap().0)
    }

    #[test]
    fn reads_are_found_however_many_there_are_and_the_first_get_before_all_scans() {
        let many = 3 * FEW as u64;
        let mut parts = FetchedBatches::default();
        scan(&mut parts, 1000..1010, Intent::Read, 7);
        get(&mut parts, 1003, Intent::Read, got(8));
        get(&mut parts, 1003, Intent::Read, got(9));
        for number in 0..many {
            assert_eq!(found(&mut parts, number), None);
            get(&mut parts, number, Intent::Read, got(number));
            for number in (0..=number).rev() {
                assert_eq!(found(&mut parts, number), Some(number));
            }
            assert_eq!(found(&mut parts, 1003), Some(8));
            assert_eq!(found(&mut parts, 1004), Some(7));
            assert_eq!(found(&mut parts, 1010), None);
        }
        assert!(parts.find(ColumnGroup { group: 1, ..COLUMN }, &key(1)).is_none());
    }

    #[test]
    fn of_a_scan_whose_rows_are_forgotten_the_range_and_what_to_validate_are_left() {
        let mut parts = FetchedBatches::default();
        get(&mut parts, 1, Intent::Read, got(1));
        let first = parts.len();
        for order in [Order::Ascending, Order::Descending] {
            scan(&mut parts, 5..9, Intent::Read, 7);
            let part = parts.parts.last_mut().unwrap();
            let (asked, met) = (&mut part.reads.scans[0].0, &mut part.fetched.scans[0]);
            (asked.order, met.more) = (order, true);
            met.rows.pop();
            if order == Order::Descending {
                met.rows.reverse();
            }
            met.reads.push(ReadRef::Immutable);
            part.fetched.bytes = vec![0; 10];
        }
        parts.forget_rows(first);
        assert_eq!((found(&mut parts, 1), found(&mut parts, 6)), (Some(1), None));
        let ranges: Vec<_> = (parts.since(first).iter())
            .map(|part| {
                let (asked, met) = (&part.reads.scans[0].0, &part.fetched.scans[0]);
                assert_eq!((met.rows.len(), met.reads.len(), met.more), (0, 4, false));
                assert!(part.fetched.bytes.is_empty());
                (asked.low.clone(), asked.high.clone().unwrap())
            })
            .collect();
        assert_eq!(ranges, [(key(5), key(7).just_after()), (key(5), key(9))]);
    }

    #[test]
    fn a_read_for_update_is_found_behind_others_of_the_same_record() {
        for others in [0, 3 * FEW as u64] {
            let mut parts = FetchedBatches::default();
            (0..others).for_each(|number| get(&mut parts, 100 + number, Intent::Read, got(0)));
            get(&mut parts, 1, Intent::Read, got(1));
            get(&mut parts, 2, Intent::Update, Got { value: None, version: None, read: ReadRef::Stale });
            assert!(!parts.read_for_update(ShardId(0), COLUMN, &key(1)));
            get(&mut parts, 1, Intent::Update, got(2));
            scan(&mut parts, 5..7, Intent::Update, 3);
            assert!(parts.read_for_update(ShardId(0), COLUMN, &key(1)));
            assert!(!parts.read_for_update(ShardId(0), COLUMN, &key(2)), "it was absent");
            assert!(parts.read_for_update(ShardId(0), COLUMN, &key(6)));
            assert!(!parts.read_for_update(ShardId(0), COLUMN, &key(7)));
            assert!(!parts.read_for_update(ShardId(1), COLUMN, &key(6)), "it was read elsewhere");
        }
    }
}
