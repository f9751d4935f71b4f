//! Figures as people read them: those of every report, and what only controls and faults have.

pub use plimsoll_page::units::*;

/// A deviation with its sign: `+1.3%`, `−0.4%`, `0%`.
pub fn deviation(share: f64) -> String {
    match share {
        x if x.abs() < 0.000_05 => "0%".to_owned(),
        x if x > 0.0 => format!("+{}", percent(x)),
        x => format!("\u{2212}{}", percent(-x)),
    }
}

/// A value of a control, whatever its magnitude: `0.302`, `2.98`, `149`, `12,034`.
pub fn value(figure: f64) -> String {
    match figure.abs() {
        x if x < 0.000_5 => "0".to_owned(),
        x if x < 0.995 => format!("{figure:.3}"),
        x if x < 999.5 => three_digits(figure),
        _ => thousands(figure.round() as u64),
    }
}

/// A time in the run: `12 s`, `9.8 s`, `2 m 05 s`.
pub fn moment(seconds: f64) -> String {
    match seconds {
        x if x >= 119.5 => self::seconds(x),
        x if (x - x.round()).abs() < 0.05 => format!("{x:.0} s"),
        x => format!("{x:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_have_a_sign() {
        assert_eq!([0.0131, -0.004, 0.0, 0.5].map(deviation), ["+1.3%", "\u{2212}0.40%", "0%", "+50.0%"]);
    }

    #[test]
    fn values_of_controls_keep_three_digits() {
        assert_eq!([0.0, 0.3021, 2.98, 149.3, 12_034.2].map(value), ["0", "0.302", "2.98", "149", "12,034"]);
        assert_eq!([12.0, 9.84, 125.0].map(moment), ["12 s", "9.8 s", "2 m 05 s"]);
    }
}
