//! GTS: when a number is fetched, and when it counts.

use plimsoll_types::mutants::Mutant::*;

use crate::litmus;

litmus! {
    a_number_is_fetched_after_the_last_lock {
        broken: "GTS: prefetched commit numbers",
        setups: &["occ/gts", "two_pl/gts"],
        also: &["occ/dst", "occ/vts", "occ/none", "two_pl/dst", "two_pl/vts", "two_pl/none"],
        caught: &[(PrefetchedNumbers, "assertion")],
        script: "
            A: x, B: y
            P at 1: w(y)
            Q beside P at 1: w(x)
            W at 1: w(x)

            P locks y
            P installs y
            W locks x
            W installs x
            Q locks x
            Q installs x
            commit: P W Q
        ",
    }

    a_snapshot_does_not_pass_over_a_number_that_is_not_reported {
        broken: "GTS: stable passes over a gap",
        setups: &["occ/gts", "two_pl/gts"],
        also: &["occ/dst", "occ/vts", "occ/none", "two_pl/dst", "two_pl/vts", "two_pl/none"],
        caught: &[(GapIgnored, "fractured read (G-single)")],
        script: "
            A: x, B: y z
            T at 1: w(x,y)
            U at 1: w(z)
            R at 6: readonly r(y) r(x)

            T locks x
            T locks y
            T installs x
            U locks z
            U installs z
            R reads y
            T installs y
            R reads x
            commit: T U R
        ",
    }
}
