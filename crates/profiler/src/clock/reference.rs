//! Sightings of known blocks that correct a clock behind a host that delays them.
//!
//! ```text
//!   late      .       .   .                 . = one sighting
//!     |   .      .  . ______._---.__
//!     | .  __.---       .         .         the line: the platter's lateness and the host's usual delay
//!     |__.---      .
//! ```
//!
//! The usual delay of a host is another after some seconds, when its load changes. It cannot be told from the
//! platter's angle, and need not be: angles of blocks that are sighted at one time are all late by it. A Kalman
//! filter follows the sum of both and its slope, the error of the believed period.

use block::{Duration, Instant, Lba};
use drive::Angle;

use super::{AGREEING, CONFIRMED, DOUBTFUL, PlatterClock, apart, forward};

/// Sightings of known blocks behind a host.
#[derive(Clone, Debug, Default)]
pub struct ReferenceSightings {
    /// A clock that was right once, from which all lateness is counted; the clock as it was corrected last; and the
    /// line.
    set: Option<(PlatterClock, PlatterClock, LateLine)>,
    /// The time of the last sighting, or of the beginning of one.
    pub at: Instant,
    /// The first block that was sighted, and where it ends: the reference until a map has many.
    pub reference: Option<(Lba, Angle)>,
    /// The number of sightings that were asked for.
    pub asked: u64,
    /// Sightings in a row that were too late or too early for any delay, all by about as much, and that much.
    doubts: u8,
    doubtful: f64,
}

/// Between sightings. A choice: 3 % of the drive's time.
const INTERVAL: Duration = Duration::from_millis(250);

/// Nanoseconds until a host's usual delay is about another one. Measured: it changed by 27 us in 5 s (root mean square)
/// where its mean was 45 us, behind FUSE and a loop device beside compilers; delays diffuse, so that it is 14 s.
const ANOTHER_DELAY: f64 = 14e9;

/// By how much the speed of a platter usually changes in a second, as a share. A choice: 20 ppm, the largest drift that
/// a belief has to follow, come in a minute or so, and a steady one is known to 1 ppm after half a minute.
const WANDER_A_SECOND: f64 = 5e-7;

/// The error of the period that was found, as a share: what the procedure is to find it to.
const PERIOD_ERROR: f64 = 5e-6;

/// Sightings count as not farther from the line than so many standard deviations. A choice: of usual ones one of
/// twenty is; stalls of a host are far more.
const USUAL: f64 = 2.0;

/// So many sightings in a row on one side, more than a deviation off on average, are a change that was not expected. A
/// choice: chance does that once in thousands of times.
const IN_A_ROW: u8 = 8;

/// Angles of a map may be as far off as a usual delay: the variance of a sighting is so many times that of the delays.
/// A choice.
const OF_A_SIGHTING: f64 = 2.0;

/// Shorter delays of a host are not told from none, in revolutions. A choice: a tenth of the narrowest sectors.
const LEAST_DELAY: f64 = 2e-5;

impl ReferenceSightings {
    /// When a known block is to be sighted again.
    pub fn due(&self) -> Instant {
        self.at + INTERVAL
    }

    /// Adds a sighting: `angle` was seen under the heads at `at`, behind a host that delays by `mean`
    /// revolutions.
    pub fn take(&mut self, clock: &mut PlatterClock, angle: Angle, at: Instant, mean: f64) {
        self.at = at;
        let mean = mean.max(LEAST_DELAY);
        let late = apart(angle, clock.angle_at(at));
        if late.abs() > DOUBTFUL {
            self.doubt(clock, angle, at, late);
            return;
        }
        self.doubts = 0;
        let (base, mut line) = match self.set {
            Some((base, set, line)) if set == *clock => (base, line),
            // Another procedure has corrected the clock.
            _ => (*clock, LateLine::new(at, clock, mean)),
        };
        let from_base = apart(angle, base.angle_at(at));
        line.pass(at, &base, mean);
        line.observe(from_base, &base, mean);
        let period = base.spindle.period_ps() as f64 * (1.0 + line.slope * base.period());
        let angle = base.angle_at(at) - forward(line.late);
        *clock = PlatterClock::new(period.round() as u64, angle, at);
        self.set = Some((base, *clock, line));
    }

    /// A sighting that no usual delay explains. If some in a row agree, the clock has lost the platter: it is set again.
    fn doubt(&mut self, clock: &mut PlatterClock, angle: Angle, at: Instant, late: f64) {
        let agrees = (late - self.doubtful).abs() < AGREEING;
        self.doubts = if agrees { self.doubts + 1 } else { 1 };
        self.doubtful = late;
        if self.doubts >= CONFIRMED {
            *clock = PlatterClock::new(clock.spindle.period_ps(), angle, at);
            self.doubts = 0;
        }
    }
}

/// How far the platter and its host are behind a clock that is not corrected: a Kalman filter of two states.
#[derive(Clone, Copy, Debug)]
struct LateLine {
    at: Instant,
    /// In revolutions.
    late: f64,
    /// More of it, in revolutions a nanosecond.
    slope: f64,
    /// The variances of both, and their covariance in between.
    variances: [f64; 3],
    /// Sightings in a row on one side of the line, positive if later, and their sum in deviations.
    aside: (i8, f64),
}

impl LateLine {
    fn new(at: Instant, base: &PlatterClock, mean: f64) -> Self {
        LateLine {
            at,
            late: 0.0,
            slope: 0.0,
            variances: unknown(base, mean),
            aside: (0, 0.0),
        }
    }

