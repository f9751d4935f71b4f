//! What the text forms of values depend on: settings of the session.

use std::fmt::Debug;
use std::sync::Arc;

use super::Oid;
use super::time::Zone;
use crate::SqlError;

/// The order of numbers in a date that does not tell it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateOrder {
    /// Year, month, day.
    Ymd,
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
}

/// How dates are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateForm {
    /// `1997-12-17 07:37:16-08`
    Iso,
    /// `12/17/1997 07:37:16.00 PST`
    Sql,
    /// `Wed Dec 17 07:37:16 1997 PST`
    Postgres,
    /// `17.12.1997 07:37:16.00 PST`
    German,
}

/// How intervals are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntervalForm {
    /// `1 year 2 mons 3 days 04:05:06`
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    PostgresVerbose,
    /// `+1-2 +3 +4:05:06`
    SqlStandard,
    /// `P1Y2M3DT4H5M6S`
    Iso8601,
}

/// The names of what a catalog has, by which `regclass` and its kin are read and written.
pub trait Names: Debug + Send + Sync {
    /// The name of an identifier of a type's kind; none if there is no such thing.
    fn name_of(&self, kind: Oid, oid: u32) -> Option<String>;
    /// The identifier of a name.
    fn oid_of(&self, kind: Oid, name: &str) -> Result<u32, SqlError>;
}

/// What the text forms of values depend on.
#[derive(Clone, Debug)]
pub struct Style {
    /// How dates are written (the first word of DateStyle).
    pub date_form: DateForm,
    /// How dates are read (the second word of DateStyle).
    pub date_order: DateOrder,
    /// IntervalStyle.
    pub interval_form: IntervalForm,
    /// TimeZone.
    pub zone: Zone,
    /// extra_float_digits: above 0 the shortest digits that tell the number.
    pub extra_float_digits: i32,
    /// bytea_output: whether `hex`, else `escape`.
    pub hex_bytes: bool,
    /// What `now` and `today` mean in a date: microseconds since 2000 of the transaction.
    pub now_us: i64,
    /// The names in the catalog, where a statement needs them.
    pub names: Option<Arc<dyn Names>>,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            date_form: DateForm::Iso,
            date_order: DateOrder::Mdy,
            interval_form: IntervalForm::Postgres,
            zone: Zone::utc(),
            extra_float_digits: 1,
            hex_bytes: true,
            now_us: 0,
            names: None,
        }
    }
}

impl Style {
    /// The style that settings come to; a setting that is not there has its default.
    pub fn from_settings(setting: impl Fn(&str) -> Option<String>) -> Style {
        let mut style = Style::default();
        let words = setting("DateStyle").unwrap_or_default();
        for word in words.split([',', ' ']).filter(|word| !word.is_empty()) {
            match word.to_ascii_lowercase().as_str() {
                "iso" => style.date_form = DateForm::Iso,
                "sql" => style.date_form = DateForm::Sql,
                "postgres" => style.date_form = DateForm::Postgres,
                "german" => style.date_form = DateForm::German,
                "ymd" => style.date_order = DateOrder::Ymd,
                "dmy" | "euro" | "european" => style.date_order = DateOrder::Dmy,
                "mdy" | "us" | "noneuro" | "noneuropean" => style.date_order = DateOrder::Mdy,
                _ => {}
            }
        }
        style.interval_form = match setting("IntervalStyle").as_deref() {
            Some("postgres_verbose") => IntervalForm::PostgresVerbose,
            Some("sql_standard") => IntervalForm::SqlStandard,
            Some("iso_8601") => IntervalForm::Iso8601,
            _ => IntervalForm::Postgres,
        };
        if let Some(zone) = setting("TimeZone").and_then(|name| Zone::named(&name)) {
            style.zone = zone;
        }
        if let Some(digits) = setting("extra_float_digits").and_then(|digits| digits.parse().ok()) {
            style.extra_float_digits = digits;
        }
        style.hex_bytes = setting("bytea_output").as_deref() != Some("escape");
        style
    }
}
