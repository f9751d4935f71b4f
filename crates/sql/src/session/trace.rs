//! Transactions of the database that are done once more.
//!
//! The database does not look at single keys that are not there: a leaf of an index stands for all
//! keys that it may have, so a transaction that has found a key absent does not commit if any key
//! was added to the leaf since (`docs/protocols/dst.md`). A session adds some itself, in
//! transactions of their own: the numbers of tables, [rows that nobody else can see
//! yet](super::loading) and their notes. Where leaves begin and end depends on what there is, so no
//! choice of keys keeps these apart from what the session's transaction has read. And others make
//! tables as well, whose descriptors lie among those that it has looked for.
//!
//! Statements cannot always be [run again](super::journal): a table was made, or rows were copied
//! in. Nor need they be run if nothing that they have read has changed. All that a session does
//! follows from what it has read. So if a transaction does not commit, another reads the same keys
//! and ranges in the same order, with the same writes between them. If everything is as it was, that
//! one stands for the first: it reads one state of the database, which could have given the first
//! what it found, and its own commit is looked at as any other. What the session had added is there
//! before it begins, so it is not in its way again. If anything is different, statements that can be
//! run again are, and otherwise the conflict is the client's. A transaction that is not over is done
//! again as far as its statements have ended, and the one that has met the conflict is run in the
//! new one.
//!
//! Example. `BEGIN`, `CREATE TABLE a`, `COPY a`, `COMMIT` reads the key of `a`'s descriptor, which
//! is absent, and writes rows under 16384 by themselves, with a note. The note lies in the leaf
//! that stands for the absent key, and the commit fails. The next transaction finds the key absent
//! in the leaf that has the note, and commits.
//!
//! Left out: transactions that read and write more than a [bound](BYTES_MAX). Of a range only a
//! hash is kept.

use plimsoll_types::mutants::{Mutant, planted};
use sha2::{Digest, Sha256};

use super::conversation::Session;
use super::data::Open;
use super::{Stop, World};
use crate::SqlError;
use crate::store::{Failure, Pair, Purpose, Range, Space, Store};

/// Bytes of keys and values that are kept at most.
const BYTES_MAX: usize = 1 << 20;

/// Bytes that a read or a write takes besides.
const DEED_BYTES: usize = 160;

/// For how long a transaction is done again, in microseconds.
const REPEATED_FOR_US: i64 = 10_000_000;

/// Bound of the pause before it is done for the third time. It doubles each time.
const FIRST_PAUSE_US: u64 = 500;

/// How often it doubles: up to 16 ms.
const DOUBLINGS: u32 = 5;

/// Reads and writes that are repeated before others run.
const REPEATED_PER_TURN: usize = 16;

enum Deed {
    /// Keys that were read, and what was there.
    Got(Space, Vec<Vec<u8>>, Vec<Option<Vec<u8>>>),
    /// A range that was read, all of it, and a hash of what was there.
    Scanned(Range, Sha256),
    /// A key that others may have written, but not deleted.
    Needed(Space, Vec<u8>),
    /// A write.
    Put(Space, Vec<u8>, Option<Vec<u8>>),
}

/// What was read once more and is another one.
pub(super) enum Difference {
    /// A key.
    Row(Space, Vec<u8>),
    /// Something in a range.
    Rows(Range),
}

impl Difference {
    /// Whether a key is the one, or in the range.
    pub(super) fn has(&self, space: Space, key: &[u8]) -> bool {
        match self {
            Difference::Row(of, row) => *of == space && row == key,
            Difference::Rows(range) => {
                let is_below = range.high.as_ref().is_none_or(|high| key < high.as_slice());
                range.space == space && range.low.as_slice() <= key && is_below
            }
        }
    }
}

/// What a transaction has read and written.
pub(super) struct Trace {
    deeds: Vec<Deed>,
    bytes: usize,
    /// Whether that is all.
    is_whole: bool,
    /// How many deeds are those of statements that have ended, and their bytes.
    ended: Option<(usize, usize)>,
    /// The timestamp of the snapshot that it reads, if it has one.
    snapshot: Option<u64>,
}

impl Trace {
    /// Of a transaction that reads this snapshot.
    pub(super) fn new(snapshot: Option<u64>) -> Trace {
        Trace { deeds: Vec::new(), bytes: 0, is_whole: true, ended: None, snapshot }
    }

    /// It is of a transaction that nothing is in the way of.
    pub(super) fn none() -> Trace {
        Trace { is_whole: false, ..Trace::new(None) }
    }

    /// The timestamp of the snapshot that it reads, if it has one.
    pub(super) fn snapshot(&self) -> Option<u64> {
        self.snapshot
    }

