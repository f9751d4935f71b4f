//! What some timestamp schemes need besides the verbs of [`crate::timestamp`]: an oracle that
//! shards ask, and vectors that take the place of marks.
//!
//! GTS and VTS implement these verbs. Under DST, under RC and without timestamps each shard stamps
//! and reads by itself, and marks stand beside records; such a scheme keeps every verb as it is
//! here, which does nothing.
//!
//! A shard asks its oracle in batches, from within its passes. A transaction parks a request at its
//! own shard ([`Service::want_stamp`], [`Service::want_snapshot`]), [`Service::outgoing`] sends one
//! message for all requests that have gathered, and the answer releases them.

use std::fmt::Debug;

use plimsoll_types::wire::Wire;
use plimsoll_types::{ShardId, Ticket, Timestamp};

/// What an oracle asks about a coordinator that is gone: whether anything is left of what it had
/// begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inquiry {
    /// The coordinator.
    pub of: ShardId,
    /// The first of its attempts that are not meant.
    pub below: u64,
    /// Whether locks count of transactions that have not been voted on: they may be yet.
    pub locks: bool,
}

/// A timestamp scheme as the service that its oracle renders to a shard, or its vectors do.
/// `Observed` is what coordinators gather under the scheme.
pub trait Service<Observed> {
    /// What travels between a shard and the oracle.
    type Message: Debug + Send + Wire + 'static;

    /// A transaction with this stamp has validated reads on this shard, or dropped its locks on
    /// them. For schemes that keep no marks beside records and yet must order whoever overwrites
    /// them later.
    #[inline]
    fn pinned(&mut self, stamp: Timestamp) {
        let _ = stamp;
    }

    /// The transaction overwrites something on this shard: it is ordered after those that have
    /// [`Service::pinned`] here.
    #[inline]
    fn observe_pinned(&self, observed: &mut Observed) {
        let _ = observed;
    }

    /// Slots have come from a shard where transactions have [`Service::pinned`] so much.
    fn adopt(&mut self, pinned: &Observed) {
        let _ = pinned;
    }

    /// Whether this shard may stamp at present without asking for it.
    #[inline]
    fn ready(&self) -> bool {
        true
    }

    /// A transaction that holds all its locks wants a commit stamp; releases the ticket when it is
    /// there.
    fn want_stamp(&mut self, ticket: Ticket) {
        unreachable!("every stamp is had at once, no need to wait for {ticket}")
    }

    /// The commit stamp that was asked for under this ticket, if it is there.
    fn take_stamp(&mut self, ticket: Ticket) -> Option<Timestamp> {
        unreachable!("every stamp is had at once, no need to wait for {ticket}")
    }

    /// Whether what was asked for under this ticket will not come: the oracle cannot be reached.
    fn lost(&mut self, ticket: Ticket) -> bool {
        let _ = ticket;
        false
    }

    /// The outcome of a transaction that has a stamp: what it had observed if it committed and is
    /// installed everywhere, `None` if it aborted. Only if
    /// [`Scheme::REPORTS`](crate::timestamp::Scheme::REPORTS).
    fn finished(&mut self, stamp: Timestamp, committed: Option<&Observed>) {
        let _ = (stamp, committed);
    }

    /// A read-only transaction waits for a newer snapshot; releases the ticket when there is one.
    fn want_snapshot(&mut self, ticket: Ticket) {
        unreachable!("every snapshot is had at once, no need to wait for {ticket}")
    }

    /// Whether a snapshot is being asked for: it may turn out as old as this shard's oldest.
    fn awaits_snapshot(&self) -> bool {
        false
    }

    /// There is a channel to a shard of another process, perhaps the oracle, in this life, or there
    /// is none any more. None of what was sent there before will be answered; tickets that wait for
    /// it are released if they are [`Service::lost`].
    fn connected(&mut self, peer: ShardId, life: Option<u64>, released: &mut Vec<Ticket>) {
        let _ = (peer, life, released);
    }

    /// What a message asks in which an oracle asks about a coordinator.
    fn inquiry(message: &Self::Message) -> Option<Inquiry> {
        let _ = message;
        None
    }

    /// Whether it is too late to vote for a transaction with this stamp: the oracle was told that
    /// nothing with such a stamp is left here.
    #[inline]
    fn over(&self, stamp: Timestamp) -> bool {
        let _ = stamp;
        false
    }

    /// Answers an [`Inquiry`]: whether anything is left undecided here.
    fn answer(&mut self, from: ShardId, inquiry: &Self::Message, left: bool) {
        let _ = (from, left);
        unreachable!("nothing is inquired, {inquiry:?} is no question")
    }

    /// A message from a shard, if this is the oracle, or from the oracle.
    fn receive(&mut self, from: ShardId, message: &mut Self::Message, released: &mut Vec<Ticket>) {
        let _ = (from, released);
        unreachable!("no messages are sent, {message:?} is not one")
    }

    /// How many outcomes were reported, if this is the oracle: those whose turn has come.
    fn published(&self) -> u64 {
        0
    }

    /// How many stamps are known whose turn has not come: to an oracle those that it has given out
    /// or heard of, to another shard those of its own that it has reported and does not know to be
    /// published.
    fn unpublished(&self) -> u64 {
        0
    }

    /// When the scheme has something to do that nobody asks for.
    fn due(&self) -> Option<u64> {
        None
    }

    /// At the end of a pass: messages to send.
    fn outgoing(&mut self, send: &mut Vec<(ShardId, Self::Message)>) {
        let _ = send;
    }
}
