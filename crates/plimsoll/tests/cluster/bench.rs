//! Benchmarks as clients of a cluster that has loaded them.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use plimsoll::Cluster;
use serde_json::Value;

use crate::scene::{Scene, free_ports, has_oracle, path, plimsoll, refused};
use crate::waiting::until;

/// A cluster of two nodes that have loaded a benchmark, or are about to.
fn loaded(keys: &str) -> Scene {
    let mut scene = Scene::under(keys, &[1, 1]);
    let text = std::fs::read_to_string(scene.file()).unwrap();
    let text = text.replace("[[table]]\nname = \"account\"\nindex = \"hash\"\n", "");
    std::fs::write(scene.file(), text.replace("[[table]]\nname = \"entry\"\n", "")).unwrap();
    (1..=2 + usize::from(has_oracle(keys))).for_each(|id| scene.start(id));
    scene
}

/// A short run, and what every such run has to show.
fn bench(scene: &Scene, arguments: &[&str]) -> Value {
    bench_at(path(&scene.file()), arguments)
}

/// The same, with the cluster found in this place.
fn bench_at(place: &str, arguments: &[&str]) -> Value {
    let short = ["--warmup", "100ms", "--duration", "400ms", "--quiet", "--json"];
    let cluster = ["--cluster", place];
    let output = plimsoll(&[&["bench"], arguments, &cluster[..], &short[..]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {} {said}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let run = document["runs"][0].clone();
    assert_eq!(run["config"]["cluster"], "bank");
    for figure in ["committed", "messages_per_transaction", "cpu_seconds", "throughput_tps"] {
        assert!(run[figure].as_f64().is_some_and(|figure| figure > 0.0), "{arguments:?}: {figure} of {run}");
    }
    let checks = run["checks"].as_array().unwrap();
    assert!(checks.len() >= 3 && checks.iter().all(|check| check["ok"] == true), "{checks:?}");
    run
}

#[test]
fn a_benchmark_runs_as_a_client_of_a_cluster_that_has_loaded_it() {
    let scene = loaded("workload = \"smallbank --accounts 1000 --distributed 20\"\n");
    let run = bench(&scene, &["smallbank", "--rate", "300"]);
    assert_eq!(run["config"]["accounts"], 1000);
    let rate = run["throughput_tps"].as_f64().unwrap();
    assert!((100.0..600.0).contains(&rate), "as many as were due: {rate}");
    assert!(run["tables"]["savings"]["rows"].as_u64() == Some(2000), "{}", run["tables"]);
    assert!(run["transactions"]["balance"]["latency_us"]["p99"].as_f64() > Some(0.0), "{run}");

    // A second run would be judged by what the first has done.
    let file = scene.file();
    let again = |more: &[&str]| refused(&[&["bench", "smallbank", "--cluster", path(&file)], more].concat());
    assert!(again(&["--duration", "100ms"]).contains("start the nodes anew"));
    assert!(again(&["--accounts", "5"]).contains("--accounts is said by the cluster's file"));
    assert!(again(&["--check"]).contains("leave it out"));
    assert!(
        refused(&["bench", "tpcc", "--cluster", path(&file)]).contains("have loaded smallbank, not tpcc")
    );
    let other = loaded("workload = \"smallbank --duration 5s\"\n");
    assert!(refused(&["start", path(&other.file()), "--node", "1"]).contains("--duration is no matter of"));
    let tables = Scene::new(&[1]);
    let none = refused(&["bench", "tpcc", "--cluster", path(&tables.file())]);
    assert!(none.contains("has loaded no benchmark"), "{none}");
}

#[test]
fn a_benchmark_finds_its_cluster_by_the_addresses_of_nodes_of_which_one_answers() {
    let scene = loaded("workload = \"smallbank --accounts 500\"\n");
    let nobody = free_ports(1)[0];
    let addresses = format!("127.0.0.1:{nobody},127.0.0.1:{}", scene.http[1]);
    until("a node describes the cluster", || Cluster::find(&addresses, None).ok());
    // Nodes tell everything but the secret.
    let secret = scene.directory.join("secret");
    let said = refused(&["bench", "smallbank", "--cluster", &addresses, "--duration", "100ms"]);
    assert!(said.contains("--secret-file"), "{said}");
    let said = refused(&["move", &addresses, "--slots", "0..1", "--to", "0"]);
    assert!(said.contains("--secret-file"), "{said}");
    let run = bench_at(&addresses, &["smallbank", "--secret-file", path(&secret), "--concurrency", "4"]);
    assert_eq!(run["config"]["accounts"], 500);
}

#[test]
fn a_run_ends_with_the_name_of_a_node_that_is_gone() {
    let mut scene = loaded("workload = \"smallbank --accounts 1000 --distributed 20\"\n");
    let file = scene.file();
    let arguments =
        ["bench", "smallbank", "--cluster", path(&file), "--warmup", "0s", "--duration", "60s", "--quiet"];
    let run = plimsoll(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let clients = || {
        let peers = scene.status().0["nodes"][0]["state"]["peers"].clone();
        peers
            .as_array()
            .and_then(|peers| peers.iter().find(|peer| peer["node"].is_null())?["connected"].as_u64())
    };
    until("the client is there", || clients().filter(|&connected| connected > 0));
    thread::sleep(Duration::from_millis(500));
    scene.signal(2, "-KILL");
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("node 2 cannot be reached"), "{said}");
}

#[test]
fn a_bank_and_tuples_are_consistent_on_a_cluster_under_other_protocols_and_schemes() {
    let scene = loaded("protocol = \"two_pl\"\nworkload = \"smallbank --accounts 500\"\n");
    let run = bench(&scene, &["smallbank", "--concurrency", "4"]);
    assert_eq!((&run["protocol"], &run["tables"]["checking"]["rows"]), (&"two_pl".into(), &1000.into()));
    drop(scene);
    for keys in ["scheme = \"gts\"\n", "scheme = \"vts\"\n", "protocol = \"two_pl\"\nscheme = \"vts\"\n"] {
        let scene = loaded(&format!("{keys}workload = \"micro --tuples 1000\"\n"));
        let run = bench(&scene, &["micro", "--read-only", "20"]);
        assert!(run["oracle_messages"].as_u64() > Some(0), "{run}");
    }
    let scene = loaded("scheme = \"vts\"\nworkload = \"smallbank --accounts 500 --global\"\n");
    let run = bench(&scene, &["smallbank", "--concurrency", "4"]);
    assert_eq!(run["config"]["global"], true);
}

#[test]
fn orders_are_taken_by_clients_that_read_the_items_of_a_node() {
    let small = "tpcc --warehouses 2 --items 200 --customers 30";
    for (keys, spread) in
        [("", ""), ("protocol = \"two_pl\"\n", " --spread"), ("protocol = \"client_2pc\"\n", "")]
    {
        let scene = loaded(&format!("{keys}workload = \"{small}{spread}\"\n"));
        let run = bench(&scene, &["tpcc", "--concurrency", "4"]);
        assert!(run["transactions"]["new_order"]["committed"].as_u64() > Some(0), "{run}");
        assert_eq!(run["tables"]["item"]["rows"], 400, "each node has a copy of all");
    }
}
