//! Every planted bug is caught; the page about the simulator says in which world.
//!
//! The world that the page names is run first, and others only if that one does not catch the bug
//! any more. `UPDATE_DOCS=1` sweeps all from the first seed on, and writes the table anew.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use plimsoll_sim::plan::{FaultsName, Plan, SCHEMES, Selection, WorkloadName};
use plimsoll_sim::run::{Violation, run};
use plimsoll_types::mutants::Mutant;

const SEEDS: u64 = 1000;

/// Shows in a schedule that no sweep has met, and a litmus test plays.
const PLAYED: Mutant = Mutant::OneRoundUnasked;

/// The kind of violation that has to be among those that are found, for a bug that is there to show
/// it.
fn shows(mutant: Mutant) -> Option<&'static str> {
    match mutant {
        Mutant::UnmarkedInstall => Some("assertion"),
        Mutant::TwoStamps => Some("stamps of one transaction differ (I4)"),
        Mutant::StaleSnapshot => Some("real-time order violated"),
        Mutant::TokenIgnored | Mutant::SessionForgotten => Some("session order violated"),
        Mutant::NewestValue => Some("wrong value"),
        Mutant::BelievesAnyStamp => Some("stamp from the future"),
        Mutant::HeldForEver => Some("garbage"),
        Mutant::VotesKept => Some("vote left behind"),
        Mutant::GraphKept => Some("graph left behind"),
        Mutant::UnclosedToldOnce => Some("not kept"),
        _ => None,
    }
}

