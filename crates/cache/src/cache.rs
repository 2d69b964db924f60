//! One cache: residency and a policy, kept in step.
//!
//! It moves descriptors: a block that is admitted is in flight until the owner says that its read
//! is complete. Who waits for which read is the owner's affair.

use crate::replacement::{self, BadReplacement, Memory, Pattern, Replacement, Touch};
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
}

/// Why a block got no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Every frame waits for its read.
    #[error("all frames are in flight: expected a read to complete first")]
    AllInFlight,
    /// It has one.
    #[error("block {0} is resident: expected an absent one")]
    Resident(u64),
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
    pub fn demand(&mut self, block: u64, pattern: Pattern) -> State {
        match self.residency.frame(block) {
            Some(frame) => self.demand_frame(frame, pattern),
            None => State::Absent,
        }
    }

    /// [`Cache::demand`] for the block of a frame: for who has looked it up.
    pub fn demand_frame(&mut self, frame: FrameId, pattern: Pattern) -> State {
        let policy = &mut *self.policy;
        let residency = &mut self.residency;
        touch(policy, residency, frame, pattern, self.first_touch);
        residency.frame_state(frame)
    }

    /// A demand that the policy does not see: PFC's silent hit. Says what there was; a resident
    /// block counts as used.
    pub fn demand_silently(&mut self, block: u64) -> State {
        match self.residency.frame(block) {
            Some(frame) => self.demand_frame_silently(frame),
            None => State::Absent,
        }
    }

    /// [`Cache::demand_silently`] for the block of a frame: for who has looked it up.
    pub fn demand_frame_silently(&mut self, frame: FrameId) -> State {
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
        origin: Origin,
        pattern: Pattern,
        ask: impl FnMut(&Residency, FrameId) -> Verdict,
    ) -> Result<Option<Evicted>, Refusal> {
        let admitted = self.admit_frame(block, origin, pattern, ask)?;
        Ok(admitted.evicted)
    }

    /// [`Cache::admit`], and which frame it is.
    ///
    /// # Errors
    /// As [`Cache::admit`].
    pub fn admit_frame(
        &mut self,
        block: u64,
        origin: Origin,
        pattern: Pattern,
        ask: impl FnMut(&Residency, FrameId) -> Verdict,
    ) -> Result<Admitted, Refusal> {
        let known = self.residency.find(block);
        if known.is_some_and(|frame| self.residency.is_kept(frame)) {
            return Err(Refusal::Resident(block));
        }
        self.enter((block, known), origin, pattern, ask)
    }

    /// [`Cache::admit_frame`] for who has seen that the block has no frame: if nothing is remembered, it
    /// is not looked up again.
    ///
    /// # Errors
    /// If all frames are in flight, or there is no such block.
    pub fn admit_absent(
        &mut self,
        block: u64,
        origin: Origin,
        pattern: Pattern,
        ask: impl FnMut(&Residency, FrameId) -> Verdict,
    ) -> Result<Admitted, Refusal> {
        if self.residency.remembers() {
            return self.admit_frame(block, origin, pattern, ask);
        }
        debug_assert!(
            !self.residency.is_resident(block),
            "block {block} has a frame"
        );
        self.enter((block, None), origin, pattern, ask)
    }

    /// A block that has no frame, and what is remembered of it.
    fn enter(
        &mut self,
        (block, known): (u64, Option<FrameId>),
        origin: Origin,
        pattern: Pattern,
        mut ask: impl FnMut(&Residency, FrameId) -> Verdict,
    ) -> Result<Admitted, Refusal> {
        let coming = Coming {
            block,
            known,
            origin,
            pattern,
        };
        self.policy.admit(&mut self.residency, coming, &mut ask)
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

/// A block that is to become resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coming {
    /// Which.
    pub block: u64,
    /// Its entry, if it is remembered.
    pub known: Option<FrameId>,
    /// Why it is fetched.
    pub origin: Origin,
    /// What the prefetcher takes it for.
    pub pattern: Pattern,
}

/// A block that has become resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Where.
    pub frame: FrameId,
    /// What went for it.
    pub evicted: Option<Evicted>,
    /// The frame that it went from.
    pub vacated: Option<FrameId>,
}

/// Tells the policy of a demand for a resident block.
fn touch<R: Replacement + ?Sized>(
    policy: &mut R,
    residency: &mut Residency,
    frame: FrameId,
    pattern: Pattern,
    first_touch: FirstTouch,
) {
    let touch = match (residency.touch(frame), first_touch) {
        (true, FirstTouch::Insertion) => Touch::First,
        (true, FirstTouch::Unnoticed) => return,
        (true, FirstTouch::Reference) | (false, _) => Touch::Again,
    };
    policy.touch(residency, frame, touch, pattern);
}

/// [`Cache::admit_absent`] for a policy that the compiler knows.
pub(crate) fn admit<R: Replacement + ?Sized>(
    policy: &mut R,
    residency: &mut Residency,
    coming: Coming,
    mut ask: impl FnMut(&Residency, FrameId) -> Verdict,
) -> Result<Admitted, Refusal> {
    if coming.block > MAX_BLOCK {
        return Err(Refusal::NoSuchBlock(coming.block));
    }
    if residency.in_flight() == residency.capacity() {
        return Err(Refusal::AllInFlight);
    }
    let known = coming.known;
    let memory = known.map_or(Memory::NONE, |frame| policy.recall(residency, frame));
    let (mut evicted, mut vacated) = (None, None);
    let mut chances = residency.resident();
    while residency.is_full() {
        let victim = policy.victim(residency, memory);
        let victim = victim.expect("a frame that is not in flight");
        if chances > 0 && ask(residency, victim) == Verdict::SecondChance {
            chances -= 1;
            policy.refresh(residency, victim, Pattern::Random);
            continue;
        }
        evicted = Some(Evicted {
            block: residency.block(victim),
            origin: residency.origin(victim),
            was_used: residency.is_used(victim),
        });
        vacated = Some(victim);
        policy.evict(residency, victim);
    }
    let frame = residency.enter(coming.block, known, coming.origin);
    policy.insert(residency, frame, coming.pattern, memory);
    Ok(Admitted {
        frame,
        evicted,
        vacated,
    })
}

/// How many demands are looked up ahead of the one that is served: the processor waits for their
/// memory at once. Measured; from 8 on it makes no difference.
const AHEAD: usize = 16;

/// [`Cache::replay`] for a policy that the compiler knows.
pub(crate) fn replay<R: Replacement + ?Sized>(
    policy: &mut R,
    residency: &mut Residency,
    blocks: &[u64],
) -> Result<u64, Refusal> {
    let mut hits = 0;
    for some in blocks.chunks(AHEAD) {
        let mut likely = [FrameId::HEAD; AHEAD];
        for (&block, likely) in some.iter().zip(&mut likely) {
            *likely = residency.likely(block);
            policy.warm(residency, *likely);
        }
        for (&block, &likely) in some.iter().zip(&likely) {
            let known = residency.find_likely(block, likely);
            if let Some(frame) = known.filter(|frame| residency.is_kept(*frame)) {
                hits += 1;
                touch(
                    policy,
                    residency,
                    frame,
                    Pattern::Random,
                    FirstTouch::default(),
                );
                continue;
            }
            let coming = Coming {
                block,
                known,
                origin: Origin::Demand,
                pattern: Pattern::Random,
            };
            let admitted = admit(policy, residency, coming, |_, _| Verdict::Evict)?;
            residency.complete(admitted.frame);
            policy.warm_next(residency);
        }
    }
    Ok(hits)
}
