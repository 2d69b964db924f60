//! The wished blocks of a level and their progress. Plans are in sectors; a block is complete when
//! all its sectors have been read.

use std::collections::{BTreeMap, VecDeque};

use block::Extent;
use block::Interval;
use scheduler::background::TaskId;

/// The wished blocks of a disk.
#[derive(Debug)]
pub(super) struct DiskWishes {
    /// The engine's task that reads them.
    pub(super) task: TaskId,
    /// Sectors per block.
    sectors: u64,
    /// The incomplete blocks, with one bit for each sector that has been read.
    wished: BTreeMap<u64, u64>,
    /// The complete blocks.
    whole: VecDeque<u64>,
}

impl DiskWishes {
    /// An empty set; a block has at most 64 sectors.
    pub(super) fn new(task: TaskId, sectors: u64) -> Self {
        assert!(sectors <= 64, "blocks of {sectors} sectors");
        DiskWishes {
            task,
            sectors,
            wished: BTreeMap::new(),
            whole: VecDeque::new(),
        }
    }

    pub(super) fn want(&mut self, blocks: Interval) {
        self.wished.extend(blocks.blocks().map(|block| (block, 0)));
    }

    pub(super) fn unwant(&mut self, blocks: Interval) {
        for block in blocks.blocks() {
            self.wished.remove(&block);
        }
    }

    /// Records sectors that have been read.
    pub(super) fn read(&mut self, extent: Extent) {
        let (first, end) = (extent.start().0, extent.end().0);
        let all = u64::MAX >> (64 - self.sectors);
        let mut block = first / self.sectors;
        while block * self.sectors < end {
            let start = block * self.sectors;
            let from = first.max(start) - start;
            let to = end.min(start + self.sectors) - start;
            let bits = (u64::MAX >> (64 - (to - from))) << from;
            if let Some(read) = self.wished.get_mut(&block) {
                *read |= bits;
                if *read == all {
                    self.wished.remove(&block);
                    self.whole.push_back(block);
                }
            }
            block += 1;
        }
    }

    /// The next complete block.
    pub(super) fn poll(&mut self) -> Option<u64> {
        self.whole.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use block::{Lba, Sectors};

    use super::*;

    #[test]
    fn a_block_is_there_when_all_its_sectors_were_read_since_it_was_wished() {
        let mut wishes = DiskWishes::new(TaskId(0), 8);
        let extent = |from, to| Extent::new(Lba(from), Sectors(to - from)).expect("sectors");
        wishes.want(Interval::new(2, 4));
        // All of 3, the end of 2, the beginning of 4, and nothing that was not wished.
        wishes.read(extent(20, 36));
        assert_eq!((wishes.poll(), wishes.poll()), (Some(3), None));
        wishes.read(extent(0, 20));
        assert_eq!((wishes.poll(), wishes.poll()), (Some(2), None));
        // What was read before it was wished again is gone.
        wishes.unwant(Interval::new(4, 4));
        wishes.want(Interval::new(4, 4));
        wishes.read(extent(36, 40));
        assert_eq!(wishes.poll(), None);
        wishes.read(extent(32, 36));
        assert_eq!((wishes.poll(), wishes.poll()), (Some(4), None));
        // They come in their order.
        wishes.want(Interval::new(5, 6));
        wishes.read(extent(40, 56));
        assert_eq!((wishes.poll(), wishes.poll()), (Some(5), Some(6)));
        // Once.
        wishes.read(extent(40, 56));
        assert_eq!(wishes.poll(), None);
    }
}
