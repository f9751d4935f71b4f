//! The lease of a command that works on the tables, so that no other command does at the same time.
//!
//! Loading, checking, testing and dropping want the tables for themselves; runs share them with
//! other runs, since several clients may drive one. A command that works holds a *lease*, a row of
//! the record: one name for the command that is alone, and a name of its own for each run. Of two
//! commands that want to be alone, one inserts that row. A run inserts its row and then looks for
//! the other one, and a command that is alone looks for runs after it has inserted its row, so at
//! least one of the two sees the other.
//!
//! A holder changes its row once a second. A command that finds a row looks at it for a while: one
//! that changes belongs to a holder that lives, and the command gives up; one that stays as it is
//! for `DEAD_AFTER` belongs to a holder that was killed, and is deleted. Each measures that by
//! its own clock, so no two clocks are compared, and it works alike on every database here, over
//! all its nodes. Locks of sessions would tell of a death sooner, but half of these databases do
//! not have them, or have them for each node by itself.
//!
//! A holder that stood still for longer has lost its lease without knowing. What a load writes is
//! therefore guarded a second time, by `dike_unit` ([`super`]). Other holders would merely find
//! tables missing.
//!
//! A command that may not write holds no lease, such as a check by a role that only reads.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::LoadError;
use super::record::{Record, Tables, draw};
use crate::run::{iso_8601, unix_seconds};
use crate::target::{Cause, Connector, Failure, Session, ddl};

/// How often a holder changes its row.
const BEAT: Duration = Duration::from_secs(1);
/// How often a command that waits looks at the rows.
const LOOK: Duration = Duration::from_millis(200);
/// How long a command waits for a holder that lives.
const PATIENCE: Duration = Duration::from_secs(6);
/// Time without a change of its row after which a holder is taken for dead.
const DEAD_AFTER: Duration = Duration::from_secs(10);
/// How long [`Lease::release`] waits for the row to be deleted.
const FAREWELL: Duration = Duration::from_secs(2);

/// The name of the row of a command that is alone; those of runs begin like it.
const ALONE: &str = "lease";

/// Codes that say that this user, or this server, does not write.
const READ_ONLY: [&str; 6] = ["42501", "25006", "1142", "1290", "1792", "1836"];

/// Which commands may work beside a holder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    Runs,
}

/// The right to work on the tables. [`Lease::release`] gives it back. A lease that is dropped
/// leaves its row behind, and other commands wait for `DEAD_AFTER` until they delete it.
pub struct Lease {
    /// The task that changes the row and deletes it when it is told to.
    keeper: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// A row as its holder knows it.
struct Row {
    name: String,
    token: String,
    /// What people are told of the holder.
    who: String,
    beat: u64,
}

impl Row {
    fn new(beside: Beside, command: &str) -> Result<Row, Failure> {
        let token = draw()?;
        let name = match beside {
            Beside::Nobody => ALONE.to_owned(),
            Beside::Runs => format!("{ALONE} {token}"),
        };
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
        let host: String = host.chars().filter(plain).take(64).collect();
        let since = iso_8601(unix_seconds());
        let who = format!("`{command}` of {host}, process {}, since {since}", std::process::id());
        Ok(Row { name, token, who, beat: 0 })
    }

    fn value(&self) -> String {
        format!("{} {} {}", self.token, self.beat, self.who)
    }

    fn insert(&self) -> String {
        let (name, value) = (&self.name, self.value());
        format!("INSERT INTO {} (p_name, p_value) VALUES ('{name}', '{value}')", ddl::RECORD)
    }

    fn update(&self) -> String {
        format!("UPDATE {} SET p_value = '{}' {}", ddl::RECORD, self.value(), self.is_ours())
    }

    fn delete(&self) -> String {
        format!("DELETE FROM {} {}", ddl::RECORD, self.is_ours())
    }

    fn is_ours(&self) -> String {
        format!("WHERE p_name = '{}' AND p_value LIKE '{} %'", self.name, self.token)
    }
}

/// What people are told of the holder of a row.
fn who(value: &str) -> &str {
    value.splitn(3, ' ').last().unwrap_or(value)
}

/// A row of another holder, as it was seen.
struct Seen {
    value: String,
    /// When it was first seen to have this value.
    since: Instant,
    /// Whether it had another one before.
    changed: bool,
}

impl Lease {
    /// For a command that wants to be alone with the tables.
    pub async fn alone(connector: &Connector, command: &str) -> Result<Lease, LoadError> {
        Lease::acquire(connector, command, Beside::Nobody).await
    }

    /// For a run.
    pub async fn beside_runs(connector: &Connector, command: &str) -> Result<Lease, LoadError> {
        Lease::acquire(connector, command, Beside::Runs).await
    }

