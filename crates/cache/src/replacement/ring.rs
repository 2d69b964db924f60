//! A second order for entries that already stand in a list of the residency's.

use crate::residency::FrameId;

/// A ring of entries through the entry 0, which is no block's.
#[derive(Debug)]
pub(super) struct Ring {
    links: Box<[RingLink]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RingLink {
    newer: FrameId,
    older: FrameId,
}

impl Ring {
    /// For entries whose numbers are less than this.
    pub(super) fn new(entries: usize) -> Self {
        Self {
            links: vec![RingLink::default(); entries].into_boxed_slice(),
        }
    }

    /// The oldest of all.
    pub(super) fn oldest(&self) -> Option<FrameId> {
        self.newer(FrameId::HEAD)
    }

    /// Reads the neighbours of an entry, for the processor to have them at hand.
    pub(super) fn warm(&self, frame: FrameId) -> u64 {
        let RingLink { newer, older } = self.links[frame.index()];
        let (newer, older) = (self.links[newer.index()], self.links[older.index()]);
        (newer.newer.index() ^ older.older.index()) as u64
    }

    /// The neighbour towards the newest.
    pub(super) fn newer(&self, frame: FrameId) -> Option<FrameId> {
        let newer = self.links[frame.index()].newer;
        (newer != FrameId::HEAD).then_some(newer)
    }

    /// Puts an entry that does not stand in it at the newest end.
    pub(super) fn push_newest(&mut self, frame: FrameId) {
        let older = self.links[0].older;
        self.links[0].older = frame;
        self.links[older.index()].newer = frame;
        self.links[frame.index()] = RingLink {
            newer: FrameId::HEAD,
            older,
        };
    }

    /// Takes the entry out.
    pub(super) fn remove(&mut self, frame: FrameId) {
        let RingLink { newer, older } = self.links[frame.index()];
        self.links[newer.index()].older = older;
        self.links[older.index()].newer = newer;
    }
}
