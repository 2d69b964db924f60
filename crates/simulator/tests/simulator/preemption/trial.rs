//! A greedy client and an urgent one on an engine and a drive, and what came of both.

use std::sync::Arc;

use block::{
    Class, Command, CommandId, Direction, Durability, Duration, Extent, Finished, Instant, Lba,
    Outcome, Refused, Request, RequestId, Sectors,
};
use drive::{Imperfections, Profile, VirtualDrive};
use engine::{Engine, Limits, Preempted, Rules};
use scheduler::Preemption;
use scheduler::background::Order;
use scheduler::freeblock::WantedBlocks;
use simulator::driver::{Activity, Driver, Host};

/// A greedy client, and one that asks for 8 blocks now and then.
pub struct Load {
    pub direction: Direction,
    /// Blocks of a greedy request.
    pub blocks: u64,
    /// How many of them are always there.
    pub depth: u64,
    /// Urgent requests a second.
    pub rate: f64,
    pub seconds: u64,
    /// The standard deviation of a seek.
    pub noise: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Came {
    /// Greedy bytes, in MB/s.
    pub rate: f64,
    /// The mean and the longest response of urgent requests, in ms.
    pub mean: f64,
    pub most: f64,
    /// Half the sum of the squares of the times for which commands held the drive, by all time, in ms.
    pub expected_wait: f64,
    pub preempted: Preempted,
    /// Commands that waited for their sectors and had them for most of a revolution.
    pub turned: u64,
    /// What was read in the background, in gaps.
    pub free: Sectors,
}

fn throw(dice: &mut u64, sides: u64) -> u64 {
    *dice = dice
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*dice >> 33) % sides
}

/// The clients, and what came of their requests.
struct Trial<'a> {
    load: &'a Load,
    capacity: u64,
    dice: [u64; 2],
    number: u64,
    greedy: u64,
    moved: u64,
    responses: Vec<f64>,
    given: Vec<(CommandId, Instant)>,
    squares: f64,
    turned: u64,
    most_of_a_turn: Duration,
    last_end: Instant,
    /// When the clients leave.
    end: Instant,
    next_urgent: Option<Instant>,
}

impl Trial<'_> {
    fn submit(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        (direction, priority, length): (Direction, u8, u64),
    ) -> Result<(), Refused> {
        let dice = &mut self.dice[usize::from(priority == 0)];
        let start = throw(dice, (self.capacity - length) / 8) * 8;
        let request = Request {
            id: RequestId(self.number),
            direction,
            extent: Extent::new(Lba(start), Sectors(length)).expect("on the drive"),
            class: Class::BestEffort(priority),
            durability: Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        self.number += 1;
        engine.submit(now, request)
    }
}

impl Host for Trial<'_> {
    type Error = Refused;

    fn command_ended(&mut self, _: Instant, _: &Engine, outcome: &Outcome) {
        let mut given = self.given.iter();
        let place = given.position(|(id, _)| *id == outcome.id);
        let (_, at) = self.given.swap_remove(place.expect("it was given"));
        let held = outcome.at.since(at.max(self.last_end)).as_secs_f64() * 1e3;
        self.squares += held * held;
        self.last_end = outcome.at;
        if let Some(account) = outcome.account {
            let turned = account.rotation + account.transfer;
            self.turned += u64::from(turned > self.most_of_a_turn);
        }
    }

    fn request_ended(
        &mut self,
        _: Instant,
        _: &mut Engine,
        finished: &mut Finished,
    ) -> Result<(), Refused> {
        if finished.request.class == Class::BestEffort(0) {
            self.responses.push(finished.response().as_secs_f64() * 1e3);
        } else {
            self.greedy -= 1;
            self.moved += finished.request.extent.length().0;
        }
        Ok(())
    }

    fn act(&mut self, now: Instant, engine: &mut Engine) -> Result<Activity, Refused> {
        while now < self.end && self.greedy < self.load.depth {
            self.greedy += 1;
            self.submit(now, engine, (self.load.direction, 3, self.load.blocks))?;
        }
        if let Some(then) = self.next_urgent
            && then <= now
        {
            self.next_urgent = self.load.gap().map(|gap| then + gap);
            self.next_urgent = self.next_urgent.filter(|&then| then < self.end);
            self.submit(now, engine, (Direction::Read, 0, 8))?;
        }
        Ok(Activity::Waits)
    }

    fn dispatched(&mut self, now: Instant, command: &Command) {
        self.given.push((command.id, now));
    }

    fn is_over(&mut self, now: Instant, engine: &mut Engine) -> bool {
        // A scan would go on.
        now >= self.end && engine.held() == 0
    }

    fn next_event(&self, _: Instant, _: &Engine) -> Option<Instant> {
        self.next_urgent
    }
}

