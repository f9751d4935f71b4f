//! Four kinds of charts as inline SVG.
//!
//! Horizontal positions are percentages, so that a chart fills any width while its text keeps its size; no
//! script lays anything out. Colours are classes of the page's style sheet (`--s0`, `--s1`, ... by series),
//! so that a chart follows a light or a dark page. What a shape stands for is in its `data-tip`, which the
//! page shows beside the pointer; the figures themselves are also written out, in the chart or in a table,
//! so that a chart needs neither a pointer nor sight.
//!
//! Pairs that are not serializable are drawn pale with a dashed outline: colour alone would not survive a
//! black-and-white print.

use std::fmt::Write;

use super::html::escape;
use super::model::{Latency, per};
use super::units;

/// Series colours in the style sheet; more series start again.
const COLOURS: usize = 10;

/// One bar: a figure with its range over the repetitions.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// What it is, at the left.
    pub name: String,
    /// Its figure in words, at the right.
    pub figure: String,
    /// What it is relative to the reference, at the far right; empty for the reference itself.
    pub ratio: String,
    /// Its length.
    pub value: f64,
    /// The figure of each repetition, in order.
    pub repetitions: Vec<f64>,
    /// Its colour.
    pub series: usize,
    /// Whether it is a yardstick, not a result.
    pub yardstick: bool,
    /// What it says beside the pointer.
    pub tip: String,
}

/// One row of stacked parts that are shares of something.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// What it is, at the left.
    pub name: String,
    /// Its sum in words, at the right.
    pub figure: String,
    /// Parts: colour, share, what it says beside the pointer.
    pub parts: Vec<(usize, f64, String)>,
}

/// Percentiles under one heading.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The heading; empty for none.
    pub name: String,
    /// Rows: name, colour, percentiles.
    pub rows: Vec<(String, usize, Latency)>,
}

/// One line of a chart over time.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Its colour.
    pub colour: usize,
    /// One figure per interval.
    pub figures: Vec<f64>,
    /// Length of an interval.
    pub interval_seconds: f64,
    /// Whether it stands behind the others: a further repetition.
    pub faint: bool,
    /// Whether it is a yardstick.
    pub yardstick: bool,
}

