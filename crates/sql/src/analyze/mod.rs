//! From parse tree to query: names and type resolution.
//!
//! | file | has |
//! |---|---|
//! | `plan` | what comes out |
//! | `walk` | what expressions are made of |
//! | `select` | queries |
//! | `common` | queries of `WITH` |
//! | `windows` | windows |
//! | `combine` | `VALUES`, `UNION` and its like |
//! | `order` | order, keys, limit |
//! | `grouping` | aggregates and sets of a query's lists |
//! | `from` | what a query reads |
//! | `from_functions` | functions in `FROM` |
//! | `expression` | expressions |
//! | `call` | functions |
//! | `aggregate` | aggregates, and the query that each belongs to |
//! | `operator` | operators and what is written like one |
//! | `sublink` | queries in expressions |
//! | `names` | types, and the names of results |
//! | `resolve` | which function or operator is meant |
//! | `coerce` | casts |
//! | `fold` | constants |
//! | `paths` | which part of a table is read |
//! | `sequence` | functions of sequences |
//! | `stored` | expressions that descriptors keep |
//! | `write` | statements that write |
//!
//! The tree comes from the grammar, but its depth comes from the client: every level is counted
//! before it is entered, and the stack looked at (`Analyzer::deeper`).
//!
//! Left out so far, and refused by name: window functions but `row_number()`, grouping sets, row
//! locks.

mod aggregate;
mod call;
mod coerce;
mod combine;
mod common;
pub mod conflict;
pub mod explain;
mod expression;
mod fold;
mod from;
mod from_functions;
mod grouping;
mod locking;
pub mod names;
mod needed;
mod operator;
mod order;
mod paths;
pub mod plan;
mod resolve;
mod select;
mod sequence;
mod sorted;
pub mod stored;
mod sublink;
mod walk;
mod windows;
pub mod write;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use pg_query::protobuf::{LimitOption, Node, ResTarget, SelectStmt, SetOperation, TypeName};
use pg_query::{DeparseOptions, NodeEnum};

use crate::catalog::pg::{Naming, NodeSight, Objects};
use crate::catalog::{Relation, Sequence, Table};
use crate::execute::Context;
use crate::execute::evaluate::Shared;
use crate::execute::fuel::Fuel;
use crate::functions::CastContext;
use crate::stack::Stack;
use crate::types::{Oid, Style};
use crate::{SqlError, SqlState};
use aggregate::Named;
use fold::Folder;
use from::Scope;
use plan::Plan;
use write::Write;

/// Levels of a tree at most; before that the stack may be used up.
pub const DEPTH_MAX: usize = 1000;

/// Units of work that the constants of a statement may take before it runs: some hundredths of a
/// second.
const CONSTANTS_FUEL: u32 = 50_000;

/// Expressions that may be copied in a statement.
const COPIES_MAX: usize = 1 << 16;

/// A column of a result.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub oid: Oid,
    /// The type's modifier, -1 if it has none.
    pub modifier: i32,
    /// The table's column that it is, if it is just one.
    pub origin: Option<Origin>,
}

/// The identifier of a table, and a column's number in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The table.
    pub table: u32,
    /// The column, from 1 on.
    pub column: i16,
}

/// Two are alike to a client whatever table they come from.
impl PartialEq for Column {
    fn eq(&self, other: &Column) -> bool {
        self.name == other.name && self.oid == other.oid && self.modifier == other.modifier
    }
}

/// A planned statement: a query, and what is written with its rows.
#[derive(Debug)]
pub struct Query {
    /// Types of the parameters, from `$1` on.
    pub parameters: Vec<Oid>,
    /// What the client's rows have.
    pub columns: Vec<Column>,
    /// What makes rows.
    pub plan: Plan,
    /// What is done with them if they are not for the client.
    pub write: Option<Write>,
    /// The tables that it was planned for.
    pub tables: Vec<Arc<Table>>,
    /// All tables, if it was planned for what the catalog says of them.
    pub objects: Option<Arc<Objects>>,
    /// The sequences that it names.
    pub sequences: Vec<Arc<Sequence>>,
    /// How many queries in expressions there are.
    pub subqueries: usize,
    /// `FOR UPDATE`, or another clause by which it locks rows.
    pub locks: Option<&'static str>,
    /// What a constant of it fails with, as soon as it runs.
    pub failure: Option<SqlError>,
    /// Units of work that its constants have taken.
    pub work: usize,
}

