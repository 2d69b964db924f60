//! Everything that was found out about a drive.

use block::Duration;

use crate::clock::Clock;
use crate::confidence::Confidence;
use crate::firmware::Firmware;
use crate::map::TrackMap;

/// What the procedures have found so far, part by part.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The spindle, followed as it turns; its angles are those of the map.
    pub clock: Option<Clock>,
    /// How well the spindle is known.
    pub spindle: Steadiness,
    /// No command that reads the medium is as short; zero while that is not known.
    pub fast: Duration,
    /// The tracks in the order of their blocks.
    pub map: TrackMap,
    /// How well angles of blocks on the map are predicted.
    pub map_confidence: Confidence,
    /// The electronics.
    pub firmware: Option<Firmware>,
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
