//! An engine that stands outside its drive: it has a belief, commands and their ends.

use block::{Duration, Instant};
use drive::{Angle, Imperfections, Spindle};

use super::*;
use crate::caching::{EngineScheduling, ExternalBelief, Readmore};

/// A belief by which the platter turns so many parts per million slower than it does, of a drive whose
/// seeks scatter by so much.
fn outside(slow_ppm: u64, seek_noise: Duration) -> ExternalBelief {
    let mut belief = Profile::clone(&cheetah());
    let period = belief.spindle.period_ps();
    belief.spindle = Spindle::from_period_ps(period + period * slow_ppm / 1_000_000);
    ExternalBelief {
        belief: Arc::new(belief),
        imperfections: Imperfections {
            seek_noise,
            ..Imperfections::default()
        },
        seed: 1,
    }
}

const NOISE: Duration = Duration::from_micros(60);

fn system(outside: ExternalBelief) -> Result<System, BadSetup> {
    let scheduled = EngineScheduling::external(Arc::new(outside), Readmore::Wished);
    System::new(&CachingSetup {
        scheduler: Scheduler::Engine(scheduled),
        ..two_levels((600, 1_200), "ra(p=4)", "pfc")
    })
}

fn open(outside: ExternalBelief, load: impl Iterator<Item = CacheArrival>) -> CachingReport {
    let mut system = system(outside).expect("a system");
    run(&mut system, &mut { load }, ArrivalTiming::Open).expect("a run")
}

#[test]
fn an_engine_outside_follows_its_drive_and_grants_wishes() {
    // In a minute the platter is a whole revolution further than it was believed to be.
    let report = open(outside(100, NOISE), wished::streams());
    let tallies = report.tallies.expect("an engine that follows its drive");
    let apart = tallies.late + tallies.elsewhere;
    assert!(tallies.as_believed > 20 * apart, "{tallies:?}");
    let l2 = report.levels[1];
    assert!(l2.granted > 500, "{l2:?}");
    assert!(report.slack.free > 0, "{:?}", report.slack);
    // Some seek is late, and some a little sooner than on average.
    assert_ne!(report.slack.lost, 0);
    assert!(report.slack.lost_percent() < 1.0, "{:?}", report.slack);
    // Nobody follows a drive that is known.
    let known = wished::pairs(&wished::exact(Readmore::Wished), "pfc");
    assert_eq!(known.tallies, None);
}

#[test]
fn what_an_engine_outside_cannot_know_is_in_the_drive() {
    let took = |outside| {
        let report = open(outside, wished::streams());
        report.response.total_nanos()
    };
    // The rotation hides a seek's noise unless a revolution is lost: there is enough for that.
    let scattered = || outside(0, Duration::from_micros(500));
    let noisy = took(scattered());
    assert_eq!(noisy, took(scattered()));
    assert_ne!(noisy, took(outside(0, Duration::ZERO)));
    let other = ExternalBelief {
        seed: 2,
        ..scattered()
    };
    assert_ne!(noisy, took(other));
}

#[test]
fn it_begins_with_what_it_believes() {
    let tallies = |turned: f64| {
        let mut outside = outside(0, Duration::ZERO);
        let belief = Arc::make_mut(&mut outside.belief);
        let phase = Angle::from_revolutions(turned).expect("a part of one");
        belief.spindle = belief.spindle.with_phase(phase);
        let report = open(outside, wished::streams().take(100));
        report.tallies.expect("an engine that follows its drive")
    };
    // Half a revolution off the first ends are elsewhere.
    let (right, wrong) = (tallies(0.0), tallies(0.5));
    assert!(wrong.elsewhere > right.elsewhere, "{wrong:?}, {right:?}");
}

#[test]
fn in_a_long_pause_it_looks_where_the_platter_is_and_the_run_ends_nevertheless() {
    let far_apart = [read(0, 1_000, 1_003), read(600_000_000_000, 5_000, 5_003)];
    let report = open(outside(0, NOISE), far_apart.into_iter());
    let tallies = report.tallies.expect("an engine that follows its drive");
    assert!(tallies.calibrations >= 4, "{tallies:?}");
    assert_eq!(report.requests, 2);
    let last = report.ended.since(Instant::from_nanos(600_000_000_000));
    assert!(last < Duration::from_millis(100), "{last:?}");
}

#[test]
fn a_belief_of_another_drive_is_an_error() {
    let entry = drive::catalog::find("quantum-atlas-10k").expect("a shipped drive");
    let belief = Arc::new(entry.profile().expect("a profile"));
    let believed = belief.geometry.sectors().0;
    let sectors = cheetah().geometry.sectors().0;
    let of_another = ExternalBelief {
        belief,
        ..outside(0, NOISE)
    };
    let error = system(of_another).err();
    assert_eq!(error, Some(BadSetup::Belief { believed, sectors }));
}
