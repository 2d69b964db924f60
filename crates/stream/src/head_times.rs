//! What the head needs at worst: the numbers of a drive that guarantees are made of.
//!
//! Whoever knows the drive makes them from its profile; nothing here knows what a profile is.

use block::{Duration, Lba};

use crate::rate::Rate;

/// The worst times of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadTimes {
    /// One revolution: the longest wait for a sector.
    pub revolution: Duration,
    /// The electronics, for one command.
    pub overhead: Duration,
    /// What an access that begins on any sector costs besides: one change of track more than the
    /// rate of its zone contains.
    pub settle: Duration,
    /// The arm.
    pub seek: SeekBound,
    /// Cylinders between the streams' lowest and highest extent.
    pub span: u32,
    /// The farthest that a head anywhere on the disk can be from the nearer end of that span:
    /// half the span, or the way to it from the farther edge of the disk.
    pub farthest: u32,
    /// The longest command of others that cannot be stopped once it has begun: its transfer.
    pub foreground: Duration,
    /// What may befall one round besides: a recalibration, a slice of the media scan, retries.
    pub stall: Duration,
}

/// Where an extent is: how fast its slowest blocks pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// What sequential reading or writing keeps up, changes of track included.
    pub sustained: Rate,
    /// Whole tracks, if the drive takes them up at any sector (zero-latency access).
    pub tracks: Option<WholeTracks>,
}

/// Whole tracks of a zone, taken up at any sector: no wait for their first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeTracks {
    /// Bytes on the largest one.
    pub bytes: u64,
    /// One of them at worst, or a part of one: the change to it included.
    pub time: Duration,
    /// What reading or writing them keeps up on the slowest ones.
    pub sustained: Rate,
}

/// Where blocks are on the disk, as far as rounds need to know.
pub trait Tracks {
    /// The cylinder of a block: rounds sweep in their order.
    fn cylinder(&self, lba: Lba) -> u32;

    /// The first block of the track of `lba`.
    fn track_start(&self, lba: Lba) -> Lba;

    /// The first block after `lba` that is on another track.
    fn track_end(&self, lba: Lba) -> Lba;
}

/// The least concave curve above a seek curve: the arm takes at most so long.
///
/// ```text
///   time |            ____----      a sum of n seeks over a distance d in all is at most
///        |      __---'   .          n times the value at d / n
///        |   ,-'   .-.  .
///        | ,'.''-'    ''            points as measured lie on it or below it
///        +---------------- distance
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekBound {
    /// (distance in cylinders, nanoseconds), ascending, ever less steep, never falling.
    corners: Vec<(u32, u64)>,
}

/// There is nothing to bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a seek curve without points: expected at least one (distance, time)")]
pub struct NoPoints;

impl Zone {
    /// The slower of two, in each respect.
    pub fn and(self, other: Zone) -> Zone {
        let tracks = self.tracks.zip(other.tracks);
        Zone {
            sustained: self.sustained.min(other.sustained),
            tracks: tracks.map(|(a, b)| WholeTracks {
                bytes: a.bytes.max(b.bytes),
                time: a.time.max(b.time),
                sustained: a.sustained.min(b.sustained),
            }),
        }
    }
}

impl HeadTimes {
    /// The longest wait for others: a full seek, a revolution, and their longest command.
    pub fn foreground_worst(&self) -> Duration {
        self.seek.longest() + self.revolution + self.overhead + self.foreground
    }

    /// All seeks of a sorted sweep over `accesses` of them, from a head that is anywhere: to the
    /// nearer end, and then over the span. It is the specification's n seek(1.5 span / n) before
    /// its last step.
    ///
    /// With three accesses or more, a narrow group at the far end of the span costs less than a
    /// wide one: what the first seek is longer, the others are shorter, and short ones rise
    /// faster. One or two may both be far away.
    pub fn sweep(&self, accesses: u64) -> Duration {
        let Some(between) = accesses.checked_sub(1) else {
            return Duration::ZERO;
        };
        let first = match between {
            0 => return self.seek.longest(),
            1 => self.seek.longest(),
            _ => self.seek.at(self.farthest),
        };
        let step = u64::from(self.span).div_ceil(between);
        first + self.seek.at(step.min(u64::from(u32::MAX)) as u32) * between
    }

    /// One access without its seek and its transfer: it begins on any sector.
    pub fn access(&self) -> Duration {
        self.revolution + self.overhead + self.settle
    }

    /// The same, if it is whole tracks that are taken up at any sector: changes of track are in
    /// their time.
    pub fn aligned_access(&self) -> Duration {
        self.overhead
    }
}

