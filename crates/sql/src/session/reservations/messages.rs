//! What the nodes' tables of reservations send to each other.

use super::table::Progress;

/// A message from one table to another. The runtime answers none of them: an answer is a message of
/// its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    /// To a row's keeper: a session asks for the row.
    Ask {
        /// The session.
        session: u32,
        /// The row.
        key: Vec<u8>,
        /// Whether the session waits in the row's queue if another has the row.
        may_wait: bool,
    },
    /// To a session's node: how far the session is with a row. A session in the queue hears this
    /// when it has asked, and when it comes to the front.
    Answer {
        /// The session.
        session: u32,
        /// The row.
        key: Vec<u8>,
        /// How far it is.
        progress: Progress,
    },
    /// To a row's keeper: a session neither has nor wants these rows any more.
    Release {
        /// The session.
        session: u32,
        /// The rows.
        keys: Vec<Vec<u8>>,
    },
    /// Follows the waits of sessions, from one that has waited for long.
    Probe(Probe),
}

plimsoll_types::wire!(
    enum Message {
        Ask { session, key, may_wait } = 0,
        Answer { session, key, progress } = 1,
        Release { session, keys } = 2,
        Probe(probe) = 3,
    }
);

/// A probe goes along the waits, from session to row and from row to session (Chandy, Misra and
/// Haas, *Distributed deadlock detection*, 1983).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Probe {
    /// The session that the probe began with.
    pub(super) origin: u32,
    /// The row that this session waits for.
    pub(super) wanted: Vec<u8>,
    /// The shard by which other nodes reach the session; `None` until the probe has left its node.
    pub(super) via: Option<u16>,
    /// The highest number of the sessions so far. In a circle the session with this number begins
    /// again.
    pub(super) highest: u32,
    /// Steps so far.
    pub(super) steps: u16,
    /// The next step.
    pub(super) next: Step,
}

plimsoll_types::wire!(struct Probe { origin, wanted, via, highest, steps, next });

/// A step of a probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// From a row to the session that has it.
    Row(Vec<u8>),
    /// From a session to the row that it waits for.
    Session(u32),
}

plimsoll_types::wire!(
    enum Step {
        Row(key) = 0,
        Session(session) = 1,
    }
);
