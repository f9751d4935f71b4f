//! A connection, as transactions see it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;

use super::mysql::Mysql;
use super::password::{self, Found};
use super::postgres::Postgres;
use super::{Cause, Failure, Family, Kind, Row, Statement, Value, plugin, tls};
use crate::config::Target;

/// One call of a statement.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub(super) statement: Statement,
    pub(super) values: Vec<Value<'a>>,
}

/// A call of this statement with these values.
pub fn call<'a>(statement: Statement, values: impl Into<Vec<Value<'a>>>) -> Call<'a> {
    Call { statement, values: values.into() }
}

/// What a call answers.
#[derive(Debug, Default)]
pub struct Answer {
    /// The rows, of a query.
    pub rows: Vec<Row>,
    /// How many rows were found and changed, of a change.
    pub affected: u64,
}

impl Answer {
    /// The only row of a query by key.
    pub fn one(&self) -> Result<&Row, Failure> {
        match &self.rows[..] {
            [row] => Ok(row),
            rows => Err(Failure::unexpected(format!("a query by key found {} rows", rows.len()))),
        }
    }

    /// Fails unless a change has met that many rows.
    pub fn changed(&self, rows: u64) -> Result<(), Failure> {
        if self.affected == rows {
            return Ok(());
        }
        Err(Failure::unexpected(format!("a change met {} rows instead of {rows}", self.affected)))
    }
}

/// Rows as texts; none is NULL.
pub type TextRows = Vec<Vec<Option<String>>>;

/// A connection. After a failure that [ends it](Failure::ends_connection), and after a future of it
/// was dropped, it is of no use.
pub struct Session {
    protocol: Protocol,
    /// The transaction to begin along with the next calls: whether it is read-only.
    begin: Option<bool>,
    /// Whether a COMMIT is under way.
    committing: bool,
}

enum Protocol {
    Postgres(Box<Postgres>),
    Mysql(Box<Mysql>),
}

/// Calls a method of whichever protocol it is.
macro_rules! each {
    ($session:expr, $inner:ident => $call:expr) => {
        match &mut $session.protocol {
            Protocol::Postgres($inner) => $call,
            Protocol::Mysql($inner) => $call,
        }
    };
}

impl Session {
    /// Begins a transaction, along with the next calls.
    pub fn begin(&mut self, read_only: bool) {
        self.begin = Some(read_only);
    }

