//! What precedes the first statement: encryption is declined, a request to cancel is passed on, a
//! session is begun.
//!
//! Whoever connects is trusted and is who it says to be. The settings that it names have to be
//! valid, as in PostgreSQL: an unknown one ends the connection.

use std::sync::Arc;

use super::conversation::Session;
use super::settings::Settings;
use super::{Closed, Line, Places, Stream, World, cancel};
use crate::wire::backend::{self, Status};
use crate::wire::startup::{self, Start, Startup};
use crate::{Severity, SqlError, SqlState};

/// Bytes of a name at most; what is longer is cut.
const NAME_BYTES_MAX: usize = 63;

/// A session that has been told that it may begin; none if the client did not want one or was
/// refused.
pub(super) async fn login<'a, S: Stream, W: World>(
    line: &mut Line<'_, S>,
    arrived: &mut Vec<u8>,
    world: &'a W,
    places: &Arc<Places>,
) -> Result<Option<Session<'a, W>>, Closed> {
    match admit(line, arrived, world, places).await? {
        Ok(session) => Ok(session),
        Err(error) => {
            // Whatever refuses a session ends it.
            backend::error(&mut line.out, &SqlError { severity: Severity::Fatal, ..error });
            line.flush().await?;
            Ok(None)
        }
    }
}

async fn admit<'a, S: Stream, W: World>(
    line: &mut Line<'_, S>,
    arrived: &mut Vec<u8>,
    world: &'a W,
    places: &Arc<Places>,
) -> Result<Result<Option<Session<'a, W>>, SqlError>, Closed> {
    let mut asked = [false; 2];
    loop {
        let (request, bytes) = match startup::next(arrived) {
            Err(error) => return Ok(Err(error)),
            Ok(Some(request)) => request,
            Ok(None) => {
                line.read(arrived).await?;
                continue;
            }
        };
        let [tls, gss] = &mut asked;
        let asked = match request {
            Startup::Tls => tls,
            Startup::Gss => gss,
            Startup::Cancel { pid, secret } => {
                places.cancel(pid, secret);
                return Ok(Ok(None));
            }
            Startup::Start(start) => {
                let begun = begin(&start, &mut line.out, world, places);
                arrived.drain(..bytes);
                line.due = true;
                return Ok(begun.map(Some));
            }
        };
        if std::mem::replace(asked, true) {
            let error = "a client may ask for encryption once";
            return Ok(Err(SqlError::fatal(SqlState::PROTOCOL_VIOLATION, error)));
        }
        arrived.drain(..bytes);
        line.out.push(b'N');
        line.flush().await?;
    }
}

/// Begins a session: its settings, its place, and what the client is told of both.
fn begin<'a, W: World>(
    start: &Start<'_>,
    out: &mut Vec<u8>,
    world: &'a W,
    places: &Arc<Places>,
) -> Result<Session<'a, W>, SqlError> {
    if start.newer || !start.unknown.is_empty() {
        backend::negotiate(out, &start.unknown);
    }
    let value_of = |wanted: &str| {
        let found = start.parameters.iter().rev().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| *value).filter(|value| !value.is_empty())
    };
    let user = cut(value_of("user").ok_or_else(|| {
        let error = "no PostgreSQL user name specified in startup packet";
        SqlError::fatal(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, error)
    })?);
    let mut settings = Settings::new(user, cut(value_of("database").unwrap_or(user)));
    if let Some(options) = value_of("options") {
        for (name, value) in startup::options(options)? {
            settings.begin_with(&name, &value)?;
        }
    }
    for (name, value) in &start.parameters {
        match *name {
            "user" | "database" | "options" => {}
            "replication" => replication(value)?,
            name => settings.begin_with(name, value)?,
        }
    }
    let told = if start.minor >= 2 { cancel::SECRET_BYTES } else { cancel::SECRET_BYTES_OLD };
    let place = places
        .take(told, || world.random())
        .ok_or_else(|| SqlError::fatal(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already"))?;
    backend::authentication_ok(out);
    settings.report(|name, value| backend::parameter_status(out, name, value));
    backend::key(out, place.pid(), &place.secret());
    backend::ready(out, Status::Idle);
    let mut session = Session::new(world, place, settings);
    session.show_begin();
    Ok(session)
}

/// A name that is longer than names are is cut where a character begins.
fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or(name)
}

fn replication(value: &str) -> Result<(), SqlError> {
    match value {
        "false" | "off" | "no" | "0" => Ok(()),
        _ => Err(SqlError::fatal(SqlState::FEATURE_NOT_SUPPORTED, "replication is not supported")),
    }
}
