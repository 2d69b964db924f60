//! A drive whose positions cannot be trusted: background tasks get idle time, and no gaps.

use std::sync::Arc;

use block::{
    Class, Direction, Durability, Duration, Extent, Instant, Lba, Outcome, Request, RequestId,
    Sectors, Status, Switch,
};
use drive::catalog;
use engine::{Engine, Limits, Rules};
use profiler::tracker::BeliefMode;
use scheduler::background::{Order, TaskId, TaskPhase};
use scheduler::freeblock::WantedBlocks;
use scheduler::policy::find;

/// A drive that ends each command at a moment that has nothing to do with its platter.
struct Scene {
    engine: Engine,
    task: TaskId,
    now: Instant,
    dice: u64,
}

impl Scene {
    fn new(wanted: u64) -> Self {
        let shipped = catalog::find("quantum-atlas-10k").expect("a shipped drive");
        let profile = shipped.profile().expect("a valid profile");
        let profile = Arc::new(profile.switched(Switch::Off, Switch::Off));
        let policy = find("sptf").expect("a policy of the table");
        let limits = Limits::suited_to(policy, &profile);
        let engine = Engine::new(Arc::clone(&profile), &|| policy.make(), limits);
        let mut engine = engine
            .with_background(Rules::default())
            .with_tracking(policy);
        let mut set = WantedBlocks::none(&profile.geometry);
        let extent = Extent::new(Lba(1_000_000), Sectors(wanted)).expect("an extent");
        set.add(extent).expect("on the drive");
        let order = Order {
            wanted: set,
            priority: 0,
            deadline: None,
        };
        let task = engine.begin_task(Instant::ZERO, order).expect("a task");
        Scene {
            engine,
            task,
            now: Instant::ZERO,
            dice: 1,
        }
    }

    /// Some milliseconds, different each time.
    fn some(&mut self) -> Duration {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        Duration::from_nanos(8_000_000 + (self.dice >> 33) % 12_000_000)
    }

    /// All commands that there are for the drive now, ended one after the other; how many of them
    /// were background reads.
    fn serve(&mut self) -> usize {
        let mut reads = 0;
        let mut given = Vec::new();
        while let Some(command) = self.engine.poll(self.now) {
            reads += usize::from(self.engine.dispatch().is_background(command.id));
            given.push(command.id);
        }
        for id in given {
            let later = self.some();
            self.now += later;
            let outcome = Outcome {
                id,
                at: self.now,
                status: Status::Good,
                account: None,
            };
            self.engine.complete(self.now, id, outcome);
        }
        while self.engine.poll_finished().is_some() {}
        reads
    }

    fn ask(&mut self, number: u64) {
        let request = Request {
            id: RequestId(number),
            direction: Direction::Read,
            extent: Extent::block(Lba(number * 7_919_317 % 17_000_000)),
            class: Class::default(),
            durability: Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        self.engine.submit(self.now, request).expect("room");
    }
}

#[test]
fn a_task_gets_idle_time_and_no_gaps() {
    let mut scene = Scene::new(50_000);
    let mut number = 0;
    while scene.engine.belief().mode() != BeliefMode::Safe {
        assert!(number < 2_000, "nothing was as believed");
        number += 1;
        scene.ask(number);
        scene.serve();
    }
    let left = |scene: &Scene| {
        scene
            .engine
            .background()
            .task(scene.task)
            .expect("a task")
            .left
    };
    let before = left(&scene);
    for _ in 0..200 {
        for _ in 0..4 {
            number += 1;
            scene.ask(number);
        }
        while scene.engine.held() > 0 {
            assert_eq!(scene.serve(), 0, "a read in a gap");
        }
        assert_eq!(scene.engine.belief().mode(), BeliefMode::Safe);
    }
    assert_eq!(left(&scene), before);
    let mut turns = 0;
    while scene
        .engine
        .background()
        .task(scene.task)
        .expect("a task")
        .state
        == TaskPhase::Active
    {
        turns += 1;
        assert!(turns < 10_000, "{:?} left", left(&scene));
        scene.now += Duration::from_millis(20);
        scene.serve();
    }
    assert_eq!(left(&scene), Sectors(0));
    assert_eq!(scene.engine.belief().mode(), BeliefMode::Safe);
}
