//! What `CREATE TABLE` and `ALTER TABLE` say of columns and constraints.

use pg_query::NodeEnum;
use pg_query::protobuf::{ColumnDef, ColumnRef, ConstrType, Constraint, DefElem, Node};

use super::{Key, key_of};
use crate::analyze::names::strings;
use crate::analyze::{self, Catalog, stored};
use crate::catalog::{Check, Column, Identity, Table};
use crate::functions::confused;
use crate::types::Oid;
use crate::{SqlError, SqlState};

/// Bytes of a name at most.
const NAME_BYTES_MAX: usize = 63;

/// What a statement says of a table besides its columns.
#[derive(Default)]
pub(super) struct Elements<'a> {
    /// Primary keys and `UNIQUE`.
    pub keys: Vec<Key>,
    /// Conditions.
    pub checks: Vec<&'a Constraint>,
    /// Foreign keys.
    pub references: Vec<ForeignKey<'a>>,
    /// Columns that get a sequence.
    pub sequences: Vec<Numbered<'a>>,
}

/// A foreign key as a statement has it.
pub(super) struct ForeignKey<'a> {
    /// The constraint.
    pub constraint: &'a Constraint,
    /// The column that it stands at.
    pub column: Option<String>,
    /// Whether it is deferrable, and deferred.
    pub deferral: (bool, bool),
}

/// A column whose default is the next number of a sequence.
pub(super) struct Numbered<'a> {
    /// The name of the column.
    pub column: String,
    /// The type of the numbers.
    pub oid: Oid,
    /// What the statement says of the sequence.
    pub options: &'a [Node],
}

/// What definitions are read with.
pub(super) struct Reader<'t> {
    /// The statement's text, which positions of errors count in.
    pub text: &'t str,
    /// The same for defaults; empty, if their errors have no positions.
    pub default_text: &'t str,
    /// What names stand for.
    pub catalog: &'t dyn Catalog,
}

/// The column of a definition; what else it says of its table is added to the elements.
pub(super) fn column<'a>(
    table: &Table,
    definition: &'a ColumnDef,
    elements: &mut Elements<'a>,
    reader: &Reader<'_>,
) -> Result<Column, SqlError> {
    let Reader { text, catalog, .. } = *reader;
    let name = definition.colname.clone();
    if table.columns.iter().any(|column| column.name == name) {
        let error = format!("column \"{name}\" specified more than once");
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, error));
    }
    let type_name = definition.type_name.as_ref().ok_or_else(confused)?;
    let serial = match strings(&type_name.names).as_slice() {
        ["smallserial" | "serial2"] => Some(Oid::INT2),
        ["serial" | "serial4"] => Some(Oid::INT4),
        ["bigserial" | "serial8"] => Some(Oid::INT8),
        _ => None,
    };
    let (oid, modifier) = match serial {
        Some(_) if !type_name.array_bounds.is_empty() => {
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "array of serial is not implemented");
            return Err(analyze::placed(text, type_name.location, error));
        }
        Some(oid) => (oid, -1),
        None => analyze::type_of(type_name, text, catalog)?,
    };
    if oid == Oid::VOID || oid == Oid::RECORD || oid == Oid::UNKNOWN {
        let error = format!("column \"{name}\" has pseudo-type {}", oid.display());
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, error));
    }
    let mut column = Column::new(name, oid, modifier);
    let mut says = Says { is_numbered: serial.is_some(), ..Says::default() };
    if serial.is_some() {
        column.not_null = true;
        elements.sequences.push(Numbered { column: column.name.clone(), oid, options: &[] });
    }
    for node in &definition.constraints {
        let Some(NodeEnum::Constraint(constraint)) = &node.node else { return Err(confused()) };
        constrained(table, constraint, &mut column, &mut says, elements, reader)?;
    }
    if says.is_null == Some(true) && column.not_null {
        return Err(conflicting(table, &column));
    }
    Ok(column)
}

/// What the constraints of a column have said so far.
#[derive(Default)]
struct Says {
    /// Whether it may be NULL.
    is_null: Option<bool>,
    /// Whether it has a default.
    has_default: bool,
    /// Whether it has a sequence.
    is_numbered: bool,
}

fn conflicting(table: &Table, column: &Column) -> SqlError {
    let error = format!(
        "conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{}\"",
        column.name, table.name
    );
    SqlError::new(SqlState::SYNTAX_ERROR, error)
}

