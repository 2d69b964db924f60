//! Levels above each other, with messages that cost nothing.

use block::{Instant, RequestId};

use super::{Answered, Ending, Fetch, FetchId, Level, LevelRefused};
use crate::coordinator::UpperRequest;

/// At least one level; the first is the top.
pub struct Stack {
    levels: Vec<Level>,
}

impl Stack {
    /// A stack of these levels. A lower level should accept as many pending requests as the upper
    /// one has fetches: a refused fetch fails.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn new(levels: Vec<Level>) -> Self {
        assert!(!levels.is_empty(), "a stack of no levels");
        Self { levels }
    }

    /// The levels, from the top.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Submits a request to the top.
    ///
    /// # Errors
    /// As [`Level::submit`].
    pub fn submit(
        &mut self,
        now: Instant,
        id: RequestId,
        asked: UpperRequest,
    ) -> Result<(), LevelRefused> {
        self.levels[0].submit(now, id, asked)?;
        self.settle(now);
        Ok(())
    }

    /// The next fetch of the last level.
    pub fn poll(&mut self) -> Option<Fetch> {
        self.levels.last_mut()?.poll()
    }

    /// Notes the end of a fetch of the last level.
    pub fn complete(&mut self, now: Instant, id: FetchId, ending: Ending) {
        if let Some(last) = self.levels.last_mut() {
            last.complete(now, id, ending);
        }
        self.settle(now);
    }

    /// The next answered request of the top.
    pub fn poll_finished(&mut self) -> Option<Answered> {
        self.levels[0].poll_finished()
    }

    /// Passes fetches down and answers up, until none is left between two levels.
    fn settle(&mut self, now: Instant) {
        for upper in 0..self.levels.len() - 1 {
            while let Some(fetch) = self.levels[upper].poll() {
                let id = RequestId(u64::from(fetch.id.0));
                if self.levels[upper + 1].submit(now, id, fetch.asked).is_err() {
                    self.levels[upper].complete(now, fetch.id, Ending::Failed);
                }
            }
        }
        for lower in (1..self.levels.len()).rev() {
            while let Some(answered) = self.levels[lower].poll_finished() {
                let id = FetchId(answered.id.0 as u32);
                self.levels[lower - 1].complete(now, id, answered.ending);
            }
        }
    }
}
