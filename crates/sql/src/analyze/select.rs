//! Queries: `SELECT`, `VALUES`, and several of them put together.

use pg_query::NodeEnum;
use pg_query::protobuf::{
    LimitOption, Node, ResTarget, SelectStmt, SetOperation, SortBy, SortByDir, SortByNulls, a_const,
};

use super::expression::{present, typed};
use super::from::{Clause, Common, Scope, ScopeColumn};
use super::grouping;
use super::names::{column_name, strings};
use super::plan::{Combine, Direction, Expr, Plan, Typed};
use super::{Analyzer, Column, unsupported};
use crate::functions::{self, CastContext};
use crate::types::Oid;
use crate::{SqlError, SqlState};

/// Results of a query at most.
const TARGETS_MAX: usize = 1664;

/// A result of a query.
#[derive(Clone, Debug)]
pub struct Output {
    /// What clients see of it.
    pub column: Column,
    /// Where it is in the text.
    pub location: i32,
}

type Planned = Result<(Plan, Vec<Output>), SqlError>;

/// A result and its name, before there is a plan.
struct Target {
    name: String,
    value: Typed,
}

impl<'a> Analyzer<'a> {
    /// The clause that is being planned; says which one it was.
    pub fn enter(&mut self, clause: Clause) -> Clause {
        match self.scopes.last_mut() {
            Some(scope) => std::mem::replace(&mut scope.clause, clause),
            None => clause,
        }
    }

    /// A query whose results all have types.
    pub fn query(&mut self, select: &'a SelectStmt) -> Planned {
        let (plan, outputs) = self.open_query(select)?;
        self.typed_outputs(plan, outputs, None)
    }

    /// A query, some of whose results may still be of unknown type.
    fn open_query(&mut self, select: &'a SelectStmt) -> Planned {
        self.deeper(|analyzer| {
            let outside = analyzer.common.len();
            let planned = analyzer.with(select).and_then(|()| analyzer.query_here(select));
            analyzer.common.truncate(outside);
            planned
        })
    }

    fn with(&mut self, select: &'a SelectStmt) -> Result<(), SqlError> {
        let Some(with) = &select.with_clause else { return Ok(()) };
        if with.recursive {
            return Err(unsupported("WITH RECURSIVE"));
        }
        for node in &with.ctes {
            let Some(NodeEnum::CommonTableExpr(common)) = &node.node else {
                return Err(functions::confused());
            };
            let Some(NodeEnum::SelectStmt(query)) =
                common.ctequery.as_ref().and_then(|node| node.node.as_ref())
            else {
                return Err(unsupported("a statement that writes in WITH"));
            };
            self.common.push(Common {
                name: &common.ctename,
                columns: strings(&common.aliascolnames),
                select: query,
            });
        }
        Ok(())
    }

    fn query_here(&mut self, select: &'a SelectStmt) -> Planned {
        if select.into_clause.is_some() {
            return Err(unsupported("SELECT INTO"));
        }
        if !select.locking_clause.is_empty() && select.from_clause.is_empty() {
            return Err(unsupported("FOR UPDATE"));
        }
        if !select.window_clause.is_empty() {
            return Err(unsupported("WINDOW"));
        }
        let (plan, outputs) = match select.op() {
            SetOperation::SetopNone | SetOperation::Undefined if !select.values_lists.is_empty() => {
                self.values(select)?
            }
            SetOperation::SetopNone | SetOperation::Undefined => return self.plain(select),
            _ => self.combined(select)?,
        };
        self.ordered(select, plan, outputs)
    }

