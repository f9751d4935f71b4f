//! Names of things: shards, tables, transactions.

use std::fmt;

/// A shard: one thread that owns its partitions outright. A participant is always a shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ShardId(pub u16);

crate::wire!(struct ShardId(0));

impl ShardId {
    /// The shard's position among all shards.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A table, numbered in the order of creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TableId(pub u16);

crate::wire!(struct TableId(0));

impl TableId {
    /// The table's position among the tables of the database.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One attempt of one transaction: the coordinating shard and a counter that is never used twice,
/// so that "wait until the owner is another" cannot confuse two owners (`docs/protocols/dst.md`,
/// C8).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TxnId {
    /// The attempt's number on its shard, from 1.
    pub number: u64,
    /// The shard that coordinates the attempt.
    pub coordinator: ShardId,
}

crate::wire!(struct TxnId { number, coordinator });

impl fmt::Debug for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}.{}", self.coordinator.0, self.number)
    }
}
