//! Predicted head times of random pairs of blocks, against those of the truth.
//!
//! ```text
//!   platter   ...== A ==|                                  |== B ==|
//!   head                | electronics, seek, rotation      transfer|
//!                       |<-------------- head time --------------->|
//! ```
//!
//! A scheduler needs no more from a profile. One surface with twice the cylinders may predict as well as
//! the two that the drive has.

use block::{Direction, Duration, Extent, Instant, Lba};
use drive::geometry::TrackExtent;
use drive::{Profile, SeekTarget};
use serde::Serialize;

use super::placed;
use crate::dice::SplitMix;

/// Pairs that are compared. A choice: a 99th percentile has a hundred of them beyond it.
const PAIRS: u64 = 10_000;

/// How far predictions are off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HeadTimeErrors {
    /// The number of compared pairs; both blocks are said to be known.
    pub pairs: u64,
    /// The mean difference, whichever sign it has.
    pub mean_us: f64,
    /// The middle one.
    pub median_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The share, 0 to 1, that is off by more than a quarter of a revolution: seeks that are predicted in time
    /// and come too late, mostly.
    pub other_turn: f64,
}

/// Random pairs of blocks of some extents, each its first block and its length.
pub(super) fn pairs(extents: &[(u64, u64)]) -> Vec<[Lba; 2]> {
    // Any fixed seed will do.
    let mut dice = SplitMix::new(1);
    let mut block = || placed(extents, dice.number());
    (0..PAIRS)
        .filter_map(|_| Some([block()?, block()?]))
        .collect()
}

/// Compares a read of each pair's second block after one of its first, from a random moment after `from`
/// on. `believed` has the phase of the platter, but for a constant time. `None` without pairs.
pub(super) fn head_times(
    believed: &Profile,
    truth: &Profile,
    pairs: &[[Lba; 2]],
    from: Instant,
) -> Option<HeadTimeErrors> {
    let errors = pairs.iter().enumerate().filter_map(|(number, pair)| {
        let at = from + STEP * number as u64;
        let is = head_time(truth, pair, at)?;
        let predicted = head_time(believed, pair, at)?;
        Some(is.as_nanos().abs_diff(predicted.as_nanos()) as f64 / 1e3)
    });
    let mut errors: Vec<f64> = errors.collect();
    errors.sort_by(f64::total_cmp);
    let quarter = truth.spindle.period().as_nanos() as f64 / 4e3;
    let others = errors.len() - errors.partition_point(|error| *error <= quarter);
    let quantile = |share: f64| {
        let place = (errors.len() as f64 * share).ceil() as usize;
        errors.get(place.saturating_sub(1)).copied()
    };
    Some(HeadTimeErrors {
        pairs: errors.len() as u64,
        mean_us: errors.iter().sum::<f64>() / errors.len() as f64,
        median_us: quantile(0.5)?,
        p99_us: quantile(0.99)?,
        other_turn: others as f64 / errors.len() as f64,
    })
}

/// From one pair to the next: a prime, so that no angle is preferred.
const STEP: Duration = Duration::from_nanos(7_919_003);

/// From the end of the first block's sector to that of the second one's, after the first one's next pass.
fn head_time(profile: &Profile, pair: &[Lba; 2], at: Instant) -> Option<Duration> {
    let sector =
        |lba: Lba| -> Option<TrackExtent> { profile.geometry.runs(Extent::block(lba)).next() };
    let (one, two) = (sector(pair[0])?, sector(pair[1])?);
    let passed = at + profile.spindle.wait(at, one.start + one.sweep);
    let overhead = profile.overheads.read_miss.read;
    let from = SeekTarget::from(&one).position;
    let pass = profile.pass(from, passed + overhead, &two, Direction::Read);
    Some(overhead + pass.total())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named;

    fn of_all(profile: &Profile) -> Vec<[Lba; 2]> {
        pairs(&[(0, profile.geometry.sectors().0)])
    }

    #[test]
    fn the_truth_predicts_itself() {
        let atlas = named::drive("quantum-atlas-10k").expect("a shipped drive");
        let errors = head_times(&atlas, &atlas, &of_all(&atlas), Instant::ZERO);
        let errors = errors.expect("pairs");
        assert_eq!(
            (errors.pairs, errors.mean_us, errors.p99_us),
            (PAIRS, 0.0, 0.0)
        );
    }

    /// A constant time between belief and truth changes no head time.
    #[test]
    fn a_turned_platter_predicts_as_well() {
        let atlas = named::drive("quantum-atlas-10k").expect("a shipped drive");
        let mut turned = atlas.clone();
        let third = drive::Angle::fraction(1, 3);
        turned.spindle = turned
            .spindle
            .with_phase(turned.spindle.angle_at(Instant::ZERO) + third);
        let errors = head_times(&turned, &atlas, &of_all(&atlas), Instant::ZERO);
        let errors = errors.expect("pairs");
        // Times are rounded to nanoseconds.
        assert!(errors.p99_us < 0.01, "{errors:?}");
    }

    #[test]
    fn seeks_that_take_longer_are_told() {
        let atlas = named::drive("quantum-atlas-10k").expect("a shipped drive");
        let mut slow = atlas.clone();
        slow.overheads.read_miss.read += Duration::from_micros(600);
        let errors = head_times(&slow, &atlas, &of_all(&atlas), Instant::ZERO);
        let errors = errors.expect("pairs");
        // One of ten reads comes a revolution of 6 ms later.
        assert!((0.08..0.12).contains(&errors.other_turn), "{errors:?}");
        assert!((500.0..700.0).contains(&errors.mean_us), "{errors:?}");
        assert!(
            errors.median_us < 0.01 && errors.p99_us > 5_900.0,
            "{errors:?}"
        );
    }
}
