//! Loading: making the tables, filling them from several connections, and going on where an earlier
//! load has stopped.
//!
//! The database itself remembers how far a load has come. `dike_data` holds the scale and the seed
//! of what is in it, so a run needs not be told, and a second load of something else is refused.
//! `dike_unit` has a row for each *unit*, the items (0) or a warehouse: absent, begun, or complete.
//! A unit that is complete is left alone. One that was begun is deleted and loaded again, since
//! nobody knows how far it came. Units are handed out to the workers as they become free.
//!
//! A unit is loaded in pieces of at most some ten thousand rows, each a statement and a transaction
//! of its own: several of the databases here limit the size of one.

pub mod encode;
mod population;
pub mod scale;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::config::{Config, Data, LoadMethod};
use crate::progress::Progress;
use crate::target::{Connector, Failure, Session, ddl};
use encode::{Encoded, Encoder, Form};
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

/// Why nothing was loaded, or not all.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadError {
    /// The database holds something else.
    Different {
        /// Which parameter differs.
        parameter: String,
        /// What it is in the database.
        loaded: String,
        /// What the configuration says.
        wanted: String,
    },
    /// Nothing was ever loaded.
    Empty,
    /// So many units are missing.
    Incomplete(usize),
    /// A call failed.
    Failed(Failure),
    /// A file could not be written.
    File(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Different { parameter, loaded, wanted } => write!(
                f,
                "the database was loaded with data.{parameter} = {loaded}, not {wanted}: use that, or \
                 `plimsoll dike \
                 destroy` it first"
            ),
            LoadError::Empty => write!(f, "the database is empty: `plimsoll dike load` it first"),
            LoadError::Incomplete(units) => write!(
                f,
                "the load was not completed, {units} warehouses are missing: `plimsoll dike load` goes on \
                 where it stopped"
            ),
            LoadError::Failed(failure) => failure.fmt(f),
            LoadError::File(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<Failure> for LoadError {
    fn from(failure: Failure) -> LoadError {
        LoadError::Failed(failure)
    }
}

/// The parameters that a database remembers.
fn remembered(data: &Data) -> BTreeMap<String, String> {
    let all = [
        ("warehouses", data.warehouses.to_string()),
        ("items", data.items.to_string()),
        ("customers_per_district", data.customers_per_district.to_string()),
        ("district_skew", data.district_skew.to_string()),
        ("seed", data.seed.to_string()),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What the database remembers; empty if nothing was ever loaded.
async fn remembers(session: &mut Session, existing: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    if !existing.iter().any(|table| table == "dike_data") {
        return Ok(BTreeMap::new());
    }
    let rows = session.text("SELECT p_name, p_value FROM dike_data").await?;
    let pair = |row: Vec<Option<String>>| match <[_; 2]>::try_from(row) {
        Ok([Some(name), Some(value)]) => Some((name, value)),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

async fn existing(connector: &Connector, session: &mut Session) -> Result<Vec<String>, Failure> {
    let rows = session.text(ddl::existing(connector.kind())).await?;
    Ok(rows.into_iter().flatten().flatten().collect())
}

fn same(data: &Data, loaded: &BTreeMap<String, String>) -> Result<(), LoadError> {
    for (parameter, wanted) in remembered(data) {
        let loaded = loaded.get(&parameter).cloned().unwrap_or_default();
        if loaded != wanted {
            return Err(LoadError::Different { parameter, loaded, wanted });
        }
    }
    Ok(())
}

/// Fails unless the database holds exactly what the configuration says, all of it.
pub async fn verify(connector: &Connector, data: &Data) -> Result<(), LoadError> {
    let mut session = connector.connect(0).await?;
    let existing = existing(connector, &mut session).await?;
    let loaded = remembers(&mut session, &existing).await?;
    if loaded.is_empty() {
        return Err(LoadError::Empty);
    }
    same(data, &loaded)?;
    let complete = session.text_value("SELECT COUNT(*) FROM dike_unit WHERE u_complete = 1").await?;
    let complete: usize = complete.parse().unwrap_or(0);
    match (data.warehouses as usize + 1).checked_sub(complete) {
        Some(0) => Ok(()),
        missing => Err(LoadError::Incomplete(missing.unwrap_or_default())),
    }
}

/// The name under which a database remembers that w_ytd is no longer what payments have made it.
const BALANCES_UPDATED: &str = "balances_updated";

/// Makes the database remember that dUpdateBalance has run in it.
pub async fn remember_balances_updated(connector: &Connector) -> Result<(), Failure> {
    let mut session = connector.connect(0).await?;
    if !balances_updated(&mut session).await? {
        let insert = format!("INSERT INTO dike_data (p_name, p_value) VALUES ('{BALANCES_UPDATED}', 'true')");
        session.text(&insert).await?;
    }
    Ok(())
}

/// Whether dUpdateBalance has ever run in the database.
pub async fn balances_updated(session: &mut Session) -> Result<bool, Failure> {
    let count = format!("SELECT COUNT(*) FROM dike_data WHERE p_name = '{BALANCES_UPDATED}'");
    Ok(session.text_value(&count).await? != "0")
}

/// What workers share.
struct Shared {
    scale: Scale,
    form: Form,
    connector: Connector,
    /// The units to load, and whether each was begun before.
    units: Vec<(u32, bool)>,
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
    let begun = Instant::now();
    let mut session = connector.connect(0).await?;
    let units = prepare(config, connector, &mut session).await?;
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
    if !interrupted && !shared.units.is_empty() {
        progress.note("making indexes and statistics");
        for statement in ddl::finish(connector.kind()) {
            session.text(&statement).await?;
        }
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

/// Makes missing tables. Returns the units that are not complete, and whether each was begun.
async fn prepare(
    config: &Config,
    connector: &Connector,
    session: &mut Session,
) -> Result<Vec<(u32, bool)>, LoadError> {
    let existing = existing(connector, session).await?;
    let loaded = remembers(session, &existing).await?;
    if !loaded.is_empty() {
        same(&config.data, &loaded)?;
    }
    for statement in ddl::create(connector.kind(), &config.schema, &config.data, &existing) {
        session.text(&statement).await?;
    }
    if loaded.is_empty() {
        let rows = remembered(&config.data);
        let rows: Vec<String> = rows.iter().map(|(name, value)| format!("('{name}', '{value}')")).collect();
        session.text(&format!("INSERT INTO dike_data (p_name, p_value) VALUES {}", rows.join(", "))).await?;
    }
    let rows = session.text("SELECT u_id, u_complete FROM dike_unit").await?;
    let number = |value: &Option<String>| value.as_ref().and_then(|value| value.parse::<u32>().ok());
    let units: BTreeMap<u32, bool> =
        rows.iter().filter_map(|row| Some((number(row.first()?)?, number(row.get(1)?)? == 1))).collect();
    let missing = (0..=config.data.warehouses).filter(|unit| units.get(unit) != Some(&true));
    Ok(missing.map(|unit| (unit, units.contains_key(&unit))).collect())
}

/// Loads units until there are no more.
async fn work(shared: Arc<Shared>, worker: usize) -> Result<(), Failure> {
    let mut session = shared.connector.connect(worker).await?;
    while !shared.stop.load(Relaxed) {
        let Some(&(unit, begun)) = shared.units.get(shared.next.fetch_add(1, Relaxed)) else { break };
        if begun {
            clean(&mut session, unit).await?;
        } else {
            session.text(&format!("INSERT INTO dike_unit (u_id, u_complete) VALUES ({unit}, 0)")).await?;
        }
        for piece in population::pieces(&shared.scale, unit) {
            if shared.stop.load(Relaxed) {
                return Ok(());
            }
            let mut encoder = Encoder::new(shared.form, piece.table());
            piece.write(&shared.scale, &mut encoder);
            let rows = encoder.rows();
            put_in(&mut session, piece.table(), &encoder.finish()).await?;
            shared.rows.fetch_add(rows, Relaxed);
        }
        session.text(&format!("UPDATE dike_unit SET u_complete = 1 WHERE u_id = {unit}")).await?;
        shared.done.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Puts rows into a table, all of them or none; again if other loads are in the way.
async fn put_in(session: &mut Session, table: &str, rows: &Encoded) -> Result<(), Failure> {
    for _ in 1..ATTEMPTS_MAX {
        match put_in_once(session, table, rows).await {
            Err(failure) if failure.cause.is_conflict() => {
                // A statement of its own has nothing to roll back, which is no reason to fail.
                let _ = session.rollback().await;
                tokio::time::sleep(RETRY_AFTER).await;
            }
            result => return result,
        }
    }
    put_in_once(session, table, rows).await
}

async fn put_in_once(session: &mut Session, table: &str, rows: &Encoded) -> Result<(), Failure> {
    match rows {
        Encoded::Binary(bytes) => session.copy(table, true, bytes.clone()).await.map(|_| ()),
        Encoded::Csv(bytes) => session.copy(table, false, bytes.clone()).await.map(|_| ()),
        Encoded::Inserts(statements) => {
            session.text("BEGIN").await?;
            for statement in statements {
                session.text(statement).await?;
            }
            session.text("COMMIT").await.map(|_| ())
        }
    }
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

/// Removes all tables.
pub async fn destroy(connector: &Connector) -> Result<(), Failure> {
    let mut session = connector.connect(0).await?;
    for statement in ddl::destroy(connector.kind()) {
        session.text(&statement).await?;
    }
    Ok(())
}

/// Writes a file of comma-separated rows for each table; NULL is `\N`. Returns how many rows there
/// are.
pub fn write_csv(
    data: &Data,
    directory: &Path,
    stop: &AtomicBool,
    progress: Progress,
) -> Result<u64, LoadError> {
    let scale = Scale::new(data);
    let wrong = |path: &Path, error: std::io::Error| {
        LoadError::File(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| wrong(directory, error))?;
    let mut files = BTreeMap::new();
    for table in ddl::TABLES {
        let path = directory.join(format!("{}.csv", table.name));
        let file = std::fs::File::create(&path).map_err(|error| wrong(&path, error))?;
        files.insert(table.name, (path, file));
    }
    let mut line = progress.line("writing", u64::from(scale.warehouses) + 1);
    let mut rows = 0;
    for unit in 0..=scale.warehouses {
        for piece in population::pieces(&scale, unit) {
            if stop.load(Relaxed) {
                return Err(LoadError::File("interrupted: the files are not complete".to_owned()));
            }
            let mut encoder = Encoder::new(Form::Csv, piece.table());
            piece.write(&scale, &mut encoder);
            rows += encoder.rows();
            let (path, file) = files.get_mut(piece.table()).expect("every piece belongs to a table");
            if let Encoded::Csv(bytes) = encoder.finish() {
                file.write_all(&bytes).map_err(|error| wrong(path, error))?;
            }
        }
        line.show(u64::from(unit), || format!("{unit}/{} warehouses · {rows} rows", scale.warehouses));
    }
    Ok(rows)
}