impl Query {
    /// Whether the client gets rows.
    pub fn returns_rows(&self) -> bool {
        self.write.as_ref().is_none_or(|write| write.returning.is_some())
    }

    /// Whether it was planned for tables, which may change.
    pub fn depends(&self) -> bool {
        !self.tables.is_empty() || !self.sequences.is_empty() || self.objects.is_some()
    }
}

/// A setting as `pg_settings` shows it.
#[derive(Clone, Debug)]
pub struct ShownSetting {
    /// Its name.
    pub name: &'static str,
    /// Its value, in its unit.
    pub value: String,
    /// The unit.
    pub unit: Option<&'static str>,
    /// What it is about.
    pub about: &'static str,
    /// Who may change it.
    pub context: &'static str,
    /// What kind of value it has.
    pub kind: &'static str,
    /// The least value.
    pub least: Option<String>,
    /// The greatest.
    pub greatest: Option<String>,
    /// All values, if they are few.
    pub choices: Option<&'static [&'static str]>,
    /// The value of the setting before any `SET`.
    pub default: String,
    /// What it is after `RESET`.
    pub reset: String,
}

/// What analysis and execution ask about the session.
pub trait Catalog {
    /// The value of a setting as `SHOW` says it; none if there is no such setting.
    fn setting(&self, name: &str) -> Option<String>;
    /// Changes a setting, if `local` until the end of the transaction; says what it is then.
    fn set(&self, name: &str, value: &str, local: bool) -> Result<String, SqlError>;
    /// The current user.
    fn user(&self) -> &str;
    /// The database.
    fn database(&self) -> &str;
    /// What a name stands for, in the schemas that are looked through if none is named.
    fn relation(&self, schema: &str, name: &str) -> Result<Option<Relation>, SqlError>;

    /// All tables. There are none where only settings are known.
    fn objects(&self) -> Result<Arc<Objects>, SqlError> {
        Ok(Arc::new(Objects::new(Vec::new())))
    }

    /// All settings.
    fn settings(&self) -> Vec<ShownSetting> {
        Vec::new()
    }

    /// What the session's node knows; none where nothing runs.
    fn node(&self) -> Option<&dyn NodeSight> {
        None
    }

    /// When the statement at hand has arrived, in microseconds since 2000-01-01.
    fn now_us(&self) -> i64 {
        0
    }

    /// What `pg_backend_pid()` says.
    fn backend(&self) -> i32 {
        0
    }
}

/// Plans a statement. `given` are the types that a Parse message named, [`Oid::NONE`] if it left
/// one open; `text` is what positions of errors count characters in.
pub fn analyze(
    statement: &Node,
    text: &str,
    given: &[Oid],
    catalog: &dyn Catalog,
) -> Result<Query, SqlError> {
    let mut analyzer = Analyzer::new(text, given, catalog);
    for oid in given {
        analyzer.need_objects_for(*oid)?;
    }
    let (plan, write, columns) = match &statement.node {
        Some(NodeEnum::SelectStmt(select)) => {
            let (plan, outputs) = analyzer.query(select)?;
            (plan, None, outputs.into_iter().map(|output| output.column).collect())
        }
        Some(NodeEnum::InsertStmt(insert)) => writing(analyzer.insert(insert)?),
        Some(NodeEnum::UpdateStmt(update)) => writing(analyzer.update(update)?),
        Some(NodeEnum::DeleteStmt(delete)) => writing(analyzer.delete(delete)?),
        _ => return Err(unsupported("this kind of statement")),
    };
    if let Some(place) = analyzer.parameters.iter().position(|oid| *oid == Oid::UNKNOWN) {
        return Err(SqlError::new(
            SqlState::INDETERMINATE_DATATYPE,
            format!("could not determine data type of parameter ${}", place + 1),
        ));
    }
    if let Some(error) = analyzer.late {
        return Err(error);
    }
    let fuel = Fuel::new(CONSTANTS_FUEL);
    let (plan, failure) = folded(plan, catalog, &analyzer.style, &fuel);
    let Analyzer { parameters, tables, objects, sequences, subqueries, locks, .. } = analyzer;
    let work = fuel.burned();
    let objects = objects.map(|objects| Arc::new(objects.bare()));
    Ok(Query {
        parameters,
        columns,
        plan,
        write,
        tables,
        objects,
        sequences,
        subqueries,
        locks,
        failure,
        work,
    })
}

