//! `TRUNCATE`: rows are left behind under their old number, and removed later.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{DropBehavior, TruncateStmt};

use super::done;
use crate::catalog::Table;
use crate::functions::confused;
use crate::session::conversation::Session;
use crate::session::names::schema_of;
use crate::session::portal::Work;
use crate::session::{Stop, World};
use crate::{Severity, SqlError, SqlState};

impl<W: World> Session<'_, W> {
    pub(super) async fn truncate(
        &mut self,
        truncate: &TruncateStmt,
        out: &mut Vec<u8>,
    ) -> Result<Work, Stop> {
        self.open_to_write("TRUNCATE TABLE").await?;
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for relation in &truncate.relations {
            let Some(NodeEnum::RangeVar(range)) = &relation.node else { return Err(confused().into()) };
            let schema = schema_of(&range.schemaname).to_owned();
            let Some(table) = self.look_up_table(schema, range.relname.clone()).await? else {
                let error = format!("relation \"{}\" does not exist", range.relname);
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, error).into());
            };
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        let cascades = truncate.behavior() == DropBehavior::DropCascade;
        let mut at = 0;
        while let Some(table) = tables.get(at).cloned() {
            self.refuse_pending("TRUNCATE", &table)?;
            for referrer in self.referrers_of(&table).await? {
                if tables.contains(&referrer) {
                    continue;
                }
                if !cascades {
                    return Err(referenced(&table, &referrer).into());
                }
                let notice = format!("truncate cascades to table \"{}\"", referrer.name);
                let notice = SqlError::new(SqlState::SUCCESSFUL_COMPLETION, notice);
                self.notice(&SqlError { severity: Severity::Notice, ..notice }, out);
                tables.push(referrer);
            }
            at += 1;
        }
        for table in tables {
            self.leave_rows(&table).await?;
            let mut renumbered = Table::clone(&table);
            self.renumber(&mut renumbered).await?;
            self.keep_table(renumbered).await?;
            if truncate.restart_seqs {
                for sequence in self.sequences_of(&table).await? {
                    self.restart(&sequence, sequence.start).await?;
                }
            }
        }
        done("TRUNCATE TABLE")
    }
}

/// The error of a table that is to be emptied and whose keys another one names.
fn referenced(table: &Table, referrer: &Table) -> SqlError {
    let error = "cannot truncate a table referenced in a foreign key constraint";
    let name = &referrer.name;
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error)
        .detail(format!("Table \"{name}\" references \"{}\".", table.name))
        .hint(format!("Truncate table \"{name}\" at the same time, or use TRUNCATE ... CASCADE."))
}
