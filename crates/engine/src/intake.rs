//! Intake: the requests that are accepted, divided and refused, until the client is told of their ends.
//!
//! ```text
//!   submit --> refused | slot --> pieces (scheduler::ordering) --> ended --> poll_finished
//!   flush  --> waiting --> one command for all --> poll_flushed
//! ```

use std::collections::VecDeque;

use block::{Class, Extent, Finished, Instant, Refused, Request, RequestId, Sectors};
use scheduler::PieceId;
use scheduler::ordering::PriorityLevel;

pub(crate) mod flushes;
pub mod lifecycle;
pub mod limits;
pub(crate) mod slots;

use flushes::Flushes;
use limits::Limits;
use slots::Slots;

/// The requests and flushes of an engine.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) limits: Limits,
    capacity: Sectors,
    /// Whether a write may be given in parts that are not in their order. In a host-managed zone it may not.
    pub(crate) divides_writes: bool,
    pub(crate) slots: Slots,
    pub(crate) flushes: Flushes,
    /// When a request was last here.
    pub(crate) busy: Instant,
    /// The requests that have ended and are not reported.
    pub(crate) ended: VecDeque<u32>,
    /// The pieces of a request that a client names.
    pub(crate) found: Vec<PieceId>,
}

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

impl Intake {
    pub(crate) fn new(capacity: Sectors, limits: Limits) -> Self {
        limits.check();
        Intake {
            limits,
            capacity,
            divides_writes: true,
            slots: Slots::default(),
            flushes: Flushes::default(),
            busy: Instant::ZERO,
            ended: VecDeque::new(),
            found: Vec::new(),
        }
    }

    /// The level of a request that may be accepted while `held` others are.
    ///
    /// # Errors
    /// If it is not on the drive, its class does not exist, or as many requests are held as may be.
    pub(crate) fn admit(&self, request: &Request, held: usize) -> Result<PriorityLevel, Refused> {
        if request.extent.end().0 > self.capacity.0 {
            return Err(self.past_end(request));
        }
        let level = level_of(request.class).map_err(|priority| Refused::Priority { priority })?;
        let limit = self.limits.open_to(request.class);
        match held < limit {
            true => Ok(level),
            false => Err(Refused::Full { limit }),
        }
    }

    pub(crate) fn past_end(&self, request: &Request) -> Refused {
        Refused::PastEnd {
            extent: request.extent,
            capacity: self.capacity.0,
        }
    }

    /// The next request that has ended.
    #[inline]
    pub(crate) fn poll_finished(&mut self) -> Option<Finished> {
        let slot = self.slots.give_back(self.ended.pop_front()?);
        Some(Finished {
            request: slot.request,
            submitted: slot.submitted,
            at: slot.end.at,
            status: slot.end.status,
            waited: slot.end.waited,
            waited_order: slot.end.waited_order,
            account: slot.end.account,
        })
    }

    /// Keeps the memory of `found` for the next change; the pieces of `id` that were found.
    ///
    /// # Errors
    /// If none was.
    pub(crate) fn give_back_found(
        &mut self,
        id: RequestId,
        found: Vec<PieceId>,
    ) -> Result<(), Unchanged> {
        let answer = match found.is_empty() {
            true => Err(Unchanged::NotWaiting { id }),
            false => Ok(()),
        };
        self.found = found;
        answer
    }
}

/// The level of a class; the priority, if there is no such best-effort priority.
pub(crate) fn level_of(class: Class) -> Result<PriorityLevel, u8> {
    match (PriorityLevel::of(class), class) {
        (Some(level), _) => Ok(level),
        (None, Class::BestEffort(priority)) => Err(priority),
        (None, _) => panic!("{class:?} has no level"),
    }
}

#[cfg(test)]
mod tests;
