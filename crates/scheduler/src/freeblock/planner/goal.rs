//! The worth of a read.

use crate::freeblock::Goal;

/// A goal, and the bounds of a worth by it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    goal: Goal,
    /// The fewest sectors of a track of the drive.
    sparse: u32,
}

/// A whole revolution of wanted blocks, by [`Goal::Even`].
const REVOLUTION: u64 = 1 << 20;

/// The additional worth of a read that leaves nothing of its track: as much again as the read
/// itself.
///
/// A choice among 1, 4 and 16. On the Atlas 10K (head switch 0.8 ms, OLTP, SPTF-SW60, guard 0.3 ms,
/// seek noise 60 us) a whole scan takes 3435, 3437 and 3440 s, its first half 817, 847 and 871 s.
/// With [`Goal::Blocks`] they take 3646 and 810 s.
const CLEARING: u64 = 1;

impl Worth {
    pub fn new(goal: Goal, sparse: u32) -> Self {
        Worth { goal, sparse }
    }

    /// The worth of `wanted` blocks of a track with `sectors` sectors, `left` of whose blocks are
    /// wanted.
    pub fn of(&self, wanted: u32, sectors: u32, left: u32) -> u64 {
        match self.goal {
            Goal::Blocks => u64::from(wanted),
            Goal::Even => {
                let share = u64::from(wanted) * REVOLUTION / u64::from(sectors.max(1));
                share + CLEARING * share * u64::from(wanted) / u64::from(left.max(1))
            }
        }
    }

    /// The largest number of blocks that no read above `worth` can have.
    pub fn blocks(&self, worth: u64) -> u32 {
        self.blocks_among(worth, self.sparse)
    }

    /// The largest number of blocks that no read above `worth` can have on a track of at least
    /// `sectors` sectors.
    pub fn blocks_among(&self, worth: u64, sectors: u32) -> u32 {
        match self.goal {
            Goal::Blocks => worth.min(u64::from(u32::MAX)) as u32,
            Goal::Even => {
                let blocks = worth * u64::from(sectors) / ((1 + CLEARING) * REVOLUTION);
                blocks.min(u64::from(u32::MAX)) as u32
            }
        }
    }

    /// Upper bound on the worth of a read within `revolutions` (parts of 2^20, rounded up) in which
    /// at most `blocks` blocks pass.
    pub fn most(&self, revolutions: u64, blocks: u32) -> u64 {
        match self.goal {
            Goal::Blocks => u64::from(blocks),
            Goal::Even => (1 + CLEARING) * (revolutions + 1),
        }
    }

    /// The inverse of [`Worth::most`], but for rounding: the picoseconds from which on a read may be worth more than
    /// `worth`, on a track of `sectors` sectors that turns once in `period` picoseconds.
    pub fn least_picos(&self, worth: u64, sectors: u32, period: u64) -> u64 {
        let (parts, of) = match self.goal {
            Goal::Blocks => (worth + 1, u64::from(sectors.max(1))),
            Goal::Even => ((worth / (1 + CLEARING)).saturating_sub(1), REVOLUTION),
        };
        let picos = u128::from(parts) * u128::from(period) / u128::from(of);
        picos.try_into().unwrap_or(u64::MAX)
    }
}
