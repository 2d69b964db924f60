//! Wishes: readmore that occupies no frame and costs no head time until a read happens to cover it.
//!
//! ```text
//!   submit --readmore--> wished --next_wish: Want--> owner: reads it if that is free
//!                         |   ^                        |
//!     demand, admission,  |   '--------offer-----------'   still wished: it gets a frame
//!     write, age          v
//!                     next_wish: Unwant              every end of a wish is reported,
//!                                                    a grant too
//! ```
//!
//! Until a wish is granted the level behaves as without readmore: the prefetcher sees the original
//! request, and resident blocks are not touched.

use std::collections::VecDeque;

use block::Switch;

use super::trust::Trust;
use super::{FetchOrigin, FrameId, Interval, Level, RequestPlan, UpperRequest};
use crate::lru_map::LruMap;
use crate::residency::MAX_BLOCK;

/// A change of the set of wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// These blocks are wished from now on.
    Want(Interval),
    /// These blocks are no longer wished.
    Unwant(Interval),
}

/// Frames of the cache per wish: at 32 bytes a wish, wishes take 0.012 % of its memory, of the 0.05 % for
/// coordinators. A cache of 128 MiB has 512 wishes, for 2 MiB.
const FRAMES: u32 = 64;

/// The least number of wishes, unless there are fewer frames: a few windows of several readers. A choice.
const LEAST: u32 = 64;

/// The wished blocks, in the order of their last wish.
#[derive(Debug)]
pub(super) struct Wishes {
    blocks: LruMap<u64, ()>,
    most: usize,
    /// Present if readmore is fetched while wishes are too late.
    trust: Option<Trust>,
    /// Changes that were not polled.
    changes: VecDeque<Wish>,
    /// Scratch memory.
    leaving: Vec<u64>,
}

impl Wishes {
    /// No wishes, for a cache of `frames` frames.
    fn new(frames: u32) -> Self {
        let most = (frames / FRAMES).max(LEAST).min(frames) as usize;
        Self {
            blocks: LruMap::new(most),
            most,
            trust: None,
            changes: VecDeque::new(),
            leaving: Vec::new(),
        }
    }

    /// Ends the wish for a block. Returns whether there was one.
    fn end(&mut self, block: u64) -> bool {
        let was_wished = self.blocks.remove(block).is_some();
        if was_wished {
            match self.changes.back_mut() {
                Some(Wish::Unwant(last)) if last.last + 1 == block => last.last = block,
                _ => {
                    let one = Interval::new(block, block);
                    self.changes.push_back(Wish::Unwant(one));
                }
            }
        }
        was_wished
    }

    /// Ends the wishes for blocks. Returns their number.
    fn end_all(&mut self, blocks: Interval) -> u64 {
        if self.blocks.is_empty() {
            return 0;
        }
        if blocks.len() <= self.blocks.len() as u64 {
            return blocks
                .blocks()
                .map(|block| u64::from(self.end(block)))
                .sum();
        }
        let mut leaving = std::mem::take(&mut self.leaving);
        let wished = self.blocks.iter().map(|(block, ())| block);
        leaving.extend(wished.filter(|&block| blocks.contains(block)));
        leaving.sort_unstable();
        let ended = leaving.drain(..).map(|block| u64::from(self.end(block)));
        let ended = ended.sum();
        self.leaving = leaving;
        ended
    }

    /// Adds a wish, or makes it the newest.
    fn wish(&mut self, block: u64) -> Wished {
        if self.blocks.touch(block).is_some() {
            return Wished::Again;
        }
        let oldest = match self.blocks.len() == self.most {
            true => self.blocks.oldest(),
            false => None,
        };
        let has_expired = oldest.is_some_and(|oldest| self.end(oldest));
        self.blocks.insert(block, ());
        match self.changes.back_mut() {
            Some(Wish::Want(last)) if last.last + 1 == block => last.last = block,
            _ => {
                let one = Interval::new(block, block);
                self.changes.push_back(Wish::Want(one));
            }
        }
        match has_expired {
            true => Wished::ForAnother,
            false => Wished::New,
        }
    }
}

