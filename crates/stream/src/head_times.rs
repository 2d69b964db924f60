//! What the head needs at worst: the numbers of a drive that guarantees are made of.
//!
//! Whoever knows the drive makes them from its profile; nothing here knows what a profile is.

use block::{Direction, Duration, Lba};

use crate::rate::Rate;

/// The worst times of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadTimes {
    /// One revolution: the longest wait for a sector.
    pub revolution: Duration,
    /// What a read costs besides.
    pub read: AccessTimes,
    /// What a write costs besides.
    pub write: AccessTimes,
    /// The arm on its way to a read; what it takes longer to a write is in `write`.
    pub seek: SeekBound,
    /// Cylinders of the disk: a head is on one of them.
    pub cylinders: u32,
    /// By how many cylinders later blocks may be below earlier ones: of a serpentine, its width.
    pub wander: u32,
    /// The least change that a whole track's time contains: an access has one of them too many.
    pub change: Duration,
    /// The longest command of others that cannot be stopped once it has begun: its transfer, changes
    /// of track included.
    pub foreground: Duration,
    /// What may befall one round besides: a recalibration, a slice of the media scan, retries.
    pub stall: Duration,
}

/// What an access of one direction costs besides seek, revolution and transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessTimes {
    /// The electronics, and what the arm takes longer than [`HeadTimes::seek`] says.
    pub overhead: Duration,
    /// What an access that begins on any sector costs besides: one change of track more than the
    /// rate of its zone contains.
    pub settle: Duration,
}

/// Where an extent is, and how fast its slowest blocks pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// What sequential reading or writing keeps up, changes of track included.
    pub sustained: Rate,
    /// Whole tracks, if the drive takes them up at any sector (zero-latency access).
    pub tracks: Option<WholeTracks>,
    /// Where its ends are.
    pub cylinders: Cylinders,
    /// The rate at which the arm goes on by one cylinder in a second at most: the bytes of its least
    /// track.
    pub stride: Rate,
}

/// From a lowest to a highest cylinder, both of them included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cylinders {
    /// The lowest.
    pub low: u32,
    /// The highest; not below `low`.
    pub high: u32,
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
            cylinders: self.cylinders.and(other.cylinders),
            stride: self.stride.min(other.stride),
        }
    }
}

