//! What background reads brought, by what paid for them.

use block::Sectors;

/// What paid for a background read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// Rotational latency that a foreground command had anyway.
    Free,
    /// Time in which no foreground request was there.
    Idle,
    /// Head time that the user granted.
    Paid,
}

/// Wanted blocks that were read, and how many commands it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Blocks that were wanted; see [`ReadAttribution::blocks`](super::ReadAttribution::blocks).
    pub blocks: Sectors,
    /// Reads, those that were merged with a foreground command too.
    pub reads: u64,
}

/// Free, idle and paid apart: they are never added up in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// In gaps.
    pub free: Moved,
    /// In idle time.
    pub idle: Moved,
    /// In granted head time.
    pub paid: Moved,
}

impl Account {
    /// The part of one means.
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

    /// All blocks, whatever paid for them.
    pub fn blocks(&self) -> Sectors {
        Sectors(self.free.blocks.0 + self.idle.blocks.0 + self.paid.blocks.0)
    }
}
