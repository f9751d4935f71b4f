//! Broker-Volume (clause 3.3.1), read-only: what 20 to 40 brokers have pending in a sector.
//!
//! Stages: the numbers of brokers and sector by their names, from copies, in a piece on the
//! client's own shard; the pending orders of the brokers of each home.

use std::ops::{ControlFlow, Range};

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::numbers::Scale;
use super::people;
use super::reference::SECTORS;
use super::schema::*;
use super::shown::own_slot;
use super::{Client, Tpce};
use crate::NOT_LOADED;
use crate::rows::unpadded;

/// The least and the largest number of brokers.
const BROKERS: (u64, u64) = (20, 40);

/// A Broker-Volume transaction.
#[derive(Clone, Debug)]
pub struct BrokerVolume {
    layout: Layout,
    scale: Scale,
    /// The slot of the first piece, which reads copies only.
    slot: Slot,
    /// B_NAME of the brokers.
    names: Vec<[u8; 49]>,
    /// SC_NAME of the sector.
    sector_name: [u8; 30],
    sector: u8,
    /// The brokers in the order of their numbers.
    brokers: Vec<Volume>,
    /// The brokers of each home, as positions.
    homes: Vec<Range<u32>>,
}

/// What a broker has pending.
#[derive(Clone, Copy, Debug)]
struct Volume {
    broker: u32,
    /// The position of the name.
    name: u32,
    /// How many orders.
    orders: u32,
    /// The sum of TR_QTY * TR_BID_PRICE, in cents.
    value: i64,
}

impl BrokerVolume {
    /// Draws the inputs (clause 3.3.1.1): distinct brokers, each as likely as any other, and a
    /// sector.
    pub(super) fn draw(tpce: &Tpce, client: &mut Client) -> BrokerVolume {
        let scale = tpce.scale();
        let slot = own_slot(tpce, client);
        let rng = &mut client.rng;
        let all = u64::from(scale.brokers());
        let count = rng.uniform(BROKERS.0..=BROKERS.1).min(all);
        // Floyd's way to draw distinct numbers.
        let mut drawn: Vec<u32> = Vec::with_capacity(count as usize);
        for last in all - count..all {
            let broker = rng.uniform(0..=last) as u32;
            drawn.push(if drawn.contains(&broker) { last as u32 } else { broker });
        }
        let sector = rng.below(SECTORS.len() as u64) as usize;
        BrokerVolume {
            layout: tpce.layout(),
            scale,
            slot,
            names: drawn.into_iter().map(people::broker_name).collect(),
            sector_name: padded(SECTORS[sector].1),
            sector: 0,
            brokers: Vec::new(),
            homes: Vec::new(),
        }
    }

    /// The pending orders of a broker.
    #[inline]
    fn pending(&self, broker: u32) -> Scan {
        let low = keys::broker_and_sector(broker, self.sector);
        let high = keys::broker_and_sector(broker, self.sector + 1);
        Scan::range(self.layout.column::<PendingOrder>(), low, high)
    }

    /// The brokers that a piece of the second stage looks at.
    #[inline]
    fn of_piece(&self, piece: Piece) -> Range<usize> {
        let home = &self.homes[piece.number];
        home.start as usize..home.end as usize
    }

    /// Looks up the numbers of the brokers and the sector, and notes which brokers share a home.
    #[inline]
    fn find<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        self.brokers.clear();
        self.homes.clear();
        self.brokers.reserve_exact(self.names.len());
        for (name, text) in (0..).zip(&self.names) {
            let record = access.get(BROKER_BY_NAME.row(), &keys::name(unpadded(text)))?.ok_or(NOT_LOADED)?;
            let broker = layout.view::<Named>(record).0.number.get();
            self.brokers.push(Volume { broker, name, orders: 0, value: 0 });
        }
        let mut sectors = 0..SECTORS.len() as u8;
        self.sector = loop {
            let sector = sectors.next().ok_or(NOT_LOADED)?;
            let wanted = &self.sector_name;
            if layout.read(access, &keys::small(sector), |row: &Sector, _| row.name == *wanted)? {
                break sector;
            }
        };
        self.brokers.sort_unstable_by_key(|volume| volume.broker);
        let (scale, mut start) = (self.scale, 0);
        let home = |volume: &Volume| scale.home_of_broker(volume.broker);
        for brokers in self.brokers.chunk_by(|a, b| home(a) == home(b)) {
            let end = start + brokers.len() as u32;
            self.homes.push(start..end);
            start = end;
        }
        Ok(())
    }

    /// Output: B_NAME and volume in cents of each broker that has pending orders, the largest
    /// volume first.
    pub fn volumes(&self) -> Vec<(&[u8], i64)> {
        let mut volumes: Vec<_> = self.brokers.iter().filter(|volume| volume.orders > 0).collect();
        volumes.sort_unstable_by_key(|volume| (-volume.value, volume.broker));
        volumes
            .into_iter()
            .map(|volume| (unpadded(&self.names[volume.name as usize]), volume.value))
            .collect()
    }

    /// SC_NAME of the sector.
    pub fn sector_name(&self) -> &[u8] {
        unpadded(&self.sector_name)
    }

    /// How many rows it has read, copies not counted.
    pub fn rows(&self) -> u32 {
        self.brokers.iter().map(|volume| volume.orders).sum()
    }
}

impl Procedure for BrokerVolume {
    fn read_only(&self) -> bool {
        true
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match stage {
            0 => 1,
            1 => self.homes.len(),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        match piece.stage {
            0 => self.slot,
            _ => {
                let broker = self.brokers[self.of_piece(piece).start].broker;
                self.scale.slot(self.scale.home_of_broker(broker))
            }
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        if piece.stage > 0 {
            let brokers = &self.brokers[self.of_piece(piece)];
            brokers.iter().for_each(|volume| reads.scan(self.pending(volume.broker)));
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        if piece.stage == 0 {
            return self.find(access);
        }
        let layout = self.layout;
        for at in self.of_piece(piece) {
            let (mut orders, mut value) = (0, 0);
            access.scan(&self.pending(self.brokers[at].broker), |_, record| {
                let (order, _) = layout.view::<PendingOrder>(record);
                orders += 1;
                value += i64::from(order.quantity.get()) * i64::from(order.bid.get());
                ControlFlow::Continue(())
            })?;
            (self.brokers[at].orders, self.brokers[at].value) = (orders, value);
        }
        Ok(())
    }
}
