//! The legs of a mirror: what the engine uses them for follows what is recorded on them.

use block::{Direction, Finished, Status};
use engine::{Flushed, LegFailure, LegState, LegWork, Side};
use tracing::warn;

use super::Disk;
use crate::status;

impl Disk {
    /// Lets the engine use the legs as the mirror says.
    pub(super) fn follow_legs(&mut self) {
        let Some(mirror) = self.back_end.mirror() else {
            return;
        };
        while let Some(LegFailure { leg, work, .. }) = self.engine.poll_leg_failure() {
            // A failed write is told with the leg's end.
            if let LegWork::Request(request) = work
                && request.direction == Direction::Read
            {
                let (block, blocks) = (request.extent.start().0, request.extent.length().0);
                warn!(
                    ?leg,
                    block, blocks, "a leg fails a read, and the other one serves it"
                );
            }
        }
        for leg in Side::ALL {
            let (wanted, used) = (mirror.use_of(leg), self.engine.leg(leg));
            // A leg is out before it is filled: what waits for it is withdrawn.
            let steps: &[LegState] = match (used, wanted) {
                (LegState::InSync, LegState::Filling) => &[LegState::Out, LegState::Filling],
                (used, wanted) if used == wanted => &[],
                (_, LegState::InSync) => &[LegState::InSync],
                (_, LegState::Filling) => &[LegState::Filling],
                (_, LegState::Out) => &[LegState::Out],
            };
            for &state in steps {
                if let Err(kept) = self.engine.set_leg(self.now, leg, state) {
                    warn!(?leg, ?state, %kept, "the engine keeps a leg");
                }
            }
            if self.engine.leg(leg) == LegState::Filling {
                mirror.engage(self.now, leg);
            }
        }
    }

    /// The next request that has ended.
    pub(crate) fn poll_finished(&mut self) -> Option<Finished> {
        let mut finished = self.engine.poll_finished()?;
        if let Some(mirror) = self.back_end.mirror() {
            mirror.finished(self.now, finished.request.id);
            if mirror.is_broken() && finished.request.direction == Direction::Write {
                let at = finished.request.extent.start();
                finished.status = Status::MediumError { at };
            }
        }
        Some(finished)
    }

    /// The next flush that has ended.
    pub(crate) fn poll_flushed(&mut self) -> Option<Flushed> {
        let mut flushed = self.engine.poll_flushed()?;
        if self
            .back_end
            .mirror()
            .is_some_and(|mirror| mirror.is_broken())
        {
            flushed.status = Status::TimedOut;
        }
        Some(flushed)
    }

    /// The condition of the legs, if the drive is a mirror.
    pub(crate) fn condition(&self) -> Option<status::Mirror> {
        self.back_end.condition()
    }

    /// Whether the back end has work of its own that has to end.
    pub(crate) fn is_busy(&self) -> bool {
        self.back_end.is_busy()
    }

    /// The service ends: nothing more is copied.
    pub(crate) fn stop_filling(&mut self) {
        if let Some(mirror) = self.back_end.mirror() {
            mirror.close();
        }
    }

    /// All writes were flushed, and the service ends.
    pub(crate) fn sweep_marks(&mut self) {
        if let Some(mirror) = self.back_end.mirror() {
            mirror.sweep();
        }
    }
}
