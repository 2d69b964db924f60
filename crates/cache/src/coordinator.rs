//! What stands between two levels: it looks at what the upper level asks for and at what the lower one
//! has, and lets blocks past the lower level, or asks it for more than was asked.
//!
//! ```text
//!   asked:        | su ........................ eu |
//!   plan:         | DIRECT: bypass | NATIVE ...... | readmore |
//!                  read past the     an ordinary request of the lower level; the upper one is sent
//!                  lower cache       what it asked for, and waits for that alone
//! ```
//!
//! A block of DIRECT that the lower cache has is copied from there, without its replacement and
//! prefetcher being told; the others are read from below and are not kept. With more than two levels
//! there is one coordinator in front of each but the first: what one level sends down is asked of the
//! next.

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

/// What the upper level asks the lower one for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperRequest {
    /// Who asks.
    pub client: u32,
    /// For which file, or which volume of a trace that has no files.
    pub file: u64,
    /// Which blocks; never empty, within `within`.
    pub blocks: Interval,
    /// All blocks of the file, or of the device where files are not known.
    pub within: Interval,
    /// What for.
    pub purpose: Purpose,
    /// Which way the bytes go.
    pub direction: Direction,
}

/// What the upper level wants blocks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Somebody waits for some of them. What the upper prefetcher adds to the same message counts as
    /// part of it.
    Demand,
    /// Its prefetcher asks, in a message of its own.
    Prefetch,
}

/// How a request is served by the lower level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestPlan {
    /// So many of the first blocks are read past the lower cache; at most those that were asked for.
    pub bypass: u64,
    /// So many blocks behind those that were asked for are part of the lower level's request.
    pub readmore: u64,
    /// Handed back with the answer: for coordinators that watch themselves.
    pub tag: Tag,
}

/// What a coordinator wants to know of a request when its answer comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag(pub(crate) u32);

/// What does not change from request to request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manners {
    /// What the replacement learns of a block of DIRECT that is in the lower cache.
    pub silent_hits: SilentHits,
    /// Whether the prefetcher learns of DIRECT.
    pub silent_use: SilentUse,
    /// What the added blocks are to the lower level.
    pub readmore: ReadmoreAs,
    /// Whether a request of no blocks reaches the lower level.
    pub empty_native: EmptyNative,
    /// How DIRECT and NATIVE reach the disk.
    pub submissions: Submissions,
    /// What becomes of blocks that were sent to the upper level.
    pub sent: Retention,
}

/// What the replacement learns of a block of DIRECT that is in the lower cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SilentHits {
    /// Nothing.
    #[default]
    Unseen,
    /// That there was a demand.
    Touched,
}

/// Whether the prefetcher learns of DIRECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SilentUse {
    /// No.
    #[default]
    Hidden,
    /// Yes: `on_silent_use`.
    Told,
}

/// What added blocks are to the lower level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadmoreAs {
    /// As if they had been asked for.
    #[default]
    Demand,
    /// As if the prefetcher had asked for them.
    Prefetch,
}

/// Whether a request of no blocks reaches the lower level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyNative {
    /// No.
    #[default]
    Skipped,
    /// The prefetcher sees what was asked for, and fetches ahead of that.
    Seen,
}

/// How DIRECT and NATIVE reach the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Submissions {
    /// One after the other; its scheduler may merge them.
    #[default]
    Two,
    /// As one where they touch.
    One,
}

/// What becomes of blocks that were sent to the upper level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// They stay where they are.
    #[default]
    Kept,
    /// They are marked as the first to be evicted, as far as the replacement does that.
    Marked,
}

/// Looks at what a level is asked for. The same calls give the same answers on every machine.
pub trait Coordinator: Send {
    /// How this request, that comes now, is to be served. `lower` is the lower cache as it was before the
    /// request.
    fn plan(&mut self, now: Instant, asked: &UpperRequest, lower: &Residency) -> RequestPlan;

    /// What does not change from request to request.
    fn manners(&self) -> Manners {
        Manners::default()
    }

    /// All that was asked for has been sent; whoever asked had waited so long.
    fn on_answered(&mut self, _asked: &UpperRequest, _plan: RequestPlan, _waited: Duration) {}

    /// A block left the lower cache.
    fn on_evicted(&mut self, _evicted: &Evicted) {}

    /// The memory that it occupies.
    fn footprint(&self) -> Footprint {
        Footprint::default()
    }
}

/// What a coordinator is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Below {
    /// Frames of the lower cache.
    pub frames: u32,
}

/// A longer request (256 MiB) is served as if there were no coordinator, and it learns nothing from
/// it. A choice: far above what block layers send, and a bound on the time that a request can take.
pub const LONGEST_REQUEST: u64 = 1 << 16;

impl RequestPlan {
    /// The blocks that are read past the lower cache.
    pub fn direct(&self, asked: &UpperRequest) -> Interval {
        Interval::of(asked.blocks.first, self.bypass.min(asked.blocks.len()))
    }

    /// The request of the lower level; empty if nothing is left of it.
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

/// A coordinator by the name and the parameters that a user wrote, as `pfc(a3=half)`.
///
/// # Errors
/// If there is no such coordinator or parameter, or a value is not one that it takes.
pub fn make(text: &str, below: &Below) -> Result<Box<dyn Coordinator>, BadSettings> {
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

/// How a coordinator is made.
pub type Make = fn(&AlgorithmSettings, &Below) -> Box<dyn Coordinator>;

#[cfg(test)]
mod tests;
