//! The registry of functions, operators and casts.
//!
//! One line per entry with PostgreSQL's object identifier ([`list`], [`operators`], [`casts`]), so
//! that a catalog can be made of it: what a client finds there it can call. Many entries share a
//! body: `int4lt`, `int48lt` and `float8lt` all compare, since values compare across widths.
//!
//! A body gets a [`Call`]: the arguments, their types, and what the session knows. A strict
//! function is not called with a NULL among its arguments: its result is then NULL.

pub mod aggregates;
pub mod arrays;
pub mod bytes;
pub mod casts;
pub mod catalog;
pub mod composing;
pub mod convert;
pub mod dates;
pub mod floats;
pub mod formats;
pub mod integers;
pub mod json;
pub mod list;
pub mod moments;
pub mod numerics;
pub mod operators;
pub mod order;
pub mod parts;
pub mod patterns;
pub mod regexes;
pub mod sets;
pub mod strings;
pub mod system;

use std::sync::Arc;

use crate::execute::Context;
use crate::types::time::Interval;
use crate::types::{Array, Datum, Numeric, Oid, compare};
use crate::{SqlError, SqlState};

/// What a function's result depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Volatility {
    /// On its arguments.
    Immutable,
    /// On settings or the transaction's time as well.
    Stable,
    /// On anything.
    Volatile,
}

/// The result of a body.
pub type Outcome = Result<Datum, SqlError>;

/// What makes the rows of a function that returns a set.
pub type Rows = Box<dyn FnMut() -> Result<Option<Datum>, SqlError> + Send>;

/// What a function does.
pub enum Body {
    /// A value from values.
    Plain(fn(&Call<'_>) -> Outcome),
    /// A set of values from values.
    Set(fn(&Call<'_>) -> Result<Rows, SqlError>),
    /// A value from the values of many rows.
    Aggregate(aggregates::Kind),
    /// What the session answers, which may have to wait for it.
    Session(Asks),
}

/// What a function asks the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// The next number of a sequence.
    NextNumber,
    /// The number that the session has got of a sequence last.
    CurrentNumber,
    /// The number that it has got last of any.
    LastNumber,
    /// To go on with another number.
    SetNumber,
    /// The sequence that belongs to a column.
    SequenceOf,
    /// A column of a sequence, read as a table.
    SequenceState,
}

/// A function.
pub struct Function {
    /// PostgreSQL's identifier.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments; of a variadic one the last is an array, or [`Oid::ANY`].
    pub arguments: &'static [Oid],
    /// The type of its result.
    pub result: Oid,
    /// Whether its result is NULL as soon as an argument is.
    pub strict: bool,
    /// What its result depends on.
    pub volatility: Volatility,
    /// Whether the last argument may come as many.
    pub variadic: bool,
    /// How many of the last arguments may be left out.
    pub optional: &'static [Datum],
    /// What it does.
    pub body: Body,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.name, self.oid)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.oid == other.oid
    }
}

/// An operator.
#[derive(Debug)]
pub struct Operator {
    /// PostgreSQL's identifier.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The type on its left, [`Oid::NONE`] of a prefix operator.
    pub left: Oid,
    /// The type on its right.
    pub right: Oid,
    /// The identifier of its function.
    pub function: u32,
}

/// Where a cast may happen by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CastContext {
    /// Anywhere.
    Implicit,
    /// Where a value is put into a column.
    Assignment,
    /// Nowhere: it has to be written.
    Explicit,
}

/// How a cast is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CastMethod {
    /// By this function.
    Function(u32),
    /// Not at all: the value is the same.
    Same,
    /// Through the text form.
    Text,
}

/// A cast.
#[derive(Debug)]
pub struct Cast {
    /// From this type.
    pub from: Oid,
    /// To this one.
    pub to: Oid,
    /// Where it may happen by itself.
    pub context: CastContext,
    /// How it is done.
    pub method: CastMethod,
}

/// All functions, ordered by identifier.
fn by_oid() -> &'static [&'static Function] {
    static SORTED: std::sync::OnceLock<Vec<&'static Function>> = std::sync::OnceLock::new();
    SORTED.get_or_init(|| {
        let mut all: Vec<&'static Function> = list::all().collect();
        all.sort_by_key(|function| function.oid);
        all
    })
}

/// All functions, ordered by name.
fn by_name() -> &'static [&'static Function] {
    static SORTED: std::sync::OnceLock<Vec<&'static Function>> = std::sync::OnceLock::new();
    SORTED.get_or_init(|| {
        let mut all: Vec<&'static Function> = list::all().collect();
        all.sort_by_key(|function| (function.name, function.oid));
        all
    })
}

/// The function of an identifier.
pub fn function(oid: u32) -> Option<&'static Function> {
    let all = by_oid();
    all.binary_search_by_key(&oid, |function| function.oid).ok().and_then(|place| all.get(place)).copied()
}