    /// Whether there is room for so many bytes more.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(DEED_BYTES);
        if self.is_whole && self.bytes > BYTES_MAX {
            *self = Trace::none();
        }
        self.is_whole
    }

    /// Keys were read.
    pub(super) fn got(&mut self, space: Space, keys: &[Vec<u8>], values: &[Option<Vec<u8>>]) {
        let length = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        let bytes = keys.iter().map(Vec::len).sum::<usize>() + values.iter().map(length).sum::<usize>();
        if !keys.is_empty() && self.has_room(bytes) {
            self.deeds.push(Deed::Got(space, keys.to_vec(), values.to_vec()));
        }
    }

    /// The first pairs of a range were read, but for what is left of it.
    pub(super) fn scanned(&mut self, range: Range, found: &(Vec<Pair>, Option<Range>)) {
        let (pairs, left) = found;
        if !self.is_whole {
            return;
        }
        let range = match left {
            Some(left) if range.reverse => Range { low: left.high.clone().unwrap_or_default(), ..range },
            Some(left) => Range { high: Some(left.low.clone()), ..range },
            None => range,
        };
        let is_of_statement = self.ended.is_none_or(|(ended, _)| ended < self.deeds.len());
        // Most ranges go on where the last one ended.
        if let Some(Deed::Scanned(last, hash)) = self.deeds.last_mut()
            && is_of_statement
            && goes_on(last, &range)
        {
            add(hash, pairs);
            match range.reverse {
                true => last.low = range.low,
                false => last.high = range.high,
            }
        } else if self.has_room(range.low.len() + range.high.as_ref().map_or(0, Vec::len)) {
            let mut hash = Sha256::new();
            add(&mut hash, pairs);
            self.deeds.push(Deed::Scanned(range, hash));
        }
    }

    /// A key was added outside of the transaction, so it was not read in it. Another one in its
    /// place has to find it.
    pub(super) fn needs(&mut self, space: Space, key: &[u8]) {
        if self.has_room(key.len()) {
            self.deeds.push(Deed::Needed(space, key.to_vec()));
        }
    }

    /// Something was written.
    pub(super) fn put(&mut self, space: Space, key: &[u8], value: Option<&[u8]>) {
        if self.has_room(key.len() + value.map_or(0, <[u8]>::len)) {
            self.deeds.push(Deed::Put(space, key.to_vec(), value.map(<[u8]>::to_vec)));
        }
    }

    /// A statement has ended. `is_all` says that the session has nothing of the transaction's
    /// statements but what is here.
    pub(super) fn end_statement(&mut self, is_all: bool) {
        self.ended = (is_all && self.is_whole).then_some((self.deeds.len(), self.bytes));
    }

    /// The deeds of the statements that have ended, if the session has nothing else of these.
    fn of_statements(&self) -> Option<&[Deed]> {
        let (ended, _) = self.ended.filter(|_| self.is_whole)?;
        self.deeds.get(..ended).filter(|deeds| !deeds.is_empty())
    }

    /// That of another transaction, with this snapshot, in which those deeds were done again.
    fn of_another(mut self, snapshot: Option<u64>) -> Trace {
        let (ended, bytes) = self.ended.unwrap_or_default();
        self.deeds.truncate(ended);
        Trace { bytes, snapshot, ..self }
    }

    /// The first thing that another run of the same transaction has read differently. All that a
    /// session does follows from what it has read, so up to there both did the same.
    pub(super) fn difference(&self, again: &Trace) -> Option<Difference> {
        for (deed, again) in self.deeds.iter().zip(&again.deeds) {
            match (deed, again) {
                (Deed::Got(space, keys, values), Deed::Got(again, other, found))
                    if (space, keys) == (again, other) =>
                {
                    if values != found {
                        return different(*space, keys, values, found);
                    }
                }
                (Deed::Scanned(range, hash), Deed::Scanned(other, again))
                    if (range.space, range.reverse) == (other.space, other.reverse) =>
                {
                    if range != other || !is_same(hash, again) {
                        return Some(Difference::Rows(range.clone()));
                    }
                }
                (Deed::Put(space, key, _), Deed::Put(again, other, _))
                | (Deed::Needed(space, key), Deed::Needed(again, other))
                    if (space, key) == (again, other) => {}
                _ => return None,
            }
        }
        None
    }

    /// The keys that it has written.
    fn written(self) -> impl Iterator<Item = (Space, Vec<u8>)> {
        self.deeds.into_iter().filter_map(|deed| match deed {
            Deed::Put(space, key, _) => Some((space, key)),
            Deed::Got(..) | Deed::Scanned(..) | Deed::Needed(..) => None,
        })
    }

    /// Does deeds in another transaction, or says what is read that is another now.
    /// `check` says why it is not to go on.
    async fn repeat<W: World>(
        deeds: &[Deed],
        world: &W,
        check: impl Fn() -> Result<(), SqlError>,
    ) -> Result<Repeated<W>, Failure> {
        let store = world.store();
        let mut transaction = store.begin(Purpose::Write).await?;
        for (place, deed) in deeds.iter().enumerate() {
            let different = match deed {
                Deed::Got(space, keys, values) => {
                    let found = store.get(&mut transaction, *space, keys).await?;
                    different(*space, keys, values, &found)
                }
                Deed::Scanned(range, hash) => {
                    let (mut again, mut left) = (Sha256::new(), Some(range.clone()));
                    while let Some(range) = left {
                        let (pairs, rest) = store.scan(&mut transaction, range, usize::MAX).await?;
                        add(&mut again, &pairs);
                        left = rest;
                        world.pause().await;
                        check().map_err(Failure::Error)?;
                    }
                    (!is_same(hash, &again)).then(|| Difference::Rows(range.clone()))
                }
                Deed::Needed(space, key) => {
                    let found = store.get(&mut transaction, *space, std::slice::from_ref(key)).await?;
                    (found == [None]).then(|| Difference::Row(*space, key.clone()))
                }
                Deed::Put(space, key, value) => {
                    store.put(&mut transaction, *space, key, value.as_deref()).await?;
                    None
                }
            };
            if let Some(different) = different
                && !planted(Mutant::ReadsUnseen)
            {
                store.rollback(transaction).await;
                return Ok(Err(different));
            }
            if place % REPEATED_PER_TURN == REPEATED_PER_TURN - 1 {
                world.pause().await;
                check().map_err(Failure::Error)?;
            }
        }
        Ok(Ok(transaction))
    }
}

