//! What the log has of handshakes that came to nothing.
//!
//! Strangers must not be able to fill it, and a process that tries again every second for the same
//! reason must not hide everything else. A refusal whose reason lasts is logged once per address
//! and then rarely, with the number of times; of all others [`LOGGED`] a minute.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use super::handshake::{Trouble, is_normal};
use super::hello::Refusal;

/// Refusals of strangers that are logged per minute, those with a lasting reason left out.
const LOGGED: u32 = 10;
const MINUTE_NS: u64 = 60_000_000_000;
/// Addresses and lasting reasons that are remembered.
const REMEMBERED: usize = 64;
/// The pause before what goes on is logged again; it is doubled each time, up to the longest.
const AGAIN_NS: u64 = MINUTE_NS;
const AGAIN_MAX_NS: u64 = 60 * MINUTE_NS;

/// Something that happens again and again.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Rarely {
    /// How often since it was last logged.
    times: u64,
    next_ns: u64,
    pause_ns: u64,
}

impl Rarely {
    /// Counts one more. Returns how many there were since the last line, if another line is due.
    pub(super) fn count(&mut self, now_ns: u64) -> Option<u64> {
        self.times += 1;
        if now_ns < self.next_ns {
            return None;
        }
        self.pause_ns = (2 * self.pause_ns).clamp(AGAIN_NS, AGAIN_MAX_NS);
        self.next_ns = now_ns + self.pause_ns;
        Some(std::mem::take(&mut self.times))
    }
}

/// What was logged of strangers.
#[derive(Default)]
pub(super) struct Log {
    minute: u64,
    logged: u32,
    withheld: u64,
    /// Lasting reasons, by address; the one that came last is at the end.
    lasting: VecDeque<(IpAddr, Refusal, Rarely)>,
}

impl Log {
    pub(super) fn refused(&mut self, with: SocketAddr, trouble: &Trouble, now_ns: u64) {
        let refusal = trouble.refusal();
        if let Some(refusal) = refusal.filter(|refusal| refusal.is_lasting()) {
            match self.lasts(with.ip(), refusal, now_ns) {
                None => {}
                Some(1) => tracing::warn!(%with, "handshake came to nothing: {trouble}"),
                Some(times) => {
                    tracing::warn!(%with, times, "handshakes still come to nothing: {trouble}");
                }
            }
            return;
        }
        let minute = now_ns / MINUTE_NS;
        if minute != self.minute {
            let withheld = std::mem::take(&mut self.withheld);
            if withheld > 0 {
                tracing::warn!(withheld, "more handshakes came to nothing");
            }
            (self.minute, self.logged) = (minute, 0);
        }
        if self.logged == LOGGED {
            self.withheld += 1;
            return;
        }
        self.logged += 1;
        match refusal {
            Some(refusal) if is_normal(refusal) => {
                tracing::info!(%with, "handshake came to nothing: {trouble}");
            }
            // A lonely node has asked, and learns that this node is the one that dials.
            Some(Refusal::Direction) => tracing::debug!(%with, "handshake came to nothing: {trouble}"),
            _ => tracing::warn!(%with, "handshake came to nothing: {trouble}"),
        }
    }

    /// How often an address was refused for a lasting reason since that was last logged, if a line
    /// is due.
    fn lasts(&mut self, address: IpAddr, refusal: Refusal, now_ns: u64) -> Option<u64> {
        let before = self.lasting.iter().position(|&(ip, why, _)| (ip, why) == (address, refusal));
        let (_, _, mut rarely) = before.and_then(|place| self.lasting.remove(place)).unwrap_or((
            address,
            refusal,
            Rarely::default(),
        ));
        let times = rarely.count(now_ns);
        if self.lasting.len() == REMEMBERED {
            self.lasting.pop_front();
        }
        self.lasting.push_back((address, refusal, rarely));
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_logged_at_once_and_then_rarely_with_its_number() {
        let mut rarely = Rarely::default();
        let lines: Vec<(u64, u64)> = (0..1200)
            .filter_map(|second| Some((second, rarely.count(MINUTE_NS + second * 1_000_000_000)?)))
            .collect();
        assert_eq!(lines, [(0, 1), (60, 60), (180, 120), (420, 240), (900, 480)]);
    }

    #[test]
    fn each_address_and_each_lasting_reason_has_its_line() {
        let mut log = Log::default();
        let ip = |last: u8| IpAddr::from([10, 0, 0, last]);
        let mut lines = 0;
        for _ in 0..100 {
            for (address, why) in
                [(1, Refusal::Secret), (2, Refusal::Secret), (1, Refusal::Cluster), (1, Refusal::Version)]
            {
                lines += log.lasts(ip(address), why, MINUTE_NS).iter().count();
            }
        }
        assert_eq!(lines, 4);
        // Others may push it out of memory, which costs a line and no more.
        for address in 100..=255 {
            assert_eq!(log.lasts(ip(address), Refusal::Secret, MINUTE_NS), Some(1));
        }
        assert_eq!(log.lasting.len(), REMEMBERED);
        assert_eq!(log.lasts(ip(1), Refusal::Secret, MINUTE_NS), Some(1));
    }
}
