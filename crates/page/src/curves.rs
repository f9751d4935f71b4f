//! Latency over throughput: one curve for each system, one dot for each load.
//!
//! Both are measured, so a curve may turn back: beyond its peak a system commits less, and later.
//! Throughput is linear from zero. Latency is logarithmic: between an idle system and a full one
//! are factors.
//!
//! Positions across are percentages, see [`svg`](crate::svg).

use std::fmt::Write;

use crate::html::escape;
use crate::svg::{close, colour, label_below, open, steps};
use crate::units;

/// A chart's height, and the room below for labels, in pixels.
const HEIGHT: f64 = 260.0;
const BELOW: f64 = 40.0;
/// Where throughput begins and ends, in percent of the width.
const LEFT: f64 = 13.0;
const RIGHT: f64 = 99.0;
/// Powers of ten that the axis of latency has at most with 2 and 5 between them.
const DECADES_MAX: i32 = 2;

/// A system at ascending loads.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Its colour.
    pub series: usize,
    /// Whether it is only a yardstick.
    pub yardstick: bool,
    /// In the order of the loads.
    pub points: Vec<Point>,
}

/// A system at one load.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Transactions per second.
    pub throughput_tps: f64,
    /// Latency in microseconds; nothing is drawn of what is not positive.
    pub latency_us: f64,
    /// What it says beside the pointer.
    pub tip: String,
}

/// The chart; empty if there is nothing to show. What it shows is `label`, for a reader who cannot
/// see it.
pub fn latency_over_throughput(label: &str, curves: &[Curve]) -> String {
    let drawn = |curve: &Curve| -> Vec<Point> {
        let points = curve.points.iter();
        points.filter(|point| point.latency_us > 0.0 && point.latency_us.is_finite()).cloned().collect()
    };
    let curves: Vec<Curve> = curves.iter().map(|curve| Curve { points: drawn(curve), ..*curve }).collect();
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let ticks = duration_ticks(points().map(|point| point.latency_us));
    let (Some(&low), Some(&high)) = (ticks.first(), ticks.last()) else { return String::new() };
    let (step, count) = steps(points().map(|point| point.throughput_tps).fold(0.0, f64::max), 4.0);
    let x = |tps: f64| LEFT + (RIGHT - LEFT) * tps / (step * count as f64);
    let y = |us: f64| 12.0 + (HEIGHT - 12.0) * (high / us).ln() / (high / low).ln();

    let mut svg = open(label, (HEIGHT + BELOW) as usize);
    for &tick in &ticks {
        let (at, base, end) = (y(tick), y(tick) + 4.0, LEFT - 1.5);
        _ = writeln!(
            svg,
            r#"<line class="grid" x1="{LEFT}%" x2="{RIGHT}%" y1="{at:.1}" y2="{at:.1}"/><text class="axis" x="{end}%" y="{base:.1}" text-anchor="end">{}</text>"#,
            units::duration_brief(tick)
        );
    }
    for tick in 0..=count {
        let figure = step * tick as f64;
        label_below(&mut svg, x(figure), HEIGHT as usize, &units::short(figure));
    }
    let (middle, base) = ((LEFT + RIGHT) / 2.0, HEIGHT + 35.0);
    _ = writeln!(
        svg,
        r#"<text class="axis" x="{middle}%" y="{base}" text-anchor="middle">transactions committed per second</text>"#
    );
    for Curve { series, yardstick, points } in &curves {
        let (colour, dashed) = (colour(*series), if *yardstick { "dashed" } else { "" });
        let corners: Vec<String> = points
            .iter()
            .map(|point| format!("{:.2},{:.1}", x(point.throughput_tps), y(point.latency_us)))
            .collect();
        _ = writeln!(
            svg,
            r#"<svg width="100%" height="{HEIGHT}" viewBox="0 0 100 {HEIGHT}" preserveAspectRatio="none"><polyline class="{dashed}" points="{}" stroke="{colour}"/></svg>"#,
            corners.join(" ")
        );
        for Point { throughput_tps, latency_us, tip } in points {
            let (x, y, tip) = (x(*throughput_tps), y(*latency_us), escape(tip));
            _ = writeln!(svg, r#"<circle cx="{x:.2}%" cy="{y:.1}" r="4" fill="{colour}" data-tip="{tip}"/>"#);
        }
    }
    close(svg)
}

/// Figures to label on an axis that reaches over all of these: 1, 2 and 5 times powers of ten, or
/// these powers alone if there are many.
fn duration_ticks(figures_us: impl Iterator<Item = f64>) -> Vec<f64> {
    let (least, most) = figures_us.fold((f64::INFINITY, 0.0), |(low, high), us| (us.min(low), us.max(high)));
    if least > most {
        return Vec::new();
    }
    let (first, last) = (least.log10().floor() as i32, most.log10().floor() as i32 + 1);
    let factors: &[f64] = if last - first > DECADES_MAX + 1 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (first..=last).flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
    let all: Vec<f64> = all.collect();
    let low = all.iter().rposition(|tick| *tick <= least).unwrap_or(0);
    let high = all.iter().position(|tick| *tick > most).unwrap_or(all.len() - 1);
    all[low..=high].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Curve {
        let point =
            |&(throughput_tps, latency_us)| Point { throughput_tps, latency_us, tip: "<tip>".to_owned() };
        Curve { points: points.iter().map(point).collect(), ..Curve::default() }
    }

    #[test]
    fn an_axis_of_durations_reaches_over_all_of_them_in_few_steps() {
        let ticks = |figures: &[f64]| duration_ticks(figures.iter().copied());
        assert_eq!(ticks(&[41.0, 180.0]), [20.0, 50.0, 100.0, 200.0]);
        assert_eq!(ticks(&[50.0]), [50.0, 100.0]);
        assert_eq!(ticks(&[41.0, 90_000.0]), [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]);
        assert!(ticks(&[]).is_empty());
        for (low, high) in [(0.04, 0.05), (1.0, 9.9), (3.0, 3_000.0), (10.0, 1e8)] {
            let ticks = ticks(&[low, high]);
            assert!(ticks[0] <= low && *ticks.last().expect("some") >= high, "{ticks:?}");
            assert!(ticks.len() <= 11, "{ticks:?}");
        }
    }

    #[test]
    fn a_curve_goes_through_its_points_in_the_order_of_the_loads() {
        // From 0 to 100 per second across, from 10 to 100 microseconds up.
        let svg = latency_over_throughput("test", &[curve(&[(50.0, 10.0), (100.0, 50.0), (90.0, 99.0)])]);
        assert!(svg.contains("points=\"56.00,260.0 99.00,86.7 90.40,13.1\""), "{svg}");
        assert_eq!(svg.matches("data-tip=\"&lt;tip&gt;\"").count(), 3);
        assert!(svg.contains(">100 µs<") && svg.contains(">100<"), "{svg}");
    }

    #[test]
    fn what_has_no_latency_is_not_drawn_and_a_yardstick_is_dashed() {
        assert_eq!(latency_over_throughput("test", &[]), "");
        assert_eq!(latency_over_throughput("test", &[curve(&[(0.0, 0.0), (1.0, f64::NAN)])]), "");
        let yardstick = Curve { yardstick: true, ..curve(&[(0.0, 0.0), (0.0, 7.0)]) };
        let svg = latency_over_throughput("test", &[yardstick]);
        assert!(svg.contains("\"dashed\"") && svg.matches("<circle").count() == 1, "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
