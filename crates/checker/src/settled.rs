//! Blocks of records that were deleted for good.
//!
//! A queue of rows that are inserted and then deleted leaves a long tail of tombstones, and a scan
//! for the oldest live row runs over all of it: a million scans over ten thousand tombstones each
//! would take minutes. So the ranks of scanned columns are put into blocks of 64, of 64 blocks and
//! so on, and each block knows the moment from which on all of it is settled ([`Index::settled`]).
//! A walk over a range steps over the largest settled block that fits.
//!
//! With a scalar order, what that says is kept, through a node of the graph that is no transaction:
//! writers of the final tombstones → block → reader. Otherwise it says nothing new. A block in
//! which the scan saw a row is never stepped over.

use crate::graph::{Kind, pack};
use crate::index::Index;

/// From which horizon on each record, and each aligned block of 64, 64², ... ranks, is settled.
pub(crate) struct Settled {
    radix: usize,
    /// `levels[0]` has a horizon per rank, `levels[l]` one per block of `radix^l`; the last block
    /// may be short.
    levels: Vec<Vec<u64>>,
    /// The number of each level's first block. Single ranks are not numbered.
    first: Vec<u32>,
}

/// How many blocks make the next larger one.
pub(crate) const RADIX: usize = 64;

impl Settled {
    /// Looks at every record of a scanned column.
    pub fn build(index: &Index, radix: usize) -> Settled {
        let single: Vec<u64> = (0..index.ranks()).map(|rank| index.settled(index.at_rank(rank))).collect();
        let mut settled = Settled { radix, levels: vec![single], first: vec![0, 0] };
        while let Some(last) = settled.levels.last()
            && last.len() > 1
        {
            let next: Vec<u64> =
                last.chunks(radix).map(|chunk| chunk.iter().copied().max().unwrap_or(0)).collect();
            settled.first.push(settled.blocks() + next.len() as u32);
            settled.levels.push(next);
        }
        settled
    }

    /// No blocks at all: every record of a range is looked at by itself.
    pub fn none() -> Settled {
        Settled { radix: 0, levels: Vec::new(), first: vec![0] }
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u32 {
        self.first[self.first.len() - 1]
    }

    /// The largest settled block from rank `at` on that ends by `end`, and where it ends.
    #[inline]
    pub fn block(&self, at: u32, end: u32, horizon: u64) -> Option<(u32, u32)> {
        let mut found = None;
        let mut size = 1;
        for level in 1..self.levels.len() {
            size *= self.radix as u64;
            let block = (u64::from(at) / size) as usize;
            let fits = u64::from(at).is_multiple_of(size) && u64::from(at) + size <= u64::from(end);
            if !fits || self.levels[level][block] > horizon {
                break;
            }
            found = Some((self.first[level] + block as u32, at + size as u32));
        }
        found
    }

    /// The edges into the blocks that were used: from the writers of the final tombstones, through
    /// smaller blocks.
    pub fn connect(&self, index: &Index, mut used: Vec<bool>, first_block: u32, pairs: &mut Vec<(u32, u32)>) {
        for level in (1..self.levels.len()).rev() {
            for block in 0..self.levels[level].len() {
                let number = self.first[level] + block as u32;
                if !used[number as usize] {
                    continue;
                }
                let to = pack(first_block + number, Kind::Wr);
                for child in block * self.radix..((block + 1) * self.radix).min(self.levels[level - 1].len())
                {
                    if level > 1 {
                        let child = self.first[level - 1] + child as u32;
                        used[child as usize] = true;
                        pairs.push((first_block + child, to));
                    } else if let Some(last) = index.chain(index.at_rank(child as u32)).last() {
                        pairs.push((last.writer, to));
                    }
                }
            }
        }
    }
}
