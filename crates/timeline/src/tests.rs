//! Pages of worlds under every protocol and scheme, read back.

use std::collections::BTreeMap;

use plimsoll_runtime::sim::Fault;
use plimsoll_sim::plan::{FaultsName, Plan, Selection, WorkloadName};
use plimsoll_sim::recorder::{Recorder, Recording};
use plimsoll_sim::run::{Outcome, Violation, run};
use serde_json::Value;

use super::{page, trace};

fn world(seed: u64, selection: Selection) -> (Plan, Outcome, Recording) {
    let plan = Plan::drawn(seed, &selection).unwrap();
    let recorder = Recorder::default();
    let outcome = run(&plan, Some(recorder.clone()));
    assert_eq!(outcome.hash, run(&plan, None).hash, "looking changes nothing");
    (plan, outcome, recorder.take())
}

fn html((plan, outcome, recording): &(Plan, Outcome, Recording)) -> String {
    page(plan, outcome, recording, "plimsoll sim".to_owned(), "an outcome".to_owned())
}

/// The data of a page, as the script in it finds them.
fn data(page: &str) -> Value {
    let start = r#"<script type="application/json" id="world">"#;
    let (_, rest) = page.split_once(start).expect("a page has data");
    serde_json::from_str(rest.split_once("</script>").expect("which end").0).expect("and are JSON")
}

/// Worlds of many kinds.
fn worlds() -> impl Iterator<Item = (Plan, Outcome, Recording)> {
    let pairs =
        [("occ", "dst"), ("wait_die", "dst"), ("wound_wait", "dst"), ("no_wait", "dst"), ("occ", "gts")];
    let pairs =
        pairs.into_iter().chain([("wait_die", "gts"), ("occ", "vts"), ("occ", "none"), ("wait_die", "rc")]);
    let pairs = pairs.chain([("client_2pc", "dst"), ("client_2pc", "none")]);
    pairs.enumerate().flat_map(|(number, (protocol, scheme))| {
        let workloads = [WorkloadName::Random, WorkloadName::Cycle, WorkloadName::SmallBank];
        workloads.into_iter().enumerate().map(move |(other, workload)| {
            let selection = Selection {
                protocol: Some(protocol),
                scheme: Some(scheme),
                workload: Some(workload),
                transactions: Some(12),
                faults: if number % 2 == 0 { FaultsName::All } else { FaultsName::None },
                ..Selection::default()
            };
            world(10 * number as u64 + other as u64, selection)
        })
    })
}

fn list<'a>(data: &'a Value, name: &str) -> &'a Vec<Value> {
    data[name].as_array().expect("a list")
}

/// Stamps in their order: the beginning is before all.
fn place(stamp: &Value) -> i64 {
    match stamp.as_str() {
        Some(_) => i64::MAX,
        None => stamp.as_i64().unwrap_or(i64::MIN),
    }
}

#[test]
fn a_page_has_every_committed_transaction_with_its_reason() {
    for world in worlds() {
        let data = data(&html(&world));
        let attempts: BTreeMap<&str, &Value> = list(&data, "attempts")
            .iter()
            .map(|attempt| (attempt["id"].as_str().unwrap(), attempt))
            .collect();
        assert!(!world.1.history.transactions.is_empty());
        for transaction in &world.1.history.transactions {
            let attempt = attempts[&*format!("{:?}", transaction.id)];
            assert_eq!(attempt["outcome"], "committed", "{:?}", transaction.id);
            assert_eq!(attempt["label"], transaction.label);
            if world.0.scheme == "dst" {
                assert!(!attempt["because"].is_null(), "{:?} has a timestamp for a reason", transaction.id);
            }
        }
    }
}

#[test]
fn what_is_never_answered_ends_with_its_last_step() {
    let crashes = Selection {
        fronts: Some(1),
        transactions: Some(15),
        knobs: vec![("crashes_per_s".to_owned(), "50".to_owned())],
        ..Selection::default()
    };
    let world = world(302, crashes);
    let data = data(&html(&world));
    let lasted = world.1.virtual_ns;
    let unanswered = list(&data, "attempts").iter().filter(|attempt| attempt["label"] == "in doubt").count();
    assert!(unanswered > 0);
    assert!(list(&data, "attempts").iter().all(|attempt| attempt["end"].as_u64().unwrap() <= lasted));
    assert!(data["done"].as_u64().unwrap() <= lasted);
}

