//! Absent keys and ranges: leaves and cells.

use plimsoll_types::mutants::Mutant::*;

use crate::litmus;

litmus! {
    two_that_insert_into_what_the_other_has_scanned_do_not_both_commit {
        broken: "linking a key does not change the version of its leaf: only an install or an unlink would",
        setups: &["occ/dst", "occ/gts", "occ/vts", "occ/none"],
        also: &["client_2pc/dst", "client_2pc/none"],
        caught: &[(LinkUnnoticed, "phantom (G2)")],
        script: "
            A: a? x, B: b? y
            T at 1: scan(A) i(b)
            U at 1: scan(B) i(a)

            T reads A
            U reads B
            T locks b
            U locks a
            T validates A
            U validates B
            commit:
        ",
    }

    two_that_insert_what_the_other_has_found_absent_do_not_both_commit {
        broken: "linking a key does not change the counter of its cell",
        setups: &["occ/dst", "occ/gts", "occ/vts", "occ/none"],
        also: &["client_2pc/dst", "client_2pc/none"],
        caught: &[(LinkUnnoticed, "write skew (G2-item)")],
        script: "
            A: a?, B: b?
            T at 1: r(a) i(b)
            U at 1: r(b) i(a)

            T reads a
            U reads b
            T locks b
            U locks a
            T validates a
            U validates b
            commit:
        ",
    }

    an_insert_comes_after_who_has_scanned_its_place {
        broken: "a scan does not raise the marks of leaves",
        setups: &["occ/dst", "two_pl/dst", "client_2pc/dst", "rococo/dst"],
        also: &[
            "occ/gts", "occ/vts", "occ/none", "two_pl/gts", "two_pl/vts", "two_pl/none", "client_2pc/none",
            "rococo/none",
        ],
        caught: &[(LeafNotMarked, "phantom (G-single)")],
        script: "
            A: a? x, B: y
            W at 1: i(a) w(y)
            R at 6: readonly scan(A) r(y)

            R reads A
            W locks a
            W locks y
            W installs a
            W installs y
            R reads y
            commit: W R
        ",
    }
}
