//! Charts over the time of a run: lines with bands behind them, and the heat map of latency.

use plimsoll_page::html::escape;
use plimsoll_page::svg::{close, colour, open, seconds_axis, share, steps};

use crate::metrics::latency::{HEAT_CLASSES, Heat};
use crate::report::units;

/// Points of a line; longer series are averaged.
const POINTS_MAX: usize = 600;
/// Columns of a heat map; longer ones are added up.
const COLUMNS_MAX: usize = 120;

/// One line over time, a value per second.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Its colour; nothing for what was intended.
    pub series: Option<usize>,
    /// By second; no number where nothing is known, which interrupts the line.
    pub values: Vec<f64>,
    /// Whether it stands behind the others: another repetition.
    pub faint: bool,
}

/// A time that is marked behind the lines.
#[derive(Clone, Debug, Default)]
pub struct Band {
    /// What it is, in a letter or two.
    pub name: String,
    /// When it begins, in seconds.
    pub from: f64,
    /// When it ends.
    pub to: f64,
    /// Whether it is a fault, or the warm-up.
    pub fault: bool,
    /// What it says beside the pointer.
    pub tip: String,
}

/// Values over time, from zero, with bands behind them.
pub fn lines(label: &str, lines: &[Line], bands: &[Band], height: usize) -> String {
    let seconds = lines.iter().map(|line| line.values.len()).max().unwrap_or(0) as f64;
    let highest = lines.iter().flat_map(|line| line.values.iter().copied()).fold(0.0, f64::max);
    if seconds <= 0.0 {
        return String::new();
    }
    let (step, ticks) = steps(highest, 3.5);
    let top = step * ticks as f64;
    let y = |value: f64| height as f64 * (1.0 - share(value, top));
    let x = |second: f64| 100.0 * share(second, seconds).clamp(0.0, 1.0);

    let mut svg = open(label, height + 42);
    svg.push_str("<svg y=\"16\" overflow=\"visible\">\n");
    for band in bands {
        let (from, to) = (x(band.from), x(band.to));
        let class = if band.fault { "fault" } else { "warm" };
        let (name, tip, width) = (escape(&band.name), escape(&band.tip), (to - from).max(0.3));
        svg.push_str(&format!(
            r#"<g data-tip="{tip}"><rect class="{class}" x="{from:.2}%" y="0" width="{width:.2}%" height="{height}"/>
<text class="small" x="{from:.2}%" dx="3" y="-4">{name}</text></g>
"#
        ));
    }
    for tick in 0..=ticks {
        let at = y(step * tick as f64);
        svg.push_str(&format!("<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\n"));
    }
    seconds_axis(&mut svg, seconds, 0.0, height);
    svg.push_str(&format!(
        "<svg width=\"100%\" height=\"{height}\" viewBox=\"0 0 1000 {height}\" preserveAspectRatio=\"none\">\n"
    ));
    // What stands behind comes first, and what was intended last: it is thin.
    for pass in 0..3 {
        for line in lines {
            let of_pass = match (line.faint, line.series) {
                (true, _) => 0,
                (false, Some(_)) => 1,
                (false, None) => 2,
            };
            if of_pass != pass {
                continue;
            }
            let per_point = line.values.len().div_ceil(POINTS_MAX).max(1);
            let point = |(i, values): (usize, &[f64])| {
                let middle = (i * per_point) as f64 + values.len() as f64 / 2.0;
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                mean.is_finite().then(|| format!("{:.1},{:.1}", 10.0 * x(middle), y(mean)))
            };
            let points: Vec<Option<String>> = line.values.chunks(per_point).enumerate().map(point).collect();
            let known: Vec<f64> = line.values.iter().copied().filter(|value| value.is_finite()).collect();
            let mean = share(known.iter().sum(), known.len() as f64);
            let tip = escape(&format!("{}\n{} on average", line.name, units::value(mean)));
            let stroke = line.series.map_or("var(--ink)".to_owned(), colour);
            let class = match (line.faint, line.series) {
                (true, _) => "faint",
                (false, None) => "intended",
                (false, Some(_)) => "",
            };
            for piece in points.split(Option::is_none).filter(|piece| !piece.is_empty()) {
                let points = piece.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ");
                svg.push_str(&format!(
                    "<polyline class=\"{class}\" points=\"{points}\" stroke=\"{stroke}\" data-tip=\"{tip}\"/>\n"
                ));
            }
        }
    }
    svg.push_str("</svg>\n");
    for tick in 1..=ticks {
        let value = step * tick as f64;
        let (base, text) = (y(value) + 13.0, units::short(value));
        svg.push_str(&format!("<text class=\"axis halo\" x=\"0\" y=\"{base:.1}\">{text}</text>\n"));
    }
    svg.push_str("</svg>\n");
    close(svg)
}

/// The classes of latency that any of these maps has, and one more on either side.
pub fn heat_classes<'a>(maps: impl IntoIterator<Item = &'a Heat>) -> Option<(usize, usize)> {
    let classes = maps.into_iter().flat_map(|heat| &heat.seconds).flat_map(|of| of.iter().enumerate());
    let (low, high) = classes
        .filter(|(_, count)| **count > 0)
        .fold((usize::MAX, 0), |(low, high), (class, _)| (low.min(class), high.max(class)));
    (low <= high).then(|| (low.saturating_sub(1), (high + 1).min(HEAT_CLASSES - 1)))
}

