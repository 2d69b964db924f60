//! The interface of a replacement policy, and the table of all policies.
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
//! Frames in flight are never evicted. A policy skips them, and they keep their places in its
//! order. If all frames are in flight there is no victim.

use crate::residency::{FrameId, MAX_CAPACITY, Needs, Residency};
use crate::settings::{self, AlgorithmSettings, BadSettings, Named, Parameter};

pub(crate) mod admission;
pub mod arc;
pub mod du;
pub mod fifo;
pub mod lirs;
pub mod lru;
pub mod mq;
mod ring;
pub mod s3_fifo;
pub mod sarc;
pub mod sieve;
mod sketch;
pub mod w_tinylfu;

pub use admission::{AdmittedRun, FirstTouch, Refusal, Verdict, Veto};

/// The access pattern of a block, as the level's prefetcher sees it. Only SARC uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// No pattern.
    Random,
    /// Part of a sequential run.
    Sequential,
}

/// The kind of a demand for a resident block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The first demand for a block that was fetched ahead. Policies that count references do not
    /// count it, because the block was inserted for it.
    First,
    /// A repeated demand.
    Again,
}

/// A policy's own note about a remembered block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GhostTag(pub u8);

impl GhostTag {
    /// The block was not remembered.
    pub const NONE: Self = Self(0);
}

/// A replacement policy. The same calls give the same answers on every machine.
pub trait Replacement: Send {
    /// The entries and lists that the policy needs.
    fn needs(&self) -> Needs;

    /// Runs a trace of demands for single blocks, each read complete at once, and counts the hits.
    /// Miss ratios are measured with it. It is a trait method so that each policy has a loop
    /// without dynamic dispatch.
    fn replay(&mut self, residency: &mut Residency, blocks: &[u64]) -> Result<u64, Refusal> {
        admission::replay(self, residency, blocks)
    }

    /// Gives absent blocks frames, and evicts others for them. It is a trait method for the same
    /// reason.
    ///
    /// # Errors
    /// As [`Cache::admit_run`](crate::Cache::admit_run).
    fn admit_run(
        &mut self,
        residency: &mut Residency,
        coming: &AdmittedRun,
        leave: &mut dyn FnMut(&Residency, FrameId, Veto) -> Verdict,
        frames: &mut Vec<FrameId>,
    ) -> Result<(), Refusal> {
        admission::admit_run(self, residency, coming, leave, frames)
    }

    /// Reads an entry that will be touched soon, its neighbours, and the policy's note, to warm the
    /// processor's cache. The returned value depends on all reads and has no other meaning.
    fn warm(&self, residency: &Residency, frame: FrameId) -> u64 {
        residency.warm_neighbours(frame)
    }

    /// Reads the entries that the next eviction will need, as [`Replacement::warm`] does.
    fn warm_next(&self, _residency: &Residency) -> u64 {
        0
    }

    /// Notes that a demand found the block resident.
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, pattern: Pattern);

    /// Removes a remembered entry from the policy's lists, because its block becomes resident.
    /// Returns the policy's note about it.
    fn recall(&mut self, residency: &mut Residency, frame: FrameId) -> GhostTag {
        unreachable!("{frame:?} of {residency:p} is remembered by a policy that remembers nothing")
    }

    /// The frame to evict for a block with this note. The frame keeps its place until [`evict`] or
    /// [`refresh`] follows. `None` if all frames are in flight.
    ///
    /// [`evict`]: Replacement::evict
    /// [`refresh`]: Replacement::refresh
    fn victim(&mut self, residency: &mut Residency, coming: GhostTag) -> Option<FrameId>;

    /// Removes an evicted frame from the policy's lists, and remembers or forgets its block.
    fn evict(&mut self, residency: &mut Residency, frame: FrameId);

    /// Adds a frame whose block became resident.
    fn insert(
        &mut self,
        residency: &mut Residency,
        frame: FrameId,
        pattern: Pattern,
        memory: GhostTag,
    );

    /// Makes a frame the newest without a demand: AMP's second chance, SARC's remedy for its
    /// triggers.
    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, pattern: Pattern);

    /// Notes that the block was sent upwards, in answer to a request.
    fn sent(&mut self, _residency: &mut Residency, _frame: FrameId) {}

    /// Removes a frame without an effect on the statistics: the read failed, or the contents are
    /// void.
    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId);

    /// Notes that a demand missed a block of a sequential run.
    fn sequential_miss(&mut self) {}
}

/// An entry of the table of policies.
pub struct ReplacementEntry {
    /// The name for users.
    pub name: &'static str,
    /// The policy in one sentence.
    pub what: &'static str,
    /// The publication that describes the policy.
    pub source: &'static str,
    /// The parameters.
    pub parameters: &'static [Parameter],
    /// The constructor, for a number of frames.
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

/// The reason that a policy or cache cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReplacement {
    /// The policy or a parameter is unknown.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// No cache has this size.
    #[error("a cache of {0} blocks: expected 1 to {MAX_CAPACITY}")]
    Capacity(u64),
}

/// All policies. Help texts, experiments and the conformance tests come from this table.
pub const ALL: &[ReplacementEntry] = &[
    ReplacementEntry {
        name: "lru",
        what: "The block that nobody has asked for the longest goes.",
        source: "Mattson et al., IBM Systems Journal 1970",
        parameters: &[],
        make: |_, _| Box::new(lru::Lru::new()),
    },
    ReplacementEntry {
        name: "fifo",
        what: "The block that came first goes, however often it was asked for.",
        source: "Belady, IBM Systems Journal 1966",
        parameters: &[],
        make: |_, _| Box::new(fifo::Fifo::new()),
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

/// Makes the policy that a user names, as in `s3-fifo(small=200)`, for `capacity` frames.
///
/// # Errors
/// If the policy or a parameter is unknown, or no cache has that size.
pub fn named(text: &str, capacity: u64) -> Result<Box<dyn Replacement>, BadReplacement> {
    let (entry, settings) = settings::find("replacement", text, ALL)?;
    Ok((entry.make)(frames(capacity)?, &settings))
}

/// The frames of a cache of this capacity.
///
/// # Errors
/// If no cache has that size.
pub(crate) fn frames(capacity: u64) -> Result<u32, BadReplacement> {
    match u32::try_from(capacity) {
        Ok(frames) if (1..=MAX_CAPACITY).contains(&frames) => Ok(frames),
        _ => Err(BadReplacement::Capacity(capacity)),
    }
}

/// A share of the frames in thousandths, rounded down.
fn share(capacity: u32, thousandths: u64) -> u32 {
    (u64::from(capacity) * thousandths / 1000) as u32
}
