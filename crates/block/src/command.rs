//! What a drive is told to do, and how that ended.

use crate::account::Account;
use crate::address::{Extent, Lba};
use crate::time::{Duration, Instant};

/// Names a command from its submission to its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CommandId(pub u64);

/// When a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Durability {
    /// As soon as the drive's buffer holds it, where the write cache is on.
    Volatile,
    /// When it is on the medium (FUA).
    Durable,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Switch {
    /// Enabled.
    On,
    /// Disabled.
    Off,
}

/// One command for a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Command {
    /// Comes back with the outcome.
    pub id: CommandId,
    /// What to do.
    pub action: Action,
    /// Whether the drive is asked to take it before others (NCQ priority).
    pub urgency: Urgency,
    /// How long it may wait in the drive's queue before the drive gives it up (command duration
    /// limits, SPC-6), if it may not wait for ever.
    pub duration_limit: Option<Duration>,
}

/// What the drive is told of a command's urgency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Urgency {
    /// Before all normal ones.
    High,
    /// In the drive's own order.
    #[default]
    Normal,
}

impl Command {
    /// An ordinary command: normal urgency, no limit.
    pub const fn new(id: CommandId, action: Action) -> Self {
        Command {
            id,
            action,
            urgency: Urgency::Normal,
            duration_limit: None,
        }
    }
}

impl Action {
    /// The blocks that it transfers or goes to, if it names any.
    pub const fn extent(self) -> Option<Extent> {
        match self {
            Action::Read { extent, .. } | Action::Write { extent, .. } => Some(extent),
            Action::Seek { to } => Some(Extent::block(to)),
            Action::Flush | Action::SetLookAhead(_) | Action::SetWriteCache(_) => None,
        }
    }
}

/// How a command ended, as the drive reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Status {
    /// As asked.
    Good,
    /// A block could not be read or written.
    MediumError {
        /// The first such block.
        at: Lba,
    },
    /// Its duration limit passed before the drive took it up.
    TimedOut,
    /// A write to a sequential-write zone that is not where the zone's last write ended.
    WritePointer {
        /// Where the next write of the zone has to begin.
        expected: Lba,
    },
    /// Not done: the request was taken back by its client before its command was given to the
    /// drive. A drive never says so.
    Aborted,
}

/// What a drive answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
