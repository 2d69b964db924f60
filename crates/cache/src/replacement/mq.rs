//! MQ: several LRU queues, one for each power of two of a block's uses; who is not used for a while
//! comes down (Zhou, Philbin, Li, USENIX ATC 2001).
//!
//! ```text
//!   queue 7   128 uses and more
//!     ...          | not used for a life time: one queue down
//!   queue 1   2, 3 v
//!   queue 0   1 use      -> goes, its number of uses is remembered
//! ```
//!
//! Written for a server below caching clients, where what is used again is used again late. Not where
//! uses follow each other closely and then end: they lift a block that nobody wants any more.

use std::hint::black_box;

use super::{Memory, Pattern, Replacement, Touch};
use crate::residency::{FrameId, List, Needs, Residency};
use crate::settings::{Parameter, Settings, Values};

/// What can be set.
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

/// What the expiry of an empty queue's oldest is.
const NEVER: u64 = u64::MAX;

/// As many classes of distances as a count of demands has bits.
const CLASSES: usize = 64;

/// Per entry: how often it was used, when last, and when it comes down.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// How often, up to [`MOST_USES`], in the lower bits, and when last in the upper ones.
    count_and_last: u64,
    expires: u64,
}

/// Bits of a use's count: what is used more often is in the highest queue long since.
const COUNT_BITS: u32 = 16;

/// The highest count.
const MOST_USES: u64 = (1 << COUNT_BITS) - 1;

impl Use {
    fn count(self) -> u32 {
        (self.count_and_last & MOST_USES) as u32
    }

    fn last(self) -> u64 {
        self.count_and_last >> COUNT_BITS
    }
}

/// The queues; a frame's marks are its queue.
#[derive(Debug)]
pub struct Mq {
    queues: Vec<List>,
    gone: List,
    uses: Box<[Use]>,
    /// When the oldest of each queue comes down: read at every demand. Never from the lowest one.
    expiries: [u64; 8],
    now: u64,
    life: u64,
    remembered: u32,
    distances: Option<Distances>,
}

/// How far apart uses of one block are.
#[derive(Debug)]
struct Distances {
    /// How many in each power of two.
    classes: [u32; CLASSES],
    /// After so many demands the life time is made anew, and old counts are halved. The paper says
    /// no more than that it is measured: as long as the cache is a choice.
    period: u64,
    /// When it is made anew.
    next: u64,
}

impl Mq {
    /// For so many frames.
    pub fn new(capacity: u32, settings: &Settings) -> Self {
        let capacity = u64::from(capacity);
        let remembered = (capacity * settings.get("remembered") / 100) as u32;
        let queues = settings.get("queues") as u32;
        let entries = capacity as usize + remembered as usize + queues as usize + 3;
        Self {
            queues: (0..queues).map(List::numbered).collect(),
            gone: List::numbered(queues),
            uses: vec![Use::default(); entries].into_boxed_slice(),
            expiries: [NEVER; 8],
            now: 0,
            life: (capacity * settings.get("constant") / 100).max(1),
            remembered,
            distances: (settings.get("life") == 0).then_some(Distances {
                classes: [0; CLASSES],
                period: capacity,
                next: capacity,
            }),
        }
    }

    /// The queue for so many uses.
    fn queue(&self, count: u32) -> usize {
        (count.max(1).ilog2() as usize).min(self.queues.len() - 1)
    }

    /// Takes the frame out of its queue.
    fn take(&mut self, residency: &mut Residency, frame: FrameId) {
        let queue = usize::from(residency.marks(frame));
        let was_oldest = self.queues[queue].oldest(residency) == Some(frame);
        self.queues[queue].remove(residency, frame);
        // Nothing comes down from the lowest queue.
        if was_oldest && queue > 0 {
            let oldest = self.queues[queue].oldest(residency);
            self.expiries[queue] = oldest.map_or(NEVER, |frame| self.uses[frame.index()].expires);
        }
    }

