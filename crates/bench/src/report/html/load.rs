//! The page's section on loads: latency over throughput.

use plimsoll_page::curves::{self, Curve, latency_over_throughput};
use plimsoll_page::html::{section, table, tiles};
use plimsoll_page::units;

use super::super::model::{Document, Spread};
use super::super::points::Point;
use super::super::table::peaks;
use super::{PairRuns, figures};

/// A latency that is drawn: its name, its heading, and how to have it of a point.
type Drawn = (&'static str, &'static str, fn(&Point) -> Spread);

/// A chart each.
const DRAWN: [Drawn; 2] = [
    ("p50", "Median latency", |point| point.p50_us),
    ("p99", "99th percentile of latency", |point| point.p99_us),
];

/// What each pair reached, and how slow it was at each load.
pub fn section_of(document: &Document, pairs: &[PairRuns<'_>]) -> String {
    if document.points.is_empty() {
        return section("Latency over throughput", "Not one load was measured to its end.", "");
    }
    let chart = |drawn: Drawn| {
        let curves: Vec<Curve> = pairs.iter().map(|pair| curve(document, pair, drawn)).collect();
        let chart = latency_over_throughput(&format!("{} over throughput", drawn.1), &curves);
        format!("<h3>{}</h3>\n{chart}", drawn.1)
    };
    let charts: String = DRAWN.into_iter().map(chart).collect();
    let mut note =
        "All transaction types; logarithmic. Each dot is a load, and lines join them in order.".to_owned();
    if document.points.iter().any(|point| point.runs > 1) {
        note.push_str(" Medians over the repetitions.");
    }
    if let Some(peaks) = peaks(document) {
        note.push_str(&format!(" Latency counts from the time a transaction was due. {peaks}"));
    }
    let legend = figures::pair_legend(pairs);
    best(document, pairs)
        + &section("Latency over throughput", &note, &(charts + &legend + &loads(document, pairs)))
}

/// The load of each pair at which it committed most.
fn best(document: &Document, pairs: &[PairRuns<'_>]) -> String {
    let best = |pair: &PairRuns<'_>| {
        let points = document.points_of(&pair.name);
        points.max_by(|a, b| a.throughput_tps.median.total_cmp(&b.throughput_tps.median))
    };
    fn tile<'a>((name, point): &'a (String, &Point)) -> (&'a str, String, String) {
        let (p50, p99) = (units::duration_us(point.p50_us.median), units::duration_us(point.p99_us.median));
        let figure = format!("{}/s", units::rate(point.throughput_tps.median));
        (name, figure, format!("at {}: p50 {p50}, p99 {p99}", point.at_load))
    }
    let best: Vec<(String, &Point)> =
        pairs.iter().filter_map(|pair| Some((format!("{} at most", pair.name), best(pair)?))).collect();
    tiles(&best.iter().map(tile).collect::<Vec<_>>())
}

fn curve(document: &Document, pair: &PairRuns<'_>, (name, _, latency): Drawn) -> Curve {
    let point = |point: &Point| {
        let (tps, us) = (point.throughput_tps, latency(point));
        let range = units::span(units::duration_us(us.min), units::duration_us(us.max));
        let range = if point.runs > 1 { format!(" ({range})") } else { String::new() };
        curves::Point {
            throughput_tps: tps.median,
            latency_us: us.median,
            tip: format!(
                "{} at {}\n{}/s\n{name} {}{range}",
                pair.name,
                point.at_load,
                units::rate(tps.median),
                units::duration_us(us.median)
            ),
        }
    };
    Curve {
        series: pair.colour,
        yardstick: pair.yardstick(),
        points: document.points_of(&pair.name).map(point).collect(),
    }
}

/// Every point on a line.
fn loads(document: &Document, pairs: &[PairRuns<'_>]) -> String {
    let open_loop = document.asks_for_rates();
    let mut headers = vec!["pair", "load"];
    headers.extend(open_loop.then_some("asked for/s"));
    headers.extend(["committed/s", "p50", "p99", "aborted", "CPU µs"]);
    let mut rows = Vec::new();
    for pair in pairs {
        for point in document.points_of(&pair.name) {
            let mut row = vec![pair.cell(), point.at_load.clone()];
            row.extend(point.cells(open_loop));
            rows.push(row);
        }
    }
    table("", &headers, &rows)
}
