//! The connections of a run. A terminal takes one for an attempt and gives it back; there may be
//! fewer than terminals.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use crate::control::contention::Contender;
use crate::target::{Cause, Connector, Failure, Session};
use crate::transactions::{self, Done, Input};

/// How many connections are made side by side before a run.
const AT_A_TIME: usize = 16;

/// The connections of a run.
pub struct Connections {
    connector: Connector,
    permits: Semaphore,
    free: Mutex<Vec<Connection>>,
}

/// One connection, or the place of one that broke.
struct Connection {
    /// Which endpoint it prefers.
    number: usize,
    session: Option<Session>,
}

/// A terminal's turn to use one.
pub struct Turn<'a> {
    connections: &'a Connections,
    _permit: SemaphorePermit<'a>,
}

impl Connections {
    /// So many, none of them made yet.
    pub fn new(connector: Connector, count: usize) -> Connections {
        let free = (0..count).rev().map(|number| Connection { number, session: None }).collect();
        Connections { connector, permits: Semaphore::new(count), free: Mutex::new(free) }
    }

    /// Makes all of them. Fails at the first that cannot be made.
    pub async fn open(&self) -> Result<(), Failure> {
        for connections in self.free.lock().await.chunks_mut(AT_A_TIME) {
            let sessions = connections.iter().map(|connection| self.connector.connect(connection.number));
            let sessions = join_all(sessions).await;
            for (connection, session) in connections.iter_mut().zip(sessions) {
                connection.session = Some(session?);
            }
        }
        Ok(())
    }

    /// Waits until one is free.
    pub async fn turn(&self) -> Turn<'_> {
        let permit = self.permits.acquire().await.expect("the semaphore is never closed");
        Turn { connections: self, _permit: permit }
    }
}

impl Turn<'_> {
    /// Makes the connection if need be, and attempts the transaction, which competes for what
    /// `contender` names from then on. Gives up after `patience`.
    pub async fn attempt(
        self,
        input: &Input,
        contender: &mut Option<Contender>,
        patience: Duration,
    ) -> Result<Done, Failure> {
        let mut connection = self.connections.free.lock().await.pop().expect("there is one for every turn");
        let result = connection.attempt(&self.connections.connector, input, contender, patience).await;
        self.connections.free.lock().await.push(connection);
        result
    }
}

impl Connection {
    async fn attempt(
        &mut self,
        connector: &Connector,
        input: &Input,
        contender: &mut Option<Contender>,
        patience: Duration,
    ) -> Result<Done, Failure> {
        let session = match &mut self.session {
            Some(session) => session,
            none => {
                let connected = connector.connect(self.number).await;
                none.insert(connected.map_err(|failure| Failure { cause: Cause::Unreachable, ..failure })?)
            }
        };
        if let Some(contender) = contender {
            contender.reach();
        }
        let attempted = tokio::time::timeout(patience, transactions::run(session, input)).await;
        let Ok(result) = attempted else {
            let failure = session.timed_out(patience);
            if let Some(session) = self.session.take() {
                connector.abandon(session);
            }
            return Err(failure);
        };
        if let Err(failure) = &result {
            // What is left of the transaction goes; a connection that cannot even do that goes as
            // well.
            let usable = !failure.ends_connection()
                && matches!(tokio::time::timeout(patience, session.rollback()).await, Ok(Ok(())));
            if !usable {
                self.session = None;
            }
        }
        result
    }
}
