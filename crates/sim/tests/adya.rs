//! A second opinion: histories of lists are judged by a checker that is not ours and sees only what
//! clients saw.
//!
//! The crate `adya` follows Elle (Kingsbury and Alvaro, VLDB 2020): from what was appended and read
//! it infers the order of versions, and looks for cycles. Our own checker is told versions and
//! stamps; they have no line of code and no input in common.
//!
//! Trust in it is not taken on faith: it is given tiny random histories, broken in many ways, and
//! its verdict must be that of trying all orders. Then worlds of every protocol and scheme must
//! pass, and what it says of broken ones is compared with what our checker says, world by world.
//!
//! *What must hold of good worlds.* All is serializable. What did not read at a snapshot is
//! strictly serializable, and so is everything under dst when the clocks are right. Where snapshots
//! follow their session, so does the order found.
//!
//! Left out: phantoms, deletes and everything else that lists do not have.

use std::time::Duration;

use adya::{History, Opts, Valid, Workload};
use plimsoll_sim::export::lines_of;
use plimsoll_sim::plan::{FaultsName, Plan, Selection, WorkloadName, schemes};
use plimsoll_sim::run::{Outcome, run};
use plimsoll_sim::workload::append::{Attempted, End, Operation};
use plimsoll_txn::timestamp::MAX_OFFSET_NS;
use plimsoll_types::random::Rng;

const SERIALIZABLE: &str = "serializable";
const STRICT: &str = "strict-serializable";
const SESSIONS: &str = "strong-session-serializable";

/// The other checker's verdict: the names of the anomalies that the model forbids.
fn anomalies<'a>(attempts: impl IntoIterator<Item = &'a Attempted>, model: &str) -> Vec<String> {
    let history = History::from_json(&lines_of(attempts)).expect("an exported history is well-formed");
    let models = vec![model.to_owned()];
    // Time enough never to give up: the verdict must not depend on how fast this machine is.
    let options = Opts { models, timeout: Duration::from_secs(600), ..Opts::default() };
    let report = adya::check(&history, Workload::ListAppend, &options);
    match report.valid {
        Valid::False => report.anomaly_types,
        // Unknown: no transaction depends on another.
        Valid::True | Valid::Unknown => Vec::new(),
    }
}

// Tiny histories, and all their orders.

const LISTS: u64 = 3;

/// Some transactions that interleave as they like, and read things that may be stale or in the
/// wrong order.
fn tiny(seed: u64) -> Vec<Attempted> {
    let mut rng = Rng::new(seed, 0);
    let count = 2 + rng.below(4);
    let (lists, noise) = (1 + rng.below(LISTS), rng.below(3));
    let mut attempts = Vec::new();
    for session in 0..count {
        // No two events at one time.
        let begin = rng.below(80);
        let end = begin + 1 + rng.below(30);
        let how = match rng.below(24) {
            0 => End::Aborted,
            1 => End::Unknown,
            _ => End::Committed,
        };
        attempts.push(Attempted {
            session: session as u32,
            begin: begin * 2 * count + 2 * session,
            end: end * 2 * count + 2 * session + 1,
            how,
            snapshot: false,
            timestamp: None,
            operations: Vec::new(),
        });
    }
    let mut stored = vec![Vec::new(); LISTS as usize];
    for number in 1..=count * (1 + rng.below(3)) {
        let operations = &mut attempts[rng.below(count) as usize].operations;
        let list = rng.below(lists);
        let numbers: &mut Vec<u64> = &mut stored[list as usize];
        if rng.below(2) == 0 {
            numbers.push(number);
            operations.push(Operation::Append(list, number));
            continue;
        }
        let mut seen = numbers.clone();
        if noise > 0 && rng.below(3) == 0 {
            seen.truncate(rng.below(seen.len() as u64 + 1) as usize);
        }
        if noise > 1 && rng.below(12) == 0 && seen.len() > 1 {
            let last = seen.len() - 1;
            seen.swap(last, last - 1);
        }
        operations.push(Operation::Read(list, seen));
    }
    attempts.retain(|attempted| !attempted.operations.is_empty());
    attempts
}

