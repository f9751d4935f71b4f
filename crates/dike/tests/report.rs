//! From simulated terminals under every control to the document, the page and the terminal's table.

#[path = "../examples/synthetic/world.rs"]
mod world;

use std::sync::LazyLock;

use plimsoll_dike::metrics::Document;
use plimsoll_dike::metrics::document::{Check, Said, Series};
use plimsoll_dike::metrics::summary::ClientCpu;
use plimsoll_dike::report::{html, table};
use world::World;

static SINGLE: LazyLock<Document> =
    LazyLock::new(|| Document { runs: vec![World { seconds: 100, ..World::default() }.run(1)] });
static COMPARISON: LazyLock<Document> = LazyLock::new(|| Document { runs: world::comparison(40) });

fn single() -> Document {
    SINGLE.clone()
}

fn comparison() -> Document {
    COMPARISON.clone()
}

#[test]
fn controls_of_a_whole_run_come_out_as_intended() {
    let document = single();
    let run = &document.runs[0];
    let overall = |name: &str| {
        let control = run.controls.iter().find(|control| control.name == name);
        let control = control.unwrap_or_else(|| panic!("{name} is among the controls"));
        control.overall(run.measured()).expect("observed")
    };
    for name in [
        "new_order: distribution ratio",
        "new_order: on several nodes",
        "new_order: distribution degree",
        "homes: hottest 1 of 180",
        "mix: new_order",
        "mix: payment",
        "mix: stock_level",
    ] {
        let of = overall(name);
        assert!(of.deviation().abs() < 0.02, "{name}: {of:?}");
    }
    let before_the_faults = 12..35;
    let ci = run.controls.iter().find(|control| control.name == "contention intensity").expect("controlled");
    let ci = ci.overall(before_the_faults).expect("observed");
    assert!(ci.deviation().abs() < 0.1, "{ci:?}");
}

#[test]
fn a_run_is_judged_by_its_curve() {
    let document = single();
    let summary = document.runs[0].summary();
    let [slow, killed] = summary.availability.as_slice() else { panic!("{:?}", summary.availability) };
    assert_eq!((slow.fault.as_str(), killed.fault.as_str()), ("network delay", "kill"));
    let [outage] = summary.outages.as_slice() else { panic!("{:?}", summary.outages) };
    assert!(
        (69.9..71.5).contains(&outage.from_seconds) && (76.5..79.0).contains(&outage.to_seconds),
        "{outage:?}"
    );
    assert!((6.0..10.0).contains(&killed.recovery_seconds.expect("settled")), "{killed:?}");
    assert!(summary.latency.p99_us > summary.latency.p50_us && summary.errors > 0);
}

#[test]
fn the_page_contains_what_was_measured() {
    let document = single();
    let page = html::render(&document);
    for expected in [
        "Dike: nine nodes",
        "The check holds.",
        "Over time",
        "class=\"fault\"",
        "<b>A</b>network delay node 2, 35 s to 50 s",
        "<b>B</b>kill node 1, from 70 s on",
        "Availability",
        "R_e, throughput kept",
        "seconds without a commit",
        "Latency over time",
        "Arrivals did not wait",
        "Intended and achieved",
        "contention intensity",
        "new_order: distribution degree",
        "Data per node",
        "Operations per second and node",
        "connection lost",
        "Everything that was set",
        "terminals without a connection",
    ] {
        assert!(page.contains(expected), "{expected:?} is missing");
    }
    let inside = page.split("id=\"figures\">\n").nth(1).and_then(|rest| rest.split("</script>").next());
    let inside = inside.expect("the figures").replace("\\u003c", "<");
    assert_eq!(Document::from_json(&inside).expect("readable"), document, "the page carries its document");
}

