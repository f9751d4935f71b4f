//! Why tables were not loaded, not used, or not dropped, as sentences that say what to do next.

use std::fmt;

use crate::target::Failure;

/// Why nothing was loaded, or not all.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadError {
    /// The database holds something else.
    Different {
        /// Which parameter differs.
        parameter: String,
        /// What it is in the database.
        loaded: String,
        /// What the configuration says.
        wanted: String,
    },
    /// Nothing was ever loaded.
    Empty,
    /// How many units are missing; 0 if only counting rows and making indexes is left to do.
    Incomplete(usize),
    /// A destroy was not completed.
    HalfDropped,
    /// These are there, and Dike has not made them.
    NotOurs(Vec<String>),
    /// Another command works on the tables: what its lease says of it.
    Busy(String),
    /// A table does not have the rows that were loaded into it.
    Miscounted {
        /// Its name.
        table: &'static str,
        /// How many there are.
        there: u64,
        /// How many there should be.
        loaded: u64,
    },
    /// A call failed.
    Failed(Failure),
    /// A file could not be written.
    File(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Different { parameter, loaded, wanted } => write!(
                f,
                "the database was loaded with data.{parameter} = {loaded}, not {wanted}: use that, or \
                 `plimsoll dike \
                 destroy` it first"
            ),
            LoadError::Empty => write!(f, "the database is empty: `plimsoll dike load` it first"),
            LoadError::Incomplete(0) => write!(
                f,
                "the load was not completed, rows were not counted and indexes not made: `plimsoll dike load` \
                 does that"
            ),
            LoadError::Incomplete(units) => write!(
                f,
                "the load was not completed, {units} warehouses are missing: `plimsoll dike load` goes on \
                 where it stopped"
            ),
            LoadError::HalfDropped => {
                write!(f, "an earlier `plimsoll dike destroy` was not completed: do it again, and then load")
            }
            LoadError::NotOurs(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                let (are, them) = if names.len() == 1 { ("is", "it") } else { ("are", "them") };
                write!(
                    f,
                    "{} {are} in this database and, as far as its record says, not made by Dike: nothing was \
                     changed; rename or drop {them} yourself, or use another database",
                    names.join(", ")
                )
            }
            LoadError::Busy(who) => {
                write!(f, "{who}, is at work on these tables: wait until it has ended, or end it")
            }
            LoadError::Miscounted { table, there, loaded } => write!(
                f,
                "`{table}` has {there} rows, and {loaded} were loaded into it: `plimsoll dike destroy` it, and \
                 see who else writes there or what keeps the database from storing"
            ),
            LoadError::Failed(failure) => failure.fmt(f),
            LoadError::File(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<Failure> for LoadError {
    fn from(failure: Failure) -> LoadError {
        LoadError::Failed(failure)
    }
}
