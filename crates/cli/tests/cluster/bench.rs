//! Benchmarks as clients of a cluster: they load its tables, and run.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use plimsoll::{Abort, Cluster, Database, Error, Key, Options};
use serde_json::Value;

use crate::scene::{Scene, free_ports, has_oracle, path, plimsoll, refused};
use crate::waiting::until;

/// A cluster of two nodes whose file has the tables of a workload at this scale, running and empty.
fn empty(keys: &str, scale: &str) -> Scene {
    let mut scene = Scene::under(keys, &[1, 1]);
    let file = std::fs::read_to_string(scene.file()).unwrap();
    let (head, _) = file.split_once("[[table]]").expect("a scene has tables");
    std::fs::write(scene.file(), head).unwrap();
    let tables =
        output(&[&["bench"], &words(scale)[..], &["--tables", "--cluster", path(&scene.file())]].concat());
    std::fs::write(scene.file(), format!("{head}{tables}")).unwrap();
    (1..=2 + usize::from(has_oracle(keys))).for_each(|id| scene.start(id));
    scene
}

/// The same with the rows of the workload.
fn loaded(keys: &str, scale: &str) -> Scene {
    let scene = empty(keys, scale);
    let document: Value =
        serde_json::from_str(&load(&scene, scale, &["--json"])).expect("JSON and nothing else");
    assert_eq!(document["cluster"], "bank");
    for figure in ["rows", "bytes", "seconds"] {
        assert!(document[figure].as_f64().is_some_and(|figure| figure > 0.0), "{figure} of {document}");
    }
    scene
}

fn words(scale: &str) -> Vec<&str> {
    scale.split_whitespace().collect()
}

/// Loads a workload, and returns what is said of it.
fn load(scene: &Scene, scale: &str, more: &[&str]) -> String {
    let file = scene.file();
    let cluster = ["--cluster", path(&file), "--load", "--quiet"];
    output(&[&["bench"], &words(scale)[..], &cluster[..], more].concat())
}

