//! The engine of one drive, or of a mirror of two: an arm's engine for each independent access range.
//!
//! ```text
//!                        blocks below the border
//!   submit ---> border ---------------------------> first arm's engine ---.
//!                  |                                                      |--> poll: commands
//!                  '--- from the border on, less its number ------------> second ---'
//!                                                                          '--> crossing: joined ends
//! ```
//!
//! The drives of 2020 with two actuators give each half of the blocks (SBC-5: concurrent positioning
//! ranges). Each arm has a belief over its own blocks, numbered from 0. This module is the one place
//! that translates numbers. A drive of one actuator has one engine, and every call is handed on. The two drives
//! of a mirror have an engine each, over all blocks ([`Engine::mirrored`]).

use std::sync::Arc;

use block::{
    Class, Command, CommandId, Extent, Finished, Instant, Outcome, Refused, Request, RequestId,
    Sectors,
};
use drive::Profile;
use scheduler::policy::NamedPolicy;
use scheduler::preemption::Preemption;
use scheduler::{Ordering, Policy};
use stream::LocationMap;
use stream::head_times::NoPoints;
use stream::location::Change;
use stream::playout::NotTaken;
use stream::streams::{Attach, Attached, StreamId};

use crate::belief::DriveBelief;
use crate::belief::explanation::Known;
use crate::dispatch::Dispatch;
use crate::engine::ArmEngine;
use crate::gap::{GapStage, Rules};
use crate::guarantees::streams::{NotGranted, Promise, StreamEvent};
use crate::guarantees::{Guarantees, StreamInput};
use crate::preemption::Transfers;
use crate::{Flushed, Limits, Unchanged};

mod background;
mod commands;
mod copies;
mod division;
mod flushes;
mod joint;
pub(crate) mod mirror;
mod reports;
mod tasks;
mod zones;

pub use copies::{LegFailure, LegKept, LegState, LegWork, ReadRule, WrittenLegs};
pub use division::Side;

use copies::Copies;
use division::Division;
use joint::Joint;
use zones::ZoneGate;

/// The state machine between clients and one drive.
///
/// The order of calls: after any input, or at [`Engine::next_wakeup`], the driver calls
/// [`Engine::poll`] until `None`, then [`Engine::poll_finished`], [`Engine::poll_flushed`] and
/// [`Engine::poll_stream`] until `None`. The next wakeup then lies in the future. An extra call is
/// harmless. `now` never goes backwards. Every accepted request comes back exactly once.
///
/// The order of decisions: guarantees restrict, priorities order, rotation picks, free blocks fill. The
/// same inputs at the same moments give the same outputs.
///
/// On a drive of two actuators, [`Limits::requests`] holds for both together and
/// [`Limits::commands_at_drive`] for each. Streams lie on the blocks of the first actuator. The
/// stages that this type lends out are those of the first actuator, too.
pub struct Engine {
    first: ArmEngine,
    /// The second arm, and what both have in common.
    joint: Option<Box<Joint>>,
    /// The order of writes in host-managed zones, if the drive has such.
    zones: Option<Box<ZoneGate>>,
}

impl Engine {
    /// An idle engine of a drive. `policy` makes the policy of each priority level.
    ///
    /// # Panics
    /// If the limits permit no request or no command.
    pub fn new(belief: Arc<Profile>, policy: &dyn Fn() -> Box<dyn Policy>, limits: Limits) -> Self {
        if belief.actuators <= 1 {
            return Engine {
                first: ArmEngine::new(belief, policy, limits),
                joint: None,
                zones: None,
            };
        }
        let arm = |actuator| {
            let share = Arc::new(belief.of_actuator(actuator));
            ArmEngine::new(share, policy, limits)
        };
        Engine {
            first: arm(0),
            joint: Some(Box::new(Joint::new(
                arm(1),
                Arc::clone(&belief),
                Division::Border(belief.share_of(1).start()),
                Copies::new(ReadRule::default()),
            ))),
            zones: None,
        }
    }

    /// The engine, as one that begins at `now`. It comes before everything that has a time.
    pub fn starting_at(self, now: Instant) -> Self {
        self.each(|arm| arm.starting_at(now))
    }

