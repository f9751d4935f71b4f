//! Every way in which a simulated world can be unkind, as one table of numbers.
//!
//! Two tables: [`Hardware`] is what machines and network are like on a good day, [`Faults`] is what
//! goes wrong. Each line of a table is a field, its unit and meaning, its value when all is well,
//! its value in a bad world, the values that it can be set to, and the group it belongs to.
//! Everything else comes out of the table: the struct, the presets, the names for a command line
//! ([`Faults::KNOBS`], [`Faults::set`]), the mixtures of a sweep ([`Faults::drawn`]). So a fault
//! cannot be forgotten in one of them.
//!
//! Ranges are wide: they keep out what means nothing, and not what is so bad that nobody gets done.
//! Where packets take a tenth of a second, many transactions take longer than a judge waits.
//!
//! Durations are nanoseconds, drawn evenly between 0 and twice the value. Rates are per virtual
//! second over the whole world; the time between two occurrences is drawn likewise. Probabilities
//! are per packet and link, and per operation of a disk.
//!
//! Left out: packets with wrong content (a checksum would drop them: that is loss), faults that
//! spare some machines on purpose, and machines that come back with less than they had synced.

use super::draw::Draw;

/// What a field can hold.
trait Value: Copy + PartialEq {
    /// What it is, for people.
    const KIND: &'static str;

    fn parse(text: &str) -> Option<Self>;
    /// So many sixteenths of it.
    fn sixteenths(self, count: u64) -> Self;
    fn show(self) -> String;
}

impl Value for u64 {
    const KIND: &'static str = "a whole number";

    fn parse(text: &str) -> Option<Self> {
        text.replace('_', "").parse().ok()
    }

    fn sixteenths(self, count: u64) -> Self {
        (u128::from(self) * u128::from(count) / 16) as u64
    }

    fn show(self) -> String {
        self.to_string()
    }
}

impl Value for f64 {
    const KIND: &'static str = "a number";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn sixteenths(self, count: u64) -> Self {
        self * count as f64 / 16.0
    }

    fn show(self) -> String {
        self.to_string()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Packets,
    Links,
    Clocks,
    Resets,
    Pauses,
    Crashes,
    Disks,
    /// Not a fault.
    Usual,
}

/// A range in words, after the meaning of a field.
macro_rules! range {
    ($low:literal, $high:literal) => {
        concat!(" From ", stringify!($low), " to ", stringify!($high), ".")
    };
}

macro_rules! table {
    (
        $(#[$about:meta])*
        $name:ident {
            $($(#[doc = $meaning:literal])+ $field:ident: $type:ident =
                $well:literal, $bad:literal in $low:literal..=$high:literal, $group:ident;)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            $($(#[doc = $meaning])+ #[doc = range!($low, $high)] pub $field: $type,)+
        }

        impl $name {
            /// The name of every field with its meaning and its range, in order.
            pub const KNOBS: &[(&str, &str)] =
                &[$((stringify!($field), concat!($($meaning,)+ range!($low, $high)).trim_ascii()),)+];

            /// Sets a field by its name; the error says what was wrong.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
                match name {
                    $(stringify!($field) => {
                        let parsed = <$type as Value>::parse(value).filter(|parsed| ($low..=$high).contains(parsed));
                        self.$field = parsed.ok_or_else(|| {
                            let (kind, low, high) = (<$type as Value>::KIND, stringify!($low), stringify!($high));
                            format!("{name} is {kind} from {low} to {high}, not {value}")
                        })?;
                    })+
                    _ => return Err(format!("there is no {name} among {}", stringify!($name))),
                }
                Ok(())
            }

            /// The name and the value of every field, as [`Self::set`] takes them.
            pub fn values(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($field), self.$field.show()),)+]
            }

            /// Of each field the value of a bad world if its group is among these, else that of a
            /// good one.
            fn preset(bad: impl Fn(Group) -> bool) -> $name {
                $name { $($field: if bad(Group::$group) { $bad } else { $well },)+ }
            }

            /// Of each field something between a good world and twice a bad one, within its range.
            fn mixture(seed: u64) -> $name {
                $name {
                    $($field: mixed::<$type>($well, $bad, Draw::new(seed, stringify!($field), 0)).clamp($low, $high),)+
                }
            }
        }
    };
}

