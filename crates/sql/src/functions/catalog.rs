//! Functions that look at the catalog: names, definitions, what is visible, who may do what.
//!
//! What this database has not (comments, triggers, partitions) these functions do not find, as in
//! a PostgreSQL that has none. All sessions may do all, since roles have no rights here.

use std::sync::Arc;

use super::system::with_modifier;
use super::{Body, Call, Outcome, Rows, confused, sets};
use crate::catalog::pg::builtin::form_function;
use crate::catalog::pg::definitions::{self, Key};
use crate::catalog::pg::{Class, Naming, Objects, numbers, path_of};
use crate::types::{Array, Datum, Names as _, Oid};
use crate::{SqlError, SqlState};

fn objects(call: &Call<'_>) -> Result<Arc<Objects>, SqlError> {
    call.context.catalog.objects()
}

fn search_path(call: &Call<'_>) -> String {
    call.context.catalog.setting("search_path").unwrap_or_default()
}

fn naming(call: &Call<'_>) -> Result<Naming, SqlError> {
    Ok(Naming::new(objects(call)?, call.context.catalog))
}

fn identifier(call: &Call<'_>, place: usize) -> Result<u32, SqlError> {
    match call.at(place) {
        Datum::Oid(oid) => Ok(*oid),
        _ => Err(confused()),
    }
}

/// What is not known here, or cannot be: NULL.
pub fn unknown(_call: &Call<'_>) -> Outcome {
    Ok(Datum::Null)
}

/// A text that there is none of: a comment, the definition of a view, a trigger or a function.
pub fn no_text(_call: &Call<'_>) -> Outcome {
    Ok(Datum::Null)
}

/// `pg_tablespace_location()`
pub fn empty_text(_call: &Call<'_>) -> Outcome {
    Ok(Datum::text(""))
}

/// `pg_my_temp_schema()`
pub fn no_oid(_call: &Call<'_>) -> Outcome {
    Ok(Datum::Oid(0))
}

/// What returns nothing and has nothing to do.
pub fn nothing(_call: &Call<'_>) -> Outcome {
    Ok(Datum::text(""))
}

/// `pg_blocking_pids()`
pub fn no_pids(_call: &Call<'_>) -> Outcome {
    Ok(Array::flat(Oid::INT4, Vec::new()))
}

/// A set that is empty.
pub fn no_rows(_call: &Call<'_>) -> Result<Rows, SqlError> {
    Ok(sets::of(Vec::new()))
}

/// `has_table_privilege()` and its kin.
pub fn may(_call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(true))
}

/// `pg_table_is_visible()`: whether the name alone means the relation.
pub fn is_table_visible(call: &Call<'_>) -> Outcome {
    let objects = objects(call)?;
    let Some(class) = objects.class(identifier(call, 0)?) else { return Ok(Datum::Null) };
    let path = path_of(&search_path(call));
    let first = path.iter().find_map(|schema| objects.class_named(*schema, class.name()));
    Ok(Datum::Bool(first.is_some_and(|first| first.oid() == class.oid())))
}

/// `pg_type_is_visible()` and its kin: what is not in `pg_catalog` is a table's.
pub fn is_visible(call: &Call<'_>) -> Outcome {
    let oid = identifier(call, 0)?;
    let Some((table, _)) = numbers::table_of_type(oid) else { return Ok(Datum::Bool(true)) };
    let path = path_of(&search_path(call));
    Ok(match objects(call)?.table(table) {
        Some(table) => {
            Datum::Bool(numbers::schema_of(&table.schema).is_some_and(|schema| path.contains(&schema)))
        }
        None => Datum::Null,
    })
}

/// `pg_get_userbyid()`
pub fn role_name(call: &Call<'_>) -> Outcome {
    let role = identifier(call, 0)?;
    Ok(match numbers::role_name(role, call.context.catalog.user()) {
        Some(name) => Datum::text(name),
        None => Datum::text(format!("unknown (OID={role})")),
    })
}

