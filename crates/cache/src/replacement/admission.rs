//! Admission of blocks under a policy: a frame for each new block, and a victim for each frame. The
//! functions are generic, so that each policy has its own machine code.

use std::hint::black_box;

use block::Interval;

use super::{GhostTag, Pattern, Replacement, Touch};
use crate::residency::{FetchOrigin, FrameId, MAX_BLOCK, Residency};

/// The prefetcher's decision about a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The block is evicted.
    Evict,
    /// The block becomes the newest instead. A prefetcher gives one second chance per residence.
    /// The cache asks about each frame at most once per admission.
    SecondChance,
}

/// Whether the prefetcher can veto an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Veto {
    /// It can.
    Possible,
    /// It cannot: all other blocks have had their second chance.
    Impossible,
}

/// The reason that a block got no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Every frame is in flight.
    #[error("all frames are in flight: expected a read to complete first")]
    AllInFlight,
    /// The block has a frame already.
    #[error("block {0} is resident: expected an absent one")]
    Resident(u64),
    /// The block does not exist.
    #[error("block {0}: expected at most {MAX_BLOCK}")]
    NoSuchBlock(u64),
}

/// The meaning of the first demand for a block that was fetched ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstTouch {
    /// The reason of its insertion: it becomes the newest if touches do that, and is not counted as
    /// a reference. A choice; papers are silent.
    #[default]
    Insertion,
    /// A reference like any other.
    Reference,
    /// Nothing: the policy does not see it. AMP does this (Gill, Bathen, FAST 2007).
    Unnoticed,
}

/// Blocks that are to become resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmittedRun {
    /// The blocks, all of them absent.
    pub blocks: Interval,
    /// The reason of the fetch.
    pub origin: FetchOrigin,
    /// The access pattern, as the prefetcher sees it.
    pub pattern: Pattern,
}

/// A block that is to become resident.
#[derive(Clone, Copy)]
pub(crate) struct AdmittedBlock {
    pub(crate) block: u64,
    /// Its entry, if it is remembered.
    pub(crate) known: Option<FrameId>,
    pub(crate) origin: FetchOrigin,
    pub(crate) pattern: Pattern,
}

/// Tells the policy of a demand for a resident block.
#[inline]
pub(crate) fn touch<R: Replacement + ?Sized>(
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

/// [`Cache::admit_run`](crate::Cache::admit_run) for a policy that the compiler knows.
pub(crate) fn admit_run<R: Replacement + ?Sized>(
    policy: &mut R,
    residency: &mut Residency,
    run: &AdmittedRun,
    leave: &mut dyn FnMut(&Residency, FrameId, Veto) -> Verdict,
    frames: &mut Vec<FrameId>,
) -> Result<(), Refusal> {
    for block in run.blocks.blocks() {
        debug_assert!(!residency.is_resident(block), "block {block} has a frame");
        let admitted = AdmittedBlock {
            block,
            known: match residency.remembers() {
                true => residency.find(block),
                false => None,
            },
            origin: run.origin,
            pattern: run.pattern,
        };
        frames.push(admit(policy, residency, admitted, &mut *leave)?);
    }
    Ok(())
}

/// Gives an absent block a frame.
#[inline(always)]
pub(crate) fn admit<R: Replacement + ?Sized>(
    policy: &mut R,
    residency: &mut Residency,
    admitted: AdmittedBlock,
    mut leave: impl FnMut(&Residency, FrameId, Veto) -> Verdict,
) -> Result<FrameId, Refusal> {
    if admitted.block > MAX_BLOCK {
        return Err(Refusal::NoSuchBlock(admitted.block));
    }
    if residency.in_flight() == residency.capacity() {
        return Err(Refusal::AllInFlight);
    }
    let known = admitted.known;
    let memory = known.map_or(GhostTag::NONE, |frame| policy.recall(residency, frame));
    let mut chances = residency.resident();
    while residency.is_full() {
        let victim = policy.victim(residency, memory);
        let victim = victim.expect("a frame that is not in flight");
        let veto = match chances {
            0 => Veto::Impossible,
            _ => Veto::Possible,
        };
        match leave(residency, victim, veto) {
            Verdict::SecondChance if veto == Veto::Possible => {
                chances -= 1;
                policy.refresh(residency, victim, Pattern::Random);
            }
            _ => policy.evict(residency, victim),
        }
    }
    let frame = residency.enter(admitted.block, known, admitted.origin);
    policy.insert(residency, frame, admitted.pattern, memory);
    Ok(frame)
}

/// How many demands are looked up ahead of the one that is served: the processor waits for their
/// memory at once. Measured; from 8 on it makes no difference.
const AHEAD: usize = 16;

/// [`Cache::replay`](crate::Cache::replay) for a policy that the compiler knows.
pub(crate) fn replay<R: Replacement + ?Sized>(
    policy: &mut R,
    residency: &mut Residency,
    blocks: &[u64],
) -> Result<u64, Refusal> {
    let mut hits = 0;
    let (pieces, rest) = blocks.as_chunks::<AHEAD>();
    for piece in pieces {
        hits += replay_piece(policy, residency, piece)?;
    }
    Ok(hits + replay_rest(policy, residency, rest)?)
}

/// The last demands.
#[inline(never)]
fn replay_rest<R: Replacement + ?Sized>(
    policy: &mut R,
    residency: &mut Residency,
    blocks: &[u64],
) -> Result<u64, Refusal> {
    replay_piece(policy, residency, blocks)
}

/// At most [`AHEAD`] demands. Made anew where it is called, for as many as the compiler knows of there.
#[inline(always)]
fn replay_piece<R: Replacement + ?Sized>(
    policy: &mut R,
    residency: &mut Residency,
    blocks: &[u64],
) -> Result<u64, Refusal> {
    let mut hits = 0;
    let mut likely = [FrameId::HEAD; AHEAD];
    let mut read = 0;
    for (&block, likely) in blocks.iter().zip(&mut likely) {
        *likely = residency.likely(block);
        read ^= policy.warm(residency, *likely);
    }
    black_box(read);
    for (&block, &likely) in blocks.iter().zip(&likely) {
        let known = match residency.is_frame_of(likely, block) {
            true => Some(likely),
            false => residency.find(block),
        };
        if let Some(frame) = known.filter(|frame| residency.is_kept(*frame)) {
            hits += 1;
            let (pattern, first_touch) = (Pattern::Random, FirstTouch::default());
            touch(policy, residency, frame, pattern, first_touch);
            continue;
        }
        let admitted = AdmittedBlock {
            block,
            known,
            origin: FetchOrigin::Demand,
            pattern: Pattern::Random,
        };
        let frame = admit(policy, residency, admitted, |_, _, _| Verdict::Evict)?;
        residency.complete(frame);
        black_box(policy.warm_next(residency));
    }
    Ok(hits)
}
