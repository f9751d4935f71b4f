//! Loading: making the tables, filling them from several connections, and going on where an earlier
//! load has stopped.
//!
//! The database itself remembers what is in it and how far a load has come ([`record`]). A unit,
//! the items or a warehouse, that is complete is left alone. One that was begun is deleted and
//! loaded again, since the record does not say how far it came. Units are handed out to the workers
//! as they become free.
//!
//! A unit is loaded in pieces of at most some ten thousand rows, each a transaction of its own:
//! several of the databases here limit the size of one.
//!
//! One load works at a time ([`lease`]). A load that has stood still, was taken for dead by another
//! one and then goes on must not add its pieces to those of the other. So `dike_unit` names the
//! loader of a unit, and the transaction of each piece changes that row if it still names this
//! loader. A loader that takes the unit over changes the row before it deletes what is there; it
//! waits for the piece that is under way, and none follows.
//!
//! A load says that it has loaded when a session of its own has counted the rows of every table.

pub mod encode;
mod error;
mod files;
pub mod lease;
mod population;
pub mod record;
pub mod scale;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::config::{Config, LoadMethod};
use crate::progress::Progress;
use crate::target::{Cause, Connector, Failure, Kind, Session, ddl};
use encode::{Encoded, Encoder, Form};
pub use error::LoadError;
pub use files::write_csv;
use lease::Lease;
use record::{Record, State, Tables};
pub use record::{balances_updated, remember_balances_updated, verify};
use scale::Scale;

/// How often rows are put into a table before a load gives up.
const ATTEMPTS_MAX: u32 = 10;
/// Pause between these attempts.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What a load has done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// Warehouses that were loaded.
    pub warehouses: u32,
    /// Warehouses that were there already.
    pub there_before: u32,
    /// Warehouses that an earlier load has begun and not completed, and that were deleted first.
    pub cleaned: u32,
    /// Rows loaded.
    pub rows: u64,
    /// How long it took, in seconds, indexes and statistics included.
    pub seconds: f64,
    /// Rows per second while rows were loaded.
    pub rows_per_second: f64,
    /// Whether it was stopped before the end.
    pub interrupted: bool,
}

/// What workers share.
struct Shared {
    scale: Scale,
    form: Form,
    connector: Connector,
    /// The units to load, and whether each was begun before.
    units: Vec<(u32, bool)>,
    /// What `dike_unit` calls this load.
    loader: String,
    next: AtomicUsize,
    rows: AtomicU64,
    done: AtomicUsize,
    stop: Arc<AtomicBool>,
}

/// Makes what is missing of the tables and fills them.
pub async fn load(
    config: &Config,
    connector: &Connector,
    stop: &Arc<AtomicBool>,
    progress: Progress,
) -> Result<Loaded, LoadError> {
    let connector = &connector.upkeep();
    let mut session = connector.connect(0).await?;
    let lease = loop {
        record::make(connector, &config.schema, &mut session).await?;
        match Lease::alone(connector, "plimsoll dike load").await {
            // A destroy has dropped the record meanwhile.
            Err(LoadError::Empty) => {}
            lease => break lease?,
        }
    };
    let loaded = load_alone(config, connector, session, stop, progress).await;
    lease.release().await;
    loaded
}

async fn load_alone(
    config: &Config,
    connector: &Connector,
    mut session: Session,
    stop: &Arc<AtomicBool>,
    progress: Progress,
) -> Result<Loaded, LoadError> {
    let begun = Instant::now();
    let (units, state) = prepare(config, connector, &mut session).await?;
    drop(session);
    let all = config.data.warehouses + 1;
    let cleaned = units.iter().filter(|(unit, begun)| *begun && *unit > 0).count() as u32;
    let there_before = all - units.len() as u32 - u32::from(!units.iter().any(|(unit, _)| *unit == 0));

    let form = match config.load.method {
        LoadMethod::Copy if connector.kind().binary_copy() => Form::Binary,
        LoadMethod::Copy => Form::Csv,
        LoadMethod::Insert => Form::Insert(config.load.rows_per_insert),
    };
    let shared = Arc::new(Shared {
        scale: Scale::new(&config.data),
        form,
        connector: connector.clone(),
        units,
        loader: record::draw()?,
        next: AtomicUsize::new(0),
        rows: AtomicU64::new(0),
        done: AtomicUsize::new(0),
        stop: stop.clone(),
    });
    let workers: Vec<_> = (0..config.load.workers.min(shared.units.len()))
        .map(|worker| tokio::spawn(work(shared.clone(), worker)))
        .collect();
    let filling = Instant::now();
    let mut line = progress.line("loading", shared.units.len() as u64);
    while workers.iter().any(|worker| !worker.is_finished()) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (rows, done) = (shared.rows.load(Relaxed), shared.done.load(Relaxed));
        let rate = rows as f64 / filling.elapsed().as_secs_f64();
        line.show(done as u64, || {
            format!(
                "{done}/{} units · {rows} of about {} rows · {rate:.0} rows/s",
                shared.units.len(),
                shared.scale.rows()
            )
        });
    }
    drop(line);
    for worker in workers {
        worker.await.map_err(|error| Failure::unexpected(error.to_string()))??;
    }
    let rows = shared.rows.load(Relaxed);
    let rows_per_second = rows as f64 / filling.elapsed().as_secs_f64();

    let interrupted = shared.done.load(Relaxed) < shared.units.len();
    if !interrupted && state == State::Loading {
        finish(connector, &shared.scale, progress).await?;
    }
    let loaded = shared.done.load(Relaxed) as u32;
    let items = u32::from(shared.units.first().is_some_and(|(unit, _)| *unit == 0)).min(loaded);
    Ok(Loaded {
        warehouses: loaded - items,
        there_before,
        cleaned,
        rows,
        seconds: begun.elapsed().as_secs_f64(),
        rows_per_second,
        interrupted,
    })
}

