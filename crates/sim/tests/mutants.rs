//! Every planted bug is caught by a sweep of seeds; the page about the simulator says by which one.
//!
//! `UPDATE_DOCS=1` writes the table anew.
#![cfg(feature = "mutants")]

use std::path::Path;

use plimsoll_sim::plan::{FaultsName, Plan, SCHEMES, Selection, WorkloadName};
use plimsoll_sim::run::run;
use plimsoll_types::mutants::Mutant;

const SEEDS: u64 = 1000;

/// Where a bug can show: the worlds that are swept for it.
fn selection(mutant: Mutant) -> Selection {
    use Mutant::*;
    let (protocol, scheme) = match mutant {
        BoundIgnored | EarlyBound | ValidateThenPin | SkipWithoutRaise | EarlyStamp | ValidatedAtLock
        | LinkUnnoticed => ("occ", "dst"),
        ForeignLockIgnored | NewVersionIgnored | FastPath => ("occ", "none"),
        UpgradeKeepsBound | ReleaseWithoutPin => ("wait_die", "dst"),
        AbortsAlone | RefusalNotPlanted | GivesUpInDoubt | LateRecord | OwnRefusalForgotten => ("occ", "dst"),
        WaitsForEver => ("occ", "none"),
        VotesNotJoined => ("client_2pc", "dst"),
        ReadsNotHeld | RangesNotHeld => ("client_2pc", "none"),
        PinIgnored => ("wait_die", "none"),
        MarksLeftBehind => ("", "dst"),
        MoveUnnoticed => ("occ", ""),
        MoveUnderLocks | MapUnchecked | ScanUnchecked | CopyForgotten => ("", ""),
        GapIgnored | PrefetchedNumbers => ("occ", "gts"),
        StartStampsOnly | SiblingsIgnored | ReadersForgotten => ("rococo", "dst"),
        OrphansLeft | StartsTwice | StartsWhatIsOver => ("rococo", "dst"),
        SettledAlone => ("occ", "vts"),
        NoPin
        | StoredMark
        | NoRaise
        | LateRaise
        | NoWait
        | GatedWait
        | NoLowerBound
        | HighLowerBound
        | ReadersWithoutPin
        | LeafNotMarked
        | EarlyAnswer
        | HeldSnapshotForgotten
        | LostWakeUp => ("", "dst"),
    };
    let moving =
        matches!(mutant, MarksLeftBehind | MoveUnnoticed | MoveUnderLocks | MapUnchecked | ScanUnchecked);
    let selected = Selection {
        protocol: ["occ", "wait_die", "client_2pc", "rococo"].into_iter().find(|&name| name == protocol),
        scheme: SCHEMES.into_iter().find(|&name| name == scheme),
        mutant: Some(mutant),
        fronts: matches!(mutant, WaitsForEver | SettledAlone | OrphansLeft).then_some(1),
        moves: moving.then_some(60),
        workload: (moving || mutant == CopyForgotten).then_some(WorkloadName::Random),
        clients: moving.then_some(5),
        shards: (moving || mutant == CopyForgotten).then_some(2),
        ..Selection::default()
    };
    // These two take a clock that is far behind, at the right moment.
    let offset = |offset_ns: &str| Selection {
        workload: Some(WorkloadName::Append),
        faults: FaultsName::None,
        knobs: vec![("offset_ns".to_owned(), offset_ns.to_owned())],
        ..selected.clone()
    };
    match mutant {
        ValidateThenPin => offset("2000000"),
        SkipWithoutRaise => offset("20000000"),
        // Without moves an absence that is not held is filled in time; with them the locks of others are in the way.
        RangesNotHeld => Selection {
            moves: Some(0),
            fronts: Some(0),
            workload: Some(WorkloadName::Random),
            faults: FaultsName::Network,
            clients: Some(5),
            ..selected
        },
        // The machine has to crash while it coordinates.
        OrphansLeft => Selection { knobs: vec![("crashes_per_s".to_owned(), "100".to_owned())], ..selected },
        _ => selected,
    }
}

#[test]
fn every_planted_bug_is_caught() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut table = String::from(
        "| planted bug | what it does | worlds until caught | what the checker said | seen while it ran |\n|---|---|---|---|---|\n",
    );
    let mut missed = Vec::new();
    for &mutant in Mutant::ALL {
        let selection = selection(mutant);
        let healthy = Selection { mutant: None, ..selection.clone() };
        let caught = (0..SEEDS).find_map(|seed| {
            let outcome = run(&Plan::drawn(seed, &selection).unwrap(), None);
            (!outcome.violations.is_empty()).then_some((seed, outcome.violations))
        });
        let Some((seed, violations)) = caught else {
            missed.push(mutant.name());
            continue;
        };
        let without = run(&Plan::drawn(seed, &healthy).unwrap(), None).violations;
        if !without.is_empty() {
            missed.push(mutant.name());
            eprintln!("{}: the same world without the bug: {without:?}", mutant.name());
        }
        let (name, description) = (mutant.name(), mutant.description());
        let mut online = violations.iter().filter(|violation| violation.kind == "seen while it ran");
        // It ends with the name of what is violated.
        let broken = online.next().map_or("", |violation| {
            violation.detail.rsplit(['(', ')']).nth(1).expect("an invariant in brackets")
        });
        let said = &violations[0].kind;
        table.push_str(&format!("| `{name}` | {description} | {} | {said} | {broken} |\n", seed + 1));
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not caught within {SEEDS} worlds: {missed:?}");

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulator.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (begin, end) = ("<!-- mutants: generated -->\n", "<!-- end -->");
    let start = text.find(begin).unwrap() + begin.len();
    let stop = start + text[start..].find(end).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&page, format!("{}{table}{}", &text[..start], &text[stop..])).unwrap();
    } else {
        assert_eq!(&text[start..stop], table, "run this test with UPDATE_DOCS=1");
    }
}
