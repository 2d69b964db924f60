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
