//! `information_schema`: what the standard says of tables. Its domains are the types below them.

use super::builtin::builtin_type;
use super::definitions::{default_text, type_name};
use super::{Class, NULL, Objects, Row, Sight, int4, none, numbers, relations, text};
use crate::catalog::{Column, Identity, Sequence, Table};
use crate::types::{Datum, Oid, numeric};

#[rustfmt::skip]
relations! { INFORMATION_SCHEMA:
    13236 13238 b'v' "applicable_roles" none:
        grantee NAME, role_name NAME, is_grantable VARCHAR;
    13285 13287 b'v' "column_privileges" none:
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name NAME,
        column_name NAME, privilege_type VARCHAR, is_grantable VARCHAR;
    13295 13297 b'v' "columns" columns:
        table_catalog NAME, table_schema NAME, table_name NAME, column_name NAME,
        ordinal_position INT4, column_default VARCHAR, is_nullable VARCHAR, data_type VARCHAR,
        character_maximum_length INT4, character_octet_length INT4, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4,
        interval_type VARCHAR, interval_precision INT4, character_set_catalog NAME,
        character_set_schema NAME, character_set_name NAME, collation_catalog NAME,
        collation_schema NAME, collation_name NAME, domain_catalog NAME, domain_schema NAME,
        domain_name NAME, udt_catalog NAME, udt_schema NAME, udt_name NAME, scope_catalog NAME,
        scope_schema NAME, scope_name NAME, maximum_cardinality INT4, dtd_identifier NAME,
        is_self_referencing VARCHAR, is_identity VARCHAR, identity_generation VARCHAR,
        identity_start VARCHAR, identity_increment VARCHAR, identity_maximum VARCHAR,
        identity_minimum VARCHAR, identity_cycle VARCHAR, is_generated VARCHAR,
        generation_expression VARCHAR, is_updatable VARCHAR;
    13320 13322 b'v' "domains" none:
        domain_catalog NAME, domain_schema NAME, domain_name NAME, data_type VARCHAR,
        character_maximum_length INT4, character_octet_length INT4, character_set_catalog NAME,
        character_set_schema NAME, character_set_name NAME, collation_catalog NAME,
        collation_schema NAME, collation_name NAME, numeric_precision INT4,
        numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4,
        interval_type VARCHAR, interval_precision INT4, domain_default VARCHAR, udt_catalog NAME,
        udt_schema NAME, udt_name NAME, scope_catalog NAME, scope_schema NAME, scope_name NAME,
        maximum_cardinality INT4, dtd_identifier NAME;
    13493 13495 b'v' "element_types" none:
        object_catalog NAME, object_schema NAME, object_name NAME, object_type VARCHAR,
        collection_type_identifier NAME, data_type VARCHAR, character_maximum_length INT4,
        character_octet_length INT4, character_set_catalog NAME, character_set_schema NAME,
        character_set_name NAME, collation_catalog NAME, collation_schema NAME,
        collation_name NAME, numeric_precision INT4, numeric_precision_radix INT4,
        numeric_scale INT4, datetime_precision INT4, interval_type VARCHAR,
        interval_precision INT4, domain_default VARCHAR, udt_catalog NAME, udt_schema NAME,
        udt_name NAME, scope_catalog NAME, scope_schema NAME, scope_name NAME,
        maximum_cardinality INT4, dtd_identifier NAME;
    13325 13327 b'v' "enabled_roles" current_roles:
        role_name NAME;
    13334 13336 b'v' "parameters" none:
        specific_catalog NAME, specific_schema NAME, specific_name NAME, ordinal_position INT4,
        parameter_mode VARCHAR, is_result VARCHAR, as_locator VARCHAR, parameter_name NAME,
        data_type VARCHAR, character_maximum_length INT4, character_octet_length INT4,
        character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
        collation_catalog NAME, collation_schema NAME, collation_name NAME,
        numeric_precision INT4, numeric_precision_radix INT4, numeric_scale INT4,
        datetime_precision INT4, interval_type VARCHAR, interval_precision INT4, udt_catalog NAME,
        udt_schema NAME, udt_name NAME, scope_catalog NAME, scope_schema NAME, scope_name NAME,
        maximum_cardinality INT4, dtd_identifier NAME, parameter_default VARCHAR;
    13421 13423 b'v' "role_table_grants" none:
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name NAME,
        privilege_type VARCHAR, is_grantable VARCHAR, with_hierarchy VARCHAR;
    13377 13379 b'v' "routines" none:
        specific_catalog NAME, specific_schema NAME, specific_name NAME, routine_catalog NAME,
        routine_schema NAME, routine_name NAME, routine_type VARCHAR, module_catalog NAME,
        module_schema NAME, module_name NAME, udt_catalog NAME, udt_schema NAME, udt_name NAME,
        data_type VARCHAR, character_maximum_length INT4, character_octet_length INT4,
        character_set_catalog NAME, character_set_schema NAME, character_set_name NAME,
        collation_catalog NAME, collation_schema NAME, collation_name NAME,
        numeric_precision INT4, numeric_precision_radix INT4, numeric_scale INT4,
        datetime_precision INT4, interval_type VARCHAR, interval_precision INT4,
        type_udt_catalog NAME, type_udt_schema NAME, type_udt_name NAME, scope_catalog NAME,
        scope_schema NAME, scope_name NAME, maximum_cardinality INT4, dtd_identifier NAME,
        routine_body VARCHAR, routine_definition VARCHAR, external_name VARCHAR,
        external_language VARCHAR, parameter_style VARCHAR, is_deterministic VARCHAR,
        sql_data_access VARCHAR, is_null_call VARCHAR, sql_path VARCHAR,
        schema_level_routine VARCHAR, max_dynamic_result_sets INT4, is_user_defined_cast VARCHAR,
        is_implicitly_invocable VARCHAR, security_type VARCHAR, to_sql_specific_catalog NAME,
        to_sql_specific_schema NAME, to_sql_specific_name NAME, as_locator VARCHAR,
        created TIMESTAMPTZ, last_altered TIMESTAMPTZ, new_savepoint_level VARCHAR,
        is_udt_dependent VARCHAR, result_cast_from_data_type VARCHAR,
        result_cast_as_locator VARCHAR, result_cast_char_max_length INT4,
        result_cast_char_octet_length INT4, result_cast_char_set_catalog NAME,
        result_cast_char_set_schema NAME, result_cast_char_set_name NAME,
        result_cast_collation_catalog NAME, result_cast_collation_schema NAME,
        result_cast_collation_name NAME, result_cast_numeric_precision INT4,
        result_cast_numeric_precision_radix INT4, result_cast_numeric_scale INT4,
        result_cast_datetime_precision INT4, result_cast_interval_type VARCHAR,
        result_cast_interval_precision INT4, result_cast_type_udt_catalog NAME,
        result_cast_type_udt_schema NAME, result_cast_type_udt_name NAME,
        result_cast_scope_catalog NAME, result_cast_scope_schema NAME,
        result_cast_scope_name NAME, result_cast_maximum_cardinality INT4,
        result_cast_dtd_identifier NAME;
    13382 13384 b'v' "schemata" schemas:
        catalog_name NAME, schema_name NAME, schema_owner NAME,
        default_character_set_catalog NAME, default_character_set_schema NAME,
        default_character_set_name NAME, sql_path VARCHAR;
    13386 13388 b'v' "sequences" sequences:
        sequence_catalog NAME, sequence_schema NAME, sequence_name NAME, data_type VARCHAR,
        numeric_precision INT4, numeric_precision_radix INT4, numeric_scale INT4,
        start_value VARCHAR, minimum_value VARCHAR, maximum_value VARCHAR, increment VARCHAR,
        cycle_option VARCHAR;
    13416 13418 b'v' "table_privileges" none:
        grantor NAME, grantee NAME, table_catalog NAME, table_schema NAME, table_name NAME,
        privilege_type VARCHAR, is_grantable VARCHAR, with_hierarchy VARCHAR;
    13425 13427 b'v' "tables" tables:
        table_catalog NAME, table_schema NAME, table_name NAME, table_type VARCHAR,
        self_referencing_column_name NAME, reference_generation VARCHAR,
        user_defined_type_catalog NAME, user_defined_type_schema NAME,
        user_defined_type_name NAME, is_insertable_into VARCHAR, is_typed VARCHAR,
        commit_action VARCHAR;
    13440 13442 b'v' "triggers" none:
        trigger_catalog NAME, trigger_schema NAME, trigger_name NAME, event_manipulation VARCHAR,
        event_object_catalog NAME, event_object_schema NAME, event_object_table NAME,
        action_order INT4, action_condition VARCHAR, action_statement VARCHAR,
        action_orientation VARCHAR, action_timing VARCHAR, action_reference_old_table NAME,
        action_reference_new_table NAME, action_reference_old_row NAME,
        action_reference_new_row NAME, created TIMESTAMPTZ;
    13483 13485 b'v' "views" none:
        table_catalog NAME, table_schema NAME, table_name NAME, view_definition VARCHAR,
        check_option VARCHAR, is_updatable VARCHAR, is_insertable_into VARCHAR,
        is_trigger_updatable VARCHAR, is_trigger_deletable VARCHAR,
        is_trigger_insertable_into VARCHAR;
}

