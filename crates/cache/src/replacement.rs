//! What a replacement policy is told, what it answers, and the table of all of them.
//!
//! ```text
//!   cache                                              policy
//!     |  touch(frame)                                    |   a demand found its block resident
//!     |------------------------------------------------->|
//!     |  recall(frame)      if the block is remembered   |   a block is to become resident
//!     |  victim(memory)     while no frame is free       |
//!     |  evict(victim)   or   refresh(victim)            |   second chance
//!     |  insert(frame, arrival)                          |
//!     |------------------------------------------------->|
//! ```
//!
//! Frames in flight are never evicted: a policy passes over them as if they were not there, and they
//! keep their places in its order. When all frames are in flight there is no victim.

use crate::residency::{FrameId, MAX_CAPACITY, Needs, Residency};
use crate::settings::{self, AlgorithmSettings, BadSettings, Named, Parameter};

pub(crate) mod admission;
pub mod arc;
pub mod du;
pub mod lirs;
pub mod lru;
pub mod mq;
mod ring;
pub mod s3_fifo;
pub mod sarc;
pub mod sieve;
mod sketch;
pub mod w_tinylfu;

pub use admission::{ComingRun, FirstTouch, Leaving, Refusal, Verdict};

/// What a level's prefetcher takes a block for. Only SARC asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Nothing in particular.
    Random,
    /// Part of a sequential run.
    Sequential,
}

/// What a demand for a resident block means to the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The first demand for a block that was fetched ahead: policies that count references do not
    /// count it, because it is what the block was inserted for.
    First,
    /// The block was asked for before.
    Again,
}

/// What a policy knew of a block that it remembered; each policy's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GhostTag(pub u8);

impl GhostTag {
    /// The block is new.
    pub const NONE: Self = Self(0);
}

/// Which block should go next. The same calls give the same answers on every machine.
pub trait Replacement: Send {
    /// What it wants of the entries.
    fn needs(&self) -> Needs;

    /// Runs a whole trace of demands for single blocks through the cache, each read complete at
    /// once, and counts the hits: what miss ratios are measured with. It stands here so that each
    /// policy has a loop of its own, without a call through a table for each block.
    fn replay(&mut self, residency: &mut Residency, blocks: &[u64]) -> Result<u64, Refusal> {
        admission::replay(self, residency, blocks)
    }

    /// Gives absent blocks frames, for which others may go. It stands here for the same reason.
    ///
    /// # Errors
    /// As [`Cache::admit_run`](crate::Cache::admit_run).
    fn admit_run(
        &mut self,
        residency: &mut Residency,
        coming: &ComingRun,
        leave: &mut dyn FnMut(&Residency, FrameId, Leaving) -> Verdict,
        frames: &mut Vec<FrameId>,
    ) -> Result<(), Refusal> {
        admission::admit_run(self, residency, coming, leave, frames)
    }

    /// Reads an entry that will be touched soon, its neighbours, and what the policy keeps of it, so that
    /// the processor has them at hand: done for several entries, it waits for all of them at once. What it
    /// answers means nothing, but depends on all that was read.
    fn warm(&self, residency: &Residency, frame: FrameId) -> u64 {
        residency.warm_neighbours(frame)
    }

    /// The same for what the next eviction will need.
    fn warm_next(&self, _residency: &Residency) -> u64 {
        0
    }

    /// A demand found the block resident.
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, pattern: Pattern);

    /// The block of an entry that is remembered becomes resident: the policy takes the entry out of
    /// its lists, without forgetting it, and learns what it wants.
    fn recall(&mut self, residency: &mut Residency, frame: FrameId) -> GhostTag {
        unreachable!("{frame:?} of {residency:p} is remembered by a policy that remembers nothing")
    }

    /// Which frame should go for a block of which this is known. It stays where it is: [`evict`] or
    /// [`refresh`] follows. There is none if all frames are in flight.
    ///
    /// [`evict`]: Replacement::evict
    /// [`refresh`]: Replacement::refresh
    fn victim(&mut self, residency: &mut Residency, coming: GhostTag) -> Option<FrameId>;

    /// The frame goes: the policy takes it out of its lists, and remembers or forgets the block.
    fn evict(&mut self, residency: &mut Residency, frame: FrameId);

    /// The block has a frame now.
    fn insert(
        &mut self,
        residency: &mut Residency,
        frame: FrameId,
        pattern: Pattern,
        memory: GhostTag,
    );

    /// The frame counts as newest, although nobody asked for it: AMP's second chance, SARC's
    /// remedy for its triggers.
    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, pattern: Pattern);

    /// The block was sent upwards, in answer to a request.
    fn sent(&mut self, _residency: &mut Residency, _frame: FrameId) {}

    /// The frame goes, and the policy learns nothing from it: the read failed, or the contents are
    /// void.
    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId);

    /// A demand missed a block that belongs to a sequential run.
    fn sequential_miss(&mut self) {}
}

