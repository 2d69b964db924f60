//! Seek times of the arm by distance, and switch times between surfaces.
//!
//! ```text
//!   one block to another          what it contains
//!   same track                    overhead
//!   another surface               overhead + head switch                (+ settling of a write)
//!   another cylinder, same head   overhead + seek over the distance     (+ settling of a write)
//! ```
//!
//! A drive's positioning adds up as `drive::Profile::reposition` does. Overheads cancel in the
//! differences. The part of a write beyond its table comes from head switches, which have no table:
//! settling is the difference between a write's switch and a read's.
//!
//! On one track a write also waits for its data, which after a seek arrive before the head does.
//! [`write_settle_nanos`](crate::findings::ArmTimings::write_settle_nanos) is therefore too small
//! by the bus time of one block, until [`with_data`](crate::findings::ArmTimings::with_data) adds
//! it.

mod check;
mod curve;
mod refine;
pub mod reposition;
mod survey;
mod threshold;
mod track_blocks;

use block::Duration;

pub use curve::measure;
pub use reposition::reposition;
pub use threshold::MeasuredTime;

/// The effort of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Answers near the threshold, for each distance and direction of reads.
    pub samples: u32,
    /// The same for writes.
    pub write_samples: u32,
    /// Maximum time for adding distances where the curve bends.
    pub refining: Duration,
    /// Number of fresh pairs of tracks whose time is predicted and measured.
    pub checks: u32,
}

impl Effort {
    /// Errors of some 20 us where seeks scatter by 60; up to two minutes on a drive of 1995 with
    /// writes. A choice.
    pub const FULL: Effort = Effort {
        samples: 12,
        write_samples: 6,
        refining: Duration::from_secs(60),
        checks: 40,
    };

    /// A third of the time, and at least 1.5 times the error. A choice.
    pub const QUICK: Effort = Effort {
        samples: 4,
        write_samples: 4,
        refining: Duration::from_secs(8),
        checks: 12,
    };
}
