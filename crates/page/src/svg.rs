//! Charts as inline SVG, and what charts are made of.
//!
//! Horizontal positions are percentages, so that a chart fills any width while its text keeps its
//! size; no script lays anything out. Colours are variables of the page's style (`--s0`, `--s1`,
//! ... by series), so that a chart follows a light or a dark page. What a shape stands for is in
//! its `data-tip`, which the page shows beside the pointer; the figures themselves are also written
//! out, in the chart or in a table, so that a reader needs no pointer, and no sight.
//!
//! What is no number is drawn as 0.

use crate::html::escape;
use crate::units;

/// Series colours in the style sheet; more series start again.
pub const COLOURS: usize = 10;

/// One bar: a figure with its range over the repetitions.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// What it is, at the left.
    pub name: String,
    /// Why it is a yardstick and not a result; empty for a result. A yardstick is pale with a
    /// dashed outline: colour alone would not survive a black-and-white print.
    pub yardstick: &'static str,
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
    /// What it says beside the pointer.
    pub tip: String,
}

/// Bars below one another, longest figure at full width. Whiskers span the repetitions, dots are
/// them.
pub fn bars(label: &str, bars: &[Bar]) -> String {
    const ROW: usize = 46;
    let longest =
        bars.iter().flat_map(|bar| bar.repetitions.iter().copied().chain([bar.value])).fold(0.0, f64::max);
    let x = |figure: f64| 100.0 * share(figure, longest);
    let figure_at = if bars.iter().any(|bar| !bar.ratio.is_empty()) { 82 } else { 100 };
    let mut svg = open(label, bars.len() * ROW);
    for (i, bar) in bars.iter().enumerate() {
        let (text, top, middle) = (i * ROW + 14, i * ROW + 20, i * ROW + 28);
        let [name, figure, ratio, tip] =
            [&bar.name, &bar.figure, &bar.ratio, &bar.tip].map(|text| escape(text));
        let (width, colour) = (x(bar.value), colour(bar.series));
        let (note, class, stroke) = match bar.yardstick {
            "" => (String::new(), "", String::new()),
            why => (
                format!(r#"<tspan class="small" dx="8">{}</tspan>"#, escape(why)),
                "yardstick",
                format!(r#" stroke="{colour}""#),
            ),
        };
        svg.push_str(&format!(
            r#"<g data-tip="{tip}"><text class="name" x="0" y="{text}">{name}{note}</text>
<text x="{figure_at}%" y="{text}" text-anchor="end">{figure}</text>
<text class="name" x="100%" y="{text}" text-anchor="end">{ratio}</text>
<rect class="track" x="0" y="{top}" width="100%" height="16" rx="3"/>
<rect class="{class}" x="0" y="{top}" width="{width:.2}%" height="16" rx="3" fill="{colour}"{stroke}/>
"#
        ));
        if bar.repetitions.len() > 1 {
            let from = x(bar.repetitions.iter().copied().fold(f64::INFINITY, f64::min));
            let to = x(bar.repetitions.iter().copied().fold(0.0, f64::max));
            svg.push_str(&format!(
                r#"<line class="whisker" x1="{from:.2}%" x2="{to:.2}%" y1="{middle}" y2="{middle}"/>
"#
            ));
            for figure in &bar.repetitions {
                let at = x(*figure);
                svg.push_str(&format!(r#"<circle class="dot" cx="{at:.2}%" cy="{middle}" r="3"/>"#));
            }
        }
        svg.push_str("</g>\n");
    }
    close(svg)
}

/// Names of colours below a chart; a dashed line for what has none.
pub fn legend<'a>(entries: impl IntoIterator<Item = (&'a str, Option<usize>)>) -> String {
    let entry = |(name, series): (&str, Option<usize>)| {
        let name = escape(name);
        match series {
            Some(series) => format!("<li><i style=\"background:{}\"></i>{name}</li>", colour(series)),
            None => format!("<li><i class=\"dash\"></i>{name}</li>"),
        }
    };
    format!("<ul class=\"legend\">{}</ul>\n", entries.into_iter().map(entry).collect::<String>())
}

/// A logarithmic axis of durations from one power of ten to another.
#[derive(Clone, Copy, Debug)]
pub struct Decades {
    /// Logarithms of its ends, in microseconds.
    low: f64,
    high: f64,
    /// Where its ends are, in percent of the width.
    left: f64,
    right: f64,
}

impl Decades {
    /// The axis that reaches over all of these that are positive, in microseconds, from `left` to
    /// `right` in percent of the width. Nothing if none is.
    pub fn over(figures_us: impl IntoIterator<Item = f64>, left: f64, right: f64) -> Option<Decades> {
        let (lowest, highest) = figures_us
            .into_iter()
            .filter(|us| *us > 0.0 && us.is_finite())
            .fold((f64::INFINITY, 0.0), |(low, high), us| (us.min(low), us.max(high)));
        let (low, high) = (lowest.log10().floor(), highest.log10().ceil());
        low.is_finite().then(|| Decades { low, high: high.max(low + 1.0), left, right })
    }

    /// Where a duration is, in percent of the width.
    fn x(&self, us: f64) -> f64 {
        let share = (us.log10() - self.low) / (self.high - self.low);
        self.left + (self.right - self.left) * share.clamp(0.0, 1.0)
    }

    /// Draws a line at every power of ten, from the top to `height`, and its name below.
    pub fn grid(&self, svg: &mut String, height: usize) {
        for decade in self.low as i32..=self.high as i32 {
            tick(svg, self.x(10f64.powi(decade)), height, &units::decade(decade));
        }
    }

    /// Draws percentiles of `name` at a height. They ascend, the median first: the larger and
    /// fuller a dot, the commoner such a duration.
    pub fn dots(&self, svg: &mut String, y: usize, series: usize, name: &str, percentiles: &[(&str, f64)]) {
        /// Radius and opacity from the median to the maximum.
        const DOTS: [(f64, f64); 5] = [(6.0, 1.0), (5.0, 0.8), (4.5, 0.62), (4.0, 0.46), (3.0, 0.34)];
        let [Some((_, first)), Some((_, last))] = [percentiles.first(), percentiles.last()] else { return };
        let (from, to, colour) = (self.x(*first), self.x(*last), colour(series));
        svg.push_str(&format!(
            r#"<line x1="{from:.2}%" x2="{to:.2}%" y1="{y}" y2="{y}" stroke="{colour}" stroke-opacity=".35" stroke-width="2"/>
"#
        ));
        for ((percentile, us), (radius, opacity)) in percentiles.iter().zip(DOTS).rev() {
            if *us > 0.0 {
                let tip = escape(&format!("{name}\n{percentile}: {}", units::duration_us(*us)));
                let at = self.x(*us);
                svg.push_str(&format!(
                    r#"<circle cx="{at:.2}%" cy="{y}" r="{radius}" fill="{colour}" fill-opacity="{opacity}" data-tip="{tip}"/>
"#
                ));
            }
        }
    }
}

/// Opens a chart: what it shows, for a reader who cannot see it, and its height in pixels.
pub fn open(label: &str, height: usize) -> String {
    let label = escape(label);
    format!("<div class=\"chart\"><svg role=\"img\" aria-label=\"{label}\" height=\"{height}\">\n")
}

/// Closes a chart.
pub fn close(svg: String) -> String {
    svg + "</svg></div>\n"
}

/// The colour of a series.
pub fn colour(series: usize) -> String {
    format!("var(--s{})", series % COLOURS)
}

/// Draws a line from the top to `height`, and what it stands for below.
pub fn tick(svg: &mut String, percent: f64, height: usize, text: &str) {
    svg.push_str(&format!(
        r#"<line class="grid" x1="{percent:.2}%" x2="{percent:.2}%" y1="0" y2="{height}"/>
"#
    ));
    label_below(svg, percent, height, text);
}

/// Writes what a place stands for below a chart of `height`.
pub fn label_below(svg: &mut String, percent: f64, height: usize, text: &str) {
    let (bottom, anchor, text) = (height + 18, anchor(percent), escape(text));
    svg.push_str(&format!(
        r#"<text class="axis" x="{percent:.2}%" y="{bottom}" text-anchor="{anchor}">{text}</text>
"#
    ));
}

/// Writes the seconds of a run below a chart of `height`. It begins at `left` percent and ends at
/// the right.
pub fn seconds_axis(svg: &mut String, seconds: f64, left: f64, height: usize) {
    let step = nice_step(seconds / 6.0);
    for tick in 1..=(seconds / step).floor() as usize {
        let at = left + (100.0 - left) * step * tick as f64 / seconds;
        label_below(svg, at, height, &format!("{} s", units::brief(step * tick as f64)));
    }
}

/// The steps of an axis from zero to `highest`: how large, and how many reach it. Up to `highest`
/// there are at most `most`.
pub fn steps(highest: f64, most: f64) -> (f64, usize) {
    let highest = if highest > 0.0 && highest.is_finite() { highest } else { 1.0 };
    let step = nice_step(highest / most);
    (step, (highest / step).ceil() as usize)
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `least`.
pub fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= least).unwrap_or(least)
}

/// A part of a whole; 0 of nothing, and of what is no number.
pub fn share(part: f64, whole: f64) -> f64 {
    let share = part / whole;
    if share.is_finite() { share } else { 0.0 }
}

/// How text stands at a place so that it stays within the chart.
fn anchor(percent: f64) -> &'static str {
    match percent {
        x if x < 3.0 => "start",
        x if x > 97.0 => "end",
        _ => "middle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_an_axis_are_round() {
        assert_eq!([0.9, 1.0, 1.1, 2.1, 43_000.0, 0.03].map(nice_step), [1.0, 1.0, 2.0, 5.0, 50_000.0, 0.05]);
        let all = [9.0, 100.0, 0.0, f64::INFINITY].map(|highest| steps(highest, 4.0));
        assert_eq!(all, [(5.0, 2), (50.0, 2), (0.5, 2), (0.5, 2)]);
        assert_eq!(steps(390.0, 3.5), (200.0, 2), "few steps where there is little room");
    }

    #[test]
    fn the_longest_bar_fills_the_width_whiskers_included() {
        let bar = |value, repetitions| Bar { value, repetitions, ..Bar::default() };
        let svg = bars("test", &[bar(90.0, vec![80.0, 90.0, 100.0]), bar(50.0, vec![50.0])]);
        assert!(svg.contains("width=\"90.00%\"") && svg.contains("x2=\"100.00%\""), "{svg}");
        assert!(svg.contains("width=\"50.00%\""), "{svg}");
    }

    #[test]
    fn a_logarithmic_axis_ends_at_powers_of_ten() {
        let axis = Decades::over([30.0, 0.0, 2_000.0], 10.0, 100.0).expect("positive figures");
        assert_eq!([1.0, 10.0, 100.0, 10_000.0].map(|us| axis.x(us)), [10.0, 10.0, 40.0, 100.0]);
        let mut svg = String::new();
        axis.grid(&mut svg, 100);
        assert_eq!(svg.matches("<text").count(), 4);
        assert!(svg.contains(r#"text-anchor="end">10 ms<"#), "{svg}");
    }

    #[test]
    fn charts_of_nothing_are_empty_or_flat_but_never_nonsense() {
        assert!(Decades::over([0.0, f64::NAN, f64::INFINITY], 0.0, 100.0).is_none());
        let mut dots = String::new();
        let axis = Decades::over([1.0], 0.0, 100.0).expect("a positive figure");
        axis.dots(&mut dots, 10, 0, "x", &[]);
        axis.dots(&mut dots, 10, 0, "x", &[("p50", 0.0), ("max", 0.0)]);
        for chart in [bars("test", &[]), bars("test", &[Bar::default()]), dots] {
            assert!(!chart.contains("NaN") && !chart.contains("inf"), "{chart}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let bar = Bar { name: "<a&b>".into(), tip: "\"x\"".into(), ..Bar::default() };
        let svg = bars("l\"", &[bar]) + &legend([("<a&b>", None)]);
        assert!(
            svg.contains("&lt;a&amp;b&gt;") && svg.contains("&quot;x&quot;") && !svg.contains("<a&"),
            "{svg}"
        );
    }
}
