//! A client: a customer emulator with its deck of cards, and the market that answers its orders.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use plimsoll_types::random::Rng;
use plimsoll_types::{ShardId, Slot};

use super::numbers::{Trade, accounts_of, date_of};
use super::{Parameters, Shared, Tpce};

/// A customer emulator with its market.
#[derive(Debug)]
pub struct Client {
    pub(super) rng: Rng,
    /// Its number, which its trades have.
    number: u16,
    /// How many trades it has numbered.
    sequence: u64,
    /// Homes on its shard; never empty.
    homes: Vec<u32>,
    local_pct: f64,
    pub(super) shared: Arc<Shared>,
}

impl Client {
    /// See [`Workload::client`](crate::Workload::client). A client whose own shard owns no home,
    /// because the data is in other processes, is at home where the home of its number is.
    pub(super) fn new(
        parameters: &Parameters,
        shared: Arc<Shared>,
        client: usize,
        shard: ShardId,
        owner: &dyn Fn(Slot) -> ShardId,
    ) -> Client {
        let scale = parameters.scale;
        let all = 0..scale.homes();
        let here = match all.clone().any(|home| owner(scale.slot(home)) == shard) {
            true => shard,
            false => owner(scale.slot(client as u32 % scale.homes())),
        };
        Client {
            rng: Rng::new(!parameters.seed, client as u64),
            number: client as u16,
            sequence: shared.first_sequence.load(Relaxed),
            homes: all.filter(|&home| owner(scale.slot(home)) == here).collect(),
            local_pct: parameters.local_pct,
            shared,
        }
    }

    /// Draws a customer: of a home on its shard, or anywhere.
    pub(super) fn draw_customer(&mut self, tpce: &Tpce) -> u32 {
        let scale = tpce.scale();
        let home = match self.local_pct >= 100.0 || self.rng.pct(self.local_pct) {
            true => self.homes[self.rng.below(self.homes.len() as u64) as usize],
            false => scale.draw_home(&mut self.rng),
        };
        scale.draw_customer(&mut self.rng, home)
    }

    /// Draws a customer and one of its accounts, each as likely as any other of the customer.
    pub(super) fn draw_account(&mut self, tpce: &Tpce) -> u32 {
        let accounts = accounts_of(self.draw_customer(tpce));
        accounts.start + self.rng.below(accounts.len() as u64) as u32
    }

    /// A number for a new trade of a home.
    pub(super) fn new_trade(&mut self, home: u32) -> Trade {
        self.sequence += 1;
        Trade::of_client(home, self.number, self.sequence)
    }

    /// The time since the load at the market, in milliseconds of trading.
    pub(super) fn market_ms(&self) -> u64 {
        self.shared.market_us.load(Relaxed) / 1000
    }

    /// The date at the market.
    pub(super) fn now(&self, tpce: &Tpce) -> u64 {
        date_of(tpce.prices().before_s * 1000 + self.market_ms())
    }
}
