//! What tests with other processes share.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub fn until<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = is() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(20));
    }
}
