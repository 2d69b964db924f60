//! All findings about a drive.

use block::Duration;

use crate::clock::PlatterClock;
use crate::confidence::Confidence;

mod arm;
mod firmware;
mod host;
mod layout;
mod pattern;
mod progress;
mod tracks;

pub(crate) use arm::whole_stroke;
pub use arm::{ArmTimings, SeekPoint};
pub use firmware::{
    ChunkRate, ChunkSizes, CountBound, Destage, Firmware, FirmwareConfidence, Honesty, WriteBuffer,
};
pub use host::HostDelays;
pub use layout::TrackLayout;
pub use pattern::{Heading, Pattern, Turning};
pub use progress::{ProfilingProgress, ProfilingStage};
pub use tracks::{Band, Elsewhere, FoundTrack, MapPiece, Slip, TrackMap};

/// The findings of the procedures so far.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The spindle, tracked continuously; its angles are those of the map.
    pub clock: Option<PlatterClock>,
    /// The accuracy of the spindle.
    pub spindle: Steadiness,
    /// Upper bound of the time of buffer hits: every command that reads the medium takes longer.
    /// Zero if unknown.
    pub fast: Duration,
    /// What the path to the drive adds to the drive's times, where it has no cache control.
    pub host: HostDelays,
    /// The tracks in block order.
    pub map: TrackMap,
    /// The confidence in predicted angles of blocks on the map.
    pub map_confidence: Confidence,
    /// The surface and cylinder of each track.
    pub layout: Option<TrackLayout>,
    /// The timing of the arm.
    pub arm: Option<ArmTimings>,
    /// The behaviour and timing of the electronics.
    pub firmware: Option<Firmware>,
    /// The progress of the whole procedure.
    pub progress: ProfilingProgress,
}

/// The evenness of the spindle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// The fraction of sightings within a second that were within 1 % of a revolution of their
    /// prediction.
    pub confidence: Confidence,
    /// The mean period over all sightings, in picoseconds.
    pub period_ps: u64,
    /// The deviation of the speed from its mean between sightings, in parts per million.
    pub wander_ppm: f64,
}
