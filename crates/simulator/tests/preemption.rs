//! Large transfers that step aside, on drives as they are: what it brings and what it costs.

use std::sync::Arc;

use block::{
    Class, Command, CommandId, Direction, Durability, Duration, Extent, Finished, Instant, Lba,
    Outcome, Refused, Request, RequestId, Sectors, Switch,
};
use drive::{Imperfections, Profile, VirtualDrive, catalog};
use engine::{Engine, Limits, Preempted, Rules};
use scheduler::Preemption;
use scheduler::background::Order;
use scheduler::freeblock::Wanted;
use scheduler::preemption::{Aside, Landing, LastChunk, When};
use simulator::driver::{Activity, Driver, Host};

/// A greedy client, and one that asks for 8 blocks now and then.
struct Load {
    direction: Direction,
    /// Blocks of a greedy request.
    blocks: u64,
    /// How many of them are always there.
    depth: u64,
    /// Urgent requests a second.
    rate: f64,
    seconds: u64,
    /// The standard deviation of a seek.
    noise: Duration,
}

/// What came of it.
#[derive(Debug)]
struct Came {
    /// Greedy bytes, in MB/s.
    rate: f64,
    /// The mean and the longest response of urgent requests, in ms.
    mean: f64,
    most: f64,
    /// Half the sum of the squares of the times for which commands held the drive, by all time, in ms.
    expected_wait: f64,
    preempted: Preempted,
    /// Commands that waited for their sectors and had them for most of a revolution.
    turned: u64,
    /// What was read in the background, in gaps.
    free: Sectors,
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
        finished: Finished,
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
fn run(truth: &Arc<Profile>, rules: Option<Preemption>, load: &Load) -> Came {
    serve(truth, rules, load, Scan::None)
}

/// Whether all blocks are read in the background.
#[derive(Clone, Copy, PartialEq)]
enum Scan {
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
        wanted: Wanted::all(&drive.geometry),
        priority: 0,
        deadline: None,
    };
    engine.begin_task(Instant::ZERO, order).expect("a task");
    engine
}

fn serve(truth: &Arc<Profile>, rules: Option<Preemption>, load: &Load, scan: Scan) -> Came {
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
        preempted: engine.preempted(),
        turned: trial.turned,
        free: engine.background_account().free.blocks,
    }
}

fn barracuda() -> Arc<Profile> {
    let entry = catalog::find("seagate-st318437lw").expect("a shipped drive");
    Arc::new(entry.profile().expect("a good profile"))
}

fn load(direction: Direction, kilobytes: u64, rate: f64) -> Load {
    Load {
        direction,
        blocks: kilobytes * 1000 / 512,
        depth: 2,
        rate,
        seconds: 40,
        noise: Duration::from_micros(60),
    }
}

/// Nothing but single commands, under which each rule can be switched on alone.
fn nothing(drive: &Profile) -> Preemption {
    Preemption {
        chunk: None,
        just_in_time: None,
        split: None,
        free_prefetch: Switch::Off,
        last_chunk: LastChunk::Buffered,
        aside: None,
        ..Preemption::suited_to(drive)
    }
}

#[test]
fn an_urgent_read_does_not_wait_for_two_megabytes() {
    let drive = barracuda();
    for direction in [Direction::Read, Direction::Write] {
        let load = load(direction, 2000, 5.0);
        let whole = run(&drive, None, &load);
        let parts = run(&drive, Some(Preemption::suited_to(&drive)), &load);
        assert!(parts.mean < whole.mean / 3.0, "{parts:?}\n{whole:?}");
        assert!(parts.most < whole.most / 2.0, "{parts:?}\n{whole:?}");
        assert!(parts.preempted.aside > 0);
    }
}

#[test]
fn chunks_and_just_in_time_seeks_cost_no_throughput() {
    let drive = barracuda();
    for kilobytes in [50, 500] {
        let load = load(Direction::Read, kilobytes, 0.0);
        let whole = run(&drive, None, &load);
        let parts = run(&drive, Some(Preemption::suited_to(&drive)), &load);
        assert!(
            parts.rate > 0.99 * whole.rate,
            "{} {}",
            parts.rate,
            whole.rate
        );
        assert!(parts.expected_wait < whole.expected_wait / 2.0, "{parts:?}");
    }
}

#[test]
fn each_rule_works_alone() {
    let drive = barracuda();
    let load = load(Direction::Read, 250, 0.0);
    let none = nothing(&drive);
    let suited = Preemption::suited_to(&drive);
    let single = run(&drive, Some(none), &load);
    assert_eq!(single.preempted, Preempted::default());
    let chunk = run(
        &drive,
        Some(Preemption {
            chunk: suited.chunk,
            ..none
        }),
        &load,
    );
    assert!(chunk.preempted.parts > 0 && chunk.preempted.held == 0);
    assert!(
        chunk.expected_wait < 0.8 * single.expected_wait,
        "{}",
        chunk.expected_wait
    );
    let just_in_time = Preemption {
        just_in_time: suited.just_in_time,
        ..none
    };
    let just_in_time = run(&drive, Some(just_in_time), &load);
    assert!(just_in_time.preempted.parts == 0 && just_in_time.preempted.held > 0);
    assert!(
        just_in_time.expected_wait < 0.9 * single.expected_wait,
        "{}",
        just_in_time.expected_wait
    );
    let split = Preemption {
        split: Preemption::as_in_paper(&drive).split,
        when: When::Always,
        ..none
    };
    let split = run(&drive, Some(split), &load);
    assert!(split.preempted.hops > 0 && split.rate < single.rate);
    let ahead = Preemption {
        free_prefetch: Switch::On,
        chunk: suited.chunk,
        ..none
    };
    let ahead = run(&drive, Some(ahead), &load);
    assert!(ahead.preempted.read_ahead > Sectors(0));
    assert!(
        ahead.rate > 0.97 * chunk.rate,
        "{} {}",
        ahead.rate,
        chunk.rate
    );
}

