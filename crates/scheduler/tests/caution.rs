//! Guards: what is learned from missed sectors, and what it is worth.

use block::{Direction, Duration, Extent, Instant, Lba, Sectors};
use drive::{Angle, Position, SeekTarget};
use scheduler::freeblock::{
    Caution, Conservatism, Delay, Delivery, Gap, GapPlan, GapUse, Kind, Lateness, ObservedSeek,
    Stop,
};

/// A 10,000 rpm drive's revolution.
const PERIOD: Duration = Duration::from_micros(6_000);

/// A sequence of numbers below `below`, the same in every run (Knuth's MMIX constants).
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// About normal: the sum of twelve uniform numbers, in nanoseconds.
    fn noise(&mut self, sigma: u64) -> i64 {
        let sum: u64 = (0..12).map(|_| self.below(1_000)).sum();
        (sum as i64 - 6_000) * sigma as i64 / 1_000
    }
}

/// How many revolutions a command loses that is believed to wait `wait` and is `late`.
fn lost(wait: u64, late: i64) -> i64 {
    let period = PERIOD.as_nanos() as i64;
    let left = wait as i64 - late;
    (wait as i64 - left.rem_euclid(period) - late).div_euclid(-period)
}

fn taught(seed: u64, observations: usize, noise: impl Fn(&mut Dice) -> i64) -> Lateness {
    let mut dice = Dice(seed);
    let mut lateness = Lateness::default();
    for _ in 0..observations {
        let wait = dice.below(PERIOD.as_nanos());
        let late = noise(&mut dice);
        lateness.observe(Duration::from_nanos(wait), PERIOD, lost(wait, late));
    }
    lateness.learn();
    lateness
}

#[test]
fn a_command_loses_a_revolution_exactly_if_it_is_later_than_its_wait() {
    for (wait, late, revolutions) in [
        (1_000_000, 999_999, 0),
        (1_000_000, 1_000_001, 1),
        (1_000_000, -4_000_000, 0),
        (5_990_000, -20_000, -1),
        (5_990_000, -5_000, 0),
    ] {
        assert_eq!(lost(wait, late), revolutions, "{wait} {late}");
    }
}

#[test]
fn the_chance_of_being_late_is_learned_from_lost_revolutions_alone() {
    let lateness = taught(1, 200_000, |dice| dice.noise(60_000));
    // The normal distribution's tail beyond 0, 1, 2 and 3 sigma; a bin is 16 us wide.
    for (slack, low, high) in [
        (-120_000, 0.95, 1.0),
        (0, 0.35, 0.55),
        (60_000, 0.09, 0.20),
        (120_000, 0.01, 0.05),
        (240_000, 0.0, 0.006),
    ] {
        let chance = lateness.chance(slack);
        assert!((low..=high).contains(&chance), "{slack}: {chance}");
    }
}

#[test]
fn more_slack_is_never_more_dangerous() {
    for seed in 0..50 {
        let lateness = taught(seed, 300, |dice| dice.noise(200_000));
        let chances = (-600_000..1_700_000).step_by(8_000);
        let chances: Vec<f64> = chances.map(|slack| lateness.chance(slack)).collect();
        assert!(chances.windows(2).all(|pair| pair[0] >= pair[1]));
    }
}

#[test]
fn a_drive_that_keeps_its_times_needs_no_guard() {
    let lateness = taught(3, 100_000, |_| 0);
    assert!(lateness.guard(PERIOD.as_nanos() as f64) <= Duration::from_micros(16));
}

#[test]
fn a_dearer_foreground_asks_for_more_guard() {
    let lateness = taught(4, 100_000, |dice| dice.noise(60_000));
    let period = PERIOD.as_nanos() as f64;
    let guards = [0.1, 0.5, 2.0, 8.0].map(|price| lateness.guard(price * period));
    assert!(guards.is_sorted(), "{guards:?}");
    assert!(guards[0] < guards[3], "{guards:?}");
}

