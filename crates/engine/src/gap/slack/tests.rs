//! Requests that are held back, hops, and fillers, beside a naive look at what the head does then.

use block::Class;
use drive::Profile;
use drive::firmware::LookAhead;
use scheduler::preemption::worth::{FORESEEN, WEIGHT};

mod fill;
mod hops;

use super::*;
use crate::command::Purpose;
use crate::context::tests::{StageBench, blocks, profile};

/// How long before its sector a request is to land.
const LANDING: Duration = Duration::from_micros(700);

/// Requests are held back, always, and nothing else.
const HOLD: Preemption = Preemption {
    just_in_time: Some(Landing::Fixed(LANDING)),
    ..Transfers::WHOLE
};

/// A stage that looks at a chosen request, beside no streams.
struct SlackBench {
    bench: StageBench,
    guarantees: Guarantees,
    preemption: Transfers,
}

/// A drive that neither reads ahead nor begins inside a request's blocks.
fn plain() -> Profile {
    let mut belief = profile();
    belief.buffer.look_ahead = LookAhead::None;
    belief.buffer.zero_latency_read = false;
    belief
}

impl SlackBench {
    fn new(belief: Profile, rules: Preemption) -> Self {
        let bench = StageBench::of(belief);
        SlackBench {
            preemption: Transfers::by(rules, bench.belief.profile(), Instant::ZERO),
            guarantees: Guarantees::none(),
            bench,
        }
    }

    /// The head has just left some blocks, at a moment of its own.
    fn put_head(&mut self, start: u64) {
        let route = self.bench.route(blocks(start, 8));
        let belief = self.bench.belief.profile();
        let course = Head::UNKNOWN.course(belief, Instant::ZERO, &route);
        self.bench.belief.head = course.head;
        self.bench.now = course.head.free;
    }

    /// A chosen read of little urgency.
    fn choose(&mut self, start: u64, length: u64) -> PieceId {
        self.bench
            .submit_chosen(Direction::Read, blocks(start, length))
    }

    fn depart(&mut self, piece: PieceId, was_held: HeldBack) -> (StageAnswer, HeldBack) {
        let cx = self.bench.cx();
        depart(
            &cx,
            &self.guarantees,
            &self.preemption,
            (piece, was_held, false),
        )
    }

    /// What is believed of a piece that is given then.
    fn course(&mut self, piece: PieceId, given: Instant) -> Course {
        let cx = self.bench.cx();
        let head = cx.expected_head();
        head.course_in_order(cx.profile(), given, cx.route(piece))
    }

    /// So many requests a second more urgent than all others were seen.
    fn see_urgent(&mut self, rate: u64) {
        let level = PriorityLevel::of(Class::BestEffort(0)).expect("a level");
        // Those of two windows of four seconds count.
        (0..8 * rate).for_each(|_| self.preemption.worth.arrived(Instant::ZERO, level));
    }
}

