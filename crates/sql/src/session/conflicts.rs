//! The reason of a serialization failure: which row was in the way, and which session wrote it.
//!
//! A transaction that fails because of another has read something that is no longer so. The session
//! finds out what that is by itself, from what the transaction has read ([`super::trace`]): when
//! all of it is read once more, or when its statements have [run again](super::journal) and an
//! answer is another one, the first read that gave something else is the reason. Its key says which
//! table or index it is of and has the values of its columns. If a session of this node has written
//! it [lately](super::recent), that is told as well.
//!
//! Example. `Key (id)=(5) of table "t" has changed since this transaction read it; session 7
//! (application "bank") wrote it at timestamp 1234.`
//!
//! Left out: whether it is the row that the answer rests on, if several have changed that were
//! read; and which row of a range that was read has changed, if no session of this node has written
//! it, since of a range only a hash is kept.

use std::borrow::Cow;
use std::sync::Arc;

use super::conversation::Session;
use super::recent::Write;
use super::trace::{Difference, Trace};
use super::{Stop, World};
use crate::catalog::owners::{owner_of, shown_key};
use crate::catalog::{Index, Relation, Table};
use crate::encoding::bytes::Bytes;
use crate::encoding::descriptor::descriptors_prefix;
use crate::encoding::order;
use crate::{SqlError, SqlState, Subject};

/// What the client is told if it is not known which row it was.
const CHANGED: &str = "rows that it has read were changed by others";

/// Why a transaction has to be tried again.
#[derive(Debug)]
pub(super) struct Conflict {
    /// The reason, as a sentence without its end.
    why: Cow<'static, str>,
    /// The table, if it is known.
    subject: Option<Box<Subject>>,
}

impl From<&'static str> for Conflict {
    fn from(why: &'static str) -> Conflict {
        Conflict { why: Cow::Borrowed(why), subject: None }
    }
}

impl Conflict {
    /// One of a transaction that has read what is no longer so.
    pub(super) fn changed() -> Conflict {
        CHANGED.into()
    }

    /// The error of a transaction that is not tried again.
    pub(super) fn error(self) -> SqlError {
        let error = "could not serialize access due to concurrent transactions";
        let error = SqlError::new(SqlState::SERIALIZATION_FAILURE, error);
        let error = error.detail(format!("{}.", self.why)).hint("The transaction might succeed if retried.");
        SqlError { subject: self.subject, ..error }
    }
}

impl From<Conflict> for Stop {
    fn from(conflict: Conflict) -> Stop {
        Stop::Conflict(conflict)
    }
}

/// What a key is of.
enum Named {
    /// A table or an index of it, and the columns and values of the key.
    Key(Arc<Table>, Option<usize>, String),
    /// The descriptor of a table, an index or a sequence: its schema and its name.
    Definition(String, String),
}

impl Named {
    fn index(table: &Table, place: Option<usize>) -> Option<&Index> {
        place.and_then(|place| table.indexes.get(place))
    }

    fn subject(&self) -> Subject {
        match self {
            Named::Key(table, place, _) => {
                let constraint = Named::index(table, *place).map(|index| index.name.clone());
                let constraint = constraint.unwrap_or_default();
                Subject {
                    schema: table.schema.clone(),
                    table: table.name.clone(),
                    constraint,
                    ..Subject::default()
                }
            }
            Named::Definition(schema, name) => {
                Subject { schema: schema.clone(), table: name.clone(), ..Subject::default() }
            }
        }
    }

    /// What has the key: `table "t"`.
    fn owner(&self) -> String {
        match self {
            Named::Key(table, place, _) => match Named::index(table, *place) {
                None => format!("table \"{}\"", table.name),
                Some(index) => format!("index \"{}\" of table \"{}\"", index.name, table.name),
            },
            Named::Definition(_, name) => format!("\"{name}\""),
        }
    }

    /// The key by itself: `key (id)=(5)`.
    fn key(&self) -> String {
        match self {
            Named::Key(_, _, values) if values.is_empty() => "a row".to_owned(),
            Named::Key(_, _, values) => format!("key {values}"),
            Named::Definition(_, name) => format!("the definition of \"{name}\""),
        }
    }
}

impl<W: World> Session<'_, W> {
    /// Why a transaction is not what it was: between two runs of it, what is read is different.
    pub(super) fn conflict_between(&self, before: Option<&Trace>) -> Conflict {
        let after = self.data.open.as_ref().map(|open| &open.trace).or(self.journal.ended());
        let Some((before, after)) = before.zip(after) else { return Conflict::changed() };
        match before.difference(after) {
            Some(difference) => self.conflict_of(&difference, before.snapshot()),
            None => Conflict::changed(),
        }
    }

    /// The conflict of a read that gave something else than a transaction with this snapshot has
    /// found.
    pub(super) fn conflict_of(&self, difference: &Difference, snapshot: Option<u64>) -> Conflict {
        let (key, is_range) = match difference {
            Difference::Row(_, key) => (key, false),
            Difference::Rows(range) => (&range.low, true),
        };
        let named = if is_range { self.keys_of(key) } else { self.named(key) };
        let Some(named) = named else { return Conflict::changed() };
        let what = match (&named, is_range) {
            (Named::Definition(..), _) => format!("The definition of {}", named.owner()),
            (Named::Key(..), true) => format!("A range of the keys of {}", named.owner()),
            (Named::Key(_, _, values), _) if values.is_empty() => format!("A row of {}", named.owner()),
            (Named::Key(_, _, values), _) => format!("Key {values} of {}", named.owner()),
        };
        let recent = self.place.recent();
        let writer =
            snapshot.and_then(|snapshot| recent.last(snapshot, |space, key| difference.has(space, key)));
        let writer = writer.map_or_else(String::new, |write| self.wrote(&write, is_range));
        let why = format!("{what} has changed since this transaction read it{writer}");
        Conflict { why: Cow::Owned(why), subject: Some(Box::new(named.subject())) }
    }

    /// Names the session that wrote a key, and of a range the key as well.
    fn wrote(&self, write: &Write, is_range: bool) -> String {
        let Write { author, stamp, .. } = write;
        let application = match &*author.application {
            "" => String::new(),
            name => format!(" (application \"{name}\")"),
        };
        let named = if is_range { self.named(&write.key) } else { None };
        let what = named.map_or_else(|| "it".to_owned(), |named| named.key());
        format!("; session {}{application} wrote {what} at timestamp {stamp}", author.session)
    }

    /// What a key is of, with its values, if the session knows the table.
    fn named(&self, key: &[u8]) -> Option<Named> {
        if let Some(names) = key.strip_prefix(&*descriptors_prefix(None)) {
            let mut names = Bytes::new(names);
            let mut name = || String::from_utf8(order::take_bytes(&mut names).ok()?).ok();
            return Some(Named::Definition(name()?, name()?));
        }
        let Named::Key(table, place, _) = self.keys_of(key)? else { return None };
        let shown = shown_key(&table, Named::index(&table, place), key, &self.style)?;
        Some(Named::Key(table, place, shown))
    }

    /// Whose keys begin as a key does, if the session knows the table.
    fn keys_of(&self, key: &[u8]) -> Option<Named> {
        let tables = self.decoded.values().filter_map(|(_, relation)| match relation {
            Relation::Table(table) => Some(table),
            Relation::Index(_) | Relation::Sequence(_) => None,
        });
        let (table, place) = owner_of(tables, key)?;
        Some(Named::Key(Arc::clone(table), place, String::new()))
    }
}
