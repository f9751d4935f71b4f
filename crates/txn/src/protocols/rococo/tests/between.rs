//! Between processes: repeated, late, lost and impossible messages. Whatever another process says,
//! a server does not panic, does not work endlessly, and does not believe what contradicts its own
//! knowledge.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::{Future, ready};
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use plimsoll_runtime::{
    Accept, Appended, Detached, Disk, Env, Handled, LowWater, Participant, Pause, Pending, Sleep, Stable,
    Stream, Task, Tasks, Unknown,
};
use plimsoll_types::{
    Abort, IndexKind, Key, Partitioning, Placement, ShardId, Slot, TableId, TableSpec, Timestamp, TxnId,
};
use proptest::prelude::*;

use super::super::coordinator::{RETRY_MAX_NS, RETRY_NS, insist};
use super::super::graph::{Member, Pred, StartResult, TxnReport};
use super::super::over::Over;
use super::super::participant::ASKS_MAX;
use super::super::{Reply, Request, Rococo};
use crate::attempt::ProtocolOptions;
use crate::base::{Base, Counters, GraphSize, Layout};
use crate::envelope::{Answer, Envelope};
use crate::procedure::{Access, Piece, Procedure, Reads};
use crate::protocol::{Protocol, ask};
use crate::shipped::{Cargo, Items, OneShot, Shipped, unpack};
use crate::testing::scheme_config;
use crate::timestamps::Dst;

const TABLE: TableId = TableId(0);
/// The server, and two shards of other processes.
const HERE: ShardId = ShardId(0);
const THERE: ShardId = ShardId(1);
const ELSEWHERE: ShardId = ShardId(2);
const SECOND: u64 = 1_000_000_000;

/// Writes keys, one piece each: the first stage when it starts, all others when it commits.
#[derive(Clone, Default)]
struct Writes {
    stages: Vec<Vec<u8>>,
    /// Whether the first stage is deferred as well.
    later: bool,
    /// Whether it fails if a row exists.
    inserts: bool,
}

plimsoll_types::wire!(struct Writes { stages, later, inserts });

impl Writes {
    fn at_once(keys: &[u8]) -> Writes {
        Writes { stages: vec![keys.to_vec()], ..Writes::default() }
    }

    fn key(&self, Piece { stage, number }: Piece) -> Key {
        Key::new(&[self.stages[stage][number]])
    }
}

impl Procedure for Writes {
    fn read_only(&self) -> bool {
        false
    }

    fn stage(&self, stage: usize) -> usize {
        self.stages.get(stage).map_or(0, Vec::len)
    }

    fn home(&self, Piece { stage, number }: Piece) -> Slot {
        Partitioning::modulo(self.stages[stage][number].into())
    }

    fn reads(&self, _: Piece, _: &mut Reads) {}

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match self.inserts {
            true => access.insert(TABLE, &self.key(piece), &[b"written"]),
            false => access.put(TABLE.row(), &self.key(piece), b"written"),
        }
    }

    fn shipped(&mut self) -> Option<&mut dyn Shipped> {
        Some(self)
    }
}

crate::executable!(Writes);

impl OneShot for Writes {
    fn piece_type(&self, piece: Piece) -> usize {
        piece.stage + usize::from(self.later)
    }

    fn items(&self, piece: Piece, items: &mut Items) {
        items.write(TABLE.row(), self.key(piece));
    }

    fn absorb(&mut self, piece: Piece, executed: &Writes) {
        assert_eq!(self.key(piece), executed.key(piece), "it is the same procedure");
    }
}

fn of(coordinator: ShardId, number: u64) -> TxnId {
    TxnId { coordinator, number }
}

fn txn(number: u64) -> TxnId {
    of(THERE, number)
}

struct Server {
    node: Rococo<Dst>,
    clock: u64,
    ticket: u32,
}

impl Server {
    fn new() -> Server {
        let tables = vec![TableSpec::new("t", IndexKind::Hash, Partitioning::Modulo { bytes: 1 })];
        let placement = Placement::even(3).into();
        let layout = Layout { tables: tables.into(), placement, processes: vec![0, 1, 2].into() };
        let base = Base::new(&layout, &scheme_config(0, 3), LowWater::new(3, 1));
        let options =
            ProtocolOptions { immediate_pieces: 1, unpack: Some(unpack::<Writes>), ..Default::default() };
        let mut server = Server { node: Rococo::new(base, options), clock: 0, ticket: 0 };
        for key in 0..=u8::MAX {
            server.node.base.store.load(TABLE, &Key::new(&[key]), &[b"loaded"]);
        }
        server.passes(1000 * SECOND);
        server
    }