fn writing((plan, write, columns): (Plan, Write, Vec<Column>)) -> (Plan, Option<Write>, Vec<Column>) {
    (plan, Some(write), columns)
}

/// A plan with its constants evaluated, which depend on no time and no chance, and what has failed.
fn folded(plan: Plan, catalog: &dyn Catalog, style: &Style, fuel: &Fuel) -> (Plan, Option<SqlError>) {
    let context = Context {
        catalog,
        style,
        transaction_us: 0,
        statement_us: 0,
        clock: &|| 0,
        random: &|| 0,
        backend: 0,
        fuel,
        volatile: &Cell::new(false),
    };
    let (answers, held, fetch) = (RefCell::new(Vec::new()), Cell::new(0), RefCell::new(None));
    let working = RefCell::default();
    let shared = Shared {
        context: &context,
        parameters: &[],
        answers: &answers,
        working: &working,
        held: &held,
        fetch: &fetch,
        stack: Stack::begin(),
    };
    let mut folder = Folder::new(&shared);
    let plan = folder.plan(plan);
    (plan, folder.failure)
}

/// An error with its place in a statement's text; what is kept with a descriptor has none.
pub fn placed(text: &str, location: i32, error: SqlError) -> SqlError {
    let Some(location) = usize::try_from(location).ok().filter(|_| !text.is_empty()) else { return error };
    let before = text.get(..location).map_or(0, |before| before.chars().count());
    error.at(u32::try_from(before + 1).unwrap_or(u32::MAX))
}

/// The type of a name, and its modifier.
pub fn type_of(name: &TypeName, text: &str, catalog: &dyn Catalog) -> Result<(Oid, i32), SqlError> {
    Analyzer::new(text, &[], catalog).type_name(name)
}

/// Whether values of two types can be equal.
pub fn can_compare(one: Oid, other: Oid) -> bool {
    coerce::can_coerce(&[one], &[other], CastContext::Implicit)
        || coerce::can_coerce(&[other], &[one], CastContext::Implicit)
}

/// Whether a value of a type may be put into a column of another.
pub fn can_assign(from: Oid, to: Oid) -> bool {
    coerce::can_coerce(&[from], &[to], CastContext::Assignment)
}

/// An expression as text.
pub fn printed(expression: &Node) -> Result<String, SqlError> {
    let print = || {
        let target = ResTarget { val: Some(Box::new(expression.clone())), ..ResTarget::default() };
        let node = Node { node: Some(NodeEnum::ResTarget(Box::new(target))) };
        let mut select = SelectStmt { target_list: vec![node], ..SelectStmt::default() };
        select.set_op(SetOperation::SetopNone);
        select.set_limit_option(LimitOption::Default);
        NodeEnum::SelectStmt(Box::new(select)).deparse(DeparseOptions::default())
    };
    // All of it recurses, some of it in C.
    let text = stacker::maybe_grow(PRINTING_STACK, PRINTING_STACK, print);
    let text = text.map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()))?;
    Ok(text.strip_prefix("SELECT ").unwrap_or(&text).to_owned())
}

/// Bytes of stack for printing an expression of as many levels as there may be.
const PRINTING_STACK: usize = 16 << 20;

/// The error of what is recognised and not there.
pub fn unsupported(what: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported yet"))
}

/// Parameters of a statement at most, as the wire counts them.
const PARAMETERS_MAX: usize = 65_535;

