//! Machines that end and begin again while transactions are under way: what each must not believe
//! of the other's former life, and that nobody is left waiting.
//!
//! Three machines hold a record each, a fourth coordinates ([`stage::Stage`]). Links are cut and
//! channels reset to stop the world at a certain point, or at every one in turn ([`moments`]). Then
//! the rules that the scripts are about are broken, and the scripts must fail ([`bugs`]).

mod bugs;
mod client_2pc;
mod moments;
mod moves;
mod sessions;
mod stage;
mod votes;

/// Scripts as tests of a protocol.
#[macro_export]
macro_rules! under {
    ($module:ident: $protocol:ident; $($name:ident)*) => {
        mod $module {
            $(#[test]
            fn $name() {
                super::$name::<plimsoll_txn::protocols::$protocol<plimsoll_txn::timestamps::Dst>>();
            })*
        }
    };
}

/// Scripts as tests of every protocol whose operations come one by one.
#[macro_export]
macro_rules! under_each {
    ($($name:ident)*) => {
        $crate::under!(occ: Occ; $($name)*);
        $crate::under!(two_pl: TwoPl; $($name)*);
        $crate::under!(client_2pc: Client2pc; $($name)*);
    };
}
