//! What the nodes' tables of reservations say to each other.

/// A message from one table to another. None is answered by the shard that gets it: an answer is a
/// message of its own, and if one is lost, so is nothing but time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// To a row's keeper: a session asks for the row.
    Ask {
        /// The session.
        session: u32,
        /// The row.
        key: Vec<u8>,
        /// Whether it waits in the row's queue if another has it.
        may_wait: bool,
    },
    /// To the session's node: it waits in the queue. Who comes to its front is told once more.
    Queued {
        /// The session.
        session: u32,
        /// The row.
        key: Vec<u8>,
        /// How many are before it, with the one that has the row.
        before: u16,
    },
    /// To the session's node: it has the row.
    Granted {
        /// The session.
        session: u32,
        /// The row.
        key: Vec<u8>,
        /// Whether another had it when the session asked.
        has_waited: bool,
    },
    /// To the session's node: another has the row.
    Refused {
        /// The session.
        session: u32,
        /// The row.
        key: Vec<u8>,
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
    /// To the session's node: the session waits for itself, and shall begin again.
    Circle {
        /// The session.
        session: u32,
        /// The row that it waits for.
        key: Vec<u8>,
    },
}

plimsoll_types::wire!(
    enum Word {
        Ask { session, key, may_wait } = 0,
        Queued { session, key, before } = 1,
        Granted { session, key, has_waited } = 2,
        Refused { session, key } = 3,
        Release { session, keys } = 4,
        Probe(probe) = 5,
        Circle { session, key } = 6,
    }
);

/// What goes along the waits (Chandy, Misra and Haas, *Distributed deadlock detection*, 1983).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Probe {
    /// The session that it began with.
    pub(super) origin: u32,
    /// The row that this one waits for.
    pub(super) wanted: Vec<u8>,
    /// The shard by which others reach the session; `None` on its own node.
    pub(super) via: Option<u16>,
    /// The highest number of the sessions so far. Of a circle it is this one that begins again.
    pub(super) highest: u32,
    /// Steps so far.
    pub(super) steps: u16,
    /// The next step.
    pub(super) at: At,
}

plimsoll_types::wire!(struct Probe { origin, wanted, via, highest, steps, at });

/// A step of a probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum At {
    /// Who has this row?
    Row(Vec<u8>),
    /// For what does this session wait?
    Session(u32),
}

plimsoll_types::wire!(
    enum At {
        Row(key) = 0,
        Session(session) = 1,
    }
);
