//! How long the arm takes over which distance, and the head from surface to surface.
//!
//! ```text
//!   one block to another          what it contains
//!   same track                    overhead
//!   another surface               overhead + head switch                (+ settling of a write)
//!   another cylinder, same head   overhead + seek over the distance     (+ settling of a write)
//! ```
//!
//! A drive's positioning adds up as `drive::Profile::reposition` does. Overheads drop out of the
//! differences. What a write adds besides its table is taken from head switches, where the table
//! has no part: settling is what a write's switch takes longer than a read's.
//!
//! On one track a write also waits for its data, which after a seek are there before the head is:
//! [`write_settle_nanos`](crate::findings::ArmTimings::write_settle_nanos) is too small by the time that one block needs to come over the bus,
//! until somebody who has measured that has called [`with_data`](crate::findings::ArmTimings::with_data).

mod check;
mod curve;
mod refine;
pub mod reposition;
mod survey;
mod threshold;

use block::Duration;

pub use curve::measure;
pub use reposition::reposition;
pub use threshold::MeasuredTime;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Answers near the threshold for each distance and way of reads.
    pub samples: u32,
    /// The same for writes.
    pub write_samples: u32,
    /// No longer than that distances are added where the curve bends.
    pub refining: Duration,
    /// Fresh pairs of tracks for which the time is predicted, and measured.
    pub checks: u32,
}

impl Effort {
    /// Errors of some 20 us where seeks scatter by 60; up to two minutes of a drive of 1995 with
    /// writes. A choice.
    pub const FULL: Effort = Effort {
        samples: 12,
        write_samples: 6,
        refining: Duration::from_secs(60),
        checks: 40,
    };

    /// A third of the time, and errors half as large again or more. A choice.
    pub const QUICK: Effort = Effort {
        samples: 4,
        write_samples: 4,
        refining: Duration::from_secs(8),
        checks: 12,
    };
}