    /// Runs calls that do not depend on each other's answers, in this order. The first failure ends
    /// it; what came before it may have happened.
    pub async fn run(&mut self, calls: &[Call<'_>]) -> Result<Vec<Answer>, Failure> {
        let begin = self.begin.take();
        each!(self, session => session.run(begin, calls).await)
    }

    /// Runs one call.
    pub async fn run_one(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Answer, Failure> {
        let mut answers = self.run(&[call(statement, values)]).await?;
        answers.pop().ok_or_else(|| Failure::unexpected("a call had no answer"))
    }

    /// Commits. A failure that does not prove that the transaction has aborted is
    /// [`Cause::InDoubt`].
    pub async fn commit(&mut self) -> Result<(), Failure> {
        self.committing = true;
        let committed = each!(self, session => session.text("COMMIT").await);
        self.committing = false;
        let family = match self.protocol {
            Protocol::Postgres(_) => Family::Postgres,
            Protocol::Mysql(_) => Family::Mysql,
        };
        committed.map(|_| ()).map_err(|failure| failure.of_commit(family))
    }

    /// Why there is no answer, if the future of a call was dropped because it took too long.
    pub fn timed_out(&self, patience: Duration) -> Failure {
        let cause = if self.committing { Cause::InDoubt } else { Cause::Timeout };
        Failure::new(cause, format!("no answer within {patience:?}"))
    }

    /// Rolls back, or forgets a transaction whose beginning was not sent yet.
    pub async fn rollback(&mut self) -> Result<(), Failure> {
        match self.begin.take() {
            Some(_) => Ok(()),
            None => each!(self, session => session.text("ROLLBACK").await).map(|_| ()),
        }
    }

    /// Runs a text without parameters and returns its rows as texts.
    pub async fn text(&mut self, sql: &str) -> Result<TextRows, Failure> {
        each!(self, session => session.text(sql).await)
    }

    /// The only value of the only row of a text.
    pub async fn text_value(&mut self, sql: &str) -> Result<String, Failure> {
        let rows = self.text(sql).await?;
        match rows.first().and_then(|row| row.first()) {
            Some(Some(value)) => Ok(value.clone()),
            _ => Err(Failure::unexpected(format!("{sql} answered nothing"))),
        }
    }

    /// Runs a change without parameters. Returns how many rows it has met.
    pub async fn change(&mut self, sql: &str) -> Result<u64, Failure> {
        each!(self, session => session.change(sql).await)
    }

    /// Loads rows into a table: in the form of COPY, text or binary, or of LOAD DATA LOCAL INFILE.
    /// Returns how many.
    pub async fn copy(&mut self, table: &str, binary: bool, rows: Bytes) -> Result<u64, Failure> {
        match &mut self.protocol {
            Protocol::Postgres(session) => session.copy(table, binary, rows).await,
            Protocol::Mysql(session) => session.load_data(table, rows).await,
        }
    }
}

/// A server of a target.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// Its name, which is also what its certificate has to prove.
    pub(super) host: String,
    pub(super) port: u16,
    /// The user's password there.
    pub(super) password: Found,
    /// A proxy before it, to connect to instead.
    pub(super) through: Option<SocketAddr>,
    /// Whether a connection was made once, so that the server need not be asked again by which
    /// plugin it wants the user to be authenticated.
    asked: Arc<AtomicBool>,
}

impl Endpoint {
    pub(super) fn new(host: String, port: u16, password: Found) -> Endpoint {
        Endpoint { host, port, password, through: None, asked: Arc::default() }
    }
}

/// Makes connections to a target.
#[derive(Clone)]
pub struct Connector {
    target: Arc<Target>,
    endpoints: Arc<[Endpoint]>,
    tls: Option<Arc<rustls::ClientConfig>>,
    lock: bool,
    /// Whether its sessions load, check or drop tables.
    upkeep: bool,
}

impl Connector {
    /// For this target; `lock` says whether rows that are read to be changed are locked.
    pub fn new(target: &Target, lock: bool) -> Result<Connector, Failure> {
        let tls = tls::client(target)?;
        let environment = |name: &str| std::env::var_os(name);
        let endpoint = |(host, port): (String, u16)| {
            let password = password::find(target, &host, port, &environment);
            Endpoint::new(host, port, password)
        };
        let endpoints = target.hosts().into_iter().map(endpoint).collect();
        Ok(Connector { target: Arc::new(target.clone()), endpoints, tls, lock, upkeep: false })
    }

    /// The same for what is not measured: loading, checking, dropping tables. No time limit of the
    /// server's or of the user's role cuts its sessions short.
    pub fn upkeep(&self) -> Connector {
        Connector { upkeep: true, ..self.clone() }
    }

    /// The same, through proxies.
    ///
    /// * `proxies`: where they listen, by endpoints as the target names them. Others are reached as
    ///   before.
    pub fn through(&self, proxies: &BTreeMap<String, SocketAddr>) -> Connector {
        let names = self.target.endpoints.iter();
        let endpoints = self
            .endpoints
            .iter()
            .zip(names)
            .map(|(endpoint, name)| Endpoint { through: proxies.get(name).copied(), ..endpoint.clone() });
        Connector { endpoints: endpoints.collect(), ..self.clone() }
    }

    /// One for each endpoint, by its name, that knows no other.
    pub fn alone(&self) -> Vec<(String, Connector)> {
        let alone = |(name, endpoint): (&String, &Endpoint)| {
            (name.clone(), Connector { endpoints: [endpoint.clone()].into(), ..self.clone() })
        };
        self.target.endpoints.iter().zip(self.endpoints.iter()).map(alone).collect()
    }

