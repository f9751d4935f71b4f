//! Who may use which slot of the vector, and what becomes of the stamps of those who are gone.
//!
//! Shards of processes that stay have slots for ever. A *client* comes and goes; its place in the
//! cluster has a slot, and it may stamp only with what it has *claimed* from the oracle: counters
//! up to some number, a million at a time. A claim ends when the oracle has lost the client for a
//! while, or when the place has another. If shards log, those with data come back in another life,
//! and all of this holds for them too; then all claims end with the life of the oracle as well. All
//! stamps of a claim that has ended must get into the vector, and the oracle does not know which of
//! them were used, by whom, or what they depend on:
//!
//! 1. It asks every shard with data ([`super::Message::Inquire`]). From then on that shard lets
//!    nobody vote with such a stamp ([`Service::over`](crate::service::Service::over)); it says so
//!    when it knows of no vote on such a transaction whose outcome is open. When all have said so
//!    once, whatever of the claim was ever to be installed is.
//! 2. It asks them all once more, for the largest stamps of each slot that they have versions of or
//!    that have read there. Whatever a transaction of the claim has read or overwritten, it did so
//!    before the first round was over: all that it depends on is among these.
//! 3. The slot is *settled* through the end of the claim ([`super::published`]), and free: the next
//!    claim begins behind it.
//!
//! A client that was only cut off finds that its claim is over, and makes another; what it still
//! tries to commit under the old one is refused. That is why two rounds are needed: it may have
//! read on a shard after that was asked first.

use std::collections::BTreeSet;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{ShardId, Timestamp};

use super::{Message, Vector, join, pack};
use crate::timestamp::SchemeConfig;

/// So many counters are given out at a time.
pub(super) const CLAIM: u64 = 1 << 20;
/// How often shards are asked about a claim that is over, in nanoseconds.
pub(super) const INQUIRE_NS: u64 = 100_000_000;

/// Stamps of a claim that is over, which a slot may have used up to the last of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Over {
    pub slot: usize,
    pub through: u64,
    /// An upper bound of what they depend on.
    pub dependencies: Vector,
}

/// The slot of a shard that claims.
#[derive(Debug, Default)]
struct Claim {
    /// The life of who is connected at the shard's place, or was last.
    life: u64,
    /// The life that has claimed it; `None` if it is free.
    owner: Option<u64>,
    /// The owner has got the counters after this one, up to the other.
    after: u64,
    through: u64,
    /// How many requests wait until it is free.
    wanted: usize,
    ending: Option<Ending>,
}

/// What the oracle does about a claim that is over.
#[derive(Debug)]
struct Ending {
    /// The number of the round.
    number: u64,
    /// Whether it is the second.
    second: bool,
    /// Whether anybody was asked: until then the owner may come back.
    begun: bool,
    /// When to ask next, in nanoseconds; `None` if the oracle has made no pass since it lost the
    /// owner, and its clock is that of the last.
    next: Option<u64>,
    /// Shards that have not answered, or have something left.
    left: BTreeSet<ShardId>,
    dependencies: Vector,
}

/// The slots of all shards that claim.
#[derive(Debug)]
pub(super) struct Claims {
    /// The shards, in order.
    claimers: Vec<ShardId>,
    /// How many slots come before theirs.
    before: usize,
    holders: BTreeSet<ShardId>,
    patience_ns: u64,
    claims: Vec<Claim>,
    rounds: u64,
    /// Whether there are claims that the log does not have.
    news: bool,
}

impl Claims {
    pub(super) fn new(config: &SchemeConfig, members: usize) -> Claims {
        let holders = config.holders().count();
        let skipped = if config.logs { 0 } else { holders };
        let claimers: Vec<ShardId> = config.coordinators().skip(skipped).collect();
        Claims {
            before: if config.logs { 0 } else { members },
            holders: config.holders().collect(),
            patience_ns: config.patience_ns,
            claims: claimers.iter().map(|_| Claim::default()).collect(),
            claimers,
            rounds: 0,
            news: false,
        }
    }

    fn of(&mut self, shard: ShardId) -> Option<&mut Claim> {
        self.claims.get_mut(self.claimers.binary_search(&shard).ok()?)
    }

    /// Whether there are claims that the log does not have.
    pub(super) fn has_news(&self) -> bool {
        self.news
    }

    /// The last stamps of all claims, if there are such.
    pub(super) fn news(&mut self) -> Vec<Timestamp> {
        match std::mem::take(&mut self.news) {
            true => self.kept(),
            false => Vec::new(),
        }
    }

    /// The last stamps of all claims.
    pub(super) fn kept(&self) -> Vec<Timestamp> {
        let ends = (self.before..).zip(&self.claims).filter(|(_, claim)| claim.through > 0);
        ends.map(|(slot, claim)| pack(slot, claim.through)).collect()
    }

