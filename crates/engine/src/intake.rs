//! Intake: the requests that are accepted, divided and refused, until the client is told of their ends.
//!
//! ```text
//!   submit --> refused | slot --> pieces (scheduler::ordering) --> ended --> poll_finished
//!   flush  --> waiting --> one command for all --> poll_flushed
//! ```

use std::collections::VecDeque;

use block::{Class, Finished, Instant, Refused, Request, RequestId, Sectors};
use scheduler::PieceId;
use scheduler::ordering::PriorityLevel;

pub(crate) mod changes;
pub(crate) mod flushes;
pub mod lifecycle;
pub mod limits;
pub(crate) mod slots;

use changes::Unchanged;
use flushes::Flushes;
use limits::Limits;
use slots::Slots;

/// The requests and flushes of an engine.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) limits: Limits,
    capacity: Sectors,
    pub(crate) slots: Slots,
    pub(crate) flushes: Flushes,
    /// When a request was last here.
    pub(crate) busy: Instant,
    /// The requests that have ended and are not reported.
    pub(crate) ended: VecDeque<u32>,
    /// The pieces of a request that a client names.
    found: Vec<PieceId>,
}

impl Intake {
    pub(crate) fn new(capacity: Sectors, limits: Limits) -> Self {
        limits.check();
        Intake {
            limits,
            capacity,
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

    /// The slot of a request that a client names, if `is_of_client` says that it is one of a client.
    fn find(
        &mut self,
        id: RequestId,
        is_of_client: impl Fn(u32) -> bool,
    ) -> Result<u32, Unchanged> {
        let slot = self.slots.find(id).filter(|&slot| is_of_client(slot));
        slot.ok_or(Unchanged::Unknown { id })
    }
}

/// The level of a class; the priority, if there is no such best-effort priority.
fn level_of(class: Class) -> Result<PriorityLevel, u8> {
    match (PriorityLevel::of(class), class) {
        (Some(level), _) => Ok(level),
        (None, Class::BestEffort(priority)) => Err(priority),
        (None, _) => panic!("{class:?} has no level"),
    }
}
