//! The yield of background reads, by the time that they used.

use block::Sectors;

/// The time that a background read used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// The rotational latency of a foreground command.
    Free,
    /// Idle time of the drive.
    Idle,
    /// Head time that the user granted.
    Paid,
}

/// The wanted blocks that were read, and the number of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Wanted blocks that were read; see
    /// [`ReadAttribution::blocks`](super::ReadAttribution::blocks).
    pub blocks: Sectors,
    /// Reads, those merged with a foreground command included.
    pub reads: u64,
}

/// Free, idle and paid reads, which no report adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Reads in gaps.
    pub free: Moved,
    /// Reads in idle time.
    pub idle: Moved,
    /// Reads in granted head time.
    pub paid: Moved,
}

impl Account {
    /// The counters of one kind of time.
    pub fn of(&mut self, means: Means) -> &mut Moved {
        match means {
            Means::Free => &mut self.free,
            Means::Idle => &mut self.idle,
            Means::Paid => &mut self.paid,
        }
    }

    /// Counts one read.
    pub fn count(&mut self, means: Means, wanted: u64) {
        let moved = self.of(means);
        moved.blocks.0 += wanted;
        moved.reads += 1;
    }

    /// The sum of two accounts, of two actuators.
    #[must_use]
    pub fn and(self, other: Account) -> Account {
        let sum = |one: Moved, other: Moved| Moved {
            blocks: Sectors(one.blocks.0 + other.blocks.0),
            reads: one.reads + other.reads,
        };
        Account {
            free: sum(self.free, other.free),
            idle: sum(self.idle, other.idle),
            paid: sum(self.paid, other.paid),
        }
    }

    /// The sum of all blocks.
    pub fn blocks(&self) -> Sectors {
        Sectors(self.free.blocks.0 + self.idle.blocks.0 + self.paid.blocks.0)
    }
}
