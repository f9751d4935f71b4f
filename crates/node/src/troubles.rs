//! What keeps a node and its peers apart until somebody changes something: a wrong secret, another
//! description of the cluster, a second process under a number.
//!
//! The runtime knows why one of two processes refuses the other, but not how their descriptions of
//! the cluster differ, because a handshake compares checksums. Nodes tell their descriptions over
//! HTTP, so a thread asks the peer for its own, once each time that the two disagree, and the
//! difference is part of what this node says and logs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use plimsoll_engine::{Cluster, Engine, NodeConfig};
use plimsoll_runtime::real::{PeerRefusal, Refusal};

/// Pause before a peer that has not told its description is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// How the descriptions of peers differ from that of this node.
#[derive(Default)]
pub struct Troubles {
    /// By node: the difference, `None` as long as it is not known. Never locked for long.
    differences: Arc<RwLock<BTreeMap<u16, Option<String>>>>,
}

impl Troubles {
    /// Asks peers that were given another description for theirs.
    pub fn look(&self, engine: &Engine, cluster: &Cluster) {
        for (node, refusal) in refusals(engine, cluster) {
            let differs = matches!(refusal.refusal, Refusal::Cluster | Refusal::Topology);
            if differs && node.http.is_some() && !self.is_asked(node.id) {
                self.ask(cluster.clone(), node.clone());
            }
        }
        let apart: Vec<u16> = refusals(engine, cluster).map(|(node, _)| node.id).collect();
        let mut known = self.differences.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|node, _| apart.contains(node));
    }

    /// Whether a peer was asked; notes that it is now.
    fn is_asked(&self, node: u16) -> bool {
        let mut known = self.differences.write().unwrap_or_else(PoisonError::into_inner);
        match known.contains_key(&node) {
            true => true,
            false => {
                known.insert(node, None);
                false
            }
        }
    }

    /// Asks a peer, on a thread of its own: it may take its time.
    fn ask(&self, cluster: Cluster, node: NodeConfig) {
        let differences = self.differences.clone();
        let ask = move || {
            let Some(difference) = plimsoll::difference_from(&cluster, &node) else {
                // It may not listen yet.
                std::thread::sleep(AGAIN);
                differences.write().unwrap_or_else(PoisonError::into_inner).remove(&node.id);
                return;
            };
            tracing::warn!("{node} was given another description of the cluster: {difference}");
            let mut known = differences.write().unwrap_or_else(PoisonError::into_inner);
            known.insert(node.id, Some(difference));
        };
        if let Err(error) = std::thread::Builder::new().name("difference".to_owned()).spawn(ask) {
            tracing::warn!("no thread can be started: {error}");
        }
    }

    /// A sentence for each peer that this node is kept apart from.
    pub fn sentences(&self, engine: &Engine, cluster: &Cluster) -> Vec<String> {
        let known = self.differences.read().unwrap_or_else(PoisonError::into_inner);
        let sentence = |(node, PeerRefusal { refusal, by_peer }): (&NodeConfig, PeerRefusal)| {
            let who = match by_peer {
                true => format!("{node} refuses this node"),
                false => format!("this node refuses {node}"),
            };
            let more = match (known.get(&node.id), refusal) {
                (Some(Some(difference)), _) => format!("; {difference}"),
                (_, Refusal::Cluster | Refusal::Topology) => {
                    "; compare what both answer at /cluster".to_owned()
                }
                (_, Refusal::Secret) => "; give both the same secret_file".to_owned(),
                (_, Refusal::Version) => "; run the same version of plimsoll on both".to_owned(),
                _ => String::new(),
            };
            format!("{who}: {refusal}{more}")
        };
        refusals(engine, cluster).map(sentence).collect()
    }
}

/// The peers that are not connected for a lasting reason.
fn refusals<'a>(
    engine: &Engine,
    cluster: &'a Cluster,
) -> impl Iterator<Item = (&'a NodeConfig, PeerRefusal)> + use<'a> {
    let traffic = engine.runtime().traffic();
    cluster.processes().filter_map(move |node| {
        let peer = traffic.iter().find(|peer| peer.node == Some(node.id))?;
        Some((node, peer.refusal?))
    })
}
