//! Engines of two arms: what they report is what their arms report together, and whose a command is.

use std::sync::Arc;

use block::{
    Class, Command, Direction, Durability, Duration, Extent, Finished, Instant, Lba, Request,
    RequestId, Sectors, Switch,
};
use drive::firmware::LookAhead;
use drive::{HostJitter, Imperfections, VirtualDrive, invented};
use engine::engine::ArmEngine;
use engine::explanation::{Explanation, Known};
use engine::{Engine, LegState, Limits, ReadRule, Rules, Side, TaskChange};
use profiler::tracker::BeliefMode;
use scheduler::background::{Order, TaskId};
use scheduler::freeblock::{Caution, WantedBlocks};
use scheduler::preemption::{Aside, LastChunk, When};
use scheduler::{Preemption, policy};

use crate::hostile;

/// An engine of two arms, what is behind it, and what was given and has not ended.
struct World {
    engine: Engine,
    drives: Vec<VirtualDrive>,
    now: Instant,
    submitted: u64,
    at_drive: Vec<Command>,
    /// Whether the engine was made with explanations.
    is_explained: bool,
}

/// Larger requests go in parts, which fill slack and step aside.
const PARTS: Preemption = Preemption {
    chunk: Some(Sectors(4)),
    just_in_time: None,
    split: None,
    free_prefetch: Switch::On,
    last_chunk: LastChunk::Buffered,
    aside: Some(Aside {
        fill: Switch::On,
        most_permille: 1_000,
    }),
    when: When::Always,
};

fn rules() -> Rules {
    Rules {
        caution: Caution::Fixed {
            guard: Duration::ZERO,
            near_miss: Duration::from_micros(200),
        },
        paid_ppm: 50_000,
        ..Rules::default()
    }
}

/// So impatient that requests overrule the policy.
fn limits() -> Limits {
    Limits {
        patience: Duration::from_millis(5),
        ..Limits::default()
    }
}

fn is_within(part: Extent, whole: Extent) -> bool {
    whole.contains(part.start()) && whole.contains(part.last())
}

impl World {
    /// One drive of two actuators.
    fn of_actuators(change: impl FnOnce(Engine) -> Engine) -> Self {
        let mut profile = invented::profile();
        profile.actuators = 2;
        profile.buffer.segments = 4;
        profile.buffer.segment_blocks = 64;
        profile.buffer.look_ahead = LookAhead::Segment;
        let profile = Arc::new(profile);
        let policy = policy::find("sptf").expect("a policy of the table");
        let engine = Engine::new(Arc::clone(&profile), &|| policy.make(), limits());
        World::new(change(engine), vec![VirtualDrive::new(profile)])
    }

    /// A mirror, of which the second drive is not as it is believed to be.
    fn of_mirror(second: Imperfections, change: impl FnOnce(Engine) -> Engine) -> Self {
        let profile = Arc::new(invented::profile());
        let policy = policy::find("sptf").expect("a policy of the table");
        let beliefs = [Arc::clone(&profile), Arc::clone(&profile)];
        let engine = Engine::mirrored(beliefs, ReadRule::RoundRobin, &|| policy.make(), limits());
        let drives = [Imperfections::default(), second];
        let drive = |is| VirtualDrive::imperfect(Arc::clone(&profile), is, 1);
        World::new(
            change(engine.expect("two drives")),
            drives.map(drive).into(),
        )
    }

    fn new(engine: Engine, drives: Vec<VirtualDrive>) -> Self {
        World {
            engine,
            drives,
            now: Instant::ZERO,
            submitted: 0,
            at_drive: Vec::new(),
            is_explained: false,
        }
    }

    fn arms(&self) -> [&ArmEngine; 2] {
        let arms: Vec<&ArmEngine> = self.engine.arms().collect();
        arms.try_into()
            .unwrap_or_else(|_| panic!("expected two arms"))
    }

