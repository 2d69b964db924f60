//! The interface of a prefetcher, and the table of all prefetchers.
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
//!     |  on_silent_use(run)                        |   only if the coordinator reports it
//! ```
//!
//! A prefetcher never sees a clock or a byte. Its advice may contain blocks that are resident,
//! requested or past the end: [`absent_runs`] removes them.

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

/// Whether all blocks of a request are resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupResult {
    /// Every block has a frame.
    All,
    /// At least one block has no frame.
    NotAll,
}

/// A request as a prefetcher sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The client of the request.
    pub client: u32,
    /// The file, or the volume of a trace without files.
    pub file: u64,
    /// The blocks; never empty, within `within`.
    pub blocks: Interval,
    /// All blocks of the file, or of the device if files are unknown.
    pub within: Interval,
    /// Whether all blocks are resident.
    pub found: LookupResult,
}

/// The message of a prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchMode {
    /// In the same message and I/O as the request's missing blocks.
    Sync,
    /// In a message and I/O of its own, for which no request waits.
    Async,
}

/// Blocks to fetch ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The blocks. Some may be resident, requested, or past the end.
    pub blocks: Interval,
    /// The message.
    pub mode: FetchMode,
}

/// A note to the replacement policy; only SARC's uses it (specification, 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// These blocks belong to a sequence: they are placed in SEQ.
    Sequential(Interval),
    /// A block that begins or continues a sequence was missed.
    SequentialMiss(u64),
    /// These blocks move to the most recent end of SEQ, if they are cached.
    Refresh(Interval),
}

/// The answer of a prefetcher. The caller reuses it, so that no request allocates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// The blocks to fetch, in order.
    pub ahead: Vec<Ahead>,
    /// The notes to the replacement policy.
    pub notes: Vec<Note>,
}

/// Whether a request waits for the first block of a completed prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchWaiter {
    /// A request waits for it.
    Reader,
    /// No request waits for it.
    Nobody,
}

/// A prefetcher. The same calls give the same answers on every machine.
pub trait Prefetcher: Send {
    /// Handles a request, and appends to `advice`. `residency` is the cache before the request.
    fn on_request(&mut self, seen: &Seen, residency: &Residency, advice: &mut Advice);

    /// Notes that prefetched blocks have arrived, as one I/O.
    fn on_prefetch_complete(&mut self, _blocks: Interval, _waiting: PrefetchWaiter) {}

    /// Decides about a block that is to be evicted. It is gone after [`Verdict::Evict`].
    fn on_evict(&mut self, _block: u64) -> Verdict {
        Verdict::Evict
    }

    /// Notes that blocks were used silently. Only some coordinators report this.
    fn on_silent_use(&mut self, _seen: &Seen) {}

    /// The meaning of the first demand for a prefetched block to the replacement policy.
    fn first_touch(&self) -> FirstTouch {
        FirstTouch::Insertion
    }
}

/// The environment of a prefetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Frames of the cache.
    pub frames: u64,
}

/// The number of a request's blocks that are processed one by one (16 MiB); the rest is read
/// without prefetching. A choice: far above the requests of block layers, and a bound on the time
/// of one request. That grows with its square if each page begins a window.
pub const LONGEST_WALK: u64 = 1 << 12;

impl Seen {
    /// The message of an answer to this request: with the missing blocks, if there are any.
    pub fn mode(&self) -> FetchMode {
        match self.found {
            LookupResult::All => FetchMode::Async,
            LookupResult::NotAll => FetchMode::Sync,
        }
    }

    /// The blocks that are processed one by one.
    pub(crate) fn walk(&self) -> Interval {
        let walked = Interval::of(self.blocks.first, LONGEST_WALK);
        Interval::new(self.blocks.first, self.blocks.last.min(walked.last))
    }
}

impl Advice {
    /// Clears the advice, and keeps the memory.
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

/// The `count` blocks after `block`; none at the end of all block numbers.
pub fn following(block: u64, count: u64) -> Interval {
    match block.checked_add(1) {
        Some(first) => Interval::of(first, count),
        None => Interval::EMPTY,
    }
}

/// The maximal runs of `wanted` that are in the file, not in the request and not resident: one I/O
/// each. At most [`LONGEST_WALK`] blocks are checked.
pub fn absent_runs(
    wanted: Interval,
    seen: &Seen,
    residency: &Residency,
    mut fetch: impl FnMut(Interval),
) {
    let wanted = wanted.intersection(seen.within);
    let wanted = wanted.intersection(Interval::of(wanted.first, LONGEST_WALK));
    let mut near = residency.neighbours(wanted.first);
    let mut begun: Option<u64> = None;
    for block in wanted.blocks() {
        let is_wanted = !seen.blocks.contains(block) && !near.is_resident(block);
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

/// Makes a prefetcher from its name and parameters, such as `ra(p=8)`.
///
/// # Errors
/// If the prefetcher or a parameter is unknown, or a value is not legal.
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

/// The constructor of a prefetcher.
pub type Make = fn(&AlgorithmSettings, &Site) -> Box<dyn Prefetcher>;

#[cfg(test)]
mod tests;
