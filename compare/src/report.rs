//! The figures as one document, and as tables.
//!
//! A ratio is one of two sessions of the same repetition. Of the ratios the median is reported with
//! its range.

use plimsoll_engine::machine::{self, Machine};
use plimsoll_page::table::Columns;
use plimsoll_page::terminal::{Terminal, wrap};
use plimsoll_page::units;
use serde::Serialize;

use crate::stores::{Durability, StoreName};
use crate::work::{Figures, Kind};

/// What was measured at once.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The store.
    pub store: StoreName,
    /// When its commits return.
    pub durability: Durability,
    /// What its clients did.
    pub kind: Kind,
    /// How many they were.
    pub clients: usize,
    /// The repetition, from 1.
    pub repetition: u32,
    /// What came of it.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Cell {
    /// Whether both are the same measurement, perhaps of two stores or in two repetitions.
    fn is_like(&self, other: &Cell) -> bool {
        (self.durability, self.kind, self.clients) == (other.durability, other.kind, other.clients)
    }
}

/// Median, smallest and largest.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    /// Median; the mean of the middle two if their number is even.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    fn of(figures: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else { return Spread::default() };
        let middle = |at: usize| sorted.get(at).copied().unwrap_or_default();
        let median = (middle((sorted.len() - 1) / 2) + middle(sorted.len() / 2)) / 2.0;
        Spread { median, min, max }
    }
}

/// A measurement of a store over all repetitions.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// See [`Cell`].
    pub store: StoreName,
    /// See [`Cell`].
    pub durability: Durability,
    /// See [`Cell`].
    pub kind: Kind,
    /// See [`Cell`].
    pub clients: usize,
    /// Transactions per second.
    pub per_second: Spread,
    /// Their ratios to Plimsoll's.
    pub ratio: Spread,
    /// Median latency in microseconds.
    pub p50_us: Spread,
    /// Its 99th percentile.
    pub p99_us: Spread,
    /// Processor time per transaction in microseconds, of clients and store together.
    pub cpu_us: Spread,
}

/// What a store was told.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// The store.
    pub store: StoreName,
    /// A sentence.
    pub settings: &'static str,
}

/// All that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// The commit of Plimsoll.
    pub commit: &'static str,
    /// Where it ran.
    pub machine: Machine,
    /// When it ended, UTC.
    pub date: String,
    /// The command line.
    pub command: Vec<String>,
    /// Milliseconds that each cell was measured for.
    pub ms: u64,
    /// Of each store.
    pub settings: Vec<Settings>,
    /// Medians, ratios and ranges.
    pub rows: Vec<Row>,
    /// Every measurement, in the order in which they were made.
    pub cells: Vec<Cell>,
    /// What casts doubt on the figures.
    pub doubt: Option<String>,
}

impl Document {
    /// Derives what follows from the measurements.
    pub fn new(ms: u64, cells: Vec<Cell>, doubt: Option<String>) -> Document {
        let first = cells.iter().filter(|cell| cell.repetition == 1);
        let mut rows: Vec<Row> = first.map(|cell| row(cell, &cells)).collect();
        rows.sort_by_key(|row| (row.durability == Durability::None, row.kind as u8, row.clients));
        Document {
            commit: machine::COMMIT,
            machine: machine::describe(),
            date: machine::utc_now(),
            command: machine::command_line(),
            ms,
            settings: StoreName::ALL.map(|store| Settings { store, settings: store.settings() }).to_vec(),
            rows,
            cells,
            doubt,
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("figures and names are JSON") + "\n"
    }

    /// A table for each durability and kind.
    pub fn render(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        for tables in self.rows.chunk_by(|a, b| (a.durability, a.kind) == (b.durability, b.kind)) {
            let mut columns = Columns::new(
                &[
                    ("clients", 0),
                    ("", 0),
                    ("committed/s\nmedian", 0),
                    ("\nrange", 4),
                    ("ratio\nmedian", 0),
                    ("\nrange", 2),
                    ("p50", 1),
                    ("p99", 0),
                    ("CPU µs", 3),
                ],
                false,
            );
            for of_clients in tables.chunk_by(|a, b| a.clients == b.clients) {
                for row in of_clients {
                    let is_first = row.store == StoreName::Plimsoll;
                    columns.push(vec![
                        if is_first { row.clients.to_string() } else { String::new() },
                        row.store.to_string(),
                        units::rate(row.per_second.median),
                        units::range(row.per_second.min, row.per_second.max),
                        if is_first { "1".to_owned() } else { units::ratio(row.ratio.median) },
                        if is_first {
                            String::new()
                        } else {
                            format!("{:.3}–{:.3}", row.ratio.min, row.ratio.max)
                        },
                        units::duration_us(row.p50_us.median),
                        units::duration_us(row.p99_us.median),
                        units::three_digits(row.cpu_us.median),
                    ]);
                }
            }
            if let Some(Row { kind, durability, .. }) = tables.first() {
                text += &terminal.bold(&format!("{kind}, {durability}"));
                text += "\n";
            }
            text += &columns.render(terminal.width);
            text += "\n";
        }
        for Settings { store, settings } in &self.settings {
            text += &wrap(&format!("{store}: {settings}."), terminal.width, 2);
        }
        text += &wrap(
            "Ratios are to plimsoll, taken within each repetition. All that was acknowledged is there.",
            terminal.width,
            0,
        );
        if let Some(doubt) = &self.doubt {
            text += &terminal.red(&wrap(&format!("! {doubt}"), terminal.width, 2));
        }
        text
    }
}

/// A measurement over all repetitions.
fn row(of: &Cell, cells: &[Cell]) -> Row {
    let mine: Vec<&Cell> = cells.iter().filter(|cell| cell.is_like(of) && cell.store == of.store).collect();
    let ratios = mine.iter().filter_map(|cell| {
        let reference = cells.iter().find(|other| {
            other.is_like(of) && other.store == StoreName::Plimsoll && other.repetition == cell.repetition
        })?;
        Some(cell.figures.per_second / reference.figures.per_second)
    });
    let spread = |figure: fn(&Figures) -> f64| Spread::of(mine.iter().map(|cell| figure(&cell.figures)));
    Row {
        store: of.store,
        durability: of.durability,
        kind: of.kind,
        clients: of.clients,
        per_second: spread(|figures| figures.per_second),
        ratio: Spread::of(ratios),
        p50_us: spread(|figures| figures.p50_us),
        p99_us: spread(|figures| figures.p99_us),
        cpu_us: spread(|figures| figures.cpu_us),
    }
}
