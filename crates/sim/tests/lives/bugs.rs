//! Each rule that a script is about, broken: the script fails, with the words that say so.

use std::panic::catch_unwind;

use plimsoll_txn::protocols::{Client2pc, Occ, Rococo, TwoPl};
use plimsoll_txn::timestamps::Dst;
use plimsoll_types::mutants::{Mutant, plant};

use crate::{client_2pc, moments, moves, sessions, votes};

/// A bug, the scripts that it must not pass, and what they say.
type Case = (Mutant, &'static [fn()], &'static str);

macro_rules! cases {
    ($($bug:ident in ($($script:tt)+): $words:literal;)+) => {
        &[$((Mutant::$bug, scripts!($($script)+), $words),)+]
    };
}

macro_rules! scripts {
    ($module:ident::$script:ident) => { &[$module::$script] };
    ($module:ident::$script:ident under $($protocol:ident)+) => {
        &[$($module::$script::<$protocol<Dst>>,)+]
    };
}

const CASES: &[Case] = cases! {
    AbortsAlone in (votes::a_coordinator_that_is_not_answered_asks under Occ TwoPl): "what is there was answered";
    RefusalNotPlanted in (votes::a_vote_that_comes_after_the_refusal_is_refused under Occ TwoPl Client2pc): "both or none";
    LateRecord in (votes::a_vote_that_comes_after_the_refusal_is_refused under Occ TwoPl Client2pc): "both or none";
    OwnRefusalForgotten in (votes::who_votes_last_is_bound_by_its_refusal): "all or none";
    GivesUpInDoubt in (votes::who_has_voted_waits_for_the_outcome under Occ TwoPl Client2pc): "both or none";
    WaitsForEver in (votes::write_locks_do_not_outlive_their_coordinator under Occ TwoPl): "locks, votes and graphs";
    WaitsForEver in (votes::read_locks_do_not_outlive_their_coordinator under TwoPl): "locks, votes and graphs";
    PinIgnored in (votes::what_was_read_under_a_lock_that_is_lost_is_not_relied_upon under TwoPl): "before and after";
    RangesNotHeld in (votes::what_was_found_absent_is_held_until_the_decision under Occ Client2pc): "it is held";
    ReadsNotHeld in (client_2pc::a_shard_that_was_only_read_votes_and_holds_what_was_read): "before the decision";
    VotesNotJoined in (client_2pc::those_who_voted_find_the_largest_stamp_without_their_coordinator): "has asked for";
    SessionForgotten in
        (sessions::who_commits_comes_after_what_was_answered_here_meanwhile under Occ Client2pc): "was answered before";
    SessionForgotten in
        (sessions::who_commits_comes_after_what_its_session_has_seen_meanwhile under Occ TwoPl Client2pc): "has seen";
    OrphansLeft in (moments::a_coordinator_may_end_at_any_moment under Rococo): "locks, votes and graphs";
    MarksLeftBehind in
        (moves::who_writes_after_a_move_comes_after_those_who_read_before_it under Occ TwoPl Client2pc): "has not seen";
    MoveUnnoticed in (moves::what_was_absent_before_a_move_is_not_relied_upon under Occ Client2pc): "before and after";
    MoveUnderLocks in
        (moves::a_slot_does_not_move_between_the_answer_and_the_install under Occ TwoPl Client2pc): "is locked does not move";
    MapUnchecked in
        (moves::a_slot_does_not_move_between_the_answer_and_the_install under Occ TwoPl Client2pc): "the record is there";
    ScanUnchecked in (moves::a_scan_finds_what_moves_meanwhile under Occ TwoPl Client2pc): "all three rows";
};

/// Plays a script with a bug planted. Returns what it has to say about that.
fn said(bug: Mutant, script: fn()) -> String {
    plant(Some(bug));
    let played = catch_unwind(script);
    plant(None);
    let Err(said) = played else { return "nothing".to_owned() };
    let text = said.downcast_ref::<String>().cloned();
    text.or_else(|| said.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
}

#[test]
fn every_script_fails_if_its_rule_is_broken() {
    let mut missed = Vec::new();
    for &(bug, scripts, words) in CASES {
        let all = scripts.iter().map(|&script| said(bug, script));
        let wrong = all.filter(|said| !said.contains(words));
        missed.extend(wrong.map(|said| format!("{}: {said:?} and not {words:?}", bug.name())));
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
