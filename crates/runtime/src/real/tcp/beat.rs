//! Heartbeats, and what they tell about the other end's clock.
//!
//! A beat carries the sender's clock. It also returns the clock value of the last beat received,
//! with the time at which that arrived. These are the four times of NTP: `sent` here, `arrived`
//! there, `returned` there, `now` here. The other clock is ahead by
//! `((arrived - sent) + (returned - now)) / 2`, wrong by at most half of the round trip
//! `(now - sent) - (returned - arrived)`. So of the last few samples the one with the shortest
//! round trip counts.
//!
//! Example. A beats at 100; the beat arrives when B's clock says 1105; B beats at 1300, and that
//! arrives at 310. The round trip was 210 - 195 = 15, and B's clock is ahead by (1005 + 990) / 2 =
//! 997.5, give or take 7.5.
//!
//! A frame waits in the socket until the shard reads it, which counts as time on its way. That does
//! little harm: a busy shard reads often, a sleeping one is woken, and the worst samples do not
//! count.

use std::collections::VecDeque;

use plimsoll_types::wire;

/// Samples kept per connection.
const SAMPLES: usize = 8;

/// The content of a heartbeat. Times are Unix nanoseconds, by the clocks of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Beat {
    /// The sender's clock.
    pub(super) clock_ns: u64,
    /// The clock value in the last beat received; 0 if none has arrived.
    pub(super) heard_ns: u64,
    /// The sender's clock when that beat arrived.
    pub(super) arrived_ns: u64,
}

wire!(struct Beat { clock_ns, heard_ns, arrived_ns });

/// One estimate of how far another clock is ahead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Sample {
    /// How long the two beats were on their way, there and back.
    pub(super) round_trip_ns: u64,
    /// How far the other clock is ahead.
    pub(super) ahead_ns: i64,
}

/// The beats that one end has received.
#[derive(Debug, Default)]
pub(super) struct Beats {
    /// The clock value in the last one, and when it arrived.
    heard: Option<(u64, u64)>,
    samples: VecDeque<Sample>,
}

impl Beats {
    /// The beat to send now.
    pub(super) fn beat(&self, now_ns: u64) -> Beat {
        let (heard_ns, arrived_ns) = self.heard.unwrap_or_default();
        Beat { clock_ns: now_ns, heard_ns, arrived_ns }
    }

    /// Notes a beat that has arrived. Returns the best sample, if there is any. Impossible values
    /// make no sample.
    pub(super) fn arrived(&mut self, beat: Beat, now_ns: u64) -> Option<Sample> {
        self.heard = Some((beat.clock_ns, now_ns));
        let [sent, arrived, returned, now] =
            [beat.heard_ns, beat.arrived_ns, beat.clock_ns, now_ns].map(i128::from);
        let round_trip = (now - sent) - (returned - arrived);
        let ahead = ((arrived - sent) + (returned - now)) / 2;
        if beat.heard_ns != 0
            && let (Ok(round_trip_ns), Ok(ahead_ns)) = (u64::try_from(round_trip), i64::try_from(ahead))
        {
            self.samples.truncate(SAMPLES - 1);
            self.samples.push_front(Sample { round_trip_ns, ahead_ns });
        }
        self.samples.iter().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_essay() {
        let mut a = Beats::default();
        let mut b = Beats::default();
        assert_eq!(b.arrived(a.beat(100), 1105), None);
        let best = a.arrived(b.beat(1300), 310);
        assert_eq!(best, Some(Sample { round_trip_ns: 15, ahead_ns: 997 }));
    }

    #[test]
    fn the_shortest_round_trip_counts_until_it_is_old() {
        let mut a = Beats::default();
        let mut round = |sent_ns: u64, there_ns: u64, back_ns: u64| {
            // The other clock is ahead by 1000.
            let arrived_ns = sent_ns + there_ns + 1000;
            let beat = Beat { clock_ns: arrived_ns + 50, heard_ns: sent_ns, arrived_ns };
            a.arrived(beat, sent_ns + there_ns + 50 + back_ns).expect("a sample")
        };
        assert_eq!(round(1000, 10, 10), Sample { round_trip_ns: 20, ahead_ns: 1000 });
        for n in 2..=8 {
            assert_eq!(round(1000 * n, 500, 0), Sample { round_trip_ns: 20, ahead_ns: 1000 });
        }
        assert_eq!(round(9000, 500, 0), Sample { round_trip_ns: 500, ahead_ns: 1250 });
    }

    proptest! {
        #[test]
        fn whatever_a_beat_says_is_survived(
            beats in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..20),
        ) {
            let mut end = Beats::default();
            for (clock_ns, heard_ns, arrived_ns, now_ns) in beats {
                end.arrived(Beat { clock_ns, heard_ns, arrived_ns }, now_ns);
                end.beat(now_ns);
            }
        }
    }
}