/// Whether what is left of a history can come next, in some order. What aborted never happened,
/// what nobody knows may have.
fn possible(left: &mut Vec<&Attempted>, stored: &[Vec<u64>], strict: bool) -> bool {
    if left.iter().all(|attempted| attempted.how == End::Unknown) {
        return true;
    }
    for at in 0..left.len() {
        let attempted = left[at];
        let before = |other: &&Attempted| other.how == End::Committed && other.end < attempted.begin;
        if strict && left.iter().any(before) {
            continue;
        }
        let mut stored = stored.to_vec();
        let explained = attempted.operations.iter().all(|operation| match operation {
            Operation::Append(list, number) => {
                stored[*list as usize].push(*number);
                true
            }
            Operation::Read(list, seen) => attempted.how == End::Unknown || stored[*list as usize] == *seen,
        });
        if explained {
            left.remove(at);
            let rest = possible(left, &stored, strict);
            left.insert(at, attempted);
            if rest {
                return true;
            }
        }
    }
    false
}

#[test]
fn its_verdict_is_that_of_trying_all_orders() {
    let (mut good, mut bad) = (0, 0);
    for seed in 0..10_000 {
        let attempts = tiny(seed);
        for model in [SERIALIZABLE, STRICT] {
            let mut left: Vec<&Attempted> =
                attempts.iter().filter(|attempted| attempted.how != End::Aborted).collect();
            let truth = possible(&mut left, &vec![Vec::new(); LISTS as usize], model == STRICT);
            let found = anomalies(&attempts, model);
            assert_eq!(found.is_empty(), truth, "seed {seed}, {model}: {found:?}\n{}", lines_of(&attempts));
            *if truth { &mut good } else { &mut bad } += 1;
        }
    }
    assert!(good > 4000 && bad > 4000, "{good} good, {bad} bad");
}

/// A history in short, an attempt per line: `a0=7 r1[2,3]` appends 7 to list 0 and reads list 1.
/// `!` at its end says that it aborted, `>` that the next one begins after it has ended.
fn history(text: &str) -> Vec<Attempted> {
    let (mut attempts, mut time) = (Vec::new(), 0);
    for (session, line) in text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let (mut how, mut operations, begin) = (End::Committed, Vec::new(), time);
        for word in line.split_whitespace() {
            match word.split_at(1) {
                ("!", _) => how = End::Aborted,
                (">", _) => time += 1000,
                ("a", rest) => {
                    let (list, number) = rest.split_once('=').unwrap();
                    operations.push(Operation::Append(list.parse().unwrap(), number.parse().unwrap()));
                }
                (_, rest) => {
                    let (list, numbers) = rest.trim_end_matches(']').split_once('[').unwrap();
                    let numbers = numbers.split(',').filter_map(|number| number.parse().ok()).collect();
                    operations.push(Operation::Read(list.parse().unwrap(), numbers));
                }
            }
        }
        let (session, end) = (session as u32, begin + 500 + session as u64);
        attempts.push(Attempted { session, begin, end, how, snapshot: false, timestamp: None, operations });
    }
    attempts
}

#[test]
fn it_names_the_anomalies_of_the_textbook() {
    for (name, model, text) in [
        ("G0", SERIALIZABLE, "a0=1 a1=1 \n a0=2 a1=2 \n r0[1,2] r1[2,1]"),
        ("G1a", SERIALIZABLE, "a0=1 ! \n r0[1]"),
        ("G1b", SERIALIZABLE, "a0=1 a0=2 \n r0[1] \n r0[1,2]"),
        ("G1c", SERIALIZABLE, "a0=1 r1[1] \n a1=1 r0[1]"),
        ("G-single-item", SERIALIZABLE, "r0[] r1[1] \n a0=1 a1=1 \n r0[1]"),
        ("G2-item", SERIALIZABLE, "r0[] a1=1 \n r1[] a0=1 \n r0[1] r1[1]"),
        ("lost-update", SERIALIZABLE, "r0[] a0=1 \n r0[] a0=2 \n r0[1,2]"),
        ("incompatible-order", SERIALIZABLE, "a0=1 \n a0=2 \n r0[1,2] \n r0[2,1]"),
        ("duplicate-elements", SERIALIZABLE, "a0=1 \n r0[1,1]"),
        ("G-single-item-realtime", STRICT, "a0=1 > \n r0[] > \n r0[1]"),
    ] {
        let found = anomalies(&history(text), model);
        assert!(found.iter().any(|found| found == name), "{name}: {found:?}");
    }
    assert!(anomalies(&history("a0=1 > \n r0[] > \n r0[1]"), SERIALIZABLE).is_empty());
}

// Worlds.