/// `format_type()`
pub fn format_type(call: &Call<'_>) -> Outcome {
    let Datum::Oid(oid) = call.at(0) else { return Ok(Datum::Null) };
    let modifier = if call.at(1).is_null() { -1 } else { call.int4(1)? };
    if Oid(*oid).definition().is_some() || Oid(*oid).is_array() {
        return Ok(Datum::text(with_modifier(Oid(*oid), modifier)));
    }
    if *oid == 0 {
        return Ok(Datum::text("-"));
    }
    let name = naming(call)?.name_of(Oid::REGTYPE, *oid);
    Ok(Datum::text(name.unwrap_or_else(|| "???".to_owned())))
}

/// `pg_get_expr()`: expressions are kept as texts.
pub fn expression(call: &Call<'_>) -> Outcome {
    Ok(call.at(0).clone())
}

/// What an argument of a function says of whether its text is for people.
fn is_pretty(call: &Call<'_>) -> bool {
    call.arguments.last() == Some(&Datum::Bool(true))
}

/// `pg_get_indexdef()`
pub fn index_definition(call: &Call<'_>) -> Outcome {
    let objects = objects(call)?;
    let Some(key) = objects.class(identifier(call, 0)?).as_ref().and_then(Key::of) else {
        return Ok(Datum::Null);
    };
    let column = if call.count() > 1 { call.integer(1)? } else { 0 };
    Ok(Datum::text(match usize::try_from(column) {
        Ok(0) if is_pretty(call) => key.definition(&naming(call)?.class_name(&Class::Table(key.table))),
        Ok(0) => key.definition(&definitions::qualified(key.table)),
        Ok(column) => key.column(column).unwrap_or_default(),
        Err(_) => String::new(),
    }))
}

/// `pg_get_constraintdef()`
pub fn constraint_definition(call: &Call<'_>) -> Outcome {
    let oid = identifier(call, 0)?;
    let objects = objects(call)?;
    for table in objects.tables() {
        if let Some(check) = table.checks.iter().find(|check| check.id == oid) {
            return Ok(Datum::text(definitions::check(&check.condition, is_pretty(call))));
        }
        if let Some(key) = Key::all(table).iter().find(|key| numbers::constraint_of(key.id) == oid) {
            return Ok(Datum::text(key.constraint()));
        }
        if let Some(reference) = table.references.iter().find(|reference| reference.id == oid) {
            let target = objects.table_named(&reference.to_schema, &reference.to_table);
            let naming = naming(call)?;
            let to = target.map_or_else(String::new, |target| naming.class_name(&Class::Table(target)));
            return Ok(Datum::text(definitions::reference(table, reference, &objects, &to)));
        }
    }
    Ok(Datum::Null)
}

/// `pg_get_function_arguments()`
pub fn function_arguments(call: &Call<'_>) -> Outcome {
    let oid = identifier(call, 0)?;
    let Some(function) = super::function(oid) else {
        let form = form_function(oid).map(|form| {
            let types = form.arguments.iter().map(|oid| Oid(*oid).display());
            Datum::text(types.collect::<Vec<String>>().join(", "))
        });
        return Ok(form.unwrap_or(Datum::Null));
    };
    let last = function.arguments.len().saturating_sub(1);
    let shown = function.arguments.iter().enumerate().map(|(place, oid)| {
        let mark = if function.variadic && place == last { "VARIADIC " } else { "" };
        format!("{mark}{}", oid.display())
    });
    Ok(Datum::text(shown.collect::<Vec<String>>().join(", ")))
}

/// `pg_get_function_result()`
pub fn function_result(call: &Call<'_>) -> Outcome {
    let oid = identifier(call, 0)?;
    let Some(function) = super::function(oid) else {
        return Ok(form_function(oid).map_or(Datum::Null, |form| Datum::text(Oid(form.result).display())));
    };
    let set = if matches!(function.body, Body::Set(_)) { "SETOF " } else { "" };
    Ok(Datum::text(format!("{set}{}", function.result.display())))
}

