//! What a query reads: tables, functions, queries, and these side by side.
//!
//! An item of `FROM` is planned with the row of the items before it one level up, whether or not it
//! uses them: that is where a function's arguments and a `LATERAL` query find them.

use std::cell::Cell;
use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{Alias, JoinType, Node, RangeVar, SelectStmt};

use super::aggregate::Mark;
use super::expression::present;
use super::names::strings;
use super::plan::{Aggregated, Expr, Plan, Reading, Scan, Windowed};
use super::{Analyzer, DEPTH_MAX, Origin, unsupported};
use crate::catalog::{Column, Relation, Table, pg};
use crate::functions;
use crate::types::Oid;
use crate::{SqlError, SqlState};

/// A column that a name may mean.
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    /// The name of what it is a column of.
    pub table: Option<String>,
    /// Its name.
    pub name: String,
    /// Its type.
    pub oid: Oid,
    /// The type's modifier.
    pub modifier: i32,
    /// The table's column that it is.
    pub origin: Option<Origin>,
}

impl ScopeColumn {
    /// The key of a row, which no name finds.
    pub fn of_key() -> ScopeColumn {
        ScopeColumn { table: None, name: String::new(), oid: Oid::BYTEA, modifier: -1, origin: None }
    }
}

/// The part of a query that is being planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clause {
    /// The list of results.
    Select,
    /// `WHERE`
    Where,
    /// `GROUP BY`
    GroupBy,
    /// `HAVING`
    Having,
    /// `ORDER BY`
    OrderBy,
    /// The condition of a join.
    Join,
    /// A function in `FROM`.
    Function,
    /// A query in `FROM`.
    Query,
    /// `VALUES`
    Values,
    /// `SET` of an `UPDATE`.
    Update,
    /// `RETURNING`
    Returning,
    /// What a column is if nothing is said.
    Default,
    /// What has to be true of a row.
    Check,
    /// `USING` of `ALTER COLUMN TYPE`.
    Transform,
    /// `LIMIT`, `OFFSET`
    Limit(&'static str),
    /// `FILTER` of an aggregate.
    Filter,
}

impl Clause {
    /// What messages call a place where no aggregate may be.
    pub fn refuses_aggregates(self) -> Option<&'static str> {
        match self {
            Clause::Select | Clause::Having | Clause::OrderBy => None,
            Clause::Where => Some("WHERE"),
            Clause::GroupBy => Some("GROUP BY"),
            Clause::Join => Some("JOIN conditions"),
            Clause::Function => Some("functions in FROM"),
            Clause::Query => Some("FROM clause of their own query level"),
            Clause::Values => Some("VALUES"),
            Clause::Update => Some("UPDATE"),
            Clause::Returning => Some("RETURNING"),
            Clause::Default => Some("DEFAULT expressions"),
            Clause::Check => Some("check constraints"),
            Clause::Transform => Some("transform expressions"),
            Clause::Limit(name) => Some(name),
            Clause::Filter => Some("FILTER"),
        }
    }

    /// What messages call a place where no query may be.
    pub fn refuses_queries(self) -> Option<&'static str> {
        match self {
            Clause::Default => Some("DEFAULT expression"),
            Clause::Check => Some("check constraint"),
            Clause::Transform => Some("transform expression"),
            _ => None,
        }
    }

    /// What messages call a place where no set may be.
    pub fn refuses_sets(self) -> Option<&'static str> {
        match self {
            Clause::Select | Clause::OrderBy | Clause::GroupBy | Clause::Function | Clause::Query => None,
            Clause::Having => Some("HAVING"),
            other => other.refuses_aggregates(),
        }
    }
}

/// What names mean in a query.
#[derive(Debug)]
pub struct Scope {
    /// Columns that can be named.
    pub columns: Vec<ScopeColumn>,
    /// The part of the query that is being planned.
    pub clause: Clause,
    /// What had been named when its query began.
    pub since: Mark,
    /// Aggregates that were found.
    pub aggregates: Vec<Aggregated>,
    /// Windows that were found.
    pub windows: Vec<Windowed>,
    /// Where they are.
    pub window_places: Vec<i32>,
    /// Functions that return sets that were found.
    pub sets: Vec<Expr>,
    /// Where they are.
    pub set_places: Vec<i32>,
}

