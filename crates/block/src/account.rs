//! The time of one command, divided into phases.
//!
//! ```text
//!   submitted      started                                               completed
//!      |  queue       |  overhead  |  seek  | rotation | transfer | bus      |
//!      '--------------+------------+--------+----------+----------+----------'
//! ```

use crate::time::Duration;

/// The share of a command that the drive's buffer answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum BufferHit {
    /// The buffer had no block: the medium answered the command.
    #[default]
    Miss,
    /// The buffer had the first blocks, or was reading them.
    Partial,
    /// The buffer had every block.
    Full,
}

/// The phases of one command. Their sum is the time from submission to completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Account {
    /// The wait in the drive's queue.
    pub queue: Duration,
    /// The electronics: command decoding and completion.
    pub overhead: Duration,
    /// Arm movement: seeks, head switches and settling, those inside a transfer included.
    pub seek: Duration,
    /// Rotational latency: the wait for the first sector.
    pub rotation: Duration,
    /// Media transfer: sectors passing under the head.
    pub transfer: Duration,
    /// Bus transfer that no media transfer hid.
    pub bus: Duration,
    /// The share that the buffer answered.
    pub hit: BufferHit,
}

impl Account {
    /// The time from submission to completion.
    pub fn total(&self) -> Duration {
        self.queue + self.service()
    }

    /// The time from the end of queueing to completion.
    pub fn service(&self) -> Duration {
        self.overhead + self.head() + self.bus
    }

    /// The sum of two commands' phases; the buffer hit is the later command's.
    pub fn and(&self, later: &Account) -> Account {
        Account {
            queue: self.queue + later.queue,
            overhead: self.overhead + later.overhead,
            seek: self.seek + later.seek,
            rotation: self.rotation + later.rotation,
            transfer: self.transfer + later.transfer,
            bus: self.bus + later.bus,
            hit: later.hit,
        }
    }

    /// The time during which arm and medium worked: seek, rotation and transfer.
    pub fn head(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}
