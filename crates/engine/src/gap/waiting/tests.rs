//! How long urgent requests wait, beside the sum over all that come during a command.

use block::{Class, Direction, Sectors, Switch};
use drive::firmware::LookAhead;
use scheduler::Preemption;
use scheduler::freeblock::{Delivery, Stop};
use scheduler::preemption::Landing;

use super::*;
use crate::context::tests::{StageBench, blocks, profile};

/// More urgent requests in a second.
const RATE: u64 = 50;

const RULES: Preemption = Preemption {
    when: When::Worth,
    ..Transfers::WHOLE
};

/// A chosen request with a gap before it, and `behind` others.
fn look(
    rules: Preemption,
    rate: u64,
    (place, behind): (u64, usize),
) -> (Option<Waiting>, Gap, Course) {
    let mut belief = profile();
    belief.buffer.look_ahead = LookAhead::None;
    belief.buffer.zero_latency_read = false;
    let mut bench = StageBench::of(belief);
    let mut preemption = Transfers::by(rules, bench.belief.profile(), bench.now);
    let urgent = PriorityLevel::of(Class::BestEffort(0)).expect("a level");
    (0..8 * rate).for_each(|_| preemption.worth.arrived(bench.now, urgent));
    let extent = blocks(place, 8);
    let piece = bench.submit_chosen(Direction::Read, extent);
    for n in 0..behind as u64 {
        bench.submit(Direction::Read, blocks(n * 1_000, 8), Class::default());
    }
    let cx = bench.cx();
    let (head, route) = (cx.expected_head(), cx.route(piece));
    let course = head.course(cx.profile(), cx.now, route);
    let begins = course.start + course.pass.seek + course.pass.rotation;
    let gap = Gap {
        source: head.position,
        departs: course.start,
        leaves: course.start + Duration::from_micros(150),
        follows: course.start,
        lag: Duration::ZERO,
        handover: Duration::ZERO,
        destination: route.target(),
        direction: Direction::Read,
        extent,
        begins,
        bus: None,
        delivery: Delivery::Immediate,
    };
    let waiting = waiting_beside(&cx, &preemption, piece, &gap, &course);
    (waiting, gap, course)
}

/// The waiting of those who come during a command, each until its end, step by step.
fn waited(held: Duration) -> f64 {
    const STEPS: u64 = 10_000;
    let step = held.as_nanos() as f64 / STEPS as f64;
    let each = (0..STEPS).map(|n| (n as f64 + 0.5) * step * RATE as f64 * step / 1e9);
    each.sum()
}

fn stop(kind: Kind, ends: Instant) -> Stop {
    Stop {
        kind,
        direction: Direction::Read,
        extent: blocks(1_000, 8),
        wanted: 8,
        slack: Duration::ZERO,
        begins: ends.saturating_sub(Duration::from_micros(50)),
        ends,
    }
}

#[test]
fn a_plan_costs_what_all_wait_longer_with_it_than_without() {
    let mut looked = 0;
    for landing in [None, Some(Duration::from_micros(500))] {
        let rules = Preemption {
            just_in_time: landing.map(Landing::Fixed),
            ..RULES
        };
        for (place, behind) in [(3_000_000_000, 0), (2_000_000_000, 3), (1_000_000_000, 1)] {
            let (waiting, gap, course) = look(rules, RATE, (place, behind));
            let waiting = waiting.expect("urgent ones come");
            let takes = course.pass.total();
            let ends = course.start + takes;
            if course.pass.rotation < Duration::from_micros(700) {
                continue;
            }
            looked += 1;
            // A request that is held back holds nobody up until it is given.
            let held_back = landing.map(|landing| course.pass.rotation.saturating_sub(landing));
            let alone = waited(takes.saturating_sub(held_back.unwrap_or(Duration::ZERO)));
            let check = |plan: GapPlan, with: f64| {
                let cost = waiting.because_of(&plan).as_nanos() as f64;
                let expected = (with - alone).max(0.0);
                let apart = (cost - expected).abs();
                assert!(
                    apart <= 2.0 + expected / 1e6,
                    "{behind}: {cost}, {expected}"
                );
            };
            let merged = GapPlan::of(stop(Kind::Merged, gap.begins), Duration::ZERO);
            check(merged, waited(ends.since(course.start)));
            for (kind, micros) in [
                (Kind::Detour, 2_000),
                (Kind::Source, 400),
                (Kind::Destination, 6_000),
            ] {
                let then = gap.leaves + Duration::from_micros(micros);
                let plan = GapPlan::of(stop(kind, then), Duration::ZERO);
                // Those that come during the detour hold up the request, and all behind it.
                let during = waited(then.since(gap.leaves));
                let with = during * (2 + behind) as f64 + waited(ends.since(then));
                check(plan, with);
                check(
                    plan.and(stop(Kind::Merged, gap.begins), Duration::ZERO),
                    with,
                );
            }
        }
    }
    assert!(looked > 3, "{looked}");
}

#[test]
fn nobody_waits_where_nothing_urgent_is_reckoned_with() {
    let always = Preemption {
        when: When::Always,
        chunk: Some(Sectors(64)),
        free_prefetch: Switch::On,
        ..RULES
    };
    let (waiting, ..) = look(always, RATE, (800, 0));
    assert!(waiting.is_none(), "parts are given whatever it costs");
    let (waiting, gap, _) = look(RULES, 0, (800, 0));
    let waiting = waiting.expect("some are foreseen");
    let plan = GapPlan::of(stop(Kind::Detour, gap.begins), Duration::ZERO);
    // Foreseen ones count for parts, and those that come for plans.
    assert_eq!(waiting.because_of(&plan), Duration::ZERO);
}
