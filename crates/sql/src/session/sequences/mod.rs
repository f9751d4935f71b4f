//! Numbers of sequences.
//!
//! | module | has |
//! |---|---|
//! | here | what functions ask, and the numbers that a session holds |
//! | `block` | how a sequence goes on: the next numbers after a state |
//!
//! To take a number is no part of the session's transaction: numbers are taken in a transaction of
//! the database's own, so that sessions do not conflict, and what is rolled back leaves a gap. A
//! session takes several numbers at once when it asks often, and holds those that it has not given
//! out until it ends. So a session by itself sees all numbers in order, and two of them may get
//! theirs in another order than that of time.
//!
//! Example. A session that inserts 100 rows takes 1, then 2 and 3, then 4 to 7, and so on up to 64
//! at a time; what is left of the last block it gives to the next row. Another session that comes
//! meanwhile goes on behind that block.
//!
//! A state belongs to the number that it is kept under, which no other sequence ever gets, even if
//! the transaction is rolled back that has made the sequence: the number is drawn by chance and its
//! state written in a transaction of its own ([`Session::new_state`]). `RESTART` is a new number,
//! so it can be rolled back, and blocks of the old one are worth nothing.
//!
//! Left out: `setval()` and a change of the increment do not reach blocks that other sessions hold.

mod block;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) use block::check_bounds;

use super::conversation::Session;
use super::names::schema_of;
use super::{Stop, World};
use crate::analyze::names::qualified;
use crate::catalog::{PUBLIC, Relation, Sequence, Table};
use crate::encoding::sequence::{State, state_key};
use crate::execute::Question;
use crate::functions::{Asks, confused};
use crate::store::{Failure, Purpose, Space, Store};
use crate::types::{Datum, compare};
use crate::{SqlError, SqlState};
use block::Block;

/// How long after it has taken a block a session takes a larger one.
const OFTEN_US: i64 = 10_000;

/// Numbers that a session takes at once without being told to.
const BLOCK_MAX: i64 = 64;

/// The least number of a sequence's state: tables have those below.
const FIRST_STATE: u32 = 1 << 31;

/// For how long numbers are asked for that others ask for as well.
const RETRIED_FOR_US: i64 = 10_000_000;

/// Bound of the pause before they are asked for again.
const PAUSE_US: u64 = 500;

/// What a session has of sequences.
#[derive(Default)]
pub(super) struct Sequences {
    /// Numbers that it holds, by the number of the state.
    blocks: BTreeMap<u32, Block>,
    /// The number that it has given out last, by the sequence's OID.
    current: BTreeMap<u32, i64>,
    /// The sequence of the last number of all.
    last: Option<u32>,
}

