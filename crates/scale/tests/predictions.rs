//! Predictions do what their prices say, and the same twice.

use plimsoll_scale::predict::model::{AccessCosts, CostModel, OracleCosts, VERSION};
use plimsoll_scale::predict::study::{Configuration, Load};
use plimsoll_scale::predict::{Cluster, Prediction};

/// Round prices: a SmallBank transaction is about a microsecond, a message another.
fn model() -> CostModel {
    let access = AccessCosts {
        attempt_ns: [300.0; 12],
        lookup_ns: 100.0,
        scanned_ns: 50.0,
        link_ns: 300.0,
        install_ns: 150.0,
        kept_ns: 0.0,
        mark_ns: 10.0,
        pin_ns: 10.0,
        lock_ns: 0.0,
        coordinated_ns: 500.0,
        vain_ns: 200.0,
        crowded: 1.0,
    };
    let oracle = OracleCosts { report_ns: 100.0, access_ns: 0.0, message_ns: 1000.0, outcome_ns: 0.0 };
    CostModel {
        version: VERSION,
        machine: "a machine of round numbers".to_owned(),
        source: "this test".to_owned(),
        shards_per_node: 1,
        concurrency: 8,
        pass_ns: 50.0,
        poll_ns: 30.0,
        message_ns: 200.0,
        handled_ns: 0.0,
        batch_ns: 100.0,
        remote_batch_ns: 1000.0,
        validated_ns: 0.0,
        gts: oracle,
        vts: oracle,
        local_ns: 200,
        wake_ns: 2000,
        latency_ns: 20_000,
        jitter_ns: 2_000,
        frame_ns: 100.0,
        gigabits_per_s: 10.0,
        access: ["tpcc", "tpce", "smallbank", "micro"]
            .into_iter()
            .map(|name| (name.to_owned(), access))
            .collect(),
    }
}

fn cluster(nodes: usize, scheme: &'static str) -> Cluster {
    Cluster {
        nodes,
        shards_per_node: 1,
        oracle_inside: false,
        threads: None,
        concurrency: 8,
        protocol: "occ",
        scheme,
        oracle: Default::default(),
        awaits_report: false,
        transactions: 5_000 + 500 * nodes as u64,
        doublings: 0,
        seed: 1,
    }
}

fn predict(cluster: Cluster, load: Load) -> Prediction {
    Configuration { cluster, load }.predict(&model(), &|| false).expect("all prices are there")
}

const BANK: Load = Load::SmallBank { distributed_pct: 1.0 };

#[test]
fn the_same_cluster_is_predicted_the_same_twice() {
    let of = || {
        let prediction = predict(cluster(3, "vts"), Load::Tpcc { districts: 3, spread: None });
        (
            prediction.committed,
            prediction.throughput(),
            prediction.aborts,
            prediction.messages,
            prediction.done,
        )
    };
    assert_eq!(of(), of());
}

#[test]
fn one_shard_is_as_fast_as_the_prices_of_what_it_did() {
    let prediction = predict(cluster(1, "none"), BANK);
    let model = model();
    let spent = model.price(&model.access["smallbank"], &OracleCosts::default(), &prediction.done);
    let per_transaction = spent / prediction.committed as f64;
    let predicted = 1e9 / prediction.throughput();
    assert!((predicted / per_transaction - 1.0).abs() < 0.02, "{predicted} {per_transaction}");
    assert!(prediction.busy > 0.98, "{}", prediction.busy);
}

#[test]
fn dst_scales_with_the_nodes_and_an_oracle_does_not() {
    let per_node = |nodes, scheme| predict(cluster(nodes, scheme), BANK).throughput() / nodes as f64;
    assert!(per_node(32, "dst") > 0.7 * per_node(2, "dst"));
    let gts = predict(cluster(32, "gts"), BANK);
    assert!(gts.oracle_busy > 0.9, "the oracle is saturated: {}", gts.oracle_busy);
    assert!(per_node(32, "gts") < 0.5 * per_node(2, "gts"));
    // A batch of a shard's eight at most, two messages for each that writes.
    assert!(gts.throughput() < 8.0 * 1e9 / 1000.0);
}

