//! A disk that does not exist: given commands, it says when each of them ends.

use std::sync::Arc;

use block::{Command, Instant, Outcome, Refused};

use crate::profile::Profile;

/// A simulated drive. Its profile is the truth; nobody outside may look at it to schedule.
#[derive(Clone, Debug)]
pub struct VirtualDrive {
    truth: Arc<Profile>,
}

impl VirtualDrive {
    /// A drive that behaves exactly as `truth` says.
    pub fn new(truth: Arc<Profile>) -> Self {
        VirtualDrive { truth }
    }

    /// The truth.
    pub fn truth(&self) -> &Profile {
        &self.truth
    }

    /// Gives the drive a command. It holds at most `queue.depth` of them.
    ///
    /// # Errors
    /// If the drive holds as many commands as it can, or the extent is not on it.
    pub fn submit(&mut self, _now: Instant, _command: Command) -> Result<(), Refused> {
        Err(Refused::Full { limit: 0 })
    }

    /// The next command that has ended at `now` or before, in the order of their ends.
    pub fn poll(&mut self, _now: Instant) -> Option<Outcome> {
        None
    }

    /// When `poll` should be called next; in the future once `poll` has answered `None`.
    pub fn next_wakeup(&self) -> Option<Instant> {
        None
    }
}
