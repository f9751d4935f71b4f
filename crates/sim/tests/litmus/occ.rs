//! OCC: bounds, stamp, validation, pins.

use plimsoll_types::mutants::Mutant::*;

use crate::litmus;
use crate::script::IN_ONE_ROUND;

litmus! {
    a_reader_that_slips_in_between_read_and_lock_comes_before_the_writer {
        broken: "the bound of the write set is read before the lock",
        setups: &["occ/dst"],
        also: &["occ/gts", "occ/vts", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(EarlyBound, "fractured read (G-single)"), (BoundIgnored, "fractured read (G-single)")],
        script: "
            A: x, B: y
            W at 1: r(x) w(x) w(y)
            R at 6: readonly r(x) r(y)

            W reads x
            R reads x
            W locks x
            W locks y
            W installs x
            W installs y
            R reads y
            commit: W R
        ",
    }

    what_was_read_is_pinned_before_anybody_looks_whether_it_is_current {
        broken: "validate, then raise the mark; or raise no mark of what was read",
        setups: &["occ/dst"],
        also: &["occ/gts", "occ/vts", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[
            (ValidateThenPin, "read-only anomaly (G2-item)"),
            (NoPin, "read-only anomaly (G2-item)"),
        ],
        script: "
            A: x, B: y
            T at 4: r(x) w(y)
            W at 1: w(x)
            R at 6: readonly r(y) r(x)

            T reads x
            R reads y
            T locks y
            T validates x; W commits x
            T installs y
            R reads x
            commit: T W R
        ",
    }

    two_that_locked_what_the_other_has_read_do_not_both_commit {
        broken: "validation ignores foreign locks",
        setups: &["occ/dst", "occ/gts", "occ/vts", "occ/none"],
        also: &["client_2pc/dst", "client_2pc/none"],
        caught: &[(ForeignLockIgnored, "write skew (G2-item)")],
        script: "
            A: x, B: y
            T at 1: r(x) w(y)
            U at 1: r(y) w(x)

            T reads x
            U reads y
            T locks y
            U locks x
            T validates x
            U validates y
            commit:
        ",
    }

    what_was_overwritten_since_it_was_read_is_noticed {
        broken: "validation ignores newer versions",
        setups: &["occ/dst", "occ/gts", "occ/vts", "occ/none"],
        also: &["client_2pc/dst", "client_2pc/none"],
        caught: &[(NewVersionIgnored, "write skew (G2-item)")],
        script: "
            A: x, B: y
            T at 1: r(x) w(y)
            U at 1: r(y) w(x)

            T reads x
            U reads y
            T locks y
            T validates x
            T installs y
            U locks x
            U validates y
            commit: T
        ",
    }

    a_mark_that_a_reader_has_left_is_not_lowered_by_a_commit {
        broken: "a commit stores its timestamp as mark instead of the maximum",
        setups: &["occ/dst"],
        also: &["occ/gts", "occ/vts", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(StoredMark, "fractured read (G-single)")],
        script: "
            A: x, B: y z
            T at 4: r(x) w(z)
            W at 1: w(x,y)
            R at 6: readonly r(x) r(y)

            R reads x
            T reads x
            T locks z
            T validates x
            T installs z
            W locks x
            W locks y
            W installs x
            W installs y
            R reads y
            commit: T W R
        ",
    }

    reads_are_validated_after_the_last_lock {
        broken: "LOCK and VALIDATE at once, not validated again at the final timestamp",
        setups: &["occ/dst", "occ/gts", "occ/vts", "occ/none"],
        also: &["client_2pc/dst", "client_2pc/none"],
        caught: &[(FastPath, "read skew (G-single)")],
        script: "
            A: x, B: y
            T at 4: r(y) w(x)
            W at 1: w(x,y)

            T reads y
            T validates y?
            W locks x
            W locks y
            W installs x
            W installs y
            T locks x
            T validates y?
            T unlocks x
            commit: W
        ",
    }

    the_stamp_at_which_reads_are_pinned_is_final {
        broken: "the same, and only the timestamp changes",
        setups: &["occ/dst"],
        also: &["occ/gts", "occ/vts", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(FastPath, "read-only anomaly (G2-item)")],
        script: "
            A: x, B: y
            T at 4: r(x) w(y)
            W at 1: w(x)
            R at 6: readonly r(y) r(x)

            T reads x
            R reads y
            T locks y
            T validates x
            W commits x
            T installs y
            R reads x
            commit: T W R
        ",
    }

    reads_are_validated_along_with_the_locks_at_a_stamp_that_is_proposed {
        broken: "the same in one round: a stamp that is proposed, and turns out too low",
        setups: &[IN_ONE_ROUND],
        also: &["occ/dst", "occ/gts", "occ/vts", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(FastPath, "read-only anomaly (G2-item)")],
        script: "
            A: x, B: y, C: z
            T at 4: r(x) w(y)
            W at 1: w(x)
            R at 6: readonly r(y) r(x)
            U at 8: r(x) w(z)

            T reads x
            R reads y
            T validates x
            T locks y
            T validates x
            W commits x
            T installs y
            R reads x
            U reads x
            U validates x; U locks z
            U installs z
            commit: T W R U
        ",
    }

    who_begins_after_an_answer_comes_after_it_whatever_the_clocks_say {
        broken: "reads are validated in one round, although that was not asked for",
        setups: &["occ/dst"],
        also: &["occ/gts", "occ/vts", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(OneRoundUnasked, "real-time order violated")],
        script: "
            A: x, B: y
            T at 4: r(x) w(y)
            U at 5: w(x)
            V at 1: w(y)

            T reads x
            T validates x?
            U commits x
            V commits y
            T locks y
            T validates x
            commit: U V
        ",
    }

    what_is_read_on_a_shard_that_is_written_is_locked_until_the_last_lock_is_held {
        broken: "LOCK and VALIDATE at A while a LOCK at B is outstanding",
        setups: &["occ/dst"],
        also: &["occ/gts", "occ/vts", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(ValidatedAtLock, "read-only anomaly (G2-item)")],
        script: "
            A: x z, B: y
            T at 4: r(x) w(z,y)
            W at 1: w(x)
            R at 6: readonly r(y) r(x)

            T reads x
            R reads y
            T locks z
            W commits x
            T locks y
            T installs z
            T installs y
            R reads x
            commit: T R
        ",
    }

    a_reader_that_is_validated_pins_what_it_has_read {
        broken: "a validated read without writes does not pin",
        setups: &["occ/dst", "two_pl/dst"],
        also: &[
            "occ/gts", "occ/vts", "occ/none", "two_pl/gts", "two_pl/vts", "two_pl/none", "client_2pc/dst",
            "client_2pc/none",
        ],
        caught: &[(ReadersWithoutPin, "long fork (G2-item)")],
        script: "
            A: x, B: y
            T at 7: w(y)
            V at 1: r(x) r(y)
            W at 1: w(x)
            R at 6: readonly r(x) r(y)

            T locks y
            T installs y?
            V reads x
            V reads y
            V validates x
            V validates y
            W locks x
            W installs x?
            R reads x
            R reads y
            commit: T V W R
        ",
    }
}
