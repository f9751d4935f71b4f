//! What happened, for whoever wants to know, and a number that is different if anything else
//! happened.
//!
//! Every event goes into a running hash (FNV-1a over words of 64 bits instead of bytes). Two
//! executions with the same hash took the same steps at the same times: passes with as much work,
//! packets delivered in the same order. A hook gets the events as well; without one, that costs a
//! branch. Another hook is shown the messages of every batch, for those who know what they mean.

use plimsoll_types::ShardId;

use crate::Participant;
use crate::disk::{DiskFault, FileName, Verb};
use crate::shard::Message;

/// Something that happened in a world. Times are virtual nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A shard makes a pass; what it sends leaves at the end of it.
    Pass {
        /// Who.
        shard: ShardId,
        /// Messages that were waiting for it.
        messages: usize,
        /// Tasks polled.
        polls: usize,
        /// When the pass ends.
        end_ns: u64,
    },
    /// A batch of messages leaves a shard.
    Sent {
        /// Where from.
        from: ShardId,
        /// Where to.
        to: ShardId,
        /// Its number in the channel; between shards of one machine there are none: 0.
        sequence: u64,
        /// How many messages it has.
        messages: usize,
    },
    /// A batch of messages is in the inbox of a shard.
    Delivered {
        /// Where from.
        from: ShardId,
        /// Where to.
        to: ShardId,
        /// Its number in the channel; between shards of one machine there are none: 0.
        sequence: u64,
        /// When it was first sent.
        sent_ns: u64,
    },
    /// A batch goes onto the network, for the first time or again. Told, but not part of the hash:
    /// what follows from it is.
    Transmitted {
        /// Where from.
        from: ShardId,
        /// Where to.
        to: ShardId,
        /// Its number in the channel.
        sequence: u64,
        /// When each copy arrives, unless the link is clogged then; a packet that is lost has none.
        arrives_ns: [Option<u64>; 2],
    },
    /// A shard's end of a channel begins a new connection; calls made over it have failed.
    Reset {
        /// Whose end.
        shard: ShardId,
        /// To whom.
        peer: ShardId,
        /// Which connection.
        connection: u64,
    },
    /// A shard begins a life.
    Start {
        /// Who.
        shard: ShardId,
        /// Counts from 1.
        life: u32,
    },
    /// The disk of a shard has done something, or failed to.
    Disk {
        /// Whose.
        shard: ShardId,
        /// What.
        verb: Verb,
        /// With which file; `None` if with the directory.
        file: Option<FileName>,
        /// How many bytes were read or to be written.
        length: usize,
        /// What was wrong.
        fault: Option<DiskFault>,
    },
    /// The machine of a shard that has a disk crashes.
    Crashed {
        /// Whose.
        shard: ShardId,
        /// Whether the power failed: then not everything is there that was not synced.
        power: bool,
        /// Whether that was each sector and each name by itself.
        torn: bool,
        /// Depends on every byte of every file that is left.
        checksum: u64,
    },
    /// A part of a connection of bytes has arrived.
    Segment {
        /// Where from.
        from: ShardId,
        /// Where to.
        to: ShardId,
        /// Which connection; they count from 0.
        connection: u64,
        /// What it is: 0 opens the connection, 1 brings bytes, 2 says that bytes were read, 3 says
        /// that no more will come, 4 resets the connection.
        kind: u8,
        /// How many bytes.
        length: usize,
    },
    /// A fault begins, or happens if it has no duration.
    Begins {
        /// Its number: see [`super::Occurrence::index`].
        index: u32,
    },
    /// A fault ends.
    Ends {
        /// Its number.
        index: u32,
    },
}

