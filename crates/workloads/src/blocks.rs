//! Clients of data that lies in blocks of equal size, each of which has one owner.

use plimsoll_types::{ShardId, Slot};

use plimsoll_types::random::Rng;

/// What a client keeps: its random numbers, the blocks where it is at home and those elsewhere.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) rng: Rng,
    pub(crate) blocks: Blocks,
}

/// Block `n` lives in slot `n`.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// On the client's shard; never empty.
    homes: Vec<u16>,
    /// On other shards.
    others: Vec<u16>,
}

impl Client {
    /// One of `blocks` blocks; see [`Workload::client`](crate::Workload::client). A client whose
    /// own shard owns none, because the data is in other processes, is at home where the block of
    /// its number is.
    pub(crate) fn new(
        seed: u64,
        client: usize,
        blocks: u64,
        shard: ShardId,
        owner: &dyn Fn(Slot) -> ShardId,
    ) -> Client {
        let all = 0..blocks as u16;
        let owner = |block: u16| owner(Slot(block));
        let home = match all.clone().any(|block| owner(block) == shard) {
            true => shard,
            false => owner((client as u64 % blocks) as u16),
        };
        let (homes, others) = all.partition(|&block| owner(block) == home);
        Client { rng: Rng::new(!seed, client as u64), blocks: Blocks { homes, others } }
    }
}

impl Blocks {
    /// A block at home.
    pub(crate) fn home(&self, rng: &mut Rng) -> u16 {
        one_of(rng, &self.homes)
    }

    /// How many are elsewhere.
    pub(crate) fn elsewhere(&self) -> usize {
        self.others.len()
    }

    /// A block elsewhere, of which there are some.
    pub(crate) fn other(&self, rng: &mut Rng) -> u16 {
        one_of(rng, &self.others)
    }
}

fn one_of(rng: &mut Rng, blocks: &[u16]) -> u16 {
    blocks[if blocks.len() == 1 { 0 } else { rng.below(blocks.len() as u64) as usize }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_other_processes_is_at_home_at_one_of_them() {
        // Blocks 0 and 2 on shard 0, 1 and 3 on shard 1.
        let owner = |slot: Slot| ShardId(slot.0 % 2);
        for (client, shard, homes, others) in [
            (0, 0, [0, 2], [1, 3]),
            (0, 1, [1, 3], [0, 2]),
            (0, 7, [0, 2], [1, 3]),
            (1, 7, [1, 3], [0, 2]),
            (6, 7, [0, 2], [1, 3]),
        ] {
            let client = Client::new(9, client, 4, ShardId(shard), &owner);
            assert_eq!((&client.blocks.homes[..], &client.blocks.others[..]), (&homes[..], &others[..]));
        }
    }
}
