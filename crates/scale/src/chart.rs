//! One chart of predictions: lines along an axis, and beside them what was published.
//!
//! Axes are logarithmic where they span more than a decade, but for shares: schemes differ by
//! factors, and what scales is a straight line. What was published is hollow: a circle, or a band
//! from the least to the largest. It has its line's colour.
//!
//! A chart of latency over throughput has no places of its own: points are where they are, with a
//! line from each load to the next. A published throughput without a latency is upright and dashed.
//!
//! Across, positions are percentages: a chart fills any width, and its text keeps its size.

use std::fmt::Write;

use plimsoll_page::html::escape;
use plimsoll_page::svg::{close, label_below, nice_step, open};
use plimsoll_page::units;

use super::show::between;

/// A chart's height, and the room below for labels, in pixels.
const HEIGHT: f64 = 300.0;
const BELOW: f64 = 40.0;
/// Where the lines begin, and the room at the right for each character of their names, in per cent
/// of the width: a phone's is 360 pixels, and a character takes up to eight of them.
const LEFT: f64 = 13.0;
const CHARACTER: f64 = 2.2;
/// From one line's name to the next, in pixels.
const NAME: f64 = 15.0;

/// What a chart's figures are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A number per second.
    PerSecond,
    /// Microseconds.
    Duration,
    /// Per cent.
    Share,
    /// What one has of another.
    Ratio,
}

/// A chart.
pub struct Chart<'a> {
    /// What it shows.
    pub title: &'a str,
    /// In what.
    pub unit: Unit,
    /// What its axis is.
    pub axis: &'a str,
    /// Places on the axis, ascending; none if points are anywhere.
    pub at: &'a [u64],
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// A line of a chart.
pub struct Line {
    /// What it is, at its end.
    pub name: String,
    /// Its colour.
    pub colour: String,
    /// Whether it is only a yardstick.
    pub dashed: bool,
    /// Places and figures.
    pub points: Vec<(f64, f64)>,
    /// What was published of it.
    pub published: Vec<Span>,
    /// A place of which was published that it is the last.
    pub end: Option<f64>,
}

/// What was published.
pub struct Span {
    /// Where; `None`: anywhere on the axis.
    pub at: Option<f64>,
    /// The figure, or the least.
    pub low: f64,
    /// The figure, or the largest.
    pub high: f64,
}

impl Line {
    /// Where it has anything.
    fn places(&self) -> impl Iterator<Item = f64> {
        let points = self.points.iter().map(|(at, _)| *at);
        points.chain(self.published.iter().filter_map(|span| span.at)).chain(self.end)
    }
}

/// A place on the axis.
fn place(at: f64) -> String {
    units::thousands(at.round() as u64)
}

impl Unit {
    /// A figure, exactly.
    fn figure(self, figure: f64) -> String {
        match self {
            Unit::PerSecond => units::rate(figure) + "/s",
            Unit::Duration => units::duration_us(figure),
            Unit::Share => units::percent(figure / 100.0),
            Unit::Ratio => units::ratio(figure),
        }
    }

    /// A figure at an axis.
    fn tick(self, figure: f64) -> String {
        match self {
            Unit::PerSecond => units::short(figure),
            Unit::Duration if figure < 1e3 => units::brief(figure) + " µs",
            Unit::Duration if figure < 1e6 => units::brief(figure / 1e3) + " ms",
            Unit::Duration => units::brief(figure / 1e6) + " s",
            Unit::Share => units::brief(figure) + "%",
            Unit::Ratio => units::brief(figure) + "×",
        }
    }
}

