//! The second arm of a drive of two, and what belongs to both: crossing requests, and flushes.
//!
//! ```text
//!   crossing request --> part of each arm --first end kept--> second end --> one end
//!   flush -------------> one of each arm ---first end kept--> second end --> one end
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use block::{
    Command, CommandId, Extent, Finished, Instant, Outcome, Refused, Request, RequestId, Status,
};
use drive::Profile;

use super::border::{self, Border, Side};
use super::tasks::TaskTable;
use crate::Flushed;
use crate::engine::ArmEngine;

/// The second arm, and what it has in common with the first.
pub(super) struct Joint {
    pub(super) arm: ArmEngine,
    pub(super) border: Border,
    /// The belief about the whole drive.
    pub(super) whole: Arc<Profile>,
    /// Requests with parts at both arms that were not reported.
    crossing: BTreeMap<RequestId, Crossing>,
    /// Those of them of which both arms hold a part: two held parts are one request.
    pub(super) counted_twice: usize,
    /// Flushes that were not reported.
    flushes: usize,
    /// Those of them that one arm has ended: each arm ends them in the order of their acceptance.
    flushed: [VecDeque<Flushed>; 2],
    pub(super) tasks: TaskTable,
}

/// A request that crosses the border.
struct Crossing {
    /// The blocks as submitted.
    extent: Extent,
    /// The end of the part that ended first.
    first_end: Option<Finished>,
}

impl Joint {
    pub(super) fn new(arm: ArmEngine, whole: Arc<Profile>) -> Self {
        Joint {
            arm,
            border: Border(whole.share_of(1).start()),
            whole,
            crossing: BTreeMap::new(),
            counted_twice: 0,
            flushes: 0,
            flushed: Default::default(),
            tasks: TaskTable::default(),
        }
    }

    /// Accepts a request while `held` others are.
    pub(super) fn submit(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        request: Request,
        held: usize,
    ) -> Result<(), Refused> {
        let (extent, capacity) = (request.extent, self.whole.geometry.sectors().0);
        if extent.end().0 > capacity {
            return Err(Refused::PastEnd { extent, capacity });
        }
        let limit = first.limits().open_to(request.class);
        if held >= limit {
            return Err(Refused::Full { limit });
        }
        let mut parts = 0;
        for (side, extent) in self.border.parts(extent) {
            let part = Request { extent, ..request };
            // Only the first part may be refused: its class may not exist.
            match side {
                Side::First => first.enter(now, part, held)?,
                Side::Second => self.arm.enter(now, part, held)?,
            }
            parts += 1;
        }
        if parts == 2 {
            let first_end = None;
            let before = self
                .crossing
                .insert(request.id, Crossing { extent, first_end });
            assert!(before.is_none(), "{:?} is held already", request.id);
            self.counted_twice += 1;
        }
        Ok(())
    }

    /// The next command for the drive, if one is due now.
    pub(super) fn poll(&mut self, first: &mut ArmEngine, now: Instant) -> Option<Command> {
        if let Some(command) = first.poll(now) {
            return Some(self.border.command_of_drive(Side::First, command));
        }
        let command = self.arm.poll(now)?;
        Some(self.border.command_of_drive(Side::Second, command))
    }

    /// Takes in the outcome of a command.
    ///
    /// # Panics
    /// If it is not that of the command `id`, or the command is not at the drive.
    pub(super) fn complete(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        id: CommandId,
        outcome: Outcome,
    ) {
        assert_eq!(id, outcome.id, "an outcome under another command's name");
        let (side, id) = border::arm_command(outcome.id);
        let outcome = Outcome {
            id,
            status: self.border.status_of_arm(side, outcome.status),
            ..outcome
        };
        match side {
            Side::First => first.complete(now, id, outcome),
            Side::Second => self.arm.complete(now, id, outcome),
        }
    }

    /// An arm's request as its client submitted it.
    pub(super) fn as_submitted(&self, side: Side, request: Request) -> Request {
        let extent = match self.crossing.get(&request.id) {
            Some(crossing) => crossing.extent,
            None => self.border.of_drive(side, request.extent),
        };
        Request { extent, ..request }
    }

    /// The next request of which all parts have ended.
    pub(super) fn poll_finished(&mut self, first: &mut ArmEngine) -> Option<Finished> {
        loop {
            let of_first = first.poll_finished().map(|end| (Side::First, end));
            let of_second = || Some((Side::Second, self.arm.poll_finished()?));
            let (side, mut end) = of_first.or_else(of_second)?;
            end.status = self.border.status_of_drive(side, end.status);
            end.request = self.as_submitted(side, end.request);
            let id = end.request.id;
            let Some(crossing) = self.crossing.get_mut(&id) else {
                return Some(end);
            };
            match crossing.first_end {
                None => {
                    crossing.first_end = Some(end);
                    self.counted_twice -= 1;
                }
                Some(other) => {
                    self.crossing.remove(&id);
                    return Some(joined(other, end));
                }
            }
        }
    }

    /// Accepts a flush for both arms: each then knows what it does to its head.
    pub(super) fn flush(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        id: RequestId,
    ) -> Result<(), Refused> {
        let limit = first.limits().requests;
        if self.flushes >= limit {
            return Err(Refused::Full { limit });
        }
        first.flush(now, id)?;
        self.arm.flush(now, id)?;
        self.flushes += 1;
        Ok(())
    }

    /// The next flush that has ended for both arms.
    pub(super) fn poll_flushed(&mut self, first: &mut ArmEngine) -> Option<Flushed> {
        self.flushed[0].extend(std::iter::from_fn(|| first.poll_flushed()));
        self.flushed[1].extend(std::iter::from_fn(|| self.arm.poll_flushed()));
        let [one, other] = &mut self.flushed;
        if one.is_empty() {
            return None;
        }
        let (other, one) = (other.pop_front()?, one.pop_front()?);
        self.flushes -= 1;
        Some(Flushed {
            id: one.id,
            at: one.at.max(other.at),
            status: worse(one.status, other.status),
        })
    }
}

/// The end of a crossing request: that of the part that ended last.
fn joined(one: Finished, other: Finished) -> Finished {
    let status = worse(one.status, other.status);
    let last = match one.at > other.at {
        true => one,
        false => other,
    };
    Finished { status, ..last }
}

/// The first of two statuses that is an error.
fn worse(one: Status, other: Status) -> Status {
    match one {
        Status::Good => other,
        error => error,
    }
}
