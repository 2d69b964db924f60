//! What sightings of one time have in common: the error of the clock, and how long the host delays usually.
//!
//! Blocks that are sighted in turns are late alike while a host's load changes, or the clock is not right. That says
//! nothing about the map.

use block::Instant;

use crate::clock::median;

/// How far off one sighting of a block was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimedOff {
    /// When it ended.
    pub at: Instant,
    /// In revolutions.
    pub off: f64,
}

/// How far off sightings of many blocks were, by their time.
#[derive(Debug, Default)]
pub(super) struct SharedDelay {
    /// In the order of time: how far off those around each one were usually.
    medians: Vec<TimedOff>,
}

/// So many sightings before one and behind it tell what they have in common. A choice: half a second of a drive of 10,000
/// rpm each, and a tenth of what one sighting is off by.
const AROUND: usize = 50;

/// Of fewer sightings nothing is told: they may be of one piece of the map. A choice.
const FEWEST: usize = 2 * AROUND;

impl SharedDelay {
    /// What these sightings have in common; nothing if they are few.
    pub(super) fn of(mut offs: Vec<TimedOff>) -> Self {
        if offs.len() < FEWEST {
            return SharedDelay::default();
        }
        offs.sort_unstable_by_key(|one| one.at);
        let around = |place: usize| {
            let from = place.saturating_sub(AROUND).min(offs.len() - FEWEST);
            let mut around: Vec<f64> = offs[from..offs.len().min(from + FEWEST + 1)]
                .iter()
                .map(|one| one.off)
                .collect();
            TimedOff {
                at: offs[place].at,
                off: median(&mut around),
            }
        };
        let medians = (0..offs.len()).map(around).collect();
        SharedDelay { medians }
    }

    /// How far off sightings were at a time, in revolutions.
    pub(super) fn at(&self, at: Instant) -> f64 {
        let place = self.medians.partition_point(|one| one.at < at);
        let near = self.medians.get(place).or(self.medians.last());
        near.map_or(0.0, |one| one.off)
    }

    /// How far off a block is by some sightings, besides what they have in common with others.
    pub(super) fn rest(&self, offs: &[TimedOff]) -> f64 {
        let mut rests: Vec<f64> = offs.iter().map(|one| one.off - self.at(one.at)).collect();
        median(&mut rests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sightings every 10 ms; one of ten is of a block that is beside its place.
    fn offs(common: impl Fn(f64) -> f64) -> Vec<TimedOff> {
        let sighting = |number: u32| TimedOff {
            at: Instant::from_nanos(u64::from(number) * 10_000_000),
            off: common(f64::from(number) / 100.0)
                + if number.is_multiple_of(10) { 0.02 } else { 0.0 },
        };
        (0..2000).map(sighting).collect()
    }

    #[test]
    fn what_is_left_is_what_blocks_are_off_by() {
        for common in [|_| 0.0, |_| -0.1, |at: f64| (at / 3.0).sin() * 0.01] {
            let all = offs(common);
            let delay = SharedDelay::of(all.clone());
            for (number, one) in all.iter().enumerate() {
                let is = if number.is_multiple_of(10) { 0.02 } else { 0.0 };
                let rest = delay.rest(&[*one]);
                assert!((rest - is).abs() < 0.002, "{number}: {rest}");
            }
        }
    }

    #[test]
    fn few_sightings_have_nothing_in_common() {
        let few: Vec<TimedOff> = offs(|_| 0.02).into_iter().take(FEWEST - 1).collect();
        assert!((SharedDelay::of(few.clone()).rest(&few[1..2]) - 0.02).abs() < 1e-12);
        assert_eq!(SharedDelay::default().rest(&[]), 0.0);
    }
}
