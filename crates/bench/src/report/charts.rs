//! The charts that only a benchmark's page has, of the parts that all charts are made of.
//!
//! Pairs that are not serializable are drawn dashed: colour alone would not survive a
//! black-and-white print.

use plimsoll_page::html::escape;
use plimsoll_page::svg::{Decades, close, colour, open, seconds_axis, share, steps};
use plimsoll_page::units;

use super::model::Latency;

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

/// Stacked shares below one another, the largest sum at full width.
pub fn stacks(label: &str, stacks: &[Stack]) -> String {
    const ROW: usize = 42;
    let sum = |stack: &Stack| stack.parts.iter().map(|(_, share, _)| share).sum::<f64>();
    let longest = stacks.iter().map(sum).fold(0.0, f64::max);
    let mut svg = open(label, stacks.len() * ROW);
    for (i, stack) in stacks.iter().enumerate() {
        let (text, top) = (i * ROW + 14, i * ROW + 20);
        let (name, figure) = (escape(&stack.name), escape(&stack.figure));
        svg.push_str(&format!(
            r#"<text class="name" x="0" y="{text}">{name}</text>
<text x="100%" y="{text}" text-anchor="end">{figure}</text>
<rect class="track" x="0" y="{top}" width="100%" height="13" rx="3"/>
"#
        ));
        let mut left = 0.0;
        for (series, part, tip) in &stack.parts {
            let (width, colour, tip) = (100.0 * share(*part, longest), colour(*series), escape(tip));
            svg.push_str(&format!(
                r#"<rect x="{left:.2}%" y="{top}" width="{width:.2}%" height="13" fill="{colour}" data-tip="{tip}"/>
"#
            ));
            left += width;
        }
    }
    close(svg)
}

/// Percentiles on a logarithmic axis, names at the left.
pub fn percentiles(label: &str, groups: &[Group]) -> String {
    const ROW: usize = 22;
    const HEADING: usize = 30;
    let latencies = groups.iter().flat_map(|group| &group.rows).map(|(_, _, latency)| latency);
    let figures = latencies.flat_map(|latency| latency.percentiles().map(|(_, us)| us));
    let Some(axis) = Decades::over(figures, 19.0, 99.0) else { return String::new() };
    let heading = |group: &Group| if group.name.is_empty() { 6 } else { HEADING };
    let height: usize = groups.iter().map(|group| heading(group) + group.rows.len() * ROW).sum();

    let mut svg = open(label, height + 24);
    axis.grid(&mut svg, height);
    let mut top = 0;
    for group in groups {
        top += heading(group);
        if !group.name.is_empty() {
            let (y, name) = (top - 8, escape(&group.name));
            svg.push_str(&format!("<text class=\"name\" x=\"0\" y=\"{y}\">{name}</text>\n"));
        }
        for (name, series, latency) in &group.rows {
            let (base, text) = (top + ROW / 2 + 4, escape(name));
            svg.push_str(&format!("<text x=\"0\" y=\"{base}\">{text}</text>\n"));
            let whole = match group.name.as_str() {
                "" => name.clone(),
                group => format!("{group} · {name}"),
            };
            axis.dots(&mut svg, top + ROW / 2, *series, &whole, &latency.percentiles());
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
    let (step, ticks) = steps(highest, 4.0);
    let top = step * ticks as f64;
    let y = |figure: f64| HEIGHT as f64 * (1.0 - figure / top);

    let mut svg = open(label, HEIGHT + 40);
    svg.push_str("<svg y=\"14\" overflow=\"visible\">\n");
    for tick in 0..=ticks {
        let figure = step * tick as f64;
        let (at, text) = (y(figure), units::short(figure));
        let base = at + 4.0;
        svg.push_str(&format!(
            r#"<line class="grid" x1="{LEFT}%" x2="100%" y1="{at:.1}" y2="{at:.1}"/><text class="axis" x="0" y="{base:.1}">{text}</text>
"#
        ));
    }
    seconds_axis(&mut svg, seconds, LEFT, HEIGHT);
    let width = 100.0 - LEFT;
    svg.push_str(&format!(
        "<svg x=\"{LEFT}%\" width=\"{width}%\" height=\"{HEIGHT}\" viewBox=\"0 0 1000 {HEIGHT}\" preserveAspectRatio=\"none\">\n"
    ));
    // Further repetitions first, so that they are behind.
    for line in series.iter().filter(|line| line.faint).chain(series.iter().filter(|line| !line.faint)) {
        let point = |(i, figure): (usize, &f64)| {
            let at = 1000.0 * line.interval_seconds * (i as f64 + 0.5) / seconds;
            format!("{at:.1},{:.1}", y(*figure))
        };
        let points: Vec<String> = line.figures.iter().enumerate().map(point).collect();
        let mean = share(line.figures.iter().sum(), line.figures.len() as f64);
        let (points, colour) = (points.join(" "), colour(line.colour));
        let tip = escape(&format!("{}\n{}/s on average", line.name, units::rate(mean)));
        let faint = if line.faint { "faint" } else { "" };
        let dashed = if line.yardstick { "dashed" } else { "" };
        svg.push_str(&format!(
            "<polyline class=\"{faint} {dashed}\" points=\"{points}\" stroke=\"{colour}\" data-tip=\"{tip}\"/>\n"
        ));
    }
    svg.push_str("</svg></svg>\n");
    close(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_of_nothing_are_empty_or_flat_but_never_nonsense() {
        let zero = Latency::default();
        let group = Group { name: "x".into(), rows: vec![("y".into(), 0, zero)] };
        let flat = Series { figures: vec![0.0], interval_seconds: 1.0, ..Series::default() };
        for chart in [
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
        let group = Group { name: "<a&b>".into(), rows: vec![("\"x\"".into(), 0, latency())] };
        let svg = percentiles("l\"", &[group]);
        assert!(
            svg.contains("&lt;a&amp;b&gt;") && svg.contains("&quot;x&quot;") && !svg.contains("<a&"),
            "{svg}"
        );
    }

    fn latency() -> Latency {
        Latency { p50: 1.0, p90: 2.0, p99: 3.0, p999: 4.0, max: 5.0, ..Latency::default() }
    }
}
