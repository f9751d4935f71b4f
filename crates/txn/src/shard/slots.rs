//! What a shard knows of moving slots: those that leave it, those that arrive, and the coordinators
//! whose map is out of date. [`crate::moves`] says how slots move.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_types::{SLOTS, ShardId, Slot, Ticket, Timestamp};

use crate::messages::{Common, MoveOutcome, Parcel};
use crate::timestamp::{MAX_OFFSET_NS, Scheme};

/// A set of slots. It is asked once per row.
pub(super) struct SlotSet(Box<[bool]>);

impl SlotSet {
    pub(super) fn new(slots: impl IntoIterator<Item = Slot>) -> SlotSet {
        let mut set = vec![false; SLOTS];
        for slot in slots {
            if let Some(has) = set.get_mut(usize::from(slot.0)) {
                *has = true;
            }
        }
        SlotSet(set.into())
    }

    pub(super) fn has(&self, slot: Option<Slot>) -> bool {
        slot.is_some_and(|slot| self.0[usize::from(slot.0)])
    }
}

/// Slots that leave this shard.
pub(super) struct DepartingSlots<S: Scheme> {
    pub(super) slots: Vec<Slot>,
    pub(super) set: Arc<SlotSet>,
    pub(super) to: ShardId,
    /// The shard that asked for the move.
    pub(super) asker: ShardId,
    /// How far that shard's clock is behind this one's, in nanoseconds; 0 if it is ahead.
    pub(super) behind_ns: u64,
    /// The request that waits for the outcome; `None` after a restart.
    pub(super) ticket: Option<Ticket>,
    /// When the shard gives up if there are still locks, in nanoseconds; set at the first check for
    /// locks.
    pub(super) until: Option<u64>,
    /// When it next checks for locks, and how long it waits after that, in nanoseconds.
    pub(super) look: u64,
    pub(super) wait: u64,
    /// Parcels that were sent and not confirmed; empty before the cut.
    pub(super) sent: Vec<Arc<Parcel<S>>>,
}

/// Slots that move from and to a shard.
pub(crate) struct Moves<S: Scheme> {
    pub(super) leaving: Option<DepartingSlots<S>>,
    /// Outcomes of requests that were waiting.
    pub(super) over: Vec<(Ticket, MoveOutcome)>,
    /// By sender: the parcels that have arrived so far.
    pub(super) arriving: Vec<(ShardId, Vec<Arc<Parcel<S>>>)>,
    /// Senders whose parcels are complete and whose stamps are too far ahead of this shard's clock,
    /// with the largest of these stamps.
    pub(super) early: Vec<(ShardId, Timestamp)>,
    /// Coordinators with an old map, to be told at the end of the pass.
    pub(super) behind: Vec<ShardId>,
    /// Slots in the order in which this shard heard of their moves, and how much of that list each
    /// coordinator was told.
    pub(super) journal: Vec<Slot>,
    pub(super) told: BTreeMap<ShardId, usize>,
    pub(super) outgoing: Vec<(ShardId, Common<S>)>,
    /// How often the map has changed.
    pub(super) changes: u64,
    /// Whether no slot of this shard may leave.
    pub(super) kept: bool,
    pub(super) patience_ns: u64,
}

impl<S: Scheme> Moves<S> {
    pub fn new(patience_ns: u64) -> Moves<S> {
        Moves {
            leaving: None,
            over: Vec::new(),
            arriving: Vec::new(),
            early: Vec::new(),
            behind: Vec::new(),
            journal: Vec::new(),
            told: BTreeMap::new(),
            outgoing: Vec::new(),
            changes: 0,
            kept: false,
            patience_ns,
        }
    }

    /// When the shard must check for locks, or can take over slots, even if no message arrives.
    pub fn due(&self) -> Option<u64> {
        let leaving = self.leaving.as_ref().filter(|leaving| leaving.sent.is_empty());
        let early = self.early.iter().map(|(_, reach)| reach.0.saturating_sub(MAX_OFFSET_NS));
        early.chain(leaving.map(|leaving| leaving.look)).min()
    }

    /// Whether new locks in a slot are refused because it is about to leave.
    pub(super) fn drains(&self, slot: Slot) -> bool {
        self.leaving.as_ref().is_some_and(|leaving| leaving.set.has(Some(slot)))
    }
}
