//! The parts of a configuration. What each parameter means is said in the template `tpcc.toml`,
//! beside its default.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{MixChange, Refusal, refuse, within};
use crate::target::{Isolation, Kind};
use crate::transactions::Transaction;

/// What is measured and how it is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Target {
    /// Which database it is.
    pub kind: Kind,
    /// `host:port`, at least one.
    pub endpoints: Vec<String>,
    /// The database.
    pub database: String,
    /// Who uses it.
    pub user: String,
    /// Their password; never written into results. Without one here it comes from elsewhere
    /// ([`crate::target`]).
    #[serde(skip_serializing_if = "Secret::is_there")]
    pub password: Secret,
    /// Whether connections are encrypted.
    pub tls: Tls,
    /// A PEM file with the authority to trust, or with the server's own certificate; empty for the
    /// well-known authorities.
    pub tls_ca: String,
    /// A PEM file with the certificate that the user shows; empty for none.
    pub tls_cert: String,
    /// A PEM file with its private key.
    pub tls_key: String,
    /// The isolation level of all transactions.
    pub isolation: Isolation,
    /// How long to wait for a connection, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long an attempt may take, in milliseconds.
    pub transaction_timeout_ms: u64,
}

impl Default for Target {
    fn default() -> Target {
        Target {
            kind: Kind::Postgresql,
            endpoints: vec!["127.0.0.1:5432".to_owned()],
            database: "dike".to_owned(),
            user: "dike".to_owned(),
            password: Secret::default(),
            tls: Tls::Off,
            tls_ca: String::new(),
            tls_cert: String::new(),
            tls_key: String::new(),
            isolation: Isolation::RepeatableRead,
            connect_timeout_ms: 5000,
            transaction_timeout_ms: 60_000,
        }
    }
}

impl Target {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        if self.endpoints.is_empty() {
            refuse!("target.endpoints needs at least one endpoint, such as \"127.0.0.1:5432\"");
        }
        // What is no address may be a URL with a password in it, and is not repeated.
        for (at, endpoint) in self.endpoints.iter().enumerate() {
            if endpoint.contains(['@', '/']) {
                refuse!(
                    "target.endpoints: number {} is a URL: write host:port, and the rest as target.user, \
                     target.database and the environment's DIKE_PASSWORD",
                    at + 1
                );
            }
            if split(endpoint).is_none() {
                refuse!("target.endpoints: number {} is not host:port, such as \"127.0.0.1:5432\"", at + 1);
            }
        }
        if !self.tls_ca.is_empty() && self.tls != Tls::Verify {
            refuse!("target.tls_ca says whom to trust: set target.tls = \"verify\", or leave it out");
        }
        if self.tls_cert.is_empty() != self.tls_key.is_empty() {
            refuse!("target.tls_cert and target.tls_key belong together: name both files, or none");
        }
        if !self.tls_cert.is_empty() && self.tls == Tls::Off {
            refuse!("target.tls_cert is shown over TLS: set target.tls = \"verify\", or leave it out");
        }
        within("target.connect_timeout_ms", self.connect_timeout_ms, 1, 600_000)?;
        within("target.transaction_timeout_ms", self.transaction_timeout_ms, 1, 86_400_000)
    }

    /// Host and port of each endpoint.
    pub fn hosts(&self) -> Vec<(String, u16)> {
        self.endpoints.iter().filter_map(|endpoint| split(endpoint)).collect()
    }
}

/// Host and port; an IPv6 address is in brackets.
fn split(endpoint: &str) -> Option<(String, u16)> {
    let (host, port) = endpoint.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (!host.is_empty()).then_some((host.to_owned(), port.parse().ok()?))
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tls {
    /// They are not.
    Off,
    /// They are, and the server's certificate is not checked. An eavesdropper learns nothing; an
    /// impostor is not noticed.
    Unverified,
    /// They are, and the server has to show a certificate that a trusted authority has signed, or
    /// that is trusted itself.
    Verify,
}

/// A text that appears on no screen and in no result.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// The text itself, to be sent to the server.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is a text.
    pub fn is_there(&self) -> bool {
        !self.0.is_empty()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_there() { "(secret)" } else { "(none)" })
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        // The message of serde itself would repeat a value of another type.
        match String::deserialize(deserializer) {
            Ok(text) => Ok(Secret(text)),
            Err(_) => Err(D::Error::custom("a password is a text: write it in quotes")),
        }
    }
}

/// How tables are laid out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schema {
    /// Partitions of each table; 0 is the database's choice.
    pub partitions: u32,
    /// Whether the rows of a warehouse are kept together.
    pub co_locate: bool,
    /// Whether ITEM is copied everywhere.
    pub replicate_item: bool,
}

impl Default for Schema {
    fn default() -> Schema {
        Schema { partitions: 0, co_locate: true, replicate_item: true }
    }
}