table! {
/// What machines and the network are like when nothing is wrong.
Hardware {
    /// Shards per machine; the last machine may have fewer.
    shards_per_machine: u64 = 1, 1 in 1..=64, Usual;
    /// Nanoseconds that a pass costs a shard at least.
    pass_ns: u64 = 200, 200 in 0..=1_000_000, Usual;
    /// Nanoseconds that each message of the inbox costs.
    message_ns: u64 = 300, 2000 in 0..=1_000_000, Usual;
    /// Nanoseconds that each poll of a task costs.
    poll_ns: u64 = 300, 2000 in 0..=1_000_000, Usual;
    /// A pass costs up to this fraction more or less than that.
    cpu_jitter: f64 = 0.3, 0.9 in 0.0..=1.0, Usual;
    /// Nanoseconds until a shard that sleeps begins the pass it was woken for, at most.
    wake_ns: u64 = 10_000, 100_000 in 0..=100_000_000, Usual;
    /// Nanoseconds from shard to shard of one machine, at least.
    local_ns: u64 = 100, 100 in 0..=100_000_000, Usual;
    /// Nanoseconds it may take longer than that.
    local_jitter_ns: u64 = 400, 10_000 in 0..=100_000_000, Usual;
    /// Nanoseconds from machine to machine, at least.
    latency_ns: u64 = 20_000, 500_000 in 0..=100_000_000, Usual;
    /// Nanoseconds it may take longer than that.
    jitter_ns: u64 = 5_000, 500_000 in 0..=100_000_000, Usual;
    /// Probability that a packet takes much longer.
    tail: f64 = 0.001, 0.01 in 0.0..=1.0, Usual;
    /// Nanoseconds that such a packet may take longer.
    tail_ns: u64 = 500_000, 5_000_000 in 0..=1_000_000_000, Usual;
    /// Nanoseconds after which a packet without acknowledgement is sent again, first.
    resend_ns: u64 = 1_000_000, 5_000_000 in 1_000..=1_000_000_000, Usual;
    /// Nanoseconds after which it is sent again after many times in vain.
    resend_max_ns: u64 = 50_000_000, 200_000_000 in 1_000..=10_000_000_000, Usual;
    /// Nanoseconds that an acknowledgement waits for something to travel with.
    acknowledge_ns: u64 = 250_000, 400_000 in 0..=100_000_000, Usual;
    /// Bytes that the disk of each shard holds; 0 if there are no disks.
    disk_bytes: u64 = 0, 0 in 0..=1_000_000_000_000, Usual;
    /// Nanoseconds that an operation of a disk takes at least.
    disk_ns: u64 = 10_000, 100_000 in 0..=1_000_000_000, Usual;
    /// Nanoseconds that each KiB read or written takes.
    disk_kib_ns: u64 = 500, 10_000 in 0..=1_000_000_000, Usual;
    /// Nanoseconds that a sync takes besides.
    disk_sync_ns: u64 = 200_000, 5_000_000 in 0..=1_000_000_000, Usual;
    /// An operation takes up to this fraction longer than that.
    disk_jitter: f64 = 0.5, 2.0 in 0.0..=10.0, Usual;
    /// Probability that an operation takes much longer.
    disk_tail: f64 = 0.001, 0.01 in 0.0..=1.0, Usual;
    /// Nanoseconds that such an operation may take longer.
    disk_tail_ns: u64 = 5_000_000, 50_000_000 in 0..=1_000_000_000, Usual;
}
}