/// The effect of an added wish.
enum Wished {
    /// The block was wished already.
    Again,
    /// A new wish.
    New,
    /// A new wish; the oldest one has expired for it.
    ForAnother,
}

impl Level {
    /// Turns readmore into wishes instead of fetches. The owner polls changes by
    /// [`Level::next_wish`] after each call.
    #[must_use]
    pub fn with_wishes(mut self) -> Self {
        self.wishes = Some(Wishes::new(self.residency().capacity()));
        self
    }

    /// Turns readmore into wishes, but fetches it with the request while most wishes are demanded
    /// before they are granted.
    #[must_use]
    pub fn with_wishes_while_granted(self) -> Self {
        let mut level = self.with_wishes();
        if let Some(wishes) = &mut level.wishes {
            wishes.trust = Some(Trust::NEW);
        }
        level
    }

    /// Whether the readmore of a plan becomes wishes.
    pub(super) fn wishes_now(&mut self, plan: RequestPlan) -> Switch {
        match &mut self.wishes {
            None => Switch::Off,
            Some(Wishes {
                trust: Some(trust), ..
            }) if plan.readmore > 0 => trust.turn(),
            Some(_) => Switch::On,
        }
    }

    /// The next change of the set of wishes, in order.
    pub fn next_wish(&mut self) -> Option<Wish> {
        self.wishes.as_mut()?.changes.pop_front()
    }

    /// The number of wished blocks.
    pub fn wished(&self) -> u64 {
        let wishes = self.wishes.as_ref();
        wishes.map_or(0, |wishes| wishes.blocks.len() as u64)
    }

    /// Offers a block whose bytes the owner has. A wished block gets a frame, is valid at once, and
    /// its frame is returned.
    pub fn offer(&mut self, block: u64) -> Option<FrameId> {
        if !self.wishes.as_mut()?.end(block) {
            return None;
        }
        let Some(frame) = self.admit(block, FetchOrigin::Readmore) else {
            self.counts.wishes_withdrawn += 1;
            return None;
        };
        self.cache.complete_frame(frame);
        self.counts.readmore += 1;
        self.counts.wishes_granted += 1;
        if let Some(trust) = self
            .wishes
            .as_mut()
            .and_then(|wishes| wishes.trust.as_mut())
        {
            trust.granted();
        }
        Some(frame)
    }

    /// Offers a block whose bytes the owner has read ahead, in head time that nothing else wanted. An
    /// absent block gets a frame as one that was prefetched, is valid at once, and its frame is returned.
    pub fn offer_ahead(&mut self, block: u64) -> Option<FrameId> {
        if let Some(frame) = self.offer(block) {
            return Some(frame);
        }
        if self.residency().is_resident(block) {
            return None;
        }
        let frame = self.admit(block, FetchOrigin::Prefetch)?;
        self.cache.complete_frame(frame);
        self.counts.prefetched += 1;
        Some(frame)
    }

    /// Ends the wishes for these blocks, because they change or were requested. Later offers of
    /// them are refused.
    #[inline]
    pub fn unwish(&mut self, blocks: Interval) {
        if self.wishes.is_some() {
            self.end_wishes(blocks);
        }
    }

    fn end_wishes(&mut self, blocks: Interval) {
        let Some(wishes) = &mut self.wishes else {
            return;
        };
        let ended = wishes.end_all(blocks);
        self.counts.wishes_withdrawn += ended;
        if let Some(trust) = &mut wishes.trust {
            trust.late(ended);
        }
    }

    /// Adds wishes for the absent readmore blocks of a plan, at most the capacity.
    pub(super) fn wish(&mut self, asked: &UpperRequest, plan: RequestPlan) {
        let Some(wishes) = &mut self.wishes else {
            return;
        };
        let last = plan.native(asked).last.min(MAX_BLOCK);
        let first = asked.blocks.last + 1;
        if last < first {
            return;
        }
        let most = Interval::of(first, wishes.most as u64).last;
        for block in Interval::new(first, last.min(most)).blocks() {
            if self.cache.residency().is_resident(block) {
                continue;
            }
            match wishes.wish(block) {
                Wished::Again => continue,
                Wished::New => {}
                Wished::ForAnother => self.counts.wishes_expired += 1,
            }
            self.counts.wished += 1;
        }
    }
}
