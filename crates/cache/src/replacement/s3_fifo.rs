//! S3-FIFO: new blocks enter a small queue, and only those with a repeated use there enter the main
//! one (Yang et al., SOSP 2023).
//!
//! ```text
//!            .-> small, a tenth --- used again -------> main --.
//!   new -----'        |                                  ^ '---' used: reinserted
//!                     v                                  |
//!              remembered, as many as main --- new ------'
//! ```
//!
//! Not for loads whose second uses follow after the block has left the small queue, with a working
//! set larger than the remembered blocks.

use super::{GhostTag, Pattern, Replacement, Touch, share};
use crate::residency::{FrameId, List, Needs, Residency};
use crate::settings::{AlgorithmSettings, Parameter, Values};

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "small",
        what: "Thousandths of the cache that the small queue is; 100 as in the paper, at least one block (a choice).",
        values: Values::Number {
            range: 0..=1000,
            default: 100,
        },
    },
    Parameter {
        key: "remembered",
        what: "Thousandths of the cache that are remembered; 900, as many as the main queue has in the paper.",
        values: Values::Number {
            range: 0..=4000,
            default: 900,
        },
    },
    Parameter {
        key: "again",
        what: "Demands after the first that bring a block from the small queue into the main one; 2 as in the paper.",
        values: Values::Number {
            range: 1..=3,
            default: 2,
        },
    },
    Parameter {
        key: "turn",
        what: "When the small queue's turn ends: once a block has gone, as in the paper, or already when the queue is shorter than it should be.",
        values: Values::Words(&["gone", "short"]),
    },
    Parameter {
        key: "fill",
        what: "Queue of new blocks before the first eviction, once the small queue has its size: small as in the paper, or main as in libCacheSim 0.3.5.",
        values: Values::Words(&["small", "main"]),
    },
];

/// The end of the small queue's turn, if its blocks move to the main one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SmallTurnEnd {
    /// After an eviction, or if none is possible.
    Gone,
    /// Also when the queue is shorter than its size.
    Short,
}

/// The queue of new blocks before the first eviction, once the small queue has its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FillQueue {
    /// The small one.
    Small,
    /// The main one.
    Main,
}

/// The sizes of the queues, and the rules between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The size of the small queue above which it evicts.
    pub(crate) small: u32,
    /// The largest number of remembered blocks.
    pub(crate) remembered: u32,
    /// Demands after the first that bring a block into the main queue.
    pub(crate) again: u8,
    pub(crate) turn: SmallTurnEnd,
    pub(crate) fill: FillQueue,
}

impl Sizes {
    /// The sizes for `capacity` frames.
    pub(crate) fn new(capacity: u32, settings: &AlgorithmSettings) -> Self {
        Self {
            small: share(capacity, settings.get("small")).max(1),
            remembered: share(capacity, settings.get("remembered")),
            again: settings.get("again") as u8,
            turn: match settings.get("turn") {
                0 => SmallTurnEnd::Gone,
                _ => SmallTurnEnd::Short,
            },
            fill: match settings.get("fill") {
                0 => FillQueue::Small,
                _ => FillQueue::Main,
            },
        }
    }
}

/// Bits of the marks: the number of uses, and the queue.
const COUNTER: u8 = 0b11;
const MAIN: u8 = 0b100;

/// An S3-FIFO policy.
#[derive(Debug)]
pub struct S3Fifo {
    small: List,
    main: List,
    ghosts: List,
    sizes: Sizes,
    /// The cache has been full.
    has_evicted: bool,
}

impl S3Fifo {
    /// A policy for `capacity` frames.
    pub fn new(capacity: u32, settings: &AlgorithmSettings) -> Self {
        Self {
            small: List::numbered(0),
            main: List::numbered(1),
            ghosts: List::numbered(2),
            sizes: Sizes::new(capacity, settings),
            has_evicted: false,
        }
    }

    /// The queue of the frame.
    fn queue(&mut self, residency: &Residency, frame: FrameId) -> &mut List {
        match residency.marks(frame) & MAIN {
            0 => &mut self.small,
            _ => &mut self.main,
        }
    }

    /// Whether it is the small queue's turn.
    fn is_small_due(&self) -> bool {
        self.small.len() >= self.sizes.small
    }
}

impl Replacement for S3Fifo {
    fn needs(&self) -> Needs {
        Needs {
            remembered: self.sizes.remembered,
            lists: 3,
        }
    }

    #[inline]
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, _: Pattern) {
        let marks = residency.marks(frame);
        if touch == Touch::Again && marks & COUNTER < COUNTER {
            residency.set_marks(frame, marks + 1);
        }
    }

    #[inline]
    fn recall(&mut self, residency: &mut Residency, frame: FrameId) -> GhostTag {
        self.ghosts.remove(residency, frame);
        GhostTag(1)
    }

    #[inline]
    fn victim(&mut self, residency: &mut Residency, _: GhostTag) -> Option<FrameId> {
        let mut is_small = self.is_small_due();
        loop {
            let small = self.small.oldest_valid(residency);
            let next = match is_small {
                true => small.or_else(|| self.main.oldest_valid(residency)),
                false => self.main.oldest_valid(residency).or(small),
            };
            let frame = next?;
            let marks = residency.marks(frame);
            let counter = marks & COUNTER;
            if marks & MAIN != 0 {
                if counter == 0 {
                    return Some(frame);
                }
                residency.set_marks(frame, marks - 1);
                self.main.move_to_newest(residency, frame);
            } else {
                if counter < self.sizes.again {
                    return Some(frame);
                }
                self.small.remove(residency, frame);
                residency.set_marks(frame, MAIN);
                self.main.push_newest(residency, frame);
                is_small &= self.sizes.turn == SmallTurnEnd::Gone || self.is_small_due();
            }
        }
    }

    #[inline]
    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        let is_main = residency.marks(frame) & MAIN != 0;
        self.has_evicted = true;
        self.queue(residency, frame).remove(residency, frame);
        if is_main || self.sizes.remembered == 0 {
            residency.forget(frame);
            return;
        }
        if self.ghosts.len() == self.sizes.remembered {
            let oldest = self.ghosts.pop_oldest(residency);
            residency.forget(oldest.expect("as many as are remembered"));
        }
        residency.remember(frame);
        self.ghosts.push_newest(residency, frame);
    }

    #[inline]
    fn insert(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern, memory: GhostTag) {
        let fills_main =
            !self.has_evicted && self.sizes.fill == FillQueue::Main && self.is_small_due();
        if memory == GhostTag::NONE && !fills_main {
            self.small.push_newest(residency, frame);
        } else {
            residency.set_marks(frame, MAIN);
            self.main.push_newest(residency, frame);
        }
    }

    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern) {
        self.queue(residency, frame)
            .move_to_newest(residency, frame);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.queue(residency, frame).remove(residency, frame);
        residency.forget(frame);
    }
}