#[test]
fn vectors_grow_with_the_nodes() {
    let bytes = |nodes| {
        let prediction = predict(cluster(nodes, "vts"), Load::ReadTen);
        prediction.bytes as f64 / prediction.committed as f64
    };
    let (few, many) = (bytes(4), bytes(32));
    // The oracle's answer and one read in ten carry eight bytes per node.
    assert!(many > few + 28.0 * 8.0, "{few} {many}");
}

#[test]
fn who_awaits_a_report_takes_a_round_trip_longer() {
    let median_ns = |scheme, awaits_report| {
        let alone = Cluster { awaits_report, concurrency: 1, ..cluster(2, scheme) };
        predict(alone, Load::Spin { spin_ns: 0 }).latency_ns(0.5)
    };
    assert_eq!(median_ns("dst", true), median_ns("dst", false), "it has nobody to report to");
    let longer = median_ns("vts", true) - median_ns("vts", false);
    assert!((40_000..60_000).contains(&longer), "{longer}");
}

#[test]
fn two_shards_on_one_thread_are_half_as_fast() {
    let of = |threads| {
        let two = Cluster { shards_per_node: 2, threads, transactions: 60_000, ..cluster(1, "none") };
        predict(two, Load::SmallBank { distributed_pct: 0.0 }).throughput()
    };
    let ratio = of(Some(1)) / of(None);
    assert!((0.45..0.55).contains(&ratio), "{ratio}");
}

#[test]
fn a_narrow_network_card_is_what_limits() {
    let narrow = CostModel { gigabits_per_s: 0.01, ..model() };
    let configuration = Configuration { cluster: cluster(2, "rc"), load: Load::ReadTen };
    let prediction = configuration.predict(&narrow, &|| false).expect("all prices are there");
    // 0.01 Gbit/s are 1.25 MB/s in each direction.
    let sent = prediction.bytes as f64 / prediction.seconds;
    assert!((2.0e6..2.6e6).contains(&sent), "{sent}");
    assert!(prediction.busy < 0.5);
}

#[test]
fn read_only_transactions_never_abort_at_a_snapshot() {
    for scheme in ["dst", "gts", "vts"] {
        let prediction = predict(cluster(4, scheme), Load::Micro);
        assert_eq!(prediction.read_only_aborts, 0, "{scheme}");
        assert!(prediction.committed > 1000);
    }
}

#[test]
fn a_brokerage_is_predicted_with_all_its_transactions() {
    let load = Load::Tpce { home: 200, customers: Some(20), paper: true };
    let twice = [(); 2].map(|()| predict(Cluster { concurrency: 2, ..cluster(2, "dst") }, load));
    assert_eq!(twice[0].done, twice[1].done);
    let types: Vec<_> = twice[0].latencies.iter().filter(|(_, all)| !all.is_empty()).collect();
    assert_eq!(types.len(), 10, "all but maintenance and cleanup");
    assert!(twice[0].distributed > 0 && twice[0].read_only_aborts == 0);
}

#[test]
fn a_window_is_doubled_until_it_is_stationary() {
    // Market-Feeds begin when a client has had ten trades: too late for the first window.
    let load = Load::Tpce { home: 200, customers: Some(20), paper: true };
    let base = Cluster { concurrency: 16, transactions: 1000, ..cluster(2, "dst") };
    let of = |doublings| predict(Cluster { doublings, ..base.clone() }, load);
    let (short, long) = (of(0), of(6));
    assert!(!short.stationary && long.stationary);
    assert!(long.committed >= 2000, "{}", long.committed);
}

#[test]
fn prices_that_are_missing_are_named() {
    let mut model = model();
    model.access.remove("micro");
    let refused = Configuration { cluster: cluster(1, "dst"), load: Load::Micro }.predict(&model, &|| false);
    assert!(refused.expect_err("there is no price").contains("no prices of micro"));
}
