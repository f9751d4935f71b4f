//! What a node answers over HTTP, to whoever can reach the address: nothing here changes anything.
//!
//! | path | answer |
//! |---|---|
//! | `/health` | 200 as long as the shards make passes |
//! | `/ready` | 200 if connected to all other nodes, otherwise 503 |
//! | `/metrics` | in the text format of Prometheus |
//! | `/status` | all of it as JSON |
//! | `/cluster` | what the cluster is, without its secret, as JSON: all that a client needs to find it |

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::state::{State, metrics};

/// A shard that does not answer for so long is not well.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks at the node. Blocks until every shard has said how it is.
pub type Look = Arc<dyn Fn() -> State + Send + Sync>;

/// Serves until the process ends, on a thread of its own. The address is taken when this returns.
pub fn serve(address: SocketAddr, look: Look, cluster: String) -> std::io::Result<()> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let served = match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => axum::serve(listener, router(look, cluster)).await,
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                tracing::error!("health, metrics and status are no longer served: {error}");
            }
        });
    })?;
    Ok(())
}

fn router(look: Look, cluster: String) -> Router {
    let described = ([(CONTENT_TYPE, "application/json")], cluster);
    Router::new()
        .route(
            "/health",
            get(async |look| answer("/health", look, |_| (StatusCode::OK, "the shards make passes\n")).await),
        )
        .route("/ready", get(async |look| answer("/ready", look, ready).await))
        .route("/metrics", get(async |look| answer("/metrics", look, exposed).await))
        .route("/cluster", get(async move || described.clone()))
        .route("/status", get(async |look| answer("/status", look, axum::Json).await))
        .with_state(look)
}

fn ready(state: State) -> (StatusCode, &'static str) {
    match state.ready {
        true => (StatusCode::OK, "connected to all other nodes\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not connected to all other nodes: see /status\n"),
    }
}

fn exposed(state: State) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], metrics(&state))
}

async fn answer<R: IntoResponse>(
    path: &str,
    Extract(look): Extract<Look>,
    of: impl FnOnce(State) -> R,
) -> Response {
    let begun = Instant::now();
    let looked = tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(move || look())).await;
    tracing::debug!(path, looked_for = ?begun.elapsed(), "asked over HTTP");
    match looked {
        Ok(Ok(state)) => of(state).into_response(),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "a shard does not answer\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::thread;

    use super::*;

    #[test]
    fn a_node_whose_shards_do_not_answer_is_not_well_until_they_do() {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.expect("a port is free");
        let stuck = Arc::new(AtomicBool::new(false));
        let look = {
            let stuck = stuck.clone();
            move || {
                while stuck.load(SeqCst) {
                    thread::sleep(Duration::from_millis(10));
                }
                State::default()
            }
        };
        serve(address, Arc::new(look), "{}".to_owned()).expect("the address can be taken");
        let get = |path: &str| {
            let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
            let answer = agent.get(format!("http://{address}{path}")).call();
            let mut answer = answer.expect("it answers");
            let text = answer.body_mut().read_to_string().expect("with a text");
            (answer.status().as_u16(), text)
        };
        let well = (200, "the shards make passes\n".to_owned());
        assert_eq!(get("/health"), well);
        assert_eq!(get("/ready").0, 503, "it is connected to nobody");
        stuck.store(true, SeqCst);
        assert_eq!(get("/health"), (500, "a shard does not answer\n".to_owned()));
        assert_eq!(get("/cluster"), (200, "{}".to_owned()), "what needs no shard is answered");
        stuck.store(false, SeqCst);
        assert_eq!(get("/health"), well);
    }
}
