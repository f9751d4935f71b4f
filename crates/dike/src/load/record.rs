//! What a database remembers of Dike: which tables are Dike's, what is in them, and how far that
//! came.
//!
//! A load gives every table that it makes the same *mark*, a comment with a number drawn for this
//! load. The table `dike_data` is the record and has the mark, too. A table
//! with one of Dike's names and without this mark is not Dike's: a load does not fill it and a
//! destroy does not drop it. A name proves nothing, nor do the columns: other programs use the
//! tables of TPC-C as well. The mark
//! stays with a table that is renamed, changed, dumped and restored; one that was dropped and made
//! anew has lost it. A database without a record, or with one of a Dike that made no marks, vouches
//! for nothing.
//!
//! `dike_data` holds the scale and the seed of what is in the tables, so that a run needs not be
//! told and a second load of something else is refused; the *state*, which is `loading` until all
//! rows were counted and indexes made, then `loaded`, and `destroying` from the moment on that
//! tables are dropped; and who works on the tables ([`super::lease`]). `dike_unit` has a row for
//! each *unit*, the items (0) or a warehouse: absent, begun, or complete.

use std::collections::BTreeMap;

use rustix::rand::{GetRandomFlags, getrandom};

use super::LoadError;
use crate::config::{Data, Schema};
use crate::target::{Cause, Connector, Failure, Session, ddl};

/// How the mark of a table begins.
const MARK: &str = "Made by plimsoll dike, number ";

/// A random number in hexadecimal, too large to be drawn twice.
pub fn draw() -> Result<String, Failure> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|error| Failure::new(Cause::Other, format!("no random number can be had: {error}")))?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

/// What is in the schema.
#[derive(Debug)]
pub struct Tables {
    /// Names and comments.
    there: BTreeMap<String, String>,
}

impl Tables {
    /// Looks.
    pub async fn look(connector: &Connector, session: &mut Session) -> Result<Tables, Failure> {
        let rows = session.text(ddl::existing(connector.kind())).await?;
        let pair = |row: Vec<Option<String>>| match <[_; 2]>::try_from(row) {
            Ok([Some(name), comment]) => Some((name, comment.unwrap_or_default())),
            _ => None,
        };
        Ok(Tables { there: rows.into_iter().filter_map(pair).collect() })
    }

    /// Whether there is something of this name.
    pub fn has(&self, name: &str) -> bool {
        self.there.contains_key(name)
    }

    /// The mark of the tables that are Dike's, if there is a record.
    pub fn mark(&self) -> Option<&str> {
        self.there.get(ddl::RECORD).map(String::as_str).filter(|mark| mark.starts_with(MARK))
    }

    /// Refuses if something of these names is there and not Dike's.
    pub fn refuse_others<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<(), LoadError> {
        let mark = self.mark();
        let others =
            |name: &&str| self.there.get(*name).is_some_and(|comment| Some(comment.as_str()) != mark);
        let others: Vec<String> = names.into_iter().filter(others).map(str::to_owned).collect();
        if others.is_empty() { Ok(()) } else { Err(LoadError::NotOurs(others)) }
    }

    /// Refuses unless there is a record, and all tables are Dike's.
    pub fn refuse_empty(&self) -> Result<(), LoadError> {
        self.refuse_others(ddl::tables())?;
        if self.has(ddl::RECORD) { Ok(()) } else { Err(LoadError::Empty) }
    }
}

/// Makes the record if there is none. Fails and changes nothing if something that is not Dike's has
/// one of the names.
pub async fn make(connector: &Connector, schema: &Schema, session: &mut Session) -> Result<(), LoadError> {
    let names = ddl::names(connector.kind(), schema);
    let refuse = |tables: &Tables| tables.refuse_others(names.iter().map(String::as_str));
    let tables = Tables::look(connector, session).await?;
    refuse(&tables)?;
    if tables.has(ddl::RECORD) {
        return Ok(());
    }
    let create = ddl::create_record(connector.kind(), &format!("{MARK}{}", draw()?));
    let Err(failure) = session.text(&create).await else { return Ok(()) };
    // Another load may have made it at the same moment.
    let tables = Tables::look(connector, session).await?;
    refuse(&tables)?;
    if tables.has(ddl::RECORD) { Ok(()) } else { Err(failure.into()) }
}

/// How far the tables have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// They are being filled, or were when a load ended early.
    Loading,
    /// All rows were counted, all indexes are made.
    Loaded,
    /// They are being dropped, or were when a destroy ended early.
    Destroying,
}

impl State {
    const ALL: [State; 3] = [State::Loading, State::Loaded, State::Destroying];

    fn name(self) -> &'static str {
        match self {
            State::Loading => "loading",
            State::Loaded => "loaded",
            State::Destroying => "destroying",
        }
    }
}