impl Chart<'_> {
    /// The chart under its title as HTML; nothing if there is nothing to show.
    pub fn render(&self) -> String {
        let figures = self.lines.iter().flat_map(|line| {
            let published = line.published.iter().flat_map(|span| [span.low, span.high]);
            line.points.iter().map(|(_, figure)| *figure).chain(published.filter(|figure| *figure > 0.0))
        });
        let figures: Vec<f64> = figures.collect();
        if figures.is_empty() {
            return String::new();
        }
        let places: Vec<f64> = match self.at.is_empty() {
            true => self.lines.iter().flat_map(Line::places).collect(),
            false => self.at.iter().map(|&at| at as f64).collect(),
        };
        let longest = self.lines.iter().map(|line| line.name.len()).max().unwrap_or_default();
        let frame = Frame {
            across: Axis::of(&places, self.at.is_empty(), !self.at.is_empty()),
            up: Axis::of(&figures, true, self.unit != Unit::Share),
            right: 97.0 - CHARACTER * longest as f64,
            one: places.len() == 1,
        };
        let mut svg = format!("<h3>{}</h3>\n", escape(self.title));
        svg.push_str(&open(&format!("{} by {}", self.title, self.axis), (HEIGHT + BELOW) as usize));
        let ticks = if self.at.is_empty() { frame.across.ticks() } else { places };
        self.draw_axes(&mut svg, &frame, &ticks);
        self.lines.iter().for_each(|line| self.draw_published(&mut svg, &frame, line));
        self.lines.iter().for_each(|line| self.draw_line(&mut svg, &frame, line));
        self.draw_names(&mut svg, &frame);
        close(svg)
    }

    fn draw_axes(&self, svg: &mut String, frame: &Frame, places: &[f64]) {
        let right = frame.right;
        for tick in frame.up.ticks() {
            let (at, text) = (frame.y(tick), self.unit.tick(tick));
            let (base, label) = (at + 4.0, LEFT - 1.5);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}%\" x2=\"{right:.2}%\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"axis\" x=\"{label}%\" y=\"{base:.1}\" text-anchor=\"end\">{text}</text>"
            );
        }
        for &place in places {
            label_below(svg, frame.x(place), HEIGHT as usize, &units::short(place));
        }
        let (middle, base) = (LEFT + (right - LEFT) / 2.0, HEIGHT + 35.0);
        let _ = writeln!(
            svg,
            "<text class=\"axis\" x=\"{middle:.2}%\" y=\"{base}\" text-anchor=\"middle\">{}</text>",
            escape(self.axis)
        );
    }

    fn draw_published(&self, svg: &mut String, frame: &Frame, line: &Line) {
        let colour = &line.colour;
        if let Some(end) = line.end {
            let (x, tip) = (frame.x(end), escape(&format!("{}\npublished peak: {}", line.name, place(end))));
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"12\" y2=\"{HEIGHT}\" stroke=\"{colour}\" stroke-dasharray=\"2 4\" data-tip=\"{tip}\"/>"
            );
        }
        for span in &line.published {
            let place = span.at.map_or_else(|| "all".to_owned(), place);
            let figure = between(span.low, span.high);
            let tip = escape(&format!("{}, {}: {place}\npublished: {figure}", line.name, self.axis));
            let (top, bottom) = (frame.y(span.high), frame.y(span.low));
            let (from, to) = match span.at.map(|at| frame.x(at)) {
                Some(x) => (x - 0.8, x + 0.8),
                None => (LEFT, frame.right),
            };
            let _ = match span.low < span.high {
                true => writeln!(
                    svg,
                    "<rect x=\"{from:.2}%\" y=\"{top:.1}\" width=\"{:.2}%\" height=\"{:.1}\" fill=\"{colour}\" fill-opacity=\".13\" data-tip=\"{tip}\"/>",
                    to - from,
                    bottom - top
                ),
                false => writeln!(
                    svg,
                    "<circle cx=\"{:.2}%\" cy=\"{top:.1}\" r=\"6\" fill=\"none\" pointer-events=\"all\" stroke=\"{colour}\" stroke-width=\"2\" data-tip=\"{tip}\"/>",
                    (from + to) / 2.0
                ),
            };
        }
    }

    fn draw_line(&self, svg: &mut String, frame: &Frame, line: &Line) {
        let (colour, dashed) = (&line.colour, if line.dashed { " class=\"dashed\"" } else { "" });
        let position = |&(at, figure): &(f64, f64)| (frame.x(at), frame.y(figure));
        let corner = |(x, y): (f64, f64)| format!("{x:.2},{y:.1}");
        let corners: Vec<String> = line.points.iter().map(position).map(corner).collect();
        let _ = writeln!(
            svg,
            "<svg width=\"100%\" height=\"{HEIGHT}\" viewBox=\"0 0 100 {HEIGHT}\" preserveAspectRatio=\"none\">\
             <polyline{dashed} points=\"{}\" stroke=\"{colour}\"/></svg>",
            corners.join(" ")
        );
        for point in &line.points {
            let ((x, y), figure) = (position(point), self.unit.figure(point.1));
            let place = place(point.0);
            let tip = escape(&format!("{}, {}: {place}\n{figure}", line.name, self.axis));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.2}%\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\" data-tip=\"{tip}\"/>"
            );
        }
    }

    /// Names at the ends of the lines, apart from each other and above the axis.
    fn draw_names(&self, svg: &mut String, frame: &Frame) {
        let end = |line: &Line| line.points.last().map(|(_, figure)| frame.y(*figure) + 4.0);
        let mut ends: Vec<(f64, &Line)> =
            self.lines.iter().filter_map(|line| Some((end(line)?, line))).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut least = f64::NEG_INFINITY;
        for (y, _) in &mut ends {
            *y = y.max(least);
            least = *y + NAME;
        }
        let mut most = HEIGHT + 4.0;
        for (y, _) in ends.iter_mut().rev() {
            *y = y.min(most);
            most = *y - NAME;
        }
        let x = if frame.one { (LEFT + frame.right) / 2.0 } else { frame.right } + 2.5;
        for (y, Line { name, colour, .. }) in ends {
            let name = escape(name);
            let _ = writeln!(
                svg,
                "<text class=\"name\" x=\"{x:.2}%\" y=\"{y:.1}\" style=\"fill:{colour}\">{name}</text>"
            );
        }
    }
}

