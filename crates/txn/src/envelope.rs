//! What travels between the shards of a database: requests that all protocols share, votes, and the
//! messages of the protocol's paper.
//!
//! A protocol declares its own messages only, [`Protocol::Own`] and [`Protocol::OwnReply`], and
//! handles those ([`Protocol::handle_own`]). What a shard does with the others, and at the
//! beginning, in each pass and at the end of its executor's calls, is here, once for all protocols.
//!
//! Encoding: a byte says whether a message is shared (0) or a vote (1). Any other byte is the first
//! of the protocol's own message, whose variants are numbered from [`OWN`] on.

use std::future::Future;

use plimsoll_runtime::{Env, Handled, Unknown};
use plimsoll_types::wire::{Input, Malformed, Sink, Wire};
use plimsoll_types::{ShardId, Ticket};

use crate::messages::{Common, CommonReply};
use crate::protocol::Protocol;
use crate::timestamp::Scheme;
use crate::trace::About;
use crate::votes;

/// The smallest number that a variant of a protocol's own messages may have in its encoding.
pub const OWN: u8 = 2;

/// What a participant is asked.
pub enum Envelope<S: Scheme, O> {
    /// The same under every protocol.
    Common(Common<S>),
    /// Concerns votes.
    Vote(votes::Request),
    /// The protocol's own.
    Own(O),
}

/// What it answers.
pub enum Answer<S: Scheme, O> {
    /// To a common request.
    Common(CommonReply<S>),
    /// To one that concerns votes.
    Vote(votes::Reply),
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
    pub(crate) fn vote(self) -> votes::Reply {
        match self {
            Answer::Vote(reply) => reply,
            _ => unreachable!("a request that concerns votes has such a reply"),
        }
    }

    fn own(self) -> O {
        match self {
            Answer::Own(reply) => reply,
            _ => unreachable!("a request of the protocol's own has such a reply"),
        }
    }
}

/// Asks a shard something of the protocol's own.
pub(crate) fn ask<'e, P: Protocol, E: Env<P>>(
    env: &'e E,
    to: ShardId,
    own: P::Own,
) -> impl Future<Output = Result<P::OwnReply, Unknown>> + 'static + use<'e, P, E> {
    let call = env.call(to, Envelope::Own(own));
    async move { call.await.map(Answer::own) }
}

/// Tells a shard something of the protocol's own.
pub(crate) fn tell<P: Protocol, E: Env<P>>(env: &E, to: ShardId, own: P::Own) {
    env.send(to, Envelope::Own(own));
}

/// Handles a request.
pub(crate) fn handle<P: Protocol>(
    shard: &mut P,
    from: ShardId,
    request: &mut P::Request,
    ticket: Ticket,
) -> Handled<P::Reply> {
    match request {
        Envelope::Common(common) => shard.handle_common(from, common, ticket).map(Answer::Common),
        Envelope::Vote(vote) => shard.handle_vote(from, vote).map(Answer::Vote),
        Envelope::Own(own) => shard.handle_own(from, own, ticket).map(Answer::Own),
    }
}

/// The channel to a shard was connected or reset.
pub(crate) fn connected<P: Protocol>(shard: &mut P, peer: ShardId, life: Option<u64>) {
    shard.base().connected(peer, life);
    shard.reconnected(peer, life.is_some());
}

/// What the shard has to tell others at the end of a pass.
pub(crate) fn outgoing<P: Protocol>(shard: &mut P, send: &mut Vec<(ShardId, P::Request)>) {
    shard.outgoing_own(&mut |to, own| send.push((to, Envelope::Own(own))));
    let base = shard.base();
    send.extend(base.votes.outgoing().map(|(to, request)| (to, Envelope::Vote(request))));
    base.outgoing(|to, common| send.push((to, Envelope::Common(common))));
}

/// What a request is about, for whoever watches.
pub fn about<P: Protocol>(request: &P::Request) -> About {
    match request {
        Envelope::Common(common) => common.about(),
        Envelope::Vote(vote) => vote.about(),
        Envelope::Own(own) => P::about(own),
    }
}

/// An answer in a word or two, for whoever watches.
pub fn answer<P: Protocol>(reply: &P::Reply) -> &'static str {
    match reply {
        Answer::Common(reply) => reply.answer(),
        Answer::Vote(reply) => reply.answer(),
        Answer::Own(own) => P::answer(own),
    }
}
