//! Predictions as one page: charts of every series, the published ratios beside ours, all figures
//! in a table.
//!
//! Colours are by scheme, the same on every chart; `rc`, which is not serializable, is dashed.
//! Ratios have colours by their place among them.

use std::fmt::Write;

use plimsoll_bench::report::html::STYLE;
use plimsoll_page::html::{self, Page, escape};
use plimsoll_page::{svg, units};
use serde_json::Value;

use super::chart::{Chart, Line, Span, Unit};
use super::{Comparison, Predicted, show};
use crate::predict::published::{At, Quantity};

/// What a sweep has charts of besides throughput.
const OF_A_SWEEP: [Quantity; 5] = [
    Quantity::ReadWriteMedian,
    Quantity::ReadWriteP99,
    Quantity::ReadOnlyMedian,
    Quantity::ReadOnlyP99,
    Quantity::Aborted,
];

/// The whole page.
pub fn render(all: &[Predicted], document: &Value) -> String {
    let title = match all {
        [only] => only.series.title.clone(),
        _ => "The DST paper's figures, published and predicted".to_owned(),
    };
    let facts = format!(
        "Predicted, not measured: the protocols' own code, in a world where everything has a price. \
         plimsoll {} ({}), {}",
        env!("CARGO_PKG_VERSION"),
        plimsoll_engine::machine::COMMIT,
        document["date"].as_str().unwrap_or_default()
    );
    let page = Page {
        title: &title,
        facts: &facts,
        command: &plimsoll_engine::machine::command_line().join(" "),
        main: &all.iter().map(section).collect::<String>(),
        notes: &[],
        style: STYLE,
        figures: &serde_json::to_string_pretty(document).expect("a document of plain values"),
        file: "plimsoll.json",
    };
    page.render()
}

