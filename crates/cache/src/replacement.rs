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

use crate::residency::{FrameId, Needs, Residency};

pub mod lru;

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
pub struct Memory(pub u8);

impl Memory {
    /// The block is new.
    pub const NONE: Self = Self(0);
}

/// Which block should go next. The same calls give the same answers on every machine.
pub trait Replacement: Send {
    /// What it wants of the entries.
    fn needs(&self) -> Needs;

    /// A demand found the block resident.
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, pattern: Pattern);

    /// The block of an entry that is remembered becomes resident: the policy takes the entry out of
    /// its lists, without forgetting it, and learns what it wants.
    fn recall(&mut self, residency: &mut Residency, frame: FrameId) -> Memory {
        unreachable!("{frame:?} of {residency:p} is remembered by a policy that remembers nothing")
    }

    /// Which frame should go for a block of which this is known. It stays where it is: [`evict`] or
    /// [`refresh`] follows. There is none if all frames are in flight.
    ///
    /// [`evict`]: Replacement::evict
    /// [`refresh`]: Replacement::refresh
    fn victim(&mut self, residency: &mut Residency, coming: Memory) -> Option<FrameId>;

    /// The frame goes: the policy takes it out of its lists, and remembers or forgets the block.
    fn evict(&mut self, residency: &mut Residency, frame: FrameId);

    /// The block has a frame now.
    fn insert(
        &mut self,
        residency: &mut Residency,
        frame: FrameId,
        pattern: Pattern,
        memory: Memory,
    );

    /// The frame counts as newest, although nobody asked for it: AMP's second chance, SARC's
    /// remedy for its triggers.
    fn refresh(&mut self, residency: &mut Residency, frame: FrameId);

    /// The block was sent upwards, in answer to a request.
    fn sent(&mut self, _residency: &mut Residency, _frame: FrameId) {}

    /// The frame goes, and the policy learns nothing from it: the read failed, or the contents are
    /// void.
    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId);

    /// A demand missed a block that belongs to a sequential run.
    fn sequential_miss(&mut self) {}
}
