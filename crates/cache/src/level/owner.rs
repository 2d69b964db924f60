//! For an owner who keeps the blocks' bytes, in places of its own: which frames they are in, and what
//! it does to them without asking anybody below.
//!
//! ```text
//!   owner   pages:   frame -> bytes      a page comes with its read, or with [`Level::store`]
//!                                        and goes with [`Level::poll_departed`]
//! ```

use std::collections::VecDeque;

use super::{BlockState, FetchId, FetchOrigin, FrameId, Interval, Level, Pattern};

/// A block that has gone from its frame, to make room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed {
    /// The frame. It may be another block's by now.
    pub frame: FrameId,
    /// The block.
    pub block: u64,
}

/// What became of a block whose bytes somebody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is valid, in this frame.
    In(FrameId),
    /// It is in flight: what is being read is older than these bytes.
    InFlight,
    /// All frames are in flight, or there is no such block.
    NoFrame,
}

impl Level {
    /// The level, which notes from now on what goes: somebody takes it by [`Level::poll_departed`].
    #[must_use]
    pub fn with_departures(mut self) -> Self {
        self.departed = Some(VecDeque::new());
        self
    }

    /// The next block that has gone, in their order. Those that were withdrawn are not told of.
    pub fn poll_departed(&mut self) -> Option<Departed> {
        self.departed.as_mut()?.pop_front()
    }

    /// Which blocks of a fetch under way go into frames; empty if none. The others, before them, are
    /// for one request alone.
    pub fn framed(&mut self, id: FetchId) -> Interval {
        match self.fetches.get_mut(id.0) {
            Some(run) => Interval::new(run.frames_from, run.blocks.last),
            None => Interval::EMPTY,
        }
    }

    /// Somebody has the block's bytes: it needs not be read. That counts as a demand to the
    /// replacement; prefetcher and coordinator do not learn of it.
    pub fn store(&mut self, block: u64) -> Stored {
        if let Some(frame) = self.residency().frame(block) {
            if self.residency().is_in_flight(frame) {
                return Stored::InFlight;
            }
            self.cache.demand_frame(frame, Pattern::Random);
            return Stored::In(frame);
        }
        match self.admit(block, FetchOrigin::Demand) {
            Some(frame) => {
                self.cache.complete_frame(frame);
                self.cache.demand_frame_silently(frame);
                Stored::In(frame)
            }
            None => Stored::NoFrame,
        }
    }

    /// The block's bytes are of no use any more: it is absent, nothing is learned from it, and it is not
    /// wished. What is in flight stays so: it ends as its fetch does.
    pub fn withdraw(&mut self, block: u64) {
        self.unwish(Interval::new(block, block));
        if self.residency().state(block) == BlockState::Valid {
            self.cache.withdraw(block);
        }
    }
}
