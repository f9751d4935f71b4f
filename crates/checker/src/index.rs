//! A history with its names resolved: records and transactions as dense numbers, chains of
//! versions.
//!
//! Every record that anybody touched gets a number, in the order of first mention, and every read
//! remembers the number of its record; hashing happens once. The versions of a record stand side by
//! side: *position* 0 is the initial version, position p > 0 the record's p-th install. A
//! transaction's number is its place in [`History::transactions`]; writers that nobody recorded
//! follow behind.
//!
//! # Which absence was read
//!
//! A live row has a stamp, an absence has none. Take a record that was inserted by A and deleted by
//! B, with an unknown beginning: positions 0 (absent), 1 (A's), 2 (B's tombstone). Whoever saw no
//! row read position 0 or 2. Three rules narrow the choice ([`Index::absence`]):
//!
//! * With scalar timestamps, it read the newest absence below its *horizon*, its own timestamp. If
//!   it read another one, the scheme has failed, and the replay says so.
//! * Otherwise the horizon is the clock: nobody reads what a transaction wrote that began after he
//!   was answered. And a transaction that wrote the record itself read something older than its own
//!   version, if that is possible at all.
//!
//! * If real time is promised, an absence that was over before the reader began is none it can have
//!   read.
//!
//! What remains is a [`Span`] of positions. Its ends carry what is certain: the reader comes after
//! the writer of the *first* absence possible and before the writer of what followed the *last*
//! one, because the writers in between are ordered among themselves. In the example, without a
//! scalar order, nothing is certain: a reader that missed A's row and a reader that came after B
//! look alike. If the two belong to the same cycle, the cycle is lost; if A's row is never deleted,
//! or B began after the reader had ended, nothing is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasherDefault;
use std::ops::Range;

use plimsoll_types::{ColumnGroup, Key, ShardId, Timestamp, TxnId};

use crate::Options;
use crate::interner::{Interner, Mixer};
use plimsoll_types::history::{History, Read, ScanRead, Transaction, Version};

/// No such number.
pub(crate) const NONE: u32 = u32::MAX;

/// One install, by the number of its writer.
#[derive(Clone, Copy)]
pub(crate) struct Installed {
    pub stamp: Timestamp,
    pub writer: u32,
    pub delete: bool,
}

/// The positions of a record's chain that a reader may have seen: `first` to `last`, both included,
/// one and the same when it is known exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub first: u32,
    pub last: u32,
}

/// A history, indexed.
pub(crate) struct Index<'h> {
    pub history: &'h History,
    pub options: Options,
    /// Writers of installs that are not among the recorded transactions.
    pub unknown: Vec<TxnId>,
    /// Transactions whose id another one bears, too.
    pub recorded_twice: Vec<u32>,
    /// Records installed on a second shard.
    pub split: Vec<(u32, [ShardId; 2])>,
    records: Vec<(ColumnGroup, &'h Key)>,
    /// Record r's versions are `versions[chains[r]..chains[r + 1]]`.
    chains: Vec<u32>,
    versions: Vec<Installed>,
    /// Whether the stamps of a record's chain strictly increase.
    increasing: Vec<bool>,
    /// The versions of each chain by stamp, if there is a chain that does not increase.
    by_stamp: Vec<u32>,
    /// Whether somebody read the record in its initial version: it was loaded.
    loaded: Vec<bool>,
    /// The records a transaction saw, its reads first and then the rows of its scans, are
    /// `seen[seen_start[t]..seen_start[t + 1]]`.
    seen: Vec<u32>,
    seen_start: Vec<u32>,
    /// The records of the columns that are scanned, by column and key. A record's place here is its
    /// rank.
    ordered: Vec<u32>,
    /// Heads of the keys in `ordered`, for searches that stay in one array.
    heads: Vec<u128>,
    columns: BTreeMap<ColumnGroup, Range<usize>>,
    ranks: Vec<u32>,
}