    /// Enables background tasks under these rules, whose impact budget holds for each actuator.
    ///
    /// # Panics
    /// If the limits permit fewer than two commands at the drive: a free read is dispatched while the
    /// command before it is in service. If the engine holds requests.
    pub fn with_background(self, rules: Rules) -> Self {
        self.each(|arm| arm.with_background(rules))
    }

    /// Enables tracking of the drive. `policy` chooses while positions can be trusted.
    ///
    /// # Panics
    /// If the engine holds requests.
    pub fn with_tracking(self, policy: NamedPolicy) -> Self {
        self.each(|arm| arm.with_tracking(policy))
    }

    /// Enables preemption of larger requests under these rules.
    ///
    /// # Panics
    /// If the engine holds requests.
    pub fn with_preemption(self, rules: Preemption) -> Self {
        self.each(|arm| arm.with_preemption(rules))
    }

    /// Enables guarantees for streams, on the blocks of the first actuator. A mirror has none. While there are streams,
    /// larger requests are dispatched in parts of at most
    /// [`FOREGROUND_BYTES`](crate::guarantees::FOREGROUND_BYTES), whatever the rules of preemption.
    ///
    /// # Errors
    /// If the belief has no seek curve.
    ///
    /// # Panics
    /// If the engine holds requests, or is that of a mirror.
    pub fn with_guarantees(mut self, mut promise: Promise) -> Result<Self, NoPoints> {
        assert!(
            !self.is_mirrored(),
            "a stream would write to one drive of the mirror"
        );
        if let (Some(joint), Some(place)) = (&self.joint, promise.place) {
            promise.place = Some(joint.division.first_part(place));
        }
        self.first = self.first.with_guarantees(promise)?;
        Ok(self)
    }

    /// Keeps the order of writes in host-managed zones of so many blocks: one write of a zone is at work at a
    /// time. Reads are free.
    ///
    /// # Panics
    /// If zones have no blocks, the engine holds requests, or it is that of a mirror.
    pub fn with_zones(mut self, blocks: Sectors) -> Self {
        assert!(
            !self.is_mirrored(),
            "zones of two drives have no common write pointer"
        );
        assert_eq!(self.held(), 0, "zones come before requests");
        self.zones = Some(Box::new(ZoneGate::new(blocks.0)));
        self.each(ArmEngine::with_whole_writes)
    }

    /// Enables explanations of response times. Decisions stay the same.
    pub fn with_explanations(self, known: Known) -> Self {
        self.each(|arm| arm.with_explanations(known))
    }

    /// The belief about the whole drive, as the engine was given it.
    pub fn profile(&self) -> &Arc<Profile> {
        match &self.joint {
            None => self.first.belief().profile(),
            Some(joint) => &joint.whole,
        }
    }

    /// The engines of the actuators, in the order of their blocks.
    pub fn arms(&self) -> impl Iterator<Item = &ArmEngine> {
        std::iter::once(&self.first).chain(self.joint.iter().map(|joint| &joint.arm))
    }

    /// The belief about the first actuator.
    pub fn belief(&self) -> &DriveBelief {
        self.first.belief()
    }

    /// The streams and their guarantees.
    pub fn guarantees(&self) -> &Guarantees {
        self.first.guarantees()
    }

    /// The guarantees, to claim and return what a user may have without a stream.
    pub fn guarantees_mut(&mut self) -> &mut Guarantees {
        self.first.guarantees_mut()
    }

    /// The requests that the first actuator serves in parts.
    pub fn preemption(&self) -> &Transfers {
        self.first.preemption()
    }

    /// The gaps of the first actuator.
    pub fn background(&self) -> &GapStage {
        self.first.background()
    }

    /// The commands at the first actuator.
    pub fn dispatch(&self) -> &Dispatch {
        self.first.dispatch()
    }

    /// The pieces of the first actuator's requests, and their order.
    pub fn ordering(&self) -> &Ordering {
        self.first.ordering()
    }

