//! The period that most sightings of one block fit.
//!
//! ```text
//!   late |          .            .
//!        | .   .      . .                  . = a sighting, modulo the believed period
//!        |___.__._.__________.__._.__      the teeth: near them lie more sightings than for any other
//!        |                         .       period and phase
//! ```
//!
//! A host delays most ends by about as much, and some by far more: the teeth are where most of them are, whichever
//! those are. No single sighting is the origin.

use block::Instant;

/// Sightings count by how near they are to a tooth; at this distance, in revolutions, they do not count. A choice: hosts
/// delay nine of ten ends by 30 to 150 us, a fortieth of the shortest revolution.
const REACH: f64 = 0.025;

/// The step between periods that are tried, by how far it moves the last sighting, in revolutions; then finer ones. A
/// choice: a fifth of the reach at first, and a hundredth of what scheduling needs at last.
const STEPS: [f64; 3] = [0.005, 0.0005, 0.0001];

/// The teeth that fit most of some sightings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comb {
    /// One revolution, in nanoseconds.
    pub(super) period: f64,
    /// A tooth, in nanoseconds.
    tooth: f64,
}

impl Comb {
    /// The comb of a period that some of `times` fit, none of which is far from `period`: the last sighting is not moved by
    /// more than `unsure` revolutions.
    pub(super) fn fit(times: &[Instant], period: f64, unsure: f64) -> Self {
        let nanos = |at: &Instant| at.as_nanos() as f64;
        let first = times.first().map_or(0.0, nanos);
        let span = times.last().map_or(0.0, nanos) - first;
        let mut best = Comb {
            period,
            tooth: first,
        };
        let mut most = f64::NEG_INFINITY;
        let mut unsure = unsure;
        for step in STEPS {
            let middle = best.period;
            let steps = (unsure / step).ceil() as i64;
            for number in -steps..=steps {
                let moved = number as f64 * step * middle / span.max(middle);
                let (score, comb) = Comb::of(times, middle * (1.0 + moved));
                if score > most {
                    (most, best) = (score, comb);
                }
            }
            unsure = step;
        }
        best
    }

    /// The comb of a period whose teeth are nearest to the sightings, and by how many they are.
    fn of(times: &[Instant], period: f64) -> (f64, Self) {
        let turns = |at: &Instant| at.as_nanos() as f64 / period;
        let phases: Vec<f64> = times.iter().map(|at| turns(at).fract()).collect();
        let near = |tooth: f64| -> f64 {
            let weight = |phase: &f64| {
                let off = phase - tooth;
                (1.0 - (off - off.round()).abs() / REACH).max(0.0)
            };
            phases.iter().map(weight).sum()
        };
        let mut best = (f64::NEG_INFINITY, 0.0);
        for tooth in &phases {
            let score = near(*tooth);
            if score > best.0 {
                best = (score, *tooth);
            }
        }
        let tooth = best.1 * period;
        (best.0, Comb { period, tooth })
    }

    /// How far a sighting is behind the nearest tooth, in revolutions; negative if it is before it.
    pub(super) fn off(&self, at: Instant) -> f64 {
        let turns = (at.as_nanos() as f64 - self.tooth) / self.period;
        turns - turns.round()
    }

    /// Whether a sighting is at a tooth.
    pub(super) fn has(&self, at: Instant) -> bool {
        self.off(at).abs() < REACH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: f64 = 5_985_048.8;

    /// Sightings of a block for 20 s, of which the host delays some by up to `stall` nanoseconds: those for whose number
    /// `stalls` holds.
    fn sightings(stalls: impl Fn(u64) -> bool) -> Vec<Instant> {
        let turns = (0..40)
            .map(|number| number * 11)
            .chain((0..20).map(|number| 3_000 + number * 17));
        let at = |(number, turn): (u64, u64)| {
            let usual = number.wrapping_mul(2_654_435_761) % 90_000;
            let stall = match stalls(number) {
                true => 400_000 + number.wrapping_mul(40_503) % 5_000_000,
                false => 0,
            };
            Instant::from_nanos((turn as f64 * PERIOD) as u64 + 1_234_567 + usual + stall)
        };
        (0..).zip(turns).map(at).collect()
    }

    #[test]
    fn stalls_of_a_third_move_neither_period_nor_teeth() {
        for stalled in [0, 1, 2] {
            // The first of all sightings, the last of all, and some in the middle are among them.
            let times = sightings(|number| number % 3 == stalled);
            for wrong in [-2e-6, 0.0, 3e-5] {
                let comb = Comb::fit(&times, PERIOD * (1.0 + wrong), 0.2);
                let ppm = (comb.period / PERIOD - 1.0) * 1e6;
                assert!(ppm.abs() < 3.0, "{stalled}, {wrong}: {ppm}");
                let there = times.iter().filter(|at| comb.has(**at)).count();
                assert!((40..=44).contains(&there), "{stalled}, {wrong}: {there}");
            }
        }
    }

    #[test]
    fn exact_sightings_have_an_exact_period() {
        let times: Vec<Instant> = (0..30)
            .map(|turn| Instant::from_nanos(turn * turn * 6_000_000))
            .collect();
        let comb = Comb::fit(&times, 6_000_100.0, 0.05);
        let ppm = (comb.period / 6e6 - 1.0) * 1e6;
        assert!(ppm.abs() < 0.2, "{ppm}");
    }
}
