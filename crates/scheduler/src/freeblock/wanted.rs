//! Which blocks of a drive are wanted: one set for all tasks.
//!
//! A drive of 20 TB has five thousand million blocks on eleven million tracks. So each track, found
//! by its place (cylinder, head), is cut into *slices* of equally many blocks with a bit for each,
//! and neighbouring tracks are a *region* with a count and a bound on the count of each of its
//! tracks: places where nothing is wanted are left out without a look at their tracks. Regions
//! of which nothing or everything is wanted have no bits at all.

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
/// On drives where a slice is more than a block, whole slices are wanted: what is added is
/// rounded up to slices, and what is removed is rounded down.
#[derive(Clone, Debug)]
pub struct WantedBlocks {
    geometry: Geometry,
    grain: Grain,
    regions: Vec<Region>,
    /// For `REGIONS_OF_TOP` regions each, not less than the `most` of any of them.
    tops: Vec<u32>,
    /// For each cylinder, not less than the wanted blocks of any of its tracks; the largest number
    /// says nothing.
    bounds: Vec<u16>,
    /// The wanted blocks of each track of the regions that have bits, in the order of the bits; empty
    /// if they are not kept (`Grain::counted`).
    counts: Vec<u16>,
    /// Wanted blocks.
    left: u64,
    /// Not less than the blocks of any slice of the tracks that have bits.
    widest: u32,
}

/// An extent is not on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{extent} of a drive of {} blocks: expected an extent that ends on the drive", blocks.0)]
pub struct PastEnd {
    /// The extent.
    pub extent: Extent,
    /// How many blocks the drive has.
    pub blocks: Sectors,
}

impl WantedBlocks {
    /// Nothing is wanted. Slices are as fine as a budget of memory allows: single blocks on drives
    /// below about 100 GB, 54 or so a track at 20 TB.
    pub fn none(geometry: &Geometry) -> Self {
        Self::of(geometry, Grain::new(geometry))
    }

    /// Nothing is wanted, and no track is cut into more than eight slices for each of `bytes`.
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

    /// Every block is wanted.
    pub fn all(geometry: &Geometry) -> Self {
        let mut wanted = WantedBlocks::none(geometry);
        wanted.fill();
        wanted
    }

    /// Adds the slices that have a block of the extent; answers how many blocks are newly wanted.
    ///
    /// # Errors
    /// If the extent does not end on the drive; nothing is added then.
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

    /// Removes the slices that lie wholly in the extent; answers how many blocks are no longer
    /// wanted. What lies past the end of the drive was not wanted.
    pub fn remove(&mut self, extent: Extent) -> u64 {
        let before = self.left;
        self.each_track(extent, |wanted, track, blocks| wanted.clear(track, blocks));
        before - self.left
    }

    /// Removes the slices that have a block of the extent, as [`WantedBlocks::add`] adds them; answers how
    /// many blocks are no longer wanted.
    pub fn remove_touched(&mut self, extent: Extent) -> u64 {
        let before = self.left;
        self.each_track(extent, |wanted, track, blocks| {
            let on_track = (track.last.0 - track.first.0 + 1) as u32;
            let slices = Slices::new(None, on_track, wanted.grain.slice(on_track));
            wanted.clear_slices(position_of(track), on_track, slices.touched(blocks));
        });
        before - self.left
    }

    /// How many blocks are wanted.
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

