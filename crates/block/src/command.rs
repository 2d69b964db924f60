//! Commands to a drive, and their outcomes.

use crate::account::Account;
use crate::address::{Extent, Lba};
use crate::time::{Duration, Instant};

/// The number of a command from its submission to its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CommandId(pub u64);

/// The moment at which a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Durability {
    /// Done when the drive's buffer holds the data, if the write cache is on.
    Volatile,
    /// Done when the data is on the medium (FUA).
    Durable,
}

/// The operation of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Action {
    /// Reads the extent.
    Read {
        /// The blocks.
        extent: Extent,
        /// `Durable` reads from the medium even if the buffer has the blocks.
        durability: Durability,
    },
    /// Writes the extent.
    Write {
        /// The blocks.
        extent: Extent,
        /// When the write counts as done.
        durability: Durability,
    },
    /// Moves the arm to the track of a block without a transfer.
    Seek {
        /// The block on the target track.
        to: Lba,
    },
    /// Writes all dirty data of the buffer to the medium.
    Flush,
    /// Switches read look-ahead on or off.
    SetLookAhead(Switch),
    /// Switches the write cache on or off. Switching it off flushes first.
    SetWriteCache(Switch),
}

/// The position of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Switch {
    /// The feature is enabled.
    On,
    /// The feature is disabled.
    Off,
}

/// One command to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Command {
    /// The number that comes back with the outcome.
    pub id: CommandId,
    /// The operation.
    pub action: Action,
    /// The urgency that the drive is told (NCQ priority).
    pub urgency: Urgency,
    /// The longest wait in the drive's queue (command duration limits, SPC-6). `None`: no limit. A
    /// drive aborts a command at its limit.
    pub duration_limit: Option<Duration>,
}

/// The urgency of a command in the drive's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Urgency {
    /// The drive starts the command before all normal ones.
    High,
    /// The drive chooses the order.
    #[default]
    Normal,
}

impl Command {
    /// A command of normal urgency without a duration limit.
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
    /// The extent of a read or write, or the target block of a seek.
    pub const fn extent(self) -> Option<Extent> {
        match self {
            Action::Read { extent, .. } | Action::Write { extent, .. } => Some(extent),
            Action::Seek { to } => Some(Extent::block(to)),
            Action::Flush | Action::SetLookAhead(_) | Action::SetWriteCache(_) => None,
        }
    }

    /// The same action on blocks that are numbered from `first` on instead of 0.
    ///
    /// # Panics
    /// If a block's number is beyond 64 bits.
    #[must_use]
    pub fn numbered_from(mut self, first: u64) -> Action {
        match &mut self {
            Action::Read { extent, .. } | Action::Write { extent, .. } => {
                let start = Lba(first + extent.start().0);
                *extent = Extent::new(start, extent.length()).expect("blocks of a drive");
            }
            Action::Seek { to } => to.0 += first,
            Action::Flush | Action::SetLookAhead(_) | Action::SetWriteCache(_) => {}
        }
        self
    }
}

/// The result of a command, as the drive reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Status {
    /// The command succeeded.
    Good,
    /// A block could not be read or written.
    MediumError {
        /// The first such block.
        at: Lba,
    },
    /// The duration limit passed before the drive started the command.
    TimedOut,
    /// A write to a sequential-write zone did not begin at the zone's write pointer.
    WritePointer {
        /// The write pointer: the block at which the zone's next write has to begin.
        expected: Lba,
    },
    /// The client withdrew the request before its command was dispatched. A drive never reports
    /// this.
    Aborted,
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Outcome {
    /// The command that ended.
    pub id: CommandId,
    /// The moment at which it ended.
    pub at: Instant,
    /// The result.
    pub status: Status,
    /// The phases of the command. Only a simulated drive knows them. The engine passes them to
    /// reports alone: an external scheduler must not use them.
    pub account: Option<Account>,
}
