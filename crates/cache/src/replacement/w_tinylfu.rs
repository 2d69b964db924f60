//! W-TinyLFU: a block that leaves a small window must have more demands than the block that it would
//! evict (Einziger, Friedman, Manes, ACM TOS 2017).
//!
//! ```text
//!   new -> window, 1 % -- more often? --> probation, 20 % -- again --> protected, 80 %
//!            LRU              |                 ^                          |
//!                             v                 `--------- oldest ---------'
//!                        the other one is evicted
//! ```
//!
//! Not where popularity changes faster than the counters are halved.

use super::sketch::Sketch;
use super::{GhostTag, Pattern, Replacement, Touch, share};
use crate::residency::{FrameId, List, Needs, Residency};
use crate::settings::{AlgorithmSettings, Parameter, Values};

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "window",
        what: "Thousandths of the cache that the window is; 10 as in the paper, at least one block.",
        values: Values::Number {
            range: 0..=1000,
            default: 10,
        },
    },
    Parameter {
        key: "protected",
        what: "Thousandths of the rest that are protected; 800 as in the paper.",
        values: Values::Number {
            range: 0..=1000,
            default: 800,
        },
    },
    Parameter {
        key: "sample",
        what: "After so many demands for each block of the cache all counters are halved; 10 as in the paper.",
        values: Values::Number {
            range: 1..=1000,
            default: 10,
        },
    },
];

/// The list of a frame: its marks, and the numbers of the lists.
const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;

/// A W-TinyLFU policy: three lists and the sketch.
#[derive(Debug)]
pub struct WTinyLfu {
    lists: [List; 3],
    window_size: u32,
    protected_size: u32,
    sketch: Sketch,
}

impl WTinyLfu {
    /// A policy for `capacity` frames.
    pub fn new(capacity: u32, settings: &AlgorithmSettings) -> Self {
        let window_size = share(capacity, settings.get("window")).max(1);
        Self {
            lists: [0, 1, 2].map(List::numbered),
            window_size,
            protected_size: share(capacity - window_size, settings.get("protected")),
            sketch: Sketch::new(capacity, settings.get("sample") * u64::from(capacity)),
        }
    }

    fn list(&mut self, list: u8) -> &mut List {
        &mut self.lists[usize::from(list)]
    }

    fn take(&mut self, residency: &mut Residency, frame: FrameId) {
        self.list(residency.marks(frame)).remove(residency, frame);
    }

    fn put(&mut self, residency: &mut Residency, frame: FrameId, list: u8) {
        residency.set_marks(frame, list);
        self.list(list).push_newest(residency, frame);
    }

    /// The next candidate of a list.
    fn oldest(&self, residency: &Residency, list: u8) -> Option<FrameId> {
        self.lists[usize::from(list)].oldest_valid(residency)
    }

    /// Moves blocks beyond `most` from one list to another.
    fn overflow(&mut self, residency: &mut Residency, from: u8, most: u32, to: u8) {
        while self.list(from).len() > most
            && let Some(oldest) = self.list(from).oldest(residency)
        {
            self.take(residency, oldest);
            self.put(residency, oldest, to);
        }
    }
}

impl Replacement for WTinyLfu {
    fn needs(&self) -> Needs {
        Needs {
            remembered: 0,
            lists: 3,
        }
    }

    #[inline]
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, _: Pattern) {
        let list = residency.marks(frame);
        if touch == Touch::Again {
            self.sketch.add(residency.block(frame));
            if list == PROBATION {
                self.take(residency, frame);
                self.put(residency, frame, PROTECTED);
                let most = self.protected_size;
                return self.overflow(residency, PROTECTED, most, PROBATION);
            }
        }
        self.list(list).move_to_newest(residency, frame);
    }

    #[inline]
    fn victim(&mut self, residency: &mut Residency, _: GhostTag) -> Option<FrameId> {
        let main = self.oldest(residency, PROBATION);
        let main = main.or_else(|| self.oldest(residency, PROTECTED));
        let window = self.oldest(residency, WINDOW);
        let (Some(in_main), Some(candidate)) = (main, window) else {
            return main.or(window);
        };
        if self.list(WINDOW).len() < self.window_size {
            return main;
        }
        let often = |frame| self.sketch.estimate(residency.block(frame));
        match often(candidate) > often(in_main) {
            true => main,
            false => window,
        }
    }

    #[inline]
    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        self.withdraw(residency, frame);
    }

    #[inline]
    fn insert(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern, _: GhostTag) {
        self.sketch.add(residency.block(frame));
        // The block that leaves the window was compared, unless an older one was in flight.
        let most = self.window_size - 1;
        self.overflow(residency, WINDOW, most, PROBATION);
        self.put(residency, frame, WINDOW);
    }

    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern) {
        let list = residency.marks(frame);
        self.list(list).move_to_newest(residency, frame);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.take(residency, frame);
        residency.forget(frame);
    }
}