#[test]
fn rare_long_delays_do_not_drive_the_guard_away() {
    let late = |dice: &mut Dice| {
        let settle = if dice.below(100) == 0 { 1_500_000 } else { 0 };
        dice.noise(60_000) + settle
    };
    let lateness = taught(5, 200_000, late);
    // A guard of 1.5 ms would be safe and leave nothing of most gaps.
    assert!(lateness.guard(0.6 * PERIOD.as_nanos() as f64) < Duration::from_micros(400));
}

/// A revolution in nanoseconds, three times in ten.
fn anyway(dice: &mut Dice) -> i64 {
    match dice.below(10) {
        0..3 => PERIOD.as_nanos() as i64,
        _ => 0,
    }
}

#[test]
fn commands_that_are_late_whatever_their_slack_say_nothing_of_seeks() {
    let late = |dice: &mut Dice| dice.noise(60_000) + anyway(dice);
    let lateness = taught(6, 200_000, late);
    assert!((lateness.late_anyway() - 0.3).abs() < 0.03);
    for (slack, low, high) in [(0, 0.35, 0.55), (60_000, 0.06, 0.22), (300_000, 0.0, 0.04)] {
        let chance = lateness.chance(slack);
        assert!((low..=high).contains(&chance), "{slack}: {chance}");
    }
}

#[test]
fn reads_tell_how_late_the_seeks_of_writes_are_that_are_late_anyway() {
    let guards = |drowned: u64| {
        let mut guards = Conservatism::new(Caution::default(), PERIOD, 10_000);
        let mut dice = Dice(7);
        for n in 0..100_000 {
            let (wait, noise) = (dice.below(PERIOD.as_nanos()), dice.noise(60_000));
            let direction = [Direction::Read, Direction::Write][n % 2];
            let late = match direction {
                Direction::Read => noise,
                // The sector is read before it is written.
                Direction::Write if dice.below(10) < drowned => noise + PERIOD.as_nanos() as i64,
                Direction::Write => noise / 2,
            };
            guards.observe(&ObservedSeek {
                direction,
                ..seek(
                    Delivery::Queued,
                    100,
                    (Duration::from_nanos(wait), lost(wait, late)),
                )
            });
        }
        for _ in 0..512 {
            guards.finished(Duration::from_millis(60), 0, 1);
        }
        guards.guards()
    };
    let [read, _, write, _] = guards(9);
    assert_eq!(read, write);
    let [read, _, write, _] = guards(0);
    assert!(write < read, "{write:?} {read:?}");
}

fn seek(delivery: Delivery, distance: u32, (wait, revolutions): (Duration, i64)) -> ObservedSeek {
    ObservedSeek {
        direction: Direction::Read,
        delivery,
        distance,
        wait,
        revolutions,
    }
}

fn gap() -> Gap {
    Gap {
        source: Position::default(),
        departs: Instant::ZERO,
        leaves: Instant::ZERO,
        follows: Instant::ZERO,
        lag: Duration::ZERO,
        handover: Duration::ZERO,
        destination: SeekTarget {
            position: Position {
                cylinder: 500,
                head: 0,
            },
            angle: Angle::ZERO,
        },
        direction: Direction::Read,
        extent: Extent::block(Lba(0)),
        begins: Instant::ZERO + Duration::from_millis(6),
        bus: None,
        delivery: Delivery::Queued,
    }
}

fn plan(slack: Duration) -> GapPlan {
    let extent = Extent::new(Lba(100), Sectors(8)).expect("a valid extent");
    let stop = Stop {
        kind: Kind::Detour,
        direction: Direction::Read,
        extent,
        wanted: 8,
        slack,
        begins: Instant::ZERO,
        ends: Instant::ZERO + Duration::from_millis(2),
    };
    GapPlan::of(stop, slack)
}