    /// Results of unknown type become text, or what is wanted of them.
    fn typed_outputs(&mut self, plan: Plan, outputs: Vec<Output>, wanted: Option<&[Oid]>) -> Planned {
        let oid_of = |place: usize, output: &Output| match wanted.and_then(|wanted| wanted.get(place)) {
            Some(oid) => *oid,
            None if output.column.oid == Oid::UNKNOWN => Oid::TEXT,
            None => output.column.oid,
        };
        let changed =
            outputs.iter().enumerate().any(|(place, output)| oid_of(place, output) != output.column.oid);
        if !changed {
            return Ok((plan, outputs));
        }
        // A literal of a projection is read where it stands; anything else is changed above.
        let (input, columns) = match plan {
            Plan::Project { input, columns } if columns.len() == outputs.len() => (input, columns),
            other => {
                let columns = (0..outputs.len()).map(|place| Expr::Column { level: 0, place }).collect();
                (Box::new(other), columns)
            }
        };
        let (mut exprs, mut typed_outputs) = (Vec::new(), Vec::new());
        for (place, (expr, output)) in columns.into_iter().zip(outputs).enumerate() {
            let oid = oid_of(place, &output);
            let Output { column, location } = output;
            let value = Typed { expr, oid: column.oid, modifier: column.modifier, location };
            let value = self.coerce(value, oid, -1, CastContext::Implicit)?;
            exprs.push(value.expr);
            let column = Column { name: column.name, oid, modifier: value.modifier };
            typed_outputs.push(Output { column, location });
        }
        Ok((Plan::Project { input, columns: exprs }, typed_outputs))
    }

    fn values(&mut self, select: &'a SelectStmt) -> Planned {
        self.scopes.push(Scope::new(Vec::new(), Clause::Values));
        let result = self.value_rows(select);
        self.scopes.pop();
        result
    }

    fn value_rows(&mut self, select: &'a SelectStmt) -> Planned {
        let mut rows: Vec<Vec<Typed>> = Vec::new();
        for node in &select.values_lists {
            let Some(NodeEnum::List(list)) = &node.node else { return Err(functions::confused()) };
            let row = self.expressions(&list.items)?;
            if let Some(first) = rows.first()
                && first.len() != row.len()
            {
                let location = row.first().map_or(-1, |value| value.location);
                return self.refuse(
                    location,
                    SqlState::SYNTAX_ERROR,
                    "VALUES lists must all be the same length",
                );
            }
            rows.push(row);
        }
        let width = rows.first().map_or(0, Vec::len);
        let mut outputs = Vec::new();
        let mut exprs: Vec<Vec<Expr>> = rows.iter().map(|_| Vec::new()).collect();
        for place in 0..width {
            let column: Vec<Typed> = rows.iter().filter_map(|row| row.get(place)).cloned().collect();
            let oid = self.common_type(&column, "VALUES")?;
            let first = column.first().map_or(-1, |value| value.modifier);
            let same = column.iter().all(|value| value.oid == oid && value.modifier == first);
            for (value, row) in column.into_iter().zip(&mut exprs) {
                row.push(self.to_common_type(value, oid, "VALUES")?.expr);
            }
            let name = format!("column{}", place + 1);
            let column = Column { name, oid, modifier: if same { first } else { -1 } };
            outputs.push(Output { column, location: -1 });
        }
        Ok((Plan::Values(exprs), outputs))
    }

    /// `UNION`, `INTERSECT`, `EXCEPT`
    fn combined(&mut self, select: &'a SelectStmt) -> Planned {
        let (Some(left), Some(right)) = (&select.larg, &select.rarg) else {
            return Err(functions::confused());
        };
        let (left, left_outputs) = self.open_query(left)?;
        let (right, right_outputs) = self.open_query(right)?;
        let (how, word) = match select.op() {
            SetOperation::SetopIntersect => (Combine::Intersect, "INTERSECT"),
            SetOperation::SetopExcept => (Combine::Except, "EXCEPT"),
            _ => (Combine::Union, "UNION"),
        };
        if left_outputs.len() != right_outputs.len() {
            let location = right_outputs.first().map_or(-1, |output| output.location);
            return self.refuse(
                location,
                SqlState::SYNTAX_ERROR,
                format!("each {word} query must have the same number of columns"),
            );
        }
        let mut wanted = Vec::new();
        for (left, right) in left_outputs.iter().zip(&right_outputs) {
            let value = |output: &Output| typed(Expr::CaseValue, output.column.oid, output.location);
            wanted.push(self.common_type(&[value(left), value(right)], word)?);
        }
        let (left, outputs) = self.typed_outputs(left, left_outputs, Some(&wanted))?;
        let (right, right_outputs) = self.typed_outputs(right, right_outputs, Some(&wanted))?;
        let outputs = outputs
            .into_iter()
            .zip(right_outputs)
            .map(|(mut left, right)| {
                if left.column.modifier != right.column.modifier {
                    left.column.modifier = -1;
                }
                left
            })
            .collect();
        Ok((Plan::Combined { left: Box::new(left), right: Box::new(right), how, all: select.all }, outputs))
    }