impl SeekBound {
    /// The bound of (distance in cylinders, time) points; distance 0 is another head of the same
    /// cylinder. Between points the arm is taken to be as long as the line through them.
    ///
    /// # Errors
    /// If there are none.
    pub fn over(points: impl IntoIterator<Item = (u32, Duration)>) -> Result<Self, NoPoints> {
        let mut points: Vec<(u32, u64)> = points
            .into_iter()
            .map(|(distance, time)| (distance, time.as_nanos()))
            .collect();
        points.sort_unstable();
        // Below the first point it is the first.
        let (_, shortest) = *points.first().ok_or(NoPoints)?;
        points.insert(0, (0, shortest));
        let mut corners: Vec<(u32, u64)> = Vec::new();
        for point in points {
            // A longer way is never bounded by less, and of one distance the longest time counts.
            let highest = corners.last().map_or(0, |corner| corner.1);
            let point = (point.0, point.1.max(highest));
            corners.pop_if(|corner| corner.0 == point.0);
            while let [.., before, last] = corners[..] {
                if turns_down(before, last, point) {
                    break;
                }
                corners.pop();
            }
            corners.push(point);
        }
        Ok(SeekBound { corners })
    }

    /// At most how long the arm takes over `distance` cylinders.
    pub fn at(&self, distance: u32) -> Duration {
        let above = self.corners.partition_point(|corner| corner.0 < distance);
        let nanos = match (above, self.corners.get(above)) {
            (0, Some(first)) => first.1,
            (_, None) => self.corners[self.corners.len() - 1].1,
            (above, Some(&(far, longer))) => {
                let (near, shorter) = self.corners[above - 1];
                let rise = u128::from(longer - shorter) * u128::from(distance - near);
                shorter + rise.div_ceil(u128::from(far - near)) as u64
            }
        };
        Duration::from_nanos(nanos)
    }

    /// The longest seek.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.corners[self.corners.len() - 1].1)
    }
}

/// Whether the curve is less steep after `b` than before.
fn turns_down(a: (u32, u64), b: (u32, u64), c: (u32, u64)) -> bool {
    let before = u128::from(b.1 - a.1) * u128::from(c.0 - b.0);
    let after = u128::from(c.1 - b.1) * u128::from(b.0 - a.0);
    before > after
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn times(seek: SeekBound, span: u32) -> HeadTimes {
        HeadTimes {
            revolution: micros(8_333),
            overhead: micros(100),
            settle: Duration::ZERO,
            seek,
            span,
            farthest: span.div_ceil(2),
            foreground: micros(1_057),
            stall: Duration::ZERO,
        }
    }

    #[test]
    fn without_points_there_is_no_bound() {
        assert_eq!(SeekBound::over([]), Err(NoPoints));
    }

    proptest! {
        #[test]
        fn the_bound_is_above_every_point_and_concave(
            points in prop::collection::vec((0u32..2_000, 0u64..20_000), 1..40),
        ) {
            let given = points.iter().map(|&(d, t)| (d, micros(t)));
            let bound = SeekBound::over(given).expect("there are points");
            for &(distance, time) in &points {
                prop_assert!(bound.at(distance) >= micros(time));
            }
            // Rounded up to whole nanoseconds: one of them may be too much.
            for d in 1..2_000 {
                let middle = bound.at(d).as_nanos() * 2 + 2;
                prop_assert!(middle >= bound.at(d - 1).as_nanos() + bound.at(d + 1).as_nanos());
                prop_assert!(bound.at(d) >= bound.at(d - 1));
            }
        }

        /// The naive oracle: serve the nearer end first, then all in order.
        #[test]
        fn a_sweep_from_anywhere_takes_no_longer_than_the_closed_form(
            points in prop::collection::vec((0u32..1_000, 0u64..20_000), 1..20),
            mut places in prop::collection::vec(0u32..1_000, 1..30),
            head in 0u32..1_000,
        ) {
            let bound = SeekBound::over(points.iter().map(|&(d, t)| (d, micros(t)))).expect("points");
            let times = times(bound, 999);
            places.sort_unstable();
            let last = places[places.len() - 1];
            if head.abs_diff(last) < head.abs_diff(places[0]) {
                places.reverse();
            }
            let mut at = head;
            let mut sum = Duration::ZERO;
            for &place in &places {
                sum += times.seek.at(at.abs_diff(place));
                at = place;
            }
            let n = places.len() as u64;
            prop_assert!(times.sweep(n) + Duration::from_nanos(n) >= sum, "{places:?} from {head}");
            let specified = times.seek.at((1_500 / n + 2) as u32) * n;
            prop_assert!(n < 3 || times.sweep(n) <= specified + Duration::from_nanos(n));
        }
    }
}
