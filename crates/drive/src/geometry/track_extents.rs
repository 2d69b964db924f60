//! The parts of an extent, one per track, in the order of the blocks.

use std::ops::Range;

use block::Lba;

use super::spot::Spot;
use super::{Geometry, TrackExtent};
use crate::angle::Angle;

/// The parts of an extent, one per track; see [`Geometry::runs`].
#[derive(Clone, Debug)]
pub struct TrackExtents<'a> {
    geometry: &'a Geometry,
    next: u64,
    end: u64,
    /// The spot of `next`, if the end of the last part revealed it.
    ahead: Option<Spot>,
    /// See [`TrackExtents::track`].
    track: Range<u64>,
    /// The last part.
    part: TrackExtent,
}

impl<'a> TrackExtents<'a> {
    /// The parts of the blocks from `start` to before `end`, which are on the drive.
    pub(super) fn new(geometry: &'a Geometry, start: u64, end: u64) -> Self {
        TrackExtents {
            geometry,
            next: start,
            end,
            ahead: None,
            track: 0..0,
            part: TrackExtent::default(),
        }
    }

    /// The blocks of the last part's track, if it has one on every sector, and the block after the part is there as well.
    /// Else it is empty.
    #[inline]
    pub(crate) fn track(&self) -> Range<u64> {
        self.track.clone()
    }

    /// [`Iterator::next`] without a copy: a part is large.
    pub(crate) fn next_part(&mut self) -> Option<&TrackExtent> {
        if self.next >= self.end {
            return None;
        }
        let first = match self.ahead.take() {
            Some(spot) => spot,
            None => self.geometry.spot(self.next)?,
        };
        let lba = self.next;
        let mut last = first;
        // The number of blocks of the part, and the sector after its last one.
        let mut blocks = 0;
        let mut sector = first.sector;
        loop {
            let piece = u64::from(last.contiguous).min(self.end - self.next);
            blocks += piece as u32;
            self.track = match u64::from(last.contiguous) > piece {
                true => last.whole_track(self.next).unwrap_or_default(),
                false => 0..0,
            };
            self.next += piece;
            sector = last.sector.max(sector) + piece as u32;
            if self.next == self.end || sector == first.sectors || first.remapped {
                break;
            }
            let Some(spot) = self.geometry.spot(self.next) else {
                break;
            };
            if !first.is_continued_by(&spot, sector) {
                self.ahead = Some(spot);
                break;
            }
            last = spot;
        }
        let span = sector - first.sector;
        self.part = TrackExtent {
            first: Lba(lba),
            blocks,
            cylinder: first.cylinder,
            head: first.head,
            start: first.angle(),
            sweep: if span == first.sectors {
                Angle::from_raw(u64::MAX)
            } else {
                first.width.times(u64::from(span))
            },
            width: first.width,
        };
        Some(&self.part)
    }
}

impl Iterator for TrackExtents<'_> {
    type Item = TrackExtent;

    fn next(&mut self) -> Option<TrackExtent> {
        self.next_part().copied()
    }
}

#[cfg(test)]
mod tests {
    use block::{Extent, Sectors};

    use super::*;
    use crate::catalog;

    /// What the parts tell of the track of the block behind them is what that block's own lookup finds.
    #[test]
    fn the_track_behind_an_extent_is_that_of_the_next_block() {
        let (mut known, mut asked) = (0, 0);
        for entry in catalog::ALL {
            let profile = entry.profile().expect("a valid profile");
            let geometry = &profile.geometry;
            let blocks = geometry.sectors().0;
            let mut at = 1;
            for step in 0..4_000 {
                // A multiplicative sequence visits the whole drive.
                at = at * 48_271 % 2_147_483_647;
                let start = at * 1_021 % (blocks - 1);
                let length = (1 + step % 700).min(blocks - 1 - start);
                let extent = Extent::new(Lba(start), Sectors(length)).expect("blocks");
                let mut parts = geometry.runs(extent);
                while parts.next_part().is_some() {}
                asked += 1;
                if parts.track().is_empty() {
                    continue;
                }
                known += 1;
                let track = geometry.track_of(extent.end()).expect("a track");
                let found = parts.track();
                assert_eq!(found, track.first.0..track.last.0 + 1, "{}", entry.name);
                assert!(found.contains(&extent.end().0), "{}", entry.name);
                assert_eq!(found.end - found.start, u64::from(track.sectors));
            }
        }
        assert!(known > asked / 2, "{known} of {asked}");
    }
}