impl<W: World> Session<'_, W> {
    /// Answers what a function asks.
    pub(super) async fn answer_to(&mut self, question: Question) -> Result<Datum, Stop> {
        let Question { about, arguments } = question;
        let (first, second) = (arguments.first(), arguments.get(1));
        let named = first.unwrap_or(&Datum::Null);
        let number = match about {
            Asks::NextNumber => {
                let sequence = self.sequence_named(named).await?;
                self.next_number(&sequence).await?
            }
            Asks::CurrentNumber => {
                let sequence = self.sequence_named(named).await?;
                self.sequences.current.get(&sequence.id).copied().ok_or_else(|| {
                    let what = format!("currval of sequence \"{}\"", sequence.name);
                    undefined(&what)
                })?
            }
            Asks::LastNumber => {
                let last = self.sequences.last.and_then(|id| self.sequences.current.get(&id));
                last.copied().ok_or_else(|| undefined("lastval"))?
            }
            Asks::SetNumber => {
                let sequence = self.sequence_named(named).await?;
                let value = second.and_then(compare::integer).ok_or_else(confused)?;
                let is_called = arguments.get(2) != Some(&Datum::Bool(false));
                self.set_number(&sequence, value, is_called).await?
            }
            Asks::SequenceOf => return self.sequence_of(named, second.unwrap_or(&Datum::Null)).await,
            Asks::SequenceState => {
                let sequence = self.sequence_named(named).await?;
                let state = self.state_of(&sequence).await?;
                return Ok(match second {
                    Some(Datum::Int4(0)) => Datum::Int8(state.last),
                    Some(Datum::Int4(1)) => Datum::Int8(state.logged),
                    _ => Datum::Bool(state.is_called),
                });
            }
        };
        Ok(Datum::Int8(number))
    }

    /// A sequence by the name that a text has, or by its OID.
    async fn sequence_named(&mut self, named: &Datum) -> Result<Arc<Sequence>, Stop> {
        let name = match named {
            Datum::Text(text) => qualified(text)?,
            Datum::Oid(oid) => {
                let all = self.all_relations().await?;
                let found = all.into_iter().find_map(|relation| match relation {
                    Relation::Sequence(sequence) if sequence.id == *oid => Some(sequence),
                    _ => None,
                });
                let error = || {
                    let error = format!("could not open relation with OID {oid}");
                    SqlError::new(SqlState::UNDEFINED_TABLE, error)
                };
                return Ok(found.ok_or_else(error)?);
            }
            _ => return Err(confused().into()),
        };
        self.look_up_sequence(schema_of(&name.0).to_owned(), name.1).await
    }

    /// A sequence by its schema and name.
    pub(super) async fn look_up_sequence(
        &mut self,
        schema: String,
        name: String,
    ) -> Result<Arc<Sequence>, Stop> {
        match self.look_up(schema, name.clone()).await? {
            Some(Relation::Sequence(sequence)) => Ok(sequence),
            Some(_) => {
                let error = format!("\"{name}\" is not a sequence");
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, error).into())
            }
            None => {
                let error = format!("relation \"{name}\" does not exist");
                Err(SqlError::new(SqlState::UNDEFINED_TABLE, error).into())
            }
        }
    }

    async fn next_number(&mut self, sequence: &Sequence) -> Result<i64, Stop> {
        self.refuse_reading("nextval()")?;
        let held = self.sequences.blocks.get_mut(&sequence.rows).and_then(Block::next);
        let number = match held {
            Some(number) => number,
            None => self.take_block(sequence).await?,
        };
        self.sequences.current.insert(sequence.id, number);
        self.sequences.last = Some(sequence.id);
        Ok(number)
    }

    /// Takes the next numbers, and gives the first of them out.
    async fn take_block(&mut self, sequence: &Sequence) -> Result<i64, Stop> {
        let now_us = self.world.now_us();
        let before = self.sequences.blocks.get(&sequence.rows);
        let is_often = before.is_some_and(|block| now_us.saturating_sub(block.taken_us) < OFTEN_US);
        let doubled = before.filter(|_| is_often).map_or(1, |block| (block.size * 2).min(BLOCK_MAX));
        let size = doubled.max(sequence.cache);
        let mut block = Block::default();
        self.change_state(sequence, |state| {
            block = Block::after(sequence, state, size)?;
            Ok(())
        })
        .await?;
        block.taken_us = now_us;
        let number = block.next().ok_or_else(confused)?;
        self.sequences.blocks.insert(sequence.rows, block);
        Ok(number)
    }

    async fn set_number(&mut self, sequence: &Sequence, value: i64, is_called: bool) -> Result<i64, Stop> {
        self.refuse_reading("setval()")?;
        let Sequence { name, least, largest, .. } = sequence;
        if value < *least || value > *largest {
            let error = format!(
                "setval: value {value} is out of bounds for sequence \"{name}\" ({least}..{largest})"
            );
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, error).into());
        }
        self.change_state(sequence, |state| {
            *state = State { last: value, is_called, logged: 0 };
            Ok(())
        })
        .await?;
        self.sequences.blocks.remove(&sequence.rows);
        if is_called {
            self.sequences.current.insert(sequence.id, value);
        }
        Ok(value)
    }

    /// The name of the sequence that belongs to a column, as SQL has names.
    async fn sequence_of(&mut self, table: &Datum, column: &Datum) -> Result<Datum, Stop> {
        let (Datum::Text(table), Datum::Text(column)) = (table, column) else {
            return Err(confused().into());
        };
        let (schema, name) = qualified(table)?;
        let Some(table) = self.look_up_table(schema_of(&schema).to_owned(), name.clone()).await? else {
            let error = format!("relation \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, error).into());
        };
        let Some((position, _)) = table.live().find(|(_, it)| it.name == **column) else {
            let error = format!("column \"{column}\" of relation \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, error).into());
        };
        let owned = self.sequences_of(&table).await?;
        let owned = owned.into_iter().find(|sequence| is_owner(sequence, position));
        Ok(owned
            .map_or(Datum::Null, |it| Datum::text(format!("{}.{}", quoted(&it.schema), quoted(&it.name)))))
    }

    /// The sequences that belong to columns of a table.
    pub(super) async fn sequences_of(&mut self, table: &Table) -> Result<Vec<Arc<Sequence>>, Stop> {
        let all = self.all_relations().await?.into_iter();
        let owned = all.filter_map(|relation| match relation {
            Relation::Sequence(sequence) => {
                let owner = sequence.owner.as_ref().map(|(name, _)| name);
                (sequence.schema == table.schema && owner == Some(&table.name)).then_some(sequence)
            }
            _ => None,
        });
        Ok(owned.collect())
    }

    /// The state of a sequence at this moment.
    pub(super) async fn state_of(&mut self, sequence: &Sequence) -> Result<State, Stop> {
        let store = self.world.store();
        let mut reading = store.begin(Purpose::NEWEST).await?;
        let found = store.get(&mut reading, Space::Parted, &[state_key(sequence.rows)]).await;
        store.rollback(reading).await;
        let bytes = found?.into_iter().next().flatten();
        Ok(bytes.map_or(Ok(State::before(sequence.start)), |bytes| State::from_bytes(&bytes))?)
    }

    /// Writes a state under a number that no sequence has had, and returns the number. It stays if
    /// the session's transaction is rolled back, and then no sequence has it.
    pub(super) async fn new_state(&mut self, state: State) -> Result<u32, Stop> {
        let [a, b, c, d, ..] = self.world.random().to_le_bytes();
        let mut drawn = u32::from_le_bytes([a, b, c, d]);
        loop {
            let rows = drawn | FIRST_STATE;
            drawn = drawn.wrapping_add(1);
            let store = self.world.store();
            let mut reserving = store.begin(Purpose::Write).await?;
            let key = state_key(rows);
            let found = store.get(&mut reserving, Space::Parted, std::slice::from_ref(&key)).await?;
            if found.iter().any(Option::is_some) {
                store.rollback(reserving).await;
                continue;
            }
            store.put(&mut reserving, Space::Parted, &key, Some(&state.to_bytes())).await?;
            match store.commit(reserving).await {
                Ok(_) => return Ok(rows),
                Err(Failure::Conflict(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Changes a state, in a transaction of its own.
    async fn change_state(
        &mut self,
        sequence: &Sequence,
        mut change: impl FnMut(&mut State) -> Result<(), SqlError>,
    ) -> Result<(), Stop> {
        let since_us = self.world.now_us();
        loop {
            match self.try_change_state(sequence, &mut change).await {
                // A state is written before a sequence has it, and goes after it. What is done again
                // finds the sequence as it is now.
                Ok(false) => return Err(Stop::Conflict("the sequence was changed meanwhile".into())),
                Ok(true) => return Ok(()),
                Err(Stop::Conflict(why)) => {
                    if self.world.now_us().saturating_sub(since_us) >= RETRIED_FOR_US {
                        return Err(Stop::Conflict(why));
                    }
                    self.world.sleep(self.world.random() % PAUSE_US).await;
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Changes a state, if it is there.
    async fn try_change_state(
        &mut self,
        sequence: &Sequence,
        change: &mut impl FnMut(&mut State) -> Result<(), SqlError>,
    ) -> Result<bool, Stop> {
        let store = self.world.store();
        let mut changing = store.begin(Purpose::Write).await?;
        let key = state_key(sequence.rows);
        let found = store.get(&mut changing, Space::Parted, std::slice::from_ref(&key)).await?;
        let Some(bytes) = found.into_iter().next().flatten() else {
            store.rollback(changing).await;
            return Ok(false);
        };
        let changed = State::from_bytes(&bytes).and_then(|mut state| change(&mut state).map(|()| state));
        match changed {
            Ok(state) => {
                store.put(&mut changing, Space::Parted, &key, Some(&state.to_bytes())).await?;
                store.commit(changing).await?;
                Ok(true)
            }
            Err(error) => {
                store.rollback(changing).await;
                Err(error.into())
            }
        }
    }
}

/// Whether a sequence belongs to the column at a position of its table.
pub(super) fn is_owner(sequence: &Sequence, position: usize) -> bool {
    sequence.owner.as_ref().is_some_and(|(_, column)| usize::from(*column) == position)
}

/// The default of a column whose sequence has this name.
pub(super) fn next_of(schema: &str, name: &str) -> String {
    format!("nextval('{}'::regclass)", next_name(schema, name).replace('\'', "''"))
}

/// The name of a sequence as `nextval()` has it.
pub(super) fn next_name(schema: &str, name: &str) -> String {
    match schema {
        PUBLIC => quoted(name),
        schema => format!("{}.{}", quoted(schema), quoted(name)),
    }
}

/// A name as SQL has it: in quotes if it has to be.
pub(super) fn quoted(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    let begins = name.starts_with(|it: char| it.is_ascii_lowercase() || it == '_');
    if begins && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn undefined(what: &str) -> SqlError {
    let error = format!("{what} is not yet defined in this session");
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error)
}