    /// Time passes until `at`.
    fn pass(&mut self, at: Instant, base: &PlatterClock, mean: f64) {
        let nanos = at.max(self.at).since(self.at).as_nanos() as f64;
        let wander = WANDER_A_SECOND / base.period();
        let [late, both, slope] = self.variances;
        self.late += self.slope * nanos;
        self.variances = [
            late + 2.0 * both * nanos + slope * nanos * nanos + mean * mean * nanos / ANOTHER_DELAY,
            both + slope * nanos,
            slope + wander * wander * nanos / 1e9,
        ];
        self.at = self.at.max(at);
    }

    /// A sighting was so late.
    fn observe(&mut self, late: f64, base: &PlatterClock, mean: f64) {
        let variance = self.variances[0] + OF_A_SIGHTING * mean * mean;
        let deviation = variance.sqrt();
        let off = late - self.late;
        if self.is_aside(off / deviation) {
            self.variances = unknown(base, mean);
        }
        let off = off.clamp(-USUAL * deviation, USUAL * deviation);
        let [late, both, slope] = self.variances;
        let variance = late + OF_A_SIGHTING * mean * mean;
        let gains = [late / variance, both / variance];
        self.late += gains[0] * off;
        self.slope += gains[1] * off;
        self.variances = [
            late * (1.0 - gains[0]),
            both * (1.0 - gains[0]),
            slope - gains[1] * both,
        ];
    }

    /// Notes on which side of the line a sighting was, by so many deviations. Answers whether so many were on one side
    /// that both states are unknown again.
    fn is_aside(&mut self, deviations: f64) -> bool {
        let (count, sum) = self.aside;
        let side = if deviations > 0.0 { 1 } else { -1 };
        let off = deviations.abs().min(USUAL);
        self.aside = match count * side > 0 {
            true => (count + side, sum + off),
            false => (side, off),
        };
        let (count, sum) = self.aside;
        let is_aside = count.unsigned_abs() >= IN_A_ROW && sum > f64::from(count.unsigned_abs());
        if is_aside {
            self.aside = (0, 0.0);
        }
        is_aside
    }
}

/// The variances of a line of which nothing is known but that it was right about.
fn unknown(base: &PlatterClock, mean: f64) -> [f64; 3] {
    let slope = PERIOD_ERROR / base.period();
    [mean * mean, 0.0, slope * slope]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_has_lost_the_platter_is_set_by_three_sightings_that_agree() {
        let at = |turn: u64| Instant::from_nanos(turn * 6_000_000);
        let mut clock = PlatterClock::new(6_000_000_000, Angle::ZERO, Instant::ZERO);
        let mut sightings = ReferenceSightings::default();
        let before = clock;
        // One stall after the other.
        for turn in 1..50 {
            let stalled = Angle::fraction(turn * 37 % 90 + 5, 100);
            sightings.take(&mut clock, stalled, at(turn), 0.005);
            assert_eq!(clock, before);
        }
        for turn in 51..=60 {
            sightings.take(&mut clock, Angle::fraction(1, 10), at(turn), 0.005);
        }
        let off = apart(clock.angle_at(at(60)), Angle::fraction(1, 10));
        assert!(off.abs() < 1e-9, "{off}");
    }

    /// The errors of a clock in revolutions, by sightings every quarter of a second with exponentially distributed
    /// delays of 30 us in the mean and `usual(second)` besides, on a platter of 6 ms that turns `ppm(second)` too
    /// slowly.
    fn late_errors(seconds: u64, ppm: impl Fn(u64) -> f64, usual: impl Fn(u64) -> f64) -> Vec<f64> {
        let mut clock = PlatterClock::new(6_000_000_000, Angle::ZERO, Instant::ZERO);
        let mut sightings = ReferenceSightings::default();
        let mut seed = 1_u64;
        let mut behind = 0.0;
        let step = |quarter: u64| {
            let at = quarter as f64 * 2.5e8;
            behind += 250.0 * ppm(quarter / 4);
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let delay = -(((seed >> 11) + 1) as f64 / (1_u64 << 53) as f64).ln() * 30_000.0;
            let angle = forward(((at - behind) / 6e6).fract());
            let later = usual(quarter / 4);
            let seen = Instant::from_nanos((at + delay + later) as u64);
            sightings.take(&mut clock, angle, seen, 0.005);
            // The usual delay is in all angles alike.
            let at = Instant::from_nanos((at + 30_000.0 + later) as u64);
            apart(angle, clock.angle_at(at))
        };
        (1..=seconds * 4).map(step).collect()
    }

    fn mean(errors: &[f64]) -> f64 {
        errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64
    }

    #[test]
    fn sightings_of_a_reference_keep_the_clock_right() {
        let errors = late_errors(300, |_| 0.3, |_| 0.0);
        let mean = mean(&errors[200..]);
        // 10 us: a third of the mean delay.
        assert!(mean < 10.0 / 6_000.0, "{mean}");
    }

    #[test]
    fn sightings_of_a_reference_follow_a_change_of_speed() {
        for ppm in [-20.0, 20.0] {
            let errors = late_errors(60, |second| if second < 30 { 0.0 } else { ppm }, |_| 0.0);
            let settled = errors[200..].iter().map(|error| error.abs());
            let worst = settled.fold(0.0, f64::max);
            // One and a half times the mean delay.
            assert!(worst < 45.0 / 6_000.0, "{ppm}: {worst}");
        }
    }

    /// A host that was 60 us later or earlier for ten seconds, as a busy one is: the line through a minute of
    /// sightings went on in the direction of the change, and was 45 us off in the mean.
    #[test]
    fn sightings_of_a_reference_follow_a_host_whose_load_changes() {
        let errors = late_errors(
            300,
            |_| 0.3,
            |second| match second / 10 % 2 {
                0 => 0.0,
                _ => 60_000.0,
            },
        );
        let mean = mean(&errors[200..]);
        // Two thirds of the mean delay.
        assert!(mean < 20.0 / 6_000.0, "{mean}");
    }
}
