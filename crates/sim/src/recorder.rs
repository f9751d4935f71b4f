//! What is recorded of a world for whoever looks at it afterwards: a trace, a timeline.
//!
//! Three things, in the order of virtual time. *Events* are what the world itself tells. *Messages* say what is in the
//! batches that are sent; an answer names no transaction, so it is known by the request that it answers. *Steps* are what
//! transactions did to records on each shard: nodes keep them, and they are taken after every event, so they have its
//! time. Looking changes nothing: the hash of a world that is recorded is that of one that is not.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_runtime::Tasks;
use plimsoll_runtime::sim::{Carried, Event, World};
use plimsoll_txn::pairs::LegalPair;
use plimsoll_txn::protocol;
use plimsoll_txn::trace::{About, Step};
use plimsoll_types::{ShardId, Timestamp};

use crate::client::Tried;

/// Records a world. Clones record the same one.
#[derive(Clone, Default)]
pub struct Recorder(Rc<RefCell<Recording>>);

/// What was recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Virtual nanoseconds and events.
    pub events: Vec<(u64, Event)>,
    /// The messages of all batches.
    pub messages: Vec<Message>,
    /// Steps on all shards.
    pub steps: Vec<Taken>,
    /// Attempts of clients, each client's in its order; none if the world ended in a panic.
    pub attempts: Vec<Tried>,
    /// What calls are about, by caller, who is asked, and number, which is used again when the answer is there or is given
    /// up. An answer to one that was given up may still be sent.
    asked: BTreeMap<(ShardId, ShardId, u32), About>,
}

/// A message that was sent.
#[derive(Clone, Debug)]
pub struct Message {
    /// Which of the events says that its batch was sent.
    pub event: usize,
    /// What it is about; for an answer, what its request was about.
    pub about: About,
    /// The answer in a word or two, if it is one.
    pub answer: Option<&'static str>,
}

/// A step that was taken.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Virtual nanoseconds.
    pub time_ns: u64,
    /// Where.
    pub shard: ShardId,
    /// What the clock of the shard showed.
    pub clock: Timestamp,
    /// The step.
    pub step: Step,
}

impl Recorder {
    /// Takes what was recorded so far.
    pub fn take(&self) -> Recording {
        self.0.try_borrow_mut().map(|mut recording| std::mem::take(&mut *recording)).unwrap_or_default()
    }

    /// Records all that happens in a world from now on, but for its steps.
    pub(crate) fn listen<P: LegalPair>(&self, world: &mut World<P>) {
        let recording = self.0.clone();
        world.trace(move |time_ns, event| recording.borrow_mut().events.push((time_ns, *event)));
        let recording = self.0.clone();
        world.watch_messages(move |from, to, carried| {
            let mut recording = recording.borrow_mut();
            let event = recording.events.len();
            let (about, answer) = match carried {
                Carried::Request(request, call) => {
                    let about = protocol::about::<P>(request);
                    recording.asked.extend(call.map(|call| ((from, to, call), about.clone())));
                    (about, None)
                }
                Carried::Reply(reply, call) => {
                    let about = recording.asked.get(&(to, from, call)).cloned();
                    (about.expect("what is answered was asked"), Some(protocol::answer::<P>(reply)))
                }
            };
            recording.messages.push(Message { event, about, answer });
        });
    }

    /// Takes the steps that were made since the last event.
    pub(crate) fn look<P: LegalPair>(&self, world: &World<P>, shards: impl Iterator<Item = ShardId>) {
        let mut recording = self.0.borrow_mut();
        for shard in shards {
            let steps = world.node(shard, |node| node.base().steps.as_mut().map(std::mem::take)).flatten();
            let Some((steps, env)) = steps.zip(world.env(shard)) else { continue };
            let (time_ns, clock) = (world.now(), env.clock());
            recording.steps.extend(steps.into_iter().map(|step| Taken { time_ns, shard, clock, step }));
        }
    }

    /// Notes which attempts clients have made.
    pub(crate) fn attempts(&self, attempts: &[Tried]) {
        self.0.borrow_mut().attempts.extend(attempts);
    }
}
