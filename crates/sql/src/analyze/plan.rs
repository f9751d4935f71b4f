//! What analysis makes of a statement: a tree of plans over trees of expressions.
//!
//! A plan makes rows; an expression makes a value of a row. A column of the row at hand has level
//! 0, one of the row of the query around it level 1, and so on.

use std::sync::Arc;

use crate::catalog::{Table, pg};
use crate::functions::Function;
use crate::types::{Datum, Oid};

/// What makes a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A value that is known.
    Constant(Datum),
    /// A parameter, from 0 on.
    Parameter(usize),
    /// A column of a row.
    Column {
        /// How many queries up.
        level: usize,
        /// Which column.
        place: usize,
    },
    /// The result of an aggregate, until grouping has made a column of it.
    Aggregate {
        /// How many queries up the rows are that it is over.
        level: usize,
        /// Which one of that query's.
        place: usize,
    },
    /// A row's number in its window, until the projection has made a column of it.
    Window(usize),
    /// The result of a function that returns a set, until the projection has made a column of it.
    Set(usize),
    /// A function.
    Call {
        /// Which one.
        function: &'static Function,
        /// Its arguments.
        arguments: Vec<Expr>,
        /// Their types.
        types: Vec<Oid>,
        /// The type of its result.
        result: Oid,
        /// Whether the last argument is an array that stands for many (`VARIADIC`).
        spread: bool,
    },
    /// All are true.
    And(Vec<Expr>),
    /// One is true.
    Or(Vec<Expr>),
    /// It is not true.
    Not(Box<Expr>),
    /// Whether there is no value; of a row, whether none of its fields has one.
    IsNull(Box<Expr>),
    /// Whether there is a value; of a row, whether all of its fields have one.
    IsNotNull(Box<Expr>),
    /// Whether it is this truth value, or unknown.
    IsTruth {
        /// What is tested.
        value: Box<Expr>,
        /// What for.
        truth: Option<bool>,
        /// Whether the answer is turned around.
        negated: bool,
    },
    /// Equality of two calls' arguments under which NULLs are alike.
    Distinct {
        /// The equality.
        equal: Box<Expr>,
        /// Whether the question is if they are alike.
        negated: bool,
    },
    /// Which of two rows comes first: comparisons of their fields, and the equality of each. The
    /// first fields that are not equal decide; what is behind them is not evaluated.
    Ordered(Vec<(Expr, &'static Function)>),
    /// NULL if the two arguments of the equality are equal, otherwise the first.
    NullIf(Box<Expr>),
    /// The first branch whose condition is true.
    Case {
        /// What conditions compare with, as [`Expr::CaseValue`].
        operand: Option<Box<Expr>>,
        /// Conditions and values.
        branches: Vec<(Expr, Expr)>,
        /// The value if no condition is true.
        otherwise: Box<Expr>,
    },
    /// The operand of the innermost case, or the element of the innermost array.
    CaseValue,
    /// The first value that is not NULL.
    Coalesce(Vec<Expr>),
    /// The largest or the least of those that are not NULL.
    Extreme {
        /// Whether the largest.
        greatest: bool,
        /// Of what.
        items: Vec<Expr>,
    },
    /// An array.
    Array {
        /// The type of its elements.
        element: Oid,
        /// Its elements, or arrays of one dimension less.
        items: Vec<Expr>,
        /// Whether they are arrays.
        nested: bool,
    },
    /// An element or a part of an array.
    Subscript {
        /// The array.
        array: Box<Expr>,
        /// Lower and upper bounds; an element has upper ones only.
        bounds: Vec<(Option<Expr>, Option<Expr>)>,
        /// Whether a part.
        slice: bool,
    },
    /// `left op ANY (array)`, `ALL`.
    Quantified {
        /// The operator between [`Expr::CaseValue`] (the element) and what is on the left.
        test: Box<Expr>,
        /// The array.
        array: Box<Expr>,
        /// Whether all elements have to pass.
        all: bool,
    },
    /// A value from its text form.
    Read {
        /// The text.
        text: Box<Expr>,
        /// The type.
        oid: Oid,
        /// Its modifier.
        modifier: i32,
    },
    /// The text form of a value.
    Print {
        /// The value.
        value: Box<Expr>,
        /// Its type.
        oid: Oid,
    },
    /// What a modifier keeps of a value.
    Fit {
        /// The value.
        value: Box<Expr>,
        /// Its type.
        oid: Oid,
        /// The modifier.
        modifier: i32,
        /// Whether a cast was written, which cuts strings in silence.
        explicit: bool,
    },
    /// An array with each element changed.
    Each {
        /// The array.
        array: Box<Expr>,
        /// What becomes of [`Expr::CaseValue`].
        change: Box<Expr>,
        /// The type of the new elements.
        element: Oid,
    },
    /// A row.
    Row(Vec<(Oid, Expr)>),
    /// A field of a row.
    Field {
        /// The row.
        record: Box<Expr>,
        /// Which field.
        place: usize,
    },
    /// `CURRENT_DATE` and its like.
    Clock {
        /// The type.
        oid: Oid,
        /// The digits of seconds.
        modifier: i32,
    },
    /// A query in an expression.
    Subquery(Arc<Subquery>),
    /// A test of a value that occurs in it several times, as [`Expr::CaseValue`].
    With {
        /// The value.
        value: Box<Expr>,
        /// The test.
        test: Box<Expr>,
    },
}

/// What a query in an expression is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Its only value.
    Value,
    /// Whether it has rows.
    Exists,
    /// All its values, as an array of this type.
    Array(Oid),
    /// Whether a test of its row, which is a level down, is true of some, or of all.
    Test {
        /// The test.
        test: Expr,
        /// Whether of all.
        all: bool,
    },
}