pub(super) fn yes_or_no(value: bool) -> Datum {
    text(if value { "YES" } else { "NO" })
}

/// `schemata`
fn schemas(sight: &Sight<'_>) -> Vec<Row> {
    let row = |(number, name): (u32, &'static str)| {
        let owner = if number == numbers::PUBLIC { "pg_database_owner" } else { "postgres" };
        vec![text(sight.session.database()), text(name), text(owner), NULL, NULL, NULL, NULL]
    };
    numbers::SCHEMAS.into_iter().map(row).collect()
}

/// `tables`
fn tables(sight: &Sight<'_>) -> Vec<Row> {
    let listed = sight.objects.classes().filter_map(|class| {
        let is_view = match class {
            Class::Table(_) => false,
            Class::Catalog(relation) => relation.kind == b'v',
            Class::PrimaryIndex(_) | Class::Index(..) | Class::Sequence(_) => return None,
        };
        Some(vec![
            text(sight.session.database()),
            text(numbers::schema_name(class.schema()).unwrap_or_default()),
            text(class.name()),
            text(if is_view { "VIEW" } else { "BASE TABLE" }),
            NULL,
            NULL,
            NULL,
            NULL,
            NULL,
            yes_or_no(!is_view),
            yes_or_no(false),
            NULL,
        ])
    });
    listed.collect()
}