fn section(predicted: &Predicted) -> String {
    let series = predicted.series;
    let mut charted = predicted.shows().to_vec();
    if series.figure.is_none() {
        charted.extend(OF_A_SWEEP);
    }
    let mut text: String = match predicted.is_curve() {
        true => [0.5, 0.99].into_iter().map(|quantile| curves(predicted, quantile)).collect(),
        false => charted.iter().map(|&what| chart(predicted, what)).collect(),
    };
    let comparisons = predicted.comparisons();
    if !comparisons.is_empty() {
        if !predicted.is_curve() {
            text.extend(predicted.shows().iter().map(|&what| ratios(predicted, &comparisons, what)));
        }
        text.push_str("<table>\n<thead><tr><th>ratio</th><th>at</th><th>published</th><th>predicted</th></tr></thead>\n<tbody>\n");
        for comparison in &comparisons {
            let cells =
                show::sentence(comparison, series.axis).map(|cell| format!("<td>{}</td>", escape(&cell)));
            let _ = writeln!(text, "<tr>{}</tr>", cells.join(""));
        }
        text.push_str("</tbody>\n</table>\n");
    }
    text.push_str("<details><summary>All figures</summary>\n<table>\n<thead><tr>");
    charted.retain(|what| ![Quantity::Committed, Quantity::Aborted].contains(what));
    let mut titles = vec![series.axis, "scheme", "committed/s"];
    titles.extend(charted.iter().map(|what| what.name()));
    titles.extend(["p50", "p99", "aborted", "cores busy", "oracle busy", "messages", "bytes"]);
    for title in titles {
        let _ = write!(text, "<th>{}</th>", escape(title));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for (at, row) in series.at.iter().zip(&predicted.predictions) {
        for (scheme, prediction) in series.schemes.iter().zip(row) {
            let committed = prediction.committed.max(1) as f64;
            let latency = |quantile| units::duration_us(f64::from(prediction.latency_ns(quantile)) / 1e3);
            let mut cells =
                vec![units::thousands(*at), (*scheme).to_owned(), units::rate(prediction.throughput())];
            if !prediction.stationary {
                cells[2] += ", not stationary";
            }
            let figure = |what: &Quantity| what.of(prediction).map_or_else(String::new, units::three_digits);
            cells.extend(charted.iter().map(figure));
            cells.extend([
                latency(0.5),
                latency(0.99),
                units::percent(prediction.abort_rate()),
                units::percent(prediction.busy),
                units::percent(prediction.oracle_busy.min(1.0)),
                units::three_digits(prediction.messages as f64 / committed),
                units::three_digits(prediction.bytes as f64 / committed),
            ]);
            let cells: Vec<String> = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
            let _ = writeln!(text, "<tr>{}</tr>", cells.join(""));
        }
    }
    text.push_str("</tbody>\n</table>\n</details>\n");
    html::section(&series.title, &format!("{}. {}", series.model.machine, series.model.source), &text)
}

/// What all schemes have of something, along the axis.
fn chart(predicted: &Predicted, what: Quantity) -> String {
    let series = predicted.series;
    let colours = plimsoll_args::pairs::series(series.schemes.iter().copied());
    let line = |(number, &scheme): (usize, &&str)| Line {
        name: scheme.to_owned(),
        colour: svg::colour(colours[number]),
        dashed: scheme == "rc",
        points: along(predicted, |place| predicted.figure(what, place, scheme)),
        published: Vec::new(),
        end: None,
    };
    let lines = series.schemes.iter().enumerate().map(line).collect();
    Chart { title: title(what), unit: unit(what), axis: series.axis, at: &series.at, lines }.render()
}

/// A quantile of all latencies over throughput per core, of every scheme as the load grows, and the
/// medians that were published.
fn curves(predicted: &Predicted, quantile: f64) -> String {
    let series = predicted.series;
    let colours = plimsoll_args::pairs::series(series.schemes.iter().copied());
    let line = |(number, &scheme): (usize, &&str)| {
        let all = predicted.predictions.iter().zip(&series.configurations);
        let points = all.filter(|(row, _)| row[number].stationary).map(|(row, configurations)| {
            let shards = configurations[number].cluster.shards() as f64;
            (row[number].throughput() / shards, f64::from(row[number].latency_ns(quantile)) / 1e3)
        });
        let curves = series.figure.map_or(&[][..], |figure| figure.curves);
        let curve = curves.iter().find(|curve| curve.scheme == scheme && quantile == 0.5);
        let cores = series
            .figure
            .map_or(1, |figure| series.configurations[0][0].cluster.shards() * figure.cores_per_shard)
            as f64;
        let published = curve.into_iter().flat_map(|curve| curve.points);
        Line {
            name: scheme.to_owned(),
            colour: svg::colour(colours[number]),
            dashed: scheme == "rc",
            points: points.collect(),
            published: published
                .map(|&(tps, us)| Span { at: Some(tps / cores), low: us, high: us })
                .collect(),
            end: curve.map(|curve| curve.peak / cores),
        }
    };
    let title = match (quantile == 0.5, series.figure.is_some_and(|figure| !figure.curves.is_empty())) {
        (true, true) => "median latency: lines predicted, circles and upright lines (peaks) published",
        (true, false) => "median latency",
        (false, _) => "99th percentile of latency",
    };
    let lines = series.schemes.iter().enumerate().map(line).collect();
    Chart { title, unit: Unit::Duration, axis: "committed per second and core", at: &[], lines }.render()
}

/// The ratios that are published of something, along the axis.
fn ratios(predicted: &Predicted, comparisons: &[Comparison], what: Quantity) -> String {
    let series = predicted.series;
    let mut lines: Vec<Line> = Vec::new();
    for Comparison { published, .. } in comparisons.iter().filter(|known| known.published.what == what) {
        let name = format!("{} / {}", published.of, published.to);
        let at = match published.at {
            At::Place(at) => Some(at as f64),
            At::All | At::Peak => None,
        };
        let span = Span { at, low: published.low, high: published.high };
        if let Some(line) = lines.iter_mut().find(|line| line.name == name) {
            line.published.push(span);
            continue;
        }
        let ratio = |place| predicted.ratio(what, place, published.of, published.to);
        let (colour, points) = (svg::colour(lines.len()), along(predicted, ratio));
        lines.push(Line { name, colour, dashed: false, points, published: vec![span], end: None });
    }
    let title = format!("ratios of {}: lines predicted, circles and bands published", title(what));
    Chart { title: &title, unit: Unit::Ratio, axis: series.axis, at: &series.at, lines }.render()
}

/// The places where there is a figure, with it.
fn along(predicted: &Predicted, figure: impl Fn(usize) -> Option<f64>) -> Vec<(f64, f64)> {
    let places = 0..predicted.predictions.len();
    let point =
        |place| Some((predicted.series.at[place] as f64, figure(place).filter(|figure| figure.is_finite())?));
    places.filter_map(point).collect()
}

fn title(what: Quantity) -> &'static str {
    match what {
        Quantity::Committed => "committed transactions per second",
        Quantity::NewOrders => "committed New-Orders per second",
        Quantity::StockLevelMedian => "Stock-Level, median latency",
        Quantity::StockLevelCommitted => "Stock-Level, attempts that committed",
        Quantity::ReadWriteMedian => "read-write transactions, median latency",
        Quantity::ReadWriteP99 => "read-write transactions, 99th percentile of latency",
        Quantity::ReadOnlyMedian => "read-only transactions, median latency",
        Quantity::ReadOnlyP99 => "read-only transactions, 99th percentile of latency",
        Quantity::Aborted => "attempts that aborted",
    }
}

