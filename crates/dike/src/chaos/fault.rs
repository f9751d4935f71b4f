//! The faults, their parameters and what they act on.
//!
//! The paper (§6.4) injects five: CPU, shut-down, write I/O, read I/O and network delay. The others
//! are what a distributed database promises to survive as well: lost packets, partitions, processes
//! that stop for a while or die, the end of whatever hands out timestamps, clocks that are wrong.
//!
//! | fault | acts on | parameters (default) |
//! |---|---|---|
//! | `cpu` | hosts | `load_percent` 1..100 (100) of `cores` (all) |
//! | `memory` | hosts | `mib`, or `percent_of_available` 1..99 |
//! | `disk_read`, `disk_write` | hosts | `directory`, `file_mib` (256), `workers` (1) |
//! | `network_delay` | endpoints | `delay_ms` (0) plus up to `jitter_ms` (0), `direction` (both) |
//! | `network_rate` | endpoints | `kib_per_s`, `direction` (both) |
//! | `network_loss` | endpoints | `loss_percent` >0..100, `stall_ms` (200), `direction` (both) |
//! | `network_partition` | endpoints | `direction` (both) |
//! | `network_reset`, `network_half_open` | endpoints | |
//! | `pause` | processes | |
//! | `kill` | processes | `stays_down` (false) |
//! | `kill_timestamp_source` | processes marked `timestamp_source` | `stays_down` (false) |
//! | `shutdown` | hosts | `stays_down` (false) |
//! | `clock_skew` | hosts | `offset_ms`, negative: into the past |
//! | `custom` | hosts with a hook | `name`, `parameters` (a table of texts) |

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One kind of fault with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Burns processor time.
    Cpu {
        /// The share of each core that is asked for, in per cent.
        #[serde(default = "all")]
        load_percent: u32,
        /// How many cores. Default: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cores: Option<u32>,
    },
    /// Holds memory. Exactly one of the two is needed.
    Memory {
        /// How much, in MiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mib: Option<u64>,
        /// How much of what is available when the fault starts, in per cent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent_of_available: Option<u32>,
    },
    /// Reads a file over and over, past the page cache.
    DiskRead(DiskLoad),
    /// Writes a file over and over, each pass to the disk.
    DiskWrite(DiskLoad),
    /// Every byte takes longer.
    NetworkDelay {
        /// At least by this.
        #[serde(default)]
        delay_ms: u64,
        /// And by up to this more, drawn anew for what arrives together. The order stays.
        #[serde(default)]
        jitter_ms: u64,
        /// Which way.
        #[serde(default)]
        direction: Direction,
    },
    /// No more than so many bytes get through per second and connection.
    NetworkRate {
        /// In KiB/s.
        kib_per_s: u64,
        /// Which way.
        #[serde(default)]
        direction: Direction,
    },
    /// Packets are lost: data stalls until it was sent again.
    NetworkLoss {
        /// How many packets of a hundred.
        loss_percent: f64,
        /// The time-out after which TCP sends a packet again; twice as long each time it is lost
        /// again.
        #[serde(default = "retransmission")]
        stall_ms: u64,
        /// Which way.
        #[serde(default)]
        direction: Direction,
    },
    /// Nothing gets through; what was sent arrives afterwards.
    NetworkPartition {
        /// Which way.
        #[serde(default)]
        direction: Direction,
    },
    /// All connections are reset, once.
    NetworkReset {},
    /// New connections are accepted and never answered.
    NetworkHalfOpen {},
    /// SIGSTOP, and SIGCONT at the end.
    Pause {},
    /// SIGKILL, and the process's `restart` command at the end.
    Kill {
        /// It is not started again.
        #[serde(default)]
        stays_down: bool,
    },
    /// The same for whatever hands out timestamps: without `where`, all processes marked
    /// `timestamp_source`.
    KillTimestampSource {
        /// It is not started again.
        #[serde(default)]
        stays_down: bool,
    },
    /// The host is shut down, and started by its `power_on` command at the end.
    Shutdown {
        /// It is not started again.
        #[serde(default)]
        stays_down: bool,
    },
    /// The clock is set off.
    ClockSkew {
        /// By this; negative: into the past.
        offset_ms: i64,
    },
    /// Whatever the host's hook makes of it.
    Custom {
        /// Its name, `DIKE_FAULT` to the hook.
        name: String,
        /// Its parameters, `DIKE_PARAMETER_...` to the hook.
        #[serde(default)]
        parameters: BTreeMap<String, String>,
    },
}

/// How a disk is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskLoad {
    /// Where the file is: a directory on the disk that is meant.
    pub directory: String,
    /// Its size in MiB.
    #[serde(default = "file")]
    pub file_mib: u64,
    /// How many read or write at a time.
    #[serde(default = "one")]
    pub workers: u32,
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Both ways.
    #[default]
    Both,
    /// From clients to the server.
    ToServer,
    /// From the server to clients.
    ToClient,
}

fn all() -> u32 {
    100
}

fn retransmission() -> u64 {
    200
}

fn file() -> u64 {
    256
}

fn one() -> u32 {
    1
}

/// What a fault is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Hosts, by any way that reaches them.
    Hosts,
    /// Hosts with a hook.
    Hooks,
    /// Processes.
    Processes,
    /// Endpoints behind a proxy, or hosts with a hook.
    Endpoints,
}

impl Fault {
    /// What it is called in a schedule, or the name of a custom one.
    pub fn name(&self) -> String {
        match self {
            Fault::Custom { name, .. } => name.clone(),
            _ => self.kind(),
        }
    }