    /// The order and the limit of what is no plain query: only its results can be named.
    fn ordered(&mut self, select: &'a SelectStmt, plan: Plan, outputs: Vec<Output>) -> Planned {
        let mut keys = Vec::new();
        for node in &select.sort_clause {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { return Err(functions::confused()) };
            let key = present(&sort.node)?;
            let names: Vec<&str> = outputs.iter().map(|output| output.column.name.as_str()).collect();
            let Some(place) = self.output_of(key, &names, "ORDER BY")? else {
                return Err(self.no_output(key, &outputs));
            };
            let oid = outputs.get(place).map_or(Oid::TEXT, |output| output.column.oid);
            keys.push((place, self.direction(sort, oid)?));
        }
        let ties = keys.iter().map(|(place, _)| *place).collect();
        let plan = if keys.is_empty() { plan } else { Plan::Sort { input: Box::new(plan), keys } };
        self.scopes.push(Scope::new(Vec::new(), Clause::Limit("LIMIT")));
        let limited = self.limited(select, plan, ties);
        self.scopes.pop();
        Ok((limited?, outputs))
    }

    /// The error of an order by what is no result of several queries.
    fn no_output(&mut self, key: &'a Node, outputs: &[Output]) -> SqlError {
        let column = |output: &Output| ScopeColumn {
            table: None,
            name: output.column.name.clone(),
            oid: output.column.oid,
            modifier: output.column.modifier,
        };
        self.scopes.push(Scope::new(outputs.iter().map(column).collect(), Clause::OrderBy));
        let value = self.expression(key);
        self.scopes.pop();
        let location = match value {
            Ok(value) => value.location,
            Err(error) => return error,
        };
        let error =
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause");
        let error = error.detail("Only result column names can be used, not expressions or functions.");
        let hint = "Add the expression/function to every SELECT, or move the UNION into a FROM clause.";
        self.at(location, error.hint(hint))
    }

    /// The result that a name or a number in `ORDER BY` or `GROUP BY` means.
    fn output_of(&self, node: &Node, names: &[&str], clause: &str) -> Result<Option<usize>, SqlError> {
        match &node.node {
            Some(NodeEnum::AConst(constant)) => {
                let number = match &constant.val {
                    Some(a_const::Val::Ival(number)) => number.ival,
                    None if !constant.isnull => 0,
                    _ => {
                        return self.refuse(
                            constant.location,
                            SqlState::SYNTAX_ERROR,
                            format!("non-integer constant in {clause}"),
                        );
                    }
                };
                let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                match place.filter(|place| *place < names.len()) {
                    Some(place) => Ok(Some(place)),
                    None => self.refuse(
                        constant.location,
                        SqlState::INVALID_COLUMN_REFERENCE,
                        format!("{clause} position {number} is not in select list"),
                    ),
                }
            }
            Some(NodeEnum::ColumnRef(column)) => {
                let fields = strings(&column.fields);
                let [name] = fields.as_slice() else { return Ok(None) };
                let mut found = names.iter().enumerate().filter(|(_, known)| *known == name);
                let first = found.next().map(|(place, _)| place);
                if first.is_some() && found.next().is_some() {
                    return self.refuse(
                        column.location,
                        SqlState::AMBIGUOUS_COLUMN,
                        format!("{clause} \"{name}\" is ambiguous"),
                    );
                }
                Ok(first)
            }
            _ => Ok(None),
        }
    }