    /// Puts the frame at the newest end of a queue, for a whole life time.
    fn put(&mut self, residency: &mut Residency, frame: FrameId, queue: usize) {
        let expires = self.now + self.life;
        self.uses[frame.index()].expires = expires;
        if self.queues[queue].is_empty() && queue > 0 {
            self.expiries[queue] = expires;
        }
        residency.set_marks(frame, queue as u8);
        self.queues[queue].push_newest(residency, frame);
    }

    /// The oldest of a queue, which is not the lowest one, goes to the one below.
    fn bring_down(&mut self, residency: &mut Residency, queue: usize) {
        let expires = self.now + self.life;
        let [.., below, from] = &mut self.queues[..=queue] else {
            return;
        };
        let Some(oldest) = from.hand_oldest(residency, below) else {
            return;
        };
        residency.set_marks(oldest, queue as u8 - 1);
        self.uses[oldest.index()].expires = expires;
        let next = from.oldest(residency);
        let is_alone = below.len() == 1;
        self.expiries[queue] = next.map_or(NEVER, |frame| self.uses[frame.index()].expires);
        if is_alone && queue > 1 {
            self.expiries[queue - 1] = expires;
        }
    }

    /// The block is used, for the first time or again.
    fn count(&mut self, frame: FrameId) {
        let one = &mut self.uses[frame.index()];
        if one.count() > 0
            && let Some(distances) = &mut self.distances
        {
            distances.classes[(self.now - one.last()).max(1).ilog2() as usize] += 1;
        }
        let count = u64::from(one.count() + 1).min(MOST_USES);
        one.count_and_last = self.now << COUNT_BITS | count;
    }

    /// A demand has been served: the oldest of each queue comes down if its time is up.
    fn tick(&mut self, residency: &mut Residency) {
        self.now += 1;
        // Which queues have one whose time is up, as bits: without a branch for each.
        let mut due = 0_u8;
        for (queue, expiry) in self.expiries.iter().enumerate() {
            due |= u8::from(*expiry < self.now) << queue;
        }
        while due != 0 {
            let queue = due.trailing_zeros() as usize;
            due &= due - 1;
            self.bring_down(residency, queue);
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
    /// The upper end of the commonest class, the shorter one of equals; old counts count half from
    /// now on.
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
            lists: self.queues.len() as u32 + 1,
        }
    }

    fn warm(&self, frame: FrameId) {
        black_box(self.uses[frame.index()].expires);
    }

    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, _: Pattern) {
        self.take(residency, frame);
        if touch == Touch::Again {
            self.count(frame);
        }
        let queue = self.queue(self.uses[frame.index()].count());
        self.put(residency, frame, queue);
        self.tick(residency);
    }

    fn recall(&mut self, residency: &mut Residency, frame: FrameId) -> Memory {
        self.gone.remove(residency, frame);
        Memory(1)
    }

    fn victim(&mut self, residency: &mut Residency, _: Memory) -> Option<FrameId> {
        let mut oldest = self
            .queues
            .iter()
            .map(|queue| queue.oldest_valid(residency));
        oldest.find_map(|oldest| oldest)
    }

    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        self.take(residency, frame);
        if self.remembered == 0 {
            return residency.forget(frame);
        }
        if self.gone.len() == self.remembered {
            let oldest = self.gone.pop_oldest(residency);
            residency.forget(oldest.expect("as many as are remembered"));
        }
        residency.remember(frame);
        self.gone.push_newest(residency, frame);
    }

    fn warm_next(&self, residency: &Residency) {
        self.gone.warm_oldest(residency);
    }

    fn insert(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern, memory: Memory) {
        if memory == Memory::NONE {
            self.uses[frame.index()] = Use::default();
        }
        self.count(frame);
        let queue = self.queue(self.uses[frame.index()].count());
        self.put(residency, frame, queue);
        self.tick(residency);
    }

    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern) {
        let queue = usize::from(residency.marks(frame));
        self.take(residency, frame);
        self.put(residency, frame, queue);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.take(residency, frame);
        residency.forget(frame);
    }
}
