//! A drive that is measured as it is simulated is met exactly, and nothing looks into the future.

use proptest::prelude::*;

use super::judgement::judge;
use super::*;
use crate::fit::tests::truths::{Clockwork, measured};

fn profile() -> Profile {
    let entry = drive::catalog::find("hp-c2247a").expect("a shipped drive");
    entry.profile().expect("a profile").published()
}

fn services(replayed: &[Replayed]) -> Vec<Duration> {
    replayed.iter().map(|replayed| replayed.service).collect()
}

#[test]
fn a_drive_like_its_model_is_met_to_the_clock_tick() {
    let profile = Arc::new(profile());
    let samples = measured(&profile, 400, Clockwork::Steady);
    // The trace's clock has microseconds, with up to four of noise, which a tracker follows.
    for (clock, nanos, most) in [
        (ReplayClock::Measured, 4_000, 4),
        (ReplayClock::Tracked, 8_000, 0),
    ] {
        let times = services(&replay(&profile, &samples, clock));
        let far = |(time, sample): &(&Duration, &Sample)| {
            time.as_nanos().abs_diff(sample.service.as_nanos()) > nanos
        };
        let far = times.iter().zip(&samples).filter(far).count();
        assert!(far <= most, "{clock:?}: {far} of 400");
    }
    let judged = judge(&profile, &samples, None).judgement;
    assert!(judged.phase_concentration > 0.999, "{judged:?}");
    assert!(judged.held_out.median_error_ms.is_some_and(|e| e < 0.008));
    assert_eq!(judged.held_out.requests, 200);
    assert_eq!(judged.held_out.disksim_demerit_ms, None);
}

#[test]
fn the_second_half_is_judged_on_a_warm_drive() {
    let profile = profile();
    let samples = measured(&profile, 301, Clockwork::Steady);
    let own = services(&replay(
        &Arc::new(profile.clone()),
        &samples,
        ReplayClock::Own,
    ));
    let judged = judge(&profile, &samples, Some(&own));
    assert_eq!(judged.simulated, own);
    let held_out = judged.judgement.held_out;
    assert_eq!(held_out.requests, 151);
    let expected = score::Score::of(&samples[150..], &own[150..]);
    assert!((held_out.demerit_ms - expected.demerit).abs() < 1e-6);
    // DiskSim's times go through the same hands as ours.
    assert_eq!(held_out.disksim_demerit_ms, Some(held_out.demerit_ms));
}

#[test]
fn without_a_phase_there_is_no_error_per_request() {
    let profile = profile();
    let samples = measured(&profile, 400, Clockwork::Jumping);
    let judged = judge(&profile, &samples, None).judgement;
    assert!(judged.phase_concentration < 0.3, "{judged:?}");
    assert_eq!(judged.whole.median_error_ms, None);
    assert_eq!(judged.held_out.median_error_ms, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What was measured of a request, and of all after it, has no part in its own prediction.
    #[test]
    fn a_prediction_uses_only_what_was_before(from in 0usize..120, by in 1u64..20_000, seed in any::<u64>()) {
        let profile = Arc::new(profile());
        let samples = measured(&profile, 120, Clockwork::Steady);
        let mut other = samples.clone();
        let mut later = Duration::ZERO;
        for (index, sample) in other.iter_mut().enumerate().skip(from) {
            sample.issued += later;
            let more = Duration::from_micros(by + (seed >> (index % 32)) % 5_000);
            sample.service += more;
            later += more;
        }
        for clock in [ReplayClock::Own, ReplayClock::Measured, ReplayClock::Tracked] {
            let before = replay(&profile, &samples, clock);
            let after = replay(&profile, &other, clock);
            prop_assert_eq!(&before[..=from], &after[..=from]);
        }
    }
}
