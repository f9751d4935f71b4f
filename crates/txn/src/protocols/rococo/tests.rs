mod between;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use plimsoll_runtime::{
    Accept, Appended, Detached, Disk, Env, Handled, LowWater, Participant, Pause, Sleep, Stable, Stream,
    Task, Tasks, Unknown,
};
use plimsoll_types::{
    Abort, IndexKind, Key, Partitioning, ShardId, Slot, TableId, TableSpec, Timestamp, TxnId,
};
use proptest::prelude::*;

use super::execution::{Effects, Execution, Pending};
use super::graph::{Component, Graph, Pred, StartResult, TxnReport};
use super::{Reply, Request, Rococo, rounds};
use crate::attempt::ProtocolOptions;
use crate::base::{Base, Layout};
use crate::envelope::{Answer, Envelope};
use crate::procedure::{Access, Piece, Procedure, Reads, Scan};
use crate::protocol::Protocol;
use crate::shipped::AnyAccess;
use crate::testing::scheme_config;
use crate::timestamps::{Dst, NoTimestamps};
use crate::work::Footprint;

fn txn(number: u64) -> TxnId {
    TxnId { coordinator: ShardId(0), number }
}

fn known(tentative: u64, preds: &[(u64, bool)]) -> StartResult {
    let pred = |&(number, immediate)| Pred { txn: txn(number), via: ShardId(0), immediate };
    StartResult { tentative: Timestamp(tentative), preds: preds.iter().map(pred).collect(), noop: false }
}

fn graph(vertices: &[(u64, StartResult)]) -> Graph {
    let mut graph = Graph::default();
    for (number, known) in vertices {
        graph.learn(txn(*number), known.clone());
    }
    graph
}

fn stamps(component: &Component) -> Vec<(u64, u64)> {
    component.iter().map(|member| (member.txn.number, member.stamp.0)).collect()
}

/// Two transactions that start one after the other on one item find the same bound there.
#[test]
fn a_stamp_is_above_those_before_it_whatever_its_start_phase_found() {
    let mut graph = graph(&[(1, known(10, &[])), (2, known(10, &[(1, false)]))]);
    let fixed = graph.fix(txn(2)).expect("both are known");
    assert_eq!(fixed.iter().map(stamps).collect::<Vec<_>>(), [[(1, 10)], [(2, 11)]]);
}

/// T2 → T0 and T0 → T2 are a cycle. T1 has only T0 as predecessor; T2, which is ordered after T0,
/// must be before T1 as well.
#[test]
fn who_is_in_a_cycle_with_a_predecessor_counts_as_well() {
    let mut graph =
        graph(&[(0, known(5, &[(2, false)])), (2, known(20, &[(0, false)])), (1, known(7, &[(0, false)]))]);
    let fixed = graph.fix(txn(1)).expect("all are known");
    assert_eq!(fixed.iter().map(stamps).collect::<Vec<_>>(), [vec![(0, 20), (2, 21)], vec![(1, 22)]]);
}

#[test]
fn what_has_been_executed_in_an_order_keeps_it_and_ties_go_to_the_smaller_id() {
    // T3 has executed before T1 on some server; T2 has no immediate edge.
    let mut graph = graph(&[
        (1, known(1, &[(3, true), (2, false)])),
        (2, known(1, &[(1, false)])),
        (3, known(1, &[(2, false)])),
    ]);
    let fixed = graph.fix(txn(1)).expect("all are known");
    assert_eq!(fixed.iter().map(stamps).collect::<Vec<_>>(), [[(2, 1), (3, 2), (1, 3)]]);
}