table! {
/// What goes wrong, and how often.
Faults {
    /// Probability that a packet is lost.
    loss: f64 = 0.0, 0.02 in 0.0..=1.0, Packets;
    /// Probability that a packet arrives twice.
    duplication: f64 = 0.0, 0.02 in 0.0..=1.0, Packets;
    /// Probability that a packet is held back and overtaken.
    reordering: f64 = 0.0, 0.05 in 0.0..=1.0, Packets;
    /// Nanoseconds that such a packet is held back, at most.
    reordering_ns: u64 = 500_000, 500_000 in 0..=1_000_000_000, Packets;
    /// Partitions per second: one pair of machines, or some machines from all others.
    partitions_per_s: f64 = 0.0, 3.0 in 0.0..=1000.0, Links;
    /// Nanoseconds that a partition lasts.
    partition_ns: u64 = 100_000_000, 100_000_000 in 0..=100_000_000_000, Links;
    /// Probability that a partition is in one direction only.
    one_way: f64 = 0.3, 0.3 in 0.0..=1.0, Links;
    /// Links per second that become slow.
    slowdowns_per_s: f64 = 0.0, 3.0 in 0.0..=1000.0, Links;
    /// Nanoseconds that a link is slow.
    slowdown_ns: u64 = 100_000_000, 100_000_000 in 0..=100_000_000_000, Links;
    /// How many times as long packets take on a slow link.
    slowdown_factor: u64 = 20, 20 in 1..=1_000, Links;
    /// Links per second that clog: nothing arrives, and then everything at once.
    clogs_per_s: f64 = 0.0, 3.0 in 0.0..=1000.0, Links;
    /// Nanoseconds that a link is clogged.
    clog_ns: u64 = 50_000_000, 50_000_000 in 0..=100_000_000_000, Links;
    /// Nanoseconds by which clocks are wrong at the start, at most, to either side.
    offset_ns: u64 = 0, 5_000_000 in 0..=1_000_000_000, Clocks;
    /// Millionths by which clocks run too fast or too slow, at most.
    drift_ppm: u64 = 0, 200 in 0..=100_000, Clocks;
    /// Times per second that some machine's clock is set.
    steps_per_s: f64 = 0.0, 2.0 in 0.0..=1000.0, Clocks;
    /// Nanoseconds by which a clock is set forwards or backwards, at most.
    step_ns: u64 = 20_000_000, 20_000_000 in 0..=1_000_000_000, Clocks;
    /// Times per second that some shard reads at another machine at a snapshot an hour ahead of its
    /// clock. Only if it is asked for.
    future_stamps_per_s: f64 = 0.0, 0.0 in 0.0..=1000.0, Clocks;
    /// Channels per second that are reset: their calls fail.
    resets_per_s: f64 = 0.0, 3.0 in 0.0..=1000.0, Resets;
    /// Times per second that some machine stands still.
    pauses_per_s: f64 = 0.0, 3.0 in 0.0..=1000.0, Pauses;
    /// Nanoseconds that a machine stands still.
    pause_ns: u64 = 30_000_000, 30_000_000 in 0..=100_000_000_000, Pauses;
    /// Times per second that some machine crashes.
    crashes_per_s: f64 = 0.0, 1.0 in 0.0..=1000.0, Crashes;
    /// Nanoseconds until a machine that crashed starts again.
    down_ns: u64 = 100_000_000, 100_000_000 in 0..=100_000_000_000, Crashes;
    /// Probability that a crash loses what is not synced, in part or in whole; otherwise only
    /// processes end.
    power_failures: f64 = 0.0, 0.7 in 0.0..=1.0, Disks;
    /// Probability that every sector and name that is not synced is then lost or kept by itself.
    torn_writes: f64 = 0.0, 0.7 in 0.0..=1.0, Disks;
    /// Probability that a read of a disk fails.
    read_errors: f64 = 0.0, 0.01 in 0.0..=1.0, Disks;
    /// Probability that a read of a disk has one wrong bit; the next is right.
    corrupt_reads: f64 = 0.0, 0.01 in 0.0..=1.0, Disks;
    /// Probability that something that changes a disk fails, perhaps half done.
    write_errors: f64 = 0.0, 0.01 in 0.0..=1.0, Disks;
    /// Probability that a sync fails; what was not synced is then on disk or not, and a second sync
    /// changes nothing.
    sync_errors: f64 = 0.0, 0.01 in 0.0..=1.0, Disks;
    /// Times per second that the disks of a machine become slow.
    disk_slowdowns_per_s: f64 = 0.0, 3.0 in 0.0..=1000.0, Disks;
    /// Nanoseconds that disks are slow.
    disk_slowdown_ns: u64 = 100_000_000, 100_000_000 in 0..=100_000_000_000, Disks;
    /// How many times as long operations take on a slow disk.
    disk_slowdown_factor: u64 = 20, 20 in 1..=1_000, Disks;
    /// Times per second that the disks of a machine do nothing for a while.
    disk_stalls_per_s: f64 = 0.0, 1.0 in 0.0..=1000.0, Disks;
    /// Nanoseconds that disks do nothing.
    disk_stall_ns: u64 = 100_000_000, 100_000_000 in 0..=100_000_000_000, Disks;
    /// Times per second that the disks of a machine are full for a while.
    disk_fulls_per_s: f64 = 0.0, 1.0 in 0.0..=1000.0, Disks;
    /// Nanoseconds that disks are full.
    disk_full_ns: u64 = 100_000_000, 100_000_000 in 0..=100_000_000_000, Disks;
}
}

/// Nothing, half of the time, if nothing is what a good world has; else some of what a bad world
/// has.
fn mixed<V: Value>(well: V, bad: V, mut draw: Draw) -> V {
    let (off, sixteenths) = (draw.chance(0.5), 1 + draw.below(32));
    if off && well != bad { well } else { bad.sixteenths(sixteenths) }
}

impl Default for Hardware {
    /// A few machines in one room.
    fn default() -> Hardware {
        Hardware::preset(|_| false)
    }
}