/// A column of `columns`.
struct Listed<'a> {
    schema: &'a str,
    table: &'a str,
    name: &'a str,
    number: i16,
    oid: Oid,
    modifier: i32,
    not_null: bool,
    default: Option<String>,
    /// When its numbers are taken, and the sequence that they are from.
    identity: Option<(&'static str, Option<&'a Sequence>)>,
    is_updatable: bool,
}

/// `columns`
fn columns(sight: &Sight<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for class in sight.objects.classes() {
        let schema = numbers::schema_name(class.schema()).unwrap_or_default();
        match class {
            Class::Catalog(relation) => {
                for (place, field) in relation.fields.iter().enumerate() {
                    let listed = Listed {
                        schema,
                        table: relation.name,
                        name: field.name,
                        number: numbers::column(place),
                        oid: field.oid,
                        modifier: -1,
                        not_null: field.not_null,
                        default: None,
                        identity: None,
                        is_updatable: relation.kind == b'r',
                    };
                    rows.push(column_row(&listed, sight));
                }
            }
            Class::Table(table) => {
                for (place, column) in table.live() {
                    rows.push(column_row(&listed(schema, table, (place, column), sight.objects), sight));
                }
            }
            Class::PrimaryIndex(_) | Class::Index(..) | Class::Sequence(_) => {}
        }
    }
    rows
}

fn listed<'a>(
    schema: &'a str,
    table: &'a Table,
    (place, column): (usize, &'a Column),
    objects: &'a Objects,
) -> Listed<'a> {
    let identity = column.identity.map(|identity| {
        let word = match identity {
            Identity::Always => "ALWAYS",
            Identity::ByDefault => "BY DEFAULT",
        };
        (word, objects.sequence_of(table, place).map(|sequence| &**sequence))
    });
    Listed {
        schema,
        table: &table.name,
        name: &column.name,
        number: numbers::column(place),
        oid: column.oid,
        modifier: column.modifier,
        not_null: column.not_null,
        default: identity.is_none().then(|| default_text(column)).flatten(),
        identity,
        is_updatable: true,
    }
}

