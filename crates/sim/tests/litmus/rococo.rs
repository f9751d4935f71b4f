//! ROCOCO: edges, stamps, and what is left behind.

use plimsoll_types::mutants::Mutant::*;

use crate::litmus;

litmus! {
    a_stamp_is_above_those_of_all_who_are_before_it {
        broken: "ROCOCO: the stamp is what the start phase has found",
        setups: &["rococo/dst"],
        also: &["rococo/none", "occ/dst", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(StartStampsOnly, "assertion")],
        script: "
            A: x
            T at 4: w(x)
            W at 1: w(x)

            T starts x
            W starts x
            T commits x
            W commits x
            commit: T W
        ",
    }

    a_reader_that_is_before_a_writer_has_a_smaller_stamp {
        broken: "the same, between a read and the write that overwrites it",
        setups: &["rococo/dst"],
        also: &["rococo/none", "occ/dst", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(StartStampsOnly, "read-only anomaly (G2-item)")],
        script: "
            A: x, B: y
            T at 4: r!(x) w(y)
            W at 1: w!(x)
            R at 6: readonly r(y) r(x)

            T starts x
            W starts x
            R reads y
            T starts y
            T commits x
            W commits x
            R reads x
            commit: T W R
        ",
    }

    what_was_read_is_pinned_when_its_transaction_is_decided {
        broken: "ROCOCO: who is decided does not raise the marks of what it has read",
        setups: &["rococo/dst"],
        also: &["rococo/none", "occ/dst", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(NoPin, "read-only anomaly (G2-item)")],
        script: "
            A: x, B: y
            T at 4: r!(x) w(y)
            W at 1: w!(x)
            R at 6: readonly r(y) r(x)

            T starts x
            R reads y
            T starts y
            T commits x
            W starts x
            W commits x
            T commits y
            R reads x
            commit: T W R
        ",
    }

    who_is_in_a_cycle_with_a_predecessor_is_before_as_well {
        broken: "ROCOCO: only direct predecessors count, and not those whom they are in a cycle with",
        setups: &["rococo/dst"],
        also: &["rococo/none", "occ/dst", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(SiblingsIgnored, "assertion"), (StartStampsOnly, "assertion")],
        script: "
            A: x, B: y
            P at 4: w(x,y)
            Q at 4: w(x,y)
            T at 1: w(x)

            Q starts x
            P starts x
            P starts y
            Q starts y
            T starts x
            P commits x
            P commits y
            Q commits x
            Q commits y
            T commits x
            commit: P Q T
        ",
    }

    a_writer_comes_after_those_who_have_started_to_read {
        broken: "ROCOCO: readers are forgotten in the entry of whoever has started on an item last",
        setups: &["rococo/dst", "rococo/none"],
        also: &["occ/dst", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(ReadersForgotten, "read skew (G-single)")],
        script: "
            A: x, B: y
            T at 1: r!(x) w(y)
            W at 1: w!(x) w(y)

            T starts x
            W starts x
            W starts y
            T starts y
            W commits x
            W commits y
            T commits x
            T commits y
            commit: T W
        ",
    }

    what_a_coordinator_has_left_behind_is_finished {
        broken: "ROCOCO: nobody goes on with what a coordinator has begun",
        setups: &["rococo/dst", "rococo/none"],
        also: &[],
        caught: &[(OrphansLeft, "stuck")],
        script: "
            A: x, B: y
            T at 1: w(x,y)
            W at 1: w(x)

            T starts x
            T ends
            W starts x
            commit: W
        ",
    }

    what_is_started_again_is_answered_again {
        broken: "ROCOCO: a piece whose START is repeated executes again",
        setups: &["rococo/dst", "rococo/none"],
        also: &[],
        caught: &[(StartsTwice, "offence")],
        script: "
            A: x, B: y
            T at 1: w!(x) w(y)
            W at 1: w!(x)

            T starts x
            W starts x
            T ends
            commit: W
        ",
    }
}
