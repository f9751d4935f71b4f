//! `CREATE SEQUENCE`, `ALTER SEQUENCE`, and the sequences of columns.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{AlterSeqStmt, CreateSeqStmt, DefElem, Node};

use super::done;
use super::elements::{Numbered, object_name};
use crate::analyze::names::strings;
use crate::analyze::{self, type_of};
use crate::catalog::{PUBLIC, Relation, Sequence, Table};
use crate::encoding::sequence::State;
use crate::functions::confused;
use crate::session::conversation::Session;
use crate::session::names::schema_of;
use crate::session::portal::Work;
use crate::session::sequences::next_of;
use crate::session::{Stop, World};
use crate::types::Oid;
use crate::{Severity, SqlError, SqlState};

/// What a statement says of a sequence.
#[derive(Default)]
struct Options {
    oid: Option<Oid>,
    increment: Option<i64>,
    least: Option<Option<i64>>,
    largest: Option<Option<i64>>,
    start: Option<i64>,
    restart: Option<Option<i64>>,
    cache: Option<i64>,
    cycles: Option<bool>,
    /// The names of a table and a column; none for `NONE`.
    owner: Option<Vec<String>>,
    /// The name that an identity column gives it.
    name: Option<String>,
}

impl<W: World> Session<'_, W> {
    pub(super) async fn create_sequence(
        &mut self,
        create: &CreateSeqStmt,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<Work, Stop> {
        let range = create.sequence.as_ref().ok_or_else(confused)?;
        if range.relpersistence == "t" {
            return Err(analyze::unsupported("a temporary sequence").into());
        }
        let schema = schema_of(&range.schemaname).to_owned();
        if schema != PUBLIC {
            let error = format!("schema \"{schema}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_SCHEMA, error).into());
        }
        self.open_to_write("CREATE SEQUENCE").await?;
        if create.if_not_exists && self.look_up(schema.clone(), range.relname.clone()).await?.is_some() {
            let notice = format!("relation \"{}\" already exists, skipping", range.relname);
            let notice = SqlError::new(SqlState::DUPLICATE_TABLE, notice);
            self.notice(&SqlError { severity: Severity::Notice, ..notice }, out);
            return done("CREATE SEQUENCE");
        }
        let options = self.sequence_options(&create.options, text)?;
        let mut sequence = new(schema, range.relname.clone(), &options, Oid::INT8)?;
        self.check_free(&sequence.schema, &sequence.name).await?;
        sequence.owner = self.owner_of(&sequence, &options).await?.flatten();
        self.keep_new(sequence).await?;
        done("CREATE SEQUENCE")
    }

    /// Gives a sequence its numbers, and writes it down.
    async fn keep_new(&mut self, sequence: Sequence) -> Result<(), Stop> {
        let id = self.new_id().await?;
        let rows = self.new_state(State::before(sequence.start)).await?;
        self.keep_sequence(Sequence { id, rows, ..sequence }).await
    }

    pub(super) async fn keep_sequence(&mut self, sequence: Sequence) -> Result<(), Stop> {
        let (schema, name) = (sequence.schema.clone(), sequence.name.clone());
        self.write_down(&schema, &name, Some(Relation::Sequence(Arc::new(sequence)))).await
    }

    /// Makes the sequence of a column, and its default.
    pub(super) async fn number_column(
        &mut self,
        table: &mut Table,
        numbered: &Numbered<'_>,
    ) -> Result<(), Stop> {
        let options = self.sequence_options(numbered.options, "")?;
        let name = match &options.name {
            Some(name) => name.clone(),
            None => self.free_relation_name(&table.schema, &table.name, &numbered.column, "seq").await?,
        };
        let mut sequence = new(table.schema.clone(), name, &options, numbered.oid)?;
        self.check_free(&sequence.schema, &sequence.name).await?;
        let Some(position) = table.live().find(|(_, it)| it.name == numbered.column).map(|(at, _)| at) else {
            return Err(confused().into());
        };
        sequence.owner = Some((table.name.clone(), u16::try_from(position).map_err(|_| confused())?));
        if let Some(column) = table.columns.get_mut(position) {
            column.default = Some(next_of(&sequence.schema, &sequence.name));
        }
        self.keep_new(sequence).await
    }

    /// A name for a relation that nothing has, made of two.
    pub(super) async fn free_relation_name(
        &mut self,
        schema: &str,
        one: &str,
        other: &str,
        label: &str,
    ) -> Result<String, Stop> {
        let mut number = 0;
        loop {
            let label = if number == 0 { label.to_owned() } else { format!("{label}{number}") };
            let name = object_name(one, other, &label);
            if self.look_up(schema.to_owned(), name.clone()).await?.is_none() {
                return Ok(name);
            }
            number += 1;
        }
    }

    pub(super) async fn alter_sequence(
        &mut self,
        alter: &AlterSeqStmt,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<Work, Stop> {
        let range = alter.sequence.as_ref().ok_or_else(confused)?;
        let schema = schema_of(&range.schemaname).to_owned();
        self.open_to_write("ALTER SEQUENCE").await?;
        if alter.missing_ok && self.look_up(schema.clone(), range.relname.clone()).await?.is_none() {
            let notice = format!("relation \"{}\" does not exist, skipping", range.relname);
            let notice = SqlError::new(SqlState::UNDEFINED_TABLE, notice);
            self.notice(&SqlError { severity: Severity::Notice, ..notice }, out);
            return done("ALTER SEQUENCE");
        }
        let old = self.look_up_sequence(schema, range.relname.clone()).await?;
        self.change_sequence(&old, &alter.options, text).await?;
        done("ALTER SEQUENCE")
    }

    /// Changes a sequence as options say.
    pub(super) async fn change_sequence(
        &mut self,
        old: &Sequence,
        nodes: &[Node],
        text: &str,
    ) -> Result<(), Stop> {
        let options = self.sequence_options(nodes, text)?;
        let mut sequence = old.clone();
        let state = self.state_of(old).await?;
        options.change(&mut sequence)?;
        if let Some(owner) = self.owner_of(&sequence, &options).await? {
            sequence.owner = owner;
        }
        let mut next = state;
        if let Some(restart) = options.restart {
            next = State::before(restart.unwrap_or(sequence.start));
        }
        crate::session::sequences::check_bounds("RESTART", next.last, &sequence)?;
        // A block that this or another session holds was made by the old rules.
        let is_same = (old.increment, old.least, old.largest, old.cycles)
            == (sequence.increment, sequence.least, sequence.largest, sequence.cycles);
        if options.restart.is_some() || !is_same {
            self.leave_state(old).await?;
            sequence.rows = self.new_state(State { logged: 0, ..next }).await?;
        }
        self.keep_sequence(sequence).await
    }

    /// Lets a sequence begin again.
    pub(super) async fn restart(&mut self, sequence: &Sequence, first: i64) -> Result<(), Stop> {
        self.leave_state(sequence).await?;
        let rows = self.new_state(State::before(first)).await?;
        self.keep_sequence(Sequence { rows, ..sequence.clone() }).await
    }

    /// Whose a sequence is to be: nothing if the statement does not say it.
    async fn owner_of(
        &mut self,
        sequence: &Sequence,
        options: &Options,
    ) -> Result<Option<Option<(String, u16)>>, Stop> {
        let Some(names) = &options.owner else { return Ok(None) };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (schema, table, column) = match names.as_slice() {
            ["none"] => return Ok(Some(None)),
            [table, column] => (PUBLIC, *table, *column),
            [.., schema, table, column] => (*schema, *table, *column),
            _ => {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option");
                return Err(error.hint("Specify OWNED BY table.column or OWNED BY NONE.").into());
            }
        };
        let Some(found) = self.look_up_table(schema.to_owned(), table.to_owned()).await? else {
            let error = format!("relation \"{table}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, error).into());
        };
        if found.schema != sequence.schema {
            let error = "sequence must be in same schema as table it is linked to";
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error).into());
        }
        let Some((position, _)) = found.live().find(|(_, it)| it.name == column) else {
            let error = format!("column \"{column}\" of relation \"{table}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, error).into());
        };
        Ok(Some(Some((found.name.clone(), u16::try_from(position).map_err(|_| confused())?))))
    }

    fn sequence_options(&self, nodes: &[Node], text: &str) -> Result<Options, SqlError> {
        let mut options = Options::default();
        for node in nodes {
            let Some(NodeEnum::DefElem(element)) = &node.node else { return Err(confused()) };
            let is_new = match element.defname.as_str() {
                "as" => {
                    let name = match argument(element) {
                        Some(NodeEnum::TypeName(name)) => name,
                        _ => return Err(confused()),
                    };
                    let (oid, _) = type_of(name, "", &self.settings)?;
                    if !matches!(oid, Oid::INT2 | Oid::INT4 | Oid::INT8) {
                        let error = "sequence type must be smallint, integer, or bigint";
                        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error));
                    }
                    options.oid.replace(oid).is_none()
                }
                "increment" => options.increment.replace(number(element)?).is_none(),
                "minvalue" => options.least.replace(optional(element)?).is_none(),
                "maxvalue" => options.largest.replace(optional(element)?).is_none(),
                "start" => options.start.replace(number(element)?).is_none(),
                "restart" => options.restart.replace(optional(element)?).is_none(),
                "cache" => options.cache.replace(number(element)?).is_none(),
                "cycle" => {
                    let is_on = matches!(argument(element), Some(NodeEnum::Boolean(value)) if value.boolval);
                    options.cycles.replace(is_on).is_none()
                }
                "owned_by" | "sequence_name" => {
                    let Some(NodeEnum::List(list)) = argument(element) else { return Err(confused()) };
                    let names: Vec<String> = strings(&list.items).into_iter().map(str::to_owned).collect();
                    match element.defname.as_str() {
                        "owned_by" => options.owner.replace(names).is_none(),
                        _ => options.name.replace(names.last().cloned().unwrap_or_default()).is_none(),
                    }
                }
                other => return Err(analyze::unsupported(&format!("the option {other} of a sequence"))),
            };
            if !is_new {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
                return Err(analyze::placed(text, element.location, error));
            }
        }
        Ok(options)
    }
}

