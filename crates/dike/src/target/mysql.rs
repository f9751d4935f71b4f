//! MySQL's protocol: prepared statements one after the other, LOAD DATA LOCAL INFILE.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Params, SslOpts};

use super::session::{Endpoint, TextRows};
use super::{Answer, Call, Cause, Failure, Family, Kind, Row, Statement, settings};
use crate::config::Target;

/// Statements that a connection keeps: more than there are, so that none is ever forgotten behind
/// our back.
const STATEMENTS_KEPT: usize = 1000;

/// The longest password in bytes that goes to a server which wants it whole over a connection that
/// is not encrypted: the driver encrypts it with the server's RSA key, of 2,048 bits as MySQL makes
/// it, and a zero behind it, and does not survive a longer one.
const PASSWORD_BYTES_MAX: usize = 213;

/// What a server says to a wrong password.
const ACCESS_DENIED: u16 = 1045;

/// A connection to MySQL, or what speaks like it.
pub struct Mysql {
    connection: Conn,
    endpoint: Endpoint,
    prepared: BTreeMap<Statement, mysql_async::Statement>,
    lock: bool,
}

impl Mysql {
    pub(super) async fn connect(
        target: &Target,
        endpoint: &Endpoint,
        tls: Option<SslOpts>,
        lock: bool,
    ) -> Result<Mysql, Failure> {
        let (host, port, tls) = match endpoint.through {
            // The certificate is the server's, whoever passes it on.
            Some(proxy) => {
                let named = |tls: SslOpts| tls.with_danger_tls_hostname_override(Some(endpoint.host.clone()));
                (proxy.ip().to_string(), proxy.port(), tls.map(named))
            }
            None => (endpoint.host.clone(), endpoint.port, tls),
        };
        let password = &endpoint.password.password;
        if tls.is_none() && password.reveal().len() > PASSWORD_BYTES_MAX {
            let why = format!(
                "a password of more than {PASSWORD_BYTES_MAX} bytes needs an encrypted connection: set target.tls"
            );
            return Err(Failure::new(Cause::Other, why));
        }
        let password = password.is_there().then(|| password.reveal().to_owned());
        let options = OptsBuilder::default()
            .ip_or_hostname(host)
            .tcp_port(port)
            .user(Some(target.user.clone()))
            .pass(password)
            .db_name(Some(target.database.clone()))
            .prefer_socket(false)
            .stmt_cache_size(STATEMENTS_KEPT)
            // A change that leaves a row as it was has met it all the same.
            .client_found_rows(true)
            .ssl_opts(tls);
        // Of a random number that ends in a zero the driver drops the zero, so that an ed25519
        // server refuses one login of 256 whatever the password is.
        let connection = match Conn::new(options.clone()).await {
            Err(mysql_async::Error::Server(said)) if said.code == ACCESS_DENIED => Conn::new(options).await?,
            connected => connected?,
        };
        Ok(Mysql { connection, endpoint: endpoint.clone(), prepared: BTreeMap::new(), lock })
    }

    /// Makes the session what Dike depends on.
    pub(super) async fn set_up(&mut self, kind: Kind, upkeep: bool) -> Result<(), Failure> {
        if let Some(first) = settings::first_mysql(kind, upkeep) {
            self.connection.query_drop(first).await?;
        }
        let rows = self.text(&settings::ask_mysql(upkeep)).await?;
        let has = rows.into_iter().filter_map(|row| match <[_; 2]>::try_from(row) {
            Ok([Some(name), Some(value)]) => Some((name, value)),
            _ => None,
        });
        match settings::set_mysql(upkeep, &has.collect::<Vec<_>>()) {
            Some(set) => Ok(self.connection.query_drop(set).await?),
            None => Ok(()),
        }
    }

    /// Runs calls, and before them begins a transaction, read-only or not.
    pub(super) async fn run(
        &mut self,
        begin: Option<bool>,
        calls: &[Call<'_>],
    ) -> Result<Vec<Answer>, Failure> {
        for call in calls {
            if !self.prepared.contains_key(&call.statement) {
                let text = call.statement.sql(Family::Mysql, self.lock);
                let prepared = self.connection.prep(text).await?;
                self.prepared.insert(call.statement, prepared);
            }
        }
        if let Some(read_only) = begin {
            let text = if read_only { "START TRANSACTION READ ONLY" } else { "START TRANSACTION" };
            self.connection.query_drop(text).await?;
        }
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let prepared = &self.prepared[&call.statement];
            let values = Params::Positional(call.values.iter().map(|&value| value.into()).collect());
            let rows: Vec<mysql_async::Row> = self.connection.exec(prepared, values).await?;
            let rows = rows.into_iter().map(Row::Mysql).collect();
            answers.push(Answer { rows, affected: self.connection.affected_rows() });
        }
        Ok(answers)
    }

    /// Where it is connected to, and as which of the server's threads.
    pub(super) fn place(&self) -> (Endpoint, u32) {
        (self.endpoint.clone(), self.connection.id())
    }

    pub(super) async fn text(&mut self, sql: &str) -> Result<TextRows, Failure> {
        let rows: Vec<mysql_async::Row> = self.connection.query(sql).await?;
        let text = |value: &mysql_async::Value| match value {
            mysql_async::Value::NULL => None,
            mysql_async::Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            other => Some(other.as_sql(true)),
        };
        let columns =
            |row: &mysql_async::Row| (0..row.len()).map(|at| row.as_ref(at).and_then(text)).collect();
        Ok(rows.iter().map(columns).collect())
    }

    pub(super) async fn change(&mut self, sql: &str) -> Result<u64, Failure> {
        self.connection.query_drop(sql).await?;
        Ok(self.connection.affected_rows())
    }

    pub(super) async fn load_data(&mut self, table: &str, rows: Bytes) -> Result<u64, Failure> {
        // The server asks for the file by its name; there is only this one.
        self.connection.set_infile_handler(async move { Ok(stream::once(async move { Ok(rows) }).boxed()) });
        let load = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET ascii FIELDS TERMINATED BY ','"
        );
        self.connection.query_drop(load).await?;
        Ok(self.connection.affected_rows())
    }
}
