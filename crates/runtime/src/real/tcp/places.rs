//! Who has which place of a cluster's visitors, as one node sees it.
//!
//! A visitor chooses its place itself, so two may choose the same. Of two visitors the one that was there first is
//! believed, because neither knows of the other. So a place belongs to one life as long as this node has any connection to that life, on
//! whichever of its shards: every connection carries a [`Claim`]. A visitor that has lost its connections dials again in
//! the same life and finds its place kept, or free.
//!
//! Lives of a place grow, as those of a node do: who comes with a smaller one than the last is refused, because its
//! transactions would be taken for those of a life that is over. So after a visitor with a clock far in the future its
//! place is of no use until that time, or until the node starts again; there are others.
//!
//! Example. V1 has place 3 at node A, and V2 the same place at node B, because neither has reached the other node yet.
//! V1 dials B and is refused. A visitor that is refused anywhere leaves everywhere (`handshake`, `links`), so A's
//! connections to V1 end. If V2 dials A after that, it is alone and has place 3 at both; if it did before, it was refused
//! as well, and the place is free. Neither A nor B ever had both, not even on different shards.
//!
//! Left out: nodes do not talk about visitors. A visitor that a node has taken for dead, while others have not, can lose
//! its place to another there, and then has to leave; and for as long as a visitor cannot reach some node, another may
//! have its place there. Nobody should begin with anything that matters before all nodes have let it in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use super::hello::Refusal;

/// One place.
#[derive(Default)]
struct Place {
    /// The life of the last visitor that had it, and how many connections to that visitor there are. If there are none
    /// the place is free.
    life: AtomicU64,
    connections: AtomicU32,
}

/// All places.
pub(super) struct Places {
    places: Arc<[Place]>,
}

/// A connection's hold on its visitor's place.
pub(super) struct Claim {
    places: Arc<[Place]>,
    place: usize,
}

impl Places {
    /// So many, all of them free.
    pub(super) fn new(places: usize) -> Places {
        Places { places: (0..places).map(|_| Place::default()).collect() }
    }

    /// Whether a visitor in this life may have a place.
    pub(super) fn check(&self, place: usize, life: u64) -> Result<(), Refusal> {
        let place = &self.places[place];
        let taken = place.connections.load(SeqCst) > 0;
        let last = place.life.load(SeqCst);
        match life {
            _ if life == last => Ok(()),
            _ if taken => Err(Refusal::PlaceTaken),
            _ if life < last => Err(Refusal::Superseded),
            _ => Ok(()),
        }
    }

    /// Gives a place to a visitor in this life, for as long as the claim exists. Called by the thread of handshakes
    /// only, so a place that is found free is given to nobody else.
    pub(super) fn claim(&self, place: usize, life: u64) -> Result<Claim, Refusal> {
        self.check(place, life)?;
        self.places[place].life.store(life, SeqCst);
        self.places[place].connections.fetch_add(1, SeqCst);
        Ok(Claim { places: self.places.clone(), place })
    }
}

impl Drop for Claim {
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
        let places = Places::new(2);
        let claim = |place, life| places.claim(place, life);
        let first = claim(0, 10).expect("it is free");
        let again = claim(0, 10).expect("it is the same visitor");
        for other in [9, 11] {
            assert_eq!(claim(0, other).err(), Some(Refusal::PlaceTaken));
        }
        let elsewhere = claim(1, 9).expect("another place");
        drop(first);
        assert_eq!(claim(0, 11).err(), Some(Refusal::PlaceTaken));
        drop(again);
        assert_eq!(claim(0, 9).err(), Some(Refusal::Superseded));
        drop(claim(0, 10).expect("the same visitor has come back"));
        let second = claim(0, 11).expect("it is free");
        assert_eq!(claim(0, 10).err(), Some(Refusal::PlaceTaken));
        drop((second, elsewhere));
    }
}
