//! Belief: where the head is, how the drive is believed to be, and what the ends of commands teach.
//!
//! ```text
//!   complete --> log (what was believed of the command)
//!            --> resync (the head is known again) --> following (platter, arm, confidence)
//! ```

use std::sync::Arc;

use block::{Direction, Extent, Finished, Instant, Sectors};
use drive::{Angle, Position, Profile, SeekTarget};
use profiler::Confidence;
use profiler::slow_heads::SlowHeads;
use profiler::tracker::BeliefMode;
use scheduler::PieceId;
use scheduler::policy::NamedPolicy;
use scheduler::{Ordering, Sight};

use crate::command::{Approach, SentCommand};
use crate::forecast::{Course, Head, Route};

pub mod explanation;
pub(crate) mod following;
pub(crate) mod log;

use explanation::{CommandLog, Explanation, Known};
use following::DriveFollower;
pub use following::Tallies;

/// What an engine believes of its drive.
pub struct DriveBelief {
    profile: Arc<Profile>,
    /// The head after the command that ended last.
    pub(crate) head: Head,
    /// By piece, where the position of the head is of use; of pieces that are gone, anything.
    routes: Vec<Route>,
    /// When a command last ended.
    ended: Instant,
    /// What holds if the policy does not look at the head: whether a stage does.
    stages: Sight,
    /// Follows the drive, if it is to be followed.
    follower: Option<Box<DriveFollower>>,
    /// What held the head lately, if that may be asked.
    log: CommandLog,
}

impl DriveBelief {
    pub(crate) fn new(profile: Arc<Profile>) -> Self {
        DriveBelief {
            profile,
            head: Head::UNKNOWN,
            routes: Vec::new(),
            ended: Instant::ZERO,
            stages: Sight::Order,
            follower: None,
            log: CommandLog::off(),
        }
    }

    /// The belief as a profile.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// What the belief is used for at present.
    pub fn mode(&self) -> BeliefMode {
        let follower = self.follower.as_ref();
        follower.map_or(BeliefMode::Positioning, |follower| follower.mode())
    }

    /// How far the belief can be trusted, if the engine follows its drive.
    pub fn confidence(&self) -> Option<Confidence> {
        Some(self.follower.as_ref()?.confidence())
    }

    /// The nanoseconds by which commands arrive later at the drive than in the original belief; zero if the
    /// engine does not follow its drive.
    pub fn host_delay(&self) -> i64 {
        let follower = self.follower.as_ref();
        follower.map_or(0, |follower| follower.host_delay())
    }

    /// The heads of the drive beside each other, if the engine follows it.
    pub fn slow_heads(&self) -> Option<&SlowHeads> {
        Some(self.follower.as_ref()?.slow_heads())
    }

    /// What the ends of commands have said of the belief, if the engine follows its drive.
    pub fn tallies(&self) -> Option<Tallies> {
        Some(self.follower.as_ref()?.tallies())
    }

    /// Where the time of a request went that has just been reported and came at `came`; `None` if the
    /// engine was made without explanations. The request is looked for among the last
    /// [`REMEMBERED`](explanation::REMEMBERED) commands: for those that were slow.
    pub fn explain(&self, finished: &Finished, came: Instant) -> Option<Explanation> {
        self.log.is_on().then(|| self.log.explain(finished, came))
    }

    /// Whether no stage uses the position of the head, and no end of a command is followed or remembered.
    #[inline]
    pub(crate) fn serves_policy_alone(&self) -> bool {
        self.stages == Sight::Order && !self.log.is_on()
    }

    /// The position of the head is of use to a stage, whatever the policy looks at.
    pub(crate) fn watch_head(&mut self) {
        self.stages = Sight::Head;
    }

    /// The ends of commands are followed from `now` on; `policy` chooses while positions can be trusted.
    pub(crate) fn follow(&mut self, now: Instant, policy: NamedPolicy) {
        self.follower = Some(Box::new(DriveFollower::new(now, &self.profile, policy)));
        self.watch_head();
    }

    /// Whether the ends of commands are followed: the engine is outside of its drive.
    pub(crate) fn is_followed(&self) -> bool {
        self.follower.is_some()
    }

    /// What holds the head is remembered from now on.
    pub(crate) fn remember(&mut self, known: Known) {
        self.log = CommandLog::new(known);
    }

    /// Whether the position of the head is of use.
    pub(crate) fn sight(&self, ordering: &Ordering) -> Sight {
        match self.stages {
            Sight::Head => Sight::Head,
            Sight::Order => ordering.sight(),
        }
    }

    /// Where a piece lies.
    pub(crate) fn route(&self, piece: PieceId) -> &Route {
        &self.routes[piece.index()]
    }

    /// Where blocks lie, if the belief maps them.
    pub(crate) fn route_of(&self, extent: Extent, direction: Direction) -> Option<Route> {
        Route::new(&self.profile, extent, direction)
    }

    /// The route of a piece is another one: that of its next part.
    pub(crate) fn reroute(&mut self, piece: PieceId, route: Route) {
        self.routes[piece.index()] = route;
    }

    /// Notes the route of a piece, if there is one; the answer is what a policy is told of it.
    pub(crate) fn keep(&mut self, piece: PieceId, route: Option<&Route>) -> SeekTarget {
        let target = target(route);
        if let Some(route) = route {
            match self.routes.get_mut(piece.index()) {
                Some(place) => *place = *route,
                None => self.routes.push(*route),
            }
        }
        target
    }

    /// How wide a sector of the track of `position` is.
    pub(crate) fn width_at(&self, position: Position) -> Option<Angle> {
        let geometry = &self.profile.geometry;
        let track = geometry.track_at(position.cylinder, position.head);
        track.map(|track| track.width)
    }

    /// The head is known again: the last sector of the command has just passed under it. The answer is
    /// how the command was believed to go.
    pub(crate) fn resync(&mut self, now: Instant, sent: &SentCommand, route: &Route) -> Course {
        let course = sent.course(&self.head, &self.profile, route);
        self.head = match sent.approach {
            _ if sent.is_buffered => course.head,
            Approach::Seek => course.ended(&self.profile, route, (self.ended, now)),
            Approach::Continue => course.gone_on(&self.profile, route, now),
            // It ends when the arm is there.
            Approach::SeekOnly => Head {
                free: now,
                certainty: route.certainty(),
                ..course.head
            },
        };
        course
    }

    /// By how many revolutions a command that ended at `now` was later than was believed, if its end
    /// tells.
    pub(crate) fn revolutions(&self, now: Instant, course: &Course, route: &Route) -> Option<i64> {
        course.revolutions(&self.profile, route, (self.ended, now))
    }

    /// A command other than a flush has ended, and all that it teaches is learned.
    pub(crate) fn note_end(&mut self, now: Instant) {
        self.ended = now;
    }

    /// How many blocks the drive has.
    pub(crate) fn capacity(&self) -> Sectors {
        self.profile.geometry.sectors()
    }
}

/// Where a piece begins; the beginning of the disk if the position of the head is of no use.
pub(crate) fn target(route: Option<&Route>) -> SeekTarget {
    route.map_or(
        SeekTarget {
            position: Position::default(),
            angle: Angle::ZERO,
        },
        Route::target,
    )
}

#[cfg(test)]
mod tests;