#[test]
fn whoever_is_not_known_is_asked_for_where_they_met() {
    let mut graph = graph(&[(2, known(1, &[(1, false)])), (3, known(1, &[(2, true), (4, false)]))]);
    let unknown = graph.fix(txn(3)).expect_err("1 and 4 are not known");
    assert_eq!(unknown.iter().map(|pred| pred.txn.number).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(graph.component(txn(2)), None);
}

#[test]
fn old_news_of_a_member_of_a_component_does_not_take_it_out() {
    let vertices = [(1, known(9, &[(2, false)])), (2, known(3, &[(1, false)]))];
    let mut graph = graph(&vertices);
    graph.fix(txn(1)).expect("both are known");
    graph.forget(txn(2));
    let [_, (_, two)] = vertices;
    graph.learn(txn(2), two);
    assert_eq!(graph.stamp(txn(2)), Some(Timestamp(10)));
}

#[test]
fn a_chain_as_long_as_a_hot_item_can_make_it_is_fixed_without_recursion() {
    let mut graph = Graph::default();
    for number in 1..100_000 {
        graph.learn(txn(number), known(number % 7, &[(number - 1, true)]));
    }
    graph.learn(txn(0), known(0, &[]));
    assert_eq!(graph.fix(txn(99_999)).expect("all are known").len(), 100_000);
}

proptest! {
    /// Each server knows another part of the graph, learns the rest in another order, fixes in
    /// another order, and may be told what others have fixed.
    #[test]
    fn every_server_fixes_everybody_at_the_same_stamp_above_all_predecessors(
        edges in prop::collection::vec((0u64..10, 0u64..10), 0..30),
        tentative in prop::collection::vec(0u64..20, 10),
        order in Just((0u64..10).collect::<Vec<_>>()).prop_shuffle(),
        other in Just((0u64..10).collect::<Vec<_>>()).prop_shuffle(),
        told in 0usize..10,
    ) {
        let mut preds: BTreeMap<u64, Vec<(u64, bool)>> = BTreeMap::new();
        for (pred, number) in edges {
            if pred != number {
                preds.entry(number).or_default().push((pred, false));
            }
        }
        let vertex = |number: u64| {
            known(tentative[number as usize], preds.get(&number).map_or(&[][..], Vec::as_slice))
        };
        let mut first = Graph::default();
        for &number in &order {
            first.learn(txn(number), vertex(number));
        }
        for &number in &order {
            first.fix(txn(number)).expect("all are known");
        }
        // The second server is told by the first about one transaction before it knows anything
        // itself.
        let mut second = Graph::default();
        for news in first.tell(txn(other[told])) {
            match news {
                TxnReport::Known(txn, known) => second.learn(txn, known),
                TxnReport::Fixed(members) => second.learn_fixed(&members.into()),
                TxnReport::Gone(_) => unreachable!("nothing was forgotten"),
            }
        }
        for &number in &other {
            second.learn(txn(number), vertex(number));
        }
        for &number in &other {
            second.fix(txn(number)).expect("all are known");
        }
        for number in 0..10 {
            let stamp = first.stamp(txn(number));
            prop_assert_eq!(stamp, second.stamp(txn(number)));
            let component = first.component(txn(number)).expect("all are fixed");
            for (pred, _) in preds.get(&number).into_iter().flatten() {
                let inside = component.iter().any(|member| member.txn == txn(*pred));
                prop_assert!(inside || first.stamp(txn(*pred)) < stamp);
            }
        }
    }
}

/// V deletes a key, T finds it absent, V is decided, and the row is collected before T is decided.
#[test]
fn a_pending_delete_that_was_read_is_pinned_where_the_key_would_be_and_not_where_it_was() {
    let table = TableId(0);
    for index in [IndexKind::Hash, IndexKind::Ordered] {
        let tables = vec![TableSpec::new("t", index, Partitioning::Modulo { bytes: 1 })];
        let layout = Layout::in_one_process(tables, 1);
        let low_water = LowWater::new(1, 1);
        let mut base: Base<Dst> = Base::new(&layout, &scheme_config(0, 1), low_water);
        let (mut pending, key) = (Pending::default(), Key::new(&[7]));
        base.store.load(table, &key, &[b"there"]);
        let mut doings = [Effects::default(), Effects::default()];
        let [deletes, reads] = &mut doings;
        let mut observed = Timestamp::ZERO;
        let (v, t, least) = (txn(1), txn(2), Timestamp(10));
        let deleted =
            Execution::new(&mut base, &mut pending, v, &mut observed, deletes, least).delete_any(table, &key);
        assert_eq!(deleted, Ok(()));
        let mut execution = Execution::new(&mut base, &mut pending, t, &mut observed, reads, least);
        assert_eq!(execution.get_any(table.row(), &key), Ok(None));
        let [deletes, reads] = doings;
        deletes.install(&mut base, &mut pending, v, Timestamp(50));
        base.store.collect(|_| true, |_, _| true);
        assert!(base.store.find(table.row(), &key).row().is_none(), "the row is gone");
        reads.install(&mut base, &mut pending, t, Timestamp(151));
        let cover = base.store.find(table.row(), &key).cover();
        assert!(base.store.bound(None, table, cover) >= Timestamp(151), "whoever inserts it comes after T");
        assert_eq!(pending.len(), 0);
    }
}

/// Reads an absent key, or the range around it.
struct Look {
    scans: bool,
    found: bool,
}

const LOOKED_AT: TableId = TableId(0);

fn looked_for() -> Key {
    Key::new(&[7])
}

impl Procedure for Look {
    fn read_only(&self) -> bool {
        true
    }

    fn stage(&self, stage: usize) -> usize {
        usize::from(stage == 0)
    }

    fn home(&self, _: Piece) -> Slot {
        Slot(7)
    }

    fn reads(&self, _: Piece, reads: &mut Reads) {
        match self.scans {
            true => reads.scan(Scan::prefix(LOOKED_AT.row(), looked_for())),
            false => reads.get(LOOKED_AT.row(), looked_for()),
        }
    }

    fn execute<A: Access>(&mut self, _: Piece, access: &mut A) -> Result<(), Abort> {
        self.found = false;
        if self.scans {
            let scan = Scan::prefix(LOOKED_AT.row(), looked_for());
            return access.scan(&scan, |_, _| {
                self.found = true;
                ControlFlow::Continue(())
            });
        }
        self.found = access.get(LOOKED_AT.row(), &looked_for())?.is_some();
        Ok(())
    }
}

crate::executable!(Look);

/// A shard by itself that answers at once. After its first answer the key is inserted and deleted.
#[derive(Clone)]
struct Alone {
    node: Rc<RefCell<Rococo<NoTimestamps>>>,
    answers: Rc<Cell<usize>>,
    collects: bool,
}

impl Alone {
    fn insert_and_delete(&self) {
        let base = &mut self.node.borrow_mut().base;
        for (number, value) in [(1, Some(&b"there"[..])), (2, None)] {
            let (mut pending, mut doings) = (Pending::default(), Effects::default());
            let (txn, stamp, mut observed) = (txn(number), Timestamp(number), Default::default());
            let mut execution = Execution::new(base, &mut pending, txn, &mut observed, &mut doings, stamp);
            let written = match value {
                Some(value) => execution.insert_any(LOOKED_AT, &looked_for(), &[value]),
                None => execution.delete_any(LOOKED_AT, &looked_for()),
            };
            assert_eq!(written, Ok(()));
            doings.install(base, &mut pending, txn, stamp);
        }
        if self.collects {
            base.store.collect(|_| true, |_, _| true);
        }
    }
}

impl Tasks for Alone {
    fn shard(&self) -> ShardId {
        ShardId(0)
    }

    fn shards(&self) -> usize {
        1
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

    fn pending(&self) -> plimsoll_runtime::Pending {
        plimsoll_runtime::Pending { tasks: 0, calls: 0, requests: 0 }
    }

    fn sleep(&self, _: u64) -> Sleep {
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

impl Env<Rococo<NoTimestamps>> for Alone {
    fn local<R>(&self, work: impl FnOnce(&mut Rococo<NoTimestamps>) -> R) -> R {
        work(&mut self.node.borrow_mut())
    }

    fn call(
        &self,
        to: ShardId,
        mut request: Envelope<NoTimestamps, Request>,
    ) -> impl Future<Output = Result<Answer<NoTimestamps, Reply<NoTimestamps>>, Unknown>> + 'static {
        let handled = self.node.borrow_mut().handle(to, &mut request, 0);
        let Handled::Reply(reply) = handled else { unreachable!("there is nobody to wait for") };
        if self.answers.replace(self.answers.get() + 1) == 0 {
            self.insert_and_delete();
        }
        ready(Ok(reply))
    }

    fn send(&self, _: ShardId, _: Envelope<NoTimestamps, Request>) {}

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

/// The key has no version before and none after, so two rounds that compared versions would agree.
#[test]
fn rounds_that_find_a_key_absent_do_not_agree_if_it_was_there_in_between() {
    let setups = [(IndexKind::Hash, false), (IndexKind::Ordered, false), (IndexKind::Ordered, true)];
    for ((index, scans), collects) in setups.into_iter().flat_map(|setup| [(setup, false), (setup, true)]) {
        let tables = vec![TableSpec::new("t", index, Partitioning::Modulo { bytes: 1 })];
        let base = Base::new(&Layout::in_one_process(tables, 1), &scheme_config(0, 1), LowWater::new(1, 1));
        let node = Rc::new(RefCell::new(Rococo::new(base, ProtocolOptions::default())));
        let env = Alone { node, answers: Rc::default(), collects };
        let (mut look, mut work) = (Look { scans, found: true }, Footprint::default());
        let done =
            pin!(rounds::read(&env, &mut look, &mut work)).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(done, Poll::Ready(Ok(())));
        assert!(!look.found);
        assert_eq!(env.answers.get(), 3, "the second round differs from the first, the third does not");
    }
}

#[test]
fn a_scan_from_either_end_meets_the_writes_of_undecided_transactions_in_their_places() {
    let tables = vec![TableSpec::new("t", IndexKind::Ordered, Partitioning::Modulo { bytes: 1 })];
    let mut base: Base<Dst> =
        Base::new(&Layout::in_one_process(tables, 1), &scheme_config(0, 1), LowWater::new(1, 1));
    let (mut pending, mut observed) = (Pending::default(), Default::default());
    let key = |number: u8| Key::new(&[7, number]);
    let mut run = |number: u64, work: &mut dyn FnMut(&mut Execution<'_, Dst>), decide: bool| {
        let (mut doings, stamp) = (Effects::default(), Timestamp(number));
        work(&mut Execution::new(&mut base, &mut pending, txn(number), &mut observed, &mut doings, stamp));
        if decide {
            doings.install(&mut base, &mut pending, txn(number), stamp);
        }
    };
    let mut load = |execution: &mut Execution<'_, Dst>| {
        for number in [1, 3, 5] {
            assert_eq!(execution.insert_any(TableId(0), &key(number), &[&[number]]), Ok(()));
        }
    };
    run(1, &mut load, true);
    let mut undecided = |execution: &mut Execution<'_, Dst>| {
        assert_eq!(execution.insert_any(TableId(0), &key(4), &[&[4]]), Ok(()));
        assert_eq!(execution.delete_any(TableId(0), &key(3)), Ok(()));
        assert_eq!(execution.put_any(TableId(0).row(), &key(1), &[10]), Ok(()));
    };
    run(2, &mut undecided, false);
    let whole = Scan::prefix(TableId(0).row(), Key::new(&[7]));
    for (scan, expected) in [
        (whole.clone(), &[10, 4, 5][..]),
        (whole.clone().descending(), &[5, 4, 10]),
        (whole.clone().descending().limit(2), &[5, 4]),
        (Scan::range(whole.column, key(2), key(5)).descending(), &[4]),
        (Scan::range(whole.column, key(5), key(2)).descending(), &[]),
    ] {
        let mut look = |execution: &mut Execution<'_, Dst>| {
            let mut seen = Vec::new();
            let mut see = |_: &Key, value: &[u8]| {
                seen.push(value[0]);
                ControlFlow::Continue(())
            };
            assert_eq!(execution.scan_any(&scan, &mut see), Ok(()));
            assert_eq!(seen, expected, "{scan:?}");
        };
        run(3, &mut look, false);
    }
}
