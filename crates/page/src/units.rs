//! Figures as people read them: thousands separated, durations and sizes in the unit that fits.
//!
//! Three significant digits are enough everywhere: the noise of a run is in the second or third.

/// A whole number with commas between the thousands: `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate, rounded to a whole number; small ones keep a decimal.
pub fn rate(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 100.0 {
        return format!("{per_second:.1}");
    }
    thousands(per_second.round().max(0.0) as u64)
}

/// A figure in few characters, for axes and tiles: `1.25 M`, `350 k`, `90`.
pub fn short(figure: f64) -> String {
    let (scaled, unit) = match figure.abs() {
        x if x >= 1e9 => (figure / 1e9, " G"),
        x if x >= 1e6 => (figure / 1e6, " M"),
        x if x >= 1e3 => (figure / 1e3, " k"),
        _ => (figure, ""),
    };
    format!("{}{unit}", trimmed(&format!("{scaled:.2}")))
}

/// A duration given in microseconds: `0.8 µs`, `41 µs`, `1.25 ms`, `2.5 s`.
pub fn duration_us(us: f64) -> String {
    match us {
        x if x < 0.0005 => "0 µs".to_owned(),
        x if x < 999.5 => format!("{} µs", three_digits(x)),
        x if x < 999_500.0 => format!("{} ms", three_digits(x / 1e3)),
        x => format!("{} s", three_digits(x / 1e6)),
    }
}

/// A duration given in microseconds without zeros at the end, for axes: `20 µs`, `1 ms`.
pub fn duration_brief(us: f64) -> String {
    match us {
        x if x < 1.0 => format!("{} ns", brief(x * 1e3)),
        x if x < 1e3 => format!("{} µs", brief(x)),
        x if x < 1e6 => format!("{} ms", brief(x / 1e3)),
        x => format!("{} s", brief(x / 1e6)),
    }
}

/// A duration in seconds, as on a stop-watch: `9.8 s`, `1 m 05 s`, `2 h 03 m`.
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} m {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} m", whole / 3600, whole / 60 % 60),
    }
}

/// A size in decimal units: `512 B`, `1.21 GB`.
pub fn bytes(bytes: u64) -> String {
    let size = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..999_500 => format!("{} kB", three_digits(size / 1e3)),
        999_500..999_500_000 => format!("{} MB", three_digits(size / 1e6)),
        999_500_000..999_500_000_000 => format!("{} GB", three_digits(size / 1e9)),
        _ => format!("{} TB", three_digits(size / 1e12)),
    }
}

/// A share as a percentage: `0%`, `0.02%`, `1.3%`, `45%`.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        x if x <= 0.0 => "0%".to_owned(),
        x if x < 0.005 => "<0.01%".to_owned(),
        x if x < 0.995 => format!("{x:.2}%"),
        x if x < 99.95 => format!("{x:.1}%"),
        x => format!("{x:.0}%"),
    }
}

/// A ratio: `0.987×`, `12.3×`.
pub fn ratio(ratio: f64) -> String {
    match ratio {
        x if x < 9.995 => format!("{x:.3}×"),
        x if x < 99.95 => format!("{x:.1}×"),
        x => format!("{x:.0}×"),
    }
}

/// `10 µs`, `1 ms`: a power of ten of microseconds.
pub fn decade(power: i32) -> String {
    match power {
        ..0 => format!("{} ns", 10f64.powi(power + 3)),
        0..3 => format!("{} µs", 10f64.powi(power)),
        3..6 => format!("{} ms", 10f64.powi(power - 3)),
        _ => format!("{} s", 10f64.powi(power - 6)),
    }
}

