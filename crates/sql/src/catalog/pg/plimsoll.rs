//! The schema `plimsoll`: what the node of a session knows of nodes, sessions, transactions, rows
//! that are reserved, and statements.
//!
//! What is told is that of one node, the one that the client is connected to: its sessions share
//! it ([`NodeSight`]). It is what is so when the query reads it, and not at the transaction's
//! snapshot, so a transaction that has read it is not run again.

use std::net::SocketAddr;

use super::{NULL, Row, Sight, relations, text, yes};
use crate::catalog::owners::{owner_of, shown_key};
use crate::types::time::zone::EPOCH_US;
use crate::types::{Array, Datum, Oid, Style};

/// Microseconds in a millisecond.
const US_PER_MS: f64 = 1_000.0;

#[rustfmt::skip]
relations! { PLIMSOLL:
    16301 16302 b'v' "locks" locks (Node):
        schema_name TEXT, table_name TEXT, key TEXT, pid INT4, waiters INT4_ARRAY;
    16303 16304 b'v' "nodes" nodes (Node):
        id INT4, address TEXT, shards INT4, is_connected BOOL, is_this BOOL;
    16305 16306 b'v' "sessions" sessions (Node):
        pid INT4, user_name TEXT, database TEXT, application_name TEXT, client TEXT,
        began TIMESTAMPTZ, state TEXT, state_changed TIMESTAMPTZ, statement TEXT,
        statement_began TIMESTAMPTZ, is_waiting BOOL;
    16311 16312 b'v' "snapshots" snapshots (Node):
        snapshot INT8, taken TIMESTAMPTZ, age_ms FLOAT8, pid INT4, application_name TEXT;
    16307 16308 b'v' "statements" statements (Node):
        statement TEXT, calls INT8, rows INT8, total_ms FLOAT8, mean_ms FLOAT8, max_ms FLOAT8,
        aborts INT8, repeats INT8;
    16309 16310 b'v' "transactions" transactions (Node):
        pid INT4, application_name TEXT, began TIMESTAMPTZ, age_ms FLOAT8, snapshot INT8,
        rows_reserved INT8;
}

/// What a session's node knows.
pub trait NodeSight {
    /// The nodes of the database; none if they are not known.
    fn nodes(&self) -> Vec<ShownNode>;

    /// The node's sessions, by number.
    fn sessions(&self) -> Vec<ShownSession>;

    /// The rows that they have reserved, by key.
    fn locks(&self) -> Vec<ShownLock>;

    /// What statements have taken that they have run.
    fn statements(&self) -> Vec<ShownStatement>;
}

/// A node.
#[derive(Clone, Debug)]
pub struct ShownNode {
    /// Its number.
    pub id: u16,
    /// The address at which other nodes reach it.
    pub address: String,
    /// How many shards it has.
    pub shards: usize,
    /// Whether this node is connected to it, or is it.
    pub is_connected: bool,
    /// Whether it is this node.
    pub is_this: bool,
}

/// What a session is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionState {
    /// It carries out a statement.
    Active,
    /// It waits for its client.
    Idle,
    /// It waits for its client in a block.
    InBlock,
    /// It waits for its client in a block that has failed.
    Failed,
}

impl SessionState {
    /// The state as `pg_stat_activity` names it.
    pub fn name(self) -> &'static str {
        match self {
            SessionState::Active => "active",
            SessionState::Idle => "idle",
            SessionState::InBlock => "idle in transaction",
            SessionState::Failed => "idle in transaction (aborted)",
        }
    }
}

/// A session as others see it. Times are in microseconds since 2000-01-01.
#[derive(Clone, Debug)]
pub struct ShownSession {
    /// Its number.
    pub pid: u32,
    /// Its user.
    pub user: String,
    /// Its database.
    pub database: String,
    /// What its client calls itself.
    pub application: String,
    /// Where its client is, if that is known.
    pub client: Option<SocketAddr>,
    /// When it began.
    pub begun_us: i64,
    /// What it is doing.
    pub state: SessionState,
    /// Since when.
    pub changed_us: i64,
    /// The statement that it runs, or has run last; its first bytes if it is long.
    pub statement: String,
    /// When the statement began; none if there was no statement.
    pub statement_us: Option<i64>,
    /// When the database's transaction began; none if there is none.
    pub transaction_us: Option<i64>,
    /// The timestamp that it reads at, if there is one.
    pub snapshot: Option<u64>,
    /// How many rows it has reserved.
    pub reserved: usize,
    /// Whether it waits for a row that another session has reserved.
    pub is_waiting: bool,
}

/// A row that is reserved.
#[derive(Clone, Debug)]
pub struct ShownLock {
    /// Its key in the database.
    pub key: Vec<u8>,
    /// The session that has it.
    pub holder: u32,
    /// The sessions that wait for it, in their order.
    pub waiters: Vec<u32>,
}

