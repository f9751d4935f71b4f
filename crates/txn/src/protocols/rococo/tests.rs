use std::collections::BTreeMap;

use plimsoll_runtime::LowWater;
use plimsoll_types::{IndexKind, Key, Partitioning, ShardId, TableId, TableSpec, Timestamp, TxnId};
use proptest::prelude::*;

use super::execution::{Doings, Execution, Pending};
use super::graph::{Component, Graph, Known, Pred, Told};
use crate::base::{Base, Layout};
use crate::shipped::AnyAccess;
use crate::testing::scheme_config;
use crate::timestamps::Dst;

fn txn(number: u64) -> TxnId {
    TxnId { coordinator: ShardId(0), number }
}

fn known(tentative: u64, preds: &[(u64, bool)]) -> Known {
    let pred = |&(number, immediate)| Pred { txn: txn(number), via: ShardId(0), immediate };
    Known { tentative: Timestamp(tentative), preds: preds.iter().map(pred).collect(), noop: false }
}

fn graph(vertices: &[(u64, Known)]) -> Graph {
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

/// T2 → T0 and T0 → T2 are a cycle; T1 has met T0 only, which T2 came after on the same item.
#[test]
fn who_is_in_a_cycle_with_a_predecessor_counts_as_well() {
    let mut graph =
        graph(&[(0, known(5, &[(2, false)])), (2, known(20, &[(0, false)])), (1, known(7, &[(0, false)]))]);
    let fixed = graph.fix(txn(1)).expect("all are known");
    assert_eq!(fixed.iter().map(stamps).collect::<Vec<_>>(), [vec![(0, 20), (2, 21)], vec![(1, 22)]]);
}

#[test]
fn what_has_been_executed_in_an_order_keeps_it_and_ties_go_to_the_smaller_id() {
    // T3 has executed before T1 somewhere; T2 is bound by nothing.
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
    /// Each server knows another part of the graph, learns the rest in another order, and fixes in another order, and some
    /// are told what others have fixed.
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
        // The second hears from the first of one transaction before it knows anything itself.
        let mut second = Graph::default();
        for news in first.tell(txn(other[told])) {
            match news {
                Told::Known(txn, known) => second.learn(txn, known),
                Told::Fixed(members) => second.learn_fixed(&members.into()),
                Told::Gone(_) => unreachable!("nothing was forgotten"),
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

/// V deletes a key, T reads that it is gone, V is decided, and its row is collected before T is decided.
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
        let mut doings = [Doings::default(), Doings::default()];
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
        base.store.collect(|_| true);
        assert!(base.store.find(table, &key).row().is_none(), "the row is gone");
        reads.install(&mut base, &mut pending, t, Timestamp(151));
        let cover = base.store.find(table, &key).cover();
        assert!(base.store.bound(None, table, cover) >= Timestamp(151), "whoever inserts it comes after T");
        assert_eq!(pending.len(), 0);
    }
}
