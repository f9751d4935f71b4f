//! Any bytes as a message of any protocol under any scheme. They are refused, or are a message that is encoded and decoded
//! again to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_runtime::Node;
use plimsoll_txn::protocols::{Client2pc, Occ, Rococo, TwoPl};
use plimsoll_txn::timestamps::{Dst, Gts, NoTimestamps, Rc, Vts};
use plimsoll_types::wire::{Wire, encoded, whole};

fn any<T: Wire>(bytes: &[u8]) {
    if let Ok(message) = whole::<T>(bytes) {
        let once = encoded(&message);
        let again = encoded(&whole::<T>(&once).expect("what was encoded can be decoded"));
        assert_eq!(once, again);
    }
}

fn both<N: Node<Request: Wire, Reply: Wire>>(bytes: &[u8]) {
    any::<N::Request>(bytes);
    any::<N::Reply>(bytes);
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    match which % 14 {
        0 => both::<Occ<Dst>>(bytes),
        1 => both::<Occ<Gts>>(bytes),
        2 => both::<Occ<Vts>>(bytes),
        3 => both::<Occ<NoTimestamps>>(bytes),
        4 => both::<Occ<Rc>>(bytes),
        5 => both::<TwoPl<Dst>>(bytes),
        6 => both::<TwoPl<Gts>>(bytes),
        7 => both::<TwoPl<Vts>>(bytes),
        8 => both::<TwoPl<NoTimestamps>>(bytes),
        9 => both::<TwoPl<Rc>>(bytes),
        10 => both::<Client2pc<Dst>>(bytes),
        11 => both::<Client2pc<NoTimestamps>>(bytes),
        12 => both::<Rococo<Dst>>(bytes),
        _ => both::<Rococo<NoTimestamps>>(bytes),
    }
});