fn unit(what: Quantity) -> Unit {
    match what {
        Quantity::Committed | Quantity::NewOrders => Unit::PerSecond,
        Quantity::StockLevelCommitted | Quantity::Aborted => Unit::Share,
        Quantity::StockLevelMedian
        | Quantity::ReadWriteMedian
        | Quantity::ReadWriteP99
        | Quantity::ReadOnlyMedian
        | Quantity::ReadOnlyP99 => Unit::Duration,
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::Prediction;

    use super::*;
    use crate::cli::ScaleArgs;

    /// What a page says that shows the same prediction everywhere.
    fn page(args: ScaleArgs, prediction: Prediction) -> String {
        let plan = args.validate().expect("fine");
        let [series] = plan.series.as_slice() else { panic!("one series") };
        let predictions = vec![vec![prediction; series.schemes.len()]; series.at.len()];
        section(&Predicted { series, predictions })
    }

    fn prediction(read_only_ns: Vec<u32>) -> Prediction {
        Prediction {
            seconds: 1.0,
            committed: 3,
            latencies: vec![("write", vec![1_000, 2_000, 9_000]), ("read", read_only_ns)],
            aborts_by: vec![1, 0],
            read_only: vec![false, true],
            aborts: 1,
            stationary: true,
            ..Prediction::default()
        }
    }

    #[test]
    fn a_sweep_has_charts_of_throughput_latency_and_aborts() {
        let titles = |page: &str| -> Vec<String> {
            let title = |rest: &str| rest.split("</h3>").next().unwrap_or_default().to_owned();
            page.split("<h3>").skip(1).map(title).collect()
        };
        let page_of = |read_only_ns| page(ScaleArgs::default(), prediction(read_only_ns));
        let all = page_of(vec![500]);
        let [throughput, latencies @ .., aborts] = &titles(&all)[..] else { panic!("charts") };
        assert_eq!(
            (throughput.as_str(), aborts.as_str()),
            ("committed transactions per second", "attempts that aborted")
        );
        assert_eq!(latencies.len(), 4);
        assert!(all.contains("dst, nodes: 16\n2.00 µs") && all.contains("dst, nodes: 16\n25.0%"), "{all}");
        assert_eq!(titles(&page_of(Vec::new())).len(), 4, "nothing only reads");
    }

    #[test]
    fn published_ratios_are_drawn_beside_those_predicted() {
        let args = ScaleArgs { paper: true, figures: vec!["12(b)".to_owned()], ..ScaleArgs::default() };
        let page = page(args, prediction(vec![500]));
        let (_, ratios) = page.split_once("<h3>ratios of").expect("a chart");
        assert_eq!((ratios.matches("<rect").count(), ratios.matches("r=\"6\"").count()), (3, 3));
        assert!(ratios.contains("dst / gts, districts: all\npublished: 1.19 to 4.49"), "{ratios}");
        assert!(ratios.contains("dst / gts, districts: 20\n1.000×"), "{ratios}");
    }
}
