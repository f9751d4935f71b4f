//! One way of one connection.
//!
//! On a calm lane a block is read and written, nothing else. Otherwise it enters a queue with the
//! time at which it may leave, and reading goes on: a delay does not cost throughput until the
//! queue holds [`WINDOW`] bytes. For a block that arrives at time *a* on a lane whose previous
//! block leaves at *p*,
//!
//! ```text
//! leaves = max(p, a + delay + jitter + stalls)  (+ length / rate, if there is a limit)
//! ```
//!
//! so that the order stays. *Stalls* are what TCP makes of lost packets: a block of n packets of
//! which one is lost, with probability 1 - (1 - loss)^n, is sent again after a time-out, after
//! twice the time-out if it is lost again, and so on; all that follows waits. The end of a stream
//! and its reset wait in the queue like data: a partition holds them.
//!
//! Left out: fast retransmission (a lost packet with others behind it is sent again after a round
//! trip), congestion control, the time-out of a sender whose data a partition has held back.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::weather::{Lane, Weather};

/// How much is read at once, in bytes.
const BLOCK: usize = 16 << 10;

/// How much a lane holds back before it lets the sender wait, in bytes.
const WINDOW: usize = 4 << 20;

/// What a packet carries, in bytes.
const PACKET: u32 = 1448;

/// How often a packet is lost in a row at most: the time-outs double, and nobody waits for more.
const LOST_IN_A_ROW_MAX: u32 = 8;

/// A source of chance.
#[derive(Debug)]
pub(super) struct Chance(pub(super) u64);

impl Chance {
    /// A number from 0 to below 1 (SplitMix64).
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ x >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How a lane ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its source said that there is no more, and so was its destination told.
    Orderly,
    /// Its source was reset, and so has its destination to be.
    Reset,
    /// Its destination takes nothing any more. The other lane will say why.
    Refused,
}

#[derive(Debug)]
enum Parcel {
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// What waits, and until when.
#[derive(Debug)]
struct Queue {
    parcels: VecDeque<(Instant, Parcel)>,
    bytes: usize,
    /// When the last parcel leaves.
    last: Instant,
    chance: Chance,
}

impl Queue {
    fn new(chance: Chance) -> Queue {
        Queue { parcels: VecDeque::new(), bytes: 0, last: Instant::now(), chance }
    }

    fn push(&mut self, parcel: Parcel, now: Instant, lane: &Lane) {
        let Parcel::Bytes(bytes) = parcel else {
            let leaves = self.last.max(now + lane.delay);
            self.parcels.push_back((leaves, parcel));
            self.last = leaves;
            return;
        };
        self.bytes += bytes.len();
        let extra = lane.jitter.mul_f64(self.chance.draw()) + self.stalls(bytes.len(), lane);
        let mut leaves = self.last.max(now + lane.delay + extra);
        // A limited lane lets pieces of 10 ms through.
        let piece =
            if lane.bytes_per_s == 0 { bytes.len() } else { (lane.bytes_per_s / 100).max(1) as usize };
        for piece in bytes.chunks(piece) {
            if lane.bytes_per_s > 0 {
                leaves += Duration::from_secs_f64(piece.len() as f64 / lane.bytes_per_s as f64);
            }
            self.parcels.push_back((leaves, Parcel::Bytes(piece.to_vec())));
        }
        self.last = leaves;
    }

    fn stalls(&mut self, length: usize, lane: &Lane) -> Duration {
        if lane.loss == 0.0 {
            return Duration::ZERO;
        }
        let packets = (length as u32).div_ceil(PACKET);
        let mut lost = 0;
        let mut probability = 1.0 - (1.0 - lane.loss).powi(packets as i32);
        while lost < LOST_IN_A_ROW_MAX && self.chance.draw() < probability {
            lost += 1;
            probability = lane.loss;
        }
        lane.stall * ((1 << lost) - 1)
    }