    fn begin(&mut self) {
        let order = Order {
            wanted: WantedBlocks::all(&invented::profile().geometry),
            priority: 0,
            deadline: None,
        };
        self.engine.begin_task(self.now, order).expect("a task");
    }

    /// What the engine reports now is what its arms do together.
    fn check(&self) {
        let (engine, arms) = (&self.engine, self.arms());
        let both = |of: &dyn Fn(&ArmEngine) -> u64| arms.iter().map(|arm| of(arm)).sum::<u64>();
        assert_eq!(engine.at_drive(), self.at_drive.len());
        let is_idle = engine.held() == 0 && self.at_drive.is_empty();
        assert_eq!(engine.is_idle(), is_idle);
        let waiting = both(&|arm| arm.ordering().waiting() as u64);
        assert_eq!(engine.waiting() as u64, waiting);
        let overruled = both(&|arm| arm.ordering().overruled());
        assert_eq!(engine.overruled(), overruled);
        let parts = both(&|arm| arm.preemption().tally().parts);
        assert_eq!(engine.preempted().parts, parts);
        let seen = both(&|arm| arm.background().gaps().seen);
        assert_eq!(engine.gaps().seen, seen);
        let blocks = both(&|arm| arm.background().account().blocks().0);
        assert_eq!(engine.account().blocks().0, blocks);
        let losses = arms.map(|arm| arm.background().losses());
        let (responses, lost) = (
            losses[0].responses + losses[1].responses,
            losses[0].lost + losses[1].lost,
        );
        assert_eq!(
            (engine.losses().responses, engine.losses().lost),
            (responses, lost)
        );
        let impacts = arms.map(|arm| arm.background().impact());
        assert_eq!(engine.impact(), impacts[0].max(impacts[1]));
        for (which, guard) in engine.guards().into_iter().enumerate() {
            let widest = arms.map(|arm| arm.background().guards()[which]);
            assert_eq!(guard, widest[0].max(widest[1]));
        }
        self.at_drive
            .iter()
            .for_each(|command| self.check_command(command));
    }

    /// A command is a request's, or nobody's; its blocks are those of the drive.
    fn check_command(&self, command: &Command) {
        let (engine, id) = (&self.engine, command.id);
        assert!(engine.is_at_drive(id));
        let blocks = command.action.extent().expect("no flush was asked for");
        let (own, free) = (engine.request_of(id), engine.background_of(id));
        assert_eq!(engine.is_background(id), own.is_none());
        match (own, free) {
            (None, Some(free)) => assert_eq!(blocks, free),
            (None, None) => {}
            (Some(request), None) => {
                assert!(is_within(blocks, request.extent), "{command:?}");
            }
            (Some(request), Some(free)) => {
                assert!(
                    is_within(free, blocks) && blocks.overlaps(request.extent),
                    "{command:?}"
                );
            }
        }
        let is_for_nobody = own.is_none() && free.is_none();
        assert_eq!(engine.is_read_ahead(id), is_for_nobody, "{command:?}");
    }

    /// A request that one arm served is explained to the nanosecond, and no other one.
    fn check_explained(&self, finished: &Finished, explained: Option<Explanation>) {
        let request = &finished.request;
        let is_of_both = match self.drives.len() {
            1 => request.extent.start() < self.border() && request.extent.last() >= self.border(),
            _ => request.direction == Direction::Write,
        };
        let Some(found) = explained else {
            return assert!(is_of_both, "{request:?} is not explained");
        };
        assert!(!is_of_both, "{request:?}: expected no explanation");
        // The buffer answered at once, before any time had passed that could be explained.
        let is_instant = found.response().is_zero();
        let is_found = found.drive.commands > 0 || is_instant;
        assert!(is_found, "{request:?}: not by the arm that served it");
        let waited = found.outside() + found.order + found.others() + found.held_back;
        assert_eq!(
            waited + found.forgotten + found.drive.total(),
            found.response()
        );
    }

