//! The second arm, and what belongs to both: requests with a part at each.
//!
//! ```text
//!   request of both --> part of each arm --first end kept--> second end --> one end
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use block::{
    Command, CommandId, Direction, Extent, Finished, Instant, Outcome, Refused, Request, RequestId,
    Status,
};
use drive::Profile;

use super::copies::{Copies, WrittenLegs};
use super::division::{self, Division, Side};
use super::flushes::{JointEnd, JointFlushes};
use super::tasks::TaskTable;
use crate::Flushed;
use crate::engine::ArmEngine;

/// The second arm, and what it has in common with the first.
pub(super) struct Joint {
    pub(super) arm: ArmEngine,
    pub(super) division: Division,
    /// The belief about the whole drive, or about a mirror's first one.
    pub(super) whole: Arc<Profile>,
    /// The number of blocks that requests may use.
    pub(super) capacity: u64,
    /// Requests with parts at both arms, and reads of a mirror, that were not reported.
    crossing: BTreeMap<RequestId, Crossing>,
    /// Those of them of which both arms hold a part: two held parts are one request.
    pub(super) counted_twice: usize,
    flushes: JointFlushes,
    pub(super) tasks: TaskTable,
    pub(super) copies: Copies,
    /// Requests of a mirror that have ended and were not reported.
    pub(super) ended: VecDeque<Finished>,
    /// Flushes of a mirror that have ended and were not reported.
    flushed: VecDeque<Flushed>,
}

/// A request with a part at each arm, or a read that another drive of a mirror could serve.
struct Crossing {
    /// The blocks as submitted.
    extent: Extent,
    parts: CrossingParts,
    /// The drives of a mirror that were taken out while they held their part, which says nothing then.
    without: [bool; 2],
    /// The end of the part that ended first, and whose it is.
    first_end: Option<(Side, Finished)>,
}

/// What the parts of a request are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrossingParts {
    /// Each arm has some of the blocks.
    Blocks,
    /// Each drive of a mirror writes all of them.
    Copies,
    /// One drive of a mirror reads them: the one that gave the read to its drive.
    Race(Option<Side>),
    /// One drive of a mirror reads them in its turn.
    Alone,
    /// The drive of a mirror reads them that did not fail to, or was not taken out. The other one's end is kept.
    Retried,
}

