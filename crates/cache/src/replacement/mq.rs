//! MQ: several LRU queues, one for each power of two of a block's uses. Blocks without a use for a
//! life time move down (Zhou, Philbin, Li, USENIX ATC 2001).
//!
//! ```text
//!   queue 7   128 uses and more
//!     ...          | not used for a life time: one queue down
//!   queue 1   2, 3 v
//!   queue 0   1 use      -> evicted, its number of uses is remembered
//! ```
//!
//! For a server below caching clients, where the distances of repeated uses are long. Not for bursts
//! of uses of a block, which raise it after its last use.

mod queues;

use super::{GhostTag, Pattern, Replacement, Touch};
use crate::residency::{FrameId, Needs, Residency};
use crate::settings::{AlgorithmSettings, Parameter, Values};
use queues::{GONE, HEADS, Queues};

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "queues",
        what: "How many queues; 8 as in the paper.",
        values: Values::Number {
            range: 1..=8,
            default: 8,
        },
    },
    Parameter {
        key: "remembered",
        what: "Hundredths of the cache that are remembered; 400 as in the paper.",
        values: Values::Number {
            range: 0..=1000,
            default: 400,
        },
    },
    Parameter {
        key: "life",
        what: "The life time: the commonest distance between two uses as it is measured, or a constant.",
        values: Values::Words(&["measured", "constant"]),
    },
    Parameter {
        key: "constant",
        what: "The life time, or the first one, in hundredths of the cache, counted in demands; 100 is a choice.",
        values: Values::Number {
            range: 1..=100_000,
            default: 100,
        },
    },
];

/// Classes of distances: one for each bit of a count of demands.
const CLASSES: usize = 64;

/// The number of a block's uses and the last one, as its entry stores it.
#[derive(Clone, Copy, Debug, Default)]
struct Use(u64);

/// Bits of the count: a block with more uses is in the highest queue anyway.
const COUNT_BITS: u32 = 16;

/// The highest count.
const MOST_USES: u64 = (1 << COUNT_BITS) - 1;

impl Use {
    fn count(self) -> u64 {
        self.0 & MOST_USES
    }

    fn last(self) -> u64 {
        self.0 >> COUNT_BITS
    }
}

/// An MQ policy.
#[derive(Debug)]
pub struct Mq {
    /// The queues from the lowest one upwards, and that of remembered blocks.
    queues: Queues,
    /// The number of queues, without that of remembered blocks.
    levels: usize,
    now: u64,
    life: u64,
    remembered: u32,
    /// The number of remembered blocks.
    gone: u32,
    distances: Option<Distances>,
}

/// The distances between uses of one block.
#[derive(Debug)]
struct Distances {
    /// The number of distances in each power of two.
    classes: [u32; CLASSES],
    /// Demands between two settings of the life time, at which old counts are halved. A choice: the
    /// cache's capacity; the paper says only that it is measured.
    period: u64,
    /// The demand at which the life time is set next.
    next: u64,
}

impl Mq {
    /// A policy for `capacity` frames.
    pub fn new(capacity: u32, settings: &AlgorithmSettings) -> Self {
        let capacity = u64::from(capacity);
        let remembered = (capacity * settings.get("remembered") / 100) as u32;
        let entries = HEADS + capacity as usize + remembered as usize + 1;
        Self {
            queues: Queues::new(entries),
            levels: settings.get("queues") as usize,
            now: 0,
            life: (capacity * settings.get("constant") / 100).max(1),
            remembered,
            gone: 0,
            distances: (settings.get("life") == 0).then_some(Distances {
                classes: [0; CLASSES],
                period: capacity,
                next: capacity,
            }),
        }
    }

    /// Adds the frame at the newest end of a queue, for a whole life time.
    fn put(&mut self, queue: usize, frame: FrameId) {
        self.queues.push(queue, frame, self.now + self.life);
    }

