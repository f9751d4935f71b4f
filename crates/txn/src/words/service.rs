//! The verbs that some timestamp schemes need besides those of [`crate::timestamp`]: an oracle that
//! shards ask, and vectors in place of marks.
//!
//! GTS and VTS implement these verbs. Under DST, under RC and without timestamps each shard stamps
//! and reads by itself, and marks stand beside records; such a scheme keeps the default verbs,
//! which do nothing.
//!
//! A shard asks its oracle in batches, from within its passes. A transaction parks a request at its
//! own shard ([`Service::want_stamp`], [`Service::want_snapshot`]), [`Service::outgoing`] sends one
//! message for all requests that have gathered, and the answer releases them.
//!
//! What a scheme knows and a process may not forget is in the shard's log, if shards log. Before the
//! messages of a pass leave, the log has the scheme's [`Service::news`]; an image has all of it
//! ([`Service::kept`]); and a shard that comes back gives it to the scheme again
//! ([`Service::restore`]).

use std::fmt::Debug;

use plimsoll_types::wire::{Malformed, Wire};
use plimsoll_types::{ShardId, Ticket, Timestamp};

/// What the log of a shard has for the scheme.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    /// GTS, on the oracle: numbers up to this one may have been given out.
    Reserved(u64),
    /// VTS, on the oracle: of each slot, stamps up to this one may have been claimed.
    Claimed(Vec<Timestamp>),
    /// VTS: of these slots, the latest stamps that have validated reads or installed versions here.
    Pinned(Vec<Timestamp>),
    /// VTS: of these slots, the last stamps that it is too late to vote for here.
    Over(Vec<Timestamp>),
}

plimsoll_types::wire!(
    enum Kept {
        Reserved(to) = 1,
        Claimed(stamps) = 2,
        Pinned(stamps) = 3,
        Over(stamps) = 4,
    }
);

/// An oracle's question about a coordinator that is gone: whether any of its attempts is undecided
/// here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inquiry {
    /// The coordinator.
    pub of: ShardId,
    /// The question is about attempts below this number.
    pub below: u64,
    /// Whether locks of transactions without a vote count: there may still be a vote on them.
    pub locks: bool,
}

/// What an oracle, or vectors, do for a shard under a timestamp scheme. `Observed` is what
/// coordinators collect under the scheme.
pub trait Service<Observed> {
    /// The messages between a shard and the oracle.
    type Message: Clone + Debug + Send + Wire + 'static;

    /// A transaction with this stamp has validated reads on this shard, or dropped its locks on
    /// them. For schemes that keep no marks beside records, but must order later writers of these
    /// records after it.
    #[inline]
    fn pinned(&mut self, stamp: Timestamp) {
        let _ = stamp;
    }

    /// The transaction overwrites a record on this shard: it is ordered after all transactions that
    /// have [`Service::pinned`] here.
    #[inline]
    fn observe_pinned(&self, observed: &mut Observed) {
        let _ = observed;
    }

    /// Slots have come from another shard; `pinned` covers all transactions that have
    /// [`Service::pinned`] there.
    fn adopt(&mut self, pinned: &Observed) {
        let _ = pinned;
    }

    /// Whether this shard may draw a stamp now without asking for it.
    #[inline]
    fn ready(&self) -> bool {
        true
    }

    /// A transaction that holds all its locks asks for a commit stamp; the ticket is released when
    /// the stamp is there.
    fn want_stamp(&mut self, ticket: Ticket) {
        unreachable!("every stamp is had at once, no need to wait for {ticket}")
    }

    /// The commit stamp asked for under this ticket, if it is there.
    fn take_stamp(&mut self, ticket: Ticket) -> Option<Timestamp> {
        unreachable!("every stamp is had at once, no need to wait for {ticket}")
    }

    /// Whether the answer for this ticket will never come, because the oracle cannot be reached.
    fn lost(&mut self, ticket: Ticket) -> bool {
        let _ = ticket;
        false
    }

    /// The outcome of a transaction that has a stamp: what it had observed if it committed and is
    /// installed everywhere, `None` if it aborted. Call only if
    /// [`Scheme::REPORTS`](crate::timestamp::Scheme::REPORTS).
    fn finished(&mut self, stamp: Timestamp, committed: Option<&Observed>) {
        let _ = (stamp, committed);
    }

    /// A read-only transaction waits for a newer snapshot; the ticket is released when there is
    /// one.
    fn want_snapshot(&mut self, ticket: Ticket) {
        unreachable!("every snapshot is had at once, no need to wait for {ticket}")
    }

    /// Whether this shard is waiting for a snapshot, which may be as old as the shard's oldest.
    fn awaits_snapshot(&self) -> bool {
        false
    }

    /// The channel to a shard of another process, perhaps the oracle, was connected, in this life,
    /// or was reset (`None`). Messages sent there before will not be answered; tickets that wait
    /// for the answers are released if they are [`Service::lost`].
    fn connected(&mut self, peer: ShardId, life: Option<u64>, released: &mut Vec<Ticket>) {
        let _ = (peer, life, released);
    }

    /// The question in a message, if the oracle asks about a coordinator.
    fn inquiry(message: &Self::Message) -> Option<Inquiry> {
        let _ = message;
        None
    }

    /// Whether it is too late to vote for a transaction with this stamp: the oracle was told that
    /// no such transaction is undecided here.
    #[inline]
    fn over(&self, stamp: Timestamp) -> bool {
        let _ = stamp;
        false
    }

    /// Answers an [`Inquiry`]: `left` says whether anything is undecided here.
    fn answer(&mut self, from: ShardId, inquiry: &Self::Message, left: bool) {
        let _ = (from, left);
        unreachable!("nothing is inquired, {inquiry:?} is no question")
    }

    /// Handles a message: from a shard, if this is the oracle, or else from the oracle.
    fn receive(&mut self, from: ShardId, message: &mut Self::Message, released: &mut Vec<Ticket>) {
        let _ = (from, released);
        unreachable!("no messages are sent, {message:?} is not one")
    }

    /// Whether there is something that the log must have before the messages of this pass leave.
    #[inline]
    fn has_news(&self) -> bool {
        false
    }

    /// What that is, once.
    fn news(&mut self) -> Vec<Kept> {
        Vec::new()
    }

    /// All that the log has for the scheme, for an image.
    fn kept(&self) -> Vec<Kept> {
        Vec::new()
    }

    /// Takes what the log has. What comes later in the log adds to what came before.
    fn restore(&mut self, kept: Kept) -> Result<(), Malformed> {
        let _ = kept;
        Err(Malformed("what another timestamp scheme keeps"))
    }

    /// The log was read, and messages are received from now on.
    fn restored(&mut self) {}

    /// If this is the oracle: how many outcomes were reported and have had their turn.
    fn published(&self) -> u64 {
        0
    }

    /// How many stamps have not had their turn. On an oracle, of those that it has given out or
    /// heard of; on another shard, of its own stamps that it has reported and does not know to be
    /// published.
    fn unpublished(&self) -> u64 {
        0
    }

    /// When the shard must run a pass for the scheme even if no message arrives.
    fn due(&self) -> Option<u64> {
        None
    }

    /// Collects the scheme's messages at the end of a pass.
    fn outgoing(&mut self, send: &mut Vec<(ShardId, Self::Message)>) {
        let _ = send;
    }
}