    /// Lets time pass. Returns the messages that the server sends.
    fn passes(&mut self, ns: u64) -> Vec<(ShardId, Envelope<Dst, Request>)> {
        self.clock += ns;
        self.node.pass(Timestamp(self.clock));
        let mut sent = Vec::new();
        self.node.outgoing(&mut sent);
        sent
    }

    /// Keys that this shard owns.
    fn keys(&self) -> Vec<u8> {
        let here = |key: &u8| self.node.base.home(TABLE, &Key::new(&[*key])) == HERE;
        (0..=u8::MAX).filter(here).collect()
    }

    fn handle(&mut self, from: ShardId, request: Request) -> Option<Reply<Dst>> {
        self.ticket += 1;
        match self.node.handle(from, &mut Envelope::Own(request), self.ticket) {
            Handled::Reply(Answer::Own(reply)) => Some(reply),
            Handled::Reply(_) => unreachable!("a request of the protocol's own has such a reply"),
            Handled::Done | Handled::Wait => None,
        }
    }

    fn start(
        &mut self,
        txn: TxnId,
        procedure: &Writes,
        stage: usize,
        pieces: &[usize],
    ) -> Option<Reply<Dst>> {
        let (least, pieces) = (Timestamp(self.clock), pieces.to_vec());
        let cargo = Some(Cargo::of(procedure));
        self.handle(txn.coordinator, Request::Start { txn, least, cargo, stage, pieces })
    }

    /// Starts the first stage of a transaction, which must succeed.
    fn started(&mut self, txn: TxnId, procedure: &Writes) -> StartResult {
        let pieces: Vec<usize> = (0..procedure.stages[0].len()).collect();
        match self.start(txn, procedure, 0, &pieces) {
            Some(Reply::Started(started)) => started.known,
            _ => panic!("{txn:?} has not started"),
        }
    }

    fn commit(&mut self, txn: TxnId, known: StartResult) -> Option<Reply<Dst>> {
        self.handle(txn.coordinator, Request::Commit { txn, known })
    }

    fn offences(&self) -> u64 {
        self.node.base.counters.offences
    }
}

fn is_decided(reply: Option<Reply<Dst>>) -> bool {
    matches!(reply, Some(Reply::Decided(_)))
}

fn is_refused(reply: Option<Reply<Dst>>) -> bool {
    matches!(reply, Some(Reply::Refused))
}

/// `known` with one more predecessor.
fn after(known: &StartResult, pred: Pred) -> StartResult {
    let mut known = known.clone();
    known.preds.push(pred);
    known
}

fn met(txn: TxnId, via: ShardId) -> Pred {
    Pred { txn, via, immediate: false }
}

#[test]
fn what_is_sent_again_is_answered_again_and_what_is_over_does_not_start() {
    let mut server = Server::new();
    let procedure = Writes::at_once(&server.keys()[..1]);
    let known = server.started(txn(1), &procedure);
    assert_eq!(server.started(txn(1), &procedure), known, "a START that is repeated");
    assert!(is_decided(server.commit(txn(1), known.clone())));
    assert!(is_decided(server.commit(txn(1), known.clone())), "a COMMIT that is repeated");
    assert_eq!(server.node.base.counters.locks, 1, "it has written once");
    server.handle(THERE, Request::End(txn(1)));
    assert!(matches!(server.start(txn(1), &procedure, 0, &[0]), Some(Reply::Over)));
    assert!(matches!(server.commit(txn(1), known), Some(Reply::Over)));
    assert_eq!((server.node.remembers(), server.offences()), (0, 0));
}

