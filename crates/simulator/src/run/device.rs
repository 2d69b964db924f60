//! What a run needs of a drive.

use block::{Command, Instant, Outcome, Refused};
use drive::VirtualDrive;

/// Takes commands and says when each of them has ended.
pub trait Device {
    /// Gives the drive a command.
    ///
    /// # Errors
    /// If the drive holds as many commands as it can, or the extent is not on it.
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused>;

    /// The next command that has ended at `now` or before, in the order of their ends.
    fn poll(&mut self, now: Instant) -> Option<Outcome>;

    /// When `poll` should be called next; in the future once `poll` has answered `None`.
    fn next_wakeup(&self) -> Option<Instant>;
}

impl Device for VirtualDrive {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        VirtualDrive::submit(self, now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        VirtualDrive::poll(self, now)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        VirtualDrive::next_wakeup(self)
    }
}
