//! Names of identifiers, and identifiers of names: the text forms of `regclass` and its kin.

use std::sync::Arc;

use super::builtin::{FORM_FUNCTIONS, form_function};
use super::{Class, Objects, numbers};
use crate::analyze::Catalog;
use crate::functions::composing::quoted_identifier;
use crate::functions::{self, operators};
use crate::types::{Names, Oid};
use crate::{SqlError, SqlState};

/// What a session calls things: those that its transaction sees, along its search path.
#[derive(Debug)]
pub struct Naming {
    objects: Arc<Objects>,
    /// Identifiers of the schemas that are looked through, in their order.
    path: Vec<u32>,
    user: String,
}

/// The schemas of a search path that there are, in the order in which they are looked through.
pub fn path_of(setting: &str) -> Vec<u32> {
    let names = setting.split(',').map(|name| name.trim().trim_matches('"'));
    let mut path: Vec<u32> = names.filter_map(numbers::schema_of).collect();
    if !path.contains(&numbers::PG_CATALOG) {
        path.insert(0, numbers::PG_CATALOG);
    }
    path
}

/// The parts of a name with dots, each in lower case unless it is quoted.
pub fn parts_of(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let part = if let Some(inside) = rest.strip_prefix('"') {
            let mut part = String::new();
            let mut chars = inside.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (_, '"') if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                        part.push('"');
                        chars.next();
                    }
                    (place, '"') => break place + 1,
                    (_, other) => part.push(other),
                }
            };
            rest = inside.get(end..)?;
            part
        } else {
            let end = rest.find(|c: char| c == '.' || c.is_whitespace()).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            rest = after;
            part.to_ascii_lowercase()
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() => return Some(parts),
            None => return None,
        }
    }
}

fn missing<T>(state: SqlState, what: &str, name: &str) -> Result<T, SqlError> {
    Err(SqlError::new(state, format!("{what} \"{name}\" does not exist")))
}

impl Naming {
    /// Names among these, as a session sees them.
    pub fn new(objects: Arc<Objects>, session: &dyn Catalog) -> Naming {
        let search_path = session.setting("search_path").unwrap_or_default();
        Naming { objects, path: path_of(&search_path), user: session.user().to_owned() }
    }

    /// What has a name in `pg_class`, in a schema or along the search path.
    fn class(&self, parts: &[String]) -> Option<Class<'_>> {
        match parts {
            [name] => self.path.iter().find_map(|schema| self.objects.class_named(*schema, name)),
            [.., schema, name] => self.objects.class_named(numbers::schema_of(schema)?, name),
            [] => None,
        }
    }

    fn is_visible(&self, class: &Class<'_>) -> bool {
        let first = self.path.iter().find_map(|schema| self.objects.class_named(*schema, class.name()));
        first.is_some_and(|first| first.oid() == class.oid())
    }

    /// A relation's name, with its schema if it would not be found without.
    pub fn class_name(&self, class: &Class<'_>) -> String {
        let name = quoted_identifier(class.name());
        match numbers::schema_name(class.schema()) {
            Some(schema) if !self.is_visible(class) => format!("{schema}.{name}"),
            _ => name,
        }
    }
}

impl Names for Naming {
    fn name_of(&self, kind: Oid, oid: u32) -> Option<String> {
        match kind {
            Oid::REGCLASS => self.objects.class(oid).map(|class| self.class_name(&class)),
            Oid::REGTYPE => {
                let (table, is_array) = numbers::table_of_type(oid)?;
                let name = self.class_name(&Class::Table(self.objects.table(table)?));
                Some(if is_array { format!("{name}[]") } else { name })
            }
            Oid::REGPROC => function_name(oid),
            Oid::REGPROCEDURE => {
                let function = functions::function(oid)?;
                let types: Vec<String> = function.arguments.iter().map(|oid| oid.display()).collect();
                Some(format!("{}({})", function.name, types.join(",")))
            }
            Oid::REGOPER => {
                let operator = operators::OPERATORS.iter().find(|operator| operator.oid == oid)?;
                let count = operators::OPERATORS.iter().filter(|other| other.name == operator.name).count();
                let schema = if count > 1 { "pg_catalog." } else { "" };
                Some(format!("{schema}{}", operator.name))
            }
            Oid::REGNAMESPACE => numbers::schema_name(oid).map(quoted_identifier),
            Oid::REGROLE => numbers::role_name(oid, &self.user).map(quoted_identifier),
            _ => None,
        }
    }

