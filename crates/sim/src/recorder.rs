//! What is recorded of a world for whoever looks at it afterwards: a trace, a timeline.
//!
//! Three things, in the order of virtual time. *Events* are what the world itself tells. *Messages*
//! say what is in the batches that are sent; an answer names no transaction, so it is known by the
//! request that it answers. *Steps* are what transactions did to records on each shard: nodes keep
//! them, and they are taken after every event, so they have its time. Looking changes nothing: the
//! hash of a world that is recorded is that of one that is not.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_runtime::sim::{Carried, Event, World};
use plimsoll_txn::pairs::LegalPair;
use plimsoll_txn::protocol;
use plimsoll_txn::trace::{About, Step};
use plimsoll_types::{ShardId, Timestamp};

use crate::client::AttemptRecord;
use crate::world::AnyWorld;

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
    pub steps: Vec<TimedStep>,
    /// Attempts of clients, each client's in its order; none if the world ended in a panic.
    pub attempts: Vec<AttemptRecord>,
    /// What calls are about, by the shard that calls, the shard that is called, and number, which
    /// is used again when the answer is there or is given up. An answer to one that was given up
    /// may still be sent.
    asked: BTreeMap<Call, About>,
}

/// A call: the shard that calls, the shard that is called, and number.
type Call = (ShardId, ShardId, u32);

impl Recording {
    /// A request is sent, with its call, unless it is one-way.
    fn asks(&mut self, call: Option<Call>, about: About) {
        self.asked.extend(call.map(|call| (call, about.clone())));
        self.messages.push(Message { event: self.events.len(), about, answer: None });
    }

    /// The answer to a call is sent.
    fn answers(&mut self, call: Call, answer: &'static str) {
        let about = self.asked.get(&call).cloned().expect("what is answered was asked");
        self.messages.push(Message { event: self.events.len(), about, answer: Some(answer) });
    }
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
pub struct TimedStep {
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
            match carried {
                Carried::Request(request, call) => {
                    recording.asks(call.map(|call| (from, to, call)), protocol::about::<P>(request));
                }
                Carried::Reply(reply, call) => {
                    recording.answers((to, from, call), protocol::answer::<P>(reply));
                }
            }
        });
    }

    /// Takes the steps that were made since the last event.
    pub(crate) fn look(&self, world: &dyn AnyWorld, shards: impl Iterator<Item = ShardId>) {
        let mut recording = self.0.borrow_mut();
        for shard in shards {
            let Some((clock, steps)) = world.take_steps(shard) else { continue };
            let time_ns = world.now();
            recording.steps.extend(steps.into_iter().map(|step| TimedStep { time_ns, shard, clock, step }));
        }
    }

    /// Notes which attempts clients have made.
    pub(crate) fn attempts(&self, attempts: &[AttemptRecord]) {
        self.0.borrow_mut().attempts.extend(attempts);
    }
}
