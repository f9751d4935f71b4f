//! The database's transaction below a session's, and what a statement asks of it.
//!
//! It begins when a statement needs it and ends with the session's transaction. A statement that is
//! all of its transaction reads at a snapshot until it turns out to write: then the database's
//! transaction begins anew, since what is read at a snapshot is not what a write may rest on. So
//! does one in which tables were looked up for a statement that turns out not to be all.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_types::mutants::{Mutant, planted};

use super::conversation::Session;
use super::loading::Loads;
use super::names::Name;
use super::references::Deferrals;
use super::trace::Trace;
use super::{Stop, World};
use crate::catalog::pg::Objects;
use crate::catalog::{Relation, Table};
use crate::encoding::descriptor::descriptors_prefix;
use crate::functions::confused;
use crate::store::{Failure, Pair, Purpose, Range, Space, Store};
use crate::{SqlError, SqlState};

/// Writes that are undone before others run.
const UNDONE_PER_TURN: usize = 256;

/// The transaction below a session's.
pub(super) struct Open<T> {
    pub(super) transaction: T,
    reads_only: bool,
    /// Whether rows were read in it, and not only tables looked up.
    has_read: bool,
    /// Names that were looked up in it; none: nothing has that name.
    pub(super) relations: BTreeMap<Name, Option<Relation>>,
    /// Tables that were found in it to be still what a plan was made for.
    pub(super) current: Vec<Arc<Table>>,
    /// All that has a name, once it was looked up.
    pub(super) objects: Option<Arc<Objects>>,
    /// What it has read and written, unless it only reads.
    pub(super) trace: Trace,
}

impl<T> Open<T> {
    /// One that reads this snapshot.
    fn new(transaction: T, reads_only: bool, snapshot: Option<u64>) -> Open<T> {
        let trace = if reads_only { Trace::none() } else { Trace::new(snapshot) };
        Open {
            transaction,
            reads_only,
            has_read: false,
            relations: BTreeMap::new(),
            current: Vec::new(),
            objects: None,
            trace,
        }
    }
}

/// What a session's transaction has to do with the database.
pub(super) struct Data<T> {
    pub(super) open: Option<Open<T>>,
    /// Whether the database has ended it before the session's transaction was over.
    lost: bool,
    /// What writes have overwritten, while there are savepoints.
    undo: Vec<(Space, Vec<u8>, Option<Vec<u8>>)>,
    /// How much of that is older than each savepoint.
    marks: Vec<usize>,
    /// Whether something was written in it.
    has_written: bool,
    /// Whether a statement of the transaction has run.
    is_used: bool,
    /// Whether it leaves rows of tables that it has dropped.
    leaves_rows: bool,
    /// Constraints that are tested when it ends.
    pub(super) deferrals: Deferrals,
    /// Whether a statement that runs by itself is not all that the transaction will do.
    is_shared: bool,
    /// What it writes where nobody else looks.
    pub(super) loads: Loads,
}

impl<T> Data<T> {
    pub(super) fn new() -> Data<T> {
        Data {
            open: None,
            lost: false,
            undo: Vec::new(),
            marks: Vec::new(),
            has_written: false,
            is_used: false,
            leaves_rows: false,
            deferrals: Deferrals::default(),
            is_shared: false,
            loads: Loads::default(),
        }
    }