    /// Takes the first parcel if its time has come.
    fn pop(&mut self, now: Instant) -> Option<Parcel> {
        self.parcels.front().filter(|(leaves, _)| *leaves <= now)?;
        let (_, parcel) = self.parcels.pop_front()?;
        if let Parcel::Bytes(bytes) = &parcel {
            self.bytes -= bytes.len();
        }
        Some(parcel)
    }
}

/// Carries everything from one socket to the other.
pub(super) async fn carry(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut weather: watch::Receiver<Weather>,
    lane_of: fn(&Weather) -> &Lane,
    chance: Chance,
) -> End {
    let mut block = vec![0; BLOCK];
    let mut queue = Queue::new(chance);
    let mut open = true;
    loop {
        if queue.parcels.is_empty() && open {
            let read = from.read(&mut block).await;
            // Looked at after the read: a fault that began meanwhile counts.
            let lane = *lane_of(&weather.borrow_and_update());
            if lane != Lane::CALM {
                open = receive(read, &block, &mut queue, &lane);
                continue;
            }
            match read {
                Ok(0) => return if to.shutdown().await.is_ok() { End::Orderly } else { End::Refused },
                Ok(length) if to.write_all(&block[..length]).await.is_err() => return End::Refused,
                Ok(_) => continue,
                Err(_) => return End::Reset,
            }
        }
        let lane = *lane_of(&weather.borrow_and_update());
        let leaves = queue.parcels.front().map(|(leaves, _)| *leaves);
        tokio::select! {
            read = from.read(&mut block), if open && queue.bytes < WINDOW => {
                open = receive(read, &block, &mut queue, &lane);
                continue;
            }
            () = sleep_until(leaves.unwrap_or_else(Instant::now)), if leaves.is_some() && !lane.held => {}
            // The proxy itself is gone.
            changed = weather.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return End::Reset,
            },
        }
        while let Some(parcel) = queue.pop(Instant::now()) {
            match parcel {
                Parcel::Bytes(bytes) if to.write_all(&bytes).await.is_err() => return End::Refused,
                Parcel::Bytes(_) => {}
                Parcel::End => return if to.shutdown().await.is_ok() { End::Orderly } else { End::Refused },
                Parcel::Reset => return End::Reset,
            }
        }
    }
}

/// Puts what was read into the queue. Returns whether there may be more.
fn receive(read: io::Result<usize>, block: &[u8], queue: &mut Queue, lane: &Lane) -> bool {
    let (parcel, open) = match read {
        Ok(0) => (Parcel::End, false),
        Ok(length) => (Parcel::Bytes(block[..length].to_vec()), true),
        Err(_) => (Parcel::Reset, false),
    };
    queue.push(parcel, Instant::now(), lane);
    open
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parcels_keep_their_order_and_leave_no_earlier_than_asked(
            lengths in proptest::collection::vec(1_usize..40_000, 1..20),
            delay_ms in 0_u64..100,
            jitter_ms in 0_u64..100,
            kib_per_s in 0_u64..100,
            loss in 0.0..1.0,
            seed: u64,
        ) {
            let lane = Lane {
                delay: Duration::from_millis(delay_ms),
                jitter: Duration::from_millis(jitter_ms),
                bytes_per_s: kib_per_s * 1024,
                loss,
                stall: Duration::from_millis(7),
                held: false,
            };
            let mut queue = Queue::new(Chance(seed));
            let start = queue.last;
            let bytes: Vec<u8> = (0..lengths.iter().sum()).map(|at| (at % 251) as u8).collect();
            let mut rest = &bytes[..];
            for length in lengths {
                queue.push(Parcel::Bytes(rest[..length].to_vec()), start, &lane);
                rest = &rest[length..];
            }
            queue.push(Parcel::End, start, &lane);
            prop_assert_eq!(queue.bytes, bytes.len());

            let times: Vec<Instant> = queue.parcels.iter().map(|(leaves, _)| *leaves).collect();
            prop_assert!(times.is_sorted());
            prop_assert!(times[0] >= start + lane.delay);
            if kib_per_s > 0 {
                let least = Duration::from_secs_f64(bytes.len() as f64 / lane.bytes_per_s as f64);
                prop_assert!(times[times.len() - 1] + Duration::from_millis(1) >= start + least);
            }
            let mut out = Vec::new();
            let long_after = start + Duration::from_secs(1_000_000);
            while let Some(parcel) = queue.pop(long_after) {
                if let Parcel::Bytes(bytes) = parcel {
                    out.extend(bytes);
                }
            }
            prop_assert!(out == bytes);
            prop_assert_eq!(queue.bytes, 0);
        }
    }

    #[test]
    fn a_lost_packet_stalls_for_a_time_out_and_for_twice_as_long_each_time_it_is_lost_again() {
        let lane = Lane { loss: 1.0, stall: Duration::from_millis(200), ..Lane::CALM };
        let mut queue = Queue::new(Chance(1));
        assert_eq!(queue.stalls(1, &lane), Duration::from_millis(200) * 255);
        let rare = Lane { loss: 0.1, ..lane };
        let stalls: Vec<Duration> = (0..10_000).map(|_| queue.stalls(1, &rare)).collect();
        let share = |times: u32| {
            stalls.iter().filter(|stall| **stall == lane.stall * times).count() as f64 / 10_000.0
        };
        // Nine of ten are not lost, nine of a hundred once, nine of a thousand twice in a row.
        assert!((share(0) - 0.9).abs() < 0.02 && (share(1) - 0.09).abs() < 0.02 && share(3) > 0.0);
        assert_eq!(queue.stalls(100, &Lane::CALM), Duration::ZERO);
    }
}
