//! Learns seek times from ordinary commands.
//!
//! The end of a seek is invisible: the wait for the sector hides it. Only the side of the sector on
//! which it ended shows. A command with a predicted wait `wait` for its sector, at a revolution of
//! `period`, constrains the time `x` by which the arm was slower than believed:
//!
//! ```text
//!   ended a revolution later            x > wait
//!   ended when believed      wait - period < x <= wait
//!   ended a revolution earlier          x <= wait - period
//! ```
//!
//! Every command is thus censored on both sides. Distances are divided into bands. Each band keeps
//! the likelihood of every shift of its times under three spreads; the prior, by which the belief
//! is right, decides where the commands do not. A band's times grow only after missed revolutions,
//! and shrink only after ends a revolution early: a command on time is evidence for neither. A
//! policy that avoids long waits makes early ends rare, so an arm that is faster than believed is
//! found more slowly than a slower one, or not at all.

use block::{Direction, Duration, Instant};
use drive::{SeekCurve, SeekTable};

use super::shift::{Band, CensoredTime, Odds};

/// One predicted movement of the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Travel {
    /// The direction of the command.
    pub direction: Direction,
    /// Distance in cylinders.
    pub distance: u32,
    /// The predicted wait for the first sector after it.
    pub wait: Duration,
    /// One revolution.
    pub period: Duration,
}

/// The deviation of the arm from the original belief.
#[derive(Clone, Debug)]
pub(super) struct ArmDrift {
    /// Bands of reads, then of writes, by ascending distance.
    bands: [Vec<Band>; 2],
    odds: Odds,
    /// The time of the last adoption of shifts.
    adopted: Option<Instant>,
    /// Whether the shift of some band is due for adoption.
    is_due: Due,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Yes,
    No,
}

/// Maximum change of a time, as a divisor of it. A choice: an arm with a larger deviation is
/// another one.
const PART: u64 = 5;

/// Minimum interval between adoptions. A choice: the tables of large drives take milliseconds to
/// compute.
const ADOPT_EVERY: Duration = Duration::from_secs(1);

/// Number of bands of distances: two per octave.
const BANDS: u32 = 48;

impl ArmDrift {
    pub(super) fn new() -> Self {
        let odds = Odds::new();
        let band = Band::new(&odds);
        let bands = vec![band; BANDS as usize];
        ArmDrift {
            bands: [bands.clone(), bands],
            odds,
            adopted: None,
            is_due: Due::No,
        }
    }

    /// Records a command that took `revolutions` revolutions more than predicted.
    pub(super) fn observe(&mut self, travel: &Travel, revolutions: i64) {
        if travel.distance == 0 || !(-1..=1).contains(&revolutions) {
            return;
        }
        let shift = self.shift(travel.direction, travel.distance);
        let bands = &mut self.bands[of(travel.direction)];
        let band = &mut bands[band_of(travel.distance)];
        let slack = travel.wait.as_nanos() as i64 + shift;
        let time = CensoredTime {
            slack,
            earlier: Some(slack - travel.period.as_nanos() as i64),
        };
        if band.observe(&self.odds, time, revolutions) {
            self.is_due = Due::Yes;
        }
    }

    /// The tables with all shifts, derived from the original ones, if there is more evidence than
    /// at the last adoption.
    pub(super) fn refined(&mut self, now: Instant, original: &SeekCurve) -> Option<SeekCurve> {
        let is_early = self.adopted.is_some_and(|at| now < at + ADOPT_EVERY);
        if self.is_due == Due::No || is_early {
            return None;
        }
        self.is_due = Due::No;
        self.adopted = Some(now);
        for band in self.bands.iter_mut().flatten() {
            band.shift = band.next;
        }
        let read = self.table(Direction::Read, original.read())?;
        let write = self.table(Direction::Write, original.write())?;
        Some(SeekCurve::new(read, write))
    }

    /// The adopted shift for a distance, in nanoseconds, interpolated between the middles of bands.
    fn shift(&self, direction: Direction, distance: u32) -> i64 {
        let bands = &self.bands[of(direction)];
        let band = band_of(distance);
        let (low, high) = match distance < middle(band) {
            true => (band.saturating_sub(1), band),
            false => (band, (band + 1).min(bands.len() - 1)),
        };
        let (from, to) = (middle(low), middle(high));
        let (least, most) = (bands[low].shift, bands[high].shift);
        if to <= from {
            return most;
        }
        let part = i64::from(distance.clamp(from, to) - from);
        least + (most - least) * part / i64::from(to - from)
    }

