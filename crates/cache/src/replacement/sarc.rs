//! SARC: separate lists for sequential and random blocks. The list whose oldest part is worth more
//! grows (Gill, Modha, USENIX ATC 2005; update lines as in two independent codes).
//!
//! ```text
//!   SEQ     newest ........... [ bottom ]      hit here: worth much if many sequential misses
//!   RANDOM  newest ........... [ bottom ]      hit here: compared with them
//! ```
//!
//! SARC's prefetcher is in `prefetch::sarc`. Its notes report which blocks are sequential, which
//! missed, and which move to the newest end of SEQ at a trigger. Not for loads without sequential
//! runs: then it is an LRU at a higher cost.

use super::{GhostTag, Pattern, Replacement, Touch, share};
use crate::residency::{FrameId, List, Needs, Residency};
use crate::settings::{AlgorithmSettings, Parameter, Values};

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "bottom",
        what: "Thousandths of the cache that the bottom of a list is; 20 (the paper: any small fraction would work), at least one block.",
        values: Values::Number {
            range: 1..=1000,
            default: 20,
        },
    },
    Parameter {
        key: "ratio",
        what: "From which ratio of worths a hit in the bottom of SEQ lets it grow: LargeRatio; 20, another code has 10.",
        values: Values::Number {
            range: 1..=1000,
            default: 20,
        },
    },
];

/// The list of a frame: its marks, and the numbers of the lists.
const RANDOM: u8 = 0;
const SEQ: u8 = 1;

/// A SARC policy: the lists, and the state of their adaptation.
#[derive(Debug)]
pub struct Sarc {
    lists: [List; 2],
    /// The insertion of each frame at the newest end, in placements.
    stamps: Box<[u64]>,
    now: u64,
    capacity: u32,
    /// The number of blocks in the bottom of a list: the paper's delta L.
    bottom: u32,
    large_ratio: f64,
    /// The target size of SEQ; 0 before the first replacement.
    desired: f64,
    adapt: f64,
    sequential_misses: u64,
}

impl Sarc {
    /// A policy for `capacity` frames.
    pub fn new(capacity: u32, settings: &AlgorithmSettings) -> Self {
        Self {
            lists: [0, 1].map(List::numbered),
            stamps: vec![0; capacity as usize + 4].into_boxed_slice(),
            now: 0,
            capacity,
            bottom: share(capacity, settings.get("bottom")).max(1),
            large_ratio: settings.get("ratio") as f64,
            desired: 0.0,
            adapt: 0.0,
            sequential_misses: 0,
        }
    }

    fn list(&self, list: u8) -> List {
        self.lists[usize::from(list)]
    }

    fn stamp(&self, frame: Option<FrameId>) -> u64 {
        frame.map_or(0, |frame| self.stamps[frame.index()])
    }

    fn take(&mut self, residency: &mut Residency, frame: FrameId) {
        let list = usize::from(residency.marks(frame));
        self.lists[list].remove(residency, frame);
    }

    fn put(&mut self, residency: &mut Residency, frame: FrameId, list: u8) {
        self.now += 1;
        self.stamps[frame.index()] = self.now;
        residency.set_marks(frame, list);
        self.lists[usize::from(list)].push_newest(residency, frame);
    }

    /// Whether the frame belongs to the bottom of its list, by its time stamp.
    fn is_in_bottom(&self, residency: &Residency, frame: FrameId) -> bool {
        let list = self.list(residency.marks(frame));
        let oldest = self.stamp(list.oldest(residency));
        let newest = self.stamp(list.newest(residency));
        let age = (self.stamps[frame.index()] - oldest) as f64;
        age * f64::from(list.len()) <= f64::from(self.bottom) * (newest - oldest) as f64
    }

    /// The worth of SEQ's bottom relative to RANDOM's, since the last hit in RANDOM's.
    fn ratio(&self) -> f64 {
        let seq = self.list(SEQ).len().max(1);
        2.0 * self.sequential_misses as f64 * f64::from(self.bottom) / f64::from(seq)
    }

    /// Adapts the target to a hit in the bottom of a list.
    fn adapt(&mut self, list: u8) {
        let ratio = self.ratio();
        if list == RANDOM {
            self.adapt = (ratio - 1.0).clamp(-1.0, 1.0);
            self.sequential_misses = 0;
        } else if ratio > self.large_ratio {
            self.adapt = 1.0;
        }
    }
}

impl Replacement for Sarc {
    fn needs(&self) -> Needs {
        Needs {
            remembered: 0,
            lists: 2,
        }
    }

    #[inline]
    fn warm(&self, residency: &Residency, frame: FrameId) -> u64 {
        residency.warm_neighbours(frame) ^ self.stamps[frame.index()]
    }

    #[inline]
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, _: Touch, pattern: Pattern) {
        let list = residency.marks(frame);
        if self.is_in_bottom(residency, frame) {
            self.adapt(list);
        }
        self.refresh(residency, frame, pattern);
    }

    #[inline]
    fn victim(&mut self, residency: &mut Residency, _: GhostTag) -> Option<FrameId> {
        let seq = self.list(SEQ).oldest_valid(residency);
        let random = self.list(RANDOM).oldest_valid(residency);
        let (Some(_), Some(_)) = (seq, random) else {
            return seq.or(random);
        };
        let (in_seq, in_random) = (self.list(SEQ).len(), self.list(RANDOM).len());
        let takes_seq = if in_seq < self.bottom || in_random < self.bottom {
            self.stamp(seq) < self.stamp(random)
        } else {
            f64::from(in_seq) > self.desired
        };
        if takes_seq { seq } else { random }
    }

    #[inline]
    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        self.withdraw(residency, frame);
        let desired = match self.desired > 0.0 {
            true => self.desired + self.adapt / 2.0,
            false => f64::from(self.list(SEQ).len()),
        };
        self.desired = desired.clamp(0.0, f64::from(self.capacity));
    }

    #[inline]
    fn insert(&mut self, residency: &mut Residency, frame: FrameId, pattern: Pattern, _: GhostTag) {
        let list = match pattern {
            Pattern::Random => RANDOM,
            Pattern::Sequential => SEQ,
        };
        self.put(residency, frame, list);
    }

    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, pattern: Pattern) {
        let list = match pattern {
            Pattern::Random => residency.marks(frame),
            Pattern::Sequential => SEQ,
        };
        self.take(residency, frame);
        self.put(residency, frame, list);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.take(residency, frame);
        residency.forget(frame);
    }

    fn sequential_miss(&mut self) {
        self.sequential_misses += 1;
    }
}