/// The functions of a name.
pub fn named(name: &str) -> &'static [&'static Function] {
    let all = by_name();
    let from = all.partition_point(|function| function.name < name);
    let to = all.partition_point(|function| function.name <= name);
    all.get(from..to).unwrap_or_default()
}

/// The cast from one type to another, if there is one by itself.
pub fn cast(from: Oid, to: Oid) -> Option<&'static Cast> {
    casts::CASTS.iter().find(|cast| cast.from == from && cast.to == to)
}

/// What a body is called with.
pub struct Call<'a> {
    /// The values of the arguments.
    pub arguments: &'a [Datum],
    /// Their types.
    pub types: &'a [Oid],
    /// The type of the result.
    pub result: Oid,
    /// What the session knows.
    pub context: &'a Context<'a>,
}

/// The error of a value whose kind is not what the plan has said: a bug, which is an error because
/// a client's statement may not end the database.
pub fn confused() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "a value is not of the type that it was planned to be")
}

impl Call<'_> {
    /// An argument; NULL if there is none.
    pub fn at(&self, place: usize) -> &Datum {
        self.arguments.get(place).unwrap_or(&Datum::Null)
    }

    /// How many arguments there are.
    pub fn count(&self) -> usize {
        self.arguments.len()
    }

    /// An integer of any width.
    pub fn integer(&self, place: usize) -> Result<i64, SqlError> {
        compare::integer(self.at(place)).ok_or_else(confused)
    }

    /// An `integer`.
    pub fn int4(&self, place: usize) -> Result<i32, SqlError> {
        i32::try_from(self.integer(place)?).map_err(|_| confused())
    }

    /// A float of any width.
    pub fn float(&self, place: usize) -> Result<f64, SqlError> {
        compare::float(self.at(place)).ok_or_else(confused)
    }

    /// A numeric.
    pub fn numeric(&self, place: usize) -> Result<&Numeric, SqlError> {
        match self.at(place) {
            Datum::Numeric(value) => Ok(value),
            _ => Err(confused()),
        }
    }

    /// A string.
    pub fn text(&self, place: usize) -> Result<&Arc<str>, SqlError> {
        self.at(place).as_string().ok_or_else(confused)
    }

    /// Bytes.
    pub fn bytes(&self, place: usize) -> Result<&Arc<[u8]>, SqlError> {
        match self.at(place) {
            Datum::Bytes(value) => Ok(value),
            _ => Err(confused()),
        }
    }

    /// A truth value.
    pub fn boolean(&self, place: usize) -> Result<bool, SqlError> {
        match self.at(place) {
            Datum::Bool(value) => Ok(*value),
            _ => Err(confused()),
        }
    }

    /// An interval.
    pub fn interval(&self, place: usize) -> Result<Interval, SqlError> {
        match self.at(place) {
            Datum::Interval(value) => Ok(*value),
            _ => Err(confused()),
        }
    }

    /// Days of a date.
    pub fn date(&self, place: usize) -> Result<i32, SqlError> {
        match self.at(place) {
            Datum::Date(value) => Ok(*value),
            _ => Err(confused()),
        }
    }

    /// Microseconds of a time or a timestamp.
    pub fn us(&self, place: usize) -> Result<i64, SqlError> {
        match self.at(place) {
            Datum::Time(us) | Datum::Timestamp(us) | Datum::TimestampTz(us) | Datum::TimeTz(us, _) => Ok(*us),
            _ => Err(confused()),
        }
    }

    /// An array.
    pub fn array(&self, place: usize) -> Result<&Arc<Array>, SqlError> {
        match self.at(place) {
            Datum::Array(value) => Ok(value),
            _ => Err(confused()),
        }
    }

    /// The type of an argument.
    pub fn type_of(&self, place: usize) -> Oid {
        self.types.get(place).copied().unwrap_or(Oid::UNKNOWN)
    }

    /// The text form of an argument.
    pub fn printed(&self, place: usize) -> Result<String, SqlError> {
        let mut out = String::new();
        crate::types::print(self.at(place), self.type_of(place), self.context.style, &mut out)?;
        Ok(out)
    }
}

/// An error of class 22.
pub fn refuse<T>(state: SqlState, message: impl Into<String>) -> Result<T, SqlError> {
    Err(SqlError::new(state, message))
}

/// `integer out of range` and its like.
pub fn out_of_range(type_name: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{type_name} out of range"))
}

/// A string that is not longer than a function should make or work on.
pub fn bounded(length: usize) -> Result<(), SqlError> {
    if length > LENGTH_MAX {
        return refuse(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large");
    }
    Ok(())
}

/// Bytes that the arguments of a function have together at most, and bytes of its result: a call
/// cannot pause, and most functions handle so many in less than a tenth of a second.
pub const LENGTH_MAX: usize = 8 << 20;
