//! The set of wanted blocks of a drive.
//!
//! A drive of 20 TB has five thousand million blocks on eleven million tracks. Each track, found by
//! cylinder and head, is divided into *slices* of equally many blocks with a bit each. Neighbouring
//! tracks form a *region* with a count, and a bound on the count of each of its tracks. Searches
//! skip regions without wanted blocks. Regions that are wholly wanted or unwanted have no bits.

mod combined;
mod extents;
mod file;
mod grain;
mod home;
mod region;
mod slices;

use std::ops::Range;

use block::{Extent, Lba, Sectors};
use drive::geometry::Track;
use drive::{Geometry, Position};

pub use extents::Extents;
pub use file::DecodeError;
pub(super) use grain::Grain;
use home::home;
use region::{Fill, Region, TrackCounts};
pub(super) use slices::{Cylinder, Slices};

/// The wanted blocks of a drive.
///
/// On drives whose slices have several blocks, whole slices are wanted: additions are rounded up to
/// slices, and removals are rounded down.
#[derive(Clone, Debug)]
pub struct WantedBlocks {
    geometry: Geometry,
    grain: Grain,
    regions: Vec<Region>,
    /// For `REGIONS_OF_TOP` regions each, an upper bound of their `most`.
    tops: Vec<u32>,
    /// For each cylinder, an upper bound of the wanted blocks of its tracks; the largest number
    /// means unknown.
    bounds: Vec<u16>,
    /// The wanted blocks of each track of the regions that have bits, in the order of the bits.
    /// Empty if they are not counted (`Grain::counted`).
    counts: Vec<u16>,
    /// The number of wanted blocks.
    left: u64,
    /// An upper bound of the blocks of any slice of the tracks that have bits.
    widest: u32,
}

/// An extent ends past the end of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{extent} of a drive of {} blocks: expected an extent that ends on the drive", blocks.0)]
pub struct PastEnd {
    /// The extent.
    pub extent: Extent,
    /// The size of the drive.
    pub blocks: Sectors,
}

impl WantedBlocks {
    /// The empty set. Slices are as fine as the memory budget allows: single blocks on drives below
    /// about 100 GB, about 54 per track at 20 TB.
    pub fn none(geometry: &Geometry) -> Self {
        Self::of(geometry, Grain::new(geometry))
    }

    /// The empty set with at most eight slices per track for each of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is zero.
    pub fn coarse(geometry: &Geometry, bytes: usize) -> Self {
        assert!(bytes > 0, "no bits for a track: expected at least a byte");
        let grain = Grain::new(geometry);
        let stride = grain.stride.min(bytes);
        Self::of(geometry, Grain { stride, ..grain })
    }

    fn of(geometry: &Geometry, grain: Grain) -> Self {
        WantedBlocks {
            geometry: geometry.clone(),
            grain,
            regions: vec![Region::default(); grain.regions()],
            tops: vec![0; grain.regions().div_ceil(REGIONS_OF_TOP)],
            bounds: vec![0; grain.cylinders as usize],
            counts: vec![0; grain.counted(geometry)],
            left: 0,
            widest: 1,
        }
    }

    /// The set of all blocks.
    pub fn all(geometry: &Geometry) -> Self {
        let mut wanted = WantedBlocks::none(geometry);
        wanted.fill();
        wanted
    }

    /// Adds the slices that overlap `extent`, and returns the number of newly wanted blocks.
    ///
    /// # Errors
    /// If the extent ends past the end of the drive; nothing is added then.
    pub fn add(&mut self, extent: Extent) -> Result<u64, PastEnd> {
        let blocks = self.geometry.sectors();
        if extent.end().0 > blocks.0 {
            return Err(PastEnd { extent, blocks });
        }
        let before = self.left;
        if extent.length() == blocks {
            self.fill();
        } else {
            self.each_track(extent, |wanted, track, blocks| wanted.set(track, blocks));
        }
        Ok(self.left - before)
    }