/// Makes missing tables. Returns the units that are not complete and whether each was begun, and
/// whether anything is left to do.
async fn prepare(
    config: &Config,
    connector: &Connector,
    session: &mut Session,
) -> Result<(Vec<(u32, bool)>, State), LoadError> {
    let tables = Tables::look(connector, session).await?;
    tables.refuse_others(ddl::names(connector.kind(), &config.schema).iter().map(String::as_str))?;
    let mark = tables.mark().ok_or(LoadError::Empty)?;
    let record = Record::read(session).await?;
    match record.state() {
        None => record::begin(session, &config.data).await?,
        Some(State::Destroying) => return Err(LoadError::HalfDropped),
        Some(_) => record.refuse_different(&config.data)?,
    }
    prefer_transactions(connector, session).await?;
    let there = |name: &str| tables.has(name);
    for statement in ddl::create(connector.kind(), &config.schema, &config.data, mark, there) {
        session.text(&statement).await?;
    }
    let rows = session.text("SELECT u_id, u_complete FROM dike_unit").await?;
    let number = |value: &Option<String>| value.as_ref().and_then(|value| value.parse::<u32>().ok());
    let units: BTreeMap<u32, bool> =
        rows.iter().filter_map(|row| Some((number(row.first()?)?, number(row.get(1)?)? == 1))).collect();
    let missing = (0..=config.data.warehouses).filter(|unit| units.get(unit) != Some(&true));
    let missing: Vec<(u32, bool)> = missing.map(|unit| (unit, units.contains_key(&unit))).collect();
    let mut state = record.state().unwrap_or(State::Loading);
    if state == State::Loaded && !missing.is_empty() {
        record::enter(session, State::Loading).await?;
        state = State::Loading;
    }
    Ok((missing, state))
}

/// Sees to it that tables of MySQL and MariaDB have transactions, where the server would make such
/// as have none.
async fn prefer_transactions(connector: &Connector, session: &mut Session) -> Result<(), Failure> {
    if !matches!(connector.kind(), Kind::Mysql | Kind::Mariadb) {
        return Ok(());
    }
    let by_default =
        "SELECT transactions FROM information_schema.engines WHERE engine = @@default_storage_engine";
    if session.text_value(by_default).await? != "YES" {
        session.text("SET default_storage_engine = InnoDB").await?;
    }
    Ok(())
}

/// Makes indexes and statistics, counts what is there, and says that all of it is.
async fn finish(connector: &Connector, scale: &Scale, progress: Progress) -> Result<(), LoadError> {
    progress.note("making indexes and statistics, and counting rows");
    // None that saw the rows come in: what it sees, others see.
    let mut session = connector.connect(0).await?;
    for statement in ddl::finish(connector.kind()) {
        session.text(&statement).await?;
    }
    for (table, loaded) in population::rows(scale) {
        let there = session.text_value(&format!("SELECT COUNT(*) FROM {table}")).await?;
        let there = there.parse().map_err(|_| Failure::unexpected(format!("{table} has {there} rows")))?;
        if there != loaded {
            return Err(LoadError::Miscounted { table, there, loaded });
        }
    }
    Ok(record::enter(&mut session, State::Loaded).await?)
}

