//! The short way of an engine in which nothing but the policy decides.
//!
//! ```text
//!   poll --> policy --> command          complete --> piece --> request
//! ```
//!
//! Without streams, parts, gaps and a belief that follows its drive, the stages of the row pass everything on. Here
//! they are not asked. The row would give the same commands at the same moments: an engine with explanations
//! takes it, and a test compares both.

use block::{Action, Command, CommandId, Direction, Duration, Outcome, Status};
use scheduler::Sight;

use super::ArmEngine;
use crate::command::{Approach, Purpose, SentCommand, StageAnswer};
use crate::intake::slots::{End, Parts};

impl ArmEngine {
    /// Whether nothing but the policy decides what is given next.
    #[inline]
    pub(super) fn has_policy_alone(&self) -> bool {
        self.belief.serves_policy_alone()
            && !self.intake.flushes.is_any_waiting()
            && self.dispatch.chosen.is_empty()
    }

    /// The command of the piece that the policy chooses.
    pub(super) fn ask_policy(&mut self) -> Option<Command> {
        let now = self.now;
        for answer in [
            self.dispatch.room(now, &self.intake.limits, None),
            self.dispatch.rest(now),
        ] {
            if let StageAnswer::WaitUntil(then) = answer {
                self.dispatch.wakeup = then;
                return None;
            }
        }
        if self.ordering.waiting() == 0 {
            self.dispatch.wakeup = None;
            return None;
        }
        let mut cx = self.stages().cx;
        let Some(piece) = cx.choose() else {
            self.dispatch.settled = true;
            return None;
        };
        let route = match cx.sight() {
            Sight::Order => None,
            Sight::Head => Some(*cx.route(piece)),
        };
        let durability = cx.request(piece).durability;
        self.dispatch.wakeup = None;
        self.ordering.give(now, piece);
        let (direction, extent) = self.ordering.blocks(piece);
        let id = self.dispatch.next_id();
        self.dispatch.send(SentCommand {
            id,
            given: now,
            purpose: Purpose::Request {
                piece,
                unplanned: None,
            },
            part: Some(extent),
            approach: Approach::Seek,
            was_held: false,
            is_buffered: false,
            route,
            worst: Duration::ZERO,
        });
        let action = match direction {
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        Some(Command::new(id, action))
    }

    /// Completes a command of a request; `false` if the row has to.
    pub(super) fn complete_alone(&mut self, id: CommandId, outcome: &Outcome) -> bool {
        // What came back undone may be tried again.
        if !self.belief.serves_policy_alone() || outcome.status == Status::TimedOut {
            return false;
        }
        let now = self.now;
        let place = self.dispatch.place_of(id);
        let sent = self.dispatch.get(place);
        let Purpose::Request { piece, .. } = sent.purpose else {
            return false;
        };
        if let Some(route) = &sent.route {
            self.belief.resync(now, sent, route);
        }
        self.dispatch.forget(place);
        self.belief.note_end(now);
        self.intake.busy = now;
        let waited = self.ordering.waited(piece);
        let slot = self.ordering.request_slot(piece);
        self.ordering.end(now, piece);
        let end = End {
            at: outcome.at,
            status: outcome.status,
            waited: waited.all,
            waited_order: waited.order,
            account: outcome.account,
        };
        if self.intake.slots.part_ended(slot, end) == Parts::All {
            self.intake.ended.push_back(slot);
        }
        true
    }
}
