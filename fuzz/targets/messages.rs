//! Any bytes as a message of any protocol under any scheme. They are refused, or are a message that
//! is encoded and decoded again to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_runtime::Messages;
use plimsoll_txn::pairs::LEGAL_PAIRS;
use plimsoll_txn::with_pair;
use plimsoll_types::wire::{Wire, encoded, whole};

fn any<T: Wire>(bytes: &[u8]) {
    if let Ok(message) = whole::<T>(bytes) {
        let once = encoded(&message);
        let again = encoded(&whole::<T>(&once).expect("what was encoded can be decoded"));
        assert_eq!(once, again);
    }
}

fn both<N: Messages<Request: Wire, Reply: Wire>>(bytes: &[u8]) {
    any::<N::Request>(bytes);
    any::<N::Reply>(bytes);
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, bytes)) = bytes.split_first() else { return };
    let pair = LEGAL_PAIRS[usize::from(which) % LEGAL_PAIRS.len()];
    with_pair!(pair, P => both::<P>(bytes));
});