    fn oid_of(&self, kind: Oid, name: &str) -> Result<u32, SqlError> {
        let invalid = || SqlError::new(SqlState::INVALID_NAME, "invalid name syntax");
        match kind {
            Oid::REGCLASS => {
                let parts = parts_of(name).ok_or_else(invalid)?;
                if parts.len() > 3 {
                    let error = "improper relation name (too many dotted names)";
                    let error = format!("{error}: {}", parts.join("."));
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, error));
                }
                let class = self.class(&parts);
                class
                    .map(|class| class.oid())
                    .map_or_else(|| missing(SqlState::UNDEFINED_TABLE, "relation", &parts.join(".")), Ok)
            }
            Oid::REGTYPE => {
                let (base, is_array) = match name.strip_suffix("[]") {
                    Some(base) => (base, true),
                    None => (name, false),
                };
                let parts = parts_of(base).ok_or_else(invalid)?;
                let (parts, is_array) = match self.class(&parts) {
                    Some(Class::Table(table)) => {
                        let of = if is_array { numbers::row_array } else { numbers::row_type };
                        return Ok(of(table.id));
                    }
                    _ => (parts, is_array),
                };
                let shown = parts.join(".");
                let shown = if is_array { format!("{shown}[]") } else { shown };
                missing(SqlState::UNDEFINED_OBJECT, "type", &shown)
            }
            Oid::REGPROC => {
                let parts = parts_of(name).ok_or_else(invalid)?;
                function_named(&parts, name)
            }
            Oid::REGPROCEDURE => procedure_named(name),
            Oid::REGOPER => {
                let symbol = name.rsplit_once('.').map_or(name, |(_, symbol)| symbol);
                let mut found = operators::OPERATORS.iter().filter(|operator| operator.name == symbol);
                match (found.next(), found.next()) {
                    (Some(only), None) => Ok(only.oid),
                    (None, _) => {
                        let error = format!("operator does not exist: {name}");
                        Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, error))
                    }
                    _ => {
                        let error = format!("more than one operator named {name}");
                        Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, error))
                    }
                }
            }
            Oid::REGNAMESPACE => {
                let parts = parts_of(name).ok_or_else(invalid)?;
                let [only] = parts.as_slice() else { return Err(invalid()) };
                numbers::schema_of(only)
                    .map_or_else(|| missing(SqlState::UNDEFINED_SCHEMA, "schema", only), Ok)
            }
            Oid::REGROLE => {
                let parts = parts_of(name).ok_or_else(invalid)?;
                let [only] = parts.as_slice() else { return Err(invalid()) };
                numbers::role_of(only, &self.user)
                    .map_or_else(|| missing(SqlState::UNDEFINED_OBJECT, "role", only), Ok)
            }
            _ => Err(functions::confused()),
        }
    }
}

/// A function's name, with its schema if several have it.
fn function_name(oid: u32) -> Option<String> {
    let name = match functions::function(oid) {
        Some(function) => function.name,
        None => form_function(oid)?.name,
    };
    let shown = quoted_identifier(name);
    Some(if functions::named(name).len() > 1 { format!("pg_catalog.{shown}") } else { shown })
}

/// The function of a name that only one has.
fn function_named(parts: &[String], shown: &str) -> Result<u32, SqlError> {
    let name = match parts {
        [name] => name,
        [schema, name] if schema == "pg_catalog" => name,
        _ => return missing(SqlState::UNDEFINED_FUNCTION, "function", shown),
    };
    match functions::named(name) {
        [only] => Ok(only.oid),
        [] => match FORM_FUNCTIONS.iter().find(|function| function.name == name) {
            Some(function) => Ok(function.oid),
            None => missing(SqlState::UNDEFINED_FUNCTION, "function", shown),
        },
        _ => {
            let error = format!("more than one function named \"{shown}\"");
            Err(SqlError::new(SqlState::AMBIGUOUS_FUNCTION, error))
        }
    }
}

/// The function of a name with its types: `abs(integer)`.
fn procedure_named(text: &str) -> Result<u32, SqlError> {
    let none = || missing(SqlState::UNDEFINED_FUNCTION, "function", text);
    let Some((name, types)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        let error = "expected a left parenthesis";
        return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, error));
    };
    let Some(parts) = parts_of(name) else { return none() };
    let name = match parts.as_slice() {
        [name] => name,
        [schema, name] if schema == "pg_catalog" => name,
        _ => return none(),
    };
    let style = crate::types::Style::default();
    let mut wanted = Vec::new();
    for word in types.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match crate::types::parse(Oid::REGTYPE, word, &style)? {
            crate::types::Datum::Oid(oid) => wanted.push(Oid(oid)),
            _ => return Err(functions::confused()),
        }
    }
    functions::named(name)
        .iter()
        .find(|function| function.arguments == wanted.as_slice())
        .map_or_else(none, |function| Ok(function.oid))
}
