//! Charts as inline SVG.
//!
//! Horizontal positions are percentages, so that a chart fills any width while its text keeps its size; no
//! script lays anything out. Colours are variables of the page's style (`--s0`, `--s1`, ... by series), so
//! that a chart follows a light or a dark page. What a shape stands for is in its `data-tip`, which the page
//! shows beside the pointer; every figure is also in a table, so that nobody needs a pointer, or sight.
//!
//! Vertical axes have their labels on the grid lines, inside: the plot keeps the whole width of a telephone.
//!
//! Values that are not finite are drawn as 0.

use std::fmt::Write;

use super::html::escape;
use super::units;
use crate::metrics::summary::BoxPlot;

pub mod over_time;

/// Series colours in the style sheet; more series start again.
const COLOURS: usize = 10;
/// One bar: a figure with its range over the repetitions.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// What it is, at the left.
    pub name: String,
    /// Its figure in words, at the right.
    pub figure: String,
    /// Its length.
    pub value: f64,
    /// The figure of each repetition.
    pub repetitions: Vec<f64>,
    /// Its colour.
    pub series: usize,
    /// What it says beside the pointer.
    pub tip: String,
}

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

/// Bars below one another, longest figure at full width. Whiskers span the repetitions, dots are them.
pub fn bars(label: &str, bars: &[Bar]) -> String {
    const ROW: usize = 46;
    let longest =
        bars.iter().flat_map(|bar| bar.repetitions.iter().copied().chain([bar.value])).fold(0.0, f64::max);
    let x = |figure: f64| 100.0 * share(figure, longest);
    let mut svg = open(label, bars.len() * ROW);
    for (i, bar) in bars.iter().enumerate() {
        let (text, top, middle) = (i * ROW + 14, i * ROW + 20, i * ROW + 28);
        let (name, figure, tip) = (escape(&bar.name), escape(&bar.figure), escape(&bar.tip));
        let (width, colour) = (x(bar.value), colour(bar.series));
        push(
            &mut svg,
            format_args!(
                r#"<g data-tip="{tip}"><text class="name" x="0" y="{text}">{name}</text>
<text x="100%" y="{text}" text-anchor="end">{figure}</text>
<rect class="track" x="0" y="{top}" width="100%" height="16" rx="3"/>
<rect x="0" y="{top}" width="{width:.2}%" height="16" rx="3" fill="{colour}"/>
"#
            ),
        );
        if bar.repetitions.len() > 1 {
            let from = x(bar.repetitions.iter().copied().fold(f64::INFINITY, f64::min));
            let to = x(bar.repetitions.iter().copied().fold(0.0, f64::max));
            push(
                &mut svg,
                format_args!(
                    "<line class=\"whisker\" x1=\"{from:.2}%\" x2=\"{to:.2}%\" y1=\"{middle}\" y2=\"{middle}\"/>\n"
                ),
            );
            for figure in &bar.repetitions {
                let at = x(*figure);
                push(&mut svg, format_args!(r#"<circle class="dot" cx="{at:.2}%" cy="{middle}" r="3"/>"#));
            }
        }
        svg.push_str("</g>\n");
    }
    close(svg)
}

/// Percentiles on a logarithmic axis: the larger and fuller a dot, the commoner such a latency.
pub fn percentiles(label: &str, rows: &[Row]) -> String {
    const ROW: usize = 40;
    /// Radius and opacity from the commonest to the rarest.
    const DOTS: [(f64, f64); 5] = [(6.0, 1.0), (5.0, 0.8), (4.5, 0.62), (4.0, 0.46), (3.0, 0.34)];
    let figures = || {
        rows.iter()
            .flat_map(|row| &row.percentiles)
            .map(|(_, us)| *us)
            .filter(|us| *us > 0.0 && us.is_finite())
    };
    let low = figures().fold(f64::INFINITY, f64::min).log10().floor();
    let high = figures().fold(0.0, f64::max).log10().ceil();
    if !low.is_finite() || !high.is_finite() {
        return String::new();
    }
    let high = high.max(low + 1.0);
    let x = |us: f64| 1.0 + 98.0 * ((us.log10() - low) / (high - low)).clamp(0.0, 1.0);
    let height = rows.len() * ROW;
    let mut svg = open(label, height + 24);
    for decade in low as i32..=high as i32 {
        let (at, text) = (x(10f64.powi(decade)), units::decade(decade));
        let anchor = match decade {
            first if first == low as i32 => "start",
            last if last == high as i32 => "end",
            _ => "middle",
        };
        let bottom = height + 18;
        push(
            &mut svg,
            format_args!(
                r#"<line class="grid" x1="{at:.2}%" x2="{at:.2}%" y1="0" y2="{height}"/><text class="axis" x="{at:.2}%" y="{bottom}" text-anchor="{anchor}">{text}</text>
"#
            ),
        );
    }
    for (i, row) in rows.iter().enumerate() {
        let (base, middle, colour) = (i * ROW + 13, i * ROW + 25, colour(row.series));
        let name = escape(&row.name);
        let ends = row.percentiles.first().zip(row.percentiles.last());
        let (from, to) = ends.map_or((0.0, 0.0), |((_, from), (_, to))| (x(*from), x(*to)));
        push(
            &mut svg,
            format_args!(
                r#"<text class="halo" x="0" y="{base}">{name}</text>
<line x1="{from:.2}%" x2="{to:.2}%" y1="{middle}" y2="{middle}" stroke="{colour}" stroke-opacity=".35" stroke-width="2"/>
"#
            ),
        );
        for ((percentile, us), (radius, opacity)) in row.percentiles.iter().zip(DOTS).rev() {
            if *us <= 0.0 {
                continue;
            }
            let tip = escape(&format!("{}\n{percentile}: {}", row.name, units::duration_us(*us)));
            let at = x(*us);
            push(
                &mut svg,
                format_args!(
                    r#"<circle cx="{at:.2}%" cy="{middle}" r="{radius}" fill="{colour}" fill-opacity="{opacity}" data-tip="{tip}"/>
"#
                ),
            );
        }
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
        push(
            &mut svg,
            format_args!(
                r#"<line class="grid" x1="{LEFT}%" x2="{RIGHT}%" y1="{up:.1}" y2="{up:.1}"/><line class="grid" x1="{across:.1}%" x2="{across:.1}%" y1="18" y2="{SIDE}"/><text class="axis" x="{across:.1}%" y="{bottom}" text-anchor="middle">{value}</text>
"#
            ),
        );
        if tick > 0 {
            push(
                &mut svg,
                format_args!(
                    "<text class=\"axis halo\" x=\"{LEFT}%\" dx=\"3\" y=\"{base:.1}\">{value}</text>\n"
                ),
            );
        }
    }
    let (names, below) = (y(0.0) - 6.0, SIDE + 34);
    let (x_name, y_name) = (escape(x_name), escape(y_name));
    push(
        &mut svg,
        format_args!(
            r#"<text class="small" x="{RIGHT}%" y="{below}" text-anchor="end">{x_name} →</text>
<text class="small halo" x="{LEFT}%" dx="3" y="{names:.0}">↑ {y_name}</text>
"#
        ),
    );
    // Names of points that are close go below one another.
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for point in points {
        let (cx, cy, colour) = (x(point.x), y(point.y), colour(point.series));
        let (name, tip) = (escape(&point.name), escape(&point.tip));
        let mut base = cy + 4.0;
        while taken.iter().any(|(x, y)| (x - cx).abs() < 4.0 && (y - base).abs() < 13.0) {
            base += 13.0;
        }
        taken.push((cx, base));
        push(
            &mut svg,
            format_args!(
                r#"<g data-tip="{tip}"><circle cx="{cx:.2}%" cy="{cy:.1}" r="6" fill="{colour}"/><text class="halo" x="{cx:.2}%" dx="10" y="{base:.1}">{name}</text></g>
"#
            ),
        );
    }
    close(svg)
}

/// Box plots below one another on one axis from zero: the range as a line, the middle half as a box, the
/// median in it.
pub fn boxes(label: &str, rows: &[(String, usize, BoxPlot)], say: fn(f64) -> String) -> String {
    const ROW: usize = 48;
    let highest = rows.iter().map(|(_, _, plot)| plot.max).fold(0.0, f64::max);
    let step = nice_step(if highest > 0.0 { highest } else { 1.0 } / 3.5);
    let ticks = (highest / step).ceil().max(1.0);
    let x = |value: f64| 99.5 * share(value, ticks * step);
    let height = rows.len() * ROW;
    let mut svg = open(label, height + 24);
    for tick in 0..=ticks as usize {
        let value = step * tick as f64;
        let (at, text, bottom) = (x(value), escape(&say(value)), height + 18);
        let anchor = match tick {
            0 => "start",
            last if last == ticks as usize => "end",
            _ => "middle",
        };
        push(
            &mut svg,
            format_args!(
                r#"<line class="grid" x1="{at:.2}%" x2="{at:.2}%" y1="0" y2="{height}"/><text class="axis" x="{at:.2}%" y="{bottom}" text-anchor="{anchor}">{text}</text>
"#
            ),
        );
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
        push(
            &mut svg,
            format_args!(
                r#"<g data-tip="{tip}"><text class="name halo" x="0" y="{text}">{name}</text><text class="small halo" x="100%" y="{text}" text-anchor="end">{imbalance}</text>
<line x1="{min:.2}%" x2="{max:.2}%" y1="{middle}" y2="{middle}" stroke="{colour}" stroke-width="2"/>
<rect x="{lower:.2}%" y="{top}" width="{width:.2}%" height="18" rx="2" fill="{colour}" fill-opacity=".35" stroke="{colour}"/>
<line x1="{median:.2}%" x2="{median:.2}%" y1="{top}" y2="{bottom}" stroke="{colour}" stroke-width="3"/></g>
"#
            ),
        );
    }
    close(svg)
}

/// Names of colours below a chart; nothing for what was intended.
pub fn legend(entries: &[(String, Option<usize>)]) -> String {
    let mut list = String::from("<ul class=\"legend\">");
    for (name, series) in entries {
        let name = escape(name);
        match series {
            Some(series) => {
                let colour = colour(*series);
                push(&mut list, format_args!("<li><i style=\"background:{colour}\"></i>{name}</li>"));
            }
            None => push(&mut list, format_args!("<li><i class=\"dash\"></i>{name}</li>")),
        }
    }
    list + "</ul>\n"
}

fn colour(series: usize) -> String {
    format!("var(--s{})", series % COLOURS)
}

fn open(label: &str, height: usize) -> String {
    let label = escape(label);
    format!("<div class=\"chart\"><svg role=\"img\" aria-label=\"{label}\" height=\"{height}\">\n")
}

fn close(svg: String) -> String {
    svg + "</svg></div>\n"
}

/// A part of a whole; 0 of nothing, and of what is no number.
fn share(part: f64, whole: f64) -> f64 {
    let share = part / whole;
    if share.is_finite() { share } else { 0.0 }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= least).unwrap_or(least)
}

/// Appends formatted text.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_an_axis_are_round() {
        assert_eq!([0.9, 1.0, 1.1, 2.1, 43_000.0, 0.03].map(nice_step), [1.0, 1.0, 2.0, 5.0, 50_000.0, 0.05]);
    }

    #[test]
    fn the_longest_bar_fills_the_width_whiskers_included() {
        let bar = |value, repetitions| Bar { value, repetitions, ..Bar::default() };
        let svg = bars("test", &[bar(90.0, vec![80.0, 90.0, 100.0]), bar(50.0, vec![50.0])]);
        assert!(svg.contains("width=\"90.00%\"") && svg.contains("x2=\"100.00%\""), "{svg}");
        assert!(svg.contains("width=\"50.00%\""), "{svg}");
    }

    #[test]
    fn charts_of_nothing_are_empty_or_flat_but_never_nonsense() {
        let zero = BoxPlot::of(&[0.0]).expect("a value");
        for chart in [
            bars("test", &[]),
            bars("test", &[Bar::default()]),
            percentiles("test", &[Row::default()]),
            percentiles("test", &[Row { percentiles: vec![("p50", 0.0)], ..Row::default() }]),
            plane("test", "x", "y", &[Point { x: f64::NAN, y: -1.0, ..Point::default() }]),
            boxes("test", &[("x".into(), 0, zero)], units::value),
        ] {
            assert!(!chart.contains("NaN") && !chart.contains("inf"), "{chart}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let bar = Bar { name: "<a&b>".into(), tip: "\"x\"".into(), ..Bar::default() };
        let svg = bars("l\"", &[bar]);
        assert!(
            svg.contains("&lt;a&amp;b&gt;") && svg.contains("&quot;x&quot;") && !svg.contains("<a&"),
            "{svg}"
        );
    }
}
