//! What a driver needs to put another engine in the place of one that serves.

use block::Instant;

use super::ArmEngine;

impl ArmEngine {
    /// The engine, as one that begins at `now`.
    pub(crate) fn starting_at(mut self, now: Instant) -> Self {
        self.advance(now);
        self
    }

    /// Whether nothing is held: no request, no flush, and no command at the drive.
    pub(crate) fn is_idle(&self) -> bool {
        self.intake.slots.held() == 0
            && self.intake.flushes.held() == 0
            && self.dispatch.at_drive() == 0
    }
}