    /// Whether it may hold locks, if the database has any.
    pub(super) fn may_hold_locks(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.reads_only)
    }

    /// Whether something was written in it.
    pub(super) fn has_written(&self) -> bool {
        self.has_written
    }

    /// Whether a statement of the transaction has run.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// A statement runs, which may be all that the transaction does.
    pub(super) fn use_for(&mut self, is_all: bool) {
        self.is_used = true;
        self.is_shared |= !is_all;
    }

    /// Whether a statement that runs by itself is not all that the transaction will do.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Whether what writes goes on in another transaction than tables were looked up in.
    pub(super) fn is_left_to_write(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.reads_only)
    }

    /// Rows are read in it.
    pub(super) fn has_read(&mut self) {
        if let Some(open) = &mut self.open {
            open.has_read = true;
        }
    }

    /// Rows of tables that it has dropped are to be removed once it has committed.
    pub(super) fn leaves_rows(&mut self) {
        self.leaves_rows = true;
    }

    /// A statement has ended. If there are savepoints, deferred constraints or rows where nobody else
    /// looks, its transaction's statements have left more than what they have read and written.
    pub(super) fn end_statement(&mut self) {
        let is_all = self.marks.is_empty() && self.loads.are_empty() && self.deferrals.are_none();
        if let Some(open) = &mut self.open {
            open.trace.end_statement(is_all);
        }
    }

    /// How many savepoints there are.
    pub(super) fn marks(&self) -> usize {
        self.marks.len()
    }

    /// A savepoint.
    pub(super) fn mark(&mut self) {
        self.marks.push(self.undo.len());
    }

    /// Forgets all savepoints but the first of them, as many as `count` says.
    pub(super) fn keep_marks(&mut self, count: usize) {
        self.marks.truncate(count);
        self.loads.keep_marks(count);
        if self.marks.is_empty() {
            self.undo.clear();
        }
    }

    /// What the transaction has changed, made or dropped.
    pub(super) fn learn(&mut self, schema: &str, name: &str, relation: Option<Relation>) {
        if let Some(open) = &mut self.open {
            open.relations.insert((schema.to_owned(), name.to_owned()), relation);
            open.current.clear();
        }
    }

    /// What all tables are has to be looked up again, since one has changed.
    fn forget_objects(&mut self) {
        if let Some(open) = &mut self.open {
            open.objects = None;
        }
    }

    /// Whether there is no transaction that may hold locks or reservations, or be in conflict.
    pub(super) fn holds_nothing(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.reads_only)
    }

    /// All tables, if they were looked up.
    pub(super) fn objects(&self) -> Option<&Arc<Objects>> {
        self.open.as_ref().and_then(|open| open.objects.as_ref())
    }

    /// Forgets what there is, since writes were undone.
    fn forget_relations(&mut self) {
        if let Some(open) = &mut self.open {
            open.relations.clear();
            open.current.clear();
            open.objects = None;
        }
    }
}

