//! The clients' places of a cluster, as one node sees them: which client has which.
//!
//! A client chooses its place itself, so two may choose the same. The first is believed, because
//! neither knows of the other. A place belongs to one life of a client as long as this node has any
//! connection to that life, on any shard: every connection carries a [`PlaceLease`]. A client that
//! has lost its connections dials again in the same life, and its place is still its own or free.
//!
//! Lives of a place grow, as those of a node do. A client with a smaller life than the last one is
//! refused, because its transactions would be taken for those of a life that is over. So a client
//! with a clock far in the future makes its place useless until that time, or until the node starts
//! again; other places remain.
//!
//! Example. Client V1 has place 3 at node A, and V2 has place 3 at node B, because neither has
//! reached the other node yet. V1 dials B and is refused. A client that is refused by one node
//! leaves all of them (`handshake`, `links`), so A's connections to V1 end. If V2 dials A after
//! that, it is alone and has place 3 at both nodes. If V2 dialed A before, it was refused as well,
//! and the place is free. Neither node ever had both, not even on different shards.
//!
//! A node that has too few file descriptors for all places has fewer clients at a time, in any of
//! the places. To further ones it says that their places are taken.
//!
//! Left out: nodes do not talk about clients. If one node takes a client for dead and others do
//! not, another client may get its place there, and then the first has to leave. As long as a
//! client cannot reach some node, another may have its place there. So a client should not begin
//! its work before all nodes have let it in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use super::hello::Refusal;

/// One place.
#[derive(Default)]
struct Place {
    /// The life of the last client that had the place.
    life: AtomicU64,
    /// Connections to that client; 0 if the place is free.
    connections: AtomicU32,
}

/// All places.
pub(super) struct Places {
    places: Arc<[Place]>,
    /// Clients that this node can have connected at a time.
    most: usize,
}

/// A connection's hold on its client's place.
pub(super) struct PlaceLease {
    places: Arc<[Place]>,
    place: usize,
}

impl Places {
    /// All places, free, of which so many can be taken at a time.
    pub(super) fn new(places: usize, most: usize) -> Places {
        Places { places: (0..places).map(|_| Place::default()).collect(), most }
    }

    /// Whether a client in this life may have the place.
    pub(super) fn check(&self, place: usize, life: u64) -> Result<(), Refusal> {
        let place = &self.places[place];
        let taken = place.connections.load(SeqCst) > 0;
        let last = place.life.load(SeqCst);
        let others = || self.places.iter().filter(|place| place.connections.load(SeqCst) > 0).count();
        match life {
            _ if !taken && others() >= self.most => Err(Refusal::PlaceTaken),
            _ if life == last => Ok(()),
            _ if taken => Err(Refusal::PlaceTaken),
            _ if life < last => Err(Refusal::Superseded),
            _ => Ok(()),
        }
    }

    /// Gives the place to a client in this life, until the claim is dropped. Only the handshake
    /// thread calls this, so two clients cannot both find the place free.
    pub(super) fn claim(&self, place: usize, life: u64) -> Result<PlaceLease, Refusal> {
        self.check(place, life)?;
        self.places[place].life.store(life, SeqCst);
        self.places[place].connections.fetch_add(1, SeqCst);
        Ok(PlaceLease { places: self.places.clone(), place })
    }
}

impl Drop for PlaceLease {
    fn drop(&mut self) {
        let before = self.places[self.place].connections.fetch_sub(1, SeqCst);
        assert!(before > 0, "a claim is given up once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_belongs_to_one_life_until_its_last_claim_is_given_up() {
        let places = Places::new(2, 2);
        let claim = |place, life| places.claim(place, life);
        let first = claim(0, 10).expect("it is free");
        let again = claim(0, 10).expect("it is the same client");
        for other in [9, 11] {
            assert_eq!(claim(0, other).err(), Some(Refusal::PlaceTaken));
        }
        let elsewhere = claim(1, 9).expect("another place");
        drop(first);
        assert_eq!(claim(0, 11).err(), Some(Refusal::PlaceTaken));
        drop(again);
        assert_eq!(claim(0, 9).err(), Some(Refusal::Superseded));
        drop(claim(0, 10).expect("the same client has come back"));
        let second = claim(0, 11).expect("it is free");
        assert_eq!(claim(0, 10).err(), Some(Refusal::PlaceTaken));
        drop((second, elsewhere));
    }

    #[test]
    fn a_node_with_few_descriptors_has_fewer_clients_in_any_places() {
        let places = Places::new(4, 2);
        let (first, second) = (places.claim(3, 1).expect("free"), places.claim(1, 1).expect("free"));
        assert_eq!(places.claim(0, 1).err(), Some(Refusal::PlaceTaken));
        let again = places.claim(1, 1).expect("a client that is there connects to another shard");
        drop((second, again));
        drop((first, places.claim(0, 1).expect("another has left")));
    }
}
