//! Everything that was found out about a drive.

use block::Duration;

use crate::clock::PlatterClock;
use crate::confidence::Confidence;

mod arm;
mod firmware;
mod layout;
mod pattern;
mod progress;
mod tracks;

pub(crate) use arm::whole_stroke;
pub use arm::{ArmTimings, SeekPoint};
pub use firmware::{
    ChunkRate, ChunkSizes, CountBound, Destage, Firmware, FirmwareConfidence, Honesty, WriteBuffer,
};
pub use layout::TrackLayout;
pub use pattern::{Heading, Pattern, Turning};
pub use progress::{ProfilingProgress, ProfilingStage};
pub use tracks::{Band, Elsewhere, FoundTrack, MapPiece, Slip, TrackMap};

/// What the procedures have found so far, part by part.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The spindle, followed as it turns; its angles are those of the map.
    pub clock: Option<PlatterClock>,
    /// How well the spindle is known.
    pub spindle: Steadiness,
    /// No command that reads the medium is as short; zero while that is not known.
    pub fast: Duration,
    /// The tracks in the order of their blocks.
    pub map: TrackMap,
    /// How well angles of blocks on the map are predicted.
    pub map_confidence: Confidence,
    /// On which surface and cylinder tracks are.
    pub layout: Option<TrackLayout>,
    /// How long the arm takes.
    pub arm: Option<ArmTimings>,
    /// What the electronics do and cost.
    pub firmware: Option<Firmware>,
    /// How far the whole procedure has come.
    pub progress: ProfilingProgress,
}

/// How evenly the spindle turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// How often a sighting within a second was within 1 % of a revolution of what was predicted.
    pub confidence: Confidence,
    /// The mean period over everything that was seen, in picoseconds.
    pub period_ps: u64,
    /// How far the speed wandered from its mean between sightings, in parts per million.
    pub wander_ppm: f64,
}