/// Where a chart's figures are drawn.
struct Frame {
    across: Axis,
    up: Axis,
    /// Where its lines end, in per cent.
    right: f64,
    /// Whether it has one place only, which is in the middle.
    one: bool,
}

impl Frame {
    fn x(&self, at: f64) -> f64 {
        LEFT + (self.right - LEFT) * if self.one { 0.5 } else { self.across.share(at) }
    }

    fn y(&self, figure: f64) -> f64 {
        HEIGHT - (HEIGHT - 12.0) * self.up.share(figure)
    }
}

/// Where figures lie on an axis.
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// An axis for these figures, none of them negative.
    fn of(figures: &[f64], from_zero: bool, by_factors: bool) -> Axis {
        let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let high = figures.iter().copied().fold(0.0, f64::max);
        if by_factors && high > 8.0 * low && low > 0.0 {
            return Axis { low, high, logarithmic: true };
        }
        let low = if from_zero { 0.0 } else { low };
        Axis { low, high: if high > low { high } else { low + 1.0 }, logarithmic: false }
    }

    /// What is below the axis is at its beginning.
    fn share(&self, figure: f64) -> f64 {
        let share = match self.logarithmic {
            true => (figure / self.low).ln() / (self.high / self.low).ln(),
            false => (figure - self.low) / (self.high - self.low),
        };
        share.max(0.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, figures: &[f64], published: Vec<Span>) -> Line {
        let points = [1.0, 2.0].into_iter().zip(figures.iter().copied()).collect();
        Line { name: name.to_owned(), colour: "red".to_owned(), dashed: false, points, published, end: None }
    }

    fn chart(unit: Unit, lines: Vec<Line>) -> String {
        Chart { title: "test", unit, axis: "nodes", at: &[1, 2], lines }.render()
    }

    #[test]
    fn latencies_that_span_decades_have_an_axis_of_decades_and_shares_never_have() {
        let of = |unit| chart(unit, vec![line("a", &[10.0, 20_000.0], Vec::new())]);
        let decades = [">10 µs<", ">100 µs<", ">1 ms<", ">10 ms<"];
        assert!(decades.iter().all(|tick| of(Unit::Duration).contains(tick)), "{}", of(Unit::Duration));
        assert!(of(Unit::Share).contains(">0%<") && of(Unit::Share).contains(">5000%<"));
        assert_eq!(chart(Unit::Share, vec![line("a", &[], Vec::new())]), "");
    }

    #[test]
    fn a_published_range_is_a_band_and_a_published_figure_a_circle() {
        let span = |at, low, high| Span { at, low, high };
        let published = vec![span(Some(2.0), 1.5, 1.5), span(None, 0.95, 2.0), span(Some(1.0), 0.0, 0.5)];
        let svg = chart(Unit::Ratio, vec![line("a / b", &[1.0, 1.2], published)]);
        assert_eq!((svg.matches("<rect").count(), svg.matches("r=\"6\"").count()), (2, 1));
        assert_eq!(svg.matches("r=\"3.5\"").count(), 2);
        let said = [
            "nodes: 2\npublished: 1.50",
            "nodes: all\npublished: 0.95 to 2.00",
            "nodes: 1\npublished: below 0.50",
        ];
        assert!(said.iter().all(|said| svg.contains(said)), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn names_are_apart_from_each_other_and_above_the_axis() {
        let lines = (0..6).map(|i| line(&format!("line{i}"), &[10.0, 0.01 * f64::from(i)], Vec::new()));
        let svg = chart(Unit::Ratio, lines.collect());
        let heights = svg.split("class=\"name\"").skip(1).map(|text| {
            let (_, y) = text.split_once("y=\"").expect("it has a place");
            y.split('"').next().and_then(|y| y.parse().ok()).expect("a number")
        });
        let heights: Vec<f64> = heights.collect();
        assert_eq!(heights.len(), 6);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= NAME), "{heights:?}");
        assert!(heights.iter().all(|y| *y <= HEIGHT + 4.0), "{heights:?}");
    }

    #[test]
    fn latency_over_throughput_has_an_axis_from_zero_and_published_points_where_they_are() {
        let mut curve = line("a", &[], vec![Span { at: Some(900.0), low: 40.0, high: 40.0 }]);
        (curve.points, curve.end) = (vec![(100.0, 10.0), (800.0, 20.0), (750.0, 50.0)], Some(1000.0));
        let (title, unit, axis) = ("test", Unit::Duration, "per second");
        let svg = Chart { title, unit, axis, at: &[], lines: vec![curve] }.render();
        assert!(svg.contains(">0<") && svg.contains(">500<"), "{svg}");
        assert!(svg.contains("a, per second: 900\npublished: 40.0"), "{svg}");
        assert!(svg.contains("a, per second: 750\n50.0 µs"), "{svg}");
        assert!(svg.contains("a\npublished peak: 1,000"), "{svg}");
    }
}
