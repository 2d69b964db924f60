//! The engine of a mirror: two drives that hold the same blocks.

use std::sync::Arc;

use block::{CommandId, Direction, Extent, Instant, Refused, Request};
use drive::Profile;
use scheduler::Policy;

use super::copies::{Copies, LegFailure, LegKept, LegState, ReadRule, WrittenLegs};
use super::division::{self, Division, Side};
use super::joint::{CrossingParts, arm_of};
use super::{Engine, Joint};
use crate::Limits;
use crate::engine::ArmEngine;

/// Why two drives cannot be a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMirrored {
    /// Their blocks differ.
    #[error("blocks of {first} and {second} bytes: expected drives whose blocks have one size")]
    Blocks {
        /// Bytes of a block of the first drive.
        first: u32,
        /// Bytes of a block of the second drive.
        second: u32,
    },
    /// One of them has two actuators.
    #[error("a drive of {actuators} actuators: expected drives of one")]
    Actuators {
        /// The number of its actuators.
        actuators: u8,
    },
}

impl Engine {
    /// An idle engine of a mirror: two drives that hold the same blocks, as many as the smaller one has.
    /// Commands for the first drive have even numbers, those for the second odd ones ([`Engine::leg_of`]).
    ///
    /// A write ends when both drives have ended it. A read is served by one of them, under `rule`. A drive that
    /// fails a write or a flush which the other one does is taken out; a read that fails goes to the other one.
    /// [`Engine::poll_leg_failure`] tells of both.
    ///
    /// # Errors
    /// If the drives do not fit.
    ///
    /// # Panics
    /// If the limits permit no request or no command.
    pub fn mirrored(
        beliefs: [Arc<Profile>; 2],
        rule: ReadRule,
        policy: &dyn Fn() -> Box<dyn Policy>,
        limits: Limits,
    ) -> Result<Self, NotMirrored> {
        let [one, other] = &beliefs;
        let (first, second) = (one.block_bytes, other.block_bytes);
        if first != second {
            return Err(NotMirrored::Blocks { first, second });
        }
        for belief in &beliefs {
            let actuators = belief.actuators;
            if actuators > 1 {
                return Err(NotMirrored::Actuators { actuators });
            }
        }
        let whole = Arc::clone(one);
        let [first, second] = beliefs.map(|belief| ArmEngine::new(belief, policy, limits));
        let joint = Joint::new(second, whole, Division::Copies, Copies::new(rule));
        Ok(Engine {
            first,
            joint: Some(Box::new(joint)),
            zones: None,
        })
    }

    /// Whether the engine is that of a mirror.
    pub fn is_mirrored(&self) -> bool {
        self.division() == Some(Division::Copies)
    }

    /// The drive of a mirror that a command is for, or the actuator of a drive of two.
    pub fn leg_of(id: CommandId) -> Side {
        division::arm_command(id).0
    }

    /// What a drive of the mirror is used for. Without a mirror there is one drive in sync.
    pub fn leg(&self, leg: Side) -> LegState {
        let copies = self.joint.as_ref().map(|joint| &joint.copies);
        copies.map_or(LegState::InSync, |copies| copies.state(leg))
    }

    /// Changes what a drive of the mirror is used for. Of one that is out, nothing waits any more, and the other
    /// one goes on with its tasks. What is at the drive ends there; background reads that end so are in no task's
    /// account.
    ///
    /// # Errors
    /// If no drive would have all data, or one that is not out should be filled.
    pub fn set_leg(&mut self, now: Instant, leg: Side, state: LegState) -> Result<(), LegKept> {
        let joint = self.joint.as_mut();
        let joint = joint.filter(|joint| joint.division == Division::Copies);
        let joint = joint.ok_or(LegKept::NoMirror)?;
        joint.copies.set(leg, state)?;
        if state == LegState::Out {
            joint.leave(&mut self.first, now, leg);
            joint.collect_copies(&mut self.first);
        }
        Ok(())
    }

    /// Accepts a request, as [`Engine::submit`] does. A write goes to these drives of the mirror only.
    ///
    /// With [`WrittenLegs::InSync`] the caller copies the blocks to a drive that is being filled after the write has
    /// ended, before that drive is in sync.
    ///
    /// # Errors
    /// As for [`Engine::submit`].
    pub fn submit_to(
        &mut self,
        now: Instant,
        request: Request,
        legs: WrittenLegs,
    ) -> Result<(), Refused> {
        let held = self.held();
        match &mut self.joint {
            Some(joint) if joint.division == Division::Copies => {
                joint.submit_to(&mut self.first, now, (request, legs), held)
            }
            _ => self.submit(now, request),
        }
    }

    /// What a drive of the mirror has failed and the other one has not.
    pub fn poll_leg_failure(&mut self) -> Option<LegFailure> {
        self.joint.as_mut()?.copies.poll_failure()
    }
}

impl Joint {
    /// Accepts a request of a mirror while `held` others are.
    pub(super) fn submit_copies(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        (request, legs): (Request, WrittenLegs),
        held: usize,
    ) -> Result<(), Refused> {
        let (extent, direction) = (request.extent, request.direction);
        let sides = self.copies.sides(direction, legs);
        if direction == Direction::Read && first.is_idle() && self.arm.is_idle() {
            let ends = [
                first.expected_end(now, extent, direction),
                self.arm.expected_end(now, extent, direction),
            ];
            if let [Some(one), Some(other)] = ends {
                self.copies.note_nearer(match one <= other {
                    true => Side::First,
                    false => Side::Second,
                });
            }
        }
        for side in sides.into_iter().flatten() {
            // Only the first copy may be refused: its class may not exist.
            arm_of(side, first, &mut self.arm).enter(now, request, held)?;
        }
        let parts = match (direction, sides) {
            (Direction::Read, [Some(_), Some(_)]) => CrossingParts::Race(None),
            (Direction::Read, _) => CrossingParts::Alone,
            (Direction::Write, [Some(_), Some(_)]) => CrossingParts::Copies,
            (Direction::Write, _) => return Ok(()),
        };
        self.cross(request, parts);
        Ok(())
    }

    /// The requests that are accepted and not yet reported.
    pub(super) fn held(&self, first: &ArmEngine) -> usize {
        first.held() + self.arm.held() + self.ended.len() - self.counted_twice
    }

    /// The arm that served a request that has just been reported, and the blocks in its numbers; `None` if both
    /// did.
    pub(super) fn only_of(&self, request: &Request) -> Option<(Side, Extent)> {
        match self.division {
            Division::Border(_) => self.division.only(request.extent),
            Division::Copies => Some((self.copies.served(request.id)?, request.extent)),
        }
    }
}
