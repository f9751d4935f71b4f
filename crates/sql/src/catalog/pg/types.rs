//! Types, casts and collations.

use super::builtin::{BuiltinType, TYPES};
use super::{NULL, Row, Sight, char, int2, int4, none, numbers, oid, relations, text, yes};
use crate::functions::casts::CASTS;
use crate::functions::{CastContext, CastMethod};
use crate::types::Oid;

#[rustfmt::skip]
relations! { PG_CATALOG:
    2605 10043 b'r' "pg_cast" casts (Nothing):
        oid! OID, castsource! OID, casttarget! OID, castfunc! OID, castcontext! CHAR,
        castmethod! CHAR;
    3456 10095 b'r' "pg_collation" collations (Nothing):
        oid! OID, collname! NAME, collnamespace! OID, collowner! OID, collprovider! CHAR,
        collisdeterministic! BOOL, collencoding! INT4, collcollate TEXT, collctype TEXT,
        colliculocale TEXT, collversion TEXT;
    2607 10049 b'r' "pg_conversion" none:
        oid! OID, conname! NAME, connamespace! OID, conowner! OID, conforencoding! INT4,
        contoencoding! INT4, conproc! REGPROC, condefault! BOOL;
    3501 10045 b'r' "pg_enum" none:
        oid! OID, enumtypid! OID, enumsortorder! FLOAT4, enumlabel! NAME;
    3541 10101 b'r' "pg_range" none:
        rngtypid! OID, rngsubtype! OID, rngmultitypid! OID, rngcollation! OID, rngsubopc! OID,
        rngcanonical! REGPROC, rngsubdiff! REGPROC;
    3576 10103 b'r' "pg_transform" none:
        oid! OID, trftype! OID, trflang! OID, trffromsql! REGPROC, trftosql! REGPROC;
    1247 71 b'r' "pg_type" types:
        oid! OID, typname! NAME, typnamespace! OID, typowner! OID, typlen! INT2, typbyval! BOOL,
        typtype! CHAR, typcategory! CHAR, typispreferred! BOOL, typisdefined! BOOL,
        typdelim! CHAR, typrelid! OID, typsubscript! REGPROC, typelem! OID, typarray! OID,
        typinput! REGPROC, typoutput! REGPROC, typreceive! REGPROC, typsend! REGPROC,
        typmodin! REGPROC, typmodout! REGPROC, typanalyze! REGPROC, typalign! CHAR,
        typstorage! CHAR, typnotnull! BOOL, typbasetype! OID, typtypmod! INT4, typndims! INT4,
        typcollation! OID, typdefaultbin PG_NODE_TREE, typdefault TEXT, typacl ACLITEM_ARRAY;
}

/// `pg_type`
fn types(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = TYPES.iter().map(builtin_row).collect();
    for relation in super::relations_of_all().filter(|relation| relation.row_type != 0) {
        let (name, schema) = (relation.name.to_owned(), relation.schema);
        rows.push(row_type(&RowType {
            oid: relation.row_type,
            name,
            schema,
            relation: relation.oid,
            array: 0,
        }));
    }
    for table in sight.objects.tables() {
        let schema = numbers::schema_of(&table.schema).unwrap_or(numbers::PUBLIC);
        let (of_row, of_array) = (numbers::row_type(table.id), numbers::row_array(table.id));
        let name = table.name.clone();
        rows.push(row_type(&RowType { oid: of_row, name, schema, relation: table.id, array: of_array }));
        rows.push(array_of_rows(of_array, format!("_{}", table.name), schema, of_row));
    }
    rows
}

fn builtin_row(known: &BuiltinType) -> Row {
    let mut row = vec![
        oid(known.oid),
        text(known.name),
        oid(numbers::PG_CATALOG),
        oid(numbers::OWNER),
        int2(known.size),
        yes(known.by_value),
        char(known.kind),
        char(known.category),
        yes(known.preferred),
        yes(true),
        char(b','),
        oid(0),
    ];
    let [subscript, functions @ ..] = known.functions;
    row.extend([oid(subscript), oid(known.element), oid(known.array)]);
    row.extend(functions.map(oid));
    row.extend([char(known.align), char(known.storage)]);
    row.extend(tail(known.collation));
    row
}

