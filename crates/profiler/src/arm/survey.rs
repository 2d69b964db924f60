//! Pairs of tracks all over the disk, and the times between them.

use block::{Direction, Extent, Lba};
use drive::geometry::Track;
use drive::{Angle, Geometry};

use crate::arm::Effort;
use crate::arm::reposition::{Angles, Trips};
use crate::arm::threshold::{MeasuredTime, Scatter, Threshold};
use crate::arm::track_blocks::TrackBlocks;
use crate::prober::Prober;

/// The relative position of two tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackDistance {
    /// The same track.
    None,
    /// The same track, the drive's last one: no look-ahead leaves it.
    Last,
    /// Two surfaces of a cylinder.
    Surfaces,
    /// One surface, at this distance in cylinders.
    Cylinders(u32),
}

/// The subject of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub gap: TrackDistance,
    pub direction: Direction,
    /// Answers near the threshold for each direction.
    pub samples: u32,
}

/// An estimate and its possible error, in nanoseconds.
pub(super) type Near = Option<(f64, f64)>;

/// The direction to the higher cylinder, and the one back.
pub(super) type ThereAndBack<T> = [T; 2];

/// Measures on a disk with a known layout.
pub(super) struct Survey<'a> {
    pub trips: Trips<'a>,
    pub geometry: &'a Geometry,
    pub effort: Effort,
    /// A revolution, in nanoseconds.
    pub period: f64,
    /// The scatter of seeks of reads.
    pub scatter: Scatter,
    /// Blocks with a known, not guessed, layout.
    known: Vec<Extent>,
    /// The cylinders of those extents, from and to, if they are few.
    ranges: Vec<(u32, u32)>,
    /// Counts choices of positions, so that they differ.
    places: u64,
}

impl Angles for Geometry {
    fn begin(&self, on: &TrackBlocks, lba: Lba) -> Option<Angle> {
        let (first, place) = (self.locate(on.first)?, self.locate(lba)?);
        let here = first.cylinder == place.cylinder && first.head == place.head;
        here.then_some(place.angle)
    }
}

/// Number of round trips at one position. A choice: reaching a position costs as much as one of
/// them.
const PLACE: u32 = 3;

/// Number of cylinders to try near one without a good track: spare cylinders lie together in
/// dozens.
const NEARBY: u32 = 256;

/// Maximum number of extents with separate treatment: more lie so close that every distance occurs
/// between them. A choice: a little more than twice the positions at which a large drive is
/// explored.
const MOST_RANGES: usize = 64;

/// So many tracks are looked at for one with the shortest gap behind its last block. A choice: drives have up to 20 surfaces,
/// and some have spare sectors on all of them but one.
const GAPS: u32 = 32;

/// An overhead that is so many times as long as the way of a head that has left its track explains is told all the same. A
/// choice: such ones were up to 1.4 times as long.
const UNEXPLAINED: f64 = 2.0;

/// Factor of the samples for the overhead, which is subtracted from all others. A choice.
pub(super) const BASE: u32 = 4;

/// Maximum number of measurements until two agree.
const REPETITIONS: u32 = 4;

/// Maximum difference of agreeing measurements, in deviations. A choice.
const AGREE: f64 = 4.0;

/// Minimum assumed deviation, in nanoseconds: few answers determine it badly.
const LEAST_DEVIATION: f64 = 30e3;

/// The ratio of the deviations of a mean of yes-or-no answers and of a mean of as many times: the
/// root of pi / 2 (probit at the threshold).
const ANSWERS: f64 = 1.2533;

