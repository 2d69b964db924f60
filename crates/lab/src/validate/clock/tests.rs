//! Phases, drifts and noise that are known, and whether they are found again.

use block::{Account, Direction, Duration, Extent, Lba, Sectors};

use super::*;
use simulator::workload::dice::Dice;

/// 6 ms a revolution.
fn spindle() -> Spindle {
    Spindle::from_period_ps(6_000_000_000)
}

/// A request that the medium served: simulated to be complete at `simulated`, measured `late`
/// revolutions after it.
fn completion(simulated: u64, late: f64) -> (Sample, Replayed) {
    let simulated = Instant::from_nanos(simulated);
    let late = Duration::from_nanos((late * 6e6).round() as u64);
    let issued = Instant::from_nanos(simulated.as_nanos() - 3_000_000);
    let sample = Sample {
        direction: Direction::Read,
        extent: Extent::new(Lba(0), Sectors(1)).expect("an extent"),
        issued,
        service: (simulated + late).since(issued),
        think: Duration::ZERO,
    };
    let account = Account {
        transfer: Duration::from_micros(100),
        hit: BufferHit::Miss,
        ..Account::default()
    };
    let replayed = Replayed {
        service: simulated.since(issued),
        completed: simulated,
        account,
    };
    (sample, replayed)
}

/// So many completions at random moments, `late(i, noise)` with noise evenly from -1 to 1.
fn completions(count: u64, late: impl Fn(f64, f64) -> f64) -> Vec<(Sample, Replayed)> {
    let mut dice = Dice::new(1, 2);
    let mut now = 10_000_000;
    (0..count)
        .map(|i| {
            now += 1_000_000 + dice.below(40_000_000);
            let noise = dice.below(2_000_001) as f64 / 1e6 - 1.0;
            completion(now, late(i as f64, noise))
        })
        .collect()
}

fn phase_of(completions: &[(Sample, Replayed)]) -> ClockPhase {
    let (samples, replayed): (Vec<_>, Vec<_>) = completions.iter().copied().unzip();
    phase(&spindle(), &samples, &replayed)
}

/// How far two angles are apart, in revolutions.
fn apart(one: Angle, other: f64) -> f64 {
    let way = (one.revolutions() - other).rem_euclid(1.0);
    way.min(1.0 - way)
}

#[test]
fn a_phase_is_found_through_noise_and_lost_revolutions() {
    for late in [0.0, 0.02, 0.49, 0.51, 0.98] {
        // Every fifth request took two revolutions more: that says nothing about the phase.
        let found = phase_of(&completions(500, |i, noise| {
            late + 0.1 + noise * 0.05 + if i % 5.0 == 0.0 { 2.0 } else { 0.0 }
        }));
        assert!(apart(found.angle, late + 0.1) < 0.005, "{late}: {found:?}");
        // The mean of cos(2 pi x) over x from -0.05 to 0.05.
        let expected = (0.1 * std::f64::consts::PI).sin() / (0.1 * std::f64::consts::PI);
        assert!((found.concentration - expected).abs() < 0.005, "{found:?}");
    }
}

#[test]
fn completions_at_random_have_no_phase() {
    let found = phase_of(&completions(2500, |_, noise| 1.0 + noise * 0.5));
    assert!(found.concentration < 0.06, "{found:?}");
    let none = phase_of(&[]);
    assert_eq!((none.angle, none.concentration), (Angle::ZERO, 0.0));
}

#[test]
fn what_the_buffer_answered_says_nothing() {
    let mut completions = completions(100, |_, _| 0.25);
    for (_, replayed) in &mut completions[..50] {
        replayed.account.hit = BufferHit::Full;
        replayed.completed += Duration::from_micros(700);
    }
    let found = phase_of(&completions);
    assert!(apart(found.angle, 0.25) < 1e-6 && found.concentration > 0.999_999);
}

#[test]
fn a_spindle_with_the_phase_agrees_with_the_measurements() {
    let completions = completions(100, |_, _| 0.3);
    let found = phase_of(&completions);
    let turned = with_phase(spindle(), found.angle);
    for (sample, replayed) in &completions {
        let simulated = spindle().angle_at(replayed.completed);
        let measured = turned.angle_at(sample.issued + sample.service);
        assert!(apart(measured - simulated, 0.0) < 1e-6);
    }
}

#[test]
fn a_tracker_follows_a_wandering_spindle_and_averages_noise() {
    // 0.001 revolutions more with each completion: a spindle 40 ppm slow at 40 commands a second.
    let drift = 0.001;
    let mut tracker = Tracker::new(spindle());
    let mut believed = Angle::ZERO;
    let mut worst: f64 = 0.0;
    let mut dice = Dice::new(1, 2);
    for i in 0..2000 {
        let noise = dice.below(40_001) as f64 / 1e6 - 0.02;
        let late = 0.4 + drift * f64::from(i);
        // The model waits for its sector on the platter that it believes in.
        let simulated = (Angle::ZERO - believed).revolutions();
        let base = 10_000_000 + u64::from(i as u32) * 23_456_789;
        let (sample, replayed) = completion(
            base + (simulated * 6e6).round() as u64,
            (late + noise - simulated).rem_euclid(1.0),
        );
        let said = tracker.follow(&sample, Some(&replayed));
        believed = said.expect("the medium says something");
        // The platter is behind by what completions are late.
        if i >= 100 {
            worst = worst.max(apart(believed, -late));
        }
    }
    // It lags by the drift of eleven completions; the noise of 0.02 shrinks to a fifth.
    assert!(
        worst > 10.0 * drift && worst < 11.0 * drift + 0.01,
        "{worst}"
    );
}

#[test]
fn a_tracker_learns_nothing_from_hits() {
    let mut tracker = Tracker::new(spindle());
    let (sample, mut replayed) = completion(50_000_000, 0.3);
    assert_eq!(tracker.follow(&sample, None), None);
    replayed.account.hit = BufferHit::Full;
    assert_eq!(tracker.follow(&sample, Some(&replayed)), None);
    replayed.account.hit = BufferHit::Miss;
    let first = tracker
        .follow(&sample, Some(&replayed))
        .expect("the medium");
    assert!(
        apart(first, -0.3) < 1e-6,
        "from nothing to the first residual"
    );
}
