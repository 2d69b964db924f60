//! One cache: residency and a policy, kept in step.
//!
//! It moves descriptors: a block that is admitted is in flight until the owner says that its read
//! is complete. Who waits for which read is the owner's affair.

use crate::replacement::admission::{Coming, admit, touch};
use crate::replacement::{
    self, BadReplacement, ComingRun, FirstTouch, Leaving, Pattern, Refusal, Replacement, Verdict,
};
use crate::residency::{BlockState, FetchOrigin, FrameId, Residency};

/// A block that has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Which.
    pub block: u64,
    /// Why it was fetched.
    pub origin: FetchOrigin,
    /// Whether it was ever delivered upwards.
    pub was_used: bool,
}

/// Residency and a policy.
pub struct Cache {
    residency: Residency,
    policy: Box<dyn Replacement>,
    first_touch: FirstTouch,
}

impl Cache {
    /// With so many frames, and the policy that a user names.
    ///
    /// # Errors
    /// If no policy is called so, it cannot be set so, or no cache has that size.
    pub fn named(
        policy: &str,
        capacity: u64,
        first_touch: FirstTouch,
    ) -> Result<Self, BadReplacement> {
        let policy = replacement::named(policy, capacity)?;
        Ok(Self::of(policy, capacity as u32, first_touch))
    }

    /// With so many frames, at least one, and this policy, made for as many.
    pub(crate) fn of(policy: Box<dyn Replacement>, capacity: u32, first_touch: FirstTouch) -> Self {
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
    pub fn demand(&mut self, block: u64, pattern: Pattern) -> BlockState {
        match self.residency.frame(block) {
            Some(frame) => self.demand_frame(frame, pattern),
            None => BlockState::Absent,
        }
    }

    /// [`Cache::demand`] for the block of a frame: for who has looked it up.
    pub fn demand_frame(&mut self, frame: FrameId, pattern: Pattern) -> BlockState {
        let policy = &mut *self.policy;
        let residency = &mut self.residency;
        touch(policy, residency, frame, pattern, self.first_touch);
        residency.frame_state(frame)
    }

    /// A demand that the policy does not see: PFC's silent hit. Says what there was; a resident
    /// block counts as used.
    pub fn demand_silently(&mut self, block: u64) -> BlockState {
        match self.residency.frame(block) {
            Some(frame) => self.demand_frame_silently(frame),
            None => BlockState::Absent,
        }
    }

    /// [`Cache::demand_silently`] for the block of a frame: for who has looked it up.
    pub fn demand_frame_silently(&mut self, frame: FrameId) -> BlockState {
        self.residency.set_used(frame);
        self.residency.frame_state(frame)
    }

    /// As if there were a demand for the resident block, but nobody gets it: what a coordinator adds to
    /// a request. It does not count as used.
    pub fn touch_unused(&mut self, block: u64, pattern: Pattern) {
        if let Some(frame) = self.residency.frame(block) {
            self.touch_frame_unused(frame, pattern);
        }
    }

    /// [`Cache::touch_unused`] for the block of a frame: for who has looked it up.
    pub fn touch_frame_unused(&mut self, frame: FrameId, pattern: Pattern) {
        let was_used = self.residency.is_used(frame);
        self.demand_frame(frame, pattern);
        self.residency.set_use(frame, was_used);
    }

    /// Gives an absent block a frame; it is in flight. `ask` is asked before another block goes for
    /// it. Says which one went.
    ///
    /// # Errors
    /// If all frames are in flight, there is no such block, or it is resident.
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
        let coming = Coming {
            block,
            known,
            origin,
            pattern,
        };
        let mut evicted = None;
        let leave = |residency: &Residency, victim, leaving| {
            let verdict = match leaving {
                Leaving::Asked => ask(residency, victim),
                Leaving::Anyway => Verdict::Evict,
            };
            if verdict == Verdict::Evict {
                evicted = Some(Evicted::from(residency, victim));
            }
            verdict
        };
        admit(&mut *self.policy, &mut self.residency, coming, leave)?;
        Ok(evicted)
    }

    /// [`Cache::admit`] for blocks of which all are known to be absent, one after the other. `leave` is asked
    /// before a block goes, or told so: after [`Verdict::Evict`] it is gone. The frames are added to
    /// `frames`, in the order of the blocks.
    ///
    /// # Errors
    /// If all frames are in flight, or there is no such block. The blocks before that one have frames.
    #[inline]
    pub fn admit_run(
        &mut self,
        coming: &ComingRun,
        leave: &mut dyn FnMut(&Residency, FrameId, Leaving) -> Verdict,
        frames: &mut Vec<FrameId>,
    ) -> Result<(), Refusal> {
        let residency = &mut self.residency;
        self.policy.admit_run(residency, coming, leave, frames)
    }

    /// The read of the block is complete. Nothing happens if it is not in flight.
    pub fn complete(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.complete_frame(frame);
        }
    }

    /// [`Cache::complete`] for the block of a frame: for who has looked it up.
    pub fn complete_frame(&mut self, frame: FrameId) {
        self.residency.complete(frame);
    }

    /// The block is absent from now on, and the policy learns nothing from it: its read failed, or
    /// its contents are void. Nothing happens if it is not resident.
    pub fn withdraw(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.withdraw_frame(frame);
        }
    }

    /// [`Cache::withdraw`] for the block of a frame: for who has looked it up.
    pub fn withdraw_frame(&mut self, frame: FrameId) {
        self.policy.withdraw(&mut self.residency, frame);
    }

    /// The block was sent upwards in answer to a request: DU marks it.
    pub fn sent(&mut self, block: u64) {
        if let Some(frame) = self.residency.frame(block) {
            self.policy.sent(&mut self.residency, frame);
        }
    }

    /// The block becomes the newest, although nobody asked for it: SARC does so with the rest of a
    /// group whose trigger fires.
    pub fn refresh(&mut self, block: u64, pattern: Pattern) {
        if let Some(frame) = self.residency.frame(block) {
            self.policy.refresh(&mut self.residency, frame, pattern);
        }
    }

    /// A demand missed a block that belongs to a sequential run.
    pub fn sequential_miss(&mut self) {
        self.policy.sequential_miss();
    }

    /// Demands for single blocks, each read complete at once; says how many were hits. Blocks that
    /// go are not told of.
    ///
    /// # Errors
    /// If a block's number is too high, or other reads keep all frames in flight.
    pub fn replay(&mut self, blocks: &[u64]) -> Result<u64, Refusal> {
        self.policy.replay(&mut self.residency, blocks)
    }
}

impl Evicted {
    /// What there is to say of the frame's block, which goes.
    #[inline]
    pub(crate) fn from(residency: &Residency, frame: FrameId) -> Self {
        Evicted {
            block: residency.block(frame),
            origin: residency.origin(frame),
            was_used: residency.is_used(frame),
        }
    }
}
