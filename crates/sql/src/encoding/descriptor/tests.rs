//! Descriptors are read as they were written, and what is not one is an error.

use proptest::prelude::*;
use proptest::sample::select;

use super::super::key::after_prefix;
use super::*;

fn text() -> impl Strategy<Value = String> {
    "[a-c\"é]{0,5}"
}

fn columns() -> impl Strategy<Value = Vec<Column>> {
    let missing = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200));
    let identity = select(vec![None, Some(Identity::Always), Some(Identity::ByDefault)]);
    let default = proptest::option::of(text());
    let column = (text(), any::<u32>(), any::<i32>(), any::<[bool; 2]>(), default, missing, identity)
        .prop_map(|(name, oid, modifier, [not_null, dropped], default, missing, identity)| Column {
            not_null,
            default,
            missing,
            dropped,
            identity,
            ..Column::new(name, Oid(oid), modifier)
        });
    proptest::collection::vec(column, 3..6)
}

fn positions(least: usize) -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(0u16..3, least..4)
}

fn indexes() -> impl Strategy<Value = Vec<Index>> {
    let part = (0u16..3, any::<[bool; 2]>()).prop_map(|(column, [descending, nulls_first])| IndexPart {
        column,
        descending,
        nulls_first,
    });
    let parts = proptest::collection::vec(part, 1..3);
    let index = (any::<[u32; 2]>(), text(), parts, any::<[bool; 3]>()).prop_map(
        |([id, rows], name, parts, [unique, is_constraint, is_ready])| Index {
            id,
            rows,
            name,
            parts,
            unique,
            is_constraint,
            is_ready,
        },
    );
    proptest::collection::vec(index, 0..3)
}

fn references() -> impl Strategy<Value = Vec<Reference>> {
    let names = [text(), text(), text()];
    let actions = [select(ACTIONS.to_vec()), select(ACTIONS.to_vec())];
    let reference = (any::<u32>(), names, positions(1), actions, any::<[bool; 3]>()).prop_map(
        |(id, [name, to_schema, to_table], columns, [on_update, on_delete], flags)| {
            let [is_full, is_deferrable, is_deferred] = flags;
            let to_columns = columns.iter().map(|position| position + 7).collect();
            Reference {
                id,
                name,
                columns,
                to_schema,
                to_table,
                to_columns,
                is_full,
                on_update,
                on_delete,
                is_deferrable,
                is_deferred,
            }
        },
    );
    proptest::collection::vec(reference, 0..3)
}

fn tables() -> impl Strategy<Value = Table> {
    let check =
        (any::<u32>(), text(), text()).prop_map(|(id, name, condition)| Check { id, name, condition });
    let checks = proptest::collection::vec(check, 0..2);
    let referrers = proptest::collection::vec((text(), text()), 0..2);
    let around = (indexes(), checks, references(), referrers);
    let names = [text(), text(), text()];
    (any::<[u32; 3]>(), names, columns(), positions(0), any::<bool>(), around).prop_map(
        |([id, rows, primary_id], [schema, name, primary_name], columns, primary, copied, around)| {
            let count = u16::try_from(primary.len()).expect("few");
            let placement = if copied { Placement::Everywhere } else { Placement::Hash(count) };
            let (indexes, checks, references, referrers) = around;
            Table {
                id,
                rows,
                schema,
                name,
                columns,
                primary,
                primary_name,
                primary_id,
                placement,
                indexes,
                checks,
                references,
                referrers,
            }
        },
    )
}

fn sequences() -> impl Strategy<Value = Sequence> {
    let owner = proptest::option::of((text(), any::<u16>()));
    let numbers = [any::<i64>(), any::<i64>(), any::<i64>()];
    (any::<[u32; 3]>(), [text(), text()], numbers, 1i64.., any::<bool>(), owner).prop_map(
        |([id, rows, oid], [schema, name], mut bounds, cache, cycles, owner)| {
            let increment = bounds[0] | 1;
            bounds.sort();
            let [least, start, largest] = bounds;
            let oid = Oid(oid);
            Sequence { id, rows, schema, name, oid, start, increment, least, largest, cache, cycles, owner }
        },
    )
}

fn relations() -> impl Strategy<Value = Relation> {
    prop_oneof![
        4 => tables().prop_map(|table| Relation::Table(Arc::new(table))),
        1 => text().prop_map(Relation::Index),
        1 => sequences().prop_map(|sequence| Relation::Sequence(Arc::new(sequence))),
    ]
}

proptest! {
    #[test]
    fn a_descriptor_is_read_as_it_was_written(relation in relations()) {
        prop_assert_eq!(Relation::from_bytes(&relation.to_bytes()), Ok(relation));
    }

    #[test]
    fn any_bytes_are_a_descriptor_or_an_error(
        kind in 0u8..5,
        bytes in proptest::collection::vec(any::<u8>(), 0..90),
    ) {
        let bytes = [&[kind][..], &bytes].concat();
        if let Ok(relation) = Relation::from_bytes(&bytes) {
            prop_assert_eq!(relation.to_bytes(), bytes);
        }
    }
}

proptest! {
    // Each case goes over all bits.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_torn_descriptor_is_an_error_or_another_one(relation in relations()) {
        let bytes = relation.to_bytes();
        for end in 0..bytes.len() {
            prop_assert!(Relation::from_bytes(&bytes[..end]).is_err());
        }
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            if let Ok(relation) = Relation::from_bytes(&other) {
                prop_assert_eq!(relation.to_bytes(), other);
            }
        }
    }
}

#[test]
fn descriptors_of_a_schema_lie_together_and_apart_from_the_next_number() {
    let within = |schema: Option<&str>, key: &[u8]| {
        let low = descriptors_prefix(schema);
        let high = after_prefix(&low).expect("there are keys above");
        low.as_slice() <= key && key < high.as_slice()
    };
    for name in ["", "a", "t", "\u{10ffff}"] {
        let key = descriptor_key("public", name);
        assert!(within(None, &key) && within(Some("public"), &key));
        assert!(!within(Some("publi"), &key) && !within(Some("public2"), &key));
    }
    assert!(!within(None, &next_id_key()));
    assert_ne!(descriptor_key("a", "bc"), descriptor_key("ab", "c"));
    assert_eq!(read_next_id(&write_next_id(16_384)), Ok(16_384));
    assert!(read_next_id(&[0, 0, 64]).is_err() && read_next_id(&[0; 5]).is_err());
}
