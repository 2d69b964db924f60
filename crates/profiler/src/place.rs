//! On which surface and cylinder each track is.

use drive::geometry::indexed::Description;

use crate::confidence::Confidence;

/// The tracks of a map, put on surfaces and cylinders.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Where every track is, at the map's angles.
    pub description: Description,
    /// How often the arm's times agreed.
    pub confidence: Confidence,
}
