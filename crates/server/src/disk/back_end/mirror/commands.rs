//! Commands at the legs: the engine's, which may have to wait, and those of the mirror.

#![allow(
    unsafe_code,
    reason = "passes on memory by address to the legs, as its caller promised it"
)]

use block::operation::OperationError;
use block::{Action, Command, CommandId, Direction, Instant};

use super::nearest::LegHead;
use super::{Fault, InFlight, Mirror, OWN, Waiting, Work, leg_of};
use crate::arena::Memory;
use crate::disk::back_end::Ended;
use crate::disk::back_end::pieces::in_a_row;
use crate::mirror::superblock::LegRecord;
use crate::ring::Ring;

/// A command of the mirror at a leg.
pub(super) struct OwnCommand {
    id: CommandId,
    pub(super) leg: usize,
    purpose: Purpose,
    action: Action,
    pub(super) fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Lane,
    CopyRead,
    CopyWrite,
    /// Copies that were read in gaps.
    HeldWrite,
}

impl Mirror {
    /// Starts a command of the engine, unless it has to wait. The answer is whether it has.
    ///
    /// # Safety
    /// As for [`BackEnd::start`](crate::disk::back_end::BackEnd::start).
    pub(super) unsafe fn start_or_wait(
        &mut self,
        now: Instant,
        waiting: Waiting,
        ring: &mut Ring,
    ) -> bool {
        let Waiting {
            command, memory, ..
        } = waiting;
        let leg = leg_of(command.id);
        let work = match command.action {
            Action::Read { extent, .. } => Work::Read(extent, memory),
            Action::Write { extent, .. } => match self.data(extent) {
                Some(bytes) => Work::Write(bytes),
                None => return self.refuse(command.id, leg),
            },
            Action::Flush => Work::Flush,
            _ => Work::Other,
        };
        let is_change = matches!(work, Work::Write(_) | Work::Flush);
        if self.state(leg) == LegRecord::Out || (is_change && self.is_broken()) {
            return self.refuse(command.id, leg);
        }
        let is_held = match &work {
            Work::Write(bytes) => !self.regions.may_begin(bytes),
            _ => false,
        };
        if is_held || self.is_lane_next() || !self.has_room(leg) {
            self.waiting.push_back(waiting);
            return false;
        }
        match &work {
            Work::Write(bytes) => self.regions.began(bytes),
            Work::Read(extent, _) => self.gap_read_began(command.id, *extent, waiting.own),
            Work::Flush | Work::Other => (),
        }
        self.in_flight.push(InFlight {
            id: command.id,
            leg,
            action: command.action,
            work,
            fault: Fault::Leg,
        });
        let (all, count) = in_a_row(&memory);
        // SAFETY: the caller's promise.
        unsafe { self.give(now, leg, &command, &all[..count], ring) };
        true
    }

    /// Ends a command of a leg that is not used.
    fn refuse(&mut self, id: CommandId, leg: usize) -> bool {
        let ended = Ended {
            id,
            result: Err(OperationError::Io),
            account: None,
        };
        self.fail(ended, leg);
        true
    }

    /// Tells the engine of a failure, once it is recorded that the leg is out.
    fn fail(&mut self, ended: Ended, leg: usize) {
        let is_recorded = self.durable[leg] == self.state(leg) || self.is_broken();
        match is_recorded {
            true => self.ended.push_back(ended),
            false => self.held.push(ended),
        }
    }

    /// Whether a leg's queue has room for another command.
    pub(super) fn has_room(&self, leg: usize) -> bool {
        let engines = self.in_flight.iter().filter(|one| one.leg == leg);
        let own = self.own.iter().filter(|one| one.leg == leg);
        let back_end = self.legs[leg].back_end.as_ref();
        let depth = back_end.map_or(0, |leg| leg.depth());
        engines.count() + own.count() < depth as usize
    }

    /// Starts a command at a leg.
    ///
    /// # Safety
    /// As for [`BackEnd::start`](crate::disk::back_end::BackEnd::start).
    unsafe fn give(
        &mut self,
        now: Instant,
        leg: usize,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        let Some(back_end) = &mut self.legs[leg].back_end else {
            return;
        };
        // SAFETY: the caller's promise.
        ring.of_leg(leg, |ring| unsafe {
            back_end.start(now, command, memory, ring)
        });
    }

    /// Starts a command of its own.
    ///
    /// # Safety
    /// As for [`BackEnd::start`](crate::disk::back_end::BackEnd::start).
    pub(super) unsafe fn give_own(
        &mut self,
        now: Instant,
        (leg, purpose): (usize, Purpose),
        action: Action,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        self.numbers += 1;
        let id = CommandId(OWN | self.numbers);
        self.own.push(OwnCommand {
            id,
            leg,
            purpose,
            action,
            fault: Fault::Leg,
        });
        // SAFETY: the caller's promise.
        unsafe { self.give(now, leg, &Command::new(id, action), memory, ring) };
    }

    /// Starts what has waited long enough. The answer is whether there was any.
    pub(super) fn release(&mut self, now: Instant, ring: &mut Ring) -> bool {
        let mut is_any = false;
        for _ in 0..self.waiting.len() {
            let Some(waiting) = self.waiting.pop_front() else {
                break;
            };
            // SAFETY: the command was started and has not ended: its memory is there.
            is_any |= unsafe { self.start_or_wait(now, waiting, ring) };
        }
        is_any
    }

    /// The head of a leg is where a command has just ended, if that moved it.
    fn note_head(&mut self, now: Instant, leg: usize, action: &Action) {
        let direction = match action {
            Action::Read { .. } => Direction::Read,
            _ => Direction::Write,
        };
        if let Some(extent) = action.extent() {
            self.heads[leg] = Some(LegHead {
                block: extent.last(),
                direction,
                ended: now,
            });
        }
    }

    /// A command has ended at a leg.
    pub(super) fn leg_ended(&mut self, now: Instant, ended: Ended) {
        if let Some(place) = self.own.iter().position(|one| one.id == ended.id) {
            let own = self.own.swap_remove(place);
            self.note_head(now, own.leg, &own.action);
            return match own.purpose {
                Purpose::Lane => self.lane_ended(now, &own, ended.result),
                Purpose::CopyRead => self.copy_read(now, &own, ended.result),
                Purpose::CopyWrite => self.copy_written(now, &own, ended.result),
                Purpose::HeldWrite => self.held_written(now, &own, ended.result),
            };
        }
        let place = self.in_flight.iter().position(|one| one.id == ended.id);
        let Some(one) = place.map(|place| self.in_flight.swap_remove(place)) else {
            return;
        };
        self.note_head(now, one.leg, &one.action);
        if let Work::Read(extent, memory) = &one.work {
            self.gap_read_ended(one.id, *extent, memory, (ended.result, one.fault));
        }
        let is_change = matches!(one.work, Work::Write(_) | Work::Flush);
        let is_failure = ended.result.is_err() && is_change && one.fault == Fault::Leg;
        if !is_failure {
            return self.ended.push_back(ended);
        }
        match (self.take_out(one.leg), one.work) {
            (true, _) => return self.fail(ended, one.leg),
            (false, Work::Write(bytes)) if self.filled().is_some() => self.regions.spoiled(&bytes),
            _ => (),
        }
        self.ended.push_back(ended);
    }
}