impl<'a> Survey<'a> {
    pub fn new(prober: &'a Prober, geometry: &'a Geometry, effort: Effort) -> Option<Self> {
        let (clock, known) = prober.findings(|findings| {
            let layout = findings.layout.as_ref();
            let known = layout.map_or(Vec::new(), |layout| layout.known.clone());
            (findings.clock, known)
        });
        let clock = clock?;
        let cylinder = |lba: Lba| geometry.locate(lba).map(|place| place.cylinder);
        let range = |extent: &Extent| {
            let (first, last) = (cylinder(extent.start())?, cylinder(extent.last())?);
            Some((first.min(last), first.max(last)))
        };
        let ranges = match known.len() {
            2..=MOST_RANGES => known.iter().filter_map(range).collect(),
            _ => Vec::new(),
        };
        Some(Survey {
            ranges,
            known,
            trips: Trips::new(prober, geometry),
            geometry,
            effort,
            period: clock.period(),
            scatter: Scatter::default(),
            places: 0,
        })
    }

    /// A number below `of`, different each time and evenly distributed.
    pub fn spread(&mut self, of: u32) -> u32 {
        self.places += 1;
        let golden = self.places.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(golden) * u128::from(of)) >> 64) as u32
    }

    /// The longest distance between two tracks of a surface.
    pub fn stroke(&self) -> Option<u32> {
        let cylinders = self.geometry.cylinders();
        let of = |head: u32| {
            let good = |&cylinder: &u32| good_track(self.geometry, cylinder, head).is_some();
            let (first, last) = ((0..cylinders).find(good)?, (0..cylinders).rfind(good)?);
            (last > first).then_some(last - first)
        };
        (0..self.geometry.surfaces()).filter_map(of).max()
    }

    /// Two tracks at this relative position.
    pub fn pair(&mut self, gap: TrackDistance) -> Option<ThereAndBack<TrackBlocks>> {
        match gap {
            TrackDistance::None if self.trips.needs_fresh_tracks() => {
                let track = self.fullest_track()?;
                Some([track, track])
            }
            TrackDistance::None => self.spread_pair(0, 0),
            TrackDistance::Last => {
                let track = self.last_track()?;
                Some([track, track])
            }
            TrackDistance::Surfaces => self.spread_pair(0, 1),
            TrackDistance::Cylinders(over) => self.spread_pair(over, 0),
        }
    }

    /// Of some tracks the one with the shortest gap behind its last block.
    fn fullest_track(&mut self) -> Option<TrackBlocks> {
        let tracks: Vec<TrackBlocks> = (0..GAPS)
            .filter_map(|_| self.spread_pair(0, 0))
            .map(|[track, _]| track)
            .collect();
        tracks
            .into_iter()
            .min_by(|one, other| one.gap().total_cmp(&other.gap()))
    }

    /// The drive's last track, if it is known.
    fn last_track(&self) -> Option<TrackBlocks> {
        let last = Lba(self.geometry.sectors().0.checked_sub(1)?);
        let place = self.geometry.locate(last)?;
        let track = good_track(self.geometry, place.cylinder, place.head)?;
        let is_last = track.first.0 + u64::from(track.blocks) > last.0;
        (is_last && self.knows(&track)).then_some(track)
    }

    /// The time between blocks of one track, in nanoseconds, and whether it is told. By reads alone the block behind the
    /// last one is the track's first, and the head has left the track if its look-ahead had the time for it: then the time
    /// is longer than it is.
    pub async fn overhead(&mut self, direction: Direction) -> Option<(f64, bool)> {
        let subject = |gap| Subject {
            gap,
            direction,
            samples: self.effort.samples * BASE,
        };
        let (usual, last) = (subject(TrackDistance::None), subject(TrackDistance::Last));
        let usual = middle(&self.agreed(usual, [None; 2]).await?);
        let gap = match self.trips.needs_fresh_tracks() {
            true => self.fullest_track()?.gap() * self.period,
            false => 0.0,
        };
        if gap == 0.0 {
            return Some((usual, true));
        }
        let explained = gap + self.trips.longest_delay();
        Some(match self.agreed(last, [None; 2]).await {
            Some(last) => (usual.min(middle(&last)), true),
            None => (usual, usual > explained * UNEXPLAINED),
        })
    }

    /// Two tracks of a cylinder or of cylinders at a distance, on surfaces so many apart.
    fn spread_pair(&mut self, over: u32, heads: u32) -> Option<ThereAndBack<TrackBlocks>> {
        let (surfaces, cylinders) = (self.geometry.surfaces(), self.geometry.cylinders());
        let places = cylinders.checked_sub(over)?;
        let start = self.start(over, places);
        for near in 0..NEARBY * surfaces {
            let cylinder = (start + near / surfaces) % places;
            let head = (self.places as u32).wrapping_add(near) % surfaces;
            let there = (head + heads) % surfaces;
            let ends = [(cylinder, head), (cylinder + over, there)];
            let found = ends.map(|(cylinder, head)| {
                good_track(self.geometry, cylinder, head).filter(|track| self.knows(track))
            });
            if let [Some(one), Some(other)] = found {
                return Some([one, other]);
            }
        }
        None
    }

    /// The distance nearest to `over` between two tracks of known blocks.
    pub fn reachable(&self, over: u32) -> u32 {
        let pairs = self.pairs().map(|((from, to), (low, high))| {
            let (least, most) = (low.saturating_sub(to), high.saturating_sub(from));
            over.clamp(least.max(1), most.max(1))
        });
        let nearest = pairs.min_by_key(|distance| distance.abs_diff(over));
        nearest.unwrap_or(over)
    }

    /// Pairs of ranges of known cylinders, the second not below the first.
    fn pairs(&self) -> impl Iterator<Item = ((u32, u32), (u32, u32))> {
        let ranges = &self.ranges;
        let above = |one: (u32, u32)| ranges.iter().filter(move |other| other.0 >= one.0);
        let of = move |&one: &(u32, u32)| above(one).map(move |&other| (one, other));
        ranges.iter().flat_map(of)
    }

    /// A cylinder below `places`, if possible one of known blocks with known blocks `over`
    /// cylinders above.
    fn start(&mut self, over: u32, places: u32) -> u32 {
        let common = |((from, to), (low, high)): ((u32, u32), (u32, u32))| {
            let first = from.max(low.saturating_sub(over));
            let last = to.min(high.checked_sub(over)?);
            (first <= last).then_some((first, last))
        };
        let common: Vec<(u32, u32)> = self.pairs().filter_map(common).collect();
        if let Some(count) = u32::try_from(common.len()).ok().filter(|&count| count > 0) {
            let (first, last) = common[self.spread(count) as usize];
            return (first + self.spread(last - first + 1)) % places;
        }
        let start = self.spread(places);
        let extents = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        if extents < 2 {
            return start;
        }
        let chosen = self.spread(extents) as usize;
        let extent = self.known[chosen];
        let length = u32::try_from(extent.length().0).unwrap_or(u32::MAX);
        let lba = Lba(extent.start().0 + u64::from(self.spread(length)));
        let cylinder = self.geometry.locate(lba).map(|place| place.cylinder);
        cylinder.map_or(start, |cylinder| cylinder % places)
    }

    /// Whether a track is known, not guessed.
    fn knows(&self, track: &TrackBlocks) -> bool {
        let after = self
            .known
            .partition_point(|extent| extent.start() <= track.first);
        let extent = after.checked_sub(1).map(|index| self.known[index]);
        self.known.is_empty() || extent.is_some_and(|extent| track.first < extent.end())
    }

    /// Measures twice, at different positions, and more often if the two do not agree. `None` if no
    /// two agree.
    pub async fn agreed(
        &mut self,
        subject: Subject,
        near: ThereAndBack<Near>,
    ) -> Option<ThereAndBack<MeasuredTime>> {
        let mut seen: Vec<ThereAndBack<MeasuredTime>> = Vec::new();
        let half = Subject {
            samples: subject.samples.div_ceil(2),
            ..subject
        };
        for _ in 0..REPETITIONS {
            let close = |spread: MeasuredTime| Some((nanos(spread), self.period / 128.0));
            let near = seen.last().map_or(near, |last| last.map(close));
            let Some(new) = self.ways(half, near).await else {
                continue;
            };
            let fits =
                |old: &&ThereAndBack<MeasuredTime>| (0..2).all(|way| agree(&old[way], &new[way]));
            if let Some(old) = seen.iter().find(fits) {
                return Some([joined(&old[0], &new[0]), joined(&old[1], &new[1])]);
            }
            seen.push(new);
        }
        None
    }

    /// Makes round trips at one position after the other until each direction has its samples.
    async fn ways(
        &mut self,
        subject: Subject,
        near: ThereAndBack<Near>,
    ) -> Option<ThereAndBack<MeasuredTime>> {
        let mut searches = near.map(|near| Threshold::new(self.period, near));
        let done = |search: &Threshold| search.weighed() >= subject.samples;
        // Halving takes some, and some are void.
        for _ in 0..subject.samples + 10 {
            let [one, other] = self.pair(subject.gap)?;
            for _ in 0..PLACE {
                for (search, (from, to)) in searches.iter_mut().zip([(one, other), (other, one)]) {
                    if done(search) {
                        continue;
                    }
                    let (mut from, mut to) = (from, to);
                    if self.trips.needs_fresh_tracks() {
                        // In the order of the first pair, which says which way the arm goes.
                        let [low, high] = self.pair(subject.gap)?;
                        (from, to) = match from == one {
                            true => (low, high),
                            false => (high, low),
                        };
                    }
                    self.trips.step(&from, &to, subject.direction, search).await;
                }
            }
            if searches.iter().all(done) {
                if let (TrackDistance::Cylinders(_), Direction::Read) =
                    (subject.gap, subject.direction)
                {
                    searches.iter().for_each(|search| self.scatter.add(search));
                }
                let found = searches.map(|search| search.spread());
                return found[0].zip(found[1]).map(|(there, back)| [there, back]);
            }
            if searches.iter().any(Threshold::is_hopeless) {
                return None;
            }
        }
        None
    }
}

