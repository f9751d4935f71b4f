//! How busy the machine of this client is, and how much of that is the client: a client without
//! processor time to spare measures itself, whoever took it.

use crate::collect;
use crate::metrics::summary::ClientCpu;

/// What the machine's processors and this program had done at a moment, in ticks.
type Ticks = ([u64; 8], u64);

/// Looks once a second.
pub struct Client {
    before: Option<Ticks>,
    cpu: ClientCpu,
}

impl Client {
    /// Begins to look now.
    pub fn new() -> Client {
        Client { before: ticks(), cpu: ClientCpu::default() }
    }

    /// A second is over.
    pub fn look(&mut self) {
        let now = ticks();
        // Where nothing is known, nothing is recorded.
        if let (Some(before), Some(now)) = (self.before, now) {
            let (busy, own) = shares(before, now);
            self.cpu.share.push(busy);
            self.cpu.own.push(own);
        }
        self.before = now;
    }

    /// What it has seen.
    pub fn into_cpu(self) -> ClientCpu {
        self.cpu
    }
}

fn ticks() -> Option<Ticks> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may have blanks; user and system time are the 14th and
    // 15th field.
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(2);
    let own = fields.map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some((collect::processor_ticks()?, own))
}

/// The share of all time between two looks that some processor was busy, and the share that this
/// program used. Time that a hypervisor took away was not ours to use and counts as busy.
fn shares((before, own_before): Ticks, (now, own): Ticks) -> (f64, f64) {
    const IDLE_AND_WAITING: [usize; 2] = [3, 4];
    let passed: Vec<u64> = now.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect();
    let all = passed.iter().sum::<u64>().max(1) as f64;
    let idle: u64 = IDLE_AND_WAITING.iter().map(|&at| passed[at]).sum();
    let busy = passed.iter().sum::<u64>() - idle;
    (busy as f64 / all, (own.saturating_sub(own_before) as f64 / all).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_disks_is_not_busy_and_stolen_time_is() {
        let before = ([100; 8], 40);
        assert_eq!(shares(before, ([110, 100, 110, 160, 120, 100, 100, 100], 50)), (0.2, 0.1));
        assert_eq!(shares(before, ([100, 100, 100, 150, 100, 100, 100, 150], 40)), (0.5, 0.0));
        assert_eq!(shares(before, before), (0.0, 0.0));
    }

    #[test]
    fn a_program_that_works_is_seen_to_work() {
        let before = ticks().expect("there is a /proc");
        // The processors' ticks may be entered later than the program's own.
        let seen = (0..2_000_000).any(|_| {
            let (busy, own) = shares(before, ticks().expect("there is a /proc"));
            own > 0.0 && busy > 0.0
        });
        assert!(seen, "{:?}", shares(before, ticks().expect("there is a /proc")));
    }
}
