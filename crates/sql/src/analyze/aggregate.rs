//! Aggregates, and the query that each belongs to.
//!
//! An aggregate is over the rows of the innermost query whose columns its arguments, `FILTER` and
//! `ORDER BY` name, and over those of the query at hand if they name none: in
//!
//! ```sql
//! select a.x, (select max(a.y) from b) from a group by a.x
//! ```
//!
//! `max` is an aggregate of the outer query, and each group has one value of it. What queries within
//! the arguments name of the queries around counts, and what they name of themselves does not.
//!
//! So analysis notes what is named, with the number of the scope in which it was found
//! ([`Named`]), and the aggregate is put into the scope that it belongs to, as seen from there.

use pg_query::NodeEnum;
use pg_query::protobuf::FuncCall;

use super::Analyzer;
use super::expression::{present, typed};
use super::from::Clause;
use super::plan::{Aggregated, Direction, Expr, Typed};
use super::resolve::Found;
use crate::functions;
use crate::{SqlError, SqlState};

/// The place in the text of a column that need be no key.
const GROUPED: i32 = i32::MIN;

/// What has been named so far, in the order of analysis.
#[derive(Default)]
pub struct Named<'a> {
    columns: Vec<Name>,
    aggregates: Vec<Name>,
    /// Queries of `WITH`: the number of the scope of the query that has them, their names.
    common: Vec<(usize, &'a str)>,
}

/// A column or an aggregate that has been named.
struct Name {
    /// The number of the scope that it was found in, or belongs to.
    scope: usize,
    /// Its place in the scope, if it is a column.
    place: usize,
    /// Its place in the text; [`GROUPED`] if it is a column in an aggregate over rows of its scope.
    location: i32,
    /// If it is in queries of `WITH`, the number of the scope of the outermost query that has one.
    around: usize,
}

/// A point of analysis: how much had been named then.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mark {
    columns: usize,
    aggregates: usize,
    common: usize,
}

impl<'a> Named<'a> {
    /// How much has been named.
    pub fn mark(&self) -> Mark {
        Mark { columns: self.columns.len(), aggregates: self.aggregates.len(), common: self.common.len() }
    }

    /// A column of a scope has been named.
    pub fn column(&mut self, scope: usize, place: usize, location: i32) {
        self.columns.push(Name { scope, place, location, around: usize::MAX });
    }

    /// A query of `WITH` has been named, and what it names since a mark; the scope is that of the
    /// query that has it.
    pub fn common(&mut self, since: Mark, scope: usize, name: &'a str) {
        let columns = self.columns.get_mut(since.columns..).unwrap_or_default().iter_mut();
        let aggregates = self.aggregates.get_mut(since.aggregates..).unwrap_or_default().iter_mut();
        columns.chain(aggregates).for_each(|inside| inside.around = inside.around.min(scope));
        self.common.push((scope, name));
    }

    /// What has been named since a mark is in an aggregate of a scope.
    fn is_aggregate(&mut self, since: Mark, scope: usize, location: i32) {
        self.aggregates.push(Name { scope, place: 0, location, around: usize::MAX });
        let within = self.columns.get_mut(since.columns..).unwrap_or_default();
        within.iter_mut().filter(|name| name.scope >= scope).for_each(|name| name.location = GROUPED);
    }

    /// Where a column of a scope was named since a mark, from some place in the text on.
    pub fn place_of(&self, since: Mark, scope: usize, place: usize, from: i32) -> Option<i32> {
        let named = self.columns.get(since.columns..).unwrap_or_default().iter();
        let its = named.filter(|name| (name.scope, name.place) == (scope, place) && name.location >= from);
        its.map(|name| name.location).min()
    }

    /// Where the first aggregate of a scope was found since a mark, from some place in the text on.
    fn aggregate(&self, since: Mark, scope: usize, from: i32) -> Option<i32> {
        let found = self.aggregates.get(since.aggregates..).unwrap_or_default().iter();
        let its = found.filter(|name| name.scope == scope && name.around > scope && name.location >= from);
        its.map(|name| name.location).min()
    }

    /// The number of the innermost scope up to `here` of which something was named since a mark.
    /// What a query of `WITH` names counts if the query that has it is further in.
    fn innermost(&self, since: Mark, here: usize) -> Option<usize> {
        let columns = self.columns.get(since.columns..).unwrap_or_default();
        let aggregates = self.aggregates.get(since.aggregates..).unwrap_or_default();
        let names = columns.iter().chain(aggregates).filter(|name| name.around > here);
        names.map(|name| name.scope).filter(|scope| *scope <= here).max()
    }
}

