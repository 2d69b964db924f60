//! What the engine of a drive tells its mirror.

use block::{Direction, Extent, Instant};
use scheduler::Sight;

use super::ArmEngine;

impl ArmEngine {
    /// The moment of the last input.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// When a request that is given to the idle drive at `now` ends, as is believed; `None` if positions are of no use.
    pub(crate) fn expected_end(
        &self,
        now: Instant,
        extent: Extent,
        direction: Direction,
    ) -> Option<Instant> {
        if self.belief.sight(&self.ordering) == Sight::Order {
            return None;
        }
        let route = self.belief.route_of(extent, direction)?;
        let course = self.belief.head.course(self.belief.profile(), now, &route);
        Some(course.head.free)
    }
}
