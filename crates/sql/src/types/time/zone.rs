//! Time zones: names, abbreviations, offsets.
//!
//! The rules are the IANA database's, bundled with the program, so that every node of a cluster
//! reads a date alike whatever its machine has installed. Years beyond 9999, which the database's
//! library does not know, are taken for the year of the same calendar 400 years before, and so on.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use super::calendar::{self, US_PER_DAY, US_PER_SECOND};

/// 2000-01-01, from which times count, in microseconds of Unix time.
pub const EPOCH_US: i64 = 946_684_800_000_000;
/// Days that the calendar repeats itself after: 400 years.
const CYCLE_DAYS: i64 = 146_097;

/// A time zone.
#[derive(Clone)]
pub struct Zone {
    name: Arc<str>,
    rule: Rule,
}

#[derive(Clone)]
enum Rule {
    /// Seconds east of Greenwich.
    Fixed(i32),
    Named(TimeZone),
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}

fn database() -> &'static TimeZoneDatabase {
    static DATABASE: OnceLock<TimeZoneDatabase> = OnceLock::new();
    DATABASE.get_or_init(TimeZoneDatabase::bundled)
}

impl Zone {
    /// Greenwich.
    pub fn utc() -> Zone {
        Zone { name: "UTC".into(), rule: Rule::Fixed(0) }
    }

    /// A zone that is so many seconds east of Greenwich, named as PostgreSQL names it.
    pub fn fixed(east_s: i32) -> Zone {
        let part = |sign: char| {
            let (size, mut text) = (east_s.unsigned_abs(), String::from(sign));
            text.push_str(&format!("{:02}", size / 3600));
            if size % 3600 != 0 {
                text.push_str(&format!(":{:02}", size / 60 % 60));
            }
            if size % 60 != 0 {
                text.push_str(&format!(":{:02}", size % 60));
            }
            text
        };
        let (here, there) = if east_s < 0 { ('-', '+') } else { ('+', '-') };
        Zone { name: format!("<{}>{}", part(here), part(there)).into(), rule: Rule::Fixed(east_s) }
    }

    /// The zone of a name as `SET TimeZone` takes it: one of the database, a POSIX rule, or a
    /// number of hours east of Greenwich. None if there is no such zone.
    pub fn named(name: &str) -> Option<Zone> {
        if let Ok(hours) = name.parse::<f64>()
            && hours.abs() <= 168.0
        {
            // Bounded above, so that it fits.
            return Some(Zone::fixed((hours * 3600.0) as i32));
        }
        Zone::of_database(name).or_else(|| Zone::posix(name))
    }

    /// The zone of a name or a POSIX rule inside a date, where a number is an offset.
    pub fn in_date(name: &str) -> Option<Zone> {
        Zone::of_database(name).or_else(|| Zone::posix(name))
    }

    fn of_database(name: &str) -> Option<Zone> {
        if name.eq_ignore_ascii_case("UTC") {
            return Some(Zone::utc());
        }
        let zone = database().get(name).ok()?;
        let name = zone.iana_name().unwrap_or(name).into();
        Some(Zone { name, rule: Rule::Named(zone) })
    }

    fn posix(name: &str) -> Option<Zone> {
        if !name.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let zone = TimeZone::posix(name).ok()?;
        Some(Zone { name: name.to_ascii_uppercase().into(), rule: Rule::Named(zone) })
    }

    /// Its name, as `SHOW TimeZone` says it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seconds east of Greenwich at a moment, and what the zone is called then.
    pub fn at(&self, utc_us: i64) -> (i32, String) {
        match &self.rule {
            Rule::Fixed(0) => (0, "UTC".to_owned()),
            Rule::Fixed(east_s) => {
                (*east_s, self.name.trim_start_matches('<').split('>').next().unwrap_or_default().to_owned())
            }
            Rule::Named(zone) => {
                let cycled = cycled(utc_us);
                let second = cycled.div_euclid(US_PER_SECOND) + EPOCH_US / US_PER_SECOND;
                match jiff::Timestamp::from_second(second) {
                    Ok(moment) => {
                        let at = zone.to_offset_info(moment);
                        (at.offset().seconds(), at.abbreviation().to_owned())
                    }
                    Err(_) => (0, "UTC".to_owned()),
                }
            }
        }
    }

    /// Seconds east of Greenwich at a local time. In the hour that a clock skips it is still what
    /// it was before, in the hour that a clock repeats it is what it becomes.
    pub fn at_local(&self, local_us: i64) -> i32 {
        match &self.rule {
            Rule::Fixed(east_s) => *east_s,
            Rule::Named(zone) => {
                let local = cycled(local_us);
                let (days, time) = (local.div_euclid(US_PER_DAY), local.rem_euclid(US_PER_DAY));
                let (year, month, day) = calendar::civil(days);
                let seconds = time / US_PER_SECOND;
                let narrow = |value: i64| i8::try_from(value).unwrap_or(0);
                let date = jiff::civil::DateTime::new(
                    i16::try_from(year).unwrap_or(0),
                    narrow(month),
                    narrow(day),
                    narrow(seconds / 3600),
                    narrow(seconds / 60 % 60),
                    narrow(seconds % 60),
                    0,
                );
                match date.map(|date| zone.to_ambiguous_timestamp(date).offset()) {
                    Ok(AmbiguousOffset::Unambiguous { offset }) => offset.seconds(),
                    Ok(AmbiguousOffset::Gap { before, .. }) => before.seconds(),
                    Ok(AmbiguousOffset::Fold { after, .. }) => after.seconds(),
                    Err(_) => 0,
                }
            }
        }
    }
}

