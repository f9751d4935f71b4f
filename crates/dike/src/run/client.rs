//! How busy the machine of this client is: a client without processor time to spare measures itself.

use crate::collect;
use crate::metrics::summary::ClientCpu;

/// Looks once a second.
pub struct Client {
    before: Option<[u64; 8]>,
    cpu: ClientCpu,
}

impl Client {
    /// Begins to look now.
    pub fn new() -> Client {
        Client { before: collect::processor_ticks(), cpu: ClientCpu::default() }
    }

    /// A second is over.
    pub fn look(&mut self) {
        let now = collect::processor_ticks();
        // Where nothing is known, nothing is recorded.
        if let (Some(before), Some(now)) = (self.before, now) {
            self.cpu.share.push(busy_share(before, now));
        }
        self.before = now;
    }

    /// What it has seen.
    pub fn into_cpu(self) -> ClientCpu {
        self.cpu
    }
}

/// The share of all time between two looks that some processor was busy; time that a hypervisor took away was
/// not ours to use and counts as busy.
fn busy_share(before: [u64; 8], now: [u64; 8]) -> f64 {
    const IDLE_AND_WAITING: [usize; 2] = [3, 4];
    let passed: Vec<u64> = now.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect();
    let all: u64 = passed.iter().sum();
    let idle: u64 = IDLE_AND_WAITING.iter().map(|&at| passed[at]).sum();
    if all == 0 { 0.0 } else { (all - idle) as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_disks_is_not_busy_and_stolen_time_is() {
        let before = [100; 8];
        assert_eq!(busy_share(before, [110, 100, 110, 160, 120, 100, 100, 100]), 0.2);
        assert_eq!(busy_share(before, [100, 100, 100, 150, 100, 100, 100, 150]), 0.5);
        assert_eq!(busy_share(before, before), 0.0);
    }
}
