//! Sessions with clients that connect to a node.

use std::sync::Arc;

use plimsoll_runtime::{READ_MAX, Stream, Task};
use plimsoll_sql::session::{self, Closed, Places};

use crate::Here;

struct Connection(Stream);

impl session::Stream for Connection {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        self.0.read(buffer, READ_MAX).await.map_err(|_| Closed)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.0.write(bytes).await.map_err(|_| Closed)
    }
}

/// A session with the client behind a stream, to its end. A task, and not a future of its own type,
/// so that all that a session runs is compiled in this crate and optimized as such.
pub fn serve(stream: Stream, here: Here, places: Arc<Places>) -> Task {
    let mut connection = Connection(stream);
    Box::pin(async move {
        session::serve(&mut connection, &here, &places).await;
        connection.0.close().await;
    })
}
