//! Flushes: what was written and told to its client is on the medium when a flush ends.
//!
//! ```text
//!   flush(1), flush(2) --> waiting --one command--> at the drive --> flushed(1), flushed(2)
//!   flush(3) ------------> waiting: writes may have ended since that command was given
//! ```
//!
//! A flush is no barrier: writes that have not ended when it comes are not its business.

use std::collections::VecDeque;

use block::{Instant, Refused, RequestId, Status};

use crate::command::{Draft, StageAnswer};

/// A flush that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Flushed {
    /// The client's name for it.
    pub id: RequestId,
    /// When it ended.
    pub at: Instant,
    /// How: if not well, any of the writes before it may be missing on the medium.
    pub status: Status,
}

/// The name of a flush that the engine gives the drive for itself. Only its failure is reported. Clients have smaller
/// names.
pub const OWN_FLUSH: RequestId = RequestId(u64::MAX - 1);

/// The flushes of an engine.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    /// Not given to the drive yet.
    waiting: Vec<RequestId>,
    /// Served by the command at the drive.
    at_drive: Vec<RequestId>,
    ended: VecDeque<Flushed>,
}

impl Flushes {
    /// The flushes that are accepted and not yet reported.
    pub(crate) fn held(&self) -> usize {
        self.waiting.len() + self.at_drive.len() + self.ended.len()
    }

    /// Whether a flush has yet to be given to the drive.
    pub(crate) fn is_any_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A client wants all writes whose ends it was told to be on the medium.
    ///
    /// # Errors
    /// If `limit` flushes are held.
    pub(crate) fn accept(&mut self, id: RequestId, limit: usize) -> Result<(), Refused> {
        if self.held() >= limit {
            return Err(Refused::Full { limit });
        }
        self.waiting.push(id);
        Ok(())
    }

    /// The next flush that has ended.
    pub(crate) fn poll(&mut self) -> Option<Flushed> {
        self.ended.pop_front()
    }

    /// One command for all flushes that wait, if none is at the drive.
    pub(crate) fn next(&mut self) -> StageAnswer {
        if self.waiting.is_empty() || !self.at_drive.is_empty() {
            return StageAnswer::Pass;
        }
        std::mem::swap(&mut self.waiting, &mut self.at_drive);
        StageAnswer::Give(Draft::Flush)
    }

    /// The command has ended.
    pub(crate) fn end(&mut self, now: Instant, status: Status) {
        let ends = self.at_drive.drain(..).map(|id| Flushed {
            id,
            at: now,
            status,
        });
        self.ended.extend(ends);
    }

    /// A command has ended that no client waits for. If it failed, clients have to know.
    pub(crate) fn end_own(&mut self, now: Instant, status: Status) {
        if status != Status::Good {
            self.ended.push_back(Flushed {
                id: OWN_FLUSH,
                at: now,
                status,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_that_wait_share_a_command_and_at_most_as_many_are_held_as_may_be() {
        let mut flushes = Flushes::default();
        let name = RequestId;
        assert!(matches!(flushes.next(), StageAnswer::Pass));
        assert_eq!(flushes.accept(name(1), 3), Ok(()));
        assert_eq!(flushes.accept(name(2), 3), Ok(()));
        assert!(matches!(flushes.next(), StageAnswer::Give(Draft::Flush)));
        assert_eq!(flushes.accept(name(3), 3), Ok(()));
        assert!(matches!(flushes.next(), StageAnswer::Pass), "one at a time");
        let limit = 3;
        assert_eq!(flushes.accept(name(4), limit), Err(Refused::Full { limit }));

        flushes.end(Instant::ZERO, Status::Good);
        let ended = [(); 3].map(|()| flushes.poll().map(|flushed| flushed.id));
        assert_eq!(ended, [Some(name(1)), Some(name(2)), None]);
        assert!(matches!(flushes.next(), StageAnswer::Give(Draft::Flush)));
    }

    /// A client's flush has its own command, whose end says whether it is done.
    #[test]
    fn a_flush_of_the_engine_ends_no_flush_of_a_client_and_is_reported_if_it_fails() {
        let mut flushes = Flushes::default();
        assert_eq!(flushes.accept(RequestId(1), 3), Ok(()));
        assert!(matches!(flushes.next(), StageAnswer::Give(Draft::Flush)));
        flushes.end_own(Instant::ZERO, Status::Good);
        assert_eq!(flushes.poll(), None);
        flushes.end_own(Instant::ZERO, Status::TimedOut);
        assert_eq!(flushes.poll().map(|flushed| flushed.id), Some(OWN_FLUSH));
        flushes.end(Instant::ZERO, Status::Good);
        assert_eq!(flushes.poll().map(|flushed| flushed.id), Some(RequestId(1)));
    }
}