impl Schema {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("schema.partitions", self.partitions, 0, 1024)
    }
}

/// How large the database is. Stored in the database when it is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// Warehouses.
    pub warehouses: u32,
    /// Items.
    pub items: u32,
    /// Customers of a district, and orders at load.
    pub customers_per_district: u32,
    /// Zipf's exponent of districts over warehouses; 0 for ten each.
    pub district_skew: f64,
    /// Seed of all rows.
    pub seed: u64,
}

impl Default for Data {
    fn default() -> Data {
        Data { warehouses: 10, items: 100_000, customers_per_district: 3000, district_skew: 0.0, seed: 1 }
    }
}

impl Data {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("data.warehouses", self.warehouses, 1, 1_000_000)?;
        within("data.items", self.items, 10, 10_000_000)?;
        within("data.customers_per_district", self.customers_per_district, 1, 100_000)?;
        within("data.district_skew", self.district_skew, 0.0, 10.0)?;
        // It is kept as a signed integer in the database.
        within("data.seed", self.seed, 0, i64::MAX as u64)
    }
}

/// How the database is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Load {
    /// Connections side by side.
    pub workers: usize,
    /// By which statement.
    pub method: LoadMethod,
    /// Rows of one INSERT.
    pub rows_per_insert: usize,
}

/// By which statement rows are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadMethod {
    /// COPY, or LOAD DATA LOCAL INFILE.
    Copy,
    /// INSERT.
    Insert,
}

impl Default for Load {
    fn default() -> Load {
        Load { workers: 4, method: LoadMethod::Copy, rows_per_insert: 100 }
    }
}

impl Load {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("load.workers", self.workers, 1, 1000)?;
        within("load.rows_per_insert", self.rows_per_insert, 1, 10_000)
    }
}

/// How long and with how many terminals the database is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Run {
    /// Clients.
    pub terminals: u32,
    /// Connections that they share; 0 is one each.
    pub connections: u32,
    /// Seconds before anything counts.
    pub warmup_s: u64,
    /// Seconds that count.
    pub duration_s: u64,
    /// How often the whole run is repeated.
    pub repeats: u32,
    /// What comparisons call it; empty for the kind of database.
    pub label: String,
    /// The warehouse of a transaction.
    pub home: Home,
    /// Clients that drive one run together.
    pub clients: u32,
    /// Which of them this one is, from 1.
    pub client: u32,
    /// Seed of all inputs.
    pub seed: u64,
}

/// Where a terminal's transactions are at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Home {
    /// Anywhere, drawn each time.
    Drawn,
    /// At the terminal's own warehouse.
    Fixed,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            terminals: 10,
            connections: 0,
            warmup_s: 10,
            duration_s: 60,
            repeats: 1,
            label: String::new(),
            home: Home::Drawn,
            clients: 1,
            client: 1,
            seed: 1,
        }
    }
}

impl Run {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("run.terminals", self.terminals, 1, 100_000)?;
        within("run.connections", self.connections, 0, 100_000)?;
        within("run.warmup_s", self.warmup_s, 0, 86_400)?;
        within("run.duration_s", self.duration_s, 1, 7 * 86_400)?;
        within("run.repeats", self.repeats, 1, 1000)?;
        within("run.clients", self.clients, 1, 1000)?;
        within("run.client", self.client, 1, self.clients)
    }

    /// Terminals of all clients.
    pub fn all_terminals(&self) -> u32 {
        self.terminals * self.clients
    }
}

/// In per cent, which transactions are run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mix {
    /// Orders items.
    pub new_order: u32,
    /// Pays.
    pub payment: u32,
    /// Shows a customer's newest order.
    pub order_status: u32,
    /// Delivers orders.
    pub delivery: u32,
    /// Counts low stocks.
    pub stock_level: u32,
    /// Changes prices.
    pub update_item: u32,
    /// Changes stocks.
    pub update_stock: u32,
    /// Changes several w_ytd.
    pub update_balance: u32,
    /// Reads several w_ytd.
    pub select_balance: u32,
    /// Whether weights are of terminals, each of which runs one kind only.
    pub by_terminal: bool,
    /// Other mixes from given times on.
    pub changes: Vec<MixChange>,
}

impl Default for Mix {
    fn default() -> Mix {
        Mix {
            new_order: 45,
            payment: 43,
            order_status: 4,
            delivery: 4,
            stock_level: 4,
            update_item: 0,
            update_stock: 0,
            update_balance: 0,
            select_balance: 0,
            by_terminal: false,
            changes: Vec::new(),
        }
    }
}

impl Mix {
    /// The weights in the order of [`crate::transactions::Transaction::ALL`].
    pub fn weights(&self) -> [u32; 9] {
        [
            self.new_order,
            self.payment,
            self.order_status,
            self.delivery,
            self.stock_level,
            self.update_item,
            self.update_stock,
            self.update_balance,
            self.select_balance,
        ]
    }