/// One line of the table of policies.
pub struct ReplacementEntry {
    /// How users name it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Makes one for so many frames.
    make: fn(u32, &AlgorithmSettings) -> Box<dyn Replacement>,
}

impl Named for ReplacementEntry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }
}

/// Why there is no such policy, or no such cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReplacement {
    /// No policy is called so, or it cannot be set so.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// A size that no cache has.
    #[error("a cache of {0} blocks: expected 1 to {MAX_CAPACITY}")]
    Capacity(u64),
}

/// All policies: help texts, experiments and the conformance test are made from this table.
pub const ALL: &[ReplacementEntry] = &[
    ReplacementEntry {
        name: "lru",
        what: "The block that nobody has asked for the longest goes.",
        source: "Mattson et al., IBM Systems Journal 1970",
        parameters: &[],
        make: |_, _| Box::new(lru::Lru::new()),
    },
    ReplacementEntry {
        name: "du",
        what: "LRU, but what was just sent to the cache above goes first.",
        source: "Chen, Zhang, Zhou, Scott, Schiefer, SIGMETRICS 2005, as PFC describes it",
        parameters: du::PARAMETERS,
        make: |_, settings| Box::new(du::Du::new(settings)),
    },
    ReplacementEntry {
        name: "sarc",
        what: "Sequential blocks in a list of their own; the list whose bottom is worth more grows.",
        source: "Gill, Modha, USENIX ATC 2005",
        parameters: sarc::PARAMETERS,
        make: |capacity, settings| Box::new(sarc::Sarc::new(capacity, settings)),
    },
    ReplacementEntry {
        name: "arc",
        what: "Lists of blocks used once and more often; what both have lost divides the cache.",
        source: "Megiddo, Modha, FAST 2003",
        parameters: &[],
        make: |capacity, _| Box::new(arc::Arc::new(capacity)),
    },
    ReplacementEntry {
        name: "lirs",
        what: "Ranks blocks by the distance between their last two uses.",
        source: "Jiang, Zhang, SIGMETRICS 2002",
        parameters: lirs::PARAMETERS,
        make: |capacity, settings| Box::new(lirs::Lirs::new(capacity, settings)),
    },
    ReplacementEntry {
        name: "mq",
        what: "A queue for each power of two of uses; who is not used for a while comes down.",
        source: "Zhou, Philbin, Li, USENIX ATC 2001",
        parameters: mq::PARAMETERS,
        make: |capacity, settings| Box::new(mq::Mq::new(capacity, settings)),
    },
    ReplacementEntry {
        name: "s3-fifo",
        what: "New blocks pass through a small queue, and only those asked for again stay.",
        source: "Yang et al., SOSP 2023",
        parameters: s3_fifo::PARAMETERS,
        make: |capacity, settings| Box::new(s3_fifo::S3Fifo::new(capacity, settings)),
    },
    ReplacementEntry {
        name: "sieve",
        what: "A hand walks over one queue and takes what was not visited since it last came by.",
        source: "Zhang et al., NSDI 2024",
        parameters: &[],
        make: |_, _| Box::new(sieve::Sieve::new()),
    },
    ReplacementEntry {
        name: "w-tinylfu",
        what: "What leaves a small window must have been asked for more often than what would go.",
        source: "Einziger, Friedman, Manes, ACM Transactions on Storage 2017",
        parameters: w_tinylfu::PARAMETERS,
        make: |capacity, settings| Box::new(w_tinylfu::WTinyLfu::new(capacity, settings)),
    },
];

/// The policy that a user names, as in `s3-fifo(small=200)`, for so many frames.
///
/// # Errors
/// If no policy is called so, it cannot be set so, or no cache has that size.
pub fn named(text: &str, capacity: u64) -> Result<Box<dyn Replacement>, BadReplacement> {
    let (entry, settings) = settings::find("replacement", text, ALL)?;
    match u32::try_from(capacity) {
        Ok(frames) if (1..=MAX_CAPACITY).contains(&frames) => Ok((entry.make)(frames, &settings)),
        _ => Err(BadReplacement::Capacity(capacity)),
    }
}

/// So many thousandths of the frames, rounded down.
fn share(capacity: u32, thousandths: u64) -> u32 {
    (u64::from(capacity) * thousandths / 1000) as u32
}
