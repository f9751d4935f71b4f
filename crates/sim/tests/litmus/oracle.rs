//! GTS: when a number is fetched, and when it counts. VTS: what is published of those who are gone.

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

    what_a_client_has_left_is_published_with_what_it_has_read {
        broken: "VTS: the claim of a client that is gone is settled without its dependencies",
        setups: &["occ/vts", "two_pl/vts"],
        also: &["occ/dst", "occ/none", "two_pl/dst", "two_pl/none"],
        caught: &[(SettledAlone, "read skew (G-single)")],
        script: "
            A: x, B: y, C: z
            W at 1: w(x,y)
            T at 1: r(x) w(z)
            R at 6: readonly r(z) r(x)

            W locks x
            W locks y
            W records x
            W records y
            W installs x
            T reads x
            T is cut off
            T locks z
            T validates x
            T records z
            T ends
            R reads z
            R reads x
            commit: W T R
        ",
    }
}
