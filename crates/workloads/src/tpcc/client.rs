//! Who runs transactions: where a client is at home, its random numbers, its clock.

use plimsoll_types::{ShardId, Slot};

use super::{DISTRICTS, Parameters, load};
use plimsoll_types::random::Rng;

/// What a client keeps between transactions.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) rng: Rng,
    /// The warehouses or districts of its shard, never empty.
    homes: Vec<Home>,
    /// Its part of the history's keys.
    payer: u16,
    /// How many payments it has drawn.
    payments: u64,
    /// Its clock: a date that grows by one with every transaction.
    date: u32,
}

/// Where a transaction is at home.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    pub(super) warehouse: u32,
    /// `None`: any of the warehouse.
    district: Option<u8>,
}

impl Home {
    /// The district of the next transaction.
    #[inline]
    pub(super) fn district(self, rng: &mut Rng) -> u8 {
        self.district.unwrap_or_else(|| rng.uniform(1..=u64::from(DISTRICTS)) as u8)
    }
}

impl Client {
    /// A client of a shard; see [`crate::Workload::client`].
    pub(super) fn new(
        parameters: &Parameters,
        client: usize,
        shard: ShardId,
        owner: &dyn Fn(Slot) -> ShardId,
    ) -> Client {
        let layout = parameters.layout();
        let warehouses = 1..=parameters.warehouses;
        let mut homes: Vec<Home> = match parameters.spread {
            false => {
                let on_shard = |w: &u32| owner(layout.warehouse_slot(*w)) == shard;
                warehouses.filter(on_shard).map(|warehouse| Home { warehouse, district: None }).collect()
            }
            true => {
                let on_shard = |&(w, d): &(u32, u8)| owner(layout.district_slot(w, d)) == shard;
                let districts = warehouses.flat_map(|w| (1..=DISTRICTS).map(move |d| (w, d)));
                let home = |(warehouse, d)| Home { warehouse, district: Some(d) };
                districts.filter(on_shard).map(home).collect()
            }
        };
        if homes.is_empty() {
            let warehouse = (client as u64 % u64::from(parameters.warehouses)) as u32 + 1;
            homes.push(Home { warehouse, district: None });
        }
        // The numbers of its payments begin at the run, which stands above the number of the client
        // and is the nanosecond at which the run began: no client pays as fast as time passes, so
        // the numbers of two runs do not meet.
        let (run, number) = (client as u64 & !0xffff, client as u16);
        let payer = number.checked_add(1).expect("there are fewer than 65,535 clients");
        let rng = Rng::new(!parameters.seed, client as u64);
        Client { rng, homes, payer, payments: run, date: load::LOAD_DATE }
    }

    /// The home of the next transaction.
    #[inline]
    pub(super) fn home(&mut self) -> Home {
        match self.homes[..] {
            [home] => home,
            _ => self.homes[self.rng.below(self.homes.len() as u64) as usize],
        }
    }

    /// The date of the next transaction.
    #[inline]
    pub(super) fn tick(&mut self) -> u32 {
        self.date = self.date.wrapping_add(1).max(load::LOAD_DATE + 1);
        self.date
    }

    /// The key of the next payment: the payer and its number.
    #[inline]
    pub(super) fn next_payment(&mut self) -> (u16, u64) {
        self.payments += 1;
        (self.payer, self.payments)
    }
}