    /// Refuses weights that are not per cent.
    pub fn validate(&self) -> Result<(), Refusal> {
        let sum: u64 = self.weights().iter().map(|&weight| u64::from(weight)).sum();
        if sum != 100 {
            refuse!("the weights in mix sum to {sum}: they are per cent and have to sum to 100");
        }
        if self.by_terminal && !self.changes.is_empty() {
            refuse!(
                "mix.by_terminal leaves each terminal at its transaction, and mix.changes changes it: use one of them"
            );
        }
        self.changes.iter().try_for_each(MixChange::validate)
    }

    /// Whether a transaction is ever run.
    pub fn ever(&self, transaction: Transaction) -> bool {
        let at = transaction as usize;
        self.weights()[at] > 0
            || self.changes.iter().any(|change| change.weights.get(&transaction).is_some_and(|&w| w > 0))
    }
}

/// What transactions do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// Per cent of order lines that another warehouse supplies.
    pub remote_line_pct: f64,
    /// Per cent of payments by customers of another warehouse.
    pub remote_payment_pct: f64,
    /// Per cent of new orders that roll back.
    pub rollback_pct: f64,
    /// Warehouses of one Stock-Level.
    pub stock_level_warehouses: u32,
    /// Warehouses of one Update-Stock.
    pub update_stock_warehouses: u32,
    /// Items of one Update-Item.
    pub update_item_items: u32,
    /// Warehouses of one Update-Balance or Select-Balance.
    pub balance_warehouses: u32,
    /// Whether rows are locked when they are read to be changed.
    pub select_for_update: bool,
}

impl Default for Workload {
    fn default() -> Workload {
        Workload {
            remote_line_pct: 1.0,
            remote_payment_pct: 15.0,
            rollback_pct: 1.0,
            stock_level_warehouses: 1,
            update_stock_warehouses: 1,
            update_item_items: 1,
            balance_warehouses: 2,
            select_for_update: true,
        }
    }
}

impl Workload {
    pub(super) fn validate(&self, data: &Data) -> Result<(), Refusal> {
        within("workload.remote_line_pct", self.remote_line_pct, 0.0, 100.0)?;
        within("workload.remote_payment_pct", self.remote_payment_pct, 0.0, 100.0)?;
        within("workload.rollback_pct", self.rollback_pct, 0.0, 100.0)?;
        let warehouses = data.warehouses;
        within("workload.stock_level_warehouses", self.stock_level_warehouses, 1, warehouses)?;
        within("workload.update_stock_warehouses", self.update_stock_warehouses, 1, warehouses)?;
        within("workload.update_item_items", self.update_item_items, 1, data.items)?;
        within("workload.balance_warehouses", self.balance_warehouses, 1, 1000)
    }
}

/// What happens after conflicts and outages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Attempts of a transaction, at most.
    pub attempts_max: u32,
    /// Pause before the second attempt, in milliseconds.
    pub backoff_ms: f64,
    /// The longest pause between attempts, in milliseconds.
    pub backoff_max_ms: f64,
    /// Pause before the second try to connect, in milliseconds.
    pub reconnect_ms: f64,
    /// The longest pause between tries to connect, in milliseconds.
    pub reconnect_max_ms: f64,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            attempts_max: 10,
            backoff_ms: 1.0,
            backoff_max_ms: 100.0,
            reconnect_ms: 50.0,
            reconnect_max_ms: 2000.0,
        }
    }
}

impl Retry {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("retry.attempts_max", self.attempts_max, 1, 1_000_000)?;
        within("retry.backoff_ms", self.backoff_ms, 0.0, 60_000.0)?;
        within("retry.backoff_max_ms", self.backoff_max_ms, self.backoff_ms, 60_000.0)?;
        within("retry.reconnect_ms", self.reconnect_ms, 1.0, 60_000.0)?;
        within("retry.reconnect_max_ms", self.reconnect_max_ms, self.reconnect_ms, 600_000.0)
    }
}

/// The functional tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Test {
    /// Sessions.
    pub sessions: u32,
    /// Seconds of each test.
    pub duration_s: f64,
    /// Warehouses that depend on each other.
    pub group: u32,
    /// A transaction that takes longer than this, in seconds, hangs.
    pub bound_s: f64,
    /// Lists of the isolation test.
    pub lists: u32,
}

impl Default for Test {
    fn default() -> Test {
        Test { sessions: 8, duration_s: 10.0, group: 4, bound_s: 10.0, lists: 5 }
    }
}

impl Test {
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        within("test.sessions", self.sessions, 2, 10_000)?;
        within("test.duration_s", self.duration_s, 0.1, 86_400.0)?;
        within("test.group", self.group, 2, 100)?;
        within("test.bound_s", self.bound_s, 0.1, 3600.0)?;
        within("test.lists", self.lists, 2, 10_000)
    }
}
