//! Greedy tasks: each has one request of its own under way, anywhere on the disk, always.

use block::{Direction, Extent, Lba, Sectors};

use super::PAGE;
use super::setup::GreedyLoad;
use crate::workload::dice::Dice;

/// All of them.
#[derive(Debug)]
pub(super) struct GreedyTasks {
    greed: GreedyLoad,
    dice: Dice,
    /// Blocks of the drive and bytes of a block.
    drive: (u64, u64),
}

impl GreedyTasks {
    /// On a drive of so many blocks of so many bytes.
    pub(super) fn new(greed: GreedyLoad, drive: (u64, u64)) -> GreedyTasks {
        GreedyTasks {
            dice: Dice::new(greed.seed, PURPOSE),
            greed,
            drive,
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.greed.tasks
    }

    /// What the next request of one of them is: reads and writes, equally likely.
    pub(super) fn next(&mut self) -> Option<(Direction, Extent)> {
        let (blocks, bytes) = self.drive;
        let page = (PAGE / bytes).max(1);
        let length = (self.greed.bytes / bytes).max(1);
        let places = blocks.checked_sub(length)? / page;
        let start = Lba(self.dice.below(places + 1) * page);
        let direction = match self.dice.below(2) {
            0 => Direction::Read,
            _ => Direction::Write,
        };
        let extent = Extent::new(start, Sectors(length)).ok()?;
        Some((direction, extent))
    }
}

/// The sequence of chance that they draw from.
const PURPOSE: u64 = 0x7461_736b;