impl Load {
    /// The time between two urgent requests.
    fn gap(&self) -> Option<Duration> {
        (self.rate > 0.0).then(|| Duration::from_nanos((1e9 / self.rate) as u64))
    }
}

/// Under these rules, or with one whole request at the drive at a time.
pub fn run(truth: &Arc<Profile>, rules: Option<Preemption>, load: &Load) -> Came {
    serve(truth, rules, load, Scan::None)
}

/// Whether all blocks are read in the background.
#[derive(Clone, Copy, PartialEq)]
pub enum Scan {
    None,
    All,
}

fn noise(load: &Load) -> Imperfections {
    Imperfections {
        seek_noise: load.noise,
        ..Imperfections::default()
    }
}

fn most_of_a_turn(drive: &Profile) -> Duration {
    Duration::from_nanos(drive.spindle.period().as_nanos() * 3 / 4)
}

/// With all blocks read in the background, under the usual rules, or without.
fn scanning(engine: Engine, drive: &Profile, scan: Scan) -> Engine {
    if scan == Scan::None {
        return engine;
    }
    let mut engine = engine.with_background(Rules::default());
    let order = Order {
        wanted: WantedBlocks::all(&drive.geometry),
        priority: 0,
        deadline: None,
    };
    engine.begin_task(Instant::ZERO, order).expect("a task");
    engine
}

pub fn serve(truth: &Arc<Profile>, rules: Option<Preemption>, load: &Load, scan: Scan) -> Came {
    let policy = scheduler::policy::find("fcfs").expect("a policy");
    let mut limits = Limits::default();
    if rules.is_none() {
        limits.commands_at_drive = 1;
    }
    let mut engine = Engine::new(Arc::clone(truth), &|| policy.make(), limits);
    if let Some(rules) = rules {
        engine = engine.with_preemption(rules);
    }
    engine = scanning(engine, truth, scan);
    let mut trial = Trial {
        load,
        capacity: truth.geometry.sectors().0,
        dice: [1, 2],
        number: 0,
        greedy: 0,
        moved: 0,
        responses: Vec::new(),
        given: Vec::new(),
        squares: 0.0,
        turned: 0,
        most_of_a_turn: most_of_a_turn(truth),
        last_end: Instant::ZERO,
        end: Instant::ZERO + Duration::from_secs(load.seconds),
        next_urgent: load.gap().map(|gap| Instant::ZERO + gap),
    };
    let drive = VirtualDrive::imperfect(Arc::clone(truth), noise(load), 7);
    let mut driver = Driver::new(engine, drive);
    driver.run(&mut trial).expect("room for all requests");
    let engine = driver.engine();
    let elapsed = trial.last_end.as_secs_f64();
    let responses = &trial.responses;
    Came {
        rate: trial.moved as f64 * f64::from(truth.block_bytes) / 1e6 / elapsed,
        mean: responses.iter().sum::<f64>() / responses.len().max(1) as f64,
        most: responses.iter().copied().fold(0.0, f64::max),
        expected_wait: trial.squares / 2.0 / (elapsed * 1e3),
        preempted: engine.preemption().tally(),
        turned: trial.turned,
        free: engine.background().account().free.blocks,
    }
}