/// Attempt 5 hangs; every second of the others has no piece on this server.
#[test]
fn while_a_transaction_hangs_what_has_ended_is_remembered_as_two_ranges() {
    let mut over = Over::default();
    for number in (1..10_000).step_by(2).filter(|number| *number != 5) {
        over.ended(txn(number));
        if number % 32 == 1 {
            over.settled(THERE, 1..number, &[5]);
            assert!(over.len() <= 3, "{} ranges", over.len());
        }
    }
    assert!(over.contains(txn(4)) && !over.contains(txn(5)) && over.contains(txn(6)));
    assert!(!over.contains(of(ELSEWHERE, 4)));
    over.settled(THERE, 1..10_000, &[]);
    assert_eq!(over.len(), 1);
    // Any other statement.
    assert_eq!(over.settled(THERE, Range { start: 20_000, end: 1 }, &[7, 3]), 20_000);
    over.settled(THERE, u64::MAX..u64::MAX, &[u64::MAX]);
    over.ended(txn(u64::MAX));
    assert_eq!(over.len(), 1);
}

proptest! {
    #[test]
    fn what_is_over_is_what_has_ended_or_was_settled(
        steps in prop::collection::vec((any::<bool>(), 0u64..40, 0u64..40, prop::collection::btree_set(0u64..40, 0..6)), 0..30)
    ) {
        let (mut over, mut model) = (Over::default(), BTreeSet::new());
        for (ends, number, next, open) in steps {
            if ends {
                over.ended(txn(number));
                model.insert(number);
                continue;
            }
            let first_new = (number..).find(|number| !model.contains(number));
            let sorted: Vec<u64> = open.iter().copied().collect();
            prop_assert_eq!(Some(over.settled(THERE, number..next, &sorted)), first_new);
            model.extend((number..next).filter(|number| !open.contains(number)));
        }
        let gaps = (0..40).filter(|number| model.contains(number) && !model.contains(&(number + 1))).count();
        prop_assert_eq!(over.len(), gaps, "as few as can be");
        for number in 0..41 {
            prop_assert_eq!(over.contains(txn(number)), model.contains(&number));
        }
    }
}

#[test]
fn what_is_settled_is_forgotten_and_what_is_open_is_not() {
    let mut server = Server::new();
    let keys = server.keys();
    for number in 1..=3 {
        let known = server.started(txn(number), &Writes::at_once(&keys[number as usize..][..1]));
        assert!(is_decided(server.commit(txn(number), known)));
    }
    let known = server.started(of(ELSEWHERE, 2), &Writes::at_once(&keys[2..3]));
    assert!(is_decided(server.commit(of(ELSEWHERE, 2), known)));
    server.passes(0);
    assert_eq!(server.node.base.counters.graph.vertices, 4);
    server.handle(THERE, Request::Settled { first: 1, next: 4, open: vec![2] });
    for (txn, is_over) in [(txn(1), true), (txn(2), false), (txn(3), true), (of(ELSEWHERE, 2), false)] {
        let answer = server.start(txn, &Writes::at_once(&keys[txn.number as usize..][..1]), 0, &[0]);
        assert_eq!(matches!(answer, Some(Reply::Over)), is_over, "{txn:?}");
    }
    server.handle(THERE, Request::Settled { first: 1, next: 5, open: Vec::new() });
    server.handle(ELSEWHERE, Request::Settled { first: 1, next: 3, open: Vec::new() });
    assert_eq!(server.node.remembers(), 0);
    assert_eq!(server.passes(0).len(), 0);
    let Counters { graph, graph_max, .. } = server.node.base.counters;
    assert_eq!((graph, graph_max.vertices), (GraphSize::default(), 4));
    assert!(graph_max.bytes > 4 * size_of::<StartResult>() as u64);
}

/// The last clock sample of the server is an hour old when START comes.
#[test]
fn a_coordinator_has_been_silent_since_nothing_was_heard_of_it() {
    let mut server = Server::new();
    let procedure = Writes::at_once(&server.keys()[..1]);
    server.clock += 3600 * SECOND;
    server.started(txn(1), &procedure);
    server.passes(0);
    assert!(server.node.orphans().is_empty(), "it was heard of just now");
    server.passes(SECOND);
    server.started(txn(1), &procedure);
    assert!(server.node.orphans().is_empty(), "and again");
    server.passes(SECOND);
    assert_eq!(server.node.orphans().len(), 1);
    assert!(server.node.orphans().is_empty(), "somebody is at it");
}

