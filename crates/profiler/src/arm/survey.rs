//! Pairs of tracks all over the disk, and what going to and fro between them takes.

use block::{Direction, Extent, Lba};
use drive::geometry::Track;
use drive::{Angle, Geometry};

use crate::arm::Effort;
use crate::arm::reposition::{Angles, TrackBlocks, Trips};
use crate::arm::threshold::{MeasuredTime, Scatter, Threshold};
use crate::prober::Prober;

/// How two tracks lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackDistance {
    /// They are the same.
    None,
    /// Two surfaces of a cylinder.
    Surfaces,
    /// So many cylinders, on one surface.
    Cylinders(u32),
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub gap: TrackDistance,
    pub direction: Direction,
    /// Answers near the threshold for each way.
    pub samples: u32,
}

/// A guess and how far it may be off, in nanoseconds.
pub(super) type Near = Option<(f64, f64)>;

/// The way there, to the higher cylinder, and the way back.
pub(super) type ThereAndBack<T> = [T; 2];

/// Measures on a disk whose layout is believed.
pub(super) struct Survey<'a> {
    pub trips: Trips<'a>,
    pub geometry: &'a Geometry,
    pub effort: Effort,
    /// A revolution, in nanoseconds.
    pub period: f64,
    /// How seeks of reads scatter.
    pub scatter: Scatter,
    /// Blocks of which the layout is known, and not guessed.
    known: Vec<Extent>,
    /// The cylinders of those extents, from and to, if they are few.
    ranges: Vec<(u32, u32)>,
    /// Counts choices of places, so that they differ.
    places: u64,
}

impl Angles for Geometry {
    fn begin(&self, on: &TrackBlocks, lba: Lba) -> Option<Angle> {
        let (first, place) = (self.locate(on.first)?, self.locate(lba)?);
        let here = first.cylinder == place.cylinder && first.head == place.head;
        here.then_some(place.angle)
    }
}

/// Goings to and fro at one place before the next one. A choice: getting there costs as much as
/// one of them.
const PLACE: u32 = 3;

/// Cylinders near a chosen one that are tried if it has no good track: spare ones lie together in
/// dozens.
const NEARBY: u32 = 256;

/// More extents than that lie so close that distances between them need no care. A choice: twice the
/// places at which a large drive is explored, and some more.
const MOST_RANGES: usize = 64;

/// How many times a measurement is repeated until two agree.
const REPETITIONS: u32 = 4;

/// How many deviations of their difference two measurements may be apart. A choice.
const AGREE: f64 = 4.0;

/// The least deviation that is reckoned with, in nanoseconds: few answers tell little of it.
const LEAST_DEVIATION: f64 = 30e3;

/// What the deviation of a mean of yes-or-no answers is more than that of as many times: the root
/// of pi / 2 (probit at the threshold).
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

    /// A number below `of`, another one each time, spread evenly.
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

    /// Two tracks that lie so, somewhere.
    pub fn pair(&mut self, gap: TrackDistance) -> Option<ThereAndBack<TrackBlocks>> {
        let (surfaces, cylinders) = (self.geometry.surfaces(), self.geometry.cylinders());
        let (over, heads) = match gap {
            TrackDistance::None => (0, 0),
            TrackDistance::Surfaces => (0, 1),
            TrackDistance::Cylinders(over) => (over, 0),
        };
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

    /// The distance nearest to `over` that lies between two tracks of known blocks.
    pub fn reachable(&self, over: u32) -> u32 {
        let pairs = self.pairs().map(|((from, to), (low, high))| {
            let (least, most) = (low.saturating_sub(to), high.saturating_sub(from));
            over.clamp(least.max(1), most.max(1))
        });
        let nearest = pairs.min_by_key(|distance| distance.abs_diff(over));
        nearest.unwrap_or(over)
    }

    /// Two ranges of known cylinders each, the second not below the first.
    fn pairs(&self) -> impl Iterator<Item = ((u32, u32), (u32, u32))> {
        let ranges = &self.ranges;
        let above = |one: (u32, u32)| ranges.iter().filter(move |other| other.0 >= one.0);
        let of = move |&one: &(u32, u32)| above(one).map(move |&other| (one, other));
        ranges.iter().flat_map(of)
    }

    /// A cylinder before `places`, of known blocks if there are any, and with known blocks so many
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

    /// Whether a track is not guessed.
    fn knows(&self, track: &TrackBlocks) -> bool {
        let after = self
            .known
            .partition_point(|extent| extent.start() <= track.first);
        let extent = after.checked_sub(1).map(|index| self.known[index]);
        self.known.is_empty() || extent.is_some_and(|extent| track.first < extent.end())
    }

    /// Measures twice, at different places, and more often if the two do not agree. None if no
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

    /// Goes to and fro at one place after the other until each way has its samples.
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
                    if !done(search) {
                        self.trips.step(&from, &to, subject.direction, search).await;
                    }
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

/// A track nearly all of whose sectors hold blocks.
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

fn nanos(spread: MeasuredTime) -> f64 {
    spread.mean.as_nanos() as f64
}

/// Whether two measurements differ by what noise explains.
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
