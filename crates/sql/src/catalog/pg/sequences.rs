//! Sequences, and what depends on what.

use super::{NULL, Row, Sight, char, int4, numbers, oid, relations, text, yes};
use crate::catalog::Sequence;
use crate::types::Datum;

#[rustfmt::skip]
relations! { PG_CATALOG:
    2224 10105 b'r' "pg_sequence" parameters:
        seqrelid! OID, seqtypid! OID, seqstart! INT8, seqincrement! INT8, seqmax! INT8,
        seqmin! INT8, seqcache! INT8, seqcycle! BOOL;
    12048 12050 b'v' "pg_sequences" sequences:
        schemaname NAME, sequencename NAME, sequenceowner NAME, data_type REGTYPE,
        start_value INT8, min_value INT8, max_value INT8, increment_by INT8, cycle BOOL,
        cache_size INT8, last_value INT8;
    2608 10051 b'r' "pg_depend" dependencies:
        classid! OID, objid! OID, objsubid! INT4, refclassid! OID, refobjid! OID,
        refobjsubid! INT4, deptype! CHAR;
}

/// `pg_sequence`
fn parameters(sight: &Sight<'_>) -> Vec<Row> {
    let row = |sequence: &Sequence| {
        vec![
            oid(sequence.id),
            oid(sequence.oid.0),
            Datum::Int8(sequence.start),
            Datum::Int8(sequence.increment),
            Datum::Int8(sequence.largest),
            Datum::Int8(sequence.least),
            Datum::Int8(sequence.cache),
            yes(sequence.cycles),
        ]
    };
    sight.objects.sequences().iter().map(|sequence| row(sequence)).collect()
}

/// `pg_sequences`. The last number is not shown: a session may have taken several of it.
fn sequences(sight: &Sight<'_>) -> Vec<Row> {
    let row = |sequence: &Sequence| {
        vec![
            text(sequence.schema.as_str()),
            text(sequence.name.as_str()),
            text("postgres"),
            oid(sequence.oid.0),
            Datum::Int8(sequence.start),
            Datum::Int8(sequence.least),
            Datum::Int8(sequence.largest),
            Datum::Int8(sequence.increment),
            yes(sequence.cycles),
            Datum::Int8(sequence.cache),
            NULL,
        ]
    };
    sight.objects.sequences().iter().map(|sequence| row(sequence)).collect()
}

/// `pg_depend`: of sequences on the columns that they go with.
fn dependencies(sight: &Sight<'_>) -> Vec<Row> {
    let row = |sequence: &Sequence| {
        let (table, place, column) = sight.objects.column_of(sequence)?;
        Some(vec![
            oid(numbers::PG_CLASS),
            oid(sequence.id),
            int4(0),
            oid(numbers::PG_CLASS),
            oid(table.id),
            int4(numbers::column(place)),
            char(if column.identity.is_some() { b'i' } else { b'a' }),
        ])
    };
    sight.objects.sequences().iter().filter_map(|sequence| row(sequence)).collect()
}