#[test]
fn the_mark_of_a_record_never_falls_from_one_step_to_the_next() {
    let mut rises = 0;
    for world in worlds().filter(|(plan, ..)| plan.scheme == "dst") {
        let data = data(&html(&world));
        let mut marks: BTreeMap<u64, i64> = BTreeMap::new();
        for step in list(&data, "steps") {
            let Some(item) = step["i"].as_u64() else { continue };
            let (before, after) = match (step["k"].as_str().unwrap(), step["m"].as_array()) {
                (_, Some(both)) => (place(&both[0]), place(&both[1])),
                ("locks" | "bounds", _) => (place(&step["v"]), place(&step["v"])),
                _ => continue,
            };
            let mark = marks.entry(item).or_insert(i64::MIN);
            let name = &list(&data, "items")[item as usize]["name"];
            assert!(before >= *mark, "{}: the mark of {name} falls: {step}", world.0.seed);
            assert!(after >= before, "{}: the mark of {name} falls: {step}", world.0.seed);
            rises += u64::from(after > before);
            *mark = after;
        }
    }
    assert!(rises > 1000, "{rises}");
}

#[test]
fn what_a_timestamp_had_to_exceed_is_a_nanosecond_below_it() {
    let mut explained = 0;
    for world in worlds().filter(|(plan, ..)| plan.scheme == "dst") {
        let data = data(&html(&world));
        for (x, attempt) in list(&data, "attempts").iter().enumerate() {
            let because = &attempt["because"];
            let Some(kind @ ("version" | "bound")) = because["kind"].as_str() else { continue };
            if attempt["outcome"] != "committed" {
                continue;
            }
            assert!(because["item"].is_u64(), "{kind} of what? {attempt}");
            let limit = place(&attempt["stamp"]) - 1;
            let of = |step: &&Value| step["x"] == x && step["i"] == because["item"];
            let is = |step: &Value| place(&step["v"]) == limit || place(&step["m"][0]) == limit;
            assert!(list(&data, "steps").iter().filter(of).any(is), "{attempt}");
            explained += 1;
        }
    }
    assert!(explained > 10, "{explained}");
}

#[test]
fn every_arrow_has_two_ends() {
    for world in worlds() {
        let data = data(&html(&world));
        let shards = list(&data, "shards").len() as u64;
        let end = world.2.events.last().unwrap().0;
        let resets = world.1.faults.iter().filter_map(|occurrence| match occurrence.fault {
            Fault::Reset(one, other) => Some([u64::from(one.0), u64::from(other.0)]),
            _ => None,
        });
        let resets: Vec<[u64; 2]> = resets.collect();
        assert!(shards == 1 || !list(&data, "batches").is_empty());
        for batch in list(&data, "batches") {
            let (from, to) = (batch["from"].as_u64().unwrap(), batch["to"].as_u64().unwrap());
            assert!(from < shards && to < shards && from != to, "{batch}");
            assert!(!batch["has"].as_array().unwrap().is_empty(), "{batch}");
            let sent = batch["sent"].as_u64().unwrap();
            match batch["got"].as_u64() {
                Some(got) => assert!(got > sent, "{batch}"),
                // Lost with its channel or with a machine, or still under way when the world ends.
                None => {
                    let reset = resets.contains(&[from, to]) || resets.contains(&[to, from]);
                    let crashed = [from, to].iter().any(|&shard| {
                        let machine = &data["shards"][shard as usize]["machine"];
                        let on_it = |fault: &&Value| list(fault, "machines").contains(machine);
                        let crashes = list(&data, "faults").iter().filter(|fault| fault["kind"] == "crash");
                        // It may be up again before the other side has noticed.
                        crashes.filter(on_it).any(|crash| crash["to"].as_u64().unwrap() + 100_000_000 > sent)
                    });
                    assert!(reset || crashed || sent + 200_000_000 > end, "{batch}");
                }
            }
        }
    }
}

#[test]
fn a_page_is_the_same_every_time() {
    let selection = || Selection { workload: Some(WorkloadName::Random), ..Selection::default() };
    assert_eq!(html(&world(3, selection())), html(&world(3, selection())));
}

#[test]
fn what_a_world_says_cannot_leave_its_place_in_the_page() {
    let mut world = world(5, Selection { transactions: Some(3), ..Selection::default() });
    let detail = "</script><b>{{style}} {{data}} T0.1".to_owned();
    world.1.violations.push(Violation { kind: "<i>".to_owned(), detail: detail.clone() });
    let page = html(&world);
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(data(&page)["violations"][0]["detail"], detail);
}

#[test]
fn a_world_that_ended_in_a_panic_has_a_page() {
    let (plan, _, recording) = world(5, Selection::default());
    let page = html(&(plan, Outcome::panicked(&"I1 is violated"), recording));
    let data = data(&page);
    assert_eq!(data["violations"][0]["detail"], "I1 is violated");
    assert!(list(&data, "steps").len() > 10);
}

#[test]
fn a_page_fetches_nothing() {
    let page = html(&world(5, Selection { transactions: Some(3), ..Selection::default() }));
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("http://") && !page.contains("https://"));
}