/// Of each client. Every read shows a whole list, so the second checker's time grows with their
/// square.
const TRANSACTIONS: Option<usize> = Some(25);

fn world(seed: u64, pair: (&'static str, &'static str), faults: FaultsName) -> (Plan, Outcome) {
    let selection = Selection {
        protocol: Some(pair.0),
        scheme: Some(pair.1),
        workload: Some(WorkloadName::Append),
        faults,
        transactions: TRANSACTIONS,
        ..Selection::default()
    };
    let plan = Plan::drawn(seed, &selection).expect("the selection is possible");
    let outcome = run(&plan, None);
    (plan, outcome)
}

/// Everything that the other checker finds in a world of which it should find nothing.
fn second_opinion(plan: &Plan, outcome: &Outcome, clocks_are_right: bool) -> Vec<String> {
    let all = &outcome.appended;
    let mut found = anomalies(all, SERIALIZABLE);
    found.extend(anomalies(all.iter().filter(|attempted| !attempted.snapshot), STRICT));
    if plan.scheme == "none" || plan.scheme == "dst" && clocks_are_right {
        found.extend(anomalies(all, STRICT));
    }
    // Under 2PL an oracle's number tells nothing of what was only read. Under dst what a session
    // has seen is cut down where clocks are further apart than this.
    let sessions = match plan.scheme {
        "dst" => 2 * outcome.clock_error_ns <= MAX_OFFSET_NS,
        scheme => plan.protocol == "occ" && scheme != "rc",
    };
    if sessions {
        found.extend(anomalies(all, SESSIONS));
    }
    found
}

#[test]
fn every_protocol_under_every_scheme_passes() {
    for protocol in ["occ", "wait_die", "wound_wait", "no_wait", "client_2pc"] {
        for scheme in schemes(protocol).into_iter().filter(|&scheme| scheme != "rc") {
            for seed in 0..24 {
                let faults = if seed % 2 == 0 { FaultsName::Network } else { FaultsName::Drawn };
                let (plan, outcome) = world(seed, (protocol, scheme), faults);
                assert!(
                    outcome.violations.is_empty(),
                    "seed {seed}, {}: {:?}",
                    plan.pair(),
                    outcome.violations
                );
                let found = second_opinion(&plan, &outcome, faults == FaultsName::Network);
                assert!(found.is_empty(), "seed {seed}, {}: {found:?}", plan.pair());
            }
        }
    }
}

/// What both checkers say of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    /// Neither finds anything.
    Good,
    /// Both do.
    Bad,
    /// Only ours does, by timestamps or by something that is not in a history of lists.
    Hidden,
    /// One finds a cycle, and the other does not.
    Disagree,
}

fn compare(plan: &Plan, outcome: &Outcome) -> Says {
    // In the order of sessions and of real time ours may find more: it compares timestamps that
    // lists do not show, and knows when an operation's last attempt began.
    let cycle = |kind: &str| kind.contains("(G");
    let cycle = outcome.violations.iter().any(|violation| cycle(&violation.kind));
    let found = !second_opinion(plan, outcome, false).is_empty();
    match (outcome.violations.is_empty(), found) {
        (true, false) => Says::Good,
        (false, true) => Says::Bad,
        (false, false) if !cycle => Says::Hidden,
        _ => Says::Disagree,
    }
}

#[test]
fn both_checkers_find_read_committed_out() {
    for protocol in ["occ", "wait_die"] {
        let worlds = (0..60).map(|seed| world(seed, (protocol, "rc"), FaultsName::Drawn));
        let says: Vec<Says> = worlds.map(|(plan, outcome)| compare(&plan, &outcome)).collect();
        let count = |what| says.iter().filter(|says| **says == what).count();
        assert!(count(Says::Bad) >= 20, "{protocol}: {says:?}");
        // Without timestamps our checker has nothing but cycles, and lists hide none.
        assert_eq!(count(Says::Hidden) + count(Says::Disagree), 0, "{protocol}: {says:?}");
    }
}

