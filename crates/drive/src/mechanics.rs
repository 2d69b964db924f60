//! The times of arm and platter between two positions.
//!
//! ```text
//!  ready          on track          first sector            last sector's end
//!    |   seek         |    rotation      |      transfer          |
//!    '----------------+------------------+------------------------'
//! ```

use std::hint::select_unpredictable;

use block::{Direction, Duration, Instant};

use crate::angle::Angle;
use crate::geometry::{BlockPosition, TrackExtent};
use crate::profile::Profile;

/// The position of the arm, and the head in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The arm's cylinder.
    pub cylinder: u32,
    /// The head in use.
    pub head: u32,
}

/// The position of a command's first block, for policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekTarget {
    /// The track.
    pub position: Position,
    /// The beginning of its first sector.
    pub angle: Angle,
}

/// The positioning time to a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positioning {
    /// Seek, head switch, and settling.
    pub seek: Duration,
    /// Rotational latency.
    pub rotation: Duration,
}

/// One pass over a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Seek, head switch, and settling.
    pub seek: Duration,
    /// The wait for the first sector that is transferred.
    pub rotation: Duration,
    /// The time from there to the end of the last sector.
    pub transfer: Duration,
    /// The last part of the transfer, in which the beginning of the extent passes. Zero unless the
    /// access was zero-latency and the head arrived inside the extent.
    pub wrapped: Duration,
    /// The number of blocks in that beginning.
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
    /// Seek plus rotation.
    pub fn total(&self) -> Duration {
        self.seek + self.rotation
    }
}

impl Pass {
    /// Seek plus rotation plus transfer.
    pub fn total(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}

impl Profile {
    /// The time from one track to another: the longer of seek and head switch, plus a write's
    /// settling if anything moved.
    #[inline]
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
        // Which of the two comes next is not predictable.
        let is_write = direction == Direction::Write;
        let seeks = select_unpredictable(is_write, self.seek.write(), self.seek.read());
        let settle = select_unpredictable(is_write, self.write_settle_nanos, 0);
        seeks.time(distance).max(switch).adjusted(settle)
    }

    /// The positioning from a track, left at `ready`, to the target's first sector.
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

    /// The pass over an extent that begins with its first sector. The head leaves `from` at
    /// `ready`.
    #[inline]
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

    /// The pass over an extent that begins with the first sector to arrive (zero-latency access).
    ///
    /// A head that arrives inside the extent transfers the rest of it, and then the beginning: one
    /// revolution from the next sector boundary.
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

    /// A pass of a head that is on the track at `ready`.
    #[inline]
    pub(crate) fn pass_on_track(&self, ready: Instant, run: &TrackExtent) -> Pass {
        let (rotation, transfer) = self.spindle.sweep(ready, run.start, run.sweep);
        Pass {
            rotation,
            transfer,
            ..Pass::default()
        }
    }

    /// A zero-latency pass of a head that is on the track at `ready`.
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
            // Slipped sectors among them count as blocks: they are very rare.
            wrapped_blocks: (before as u32).min(run.blocks - 1),
        }
    }
}