/// A statement without its literals, and what all runs of it have taken.
#[derive(Clone, Debug)]
pub struct ShownStatement {
    /// Its text.
    pub text: String,
    /// How often it was run.
    pub calls: u64,
    /// How many rows it has returned or written.
    pub rows: u64,
    /// How long all runs took, in microseconds.
    pub total_us: u64,
    /// How long the longest took.
    pub max_us: u64,
    /// How often its client got a serialization failure.
    pub aborts: u64,
    /// How often it, or its transaction, was run again.
    pub repeats: u64,
}

fn int8(value: impl TryInto<i64>) -> Datum {
    Datum::Int8(value.try_into().unwrap_or(i64::MAX))
}

fn pid(value: u32) -> Datum {
    super::int4(value)
}

fn time(us: Option<i64>) -> Datum {
    us.map_or(NULL, Datum::TimestampTz)
}

fn milliseconds(us: u64) -> f64 {
    us as f64 / US_PER_MS
}

/// `plimsoll.nodes`
fn nodes(sight: &Sight<'_>) -> Vec<Row> {
    let nodes = sight.session.node().map_or_else(Vec::new, NodeSight::nodes);
    let row = |node: ShownNode| {
        let ShownNode { id, address, shards, is_connected, is_this } = node;
        vec![super::int4(id), text(address), super::int4(shards), yes(is_connected), yes(is_this)]
    };
    nodes.into_iter().map(row).collect()
}

/// `plimsoll.sessions`
fn sessions(sight: &Sight<'_>) -> Vec<Row> {
    let sessions = sight.session.node().map_or_else(Vec::new, NodeSight::sessions);
    let row = |it: ShownSession| {
        vec![
            pid(it.pid),
            text(it.user),
            text(it.database),
            text(it.application),
            it.client.map_or(NULL, |client| text(client.to_string())),
            time(Some(it.begun_us)),
            text(it.state.name()),
            time(Some(it.changed_us)),
            text(it.statement),
            time(it.statement_us),
            yes(it.is_waiting),
        ]
    };
    sessions.into_iter().map(row).collect()
}

/// `plimsoll.transactions`
fn transactions(sight: &Sight<'_>) -> Vec<Row> {
    let sessions = sight.session.node().map_or_else(Vec::new, NodeSight::sessions);
    let now_us = sight.session.now_us();
    let row = |it: ShownSession| {
        let begun_us = it.transaction_us?;
        let age_us = u64::try_from(now_us.saturating_sub(begun_us)).unwrap_or(0);
        Some(vec![
            pid(it.pid),
            text(it.application),
            time(Some(begun_us)),
            Datum::Float8(milliseconds(age_us)),
            it.snapshot.map_or(NULL, int8),
            int8(it.reserved),
        ])
    };
    sessions.into_iter().filter_map(row).collect()
}

/// `plimsoll.snapshots`
fn snapshots(sight: &Sight<'_>) -> Vec<Row> {
    let sessions = sight.session.node().map_or_else(Vec::new, NodeSight::sessions);
    let now_us = sight.session.now_us();
    let row = |it: ShownSession| {
        let snapshot = it.snapshot?;
        let taken_us = i64::try_from(snapshot / 1_000).ok()?.checked_sub(EPOCH_US)?;
        let age_us = u64::try_from(now_us.saturating_sub(taken_us)).unwrap_or(0);
        Some(vec![
            int8(snapshot),
            time(Some(taken_us)),
            Datum::Float8(milliseconds(age_us)),
            pid(it.pid),
            text(it.application),
        ])
    };
    sessions.into_iter().filter_map(row).collect()
}

/// `plimsoll.locks`
fn locks(sight: &Sight<'_>) -> Vec<Row> {
    let locks = sight.session.node().map_or_else(Vec::new, NodeSight::locks);
    let style = Style::default();
    let row = |ShownLock { key, holder, waiters }: ShownLock| {
        let owner = owner_of(sight.objects.tables().iter(), &key);
        let shown = owner.and_then(|(table, place)| {
            shown_key(table, place.and_then(|place| table.indexes.get(place)), &key, &style)
        });
        let name = |of: fn(&crate::catalog::Table) -> &String| {
            owner.map_or(NULL, |(table, _)| text(of(table).as_str()))
        };
        vec![
            name(|table| &table.schema),
            name(|table| &table.name),
            shown.map_or(NULL, text),
            pid(holder),
            Array::flat(Oid::INT4, waiters.into_iter().map(pid).collect()),
        ]
    };
    locks.into_iter().map(row).collect()
}

/// `plimsoll.statements`
fn statements(sight: &Sight<'_>) -> Vec<Row> {
    let statements = sight.session.node().map_or_else(Vec::new, NodeSight::statements);
    let row = |it: ShownStatement| {
        let mean_us = it.total_us.checked_div(it.calls).unwrap_or(0);
        vec![
            text(it.text),
            int8(it.calls),
            int8(it.rows),
            Datum::Float8(milliseconds(it.total_us)),
            Datum::Float8(milliseconds(mean_us)),
            Datum::Float8(milliseconds(it.max_us)),
            int8(it.aborts),
            int8(it.repeats),
        ]
    };
    statements.into_iter().map(row).collect()
}
