//! Whether granted time is due, and what a late choice costs, beside what a naive sum says.

use block::{Class, Lba};
use scheduler::background::Order;
use scheduler::preemption::Landing;

use super::*;
use crate::command::{Draft, StageAnswer};
use crate::context::tests::{StageBench, blocks, profile};

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Free blocks with a task of so many blocks that ends `ahead` seconds after `now`.
fn with_deadline(now: u64, left: u64, ahead: u64) -> FreeBlocks {
    let belief = Arc::new(drive::invented::profile());
    let mut free = FreeBlocks::new(&belief, Rules::default());
    let mut wanted = WantedBlocks::none(&belief.geometry);
    wanted.add(blocks(400, left)).expect("blocks of the drive");
    let order = Order {
        wanted,
        priority: 0,
        deadline: Some(at(now + ahead)),
    };
    let begun = free.tasks.begin(Instant::ZERO, &belief.geometry, order);
    begun.expect("a task");
    free
}

#[test]
fn a_task_is_behind_if_its_pace_does_not_bring_the_rest_before_its_deadline() {
    for (read, stretch) in [(8, 61), (80, 61), (8_000, 200), (8_000, 4_000)] {
        for left in [100, 2_000] {
            for ahead in [10, 100, 1_000, 10_000, 100_000] {
                let began = 100;
                let now = began + stretch;
                let mut free = with_deadline(now, left, ahead);
                // What was read before the stretch does not count.
                free.done = 12_345;
                let left = free.tasks.next_deadline().expect("it has one").1;
                free.is_behind(at(began));
                free.done += read;
                let brings = read as f64 * ahead as f64 / stretch as f64;
                let what = format!("{read} in {stretch} s, {left:?} left for {ahead} s");
                assert_eq!(free.is_behind(at(now)), brings < left.0 as f64, "{what}");
                // A moment later the pace is still that of the stretch.
                free.done += 1_000_000;
                let later = free.is_behind(at(now + 1));
                let brings = read as f64 * (ahead - 1) as f64 / stretch as f64;
                assert_eq!(later, brings < left.0 as f64, "{what}, later");
            }
        }
    }
}

#[test]
fn a_pace_is_that_of_a_minute_or_more_and_of_a_part_of_the_time_so_far() {
    let mut pace = TaskPace::default();
    let mut followed = |seconds: u64, done: u64| {
        pace.follow(at(seconds), done);
        (pace.blocks, pace.length)
    };
    let none = (0, Duration::ZERO);
    assert_eq!(followed(60, 10), none);
    let first = (20, Duration::from_secs(61));
    assert_eq!(followed(61, 20), first);
    assert_eq!(followed(121, 25), first);
    let second = (10, Duration::from_secs(61));
    assert_eq!(followed(122, 30), second);
    // A 64th of ten thousand seconds is longer than a minute.
    let long = (70, Duration::from_secs(9_878));
    assert_eq!(followed(10_000, 100), long);
    assert_eq!(followed(10_158, 150), long);
    assert_eq!(followed(10_159, 150), (50, Duration::from_secs(159)));
}

/// A bus that is slower than the medium carries the blocks of a whole track in more than a revolution.
#[test]
fn the_bus_is_slow_if_a_track_takes_longer_on_it_than_is_left_of_a_revolution() {
    let mut belief = profile();
    let most = belief
        .geometry
        .zones()
        .iter()
        .map(|zone| zone.sectors_per_track)
        .max();
    let most = u64::from(most.expect("a zone"));
    let period = belief.spindle.period().as_nanos();
    for watermark in [0, 250, 900, 1_000, 2_000] {
        belief.buffer.read_watermark = watermark;
        let left = 1_000 - u64::from(watermark).min(1_000);
        // As fast as the medium behind its watermark, and a nanosecond a block slower.
        let as_fast = period * left / 1_000 / most;
        for (block, is_slow) in [
            (as_fast, false),
            (as_fast + 1, true),
            (2 * as_fast + 1, true),
        ] {
            let block = Duration::from_nanos(block);
            belief.bus.read_block = block;
            assert_eq!(
                slow_bus(&belief),
                is_slow.then_some(block),
                "{watermark}: {block:?}"
            );
        }
    }
}

/// The wanted blocks of a stop take their share of the time of all of them.
#[test]
fn only_wanted_blocks_count_as_read() {
    let belief = profile();
    let stop = |start, length, wanted| Stop {
        kind: Kind::Detour,
        direction: Direction::Read,
        extent: blocks(start, length),
        wanted,
        slack: Duration::ZERO,
        begins: Instant::ZERO,
        ends: Instant::ZERO,
    };
    let width = |start| {
        let at = belief.geometry.locate(Lba(start)).expect("a block");
        belief.spindle.time_of(at.width).as_nanos() as f64
    };
    let one = GapPlan::of(stop(80, 40, 40), Duration::ZERO);
    let two = one.and(stop(4_000_000_000, 60, 15), Duration::ZERO);
    for (plan, expected) in [
        (one, 40.0 * width(80)),
        (two, 40.0 * width(80) + 15.0 * width(4_000_000_000)),
    ] {
        let reading = reading_of(&belief, &plan).as_nanos() as f64;
        assert!(
            (reading / expected - 1.0).abs() < 0.001,
            "{reading}, {expected}"
        );
    }
}

/// So much urgent waiting behind a plan makes any plan too dear.
#[test]
fn a_plan_is_not_carried_out_if_others_wait_longer_for_it_than_it_reads() {
    let (mut plans, mut unworthy) = ([0_u64; 2], 0);
    for n in 0..10 {
        for (case, rate) in [0, 200_000].into_iter().enumerate() {
            let mut bench = StageBench::new();
            let rules = scheduler::Preemption {
                when: scheduler::preemption::When::Worth,
                just_in_time: Some(Landing::Fixed(Duration::from_micros(500))),
                ..crate::preemption::Transfers::WHOLE
            };
            let profile = Arc::clone(bench.belief.profile());
            let mut preemption = crate::preemption::Transfers::by(rules, &profile, bench.now);
            let urgent = scheduler::ordering::PriorityLevel::of(Class::BestEffort(0));
            let urgent = urgent.expect("a level");
            (0..rate).for_each(|_| preemption.worth.arrived(bench.now, urgent));
            let mut gap = super::super::GapStage::by(Rules::default(), &bench.belief);
            let mut wanted = WantedBlocks::none(&profile.geometry);
            wanted
                .add(blocks(1_000_000, 4_000_000))
                .expect("blocks of the drive");
            let order = Order {
                wanted,
                priority: 0,
                deadline: None,
            };
            gap.begin(bench.now, &bench.belief, order).expect("a task");
            bench.submit_chosen(Direction::Read, blocks(3_000_000 + n * 100, 8));
            let guarantees = crate::guarantees::Guarantees::none();
            let answer = gap.depart(&mut bench.cx(), &guarantees, &mut preemption);
            let is_planned = match answer {
                StageAnswer::Give(Draft::Background(_)) => true,
                StageAnswer::Give(Draft::Request { merged, .. }) => merged.is_some(),
                StageAnswer::WaitUntil(_) => false,
                other => panic!("{other:?}"),
            };
            plans[case] += u64::from(is_planned);
            unworthy += gap.gaps().unworthy * case as u64;
        }
    }
    assert!(
        plans[0] > 4 && unworthy > 1,
        "{plans:?}, {unworthy} unworthy"
    );
    assert!(plans[1] < plans[0], "{plans:?}");
}
