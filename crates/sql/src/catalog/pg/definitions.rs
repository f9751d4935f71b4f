//! Text forms of what belongs to a table, as statements would make it.

use std::borrow::Cow;

use pg_query::NodeEnum;
use pg_query::protobuf::{AExprKind, a_const};

use super::{Class, Objects, Sight, builtin, numbers};
use crate::catalog::{Action, Column, Index, IndexPart, Reference, Table};
use crate::functions::composing::quoted_identifier;
use crate::functions::system::with_modifier;
use crate::parse;
use crate::types::Oid;

/// How values of a type are ordered in an index: identifier, name, identifier and name of its
/// family, the type. The rows of `pg_opclass` and `pg_opfamily`.
#[rustfmt::skip]
pub const OPERATOR_CLASSES: &[(u32, &str, u32, &str, u32)] = &[
    (1978, "int4_ops", 1976, "integer_ops", 23),
    (1979, "int2_ops", 1976, "integer_ops", 21),
    (1981, "oid_ops", 1989, "oid_ops", 26),
    (3122, "date_ops", 434, "datetime_ops", 1082),
    (3123, "float8_ops", 1970, "float_ops", 701),
    (3124, "int8_ops", 1976, "integer_ops", 20),
    (3125, "numeric_ops", 1988, "numeric_ops", 1700),
    (3126, "text_ops", 1994, "text_ops", 25),
    (3127, "timestamptz_ops", 434, "datetime_ops", 1184),
    (3128, "timestamp_ops", 434, "datetime_ops", 1114),
    (10000, "array_ops", 397, "array_ops", 2277),
    (10003, "bool_ops", 424, "bool_ops", 16),
    (10004, "bpchar_ops", 426, "bpchar_ops", 1042),
    (10006, "bytea_ops", 428, "bytea_ops", 17),
    (10007, "char_ops", 429, "char_ops", 18),
    (10012, "float4_ops", 1970, "float_ops", 700),
    (10015, "inet_ops", 1974, "network_ops", 869),
    (10022, "interval_ops", 1982, "interval_ops", 1186),
    (10028, "name_ops", 1994, "text_ops", 19),
    (10032, "oidvector_ops", 1991, "oidvector_ops", 30),
    (10034, "record_ops", 2994, "record_ops", 2249),
    (10038, "time_ops", 1996, "time_ops", 1083),
    (10041, "timetz_ops", 2000, "timetz_ops", 1266),
    (10065, "uuid_ops", 2968, "uuid_ops", 2950),
    (10088, "jsonb_ops", 4033, "jsonb_ops", 3802),
];

/// The operator class of a type, 0 if it has none.
pub fn operator_class(oid: Oid) -> u32 {
    let oid = match oid {
        Oid::VARCHAR => Oid::TEXT,
        _ if oid.is_array() && !oid.is_vector() => Oid::ANY_ARRAY,
        other => other,
    };
    OPERATOR_CLASSES.iter().find(|(.., of)| *of == oid.0).map_or(0, |(number, ..)| *number)
}

/// An index, that of the primary key among them.
pub struct Key<'a> {
    /// Its table.
    pub table: &'a Table,
    /// Its identifier.
    pub id: u32,
    /// Its name.
    pub name: &'a str,
    /// What its entries are in the order of.
    pub parts: Vec<IndexPart>,
    /// Whether no two rows may have equal entries.
    pub unique: bool,
    /// Whether it is the primary key's.
    pub primary: bool,
    /// Whether it is one of a constraint.
    pub is_constraint: bool,
    /// Whether it has all rows.
    pub is_ready: bool,
}

impl<'a> Key<'a> {
    /// The primary key's.
    pub fn primary(table: &'a Table) -> Key<'a> {
        let part = |column: &u16| IndexPart { column: *column, descending: false, nulls_first: false };
        Key {
            table,
            id: table.primary_id,
            name: &table.primary_name,
            parts: table.primary.iter().map(part).collect(),
            unique: true,
            primary: true,
            is_constraint: true,
            is_ready: true,
        }
    }

    /// Another one.
    pub fn other(table: &'a Table, index: &'a Index) -> Key<'a> {
        Key {
            table,
            id: index.id,
            name: &index.name,
            parts: index.parts.clone(),
            unique: index.unique,
            primary: false,
            is_constraint: index.is_constraint,
            is_ready: index.is_ready,
        }
    }

