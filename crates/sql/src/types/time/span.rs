//! Intervals: months, days and microseconds, kept apart because none has a fixed length in another.

use super::calendar::{US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use super::write;
use crate::types::{IntervalForm, Style};

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days, which daylight saving makes longer or shorter.
    pub days: i32,
    /// Microseconds.
    pub us: i64,
}

/// What a column or a cast keeps of an interval: a bit per field of SQL's qualifiers.
pub mod range {
    /// `YEAR`
    pub const YEAR: i32 = 1 << 2;
    /// `MONTH`
    pub const MONTH: i32 = 1 << 1;
    /// `DAY`
    pub const DAY: i32 = 1 << 3;
    /// `HOUR`
    pub const HOUR: i32 = 1 << 10;
    /// `MINUTE`
    pub const MINUTE: i32 = 1 << 11;
    /// `SECOND`
    pub const SECOND: i32 = 1 << 12;
    /// No qualifier.
    pub const FULL: i32 = 0x7fff;
}

impl Interval {
    /// The number of microseconds that it compares as: months of 30 days, days of 24 hours.
    pub fn span_us(&self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(US_PER_DAY) + i128::from(self.us)
    }

    /// The same in the other direction; none if that is out of range.
    pub fn negate(&self) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            us: self.us.checked_neg()?,
        })
    }

    /// The sum; none if it is out of range.
    pub fn add(&self, other: &Interval) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            us: self.us.checked_add(other.us)?,
        })
    }

    /// What a modifier keeps of it.
    pub fn fit(self, modifier: i32) -> Interval {
        if modifier < 0 {
            return self;
        }
        let (kept, digits) = ((modifier >> 16) & 0x7fff, modifier & 0xffff);
        let mut result = self;
        let cut = |us: i64, unit: i64| us / unit * unit;
        match kept {
            range::YEAR => result = Interval { months: self.months / 12 * 12, days: 0, us: 0 },
            range::MONTH => result = Interval { days: 0, us: 0, ..self },
            k if k == range::YEAR | range::MONTH => result = Interval { days: 0, us: 0, ..self },
            range::DAY => result.us = 0,
            k if k != range::FULL && k & (range::MINUTE | range::SECOND) == 0 => {
                result.us = cut(self.us, US_PER_HOUR)
            }
            k if k != range::FULL && k & range::SECOND == 0 => result.us = cut(self.us, US_PER_MINUTE),
            _ => {}
        }
        result.us = super::round_us(result.us, if digits == 0xffff { -1 } else { digits });
        result
    }

    /// Appends it in the style of the session.
    pub fn write(&self, style: &Style, out: &mut String) {
        match style.interval_form {
            IntervalForm::Postgres => self.write_postgres(out),
            IntervalForm::PostgresVerbose => self.write_verbose(out),
            IntervalForm::SqlStandard => self.write_standard(out),
            IntervalForm::Iso8601 => self.write_iso(out),
        }
    }

    fn write_postgres(&self, out: &mut String) {
        let (mut first, mut before_negative) = (true, false);
        let mut part = |value: i32, name: &str, out: &mut String| {
            if value == 0 {
                return;
            }
            let space = if first { "" } else { " " };
            let plus = if before_negative && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            out.push_str(&format!("{space}{plus}{value} {name}{plural}"));
            before_negative = value < 0;
            first = false;
        };
        part(self.months / 12, "year", out);
        part(self.months % 12, "mon", out);
        part(self.days, "day", out);
        if first || self.us != 0 {
            let space = if first { "" } else { " " };
            let sign = if self.us < 0 {
                "-"
            } else if before_negative {
                "+"
            } else {
                ""
            };
            out.push_str(&format!("{space}{sign}"));
            clock(self.us, 2, out);
        }
    }

    fn write_verbose(&self, out: &mut String) {
        out.push('@');
        let mut negative: Option<bool> = None;
        let (seconds, us) = (self.us / US_PER_SECOND, self.us % US_PER_SECOND);
        let parts = [
            (i64::from(self.months / 12), "year"),
            (i64::from(self.months % 12), "mon"),
            (i64::from(self.days), "day"),
            (seconds / 3600, "hour"),
            (seconds / 60 % 60, "min"),
        ];
        let is_ago = |value: i64, negative: &mut Option<bool>| *negative.get_or_insert(value < 0);
        for (value, name) in parts {
            if value != 0 {
                let shown = if is_ago(value, &mut negative) { -value } else { value };
                let plural = if shown == 1 { "" } else { "s" };
                out.push_str(&format!(" {shown} {name}{plural}"));
            }
        }
        if seconds % 60 != 0 || us != 0 {
            let value = seconds % 60 * US_PER_SECOND + us;
            let shown = if is_ago(value, &mut negative) { -value } else { value };
            let sign = if shown < 0 { "-" } else { "" };
            out.push_str(&format!(" {sign}{}", shown.abs() / US_PER_SECOND));
            write::fraction(shown.abs() % US_PER_SECOND, out);
            out.push_str(if shown.abs() == US_PER_SECOND { " sec" } else { " secs" });
        }
        match negative {
            None => out.push_str(" 0"),
            Some(true) => out.push_str(" ago"),
            Some(false) => {}
        }
    }

    fn write_standard(&self, out: &mut String) {
        let Interval { months, days, us } = *self;
        let has_negative = months < 0 || days < 0 || us < 0;
        let has_positive = months > 0 || days > 0 || us > 0;
        let has_day = days != 0 || us != 0;
        let sign = |negative: bool| if negative { '-' } else { '+' };
        if has_negative && has_positive || months != 0 && has_day {
            let (year, month) = (months.unsigned_abs() / 12, months.unsigned_abs() % 12);
            out.push_str(&format!(
                "{}{year}-{month} {}{} {}",
                sign(months < 0),
                sign(days < 0),
                days.unsigned_abs(),
                sign(us < 0)
            ));
            clock(us, 1, out);
            return;
        }
        if !has_negative && !has_positive {
            out.push('0');
            return;
        }
        if has_negative {
            out.push('-');
        }
        if months != 0 {
            out.push_str(&format!("{}-{}", months.unsigned_abs() / 12, months.unsigned_abs() % 12));
        } else {
            if days != 0 {
                out.push_str(&format!("{} ", days.unsigned_abs()));
            }
            clock(us, 1, out);
        }
    }

    fn write_iso(&self, out: &mut String) {
        if *self == Interval::default() {
            out.push_str("PT0S");
            return;
        }
        out.push('P');
        let part = |value: i64, name: char, out: &mut String| {
            if value != 0 {
                out.push_str(&format!("{value}{name}"));
            }
        };
        part(i64::from(self.months / 12), 'Y', out);
        part(i64::from(self.months % 12), 'M', out);
        part(i64::from(self.days), 'D', out);
        if self.us != 0 {
            out.push('T');
            part(self.us / US_PER_HOUR, 'H', out);
            part(self.us / US_PER_MINUTE % 60, 'M', out);
            let rest = self.us % US_PER_MINUTE;
            if rest != 0 {
                if rest < 0 {
                    out.push('-');
                }
                out.push_str(&format!("{}", rest.abs() / US_PER_SECOND));
                write::fraction(rest.abs() % US_PER_SECOND, out);
                out.push('S');
            }
        }
    }
}

/// Hours, minutes and seconds, the hours with this many digits at least.
fn clock(us: i64, width: usize, out: &mut String) {
    let size = us.unsigned_abs();
    out.push_str(&format!(
        "{:0width$}:{:02}:{:02}",
        size / 3_600_000_000,
        size / 60_000_000 % 60,
        size / 1_000_000 % 60
    ));
    write::fraction(i64::try_from(size % 1_000_000).unwrap_or(0), out);
}
