//! 2PL: upgrades and pins.

use plimsoll_types::mutants::Mutant::*;

use crate::litmus;

litmus! {
    an_upgrade_reads_the_bound_again {
        broken: "2PL: an upgrade keeps the bound of the shared lock",
        setups: &["two_pl/dst"],
        also: &["two_pl/gts", "two_pl/vts", "two_pl/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(UpgradeKeepsBound, "fractured read (G-single)"), (BoundIgnored, "fractured read (G-single)")],
        script: "
            A: x, B: y
            T at 1: r(x) w(x) w(y)
            R at 6: readonly r(x) r(y)

            T reads x
            R reads x
            T upgrades x
            T locks y
            T installs x
            T installs y
            R reads y
            commit: T R
        ",
    }

    a_shared_lock_is_released_after_its_pin {
        broken: "2PL: no PIN",
        setups: &["two_pl/dst"],
        also: &["two_pl/gts", "two_pl/vts", "two_pl/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(ReleaseWithoutPin, "read-only anomaly (G2-item)")],
        script: "
            A: x, B: y
            T at 4: r(x) w(y)
            W at 1: w(x)
            R at 6: readonly r(y) r(x)

            T reads x
            R reads y
            T locks y
            T releases x; W locks x
            W installs x
            T installs y
            R reads x
            commit: T W R
        ",
    }

    a_commit_does_not_lower_the_mark_of_what_it_has_read {
        broken: "2PL: a commit stores its timestamp as mark instead of the maximum",
        setups: &["two_pl/dst"],
        also: &["two_pl/gts", "two_pl/vts", "two_pl/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(StoredMark, "fractured read (G-single)")],
        script: "
            A: x, B: y z
            T at 4: r(x) w(z)
            W at 1: w(x,y)
            R at 6: readonly r(x) r(y)

            R reads x
            T reads x
            T locks z
            T releases x
            T installs z
            W locks x
            W locks y
            W installs x
            W installs y
            R reads y
            commit: T W R
        ",
    }
}
