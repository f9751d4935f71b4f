//! Made-up documents for tests: plausible, and the same every time.

use plimsoll_engine::machine::Machine;
use serde_json::json;

use super::model::{
    Aborts, Check, CheckerFigures, DiskFigures, DiskSpeed, Document, Latency, Load, Named, Run, TableSize,
    Timeline, TransactionType, ratios,
};
use super::points::points;

/// Throughputs of the sample's pairs, as (protocol, scheme, transactions per second, CPU seconds).
const PAIRS: [(&str, &str, f64, f64); 5] = [
    ("occ", "dst", 161_220.0, 19.8),
    ("occ", "gts", 98_400.0, 24.6),
    ("occ", "vts", 121_900.0, 24.1),
    ("occ", "rc", 163_900.0, 19.8),
    ("two_pl", "dst", 148_300.0, 19.7),
];

/// Five pairs, three repetitions each.
pub fn comparison() -> Document {
    let mut runs = Vec::new();
    for repetition in 1..=3 {
        for (i, pair) in PAIRS.into_iter().enumerate() {
            let noise = 1.0 + 0.03 * f64::from((repetition * 7 + i as u32 * 3) % 5) / 2.0 - 0.03;
            runs.push(run(pair, repetition, noise));
        }
    }
    document(runs)
}

/// One run of the first pair.
pub fn single() -> Document {
    document(vec![run(PAIRS[0], 1, 1.0)])
}

/// One run in which a check fails and the pair is not serializable.
pub fn failing() -> Document {
    let mut run = run(PAIRS[3], 1, 1.0);
    run.checks.push(Check {
        name: "history is serializable".into(),
        ok: false,
        allowed: false,
        detail:
            "T1.17 read account <4> before T0.9 wrote it, and T0.9 read account <5> before T1.17 wrote it"
                .into(),
    });
    document(vec![run])
}

/// One pair with two durabilities, whose logs were measured against bare files.
pub fn durabilities() -> Document {
    let mut runs = Vec::new();
    for repetition in 1..=3 {
        for (durability, share) in [("none", 1.0), ("sync", 0.1)] {
            let mut run = run(PAIRS[0], repetition, share * (1.0 + 0.02 * f64::from(repetition)));
            run.durability = Some(durability.into());
            let (bytes, syncs, bare_seconds) = (80_000_000, 62_000, 8.0 + 0.3 * f64::from(repetition));
            run.disk = (durability == "sync").then(|| {
                let log = DiskSpeed::new(bytes, syncs, 10.0, 17.5);
                let bare = DiskSpeed::new(bytes, syncs, bare_seconds, 1.9 * bare_seconds);
                DiskFigures::new(bytes, syncs, log, bare)
            });
            runs.push(run);
        }
    }
    document(runs)
}

/// Two pairs at three loads, two repetitions each. Beyond what it can do, a pair is slower and
/// commits less.
pub fn loads() -> Document {
    let mut runs = Vec::new();
    for (concurrency, tps, latency) in [(1, 0.3, 0.5), (8, 1.0, 1.0), (64, 0.9, 9.0)] {
        for repetition in 1..=2 {
            for (protocol, scheme, most, cpu_seconds) in [PAIRS[0], PAIRS[3]] {
                let noise = tps * (1.0 + 0.02 * f64::from(repetition));
                let mut run = run((protocol, scheme, most, cpu_seconds), repetition, noise);
                run.at_load = Some(concurrency.to_string());
                *run.config.get_mut("concurrency").expect("it is set") = json!(concurrency);
                run.latency_us.p50 *= latency;
                run.latency_us.p99 *= latency;
                runs.push(run);
            }
        }
    }
    Document { points: points(&runs), ..document(runs) }
}

/// The same as shares of peaks.
pub fn shares() -> Document {
    let mut document = loads();
    document.peaks = document.runs.iter().filter(|run| run.repetition == 1).cloned().collect();
    for run in &mut document.runs {
        let rate = run.throughput_tps as u64;
        run.config.push("rate", json!(rate));
        run.at_load = run.at_load.as_ref().map(|load| format!("{load}%"));
    }
    document.ratios = ratios(&document.runs);
    document.points = points(&document.runs);
    document
}

fn document(runs: Vec<Run>) -> Document {
    let words = ["plimsoll", "bench", "tpcc", "--compare", "occ/dst,occ/gts,occ/vts,occ/rc,two_pl/dst"];
    Document {
        plimsoll: "0.1.0".into(),
        commit: "abc1234".into(),
        machine: Machine {
            cpu: "Example CPU @ 2.50GHz".into(),
            cores: 2,
            memory_bytes: 16_000_000_000,
            kernel: "Linux 6.1.0".into(),
        },
        date: "2025-11-21T20:58:00Z".into(),
        command: words.map(String::from).to_vec(),
        interrupted: false,
        doubts: Vec::new(),
        ratios: ratios(&runs),
        runs,
        ..Document::default()
    }
}

