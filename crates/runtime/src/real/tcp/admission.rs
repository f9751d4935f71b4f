//! Admission of strangers: who may stay at a port before it is known who that is.
//!
//! Both ports of a node, that for processes of the cluster and that for HTTP, have a [`Room`] each.
//! A room is bounded in number, and each port bounds the time that a stranger may take. It never
//! turns a newcomer away in favour of strangers that say nothing: when it is full, one of those that
//! are in it has to go. That is, in this order,
//!
//! * one that has not introduced itself, by a hello or by the whole header of a request,
//! * one whose address belongs to no node of the cluster,
//! * one from the address that has the most strangers in the room, so that every address has a share
//!   (of IPv6, every network of 64 bits, which is what one machine is given),
//! * the oldest.
//!
//! A stranger that has introduced itself stays for [`GRACE_NS`] in any case. If the room is full of
//! such, newcomers wait in the queue of the operating system.
//!
//! Example. A machine opens 60 connections a second and says nothing. It fills a room of 64 in a
//! second, and from then on each new one of its connections ends its oldest. A node that dials
//! takes the place of one of them, says hello at once, and is not asked to go.
//!
//! Sockets are file descriptors, of which a process has a limited number. [`Descriptors`] divides
//! them when a node starts, so no port can take what the other, a peer, or a file needs.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How long a stranger that has introduced itself stays in a full room, in nanoseconds.
pub(super) const GRACE_NS: u64 = 250_000_000;

/// The smallest and the largest room.
const ROOM_MIN: usize = 8;
const ROOM_MAX: usize = 64;
/// Descriptors of a process besides those of its shards and connections: standard streams, polls,
/// listeners, lock files, and files that are open for a moment.
const OF_PROCESS: usize = 32;
/// Descriptors of a shard: its poll, waker and timer, and its files.
const OF_SHARD: usize = 8;

/// A stranger in a room.
#[derive(Debug)]
struct Stranger<G> {
    /// What the port knows it by.
    guest: G,
    share: IpAddr,
    /// Whether its address is that of a node.
    known: bool,
    introduced: bool,
    since_ns: u64,
}

/// The strangers at a port. `G` is what the port knows a stranger by.
#[derive(Debug)]
pub struct Room<G> {
    size: usize,
    /// By ticket: the oldest first.
    strangers: BTreeMap<u64, Stranger<G>>,
    next: u64,
}

impl<G> Room<G> {
    /// An empty room for so many.
    pub fn new(size: usize) -> Room<G> {
        assert!(size > 0, "a room has a place");
        Room { size, strangers: BTreeMap::new(), next: 0 }
    }

    /// When a newcomer may come in, in nanoseconds; not after `now_ns` if it may now.
    pub fn opens_ns(&self, now_ns: u64) -> u64 {
        let gives_way = |stranger: &Stranger<G>| match stranger.introduced {
            true => stranger.since_ns + GRACE_NS,
            false => 0,
        };
        match self.strangers.len() < self.size {
            true => now_ns,
            false => self.strangers.values().map(gives_way).min().unwrap_or(now_ns),
        }
    }

    /// Lets a newcomer in. Returns its ticket, and the stranger that has to go for it.
    pub fn enter(&mut self, address: IpAddr, known: bool, guest: G, now_ns: u64) -> (u64, Option<G>) {
        let goes = (self.strangers.len() >= self.size).then(|| self.next_to_go(now_ns)).flatten();
        let goes = goes.and_then(|ticket| self.strangers.remove(&ticket));
        let ticket = self.next;
        self.next += 1;
        let stranger = Stranger { guest, share: share(address), known, introduced: false, since_ns: now_ns };
        self.strangers.insert(ticket, stranger);
        (ticket, goes.map(|stranger| stranger.guest))
    }

    /// Notes whether a stranger has introduced itself.
    pub fn set_introduced(&mut self, ticket: u64, introduced: bool) {
        if let Some(stranger) = self.strangers.get_mut(&ticket) {
            stranger.introduced = introduced;
        }
    }

    /// Whether a stranger that is still there has introduced itself.
    pub fn is_introduced(&self, ticket: u64) -> bool {
        self.strangers.get(&ticket).is_some_and(|stranger| stranger.introduced)
    }

    /// Notes that a stranger has gone, or is a stranger no more.
    pub fn leave(&mut self, ticket: u64) {
        self.strangers.remove(&ticket);
    }

    /// The ticket of the stranger that has to go next.
    fn next_to_go(&self, now_ns: u64) -> Option<u64> {
        let mut shares: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for stranger in self.strangers.values() {
            *shares.entry(stranger.share).or_default() += 1;
        }
        let may_stay = |stranger: &Stranger<G>| stranger.introduced && now_ns < stranger.since_ns + GRACE_NS;
        let may_go = self.strangers.iter().filter(|(_, stranger)| !may_stay(stranger));
        let order = |(ticket, stranger): &(&u64, &Stranger<G>)| {
            let most = usize::MAX - shares.get(&stranger.share).copied().unwrap_or_default();
            (stranger.introduced, stranger.known, most, **ticket)
        };
        may_go.min_by_key(order).map(|(&ticket, _)| ticket)
    }
}

/// The part of an address that has a share of a room.
fn share(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from(u128::from(ip) >> 64 << 64)),
        v4 => v4,
    }
}

/// How a node divides its file descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Descriptors {
    /// Strangers at each of two ports.
    pub(super) room: usize,
    /// Clients that may be connected at a time.
    pub(super) clients: usize,
}

