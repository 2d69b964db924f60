//! What the foreground is measured to lose to plans, beside what it loses.

use std::sync::Arc;

use block::{
    Class, Direction, Duration, Extent, Instant, Lba, Request, RequestId, Sectors, Switch,
};
use drive::invented::{self, SimpleDrive};
use engine::{Engine, Gaps, Limits, Rules};
use scheduler::background::{Order, TaskPhase};
use scheduler::freeblock::{Caution, WantedBlocks};
use scheduler::policy::find;

const REQUESTS: u64 = 800;

/// Requests by which a learned guard has withheld some plans: the first window is the 27th, of 64 gaps.
const MANY: u64 = 2_400;

/// What a background read costs the drive beyond what is believed.
#[derive(Clone, Copy)]
enum Reads {
    AsBelieved,
    /// Each misses its first sector.
    ARevolutionLate,
}

/// What came of a load.
struct Course {
    mean: f64,
    impact: f64,
    reads: u64,
    gaps: Gaps,
}

/// First come, first served, so that plans change no order: `at_once` requests are always there.
fn scan(caution: Caution, reads: Reads, at_once: usize) -> Course {
    let wanted = WantedBlocks::all(&invented::profile().geometry);
    scan_of(wanted, (by(caution), reads), (REQUESTS, at_once))
}

/// Rules with this caution, by which background reads never go by themselves.
fn by(caution: Caution) -> Rules {
    Rules {
        caution,
        idle_after: None,
        ..Rules::default()
    }
}

/// The same of these blocks beside so many requests; without blocks, no task begins.
fn scan_of(
    wanted: WantedBlocks,
    (rules, reads): (Rules, Reads),
    (requests, at_once): (u64, usize),
) -> Course {
    let profile = Arc::new(invented::profile());
    let policy = find("fcfs").expect("a policy of the table");
    let engine = Engine::new(Arc::clone(&profile), &|| policy.make(), Limits::default());
    let mut engine = engine.with_background(rules);
    let mut drive = SimpleDrive::new(invented::profile());
    let mut now = Instant::ZERO;
    let begin = |engine: &mut Engine, now| {
        let order = Order {
            wanted: wanted.clone(),
            priority: 0,
            deadline: None,
        };
        let is_any = wanted.left() > 0;
        is_any.then(|| engine.begin_task(now, order).expect("a task"))
    };
    let mut task = begin(&mut engine, now);
    let (mut submitted, mut background, mut responses) = (0, 0, 0);
    loop {
        while let Some(outcome) = drive.poll(now) {
            engine.complete(now, outcome.id, outcome);
        }
        while let Some(finished) = engine.poll_finished() {
            responses += finished.at.since(finished.submitted).as_nanos();
        }
        while submitted < requests && engine.held() < at_once {
            engine.submit(now, request(submitted)).expect("room");
            submitted += 1;
        }
        // The drive is small: it is scanned again and again.
        let progress = task.and_then(|task| engine.task(task));
        if progress.is_some_and(|task| task.state == TaskPhase::Finished) {
            task = begin(&mut engine, now);
        }
        while let Some(command) = engine.poll(now) {
            let is_read = engine.dispatch().is_background(command.id);
            background += u64::from(is_read);
            drive.misses_every = match reads {
                Reads::ARevolutionLate if is_read => Some(1),
                _ => None,
            };
            drive.submit(now, command).expect("room");
        }
        match drive.next_wakeup() {
            Some(next) => now = next,
            None => break,
        }
    }
    Course {
        mean: responses as f64 / requests as f64,
        impact: engine.background().impact(),
        reads: background,
        gaps: engine.background().gaps(),
    }
}

/// A walk over the disk that repeats itself late: multiplication by a prime.
fn request(number: u64) -> Request {
    let capacity = invented::profile().geometry.sectors().0;
    let start = Lba(number.wrapping_mul(2_654_435_761) % (capacity - 8));
    Request {
        id: RequestId(number),
        direction: match number % 3 {
            0 => Direction::Write,
            _ => Direction::Read,
        },
        extent: Extent::new(start, Sectors(1 + number % 8)).expect("a valid extent"),
        class: Class::default(),
        durability: block::Durability::Volatile,
        owner: block::Owner::NOBODY,
    }
}

fn unguarded() -> Caution {
    Caution::Fixed {
        guard: Duration::ZERO,
        near_miss: Duration::ZERO,
    }
}

#[test]
fn what_a_plan_costs_is_measured_for_all_requests_behind_it() {
    for at_once in [2, 3, 8] {
        let promised = scan(unguarded(), Reads::AsBelieved, at_once);
        let late = scan(unguarded(), Reads::ARevolutionLate, at_once);
        assert!(late.reads > 100, "{} reads", late.reads);
        assert_eq!((promised.gaps.mispredicted, promised.impact), (0, 0.0));
        let share = 1.0 - promised.mean / late.mean;
        assert!(
            (late.impact / share - 1.0).abs() < 0.02,
            "{at_once} at once: measured {}, lost {share}",
            late.impact
        );
    }
}

#[test]
fn luck_that_a_plan_takes_away_is_measured_though_nothing_ends_later() {
    let course = scan(Caution::default(), Reads::AsBelieved, 4);
    assert!(course.reads > 100, "{} reads", course.reads);
    assert_eq!(course.gaps.mispredicted, 0);
    assert!(course.impact > 0.0, "{}", course.impact);
}

#[test]
fn some_plans_are_withheld_and_the_same_in_every_run() {
    let run = |control_group| {
        let wanted = WantedBlocks::all(&invented::profile().geometry);
        let rules = Rules {
            control_group,
            ..by(Caution::default())
        };
        scan_of(wanted, (rules, Reads::AsBelieved), (MANY, 4)).gaps
    };
    let gaps = run(Switch::On);
    let planned: u64 = gaps.planned.iter().sum();
    let share = gaps.withheld as f64 / (gaps.withheld + planned) as f64;
    assert!((0.01..0.12).contains(&share), "{share}");
    assert_eq!(gaps, run(Switch::On));
    assert_eq!(run(Switch::Off).withheld, 0);
}

#[test]
fn without_background_work_nothing_is_withheld_or_counted() {
    let none = WantedBlocks::none(&invented::profile().geometry);
    let learned = (by(Caution::default()), Reads::AsBelieved);
    let course = scan_of(none, learned, (MANY, 4));
    assert_eq!((course.gaps, course.impact), (Gaps::default(), 0.0));
}