impl Hardware {
    /// Slow and uneven machines that are far from each other.
    pub fn slow() -> Hardware {
        Hardware::preset(|_| true)
    }

    /// Something between the two and a little beyond, for a sweep; one to four shards per machine.
    pub fn drawn(seed: u64) -> Hardware {
        let shards_per_machine = 1 + Draw::new(seed, "shards_per_machine", 1).below(4);
        let cpu_jitter = Draw::new(seed, "cpu_jitter", 1).below(10) as f64 / 10.0;
        Hardware { shards_per_machine, cpu_jitter, ..Hardware::mixture(seed) }
    }
}

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Faults {
        Faults::preset(|_| false)
    }

    /// Packets and links go wrong; channels hold what they promise.
    pub fn network() -> Faults {
        Faults::preset(|group| matches!(group, Group::Packets | Group::Links))
    }

    /// Everything goes wrong.
    pub fn all() -> Faults {
        Faults::preset(|_| true)
    }

    /// A mixture for a sweep: each fault is off half of the time, else up to twice as bad as in a
    /// bad world. Crashes included.
    pub fn drawn(seed: u64) -> Faults {
        Faults::mixture(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_can_be_set_by_its_name_and_read_back() {
        for (name, value) in Faults::all().values() {
            let mut faults = Faults::none();
            faults.set(name, &value).expect("a value that was shown can be set");
            assert!(faults.values().contains(&(name, value)));
        }
        assert_eq!(Faults::KNOBS.len(), Faults::none().values().len());
        assert!(Faults::KNOBS.iter().all(|(_, meaning)| !meaning.is_empty()));
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        let mut faults = Faults::none();
        for (name, value) in [
            ("los", "0.1"),
            ("loss", "much"),
            ("loss", "-1"),
            ("loss", "NaN"),
            ("loss", "1.01"),
            ("clog_ns", "0.5"),
            ("slowdown_factor", "0"),
            ("crashes_per_s", "inf"),
        ] {
            assert!(faults.set(name, value).is_err(), "{name}={value}");
        }
        assert_eq!(faults, Faults::none());
        let refused = faults.set("drift_ppm", "2000000").unwrap_err();
        assert_eq!(refused, "drift_ppm is a whole number from 0 to 100_000, not 2000000");
        let mut hardware = Hardware::default();
        let refused = hardware.set("shards_per_machine", "0").unwrap_err();
        assert_eq!(refused, "shards_per_machine is a whole number from 1 to 64, not 0");
        assert_eq!(hardware, Hardware::default());
    }

    #[test]
    fn every_field_has_a_range_and_says_so() {
        let most = u64::MAX.to_string();
        for (name, meaning) in Faults::KNOBS {
            assert!(Faults::none().set(name, &most).is_err() && meaning.contains(". From "), "{name}");
        }
        for (name, meaning) in Hardware::KNOBS {
            assert!(Hardware::default().set(name, &most).is_err() && meaning.contains(". From "), "{name}");
        }
    }

    #[test]
    fn whatever_is_drawn_or_preset_is_in_its_range() {
        let drawn = (0..200).map(Faults::drawn);
        for faults in drawn.chain([Faults::none(), Faults::network(), Faults::all()]) {
            let mut again = Faults::none();
            faults.values().iter().for_each(|(name, value)| again.set(name, value).unwrap());
            assert_eq!(again, faults);
        }
        let drawn = (0..200).map(Hardware::drawn);
        for hardware in drawn.chain([Hardware::default(), Hardware::slow()]) {
            let mut again = Hardware::default();
            hardware.values().iter().for_each(|(name, value)| again.set(name, value).unwrap());
            assert_eq!(again, hardware);
        }
    }

    #[test]
    fn presets_contain_each_other() {
        let off = |faults: &Faults| {
            let Faults { loss, clogs_per_s, steps_per_s, resets_per_s, pauses_per_s, crashes_per_s, .. } =
                *faults;
            [loss, clogs_per_s, steps_per_s, resets_per_s, pauses_per_s, crashes_per_s]
                .map(|rate| rate == 0.0)
        };
        assert_eq!(off(&Faults::none()), [true; 6]);
        assert_eq!(off(&Faults::network()), [false, false, true, true, true, true]);
        assert_eq!(off(&Faults::all()), [false; 6]);
    }

    #[test]
    fn mixtures_differ_and_repeat() {
        assert_eq!(Faults::drawn(3), Faults::drawn(3));
        assert_ne!(Faults::drawn(3), Faults::drawn(4));
        assert!((0..50).any(|seed| Faults::drawn(seed).loss == 0.0));
        assert!((0..50).any(|seed| Faults::drawn(seed).loss > 0.02));
    }
}