/// How many attempts of clients a page says have aborted, as `side.js` counts them.
fn aborted(data: &Value) -> u64 {
    let told = |attempt: &&Value| {
        let refused = attempt["outcome"] == "aborted" && attempt["why"] != "user";
        refused && !attempt["client"].is_null() && attempt["next"].is_null()
    };
    list(data, "attempts").iter().filter(told).count() as u64 + data["unnumbered"].as_u64().unwrap()
}

#[test]
fn a_page_has_as_many_aborted_attempts_as_its_outcome_says_and_knows_what_they_were() {
    let mut aborts = 0;
    let many = Selection {
        protocol: Some("occ"),
        scheme: Some("dst"),
        workload: Some(WorkloadName::Random),
        faults: FaultsName::All,
        shards: Some(4),
        clients: Some(5),
        transactions: Some(40),
        ..Selection::default()
    };
    let crashes = Selection {
        fronts: Some(1),
        knobs: vec![("crashes_per_s".to_owned(), "50".to_owned())],
        ..Selection::default()
    };
    for world in worlds().chain([world(7, many), world(302, crashes)]) {
        let data = data(&html(&world));
        let (pair, seed) = (world.0.pair(), world.0.seed);
        assert_eq!(aborted(&data), world.1.aborts, "{pair}, seed {seed}");
        let nameless = |attempt: &&Value| !attempt["client"].is_null() && attempt["label"] == "";
        assert_eq!(list(&data, "attempts").iter().find(nameless), None, "{pair}, seed {seed}");
        aborts += world.1.aborts;
    }
    assert!(aborts > 500, "{aborts}");
}

#[test]
fn a_trace_tells_of_every_attempt_message_and_fault_in_the_order_of_time() {
    for world in worlds().step_by(2) {
        let (plan, outcome, recording) = &world;
        let (text, data) = (trace(plan, outcome, recording), data(&html(&world)));
        let lines: Vec<&str> = text.lines().collect();
        let times = lines.iter().map(|line| line.split_whitespace().next().unwrap().parse().unwrap());
        assert!(times.collect::<Vec<f64>>().is_sorted());
        // The lines that have this word; the first is the time.
        let mut with: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in &lines {
            line.split_whitespace().for_each(|word| with.entry(word).or_default().push(line));
        }
        let with = |word: &str| with.get(word).map(Vec::as_slice).unwrap_or_default();
        for attempt in list(&data, "attempts").iter().filter(|attempt| !attempt["client"].is_null()) {
            let (id, label) = (attempt["id"].as_str().unwrap(), attempt["label"].as_str().unwrap());
            let told = with(id);
            let begins =
                |line: &&str| line.contains(&format!("begins {label}")) || line.contains("goes on with what");
            assert!(told.iter().any(begins) || label == "in doubt", "{id}: {told:#?}");
            let ends = ["has committed", "gives up", "was never over"];
            assert!(ends.iter().any(|end| told.iter().any(|line| line.contains(end))), "{id}: {told:#?}");
        }
        for batch in list(&data, "batches") {
            let [from, to] = ["from", "to"].map(|end| batch[end].as_u64().unwrap());
            for (time, way) in [("sent", '→'), ("got", '←')] {
                let Some(time_ns) = batch[time].as_u64() else { continue };
                let at = format!("{:.3}", time_ns as f64 / 1e6);
                let kind = batch["has"][0]["k"].as_str().unwrap();
                let tells = |line: &&str| {
                    line.trim_start().starts_with(&at) && line.contains(way) && line.contains(kind)
                };
                assert!(with(&at).iter().any(tells), "{from} → {to}: {batch}");
            }
        }
        for fault in list(&data, "faults") {
            let words = fault["words"].as_str().unwrap();
            assert!(text.contains(words) && !words.contains(['(', '{']), "{words}");
        }
    }
}

#[test]
fn a_trace_says_what_happens_to_marks_and_why_attempts_fail() {
    let selection = Selection {
        protocol: Some("occ"),
        scheme: Some("dst"),
        workload: Some(WorkloadName::Cycle),
        faults: FaultsName::All,
        ..Selection::default()
    };
    let (plan, outcome, recording) = world(5, selection);
    let text = trace(&plan, &outcome, &recording);
    for words in [
        "begins turn, client ",
        "READ AT ring ",
        "answer to LOCK: locked, under way for ",
        "raises the mark of ring ",
        ": its mark is ",
        "takes its timestamp ",
        "installs ring ",
        "gives up: something ",
        ", attempt 2",
        "is lost",
        "under way for",
        ", late",
    ] {
        assert!(text.contains(words), "{words}");
    }
    assert!(!text.contains(['{', '}']), "nothing is left to fill in");
}