fn run((protocol, scheme, tps, cpu_seconds): (&str, &str, f64, f64), repetition: u32, noise: f64) -> Run {
    let committed = tps * noise * 10.0;
    let slow = match scheme {
        "gts" => 6.0,
        "vts" => 3.0,
        _ => 1.0,
    };
    let mut transactions = Named::default();
    let mut aborts = Aborts::default();
    let mut kind = |name: &str, share: f64, p50: f64, conflict: f64, distributed: f64, read_only: bool| {
        let count = (committed * share) as u64;
        let part = |share: f64| (count as f64 * share) as u64;
        let user = if name == "new_order" { part(0.01) } else { 0 };
        let own = Aborts {
            write_conflict: part(conflict),
            validation: part(conflict / 3.0),
            user,
            ..Aborts::default()
        };
        aborts.write_conflict += own.write_conflict;
        aborts.validation += own.validation;
        aborts.user += own.user;
        let p50 = p50 * if read_only { slow / 2.0 + 0.5 } else { slow };
        transactions.push(
            name,
            TransactionType {
                committed: count,
                aborted: own.total(),
                aborts: own,
                read_only,
                per: 1,
                nominal_share: None,
                distributed_share: distributed,
                mean_keys_read: Some(23.0),
                mean_keys_written: Some(12.0),
                latency_us: Latency {
                    p50,
                    p90: p50 * 1.9,
                    p99: p50 * 6.2,
                    p999: p50 * 31.0,
                    max: p50 * 140.0,
                    mean: p50 * 1.3,
                },
            },
        );
    };
    let read_only_conflict = if scheme == "none" { 0.02 } else { 0.0 };
    kind("new_order", 0.45, 41.0, 0.012, 0.0956, false);
    kind("payment", 0.43, 22.0, 0.021, 0.1498, false);
    kind("order_status", 0.04, 6.5, read_only_conflict, 0.0, true);
    kind("delivery", 0.04, 180.0, 0.004, 0.0, false);
    kind("stock_level", 0.04, 95.0, read_only_conflict, 0.0, true);

    let mut config = Named::default();
    config.push("warehouses", json!(2));
    config.push("shards", json!(2));
    config.push("concurrency", json!(8));
    config.push("warmup_seconds", json!(2.0));
    config.push("duration_seconds", json!(10.0));
    config.push("seed", json!(1));
    let mut tables = Named::default();
    for (name, rows, bytes) in [
        ("customer", 60_000, 47_100_000),
        ("stock", 200_000, 74_200_000),
        ("order_line", 1_140_000, 121_000_000),
        ("order", 114_000, 8_700_000),
        ("item", 100_000, 19_400_000),
        ("warehouse", 2, 1_024),
    ] {
        tables.push(name, TableSize { rows, bytes });
    }
    let wave = |i: u32| tps * noise * (1.0 + 0.02 * f64::from((i * 7 + repetition * 3) % 5) - 0.04);
    let mut run = Run {
        workload: "tpcc".into(),
        protocol: protocol.into(),
        scheme: scheme.into(),
        serializable: scheme != "rc",
        config,
        repetition,
        seconds: 10.0,
        committed: committed as u64,
        aborts,
        read_only_waits: if scheme == "dst" { 412 } else { 0 },
        distributed_share: 0.108,
        messages_per_transaction: 0.44,
        oracle_messages: if slow > 1.0 { 812_345 } else { 0 },
        memory_bytes: 270_401_024,
        cpu_seconds,
        latency_us: Latency {
            p50: 31.0 * slow,
            p90: 62.0 * slow,
            p99: 240.0 * slow,
            p999: 1e3,
            max: 5e3,
            mean: 50.0,
        },
        transactions,
        load: Load { seconds: 2.9, rows: 1_200_002, memory_bytes: 231_000_000 },
        tables,
        timeline: Timeline { interval_seconds: 0.5, throughput_tps: (0..20).map(wave).collect() },
        checker: Some(CheckerFigures { transactions: 1_612_200, dependencies: 14_203_117, seconds: 3.1 }),
        checks: (1..=12)
            .map(|i| Check {
                name: format!("tpcc consistency {i}"),
                ok: true,
                allowed: false,
                detail: "2 warehouses".into(),
            })
            .collect(),
        ..Run::default()
    };
    run.fill_rates(2);
    run
}
