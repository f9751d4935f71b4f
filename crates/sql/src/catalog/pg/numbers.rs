//! Identifiers: PostgreSQL's own, and those of what has no number of its own.
//!
//! A table, an index or a sequence has a number. The type of a table's rows or the constraint of an
//! index has the same number with a mark, so that it stays the same from one transaction to the
//! next. All are below 2^31, because some clients read them as signed.

/// The schema `pg_catalog`.
pub const PG_CATALOG: u32 = 11;
/// The schema `pg_toast`.
pub const PG_TOAST: u32 = 99;
/// The schema `public`.
pub const PUBLIC: u32 = 2200;
/// The schema `information_schema`.
pub const INFORMATION_SCHEMA: u32 = 13207;

/// The schema `plimsoll`.
pub const PLIMSOLL: u32 = 16_300;

/// The role that all is owned by.
pub const OWNER: u32 = 10;
/// The current user, if it is not the owner.
pub const GUEST: u32 = 16_383;
/// The role that stands for a database's owner: that of `public`.
pub const DATABASE_OWNER: u32 = 6171;
/// The current database.
pub const DATABASE: u32 = 5;
/// The tablespace of all tables.
pub const TABLESPACE: u32 = 1663;
/// The access method of tables.
pub const HEAP: u32 = 2;
/// The access method of indexes.
pub const BTREE: u32 = 403;
/// The language of functions.
pub const INTERNAL: u32 = 12;
/// The language of SQL.
pub const SQL: u32 = 14;
/// The collation of strings.
pub const DEFAULT_COLLATION: u32 = 100;
/// The collation `C`.
pub const C_COLLATION: u32 = 950;

/// `pg_class`
pub const PG_CLASS: u32 = 1259;

const CONSTRAINT: u32 = 2 << 28;
const ROW_TYPE: u32 = 3 << 28;
const ROW_ARRAY: u32 = 4 << 28;
const DEFAULTS: u32 = 5 << 28;
const BELOW: u32 = (1 << 28) - 1;

/// The constraint that has an index.
pub fn constraint_of(index: u32) -> u32 {
    CONSTRAINT | index & BELOW
}

/// The type of a table's rows.
pub fn row_type(table: u32) -> u32 {
    ROW_TYPE | table & BELOW
}

/// The type of arrays of a table's rows.
pub fn row_array(table: u32) -> u32 {
    ROW_ARRAY | table & BELOW
}

/// The default of a column, which is numbered from 1 on.
pub fn default_of(table: u32, column: i16) -> u32 {
    let column = u32::from(column.unsigned_abs());
    DEFAULTS | table.wrapping_mul(1601).wrapping_add(column) & BELOW
}

/// The table whose rows have a type, and whether it is the type of arrays of them.
pub fn table_of_type(oid: u32) -> Option<(u32, bool)> {
    match oid & !BELOW {
        ROW_TYPE => Some((oid & BELOW, false)),
        ROW_ARRAY => Some((oid & BELOW, true)),
        _ => None,
    }
}

/// The identifier of a schema.
pub fn schema_of(name: &str) -> Option<u32> {
    SCHEMAS.iter().find(|(_, known)| *known == name).map(|(oid, _)| *oid)
}

/// The name of a schema.
pub fn schema_name(oid: u32) -> Option<&'static str> {
    SCHEMAS.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name)
}

/// All schemas.
pub const SCHEMAS: [(u32, &str); 5] = [
    (PG_TOAST, "pg_toast"),
    (PG_CATALOG, "pg_catalog"),
    (PUBLIC, "public"),
    (INFORMATION_SCHEMA, "information_schema"),
    (PLIMSOLL, "plimsoll"),
];

/// A column's number.
pub fn column(place: usize) -> i16 {
    i16::try_from(place + 1).unwrap_or(i16::MAX)
}

/// The name of a role, as a user sees it.
pub fn role_name(oid: u32, user: &str) -> Option<&str> {
    match oid {
        OWNER => Some("postgres"),
        DATABASE_OWNER => Some("pg_database_owner"),
        GUEST if user != "postgres" => Some(user),
        _ => None,
    }
}

/// The identifier of a role.
pub fn role_of(name: &str, user: &str) -> Option<u32> {
    [OWNER, DATABASE_OWNER, GUEST].into_iter().find(|oid| role_name(*oid, user) == Some(name))
}