impl Joint {
    /// Two arms under a division. `capacity` blocks may be used.
    pub(super) fn new(
        arm: ArmEngine,
        whole: Arc<Profile>,
        division: Division,
        copies: Copies,
    ) -> Self {
        let of_drive = whole.geometry.sectors().0;
        let capacity = match division {
            Division::Border(_) => of_drive,
            Division::Copies => of_drive.min(arm.belief().profile().geometry.sectors().0),
        };
        Joint {
            arm,
            division,
            whole,
            capacity,
            crossing: BTreeMap::new(),
            counted_twice: 0,
            flushes: JointFlushes::default(),
            tasks: TaskTable::default(),
            copies,
            ended: VecDeque::new(),
            flushed: VecDeque::new(),
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
        self.submit_to(first, now, (request, WrittenLegs::All), held)
    }

    /// As [`Joint::submit`], to these drives of a mirror.
    pub(super) fn submit_to(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        (request, legs): (Request, WrittenLegs),
        held: usize,
    ) -> Result<(), Refused> {
        let (extent, capacity) = (request.extent, self.capacity);
        if extent.end().0 > capacity {
            return Err(Refused::PastEnd { extent, capacity });
        }
        let limit = first.limits().open_to(request.class);
        if held >= limit {
            return Err(Refused::Full { limit });
        }
        match self.division {
            Division::Border(_) => self.submit_parts(first, now, request, held),
            Division::Copies => self.submit_copies(first, now, (request, legs), held),
        }
    }

    fn submit_parts(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        request: Request,
        held: usize,
    ) -> Result<(), Refused> {
        let mut parts = 0;
        for (side, extent) in self.division.parts(request.extent) {
            let part = Request { extent, ..request };
            // Only the first part may be refused: its class may not exist.
            arm_of(side, first, &mut self.arm).enter(now, part, held)?;
            parts += 1;
        }
        if parts == 2 {
            self.cross(request, CrossingParts::Blocks);
        }
        Ok(())
    }

    /// Notes a request that more than one arm may serve.
    pub(super) fn cross(&mut self, request: Request, parts: CrossingParts) {
        let crossing = Crossing {
            extent: request.extent,
            parts,
            without: [false; 2],
            first_end: None,
        };
        let before = self.crossing.insert(request.id, crossing);
        assert!(before.is_none(), "{:?} is held already", request.id);
        self.counted_twice += usize::from(parts != CrossingParts::Alone);
    }

    /// Whether a request is written by both drives of a mirror: an abortion could leave them different.
    pub(super) fn is_copied(&self, id: RequestId) -> bool {
        let crossing = self.crossing.get(&id);
        crossing.is_some_and(|crossing| crossing.parts == CrossingParts::Copies)
    }

    /// The next command for the drive, if one is due now.
    pub(super) fn poll(&mut self, first: &mut ArmEngine, now: Instant) -> Option<Command> {
        let (at_first, at_second) = (first.dispatch().at_drive(), self.arm.dispatch().at_drive());
        let before = match self.division {
            Division::Copies if at_first != at_second => match at_first < at_second {
                true => Side::First,
                false => Side::Second,
            },
            Division::Copies => self.copies.preferred(),
            Division::Border(_) => Side::First,
        };
        for side in [before, before.other()] {
            let given = arm_of(side, first, &mut self.arm).poll(now);
            if let Some(command) = given {
                if self.division == Division::Copies {
                    self.withdraw_from_other(first, now, side, &command);
                }
                return Some(self.division.command_of_drive(side, command));
            }
        }
        None
    }

    /// The other drive of a mirror no longer waits with the read that this one has been given.
    fn withdraw_from_other(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        side: Side,
        command: &Command,
    ) {
        let request = arm_of(side, first, &mut self.arm).request_of(command.id);
        let Some(request) = request else {
            return;
        };
        let Some(crossing) = self.crossing.get_mut(&request.id) else {
            return;
        };
        if crossing.parts == CrossingParts::Race(None) {
            crossing.parts = CrossingParts::Race(Some(side));
            // A drive that was taken out does not wait with it any more.
            let _ = arm_of(side.other(), first, &mut self.arm).abort(now, request.id);
        }
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
        let (side, id) = division::arm_command(outcome.id);
        let outcome = Outcome {
            id,
            status: self.division.status_of_arm(side, outcome.status),
            ..outcome
        };
        arm_of(side, first, &mut self.arm).complete(now, id, outcome);
        self.collect_copies(first);
    }

    /// An arm's request as its client submitted it.
    pub(super) fn as_submitted(&self, side: Side, request: Request) -> Request {
        let extent = match self.crossing.get(&request.id) {
            Some(crossing) => crossing.extent,
            None => self.division.of_drive(side, request.extent),
        };
        Request { extent, ..request }
    }

    /// The next request of which all parts have ended.
    pub(super) fn poll_finished(&mut self, first: &mut ArmEngine) -> Option<Finished> {
        match self.division {
            Division::Border(_) => self.next_finished(first),
            Division::Copies => self.ended.pop_front(),
        }
    }

    /// Takes in what the drives of a mirror have ended, after each input: the other one is asked at once for a read
    /// that failed, and a drive that failed alone is out.
    pub(super) fn collect_copies(&mut self, first: &mut ArmEngine) {
        if self.division != Division::Copies {
            return;
        }
        loop {
            while let Some(ended) = self.next_finished(first) {
                self.ended.push_back(ended);
            }
            while let Some(flushed) = self.next_flushed(first) {
                self.flushed.push_back(flushed);
            }
            let Some(side) = self.copies.taken_out() else {
                return;
            };
            let now = first.now().max(self.arm.now());
            self.leave(first, now, side);
        }
    }

    fn next_finished(&mut self, first: &mut ArmEngine) -> Option<Finished> {
        loop {
            let of_first = first.poll_finished().map(|end| (Side::First, end));
            let of_second = || Some((Side::Second, self.arm.poll_finished()?));
            let (side, mut end) = of_first.or_else(of_second)?;
            end.status = self.division.status_of_drive(side, end.status);
            end.request = self.as_submitted(side, end.request);
            let id = end.request.id;
            let Some(crossing) = self.crossing.get_mut(&id) else {
                self.copies.note_served(id, side);
                return Some(end);
            };
            let without = crossing.without;
            let ended = match (crossing.parts, crossing.first_end) {
                (CrossingParts::Alone, _) => self.served(first, side, end, without),
                (CrossingParts::Retried, Some(failed)) => {
                    self.retried(first, (side, end), failed, without)
                }
                (_, None) => {
                    crossing.first_end = Some((side, end));
                    self.counted_twice -= 1;
                    continue;
                }
                (parts, Some(other)) => self.settled(first, (parts, without), other, (side, end)),
            };
            if let Some(ended) = ended {
                self.crossing.remove(&id);
                return Some(ended);
            }
        }
    }

    /// The end of a request whose parts have all ended; `None` if it goes on at the other drive.
    fn settled(
        &mut self,
        first: &mut ArmEngine,
        (parts, without): (CrossingParts, [bool; 2]),
        one: (Side, Finished),
        other: (Side, Finished),
    ) -> Option<Finished> {
        let of = |side| match one.0 == side {
            true => one.1,
            false => other.1,
        };
        let last = match one.1.at > other.1.at {
            true => one.1,
            false => other.1,
        };
        let status = match (parts, without) {
            (CrossingParts::Race(Some(side)), _) => {
                return self.served(first, side, of(side), without);
            }
            (CrossingParts::Copies, [true, false]) => of(Side::Second).status,
            (CrossingParts::Copies, [false, true]) => of(Side::First).status,
            (CrossingParts::Copies, [false, false]) => {
                let ends = Side::ALL.map(|side| of(side).status);
                self.copies.written(last.request, ends)
            }
            _ => worse(one.1.status, other.1.status),
        };
        Some(Finished { status, ..last })
    }

    /// The end of a read that `side` has served; `None` if it failed, and the other drive is asked.
    fn served(
        &mut self,
        first: &mut ArmEngine,
        side: Side,
        end: Finished,
        without: [bool; 2],
    ) -> Option<Finished> {
        let (request, other) = (end.request, side.other());
        // A drive that was taken out meanwhile may have read what a failed write left there.
        let is_doubtful =
            without[side as usize] || !matches!(end.status, Status::Good | Status::Aborted);
        if !is_doubtful || !self.copies.takes(other, Direction::Read) {
            self.copies.note_served(request.id, side);
            return Some(end);
        }
        let arm = arm_of(other, first, &mut self.arm);
        // It was accepted once: the limit does not matter.
        let asked = arm.enter(end.at.max(arm.now()), request, 0);
        asked.expect("a request that was accepted before");
        let crossing = self.crossing.get_mut(&request.id);
        let crossing = crossing.expect("the request is held");
        crossing.parts = CrossingParts::Retried;
        crossing.without[other as usize] = false;
        crossing.first_end = Some((side, end));
        None
    }

    /// The end of a read that another drive failed before; `None` if that one is asked once more.
    fn retried(
        &mut self,
        first: &mut ArmEngine,
        (side, end): (Side, Finished),
        failed: (Side, Finished),
        without: [bool; 2],
    ) -> Option<Finished> {
        let mut end = Finished {
            submitted: failed.1.submitted,
            ..end
        };
        match (end.status, failed.1.status) {
            // The first one did not fail: it was taken out.
            (Status::Good, Status::Good | Status::Aborted) => {}
            (Status::Good, error) => self.copies.fail(failed.0, end.request, error),
            // The second drive was taken out. The first one did read, and is in sync again.
            (Status::Aborted, Status::Good | Status::Aborted) => {
                return self.served(first, side, end, without);
            }
            (Status::Aborted, error) => end.status = error,
            _ => {}
        }
        self.copies.note_served(end.request.id, side);
        Some(end)
    }

    /// A drive of a mirror is out: nothing waits for it any more, and the other one does its tasks.
    pub(super) fn leave(&mut self, first: &mut ArmEngine, now: Instant, side: Side) {
        for (&id, crossing) in &mut self.crossing {
            crossing.without[side as usize] = true;
            // What is at the drive ends there.
            let _ = arm_of(side, first, &mut self.arm).abort(now, id);
        }
        self.flushes.leave(side);
        self.move_tasks(first, now, side);
    }

    /// Accepts a flush for both arms: each then knows what it does to its head.
    pub(super) fn flush(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        id: RequestId,
    ) -> Result<(), Refused> {
        let limit = first.limits().requests;
        if self.flushes.len() >= limit {
            return Err(Refused::Full { limit });
        }
        let asked = Side::ALL
            .map(|side| Some(side).filter(|&side| self.copies.takes(side, Direction::Write)));
        for side in asked.into_iter().flatten() {
            arm_of(side, first, &mut self.arm).flush(now, id)?;
        }
        self.flushes.enter(id, asked);
        Ok(())
    }

    /// The next flush that has ended for both arms.
    pub(super) fn poll_flushed(&mut self, first: &mut ArmEngine) -> Option<Flushed> {
        match self.division {
            Division::Border(_) => self.next_flushed(first),
            Division::Copies => self.flushed.pop_front(),
        }
    }

    fn next_flushed(&mut self, first: &mut ArmEngine) -> Option<Flushed> {
        while let Some(flushed) = first.poll_flushed() {
            self.flushes.note_end(Side::First, flushed);
        }
        while let Some(flushed) = self.arm.poll_flushed() {
            self.flushes.note_end(Side::Second, flushed);
        }
        let (flushed, [one, other]) = match self.flushes.poll()? {
            JointEnd::One(flushed) => return Some(flushed),
            JointEnd::Both(later, ends) => (later, ends),
        };
        let status = match self.division {
            Division::Border(_) => worse(one, other),
            Division::Copies => self.copies.flushed([one, other]),
        };
        Some(Flushed { status, ..flushed })
    }
}

/// The engine of a side.
pub(super) fn arm_of<'a>(
    side: Side,
    first: &'a mut ArmEngine,
    second: &'a mut ArmEngine,
) -> &'a mut ArmEngine {
    match side {
        Side::First => first,
        Side::Second => second,
    }
}

/// The first of two statuses that is an error.
fn worse(one: Status, other: Status) -> Status {
    match one {
        Status::Good => other,
        error => error,
    }
}