#[test]
fn what_goes_on_while_the_urgent_one_waits_for_its_sector_is_won() {
    let drive = barracuda();
    let load = load(Direction::Read, 2000, 20.0);
    let suited = Preemption::suited_to(&drive);
    let aside = |fill| {
        let aside = Aside {
            fill,
            most_permille: 1000,
        };
        run(
            &drive,
            Some(Preemption {
                aside: Some(aside),
                ..suited
            }),
            &load,
        )
    };
    let (with, without) = (aside(Switch::On), aside(Switch::Off));
    assert!(with.preempted.filled > 0 && without.preempted.filled == 0);
    assert!(
        with.rate > 1.02 * without.rate,
        "{} {}",
        with.rate,
        without.rate
    );
    assert!(
        with.mean < without.mean + 0.5,
        "{} {}",
        with.mean,
        without.mean
    );
}

#[test]
fn ways_back_take_no_more_than_they_may() {
    let drive = barracuda();
    let load = load(Direction::Read, 2000, 20.0);
    for most_permille in [0, 50] {
        let aside = Aside {
            fill: Switch::Off,
            most_permille,
        };
        let came = run(
            &drive,
            Some(Preemption {
                aside: Some(aside),
                ..Preemption::suited_to(&drive)
            }),
            &load,
        );
        // What was saved up in the beginning may be spent as well.
        let most = 0.25 + 40.0 * f64::from(most_permille) / 1000.0;
        assert!(
            came.preempted.back.as_secs_f64() <= most,
            "{:?}",
            came.preempted
        );
    }
}

#[test]
fn a_cache_full_of_writes_does_not_hold_up_an_urgent_read() {
    let drive = barracuda();
    let load = load(Direction::Write, 50, 10.0);
    let suited = Preemption::suited_to(&drive);
    let buffered = Preemption {
        last_chunk: LastChunk::Buffered,
        ..suited
    };
    let forced = run(&drive, Some(suited), &load);
    let buffered = run(&drive, Some(buffered), &load);
    assert!(
        forced.mean < buffered.mean / 2.0,
        "{} {}",
        forced.mean,
        buffered.mean
    );
}

#[test]
fn free_blocks_and_preemption_share_one_slack() {
    let drive = barracuda();
    let load = Load {
        seconds: 200,
        ..load(Direction::Read, 50, 5.0)
    };
    let rules = Some(Preemption::suited_to(&drive));
    let without = serve(&drive, rules, &load, Scan::None);
    let with = serve(&drive, rules, &load, Scan::All);
    // Megabytes a second are read in gaps, and large requests are served nearly as
    // fast: a way to a detour is lost when something urgent comes during it.
    let free = with.free.0 as f64 * f64::from(drive.block_bytes) / 1e6 / load.seconds as f64;
    assert!(free > 5.0, "{free}");
    assert!(
        with.rate > 0.95 * without.rate,
        "{} {}",
        with.rate,
        without.rate
    );
    // Whoever is urgent waits for little more than without free blocks, because it overtakes
    // between a detour and the request behind it.
    let whole = serve(&drive, Some(nothing(&drive)), &load, Scan::All);
    let (longer, saved) = (with.mean - without.mean, whole.mean - without.mean);
    assert!(longer < 0.35 * saved, "{longer} {saved}");
}

#[test]
fn free_blocks_are_left_where_urgent_requests_would_wait_for_them() {
    let drive = barracuda();
    let rules = Some(Preemption::suited_to(&drive));
    let free = [2.0, 20.0].map(|rate| {
        let load = Load {
            seconds: 200,
            ..load(Direction::Read, 50, rate)
        };
        serve(&drive, rules, &load, Scan::All).free.0
    });
    // Twenty a second cost more waiting than the impact budget has for all plans.
    assert!(free[1] * 10 < free[0] * 9, "{free:?}");
}

#[test]
fn on_a_drive_that_is_as_believed_no_seek_misses_its_sector_and_none_is_held_for_a_revolution() {
    let entry = catalog::find("modern-20tb").expect("a shipped drive");
    let drive = Arc::new(entry.profile().expect("a good profile"));
    let load = Load {
        direction: Direction::Read,
        blocks: 256,
        depth: 1,
        rate: 0.0,
        seconds: 100,
        noise: Duration::ZERO,
    };
    let rules = Preemption {
        just_in_time: Some(Landing::Fixed(Duration::from_micros(300))),
        when: When::Always,
        ..Preemption::suited_to(&drive)
    };
    let came = run(&drive, Some(rules), &load);
    assert!(came.preempted.held > 1000, "{:?}", came.preempted);
    assert_eq!(came.preempted.missed, 0);
    // Stops on the way of a long seek are not held back.
    assert!(came.turned < came.preempted.held / 500, "{}", came.turned);
}
