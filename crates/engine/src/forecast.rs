//! Where the head will be: what the belief says of the commands at the drive.
//!
//! ```text
//!             known                          expected
//!   ...=======|                               |
//!     A ended | B: seek, rotation, transfer   | the next command starts from here
//!             '-------------------------------'
//! ```

use block::{Direction, Duration, Extent, Instant};
use drive::geometry::Run;
use drive::{Position, Profile, Target};
use scheduler::{Sight, View};

/// The head between two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The track on which it is.
    pub position: Position,
    /// Since when, or from when on, nothing holds it.
    pub free: Instant,
    /// The direction of the command that held it last.
    pub previous: Direction,
}

/// How the blocks of a command lie on the medium.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The part on the first track.
    first: Run,
    /// From the end of the first part to the end of the last: the same at any time, because the
    /// head leaves the first part at the same angle.
    rest: Duration,
    /// The last track.
    last: Position,
    direction: Direction,
}

impl Head {
    /// A head of which nothing is known yet: at the beginning of the disk.
    pub const UNKNOWN: Head = Head {
        position: Position {
            cylinder: 0,
            head: 0,
        },
        free: Instant::ZERO,
        previous: Direction::Read,
    };

    /// The situation of a command that is given to the drive at `now`, with this head next.
    pub fn view(self, belief: &Profile, now: Instant) -> View<'_> {
        View {
            now,
            belief,
            head: self.position,
            ready: self.free,
            previous: self.previous,
        }
    }

    /// The head after a command that was given to the drive at `given`.
    pub fn after(self, belief: &Profile, given: Instant, route: &Route) -> Head {
        let view = self.view(belief, given);
        let start = view.start(route.direction);
        let zero_latency = match route.direction {
            Direction::Read => belief.buffer.zero_latency_read,
            Direction::Write => belief.buffer.zero_latency_write,
        };
        let pass = if zero_latency && route.rest.is_zero() {
            belief.pass_zero_latency(self.position, start, &route.first, route.direction)
        } else {
            belief.pass(self.position, start, &route.first, route.direction)
        };
        Head {
            position: route.last,
            free: start + pass.total() + route.rest,
            previous: route.direction,
        }
    }

    /// The expected head, now that the command has ended at `now`.
    ///
    /// A command that ends late has lost whole revolutions: its last sector passed under the head
    /// at the expected moment or that many revolutions later. What is left over is the bus and
    /// the electronics, which do not hold the head. One that ends early was answered by the
    /// buffer.
    pub fn ended(self, belief: &Profile, now: Instant) -> Head {
        let late = now.since(self.free).as_nanos();
        let period = belief.spindle.period().as_nanos();
        Head {
            free: Instant::from_nanos(self.free.min(now).as_nanos() + late / period * period),
            ..self
        }
    }
}

impl Route {
    /// The route of a command over `extent`; `None` if the belief does not map its blocks.
    pub fn new(belief: &Profile, extent: Extent, direction: Direction) -> Option<Route> {
        let mut runs = belief.geometry.runs(extent);
        let first = runs.next()?;
        let mut last = Target::from(&first).position;
        // Any moment will do at which the head has just passed the first part.
        let left = belief
            .spindle
            .wait(Instant::ZERO, first.start + first.sweep);
        let mut at = Instant::ZERO + left;
        for run in runs {
            at += belief.pass(last, at, &run, direction).total();
            last = Target::from(&run).position;
        }
        Some(Route {
            first,
            rest: at.since(Instant::ZERO + left),
            last,
            direction,
        })
    }

    /// The route, for a policy that looks at the head; `Some(None)` for one that does not.
    pub fn seen(
        sight: Sight,
        belief: &Profile,
        extent: Extent,
        direction: Direction,
    ) -> Option<Option<Route>> {
        match sight {
            Sight::Order => Some(None),
            Sight::Head => Route::new(belief, extent, direction).map(Some),
        }
    }

    /// Where it begins.
    pub fn target(&self) -> Target {
        Target::from(&self.first)
    }
}