fn column_row(column: &Listed<'_>, sight: &Sight<'_>) -> Row {
    let database = sight.session.database();
    let (type_schema, udt_name) = type_name(column.oid, sight);
    let is_array = builtin_type(column.oid.0).is_some_and(|known| known.category == b'A');
    let data_type = if is_array { "ARRAY".to_owned() } else { column.oid.display() };
    let measures = measures(column.oid, column.modifier);
    let mut row = vec![
        text(database),
        text(column.schema),
        text(column.table),
        text(column.name),
        int4(column.number),
        column.default.as_deref().map_or(NULL, text),
        yes_or_no(!column.not_null),
        text(data_type),
    ];
    row.extend(measures);
    // Character set, collation, domain.
    row.resize(25, NULL);
    if builtin_type(column.oid.0).is_some_and(|known| known.collation == numbers::C_COLLATION) {
        row.splice(19..22, [text(database), text("pg_catalog"), text("C")]);
    }
    row.extend([
        text(database),
        text(numbers::schema_name(type_schema).unwrap_or_default()),
        text(udt_name.as_ref()),
        NULL,
        NULL,
        NULL,
        NULL,
        text(column.number.to_string()),
        yes_or_no(false),
        yes_or_no(column.identity.is_some()),
    ]);
    match &column.identity {
        None => row.extend([NULL, NULL, NULL, NULL, NULL, yes_or_no(false)]),
        Some((generation, sequence)) => {
            let number = |of: fn(&Sequence) -> i64| sequence.map_or(NULL, |it| text(of(it).to_string()));
            row.extend([
                text(*generation),
                number(|it| it.start),
                number(|it| it.increment),
                number(|it| it.largest),
                number(|it| it.least),
                yes_or_no(sequence.is_some_and(|it| it.cycles)),
            ]);
        }
    }
    row.extend([text("NEVER"), NULL]);
    row.push(yes_or_no(column.is_updatable));
    row
}

/// Lengths of characters; precision, radix and scale of numbers; digits of seconds; fields and
/// precision of intervals.
fn measures(oid: Oid, modifier: i32) -> [Datum; 8] {
    let mut out = [const { NULL }; 8];
    let [length, octets, precision, radix, scale, seconds, ..] = &mut out;
    let number = |bits: i32, base: i32, with_scale: bool| {
        (int4(bits), int4(base), if with_scale { int4(0) } else { NULL })
    };
    match oid {
        Oid::INT2 => (*precision, *radix, *scale) = number(16, 2, true),
        Oid::INT4 => (*precision, *radix, *scale) = number(32, 2, true),
        Oid::INT8 => (*precision, *radix, *scale) = number(64, 2, true),
        Oid::FLOAT4 => (*precision, *radix, *scale) = number(24, 2, false),
        Oid::FLOAT8 => (*precision, *radix, *scale) = number(53, 2, false),
        Oid::NUMERIC => {
            *radix = int4(10);
            if let Some((digits, of_fraction)) = numeric::precision_and_scale(modifier) {
                (*precision, *scale) = (int4(digits), int4(of_fraction));
            }
        }
        Oid::VARCHAR | Oid::BPCHAR => {
            let characters = (modifier >= 4).then_some(modifier - 4);
            *length = characters.map_or(NULL, int4);
            *octets = int4(characters.map_or(1 << 30, |count| count.saturating_mul(4)));
        }
        Oid::TEXT => *octets = int4(1 << 30),
        Oid::DATE => *seconds = int4(0),
        Oid::TIME | Oid::TIMETZ | Oid::TIMESTAMP | Oid::TIMESTAMPTZ => {
            *seconds = int4(if modifier < 0 { 6 } else { modifier });
        }
        Oid::INTERVAL => {
            *seconds = int4(if modifier < 0 || modifier & 0xffff > 6 { 6 } else { modifier & 0xffff })
        }
        _ => {}
    }
    out
}

/// `enabled_roles`
fn current_roles(sight: &Sight<'_>) -> Vec<Row> {
    vec![vec![text(sight.session.user())]]
}

/// `sequences`
fn sequences(sight: &Sight<'_>) -> Vec<Row> {
    let row = |sequence: &Sequence| {
        let bits = match sequence.oid {
            Oid::INT2 => 16,
            Oid::INT4 => 32,
            _ => 64,
        };
        vec![
            text(sight.session.database()),
            text(sequence.schema.as_str()),
            text(sequence.name.as_str()),
            text(sequence.oid.display()),
            int4(bits),
            int4(2),
            int4(0),
            text(sequence.start.to_string()),
            text(sequence.least.to_string()),
            text(sequence.largest.to_string()),
            text(sequence.increment.to_string()),
            yes_or_no(sequence.cycles),
        ]
    };
    // Those of identity columns are parts of their tables.
    let own = sight.objects.sequences().iter().filter(|sequence| {
        sight.objects.column_of(sequence).is_none_or(|(_, _, column)| column.identity.is_none())
    });
    own.map(|sequence| row(sequence)).collect()
}