impl<W: World> Session<'_, W> {
    /// The transaction to read in.
    pub(super) async fn open(&mut self) -> Result<(), Stop> {
        if self.data.lost {
            return Err(Stop::Conflict("the transaction was ended by the database before".into()));
        }
        let reads_only = !self.transaction.is_block() && !self.data.is_shared || self.settings.reads_only();
        if !reads_only {
            self.leave_snapshot().await?;
        }
        if self.data.open.is_none() {
            self.begin_open(reads_only).await?;
        }
        Ok(())
    }

    /// Begins the transaction.
    async fn begin_open(&mut self, reads_only: bool) -> Result<(), Stop> {
        let store = self.world.store();
        let purpose = match reads_only {
            // A statement that turns out to write must not know tables as they were.
            true if !self.settings.reads_only() => Purpose::NEWEST,
            true => {
                let seen = self.settings.last_timestamp();
                Purpose::Read { staleness_ms: self.settings.staleness_ms(), seen }
            }
            false => Purpose::Write,
        };
        let transaction = store.begin(purpose).await?;
        let snapshot = store.snapshot(&transaction);
        self.settings.saw(snapshot);
        self.show_transaction(snapshot);
        self.data.open = Some(Open::new(transaction, reads_only, snapshot));
        Ok(())
    }

    /// Goes on in a transaction of the database in which all that has this trace was done.
    pub(super) fn go_on_in(
        &mut self,
        transaction: <W::Store as Store>::Transaction,
        trace: Trace,
        has_written: bool,
    ) {
        self.show_transaction(trace.snapshot());
        self.data.has_written = has_written;
        self.data.open = Some(Open { has_read: true, trace, ..Open::new(transaction, false, None) });
    }

    /// Ends a transaction that reads at a snapshot, if there is one, to go on in another. That goes
    /// as long as nothing but tables was looked up in it.
    async fn leave_snapshot(&mut self) -> Result<(), Stop> {
        let Some(open) = self.data.open.take_if(|open| open.reads_only) else { return Ok(()) };
        self.world.store().rollback(open.transaction).await;
        if open.has_read {
            self.data.lost = true;
            return Err(Stop::Conflict("rows were read while the transaction was READ ONLY".into()));
        }
        Ok(())
    }

    /// The transaction to write in; a statement's name is for the error of one that only reads.
    pub(super) async fn open_to_write(&mut self, statement: &str) -> Result<(), Stop> {
        self.refuse_reading(statement)?;
        if self.data.lost {
            return self.open().await;
        }
        self.leave_snapshot().await?;
        if self.data.open.is_none() {
            self.begin_open(false).await?;
        }
        Ok(())
    }

    /// What an operation came to, whose failure ends the transaction.
    pub(super) fn outcome<T>(&mut self, result: Result<T, Failure>) -> Result<T, Stop> {
        result.map_err(|failure| {
            if let Some(open) = self.data.open.take() {
                self.keep_trace(open.trace);
            }
            self.data.lost = true;
            failure.into()
        })
    }

    /// Reads some keys.
    pub(super) async fn get(&mut self, space: Space, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Stop> {
        self.open().await?;
        if !self.data.loads.are_empty() {
            return self.get_of_both(space, keys).await;
        }
        self.get_of_open(space, keys).await
    }

    /// Reads some keys, of which some may be where nobody else looks.
    async fn get_of_both(&mut self, space: Space, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Stop> {
        let is_loaded = |key: &&Vec<u8>| self.data.loads.has(space, key);
        let (loaded, others): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) = keys.iter().partition(is_loaded);
        let is_loaded: Vec<bool> = keys.iter().map(|key| self.data.loads.has(space, key)).collect();
        let [loaded, others] = [loaded, others].map(|keys| keys.into_iter().cloned().collect::<Vec<_>>());
        let mut loaded = self.get_loaded(&loaded).await?.into_iter();
        let mut found = self.get_of_open(space, &others).await?.into_iter();
        let of = |is_loaded| if is_loaded { loaded.next() } else { found.next() };
        Ok(is_loaded.into_iter().map(of).map(Option::flatten).collect())
    }

    /// Reads some keys in the transaction that is open.
    async fn get_of_open(&mut self, space: Space, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Stop> {
        let Some(open) = &mut self.data.open else { return Err(confused().into()) };
        let found = self.world.store().get(&mut open.transaction, space, keys).await;
        if let Ok(values) = &found {
            open.trace.got(space, keys, values);
        }
        self.outcome(found)
    }

    /// Reads some keys as they are now, whatever the session's transaction sees: that one is not
    /// looked at for it when it commits.
    pub(super) async fn get_newest(
        &self,
        space: Space,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let store = self.world.store();
        let mut newest = store.begin(Purpose::NEWEST).await?;
        let found = store.get(&mut newest, space, keys).await;
        store.rollback(newest).await;
        found
    }

    /// The same for the first pairs of a range.
    pub(super) async fn scan_newest(&self, range: Range) -> Result<(Vec<Pair>, Option<Range>), Failure> {
        let store = self.world.store();
        let mut newest = store.begin(Purpose::NEWEST).await?;
        let found = store.scan(&mut newest, range, usize::MAX).await;
        store.rollback(newest).await;
        found
    }

    /// Reads the first pairs of a range.
    pub(super) async fn scan(&mut self, range: Range) -> Result<(Vec<Pair>, Option<Range>), Stop> {
        self.scan_some(range, usize::MAX).await
    }

    /// The same, `most` pairs at most. Those of a table that nobody else can see may be more.
    pub(super) async fn scan_some(
        &mut self,
        range: Range,
        most: usize,
    ) -> Result<(Vec<Pair>, Option<Range>), Stop> {
        self.open().await?;
        if self.data.loads.has(range.space, &range.low) {
            return self.scan_loaded(range).await;
        }
        self.data.has_read();
        self.scan_open(range, most).await
    }

    /// The same in the transaction that is open.
    pub(super) async fn scan_open(
        &mut self,
        range: Range,
        most: usize,
    ) -> Result<(Vec<Pair>, Option<Range>), Stop> {
        let Some(open) = &mut self.data.open else { return Err(confused().into()) };
        let found = self.world.store().scan(&mut open.transaction, range.clone(), most).await;
        if let Ok(found) = &found {
            open.trace.scanned(range, found);
        }
        self.outcome(found)
    }

    /// Writes a value, or deletes it if there is none.
    pub(super) async fn put(&mut self, space: Space, key: Vec<u8>, value: Option<&[u8]>) -> Result<(), Stop> {
        if !self.data.marks.is_empty() {
            let old = self.get(space, std::slice::from_ref(&key)).await?;
            self.data.undo.push((space, key.clone(), old.into_iter().next().flatten()));
        }
        self.data.has_written = true;
        if self.data.loads.has(space, &key) {
            return self.put_loaded(key, value.map(<[u8]>::to_vec)).await;
        }
        if space == Space::Copied && key.starts_with(&descriptors_prefix(None)) {
            self.data.forget_objects();
        }
        self.put_open(space, &key, value).await
    }

    /// The same in the transaction that is open.
    async fn put_open(&mut self, space: Space, key: &[u8], value: Option<&[u8]>) -> Result<(), Stop> {
        let Some(open) = &mut self.data.open else { return Err(confused().into()) };
        open.trace.put(space, key, value);
        let put = self.world.store().put(&mut open.transaction, space, key, value).await;
        self.outcome(put)
    }

    /// Undoes what was written since a savepoint, which stays.
    pub(super) async fn undo_to(&mut self, savepoint: usize) -> Result<(), Stop> {
        self.data.marks.truncate(savepoint + 1);
        let mark = self.data.marks.get(savepoint).copied().unwrap_or_default();
        // What is lost is undone, and the next statement is told so.
        if self.data.lost {
            self.data.undo.truncate(mark);
            return Ok(());
        }
        self.data.forget_relations();
        self.data.loads.undo_to(savepoint);
        while self.data.undo.len() > mark
            && !planted(Mutant::SavepointForgotten)
            && let Some((space, key, value)) = self.data.undo.pop()
        {
            if self.data.loads.has(space, &key) {
                self.put_loaded(key, value).await?;
                continue;
            }
            self.put_open(space, &key, value.as_deref()).await?;
            if self.data.undo.len().is_multiple_of(UNDONE_PER_TURN) {
                self.world.pause().await;
            }
        }
        Ok(())
    }

    /// Commits what is there.
    pub(super) async fn commit(&mut self) -> Result<(), Stop> {
        self.test_deferred().await?;
        self.data.keep_marks(0);
        let loaded = match self.data.lost {
            true => Vec::new(),
            false => self.finish_loads().await?,
        };
        let can_start_over = loaded.is_empty() && self.can_start_over();
        let Data { open, lost, leaves_rows, .. } = std::mem::replace(&mut self.data, Data::new());
        if lost {
            return Err(Stop::Conflict("the transaction was ended by the database before".into()));
        }
        if let Some(open) = open {
            let committed = match can_start_over {
                true => self.commit_once(open).await,
                false => self.commit_or_repeat(open).await,
            };
            if let Err(Stop::Conflict(_)) = &committed {
                self.warm_rows();
            }
            if committed.is_err() {
                self.give_up_loads(&loaded).await;
                return committed;
            }
        }
        self.reserved.release();
        self.sweep.is_due |= leaves_rows;
        Ok(())
    }

    /// Commits the database's transaction, if others let it.
    async fn commit_once(&mut self, open: Open<<W::Store as Store>::Transaction>) -> Result<(), Stop> {
        let Open { transaction, trace, .. } = open;
        match self.world.store().commit(transaction).await {
            Ok(stamp) => self.note_writes(stamp, trace),
            Err(failure) => {
                self.keep_trace(trace);
                return Err(failure.into());
            }
        }
        Ok(())
    }

    /// Whether a session of this node is known to have written a row since this one's snapshot.
    pub(super) fn is_overwritten(&self, key: &[u8]) -> bool {
        let snapshot = self.data.open.as_ref().and_then(|open| open.trace.snapshot());
        snapshot.is_some_and(|snapshot| self.place.recent().is_newer(snapshot, key))
    }

    /// Gives up what is there: the same transaction of the session goes on in another.
    pub(super) async fn start_over(&mut self) {
        if self.data.open.is_none() || !planted(Mutant::WritesKept) {
            self.abandon().await;
        }
        self.data.use_for(false);
    }

    /// Gives up what is there in the database, and with it the session's transaction: all that is left
    /// to it is to meet the conflict again, or to end.
    pub(super) async fn lose(&mut self) {
        self.abandon().await;
        self.data.lost = true;
    }

    /// Gives up what is there.
    pub(super) async fn roll_back(&mut self) {
        self.abandon().await;
        self.reserved.release();
    }

    /// Gives up what is there in the database, but not what is reserved.
    pub(super) async fn abandon(&mut self) {
        let loaded = self.loaded_numbers();
        if let Some(open) = std::mem::replace(&mut self.data, Data::new()).open {
            self.world.store().rollback(open.transaction).await;
        }
        self.give_up_loads(&loaded).await;
    }

    /// Refuses to do something in a transaction that only reads.
    pub(super) fn refuse_reading(&self, statement: &str) -> Result<(), SqlError> {
        if !self.settings.reads_only() {
            return Ok(());
        }
        let error = format!("cannot execute {statement} in a read-only transaction");
        Err(SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, error))
    }
}