/// What a command that succeeds prints.
fn output(arguments: &[&str]) -> String {
    let output = plimsoll(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {} {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
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
fn a_benchmark_loads_and_runs_as_a_client_of_a_cluster() {
    let scale = ["--accounts", "1000"];
    let scene = loaded("", "smallbank --accounts 1000");
    let run = bench(&scene, &["smallbank", "--accounts", "1000", "--distributed", "20", "--rate", "300"]);
    assert_eq!((&run["config"]["accounts"], &run["config"]["distributed"]), (&1000.into(), &20.0.into()));
    let rate = run["throughput_tps"].as_f64().unwrap();
    assert!((100.0..600.0).contains(&rate), "as many as were due: {rate}");
    assert!(run["tables"]["savings"]["rows"].as_u64() == Some(2000), "{}", run["tables"]);
    assert!(run["transactions"]["balance"]["latency_us"]["p99"].as_f64() > Some(0.0), "{run}");

    let file = scene.file();
    let on_cluster = |what: &[&str]| refused(&[&["bench"], what, &["--cluster", path(&file)]].concat());
    let again = |more: &[&str]| on_cluster(&[&["smallbank"], &scale[..], more].concat());
    // Further runs go on with what the first has left, and are judged by what they do themselves.
    for _ in 0..2 {
        bench(&scene, &["smallbank", "--accounts", "1000", "--distributed", "20"]);
    }
    let run = bench(&scene, &["smallbank", "--accounts", "1000", "--load", "2,4"]);
    assert_eq!((&run["at_load"], &run["config"]["concurrency"]), (&"2".into(), &2.into()));
    let said = again(&["--load"]);
    let twice = "table \"savings\" of cluster \"bank\" is loaded already; start the nodes anew or use the data as it is";
    assert!(said.contains(twice), "{said}");
    assert!(again(&["--check"]).contains("leave it out"));
    assert!(again(&["--runs", "2"]).contains("give 1"));
    assert!(again(&["--protocol", "occ"]).contains("--protocol is said by the cluster's file"));
    // At another scale, or for another workload, the tables are others.
    let said = on_cluster(&["smallbank", "--accounts", "500", "--load"]);
    assert!(said.contains("table \"savings\" of cluster \"bank\" is not as smallbank needs it"), "{said}");
    let said = on_cluster(&["tpcc"]);
    assert!(
        said.contains("has a table \"savings\" where tpcc needs \"warehouse\"") && said.contains("--tables"),
        "{said}"
    );
    assert!(refused(&["bench", "tpcc", "--load"]).contains("name it with --cluster"));
    let other = Scene::under("workload = \"smallbank\"\n", &[1]);
    assert!(refused(&["start", path(&other.file()), "--node", "1"]).contains("workload"));
}

#[test]
fn a_run_before_the_load_says_what_is_missing_and_is_no_obstacle_to_it() {
    let small = ["tpcc", "--items", "200", "--customers", "30", "--warehouses"];
    for keys in ["", "protocol = \"two_pl\"\nscheme = \"none\"\n", "protocol = \"client_2pc\"\n"] {
        let scene = empty(keys, "tpcc --items 200 --customers 30 --warehouses 2");
        let file = scene.file();
        let run = |warehouses| {
            let arguments =
                [&["bench"], &small[..], &[warehouses, "--cluster", path(&file), "--duration", "100ms"]];
            refused(&arguments.concat())
        };
        let missing =
            "tpcc at this scale is not loaded on cluster \"bank\": run the same command with --load first";
        assert!(run("2").contains(missing), "{keys}");
        let said = load(&scene, "tpcc --items 200 --customers 30 --warehouses 2", &[]);
        assert!(said.starts_with("tpcc is loaded on cluster \"bank\": "), "{said}");
        // The same tables, but more warehouses than are there.
        assert!(run("3").contains(missing), "{keys}");
        for _ in 0..2 {
            bench(&scene, &[&small[..], &["2", "--concurrency", "4"]].concat());
        }
    }
}

#[test]
fn rows_follow_slots_that_have_moved() {
    let scene = empty("", "smallbank --accounts 1000");
    let file = scene.file();
    until("the nodes have met", || scene.status().1.then_some(()));
    output(&["move", path(&file), "--slots", "0..1024", "--to", "1"]);
    load(&scene, "smallbank --accounts 1000", &[]);
    let rows = |node: usize| scene.status().0["nodes"][node]["state"]["tables"][0]["rows"].clone();
    assert_eq!([rows(0), rows(1)], [0, 2000]);
    let run = bench(&scene, &["smallbank", "--accounts", "1000"]);
    assert_eq!(run["tables"]["checking"]["rows"], 2000);
}

#[test]
fn an_immutable_table_of_a_cluster_is_written_by_nobody() {
    for keys in ["", "protocol = \"two_pl\"\n", "protocol = \"client_2pc\"\n"] {
        let scene = loaded(keys, "tpcc --items 200 --customers 30 --warehouses 2");
        let cluster = Cluster::read(&scene.file()).unwrap();
        let options = Options { patience: Duration::from_secs(2), ..Options::default() };
        let db = Database::connect(&cluster, options.clone()).unwrap();
        let (items, key) = (db.table("item").unwrap(), Key::build().u32(1).finish());
        let written = db.transact(|txn| -> Result<(), Error> { txn.put(items, &key, b"dear") });
        assert_eq!(written, Err(Error::Immutable { table: "item".into() }), "{keys}");
        assert!(written.unwrap_err().to_string().contains("never written"));
        db.close();

        // A client that takes the table for another asks the nodes to write it, and they refuse.
        let mut tables = cluster.tables.clone();
        tables.iter_mut().for_each(|table| table.immutable = false);
        let stranger = Database::connect(&Cluster { tables, ..cluster }, options).unwrap();
        let written = stranger.transact(|txn| -> Result<(), Error> { txn.put(items, &key, b"dear") });
        assert!(matches!(written, Err(Error::Contended { last: Abort::Refused, .. })), "{keys}: {written:?}");
        let names = stranger.table("customer_name").unwrap();
        let inserted = stranger.transact(|txn| -> Result<(), Error> { txn.insert(names, &key, b"") });
        assert!(
            matches!(inserted, Err(Error::Contended { last: Abort::Refused, .. })),
            "{keys}: {inserted:?}"
        );
        stranger.close();
        assert!(scene.status().1, "{keys}: the nodes are well");
        bench(&scene, &["tpcc", "--items", "200", "--customers", "30", "--warehouses", "2"]);
    }
}

#[test]
fn a_benchmark_finds_its_cluster_by_the_addresses_of_nodes_of_which_one_answers() {
    let scene = loaded("", "smallbank --accounts 500");
    let nobody = free_ports(1)[0];
    let addresses = format!("127.0.0.1:{nobody},127.0.0.1:{}", scene.http[1]);
    until("a node describes the cluster", || plimsoll::find(&addresses, None).ok());
    // Nodes tell everything but the secret.
    let secret = scene.directory.join("secret");
    let bank = ["smallbank", "--accounts", "500"];
    let run = [&["bench"], &bank[..], &["--cluster", &addresses, "--duration", "100ms"]].concat();
    let said = refused(&run);
    assert!(said.contains("--secret-file"), "{said}");
    let said = refused(&["move", &addresses, "--slots", "0..1", "--to", "0"]);
    assert!(said.contains("--secret-file"), "{said}");
    let run =
        bench_at(&addresses, &[&bank[..], &["--secret-file", path(&secret), "--concurrency", "4"]].concat());
    assert_eq!(run["config"]["accounts"], 500);
}

#[test]
fn a_run_ends_with_the_name_of_a_node_that_is_gone() {
    let mut scene = loaded("", "smallbank --accounts 1000");
    let file = scene.file();
    let scale = ["bench", "smallbank", "--accounts", "1000", "--distributed", "20"];
    let cluster = ["--cluster", path(&file), "--warmup", "0s", "--duration", "60s", "--quiet"];
    let mut run = plimsoll(&[&scale[..], &cluster[..]].concat());
    let run = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
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
    let bank = ["smallbank", "--accounts", "500", "--concurrency", "4"];
    let scene = loaded("protocol = \"two_pl\"\n", "smallbank --accounts 500");
    let run = bench(&scene, &bank);
    assert_eq!((&run["protocol"], &run["tables"]["checking"]["rows"]), (&"two_pl".into(), &1000.into()));
    drop(scene);
    for keys in ["scheme = \"gts\"\n", "scheme = \"vts\"\n", "protocol = \"two_pl\"\nscheme = \"vts\"\n"] {
        let scene = loaded(keys, "micro --tuples 1000");
        let run = bench(&scene, &["micro", "--tuples", "1000", "--read-only", "20"]);
        assert!(run["oracle_messages"].as_u64() > Some(0), "{run}");
    }
    let scene = loaded("scheme = \"vts\"\n", "smallbank --accounts 500");
    let run = bench(&scene, &[&bank[..], &["--global"]].concat());
    assert_eq!(run["config"]["global"], true);
}

#[test]
fn orders_are_taken_by_clients_that_read_the_items_of_a_node() {
    let small = "tpcc --warehouses 2 --items 200 --customers 30";
    for (keys, more) in [
        ("", " --split-columns off"),
        ("protocol = \"two_pl\"\n", " --spread"),
        ("protocol = \"client_2pc\"\n", ""),
    ] {
        let scale = format!("{small}{more}");
        let scene = loaded(keys, &scale);
        let run = bench(&scene, &[&words(&scale)[..], &["--concurrency", "4"]].concat());
        assert!(run["transactions"]["new_order"]["committed"].as_u64() > Some(0), "{run}");
        assert_eq!(run["tables"]["item"]["rows"], 400, "each node has a copy of all");
    }
}

#[test]
fn a_brokerage_trades_on_a_cluster_whose_client_has_copies_of_what_never_changes() {
    let scale = "tpce --customers 1000 --home 500 --paper --daily-market 30";
    let scene = loaded("", scale);
    let file = scene.file();
    let other_seed = [&["bench"], &words(scale)[..], &["--seed", "2", "--cluster", path(&file)]];
    let said = refused(&other_seed.concat());
    assert!(said.contains("at this scale and with this seed is not loaded"), "{said}");
    for _ in 0..2 {
        let run = bench(&scene, &[&words(scale)[..], &["--concurrency", "4"]].concat());
        let committed = |name: &str| run["transactions"][name]["committed"].as_u64();
        assert!(committed("trade_order") > Some(0), "{run}");
        assert_eq!(run["tables"]["sector"]["rows"], 24, "each node has a copy of all");
    }

    // The customers of one home are gone: no audit reads them, and no order does without.
    let cluster = Cluster::read(&file).unwrap();
    let db = Database::connect(&cluster, Options::default()).unwrap();
    let customers = db.table("customer").unwrap();
    db.transact(|txn| -> Result<(), Error> {
        (0..500).try_for_each(|customer| txn.delete(customers, &Key::build().u32(customer).finish()))
    })
    .unwrap();
    db.close();
    let run = [&["bench"], &words(scale)[..], &["--cluster", path(&file), "--duration", "60s"]];
    let said = refused(&run.concat());
    assert!(said.contains("was refused again and again, and the run ends"), "{said}");
}