    /// The bounds.
    #[inline]
    pub fn limits(&self) -> Limits {
        self.first.limits()
    }

    /// The number of requests that are accepted and not yet reported.
    #[inline]
    pub fn held(&self) -> usize {
        let before_arms = self.zones.as_ref().map_or(0, |zones| zones.held());
        before_arms
            + match &self.joint {
                None => self.first.held(),
                Some(joint) => joint.held(&self.first),
            }
    }

    /// Whether the limits permit another request of this class.
    #[inline]
    pub fn has_room(&self, class: Class) -> bool {
        self.held() < self.limits().open_to(class)
    }

    /// Accepts a request of a client. One that crosses the border of two actuators ends when both
    /// parts have.
    ///
    /// # Errors
    /// If the limit is reached, the extent is not on the drive, or the class does not exist.
    #[inline]
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<(), Refused> {
        if self.zones.is_some() {
            self.admit(&request)?;
        }
        if let Some(zones) = &mut self.zones
            && !zones.passes(now, &request)
        {
            return Ok(());
        }
        let held = self.held();
        match &mut self.joint {
            None => self.first.submit(now, request),
            Some(joint) => joint.submit(&mut self.first, now, request, held),
        }
    }

    /// Accepts a flush: it completes when all writes that were reported before are on the medium.
    ///
    /// # Errors
    /// If as many flushes are held as the limit of requests.
    pub fn flush(&mut self, now: Instant, id: RequestId) -> Result<(), Refused> {
        match &mut self.joint {
            None => self.first.flush(now, id),
            Some(joint) => joint.flush(&mut self.first, now, id),
        }
    }

    /// Places a barrier: writes that are accepted later begin after all earlier writes have ended.
    ///
    /// # Panics
    /// If there are two arms, whose writes have no common order.
    pub fn barrier(&mut self, now: Instant) {
        assert!(
            self.has_barriers(),
            "a barrier on a drive of two actuators: expected a drive of one"
        );
        self.first.barrier(now);
    }

    /// Whether the engine takes barriers: that of one actuator does.
    pub fn has_barriers(&self) -> bool {
        self.joint.is_none()
    }

    /// Raises the waiting blocks of `part` to the urgency of `class`. The request is divided, and its
    /// dependencies are raised with it. It ends when all of its pieces have.
    ///
    /// # Errors
    /// If no block of `part` waits.
    pub fn upgrade(
        &mut self,
        now: Instant,
        id: RequestId,
        part: Extent,
        class: Class,
    ) -> Result<(), Unchanged> {
        // A divided write would be two writes of its zone.
        if self.zones.as_ref().is_some_and(|zones| zones.has_write(id)) {
            return Err(Unchanged::NotWaiting { id });
        }
        let Some(joint) = &mut self.joint else {
            return self.first.upgrade(now, id, part, class);
        };
        let upgrades = joint.division.parts(part).map(|(side, part)| match side {
            Side::First => self.first.upgrade(now, id, part, class),
            Side::Second => joint.arm.upgrade(now, id, part, class),
        });
        any_of(upgrades, id)
    }

    /// Aborts a request. Its waiting pieces end as [`Status::Aborted`](block::Status::Aborted); pieces at
    /// the drive end there first.
    ///
    /// # Errors
    /// If no piece waits: the request then ends as without this call.
    pub fn abort(&mut self, now: Instant, id: RequestId) -> Result<(), Unchanged> {
        let zones = self.zones.as_mut();
        if let Some(next) = zones.and_then(|zones| zones.abort(now, id)) {
            self.go_on(now, next);
            return Ok(());
        }
        let aborted = match &mut self.joint {
            None => self.first.abort(now, id),
            Some(joint) if joint.is_copied(id) => Err(Unchanged::NotWaiting { id }),
            Some(joint) => {
                let aborts = [self.first.abort(now, id), joint.arm.abort(now, id)];
                joint.collect_copies(&mut self.first);
                any_of(aborts.into_iter(), id)
            }
        };
        self.collect(now);
        aborted
    }

