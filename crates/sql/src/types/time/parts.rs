//! What a text says of a date and a time, before it is of a type.
//!
//! A text is taken apart into fields ([`super::fields`]), and each field says which parts of a date
//! it gives: a mask, in which no part may occur twice. Numbers without a name are year, month or
//! day by their length, by what is there already and by DateStyle.

use super::calendar::{self, JULIAN_2000, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use super::fields::{Field, Kind, split};
use super::words::{Fault, Result, Word, clock, displacement, fraction_us, number, word};
use super::zone::{Zone, abbreviation};
use crate::types::{DateOrder, Style};

const YEAR: u32 = 1;
const MONTH: u32 = 2;
const DAY: u32 = 4;
const DATE: u32 = YEAR | MONTH | DAY;
const TIME: u32 = 8;
const ZONE: u32 = 16;
const ERA: u32 = 32;
const WEEKDAY: u32 = 64;
const HALF: u32 = 128;
const DST: u32 = 256;

/// What a text says, before it is of a type.
#[derive(Default)]
pub struct Parts {
    mask: u32,
    year: i64,
    month: i64,
    day: i64,
    /// Microseconds since midnight.
    pub time_us: i64,
    hour: i64,
    /// The zone, if there is one.
    pub zone: Option<Displacement>,
    /// What is said in a word.
    pub special: Option<Special>,
    has_text_month: bool,
    short_year: bool,
    day_of_year: bool,
    julian: bool,
    before_christ: bool,
    afternoon: Option<bool>,
}

/// A zone.
pub enum Displacement {
    /// Seconds east of Greenwich.
    East(i32),
    /// By its name.
    Named(Zone),
}

/// A word that stands for a moment.
pub enum Special {
    /// `now`
    Now,
    /// `epoch`
    Epoch,
    /// `infinity`, or `-infinity`.
    Infinity(bool),
}

impl Parts {
    fn add(&mut self, mask: u32) -> Result<()> {
        if self.mask & mask != 0 {
            return Err(Fault::Format);
        }
        self.mask |= mask;
        Ok(())
    }

    /// Whether there is a date.
    pub fn has_date(&self) -> bool {
        self.mask & DATE == DATE
    }

    /// Whether there is a time.
    pub fn has_time(&self) -> bool {
        self.mask & TIME != 0
    }

    /// Reads all fields. `time_only`: numbers are times.
    pub fn read(text: &str, style: &Style, time_only: bool) -> Result<Parts> {
        let known = |text: &str| word(text).is_some() || abbreviation(text).is_some();
        let fields = split(text, known).ok_or(Fault::Format)?;
        let mut parts = Parts::default();
        let mut prefix: Option<Word> = None;
        for (place, field) in fields.iter().enumerate() {
            let text = field.text.as_str();
            match (field.kind, prefix.take()) {
                (Kind::Date | Kind::Number, Some(Word::Julian)) => parts.read_julian(text)?,
                (Kind::Number, Some(Word::IsoTime)) => parts.read_run_together(text, true)?,
                (Kind::Date, before) => {
                    parts.read_date_or_zone(text, style, before.is_some(), time_only, place)?
                }
                (Kind::Time, _) => parts.read_time(text)?,
                (Kind::Zone, _) => {
                    let zone = displacement(text)?;
                    parts.add(ZONE)?;
                    parts.zone = Some(Displacement::East(zone));
                }
                (Kind::Number, _) if time_only => parts.read_run_together(text, true)?,
                (Kind::Number, _) => parts.read_number_field(text, style)?,
                (Kind::Word | Kind::Special, _) => {
                    let next = fields.get(place + 1);
                    prefix = parts.read_word(text, style, next, time_only)?;
                }
            }
        }
        if prefix.is_some() {
            return Err(Fault::Format);
        }
        parts.finish()?;
        Ok(parts)
    }

    fn read_time(&mut self, text: &str) -> Result<()> {
        let (hour, us) = clock(text)?;
        if us > US_PER_DAY {
            return Err(Fault::Field);
        }
        self.add(TIME)?;
        (self.hour, self.time_us) = (hour, us);
        Ok(())
    }

    fn read_julian(&mut self, text: &str) -> Result<()> {
        let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
        let day = number(whole)?;
        (self.year, self.month, self.day) = calendar::civil(day - JULIAN_2000);
        self.julian = true;
        self.add(DATE)?;
        if !fraction.is_empty() {
            let fraction: f64 = format!("0{fraction}").parse().map_err(|_| Fault::Format)?;
            self.add(TIME)?;
            // Below a day.
            self.time_us = (fraction * US_PER_DAY as f64) as i64;
        }
        Ok(())
    }

    fn read_date_or_zone(
        &mut self,
        text: &str,
        style: &Style,
        prefixed: bool,
        time_only: bool,
        place: usize,
    ) -> Result<()> {
        let is_number = text.starts_with(|c: char| c.is_ascii_digit());
        if self.has_date() || prefixed || time_only && (place > 0 || !is_number) {
            if is_number || prefixed {
                // A time without colons and its zone: 040506-08.
                let sign = text.find('-').ok_or(Fault::Format)?;
                let (time, zone) = text.split_at(sign);
                self.read_run_together(time, true)?;
                let zone = displacement(zone)?;
                self.add(ZONE)?;
                self.zone = Some(Displacement::East(zone));
                return Ok(());
            }
            let zone = Zone::in_date(text).ok_or_else(|| Fault::Zone(text.to_owned()))?;
            self.add(ZONE)?;
            self.zone = Some(Displacement::Named(zone));
            return Ok(());
        }
        self.read_date(text, style)
    }

    /// Two or three fields with separators between them.
    fn read_date(&mut self, text: &str, style: &Style) -> Result<()> {
        let mut fields: Vec<&str> = Vec::new();
        let mut rest = text;
        // Letters and digits side by side are fields of their own.
        while let Some(first) = rest.chars().next() {
            if !first.is_ascii_alphanumeric() {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let same = |c: char| c.is_ascii_digit() == first.is_ascii_digit() && c.is_ascii_alphanumeric();
            let (field, after) = rest.split_at(rest.find(|c| !same(c)).unwrap_or(rest.len()));
            fields.push(field);
            rest = after;
        }
        let had = self.mask & DATE;
        let mut numbers = Vec::new();
        for field in &fields {
            if field.starts_with(|c: char| c.is_ascii_alphabetic()) {
                match word(field) {
                    Some(Word::Month(month)) => {
                        self.add(MONTH)?;
                        self.month = month;
                        self.has_text_month = true;
                    }
                    Some(Word::Ignored) => {}
                    _ => return Err(Fault::Format),
                }
            } else {
                numbers.push(*field);
            }
        }
        for field in numbers {
            self.read_number(field, style)?;
        }
        if self.mask & DATE & !had == 0 || self.mask & !(TIME | ZONE | ERA | WEEKDAY | HALF | DST) != DATE {
            return Err(Fault::Format);
        }
        Ok(())
    }

    fn read_number_field(&mut self, text: &str, style: &Style) -> Result<()> {
        let point = text.find('.');
        match point {
            Some(_) if self.mask & DATE == 0 => self.read_date(text, style),
            Some(point) if point > 2 => self.read_run_together(text, false),
            None if text.len() >= 6 && (self.mask & DATE == 0 || self.mask & TIME == 0) => {
                self.read_run_together(text, false)
            }
            _ => self.read_number(text, style),
        }
    }

    /// A number that is a year, a month or a day.
    fn read_number(&mut self, text: &str, style: &Style) -> Result<()> {
        if let Some(point) = text.find('.') {
            if point > 2 {
                return self.read_run_together(text, false);
            }
            return Err(Fault::Format);
        }
        let value = number(text)?;
        let long = text.len() >= 3;
        if text.len() == 3 && self.mask & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = true;
            self.day = value;
            return self.add(MONTH | DAY);
        }
        let year_first = long || style.date_order == DateOrder::Ymd;
        let mask = match self.mask & DATE {
            0 if year_first => YEAR,
            0 if style.date_order == DateOrder::Dmy => DAY,
            0 => MONTH,
            YEAR => MONTH,
            MONTH if self.has_text_month && year_first => YEAR,
            MONTH => DAY,
            YEAR_MONTH if self.has_text_month && long && self.short_year => {
                // 13-Feb-2001 where years come first: the first number was the day.
                self.day = self.year;
                self.year = value;
                self.short_year = false;
                return self.add(DAY);
            }
            YEAR_MONTH => DAY,
            DAY => MONTH,
            MONTH_DAY => YEAR,
            DATE => return self.read_run_together(text, true),
            _ => return Err(Fault::Format),
        };
        self.add(mask)?;
        match mask {
            YEAR => {
                self.year = value;
                self.short_year = text.len() <= 2;
            }
            MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(())
    }

    /// A date or a time without separators.
    fn read_run_together(&mut self, text: &str, only_time: bool) -> Result<()> {
        let (digits, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Fault::Format);
        }
        let part = |from: usize, to: usize| digits.get(from..to).map_or(Err(Fault::Format), number);
        let length = digits.len();
        if fraction.is_empty() && !only_time && !self.has_date() && length >= 6 {
            self.add(DATE)?;
            self.day = part(length - 2, length)?;
            self.month = part(length - 4, length - 2)?;
            self.year = part(0, length - 4)?;
            self.short_year = length == 6;
            return Ok(());
        }
        if self.mask & TIME != 0 || length != 6 && length != 4 {
            return Err(Fault::Format);
        }
        let second = if length == 6 { part(4, 6)? } else { 0 };
        let (hour, minute) = (part(0, 2)?, part(2, 4)?);
        let us = if fraction.is_empty() { 0 } else { fraction_us(fraction)? };
        if minute > 59 || second > 60 {
            return Err(Fault::Field);
        }
        self.add(TIME)?;
        self.hour = hour;
        self.time_us = hour * US_PER_HOUR + minute * US_PER_MINUTE + second * US_PER_SECOND + us;
        if self.time_us > US_PER_DAY { Err(Fault::Field) } else { Ok(()) }
    }

    /// A word; one that says what comes next is handed back.
    fn read_word(
        &mut self,
        text: &str,
        style: &Style,
        next: Option<&Field>,
        time_only: bool,
    ) -> Result<Option<Word>> {
        let Some(meaning) = word(text) else {
            let zone = match abbreviation(text) {
                Some(east_s) => Displacement::East(east_s),
                None => Displacement::Named(Zone::in_date(text).ok_or(Fault::Format)?),
            };
            self.add(ZONE)?;
            self.zone = Some(zone);
            return Ok(None);
        };
        match meaning {
            Word::Month(month) => {
                if self.mask & (MONTH | DAY) == MONTH
                    && !self.has_text_month
                    && (1..=31).contains(&self.month)
                {
                    self.day = self.month;
                    self.mask &= !MONTH;
                    self.add(DAY)?;
                }
                self.has_text_month = true;
                self.add(MONTH)?;
                self.month = month;
            }
            Word::Weekday => self.add(WEEKDAY)?,
            Word::Before(before) => {
                self.add(ERA)?;
                self.before_christ = before;
            }
            Word::Afternoon(afternoon) => {
                self.add(HALF)?;
                self.afternoon = Some(afternoon);
            }
            Word::Ignored => {}
            Word::IsoTime => {
                let is_time = |field: &Field| matches!(field.kind, Kind::Number | Kind::Time | Kind::Date);
                if !time_only && !self.has_date() || !next.is_some_and(is_time) {
                    return Err(Fault::Format);
                }
                return Ok(Some(Word::IsoTime).filter(|_| next.is_some_and(|field| field.kind != Kind::Time)));
            }
            Word::Julian => return Ok(Some(Word::Julian)),
            Word::Dst => {
                self.add(DST)?;
                match &mut self.zone {
                    Some(Displacement::East(east_s)) => *east_s += 3600,
                    _ => return Err(Fault::Format),
                }
            }
            Word::Now => {
                self.add(DATE | TIME | ZONE)?;
                self.special = Some(Special::Now);
            }
            Word::Today(days) => {
                let local = super::to_local(style.now_us, &style.zone).unwrap_or(0);
                self.add(DATE)?;
                (self.year, self.month, self.day) = calendar::civil(local.div_euclid(US_PER_DAY) + days);
                self.julian = true;
            }
            Word::Zulu => {
                self.add(ZONE)?;
                self.zone = Some(Displacement::East(0));
            }
            Word::Midnight => {
                self.add(TIME | ZONE)?;
                self.zone = Some(Displacement::East(0));
            }
            Word::Epoch => {
                self.add(DATE | TIME | ZONE)?;
                self.special = Some(Special::Epoch);
            }
            Word::Infinity(positive) => {
                self.add(DATE | TIME | ZONE)?;
                self.special = Some(Special::Infinity(positive));
            }
        }
        Ok(None)
    }

    /// Checks the parts against each other.
    fn finish(&mut self) -> Result<()> {
        if self.special.is_some() {
            return Ok(());
        }
        if self.mask & YEAR != 0 && !self.julian {
            if self.before_christ {
                if self.year <= 0 {
                    return Err(Fault::Field);
                }
                self.year = 1 - self.year;
            } else if self.short_year {
                self.year += if self.year < 70 { 2000 } else { 1900 };
            } else if self.year <= 0 {
                return Err(Fault::Field);
            }
        }
        if self.day_of_year {
            (_, self.month, self.day) = calendar::civil(calendar::days(self.year, 1, self.day));
        }
        if self.mask & MONTH != 0 && !(1..=12).contains(&self.month) {
            return Err(Fault::MonthOrDay);
        }
        if self.mask & DAY != 0 && !(1..=31).contains(&self.day) {
            return Err(Fault::MonthOrDay);
        }
        if self.has_date() && self.day > calendar::days_in_month(self.year, self.month) {
            return Err(Fault::Field);
        }
        if let Some(afternoon) = self.afternoon {
            if self.hour > 12 {
                return Err(Fault::Field);
            }
            if !afternoon && self.hour == 12 {
                self.time_us -= 12 * US_PER_HOUR;
            } else if afternoon && self.hour != 12 {
                self.time_us += 12 * US_PER_HOUR;
            }
        }
        Ok(())
    }

    /// The day, counted from 2000-01-01.
    pub fn days(&self) -> i64 {
        calendar::days(self.year, self.month, self.day)
    }
}

const YEAR_MONTH: u32 = YEAR | MONTH;
const MONTH_DAY: u32 = MONTH | DAY;