/// Loses the first answers; notes how long the caller sleeps.
#[derive(Clone)]
struct Deaf {
    node: Rc<RefCell<Rococo<Dst>>>,
    slept_ns: Rc<RefCell<Vec<u64>>>,
}

/// How many repetitions of a call lose their answer.
const LOST: usize = 12;

impl Tasks for Deaf {
    fn shard(&self) -> ShardId {
        HERE
    }

    fn shards(&self) -> usize {
        3
    }

    fn clock(&self) -> Timestamp {
        Timestamp::ZERO
    }

    fn random(&self) -> u64 {
        0
    }

    fn messages(&self) -> u64 {
        0
    }

    fn pending(&self) -> Pending {
        Pending { tasks: 0, calls: 0, requests: 0 }
    }

    fn sleep(&self, ns: u64) -> Sleep {
        self.slept_ns.borrow_mut().push(ns);
        Sleep::default()
    }

    fn stable(&self) -> Stable {
        Stable::default()
    }

    fn appended(&self) -> Appended {
        Appended::default()
    }

    fn pause(&self) -> Pause {
        Pause::default()
    }

    fn give_way(&self) -> Pause {
        Pause::default()
    }

    fn accept(&self) -> Accept {
        unreachable!("nothing here has connections")
    }

    fn attach(&self, _: Detached) -> Stream {
        unreachable!("nothing here has connections")
    }

    fn start(&self, _: Task) {}
}

impl Env<Rococo<Dst>> for Deaf {
    fn local<R>(&self, work: impl FnOnce(&mut Rococo<Dst>) -> R) -> R {
        work(&mut self.node.borrow_mut())
    }

    fn call(
        &self,
        _: ShardId,
        _: Envelope<Dst, Request>,
    ) -> impl Future<Output = Result<Answer<Dst, Reply<Dst>>, Unknown>> + 'static {
        let answered = self.slept_ns.borrow().len() > LOST;
        ready(if answered { Ok(Answer::Own(Reply::Refused)) } else { Err(Unknown) })
    }

    fn send(&self, _: ShardId, _: Envelope<Dst, Request>) {}

    fn spawn_on<F>(&self, _: ShardId, _: impl FnOnce(Self) -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        unreachable!("nothing here starts a task elsewhere")
    }

    fn disk(&self) -> Option<Disk> {
        None
    }
}

#[test]
fn who_is_not_answered_asks_again_after_ever_longer_pauses() {
    let env = Deaf { node: Rc::new(RefCell::new(Server::new().node)), slept_ns: Rc::default() };
    let again = || Request::Ask(txn(1));
    let asked = insist(&env, THERE, ask(&env, THERE, again()), again);
    let answer = pin!(asked).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(answer, Poll::Ready(Ok(Reply::Refused))));
    let slept_ns = env.slept_ns.borrow();
    assert!(slept_ns.windows(2).all(|pair| pair[1] == (2 * pair[0]).min(RETRY_MAX_NS)));
    assert_eq!((slept_ns[0], slept_ns[LOST]), (RETRY_NS, RETRY_MAX_NS));
}

#[test]
fn a_start_that_makes_no_sense_is_refused() {
    let mut server = Server::new();
    let (keys, all) = (server.keys(), (0..=u8::MAX).collect::<Vec<u8>>());
    let away: Vec<u8> = all.into_iter().filter(|key| !keys.contains(key)).collect();
    let here = Writes::at_once(&keys[..2]);
    for pieces in [&[][..], &[2], &[0, 0], &[1, 0], &[0, usize::MAX]] {
        assert!(is_refused(server.start(txn(1), &here, 0, pieces)), "{pieces:?}");
    }
    assert!(is_refused(server.start(txn(1), &here, usize::MAX, &[0])));
    assert!(is_refused(server.start(txn(1), &Writes::at_once(&away[..1]), 0, &[0])));
    assert!(is_refused(server.start(txn(1 << 63), &here, 0, &[0])));
    let without_a_beginning = Writes { stages: vec![Vec::new(), keys.clone()], ..Writes::default() };
    assert!(is_refused(server.start(txn(1), &without_a_beginning, 1, &[0])));
    assert!(is_refused(server.start(of(ShardId(9), 1), &here, 0, &[0])));
    assert_eq!((server.offences(), server.node.remembers()), (10, 0));
    // Another procedure under the id of one that has started, and other pieces of the same.
    server.started(txn(1), &here);
    assert!(is_refused(server.start(txn(1), &Writes::at_once(&keys[..3]), 0, &[0, 1, 2])));
    assert!(is_refused(server.start(txn(1), &here, 0, &[1])));
    assert_eq!(server.offences(), 12);
}

