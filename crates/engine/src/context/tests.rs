//! A bench for the tests of single stages: the state that all stages read, on a drive with three zones.

use std::sync::{Arc, LazyLock};

use block::{
    Class, CommandId, Direction, Durability, Duration, Extent, Instant, Lba, Outcome, Request,
    RequestId, Sectors, Status,
};
use drive::{Profile, catalog};
use scheduler::ordering::NewPiece;
use scheduler::policy::find;
use scheduler::{Ordering, PieceId};

use super::StageContext;
use crate::belief::DriveBelief;
use crate::command::{Approach, Draft, Purpose, SentCommand};
use crate::dispatch::Dispatch;
use crate::forecast::Route;
use crate::intake::{Intake, level_of};
use crate::limits::Limits;

/// The state that all stages read.
pub(crate) struct StageBench {
    pub(crate) now: Instant,
    pub(crate) intake: Intake,
    pub(crate) ordering: Ordering,
    pub(crate) belief: DriveBelief,
    pub(crate) dispatch: Dispatch,
}

impl StageBench {
    /// Two commands at the drive, first come, first served, and positions of use.
    pub(crate) fn new() -> Self {
        StageBench::of(profile())
    }

    pub(crate) fn of(profile: Profile) -> Self {
        let limits = Limits::default();
        let policy = find("fcfs").expect("a policy of the table");
        let mut belief = DriveBelief::new(Arc::new(profile));
        belief.watch_head();
        StageBench {
            now: Instant::ZERO,
            intake: Intake::new(belief.capacity(), limits),
            ordering: Ordering::new(&|| policy.make(), limits.rules()),
            belief,
            dispatch: Dispatch::default(),
        }
    }

    pub(crate) fn cx(&mut self) -> StageContext<'_> {
        StageContext {
            now: self.now,
            intake: &mut self.intake,
            ordering: &mut self.ordering,
            belief: &mut self.belief,
            dispatch: &mut self.dispatch,
        }
    }

    /// A request that waits, of one piece.
    pub(crate) fn submit(&mut self, direction: Direction, extent: Extent, class: Class) -> PieceId {
        let request = request(direction, extent, class);
        let route = self.belief.route_of(extent, direction).expect("blocks");
        let new_piece = NewPiece {
            request_slot: self.intake.slots.accept(self.now, request),
            owner: request.owner,
            direction,
            extent,
            level: level_of(class).expect("a level"),
            target: route.target(),
        };
        let piece = self.ordering.enter(self.now, new_piece);
        self.belief.keep(piece, Some(&route));
        piece
    }

    /// The same, chosen, with the gap before it not planned.
    pub(crate) fn submit_chosen(&mut self, direction: Direction, extent: Extent) -> PieceId {
        let piece = self.submit(direction, extent, Class::default());
        let chosen = self
            .ordering
            .choose_for(piece)
            .expect("nothing is before it");
        let draft = Draft::request(chosen, crate::command::Planned::No);
        self.dispatch.chosen.push_back(draft);
        piece
    }

    /// A command of a background purpose that is given now, and at the drive.
    pub(crate) fn send(&mut self, purpose: Purpose, extent: Extent) -> CommandId {
        let id = self.dispatch.next_id();
        self.dispatch
            .send(sent(id, self.now, purpose, self.route(extent)));
        id
    }

    pub(crate) fn route(&self, extent: Extent) -> Route {
        let route = self.belief.route_of(extent, Direction::Read);
        route.expect("the belief maps the drive")
    }
}

/// A command that seeks.
pub(crate) fn sent(id: CommandId, given: Instant, purpose: Purpose, route: Route) -> SentCommand {
    SentCommand {
        id,
        given,
        purpose,
        part: None,
        approach: Approach::Seek,
        was_held: false,
        is_buffered: false,
        route: Some(route),
        worst: Duration::from_millis(50),
    }
}

pub(crate) fn request(direction: Direction, extent: Extent, class: Class) -> Request {
    Request {
        id: RequestId(1),
        direction,
        extent,
        class,
        durability: Durability::Volatile,
        owner: block::Owner::NOBODY,
    }
}

pub(crate) fn good(id: CommandId, at: Instant) -> Outcome {
    Outcome {
        id,
        at,
        status: Status::Good,
        account: None,
    }
}

pub(crate) fn blocks(start: u64, length: u64) -> Extent {
    Extent::new(Lba(start), Sectors(length)).expect("blocks")
}

pub(crate) fn profile() -> Profile {
    // It is made for each bench, and takes a tenth of a second.
    static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
        let shipped = catalog::find("modern-20tb").expect("a shipped drive");
        shipped.profile().expect("a valid profile")
    });
    PROFILE.clone()
}
