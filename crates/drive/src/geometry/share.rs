//! A share of a layout: consecutive blocks of another layout, numbered from 0.
//!
//! ```text
//!   whole   0 ............. first ............. first + blocks ....
//!   share                     0 ................. blocks
//! ```
//!
//! Cylinders, surfaces and angles are those of the whole. A track on the border has in each share
//! the blocks of that share.

use block::Lba;

use super::spot::Spot;
use super::{Geometry, PatternStep, Track, Turn};

/// Consecutive blocks of another layout.
#[derive(Debug)]
pub(super) struct Share {
    whole: Geometry,
    first: u64,
    blocks: u64,
}

impl Share {
    /// The share of `blocks` blocks from `first` on.
    pub fn new(whole: Geometry, first: u64, blocks: u64) -> Self {
        assert!(
            blocks > 0 && first + blocks <= whole.sectors().0,
            "a share of {blocks} blocks from {first}: expected one on the drive"
        );
        Share {
            whole,
            first,
            blocks,
        }
    }

    pub fn whole(&self) -> &Geometry {
        &self.whole
    }

    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    pub fn turned(&self, turns: &[Turn]) -> Self {
        Share {
            whole: self.whole.turned(turns),
            ..*self
        }
    }

    pub fn spot(&self, lba: u64) -> Option<Spot> {
        let left = self.blocks.checked_sub(lba).filter(|&left| left > 0)?;
        let spot = self.whole.spot(self.first + lba)?;
        Some(Spot {
            contiguous: u64::from(spot.contiguous).min(left) as u32,
            // A part of the track may be another share's.
            is_whole: false,
            ..spot
        })
    }

    pub fn path_of(&self, lba: u64) -> Option<Vec<PatternStep>> {
        let lba = Some(lba).filter(|&lba| lba < self.blocks)?;
        self.whole.path_of(Lba(self.first + lba))
    }

    pub fn zone_starts(&self) -> Vec<u64> {
        let zones = self.whole.zones().into_iter();
        let inside = zones.filter_map(|zone| zone.first.0.checked_sub(self.first));
        let mut starts = vec![0];
        starts.extend(inside.filter(|&start| (1..self.blocks).contains(&start)));
        starts
    }

    pub fn lba_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let Lba(of_whole) = self.whole.lba_at(cylinder, head, sector)?;
        let lba = of_whole.checked_sub(self.first)?;
        (lba < self.blocks).then_some(lba)
    }

    pub fn track_of(&self, lba: u64) -> Option<Track> {
        let lba = Some(lba).filter(|&lba| lba < self.blocks)?;
        self.own(self.whole.track_of(Lba(self.first + lba))?)
    }

    pub fn track_at(&self, cylinder: u32, head: u32) -> Option<Track> {
        self.own(self.whole.track_at(cylinder, head)?)
    }

    /// A track of the whole with the share's blocks; `None` if it has none of them.
    fn own(&self, track: Track) -> Option<Track> {
        let first = track.first.0.max(self.first);
        let last = track.last.0.min(self.first + self.blocks - 1);
        (first <= last).then(|| Track {
            first: Lba(first - self.first),
            last: Lba(last - self.first),
            ..track
        })
    }
}