impl Scope {
    /// A scope of these columns.
    pub fn new(columns: Vec<ScopeColumn>, clause: Clause) -> Scope {
        Scope {
            columns,
            clause,
            since: Mark::default(),
            aggregates: Vec::new(),
            windows: Vec::new(),
            window_places: Vec::new(),
            sets: Vec::new(),
            set_places: Vec::new(),
        }
    }

    /// The column of a name; an error if there are several.
    pub fn find(&self, table: Option<&str>, name: &str) -> Result<Option<usize>, SqlError> {
        let matches = |column: &ScopeColumn| {
            column.name == name && table.is_none_or(|table| column.table.as_deref() == Some(table))
        };
        let mut found = self.columns.iter().enumerate().filter(|(_, column)| matches(column));
        let first = found.next().map(|(place, _)| place);
        if found.next().is_some() {
            return Err(SqlError::new(
                SqlState::AMBIGUOUS_COLUMN,
                match table {
                    Some(table) => format!("column reference \"{table}.{name}\" is ambiguous"),
                    None => format!("column reference \"{name}\" is ambiguous"),
                },
            ));
        }
        Ok(first)
    }

    /// Whether something is named so.
    pub fn has_table(&self, table: &str) -> bool {
        self.columns.iter().any(|column| column.table.as_deref() == Some(table))
    }
}

/// A query of `WITH RECURSIVE` whose second half is being planned.
pub struct Working {
    /// Its number.
    pub id: usize,
    /// The columns of its rows.
    pub columns: Vec<ScopeColumn>,
    /// Where the second half reads them; below 0 if it does not.
    pub place: Cell<i32>,
    /// How many queries in expressions are around it.
    pub sublinks: usize,
}

/// A query of `WITH`.
pub struct Common<'a> {
    /// Its name.
    pub name: &'a str,
    /// Names of its columns.
    pub columns: Vec<&'a str>,
    /// Where it is in the text.
    pub location: i32,
    /// The query.
    pub select: &'a SelectStmt,
    /// How many queries are around the one that has it: what they read, it sees.
    pub around: usize,
    /// Whether it may go on from its own rows.
    pub recursive: bool,
    /// Its rows, while its second half is planned.
    pub working: Option<Working>,
    /// Whether it has been planned for something that reads it.
    pub is_read: Cell<bool>,
}

/// An item of `FROM`.
pub(super) struct Item {
    /// What makes its rows.
    pub plan: Plan,
    /// Its columns.
    pub columns: Vec<ScopeColumn>,
    /// Whether it depends on the row of the items before it.
    pub lateral: bool,
}

impl<'a> Analyzer<'a> {
    /// What the items of `FROM` are side by side; a single empty row if there are none.
    pub fn from(&mut self, nodes: &'a [Node]) -> Result<(Plan, Vec<ScopeColumn>), SqlError> {
        self.beside(Plan::Values(vec![Vec::new()]), Vec::new(), nodes)
    }

