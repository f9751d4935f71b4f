//! Read-only transactions at a snapshot: raise, wait, read, in this order and each unconditionally.

use plimsoll_types::mutants::Mutant::*;

use crate::litmus;

litmus! {
    a_reader_waits_for_an_owner_although_another_has_raised_the_mark {
        broken: "a read waits only if the mark is at most its snapshot",
        setups: &["occ/dst", "two_pl/dst", "client_2pc/dst", "rococo/dst"],
        also: &[
            "occ/gts", "occ/vts", "occ/none", "two_pl/gts", "two_pl/vts", "two_pl/none", "client_2pc/none",
            "rococo/none",
        ],
        caught: &[(GatedWait, "fractured read (G-single)"), (NoWait, "fractured read (G-single)")],
        script: "
            A: x, B: y
            W at 1: w(x,y)
            R at 6: readonly r(x) r(y)
            S at 3: readonly r(x) r(y)

            W locks x
            W locks y
            R reads x
            S reads x
            W installs x
            W installs y
            S reads y
            R reads y
            commit: W R S
        ",
    }

    a_reader_that_need_not_wait_for_an_owner_raises_the_mark_for_the_next_one {
        broken: "who does not wait because of the lower bound does not raise the mark",
        setups: &["occ/dst"],
        also: &["occ/gts", "occ/vts", "occ/none", "client_2pc/dst", "client_2pc/none"],
        caught: &[(SkipWithoutRaise, "fractured read (G-single)"), (NoRaise, "fractured read (G-single)")],
        script: "
            A: x, B: y v, C: z k
            P at 9: w(z)
            H at 1: r(z) w(x,v)
            K at 1: w(v,k)
            W at 1: w(x,y)
            R at 6: readonly r(x) r(y)

            P commits z
            H reads z
            K locks v
            H locks x
            R reads x
            H locks v
            H unlocks x
            W locks x
            W locks y
            W installs x
            W installs y
            R reads y
            commit: P K W R
        ",
    }

    the_mark_is_raised_before_anybody_looks_for_an_owner {
        broken: "a read looks for an owner before it raises the mark",
        setups: &["occ/dst", "two_pl/dst", "client_2pc/dst", "rococo/dst"],
        also: &[
            "occ/gts", "occ/vts", "occ/none", "two_pl/gts", "two_pl/vts", "two_pl/none", "client_2pc/none",
            "rococo/none",
        ],
        caught: &[(LateRaise, "fractured read (G-single)"), (NoRaise, "fractured read (G-single)")],
        script: "
            A: x, B: y
            W at 1: w(x,y)
            R at 6: readonly r(x) r(y)

            R reads x; W locks x
            W locks y
            W installs x
            W installs y
            R reads y
            commit: W R
        ",
    }

    a_reader_waits_for_one_owner_and_not_for_the_next {
        broken: "a grant promises no lower bound above the record's bound: a reader starves behind ever new owners",
        setups: &["occ/dst", "two_pl/dst", "client_2pc/dst"],
        also: &["occ/gts", "occ/vts", "two_pl/gts", "two_pl/vts", "rococo/dst"],
        caught: &[(NoLowerBound, "not answered")],
        script: "
            A: x z, B: y, C: u, D: v
            V at 1: w(x,y)
            W at 1: w(x,u)
            Z at 1: w(z,v)
            R at 6: readonly r(x,z)

            V locks x
            Z locks z
            R reads x
            V locks y
            V installs x
            W locks x
            Z locks v
            Z installs z
            R is answered
            W locks u
            W installs x
            commit: V W Z R
        ",
    }
}
