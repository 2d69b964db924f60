//! Coordinators between two levels. A coordinator sees the requests of the upper level and the
//! residency of the lower one. It bypasses the lower level, or adds blocks to a request.
//!
//! ```text
//!   request:      | su ........................ eu |
//!   plan:         | DIRECT: bypass | NATIVE ...... | readmore |
//!                  read past the     a usual request of the lower level; the upper level
//!                  lower cache       receives its blocks, and waits for those alone
//! ```
//!
//! A resident DIRECT block is copied without notice to replacement and prefetcher. Other DIRECT
//! blocks are read from below and not kept. With more than two levels one coordinator precedes each
//! level but the first, and a level's fetches are requests of the next.

use block::{Direction, Duration, Instant};

use crate::cache::Evicted;
use crate::residency::Residency;
use crate::settings::{AlgorithmSettings, BadSettings, Named, Parameter};
use block::Interval;

pub mod adaptive;
pub mod du;
mod footprint;
pub mod none;
pub mod pfc;
mod queue;
mod table;

pub use footprint::Footprint;
pub use table::{ALL, CoordinatorEntry};

/// A request of the upper level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperRequest {
    /// The client of the request.
    pub client: u32,
    /// The file, or the volume of a trace without files.
    pub file: u64,
    /// The blocks; never empty, within `within`.
    pub blocks: Interval,
    /// All blocks of the file, or of the device if files are unknown.
    pub within: Interval,
    /// The purpose.
    pub purpose: Purpose,
    /// The direction of the transfer.
    pub direction: Direction,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A reader waits for some of the blocks. Blocks that the upper prefetcher adds to the same
    /// message are part of it.
    Demand,
    /// The upper level's prefetcher sent a message of its own.
    Prefetch,
}

/// The treatment of a request in the lower level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestPlan {
    /// The number of first blocks that are read past the lower cache; at most those of the request.
    pub bypass: u64,
    /// The number of blocks that are added behind the request.
    pub readmore: u64,
    /// A value that comes back with the answer, for coordinators that observe their own effect.
    pub tag: Tag,
}

/// A coordinator's note about a request, returned with the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag(pub(crate) u32);

/// The rules of a coordinator that hold for all requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoordinatorRules {
    /// The effect of a DIRECT hit on the replacement policy.
    pub silent_hits: SilentHits,
    /// Whether the prefetcher sees DIRECT blocks.
    pub silent_use: SilentUse,
    /// The treatment of added blocks in the lower level.
    pub readmore: ReadmoreAs,
    /// Whether the lower level sees a request without blocks.
    pub empty_native: EmptyNative,
    /// The submission of DIRECT and NATIVE to the disk.
    pub submissions: Submissions,
    /// The fetch of absent added blocks.
    pub readmore_fetch: ReadmoreFetch,
    /// The treatment of blocks that were sent to the upper level.
    pub sent: Retention,
}

/// The effect of a DIRECT hit on the replacement policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SilentHits {
    /// No effect.
    #[default]
    Unseen,
    /// The effect of a demand.
    Touched,
}

/// Whether the prefetcher sees DIRECT blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SilentUse {
    /// It does not.
    #[default]
    Hidden,
    /// It does, through `on_silent_use`.
    Reported,
}

/// The treatment of added blocks in the lower level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadmoreAs {
    /// As demands.
    #[default]
    Demand,
    /// As prefetches.
    Prefetch,
}

/// Whether the lower level sees a request without blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyNative {
    /// It does not.
    #[default]
    Skipped,
    /// The prefetcher sees the original request, and fetches ahead of it.
    Seen,
}

/// The submission of DIRECT and NATIVE to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Submissions {
    /// Two requests in order; the scheduler may merge them.
    #[default]
    Two,
    /// One request, if the two are adjacent.
    One,
}

/// The fetch of absent added blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadmoreFetch {
    /// They join the fetch of the requested blocks before them, and the requester waits for all of it.
    #[default]
    Joined,
    /// They are a fetch of their own. The level below does not merge it with others.
    Own,
}

/// The treatment of blocks that were sent to the upper level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// They keep their places.
    #[default]
    Kept,
    /// They are evicted first, if the replacement policy supports that.
    Marked,
}

/// A coordinator. The same calls give the same answers on every machine.
pub trait Coordinator: Send {
    /// The treatment of a request that arrives now. `lower` is the lower cache before the request.
    fn plan(&mut self, now: Instant, asked: &UpperRequest, lower: &Residency) -> RequestPlan;

    /// The rules that hold for all requests.
    fn rules(&self) -> CoordinatorRules {
        CoordinatorRules::default()
    }

    /// Notes that all requested blocks were sent, after the requester had waited for `_waited`.
    fn on_answered(&mut self, _asked: &UpperRequest, _plan: RequestPlan, _waited: Duration) {}

    /// Notes that the lower cache evicted a block.
    fn on_evicted(&mut self, _evicted: &Evicted) {}

    /// The memory of the coordinator.
    fn footprint(&self) -> Footprint {
        Footprint::default()
    }
}

/// The environment of a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowerCache {
    /// Frames of the lower cache.
    pub frames: u32,
}

/// The longest request in blocks (256 MiB) that a coordinator sees. Longer ones are served without
/// it, and it learns nothing from them. A choice: far above the requests of block layers, and a
/// bound on the time per request.
pub const LONGEST_REQUEST: u64 = 1 << 16;

impl RequestPlan {
    /// The blocks that are read past the lower cache.
    pub fn direct(&self, asked: &UpperRequest) -> Interval {
        Interval::of(asked.blocks.first, self.bypass.min(asked.blocks.len()))
    }

    /// The request of the lower level; empty if the bypass covers all.
    pub fn native(&self, asked: &UpperRequest) -> Interval {
        let end = asked.blocks.last.saturating_add(self.readmore);
        let last = end.min(asked.within.last).max(asked.blocks.last);
        match asked
            .blocks
            .first
            .checked_add(self.bypass.min(asked.blocks.len()))
        {
            Some(first) => Interval::new(first, last),
            None => Interval::EMPTY,
        }
    }
}

/// Makes a coordinator from its name and parameters, such as `pfc(a3=half)`.
///
/// # Errors
/// If the coordinator or a parameter is unknown, or a value is not legal.
pub fn make(text: &str, below: &LowerCache) -> Result<Box<dyn Coordinator>, BadSettings> {
    let (entry, settings) = crate::settings::find("coordinator", text, ALL)?;
    Ok((entry.make)(&settings, below))
}

impl Named for CoordinatorEntry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }
}

/// The constructor of a coordinator.
pub type Make = fn(&AlgorithmSettings, &LowerCache) -> Box<dyn Coordinator>;

#[cfg(test)]
mod tests;
