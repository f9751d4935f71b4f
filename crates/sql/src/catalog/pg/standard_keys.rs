//! Keys and other constraints in `information_schema`.

use super::definitions::{self, Key};
use super::information::yes_or_no;
use super::keys::referenced_key;
use super::{NULL, Row, Sight, int4, none, numbers, relations, text};
use crate::catalog::{Action, Column, Reference, Table};
use crate::types::Datum;

#[rustfmt::skip]
relations! { INFORMATION_SCHEMA:
    13260 13262 b'v' "check_constraints" checks:
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME,
        check_clause VARCHAR;
    13300 13302 b'v' "constraint_column_usage" constraint_columns:
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME;
    13305 13307 b'v' "constraint_table_usage" none:
        table_catalog NAME, table_schema NAME, table_name NAME, constraint_catalog NAME,
        constraint_schema NAME, constraint_name NAME;
    13329 13331 b'v' "key_column_usage" key_columns:
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME, table_catalog NAME,
        table_schema NAME, table_name NAME, column_name NAME, ordinal_position INT4,
        position_in_unique_constraint INT4;
    13339 13341 b'v' "referential_constraints" references:
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME,
        unique_constraint_catalog NAME, unique_constraint_schema NAME,
        unique_constraint_name NAME, match_option VARCHAR, update_rule VARCHAR,
        delete_rule VARCHAR;
    13411 13413 b'v' "table_constraints" constraints:
        constraint_catalog NAME, constraint_schema NAME, constraint_name NAME, table_catalog NAME,
        table_schema NAME, table_name NAME, constraint_type VARCHAR, is_deferrable VARCHAR,
        initially_deferred VARCHAR, enforced VARCHAR, nulls_distinct VARCHAR;
}

/// Database, schema and name of a table or of a constraint of it.
fn named(sight: &Sight<'_>, table: &Table, name: &str) -> [Datum; 3] {
    [text(sight.session.database()), text(table.schema.as_str()), text(name)]
}

/// The name that the standard's views give a column that is not NULL.
fn not_null_name(table: &Table, place: usize) -> String {
    let schema = numbers::schema_of(&table.schema).unwrap_or(numbers::PUBLIC);
    format!("{schema}_{}_{}_not_null", table.id, numbers::column(place))
}

fn columns<'a>(table: &'a Table, places: &'a [u16]) -> impl Iterator<Item = &'a Column> {
    places.iter().filter_map(|place| table.columns.get(usize::from(*place)))
}

fn keys(table: &Table) -> impl Iterator<Item = Key<'_>> {
    Key::all(table).into_iter().filter(|key| key.is_constraint)
}

/// `table_constraints`
fn constraints(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |table: &Table, name: &str, kind: &'static str, (deferrable, deferred): (bool, bool)| {
        let mut row: Row = named(sight, table, name).into();
        row.extend(named(sight, table, &table.name));
        row.extend([text(kind), yes_or_no(deferrable), yes_or_no(deferred), yes_or_no(true)]);
        row.push(if kind == "UNIQUE" { yes_or_no(true) } else { NULL });
        rows.push(row);
    };
    for table in sight.objects.tables() {
        for key in keys(table) {
            add(table, key.name, if key.primary { "PRIMARY KEY" } else { "UNIQUE" }, (false, false));
        }
        for to in &table.references {
            add(table, &to.name, "FOREIGN KEY", (to.is_deferrable, to.is_deferred));
        }
        for check in &table.checks {
            add(table, &check.name, "CHECK", (false, false));
        }
        for (place, _) in table.live().filter(|(_, column)| column.not_null) {
            add(table, &not_null_name(table, place), "CHECK", (false, false));
        }
    }
    rows
}

/// `key_column_usage`
fn key_columns(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |table: &Table, name: &str, column: &Column, place: usize, there: Option<usize>| {
        let mut row: Row = named(sight, table, name).into();
        row.extend(named(sight, table, &table.name));
        row.extend([text(column.name.as_str()), int4(place + 1), there.map_or(NULL, |at| int4(at + 1))]);
        rows.push(row);
    };
    for table in sight.objects.tables() {
        for key in keys(table) {
            for (place, column) in key.columns().enumerate() {
                add(table, key.name, column, place, None);
            }
        }
        for to in &table.references {
            let key = referenced_key(to, sight);
            for (place, column) in columns(table, &to.columns).enumerate() {
                let wanted = to.to_columns.get(place);
                let there = key
                    .as_ref()
                    .and_then(|key| key.parts.iter().position(|part| Some(&part.column) == wanted));
                add(table, &to.name, column, place, there);
            }
        }
    }
    rows
}

/// `constraint_column_usage`
fn constraint_columns(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |table: &Table, column: &Column, of: &Table, name: &str| {
        let mut row: Row = named(sight, table, &table.name).into();
        row.push(text(column.name.as_str()));
        row.extend(named(sight, of, name));
        rows.push(row);
    };
    for table in sight.objects.tables() {
        for key in keys(table) {
            key.columns().for_each(|column| add(table, column, table, key.name));
        }
        for to in &table.references {
            if let Some(target) = sight.objects.table_named(&to.to_schema, &to.to_table) {
                columns(target, &to.to_columns).for_each(|column| add(target, column, table, &to.name));
            }
        }
        for check in &table.checks {
            let places = definitions::columns_in(table, &check.condition);
            columns(table, &places).for_each(|column| add(table, column, table, &check.name));
        }
    }
    rows
}

/// `check_constraints`
fn checks(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |table: &Table, name: &str, clause: String| {
        let mut row: Row = named(sight, table, name).into();
        row.push(text(clause));
        rows.push(row);
    };
    for table in sight.objects.tables() {
        for check in &table.checks {
            add(table, &check.name, format!("(({}))", check.condition));
        }
        for (place, column) in table.live().filter(|(_, column)| column.not_null) {
            add(table, &not_null_name(table, place), format!("{} IS NOT NULL", column.name));
        }
    }
    rows
}

fn rule(action: Action) -> Datum {
    text(match action {
        Action::NoAction => "NO ACTION",
        Action::Restrict => "RESTRICT",
        Action::Cascade => "CASCADE",
        Action::SetNull => "SET NULL",
        Action::SetDefault => "SET DEFAULT",
    })
}

/// `referential_constraints`
fn references(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let row = |table: &Table, to: &Reference| {
        let mut row: Row = named(sight, table, &to.name).into();
        match referenced_key(to, sight) {
            Some(key) => row.extend(named(sight, key.table, key.name)),
            None => row.extend([NULL, NULL, NULL]),
        }
        row.extend([text(if to.is_full { "FULL" } else { "NONE" }), rule(to.on_update), rule(to.on_delete)]);
        row
    };
    for table in sight.objects.tables() {
        rows.extend(table.references.iter().map(|to| row(table, to)));
    }
    rows
}