/// Loads units until there are no more.
async fn work(shared: Arc<Shared>, worker: usize) -> Result<(), Failure> {
    let mut session = shared.connector.connect(worker).await?;
    while !shared.stop.load(Relaxed) {
        let Some(&(unit, begun)) = shared.units.get(shared.next.fetch_add(1, Relaxed)) else { break };
        let loader = &shared.loader;
        if begun {
            let take = format!("UPDATE dike_unit SET u_loader = '{loader}' WHERE u_id = {unit}");
            change(&mut session, &take).await?;
            clean(&mut session, unit).await?;
        } else {
            let row = format!("({unit}, 0, '{loader}')");
            let insert = format!("INSERT INTO dike_unit (u_id, u_complete, u_loader) VALUES {row}");
            change(&mut session, &insert).await?;
        }
        for piece in population::pieces(&shared.scale, unit) {
            if shared.stop.load(Relaxed) {
                return Ok(());
            }
            let mut encoder = Encoder::new(shared.form, piece.table());
            piece.write(&shared.scale, &mut encoder);
            let rows = encoder.rows();
            let guard =
                format!("UPDATE dike_unit SET u_complete = 0 WHERE u_id = {unit} AND u_loader = '{loader}'");
            put_in(&mut session, piece.table(), &encoder.finish(), &guard).await?;
            shared.rows.fetch_add(rows, Relaxed);
        }
        let complete =
            format!("UPDATE dike_unit SET u_complete = 1 WHERE u_id = {unit} AND u_loader = '{loader}'");
        still_ours(change(&mut session, &complete).await?)?;
        shared.done.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Makes a change of one statement, again if others are in the way.
async fn change(session: &mut Session, statement: &str) -> Result<u64, Failure> {
    for _ in 1..ATTEMPTS_MAX {
        match session.change(statement).await {
            Err(failure) if failure.cause.is_conflict() => tokio::time::sleep(RETRY_AFTER).await,
            result => return result,
        }
    }
    session.change(statement).await
}

/// Fails if the change of a unit's row has met none.
fn still_ours(rows: u64) -> Result<(), Failure> {
    match rows {
        1 => Ok(()),
        _ => Err(Failure::unexpected("another load has taken over what this one was loading")),
    }
}

/// Puts rows into a table, all of them or none; again if other loads are in the way.
///
/// * `guard`: a change of the unit's row, which meets it if the unit is still this load's.
async fn put_in(session: &mut Session, table: &str, rows: &Encoded, guard: &str) -> Result<(), Failure> {
    for _ in 1..ATTEMPTS_MAX {
        match put_in_once(session, table, rows, guard).await {
            Err(failure) if failure.cause.is_conflict() => {
                // A transaction that the server has rolled back need not be.
                let _ = session.rollback().await;
                tokio::time::sleep(RETRY_AFTER).await;
            }
            result => return result,
        }
    }
    put_in_once(session, table, rows, guard).await
}

async fn put_in_once(session: &mut Session, table: &str, rows: &Encoded, guard: &str) -> Result<(), Failure> {
    session.text("START TRANSACTION").await?;
    still_ours(session.change(guard).await?)?;
    match rows {
        Encoded::Binary(bytes) => session.copy(table, true, bytes.clone()).await.map(|_| ())?,
        Encoded::Csv(bytes) => {
            session.copy(table, false, bytes.clone()).await.map(|_| ()).map_err(no_files)?
        }
        Encoded::Inserts(statements) => {
            for statement in statements {
                session.text(statement).await?;
            }
        }
    }
    session.text("COMMIT").await.map(|_| ())
}

/// Says what to do where a server takes no rows from a client's file.
fn no_files(failure: Failure) -> Failure {
    if !["1148", "3948", "4166"].contains(&failure.code.as_str()) {
        return failure;
    }
    let message = format!("{}: set load.method = \"insert\", or local_infile at the server", failure.message);
    Failure { cause: Cause::Other, message, ..failure }
}

/// Deletes what an interrupted load has left of a unit.
async fn clean(session: &mut Session, unit: u32) -> Result<(), Failure> {
    for table in ddl::TABLES {
        let statement = match (table.warehouse, unit) {
            (None, 0) => format!("DELETE FROM {}", table.name),
            (Some(warehouse), 1..) => format!("DELETE FROM {} WHERE {warehouse} = {unit}", table.name),
            _ => continue,
        };
        session.text(&statement).await?;
    }
    Ok(())
}

/// Removes the tables that Dike has made. Returns how many there were. If Dike has not
/// made something with one of their names, nothing is removed.
pub async fn destroy(connector: &Connector) -> Result<usize, LoadError> {
    let connector = &connector.upkeep();
    let mut session = connector.connect(0).await?;
    let tables = Tables::look(connector, &mut session).await?;
    tables.refuse_others(ddl::tables())?;
    if !tables.has(ddl::RECORD) {
        return Ok(0);
    }
    let lease = Lease::alone(connector, "plimsoll dike destroy").await?;
    let dropped = drop_all(connector, &mut session).await;
    // Without the record there is no row to give back.
    lease.release().await;
    dropped
}

async fn drop_all(connector: &Connector, session: &mut Session) -> Result<usize, LoadError> {
    let tables = Tables::look(connector, session).await?;
    tables.refuse_others(ddl::tables())?;
    record::enter(session, State::Destroying).await?;
    for statement in ddl::destroy(connector.kind(), |name| tables.has(name)) {
        session.text(&statement).await?;
    }
    Ok(ddl::tables().filter(|name| tables.has(name)).count())
}
