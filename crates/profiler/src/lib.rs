//! Determines a drive's profile from block numbers and completion times alone.
//!
//! ```text
//!   spindle ---> map ---> arrangement ---> arm ---> firmware ---> belief
//!   period       tracks   surfaces and     seeks    overheads,    a `Profile`
//!   and phase             cylinders                 buffer, ...
//! ```
//!
//! The procedures are sequential `async` code: issue a probe, await its end, decide
//! ([`prober::Prober`]). The compiler turns them into the state machine of [`Profiler`]. The owner
//! of a profiler passes its probes to a drive and reports their ends, in virtual or in real time.

pub mod arm;
pub mod behind;
pub mod belief;
pub mod clock;
pub mod confidence;
pub mod device;
pub mod findings;
pub mod firmware;
pub mod layout;
pub mod map;
pub mod prober;
pub mod procedure;
pub mod profiler;
pub mod rehearsal;
pub mod sighting;
pub mod slow_heads;
pub mod spindle;
pub mod tracker;

pub use crate::confidence::Confidence;
pub use crate::device::{DriveIdentity, Offers, WritePermission};
pub use crate::findings::Findings;
pub use crate::profiler::{NextProbe, Profiler};
