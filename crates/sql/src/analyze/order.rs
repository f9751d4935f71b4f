//! The order, the keys and the limit of a query: what names and numbers in them mean.

use pg_query::NodeEnum;
use pg_query::protobuf::{LimitOption, Node, SelectStmt, SortBy, SortByDir, SortByNulls, a_const};

use super::expression::present;
use super::from::{Clause, Scope, ScopeColumn};
use super::names::strings;
use super::plan::{Direction, Expr, Plan, Typed};
use super::select::{Output, Planned, Target};
use super::{Analyzer, unsupported};
use crate::functions::{self, CastContext};
use crate::types::Oid;
use crate::{SqlError, SqlState};

impl<'a> Analyzer<'a> {
    /// The order and the limit of what is no plain query: only its results can be named.
    pub fn ordered(&mut self, select: &'a SelectStmt, plan: Plan, outputs: Vec<Output>) -> Planned {
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

    /// The error of an order by what is no result of several queries.
    fn no_output(&mut self, key: &'a Node, outputs: &[Output]) -> SqlError {
        let column = |output: &Output| ScopeColumn {
            table: None,
            name: output.column.name.clone(),
            oid: output.column.oid,
            modifier: output.column.modifier,
            origin: output.column.origin,
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
        Ok(Direction { descending, nulls_first })
    }

    /// A plan with its limit, after keys by which rows may be like the last.
    pub fn limited(
        &mut self,
        select: &'a SelectStmt,
        plan: Plan,
        ties: Vec<usize>,
    ) -> Result<Plan, SqlError> {
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

    /// The result that a key is; one that is not there is added behind those that are seen.
    pub fn key(
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
        targets.push(Target { name: String::new(), value, origin: None });
        Ok(targets.len() - 1)
    }

    /// A key of `GROUP BY`: a column of what is read comes before a result of the name.
    pub fn group_key(
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
        let Typed { expr, location: from, .. } = if is_input {
            let value = self.expression(node)?;
            self.settled(value)?
        } else {
            let before = targets.len();
            let place = self.key(node, targets, visible, "GROUP BY")?;
            let value = targets.get(place).map(|target| target.value.clone());
            targets.truncate(before);
            value.ok_or_else(functions::confused)?
        };
        if let Some(location) = self.own_aggregate(&expr, from) {
            let message = "aggregate functions are not allowed in GROUP BY";
            return self.refuse(location, SqlState::GROUPING_ERROR, message);
        }
        Ok(expr)
    }

    /// The results by which rows are alike.
    pub fn distinct_keys(
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
            // To be compared, a literal has to be of some type.
            for target in targets.iter_mut().take(visible) {
                target.value = self.settled(target.value.clone())?;
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
}
