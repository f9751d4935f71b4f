//! Queries in expressions.

use std::cmp::Ordering;
use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{SubLink, SubLinkType};

use super::expression::{inner, typed};
use super::names::strings;
use super::plan::{Expr, Plan, Question, Subquery, Typed};
use super::select::Output;
use super::{Analyzer, unsupported};
use crate::functions;
use crate::types::Oid;
use crate::{SqlError, SqlState};

type Outcome = Result<Typed, SqlError>;

/// A query in an expression, before it is known what it is asked.
struct Within {
    id: usize,
    plan: Plan,
    outputs: Vec<Output>,
    correlated: bool,
}

impl<'a> Analyzer<'a> {
    /// A query in an expression.
    pub fn sublink(&mut self, link: &'a SubLink) -> Outcome {
        let location = link.location;
        let Within { id, plan, outputs, correlated } = self.within(link)?;
        let left = match &link.testexpr {
            Some(test) => Some(match &test.node {
                Some(NodeEnum::RowExpr(row)) => self.expressions(&row.args)?,
                _ => vec![self.expression(test)?],
            }),
            None => None,
        };
        let only = || match outputs.as_slice() {
            [only] => Ok(&only.column),
            _ => Err(self
                .at(location, SqlError::new(SqlState::SYNTAX_ERROR, "subquery must return only one column"))),
        };
        let (question, oid, modifier) = match link.sub_link_type() {
            SubLinkType::ExistsSublink => (Question::Exists, Oid::BOOL, -1),
            SubLinkType::ExprSublink => {
                let column = only()?;
                (Question::Value, column.oid, column.modifier)
            }
            SubLinkType::ArraySublink => {
                let column = only()?;
                let array = column.oid.array().ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!("could not find array type for data type {}", column.oid.display()),
                    )
                })?;
                (Question::Array(array), array, -1)
            }
            SubLinkType::AnySublink | SubLinkType::AllSublink => {
                let left = left.unwrap_or_default();
                self.check_columns(left.len(), &outputs, location)?;
                let name = strings(&link.oper_name).last().copied().unwrap_or("=");
                let left = left.into_iter().map(|left| Ok(Typed { expr: left.expr.deeper()?, ..left }));
                let right = outputs.iter().enumerate().map(|(place, output)| {
                    typed(Expr::Column { level: 0, place }, output.column.oid, location)
                });
                let (left, right) = (left.collect::<Result<_, SqlError>>()?, right.collect());
                let test = self.rows(name, left, right, location)?.expr;
                let all = link.sub_link_type() == SubLinkType::AllSublink;
                (Question::Test { test, all }, Oid::BOOL, -1)
            }
            _ => return Err(self.at(location, unsupported("this kind of query in an expression"))),
        };
        let expr = Expr::Subquery(Arc::new(Subquery { id, plan, question, correlated }));
        Ok(Typed { expr, oid, modifier, location })
    }

    /// Analyzes a query whose only row is compared with a row of `width` fields. Returns what makes
    /// its row, and the fields of that where it is [`Expr::CaseValue`].
    pub fn row_of(
        &mut self,
        link: &'a SubLink,
        width: usize,
        location: i32,
    ) -> Result<(Expr, Vec<Typed>), SqlError> {
        let Within { id, plan, outputs, correlated } = self.within(link)?;
        self.check_columns(width, &outputs, location)?;
        let column = |place| Expr::Column { level: 0, place };
        let row = outputs.iter().enumerate().map(|(place, output)| (output.column.oid, column(place)));
        let columns = vec![Expr::Row(row.collect())];
        let plan = Plan::Project { input: Box::new(plan), columns };
        let query = Subquery { id, plan, question: Question::Value, correlated };
        let fields = outputs.iter().enumerate().map(|(place, Output { column, .. })| {
            let expr = Expr::Field { record: Box::new(Expr::CaseValue), place };
            Typed { expr, oid: column.oid, modifier: column.modifier, location }
        });
        Ok((Expr::Subquery(Arc::new(query)), fields.collect()))
    }

    fn check_columns(&self, wanted: usize, outputs: &[Output], location: i32) -> Result<(), SqlError> {
        let error = match wanted.cmp(&outputs.len()) {
            Ordering::Less => "subquery has too many columns",
            Ordering::Greater => "subquery has too few columns",
            Ordering::Equal => return Ok(()),
        };
        self.refuse(location, SqlState::SYNTAX_ERROR, error)
    }

    fn within(&mut self, link: &'a SubLink) -> Result<Within, SqlError> {
        if let Some(where_) = self.scopes.last().and_then(|scope| scope.clause.refuses_queries()) {
            let error = format!("cannot use subquery in {where_}");
            return self.refuse(link.location, SqlState::FEATURE_NOT_SUPPORTED, error);
        }
        let Some(NodeEnum::SelectStmt(select)) = inner(&link.subselect) else {
            return Err(functions::confused());
        };
        let outside = std::mem::replace(&mut self.crossed, usize::MAX);
        self.sublinks += 1;
        let planned = self.query(select);
        self.sublinks -= 1;
        let (plan, outputs) = planned?;
        let correlated = self.crossed < self.scopes.len();
        self.crossed = self.crossed.min(outside);
        self.subqueries += 1;
        Ok(Within { id: self.subqueries - 1, plan, outputs, correlated })
    }
}
