//! Everything that is known of a drive: its truth inside a `VirtualDrive`, or somebody's belief.

use std::sync::Arc;

use block::Duration;

use crate::angle::Spindle;
use crate::firmware::{BufferRules, Bus, Overheads, QueueRules};
use crate::geometry::Geometry;
use crate::seek::SeekCurve;

/// How the numbers of a profile came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provenance {
    /// Extracted from a real drive of this model.
    Measured,
    /// From data sheets and a paper's tables; gaps filled with typical values.
    Approximate,
    /// From published measurements of similar drives.
    Extrapolated,
    /// Made up, for tests of the software.
    Invented,
}

/// A drive.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Vendor and model in kebab case.
    pub name: String,
    /// Vendor and model as on the label.
    pub model: String,
    /// The year of its introduction.
    pub year: u16,
    /// How its numbers came about.
    pub provenance: Provenance,
    /// Bytes in a logical block: 512 or 4096.
    pub block_bytes: u32,
    /// Bytes in a sector of the medium: 512, or 4096 behind 512-byte blocks (512e) or not (4Kn).
    pub physical_block_bytes: u32,
    /// How many actuators serve equal shares of the blocks independently: 1 or 2.
    pub actuators: u8,
    /// The platter's turning.
    pub spindle: Spindle,
    /// The arm.
    pub seek: SeekCurve,
    /// Another surface of the same cylinder; the lower bound of any repositioning.
    pub head_switch: Duration,
    /// Added to a write's positioning if the arm or head moved, in nanoseconds; some drives
    /// settle faster for writes than their seek table says, so that it may be negative.
    pub write_settle_nanos: i64,
    /// Where blocks are.
    pub geometry: Arc<Geometry>,
    /// What the electronics cost.
    pub overheads: Overheads,
    /// The buffer.
    pub buffer: BufferRules,
    /// The host bus.
    pub bus: Bus,
    /// The drive's own queue.
    pub queue: QueueRules,
}