/// A transaction that was done again, or what keeps it from being the same.
type Repeated<W> = Result<<<W as World>::Store as Store>::Transaction, Difference>;

/// The first key that has another value.
fn different(
    space: Space,
    keys: &[Vec<u8>],
    values: &[Option<Vec<u8>>],
    found: &[Option<Vec<u8>>],
) -> Option<Difference> {
    let mut all = keys.iter().zip(values.iter().zip(found));
    let (key, _) = all.find(|(_, (value, found))| value != found)?;
    Some(Difference::Row(space, key.clone()))
}

fn is_same(one: &Sha256, other: &Sha256) -> bool {
    one.clone().finalize() == other.clone().finalize()
}

/// Whether a range that is read begins where another has ended.
fn goes_on(last: &Range, next: &Range) -> bool {
    let is_next = match next.reverse {
        true => next.high.as_ref() == Some(&last.low),
        false => last.high.as_ref() == Some(&next.low),
    };
    is_next && last.space == next.space && last.reverse == next.reverse
}

/// Adds pairs to a hash, so that no other pairs give the same bytes.
fn add(hash: &mut Sha256, pairs: &[Pair]) {
    for (key, value) in pairs {
        for bytes in [key, value] {
            hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(bytes);
        }
    }
}

impl<W: World> Session<'_, W> {
    /// Commits the database's transaction. If others were in its way, does all of it once more, as
    /// long as what it reads is the same.
    pub(super) async fn commit_or_repeat(
        &mut self,
        open: Open<<W::Store as Store>::Transaction>,
    ) -> Result<(), Stop> {
        let Open { transaction, trace, .. } = open;
        let mut failure = match self.world.store().commit(transaction).await {
            Ok(stamp) => {
                self.note_writes(stamp, trace);
                return Ok(());
            }
            Err(failure) => failure,
        };
        let since_us = self.worked_us();
        for count in 0.. {
            let is_late = self.worked_us().saturating_sub(since_us) >= REPEATED_FOR_US;
            if is_late || !trace.is_whole || !matches!(failure, Failure::Conflict(_)) {
                break;
            }
            self.check_time(self.deadline_us())?;
            if let Some(doublings) = u32::checked_sub(count, 1) {
                let bound_us = FIRST_PAUSE_US << doublings.min(DOUBLINGS);
                self.world.sleep(self.world.random() % bound_us).await;
            }
            let deadline_us = self.deadline_us();
            let check = || self.check_time(deadline_us);
            let committed = match Trace::repeat(&trace.deeds, self.world, check).await {
                Ok(Ok(transaction)) => self.world.store().commit(transaction).await,
                Ok(Err(different)) => return Err(self.conflict_of(&different, trace.snapshot).into()),
                Err(failure) => Err(failure),
            };
            match committed {
                Ok(stamp) => {
                    self.note_writes(stamp, trace);
                    return Ok(());
                }
                Err(next) => failure = next,
            }
        }
        Err(failure.into())
    }

    /// Does again what the statements that have ended had done `before`, in a new transaction, in which
    /// the session goes on. Says whether it does: not if there was more to those statements, nor if
    /// anything that they had read is another now.
    pub(super) async fn do_again(&mut self, before: &mut Option<Trace>) -> Result<bool, Stop> {
        let Some(deeds) = before.as_ref().and_then(Trace::of_statements) else { return Ok(false) };
        let has_written = deeds.iter().any(|deed| matches!(deed, Deed::Put(..)));
        let deadline_us = self.deadline_us();
        let repeated = Trace::repeat(deeds, self.world, || self.check_time(deadline_us)).await?;
        let Ok(transaction) = repeated else { return Ok(false) };
        let Some(trace) = before.take() else { return Ok(false) };
        let snapshot = self.world.store().snapshot(&transaction);
        self.go_on_in(transaction, trace.of_another(snapshot), has_written);
        self.has_called_volatile.set(false);
        Ok(true)
    }

    /// The transaction has committed: others may want to know what it has written.
    pub(super) fn note_writes(&self, stamp: Option<u64>, trace: Trace) {
        self.settings.saw(stamp);
        if let Some(stamp) = stamp {
            self.place.recent().note(&self.author, stamp, trace.written());
        }
    }
}