/// `pg_relation_is_publishable()`
pub fn is_table(call: &Call<'_>) -> Outcome {
    let class = identifier(call, 0)?;
    Ok(match objects(call)?.class(class) {
        Some(class) => Datum::Bool(matches!(class, Class::Table(_))),
        None => Datum::Null,
    })
}

/// `pg_relation_is_updatable()`: by `INSERT`, `UPDATE` and `DELETE`, as bits.
pub fn updatable(call: &Call<'_>) -> Outcome {
    let class = identifier(call, 0)?;
    Ok(Datum::Int4(match objects(call)?.class(class) {
        Some(Class::Table(_)) => 1 << 2 | 1 << 3 | 1 << 4,
        _ => 0,
    }))
}

/// `pg_column_is_updatable()`
pub fn is_updatable(call: &Call<'_>) -> Outcome {
    let class = identifier(call, 0)?;
    Ok(Datum::Bool(matches!(objects(call)?.class(class), Some(Class::Table(_)))))
}

/// `pg_relation_filenode()`: no file, so the number itself.
pub fn file_of(call: &Call<'_>) -> Outcome {
    let class = identifier(call, 0)?;
    Ok(objects(call)?.class(class).map_or(Datum::Null, |_| Datum::Oid(class)))
}

/// `pg_relation_size()` and its kin: what tables take is not counted by table, so 0.
pub fn size(_call: &Call<'_>) -> Outcome {
    Ok(Datum::Int8(0))
}

/// `pg_char_to_encoding()`
pub fn encoding_number(call: &Call<'_>) -> Outcome {
    let name: String = call.text(0)?.chars().filter(char::is_ascii_alphanumeric).collect();
    Ok(Datum::Int4(match name.to_ascii_lowercase().as_str() {
        "sqlascii" => 0,
        "utf8" | "unicode" => 6,
        _ => -1,
    }))
}

/// `pg_encoding_max_length()`
pub fn encoding_length(call: &Call<'_>) -> Outcome {
    Ok(match call.integer(0)? {
        0 => Datum::Int4(1),
        6 => Datum::Int4(4),
        _ => Datum::Null,
    })
}

/// `regclass()`, which casts of texts call.
pub fn reference(call: &Call<'_>) -> Outcome {
    let text = call.text(0)?;
    if let Ok(number) = text.trim().parse() {
        return Ok(Datum::Oid(number));
    }
    naming(call)?.oid_of(call.result, text).map(Datum::Oid)
}

/// `to_regclass()` and its kin: NULL if there is no such thing.
pub fn to_reference(call: &Call<'_>) -> Outcome {
    let text = call.text(0)?;
    if text.trim().bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Datum::Null);
    }
    match naming(call)?.oid_of(call.result, text) {
        Ok(oid) => Ok(Datum::Oid(oid)),
        Err(error) if error.state == SqlState::INVALID_NAME => Err(error),
        Err(_) => Ok(Datum::Null),
    }
}

/// `_pg_expandarray()`: elements with their numbers from 1 on.
pub fn expanded_array(call: &Call<'_>) -> Result<Rows, SqlError> {
    let array = Arc::clone(call.array(0)?);
    let mut place = 0;
    Ok(Box::new(move || {
        let element = array.elements.get(place).cloned();
        place += 1;
        let number = i32::try_from(place).map_err(|_| confused())?;
        Ok(element.map(|element| {
            Datum::Record(Arc::from([(array.element, element), (Oid::INT4, Datum::Int4(number))]))
        }))
    }))
}

/// `pg_get_keywords()`: the words that names have to be quoted for.
pub fn keywords(_call: &Call<'_>) -> Result<Rows, SqlError> {
    let row = |word: &str| {
        Datum::Record(Arc::from([
            (Oid::TEXT, Datum::text(word)),
            (Oid::CHAR, Datum::Char(b'R')),
            (Oid::BOOL, Datum::Bool(true)),
            (Oid::TEXT, Datum::text("reserved")),
            (Oid::TEXT, Datum::text("can be bare label")),
        ]))
    };
    Ok(sets::of(super::composing::keywords().map(row).collect()))
}
