//! What the names of hosts mean.
//!
//! A name is resolved each time that its node is dialed, because a host may come back with another
//! address. That may take seconds, so it happens on a thread of its own, which the handshake thread
//! does not wait for. Addresses are used for [`FRESH_NS`], which is enough for all pairs of shards
//! of a node, and in turn if there are several.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

use super::{Endpoint, Shared, wake};

/// How long the addresses that a name stands for are used, in nanoseconds.
const FRESH_NS: u64 = 1_000_000_000;

/// The addresses that an endpoint stands for now, at least one. Blocks if it is a name.
pub fn resolve(endpoint: &Endpoint) -> io::Result<Vec<SocketAddr>> {
    let Some((host, port)) = endpoint.named() else { return Ok(endpoint.socket().into_iter().collect()) };
    let failed = |kind, why: String| io::Error::new(kind, format!("the name {host} has no address: {why}"));
    let found = (host, port).to_socket_addrs().map_err(|error| failed(error.kind(), error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    match found.is_empty() {
        true => Err(failed(ErrorKind::NotFound, "nobody knows it".to_owned())),
        false => Ok(found),
    }
}

/// What is known of a node's address.
#[derive(Default)]
pub(super) struct Name {
    asking: bool,
    addresses: Vec<SocketAddr>,
    until_ns: u64,
}

impl Name {
    /// Takes what the name was found to stand for.
    pub(super) fn found(&mut self, addresses: Vec<SocketAddr>, now_ns: u64) {
        *self = Name { asking: false, addresses, until_ns: now_ns + FRESH_NS };
    }

    /// Notes that it was not found.
    pub(super) fn failed(&mut self) {
        *self = Name::default();
    }

    /// Whether it was last found to stand for this address, among others.
    pub(super) fn was(&self, address: SocketAddr) -> bool {
        self.addresses.iter().any(|known| known.ip().to_canonical() == address.ip().to_canonical())
    }

    /// The address for an attempt, if it is known. Otherwise it is looked for, and left to
    /// [`Shared::resolved`].
    pub(super) fn address(
        &mut self,
        shared: &Arc<Shared>,
        node: usize,
        attempt: usize,
        now_ns: u64,
    ) -> io::Result<Option<SocketAddr>> {
        let endpoint = &shared.cluster.nodes[node].address;
        if let Some(socket) = endpoint.socket() {
            return Ok(Some(socket));
        }
        if now_ns < self.until_ns && !self.addresses.is_empty() {
            return Ok(Some(self.addresses[attempt % self.addresses.len()]));
        }
        if !self.asking {
            let (endpoint, shared) = (endpoint.clone(), shared.clone());
            let ask = move || {
                shared.resolved.push((node, resolve(&endpoint)));
                wake(&shared.waker);
            };
            thread::Builder::new().name("resolver".to_owned()).spawn(ask)?;
            self.asking = true;
        }
        Ok(None)
    }
}