impl Event {
    /// What goes into the hash.
    fn words(&self) -> Option<[u64; 3]> {
        let ends = |kind: u64, a: ShardId, b: ShardId| kind << 32 | u64::from(a.0) << 16 | u64::from(b.0);
        Some(match *self {
            Event::Pass { shard, messages, polls, end_ns } => {
                [ends(1, shard, shard), (messages as u64) << 32 | polls as u64, end_ns]
            }
            Event::Sent { from, to, sequence, messages } => [ends(2, from, to), sequence, messages as u64],
            Event::Delivered { from, to, sequence, sent_ns } => [ends(3, from, to), sequence, sent_ns],
            Event::Transmitted { .. } => return None,
            Event::Reset { shard, peer, connection } => [ends(4, shard, peer), connection, 0],
            Event::Start { shard, life } => [ends(5, shard, shard), u64::from(life), 0],
            Event::Segment { from, to, connection, kind, length } => {
                [ends(10, from, to), connection, (length as u64) << 8 | u64::from(kind)]
            }
            Event::Begins { index } => [6 << 32, u64::from(index), 0],
            Event::Ends { index } => [7 << 32, u64::from(index), 0],
            Event::Disk { shard, verb, file, length, fault } => {
                let name = file.map_or(0, |file| {
                    file.as_str().bytes().fold(1, |hash: u64, byte| hash.wrapping_mul(257) + u64::from(byte))
                });
                let fault = match fault {
                    None => 0,
                    Some(DiskFault::NotFound) => 1,
                    Some(DiskFault::Full) => 2,
                    Some(DiskFault::Hole) => 3,
                    Some(DiskFault::TooLong) => 4,
                    Some(DiskFault::Failed(number)) => 5 + u64::from(number as u32),
                };
                [ends(8, shard, ShardId(verb as u16)), name, (length as u64) << 32 | fault]
            }
            Event::Crashed { shard, power, torn, checksum } => {
                [ends(9, shard, shard), u64::from(power) << 1 | u64::from(torn), checksum]
            }
        })
    }
}

/// A message in a batch.
pub enum Carried<'a, N: Participant> {
    /// A request, and the number of the sender's pending call; `None` if it has no answer.
    Request(&'a N::Request, Option<u32>),
    /// The answer to the receiver's call of this number.
    Reply(&'a N::Reply, u32),
}

impl<'a, N: Participant> Carried<'a, N> {
    /// A message, if it travels between shards.
    pub(super) fn of(message: &'a Message<N>) -> Option<Carried<'a, N>> {
        match message {
            Message::Call { call, request } => Some(Carried::Request(request, Some(*call))),
            Message::Tell { request } => Some(Carried::Request(request, None)),
            Message::Reply { call, reply } => Some(Carried::Reply(reply, *call)),
            Message::Start(_) | Message::Disk(_) => None,
        }
    }
}

/// Gets every event with its time.
pub(super) type Hook = Box<dyn FnMut(u64, &Event)>;

/// Gets every message of a batch, before the event that the batch is sent; from whom and to whom.
pub(super) type MessageHook<N> = Box<dyn FnMut(ShardId, ShardId, Carried<'_, N>)>;

/// The hash so far, and the hooks.
pub(super) struct Trace<N: Participant> {
    pub(super) hash: u64,
    pub(super) hook: Option<Hook>,
    pub(super) message_hook: Option<MessageHook<N>>,
}

impl<N: Participant> Trace<N> {
    pub(super) fn new() -> Trace<N> {
        Trace { hash: 0xcbf2_9ce4_8422_2325, hook: None, message_hook: None }
    }

    pub(super) fn show(&mut self, from: ShardId, to: ShardId, messages: &[Message<N>]) {
        let Some(hook) = &mut self.message_hook else { return };
        messages.iter().filter_map(Carried::of).for_each(|carried| hook(from, to, carried));
    }

    #[inline]
    pub(super) fn record(&mut self, now_ns: u64, event: Event) {
        if let Some([a, b, c]) = event.words() {
            for word in [now_ns, a, b, c] {
                self.hash = (self.hash ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(29);
            }
        }
        if let Some(hook) = &mut self.hook {
            hook(now_ns, &event);
        }
    }
}