/// A track on which nearly all sectors hold blocks.
fn good_track(geometry: &Geometry, cylinder: u32, head: u32) -> Option<TrackBlocks> {
    let track: Track = geometry.track_at(cylinder, head)?;
    let blocks = u32::try_from(track.last.0 - track.first.0 + 1).ok()?;
    let good = blocks <= track.sectors && blocks > track.sectors / 4 * 3 && blocks >= 8;
    good.then_some(TrackBlocks {
        first: track.first,
        blocks,
        sectors: track.sectors,
    })
}

/// The mean of both directions, in nanoseconds.
pub(super) fn middle(ways: &ThereAndBack<MeasuredTime>) -> f64 {
    let [there, back] = ways.map(|way| way.mean.as_nanos() as f64);
    f64::midpoint(there, back)
}

fn nanos(spread: MeasuredTime) -> f64 {
    spread.mean.as_nanos() as f64
}

/// Whether noise explains the difference of two measurements.
fn agree(one: &MeasuredTime, other: &MeasuredTime) -> bool {
    let variance = |spread: &MeasuredTime| {
        let deviation = (spread.deviation.as_nanos() as f64).max(LEAST_DEVIATION) * ANSWERS;
        deviation * deviation / f64::from(spread.samples.max(1))
    };
    let apart = nanos(*one) - nanos(*other);
    apart * apart <= AGREE * AGREE * (variance(one) + variance(other))
}

fn joined(one: &MeasuredTime, other: &MeasuredTime) -> MeasuredTime {
    let half = |a: block::Duration, b: block::Duration| {
        block::Duration::from_nanos(u64::midpoint(a.as_nanos(), b.as_nanos()))
    };
    MeasuredTime {
        mean: half(one.mean, other.mean),
        deviation: half(one.deviation, other.deviation),
        samples: one.samples + other.samples,
    }
}