/// How many transactions had which latency when: the stronger the colour, the larger their share of
/// that time. Drawn are the classes from the lowest to the highest of [`heat_classes`].
pub fn heat(label: &str, heat: &Heat, series: usize, (low, high): (usize, usize)) -> String {
    const ROW: f64 = 9.0;
    let seconds = heat.seconds.len();
    let per_column = seconds.div_ceil(COLUMNS_MAX).max(1);
    let height = ROW * (high - low + 1) as f64;
    let y = |class: usize| height - ROW * (class - low + 1) as f64;

    let mut svg = open(label, height as usize + 42);
    svg.push_str("<svg y=\"16\" overflow=\"visible\">\n");
    let columns: Vec<[u64; HEAT_CLASSES]> = heat
        .seconds
        .chunks(per_column)
        .map(|chunk| {
            let mut counts = [0; HEAT_CLASSES];
            for classes in chunk {
                classes.iter().zip(&mut counts).for_each(|(count, sum)| *sum += u64::from(*count));
            }
            counts
        })
        .collect();
    let part = |count: u64, counts: &[u64]| share(count as f64, counts.iter().sum::<u64>() as f64);
    let strongest = columns.iter().flat_map(|counts| counts.iter().map(|&count| part(count, counts)));
    let strongest = strongest.fold(0.0, f64::max);
    // In seconds, so that cells that touch share an edge, whatever the width in pixels.
    svg.push_str(&format!(
        "<svg width=\"100%\" height=\"{height}\" viewBox=\"0 0 {seconds} {height}\" \
             preserveAspectRatio=\"none\">\n"
    ));
    for (column, counts) in columns.iter().enumerate() {
        let all: u64 = counts.iter().sum();
        let first = column * per_column;
        let last = (first + per_column).min(seconds);
        let width = last - first;
        for (class, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            // The square root keeps rare latencies visible: one in a thousand is what the map is
            // for.
            let opacity = share(part(count, counts), strongest).sqrt().clamp(0.05, 1.0);
            let when = match last - first {
                1 => format!("second {first}"),
                _ => format!("seconds {first} to {}", last - 1),
            };
            let tip = format!(
                "{when}: {} of {} transactions up to {}",
                units::thousands(count),
                units::thousands(all),
                units::duration_us(Heat::upper_us(class))
            );
            let (top, colour) = (y(class), colour(series));
            svg.push_str(&format!(
                r#"<rect class="cell" x="{first}" y="{top:.0}" width="{width}" height="{ROW}" fill="{colour}" fill-opacity="{opacity:.2}" data-tip="{tip}"/>
"#
            ));
        }
    }
    svg.push_str("</svg>\n");
    // Powers of ten are upper edges of every sixth class.
    for class in (low..=high).filter(|class| (class + 1) % 6 == 0) {
        let (at, text) = (y(class), units::decade(Heat::upper_us(class).log10().round() as i32));
        let base = at - 4.0;
        svg.push_str(&format!(
            r#"<line class="grid over" x1="0" x2="100%" y1="{at:.0}" y2="{at:.0}"/><text class="axis halo" x="0" y="{base:.0}">{text}</text>
"#
        ));
    }
    seconds_axis(&mut svg, seconds as f64, 0.0, height as usize);
    svg.push_str("</svg>\n");
    close(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_lies_where_its_seconds_are() {
        let line = Line { name: "x".into(), series: Some(0), values: vec![5.0; 100], faint: false };
        let band = Band { name: "A".into(), from: 20.0, to: 50.0, fault: true, tip: "kill".into() };
        let svg = lines("test", &[line], &[band], 200);
        assert!(svg.contains("class=\"fault\" x=\"20.00%\" y=\"0\" width=\"30.00%\""), "{svg}");
    }

    #[test]
    fn a_line_is_interrupted_where_nothing_is_known() {
        let values = vec![1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0];
        let line = Line { name: "x".into(), series: Some(0), values, faint: false };
        let svg = lines("test", &[line], &[], 200);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("3.00 on average"), "{svg}");
    }

    #[test]
    fn long_series_are_averaged() {
        let line = Line { values: (0..3_600).map(f64::from).collect(), series: Some(1), ..Line::default() };
        let svg = lines("test", &[line], &[], 200);
        assert_eq!(svg.matches("polyline").count(), 1);
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("points");
        assert_eq!(points.split(' ').count(), 600);
        let mut long = Heat::default();
        (0..3_600).for_each(|second| long.record(second, 1_000));
        let classes = heat_classes([&long]).expect("not empty");
        assert_eq!(heat("test", &long, 0, classes).matches("<rect").count(), 120);
    }

    #[test]
    fn maps_side_by_side_share_their_classes() {
        let map = |us| {
            let mut heat = Heat::default();
            heat.record(0, us);
            heat
        };
        let (fast, slow) = (map(1_000), map(100_000));
        let (low, high) = heat_classes([&fast, &slow]).expect("not empty");
        assert_eq!((low, high), (Heat::class(1_000) - 1, Heat::class(100_000) + 1));
        assert_eq!(heat_classes([&Heat::default()]), None);
    }

    #[test]
    fn charts_of_nothing_are_empty_or_flat_but_never_nonsense() {
        let nan = Line { values: vec![f64::NAN, f64::INFINITY], ..Line::default() };
        let flat = Line { values: vec![0.0], ..Line::default() };
        for chart in [
            lines("test", &[], &[Band::default()], 100),
            lines("test", &[flat], &[Band::default()], 100),
            lines("test", &[nan], &[], 100),
            heat("test", &Heat::default(), 0, (3, 5)),
        ] {
            assert!(!chart.contains("NaN") && !chart.contains("inf"), "{chart}");
        }
    }
}