    /// Which database it is.
    pub fn kind(&self) -> Kind {
        self.target.kind
    }

    /// Whose protocol it speaks.
    pub fn family(&self) -> Family {
        self.kind().family()
    }

    /// Connects to one of the endpoints: number `at`, counted round, if it answers.
    pub async fn connect(&self, at: usize) -> Result<Session, Failure> {
        let mut failure = Failure::new(Cause::Unreachable, "there is no endpoint");
        for step in 0..self.endpoints.len() {
            let endpoint = &self.endpoints[(at + step) % self.endpoints.len()];
            let patience = Duration::from_millis(self.target.connect_timeout_ms);
            let connected = match tokio::time::timeout(patience, self.connect_to(endpoint)).await {
                Ok(connected) => connected,
                Err(_) => Err(Failure::new(Cause::Timeout, format!("no answer within {patience:?}"))),
            };
            match connected {
                Ok(session) => return Ok(session),
                Err(why) => {
                    let cause = if why.cause.is_permanent() { why.cause } else { Cause::Unreachable };
                    let mut message = format!("{}:{}: {}", endpoint.host, endpoint.port, why.message);
                    let remedy = tls::remedy(&message, self.family());
                    let missing = message
                        .contains("password missing")
                        .then_some("set the environment's DIKE_PASSWORD, or have a line for it in ~/.pgpass");
                    let remark = endpoint.password.remark.as_deref();
                    let remark = remark.filter(|_| why.message.contains("password"));
                    for said in remedy.into_iter().chain(missing).chain(remark) {
                        message = format!("{message}; {said}");
                    }
                    failure = Failure { cause, message, ..why };
                }
            }
        }
        Err(failure)
    }

    /// Gives up a session whose call takes too long, and asks the server to do so as well: it would
    /// not notice while it waits for a lock, and keep those it has. Whether it could be asked does
    /// not matter to anybody here.
    pub fn abandon(&self, session: Session) {
        let patience = Duration::from_millis(self.target.connect_timeout_ms);
        let (target, encryption) = (self.target.clone(), self.tls.clone());
        tokio::spawn(tokio::time::timeout(patience, async move {
            match session.protocol {
                Protocol::Postgres(session) => session.cancel(encryption.as_deref()).await,
                Protocol::Mysql(session) => {
                    let tls = tls::mysql(&target);
                    let (endpoint, id) = session.place();
                    drop(session);
                    if let Ok(mut other) = Mysql::connect(&target, &endpoint, tls, false).await {
                        let _ = other.text(&format!("KILL {id}")).await;
                    }
                }
            }
        }));
    }

    async fn connect_to(&self, endpoint: &Endpoint) -> Result<Session, Failure> {
        let isolation = self.target.isolation.sql();
        match self.family() {
            Family::Postgres => {
                let mut session =
                    Postgres::connect(&self.target, endpoint, self.tls.as_deref(), self.lock).await?;
                session.set_up(self.upkeep).await?;
                if let Some(level) = isolation {
                    let set = format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}");
                    session.text(&set).await?;
                }
                Ok(Session {
                    protocol: Protocol::Postgres(Box::new(session)),
                    begin: None,
                    committing: false,
                })
            }
            Family::Mysql => {
                if !endpoint.asked.load(Relaxed) {
                    let patience = Duration::from_millis(self.target.connect_timeout_ms);
                    plugin::refuse_parsec(&self.target.user, endpoint, self.tls.clone(), patience).await?;
                }
                let tls = tls::mysql(&self.target);
                let mut session = Mysql::connect(&self.target, endpoint, tls, self.lock).await?;
                // Only now: a server that was away could not be asked, and is asked again.
                endpoint.asked.store(true, Relaxed);
                session.set_up(self.kind(), self.upkeep).await?;
                if let Some(level) = isolation {
                    session.text(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await?;
                }
                Ok(Session { protocol: Protocol::Mysql(Box::new(session)), begin: None, committing: false })
            }
        }
    }
}
