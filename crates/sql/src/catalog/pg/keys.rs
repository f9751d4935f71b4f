//! Indexes and constraints.

use super::builtin::builtin_type;
use super::definitions::{self, Key};
use super::{
    NULL, Row, Sight, char, int2, int2_array, int2_vector, int4, numbers, oid, oid_array, oid_vector,
    relations, text, yes,
};
use crate::catalog::{Action, Reference, Table};
use crate::functions::operators;
use crate::types::{Datum, Oid};

#[rustfmt::skip]
relations! { PG_CATALOG:
    2606 10003 b'r' "pg_constraint" constraints:
        oid! OID, conname! NAME, connamespace! OID, contype! CHAR, condeferrable! BOOL,
        condeferred! BOOL, convalidated! BOOL, conrelid! OID, contypid! OID, conindid! OID,
        conparentid! OID, confrelid! OID, confupdtype! CHAR, confdeltype! CHAR,
        confmatchtype! CHAR, conislocal! BOOL, coninhcount! INT4, connoinherit! BOOL,
        conkey INT2_ARRAY, confkey INT2_ARRAY, conpfeqop OID_ARRAY, conppeqop OID_ARRAY,
        conffeqop OID_ARRAY, confdelsetcols INT2_ARRAY, conexclop OID_ARRAY, conbin PG_NODE_TREE;
    2610 10007 b'r' "pg_index" indexes:
        indexrelid! OID, indrelid! OID, indnatts! INT2, indnkeyatts! INT2, indisunique! BOOL,
        indnullsnotdistinct! BOOL, indisprimary! BOOL, indisexclusion! BOOL, indimmediate! BOOL,
        indisclustered! BOOL, indisvalid! BOOL, indcheckxmin! BOOL, indisready! BOOL,
        indislive! BOOL, indisreplident! BOOL, indkey! INT2VECTOR, indcollation! OIDVECTOR,
        indclass! OIDVECTOR, indoption! INT2VECTOR, indexprs PG_NODE_TREE, indpred PG_NODE_TREE;
    12043 12045 b'v' "pg_indexes" index_list:
        schemaname NAME, tablename NAME, indexname NAME, tablespace NAME, indexdef TEXT;
}

/// Bits of `indoption`.
const DESCENDING: i16 = 1;
const NULLS_FIRST: i16 = 2;

fn keys<'a>(sight: &Sight<'a>) -> impl Iterator<Item = Key<'a>> {
    sight.objects.tables().iter().flat_map(|table| Key::all(table))
}

/// `pg_index`
fn indexes(sight: &Sight<'_>) -> Vec<Row> {
    let row = |key: Key<'_>| {
        let types: Vec<Oid> = key.columns().map(|column| column.oid).collect();
        let collations = types.iter().map(|oid| builtin_type(oid.0).map_or(0, |known| known.collation));
        let order = key
            .parts
            .iter()
            .map(|part| i16::from(part.descending) * DESCENDING + i16::from(part.nulls_first) * NULLS_FIRST);
        vec![
            oid(key.id),
            oid(key.table.id),
            int2(key.parts.len()),
            int2(key.parts.len()),
            yes(key.unique),
            yes(false),
            yes(key.primary),
            yes(false),
            yes(true),
            yes(false),
            yes(key.is_ready),
            yes(false),
            yes(true),
            yes(true),
            yes(false),
            int2_vector(key.parts.iter().map(|part| numbers::column(usize::from(part.column)))),
            oid_vector(collations),
            oid_vector(types.iter().map(|oid| definitions::operator_class(*oid))),
            int2_vector(order),
            NULL,
            NULL,
        ]
    };
    keys(sight).map(row).collect()
}

/// `pg_indexes`
fn index_list(sight: &Sight<'_>) -> Vec<Row> {
    let row = |key: Key<'_>| {
        vec![
            text(key.table.schema.as_str()),
            text(key.table.name.as_str()),
            text(key.name),
            NULL,
            text(key.definition(&definitions::qualified(key.table))),
        ]
    };
    keys(sight).map(row).collect()
}

/// What tells the rows of `pg_constraint` from each other.
struct Constraint<'a> {
    id: u32,
    name: &'a str,
    table: &'a Table,
    kind: u8,
    index: u32,
    columns: Datum,
    reference: Option<&'a Reference>,
    condition: Option<&'a str>,
}