fn argument(element: &DefElem) -> Option<&NodeEnum> {
    element.arg.as_deref().and_then(|node| node.node.as_ref())
}

fn optional(element: &DefElem) -> Result<Option<i64>, SqlError> {
    if element.arg.is_none() { Ok(None) } else { number(element).map(Some) }
}

fn number(element: &DefElem) -> Result<i64, SqlError> {
    match argument(element) {
        Some(NodeEnum::Integer(value)) => Ok(i64::from(value.ival)),
        Some(NodeEnum::Float(value)) => value.fval.parse().map_err(|_| {
            let error = format!("value \"{}\" is out of range for type bigint", value.fval);
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, error)
        }),
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("{} requires a numeric value", element.defname),
        )),
    }
}

/// The least and the largest number of a type.
fn bounds(oid: Oid) -> (i64, i64) {
    match oid {
        Oid::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Oid::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

/// A sequence as a statement has it, without numbers of its own.
fn new(schema: String, name: String, options: &Options, oid: Oid) -> Result<Sequence, SqlError> {
    let oid = options.oid.unwrap_or(oid);
    let increment = options.increment.unwrap_or(1);
    let ascends = increment > 0;
    let (low, high) = bounds(oid);
    let (least, largest) = if ascends { (1, high) } else { (low, -1) };
    let mut sequence = Sequence {
        id: 0,
        rows: 0,
        schema,
        name,
        oid,
        start: 0,
        increment,
        least,
        largest,
        cache: 1,
        cycles: false,
        owner: None,
    };
    let given = |bound: Option<Option<i64>>, otherwise: i64| bound.flatten().unwrap_or(otherwise);
    let first = if ascends { given(options.least, least) } else { given(options.largest, largest) };
    sequence.start = options.start.unwrap_or(first);
    options.change(&mut sequence)?;
    Ok(sequence)
}

impl Options {
    /// Changes a sequence, or says why that makes no sense.
    fn change(&self, sequence: &mut Sequence) -> Result<(), SqlError> {
        let invalid = |error: String| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error));
        let before = bounds(sequence.oid);
        if let Some(increment) = self.increment {
            if increment == 0 {
                return invalid("INCREMENT must not be zero".to_owned());
            }
            sequence.increment = increment;
        }
        let ascends = sequence.increment > 0;
        if let Some(oid) = self.oid {
            // Bounds that were those of the old type become those of the new one.
            let (low, high) = bounds(oid);
            if sequence.largest == before.1 {
                sequence.largest = high;
            }
            if sequence.least == before.0 {
                sequence.least = low;
            }
            sequence.oid = oid;
        }
        let (low, high) = bounds(sequence.oid);
        if let Some(largest) = self.largest {
            sequence.largest = largest.unwrap_or(if ascends { high } else { -1 });
        }
        if let Some(least) = self.least {
            sequence.least = least.unwrap_or(if ascends { 1 } else { low });
        }
        let Sequence { least, largest, .. } = *sequence;
        for (what, bound) in [("MAXVALUE", largest), ("MINVALUE", least)] {
            if !(low..=high).contains(&bound) {
                let name = sequence.oid.display();
                return invalid(format!("{what} ({bound}) is out of range for sequence data type {name}"));
            }
        }
        if least >= largest {
            return invalid(format!("MINVALUE ({least}) must be less than MAXVALUE ({largest})"));
        }
        if let Some(start) = self.start {
            sequence.start = start;
        }
        crate::session::sequences::check_bounds("START", sequence.start, sequence)?;
        if let Some(cache) = self.cache {
            if cache <= 0 {
                return invalid(format!("CACHE ({cache}) must be greater than zero"));
            }
            sequence.cache = cache;
        }
        sequence.cycles = self.cycles.unwrap_or(sequence.cycles);
        Ok(())
    }
}
