//! What travels between the shards of a database: requests that all protocols share, votes, and the
//! messages of the protocol's paper.
//!
//! A protocol declares its own messages only, [`Protocol::Own`](crate::protocol::Protocol::Own) and
//! [`Protocol::OwnReply`](crate::protocol::Protocol::OwnReply). What a shard does with the others
//! is in [`crate::protocol`], once for all protocols.
//!
//! Encoding: a byte says whether a message is shared (0) or a vote (1). Any other byte is the first
//! of the protocol's own message, whose variants are numbered from [`OWN`] on.

use plimsoll_types::wire::{Input, Malformed, Sink, Wire};

use crate::ballot;
use crate::messages::{Common, CommonReply};
use crate::timestamp::Scheme;

/// The smallest number that a variant of a protocol's own messages may have in its encoding.
pub const OWN: u8 = 2;

/// What a participant is asked.
pub enum Envelope<S: Scheme, O> {
    /// The same under every protocol.
    Common(Common<S>),
    /// Concerns votes.
    Vote(ballot::Request),
    /// The protocol's own.
    Own(O),
}

/// What it answers.
pub enum Answer<S: Scheme, O> {
    /// To a common request.
    Common(CommonReply<S>),
    /// To one that concerns votes.
    Vote(ballot::Reply),
    /// To one of the protocol's own.
    Own(O),
}

/// Encodes and decodes the two enums above, which have the same variants.
macro_rules! wire_envelope {
    ($name:ident) => {
        impl<S: Scheme, O: Wire> Wire for $name<S, O> {
            fn encode(&self, out: &mut impl Sink) {
                match self {
                    $name::Common(common) => {
                        0u8.encode(out);
                        common.encode(out);
                    }
                    $name::Vote(vote) => {
                        1u8.encode(out);
                        vote.encode(out);
                    }
                    $name::Own(own) => own.encode(out),
                }
            }

            fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
                let own = input.peek().is_none_or(|first| first >= OWN);
                if own {
                    return Wire::decode(input).map($name::Own);
                }
                match u8::decode(input)? {
                    0 => Wire::decode(input).map($name::Common),
                    _ => Wire::decode(input).map($name::Vote),
                }
            }
        }
    };
}
wire_envelope!(Envelope);
wire_envelope!(Answer);

impl<S: Scheme, O> Answer<S, O> {
    /// The answer to a common request.
    pub fn common(self) -> CommonReply<S> {
        match self {
            Answer::Common(reply) => reply,
            _ => unreachable!("a common request has a common reply"),
        }
    }

    /// The answer to a request that concerns votes.
    pub(crate) fn vote(self) -> ballot::Reply {
        match self {
            Answer::Vote(reply) => reply,
            _ => unreachable!("a request that concerns votes has such a reply"),
        }
    }

    /// The answer to a request of the protocol's own.
    pub(crate) fn own(self) -> O {
        match self {
            Answer::Own(reply) => reply,
            _ => unreachable!("a request of the protocol's own has such a reply"),
        }
    }
}
