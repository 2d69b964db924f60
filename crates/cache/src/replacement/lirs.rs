//! LIRS: ranks blocks by the distance between their last two uses, not by the last use alone
//! (Jiang, Zhang, SIGMETRICS 2002).
//!
//! ```text
//!   stack, newest .......................... oldest      queue, newest ... oldest
//!     h  L  .  L  h  .  L  .  .  L                          h  h  h   -> evicted
//!
//!   L: low distance, resident: most of the cache         h: high distance, resident: the queue
//!   .: high distance, no longer resident, remembered     the oldest of the stack is an L
//! ```
//!
//! A block that is used again while it is in the stack has a lower distance than the oldest L. It
//! becomes an L, and that L moves to the queue. Not for loads whose distances change often, because
//! an L stays long.

use super::ring::Ring;
use super::{GhostTag, Pattern, Replacement, Touch, share};
use crate::residency::{FrameId, List, Needs, Residency};
use crate::settings::{AlgorithmSettings, Parameter, Values};

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "high",
        what: "Thousandths of the cache for blocks with a high distance; 10 as in the paper, at least one block.",
        values: Values::Number {
            range: 0..=1000,
            default: 10,
        },
    },
    Parameter {
        key: "remembered",
        what: "Hundredths of the cache that are remembered at most; 200 is a choice, the paper has no bound.",
        values: Values::Number {
            range: 0..=1000,
            default: 200,
        },
    },
];

/// The sizes of the parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The largest number of blocks with a low distance.
    pub(crate) low: u32,
    /// The largest number of remembered blocks.
    pub(crate) remembered: u32,
}

impl Sizes {
    /// The sizes for `capacity` frames.
    pub(crate) fn new(capacity: u32, settings: &AlgorithmSettings) -> Self {
        let remembered = u64::from(capacity) * settings.get("remembered") / 100;
        Self {
            low: capacity - share(capacity, settings.get("high")).max(1),
            remembered: remembered as u32,
        }
    }
}

/// Bits of the marks.
const LOW: u8 = 1;
const STACKED: u8 = 2;

/// A LIRS policy: the stack, the queue, and the remembered blocks in the order of their eviction.
#[derive(Debug)]
pub struct Lirs {
    queue: List,
    gone: List,
    stack: Ring,
    low: u32,
    sizes: Sizes,
}

impl Lirs {
    /// A policy for `capacity` frames.
    pub fn new(capacity: u32, settings: &AlgorithmSettings) -> Self {
        let sizes = Sizes::new(capacity, settings);
        Self {
            queue: List::numbered(0),
            gone: List::numbered(1),
            stack: Ring::new(capacity as usize + sizes.remembered as usize + 4),
            low: 0,
            sizes,
        }
    }

    fn is(&self, residency: &Residency, frame: FrameId, mark: u8) -> bool {
        residency.marks(frame) & mark != 0
    }

    /// Moves the entry to the top of the stack.
    fn stack(&mut self, residency: &mut Residency, frame: FrameId) {
        self.unstack(residency, frame);
        self.stack.push_newest(frame);
        residency.set_marks(frame, residency.marks(frame) | STACKED);
    }

    /// Removes the entry from the stack, if it is there.
    fn unstack(&mut self, residency: &mut Residency, frame: FrameId) {
        let marks = residency.marks(frame);
        if marks & STACKED != 0 {
            self.stack.remove(frame);
            residency.set_marks(frame, marks & !STACKED);
        }
    }

    /// Removes the oldest entries of the stack until an L is the oldest.
    fn prune(&mut self, residency: &mut Residency) {
        while let Some(oldest) = self.stack.oldest() {
            if self.is(residency, oldest, LOW) {
                break;
            }
            self.unstack(residency, oldest);
            if !residency.is_kept(oldest) {
                self.gone.remove(residency, oldest);
                residency.forget(oldest);
            }
        }
    }

    /// Makes an entry that is at most in the stack an L on top.
    fn promote(&mut self, residency: &mut Residency, frame: FrameId) {
        self.stack(residency, frame);
        residency.set_marks(frame, residency.marks(frame) | LOW);
        self.low += 1;
        // The last L may be this one itself: then the cache has no room for any.
        self.prune(residency);
        while self.low > self.sizes.low
            && let Some(oldest) = self.stack.oldest()
        {
            self.unstack(residency, oldest);
            residency.set_marks(oldest, 0);
            self.low -= 1;
            self.queue.push_newest(residency, oldest);
            self.prune(residency);
        }
    }

    /// Makes a frame of the queue the newest there and in the stack.
    fn renew(&mut self, residency: &mut Residency, frame: FrameId) {
        if self.is(residency, frame, LOW) {
            self.stack(residency, frame);
            self.prune(residency);
        } else {
            self.stack(residency, frame);
            self.queue.move_to_newest(residency, frame);
        }
    }

    /// The oldest L of the stack that can be evicted.
    fn oldest_low(&self, residency: &Residency) -> Option<FrameId> {
        let mut at = self.stack.oldest();
        while let Some(frame) = at {
            if self.is(residency, frame, LOW) && !residency.is_in_flight(frame) {
                return at;
            }
            at = self.stack.newer(frame);
        }
        None
    }

    /// Removes a resident frame from all lists except the stack.
    fn take(&mut self, residency: &mut Residency, frame: FrameId) {
        if self.is(residency, frame, LOW) {
            self.unstack(residency, frame);
            self.low -= 1;
            residency.set_marks(frame, 0);
            self.prune(residency);
        } else {
            self.queue.remove(residency, frame);
        }
    }
}

impl Replacement for Lirs {
    fn needs(&self) -> Needs {
        Needs {
            remembered: self.sizes.remembered,
            lists: 2,
        }
    }

    #[inline]
    fn warm(&self, residency: &Residency, frame: FrameId) -> u64 {
        residency.warm_neighbours(frame) ^ self.stack.warm(frame)
    }

    #[inline]
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, _: Pattern) {
        let is_again = touch == Touch::Again;
        let marks = residency.marks(frame);
        if is_again && marks == STACKED {
            self.queue.remove(residency, frame);
            self.promote(residency, frame);
        } else {
            self.renew(residency, frame);
        }
    }

    #[inline]
    fn recall(&mut self, residency: &mut Residency, frame: FrameId) -> GhostTag {
        self.gone.remove(residency, frame);
        self.unstack(residency, frame);
        GhostTag(1)
    }

    #[inline]
    fn victim(&mut self, residency: &mut Residency, _: GhostTag) -> Option<FrameId> {
        let queued = self.queue.oldest_valid(residency);
        queued.or_else(|| self.oldest_low(residency))
    }

    #[inline]
    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        self.take(residency, frame);
        if !self.is(residency, frame, STACKED) {
            return residency.forget(frame);
        }
        residency.remember(frame);
        self.gone.push_newest(residency, frame);
        if self.gone.len() > self.sizes.remembered {
            let oldest = self.gone.pop_oldest(residency);
            let oldest = oldest.expect("one was added");
            self.unstack(residency, oldest);
            residency.forget(oldest);
        }
    }

    #[inline]
    fn insert(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern, memory: GhostTag) {
        if memory != GhostTag::NONE || self.low < self.sizes.low {
            self.promote(residency, frame);
        } else {
            self.stack(residency, frame);
            self.queue.push_newest(residency, frame);
        }
    }

    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern) {
        self.renew(residency, frame);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.take(residency, frame);
        self.unstack(residency, frame);
        residency.forget(frame);
    }
}