impl Cylinders {
    /// The least that has both in it.
    pub fn and(self, other: Cylinders) -> Cylinders {
        Cylinders {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// With so many more on both sides, of a disk of `all`.
    pub fn widened(self, by: u32, all: u32) -> Cylinders {
        let last = all.saturating_sub(1).max(self.high);
        Cylinders {
            low: self.low.saturating_sub(by),
            high: self.high.saturating_add(by).min(last),
        }
    }

    /// From the lowest to the highest.
    fn span(self) -> u32 {
        self.high - self.low
    }
}

impl HeadTimes {
    /// The longest wait for others: a full seek, a revolution, and their longest command.
    pub fn foreground_worst(&self) -> Duration {
        let overhead = self.read.overhead.max(self.write.overhead);
        self.seek.longest() + self.revolution + overhead + self.foreground
    }

    /// All seeks of a sorted sweep over `accesses` that begin inside `place`, from a head that is
    /// anywhere on the disk: to the nearer end, and then over the span. It is the specification's
    /// n seek(1.5 span / n) before its last step. From where they begin to where they end, they go
    /// over `strays` cylinders in all: so much longer the ways between them may be.
    ///
    /// ```text
    ///   |          |<---- place ---->|                 |      n accesses, from a to b
    ///   0          low   a     b    high       cylinders
    ///   head ----------->|-----| n - 1 steps
    /// ```
    ///
    /// The first seek is taken as F = half the span, or the way to the place from the farther edge
    /// of the disk, and the others as equal steps over the whole span and the strays, S. With three or more
    /// that is a bound: if the first seek is y longer than F, the accesses are on y less of the
    /// span at least, so that n - 1 concave steps lose (n - 1) seek(S / (n - 1)) - (n - 1)
    /// seek((S - y) / (n - 1)), which is not less than y times the slope at S / (n - 1), and S / (n - 1)
    /// is not above F, where the slope that the first seek gains is not higher. One or two may both be far
    /// away.
    pub fn sweep(&self, accesses: u64, place: Cylinders, strays: u64) -> Duration {
        let way = u64::from(place.span()).saturating_add(strays);
        let way = |steps: u64| way.div_ceil(steps).min(u64::from(u32::MAX)) as u32;
        let between = match accesses {
            0 => return Duration::ZERO,
            1 | 2 => return self.seek.longest() + self.seek.at(way(1)) * (accesses - 1),
            _ => accesses - 1,
        };
        let last = self.cylinders.saturating_sub(1);
        let edges = place.low.max(last.saturating_sub(place.high));
        let farthest = place.span().div_ceil(2).max(edges);
        self.seek.at(farthest) + self.seek.at(way(between)) * between
    }

    /// The seeks of a sweep over `accesses`, or fewer, that are part of many: never below
    /// [`HeadTimes::sweep`] of so many or fewer, and concave. Each of them strays by so many
    /// cylinders.
    pub fn sweeps(&self, accesses: u64, place: Cylinders, strays: u64) -> Duration {
        self.seek.longest() + self.seek.at(step(place, accesses, strays)) * accesses
    }

    /// What [`HeadTimes::sweeps`] rises at most for one access more, of as many sweeps as there are:
    /// its derivative.
    pub fn one_more(&self, accesses: u64, place: Cylinders, strays: u64) -> Duration {
        let step = step(place, accesses, strays);
        let apart = u64::from(place.span()) / accesses.max(1);
        let flat = Duration::from_nanos(apart.saturating_mul(self.seek.least_rise(step)));
        self.seek.at(step).saturating_sub(flat)
    }

    /// By how many nanoseconds [`HeadTimes::sweep`] rises at most for one cylinder more of strays.
    pub fn sweep_rise(&self, accesses: u64, place: Cylinders, strays: u64) -> u64 {
        let way = u64::from(place.span()).saturating_add(strays);
        let steps = accesses.saturating_sub(1).max(1);
        self.seek
            .rise((way / steps).min(u64::from(u32::MAX)) as u32)
    }

    /// One access without its seek and its transfer: it begins on any sector.
    pub fn access(&self, direction: Direction) -> Duration {
        let AccessTimes { overhead, settle } = self.of(direction);
        self.revolution + overhead + settle
    }

    /// The same, if it is `tracks`, whole or not, that are taken up at any sector, each in its time:
    /// the change to the first one is the seek.
    pub fn aligned_access(&self, direction: Direction, tracks: Duration) -> Duration {
        let change = self.change.min(self.seek.at(0));
        self.of(direction).overhead + tracks.saturating_sub(change)
    }

    fn of(&self, direction: Direction) -> AccessTimes {
        match direction {
            Direction::Read => self.read,
            Direction::Write => self.write,
        }
    }
}

/// From one to the next of accesses that are evenly spread.
fn step(place: Cylinders, accesses: u64, strays: u64) -> u32 {
    let step = u64::from(place.span()).div_ceil(accesses.max(1));
    step.saturating_add(strays).min(u64::from(u32::MAX)) as u32
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

    /// By how many nanoseconds it rises from one cylinder to the next, at `distance` and beyond.
    pub fn rise(&self, distance: u32) -> u64 {
        let beyond = self.line_beyond(distance);
        beyond.map_or(0, |(way, rise)| rise.div_ceil(way))
    }

    /// The same, rounded down.
    pub fn least_rise(&self, distance: u32) -> u64 {
        let beyond = self.line_beyond(distance);
        beyond.map_or(0, |(way, rise)| rise / way)
    }

    /// How long the line is that goes on from `distance`, and by how many nanoseconds it rises.
    fn line_beyond(&self, distance: u32) -> Option<(u64, u64)> {
        let above = self.corners.partition_point(|corner| corner.0 <= distance);
        let (near, shorter) = self.corners[above.checked_sub(1)?];
        let (far, longer) = *self.corners.get(above)?;
        Some(((far - near).into(), longer - shorter))
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

    const CYLINDERS: u32 = 1_000;

    fn times(seek: SeekBound) -> HeadTimes {
        let access = AccessTimes {
            overhead: micros(100),
            settle: Duration::ZERO,
        };
        HeadTimes {
            revolution: micros(8_333),
            read: access,
            write: access,
            seek,
            cylinders: CYLINDERS,
            wander: 0,
            change: Duration::ZERO,
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
            places in prop::collection::vec((0..CYLINDERS, 0u32..20), 1..30),
            head in 0..CYLINDERS,
            ends in (0..CYLINDERS, 0..CYLINDERS),
        ) {
            let bound = SeekBound::over(points.iter().map(|&(d, t)| (d, micros(t)))).expect("points");
            let times = times(bound);
            let place = Cylinders { low: ends.0.min(ends.1), high: ends.0.max(ends.1) };
            let inside = |at: u32| place.low + at % (place.span() + 1);
            let mut places: Vec<(u32, u32)> = places
                .iter()
                .map(|&(at, length)| (inside(at), inside(at).saturating_add_signed(length as i32 - 10)))
                .collect();
            places.sort_unstable();
            let last = places[places.len() - 1];
            if head.abs_diff(last.0) < head.abs_diff(places[0].0) {
                places.reverse();
            }
            let mut at = head;
            let mut sum = Duration::ZERO;
            for &(first, last) in &places {
                sum += times.seek.at(at.abs_diff(first));
                at = last;
            }
            let n = places.len() as u64;
            let strays = places.iter().map(|&(first, last)| u64::from(first.abs_diff(last))).sum();
            let sweep = times.sweep(n, place, strays);
            prop_assert!(sweep + Duration::from_nanos(n) >= sum, "{places:?} from {head}");
        }

        /// Over the whole disk it is not more than the specification's.
        #[test]
        fn a_sweep_over_the_disk_takes_no_longer_than_the_specification_says(
            points in prop::collection::vec((0u32..1_000, 0u64..20_000), 1..20),
            n in 3u64..100,
        ) {
            let bound = SeekBound::over(points.iter().map(|&(d, t)| (d, micros(t)))).expect("points");
            let times = times(bound);
            let whole = Cylinders { low: 0, high: CYLINDERS - 1 };
            let specified = times.seek.at((1_500 / n + 2) as u32) * n;
            prop_assert!(times.sweep(n, whole, 0) <= specified + Duration::from_nanos(n));
        }
    }
}
