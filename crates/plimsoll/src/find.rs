//! Where a cluster is: a file, or nodes that describe it over HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use plimsoll_engine::{Cluster, ClusterError};

/// Time limit for a node to describe its cluster.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads the file of a cluster, or asks nodes. `place` is a path, or HTTP addresses of nodes with
/// commas between them; one node that answers is enough. Nodes do not tell the secret: a client
/// that finds them by their addresses needs the file that has it.
///
/// ```no_run
/// use plimsoll::{Database, Options};
///
/// let cluster = plimsoll::find("127.0.0.1:8401", None)?;
/// let db = Database::connect(&cluster, Options::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn find(place: &str, secret_file: Option<&Path>) -> Result<Cluster, ClusterError> {
    let addresses: Option<Vec<SocketAddr>> =
        place.split(',').map(|address| address.trim().parse().ok()).collect();
    let cluster = match addresses {
        None => Cluster::read(Path::new(place))?,
        Some(addresses) => asked(place, addresses)?,
    };
    match secret_file {
        Some(path) => cluster.with_secret(path),
        None => Ok(cluster),
    }
}

/// What the first node says that describes its cluster.
fn asked(place: &str, addresses: Vec<SocketAddr>) -> Result<Cluster, ClusterError> {
    let mut last = String::new();
    for address in addresses {
        match description(address).as_deref().map(Cluster::from_description) {
            Ok(Err(ClusterError::Form(error))) => last = format!("it answers something else: {error}"),
            Ok(cluster) => return cluster,
            Err(error) => last = error.to_string(),
        }
    }
    Err(ClusterError::Silent(place.to_owned(), last))
}

fn description(address: SocketAddr) -> Result<String, ureq::Error> {
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
    agent.get(format!("http://{address}/cluster")).call()?.body_mut().read_to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_answers_an_address_that_does_is_asked_for() {
        let nobody = find("127.0.0.1:9", None).unwrap_err().to_string();
        assert!(nobody.contains("`http` address of one that runs"), "{nobody}");
        assert!(!nobody.contains("--"), "a library names no flag: {nobody}");
    }
}