#[test]
fn a_comparison_shows_every_label_and_what_growth_brings() {
    let document = comparison();
    let page = html::render(&document);
    for label in ["harbour, 3 nodes", "harbour, 9 nodes", "lagoon, 9 nodes"] {
        assert!(page.contains(label), "{label}");
    }
    for expected in
        ["Dike: 3 runs compared", "Scalability", "TPS per node", "repetition", "All 9 checks hold."]
    {
        assert!(page.contains(expected), "{expected:?} is missing");
    }
    let text = table::render(&document, 100);
    assert!(text.contains("scalability") && text.contains("lagoon, 9 nodes"), "{text}");
    assert!(
        !text.contains("harbour, 3 nodes  lagoon"),
        "cluster sizes of different databases do not compare"
    );
}

#[test]
fn a_page_fetches_nothing_and_its_tags_are_balanced() {
    for document in [single(), comparison(), Document::default()] {
        let page = html::render(&document);
        for forbidden in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(forbidden), "{forbidden} is in the page");
        }
        assert!(page.contains("prefers-color-scheme: dark"));
        for tag in [
            "div", "section", "table", "svg", "g", "details", "ul", "li", "dl", "text", "main", "figure",
            "header",
        ] {
            let opened =
                page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(!page.contains("NaN"));
    }
}

#[test]
fn nothing_foreign_gets_into_the_page_unescaped() {
    let evil = "</script><script>alert('1')</script>";
    let mut document = single();
    let run = &mut document.runs[0];
    run.about.label = evil.into();
    run.about.database = evil.into();
    run.about.config.insert(evil.into(), evil.into());
    run.kinds[0].name = evil.into();
    run.faults[0].name = evil.into();
    run.faults[1].target = evil.into();
    run.controls[0].name = evil.into();
    run.controls[0].unit = evil.into();
    run.nodes[0].node = evil.into();
    run.aborts.push(Series {
        name: evil.into(),
        counts: vec![1; 100],
        first: Some(Said::new(0, evil, evil)),
    });
    run.checks.push(Check { name: evil.into(), ok: false, detail: evil.into() });
    let page = html::render(&document);
    assert!(!page.contains("<script>alert"), "a script got through");
    assert_eq!(page.matches("</script>").count(), 2, "only the page's own scripts end");
}

#[test]
fn doubts_are_said_on_the_page_and_on_the_terminal() {
    let mut document = single();
    let run = &mut document.runs[0];
    run.about.interrupted = true;
    run.client_cpu = ClientCpu { share: vec![0.95; 100], own: vec![0.5; 100] };
    run.checks.push(Check { name: "tpcc consistency 3".into(), ok: false, detail: "warehouse 7".into() });
    for text in [html::render(&document), table::render(&document, 100)] {
        for expected in
            ["tpcc consistency 3 does not hold: warehouse 7", "ended early", "may be what was measured"]
        {
            assert!(text.contains(expected), "{expected:?} is missing");
        }
    }
    // Nothing after the last second before the end of the outage.
    let lost = World { seconds: 100, outage_seconds: 40, ..World::default() };
    let document = Document { runs: vec![lost.run(1)] };
    for text in [html::render(&document), table::render(&document, 100)] {
        assert!(text.contains("the database did not come back: nothing was committed from 7"), "{text}");
    }
    let short = World { seconds: 5, ..World::default() };
    let mut run = short.run(1);
    run.warm_up_seconds = 5;
    let document = Document { runs: vec![run] };
    assert!(table::render(&document, 100).contains("within its warm-up"));
    assert!(!html::render(&document).contains("NaN"));
}

#[test]
fn a_narrow_terminal_loses_columns_and_wraps_nothing() {
    let document = single();
    let widest = |width| table::render(&document, width).lines().map(|line| line.chars().count()).max();
    assert!(widest(100) <= Some(100));
    let narrow = table::render(&document, 64);
    let kinds: Vec<&str> = narrow.lines().filter(|line| line.starts_with("payment")).collect();
    assert_eq!(kinds.len(), 1, "one row, not wrapped: {narrow}");
    assert!(kinds[0].chars().count() <= 64, "{narrow}");
    assert!(narrow.lines().any(|line| line.starts_with("transaction") && !line.contains("max")), "{narrow}");
}