    /// Adds the frame to the queue of its uses, and ends a demand.
    fn place(&mut self, residency: &mut Residency, frame: FrameId, uses: Use) {
        residency.set_note(frame, uses.0);
        let queue = uses.count().max(1).ilog2() as usize;
        self.put(queue.min(self.levels - 1), frame);
        self.tick();
    }

    /// Counts a use of a block, first or repeated.
    fn count(&mut self, uses: Use) -> Use {
        if uses.count() > 0
            && let Some(distances) = &mut self.distances
        {
            distances.classes[(self.now - uses.last()).max(1).ilog2() as usize] += 1;
        }
        let count = (uses.count() + 1).min(MOST_USES);
        Use(self.now << COUNT_BITS | count)
    }

    /// Ends a demand: the oldest block of each queue moves down if its life time is over.
    fn tick(&mut self) {
        self.now += 1;
        let mut late = self.queues.late(self.now);
        let expires = self.now + self.life;
        while late != 0 {
            self.queues
                .bring_down(late.trailing_zeros() as usize, expires);
            late &= late - 1;
        }
        if let Some(distances) = &mut self.distances
            && self.now == distances.next
        {
            distances.next += distances.period;
            self.life = distances.commonest().unwrap_or(self.life);
        }
    }
}

impl Distances {
    /// The upper end of the most frequent class, the shorter one of equals. Halves all counts.
    fn commonest(&mut self) -> Option<u64> {
        let most = self.classes.iter().copied().max().filter(|most| *most > 0);
        let class = self.classes.iter().position(|count| Some(*count) == most);
        for count in &mut self.classes {
            *count /= 2;
        }
        class.map(|class| (1 << (class + 1)) - 1)
    }
}

impl Replacement for Mq {
    fn needs(&self) -> Needs {
        Needs {
            remembered: self.remembered,
            lists: HEADS as u32,
        }
    }

    #[inline]
    fn warm(&self, residency: &Residency, frame: FrameId) -> u64 {
        residency.note(frame) ^ self.queues.warm(frame)
    }

    #[inline]
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, _: Pattern) {
        self.queues.take(frame);
        let mut uses = Use(residency.note(frame));
        if touch == Touch::Again {
            uses = self.count(uses);
        }
        self.place(residency, frame, uses);
    }

    #[inline]
    fn recall(&mut self, _: &mut Residency, frame: FrameId) -> GhostTag {
        self.queues.take(frame);
        self.gone -= 1;
        GhostTag(1)
    }

    #[inline]
    fn victim(&mut self, residency: &mut Residency, _: GhostTag) -> Option<FrameId> {
        let queues = &self.queues;
        (0..self.levels).find_map(|queue| queues.oldest_valid(residency, queue))
    }

    #[inline]
    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        self.queues.take(frame);
        if self.remembered == 0 {
            return residency.forget(frame);
        }
        if self.gone == self.remembered {
            let oldest = self.queues.oldest(GONE).expect("as many as are remembered");
            self.queues.take(oldest);
            self.gone -= 1;
            residency.forget(oldest);
        }
        residency.remember(frame);
        self.gone += 1;
        // Remembered blocks do not move down.
        self.queues.push(GONE, frame, 0);
    }

    #[inline]
    fn warm_next(&self, residency: &Residency) -> u64 {
        match self.queues.oldest(GONE) {
            Some(oldest) => residency.warm_forgotten(oldest) ^ self.queues.warm(oldest),
            None => 0,
        }
    }

    #[inline]
    fn insert(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern, memory: GhostTag) {
        let known = match memory {
            GhostTag::NONE => Use::default(),
            _ => Use(residency.note(frame)),
        };
        let uses = self.count(known);
        self.place(residency, frame, uses);
    }

    fn refresh(&mut self, _: &mut Residency, frame: FrameId, _: Pattern) {
        let queue = self.queues.of(frame);
        self.queues.take(frame);
        self.put(queue, frame);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.queues.take(frame);
        residency.forget(frame);
    }
}