/// The same moment of the calendar within the years that the database's library knows.
fn cycled(us: i64) -> i64 {
    let days = us.div_euclid(US_PER_DAY);
    // 9600-01-01
    let late = 2_775_843;
    if days < late {
        return us;
    }
    us - (days - late).div_euclid(CYCLE_DAYS) * CYCLE_DAYS * US_PER_DAY
}

/// Seconds east of Greenwich of an abbreviation, in lower case.
pub fn abbreviation(name: &str) -> Option<i32> {
    ABBREVIATIONS.iter().find(|(known, _)| *known == name).map(|(_, east_s)| *east_s)
}

/// PostgreSQL's default set.
#[rustfmt::skip]
static ABBREVIATIONS: &[(&str, i32)] = &[
    ("acdt", 37800), ("acsst", 37800), ("acst", 34200), ("act", -18000), ("acwst", 31500),
    ("adt", -10800), ("aedt", 39600), ("aesst", 39600), ("aest", 36000), ("aft", 16200),
    ("akdt", -28800), ("akst", -32400), ("almst", 25200), ("almt", 21600), ("amst", 14400),
    ("amt", -14400), ("anast", 43200), ("anat", 43200), ("arst", -10800), ("art", -10800),
    ("ast", -14400), ("awsst", 32400), ("awst", 28800), ("azost", 0), ("azot", -3600), ("azst",
    14400), ("azt", 14400), ("bdst", 7200), ("bdt", 21600), ("bnt", 28800), ("bort", 28800),
    ("bot", -14400), ("bra", -10800), ("brst", -7200), ("brt", -10800), ("bst", 3600), ("btt",
    21600), ("cadt", 37800), ("cast", 34200), ("cct", 28800), ("cdt", -18000), ("cest", 7200),
    ("cet", 3600), ("cetdst", 7200), ("chadt", 49500), ("chast", 45900), ("chut", 36000),
    ("ckt", -36000), ("clst", -10800), ("clt", -10800), ("cot", -18000), ("cst", -21600),
    ("cxt", 25200), ("davt", 25200), ("ddut", 36000), ("easst", -18000), ("east", -18000),
    ("eat", 10800), ("edt", -14400), ("eest", 10800), ("eet", 7200), ("eetdst", 10800),
    ("egst", 0), ("egt", -3600), ("est", -18000), ("fet", 10800), ("fjst", 46800), ("fjt",
    43200), ("fkst", -10800), ("fkt", -10800), ("fnst", -3600), ("fnt", -7200), ("galt",
    -21600), ("gamt", -32400), ("gest", 14400), ("get", 14400), ("gft", -10800), ("gilt",
    43200), ("gmt", 0), ("gyt", -14400), ("hkt", 28800), ("hst", -36000), ("ict", 25200),
    ("idt", 10800), ("iot", 21600), ("irkst", 28800), ("irkt", 28800), ("irt", 12600), ("ist",
    7200), ("jayt", 32400), ("jst", 32400), ("kdt", 36000), ("kgst", 21600), ("kgt", 21600),
    ("kost", 39600), ("krast", 25200), ("krat", 25200), ("kst", 32400), ("lhdt", 39600),
    ("lhst", 37800), ("ligt", 36000), ("lint", 50400), ("lkt", 19800), ("magst", 39600),
    ("magt", 39600), ("mart", -34200), ("mawt", 18000), ("mdt", -21600), ("mest", 7200),
    ("mesz", 7200), ("met", 3600), ("metdst", 7200), ("mez", 3600), ("mht", 43200), ("mmt",
    23400), ("mpt", 36000), ("msd", 14400), ("msk", 10800), ("mst", -25200), ("must", 18000),
    ("mut", 14400), ("mvt", 18000), ("myt", 28800), ("ndt", -9000), ("nft", -12600), ("novst",
    25200), ("novt", 25200), ("npt", 20700), ("nst", -12600), ("nut", -39600), ("nzdt", 46800),
    ("nzst", 43200), ("nzt", 43200), ("omsst", 21600), ("omst", 21600), ("pdt", -25200),
    ("pet", -18000), ("petst", 43200), ("pett", 43200), ("pgt", 36000), ("pht", 28800),
    ("pkst", 21600), ("pkt", 18000), ("pmdt", -7200), ("pmst", -10800), ("pont", 39600),
    ("pst", -28800), ("pwt", 32400), ("pyst", -10800), ("pyt", -10800), ("ret", 14400),
    ("sadt", 37800), ("sast", 7200), ("sct", 14400), ("sgt", 28800), ("taht", -36000), ("tft",
    18000), ("tjt", 18000), ("tkt", 46800), ("tmt", 18000), ("tot", 46800), ("trut", 36000),
    ("tvt", 43200), ("uct", 0), ("ulast", 32400), ("ulat", 28800), ("ut", 0), ("utc", 0),
    ("uyst", -7200), ("uyt", -10800), ("uzst", 21600), ("uzt", 18000), ("vet", -14400),
    ("vlast", 36000), ("vlat", 36000), ("volt", 10800), ("vut", 39600), ("wadt", 28800),
    ("wakt", 43200), ("wast", 25200), ("wat", 3600), ("wdt", 32400), ("wet", 0), ("wetdst",
    3600), ("wft", 43200), ("wgst", -7200), ("wgt", -10800), ("xjt", 21600), ("yakst", 32400),
    ("yakt", 32400), ("yapt", 36000), ("yekst", 21600), ("yekt", 18000), ("z", 0), ("zulu", 0)
];
