//! Prices from measurements: the least squares of relative errors, among prices that are not
//! negative.
//!
//! Each measurement says: so much of each kind of work took so many nanoseconds, of a time in which
//! other things happened whose prices are known. Dividing by that time makes each worth the same.
//! The minimum is found one price after the other, each set to what is best given the others, or 0
//! if that is negative, until nothing moves (coordinate descent); with a dozen or two of prices
//! that takes no time worth mentioning.
//!
//! Works that always come together cannot be told apart, and noise would decide who pays. So a
//! price that is far from a first guess costs a little as well ([`WEIGHT`]): what measurements
//! leave open, the guess decides.

/// One measurement: amounts of work, and the nanoseconds that they took together.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Amounts, one per price.
    pub amounts: Vec<f64>,
    /// Nanoseconds.
    pub nanoseconds: f64,
    /// The time that they are a part of, in nanoseconds.
    pub of_ns: f64,
}

/// Steps of the descent.
const STEPS: usize = 20_000;
/// A price that is off its guess by all of it counts as much as a measurement that is off by this
/// share.
const WEIGHT: f64 = 0.03;

/// The prices that explain the measurements best, given what was guessed. A guess is not 0. What no
/// measurement has any of has no price.
pub fn fit(measurements: &[Measurement], guess: &[f64]) -> Vec<f64> {
    let mut prices = guess.to_vec();
    let rows: Vec<(Vec<f64>, f64)> = (measurements.iter())
        .map(|m| (m.amounts.iter().map(|amount| amount / m.of_ns).collect(), m.nanoseconds / m.of_ns))
        .collect();
    for _ in 0..STEPS {
        for price in 0..prices.len() {
            let pull = (WEIGHT / guess[price]).powi(2);
            let (mut slope, mut curvature) = (pull * (guess[price] - prices[price]), pull);
            for (row, part) in &rows {
                let explained: f64 = row.iter().zip(&prices).map(|(amount, price)| amount * price).sum();
                slope += row[price] * (part - explained);
                curvature += row[price] * row[price];
            }
            prices[price] = (prices[price] + slope / curvature).max(0.0);
        }
    }
    // The guess would look like something that was measured.
    for (number, price) in prices.iter_mut().enumerate() {
        if measurements.iter().all(|measurement| measurement.amounts[number] == 0.0) {
            *price = 0.0;
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(amounts: &[f64], nanoseconds: f64) -> Measurement {
        Measurement { amounts: amounts.to_vec(), nanoseconds, of_ns: nanoseconds }
    }

    #[test]
    fn prices_that_explain_everything_are_nearly_found() {
        let measurements = [
            measurement(&[1.0, 2.0, 0.0], 1.0 * 50.0 + 2.0 * 7.0),
            measurement(&[1.0, 5.0, 1.0], 1.0 * 50.0 + 5.0 * 7.0 + 300.0),
            measurement(&[2.0, 1.0, 4.0], 2.0 * 50.0 + 7.0 + 4.0 * 300.0),
        ];
        let prices = fit(&measurements, &[40.0, 10.0, 200.0]);
        for (price, right) in prices.iter().zip([50.0, 7.0, 300.0]) {
            assert!((price / right - 1.0).abs() < 0.1, "{prices:?}");
        }
    }

    #[test]
    fn no_price_is_negative_and_what_never_happens_has_none() {
        let measurements = [measurement(&[1.0, 1.0, 0.0], 10.0), measurement(&[1.0, 2.0, 0.0], 5.0)];
        let prices = fit(&measurements, &[1.0, 1.0, 3.0]);
        assert!(prices[0] > 0.0 && prices[1] == 0.0 && prices[2] == 0.0, "{prices:?}");
    }
}
