//! Dates and times as text, in the four DateStyles.

use super::calendar::{self, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use super::{DATE_INFINITY, DATE_NEGATIVE_INFINITY, INFINITY, NEGATIVE_INFINITY};
use crate::types::{DateForm, DateOrder, Style};

/// Short names of months.
pub const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Short names of weekdays.
pub const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// The name at a place that counts from 0.
pub fn name(names: &[&'static str], place: i64) -> &'static str {
    usize::try_from(place).ok().and_then(|place| names.get(place)).copied().unwrap_or("")
}

/// `04:05:06.789`, without zeros at the end.
pub fn clock(us: i64, out: &mut String) {
    let (hour, minute) = (us / US_PER_HOUR, us / US_PER_MINUTE % 60);
    out.push_str(&format!("{hour:02}:{minute:02}:"));
    seconds(us % US_PER_MINUTE, out);
}

/// `06.789`
pub fn seconds(us: i64, out: &mut String) {
    out.push_str(&format!("{:02}", us / US_PER_SECOND));
    fraction(us % US_PER_SECOND, out);
}

/// `.789` or nothing.
pub fn fraction(us: i64, out: &mut String) {
    if us != 0 {
        let digits = format!("{us:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// `+02`, `-03:30`
pub fn displacement(east_s: i32, out: &mut String) {
    let size = east_s.unsigned_abs();
    out.push(if east_s < 0 { '-' } else { '+' });
    out.push_str(&format!("{:02}", size / 3600));
    if !size.is_multiple_of(3600) {
        out.push_str(&format!(":{:02}", size / 60 % 60));
    }
    if !size.is_multiple_of(60) {
        out.push_str(&format!(":{:02}", size % 60));
    }
}

/// A date.
pub fn date(days: i32, style: &Style, out: &mut String) {
    match days {
        DATE_INFINITY => return out.push_str("infinity"),
        DATE_NEGATIVE_INFINITY => return out.push_str("-infinity"),
        _ => {}
    }
    let (year, month, day) = calendar::civil(i64::from(days));
    let shown = if year > 0 { year } else { 1 - year };
    let day_first = style.date_order == DateOrder::Dmy;
    out.push_str(&match style.date_form {
        DateForm::Iso => format!("{shown:04}-{month:02}-{day:02}"),
        DateForm::Sql if day_first => format!("{day:02}/{month:02}/{shown:04}"),
        DateForm::Sql => format!("{month:02}/{day:02}/{shown:04}"),
        DateForm::German => format!("{day:02}.{month:02}.{shown:04}"),
        DateForm::Postgres if day_first => format!("{day:02}-{month:02}-{shown:04}"),
        DateForm::Postgres => format!("{month:02}-{day:02}-{shown:04}"),
    });
    if year <= 0 {
        out.push_str(" BC");
    }
}

/// A timestamp; `zoned` if it is one with time zone, at Greenwich.
pub fn timestamp(us: i64, zoned: bool, style: &Style, out: &mut String) {
    match us {
        INFINITY => return out.push_str("infinity"),
        NEGATIVE_INFINITY => return out.push_str("-infinity"),
        _ => {}
    }
    let (east_s, abbreviation) = if zoned { style.zone.at(us) } else { (0, String::new()) };
    let local = us.saturating_add(i64::from(east_s) * US_PER_SECOND);
    let (days, time) = (local.div_euclid(US_PER_DAY), local.rem_euclid(US_PER_DAY));
    let (year, month, day) = calendar::civil(days);
    let shown = if year > 0 { year } else { 1 - year };
    let day_first = style.date_order == DateOrder::Dmy;
    match style.date_form {
        DateForm::Iso => out.push_str(&format!("{shown:04}-{month:02}-{day:02} ")),
        DateForm::Sql if day_first => out.push_str(&format!("{day:02}/{month:02}/{shown:04} ")),
        DateForm::Sql => out.push_str(&format!("{month:02}/{day:02}/{shown:04} ")),
        DateForm::German => out.push_str(&format!("{day:02}.{month:02}.{shown:04} ")),
        DateForm::Postgres => {
            let weekday = name(&WEEKDAYS, calendar::weekday(days));
            let month = name(&MONTHS, month - 1);
            if day_first {
                out.push_str(&format!("{weekday} {day:02} {month} "));
            } else {
                out.push_str(&format!("{weekday} {month} {day:02} "));
            }
        }
    }
    clock(time, out);
    if style.date_form == DateForm::Postgres {
        out.push_str(&format!(" {shown:04}"));
    }
    if zoned {
        let is_name = abbreviation.starts_with(|c: char| c.is_ascii_alphabetic());
        match style.date_form {
            DateForm::Iso => displacement(east_s, out),
            _ if is_name => {
                out.push(' ');
                out.push_str(&abbreviation);
            }
            DateForm::Postgres => {
                out.push(' ');
                displacement(east_s, out);
            }
            _ => displacement(east_s, out),
        }
    }
    if year <= 0 {
        out.push_str(" BC");
    }
}

/// A time of day with its zone in seconds west of Greenwich.
pub fn time_with_zone(us: i64, west_s: i32, out: &mut String) {
    clock(us, out);
    displacement(-west_s, out);
}