    /// Removes the slices that are wholly in `extent`, and returns the number of removed blocks.
    /// Blocks past the end of the drive are ignored.
    pub fn remove(&mut self, extent: Extent) -> u64 {
        let before = self.left;
        self.each_track(extent, |wanted, track, blocks| wanted.clear(track, blocks));
        before - self.left
    }

    /// Removes the slices that overlap `extent`, the inverse of [`WantedBlocks::add`]. Returns the
    /// number of removed blocks.
    pub fn remove_touched(&mut self, extent: Extent) -> u64 {
        let before = self.left;
        self.each_track(extent, |wanted, track, blocks| {
            let on_track = (track.last.0 - track.first.0 + 1) as u32;
            let slices = Slices::new(None, on_track, wanted.grain.slice(on_track));
            wanted.clear_slices(position_of(track), on_track, slices.touched(blocks));
        });
        before - self.left
    }

    /// The number of wanted blocks.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Whether a block is wanted.
    pub fn contains(&self, lba: Lba) -> bool {
        home(&self.geometry, lba).is_some_and(|track| {
            let slices = self.slices(&track);
            let block = (lba.0 - track.first.0) as u32;
            slices.is_some_and(|slices| slices.is_wanted(slices.touched(block..block + 1).start))
        })
    }

    /// The wanted blocks as extents in ascending order, with gaps between them.
    pub fn extents(&self) -> Extents<'_> {
        Extents::new(self)
    }

    /// The memory of the set in bytes.
    pub fn bytes(&self) -> usize {
        let bits: usize = self.regions.iter().map(Region::bytes).sum();
        size_of::<Self>()
            + bits
            + self.regions.capacity() * size_of::<Region>()
            + self.tops.capacity() * size_of::<u32>()
            + (self.bounds.capacity() + self.counts.capacity()) * size_of::<u16>()
    }

    /// The layout of the drive.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The division of the drive.
    #[inline]
    pub(super) fn grain(&self) -> Grain {
        self.grain
    }

    /// An upper bound of the wanted blocks of any track of a region.
    #[inline]
    pub(super) fn most(&self, region: usize) -> u32 {
        self.regions[region].most()
    }

    /// Whether a track of a cylinder may have more than `than` wanted blocks.
    #[inline]
    pub(super) fn may_have(&self, cylinder: u32, than: u32) -> bool {
        let bound = self.bounds[cylinder as usize];
        bound == u16::MAX || u32::from(bound) > than
    }

    /// The bits of the tracks of a cylinder of a region, with at most `track_blocks` blocks; `None`
    /// if the region has no wanted blocks.
    #[inline]
    pub(super) fn cylinder(
        &self,
        (region, cylinder): (usize, u32),
        track_blocks: u32,
    ) -> Option<Cylinder<'_>> {
        let within = cylinder - self.grain.first_cylinder(region);
        let bits = match self.regions[region].fill() {
            Fill::Nothing => return None,
            Fill::Everything => None,
            Fill::Part(bits) => Some(&bits[self.grain.offset_of_cylinder(within)..]),
        };
        let first = self.grain.track(Position { cylinder, head: 0 });
        let counts = self.counts.get(first..).filter(|counts| !counts.is_empty());
        Some(Cylinder::new(bits, counts, self.grain, track_blocks))
    }

    /// The first region from `region` upwards whose tracks may have more than `than` wanted blocks.
    pub(super) fn above(&self, mut region: usize, than: u32) -> Option<usize> {
        while region < self.regions.len() {
            if region.is_multiple_of(REGIONS_OF_TOP) && self.tops[region / REGIONS_OF_TOP] <= than {
                region += REGIONS_OF_TOP;
            } else if self.regions[region].most() > than {
                return Some(region);
            } else {
                region += 1;
            }
        }
        None
    }

    /// The first region from `region` downwards whose tracks may have more than `than` wanted
    /// blocks.
    pub(super) fn below(&self, region: usize, than: u32) -> Option<usize> {
        let mut end = (region + 1).min(self.regions.len());
        while end > 0 {
            if end.is_multiple_of(REGIONS_OF_TOP) && self.tops[end / REGIONS_OF_TOP - 1] <= than {
                end -= REGIONS_OF_TOP;
            } else if self.regions[end - 1].most() > than {
                return Some(end - 1);
            } else {
                end -= 1;
            }
        }
        None
    }

    /// The slices of a track; `None` if its region has no wanted blocks.
    #[inline]
    pub(super) fn slices(&self, track: &Track) -> Option<Slices<'_>> {
        let blocks = (track.last.0 - track.first.0 + 1) as u32;
        let position = Position {
            cylinder: track.cylinder,
            head: track.head,
        };
        self.slices_at(position, blocks)
    }

    /// The slices of the track at `position`, which has `blocks` blocks; `None` if its region has
    /// no wanted blocks.
    #[inline]
    pub(super) fn slices_at(&self, position: Position, blocks: u32) -> Option<Slices<'_>> {
        let slice = self.grain.slice(blocks);
        let bits = match self.regions[self.grain.region(position.cylinder)].fill() {
            Fill::Nothing => return None,
            Fill::Everything => None,
            Fill::Part(bits) => Some(&bits[self.grain.offset(position)..]),
        };
        Some(Slices::new(bits, blocks, slice))
    }

    fn fill(&mut self) {
        self.regions.fill(Region::all());
        self.tops.fill(u32::MAX);
        self.bounds.fill(u16::MAX);
        self.left = self.geometry.sectors().0;
    }

    /// Calls `change` for each track of the extent, with the part of its blocks in the extent.
    fn each_track(&mut self, extent: Extent, change: impl Fn(&mut Self, &Track, Range<u32>)) {
        let end = extent.end().0.min(self.geometry.sectors().0);
        let mut next = extent.start().0;
        while next < end {
            let Some(track) = home(&self.geometry, Lba(next)) else {
                return;
            };
            let until = end.min(track.last.0 + 1);
            let blocks = (next - track.first.0) as u32..(until - track.first.0) as u32;
            change(self, &track, blocks);
            next = until;
        }
    }

    /// Adds the slices of a track that overlap `blocks`.
    fn set(&mut self, track: &Track, blocks: Range<u32>) {
        let on_track = (track.last.0 - track.first.0 + 1) as u32;
        let slices = Slices::new(None, on_track, self.grain.slice(on_track));
        self.set_slices(position_of(track), on_track, slices.touched(blocks));
    }

    /// Removes the slices of a track that are wholly in `blocks`.
    fn clear(&mut self, track: &Track, blocks: Range<u32>) {
        let on_track = (track.last.0 - track.first.0 + 1) as u32;
        let slices = Slices::new(None, on_track, self.grain.slice(on_track));
        self.clear_slices(position_of(track), on_track, slices.inside(blocks));
    }

    /// Adds slices of the track at `position`, which has `blocks` blocks.
    fn set_slices(&mut self, position: Position, blocks: u32, slices: Range<u32>) {
        let index = self.grain.region(position.cylinder);
        if let Fill::Everything = self.regions[index].fill() {
            return;
        }
        let slice = self.grain.slice(blocks);
        self.widest = self.widest.max(slice);
        let all = Slices::new(None, blocks, slice).wanted(slices.clone());
        let (had, in_slices) = match self.slices_at(position, blocks) {
            None => (0, 0),
            Some(had) => (had.wanted(0..had.count()), had.wanted(slices.clone())),
        };
        let changed = all - in_slices;
        if changed == 0 {
            return;
        }
        let counts = TrackCounts {
            changed,
            on_track: had + changed,
        };
        let (size, offset) = (self.grain.region_bytes(), self.grain.offset(position));
        self.regions[index].set(size, offset, slices, counts);
        self.left += u64::from(changed);
        self.count(position, had + changed);
        let bound = &mut self.bounds[position.cylinder as usize];
        *bound = (*bound).max(saturated(had + changed));
        let top = &mut self.tops[index / REGIONS_OF_TOP];
        *top = (*top).max(self.regions[index].most());
    }

    /// Removes slices of the track at `position`, which has `blocks` blocks.
    fn clear_slices(&mut self, position: Position, blocks: u32, slices: Range<u32>) {
        let had = self.slices_at(position, blocks);
        let changed = had.map_or(0, |had| had.wanted(slices.clone()));
        if changed == 0 {
            return;
        }
        let index = self.grain.region(position.cylinder);
        self.write_out(index);
        if let Some(count) = self.counts.get_mut(self.grain.track(position)) {
            *count -= changed as u16;
        }
        let offset = self.grain.offset(position);
        self.regions[index].clear(offset, slices, changed);
        self.left -= u64::from(changed);
        if self.regions[index].removals >= REMOVALS || self.regions[index].most() == 0 {
            self.look_up_most(index);
        }
    }

    /// Allocates the bits of a region that is wholly wanted.
    fn write_out(&mut self, index: usize) {
        let Fill::Everything = self.regions[index].fill() else {
            return;
        };
        let mut written = Region::default();
        let cylinders = self.grain.cylinders_of(index);
        self.bounds[cylinders.start as usize..cylinders.end as usize].fill(0);
        for position in self.grain.tracks_of(index) {
            let Some(track) = self.geometry.track_at(position.cylinder, position.head) else {
                continue;
            };
            let changed = (track.last.0 - track.first.0 + 1) as u32;
            let slice = self.grain.slice(changed);
            self.widest = self.widest.max(slice);
            let slices = Slices::new(None, changed, slice);
            let counts = TrackCounts {
                changed,
                on_track: changed,
            };
            let (size, offset) = (self.grain.region_bytes(), self.grain.offset(position));
            written.set(size, offset, 0..slices.count(), counts);
            self.count(position, changed);
            let bound = &mut self.bounds[position.cylinder as usize];
            *bound = (*bound).max(saturated(changed));
        }
        self.regions[index] = written;
    }

    /// Updates the count of a track's wanted blocks, if it is kept.
    fn count(&mut self, position: Position, blocks: u32) {
        if let Some(count) = self.counts.get_mut(self.grain.track(position)) {
            *count = blocks as u16;
        }
    }

    /// Computes the bound of a region's tracks again.
    fn look_up_most(&mut self, index: usize) {
        let mut most = 0;
        for cylinder in self.grain.cylinders_of(index) {
            // Without the tracks' lengths: slices are counted, and the last one as a whole one.
            let slices = self.cylinder((index, cylinder), self.grain.stride as u32 * 8);
            let counts = slices.map(|slices| {
                let heads = 0..self.grain.surfaces;
                heads.map(|head| slices.most(head)).max().unwrap_or(0)
            });
            let bound = counts.unwrap_or(0) * self.widest;
            most = most.max(bound);
            let kept = &mut self.bounds[cylinder as usize];
            *kept = (*kept).min(saturated(bound));
        }
        let region = &mut self.regions[index];
        region.set_most(region.most().min(most));
        let first = index - index % REGIONS_OF_TOP;
        let last = (first + REGIONS_OF_TOP).min(self.regions.len());
        let most = self.regions[first..last].iter().map(Region::most).max();
        self.tops[index / REGIONS_OF_TOP] = most.unwrap_or(0);
    }
}

/// A count as the bound of a cylinder.
fn saturated(blocks: u32) -> u16 {
    u16::try_from(blocks).unwrap_or(u16::MAX)
}

/// The cylinder and head of a track.
fn position_of(track: &Track) -> Position {
    Position {
        cylinder: track.cylinder,
        head: track.head,
    }
}

/// Regions per upper bound. A choice: the root of their number at 20 TB is 214, and a bound of few
/// regions is seldom out of date.
const REGIONS_OF_TOP: usize = 64;

/// Removals after which a region's bound is computed again. A choice: the computation costs about
/// thirty removals.
const REMOVALS: u8 = 32;