/// A limit of descriptors with which a node cannot run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TooFew {
    limit: usize,
    needed: usize,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFew { limit, needed } = self;
        write!(
            f,
            "this node needs {needed} file descriptors at least, for its shards and connections, and may have {limit}: \
             raise the limit (`ulimit -n`), or give it fewer shards"
        )
    }
}

impl Descriptors {
    /// Divides `limit` descriptors of a node with so many shards, which is connected to so many
    /// shards of other nodes and may have so many clients.
    pub(super) fn divide(
        limit: usize,
        own: usize,
        others: usize,
        clients: usize,
    ) -> Result<Descriptors, TooFew> {
        let fixed = OF_PROCESS + own * (OF_SHARD + others);
        let needed = fixed + 2 * ROOM_MIN + own;
        let Some(left) = limit.checked_sub(fixed).filter(|_| limit >= needed) else {
            return Err(TooFew { limit, needed });
        };
        let room = (left / 8).clamp(ROOM_MIN, ROOM_MAX);
        Ok(Descriptors { room, clients: clients.min((left - 2 * room) / own.max(1)) })
    }
}

/// How many descriptors this process may have, after it has asked for as many as it is allowed.
pub(super) fn descriptor_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised =
        current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let limit = if raised { maximum } else { current };
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000_000_000;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("it is an address")
    }

    /// A room with these strangers, who are called by their numbers.
    fn room(size: usize, strangers: &[(&str, bool, bool)]) -> Room<usize> {
        let mut room = Room::new(size);
        for (number, &(address, known, introduced)) in strangers.iter().enumerate() {
            let (ticket, gone) = room.enter(ip(address), known, number, NOW);
            assert_eq!(gone, None, "there is room");
            room.set_introduced(ticket, introduced);
        }
        room
    }

    fn goes(strangers: &[(&str, bool, bool)], now_ns: u64) -> Option<usize> {
        room(strangers.len(), strangers).enter(ip("10.9.9.9"), false, usize::MAX, now_ns).1
    }

    #[test]
    fn of_a_full_room_the_oldest_stranger_that_says_nothing_goes() {
        let (silent, spoke) = (("10.0.0.1", false, false), ("10.0.0.1", false, true));
        assert_eq!(goes(&[silent, silent, silent], NOW), Some(0));
        assert_eq!(goes(&[spoke, silent, silent], NOW), Some(1));
        let known = ("10.0.0.1", true, false);
        assert_eq!(goes(&[known, silent, silent], NOW), Some(1), "known addresses go last");
        assert_eq!(goes(&[known, spoke, known], NOW + GRACE_NS), Some(0), "but before those that speak");
        let mut three = room(3, &[silent, silent]);
        assert_eq!(three.enter(ip("10.0.0.1"), false, 2, NOW).1, None, "it is not full");
        assert_eq!(three.enter(ip("10.0.0.1"), false, 3, NOW).1, Some(0));
        assert_eq!(three.enter(ip("10.0.0.1"), false, 4, NOW).1, Some(1), "and then the next");
    }

    #[test]
    fn an_address_that_has_much_of_the_room_makes_way_for_others() {
        let one = |address| (address, false, false);
        let many = [one("10.0.0.1"), one("10.0.0.2"), one("10.0.0.2"), one("10.0.0.3")];
        assert_eq!(goes(&many, NOW), Some(1));
        let networks = [one("2001:db8::1"), one("2001:db8:0:1::1"), one("2001:db8:0:1::2")];
        assert_eq!(goes(&networks, NOW), Some(1), "a network of 64 bits has one share");
        let mapped = [one("10.0.0.1"), one("::ffff:10.0.0.2"), one("10.0.0.2")];
        assert_eq!(goes(&mapped, NOW), Some(1), "and so has an address, however it is written");
    }

    #[test]
    fn who_has_introduced_itself_stays_for_a_moment_in_any_case() {
        let spoke = ("10.0.0.1", false, true);
        let full = room(2, &[spoke, spoke]);
        assert_eq!(full.opens_ns(NOW), NOW + GRACE_NS, "newcomers wait");
        assert_eq!(goes(&[spoke, spoke], NOW + GRACE_NS), Some(0));
        assert!(room(2, &[spoke, ("10.0.0.1", false, false)]).opens_ns(NOW) <= NOW);
        assert!(room(2, &[spoke]).opens_ns(NOW) <= NOW);
    }

    #[test]
    fn whoever_has_left_takes_no_room() {
        let mut room = room(1, &[("10.0.0.1", false, false)]);
        room.leave(0);
        assert_eq!(room.enter(ip("10.0.0.1"), false, 1, NOW).1, None);
        room.leave(0);
        assert_eq!(room.enter(ip("10.0.0.1"), false, 2, NOW).1, Some(1), "a ticket names one stranger");
    }

    #[test]
    fn descriptors_are_divided_so_that_all_have_some() {
        let plenty = Descriptors::divide(20_000, 4, 8, 64).expect("it is enough");
        assert_eq!(plenty, Descriptors { room: ROOM_MAX, clients: 64 });
        for limit in 100..400 {
            for (own, others) in [(1, 0), (2, 0), (4, 0), (1, 6), (2, 4)] {
                match Descriptors::divide(limit, own, others, 64) {
                    Ok(Descriptors { room, clients }) => {
                        assert!(room >= ROOM_MIN && clients >= 1);
                        let all = OF_PROCESS + own * (OF_SHARD + others + clients) + 2 * room;
                        assert!(all <= limit, "{all} of {limit}");
                    }
                    Err(TooFew { needed, .. }) => assert!(limit < needed),
                }
            }
        }
        let few = Descriptors::divide(50, 4, 0, 64).expect_err("it is not enough");
        assert!(few.to_string().contains("may have 50: raise the limit (`ulimit -n`)"), "{few}");
    }
}
