//! Where the time of a command went, phase by phase.
//!
//! ```text
//!   submitted      taken up                                              completed
//!      |  queue       |  overhead  |  seek  | rotation | transfer | bus      |
//!      '--------------+------------+--------+----------+----------+----------'
//! ```

use crate::time::Duration;

/// How much of a command the buffer answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum BufferHit {
    /// Nothing: the medium did it.
    #[default]
    Miss,
    /// The first blocks were there, or on their way in.
    Partial,
    /// All of it.
    Full,
}

/// The phases of one command. Their sum is the time from submission to completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Account {
    /// Waiting in the drive's queue.
    pub queue: Duration,
    /// The electronics: command decoding, completion.
    pub overhead: Duration,
    /// The arm: seeks, head switches, settling, also those inside a transfer.
    pub seek: Duration,
    /// Waiting for the sector to come round.
    pub rotation: Duration,
    /// Sectors passing under the head.
    pub transfer: Duration,
    /// The host bus, where it was not hidden behind the medium.
    pub bus: Duration,
    /// What the buffer answered.
    pub hit: BufferHit,
}

impl Account {
    /// Submission to completion.
    pub fn total(&self) -> Duration {
        self.queue + self.service()
    }

    /// Taken up to completion.
    pub fn service(&self) -> Duration {
        self.overhead + self.head() + self.bus
    }

    /// The phases of two commands together; the buffer's part is the later one's.
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

    /// The part in which the arm and the medium worked.
    pub fn head(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}