#[test]
fn a_fixed_guard_is_the_constant_and_leaves_near_misses_alone() {
    let caution = Caution::Fixed {
        guard: Duration::from_micros(300),
        near_miss: Duration::from_micros(100),
    };
    let mut fixed = Conservatism::new(caution, PERIOD, 1_000);
    let guard = fixed.guard(&gap());
    assert_eq!(guard.to_free, Duration::from_micros(300));
    assert_eq!(guard.to_destination, Duration::from_micros(300));
    assert!(fixed.admits(Duration::from_micros(5_900)));
    assert!(!fixed.admits(Duration::from_micros(5_901)));
}

#[test]
fn the_price_follows_the_impact_budget() {
    let learned = |lost| {
        let caution = Caution::Learned { impact_ppm: 10_000 };
        let mut state = Conservatism::new(caution, PERIOD, 1_000);
        for _ in 0..20_000 {
            let _ = state.guard(&gap());
            state.finished(Duration::from_millis(60), lost, 1);
        }
        state
    };
    // A plan whose slack leaves a real chance of being late.
    let (reading, slack) = (Duration::from_micros(400), Duration::from_micros(100));
    let latency = Duration::from_millis(3);
    let worth = |state: &Conservatism| {
        let loss = state.expected_loss(&gap(), latency, &plan(slack));
        state.pays(|| reading, loss)
    };
    let (within, over) = (learned(0), learned(1_200_000));
    assert!(worth(&within), "nothing is lost, and the plan is left out");
    assert!(!worth(&over), "2 % are lost, and the plan is carried out");
    assert!((over.impact() - 0.02).abs() < 1e-6, "{}", over.impact());
    assert!(over.guards()[0] > within.guards()[0]);
}

#[test]
fn the_price_stays_while_no_gap_is_considered() {
    let mut state = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let before = state.price_of(PERIOD);
    for _ in 0..20_000 {
        state.finished(Duration::from_millis(60), 0, 1);
    }
    assert_eq!(state.price_of(PERIOD), before);
}

#[test]
fn less_slack_and_a_nearly_missed_sector_are_dearer() {
    let state = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let loss = |slack, latency| {
        let (slack, latency) = (Duration::from_micros(slack), Duration::from_micros(latency));
        state.expected_loss(&gap(), latency, &plan(slack))
    };
    assert!(loss(50, 3_000) > loss(400, 3_000));
    assert!(loss(400, 5_980) > loss(400, 3_000));
}

#[test]
fn luck_is_there_to_lose_only_where_a_sector_is_nearly_missed() {
    let mut state = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let luck =
        |state: &Conservatism, latency| state.expected_luck(&gap(), Duration::from_micros(latency));
    assert_eq!(luck(&state, 3_000), Duration::ZERO);
    // What the prior says: half of all seeks are early, and 16 us early about as many.
    let at_first = luck(&state, 5_980);
    assert!(at_first > Duration::from_micros(1_500), "{at_first:?}");
    // A drive that never is: it waits nearly a revolution, and never less.
    for _ in 0..1_000 {
        let wait = Duration::from_micros(5_980);
        state.observe(&seek(Delivery::Queued, 500, (wait, 0)));
    }
    for _ in 0..256 {
        state.finished(Duration::from_millis(60), 0, 1);
    }
    assert!(luck(&state, 5_980) < Duration::from_micros(60));
    assert_eq!(luck(&state, 3_000), Duration::ZERO);
    // It is part of what a plan is expected to cost.
    let state = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let (latency, slack) = (Duration::from_micros(5_980), Duration::from_millis(2));
    assert_eq!(state.expected_loss(&gap(), latency, &plan(slack)), at_first);
}

