//! Tables, their columns and defaults.

use super::builtin::builtin_type;
use super::definitions::{self, Key};
use super::{Class, NULL, Row, Sight, char, int2, int4, numbers, oid, relations, text, yes};
use crate::catalog::{Column, Identity, Placement, Table};
use crate::types::{Array, Datum, Oid};

#[rustfmt::skip]
relations! { PG_CATALOG:
    2604 10001 b'r' "pg_attrdef" defaults:
        oid! OID, adrelid! OID, adnum! INT2, adbin! PG_NODE_TREE;
    1249 75 b'r' "pg_attribute" attributes:
        attrelid! OID, attname! NAME, atttypid! OID, attstattarget! INT4, attlen! INT2,
        attnum! INT2, attndims! INT4, attcacheoff! INT4, atttypmod! INT4, attbyval! BOOL,
        attalign! CHAR, attstorage! CHAR, attcompression! CHAR, attnotnull! BOOL, atthasdef! BOOL,
        atthasmissing! BOOL, attidentity! CHAR, attgenerated! CHAR, attisdropped! BOOL,
        attislocal! BOOL, attinhcount! INT4, attcollation! OID, attacl ACLITEM_ARRAY,
        attoptions TEXT_ARRAY, attfdwoptions TEXT_ARRAY, attmissingval ANY_ARRAY;
    1259 83 b'r' "pg_class" classes:
        oid! OID, relname! NAME, relnamespace! OID, reltype! OID, reloftype! OID, relowner! OID,
        relam! OID, relfilenode! OID, reltablespace! OID, relpages! INT4, reltuples! FLOAT4,
        relallvisible! INT4, reltoastrelid! OID, relhasindex! BOOL, relisshared! BOOL,
        relpersistence! CHAR, relkind! CHAR, relnatts! INT2, relchecks! INT2, relhasrules! BOOL,
        relhastriggers! BOOL, relhassubclass! BOOL, relrowsecurity! BOOL,
        relforcerowsecurity! BOOL, relispopulated! BOOL, relreplident! CHAR, relispartition! BOOL,
        relrewrite! OID, relfrozenxid! XID, relminmxid! XID, relacl ACLITEM_ARRAY,
        reloptions TEXT_ARRAY, relpartbound PG_NODE_TREE;
    12033 12035 b'v' "pg_tables" tables:
        schemaname NAME, tablename NAME, tableowner NAME, tablespace NAME, hasindexes BOOL,
        hasrules BOOL, hastriggers BOOL, rowsecurity BOOL;
    12028 12030 b'v' "pg_views" views:
        schemaname NAME, viewname NAME, viewowner NAME, definition TEXT;
}

/// `pg_class`
fn classes(sight: &Sight<'_>) -> Vec<Row> {
    sight.objects.classes().map(|class| class_row(&class)).collect()
}

/// What tells the rows of `pg_class` from each other.
struct ClassRow {
    row_type: u32,
    method: u32,
    kind: u8,
    columns: usize,
    checks: usize,
    has_index: bool,
    has_triggers: bool,
    options: Datum,
}

fn described(class: &Class<'_>) -> ClassRow {
    let plain = ClassRow {
        row_type: 0,
        method: 0,
        kind: b'r',
        columns: 0,
        checks: 0,
        has_index: false,
        has_triggers: false,
        options: NULL,
    };
    match class {
        Class::Catalog(relation) => ClassRow {
            row_type: relation.row_type,
            method: if relation.kind == b'r' { numbers::HEAP } else { 0 },
            kind: relation.kind,
            columns: relation.fields.len(),
            ..plain
        },
        Class::Table(table) => ClassRow {
            row_type: numbers::row_type(table.id),
            method: numbers::HEAP,
            columns: table.columns.len(),
            checks: table.checks.len(),
            has_index: !table.primary.is_empty() || !table.indexes.is_empty(),
            has_triggers: !table.references.is_empty() || !table.referrers.is_empty(),
            options: match table.placement {
                Placement::Everywhere => Array::flat(Oid::TEXT, vec![text("replicated=true")]),
                Placement::Hash(_) => NULL,
            },
            ..plain
        },
        Class::PrimaryIndex(_) | Class::Index(..) => ClassRow {
            method: numbers::BTREE,
            kind: b'i',
            columns: Key::of(class).map_or(0, |key| key.parts.len()),
            ..plain
        },
        Class::Sequence(_) => ClassRow { kind: b'S', columns: SEQUENCE_COLUMNS.len(), ..plain },
    }
}

fn class_row(class: &Class<'_>) -> Row {
    let ClassRow { row_type, method, kind, columns, checks, has_index, has_triggers, options } =
        described(class);
    let age = || oid(u32::from(kind == b'r'));
    vec![
        oid(class.oid()),
        text(class.name()),
        oid(class.schema()),
        oid(row_type),
        oid(0),
        oid(numbers::OWNER),
        oid(method),
        oid(if kind == b'v' { 0 } else { class.oid() }),
        oid(0),
        int4(0),
        Datum::Float4(if kind == b'v' { 0.0 } else { -1.0 }),
        int4(0),
        oid(0),
        yes(has_index),
        yes(false),
        char(b'p'),
        char(kind),
        int2(columns),
        int2(checks),
        yes(kind == b'v'),
        yes(has_triggers),
        yes(false),
        yes(false),
        yes(false),
        yes(true),
        char(if matches!(class, Class::Table(_)) { b'd' } else { b'n' }),
        yes(false),
        oid(0),
        age(),
        age(),
        NULL,
        options,
        NULL,
    ]
}