    /// What is there already with the items of `FROM` beside it.
    pub fn beside(
        &mut self,
        mut plan: Plan,
        mut columns: Vec<ScopeColumn>,
        nodes: &'a [Node],
    ) -> Result<(Plan, Vec<ScopeColumn>), SqlError> {
        if nodes.len() > DEPTH_MAX {
            let error = format!("there are more than {DEPTH_MAX} items in FROM");
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, error));
        }
        for node in nodes {
            let first = matches!(&plan, Plan::Values(rows) if columns.is_empty() && rows.len() == 1);
            self.scopes.push(Scope::new(columns.clone(), Clause::Function));
            let item = self.item(node);
            self.scopes.pop();
            let item = item?;
            for name in item.columns.iter().filter_map(|column| column.table.as_deref()) {
                if columns.iter().any(|column| column.table.as_deref() == Some(name)) {
                    return Err(SqlError::new(
                        SqlState::DUPLICATE_ALIAS,
                        format!("table name \"{name}\" specified more than once"),
                    ));
                }
            }
            plan = if first && sees_nothing_around(&item.plan) {
                item.plan
            } else {
                Plan::Join {
                    left: Box::new(plan),
                    right: Box::new(item.plan),
                    width: item.columns.len(),
                    condition: None,
                    outer: false,
                    // The first meets a single row, so that nothing has to be kept of it.
                    lateral: item.lateral || first,
                    keys: Vec::new(),
                }
            };
            columns.extend(item.columns);
        }
        Ok((plan, columns))
    }

    fn item(&mut self, node: &'a Node) -> Result<Item, SqlError> {
        self.deeper(|analyzer| match &node.node {
            Some(NodeEnum::RangeFunction(function)) => analyzer.function_item(function),
            Some(NodeEnum::RangeSubselect(select)) => {
                let Some(NodeEnum::SelectStmt(query)) =
                    select.subquery.as_ref().and_then(|node| node.node.as_ref())
                else {
                    return Err(functions::confused());
                };
                if select.alias.is_none() {
                    let what = if query.values_lists.is_empty() { "subquery" } else { "VALUES" };
                    let example = if query.values_lists.is_empty() { "(SELECT ...)" } else { "(VALUES ...)" };
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("{what} in FROM must have an alias"),
                    )
                    .hint(format!("For example, FROM {example} [AS] foo.")));
                }
                analyzer.query_item(query, select.alias.as_ref(), &[], select.lateral)
            }
            Some(NodeEnum::RangeVar(table)) => {
                let known = analyzer
                    .common
                    .iter()
                    .rposition(|common| common.name == table.relname && table.schemaname.is_empty());
                let Some(known) = known else { return analyzer.table_item(table) };
                analyzer.common_item(known, table)
            }
            Some(NodeEnum::JoinExpr(join)) => {
                let left = analyzer.item(present(&join.larg)?)?;
                analyzer.scopes.push(Scope::new(left.columns.clone(), Clause::Function));
                let right = present(&join.rarg).and_then(|right| analyzer.item(right));
                analyzer.scopes.pop();
                let right = right?;
                if join.is_natural || !join.using_clause.is_empty() || join.alias.is_some() {
                    return Err(unsupported("JOIN with USING, NATURAL or an alias"));
                }
                let outer = match join.jointype() {
                    JoinType::JoinInner => false,
                    JoinType::JoinLeft => true,
                    _ => return Err(unsupported("RIGHT or FULL JOIN")),
                };
                let mut columns = left.columns;
                let width = right.columns.len();
                columns.extend(right.columns);
                let condition = match &join.quals {
                    None => None,
                    Some(quals) => {
                        analyzer.scopes.push(Scope::new(columns.clone(), Clause::Join));
                        let condition = analyzer.expression(quals);
                        analyzer.scopes.pop();
                        Some(analyzer.boolean(condition?, "JOIN/ON")?)
                    }
                };
                let plan = Plan::Join {
                    left: Box::new(left.plan),
                    right: Box::new(right.plan),
                    width,
                    condition,
                    outer,
                    lateral: right.lateral,
                    keys: Vec::new(),
                };
                Ok(Item { plan, columns, lateral: left.lateral || right.lateral })
            }
            _ => Err(unsupported("this kind of item in FROM")),
        })
    }

    fn table_item(&mut self, range: &'a RangeVar) -> Result<Item, SqlError> {
        if let Some(relation) = pg::find(&range.schemaname, &range.relname) {
            self.need_objects()?;
            let column = |(place, field): (usize, &pg::Field)| ScopeColumn {
                table: Some(relation.name.to_owned()),
                name: field.name.to_owned(),
                oid: field.oid,
                modifier: -1,
                origin: Some(Origin { table: relation.oid, column: pg::numbers::column(place) }),
            };
            let columns = relation.fields.iter().enumerate().map(column).collect();
            let plan = Plan::Catalog(Reading { relation, equal: None });
            return Ok(Item { plan, columns: aliased(columns, range.alias.as_ref())?, lateral: false });
        }
        if let Some(Relation::Sequence(sequence)) =
            self.catalog.relation(&range.schemaname, &range.relname)?
        {
            let (plan, columns) = self.sequence_item(range, &sequence)?;
            self.sequences.push(sequence);
            return Ok(Item { plan, columns: aliased(columns, range.alias.as_ref())?, lateral: false });
        }
        let table = self.table(range)?;
        let columns = self.columns_of(&table);
        let mut columns = aliased(columns, range.alias.as_ref())?;
        let with_key = self.locks(range, &table);
        if with_key {
            columns.push(ScopeColumn::of_key());
        }
        let plan = Plan::Scan(Scan::of(table, with_key));
        Ok(Item { plan, columns, lateral: false })
    }

    /// The columns of a table, as names find them.
    pub fn columns_of(&self, table: &Table) -> Vec<ScopeColumn> {
        let column = |(place, column): (usize, &Column)| ScopeColumn {
            table: Some(table.name.clone()),
            name: column.name.clone(),
            oid: column.oid,
            modifier: column.modifier,
            origin: Some(Origin { table: table.id, column: pg::numbers::column(place) }),
        };
        table.live().map(column).collect()
    }

    /// The table of a name.
    pub fn table(&mut self, range: &RangeVar) -> Result<Arc<Table>, SqlError> {
        if pg::find(&range.schemaname, &range.relname).is_some() {
            let error = format!("permission denied: \"{}\" is a system catalog", range.relname);
            return self.refuse(range.location, SqlState::INSUFFICIENT_PRIVILEGE, error);
        }
        let found = self.catalog.relation(&range.schemaname, &range.relname)?;
        let kind = match found {
            Some(Relation::Table(table)) => {
                for column in &table.columns {
                    self.need_objects_for(column.oid)?;
                }
                if !self.tables.contains(&table) {
                    self.tables.push(table.clone());
                }
                return Ok(table);
            }
            None => None,
            Some(Relation::Index(_)) => Some("an index"),
            Some(Relation::Sequence(_)) => Some("a sequence"),
        };
        let error = if let Some(kind) = kind {
            SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is {kind}", range.relname))
        } else {
            let schema = match range.schemaname.as_str() {
                "" => String::new(),
                schema => format!("{schema}."),
            };
            let error = format!("relation \"{schema}{}\" does not exist", range.relname);
            SqlError::new(SqlState::UNDEFINED_TABLE, error)
        };
        Err(self.at(range.location, error))
    }

    fn query_item(
        &mut self,
        query: &'a SelectStmt,
        alias: Option<&'a Alias>,
        names: &[&str],
        lateral: bool,
    ) -> Result<Item, SqlError> {
        let hidden = if lateral {
            None
        } else {
            self.scopes.last_mut().map(|scope| std::mem::take(&mut scope.columns))
        };
        let outside = self.enter(Clause::Query);
        let planned = self.query(query);
        self.enter(outside);
        if let (Some(columns), Some(scope)) = (hidden, self.scopes.last_mut()) {
            scope.columns = columns;
        }
        let (plan, outputs) = planned?;
        let columns: Vec<ScopeColumn> = outputs
            .into_iter()
            .map(|output| ScopeColumn {
                table: None,
                name: output.column.name,
                oid: output.column.oid,
                modifier: output.column.modifier,
                origin: output.column.origin,
            })
            .collect();
        let columns = renamed(columns, "", names, "")?;
        Ok(Item { plan, columns: aliased(columns, alias)?, lateral })
    }
}

