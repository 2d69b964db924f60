//! The control group: which plans are withheld, and what that shows.

use block::{Direction, Duration};
use scheduler::freeblock::{Caution, Conservatism, Delay, GapGroup, GapUse, PlanKind};

/// A 10,000 rpm drive's revolution.
const PERIOD: Duration = Duration::from_micros(6_000);

/// The groups of so many gaps, where every gap of the control group has a plan that is withheld.
fn groups(conservatism: &mut Conservatism, gaps: usize) -> Vec<GapGroup> {
    let draw = |_| {
        let group = conservatism.draw_group();
        if group == GapGroup::Control {
            let withheld = (Direction::Read, GapUse::Withheld);
            conservatism.attribute(withheld, Delay::default(), Duration::ZERO);
        }
        group
    };
    (0..gaps).map(draw).collect()
}

#[test]
fn whole_windows_are_withheld_as_often_as_declared() {
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    // 128 windows bring about 480 withheld plans; 512 are enough.
    let first = groups(&mut conservatism, 128 * 64);
    let then = groups(&mut conservatism, 4_096 * 64);
    for window in first.chunks(64).chain(then.chunks(64)) {
        let expected = match window[0] {
            GapGroup::Planned => vec![GapGroup::Planned; 64],
            GapGroup::Settling | GapGroup::Control => {
                let mut withheld = vec![GapGroup::Control; 64];
                withheld[..4].fill(GapGroup::Settling);
                withheld
            }
        };
        assert_eq!(window, expected);
    }
    let withheld = |groups: &[GapGroup]| {
        let windows = groups.chunks(64);
        windows
            .filter(|window| window[0] != GapGroup::Planned)
            .count()
    };
    // One in 16 of 128, then one in 64 of 4,096: within three standard deviations.
    let (first, then) = (withheld(&first), withheld(&then));
    assert!((1..=16).contains(&first), "{first}");
    assert!((40..=88).contains(&then), "{then}");
}

#[test]
fn the_same_gaps_are_withheld_in_every_run() {
    let run = || {
        groups(
            &mut Conservatism::new(Caution::default(), PERIOD, 1_000),
            9_999,
        )
    };
    assert_eq!(run(), run());
}

#[test]
fn a_fixed_guard_withholds_nothing() {
    let caution = Caution::Fixed {
        guard: PERIOD,
        near_miss: PERIOD,
    };
    let mut fixed = Conservatism::new(caution, PERIOD, 1_000);
    let groups = groups(&mut fixed, 9_999);
    assert!(groups.iter().all(|&group| group == GapGroup::Planned));
}

#[test]
fn an_ablation_withholds_nothing() {
    let conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let mut ablation = conservatism.clone().without_control_group();
    let drawn = groups(&mut ablation, 9_999);
    assert!(drawn.iter().all(|&group| group == GapGroup::Planned));
    let mut whole = conservatism;
    let drawn = groups(&mut whole, 9_999);
    assert!(drawn.contains(&GapGroup::Control));
}

#[test]
fn the_control_group_shows_a_loss_that_empty_gaps_hide() {
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let (write, read) = (Direction::Write, Direction::Read);
    let mut attribute = |request, late| {
        let delay = Delay::after(0, late);
        conservatism.attribute(request, delay, Duration::ZERO)
    };
    // Requests in empty gaps are 2 ms late. Those whose gap would be filled are 1 ms early instead.
    for _ in 0..2_000 {
        attribute((write, GapUse::Unused), 2_000_000);
    }
    for _ in 0..2_000 {
        attribute((write, GapUse::Withheld), -1_000_000);
        attribute((write, GapUse::Control { in_time: 300_000 }), 500_000);
    }
    let planned = GapUse::Apart(Duration::ZERO);
    let lost = attribute((write, planned), 3_000_000);
    assert!((3_980_000..=4_000_000).contains(&lost), "{lost}");
    let chosen_late = GapUse::ChosenLate {
        after: PlanKind::BeforeWrite,
        in_time: 100_000,
    };
    let lost = attribute((write, chosen_late), 1_000_000);
    assert!((690_000..=700_000).contains(&lost), "{lost}");
    assert_eq!(attribute((read, planned), 3_000_000), 3_000_000);
}

#[test]
fn in_doubt_the_larger_loss_is_charged() {
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let mut attribute = |gap, late| {
        let request = (Direction::Read, gap);
        conservatism.attribute(request, Delay::after(0, late), Duration::ZERO)
    };
    // The drive may have been busy with its own by chance.
    for _ in 0..20 {
        attribute(GapUse::Withheld, 5_000_000);
    }
    assert_eq!(
        attribute(GapUse::Apart(Duration::ZERO), 6_000_000),
        6_000_000
    );
    // Two are not many, and eight are believed to be like the others.
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let mut attribute = |gap, late| {
        let request = (Direction::Read, gap);
        conservatism.attribute(request, Delay::after(0, late), Duration::ZERO)
    };
    for _ in 0..2 {
        attribute(GapUse::Withheld, -5_000_000);
    }
    assert_eq!(attribute(GapUse::Apart(Duration::ZERO), 0), 1_000_000);
}

#[test]
fn a_drive_that_becomes_slower_is_no_loss_although_the_control_group_is_slow_to_follow() {
    let mut conservatism = Conservatism::new(Caution::default(), PERIOD, 1_000);
    let turn = PERIOD.as_nanos() as i64;
    let mut attribute = |gap, late| {
        let request = (Direction::Read, gap);
        conservatism.attribute(request, Delay::after(0, late), Duration::ZERO)
    };
    for _ in 0..2_000 {
        attribute(GapUse::Unused, 0);
        attribute(GapUse::Withheld, 0);
    }
    for _ in 0..60_000 {
        attribute(GapUse::Unused, turn);
    }
    let lost = attribute(GapUse::Apart(Duration::ZERO), turn);
    assert!(lost * 20 < turn, "{lost}");
}