#[test]
fn a_commit_that_says_what_is_not_so_is_refused() {
    let mut server = Server::new();
    let procedure = Writes::at_once(&server.keys()[..1]);
    server.started(txn(1), &procedure);
    let known = server.started(txn(2), &procedure);
    assert_eq!(known.preds, [Pred { txn: txn(1), via: HERE, immediate: true }]);
    let lies = [
        after(&known, met(txn(2), THERE)),
        after(&known, met(txn(7), ShardId(9))),
        after(&known, met(of(ShardId(9), 7), THERE)),
        after(&known, met(txn(7), HERE)),
        StartResult { preds: Vec::new(), ..known.clone() },
        StartResult { preds: vec![met(txn(1), HERE)], ..known.clone() },
        StartResult { tentative: Timestamp(1), ..known.clone() },
    ];
    let count = lies.len() as u64;
    for lie in lies {
        assert!(is_refused(server.commit(txn(2), lie.clone())), "{lie:?}");
    }
    assert_eq!(server.offences(), count);
    // It is not lost: a true COMMIT continues it.
    let first = server.started(txn(1), &procedure);
    assert!(server.commit(txn(2), known).is_none(), "it waits");
    assert!(is_decided(server.commit(txn(1), first)));
    assert_eq!(server.node.released().len(), 2, "the second, and the first itself");
    assert_eq!(server.offences(), count);
}

/// A predecessor that never existed, and a server that says so each time.
#[test]
fn an_invented_predecessor_keeps_nobody_busy() {
    let mut server = Server::new();
    let procedure = Writes::at_once(&server.keys()[..1]);
    let known = server.started(txn(1), &procedure);
    assert!(server.commit(txn(1), after(&known, met(txn(77), ELSEWHERE))).is_none());
    let asks = |server: &mut Server| {
        let mut asks = 0;
        while let [(ELSEWHERE, Envelope::Own(Request::Ask(_)))] = server.passes(1000)[..] {
            asks += 1;
            server.handle(ELSEWHERE, Request::Answer(vec![TxnReport::Gone(txn(77))]));
        }
        asks
    };
    assert_eq!(asks(&mut server), ASKS_MAX);
    assert_eq!(asks(&mut server), 0);
    // A later answer may be better.
    server.node.orphans();
    assert_eq!(asks(&mut server), ASKS_MAX);
    server.node.orphans();
    let better = StartResult { tentative: known.tentative, preds: Vec::new(), noop: false };
    assert_eq!(server.passes(1000).len(), 1);
    server.handle(ELSEWHERE, Request::Answer(vec![TxnReport::Known(txn(77), better)]));
    assert_eq!(server.node.released().len(), 1, "then it is decided");
    assert_eq!(server.offences(), 0);
}