    /// The first block of the second actuator.
    fn border(&self) -> Lba {
        Lba(self.engine.profile().share_end(0))
    }

    /// The n-th request of a walk over the disk, of which each third is large and little urgent.
    fn request(&mut self, direction: Direction) -> Request {
        let n = self.submitted;
        self.submitted += 1;
        let (length, priority) = [(30, 6), (1 + n % 8, 2), (2, 0)][n as usize % 3];
        let start = n.wrapping_mul(2_654_435_761) % (2_800 - length);
        Request {
            id: RequestId(n),
            direction,
            extent: Extent::new(Lba(start), Sectors(length)).expect("blocks"),
            class: Class::BestEffort(priority),
            durability: Durability::Volatile,
            owner: block::Owner::NOBODY,
        }
    }

    /// Serves so many requests, `at_once` at a time; `each` sees what ended, and when.
    fn serve(&mut self, requests: u64, at_once: usize, mut each: impl FnMut(&World)) {
        let last = self.submitted + requests;
        loop {
            for drive in &mut self.drives {
                while let Some(outcome) = drive.poll(self.now) {
                    self.at_drive.retain(|command| command.id != outcome.id);
                    self.engine.complete(self.now, outcome.id, outcome);
                }
            }
            while let Some(finished) = self.engine.poll_finished() {
                let explained = self.engine.explain(&finished, finished.submitted);
                if self.is_explained {
                    self.check_explained(&finished, explained);
                }
            }
            while self.submitted < last && self.engine.held() < at_once {
                let direction = match self.submitted % 5 {
                    0 => Direction::Write,
                    _ => Direction::Read,
                };
                let request = self.request(direction);
                self.engine.submit(self.now, request).expect("room");
            }
            while let Some(command) = self.engine.poll(self.now) {
                let drive = match self.drives.len() {
                    1 => 0,
                    _ => Engine::leg_of(command.id) as usize,
                };
                self.drives[drive].submit(self.now, command).expect("room");
                self.at_drive.push(command);
            }
            each(self);
            if self.submitted == last && self.engine.held() == 0 {
                return;
            }
            let drives = self.drives.iter().map(VirtualDrive::next_wakeup);
            let next = drives.chain([self.engine.next_wakeup()]).flatten().min();
            self.now = next.expect("something is held").max(self.now);
        }
    }
}

#[test]
fn two_actuators_report_what_they_do_together() {
    let mut world = World::of_actuators(|engine| {
        let engine = engine.with_background(rules()).with_preemption(PARTS);
        engine.with_explanations(Known::Profile)
    });
    world.is_explained = true;
    world.begin();
    let mut read_ahead = 0;
    world.serve(600, 12, |world| {
        world.check();
        let ids = world.at_drive.iter().map(|command| command.id);
        read_ahead += ids.filter(|&id| world.engine.is_read_ahead(id)).count();
    });
    assert!(read_ahead > 0, "nothing was read ahead");
    for arm in world.arms() {
        let (gaps, background) = (arm.background().gaps(), arm.background().account());
        assert!(gaps.seen > 0 && background.blocks().0 > 0, "{gaps:?}");
        assert!(arm.preemption().tally().parts > 0);
        assert!(arm.background().losses().responses > 0);
    }
}

#[test]
fn an_impact_budget_is_that_of_each_arm_if_guards_are_learned() {
    for (caution, is_learned) in [(Caution::default(), true), (rules().caution, false)] {
        let rules = Rules { caution, ..rules() };
        let mut world = World::of_actuators(|engine| engine.with_background(rules));
        let before = world.arms().map(|arm| arm.background().impact_budget());
        world.engine.set_impact_budget(world.now, 1_234);
        let after = world.arms().map(|arm| arm.background().impact_budget());
        assert!(!before.contains(&Some(1_234)));
        assert_eq!(after, [is_learned.then_some(1_234); 2]);
    }
}