    /// The direction of a key.
    pub fn direction(&self, sort: &SortBy, oid: Oid) -> Result<Direction, SqlError> {
        let descending = match sort.sortby_dir() {
            SortByDir::SortbyDesc => true,
            SortByDir::SortbyUsing => match strings(&sort.use_op).last() {
                Some(&"<") => false,
                Some(&">") => true,
                _ => return Err(self.at(sort.location, unsupported("ORDER BY USING"))),
            },
            _ => false,
        };
        if matches!(oid, Oid::JSON) {
            let error = SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("could not identify an ordering operator for type {}", oid.display()),
            );
            return Err(error.hint("Use an explicit ordering operator or modify the query."));
        }
        let nulls_first = match sort.sortby_nulls() {
            SortByNulls::SortbyNullsFirst => true,
            SortByNulls::SortbyNullsLast => false,
            _ => descending,
        };
        Ok(Direction { descending, nulls_first, blanks: oid == Oid::BPCHAR })
    }

    fn limited(&mut self, select: &'a SelectStmt, plan: Plan, ties: Vec<usize>) -> Result<Plan, SqlError> {
        let skip = self.limit(&select.limit_offset, "OFFSET")?;
        let count = self.limit(&select.limit_count, "LIMIT")?;
        if skip.is_none() && count.is_none() {
            return Ok(plan);
        }
        let with_ties = select.limit_option() == LimitOption::WithTies;
        if with_ties && ties.is_empty() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "WITH TIES cannot be specified without ORDER BY clause",
            ));
        }
        Ok(Plan::Limit { input: Box::new(plan), count, skip, ties: with_ties.then_some(ties) })
    }

    fn limit(&mut self, node: &'a Option<Box<Node>>, word: &'static str) -> Result<Option<Expr>, SqlError> {
        let Some(node) = node else { return Ok(None) };
        self.enter(Clause::Limit(word));
        let value = self.expression(node)?;
        let (oid, location) = (value.oid, value.location);
        if value.expr.any(&|part| matches!(part, Expr::Column { level: 0, .. })) {
            let message = format!("argument of {word} must not contain variables");
            return self.refuse(location, SqlState::INVALID_COLUMN_REFERENCE, message);
        }
        let fits =
            oid == Oid::UNKNOWN || super::coerce::can_coerce(&[oid], &[Oid::INT8], CastContext::Assignment);
        if !fits {
            return self.refuse(
                location,
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {word} must be type bigint, not type {}", oid.display()),
            );
        }
        Ok(Some(self.coerce(value, Oid::INT8, -1, CastContext::Assignment)?.expr))
    }

    /// A query with a list of results.
    fn plain(&mut self, select: &'a SelectStmt) -> Planned {
        let (plan, columns) = self.from(&select.from_clause)?;
        self.scopes.push(Scope::new(columns, Clause::Where));
        let planned = self.plain_in_scope(select, plan);
        self.scopes.pop();
        planned
    }

    fn plain_in_scope(&mut self, select: &'a SelectStmt, mut plan: Plan) -> Planned {
        self.enter(Clause::Select);
        let mut targets = Vec::new();
        for node in &select.target_list {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { return Err(functions::confused()) };
            self.target(target, &mut targets)?;
        }
        if targets.len() > TARGETS_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("target lists can have at most {TARGETS_MAX} entries"),
            ));
        }
        self.enter(Clause::Where);
        if let Some(condition) = &select.where_clause {
            let condition = self.expression(condition)?;
            let condition = self.boolean(condition, "WHERE")?;
            plan = Plan::Filter { input: Box::new(plan), condition };
        }
        self.enter(Clause::Having);
        let having = match &select.having_clause {
            Some(having) => {
                let having = self.expression(having)?;
                Some(self.boolean(having, "HAVING")?)
            }
            None => None,
        };
        let visible = targets.len();
        self.enter(Clause::OrderBy);
        let mut order = Vec::new();
        for node in &select.sort_clause {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { return Err(functions::confused()) };
            let place = self.key(present(&sort.node)?, &mut targets, visible, "ORDER BY")?;
            let oid = targets.get(place).map_or(Oid::TEXT, |target| target.value.oid);
            order.push((place, self.direction(sort, oid)?));
        }
        self.enter(Clause::GroupBy);
        let mut keys = Vec::new();
        for node in &select.group_clause {
            keys.push(self.group_key(node, &mut targets, visible)?);
        }
        let on = self.distinct_keys(select, &mut targets, visible, &order)?;
        self.project(select, plan, targets, visible, Lists { having, order, keys, on })
    }

    /// A result, or all columns.
    fn target(&mut self, target: &'a ResTarget, targets: &mut Vec<Target>) -> Result<(), SqlError> {
        let node = present(&target.val)?;
        if let Some(NodeEnum::ColumnRef(column)) = &node.node
            && let Some(NodeEnum::AStar(_)) = column.fields.last().and_then(|field| field.node.as_ref())
        {
            let names = strings(&column.fields);
            let table = names.last().copied();
            let scope = self.scopes.last().ok_or_else(functions::confused)?;
            let of_table =
                |column: &ScopeColumn| table.is_none_or(|table| column.table.as_deref() == Some(table));
            let all: Vec<(usize, ScopeColumn)> =
                scope.columns.iter().cloned().enumerate().filter(|(_, column)| of_table(column)).collect();
            if all.is_empty() {
                return match table {
                    Some(table) => self.refuse(
                        column.location,
                        SqlState::UNDEFINED_TABLE,
                        format!("missing FROM-clause entry for table \"{table}\""),
                    ),
                    None => self.refuse(
                        column.location,
                        SqlState::SYNTAX_ERROR,
                        "SELECT * with no tables specified is not valid",
                    ),
                };
            }
            for (place, found) in all {
                let expr = Expr::Column { level: 0, place };
                let value =
                    Typed { expr, oid: found.oid, modifier: found.modifier, location: column.location };
                targets.push(Target { name: found.name, value });
            }
            return Ok(());
        }
        let value = self.expression(node)?;
        let name = if target.name.is_empty() { column_name(node) } else { target.name.clone() };
        targets.push(Target { name, value });
        Ok(())
    }

    /// The result that a key is; one that is not there is added behind those that are seen.
    fn key(
        &mut self,
        node: &'a Node,
        targets: &mut Vec<Target>,
        visible: usize,
        clause: &str,
    ) -> Result<usize, SqlError> {
        let names: Vec<&str> = targets.iter().take(visible).map(|target| target.name.as_str()).collect();
        // A name that several results have is fine if they are the same.
        let same = |name: &str| {
            let mut found = targets.iter().take(visible).filter(|target| target.name == name);
            let first = found.next();
            first.is_some_and(|first| found.all(|other| other.value.expr == first.value.expr))
        };
        let by_name = match &node.node {
            Some(NodeEnum::ColumnRef(column)) => match strings(&column.fields).as_slice() {
                [name] if same(name) => names.iter().position(|known| known == name),
                _ => self.output_of(node, &names, clause)?,
            },
            _ => self.output_of(node, &names, clause)?,
        };
        if let Some(place) = by_name {
            if let Some(target) = targets.get_mut(place) {
                let value = target.value.clone();
                target.value = self.settled(value)?;
            }
            return Ok(place);
        }
        let value = self.expression(node)?;
        let value = self.settled(value)?;
        if let Some(place) = targets.iter().position(|target| target.value.expr == value.expr) {
            return Ok(place);
        }
        targets.push(Target { name: String::new(), value });
        Ok(targets.len() - 1)
    }

    /// A key of `GROUP BY`: a column of what is read comes before a result of the name.
    fn group_key(
        &mut self,
        node: &'a Node,
        targets: &mut Vec<Target>,
        visible: usize,
    ) -> Result<Expr, SqlError> {
        if let Some(NodeEnum::GroupingSet(_)) = &node.node {
            return Err(unsupported("GROUPING SETS"));
        }
        let is_input = match &node.node {
            Some(NodeEnum::ColumnRef(column)) => {
                match (strings(&column.fields).as_slice(), self.scopes.last()) {
                    ([name], Some(scope)) => scope.find(None, name).map_or(true, |found| found.is_some()),
                    _ => true,
                }
            }
            _ => false,
        };
        let expr = if is_input {
            let value = self.expression(node)?;
            self.settled(value)?.expr
        } else {
            let before = targets.len();
            let place = self.key(node, targets, visible, "GROUP BY")?;
            let expr =
                targets.get(place).map(|target| target.value.expr.clone()).ok_or_else(functions::confused)?;
            targets.truncate(before);
            expr
        };
        if let Some(location) = self.aggregate_place(&expr) {
            let message = "aggregate functions are not allowed in GROUP BY";
            return self.refuse(location, SqlState::GROUPING_ERROR, message);
        }
        Ok(expr)
    }

    /// The results by which rows are alike.
    fn distinct_keys(
        &mut self,
        select: &'a SelectStmt,
        targets: &mut Vec<Target>,
        visible: usize,
        order: &[(usize, Direction)],
    ) -> Result<Option<Vec<usize>>, SqlError> {
        if select.distinct_clause.is_empty() {
            return Ok(None);
        }
        let on: Vec<&'a Node> = select.distinct_clause.iter().filter(|node| node.node.is_some()).collect();
        if on.is_empty() {
            if order.iter().any(|(place, _)| *place >= visible) {
                let location = order
                    .iter()
                    .find(|(place, _)| *place >= visible)
                    .and_then(|(place, _)| targets.get(*place))
                    .map_or(-1, |target| target.value.location);
                return self.refuse(
                    location,
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                );
            }
            return Ok(Some((0..visible).collect()));
        }
        let mut keys = Vec::new();
        let mut places = Vec::new();
        for node in on {
            let key = self.key(node, targets, visible, "DISTINCT ON")?;
            places.push(match &node.node {
                Some(NodeEnum::ColumnRef(column)) => column.location,
                _ => targets.get(key).map_or(-1, |target| target.value.location),
            });
            keys.push(key);
        }
        let first = order.iter().take(keys.len()).map(|(place, _)| place);
        if first.into_iter().any(|place| !keys.contains(place)) {
            let missing = keys.iter().position(|key| !order.iter().any(|(place, _)| place == key));
            let location = missing.and_then(|place| places.get(place)).copied().unwrap_or(-1);
            return self.refuse(
                location,
                SqlState::INVALID_COLUMN_REFERENCE,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            );
        }
        Ok(Some(keys))
    }

    /// The plan above what is read.
    fn project(
        &mut self,
        select: &'a SelectStmt,
        mut plan: Plan,
        targets: Vec<Target>,
        visible: usize,
        lists: Lists,
    ) -> Planned {
        let scope = self.scopes.last_mut().ok_or_else(functions::confused)?;
        let (aggregates, sets) = (std::mem::take(&mut scope.aggregates), std::mem::take(&mut scope.sets));
        let columns = scope.columns.clone();
        let mut width = columns.len();
        let mut outputs = Vec::new();
        let mut exprs = Vec::new();
        for target in targets {
            let Typed { expr, oid, modifier, location } = target.value;
            exprs.push(expr);
            outputs.push(Output { column: Column { name: target.name, oid, modifier }, location });
        }
        let mut having = lists.having;
        let mut sets = sets;
        if !aggregates.is_empty() || !lists.keys.is_empty() || having.is_some() {
            width = lists.keys.len() + aggregates.len();
            let over = |expr: Expr| grouping::grouped(expr, &lists.keys, &columns);
            let located = |analyzer: &Self, place: usize, result: Result<Expr, SqlError>| {
                result.map_err(|error| {
                    analyzer.at(outputs.get(place).map_or(-1, |output| output.location), error)
                })
            };
            exprs = exprs
                .into_iter()
                .enumerate()
                .map(|(place, expr)| located(self, place, over(expr)))
                .collect::<Result<_, _>>()?;
            sets = sets.into_iter().map(over).collect::<Result<_, _>>()?;
            having = having.map(over).transpose()?;
            plan = grouping::group(plan, lists.keys, aggregates);
        }
        if let Some(condition) = having {
            plan = Plan::Filter { input: Box::new(plan), condition };
        }
        let (plan, exprs) = grouping::with_sets(plan, width, sets, exprs)?;
        let ties: Vec<usize> = lists.order.iter().map(|(place, _)| *place).collect();
        let mut plan = Plan::Project { input: Box::new(plan), columns: exprs };
        let hidden = outputs.len() > visible;
        // The first of rows that are alike is the first in order.
        if !lists.order.is_empty() {
            plan = Plan::Sort { input: Box::new(plan), keys: lists.order };
        }
        if let Some(keys) = lists.on {
            plan = Plan::Distinct { input: Box::new(plan), keys };
        }
        plan = self.limited(select, plan, ties)?;
        outputs.truncate(visible);
        if hidden {
            let columns = (0..visible).map(|place| Expr::Column { level: 0, place }).collect();
            plan = Plan::Project { input: Box::new(plan), columns };
        }
        Ok((plan, outputs))
    }
}

/// What comes of a query's clauses.
struct Lists {
    having: Option<Expr>,
    order: Vec<(usize, Direction)>,
    keys: Vec<Expr>,
    on: Option<Vec<usize>>,
}
