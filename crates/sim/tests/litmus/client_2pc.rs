//! Client-driven two-phase commit: what is held from the vote to the decision, and the stamp that
//! the votes come to.

use plimsoll_types::mutants::Mutant::*;

use crate::litmus;

litmus! {
    what_was_read_is_held_until_the_decision {
        broken: "client_2pc: PREPARE checks what was read, and does not lock it",
        setups: &["client_2pc/dst", "client_2pc/none"],
        also: &[],
        caught: &[(ReadsNotHeld, "write skew (G2-item)")],
        script: "
            A: x, B: y
            T at 1: r(x) w(y)
            U at 1: r(y) w(x)

            T reads x
            U reads y
            T prepares x
            U prepares y
            U prepares x
            U decides x
            U decides y
            T prepares y
            T decides x
            T decides y
            commit: T
        ",
    }

    nobody_inserts_what_was_found_absent_until_the_decision {
        broken: "client_2pc: PREPARE checks that a key is absent, and does not lock it",
        setups: &["client_2pc/dst", "client_2pc/none"],
        also: &[],
        caught: &[(RangesNotHeld, "write skew (G2-item)")],
        script: "
            A: a?, B: y
            T at 1: r(a) w(y)
            U at 1: r(y) i(a)

            T reads a
            U reads y
            T prepares a
            U prepares y
            U prepares a
            U decides a
            U decides y
            T prepares y
            T decides a
            T decides y
            commit: T
        ",
    }

    nobody_inserts_into_a_range_until_the_decision {
        broken: "client_2pc: PREPARE checks a range, and does not lock it",
        setups: &["client_2pc/dst", "client_2pc/none"],
        also: &[],
        caught: &[(RangesNotHeld, "phantom (G2)")],
        script: "
            A: a? x, B: y
            T at 1: scan(A) w(y)
            U at 1: r(y) i(a)

            T reads A
            U reads y
            T prepares A
            U prepares y
            U prepares a
            U decides a
            U decides y
            T prepares y
            T decides A
            T decides y
            commit: T
        ",
    }

    the_stamp_is_the_largest_of_all_votes {
        broken: "client_2pc: the stamp is the first vote",
        setups: &["client_2pc/dst"],
        also: &["client_2pc/none"],
        caught: &[(VotesNotJoined, "fractured read (G-single)")],
        script: "
            A: x, B: y
            W at 1: w(x,y)
            R at 6: readonly r(y) r(x)

            R reads y
            W prepares x
            W prepares y
            W decides x
            W decides y
            R reads x
            commit: W R
        ",
    }

    what_was_read_is_pinned_to_the_stamp_of_the_decision {
        broken: "client_2pc: shared locks are dropped without pinning what they protected",
        setups: &["client_2pc/dst"],
        also: &["client_2pc/none"],
        caught: &[(ReleaseWithoutPin, "read-only anomaly (G2-item)")],
        script: "
            A: x, B: y
            T at 4: r(x) w(y)
            W at 1: w(x)
            R at 6: readonly r(y) r(x)

            T reads x
            R reads y
            T prepares x
            T prepares y
            T decides x
            W commits x
            T decides y
            R reads x
            commit: T W R
        ",
    }

    what_is_not_there_can_be_deleted_blindly {
        broken: "client_2pc: who deletes a key that is not there has nothing to lock, or keeps the lock",
        setups: &["client_2pc/dst", "client_2pc/none"],
        also: &[],
        caught: &[],
        script: "
            A: a?, B: y
            T at 1: d(a) w(y)
            U at 1: i(a)

            T prepares a
            U commits a
            T prepares y
            T decides a
            T decides y
            commit: T
        ",
    }
}
