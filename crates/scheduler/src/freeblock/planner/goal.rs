//! What makes one read better than another.

use crate::freeblock::Goal;

/// A goal, and what bounds a worth by it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    goal: Goal,
    /// The fewest sectors of a track of the drive.
    sparse: u32,
}

/// A whole revolution of wanted blocks, by [`Goal::Even`].
const REVOLUTION: u64 = 1 << 20;

/// How much more a read is worth that leaves nothing of its track than one of the same length on a
/// track of which nothing was read: as much again.
///
/// A choice among 1, 4 and 16. On the Atlas 10K (head switch 0.8 ms, OLTP, SPTF-SW60, guard 0.3 ms,
/// seek noise 60 us) a whole scan takes 3435, 3437 and 3440 s, its first half 817, 847 and 871 s;
/// with [`Goal::Blocks`] 3646 and 810 s.
const CLEARING: u64 = 1;

impl Worth {
    pub fn new(goal: Goal, sparse: u32) -> Self {
        Worth { goal, sparse }
    }

    /// What so many wanted blocks are worth, of a track of so many sectors on which `left` blocks
    /// are wanted.
    pub fn of(&self, wanted: u32, sectors: u32, left: u32) -> u64 {
        match self.goal {
            Goal::Blocks => u64::from(wanted),
            Goal::Even => {
                let share = u64::from(wanted) * REVOLUTION / u64::from(sectors.max(1));
                share + CLEARING * share * u64::from(wanted) / u64::from(left.max(1))
            }
        }
    }

    /// No read of so many blocks or fewer is worth more than `worth`.
    pub fn blocks(&self, worth: u64) -> u32 {
        match self.goal {
            Goal::Blocks => worth.min(u64::from(u32::MAX)) as u32,
            Goal::Even => {
                let blocks = worth * u64::from(self.sparse) / ((1 + CLEARING) * REVOLUTION);
                blocks.min(u64::from(u32::MAX)) as u32
            }
        }
    }

    /// No read is worth more for which there is so much time, in parts of a revolution out of
    /// 2^20, rounded up, and in which so many blocks pass at most.
    pub fn most(&self, revolutions: u64, blocks: u32) -> u64 {
        match self.goal {
            Goal::Blocks => u64::from(blocks),
            Goal::Even => (1 + CLEARING) * (revolutions + 1),
        }
    }
}