/// Columns under an alias and its names of columns.
pub(super) fn aliased(
    columns: Vec<ScopeColumn>,
    alias: Option<&Alias>,
) -> Result<Vec<ScopeColumn>, SqlError> {
    let Some(alias) = alias else { return Ok(columns) };
    let names = strings(&alias.colnames);
    renamed(columns, &alias.aliasname, &names, &alias.aliasname)
}

pub(super) fn renamed(
    mut columns: Vec<ScopeColumn>,
    table: &str,
    names: &[&str],
    shown: &str,
) -> Result<Vec<ScopeColumn>, SqlError> {
    if names.len() > columns.len() {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "table \"{shown}\" has {} columns available but {} columns specified",
                columns.len(),
                names.len()
            ),
        ));
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name = (*name).to_owned();
    }
    if !table.is_empty() {
        for column in &mut columns {
            column.table = Some(table.to_owned());
        }
    }
    Ok(columns)
}

/// Whether a plan is of tables and looks at no row around it, so that it need not be beside one.
fn sees_nothing_around(plan: &Plan) -> bool {
    match plan {
        Plan::Scan(_) => true,
        Plan::Join { left, right, condition, .. } => {
            let looks_around = |part: &Expr| match part {
                Expr::Column { level, .. } => *level > 0,
                Expr::Subquery(_) => true,
                _ => false,
            };
            sees_nothing_around(left)
                && sees_nothing_around(right)
                && !condition.as_ref().is_some_and(|condition| condition.any(&looks_around))
        }
        _ => false,
    }
}
