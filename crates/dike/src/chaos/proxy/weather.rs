//! What a link is like at the moment: the faults that hold at an endpoint, together.

use std::time::Duration;

use super::super::fault::{Direction, Fault};

/// One way of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lane {
    /// Every byte takes at least this much longer.
    pub delay: Duration,
    /// And up to this much more.
    pub jitter: Duration,
    /// No more than this gets through per second; 0: no limit.
    pub bytes_per_s: u64,
    /// How likely a packet is lost.
    pub loss: f64,
    /// The time-out after which a lost packet is sent again.
    pub stall: Duration,
    /// Nothing gets through.
    pub held: bool,
}

impl Lane {
    pub(super) const CALM: Lane = Lane {
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        bytes_per_s: 0,
        loss: 0.0,
        stall: Duration::ZERO,
        held: false,
    };

    /// Adds what a fault does to this lane.
    fn suffer(&mut self, fault: &Fault) {
        match *fault {
            Fault::NetworkDelay { delay_ms, jitter_ms, .. } => {
                self.delay += Duration::from_millis(delay_ms);
                self.jitter += Duration::from_millis(jitter_ms);
            }
            Fault::NetworkRate { kib_per_s, .. } => {
                let bytes_per_s = kib_per_s.saturating_mul(1024).max(1);
                self.bytes_per_s =
                    if self.bytes_per_s == 0 { bytes_per_s } else { self.bytes_per_s.min(bytes_per_s) };
            }
            Fault::NetworkLoss { loss_percent, stall_ms, .. } => {
                self.loss = 1.0 - (1.0 - self.loss) * (1.0 - loss_percent / 100.0);
                self.stall = self.stall.max(Duration::from_millis(stall_ms));
            }
            Fault::NetworkPartition { .. } => self.held = true,
            _ => {}
        }
    }
}

/// Both ways of a link, and what befalls connections as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Weather {
    /// The faults that hold, by the number of whoever asked for them.
    faults: Vec<(u64, Fault)>,
    /// From clients to the server.
    pub to_server: Lane,
    /// From the server to clients.
    pub to_client: Lane,
    /// New connections are accepted and never answered.
    pub half_open: bool,
    /// How often all connections were reset.
    pub resets: u64,
}

impl Weather {
    pub(super) fn calm() -> Weather {
        Weather {
            faults: Vec::new(),
            to_server: Lane::CALM,
            to_client: Lane::CALM,
            half_open: false,
            resets: 0,
        }
    }

    pub(super) fn begin(&mut self, number: u64, fault: Fault) {
        if matches!(fault, Fault::NetworkReset {}) {
            self.resets += 1;
        } else {
            self.faults.push((number, fault));
        }
        self.combine();
    }

    pub(super) fn end(&mut self, number: u64) {
        self.faults.retain(|(other, _)| *other != number);
        self.combine();
    }

    fn combine(&mut self) {
        (self.to_server, self.to_client, self.half_open) = (Lane::CALM, Lane::CALM, false);
        for (_, fault) in &self.faults {
            let direction = direction(fault);
            if direction != Direction::ToClient {
                self.to_server.suffer(fault);
            }
            if direction != Direction::ToServer {
                self.to_client.suffer(fault);
            }
            self.half_open |= matches!(fault, Fault::NetworkHalfOpen {});
        }
    }
}

fn direction(fault: &Fault) -> Direction {
    match *fault {
        Fault::NetworkDelay { direction, .. }
        | Fault::NetworkRate { direction, .. }
        | Fault::NetworkLoss { direction, .. }
        | Fault::NetworkPartition { direction } => direction,
        _ => Direction::Both,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_add_up_and_leave_nothing_behind_whatever_the_order_of_their_ends() {
        let direction = Direction::ToServer;
        let mut weather = Weather::calm();
        weather.begin(1, Fault::NetworkDelay { delay_ms: 50, jitter_ms: 5, direction });
        weather
            .begin(2, Fault::NetworkLoss { loss_percent: 50.0, stall_ms: 200, direction: Direction::Both });
        weather.begin(3, Fault::NetworkLoss { loss_percent: 50.0, stall_ms: 100, direction });
        weather.begin(4, Fault::NetworkPartition { direction: Direction::ToClient });
        weather.begin(5, Fault::NetworkHalfOpen {});
        assert_eq!(weather.to_server.delay, Duration::from_millis(50));
        assert_eq!((weather.to_server.loss, weather.to_client.loss), (0.75, 0.5));
        assert_eq!(weather.to_server.stall, Duration::from_millis(200));
        assert_eq!((weather.to_server.held, weather.to_client.held, weather.half_open), (false, true, true));
        assert_eq!(weather.to_client.delay, Duration::ZERO);
        for number in [3, 1, 5, 4, 2] {
            weather.end(number);
        }
        assert_eq!(weather, Weather::calm());
    }
}