/// The guards after so many requests of 10 ms that each lose 0.1 ms, under a budget that is changed
/// half-way; both kinds of commands come a little late at times.
fn settled(first_ppm: u32, then_ppm: u32) -> Conservatism {
    let mut dice = Dice(5);
    let caution = Caution::Learned {
        impact_ppm: first_ppm,
    };
    let mut conservatism = Conservatism::new(caution, PERIOD, 10_000);
    for request in 0..40 * 256 {
        if request == 20 * 256 {
            conservatism.set_budget(then_ppm);
        }
        let wait = dice.below(PERIOD.as_nanos());
        let late = lost(wait, dice.noise(150_000));
        let wait = Duration::from_nanos(wait);
        conservatism.observe(&seek(Delivery::Queued, 9_000, (wait, late)));
        let _ = conservatism.guard(&gap());
        conservatism.finished(Duration::from_millis(10), 100_000, 1);
    }
    conservatism
}

#[test]
fn a_budget_that_is_changed_live_changes_how_careful_plans_are() {
    let long_reads = |conservatism: &Conservatism| conservatism.guards()[1];
    let (large, small) = (settled(100_000, 100_000), settled(1_000, 1_000));
    let (lowered, raised) = (settled(100_000, 1_000), settled(1_000, 100_000));
    assert!(long_reads(&lowered) > long_reads(&large));
    assert!(long_reads(&raised) < long_reads(&small));
    assert_eq!(lowered.budget(), Some(1_000));
    let mut fixed = Conservatism::new(
        Caution::Fixed {
            guard: PERIOD,
            near_miss: PERIOD,
        },
        PERIOD,
        10_000,
    );
    fixed.set_budget(5);
    assert_eq!(fixed.budget(), None);
}

#[test]
fn a_late_host_widens_the_guards_of_commands_that_begin_on_arrival_only() {
    let mut dice = Dice(7);
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 10_000);
    for _ in 0..40 * 256 {
        let wait = dice.below(PERIOD.as_nanos());
        let host = 100_000 + dice.below(400_000) as i64;
        for (delivery, late) in [(Delivery::Queued, 0), (Delivery::Immediate, host)] {
            let late = lost(wait, dice.noise(30_000) + late);
            let wait = Duration::from_nanos(wait);
            conservatism.observe(&seek(delivery, 500, (wait, late)));
        }
        conservatism.finished(Duration::from_millis(10), 0, 1);
    }
    let queued = gap();
    let immediate = Gap {
        delivery: Delivery::Immediate,
        ..queued
    };
    let [short, long] = [queued, immediate].map(|gap| conservatism.guard(&gap).to_free);
    assert!(short < Duration::from_micros(150), "{short:?}");
    assert!(long > Duration::from_micros(300), "{long:?}");
    // A free read on the track of the request before has no seek, and is late by the host.
    let stop = Stop {
        kind: Kind::Source,
        ends: Instant::ZERO + Duration::from_millis(2),
        ..*plan(Duration::from_micros(200))
            .stops()
            .next()
            .expect("one")
    };
    let plan = GapPlan::of(stop, Duration::from_millis(2));
    let loss = |gap| conservatism.expected_loss(gap, Duration::from_millis(3), &plan);
    assert!(loss(&queued) < Duration::from_micros(60));
    assert!(loss(&immediate) > Duration::from_micros(1_500));
}

#[test]
fn a_command_is_queued_that_is_ready_before_the_arm_is_free() {
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    for (ready, free, delivery) in [
        (0, 3_000, Delivery::Queued),
        (2_500, 3_000, Delivery::Queued),
        (2_501, 3_000, Delivery::Immediate),
        (4_000, 3_000, Delivery::Immediate),
    ] {
        assert_eq!(Delivery::of(at(ready), at(free)), delivery, "{ready}");
    }
}

#[test]
fn what_was_lost_is_added_up_for_all_that_were_delayed() {
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 10_000);
    conservatism.finished(Duration::from_millis(10), 300_000, 1);
    let before = conservatism.losses();
    conservatism.finished(Duration::from_millis(10), 100_000, 3);
    conservatism.finished(Duration::from_millis(20), -30_000, 1);
    let share = conservatism.losses().impact_since(before);
    assert_eq!(share, Some(0.009));
    assert_eq!(before.impact_since(before), None);
}

