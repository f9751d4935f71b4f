//! Which numbered slots are free, by block, so that the memory of a block without a single value
//! can be given back.

/// Free slots of a growing array. The latest freed is the first to be used again.
#[derive(Debug, Default)]
pub(crate) struct Vacancies {
    /// A block has `1 << shift` slots.
    shift: u32,
    blocks: Vec<Block>,
    /// Blocks that have memory and free slots; the last one is used first.
    open: Vec<u32>,
    /// Blocks without memory.
    gone: Vec<u32>,
    /// Free slots that have memory.
    free: usize,
    /// Blocks all of whose slots are free, and that have memory.
    empty: usize,
}

#[derive(Debug, Default)]
struct Block {
    free: Vec<u16>,
    /// Its position among the open ones, if it is one.
    at: u32,
}

impl Vacancies {
    /// None, in blocks of `1 << shift` slots; at most 65,536.
    pub fn new(shift: u32) -> Vacancies {
        debug_assert!(shift <= u16::BITS);
        Vacancies { shift, ..Vacancies::default() }
    }

    /// How many slots are free and have memory.
    pub fn len(&self) -> usize {
        self.free
    }

    /// How many blocks have no memory.
    pub fn gone(&self) -> usize {
        self.gone.len()
    }

    /// A free slot, from now on taken.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        let number = *self.open.last()?;
        let block = &mut self.blocks[number as usize];
        self.empty -= usize::from(block.free.len() == 1 << self.shift);
        let slot = block.free.pop().expect("an open block has a free slot");
        if block.free.is_empty() {
            self.open.pop();
        }
        self.free -= 1;
        Some(number << self.shift | u32::from(slot))
    }

    /// A slot is free. Returns its block if the block's memory is to be given back: when all its
    /// slots are free, and another block is like that already, for what comes next.
    #[inline]
    pub fn put(&mut self, slot: u32) -> Option<u32> {
        let number = slot >> self.shift;
        if self.blocks.len() <= number as usize {
            self.blocks.resize_with(number as usize + 1, Block::default);
        }
        let block = &mut self.blocks[number as usize];
        block.free.push((slot & ((1 << self.shift) - 1)) as u16);
        let (is_new, is_empty, at) = (block.free.len() == 1, block.free.len() == 1 << self.shift, block.at);
        self.free += 1;
        match is_new {
            true => self.open(number),
            false => self.exchange(at, self.open.len() as u32 - 1),
        }
        if !is_empty {
            return None;
        }
        self.empty += 1;
        if self.empty == 1 {
            return None;
        }
        self.empty -= 1;
        self.free -= 1 << self.shift;
        self.open.pop();
        self.gone.push(number);
        self.blocks[number as usize].free = Vec::new();
        Some(number)
    }

    /// A block without memory, if there is one. It gets memory, and all its slots are free.
    pub fn restore(&mut self) -> Option<u32> {
        let number = self.gone.pop()?;
        // The least number is used first.
        self.blocks[number as usize].free = (0..=((1u32 << self.shift) - 1) as u16).rev().collect();
        self.free += 1 << self.shift;
        self.empty += 1;
        self.open(number);
        Some(number)
    }

    fn open(&mut self, number: u32) {
        self.blocks[number as usize].at = self.open.len() as u32;
        self.open.push(number);
    }

    #[inline]
    fn exchange(&mut self, one: u32, other: u32) {
        if one != other {
            self.open.swap(one as usize, other as usize);
            for at in [one, other] {
                self.blocks[self.open[at as usize] as usize].at = at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_latest_freed_is_used_first_and_an_empty_block_is_kept() {
        let mut vacancies = Vacancies::new(2);
        assert_eq!(vacancies.take(), None);
        let freed = [1, 9, 2, 0, 3, 8, 10, 11];
        let given_back: Vec<_> = freed.into_iter().map(|slot| vacancies.put(slot)).collect();
        // Block 0 is the first without a value, and stays; block 2 is the second.
        assert_eq!(given_back, [None, None, None, None, None, None, None, Some(2)]);
        assert_eq!(vacancies.len(), 4);
        let taken: Vec<_> = std::iter::from_fn(|| vacancies.take()).collect();
        assert_eq!(taken, [3, 0, 2, 1]);
        assert_eq!((vacancies.restore(), vacancies.restore()), (Some(2), None));
        assert_eq!(std::iter::from_fn(|| vacancies.take()).collect::<Vec<_>>(), [8, 9, 10, 11]);
    }

    proptest! {
        #[test]
        fn each_slot_is_given_out_once(steps in proptest::collection::vec((any::<bool>(), 0..1000usize), 0..400)) {
            let mut vacancies = Vacancies::new(3);
            let (mut taken, mut next, mut gone) = (BTreeSet::new(), 0, BTreeSet::new());
            for (takes, which) in steps {
                if takes {
                    let slot = vacancies.take().or_else(|| {
                        gone.remove(&vacancies.restore()?);
                        vacancies.take()
                    });
                    let slot = slot.unwrap_or_else(|| {
                        next += 1;
                        next - 1
                    });
                    prop_assert!(taken.insert(slot), "it was free");
                } else if let Some(&slot) = taken.iter().nth(which % taken.len().max(1)) {
                    taken.remove(&slot);
                    if let Some(block) = vacancies.put(slot) {
                        prop_assert!(!taken.iter().any(|slot| slot >> 3 == block));
                        gone.insert(block);
                    }
                }
                prop_assert!(taken.iter().all(|slot| !gone.contains(&(slot >> 3))));
                prop_assert_eq!(next as usize, taken.len() + vacancies.len() + 8 * gone.len());
            }
        }
    }
}