/// The columns of a sequence.
const SEQUENCE_COLUMNS: [(&str, Oid); 3] =
    [("last_value", Oid::INT8), ("log_cnt", Oid::INT8), ("is_called", Oid::BOOL)];

/// A column of `pg_attribute`.
struct Attribute<'a> {
    class: u32,
    name: &'a str,
    oid: Oid,
    modifier: i32,
    number: i16,
    not_null: bool,
    has_default: bool,
    has_missing: bool,
    identity: u8,
    dropped: bool,
    collation: Option<u32>,
}

impl<'a> Attribute<'a> {
    /// A column with nothing in particular.
    fn plain(class: u32, name: &'a str, oid: Oid, number: i16) -> Attribute<'a> {
        Attribute {
            class,
            name,
            oid,
            modifier: -1,
            number,
            not_null: false,
            has_default: false,
            has_missing: false,
            identity: 0,
            dropped: false,
            collation: None,
        }
    }
}

/// `pg_attribute`
fn attributes(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for class in sight.objects.classes() {
        let plain =
            |place: usize, name, oid| Attribute::plain(class.oid(), name, oid, numbers::column(place));
        match class {
            Class::Catalog(relation) => {
                for (place, field) in relation.fields.iter().enumerate() {
                    let is_c = relation.kind == b'r'
                        && builtin_type(field.oid.0)
                            .is_some_and(|known| known.collation == numbers::DEFAULT_COLLATION);
                    rows.push(attribute_row(&Attribute {
                        not_null: field.not_null,
                        collation: is_c.then_some(numbers::C_COLLATION),
                        ..plain(place, field.name, field.oid)
                    }));
                }
            }
            Class::Table(table) => rows.extend(table_attributes(table)),
            Class::PrimaryIndex(_) | Class::Index(..) => {
                for (place, column) in Key::of(&class).iter().flat_map(Key::columns).enumerate() {
                    let plain = plain(place, &column.name, column.oid);
                    rows.push(attribute_row(&Attribute { modifier: column.modifier, ..plain }));
                }
            }
            Class::Sequence(_) => {
                for (place, (name, oid)) in SEQUENCE_COLUMNS.into_iter().enumerate() {
                    rows.push(attribute_row(&Attribute { not_null: true, ..plain(place, name, oid) }));
                }
            }
        }
    }
    rows
}

fn table_attributes(table: &Table) -> impl Iterator<Item = Row> {
    table.columns.iter().enumerate().map(|(place, column)| {
        let number = numbers::column(place);
        if column.dropped {
            let name = format!("........pg.dropped.{number}........");
            let plain = Attribute::plain(table.id, &name, column.oid, number);
            return attribute_row(&Attribute { modifier: column.modifier, dropped: true, ..plain });
        }
        attribute_row(&Attribute {
            modifier: column.modifier,
            not_null: column.not_null,
            has_default: has_default(column),
            has_missing: column.missing.is_some(),
            identity: match column.identity {
                None => 0,
                Some(Identity::Always) => b'a',
                Some(Identity::ByDefault) => b'd',
            },
            ..Attribute::plain(table.id, &column.name, column.oid, number)
        })
    })
}

/// Whether a column has a default of its own, and not one that it is an identity column by.
fn has_default(column: &Column) -> bool {
    column.default.is_some() && column.identity.is_none()
}

fn attribute_row(column: &Attribute<'_>) -> Row {
    let known = builtin_type(column.oid.0);
    let collation = column.collation.unwrap_or(known.map_or(0, |known| known.collation));
    let is_array = known.is_some_and(|known| known.category == b'A' && !column.oid.is_vector());
    vec![
        oid(column.class),
        text(column.name),
        oid(if column.dropped { 0 } else { column.oid.0 }),
        int4(-1),
        Datum::Int2(known.map_or(-1, |known| known.size)),
        Datum::Int2(column.number),
        int4(i32::from(is_array)),
        int4(-1),
        int4(column.modifier),
        yes(known.is_some_and(|known| known.by_value)),
        char(known.map_or(b'i', |known| known.align)),
        char(known.map_or(b'x', |known| known.storage)),
        char(0),
        yes(column.not_null),
        yes(column.has_default),
        yes(column.has_missing),
        char(column.identity),
        char(0),
        yes(column.dropped),
        yes(true),
        int4(0),
        oid(collation),
        NULL,
        NULL,
        NULL,
        NULL,
    ]
}

/// `pg_attrdef`
fn defaults(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in sight.objects.tables() {
        for (place, column) in table.live().filter(|(_, column)| has_default(column)) {
            let number = numbers::column(place);
            let default = definitions::default_text(column).map_or(NULL, text);
            rows.push(vec![
                oid(numbers::default_of(table.id, number)),
                oid(table.id),
                Datum::Int2(number),
                default,
            ]);
        }
    }
    rows
}

/// `pg_tables`
fn tables(sight: &Sight<'_>) -> Vec<Row> {
    let listed = sight.objects.classes().filter(|class| described(class).kind == b'r').map(|class| {
        let ClassRow { has_index, has_triggers, .. } = described(&class);
        vec![
            text(numbers::schema_name(class.schema()).unwrap_or_default()),
            text(class.name()),
            text("postgres"),
            NULL,
            yes(has_index),
            yes(false),
            yes(has_triggers),
            yes(false),
        ]
    });
    listed.collect()
}

/// `pg_views`
fn views(sight: &Sight<'_>) -> Vec<Row> {
    let listed = sight.objects.classes().filter(|class| described(class).kind == b'v').map(|class| {
        let schema = numbers::schema_name(class.schema()).unwrap_or_default();
        vec![text(schema), text(class.name()), text("postgres"), NULL]
    });
    listed.collect()
}
