//! One cache: residency and a policy, kept in step.
//!
//! It moves descriptors: a block that is admitted is in flight until the owner says that its read
//! is complete. Who waits for which read is the owner's affair.

use crate::replacement::{Memory, Pattern, Replacement, Touch};
use crate::residency::{FrameId, MAX_BLOCK, Origin, Residency, State};

/// What the prefetcher says of a block that is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it go.
    Evict,
    /// Keep it for another round: it becomes the newest. To be said once for each time that the
    /// block becomes resident; the cache asks each frame at most once for one block that comes.
    SecondChance,
}

/// A block that has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Which.
    pub block: u64,
    /// Why it was fetched.
    pub origin: Origin,
    /// Whether it was ever delivered upwards.
    pub was_used: bool,
    /// Whether it held what is not yet written below: the owner has to write it.
    pub was_dirty: bool,
}

/// Why a block got no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Every frame waits for its read.
    #[error("all frames are in flight: expected a read to complete first")]
    AllInFlight,
    /// There is no such block.
    #[error("block {0}: expected at most {MAX_BLOCK}")]
    NoSuchBlock(u64),
}

/// What the first demand for a block is that was fetched ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstTouch {
    /// What the block was inserted for: it becomes the newest where that is what touches do, and is
    /// not counted where references are counted. A choice; papers are silent.
    #[default]
    Insertion,
    /// A reference like any other.
    Reference,
    /// Nothing: the policy is not told. So under AMP (Gill, Bathen, FAST 2007).
    Unnoticed,
}

/// Residency and a policy.
pub struct Cache {
    residency: Residency,
    policy: Box<dyn Replacement>,
    first_touch: FirstTouch,
}

impl Cache {
    /// With so many frames, at least one and at most [`MAX_CAPACITY`](crate::residency::MAX_CAPACITY).
    ///
    /// # Panics
    /// If there is no frame, or more: who makes a cache has checked it.
    pub fn new(capacity: u32, policy: Box<dyn Replacement>, first_touch: FirstTouch) -> Self {
        Self {
            residency: Residency::new(capacity, policy.needs()),
            policy,
            first_touch,
        }
    }

    /// What is resident: for prefetchers and coordinators.
    pub fn residency(&self) -> &Residency {
        &self.residency
    }

    /// A demand for the block: the policy is told if it is resident. Says what there was.
    pub fn demand(&mut self, block: u64, pattern: Pattern) -> State {
        let Some(frame) = self.residency.frame(block) else {
            return State::Absent;
        };
        let touch = match (self.residency.touch(frame), self.first_touch) {
            (true, FirstTouch::Insertion) => Some(Touch::First),
            (true, FirstTouch::Unnoticed) => None,
            (true, FirstTouch::Reference) | (false, _) => Some(Touch::Again),
        };
        if let Some(touch) = touch {
            self.policy
                .touch(&mut self.residency, frame, touch, pattern);
        }
        self.residency.frame_state(frame)
    }

    /// A demand that the policy does not see: PFC's silent hit. Says what there was; a resident block counts as used.
    pub fn demand_silently(&mut self, block: u64) -> State {
        let Some(frame) = self.residency.frame(block) else {
            return State::Absent;
        };
        self.residency.set_used(frame);
        self.residency.frame_state(frame)
    }

    /// Gives an absent block a frame; it is in flight. `ask` is asked before another block goes for
    /// it. Says which one went.
    pub fn admit(
        &mut self,
        block: u64,
        origin: Origin,
        pattern: Pattern,
        mut ask: impl FnMut(&Residency, FrameId) -> Verdict,
    ) -> Result<Option<Evicted>, Refusal> {
        let residency = &mut self.residency;
        if block > MAX_BLOCK {
            return Err(Refusal::NoSuchBlock(block));
        }
        if residency.in_flight() == residency.capacity() {
            return Err(Refusal::AllInFlight);
        }
        let known = residency.find(block);
        let memory = known.map_or(Memory::NONE, |frame| self.policy.recall(residency, frame));
        let mut evicted = None;
        let mut chances = residency.resident();
        while residency.is_full() {
            let victim = self.policy.victim(residency, memory);
            let victim = victim.expect("a frame that is not in flight");
            if chances > 0 && ask(residency, victim) == Verdict::SecondChance {
                chances -= 1;
                self.policy.refresh(residency, victim);
                continue;
            }
            evicted = Some(Evicted {
                block: residency.block(victim),
                origin: residency.origin(victim),
                was_used: residency.is_used(victim),
                was_dirty: residency.is_dirty(victim),
            });
            self.policy.evict(residency, victim);
        }
        let frame = residency.enter(block, known, origin);
        self.policy.insert(residency, frame, pattern, memory);
        Ok(evicted)
    }

    /// The read of the block is complete. Nothing happens if it is not in flight.
    pub fn complete(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.residency.complete(frame);
        }
    }

    /// The block is absent from now on, and the policy learns nothing from it: its read failed, or
    /// its contents are void. Nothing happens if it is not resident.
    pub fn withdraw(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.policy.withdraw(&mut self.residency, frame);
        }
    }

    /// The block was sent upwards in answer to a request: DU marks it.
    pub fn sent(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.policy.sent(&mut self.residency, frame);
        }
    }

    /// The block becomes the newest, although nobody asked for it: SARC does so with the rest of a
    /// group whose trigger fires.
    pub fn refresh(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.policy.refresh(&mut self.residency, frame);
        }
    }

    /// A demand missed a block that belongs to a sequential run.
    pub fn sequential_miss(&mut self) {
        self.policy.sequential_miss();
    }

    /// The block holds what is not yet written below.
    pub fn set_dirty(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.residency.set_dirty(frame);
        }
    }

    /// The block is the same below.
    pub fn set_clean(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.residency.set_clean(frame);
        }
    }
}
