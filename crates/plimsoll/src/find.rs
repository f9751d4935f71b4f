//! Where a cluster is: a file, or nodes that describe it over HTTP.

use std::path::Path;
use std::time::Duration;

use plimsoll_engine::{Cluster, ClusterError, NodeConfig, difference};
use plimsoll_runtime::real::Endpoint;

/// Time limit for a node to describe its cluster.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads the file of a cluster, or asks nodes. `place` is a path, or HTTP addresses of nodes with
/// commas between them, HOST:PORT; one node that answers is enough. Nodes do not tell the secret: a
/// client that finds them by their addresses needs the file that has it.
///
/// ```no_run
/// use plimsoll::{Database, Options};
///
/// let cluster = plimsoll::find("127.0.0.1:8401", None)?;
/// let db = Database::connect(&cluster, Options::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn find(place: &str, secret_file: Option<&Path>) -> Result<Cluster, ClusterError> {
    let cluster = match addresses(place) {
        None => Cluster::read(Path::new(place))?,
        Some(addresses) => asked(place, addresses)?,
    };
    match secret_file {
        Some(path) => cluster.with_secret(path),
        None => Ok(cluster),
    }
}

/// The addresses that a place consists of, if it is no path. A file whose name looks like the name
/// of a host is a file.
pub fn addresses(place: &str) -> Option<Vec<Endpoint>> {
    let all = place.split(',').map(|address| address.trim().parse().ok());
    let all: Vec<Endpoint> = all.collect::<Option<_>>()?;
    let named = all.iter().any(|address| address.named().is_some());
    (!(named && Path::new(place).exists())).then_some(all)
}

/// How the description that a node has of its cluster differs from this one, if it has an HTTP
/// address, answers there, and they differ. Blocks until it answers, two seconds at most.
pub fn difference_from(cluster: &Cluster, node: &NodeConfig) -> Option<String> {
    let text = description(node.http.as_ref()?).ok()?;
    difference(cluster, &Cluster::from_description(&text).ok()?)
}

/// [`difference_from`] the first node that has another description, with the name of that node.
pub(crate) fn differs(cluster: &Cluster) -> Option<String> {
    cluster.processes().find_map(|node| {
        let difference = difference_from(cluster, node)?;
        Some(format!("{node} was given another description of the cluster: {difference}"))
    })
}

/// What the first node says that describes its cluster.
fn asked(place: &str, addresses: Vec<Endpoint>) -> Result<Cluster, ClusterError> {
    let mut last = String::new();
    for address in addresses {
        match description(&address).as_deref().map(Cluster::from_description) {
            Ok(Err(ClusterError::Form(error))) => last = format!("it answers something else: {error}"),
            Ok(cluster) => return cluster,
            Err(error) => last = error.to_string(),
        }
    }
    Err(ClusterError::Silent(place.to_owned(), last))
}

fn description(address: &Endpoint) -> Result<String, ureq::Error> {
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

    #[test]
    fn a_place_is_addresses_if_all_of_it_is_and_a_path_otherwise() {
        for place in ["127.0.0.1:8401", "localhost:8401", "[::1]:8401, db1.example:8401"] {
            assert!(addresses(place).is_some(), "{place}");
        }
        for place in ["bank.toml", "./localhost:8401", "localhost", "127.0.0.1:8401,bank.toml", "C:/x"] {
            assert!(addresses(place).is_none(), "{place}");
        }
        let named = find("nowhere.invalid:8401", None).unwrap_err().to_string();
        assert!(named.contains("no node describes its cluster at nowhere.invalid:8401"), "{named}");
    }
}