    /// Claims of a former life of the oracle, which ended with it, were given out up to these.
    pub(super) fn restored(&mut self, former: &Vector) {
        for (claim, &through) in self.claims.iter_mut().zip(former.iter().skip(self.before)) {
            if through > 0 {
                (claim.through, claim.ending) = (through, Some(Ending::begins(Some(0))));
            }
        }
    }

    /// How many claims are over whose slots are not settled.
    pub(super) fn ending(&self) -> usize {
        self.claims.iter().filter(|claim| claim.ending.is_some()).count()
    }

    /// Somebody is connected, in this life, or is not any more.
    pub(super) fn met(&mut self, peer: ShardId, life: Option<u64>) {
        let next = life.map(|_| 0);
        let Some(claim) = self.of(peer) else { return };
        claim.wanted = 0;
        claim.life = life.unwrap_or(claim.life);
        let Some(owner) = claim.owner else { return };
        if planted(Mutant::SlotKept) && life.is_some() {
            (claim.owner, claim.ending) = (life, None);
            return;
        }
        match &mut claim.ending {
            // It has come back in time.
            ending if life == Some(owner) => {
                ending.take_if(|ending| !ending.begun);
            }
            Some(ending) if !ending.begun && life.is_some() => ending.next = next,
            Some(_) => {}
            None => claim.ending = Some(Ending::begins(next)),
        }
    }

    /// A shard wants counters. It may have to wait.
    pub(super) fn claim(&mut self, from: ShardId) -> Option<Message> {
        let claim = self.of(from)?;
        if claim.ending.is_some() {
            claim.wanted += 1;
            return None;
        }
        let claimed = claim.grant();
        self.news = true;
        Some(claimed)
    }

    /// Asks about the claims that are over.
    pub(super) fn inquire(&mut self, clock: Timestamp, send: &mut Vec<(ShardId, Message)>) {
        let claimers = self.claimers.iter().copied();
        for (slot, (of, claim)) in (self.before..).zip(claimers.zip(&mut self.claims)) {
            let Some(ending) = &mut claim.ending else { continue };
            if *ending.next.get_or_insert(clock.0 + self.patience_ns) > clock.0 {
                continue;
            }
            if ending.left.is_empty() {
                (ending.begun, ending.left) = (true, self.holders.clone());
                self.rounds += 1;
                ending.number = self.rounds;
            }
            ending.next = Some(clock.0 + INQUIRE_NS);
            let (slot, through, number) = (slot as u16, claim.through, ending.number);
            send.extend(
                ending.left.iter().map(|&shard| (shard, Message::Inquire { of, slot, through, number })),
            );
        }
    }

    /// A shard has answered; `None` if something is left there. Tells what is over then, and to
    /// whom its slot is given.
    pub(super) fn heard(
        &mut self,
        from: ShardId,
        number: u64,
        seen: Option<&Vector>,
    ) -> Option<(Over, Vec<(ShardId, Message)>)> {
        let asked = |claim: &Claim| claim.ending.as_ref().is_some_and(|ending| ending.number == number);
        let (seen, place) = (seen?, self.claims.iter().position(asked)?);
        let claim = &mut self.claims[place];
        let ending = claim.ending.as_mut()?;
        if !ending.left.remove(&from) {
            return None;
        }
        if ending.second && !planted(Mutant::SettledAlone) {
            seen.iter().enumerate().for_each(|(slot, &counter)| {
                join(&mut ending.dependencies, slot, counter);
            });
        }
        if !ending.left.is_empty() {
            return None;
        }
        ending.next = Some(0);
        if !std::mem::replace(&mut ending.second, true) {
            return None;
        }
        let ending = claim.ending.take()?;
        claim.owner = None;
        let slot = self.before + place;
        let over = Over { slot, through: claim.through, dependencies: ending.dependencies };
        let wanted = std::mem::take(&mut claim.wanted);
        self.news |= wanted > 0;
        Some((over, (0..wanted).map(|_| (self.claimers[place], claim.grant())).collect()))
    }

    /// When somebody is to be asked.
    pub(super) fn due(&self) -> Option<u64> {
        self.claims.iter().filter_map(|claim| claim.ending.as_ref()?.next).min()
    }
}

impl Ending {
    /// Shards are asked from this time on.
    fn begins(next: Option<u64>) -> Ending {
        Ending {
            number: 0,
            second: false,
            begun: false,
            next,
            left: BTreeSet::new(),
            dependencies: Vector::new(),
        }
    }
}

impl Claim {
    fn grant(&mut self) -> Message {
        if self.owner.replace(self.life).is_none() {
            self.after = self.through;
        }
        self.through += CLAIM;
        Message::Claimed { after: self.after, through: self.through }
    }
}
