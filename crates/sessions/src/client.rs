//! Sessions with clients that connect to a node.

use std::sync::Arc;

use plimsoll_runtime::{READ_MAX, Stream, Task};
use plimsoll_sql::session::{self, Closed, Places};

use crate::Here;

/// A stream until it is closed.
struct Connection(Option<Stream>);

impl session::Stream for Connection {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        let stream = self.0.as_mut().ok_or(Closed)?;
        stream.read(buffer, READ_MAX).await.map_err(|_| Closed)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let stream = self.0.as_mut().ok_or(Closed)?;
        stream.write(bytes).await.map_err(|_| Closed)
    }

    async fn close(&mut self) {
        if let Some(stream) = self.0.take() {
            stream.close().await;
        }
    }
}

/// A session with the client behind a stream, to its end. A task, and not a future of its own type,
/// so that all that a session runs is compiled in this crate and optimized as such.
pub fn serve(stream: Stream, here: Here, places: Arc<Places>) -> Task {
    let mut connection = Connection(Some(stream));
    Box::pin(async move {
        session::serve(&mut connection, &here, &places).await;
        session::Stream::close(&mut connection).await;
    })
}