#[test]
fn a_delay_of_every_request_is_not_the_plans() {
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let turn = PERIOD.as_nanos() as i64;
    let delay = Delay::after(0, turn);
    let mut late = |direction, gap| conservatism.attribute((direction, gap), delay, Duration::ZERO);
    // Every write loses a revolution, with a plan and without.
    for _ in 0..2_000 {
        assert_eq!(late(Direction::Write, GapUse::Unused), 0);
    }
    let planned = GapUse::Apart(Duration::ZERO);
    assert!(late(Direction::Write, planned) * 20 < turn);
    assert_eq!(late(Direction::Read, planned), turn, "no read does");
    // Where the seek might have been late, nothing is learned.
    for latency in [100, 1_000, 5_900] {
        let latency = Duration::from_micros(latency);
        assert_eq!(GapUse::unused(latency, PERIOD), GapUse::UnusedAtEdge);
    }
    let latency = Duration::from_micros(3_000);
    assert_eq!(GapUse::unused(latency, PERIOD), GapUse::Unused);
}

#[test]
fn a_plan_is_charged_two_revolutions_at_most() {
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let turn = PERIOD.as_nanos() as i64;
    let planned = (Direction::Read, GapUse::Merged(Duration::ZERO));
    let luck = Duration::from_nanos(5);
    let lost = conservatism.attribute(planned, Delay::after(0, 50 * turn), luck);
    assert_eq!(lost, 2 * turn + 5);
    // The drive was busy with its own before the read, which then missed its blocks, and the request its own.
    let lost = conservatism.attribute(planned, Delay::after(50 * turn, 51 * turn), luck);
    assert_eq!(lost, 3 * turn + 5);
}

#[test]
fn plans_of_a_kind_that_lose_more_than_expected_are_expected_to() {
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let latency = Duration::from_millis(3);
    let apart = plan(Duration::from_millis(2));
    let expected =
        |conservatism: &Conservatism| conservatism.expected_loss(&gap(), latency, &apart);
    let before = expected(&conservatism);
    // Each loses 0.1 ms, as if something held the drive up after a read.
    for _ in 0..5_000 {
        let gap = conservatism.gap_use(&gap(), latency, &apart);
        let delay = Delay::after(0, 100_000);
        conservatism.attribute((Direction::Read, gap), delay, Duration::ZERO);
    }
    let more = expected(&conservatism).saturating_sub(before);
    assert!(more > Duration::from_micros(80), "{more:?}");
    let merged = GapPlan::of(
        Stop {
            kind: Kind::Merged,
            ..*apart.stops().next().expect("a stop")
        },
        Duration::from_millis(2),
    );
    let merged = conservatism.expected_loss(&gap(), latency, &merged);
    assert_eq!(merged, Duration::ZERO, "the other kind is as before");
}

#[test]
fn nothing_is_risked_while_more_than_the_budget_is_lost() {
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let response = Duration::from_millis(60);
    let turn = PERIOD.as_nanos() as i64;
    let finished = |conservatism: &mut Conservatism, requests: u32, lost: i64| {
        for _ in 0..requests {
            conservatism.finished(response, lost, 10);
        }
    };
    // One plan may fail at the beginning.
    finished(&mut conservatism, 1, turn);
    assert!(!conservatism.is_overdrawn());
    finished(&mut conservatism, 99, 0);
    // A revolution of ten requests is 1 % of a hundred responses.
    finished(&mut conservatism, 40, turn);
    assert!(conservatism.is_overdrawn());
    finished(&mut conservatism, 1_500, 0);
    assert!(conservatism.is_overdrawn());
    finished(&mut conservatism, 3_000, 0);
    assert!(!conservatism.is_overdrawn());
}