/// The name under which the state is remembered.
const STATE: &str = "state";

/// What the record says.
#[derive(Debug)]
pub struct Record {
    values: BTreeMap<String, String>,
}

impl Record {
    /// Reads it.
    pub async fn read(session: &mut Session) -> Result<Record, Failure> {
        let rows = session.text(&format!("SELECT p_name, p_value FROM {}", ddl::RECORD)).await?;
        let pair = |row: Vec<Option<String>>| match <[_; 2]>::try_from(row) {
            Ok([Some(name), Some(value)]) => Some((name, value)),
            _ => None,
        };
        Ok(Record { values: rows.into_iter().filter_map(pair).collect() })
    }

    /// All rows, as name and value.
    pub fn rows(self) -> impl Iterator<Item = (String, String)> {
        self.values.into_iter()
    }

    /// How far the tables have come; nothing before the first row.
    pub fn state(&self) -> Option<State> {
        let state = self.values.get(STATE)?;
        State::ALL.into_iter().find(|known| known.name() == state)
    }

    /// Refuses parameters that are not those of the load.
    pub fn refuse_different(&self, data: &Data) -> Result<(), LoadError> {
        for (parameter, wanted) in parameters(data) {
            let loaded = self.values.get(parameter).cloned().unwrap_or_default();
            if loaded != wanted {
                return Err(LoadError::Different { parameter: parameter.to_owned(), loaded, wanted });
            }
        }
        Ok(())
    }
}

/// The parameters that a database remembers.
fn parameters(data: &Data) -> [(&'static str, String); 5] {
    [
        ("warehouses", data.warehouses.to_string()),
        ("items", data.items.to_string()),
        ("customers_per_district", data.customers_per_district.to_string()),
        ("district_skew", data.district_skew.to_string()),
        ("seed", data.seed.to_string()),
    ]
}

/// Begins a record: what is loaded, and that it is not there yet.
pub async fn begin(session: &mut Session, data: &Data) -> Result<(), Failure> {
    let mut rows: Vec<String> =
        parameters(data).iter().map(|(name, value)| format!("('{name}', '{value}')")).collect();
    rows.push(format!("('{STATE}', '{}')", State::Loading.name()));
    let insert = format!("INSERT INTO {} (p_name, p_value) VALUES {}", ddl::RECORD, rows.join(", "));
    session.change(&insert).await.map(|_| ())
}

/// Remembers how far the tables have come.
pub async fn enter(session: &mut Session, state: State) -> Result<(), Failure> {
    let name = state.name();
    let update = format!("UPDATE {} SET p_value = '{name}' WHERE p_name = '{STATE}'", ddl::RECORD);
    session.change(&update).await.map(|_| ())
}

/// Fails unless the database holds exactly what the configuration says, all of it.
pub async fn verify(connector: &Connector, data: &Data) -> Result<(), LoadError> {
    let mut session = connector.upkeep().connect(0).await?;
    Tables::look(connector, &mut session).await?.refuse_empty()?;
    let record = Record::read(&mut session).await?;
    let loaded = match record.state() {
        None => return Err(LoadError::Empty),
        Some(State::Destroying) => return Err(LoadError::HalfDropped),
        Some(state) => state == State::Loaded,
    };
    record.refuse_different(data)?;
    let complete = session.text_value("SELECT COUNT(*) FROM dike_unit WHERE u_complete = 1").await?;
    let complete: usize = complete.parse().unwrap_or(0);
    match (data.warehouses as usize + 1).checked_sub(complete) {
        Some(0) if loaded => Ok(()),
        missing => Err(LoadError::Incomplete(missing.unwrap_or_default())),
    }
}

/// The name under which a database remembers that w_ytd is no longer what payments have made it.
const BALANCES_UPDATED: &str = "balances_updated";

/// Makes the database remember that dUpdateBalance has run in it.
pub async fn remember_balances_updated(connector: &Connector) -> Result<(), Failure> {
    let mut session = connector.upkeep().connect(0).await?;
    if !balances_updated(&mut session).await? {
        let insert =
            format!("INSERT INTO {} (p_name, p_value) VALUES ('{BALANCES_UPDATED}', 'true')", ddl::RECORD);
        match session.change(&insert).await {
            // Another client of the run has been quicker.
            Err(failure) if failure.cause == Cause::Constraint => {}
            inserted => return inserted.map(|_| ()),
        }
    }
    Ok(())
}

/// Whether dUpdateBalance has ever run in the database.
pub async fn balances_updated(session: &mut Session) -> Result<bool, Failure> {
    let count = format!("SELECT COUNT(*) FROM {} WHERE p_name = '{BALANCES_UPDATED}'", ddl::RECORD);
    Ok(session.text_value(&count).await? != "0")
}