    async fn acquire(connector: &Connector, command: &str, beside: Beside) -> Result<Lease, LoadError> {
        let connector = connector.upkeep();
        let mut session = connector.connect(0).await?;
        Tables::look(&connector, &mut session).await?.refuse_empty()?;
        let row = Row::new(beside, command)?;
        match Lease::wait(connector.clone(), session, row, beside).await {
            Err(LoadError::Failed(failure)) => {
                // The record may have been dropped by the command that was waited for.
                let mut session = connector.connect(0).await?;
                Tables::look(&connector, &mut session).await?.refuse_empty()?;
                Err(failure.into())
            }
            result => result,
        }
    }

    async fn wait(
        connector: Connector,
        mut session: Session,
        mut row: Row,
        beside: Beside,
    ) -> Result<Lease, LoadError> {
        let begun = Instant::now();
        let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
        let mut held = false;
        loop {
            if held {
                // A long wait must not look like death.
                row.beat += 1;
                held = again(&mut session, &row.update()).await? == 1;
            } else {
                held = match session.change(&row.insert()).await {
                    Ok(_) => true,
                    Err(failure) if READ_ONLY.contains(&failure.code.as_str()) => {
                        return Ok(Lease { keeper: None });
                    }
                    Err(failure) if failure.cause == Cause::Constraint || failure.cause.is_conflict() => {
                        false
                    }
                    Err(failure) => return Err(failure.into()),
                };
            }
            let others = others(&mut session, &row, beside).await?;
            if held && others.is_empty() {
                return Ok(Lease::keep(connector, session, row));
            }
            if held && beside == Beside::Runs {
                // A command that wants to be alone must not wait for a run that waits for it.
                again(&mut session, &row.delete()).await?;
                held = false;
            }
            seen.retain(|name, _| others.iter().any(|(other, _)| other == name));
            for (name, value) in others {
                match seen.get_mut(&name) {
                    Some(seen) if seen.value == value => {
                        if seen.since.elapsed() >= DEAD_AFTER {
                            let delete = format!(
                                "DELETE FROM {} WHERE p_name = '{name}' AND p_value = '{value}'",
                                ddl::RECORD
                            );
                            again(&mut session, &delete).await?;
                        }
                    }
                    known => {
                        let changed = known.is_some();
                        seen.insert(name, Seen { value, since: Instant::now(), changed });
                    }
                }
            }
            let lives = |seen: &&Seen| seen.changed && seen.since.elapsed() < 3 * BEAT;
            if begun.elapsed() >= PATIENCE
                && let Some(other) = seen.values().find(lives)
            {
                let busy = LoadError::Busy(who(&other.value).to_owned());
                if held {
                    again(&mut session, &row.delete()).await?;
                }
                return Err(busy);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn keep(connector: Connector, session: Session, row: Row) -> Lease {
        let (release, released) = oneshot::channel();
        Lease { keeper: Some((release, tokio::spawn(keep(connector, session, row, released)))) }
    }

    /// Gives it back. A database that does not answer within `FAREWELL` is not waited for: other
    /// commands will find that nothing changes the row.
    pub async fn release(mut self) {
        if let Some((release, mut keeper)) = self.keeper.take() {
            let _ = release.send(());
            if tokio::time::timeout(FAREWELL, &mut keeper).await.is_err() {
                keeper.abort();
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((_, keeper)) = &self.keeper {
            keeper.abort();
        }
    }
}

/// Changes a row until it is lost or released. An outage of the database is no reason to stop.
async fn keep(connector: Connector, session: Session, mut row: Row, mut released: oneshot::Receiver<()>) {
    let mut session = Some(session);
    loop {
        let over = tokio::time::timeout(BEAT, &mut released).await.is_ok();
        row.beat += 1;
        let statement = if over { row.delete() } else { row.update() };
        let mut connected = match session.take() {
            Some(session) => session,
            None => match connector.connect(0).await {
                Ok(session) => session,
                Err(_) if over => return,
                Err(_) => continue,
            },
        };
        let answer = tokio::time::timeout(DEAD_AFTER, again(&mut connected, &statement)).await;
        match answer {
            _ if over => return,
            // Another command has taken this one for dead.
            Ok(Ok(0)) => return,
            Ok(Ok(_)) => session = Some(connected),
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// The rows of holders that must not be there.
async fn others(session: &mut Session, row: &Row, beside: Beside) -> Result<Vec<(String, String)>, Failure> {
    let runs = format!("{ALONE} ");
    let is_other = |(name, value): &(String, String)| match name.as_str() {
        ALONE => !value.starts_with(&row.token),
        name => beside == Beside::Nobody && name.starts_with(&runs),
    };
    Ok(Record::read(session).await?.rows().filter(is_other).collect())
}

/// Makes a change, again while others are in its way.
async fn again(session: &mut Session, statement: &str) -> Result<u64, Failure> {
    loop {
        match session.change(statement).await {
            Err(failure) if failure.cause.is_conflict() => tokio::time::sleep(LOOK).await,
            result => return result,
        }
    }
}