/// Bars below one another, longest figure at full width. Whiskers span the repetitions, dots are them.
pub fn bars(label: &str, bars: &[Bar]) -> String {
    const ROW: usize = 46;
    let longest =
        bars.iter().flat_map(|bar| bar.repetitions.iter().copied().chain([bar.value])).fold(0.0, f64::max);
    let x = |figure: f64| 100.0 * per(figure, longest);
    let figure_at = if bars.iter().any(|bar| !bar.ratio.is_empty()) { 82 } else { 100 };
    let mut svg = open(label, bars.len() * ROW);
    for (i, bar) in bars.iter().enumerate() {
        let (text, top, middle) = (i * ROW + 14, i * ROW + 20, i * ROW + 28);
        let name = escape(&bar.name);
        let note = if bar.yardstick { r#"<tspan class="small" dx="8">not serializable</tspan>"# } else { "" };
        let (figure, ratio) = (escape(&bar.figure), escape(&bar.ratio));
        let (tip, width) = (escape(&bar.tip), x(bar.value));
        let (colour, class) = (colour(bar.series), if bar.yardstick { "yardstick" } else { "" });
        let stroke = if bar.yardstick { format!(" stroke=\"{colour}\"") } else { String::new() };
        push(
            &mut svg,
            format_args!(
                r#"<g data-tip="{tip}"><text class="name" x="0" y="{text}">{name}{note}</text>
<text x="{figure_at}%" y="{text}" text-anchor="end">{figure}</text>
<text class="name" x="100%" y="{text}" text-anchor="end">{ratio}</text>
<rect class="track" x="0" y="{top}" width="100%" height="16" rx="3"/>
<rect class="{class}" x="0" y="{top}" width="{width:.2}%" height="16" rx="3" fill="{colour}"{stroke}/>
"#
            ),
        );
        if bar.repetitions.len() > 1 {
            let from = x(bar.repetitions.iter().copied().fold(f64::INFINITY, f64::min));
            let to = x(bar.repetitions.iter().copied().fold(0.0, f64::max));
            push(
                &mut svg,
                format_args!(
                    r#"<line class="whisker" x1="{from:.2}%" x2="{to:.2}%" y1="{middle}" y2="{middle}"/>
"#
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

/// Stacked shares below one another, the largest sum at full width.
pub fn stacks(label: &str, stacks: &[Stack]) -> String {
    const ROW: usize = 42;
    let sum = |stack: &Stack| stack.parts.iter().map(|(_, share, _)| share).sum::<f64>();
    let longest = stacks.iter().map(sum).fold(0.0, f64::max);
    let mut svg = open(label, stacks.len() * ROW);
    for (i, stack) in stacks.iter().enumerate() {
        let (text, top) = (i * ROW + 14, i * ROW + 20);
        let (name, figure) = (escape(&stack.name), escape(&stack.figure));
        push(
            &mut svg,
            format_args!(
                r#"<text class="name" x="0" y="{text}">{name}</text>
<text x="100%" y="{text}" text-anchor="end">{figure}</text>
<rect class="track" x="0" y="{top}" width="100%" height="13" rx="3"/>
"#
            ),
        );
        let mut left = 0.0;
        for (series, share, tip) in &stack.parts {
            let (width, colour, tip) = (100.0 * per(*share, longest), colour(*series), escape(tip));
            push(
                &mut svg,
                format_args!(
                    r#"<rect x="{left:.2}%" y="{top}" width="{width:.2}%" height="13" fill="{colour}" data-tip="{tip}"/>
"#
                ),
            );
            left += width;
        }
    }
    close(svg)
}

/// Percentiles on a logarithmic axis: the larger and fuller a dot, the commoner such a latency.
pub fn percentiles(label: &str, groups: &[Group]) -> String {
    const ROW: usize = 22;
    const HEADING: usize = 30;
    /// Where the axis begins and ends, in percent: names are at the left.
    const LEFT: f64 = 19.0;
    const RIGHT: f64 = 99.0;
    /// Radius and opacity from the median to the maximum.
    const DOTS: [(f64, f64); 5] = [(6.0, 1.0), (5.0, 0.8), (4.5, 0.62), (4.0, 0.46), (3.0, 0.34)];

    let figures = || {
        let rows = groups.iter().flat_map(|group| &group.rows);
        rows.flat_map(|(_, _, latency)| latency.percentiles()).map(|(_, us)| us).filter(|us| *us > 0.0)
    };
    let low = figures().fold(f64::INFINITY, f64::min).log10().floor();
    let high = figures().fold(0.0, f64::max).log10().ceil();
    if !low.is_finite() || !high.is_finite() {
        return String::new();
    }
    let high = high.max(low + 1.0);
    let x = |us: f64| LEFT + (RIGHT - LEFT) * ((us.log10() - low) / (high - low)).clamp(0.0, 1.0);
    let heading = |group: &Group| if group.name.is_empty() { 6 } else { HEADING };
    let height: usize = groups.iter().map(|group| heading(group) + group.rows.len() * ROW).sum();

    let mut svg = open(label, height + 24);
    for decade in low as i32..=high as i32 {
        let us = 10f64.powi(decade);
        let (at, text) = (x(us), decade_label(decade));
        let anchor = if decade as f64 == high { "end" } else { "middle" };
        let bottom = height + 18;
        push(
            &mut svg,
            format_args!(
                r#"<line class="grid" x1="{at:.2}%" x2="{at:.2}%" y1="0" y2="{height}"/>
<text class="axis" x="{at:.2}%" y="{bottom}" text-anchor="{anchor}">{text}</text>
"#
            ),
        );
    }
    let mut top = 0;
    for group in groups {
        top += heading(group);
        if !group.name.is_empty() {
            let (y, name) = (top - 8, escape(&group.name));
            push(&mut svg, format_args!("<text class=\"name\" x=\"0\" y=\"{y}\">{name}</text>\n"));
        }
        for (name, series, latency) in &group.rows {
            let (middle, base, colour) = (top + ROW / 2, top + ROW / 2 + 4, colour(*series));
            let (from, to, text) = (x(latency.p50), x(latency.max), escape(name));
            push(
                &mut svg,
                format_args!(
                    r#"<text x="0" y="{base}">{text}</text>
<line x1="{from:.2}%" x2="{to:.2}%" y1="{middle}" y2="{middle}" stroke="{colour}" stroke-opacity=".35" stroke-width="2"/>
"#
                ),
            );
            for ((percentile, us), (radius, opacity)) in latency.percentiles().into_iter().zip(DOTS).rev() {
                if us <= 0.0 {
                    continue;
                }
                let what = if group.name.is_empty() { String::new() } else { format!("{} · ", group.name) };
                let tip = escape(&format!("{what}{name}\n{percentile}: {}", units::duration_us(us)));
                let at = x(us);
                push(
                    &mut svg,
                    format_args!(
                        r#"<circle cx="{at:.2}%" cy="{middle}" r="{radius}" fill="{colour}" fill-opacity="{opacity}" data-tip="{tip}"/>
"#
                    ),
                );
            }
            top += ROW;
        }
    }
    close(svg)
}

/// Figures over time, from zero.
pub fn lines(label: &str, series: &[Series]) -> String {
    const HEIGHT: usize = 240;
    /// Room for the labels of the vertical axis, in percent.
    const LEFT: f64 = 9.0;
    let ends = |line: &Series| line.interval_seconds * line.figures.len() as f64;
    let seconds = series.iter().map(ends).fold(0.0, f64::max);
    let highest = series.iter().flat_map(|line| line.figures.iter().copied()).fold(0.0, f64::max);
    if seconds <= 0.0 || highest <= 0.0 {
        return String::new();
    }
    let step = nice_step(highest / 4.0);
    let top = step * (highest / step).ceil();
    let y = |figure: f64| HEIGHT as f64 * (1.0 - figure / top);

    let mut svg = open(label, HEIGHT + 40);
    svg.push_str("<svg y=\"14\" overflow=\"visible\">\n");
    for tick in 0..=(top / step).round() as usize {
        let figure = step * tick as f64;
        let (at, text) = (y(figure), units::short(figure));
        let base = at + 4.0;
        push(
            &mut svg,
            format_args!(
                r#"<line class="grid" x1="{LEFT}%" x2="100%" y1="{at:.1}" y2="{at:.1}"/><text class="axis" x="0" y="{base:.1}">{text}</text>
"#
            ),
        );
    }
    let step = nice_step(seconds / 6.0);
    for tick in 1..=(seconds / step).floor() as usize {
        let at = LEFT + (100.0 - LEFT) * step * tick as f64 / seconds;
        let anchor = if at > 97.0 { "end" } else { "middle" };
        let text = units::three_digits(step * tick as f64);
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        let bottom = HEIGHT + 18;
        push(
            &mut svg,
            format_args!(
                r#"<text class="axis" x="{at:.2}%" y="{bottom}" text-anchor="{anchor}">{text} s</text>
"#
            ),
        );
    }
    let width = 100.0 - LEFT;
    push(
        &mut svg,
        format_args!(
            "<svg x=\"{LEFT}%\" width=\"{width}%\" height=\"{HEIGHT}\" viewBox=\"0 0 1000 {HEIGHT}\" preserveAspectRatio=\"none\">\n"
        ),
    );
    // Further repetitions first, so that they are behind.
    for line in series.iter().filter(|line| line.faint).chain(series.iter().filter(|line| !line.faint)) {
        let point = |(i, figure): (usize, &f64)| {
            let at = 1000.0 * line.interval_seconds * (i as f64 + 0.5) / seconds;
            format!("{at:.1},{:.1}", y(*figure))
        };
        let points: Vec<String> = line.figures.iter().enumerate().map(point).collect();
        let mean = per(line.figures.iter().sum(), line.figures.len() as f64);
        let (points, colour) = (points.join(" "), colour(line.colour));
        let tip = escape(&format!("{}\n{}/s on average", line.name, units::rate(mean)));
        let faint = if line.faint { "faint" } else { "" };
        let dashed = if line.yardstick { "dashed" } else { "" };
        push(
            &mut svg,
            format_args!(
                "<polyline class=\"{faint} {dashed}\" points=\"{points}\" stroke=\"{colour}\" data-tip=\"{tip}\"/>\n"
            ),
        );
    }
    svg.push_str("</svg></svg>\n");
    close(svg)
}

/// Names of colours below a chart.
pub fn legend(entries: &[(String, usize)]) -> String {
    let mut list = String::from("<ul class=\"legend\">");
    for (name, series) in entries {
        let (name, colour) = (escape(name), colour(*series));
        push(&mut list, format_args!("<li><i style=\"background:{colour}\"></i>{name}</li>"));
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

/// `10 µs`, `1 ms`: the label of a power of ten of microseconds.
fn decade_label(decade: i32) -> String {
    match decade {
        ..0 => format!("{} ns", 10f64.powi(decade + 3)),
        0..3 => format!("{} µs", 10f64.powi(decade)),
        3..6 => format!("{} ms", 10f64.powi(decade - 3)),
        _ => format!("{} s", 10f64.powi(decade - 6)),
    }
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
    fn decades_take_the_unit_that_fits() {
        assert_eq!([-1, 0, 2, 3, 6].map(decade_label), ["100 ns", "1 µs", "100 µs", "1 ms", "1 s"]);
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
        let zero = Latency::default();
        let group = Group { name: "x".into(), rows: vec![("y".into(), 0, zero)] };
        let flat = Series { figures: vec![0.0], interval_seconds: 1.0, ..Series::default() };
        for chart in [
            bars("test", &[]),
            bars("test", &[Bar::default()]),
            stacks("test", &[Stack::default()]),
            percentiles("test", &[]),
            percentiles("test", &[group]),
            lines("test", &[]),
            lines("test", &[flat]),
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
