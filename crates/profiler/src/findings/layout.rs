//! The surface and cylinder of each track.

use block::{Extent, Lba};
use drive::geometry::indexed::Description;

use crate::confidence::Confidence;
use crate::findings::pattern::Pattern;

/// The layout of tracks.
#[derive(Clone, Debug)]
pub struct TrackLayout {
    /// All blocks of the device; angles are those of the map.
    pub description: Description,
    /// The order in which tracks are filled.
    pub pattern: Pattern,
    /// Blocks with which rows of a serpentine begin, as far as they were looked for.
    pub anchors: Vec<Lba>,
    /// The fraction of times between tracks that fit.
    pub confidence: Confidence,
    /// Blocks whose tracks are on the map; the description of other blocks is a guess.
    pub known: Vec<Extent>,
    /// Blocks that are not where the description says.
    pub fenced: Vec<Extent>,
}

impl TrackLayout {
    /// The number of known blocks.
    pub(crate) fn known_blocks(&self) -> u64 {
        self.known.iter().map(|extent| extent.length().0).sum()
    }

    /// The known block before which so many are known; `None` if there are not more.
    pub(crate) fn known_block(&self, mut place: u64) -> Option<Lba> {
        for extent in &self.known {
            if place < extent.length().0 {
                return Some(Lba(extent.start().0 + place));
            }
            place -= extent.length().0;
        }
        None
    }

    /// Whether the track of a block is on the map.
    pub(crate) fn knows(&self, lba: Lba) -> bool {
        let after = self.known.partition_point(|extent| extent.start() <= lba);
        let before = after.checked_sub(1);
        before.is_some_and(|index| lba < self.known[index].end())
    }
}
