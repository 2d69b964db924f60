//! Free blocks: background reads in the rotational latency of foreground requests.
//!
//! ```text
//!   without   A |== seek A -> B ==|......... latency .........|== B ==|
//!   with      A |= seek A -> X =|..|== free ==|= seek X -> B =|..|== B ==|
//! ```
//!
//! Lumb, Schindler, Ganger, "Freeblock Scheduling Outside of Disk Firmware", FAST 2002; Lumb et
//! al., "Towards Higher Disk Head Utilization", OSDI 2000. A [`Gap`] precedes a foreground request.
//! A [`GapPlan`] holds the reads in it. [`WantedBlocks`] is the set of blocks worth reading.

pub mod conservatism;
pub mod gap;
pub mod lateness;
pub mod plan;
pub mod planner;
pub mod same_track;
pub mod wanted;

pub use conservatism::{
    Caution, Conservatism, Delay, GapGroup, GapUse, Losses, ObservedSeek, PlanKind,
};
pub use gap::{Delivery, Gap, Goal, Guard, Merging, PlanRules, Ranges, SameTrack, SlowBus};
pub use lateness::Lateness;
pub use plan::{GapPlan, Kind, Stop};
pub use planner::{ANYTIME_TRACKS, Planner};
pub use same_track::SameTrackRule;
pub use wanted::{DecodeError, PastEnd, WantedBlocks};