    /// All of a table.
    pub fn all(table: &'a Table) -> Vec<Key<'a>> {
        let primary = (!table.primary.is_empty()).then(|| Key::primary(table));
        primary.into_iter().chain(table.indexes.iter().map(|index| Key::other(table, index))).collect()
    }

    /// The one that a row of `pg_class` is.
    pub fn of(class: &Class<'a>) -> Option<Key<'a>> {
        match class {
            Class::PrimaryIndex(table) => Some(Key::primary(table)),
            Class::Index(table, index) => Some(Key::other(table, index)),
            _ => None,
        }
    }

    /// Its columns.
    pub fn columns(&self) -> impl Iterator<Item = &'a Column> {
        let table = self.table;
        self.parts.iter().filter_map(|part| table.columns.get(usize::from(part.column)))
    }

    fn names(&self) -> Vec<String> {
        self.columns().map(|column| quoted_identifier(&column.name)).collect()
    }

    /// The statement that would make it, for a table that is called so.
    pub fn definition(&self, table: &str) -> String {
        let parts = self.names().into_iter().zip(&self.parts).map(|(name, part)| {
            let order = match (part.descending, part.nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            };
            format!("{name}{order}")
        });
        format!(
            "CREATE {}INDEX {} ON {table} USING btree ({})",
            if self.unique { "UNIQUE " } else { "" },
            quoted_identifier(self.name),
            parts.collect::<Vec<String>>().join(", ")
        )
    }

    /// One of its columns, from 1 on.
    pub fn column(&self, number: usize) -> Option<String> {
        self.names().into_iter().nth(number.checked_sub(1)?)
    }

    /// The constraint, as it would be written in a table's definition.
    pub fn constraint(&self) -> String {
        let word = if self.primary { "PRIMARY KEY" } else { "UNIQUE" };
        format!("{word} ({})", self.names().join(", "))
    }
}

/// A table's name with its schema.
pub fn qualified(table: &Table) -> String {
    format!("{}.{}", quoted_identifier(&table.schema), quoted_identifier(&table.name))
}

/// A `CHECK` constraint as it would be written; `pretty` without parentheses that are not needed.
pub fn check(condition: &str, pretty: bool) -> String {
    if pretty { format!("CHECK ({condition})") } else { format!("CHECK (({condition}))") }
}

fn names_of(table: &Table, columns: &[u16]) -> String {
    let columns = columns.iter().filter_map(|place| table.columns.get(usize::from(*place)));
    columns.map(|column| quoted_identifier(&column.name)).collect::<Vec<String>>().join(", ")
}

/// A foreign key as it would be written; `to` is what the other table is called.
pub fn reference(table: &Table, reference: &Reference, objects: &Objects, to: &str) -> String {
    let target = objects.table_named(&reference.to_schema, &reference.to_table);
    let to_columns = target.map_or_else(String::new, |target| names_of(target, &reference.to_columns));
    let mut text =
        format!("FOREIGN KEY ({}) REFERENCES {to}({to_columns})", names_of(table, &reference.columns));
    if reference.is_full {
        text.push_str(" MATCH FULL");
    }
    for (event, action) in [("UPDATE", reference.on_update), ("DELETE", reference.on_delete)] {
        let action = match action {
            Action::NoAction => continue,
            Action::Restrict => "RESTRICT",
            Action::Cascade => "CASCADE",
            Action::SetNull => "SET NULL",
            Action::SetDefault => "SET DEFAULT",
        };
        text.push_str(&format!(" ON {event} {action}"));
    }
    if reference.is_deferrable {
        text.push_str(" DEFERRABLE");
    }
    if reference.is_deferred {
        text.push_str(" INITIALLY DEFERRED");
    }
    text
}

/// The positions of the columns that an expression names, in their order.
pub fn columns_in(table: &Table, expression: &str) -> Vec<u16> {
    let Ok(tokens) = pg_query::scan(expression) else { return Vec::new() };
    let words = tokens.tokens.iter().filter_map(|token| {
        let (start, end) = (usize::try_from(token.start).ok()?, usize::try_from(token.end).ok()?);
        Some(expression.get(start..end)?.trim_matches('"'))
    });
    let words: Vec<&str> = words.collect();
    let named = table.live().filter(|(_, column)| words.iter().any(|word| *word == column.name));
    named.filter_map(|(place, _)| u16::try_from(place).ok()).collect()
}

/// The default of a column as PostgreSQL shows it: a string has its type behind it.
pub fn default_text(column: &Column) -> Option<String> {
    let text = column.default.as_ref()?;
    let Ok(mut statements) = parse::parse(&format!("SELECT {text}")) else { return Some(text.clone()) };
    let node = statements.pop().and_then(|statement| match &statement.node.node {
        Some(NodeEnum::SelectStmt(select)) => select.target_list.first().cloned(),
        _ => None,
    });
    let value = match node.and_then(|node| node.node) {
        Some(NodeEnum::ResTarget(target)) => target.val.and_then(|value| value.node),
        _ => None,
    };
    Some(match value {
        Some(NodeEnum::AConst(constant)) => match constant.val {
            Some(a_const::Val::Sval(string)) => constant_of(&string.sval, text, column.oid),
            Some(a_const::Val::Ival(number)) if number.ival < 0 => format!("'{text}'::integer"),
            _ if constant.isnull => format!("NULL::{}", with_modifier(column.oid, column.modifier)),
            _ => text.clone(),
        },
        Some(NodeEnum::AExpr(operation)) if operation.kind() == AExprKind::AexprOp => format!("({text})"),
        _ => text.clone(),
    })
}

/// A string that a column of a type has for a default.
fn constant_of(value: &str, text: &str, oid: Oid) -> String {
    match oid {
        Oid::INT4 | Oid::NUMERIC if !value.starts_with('-') => value.to_owned(),
        Oid::BOOL => if value.starts_with(['t', 'T', 'y', 'Y', '1']) { "true" } else { "false" }.to_owned(),
        _ => format!("{text}::{}", with_modifier(oid, -1)),
    }
}

/// The name of a type in the catalog with the identifier of its schema.
pub fn type_name(oid: Oid, sight: &Sight<'_>) -> (u32, Cow<'static, str>) {
    if let Some(known) = builtin::builtin_type(oid.0) {
        return (numbers::PG_CATALOG, Cow::Borrowed(known.name));
    }
    let table = numbers::table_of_type(oid.0).and_then(|(table, is_array)| {
        let table = sight.objects.table(table)?;
        let mark = if is_array { "_" } else { "" };
        Some((numbers::schema_of(&table.schema)?, Cow::Owned(format!("{mark}{}", table.name))))
    });
    table.unwrap_or((numbers::PG_CATALOG, Cow::Borrowed("???")))
}