impl<'a> Analyzer<'a> {
    /// An aggregate. What its arguments name was named since a mark.
    pub(super) fn aggregate(
        &mut self,
        call: &'a FuncCall,
        found: &Found,
        arguments: Vec<Typed>,
        since: Mark,
    ) -> Result<Typed, SqlError> {
        let location = call.location;
        let filter = match &call.agg_filter {
            Some(filter) => {
                let outside = self.enter(Clause::Filter);
                let filter = self.expression(filter)?;
                self.enter(outside);
                Some(self.boolean(filter, "FILTER")?)
            }
            None => None,
        };
        if arguments.is_empty() && !call.agg_star {
            return self.refuse(
                location,
                SqlState::WRONG_OBJECT_TYPE,
                format!("{}(*) must be used to call a parameterless aggregate function", found.function.name),
            );
        }
        let result = self.called(found, arguments, call.func_variadic, location)?;
        let Expr::Call { function, arguments, types, result: oid, .. } = result.expr else {
            return Err(functions::confused());
        };
        let mut order = Vec::new();
        for node in &call.agg_order {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { return Err(functions::confused()) };
            let key = self.expression(present(&sort.node)?)?;
            let key = self.settled(key)?;
            let direction = self.direction(sort, key.oid)?;
            order.push((key.expr, direction));
        }
        if call.agg_distinct && order.is_empty() {
            // Equal arguments are found by sorting them.
            order = arguments
                .iter()
                .map(|argument| (argument.clone(), Direction { descending: false, nulls_first: false }))
                .collect();
        }
        for expr in arguments.iter().chain(order.iter().map(|(key, _)| key)) {
            self.refuse_within(expr)?;
        }
        let here = self.scopes.len().checked_sub(1).ok_or_else(functions::confused)?;
        let owner = self.owner(since, here, location)?;
        self.named.is_aggregate(since, owner, location);
        let level = here - owner;
        let outwards = |expr: Expr| if level == 0 { Ok(expr) } else { expr.further_out(level) };
        let order = order.into_iter().map(|(key, direction)| Ok((outwards(key)?, direction)));
        let aggregated = Aggregated {
            function,
            arguments: arguments.into_iter().map(outwards).collect::<Result<_, _>>()?,
            types,
            result: oid,
            distinct: call.agg_distinct,
            filter: filter.map(outwards).transpose()?,
            order: order.collect::<Result<_, SqlError>>()?,
        };
        let scope = self.scopes.get_mut(owner).ok_or_else(functions::confused)?;
        let place = scope.aggregates.iter().position(|known| *known == aggregated).unwrap_or_else(|| {
            scope.aggregates.push(aggregated);
            scope.aggregates.len() - 1
        });
        Ok(typed(Expr::Aggregate { level, place }, oid, location))
    }

    /// Refuses what makes several rows, or needs all, in an argument of an aggregate.
    fn refuse_within(&self, argument: &Expr) -> Result<(), SqlError> {
        let Some(scope) = self.scopes.last() else { return Ok(()) };
        let places = |places: &[i32], is_it: &dyn Fn(&Expr, usize) -> bool| {
            let mut places = places.iter().enumerate();
            let found = places.find(|(number, _)| argument.any(&|part| is_it(part, *number)));
            found.map(|(_, location)| *location)
        };
        if let Some(set) = places(&scope.set_places, &|part, number| *part == Expr::Set(number)) {
            let error = "aggregate function calls cannot contain set-returning function calls";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error);
            let hint = "You might be able to move the set-returning function into a LATERAL FROM item.";
            return Err(self.at(set, error.hint(hint)));
        }
        if let Some(window) = places(&scope.window_places, &|part, number| *part == Expr::Window(number)) {
            let error = "aggregate function calls cannot contain window function calls";
            return self.refuse(window, SqlState::GROUPING_ERROR, error);
        }
        Ok(())
    }

    /// Where the first aggregate of the query at hand is in an expression that begins somewhere.
    pub(super) fn own_aggregate(&self, expr: &Expr, from: i32) -> Option<i32> {
        let scope = self.scopes.last()?;
        let place = || self.named.aggregate(scope.since, self.scopes.len() - 1, from);
        expr.has_aggregate().then(|| place().unwrap_or(from))
    }

    /// The number of the scope that an aggregate in the scope `here` belongs to, if it may be there.
    fn owner(&self, since: Mark, here: usize, location: i32) -> Result<usize, SqlError> {
        let owner = self.named.innermost(since, here).unwrap_or(here);
        if let Some(inner) = self.named.aggregate(since, owner, i32::MIN) {
            return self.refuse(inner, SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested");
        }
        // Such a query makes other rows for each of the rows between.
        let common = self.named.common.get(since.common..).unwrap_or_default();
        if let Some((_, name)) = common.iter().filter(|(scope, _)| (owner + 1..=here).contains(scope)).max() {
            let error = "outer-level aggregate cannot use a nested CTE";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error);
            let detail = format!("CTE \"{name}\" is below the aggregate's semantic level.");
            return Err(self.at(location, error.detail(detail)));
        }
        let clause = self.scopes.get(owner).map_or(Clause::Select, |scope| scope.clause);
        match clause.refuses_aggregates() {
            None => Ok(owner),
            Some(where_) => self.refuse(
                location,
                SqlState::GROUPING_ERROR,
                format!("aggregate functions are not allowed in {where_}"),
            ),
        }
    }
}
