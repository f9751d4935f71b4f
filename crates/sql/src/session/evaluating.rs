//! Expressions that are evaluated by themselves, over a row: `RETURNING`, defaults of lines of
//! `COPY`, conditions of a table.
//!
//! There are no queries in them, so they do not pause but for what the session has to answer
//! itself, such as the next number of a sequence.

use super::conversation::Session;
use super::{Stop, World};
use crate::analyze::plan::Expr;
use crate::execute::rows::Row;
use crate::execute::trail::Trail;
use crate::execute::{Evaluated, Run};
use crate::types::Datum;

impl<W: World> Session<'_, W> {
    /// What expressions without parameters come to over a row.
    pub(super) async fn evaluate(&mut self, exprs: &[Expr], row: &[Datum]) -> Result<Row, Stop> {
        self.evaluate_in(&Run::idle(), exprs, row).await
    }

    /// What expressions come to over a row, with the parameters of a run.
    pub(super) async fn evaluate_in(
        &mut self,
        run: &Run,
        exprs: &[Expr],
        row: &[Datum],
    ) -> Result<Row, Stop> {
        let trail = Trail::default();
        loop {
            match self.with_context(|context| run.values(&trail, exprs, row, context))? {
                Evaluated::Values(values) => return Ok(values),
                Evaluated::Asked(question) => run.answered(self.answer_to(question).await?),
            }
        }
    }
}