/// Some hundred pairs of places on the drive.
fn places() -> impl Iterator<Item = (u64, u64)> {
    let dice = |n: u64| (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (0..120).map(move |n| (dice(2 * n) % 4_000_000_000, dice(2 * n + 1) % 4_000_000_000))
}

/// How far two times are apart.
fn apart(one: Duration, other: Duration) -> Duration {
    one.saturating_sub(other) + other.saturating_sub(one)
}

/// What rounds at every step.
const ROUNDED: Duration = Duration::from_nanos(200);

#[test]
fn a_request_is_held_back_until_it_lands_just_before_its_sector_and_is_no_later() {
    let mut held = 0;
    for (from, to) in places() {
        let mut bench = SlackBench::new(plain(), HOLD);
        bench.put_head(from);
        let piece = bench.choose(to, 8);
        let at_once = bench.course(piece, bench.bench.now);
        match bench.depart(piece, HeldBack::No) {
            (StageAnswer::WaitUntil(Some(then)), HeldBack::Yes) => {
                assert!(then > bench.bench.now);
                let later = bench.course(piece, then);
                let landing = later.pass.rotation;
                assert!(apart(landing, LANDING) < ROUNDED, "{landing:?}");
                let (now, then) = (arrives(&at_once), arrives(&later));
                assert!(
                    now.since(then) + then.since(now) < ROUNDED,
                    "{now:?}, {then:?}"
                );
                held += 1;
            }
            (StageAnswer::Pass, HeldBack::No) => {
                let slack = at_once.pass.rotation.saturating_sub(LANDING);
                assert!(slack < LEAST_SLACK, "{slack:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!((60..120).contains(&held), "{held} of 120");
}

/// A drive that reads on goes to the next track at the end of this one, and settles there first.
#[test]
fn a_drive_that_reads_on_is_not_given_a_request_while_it_switches_tracks() {
    let mut before = 0;
    for (from, to) in places() {
        let mut belief = profile();
        belief.buffer.zero_latency_read = false;
        let mut bench = SlackBench::new(belief, HOLD);
        bench.put_head(from);
        let piece = bench.choose(to, 8);
        let (StageAnswer::WaitUntil(Some(then)), _) = bench.depart(piece, HeldBack::No) else {
            continue;
        };
        let (head, belief) = (bench.bench.belief.head, bench.bench.belief.profile());
        let Position {
            cylinder,
            head: arm,
        } = head.position;
        let track = belief.geometry.track_at(cylinder, arm).expect("a track");
        let ends = head.free + belief.spindle.wait(head.free, track.start);
        let settled = ends + belief.head_switch;
        assert!(
            then <= ends || then >= settled,
            "{then:?}: {ends:?}, {settled:?}"
        );
        let landing = bench.course(piece, then).pass.rotation;
        if apart(landing, LANDING) < ROUNDED {
            continue;
        }
        // It would have been given while the drive switches.
        let early = landing.saturating_sub(LANDING);
        assert!(
            then == ends && early < settled.since(ends) + ROUNDED,
            "{landing:?}"
        );
        before += 1;
    }
    assert!(before > 3, "{before}");
}

/// What a command that holds the drive for so long costs more urgent ones: `rate` come in a second, each waits for
/// half of it in the mean, and a nanosecond of theirs is worth three of the head's.
fn cost(rate: u64, held: Duration) -> f64 {
    let held = held.as_nanos() as f64;
    WEIGHT as f64 * rate as f64 / 1e9 * held * held / 2.0
}

#[test]
fn a_request_is_held_back_if_urgent_ones_win_more_than_a_missed_sector_costs() {
    let (mut held, mut gone) = (0, 0);
    for (n, (from, to)) in places().enumerate() {
        let landing = [LANDING, Duration::from_micros(10)][n % 2];
        let rules = Preemption {
            just_in_time: Some(Landing::Fixed(landing)),
            when: When::Worth,
            ..HOLD
        };
        let mut bench = SlackBench::new(plain(), rules);
        let rate = [0, 90, 400, 2_000][n / 2 % 4];
        bench.see_urgent(rate);
        let rate = rate.max(FORESEEN);
        bench.put_head(from);
        let piece = bench.choose(to, 8 + (n as u64 % 3) * 900);
        let course = bench.course(piece, bench.bench.now);
        let slack = course.pass.rotation.saturating_sub(landing);
        let takes = course.pass.seek + course.pass.transfer;
        let won = cost(rate, takes + course.pass.rotation) - cost(rate, takes + landing);
        let period = bench.bench.belief.profile().spindle.period();
        let risk = bench.preemption.landings.chance(landing) * period.as_nanos() as f64;
        let is_worth = won > risk && slack >= LEAST_SLACK;
        // Rounding decides where both are as good.
        if slack >= LEAST_SLACK && (won - risk).abs() < 9.0 {
            continue;
        }
        let (answer, was_held) = bench.depart(piece, HeldBack::No);
        let is_held = was_held == HeldBack::Yes;
        assert_eq!(is_held, is_worth, "{won} won, {risk} at risk: {answer:?}");
        held += u32::from(is_worth);
        gone += u32::from(!is_worth && slack >= LEAST_SLACK);
        // What was held back before stays so: it was worth it.
        let (_, was_held) = bench.depart(piece, HeldBack::Yes);
        assert_eq!(was_held == HeldBack::Yes, slack >= LEAST_SLACK);
    }
    assert!(held > 20 && gone > 5, "{held}, {gone}");
}

/// A late landing costs a revolution, and an early one what urgent requests wait for it.
#[test]
fn a_learned_landing_is_earlier_the_more_a_missed_sector_costs_beside_waiting() {
    let rates = [20, 100, 1_000];
    let means = rates.map(|rate| {
        let (mut landings, mut all) = (0, Duration::ZERO);
        for (from, to) in places().take(40) {
            let rules = Preemption {
                just_in_time: Some(Landing::Learned),
                ..HOLD
            };
            let mut bench = SlackBench::new(plain(), rules);
            bench.see_urgent(rate);
            bench.put_head(from);
            let piece = bench.choose(to, 8);
            let course = bench.course(piece, bench.bench.now);
            let held = course.pass.seek + course.pass.transfer;
            let period = bench.bench.belief.profile().spindle.period();
            // So much of a landing is as dear as its part of a revolution.
            let dear = WEIGHT as f64 * rate as f64 * held.as_nanos() as f64 / 1e9;
            let guard = bench
                .preemption
                .landings
                .guard(period.as_nanos() as f64 / dear);
            let expected = guard + LEAST_LANDING;
            if let (StageAnswer::WaitUntil(Some(then)), _) = bench.depart(piece, HeldBack::No) {
                let landing = bench.course(piece, then).pass.rotation;
                assert!(
                    apart(landing, expected) < ROUNDED,
                    "{landing:?}, {expected:?}"
                );
                landings += 1;
                all += landing;
            }
        }
        assert!(landings > 10, "{rate}: {landings}");
        all.as_nanos() / landings
    });
    assert!(means.is_sorted_by(|one, next| one > next), "{means:?}");
}

/// While the drive is busy nothing is lost by giving a request just before the arm is free.
#[test]
fn behind_a_command_at_the_drive_a_request_is_given_when_the_arm_is_about_to_be_free() {
    let rules = Preemption {
        when: When::Worth,
        ..HOLD
    };
    let mut bench = SlackBench::new(plain(), rules);
    bench.put_head(1_000_000);
    bench.bench.send(Purpose::Hop, blocks(3_000_000_000, 8));
    let piece = bench.choose(200_000_000, 8);
    let cx = bench.bench.cx();
    let free = cx.expected_head().free;
    let overhead = cx
        .expected_head()
        .view(cx.profile(), cx.now)
        .overhead(Direction::Read);
    // Merged with free blocks it has no slack.
    let (answer, held) = depart(
        &cx,
        &bench.guarantees,
        &bench.preemption,
        (piece, HeldBack::No, true),
    );
    assert_eq!(held, HeldBack::No);
    let StageAnswer::WaitUntil(Some(then)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(then + overhead + LANDING, free);
    // A drive that has nothing to do is given it at once.
    let mut bench = SlackBench::new(plain(), rules);
    bench.put_head(1_000_000);
    let piece = bench.choose(200_000_000, 8);
    let cx = bench.bench.cx();
    let (answer, _) = depart(
        &cx,
        &bench.guarantees,
        &bench.preemption,
        (piece, HeldBack::No, true),
    );
    assert!(matches!(answer, StageAnswer::Pass));
}

#[test]
fn what_is_real_time_or_alone_is_not_held_back() {
    let class = Class::RealTime {
        deadline: Instant::ZERO,
    };
    for class in [class, Class::BestEffort(0)] {
        let mut bench = SlackBench::new(plain(), HOLD);
        bench.put_head(1_000_000);
        let extent = blocks(3_000_000_000, 8);
        let piece = bench.bench.submit(Direction::Read, extent, class);
        let answer = bench.depart(piece, HeldBack::No);
        assert!(
            matches!(answer, (StageAnswer::Pass, HeldBack::No)),
            "{class:?}"
        );
    }
}
