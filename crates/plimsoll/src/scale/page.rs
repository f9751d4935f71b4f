//! Predictions as one page: a chart per series, the published ratios beside ours, all figures in a table.
//!
//! The axes are logarithmic where they span more than a decade: schemes differ by factors, and what scales is a straight
//! line. Colours are by scheme, the same on every chart; `rc`, which is not serializable, is dashed.

use std::fmt::Write;

use plimsoll_page::html::{self, Page, escape};
use plimsoll_page::svg::{self, nice_step};
use plimsoll_page::units;
use plimsoll_sim::scale::published::Quantity;
use serde_json::Value;

use super::{Predicted, show};
use crate::report::html::STYLE;

/// A chart's height and width, and the room for the labels at its left, at its right for each character, and below, in pixels.
const HEIGHT: f64 = 300.0;
const WIDTH: f64 = 980.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 9.0;
const BELOW: f64 = 40.0;

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
        crate::machine::COMMIT,
        document["date"].as_str().unwrap_or_default()
    );
    let page = Page {
        title: &title,
        facts: &facts,
        command: &crate::machine::command_line().join(" "),
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
    let mut text: String = predicted.shows().iter().map(|&what| chart(predicted, what)).collect();
    let comparisons = predicted.comparisons();
    if !comparisons.is_empty() {
        text.push_str("<table>\n<thead><tr><th>ratio</th><th>at</th><th>published</th><th>predicted</th></tr></thead>\n<tbody>\n");
        for comparison in &comparisons {
            let cells =
                show::sentence(comparison, series.axis).map(|cell| format!("<td>{}</td>", escape(&cell)));
            let _ = writeln!(text, "<tr>{}</tr>", cells.join(""));
        }
        text.push_str("</tbody>\n</table>\n");
    }
    text.push_str("<details><summary>All figures</summary>\n<table>\n<thead><tr>");
    let others: Vec<Quantity> =
        predicted.shows().iter().copied().filter(|what| *what != Quantity::Committed).collect();
    let mut titles = vec![series.axis, "scheme", "committed/s"];
    titles.extend(others.iter().map(|what| what.name()));
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
            cells.extend(others.iter().map(|what| units::three_digits(what.of(prediction))));
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

/// Where figures lie on an axis.
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// An axis for these figures, all positive.
    fn of(figures: &[f64], from_zero: bool) -> Axis {
        let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let high = figures.iter().copied().fold(0.0, f64::max);
        if high > 8.0 * low && low > 0.0 {
            return Axis { low, high, logarithmic: true };
        }
        let low = if from_zero { 0.0 } else { low };
        Axis { low, high: if high > low { high } else { low + 1.0 }, logarithmic: false }
    }

    fn share(&self, figure: f64) -> f64 {
        match self.logarithmic {
            true => (figure / self.low).ln() / (self.high / self.low).ln(),
            false => (figure - self.low) / (self.high - self.low),
        }
    }

    /// Figures to label: powers of ten with 2 and 5 between them, or five even steps.
    fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            // Rounding must not double the step.
            let step = nice_step(0.999 * (self.high - self.low) / 4.0);
            let first = (self.low / step).ceil() as i64;
            let last = (self.high / step).floor() as i64;
            return (first..=last).map(|i| i as f64 * step).collect();
        }
        let decades = (self.high / self.low).log10();
        let factors: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let all =
            (first..=last).flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
        all.filter(|tick| (self.low * 0.999..=self.high * 1.001).contains(tick)).collect()
    }
}

/// What all schemes have of something, along the axis.
fn chart(predicted: &Predicted, what: Quantity) -> String {
    let series = predicted.series;
    let figures: Vec<f64> = predicted.predictions.iter().flatten().map(|p| what.of(p)).collect();
    if figures.is_empty() {
        return String::new();
    }
    let places: Vec<f64> = series.at.iter().map(|&at| at as f64).collect();
    let (across, up) = (Axis::of(&places, false), Axis::of(&figures, true));
    let longest = series.schemes.iter().map(|scheme| scheme.len()).max().unwrap_or_default();
    let right = WIDTH - (10.0 + RIGHT * longest as f64);
    let x = |at: f64| LEFT + (right - LEFT) * if places.len() == 1 { 0.5 } else { across.share(at) };
    let y = |figure: f64| HEIGHT - (HEIGHT - 12.0) * up.share(figure);
    let name = match what {
        Quantity::Committed => "committed transactions per second",
        what => what.name(),
    };
    let label = escape(&format!("{name} by {}", series.axis));
    let total = HEIGHT + BELOW;
    let mut svg = format!(
        "<h3>{name}</h3>\n<div class=\"chart\"><svg role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {WIDTH} {total}\" style=\"max-width:{WIDTH}px\">\n"
    );
    for tick in up.ticks() {
        let (at, text) = (y(tick), units::short(tick));
        let (base, label) = (at + 4.0, LEFT - 8.0);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"axis\" x=\"{label}\" y=\"{base:.1}\" text-anchor=\"end\">{text}</text>"
        );
    }
    for &place in &places {
        let (at, base, text) = (x(place), HEIGHT + 18.0, units::short(place));
        let _ = writeln!(
            svg,
            "<text class=\"axis\" x=\"{at:.1}\" y=\"{base}\" text-anchor=\"middle\">{text}</text>"
        );
    }
    let (middle, base) = (LEFT + (right - LEFT) / 2.0, HEIGHT + 35.0);
    let _ = writeln!(
        svg,
        "<text class=\"axis\" x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\">{}</text>",
        escape(series.axis)
    );
    let mut ends = Vec::new();
    for (number, scheme) in series.schemes.iter().enumerate() {
        let points: Vec<(f64, f64, f64, u64)> = (predicted.predictions.iter().enumerate())
            .map(|(place, row)| {
                let figure = what.of(&row[number]);
                (x(places[place]), y(figure), figure, series.at[place])
            })
            .collect();
        let Some(&(_, end, ..)) = points.last() else { continue };
        ends.push((end, *scheme, number));
        let colour = colour(scheme, number);
        let dashed = if *scheme == "rc" { " class=\"dashed\"" } else { "" };
        let line: Vec<String> = points.iter().map(|(x, y, ..)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(svg, "<polyline{dashed} points=\"{}\" stroke=\"{colour}\"/>", line.join(" "));
        for (x, y, figure, at) in points {
            let figure = if figure < 1000.0 { units::three_digits(figure) } else { units::rate(figure) };
            let tip = escape(&format!("{scheme}, {at} {}\n{figure} {}", series.axis, what.name()));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\" data-tip=\"{tip}\"/>"
            );
        }
    }
    // Names at the ends of the lines, apart from each other.
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut last = f64::NEG_INFINITY;
    for (end, scheme, number) in ends {
        last = (end + 4.0).max(last + 15.0);
        let (at, colour) =
            (if places.len() == 1 { middle + 12.0 } else { right + 10.0 }, colour(scheme, number));
        let _ = writeln!(
            svg,
            "<text class=\"name\" x=\"{at}\" y=\"{last:.1}\" style=\"fill:{colour}\">{scheme}</text>"
        );
    }
    svg + "</svg></div>\n"
}

/// Of a scheme, or the n-th pair.
fn colour(scheme: &str, number: usize) -> String {
    svg::colour(match scheme {
        "dst" => 0,
        "gts" => 1,
        "vts" => 2,
        "none" => 3,
        "rc" => 7,
        _ => number,
    })
}