fn constrained<'a>(
    table: &Table,
    constraint: &'a Constraint,
    column: &mut Column,
    says: &mut Says,
    elements: &mut Elements<'a>,
    reader: &Reader<'_>,
) -> Result<(), SqlError> {
    let text = reader.text;
    match constraint.contype() {
        kind @ (ConstrType::ConstrNotnull | ConstrType::ConstrNull) => {
            let is_null = kind == ConstrType::ConstrNull;
            if says.is_null.is_some_and(|before| before != is_null) {
                return Err(analyze::placed(text, constraint.location, conflicting(table, column)));
            }
            says.is_null = Some(is_null);
            column.not_null |= !is_null;
        }
        ConstrType::ConstrDefault => defaulted(table, constraint, column, says, reader)?,
        ConstrType::ConstrIdentity => {
            elements.sequences.push(numbered(table, constraint, column, says, text)?);
        }
        ConstrType::ConstrCheck => elements.checks.push(constraint),
        ConstrType::ConstrForeign => {
            let deferral = (constraint.deferrable, constraint.initdeferred);
            let column = Some(column.name.clone());
            elements.references.push(ForeignKey { constraint, column, deferral });
        }
        kind @ (ConstrType::ConstrAttrDeferrable
        | ConstrType::ConstrAttrNotDeferrable
        | ConstrType::ConstrAttrDeferred
        | ConstrType::ConstrAttrImmediate) => {
            let Some(last) = elements.references.last_mut() else {
                return Err(analyze::unsupported("DEFERRABLE of anything but a foreign key"));
            };
            match kind {
                ConstrType::ConstrAttrDeferrable => last.deferral.0 = true,
                ConstrType::ConstrAttrDeferred => last.deferral = (true, true),
                _ => {}
            }
        }
        _ => key_of(constraint, Some(&column.name), &mut elements.keys)?,
    }
    Ok(())
}

/// A column gets a default.
fn defaulted(
    table: &Table,
    constraint: &Constraint,
    column: &mut Column,
    says: &mut Says,
    reader: &Reader<'_>,
) -> Result<(), SqlError> {
    let Reader { text, catalog, .. } = *reader;
    if says.has_default || says.is_numbered {
        let what =
            if column.identity.is_some() { "both default and identity" } else { "multiple default values" };
        let error = format!("{what} specified for column \"{}\" of table \"{}\"", column.name, table.name);
        let error = SqlError::new(SqlState::SYNTAX_ERROR, error);
        // PostgreSQL meets the default of a serial column last, and that has no place.
        let location = if says.has_default { constraint.location } else { -1 };
        return Err(analyze::placed(text, location, error));
    }
    let expression = constraint.raw_expr.as_ref().ok_or_else(confused)?;
    // Looks whether it can be one.
    stored::default_of(expression, reader.default_text, column.oid, column.modifier, catalog)?;
    column.default = Some(analyze::printed(expression)?);
    says.has_default = true;
    Ok(())
}

/// A column becomes an identity column.
fn numbered<'a>(
    table: &Table,
    constraint: &'a Constraint,
    column: &mut Column,
    says: &mut Says,
    text: &str,
) -> Result<Numbered<'a>, SqlError> {
    if says.is_numbered || says.has_default {
        let what = if column.identity.is_some() {
            "multiple identity specifications"
        } else {
            "both default and identity"
        };
        let error = format!("{what} specified for column \"{}\" of table \"{}\"", column.name, table.name);
        let error = SqlError::new(SqlState::SYNTAX_ERROR, error);
        return Err(analyze::placed(text, constraint.location, error));
    }
    says.is_numbered = true;
    column.identity = Some(identity(constraint));
    column.not_null = true;
    let numbered = Numbered { column: column.name.clone(), oid: column.oid, options: &constraint.options };
    if !matches!(column.oid, Oid::INT2 | Oid::INT4 | Oid::INT8) {
        let error = "identity column type must be smallint, integer, or bigint";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error));
    }
    Ok(numbered)
}

/// Adds the constraint of a table to its elements.
pub(super) fn table_constraint<'a>(
    constraint: &'a Constraint,
    elements: &mut Elements<'a>,
) -> Result<(), SqlError> {
    match constraint.contype() {
        ConstrType::ConstrCheck => elements.checks.push(constraint),
        ConstrType::ConstrForeign => {
            let deferral = (constraint.deferrable, constraint.initdeferred);
            elements.references.push(ForeignKey { constraint, column: None, deferral });
        }
        _ => key_of(constraint, None, &mut elements.keys)?,
    }
    Ok(())
}

