//! One cache: residency and a replacement policy, kept consistent.
//!
//! The cache moves descriptors. An admitted block is in flight until the owner reports that its
//! read is complete. The owner tracks the requests that wait for reads.

use crate::replacement::admission::{AdmittedBlock, admit, touch};
use crate::replacement::{
    self, AdmittedRun, BadReplacement, FirstTouch, Pattern, Refusal, Replacement, Verdict, Veto,
};
use crate::residency::{BlockState, FetchOrigin, FrameId, Residency};

/// A block that was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The number of the block.
    pub block: u64,
    /// The reason of its fetch.
    pub origin: FetchOrigin,
    /// Whether it was ever delivered upwards.
    pub was_used: bool,
}

/// Residency and a replacement policy.
pub struct Cache {
    residency: Residency,
    policy: Box<dyn Replacement>,
    first_touch: FirstTouch,
}

impl Cache {
    /// A cache with `capacity` frames and the policy that a user names.
    ///
    /// # Errors
    /// If the policy or a parameter is unknown, or no cache has that size.
    pub fn named(
        policy: &str,
        capacity: u64,
        first_touch: FirstTouch,
    ) -> Result<Self, BadReplacement> {
        let policy = replacement::named(policy, capacity)?;
        Ok(Self::of(policy, capacity as u32, first_touch))
    }

    /// A cache with `capacity` frames, at least one, and a policy made for that number.
    pub(crate) fn of(policy: Box<dyn Replacement>, capacity: u32, first_touch: FirstTouch) -> Self {
        Self {
            residency: Residency::new(capacity, policy.needs()),
            policy,
            first_touch,
        }
    }

    /// The resident blocks, for prefetchers and coordinators.
    pub fn residency(&self) -> &Residency {
        &self.residency
    }

    /// Demands a block, and returns its former state. The policy sees the demand if the block is
    /// resident.
    pub fn demand(&mut self, block: u64, pattern: Pattern) -> BlockState {
        match self.residency.frame(block) {
            Some(frame) => self.demand_frame(frame, pattern),
            None => BlockState::Absent,
        }
    }

    /// [`Cache::demand`] for the block of a frame that the caller has looked up.
    pub fn demand_frame(&mut self, frame: FrameId, pattern: Pattern) -> BlockState {
        let policy = &mut *self.policy;
        let residency = &mut self.residency;
        touch(policy, residency, frame, pattern, self.first_touch);
        residency.frame_state(frame)
    }

    /// Demands a block without the policy (PFC's silent hit), and returns its former state. A
    /// resident block counts as used.
    pub fn demand_silently(&mut self, block: u64) -> BlockState {
        match self.residency.frame(block) {
            Some(frame) => self.demand_frame_silently(frame),
            None => BlockState::Absent,
        }
    }

    /// [`Cache::demand_silently`] for the block of a frame that the caller has looked up.
    pub fn demand_frame_silently(&mut self, frame: FrameId) -> BlockState {
        self.residency.set_used(frame);
        self.residency.frame_state(frame)
    }

    /// Touches a resident block that a coordinator added to a request. The block does not count as
    /// used.
    pub fn touch_unused(&mut self, block: u64, pattern: Pattern) {
        if let Some(frame) = self.residency.frame(block) {
            self.touch_frame_unused(frame, pattern);
        }
    }

    /// [`Cache::touch_unused`] for the block of a frame that the caller has looked up.
    pub fn touch_frame_unused(&mut self, frame: FrameId, pattern: Pattern) {
        let was_used = self.residency.is_used(frame);
        self.demand_frame(frame, pattern);
        self.residency.set_use(frame, was_used);
    }

    /// Gives an absent block a frame, in flight. `ask` may veto the eviction of another block.
    /// Returns the evicted block.
    ///
    /// # Errors
    /// If all frames are in flight, the block does not exist, or it is resident.
    pub fn admit(
        &mut self,
        block: u64,
        origin: FetchOrigin,
        pattern: Pattern,
        mut ask: impl FnMut(&Residency, FrameId) -> Verdict,
    ) -> Result<Option<Evicted>, Refusal> {
        let known = self.residency.find(block);
        if known.is_some_and(|frame| self.residency.is_kept(frame)) {
            return Err(Refusal::Resident(block));
        }
        let admitted = AdmittedBlock {
            block,
            known,
            origin,
            pattern,
        };
        let mut evicted = None;
        let leave = |residency: &Residency, victim, leaving| {
            let verdict = match leaving {
                Veto::Possible => ask(residency, victim),
                Veto::Impossible => Verdict::Evict,
            };
            if verdict == Verdict::Evict {
                evicted = Some(Evicted::from(residency, victim));
            }
            verdict
        };
        admit(&mut *self.policy, &mut self.residency, admitted, leave)?;
        Ok(evicted)
    }

    /// [`Cache::admit`] for consecutive blocks that are absent. `leave` may veto each eviction; a
    /// block is gone after [`Verdict::Evict`]. Appends the frames to `frames`, in the order of the
    /// blocks.
    ///
    /// # Errors
    /// If all frames are in flight, or a block does not exist. The blocks before that one have
    /// frames.
    #[inline]
    pub fn admit_run(
        &mut self,
        admitted: &AdmittedRun,
        leave: &mut dyn FnMut(&Residency, FrameId, Veto) -> Verdict,
        frames: &mut Vec<FrameId>,
    ) -> Result<(), Refusal> {
        let residency = &mut self.residency;
        self.policy.admit_run(residency, admitted, leave, frames)
    }

    /// Completes the read of a block. No effect if the block is not in flight.
    pub fn complete(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.complete_frame(frame);
        }
    }

    /// [`Cache::complete`] for the block of a frame that the caller has looked up.
    pub fn complete_frame(&mut self, frame: FrameId) {
        self.residency.complete(frame);
    }

    /// Makes a block absent without an effect on the policy's statistics: its read failed, or its
    /// contents are void. No effect if the block is not resident.
    pub fn withdraw(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.withdraw_frame(frame);
        }
    }

    /// [`Cache::withdraw`] for the block of a frame that the caller has looked up.
    pub fn withdraw_frame(&mut self, frame: FrameId) {
        self.policy.withdraw(&mut self.residency, frame);
    }

    /// Notes that the block was sent upwards in answer to a request. DU marks it.
    pub fn sent(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.policy.sent(&mut self.residency, frame);
        }
    }

    /// Makes a block the newest without a demand. SARC does so with the rest of a group whose
    /// trigger fires.
    pub fn refresh(&mut self, block: u64, pattern: Pattern) {
        if let Some(frame) = self.residency.frame(block) {
            self.policy.refresh(&mut self.residency, frame, pattern);
        }
    }

    /// Notes that a demand missed a block of a sequential run.
    pub fn sequential_miss(&mut self) {
        self.policy.sequential_miss();
    }

    /// Demands single blocks whose reads complete at once, and returns the number of hits.
    /// Evictions are not reported.
    ///
    /// # Errors
    /// If a block's number is too high, or other reads keep all frames in flight.
    pub fn replay(&mut self, blocks: &[u64]) -> Result<u64, Refusal> {
        self.policy.replay(&mut self.residency, blocks)
    }
}

impl Evicted {
    /// The description of a frame's block before its eviction.
    #[inline]
    pub(crate) fn from(residency: &Residency, frame: FrameId) -> Self {
        Evicted {
            block: residency.block(frame),
            origin: residency.origin(frame),
            was_used: residency.is_used(frame),
        }
    }
}
