//! What command lines have in common: values of flags, reasons to say no, and where a result goes.
//!
//! Each command judges its flags in the crate that carries it out. What several of them read in the
//! same way is read here: durations, whole numbers, ranges, percentages, protocols and schemes
//! ([`pairs`]), outputs ([`output`]). A command line that nothing can be done with is a
//! [`Refusal`], *one* sentence that says what is wrong and what to do instead.
//!
//! Left out: the commands themselves, and everything that only one of them has.

pub mod output;
pub mod pairs;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use plimsoll_page::file::Unwritable;
use plimsoll_page::units;
use plimsoll_txn::pairs::PairError;

pub use output::{JsonOutput, json_output, publish};

/// Why a command line is refused: one sentence that says what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl From<String> for Refusal {
    fn from(sentence: String) -> Refusal {
        Refusal(sentence)
    }
}

impl From<PairError> for Refusal {
    fn from(error: PairError) -> Refusal {
        Refusal(error.to_string())
    }
}

impl From<Unwritable> for Refusal {
    fn from(unwritable: Unwritable) -> Refusal {
        Refusal(unwritable.to_string())
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// Ends a function with a [`Refusal`], like `format!`.
#[macro_export]
macro_rules! refuse {
    ($($sentence:tt)*) => { return Err($crate::Refusal::from(format!($($sentence)*))) };
}

/// Reads `500ms`, `1.5s`, `10s`, `5m`, `2h`; `0` needs no unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let form = || format!("`{text}` is not a duration: write a number and a unit, such as 500ms, 10s or 5m");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds_per_unit = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "" if digits == "0" => 1.0,
        _ => return Err(form()),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(form());
    }
    let seconds = digits.parse::<f64>().map_err(|_| form())? * seconds_per_unit;
    if seconds > 7.0 * 86_400.0 {
        return Err(format!("`{text}` is longer than a week: give a shorter time"));
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Reads `512MB`, `1.5GiB`, `8G`: bytes, a mebibyte or more.
pub fn size(text: &str) -> Result<u64, String> {
    let form = || format!("`{text}` is not a size: write a number and a unit, such as 512MB or 8GiB");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024f64,
        "mib" => 1024f64.powi(2),
        "gib" => 1024f64.powi(3),
        "tib" => 1024f64.powi(4),
        _ => return Err(form()),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(form());
    }
    let bytes = digits.parse::<f64>().map_err(|_| form())? * unit;
    if bytes < (1 << 20) as f64 {
        return Err(format!("`{text}` is less than a database needs: give 1MiB or more"));
    }
    Ok(bytes.round() as u64)
}

/// Reads a whole number; underscores may separate its digits.
pub fn number(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    if plain.is_empty() || !plain.chars().all(|c| c.is_ascii_digit()) {
        return Err(format!("`{text}` is not a whole number of 0 or more"));
    }
    plain.parse().map_err(|_| format!("`{text}` is too large"))
}

/// Reads `0..1000`.
pub fn range(text: &str) -> Result<Range<u64>, String> {
    let Some((start, end)) = text.split_once("..") else {
        return Err(format!(
            "`{text}` is not a range: write the first number and the one after the last, as in 0..1000"
        ));
    };
    Ok(number(start)?..number(end)?)
}

/// A number that lies in its range, or a refusal that names the flag.
pub fn within(number: u64, flag: &str, min: u64, max: u64) -> Result<u64, Refusal> {
    if number < min {
        refuse!("--{flag} {number} is too small: give {} or more", units::thousands(min));
    }
    if number > max {
        refuse!("--{flag} {number} is too large: give {} or less", units::thousands(max));
    }
    Ok(number)
}

/// A percentage, or a refusal that names the flag.
pub fn percent(percent: f64, flag: &str) -> Result<f64, Refusal> {
    if !(0.0..=100.0).contains(&percent) {
        refuse!("--{flag} {percent} is not a percentage: give a number from 0 to 100");
    }
    Ok(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_number_and_a_unit() {
        let millis = |text| duration(text).map(|duration| duration.as_millis());
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("1.5s"), Ok(1500));
        assert_eq!(millis("10s"), Ok(10_000));
        assert_eq!(millis("5m"), Ok(300_000));
        assert_eq!(millis("2h"), Ok(7_200_000));
        assert_eq!(millis("0"), Ok(0));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        for bad in ["", "10", "s", "-1s", "1e3s", "10 s", "ten seconds", "1.2.3s", "10sec", "∞s", "5µs"] {
            let sentence = duration(bad).expect_err(bad);
            assert!(sentence.ends_with("such as 500ms, 10s or 5m"), "{sentence}");
        }
        assert!(duration("200h").expect_err("too long").contains("longer than a week"));
    }

    #[test]
    fn sizes_are_a_number_and_a_unit() {
        for (text, bytes) in [
            ("512MB", 512_000_000),
            ("1.5GiB", 1_610_612_736),
            ("8g", 8_000_000_000),
            ("1048576B", 1 << 20),
            ("2tib", 1 << 41),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "8", "GB", "-1GB", "8 GB", "1e3GB", "1.2.3GB", ".GB", "8GBit"] {
            let sentence = size(bad).expect_err(bad);
            assert!(sentence.ends_with("such as 512MB or 8GiB"), "{sentence}");
        }
        assert!(size("1023KiB").expect_err("too small").contains("give 1MiB or more"));
    }
}
