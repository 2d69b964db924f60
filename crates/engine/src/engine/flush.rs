//! Flushes: what was written and told to its client is on the medium when a flush ends.
//!
//! ```text
//!   flush(1), flush(2) --> waiting --one command--> at the drive --> flushed(1), flushed(2)
//!   flush(3) ------------> waiting: writes may have ended since that command was given
//! ```
//!
//! A flush is no barrier: writes that have not ended when it comes are not its business.

use std::collections::VecDeque;

use block::{Action, Command, CommandId, Instant, Refused, RequestId, Status};

use super::Engine;
use crate::sent::{Manner, Purpose, Sent};

/// A flush that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    /// The client's name for it.
    pub id: RequestId,
    /// When it ended.
    pub at: Instant,
    /// How: if not well, nobody knows what of the writes before it is on the medium.
    pub status: Status,
}

/// The flushes of an engine.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Not given to the drive yet.
    waiting: Vec<RequestId>,
    /// Served by the command at the drive.
    at_drive: Vec<RequestId>,
    ended: VecDeque<Flushed>,
}

impl Flushes {
    fn held(&self) -> usize {
        self.waiting.len() + self.at_drive.len() + self.ended.len()
    }
}

impl Engine {
    /// A client wants all writes whose ends it was told to be on the medium.
    ///
    /// # Errors
    /// If as many flushes are held as requests may be.
    pub fn flush(&mut self, now: Instant, id: RequestId) -> Result<(), Refused> {
        self.reach(now);
        let limit = self.limits.requests;
        if self.flushes.held() >= limit {
            return Err(Refused::Full { limit });
        }
        self.flushes.waiting.push(id);
        self.busy = now;
        Ok(())
    }

    /// The next flush that has ended.
    pub fn poll_flushed(&mut self) -> Option<Flushed> {
        self.flushes.ended.pop_front()
    }

    /// One command for all flushes that wait, if none is at the drive.
    pub(super) fn poll_flush(&mut self, now: Instant) -> Option<Command> {
        let Flushes {
            waiting, at_drive, ..
        } = &mut self.flushes;
        if waiting.is_empty() || !at_drive.is_empty() {
            return None;
        }
        std::mem::swap(waiting, at_drive);
        Some(self.give_flush(now))
    }

    /// A flush goes to the drive.
    pub(super) fn give_flush(&mut self, now: Instant) -> Command {
        let id = CommandId(self.given);
        self.given += 1;
        self.at_drive.push_back(Sent {
            id,
            given: now,
            purpose: Purpose::Flush,
            part: None,
            manner: Manner::There,
            was_held: false,
            is_buffered: false,
            route: None,
            worst: self.longest_of_others(),
        });
        Command::new(id, Action::Flush)
    }

    /// The command has ended.
    pub(super) fn flushed(&mut self, now: Instant, status: Status) {
        self.busy = now;
        let Flushes {
            at_drive, ended, ..
        } = &mut self.flushes;
        let ends = at_drive.drain(..).map(|id| Flushed {
            id,
            at: now,
            status,
        });
        ended.extend(ends);
    }
}
