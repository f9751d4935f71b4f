//! tmp
use plimsoll_sim::plan::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (lo, hi): (u64, u64) = (a[1].parse().unwrap(), a[2].parse().unwrap());
    let mut sel = Selection::default();
    for kv in &a[3..] {
        let (k, v) = kv.split_once('=').unwrap();
        match k {
            "protocol" => sel.protocol = PROTOCOLS.iter().find(|p| **p == v).copied(),
            "scheme" => sel.scheme = SCHEMES.iter().find(|p| **p == v).copied(),
            "workload" => sel.workload = WorkloadName::ALL.into_iter().find(|w| w.name() == v),
            "faults" => {
                sel.faults = match v {
                    "none" => FaultsName::None,
                    "all" => FaultsName::All,
                    "network" => FaultsName::Network,
                    _ => FaultsName::Drawn,
                }
            }
            "mutant" => {
                sel.mutant = plimsoll_types::mutants::Mutant::ALL.iter().find(|m| m.name() == v).copied()
            }
            _ => sel.knobs.push((k.into(), v.into())),
        }
    }
    std::panic::set_hook(Box::new(|_| {}));
    let t = std::time::Instant::now();
    let (mut n, mut bad) = (0, 0);
    for seed in lo..hi {
        let plan = Plan::drawn(seed, &sel).unwrap();
        let t1 = std::time::Instant::now();
        let out = plimsoll_sim::run::run(&plan, None);
        n += out.transactions;
        if t1.elapsed().as_millis() > 1500 {
            println!(
                "slow {seed} {:?} {}/{} {:?} txns {} virtual {} ms",
                t1.elapsed(),
                plan.protocol,
                plan.scheme,
                plan.workload,
                out.transactions,
                out.virtual_ns / 1000000
            );
        }
        if !out.violations.is_empty() {
            bad += 1;
            if bad <= 12 {
                println!(
                    "seed {seed} {}/{} {:?} {:?} shards {} clients {} eps {}us: {} txns",
                    plan.protocol,
                    plan.scheme,
                    plan.lock_policy,
                    plan.workload,
                    plan.shards,
                    plan.clients,
                    out.clock_error_ns / 1000,
                    out.transactions
                );
                for v in out.violations.iter().take(3) {
                    println!("   {}: {}", v.kind, v.detail.chars().take(300).collect::<String>());
                }
            }
        }
    }
    println!("{} seeds {} txns {} bad {:?}", hi - lo, n, bad, t.elapsed());
}
