//! On which surface and cylinder tracks are.

use block::Extent;
use drive::geometry::indexed::Description;

use crate::confidence::Confidence;
use crate::findings::pattern::Pattern;

/// Where tracks are.
#[derive(Clone, Debug)]
pub struct TrackLayout {
    /// All blocks of the device; angles are those of the map.
    pub description: Description,
    /// In which order tracks were filled.
    pub pattern: Pattern,
    /// How well the times between tracks fit.
    pub confidence: Confidence,
    /// Blocks whose tracks are on the map: elsewhere the description is a guess.
    pub known: Vec<Extent>,
    /// Blocks that are not where the description says.
    pub fenced: Vec<Extent>,
}
