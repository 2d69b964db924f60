//! An engine with background tasks and its drive, in virtual time.

use std::collections::BTreeSet;
use std::sync::Arc;

use block::{
    Action, Class, Command, CommandId, Direction, Duration, Extent, Instant, Lba, Request,
    RequestId, Sectors,
};
use drive::Profile;
use drive::invented::{self, SimpleDrive};
use engine::{Engine, Limits, Rules};
use scheduler::background::{Order, TaskId, TaskPhase};
use scheduler::freeblock::{Caution, WantedBlocks};
use scheduler::policy::find;

pub fn extent(start: u64, length: u64) -> Extent {
    Extent::new(Lba(start), Sectors(length)).expect("a valid extent")
}

/// An engine and its drive, in virtual time, and what happened.
pub struct Scene {
    pub engine: Engine,
    pub drive: SimpleDrive,
    pub now: Instant,
    pub submitted: u64,
    pub ended: BTreeSet<u64>,
    /// Background reads and merged commands as the drive saw them.
    pub reads: Vec<Extent>,
    /// What of it the engine says was read in the background.
    pub told: Vec<Extent>,
    /// Writes at the drive.
    pub writing: Vec<(CommandId, Extent)>,
    /// The command that the drive was given last.
    pub last: Option<CommandId>,
}

/// A foreground of at most so many requests at once, and how many in all.
pub struct Foreground {
    pub at_once: u64,
    pub requests: u64,
}

impl Scene {
    pub fn new(rules: Rules) -> Self {
        Scene::believing(invented::profile(), rules)
    }

    pub fn believing(belief: Profile, rules: Rules) -> Self {
        let profile = Arc::new(belief);
        let policy = find("sptf").expect("a policy of the table");
        let engine = Engine::new(Arc::clone(&profile), &|| policy.make(), Limits::default());
        Scene {
            engine: engine.with_background(rules),
            drive: SimpleDrive::new(invented::profile()),
            now: Instant::ZERO,
            submitted: 0,
            ended: BTreeSet::new(),
            reads: Vec::new(),
            told: Vec::new(),
            writing: Vec::new(),
            last: None,
        }
    }

    pub fn capacity(&self) -> u64 {
        self.engine.belief().profile().geometry.sectors().0
    }

    pub fn order(&self, extents: &[Extent], priority: u8) -> Order {
        let mut wanted = WantedBlocks::none(&self.engine.belief().profile().geometry);
        for &extent in extents {
            wanted.add(extent).expect("blocks of the drive");
        }
        Order {
            wanted,
            priority,
            deadline: None,
        }
    }

    pub fn begin(&mut self, extents: &[Extent], priority: u8) -> TaskId {
        let order = self.order(extents, priority);
        self.engine.begin_task(self.now, order).expect("a task")
    }

    pub fn stand(&mut self, priority: u8) -> TaskId {
        let task = self.engine.begin_standing_task(self.now, priority);
        task.expect("a task")
    }

    pub fn want(&mut self, task: TaskId, extent: Extent) {
        let wanted = self
            .engine
            .change_task(self.now, task, engine::TaskChange::Want(extent));
        wanted.expect("it stands");
    }

    pub fn submit(&mut self) {
        // A walk over the disk that repeats itself late: multiplication by a prime.
        let at = self.submitted.wrapping_mul(2_654_435_761) % (self.capacity() - 8);
        let direction = match self.submitted % 3 {
            0 => Direction::Write,
            _ => Direction::Read,
        };
        let request = Request {
            id: RequestId(self.submitted),
            direction,
            extent: extent(at, 1 + self.submitted % 8),
            class: Class::default(),
            durability: block::Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        self.submitted += 1;
        self.engine.submit(self.now, request).expect("room");
    }

    pub fn hear(&mut self, command: &Command) {
        self.last = Some(command.id);
        self.told
            .extend(self.engine.dispatch().background_of(command.id));
        let extent = match command.action {
            Action::Read { extent, .. } => extent,
            Action::Write { extent, .. } => return self.writing.push((command.id, extent)),
            other => panic!("{other:?} is not what an engine says"),
        };
        let overlaps = |&(_, written): &(CommandId, Extent)| written.overlaps(extent);
        assert!(
            !self.writing.iter().any(overlaps),
            "{extent} are read while some of them are written"
        );
        self.reads.push(extent);
    }

    /// Runs until the foreground has ended and nothing moves, or `stop` says so.
    pub fn run(&mut self, foreground: &Foreground, mut stop: impl FnMut(&Scene) -> bool) {
        let last = self.submitted + foreground.requests;
        loop {
            while let Some(outcome) = self.drive.poll(self.now) {
                self.writing.retain(|&(id, _)| id != outcome.id);
                self.engine.complete(self.now, outcome.id, outcome);
            }
            while let Some(finished) = self.engine.poll_finished() {
                assert!(self.ended.insert(finished.request.id.0), "ended twice");
            }
            while self.submitted < last && (self.engine.held() as u64) < foreground.at_once {
                self.submit();
            }
            while let Some(command) = self.engine.poll(self.now) {
                self.hear(&command);
                self.drive.submit(self.now, command).expect("room");
            }
            if stop(self) {
                return;
            }
            let next = [self.drive.next_wakeup(), self.engine.next_wakeup()];
            let Some(next) = next.into_iter().flatten().min() else {
                return;
            };
            assert!(next > self.now, "a stale wakeup");
            self.now = next;
        }
    }

    pub fn state(&self, task: TaskId) -> TaskPhase {
        self.engine
            .background()
            .task(task)
            .expect("a known task")
            .state
    }

    pub fn left(&self, task: TaskId) -> u64 {
        self.engine
            .background()
            .task(task)
            .expect("a known task")
            .left
            .0
    }
}

pub fn never(_: &Scene) -> bool {
    false
}

/// Belief = truth, no guard.
pub fn exact() -> Rules {
    Rules {
        caution: Caution::Fixed {
            guard: Duration::ZERO,
            near_miss: Duration::ZERO,
        },
        ..Rules::default()
    }
}