/// What analysis knows at a point of the tree.
pub struct Analyzer<'a> {
    text: &'a str,
    catalog: &'a dyn Catalog,
    /// The tables that were found.
    tables: Vec<Arc<Table>>,
    /// All tables, if they are needed.
    objects: Option<Arc<Objects>>,
    /// The sequences that are named.
    sequences: Vec<Arc<Sequence>>,
    style: Style,
    parameters: Vec<Oid>,
    /// What names mean: of the query at hand last, of the ones around it before.
    scopes: Vec<Scope>,
    /// Queries of `WITH` that can be seen.
    common: Vec<from::Common<'a>>,
    /// What the query at hand reserves.
    locking: Option<locking::Locking>,
    /// The last clause that says that rows are locked.
    locks: Option<&'static str>,
    depth: usize,
    stack: Stack,
    subqueries: usize,
    /// How many queries in expressions are around what is being planned.
    sublinks: usize,
    /// How many recursive queries there are.
    recursions: usize,
    /// How many expressions were copied.
    copied: usize,
    /// The outermost scope that a name was found in: tells whether a query depends on others.
    crossed: usize,
    /// A mistake that is told only of a statement without any other.
    late: Option<SqlError>,
    /// What has been named, by which an aggregate finds its query.
    named: Named<'a>,
}

impl<'a> Analyzer<'a> {
    fn new(text: &'a str, given: &[Oid], catalog: &'a dyn Catalog) -> Analyzer<'a> {
        let open = |oid: &Oid| if *oid == Oid::NONE { Oid::UNKNOWN } else { *oid };
        Analyzer {
            text,
            catalog,
            tables: Vec::new(),
            objects: None,
            sequences: Vec::new(),
            style: Style::from_settings(|name| catalog.setting(name)),
            parameters: given.iter().map(open).collect(),
            scopes: Vec::new(),
            common: Vec::new(),
            locking: None,
            locks: None,
            depth: 0,
            stack: Stack::begin(),
            subqueries: 0,
            sublinks: 0,
            recursions: 0,
            copied: 0,
            crossed: usize::MAX,
            late: None,
            named: Named::default(),
        }
    }

    /// An error with its place, which the tree has in bytes and a client gets in characters.
    fn at(&self, location: i32, error: SqlError) -> SqlError {
        placed(self.text, location, error)
    }

    fn refuse<T>(&self, location: i32, state: SqlState, message: impl Into<String>) -> Result<T, SqlError> {
        Err(self.at(location, SqlError::new(state, message)))
    }

    /// The statement depends on what the catalog says: its relations, or names of identifiers.
    fn need_objects(&mut self) -> Result<(), SqlError> {
        if self.objects.is_none() {
            let objects = self.catalog.objects()?;
            self.style.names = Some(Arc::new(Naming::new(Arc::clone(&objects), self.catalog)));
            self.objects = Some(objects);
        }
        Ok(())
    }

    /// The same, if a type's values are shown by names.
    fn need_objects_for(&mut self, oid: Oid) -> Result<(), SqlError> {
        if oid.element().unwrap_or(oid).is_reference() { self.need_objects() } else { Ok(()) }
    }

    /// Enters a level of the tree.
    fn deeper<T>(&mut self, enter: impl FnOnce(&mut Self) -> Result<T, SqlError>) -> Result<T, SqlError> {
        if self.depth >= DEPTH_MAX {
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        self.stack.check()?;
        self.depth += 1;
        let result = enter(self);
        self.depth -= 1;
        result
    }

    /// The type of a parameter, which may still be open.
    fn parameter(&mut self, number: i32, location: i32) -> Result<(usize, Oid), SqlError> {
        let place = usize::try_from(number).ok().filter(|number| (1..=PARAMETERS_MAX).contains(number));
        let Some(place) = place.map(|number| number - 1) else {
            return self.refuse(
                location,
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter ${number}"),
            );
        };
        if self.parameters.len() <= place {
            self.parameters.resize(place + 1, Oid::UNKNOWN);
        }
        Ok((place, self.parameters.get(place).copied().unwrap_or(Oid::UNKNOWN)))
    }

    /// Gives an open parameter its type.
    fn infer(&mut self, place: usize, oid: Oid, location: i32) -> Result<(), SqlError> {
        let Some(parameter) = self.parameters.get_mut(place) else { return Ok(()) };
        if *parameter == Oid::UNKNOWN {
            *parameter = oid;
        } else if *parameter != oid {
            let error = SqlError::new(
                SqlState::AMBIGUOUS_PARAMETER,
                format!("inconsistent types deduced for parameter ${}", place + 1),
            )
            .detail(format!("{} versus {}", parameter.display(), oid.display()));
            return Err(self.at(location, error));
        }
        Ok(())
    }
}
