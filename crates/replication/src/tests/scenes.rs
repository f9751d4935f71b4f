//! Small scenes, one rule each.

use super::worlds::caught;
use crate::mistakes::Mistake;

#[test]
fn planted_mistakes_show_in_worlds() {
    let mut missed = Vec::new();
    for mistake in Mistake::ALL {
        match caught(mistake, 2000) {
            Some((worlds, wrong)) => println!("{mistake:?}: after {worlds} worlds: {wrong}"),
            None => missed.push(mistake),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