#[test]
fn both_checkers_find_the_same_cycles_in_worlds_with_planted_bugs() {
    use plimsoll_types::mutants::Mutant::{self, *};
    // Assertions that fail are expected here.
    std::panic::set_hook(Box::new(|_| {}));
    let mut caught = Vec::new();
    for &mutant in Mutant::ALL {
        let (protocol, scheme) = match mutant {
            // These cannot execute here: lists are no procedures in pieces, as ROCOCO wants them,
            // have no copies, and are neither scanned nor deleted.
            StartStampsOnly | SiblingsIgnored | ReadersForgotten | GraphKept | OrphansLeft | StartsTwice
            | StartsWhatIsOver | StartUngated | TentRecomputed | DecidedUngated | StartsNotInImage
            | OverNotInImage | CopyForgotten | LeafNotMarked | FloorIgnored => continue,
            // The first install ends the world.
            UnmarkedInstall => continue,
            // Nothing of these is to be seen in a history.
            LostWakeUp
            | EarlyAnswer
            | HeldSnapshotForgotten
            | NewerHeldForgotten
            | HeldForEver
            | VotesKept
            | BelievesAnyStamp => continue,
            // Worlds of these keep logs, which lists do not need to show anything.
            AnswersUnstable | InstallsNotLogged | VotesNotLogged | OutcomesNotLogged | LocksNotRestored
            | CeilingForgotten | OneFate | LogRecycledEarly | ImageOfUnstable | VotesNotInImage
            | LockedNotInImage | ImageReadFromEnd | ClosesOverOwner | CutNotOnDisk | OwnCut | CutIgnored
            | OldEraAnswers | VotesEndWithLives | EraNotLogged | ImageAboveCut | UnclosedToldOnce
            | LeavingNotLogged | ArrivalNotLogged | ParcelForgotten | ImageDuringMove | MapNotInImage
            | NumbersReused | PublishedTooHigh | OldNumberTaken | PinsLost | SlotKept => continue,
            // Nothing of SQL runs here.
            JournalUnseen
            | ReadsUnseen
            | WritesKept
            | SavepointForgotten
            | DescriptorUnvalidated
            | IndexFromOldRows
            | ParentsOnce
            | ReservationKept
            | EdgeLost => continue,
            // Our checker is told versions, and not what is in them.
            NewestValue => continue,
            // Nor is what clients were told of these what has happened.
            AbortsAlone | RefusalNotPlanted | GivesUpInDoubt | LateRecord | OwnRefusalForgotten
            | PinIgnored => {
                continue;
            }
            // Two shards that both think they own a record install its versions in no order.
            MoveUnderLocks | MapUnchecked | ScanUnchecked => continue,
            VotesNotJoined => ("client_2pc", "dst"),
            ReadsNotHeld | RangesNotHeld => ("client_2pc", "none"),
            ForeignLockIgnored | NewVersionIgnored | FastPath => ("occ", "none"),
            UpgradeKeepsBound | ReleaseWithoutPin => ("wait_die", "dst"),
            GapIgnored | PrefetchedNumbers => ("occ", "gts"),
            SettledAlone => ("occ", "vts"),
            BoundIgnored | EarlyBound | ValidateThenPin | NoPin | StoredMark | LoweredMark | TwoStamps
            | NoRaise | LateRaise | SkipWithoutRaise | NoWait | GatedWait | NoLowerBound | HighLowerBound
            | EarlyStamp | OneRoundUnasked | ValidatedAtLock | ReadersWithoutPin | LinkUnnoticed
            | StaleSnapshot | TokenIgnored | SessionForgotten | WaitsForEver | MarksLeftBehind
            | MoveUnnoticed => ("occ", "dst"),
        };
        for seed in 0..25 {
            let selection = Selection {
                protocol: Some(protocol),
                scheme: Some(scheme),
                workload: Some(WorkloadName::Append),
                mutant: Some(mutant),
                transactions: TRANSACTIONS,
                ..Selection::default()
            };
            let plan = Plan::drawn(seed, &selection).expect("the selection is possible");
            let outcome = run(&plan, None);
            // Who is stuck has written what nobody tells of.
            if outcome.violations.iter().any(|violation| violation.kind == "stuck") {
                continue;
            }
            let says = compare(&plan, &outcome);
            let (name, ours) = (mutant.name(), &outcome.violations);
            if says == Says::Disagree {
                let _ = std::panic::take_hook();
            }
            assert!(
                says != Says::Disagree,
                "{name}, seed {seed}: {:?} {ours:?}",
                second_opinion(&plan, &outcome, false)
            );
            if says == Says::Bad && !caught.contains(&name) {
                caught.push(name);
            }
        }
    }
    let _ = std::panic::take_hook();
    assert!(caught.len() >= 10, "the other checker catches {caught:?}");
}
