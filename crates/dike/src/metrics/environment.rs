//! What a result depends on besides the benchmark: the settings of the server and the machine of
//! the client.
//!
//! A throughput with `fsync = off` is a figure about memory. So a document keeps the settings of
//! each node that bear on speed and durability, as the server itself reports them, and every
//! rendering shows the most important ones and names what makes a commit not durable
//! ([`not_durable`]).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::report::units;

/// Settings of one node, by name.
pub type Settings = BTreeMap<String, String>;

/// The settings that a line shows, in this order: first those that say whether commits are durable.
const SHOWN: [&str; 15] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "unlogged_tables",
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "innodb_doublewrite",
    "engine",
    "shared_buffers",
    "innodb_buffer_pool_size",
    "max_connections",
    "transaction_isolation",
    "tx_isolation",
    "default_transaction_read_only",
    "read_only",
];

/// Settings of a server on one line; nothing if it has told none. Nodes that differ are shown as
/// `on or off`.
pub fn line(nodes: &BTreeMap<String, Settings>) -> Option<String> {
    let told = |name: &str| nodes.values().any(|settings| settings.contains_key(name));
    let shown = SHOWN.iter().filter_map(|&name| {
        // Not shown: the older name of a setting that is shown, and read-only modes that are off.
        let older = name == "tx_isolation" && told("transaction_isolation");
        let expected = |value: &String| value.eq_ignore_ascii_case("off");
        if older || name.ends_with("read_only") && nodes.values().filter_map(|it| it.get(name)).all(expected)
        {
            return None;
        }
        let mut values: Vec<String> = Vec::new();
        for value in nodes.values().filter_map(|settings| settings.get(name)) {
            let value = readable(name, value);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        (!values.is_empty()).then(|| format!("{name} {}", values.join(" or ")))
    });
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// MySQL reports sizes in bytes.
fn readable(name: &str, value: &str) -> String {
    match value.parse::<u64>() {
        Ok(bytes) if name.ends_with("_size") => units::bytes(bytes),
        // The families do not agree on the case of ON and OFF.
        _ if ["ON", "OFF"].contains(&value) => value.to_lowercase(),
        _ => value.to_owned(),
    }
}

/// What makes a commit not durable, or not safely so, in sentences.
pub fn not_durable(nodes: &BTreeMap<String, Settings>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for settings in nodes.values() {
        let value = |name: &str| settings.get(name).map_or("", String::as_str);
        let is_off = |name: &str| ["off", "0", "false"].contains(&value(name).to_lowercase().as_str());
        let binary_log = ["on", "1"].contains(&value("log_bin").to_lowercase().as_str());
        let memory = value("engine").split(", ").any(|engine| engine.eq_ignore_ascii_case("memory"));
        let says: [(bool, String); 9] = [
            (is_off("fsync"), "fsync is off: if the machine fails, commits are lost and data may be damaged".into()),
            (
                is_off("synchronous_commit"),
                "synchronous_commit is off: a commit is answered before it is on disk, and lost if the server crashes"
                    .into(),
            ),
            (
                is_off("full_page_writes"),
                "full_page_writes is off: a crash in the middle of a write may damage what was committed".into(),
            ),
            (
                !value("unlogged_tables").is_empty(),
                format!("unlogged tables are emptied by a crash: {}", value("unlogged_tables")),
            ),
            (
                value("innodb_flush_log_at_trx_commit") == "0",
                "innodb_flush_log_at_trx_commit is 0: a crash of the server loses the last second of commits".into(),
            ),
            (
                value("innodb_flush_log_at_trx_commit") == "2",
                "innodb_flush_log_at_trx_commit is 2: if the machine fails, the last second of commits is lost".into(),
            ),
            (
                binary_log && !["", "1"].contains(&value("sync_binlog")),
                format!(
                    "sync_binlog is {}: if the machine fails, commits may be missing from the binary log",
                    value("sync_binlog")
                ),
            ),
            (
                is_off("innodb_doublewrite"),
                "innodb_doublewrite is off: a crash in the middle of a write may damage what was committed".into(),
            ),
            (memory, "tables are in memory only (engine MEMORY): a restart empties them".into()),
        ];
        let said = says.into_iter().filter(|(holds, _)| *holds).map(|(_, sentence)| sentence);
        for sentence in said {
            if !found.contains(&sentence) {
                found.push(sentence);
            }
        }
    }
    found
}

/// The machine of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Processors that the client may use.
    pub cores: u64,
    /// What they are, as they say; empty if unknown.
    pub processor: String,
    /// Memory of the machine; 0 if unknown.
    pub memory_bytes: u64,
    /// The operating system and its version.
    pub system: String,
}

impl Machine {
    /// The one that this program runs on.
    pub fn this() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned())).unwrap_or_default()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kib = memory.split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
        let release = read("/proc/sys/kernel/osrelease");
        let system = format!("{} {} {}", std::env::consts::OS, release.trim(), std::env::consts::ARCH);
        Machine {
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64),
            processor: field(&read("/proc/cpuinfo"), "model name"),
            memory_bytes: 1024 * kib,
            system,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", units::plural(self.cores, "core", "cores"))?;
        if !self.processor.is_empty() {
            write!(f, " of {}", self.processor)?;
        }
        if self.memory_bytes > 0 {
            write!(f, ", {}", units::bytes(self.memory_bytes))?;
        }
        write!(f, ", {}", self.system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(settings: &[(&str, &str)]) -> BTreeMap<String, Settings> {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        [("a".to_owned(), settings)].into()
    }

    #[test]
    fn what_makes_a_commit_not_durable_is_named() {
        let count = |settings: &[(&str, &str)]| not_durable(&server(settings)).len();
        assert_eq!(count(&[("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on")]), 0);
        assert_eq!(
            count(&[("innodb_flush_log_at_trx_commit", "1"), ("sync_binlog", "0"), ("log_bin", "OFF")]),
            0
        );
        for (name, value) in [
            ("fsync", "off"),
            ("synchronous_commit", "off"),
            ("full_page_writes", "off"),
            ("unlogged_tables", "history"),
            ("innodb_flush_log_at_trx_commit", "0"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "OFF"),
            ("engine", "InnoDB, MEMORY"),
        ] {
            assert_eq!(count(&[(name, value)]), 1, "{name} {value}");
        }
        assert_eq!(count(&[("sync_binlog", "0"), ("log_bin", "ON")]), 1);
        assert_eq!(count(&[("fsync", "off"), ("synchronous_commit", "off")]), 2);
    }

    #[test]
    fn a_line_shows_what_differs_between_nodes() {
        let plain = [("fsync", "on"), ("shared_buffers", "128MB"), ("jit", "on"), ("read_only", "OFF")];
        let mut nodes = server(&plain);
        assert_eq!(line(&nodes).as_deref(), Some("fsync on, shared_buffers 128MB"));
        nodes.extend([("b".to_owned(), [("fsync".to_owned(), "off".to_owned())].into())]);
        assert_eq!(line(&nodes).as_deref(), Some("fsync on or off, shared_buffers 128MB"));
        assert_eq!(line(&BTreeMap::new()), None);
        assert_eq!(line(&server(&[("read_only", "ON")])).as_deref(), Some("read_only on"));
        let mysql = server(&[("innodb_buffer_pool_size", "67108864"), ("innodb_doublewrite", "ON")]);
        assert!(
            line(&mysql)
                .is_some_and(|line| line.starts_with("innodb_doublewrite on, innodb_buffer_pool_size 6"))
        );
    }

    #[test]
    fn this_machine_knows_itself() {
        let machine = Machine::this();
        assert!(machine.cores > 0 && machine.memory_bytes > 0 && machine.system.starts_with("linux "));
        assert!(machine.to_string().contains("core"));
    }
}
