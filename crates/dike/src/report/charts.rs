//! The charts that only Dike's page has, of the parts that all charts are made of.
//!
//! Vertical axes have their labels on the grid lines, inside: the plot keeps the whole width of a
//! telephone.

use plimsoll_page::html::escape;
use plimsoll_page::svg::{Decades, close, colour, open, share, steps, tick};

use crate::metrics::summary::BoxPlot;

pub mod over_time;

/// Percentiles of one series.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub series: usize,
    /// Percentiles by name, ascending, in microseconds.
    pub percentiles: Vec<(&'static str, f64)>,
}

/// A point of the availability plane.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// What is written beside it.
    pub name: String,
    /// Its colour.
    pub series: usize,
    /// 0 to 1, to the right.
    pub x: f64,
    /// 0 to 1, upwards.
    pub y: f64,
    /// What it says beside the pointer.
    pub tip: String,
}

/// Percentiles on a logarithmic axis, names above them.
pub fn percentiles(label: &str, rows: &[Row]) -> String {
    const ROW: usize = 40;
    let figures = rows.iter().flat_map(|row| &row.percentiles).map(|(_, us)| *us);
    let Some(axis) = Decades::over(figures, 1.0, 99.0) else { return String::new() };
    let height = rows.len() * ROW;
    let mut svg = open(label, height + 24);
    axis.grid(&mut svg, height);
    for (i, row) in rows.iter().enumerate() {
        let (base, name) = (i * ROW + 13, escape(&row.name));
        svg.push_str(&format!("<text class=\"halo\" x=\"0\" y=\"{base}\">{name}</text>\n"));
        axis.dots(&mut svg, i * ROW + 25, row.series, &row.name, &row.percentiles);
    }
    close(svg)
}

/// The availability plane: T_e to the right, R_e upwards; good is at the upper right.
pub fn plane(label: &str, x_name: &str, y_name: &str, points: &[Point]) -> String {
    const SIDE: usize = 300;
    const LEFT: f64 = 2.0;
    const RIGHT: f64 = 94.0;
    let x = |value: f64| LEFT + (RIGHT - LEFT) * share(value, 1.0).clamp(0.0, 1.0);
    let y = |value: f64| 18.0 + (SIDE as f64 - 18.0) * (1.0 - share(value, 1.0).clamp(0.0, 1.0));
    let mut svg = open(label, SIDE + 40);
    for tick in 0..=5 {
        let value = f64::from(tick) / 5.0;
        let (across, up, bottom) = (x(value), y(value), SIDE + 17);
        let base = up - 4.0;
        svg.push_str(&format!(
            r#"<line class="grid" x1="{LEFT}%" x2="{RIGHT}%" y1="{up:.1}" y2="{up:.1}"/><line class="grid" x1="{across:.1}%" x2="{across:.1}%" y1="18" y2="{SIDE}"/><text class="axis" x="{across:.1}%" y="{bottom}" text-anchor="middle">{value}</text>
"#
        ));
        if tick > 0 {
            svg.push_str(&format!(
                "<text class=\"axis halo\" x=\"{LEFT}%\" dx=\"3\" y=\"{base:.1}\">{value}</text>\n"
            ));
        }
    }
    let (names, below) = (y(0.0) - 6.0, SIDE + 34);
    let (x_name, y_name) = (escape(x_name), escape(y_name));
    svg.push_str(&format!(
        r#"<text class="small" x="{RIGHT}%" y="{below}" text-anchor="end">{x_name} →</text>
<text class="small halo" x="{LEFT}%" dx="3" y="{names:.0}">↑ {y_name}</text>
"#
    ));
    // Names of points that are close go below one another.
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for point in points {
        let (cx, cy, colour) = (x(point.x), y(point.y), colour(point.series));
        let (name, tip) = (escape(&point.name), escape(&point.tip));
        let mut base = cy + 4.0;
        while taken.iter().any(|(x, y)| (x - cx).abs() < 4.0 && (y - base).abs() < 12.5) {
            base += 13.0;
        }
        taken.push((cx, base));
        svg.push_str(&format!(
            r#"<g data-tip="{tip}"><circle cx="{cx:.2}%" cy="{cy:.1}" r="6" fill="{colour}"/><text class="halo" x="{cx:.2}%" dx="10" y="{base:.1}">{name}</text></g>
"#
        ));
    }
    close(svg)
}

/// Box plots below one another on one axis from zero: the range as a line, the middle half as a
/// box, the median in it.
pub fn boxes(label: &str, rows: &[(String, usize, BoxPlot)], say: fn(f64) -> String) -> String {
    const ROW: usize = 48;
    let highest = rows.iter().map(|(_, _, plot)| plot.max).fold(0.0, f64::max);
    let (step, ticks) = steps(highest, 3.5);
    let x = |value: f64| 99.5 * share(value, step * ticks as f64);
    let height = rows.len() * ROW;
    let mut svg = open(label, height + 24);
    for value in (0..=ticks).map(|i| step * i as f64) {
        tick(&mut svg, x(value), height, &say(value));
    }
    for (i, (name, series, plot)) in rows.iter().enumerate() {
        let (text, top, middle) = (i * ROW + 14, i * ROW + 21, i * ROW + 30);
        let bottom = top + 18;
        let [min, lower, median, upper, max] =
            [plot.min, plot.lower, plot.median, plot.upper, plot.max].map(x);
        let width = (upper - lower).max(0.3);
        let tip = escape(&format!(
            "{name}\nfrom {} to {}\nmiddle half {} to {}\nmedian {}",
            say(plot.min),
            say(plot.max),
            say(plot.lower),
            say(plot.upper),
            say(plot.median)
        ));
        let (name, colour) = (escape(name), colour(*series));
        let imbalance = format!("largest {:.2}× the mean", plot.imbalance);
        svg.push_str(&format!(
            r#"<g data-tip="{tip}"><text class="name halo" x="0" y="{text}">{name}</text><text class="small halo" x="100%" y="{text}" text-anchor="end">{imbalance}</text>
<line x1="{min:.2}%" x2="{max:.2}%" y1="{middle}" y2="{middle}" stroke="{colour}" stroke-width="2"/>
<rect x="{lower:.2}%" y="{top}" width="{width:.2}%" height="18" rx="2" fill="{colour}" fill-opacity=".35" stroke="{colour}"/>
<line x1="{median:.2}%" x2="{median:.2}%" y1="{top}" y2="{bottom}" stroke="{colour}" stroke-width="3"/></g>
"#
        ));
    }
    close(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_of_nothing_are_empty_or_flat_but_never_nonsense() {
        let zero = BoxPlot::of(&[0.0]).expect("a value");
        for chart in [
            percentiles("test", &[Row::default()]),
            percentiles("test", &[Row { percentiles: vec![("p50", 0.0)], ..Row::default() }]),
            plane("test", "x", "y", &[Point { x: f64::NAN, y: -1.0, ..Point::default() }]),
            boxes("test", &[("x".into(), 0, zero)], crate::report::units::value),
        ] {
            assert!(!chart.contains("NaN") && !chart.contains("inf"), "{chart}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let point = Point { name: "<a&b>".into(), tip: "\"x\"".into(), ..Point::default() };
        let svg = plane("l\"", "x", "y", &[point]);
        assert!(
            svg.contains("&lt;a&amp;b&gt;") && svg.contains("&quot;x&quot;") && !svg.contains("<a&"),
            "{svg}"
        );
    }
}