/// A query in an expression.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// A number of its own in the statement.
    pub id: usize,
    /// The query.
    pub plan: Plan,
    /// What is asked.
    pub question: Question,
    /// Whether it depends on rows around it; otherwise it runs once.
    pub correlated: bool,
}

/// Two that ask the same are the same: one may be the key of a group, the other a result.
impl PartialEq for Subquery {
    fn eq(&self, other: &Subquery) -> bool {
        self.plan == other.plan && self.question == other.question
    }
}

/// An aggregate over the rows of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregated {
    /// The function.
    pub function: &'static Function,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// Their types.
    pub types: Vec<Oid>,
    /// The type of its result.
    pub result: Oid,
    /// Whether equal arguments count once.
    pub distinct: bool,
    /// Rows for which this is not true are left out.
    pub filter: Option<Expr>,
    /// The order in which rows come.
    pub order: Vec<(Expr, Direction)>,
}

/// What rows are numbered by.
#[derive(Clone, Debug, PartialEq)]
pub struct Windowed {
    /// What the rows of a part have in common.
    pub partition: Vec<Expr>,
    /// The order of the rows in a part.
    pub order: Vec<(Expr, Direction)>,
}

/// The order of a sort's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Direction {
    /// Whether the largest comes first.
    pub descending: bool,
    /// Whether NULLs come first.
    pub nulls_first: bool,
}

/// How rows of two queries are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// All of both.
    Union,
    /// What both have.
    Intersect,
    /// What only the first has.
    Except,
}

/// Which keys of a table are read: those whose first columns have these values, and whose next one
/// lies between these.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Access {
    /// The index that leads to them, of its table's; none is the primary key.
    pub index: Option<usize>,
    /// Values of its first columns.
    pub equal: Vec<Equal>,
    /// The least value of the next, and whether it is one of them.
    pub low: Option<(Expr, bool)>,
    /// The largest, and whether it is one of them.
    pub high: Option<(Expr, bool)>,
}

/// What a column of a key equals.
#[derive(Clone, Debug, PartialEq)]
pub enum Equal {
    /// This.
    One(Expr),
    /// One of these.
    Any(Vec<Expr>),
    /// An element of this array.
    Of(Expr),
}

impl Equal {
    /// The expressions in it.
    pub fn exprs(&self) -> &[Expr] {
        match self {
            Equal::One(expr) | Equal::Of(expr) => std::slice::from_ref(expr),
            Equal::Any(exprs) => exprs,
        }
    }
}

/// The rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// Which table.
    pub table: Arc<Table>,
    /// Whether the row's key is a column behind the others.
    pub with_key: bool,
    /// Which of its rows.
    pub access: Access,
    /// Whether they come from the end.
    pub reverse: bool,
    /// Which of the table's columns are looked at; none says all.
    pub needed: Option<Vec<bool>>,
}

impl Scan {
    /// Of all rows.
    pub fn of(table: Arc<Table>, with_key: bool) -> Scan {
        Scan { table, with_key, access: Access::default(), reverse: false, needed: None }
    }

    /// How many columns its rows have.
    pub fn width(&self) -> usize {
        self.table.live().count() + usize::from(self.with_key)
    }
}

/// The rows of a relation of the catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Which relation.
    pub relation: &'static pg::CatalogRelation,
    /// A column, and the value that it has in the rows that are read.
    pub equal: Option<(usize, Expr)>,
}

