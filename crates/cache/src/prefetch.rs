//! What is fetched ahead: what a prefetcher is told, what it answers, and the table of all of them.
//!
//! ```text
//!   level                                        prefetcher
//!     |  on_request(seen, residency)                |   the cache as it was before the request
//!     |------------------------------------------->|
//!     |     advice: intervals, notes               |
//!     |<-------------------------------------------|
//!     |  absent_runs(interval): clipped, filtered  |
//!     |  on_prefetch_complete(run, waiting)        |
//!     |  on_evict(block)  Evict | SecondChance     |
//!     |  on_silent_use(run)                        |   only where a coordinator tells
//! ```
//!
//! A prefetcher never sees a clock or a byte. It may ask for blocks that are cached, requested or
//! past the end: [`absent_runs`] takes those out.

use crate::replacement::{FirstTouch, Verdict};
use crate::residency::Residency;
use crate::settings::{AlgorithmSettings, Parameter};
use block::Interval;

pub mod amp;
pub mod context;
pub mod linux_2_4;
pub mod linux_2_6;
pub mod linux_6;
pub mod none;
pub mod obl;
pub mod ra;
pub mod sarc;
mod table;

pub use table::{ALL, PrefetcherEntry};

/// Whether a request found all that it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupResult {
    /// Every block has a frame.
    All,
    /// A block at least has none.
    NotAll,
}

/// A request as a prefetcher sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Who asks.
    pub client: u32,
    /// The file, or the volume of a trace that has no files.
    pub file: u64,
    /// What is asked for; never empty, within `within`.
    pub blocks: Interval,
    /// All blocks of the file, or of the device where files are not known.
    pub within: Interval,
    /// Whether all of it is there.
    pub found: LookupResult,
}

/// How blocks are fetched ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchMode {
    /// In the same message and I/O as the request's missing blocks.
    Sync,
    /// In a message and an I/O of its own; nobody waits for it.
    Async,
}

/// Blocks to be fetched ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Which. Some may be cached, requested, or past the end.
    pub blocks: Interval,
    /// How.
    pub mode: FetchMode,
}

/// What the replacement is told; only SARC's listens (specification, 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// These blocks belong to a sequence: they are placed in SEQ.
    Sequential(Interval),
    /// A block that begins or continues a sequence was missed.
    SequentialMiss(u64),
    /// These blocks move to the most recent end of SEQ, as far as they are cached.
    Refresh(Interval),
}

/// What a prefetcher answers. The caller keeps it, so that no request allocates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// What to fetch, in the order in which it is to be asked for.
    pub ahead: Vec<Ahead>,
    /// What to tell the replacement.
    pub notes: Vec<Note>,
}

/// Whether somebody waits for the first block of a prefetch that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchWaiter {
    /// A request does.
    Reader,
    /// Nobody does.
    Nobody,
}

/// Decides what is fetched ahead. The same calls give the same answers on every machine.
pub trait Prefetcher: Send {
    /// A request came. `residency` is the cache as it was before the request. The answer is added to
    /// `advice`.
    fn on_request(&mut self, seen: &Seen, residency: &Residency, advice: &mut Advice);

    /// Blocks that were fetched ahead have arrived, as one I/O.
    fn on_prefetch_complete(&mut self, _blocks: Interval, _waiting: PrefetchWaiter) {}

    /// A block is about to be evicted. After [`Verdict::Evict`] it is gone.
    fn on_evict(&mut self, _block: u64) -> Verdict {
        Verdict::Evict
    }

    /// Blocks were used without a request being seen: a coordinator says so where it is set to.
    fn on_silent_use(&mut self, _seen: &Seen) {}

    /// What the first demand for a prefetched block is to the replacement.
    fn first_touch(&self) -> FirstTouch {
        FirstTouch::Insertion
    }
}

/// What a prefetcher is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Frames of the cache.
    pub frames: u64,
}

/// No request is looked at page by page beyond so many blocks (16 MiB); the rest of a longer one is
/// read without prefetching. A choice: far above what block layers send, and a bound on the time
/// that one request can take, which grows with its square where each page begins a window.
pub const LONGEST_WALK: u64 = 1 << 12;

impl Seen {
    /// How an answer to this request travels: with the missing blocks, if there are any.
    pub fn mode(&self) -> FetchMode {
        match self.found {
            LookupResult::All => FetchMode::Async,
            LookupResult::NotAll => FetchMode::Sync,
        }
    }

    /// Its blocks, as far as they are looked at one by one.
    pub(crate) fn walk(&self) -> Interval {
        let walked = Interval::of(self.blocks.first, LONGEST_WALK);
        Interval::new(self.blocks.first, self.blocks.last.min(walked.last))
    }
}

impl Advice {
    /// Forgets all, keeps the memory.
    pub fn clear(&mut self) {
        self.ahead.clear();
        self.notes.clear();
    }

    /// Adds blocks to fetch, if there are any.
    pub(crate) fn fetch(&mut self, blocks: Interval, mode: FetchMode) {
        if !blocks.is_empty() {
            self.ahead.push(Ahead { blocks, mode });
        }
    }
}

/// The `count` blocks that follow `block`; none at the end of all block numbers.
pub fn following(block: u64, count: u64) -> Interval {
    match block.checked_add(1) {
        Some(first) => Interval::of(first, count),
        None => Interval::EMPTY,
    }
}

/// What both have in common.
pub(crate) fn common(one: Interval, other: Interval) -> Interval {
    if one.is_empty() || other.is_empty() {
        return Interval::EMPTY;
    }
    Interval::new(one.first.max(other.first), one.last.min(other.last))
}

/// The maximal runs of `wanted` that are in the file, not in the request and not in the cache: each
/// is an I/O. No more than [`LONGEST_WALK`] blocks are looked at.
pub fn absent_runs(
    wanted: Interval,
    seen: &Seen,
    residency: &Residency,
    mut fetch: impl FnMut(Interval),
) {
    let wanted = common(wanted, seen.within);
    let wanted = common(wanted, Interval::of(wanted.first, LONGEST_WALK));
    let mut begun: Option<u64> = None;
    for block in wanted.blocks() {
        let is_wanted = !seen.blocks.contains(block) && !residency.is_resident(block);
        match (begun, is_wanted) {
            (None, true) => begun = Some(block),
            (Some(first), false) => {
                fetch(Interval::new(first, block - 1));
                begun = None;
            }
            _ => (),
        }
    }
    if let Some(first) = begun {
        fetch(Interval::new(first, wanted.last));
    }
}

/// A prefetcher by the name and the parameters that a user wrote, as `ra(p=8)`.
///
/// # Errors
/// If there is no such prefetcher or parameter, or a value is not one that it takes.
pub fn make(text: &str, site: &Site) -> Result<Box<dyn Prefetcher>, crate::settings::BadSettings> {
    let (entry, settings) = crate::settings::find("prefetcher", text, ALL)?;
    Ok((entry.make)(&settings, site))
}

impl crate::settings::Named for PrefetcherEntry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }
}

/// How a prefetcher is made.
pub type Make = fn(&AlgorithmSettings, &Site) -> Box<dyn Prefetcher>;

#[cfg(test)]
mod tests;
