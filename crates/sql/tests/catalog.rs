//! The relations of the catalog beside PostgreSQL's: their columns, in its own words, and what
//! psql makes of them.

mod common;

use std::collections::BTreeMap;

use common::postgres::Postgres;
use common::{plimsoll, psql, written};

/// All columns of all relations of the catalog, with what they are; of domains the type below.
const COLUMNS: &str = "
    SELECT n.nspname || '.' || c.relname,
           c.relkind, CASE WHEN c.relkind = 'r' THEN c.oid END, a.attnum, a.attname,
           coalesce(b.typname, t.typname), a.attlen, a.attbyval, a.attalign, a.attnotnull
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
      JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
      LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
     WHERE n.nspname IN ('pg_catalog', 'information_schema')
       AND c.relkind IN ('r', 'v') AND a.attnum > 0
     ORDER BY 1, 4";

fn columns(port: u16) -> BTreeMap<String, Vec<String>> {
    let output = psql(port, &["-At", "-c", COLUMNS], "");
    assert!(output.status.success(), "{}", written(&output, port));
    let mut relations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("UTF-8").lines() {
        let (relation, column) = line.split_once('|').expect("columns");
        relations.entry(relation.to_owned()).or_default().push(column.to_owned());
    }
    relations
}

#[test]
fn relations_of_the_catalog_have_the_columns_of_postgresql() {
    let Some(postgres) = Postgres::start() else { return };
    let (ours, theirs) = (columns(plimsoll()), columns(postgres.port));
    assert!(ours.len() > 100, "{} relations", ours.len());
    for (relation, columns) in &ours {
        assert_eq!(Some(columns), theirs.get(relation), "{relation}");
    }
}

/// What psql asks for by its own commands.
const COMMANDS: &[&str] = &[
    "\\d",
    "\\d account",
    "\\d+ account",
    "\\d entry",
    "\\d+ entry",
    "\\d plain",
    "\\d plain_i",
    "\\dt",
    "\\dt pl*",
    "\\di",
    "\\dn",
    "\\du",
    "\\dg",
    "\\dT",
    "\\df abs",
    "\\dv",
    "\\ds",
    "\\dm",
    "\\dp",
    "\\d nosuch",
    "\\dt nosuch",
    "\\d public.plain",
    "\\dS plain",
    "\\db",
    "\\ddp",
    "\\dE",
    "\\des",
    "\\det",
    "\\dew",
    "\\deu",
    "\\dc",
    "\\dD",
    "\\dP",
    "\\dX",
    "\\dO",
    "\\drds",
    "\\dRp",
    "\\dtS pg_class",
    "\\dy",
    "\\dconfig datestyle",
    "\\sf abs",
    "\\dl",
];

#[test]
fn psql_describes_what_there_is_as_it_does_in_postgresql() {
    let Some(postgres) = Postgres::start() else { return };
    let port = plimsoll();
    let tables = include_str!("scripts/catalog.sql").split("-- Queries").next().expect("tables");
    for port in [port, postgres.port] {
        let made = psql(port, &["-v", "ON_ERROR_STOP=1"], tables);
        assert!(made.status.success(), "{}", written(&made, port));
    }
    let mut differences = Vec::new();
    for command in COMMANDS {
        let [ours, theirs] =
            [port, postgres.port].map(|port| written(&psql(port, &["-c", command], ""), port));
        if ours != theirs {
            differences.push(format!("{command}\n{ours}PostgreSQL:\n{theirs}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