/// What the rows of all types end with.
fn tail(collation: u32) -> [super::Datum; 8] {
    [yes(false), oid(0), int4(-1), int4(0), oid(collation), NULL, NULL, NULL]
}

/// The type of a relation's rows.
struct RowType {
    oid: u32,
    name: String,
    schema: u32,
    relation: u32,
    array: u32,
}

/// `record_in()`, `record_out()`, `record_recv()`, `record_send()`
const RECORD_FUNCTIONS: [u32; 4] = [2290, 2291, 2402, 2403];
/// `array_in()`, `array_out()`, `array_recv()`, `array_send()`
const ARRAY_FUNCTIONS: [u32; 4] = [750, 751, 2400, 2401];
/// `array_subscript_handler()`
const ARRAY_SUBSCRIPT: u32 = 6179;
/// `array_typanalyze()`
const ARRAY_STATISTICS: u32 = 3816;

fn row_type(of: &RowType) -> Row {
    let mut row = vec![
        oid(of.oid),
        text(of.name.as_str()),
        oid(of.schema),
        oid(numbers::OWNER),
        int2(-1),
        yes(false),
        char(b'c'),
        char(b'C'),
        yes(false),
        yes(true),
        char(b','),
        oid(of.relation),
        oid(0),
        oid(0),
        oid(of.array),
    ];
    row.extend(RECORD_FUNCTIONS.map(oid));
    row.extend([oid(0), oid(0), oid(0), char(b'd'), char(b'x')]);
    row.extend(tail(0));
    row
}

fn array_of_rows(array: u32, name: String, schema: u32, element: u32) -> Row {
    let mut row = vec![
        oid(array),
        text(name),
        oid(schema),
        oid(numbers::OWNER),
        int2(-1),
        yes(false),
        char(b'b'),
        char(b'A'),
        yes(false),
        yes(true),
        char(b','),
        oid(0),
        oid(ARRAY_SUBSCRIPT),
        oid(element),
        oid(0),
    ];
    row.extend(ARRAY_FUNCTIONS.map(oid));
    row.extend([oid(0), oid(0), oid(ARRAY_STATISTICS), char(b'd'), char(b'x')]);
    row.extend(tail(0));
    row
}

/// `pg_cast`
fn casts(_: &Sight<'_>) -> Vec<Row> {
    let numbered = CASTS.iter().zip(FIRST_CAST..);
    let row = |(cast, number): (&crate::functions::Cast, u32)| {
        // PostgreSQL has these values in the same form, and casts them by doing nothing.
        let is_identifier = |of: Oid| of == Oid::OID || of.is_reference();
        let is_same = cast.from == Oid::INT4 && is_identifier(cast.to)
            || cast.to == Oid::INT4 && is_identifier(cast.from);
        let (function, method) = match cast.method {
            CastMethod::Function(_) if is_same => (0, b'b'),
            CastMethod::Function(function) => (function, b'f'),
            CastMethod::Same => (0, b'b'),
            CastMethod::Text => (0, b'i'),
        };
        let context = match cast.context {
            CastContext::Implicit => b'i',
            CastContext::Assignment => b'a',
            CastContext::Explicit => b'e',
        };
        vec![oid(number), oid(cast.from.0), oid(cast.to.0), oid(function), char(context), char(method)]
    };
    numbered.map(row).collect()
}

/// Casts have no identifiers of their own: PostgreSQL numbers them anew with every release.
const FIRST_CAST: u32 = 10_036;

/// `pg_collation`
fn collations(_: &Sight<'_>) -> Vec<Row> {
    let all = [
        (numbers::DEFAULT_COLLATION, "default", b'd', -1, NULL),
        (numbers::C_COLLATION, "C", b'c', -1, text("C")),
        (951, "POSIX", b'c', -1, text("POSIX")),
        (12_340, "ucs_basic", b'c', 6, text("C")),
    ];
    let row = |(number, name, provider, encoding, locale): (u32, &'static str, u8, i32, super::Datum)| {
        vec![
            oid(number),
            text(name),
            oid(numbers::PG_CATALOG),
            oid(numbers::OWNER),
            char(provider),
            yes(true),
            int4(encoding),
            locale.clone(),
            locale,
            NULL,
            NULL,
        ]
    };
    all.into_iter().map(row).collect()
}
