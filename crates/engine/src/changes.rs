//! What a client may still change about requests that wait: their urgency, and whether they are
//! done at all.

use block::{Class, Extent, Instant, RequestId, Status};
use scheduler::ordering::{Level, Stage};

use crate::engine::{Engine, keep};
use crate::forecast::Route;
use crate::slots::{End, Parts};

/// Why a request was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchanged {
    /// No request of this name is held.
    #[error("request {} is not held: it ended, or never came", id.0)]
    Unknown {
        /// What was asked for.
        id: RequestId,
    },
    /// All that was asked for is at the drive or has ended.
    #[error("request {} no longer waits: expected one that was not given to the drive", id.0)]
    NotWaiting {
        /// What was asked for.
        id: RequestId,
    },
    /// The request has none of the blocks.
    #[error("{part} are not of request {}, which has {extent}", id.0)]
    Outside {
        /// Whose blocks they should be.
        id: RequestId,
        /// What was asked for.
        part: Extent,
        /// The blocks of the request.
        extent: Extent,
    },
    /// There is no such best-effort priority.
    #[error("best-effort priority {priority}: expected 0 (most urgent) to 6")]
    Priority {
        /// What was asked for.
        priority: u8,
    },
}

impl Engine {
    /// Writes that are accepted from now on begin when all that were accepted before have ended.
    pub fn barrier(&mut self, now: Instant) {
        self.reach(now);
        self.ordering.barrier();
    }

    /// The waiting blocks of `part` become as urgent as `class`, if they are not: a request is
    /// divided, and what it waits for is raised with it. The request ends when all of it has.
    ///
    /// # Errors
    /// If nothing of it waits.
    pub fn upgrade(
        &mut self,
        now: Instant,
        id: RequestId,
        part: Extent,
        class: Class,
    ) -> Result<(), Unchanged> {
        self.reach(now);
        let level = match (Level::of(class), class) {
            (Some(level), _) => level,
            (None, Class::BestEffort(priority)) => return Err(Unchanged::Priority { priority }),
            (None, _) => panic!("{class:?} has no level"),
        };
        let slot = self.slots.find(id).filter(|&slot| !self.is_of_stream(slot));
        let slot = slot.ok_or(Unchanged::Unknown { id })?;
        let extent = self.slots.get(slot).request.extent;
        if !extent.overlaps(part) {
            return Err(Unchanged::Outside { id, part, extent });
        }
        let waiting = self.waiting_pieces(slot, part);
        if waiting.is_empty() {
            self.found = waiting;
            return Err(Unchanged::NotWaiting { id });
        }
        for &piece in &waiting {
            // What has begun is raised as a whole: the rest of it is what is wanted.
            if self.ordering.level(piece) > level && !self.has_begun(piece) {
                self.divide(now, slot, piece, part);
            }
            self.ordering.raise(now, piece, level);
        }
        self.found = waiting;
        self.settled = false;
        Ok(())
    }

    /// Takes a request back: what of it waits is not done, and it ends as [`Status::Aborted`]. What
    /// is at the drive ends there first.
    ///
    /// # Errors
    /// If nothing of it waits: then it ends as if it had not been taken back.
    pub fn abort(&mut self, now: Instant, id: RequestId) -> Result<(), Unchanged> {
        self.reach(now);
        let slot = self.slots.find(id).filter(|&slot| !self.is_of_stream(slot));
        let slot = slot.ok_or(Unchanged::Unknown { id })?;
        let extent = self.slots.get(slot).request.extent;
        let waiting = self.waiting_pieces(slot, extent);
        let is_any = !waiting.is_empty();
        for &piece in &waiting {
            self.ordering.withdraw(now, piece);
            self.forget_transfer(piece);
            let waited = self.ordering.waited(piece);
            let end = End {
                at: now,
                status: Status::Aborted,
                waited: waited.all,
                waited_order: waited.order,
                account: None,
            };
            if self.slots.part_ended(slot, end) == Parts::All {
                self.ended.push_back(slot);
            }
        }
        self.found = waiting;
        self.settled = false;
        match is_any {
            true => Ok(()),
            false => Err(Unchanged::NotWaiting { id }),
        }
    }

    /// The pieces of a request that wait and have a block of `part`.
    fn waiting_pieces(&mut self, slot: u32, part: Extent) -> Vec<u32> {
        // What is on the way to the drive is not there yet.
        self.turn_back();
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.ordering.pieces_of(slot, part, &mut found);
        found.retain(|&piece| self.ordering.stage(piece) == Stage::Waiting);
        found
    }

    fn divide(&mut self, now: Instant, slot: u32, piece: u32, part: Extent) {
        let (sight, belief, routes) = (self.sight(), &self.belief, &mut self.routes);
        let cut = self
            .ordering
            .divide(now, piece, part, &mut |piece, direction, extent| {
                let route = Route::seen(sight, belief, extent, direction)
                    .expect("a part of what the belief maps is mapped");
                keep(routes, piece, route)
            });
        let more = cut.iter().flatten().count() as u32;
        self.slots.divided(slot, more);
    }
}