/// `pg_constraint`
fn constraints(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let numbers_of =
        |places: &mut dyn Iterator<Item = u16>| int2_array(places.map(|at| numbers::column(usize::from(at))));
    for table in sight.objects.tables() {
        for check in &table.checks {
            let constraint = Constraint {
                id: check.id,
                name: &check.name,
                table,
                kind: b'c',
                index: 0,
                columns: numbers_of(&mut definitions::columns_in(table, &check.condition).into_iter()),
                reference: None,
                condition: Some(&check.condition),
            };
            rows.push(constraint_row(&constraint, sight));
        }
        for key in Key::all(table).iter().filter(|key| key.is_constraint) {
            let constraint = Constraint {
                id: numbers::constraint_of(key.id),
                name: key.name,
                table,
                kind: if key.primary { b'p' } else { b'u' },
                index: key.id,
                columns: numbers_of(&mut key.parts.iter().map(|part| part.column)),
                reference: None,
                condition: None,
            };
            rows.push(constraint_row(&constraint, sight));
        }
        for reference in &table.references {
            let constraint = Constraint {
                id: reference.id,
                name: &reference.name,
                table,
                kind: b'f',
                index: referenced_index(reference, sight),
                columns: numbers_of(&mut reference.columns.iter().copied()),
                reference: Some(reference),
                condition: None,
            };
            rows.push(constraint_row(&constraint, sight));
        }
    }
    rows
}

/// The index by which a foreign key's other end is found.
pub fn referenced_key<'a>(reference: &Reference, sight: &Sight<'a>) -> Option<Key<'a>> {
    let target = sight.objects.table_named(&reference.to_schema, &reference.to_table)?;
    let mut wanted = reference.to_columns.clone();
    wanted.sort_unstable();
    Key::all(target).into_iter().find(|key| {
        let mut columns: Vec<u16> = key.parts.iter().map(|part| part.column).collect();
        columns.sort_unstable();
        key.unique && columns == wanted
    })
}

fn referenced_index(reference: &Reference, sight: &Sight<'_>) -> u32 {
    referenced_key(reference, sight).map_or(0, |key| key.id)
}

fn action(action: Action) -> u8 {
    match action {
        Action::NoAction => b'a',
        Action::Restrict => b'r',
        Action::Cascade => b'c',
        Action::SetNull => b'n',
        Action::SetDefault => b'd',
    }
}

/// The equality of a type.
fn equality(oid: Oid) -> u32 {
    let oid = if oid == Oid::VARCHAR { Oid::TEXT } else { oid };
    operators::named("=", false)
        .find(|operator| operator.left == oid && operator.right == oid)
        .map_or(0, |operator| operator.oid)
}

fn constraint_row(of: &Constraint<'_>, sight: &Sight<'_>) -> Row {
    let target = of.reference.and_then(|to| sight.objects.table_named(&to.to_schema, &to.to_table));
    let kind_of = |action_of: fn(&Reference) -> u8| char(of.reference.map_or(b' ', action_of));
    let equalities = || {
        let places = of.reference.iter().flat_map(|to| &to.to_columns);
        let columns = places.filter_map(|at| target.and_then(|table| table.columns.get(usize::from(*at))));
        match of.reference {
            Some(_) => oid_array(columns.map(|column| equality(column.oid))),
            None => NULL,
        }
    };
    let far_columns = of
        .reference
        .map_or(NULL, |to| int2_array(to.to_columns.iter().map(|at| numbers::column(usize::from(*at)))));
    vec![
        oid(of.id),
        text(of.name),
        oid(numbers::schema_of(&of.table.schema).unwrap_or(numbers::PUBLIC)),
        char(of.kind),
        yes(of.reference.is_some_and(|to| to.is_deferrable)),
        yes(of.reference.is_some_and(|to| to.is_deferred)),
        yes(true),
        oid(of.table.id),
        oid(0),
        oid(of.index),
        oid(0),
        oid(target.map_or(0, |table| table.id)),
        kind_of(|to| action(to.on_update)),
        kind_of(|to| action(to.on_delete)),
        kind_of(|to| if to.is_full { b'f' } else { b's' }),
        yes(true),
        int4(0),
        yes(of.kind != b'c'),
        of.columns.clone(),
        far_columns,
        equalities(),
        equalities(),
        equalities(),
        NULL,
        NULL,
        of.condition.map_or(NULL, text),
    ]
}