#[test]
fn an_answer_that_cannot_be_is_not_believed() {
    let mut server = Server::new();
    let procedure = Writes::at_once(&server.keys()[..1]);
    let known = server.started(txn(1), &procedure);
    let stamp = Timestamp(known.tentative.0 + 10);
    let member = |txn, stamp| Member { txn, stamp, noop: false };
    let asked = txn(77);
    // An answer that was not asked for.
    server.handle(ELSEWHERE, Request::Answer(vec![TxnReport::Fixed(vec![member(asked, stamp)])]));
    assert_eq!(server.node.remembers(), 4, "its item, its write and who writes it, and itself");
    assert!(server.commit(txn(1), after(&known, met(asked, ELSEWHERE))).is_none());
    server.handle(THERE, Request::Answer(vec![TxnReport::Fixed(vec![member(asked, stamp)])]));
    assert_eq!(server.offences(), 0, "they were not meant");
    let own = after(&known, met(asked, ELSEWHERE));
    let lies = [
        vec![TxnReport::Fixed(vec![member(asked, stamp), member(txn(2), stamp)])],
        vec![TxnReport::Fixed(vec![member(txn(2), stamp.next()), member(asked, stamp)])],
        vec![TxnReport::Fixed(vec![member(asked, stamp), member(of(ShardId(9), 2), stamp.next())])],
        vec![TxnReport::Gone(asked), TxnReport::Fixed(Vec::new())],
        vec![TxnReport::Known(asked, after(&known, met(asked, THERE)))],
        vec![TxnReport::Known(asked, after(&known, met(txn(2), ShardId(9))))],
        vec![TxnReport::Gone(asked), TxnReport::Known(txn(1), after(&own, met(txn(2), HERE)))],
    ];
    let count = lies.len() as u64;
    for lie in lies {
        server.handle(ELSEWHERE, Request::Answer(lie.clone()));
        assert!(server.node.released().is_empty(), "{lie:?}");
    }
    assert_eq!(server.offences(), count);
    // A component that contradicts what has started here: the stamp is below the one that START has
    // found.
    let early = Timestamp(known.tentative.0 - 1);
    server.handle(
        ELSEWHERE,
        Request::Answer(vec![TxnReport::Fixed(vec![member(txn(1), early), member(asked, stamp)])]),
    );
    assert!(server.node.released().is_empty());
    assert!(server.offences() > count);
}

#[test]
fn servers_that_fix_a_transaction_at_two_stamps_are_not_both_believed() {
    let mut server = Server::new();
    let keys = server.keys();
    let member = |txn, stamp| Member { txn, stamp: Timestamp(stamp), noop: false };
    let fixed = |members: &[Member]| Request::Answer(vec![TxnReport::Fixed(members.to_vec())]);
    let first = server.started(txn(1), &Writes::at_once(&keys[..1]));
    let second = server.started(txn(2), &Writes::at_once(&keys[1..2]));
    let stamp = first.tentative.0 + 100;
    server.commit(txn(1), after(&first, met(txn(77), ELSEWHERE)));
    server.handle(ELSEWHERE, fixed(&[member(txn(77), stamp)]));
    assert_eq!(server.node.released().len(), 1);
    server.commit(txn(2), after(&second, met(txn(78), ELSEWHERE)));
    server.handle(ELSEWHERE, fixed(&[member(txn(77), stamp + 1), member(txn(78), stamp + 2)]));
    assert_eq!((server.node.released().len(), server.offences()), (1, 1));
}

/// Each of the two says that it has executed after the other.
#[test]
fn immediate_pieces_that_are_said_to_make_a_cycle_are_ordered_all_the_same() {
    let mut server = Server::new();
    let known = server.started(txn(1), &Writes::at_once(&server.keys()[..1]));
    let at_once = |txn| Pred { txn, via: ELSEWHERE, immediate: true };
    assert!(server.commit(txn(1), after(&known, at_once(txn(2)))).is_none());
    let other = StartResult { preds: vec![at_once(txn(1))], ..known };
    server.handle(ELSEWHERE, Request::Answer(vec![TxnReport::Known(txn(2), other)]));
    assert_eq!((server.node.released().len(), server.offences()), (1, 1));
}

#[test]
fn a_deferred_piece_that_says_no_does_no_harm() {
    let mut server = Server::new();
    // The row exists, so the insert fails.
    let procedure = Writes { inserts: true, later: true, ..Writes::at_once(&server.keys()[..1]) };
    let known = server.started(txn(1), &procedure);
    assert!(is_decided(server.commit(txn(1), known)));
    server.handle(THERE, Request::End(txn(1)));
    assert_eq!((server.offences(), server.node.remembers(), server.node.base.store.locks()), (1, 0, 0));
}

#[test]
fn a_table_that_does_not_exist_is_elsewhere() {
    let mut server = Server::new();
    for column in [TableId(9).row(), TABLE.group(9)] {
        let mut reads = Reads::default();
        reads.get(column, Key::new(&[server.keys()[0]]));
        let answer = server.handle(THERE, Request::ReadDecided { txn: txn(1), reads });
        assert!(matches!(answer, Some(Reply::Elsewhere)), "{column:?}");
    }
}