/// A policy that answers nonsense is overruled by each of the arms.
#[test]
fn overruled_policies_of_both_arms_are_counted() {
    let mut profile = invented::profile();
    profile.actuators = 2;
    let profile = Arc::new(profile);
    let newest = || hostile::make(hostile::COUNT - 2);
    let engine = Engine::new(Arc::clone(&profile), &newest, limits());
    let engine = engine.with_background(rules());
    let mut world = World::new(engine, vec![VirtualDrive::new(profile)]);
    world.serve(60, 6, World::check);
    for arm in world.arms() {
        assert!(arm.ordering().overruled() > 0);
    }
}

/// How far a belief is used: the least first.
fn rank(mode: BeliefMode) -> u8 {
    match mode {
        BeliefMode::Safe => 0,
        BeliefMode::Unconfirmed => 1,
        BeliefMode::Positioning => 2,
    }
}

/// One drive of a mirror ends its commands at any time, and its belief is given up.
#[test]
fn a_belief_is_reported_as_far_as_the_worse_of_two_can_be_trusted() {
    let policy = policy::find("sptf").expect("a policy of the table");
    for noisy in Side::ALL {
        let noise = Imperfections {
            overhead_noise: Duration::from_millis(3),
            seek_noise: Duration::from_millis(3),
            ..Imperfections::default()
        };
        let mut world = World::of_mirror(noise, |engine| engine.with_tracking(policy));
        if noisy == Side::First {
            world.drives.reverse();
        }
        let mut modes = Vec::new();
        let mut check = |world: &World| {
            let arms = world.arms();
            let each = arms.map(|arm| arm.belief().mode());
            let worse = each.into_iter().min_by_key(|&mode| rank(mode));
            assert_eq!(Some(world.engine.mode()), worse, "{each:?}");
            if !modes.contains(&each) {
                modes.push(each);
            }
            let shares = arms.map(|arm| arm.belief().confidence().expect("followed").share());
            let confidence = world.engine.confidence().expect("both are followed");
            assert_eq!(confidence.share(), shares[0].min(shares[1]));
            let tallies = arms.map(|arm| arm.belief().tallies().expect("followed"));
            let told = world.engine.tallies().expect("both are followed");
            let as_believed = tallies.map(|tallies| tallies.as_believed);
            assert_eq!(told.as_believed, as_believed.iter().sum::<u64>());
            let elsewhere = tallies.map(|tallies| tallies.elsewhere);
            assert_eq!(told.elsewhere, elsewhere.iter().sum::<u64>());
        };
        // The good one alone, then both.
        let set = world.engine.set_leg(world.now, noisy, LegState::Out);
        set.expect("the other one is in sync");
        world.serve(200, 1, &mut check);
        let set = world.engine.set_leg(world.now, noisy, LegState::InSync);
        set.expect("a drive of the mirror");
        world.serve(1_200, 1, &mut check);
        assert_eq!(world.engine.slow_heads().count(), 2);
        let of_noisy = |mode| match noisy {
            Side::First => [mode, BeliefMode::Positioning],
            Side::Second => [BeliefMode::Positioning, mode],
        };
        for mode in [BeliefMode::Unconfirmed, BeliefMode::Safe] {
            assert!(modes.contains(&of_noisy(mode)), "{noisy:?}: {modes:?}");
        }
    }
}

#[test]
fn the_longer_host_delay_of_two_drives_is_reported() {
    let policy = policy::find("sptf").expect("a policy of the table");
    let late = Imperfections {
        host: HostJitter {
            floor: Duration::from_micros(300),
            ..HostJitter::default()
        },
        ..Imperfections::default()
    };
    let mut world = World::of_mirror(late, |engine| engine.with_tracking(policy));
    assert_eq!(world.engine.host_delay(), 0);
    world.serve(3_000, 1, |world| {
        let delays = world.arms().map(|arm| arm.belief().host_delay());
        let longer = delays.into_iter().max_by_key(|delay| delay.abs());
        assert_eq!(Some(world.engine.host_delay()), longer);
    });
    let delay = world.engine.host_delay();
    assert!((100_000..900_000).contains(&delay), "{delay} ns");
}

