//! PostgreSQL's protocol: prepared statements, pipelines, COPY.
//!
//! The driver keeps no order among futures of its own making: requests leave in the order in which
//! their futures are first polled, and are answered in that order. [`pipeline`] polls them in ours.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::maybe_done;
use futures_util::{SinkExt, TryStreamExt};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::session::{Endpoint, TextRows};
use super::{Answer, Call, Failure, Family, Row, Statement, settings};
use crate::config::Target;

/// A connection to PostgreSQL, or what speaks like it.
pub struct Postgres {
    client: Client,
    /// The task that moves the bytes; it ends with the session.
    driver: JoinHandle<()>,
    prepared: BTreeMap<Statement, tokio_postgres::Statement>,
    lock: bool,
}

/// One request of a pipeline.
enum Step<'a> {
    Begin(&'static str),
    Query(&'a tokio_postgres::Statement, &'a Call<'a>),
    Change(&'a tokio_postgres::Statement, &'a Call<'a>),
}

impl Postgres {
    pub(super) async fn connect(
        target: &Target,
        endpoint: &Endpoint,
        tls: Option<&rustls::ClientConfig>,
        lock: bool,
    ) -> Result<Postgres, Failure> {
        let mut config = tokio_postgres::Config::new();
        config.host(&endpoint.host).user(&target.user).dbname(&target.database).application_name("dike");
        match endpoint.through {
            Some(proxy) => config.hostaddr(proxy.ip()).port(proxy.port()),
            None => config.port(endpoint.port),
        };
        if endpoint.password.password.is_there() {
            config.password(endpoint.password.password.reveal());
        }
        let (client, driver) = match tls {
            None => {
                config.ssl_mode(tokio_postgres::config::SslMode::Disable);
                let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
                (client, tokio::spawn(drive(connection)))
            }
            Some(tls) => {
                config.ssl_mode(tokio_postgres::config::SslMode::Require);
                let tls = tokio_postgres_rustls::MakeRustlsConnect::new(tls.clone());
                let (client, connection) = config.connect(tls).await?;
                (client, tokio::spawn(drive(connection)))
            }
        };
        Ok(Postgres { client, driver, prepared: BTreeMap::new(), lock })
    }

    /// Makes the session what Dike depends on.
    pub(super) async fn set_up(&mut self, upkeep: bool) -> Result<(), Failure> {
        self.text(&settings::postgres(upkeep)).await.map(|_| ())
    }

    /// Runs calls, and before them begins a transaction, read-only or not.
    pub(super) async fn run(
        &mut self,
        begin: Option<bool>,
        calls: &[Call<'_>],
    ) -> Result<Vec<Answer>, Failure> {
        for call in calls {
            if !self.prepared.contains_key(&call.statement) {
                let text = call.statement.sql(Family::Postgres, self.lock);
                let prepared = self.client.prepare(&text).await?;
                self.prepared.insert(call.statement, prepared);
            }
        }
        let begin = begin.map(|read_only| match read_only {
            true => Step::Begin("BEGIN READ ONLY"),
            false => Step::Begin("BEGIN"),
        });
        let begins = usize::from(begin.is_some());
        let steps = begin.into_iter().chain(calls.iter().map(|call| {
            let prepared = &self.prepared[&call.statement];
            match call.statement.returns_rows() {
                true => Step::Query(prepared, call),
                false => Step::Change(prepared, call),
            }
        }));
        let answers = pipeline(steps.map(|step| self.request(step)).collect()).await;
        answers.into_iter().collect::<Result<Vec<_>, _>>().map(|mut answers| answers.split_off(begins))
    }

    async fn request(&self, step: Step<'_>) -> Result<Answer, Failure> {
        match step {
            Step::Begin(text) => {
                self.client.batch_execute(text).await?;
                Ok(Answer::default())
            }
            Step::Query(prepared, call) => {
                let rows = self.client.query_raw(prepared, call.values.iter()).await?;
                let rows = rows.map_ok(Row::Postgres).try_collect().await?;
                Ok(Answer { rows, affected: 0 })
            }
            Step::Change(prepared, call) => {
                let affected = self.client.execute_raw(prepared, call.values.iter()).await?;
                Ok(Answer { rows: Vec::new(), affected })
            }
        }
    }

    /// Asks the server to stop what it does for this session.
    pub(super) async fn cancel(&self, tls: Option<&rustls::ClientConfig>) {
        let token = self.client.cancel_token();
        let _ = match tls {
            None => token.cancel_query(tokio_postgres::NoTls).await,
            Some(tls) => token.cancel_query(tokio_postgres_rustls::MakeRustlsConnect::new(tls.clone())).await,
        };
    }

    pub(super) async fn text(&mut self, sql: &str) -> Result<TextRows, Failure> {
        let messages = self.client.simple_query(sql).await?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    pub(super) async fn change(&mut self, sql: &str) -> Result<u64, Failure> {
        let messages = self.client.simple_query(sql).await?;
        let affected = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::CommandComplete(rows) => Some(rows),
            _ => None,
        });
        Ok(affected.sum())
    }

    pub(super) async fn copy(&mut self, table: &str, binary: bool, rows: Bytes) -> Result<u64, Failure> {
        let form = if binary { "BINARY" } else { "CSV, NULL '\\N'" };
        let sink =
            self.client.copy_in::<_, Bytes>(&format!("COPY {table} FROM STDIN WITH (FORMAT {form})")).await?;
        let mut sink = pin!(sink);
        sink.send(rows).await?;
        Ok(sink.finish().await?)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn drive<S, T>(connection: tokio_postgres::Connection<S, T>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    // Whoever waits for an answer is told why there is none.
    let _ = connection.await;
}

/// Runs requests that all are under way at once, sent in this order.
async fn pipeline<F: Future>(requests: Vec<F>) -> Vec<F::Output> {
    let mut requests: Vec<_> = requests.into_iter().map(|request| Box::pin(maybe_done(request))).collect();
    poll_fn(|context| {
        let mut waiting = false;
        for request in &mut requests {
            waiting |= request.as_mut().poll(context).is_pending();
        }
        if waiting { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    requests.iter_mut().filter_map(|request| request.as_mut().take_output()).collect()
}