#[test]
fn outputs_of_another_procedure_are_not_taken_over() {
    let mut short = Writes::at_once(&[1]);
    let long = Writes::at_once(&[1, 2]);
    // An index out of range would panic.
    Shipped::absorb(&mut short, Piece { stage: 0, number: 1 }, &long);
    Shipped::absorb(&mut long.clone(), Piece { stage: 0, number: 1 }, &short);
    Shipped::absorb(&mut short, Piece { stage: 7, number: 0 }, &long);
    Shipped::absorb(&mut short, Piece { stage: 0, number: 0 }, &long);
}

/// A random message of another process: its kind, its sender, its transaction, and numbers for the
/// rest.
type Said = (u8, u16, (u64, u16), u64, Vec<(u64, u16, u16, bool)>);

fn said() -> impl Strategy<Value = Said> {
    let preds = prop::collection::vec((1u64..5, 0u16..4, 0u16..4, any::<bool>()), 0..4);
    (0u8..11, 1u16..3, (1u64..5, 0u16..4), any::<u64>(), preds)
}

impl Server {
    /// Handles a message, which may be a lie. Others answer ASKs and commit started transactions
    /// truthfully.
    fn told(
        &mut self,
        (kind, from, (number, coordinator), any, preds): Said,
        so: &mut Vec<(TxnId, StartResult)>,
    ) {
        let (from, txn) = (ShardId(from), of(ShardId(coordinator), number));
        let keys = self.keys();
        let near = |any: u64| Timestamp(self.clock - 2 + any % 5);
        let preds = preds.into_iter().map(|(number, coordinator, via, immediate)| Pred {
            txn: of(ShardId(coordinator), number),
            via: ShardId(via),
            immediate,
        });
        let (preds, tentative) = (preds.collect::<Vec<_>>(), near(any));
        let lie = StartResult { tentative, preds, noop: any % 7 == 0 };
        let known = |lie: StartResult| match so.iter().find(|(started, _)| *started == txn && any % 4 > 0) {
            Some((_, known)) if any % 4 > 1 => known.clone(),
            Some((_, known)) => {
                let preds = known.preds.iter().chain(lie.preds.iter().filter(|pred| pred.via != HERE));
                StartResult { preds: preds.copied().collect(), ..known.clone() }
            }
            None => lie,
        };
        let request = match kind {
            0..=2 => {
                let procedure = Writes {
                    stages: vec![
                        keys[..(any % 4) as usize].to_vec(),
                        keys[2..(2 + any % 3) as usize].to_vec(),
                    ],
                    later: any % 3 == 0,
                    inserts: any % 5 == 0,
                };
                let pieces = (0..(any >> 8) as usize % 3).collect();
                let cargo = Some(Cargo::of(&procedure));
                Request::Start { txn, least: near(any >> 4), cargo, stage: (any >> 6) as usize % 2, pieces }
            }
            3..=5 => Request::Commit { txn, known: known(lie) },
            6 => Request::Answer(vec![TxnReport::Known(txn, known(lie))]),
            7 => {
                let member = |(at, pred): (usize, &Pred)| Member {
                    txn: if at == 0 { txn } else { pred.txn },
                    stamp: Timestamp(tentative.0 + at as u64 * (any >> 3 & 1)),
                    noop: pred.immediate,
                };
                Request::Answer(vec![TxnReport::Fixed(lie.preds.iter().enumerate().map(member).collect())])
            }
            8 => Request::Answer(vec![TxnReport::Gone(txn)]),
            9 if any % 2 == 0 => Request::Ask(txn),
            9 => Request::End(txn),
            _ if any % 3 == 0 => Request::Remind,
            _ => Request::Settled {
                first: any >> 2 & 3,
                next: any >> 4 & 7,
                open: lie.preds.iter().map(|pred| pred.txn.number).collect(),
            },
        };
        if let Some(Reply::Started(started)) = self.handle(from, request) {
            so.retain(|(started, _)| *started != txn);
            so.push((txn, started.known));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_server_survives_whatever_others_say(all in prop::collection::vec(said(), 1..60)) {
        let (mut server, mut so) = (Server::new(), Vec::new());
        for said in all {
            if said.3 % 16 == 0 {
                server.node.orphans();
            }
            let ns = said.3 % SECOND;
            server.told(said, &mut so);
            let sent = server.passes(ns);
            prop_assert!(sent.len() < 100, "{} messages because of one", sent.len());
        }
    }
}