/// A positive figure with three significant digits and no exponent.
pub fn three_digits(figure: f64) -> String {
    match figure {
        x if x < 9.995 => format!("{x:.2}"),
        x if x < 99.95 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
}

/// Three significant digits without zeros at the end: `2.5`, `0.05`, `120`.
pub fn brief(figure: f64) -> String {
    trimmed(&three_digits(figure)).to_owned()
}

/// From one figure to another, or one of them if they read alike.
pub fn span(min: String, max: String) -> String {
    if min == max { max } else { format!("{min}–{max}") }
}

/// A range in one unit: `158–164 k`.
pub fn range(min: f64, max: f64) -> String {
    let (scale, unit) = match max {
        x if x >= 999_500.0 => (1e6, " M"),
        x if x >= 9_995.0 => (1e3, " k"),
        _ => (1.0, ""),
    };
    format!("{}{unit}", span(three_digits(min / scale), three_digits(max / scale)))
}

/// A number with its noun: `1 check`, `1,200 checks`.
pub fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(number), if number == 1 { one } else { many })
}

/// Decimals without zeros at the end; whole numbers as they are.
fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        assert_eq!(
            [0, 999, 1000, 123456, 1234567].map(thousands),
            ["0", "999", "1,000", "123,456", "1,234,567"]
        );
        assert_eq!([0.0, 12.34, 1234.5].map(rate), ["0", "12.3", "1,235"]);
    }

    #[test]
    fn durations_take_the_unit_that_fits() {
        assert_eq!(
            [0.0, 0.8, 41.0, 999.6, 1250.0, 2_500_000.0].map(duration_us),
            ["0 µs", "0.80 µs", "41.0 µs", "1.00 ms", "1.25 ms", "2.50 s"]
        );
        assert_eq!([9.84, 65.0, 7380.0].map(seconds), ["9.8 s", "1 m 05 s", "2 h 03 m"]);
    }

    #[test]
    fn sizes_and_shares_take_three_digits() {
        assert_eq!(
            [12, 1234, 150_000_000, 1_210_000_000].map(bytes),
            ["12 B", "1.23 kB", "150 MB", "1.21 GB"]
        );
        assert_eq!(
            [0.0, 0.00001, 0.0002, 0.0131, 0.45, 1.0].map(percent),
            ["0%", "<0.01%", "0.02%", "1.3%", "45.0%", "100%"]
        );
    }

    #[test]
    fn a_ratio_near_one_shows_per_mille() {
        assert_eq!(
            [0.9874, 1.0, 4.94, 12.34, 123.4].map(ratio),
            ["0.987×", "1.000×", "4.940×", "12.3×", "123×"]
        );
    }

    #[test]
    fn axis_labels_are_short() {
        assert_eq!([0.0, 90.0, 350_000.0, 1_250_000.0].map(short), ["0", "90", "350 k", "1.25 M"]);
    }

    #[test]
    fn durations_at_an_axis_have_no_zeros_at_the_end() {
        assert_eq!(
            [0.5, 20.0, 1000.0, 2e4, 5e6].map(duration_brief),
            ["500 ns", "20 µs", "1 ms", "20 ms", "5 s"]
        );
    }

    #[test]
    fn decades_take_the_unit_that_fits() {
        assert_eq!([-1, 0, 2, 3, 6].map(decade), ["100 ns", "1 µs", "100 µs", "1 ms", "1 s"]);
    }

    #[test]
    fn ranges_share_a_unit() {
        assert_eq!(range(96_900.0, 101_000.0), "96.9–101 k");
        assert_eq!(range(1_020_000.0, 1_100_000.0), "1.02–1.10 M");
        assert_eq!(range(12.0, 950.0), "12.0–950");
        assert_eq!(range(51.96, 52.04), "52.0");
    }

    #[test]
    fn brief_figures_have_no_zeros_at_the_end() {
        assert_eq!([0.0, 0.05, 2.5, 10.0, 120.0].map(brief), ["0", "0.05", "2.5", "10", "120"]);
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(plural(1, "check", "checks"), "1 check");
        assert_eq!(plural(1200, "check", "checks"), "1,200 checks");
    }
}