    /// Admits a stream.
    ///
    /// # Errors
    /// The reason of the refusal, and the terms that would be admitted.
    pub fn attach(&mut self, now: Instant, attach: Attach) -> Result<Attached, NotGranted> {
        self.first.attach(now, attach)
    }

    /// Applies an input of a client to its stream.
    ///
    /// # Errors
    /// If there is no such stream, or the access is invalid; it then gets no answer.
    pub fn stream(
        &mut self,
        now: Instant,
        stream: StreamId,
        input: StreamInput,
    ) -> Result<(), NotTaken> {
        self.first.stream(now, stream, input)
    }

    /// Replaces the map of a stream's file, which has grown or moved. A stream that does not fit there
    /// continues at best effort, and its client receives a notice.
    ///
    /// # Errors
    /// If there is no such stream, or the map has blocks outside the place of streams: the old map stays.
    pub fn refresh(
        &mut self,
        now: Instant,
        stream: StreamId,
        map: LocationMap,
    ) -> Result<Change, NotGranted> {
        self.first.refresh(now, stream, map)
    }

    /// The next command for the drive, if one is due now.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Command> {
        match &mut self.joint {
            None => self.first.poll(now),
            Some(joint) => joint.poll(&mut self.first, now),
        }
    }

    /// Takes in the outcome of a command.
    ///
    /// # Panics
    /// If the command is not at the drive.
    #[inline]
    pub fn complete(&mut self, now: Instant, id: CommandId, outcome: Outcome) {
        match &mut self.joint {
            None => self.first.complete(now, id, outcome),
            Some(joint) => joint.complete(&mut self.first, now, id, outcome),
        }
        self.collect(now);
    }

    /// The next completed request.
    #[inline]
    pub fn poll_finished(&mut self) -> Option<Finished> {
        match &mut self.zones {
            None => self.poll_arms(),
            Some(zones) => zones.poll(),
        }
    }

    /// The next completed flush.
    #[inline]
    pub fn poll_flushed(&mut self) -> Option<Flushed> {
        match &mut self.joint {
            None => self.first.poll_flushed(),
            Some(joint) => joint.poll_flushed(&mut self.first),
        }
    }

    /// The next event for the clients of streams, or for the owner of their bytes.
    #[inline]
    pub fn poll_stream(&mut self) -> Option<StreamEvent> {
        self.first.poll_stream()
    }

    /// When to call [`Engine::poll`] next, if there is no input before.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        match &self.joint {
            None => self.first.next_wakeup(),
            Some(_) => self.arms().filter_map(ArmEngine::next_wakeup).min(),
        }
    }

    /// The next request that the arms have completed.
    #[inline]
    fn poll_arms(&mut self) -> Option<Finished> {
        match &mut self.joint {
            None => self.first.poll_finished(),
            Some(joint) => joint.poll_finished(&mut self.first),
        }
    }

    /// Every arm's engine, changed.
    fn each(mut self, change: impl Fn(ArmEngine) -> ArmEngine) -> Self {
        self.first = change(self.first);
        self.joint = self.joint.map(|mut joint| {
            joint.arm = change(joint.arm);
            joint
        });
        self
    }

    fn division(&self) -> Option<Division> {
        self.joint.as_ref().map(|joint| joint.division)
    }

    fn arm(&self, side: Side) -> &ArmEngine {
        match (&self.joint, side) {
            (Some(joint), Side::Second) => &joint.arm,
            _ => &self.first,
        }
    }

    /// The actuator of a command, and the command's number there.
    fn side_of(&self, id: CommandId) -> (Side, CommandId) {
        match self.joint {
            None => (Side::First, id),
            Some(_) => division::arm_command(id),
        }
    }
}

/// Whether one of the changes of a request was made. If not, the reason of an arm that knows the request.
fn any_of(
    changes: impl Iterator<Item = Result<(), Unchanged>>,
    id: RequestId,
) -> Result<(), Unchanged> {
    let mut answer = Err(Unchanged::Unknown { id });
    for change in changes {
        if matches!(answer, Err(Unchanged::Unknown { .. })) || change.is_ok() {
            answer = change;
        }
    }
    answer
}

#[cfg(test)]
mod tests;
