//! Ratio and degree, measured over simulated placements.

use std::collections::BTreeMap;

use super::*;

/// A placement as a database makes it: every warehouse on a node at random, with these numbers per
/// node.
fn scattered(counts: &[u32], rng: &mut Rng) -> Placement {
    let nodes = counts.iter().enumerate().flat_map(|(node, &n)| vec![node as u32; n as usize]);
    let mut node_of: Vec<u32> = nodes.collect();
    for i in (1..node_of.len()).rev() {
        node_of.swap(i, rng.below(i as u64 + 1) as usize);
    }
    Placement::exact(node_of).expect("a placement")
}

/// Ratio, mean degree of those that spread, and share on several nodes of so many transactions with
/// even homes.
fn measure(
    distribution: &Distribution,
    placement: &Placement,
    transactions: u32,
    rng: &mut Rng,
) -> (f64, f64, f64) {
    let (mut spread, mut nodes_sum, mut distributed) = (0u32, 0usize, 0u32);
    let mut chosen = Vec::new();
    for _ in 0..transactions {
        let home = placement.first() + rng.below(u64::from(placement.warehouses())) as u32;
        distribution.choose(home, rng, &mut chosen);
        let nodes = placement.nodes_of(&chosen).expect("known");
        distributed += u32::from(nodes > 1);
        if chosen.len() > 1 {
            spread += 1;
            nodes_sum += nodes;
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(transactions);
    (share(spread), nodes_sum as f64 / f64::from(spread.max(1)), share(distributed))
}

fn within(measured: f64, intended: f64, tolerance: f64) -> bool {
    (measured - intended).abs() <= tolerance * intended
}

/// Placements: 20 warehouses per node, and node shares that differ by up to 16.
fn placements(rng: &mut Rng) -> Vec<Placement> {
    let mut placements = Vec::new();
    for nodes in [3u32, 9, 15] {
        placements.push(scattered(&vec![20; nodes as usize], rng));
        let uneven: Vec<f64> = (0..nodes).map(|node| 1.0 + f64::from(node * node % 16)).collect();
        let counts = Placement::shares(&uneven, 20 * nodes).expect("shares").warehouses_by_node().to_vec();
        placements.push(scattered(&counts, rng));
    }
    placements
}

#[test]
fn ratio_and_degree_are_within_two_percent_of_what_was_asked_for() {
    let mut rng = Rng::new(1, 1);
    for placement in placements(&mut rng) {
        for degree in [2.0, 2.5, 3.0, 5.0, 8.0, 14.0] {
            if degree > placement.nodes() as f64 {
                continue;
            }
            for ratio in [0.2, 1.0] {
                let target = Target { ratio, degree };
                for distribution in [
                    Distribution::drawn(&placement, None, target).expect("possible"),
                    Distribution::aimed(&placement, target).expect("possible"),
                ] {
                    let transactions = (30_000.0 / ratio) as u32;
                    let (spread, nodes, several) = measure(&distribution, &placement, transactions, &mut rng);
                    assert!(within(spread, ratio, 0.02), "{ratio}: {spread}");
                    let counts = placement.warehouses_by_node();
                    assert!(within(nodes, degree, 0.02), "{degree} on {counts:?}: {nodes}");
                    let expected = distribution.expected_distributed();
                    assert!(within(several, expected, 0.02), "{expected}: {several}");
                }
            }
        }
    }
}

/// What the published tool would do: as many distinct warehouses as independent draws were needed.
#[test]
fn the_independent_model_overshoots_where_warehouses_are_few() {
    let placement = Placement::even(4, 8).expect("a placement");
    let shares = placement.even_homes();
    let drawn = super::super::placement::independent_warehouses(&shares, 3.0).expect("possible");
    let (few, more) = (drawn.floor() as u32, drawn.fract());
    let nodes = (1.0 - more) * placement.expected_nodes(few) + more * placement.expected_nodes(few + 1);
    assert!(nodes > 3.3, "{nodes}");
    let ours = Distribution::drawn(&placement, None, Target { ratio: 1.0, degree: 3.0 }).expect("possible");
    assert!((ours.expected_degree() - 3.0).abs() < 1e-9 && ours.mean_warehouses() < drawn);
}

#[test]
fn the_home_counts_where_it_really_is() {
    // All homes on the first of three nodes, which has half of the warehouses.
    let mut rng = Rng::new(2, 1);
    let placement = scattered(&[30, 20, 10], &mut rng);
    let homes = [1.0, 0.0, 0.0];
    let target = Target { ratio: 1.0, degree: 2.4 };
    let distribution = Distribution::drawn(&placement, Some(&homes), target).expect("possible");
    let home = (1..=60).find(|&w| placement.node(w) == Some(0)).expect("30 of them");
    let (mut sum, mut chosen) = (0, Vec::new());
    for _ in 0..40_000 {
        distribution.choose(home, &mut rng, &mut chosen);
        sum += placement.nodes_of(&chosen).expect("known");
    }
    let measured = f64::from(sum as u32) / 40_000.0;
    assert!(within(measured, 2.4, 0.01), "{measured}");
    let careless = Distribution::drawn(&placement, None, target).expect("possible");
    assert!(careless.mean_warehouses() < distribution.mean_warehouses());
}

#[test]
fn the_example_of_the_essay_holds() {
    let placement = Placement::even(3, 60).expect("a placement");
    let plan = Distribution::drawn(&placement, None, Target { ratio: 1.0, degree: 2.0 }).expect("possible");
    assert!((placement.expected_nodes(2) - 1.678).abs() < 0.001);
    assert!((placement.expected_nodes(3) - 2.134).abs() < 0.001);
    assert!((plan.mean_warehouses() - 2.71).abs() < 0.01, "{}", plan.mean_warehouses());
    assert!((plan.expected_distributed() - 0.835).abs() < 0.01, "{}", plan.expected_distributed());
}

#[test]
fn all_nodes_are_reached_exactly_if_an_order_can_and_else_nearly() {
    let all = |placement: &Placement| {
        let degree = placement.nodes() as f64;
        Distribution::drawn(placement, None, Target { ratio: 1.0, degree }).expect("possible")
    };
    let single = all(&Placement::even(9, 9).expect("a placement"));
    assert_eq!(single.mean_warehouses(), 9.0);
    assert!((single.expected_degree() - 9.0).abs() < 1e-9);
    let many = all(&Placement::even(9, 180).expect("a placement"));
    assert!((many.expected_degree() - 8.91).abs() < 1e-9, "{}", many.expected_degree());
    assert!((35.0..37.0).contains(&many.mean_warehouses()), "{}", many.mean_warehouses());
    let mut rng = Rng::new(3, 1);
    let known = scattered(&[20; 9], &mut rng);
    let aimed = Distribution::aimed(&known, Target { ratio: 1.0, degree: 9.0 }).expect("possible");
    assert_eq!(measure(&aimed, &known, 2_000, &mut rng), (1.0, 9.0, 1.0));
}

#[test]
fn a_degree_of_one_and_a_ratio_of_nothing_are_local() {
    let placement = Placement::exact(vec![0, 1, 2]).expect("a placement");
    let mut rng = Rng::new(4, 1);
    for target in [Target { ratio: 1.0, degree: 1.0 }, Target { ratio: 0.0, degree: 3.0 }] {
        for plan in [Distribution::drawn(&placement, None, target), Distribution::aimed(&placement, target)] {
            let plan = plan.expect("possible");
            assert_eq!(measure(&plan, &placement, 1_000, &mut rng).0, 0.0);
            assert_eq!(plan.expected_distributed(), 0.0);
        }
    }
    let single = Placement::even(1, 5).expect("a placement");
    assert!(Distribution::drawn(&single, None, Target { ratio: 1.0, degree: 1.0 }).is_ok());
}

#[test]
fn impossible_targets_are_refused_with_a_sentence() {
    let few = Placement::even(9, 4).expect("a placement");
    let refused = |placement: &Placement, ratio, degree| {
        Distribution::drawn(placement, None, Target { ratio, degree }).expect_err("impossible").to_string()
    };
    let sentence = refused(&few, 1.0, 5.0);
    assert!(
        sentence.contains("5 nodes") && sentence.contains("4 warehouses are on 4 of 9 nodes"),
        "{sentence}"
    );
    assert!(refused(&few, 1.5, 2.0).contains("not 1.5"));
    assert!(refused(&few, f64::NAN, 2.0).contains("share"));
    assert!(refused(&few, 1.0, 1.5).contains("at least 2") && refused(&few, 1.0, 0.0).contains("at least 2"));
    assert!(refused(&few, 1.0, f64::NAN).contains("at least 2"));
    let aimed = Distribution::aimed(&few, Target { ratio: 1.0, degree: 2.0 });
    assert_eq!(aimed.expect_err("unknown"), DistributionError::PlacementUnknown);
}

#[test]
fn every_set_of_others_is_equally_likely_and_takes_one_draw_each() {
    let mut rng = Rng::new(5, 1);
    let mut counts: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    for _ in 0..60_000 {
        let mut chosen = vec![13];
        others_than(13, 11, 6, 3, &mut rng, &mut chosen);
        assert_eq!(chosen[0], 13);
        let mut others = chosen[1..].to_vec();
        others.sort_unstable();
        *counts.entry(others).or_default() += 1;
    }
    assert_eq!(counts.len(), 10, "C(5, 3) sets: {counts:?}");
    for (set, count) in &counts {
        assert!(set.windows(2).all(|pair| pair[0] < pair[1]) && !set.contains(&13), "{set:?}");
        assert!((5_600..6_400).contains(count), "{set:?}: {count}");
    }
    // More than there are ends too, with all of them.
    let mut chosen = vec![1];
    others_than(1, 1, 4, 100, &mut rng, &mut chosen);
    chosen.sort_unstable();
    assert_eq!(chosen, [1, 2, 3, 4]);
}

#[test]
fn aimed_transactions_use_warehouses_about_evenly() {
    // The second node has one warehouse of 31, the others 20 and 10.
    let mut rng = Rng::new(6, 1);
    let placement = scattered(&[20, 1, 10], &mut rng);
    let aimed = Distribution::aimed(&placement, Target { ratio: 1.0, degree: 2.0 }).expect("possible");
    let (mut chosen, mut second) = (Vec::new(), 0);
    for _ in 0..30_000 {
        aimed.choose(1 + rng.below(31) as u32, &mut rng, &mut chosen);
        second += u32::from(placement.node(chosen[1]) == Some(1));
    }
    // From the first node 1 of 11, from the third 1 of 21: 20/31/11 + 10/31/21 of all.
    let expected = 20.0 / 31.0 / 11.0 + 10.0 / 31.0 / 21.0;
    assert!(within(f64::from(second) / 30_000.0, expected, 0.05), "{second}");
}

#[test]
fn orders_have_the_lines_of_tpcc_unless_they_need_more() {
    let mut rng = Rng::new(7, 1);
    let mut counts = [0u32; 16];
    for warehouses in [1, 3] {
        (0..22_000).for_each(|_| counts[order_lines(&mut rng, warehouses)] += 1);
    }
    assert_eq!(counts[..5], [0; 5]);
    assert!(counts[5..].iter().all(|count| (3_700..4_300).contains(count)), "{counts:?}");
    assert!((0..100).all(|_| order_lines(&mut rng, 36) == 36));
    let chosen = [7, 3, 9];
    let supply: Vec<u32> = (0..5).map(|line| supply_warehouse(line, &chosen)).collect();
    assert_eq!(supply, [3, 9, 7, 7, 7]);
}

#[test]
fn the_tally_reports_intended_against_achieved() {
    let mut rng = Rng::new(8, 1);
    let placement = scattered(&[20; 9], &mut rng);
    let target = Target { ratio: 0.4, degree: 3.0 };
    let plan = Distribution::drawn(&placement, None, target).expect("possible");
    let mut tallies = [DistributionTally::default(), DistributionTally::default()];
    let mut chosen = Vec::new();
    for i in 0..40_000u64 {
        plan.choose(1 + rng.below(180) as u32, &mut rng, &mut chosen);
        let nodes = placement.nodes_of(&chosen);
        tallies[i as usize % 2].record(i * 250_000, &plan, &chosen, nodes);
    }
    let [mut tally, other] = tallies;
    tally.merge(&other);
    let controls = tally.finish("new_order");
    let names: Vec<&str> = controls.iter().map(|control| control.name.as_str()).collect();
    assert_eq!(
        names,
        ["new_order: distribution ratio", "new_order: on several nodes", "new_order: distribution degree"]
    );
    for (control, intended) in controls.iter().zip([0.4, plan.expected_distributed(), 3.0]) {
        let overall = control.overall(0..10).expect("observed");
        assert!((overall.intended - intended).abs() < 1e-9);
        assert!(overall.deviation().abs() < 0.02, "{}: {overall:?}", control.name);
    }
    let mut unknown = DistributionTally::default();
    unknown.record(0, &plan, &[1, 2], None);
    assert_eq!(unknown.finish("x").len(), 1);
}
