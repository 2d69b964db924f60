//! What a drive is told to do, and how that ended.

use crate::account::Account;
use crate::address::{Extent, Lba};
use crate::time::Instant;

/// Names a command from its submission to its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// When a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// As soon as the drive's buffer holds it, where the write cache is on.
    Volatile,
    /// When it is on the medium (FUA).
    Durable,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read the extent; `fua` reads from the medium even if the buffer has the blocks.
    Read {
        /// The blocks.
        extent: Extent,
        /// From the medium, or from the buffer if it is there.
        durability: Durability,
    },
    /// Write the extent.
    Write {
        /// The blocks.
        extent: Extent,
        /// When it counts as done.
        durability: Durability,
    },
    /// Move the arm to the track of a block; transfer nothing.
    Seek {
        /// The block whose track is the target.
        to: Lba,
    },
    /// Write everything that the buffer holds to the medium.
    Flush,
    /// Switch the read look-ahead.
    SetLookAhead(Switch),
    /// Switch the write cache; switching it off flushes first.
    SetWriteCache(Switch),
}

/// The position of a switch of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Enabled.
    On,
    /// Disabled.
    Off,
}

/// One command for a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// Comes back with the outcome.
    pub id: CommandId,
    /// What to do.
    pub action: Action,
}

/// How a command ended, as the drive reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As asked.
    Good,
    /// A block could not be read or written.
    MediumError {
        /// The first such block.
        at: Lba,
    },
}

/// How much of a command the buffer answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BufferHit {
    /// Nothing: the medium did it.
    #[default]
    Miss,
    /// The first blocks were there, or on their way in.
    Partial,
    /// All of it.
    Full,
}

/// What a drive answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The command that ended.
    pub id: CommandId,
    /// When.
    pub at: Instant,
    /// How.
    pub status: Status,
    /// Where the time went. Only a simulated drive can tell: a scheduler that uses it while it
    /// claims to be external would cheat, so the engine passes it to reports alone.
    pub account: Option<Account>,
}