    /// The wanted blocks as extents, in the order of the blocks, none touching the next.
    pub fn extents(&self) -> Extents<'_> {
        Extents::new(self)
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        let bits: usize = self.regions.iter().map(Region::bytes).sum();
        size_of::<Self>()
            + bits
            + self.regions.capacity() * size_of::<Region>()
            + self.tops.capacity() * size_of::<u32>()
            + (self.bounds.capacity() + self.counts.capacity()) * size_of::<u16>()
    }

    /// The drive's layout.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// How the drive is cut.
    #[inline]
    pub(super) fn grain(&self) -> Grain {
        self.grain
    }

    /// Not less than the wanted blocks of any track of a region.
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

    /// The bits of a cylinder's tracks; `None` if nothing is wanted in its region.
    pub(super) fn cylinder(&self, cylinder: u32, track_blocks: u32) -> Option<Cylinder<'_>> {
        let head = Position { cylinder, head: 0 };
        let bits = match self.regions[self.grain.region(cylinder)].fill() {
            Fill::Nothing => return None,
            Fill::Everything => None,
            Fill::Part(bits) => Some(&bits[self.grain.offset(head)..]),
        };
        let slice = self.grain.slice(track_blocks);
        Some(Cylinder::new(
            bits,
            self.counts
                .get(self.grain.track(head)..)
                .filter(|counts| !counts.is_empty()),
            self.grain.stride,
            (track_blocks, slice),
        ))
    }

    /// The next region from `region` on, upwards, where a track may have more than `than` wanted
    /// blocks.
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

    /// The next region from `region` on, downwards, where a track may have more than `than`
    /// wanted blocks.
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

    /// The slices of a track; `None` if nothing is wanted in its region.
    #[inline]
    pub(super) fn slices(&self, track: &Track) -> Option<Slices<'_>> {
        let blocks = (track.last.0 - track.first.0 + 1) as u32;
        let position = Position {
            cylinder: track.cylinder,
            head: track.head,
        };
        self.slices_at(position, blocks)
    }

    /// The slices of the track of `blocks` blocks at a place; `None` if nothing is wanted in its
    /// region.
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

    /// Calls `change` with each track of the extent and the part of its blocks that is in it.
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

    /// Wants the slices of a track that have one of the blocks.
    fn set(&mut self, track: &Track, blocks: Range<u32>) {
        let on_track = (track.last.0 - track.first.0 + 1) as u32;
        let slices = Slices::new(None, on_track, self.grain.slice(on_track));
        self.set_slices(position_of(track), on_track, slices.touched(blocks));
    }

    /// No longer wants the slices of a track that lie in the blocks.
    fn clear(&mut self, track: &Track, blocks: Range<u32>) {
        let on_track = (track.last.0 - track.first.0 + 1) as u32;
        let slices = Slices::new(None, on_track, self.grain.slice(on_track));
        self.clear_slices(position_of(track), on_track, slices.inside(blocks));
    }

    /// Wants slices of the track of `blocks` blocks at a place.
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

    /// No longer wants slices of the track of `blocks` blocks at a place.
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

    /// Gives a region its bits if everything of it is wanted.
    fn write_out(&mut self, index: usize) {
        let Fill::Everything = self.regions[index].fill() else {
            return;
        };
        let mut written = Region::default();
        self.bounds[as_indices(self.grain.cylinders_of(index))].fill(0);
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

    /// Keeps how many blocks of a track are wanted, if that is kept.
    fn count(&mut self, position: Position, blocks: u32) {
        if let Some(count) = self.counts.get_mut(self.grain.track(position)) {
            *count = blocks as u16;
        }
    }

    /// Looks up the largest counts of a region's tracks again.
    fn look_up_most(&mut self, index: usize) {
        let mut most = 0;
        for cylinder in self.grain.cylinders_of(index) {
            // Without the tracks' lengths: slices are counted, and the last one as a whole one.
            let slices = self.cylinder(cylinder, self.grain.stride as u32 * 8);
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

/// A count as a bound of a cylinder.
fn saturated(blocks: u32) -> u16 {
    u16::try_from(blocks).unwrap_or(u16::MAX)
}

fn as_indices(range: Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// The place of a track.
fn position_of(track: &Track) -> Position {
    Position {
        cylinder: track.cylinder,
        head: track.head,
    }
}

/// Regions under one bound. A choice: the root of how many there are at 20 TB is 214, and a bound
/// of few regions is seldom out of date.
const REGIONS_OF_TOP: usize = 64;

/// After how many removals a region's bound is looked up again. A choice: the look costs about
/// as much as thirty removals.
const REMOVALS: u8 = 32;
