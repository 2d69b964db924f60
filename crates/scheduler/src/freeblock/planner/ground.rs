//! Bounds of the search: the least seek time over a distance, and the densest track of a region or
//! of all regions ahead.

use std::sync::Arc;

use block::{Direction, Duration};
use drive::{Position, Profile};

use super::known::KnownTracks;
use super::outline::{COUNTED, Outlines};
use crate::freeblock::wanted::Grain;

/// The bounds of a profile.
#[derive(Clone, Debug)]
pub(super) struct SearchBounds {
    envelope: Envelope,
    /// The most sectors of a track: of each region, of each region and those above, and of those
    /// below.
    dense: [Arc<[u32]>; 3],
    /// The fewest sectors of a track, and of a track of each region, if every track was read.
    sparse: u32,
    sparse_regions: Arc<[u32]>,
    outlines: Outlines,
    known: KnownTracks,
}

impl SearchBounds {
    pub fn new(profile: &Profile) -> Self {
        let outlines = Outlines::new(profile);
        let Densities { dense, sparse } = densities(profile, &outlines);
        let mut most = 0;
        let mut so_far = |dense: &u32| {
            most = most.max(*dense);
            most
        };
        let downwards = dense.iter().map(&mut so_far).collect();
        most = 0;
        let mut upwards: Vec<u32> = Vec::with_capacity(dense.len());
        for dense in dense.iter().rev() {
            most = most.max(*dense);
            upwards.push(most);
        }
        upwards.reverse();
        SearchBounds {
            envelope: Envelope::new(profile),
            dense: [dense.into(), upwards.into(), downwards],
            sparse: self::sparse(profile),
            sparse_regions: sparse.into(),
            outlines,
            known: KnownTracks::new(profile),
        }
    }

    /// Replaces the seek tables by those of `profile`.
    pub fn refine(&mut self, profile: &Profile) {
        self.envelope = Envelope::new(profile);
    }

    /// The most sectors of a track of a region.
    #[inline]
    pub fn dense(&self, region: usize) -> u32 {
        self.dense[0][region]
    }

    /// The most sectors of a track of a region or of those after it in a direction.
    #[inline]
    pub fn ahead(&self, region: usize, step: i64) -> u32 {
        self.dense[if step > 0 { 1 } else { 2 }][region]
    }

    /// The fewest sectors of a track.
    pub fn sparse(&self) -> u32 {
        self.sparse
    }

    /// A number of sectors that every track of a region has.
    #[inline]
    pub fn sparse_in(&self, region: usize) -> u32 {
        let read = self.sparse_regions.get(region);
        read.copied().unwrap_or(self.sparse)
    }

    /// The coarse block positions of all tracks.
    #[inline]
    pub fn outlines(&self) -> &Outlines {
        &self.outlines
    }

    /// The tracks whose positions were measured.
    #[inline]
    pub fn known(&self) -> &KnownTracks {
        &self.known
    }

    /// A lower bound of all seek times over `distance` cylinders or more.
    #[inline]
    pub fn least(&self, direction: Direction, distance: u32) -> Duration {
        self.envelope.least(direction, distance)
    }
}

/// The fewest sectors of a track. All tracks of a zone have as many as its first.
fn sparse(profile: &Profile) -> u32 {
    let zones = profile.geometry.zones();
    let sectors = zones.iter().map(|zone| zone.sectors_per_track);
    sectors.min().unwrap_or(1).max(1)
}

/// The most sectors of a track of each region, and the fewest, if every track was read.
struct Densities {
    dense: Vec<u32>,
    sparse: Vec<u32>,
}

/// The densities of all regions.
///
/// On a drive with fewer than `COUNTED` tracks every track is read. On a larger drive the tracks of
/// each region's first cylinder, and of the next region's, are read: no known layout has narrower
/// zones.
fn densities(profile: &Profile, outlines: &Outlines) -> Densities {
    let geometry = &profile.geometry;
    let grain = Grain::new(geometry);
    let sectors = |position: Position| match outlines.at(position) {
        Some(outline) => Some(outline.sectors()),
        None => {
            let track = geometry.track_at(position.cylinder, position.head);
            track.map(|track| track.sectors)
        }
    };
    let on = |cylinder: u32| {
        let heads = 0..geometry.surfaces();
        heads.filter_map(move |head| sectors(Position { cylinder, head }))
    };
    if geometry.surfaces() * geometry.cylinders() < COUNTED {
        let of_region = |region| {
            let tracks = grain.cylinders_of(region).flat_map(on);
            tracks.fold((0, u32::MAX), |(most, fewest), sectors| {
                (sectors.max(most), sectors.min(fewest))
            })
        };
        let regions = (0..grain.regions()).map(of_region);
        let (dense, sparse) = regions.map(|(most, fewest)| (most.max(1), fewest)).unzip();
        return Densities { dense, sparse };
    }
    let most = |cylinder| on(cylinder).max().unwrap_or(0);
    let mut firsts: Vec<u32> = (0..grain.regions())
        .map(|region| most(grain.cylinders_of(region).start))
        .collect();
    firsts.push(most(geometry.cylinders() - 1));
    let pairs = firsts.windows(2);
    Densities {
        dense: pairs.map(|pair| pair[0].max(pair[1]).max(1)).collect(),
        sparse: Vec::new(),
    }
}

/// The monotone lower envelopes of a drive's seek tables.
///
/// Measured tables are not monotonic. An outward search may only stop if no farther track has a
/// shorter seek, so that it needs the minimum of all longer distances.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    read: Arc<[u32]>,
    write: Arc<[u32]>,
}

impl Envelope {
    pub fn new(profile: &Profile) -> Self {
        let cylinders = profile.geometry.cylinders();
        let lowest = |direction| {
            let mut least = u32::MAX;
            let mut times: Vec<u32> = (1..cylinders.max(2))
                .rev()
                .map(|distance| {
                    let time = sole(profile, direction, distance).as_nanos();
                    least = least.min(u32::try_from(time).unwrap_or(u32::MAX));
                    least
                })
                .collect();
            times.push(0);
            times.reverse();
            times.into()
        };
        Envelope {
            read: lowest(Direction::Read),
            write: lowest(Direction::Write),
        }
    }

    /// A lower bound of all seek times over `distance` cylinders or more.
    #[inline]
    pub fn least(&self, direction: Direction, distance: u32) -> Duration {
        let times = match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        };
        let last = times.len() - 1;
        Duration::from_nanos(u64::from(times[(distance as usize).min(last)]))
    }
}

/// The seek time over `distance` cylinders to the same surface; other surfaces take no less.
#[inline]
pub(super) fn sole(profile: &Profile, direction: Direction, distance: u32) -> Duration {
    match (direction, distance) {
        (_, 0) => Duration::ZERO,
        (Direction::Read, distance) => profile.seek.read().time(distance),
        (Direction::Write, distance) => {
            let time = profile.seek.write().time(distance);
            time.adjusted(profile.write_settle_nanos)
        }
    }
}