    fn table(&self, direction: Direction, original: &SeekTable) -> Option<SeekTable> {
        let cylinders = original.cylinders();
        let middles = (0..BANDS as usize).map(middle);
        let middles = middles.filter(|&distance| distance < cylinders);
        let believed = middles.map(|distance| (distance, original.time(distance)));
        let mut points: Vec<(u32, Duration)> = believed.chain(original.points()).collect();
        points.sort_unstable();
        points.dedup_by_key(|point| point.0);
        for (distance, time) in &mut points {
            let most = (time.as_nanos() / PART) as i64;
            let shift = self.shift(direction, *distance).clamp(-most, most);
            *time = time.adjusted(shift);
        }
        SeekTable::new(points, cylinders).ok()
    }
}

fn of(direction: Direction) -> usize {
    match direction {
        Direction::Read => 0,
        Direction::Write => 1,
    }
}

/// The band of a distance of at least 1.
fn band_of(distance: u32) -> usize {
    let octave = distance.ilog2();
    // The upper half of an octave begins at the root of two.
    let upper = u64::from(distance).pow(2) >= 2 << (2 * octave);
    ((2 * octave + u32::from(upper)).min(BANDS - 1)) as usize
}

/// The middle of a band's distances.
fn middle(band: usize) -> u32 {
    // The band from d to d * sqrt(2), about at its geometric middle.
    2.0_f64.powf((band as f64 + 0.5) / 2.0).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: i64 = 6_000_000;

    /// A drive whose seeks over 300 to 400 cylinders take `off` nanoseconds longer than the table says,
    /// by about 60 us; requests that wait for at most `most` are chosen. Answers what is believed
    /// of 350 cylinders in the end, in nanoseconds more than at first, and how often tables were
    /// adopted.
    fn learned(off: i64, most: i64) -> (i64, u32) {
        let table = || SeekTable::new(vec![(1, Duration::from_millis(3))], 1000).expect("a table");
        let original = SeekCurve::new(table(), table());
        let mut believed = original.clone();
        let mut arm = ArmDrift::new();
        let mut adoptions = 0;
        for n in 0..3000_u64 {
            let dice = |k: u64| (n * 16 + k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let noise = (0..12).map(|k| (dice(k) % 1001) as i64).sum::<i64>() - 6000;
            let distance = 300 + (dice(12) % 100) as u32;
            let wait = (dice(13) as i64 * 7_919) % most;
            let more = believed.read().time(distance).as_nanos() as i64 - 3_000_000;
            let later = off - more + noise * 60;
            // The platter passes at `wait` and every turn before and after it.
            let revolutions = (later - wait).div_euclid(TURN) + 1;
            let travel = Travel {
                direction: Direction::Read,
                distance,
                wait: Duration::from_nanos(wait as u64),
                period: Duration::from_nanos(TURN as u64),
            };
            arm.observe(&travel, revolutions);
            let now = Instant::from_nanos(n * 9_000_000);
            if let Some(refined) = arm.refined(now, &original) {
                believed = refined;
                adoptions += 1;
            }
        }
        let more = believed.read().time(350).as_nanos() as i64 - 3_000_000;
        // Nothing was written, and there were no other seeks.
        let others = [believed.write().time(350), believed.read().time(50)];
        assert_eq!(others, [Duration::from_millis(3); 2]);
        (more, adoptions)
    }

    #[test]
    fn with_waits_of_all_lengths_a_slower_and_a_faster_arm_are_found() {
        for off in [-300_000, -150_000, 150_000, 300_000] {
            let (more, adoptions) = learned(off, TURN);
            assert!((more - off).abs() < 60_000, "{off}: {more}");
            assert!(adoptions > 0);
        }
    }

    #[test]
    fn with_short_waits_only_a_slower_arm_is_found_and_a_faster_one_left_alone() {
        let (more, _) = learned(200_000, TURN / 4);
        assert!((more - 200_000).abs() < 60_000, "{more}");
        assert_eq!(learned(-200_000, TURN / 4), (0, 0));
    }

    #[test]
    fn an_arm_that_is_as_believed_is_left_alone() {
        for most in [TURN, TURN / 4] {
            assert_eq!(learned(0, most), (0, 0));
        }
    }

    #[test]
    fn no_time_changes_by_more_than_a_fifth() {
        let (more, _) = learned(1_200_000, TURN / 4);
        assert!((1..=600_000).contains(&more), "{more}");
    }

    #[test]
    fn each_band_has_its_middle_and_no_distance_is_out_of_them() {
        let mut before = 0;
        for distance in (1..100_000).chain([u32::MAX / 2, u32::MAX]) {
            let band = band_of(distance);
            assert!(band >= before && band < BANDS as usize);
            before = band;
        }
        for band in 4..BANDS as usize {
            assert_eq!(band_of(middle(band)), band);
        }
    }
}
