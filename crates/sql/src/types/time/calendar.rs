//! The Gregorian calendar, continued into the past, as days since 2000-01-01.

/// Microseconds in a second.
pub const US_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a minute.
pub const US_PER_MINUTE: i64 = 60 * US_PER_SECOND;
/// Microseconds in an hour.
pub const US_PER_HOUR: i64 = 60 * US_PER_MINUTE;
/// Microseconds in a day.
pub const US_PER_DAY: i64 = 24 * US_PER_HOUR;
/// The Julian day of 2000-01-01.
pub const JULIAN_2000: i64 = 2_451_545;
/// The first date: 4714-11-24 BC, Julian day 0.
pub const DATE_MIN: i64 = -JULIAN_2000;
/// The day after the last date, which is 5874897-12-31.
pub const DATE_END: i64 = 2_147_483_494 - JULIAN_2000;
/// The first timestamp.
pub const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// The microsecond after the last timestamp, which is in 294276.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// Year, month and day of a day. The year before 1 is 0.
pub fn civil(days: i64) -> (i64, i64, i64) {
    // Years that begin in March, so that the leap day is the last; eras of 400 of them.
    let days = days + 730_425;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day of a year, a month and a day, each of which may be out of its range.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 730_425
}

/// How many days a month has.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Whether a year has a 29th of February.
pub fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// The day of the week, Sunday being 0.
pub fn weekday(days: i64) -> i64 {
    (days + 6).rem_euclid(7)
}

/// The year and the week of ISO 8601.
pub fn iso_week(day: i64) -> (i64, i64) {
    // A week belongs to the year of its Thursday.
    let thursday = day - (weekday(day) + 6) % 7 + 3;
    let year = civil(thursday).0;
    (year, (thursday - days(year, 1, 1)) / 7 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_the_day_of_its_date() {
        for day in (DATE_MIN..DATE_END).step_by(99_991).chain(-800_000..-700_000).chain(-100..200_000) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
            assert!((1..=days_in_month(year, month)).contains(&of_month));
        }
        assert_eq!(civil(0), (2000, 1, 1));
        assert_eq!(weekday(0), 6);
        assert_eq!(iso_week(days(2021, 1, 3)), (2020, 53));
        assert_eq!(days(-4713, 11, 24), DATE_MIN);
        assert_eq!(civil(2_775_843), (9600, 1, 1));
    }
}
