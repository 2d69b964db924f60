//! Queues of entries, each with the time at which it moves down.
//!
//! ```text
//!        .------- newer -------.
//!        v                     |
//!      head <-> newest <-> ... oldest <-> head      due: time, 61 bits | queue, 3 bits
//! ```
//!
//! An entry stores its neighbours beside its time, so that moving the oldest down reads its successor
//! once. The first entries are the queues' heads.

use crate::residency::{FrameId, Residency};

/// Bits for a queue's number.
const QUEUE_BITS: u32 = 3;

/// The queue of remembered blocks, from which none moves down: after all numbered queues.
pub(super) const GONE: usize = 1 << QUEUE_BITS;

/// The number of queues.
pub(super) const HEADS: usize = GONE + 1;

/// The time of an empty queue.
const NEVER: u64 = u64::MAX;

/// A power of two, so that a number below it needs no check: at least as many as queues.
const SLOTS: usize = 16;

#[derive(Clone, Copy, Debug)]
struct QueueLink {
    newer: u32,
    older: u32,
    due: u64,
}

/// All queues.
#[derive(Debug)]
pub(super) struct Queues {
    links: Box<[QueueLink]>,
    /// The time at which the oldest entry of each queue moves down.
    due: [u64; SLOTS],
}

impl Queues {
    /// Empty queues for entries with numbers below `entries`; the first ones are the heads.
    pub(super) fn new(entries: usize) -> Self {
        let link = |at| QueueLink {
            newer: at,
            older: at,
            due: NEVER,
        };
        Self {
            links: (0..entries as u32).map(link).collect(),
            due: [NEVER; SLOTS],
        }
    }

    /// The queues above the lowest one with an entry whose time is over, as bits.
    pub(super) fn late(&self, now: u64) -> u32 {
        let now = now << QUEUE_BITS;
        let mut late = 0;
        for due in self.due[1..GONE].iter().rev() {
            late = late + late + u32::from(*due < now);
        }
        late << 1
    }

    /// The oldest entry of the queue.
    pub(super) fn oldest(&self, queue: usize) -> Option<FrameId> {
        let oldest = self.links[queue].newer;
        (oldest as usize != queue).then_some(FrameId::numbered(oldest))
    }

    /// The oldest entry of the queue whose read is complete.
    pub(super) fn oldest_valid(&self, residency: &Residency, queue: usize) -> Option<FrameId> {
        let mut at = self.links[queue].newer;
        while at as usize != queue {
            let frame = FrameId::numbered(at);
            if !residency.is_in_flight(frame) {
                return Some(frame);
            }
            at = self.links[at as usize].newer;
        }
        None
    }

    /// The queue of the entry, which is not in [`GONE`].
    pub(super) fn of(&self, frame: FrameId) -> usize {
        (self.links[frame.index()].due & ((1 << QUEUE_BITS) - 1)) as usize
    }

    /// Prefetches an entry and its neighbours into the processor's cache.
    pub(super) fn warm(&self, frame: FrameId) -> u64 {
        let link = self.links[frame.index()];
        let newer = self.links[link.newer as usize].due;
        let older = self.links[link.older as usize].due;
        newer ^ older
    }

    /// Adds an entry that is in no queue at the newest end.
    #[inline]
    pub(super) fn push(&mut self, queue: usize, frame: FrameId, expires: u64) {
        let due = expires << QUEUE_BITS | queue as u64;
        let head = &mut self.links[queue];
        let newest = std::mem::replace(&mut head.older, frame.index() as u32);
        self.links[newest as usize].newer = frame.index() as u32;
        self.links[frame.index()] = QueueLink {
            newer: queue as u32,
            older: newest,
            due,
        };
        if newest as usize == queue {
            self.due[queue % SLOTS] = due;
        }
    }

    /// Removes the entry.
    #[inline]
    pub(super) fn take(&mut self, frame: FrameId) {
        let QueueLink { newer, older, .. } = self.links[frame.index()];
        let next = &mut self.links[newer as usize];
        next.older = older;
        let due = next.due;
        self.links[older as usize].newer = newer;
        // The oldest entry is the neighbour of its head.
        if (older as usize) < HEADS {
            self.due[older as usize % SLOTS] = due;
        }
    }

    /// Moves the oldest entry of the queue, which has one, to the newest end of the one below.
    #[inline]
    pub(super) fn bring_down(&mut self, queue: usize, expires: u64) {
        let oldest = self.links[queue].newer;
        let newer = self.links[oldest as usize].newer;
        self.links[queue].newer = newer;
        let next = &mut self.links[newer as usize];
        next.older = queue as u32;
        self.due[queue % SLOTS] = next.due;
        self.push(queue - 1, FrameId::numbered(oldest), expires);
    }
}