#[test]
fn reads_of_a_mirror_are_explained_by_the_drive_that_served_them() {
    let whole = Imperfections::default();
    let mut world = World::of_mirror(whole, |engine| engine.with_explanations(Known::Profile));
    world.is_explained = true;
    world.serve(200, 6, World::check);
}

/// Both drives read for a standing task of a mirror, each other blocks, until one of them is out.
#[test]
fn blocks_of_a_standing_task_are_wanted_and_given_up_in_a_mirror() {
    for out in [None, Some(Side::First), Some(Side::Second)] {
        let whole = Imperfections::default();
        let mut world = World::of_mirror(whole, |engine| engine.with_background(rules()));
        if let Some(side) = out {
            let set = world.engine.set_leg(world.now, side, LegState::Out);
            set.expect("the other one is in sync");
        }
        let task = world.engine.begin_standing_task(world.now, 0);
        let task = task.expect("the first one");
        let extent = |start, length| Extent::new(Lba(start), Sectors(length)).expect("blocks");
        let mut change = |change| world.engine.change_task(world.now, task, change);
        assert_eq!(change(TaskChange::Want(extent(100, 400))), Ok(()));
        assert_eq!(change(TaskChange::Unwant(extent(300, 150))), Ok(()));
        assert_eq!(change(TaskChange::Suspend), Ok(()));
        assert_eq!(change(TaskChange::Resume), Ok(()));
        let left = world.engine.left(task).expect("its blocks");
        assert_eq!(left.left(), 250);
        let wanted = |block: u64| (100..300).contains(&block) || (450..500).contains(&block);
        assert!(
            left.extents()
                .all(|extent| wanted(extent.start().0) && wanted(extent.last().0))
        );
        let shares = world.arms().map(|arm| {
            let of_arm = (0..4).filter_map(|id| arm.background().left(TaskId(id)));
            of_arm.map(|wanted| wanted.left()).sum::<u64>()
        });
        assert_eq!(shares.iter().sum::<u64>(), 250);
        for side in Side::ALL {
            assert_eq!(
                shares[side as usize] == 0,
                out == Some(side),
                "{out:?}: {shares:?}"
            );
        }
    }
}

/// What has ended and was not reported is held.
#[test]
fn a_mirror_holds_what_it_has_not_reported() {
    let mut world = World::of_mirror(Imperfections::default(), |engine| engine);
    for (n, direction) in [Direction::Read, Direction::Write].into_iter().enumerate() {
        let request = world.request(direction);
        world.engine.submit(world.now, request).expect("room");
        assert_eq!(world.engine.held(), 1);
        while let Some(command) = world.engine.poll(world.now) {
            assert_eq!(world.engine.held(), 1);
            let drive = Engine::leg_of(command.id) as usize;
            world.drives[drive]
                .submit(world.now, command)
                .expect("room");
        }
        let mut ended = 0;
        while ended <= n {
            let drives = world.drives.iter().map(VirtualDrive::next_wakeup);
            world.now = drives.flatten().min().expect("a command is at a drive");
            for drive in &mut world.drives {
                while let Some(outcome) = drive.poll(world.now) {
                    world.engine.complete(world.now, outcome.id, outcome);
                    ended += 1;
                    assert_eq!(world.engine.held(), 1);
                }
            }
        }
        let finished = world.engine.poll_finished().expect("it has ended");
        assert_eq!((finished.request, world.engine.held()), (request, 0));
    }
    world.engine.flush(world.now, RequestId(7)).expect("room");
    assert!(!world.engine.is_idle());
}
