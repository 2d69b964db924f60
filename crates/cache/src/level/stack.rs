//! Levels on top of each other, with messages between them that cost nothing.

use block::{Instant, RequestId};

use super::{Answered, Ending, Fetch, FetchId, Level, LevelRefused};
use crate::coordinator::UpperRequest;

/// At least one level, the first of them on top.
pub struct Stack {
    levels: Vec<Level>,
}

impl Stack {
    /// These levels, each above the next. A level below another one should serve as many requests at
    /// a time as that has fetches: what it refuses is a failed fetch.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(levels: Vec<Level>) -> Self {
        assert!(!levels.is_empty(), "a stack of no levels");
        Self { levels }
    }

    /// The levels, from the top.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// A request for the top.
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

    /// What is to be read below the last level.
    pub fn poll(&mut self) -> Option<Fetch> {
        self.levels.last_mut()?.poll()
    }

    /// A read below the last level has ended.
    pub fn complete(&mut self, now: Instant, id: FetchId, ending: Ending) {
        if let Some(last) = self.levels.last_mut() {
            last.complete(now, id, ending);
        }
        self.settle(now);
    }

    /// A request of the top that has its answer.
    pub fn poll_finished(&mut self) -> Option<Answered> {
        self.levels[0].poll_finished()
    }

    /// Carries fetches down and answers up, until none is left between two levels.
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