/// Where a bug can show: the worlds that are swept for it.
fn selection(mutant: Mutant) -> Selection {
    use Mutant::*;
    let (protocol, scheme) = match mutant {
        BoundIgnored | EarlyBound | ValidateThenPin | SkipWithoutRaise | EarlyStamp | ValidatedAtLock
        | LinkUnnoticed | OneRoundUnasked => ("occ", "dst"),
        ForeignLockIgnored | NewVersionIgnored | FastPath => ("occ", "none"),
        UpgradeKeepsBound | ReleaseWithoutPin | FloorIgnored => ("wait_die", "dst"),
        AbortsAlone | RefusalNotPlanted | GivesUpInDoubt | LateRecord | OwnRefusalForgotten => ("occ", "dst"),
        WaitsForEver => ("occ", "none"),
        VotesNotJoined => ("client_2pc", "dst"),
        ReadsNotHeld | RangesNotHeld => ("client_2pc", "none"),
        PinIgnored => ("wait_die", "none"),
        MarksLeftBehind => ("", "dst"),
        MoveUnnoticed => ("occ", ""),
        MoveUnderLocks | MapUnchecked | ScanUnchecked | CopyForgotten => ("", ""),
        GapIgnored | PrefetchedNumbers | NumbersReused | PublishedTooHigh | OldNumberTaken => ("occ", "gts"),
        PinsLost | SlotKept => ("occ", "vts"),
        StartStampsOnly | SiblingsIgnored | ReadersForgotten => ("rococo", "dst"),
        OrphansLeft | StartsTwice | StartsWhatIsOver | GraphKept => ("rococo", "dst"),
        StartUngated | TentRecomputed | DecidedUngated | StartsNotInImage | OverNotInImage => {
            ("rococo", "dst")
        }
        SettledAlone => ("occ", "vts"),
        NoPin
        | StoredMark
        | NoRaise
        | LateRaise
        | UnmarkedInstall
        | LoweredMark
        | TwoStamps
        | NoWait
        | GatedWait
        | NoLowerBound
        | HighLowerBound
        | ReadersWithoutPin
        | LeafNotMarked
        | StaleSnapshot
        | TokenIgnored
        | SessionForgotten
        | NewestValue
        | EarlyAnswer
        | HeldSnapshotForgotten
        | NewerHeldForgotten
        | HeldForEver
        | VotesKept
        | BelievesAnyStamp
        | LostWakeUp => ("", "dst"),
        AnswersUnstable | InstallsNotLogged | VotesNotLogged | OutcomesNotLogged => ("", ""),
        LocksNotRestored | OneFate => ("occ", ""),
        CeilingForgotten => ("occ", "dst"),
        LeavingNotLogged | ArrivalNotLogged | ParcelForgotten | ImageDuringMove | MapNotInImage => ("", ""),
        ClosesOverOwner | CutNotOnDisk | OwnCut | CutIgnored | EraNotLogged | ImageAboveCut
        | UnclosedToldOnce | OldEraAnswers | VotesEndWithLives => ("", "dst"),
        LogRecycledEarly | ImageOfUnstable | VotesNotInImage | LockedNotInImage | ImageReadFromEnd => {
            ("", "")
        }
        JournalUnseen
        | ReadsUnseen
        | WritesKept
        | SavepointForgotten
        | DescriptorUnvalidated
        | IndexFromOldRows
        | ParentsOnce
        | ReservationKept
        | EdgeLost => ("", "dst"),
    };
    let moving = matches!(
        mutant,
        MarksLeftBehind
            | MoveUnnoticed
            | MoveUnderLocks
            | MapUnchecked
            | ScanUnchecked
            | LeavingNotLogged
            | ArrivalNotLogged
            | ParcelForgotten
            | ImageDuringMove
            | MapNotInImage
    );
    let selected = Selection {
        protocol: ["occ", "wait_die", "client_2pc", "rococo"].into_iter().find(|&name| name == protocol),
        scheme: SCHEMES.into_iter().find(|&name| name == scheme),
        mutant: Some(mutant),
        fronts: matches!(mutant, WaitsForEver | SettledAlone | OrphansLeft | FloorIgnored).then_some(1),
        moves: moving.then_some(60),
        workload: (moving || matches!(mutant, CopyForgotten | FloorIgnored)).then_some(WorkloadName::Random),
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
        // A client without data has to commit on a shard whose clock is behind.
        SessionForgotten => {
            Selection { workload: Some(WorkloadName::SmallBank), fronts: Some(1), ..offset("20000000") }
        }
        SkipWithoutRaise => offset("20000000"),
        // Without moves an absence that is not held is filled in time; with them the locks of
        // others are in the way.
        RangesNotHeld => Selection {
            moves: Some(0),
            fronts: Some(0),
            workload: Some(WorkloadName::Random),
            faults: FaultsName::Network,
            clients: Some(5),
            ..selected
        },
        BelievesAnyStamp => {
            Selection { knobs: vec![("future_stamps_per_s".to_owned(), "100".to_owned())], ..selected }
        }
        // The machine has to crash while it coordinates.
        OrphansLeft => Selection { knobs: vec![("crashes_per_s".to_owned(), "100".to_owned())], ..selected },
        // It has to come back with a clock that is behind what the others have forgotten meanwhile.
        FloorIgnored => Selection {
            knobs: [("crashes_per_s", "100"), ("offset_ns", "50000000")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..selected
        },
        AnswersUnstable | InstallsNotLogged | VotesNotLogged | OutcomesNotLogged | LocksNotRestored
        | CeilingForgotten | OneFate | LogRecycledEarly | LockedNotInImage | ImageReadFromEnd
        | LeavingNotLogged | ArrivalNotLogged | ParcelForgotten | ImageDuringMove | MapNotInImage
        | NumbersReused | PublishedTooHigh | OldNumberTaken | PinsLost | SlotKept => Selection {
            logs: true,
            knobs: [("crashes_per_s", "20"), ("down_ns", "20000000")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..selected
        },
        // What has started has to be finished, which takes shards that are there at the same time.
        StartUngated | TentRecomputed | DecidedUngated | StartsNotInImage | OverNotInImage => Selection {
            logs: true,
            knobs: [("crashes_per_s", "3"), ("down_ns", "20000000")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..selected
        },
        ClosesOverOwner | CutNotOnDisk | OwnCut | CutIgnored | EraNotLogged | ImageAboveCut
        | UnclosedToldOnce | OldEraAnswers | VotesEndWithLives => Selection {
            logs: true,
            to_cut: true,
            knobs: [("crashes_per_s", "20"), ("down_ns", "20000000")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..selected
        },
        // Other voters have to be away when an image is taken.
        VotesNotInImage => Selection {
            logs: true,
            knobs: [("crashes_per_s", "20"), ("down_ns", "100000000")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..selected
        },
        // The log has to fail while the image succeeds.
        ImageOfUnstable => Selection {
            logs: true,
            knobs: [("crashes_per_s", "20"), ("down_ns", "20000000"), ("sync_errors", "0.4")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..selected
        },
        JournalUnseen
        | ReadsUnseen
        | WritesKept
        | SavepointForgotten
        | DescriptorUnvalidated
        | IndexFromOldRows
        | ParentsOnce
        | ReservationKept
        | EdgeLost => Selection { workload: Some(WorkloadName::Sql), ..selected },
        // Shards remind each other of what is left again and again.
        VotesKept => Selection { transactions: Some(10), ..selected },
        _ => selected,
    }
}

/// The line of a planted bug in the table; `None` if it is not caught, or if the world is not right
/// without it.
fn line(mutant: Mutant, known: Option<u64>) -> Option<String> {
    let selection = selection(mutant);
    let healthy = Selection { mutant: None, ..selection.clone() };
    let fits = |violation: &&Violation| shows(mutant).is_none_or(|kind| violation.kind == kind);
    let (seed, said, violations) = known.into_iter().chain(0..SEEDS).find_map(|seed| {
        let violations = run(&Plan::drawn(seed, &selection).unwrap(), None).violations;
        let said = violations.iter().find(fits)?.kind.clone();
        Some((seed, said, violations))
    })?;
    let (name, description) = (mutant.name(), mutant.description());
    let without = run(&Plan::drawn(seed, &healthy).unwrap(), None).violations;
    if !without.is_empty() {
        eprintln!("{name}: the same world without the bug: {without:?}");
        return None;
    }
    let mut online = violations.iter().filter(|violation| violation.kind == "seen while it ran");
    // It ends with the name of what is violated.
    let broken = online.next().map_or("", |violation| {
        violation.detail.rsplit(['(', ')']).nth(1).expect("an invariant in brackets")
    });
    Some(format!("| `{name}` | {description} | {} | {said} | {broken} |\n", seed + 1))
}

/// The seed of the world in which a table says that a planted bug is caught.
fn seed_in(table: &str, mutant: Mutant) -> Option<u64> {
    let named = format!("| `{}` |", mutant.name());
    let line = table.lines().find(|line| line.starts_with(&named))?;
    line.split('|').nth(3)?.trim().parse::<u64>().ok()?.checked_sub(1)
}

#[test]
fn every_planted_bug_is_caught() {
    std::panic::set_hook(Box::new(|_| {}));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulator.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (begin, end) = ("<!-- mutants: generated -->\n", "<!-- end -->");
    let start = text.find(begin).unwrap() + begin.len();
    let stop = start + text[start..].find(end).unwrap();
    let updates = std::env::var_os("UPDATE_DOCS").is_some();
    let known = |mutant| if updates { None } else { seed_in(&text[start..stop], mutant) };
    let mut table = String::from(
        "| planted bug | what it does | worlds until caught | what the checker said | seen while it ran |\n|---|---|---|---|---|\n",
    );
    // Some of them, by their names, to look at.
    let only = std::env::var("PLIMSOLL_MUTANTS").ok();
    let is_one = |mutant: &&Mutant| {
        let named = |only: &String| only.split(',').any(|name| name == mutant.name());
        **mutant != PLAYED && only.as_ref().is_none_or(named)
    };
    let mutants: Vec<Mutant> = Mutant::ALL.iter().filter(is_one).copied().collect();
    // A bug is planted in a thread.
    let next = AtomicUsize::new(0);
    let look = || {
        let mut lines = Vec::new();
        while let Some(&mutant) = mutants.get(next.fetch_add(1, Relaxed)) {
            lines.push((mutant, line(mutant, known(mutant))));
        }
        lines
    };
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut lines: Vec<(Mutant, Option<String>)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(look)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("worlds end")).collect()
    });
    lines.sort_by_key(|(mutant, _)| Mutant::ALL.iter().position(|other| other == mutant));
    let missed: Vec<_> =
        lines.iter().filter(|(_, line)| line.is_none()).map(|(mutant, _)| mutant.name()).collect();
    lines.into_iter().for_each(|(_, line)| table.push_str(&line.unwrap_or_default()));
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not caught within {SEEDS} worlds: {missed:?}");

    if only.is_some() {
        println!("{table}");
        return;
    }
    if updates {
        std::fs::write(&page, format!("{}{table}{}", &text[..start], &text[stop..])).unwrap();
    } else {
        assert_eq!(&text[start..stop], table, "run this test with UPDATE_DOCS=1");
    }
}