impl<'h> Index<'h> {
    /// Numbers everything. Two passes over installs, one over reads.
    pub fn build(history: &'h History, options: Options) -> Index<'h> {
        let mut index = Index {
            history,
            options,
            unknown: Vec::new(),
            recorded_twice: Vec::new(),
            split: Vec::new(),
            records: Vec::new(),
            chains: Vec::new(),
            versions: Vec::new(),
            increasing: Vec::new(),
            by_stamp: Vec::new(),
            loaded: Vec::new(),
            seen: Vec::new(),
            seen_start: vec![0],
            ordered: Vec::new(),
            heads: Vec::new(),
            columns: BTreeMap::new(),
            ranks: Vec::new(),
        };
        let mut names = Interner::default();
        index.number_installs(&mut names);
        index.number_reads(&mut names);
        index.records = names.into_records();
        index.chains.resize(index.records.len() + 1, index.versions.len() as u32);
        index.increasing.resize(index.records.len(), true);
        index.loaded.resize(index.records.len(), false);
        index.order_scanned_columns();
        index
    }

    fn number_installs(&mut self, names: &mut Interner<'h>) {
        let mut numbers: HashMap<TxnId, u32, BuildHasherDefault<Mixer>> = HashMap::default();
        for (number, txn) in self.history.transactions.iter().enumerate() {
            if numbers.insert(txn.id, number as u32).is_some() {
                self.recorded_twice.push(number as u32);
            }
        }
        let total: usize = self.history.installs.iter().map(Vec::len).sum();
        assert!(total < NONE as usize, "a history has fewer than 2^32 installs");

        // Count the versions of each record.
        let mut records = Vec::with_capacity(total);
        let mut shards: Vec<u16> = Vec::new();
        for (shard, installs) in self.history.installs.iter().enumerate() {
            for install in installs {
                let record = names.intern(install.column, &install.key);
                if record as usize == self.chains.len() {
                    self.chains.push(0);
                    shards.push(shard as u16);
                }
                self.chains[record as usize] += 1;
                let first = shards[record as usize];
                if usize::from(first) != shard && self.split.last().is_none_or(|(last, _)| *last != record) {
                    self.split.push((record, [ShardId(first), ShardId(shard as u16)]));
                }
                records.push(record);
            }
        }

        // Put them side by side: filled from the back, `chains` ends up as the starts of the
        // chains.
        let mut end = 0;
        for chain in &mut self.chains {
            end += *chain;
            *chain = end;
        }
        let nothing = Installed { stamp: Timestamp::ZERO, writer: NONE, delete: false };
        self.versions = vec![nothing; total];
        let installs = self.history.installs.iter().flatten();
        let mut unknown_numbers: HashMap<TxnId, u32, BuildHasherDefault<Mixer>> = HashMap::default();
        let mut writers: Vec<u32> = Vec::with_capacity(total);
        for install in installs {
            let known = numbers.get(&install.txn).copied();
            writers.push(known.unwrap_or_else(|| {
                *unknown_numbers.entry(install.txn).or_insert_with(|| {
                    self.unknown.push(install.txn);
                    (self.history.transactions.len() + self.unknown.len() - 1) as u32
                })
            }));
        }
        let backwards = self.history.installs.iter().rev().flat_map(|installs| installs.iter().rev());
        for ((install, record), writer) in backwards.zip(records.iter().rev()).zip(writers.iter().rev()) {
            let place = &mut self.chains[*record as usize];
            *place -= 1;
            self.versions[*place as usize] =
                Installed { stamp: install.stamp, writer: *writer, delete: install.delete };
        }
        self.sort_stamps(total);
    }

    fn sort_stamps(&mut self, total: usize) {
        for record in 0..self.chains.len() {
            let end = self.chains.get(record + 1).map_or(total, |&end| end as usize);
            let chain = &self.versions[self.chains[record] as usize..end];
            self.increasing.push(chain.is_sorted_by(|a, b| a.stamp < b.stamp));
        }
        if self.increasing.iter().all(|&increasing| increasing) {
            return;
        }
        self.by_stamp = (0..total as u32).collect();
        for record in 0..self.chains.len() {
            if !self.increasing[record] {
                let end = self.chains.get(record + 1).map_or(total, |&end| end as usize);
                self.by_stamp[self.chains[record] as usize..end]
                    .sort_by_key(|&version| self.versions[version as usize].stamp);
            }
        }
    }

    fn number_reads(&mut self, names: &mut Interner<'h>) {
        let txns = &self.history.transactions;
        let rows = |txn: &Transaction| txn.scans.iter().map(|scan| scan.rows.len()).sum::<usize>();
        let total: usize = txns.iter().map(|txn| txn.reads.len() + rows(txn)).sum();
        assert!(total < NONE as usize, "a history has fewer than 2^32 reads");
        self.seen.reserve_exact(total);
        self.seen_start.reserve_exact(txns.len());
        for txn in txns {
            for read in &txn.reads {
                let record = names.intern(read.column, &read.key);
                self.note_seen(record, read.version == Version::At(Timestamp::ZERO));
            }
            for scan in &txn.scans {
                for (key, stamp) in &scan.rows {
                    let record = names.intern(scan.column, key);
                    self.note_seen(record, *stamp == Timestamp::ZERO);
                }
            }
            self.seen_start.push(self.seen.len() as u32);
        }
    }

    fn note_seen(&mut self, record: u32, initial: bool) {
        self.seen.push(record);
        if initial {
            let at = record as usize;
            if self.loaded.len() <= at {
                self.loaded.resize(at + 1, false);
            }
            self.loaded[at] = true;
        }
    }

    fn order_scanned_columns(&mut self) {
        let scans = self.history.transactions.iter().flat_map(|txn| &txn.scans);
        let scanned: BTreeSet<ColumnGroup> = scans.map(|scan| scan.column).collect();
        if scanned.is_empty() {
            return;
        }
        let mut entries: BTreeMap<ColumnGroup, Vec<(u128, u32)>> = BTreeMap::new();
        for (record, (column, key)) in self.records.iter().enumerate() {
            let existed = self.loaded[record] || !self.chain(record as u32).is_empty();
            if existed && scanned.contains(column) {
                entries.entry(*column).or_default().push((key.head(), record as u32));
            }
        }
        self.ranks = vec![NONE; self.records.len()];
        for (column, mut entries) in entries {
            let tail = |record: u32| self.records[record as usize].1.tail();
            entries.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| tail(a.1).cmp(&tail(b.1))));
            let start = self.ordered.len();
            for (head, record) in entries {
                self.ranks[record as usize] = self.ordered.len() as u32;
                self.ordered.push(record);
                self.heads.push(head);
            }
            self.columns.insert(column, start..self.ordered.len());
        }
    }

    /// How many transactions there are, unknown writers included.
    pub fn transactions(&self) -> u32 {
        (self.history.transactions.len() + self.unknown.len()) as u32
    }

    /// A transaction by its number; `None` for a writer that was not recorded.
    pub fn transaction(&self, txn: u32) -> Option<&'h Transaction> {
        self.history.transactions.get(txn as usize)
    }

    /// The id of any transaction.
    pub fn id(&self, txn: u32) -> TxnId {
        self.transaction(txn)
            .map_or_else(|| self.unknown[txn as usize - self.history.transactions.len()], |txn| txn.id)
    }

    /// How many records there are.
    pub fn records(&self) -> u32 {
        self.records.len() as u32
    }

    /// Where a record is.
    pub fn record(&self, record: u32) -> (ColumnGroup, &'h Key) {
        self.records[record as usize]
    }

    /// The installs of a record, in order: position p of the record is element p - 1.
    #[inline]
    pub fn chain(&self, record: u32) -> &[Installed] {
        &self.versions[self.chains[record as usize] as usize..self.chains[record as usize + 1] as usize]
    }

    /// Whether the stamps of a record's installs strictly increase, as I1 demands.
    pub fn increasing(&self, record: u32) -> bool {
        self.increasing[record as usize]
    }

    /// Whether the record is known to have been loaded.
    pub fn loaded(&self, record: u32) -> bool {
        self.loaded[record as usize]
    }

    /// The position of the version with this stamp.
    pub fn position(&self, record: u32, stamp: Timestamp) -> Option<u32> {
        if stamp == Timestamp::ZERO {
            return Some(0);
        }
        let chain = self.chain(record);
        if self.increasing[record as usize] {
            let at = chain.partition_point(|version| version.stamp < stamp);
            return (chain.get(at)?.stamp == stamp).then_some(at as u32 + 1);
        }
        let start = self.chains[record as usize];
        let order = &self.by_stamp[start as usize..start as usize + chain.len()];
        let at = order.partition_point(|&version| self.versions[version as usize].stamp < stamp);
        let version = *order.get(at)?;
        (self.versions[version as usize].stamp == stamp).then_some(version - start + 1)
    }

    /// The point reads of a transaction with the numbers of their records.
    pub fn reads(&self, txn: u32) -> impl Iterator<Item = (&'h Read, u32)> + '_ {
        let reads = &self.history.transactions[txn as usize].reads;
        reads.iter().zip(&self.seen[self.seen_start[txn as usize] as usize..]).map(|(read, &r)| (read, r))
    }

    /// The scans of a transaction with the numbers of their rows' records.
    pub fn scans(&self, txn: u32) -> impl Iterator<Item = (&'h ScanRead, &[u32])> + '_ {
        let txn_ref = &self.history.transactions[txn as usize];
        let mut at = self.seen_start[txn as usize] as usize + txn_ref.reads.len();
        txn_ref.scans.iter().map(move |scan| {
            let rows = &self.seen[at..at + scan.rows.len()];
            at += scan.rows.len();
            (scan, rows)
        })
    }

    /// The ranks of the records that a scan covers.
    pub fn range(&self, scan: &ScanRead) -> Range<u32> {
        let Some(column) = self.columns.get(&scan.column) else { return 0..0 };
        let below = |bound: &Key| {
            let mut low = column.start;
            let mut high = column.end;
            while low < high {
                let middle = low + (high - low) / 2;
                let order = self.heads[middle].cmp(&bound.head());
                let tail = || self.records[self.ordered[middle] as usize].1.tail();
                match order.then_with(|| tail().cmp(&bound.tail())).is_lt() {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low as u32
        };
        let start = below(&scan.low);
        let end = scan.high.as_ref().map_or(column.end as u32, below);
        start..end.max(start)
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ordered.len() as u32
    }

    /// The record of a rank.
    pub fn at_rank(&self, rank: u32) -> u32 {
        self.ordered[rank as usize]
    }

    /// The rank of a record; `None` if its column is never scanned or it never existed.
    pub fn rank(&self, record: u32) -> Option<u32> {
        self.ranks.get(record as usize).copied().filter(|&rank| rank != NONE)
    }

    /// What a transaction can have seen of the others ends here: at its timestamp, in a scalar
    /// scheme, or at its answer. Compare with [`Index::moment`].
    pub fn horizon(&self, txn: u32) -> u64 {
        let Some(txn) = self.transaction(txn) else { return u64::MAX };
        match (self.options.scalar, txn.timestamp) {
            (true, Some(timestamp)) if txn.read_only => timestamp.0,
            (true, Some(timestamp)) => timestamp.0.saturating_sub(1),
            (true, None) => u64::MAX,
            (false, _) => txn.end,
        }
    }

    /// When a version came into the world: its stamp, in a scalar scheme, or the beginning of its
    /// writer.
    fn moment(&self, version: &Installed) -> u64 {
        if self.options.scalar {
            return version.stamp.0;
        }
        self.transaction(version.writer).map_or(0, |writer| writer.begin)
    }

    /// Which positions a transaction can have read that saw no row; `None` if the row was never
    /// absent.
    pub fn absence(&self, record: u32, txn: u32) -> Option<Span> {
        let chain = self.chain(record);
        let horizon = self.horizon(txn);
        let absent = |position: u32| match position {
            0 => !self.loaded(record),
            _ => chain[position as usize - 1].delete,
        };
        let visible = |position: u32| position == 0 || self.moment(&chain[position as usize - 1]) <= horizon;
        let over = |position: u32| self.options.realtime && self.was_over(chain, position, txn);
        let all = 0..chain.len() as u32 + 1;
        if self.options.scalar {
            let newest = match self.increasing(record) {
                true => chain.partition_point(|version| version.stamp.0 <= horizon) as u32,
                false => all.end - 1,
            };
            let read = (0..=newest).rev().find(|&position| absent(position) && visible(position));
            // Nothing visible is absent: the earliest absence contradicts least.
            let read = read.or_else(|| all.clone().find(|&position| absent(position)))?;
            return Some(Span { first: read, last: read });
        }
        let writes = self.transaction(txn).is_some_and(|txn| !txn.read_only);
        let own = chain.iter().position(|version| writes && version.writer == txn);
        let below_own = 0..own.map_or(all.end, |own| own as u32 + 1);
        let possible = |position: &u32| absent(*position) && visible(*position) && !over(*position);
        let span = |mut positions: Range<u32>| {
            let last = positions.clone().rev().find(possible)?;
            Some(Span { first: positions.find(possible)?, last })
        };
        span(below_own).or_else(|| span(all.clone())).or_else(|| {
            let first = all.clone().find(|&position| absent(position))?;
            Some(Span { first, last: all.rev().find(|&position| absent(position))? })
        })
    }

    /// Whether the version after this position was installed by somebody who was answered before
    /// `txn` began.
    fn was_over(&self, chain: &[Installed], position: u32, txn: u32) -> bool {
        let next = chain.get(position as usize).and_then(|next| self.transaction(next.writer));
        next.zip(self.transaction(txn)).is_some_and(|(next, txn)| next.end < txn.begin)
    }

    /// The moment from which on a record is deleted for good: to whom that moment is within
    /// [`Index::settled_horizon`], an absence in the range of a scan says no more than that its
    /// reader comes after the writer of the final tombstone (in a scalar scheme), or nothing that
    /// is not known without it (otherwise). The end of time, if the record is not deleted in the
    /// end.
    pub fn settled(&self, record: u32) -> u64 {
        let chain = self.chain(record);
        let Some(last) = chain.last() else { return if self.loaded(record) { u64::MAX } else { 0 } };
        match self.options {
            _ if !last.delete => u64::MAX,
            Options { scalar: true, .. } if self.increasing(record) => last.stamp.0,
            Options { scalar: true, .. } => u64::MAX,
            // Real time orders the reader after the deleter.
            Options { realtime: true, .. } => self.transaction(last.writer).map_or(u64::MAX, |txn| txn.end),
            // Nothing tells the final absence from the initial one.
            _ if !self.loaded(record) => self.moment(last),
            _ => u64::MAX,
        }
    }

    /// Up to which moment records are settled for a transaction.
    pub fn settled_horizon(&self, txn: u32) -> u64 {
        match (self.options, self.transaction(txn)) {
            (Options { scalar: false, realtime: true, .. }, Some(txn)) => txn.begin.saturating_sub(1),
            _ => self.horizon(txn),
        }
    }

    /// All versions by stamp, each with its record and its position: the order of a replay.
    pub fn by_stamp(&self) -> Vec<(Timestamp, u32, u32)> {
        let mut order = Vec::with_capacity(self.versions.len());
        for record in 0..self.records() {
            let chain = self.chain(record).iter().enumerate();
            order.extend(chain.map(|(at, version)| (version.stamp, record, at as u32 + 1)));
        }
        order.sort_unstable();
        order
    }
}