    /// What it is called in a schedule.
    pub fn kind(&self) -> String {
        match self.table().remove("fault") {
            Some(Value::String(kind)) => kind,
            _ => unreachable!("the kind is the tag of the table"),
        }
    }

    /// What it is aimed at.
    pub fn aim(&self) -> Aim {
        match self {
            Fault::Cpu { .. } | Fault::Memory { .. } | Fault::DiskRead(_) | Fault::DiskWrite(_) => Aim::Hosts,
            Fault::Shutdown { .. } | Fault::ClockSkew { .. } => Aim::Hosts,
            Fault::Pause {} | Fault::Kill { .. } | Fault::KillTimestampSource { .. } => Aim::Processes,
            Fault::Custom { .. } => Aim::Hooks,
            _ => Aim::Endpoints,
        }
    }

    /// It is never undone: a machine or process that stays down.
    pub fn stays(&self) -> bool {
        let (Fault::Kill { stays_down }
        | Fault::KillTimestampSource { stays_down }
        | Fault::Shutdown { stays_down }) = self
        else {
            return false;
        };
        *stays_down
    }

    /// It is over as soon as it has happened.
    pub fn is_instant(&self) -> bool {
        matches!(self, Fault::NetworkReset {})
    }

    /// The first parameter that is out of its range, and the range.
    pub(crate) fn out_of_range(&self) -> Option<(&'static str, &'static str)> {
        let check = |ok: bool, name, range| (!ok).then_some((name, range));
        match self {
            Fault::Cpu { load_percent, cores } => check(
                (1..=100).contains(load_percent),
                "load_percent",
                "1..100",
            )
            .or(check(cores.is_none_or(|cores| (1..=4096).contains(&cores)), "cores", "1..4096")),
            Fault::Memory { mib, percent_of_available } => {
                let one = mib.is_some() != percent_of_available.is_some();
                let percent = percent_of_available.is_none_or(|percent| (1..=99).contains(&percent));
                check(one, "mib or percent_of_available", "exactly one of the two")
                    .or(check(percent, "percent_of_available", "1..99"))
                    .or(check(mib.is_none_or(|mib| (1..=1 << 30).contains(&mib)), "mib", "1..1073741824"))
            }
            Fault::DiskRead(load) | Fault::DiskWrite(load) => {
                check(load.directory.starts_with('/'), "directory", "an absolute path")
                    .or(check((1..=1 << 20).contains(&load.file_mib), "file_mib", "1..1048576"))
                    .or(check((1..=256).contains(&load.workers), "workers", "1..256"))
            }
            Fault::NetworkDelay { delay_ms, jitter_ms, .. } => {
                check(*delay_ms > 0 || *jitter_ms > 0, "delay_ms or jitter_ms", "more than 0").or(check(
                    *delay_ms <= HOUR_MS && *jitter_ms <= HOUR_MS,
                    "delay_ms, jitter_ms",
                    "0..3600000",
                ))
            }
            Fault::NetworkRate { kib_per_s, .. } => {
                check((1..=1 << 30).contains(kib_per_s), "kib_per_s", "1..1073741824")
            }
            Fault::NetworkLoss { loss_percent, stall_ms, .. } => {
                check(*loss_percent > 0.0 && *loss_percent <= 100.0, "loss_percent", "more than 0, up to 100")
                    .or(check((1..=HOUR_MS).contains(stall_ms), "stall_ms", "1..3600000"))
            }
            Fault::ClockSkew { offset_ms } => {
                let year_ms = 366 * 24 * HOUR_MS;
                check(
                    *offset_ms != 0 && offset_ms.unsigned_abs() <= year_ms,
                    "offset_ms",
                    "a year at most, and not 0",
                )
            }
            Fault::Custom { name, .. } => check(!name.is_empty(), "name", "a text that is not empty"),
            _ => None,
        }
    }

    /// The parameters as environment variables of a hook: `DIKE_FAULT`, and `DIKE_DELAY_MS` for
    /// `delay_ms`.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut table = self.table();
        table.remove("fault");
        if let Fault::Custom { parameters, .. } = self {
            table = parameters
                .iter()
                .map(|(key, text)| (format!("parameter_{key}"), text.clone().into()))
                .collect();
        }
        let mut variables = vec![("DIKE_FAULT".to_owned(), self.name())];
        for (key, value) in table {
            let name =
                key.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            variables.push((format!("DIKE_{}", name.collect::<String>()), text));
        }
        variables
    }

    fn table(&self) -> serde_json::Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(table)) => table,
            other => unreachable!("a fault is written as a table, not as {other:?}"),
        }
    }
}

const HOUR_MS: u64 = 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_named_as_in_a_schedule_and_gives_its_parameters_to_a_hook() {
        let direction = Direction::ToClient;
        let delay = Fault::NetworkDelay { delay_ms: 50, jitter_ms: 5, direction };
        assert_eq!(delay.name(), "network_delay");
        let variables = delay.variables();
        let of =
            |name: &str| variables.iter().find(|(other, _)| other == name).map(|(_, text)| text.as_str());
        assert_eq!(of("DIKE_FAULT"), Some("network_delay"));
        assert_eq!(of("DIKE_DELAY_MS"), Some("50"));
        assert_eq!(of("DIKE_DIRECTION"), Some("to_client"));

        let parameters = BTreeMap::from([("file-name".to_owned(), "a b".to_owned())]);
        let custom = Fault::Custom { name: "lose_a_file".to_owned(), parameters };
        assert_eq!(custom.kind(), "custom");
        let expected = [("DIKE_FAULT", "lose_a_file"), ("DIKE_PARAMETER_FILE_NAME", "a b")];
        assert_eq!(custom.variables(), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }
}
