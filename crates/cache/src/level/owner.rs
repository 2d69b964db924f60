//! The interface of an owner that keeps the blocks' bytes: the frames that hold them, and stores
//! without a read.
//!
//! ```text
//!   owner   pages:   frame -> bytes      a page comes with its read, or with [`Level::store`]
//!                                        and goes with [`Level::poll_departed`]
//! ```

use std::collections::VecDeque;

use super::{BlockState, FetchId, FetchOrigin, FrameId, Interval, Level, Pattern};

/// A block that was evicted to make room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed {
    /// The frame. Another block may have it already.
    pub frame: FrameId,
    /// The block.
    pub block: u64,
}

/// The result of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The block is valid in this frame.
    In(FrameId),
    /// The block is in flight: its read returns older bytes.
    InFlight,
    /// All frames are in flight, or the block does not exist.
    NoFrame,
}

impl Level {
    /// Records evictions from now on, for [`Level::poll_departed`].
    #[must_use]
    pub fn with_departures(mut self) -> Self {
        self.departed = Some(VecDeque::new());
        self
    }

    /// The next evicted block, in order. Withdrawn blocks are not reported.
    pub fn poll_departed(&mut self) -> Option<Departed> {
        self.departed.as_mut()?.pop_front()
    }

    /// The blocks of a fetch in flight that go into frames; empty if none. The blocks before them
    /// are for one request alone.
    pub fn framed(&mut self, id: FetchId) -> Interval {
        match self.fetches.get_mut(id.0) {
            Some(run) => Interval::new(run.frames_from, run.blocks.last),
            None => Interval::EMPTY,
        }
    }

    /// Stores a block whose bytes the owner has, without a read. The replacement policy sees a
    /// demand; prefetcher and coordinator do not.
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

    /// Makes a block absent without an effect on the statistics, and ends its wish. A block in
    /// flight stays so until its fetch ends.
    pub fn withdraw(&mut self, block: u64) {
        self.unwish(Interval::new(block, block));
        if self.residency().state(block) == BlockState::Valid {
            self.cache.withdraw(block);
        }
    }
}