/// When an identity column may be given a value.
pub(super) fn identity(constraint: &Constraint) -> Identity {
    if constraint.generated_when == "a" { Identity::Always } else { Identity::ByDefault }
}

/// What `SET GENERATED` says.
pub(super) fn generated(element: &DefElem) -> Identity {
    match element.arg.as_ref().and_then(|argument| argument.node.as_ref()) {
        Some(NodeEnum::Integer(letter)) if letter.ival == i32::from(b'a') => Identity::Always,
        _ => Identity::ByDefault,
    }
}

/// The expression that is a column.
pub(super) fn column_reference(name: &str) -> Node {
    let name = Node { node: Some(NodeEnum::String(pg_query::protobuf::String { sval: name.to_owned() })) };
    let column = ColumnRef { fields: vec![name], location: -1 };
    Node { node: Some(NodeEnum::ColumnRef(column)) }
}

/// The condition of a constraint, whose name is free; without a number.
pub(super) fn check(table: &Table, constraint: &Constraint) -> Result<Check, SqlError> {
    let expression = constraint.raw_expr.as_ref().ok_or_else(confused)?;
    let name = match constraint.conname.as_str() {
        "" => {
            let column = match stored::columns_in(expression, table).as_slice() {
                [only] => table.columns.get(*only).map_or("", |column| column.name.as_str()),
                _ => "",
            };
            free_constraint_name(table, column, "check")
        }
        name => name.to_owned(),
    };
    Ok(Check { id: 0, name, condition: stored::kept(expression)? })
}

/// A name for a constraint of a table that no other has.
pub(super) fn free_constraint_name(table: &Table, columns: &str, label: &str) -> String {
    let names = constraint_names(table);
    let mut number = 0;
    loop {
        let label = if number == 0 { label.to_owned() } else { format!("{label}{number}") };
        let name = object_name(&table.name, columns, &label);
        if !names.contains(&name) {
            return name;
        }
        number += 1;
    }
}

/// The names of a table's constraints.
pub(super) fn constraint_names(table: &Table) -> Vec<String> {
    let primary = (!table.primary.is_empty()).then(|| table.primary_name.clone());
    let checks = table.checks.iter().map(|check| check.name.clone());
    let references = table.references.iter().map(|reference| reference.name.clone());
    let unique = table.indexes.iter().filter(|index| index.is_constraint).map(|index| index.name.clone());
    primary.into_iter().chain(checks).chain(references).chain(unique).collect()
}

/// A name made of two, the second of which may be empty, and a label. The longer of the two is cut
/// if all of it is too long.
pub(super) fn object_name(one: &str, other: &str, label: &str) -> String {
    let fixed = label.len() + 1 + usize::from(!other.is_empty());
    let (mut first, mut second) = (one.len(), other.len());
    while fixed + first + second > NAME_BYTES_MAX {
        if first > second { first -= 1 } else { second -= 1 }
    }
    let cut = |text: &str, length: usize| {
        let end = text.floor_char_boundary(length);
        text.get(..end).unwrap_or_default().to_owned()
    };
    let mut name = cut(one, first);
    if !other.is_empty() {
        name.push('_');
        name.push_str(&cut(other, second));
    }
    format!("{name}_{label}")
}

/// What has to be true of rows of a table that is made or changed, analyzed.
pub(super) fn look_at_checks(
    table: &Table,
    constraints: &[&Constraint],
    text: &str,
    catalog: &dyn Catalog,
) -> Result<(), SqlError> {
    for constraint in constraints {
        let expression = constraint.raw_expr.as_ref().ok_or_else(confused)?;
        stored::condition_of(expression, text, table, catalog)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_is_cut_where_it_is_longest() {
        assert_eq!(object_name("t", "a", "check"), "t_a_check");
        assert_eq!(object_name("t", "", "check"), "t_check");
        let long = "x".repeat(63);
        assert_eq!(object_name(&long, "", "pkey"), format!("{}_pkey", "x".repeat(58)));
        let name = object_name(&long, &"y".repeat(40), "seq");
        assert_eq!(name.len(), 63);
        assert_eq!(name, format!("{}_{}_seq", "x".repeat(29), "y".repeat(29)));
        assert_eq!(object_name(&"é".repeat(31), "ab", "seq"), format!("{}_ab_seq", "é".repeat(28)));
    }
}
