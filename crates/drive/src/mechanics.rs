//! How long the arm and the platter take from one place to another.
//!
//! ```text
//!  ready          on track          first sector            last sector's end
//!    |   seek         |    rotation      |      transfer          |
//!    '----------------+------------------+------------------------'
//! ```

use block::{Direction, Duration, Instant};

use crate::angle::Angle;
use crate::geometry::{BlockPosition, TrackExtent};
use crate::profile::Profile;

/// Where the arm is and which head is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The arm's cylinder.
    pub cylinder: u32,
    /// The head in use.
    pub head: u32,
}

/// Where a command begins on the medium: what a policy needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekTarget {
    /// The track.
    pub position: Position,
    /// Where its first sector begins.
    pub angle: Angle,
}

/// The way to a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positioning {
    /// Arm, head switch, settling.
    pub seek: Duration,
    /// Waiting for the sector.
    pub rotation: Duration,
}

/// One run on the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Arm, head switch, settling.
    pub seek: Duration,
    /// Waiting for the first sector that is taken.
    pub rotation: Duration,
    /// From there to the end of the last sector that is taken.
    pub transfer: Duration,
    /// The part of the transfer, at its end, in which the run's beginning comes round; nothing
    /// unless the access was zero-latency and the head arrived inside the run.
    pub wrapped: Duration,
    /// How many blocks that beginning has.
    pub wrapped_blocks: u32,
}

impl From<&BlockPosition> for SeekTarget {
    fn from(place: &BlockPosition) -> Self {
        SeekTarget {
            position: Position {
                cylinder: place.cylinder,
                head: place.head,
            },
            angle: place.angle,
        }
    }
}

impl From<&TrackExtent> for SeekTarget {
    fn from(run: &TrackExtent) -> Self {
        SeekTarget {
            position: Position {
                cylinder: run.cylinder,
                head: run.head,
            },
            angle: run.start,
        }
    }
}

impl Positioning {
    /// Seek and rotation together.
    pub fn total(&self) -> Duration {
        self.seek + self.rotation
    }
}

impl Pass {
    /// All three phases.
    pub fn total(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}

impl Profile {
    /// Arm and head from one track to another: the longer of the seek and the head switch, and
    /// the settling of a write if anything moved.
    pub fn reposition(&self, from: Position, to: Position, direction: Direction) -> Duration {
        if from == to {
            return Duration::ZERO;
        }
        let distance = from.cylinder.abs_diff(to.cylinder);
        let switch = if from.head == to.head {
            Duration::ZERO
        } else {
            self.head_switch
        };
        match direction {
            Direction::Read => self.seek.read().time(distance).max(switch),
            Direction::Write => self
                .seek
                .write()
                .time(distance)
                .max(switch)
                .adjusted(self.write_settle_nanos),
        }
    }

    /// The way from a track that is left at `ready` to the target's first sector.
    pub fn positioning(
        &self,
        from: Position,
        ready: Instant,
        to: &SeekTarget,
        direction: Direction,
    ) -> Positioning {
        let seek = self.reposition(from, to.position, direction);
        Positioning {
            seek,
            rotation: self.spindle.wait(ready + seek, to.angle),
        }
    }

    /// Reads or writes one run, leaving `from` at `ready`, beginning with its first sector.
    pub fn pass(
        &self,
        from: Position,
        ready: Instant,
        run: &TrackExtent,
        direction: Direction,
    ) -> Pass {
        let seek = self.reposition(from, SeekTarget::from(run).position, direction);
        Pass {
            seek,
            ..self.pass_on_track(ready + seek, run)
        }
    }

    /// The same, beginning with whichever of its sectors comes first (zero-latency access).
    ///
    /// A head that arrives inside the run takes the rest of it, and the beginning when it comes
    /// round: one revolution from the next sector boundary.
    pub fn pass_zero_latency(
        &self,
        from: Position,
        ready: Instant,
        run: &TrackExtent,
        direction: Direction,
    ) -> Pass {
        let seek = self.reposition(from, SeekTarget::from(run).position, direction);
        Pass {
            seek,
            ..self.pass_on_track_zero_latency(ready + seek, run)
        }
    }

    /// A pass of a head that is on the run's track at `ready`.
    pub(crate) fn pass_on_track(&self, ready: Instant, run: &TrackExtent) -> Pass {
        let (rotation, transfer) = self.spindle.sweep(ready, run.start, run.sweep);
        Pass {
            rotation,
            transfer,
            ..Pass::default()
        }
    }

    /// The same, beginning with whichever sector comes first.
    pub(crate) fn pass_on_track_zero_latency(&self, ready: Instant, run: &TrackExtent) -> Pass {
        let spindle = &self.spindle;
        let there = spindle.angle_at(ready);
        let inside = (there - run.start).raw();
        let width = run.width.raw();
        let last_begins = run.sweep.raw().saturating_sub(width);
        if spindle.is_just_past(there, run.start) || inside > last_begins || width == 0 {
            return self.pass_on_track(ready, run);
        }
        let into_sector = Angle::from_raw(inside % width);
        let (before, to_boundary) = if spindle.is_just_past(into_sector, Angle::ZERO) {
            (inside / width, 0)
        } else {
            (inside / width + 1, width - into_sector.raw())
        };
        Pass {
            seek: Duration::ZERO,
            rotation: spindle.time_of(Angle::from_raw(to_boundary)),
            transfer: spindle.period(),
            wrapped: spindle.time_of(run.width.times(before)),
            // Slipped sectors among them are counted as blocks: there is nearly never one.
            wrapped_blocks: (before as u32).min(run.blocks - 1),
        }
    }
}