/// A table whose rows are reserved.
#[derive(Clone, Debug, PartialEq)]
pub struct Locked {
    /// The table.
    pub table: Arc<Table>,
    /// The column that has the row's key.
    pub place: usize,
}

/// What is done with a row that another transaction has reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It is waited for.
    Block,
    /// It is an error.
    Refuse,
    /// The row is left out.
    Skip,
}

/// What makes rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Rows of a table.
    Scan(Scan),
    /// Rows of a relation of the catalog.
    Catalog(Reading),
    /// Rows of expressions.
    Values(Vec<Vec<Expr>>),
    /// The rows of a function.
    Function {
        /// What is called: a function that returns a set, or any expression.
        call: Expr,
        /// Whether a number from 1 on is added.
        ordinality: bool,
        /// How many columns a row of it becomes; none if it is a value.
        fields: Option<usize>,
    },
    /// Rows of which something is true.
    Filter {
        /// Of what.
        input: Box<Plan>,
        /// What is true.
        condition: Expr,
    },
    /// Other columns.
    Project {
        /// Of what.
        input: Box<Plan>,
        /// The columns.
        columns: Vec<Expr>,
    },
    /// The rows of a query that goes on from its own rows: `WITH RECURSIVE`.
    Recursive {
        /// A number of its own in the statement.
        id: usize,
        /// What makes the first rows.
        base: Box<Plan>,
        /// What makes more of the rows that have come last.
        step: Box<Plan>,
        /// Whether rows that are alike stay.
        all: bool,
    },
    /// The rows that have come last in a recursive query.
    Working {
        /// Which query.
        id: usize,
        /// How many columns they have.
        width: usize,
    },
    /// Rows with their numbers behind them, from 1 on in each part of them. The rows of a part have
    /// to come one after the other.
    Numbered {
        /// Of what.
        input: Box<Plan>,
        /// Columns that are alike in the rows of a part.
        keys: Vec<usize>,
    },
    /// Rows repeated for every row of sets, whose values are added to them.
    Sets {
        /// Of what.
        input: Box<Plan>,
        /// Functions that return sets.
        sets: Vec<Expr>,
    },
    /// Rows side by side.
    Join {
        /// The outer rows.
        left: Box<Plan>,
        /// The inner rows, for which an outer row is a level up.
        right: Box<Plan>,
        /// How many columns the inner rows have.
        width: usize,
        /// What is true of both.
        condition: Option<Expr>,
        /// Whether an outer row without an inner one stays.
        outer: bool,
        /// Whether the inner rows depend on the outer one.
        lateral: bool,
        /// What has to be equal, by which inner rows are looked up among those that are kept: of
        /// the outer row, and of the inner one by itself.
        keys: Vec<(Expr, Expr)>,
    },
    /// Groups of rows: first what they have in common, then aggregates.
    Group {
        /// Of what.
        input: Box<Plan>,
        /// What the rows of a group have in common.
        keys: Vec<Expr>,
        /// What is made of them.
        aggregates: Vec<Aggregated>,
    },
    /// Rows in order of their columns.
    Sort {
        /// Of what.
        input: Box<Plan>,
        /// Columns and directions.
        keys: Vec<(usize, Direction)>,
    },
    /// The first row of those that are alike.
    Distinct {
        /// Of what.
        input: Box<Plan>,
        /// Columns that are compared.
        keys: Vec<usize>,
    },
    /// Some rows.
    Limit {
        /// Of what.
        input: Box<Plan>,
        /// How many.
        count: Option<Expr>,
        /// After how many.
        skip: Option<Expr>,
        /// The keys by which rows like the last one come too.
        ties: Option<Vec<usize>>,
    },
    /// Rows that are reserved.
    Lock {
        /// Of what.
        input: Box<Plan>,
        /// By which columns.
        tables: Vec<Locked>,
        /// What is done if another transaction has one.
        wait: Wait,
    },
    /// Rows of two queries.
    Combined {
        /// The first.
        left: Box<Plan>,
        /// The second.
        right: Box<Plan>,
        /// How.
        how: Combine,
        /// Whether rows that are alike stay.
        all: bool,
    },
}

/// An expression with what is known of its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// The expression.
    pub expr: Expr,
    /// Its type; [`Oid::UNKNOWN`] of a literal or a parameter whose type is still open.
    pub oid: Oid,
    /// The type's modifier.
    pub modifier: i32,
    /// Where it is in the text, in bytes; below 0 if nowhere.
    pub location: i32,
}
