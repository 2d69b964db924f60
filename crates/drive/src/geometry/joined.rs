//! Two layouts one after the other: the blocks of two actuators that were described separately.
//!
//! ```text
//!   blocks      0 ......... of the first | ......... of the second
//!   cylinders   0 ......... of the first | ......... of the second
//! ```
//!
//! Surfaces and angles are those of each. No arm goes from the cylinders of one to those of the other.

use block::Lba;

use super::spot::Spot;
use super::{Geometry, PatternStep, Track};

/// Two layouts one after the other.
#[derive(Debug)]
pub(super) struct Joined {
    parts: [Geometry; 2],
}

impl Joined {
    pub fn new(first: Geometry, second: Geometry) -> Self {
        Joined {
            parts: [first, second],
        }
    }

    pub fn blocks(&self) -> u64 {
        self.border() + self.parts[1].sectors().0
    }

    pub fn cylinders(&self) -> u32 {
        self.parts[0].cylinders() + self.parts[1].cylinders()
    }

    pub fn surfaces(&self) -> u32 {
        self.parts[0].surfaces().max(self.parts[1].surfaces())
    }

    pub fn tracks(&self) -> u64 {
        self.parts[0].tracks() + self.parts[1].tracks()
    }

    pub fn spot(&self, lba: u64) -> Option<Spot> {
        let Some(above) = lba.checked_sub(self.border()) else {
            return self.parts[0].spot(lba);
        };
        let spot = self.parts[1].spot(above)?;
        Some(Spot {
            cylinder: spot.cylinder + self.parts[0].cylinders(),
            ..spot
        })
    }

    pub fn path_of(&self, lba: u64) -> Option<Vec<PatternStep>> {
        match lba.checked_sub(self.border()) {
            None => self.parts[0].path_of(Lba(lba)),
            Some(above) => self.parts[1].path_of(Lba(above)),
        }
    }

    pub fn zone_starts(&self) -> Vec<u64> {
        let border = self.border();
        let above = self.parts[1].zones().into_iter();
        let above = above.map(|zone| zone.first.0 + border);
        let below = self.parts[0].zones().into_iter();
        below.map(|zone| zone.first.0).chain(above).collect()
    }

    pub fn lba_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        match cylinder.checked_sub(self.parts[0].cylinders()) {
            None => Some(self.parts[0].lba_at(cylinder, head, sector)?.0),
            Some(above) => Some(self.border() + self.parts[1].lba_at(above, head, sector)?.0),
        }
    }

    pub fn track_of(&self, lba: u64) -> Option<Track> {
        match lba.checked_sub(self.border()) {
            None => self.parts[0].track_of(Lba(lba)),
            Some(above) => Some(self.above(self.parts[1].track_of(Lba(above))?)),
        }
    }

    pub fn track_at(&self, cylinder: u32, head: u32) -> Option<Track> {
        match cylinder.checked_sub(self.parts[0].cylinders()) {
            None => self.parts[0].track_at(cylinder, head),
            Some(above) => Some(self.above(self.parts[1].track_at(above, head)?)),
        }
    }

    /// A track of the second layout.
    fn above(&self, track: Track) -> Track {
        let border = self.border();
        Track {
            first: Lba(track.first.0 + border),
            last: Lba(track.last.0 + border),
            cylinder: track.cylinder + self.parts[0].cylinders(),
            ..track
        }
    }

    /// The first block of the second layout.
    fn border(&self) -> u64 {
        self.parts[0].sectors().0
    }
}
