//! Greedy tasks: each always has one outstanding request at a random position of the disk.

use block::{Direction, Extent, Lba, Sectors};

use super::PAGE;
use super::setup::GreedyLoad;
use crate::workload::dice::Dice;

/// The tasks and their random numbers.
#[derive(Debug)]
pub(super) struct GreedyTasks {
    greed: GreedyLoad,
    dice: Dice,
    /// Blocks of the drive, and bytes per block.
    drive: (u64, u64),
}

impl GreedyTasks {
    /// The tasks on a drive of this many blocks of this many bytes.
    pub(super) fn new(greed: GreedyLoad, drive: (u64, u64)) -> GreedyTasks {
        GreedyTasks {
            dice: Dice::new(greed.seed, PURPOSE),
            greed,
            drive,
        }
    }

    /// Number of tasks.
    pub(super) fn count(&self) -> usize {
        self.greed.tasks
    }

    /// The next request of a task: reads and writes are equally likely.
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

/// The stream of random numbers of the tasks.
const PURPOSE: u64 = 0x7461_736b;
